"""The stage program in exact arithmetic: a small dense simplex, slow but never wrong.

Utilities times a power of two are whole numbers, so nothing is rounded (rounded coefficients could
leave the program without a solution). As in the kernels, the search starts at a point that is too
good and comes down to the best feasible one by a dual simplex. Then each level is maximised in
turn; columns with a negative reduced cost are barred from later levels, which keeps the search on
the optimal face (spec 4, lexicographic ties). Without an objective, and for Nash, phase one removes
the violations instead. The steepest column enters; after many steps Bland's rule ends the search.

The dictionary holds whole numbers over one denominator (Edmonds; Bareiss). Every entry is a minor
of the first dictionary, so pivots divide without remainder and need no greatest common divisors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from acegames.model.arrays import Floats
from acegames.numerics import NOISE, TIE
from acegames.stage import Stage
from acegames.stage.program import Program, common_denominator, stage_program
from acegames.stage.units import Units, finer_units, first_units

Rational = Fraction | int
TIE_PART, TIE_WHOLE = TIE.as_integer_ratio()
TRIES = 4  # solves of one stage, each in units that the last answer suggests
STEEPEST = 50  # pivots before Bland's rule; most programs take fewer than ten


def solve_exactly(stage: Stage) -> Floats:
    """Return sigma of one stage game, rounded to floats only at the very end."""
    units = first_units(stage)
    for _ in range(TRIES):
        sigma = _solved(stage, units)
        finer = finer_units(stage, units, sigma)
        if finer is None:
            break
        units = finer
    return sigma


def _solved(stage: Stage, units: Units) -> Floats:
    """Solve one stage in given units."""
    given = (stage.utility, stage.baseline, units.own, np.array(units.goal))
    times = max(x.as_integer_ratio()[1] for part in given for x in part.ravel().tolist())
    times *= float(stage.concept.floor).as_integer_ratio()[1]
    utility, baseline, own, goal = (_whole(part, times) for part in given)
    whole = stage._replace(utility=utility, baseline=baseline)
    program = stage_program(whole, _whole(NOISE * stage.gross, times), Units(own, goal))
    # not by depth if outliers are played with more than a tiny probability
    best = _best_point(program) or _best_point(program, strict=False) or []
    sigma = np.array([float(x) for x in best[: program.rows]])
    return sigma / float(np.cumsum(sigma)[-1])  # in order: a plain sum may add up otherwise


def _whole(numbers: Floats, times: int) -> Any:
    """The numbers times `times`, rounded down to Python's whole numbers."""

    def whole(number: float) -> int:
        above, below = number.as_integer_ratio()
        return above * times // below

    return np.frompyfunc(whole, 1, 1)(numbers)


def _best_point(program: Program, *, strict: bool = True) -> list[Fraction] | None:
    """The best point, level by level; None if ties judged by depth gave a level away."""
    first, exchanges = _too_good(program)
    table = Dictionary(program, first, by_depth=strict)
    for variable, row in exchanges:
        table.pivot(row, table.nonbasic.index(variable))
    levels = program.levels.tolist()
    # A fair start (two exchanges) and a start without an objective cannot guide a dual simplex.
    if len(exchanges) < 2 and levels and any(levels[0]):
        table.make_best(levels[0])
    if not table.make_feasible():
        raise AssertionError("a stage program without a solution: the utilities or the floor are invalid")
    units = np.broadcast_to(program.level_unit, len(levels)).tolist()
    best: list[Rational] = []
    for level, unit in zip(levels, units, strict=True):
        table.maximise(level, unit)
        best.append(table.worth(level))
    for level, unit, most in zip(levels, units, best, strict=True):
        if strict and TIE_WHOLE * (most - table.worth(level)) > 4 * TIE_PART * unit:
            return None
    return table.point()


def _too_good(program: Program) -> tuple[int, list[tuple[int, int]]]:
    """A start at least as good as the best on the first level: a joint action, and exchanges.

    The joint action has the largest objective. If players are compared, it is the best one of the
    player whose best is lowest, and the auxiliaries enter on that player's constraints.
    """
    rows, auxiliaries, players = program.rows, program.A.shape[1] - program.rows, len(program.levels) - 1
    if players < 0:
        return 0, []
    if not auxiliaries:
        return int(program.levels[0].argmax()), []
    begin = len(program.b) - auxiliaries * players  # of z - w_i.sigma <= o_i
    worth = -program.A[begin : begin + players, :rows]
    pilot = int((program.b[begin : begin + players] + worth.max(axis=1)).argmin())
    return int(worth[pilot].argmax()), [(rows + k, begin + k * players + pilot) for k in range(auxiliaries)]


class Dictionary:
    """over * x_basic = rhs - T x_nonbasic in whole numbers; x is the weights y, then the slacks.

    A slack is counted in the unit that makes its constraint whole. `size` says roughly how large a
    variable can be; ties are judged by it.
    """

    def __init__(self, program: Program, first: int = 0, *, by_depth: bool = True) -> None:
        columns, slacks, rows = program.A.shape[1], len(program.b), program.rows
        depth = program.depth.tolist() if by_depth and program.depth is not None else [1] * rows
        slack = program.slack_size if by_depth else np.maximum(abs(program.A).max(axis=1, initial=0), program.row_unit)
        auxiliary = np.broadcast_to(program.row_unit, slacks).tolist()[-1:] * (columns - rows)
        self.size: list[Rational] = [*(Fraction(1, x) for x in depth), *auxiliary, *slack.tolist()]
        self.over, self.T, self.rhs, self.objective = 1, [], [], [0] * columns
        for r, (row, b) in enumerate(zip(program.A.tolist(), program.b.tolist(), strict=True)):
            numbers, times = common_denominator([*row, b])
            common = math.gcd(*numbers) or 1
            self.T.append([x // common for x in numbers[:-1]])
            self.rhs.append(numbers[-1] // common)
            self.size[columns + r] *= Fraction(times, common)
        self.T.append([1] * rows + [0] * (columns - rows))  # sigma sums to one, without slack
        self.rhs.append(1)
        self.basic, self.nonbasic = [*range(columns, columns + slacks), -1], [*range(columns)]
        self.barred: set[int] = set()
        self.pivot(slacks, first)
        self._forget(first)

    def point(self) -> list[Fraction]:
        """The current weights and slacks."""
        found = [Fraction(0)] * len(self.size)
        for k, number in zip(self.basic, self.rhs, strict=True):
            found[k] = Fraction(number, self.over)
        return found

    def worth(self, level: Sequence[Rational]) -> Rational:
        """The value of a level at the current point."""
        at_hand = (level[k] * number for k, number in zip(self.basic, self.rhs, strict=True) if k < len(level))
        return Fraction(sum(at_hand), self.over)

    def make_feasible(self) -> bool:
        """Phase one: drive an artificial column over violated rows to zero; False if impossible."""
        if min(self.rhs) >= 0:
            return True
        artificial = len(self.size)
        self.nonbasic.append(artificial)
        for row, number in zip(self.T, self.rhs, strict=True):
            row.append(-self.over if number < 0 else 0)
        self.objective = [0] * len(self.nonbasic)
        self.pivot(self.rhs.index(min(self.rhs)), len(self.nonbasic) - 1)
        self._improve([0] * artificial + [-1])
        if artificial in self.basic:
            r = self.basic.index(artificial)
            if self.rhs[r] != 0:
                return False
            self.pivot(r, next(j for j, x in enumerate(self.T[r]) if x != 0))
        self._forget(self.nonbasic.index(artificial))
        return True

    def make_best(self, level: Sequence[Rational]) -> None:
        """Dual simplex from a point that is too good (if it is) to the best feasible one."""
        self._price(common_denominator(level)[0])
        for _ in range(STEEPEST + len(self.rhs)):  # phase one continues where this stalls
            if max(self.objective, default=0) > 0 or min(self.rhs) >= 0:
                return
            r = self.rhs.index(min(self.rhs))
            # the column that keeps all gains at most zero when row r leaves
            j = _least_ratio([-d for d in self.objective], [-x for x in self.T[r]], self.nonbasic)
            if j < 0:
                return
            self.pivot(r, j)

    def maximise(self, level: Sequence[Rational], unit: Rational = 1) -> None:
        """Go to the best point of the current face; bar what loses more than a TIE of the unit."""
        numbers, times = common_denominator(level)
        self._improve(numbers)
        tie = TIE_PART * self.over * times * unit
        for k, gain in zip(self.nonbasic, self.objective, strict=True):
            size = self.size[k]
            if -gain * size.numerator * TIE_WHOLE > tie * size.denominator:
                self.barred.add(k)

    def _improve(self, level: list[int]) -> None:
        """Pivot while the level grows."""
        self._price(level)
        steps = 0
        while rising := [j for j, d in enumerate(self.objective) if d > 0 and self.nonbasic[j] not in self.barred]:
            bland = steps > STEEPEST
            j = min(rising, key=self.nonbasic.__getitem__) if bland else max(rising, key=self.objective.__getitem__)
            r = _least_ratio(self.rhs, [row[j] for row in self.T], self.basic)  # it binds first
            assert r >= 0, "a stage program is bounded"
            self.pivot(r, j)
            steps += 1

    def _price(self, level: list[int]) -> None:
        """Set `objective`: what the level gains by each nonbasic variable, times `over`."""
        self.objective = [self.over * level[k] if k < len(level) else 0 for k in self.nonbasic]
        for k, row in zip(self.basic, self.T, strict=True):
            if k < len(level) and level[k]:
                self.objective = [d - level[k] * x for d, x in zip(self.objective, row, strict=True)]

    def pivot(self, r: int, j: int) -> None:
        """Exchange the basic variable of row r and the nonbasic one of column j."""
        row, last, sign = self.T[r], self.rhs[r], 1 if self.T[r][j] > 0 else -1
        pivot, over = row[j], sign * self.over
        for i, other in enumerate(self.T):
            if i != r:
                self.rhs[i] = (self.rhs[i] * pivot - other[j] * last) // over
                self.T[i] = _eliminated(other, row, j, over, sign)
        self.objective = _eliminated(self.objective, row, j, over, sign)
        self.T[r], self.rhs[r] = [sign * x for x in row], sign * last
        self.T[r][j] = over
        self.over = sign * pivot
        self.basic[r], self.nonbasic[j] = self.nonbasic[j], self.basic[r]

    def _forget(self, j: int) -> None:
        """Delete the variable of column j, which stays zero."""
        for row in (*self.T, self.nonbasic, self.objective):
            del row[j]


def _least_ratio(numbers: list[int], per: list[int], variables: list[int]) -> int:
    """Where number / per is least among positive `per`; ties go to the lowest variable; or -1."""
    found = -1
    for k, x in enumerate(per):
        if x <= 0:
            continue
        lead = numbers[k] * per[found] - numbers[found] * x if found >= 0 else -1
        if lead < 0 or (lead == 0 and variables[k] < variables[found]):
            found = k
    return found


def _eliminated(other: list[int], row: list[int], j: int, over: int, sign: int) -> list[int]:
    """A row of the dictionary after a pivot at row[j]."""
    pivot, f = row[j], other[j]
    if f == 0:
        return [x * pivot // over for x in other] if pivot != over else other
    found = [(x * pivot - f * y) // over for x, y in zip(other, row, strict=True)]
    found[j] = -sign * f
    return found
