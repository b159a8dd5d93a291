"""A stage program as a dictionary, and how it is brought to its best. Dense, small, no allocation.

    x_B = rhs - T x_N,    objective = z - d x_N,    d >= 0 throughout the dual simplex.

Ratio tests are Harris's two passes; after many pivots Bland's rule takes over. Each level's answer
is certified by weak duality from the program's own numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acegames.kernels.hints import apart
from acegames.kernels.records import Floats, Ints
from acegames.numerics import HARRIS, HIGH_PRICE, LARGE_CERTIFICATE, LEVER, LP_CERTIFICATE, NOISE, PIVOT, ROW_FEASIBLE
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


class Program(NamedTuple):
    """maximise c.x subject to A x <= b, x >= 0, the first R weights summing to 1."""

    A: Floats
    b: Floats
    c: Floats  # the objective of the present level
    depth: Floats  # how far a joint action is below some player's best where it is an outlier, else 1
    size: Floats  # how far each row's slack can change, about
    R: int  # joint actions
    columns: int  # and auxiliaries
    rows: int
    incentives: int  # of the rows, those of deviations, which come first


class Dictionary(NamedTuple):
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
    apart()
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
    """The same among the reduced costs of columns that are not barred."""
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
    """Of the least ratios b / (sign a), the one with the largest pivot; -1: there is none."""
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
    apart()
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
    apart()
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
    apart()
    c, depth, d = program.c, program.depth, table.d
    for k in range(table.n):
        j = table.nonbasic[k]
        d[k] = -c[j] / depth[j] if j < program.columns else 0.0
    for i in range(table.m):
        j = table.basic[i]
        if j < program.columns:
            f = c[j] / depth[j]
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
            x[j] = max(table.rhs[i], 0.0) / program.depth[j]


@inner
def read_prices(table, program, y):
    """Fill the prices (rows,) of the present basis."""
    y[: program.rows] = 0.0
    for k in range(table.n):
        if table.nonbasic[k] >= program.columns:
            y[table.nonbasic[k] - program.columns] = table.d[k]


@inner
def is_certified(program, x, y, barred):
    """Weak duality at one level: no gap between the bound of the prices and the point.

    The bound is the largest price of a joint action; prices of outliers are counted in their depth,
    as their weights are. Where prices are so high that the rounding of a row is a lever on the
    objective, so that ties could not be told, nothing is certified.
    """
    apart()
    accepted = LP_CERTIFICATE if program.R <= STRICT else LARGE_CERTIFICATE
    A, b = program.A, program.b
    value = 0.0
    fixed = 0.0
    lever = 0.0
    for j in range(program.columns):
        value += program.c[j] * x[j]
    for r in range(program.rows):
        fixed += y[r] * b[r]
        if y[r] * program.size[r] < -accepted and not barred[program.columns + r]:
            return False
        if y[r] != 0.0:
            over = -b[r]
            own = 0.0
            for j in range(program.columns):
                over += A[r, j] * x[j]
                own += 0.25 * NOISE * abs(y[r] * A[r, j] * x[j])
            lever += own + abs(y[r]) * max(over, 0.0)
    if lever > LEVER and program.R <= STRICT:
        return False
    gap = -np.inf
    for j in range(program.columns):
        if barred[j]:
            continue
        price = _price(j, program, y)
        if j < program.R:
            gap = max(gap, (price + fixed - value) / program.depth[j])
            if price + fixed - value > accepted:
                return False  # it should be played, though it may be an outlier
        elif price > accepted:
            return False
    return abs(gap) <= accepted


@inner
def _price(j, program, y):
    """Return what a column is worth after it has paid for its part in the rows."""
    price = program.c[j]
    for r in range(program.rows):
        if y[r] != 0.0:
            price -= y[r] * program.A[r, j]
    return price


@inner
def prices_agree(table, program, x, y):
    """Return whether reduced costs agree with the program's own numbers, where prices are high."""
    apart()
    high = 0.0
    for r in range(program.rows):
        high = max(high, abs(y[r]))
    if high <= HIGH_PRICE:
        return True
    level = -np.inf  # what a joint action that is played is worth
    for j in range(program.R):
        if x[j] > 0.0:
            level = max(level, _price(j, program, y))
    for k in range(table.n):
        j = table.nonbasic[k]
        if j < program.R and abs((level - _price(j, program, y)) / program.depth[j] - table.d[k]) > LEVER:
            return False
    return True


@inner
def refine(table, program, x):
    """Take rounding out of the point: weights sum to one, and tight rows are tight."""
    apart()
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
