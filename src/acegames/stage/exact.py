"""The stage program in rational arithmetic: a small dense simplex that is never wrong, only slow.

The utilities are dyadic rationals, so nothing is lost on the way in (the program is built from them in rationals too: rounding its
coefficients could leave it without a solution). Start at the first joint action with every slack
basic; that is primal feasible only up to the incentive rows, so a first phase drives their violation out; then each
level is maximised in turn, and columns with a strictly negative reduced cost are barred from later levels, which keeps the
search on the optimal face (spec 4's lexicographic ties). Bland's rule: it ends.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Correlated
from acegames.numerics import TIE
from acegames.stage import noise_of
from acegames.stage.program import Floats, Program, stage_program

Row = list[Fraction]


def solve_exactly(
    action: NDArray[np.int32],
    utility: Floats,
    concept: Correlated,
    players: tuple[Hashable, ...],
    noise: Floats | None = None,
    level: Floats | None = None,
) -> Floats:
    """Return sigma of one stage game, rounded to floats only at the very end."""
    rational = np.array([[as_rational(x) for x in row] for row in utility.tolist()], dtype=object)
    blur = noise_of(utility) if noise is None else noise
    program = stage_program(action, rational, concept, players, blur, level)
    table = Tableau(program)
    if not table.make_feasible():
        raise AssertionError("a stage program without a solution: the utilities or the floor are invalid")
    for level in program.levels:
        table.maximise([as_rational(x) for x in level])
    sigma: Floats = np.array([float(x) for x in table.point()[: program.rows]])
    sigma /= sigma.sum()
    return sigma


def as_rational(x: Any) -> Fraction:
    """A Fraction of plain Python ints; numpy's would overflow."""
    return Fraction(x.item() if isinstance(x, np.generic) else x)


class Tableau:
    """Rows [coefficients | right-hand side] over the columns y, slacks; `basis[r]` is basic in row r."""

    def __init__(self, program: Program) -> None:
        self.width = program.A.shape[1] + len(program.b)
        self.barred = [False] * self.width
        self.size = [Fraction(1)] * program.A.shape[1] + [as_rational(x) for x in program.slack_size]
        cells = [
            [as_rational(x) for x in row] + [Fraction(int(j == k)) for k in range(len(program.b))] + [as_rational(b)]
            for j, (row, b) in enumerate(zip(program.A, program.b, strict=True))
        ]
        total = [Fraction(int(k < program.rows)) for k in range(self.width)] + [Fraction(1)]
        self.rows: list[Row] = [*cells, total]
        self.basis = [program.A.shape[1] + j for j in range(len(program.b))] + [-1]
        self._pivot(len(self.rows) - 1, 0)

    def point(self) -> Row:
        """The present weights and slacks."""
        y = [Fraction(0)] * self.width
        for row, k in zip(self.rows, self.basis, strict=True):
            y[k] = row[-1]
        return y

    def make_feasible(self) -> bool:
        """Phase one: an artificial column covers every violated row and is driven to zero; False where that cannot be."""
        if all(row[-1] >= 0 for row in self.rows):
            return True
        artificial = self.width
        for row in self.rows:
            row.insert(-1, Fraction(-1 if row[-1] < 0 else 0))
        self.width += 1
        self.barred.append(False)
        self._pivot(min(range(len(self.rows)), key=lambda r: self.rows[r][-1]), artificial)
        self._improve([Fraction(-int(k == artificial)) for k in range(self.width)])
        if artificial in self.basis:
            r = self.basis.index(artificial)
            if self.rows[r][-1] != 0:
                return False
            self._pivot(r, next(k for k in range(artificial) if self.rows[r][k] != 0))
        for row in self.rows:
            del row[-2]
        self.width -= 1
        self.barred.pop()
        return True

    def maximise(self, objective: Row) -> None:
        """Move to the best point of the face that earlier calls left, and leave only what is as good."""
        reduced = self._improve(objective + [Fraction(0)] * (self.width - len(objective)))
        for k, d in enumerate(reduced):
            self.barred[k] = self.barred[k] or d * self.size[k] < -TIE

    def _improve(self, objective: Row) -> Row:
        while True:
            reduced = self._reduced(objective)
            entering = next((k for k in range(self.width) if reduced[k] > 0 and not self.barred[k]), None)
            if entering is None:
                return reduced
            ratios = [(row[-1] / row[entering], b, r) for r, (row, b) in self._numbered() if row[entering] > 0]
            self._pivot(min(ratios)[2], entering)

    def _numbered(self) -> list[tuple[int, tuple[Row, int]]]:
        return list(enumerate(zip(self.rows, self.basis, strict=True)))

    def _reduced(self, objective: Row) -> Row:
        reduced = objective[: self.width]
        for row, k in zip(self.rows, self.basis, strict=True):
            if objective[k]:
                reduced = [d - objective[k] * x for d, x in zip(reduced, row[:-1], strict=True)]
        return reduced

    def _pivot(self, r: int, k: int) -> None:
        row = self.rows[r]
        row[:] = [x / row[k] for x in row] if row[k] != 1 else row
        for other in self.rows:
            if other is not row and other[k]:
                factor = other[k]
                other[:] = [x - factor * y if y else x for x, y in zip(other, row, strict=True)]
        self.basis[r] = k
