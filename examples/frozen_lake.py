"""Gymnasium's frozen lake, crossed without ever falling into a hole.

The ice is slippery: a step goes where it should one time in three, and to either side otherwise.
Reaching the goal pays 1; a hole ends the episode. The environment carries its law, so that
`from_env` reads it exactly. A fall costs 1, and the budget of falls is zero: with probability one
nobody falls, in 100 steps. Compared are play without a budget, and play in which a fall is only
punished, by a reward of -1.

Run: python examples/frozen_lake.py [folder for pictures]
"""

from __future__ import annotations

import math

import gymnasium
import numpy as np
from showing import panels, run, save

import acegames as ace
from acegames.adapters.gymnasium import from_env
from acegames.baselines.comparison import IN_EQUILIBRIUM, NO_BUDGETS, Compared, Comparison

PUNISHED = "no budgets, a fall pays -1"
ARROWS = {0: (-1, 0), 1: (0, -1), 2: (1, 0), 3: (0, 1)}  # left, down, right, up
COLOURS = {NO_BUDGETS: "#D55E00", PUNISHED: "#E69F00", IN_EQUILIBRIUM: "#0072B2"}


def main(folder: str | None = None, *, episodes: int = 20_000, horizon: int = 100) -> Comparison:
    """Solve, compare, print the report; with a folder, draw."""
    found = compared(horizon, episodes)
    certificate = ace.verify(found.game, found[IN_EQUILIBRIUM].policy, ace.CE())
    print(report(found, certificate))
    if folder is not None:
        draw(found, folder)
    return found


def lake(horizon: int, falls: float, pays: float = 0.0) -> ace.MarkovGame:
    """The lake of 8 by 8 cells as a game with a budget of falls; a fall pays something, too."""
    env = gymnasium.make("FrozenLake8x8-v1")  # its own limit of 200 steps lies beyond the horizon
    holes = cells(b"H")
    env.unwrapped.P = {
        state: {a: [(p, s, pays if s in holes else r, end) for p, s, r, end in row] for a, row in moves.items()}
        for state, moves in env.unwrapped.P.items()
    }
    return from_env(env, horizon, budget={"falls": falls}, cost=lambda step: step.next_state in holes)


def cells(letter: bytes) -> set[int]:
    """The cells of a kind: S is the start, H a hole, G the goal."""
    desc = gymnasium.make("FrozenLake8x8-v1").unwrapped.desc
    return set(np.flatnonzero(desc.ravel() == letter).tolist())


def compared(horizon: int, episodes: int) -> Comparison:
    """How often each of three policies reaches the goal, computed, and how often it falls."""
    game = lake(horizon, 0)
    rows = []
    for name, falls, pays in ((NO_BUDGETS, math.inf, 0.0), (PUNISHED, math.inf, -1.0), (IN_EQUILIBRIUM, 0, 0.0)):
        policy = ace.solve(lake(horizon, falls, pays), ace.CE()).policy
        value = reaches_goal(game, policy)
        rollouts = ace.simulate(game, policy, episodes=episodes, rng=0)
        rows.append(Compared(name, policy, value, np.array([value]), rollouts))
    return Comparison(game, tuple(rows))


def reaches_goal(game: ace.MarkovGame, policy: ace.Policy) -> float:
    """The probability of reaching the goal under a policy: its expected reward in the game."""
    here, value = {(game.states[s], (0,)): p for s, p in game.initial}, 0.0
    for t in range(game.horizon):
        there: dict = {}
        for (state, spent), share in here.items():
            for action, chance in policy.distribution(t, state, spent).items():
                row = game.legal(t, state)[action]
                value += share * chance * float(game.layer(t).reward[row, 0])
                for p, following, (cost,) in game.outcomes(t, row):
                    key = following, (spent[0] + int(cost),)
                    there[key] = there.get(key, 0.0) + share * chance * p
        here = there
    return value


def report(found: Comparison, certificate: ace.Certificate) -> str:
    """The table, and what it says in words."""
    free, punished, safe = found.rows
    lines = [
        str(found),
        "",
        f"- Without a budget the goal is reached with probability {free.total:.3f}; {free.broken:.1%} of episodes fall.",
        f"- Where a fall pays -1, with probability {punished.total:.3f}; {punished.broken:.1%} of episodes fall.",
        f"- With no fall for certain, with probability {safe.total:.3f}.",
        f"- The policy was checked independently: {'certified' if certificate.ok else 'NOT CERTIFIED'}.",
    ]
    return "\n".join(lines)


def draw(found: Comparison, folder: str) -> None:
    """Where play without and with the budget goes, and how the goal is reached over time."""
    figure, (free, safe, over_time) = panels(3, size=(3.9, 4.0))
    for ax, name, title in (
        (free, NO_BUDGETS, "without a budget"),
        (safe, IN_EQUILIBRIUM, "no fall, for certain"),
    ):
        visited(ax, found, name)
        ax.set_title(f"{title}: goal {found[name].total:.1%}", fontsize=10)
    for row in found.rows:
        over = row.rollouts.state[:, 1:] == found.game.states.index(ace.learn.END)
        fallen = row.rollouts.spent[:, :, 0] > 0
        for what, share, line in (("goal", over & ~fallen, "-"), ("fallen", fallen, ":")):
            line = "--" if row.name == PUNISHED and line == "-" else line
            steps = range(1, found.game.horizon + 1)
            over_time.plot(steps, share.mean(axis=0), line, color=COLOURS[row.name], label=f"{what}, {short(row.name)}")
    over_time.set(xlabel="steps played", ylabel="share of episodes", ylim=(-0.02, 1))
    over_time.legend(fontsize=7, frameon=False, loc="upper left")
    over_time.spines[["top", "right"]].set_visible(False)
    save(figure, folder, "frozen_lake.png")


def short(name: str) -> str:
    """A name for the legend."""
    return {NO_BUDGETS: "no budget", PUNISHED: "a fall pays -1"}.get(name, "never a fall")


def visited(ax, found: Comparison, name: str) -> None:
    """The lake: how many episodes visit each cell, and what the policy does there half-way."""
    from matplotlib.patches import Rectangle

    game, row = found.game, found[name]
    seen = {game.states[s]: float((row.rollouts.state == s).any(axis=1).mean()) for s in range(len(game.states))}
    marks = {cell: word for letter, word in ((b"S", "start"), (b"G", "goal"), (b"H", "")) for cell in cells(letter)}
    for cell in range(64):
        y, x = divmod(cell, 8)
        y, hole = 7 - y, cell in cells(b"H")
        shade = "#444444" if hole else (1 - 0.75 * seen.get(cell, 0), 1 - 0.45 * seen.get(cell, 0), 1.0)
        ax.add_patch(Rectangle((x, y), 1, 1, facecolor=shade, edgecolor="#bbbbbb", linewidth=0.5))
        if marks.get(cell):
            ax.text(x + 0.5, y + 0.06, marks[cell], ha="center", va="bottom", fontsize=6, color="#333333")
        if seen.get(cell):
            for (action,), share in (
                row.policy.distribution(game.horizon // 2, cell, [0]).items() if known(row, game, cell) else ()
            ):
                dx, dy = ARROWS[action]
                ax.annotate(
                    "",
                    (x + 0.5 + 0.32 * dx, y + 0.52 + 0.32 * dy),
                    (x + 0.5 - 0.22 * dx, y + 0.52 - 0.22 * dy),
                    arrowprops={"arrowstyle": "->", "color": COLOURS[name], "alpha": share, "linewidth": 1.2},
                )
    ax.set(xlim=(-0.02, 8.02), ylim=(-0.02, 8.02), aspect="equal")
    ax.axis("off")


def known(row: Compared, game: ace.MarkovGame, cell: int) -> bool:
    """Whether play can be in a cell half-way."""
    return bool((row.rollouts.state[:, game.horizon // 2] == game.states.index(cell)).any())


if __name__ == "__main__":
    run(main)
