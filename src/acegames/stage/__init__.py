"""Stage games (spec 4): one shot, any set X of feasible joint actions, one utility per player."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept


class Stage(NamedTuple):
    """One stage game of R feasible joint actions, and the concept of its equilibrium."""

    action: NDArray[np.int32]  # (R, N) in lexicographic order
    utility: NDArray[np.float64]  # (R, N)
    concept: Concept
    players: tuple[Hashable, ...]
    abs_total: NDArray[np.float64]  # (R, N) the same sums of rewards without signs: rounding is a share of these
    baseline: NDArray[np.float64]  # (N,) what was taken out of the utilities, for where players are compared

    @property
    def weights(self) -> list[float] | None:
        """The weights of a linear objective, scaled to unit size."""
        weights = self.concept.weights(self.players)
        if weights is None:
            return None
        largest = max(map(abs, weights)) or 1.0
        return [weight / largest for weight in weights]
