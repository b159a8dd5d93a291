"""Games, frontiers, curves and solutions, as the program shows them to people."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from rich.console import Group
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

import acegames as ace
from acegames.cli.screen import escape, filled_bar, least_width, one_line, out, show_table
from acegames.cli.text_plot import plot_frontier
from acegames.cli.words import counted, objective_said
from acegames.model.budgets import Holds, has_schedule, own_budget
from acegames.model.numbers import exact, nearest_float, plain
from acegames.model.words import (
    budgets_listed,
    called,
    constraint_called,
    number,
    number_beside,
    reservoir_parts,
    rounded_up,
)
from acegames.solving.curve import SCHEDULE

NO_BUDGET = "No capacity suffices: a reservoir must start at a higher level."
NARROW = 60  # columns
BAR, SHORTEST_BAR = 24, 6  # characters of the longest bar of a curve, and fewest that say anything
PARTS = " ▏▎▍▌▋▊▉█"  # eighths of a character


def budget_words(game: ace.MarkovGame) -> str:
    """Return all budgets in one line."""
    return budgets_listed({constraint_called(c): budget for c, budget in own_budget(game).items()}, _budget)


def _budget(budget: Any) -> str:
    return number(budget) if isinstance(budget, (list, Holds)) or budget < np.inf else "no limit"


def _player(label: Any) -> str:
    return label if isinstance(label, str) else f"player {called(label)}"


def show_game(game: ace.MarkovGame, **more: str) -> None:
    """Print a game as a table with further lines; its digest stands alone, never cut."""
    facts = {
        "name": game.name or "(none)",
        "players": f"{len(game.players)}: {', '.join(map(str, game.players))}",
        "states": f"{len(game.states):,}",
        "actions": ", ".join(f"{_player(p)}: {len(x):,}" for p, x in zip(game.players, game.actions, strict=True)),
        "horizon": counted(game.horizon, "step"),
        "budget": budget_words(game) or "none",
    }
    found = Table(Column(), Column(overflow="fold"), show_header=False)
    for key, value in {**facts, **more}.items():
        found.add_row(key, escape(one_line(value)))
    out.print(found)
    out.print(f"digest {game.digest}", soft_wrap=True)


def show_frontier(found: ace.Feasibility, most: int, meaning: str) -> None:
    """Print the minimal budgets as a table, and draw them where there are two."""
    game, budgets = found.game, found.minimal_budgets
    own = [plain(b) for b in found.frontier.reference]
    short = "" if found.feasible else ", which does not suffice"
    if len(budgets):
        out.print(f"[bold]Minimal budgets[/]: {meaning}")
        rows = ([number_beside(x, b) for x, b in zip(row, own, strict=True)] for row in budgets[:most].tolist())
        show_table(_amounts(game), rows)
    else:
        out.print(NO_BUDGET)
    if len(budgets) > most:
        out.print(f"... and {len(budgets) - most:,} more (--most)")
    if len(budgets) == len(game.constraints) == 1 and game.reservoirs[0]:
        smallest = number_beside(budgets[0].tolist()[0], own[0])
        out.print(f"Smallest capacity that suffices: {smallest} (you have {number(own[0])})")
    out.print(escape(f"The game's own budget: {budget_words(game)}{short}"))
    _draw_frontier(found)
    if has_schedule(game):
        out.print(SCHEDULE)


def _amounts(game: ace.MarkovGame) -> list[str]:
    """Return what a minimal budget of each constraint is an amount of."""
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
    """Print values by budget, with a bar for their sum where there is room for one."""
    concept = curve.concept
    out.print(
        f"\n[bold]Value of budget[/]: {concept.words.noun}, objective {escape(objective_said(concept.objective))}"
    )
    heads, lines = [*curve.heads, ""], curve.lines
    room = out.width - least_width(heads, [[*line, curve.mark] for line in lines])
    mark = curve.mark if room >= 0 else "*"
    lines = [[*line, mark * bool(least)] for line, least in zip(lines, curve.is_minimal, strict=True)]
    if room >= SHORTEST_BAR + 3:  # and the frame
        total = curve.values.sum(axis=1)
        low, what = _base(total), "sum of values" if len(curve.players) > 1 else "value"
        heads.append(what if low == 0 else f"{what} above {low:.6g}")
        lines = [[*line, bar] for line, bar in zip(lines, _bars(total, low, min(BAR, room - 3)), strict=True)]
    show_table(heads, lines, last=len(heads) - len(curve.heads))
    if mark != curve.mark:
        out.print(f"{mark} {curve.mark} budget")
    for note in curve.notes:
        out.print(escape(note.replace("points=", "--points")))


def _base(total: Any) -> float:
    """Return where bars begin: at zero, unless they would then all look alike, or values are
    negative.

    Then it is a round number well below the smallest value, which has a bar too.
    """
    low, high = float(np.nanmin(total)), float(np.nanmax(total))
    if low >= 0 and not 0 < high - low < high / 4:
        return 0.0
    unit = 10.0 ** math.floor(math.log10(high - low if high > low else -low))
    return unit * (math.floor(low / unit) - (low % unit < (high - low) / 8))


def _bars(total: Any, low: float, width: int) -> list[str]:
    """Return a bar for each number, to an eighth of a character where the terminal can draw that."""
    high, steps = float(np.nanmax(total)), 1 if out.options.ascii_only else 8
    drawn = []
    for level in total.tolist():
        share = 1.0 if high == low else (level - low) / (high - low)
        filled = 0 if level != level else max(1, round(share * width * steps))
        drawn.append("#" * filled if steps == 1 else PARTS[8] * (filled // 8) + PARTS[filled % 8].strip())
    return drawn


class Took(NamedTuple):
    """Seconds besides those of the solve."""

    checking: float
    compiling: float  # of those for solving and checking


def show_summary(solution: ace.Solution, certificate: ace.Certificate | None, took: Took, *, verbose: bool) -> None:
    """Print a solution; in full the promise if it is approximate, and what a failed check found."""
    name, concept = one_line(solution.game.name), solution.concept
    colour = "yellow" if certificate is None else "green" if certificate.ok else "red"
    title = Text.assemble((concept.words.title, "bold"), f", objective {one_line(objective_said(concept.objective))}")
    values = _grid("player", "value")
    for player, value in zip(solution.game.players, solution.values, strict=True):
        values.add_row(Text(one_line(player)), Text(f"{value:.6g}", "bold"))
    gap = [""] if out.width >= NARROW else []  # a narrow screen has wrapped lines enough
    parts: list[Any] = [title, *gap, values]
    if certificate is not None and solution.game.constraints:
        parts += [*gap, _spending(solution.game, certificate)]
    parts += [*gap, *_verdict(certificate, colour), _effort(solution, certificate, took)]
    head = Text(name, "bold") if name else None
    out.print(Panel(Group(*parts), title=head, title_align="left", border_style=colour, expand=False))
    if verbose or not solution.policy.tracker.exact or solution.game.tails is not None:
        out.print(escape(str(solution.guarantee)))
    if certificate is not None and (verbose or not certificate.ok):
        out.print(escape(str(certificate)))


def _spending(game: ace.MarkovGame, certificate: ace.Certificate) -> Table:
    """Return the worst of any possible history; a bar where the budget is one positive number.

    Of a plain budget it is the most that is spent, of a reservoir the lowest level.
    """
    kinds = ["largest cumulative cost"] * (not all(game.reservoirs)) + ["lowest level"] * any(game.reservoirs)
    table = _grid("budget", ", or ".join(kinds))
    columns = (own_budget(game).items(), certificate.max_spent, certificate.excess, certificate.allowance)
    for (label, budget), spent, over, allowed in zip(*columns, strict=True):
        said, style = _said(spent, budget), "cyan"
        if over > 0:
            promised = f" (the rounding allows {rounded_up(allowed)})" if over <= allowed else ""
            beyond = "short of its reserve" if isinstance(budget, Holds) else "over"
            said, style = f"{said}, {rounded_up(over)} {beyond}{promised}", "yellow" if promised else "red"
        share, drawn = _share(spent, budget), Text()
        if share is not None:
            drawn = filled_bar(share, min(24, max(6, out.width // 3)), style)
        table.add_row(Text(one_line(label)), Text.assemble(drawn, " " * bool(drawn), (said, style if over > 0 else "")))
    return table


def _share(spent: Any, budget: Any) -> float | None:
    """Return the part of a budget that is spent, or of a reservoir that is left; None where
    undefined.
    """
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
        return [Text("NOT CHECKED: the policy was not verified (--no-verify).", f"bold {colour}")]
    lines = [Text(str(certificate).splitlines()[0], f"bold {colour}")]
    if not certificate.constraints:
        lines.append(Text("Safe: the game has no budgets." if certificate.ok else ""))
    if certificate.ok:
        gain = max(0.0, float(certificate.regret.max()))
        exactly = all(how == "exact" for how in certificate.counting)
        against = "a safe deviation" if exactly else certificate.covers.replace("every ", "a ")
        lines.append(Text(f"Exploitability {gain:.2g}: no player gains more by {against}."))
    return lines


def _effort(solution: ace.Solution, certificate: ace.Certificate | None, took: Took) -> Text:
    stats = solution.stats
    repaired = f" ({stats.repaired:,} of them solved again exactly)" if stats.repaired else ""
    work = f"{counted(stats.pairs, 'stage game')} after clipping, {counted(stats.programs, 'linear program')}{repaired}"
    where = "" if stats.where is None else f" {stats.where}"
    said = f"Solved{'' if stats.seconds is None else f' in {stats.seconds:.2f} s'}{where}: {work}."
    if certificate is not None:
        said += f"\nChecked in {took.checking:.2f} s: {counted(certificate.pairs, 'situation')}."
    if took.compiling > 0.05:
        said += f"\n{took.compiling:.1f} s of this went into compiling, which later runs need not do."
    return Text(said, "dim")


def _grid(*heads: str) -> Table:
    columns = (Column(head, overflow="fold") for head in heads)
    return Table(*columns, box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
