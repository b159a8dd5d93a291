"""A net-zero yard: two homes share solar panels and settle at the end of the day.

Two homes share the panels on a barn and one meter. In each of six periods of a day a home saves,
lives or feasts, which takes zero, one or two units of energy; the panels give more at noon than
at the edges of the day, and more under a clear sky than under clouds, which come and go by
chance. What is missing is imported, what is left over is exported, so the net import has both
signs. They have promised to import no more than they export over the whole day. Only the
settlement at the end counts: before the sun is up they may live on credit, as long as even a day
of clouds would pay it back. The early home values its mornings double, the late home its
evenings.

Source: a small instance of our own, after net metering, where import and export are settled over
a billing period. Constraints on the total alone (almost-sure constraints): J. McMahan,
"Anytime-Constrained Equilibria in Polynomial Time", ICML 2025 (extensions).

Facts:
- The running total may exceed the limit and come back: in some feasible situation more is
  imported than the end allows.
- A day of clouds gives three units, so a net import of -3 is the smallest that can be promised.
- Where no sun is to come any more, no feasible situation is above the limit.
- If the limit held at every time of the day, the homes together would get less.
"""

from __future__ import annotations

from typing import Any

from acegames.model.budgets import almost_sure
from acegames.model.game import MarkovGame

USE = {"save": 0, "live": 1, "feast": 2}
COMFORT = {"save": 0.0, "live": 2.0, "feast": 3.0}
SUN = {"clear": (0, 1, 3, 3, 1, 0), "cloudy": (0, 0, 1, 2, 0, 0)}
WORTH = {"early": (2, 2, 1, 1, 1, 1), "late": (1, 1, 1, 1, 2, 2)}
HOMES = tuple(WORTH)


def build(limit: Any = 0, settled: str = "at the end", change: float = 0.25) -> MarkovGame:
    """Build the game.

    Args:
        limit: the largest net import.
        settled: "at the end", or "always" for a limit that holds at every time.
        change: probability that the weather changes after a period.
    """
    if settled not in ("at the end", "always"):
        raise ValueError(f"net_zero: settled is {settled!r}, must be 'at the end' or 'always'")
    other = {"clear": "cloudy", "cloudy": "clear"}

    def outcomes(t: int, sky: str, action: tuple[str, str]) -> list[tuple[float, str, int]]:
        net = sum(USE[a] for a in action) - SUN[sky][t]
        return [(1 - change, sky, net), (change, other[sky], net)]

    return MarkovGame.from_functions(
        name="net_zero",
        players=HOMES,
        horizon=6,
        initial="clear",
        budget={"net import": almost_sure(limit) if settled == "at the end" else limit},
        actions=lambda t, s: [tuple(USE)] * 2,
        outcomes=outcomes,
        reward=lambda t, s, a: [WORTH[home][t] * COMFORT[own] for home, own in zip(HOMES, a, strict=True)],
    )
