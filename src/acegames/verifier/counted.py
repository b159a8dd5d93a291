"""The game as a policy that rounds costs sees it (spec 5, 7).

Each cost is replaced by what it counts as. Outcomes that lead to the same state and count alike are
one outcome here. What they can truly cost is kept beside it, as the largest cost per constraint:
totals add up along histories, so the largest total is found constraint by constraint. Where every
cost counts as it is, the game stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from acegames.errors import TooLarge
from acegames.model.game import Layer, MarkovGame, exact_costs
from acegames.model.numbers import TINIEST
from acegames.model.record import with_fields
from acegames.verifier.arrays import Floats, Ints, Small, begins, offsets, owners, spans
from acegames.verifier.rounding import Cell, Rule, cells

_MOST_OUTCOMES = 2**25
"""Outcomes of one time at most: some gigabytes."""


class _Tables(NamedTuple):
    """The cells of one constraint's costs: those of cost code v are ptr[v] : ptr[v+1]."""

    ptr: Ints  # (V+1,)
    counted: Ints  # (C,) codes into `counted_values`
    prob: Floats  # (C,)
    top: Ints  # (C,) codes into `top_values`
    counted_values: tuple[Fraction, ...]  # ascending
    top_values: tuple[Fraction, ...]  # ascending


class Fine(NamedTuple):
    """The outcomes of a layer, cell by cell, before those that count alike became one."""

    top: Ints  # (E, M) codes: the largest true costs
    highest: Ints  # (K, M) which of them costs most, for each outcome as counted and each constraint


@dataclass(frozen=True, eq=False)
class Counted:
    """A game as counted, and what it truly costs."""

    original: MarkovGame
    rules: tuple[Rule, ...]  # M
    game: MarkovGame  # costs as they count; the budgets of the original
    promised: MarkovGame  # the largest true cost per constraint; budgets with the allowance added
    fine: tuple[Fine, ...]  # one per layer; empty where every cost counts as it is

    @staticmethod
    def of(game: MarkovGame, rules: tuple[Rule, ...]) -> Counted:
        """Count every cost of a game by the rules.

        Raises:
            TooLarge, InvalidGame: random costs cannot be counted.
        """
        if all(rule.direction == "exact" for rule in rules):
            return Counted(game, rules, game, game, ())
        tables = [
            _tables([cells(label, cost, rule) for cost in values])
            for label, values, rule in zip(game.constraints, game.cost_values, rules, strict=True)
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
        """Return a true cost that such an outcome can have, as large as possible for constraint m."""
        at = self.game.layer_at[t]
        codes = self.game.layers[at].cost[outcome]
        if not self.exact:
            codes = self.fine[at].top[self.fine[at].highest[outcome, m]]
        return tuple(values[code] for values, code in zip(exact_costs(self.promised), codes.tolist(), strict=True))


def _tables(found: list[list[Cell]]) -> _Tables:
    every = [cell for line in found for cell in line]
    ptr = offsets(np.array([len(line) for line in found], dtype=np.int64))
    counted, counted_values = _codes([cell.counted for cell in every])
    top, top_values = _codes([cell.top for cell in every])
    return _Tables(ptr, counted, np.array([cell.probability for cell in every]), top, counted_values, top_values)


def _codes(amounts: list[Fraction]) -> tuple[Ints, tuple[Fraction, ...]]:
    """Return the number of each amount among the distinct ones, and these, ascending."""
    values = tuple(sorted(set(amounts)))
    number = {v: k for k, v in enumerate(values)}
    return np.array([number[x] for x in amounts], dtype=np.int64), values


def _count(layer: Layer, tables: list[_Tables]) -> tuple[Layer, Small, Fine]:
    """Return the layer as counted, the codes of its largest true costs, and its cells."""
    out, prob, counted, top = _by_cell(layer, tables)
    row = owners(layer.out_ptr)[out]
    columns = (row, layer.next_state[out], *counted.T)
    order = np.lexsort(columns[::-1])
    first = begins(*(column[order] for column in columns))
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.repeat(np.arange(len(first)), np.diff(first, append=len(order)))
    kept = order[first]
    highest = np.column_stack([_largest(group, column, len(kept)) for column in top.T])
    merged = replace(
        layer,
        out_ptr=offsets(np.bincount(row[kept], minlength=len(layer.reward))),
        prob=np.maximum(np.add.reduceat(prob[order], first), TINIEST),
        next_state=layer.next_state[out[kept]],
        cost=counted[kept].astype(np.int32),
    )
    largest = np.column_stack([column[which] for column, which in zip(top.T, highest.T, strict=True)])
    return merged, largest.astype(np.int32), Fine(top, highest)


def _by_cell(layer: Layer, tables: list[_Tables]) -> tuple[Ints, Floats, Ints, Ints]:
    """Return each outcome once per combination of cells: number, probability, two codes."""
    out, prob = np.arange(len(layer.prob)), layer.prob
    counted: list[Ints] = []
    top: list[Ints] = []
    for m, table in enumerate(tables):
        code = layer.cost[out, m]
        count = table.ptr[code + 1] - table.ptr[code]
        if int(count.sum()) > _MOST_OUTCOMES:
            raise TooLarge(
                f"random costs make {int(count.sum()):,} outcomes of one time step, must be at most {_MOST_OUTCOMES:,}; "
                "solve with a larger epsilon"
            )
        cell, line = spans(table.ptr[code], table.ptr[code + 1]), np.repeat(np.arange(len(out)), count)
        out, prob = out[line], prob[line] * table.prob[cell]
        counted = [*(column[line] for column in counted), table.counted[cell]]
        top = [*(column[line] for column in top), table.top[cell]]
    return out, prob, np.column_stack(counted), np.column_stack(top)


def _largest(group: Ints, value: Ints, groups: int) -> Ints:
    """Return which line of each group has the largest value."""
    order = np.lexsort((value, group))
    last = np.searchsorted(group[order], np.arange(groups), "right") - 1
    return order[last]
