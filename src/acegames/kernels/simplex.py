"""A stage program as a tableau, and how it is brought to its best. Dense, small, no allocation.

    x_B = rhs - T x_N,    objective = z - d x_N,    d >= 0 throughout the dual simplex.

Ratio tests are Harris's two passes; after many pivots Bland's rule takes over. Each level's answer
is certified by weak duality from the program's own numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acegames.kernels.intrinsics import noinline
from acegames.kernels.records import Floats, Ints
from acegames.numerics import (
    DUAL_INFEASIBILITY,
    HARRIS,
    HIGH_DUAL,
    LARGE_CERTIFICATE,
    LP_CERTIFICATE,
    NOISE,
    PIVOT,
    ROW_FEASIBLE,
)
from acegames.system.compiled import inner

STRICT = 16
"""Joint actions up to which only the exact optimum will do: exact arithmetic can still be asked."""


class Tolerances(NamedTuple):
    """What the simplex takes for zero."""

    cost: float  # a reduced cost above minus this
    pivot: float
    slack: float  # how far Harris's first pass oversteps a bound
    share: float  # how far equal ratios may differ
    zero: float  # a negative right side above minus this


STAGE = Tolerances(ROW_FEASIBLE, PIVOT, HARRIS, 0.0, HARRIS)


class FloatProgram(NamedTuple):
    """maximise c.x subject to A x <= b, x >= 0, the first R weights summing to 1."""

    A: Floats
    b: Floats
    c: Floats  # the objective of the present level
    column_scale: Floats  # how far a joint action is below some player's best where it is an outlier, else 1
    slack_scale: Floats  # how far each row's slack can change, about
    R: int  # joint actions
    columns: int  # and auxiliaries
    rows: int
    incentives: int  # of the rows, those of deviations, which come first


class Tableau(NamedTuple):
    """m basic and n other variables: weights 0 .. columns-1, then slacks of rows."""

    T: Floats
    rhs: Floats
    d: Floats
    basic: Ints
    nonbasic: Ints
    m: int
    n: int


@inner
def pivot(table, r, j):
    """Exchange the basic variable of row r and the other one of column j."""
    noinline()
    T, rhs, d = table.T, table.rhs, table.d
    inverse = 1.0 / T[r, j]
    for k in range(table.n):
        T[r, k] *= inverse
    T[r, j] = inverse
    rhs[r] *= inverse
    for i in range(table.m):
        if i != r:
            f = T[i, j]
            if f != 0.0:
                for k in range(table.n):
                    T[i, k] -= f * T[r, k]
                T[i, j] = -f * inverse
                rhs[i] -= f * rhs[r]
    f = d[j]
    if f != 0.0:
        for k in range(table.n):
            d[k] -= f * T[r, k]
        d[j] = -f * inverse
    table.basic[r], table.nonbasic[j] = table.nonbasic[j], table.basic[r]


@inner
def lowest(values, count, bound, first):
    """Return the place of the lowest value, or of the first, below a bound; -1: there is none."""
    at = -1
    for k in range(count):
        if values[k] < bound:
            at = k
            if first:
                break
            bound = values[k]
    return at


@inner
def _entering(table, d, barred, bound, first):
    """Return the column of the lowest reduced cost, or the first, below a bound; -1 if none.

    Columns that are barred do not count.
    """
    at = -1
    for k in range(table.n):
        if d[k] < bound and not barred[table.nonbasic[k]]:
            at = k
            if first:
                break
            bound = d[k]
    return at


@inner
def _first_to_bind(b, a, sign, count, tolerances, bland):
    """Return which of the least ratios b / (sign a) has the largest pivot; -1 if there is none."""
    bound = np.inf
    for k in range(count):
        if sign * a[k] > tolerances.pivot:
            bound = min(bound, (max(b[k], 0.0) + (0.0 if bland else tolerances.slack)) * (1.0 / (sign * a[k])))
    bound = bound * (1.0 + tolerances.share) + tolerances.share
    at = -1
    size = tolerances.pivot
    for k in range(count):
        if sign * a[k] > size and max(b[k], 0.0) * (1.0 / (sign * a[k])) <= bound:
            at = k
            size = sign * a[k]
            if bland:
                break
    return at


@inner
def dual_simplex(table):
    """Make rhs >= 0 while keeping d >= 0. Returns whether that was done."""
    noinline()
    T, rhs = table.T, table.rhs
    limit = 20 * (table.m + table.n) + 50
    for step in range(limit):
        bland = step > limit // 2
        r = lowest(rhs, table.m, -ROW_FEASIBLE, bland)
        if r < 0:
            return True
        j = _first_to_bind(table.d, T[r], -1.0, table.n, STAGE, bland)
        if j >= 0:
            pivot(table, r, j)
        elif rhs[r] < -HARRIS:
            return False
        rhs[r] = max(rhs[r], 0.0)  # where no pivot would mend it, it is what others rounded off
    return False


@inner
def primal_simplex(table, d, rows, barred, tolerances):
    """Make d >= 0 on columns not barred, keeping rhs >= 0 in the first rows; False: that fails."""
    noinline()
    T, rhs = table.T, table.rhs
    limit = 20 * (rows + table.n) + 50
    for step in range(limit):
        bland = step > limit // 2
        j = _entering(table, d, barred, -tolerances.cost, bland)
        if j < 0:
            return True
        r = _first_to_bind(rhs, T[:, j], 1.0, rows, tolerances, bland)
        if r < 0:
            return False
        pivot(table, r, j)
        for i in range(rows):
            if rhs[i] < 0.0 and rhs[i] > -tolerances.zero:
                rhs[i] = 0.0
    return False


@inner
def reduced_costs(table, program):
    """Fill d for the program's objective at the present basis."""
    noinline()
    c, column_scale, d = program.c, program.column_scale, table.d
    for k in range(table.n):
        j = table.nonbasic[k]
        d[k] = -c[j] / column_scale[j] if j < program.columns else 0.0
    for i in range(table.m):
        j = table.basic[i]
        if j < program.columns:
            f = c[j] / column_scale[j]
            if f != 0.0:
                for k in range(table.n):
                    d[k] += f * table.T[i, k]


@inner
def read_point(table, program, x):
    """Fill the weights (columns,) of the present basis."""
    x[: program.columns] = 0.0
    for i in range(table.m):
        j = table.basic[i]
        if j < program.columns:
            x[j] = max(table.rhs[i], 0.0) / program.column_scale[j]


@inner
def read_duals(table, program, y):
    """Fill the duals (rows,) of the present basis."""
    y[: program.rows] = 0.0
    for k in range(table.n):
        if table.nonbasic[k] >= program.columns:
            y[table.nonbasic[k] - program.columns] = table.d[k]


@inner
def is_certified(program, x, y, barred):
    """Check weak duality at one level: no gap between the bound of the duals and the point.

    The bound is the largest reduced payoff of a joint action; those of outliers are counted in
    their depth, as their weights are. Where duals are so high that the rounding of a row moves the
    objective, so that ties could not be told, nothing is certified.
    """
    noinline()
    accepted = LP_CERTIFICATE if program.R <= STRICT else LARGE_CERTIFICATE
    A, b = program.A, program.b
    value = 0.0
    fixed = 0.0
    dual_infeasibility = 0.0
    for j in range(program.columns):
        value += program.c[j] * x[j]
    for r in range(program.rows):
        fixed += y[r] * b[r]
        if y[r] * program.slack_scale[r] < -accepted and not barred[program.columns + r]:
            return False
        if y[r] != 0.0:
            over = -b[r]
            own = 0.0
            for j in range(program.columns):
                over += A[r, j] * x[j]
                own += 0.25 * NOISE * abs(y[r] * A[r, j] * x[j])
            dual_infeasibility += own + abs(y[r]) * max(over, 0.0)
    if dual_infeasibility > DUAL_INFEASIBILITY and program.R <= STRICT:
        return False
    gap = -np.inf
    for j in range(program.columns):
        if barred[j]:
            continue
        payoff = _reduced_payoff(j, program, y)
        if j < program.R:
            gap = max(gap, (payoff + fixed - value) / program.column_scale[j])
            if payoff + fixed - value > accepted:
                return False  # it should be played, though it may be an outlier
        elif payoff > accepted:
            return False
    return abs(gap) <= accepted


@inner
def _reduced_payoff(j, program, y):
    """Return the reduced payoff of a column: what it gains, less its part in the rows at their
    duals.
    """
    payoff = program.c[j]
    for r in range(program.rows):
        if y[r] != 0.0:
            payoff -= y[r] * program.A[r, j]
    return payoff


@inner
def duals_agree(table, program, x, y):
    """Return whether reduced costs agree with the program's own numbers, where duals are high."""
    noinline()
    high = 0.0
    for r in range(program.rows):
        high = max(high, abs(y[r]))
    if high <= HIGH_DUAL:
        return True
    level = -np.inf  # what a joint action that is played is worth
    for j in range(program.R):
        if x[j] > 0.0:
            level = max(level, _reduced_payoff(j, program, y))
    for k in range(table.n):
        j = table.nonbasic[k]
        if (
            j < program.R
            and abs((level - _reduced_payoff(j, program, y)) / program.column_scale[j] - table.d[k])
            > DUAL_INFEASIBILITY
        ):
            return False
    return True


@inner
def refine(table, program, x):
    """Take rounding out of the point: weights sum to one, and tight rows are tight."""
    noinline()
    total = 0.0
    for j in range(program.R):
        total += x[j]
    factor = 1.0 / total
    for i in range(table.m):
        if table.basic[i] < program.R:
            table.rhs[i] *= factor
    for j in range(program.R):
        x[j] *= factor
    for k in range(table.n):
        if table.nonbasic[k] >= program.columns:
            r = table.nonbasic[k] - program.columns
            slack = program.b[r]
            for j in range(program.columns):
                if x[j] != 0.0:
                    slack -= program.A[r, j] * x[j]
            for i in range(table.m):
                table.rhs[i] += table.T[i, k] * slack
    read_point(table, program, x)
