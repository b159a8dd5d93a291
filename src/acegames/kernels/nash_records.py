"""What the search for Nash equilibria works on; utilities in units, scores, and pure equilibria.

A leading axis of 2 is that of players. A score is the objective, then the players' utilities; the
lexicographically largest is best.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.kernels.records import ANY, EGALITARIAN, FAIR, LINEAR, Floats, Ints
from acegames.kernels.scaling import merge_equal
from acegames.numerics import INDIFFERENT, NOISE, TIE
from acegames.system.compiled import allocates, inner

Bools = NDArray[np.bool_]

PURE, MIXED, UNSURE, NOTHING, TOO_MANY = 0, 1, 2, 3, 4  # what becomes of a stage
NO, YES, MAYBE = 0, 1, 2  # what becomes of a condition

BEST, WORST, CENTRE = 0, 1, 2
"""Mixtures against a player: best for it, worst for it, and with the largest least probability.

A mixture is *full* where no probability is zero. Where BEST or WORST is wanted and not full, the
centre takes its place.
"""

BEST_OR_CENTRE, ALL = 3, 4
"""What else may be wanted: the best, and the centre too where that is not full; or all three."""


class Equilibria(NamedTuple):
    """What becomes of G written stages."""

    value: Floats  # (G, 2N) utilities and absolute totals
    status: Ints  # (G,) PURE, MIXED, ...
    pure: Ints  # (G,) the joint action, counted from the stage's first; -1 where play is mixed
    mixed_ptr: Ints  # (G+1,) the entries of each stage; none where play is not mixed
    mixed_action: Ints  # (E,) first_action[i] + the action of player i
    mixed_prob: Floats  # (E,)


class PlayerUnits(NamedTuple):
    """What each player's utilities are counted from, and in."""

    top: Floats  # (N,) its best, worst, unit, unit without outliers, and what it takes for equal
    low: Floats
    unit: Floats
    core: Floats
    tie: Floats


class ScaledObjective(NamedTuple):
    """An objective of utilities in units. Players are compared by offset + gain * utility."""

    kind: int
    weight: Floats  # (N,)
    gain: Floats  # (N,) a unit of the player, in units of the objective
    offset: Floats  # (N,) the player's best, in units of the objective above the lowest


class Scores(NamedTuple):
    """Scores to compare: an objective, then the utilities."""

    here: Floats  # (1+N,)
    best: Floats  # (1+N,) the best that was found; an objective of -inf where there is none
    lower: Floats  # (N,) bounds of utilities
    upper: Floats


class Game(NamedTuple):
    """A stage of two players, whose actions are those that are feasible in it, numbered from 0."""

    size: Ints  # (2,) the number of actions
    name: Ints  # (2, actions) the action in the tables, and its inverse
    place: Ints
    cell: Ints  # (actions, actions) the joint action, or -1
    worth: Floats  # (2, actions, actions) utility in units, by own action and the other's
    fits: Ints  # (actions,) bits: the other's actions that are feasible with one of the searched player
    mixture: Floats  # (2, actions) the best found; [0, 0] is negative where none beats the pure one
    value: Floats  # (4,) utilities and absolute totals of the mixtures


class Pair(NamedTuple):
    """A pair of supports, and what leads to the next: a stack of the searched player's actions."""

    support: Ints  # (2, actions)
    size: Ints  # (2,)
    rivals: Ints  # (2, actions) what is feasible against the other's support
    rivals_size: Ints  # (2,)
    taken: Floats  # (2, actions) how the other mixes against each player
    next: Ints  # (actions + 1,) the next action to be put at each depth, which counts from 1
    common: Ints  # (actions + 1,) bits: the other's actions that are feasible with all up to each depth


class Side(NamedTuple):
    """One player's side: `own` is to be optimal among `rivals`, against a mixture of `others`."""

    worth: Floats  # by own action and the other's
    own: Ints
    rivals: Ints
    others: Ints
    tie: float


class Points(NamedTuple):
    """What is found on one side, or with a leading axis of 2 on both: BEST, WORST and CENTRE."""

    mixture: Floats  # (3, actions) over `Side.others`
    worth: Floats  # (3,) to the player
    full: Bools  # (3,) whether no probability is zero


class Equations(NamedTuple):
    """Room for the equations of one side, and for the program over the mixtures that they leave."""

    E: Floats
    e: Floats
    row: Ints  # the row in which a column is basic, or -1
    form: Floats  # the coefficients of a linear form
    T: Floats  # as in `kernels.simplex.Tableau`
    rhs: Floats
    none: Floats  # zeros: the objectives are rows of T
    basic: Ints
    nonbasic: Ints
    barred: Bools


class Search(NamedTuple):
    """What the search through the supports of two players works on."""

    game: Game
    pair: Pair
    points: Points
    equations: Equations


class NashWorkspace(NamedTuple):
    """Room for the largest stage; what is in it belongs to one stage at a time."""

    v: Floats  # (R, N) utilities in units
    values: Floats  # (R,) scratch
    order: Ints  # (R,) scratch
    sigma: Floats  # (R,) the distribution of the answer
    row: Ints  # (R,) the stage's rows, and their inverse: -1 but where it has a row
    position: Ints
    units: PlayerUnits
    objective: ScaledObjective
    scores: Scores
    search: Search


@allocates
def nash_workspace(R, N, kind, actions, rows):
    """Allocate for stages of R joint actions, states of up to `rows`, and `actions` per player."""
    n = actions if N == 2 else 1
    tall = 2 * n + 5
    game = Game(
        np.empty(2, np.int64), np.empty((2, n), np.int64), np.empty((2, n), np.int64), np.empty((n, n), np.int64),
        np.empty((2, n, n)), np.empty(n, np.int64), np.empty((2, n)), np.empty(4),
    )  # fmt: skip
    pair = Pair(
        np.empty((2, n), np.int64), np.empty(2, np.int64), np.empty((2, n), np.int64), np.empty(2, np.int64), np.empty((2, n)),
        np.empty(n + 1, np.int64), np.empty(n + 1, np.int64),
    )  # fmt: skip
    points = Points(np.empty((2, 3, n)), np.empty((2, 3)), np.empty((2, 3), np.bool_))
    equations = Equations(
        np.empty((n + 1, n)), np.empty(n + 1), np.empty(n, np.int64), np.empty(n), np.empty((tall, n + 2)), np.empty(tall),
        np.zeros(n + 2), np.empty(tall, np.int64), np.empty(n + 2, np.int64), np.empty(4 * n + 16, np.bool_),
    )  # fmt: skip
    return NashWorkspace(
        np.empty((R, N)), np.empty(R), np.empty(R, np.int64), np.empty(R), np.empty(R, np.int64), np.full(rows, -1, np.int64),
        PlayerUnits(np.empty(N), np.empty(N), np.empty(N), np.empty(N), np.empty(N)),
        ScaledObjective(kind, np.empty(N), np.empty(N), np.empty(N)),
        Scores(np.empty(1 + N), np.empty(1 + N), np.empty(N), np.empty(N)),
        Search(game, pair, points, equations),
    )  # fmt: skip


# -- units and scores ------------------------------------------------------------------------------


@inner
def scale(u, units, v, blur, values, order):
    """Count each player's utilities from its best, in its unit; make equal what counts as equal."""
    top, unit, tie = units.top, units.unit, units.tie
    R, N = len(u), len(top)
    for i in range(N):
        cares = unit[i] > 0.0
        per = unit[i] if cares else 1.0
        abs_total = 0.0  # of what is no outlier
        for j in range(R):
            v[j, i] = (u[j, i] - top[i]) / per if cares else 0.0
            if v[j, i] >= -1.0:
                abs_total = max(abs_total, u[j, N + i])
        tie[i] = max(NOISE * abs_total / per, INDIFFERENT)
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
    """Fill the largest score (1+N,) that utilities between lower and upper (N,) may have.

    `stage.units.Preference` has the mathematics.
    """
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
    """Return whether a score beats the best, ties aside. If any answer will do, the first is
    best.
    """
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
    """Copy a score to the best one."""
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
    """Return whether no player has more, in units, after a feasible deviation from joint action
    j.
    """
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
