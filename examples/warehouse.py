"""A warehouse: two robots, two batteries, one charging pad.

Two robots fetch parcels at the rack and bring them to the door of a small hall. Each step takes a
unit of battery; on the pad in the middle a battery is filled, and what does not fit is lost. The
robots may never be in the same cell or change places, so they must take turns at the pad, and a
robot that runs dry blocks the hall: each battery is a reservoir that may never be overdrawn. The
game is `warehouse` of the catalog.

Run: python examples/warehouse.py [folder for pictures]
"""

from __future__ import annotations

import numpy as np
from showing import panels, run, save

import acegames as ace
from acegames.baselines import Comparison, compare
from acegames.baselines.comparison import AS_A_TEAM, IN_EQUILIBRIUM, NO_BUDGETS

COLOURS = {"red": "#D55E00", "blue": "#0072B2"}
SHOWN = 6  # moments of an episode


def main(folder: str | None = None, *, episodes: int = 20_000, horizon: int = 16, capacity: int = 5) -> Comparison:
    """Solve, compare, print the report; with a folder, draw."""
    game = ace.catalog.get("warehouse", horizon=horizon, capacity=capacity)
    concept = ace.CE()
    solution = ace.solve(game, concept)
    found = compare(game, concept, episodes=episodes)
    certificate = ace.verify(game, solution.policy, concept)
    print(report(found, certificate, endless(game, concept)))
    if folder is not None:
        draw(game, found, folder)
    return found


def endless(game: ace.MarkovGame, concept: ace.CE) -> float:
    """What plain budgets would promise, under which energy can be stored without end."""
    capacities = {label: kept.capacity for label, kept in zip(game.constraints, game.reservoirs, strict=True)}
    table, rest = game.to_table()
    plain = ace.MarkovGame.from_table(table, **rest | {"budget": capacities})
    return float(ace.solve(plain, concept).values.sum())


def report(found: Comparison, certificate: ace.Certificate, plain: float) -> str:
    """The table, and what it says in words."""
    free, team, safe = (found[name] for name in (NO_BUDGETS, AS_A_TEAM, IN_EQUILIBRIUM))
    lost = safe.rollouts.wasted.mean(axis=0)
    smallest = "; ".join(f"{red:g} and {blue:g}" for red, blue in ace.feasibility(found.game).minimal_budgets)
    lines = [
        str(found),
        "",
        f"- With batteries that need no charging play is worth {free.total:.2f} in total.",
        f"- Kept at every moment, the batteries leave a planner {team.total:.2f}, selfish robots in equilibrium {safe.total:.2f}.",
        f"- Counted as plain budgets, with no capacity, they would promise {plain:.2f}: energy that no battery can hold.",
        f"- What did not fit, on average: {lost[0]:.2f} of red, {lost[1]:.2f} of blue.",
        f"- The smallest capacities that suffice, of red and blue: {smallest}.",
        f"- The equilibrium was checked independently: {'certified' if certificate.ok else 'NOT CERTIFIED'}.",
    ]
    return "\n".join(lines)


def draw(game: ace.MarkovGame, found: Comparison, folder: str) -> None:
    """The hall at some moments of an episode; the levels in it, and in all episodes; capacities."""
    rollouts = found[IN_EQUILIBRIUM].rollouts
    figure, axes = panels(SHOWN, rows=2, size=(1.95, 2.6))
    begun = np.zeros((len(rollouts.spent), 1, 2))
    level = [float(kept.capacity) for kept in game.reservoirs] - np.concatenate([begun, rollouts.spent], axis=1)
    for ax, t in zip(axes[0], np.linspace(0, game.horizon, SHOWN).astype(int), strict=True):
        hall(ax, game, game.states[rollouts.state[0, t]], level[0, t], t)
    grid = axes[1, 0].get_gridspec()
    for ax in axes[1]:
        ax.remove()
    own, many, enough = (figure.add_subplot(grid[1, 2 * k : 2 * k + 2]) for k in range(3))
    levels(own, game, level[0])
    ace.plot.spending(rollouts, game, constraint="red battery", ax=many)
    many.set_title("red battery, all episodes", fontsize=10)
    many.legend(fontsize=6, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.22), frameon=False)
    ace.plot.frontier(game, ax=enough)
    enough.set_title("which capacities suffice", fontsize=10)
    enough.legend(fontsize=6, loc="upper right", framealpha=0.9, edgecolor="none")
    save(figure, folder, "warehouse.png")


def hall(ax, game: ace.MarkovGame, places, level, t: int) -> None:
    """The robots in the hall, each with its battery beside it."""
    from matplotlib.patches import Circle, Rectangle

    width, height = (1 + max(place[k] for state in game.states for place in state) for k in (0, 1))
    for x, y in np.ndindex(width, height):
        ax.add_patch(Rectangle((x, y), 1, 1, facecolor="white", edgecolor="#cccccc"))
    for (x, y), name in {(width // 2, height - 1): "rack", (width // 2, 0): "door", (1, 1): "pad"}.items():
        ax.add_patch(Rectangle((x, y), 1, 1, facecolor="#eeeeee", edgecolor="#aaaaaa"))
        ax.text(x + 0.5, y + 0.06, name, ha="center", va="bottom", fontsize=7, color="#555555")
    for place, left, name, kept in zip(places, level, game.players, game.reservoirs, strict=True):
        x, y, parcel = place
        ax.add_patch(Circle((x + 0.4, y + 0.58), 0.24, facecolor=COLOURS[name], edgecolor="#222222", zorder=3))
        ax.text(x + 0.4, y + 0.57, name[0].upper() + "+" * parcel, ha="center", va="center", color="white", zorder=4)
        ax.add_patch(Rectangle((x + 0.74, y + 0.3), 0.16, 0.6, facecolor="white", edgecolor="#222222", zorder=3))
        share = left / float(kept.capacity)
        ax.add_patch(Rectangle((x + 0.74, y + 0.3), 0.16, 0.6 * share, facecolor=COLOURS[name], zorder=4))
    ax.set(xlim=(-0.05, width + 0.05), ylim=(-0.05, height + 0.05), aspect="equal", xticks=[], yticks=[])
    ax.set_title("start" if t == 0 else f"after {t} steps", fontsize=9)
    ax.axis("off")


def levels(ax, game: ace.MarkovGame, level) -> None:
    """The levels of both batteries in one episode."""
    for i, (name, line) in enumerate(zip(game.players, ("o-", "s--"), strict=True)):
        ax.step(
            range(game.horizon + 1), level[:, i], line, where="post", color=COLOURS[name], markersize=3.5, label=name
        )
    full = float(game.reservoirs[0].capacity)
    ax.axhline(full, color="#888888", linestyle=":", label="full")
    ax.set(xlabel="steps played", ylabel="level", ylim=(-0.3, full * 1.06))
    ax.set_title("both batteries, this episode", fontsize=10)
    ax.legend(fontsize=6, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.22), frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_xticks(range(0, game.horizon + 1, 4))


if __name__ == "__main__":
    run(main)
