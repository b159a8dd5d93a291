"""The fast stage solver: a dense dual simplex in numba, one stage game after the other, no allocation.

The program is that of `acegames.stage.program` (read its docstring first), kept as a dictionary

    x_B = rhs - T x_N,    objective = z - d x_N,    d >= 0 throughout the dual simplex.

The start is the joint action that maximises the objective: then every reduced cost d is non-negative, so there is no first
phase, and "no pivot needed" is exactly "the best joint action is a pure equilibrium". "egalitarian" and "fair" start from one
player's own rows, which are dual feasible in the same way. Ties (reduced costs of zero) are resolved by the primal simplex
on the optimal face, level by level. Ratio tests are Harris's two passes; after many pivots Bland's rule takes over. Each
level's answer is certified by weak duality from the stage's own numbers; status 2 asks the caller to repair exactly.

`nash_kernels` calls some of these; `kernel_cache` compiles callers again when this file changes, which numba alone would not see.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from acegames.kernel_cache import kernel
from acegames.numerics import (
    COARSE,
    HARRIS,
    LP_CERTIFICATE,
    NOISE,
    OUTLIER,
    PIVOT,
    ROW_FEASIBLE,
    STABLE,
    SUPPORT,
    TIE,
)

LINEAR, EGALITARIAN, FAIR, ANY = 0, 1, 2, 3  # kinds of objective
PURE, MIXED, UNCERTIFIED, ROUGH = 0, 1, 2, 3  # what becomes of a stage; ROUGH: a gain is left, finer units may help
DEEP, DEEPER = 8.0, 1024.0  # units below their best in which players are compared where there are outliers: first, and then
ATTEMPTS = 4  # programs of one stage in floats, in units that the one before shows, until exact arithmetic is asked


_jit: Any = kernel  # numba infers the types


def _inner(function):
    """Compile a function that only kernels call, without the wrappers that Python would need: half the compile time."""
    return numba.njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


@_inner
def _pivot(T, rhs, d, m, n, r, j):
    """Swap the basic variable of row r with the nonbasic one of column j."""
    inverse = 1.0 / T[r, j]
    for k in range(n):
        T[r, k] *= inverse
    T[r, j] = inverse
    rhs[r] *= inverse
    for i in range(m):
        if i != r:
            f = T[i, j]
            if f != 0.0:
                for k in range(n):
                    T[i, k] -= f * T[r, k]
                T[i, j] = -f * inverse
                rhs[i] -= f * rhs[r]
    f = d[j]
    if f != 0.0:
        for k in range(n):
            d[k] -= f * T[r, k]
        d[j] = -f * inverse


@_inner
def _swap(basic, nonbasic, r, j):
    basic[r], nonbasic[j] = nonbasic[j], basic[r]


@_inner
def _dual_simplex(T, rhs, d, basic, nonbasic, m, n, limit):
    """Make rhs >= 0 while keeping d >= 0. Returns the number of pivots, or -1."""
    for step in range(limit):
        bland = step > limit // 2
        r = -1
        worst = -ROW_FEASIBLE
        for i in range(m):
            if rhs[i] < worst:
                r = i
                if bland:
                    break
                worst = rhs[i]
        if r < 0:
            return step
        bound = np.inf
        for j in range(n):
            if T[r, j] < -PIVOT:
                ratio = (max(d[j], 0.0) + (0.0 if bland else HARRIS)) / -T[r, j]
                bound = min(bound, ratio)
        if bound == np.inf:
            if rhs[r] < -HARRIS:
                return -1
            rhs[r] = 0.0  # no pivot would mend it: it is what others rounded off
            continue
        best = -1
        size = 0.0
        for j in range(n):
            if T[r, j] < -PIVOT and max(d[j], 0.0) / -T[r, j] <= bound and -T[r, j] > size:
                best = j
                size = -T[r, j]
                if bland:
                    break
        if best < 0:
            return -1
        _pivot(T, rhs, d, m, n, r, best)
        _swap(basic, nonbasic, r, best)
        rhs[r] = max(rhs[r], 0.0)
    return -1


@_inner
def _primal_simplex(T, rhs, d, basic, nonbasic, barred, m, n, limit):
    """Make d >= 0 on the columns that are not barred, keeping rhs >= 0. Returns the number of pivots, or -1."""
    for step in range(limit):
        bland = step > limit // 2
        j = -1
        worst = -ROW_FEASIBLE
        for k in range(n):
            if not barred[nonbasic[k]] and d[k] < worst:
                j = k
                if bland:
                    break
                worst = d[k]
        if j < 0:
            return step
        bound = np.inf
        for i in range(m):
            if T[i, j] > PIVOT:
                bound = min(bound, (max(rhs[i], 0.0) + (0.0 if bland else HARRIS)) / T[i, j])
        if bound == np.inf:
            return -1
        r = -1
        size = 0.0
        for i in range(m):
            if T[i, j] > PIVOT and max(rhs[i], 0.0) / T[i, j] <= bound and T[i, j] > size:
                r = i
                size = T[i, j]
                if bland:
                    break
        if r < 0:
            return -1
        _pivot(T, rhs, d, m, n, r, j)
        _swap(basic, nonbasic, r, j)
        for i in range(m):
            if rhs[i] < 0.0 and rhs[i] > -HARRIS:
                rhs[i] = 0.0
    return -1


@_inner
def _certified(A, b, c, x, y, barred, depth, size, R, columns, rows):
    """Weak duality at one level: y >= 0 where it must be, and no gap between its bound and the point's value.

    The bound is the largest price of a joint action; prices of outliers are counted in their depth, as their weights are.
    """
    value = 0.0
    fixed = 0.0
    for j in range(columns):
        value += c[j] * x[j]
    for r in range(rows):
        fixed += y[r] * b[r]
        if y[r] * size[r] < -LP_CERTIFICATE and not barred[columns + r]:
            return False
    gap = -np.inf
    for j in range(columns):
        if barred[j]:
            continue
        price = c[j]
        for r in range(rows):
            if y[r] != 0.0:
                price -= y[r] * A[r, j]
        if j < R:
            gap = max(gap, (price + fixed - value) / depth[j])
            if price + fixed - value > max(LP_CERTIFICATE, 8.0 * NOISE * depth[j]):
                return False  # an outlier that should be played
        elif price > LP_CERTIFICATE:
            return False
    return abs(gap) <= LP_CERTIFICATE


@_inner
def _read_point(x, rhs, basic, depth, m, columns):
    for j in range(columns):
        x[j] = 0.0
    for i in range(m):
        if basic[i] < columns:
            x[basic[i]] = max(rhs[i], 0.0) / depth[basic[i]]


@_inner
def _refine(T, rhs, basic, nonbasic, A, b, x, depth, m, n, R, columns):
    """Take out of the point what pivoting rounded off: sigma sums to one, and rows tight at the basis are so in their own numbers."""
    total = 0.0
    for j in range(R):
        total += x[j]
    for i in range(m):
        if basic[i] < R:
            rhs[i] /= total
    for j in range(R):
        x[j] /= total
    for k in range(n):
        if nonbasic[k] >= columns:
            r = nonbasic[k] - columns
            slack = b[r]
            for j in range(columns):
                if x[j] != 0.0:
                    slack -= A[r, j] * x[j]
            for i in range(m):
                rhs[i] += T[i, k] * slack
    _read_point(x, rhs, basic, depth, m, columns)


@_inner
def _read_duals(y, d, nonbasic, n, columns, rows):
    for r in range(rows):
        y[r] = 0.0
    for k in range(n):
        if nonbasic[k] >= columns:
            y[nonbasic[k] - columns] = d[k]


@_inner
def _reduced_costs(d, c, T, basic, nonbasic, depth, m, n, columns):
    """d of the objective c at the present basis."""
    for k in range(n):
        d[k] = -c[nonbasic[k]] / depth[nonbasic[k]] if nonbasic[k] < columns else 0.0
    for i in range(m):
        if basic[i] < columns:
            f = c[basic[i]] / depth[basic[i]]
            if f != 0.0:
                for k in range(n):
                    d[k] += f * T[i, k]


@_inner
def _deviation_rows(A, b, owner, scale, v, depth, outside, deviation, position, rows_of, act, first_action, R, N, correlated):
    """Fill A, b and owner (the player) with the incentive rows that can bind; returns their number. See `stage.program.deviation_rows`.

    scale is the most that a row's deviation can gain, outliers aside: what is no gain is judged by that.
    """
    count = 0
    for i in range(N):
        for target in range(first_action[i], first_action[i + 1]):
            tolds = first_action[i + 1] - first_action[i] if correlated else 1
            for told in range(tolds):
                if correlated and told == target - first_action[i]:
                    continue
                most = 0.0
                furthest = 0.0
                for j in range(R):
                    g = 0.0
                    if not correlated or act[rows_of[j], i] == told:
                        to = deviation[rows_of[j], target]
                        to = position[to] if to >= 0 else -1
                        g = (v[to, i] if to >= 0 else outside[i]) - v[j, i]
                    A[count, j] = g
                    furthest = max(furthest, g / depth[j])
                    if depth[j] == 1.0:
                        most = max(most, g)
                if furthest > 0.0:
                    scale[count] = most if most > 0.0 else furthest
                    b[count] = 0.0
                    owner[count] = i
                    count += 1
    return count


@_inner
def _merge_equal(v, u, i, R, N, unit, order, sorted_v):
    """Values of player i that follow each other within their rounding get the lowest of them; see `stage.program.merge_equal`."""
    largest = 0.0
    for j in range(R):
        largest = max(largest, u[j, N + i])
    blur = NOISE * largest / unit
    nearly = False  # rarely: look for two that are close but not equal before sorting
    for j in range(R):
        here = v[j, i]
        sorted_v[j] = here
        for k in range(j):
            gap = abs(sorted_v[k] - here)
            nearly |= (gap <= blur) & (gap > 0.0)
    if not nearly:
        return
    for j in range(R):
        here = v[j, i]
        k = j
        while k > 0 and sorted_v[k - 1] > here:
            sorted_v[k] = sorted_v[k - 1]
            order[k] = order[k - 1]
            k -= 1
        sorted_v[k] = here
        order[k] = j
    lowest = sorted_v[0]
    for k in range(1, R):
        blur = NOISE * max(u[order[k], N + i], u[order[k - 1], N + i]) / unit
        if sorted_v[k] - sorted_v[k - 1] > blur:
            lowest = sorted_v[k]
        else:
            v[order[k], i] = lowest


# -- one stage game -----------------------------------------------------------------------------------------------------
#
# u (R, 2N) holds the utilities of the feasible joint actions, then the gross utilities: the same sums of rewards without their
# signs. Rounding is a share of these, NOISE. Utilities are counted from the player's best, in units: v = (u - top) / unit. A
# unit is the range that matters: that of the utilities without outliers far below, and if the answer shows a player closer
# to its best, a multiple of that distance (`stage.units` has the reasons).


@_inner
def measure(u, R, N, top, low, unit):
    """Fill each player's best, worst and range (0 where all is the same to it). Returns whether anything matters to anyone."""
    matters = False
    for i in range(N):
        most = u[0, i]
        least = u[0, i]
        gross = u[0, N + i]
        for j in range(1, R):
            most = max(most, u[j, i])
            least = min(least, u[j, i])
            gross = max(gross, u[j, N + i])
        top[i] = most
        low[i] = least
        unit[i] = most - least if most - least > NOISE * gross else 0.0
        matters |= unit[i] > 0.0
    return matters


@_inner
def core_range(values, R, noise, shortfall):
    """The range of values without outliers: those OUTLIER times as far below the best as a quarter is. 0 where it is rounding."""
    top = values[0]
    low = values[0]
    for j in range(1, R):
        top = max(top, values[j])
        low = min(low, values[j])
    span = top - low
    if span <= noise:
        return 0.0
    near = 0
    for j in range(R):
        near += (top - values[j]) * OUTLIER < span
    quarter = max(R // 4, 1)
    if near <= quarter:
        return span
    for j in range(R):
        here = top - values[j]
        k = j
        while k > 0 and shortfall[k - 1] > here:
            shortfall[k] = shortfall[k - 1]
            k -= 1
        shortfall[k] = here
    while shortfall[quarter] <= noise and quarter < R - 1:
        quarter += 1
    last = R - 1
    while shortfall[last] > OUTLIER * shortfall[quarter]:
        last -= 1
    return shortfall[last]


@_inner
def leave_outliers_out(u, R, N, top, unit, values, shortfall):
    """Bring units from the range to that of utilities without outliers."""
    for i in range(N):
        if unit[i] > 0.0:
            noise = 0.0  # of the best
            for j in range(R):
                values[j] = u[j, i]
                if u[j, i] == top[i]:
                    noise = max(noise, NOISE * u[j, N + i])
            unit[i] = core_range(values, R, noise, shortfall)


@_inner
def goal_range(u, R, N, kind, terms, top, unit, values, shortfall):
    """The range of the objective over joint actions, without outliers: what objectives are counted in. Rounding is no range."""
    comparing = kind in (EGALITARIAN, FAIR)
    largest = 0.0
    noise = 0.0  # of what is no outlier, with a margin
    for i in range(N):
        weight = 1.0 if comparing else abs(terms[i])
        largest = max(largest, unit[i] * weight)
        noise += OUTLIER * NOISE * weight * abs(top[i] + (terms[i] if comparing else 0.0))
    for j in range(R):  # the gross utility of joint actions, in order
        here = 0.0
        for i in range(N):
            here += u[j, N + i] * (1.0 if comparing else abs(terms[i]))
        k = j
        while k > 0 and shortfall[k - 1] > here:
            shortfall[k] = shortfall[k - 1]
            k -= 1
        shortfall[k] = here
    noise += OUTLIER * NOISE * shortfall[min(max(R // 4, 1), R - 1)]
    for j in range(R):
        least = np.inf
        most = -np.inf
        total = 0.0
        for i in range(N):
            least = min(least, u[j, i] + terms[i])
            most = max(most, u[j, i] + terms[i])
            total += terms[i] * (u[j, i] - top[i]) if unit[i] > 0.0 else 0.0
        values[j] = least - most if kind == FAIR else least if kind == EGALITARIAN else total
    found = core_range(values, R, noise, shortfall)
    return min(found, largest) if found > 0.0 else largest


@_inner
def _scale(u, R, N, top, unit, v):
    for i in range(N):
        for j in range(R):
            v[j, i] = (u[j, i] - top[i]) / unit[i] if unit[i] > 0.0 else 0.0


@_inner
def _weigh(v, R, N, terms, unit, goal, c):
    """The linear objective of each joint action, in units of its range."""
    for j in range(R):
        c[j] = 0.0
        for i in range(N):
            c[j] += terms[i] * unit[i] / (goal if goal > 0.0 else 1.0) * v[j, i]


@_inner
def _best_pure(u, R, N, terms, top, unit, c, out):
    """The joint action with the largest linear objective, ties to the first player's utility, then the second's, ...

    What counts as a tie is a share TIE of how far the players are from their best there, and rounding.
    """
    best = 0
    for j in range(R):
        c[j] = 0.0
        for i in range(N):
            if unit[i] > 0.0:
                c[j] += terms[i] * (u[j, i] - top[i])
        if c[j] > c[best]:
            best = j
    least = c[best]
    for i in range(N):
        if unit[i] > 0.0:
            least -= abs(terms[i]) * (TIE * (top[i] - u[best, i]) + NOISE * u[best, N + i])
    left = 0
    for j in range(R):
        out[j] = c[j] < least
        left += not out[j]
    if left == 1:
        return best
    for i in range(N):
        if unit[i] == 0.0:
            continue
        most = -np.inf
        for j in range(R):
            if not out[j]:
                most = max(most, u[j, i])
        least = most - TIE * (top[i] - most) - NOISE * u[best, N + i]
        for j in range(R):
            out[j] = out[j] or u[j, i] < least
    for j in range(R):
        if not out[j]:
            return j
    return best


@_inner
def _pure_is_stable(a, u, N, unit, deviation, position, rows_of, first_action):
    """Whether no player gains by a deviation from joint action a that stays in X (one outside is worse: floor >= 0)."""
    for i in range(N):
        if unit[i] == 0.0:
            continue
        for target in range(first_action[i], first_action[i + 1]):
            to = deviation[rows_of[a], target]
            if to >= 0 and position[to] >= 0:
                gain = u[position[to], i] - u[a, i]
                if gain > NOISE * max(u[a, N + i], u[position[to], N + i]):
                    return False
    return True


@_inner
def finer(u, R, N, sigma, top, core, unit):
    """Bring units to the size of what the answer leaves the players to gain, where they are far from it. Returns whether any was.

    An answer that leaves a player M below its best is judged in units of M. `core` are the units without outliers.
    """
    changed = False
    for i in range(N):
        if unit[i] == 0.0:
            continue
        missing = 0.0
        gross = 0.0
        for j in range(R):
            if sigma[j] > 0.0:
                missing += sigma[j] * (top[i] - u[j, i])
                gross += sigma[j] * u[j, N + i]
        if missing > NOISE * gross and missing * COARSE < unit[i]:
            unit[i] = 8.0 * missing
            changed = True
        elif max(missing, core[i]) * COARSE < unit[i]:
            unit[i] = 8.0 * max(missing, core[i])
            changed = True
    return changed


@_inner
def solve_stage(u, R, N, rows_of, act, deviation, position, first_action, correlated, floor, kind, terms, sigma, W):
    """Write an equilibrium of one stage game into sigma[:R].

    u (R, 2N) utilities and gross utilities of the feasible joint actions; rows_of (R,) their rows in the state's tables act (rows, N) and
    deviation (rows, sum of actions): the row reached when one player switches, or -1; position (rows,) is the inverse of
    rows_of, -1 for rows that are not feasible here. W is the workspace. Returns PURE (and the action in chosen[0]), MIXED or
    UNCERTIFIED; chosen[1] says whether it took a program.
    """
    c, x, barred, chosen, top, low, unit, core = W[3], W[7], W[11], W[12], W[13], W[14], W[15], W[18]
    chosen[0] = 0
    chosen[1] = 0
    if not measure(u, R, N, top, low, unit):
        return PURE
    if kind in (LINEAR, ANY):
        a = _best_pure(u, R, N, terms, top, unit, c, barred)
        if _pure_is_stable(a, u, N, unit, deviation, position, rows_of, first_action):
            chosen[0] = a
            return PURE
    chosen[1] = 1
    leave_outliers_out(u, R, N, top, unit, c, x)
    goal = goal_range(u, R, N, kind, terms, top, unit, c, x)
    for i in range(N):
        core[i] = unit[i]
    deep = DEEP
    widened = False
    for _ in range(ATTEMPTS):
        found = _solve_program(
            u, R, N, rows_of, act, deviation, position, first_action, correlated, floor, kind, terms, goal, deep, sigma, W
        )
        if found != UNCERTIFIED and finer(u, R, N, sigma, top, core, unit):
            continue
        if found <= MIXED:
            return found
        if kind in (EGALITARIAN, FAIR) and deep == DEEP:
            deep = DEEPER
            continue
        if widened:
            return UNCERTIFIED
        for i in range(N):
            if 0.0 < unit[i] < top[i] - low[i]:
                unit[i] = top[i] - low[i]
                widened = True
        if not widened:
            return UNCERTIFIED
    return UNCERTIFIED


@_inner
def _depths(v, R, N, columns, depth):
    """How far each joint action is below some player's best where it is an outlier, else 1. Returns the number of outliers."""
    outliers = 0
    for j in range(columns):
        depth[j] = 1.0
        if j < R:
            for i in range(N):
                if -v[j, i] > OUTLIER:
                    depth[j] = max(depth[j], -v[j, i])
            outliers += depth[j] > 1.0
    return outliers


@_inner
def _within(least, y, owner, first, rows):
    """Whether what was assumed of values, that they lie within so many units of the best, does not bind: then nothing beyond is better."""
    for r in range(first, rows):
        if owner[r] and y[r] > 0.0:
            return False
    return least > ROW_FEASIBLE


@_inner
def _start(worth, depth, careful):
    """The joint action that is worth most; of those that are no outliers, if one is careful."""
    a = -1
    for j in range(len(worth)):
        if not (careful and depth[j] > 1.0) and (a < 0 or worth[j] > worth[a]):
            a = j
    return a


@_inner
def _solve_program(
    u, R, N, rows_of, act, deviation, position, first_action, correlated, floor, kind, terms, goal, deep, sigma, W
):
    """As `solve_stage`, by the linear program in the present units.

    `goal` is what objectives are counted in. Players are compared within `deep` of these below their best.
    """
    v, A, b, c, T, rhs, d, x, y, basic, nonbasic, barred, chosen, top, low, unit, size, owner, _, depth, scale, noise, goals = W
    comparing = kind in (EGALITARIAN, FAIR)
    _scale(u, R, N, top, unit, v)
    outliers = _depths(v, R, N, R + 2, depth)
    span = goal if goal > 0.0 else 1.0
    lowest = np.inf
    limited = False
    for i in range(N):
        range_i = top[i] - low[i] if unit[i] > 0.0 else 0.0
        noise[i] = min(range_i, deep * min(unit[i], OUTLIER * span))  # how far below its best a player is compared
        limited = limited or noise[i] < range_i
        y[i] = top[i] - noise[i] + (terms[i] if comparing else 0.0)  # the offsets o_i, until the rows are built
        lowest = min(lowest, y[i])
        size[i] = -(1.0 + floor) * range_i / unit[i] if unit[i] > 0.0 else -floor  # outside of X
    for i in range(N):
        y[i] = (y[i] - lowest) / span
        if unit[i] > 0.0:
            _merge_equal(v, u, i, R, N, unit[i], nonbasic, x)
    rows = _deviation_rows(
        A, b, owner, scale, v, depth, size, deviation, position, rows_of, act, first_action, R, N, correlated
    )
    incentives = rows
    columns = R
    pilot = np.int64(0)
    if comparing:
        columns = R + (2 if kind == FAIR else 1)
        least = np.inf  # the lowest value is at most this, the highest at least `most`
        most = 0.0
        above = 0.0
        for i in range(N):
            most = max(most, y[i])
            above = max(above, noise[i] / span)
            if y[i] + noise[i] / span < least:  # the player whose best is lowest bounds the objective most tightly
                least = y[i] + noise[i] / span
                pilot = i
        for r in range(rows):
            A[r, R] = 0.0
            A[r, columns - 1] = 0.0
        lo_rows = rows
        for i in range(N):  # z - w_i.sigma <= o_i
            for j in range(R):
                A[rows, j] = -(v[j, i] * unit[i] + noise[i]) / span
            A[rows, columns - 1] = 0.0
            A[rows, R] = 1.0
            b[rows] = min(y[i], least)
            owner[rows] = y[i] > least  # whether it is cut
            rows += 1
        if kind == FAIR:
            for i in range(N):  # w + w_i.sigma <= top - o_i
                for j in range(R):
                    A[rows, j] = (v[j, i] * unit[i] + noise[i]) / span
                A[rows, R] = 0.0
                A[rows, R + 1] = 1.0
                b[rows] = above - max(y[i] - most, -noise[i] / span)
                owner[rows] = y[i] - most < -noise[i] / span  # whether it is cut
                rows += 1
        for j in range(R):
            c[j] = 0.0
        c[R] = 1.0
        c[columns - 1] = 1.0
    else:
        _weigh(v, R, N, terms, unit, span, c)

    # the dictionary at sigma(a) = 1: the last row is sigma(a) = 1 - sum of the others. Outliers are weighed by their depth, so that
    # their columns are of unit size. To begin with, an objective may be as good at an outlier as elsewhere; that would make
    # small pivots, so such an objective is first held against outliers, and then raised as it is
    a = _start(v[:R, pilot] if comparing else c[:R], depth, False)
    careful = outliers > 0 and outliers < R and (comparing or depth[a] > 1.0)
    if careful:
        a = _start(v[:R, pilot] if comparing else c[:R], depth, True)
    depth[a] = 1.0
    m = rows + 1
    n = columns - 1
    k = 0
    for j in range(columns):
        if j != a:
            nonbasic[k] = j
            shared = j < R
            for r in range(rows):
                T[r, k] = (A[r, j] - (A[r, a] if shared else 0.0)) / depth[j]
            T[rows, k] = 1.0 / depth[j] if shared else 0.0
            d[k] = ((c[a] - c[j]) if shared else -c[j]) / depth[j]
            if careful and depth[j] > 1.0:
                d[k] += 1.0
            k += 1
    for r in range(rows):
        basic[r] = columns + r
        rhs[r] = b[r] - A[r, a]
    basic[rows] = a
    rhs[rows] = 1.0
    for j in range(columns + rows):
        barred[j] = False
    if comparing:
        _pivot(T, rhs, d, m, n, lo_rows + pilot, R - 1)
        _swap(basic, nonbasic, lo_rows + pilot, R - 1)
        if kind == FAIR:
            _pivot(T, rhs, d, m, n, lo_rows + N + pilot, R)
            _swap(basic, nonbasic, lo_rows + N + pilot, R)
    for r in range(rows):  # how large a slack can be: a small price of a large slack still moves the objective
        size[r] = 1.0
        for j in range(columns):
            size[r] = max(size[r], abs(A[r, j]) / depth[j])
    limit = 20 * (m + n) + 50
    if _dual_simplex(T, rhs, d, basic, nonbasic, m, n, limit) < 0:
        return UNCERTIFIED
    if careful:
        _reduced_costs(d, c, T, basic, nonbasic, depth, m, n, columns)
        if _primal_simplex(T, rhs, d, basic, nonbasic, barred, m, n, limit) < 0:
            return UNCERTIFIED
    _read_point(x, rhs, basic, depth, m, columns)
    _read_duals(y, d, nonbasic, n, columns, rows)
    if not _certified(A, b, c, x, y, barred, depth, size, R, columns, rows):
        return UNCERTIFIED
    if comparing and limited and not _within(x[R], y, owner, incentives, rows):
        return UNCERTIFIED

    if kind != ANY:
        best = 0.0
        for j in range(columns):
            best += c[j] * x[j]
            goals[j] = c[j]
        for level in range(N):
            ties = False
            for k in range(n):
                if d[k] * (size[nonbasic[k] - columns] if nonbasic[k] >= columns else 1.0) > TIE:
                    barred[nonbasic[k]] = True
                ties = ties or not barred[nonbasic[k]]
            if not ties:
                break
            for j in range(columns):
                c[j] = v[j, level] if j < R else 0.0
            _reduced_costs(d, c, T, basic, nonbasic, depth, m, n, columns)
            if _primal_simplex(T, rhs, d, basic, nonbasic, barred, m, n, limit) < 0:
                return UNCERTIFIED
            _read_point(x, rhs, basic, depth, m, columns)
            _read_duals(y, d, nonbasic, n, columns, rows)
            if not _certified(A, b, c, x, y, barred, depth, size, R, columns, rows):
                return UNCERTIFIED

    _refine(T, rhs, basic, nonbasic, A, b, x, depth, m, n, R, columns)
    if kind != ANY:
        for j in range(columns):
            best -= goals[j] * x[j]
        if best > 4.0 * TIE:
            return UNCERTIFIED  # ties gave the objective away: outliers are played with more than a tiny chance
    for least in (SUPPORT, 0.0):  # what is so small is rounding, unless it deters; and then floats cannot tell how much is right
        count = _strip(x, depth, R, least, sigma)
        if count < 0:
            return UNCERTIFIED
        if count > 0 and _residuals_hold(u, v, R, N, A, b, x, sigma, unit, owner, scale, y, noise, incentives, rows, columns):
            for j in range(R):
                if sigma[j] > 0.0:
                    chosen[0] = j
            return PURE if count == 1 else MIXED
    return ROUGH


@_inner
def _strip(x, depth, R, least, sigma):
    """The distribution without weights up to `least`. Returns how many are left; 0: it was none, -1: one is too small for floats."""
    total = 0.0
    count = 0
    tiny = False
    for j in range(R):
        sigma[j] = x[j] if x[j] * depth[j] > least else 0.0
        total += sigma[j]
        count += sigma[j] > 0.0
        tiny = tiny or 0.0 < sigma[j] < TIE
    for j in range(R):
        sigma[j] /= total
    if not total > 0.5:
        return 0
    return -1 if tiny else count


@_inner
def _residuals_hold(u, v, R, N, A, b, x, sigma, unit, owner, scale, missing, noise, incentives, rows, columns):
    """Whether the rows hold in their own numbers: no gain beyond what is accepted, and the auxiliaries are what they stand for."""
    for i in range(N):
        missing[i] = 0.0
        noise[i] = 0.0
        for j in range(R):
            missing[i] -= sigma[j] * v[j, i]
            noise[i] += NOISE * sigma[j] * u[j, N + i] / (unit[i] if unit[i] > 0.0 else 1.0)
    for r in range(rows):
        slack = b[r]
        for j in range(columns):
            slack -= A[r, j] * (sigma[j] if j < R else x[j])
        accepted = LP_CERTIFICATE
        if r < incentives:
            accepted = STABLE * min(scale[r], missing[owner[r]]) + noise[owner[r]]
        if slack < -accepted:
            return False
    return True


@_jit
def workspace(R, N, actions, correlated):
    """Arrays for stages of up to R joint actions; `actions` (N,) is the number of each player's."""
    rows = 2 * N
    for i in range(N):
        rows += actions[i] * (actions[i] - 1) if correlated else actions[i]
    columns = R + 2
    return (
        np.empty((R, N)),
        np.empty((rows + 1, columns)),
        np.empty(rows + 1),
        np.empty(columns),
        np.empty((rows + 1, columns)),
        np.empty(rows + 1),
        np.empty(columns),
        np.empty(max(columns, N)),
        np.empty(rows + N + 1),
        np.empty(rows + 1, np.int64),
        np.empty(columns, np.int64),
        np.empty(rows + columns + 2, np.bool_),
        np.zeros(2, np.int64),
        np.empty(N),
        np.empty(N),
        np.empty(N),
        np.empty(rows + 1),
        np.empty(rows + 1, np.int64),
        np.empty(N),
        np.empty(columns),
        np.empty(rows + 1),
        np.empty(N),
        np.empty(columns),
    )


@_jit
def solve_batch(
    ptr, act, utility, deviation, first_action, correlated, floor, kind, terms, sigma, status, W, rows_of, position, s
):
    """Solve the stages of a batch whose rows are all feasible; utility (R, 2N) as in `solve_stage`. Fills sigma (R,) and status (G,).

    Returns the number of programs.
    """
    N = act.shape[1]
    programs = np.int64(0)
    for g in range(len(ptr) - 1):
        first, last = ptr[g], ptr[g + 1]
        R = last - first
        for j in range(R):
            rows_of[j] = j
            position[j] = j
            sigma[first + j] = 0.0
        status[g] = solve_stage(
            utility[first:last], R, N, rows_of, act[first:last], deviation[first:last], position, first_action, correlated, floor,
            kind, terms, s, W,
        )
        programs += W[12][1]
        if status[g] == PURE:
            sigma[first + W[12][0]] = 1.0
        elif status[g] == MIXED:
            for j in range(R):
                sigma[first + j] = s[j]
    return programs


# -- boxes: bounds on what can be spent, per state --------------------------------------------------------------------
#
# A layer's *box* of a state holds one cell per vector of spent units between `lo` and `lo + size - 1`, the last constraint
# fastest; `base` is its first cell, `line` its first line (a line is a run of cells along the last constraint). Spending below
# `lo` counts as `lo`: from there on the budget cannot bind. `slot` maps a state to its place among the layer's
# states, -1 for none. Tables (row_ptr, out_ptr, next_state, cost, ...) are those of `model.game.Layer`, costs in units.


@_jit
def forward_count(initial, layer_at, row_ptr, out_ptr, next_state):
    """Number of states that legal play can be in at t = 0 .. H."""
    S = row_ptr.shape[1] - 1
    here = np.zeros(S, np.bool_)
    for s in initial:
        here[s] = True
    counts = np.zeros(len(layer_at) + 1, np.int64)
    counts[0] = len(initial)
    for t in range(len(layer_at)):
        rows = row_ptr[layer_at[t]]
        there = np.zeros(S, np.bool_)
        for s in range(S):
            if here[s]:
                for o in range(out_ptr[rows[s]], out_ptr[rows[s + 1]]):
                    if not there[next_state[o]]:
                        there[next_state[o]] = True
                        counts[t + 1] += 1
        here = there
    return counts


@_jit
def forward_bounds(initial, layer_at, row_ptr, out_ptr, next_state, cost, start, states, least, most):
    """Fill states, and the least and largest total that legal play can have spent on arrival, constraint by constraint."""
    S, D = row_ptr.shape[1] - 1, cost.shape[1]
    here = np.zeros(S, np.bool_)
    low, high = np.zeros((S, D), np.int64), np.zeros((S, D), np.int64)
    next_low, next_high = np.empty((S, D), np.int64), np.empty((S, D), np.int64)
    for s in initial:
        here[s] = True
    for t in range(len(layer_at) + 1):
        rows = row_ptr[layer_at[min(t, len(layer_at) - 1)]]
        there = np.zeros(S, np.bool_)
        at = start[t]
        for s in range(S):
            if not here[s]:
                continue
            states[at] = s
            for m in range(D):
                least[at, m] = low[s, m]
                most[at, m] = high[s, m]
            at += 1
            if t == len(layer_at):
                continue
            for o in range(out_ptr[rows[s]], out_ptr[rows[s + 1]]):
                to = next_state[o]
                for m in range(D):
                    a, b = low[s, m] + cost[o, m], high[s, m] + cost[o, m]
                    if not there[to] or a < next_low[to, m]:
                        next_low[to, m] = a
                    if not there[to] or b > next_high[to, m]:
                        next_high[to, m] = b
                there[to] = True
        here = there
        low, next_low = next_low, low
        high, next_high = next_high, high


@_jit
def backward_boxes(layer_at, row_ptr, out_ptr, next_state, cost, budget, start, states, least, most, clip, lo, size):
    """Boxes between what can have been spent and what can be afforded; size 0 where a state cannot be played safely.

    worst and best are the largest, and the least avoidable, excess over the budgets still to come: sums of costs minus B.
    Spending up to -worst cannot bind any more; spending above -best must break a budget.
    """
    S, D = row_ptr.shape[1] - 1, cost.shape[1]
    H = len(layer_at)
    worst, best = np.full((S, D), -np.int64(2**62)), np.full((S, D), -np.int64(2**62))
    next_worst, next_best = worst.copy(), best.copy()
    for p in range(start[H], start[H + 1]):
        for m in range(D):
            lo[p, m] = np.int64(2**62) if clip else least[p, m]
            top = max(min(most[p, m], budget[H - 1, m]), least[p, m])
            size[p, m] = 1 if clip else top - least[p, m] + 1
    for t in range(H - 1, -1, -1):
        worst, next_worst = next_worst, worst
        best, next_best = next_best, best
        rows = row_ptr[layer_at[t]]
        for p in range(start[t], start[t + 1]):
            s = states[p]
            for m in range(D):
                most_excess = -np.int64(2**62)
                least_excess = np.int64(2**62)
                for r in range(rows[s], rows[s + 1]):
                    here = -np.int64(2**62)
                    for o in range(out_ptr[r], out_ptr[r + 1]):
                        to = next_state[o]
                        most_excess = max(most_excess, cost[o, m] + max(next_worst[to, m], -budget[t, m]))
                        here = max(here, cost[o, m] + max(next_best[to, m], -budget[t, m]))
                    least_excess = min(least_excess, here)
                worst[s, m] = most_excess
                best[s, m] = least_excess
                lo[p, m] = max(-most_excess, least[p, m]) if clip else least[p, m]
                size[p, m] = max(min(-least_excess, max(most[p, m], lo[p, m])) - lo[p, m] + 1, 0)


@_jit
def number_boxes(start, size, base, line):
    """First cell and first line of each box, counted from the layer's first; one more entry per layer holds the totals."""
    D = size.shape[1]
    for t in range(len(start) - 1):
        cells = lines = np.int64(0)
        for p in range(start[t], start[t + 1] + 1):
            base[p + t] = cells
            line[p + t] = lines
            if p < start[t + 1]:
                across = np.int64(1)
                for m in range(D - 1):
                    across *= size[p, m]
                lines += across
                cells += across * size[p, D - 1]


@_inner
def _step(o, c, cost, next_state, budget, slot, n_lo, n_size, n_line, last):
    """Line of the next layer that outcome o leads to from total c (the last constraint aside); -1 when a budget breaks."""
    to = slot[next_state[o]]
    if to < 0:
        return np.int64(-1), to
    line = np.int64(0)
    for m in range(last):
        total = c[m] + cost[o, m]
        if total > budget[m]:
            return np.int64(-1), to
        at = max(total - n_lo[to, m], 0)
        if at >= n_size[to, m]:
            return np.int64(-1), to
        line = line * n_size[to, m] + at
    return n_line[to] + line, to


@_inner
def _threshold(r, c, out_ptr, cost, next_state, budget, slot, n_lo, n_size, n_line, n_height, last):
    """Largest total of the last constraint at which row r is feasible, the other totals being c."""
    threshold = np.int64(2**62)
    for o in range(out_ptr[r], out_ptr[r + 1]):
        line, to = _step(o, c, cost, next_state, budget, slot, n_lo, n_size, n_line, last)
        if line < 0 or n_height[line] < 0:
            return -np.int64(2**62)
        threshold = min(threshold, min(budget[last], n_lo[to, last] + n_height[line]) - cost[o, last])
    return threshold


@_inner
def _line_totals(c, line, lo, size, a, last):
    """Totals of all but the last constraint on a line of state slot a."""
    for m in range(last - 1, -1, -1):
        c[m] = lo[a, m] + line % size[a, m]
        line //= size[a, m]


@_inner
def heights(
    states, lo, size, line, row_ptr, out_ptr, cost, next_state, budget, slot, n_lo, n_size, n_line, n_height, height
):
    """Feasibility by height map (spec 2): for each line the largest feasible place of the last constraint, or -1."""
    last = cost.shape[1] - 1
    c = np.zeros(last + 1, np.int64)
    for a in range(len(states)):
        s = states[a]
        for nth in range(line[a + 1] - line[a]):
            _line_totals(c, nth, lo, size, a, last)
            most = -np.int64(2**62)
            for r in range(row_ptr[s], row_ptr[s + 1]):
                most = max(
                    most,
                    _threshold(r, c, out_ptr, cost, next_state, budget, slot, n_lo, n_size, n_line, n_height, last),
                )
            height[line[a] + nth] = max(min(most - lo[a, last], size[a, last] - 1), -1)


@_inner
def reach(
    states, lo, size, base, line, mark, row_ptr, out_ptr, cost, next_state, budget, slot, n_lo, n_size, n_base, n_line, n_height,
    n_mark, reward, played, low, high,
):
    """Mark in n_mark the cells that feasible actions reach from the marked cells; low and high (N,) bound the rewards of these actions."""
    last = cost.shape[1] - 1
    c = np.zeros(last + 1, np.int64)
    for a in range(len(states)):
        s = states[a]
        width = size[a, last]
        for nth in range(line[a + 1] - line[a]):
            start = base[a] + nth * width
            if not _any(mark[start : start + width]):
                continue
            _line_totals(c, nth, lo, size, a, last)
            for r in range(row_ptr[s], row_ptr[s + 1]):
                top = _threshold(r, c, out_ptr, cost, next_state, budget, slot, n_lo, n_size, n_line, n_height, last)
                stop = min(top - lo[a, last] + 1, width)
                if stop <= 0:
                    continue
                if not played[r] and _any(mark[start : start + stop]):
                    played[r] = True
                    for i in range(len(low)):
                        low[i] = min(low[i], reward[r, i])
                        high[i] = max(high[i], reward[r, i])
                for o in range(out_ptr[r], out_ptr[r + 1]):
                    to_line, to = _step(o, c, cost, next_state, budget, slot, n_lo, n_size, n_line, last)
                    first = n_base[to] + (to_line - n_line[to]) * n_size[to, last]
                    shift = lo[a, last] + cost[o, last] - n_lo[to, last]
                    clipped = min(max(-shift, 0), stop)
                    _mark_all(n_mark[first : first + 1], mark[start : start + clipped])
                    at = first + shift + clipped
                    _mark_each(n_mark[at : at + stop - clipped], mark[start + clipped : start + stop])


@_inner
def _any(marks):
    found = np.uint8(0)
    for k in range(len(marks)):
        found |= marks[k]
    return found != 0


@_inner
def _mark_each(into, marks):
    # slices counted from zero: the compiler then knows that no index is negative, and vectorises
    for k in range(len(marks)):
        into[k] |= marks[k]


@_inner
def _mark_all(into, marks):
    if _any(marks):
        into[0] = 1


@_inner
def _fill_slots(slot, states, present):
    for a in range(len(states)):
        slot[states[a]] = a if present else -1


@_jit
def heights_range(
    t0, t1, start, states, lo, size, line, layer_at, row_ptr, out_ptr, cost, next_state, budget, height_start, height
):
    """`heights` for the layers t1-1 down to t0."""
    slot = np.full(row_ptr.shape[1] - 1, -1, np.int32)
    for t in range(t1 - 1, t0 - 1, -1):
        a, b, c = start[t], start[t + 1], start[t + 2]
        _fill_slots(slot, states[b:c], True)
        heights(
            states[a:b], lo[a:b], size[a:b], line[a + t : b + t + 1], row_ptr[layer_at[t]], out_ptr, cost, next_state, budget[t],
            slot, lo[b:c], size[b:c], line[b + t + 1 : c + t + 2], height[height_start[t + 1] : height_start[t + 2]],
            height[height_start[t] : height_start[t + 1]],
        )
        _fill_slots(slot, states[b:c], False)


@_jit
def reach_range(
    t0, t1, start, states, lo, size, base, line, layer_at, row_ptr, out_ptr, cost, next_state, budget, height_start, height,
    marks, bit_start, bits, reward, low, high,
):
    """`reach` for the layers t0 .. t1-1, from the marks of layer t0; each layer's marks become bits. Returns the marks of t1."""
    slot = np.full(row_ptr.shape[1] - 1, -1, np.int32)
    played = np.zeros(len(reward), np.bool_)
    for t in range(t0, t1):
        a, b, c = start[t], start[t + 1], start[t + 2]
        next_base = base[b + t + 1 : c + t + 2]
        next_marks = np.zeros(next_base[-1], np.uint8)
        _fill_slots(slot, states[b:c], True)
        reach(
            states[a:b], lo[a:b], size[a:b], base[a + t : b + t + 1], line[a + t : b + t + 1], marks, row_ptr[layer_at[t]],
            out_ptr, cost, next_state, budget[t], slot, lo[b:c], size[b:c], next_base, line[b + t + 1 : c + t + 2],
            height[height_start[t + 1] : height_start[t + 2]], next_marks, reward, played, low[t], high[t],
        )
        played[row_ptr[layer_at[t], 0] : row_ptr[layer_at[t], -1]] = False
        _fill_slots(slot, states[b:c], False)
        pack(marks, bits[bit_start[t] : bit_start[t + 1]])
        marks = next_marks
    return marks


@_jit
def pack(marks, bits):
    """One bit per mark, the lowest first; bits is zero before."""
    whole = len(marks) // 8
    eight = marks[: 8 * whole].reshape(whole, 8)
    for b in range(whole):
        word = np.uint64(0)
        for k in range(8):
            word |= np.uint64(eight[b, k]) << np.uint64(k)
        bits[b] = np.uint8(word)
    for k in range(8 * whole, len(marks)):
        bits[k // 8] |= np.uint8(marks[k] << (k % 8))


@_jit
def rank_bits(bits, counts, ones, cells, rank):
    """Number of each cell among the set bits, -1 where its bit is not set; bits (blocks, bytes), counts before each block."""
    width = bits.shape[1]
    for q in range(len(cells)):
        block = cells[q] // (8 * width)
        byte = cells[q] % (8 * width) // 8
        bit = cells[q] % 8
        own = bits[block, byte]
        if (own >> bit) & 1 == 0:
            rank[q] = -1
            continue
        total = counts[block]
        for k in range(byte):
            total += ones[bits[block, k]]
        rank[q] = total + ones[own & ((1 << bit) - 1)]


# -- backward induction over a dense layer ----------------------------------------------------------------------------

SEGMENT = 128  # cells of a line whose utilities are computed together


@_inner
def _line_rows(
    s, c, row_ptr, out_ptr, cost, next_state, budget, slot, n_lo, n_size, n_base, n_line, n_height, low, last, stop, first, shift,
):
    """For each row of state s on the line c: up to which place it is feasible, and where its outcomes lead."""
    for r in range(row_ptr[s], row_ptr[s + 1]):
        top = _threshold(r, c, out_ptr, cost, next_state, budget, slot, n_lo, n_size, n_line, n_height, last)
        stop[r - row_ptr[s]] = max(top - low + 1, 0)
        if top < low:
            continue
        for o in range(out_ptr[r], out_ptr[r + 1]):
            to_line, to = _step(o, c, cost, next_state, budget, slot, n_lo, n_size, n_line, last)
            k = o - out_ptr[row_ptr[s]]
            first[k] = n_base[to] + (to_line - n_line[to]) * n_size[to, last]
            shift[k] = low + cost[o, last] - n_lo[to, last]


@_inner
def _line_utilities(q, s, row_ptr, out_ptr, prob, reward, stop, first, shift, k0, k1, n_value):
    """q[row, player, k - k0] = r + E[V(next)] for the places k0 <= k < k1 where the row is feasible."""
    N = reward.shape[1]
    for r in range(row_ptr[s], row_ptr[s + 1]):
        end = min(k1, stop[r - row_ptr[s]])
        if end <= k0:
            continue
        row = r - row_ptr[s]
        for i in range(N):
            for k in range(end - k0):
                q[row, i, k] = reward[r, i]
        for o in range(out_ptr[r], out_ptr[r + 1]):
            at = o - out_ptr[row_ptr[s]]
            p, f, d = prob[o], first[at], shift[at]
            clipped = min(max(-d, k0), end)
            for i in range(N):
                if clipped > k0:
                    low = p * n_value[f, i]
                    for k in range(clipped - k0):
                        q[row, i, k] += low
                for k in range(clipped, end):
                    q[row, i, k - k0] += p * n_value[f + d + k, i]


@_jit
def solve_dense(
    begin, end, states, lo, size, base, line, mark, row_ptr, out_ptr, cost, next_state, prob, reward, act, deviation, budget,
    slot, n_lo, n_size, n_base, n_line, n_height, n_value, first_action, correlated, floor, kind, terms, widest, value, code,
    mixed_code, mixed_cell, mixed_ptr, mixed_row, mixed_prob, open_cell, open_ptr, open_row, open_utility,
):
    """Solve the stage games of the marked cells begin .. end-1 of a layer, filling value and code.

    With several players, rewards and values have twice their columns, gross ones behind (see `solve_stage`). Mixed strategies are
    appended to mixed_*; cells without a certificate, with their stage games as they were solved, to open_*. Returns the number of
    mixed cells, of open cells, and of stages that took a program.
    """
    last = cost.shape[1] - 1
    C = reward.shape[1]
    N = act.shape[1]
    rows_max, outs_max = widest
    c = np.zeros(last + 1, np.int64)
    stop = np.empty(rows_max, np.int64)
    first = np.empty(outs_max, np.int64)
    shift = np.empty(outs_max, np.int64)
    q = np.empty((rows_max, C, SEGMENT))
    u = np.empty((rows_max, C))
    sigma = np.empty(rows_max)
    rows_of = np.empty(rows_max, np.int64)
    position = np.empty(rows_max, np.int64)
    W = workspace(rows_max, N, first_action[1:] - first_action[:-1], correlated)
    mixed = entries = bad = programs = np.int64(0)  # typed at once: a literal 0 would be compiled for a second time
    mixed_ptr[0] = 0
    open_ptr[0] = 0
    a = np.searchsorted(base, begin, side="right") - 1
    cell = begin
    while cell < end:
        while base[a + 1] <= cell:
            a += 1
        s = states[a]
        width = size[a, last]
        nth = (cell - base[a]) // width
        k0 = (cell - base[a]) % width
        line_end = min(width, k0 + end - cell)
        _line_totals(c, nth, lo, size, a, last)
        prepared = False
        while k0 < line_end:
            k1 = min(line_end, k0 + SEGMENT)
            if _any(mark[cell : cell + k1 - k0]):
                if not prepared:
                    _line_rows(
                        s, c, row_ptr, out_ptr, cost, next_state, budget, slot, n_lo, n_size, n_base, n_line, n_height, lo[a,
                        last], last, stop, first, shift,
                    )
                    prepared = True
                _line_utilities(q, s, row_ptr, out_ptr, prob, reward, stop, first, shift, k0, k1, n_value)
                for k in range(k1 - k0):
                    if mark[cell + k] == 0:
                        continue
                    R = np.int64(0)
                    for row in range(row_ptr[s + 1] - row_ptr[s]):
                        position[row] = -1
                        if stop[row] > k0 + k:
                            position[row] = R
                            rows_of[R] = row
                            for i in range(C):
                                u[R, i] = q[row, i, k]
                            R += 1
                    mixed, entries, bad, programs = _store_stage(
                        cell + k, u, R, N, rows_of, act[row_ptr[s] : row_ptr[s + 1]], deviation[row_ptr[s] : row_ptr[s + 1]],
                        position, first_action, correlated, floor, kind, terms, sigma, W, value, code, mixed_code, mixed_cell,
                        mixed_ptr, mixed_row, mixed_prob, open_cell, open_ptr, open_row, open_utility, mixed, entries, bad, programs,
                    )
            cell += k1 - k0
            k0 = k1
    return mixed, bad, programs


@_inner
def _store_stage(
    cell, u, R, N, rows_of, act, deviation, position, first_action, correlated, floor, kind, terms, sigma, W, value, code,
    mixed_code, mixed_cell, mixed_ptr, mixed_row, mixed_prob, open_cell, open_ptr, open_row, open_utility, mixed, entries, bad, programs,
):
    """Solve one stage and file the answer under `cell`."""
    C = value.shape[1]
    status = PURE
    if R == 1:
        W[12][0] = 0
    elif N == 1:
        best = 0
        for j in range(1, R):
            if u[j, 0] > u[best, 0]:
                best = j
        W[12][0] = best
    else:
        status = solve_stage(u, R, N, rows_of, act, deviation, position, first_action, correlated, floor, kind, terms, sigma, W)
        programs += W[12][1]
    if status == PURE:
        j = W[12][0]
        code[cell] = 1 + rows_of[j]
        for i in range(C):
            value[cell, i] = u[j, i]
    elif status == MIXED:
        code[cell] = mixed_code
        for i in range(C):
            value[cell, i] = 0.0
        for j in range(R):
            if sigma[j] > 0.0:
                mixed_row[entries] = rows_of[j]
                mixed_prob[entries] = sigma[j]
                entries += 1
                for i in range(C):
                    value[cell, i] += sigma[j] * u[j, i]
        mixed_cell[mixed] = cell
        mixed += 1
        mixed_ptr[mixed] = entries
    else:
        at = open_ptr[bad]
        for j in range(R):
            open_row[at + j] = rows_of[j]
            for i in range(C):
                open_utility[at + j, i] = u[j, i]
        open_cell[bad] = cell
        bad += 1
        open_ptr[bad] = at + R
    return mixed, entries, bad, programs


@_jit
def dense_stages(
    begin, end, states, lo, size, base, line, mark, row_ptr, out_ptr, cost, next_state, prob, reward, budget, slot, n_lo, n_size,
    n_base, n_line, n_height, n_value, widest, cells, ptr, first_row, rows, utility,
):
    """Write out the stage games of the marked cells begin .. end-1: their feasible rows and utilities. Returns their number."""
    last = cost.shape[1] - 1
    N = reward.shape[1]
    rows_max, outs_max = widest
    c = np.zeros(last + 1, np.int64)
    stop = np.empty(rows_max, np.int64)
    first = np.empty(outs_max, np.int64)
    shift = np.empty(outs_max, np.int64)
    q = np.empty((rows_max, N, SEGMENT))
    count = np.int64(0)
    R = np.int64(0)
    ptr[0] = 0
    a = np.searchsorted(base, begin, side="right") - 1
    cell = begin
    while cell < end:
        while base[a + 1] <= cell:
            a += 1
        s = states[a]
        width = size[a, last]
        nth = (cell - base[a]) // width
        k0 = (cell - base[a]) % width
        line_end = min(width, k0 + end - cell)
        _line_totals(c, nth, lo, size, a, last)
        prepared = False
        while k0 < line_end:
            k1 = min(line_end, k0 + SEGMENT)
            if _any(mark[cell : cell + k1 - k0]):
                if not prepared:
                    _line_rows(
                        s, c, row_ptr, out_ptr, cost, next_state, budget, slot, n_lo, n_size, n_base, n_line, n_height, lo[a,
                        last], last, stop, first, shift,
                    )
                    prepared = True
                _line_utilities(q, s, row_ptr, out_ptr, prob, reward, stop, first, shift, k0, k1, n_value)
                for k in range(k1 - k0):
                    if mark[cell + k] == 0:
                        continue
                    for row in range(row_ptr[s + 1] - row_ptr[s]):
                        if stop[row] > k0 + k:
                            rows[R] = row_ptr[s] + row
                            for i in range(N):
                                utility[R, i] = q[row, i, k]
                            R += 1
                    cells[count] = cell + k
                    first_row[count] = row_ptr[s]
                    count += 1
                    ptr[count] = R
            cell += k1 - k0
            k0 = k1
    return count


@_jit
def solve_dense_alone(
    begin, end, states, lo, size, base, line, row_ptr, out_ptr, cost, next_state, prob, reward, budget, slot, n_lo, n_size,
    n_base, n_line, n_height, n_value, widest, value, code,
):
    """One player: the best action of each cell, line by line. Cells that nothing reaches get an answer too."""
    last = cost.shape[1] - 1
    rows_max, outs_max = widest
    c = np.zeros(last + 1, np.int64)
    stop = np.empty(rows_max, np.int64)
    first = np.empty(outs_max, np.int64)
    shift = np.empty(outs_max, np.int64)
    q = np.empty(SEGMENT * 16)
    a = np.searchsorted(base, begin, side="right") - 1
    cell = begin
    while cell < end:
        while base[a + 1] <= cell:
            a += 1
        s = states[a]
        width = size[a, last]
        nth = (cell - base[a]) // width
        k0 = (cell - base[a]) % width
        line_end = min(width, k0 + end - cell)
        _line_totals(c, nth, lo, size, a, last)
        _line_rows(
            s, c, row_ptr, out_ptr, cost, next_state, budget, slot, n_lo, n_size, n_base, n_line, n_height, lo[a, last], last,
            stop, first, shift,
        )
        while k0 < line_end:
            k1 = min(line_end, k0 + len(q))
            value[cell : cell + k1 - k0] = -np.inf
            for r in range(row_ptr[s], row_ptr[s + 1]):
                count = min(k1, stop[r - row_ptr[s]]) - k0
                if count > 0:
                    _one_row(q, r, s, row_ptr, out_ptr, prob, reward, first, shift, k0, k0 + count, n_value)
                    _keep_better(value[cell : cell + count], code[cell : cell + count], q, 1 + r - row_ptr[s])
            cell += k1 - k0
            k0 = k1


@_jit
def alone_range(
    t0, t1, start, states, lo, size, base, line, layer_at, row_ptr, out_ptr, cost, next_state, prob, reward, budget, height_start,
    height, widest, cell_start, value, code,
):
    """`solve_dense_alone` for the layers t1-1 down to t0; value and code hold the cells of all layers, the last one's values set."""
    slot = np.full(row_ptr.shape[1] - 1, -1, np.int32)
    for t in range(t1 - 1, t0 - 1, -1):
        a, b, c = start[t], start[t + 1], start[t + 2]
        _fill_slots(slot, states[b:c], True)
        here, after, end = cell_start[t], cell_start[t + 1], cell_start[t + 2]
        solve_dense_alone(
            0, after - here, states[a:b], lo[a:b], size[a:b], base[a + t : b + t + 1], line[a + t : b + t + 1],
            row_ptr[layer_at[t]], out_ptr, cost, next_state, prob, reward, budget[t], slot, lo[b:c], size[b:c], base[b + t + 1 : c
            + t + 2], line[b + t + 1 : c + t + 2], height[height_start[t + 1] : height_start[t + 2]], value[after:end], widest,
            value[here:after], code[here:after],
        )
        _fill_slots(slot, states[b:c], False)


@_inner
def _one_row(q, r, s, row_ptr, out_ptr, prob, reward, first, shift, k0, end, n_value):
    """The utilities of one row of the only player."""
    q[: end - k0] = reward[r, 0]
    for o in range(out_ptr[r], out_ptr[r + 1]):
        at = o - out_ptr[row_ptr[s]]
        p, f, d = prob[o], first[at], shift[at]
        clipped = min(max(-d, k0), end)
        if clipped > k0:
            _add(q[: clipped - k0], p * n_value[f])
        _add_scaled(q[clipped - k0 : end - k0], p, n_value[f + d + clipped : f + d + end])


@_inner
def _add(q, number):
    for k in range(len(q)):
        q[k] += number


@_inner
def _add_scaled(q, p, values):
    for k in range(len(q)):
        q[k] += p * values[k]


@_inner
def _keep_better(value, code, q, number):
    for k in range(len(value)):
        better = q[k] > value[k]
        value[k] = q[k] if better else value[k]
        code[k] = number if better else code[k]


# -- sparse layers: cells listed in order, found through a hash table -------------------------------------------------


@_inner
def _slot_of(key, size):
    """Where a key starts looking in a table of `size` (a power of two)."""
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((h >> np.uint64(20)) & np.uint64(size - 1))


@_jit
def build_index(keys, table):
    """Fill an open-addressing table with the positions of the keys; -1 is empty."""
    size = len(table)
    for k in range(size):
        table[k] = -1
    for p in range(len(keys)):
        h = _slot_of(keys[p], size)
        while table[h] >= 0:
            h = (h + 1) & (size - 1)
        table[h] = p


@_inner
def find(key, keys, table):
    """Position of a key, or -1."""
    size = len(table)
    h = _slot_of(key, size)
    while table[h] >= 0:
        if keys[table[h]] == key:
            return np.int64(table[h])
        h = (h + 1) & (size - 1)
    return np.int64(-1)


@_inner
def _next_cell(o, c, cost, next_state, budget, slot, n_lo, n_size, n_base):
    """Cell of the next layer that outcome o leads to from the totals c, or -1 when a budget breaks now or must later."""
    to = slot[next_state[o]]
    if to < 0:
        return np.int64(-1)
    cell = np.int64(0)
    for m in range(cost.shape[1]):
        total = c[m] + cost[o, m]
        if total > budget[m]:
            return np.int64(-1)
        at = max(total - n_lo[to, m], 0)
        if at >= n_size[to, m]:
            return np.int64(-1)
        cell = cell * n_size[to, m] + at
    return n_base[to] + cell


@_inner
def _cell_totals(c, cell, lo, size, a):
    for m in range(lo.shape[1] - 1, -1, -1):
        c[m] = lo[a, m] + cell % size[a, m]
        cell //= size[a, m]


@_jit
def expand(keys, states, lo, size, base, row_ptr, out_ptr, cost, next_state, budget, slot, n_lo, n_size, n_base, table):
    """Collect in `table` (a hash set, -1 empty) the cells that safe rows lead to. Returns their number, -1 if it is too full."""
    capacity = len(table)
    for k in range(capacity):
        table[k] = -1
    count = 0
    c = np.zeros(cost.shape[1], np.int64)
    a = 0
    for p in range(len(keys)):
        while base[a + 1] <= keys[p]:
            a += 1
        s = states[a]
        _cell_totals(c, keys[p] - base[a], lo, size, a)
        for r in range(row_ptr[s], row_ptr[s + 1]):
            safe = True
            for o in range(out_ptr[r], out_ptr[r + 1]):
                if _next_cell(o, c, cost, next_state, budget, slot, n_lo, n_size, n_base) < 0:
                    safe = False
                    break
            if not safe:
                continue
            for o in range(out_ptr[r], out_ptr[r + 1]):
                key = _next_cell(o, c, cost, next_state, budget, slot, n_lo, n_size, n_base)
                h = _slot_of(key, capacity)
                while table[h] >= 0 and table[h] != key:
                    h = (h + 1) & (capacity - 1)
                if table[h] < 0:
                    table[h] = key
                    count += 1
                    if 2 * count > capacity:
                        return -1
    return count


@_jit
def sweep(
    keys, wanted, states, lo, size, base, row_ptr, out_ptr, cost, next_state, budget, slot, n_lo, n_size, n_base, n_keys, n_table,
    n_true, true, n_keep, played,
):
    """For each wanted cell: a row is TRUE when all its successors are. Sets true[p]; marks TRUE rows, and in n_keep what they reach."""
    c = np.zeros(cost.shape[1], np.int64)
    widest = 0
    for s in range(len(row_ptr) - 1):
        for r in range(row_ptr[s], row_ptr[s + 1]):
            widest = max(widest, out_ptr[r + 1] - out_ptr[r])
    found = np.empty(widest, np.int64)
    a = 0
    for p in range(len(keys)):
        while base[a + 1] <= keys[p]:
            a += 1
        true[p] = False
        if not wanted[p]:
            continue
        s = states[a]
        _cell_totals(c, keys[p] - base[a], lo, size, a)
        for r in range(row_ptr[s], row_ptr[s + 1]):
            fine = True
            for o in range(out_ptr[r], out_ptr[r + 1]):
                cell = _next_cell(o, c, cost, next_state, budget, slot, n_lo, n_size, n_base)
                at = find(cell, n_keys, n_table) if cell >= 0 else np.int64(-1)
                if at < 0 or not n_true[at]:
                    fine = False
                    break
                found[o - out_ptr[r]] = at
            if fine:
                true[p] = True
                played[r] = True
                for k in range(out_ptr[r + 1] - out_ptr[r]):
                    n_keep[found[k]] = True


@_jit
def solve_sparse(
    begin, end, keys, states, lo, size, base, row_ptr, out_ptr, cost, next_state, prob, reward, act, deviation, budget, slot,
    n_lo, n_size, n_base, n_keys, n_table, n_value, first_action, correlated, floor, kind, terms, widest, value, code,
    mixed_code, mixed_cell, mixed_ptr, mixed_row, mixed_prob, open_cell, open_ptr, open_row, open_utility,
):
    """As `solve_dense`, for the listed cells number begin .. end-1; value, code and the mixed records go by that number."""
    C = reward.shape[1]
    N = act.shape[1]
    rows_max = widest[0]
    c = np.zeros(cost.shape[1], np.int64)
    u = np.empty((rows_max, C))
    sigma = np.empty(rows_max)
    rows_of = np.empty(rows_max, np.int64)
    position = np.empty(rows_max, np.int64)
    W = workspace(rows_max, N, first_action[1:] - first_action[:-1], correlated)
    mixed = entries = bad = programs = np.int64(0)  # typed at once: a literal 0 would be compiled for a second time
    mixed_ptr[0] = 0
    open_ptr[0] = 0
    a = np.searchsorted(base, keys[begin], side="right") - 1
    for p in range(begin, end):
        while base[a + 1] <= keys[p]:
            a += 1
        s = states[a]
        _cell_totals(c, keys[p] - base[a], lo, size, a)
        R = np.int64(0)
        for r in range(row_ptr[s], row_ptr[s + 1]):
            position[r - row_ptr[s]] = -1
            fine = True
            for i in range(C):
                u[R, i] = reward[r, i]
            for o in range(out_ptr[r], out_ptr[r + 1]):
                cell = _next_cell(o, c, cost, next_state, budget, slot, n_lo, n_size, n_base)
                at = find(cell, n_keys, n_table) if cell >= 0 else np.int64(-1)
                if at < 0:
                    fine = False
                    break
                for i in range(C):
                    u[R, i] += prob[o] * n_value[at, i]
            if fine:
                position[r - row_ptr[s]] = R
                rows_of[R] = r - row_ptr[s]
                R += 1
        mixed, entries, bad, programs = _store_stage(
            p, u, R, N, rows_of, act[row_ptr[s] : row_ptr[s + 1]], deviation[row_ptr[s] : row_ptr[s + 1]], position, first_action,
            correlated, floor, kind, terms, sigma, W, value, code, mixed_code, mixed_cell, mixed_ptr, mixed_row, mixed_prob,
            open_cell, open_ptr, open_row, open_utility, mixed, entries, bad, programs,
        )
    return mixed, bad, programs


@_jit
def sparse_stages(
    begin, end, keys, states, lo, size, base, row_ptr, out_ptr, cost, next_state, prob, reward, budget, slot, n_lo, n_size, n_base,
    n_keys, n_table, n_value, cells, ptr, first_row, rows, utility,
):
    """As `dense_stages`, for the listed cells number begin .. end-1."""
    N = reward.shape[1]
    c = np.zeros(cost.shape[1], np.int64)
    R = np.int64(0)
    ptr[0] = 0
    a = np.searchsorted(base, keys[begin], side="right") - 1
    for p in range(begin, end):
        while base[a + 1] <= keys[p]:
            a += 1
        s = states[a]
        _cell_totals(c, keys[p] - base[a], lo, size, a)
        for r in range(row_ptr[s], row_ptr[s + 1]):
            fine = True
            for i in range(N):
                utility[R, i] = reward[r, i]
            for o in range(out_ptr[r], out_ptr[r + 1]):
                cell = _next_cell(o, c, cost, next_state, budget, slot, n_lo, n_size, n_base)
                at = find(cell, n_keys, n_table) if cell >= 0 else np.int64(-1)
                if at < 0:
                    fine = False
                    break
                for i in range(N):
                    utility[R, i] += prob[o] * n_value[at, i]
            if fine:
                rows[R] = r
                R += 1
        cells[p - begin] = p
        first_row[p - begin] = row_ptr[s]
        ptr[p - begin + 1] = R
    return end - begin


# -- the sets of safe joint actions, each held once ---------------------------------------------------------------------
#
# sets (C, W) found so far, one bit per joint action of the state; lists (C,) the number of the state's list of joint actions, `block`;
# index a hash table over both, -1 empty, at least twice as long.


@_inner
def _set_slot(bits, block, size):
    h = np.uint64(block) + np.uint64(1)
    for k in range(len(bits)):
        h = (h ^ bits[k]) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    h *= np.uint64(0x9E3779B97F4A7C15)
    return np.int64((h >> np.uint64(20)) & np.uint64(size - 1))


@_inner
def _same_set(bits, block, other, other_block):
    same = block == other_block
    for k in range(len(bits)):
        same &= bits[k] == other[k]
    return same


@_inner
def _number_of_set(bits, block, sets, lists, index, count):
    """Number of a set, which is put down where it is new (there must be room); and how many there are."""
    h = _set_slot(bits, block, len(index))
    while index[h] >= 0:
        if _same_set(bits, block, sets[index[h]], lists[index[h]]):
            return np.int64(index[h]), count
        h = (h + 1) & (len(index) - 1)
    for k in range(len(bits)):
        sets[count, k] = bits[k]
    lists[count] = block
    index[h] = count
    return count, count + 1


@_jit
def index_sets(sets, lists, count, index):
    """Put the first `count` sets into an empty index."""
    for d in range(count):
        h = _set_slot(sets[d], lists[d], len(index))
        while index[h] >= 0:
            h = (h + 1) & (len(index) - 1)
        index[h] = d


@_inner
def _line_set(bits, stop, rows, k):
    """The rows that are feasible at place k of a line, as bits; and up to which place they stay the same."""
    bits[:] = 0
    end = np.int64(2**62)
    for r in range(rows):
        if stop[r] > k:
            bits[r >> 6] |= np.uint64(1) << np.uint64(r & 63)
            end = min(end, stop[r])
    return end


@_inner
def _fill_marked(code, pair, mark, number):
    for k in range(len(mark)):
        if mark[k]:
            code[pair] = number
            pair += 1
    return pair


@_jit
def dense_sets(
    a, nth, pair, states, lo, size, base, line, mark, row_ptr, out_ptr, cost, next_state, budget, slot, n_lo, n_size, n_base,
    n_line, n_height, widest, block, sets, lists, index, count, code,
):
    """The number of each marked cell's set of feasible rows, into code, from line `nth` of box `a` on; the first gets code[pair].

    Along a line a row is feasible up to its threshold, so that sets change at few places. Returns the box, line and pair to go on from
    and the number of sets: before the end where there might be no room for a line's sets.
    """
    last = cost.shape[1] - 1
    c = np.zeros(last + 1, np.int64)
    stop = np.empty(widest[0], np.int64)
    first = np.empty(widest[1], np.int64)
    shift = np.empty(widest[1], np.int64)
    bits = np.zeros(sets.shape[1], np.uint64)
    while a < len(states):
        s = states[a]
        rows = row_ptr[s + 1] - row_ptr[s]
        width = size[a, last]
        while nth < line[a + 1] - line[a]:
            if count + rows > len(sets):
                return a, nth, pair, count
            start = base[a] + nth * width
            if _any(mark[start : start + width]):
                _line_totals(c, nth, lo, size, a, last)
                _line_rows(
                    s, c, row_ptr, out_ptr, cost, next_state, budget, slot, n_lo, n_size, n_base, n_line, n_height, lo[a, last],
                    last, stop, first, shift,
                )
                k = np.int64(0)
                while k < width:
                    end = min(_line_set(bits, stop, rows, k), width)
                    if _any(mark[start + k : start + end]):
                        number, count = _number_of_set(bits, block[s], sets, lists, index, count)
                        pair = _fill_marked(code, pair, mark[start + k : start + end], number)
                    k = end
            nth += 1
        nth = np.int64(0)
        a += 1
    return a, nth, pair, count


@_jit
def sparse_sets(
    pair, keys, states, lo, size, base, row_ptr, out_ptr, cost, next_state, budget, slot, n_lo, n_size, n_base, n_keys, n_index, block,
    sets, lists, index, count, code,
):
    """As `dense_sets`, for the listed cells from number `pair` on. Returns the pair to go on from and the number of sets."""
    c = np.zeros(cost.shape[1], np.int64)
    bits = np.zeros(sets.shape[1], np.uint64)
    a = np.int64(0)
    while pair < len(keys):
        if count == len(sets):
            return pair, count
        while base[a + 1] <= keys[pair]:
            a += 1
        s = states[a]
        _cell_totals(c, keys[pair] - base[a], lo, size, a)
        bits[:] = 0
        for r in range(row_ptr[s], row_ptr[s + 1]):
            fine = True
            for o in range(out_ptr[r], out_ptr[r + 1]):
                cell = _next_cell(o, c, cost, next_state, budget, slot, n_lo, n_size, n_base)
                if cell < 0 or find(cell, n_keys, n_index) < 0:
                    fine = False
                    break
            if fine:
                k = r - row_ptr[s]
                bits[k >> 6] |= np.uint64(1) << np.uint64(k & 63)
        code[pair], count = _number_of_set(bits, block[s], sets, lists, index, count)
        pair += 1
    return pair, count
