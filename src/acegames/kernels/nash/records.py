"""What the search for Nash equilibria works on, by name. A leading axis of 2 is that of players."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.kernels.records import Floats, Ints
from acegames.system.compiled import making

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

    value: Floats  # (G, 2N) utilities and gross utilities
    status: Ints  # (G,) PURE, MIXED, ...
    pure: Ints  # (G,) the joint action, counted from the stage's first; -1 where play is mixed
    mixed_ptr: Ints  # (G+1,) the entries of each stage; none where play is not mixed
    mixed_action: Ints  # (E,) first_action[i] + the action of player i
    mixed_prob: Floats  # (E,)


class Units(NamedTuple):
    """What each player's utilities are counted from, and in."""

    top: Floats  # (N,) its best, worst, unit, unit without outliers, and what it takes for equal
    low: Floats
    unit: Floats
    core: Floats
    tie: Floats


class Objective(NamedTuple):
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
    value: Floats  # (4,) utilities and gross utilities of the mixtures


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
    T: Floats  # see `kernels.simplex.Dictionary`
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


class Workspace(NamedTuple):
    """Room for the largest stage; what is in it belongs to one stage at a time."""

    v: Floats  # (R, N) utilities in units
    values: Floats  # (R,) scratch
    order: Ints  # (R,) scratch
    sigma: Floats  # (R,) the distribution of the answer
    row: Ints  # (R,) the stage's rows, and their inverse: -1 but where it has a row
    position: Ints
    units: Units
    objective: Objective
    scores: Scores
    search: Search


@making
def workspace(R, N, kind, actions, rows):
    """Room for stages of R joint actions, states of up to `rows`, and `actions` per player."""
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
    return Workspace(
        np.empty((R, N)), np.empty(R), np.empty(R, np.int64), np.empty(R), np.empty(R, np.int64), np.full(rows, -1, np.int64),
        Units(np.empty(N), np.empty(N), np.empty(N), np.empty(N), np.empty(N)),
        Objective(kind, np.empty(N), np.empty(N), np.empty(N)),
        Scores(np.empty(1 + N), np.empty(1 + N), np.empty(N), np.empty(N)),
        Search(game, pair, points, equations),
    )  # fmt: skip
