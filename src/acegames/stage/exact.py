"""The stage program in exact arithmetic: a small dense simplex that is never wrong, only slower.

The utilities are whole numbers once they are multiplied by a power of two, so nothing is lost on the way in (rounding the program's
coefficients could leave it without a solution). Start at a point that is too good, as the kernels do, and come down to the best feasible
one by a dual simplex; then each level is maximised in turn, and columns with a strictly negative reduced cost are barred from later
levels, which keeps the search on the optimal face (spec 4's lexicographic ties). Without an objective, and for Nash, a first phase drives
violations out. The steepest column enters; after many steps Bland's rule, so that it ends.

The dictionary is kept in whole numbers over one denominator (Edmonds; Bareiss): every entry is a minor of the first one, so a
pivot's divisions leave no remainder, and there are no common factors to look for as fractions would at every step.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Correlated
from acegames.numerics import NOISE, TIE
from acegames.stage.program import Floats, Program, common_denominator, stage_program
from acegames.stage.units import finer_goal, finer_units, first_units, goal_range

Rational = Fraction | int
TIE_PART, TIE_WHOLE = TIE.as_integer_ratio()
TRIES = 4  # at one stage, in units that the one before shows
STEEPEST = 50  # steps in a row that the steepest column may enter; most programs take fewer than ten


def solve_exactly(
    action: NDArray[np.int32],
    utility: Floats,
    concept: Correlated,
    players: tuple[Hashable, ...],
    gross: Floats | None = None,
    baseline: Floats | None = None,
) -> Floats:
    """Return sigma of one stage game, rounded to floats only at the very end."""
    sizes = np.abs(utility) if gross is None else gross
    unit = first_units(utility, sizes)
    stage = (utility, sizes, concept, players, baseline)
    goal = goal_range(*stage, unit)
    for _ in range(TRIES):
        sigma = _solved(action, *stage, unit, goal)
        finer, closer = finer_units(utility, sizes, sigma, unit), finer_goal(*stage, unit, sigma, goal)
        if finer is None and closer == goal:
            break
        unit, goal = unit if finer is None else finer, closer
    return sigma


def _solved(
    action: NDArray[np.int32],
    utility: Floats,
    gross: Floats,
    concept: Correlated,
    players: tuple[Hashable, ...],
    baseline: Floats | None,
    unit: Floats,
    goal: float,
) -> Floats:
    """The same in given units."""
    given = [utility, unit, np.array([goal])] + ([] if baseline is None else [baseline])
    times = max(x.as_integer_ratio()[1] for part in given for x in part.ravel().tolist())
    times *= float(concept.floor).as_integer_ratio()[1]
    program = stage_program(
        action, _whole(utility, times), concept, players, _whole(NOISE * gross, times),
        None if baseline is None else _whole(baseline, times), _whole(unit, times), int(_whole(np.array([goal]), times)[0]),
    )  # fmt: skip
    best = _best_point(program)
    if best is None:  # outliers are played, with more than a tiny chance
        best = _best_point(program, strict=False)
    assert best is not None
    sigma: Floats = np.array([float(x) for x in best[: program.rows]])
    total = 0.0
    for x in sigma.tolist():  # one after the other: the bits must not depend on how a library adds up
        total += x
    return sigma / total


def _whole(numbers: Floats, times: int) -> NDArray[np.object_]:
    """So many times the numbers, rounded down."""
    ratios = (x.as_integer_ratio() for x in numbers.ravel().tolist())
    found = np.empty(numbers.size, dtype=object)
    found[:] = [part * times // whole for part, whole in ratios]
    return found.reshape(numbers.shape)


def _best_point(program: Program, *, strict: bool = True) -> list[Fraction] | None:
    """The best point of the program, level by level; None where ties that were judged by depth gave a level away."""
    first, exchanges = _too_good(program)
    table = Dictionary(program, first, by_depth=strict)
    for variable, row in exchanges:
        table.enter(variable, row)
    levels = program.levels.tolist()
    if len(exchanges) < 2 and levels and any(levels[0]):  # a gap of zero, or no objective, leaves it nothing to go by
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
    """A start whose first level is at least as good as the best: a joint action, and auxiliaries that enter on rows.

    The joint action with the largest objective; where players are compared, that of the player whose best is lowest, on its own rows.
    """
    rows, auxiliaries, players = program.rows, program.A.shape[1] - program.rows, len(program.levels) - 1
    if players < 0:
        return 0, []
    if not auxiliaries:
        worth = program.levels[0]
        return worth.tolist().index(worth.max()), []
    begin = len(program.b) - auxiliaries * players  # rows  z - w_i.sigma <= o_i
    worth = -program.A[begin : begin + players, :rows]
    bounds = (program.b[begin : begin + players] + worth.max(axis=1)).tolist()
    pilot = bounds.index(min(bounds))
    own = worth[pilot].tolist()
    return own.index(max(own)), [(rows + k, begin + k * players + pilot) for k in range(auxiliaries)]


class Dictionary:
    """over * x_basic = rhs - T x_nonbasic, in whole numbers; the variables are the weights y, then the slacks of the rows.

    A slack is counted in the units that make its row whole. `size` is how large a variable can be, about: ties are judged by that.
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
        self.T.append([1] * rows + [0] * (columns - rows))  # sigma sums to one; its slack leaves at once, for good
        self.rhs.append(1)
        self.basic, self.nonbasic = [*range(columns, columns + slacks), -1], [*range(columns)]
        self.barred = [False] * (columns + slacks)
        self._pivot(slacks, first)
        self._forget(first)

    def enter(self, variable: int, row: int) -> None:
        """Make a variable basic on a row."""
        self._pivot(row, self.nonbasic.index(variable))

    def point(self) -> list[Fraction]:
        """The present weights and slacks."""
        found = [Fraction(0)] * len(self.size)
        for k, number in zip(self.basic, self.rhs, strict=True):
            found[k] = Fraction(number, self.over)
        return found

    def worth(self, level: Sequence[Rational]) -> Rational:
        """A level's value at the present point."""
        at_hand = (level[k] * number for k, number in zip(self.basic, self.rhs, strict=True) if k < len(level))
        return Fraction(sum(at_hand), self.over)

    def make_feasible(self) -> bool:
        """Phase one: an artificial column covers every violated row and is driven to zero; False where that cannot be."""
        if min(self.rhs) >= 0:
            return True
        artificial = len(self.size)
        self.size.append(1)
        self.barred.append(False)
        self.nonbasic.append(artificial)
        for row, number in zip(self.T, self.rhs, strict=True):
            row.append(-self.over if number < 0 else 0)
        self.objective = [0] * len(self.nonbasic)
        self._pivot(self.rhs.index(min(self.rhs)), len(self.nonbasic) - 1)
        self._improve([0] * artificial + [-1])
        if artificial in self.basic:
            r = self.basic.index(artificial)
            if self.rhs[r] != 0:
                return False
            self._pivot(r, next(j for j, x in enumerate(self.T[r]) if x != 0))
        self._forget(self.nonbasic.index(artificial))
        self.size.pop()
        self.barred.pop()
        return True

    def make_best(self, level: Sequence[Rational]) -> None:
        """Go from a point that is too good towards the best feasible one, if this is such a point: a dual simplex."""
        self._price(common_denominator(level)[0])
        for _ in range(
            STEEPEST + len(self.rhs)
        ):  # most take a third of that; one that stalls is left to the first phase
            if max(self.objective, default=0) > 0 or min(self.rhs) >= 0:
                return
            r = self.rhs.index(min(self.rhs))
            j = self._entering(r)
            if j < 0:
                return
            self._pivot(r, j)

    def _entering(self, r: int) -> int:
        """The column that keeps the objective's gains from rising above zero when row r leaves; of several the lowest number; -1: none."""
        found, row = -1, self.T[r]
        for j, x in enumerate(row):
            if x >= 0:
                continue
            lead = self.objective[j] * row[found] - self.objective[found] * x if found >= 0 else -1
            if lead < 0 or (lead == 0 and self.nonbasic[j] < self.nonbasic[found]):
                found = j
        return found

    def maximise(self, level: Sequence[Rational], unit: Rational = 1) -> None:
        """Move to the best point of the face that earlier calls left, and leave only what is as good, to a TIE of the unit."""
        numbers, times = common_denominator(level)
        self._improve(numbers)
        tie = TIE_PART * self.over * times * unit
        for k, gain in zip(self.nonbasic, self.objective, strict=True):
            size = self.size[k]
            if -gain * size.numerator * TIE_WHOLE > tie * size.denominator:
                self.barred[k] = True

    def _improve(self, level: list[int]) -> None:
        """Pivot while the objective grows; leaves what it gains by each variable that is not basic, times `over`."""
        self._price(level)
        steps = 0
        while rising := [j for j, d in enumerate(self.objective) if d > 0 and not self.barred[self.nonbasic[j]]]:
            bland = steps > STEEPEST
            j = min(rising, key=self.nonbasic.__getitem__) if bland else max(rising, key=self.objective.__getitem__)
            self._pivot(self._leaving(j), j)
            steps += 1

    def _price(self, level: list[int]) -> None:
        """Find what a level gains by each variable that is not basic."""
        self.objective = [self.over * level[k] if k < len(level) else 0 for k in self.nonbasic]
        for k, row in zip(self.basic, self.T, strict=True):
            if k < len(level) and level[k]:
                self.objective = [d - level[k] * x for d, x in zip(self.objective, row, strict=True)]

    def _leaving(self, j: int) -> int:
        """The row that binds first when variable j grows; of several the variable with the lowest number."""
        found = -1
        for r, row in enumerate(self.T):
            if row[j] <= 0:
                continue
            lead = self.rhs[r] * self.T[found][j] - self.rhs[found] * row[j] if found >= 0 else -1
            if lead < 0 or (lead == 0 and self.basic[r] < self.basic[found]):
                found = r
        assert found >= 0, "a stage program is bounded"
        return found

    def _pivot(self, r: int, j: int) -> None:
        """Exchange the basic variable of row r and the other one of column j."""
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
        """Leave out the variable of column j, which is zero for good."""
        for row in (*self.T, self.nonbasic, self.objective):
            del row[j]


def _eliminated(other: list[int], row: list[int], j: int, over: int, sign: int) -> list[int]:
    """A row of the dictionary after a pivot at row[j]."""
    pivot, f = row[j], other[j]
    if f == 0:
        return [x * pivot // over for x in other] if pivot != over else other
    found = [(x * pivot - f * y) // over for x, y in zip(other, row, strict=True)]
    found[j] = -sign * f
    return found
