"""Which budgets would do, and what a budget is worth; or why that is not in the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from acegames.errors import AceError, TooLarge
from acegames.model.words import called, shown
from acegames.policy.on_demand import count_pairs
from acegames.policy.situations import View
from acegames.safety.frontier import Frontier
from acegames.solving.pipeline import Solution

MOST_PAIRS = 400_000
"""Stage games up to which a curve, one more solve per constraint, is made: seconds."""
FRONTIER_PAIRS = 2_000_000
"""Stage games up to which minimal budgets of several constraints are computed: they can take much longer than the solve."""
MOST_CURVES = 6
POINTS = 61
MOST_MINIMAL = 400


@dataclass(frozen=True, eq=False)
class Minimal:
    """The frontier, or None and why."""

    frontier: Frontier | None
    note: str = ""


def minimal(view: View) -> Minimal:
    """Minimal budgets of every time and state, of the game as counted."""
    if not view.game.constraints:
        return Minimal(None, "This game has no budgets.")
    pairs = count_pairs(view.policy.layers)
    if len(view.game.constraints) > 1 and pairs > FRONTIER_PAIRS:
        return Minimal(None, f"Left out: the game has {pairs:,} stage games. `acegames frontier GAME` computes it.")
    try:
        return Minimal(Frontier(view.counted))
    except TooLarge as error:
        return Minimal(None, f"Left out: {error}.")


def frontier_data(view: View, found: Minimal) -> dict[str, Any]:
    """The minimal budgets at the start, for the page."""
    if found.frontier is None:
        return {"rows": [], "note": found.note, "number": 0}
    rows = found.frontier.at_root()
    kept = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_MINIMAL), dtype=np.int64)).tolist()
    said = (
        [] if len(kept) == len(rows) else [f"Thinned: {len(kept):,} of {len(rows):,} minimal budgets, evenly spread."]
    )
    if len(set(view.game.budgets)) > 1:
        said.append(
            "The budget is a schedule: each amount stands for its last finite entry, the others are shifted along."
        )
    if not view.policy.tracker.exact:
        said.append("Costs are as the policy counts them, that is, rounded.")
    return {"rows": [[shown(x) for x in rows[k]] for k in kept], "note": " ".join(said), "number": len(rows)}


def curves(view: View, solution: Solution) -> list[dict[str, Any]]:
    """What each budget is worth, the others being the game's own; or a note on why that is left out."""
    pairs = count_pairs(solution.policy.layers)
    found = []
    for m, label in enumerate(view.game.constraints[:MOST_CURVES]):
        entry: dict[str, Any] = {"constraint": m, "budgets": [], "values": [], "notes": []}
        finite = any(not isinstance(row[m], float) for row in view.game.budgets)
        if not finite:
            entry["notes"] = ["This constraint has no limit."]
        elif pairs > MOST_PAIRS:
            entry["notes"] = [
                f"Left out: it takes another solve, and this one has {pairs:,} stage games. "
                f"`acegames frontier GAME --curve --constraint {called(label)}` shows it."
            ]
        else:
            entry |= _curve(solution, m)
        found.append(entry)
    return found


def _curve(solution: Solution, m: int) -> dict[str, Any]:
    try:
        curve = solution.budget_curve(solution.game.constraints[m], points=POINTS)
    except AceError as error:
        return {"notes": [f"Left out: {error}"]}
    return {
        "budgets": [shown(x) for x in curve.budgets[:, m]],
        "values": [[shown(x) for x in row] for row in curve.values],
        "notes": [note.replace("; points= shows more", "") for note in curve.notes],
    }
