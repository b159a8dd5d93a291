"""The order in which an objective prefers the equilibria of a stage, in any arithmetic.

Ties go to the first player, then to the second, and so on. Utilities are counted from each player's
best, u_i = top_i + unit_i v_i. Scores are compared entry by entry, within TIE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from acegames.numerics import TIE
from acegames.stage import Stage
from acegames.stage.units import Units

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
    """An objective at one stage."""

    def __init__(self, stage: Stage, units: Units) -> None:
        weights = stage.concept.weights(stage.players)
        self.kind = stage.concept.objective if weights is None else "linear"
        unit, span = rationals(units.own), Fraction(units.goal) or Fraction(1)
        high = rationals(stage.utility.max(axis=0)) + rationals(stage.baseline)
        given = rationals(weights or np.zeros(len(unit)))
        self.gain, self.offset = unit / span, (high - high.min()) / span
        self.weights = given * unit / ((max(abs(given)) or 1) * span)

    def score(self, v: Sequence[Fraction]) -> Score:
        """Return the objective, then each player's utility; empty if any equilibrium will do."""
        return self.best_case([(x, x) for x in v])

    def best_case(self, intervals: Sequence[Interval]) -> Score:
        """Return a bound: no score of utilities within these intervals is better."""
        if self.kind is None:
            return ()
        upper = [hi for _, hi in intervals]
        if self.kind == "linear":
            first = sum((max(w * lo, w * hi) for w, (lo, hi) in zip(self.weights, intervals, strict=True)), Fraction(0))
        elif self.kind == "egalitarian":
            first = min(self._alike(upper))
        else:
            first = min(Fraction(0), min(self._alike(upper)) - max(self._alike([lo for lo, _ in intervals])))
        return (first, *upper)

    def targets(self, reach: Sequence[Reach]) -> list[Fraction]:
        """Return the best utilities of two players; an end that is only approached counts as the
        centre.

        If the objective is attained all the same, it is kept: a player who need not be at an open
        end stays where the other's utility decides.
        """
        lower, upper = self._alike([r.low for r in reach]), self._alike([r.high for r in reach])
        bottom, top = max(lower), min(upper)
        if self.kind == "egalitarian":
            best = self._alike([r.high if r.closed else r.centre for r in reach])
            enough = min(x for x, hi in zip(best, upper, strict=True) if hi <= top + SAME)
            wanted = self._own([enough] * len(reach), [r.centre for r in reach])
            return [r.high if r.closed else max(r.centre, x) for r, x in zip(reach, wanted, strict=True)]
        if self.kind != "fair":
            return [r.high if w >= 0 else r.low for w, r in zip(self.weights, reach, strict=True)]
        if bottom > top + SAME:
            return [r.high if lo < bottom else r.low for r, lo in zip(reach, lower, strict=True)]
        open_end = any(not r.closed and hi <= top + SAME for r, hi in zip(reach, upper, strict=True))
        meet = (bottom + top) / 2 if open_end and bottom < top - SAME else top
        wanted = self._own([meet] * len(reach), [r.high for r in reach])
        return [min(max(x, r.low), r.high) for r, x in zip(reach, wanted, strict=True)]

    def _own(self, alike: Sequence[Fraction], otherwise: Sequence[Fraction]) -> list[Fraction]:
        """Return utilities back on each player's own scale; `otherwise` for an indifferent player."""
        scales = zip(alike, otherwise, self.offset, self.gain, strict=True)
        return [(x - o) / g if g else other for x, other, o, g in scales]

    def _alike(self, v: Sequence[Fraction]) -> list[Fraction]:
        """Return the players' utilities on one scale."""
        found: list[Fraction] = (self.offset + self.gain * v).tolist()
        return found
