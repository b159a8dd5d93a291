"""A clinic's dose scheduling: two departments, one pair of kidneys.

A patient has a tumour and an infection. Each week oncology chooses a dose of chemotherapy and the
infection ward a dose of antibiotic: none, low or high. Both drugs burden the kidneys, chemotherapy
also the bone marrow. Neither burden may ever exceed its limit: kidneys and marrow that fail do not
come back, so a limit that holds on average is no limit. The kidneys have one limit for the whole
course; the marrow's is raised week by week, as it recovers (a schedule).

Response is random, and tied to toxicity: in one week of four the patient clears the drugs slowly,
and each dose that is given works better and weighs one unit more. The two departments see the state
and what was spent, and each is judged by its own disease first (a point for each step below the
worst, each week) and by the other's a little.

A toy: no number here comes from a patient, and nothing here is medical advice.

Run: python examples/dose_scheduling.py [folder for pictures]
"""

from __future__ import annotations

import itertools

from showing import panels, report, run, save, spending_panels

import acegames as ace
from acegames.baselines import Comparison, compare

DOSES = ("none", "low", "high")
BURDEN = {"none": 0, "low": 1, "high": 2}
SLOW = 0.25  # how often drugs are cleared slowly
TUMOUR = {"none": (0.0, 0.40), "low": (0.40, 0.15), "high": (0.70, 0.05)}  # shrinks, grows
FEVER = {"none": (0.05, 0.30), "low": (0.50, 0.10), "high": (0.80, 0.00)}
WORST = {"tumour": 3, "fever": 2}
OTHER = 0.25  # how much a department minds the other's disease


def clinic(weeks: int = 6, kidneys: int = 8) -> ace.MarkovGame:
    """The game: states are (tumour, fever)."""

    def outcomes(t, state, action):
        """Clearance is drawn first; response and toxicity depend on it."""
        for probability, slow in ((1 - SLOW, 0), (SLOW, 1)):
            weight = [BURDEN[dose] + slow * (dose != "none") for dose in action]
            tumour = _course(state[0], WORST["tumour"], TUMOUR[action[0]], slow and action[0] != "none")
            fever = _course(state[1], WORST["fever"], FEVER[action[1]], slow and action[1] != "none")
            for (a, p), (b, q) in itertools.product(tumour.items(), fever.items()):
                yield probability * p * q, (a, b), {"kidney burden": sum(weight), "marrow burden": weight[0]}

    def reward(t, state, action):
        tumour, fever = WORST["tumour"] - state[0], WORST["fever"] - state[1]
        return tumour + OTHER * fever, fever + OTHER * tumour

    return ace.MarkovGame.from_functions(
        name="clinic",
        players=["oncology", "infection ward"],
        horizon=weeks,
        initial=(2, 1),
        budget={"kidney burden": [kidneys] * weeks, "marrow burden": [2 + t for t in range(weeks)]},
        actions=lambda t, state: [DOSES, DOSES],
        outcomes=outcomes,
        reward=reward,
    )


def _course(level, worst, chances, slow):
    """Where a disease goes: {level: probability}."""
    better, worse = chances
    better += 0.15 * bool(slow)
    found = {}
    for step, p in ((-1, better), (1, worse), (0, 1 - better - worse)):
        after = min(max(level + step, 0), worst)
        found[after] = found.get(after, 0) + p
    return {after: p for after, p in found.items() if p > 0}


def main(folder: str | None = None, *, episodes: int = 20_000, weeks: int = 6) -> Comparison:
    """Solve, compare, print the report; with a folder, draw."""
    game, concept = clinic(weeks), ace.CE()
    solution = ace.solve(game, concept)
    found = compare(game, concept, episodes=episodes)
    print(report(found, ace.verify(game, solution.policy, concept)))
    if folder is not None:
        figure, axes = panels()
        spending_panels(found, "kidney burden", list(axes[:2]))
        ace.plot.policy_map(solution, weeks // 2, (2, 1), ax=axes[2])
        axes[2].set_title(f"week {weeks // 2}, tumour 2, fever 1:\ndoses (chemotherapy, antibiotic)", fontsize=10)
        save(figure, folder, "dose_scheduling.png")
    return found


if __name__ == "__main__":
    run(main)
