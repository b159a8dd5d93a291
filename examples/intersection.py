"""An intersection with shared risk: selfish drivers, one budget.

At each green phase a car from the north and a car from the east meet; each yields or dares. It is
the game of chicken, with one thing more: daring costs risk, on ice twice as much, and on ice even
careful cars may slide. The city allows the crossing a fixed amount of risk for the whole day,
whoever causes it. The game is `intersection` of the catalog.

Here a planner needs no risk at all: the best for all is that everybody yields. What eats the budget
is selfishness. So budgets kept on average are safe for a planner who serves both roads, and unsafe
for one who serves the north road.

Run: python examples/intersection.py [folder for pictures]
"""

from __future__ import annotations

from showing import panels, report, run, save, spending_panels

import acegames as ace
from acegames.baselines import Comparison, compare, expected_budgets

PARTIAL = "kept on average, best for north"


def main(folder: str | None = None, *, episodes: int = 20_000, horizon: int = 8) -> Comparison:
    """Solve, compare, print the report; with a folder, draw."""
    game = ace.catalog.get("intersection", horizon=horizon, budget=horizon - 2)
    concept = ace.CE()
    solution = ace.solve(game, concept)
    north = expected_budgets(game, "north")
    found = compare(game, concept, episodes=episodes).with_policy(PARTIAL, north, north.values)
    print(report(found, ace.verify(game, solution.policy, concept)))
    print(f"- A planner who serves the north road alone breaks the budget in {found[PARTIAL].broken:.1%} of episodes.")
    if folder is not None:
        figure, axes = panels()
        spending_panels(found, "risk", list(axes[:2]), average=PARTIAL)
        wide = ace.catalog.get("intersection", horizon=horizon, budget=2 * horizon)
        ace.plot.budget_curve(ace.budget_curve(wide, concept), ax=axes[2])
        axes[2].set_title("what each risk budget is worth\n(more is not better)", fontsize=10)
        save(figure, folder, "intersection.png")
    return found


if __name__ == "__main__":
    run(main)
