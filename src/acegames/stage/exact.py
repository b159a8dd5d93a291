"""The stage program in rational arithmetic: a small dense simplex that is never wrong, only slow.

The utilities are dyadic rationals, so nothing is lost on the way in (the program is built from them in rationals too: rounding its
coefficients could leave it without a solution). Start at the first joint action with every slack
basic; that is primal feasible only up to the incentive rows, so a first phase drives their violation out; then each
level is maximised in turn, and columns with a strictly negative reduced cost are barred from later levels, which keeps the
search on the optimal face (spec 4's lexicographic ties). Bland's rule: it ends.

The table is kept in whole numbers over one denominator (Edmonds; Bareiss): every entry is a minor of the first table, so a
pivot's divisions leave no remainder, and there are no common factors to look for as fractions would at every step.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Correlated
from acegames.numerics import TIE
from acegames.stage.program import Floats, Program, stage_program
from acegames.stage.units import first_units, goal_range

Row = list[Fraction]
Whole = NDArray[np.object_]  # of Python ints


def solve_exactly(
    action: NDArray[np.int32],
    utility: Floats,
    concept: Correlated,
    players: tuple[Hashable, ...],
    gross: Floats | None = None,
    level: Floats | None = None,
) -> Floats:
    """Return sigma of one stage game, rounded to floats only at the very end."""
    rational = np.array([[as_rational(x) for x in row] for row in utility.tolist()], dtype=object)
    sizes = np.abs(utility) if gross is None else gross
    unit = first_units(utility, sizes)
    goal = goal_range(utility, sizes, concept, players, level, unit)
    program = stage_program(action, rational, concept, players, sizes, level, unit, goal)
    best = _best_point(program, program.weight_size, program.slack_size)
    if best is None:  # outliers are played, with more than a tiny chance
        ones = np.ones(len(program.weight_size), dtype=object)
        best = _best_point(program, ones, np.maximum(abs(program.A).max(axis=1, initial=0), 1), strict=False)
    assert best is not None
    sigma: Floats = np.array([float(x) for x in best[: program.rows]])
    total = 0.0
    for x in sigma.tolist():  # one after the other: the bits must not depend on how a library adds up
        total += x
    return sigma / total


def _best_point(program: Program, weights: Any, slacks: Any, *, strict: bool = True) -> Row | None:
    """The best point of the program, level by level; None where ties that were judged by these sizes gave the objective away."""
    table = Tableau(program, weights, slacks)
    if not table.make_feasible():
        raise AssertionError("a stage program without a solution: the utilities or the floor are invalid")
    first = None
    for level in program.levels:
        row = [as_rational(x) for x in level]
        table.maximise(row)
        first = first or (row, sum(x * y for x, y in zip(row, table.point(), strict=False)))
    point = table.point()
    if (
        strict
        and first is not None
        and sum(x * y for x, y in zip(first[0], point, strict=False)) < first[1] - Fraction(4 * TIE)
    ):
        return None
    return point


def as_rational(x: Any) -> Fraction:
    """A Fraction of plain Python ints; numpy's would overflow."""
    return Fraction(x.item() if isinstance(x, np.generic) else x)


def whole(numbers: Sequence[Fraction]) -> tuple[list[int], int]:
    """The numbers times their common denominator, and that."""
    denominator = math.lcm(*(x.denominator for x in numbers))
    return [x.numerator * (denominator // x.denominator) for x in numbers], denominator


class Tableau:
    """Rows [coefficients | right-hand side] over the columns y, slacks, in whole numbers; the entries are those divided by `over`.

    `basis[r]` is basic in row r, where it has `over`. A slack is counted in the units that make its row whole.
    """

    def __init__(self, program: Program, weight_size: Any = None, slack_size: Any = None) -> None:
        columns, slacks = program.A.shape[1], len(program.b)
        sizes = (program.weight_size, program.slack_size) if weight_size is None else (weight_size, slack_size)
        self.width, self.over = columns + slacks, 1
        self.barred = [False] * self.width
        self.size = [as_rational(x) for part in sizes for x in part]
        self.rows: Whole = np.zeros((slacks + 1, self.width + 1), dtype=object)
        for j, (row, b) in enumerate(zip(program.A, program.b, strict=True)):
            numbers, times = whole([*map(as_rational, row), as_rational(b)])
            self.rows[j, :columns], self.rows[j, -1] = numbers[:-1], numbers[-1]
            self.rows[j, columns + j] = 1
            self.size[columns + j] *= times
        self.rows[-1, : program.rows] = self.rows[-1, -1] = 1
        self.basis = [columns + j for j in range(slacks)] + [-1]
        self._pivot(slacks, 0)

    def point(self) -> Row:
        """The present weights and slacks."""
        y = [Fraction(0)] * self.width
        for number, k in zip(self.rows[:, -1], self.basis, strict=True):
            y[k] = Fraction(number, self.over)
        return y

    def make_feasible(self) -> bool:
        """Phase one: an artificial column covers every violated row and is driven to zero; False where that cannot be."""
        if all(x >= 0 for x in self.rows[:, -1]):
            return True
        artificial = self.width
        column = np.array([-self.over if x < 0 else 0 for x in self.rows[:, -1]], dtype=object)
        self.rows = np.insert(self.rows, artificial, column, axis=1)
        self.width += 1
        self.barred.append(False)
        self._pivot(min(range(len(self.rows)), key=lambda r: self.rows[r, -1]), artificial)
        self._improve([0] * artificial + [-1])
        if artificial in self.basis:
            r = self.basis.index(artificial)
            if self.rows[r, -1] != 0:
                return False
            self._pivot(r, next(k for k in range(artificial) if self.rows[r, k] != 0))
        self.rows = np.delete(self.rows, artificial, axis=1)
        self.width -= 1
        self.barred.pop()
        return True

    def maximise(self, objective: Row) -> None:
        """Move to the best point of the face that earlier calls left, and leave only what is as good."""
        numbers, times = whole(objective)
        reduced = self._improve(numbers + [0] * (self.width - len(numbers)))
        for k, d in enumerate(reduced):
            self.barred[k] = self.barred[k] or Fraction(d, self.over * times) * self.size[k] < -TIE

    def _improve(self, objective: list[int]) -> Whole:
        """Pivot while the objective grows; returns its reduced costs, times `over`."""
        while True:
            reduced = self._reduced(objective)
            entering = next((k for k in range(self.width) if reduced[k] > 0 and not self.barred[k]), None)
            if entering is None:
                return reduced
            column, last = self.rows[:, entering], self.rows[:, -1]
            leaving = min((Fraction(last[r], column[r]), k, r) for r, k in enumerate(self.basis) if column[r] > 0)
            self._pivot(leaving[2], entering)

    def _reduced(self, objective: list[int]) -> Whole:
        reduced: Whole = np.array(objective[: self.width], dtype=object) * self.over
        for r, k in enumerate(self.basis):
            if objective[k]:
                reduced = reduced - objective[k] * self.rows[r, :-1]
        return reduced

    def _pivot(self, r: int, k: int) -> None:
        if self.rows[r, k] < 0:
            self.rows[r] = -self.rows[r]
        row, pivot = self.rows[r].copy(), self.rows[r, k]
        self.rows = (self.rows * pivot - np.outer(self.rows[:, k], row)) // self.over
        self.rows[r], self.over = row, pivot
        self.basis[r] = k
