"""Drone relief: two drones, two batteries, wind.

A flooded valley, three villages waiting for a parcel each, two drones that start at the ends of the
dry ground. Flying, hovering and delivering take energy, and a gust doubles what a flight takes. At
the depot lies one spare pack. A drone whose battery runs out over the flood is lost, with its
parcel: the batteries are hard budgets. Each drone's operator earns the worth of what it delivers,
and a little for what the other delivers. The game is `drones` of the catalog.

Run: python examples/drone_relief.py [folder for pictures]
"""

from __future__ import annotations

from showing import panels, report, run, save, spending_panels

import acegames as ace
from acegames.baselines import Comparison, compare


def main(folder: str | None = None, *, episodes: int = 20_000, horizon: int = 7) -> Comparison:
    """Solve, compare, print the report; with a folder, draw."""
    game = ace.catalog.get("drones", horizon=horizon, battery=5)
    concept = ace.CE()
    solution = ace.solve(game, concept)
    found = compare(game, concept, episodes=episodes)
    print(report(found, ace.verify(game, solution.policy, concept)))
    if folder is not None:
        figure, axes = panels()
        spending_panels(found, "red battery", list(axes[:2]))
        ace.plot.budget_curve(solution.budget_curve(), ax=axes[2])
        axes[2].set_title("what each pair of batteries is worth\n(dot: the smallest feasible)", fontsize=10)
        axes[2].get_legend().remove()
        save(figure, folder, "drone_relief.png")
    return found


if __name__ == "__main__":
    run(main)
