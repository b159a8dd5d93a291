"""How much may have been spent if each constraint, taken alone, is still to be kept (spec 6)."""

from __future__ import annotations

from typing import Any

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

    With `over_all`, the least over rows, whoever has spent no more cannot break a budget. `cut`
    holds bounds on the ceilings of each time, (S, M).
    """

    def __init__(
        self, game: MarkovGame, units: Units, *, over_all: bool = False, cut: list[Ints] | None = None
    ) -> None:
        self._game, self._units, self._over_all = game, units, over_all
        shape = game.horizon + 1, len(game.states), len(game.constraints)
        self.at: Ints = np.full(shape, units.beyond, dtype=units.dtype)  # (H+1, S, M)
        for t in reversed(range(game.horizon)):
            self._find(t, self.at[t])
            if cut is not None:  # however low that is: differences must stay within 64 bits
                self.at[t] = np.minimum(self.at[t], np.maximum(cut[t], -units.beyond - 1))

    def rows(self, t: int) -> Ints:
        """Return the most that may have been spent before each row at time t, (R, M)."""
        return self._find(t, np.empty_like(self.at[t]))

    def _find(self, t: int, here: Ints) -> Ints:
        """Write the ceilings of states, as low as can be for those that cannot act; return rows."""
        from acegames.verifier.kernels import ceilings

        units, layer = self._units, self._game.layer_at[t]
        rows: Ints = np.empty((len(self._game.layers[layer].reward), here.shape[1]), dtype=units.dtype)
        run: Any = ceilings if units.small else getattr(ceilings, "py_func", ceilings)
        given = units.costs[layer], units.bounds[t], self.at[t + 1], units.stored, units.beyond, self._over_all
        run(*units.steps[layer], *given, rows, here)
        return rows
