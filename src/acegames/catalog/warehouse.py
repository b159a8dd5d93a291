"""A warehouse: two robots, two batteries, one charging pad.

Two robots work in a small hall, a grid of cells. Whoever comes to the rack, in the middle of the
back wall, takes a parcel, and whoever brings a parcel to the door, in the middle of the front
wall, has delivered it and earns its worth. The robots start in the front corners. In each step a
robot moves to a neighbouring cell or waits, and each step takes one unit of its battery. Only on a
charging pad is waiting free: it fills the battery by three units, or by two when the contact is
loose. What does not fit is lost: the batteries are reservoirs. The robots may never be in the same
cell and never change places, so they cannot use one pad at the same time, and a robot that runs dry
blocks the hall: no battery may ever be empty before its next unit is needed.

Each robot is a game of its own, and `compose` puts the two together.

Source: a small task of our own, after the warehouses of P. Wurman, R. D'Andrea and M. Mountz,
"Coordinating hundreds of cooperative, autonomous vehicles in warehouses", AI Magazine 29, 2008.

Facts:
- No feasible play has both robots in one cell.
- The robots share the pad, so the smallest capacities are a staircase: (2, 11), (3, 6), (4, 4),
  (6, 3) and (11, 2).
- No battery is ever more than full, though some feasible play goes on charging a full one.
- With plain budgets, under which energy can be stored without end, the robots would earn more in
  total.
- Over the hall a battery must last to the pad: wherever feasible play stands, its level is at least
  the way to the nearest pad, or the steps that are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from acegames.model.arrays import Bools
from acegames.model.budgets import reservoir
from acegames.model.composing import Cases, compose
from acegames.model.game import MarkovGame

Cell = tuple[int, int]
Place = tuple[int, int, int]  # a cell, and 1 with a parcel

STEPS = {"wait": (0, 0), "north": (0, 1), "south": (0, -1), "east": (1, 0), "west": (-1, 0)}
WORTH = 3.0


def build(
    width: int = 3,
    height: int = 3,
    capacity: Any = 5,
    horizon: int = 12,
    pads: Sequence[Cell] = ((1, 1),),
    charge: int = 3,
    loose: float = 0.25,
) -> MarkovGame:
    """Build the game.

    Args:
        width: cells of the hall along the front wall.
        height: cells of the hall away from the front wall.
        capacity: what a battery holds: one number, or one per robot.
        horizon: number of steps.
        pads: the cells with a charging pad, as pairs (along the front wall, away from it).
        charge: what one step on a pad fills in; a loose contact, one unit less.
        loose: probability of a loose contact.
    """
    capacities = capacity if isinstance(capacity, (list, tuple)) else (capacity, capacity)
    if len(capacities) != 2:
        raise ValueError(f"warehouse: {len(capacities)} capacities, must be one number or one for each of the 2 robots")
    if not all(isinstance(pad, (list, tuple)) and len(pad) == 2 for pad in pads):
        raise ValueError(f"warehouse: pads are {pads!r}, must be cells such as [1,1],[0,2]")
    rack, door, known = (width // 2, height - 1), (width // 2, 0), {tuple(pad) for pad in pads}

    def robot(name: str, start: Cell, holds: Any) -> MarkovGame:
        def actions(t: int, place: Place) -> list[list[str]]:
            reached = {way: _cell(place, way) for way in STEPS}
            return [[way for way, (x, y) in reached.items() if 0 <= x < width and 0 <= y < height]]

        def outcomes(t: int, place: Place, action: tuple[str]) -> list[tuple[float, Place, int]]:
            cell = _cell(place, action[0])
            there = (*cell, 1 if cell == rack else 0 if cell == door else place[2])
            if action == ("wait",) and cell in known:
                return [(1 - loose, there, -charge), (loose, there, 1 - charge)]
            return [(1.0, there, 1)]

        return MarkovGame.from_functions(
            players=[name],
            horizon=horizon,
            initial=(*start, 0),
            budget={f"{name} battery": reservoir(holds)},
            actions=actions,
            outcomes=outcomes,
            reward=lambda t, place, action: [WORTH if place[2] and _cell(place, action[0]) == door else 0.0],
            stationary=True,
        )

    robots = [robot("red", (0, 0), capacities[0]), robot("blue", (width - 1, 0), capacities[1])]
    return compose(robots, possible=_apart, legal=_no_swap, name="warehouse")


def _cell(place: Place, way: str) -> Cell:
    return place[0] + STEPS[way][0], place[1] + STEPS[way][1]


def _apart(s: Cases) -> Bools:
    """Return where the robots are in different cells."""
    apart: Bools = (s["red"][:, :2] != s["blue"][:, :2]).any(axis=1)
    return apart


def _no_swap(s: Cases, a: Cases) -> Bools:
    """Return where the robots do not pass through each other."""
    return ~(_moves_onto(s["red"], a["red"], s["blue"]) & _moves_onto(s["blue"], a["blue"], s["red"]))


def _moves_onto(own: NDArray[Any], way: NDArray[Any], other: NDArray[Any]) -> Bools:
    meets: Bools = (own[:, :2] + [STEPS[w] for w in way] == other[:, :2]).all(axis=1)
    return meets
