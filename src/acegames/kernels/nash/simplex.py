"""Small programs x_B = rhs - T x_N: the first rows are conditions, the last ones objectives."""

from __future__ import annotations

import numpy as np

from acegames.kernels.nash.records import MAYBE, NO, YES
from acegames.kernels.simplex import pivot
from acegames.numerics import NASH_CLEAR, NASH_PIVOT, NASH_ZERO, TIE
from acegames.system.compiled import inner


@inner
def make_feasible(table, conditions):
    """Make rhs >= 0 in the conditions, whatever the objectives."""
    T, rhs = table.T, table.rhs
    limit = 20 * (conditions + table.n) + 50
    for step in range(limit):
        bland = step > limit // 2
        r = -1
        worst = -NASH_ZERO
        for i in range(conditions):
            if rhs[i] < worst:
                r = i
                if bland:
                    break
                worst = rhs[i]
        if r < 0:
            return YES
        best = -1
        size = NASH_PIVOT
        for j in range(table.n):
            if -T[r, j] > size:
                best = j
                size = -T[r, j]
                if bland:
                    break
        if best < 0:
            return NO if rhs[r] < -NASH_CLEAR else MAYBE
        pivot(table, r, best)
    return MAYBE


@inner
def maximise(table, conditions, objective, barred):
    """Raise the objective of a row, keeping rhs >= 0 in the conditions; False: that fails."""
    T, rhs = table.T, table.rhs
    limit = 20 * (conditions + table.n) + 50
    for step in range(limit):
        bland = step > limit // 2
        j = -1
        worst = -NASH_PIVOT
        for k in range(table.n):
            if not barred[table.nonbasic[k]] and T[objective, k] < worst:
                j = k
                if bland:
                    break
                worst = T[objective, k]
        if j < 0:
            return True
        r = _leaving(T, rhs, conditions, j, bland)
        if r < 0:
            return False
        pivot(table, r, j)
        for i in range(conditions):
            if rhs[i] < 0.0 and rhs[i] > -NASH_ZERO:
                rhs[i] = 0.0
    return False


@inner
def _leaving(T, rhs, conditions, j, bland):
    """The row that bounds column j's variable first, of several the largest pivot; -1: none."""
    bound = np.inf
    for i in range(conditions):
        if T[i, j] > NASH_PIVOT:
            bound = min(bound, max(rhs[i], 0.0) / T[i, j])
    r = -1
    size = NASH_PIVOT
    for i in range(conditions):
        if T[i, j] > size and max(rhs[i], 0.0) / T[i, j] <= bound * (1.0 + NASH_ZERO) + NASH_ZERO:
            r = i
            size = T[i, j]
            if bland:
                break
    return r


@inner
def bar_losses(table, objective, barred):
    """Keep the variables out whose entry would lower the objective."""
    for k in range(table.n):
        if table.T[objective, k] > TIE:
            barred[table.nonbasic[k]] = True
