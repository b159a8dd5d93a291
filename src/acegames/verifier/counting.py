"""How a policy counts costs, as its tracker says, and what each cost counts as (spec 5).

    exact    every cost counts as it is
    down     floor(c / cell) cells          up    ceil(c / cell) cells
             both at least `lowest`: whatever is below counts as that much
    ignore   nothing, for a constraint that cannot bind

The costs that count alike are a *cell*. A fixed cost is a cell of its own; a random cost falls into
many, with probabilities from its distribution function: these are part of the game model
(`model/cost_cells`). The rounding is the verifier's own; nothing here runs the policy's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from acegames.errors import InvalidGame, InvalidOption, TooLarge
from acegames.model.arrays import Floats, Ints
from acegames.model.cost_cells import probabilities
from acegames.model.distributions import evaluate
from acegames.model.game import Label, Layer, MarkovGame, exact_costs
from acegames.model.layers import with_fields
from acegames.model.numbers import TINIEST, largest_float, plain
from acegames.model.random_costs import RandomCost
from acegames.numerics import PROBABILITY_SUM
from acegames.verifier.basics import LIMITS, Small, begins, offsets, owners, spans

Cost = Fraction | RandomCost


@dataclass(frozen=True)
class CountingRule:
    """How the costs of one constraint are counted."""

    direction: str  # "exact", "down", "up" or "ignore"
    cell: Fraction
    lowest: Fraction | None

    def index(self, cost: Fraction) -> int:
        """Return the number of whole cells that a cost is rounded to, before the cut-off."""
        return math.floor(cost / self.cell) if self.direction == "down" else math.ceil(cost / self.cell)

    def counted(self, cost: Fraction) -> Fraction:
        """Return what a cost counts as."""
        if self.direction == "exact":
            return cost
        return Fraction(0) if self.direction == "ignore" else self.at_least(self.index(cost) * self.cell)

    def at_least(self, amount: Fraction) -> Fraction:
        """Return what whole cells count as: no less than `lowest`."""
        return amount if self.lowest is None else max(amount, self.lowest)

    def allowance(self, t: int) -> Fraction:
        """Return how much more than counted can have been spent after acting at time t."""
        return (t + 1) * self.cell if self.direction == "down" else Fraction(0)


EXACT = CountingRule("exact", Fraction(0), None)


class CostCell(NamedTuple):
    """Costs that count alike."""

    counted: Fraction
    probability: float  # positive
    top: Fraction  # their largest value, or the limit that they come close to


def read_rules(game: MarkovGame, policy: Any) -> tuple[tuple[CountingRule, ...], list[str]]:
    """Return how a policy counts each constraint, and a sentence for each rule that makes no sense.

    Raises:
        InvalidOption: a policy that rounds some costs counts random ones as they are. (Where it
            rounds none, `Units` says so.)
    """
    tracker = getattr(policy, "tracker", None)
    rounding = getattr(tracker, "rounding", ())
    if not isinstance(rounding, (tuple, list)):
        return (), [f"The policy's rounding is {rounding!r:.60}, must be one record per constraint."]
    exactly = (EXACT,) * len(game.constraints)
    if all(entry is None for entry in rounding):
        return exactly, []
    if tuple(getattr(tracker, "constraints", ())) != game.constraints or len(rounding) != len(game.constraints):
        theirs, ours = list(getattr(tracker, "constraints", ())), list(game.constraints)
        return exactly, [f"The policy rounds the costs of {theirs!r}, the constraints of the game are {ours!r}."]
    read = [_read_rule(label, entry) for label, entry in zip(game.constraints, rounding, strict=True)]
    rules, faults = tuple(rule for rule, _ in read), [fault for _, fault in read if fault]
    for label, rule, values in zip(game.constraints, rules, game.cost_values, strict=True):
        if not faults:
            faults += _check_random(label, rule, values)
    return rules, faults


def _read_rule(label: Label, entry: Any) -> tuple[CountingRule, str]:
    """Return one constraint's rule, and what is wrong with it."""
    if entry is None:
        return EXACT, ""
    direction = getattr(entry, "direction", None)
    if direction == "ignore":
        return CountingRule("ignore", Fraction(0), None), ""
    cell: Any = getattr(entry, "cell", None)
    lowest: Any = getattr(entry, "lowest", None)
    place = f"Constraint {label!r}: the policy's rounding has"
    if direction not in ("down", "up"):
        return EXACT, f"{place} the direction {direction!r}, must be 'down', 'up' or 'ignore'."
    if not _rational(cell) or not cell > 0:
        return EXACT, f"{place} a cell of {cell!r}, must be an exact number above 0."
    if lowest is not None and not _rational(lowest):
        return EXACT, f"{place} {lowest!r} as its lowest value, must be an exact number or None."
    return CountingRule(direction, Fraction(cell), None if lowest is None else Fraction(lowest)), ""


def _rational(x: Any) -> bool:
    return isinstance(x, (int, Fraction)) and not isinstance(x, bool)


def _check_random(label: Label, rule: CountingRule, values: tuple[Cost, ...]) -> list[str]:
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


def unsound(game: MarkovGame, policy: Any, rules: tuple[CountingRule, ...]) -> list[str]:
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


def _is_cut(value: Cost, rule: CountingRule) -> bool:
    """Return whether some cost counts as more than its whole cells because of the cut-off."""
    assert rule.lowest is not None
    least = value.lower if isinstance(value, RandomCost) else value
    return isinstance(least, float) or rule.index(least) * rule.cell < rule.lowest


def _counts_otherwise(label: Label, rule: CountingRule, values: tuple[Cost, ...], entry: Any) -> list[str]:
    """Compare the policy's own way of counting, where it has one, with what its record says."""
    own = getattr(entry, "of", None)
    if not callable(own):
        return []
    some = values[:: max(1, len(values) // LIMITS.compared_costs)]
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


def cells(cost: Cost, rule: CountingRule) -> list[CostCell]:
    """Return the cells that a cost can fall into, in the order of what they count as.

    Raises:
        TooLarge: there are too many of them.
        InvalidGame: the distribution function is none.
    """
    if not isinstance(cost, RandomCost):
        return [CostCell(rule.counted(cost), 1.0, cost)]
    if rule.direction == "ignore":
        return [CostCell(Fraction(0), 1.0, cost.upper)]
    if cost.atoms is None:
        upto = float(evaluate(cost.law.cdf, np.array([largest_float(cost.drawn(cost.upper), itself=True)]))[0])
        if not abs(upto - 1) <= PROBABILITY_SUM:
            bound = plain(cost.upper)
            raise InvalidGame(f"the cdf of a random cost is {upto:.12g} at its upper bound {bound}, must be 1")
    lowest = None if rule.lowest is None else math.floor(rule.lowest / rule.cell) * rule.cell
    tops: dict[Fraction, Fraction] = {}
    for amount, _ in sorted(cost.atoms or ()):
        index = rule.index(amount) * rule.cell
        tops[index if lowest is None else max(index, lowest)] = amount
    further = rule.cell if rule.direction == "down" else Fraction(0)
    return [
        CostCell(rule.at_least(edge), share, tops.get(edge, min(edge + further, cost.upper)))
        for edge, share in probabilities(cost, rule.cell, rule.direction, lowest)
    ]


# -- the game as counted --------------------------------------------------------------------------
# The game as a policy that rounds costs sees it (spec 5, 7).
#
# Each cost is replaced by what it counts as. Outcomes that lead to the same state and count alike
# are one outcome here. What they can truly cost is kept beside it, as the largest cost per
# constraint: totals add up along histories, so the largest total is found constraint by constraint.
# Where every cost counts as it is, the game stays as it is.


class _CellTables(NamedTuple):
    """The cells of one constraint's costs: those of cost code v are ptr[v] : ptr[v+1]."""

    ptr: Ints  # (V+1,)
    counted: Ints  # (C,) codes into `counted_values`
    prob: Floats  # (C,)
    top: Ints  # (C,) codes into `top_values`
    counted_values: tuple[Fraction, ...]  # ascending
    top_values: tuple[Fraction, ...]  # ascending


class TrueCosts(NamedTuple):
    """The outcomes of a layer, cell by cell, before those that count alike became one."""

    top: Ints  # (E, M) codes: the largest true costs
    highest: Ints  # (K, M) which of them costs most, for each outcome as counted and each constraint


@dataclass(frozen=True, eq=False)
class Counted:
    """A game as counted, and what it truly costs."""

    original: MarkovGame
    rules: tuple[CountingRule, ...]  # M
    game: MarkovGame  # costs as they count; the budgets of the original
    promised: MarkovGame  # the largest true cost per constraint; budgets with the allowance added
    fine: tuple[TrueCosts, ...]  # one per layer; empty where every cost counts as it is

    @staticmethod
    def of(game: MarkovGame, rules: tuple[CountingRule, ...]) -> Counted:
        """Count every cost of a game by the rules.

        Raises:
            TooLarge, InvalidGame: random costs cannot be counted.
        """
        if all(rule.direction == "exact" for rule in rules):
            return Counted(game, rules, game, game, ())
        tables = [
            _tables([cells(cost, rule) for cost in values])
            for values, rule in zip(game.cost_values, rules, strict=True)
        ]
        layers, tops, fine = zip(*(_count(layer, tables) for layer in game.layers), strict=True)
        true = tuple(replace(layer, cost=top) for layer, top in zip(layers, tops, strict=True))
        raised = tuple(
            tuple(b if isinstance(b, float) else b + rule.allowance(t) for b, rule in zip(row, rules, strict=True))
            for t, row in enumerate(game.budgets)
        )
        return Counted(
            original=game,
            rules=rules,
            game=with_fields(game, cost_values=tuple(x.counted_values for x in tables), layers=layers),
            promised=with_fields(game, cost_values=tuple(x.top_values for x in tables), layers=true, budgets=raised),
            fine=fine,
        )

    @property
    def exact(self) -> bool:
        """Whether every cost counts as it is."""
        return not self.fine

    def allowances(self) -> list[Fraction]:
        """Return the most by which rounding may exceed each budget, up to the last time that has
        one.
        """
        return [
            max([Fraction(0), *(rule.allowance(t) for t, bound in enumerate(schedule) if not isinstance(bound, float))])
            for rule, schedule in zip(self.rules, zip(*self.original.budgets, strict=True), strict=True)
        ]

    def true_cost(self, t: int, outcome: int, m: int) -> tuple[Fraction, ...]:
        """Return the true cost of such an outcome that is largest for constraint m."""
        at = self.game.layer_at[t]
        codes = self.game.layers[at].cost[outcome]
        if not self.exact:
            codes = self.fine[at].top[self.fine[at].highest[outcome, m]]
        return tuple(values[code] for values, code in zip(exact_costs(self.promised), codes.tolist(), strict=True))


def _tables(cells_of: list[list[CostCell]]) -> _CellTables:
    every = [cell for line in cells_of for cell in line]
    ptr = offsets(np.array([len(line) for line in cells_of], dtype=np.int64))
    counted, counted_values = _codes([cell.counted for cell in every])
    top, top_values = _codes([cell.top for cell in every])
    return _CellTables(ptr, counted, np.array([cell.probability for cell in every]), top, counted_values, top_values)


def _codes(amounts: list[Fraction]) -> tuple[Ints, tuple[Fraction, ...]]:
    """Return the number of each amount among the distinct ones, and these, ascending."""
    values = tuple(sorted(set(amounts)))
    number = {v: k for k, v in enumerate(values)}
    return np.array([number[x] for x in amounts], dtype=np.int64), values


def _count(layer: Layer, tables: list[_CellTables]) -> tuple[Layer, Small, TrueCosts]:
    """Return the layer as counted, the codes of its largest true costs, and its cells."""
    out, prob, counted, top = _by_cell(layer, tables)
    row = owners(layer.out_ptr)[out]
    columns = (row, layer.next_state[out], *counted.T)
    order = np.lexsort(columns[::-1])
    first = begins(*(column[order] for column in columns))
    leaders, last = order[first], np.append(first[1:], len(order)) - 1
    highest = np.column_stack([np.lexsort((column, *columns[::-1]))[last] for column in top.T])
    merged = replace(
        layer,
        out_ptr=offsets(np.bincount(row[leaders], minlength=len(layer.reward))),
        prob=np.maximum(np.add.reduceat(prob[order], first), TINIEST),
        next_state=layer.next_state[out[leaders]],
        cost=counted[leaders].astype(np.int32),
    )
    largest = np.column_stack([column[which] for column, which in zip(top.T, highest.T, strict=True)])
    return merged, largest.astype(np.int32), TrueCosts(top, highest)


def _by_cell(layer: Layer, tables: list[_CellTables]) -> tuple[Ints, Floats, Ints, Ints]:
    """Return each outcome once per combination of cells: number, probability, two codes."""
    out, prob, cells_of = np.arange(len(layer.prob)), layer.prob, list[Ints]()  # of each constraint
    for m, table in enumerate(tables):
        code = layer.cost[out, m]
        count = table.ptr[code + 1] - table.ptr[code]
        if int(count.sum()) > LIMITS.outcomes:
            raise TooLarge(
                f"random costs make {int(count.sum()):,} outcomes of one time step, must be at most {LIMITS.outcomes:,}; "
                "solve with a larger epsilon"
            )
        cell, line = spans(table.ptr[code], table.ptr[code + 1]), np.repeat(np.arange(len(out)), count)
        out, prob = out[line], prob[line] * table.prob[cell]
        cells_of = [*(column[line] for column in cells_of), cell]
    counted = [table.counted[cell] for table, cell in zip(tables, cells_of, strict=True)]
    top = [table.top[cell] for table, cell in zip(tables, cells_of, strict=True)]
    return out, prob, np.column_stack(counted), np.column_stack(top)
