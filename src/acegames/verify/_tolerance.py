"""How large a gain is rounding? A share of what each player has at stake in what safe play can do, player by player."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from acegames.model.game import MarkovGame
from acegames.numerics import VERIFY
from acegames.verify._feasible import Stage

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Stakes:
    """The rewards of the joint actions that are in FA somewhere, their least and most at each time; no time where nothing is feasible."""

    low: Floats  # (H, N)
    high: Floats  # (H, N)

    @staticmethod
    def of(game: MarkovGame, safe_rows: Iterable[NDArray[np.int64]]) -> Stakes:
        """Look at the rows that are safe in some subgame of each time."""
        rewards = [game.layer(t).reward[rows] for t, rows in enumerate(safe_rows)]
        low, high = ([bound(x, axis=0) for x in rewards] for bound in (np.min, np.max))
        shape = (len(rewards), len(game.players))
        return Stakes(np.reshape(low, shape), np.reshape(high, shape))

    def tolerance(self) -> Floats:
        """Return (N,): VERIFY times the total that a player's rewards can differ by, never below rounding error."""
        float64 = np.finfo(np.float64)
        with np.errstate(over="ignore"):
            spread = (self.high - self.low).sum(axis=0)
            size = np.maximum(np.abs(self.high), np.abs(self.low)).sum(axis=0)
            accepted: Floats = np.minimum(np.maximum(VERIFY * spread, 8 * float64.eps * size), float64.max)
        return accepted

    def without_base(self, game: MarkovGame) -> tuple[MarkovGame, Floats]:
        """The same game with the common part of a player's rewards taken out, and what that comes to over the steps, (N,).

        Gains are differences: sums of small numbers show them, sums of large ones may round them away or make them up. A common part is
        only taken out where the rewards differ by less than that, so that subtracting it rounds nothing.
        """
        layers, total = list(game.layers), np.zeros(len(game.players))
        with np.errstate(over="ignore"):
            for k in dict.fromkeys(game.layer_at[: len(self.low)]):
                times = np.flatnonzero(np.equal(game.layer_at, k))
                low, high = self.low[times].min(axis=0), self.high[times].max(axis=0)
                middle = low / 2 + high / 2
                base = np.where(high - low < np.abs(middle), middle, 0.0)
                layers[k] = replace(layers[k], reward=layers[k].reward - base)
                total = total + len(times) * base
        return replace(game, layers=tuple(layers)), total


def safe_rows(stages: list[Stage]) -> list[NDArray[np.int64]]:
    """The rows that are in FA in some subgame of each time."""
    return [np.unique(stage.row[stage.safe]) for stage in stages]
