"""A learner's observation: one vector of numbers between -1 and 1.

state       1 at the number of the state, 0 elsewhere; or the numbers that `features` gives for the
            state, divided by their largest size
time        t / H
remaining   per constraint, the next finite bound from t on minus what was spent, divided by the
            most that can be left; 1 where no bound comes any more. Of a reservoir this is its level
            above the reserve. A bound that no play can meet counts as the most that can be spent.
            Values are cut off at 1 and -1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.adapters.environments.episode import bounds_in_force
from acegames.approximate.rounding import upper
from acegames.errors import InvalidOption
from acegames.model.arrays import Floats, Ints, frozen
from acegames.model.costs.random import RandomCost
from acegames.model.game import Label, MarkovGame
from acegames.model.numbers import nearest_float
from acegames.model.user_functions import check_function

Vector = NDArray[np.float32]


class Layout:
    """Which entries of the vector hold what; `features(state)` gives the numbers for a state."""

    def __init__(self, game: MarkovGame, features: Callable[[Any], Any] | None = None) -> None:
        self.horizon = game.horizon
        self.table = None if features is None else _table(game, features)  # (S, D) features of each state
        self.time = len(game.states) if self.table is None else self.table.shape[1]
        self.state = slice(0, self.time)
        self.remaining: dict[Label, int] = {label: self.time + 1 + m for m, label in enumerate(game.constraints)}
        self.scales = tuple(_scale(game, m) for m in range(len(game.constraints)))  # `remaining` is divided by these

    @property
    def size(self) -> int:
        """Length of the vector."""
        return self.time + 1 + len(self.remaining)

    def vector(self, t: int, state: int, remaining: Sequence[Any]) -> Vector:
        """Return the vector of one situation, (size,)."""
        seen = np.zeros(self.size, dtype=np.float32)
        if self.table is None:
            seen[state] = 1.0
        else:
            seen[self.state] = self.table[state]
        seen[self.time] = t / self.horizon
        for k, (left, scale) in enumerate(zip(remaining, self.scales, strict=True), self.time + 1):
            seen[k] = min(1.0, max(-1.0, nearest_float(left) / scale))
        return seen

    def vectors(self, t: Ints, state: Ints, remaining: Floats) -> NDArray[np.float32]:
        """Return the vectors of a batch of situations, (B, size); `remaining` (B, M)."""
        seen = np.zeros((len(t), self.size), dtype=np.float32)
        if self.table is None:
            seen[np.arange(len(t)), state] = 1.0
        else:
            seen[:, self.state] = self.table[state]
        seen[:, self.time] = t / self.horizon
        seen[:, self.time + 1 :] = np.clip(remaining / np.array(self.scales), -1.0, 1.0)
        return seen


def _table(game: MarkovGame, features: Callable[[Any], Any]) -> NDArray[np.float32]:
    """Return the features of every state, (S, D), each column divided by its largest size."""
    check_function("features", features, ("state",))
    try:
        rows = np.array([np.asarray(features(s), dtype=np.float64).reshape(-1) for s in game.states])
    except (TypeError, ValueError) as error:
        raise InvalidOption(f"features: must give as many numbers for every state; {error}") from None
    if rows.dtype != np.float64 or not np.isfinite(rows).all():
        raise InvalidOption("features: must give as many finite numbers for every state")
    largest = np.abs(rows).max(axis=0)
    return frozen((rows / np.where(largest > 0, largest, 1.0)).astype(np.float32))


def _scale(game: MarkovGame, m: int) -> float:
    """Return the largest size of what can be left of a budget in plays that keep it.

    Before acting at t at most t times the largest cost was spent, and at most the bound before; at
    least t times the least, but of a reservoir nothing less than zero. To this comes what a
    reservoir lacks at the beginning. A bound that no play can meet counts as the most that can be
    spent.
    """
    costs, start = game.cost_values[m], nearest_float(game.spent_at_start[m])
    floor = -math.inf if game.reservoirs[m] is None else 0.0
    least = min(0.0, *(nearest_float(c.upper - c.depth if isinstance(c, RandomCost) else c) for c in costs))
    most = max(0.0, *(nearest_float(upper(c)) for c in costs))
    found = [0.0]
    for t, bounds in enumerate(bounds_in_force(game)):
        before = math.inf if t == 0 else nearest_float(game.budgets[t - 1][m])
        bound = min(nearest_float(bounds[m]), start + most * game.horizon)
        found += [abs(bound - max(start + t * least, floor)), abs(bound - min(start + t * most, before))]
    return max(found) or max(most, -least) or 1.0
