"""What a player would lose by leaving the recommendation in one situation (spec 4, 7).

    CCE, Nash   play b whatever is recommended:  V_i - sum over a of pi(a) worth_i(b, a_-i)
    CE          when told a_i, play b: the same over the a that have this a_i, given it was told

Everything afterwards is as recommended. Where nobody gains by one of these in any situation, nobody
gains by leaving several recommendations and following others either. A deviation is feasible when
(b, a_-i) is feasible against every a that may be recommended (under CE: that may be, given a_i).
"""

from __future__ import annotations

from typing import NamedTuple

from acegames.policy.situations import Stage, View

ANY, NOT_LEGAL = -1, -1


class Deviation(NamedTuple):
    """One player's deviation from one recommendation, or from all of them."""

    player: int
    told: int  # the recommended action that is left, ANY for all of them
    chance: float  # of being told so
    action: int
    loss: float | None  # None where the deviation is not feasible
    barred_by: int | None  # then the infeasible row that it can lead to, or NOT_LEGAL


def deviations(view: View, stage: Stage, p: int, recommended: dict[int, float]) -> list[Deviation]:
    """Return every deviation from `recommended` {row: probability} at the p-th situation of a
    stage.
    """
    action, concept = view.counted.layer(stage.t).action, view.policy.concept
    entry_of = {int(stage.row[e]): e for e in stage.entries(p)}
    row_of = {tuple(action[row].tolist()): row for row in entry_of}

    def left(i: int, told: int, part: dict[int, float], b: int) -> Deviation:
        chance, loss = sum(part.values()), 0.0
        for row, prob in part.items():
            instead = row_of.get((*action[row, :i].tolist(), b, *action[row, i + 1 :].tolist()), NOT_LEGAL)
            if instead == NOT_LEGAL or not stage.feasible[entry_of[instead]]:
                return Deviation(i, told, chance, b, None, instead)
            loss += prob / chance * float(stage.worth[entry_of[row], i] - stage.worth[entry_of[instead], i])
        return Deviation(i, told, chance, b, loss, None)

    found = []
    for i, deviates in enumerate(concept.deviators(view.game.players)):
        parts: dict[int, dict[int, float]] = {}
        for row, prob in recommended.items():
            parts.setdefault(int(action[row, i]) if concept.interim else ANY, {})[row] = prob
        for told, part in sorted(parts.items()) if deviates else ():
            played = {int(action[row, i]) for row in part}
            found += [left(i, told, part, b) for b in sorted({own[i] for own in row_of}) if played != {b}]
    return found
