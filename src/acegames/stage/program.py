"""The linear program of one stage game (spec 4), in a form that all its solvers share.

Utilities are counted from the player's best, v_i = u_i - max_X u_i. A deviation out of X is worth
`floor` ranges less than the worst. For weights y = (sigma, auxiliaries) >= 0:

    maximise, lexicographically,  objective, v_1, ..., v_N   subject to   A y <= b,   sum(sigma) = 1

    CCE, for each player i and d:     sum over X       of sigma(a) (v~_i(d, a_-i) - v_i(a)) <= 0
    CE, for each player i, a_i and d: sum over X | a_i of sigma(a) (v~_i(d, a_-i) - v_i(a)) <= 0
    egalitarian, auxiliary z:         z - w_i.sigma <= o_i;  maximise z
    fair, auxiliaries lo, w:          lo - w_i.sigma <= o_i,  w + w_i.sigma <= top - o_i;
                                      maximise lo + w, where w = top - hi

where u_i + baseline_i = w_i + o_i + constant, with w_i >= 0 and o_i >= 0. In every solver, a
player's utilities that differ only by rounding (`numerics.NOISE` of their gross) count as equal.

Each constraint and each level has a unit: a player's own (`stage.units`), so that no player's
incentives drown in another's large numbers, or the objective's. Floats are divided by it; whole
numbers stay as they are.

b >= 0 throughout. A solution exists if X is not empty (spec 4 has the proof).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.numerics import OUTLIER
from acegames.stage import Stage
from acegames.stage.units import Units

Numbers = NDArray[Any]  # floats, or objects that are whole numbers or Fractions


@dataclass(frozen=True, eq=False)
class Program:
    """Maximise each level in turn subject to A y <= b, y >= 0 and sum(y[:rows]) = 1."""

    rows: int  # number of joint actions; sigma = y[:rows]
    A: Numbers  # (J, rows + auxiliaries)
    b: Numbers  # (J,)
    levels: Numbers  # (L, rows + auxiliaries); none: any feasible point
    row_unit: Numbers | int = 1  # (J,) of each constraint, and of the auxiliaries in it
    level_unit: Numbers | int = 1  # (L,)
    # (rows,) units below a player's best at outliers, else 1; None: no outliers
    depth: Numbers | None = None

    @property
    def slack_size(self) -> Numbers:
        """Roughly how far each slack can change: large slacks move the objective at small prices.

        An outlier is played with probability one over its depth.
        """
        first = 0 if self.depth is None else int(np.argmin(self.depth))
        change = abs(self.A[:, : self.rows] - self.A[:, [first]])
        if self.depth is not None:
            change = change // self.depth
        size: Numbers = np.maximum(change.max(axis=1, initial=0), self.row_unit)
        return size

    def counted(self) -> Program:
        """The same program in its units, for floats."""
        A, levels = self.A.copy(), self.levels.copy()
        A[:, : self.rows] /= np.reshape(self.row_unit, (-1, 1))
        levels[:, : self.rows] /= np.reshape(self.level_unit, (-1, 1))
        return Program(self.rows, A, self.b / self.row_unit, levels, depth=self.depth)


def stage_program(stage: Stage, blur: Numbers, units: Units) -> Program:
    """Build the program of one stage; `blur` (R, N) is the rounding of the utilities.

    All numbers are floats, or all are whole numbers, which ranges times the floor must be as well.
    """
    utility, concept = stage.utility, stage.concept
    exact, cares = utility.dtype == object, units.own > 0
    low, top = utility.min(axis=0), utility.max(axis=0)
    ranges = (top - low) * cares
    v = merge_equal((utility - top) * cares, blur)
    part, of = float(concept.floor).as_integer_ratio()
    below = ranges * part // of if exact else ranges * float(concept.floor)
    A, owner = deviation_rows(stage, v, -ranges - below - ~cares)
    per, goal, b = np.where(cares, units.own, 1), units.goal or 1, np.zeros(len(A), dtype=int)
    depth = (-v // per).max(axis=1)
    depth = np.where(depth > OUTLIER, depth, 1) if (depth > OUTLIER).any() else None
    if concept.objective is None:
        return Program(len(v), A, b, np.empty((0, len(v))), per[owner], depth=depth)
    given = concept.weights(stage.players)
    if given is not None:
        scaled: Any = common_denominator([*map(Fraction, given)])[0] if exact else stage.weights
        weights = np.array(scaled, dtype=v.dtype)
        levels, size = np.vstack([(v * weights).sum(axis=1), v.T]), abs(weights).max() or 1
        return Program(len(v), A, b, levels, per[owner], np.append(goal * size, per), depth)
    low = low + stage.baseline
    A, b, levels = _compare_players(v, ranges, low - low.min(), A, fair=concept.objective == "fair")
    row_unit = np.append(per[owner], [goal] * (len(b) - len(owner)))
    return Program(len(v), A, b, levels, row_unit, np.append(goal, per), depth)


def common_denominator(numbers: Sequence[Fraction | int]) -> tuple[list[int], int]:
    """The numbers times their common denominator, and the denominator."""
    denominator = math.lcm(*(x.denominator for x in numbers))
    return [x.numerator * (denominator // x.denominator) for x in numbers], denominator


def _compare_players(
    v: Numbers, gain: Numbers, offset: Numbers, deviations: Numbers, *, fair: bool
) -> tuple[Numbers, Numbers, Numbers]:
    """A, b and levels. Offsets stop mattering where the lowest is `least`, the highest `most`."""
    rows, n = v.shape
    alike = (v + gain).T
    least, most = (offset + gain).min(), offset.max()
    above = gain.max()  # the highest is at most this much above `most`
    blocks, auxiliaries = [(deviations, [0, 0]), (-alike, [1, 0])], 1 + fair
    b = [np.zeros(len(deviations), dtype=int), np.minimum(offset, least)]
    if fair:
        blocks.append((alike, [0, 1]))
        b.append(above - np.maximum(offset - most, -gain))
    A = np.vstack([np.hstack([part, np.tile(more[:auxiliaries], (len(part), 1))]) for part, more in blocks])
    levels = np.hstack([np.vstack([np.zeros(rows, dtype=int), v.T]), np.zeros((n + 1, auxiliaries), dtype=int)])
    levels[0, rows:] = 1
    return A, np.concatenate(b), levels


def merge_equal(v: Numbers, blur: Numbers) -> Numbers:
    """Set a player's values that follow each other within their blur (R, N) to the lowest."""
    merged = v.copy()
    for i in range(v.shape[1]):
        order = np.argsort(v[:, i], kind="stable")
        ordered, wide = v[order, i], blur[order, i]
        fresh = np.append(True, ordered[1:] - ordered[:-1] > np.maximum(wide[1:], wide[:-1]))
        merged[order, i] = ordered[np.maximum.accumulate(np.where(fresh, np.arange(len(v)), 0))]
    return merged


def deviation_rows(stage: Stage, v: Numbers, outside: Numbers) -> tuple[Numbers, NDArray[np.int64]]:
    """The incentive constraints A sigma <= 0 that can bind, and the player of each.

    `outside` (N,) is the value of a deviation out of X; only players who deviate have constraints.
    """
    action, concept = stage.action, stage.concept
    joint = [*map(tuple, action.tolist())]
    position = {a: r for r, a in enumerate(joint)}
    found, owner = [], []
    for i in np.flatnonzero(concept.deviators(stage.players)).tolist():
        choices = sorted({a[i] for a in joint})
        for d in choices:
            to = np.array([position.get((*a[:i], d, *a[i + 1 :]), -1) for a in joint])
            gain = np.where(to >= 0, v[to, i], outside[i]) - v[:, i]
            for given in [action[:, i] == own for own in choices if own != d] if concept.told else [True]:
                row = np.where(given, gain, 0)
                if (row > 0).any():
                    found.append(row)
                    owner.append(i)
    return np.array(found, dtype=v.dtype).reshape(len(found), len(v)), np.array(owner, dtype=np.int64)
