"""A cost drawn from a distribution function: continuous, or with infinitely many values (spec 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.model.numbers import exact


@dataclass(frozen=True)
class RandomCost:
    """One constraint's cost, drawn afresh each time and independently of everything else: `scale` times what `source` draws.

    `source` is any object with a `cdf`, such as a frozen `scipy.stats` distribution.
    """

    source: Any
    upper: Fraction  # no cost is larger
    lower: Fraction | float  # no cost is smaller; -inf where there is no such bound
    scale: Fraction = Fraction(1)

    def below(self, x: Fraction) -> float:
        """Pr[cost < x]."""
        return float(self.source.cdf(np.nextafter(float(x / self.scale), -math.inf)))

    def at_most(self, x: Fraction) -> float:
        """Pr[cost <= x]."""
        return float(self.source.cdf(float(x / self.scale)))

    def sample(self, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Independent draws, (size,)."""
        drawn: NDArray[np.float64] = np.asarray(self.source.rvs(size=size, random_state=rng), dtype=np.float64)
        return drawn * float(self.scale)


def random_cost(source: Any) -> RandomCost:
    """Wrap a distribution; ValueError with the reason when it has no finite upper bound."""
    low, high = source.support()
    if not math.isfinite(high):
        raise ValueError(f"{source!r} has no finite upper bound, so no budget holds with probability one")
    return RandomCost(source, exact(float(high)), exact(float(low)) if math.isfinite(low) else -math.inf)


def probabilities(
    cost: RandomCost, cell: Fraction, direction: str, lowest: Fraction | None
) -> list[tuple[Fraction, float]]:
    """What the cost counts as when rounded, with probabilities."""
    raise NotImplementedError
