"""What can be done in situations: which legal joint actions are feasible, what each is worth, and what is wrong with the others.

A joint action is feasible when every outcome keeps the budgets now and leads to a situation from which they can be kept. Its worth is
its reward plus the policy's expected value of what follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.numerics import PROBABILITY_RENORMALISE
from acegames.report.view import Floats, Ints, View, shown
from acegames.safety.frontier import Frontier

Bools = NDArray[np.bool_]

MOST_OUTCOMES = 1_000_000
"""Outcomes looked at together: about a hundred megabytes."""

NOW, LATER = 0, 1


@dataclass(frozen=True, eq=False)
class Stage:
    """Situations of one time. An *entry* is a legal joint action of one of them; entries of p are first[p] : first[p+1]."""

    t: int
    state: Ints  # (P,)
    total: Ints  # (P, M)
    first: Ints  # (P+1,)
    row: Ints  # (E,) rows of the layer
    feasible: Bools  # (E,)
    worth: Floats  # (E, N) NaN where infeasible
    out_first: Ints  # (E+1,) outcomes of entry e are out_first[e] : out_first[e+1]
    out: Ints  # (L,) outcomes of the layer
    after: Ints  # (L, M) whole units spent afterwards
    over: Bools  # (L, M) True: this budget is broken at once
    lost: Bools  # (L,) True: no feasible play comes there

    def entries(self, p: int) -> range:
        """Entries of a situation."""
        return range(int(self.first[p]), int(self.first[p + 1]))

    def outcomes(self, e: int) -> slice:
        """Outcomes of an entry."""
        return slice(int(self.out_first[e]), int(self.out_first[e + 1]))


def stages(view: View, t: int, state: Ints, total: Ints) -> Iterator[Stage]:
    """Look at situations of time t, a limited number at once, in order."""
    layer = view.counted.layer(t)
    outcomes = np.cumsum(layer.out_ptr[layer.row_ptr[state + 1]] - layer.out_ptr[layer.row_ptr[state]])
    piece = outcomes // MOST_OUTCOMES
    for k in np.unique(piece):
        yield _stage(view, t, state[piece == k], total[piece == k])


def _stage(view: View, t: int, state: Ints, total: Ints) -> Stage:
    game, layer = view.counted, view.counted.layer(t)
    row, first = spans(layer.row_ptr[state], layer.row_ptr[state + 1])
    out, out_first = spans(layer.out_ptr[row], layer.out_ptr[row + 1])
    entry = np.repeat(np.arange(len(row)), np.diff(out_first))
    pair = np.repeat(np.arange(len(state)), np.diff(first))
    after = total[pair[entry]] + view.costs[game.layer_at[t]][out]
    over = after > view.lattice.budget[t]
    if t + 1 < game.horizon:
        following = view.values(t + 1, layer.next_state[out].astype(np.int64), after)
    else:
        following = np.zeros((len(out), len(game.players)))
    lost = np.isnan(following[:, 0]) | over.any(axis=1)
    feasible = ~np.logical_or.reduceat(lost, out_first[:-1])
    expected = np.add.reduceat(layer.prob[out, None] * following, out_first[:-1])
    worth = np.where(feasible[:, None], layer.reward[row] + expected, np.nan)
    return Stage(t, state, total, first, row, feasible, worth, out_first, out, after, over, lost & ~over.any(axis=1))


def spans(start: Ints, stop: Ints) -> tuple[Ints, Ints]:
    """The numbers start[0] .. stop[0]-1, then start[1] .. stop[1]-1, and so on; and where each run begins."""
    first = np.concatenate([[0], np.cumsum(stop - start)])
    return np.arange(first[-1]) + np.repeat(start - first[:-1], stop - start), first


class Reasons:
    """Says why joint actions are infeasible, and remembers what the places that they can lead to would need."""

    def __init__(self, view: View, frontier: Frontier | None) -> None:
        self.view, self.frontier = view, frontier
        self.needs: dict[str, list[list[Any]]] = {}  # "t,state": least amounts left that are enough, one list per way

    def of(self, stage: Stage, e: int) -> list[Any]:
        """[now or later, probability, next state, spent afterwards, budgets broken at once] of the outcome that rules an entry out."""
        outs = stage.outcomes(e)
        layer = self.view.counted.layer(stage.t)
        broken = stage.over[outs].any(axis=1)
        kind = NOW if broken.any() else LATER
        wrong = np.flatnonzero(broken if kind == NOW else self._dead(stage, outs))
        prob = layer.prob[stage.out[outs]]
        if kind == NOW:  # what is spent counts, wherever it leads
            alike = (stage.after[outs][wrong, None] == stage.after[outs][None, wrong]).all(axis=2)
            prob = prob.copy()
            prob[wrong] = np.minimum(alike @ prob[wrong], 1.0)
        k = int(wrong[np.argmax(prob[wrong])])
        following = int(layer.next_state[stage.out[outs][k]])
        after = stage.after[outs][k]
        if kind == LATER:
            self._need(stage.t + 1, following)
        over = np.flatnonzero(stage.over[outs][k]).tolist()
        return [
            kind,
            1 if prob[k] > 1 - PROBABILITY_RENORMALISE else shown(prob[k]),
            following,
            self.view.spent(after),
            over,
        ]

    def _dead(self, stage: Stage, outs: slice) -> Bools:
        """Outcomes after which the budgets cannot be kept.

        Some others are not reached by feasible play either, only because this joint action is not part of it.
        """
        lost = stage.lost[outs]
        if self.frontier is None or lost.sum() == 1:
            return lost
        following = self.view.counted.layer(stage.t).next_state[stage.out[outs]].tolist()
        where = zip(lost.tolist(), following, stage.after[outs], strict=True)
        dead = np.array([x and not self._enough(stage.t + 1, s, after) for x, s, after in where], dtype=bool)
        return dead if dead.any() else lost

    def _enough(self, t: int, state: int, after: Ints) -> bool:
        assert self.frontier is not None
        left = self._left(after)
        return any(all(n <= x for n, x in zip(need, left, strict=True)) for need in self.frontier.at(t, state))

    def _left(self, after: Ints) -> list[Any]:
        assert self.frontier is not None
        units = self.view.lattice.units
        return [ref - int(k) * u for ref, k, u in zip(self.frontier.reference, after, units, strict=True)]

    def _need(self, t: int, state: int) -> None:
        if self.frontier is not None and f"{t},{state}" not in self.needs:
            rows = self.frontier.at(t, state)
            self.needs[f"{t},{state}"] = [[shown(x) for x in row] for row in rows[:WAYS]] + [[]] * (len(rows) > WAYS)


WAYS = 6  # alternatives that are listed where a place needs one of several least budgets
