"""The program behind a set of equilibrium payoffs: the best promise in a direction (spec 12).

    maximise goal . v   over   v = sum of sigma(a) w(a),   sigma a distribution,   w(a) in W(a),
    such that no incentive row k gains:   sum over a in k of sigma(a) (w_i(a) - D_k(a)) >= -slack_k

Promises are counted in units of their range without outliers (`scaling.core_range`). A joint
action with a penalty for somebody is an outlier; its weights are counted times `scale`, by which
its columns are as small as others.

Columns are pairs of a joint action and a vertex of W(a), which are never listed. A revised simplex
asks each W(a) for the vertex of the largest reduced payoff: that of the support of the next sets in
one direction. From direction to direction only the goal changes, so each program begins at the
basis where the one before ended. The incentive rows come first, then that of the sum.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from acegames.kernels.intrinsics import noinline
from acegames.kernels.records import Bytes, Floats, Ints
from acegames.numerics import (
    PROMISE_ACCURATE,
    PROMISE_CLIPPED,
    PROMISE_OVERSTEP,
    PROMISE_PIVOT,
    PROMISE_REDUCED,
    PROMISE_SINGULAR,
)
from acegames.system.compiled import allocates, inner

REFRESH = 24
"""Pivots after which it is looked whether the inverse of the basis is still one."""
TURNS = 60
"""Pivots for each place of a basis after which a program is given up."""
SLACK, SUM, RELIEF = -1, -2, -3
"""Kinds of basic variables that are no columns: see `PromiseProgram.kind`."""


class PayoffSets(NamedTuple):
    """The sets of one time: the points of cell c are ptr[c] : ptr[c+1]."""

    ptr: Ints
    point: Annotated[Floats, "K N"]
    least: Annotated[Floats, "cells N"]


class PromiseProgram(NamedTuple):
    """One situation's program, its basis, and room. The basis has m = incentive rows + 1 places."""

    # the situation: R feasible joint actions, the outcomes of r are out_ptr[r] : out_ptr[r+1]
    row: Ints  # (R,) in the tables
    place: Ints  # (rows of the state,) the number of each row among the feasible, or -1
    out_ptr: Ints  # (R+1,)
    next_cell: Ints
    chance: Floats
    base: Floats  # (R, N) reward, less what is least, in units of the range
    worst: Floats  # (R, N) the least promise, in the same units
    low: Floats  # (N,) what counts as zero
    unit: Floats  # (N,) one over the range of promises without outliers; 0 where all are the same
    scale: Floats  # (R,) how far a joint action is an outlier: its columns count by so much less
    # the incentive rows
    player: Ints  # (K,)
    number: Ints  # (K,) among all that a situation may have, see `payoff_sets.incentives`
    deviation: Floats  # (K, R) what the deviation brings instead
    member: Bytes  # (K, R) whether the row counts this joint action
    slack: Floats  # (K,)
    # the basis
    inverse: Floats  # (m, m)
    x: Floats  # (m,)
    # (m,) of each basic variable: r >= 0 a column of that joint action; SLACK - 3k the slack of row
    # k; RELIEF, by which all rows may be violated while a first basis is sought
    kind: Ints
    promise: Floats  # (m, N) of columns
    choice: Ints  # (m, outcomes) of columns: which vertex of each next set
    cost: Floats  # (m,) what each is worth
    dual: Floats  # (m,)
    # room
    values: Floats  # (R,)
    shortfall: Floats  # (R,)
    column: Floats  # (m,)
    step: Floats  # (m,)
    push: Floats  # (N,)
    trial: Floats  # (N,)
    trial_choice: Ints
    entering: Floats  # (N,)
    entering_choice: Ints
    square: Floats  # (m, 2m)


@allocates
def allocate_program(rows, outcomes, players, actions):
    """Return room for the programs of any situation; actions is the number of all players'
    deviations.
    """
    R, N, K, m = rows, players, actions, actions + 1
    return PromiseProgram(
        np.empty(R, np.int64), np.empty(R, np.int64), np.zeros(R + 1, np.int64), np.empty(outcomes, np.int64), np.empty(outcomes),
        np.empty((R, N)), np.empty((R, N)), np.empty(N), np.empty(N), np.empty(R),
        np.empty(K, np.int64), np.empty(K, np.int64), np.empty((K, R)), np.zeros((K, R), np.uint8), np.empty(K),
        np.empty((m, m)), np.empty(m), np.empty(m, np.int64), np.empty((m, N)), np.empty((m, outcomes), np.int64), np.empty(m),
        np.empty(m), np.empty(R), np.empty(R), np.empty(m), np.empty(m), np.empty(N), np.empty(N),
        np.empty(outcomes, np.int64), np.empty(N),
        np.empty(outcomes, np.int64), np.empty((m, 2 * m)),
    )  # fmt: skip


@inner
def best_promise(r, push, work, sets, promise, choice):
    """Write the promise after joint action r that is largest in a direction, and its vertices."""
    noinline()
    n = len(push)
    for i in range(n):
        promise[i] = work.base[r, i]
    begin = work.out_ptr[r]
    for o in range(begin, work.out_ptr[r + 1]):
        cell = work.next_cell[o]
        best, most = sets.ptr[cell], -np.inf
        for v in range(sets.ptr[cell], sets.ptr[cell + 1]):
            value = 0.0
            for i in range(n):
                value += push[i] * work.unit[i] * sets.point[v, i]
            if value > most:
                best, most = v, value
        for i in range(n):
            promise[i] += work.chance[o] * work.unit[i] * sets.point[best, i]
        choice[o - begin] = best - sets.ptr[cell]


@inner
def _price(goal, relief, R, K, work, sets):
    """Find the column of the largest reduced payoff; return its kind and that payoff.

    Its promise and vertices are left in `entering`. With `relief`, the goal is to need none.
    """
    noinline()
    n, m, y = len(goal), K + 1, work.dual
    for j in range(m):
        y[j] = 0.0
    for p in range(m):
        if work.cost[p] != 0.0:
            for j in range(m):
                y[j] += work.cost[p] * work.inverse[p, j]
    kind, most = SUM, -np.inf
    for k in range(K):
        if y[k] > PROMISE_REDUCED and y[k] > most:
            kind, most = SLACK - 3 * k, y[k]
    if kind != SUM:
        return kind, most
    for k in range(K):
        y[k] = min(y[k], 0.0)
    for r in range(R):
        fixed = -y[K]
        for i in range(n):
            work.push[i] = goal[i]
        for k in range(K):
            if work.member[k, r] and y[k] != 0.0:
                work.push[work.player[k]] -= y[k]
                fixed += y[k] * work.deviation[k, r]
        best_promise(r, work.push, work, sets, work.trial, work.trial_choice)
        value = fixed
        for i in range(n):
            value += work.push[i] * work.trial[i]
        if value / work.scale[r] > most:
            kind, most = r, value / work.scale[r]
            for i in range(n):
                work.entering[i] = work.trial[i]
            for o in range(work.out_ptr[r + 1] - work.out_ptr[r]):
                work.entering_choice[o] = work.trial_choice[o]
    return kind, most


@inner
def _write_column(kind, promise, K, work, column):
    """Write the column of a variable, as the program's rows have it."""
    for k in range(K):
        column[k] = 0.0
        if kind >= 0:
            if work.member[k, kind]:
                column[k] = (promise[work.player[k]] - work.deviation[k, kind]) / work.scale[kind]
        elif kind == RELIEF:
            column[k] = 1.0
    column[K] = 1.0 / work.scale[kind] if kind >= 0 else 0.0
    if kind < 0 and kind != RELIEF:
        column[(SLACK - kind) // 3] = -1.0


@inner
def _enter(kind, goal, place, K, work):
    """Exchange the basic variable of a place; `step` has the entering column in the basis."""
    noinline()
    m, step = K + 1, work.step
    share = 1.0 / step[place]
    length = max(work.x[place], 0.0) * share
    for j in range(m):
        work.inverse[place, j] *= share
    for p in range(m):
        if p != place and step[p] != 0.0:
            work.x[p] -= length * step[p]
            for j in range(m):
                work.inverse[p, j] -= step[p] * work.inverse[place, j]
    work.x[place], work.kind[place], work.cost[place] = length, kind, 0.0
    if kind >= 0:
        for i in range(len(goal)):
            work.promise[place, i] = work.entering[i]
            work.cost[place] += goal[i] * work.entering[i] / work.scale[kind]
        for o in range(work.out_ptr[kind + 1] - work.out_ptr[kind]):
            work.choice[place, o] = work.entering_choice[o]


@inner
def _leaving(K, work):
    """Return the place that leaves the basis for the column in `step`; -1: nothing limits it."""
    bound = np.inf
    for p in range(K + 1):
        if work.step[p] > PROMISE_PIVOT:
            bound = min(bound, (max(work.x[p], 0.0) + PROMISE_OVERSTEP) / work.step[p])
    place, size = -1, 0.0
    for p in range(K + 1):
        if work.step[p] > PROMISE_PIVOT and max(work.x[p], 0.0) / work.step[p] <= bound:
            if work.kind[p] == RELIEF:
                return p
            if work.step[p] > size:
                place, size = p, work.step[p]
    return place


@inner
def _refresh(K, work):
    """Compute the inverse of the basis anew, and with it the basic solution; False if singular."""
    noinline()
    m, square, column = K + 1, work.square, work.column
    for p in range(m):
        _write_column(work.kind[p], work.promise[p], K, work, column)
        for j in range(m):
            square[j, p] = column[j]
            square[j, m + p] = 1.0 if j == p else 0.0
    for c in range(m):
        at = c
        for j in range(c + 1, m):
            if abs(square[j, c]) > abs(square[at, c]):
                at = j
        if abs(square[at, c]) < PROMISE_SINGULAR:
            return False
        for j in range(2 * m):
            square[c, j], square[at, j] = square[at, j], square[c, j]
        share = 1.0 / square[c, c]
        for j in range(c, 2 * m):
            square[c, j] *= share
        for p in range(m):
            f = square[p, c]
            if p != c and f != 0.0:
                for j in range(c, 2 * m):
                    square[p, j] -= f * square[c, j]
    for p in range(m):
        work.x[p] = square[p, 2 * m - 1]
        for j in range(m):
            work.inverse[p, j] = square[p, m + j]
            if j < K:
                work.x[p] -= square[p, m + j] * work.slack[j]
    return True


@inner
def _is_accurate(K, work):
    """Return whether the basic solution, without slacks too, and the duals fit the basis."""
    noinline()
    m, column, off = K + 1, work.column, 0.0
    for j in range(m):
        work.square[0, j] = work.slack[j] if j < K else -1.0
        work.square[0, m + j] = 0.0 if j < K else -1.0
    for p in range(m):
        _write_column(work.kind[p], work.promise[p], K, work, column)
        worth = -work.cost[p]
        for j in range(m):
            work.square[0, j] += work.x[p] * column[j]
            work.square[0, m + j] += work.inverse[p, K] * column[j]
            worth += work.dual[j] * column[j]
        off = max(off, abs(worth))
    for j in range(2 * m):
        off = max(off, abs(work.square[0, j]))
    return off <= PROMISE_ACCURATE


@inner
def climb(goal, relief, R, K, work, sets):
    """Go from the present basis to the best one for a goal; return the bound of the duals.

    With `relief`, go on until none is needed; return then whether that succeeded, 1 or 0.
    """
    noinline()
    n, m = len(goal), K + 1
    for p in range(m):
        work.cost[p] = 0.0
        if relief:
            work.cost[p] = -1.0 if work.kind[p] == RELIEF else 0.0
        elif work.kind[p] >= 0:
            for i in range(n):
                work.cost[p] += goal[i] * work.promise[p, i] / work.scale[work.kind[p]]
    most, pivots, fresh = np.inf, 0, False
    for _ in range(TURNS * (m + 4)):
        kind, most = _price(goal, relief, R, K, work, sets)
        if most <= PROMISE_REDUCED or pivots >= REFRESH:
            if not fresh and not _is_accurate(K, work):
                fresh = _refresh(K, work)
                pivots = 0
                continue
            if most <= PROMISE_REDUCED:
                break
            pivots = 0
        pivots += 1
        fresh = False
        _write_column(kind, work.entering, K, work, work.column)
        for p in range(m):
            total = 0.0
            for j in range(m):
                total += work.inverse[p, j] * work.column[j]
            work.step[p] = total
        place = _leaving(K, work)
        if place < 0:
            break
        left = work.kind[place]
        _enter(kind, goal, place, K, work)
        if relief and left == RELIEF:
            return 1.0
    if relief:
        return 0.0
    if most > PROMISE_REDUCED:  # given up: without incentives the bound holds whatever the basis
        return _without_incentives(goal, R, K, work, sets)
    bound = max(most, 0.0) + work.dual[K]
    for k in range(K):
        bound -= work.dual[k] * work.slack[k]
    return bound


@inner
def _without_incentives(goal, R, K, work, sets):
    """Return the most that any promise reaches in a direction; the duals say that no row counts."""
    noinline()
    most = -np.inf
    for k in range(K):
        work.dual[k] = 0.0
    for r in range(R):
        best_promise(r, goal, work, sets, work.trial, work.trial_choice)
        value = 0.0
        for i in range(len(goal)):
            value += goal[i] * work.trial[i]
        most = max(most, value)
    return most


@inner
def begin_program(R, K, work, sets, none):
    """Find a first basis whose solution keeps all rows; return whether there is one.

    `none` (N,) are zeros.
    """
    noinline()
    m, n = K + 1, len(none)
    first, most = 0, -np.inf
    for r in range(R):  # the joint action that violates its rows least
        best_promise(r, none, work, sets, work.trial, work.trial_choice)
        _write_column(r, work.trial, K, work, work.column)
        least = 0.0
        for k in range(K):
            least = min(least, work.column[k] * work.scale[r] + work.slack[k])
        if least > most:
            first, most = r, least
    best_promise(first, none, work, sets, work.entering, work.entering_choice)
    _write_column(first, work.entering, K, work, work.column)
    lowest, place = 0.0, -1
    for p in range(m):
        for j in range(m):
            work.inverse[p, j] = 0.0
        work.inverse[p, p] = -1.0
        work.inverse[p, K] = work.column[p] * work.scale[first] if p < K else work.scale[first]
        work.x[p] = work.inverse[p, K] + (work.slack[p] if p < K else 0.0)
        work.kind[p] = SLACK - 3 * p if p < K else first
        work.cost[p] = 0.0
        if work.x[p] < lowest:
            lowest, place = work.x[p], p
    for i in range(n):
        work.promise[K, i] = work.entering[i]
    for o in range(work.out_ptr[first + 1] - work.out_ptr[first]):
        work.choice[K, o] = work.entering_choice[o]
    if place < 0:
        return True
    _write_column(RELIEF, work.entering, K, work, work.column)
    for p in range(m):
        work.step[p] = 0.0
        for j in range(m):
            work.step[p] += work.inverse[p, j] * work.column[j]
    share = lowest / work.step[place]  # both negative
    for j in range(m):
        work.inverse[place, j] /= work.step[place]
    for p in range(m):
        if p != place:
            work.x[p] -= share * work.step[p]
            for j in range(m):
                work.inverse[p, j] -= work.step[p] * work.inverse[place, j]
    work.x[place], work.kind[place] = share, RELIEF
    return climb(none, True, R, K, work, sets) > 0.0


@inner
def read_solution(K, work, point):
    """Write the payoffs of the basic solution (N,); `step` has the probabilities of its columns.

    The rows that are tight are tight without their slack, where that leaves probabilities.
    """
    least, total = 0.0, 0.0
    for p in range(K + 1):
        work.step[p] = work.inverse[p, K]
        least = min(least, work.step[p] if work.kind[p] >= 0 else 0.0)
    for p in range(K + 1):
        share = work.step[p] if least > -PROMISE_CLIPPED else work.x[p]
        played = work.kind[p] >= 0 and share > 0.1 * PROMISE_CLIPPED
        work.step[p] = share / work.scale[work.kind[p]] if played else 0.0
        total += work.step[p]
    for i in range(len(point)):
        point[i] = 0.0
    for p in range(K + 1):
        work.step[p] /= total
        if work.step[p] > 0.0:
            for i in range(len(point)):
                point[i] += work.step[p] * work.promise[p, i]
