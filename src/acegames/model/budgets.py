"""Budgets and cumulative costs: as users write them, as exact numbers, in whole units (spec 1)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidGame, UnknownPair
from acegames.model.checks import Label, are, check_known, check_labels, counted, read_at, unknown
from acegames.model.numbers import LARGEST, Bound, exact, exact_or_inf, is_scalar, plain

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame

Rows = tuple[tuple[Bound, ...], ...]
"""H rows of M: the bound on the cumulative cost after acting at t."""


@dataclass(frozen=True)
class Reservoir:
    """What a constraint with a capacity has besides its bounds: a battery, a tank.

    Its cumulative cost is what is missing to the capacity. It never falls below zero: what does not
    fit is lost.
    """

    capacity: Fraction
    start: Fraction  # the level at the beginning

    @property
    def missing(self) -> Fraction:
        """The cumulative cost at the beginning."""
        return self.capacity - self.start


Reservoirs = tuple[Reservoir | None, ...]
"""M: None for a plain budget."""

Amount = TypeVar("Amount", int, Fraction)


def spent_at_start(reservoirs: Reservoirs) -> tuple[Fraction, ...]:
    """Return the cumulative costs at the beginning: zero, or what is missing in a reservoir."""
    return tuple(Fraction(0) if x is None else x.missing for x in reservoirs)


def spent_after(reservoirs: Reservoirs, spent: tuple[Amount, ...], cost: tuple[Amount, ...]) -> tuple[Amount, ...]:
    """Return the cumulative costs after one more cost; a reservoir is never more than full."""
    totals = tuple(map(add, spent, cost))
    if not any(reservoirs):
        return totals
    return tuple(x if reservoir is None else max(x, 0 * x) for x, reservoir in zip(totals, reservoirs, strict=True))


class ConstraintBudget(NamedTuple):
    """The budget of one constraint, in exact numbers."""

    bounds: tuple[Bound, ...]  # H
    reservoir: Reservoir | None = None
    # bounds on the negated cumulative cost, of a constraint that becomes two (see `between`)
    lower: tuple[Bound, ...] | None = None


Budgets = dict[Label, ConstraintBudget]
"""The budget of each constraint, in order."""


def budgets_of(game: MarkovGame) -> Budgets:
    """Return the budgets of a game by constraint."""
    columns = map(ConstraintBudget, zip(*game.budgets, strict=True), game.reservoirs)
    return dict(zip(game.constraints, columns, strict=True))


def budget_fields(budgets: Budgets, horizon: int) -> dict[str, Any]:
    """Return budgets as the fields of a game that hold them."""
    rows = tuple(zip(*(budget.bounds for budget in budgets.values()), strict=True)) or ((),) * horizon
    return {"budgets": rows, "reservoirs": tuple(budget.reservoir for budget in budgets.values())}


@dataclass(frozen=True)
class AtEnd:
    """A budget that holds at the end only: `inf` at every time but the last."""

    bound: Any

    def __repr__(self) -> str:
        return f"almost_sure({self.bound!r})"


@dataclass(frozen=True)
class Holds:
    """A reservoir as `reservoir` makes it; nothing is checked before a game is built."""

    capacity: Any
    start: Any = None  # None: full
    reserve: Any = 0  # or one number per time

    def __repr__(self) -> str:
        started = "" if self.start in (None, self.capacity) else f", start={self.start!r}"
        reserve = "" if is_scalar(self.reserve) and self.reserve == 0 else f", reserve={self.reserve!r}"
        return f"reservoir({self.capacity!r}{started}{reserve})"


def reservoir(capacity: Any, start: Any = None, reserve: Any = 0) -> Holds:
    """Return a budget for a resource that is stored, to use in place of a number.

    `{"battery": reservoir(6)}`: a cost drains it, a negative cost fills it, what does not fit is
    lost, and with probability one it never runs dry. The cumulative cost is what is missing to the
    capacity; it follows `max(spent + cost, 0)`.

    Args:
        capacity: what it holds.
        start: the level at the beginning; full by default. Where other capacities are tried
            (`minimal_budgets`, `budget_curve`), a lower level stays as it is, while a reservoir
            that is full is full with each of them, also where `start` equals the capacity: the two
            are the same game, with the same digest.
        reserve: the least level that must be left after every step; one number, or one per time.
    """
    return Holds(capacity, start, reserve)


@dataclass(frozen=True)
class Between:
    """Limits on both sides, as `between` makes them."""

    low: Any
    high: Any

    def __repr__(self) -> str:
        return f"between({self.low!r}, {self.high!r})"


def between(low: Any, high: Any) -> Between:
    """Return limits on both sides, to use in place of a number: `{"stock": between(-3, 5)}`.

    The cumulative cost stays between `low` and `high` at every moment, with probability one. The
    game then has two constraints: "stock", and "-stock" with the negated costs. Where (cumulative)
    costs are given, those of "-stock" may be left out: they are minus those of "stock". An
    `epsilon` of "stock" serves both. The budgets of a curve may leave out "-stock", and its limit
    stays.

    Args:
        low: the least cumulative cost, a number or one per time; `-inf` is no limit.
        high: the largest cumulative cost, likewise; `inf` is no limit.
    """
    return Between(low, high)


def negated(label: Label) -> Label:
    """Return the label of the constraint that limits another one from below."""
    return f"-{label}" if isinstance(label, str) else ("-", label)


def own_names(constraints: Sequence[Label]) -> list[Label]:
    """Return the constraints without those that limit another one from below."""
    lower = set(map(negated, constraints))
    return [c for c in constraints if c not in lower]


def almost_sure(bound: Any) -> AtEnd:
    """Return a budget on the total alone, to use in place of a number: `{"fuel": almost_sure(5)}`.

    With probability one the total at the end is at most `bound`. Before the end the total may
    exceed it, as long as it comes back with probability one. With costs of one sign this is the
    same as a budget that holds at all times.
    """
    return AtEnd(bound)


def is_almost_sure(schedule: Sequence[Bound]) -> bool:
    """Return whether a schedule bounds only the total at the end, and is not constant."""
    return len(schedule) > 1 and all(b == math.inf for b in schedule[:-1]) and schedule[-1] != math.inf


def read_budget(budget: Any, constraints: Sequence[Label] | None, horizon: int) -> Budgets:
    """Return the budget of each constraint from any accepted form."""
    if budget is None:
        if constraints:
            raise InvalidGame(f"budget: missing for the constraints {list(constraints)!r}")
        return {}
    if isinstance(budget, Mapping):
        labels = check_labels("constraints", budget if constraints is None else constraints)
        if set(labels) != set(budget):
            raise InvalidGame(f"budget: has entries for {list(budget)!r}, the constraints are {list(labels)!r}")
        entries = [budget[label] for label in labels]
    else:
        rows = _rows(budget, horizon)
        # one entry per constraint, such as `almost_sure` or `reservoir`, or the schedule of each
        entries = rows[0] if len(rows) == 1 else list(zip(*rows, strict=True))
        width = len(rows[0])
        labels = check_labels("constraints", range(width) if constraints is None else constraints)
        if len(labels) != width:
            there = f"{are(len(labels), 'constraint')} {list(labels)!r}"
            raise InvalidGame(f"budget: has {counted(width, 'entry')}, there {there}")
    return {label: _read_entry(label, entry, horizon) for label, entry in zip(labels, entries, strict=True)}


def _rows(budget: Any, horizon: int) -> list[list[Any]]:
    """Return one row (a constant) or H rows (a schedule) of raw entries, all of one length."""
    if is_scalar(budget):
        return [[budget]]
    entries = list(budget)
    nested = [not is_scalar(e) for e in entries]
    if not any(nested) or any(isinstance(e, (AtEnd, Holds, Between)) for e in entries):  # these stand for all times
        return [entries]
    if not all(nested):
        raise InvalidGame(f"budget: {budget!r} mixes numbers and rows; give M numbers, or one row of M per time")
    rows = [list(e) for e in entries]
    if len(rows) != horizon:
        raise InvalidGame(f"budget: the schedule has {len(rows)} rows, the horizon is {horizon}")
    for t, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise InvalidGame(f"budget: row t={t} has {counted(len(row), 'entry')}, row t=0 has {len(rows[0])}")
    return rows


def _read_entry(label: Label, entry: Any, horizon: int) -> ConstraintBudget:
    if isinstance(entry, ConstraintBudget):
        return entry
    if isinstance(entry, Holds):
        return _read_reservoir(label, entry, horizon)
    if isinstance(entry, Between):
        return _read_between(label, entry, horizon)
    return ConstraintBudget(_schedule(f"budget of {label!r}", entry, horizon))


def _schedule(what: str, entry: Any, horizon: int) -> tuple[Bound, ...]:
    if isinstance(entry, AtEnd):
        return (math.inf,) * (horizon - 1) + (_bound(what, entry.bound),)
    if is_scalar(entry):
        return (_bound(what, entry),) * horizon
    values = list(entry)
    if len(values) != horizon:
        raise InvalidGame(f"{what}: the schedule has {counted(len(values), 'entry')}, the horizon is {horizon}")
    return tuple(_bound(f"{what} at t={t}", v) for t, v in enumerate(values))


def _read_between(label: Label, limits: Between, horizon: int) -> ConstraintBudget:
    what = f"budget of {label!r}: the"
    high = _schedule(f"{what} upper limit", limits.high, horizon)
    low = [limits.low] * horizon if is_scalar(limits.low) else list(limits.low)
    if len(low) != horizon:
        raise InvalidGame(f"{what} lower limits are {len(low)}, the horizon is {horizon}")
    negative = []
    for t, value in enumerate(low):
        if isinstance(value, (float, np.floating)) and value == -math.inf:
            negative.append(math.inf)
            continue
        least = read_at(f"{what} lower limit at t={t}", exact, value, "; must be a finite number or -inf")
        if least > high[t]:
            raise InvalidGame(
                f"{what} lower limit {plain(least)!r} at t={t} is above the upper limit {plain(high[t])!r}"
            )
        negative.append(-least)
    return ConstraintBudget(high, lower=tuple(negative))


def _read_reservoir(label: Label, holds: Holds, horizon: int) -> ConstraintBudget:
    """Return the bounds on what is missing to the capacity, with the reservoir."""
    what = f"budget of {label!r}: the"
    capacity = read_at(f"{what} capacity", exact, holds.capacity, "; must be a finite number")
    if capacity < 0:
        raise InvalidGame(f"{what} capacity {plain(capacity)!r} must not be below 0")
    start = capacity if holds.start is None else read_at(f"{what} start", exact, holds.start, "; must be a number")
    if not 0 <= start <= capacity:
        raise InvalidGame(f"{what} start {plain(start)!r} must be between 0 and the capacity {plain(capacity)!r}")
    reserves = _schedule(f"{what} reserve", holds.reserve, horizon)
    for t, reserve in enumerate(reserves):
        if not 0 <= reserve <= capacity:
            at = "" if is_scalar(holds.reserve) else f" at t={t}"
            raise InvalidGame(
                f"{what} reserve{at} {plain(reserve)!r} must be between 0 and the capacity {plain(capacity)!r}"
            )
    return ConstraintBudget(tuple(capacity - reserve for reserve in reserves), Reservoir(capacity, start))


def _bound(what: str, value: Any) -> Bound:
    bound: Bound = read_at(what, exact_or_inf, value, "; must be a finite number or inf")
    return bound


def own_budget(game: MarkovGame) -> dict[Label, Any]:
    """Return the budget of each constraint as a builder takes it."""
    return {label: _own(budget.bounds, budget.reservoir) for label, budget in budgets_of(game).items()}


def _own(column: Sequence[Bound], reservoir: Reservoir | None) -> Any:
    if reservoir is not None:
        reserve = _own([reservoir.capacity - b for b in column], None)
        return Holds(plain(reservoir.capacity), plain(reservoir.start), reserve)
    return plain(column[0]) if len(set(column)) == 1 else [plain(b) for b in column]


def has_schedule(game: MarkovGame) -> bool:
    """Return whether a plain budget changes with time.

    A larger budget is then the whole schedule, shifted.
    """
    return any(len(set(x.bounds)) > 1 for x in budgets_of(game).values() if x.reservoir is None)


def costless(game: MarkovGame) -> list[Label]:
    """Return the constraints with a finite budget of which no outcome ever costs anything."""
    return [
        label
        for m, (label, costs) in enumerate(zip(game.constraints, game.cost_values, strict=True))
        if any(not isinstance(row[m], float) for row in game.budgets) and not any(cost != 0 for cost in costs)
    ]


def costless_sentence(label: Label) -> str:
    """Return the warning about a constraint of which no outcome costs anything."""
    return f"no outcome of the game has a cost of {label!r}, so its budget never binds"


def warn_of_costless(game: MarkovGame) -> None:
    """Warn of every constraint with a finite budget of which no outcome costs anything."""
    for label in costless(game):
        warnings.warn(costless_sentence(label), stacklevel=4)


def read_amounts(constraints: Sequence[Label], amounts: Any) -> tuple[Fraction, ...]:
    """Return one exact amount per constraint, from a number, numbers, or {constraint: number}.

    A dict says only what is not zero.

    Those of a constraint that limits another one from below may be left out (`between`).

    Raises:
        ValueError: naming the value and the rule.
    """
    if isinstance(amounts, Mapping):
        check_known("constraint", amounts, constraints, error=ValueError)
        entries = [amounts.get(c, 0) for c in constraints]
        limited = {negated(c): c for c in amounts}
        for m, c in enumerate(constraints):
            if c in limited and c not in amounts:
                entries[m] = -exact(amounts[limited[c]])
    else:
        entries = [amounts] if is_scalar(amounts) else list(amounts)
        if len(entries) < len(constraints):
            asked = own_names(constraints)
            if len(entries) == len(asked):
                return read_amounts(constraints, dict(zip(asked, entries, strict=True)))
    if len(entries) != len(constraints):
        there = f"{are(len(constraints), 'constraint')} {list(constraints)!r}"
        raise ValueError(f"{counted(len(entries), 'number')} given, there {there}")
    return tuple(map(exact, entries))


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
    """Return whether amounts are plain ints that count whole units as they stand."""
    return (
        type(amounts) is tuple
        and all(type(amount) is int and -LARGEST < amount < LARGEST for amount in amounts)
        and all(unit.numerator == unit.denominator for unit in units)
    )


def read_pair(
    t: Any, last: int, state: Label, index: Mapping[Label, int], spent: Any, to_whole: Callable[[Any], tuple[int, ...]]
) -> tuple[int, NDArray[np.int64]]:
    """Return the state's number and the whole units spent, (1, M), of a pair that a user names.

    Raises UnknownPair, which says what is wrong.
    """
    number, total = read_total(t, last, state, index, spent, to_whole)
    try:
        return number, np.array([total], dtype=np.int64).reshape(1, len(total))
    except OverflowError as error:
        raise UnknownPair(f"{_key(t, state, spent)}: {error}") from None


def read_total(
    t: Any, last: int, state: Label, index: Mapping[Label, int], spent: Any, to_whole: Callable[[Any], tuple[int, ...]]
) -> tuple[int, tuple[int, ...]]:
    """Return the state's number and the whole units spent of a pair that a user names.

    The units are ints of any size. Raises UnknownPair, which says what is wrong.
    """
    if isinstance(t, bool) or not isinstance(t, (int, np.integer)) or not 0 <= t <= last:
        raise UnknownPair(f"{_key(t, state, spent)}: t must be a whole number between 0 and {last}")
    if not isinstance(state, Hashable) or state not in index:
        raise UnknownPair(f"{_key(t, state, spent)}: {unknown('state', state, index)}")
    try:
        return index[state], to_whole(spent)
    except (ValueError, TypeError, OverflowError) as error:
        raise UnknownPair(f"{_key(t, state, spent)}: {error}") from None


def unreachable(t: int, state: Label, spent: Any, *, occurs: bool, hint: str = "") -> UnknownPair:
    """Return the error for a pair that cannot occur; `occurs`: whether its state can then."""
    if occurs:
        wrong = f"spent is wrong: the state occurs at t={t}, but never with this cumulative cost{hint}"
    else:
        wrong = f"the state or the time is wrong: the state never occurs at t={t}"
    return UnknownPair(f"{_key(t, state, spent)}: this situation is not reachable under feasible play; {wrong}")


def _key(t: Any, state: Any, spent: Any) -> str:
    return f"t={t!r}, state {state!r}, spent {spent!r}"
