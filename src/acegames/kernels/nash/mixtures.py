"""One player's side of a pair of supports: how the other may mix so that this one's is optimal."""

from __future__ import annotations

import numpy as np

from acegames.kernels.nash.records import ALL, BEST, CENTRE, MAYBE, NO, WORST, YES
from acegames.kernels.nash.simplex import bar_losses, make_feasible, maximise
from acegames.kernels.simplex import Dictionary
from acegames.numerics import LEAST_PROBABILITY, NASH_CLEAR
from acegames.system.compiled import inlined, inner


@inner
def mixtures(side, want, points, room):
    """Fill the wanted points of a side. Returns whether there are any: NO, YES or MAYBE."""
    rank, answer = _eliminate(side, room)
    if answer != YES:
        return answer
    if rank == len(side.others):
        return _only_mixture(side, points, room)
    table, conditions = _dictionary(side, rank, room)
    answer = make_feasible(table, conditions)
    if answer != YES:
        return answer
    for which in range(3):
        if _is_wanted(which, want, points.full):
            answer = _find(which, side, points, table, conditions, room.barred)
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
    """Return what is no larger than this may be rounding."""
    return max(NASH_CLEAR, 100.0 * tie)


@inlined
def _is_zero(size, tie):
    return YES if size <= tie else NO if size > _clear(tie) else MAYBE


@inner
def _eliminate(side, room):
    """Solve: the actions of `own` are worth the same, and the mixture sums to one.

    Returns the rank, and whether the equations can hold.
    """
    E, e = room.E, room.e
    m, n = len(side.own), len(side.others)
    for k in range(n):
        for r in range(m - 1):
            E[r, k] = side.worth[side.own[r + 1], side.others[k]] - side.worth[side.own[0], side.others[k]]
        E[m - 1, k] = 1.0
    e[: m - 1] = 0.0
    e[m - 1] = 1.0
    room.row[:n] = -1
    sure = YES
    rank = np.int64(0)
    while rank < m and rank < n:
        r, j, size = _largest(E, rank, m, n, room.row)
        if size < _clear(side.tie):
            sure = MAYBE if size > side.tie else YES
            break
        _clear_column(E, e, rank, r, j, m, n)
        room.row[j] = rank
        rank += 1
    for r in range(rank, m):
        zero = _is_zero(abs(e[r]), side.tie)
        if zero == NO:
            return rank, (NO if sure == YES else MAYBE)
        sure = max(sure, zero)
    return rank, sure


@inlined
def _largest(E, rank, m, n, row):
    """Return row, column and size of the largest number from row `rank` on, outside basic columns."""
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
def _only_mixture(side, points, room):
    """Return the one mixture that the equations leave, as all three points."""
    answer = YES
    for k in range(len(side.others)):
        y = room.e[room.row[k]]
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
    """Return whether `own` are as good as any rival against the mixture; and what the first is
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
def _dictionary(side, rank, room):
    """Return the mixtures that the equations leave, as a dictionary; and the number of its
    conditions.

    A mixture is y = y' + z, where z is the least probability. Variables are y', then z, then a
    slack for each deviation. Objectives are z, what the player gets, and minus that.
    """
    G, own, others, T = side.worth, side.own, side.others, room.T
    n, free = len(others), 0
    for k in range(n):
        if room.row[k] < 0:
            room.nonbasic[free] = k
            free += 1
        else:
            room.basic[room.row[k]] = k
    room.nonbasic[free] = n
    for r in range(rank):
        for f in range(free):
            T[r, f] = room.E[r, room.nonbasic[f]]
        T[r, free] = _sum(1.0, T[r], free)
        room.rhs[r] = room.e[r]
    m = rank
    for c in side.rivals:
        if not _contains(own, c):
            for k in range(n):
                room.form[k] = G[c, others[k]] - G[own[0], others[k]]
            _write_form(m, rank, free, room)
            room.basic[m] = n + 1 + m
            m += 1
    for k in range(n):
        room.form[k] = G[own[0], others[k]]
    _write_form(m + 2, rank, free, room)
    for f in range(free + 1):
        T[m + 1, f] = -T[m + 2, f]
        T[m, f] = -1.0 if f == free else 0.0
    room.rhs[m + 1] = -room.rhs[m + 2]
    room.rhs[m] = 0.0
    return Dictionary(T, room.rhs, room.none, room.basic, room.nonbasic, m + 3, free + 1), m


@inlined
def _write_form(r, rank, free, room):
    """Row r becomes minus the form of y."""
    T, form = room.T, room.form
    room.rhs[r] = 0.0
    for f in range(free):
        T[r, f] = form[room.nonbasic[f]]
    for i in range(rank):
        d = form[room.basic[i]]
        room.rhs[r] -= d * room.e[i]
        for f in range(free):
            T[r, f] -= d * T[i, f]
    T[r, free] = _sum(0.0, T[r], free)


@inlined
def _sum(start, numbers, count):
    for k in range(count):
        start += numbers[k]
    return start


@inlined
def _contains(own, c):
    found = False
    for a in own:
        found = found or a == c
    return found


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
