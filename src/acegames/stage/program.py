"""The linear program of one stage game (spec 4), in a form that every solver of it shares.

Utilities are scaled player by player to v_i = (u_i - min_X u_i) / range_i, so that no player's incentives drown in another's large
numbers, and a deviation out of X is valued at `-floor`. For weights y = (sigma, auxiliaries) >= 0:

    maximise, lexicographically,  objective, v_1, ..., v_N   subject to   A y <= b,   sum(sigma) = 1

    CCE, one row per player i and action d:               sum over X       of sigma(a) (v~_i(d, a_-i) - v_i(a)) <= 0
    CE, one row per player i and actions a_i, d:          sum over X | a_i of sigma(a) (v~_i(d, a_-i) - v_i(a)) <= 0
    egalitarian, auxiliary z:                             z - g_i v_i.sigma <= o_i               maximise z
    fair, auxiliaries lo and w = top - hi:                lo - g_i v_i.sigma <= o_i,  w + g_i v_i.sigma <= top - o_i    maximise lo + w

where (u_i + level_i) / range = g_i v_i + o_i brings the players back to one scale, the largest of the ranges, with o_i >= 0. Utilities
of a player that differ by no more than its noise (`numerics.NOISE`) count as equal, in every solver alike.

b >= 0 throughout. Always solvable when X is not empty (spec 4 has the proof).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import CE, Correlated

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

    @property
    def slack_size(self) -> Numbers:
        """How large each row's slack can be, about: a small price of a large slack still moves the objective."""
        size: Numbers = np.maximum(abs(self.A).max(axis=1, initial=0), 1)
        return size


def stage_program(
    action: NDArray[np.int32],
    utility: Numbers,
    concept: Correlated,
    players: tuple[Hashable, ...],
    noise: NDArray[np.float64],
    level: NDArray[np.float64] | None = None,
) -> Program:
    """Build the program of one stage from its feasible joint actions (R, N), utilities (R, N), their noise (N,) and level (N,).

    Utilities may be floats or, in an array of objects, Fractions; the program is in the same arithmetic.
    """
    low = utility.min(axis=0)
    number = Fraction if utility.dtype == object else float
    blur = np.array([number(x) for x in noise])
    ranges = (utility - low).max(axis=0)
    ranges = np.where(ranges > blur, ranges, ranges * 0)
    unit = np.where(ranges > 0, ranges, 1)
    v = merge_equal((utility - low) / unit * (ranges > 0), blur / unit)
    deviations = deviation_rows(action, v, concept)
    nothing = np.zeros(len(deviations), dtype=int)
    weights = concept.weights(players)
    if concept.objective is None:
        return Program(len(v), deviations, nothing, np.empty((0, len(v))))
    if weights is not None:
        scaled = np.array([number(w) for w in weights]) * ranges
        first = v @ (scaled / (abs(scaled).max() or 1))
        return Program(len(v), deviations, nothing, np.vstack([first, v.T]))
    span = ranges.max() or 1
    if level is not None:
        low = low + [number(x) for x in level]
    return _compare_players(v, ranges / span, (low - low.min()) / span, deviations, fair=concept.objective == "fair")


def _compare_players(v: Numbers, gain: Numbers, offset: Numbers, deviations: Numbers, *, fair: bool) -> Program:
    """Offsets are cut to where they matter: the lowest value is at most `least`, the highest at least `most`, whatever is played."""
    rows, n = v.shape
    alike = (v * gain).T
    least, most = (offset + gain).min(), offset.max()
    auxiliaries = 2 if fair else 1
    blocks = [
        np.hstack([deviations, np.zeros((len(deviations), auxiliaries), dtype=int)]),
        np.hstack([-alike, np.tile([1, 0][:auxiliaries], (n, 1))]),
    ]
    b = [np.zeros(len(deviations), dtype=int), np.minimum(offset, least)]
    if fair:
        blocks.append(np.hstack([alike, np.tile([0, 1], (n, 1))]))
        b.append(1 - np.maximum(offset - most, -gain))
    levels = np.hstack([np.vstack([np.zeros(rows, dtype=int), v.T]), np.zeros((n + 1, auxiliaries), dtype=int)])
    levels[0, rows:] = 1
    return Program(rows, np.vstack(blocks), np.concatenate(b), levels)


def merge_equal(v: Numbers, blur: Numbers) -> Numbers:
    """Give values of a player that follow each other within its blur the lowest of them: ties that rounding broke are ties again."""
    merged = v.copy()
    for i in range(v.shape[1]):
        order = np.argsort(v[:, i], kind="stable")
        ordered = v[order, i]
        fresh = np.append(True, ordered[1:] - ordered[:-1] > blur[i])
        merged[order, i] = ordered[np.maximum.accumulate(np.where(fresh, np.arange(len(v)), 0))]
    return merged


def deviation_rows(action: NDArray[np.int32], v: Numbers, concept: Correlated) -> Numbers:
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
