"""One player's side of a pair of supports: how the other may mix so that this one's is optimal.

The small programs are x_B = rhs - T x_N: the first rows are conditions, the last ones objectives.
"""

from __future__ import annotations

import numpy as np

from acegames.kernels.nash_records import ALL, BEST, CENTRE, MAYBE, NO, WORST, YES
from acegames.kernels.simplex import Tableau, Tolerances, lowest, pivot, primal_simplex
from acegames.numerics import LEAST_PROBABILITY, NASH_CLEAR, NASH_PIVOT, NASH_ZERO, TIE
from acegames.system.compiled import inlined, inner

NASH = Tolerances(NASH_PIVOT, NASH_PIVOT, 0.0, NASH_ZERO, NASH_ZERO)


@inner
def make_feasible(table, conditions):
    """Make rhs >= 0 in the conditions, whatever the objectives."""
    limit = 20 * (conditions + table.n) + 50
    for step in range(limit):
        bland = step > limit // 2
        r = lowest(table.rhs, conditions, -NASH_ZERO, bland)
        if r < 0:
            return YES
        j = lowest(table.T[r], table.n, -NASH_PIVOT, bland)
        if j < 0:
            return NO if table.rhs[r] < -NASH_CLEAR else MAYBE
        pivot(table, r, j)
    return MAYBE


@inner
def maximise(table, conditions, objective, barred):
    """Raise the objective of a row, keeping rhs >= 0 in the conditions; False: that fails."""
    return primal_simplex(table, table.T[objective], conditions, barred, NASH)


@inner
def bar_losses(table, objective, barred):
    """Keep the variables out whose entry would lower the objective."""
    for k in range(table.n):
        if table.T[objective, k] > TIE:
            barred[table.nonbasic[k]] = True


# -- mixtures --------------------------------------------------------------------------------------


@inner
def mixtures(side, want, points, equations):
    """Fill the wanted points of a side. Returns whether there are any: NO, YES or MAYBE."""
    rank, answer = _eliminate(side, equations)
    if answer != YES:
        return answer
    if rank == len(side.others):
        return _only_mixture(side, points, equations)
    table, conditions = _dictionary(side, rank, equations)
    answer = make_feasible(table, conditions)
    if answer != YES:
        return answer
    for which in range(3):
        if _is_wanted(which, want, points.full):
            answer = _find(which, side, points, table, conditions, equations.barred)
            if answer != YES:
                return answer
    if want in (BEST, WORST) and not points.full[want]:
        points.worth[want] = points.worth[CENTRE]
        for k in range(len(side.others)):
            points.mixture[want, k] = points.mixture[CENTRE, k]
    return YES


@inlined
def _is_wanted(which, want, full):
    """Return whether a point is wanted; the centre often only where the wanted end is not full."""
    if want == ALL:
        return True
    end = WORST if want == WORST else BEST
    return which == end or (which == CENTRE and not full[end])


# -- equations ------------------------------------------------------------------------------------


@inlined
def _clear(tie):
    """Return the size up to which a number may be rounding."""
    return max(NASH_CLEAR, 100.0 * tie)


@inlined
def _is_zero(size, tie):
    return YES if size <= tie else NO if size > _clear(tie) else MAYBE


@inner
def _eliminate(side, equations):
    """Solve: the actions of `own` are worth the same, and the mixture sums to one.

    Returns the rank, and whether the equations can hold.
    """
    E, e = equations.E, equations.e
    m, n = len(side.own), len(side.others)
    for k in range(n):
        for r in range(m - 1):
            E[r, k] = side.worth[side.own[r + 1], side.others[k]] - side.worth[side.own[0], side.others[k]]
        E[m - 1, k] = 1.0
    e[: m - 1] = 0.0
    e[m - 1] = 1.0
    equations.row[:n] = -1
    sure = YES
    rank = np.int64(0)
    while rank < m and rank < n:
        r, j, size = _largest(E, rank, m, n, equations.row)
        if size < _clear(side.tie):
            sure = MAYBE if size > side.tie else YES
            break
        _clear_column(E, e, rank, r, j, m, n)
        equations.row[j] = rank
        rank += 1
    for r in range(rank, m):
        zero = _is_zero(abs(e[r]), side.tie)
        if zero == NO:
            return rank, (NO if sure == YES else MAYBE)
        sure = max(sure, zero)
    return rank, sure


@inlined
def _largest(E, rank, m, n, row):
    """Return row, column and size of the largest number from row `rank` on, outside basic
    columns.
    """
    r = j = -1
    size = 0.0
    for i in range(rank, m):
        for k in range(n):
            if row[k] < 0 and abs(E[i, k]) > size:
                r, j, size = i, k, abs(E[i, k])
    return r, j, size


@inlined
def _clear_column(E, e, rank, r, j, m, n):
    """Bring row r to the place `rank`, and column j to that row's unit column."""
    for k in range(n):
        E[rank, k], E[r, k] = E[r, k], E[rank, k]
    e[rank], e[r] = e[r], e[rank]
    inverse = 1.0 / E[rank, j]
    for k in range(n):
        E[rank, k] *= inverse
    E[rank, j] = 1.0
    e[rank] *= inverse
    for i in range(m):
        f = E[i, j]
        if i != rank and f != 0.0:
            for k in range(n):
                E[i, k] -= f * E[rank, k]
            E[i, j] = 0.0
            e[i] -= f * e[rank]


@inner
def _only_mixture(side, points, equations):
    """Return the one mixture that the equations leave, as all three points."""
    answer = YES
    for k in range(len(side.others)):
        y = equations.e[equations.row[k]]
        enough = _is_enough(y)
        if enough == NO:
            return NO
        answer = max(answer, enough)
        for which in range(3):
            points.mixture[which, k] = y
    optimal, worth = _judge(side, points.mixture[BEST])
    for which in range(3):
        points.worth[which] = worth
        points.full[which] = True
    return NO if optimal == NO else max(answer, optimal)


@inlined
def _is_enough(p):
    """Return whether a probability is large enough for a support."""
    return YES if p >= 2.0 * LEAST_PROBABILITY else NO if p < 0.5 * LEAST_PROBABILITY else MAYBE


@inner
def _judge(side, mixture):
    """Return whether `own` are as good as any rival against the mixture, and the first one's
    worth.
    """
    first = _worth(side, side.own[0], mixture)
    least = most = first
    for c in side.own[1:]:
        worth = _worth(side, c, mixture)
        least = min(least, worth)
        most = max(most, worth)
    for c in side.rivals:
        most = max(most, _worth(side, c, mixture))
    return _is_zero(most - least, side.tie), first


@inlined
def _worth(side, c, mixture):
    worth = 0.0
    for k in range(len(side.others)):
        worth += mixture[k] * side.worth[c, side.others[k]]
    return worth


# -- the mixtures that equations leave ------------------------------------------------------------


@inner
def _dictionary(side, rank, equations):
    """Return the mixtures that the equations leave as a tableau, and the number of its conditions.

    A mixture is y = y' + z, where z is the least probability. Variables are y', then z, then a
    slack for each deviation. Objectives are z, what the player gets, and minus that.
    """
    G, own, others, T = side.worth, side.own, side.others, equations.T
    n, free = len(others), 0
    for k in range(n):
        if equations.row[k] < 0:
            equations.nonbasic[free] = k
            free += 1
        else:
            equations.basic[equations.row[k]] = k
    equations.nonbasic[free] = n
    for r in range(rank):
        for f in range(free):
            T[r, f] = equations.E[r, equations.nonbasic[f]]
        T[r, free] = _sum(1.0, T[r], free)
        equations.rhs[r] = equations.e[r]
    m = rank
    for c in side.rivals:
        if c not in own:
            for k in range(n):
                equations.form[k] = G[c, others[k]] - G[own[0], others[k]]
            _write_form(m, rank, free, equations)
            equations.basic[m] = n + 1 + m
            m += 1
    for k in range(n):
        equations.form[k] = G[own[0], others[k]]
    _write_form(m + 2, rank, free, equations)
    for f in range(free + 1):
        T[m + 1, f] = -T[m + 2, f]
        T[m, f] = -1.0 if f == free else 0.0
    equations.rhs[m + 1] = -equations.rhs[m + 2]
    equations.rhs[m] = 0.0
    return Tableau(T, equations.rhs, equations.none, equations.basic, equations.nonbasic, m + 3, free + 1), m


@inlined
def _write_form(r, rank, free, equations):
    """Fill row r with minus the form of y."""
    T, form = equations.T, equations.form
    equations.rhs[r] = 0.0
    for f in range(free):
        T[r, f] = form[equations.nonbasic[f]]
    for i in range(rank):
        d = form[equations.basic[i]]
        equations.rhs[r] -= d * equations.e[i]
        for f in range(free):
            T[r, f] -= d * T[i, f]
    T[r, free] = _sum(0.0, T[r], free)


@inlined
def _sum(start, numbers, count):
    for k in range(count):
        start += numbers[k]
    return start


@inner
def _find(which, side, points, table, conditions, barred):
    """Find one point: an end by what the player gets, then by z; the centre the other way round.

    Returns YES where it is right, NO where it shows that no mixture is positive throughout.
    """
    n = len(side.others)
    barred[: n + 1 + conditions] = False
    least, worth = conditions, conditions + 1
    first, second = (least, worth) if which == CENTRE else (worth + which, least)
    if not maximise(table, conditions, first, barred):
        return MAYBE
    bar_losses(table, first, barred)
    if not maximise(table, conditions, second, barred):
        return MAYBE
    enough = _is_enough(_read(table, conditions, n, points.mixture[which]))
    if enough == MAYBE or (which == CENTRE and enough == NO):
        return enough
    points.full[which] = enough == YES
    optimal, points.worth[which] = _judge(side, points.mixture[which])
    return YES if optimal == YES else MAYBE


@inlined
def _read(table, conditions, n, mixture):
    """Fill the mixture of the present basis. Returns its least probability."""
    least = 0.0
    mixture[:n] = 0.0
    for i in range(conditions):
        p = max(table.rhs[i], 0.0)
        if table.basic[i] < n:
            mixture[table.basic[i]] = p
        elif table.basic[i] == n:
            least = p
    for k in range(n):
        mixture[k] += least
    return least
