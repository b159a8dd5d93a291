"""Network slicing: two tenants, one base station, costs that no grid fits.

Two tenants rent slices of one base station: video and sensors. In each period a tenant runs lean or
rich. How much airtime a period takes is a continuous random quantity, larger when the cell is busy;
rich video also takes backhaul traffic, which the operator has bought in advance. What was agreed
for airtime (other cells need the rest of the band) and what was bought of backhaul must never be
exceeded: the excess would be cut off in the middle of a call.

Continuous costs cannot be counted exactly, so the game is solved within an epsilon: with costs
rounded down no budget is ever exceeded by more than epsilon, and nothing safe is missed; with costs
rounded up none is ever exceeded.

Run: python examples/network_slicing.py [folder for pictures]
"""

from __future__ import annotations

from showing import panels, report, run, save, spending_panels

import acegames as ace
from acegames.baselines import Comparison, compare

MODES = ("lean", "rich")
CROWDING = {"quiet": 1.0, "busy": 1.4}  # how much more airtime the same service takes
DEMAND = {"quiet": 1.0, "busy": 2.0}
STAY = 0.7  # how often the load stays as it is
AIRTIME, BACKHAUL = "airtime (s)", "backhaul (GB)"
ROUNDED_UP = "at every moment, rounded up"


def slices(periods: int = 6, airtime: float = 3.6, backhaul: float = 1.6) -> ace.MarkovGame:
    """The game: the state is the load of the cell."""
    from scipy import stats

    def outcomes(t, load, action):
        video, sensors = (mode == "rich" for mode in action)
        width = round((0.3 + 0.5 * video + 0.35 * sensors) * CROWDING[load], 3)
        cost = {
            AIRTIME: stats.beta(2, 3, loc=0.1, scale=width),
            BACKHAUL: stats.beta(2, 2, scale=0.4 + 0.2 * DEMAND[load]) if video else 0.1,
        }
        other = "busy" if load == "quiet" else "quiet"
        return [(STAY, load, cost), (1 - STAY, other, cost)]

    def reward(t, load, action):
        """What users pay; a rich neighbour costs a little, by interference."""
        video = 3 * DEMAND[load] if action[0] == "rich" else 1.0
        sensors = 2 * DEMAND[load] if action[1] == "rich" else 0.5
        return video - 0.3 * (action[1] == "rich"), sensors - 0.3 * (action[0] == "rich")

    return ace.MarkovGame.from_functions(
        name="network slicing",
        players=["video", "sensors"],
        horizon=periods,
        initial="quiet",
        budget={AIRTIME: airtime, BACKHAUL: backhaul},
        actions=lambda t, load: [MODES, MODES],
        outcomes=outcomes,
        reward=reward,
    )


def main(folder: str | None = None, *, episodes: int = 20_000, epsilon: float = 0.2) -> Comparison:
    """Solve, compare, print the report; with a folder, draw."""
    game, concept = slices(), ace.CE()
    solution = ace.solve(game, concept, epsilon=epsilon)
    never = ace.solve(game, concept, epsilon=epsilon, rounding="up")
    found = compare(game, concept, episodes=episodes, epsilon=epsilon).with_policy(
        ROUNDED_UP, never.policy, never.values
    )
    print(report(found, ace.verify(game, solution.policy, concept)))
    print(f"- {solution.guarantee}")
    print(f"- Rounded up, the equilibrium is worth {never.values.sum():.2f} and no true budget is ever exceeded.")
    if folder is not None:
        figure, axes = panels()
        spending_panels(found, AIRTIME, list(axes[:2]), safe="kept within epsilon")
        _bracket(game, concept, axes[2])
        save(figure, folder, "network_slicing.png")
    return found


def _bracket(game: ace.MarkovGame, concept: ace.CE, ax) -> None:
    """Values with costs rounded down and up, as epsilon shrinks."""
    sizes = (0.8, 0.4, 0.2, 0.1)
    for rounding, style, colour in (("down", "o-", "#0072B2"), ("up", "s--", "#D55E00")):
        worth = [ace.solve(game, concept, epsilon=e, rounding=rounding).values.sum() for e in sizes]
        words = "down: over by at most epsilon" if rounding == "down" else "up: never over"
        ax.plot(sizes, worth, style, color=colour, label=f"rounded {words}")
    ax.set(xlabel="epsilon", ylabel="sum of values", xscale="log", xticks=sizes)
    ax.set_xticks(sizes, [f"{e:g}" for e in sizes])
    ax.minorticks_off()
    ax.set_title("what epsilon costs", fontsize=10)
    ax.legend(frameon=False, fontsize=8)


if __name__ == "__main__":
    run(main)
