"""The last unit: how a right to a scarce budget pays for cooperation.

Two neighbours first decide whether to work for each other: working costs 4 and gives the other 20.
Then one unit is left of a budget that they share, and whoever uses it gets 10. Nobody works if what
comes later does not depend on it, and that is what an equilibrium chosen stage by stage looks like.
With memory the unit can be promised: to those who worked. The promise holds because the budget
holds: where one is told to use the unit, the other cannot.

Run: python examples/last_unit.py [folder for pictures]
"""

from __future__ import annotations

from showing import panels, report, run, save

import acegames as ace
from acegames.baselines import Comparison, compare

BEST = "at every moment, best equilibrium"


def last_unit(budget: int = 1) -> ace.MarkovGame:
    """First to work or to rest; then to use a unit of the budget, or to leave it."""
    return ace.MarkovGame.from_functions(
        players=["red", "blue"],
        horizon=2,
        initial="village",
        budget={"unit": budget},
        actions=lambda t, state: [("use", "leave") if t else ("work", "rest")] * 2,
        outcomes=lambda t, state, action: [(1, state, action.count("use"))],
        reward=lambda t, state, action: [
            20 * (other == "work") - 4 * (own == "work") + 10 * (own == "use") for own, other in (action, action[::-1])
        ],
        name="last unit",
    )


def main(folder: str | None = None, *, episodes: int = 20_000) -> Comparison:
    """Solve, compare, print the report; with a folder, draw."""
    game, concept = last_unit(), ace.CE()
    payoffs = ace.payoffs(game, concept, tol=0)
    policy = payoffs.policy("egalitarian")
    found = compare(game, concept, episodes=episodes).with_policy(BEST, policy, policy.values_at_start)
    print(report(found, ace.verify(game, ace.solve(game, concept).policy, concept)))
    print(f"- {ace.verify(game, policy, best='egalitarian').optimality}")
    told = ace.simulate(game, policy, episodes=episodes, rng=0)
    lazy = ace.simulate(game, policy, episodes=episodes, rng=0, deviate={"blue": rest})
    print(
        f"- Blue who works earns {told.returns[:, 1].mean():.2f}, and {lazy.returns[:, 1].mean():.2f} if it rests instead."
    )
    if folder is not None:
        figure, (left, right) = panels(2, size=(4.9, 3.4))
        ace.plot.payoffs(payoffs, ax=left)
        left.set_title("what equilibria are worth", fontsize=10)
        worth(right)
        save(figure, folder, "last_unit.png")
    return found


def rest(t: int, state: str, spent: object, told: str) -> str:
    """Rest whatever one is told, and do as one is told later."""
    return told if t else "rest"


def worth(ax) -> None:
    """Draw what each budget is worth for both together, stage by stage and at best."""
    budgets, concept = (0, 1, 2), ace.CE()
    by_stage = [ace.solve(last_unit(b), concept).values.sum() for b in budgets]
    best = [ace.payoffs(last_unit(b), concept, tol=0).best().sum() for b in budgets]
    for shift, sums, name, hatch in ((-0.2, by_stage, "stage by stage", "//"), (0.2, best, "best equilibrium", "")):
        bars = ax.bar([b + shift for b in budgets], sums, 0.38, label=name, hatch=hatch, edgecolor="white")
        ax.bar_label(bars, fmt="%.3g")
    ax.set(xticks=budgets, xlabel="budget of units", ylabel="sum of values")
    ax.set_title("what a budget is worth\n(scarce is best)", fontsize=10)
    ax.legend(frameon=False, fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    run(main)
