"""Algorithm 4, step 1: round costs to whole numbers of cells, so that few totals remain (spec 5).

With H steps and cells of epsilon / H the true total exceeds the rounded one by less than epsilon.
A game that is infeasible with costs rounded down is infeasible with the true costs, and every
deviation that is safe with the true costs is safe there, so an equilibrium of the rounded game
deters it. Rounded up, the true total never exceeds the rounded one: a policy that keeps the budgets
there keeps them with the true costs.

A reservoir (spec 11) follows max(spent + cost, 0), which never widens a difference, so the same
bounds hold. It begins with what is truly missing, and cells are chosen so that few totals remain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from acegames.errors import InvalidOption, TooLarge
from acegames.model.arrays import Floats, Ints, owners, pointers, spans
from acegames.model.assemble import RawLayer, rebuilt
from acegames.model.budgets import negated, own_names
from acegames.model.checks import check_choice, check_flag, check_known, counted, read_at
from acegames.model.cost_cells import probabilities
from acegames.model.game import Layer, MarkovGame, check_game
from acegames.model.numbers import LARGEST, TINIEST, common_unit, exact, is_scalar, plain
from acegames.model.random_costs import Cost, RandomCost
from acegames.model.user_functions import public
from acegames.model.words import called, to_digits
from acegames.system.display import Shown

MOST_OUTCOMES = 3e7  # of one time after random costs were spread over cells: about two gigabytes


@dataclass(frozen=True)
class Rounding:
    """How the costs of one constraint count: as multiples of `cell`, at least `lowest`; or not.

    `direction` is "down", "up", or "ignore" for a constraint that cannot bind: its costs count as
    zero.
    """

    cell: Fraction
    direction: str
    lowest: Fraction | None = None  # a multiple of the cell; below it costs make no difference any more

    def __str__(self) -> str:
        if self.direction == "ignore":
            return "not counted"
        return f"rounded {self.direction} to multiples of {to_digits(self.cell, 6)}"

    def of(self, cost: Fraction) -> Fraction:
        """Return the rounded cost."""
        if self.direction == "ignore":
            return Fraction(0)
        whole = math.floor(cost / self.cell) if self.direction == "down" else math.ceil(cost / self.cell)
        counted = whole * self.cell
        return counted if self.lowest is None else max(counted, self.lowest)


@dataclass(frozen=True, eq=False, repr=False)
class Rounded(Shown):
    """A game with rounded costs: `game`, which exact methods can take, and the `original`."""

    original: MarkovGame
    game: MarkovGame
    rounding: tuple[Rounding | None, ...]  # M, None where costs are as they were

    def __str__(self) -> str:
        each = zip(map(called, self.original.constraints), self.rounding, strict=True)
        said = "; ".join(f"{name} {'as they are' if rule is None else rule}" for name, rule in each)
        return f"Costs: {said}.\n{self.original}"


@public("round_costs")
def round_costs(
    game: MarkovGame, epsilon: Any, *, relative: bool = False, rounding: str = "down", any_budget: bool = False
) -> Rounded:
    """Round the costs of a game so that budgets are kept up to epsilon.

    Args:
        game: the game; its costs may be of high precision, or drawn from distributions.
        epsilon: how far over its budget a constraint may go with costs rounded down: one number for
            all, one per constraint, or {constraint: number}. Zero leaves costs as they are.
        relative: whether epsilon is a share of the budget's size instead of an amount; of a
            reservoir, of its capacity less the reserve. (A budget of zero leaves its constraint
            unrounded.)
        rounding: "down", or "up" for budgets that are never exceeded at all.
        any_budget: whether the result also serves budgets smaller than the game's own. By default a
            constraint that cannot bind is not counted, and very low costs are cut off where it
            cannot bind any more; with smaller budgets it might. (Costs without a lower bound are
            always cut off, with a view to the smallest budget that could be kept.)

    Raises:
        InvalidOption: naming the constraint and the rule.
    """
    check_game(game)
    check_choice("rounding", rounding, ("down", "up"))
    for what, flag in (("relative", relative), ("any_budget", any_budget)):
        check_flag(what, flag)
    wanted = _per_constraint(game, epsilon)
    rules = tuple(_rule(game, m, e, relative, rounding, any_budget) for m, e in enumerate(wanted))
    return Rounded(game, rounded_by(game, rules), rules)


def _per_constraint(game: MarkovGame, epsilon: Any) -> list[Fraction]:
    """Return one exact epsilon per constraint."""
    labels = game.constraints
    rule = (lambda x: x >= 0), "a number of at least 0"
    if isinstance(epsilon, Mapping):
        check_known("constraint", epsilon, labels, "epsilon: ")
        each = {negated(label): e for label, e in epsilon.items()} | dict(epsilon)  # one serves both sides of `between`
        for label in labels:
            if label not in each:
                raise InvalidOption(f"epsilon: no entry for the constraint {label!r}; 0 leaves its costs as they are")
        entries = [each[c] for c in labels]
    elif isinstance(epsilon, str) or is_scalar(epsilon):
        entries = [read_number("epsilon", epsilon, *rule)] * len(labels)
    else:
        entries = list(epsilon)
        if len(entries) == len(own_names(labels)) < len(labels):
            return _per_constraint(game, dict(zip(own_names(labels), entries, strict=True)))
        if len(entries) != len(labels):
            raise InvalidOption(f"epsilon: has {counted(len(entries), 'entry')}, the constraints are {list(labels)!r}")
    return [read_number(f"epsilon of {label!r}", e, *rule) for label, e in zip(labels, entries, strict=True)]


def read_number(what: str, value: Any, allowed: Callable[[Fraction], bool], rule: str) -> Fraction:
    """Read an exact number; InvalidOption says what it must be."""
    amount: Fraction = read_at(what, exact, value, f"; must be {rule}", InvalidOption)
    if not allowed(amount) or isinstance(value, (bool, np.bool_)):
        raise InvalidOption(f"{what}: got {value}, must be {rule}")
    return amount


def upper(cost: Cost) -> Fraction:
    """Return the largest amount that a cost can be."""
    return cost.upper if isinstance(cost, RandomCost) else cost


def _rule(
    game: MarkovGame, m: int, epsilon: Fraction, relative: bool, direction: str, any_budget: bool
) -> Rounding | None:
    """Return how the costs of one constraint are counted; None: as they are."""
    costs, horizon, start = game.cost_values[m], game.horizon, game.spent_at_start[m]
    finite = [(t, b) for t, row in enumerate(game.budgets) if not isinstance(b := row[m], float)]
    smallest = min((b for _, b in finite), default=Fraction(0))
    largest = max([Fraction(0), *map(upper, costs)])
    if not finite or (start + horizon * largest <= smallest and not any_budget):
        return Rounding(Fraction(1), "ignore")
    # the largest cell whose error stays within epsilon at every finite budget
    cell = min((epsilon * abs(b) if relative else epsilon) / (t + 1) for t, b in finite)
    numbers = [c for c in costs if not isinstance(c, RandomCost)]
    drawn = len(numbers) < len(costs)
    if cell == 0:
        if drawn:
            raise InvalidOption(
                f"epsilon: leaves the costs of {game.constraints[m]!r} unrounded, but some are given by a distribution and must be; "
                "give this constraint an epsilon of its own that is an amount above zero (relative=False)"
            )
        return None
    if not drawn:
        unit = whole = Fraction(0)
        with suppress(TooLarge):  # finer than any cell
            unit, whole = common_unit(numbers), common_unit([*numbers, start])
        if unit >= cell and start + horizon * max(map(abs, numbers)) < LARGEST * whole:
            return None  # as coarse as that already
    cell = _fitting(cell, start)
    counted = Rounding(cell, direction).of(largest)
    least = min(c.lower if isinstance(c, RandomCost) else c for c in costs)
    if any_budget and least != -math.inf:
        return Rounding(cell, direction)
    # no budget below the horizon times the cheapest cost can be kept
    cheapest = min(map(upper, costs))
    tightest = min(smallest, horizon * cheapest, Fraction(0)) if any_budget else smallest
    reservoir = game.reservoirs[m]
    if reservoir is not None:  # from any level this fills it, or leaves the reserve and all that can still be drained
        tightest = smallest - reservoir.capacity
    # what is cut off must not count as a cost
    lowest = min(0, math.floor((tightest - horizon * counted) / cell)) * cell
    return Rounding(cell, direction, lowest if least < lowest else None)


def _fitting(cell: Fraction, start: Fraction) -> Fraction:
    """Return the largest cell of at most this size that divides what is spent at the beginning.

    Where that is less than a cell: the largest of which it is a whole part. Then totals are
    multiples of the cell, or these and what was spent at the beginning: at most twice as many.
    """
    if start == 0:
        return cell
    return start / math.ceil(start / cell) if start >= cell else start * math.floor(cell / start)


_Cells = tuple[Ints, Floats]
"""Pointers from each old cost code to its new ones, and the probabilities of these."""


def rounded_by(game: MarkovGame, rules: tuple[Rounding | None, ...]) -> MarkovGame:
    """Return the game with every cost as the rules count it."""
    values: list[list[Fraction]] = []
    cells: list[_Cells] = []
    for costs, rule in zip(game.cost_values, rules, strict=True):
        entries = [_counted(c, rule) for c in costs]
        values.append([value for entry in entries for value, _ in entry])
        prob = np.array([p for entry in entries for _, p in entry], dtype=np.float64)
        cells.append((pointers([len(entry) for entry in entries]), prob))
    raw = [_expanded(layer, cells, times) for layer, times in zip(game.layers, game.times, strict=True)]
    return rebuilt(game, raw, values, horizon=game.horizon)


def _counted(cost: Cost, rule: Rounding | None) -> list[tuple[Fraction, float]]:
    """Return the rounded values of a cost, with probabilities."""
    if not isinstance(cost, RandomCost):
        return [(cost if rule is None else rule.of(cost), 1.0)]
    assert rule is not None
    return probabilities(cost, rule.cell, rule.direction, rule.lowest)


def _expanded(layer: Layer, cells: list[_Cells], times: tuple[int, ...]) -> RawLayer:
    """Return a layer whose outcomes are split over the cells of their random costs.

    It is there to be solved, so that of what outcomes pay the mean is kept.
    """
    combinations = np.ones(len(layer.prob))
    for m, (ptr, _) in enumerate(cells):
        combinations *= np.diff(ptr)[layer.cost[:, m]]
    if combinations.sum() > MOST_OUTCOMES:
        raise TooLarge(
            f"rounding: the cells of random costs combine to {combinations.sum():.3g} outcomes at t={times[0]}, more than "
            f"{MOST_OUTCOMES:.0e}; choose a larger epsilon, or fewer random costs in one outcome"
        )
    outcome, prob = np.arange(len(layer.prob)), layer.prob
    cost = np.empty((len(outcome), 0), dtype=np.int64)
    for m, (ptr, shares) in enumerate(cells):
        code = layer.cost[outcome, m]
        new, each = spans(ptr[code], ptr[code + 1])
        again = owners(each)
        outcome, cost = outcome[again], np.column_stack([cost[again], new])
        prob = np.maximum(prob[again] * shares[new], TINIEST)  # what is possible stays possible
    raw = RawLayer.of(replace(layer, payments=None), times)
    return replace(raw, out_row=raw.out_row[outcome], prob=prob, next_state=layer.next_state[outcome], cost=cost)


# The options of every function that may round costs.


@dataclass(frozen=True)
class RoundingOptions:
    """How far budgets may be exceeded: epsilon, relative and rounding, as every function has them.

    One rule says which rounding None means. Where an equilibrium is computed (`solve`, `estimate`,
    `budget_curve`) costs are rounded down: every deviation that is safe with the true costs is
    deterred, and an infeasible verdict holds for the true costs. Where safety is promised
    (`Shield`) they are rounded up: no true budget is ever exceeded.
    """

    epsilon: Any = None
    relative: bool = False
    rounding: str | None = None
    default: str = "down"  # the rounding that None means

    @property
    def direction(self) -> str:
        """Which way costs are rounded."""
        return self.default if self.rounding is None else self.rounding

    def rounded(self, game: MarkovGame, *, any_budget: bool = False) -> Rounded | None:
        """Return the game with rounded costs; None without an epsilon.

        Games from `discount` have an epsilon of their own.
        """
        epsilon, direction = self.epsilon, self.direction
        if epsilon is None and game.tails is not None:
            if self.relative:
                raise InvalidOption(
                    "relative: the epsilon of a discounted game is an amount; give epsilon= as well to use a relative one"
                )
            epsilon = game.tails.shares
        if epsilon is None:
            if check_flag("relative", self.relative) or not isinstance(direction, str) or direction != self.default:
                raise InvalidOption("relative and rounding say how costs are rounded; give epsilon too")
            return None
        return round_costs(game, epsilon, relative=self.relative, rounding=direction, any_budget=any_budget)

    def count(self, game: MarkovGame) -> Rounded:
        """Return the game as costs are counted; where all are exact, the game itself."""
        answer = self.rounded(game)
        return Rounded(game, game, ()) if answer is None or not any(answer.rounding) else answer

    def in_words(self, game: MarkovGame) -> str:
        """Return the epsilon in words; empty where the answer is to be exact."""
        epsilon = self.epsilon
        if epsilon is None and game.tails is not None:
            return f"epsilon {plain(game.tails.epsilon)} in all"
        if epsilon is None or (is_scalar(epsilon) and not epsilon):
            return ""
        if isinstance(epsilon, Mapping):
            shown = ", ".join(f"{c} {plain(exact(e))}" for c, e in epsilon.items())
        else:
            shown = ", ".join(str(plain(exact(e))) for e in ([epsilon] if is_scalar(epsilon) else epsilon))
        return f"epsilon {shown}" + (" of each budget" if self.relative else "")
