"""A narrow corridor: two robots, one bay, no budgets.

A corridor of four cells has one bay beside its second cell. One robot starts at the left end and
wants to the right end, the other the other way round. They may not stand in one cell and may not
pass through each other, so one must wait in the bay. Each robot earns one for every step that it
begins at its goal. There are no budgets: it is an action-constrained Markov game, in which the
allowed joint actions of a state are not a product.

Source: a two-robot instance of multi-agent path finding, R. Stern et al., "Multi-agent
pathfinding: definitions, variants, and benchmarks", SoCS 2019 (vertex and swapping conflicts);
the payoffs are ours.

Facts:
- No allowed play has both robots in one cell.
- The allowed joint actions of some state are not a product.
- Five steps are the fewest after which both robots can be at their goals.
"""

from __future__ import annotations

from acegames.model.game import MarkovGame

Cell = int | str
DOORS: dict[Cell, dict[str, Cell]] = {
    0: {"right": 1},
    1: {"left": 0, "right": 2, "turn": "bay"},
    2: {"left": 1, "right": 3},
    3: {"left": 2},
    "bay": {"turn": 1},
}
GOALS: tuple[Cell, Cell] = (3, 0)


def build(horizon: int = 8) -> MarkovGame:
    """Build the game.

    Args:
        horizon: number of steps.
    """

    def after(state: tuple[Cell, Cell], action: tuple[str, str]) -> tuple[Cell, ...]:
        return tuple(DOORS[cell].get(way, cell) for cell, way in zip(state, action, strict=True))

    def legal(t: int, state: tuple[Cell, Cell], action: tuple[str, str]) -> bool:
        there = after(state, action)
        return there[0] != there[1] and there != (state[1], state[0])

    return MarkovGame.from_functions(
        name="corridor",
        players=["eastbound", "westbound"],
        horizon=horizon,
        initial=(0, 3),
        actions=lambda t, s: [("stay", *DOORS[s[0]]), ("stay", *DOORS[s[1]])],
        legal=legal,
        outcomes=lambda t, s, a: [(1.0, after(s, a), None)],
        reward=lambda t, s, a: [float(s[i] == GOALS[i]) for i in range(2)],
    )
