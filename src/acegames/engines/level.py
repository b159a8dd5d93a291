"""Rewards without the part that no choice can change, where that part is so large that its rounding would hide the rest.

A constant taken from all rewards of a time takes the sum of those from then on from all values and changes no equilibrium. Floats near zero
are finer than floats near the level of the rewards, so what is left is solved as finely as its own size allows. Rewards of
joint actions that no safe play can take do not count either: they become zero. Objectives that compare players with each other,
"egalitarian" and "fair", are told what was taken from each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from acegames.engines import EngineResult
from acegames.model.game import Layer, MarkovGame
from acegames.numerics import LEVEL

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Levelled:
    """A game without its level, and the way back."""

    game: MarkovGame
    ahead: Floats  # (H, N) what was taken from time t on

    def back(self, found: EngineResult, keep: Callable[[Iterable[Floats]], list[Floats]] = list) -> EngineResult:
        """The same answer with the values of the game as it was, which `keep` holds where the layers are."""
        if not self.ahead.any():
            return found
        values = keep(_raised(layer.values, up) for layer, up in zip(found.layers, self.ahead, strict=True))
        layers = [replace(layer, values=raised) for layer, raised in zip(found.layers, values, strict=True)]
        return replace(found, values=found.values + self.ahead[0], layers=layers)


def _raised(values: Floats, up: Floats) -> Floats:
    """In place where that can be: a layer that a checkpoint maps is not to be written."""
    return np.add(values, up, out=values if values.flags.writeable else None)


def level(game: MarkovGame, in_play: list[NDArray[np.bool_]]) -> Levelled:
    """Take the level out of a game; it stays as it is where rounding cannot hide anything in it.

    in_play: of each distinct layer, the rows that feasible play can take.
    """
    played = [x.reward[rows] if rows.any() else 0 * x.reward[:1] for x, rows in zip(game.layers, in_play, strict=True)]
    low, high = (np.array([bound(x, axis=0) for x in played]) for bound in (np.min, np.max))
    at = list(game.layer_at)
    size = np.array([np.abs(layer.reward).max(axis=0) for layer in game.layers])[at].sum(axis=0)
    middle = low / 2 + high / 2
    middle[np.abs(middle) <= high - low] = 0.0  # no level to speak of; else the differences are exact
    if (size <= LEVEL * (high - low)[at].sum(axis=0)).all():
        return Levelled(game, np.zeros((game.horizon, len(game.players))))
    layers = tuple(map(_without, game.layers, in_play, middle))
    return Levelled(replace(game, layers=layers), np.cumsum(middle[at][::-1], axis=0)[::-1])


def _without(layer: Layer, rows: NDArray[np.bool_], middle: Floats) -> Layer:
    reward = np.where(rows[:, None], layer.reward - middle, 0.0)
    reward.setflags(write=False)
    return replace(layer, reward=reward)
