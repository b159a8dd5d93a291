"""Amounts of costs: as users write them, as exact numbers, and as whole multiples of a unit."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import UnknownPair
from acegames.model.budgets import negated, own_names
from acegames.model.checks import Label
from acegames.model.numbers import common_denominator, exact, is_scalar, plain
from acegames.model.written import are, check_known, counted, unknown

LARGEST = 2**61
"""Totals stay below this; a total plus the kernels' mark for "none", 2**62, fits into int64."""


def common_unit(values: Iterable[Fraction]) -> Fraction:
    """Greatest rational of which all values are multiples; 1 if all are 0; TooLarge if absurd."""
    given = list(values)
    common = common_denominator(given)
    numerator = math.gcd(*(v.numerator * (common // v.denominator) for v in given))
    return Fraction(numerator, common) if numerator else Fraction(1)


def read_amounts(constraints: Sequence[Label], amounts: Any) -> tuple[Fraction, ...]:
    """Return exact amounts, one per constraint, from a number, numbers, or {constraint: number}
    (else 0).

    Those of a constraint that limits another one from below may be left out (`between`).

    Raises:
        ValueError: naming the value and the rule.
    """
    if isinstance(amounts, Mapping):
        check_known("constraint", amounts, constraints, error=ValueError)
        given = [amounts.get(c, 0) for c in constraints]
        limited = {negated(c): c for c in amounts}
        for m, c in enumerate(constraints):
            if c in limited and c not in amounts:
                given[m] = -exact(amounts[limited[c]])
    else:
        given = [amounts] if is_scalar(amounts) else list(amounts)
        if len(given) < len(constraints):
            asked = own_names(constraints)
            if len(given) == len(asked):
                return read_amounts(constraints, dict(zip(asked, given, strict=True)))
    if len(given) != len(constraints):
        there = f"{are(len(constraints), 'constraint')} {list(constraints)!r}"
        raise ValueError(f"{counted(len(given), 'number')} given, there {there}")
    return tuple(map(exact, given))


def to_units(constraints: Sequence[Label], units: Sequence[Fraction], amounts: Any) -> tuple[int, ...]:
    """Return whole units of amounts as in `read_amounts`; ValueError where there are none."""
    if _whole(units, amounts) and len(amounts) == len(constraints):
        return tuple(amounts)
    whole = []
    for label, unit, amount in zip(constraints, units, read_amounts(constraints, amounts), strict=True):
        count = amount / unit
        if count.denominator != 1:
            raise ValueError(
                f"{plain(amount)!r} of {label!r} is no whole multiple of {unit}, which every cost is; "
                "add up exactly (ints, Fractions, Decimals), or let a Runner keep track"
            )
        whole.append(int(count))
    return tuple(whole)


def _whole(units: Sequence[Fraction], amounts: Any) -> bool:
    """Return whether amounts, plain ints, are whole units as they stand: then there is nothing to
    read.
    """
    return (
        type(amounts) is tuple
        and all(type(amount) is int and -LARGEST < amount < LARGEST for amount in amounts)
        and all(unit.numerator == unit.denominator for unit in units)
    )


def from_units(units: Sequence[Fraction], whole: Iterable[int]) -> tuple[int | float | Fraction, ...]:
    """Return exact numbers in the user's units from whole units."""
    return tuple(plain(int(w) * u) for w, u in zip(whole, units, strict=True))


def rows_from_units(units: Sequence[Fraction], whole: NDArray[np.int64]) -> list[tuple[int | float | Fraction, ...]]:
    """The same for (Q, M) whole units at once, each different amount made once."""
    columns = []
    for unit, column in zip(units, whole.T, strict=True):
        values, which = np.unique(column, return_inverse=True)
        amounts = [plain(int(w) * unit) for w in values.tolist()]
        columns.append([amounts[k] for k in which.tolist()])
    return list(zip(*columns, strict=True)) if columns else [()] * len(whole)


def read_pair(
    t: Any, last: int, state: Label, index: Mapping[Label, int], spent: Any, to_whole: Callable[[Any], tuple[int, ...]]
) -> tuple[int, NDArray[np.int64]]:
    """Return state index and whole units spent, (1, M), of a pair; UnknownPair says what is wrong."""
    number, total = read_total(t, last, state, index, spent, to_whole)
    try:
        return number, np.array([total], dtype=np.int64).reshape(1, len(total))
    except OverflowError as error:
        raise UnknownPair(f"{_key(t, state, spent)}: {error}") from None


def read_total(
    t: Any, last: int, state: Label, index: Mapping[Label, int], spent: Any, to_whole: Callable[[Any], tuple[int, ...]]
) -> tuple[int, tuple[int, ...]]:
    """The same in integers of any size."""
    if isinstance(t, bool) or not isinstance(t, (int, np.integer)) or not 0 <= t <= last:
        raise UnknownPair(f"{_key(t, state, spent)}: t must be a whole number between 0 and {last}")
    if not isinstance(state, Hashable) or state not in index:
        raise UnknownPair(f"{_key(t, state, spent)}: {unknown('state', state, index)}")
    try:
        return index[state], to_whole(spent)
    except (ValueError, TypeError, OverflowError) as error:
        raise UnknownPair(f"{_key(t, state, spent)}: {error}") from None


def unreachable(t: int, state: Label, spent: Any, *, occurs: bool, hint: str = "") -> UnknownPair:
    """Return the error for a situation that does not occur; `occurs`: its state does at this time."""
    if occurs:
        wrong = f"spent is wrong: the state occurs at t={t}, but never with this cumulative cost{hint}"
    else:
        wrong = f"the state or the time is wrong: the state never occurs at t={t}"
    return UnknownPair(f"{_key(t, state, spent)}: this situation is not reachable under feasible play; {wrong}")


def _key(t: Any, state: Any, spent: Any) -> str:
    return f"t={t!r}, state {state!r}, spent {spent!r}"
