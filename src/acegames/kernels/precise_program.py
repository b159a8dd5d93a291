"""The numbers of a stage program in twice the digits, and its levels, as `stage.program` has them.

Each number of the program is a sum of a few floats, `part`, from which A follows in powers of two
of the units. A player's utilities that differ by rounding are equal beforehand.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from acegames.kernels.doubles import add, lowest_bit, multiply, power_of_two, two_product
from acegames.kernels.records import EGALITARIAN, FAIR, Floats, Ints
from acegames.kernels.scaling import merge_equal
from acegames.numerics import NOISE, OUTLIER
from acegames.system.compiled import allocates, inlined, inner

PARTS = 6  # floats of which a number of a program is the sum


class Work(NamedTuple):
    """Room for the largest stage."""

    u: Floats  # (R, N) utilities; those that differ by rounding are equal
    part: Floats  # (rows, columns + 1, PARTS) of each number of the program, and of its right side
    A: Floats  # (rows + 1, columns + 1) the program, scaled; and the sum of weights
    A0: Floats  # what comes after the last digit of that
    size: Floats  # what rounding of A is a share of
    c: Floats  # (columns,) the objective of a level
    c0: Floats
    c_size: Floats
    T: Floats  # (rows + 1, columns) the tableau; its last column is the right side
    T0: Floats
    d: Floats  # (columns,) reduced costs
    d0: Floats
    basic: Ints
    nonbasic: Ints
    barred: Ints  # of variables, whether they are
    row_scale: Floats
    column_scale: Floats
    change: Floats  # (variables,) how large they can be, in their own scales: of `stage.exact.Ties`
    depth: Floats
    owner: Ints
    times: Floats  # (1,) what players' comparisons are multiplied by in exact arithmetic
    doubt: Ints  # (1,) whether a pivot may not be that of exact arithmetic
    near: Ints  # (1,) whether a column may still enter that loses less than a tie
    common: Floats  # (rows,) what the numbers of a row have in common; 0: not known yet
    common0: Floats
    weight: Ints  # (columns,) the basic weights, as places in `basic`
    tight: Ints  # (columns,) the nonbasic slacks, as places in `nonbasic`
    C: Floats  # (columns, columns)
    C0: Floats
    E: Floats  # |I - C M|
    x: Floats  # (columns,) basic weights
    x0: Floats
    x_error: Floats
    y: Floats
    y0: Floats
    y_error: Floats
    rest: Floats
    bound: Floats
    doubtful: Ints  # (rows + columns,) basic variables that may be zero
    modular: Ints  # (columns, columns + 1)
    levels: Floats  # (N + 1, columns) the point of each level
    levels0: Floats
    sigma: Floats
    top: Floats
    high: Floats  # (N,) a player's best, or its worst if it does not care
    low: Floats
    unit: Floats
    core: Floats
    values: Floats
    order: Floats
    places: Ints
    row: Ints
    position: Ints


@allocates
def allocate_work(R, N, actions, correlated):
    """Allocate for stages of up to R joint actions; `actions` (N,) are the numbers of each
    player's.
    """
    rows = 2 * N
    for i in range(N):
        rows += actions[i] * (actions[i] - 1) if correlated else actions[i]
    n = R + 3
    variables = rows + n
    return Work(
        np.empty((R, N)), np.empty((rows + 1, n, PARTS)), np.empty((rows + 1, n)), np.empty((rows + 1, n)),
        np.empty((rows + 1, n)), np.empty(n), np.empty(n), np.empty(n), np.empty((rows + 1, n)), np.empty((rows + 1, n)),
        np.empty(n), np.empty(n), np.empty(rows + 1, np.int64), np.empty(n, np.int64), np.empty(variables, np.int64),
        np.empty(rows + 1), np.empty(n), np.empty(variables), np.empty(n), np.empty(rows + 1, np.int64), np.empty(1),
        np.zeros(1, np.int64), np.zeros(1, np.int64), np.empty(rows + 1), np.empty(rows + 1),
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty((n, n)), np.empty((n, n)), np.empty((n, n)), np.empty(n),
        np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(variables), np.empty(n),
        np.empty(variables, np.int64), np.empty((n, 2 * n + rows), np.int64), np.empty((N + 1, n)), np.empty((N + 1, n)), np.empty(R),
        np.empty(N),
        np.empty(N), np.empty(N), np.empty(N), np.empty(N), np.empty(R), np.empty(R), np.empty(n, np.int64),
        np.empty(R, np.int64), np.full(R, -1, np.int64),
    )  # fmt: skip


class PreciseProgram(NamedTuple):
    """What of the arrays is in use."""

    R: int
    N: int
    columns: int
    rows: int
    incentives: int
    fair: bool
    goal_unit: float


@inner
def write_program(stage, goal, terms, span, work):
    """Write the program's numbers as sums of floats, and scaled."""
    R, N = len(stage.utility), len(work.top)
    comparing = goal.kind == EGALITARIAN or goal.kind == FAIR
    aux = 0 if not comparing else 2 if goal.kind == FAIR else 1
    for j in range(R):
        work.depth[j] = 1.0
    for i in range(N):
        cares = work.unit[i] > 0.0
        for j in range(R):
            work.values[j] = NOISE * stage.utility[j, N + i]
            work.u[j, i] = stage.utility[j, i] if cares else work.low[i]
        work.high[i] = work.top[i] if cares else work.low[i]
        if cares:
            merge_equal(work.u[:R, i], work.values[:R], work.order, work.places)
            for j in range(R):
                work.depth[j] = max(work.depth[j], math.floor((work.top[i] - work.u[j, i]) / work.unit[i]))
    for j in range(R):
        work.depth[j] = work.depth[j] if work.depth[j] > OUTLIER else 1.0
        work.column_scale[j] = power_of_two(0.75 * work.depth[j])
    for j in range(R, R + aux):
        work.column_scale[j] = 1.0
        work.depth[j] = 1.0
    incentives = _incentives(stage, goal, R + aux, work)
    rows = incentives
    if comparing:
        rows = _comparisons(R, N, aux, incentives, terms, work)
    work.doubt[0], work.near[0], work.times[0] = 0, 0, 1.0
    if comparing:
        bit = min(lowest_bit(span), 0)
        for i in range(N):
            bit = min(bit, lowest_bit(terms[i]), lowest_bit(work.unit[i]))
            for j in range(R):
                bit = min(bit, lowest_bit(stage.utility[j, i]))
        work.times[0] = math.ldexp(1.0, -bit - min(lowest_bit(goal.floor), 0))
    program = PreciseProgram(R, N, R + aux, rows, incentives, aux == 2, span)
    _scale(program, work)
    return program


@inner
def _incentives(stage, goal, columns, work):
    """Write the rows of deviations that can gain; return how many there are."""
    R, N, floor, count = len(stage.utility), len(work.top), goal.floor, np.int64(0)
    for i in range(N):
        if work.unit[i] == 0.0:
            continue
        low, top = work.low[i], work.top[i]
        for target in range(stage.first_action[i], stage.first_action[i + 1]):
            recommendations = stage.first_action[i + 1] - stage.first_action[i] if goal.correlated else 1
            for recommended in range(recommendations):
                if goal.correlated and recommended == target - stage.first_action[i]:
                    continue
                gains = False
                part = work.part[count]
                for j in range(columns + 1):
                    for e in range(PARTS):
                        part[j, e] = 0.0
                for j in range(R):
                    if goal.correlated and stage.action[stage.row[j], i] != recommended:
                        continue
                    to = stage.deviation[stage.row[j], target]
                    to = stage.position[to] if to >= 0 else -1
                    part[j, 1] = -work.u[j, i]
                    if to >= 0:
                        part[j, 0] = work.u[to, i]
                        gains = gains or part[j, 0] > work.u[j, i]
                    else:
                        part[j, 0] = low
                        part[j, 2], part[j, 3] = two_product(floor, low)
                        part[j, 4], part[j, 5] = two_product(-floor, top)
                if gains:
                    work.owner[count] = i
                    count += 1
    return count


@inner
def _comparisons(R, N, aux, incentives, terms, work):
    """Write the rows that compare players; return how many rows there are."""
    low, top, rows = work.low, work.high, incentives
    lowest = lowest_top = highest = widest = 0  # players
    for i in range(1, N):
        lowest = i if _less(low[i], terms[i], low[lowest], terms[lowest]) else lowest
        lowest_top = i if _less(top[i], terms[i], top[lowest_top], terms[lowest_top]) else lowest_top
        highest = i if _less(low[highest], terms[highest], low[i], terms[i]) else highest
        widest = i if _less(top[widest], -low[widest], top[i], -low[i]) else widest
    for sign in range(aux):
        for i in range(N):
            part = work.part[rows]
            for j in range(R + aux + 1):
                for e in range(PARTS):
                    part[j, e] = 0.0
            for j in range(R):
                part[j, 0] = work.u[j, i] if sign else -work.u[j, i]
                part[j, 1] = -low[i] if sign else low[i]
            part[R + sign, 0] = 1.0
            b = part[R + aux]
            if sign == 0:  # the lowest of all bests at most
                capped = not _less(low[i], terms[i], top[lowest_top], terms[lowest_top])
                b[0] = top[lowest_top] if capped else low[i]
                b[1] = terms[lowest_top] if capped else terms[i]
                b[2], b[3] = -low[lowest], -terms[lowest]
            else:
                b[0], b[1] = top[widest], -low[widest]
                if _less(top[i], terms[i], low[highest], terms[highest]):
                    b[2], b[3] = top[i], -low[i]
                else:
                    b[2], b[3] = -low[i], -terms[i]
                    b[4], b[5] = low[highest], terms[highest]
            work.owner[rows] = -1
            rows += 1
    return rows


@inner
def _less(a, a0, b, b0):
    """Return whether a + a0 < b + b0."""
    high, low = add(a, 0.0, a0, 0.0)
    high, low = add(high, low, -b, 0.0)
    high, low = add(high, low, -b0, 0.0)
    return high < 0.0


@inner
def _scale(program, work):
    """Add the parts up, in powers of two of the units."""
    R, columns, rows = program.R, program.columns, program.rows
    for r in range(rows):
        unit = work.unit[work.owner[r]] if work.owner[r] >= 0 else program.goal_unit
        scale = 1.0 / power_of_two(unit)
        work.row_scale[r] = scale
        work.common[r], work.common0[r] = (0.0 if work.owner[r] >= 0 else 1.0 / work.times[0]), 0.0
        for j in range(columns + 1):
            part, high, low, size, parts = work.part[r, j], 0.0, 0.0, 0.0, 0
            for e in range(PARTS):
                if part[e] != 0.0:
                    high, low = add(high, low, part[e], 0.0)
                    size += abs(part[e])
                    parts += 1
            factor = scale / work.column_scale[j] if j < columns else scale
            work.A[r, j], work.A0[r, j] = high * factor, low * factor
            work.size[r, j] = (abs(high) if parts <= 2 else size) * factor  # two are added exactly
    for j in range(columns + 1):
        work.A[rows, j] = 1.0 if j == columns else 1.0 / work.column_scale[j] if j < R else 0.0
        work.A0[rows, j] = 0.0
        work.size[rows, j] = work.A[rows, j]


@inner
def measure_changes(program, by_depth, work):
    """Fill how large variables can be, roughly: large slacks have small duals."""
    R, columns, at = program.R, program.columns, 0
    for j in range(1, R):
        at = j if work.depth[j] < work.depth[at] else at
    for j in range(columns):
        share = work.column_scale[j] / (work.depth[j] if by_depth else 1.0)
        work.change[j] = share if j < R else program.goal_unit
    for r in range(program.rows):
        unit = work.unit[work.owner[r]] if work.owner[r] >= 0 else program.goal_unit
        change = unit * work.row_scale[r]
        for j in range(R if by_depth else columns):
            here = work.A[r, j] * work.column_scale[j]
            if by_depth:
                here = (here - work.A[r, at] * work.column_scale[at]) / work.depth[j]
            change = max(change, abs(here))
        work.change[columns + r] = change


@inner
def set_objective(program, level, weights, work):
    """Set the objective of a level: that of the concept, then each player's utility, in units."""
    R, N, columns = program.R, program.N, program.columns
    comparing = columns > R
    unit = goal_scale(program, level, work)
    for j in range(columns):
        high = low = size = 0.0
        if j >= R:
            high = size = 1.0 if level == 0 else 0.0
        elif level > 0:
            high, low = add(work.u[j, level - 1], 0.0, -work.high[level - 1], 0.0)
            size = abs(high)
        elif not comparing:
            for i in range(N):
                v, v0 = add(work.u[j, i], 0.0, -work.high[i], 0.0)
                v, v0 = multiply(v, v0, weights[i], 0.0)
                high, low = add(high, low, v, v0)
                size += abs(v)
        factor = unit / work.column_scale[j]
        work.c[j], work.c0[j], work.c_size[j] = high * factor, low * factor, size * factor


@inner
def goal_scale(program, level, work):
    """Return the power of two by which the objective of a level is multiplied."""
    unit = program.goal_unit if level == 0 else work.unit[level - 1]
    return 1.0 / power_of_two(unit) if unit > 0.0 else 1.0


@inlined
def level_unit(program, level, weights, work):
    """Return the unit of a level as `_objective` scales it."""
    if level > 0:
        unit = work.unit[level - 1]
        return unit / power_of_two(unit) if unit > 0.0 else 1.0
    largest = 0.0
    for i in range(program.N):
        largest = max(largest, abs(weights[i]))
    largest = largest if largest > 0.0 and program.columns == program.R else 1.0
    return program.goal_unit / power_of_two(program.goal_unit) * largest
