"""Two relief drones with batteries, one spare pack, and wind.

A flooded valley is a grid of two rows. The southern row is dry ground where a drone can rest for
free; in the northern row lie a school, a clinic and a farm, each waiting for one parcel. Two
drones start at the two ends of the dry row. In each step a drone flies one cell, delivers where
somebody waits, hovers (over the flood) or rests (on dry ground). Flying, hovering and delivering
take one unit of battery; a gust, with probability one quarter, makes every flight of that step
take two. At the depot, in the middle of the dry row, lies a single spare pack: who swaps it in
first gains energy (a negative cost). Two drones may never be in the same cell or change places. A
battery that runs out drops the drone, so the batteries are hard budgets: over the flood a drone
must keep enough to hover to the end or to fly home against the wind.

A delivery pays its worth to the drone that makes it, and one to the other.

Source: a small relief task of our own, of the kind that motivates anytime constraints in J.
McMahan, "Anytime-Constrained Equilibria in Polynomial Time", ICML 2025 (introduction).

Facts:
- Both drones can rest to the end, so empty batteries are the smallest feasible ones.
- No feasible play has both drones in one cell.
- The greedy rule "nothing breaks now" fails: some joint action that breaks no budget in its own
  step leaves no way to keep the budgets later.
- The spare pack can be used: in some feasible situation a drone has spent less than
  nothing.
"""

from __future__ import annotations

from typing import Any

from acegames.model.game import MarkovGame

Cell = tuple[int, int]
State = tuple[Cell, Cell, tuple[str, ...], str]  # two cells, who still waits, "pack" or "none"

STEPS = {"north": (0, 1), "south": (0, -1), "east": (1, 0), "west": (-1, 0)}
VILLAGES = {(0, 1): "school", (1, 1): "clinic", (2, 1): "farm"}
WORTH = {"school": 3.0, "clinic": 6.0, "farm": 4.0}
DEPOT = (1, 0)
WIDTH, HEIGHT = 3, 2


def build(horizon: int = 5, battery: Any = 4, pack: int = 2, gust: float = 0.25) -> MarkovGame:
    """Build the game.

    Args:
        horizon: number of steps.
        battery: energy of each drone: one number, or one per drone.
        pack: energy of the spare pack.
        gust: probability of a gust.
    """
    batteries = list(battery) if isinstance(battery, (list, tuple)) else [battery, battery]
    if len(batteries) != 2:
        raise ValueError(f"drones: {len(batteries)} batteries, must be one number or one for each of the 2 drones")
    first, second = batteries

    def outcomes(state: State, action: tuple[str, str]) -> list[tuple[float, State, list[int]]]:
        after = _after(state, action)
        return [(p, after, [_energy(a, pack, flight) for a in action]) for p, flight in ((1 - gust, 1), (gust, 2))]

    return MarkovGame.from_functions(
        name="drones",
        players=["red", "blue"],
        horizon=horizon,
        initial=((0, 0), (2, 0), tuple(VILLAGES.values()), "pack"),
        budget={"red battery": first, "blue battery": second},
        actions=lambda s: [_choices(s[0], s), _choices(s[1], s)],
        legal=_no_collision,
        outcomes=outcomes,
        reward=_reward,
    )


def _choices(cell: Cell, state: State) -> list[str]:
    """Return what a drone can do in its cell."""
    choices = ["rest" if cell[1] == 0 else "hover"]
    choices += [way for way in STEPS if 0 <= _fly(cell, way)[0] < WIDTH and 0 <= _fly(cell, way)[1] < HEIGHT]
    if VILLAGES.get(cell) in state[2]:
        choices.append("deliver")
    if cell == DEPOT and state[3] == "pack":
        choices.append("swap")
    return choices


def _fly(cell: Cell, action: str) -> Cell:
    dx, dy = STEPS.get(action, (0, 0))
    return cell[0] + dx, cell[1] + dy


def _no_collision(state: State, action: tuple[str, str]) -> bool:
    a, b = map(_fly, state[:2], action)
    return a != b and (a, b) != (state[1], state[0])


def _after(state: State, action: tuple[str, str]) -> State:
    served = {VILLAGES[cell] for cell, a in zip(state[:2], action, strict=True) if a == "deliver"}
    waiting = tuple(v for v in state[2] if v not in served)
    left = "none" if "swap" in action else state[3]
    return _fly(state[0], action[0]), _fly(state[1], action[1]), waiting, left


def _energy(action: str, pack: int, flight: int) -> int:
    return {"rest": 0, "hover": 1, "deliver": 1, "swap": -pack}.get(action, flight)


def _reward(state: State, action: tuple[str, str]) -> list[float]:
    worth = [WORTH[VILLAGES[cell]] if a == "deliver" else 0.0 for cell, a in zip(state[:2], action, strict=True)]
    return [worth[0] + (worth[1] > 0), worth[1] + (worth[0] > 0)]
