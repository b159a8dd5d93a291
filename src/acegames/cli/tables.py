"""Games, frontiers and curves as the command-line program shows them."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.table import Column, Table

import acegames as ace
from acegames.cli.screen import by_label, escape, one_line, out, own_budget, table
from acegames.cli.text_plot import plot_frontier
from acegames.model.words import number
from acegames.safety.frontier import last_finite
from acegames.solving.curve import SCHEDULE

BAR = 24  # characters of the longest bar of a curve


def describe(game: ace.MarkovGame) -> dict[str, Any]:
    """The main facts of a game."""
    return {
        "name": game.name,
        "players": list(map(str, game.players)),
        "states": len(game.states),
        "actions_per_player": [len(a) for a in game.actions],
        "horizon": game.horizon,
        "budget": by_label(game.constraints, own_budget(game).values()),
        "budget_is_a_schedule": len(set(game.budgets)) > 1,
        "digest": game.digest,
    }


def show_game(game: ace.MarkovGame, **more: Any) -> None:
    """Print a game as a table with further lines; its digest stands alone, never cut."""
    facts = describe(game)
    digest = facts.pop("digest")
    found = Table(Column(), Column(overflow="fold"), show_header=False)
    for key, value in {**facts, **more}.items():
        shown = ", ".join(f"{k} {number(v)}" for k, v in value.items()) or "none" if isinstance(value, dict) else value
        listed = ", ".join(map(str, shown)) if isinstance(shown, list) else str(shown)
        found.add_row(key.replace("_", " "), escape(listed))
    out.print(found)
    out.print(f"digest {digest}", soft_wrap=True)


def show_frontier(game: ace.MarkovGame, budgets: Any, most: int, meaning: str, *, feasible: bool) -> None:
    """Print the minimal budgets as a table, and draw them where there are two."""
    out.print(f"[bold]Minimal budgets[/]: {meaning}")
    out.print(table(game.constraints, ([number(x) for x in budget] for budget in budgets[:most])))
    if len(budgets) > most:
        out.print(f"... and {len(budgets) - most:,} more (--most)")
    own = ", ".join(f"{c} {number(b)}" for c, b in own_budget(game).items())
    out.print(escape(f"The game's own budget: {own}" + ("" if feasible else ", which is not enough")))
    _draw_frontier(game, budgets, feasible=feasible)
    if len(set(game.budgets)) > 1:
        out.print(SCHEDULE)


def _draw_frontier(game: ace.MarkovGame, budgets: Any, *, feasible: bool) -> None:
    """Draw the minimal budgets where just two constraints are bounded."""
    points = np.array(budgets, dtype=np.float64)
    bounded = np.flatnonzero(np.isfinite(points).all(axis=0))
    if len(bounded) != 2:
        return
    (x, y), schedules = bounded, list(zip(*game.budgets, strict=True))
    own = (float(last_finite(schedules[x])), float(last_finite(schedules[y])))
    names = (one_line(game.constraints[x]), one_line(game.constraints[y]))
    ascii_only = out.options.ascii_only
    out.print()
    for line in plot_frontier(names, points[:, [x, y]], own, enough=feasible, width=out.width, ascii_only=ascii_only):
        out.print(line)


def show_curve(curve: ace.BudgetCurve) -> None:
    """Print values by budget, with a bar for their sum, from zero where none is negative."""
    concept = curve.concept
    out.print(f"\n[bold]Value of budget[/]: {type(concept).__name__}, objective {escape(str(concept.objective))}")
    total = curve.values.sum(axis=1)
    low, high = min(0.0, np.nanmin(total)), np.nanmax(total)
    what = "sum of values" if len(curve.players) > 1 else ""
    found = table(curve.heads, [])
    found.add_column(what if low == 0 else f"{what} above {low:.6g}".strip())
    full = "#" if out.options.ascii_only else "█"
    for line, level, least in zip(curve.lines, total, curve.is_minimal, strict=True):
        bar = "" if np.isnan(level) else full * (1 + round((BAR - 1) * (level - low) / ((high - low) or 1.0)))
        found.add_row(*line, bar + " minimal" * bool(least))
    out.print(found)
    for note in curve.notes:
        out.print(escape(note.replace("points=", "--points")))


def curve_data(curve: ace.BudgetCurve) -> dict[str, Any]:
    """A curve for JSON; values are null where a budget is infeasible or has no equilibrium."""
    values = [None if np.isnan(row).any() else row.tolist() for row in curve.values]
    names = ("constraint", "concept", "players", "budgets", "values", "feasible", "minimal", "is_minimal", "steps")
    found = {name: getattr(curve, name) for name in (*names, "thinned")}
    return {**found, "concept": repr(curve.concept), "values": values}
