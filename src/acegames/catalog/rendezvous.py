"""Rendezvous: two boats may drift apart all day, but must be together at night.

Two fishing boats start side by side on a river. In the first half of the day each earns by
leaving: the one upstream, the other downstream, where the fish are. In the second half rowing
against the gap is work for whoever does it. A breeze, which may come up after any calm hour and
is always followed by a calm one, pushes a boat that moves by one place either way, so that the
gap is uncertain by one; two boats at anchor do not feel it. Only the gap at the end counts: it
must be zero. It is an almost-sure constraint: the budget schedule is infinite before the last
hour, and the gap and its negative are two costs with both signs.

Source: the almost-sure constraints of A. Castellano, H. Min, J. Bazerque and E. Mallada,
"Reinforcement learning with almost sure constraints", L4DC 2022, as generalised in J. McMahan,
"Anytime-Constrained Equilibria in Polynomial Time", ICML 2025; the boats are ours.

Facts:
- Every feasible play ends with a gap of exactly zero.
- On the way the gap can grow to at least two.
- Asking for a gap of zero at every hour instead is feasible too, and earns the two boats less in
  total.
"""

from __future__ import annotations

from typing import Any

from acegames.model.budgets import almost_sure
from acegames.model.game import MarkovGame

MOVE = {"upstream": 1, "anchor": 0, "downstream": -1}


def build(horizon: int = 5, gap: Any = 0, always: bool = False) -> MarkovGame:
    """Build the game.

    Args:
        horizon: number of hours.
        gap: how far apart the boats may be, at the end.
        always: True when that must hold at every hour.
    """

    def outcomes(t: int, wind: str, action: tuple[str, str]) -> list[tuple[float, str, list[int]]]:
        change = MOVE[action[0]] - MOVE[action[1]]
        if wind == "calm":
            return [(0.5, "calm", [change, -change]), (0.5, "breeze", [change, -change])]
        if action == ("anchor", "anchor"):
            return [(1.0, "calm", [0, 0])]
        return [(0.5, "calm", [change + 1, -change - 1]), (0.5, "calm", [change - 1, -change + 1])]

    def reward(t: int, wind: str, action: tuple[str, str]) -> list[float]:
        if 2 * t < horizon - 1:
            return [3.0 * (action[0] == "upstream"), 3.0 * (action[1] == "downstream")]
        return [-1.0 * (a != "anchor") for a in action]

    bound = gap if always else almost_sure(gap)
    return MarkovGame.from_functions(
        name="rendezvous",
        players=["ada", "bo"],
        horizon=horizon,
        initial="calm",
        budget={"ahead": bound, "behind": bound},
        actions=lambda t, s: [tuple(MOVE), tuple(MOVE)],
        outcomes=outcomes,
        reward=reward,
    )
