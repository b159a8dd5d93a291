"""Why joint actions are infeasible, not recommended, or not worth leaving the recommendation for.

*Infeasible*: the outcome that rules the joint action out, and budgets that would suffice there.

*Feasible and not recommended for sure* (spec 4). If one joint action a were recommended for sure,
player i would gain

    max over b, (b, a_-i) feasible, of worth_i(b, a_-i)  -  worth_i(a)

by its best safe deviation. With a single joint action CE, CCE and Nash agree on this number. Where
some player gains, a is no equilibrium of the stage game. Where nobody does, a is one, and the
objective tells why another one was chosen.

*Leaving the recommendation* (spec 4, 7) loses

    CCE, Nash   play b whatever is recommended:  V_i - sum over a of pi(a) worth_i(b, a_-i)
    CE          when a_i is recommended, play b: the sum over the a that have this a_i, given a_i

Everything afterwards is as recommended. Where nobody gains by one of these in any situation, nobody
gains by leaving several recommendations and following others either. A deviation is feasible when
(b, a_-i) is feasible against every a that may be recommended (under CE: that may be, given a_i).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from acegames.model.arrays import Bools, Floats, Ints, number_rows, owners
from acegames.model.words import called, shown
from acegames.numerics import NOISE, PROBABILITY_RENORMALISE, TIE
from acegames.policy.situations import SituationStage, View
from acegames.safety.frontier import Frontier

NOW, LATER = 0, 1
WAYS = 6  # alternatives that are listed where one of several least budgets would be needed


class Reasons:
    """Says why joint actions are infeasible, and notes what would be needed where they lead."""

    def __init__(self, view: View, frontier: Frontier | None) -> None:
        self.view, self.frontier = view, frontier
        self.needs: dict[str, list[list[Any]]] = {}  # "t,state": least amounts left that suffice, one list per way

    def of(self, stage: SituationStage, e: int) -> list[Any]:
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

    def _dead(self, stage: SituationStage, outs: slice) -> Bools:
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


# -- why a feasible joint action is not recommended for sure ---------------------------------------

MANY_STEPS = 4096
"""Steps over which rounding errors of the last digit may have added up in what is compared."""
LESS, TIED, SAME, ANY, MORE = range(5)
"""How an equilibrium compares with the recommendation: worth less for the objective; as much, but
less to the first player whose value differs; the same to everyone; no objective; worth more."""


def objective_data(view: View) -> dict[str, Any] | None:
    """Return the objective for the page: its name, and weights, "lowest" or "gap"."""
    concept, players = view.policy.concept, view.game.players
    weights = concept.weights(players)
    if weights is not None:
        alone = [called(p) for p, w in zip(players, weights, strict=True) if w]
        plain = set(weights) <= {0.0, 1.0}
        name = f"value of {alone[0]}" if plain and len(alone) == 1 else "sum of values" if plain else "weighted sum"
        return {"name": name, "weights": list(weights), "column": not (plain and len(alone) == 1)}
    measure = concept.criterion.measure
    names = {"lowest": "lowest value", "gap": "gap between values"}
    return {"name": names[measure], "of": measure, "column": True} if measure else None


def best_deviations(view: View, stage: SituationStage) -> tuple[Floats, Ints]:
    """Return each player's largest gain by leaving each entry, and the action that brings it, both
    (E, N).

    The gain is 0 where no safe deviation is better, or the player does not deviate; NaN at an
    infeasible entry.
    """
    action = view.counted.layer(stage.t).action[stage.row].astype(np.int64)
    pair = owners(stage.first)
    gain = np.where(stage.feasible[:, None], 0.0, np.nan).repeat(action.shape[1], axis=1)
    better = action.copy()
    for i, deviates in enumerate(view.policy.concept.deviators(view.game.players)):
        if not deviates:
            continue
        worth = np.where(stage.feasible, stage.worth[:, i], -np.inf)
        group = number_rows([pair, *np.delete(action, i, axis=1).T])  # they differ in this player's action only
        best = np.lexsort((worth, group))[np.cumsum(np.bincount(group)) - 1][group]
        gain[:, i] = stage.worth[best, i] - stage.worth[:, i]
        better[:, i] = action[best, i]
    return gain, better


def alternatives(
    view: View, stage: SituationStage, p: int, values: Floats, leaving: tuple[Floats, Ints]
) -> list[list[Any]]:
    """Return who would gain by leaving each feasible entry of a situation, if that were recommended
    for sure.

    One [entry, [player, action, gain], ...] with the largest gain first; or [entry, comparison]
    where nobody gains. `found` is from `best_deviations`.
    """
    concept, players = view.policy.concept, view.game.players
    here = np.array([e for e in stage.entries(p) if stage.feasible[e]], dtype=np.int64)
    worth = stage.worth[here]
    slack = TIE * np.ptp(worth, axis=0) + MANY_STEPS * NOISE * np.abs(worth).max(axis=0)
    gain, better = leaving[0][here], leaving[1][here]
    own: Floats | None = concept.score(np.vstack([worth, values]), players)
    gains: Bools = gain > slack
    said: list[list[Any]] = []
    for k, e in enumerate(here.tolist()):
        who = sorted(np.flatnonzero(gains[k]).tolist(), key=lambda i: -gain[k, i])
        if who:
            said.append([e, *([i, int(better[k, i]), float(gain[k, i])] for i in who)])
        else:
            said.append([e, ANY if own is None else _compared(float(own[k] - own[-1]), worth[k] - values, slack)])
    return said


def _compared(ahead: float, apart: Floats, slack: Floats) -> int:
    """Compare an equilibrium with the recommendation; ties go to the first player, and so on."""
    margin = float(slack.sum())
    if abs(ahead) > margin:
        return LESS if ahead < 0 else MORE
    clear = np.flatnonzero(np.abs(apart) > slack)
    if not len(clear):
        return SAME
    return TIED if apart[clear[0]] < 0 else MORE


# -- what leaving the recommendation would lose ----------------------------------------------------

EVERY, NOT_LEGAL = -1, -1


class Deviation(NamedTuple):
    """One player's deviation from one recommendation, or from all of them."""

    player: int
    signal: int  # the recommended action that is left, EVERY for all of them
    chance: float  # of this recommendation
    action: int
    loss: float | None  # None where the deviation is not feasible
    barred_by: int | None  # then the infeasible row that it can lead to, or NOT_LEGAL


def deviations(view: View, stage: SituationStage, p: int, recommended: dict[int, float]) -> list[Deviation]:
    """Return every deviation from `recommended` {row: probability} at the p-th situation of a
    stage.
    """
    action, concept = view.counted.layer(stage.t).action, view.policy.concept
    entry_of = {int(stage.row[e]): e for e in stage.entries(p)}
    row_of = {tuple(action[row].tolist()): row for row in entry_of}

    def left(i: int, signal: int, part: dict[int, float], b: int) -> Deviation:
        chance, loss = sum(part.values()), 0.0
        for row, prob in part.items():
            instead = row_of.get((*action[row, :i].tolist(), b, *action[row, i + 1 :].tolist()), NOT_LEGAL)
            if instead == NOT_LEGAL or not stage.feasible[entry_of[instead]]:
                return Deviation(i, signal, chance, b, None, instead)
            loss += prob / chance * float(stage.worth[entry_of[row], i] - stage.worth[entry_of[instead], i])
        return Deviation(i, signal, chance, b, loss, None)

    listed = []
    for i, deviates in enumerate(concept.deviators(view.game.players)):
        parts: dict[int, dict[int, float]] = {}
        for row, prob in recommended.items():
            parts.setdefault(int(action[row, i]) if concept.interim else EVERY, {})[row] = prob
        for signal, part in sorted(parts.items()) if deviates else ():
            played = {int(action[row, i]) for row in part}
            listed += [left(i, signal, part, b) for b in sorted({own[i] for own in row_of}) if played != {b}]
    return listed
