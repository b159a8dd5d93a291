"""Two robots that must not collide: agents that move on their own, put together by `compose`.

Each robot is a game of one player: cells, moves that slip one time in ten, a battery. The joint
game adds two rules: never in the same cell, and never through each other. Each wants to stand where
the other begins.

Run: python examples/robots.py [folder for pictures]
"""

from __future__ import annotations

import numpy as np
from showing import panels, run, save

import acegames as ace

MOVES = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)]  # stay, north, south, east, west


def robot(name: str, start: tuple[int, int], goal: tuple[int, int], size: int, horizon: int) -> ace.MarkovGame:
    """One robot alone; its battery allows two moves more than the way takes."""

    def actions(cell):
        return [[(dx, dy) for dx, dy in MOVES if 0 <= cell[0] + dx < size and 0 <= cell[1] + dy < size]]

    def outcomes(cell, action):
        (dx, dy) = action[0]
        if (dx, dy) == (0, 0):
            return [(1, cell, 0)]
        return [(0.9, (cell[0] + dx, cell[1] + dy), 1), (0.1, cell, 1)]

    return ace.MarkovGame.from_functions(
        players=[name],
        horizon=horizon,
        initial=start,
        budget={f"battery of {name}": abs(goal[0] - start[0]) + abs(goal[1] - start[1]) + 2},
        actions=actions,
        outcomes=outcomes,
        reward=lambda cell, action: [float(cell == goal)],
    )


def apart(s):
    """Never in the same cell."""
    return (s["red"] != s["blue"]).any(axis=1)


def no_swap(s, a):
    """Never through each other."""
    red_to_blue = (s["red"] + a["red"] == s["blue"]).all(axis=1)
    blue_to_red = (s["blue"] + a["blue"] == s["red"]).all(axis=1)
    return ~(red_to_blue & blue_to_red)


def main(folder: str | None = None, *, episodes: int = 20_000, size: int = 5, horizon: int = 14) -> ace.Solution:
    """Build, solve, verify and play; with a folder, draw where the robots are."""
    near, far = (0, 0), (size - 1, size - 1)
    robots = [robot("red", near, far, size, horizon), robot("blue", far, near, size, horizon)]
    game = ace.compose(robots, possible=apart, legal=no_swap, name="two robots")
    solution = ace.solve(game, ace.CE())
    certificate = ace.verify(game, solution.policy)
    played = ace.simulate(game, solution.policy, episodes=episodes, rng=0)
    cells = np.array(game.states)[played.state]  # (E, T+1, robot, x or y)
    print(game)
    print(f"{solution.stats.pairs:,} situations; {'certified' if certificate.ok else 'NOT CERTIFIED'}")
    for i, name in enumerate(game.players):
        at_goal = (cells[:, -1, i] == (far, near)[i]).all(axis=1).mean()
        print(f"{name}: {solution.values[i]:.2f} steps at its goal on average, there at the end in {at_goal:.1%}")
    print(f"{(cells[:, :, 0] == cells[:, :, 1]).all(axis=2).sum()} collisions, {played.violations} batteries run down")
    if folder is not None:
        figure, axes = panels(2)
        for i, (name, ax) in enumerate(zip(game.players, axes, strict=True)):
            seen = np.zeros((size, size))
            np.add.at(seen, (cells[:, :, i, 1], cells[:, :, i, 0]), 1 / episodes)
            ax.figure.colorbar(ax.imshow(seen, origin="lower", cmap=f"{name.capitalize()}s"), ax=ax, shrink=0.8)
            ax.set_title(f"{name}: steps in each cell", fontsize=10)
            ax.set_xticks(range(size))
            ax.set_yticks(range(size))
        save(figure, folder, "robots.png")
    return solution


if __name__ == "__main__":
    run(main)
