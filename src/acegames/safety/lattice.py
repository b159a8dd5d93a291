"""Costs and budgets as integers (spec 9): each constraint counts in its own unit, the greatest common divisor of its costs.

A cumulative cost is a whole number of units, so `c <= B` holds exactly when `c / unit <= floor(B / unit)`. Budgets beyond
what a play can spend at all (`inf` too) are cut to the largest total, which never binds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import TooLarge, UnknownPair
from acegames.model.game import Label, MarkovGame, exact_costs
from acegames.model.numbers import common_denominator, exact, is_scalar, plain, shown
from acegames.model.written import unknown

LARGEST = 2**61
"""Totals stay below this, and the kernels' marks for "none" are at 2**62, so that sums of one of each fit into int64."""


@dataclass(frozen=True, eq=False)
class Lattice:
    """The integer form of a game's costs and budgets."""

    units: tuple[Fraction, ...]  # M
    cost_units: tuple[NDArray[np.int64], ...]  # M arrays: whole units of each cost code
    budget: NDArray[np.int64]  # (H, M)

    def costs(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """Whole units of (K, M) cost codes."""
        out = np.empty(codes.shape, dtype=np.int64)
        for m, values in enumerate(self.cost_units):
            out[..., m] = values[codes[..., m]]
        return out

    def spent(self, units: Iterable[int]) -> tuple[int | float | Fraction, ...]:
        """Whole units as exact numbers in the user's units."""
        return from_units(self.units, units)


def lattice(game: MarkovGame) -> Lattice:
    """Return the integer lattice of a game; TooLarge when a constraint's totals do not fit into 64 bits."""
    costs = exact_costs(game)
    units = tuple(common_unit(values) for values in costs)
    scaled = [[int(v / u) for v in values] for values, u in zip(costs, units, strict=True)]
    budget = np.zeros((game.horizon, len(units)), dtype=np.int64)
    for m, whole in enumerate(scaled):
        most = game.horizon * max(map(abs, whole))
        if most >= LARGEST:
            unit, label = units[m], game.constraints[m]
            raise TooLarge(
                f"constraint {label!r}: the costs are whole multiples of no unit coarser than {shown(unit)}, and {game.horizon} "
                f"steps can add up to {shown(most)} of them, which does not fit into 64-bit integers. These costs are too fine "
                "to be tracked exactly: solve approximately, with an epsilon or a larger one (epsilon=..., --epsilon)"
            )
        for t, row in enumerate(game.budgets):
            bound = row[m]
            exactly = most if isinstance(bound, float) else math.floor(bound / units[m])
            budget[t, m] = max(min(exactly, most), -most - 1)
    return Lattice(units, tuple(np.array(w, dtype=np.int64) for w in scaled), budget)


def common_unit(values: Iterable[Fraction]) -> Fraction:
    """Greatest rational of which every value is a whole multiple; 1 when all are zero. TooLarge where it is absurdly fine."""
    given = list(values)
    common = common_denominator(given)
    numerator = math.gcd(*(v.numerator * (common // v.denominator) for v in given))
    return Fraction(numerator, common) if numerator else Fraction(1)


def read_amounts(constraints: Sequence[Label], amounts: Any) -> tuple[Fraction, ...]:
    """Exact amounts, one per constraint: from a number, one number per constraint, or {constraint: number} (absent means 0).

    Raises:
        ValueError: naming the value and the rule.
    """
    if isinstance(amounts, Mapping):
        strange = [c for c in amounts if c not in constraints]
        if strange:
            raise ValueError(unknown("constraint", strange[0], constraints))
        given = [amounts.get(c, 0) for c in constraints]
    else:
        given = [amounts] if is_scalar(amounts) else list(amounts)
    if len(given) != len(constraints):
        raise ValueError(f"{len(given)} numbers given, there are {len(constraints)} constraints {list(constraints)!r}")
    return tuple(map(exact, given))


def to_units(constraints: Sequence[Label], units: Sequence[Fraction], amounts: Any) -> tuple[int, ...]:
    """Whole units of amounts as in `read_amounts`; ValueError where there are none."""
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


def read_pair(
    t: Any, last: int, state: Label, index: Mapping[Label, int], spent: Any, to_whole: Callable[[Any], tuple[int, ...]]
) -> tuple[int, NDArray[np.int64]]:
    """Index of a state and whole units spent, (1, M), of a pair that is asked about; UnknownPair saying what is wrong with it."""
    key = f"t={t!r}, state {state!r}, spent {spent!r}"
    if isinstance(t, bool) or not isinstance(t, (int, np.integer)) or not 0 <= t <= last:
        raise UnknownPair(f"{key}: t must be a whole number between 0 and {last}")
    if not isinstance(state, Hashable) or state not in index:
        raise UnknownPair(f"{key}: {unknown('state', state, index)}")
    try:
        total = to_whole(spent)
        return index[state], np.array([total], dtype=np.int64).reshape(1, len(total))
    except (ValueError, TypeError, OverflowError) as error:
        raise UnknownPair(f"{key}: {error}") from None


def from_units(units: Sequence[Fraction], whole: Iterable[int]) -> tuple[int | float | Fraction, ...]:
    """Exact numbers in the user's units from whole units."""
    return tuple(plain(int(w) * u) for w, u in zip(whole, units, strict=True))
