"""The subgames that some feasible policy reaches, FS, and what may be done in each, FA (spec 2).

Three passes over layers of pairs (state, spent):

    forward   from the initial pairs through the joint actions all of whose outcomes keep the
              budgets, now and, constraint by constraint, to the end (`Ceilings`);
    backward  an action is safe when all its successors are alive, a pair when some action is safe;
    forward   again, through safe actions only: a pair that is alive but is reached only by unsafe
              actions is no subgame of any feasible policy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from acegames.model.game import MarkovGame
from acegames.verifier.units import Spent, Units

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Stage:
    """The pairs of one time. An *entry* is a joint action of a pair, an *edge* an outcome of it."""

    state: Ints  # (P,)
    spent: Ints  # (P, M) in units; Python ints in an object array where int64 is too small
    first: Ints  # (P+1,) entries of pair p are first[p] : first[p+1], in the order of the layer's rows
    row: Ints  # (E,) row of the layer
    safe: Bools  # (E,) True: the joint action is in FA
    edge_first: Ints  # (number of safe entries,) where the edges of each safe entry begin
    edge_next: Ints  # (L,) pair of the next stage; all 0 after the last
    edge_out: Ints  # (L,) outcome of the layer

    def pair(self, p: int) -> tuple[int, Spent]:
        """State and spending of one pair."""
        return int(self.state[p]), tuple(self.spent[p].tolist())

    def edge_counts(self) -> Ints:
        """Number of edges of each safe entry."""
        return np.diff(self.edge_first, append=len(self.edge_next))


def feasible_stages(game: MarkovGame, units: Units, limit: float = math.inf) -> list[Stage] | None:
    """Return FS and FA for t = 0 .. H-1; an empty list when no policy is feasible from every start.

    None when the first pass meets more than `limit` entries.
    """
    stages = _within_budget(game, units, limit)
    if stages is None:
        return None
    alive = np.ones(1, dtype=bool)
    for t in reversed(range(game.horizon)):
        stages[t] = _drop_unsafe(stages[t], alive)
        alive = np.logical_or.reduceat(stages[t].safe, stages[t].first[:-1])
    if not alive.all():
        return []
    return _reached(stages)


def _within_budget(game: MarkovGame, units: Units, limit: float) -> list[Stage] | None:
    """First pass: `safe` says that no outcome breaks a budget now, or a single one later."""
    ceilings = Ceilings(game, units)
    costs = [units.cost_table(layer) for layer in game.layers]
    state = np.array([s for s, _ in game.initial], dtype=np.int64)
    spent: Ints = np.zeros((len(state), len(game.constraints)), dtype=units.dtype)
    stages: list[Stage] = []
    for t in range(game.horizon):
        layer = game.layer(t)
        first = offsets(layer.row_ptr[state + 1] - layer.row_ptr[state])
        limit -= int(first[-1])
        if limit < 0:
            return None
        row = spans(layer.row_ptr[state], layer.row_ptr[state + 1])
        pair = np.repeat(np.arange(len(state)), np.diff(first))
        out = spans(layer.out_ptr[row], layer.out_ptr[row + 1])
        count = layer.out_ptr[row + 1] - layer.out_ptr[row]
        total = spent[np.repeat(pair, count)] + costs[game.layer_at[t]][out]
        kept = units.keeps(total, t) & (total <= ceilings.at[t + 1][layer.next_state[out]]).all(axis=1)
        safe = np.logical_and.reduceat(kept, offsets(count)[:-1]) if len(row) else np.zeros(0, dtype=bool)
        on = np.repeat(safe, count)
        out, total = out[on], total[on]
        following, chosen = number_pairs(layer.next_state[out].astype(np.int64), total)
        last = t == game.horizon - 1
        edge_next = np.zeros_like(following) if last else following
        stages.append(Stage(state, spent, first, row, safe, offsets(count[safe])[:-1], edge_next, out))
        state, spent = layer.next_state[out][chosen].astype(np.int64), total[chosen]
    return stages


def _drop_unsafe(stage: Stage, alive: Bools) -> Stage:
    """Second pass, one stage: leave the entries all of whose successors are alive."""
    if not stage.safe.any():
        return stage
    good = np.logical_and.reduceat(alive[stage.edge_next], stage.edge_first)
    safe = stage.safe.copy()
    safe[stage.safe] = good
    count = stage.edge_counts()
    on = np.repeat(good, count)
    edges = {"edge_first": offsets(count[good])[:-1], "edge_next": stage.edge_next[on], "edge_out": stage.edge_out[on]}
    return replace(stage, safe=safe, **edges)


def _reached(stages: list[Stage]) -> list[Stage]:
    """Third pass: leave the pairs that safe entries lead to, and number them anew."""
    kept = []
    here = np.ones(len(stages[0].state), dtype=bool)
    for t, stage in enumerate(stages):
        entry_on = np.repeat(here, np.diff(stage.first))
        count = stage.edge_counts()
        safe_on = entry_on[stage.safe]
        edge_on = np.repeat(safe_on, count)
        following = stage.edge_next[edge_on]
        there = np.zeros(len(stages[t + 1].state) if t + 1 < len(stages) else 1, dtype=bool)
        there[following] = True
        kept.append(
            Stage(
                state=stage.state[here],
                spent=stage.spent[here],
                first=offsets(np.diff(stage.first)[here]),
                row=stage.row[entry_on],
                safe=stage.safe[entry_on],
                edge_first=offsets(count[safe_on])[:-1],
                edge_next=(np.cumsum(there) - 1)[following],
                edge_out=stage.edge_out[edge_on],
            )
        )
        here = there
    return kept


class Ceilings:
    """How much may have been spent if each constraint, taken alone, is still to be kept (spec 6).

        ceiling_H(s) = no end
        ceiling_t(s) = max over rows, min over outcomes (c', s') of min(B_t, ceiling_{t+1}(s')) - c'

    Whoever has spent more than that of a single constraint must break its budget later, whatever is
    played. Without this cut a budget that holds only at the end would leave every running total to
    be looked at.
    """

    def __init__(self, game: MarkovGame, units: Units) -> None:
        self._game, self._units = game, units
        self._costs = [units.cost_table(layer) for layer in game.layers]
        self.beyond = units.largest * (game.horizon + 1)  # no total comes here
        self.at: list[Ints] = [np.full((len(game.states), len(game.constraints)), self.beyond, dtype=units.dtype)]
        for t in reversed(range(game.horizon)):
            self.at.append(self._before(t, self.rows(t, self.at[-1])))
        self.at.reverse()

    def rows(self, t: int, after: Ints | None = None) -> Ints:
        """The most that may have been spent before each row at time t, (R, M)."""
        layer = self._game.layer(t)
        limit = np.minimum(self.bound(t), self.at[t + 1] if after is None else after)
        room = limit[layer.next_state] - self._costs[self._game.layer_at[t]]
        return np.maximum(np.minimum.reduceat(room, layer.out_ptr[:-1], axis=0), -self.beyond - 1)

    def bound(self, t: int) -> Ints:
        """The budgets at time t, (M,), cut to what can be spent at all."""
        cut = [self.beyond if b is None else max(-self.beyond - 1, min(self.beyond, b)) for b in self._units.bounds[t]]
        return np.array(cut, dtype=self._units.dtype)

    def _before(self, t: int, rows: Ints) -> Ints:
        """The ceilings at time t; as low as can be for states that cannot act."""
        layer = self._game.layer(t)
        found = np.full_like(self.at[0], -self.beyond - 1)
        acting = np.flatnonzero(np.diff(layer.row_ptr))
        best = np.maximum.reduceat(rows, layer.row_ptr[acting], axis=0)
        found[acting] = np.minimum(best, self.beyond)
        return found


def spans(start: Ints, stop: Ints) -> Ints:
    """Return the numbers start[0] .. stop[0]-1, then start[1] .. stop[1]-1, and so on."""
    count = stop - start
    return np.arange(int(count.sum())) + np.repeat(start - offsets(count)[:-1], count)


def offsets(count: Ints) -> Ints:
    """Return where each of consecutive blocks begins, and where the last one ends."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(count, dtype=np.int64)])


def begins(*columns: NDArray[np.integer]) -> Ints:
    """Return where each run of equal lines begins."""
    new = np.ones(len(columns[0]), dtype=bool)
    new[1:] = np.logical_or.reduce([c[1:] != c[:-1] for c in columns])
    return np.flatnonzero(new)


def number_pairs(state: Ints, spent: Ints) -> tuple[Ints, Ints]:
    """Number equal (state, spent) alike; return each line's number, and one line per number."""
    number = np.unique(state, return_inverse=True)[1]
    for column in spent.T:
        values, code = np.unique(column, return_inverse=True)
        number = np.unique(number * len(values) + code, return_inverse=True)[1]
    _, chosen = np.unique(number, return_index=True)
    return number.astype(np.int64), chosen.astype(np.int64)
