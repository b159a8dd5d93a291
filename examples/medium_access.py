"""Medium access: two transmitters, one channel, small batteries.

In each slot a transmitter sends or waits. One that sends alone delivers; two that send at once
collide, and their energy is gone. In a good slot a packet costs one unit and is worth 2, in a bad
slot it costs two and is worth 1. Nobody changes the batteries of a sensor buried in a field: what
they hold is all there is. The game is `medium_access` of the catalog.

Run: python examples/medium_access.py [folder for pictures]
"""

from __future__ import annotations

from showing import panels, report, run, save, spending_panels

import acegames as ace
from acegames.baselines import Comparison, compare


def main(folder: str | None = None, *, episodes: int = 20_000, horizon: int = 10) -> Comparison:
    """Solve, compare, print the report; with a folder, draw."""
    game = ace.catalog.get("medium_access", horizon=horizon, battery=6)
    concept = ace.CE()
    solution = ace.solve(game, concept)
    found = compare(game, concept, episodes=episodes)
    print(report(found, ace.verify(game, solution.policy, concept)))
    if folder is not None:
        figure, axes = panels()
        spending_panels(found, "energy of tx1", list(axes[:2]))
        ace.plot.policy_map(solution, horizon // 2, "good", ax=axes[2])
        axes[2].set_title(f"slot {horizon // 2}, good channel:\nwho sends (tx1, tx2)", fontsize=10)
        save(figure, folder, "medium_access.png")
    return found


if __name__ == "__main__":
    run(main)
