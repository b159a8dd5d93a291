"""The simplex of `stage.exact` in twice the digits: the same start, and the same pivots.

The rules compare whole numbers there: slacks are counted in what the numbers of their row have in
common. Sums that cancel are zero (`add_or_cancel`), as they are there, or nearly always.
"""

from __future__ import annotations

import math

import numpy as np

from acegames.kernels.doubles import add, add_or_cancel, add_product, cancelled, inverse, last_place, multiply
from acegames.kernels.precise_program import PARTS, set_objective
from acegames.numerics import PRECISE_EQUAL, PRECISE_FAINT, PRECISE_ROUNDED_OFF, PRECISE_UNSURE
from acegames.system.compiled import inlined, inner

STEEPEST = 50  # as in `stage.exact`


@inner
def start(program, weights, work):
    """Fill the tableau at the joint action that is best, or too good; return its lengths."""
    R, columns, rows, incentives = program.R, program.columns, program.rows, program.incentives
    a = pilot = 0
    set_objective(program, 0, weights, work)
    if columns > R:
        least = np.inf
        for i in range(program.N):
            most = -np.inf
            for j in range(R):
                most = max(most, -work.A[incentives + i, j] * work.column_scale[j])
            if work.A[incentives + i, columns] + most < least:
                least = work.A[incentives + i, columns] + most
                pilot = i
        for j in range(R):
            if (
                work.A[incentives + pilot, j] * work.column_scale[j]
                < work.A[incentives + pilot, a] * work.column_scale[a]
            ):
                a = j
    else:
        for j in range(R):
            if work.c[j] * work.column_scale[j] > work.c[a] * work.column_scale[a]:
                a = j
    k = 0
    for j in range(columns):
        if j == a:
            continue
        shared = work.A[rows, j] * work.column_scale[a]  # of the sum of weights
        for r in range(rows):
            high, low = add(work.A[r, j], work.A0[r, j], -shared * work.A[r, a], -shared * work.A0[r, a])
            work.T[r, k], work.T0[r, k] = high, low
        work.T[rows, k], work.T0[rows, k] = shared, 0.0
        work.nonbasic[k] = j
        k += 1
    scale = work.column_scale[a]
    for r in range(rows):
        high, low = add(work.A[r, columns], work.A0[r, columns], -scale * work.A[r, a], -scale * work.A0[r, a])
        work.T[r, k], work.T0[r, k] = high, low
        work.basic[r] = columns + r
    work.T[rows, k], work.T0[rows, k] = scale, 0.0
    work.basic[rows] = a
    for variable in range(columns + rows):
        work.barred[variable] = 0
    price(program, rows + 1, k, work)
    if columns > R:
        _pivot(incentives + pilot, R - 1, rows + 1, k, work)
        if columns > R + 1:
            _pivot(incentives + program.N + pilot, R, rows + 1, k, work)
    return rows + 1, k


@inner
def price(program, m, n, work):
    """Fill the reduced costs of the objective at the present basis."""
    d, d0, c, c0, T, T0, size = work.d, work.d0, work.c, work.c0, work.T, work.T0, work.bound
    for k in range(n):
        j = work.nonbasic[k]
        d[k], d0[k] = (-c[j], -c0[j]) if j < program.columns else (0.0, 0.0)
        size[k] = abs(d[k])
    for i in range(m):
        j = work.basic[i]
        if j < program.columns and c[j] != 0.0:
            for k in range(n):
                d[k], d0[k] = add_product(d[k], d0[k], c[j], c0[j], T[i, k], T0[i, k])
                size[k] += abs(c[j] * T[i, k])
    for k in range(n):
        d[k], d0[k] = cancelled(d[k], d0[k], size[k], work.doubt)


@inner
def _pivot(r, j, m, n, work):
    """Exchange the basic variable of row r and the other one of column j."""
    T, T0, d, d0 = work.T, work.T0, work.d, work.d0
    over, over0 = inverse(T[r, j], T0[r, j])
    for k in range(n + 1):
        if k != j and T[r, k] != 0.0:
            T[r, k], T0[r, k] = multiply(T[r, k], T0[r, k], over, over0)
    T[r, j], T0[r, j] = over, over0
    for i in range(m):
        f, f0 = -T[i, j], -T0[i, j]
        if i != r and f != 0.0:
            for k in range(n + 1):
                if k != j and T[r, k] != 0.0:
                    T[i, k], T0[i, k] = add_or_cancel(T[i, k], T0[i, k], f, f0, T[r, k], T0[r, k], work.doubt)
            T[i, j], T0[i, j] = multiply(f, f0, over, over0)
    f, f0 = -d[j], -d0[j]
    if f != 0.0:
        for k in range(n):
            if k != j and T[r, k] != 0.0:
                d[k], d0[k] = add_or_cancel(d[k], d0[k], f, f0, T[r, k], T0[r, k], work.doubt)
        d[j], d0[j] = multiply(f, f0, over, over0)
    work.basic[r], work.nonbasic[j] = work.nonbasic[j], work.basic[r]


@inlined
def _compared(a, a0, c, c0, b, b0, d, d0, doubt):
    """Return a number of the sign of a c - b d; zero if they are about equal."""
    p, p0 = multiply(a, a0, c, c0)
    q, q0 = multiply(b, b0, d, d0)
    gap, size = add(p, p0, -q, -q0)[0], abs(p) + abs(q)
    if abs(gap) <= PRECISE_EQUAL * size:
        return 0.0
    if abs(gap) <= PRECISE_UNSURE * size:
        doubt[0] = 1
    return gap


@inlined
def _binds_sooner(a, a0, per, per0, b, b0, than, than0, first, doubt):
    """Return whether a / per < b / than; where they are the same, whether it is the first."""
    gap = _compared(a, a0, than, than0, b, b0, per, per0, doubt)
    return gap < 0.0 or (gap == 0.0 and first)


@inner
def _whole(variable, program, work):
    """Return how many of a variable here are in a whole one of `stage.exact`."""
    if variable < program.columns:
        return (work.column_scale[variable] if variable < program.R else 1.0 / work.times[0]), 0.0
    r = variable - program.columns
    if work.common[r] == 0.0:
        work.common[r], work.common0[r] = _common_divisor(r, program.columns, work)
    return work.row_scale[r] * work.common[r], work.row_scale[r] * work.common0[r]


@inner
def _common_divisor(r, columns, work):
    """Return what the numbers of a row have in common."""
    unit = 0
    for j in range(columns + 1):
        for e in range(PARTS):
            if work.part[r, j, e] != 0.0:
                unit = min(unit, last_place(work.part[r, j, e]))
    common = common0 = 0.0
    for j in range(columns + 1):
        factor = (work.column_scale[j] if j < columns else 1.0) / work.row_scale[r]
        a, a0 = math.ldexp(abs(work.A[r, j] * factor), -unit), math.ldexp(work.A0[r, j] * factor, -unit)
        a0 = a0 if work.A[r, j] >= 0.0 else -a0
        while a != 0.0:  # Euclid, by nearest multiples
            times = np.rint(common / a)
            b, b0 = add_product(common, common0, -times, 0.0, a, a0)
            if abs(b) < 2.0**52:
                b, b0 = np.rint(b + b0), 0.0
            common, common0 = a, a0
            a, a0 = (b, b0) if b >= 0.0 else (-b, -b0)
        if common == 1.0:
            break
    return (math.ldexp(common, unit), math.ldexp(common0, unit)) if common > 0.0 else (1.0, 0.0)


@inner
def dual_simplex(program, m, n, work):
    """Make the right side non-negative, keeping reduced costs so; return whether that was done."""
    T, T0, d, d0 = work.T, work.T0, work.d, work.d0
    for _ in range(STEEPEST + m):
        r, per, per0 = -1, 1.0, 0.0
        for i in range(m):
            if T[i, n] < 0.0:
                own, own0 = _whole(work.basic[i], program, work)
                if r < 0 or _compared(T[i, n], T0[i, n], per, per0, T[r, n], T0[r, n], own, own0, work.doubt) < 0.0:
                    r, per, per0 = i, own, own0
        if r < 0:
            return True
        work.doubt[0] |= T[r, n] > -PRECISE_FAINT
        at = -1
        for k in range(n):
            if T[r, k] < 0.0:
                first = at < 0 or (T[r, k] < T[r, at] if program.fair else work.nonbasic[k] < work.nonbasic[at])
                of = d[at], d0[at], -T[r, at], -T0[r, at]
                if at < 0 or _binds_sooner(d[k], d0[k], -T[r, k], -T0[r, k], *of, first, work.doubt):
                    at = k
        if at >= 0:
            _pivot(r, at, m, n, work)
        elif T[r, n] > -PRECISE_ROUNDED_OFF:
            T[r, n] = T0[r, n] = 0.0
        else:
            return False
    return False


@inner
def primal_simplex(program, m, n, work):
    """Make reduced costs non-negative, keeping the right side so; return whether that was done."""
    T, T0, d, d0 = work.T, work.T0, work.d, work.d0
    for step in range(10 * (m + n) + 2 * STEEPEST):
        j, per, per0 = -1, 1.0, 0.0
        for k in range(n):
            if d[k] < 0.0 and not work.barred[work.nonbasic[k]]:
                own, own0 = _whole(work.nonbasic[k], program, work)
                steeper = j < 0 or _compared(d[k], d0[k], own, own0, d[j], d0[j], per, per0, work.doubt) < 0.0
                if j < 0 or (work.nonbasic[k] < work.nonbasic[j] if step > STEEPEST else steeper):
                    j, per, per0 = k, own, own0
        if j < 0:
            return True
        work.doubt[0] |= d[j] > -PRECISE_FAINT
        at = -1
        for i in range(m):
            if T[i, j] > 0.0:
                first = at < 0 or work.basic[i] < work.basic[at]
                of = T[at, n], T0[at, n], T[at, j], T0[at, j]
                if at < 0 or _binds_sooner(T[i, n], T0[i, n], T[i, j], T0[i, j], *of, first, work.doubt):
                    at = i
        if at < 0:
            return False
        _pivot(at, j, m, n, work)
    return False
