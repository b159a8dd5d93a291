"""Why joint actions are infeasible, and which budgets would suffice where they lead."""

from __future__ import annotations

from typing import Any

import numpy as np

from acegames.model.arrays import Bools, Ints
from acegames.model.words import shown
from acegames.numerics import PROBABILITY_RENORMALISE
from acegames.policy.situations import Stage, View
from acegames.safety.frontier import Frontier

NOW, LATER = 0, 1
WAYS = 6  # alternatives that are listed where one of several least budgets would be needed


class Reasons:
    """Says why joint actions are infeasible, and notes what would be needed where they lead."""

    def __init__(self, view: View, frontier: Frontier | None) -> None:
        self.view, self.frontier = view, frontier
        self.needs: dict[str, list[list[Any]]] = {}  # "t,state": least amounts left that suffice, one list per way

    def of(self, stage: Stage, e: int) -> list[Any]:
        """Return the outcome that rules an entry out: when, chance, next state, spent, budgets
        broken.
        """
        outs, layer = stage.outcomes(e), self.view.counted.layer(stage.t)
        kind = NOW if stage.over[outs].any() else LATER
        wrong = outs.start + np.flatnonzero(stage.over[outs].any(axis=1) if kind == NOW else self._dead(stage, outs))
        prob, after = layer.prob[stage.out[wrong]], stage.after[wrong]
        if kind == NOW:  # what is spent counts, wherever it leads
            prob = np.minimum((after[:, None] == after[None]).all(axis=2) @ prob, 1.0)
        k = int(np.argmax(prob))
        following = int(layer.next_state[stage.out[wrong[k]]])
        if kind == LATER:
            self._need(stage.t + 1, following)
        chance = 1 if prob[k] > 1 - PROBABILITY_RENORMALISE else shown(prob[k])
        over = np.flatnonzero(stage.over[wrong[k]]).tolist()
        return [kind, chance, following, self.view.spent(after[k]), over]

    def _dead(self, stage: Stage, outs: slice) -> Bools:
        """Return outcomes after which the budgets cannot be kept.

        Some others are not reached by feasible play either, only because this joint action is not
        part of it.
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
        spent = zip(self.frontier.reference, after, self.view.lattice.units, strict=True)
        left = [reference - int(k) * unit for reference, k, unit in spent]
        return any(all(n <= x for n, x in zip(need, left, strict=True)) for need in self.frontier.at(t, state))

    def _need(self, t: int, state: int) -> None:
        if self.frontier is not None and f"{t},{state}" not in self.needs:
            rows = self.frontier.at(t, state)
            self.needs[f"{t},{state}"] = [[shown(x) for x in row] for row in rows[:WAYS]] + [[]] * (len(rows) > WAYS)
