"""How far a basis of twice the digits can be from the exact one, and which numbers are zero.

The tight rows of a basis and the sum of weights, M x = e, have a solution within

    |x - x'| <= |C| |e - M x'| + |I - C M| |x - x'|

of the present weights x', where C is about the inverse of M, and what rounding adds is added. Its
duals are bounded alike. So each weight, slack and reduced cost is known within a bound.

What is less than its bound may be zero, and mostly is: a slack whose row follows from others, a
weight of an action that is never recommended. Times the determinant of M these are whole numbers,
in units of the last place of what they are made of. A whole number below the product of some primes
that is zero modulo each of them is zero.
"""

from __future__ import annotations

import math

import numpy as np

from acegames.kernels.doubles import (
    PRIME_BITS,
    PRIMES,
    ROUNDING,
    add,
    add_product,
    last_place,
    power,
    residue,
    times,
)
from acegames.kernels.precise_program import PARTS, goal_scale, level_unit, set_objective
from acegames.numerics import PRECISE_NEAR, TIE
from acegames.system.compiled import inlined, inner

SMALLEST = np.nextafter(0.0, 1.0)  # of floats


@inlined
def _tight_row(q, k, rows, columns, work):
    """Return the row of A that is line q of M; the last is the sum of weights."""
    return work.nonbasic[work.tight[q]] - columns if q < k - 1 else rows


@inner
def invert(program, m, n, work):
    """Fill basic weights and their errors, C and E; return how many, or 0: there is no bound."""
    columns, rows, k, tight = program.columns, program.rows, 0, 0
    for i in range(m):
        if work.basic[i] < columns:
            work.weight[k] = i
            k += 1
    for at in range(n):
        if work.nonbasic[at] >= columns:
            work.tight[tight] = at
            tight += 1
    C, C0 = work.C, work.C0
    for i in range(k):
        line = work.weight[i]
        work.x[i], work.x0[i] = work.T[line, n], work.T0[line, n]
        last, last0 = work.x[i], work.x0[i]
        for q in range(k - 1):
            C[i, q], C0[i, q] = work.T[line, work.tight[q]], work.T0[line, work.tight[q]]
            r = work.nonbasic[work.tight[q]] - columns
            if work.A[r, columns] != 0.0:
                last, last0 = add_product(last, last0, -C[i, q], -C0[i, q], work.A[r, columns], work.A0[r, columns])
        C[i, k - 1], C0[i, k - 1] = last, last0
    share = (k + 6) * ROUNDING
    for i in range(k):
        for h in range(k):
            j = work.basic[work.weight[h]]
            high, low, size = (-1.0 if i == h else 0.0), 0.0, (1.0 if i == h else 0.0)
            for q in range(k):
                r = _tight_row(q, k, rows, columns, work)
                if C[i, q] != 0.0 and work.A[r, j] != 0.0:
                    high, low = add_product(high, low, C[i, q], C0[i, q], work.A[r, j], work.A0[r, j])
                    size += abs(C[i, q]) * work.size[r, j]
            work.E[i, h] = abs(high) + share * size
            if not work.E[i, h] * k < 0.1:
                return 0
    for q in range(k):  # what the tight rows leave
        r = _tight_row(q, k, rows, columns, work)
        high, low, size = work.A[r, columns], work.A0[r, columns], work.size[r, columns]
        for i in range(k):
            j = work.basic[work.weight[i]]
            if work.x[i] != 0.0 and work.A[r, j] != 0.0:
                high, low = add_product(high, low, -work.x[i], -work.x0[i], work.A[r, j], work.A0[r, j])
                size += abs(work.x[i]) * work.size[r, j]
        work.rest[q] = abs(high) + share * size
    largest = 0.0
    for i in range(k):
        work.bound[i] = 0.0
        for q in range(k):
            work.bound[i] += 2.0 * abs(C[i, q]) * work.rest[q]
        largest = max(largest, work.bound[i])
    for i in range(k):  # |x - x'| <= bound + E |x - x'|, and E is below a tenth
        error = 0.0
        for h in range(k):
            sure = work.bound[h]
            for o in range(k):
                sure += 2.0 * work.E[h, o] * largest
            error += 2.0 * work.E[i, h] * sure
        work.x_error[i] = work.bound[i] + error
    return k


@inner
def _largest(E, column, k):
    """Return the largest number of a column."""
    most = 0.0
    for i in range(k):
        most = max(most, E[i, column])
    return most


@inner
def bar(program, level, k, n, weights, work):
    """Return how many columns may still enter, and bar those that lose more than a tie.

    -1 if the level is not certified: a column gains, or what it loses is too near to a tie.
    """
    columns, rows, C = program.columns, program.rows, work.C
    share = (k + 6) * ROUNDING
    for q in range(k):
        high = low = 0.0
        for i in range(k):
            j = work.basic[work.weight[i]]
            high, low = add_product(high, low, work.c[j], work.c0[j], C[i, q], work.C0[i, q])
        work.y[q], work.y0[q] = high, low
    for i in range(k):  # what the duals leave of the basic weights' objective
        j = work.basic[work.weight[i]]
        high, low, size = work.c[j], work.c0[j], work.c_size[j]
        for q in range(k):
            r = _tight_row(q, k, rows, columns, work)
            high, low = add_product(high, low, -work.y[q], -work.y0[q], work.A[r, j], work.A0[r, j])
            size += abs(work.y[q]) * work.size[r, j]
        work.rest[i] = 2.0 * (abs(high) + share * size)
    total = 0.0
    for i in range(k):
        total += 2.0 * work.rest[i]
    for i in range(k):
        work.bound[i] = work.rest[i]
        for h in range(k):
            work.bound[i] += (work.rest[h] + total * _largest(work.E, h, k)) * work.E[h, i]
    for q in range(k):
        error = 0.0
        for i in range(k):
            error += work.bound[i] * abs(C[i, q])
        work.y_error[q] = error
    left, tight, tie = 0, 0, TIE * level_unit(program, level, weights, work)
    doubtful, scale = 0, goal_scale(program, level, work)
    for at in range(n):
        variable = work.nonbasic[at]
        if variable >= columns:
            loss, error = work.y[tight], work.y_error[tight]
            tight += 1
        else:
            high, low, size, error = -work.c[variable], -work.c0[variable], work.c_size[variable], 0.0
            for q in range(k):
                r = _tight_row(q, k, rows, columns, work)
                high, low = add_product(high, low, work.y[q], work.y0[q], work.A[r, variable], work.A0[r, variable])
                size += abs(work.y[q]) * work.size[r, variable]
                error += work.y_error[q] * work.size[r, variable]
            loss = high
            error += share * size
        if work.barred[variable]:
            continue
        if not loss >= -error:
            return -1
        lost, doubt = loss * work.change[variable], error * work.change[variable]
        if not abs(lost - tie) > PRECISE_NEAR * tie + doubt:
            return -1
        if lost > tie:
            work.barred[variable] = 1
        else:
            left += 1
            work.near[0] |= loss > error
            if loss <= error and error > 0.0:  # of whole columns, and slacks
                over = work.column_scale[variable] if variable < columns else work.row_scale[variable - columns]
                work.doubtful[doubtful] = variable
                work.rest[doubtful] = (abs(loss) + error) * over / scale
                doubtful += 1
    if level < program.N:
        return left
    if left > 0 and (program.fair or work.doubt[0]):
        return -1
    return 0 if doubtful == 0 or are_zero(program, k, doubtful, level, weights, work) else -1


@inner
def keeps_levels(program, levels, weights, work):
    """Return whether ties gave no level away."""
    for level in range(levels - 1):
        set_objective(program, level, weights, work)
        lost, lost0, last = 0.0, 0.0, levels - 1
        for j in range(program.columns):
            x, x0 = add(work.levels[level, j], work.levels0[level, j], -work.levels[last, j], -work.levels0[last, j])
            lost, lost0 = add_product(lost, lost0, work.c[j], work.c0[j], x, x0)
        if lost > 4.0 * TIE * level_unit(program, level, weights, work):
            return False
    return True


@inner
def fill_point(program, k, m, work):
    """Fill sigma with weights rounded as exact ones are; False: a sign or a digit is open."""
    R, columns, doubtful = program.R, program.columns, 0
    share = (k + 6) * ROUNDING
    for j in range(R):
        work.sigma[j] = 0.0
    for i in range(k):
        x, x0, error = work.x[i], work.x0[i], work.x_error[i]
        j = work.basic[work.weight[i]]
        if x > error:
            if j < R:
                if x + (x0 + error) != x or x + (x0 - error) != x:
                    return False
                work.sigma[j] = x / work.column_scale[j]
        elif not abs(x) <= error:
            return False
        elif error > 0.0:
            work.doubtful[doubtful] = work.weight[i]
            work.rest[doubtful] = (abs(x) + error) / work.column_scale[j]
            doubtful += 1
    for line in range(m):
        r = work.basic[line] - columns
        if r < 0:
            continue
        high, low, size, error = work.A[r, columns], work.A0[r, columns], work.size[r, columns], 0.0
        for i in range(k):
            j = work.basic[work.weight[i]]
            high, low = add_product(high, low, -work.x[i], -work.x0[i], work.A[r, j], work.A0[r, j])
            size += abs(work.x[i]) * work.size[r, j]
            error += work.x_error[i] * work.size[r, j]
        error += share * size
        if not high >= -error:
            return False
        if high <= error and error > 0.0:
            work.doubtful[doubtful] = line
            work.rest[doubtful] = (abs(high) + error) / work.row_scale[r]
            doubtful += 1
    if doubtful > 0 and not are_zero(program, k, doubtful, -1, work.sigma, work):
        return False
    total = 0.0
    for j in range(R):
        total += work.sigma[j]
    for j in range(R):
        work.sigma[j] /= total
    return True


@inner
def are_zero(program, k, doubtful, level, weights, work):
    """Return whether doubtful numbers are proven to be zero.

    Where `level` is negative they are basic variables, else reduced costs of that level. Times the
    determinant of M they are whole numbers, in units of the last places of what is added up. These
    are smaller than the product of the primes.
    """
    columns, rows = program.columns, program.rows
    unit = 0
    for q in range(k - 1):
        unit = min(unit, _unit_of(_tight_row(q, k, rows, columns, work), columns, work))
    needed, goal_unit, weight_unit = math.log2(k) + 3.0, 0, 0
    if level < 0:
        for z in range(doubtful):
            unit = min(unit, _unit_of(work.basic[work.doubtful[z]] - columns, columns, work))
        goal_unit = unit
    else:
        for i in range(program.N):
            weight_unit = min(weight_unit, last_place(weights[i]))
            for j in range(program.R):
                goal_unit = min(goal_unit, last_place(work.u[j, i]), last_place(work.high[i]))
    most = SMALLEST
    for z in range(doubtful):
        most = max(most, work.rest[z])
    needed += math.log2(most) - goal_unit - weight_unit
    for q in range(k - 1):  # the determinant is at most the product of these
        size, r = SMALLEST, _tight_row(q, k, rows, columns, work)
        for i in range(k):
            j = work.basic[work.weight[i]]
            size += abs(work.A[r, j]) * work.column_scale[j]
        needed += math.log2(size / work.row_scale[r]) - unit
    scales = 2.0**-unit, 2.0**-goal_unit, 2.0**-weight_unit
    for tried in range(len(PRIMES)):
        if needed <= 0.0:
            return True
        p = np.int64(PRIMES[tried])
        if not _eliminate(program, k, doubtful, level, scales[0], p, work):
            continue  # the determinant is zero modulo p
        for z in range(doubtful):
            if _doubtful_modulo(program, k, z, level, weights, scales, p, work) != 0:
                return False
        needed -= PRIME_BITS
    return False


@inner
def _unit_of(r, columns, work):
    """Return an exponent of two, in whole multiples of which the numbers of a row are."""
    unit = 0
    if r >= 0:
        for j in range(columns + 1):
            for e in range(PARTS):
                if work.part[r, j, e] != 0.0:
                    unit = min(unit, last_place(work.part[r, j, e]))
    return unit


@inner
def _entry_modulo(r, j, scale, p, work):
    """Return a number of the program modulo p."""
    value = np.int64(0)
    for e in range(PARTS):
        if work.part[r, j, e] != 0.0:
            value += residue(work.part[r, j, e] * scale, p)
            value -= p if value >= p else 0
    return value


@inner
def _goal_modulo(program, level, j, weights, scales, p, work):
    """Return the objective of a level at a column, modulo p."""
    if j >= program.R:
        return residue(scales[1] * scales[2], p) if level == 0 else np.int64(0)
    value = np.int64(0)
    for i in range(program.N):
        if level == i + 1 or (level == 0 and program.columns == program.R):
            part = (residue(work.u[j, i] * scales[1], p) - residue(work.high[i] * scales[1], p)) % p
            weight = weights[i] if level == 0 else 1.0
            value += times(part, residue(weight * scales[2], p), p)
    return value % p


@inner
def _eliminate(program, k, doubtful, level, scale, p, work):
    """Solve M x = e modulo p, or for the columns that are doubtful; return whether M is regular."""
    columns, rows, M = program.columns, program.rows, work.modular
    width = k + (1 if level < 0 else doubtful)
    for q in range(k):
        r = _tight_row(q, k, rows, columns, work)
        for i in range(width):
            j = work.basic[work.weight[i]] if i < k else columns if level < 0 else work.doubtful[i - k]
            if j > columns or (j == columns and level >= 0):  # a slack
                M[q, i] = 1 if j - columns == r else 0
            elif q == k - 1:
                M[q, i] = 1 if j < program.R or j == columns else 0
            else:
                M[q, i] = _entry_modulo(r, j, scale, p, work)
    for i in range(k):  # Gauss and Jordan
        at = i
        while at < k and M[at, i] == 0:
            at += 1
        if at == k:
            return False
        over = power(M[at, i], p - 2, p)
        for h in range(i, width):
            M[at, h], M[i, h] = M[i, h], times(M[at, h], over, p)
        for q in range(k):
            f = p - M[q, i]
            if q != i and f != p:
                for h in range(i, width):
                    here = M[q, h] + times(f, M[i, h], p)
                    M[q, h] = here - p if here >= p else here
    return True


@inner
def _doubtful_modulo(program, k, z, level, weights, scales, p, work):
    """Return a doubtful number modulo p."""
    columns, M, value = program.columns, work.modular, np.int64(0)
    if level < 0 and work.basic[work.doubtful[z]] < columns:
        for i in range(k):
            value += M[i, k] if work.weight[i] == work.doubtful[z] else 0
        return value
    r = work.basic[work.doubtful[z]] - columns if level < 0 else np.int64(0)
    if level < 0:
        value = _entry_modulo(r, columns, scales[0], p, work)
    elif work.doubtful[z] < columns:
        value = _goal_modulo(program, level, work.doubtful[z], weights, scales, p, work)
    for i in range(k):
        x = M[i, k if level < 0 else k + z]
        if x != 0:
            j = work.basic[work.weight[i]]
            entry = _goal_modulo(program, level, j, weights, scales, p, work) if level >= 0 else np.int64(0)
            entry = _entry_modulo(r, j, scales[0], p, work) if level < 0 else entry
            value += times(p - entry, x, p) if entry != 0 else 0
    return value % p
