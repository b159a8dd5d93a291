"""Units of a stage game's utilities: in units of a penalty of 1e9, nothing else would count.

A player's unit is the range of its utilities without outliers, which are OUTLIER times as far below
its best as its best quarter is. An answer that leaves a player M = sum over a of sigma(a)
(max_X u_i - u_i(a)) below its best lets it gain at most M; if M is far smaller than the unit
(COARSE), the stage is solved again in a multiple of M. An objective's unit is its range over joint
actions, again without outliers. In most games, the units are simply the ranges.

`kernels.scaling` says the same to kernels. What solves one stage after the other has it in Python:
compiled, it would take a second and a half longer until the first stage is repaired, and a measure
is a fifth of the smallest repair.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add, mul
from typing import Any, NamedTuple

import numpy as np

from acegames.kernels.records import ANY, EGALITARIAN, FAIR, LINEAR
from acegames.model.arrays import Floats
from acegames.numerics import COARSE, NOISE, OUTLIER, TIE
from acegames.stage import Stage


class Units(NamedTuple):
    """What a stage is counted in."""

    own: Floats  # (N,) of each player's utilities; 0 if all are equal
    goal: float  # of the objective


class Measure:
    """Measures one stage. Its few numbers are in plain lists, which are faster than arrays."""

    def __init__(self, stage: Stage) -> None:
        self.kind, self.weights = stage.concept.criterion.kernel, stage.weights
        # by player, then joint action
        self.utility: list[list[float]] = stage.utility.T.tolist()
        self.abs_total: list[list[float]] = stage.abs_total.T.tolist()
        self.best = [max(u) for u in self.utility]
        self.own = [_own_range(u, g, top) for u, g, top in zip(self.utility, self.abs_total, self.best, strict=True)]
        self.counted = [1.0] * len(self.own) if self.weights is None else [abs(w) for w in self.weights]
        self.raised: list[list[float]] = (stage.utility + stage.baseline).T.tolist() if self.weights is None else []
        self.objective = self._objective()  # at each joint action

    def first(self) -> Units:
        """Return the range of each player's utilities without outliers, and the objective's."""
        return Units(np.array(self.own), self._goal_range())

    def finer(self, units: Units, sigma: Floats) -> Units | None:
        """Return finer units if the answer sigma (R,) leaves far less to gain than these, else
        None.
        """
        before, played = units.own.tolist(), [(r, p) for r, p in enumerate(sigma.tolist()) if p > 0]
        own = list[float]()
        for u, g, top, unit in zip(self.utility, self.abs_total, self.best, before, strict=True):
            missing = ordered_sum([p * (top - u[r]) for r, p in played])
            noise = NOISE * ordered_sum([p * g[r] for r, p in played])
            own.append(8 * missing if missing > noise and missing * COARSE < unit else unit)
        goal = self._finer_goal(units.goal, played)
        return Units(np.array(own), goal) if own != before or goal != units.goal else None

    def _objective(self) -> list[float]:
        """Return the objective at each joint action; a linear one counts the players who care."""
        if self.weights is None:
            rows = [*zip(*self.raised, strict=True)]
            return [min(u) - max(u) for u in rows] if self.kind == FAIR else [min(u) for u in rows]
        totals = [0.0] * len(self.utility[0])
        for u, top, weight, unit in zip(self.utility, self.best, self.weights, self.own, strict=True):
            if unit > 0:
                totals = [x + (value - top) * weight for x, value in zip(totals, u, strict=True)]
        return totals

    def _goal_range(self) -> float:
        """Return an objective's unit: its range, if more than rounding, over rows that are no
        outliers.
        """
        rows, largest = len(self.objective), max([x * c for x, c in zip(self.own, self.counted, strict=True)])
        top = self.best if self.weights is not None else [max(u) for u in self.raised]
        sums = sorted([ordered_sum(map(mul, g, self.counted)) for g in zip(*self.abs_total, strict=True)])
        size = ordered_sum([c * abs(x) for c, x in zip(self.counted, top, strict=True)])
        noise = OUTLIER * NOISE * (size + sums[min(max(rows // 4, 1), rows - 1)])  # with a margin
        far = set[int]()
        for u, most, unit in zip(self.utility, self.best, self.own, strict=True):
            if unit > 0:
                far.update([r for r, x in enumerate(u) if most - x > OUTLIER * unit])
        usual = [x for r, x in enumerate(self.objective) if r not in far] if far else self.objective
        return min(core_range(usual if len(usual) > 1 else self.objective, noise) or largest, largest)

    def _finer_goal(self, goal: float, played: list[tuple[int, float]]) -> float:
        """Return the objective's unit for another try if the answer leaves far less to gain, or as
        it is.

        At most, an answer gains up to the best joint action (linear), the lowest of the players'
        best (egalitarian), or a gap of zero (fair).
        """
        if self.kind == ANY:
            return goal
        abs_total = [*zip(self.abs_total, self.counted, strict=True)]
        noise = OUTLIER * NOISE * ordered_sum([p * g[r] * c for r, p in played for g, c in abs_total])
        if self.weights is not None:
            missing = max(self.objective) - ordered_sum([p * self.objective[r] for r, p in played])
        else:
            mean = [ordered_sum([p * u[r] for r, p in played]) for u in self.raised]
            missing = (max(mean) if self.kind == FAIR else min(map(max, self.raised))) - min(mean)
        return 8 * missing if missing > noise and missing * COARSE < goal else goal


def core_range(values: list[float], noise: float) -> float:
    """Return the range of values without outliers; 0 if it is only rounding."""
    top, quarter = max(values), max(len(values) // 4, 1)
    shortfall = sorted([top - x for x in values])
    span = shortfall[-1]
    if span <= noise:
        return 0.0
    if shortfall[quarter] * OUTLIER >= span:
        return span
    while shortfall[quarter] <= noise and quarter < len(shortfall) - 1:
        quarter += 1
    return shortfall[bisect_right(shortfall, OUTLIER * shortfall[quarter]) - 1]


def _own_range(utility: list[float], abs_total: list[float], top: float) -> float:
    """Return a player's unit: its range, if more than rounding, without outliers."""
    if top - min(utility) <= NOISE * max(abs_total):
        return 0.0
    return core_range(utility, NOISE * max([g for u, g in zip(utility, abs_total, strict=True) if u == top]))


def ordered_sum(numbers: Iterable[float]) -> float:
    """Return the sum, added in order; libraries, and `sum` from Python 3.12 on, may add
    otherwise.
    """
    return reduce(add, numbers, 0.0)


def weighted_sum(weights: Iterable[float], rows: Floats) -> Floats:
    """Return the weighted sum of rows, added in order; a library's product may differ in a last
    bit.
    """
    total = np.zeros(rows.shape[1])
    for weight, row in zip(weights, rows, strict=True):
        total += weight * row
    return total


# -- preference ------------------------------------------------------------------------------------


rationals: Any = np.frompyfunc(Fraction, 1, 1)  # of an array of floats
SAME = Fraction(TIE)  # a float would turn sums into floats
Interval = tuple[Fraction, Fraction]
Score = tuple[Fraction, ...]


def better(one: Score, other: Score) -> bool:
    """Return whether the first entry that differs by more than TIE is larger."""
    gap = next((a - b for a, b in zip(one, other, strict=True) if abs(a - b) > SAME), Fraction(0))
    return gap > 0


@dataclass(frozen=True)
class Reach:
    """A player's utilities over the equilibria of one pair of supports."""

    low: Fraction
    centre: Fraction  # where the least probability is largest
    high: Fraction
    closed: bool  # whether `high` is attained, or only approached


class Preference:
    """The order in which an objective prefers the equilibria of one stage, in any arithmetic.

    Ties go to the first player, then to the second, and so on. Utilities are counted from each
    player's best, u_i = top_i + unit_i v_i. Scores are compared entry by entry, within TIE.
    """

    def __init__(self, stage: Stage, units: Units) -> None:
        weights = stage.concept.weights(stage.players)
        self.kind = stage.concept.criterion.kernel
        unit, span = rationals(units.own), Fraction(units.goal) or Fraction(1)
        high = rationals(stage.utility.max(axis=0)) + rationals(stage.baseline)
        weighted = rationals(weights or np.zeros(len(unit)))
        self.gain, self.offset = unit / span, (high - high.min()) / span
        self.weights = weighted * unit / ((max(abs(weighted)) or 1) * span)

    def score(self, v: Sequence[Fraction]) -> Score:
        """Return the objective, then each player's utility; empty if any equilibrium will do."""
        return self.best_case([(x, x) for x in v])

    def best_case(self, intervals: Sequence[Interval]) -> Score:
        """Return a bound: no score of utilities within these intervals is better."""
        if self.kind == ANY:
            return ()
        upper = [hi for _, hi in intervals]
        if self.kind == LINEAR:
            first = sum((max(w * lo, w * hi) for w, (lo, hi) in zip(self.weights, intervals, strict=True)), Fraction(0))
        elif self.kind == EGALITARIAN:
            first = min(self._on_one_scale(upper))
        else:
            first = min(
                Fraction(0), min(self._on_one_scale(upper)) - max(self._on_one_scale([lo for lo, _ in intervals]))
            )
        return (first, *upper)

    def targets(self, reach: Sequence[Reach]) -> list[Fraction]:
        """Return the best utilities of two players; an open end counts as the centre.

        If the objective is attained all the same, it is kept: a player who need not be at an open
        end stays where the other's utility decides.
        """
        lower, upper = self._on_one_scale([r.low for r in reach]), self._on_one_scale([r.high for r in reach])
        bottom, top = max(lower), min(upper)
        if self.kind == EGALITARIAN:
            best = self._on_one_scale([r.high if r.closed else r.centre for r in reach])
            enough = min(x for x, hi in zip(best, upper, strict=True) if hi <= top + SAME)
            wanted = self._own([enough] * len(reach), [r.centre for r in reach])
            return [r.high if r.closed else max(r.centre, x) for r, x in zip(reach, wanted, strict=True)]
        if self.kind != FAIR:
            return [r.high if w >= 0 else r.low for w, r in zip(self.weights, reach, strict=True)]
        if bottom > top + SAME:
            return [r.high if lo < bottom else r.low for r, lo in zip(reach, lower, strict=True)]
        open_end = any(not r.closed and hi <= top + SAME for r, hi in zip(reach, upper, strict=True))
        meet = (bottom + top) / 2 if open_end and bottom < top - SAME else top
        wanted = self._own([meet] * len(reach), [r.high for r in reach])
        return [min(max(x, r.low), r.high) for r, x in zip(reach, wanted, strict=True)]

    def _own(self, scaled: Sequence[Fraction], otherwise: Sequence[Fraction]) -> list[Fraction]:
        """Return utilities on each player's own scale; `otherwise` for an indifferent player."""
        scales = zip(scaled, otherwise, self.offset, self.gain, strict=True)
        return [(x - o) / g if g else other for x, other, o, g in scales]

    def _on_one_scale(self, v: Sequence[Fraction]) -> list[Fraction]:
        """Return the players' utilities on one scale."""
        scaled: list[Fraction] = (self.offset + self.gain * v).tolist()
        return scaled
