"""Which of several equilibria of a stage an objective prefers, in any arithmetic. Ties go to the first player, then to the second, ...

Utilities v_i are scaled to unit range, u_i = low_i + range_i v_i. Scores are compared within TIE, entry by entry.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction

from acegames.concepts import Concept
from acegames.numerics import TIE
from acegames.stage.exact import as_rational

Interval = tuple[Fraction, Fraction]
Score = tuple[Fraction, ...]


def better(one: Score, other: Score) -> bool:
    """Whether the first entry that differs by more than TIE is larger."""
    gap = next((a - b for a, b in zip(one, other, strict=True) if abs(a - b) > TIE), Fraction(0))
    return gap > 0


class Preference:
    """An objective at one stage."""

    def __init__(
        self, concept: Concept, players: tuple[Hashable, ...], low: Sequence[Fraction], ranges: Sequence[Fraction]
    ) -> None:
        weights = concept.weights(players)
        self.kind = concept.objective if weights is None else "linear"
        span = max(ranges) or Fraction(1)
        self.gain = [r / span for r in ranges]
        self.offset = [(x - min(low)) / span for x in low]
        scaled = [as_rational(w) * r for w, r in zip(weights or [0.0] * len(ranges), ranges, strict=True)]
        largest = max(map(abs, scaled)) or Fraction(1)
        self.weights = [w / largest for w in scaled]

    def score(self, v: Sequence[Fraction]) -> Score:
        """What is compared: the objective, then each player's utility; nothing when any equilibrium will do."""
        return self.best_case([(x, x) for x in v])

    def best_case(self, intervals: Sequence[Interval]) -> Score:
        """No score of utilities within these intervals is better."""
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

    def targets(self, intervals: Sequence[Interval]) -> list[Fraction]:
        """The best utilities of two players when each may take any value of its interval."""
        if self.kind != "fair":
            weights = self.weights if self.kind == "linear" else [Fraction(1)] * len(intervals)
            return [hi if w >= 0 else lo for w, (lo, hi) in zip(weights, intervals, strict=True)]
        lower, upper = self._alike([lo for lo, _ in intervals]), self._alike([hi for _, hi in intervals])
        meet = max(min(upper), max(lower)) if max(lower) <= min(upper) else None
        found = []
        for i, (lo, hi) in enumerate(intervals):
            if meet is None:
                found.append(hi if lower[i] < max(lower) else lo)
            else:
                found.append(min(max((meet - self.offset[i]) / self.gain[i], lo), hi) if self.gain[i] else hi)
        return found

    def _alike(self, v: Sequence[Fraction]) -> list[Fraction]:
        """Utilities of the players on one scale."""
        return [o + g * x for o, g, x in zip(self.offset, self.gain, v, strict=True)]
