"""Which budgets are feasible: the Pareto frontier of minimal budgets of every (t, state) (spec 2).

    N_H(s) = {nothing needed}
    N_t(s) = minimal elements of
             U_a { join over outcomes (c', s') of (x + c', at least c' - D_t), x in N_{t+1}(s') }

where D_t = B_t - B_ref shifts a schedule against its last finite entry B_ref, and an infinite B_t
asks for nothing. The join takes one x per outcome and the component-wise maximum; every combination
counts. A larger budget is never worse, so the minimal elements say everything. With one constraint
there is one number per (t, s): O(H S A K). With two or more the antichains can grow without bound
(deciding feasibility is NP-hard), so their size is limited.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from acegames.errors import TooLarge
from acegames.model.amounts import LARGEST, common_unit
from acegames.model.game import Layer, MarkovGame, exact_costs, reachable_states
from acegames.model.numbers import Bound
from acegames.model.words import to_digits

Antichain = NDArray[np.int64]  # (k, M)
NOTHING = np.int64(-LARGEST)
"""Stands for minus infinity: no budget is needed."""
MOST_ELEMENTS = 50_000


@dataclass(frozen=True, eq=False)
class _Needs:
    """The antichain of every state of one time: one element for most, `chains` for the others."""

    single: NDArray[np.int64]  # (S, M)
    chains: dict[int, Antichain]
    reached: NDArray[np.bool_]  # (S,)

    def of(self, state: int) -> Antichain:
        return self.chains.get(state, self.single[state : state + 1])


def _step_back(
    table: Layer, cost: NDArray[np.int64], at_least: NDArray[np.int64], after: _Needs, reached: NDArray[np.bool_]
) -> _Needs:
    """One step of the recursion: by arrays for antichains of one element, one by one for others."""
    need = np.maximum(at_least, _shift(after.single[table.next_state], cost))
    joined = np.maximum.reduceat(need, table.out_ptr[:-1], axis=0)  # (R, M)
    acting = np.flatnonzero(np.diff(table.row_ptr))
    lowest = np.minimum.reduceat(joined, table.row_ptr[acting], axis=0)
    single = np.full_like(after.single, NOTHING)
    single[acting] = lowest
    owner = np.repeat(np.arange(len(single)), np.diff(table.row_ptr))
    reaches_chain = np.isin(table.next_state, list(after.chains))
    plural = np.logical_or.reduceat(reaches_chain, table.out_ptr[:-1])  # (R,)
    attained = (joined == single[owner]).all(axis=1) & ~plural
    settled = np.zeros(len(single), dtype=bool)
    settled[owner[attained]] = True
    settled[owner[plural]] = False
    chains = {}
    for s in map(int, np.flatnonzero(reached & ~settled)):
        choices = []
        for r in table.rows(s):
            outs = table.outcomes(r)
            join = joined[r : r + 1]
            if plural[r]:
                join = at_least[outs].max(axis=0, keepdims=True)
                for nxt, c in zip(table.next_state[outs].tolist(), cost[outs], strict=True):
                    join = _join(join, _shift(after.of(nxt), c))
            choices.append(join)
        found = minimal_elements(np.concatenate(choices))
        if len(found) == 1:
            single[s] = found[0]
        else:
            chains[s] = found
    return _Needs(single, chains, reached)


class Frontier:
    """Minimal budgets of every (t, state) that some legal play reaches.

    `reference` holds the last finite entry of each budget (0 if there is none); a minimal budget
    replaces that entry. Between two whole multiples of `units` nothing changes.
    """

    def __init__(self, game: MarkovGame) -> None:
        self._game, self._costs = game, exact_costs(game)
        self.reference = [last_finite(column) for column in zip(*game.budgets, strict=True)]
        self.units = [
            common_unit([*values, *(b - ref for b in column if not isinstance(b, float))])
            for values, column, ref in zip(self._costs, zip(*game.budgets, strict=True), self.reference, strict=True)
        ]
        self._need = self._backward()

    def at_root(self) -> list[tuple[Bound, ...]]:
        """Minimal budgets of the whole game, enough for every initial state; inf without bounds."""
        need = self._nothing()
        for s, _ in self._game.initial:
            need = _join(need, self._need[0].of(s))
        return self._budgets(need, math.inf)

    def at(self, t: int, state: int) -> list[tuple[Bound, ...]]:
        """Minimal remaining budgets before acting in `state` at `t`; -inf if no bound follows.

        KeyError if the state cannot occur then.
        """
        if not self._need[t].reached[state]:
            raise KeyError(state)
        return self._budgets(self._need[t].of(state), -math.inf)

    def _budgets(self, need: Antichain, nothing: float) -> list[tuple[Bound, ...]]:
        order = np.lexsort(need.T[::-1]) if need.shape[1] else np.arange(len(need))
        return [
            tuple(nothing if x == NOTHING else int(x) * u for x, u in zip(row, self.units, strict=True))
            for row in need[order].tolist()
        ]

    def _nothing(self) -> Antichain:
        return np.full((1, len(self.units)), NOTHING)

    def _backward(self) -> list[_Needs]:
        game = self._game
        costs = [self._whole(m, values) for m, values in enumerate(self._costs)]
        reach = reachable_states(game)
        needs = [_Needs(np.full((len(game.states), len(self.units)), NOTHING), {}, reach[-1])]
        for t in reversed(range(game.horizon)):
            table = game.layer(t)
            cost = np.column_stack(
                [c[table.cost[:, m]] for m, c in enumerate(costs)] or [np.zeros((len(table.prob), 0), int)]
            )
            needs.append(_step_back(table, cost, self._at_least(t, cost), needs[-1], reach[t]))
        return needs[::-1]

    def _whole(self, m: int, values: tuple[Fraction, ...]) -> NDArray[np.int64]:
        whole = [int(v / self.units[m]) for v in values]
        extent = self._game.horizon * max(map(abs, whole)) + max(
            [abs(int((b - self.reference[m]) / self.units[m])) for b in self._finite(m)] or [0]
        )
        if extent >= LARGEST:
            raise TooLarge(
                f"constraint {self._game.constraints[m]!r}: costs and budgets together need the unit {to_digits(self.units[m])}, of which "
                f"{to_digits(extent)} do not fit into 64-bit integers; solve approximately, with costs rounded to a coarser unit"
            )
        return np.array(whole, dtype=np.int64)

    def _finite(self, m: int) -> list[Fraction]:
        column = [row[m] for row in self._game.budgets]
        return [b for b in column if isinstance(b, Fraction)]

    def _at_least(self, t: int, cost: NDArray[np.int64]) -> NDArray[np.int64]:
        """What each outcome needs at once: c' - D_t, or nothing if the budget is infinite."""
        out = np.full_like(cost, NOTHING)
        for m, (bound, ref, unit) in enumerate(zip(self._game.budgets[t], self.reference, self.units, strict=True)):
            if isinstance(bound, Fraction):
                out[:, m] = cost[:, m] - int((bound - ref) / unit)
        return out


def last_finite(column: tuple[Bound, ...]) -> Fraction:
    """The last finite entry of a schedule."""
    return next((b for b in reversed(column) if isinstance(b, Fraction)), Fraction(0))


def _shift(need: Antichain, cost: NDArray[np.int64]) -> Antichain:
    return np.where(need == NOTHING, NOTHING, need + cost)


def _join(left: Antichain, right: Antichain) -> Antichain:
    if len(left) * len(right) > MOST_ELEMENTS * 100:
        raise TooLarge(
            f"the frontier of minimal budgets has too many elements ({len(left)} x {len(right)} to combine); fewer constraints "
            "or coarser costs would help. Whether the game's own budget is feasible can still be decided"
        )
    both = np.maximum(left[:, None, :], right[None, :, :])
    return minimal_elements(both.reshape(len(left) * len(right), left.shape[1]))


def minimal_elements(points: Antichain) -> Antichain:
    """Minimal elements, each once, in lexicographic order."""
    if len(points) == 1 or points.shape[1] == 0:
        return points[:1]
    if points.shape[1] == 1:
        return np.minimum.reduce(points, axis=0, keepdims=True)
    points = points[np.lexsort(points.T[::-1])]
    if points.shape[1] == 2:  # sorted by the first: keep what is lower in the second than everything before
        lowest = np.minimum.accumulate(points[:, 1])
        stairs: Antichain = points[np.concatenate([[True], points[1:, 1] < lowest[:-1]])]
        return stairs
    kept: list[NDArray[np.int64]] = []
    while len(points):  # the first in lexicographic order is minimal; drop all that it beats
        kept.append(points[0])
        points = points[~(points >= points[0]).all(axis=1)]
        if len(kept) > MOST_ELEMENTS:
            raise TooLarge(f"the frontier of minimal budgets has more than {MOST_ELEMENTS} elements")
    return np.array(kept)
