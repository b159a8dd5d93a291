"""Why a feasible joint action is not recommended for sure (spec 4).

If one joint action a were recommended for sure, player i would gain

    max over b, (b, a_-i) feasible, of worth_i(b, a_-i)  -  worth_i(a)

by its best safe deviation. With a single joint action CE, CCE and Nash agree on this number. Where
some player gains, a is no equilibrium of the stage game. Where nobody does, a is one, and the
objective tells why another one was chosen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from acegames.concepts import Concept
from acegames.model.arrays import Bools, Floats, Ints, number_rows, owners
from acegames.model.words import called
from acegames.numerics import NOISE, TIE
from acegames.policy.situations import Stage, View

MANY_STEPS = 4096
"""Steps over which rounding errors of the last digit may have added up in what is compared."""
LESS, TIED, SAME, ANY, MORE = range(5)
"""How an equilibrium compares with the recommendation: worth less for the objective; as much, but
less to the first player whose value differs; the same to everyone; no objective; worth more."""


def objective_data(view: View) -> dict[str, Any] | None:
    """Return the objective as a number, for the page: its name, and weights or "lowest" or "gap"."""
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


def aims(concept: Concept, players: tuple[Any, ...], worth: Floats) -> Floats | None:
    """Return what the objective makes of values (Q, N), larger is better; None where there is none."""
    score: Floats | None = concept.score(worth, players)
    return score


def best_deviations(view: View, stage: Stage) -> tuple[Floats, Ints]:
    """Return each player's largest gain over each entry, and the action that brings it, both (E,
    N).

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


def alternatives(view: View, stage: Stage, p: int, values: Floats, found: tuple[Floats, Ints]) -> list[list[Any]]:
    """Return the feasible entries of a situation, each with who gains by leaving it, if recommended
    alone.

    One [entry, [player, action, gain], ...] with the largest gain first; or [entry, comparison]
    where nobody gains. `found` is from `best_deviations`.
    """
    concept, players = view.policy.concept, view.game.players
    here = np.array([e for e in stage.entries(p) if stage.feasible[e]], dtype=np.int64)
    worth = stage.worth[here]
    slack = TIE * np.ptp(worth, axis=0) + MANY_STEPS * NOISE * np.abs(worth).max(axis=0)
    gain, better = found[0][here], found[1][here]
    own = aims(concept, players, np.vstack([worth, values]))
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
    room = float(slack.sum())
    if abs(ahead) > room:
        return LESS if ahead < 0 else MORE
    clear = np.flatnonzero(np.abs(apart) > slack)
    if not len(clear):
        return SAME
    return TIED if apart[clear[0]] < 0 else MORE
