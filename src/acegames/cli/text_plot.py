"""A frontier of two budgets drawn with characters: which suffice, where the game's own lies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from acegames.model.arrays import Floats, Ints

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
        """Characters to be labelled and their labels: multiples of a round number."""
        span = self.high - self.low
        step = 10.0 ** math.floor(math.log10(span / MOST_LABELS))
        step *= next(k for k in (1, 2, 5, 10) if span <= k * step * MOST_LABELS)
        step = max(1.0, step) if self.whole else step
        ticks = (k * step for k in range(math.ceil(self.low / step), math.floor(self.high / step) + 1))
        return [(int(self.at(x)), f"{x:.10g}") for x in ticks]


def plot_frontier(
    names: Sequence[str], points: Floats, own: Sequence[float], *, enough: bool, width: int, ascii_only: bool
) -> list[Text]:
    """Return lines of a plot of minimal budgets (k, 2); `enough`: whether the game's own budget is."""
    ink = {kind: (look[ascii_only], look[2]) for kind, look in MARKS.items()}
    rise, tick, corner, run = FRAME[ascii_only]
    low, high = points.min(axis=0), points.max(axis=0)
    room = np.where(high > low, FAR * (high - low), np.inf)
    drawn = np.clip(own, low - room, high + room)  # at the edge where it is too far away
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
    """Return the mark at each line, from the bottom, and column; empty where budgets are too small."""
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
