"""The linear program of one stage game (spec 4), in a form that every solver of it shares.

Utilities are counted from the player's best, in units of its own (`stage.units`): v_i = (u_i - max_X u_i) / unit_i, so that no player's
incentives drown in another's large numbers. A deviation out of X is valued at `floor` ranges below the worst. For weights
y = (sigma, auxiliaries) >= 0:

    maximise, lexicographically,  objective, v_1, ..., v_N   subject to   A y <= b,   sum(sigma) = 1

    CCE, one row per player i and action d:               sum over X       of sigma(a) (v~_i(d, a_-i) - v_i(a)) <= 0
    CE, one row per player i and actions a_i, d:          sum over X | a_i of sigma(a) (v~_i(d, a_-i) - v_i(a)) <= 0
    egalitarian, auxiliary z:                             z - w_i.sigma <= o_i               maximise z
    fair, auxiliaries lo and w = top - hi:                lo - w_i.sigma <= o_i,  w + w_i.sigma <= top - o_i    maximise lo + w

where (u_i + level_i) / span = w_i + o_i brings the players back to one scale, that of the objective, with w_i >= 0 and o_i >= 0.
Utilities of a player that differ by no more than rounding (`numerics.NOISE` of their gross) count as equal, in every solver alike.

b >= 0 throughout. Always solvable when X is not empty (spec 4 has the proof).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import CE, Correlated
from acegames.numerics import NOISE, OUTLIER

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
    depth: Numbers | None = (
        None  # (rows,) how far a joint action is below the best of a player, where it is an outlier, else 1
    )

    @property
    def weight_size(self) -> Numbers:
        """How large each weight can be, about: an outlier is played with a chance of one in its depth."""
        size: Numbers = np.ones(self.A.shape[1], dtype=self.A.dtype)
        if self.depth is not None:
            size[: self.rows] = size[: self.rows] / self.depth
        return size

    @property
    def slack_size(self) -> Numbers:
        """How far each row's slack can change, about: a small price of a large slack still moves the objective."""
        change, weight = self.A.copy(), self.weight_size
        change[:, : self.rows] -= self.A[:, [int(np.argmax(weight[: self.rows]))]]
        size: Numbers = np.maximum((abs(change) * weight).max(axis=1, initial=0), 1)
        return size


def stage_program(
    action: NDArray[np.int32],
    utility: Numbers,
    concept: Correlated,
    players: tuple[Hashable, ...],
    gross: Floats,
    level: Floats | None,
    unit: Floats,
    goal: float,
) -> Program:
    """Build the program of one stage from its feasible joint actions, utilities and gross utilities (R, N), their level and units (N,).

    `goal` is what the objective is counted in.

    Utilities may be floats or, in an array of objects, Fractions; the program is in the same arithmetic.
    """
    number = Fraction if utility.dtype == object else float
    units = np.array([number(x) for x in unit])
    low, top = utility.min(axis=0), utility.max(axis=0)
    ranges = np.where(units > 0, top - low, 0 * units)
    per = np.where(units > 0, units, 1)
    v = (utility - top) / per * (units > 0)
    v = merge_equal(v, np.array([[number(NOISE * x) for x in row] for row in gross.tolist()]) / per)
    deviations = deviation_rows(action, v, -(1 + number(concept.floor)) * ranges / per - (units == 0), concept)
    nothing = np.zeros(len(deviations), dtype=int)
    depth = np.where((-v).max(axis=1) > OUTLIER, (-v).max(axis=1), 1)
    weights = concept.weights(players)
    if concept.objective is None:
        return Program(len(v), deviations, nothing, np.empty((0, len(v))), depth)
    if weights is not None:
        largest = number(max(map(abs, weights)) or 1.0)
        first = v @ (np.array([number(w) for w in weights]) * units / (largest * number(goal or 1.0)))
        return Program(len(v), deviations, nothing, np.vstack([first, v.T]), depth)
    span = number(goal or 1.0)
    if level is not None:
        low = low + [number(x) for x in level]
    alike = ((v + ranges / per) * units / span).T
    fair = concept.objective == "fair"
    program = _compare_players(v, alike, ranges / span, (low - low.min()) / span, deviations, fair=fair)
    return replace(program, depth=depth)


def _compare_players(
    v: Numbers, alike: Numbers, gain: Numbers, offset: Numbers, deviations: Numbers, *, fair: bool
) -> Program:
    """Offsets are cut to where they matter: the lowest value is at most `least`, the highest at least `most`, whatever is played."""
    rows, n = v.shape
    least, most = (offset + gain).min(), offset.max()
    above = gain.max()  # the highest is at most this much above `most`
    auxiliaries = 2 if fair else 1
    blocks = [
        np.hstack([deviations, np.zeros((len(deviations), auxiliaries), dtype=int)]),
        np.hstack([-alike, np.tile([1, 0][:auxiliaries], (n, 1))]),
    ]
    b = [np.zeros(len(deviations), dtype=int), np.minimum(offset, least)]
    if fair:
        blocks.append(np.hstack([alike, np.tile([0, 1], (n, 1))]))
        b.append(above - np.maximum(offset - most, -gain))
    levels = np.hstack([np.vstack([np.zeros(rows, dtype=int), v.T]), np.zeros((n + 1, auxiliaries), dtype=int)])
    levels[0, rows:] = 1
    return Program(rows, np.vstack(blocks), np.concatenate(b), levels)


def merge_equal(v: Numbers, blur: Numbers) -> Numbers:
    """Give values of a player that follow each other within their blur (R, N) the lowest of them: what rounding broke is a tie again."""
    merged = v.copy()
    for i in range(v.shape[1]):
        order = np.argsort(v[:, i], kind="stable")
        ordered, wide = v[order, i], blur[order, i]
        fresh = np.append(True, ordered[1:] - ordered[:-1] > np.maximum(wide[1:], wide[:-1]))
        merged[order, i] = ordered[np.maximum.accumulate(np.where(fresh, np.arange(len(v)), 0))]
    return merged


def deviation_rows(action: NDArray[np.int32], v: Numbers, outside: Numbers, concept: Correlated) -> Numbers:
    """Return the rows A of the incentive constraints A sigma <= 0, but for those that cannot bind; `outside` (N,) is the worth out of X."""
    rows, n = v.shape
    position = {tuple(a): r for r, a in enumerate(action.tolist())}
    found = []
    for i in range(n):
        choices = np.unique(action[:, i])
        for d in choices:
            target = action.copy()
            target[:, i] = d
            to = np.array([position.get(tuple(a), -1) for a in target.tolist()])
            gain = np.where(to >= 0, v[to, i], outside[i]) - v[:, i]
            if isinstance(concept, CE):
                found += [np.where(action[:, i] == told, gain, 0) for told in choices if told != d]
            else:
                found.append(gain)
    kept = [g for g in found if (g > 0).any()]
    return np.array(kept, dtype=v.dtype).reshape(len(kept), rows)
