"""One stage game of several players: pure, first level, tie levels.

The program is that of `acegames.stage.program` (read its docstring first). The start is the joint
action that maximises the objective: then every reduced cost is non-negative, so there is no first
phase, and "no pivot needed" is exactly "the best joint action is a pure equilibrium". "egalitarian"
and "fair" start from one player's own rows, which are dual feasible in the same way. Ties (reduced
costs of zero) are resolved by the primal simplex on the optimal face, level by level, going on from
the first level's basis.

Utilities are counted in units (`scaling`). An answer that shows a unit to be too coarse is looked
for again in a finer one; what no attempt can certify is left to exact arithmetic.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.kernels import simplex
from acegames.kernels.intrinsics import noinline
from acegames.kernels.records import ANY, EGALITARIAN, FAIR, Floats, Ints, Small
from acegames.kernels.scaling import finer, finer_goal, goal_range, leave_outliers_out, measure, merge_equal
from acegames.numerics import LP_CERTIFICATE, NOISE, OUTLIER, PIVOT, ROW_FEASIBLE, STABLE, SUPPORT, TIE
from acegames.system.compiled import allocates, inlined, inner

PURE, MIXED, UNCERTIFIED, ROUGH = 0, 1, 2, 3  # what becomes of a stage; ROUGH: a gain is left, finer units may help
# units below their best in which players are compared where there are outliers: first, and then
DEEP, DEEPER = 8.0, 1024.0
ATTEMPTS = 5  # programs of one stage in floats, in units that the one before shows, until exact arithmetic is asked


class StageView(NamedTuple):
    """A stage game: its R feasible joint actions among the rows of a state."""

    utility: Floats  # (R, 2N) utilities and absolute totals
    row: Ints  # (R,) counted from the state's first, with room behind
    position: Ints  # the inverse of row, -1 for rows that are not feasible here
    action: Small  # (rows, N) the state's joint actions, and more behind
    deviation: Small  # (rows, actions of all players) the row when one player switches, or -1
    first_action: Ints  # (N+1,)


class Workspace(NamedTuple):
    """Room for the largest stage; what is in it belongs to one stage at a time."""

    v: Floats  # (R, N) utilities in units
    A: Floats
    b: Floats
    c: Floats
    T: Floats
    rhs: Floats
    d: Floats
    x: Floats
    y: Floats
    basic: Ints
    nonbasic: Ints
    barred: NDArray[np.bool_]
    first: Floats  # the objective of the first level
    slack_scale: Floats
    column_scale: Floats
    scale: Floats  # (rows,) the most that a deviation can gain, outliers aside
    owner: Ints  # (rows,) whose deviation; of a row that compares players: whether it is cut
    top: Floats  # (N,) a player's best, worst, unit, unit without outliers
    low: Floats
    unit: Floats
    core: Floats
    reach: Floats  # (N,) how far below its best a player is compared
    offset: Floats  # (N,) where that begins, in units of the objective
    outside: Floats  # (N,) what a deviation out of X is worth, in units
    missing: Floats  # (N,) how far the answer is below a player's best, in units
    noise: Floats  # (N,) what of that is rounding
    values: Floats  # (R,) scratch
    order: Floats  # (R,) scratch
    chosen: Ints  # (1,) the joint action of a pure answer
    sigma: Floats  # (R,) the distribution of a mixed answer
    row: Ints  # (R,) the present stage's rows, and their inverse: -1 but where it has a row
    position: Ints


class PureWorkspace(NamedTuple):
    """What of that `is_pure` works with."""

    c: Floats
    barred: NDArray[np.bool_]
    top: Floats
    low: Floats
    unit: Floats
    chosen: Ints
    row: Ints
    position: Ints


@allocates
def pure_workspace(R, N):
    """Allocate what `is_pure` works with, for stages of up to R joint actions."""
    floats = np.empty(N), np.empty(N), np.empty(N)
    rows = np.empty(R, np.int64), np.full(R, -1, np.int64)
    return PureWorkspace(np.empty(R), np.empty(R, np.bool_), *floats, np.zeros(1, np.int64), *rows)


@allocates
def workspace(R, N, actions, correlated):
    """Allocate for stages of up to R joint actions; `actions` (N,) is the number of each
    player's.
    """
    rows = 2 * N
    for i in range(N):
        rows += actions[i] * (actions[i] - 1) if correlated else actions[i]
    columns = R + 2
    return Workspace(
        np.empty((R, N)), np.empty((rows + 1, columns)), np.empty(rows + 1), np.empty(columns), np.empty((rows + 1, columns)),
        np.empty(rows + 1), np.empty(columns), np.empty(columns), np.empty(rows + 1), np.empty(rows + 1, np.int64),
        np.empty(columns, np.int64), np.empty(rows + columns + 2, np.bool_), np.empty(columns), np.empty(rows + 1),
        np.empty(columns), np.empty(rows + 1), np.empty(rows + 1, np.int64), np.empty(N), np.empty(N), np.empty(N), np.empty(N),
        np.empty(N), np.empty(N), np.empty(N), np.empty(N), np.empty(N), np.empty(R), np.empty(R), np.zeros(1, np.int64),
        np.empty(R), np.empty(R, np.int64), np.full(R, -1, np.int64),
    )  # fmt: skip


@inlined
def enter_stage(g, batch, choices, row, position):
    """Return stage game g; fills its rows and their inverse."""
    first, begin, end = batch.first_row[g], batch.ptr[g], batch.ptr[g + 1]
    for j in range(end - begin):
        row[j] = batch.row[begin + j] - first
        position[row[j]] = j
    tables = choices.action[first:], choices.deviation[first:], choices.first_action
    return StageView(batch.utility[begin:end], row, position, *tables)


@inlined
def leave_stage(stage):
    """Forget where the rows of a stage are."""
    for j in range(len(stage.utility)):
        stage.position[stage.row[j]] = -1


@inner
def is_pure(g, batch, choices, goal, work):
    """Return whether the best joint action of stage game g, work.chosen[0], is its answer."""
    begin, end = batch.ptr[g], batch.ptr[g + 1]
    u = batch.utility[begin:end]
    work.chosen[0] = 0
    if len(work.top) == 1:
        work.chosen[0] = best_row(u)
        return True
    if end - begin == 1 or not measure(u, end - begin, len(work.top), work.top, work.low, work.unit):
        return True
    if goal.kind in (EGALITARIAN, FAIR):
        return False
    stage = enter_stage(g, batch, choices, work.row, work.position)
    work.chosen[0] = _best_pure(stage, goal.terms[0], work)
    stable = pure_is_stable(work.chosen[0], stage, work.unit)
    leave_stage(stage)
    return stable


@inner
def solve_by_programs(g, batch, choices, goal, work):
    """Return what becomes of stage game g.

    PURE: the joint action is work.chosen[0]; MIXED: the distribution is work.sigma; or UNCERTIFIED.
    """
    stage = enter_stage(g, batch, choices, work.row, work.position)
    measure(stage.utility, len(stage.utility), len(work.top), work.top, work.low, work.unit)
    status = _by_programs(stage, goal, goal.terms[terms_line(g, batch, goal)], work)
    leave_stage(stage)
    return status


# -- pure -----------------------------------------------------------------------------------------


@inner
def best_row(u):
    """Return the only player's best joint action; the first of several."""
    best = 0
    for j in range(len(u)):
        if u[j, 0] > u[best, 0]:
            best = j
    return best


@inlined
def _best_pure(stage, terms, work):
    """Return the joint action with the best linear objective.

    Ties go to the first player, then to the second, and so on. What counts as a tie is a share TIE
    of how far the players are from their best there, and rounding.
    """
    u, top, unit, c, out = stage.utility, work.top, work.unit, work.c, work.barred
    R, N = len(u), len(top)
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
        if not out[j] and j != best:  # the same, from where the other one is
            close = c[best]
            for i in range(N):
                if unit[i] > 0.0:
                    close -= abs(terms[i]) * (TIE * (top[i] - u[j, i]) + NOISE * max(u[j, N + i], u[best, N + i]))
            out[j] = c[j] < close
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


@inlined
def pure_is_stable(a, stage, unit):
    """Return whether no player gains by a feasible deviation from joint action a."""
    stable = True
    for i in range(len(unit)):
        stable = stable and (unit[i] == 0.0 or not _gains_alone(a, i, stage))
    return stable


@inlined
def _gains_alone(a, i, stage):
    """Return whether player i gains, beyond rounding, by a feasible deviation from a."""
    u, abs_total = stage.utility, len(stage.first_action) - 1 + i
    for target in range(stage.first_action[i], stage.first_action[i + 1]):
        to = stage.deviation[stage.row[a], target]
        if to >= 0 and stage.position[to] >= 0:
            other = stage.position[to]
            if u[other, i] - u[a, i] > NOISE * max(u[a, abs_total], u[other, abs_total]):
                return True
    return False


# -- by programs ----------------------------------------------------------------------------------


@inlined
def terms_line(g, batch, goal):
    """Return the line of goal.terms that holds those of stage game g."""
    return batch.first_row[g] if len(goal.terms) > 1 else np.int64(0)


@inner
def _by_programs(stage, goal, terms, work):
    """Solve linear programs in units that fit the stage; `work` holds what was measured of it."""
    u, top, low, unit = stage.utility, work.top, work.low, work.unit
    R, N = len(u), len(top)
    leave_outliers_out(u, R, N, top, unit, work.values, work.order)
    span = goal_range(u, R, N, goal.kind, terms, top, unit, work.values, work.order)
    for i in range(N):
        work.core[i] = unit[i]
    deep = DEEP
    widened = False
    for _ in range(ATTEMPTS):
        status = _attempt(stage, goal, terms, span if span > 0.0 else 1.0, deep, work)
        if status != UNCERTIFIED:
            closer = span
            if goal.kind != ANY:
                closer = finer_goal(u, R, N, goal.kind, terms, top, unit, work.sigma, span)
            if finer(u, R, N, work.sigma, top, work.core, unit) or closer < span:
                span = closer
                continue
        if status <= MIXED:
            return status
        if goal.kind in (EGALITARIAN, FAIR) and deep == DEEP:
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


@inner
def _attempt(stage, goal, terms, span, deep, work):
    """Solve one program in the present units; players are compared `deep` units below their
    best.
    """
    noinline()
    R, N = len(stage.utility), len(work.top)
    comparing = goal.kind in (EGALITARIAN, FAIR)
    outliers = _scale(stage.utility, work)
    limited = _bounds(goal, terms, comparing, span, deep, work)
    for i in range(N):
        if work.unit[i] > 0.0:
            for j in range(R):
                work.order[j] = NOISE * stage.utility[j, N + i] / work.unit[i]
            merge_equal(work.v[:R, i], work.order, work.values, work.nonbasic)
    incentives = _incentive_rows(stage, goal.correlated, work)
    rows, columns, pilot = incentives, R, np.int64(0)
    if comparing:
        rows, columns, pilot = _comparison_rows(R, incentives, goal.kind, span, work)
    else:
        for j in range(R):  # the linear objective of each joint action, in units of its range
            work.c[j] = 0.0
            for i in range(N):
                work.c[j] += terms[i] * work.unit[i] / span * work.v[j, i]
    program = simplex.FloatProgram(
        work.A, work.b, work.c, work.column_scale, work.slack_scale, R, columns, rows, incentives
    )
    worth = work.v[:R, pilot] if comparing else work.c[:R]
    a = _best_of(worth, work.column_scale, False)
    careful = 0 < outliers < R and (comparing or work.column_scale[a] > 1.0)
    if careful:
        a = _best_of(worth, work.column_scale, True)
    table = _start(program, a, careful, work)
    if comparing:  # the auxiliaries enter on the pilot's rows
        simplex.pivot(table, incentives + pilot, R - 1)
        if goal.kind == FAIR:
            simplex.pivot(table, incentives + N + pilot, R)
    if not first_level(program, table, outliers > 0, work):
        return UNCERTIFIED
    if limited and not _within(program, work):
        return UNCERTIFIED
    if goal.kind == ANY:
        simplex.refine(table, program, work.x)
    elif not tie_levels(program, table, limited, work):
        return UNCERTIFIED
    return _accepted(stage, program, table, work, work.sigma)


# -- the program ----------------------------------------------------------------------------------


@inner
def _scale(u, work):
    """Fill utilities in units, and how far below a player's best outliers are; returns how many."""
    outliers = 0
    work.column_scale[: len(u) + 2] = 1.0
    for j in range(len(u)):
        for i in range(len(work.top)):
            work.v[j, i] = (u[j, i] - work.top[i]) / work.unit[i] if work.unit[i] > 0.0 else 0.0
            if -work.v[j, i] > OUTLIER:
                work.column_scale[j] = max(work.column_scale[j], -work.v[j, i])
        outliers += work.column_scale[j] > 1.0
    return outliers


@inner
def _bounds(goal, terms, comparing, span, deep, work):
    """Fill how far each player is compared, from where, and what leaving X is worth to it.

    Returns whether players are compared, but not all the way down.
    """
    lowest = np.inf
    limited = False
    for i in range(len(work.top)):
        cares = work.unit[i] > 0.0
        whole = work.top[i] - work.low[i] if cares else 0.0
        work.reach[i] = min(whole, deep * min(work.unit[i], OUTLIER * span))
        limited = limited or work.reach[i] < whole
        work.offset[i] = work.top[i] - work.reach[i] + (terms[i] if comparing else 0.0)
        lowest = min(lowest, work.offset[i])
        work.outside[i] = -(1.0 + goal.floor) * whole / work.unit[i] if cares else -goal.floor
    for i in range(len(work.top)):
        work.offset[i] = (work.offset[i] - lowest) / span
    return comparing and limited


@inner
def _incentive_rows(stage, correlated, work):
    """Fill A, b, owner and scale with the incentive rows that can bind; returns their number."""
    noinline()
    A, v, column_scale = work.A, work.v, work.column_scale
    R, N = len(stage.utility), len(work.top)
    count = 0
    for i in range(N):
        for target in range(stage.first_action[i], stage.first_action[i + 1]):
            recommendations = stage.first_action[i + 1] - stage.first_action[i] if correlated else 1
            for recommended in range(recommendations):
                if correlated and recommended == target - stage.first_action[i]:
                    continue
                most = 0.0
                furthest = 0.0
                for j in range(R):
                    g = 0.0
                    if not correlated or stage.action[stage.row[j], i] == recommended:
                        to = stage.deviation[stage.row[j], target]
                        to = stage.position[to] if to >= 0 else -1
                        g = (v[to, i] if to >= 0 else work.outside[i]) - v[j, i]
                    A[count, j] = g
                    furthest = max(furthest, g / column_scale[j])
                    if column_scale[j] == 1.0:
                        most = max(most, g)
                if furthest > 0.0:
                    work.scale[count] = most if most > 0.0 else furthest
                    work.b[count] = 0.0
                    work.owner[count] = i
                    count += 1
    return count


@inner
def _comparison_rows(R, incentives, kind, span, work):
    """Append the rows that compare players. Returns rows, columns, and who has the lowest best.

    Its rows bound the objective most tightly. Offsets are cut to where they matter: the lowest
    value is at most `least`, the highest at least `most`.
    """
    noinline()
    A, b, v, offset = work.A, work.b, work.v, work.offset
    N = len(work.top)
    columns = R + (2 if kind == FAIR else 1)
    pilot = np.int64(0)
    least = np.inf
    most = 0.0
    above = 0.0
    for i in range(N):
        most = max(most, offset[i])
        above = max(above, work.reach[i] / span)
        if offset[i] + work.reach[i] / span < least:
            least = offset[i] + work.reach[i] / span
            pilot = i
    A[:incentives, R:columns] = 0.0
    rows = incentives
    for i in range(N):  # z - w_i.sigma <= o_i
        for j in range(R):
            A[rows, j] = -(v[j, i] * work.unit[i] + work.reach[i]) / span
        A[rows, columns - 1] = 0.0
        A[rows, R] = 1.0
        b[rows] = min(offset[i], least)
        work.owner[rows] = offset[i] > least
        rows += 1
    if kind == FAIR:
        for i in range(N):  # w + w_i.sigma <= top - o_i
            for j in range(R):
                A[rows, j] = (v[j, i] * work.unit[i] + work.reach[i]) / span
            A[rows, R] = 0.0
            A[rows, R + 1] = 1.0
            b[rows] = above - max(offset[i] - most, -work.reach[i] / span)
            work.owner[rows] = offset[i] - most < -work.reach[i] / span
            rows += 1
    work.c[:R] = 0.0
    work.c[R:columns] = 1.0
    return rows, columns, pilot


# -- its levels -----------------------------------------------------------------------------------


@inner
def _best_of(worth, column_scale, careful):
    """Return the joint action that is worth most; of those that are no outliers, if one is
    careful.
    """
    a = -1
    for j in range(len(worth)):
        if not (careful and column_scale[j] > 1.0) and (a < 0 or worth[j] > worth[a]):
            a = j
    return a


@inner
def _start(program, a, careful, work):
    """Return the tableau at sigma(a) = 1: its last row is sigma(a) = 1 - sum of the others.

    Outliers are weighed by their depth, so that their columns are of unit size. To begin with, an
    objective may be as good at an outlier as elsewhere; that would make small pivots, so a careful
    start holds the objective against outliers.
    """
    noinline()
    A, c, column_scale = program.A, program.c, program.column_scale
    rows, columns = program.rows, program.columns
    column_scale[a] = 1.0
    table = simplex.Tableau(work.T, work.rhs, work.d, work.basic, work.nonbasic, rows + 1, columns - 1)
    k = 0
    for j in range(columns):
        if j != a:
            table.nonbasic[k] = j
            shared = j < program.R
            for r in range(rows):
                table.T[r, k] = (A[r, j] - (A[r, a] if shared else 0.0)) / column_scale[j]
            table.T[rows, k] = 1.0 / column_scale[j] if shared else 0.0
            table.d[k] = ((c[a] - c[j]) if shared else -c[j]) / column_scale[j]
            if careful and column_scale[j] > 1.0:
                table.d[k] += 1.0
            k += 1
    for r in range(rows):
        table.basic[r] = columns + r
        table.rhs[r] = program.b[r] - A[r, a]
        program.slack_scale[r] = (
            1.0  # how large a slack can be: a small dual of a large slack still moves the objective
        )
        for j in range(columns):
            program.slack_scale[r] = max(program.slack_scale[r], abs(A[r, j]) / column_scale[j])
    table.basic[rows] = a
    table.rhs[rows] = 1.0
    work.barred[: columns + rows] = False
    return table


@inner
def first_level(program, table, outliers, work):
    """Maximise the objective. Returns whether the answer is certified; its duals are in work.y."""
    if not simplex.dual_simplex(table):
        return False
    if outliers:  # the objective as it is, and to the last digit: reduced costs of outliers are these times their depth
        simplex.reduced_costs(table, program)
        if not simplex.primal_simplex(table, table.d, table.m, work.barred, simplex.STAGE):
            return False
    return _read_certified(program, table, work)


@inner
def tie_levels(program, table, limited, work):
    """Maximise the players' utilities in turn among the best points. Returns whether certified."""
    best = 0.0
    for j in range(program.columns):
        best += program.c[j] * work.x[j]
        work.first[j] = program.c[j]
    levels = 0
    for level in range(len(work.top)):
        ties = False
        if not simplex.duals_agree(table, program, work.x, work.y):
            return False
        for k in range(table.n):
            j = table.nonbasic[k]
            if table.d[k] * (program.slack_scale[j - program.columns] if j >= program.columns else 1.0) > TIE:
                if table.d[k] < PIVOT:
                    return False  # it may be no more than rounding, of a large slack
                work.barred[j] = True
            ties = ties or not work.barred[j]
        if not ties:
            break
        for j in range(program.columns):
            program.c[j] = work.v[j, level] if j < program.R else 0.0
        simplex.reduced_costs(table, program)
        if not simplex.primal_simplex(table, table.d, table.m, work.barred, simplex.STAGE):
            return False
        if not _read_certified(program, table, work):
            return False
        if limited and not _within(program, work):
            return False
        work.missing[level] = 0.0
        for j in range(program.R):
            work.missing[level] += work.v[j, level] * work.x[j]
        levels = level + 1
    simplex.refine(table, program, work.x)
    for j in range(program.columns):
        best -= work.first[j] * work.x[j]
    for level in range(levels):
        for j in range(program.R):
            work.missing[level] -= work.v[j, level] * work.x[j]
        best = max(best, work.missing[level])
    return best <= 4.0 * TIE  # else ties gave a level away: outliers are played with more than a tiny chance


@inner
def _read_certified(program, table, work):
    simplex.read_point(table, program, work.x)
    simplex.read_duals(table, program, work.y)
    return simplex.is_certified(program, work.x, work.y, work.barred)


@inner
def _within(program, work):
    """Return whether the assumed bounds on values do not bind: then nothing beyond is better."""
    for r in range(program.incentives, program.rows):
        if work.owner[r] and work.y[r] > 0.0:
            return False
    return work.x[program.R] > ROW_FEASIBLE


# -- the answer -----------------------------------------------------------------------------------


@inner
def _accepted(stage, program, table, work, sigma):
    """Fill the distribution of the point, without weights that are rounding, unless they deter.

    Return what becomes of the stage.
    """
    for least in (TIE, SUPPORT, 0.0, 0.0, 0.0):
        count, tiny = _strip(program, work.x, least, sigma)
        if count > 0 and _residuals_hold(stage.utility, program, work, sigma, tiny):
            for j in range(program.R):
                if sigma[j] > 0.0:
                    work.chosen[0] = j
            return PURE if count == 1 else MIXED
        if least == 0.0:
            simplex.refine(table, program, work.x)
    return ROUGH


@inner
def _strip(program, x, least, sigma):
    """Drop weights up to `least`. Returns how many are left, and whether one is tiny."""
    total = 0.0
    count = 0
    tiny = False
    for j in range(program.R):
        sigma[j] = x[j] if x[j] * program.column_scale[j] > least else 0.0
        total += sigma[j]
        count += sigma[j] > 0.0
        tiny = tiny or 0.0 < sigma[j] < TIE
    for j in range(program.R):
        sigma[j] /= total
    return (count if total > 0.5 else 0), tiny


@inner
def _residuals_hold(u, program, work, sigma, tiny):
    """Return whether the rows hold in their own numbers: no gain beyond what is accepted.

    Where a tiny weight deters, nothing is accepted but rounding: else as small a violation would
    deter as well.
    """
    noinline()
    missing, noise, unit = work.missing, work.noise, work.unit
    N = len(unit)
    for i in range(N):
        missing[i] = 0.0
        noise[i] = 0.0
        for j in range(program.R):
            missing[i] -= sigma[j] * work.v[j, i]
            noise[i] += NOISE * sigma[j] * u[j, N + i]
        noise[i] /= unit[i] if unit[i] > 0.0 else 1.0
    for r in range(program.rows):
        slack = program.b[r]
        own = 0.0
        for j in range(program.columns):
            part = program.A[r, j] * (sigma[j] if j < program.R else work.x[j])
            slack -= part
            own += abs(part)
        accepted = LP_CERTIFICATE
        if r < program.incentives:
            i = work.owner[r]
            least = min(work.scale[r], missing[i])
            strict = tiny and program.R <= simplex.STRICT
            accepted = 4.0 * NOISE * own + 0.25 * NOISE * least if strict else STABLE * least + noise[i]
        if slack < -accepted:
            return False
    return True
