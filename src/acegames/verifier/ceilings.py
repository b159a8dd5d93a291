"""How much may have been spent if each constraint, taken alone, is still to be kept (spec 6)."""

from __future__ import annotations

import numpy as np

from acegames.model.game import MarkovGame
from acegames.verifier.arrays import Ints
from acegames.verifier.units import Units


class Ceilings:
    """The most that may have been spent, in units, before acting at each time and state.

        ceiling_H(s) = no end
        ceiling_t(s) = max over rows, min over outcomes (c', s') of min(B_t, ceiling_{t+1}(s')) - c'

    Whoever has spent more than that of a single constraint must break its budget later, whatever is
    played. Without this cut a budget that holds only at the end would leave every running total to
    be looked at.

    With `over_rows=np.minimum` whoever has spent no more cannot break a budget. `cut`
    holds bounds on the ceilings of each time, (S, M).
    """

    def __init__(
        self, game: MarkovGame, units: Units, over_rows: np.ufunc = np.maximum, cut: list[Ints] | None = None
    ) -> None:
        self._game, self._units, self._over_rows = game, units, over_rows
        end: Ints = np.full((len(game.states), len(game.constraints)), units.beyond, dtype=units.dtype)
        self.at: list[Ints] = [end] * (game.horizon + 1)
        for t in reversed(range(game.horizon)):
            self.at[t] = self._before(t)
            if cut is not None:  # however low that is: differences must stay within 64 bits
                self.at[t] = np.minimum(self.at[t], np.maximum(cut[t], -units.beyond - 1))

    def rows(self, t: int) -> Ints:
        """The most that may have been spent before each row at time t, (R, M)."""
        layer = self._game.layer(t)
        limit = np.minimum(self._units.bounds[t], self.at[t + 1])
        room = limit[layer.next_state] - self._units.costs[self._game.layer_at[t]]
        dry = limit[:, self._units.stored] < 0  # not even a full reservoir would do
        room[:, self._units.stored] = np.where(
            dry[layer.next_state], -self._units.beyond - 1, room[:, self._units.stored]
        )
        return np.maximum(np.minimum.reduceat(room, layer.out_ptr[:-1], axis=0), -self._units.beyond - 1)

    def _before(self, t: int) -> Ints:
        """The ceilings at time t; as low as can be for states that cannot act."""
        row_ptr = self._game.layer(t).row_ptr
        found = np.full_like(self.at[-1], -self._units.beyond - 1)
        acting = np.flatnonzero(np.diff(row_ptr))
        found[acting] = np.minimum(self._over_rows.reduceat(self.rows(t), row_ptr[acting], axis=0), self._units.beyond)
        return found
