"""Utilities in units, the scores that answers are compared by, and pure equilibria.

A score is the objective, then the players' utilities; the lexicographically largest is best.
"""

from __future__ import annotations

import numpy as np

from acegames.kernels.records import ANY, EGALITARIAN, FAIR, LINEAR
from acegames.kernels.units import merge_equal
from acegames.numerics import INDIFFERENT, NOISE, TIE
from acegames.system.compiled import inner


@inner
def scale(u, units, v, blur, values, order):
    """Count each player's utilities from its best, in its unit; make equal what counts as equal."""
    top, unit, tie = units.top, units.unit, units.tie
    R, N = len(u), len(top)
    for i in range(N):
        cares = unit[i] > 0.0
        per = unit[i] if cares else 1.0
        gross = 0.0  # of what is no outlier
        for j in range(R):
            v[j, i] = (u[j, i] - top[i]) / per if cares else 0.0
            if v[j, i] >= -1.0:
                gross = max(gross, u[j, N + i])
        tie[i] = max(NOISE * gross / per, INDIFFERENT)
        blur[:R] = tie[i]
        merge_equal(v[:R, i], blur, values, order)


@inner
def scale_objective(terms, span, units, objective):
    """Write the objective in terms of utilities in units; it is itself counted in `span`."""
    kind, weight, gain, offset = objective
    per = span if span > 0.0 else 1.0
    lowest = np.inf
    for i in range(len(terms)):
        offset[i] = units.top[i] + (terms[i] if kind in (EGALITARIAN, FAIR) else 0.0)
        lowest = min(lowest, offset[i])
    for i in range(len(terms)):
        gain[i] = units.unit[i] / per
        offset[i] = (offset[i] - lowest) / per
        weight[i] = terms[i] * gain[i]


@inner
def fill_score(objective, lower, upper, score):
    """The largest score that utilities between lower and upper may have; see `stage.preference`."""
    kind, weight, gain, offset = objective
    total = 0.0
    least = np.inf
    most = -np.inf
    for i in range(len(upper)):
        score[1 + i] = upper[i]
        total += max(weight[i] * lower[i], weight[i] * upper[i])
        least = min(least, offset[i] + gain[i] * upper[i])
        most = max(most, offset[i] + gain[i] * lower[i])
    score[0] = 0.0
    if kind == LINEAR:
        score[0] = total
    elif kind == EGALITARIAN:
        score[0] = least
    elif kind == FAIR:
        score[0] = min(0.0, least - most)


@inner
def is_better(kind, score, best):
    """Return whether a score beats the best, ties aside. If any answer will do, the first is best."""
    if best[0] == -np.inf:
        return True
    if kind == ANY:
        return False
    for i in range(len(best)):
        gap = score[i] - best[i]
        if not abs(gap) <= TIE:
            return gap > TIE
    return False


@inner
def keep(score, best):
    """The score becomes the best one."""
    for i in range(len(best)):
        best[i] = score[i]


@inner
def best_pure(stage, v, objective, scores):
    """Return the best pure equilibrium, or -1; its score is scores.best."""
    here, best = scores.here, scores.best
    best[0] = -np.inf
    chosen = np.int64(-1)
    for j in range(len(stage.utility)):
        if _is_equilibrium(j, stage, v):
            fill_score(objective, v[j], v[j], here)
            if is_better(objective.kind, here, best):
                chosen = np.int64(j)
                keep(here, best)
    return chosen


@inner
def _is_equilibrium(j, stage, v):
    """Return whether no player has more, in units, after a feasible deviation from joint action j."""
    for i in range(len(stage.first_action) - 1):
        for target in range(stage.first_action[i], stage.first_action[i + 1]):
            to = stage.deviation[stage.row[j], target]
            if to >= 0 and stage.position[to] >= 0 and v[stage.position[to], i] > v[j, i]:
                return False
    return True


@inner
def may_be_beaten(v, objective, scores):
    """Return whether some mixture of joint actions might have a better score than the best."""
    here, best, lower, upper = scores
    if objective.kind == LINEAR:  # then a joint action is as good as any mixture
        for j in range(len(v)):
            fill_score(objective, v[j], v[j], here)
            if is_better(objective.kind, here, best):
                return True
        return False
    for i in range(len(lower)):
        lower[i] = np.inf
        upper[i] = -np.inf
        for j in range(len(v)):
            lower[i] = min(lower[i], v[j, i])
            upper[i] = max(upper[i], v[j, i])
    fill_score(objective, lower, upper, here)
    return is_better(objective.kind, here, best)
