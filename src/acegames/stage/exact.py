"""The stage program in exact arithmetic: slow but never wrong.

Utilities times a power of two are whole numbers, so nothing is rounded (rounded coefficients could
leave the program without a solution). As in the kernels, the search starts at a point that is too
good and comes down to the best feasible one by a dual simplex. Then each level is maximised in
turn; columns with a negative reduced cost are barred from later levels, which keeps the search on
the optimal face (spec 4, lexicographic ties). Without an objective, phase one removes the
violations instead. Once all columns are barred, later levels cannot change the point.

Units only decide what counts as a tie, so another try in finer units goes on from the best point of
the first level. Where players are compared, the whole numbers are scaled so that units are whole as
well. Which column is steepest then depends on the units, and each try solves the program anew.

A `Dictionary` rounds nothing. For weights y >= 0, of which the first `rows` (sigma) sum to one, and
slacks x = b - A y >= 0:

    over * basic variables = value - T * nonbasic variables

with one denominator for all numbers (Edmonds; Bareiss). Every entry is a minor of the first
dictionary, so pivots divide without remainder and need no greatest common divisors.

Few weights are basic, and almost all slacks. T holds the rows of basic weights only. The others
follow from their constraints, and a row is only made when its slack leaves the basis:

    T(slack i, j) = over * A(i, j) - sum over basic weights k of A(i, k) T(k, j)

The steepest column enters; after many steps Bland's rule ends the search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from fractions import Fraction
from operator import mul
from typing import NamedTuple

import numpy as np

from acegames.model.arrays import Floats
from acegames.numerics import NOISE, OUTLIER, TIE
from acegames.stage import Stage
from acegames.stage.program import Program, Utilities, stage_program
from acegames.stage.units import Measure, Units, ordered_sum

TRIES = 4  # solves of one stage, each in units that the last answer suggests


def solve_exactly(stage: Stage) -> Floats:
    """Return sigma of one stage game, rounded to floats only at the very end."""
    measure = Measure(stage)
    units = measure.first()
    search = _ExactSearch(stage, units)
    for _ in range(TRIES):
        sigma = search.best(units)
        finer = measure.finer(units, sigma)
        if finer is None:
            break
        units = finer
        if stage.concept.criterion.compares:
            search = _ExactSearch(stage, units)
    return sigma


class _ExactSearch:
    """The program of a stage, and its dictionary at the best point of the first level."""

    def __init__(self, stage: Stage, units: Units) -> None:
        self.floor = float(stage.concept.floor).as_integer_ratio()[1]  # its denominator
        self.times, whole = _whole_numbers(stage, units, self.floor)
        self.program = stage_program(stage, whole, (units.own > 0).tolist())
        self.table = _at_first_level(self.program)

    def best(self, units: Units) -> Floats:
        """Return the best sigma, where ties are judged in these units."""
        ties, level_unit = self._ties(units)
        # not by depth if outliers are played with more than a tiny probability
        loose = ties._replace(depth=None, by_depth=False)
        sigma = self._best_point(ties, level_unit) or self._best_point(loose, level_unit) or []
        total = ordered_sum(sigma)
        return np.array([x / total for x in sigma])

    def _best_point(self, ties: Ties, level_unit: list[int]) -> list[float] | None:
        """Return the best point, level by level; None if ties judged by depth gave a level away."""
        table, passed = copy(self.table), list[tuple[list[int], int, Fraction]]()
        for level, unit in zip(self.program.levels, level_unit, strict=False):
            table.maximise(level, unit, ties)
            if table.barred.issuperset(table.nonbasic):
                break
            passed.append((level, unit, table.worth(level)))
        for level, unit, most in passed if ties.by_depth else ():
            if TIE_WHOLE * ties.finer * (most - table.worth(level)) > 4 * TIE_PART * unit:
                return None
        return [x / table.over for x in table.value[: self.program.rows]]

    def _ties(self, units: Units) -> tuple[Ties, list[int]]:
        """Return what counts as a tie in these units, and the unit of each level."""
        program, ratios = self.program, [x.as_integer_ratio() for x in (*units.own.tolist(), units.goal)]
        finer = max(1, max([below for _, below in ratios]) * self.floor // self.times)
        *own, goal = [above * (self.times * finer // below) for above, below in ratios]
        row_unit, level_unit = program.units(own, goal)
        levels = zip(program.levels[1:], level_unit[1:], strict=False)
        below_best = [[-x * finer // unit for x in level[: program.rows]] for level, unit in levels]
        depth = [x if x > OUTLIER else 1 for x in map(max, zip(*below_best, strict=True))]
        outliers = max(depth, default=1) > 1
        return Ties(row_unit, goal or 1, depth if outliers else None, finer), level_unit


def _whole_numbers(stage: Stage, units: Units, floor: int) -> tuple[int, Utilities]:
    """Return a power of two, and the numbers of a stage times this, which are whole.

    Blur is cut to whole numbers. Ranges times the concept's floor, whose denominator is given, are
    whole as well.
    """
    players = [*stage.utility.T.tolist(), stage.baseline.tolist()]
    if stage.concept.criterion.compares:
        players.append([*units.own.tolist(), units.goal])
    ratios = [[x.as_integer_ratio() for x in numbers] for numbers in players]
    times = floor * max([below for numbers in ratios for _, below in numbers])
    whole = [[above * (times // below) for above, below in numbers] for numbers in ratios]
    noise = [[x.as_integer_ratio() for x in numbers] for numbers in (NOISE * stage.abs_total).T.tolist()]
    blur = [[above * times // below for above, below in numbers] for numbers in noise]
    return times, Utilities(whole[: len(blur)], blur, whole[len(blur)])


def _at_first_level(program: Program) -> Dictionary:
    """Return a dictionary at the best point of the first level, or at any point if there is
    none.
    """
    first, exchanges = _too_good(program)
    table = Dictionary(program, first)
    for variable, row in exchanges:
        table.pivot(row, table.nonbasic.index(variable), table.row(row))
    # A fair start (two exchanges) and a start without an objective cannot guide a dual simplex.
    if len(exchanges) < 2 and program.levels and any(program.levels[0]):
        table.make_best(program.levels[0])
    if not table.make_feasible():
        raise AssertionError("a stage program without a solution: the utilities or the floor are invalid")
    if program.levels:
        table.improve(program.levels[0])
    return table


def _too_good(program: Program) -> tuple[int, list[tuple[int, int]]]:
    """Return a joint action that is at least as good as the best on the first level, and exchanges.

    The joint action has the largest objective. If players are compared, it is the best one of the
    player whose best is lowest, and the auxiliaries enter on that player's constraints.
    """
    rows, levels, players = program.rows, program.levels, len(program.levels) - 1
    if not levels:
        return 0, []
    if not program.auxiliaries:
        return levels[0].index(max(levels[0])), []
    begin = len(program.b) - program.auxiliaries * players  # of z - w_i.sigma <= o_i
    short = [row[:rows] for row in program.A[begin : begin + players]]  # -w_i
    best = [b - min(own) for own, b in zip(short, program.b[begin:], strict=False)]
    pilot = best.index(min(best))
    exchanges = [(rows + k, begin + k * players + pilot) for k in range(program.auxiliaries)]
    return short[pilot].index(min(short[pilot])), exchanges


# -- the dictionary --------------------------------------------------------------------------------


TIE_PART, TIE_WHOLE = TIE.as_integer_ratio()
STEEPEST = 50  # pivots before Bland's rule; most programs take fewer than ten


class Ties(NamedTuple):
    """What counts as a tie, in whole numbers that are `finer` times those of the program."""

    row_unit: list[int]  # of each constraint
    auxiliary: int = 1  # the unit of auxiliaries
    # (rows,) units below a player's best at outliers, else 1; None: no outliers
    depth: list[int] | None = None
    finer: int = 1
    by_depth: bool = True  # outliers are played with probability one over their depth


class Dictionary:
    """The dictionary of a program, first at a joint action; variables are weights, then slacks."""

    def __init__(self, program: Program, first: int = 0) -> None:
        columns = program.rows + program.auxiliaries
        self.program, self.columns, self.artificial = program, columns, columns + len(program.b)
        # what the numbers of each constraint have in common
        self.common = [math.gcd(b, *row) or 1 for row, b in zip(program.A, program.b, strict=True)]
        divided = [[x // common for x in row] for row, common in zip(program.A, self.common, strict=True)]
        self.A = dict(enumerate(zip(*divided, strict=True) if divided else [()] * columns))  # by weight
        self.b = [x // common for x, common in zip(program.b, self.common, strict=True)]
        self.basic = [*range(columns, self.artificial), first]
        self.nonbasic = [k for k in range(columns) if k != first]
        # sigma of the first joint action is one less that of the others
        self.over, self.T = 1, {first: [int(k < program.rows) for k in self.nonbasic]}
        self.value = [0] * (self.artificial + 1)  # of each variable, times `over`
        self.value[first] = 1
        self._set_slacks()
        self.level: Sequence[int] = ()
        self.objective = [0] * len(self.nonbasic)  # what the level gains by each, times `over`
        self.barred = set[int]()

    def __copy__(self) -> Dictionary:
        """Return a dictionary that can go its own way; the rows themselves are never changed."""
        other = object.__new__(Dictionary)
        other.__dict__.update(self.__dict__)
        for name in ("T", "value", "basic", "nonbasic", "barred"):
            setattr(other, name, copy(getattr(self, name)))
        return other

    def point(self) -> list[Fraction]:
        """Return the current weights and slacks."""
        return [Fraction(x, self.over) for x in self.value[: self.artificial]]

    def worth(self, level: Sequence[int]) -> Fraction:
        """Return the value of a level at the current point."""
        return Fraction(sum(map(mul, level, self.value)), self.over)

    def make_best(self, level: Sequence[int]) -> None:
        """Run the dual simplex from a point that is too good (if it is) to the best feasible
        one.
        """
        self._price(level)
        for _ in range(STEEPEST + len(self.basic)):  # phase one continues where this stalls
            r = self._most_violated()
            if r < 0 or max(self.objective, default=0) > 0:
                return
            row = self.row(r)
            # the column that keeps all gains at most zero when row r leaves
            j = _least_ratio([-d for d in self.objective], [-x for x in row], self.nonbasic)
            if j < 0:
                return
            self.pivot(r, j, row)

    def make_feasible(self) -> bool:
        """Drive an artificial column over violated rows to zero; False if impossible."""
        r = self._most_violated()
        if r < 0:
            return True
        self._add_artificial()
        self.pivot(r, len(self.nonbasic) - 1, self.row(r))
        self.improve([0] * self.artificial + [-1])
        if self.artificial in self.basic:
            if self.value[self.artificial] != 0:
                return False
            r = self.basic.index(self.artificial)
            row = self.row(r)
            self.pivot(r, next(j for j, x in enumerate(row) if x != 0), row)
        j = self.nonbasic.index(self.artificial)
        del self.nonbasic[j]
        self.objective = self.objective[:j] + self.objective[j + 1 :]
        self.T = {k: row[:j] + row[j + 1 :] for k, row in self.T.items()}
        return True

    def maximise(self, level: Sequence[int], unit: int, ties: Ties) -> None:
        """Go to the best point of the current face; bar what loses more than a TIE of the unit."""
        self.improve(level)
        tie = TIE_PART * self.over * unit
        for k, gain in zip(self.nonbasic, self.objective, strict=True):
            if gain < 0 and k not in self.barred:
                size, of = self._size(k, ties)
                if -gain * ties.finer * size * TIE_WHOLE > tie * of:
                    self.barred.add(k)

    def improve(self, level: Sequence[int]) -> None:
        """Pivot while the level grows."""
        self._price(level)
        steps = 0
        while rising := [j for j, d in enumerate(self.objective) if d > 0 and self.nonbasic[j] not in self.barred]:
            bland = steps > STEEPEST
            j = min(rising, key=self.nonbasic.__getitem__) if bland else max(rising, key=self.objective.__getitem__)
            r = _least_ratio([self.value[k] for k in self.basic], self._column(j), self.basic)  # it binds first
            assert r >= 0, "a stage program is bounded"
            self.pivot(r, j, self.row(r))
            steps += 1

    def pivot(self, r: int, j: int, row: list[int]) -> None:
        """Exchange the basic variable of row r and the nonbasic one of column j; `row` is row r."""
        T, value, over, leaving, entering = self.T, self.value, self.over, self.basic[r], self.nonbasic[j]
        sign = 1 if row[j] > 0 else -1
        row = [sign * x for x in row]
        pivot, last = row[j], sign * value[leaving]
        own = [*row]
        own[j] = sign * over
        row[j] += sign * over  # so that other entries of the column become -sign times what they are
        T.pop(leaving, None)
        for k, other in T.items():
            value[k] = (value[k] * pivot - other[j] * last) // over
            T[k] = _eliminated(other, j, row, pivot, over)
        self.objective = _eliminated(self.objective, j, row, pivot, over)
        if entering in self.A:
            T[entering] = own
        self.basic[r], self.nonbasic[j], self.over = entering, leaving, pivot
        value[leaving], value[entering] = 0, last
        self._set_slacks()

    def row(self, r: int) -> list[int]:
        """Return row r of T; the row of a slack is made."""
        if (stored := self.T.get(self.basic[r])) is not None:
            return stored
        i = self.basic[r] - self.columns
        made = [self.over * self.A[k][i] if k in self.A else 0 for k in self.nonbasic]
        for k, row in self.T.items():
            if a := self.A[k][i]:
                made = [x - a * y for x, y in zip(made, row, strict=True)]
        return made

    def _column(self, j: int) -> list[int]:
        """Return column j of T."""
        entering = self.nonbasic[j]
        slacks = [self.over * a for a in self.A[entering]] if entering in self.A else [0] * len(self.b)
        slacks = self._less(slacks, {k: row[j] for k, row in self.T.items()})
        return [self.T[k][j] if k in self.T else slacks[k - self.columns] for k in self.basic]

    def _set_slacks(self) -> None:
        """Set the values of the slacks from those of the basic weights."""
        slacks = self._less([self.over * x for x in self.b], {k: self.value[k] for k in self.T})
        self.value[self.columns : self.artificial] = slacks

    def _less(self, slacks: list[int], weights: dict[int, int]) -> list[int]:
        """Return what is left of the slacks less A times the weights."""
        for k, y in weights.items():
            if y:
                slacks = [x - a * y for x, a in zip(slacks, self.A[k], strict=True)]
        return slacks

    def _most_violated(self) -> int:
        """Return the row whose basic variable is most negative; -1 if none is."""
        values = [self.value[k] for k in self.basic]
        least = min(values)
        return values.index(least) if least < 0 else -1

    def _add_artificial(self) -> None:
        """Add a nonbasic column with -1 in the rows whose basic variable is negative, else 0."""
        violated = {k: -int(self.value[k] < 0) for k in self.basic}
        slacks = [violated.get(k, 0) for k in range(self.columns, self.artificial)]
        column = self._less(slacks, {k: -violated[k] for k in self.T})
        self.A = {**self.A, self.artificial: tuple(column)}
        self.T = {k: [*row, violated[k] * self.over] for k, row in self.T.items()}
        self.nonbasic.append(self.artificial)
        self.objective = [0] * len(self.nonbasic)

    def _price(self, level: Sequence[int]) -> None:
        """Set `objective` for another level; pivots keep it."""
        if level is self.level:
            return
        self.level = level
        self.objective = [self.over * level[k] if k < len(level) else 0 for k in self.nonbasic]
        for k, row in self.T.items():
            if level[k]:
                self.objective = [d - level[k] * x for d, x in zip(self.objective, row, strict=True)]

    def _size(self, k: int, ties: Ties) -> tuple[int, int]:
        """Return roughly how large a variable can be, as a fraction: large slacks have small
        duals.
        """
        rows, depth, finer = self.program.rows, ties.depth, ties.finer
        if k < self.columns:
            return (1, depth[k] if depth else 1) if k < rows else (ties.auxiliary, 1)
        r = k - self.columns
        row = self.program.A[r]
        if not ties.by_depth:
            change = max(map(abs, row)) * finer
        elif depth:
            at_first = row[depth.index(min(depth))]
            change = max([abs(x - at_first) * finer // d for x, d in zip(row, depth, strict=False)])
        else:
            change = max([abs(x - row[0]) for x in row[:rows]]) * finer
        return max(change, ties.row_unit[r]), self.common[r] * finer


def _least_ratio(numbers: list[int], per: list[int], variables: list[int]) -> int:
    """Return where number / per is least among positive `per`, or -1; ties go to the lowest
    variable.
    """
    best = -1
    for k, x in enumerate(per):
        if x <= 0:
            continue
        lead = numbers[k] * per[best] - numbers[best] * x if best >= 0 else -1
        if lead < 0 or (lead == 0 and variables[k] < variables[best]):
            best = k
    return best


def _eliminated(other: list[int], j: int, row: list[int], pivot: int, over: int) -> list[int]:
    """Return another row after a pivot in column j."""
    if f := other[j]:
        return [(x * pivot - f * y) // over for x, y in zip(other, row, strict=True)]
    return [x * pivot // over for x in other] if pivot != over else other
