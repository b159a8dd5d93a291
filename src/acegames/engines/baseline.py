"""Rewards without the part that no choice can change, where that part is so large that its rounding would hide the rest.

A constant taken from all rewards of a time takes the sum of those from then on from all values and changes no equilibrium. Floats near
zero are finer than floats near the level of the rewards, so what is left is solved as finely as its own size allows. Only rewards
of joint actions that feasible play can take at that time count. Objectives that compare players with each other, "egalitarian" and
"fair", are told what was taken from each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from acegames.engines import EngineResult
from acegames.numerics import LEVEL

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Level:
    """What is taken from rewards."""

    taken: Floats  # (H, N) from the rewards of each time
    ahead: Floats  # (H, N) and so from the values of each time
    above: Floats  # (H, N) of that, how much more than from the player from whom least was taken

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


def level(low: Floats, high: Floats) -> Level:
    """Of a game in which feasible play is paid between low and high (H, N); nothing where rounding cannot hide anything in it."""
    spread, middle = high - low, low / 2 + high / 2
    size = np.maximum(np.abs(low), np.abs(high)).sum(axis=0)
    middle[np.abs(middle) <= spread] = 0.0  # no level to speak of; else the differences are exact
    alone = low.shape[1] == 1  # a maximum: there are no incentives that rounding could invent
    taken = np.zeros_like(low) if alone or (size <= LEVEL * spread.sum(axis=0)).all() else middle
    return Level(taken, *_sums(taken))


def with_gross(rewards: Floats) -> Floats:
    """Rewards (R, N), and behind them the same without signs: what rounding is a share of. One player needs none: see above."""
    both: Floats = rewards if rewards.shape[1] == 1 else np.hstack([rewards, np.abs(rewards)])
    both.setflags(write=False)
    return both


def _sums(taken: Floats) -> tuple[Floats, Floats]:
    """What is taken from each time on, and how much more than from others; exact until the end, as differences of large sums must be."""
    if not taken.any():
        return np.zeros_like(taken), np.zeros_like(taken)
    columns = [list(accumulate(map(Fraction, column[::-1]))) for column in taken.T.tolist()]
    rows = list(zip(*columns, strict=True))[::-1]
    return np.array(rows, dtype=np.float64), np.array([[x - min(row) for x in row] for row in rows], dtype=np.float64)
