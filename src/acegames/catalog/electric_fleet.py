"""An electric fleet: a cab and a van with batteries, and one feeder that both draw from.

A cab and a van serve a small town in periods of a day. In each period a vehicle serves, which
takes one unit of its battery, or two with a detour; charges, which fills two units; or idles. After
a rush it is quiet; after a quiet period there is a rush with probability one half. One vehicle that
serves earns 4 in a rush and 2 in a quiet period, two that serve share the riders and earn 3 or 1
each. The town asks that in a rush at least one of them serves. Each must keep a reserve of one
unit, to get to the depot.

The batteries are reservoirs that are not full in the morning: they hold five units and start with
three. What is charged beyond full is lost, but drawn from the feeder all the same. The feeder gives
six units in the whole day, to both together: a plain budget.

Source: a small instance of our own, after the shared charging limits of electric fleets, as in
Z. Lee, T. Li and S. Low, "ACN-Data: analysis and applications of an open EV charging dataset",
e-Energy 2019.

Facts:
- In a rush every feasible joint action has a vehicle that serves, so no feasible play is without
  energy for a rush with a detour.
- No feasible play goes below the reserve.
- The smallest capacities and draws are (1, 3, 4), (3, 1, 4) and (3, 3, 2): two larger batteries
  need less from the feeder.
- The feeder binds: without its limit the vehicles would earn more in total.
- Some feasible play charges a battery that has no room for all of it.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from acegames.model.budgets import reservoir
from acegames.model.game import MarkovGame

ACTIONS = ("serve", "charge", "idle")
FARE = {"rush": (4.0, 3.0), "quiet": (2.0, 1.0)}  # of one that serves alone, and of each of two


def build(
    horizon: int = 6,
    capacity: Any = 5,
    start: Any = 3,
    reserve: Any = 1,
    feeder: Any = 6,
    charge: int = 2,
    detour: float = 0.25,
) -> MarkovGame:
    """Build the game.

    Args:
        horizon: number of periods.
        capacity: what each battery holds.
        start: its level at the beginning; None for full.
        reserve: the level that must be left after every period.
        feeder: what both together may draw in the whole day; `inf` for no limit.
        charge: what a period of charging draws and fills in.
        detour: probability that a service takes two units.
    """

    def outcomes(t: int, town: str, action: tuple[str, str]) -> list[tuple[float, str, list[int]]]:
        after = [(1.0, "quiet")] if town == "rush" else [(0.5, "quiet"), (0.5, "rush")]
        takes = {"serve": [(1 - detour, 1), (detour, 2)], "charge": [(1.0, -charge)], "idle": [(1.0, 0)]}
        drawn = charge * action.count("charge")
        cases = product(after, takes[action[0]], takes[action[1]])
        return [(p * q * r, then, [cab, van, drawn]) for (p, then), (q, cab), (r, van) in cases]

    def reward(t: int, town: str, action: tuple[str, str]) -> list[float]:
        fare = FARE[town][action == ("serve", "serve")]
        return [fare if a == "serve" else 0.0 for a in action]

    battery = reservoir(capacity, start, reserve)
    return MarkovGame.from_functions(
        name="electric_fleet",
        players=["cab", "van"],
        horizon=horizon,
        initial="quiet",
        budget={"cab battery": battery, "van battery": battery, "feeder": feeder},
        actions=lambda t, town: [ACTIONS, ACTIONS],
        legal=lambda t, town, action: town == "quiet" or "serve" in action,
        outcomes=outcomes,
        reward=reward,
        stationary=True,
    )
