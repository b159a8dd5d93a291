"""Which budgets would do, and what a budget is worth; or why that is not in the page."""

from __future__ import annotations

from typing import Any

from acegames.errors import AceError, TooLarge
from acegames.model.budgets import has_schedule
from acegames.model.words import called, shown
from acegames.policy.on_demand import count_pairs
from acegames.policy.situations import View
from acegames.safety.frontier import Frontier
from acegames.solving.curve import curve_of
from acegames.solving.curve_budgets import spread
from acegames.solving.pipeline import Solution
from acegames.system.progress import OnProgress

MOST_PAIRS = 400_000
"""Stage games up to which a curve, one more solve per constraint, is made: seconds."""
FRONTIER_PAIRS = 2_000_000
"""Stage games up to which minimal budgets of several constraints are computed; they can be slow."""
MOST_CURVES = 6
POINTS = 61
MOST_MINIMAL = 400


def minimal(view: View, progress: OnProgress | None = None) -> tuple[Frontier | None, str]:
    """Minimal budgets of every time and state, of the game as counted; or None and why."""
    if not view.game.constraints:
        return None, "This game has no budgets."
    pairs = count_pairs(view.policy.layers)
    if len(view.game.constraints) > 1 and pairs > FRONTIER_PAIRS:
        return None, f"Left out: the game has {pairs:,} stage games. `acegames frontier GAME` computes it."
    try:
        return Frontier(view.counted, progress), ""
    except TooLarge as error:
        return None, f"Left out: {error}."


def frontier_data(view: View, frontier: Frontier | None, note: str) -> dict[str, Any]:
    """The minimal budgets at the start, for the page."""
    if frontier is None:
        return {"rows": [], "note": note, "number": 0}
    rows, said = frontier.at_root(), []
    kept = spread(0, len(rows) - 1, MOST_MINIMAL)
    if len(kept) < len(rows):
        said.append(f"Thinned: {len(kept):,} of {len(rows):,} minimal budgets, evenly spread.")
    if has_schedule(view.game):
        said.append(
            "The budget is a schedule: each amount stands for its last finite entry, the others are shifted along."
        )
    if not view.policy.tracker.exact:
        said.append("Costs are as the policy counts them, that is, rounded.")
    return {"rows": [[shown(x) for x in rows[k]] for k in kept], "note": " ".join(said), "number": len(rows)}


def curves(
    view: View, solution: Solution, frontier: Frontier | None, note: str, progress: OnProgress | None = None
) -> list[dict[str, Any]]:
    """What each budget is worth, the others as they are; or a note on why that is left out.

    `note` says why there are no minimal budgets, without which there is no curve.
    """
    few = range(min(len(view.game.constraints), MOST_CURVES))
    found = (_curve(solution, m, frontier, note, progress) for m in few)
    return [{"constraint": m, "budgets": [], "values": [], "notes": [], **curve} for m, curve in enumerate(found)]


def _curve(
    solution: Solution, m: int, frontier: Frontier | None, note: str, progress: OnProgress | None
) -> dict[str, Any]:
    label, pairs = solution.game.constraints[m], count_pairs(solution.policy.layers)
    if all(isinstance(row[m], float) for row in solution.game.budgets):
        return {"notes": ["This constraint has no limit."]}
    if pairs > MOST_PAIRS:
        left_out = f"Left out: it takes another solve, and this one has {pairs:,} stage games. "
        return {"notes": [f"{left_out}`acegames frontier GAME --curve --constraint {called(label)}` shows it."]}
    if frontier is None:
        return {"notes": [note.removesuffix(".")]}
    try:
        curve = curve_of(solution, label, points=POINTS, frontier=frontier, progress=progress)
    except AceError as error:
        return {"notes": [f"Left out: {error}"]}
    return {
        "budgets": [shown(x) for x in curve.budgets[:, m]],
        "values": [[shown(x) for x in row] for row in curve.values],
        "notes": [note.replace("; points= shows more", "") for note in curve.notes],
    }
