"""Frontiers, curves and solutions, as the program shows them to people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.console import Group
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

import acegames as ace
from acegames.cli.screen import counted, escape, filled_bar, least_width, objective_text, one_line, out, show_table
from acegames.model.arrays import Floats, Ints
from acegames.model.budgets import Holds, has_schedule, own_budget
from acegames.model.numbers import exact, nearest_float, plain
from acegames.model.words import (
    budgets_listed,
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


def show_frontier(feasibility: ace.Feasibility, most: int, meaning: str) -> None:
    """Print the minimal budgets as a table, and draw them where there are two."""
    game, budgets = feasibility.game, feasibility.minimal_budgets
    own = [plain(b) for b in feasibility.frontier.reference]
    short = "" if feasibility.feasible else ", which does not suffice"
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
    listed = budgets_listed({constraint_called(label): budget for label, budget in own_budget(game).items()})
    out.print(escape(f"The game's own budget: {listed}{short}"))
    _draw_frontier(feasibility)
    if has_schedule(game):
        out.print(SCHEDULE)


def _amounts(game: ace.MarkovGame) -> list[str]:
    """Return what a minimal budget of each constraint is an amount of."""
    named = zip(game.constraints, game.reservoirs, strict=True)
    return [str(label) if reservoir is None else f"{label} (capacity)" for label, reservoir in named]


def _draw_frontier(feasibility: ace.Feasibility) -> None:
    """Draw the minimal budgets where just two constraints are bounded."""
    points = feasibility.minimal_budgets.astype(np.float64)
    bounded = np.flatnonzero(np.isfinite(points).all(axis=0))
    if len(bounded) != 2 or not len(points):
        return
    own = [float(feasibility.frontier.reference[m]) for m in bounded]
    names = [one_line(_amounts(feasibility.game)[m]) for m in bounded]
    look: dict[str, Any] = {"width": out.width, "ascii_only": out.options.ascii_only}
    out.print()
    for line in plot_frontier(names, points[:, bounded], own, enough=feasibility.feasible, **look):
        out.print(line)


def show_curve(curve: ace.BudgetCurve) -> None:
    """Print values by budget, with a bar for their sum where there is space for one."""
    concept = curve.concept
    out.print(
        f"\n[bold]Value of budget[/]: {concept.words.noun}, objective {escape(objective_text(concept.objective))}"
    )
    heads, lines = [*curve.heads, ""], curve.lines
    spare = out.width - least_width(heads, [[*line, curve.mark] for line in lines])
    mark = curve.mark if spare >= 0 else "*"
    lines = [[*line, mark * bool(least)] for line, least in zip(lines, curve.is_minimal, strict=True)]
    if spare >= SHORTEST_BAR + 3:  # and the frame
        total = curve.values.sum(axis=1)
        low, what = _base(total), "sum of values" if len(curve.players) > 1 else "value"
        heads.append(what if low == 0 else f"{what} above {low:.6g}")
        lines = [[*line, bar] for line, bar in zip(lines, _bars(total, low, min(BAR, spare - 3)), strict=True)]
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
    """Return a bar for each number, to an eighth of a character where the terminal can do so."""
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
    title = Text.assemble((concept.words.title, "bold"), f", objective {one_line(objective_text(concept.objective))}")
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
    said = f"Solved {solution.stats}."
    if certificate is not None:
        said += f"\nChecked in {took.checking:.2f} s: {counted(certificate.pairs, 'situation')}."
    if took.compiling > 0.05:
        said += f"\n{took.compiling:.1f} s of this went into compiling, which later runs need not do."
    return Text(said, "dim")


def _grid(*heads: str) -> Table:
    columns = (Column(head, overflow="fold") for head in heads)
    return Table(*columns, box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)


# -- a frontier of two budgets drawn with characters


COLUMNS, ROWS = 61, 16  # the most that a plot takes, without its axes
MOST_LABELS = 5  # along an axis, and one at its beginning
FAR = 2.0  # times the frontier's own extent
MARKS = {
    "point": ("●", "o", "bold cyan", "minimal budget"),
    "enough": ("░", ".", "green", "suffices"),
    "own": ("◆", "#", "bold magenta", "the game's own budget"),
    "short": ("✖", "X", "bold red", "own budget, too small"),
    "": (" ", " ", "", ""),
}
"""What a character stands for: itself, its ASCII form, its style, and its words in the legend."""
FRAME = ("│", "┤", "└", "─"), ("|", "+", "+", "-")


@dataclass(frozen=True)
class Axis:
    """Amounts from `low` to `high` along `cells` characters."""

    low: float
    high: float
    cells: int
    whole: bool  # amounts are whole numbers, and so are the labels

    @staticmethod
    def over(amounts: Floats, most: int, stretch: int) -> Axis:
        """Return an axis of at most `most` characters; a unit takes at most `stretch` of them."""
        low, high = float(amounts.min()), float(amounts.max())
        if high == low:
            high = low + 1.0
        whole = bool((amounts == np.round(amounts)).all())
        cells = most  # unless every unit has a character of its own
        if whole and high - low < most:
            cells = int(high - low) * max(1, min(stretch, (most - 1) // int(high - low))) + 1
        return Axis(low, high, cells, whole)

    def at(self, amounts: Any) -> Ints:
        """Return the characters at which amounts lie."""
        share = (np.asarray(amounts, dtype=np.float64) - self.low) / (self.high - self.low)
        return np.rint(share * (self.cells - 1)).astype(np.int64)

    def marks(self) -> list[tuple[int, str]]:
        """Return the characters to be labelled and their labels: multiples of a round number."""
        span = self.high - self.low
        step = 10.0 ** math.floor(math.log10(span / MOST_LABELS))
        step *= next(k for k in (1, 2, 5, 10) if span <= k * step * MOST_LABELS)
        step = max(1.0, step) if self.whole else step
        ticks = (k * step for k in range(math.ceil(self.low / step), math.floor(self.high / step) + 1))
        return [(int(self.at(x)), f"{x:.10g}") for x in ticks]


def plot_frontier(
    names: Sequence[str], points: Floats, own: Sequence[float], *, enough: bool, width: int, ascii_only: bool
) -> list[Text]:
    """Return lines of a plot of minimal budgets (k, 2); `enough` says whether the own budget is."""
    ink = {kind: (look[ascii_only], look[2]) for kind, look in MARKS.items()}
    rise, tick, corner, run = FRAME[ascii_only]
    low, high = points.min(axis=0), points.max(axis=0)
    margins = np.where(high > low, FAR * (high - low), np.inf)
    drawn = np.clip(own, low - margins, high + margins)  # at the edge where it is too far away
    amounts = np.vstack([points, drawn])
    up = Axis.over(amounts[:, 1], ROWS, 2)
    labels: dict[int, str] = {}
    for row, label in up.marks():
        if all(abs(row - other) > 1 for other in labels):  # none next to another
            labels[row] = label
    margin = max(map(len, labels.values()))
    along = Axis.over(amounts[:, 0], max(8, min(COLUMNS, width - margin - 3)), 5)
    kinds = ["point", "enough", "own" if enough else "short"]
    field = _field(up, along, points, drawn, kinds[-1])
    lines = [Text(_cut(names[1], width))]
    for row in reversed(range(up.cells)):
        side = f"{labels.get(row, ''):>{margin}} {tick if row in labels else rise}"
        lines.append(Text.assemble(side, *(ink[kind] for kind in field[row])))
    lines.append(Text(" " * (margin + 1) + corner + run * along.cells))
    lines.append(Text(_written(along.marks(), margin + 2, width)))
    name = _cut(names[0], width)
    lines.append(Text(" " * max(0, margin + 2 + along.cells - cell_len(name)) + name))
    parts = [Text.assemble(ink[kind], f" {MARKS[kind][3]}") for kind in kinds]
    parts[-1].append("" if (drawn == own).all() else " (far outside)")
    legend = Text("   ").join(parts)
    return lines + ([legend] if legend.cell_len <= width else parts)


def _field(up: Axis, along: Axis, points: Floats, own: Floats, mark: str) -> Any:
    """Return the mark at each line, from the bottom, and column; empty where budgets do not do."""
    row, column = up.at(points[:, 1]), along.at(points[:, 0])
    field = np.full((up.cells, along.cells), "", dtype=object)
    field[row, column] = "point"
    reached = np.logical_or.accumulate(np.logical_or.accumulate(field != "", axis=0), axis=1)
    field[reached & (field == "")] = "enough"
    field[up.at(own[1]), along.at(own[0])] = mark
    return field.tolist()


def _written(marks: list[tuple[int, str]], margin: int, width: int) -> str:
    """Return one line with each label under its column, where it does not touch another."""
    line = [" "] * width
    for column, label in marks:
        start = max(0, min(margin + column - len(label) // 2, width - len(label)))
        if not "".join(line[max(0, start - 1) : start + len(label) + 1]).strip():
            line[start : start + len(label)] = label
    return "".join(line).rstrip()


def _cut(name: str, width: int) -> str:
    """Return a name that fits into one line."""
    return name if cell_len(name) <= width else set_cell_size(name, width - 3) + "..."
