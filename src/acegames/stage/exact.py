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
"""

from __future__ import annotations

from copy import copy
from fractions import Fraction

import numpy as np

from acegames.model.arrays import Floats
from acegames.numerics import NOISE, OUTLIER
from acegames.stage import Stage
from acegames.stage.dictionary import TIE_PART, TIE_WHOLE, Dictionary, Ties
from acegames.stage.program import Program, Utilities, stage_program
from acegames.stage.units import Measure, Units, ordered_sum

TRIES = 4  # solves of one stage, each in units that the last answer suggests


def solve_exactly(stage: Stage) -> Floats:
    """Return sigma of one stage game, rounded to floats only at the very end."""
    measure = Measure(stage)
    units = measure.first()
    search = _Search(stage, units)
    for _ in range(TRIES):
        sigma = search.best(units)
        finer = measure.finer(units, sigma)
        if finer is None:
            break
        units = finer
        if stage.concept.criterion.compares:
            search = _Search(stage, units)
    return sigma


class _Search:
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
        program, given = self.program, [x.as_integer_ratio() for x in (*units.own.tolist(), units.goal)]
        finer = max(1, max([below for _, below in given]) * self.floor // self.times)
        *own, goal = [above * (self.times * finer // below) for above, below in given]
        row_unit, level_unit = program.units(own, goal)
        levels = zip(program.levels[1:], level_unit[1:], strict=False)
        below_best = [[-x * finer // unit for x in level[: program.rows]] for level, unit in levels]
        depth = [x if x > OUTLIER else 1 for x in map(max, zip(*below_best, strict=True))]
        outliers = max(depth, default=1) > 1
        return Ties(row_unit, goal or 1, depth if outliers else None, finer), level_unit


def _whole_numbers(stage: Stage, units: Units, floor: int) -> tuple[int, Utilities]:
    """Return a power of two, and the numbers of a stage times this, which are whole; blur is cut to
    whole.

    Ranges times the concept's floor, whose denominator is given, are whole as well.
    """
    given = [*stage.utility.T.tolist(), stage.baseline.tolist()]
    if stage.concept.criterion.compares:
        given.append([*units.own.tolist(), units.goal])
    ratios = [[x.as_integer_ratio() for x in numbers] for numbers in given]
    times = floor * max([below for numbers in ratios for _, below in numbers])
    whole = [[above * (times // below) for above, below in numbers] for numbers in ratios]
    noise = [[x.as_integer_ratio() for x in numbers] for numbers in (NOISE * stage.gross).T.tolist()]
    blur = [[above * times // below for above, below in numbers] for numbers in noise]
    return times, Utilities(whole[: len(blur)], blur, whole[len(blur)])


def _at_first_level(program: Program) -> Dictionary:
    """Return a dictionary at the best point of the first level, or at any point if there is none."""
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
    """Return a start at least as good as the best on the first level: a joint action, and
    exchanges.

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
