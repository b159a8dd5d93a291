"""Cumulative costs as integers: units of one over the common denominator of the costs.

A sum of costs is a whole number of units, and it keeps a budget B exactly when it is at most
floor(B / unit).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cache

import numpy as np

from acegames.model.game import MarkovGame, exact_costs
from acegames.model.numbers import Bound, common_denominator, plain
from acegames.verifier.arrays import BELOW, Bools, Ints, Small

Spent = tuple[int, ...]
"""Cumulative cost, in units, one entry per constraint."""

Number = int | float | Fraction


class Units:
    """The exact integer scale of a game's costs."""

    def __init__(self, game: MarkovGame) -> None:
        given, missing = exact_costs(game), [x.capacity - x.start if x else Fraction(0) for x in game.reservoirs]
        self.scale = [common_denominator([*values, x]) for values, x in zip(given, missing, strict=True)]
        values = [
            [v.numerator * (k // v.denominator) for v in costs] for costs, k in zip(given, self.scale, strict=True)
        ]
        start = [int(x * k) for x, k in zip(missing, self.scale, strict=True)]
        largest = max((abs(c) for costs in values for c in costs), default=0)
        self.beyond = largest * (game.horizon + 1) + max(start, default=0)  # no total comes here
        self.small = self.beyond < BELOW
        self.dtype: type = np.int64 if self.small else object  # object: of Python ints
        self.start: Ints = np.array(start, dtype=self.dtype)  # (M,) the totals in the beginning
        # (R,) the constraints that are reservoirs: what is missing in one is never less than 0
        self.stored = np.array([m for m, x in enumerate(game.reservoirs) if x is not None], dtype=np.int64)
        # (M,) at each time: the budgets, cut to what can be spent at all
        self.bounds: list[Ints] = [
            np.array([self._cut(b, k) for b, k in zip(row, self.scale, strict=True)], dtype=self.dtype)
            for row in game.budgets
        ]
        # row_ptr, out_ptr and next_state of each distinct layer, as kernels are compiled for
        self.steps: list[tuple[Ints, Ints, Small]] = [
            (x.row_ptr.copy(), x.out_ptr.astype(np.int64), x.next_state.copy()) for x in game.layers
        ]
        self.costs: list[Ints] = []  # (K, M) of each distinct layer: the cost of each outcome
        for layer in game.layers:
            self.costs.append(np.zeros(layer.cost.shape, dtype=self.dtype))
            for m, costs in enumerate(values):
                self.costs[-1][:, m] = np.array(costs, dtype=self.dtype)[layer.cost[:, m]]
        self._plain = cache(lambda m, amount: plain(Fraction(amount, self.scale[m])))

    def user(self, spent: Spent) -> tuple[Number, ...]:
        """Return an amount in the user's units: int, float if its text is exact, else Fraction."""
        return tuple(map(self._plain, range(len(spent)), spent))

    def amounts(self, spent: Iterable[int]) -> list[Fraction]:
        """Return an amount in the user's units, as fractions."""
        return [Fraction(c, k) for c, k in zip(spent, self.scale, strict=True)]

    def add(self, spent: Ints, cost: Ints) -> Ints:
        """Return the totals (L, M) after costs."""
        total = spent + cost
        total[:, self.stored] = np.maximum(total[:, self.stored], 0)
        return total

    def keeps(self, spent: Ints, t: int) -> Bools:
        """Return whether each row of `spent` (L, M) keeps the budgets after acting at time t."""
        fine: Bools = np.all(spent <= self.bounds[t], axis=1)
        return fine

    def _cut(self, budget: Bound, scale: int) -> int:
        whole = self.beyond if isinstance(budget, float) else budget.numerator * scale // budget.denominator
        return max(-self.beyond - 1, min(self.beyond, whole))
