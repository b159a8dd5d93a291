"""Cumulative costs as integers: units of one over the common denominator of the costs.

A sum of costs is a whole number of units, and it keeps a budget B exactly when it is at most
floor(B / unit).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from acegames.model.game import Layer, MarkovGame, exact_costs
from acegames.model.numbers import common_denominator, plain

Ints = NDArray[np.int64]

Spent = tuple[int, ...]
"""Cumulative cost, in units, one entry per constraint."""

Number = int | float | Fraction

_SAFE = 2**62
"""Sums below this cannot overflow int64 when one more cost is added."""


class Units:
    """The exact integer scale of a game's costs."""

    def __init__(self, game: MarkovGame) -> None:
        given = exact_costs(game)
        self.scale = [common_denominator(values) for values in given]
        self.costs = [[int(v * k) for v in values] for values, k in zip(given, self.scale, strict=True)]
        self.bounds: list[list[int | None]] = [  # (T, M); None where nothing is required
            [None if isinstance(b, float) else math.floor(b * k) for b, k in zip(row, self.scale, strict=True)]
            for row in game.budgets
        ]
        self.largest = max((abs(c) for costs in self.costs for c in costs), default=0)
        self.small = self.largest * (game.horizon + 1) < _SAFE
        self.dtype: type = np.int64 if self.small else object
        self._plain: list[dict[int, Number]] = [{} for _ in self.scale]

    def user(self, spent: Spent) -> tuple[Number, ...]:
        """Return an amount in the user's units: int, float if its text is exact, else Fraction."""
        return tuple(self._one(m, c) for m, c in enumerate(spent))

    def _one(self, m: int, amount: int) -> Number:
        known = self._plain[m]
        if amount not in known:
            known[amount] = plain(Fraction(amount, self.scale[m]))
        return known[amount]

    def cost_table(self, layer: Layer) -> Ints:
        """Return the cost of each outcome, (K, M): int64, or Python ints as objects."""
        table: Ints = np.zeros(layer.cost.shape, dtype=self.dtype)
        for m, costs in enumerate(self.costs):
            table[:, m] = np.array(costs, dtype=self.dtype)[layer.cost[:, m]]
        return table

    def keeps(self, spent: Ints, t: int) -> NDArray[np.bool_]:
        """Return whether each row of `spent` (L, M) keeps the budgets after acting at time t."""
        fine = np.ones(len(spent), dtype=bool)
        for m, bound in enumerate(self.bounds[t]):
            if bound is not None:
                cut = max(-_SAFE, min(_SAFE, bound)) if self.small else bound
                fine &= (spent[:, m] <= cut).astype(bool)
        return fine
