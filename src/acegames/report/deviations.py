"""What a player would lose by leaving the recommendation, in one situation, everything after it as recommended (spec 4, 7).

    CCE, Nash   play b whatever is recommended:      V_i - sum over a of pi(a) worth_i(b, a_-i)
    CE          when told a_i, play b:  the same over the a that have this a_i, given that it was told

Where nobody gains by one of these in any situation, nobody gains by leaving several recommendations and following others either:
that is the deviator of the verifier, who at every step commits to an action before the recommendation is drawn, or follows it.
A deviation is feasible when (b, a_-i) is feasible against every a that may be recommended (under CE: that may be, given a_i).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from acegames.policy.situations import Stage, View

ANY, NOT_LEGAL = -1, -1


@dataclass(frozen=True)
class Deviation:
    """`told` is the recommended action that is left, ANY for all of them; `loss` is None where it is not feasible."""

    player: int
    told: int
    chance: float  # of being told so
    action: int
    loss: float | None
    barred_by: int | None  # the row that it would lead to and that is infeasible, NOT_LEGAL where there is no such row


def deviations(view: View, stage: Stage, p: int, recommended: dict[int, float], *, coarse: bool) -> list[Deviation]:
    """Every player's deviations from `recommended` {row: probability} at the p-th situation of a stage."""
    layer = view.counted.layer(stage.t)
    at = {tuple(layer.action[stage.row[e]].tolist()): e for e in stage.entries(p)}
    found = []
    for i, labels in enumerate(view.game.actions):
        known = {action[i] for action in at}
        for told, part in _recommendations(layer.action, recommended, i, coarse):
            played = {layer.action[r, i] for r in part}
            for b in (b for b in range(len(labels)) if b in known and played != {b}):
                found.append(_deviation(stage, at, layer.action, part, i, told, b))
    return found


def _recommendations(
    action: Any, recommended: dict[int, float], i: int, coarse: bool
) -> list[tuple[int, dict[int, float]]]:
    """What is recommended, in one piece or by what player i is told."""
    if coarse:
        return [(ANY, recommended)]
    parts: dict[int, dict[int, float]] = {}
    for row, prob in recommended.items():
        parts.setdefault(int(action[row, i]), {})[row] = prob
    return sorted(parts.items())


def _deviation(
    stage: Stage, at: dict[tuple[int, ...], int], action: Any, part: dict[int, float], i: int, told: int, b: int
) -> Deviation:
    chance, loss = sum(part.values()), 0.0
    row_at = {int(stage.row[e]): e for e in at.values()}
    for row, prob in part.items():
        profile = action[row].tolist()
        profile[i] = b
        e = at.get(tuple(profile))
        if e is None or not stage.feasible[e]:
            return Deviation(i, told, chance, b, None, NOT_LEGAL if e is None else int(stage.row[e]))
        loss += prob / chance * float(stage.worth[row_at[row], i] - stage.worth[e, i])
    return Deviation(i, told, chance, b, loss, None)
