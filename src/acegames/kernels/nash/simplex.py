"""Small programs x_B = rhs - T x_N: the first rows are conditions, the last ones objectives."""

from __future__ import annotations

from acegames.kernels.nash.records import MAYBE, NO, YES
from acegames.kernels.simplex import Tolerances, lowest, pivot, primal_simplex
from acegames.numerics import NASH_CLEAR, NASH_PIVOT, NASH_ZERO, TIE
from acegames.system.compiled import inner

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
