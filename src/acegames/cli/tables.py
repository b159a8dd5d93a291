"""Games, frontiers, curves and solutions, as the program shows them to people and as JSON."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from rich.console import Group
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

import acegames as ace
from acegames.cli.screen import by_label, escape, filled_bar, one_line, out, table
from acegames.cli.text_plot import plot_frontier
from acegames.model.budgets import Holds, has_schedule, own_budget
from acegames.model.numbers import exact, nearest_float, plain
from acegames.model.words import budgets_listed, number, reservoir_parts, rounded_up
from acegames.solving.curve import SCHEDULE

NO_BUDGET = "No capacity would be enough: a reservoir must start fuller."
BAR = 24  # characters of the longest bar of a curve


def describe(game: ace.MarkovGame) -> dict[str, Any]:
    """The main facts of a game."""
    return {
        "name": game.name,
        "players": list(map(str, game.players)),
        "states": len(game.states),
        "actions_per_player": [len(a) for a in game.actions],
        "horizon": game.horizon,
        "budget": by_label(game.constraints, map(_budget_data, own_budget(game).values())),
        "budget_is_a_schedule": has_schedule(game),
        "digest": game.digest,
    }


def _budget_data(budget: Any) -> Any:
    """A budget for JSON, as a game file has it."""
    if not isinstance(budget, Holds):
        return budget
    return {"reservoir": budget.capacity, "start": budget.start, "reserve": budget.reserve}


def _budgets(game: ace.MarkovGame) -> str:
    """All budgets in one line."""
    return budgets_listed(by_label(game.constraints, own_budget(game).values()))


def show_game(game: ace.MarkovGame, **more: Any) -> None:
    """Print a game as a table with further lines; its digest stands alone, never cut."""
    facts = describe(game)
    digest = facts.pop("digest")
    found = Table(Column(), Column(overflow="fold"), show_header=False)
    for key, value in {**facts, "budget": _budgets(game) or "none", **more}.items():
        listed = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        found.add_row(key.replace("_", " "), escape(listed))
    out.print(found)
    out.print(f"digest {digest}", soft_wrap=True)


def show_frontier(found: ace.Feasibility, most: int, meaning: str) -> None:
    """Print the minimal budgets as a table, and draw them where there are two."""
    game, budgets = found.game, found.minimal_budgets
    short = "" if found.feasible else ", which is not enough"
    if len(budgets):
        out.print(f"[bold]Minimal budgets[/]: {meaning}")
        out.print(table(_amounts(game), ([number(x) for x in budget] for budget in budgets[:most])))
    else:
        out.print(NO_BUDGET)
    if len(budgets) > most:
        out.print(f"... and {len(budgets) - most:,} more (--most)")
    if len(budgets) == len(game.constraints) == 1 and game.reservoirs[0]:
        own = number(plain(game.reservoirs[0].capacity))
        out.print(f"Smallest capacity that suffices: {number(budgets[0, 0])} (you have {own})")
    out.print(escape(f"The game's own budget: {_budgets(game)}{short}"))
    _draw_frontier(found)
    if has_schedule(game):
        out.print(SCHEDULE)


def _amounts(game: ace.MarkovGame) -> list[str]:
    """What a minimal budget of each constraint is an amount of."""
    named = zip(game.constraints, game.reservoirs, strict=True)
    return [str(label) if kept is None else f"{label} (capacity)" for label, kept in named]


def _draw_frontier(found: ace.Feasibility) -> None:
    """Draw the minimal budgets where just two constraints are bounded."""
    points = found.minimal_budgets.astype(np.float64)
    bounded = np.flatnonzero(np.isfinite(points).all(axis=0))
    if len(bounded) != 2 or not len(points):
        return
    own = [float(found.frontier.reference[m]) for m in bounded]
    names = [one_line(_amounts(found.game)[m]) for m in bounded]
    look: dict[str, Any] = {"width": out.width, "ascii_only": out.options.ascii_only}
    out.print()
    for line in plot_frontier(names, points[:, bounded], own, enough=found.feasible, **look):
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


CERTIFICATE = (
    *("ok", "regret", "where", "share", "share_where", "max_spent", "counting", "allowance", "excess", "covers"),
    *("values", "accepted_share", "rounding", "pairs", "problems", "witness"),
)
"""The fields of a certificate that JSON has, besides the tolerance."""


def solution_data(solution: ace.Solution) -> dict[str, Any]:
    """A solution for JSON."""
    return {
        "values": by_label(solution.game.players, solution.values),
        "concept": repr(solution.concept),
        "guarantee": str(solution.guarantee),
        "excess": by_label(solution.game.constraints, solution.guarantee.excess),
        "stats": vars(solution.stats),
    }


def certificate_data(certificate: ace.Certificate | None) -> dict[str, Any] | None:
    """A certificate for JSON."""
    if certificate is None:
        return None
    return {**{name: getattr(certificate, name) for name in CERTIFICATE}, "tolerance": certificate.tol}


class Took(NamedTuple):
    """Seconds besides those of the solve."""

    checking: float
    compiling: float  # of those for solving and checking


def show_summary(solution: ace.Solution, certificate: ace.Certificate | None, took: Took, *, verbose: bool) -> None:
    """Print a solution; in full the promise if it is approximate, and what a failed check found."""
    name, concept = one_line(solution.game.name), solution.concept
    colour = "yellow" if certificate is None else "green" if certificate.ok else "red"
    title = Text.assemble((concept.words.title, "bold"), f", objective {one_line(concept.objective)}")
    values = _grid("player", "value")
    for player, value in zip(solution.game.players, solution.values, strict=True):
        values.add_row(Text(one_line(player)), Text(f"{value:.6g}", "bold"))
    parts: list[Any] = [title, "", values]
    if certificate is not None and solution.game.constraints:
        parts += ["", _spending(solution.game, certificate)]
    parts += ["", *_verdict(certificate, colour), _effort(solution, certificate, took)]
    head = Text(name, "bold") if name else None
    out.print(Panel(Group(*parts), title=head, title_align="left", border_style=colour, expand=False))
    if verbose or not solution.policy.tracker.exact or solution.game.tails is not None:
        out.print(escape(str(solution.guarantee)))
    if certificate is not None and (verbose or not certificate.ok):
        out.print(escape(str(certificate)))


def _spending(game: ace.MarkovGame, certificate: ace.Certificate) -> Table:
    """The worst of any possible history; a bar where the budget is one positive number.

    Of a plain budget it is the most that is spent, of a reservoir the lowest level.
    """
    worst = "lowest level" if all(game.reservoirs) else "worst spending"
    table = _grid("budget", f"{worst}, or lowest level" if any(game.reservoirs) and worst != "lowest level" else worst)
    columns = (own_budget(game).items(), certificate.max_spent, certificate.excess, certificate.allowance)
    for (label, budget), spent, over, allowed in zip(*columns, strict=True):
        said, style = _said(spent, budget), "cyan"
        if over > 0:
            promised = f" (promised: at most {rounded_up(allowed)})" if over <= allowed else ""
            beyond = "short of its reserve" if isinstance(budget, Holds) else "over"
            said, style = f"{said}, {rounded_up(over)} {beyond}{promised}", "yellow" if promised else "red"
        share, drawn = _share(spent, budget), Text()
        if share is not None:
            drawn = filled_bar(share, min(24, max(6, out.width // 3)), style)
        table.add_row(Text(one_line(label)), Text.assemble(drawn, " " * bool(drawn), (said, style if over > 0 else "")))
    return table


def _share(spent: Any, budget: Any) -> float | None:
    """The part of a budget that is spent, or of a reservoir that is left; None where undefined."""
    whole = budget.capacity if isinstance(budget, Holds) else budget
    if isinstance(whole, list) or not 0 < whole < np.inf or spent != spent:
        return None
    used = exact(spent) / exact(whole)
    return nearest_float(1 - used if isinstance(budget, Holds) else used)


def _said(spent: Any, budget: Any) -> str:
    if spent != spent:
        return "unknown"
    if isinstance(budget, Holds):
        left = number(plain(exact(budget.capacity) - exact(spent)))
        return ", ".join([f"{left} of {number(budget.capacity)} left", *reservoir_parts(budget, number)[1:]])
    if isinstance(budget, list):
        return f"{rounded_up(spent)} at some time; the budget is {number(budget)}"
    return f"{rounded_up(spent)}, no limit" if budget == np.inf else f"{rounded_up(spent)} of {number(budget)}"


def _verdict(certificate: ace.Certificate | None, colour: str) -> list[Text]:
    if certificate is None:
        return [Text("NOT CHECKED: no independent check was made (--no-verify).", f"bold {colour}")]
    lines = [Text(str(certificate).splitlines()[0], f"bold {colour}")]
    if not certificate.constraints:
        lines.append(Text("Safe: there are no budgets, and only legal actions are played." if certificate.ok else ""))
    if certificate.ok:
        gain = max(0.0, float(certificate.regret.max()))
        exactly = all(how == "exact" for how in certificate.counting)
        against = "by any safe deviation" if exactly else f"by {certificate.covers.replace('every', 'any')}"
        lines.append(Text(f"Nobody gains more than {gain:.2g} {against}."))
    return lines


def _effort(solution: ace.Solution, certificate: ace.Certificate | None, took: Took) -> Text:
    stats = solution.stats
    repaired = f" ({stats.repaired:,} of them solved again exactly)" if stats.repaired else ""
    solved = "" if stats.seconds is None else f", {stats.seconds:.2f} s"
    checked = "" if certificate is None else f", checked in {took.checking:.2f} s"
    first = f" ({took.compiling:.1f} s of all this for compiling)" if took.compiling > 0.05 else ""
    work = f"{stats.pairs:,} stage games, {stats.programs:,} linear programs{repaired}"
    return Text(f"{work}{solved}{checked}{first}.", "dim")


def _grid(*heads: str) -> Table:
    columns = (Column(head, overflow="fold") for head in heads)
    return Table(*columns, box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
