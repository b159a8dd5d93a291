"""Medium access with three transmitters and three batteries.

The game `medium_access` with three players and three energy budgets: the smallest game of the
catalog in which more than two players and more than two constraints meet.

Source: as for `medium_access`.

Facts:
- It is `medium_access` with players=3.
- The smallest feasible batteries are empty ones: waiting costs nothing.
- In a good last slot with energy left, exactly one transmitter sends in the best equilibrium for
  welfare: nobody collides.
"""

from __future__ import annotations

from typing import Any

from acegames.catalog import medium_access
from acegames.model.game import MarkovGame


def build(horizon: int = 4, battery: Any = 2, stay: float = 0.75) -> MarkovGame:
    """Build the game: `medium_access` with three players and smaller defaults.

    Args:
        horizon: number of slots.
        battery: energy of each transmitter: one number, or one per transmitter.
        stay: probability that the channel stays as it is.
    """
    return medium_access.build(players=3, horizon=horizon, battery=battery, stay=stay)
