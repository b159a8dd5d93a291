"""What the command-line program prints: tables, bars and JSON."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from rich import markup
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

import acegames as ace
from acegames.cli.text_plot import plot_frontier
from acegames.model.numbers import plain
from acegames.model.words import number as number
from acegames.safety.frontier import last_finite

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


T = TypeVar("T")


@contextmanager
def speaking(*, quiet: bool, as_json: bool) -> Iterator[None]:
    """Print nothing for people where JSON is asked for; under --quiet keep notes on standard error back too. Errors are shown always."""
    log = logging.getLogger("acegames")
    level = log.level
    out.quiet = quiet or as_json
    if quiet:
        log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        out.quiet = False
        log.setLevel(level)


def unwatched() -> bool:
    """Whether nobody would see a bar."""
    return out.quiet or not sys.stderr.isatty()


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show on a terminal that something goes on, and for how long; it goes when the work is done."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=unwatched()) as bar:
        bar.add_task(text, total=None)
        yield


def solve_with_bar(work: Callable[[ace.Report], T]) -> T:
    """Run one solve or several with a bar on a terminal; the bar goes when the work is done."""
    columns = (TextColumn("solving"), BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=err, transient=True, disable=unwatched()) as bar:
        task = bar.add_task("finding the situations that safe play can reach", total=None)

        def show(state: ace.Progress) -> None:
            text = (
                f"layer {state.layers_done:,}/{state.layers:,}, {state.pairs_done:,}/{state.pairs:,} stage games, "
                f"{state.pace:,.0f}/s, {memory_used() / 2**20:,.0f} MiB, "
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
    """Print a game as a table, with further lines, and its digest on a line of its own that is never cut or broken."""
    table = Table(show_header=False)
    table.add_column()
    table.add_column(overflow="fold")
    facts = describe(game)
    digest = facts.pop("digest")
    for key, value in {**facts, **more}.items():
        shown = ", ".join(f"{k} {number(v)}" for k, v in value.items()) or "none" if isinstance(value, dict) else value
        listed = ", ".join(map(str, shown)) if isinstance(shown, list) else str(shown)
        table.add_row(key.replace("_", " "), escape(listed))
    out.print(table)
    out.print(f"digest {digest}", soft_wrap=True)


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


def solution_data(solution: ace.Solution) -> dict[str, Any]:
    """A solution for JSON."""
    return {
        "values": by_label(solution.game.players, solution.values),
        "concept": repr(solution.concept),
        "guarantee": str(solution.guarantee),
        "excess": by_label(solution.game.constraints, solution.guarantee.excess),
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
    _draw_frontier(game, budgets, feasible=feasible)
    if len(set(game.budgets)) > 1:
        out.print("The budget is a schedule: a line stands for its last finite entry, the others are shifted along.")


def _draw_frontier(game: ace.MarkovGame, budgets: Any, *, feasible: bool) -> None:
    """Draw the minimal budgets where just two constraints are bounded; a schedule stands for its last finite entry."""
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


BAR = 24  # characters of the longest bar


def ink() -> tuple[str, str]:
    """Characters of a bar and of what it leaves."""
    return ("#", ".") if out.options.ascii_only else ("█", "░")


def filled_bar(share: float, width: int, style: str) -> Text:
    """A bar that is empty only at nothing and full only at the whole."""
    full, left = ink()
    drawn = 0 if share <= 0 else max(1, min(width - (share < 1), round(share * width)))
    return Text.assemble((full * drawn, style), (left * (width - drawn), "dim"))


def escape(text: str) -> str:
    """Text that prints as it is: no markup, and no control characters that a terminal would obey."""
    return markup.escape("".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text))


def by_label(labels: Iterable[Any], values: Iterable[Any]) -> dict[str, Any]:
    """{label: value} with text as keys; where two labels look alike, as Python writes them."""
    known = list(labels)
    alike = len({str(x) for x in known}) < len(known)
    return dict(zip(map(repr if alike else str, known), values, strict=True))


def one_line(label: Any) -> str:
    """A label without line breaks and control characters."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(label))


def show_curve(curve: ace.BudgetCurve) -> None:
    """Print values by budget as a table, with a bar for the sum of the players' values, from zero where none is negative."""
    out.print(
        f"\n[bold]Value of budget[/]: {type(curve.concept).__name__}, objective {escape(str(curve.concept.objective))}"
    )
    shown = [k for k, label in enumerate(curve.constraints) if label in curve.constraint]
    table = Table()
    for heading in (*(curve.constraints[k] for k in shown), *curve.players):
        table.add_column(escape(str(heading)), justify="right")
    total = curve.values.sum(axis=1)
    low, high = min(0.0, np.nanmin(total)), np.nanmax(total)
    what = "sum of values" if len(curve.players) > 1 else ""
    table.add_column(what if low == 0 else f"{what} above {low:.6g}".strip())
    missing = np.where(curve.feasible, "none found", "infeasible")
    for row, values, level, least, gone in zip(
        curve.budgets, curve.values, total, curve.is_minimal, missing, strict=True
    ):
        worth = [f"{v:.6g}" if np.isfinite(v) else gone for v in values]
        bar = "" if np.isnan(level) else ink()[0] * (1 + round((BAR - 1) * (level - low) / ((high - low) or 1.0)))
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
        "where": certificate.where,
        "share": certificate.share,
        "share_where": certificate.share_where,
        "max_spent": certificate.max_spent,
        "counting": certificate.counting,
        "allowance": certificate.allowance,
        "excess": certificate.excess,
        "covers": certificate.covers,
        "values": certificate.values,
        "tolerance": certificate.tol,
        "accepted_share": certificate.accepted_share,
        "rounding": certificate.rounding,
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


def print_json(value: Any) -> None:
    """Print one JSON object, now, so that what goes wrong with that is noticed here."""
    print(json.dumps(_plain(value), indent=2, allow_nan=False), flush=True)


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
