"""Which budgets suffice and what a budget is worth; or why that is left out, and what shows it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from acegames.errors import AceError, TooLarge
from acegames.model.budgets import has_schedule
from acegames.model.game import Label
from acegames.model.words import shown
from acegames.policy.policy_file import count_pairs
from acegames.policy.situations import View
from acegames.safety.frontier import Frontier
from acegames.solving.curve import MORE, SMALLEST, curve_of
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
SHOWS = "This shows it:"


class Note(NamedTuple):
    """A sentence of the page, and a command that can be copied from it; "" for none."""

    words: str
    command: str = ""

    def __str__(self) -> str:
        return f"{self.words} {self.command}" if self.command else self.words


def minimal(view: View, hints: Hints, progress: OnProgress | None = None) -> tuple[Frontier | None, Note]:
    """Return the minimal budgets of every time and state of the game as counted, or None and
    why.
    """
    if not view.game.constraints:
        return None, Note("This game has no budgets.")
    pairs = count_pairs(view.policy.layers)
    if len(view.game.constraints) > 1 and pairs > FRONTIER_PAIRS:
        return None, Note(f"Left out: the solve had {pairs:,} stage games. {SHOWS}", hints.minimal)
    try:
        return Frontier(view.counted, progress), Note("")
    except TooLarge as error:
        return None, Note(f"Left out: {error}.")


def frontier_data(view: View, frontier: Frontier | None, note: Note) -> dict[str, Any]:
    """Return the minimal budgets at the start, for the page."""
    if frontier is None:
        return {"rows": [], "notes": [note], "number": 0}
    rows, said = frontier.at_root(), []
    listed = spread(0, len(rows) - 1, MOST_MINIMAL)
    if len(listed) < len(rows):
        said.append(f"Thinned: {len(listed):,} of {len(rows):,} smallest budgets, evenly spread.")
    if has_schedule(view.game):
        said.append(
            "The budget changes with time. Each amount here is its last limit; the earlier limits are raised or "
            "lowered by as much."
        )
    if not view.policy.tracker.exact:
        said.append("Costs are rounded, as the policy counts them.")
    notes = [Note(words) for words in said]
    return {"rows": [[shown(x) for x in rows[k]] for k in listed], "notes": notes, "number": len(rows)}


def curves(
    solution: Solution, frontier: Frontier | None, note: Note, hints: Hints, progress: OnProgress | None = None
) -> list[dict[str, Any]]:
    """Return what each budget is worth, the others as they are; or a note on why that is left out.

    `note` says why there are no minimal budgets, without which there is no curve.
    """
    few = range(min(len(solution.game.constraints), MOST_CURVES))
    computed = (_curve(solution, m, frontier, note, hints, progress) for m in few)
    return [{"constraint": m, "budgets": [], "values": [], "notes": [], **curve} for m, curve in enumerate(computed)]


def _curve(
    solution: Solution, m: int, frontier: Frontier | None, note: Note, hints: Hints, progress: OnProgress | None
) -> dict[str, Any]:
    label, pairs = solution.game.constraints[m], count_pairs(solution.policy.layers)
    if all(isinstance(row[m], float) for row in solution.game.budgets):
        return {"notes": [Note("This constraint has no limit.")]}
    if pairs > MOST_PAIRS:
        left_out = f"Left out: it takes another solve, and this one had {pairs:,} stage games. {SHOWS}"
        return {"notes": [Note(left_out, hints.curve(label))]}
    if frontier is None:
        return {"notes": [note]}
    try:
        curve = curve_of(solution, label, points=POINTS, frontier=frontier, progress=progress)
    except AceError as error:
        return {"notes": [Note(f"Left out: {error}")]}
    return {
        "budgets": [shown(x) for x in curve.budgets[:, m]],
        "values": [[shown(x) for x in row] for row in curve.values],
        "notes": [Note(note.replace(MORE, "").replace(SMALLEST, "")) for note in curve.notes],
    }


# -- what to type for more -------------------------------------------------------------------------


@dataclass(frozen=True)
class Hints:
    """What can be copied from the page and typed for more than it shows."""

    larger: Callable[[int], str]  # makes a page with so many situations
    minimal: str  # shows the minimal budgets
    curve: Callable[[Label], str]  # shows what the budget of this constraint is worth


def in_shell(report: Sequence[str], game: Sequence[str]) -> Hints:
    """Return commands, for a page that the program wrote.

    Args:
        report: the words after `acegames report` that made the page.
        game: those that name its game.
    """
    frontier = ["acegames", "frontier", *game]
    return Hints(
        larger=lambda most: shlex.join(["acegames", "report", *report, "--most", str(most)]),
        minimal=shlex.join(frontier),
        curve=lambda constraint: shlex.join([*frontier, "--curve", "--constraint", str(constraint)]),
    )


def in_python(path: str | None = None) -> Hints:
    """Return code, for a page that Python code made, and wrote to this path."""
    return Hints(
        larger=lambda most: f"solution.report({'' if path is None else f'{path!r}, '}most={most})",
        minimal="acegames.feasibility(solution.game).minimal_budgets",
        curve=lambda constraint: f"solution.budget_curve({constraint!r})",
    )
