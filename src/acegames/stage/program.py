"""The linear program of one stage game (spec 4), in a form that every solver of it shares.

Utilities are scaled to v_i = (u_i - min_X u_i) / range, with one range for the stage, the largest of the players'. A deviation
out of X is valued at `-floor`. For weights y = (sigma, auxiliaries) >= 0:

    maximise, lexicographically,  objective, v_1, ..., v_N   subject to   A y <= b,   sum(sigma) = 1

    CCE, one row per player i and action d:               sum over X       of sigma(a) (v~_i(d, a_-i) - v_i(a)) <= 0
    CE, one row per player i and actions a_i, d:          sum over X | a_i of sigma(a) (v~_i(d, a_-i) - v_i(a)) <= 0
    egalitarian, auxiliary z, with offsets o_i >= 0:      z - v_i.sigma <= o_i                   maximise z
    fair, auxiliaries lo and w = top - hi:                lo - v_i.sigma <= o_i,  w + v_i.sigma <= top - o_i    maximise lo + w

b >= 0 throughout. Always solvable when X is not empty (spec 4 has the proof).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import CE, Concept

Floats = NDArray[np.float64]
Numbers = NDArray[Any]
"""Floats, or objects that are Fractions."""


@dataclass(frozen=True, eq=False)
class Program:
    """maximise each of `levels` in turn, subject to A y <= b and the first `rows` weights summing to one, y >= 0."""

    rows: int  # number of joint actions; sigma = y[:rows]
    A: Numbers  # (J, rows + auxiliaries)
    b: Numbers  # (J,)
    levels: Numbers  # (L, rows + auxiliaries); none: any feasible point


def stage_program(
    action: NDArray[np.int32], utility: Numbers, concept: Concept, players: tuple[Hashable, ...]
) -> Program:
    """Build the program of one stage from its feasible joint actions (R, N) and utilities (R, N).

    Utilities may be floats or, in an array of objects, Fractions; the program is in the same arithmetic.
    """
    low = utility.min(axis=0)
    span = (utility - low).max() or 1
    v = (utility - low) / span
    deviations = deviation_rows(action, v, concept)
    number = Fraction if v.dtype == object else float
    weights = concept.weights(players)
    if concept.objective is None:
        return Program(len(v), deviations, np.zeros(len(deviations)), np.empty((0, len(v))))
    if weights is not None:
        first = v @ (np.array([number(w) for w in weights]) / number(max(map(abs, weights)) or 1.0))
        return Program(len(v), deviations, np.zeros(len(deviations)), np.vstack([first, v.T]))
    offset = (low - low.min()) / span
    return _compare_players(v, offset, deviations, fair=concept.objective == "fair")


def _compare_players(v: Numbers, offset: Numbers, deviations: Numbers, *, fair: bool) -> Program:
    rows, n = v.shape
    top = offset.max() + 1
    auxiliaries = 2 if fair else 1
    blocks = [
        np.hstack([deviations, np.zeros((len(deviations), auxiliaries), dtype=int)]),
        np.hstack([-v.T, np.tile([1, 0][:auxiliaries], (n, 1))]),
    ]
    b = [np.zeros(len(deviations), dtype=int), offset]
    if fair:
        blocks.append(np.hstack([v.T, np.tile([0, 1], (n, 1))]))
        b.append(top - offset)
    levels = np.hstack([np.vstack([np.zeros(rows, dtype=int), v.T]), np.zeros((n + 1, auxiliaries), dtype=int)])
    levels[0, rows:] = 1
    return Program(rows, np.vstack(blocks), np.concatenate(b), levels)


def deviation_rows(action: NDArray[np.int32], v: Numbers, concept: Concept) -> Numbers:
    """Return the rows A of the incentive constraints A sigma <= 0; rows that cannot bind are left out."""
    rows, n = v.shape
    floor: Any = Fraction(concept.floor) if v.dtype == object else concept.floor
    position = {tuple(a): r for r, a in enumerate(action.tolist())}
    found = []
    for i in range(n):
        choices = np.unique(action[:, i])
        for d in choices:
            target = action.copy()
            target[:, i] = d
            to = np.array([position.get(tuple(a), -1) for a in target.tolist()])
            gain = np.where(to >= 0, v[to, i], -floor) - v[:, i]
            if isinstance(concept, CE):
                found += [np.where(action[:, i] == told, gain, 0) for told in choices if told != d]
            else:
                found.append(gain)
    kept = [g for g in found if (g > 0).any()]
    return np.array(kept, dtype=v.dtype).reshape(len(kept), rows)
