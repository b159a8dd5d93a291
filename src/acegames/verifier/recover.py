"""How much may have been spent if the rest is still to be kept? Constraint by constraint, so an upper end (spec 6).

    ceiling_H(s) = no end
    ceiling_t(s) = max over rows of  min over outcomes (c', s') of  min(B_t, ceiling_{t+1}(s')) - c'

Whoever has spent more than that of a single constraint must break its budget later, whatever is played. Without this cut a budget
that holds only at the end would leave every running total to be looked at.
"""

from __future__ import annotations

import numpy as np

from acegames.model.game import Layer, MarkovGame
from acegames.verifier.units import Ints, Units


class Ceilings:
    """The ceilings of every time and state, and what they leave of each row."""

    def __init__(self, game: MarkovGame, units: Units) -> None:
        self._game, self._units = game, units
        self._costs = [units.cost_table(layer) for layer in game.layers]
        self.beyond = units.largest * (game.horizon + 1)  # no total comes here
        self.at: list[Ints] = [np.full((len(game.states), len(game.constraints)), self.beyond, dtype=units.dtype)]
        for t in reversed(range(game.horizon)):
            self.at.append(self._before(t, self.rows(t, self.at[-1])))
        self.at.reverse()

    def rows(self, t: int, after: Ints | None = None) -> Ints:
        """The most that may have been spent before each row at time t so that every outcome stays below, (R, M)."""
        layer = self._game.layer(t)
        limit = np.minimum(self.bound(t), self.at[t + 1] if after is None else after)
        room = limit[layer.next_state] - self._costs[self._game.layer_at[t]]
        return np.maximum(np.minimum.reduceat(room, layer.out_ptr[:-1], axis=0), -self.beyond - 1)

    def bound(self, t: int) -> Ints:
        """The budgets at time t, (M,), cut to what can be spent at all."""
        cut = [self.beyond if b is None else max(-self.beyond - 1, min(self.beyond, b)) for b in self._units.bounds[t]]
        return np.array(cut, dtype=self._units.dtype)

    def _before(self, t: int, rows: Ints) -> Ints:
        """The ceilings at time t; as low as can be for states that cannot act, which do not occur."""
        layer: Layer = self._game.layer(t)
        found = np.full_like(self.at[0], -self.beyond - 1)
        acting = np.flatnonzero(np.diff(layer.row_ptr))
        best = np.maximum.reduceat(rows, layer.row_ptr[acting], axis=0)
        found[acting] = np.minimum(best, self.beyond)
        return found
