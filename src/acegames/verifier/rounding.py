"""How a policy counts costs, as its tracker says, and what each cost counts as (spec 5).

    exact    every cost counts as it is
    down     floor(c / cell) cells          up    ceil(c / cell) cells
             both at least `lowest`: whatever is below counts as that much
    ignore   nothing, for a constraint that cannot bind

The costs that count alike are a *cell*. A fixed cost is a cell of its own; a random cost falls into
many, with probabilities from its distribution function. The rounding is the verifier's own; nothing
here runs the policy's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidGame, InvalidOption, TooLarge
from acegames.model.costs.random import RandomCost
from acegames.model.game import Label, MarkovGame
from acegames.model.numbers import TINIEST, largest_float, nearest_float, plain
from acegames.model.words import to_digits as shown
from acegames.numerics import PROBABILITY_SUM

Cost = Fraction | RandomCost

_MOST_CELLS = 10**7
"""Cells of one random cost at most; each is an outcome of every row that has this cost."""

_COMPARED = 1000
"""Costs of a constraint, about, for which the policy's counting is compared with its record."""


@dataclass(frozen=True)
class Rule:
    """How the costs of one constraint are counted."""

    direction: str  # "exact", "down", "up" or "ignore"
    cell: Fraction
    lowest: Fraction | None

    def index(self, cost: Fraction) -> int:
        """Number of whole cells that a cost is rounded to, before the cut-off."""
        return math.floor(cost / self.cell) if self.direction == "down" else math.ceil(cost / self.cell)

    def counted(self, cost: Fraction) -> Fraction:
        """Return what a cost counts as."""
        if self.direction == "exact":
            return cost
        return Fraction(0) if self.direction == "ignore" else self.at_least(self.index(cost))

    def at_least(self, index: int) -> Fraction:
        """Return what a whole number of cells counts as: no less than `lowest`."""
        amount = index * self.cell
        return amount if self.lowest is None else max(amount, self.lowest)

    def allowance(self, t: int) -> Fraction:
        """Return how much more than counted can have been spent after acting at time t."""
        return (t + 1) * self.cell if self.direction == "down" else Fraction(0)


EXACT = Rule("exact", Fraction(0), None)


class Cell(NamedTuple):
    """Costs that count alike."""

    counted: Fraction
    probability: float  # positive
    top: Fraction  # their largest value, or the limit that they come close to


def read_rules(game: MarkovGame, policy: Any) -> tuple[tuple[Rule, ...], list[str]]:
    """Return how a policy counts each constraint, and a sentence for each rule that makes no sense.

    Raises:
        InvalidOption: a policy that rounds some costs counts random ones as they are. (Where it
            rounds none, `Units` says so.)
    """
    tracker = getattr(policy, "tracker", None)
    given = getattr(tracker, "rounding", ())
    if not isinstance(given, (tuple, list)):
        return (), [f"The policy's rounding is {given!r:.60}, must be one record per constraint."]
    exactly = (EXACT,) * len(game.constraints)
    if all(entry is None for entry in given):
        return exactly, []
    if tuple(getattr(tracker, "constraints", ())) != game.constraints or len(given) != len(game.constraints):
        theirs, ours = list(getattr(tracker, "constraints", ())), list(game.constraints)
        return exactly, [f"The policy rounds the costs of {theirs!r}, the constraints of the game are {ours!r}."]
    read = [_read_rule(label, entry) for label, entry in zip(game.constraints, given, strict=True)]
    rules, faults = tuple(rule for rule, _ in read), [fault for _, fault in read if fault]
    for label, rule, values in zip(game.constraints, rules, game.cost_values, strict=True):
        if not faults:
            faults += _check_random(label, rule, values)
    return rules, faults


def _read_rule(label: Label, entry: Any) -> tuple[Rule, str]:
    """Return one constraint's rule, and what is wrong with it."""
    if entry is None:
        return EXACT, ""
    direction = getattr(entry, "direction", None)
    if direction == "ignore":
        return Rule("ignore", Fraction(0), None), ""
    cell: Any = getattr(entry, "cell", None)
    lowest: Any = getattr(entry, "lowest", None)
    place = f"Constraint {label!r}: the policy's rounding has"
    if direction not in ("down", "up"):
        return EXACT, f"{place} the direction {direction!r}, must be 'down', 'up' or 'ignore'."
    if not _rational(cell) or not cell > 0:
        return EXACT, f"{place} a cell of {cell!r}, must be an exact number above 0."
    if lowest is not None and not _rational(lowest):
        return EXACT, f"{place} {lowest!r} as its lowest value, must be an exact number or None."
    return Rule(direction, Fraction(cell), None if lowest is None else Fraction(lowest)), ""


def _rational(x: Any) -> bool:
    return isinstance(x, (int, Fraction)) and not isinstance(x, bool)


def _check_random(label: Label, rule: Rule, values: tuple[Cost, ...]) -> list[str]:
    """Return what keeps random costs from being counted by a rule."""
    random = [v for v in values if isinstance(v, RandomCost)]
    if random and rule.direction == "exact":
        raise InvalidOption(
            f"policy: it counts the costs of constraint {label!r} exactly, but some of them are random, with more values "
            "than can be counted; solve with epsilon=... for a policy that rounds them"
        )
    endless = any(v.lower == -math.inf for v in random)
    if endless and rule.direction in ("down", "up") and rule.lowest is None:
        return [f"Constraint {label!r}: some costs have no lower bound, and the policy's rounding has no lowest value."]
    return []


# -- is the rounding sound for this game ---------------------------------------------------------


def unsound(game: MarkovGame, policy: Any, rules: tuple[Rule, ...]) -> list[str]:
    """Return a sentence for each reason why a policy's rounding does not suit a game."""
    problems: list[str] = []
    for m, (label, rule) in enumerate(zip(game.constraints, rules, strict=True)):
        costs = game.cost_values[m]
        if rule.direction == "ignore":
            most = max([Fraction(0), *map(_top, costs)])
            if over := _first_over(game, m, most, most):
                problems.append(
                    f"Constraint {label!r} is ignored by the policy, but it can bind: costs of {plain(most)} add up to {over}."
                )
        elif rule.lowest is not None and any(_is_cut(v, rule) for v in costs):
            most = max([Fraction(0), *(rule.counted(_top(v)) for v in costs)])
            if over := _first_over(game, m, rule.lowest, most):
                problems.append(
                    f"Constraint {label!r}: costs below {plain(rule.lowest)} count as that much, but from there it can still "
                    f"bind: {over}."
                )
        problems += _counts_otherwise(label, rule, costs, policy.tracker.rounding[m])
    return problems


def _first_over(game: MarkovGame, m: int, first: Fraction, more: Fraction) -> str:
    """Say where costs that add `more` at each time first exceed a budget; empty if nowhere."""
    for t, row in enumerate(game.budgets):
        total, bound = game.spent_at_start[m] + first + t * more, row[m]
        if not isinstance(bound, float) and total > bound:
            return f"{plain(total)} after t={t}, over its budget of {plain(bound)}"
    return ""


def _top(value: Cost) -> Fraction:
    return value.upper if isinstance(value, RandomCost) else value


def _is_cut(value: Cost, rule: Rule) -> bool:
    """Return whether some cost counts as more than its whole cells because of the cut-off."""
    assert rule.lowest is not None
    least = value.lower if isinstance(value, RandomCost) else value
    return isinstance(least, float) or rule.index(least) * rule.cell < rule.lowest


def _counts_otherwise(label: Label, rule: Rule, values: tuple[Cost, ...], entry: Any) -> list[str]:
    """Compare the policy's own way of counting, where it has one, with what its record says."""
    own = getattr(entry, "of", None)
    if not callable(own):
        return []
    some = values[:: max(1, len(values) // _COMPARED)]
    for cost in dict.fromkeys(_top(v) for v in (*some, *values[-1:])):
        try:
            counted = own(cost)
        except Exception as error:  # a judge must not fall over what it judges
            counted = f"{type(error).__name__}: {error}"
        if counted != rule.counted(cost):
            return [
                f"Constraint {label!r}: the policy counts a cost of {plain(cost)} as {counted}, its rounding says "
                f"{plain(rule.counted(cost))}."
            ]
    return []


# -- cells ---------------------------------------------------------------------------------------


def cells(label: Label, cost: Cost, rule: Rule) -> list[Cell]:
    """Return the cells that a cost can fall into, in the order of what they count as.

    Raises:
        TooLarge: there are too many of them.
        InvalidGame: the distribution function is none.
    """
    if not isinstance(cost, RandomCost):
        return [Cell(rule.counted(cost), 1.0, cost)]
    if rule.direction == "ignore":
        return [Cell(Fraction(0), 1.0, cost.upper)]
    if cost.atoms is not None:
        return _listed(cost.atoms, rule)
    first, last = _range(cost, rule)
    if last - first >= _MOST_CELLS:
        raise TooLarge(
            f"constraint {label!r}: a random cost falls into {shown(last - first + 1)} cells of {shown(rule.cell)}, must be at most "
            f"{_MOST_CELLS:,}; solve with a larger epsilon"
        )
    down = rule.direction == "down"
    ends = [(k + 1 if down else k) * rule.cell for k in range(first, last + 1)]  # of each cell
    upto = _distribution(label, cost, ends, strict=down)
    share = np.diff(upto, prepend=0.0)
    return [
        Cell(rule.at_least(k), max(float(p), TINIEST), min(end, cost.upper))
        for k, end, p in zip(range(first, last + 1), ends, share.tolist(), strict=True)
        if p > 0 or _possible(cost, -math.inf if k == first else end - rule.cell, end, down=down)
    ]


def _listed(atoms: Iterable[tuple[Fraction, float]], rule: Rule) -> list[Cell]:
    """Return the cells of a cost that lists its values."""
    found: dict[Fraction, Cell] = {}
    for amount, p in atoms:
        counted = rule.counted(amount)
        other = found.get(counted, Cell(counted, 0.0, amount))
        found[counted] = Cell(counted, max(other.probability + p, TINIEST), max(other.top, amount))
    return [found[counted] for counted in sorted(found)]


def _distribution(label: Label, cost: RandomCost, ends: list[Fraction], *, strict: bool) -> NDArray[np.float64]:
    """Return Pr[cost < x] (strict) or Pr[cost <= x] at each x; it never falls, and ends at 1."""
    single = cost.has_atoms
    inside = [(cost.drawn(min(x, cost.upper)), not strict or x > cost.upper) for x in ends]
    at = np.array([largest_float(x, itself=itself) if single else nearest_float(x) for x, itself in inside])
    if cost.on_integers:
        at = np.floor(at)
    with np.errstate(all="ignore"):
        try:
            found = np.asarray(cost.law.cdf(at), dtype=np.float64).reshape(at.shape)
        except (TypeError, ValueError):  # one number at a time
            found = np.array([float(cost.law.cdf(float(x))) for x in at])
    if np.isnan(found).any():
        raise InvalidGame(f"constraint {label!r}: the cdf of a random cost is not a number at {at[np.isnan(found)][0]}")
    if not abs(found[-1] - 1) <= PROBABILITY_SUM:
        raise InvalidGame(
            f"constraint {label!r}: the cdf of a random cost is {found[-1]:.12g} at its upper bound {plain(cost.upper)}, must be 1"
        )
    for j, x in enumerate(ends):  # at the bounds, whatever the last digits of the function say
        if x > cost.upper or (x == cost.upper and not (strict and single)):
            found[j] = 1.0
        elif x < cost.lower or (x == cost.lower and (strict or not single)):
            found[j] = 0.0
    return np.maximum.accumulate(np.maximum(found, 0.0))


def _range(cost: RandomCost, rule: Rule) -> tuple[int, int]:
    """Return the first and the last cell; the first takes all that is below it."""
    last = rule.index(cost.upper)
    if rule.lowest is None:
        assert isinstance(cost.lower, Fraction)
        return rule.index(cost.lower), last
    cut = math.floor(rule.lowest / rule.cell)
    first = cut if isinstance(cost.lower, float) else max(cut, rule.index(cost.lower))
    return min(first, last), last


def _possible(cost: RandomCost, low: Fraction | float, high: Fraction, *, down: bool) -> bool:
    """Return whether costs between two edges occur where the cdf is too coarse to tell."""
    begin, end = max(low, cost.lower), min(high, cost.upper)
    if not begin <= end:
        return False
    if not cost.has_atoms:
        return _positive(cost, "pdf", _between(cost, begin, end))
    outside = high if down else low  # the edge that belongs to another cell
    bounds = [x for x in (cost.lower, cost.upper) if begin <= x <= end and x != outside and not isinstance(x, float)]
    if not callable(getattr(cost.law, "pmf", None)):
        return bool(bounds) or _positive(cost, "pdf", _between(cost, begin, end))
    whole = [x for x in _whole(cost, begin, end) if x != outside]
    return _positive(cost, "pmf", [*bounds, *whole])


def _between(cost: RandomCost, begin: Fraction | float, end: Fraction) -> list[Fraction]:
    """Return some of the values between two bounds."""
    if isinstance(begin, float):
        return [end - cost.unit * Fraction(2) ** j for j in range(-20, 60)]
    return [begin + (end - begin) * j / 10 for j in range(1, 10)] if begin < end else []


def _whole(cost: RandomCost, begin: Fraction | float, end: Fraction) -> list[Fraction]:
    """Return the largest values between two bounds that a cost drawn in whole numbers can have."""
    last = math.floor(cost.drawn(end))
    first = last - 999 if isinstance(begin, float) else max(last - 999, math.ceil(cost.drawn(begin)))
    return [cost.offset + k * cost.unit for k in range(first, last + 1)]


def _positive(cost: RandomCost, name: str, points: list[Fraction]) -> bool:
    """Return whether the density or mass function (its logarithm, if any) is positive at some
    point.
    """
    at = np.array([nearest_float(cost.drawn(x)) for x in points])
    for function, zero in ((f"log{name}", -math.inf), (name, 0.0)):
        if len(at) and callable(getattr(cost.law, function, None)):
            with np.errstate(all="ignore"):
                return bool((np.asarray(getattr(cost.law, function)(at)) > zero).any())
    return False
