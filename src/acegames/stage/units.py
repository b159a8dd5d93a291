"""Units of a stage game's utilities: in units of a penalty of 1e9, nothing else would count.

A player's unit is the range of its utilities without outliers, which are OUTLIER times as far below
its best as its best quarter is. An answer that leaves a player M = sum over a of sigma(a)
(max_X u_i - u_i(a)) below its best lets it gain at most M; if M is far smaller than the unit
(COARSE), the stage is solved again in a multiple of M. An objective's unit is its range over joint
actions, again without outliers. In most games, the units are simply the ranges.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import reduce
from operator import add, mul
from typing import NamedTuple

import numpy as np

from acegames.model.arrays import Floats
from acegames.numerics import COARSE, NOISE, OUTLIER
from acegames.stage import Stage


class Units(NamedTuple):
    """What a stage is counted in."""

    own: Floats  # (N,) of each player's utilities; 0 if all are equal
    goal: float  # of the objective


class Measure:
    """Measures one stage. Its few numbers are in plain lists, which are faster than arrays."""

    def __init__(self, stage: Stage) -> None:
        self.concept, self.weights = stage.concept, stage.weights
        # by player, then joint action
        self.utility: list[list[float]] = stage.utility.T.tolist()
        self.gross: list[list[float]] = stage.gross.T.tolist()
        self.best = [max(u) for u in self.utility]
        self.own = [_own_range(u, g, top) for u, g, top in zip(self.utility, self.gross, self.best, strict=True)]
        self.counted = [1.0] * len(self.own) if self.weights is None else [abs(w) for w in self.weights]
        self.raised: list[list[float]] = (stage.utility + stage.baseline).T.tolist() if self.weights is None else []
        self.objective = self._objective()  # at each joint action

    def first(self) -> Units:
        """Return the range of each player's utilities without outliers, and that of the objective."""
        return Units(np.array(self.own), self._goal_range())

    def finer(self, units: Units, sigma: Floats) -> Units | None:
        """Return units for another try if the answer sigma (R,) leaves far less to gain than these."""
        before, played = units.own.tolist(), [(r, p) for r, p in enumerate(sigma.tolist()) if p > 0]
        own = list[float]()
        for u, g, top, unit in zip(self.utility, self.gross, self.best, before, strict=True):
            missing = ordered_sum([p * (top - u[r]) for r, p in played])
            noise = NOISE * ordered_sum([p * g[r] for r, p in played])
            own.append(8 * missing if missing > noise and missing * COARSE < unit else unit)
        goal = self._finer_goal(units.goal, played)
        return Units(np.array(own), goal) if own != before or goal != units.goal else None

    def _objective(self) -> list[float]:
        """Return a linear objective is that of the players who care."""
        if self.weights is None:
            rows = [*zip(*self.raised, strict=True)]
            return [min(u) - max(u) for u in rows] if self.concept.objective == "fair" else [min(u) for u in rows]
        found = [0.0] * len(self.utility[0])
        for u, top, weight, unit in zip(self.utility, self.best, self.weights, self.own, strict=True):
            if unit > 0:
                found = [x + (value - top) * weight for x, value in zip(found, u, strict=True)]
        return found

    def _goal_range(self) -> float:
        """Return an objective's unit: its range, if more than rounding, over rows that are no
        outliers.
        """
        rows, largest = len(self.objective), max([x * c for x, c in zip(self.own, self.counted, strict=True)])
        top = self.best if self.weights is not None else [max(u) for u in self.raised]
        sums = sorted([ordered_sum(map(mul, g, self.counted)) for g in zip(*self.gross, strict=True)])
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
        if self.concept.objective is None:
            return goal
        gross = [*zip(self.gross, self.counted, strict=True)]
        noise = OUTLIER * NOISE * ordered_sum([p * g[r] * c for r, p in played for g, c in gross])
        if self.weights is not None:
            missing = max(self.objective) - ordered_sum([p * self.objective[r] for r, p in played])
        else:
            mean = [ordered_sum([p * u[r] for r, p in played]) for u in self.raised]
            missing = (max(mean) if self.concept.objective == "fair" else min(map(max, self.raised))) - min(mean)
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


def _own_range(utility: list[float], gross: list[float], top: float) -> float:
    """Return a player's unit: its range, if more than rounding, without outliers."""
    if top - min(utility) <= NOISE * max(gross):
        return 0.0
    return core_range(utility, NOISE * max([g for u, g in zip(utility, gross, strict=True) if u == top]))


def ordered_sum(numbers: Iterable[float]) -> float:
    """Return the sum, added in order: libraries may add otherwise, and `sum` does from Python 3.12
    on.
    """
    return reduce(add, numbers, 0.0)


def weighted_sum(weights: Iterable[float], rows: Floats) -> Floats:
    """Return the weighted sum of rows, added in order: a library's product may differ in its last
    bits.
    """
    total = np.zeros(rows.shape[1])
    for weight, row in zip(weights, rows, strict=True):
        total += weight * row
    return total
