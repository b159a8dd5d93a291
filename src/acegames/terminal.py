"""What the command-line program prints: tables, bars and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

import acegames as ace
from acegames.model.almost_sure import is_almost_sure
from acegames.model.numbers import plain

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def solve_with_bar(work: Callable[[ace.Report], ace.Solution], *, quiet: bool) -> ace.Solution:
    """Run a solve with a bar on a terminal; the bar goes when the work is done."""
    columns = (TextColumn("solving"), BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=err, transient=True, disable=quiet or not sys.stderr.isatty()) as bar:
        task = bar.add_task("finding the situations that safe play can reach", total=None)

        def show(state: ace.Progress) -> None:
            text = (
                f"layer {state.layers_done:,}/{state.layers:,}, {state.pairs_done:,}/{state.pairs:,} stage games, "
                f"{state.pairs_done / max(state.seconds, 1e-9):,.0f}/s, {memory_used() / 2**20:,.0f} MiB, "
                f"{state.seconds_left:,.0f} s left"
            )
            bar.update(task, completed=state.pairs_done, total=state.pairs, description=text)

        return work(show)


def memory_used() -> int:
    """Largest memory that this process has held so far, in bytes."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def show_game(game: ace.MarkovGame, **more: Any) -> None:
    """Print a game as a table, with further lines."""
    table = Table(show_header=False)
    for key, value in {**describe(game), **more}.items():
        shown = ", ".join(f"{k} {number(v)}" for k, v in value.items()) or "none" if isinstance(value, dict) else value
        listed = ", ".join(map(str, shown)) if isinstance(shown, list) else str(shown)
        table.add_row(key.replace("_", " "), escape(listed))
    out.print(table)


def describe(game: ace.MarkovGame) -> dict[str, Any]:
    """The main facts of a game."""
    return {
        "name": game.name,
        "players": list(map(str, game.players)),
        "states": len(game.states),
        "actions_per_player": [len(a) for a in game.actions],
        "horizon": game.horizon,
        "budget": {str(k): v for k, v in own_budget(game).items()},
        "budget_is_a_schedule": len(set(game.budgets)) > 1,
        "digest": game.digest,
    }


def show_values(solution: ace.Solution) -> None:
    """Print each player's value and what the solve took."""
    kinds = {"CE": "Correlated equilibrium", "CCE": "Coarse correlated equilibrium", "Nash": "Nash equilibrium"}
    kind = kinds[type(solution.concept).__name__]
    out.print(f"[bold]{kind}[/], objective {escape(str(solution.concept.objective))}")
    table = Table()
    table.add_column("player")
    table.add_column("value", justify="right")
    for player, value in zip(solution.game.players, solution.values, strict=True):
        table.add_row(escape(str(player)), f"{value:.6g}")
    out.print(table)
    stats = solution.stats
    repaired = f", {stats.repaired:,} of them solved again exactly" if stats.repaired else ""
    out.print(f"{stats.pairs:,} stage games, {stats.programs:,} linear programs{repaired}, {stats.seconds:.2f} s.")


def solution_data(solution: ace.Solution) -> dict[str, Any]:
    """A solution for JSON."""
    return {
        "values": dict(zip(map(str, solution.game.players), solution.values, strict=True)),
        "concept": repr(solution.concept),
        "guarantee": str(solution.guarantee),
        "excess": dict(zip(map(str, solution.game.constraints), solution.guarantee.excess, strict=True)),
        "stats": vars(solution.stats),
    }


def show_frontier(game: ace.MarkovGame, budgets: Any, most: int, meaning: str, *, feasible: bool) -> None:
    """Print the minimal budgets as a table."""
    out.print(f"[bold]Minimal budgets[/]: {meaning}")
    table = Table()
    for label in game.constraints:
        table.add_column(escape(str(label)), justify="right")
    for row in budgets[:most]:
        table.add_row(*(number(x) for x in row))
    out.print(table)
    if len(budgets) > most:
        out.print(f"... and {len(budgets) - most:,} more (--most)")
    own = ", ".join(f"{c} {number(b)}" for c, b in own_budget(game).items())
    out.print(escape(f"The game's own budget: {own}" + ("" if feasible else ", which is not enough")))
    if len(set(game.budgets)) > 1:
        out.print("The budget is a schedule: a line stands for its last finite entry, the others are shifted along.")


BAR = 24  # characters of the longest bar


def show_curve(curve: ace.BudgetCurve) -> None:
    """Print values by budget as a table, with a bar for the sum of the players' values above the lowest sum."""
    out.print(
        f"\n[bold]Value of budget[/]: {type(curve.concept).__name__}, objective {escape(str(curve.concept.objective))}"
    )
    shown = [k for k, label in enumerate(curve.constraints) if label in curve.constraint]
    table = Table()
    for heading in (*(curve.constraints[k] for k in shown), *curve.players):
        table.add_column(escape(str(heading)), justify="right")
    table.add_column("sum of values" if len(curve.players) > 1 else "")
    total = curve.values.sum(axis=1)
    low, high = np.nanmin(total), np.nanmax(total)
    missing = np.where(curve.feasible, "none found", "infeasible")
    for row, values, level, least, gone in zip(
        curve.budgets, curve.values, total, curve.is_minimal, missing, strict=True
    ):
        worth = [f"{v:.6g}" if np.isfinite(v) else gone for v in values]
        bar = "" if np.isnan(level) else "█" * (1 + round((BAR - 1) * (level - low) / ((high - low) or 1.0)))
        table.add_row(*(number(row[k]) for k in shown), *worth, bar + " minimal" * bool(least))
    out.print(table)
    for note in curve.notes:
        out.print(escape(note.replace("points=", "--points")))


def curve_data(curve: ace.BudgetCurve) -> dict[str, Any]:
    """A curve for JSON; the values of a budget that is infeasible, or without an equilibrium, are null."""
    values = [None if np.isnan(row).any() else row.tolist() for row in curve.values]
    return {
        "constraint": curve.constraint,
        "concept": repr(curve.concept),
        "players": curve.players,
        "budgets": curve.budgets,
        "values": values,
        "feasible": curve.feasible,
        "minimal": curve.minimal,
        "is_minimal": curve.is_minimal,
        "steps": curve.steps,
        "thinned": curve.thinned,
    }


def certificate_data(certificate: ace.Certificate | None) -> dict[str, Any] | None:
    """A certificate for JSON."""
    if certificate is None:
        return None
    return {
        "ok": certificate.ok,
        "regret": certificate.regret,
        "max_spent": certificate.max_spent,
        "counting": certificate.counting,
        "allowance": certificate.allowance,
        "excess": certificate.excess,
        "covers": certificate.covers,
        "values": certificate.values,
        "tolerance": certificate.tol,
        "pairs": certificate.pairs,
        "problems": certificate.problems,
        "witness": certificate.witness,
    }


def own_budget(game: ace.MarkovGame) -> dict[Any, Any]:
    """The budget of each constraint: a number, or a list of one per time where it is a schedule."""
    columns = [[plain(b) for b in column] for column in zip(*game.budgets, strict=True)]
    return {
        c: column[0] if len(set(column)) == 1 else column for c, column in zip(game.constraints, columns, strict=True)
    }


def number(x: Any) -> str:
    """A number, or a schedule of them, for people."""
    if isinstance(x, list):
        if is_almost_sure(x):
            return f"{number(x[-1])} at the end"
        shown = [number(v) for v in (x if len(x) <= 8 else [*x[:4], *x[-3:]])]
        return "[" + ", ".join(shown if len(x) <= 8 else [*shown[:4], "...", *shown[4:]]) + "]"
    return f"{x:.10g}" if isinstance(x, float) else str(x)


def print_json(value: Any) -> None:
    """Print one JSON object."""
    print(json.dumps(_plain(value), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    """JSON has no NaN or infinity, no tuples as keys and no Fractions: write them as text."""
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
