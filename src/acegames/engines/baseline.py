"""The baseline: a constant taken out of all rewards of one time, where it would hide differences.

Taking a constant out of all rewards of a time changes no equilibrium, and lowers every value by the
sum of the constants from then on. Floats near zero are finer than floats near large rewards, so
what is left is solved as finely as its own size allows. Only rewards of joint actions that feasible
play can take at that time count. Objectives that compare players, "egalitarian" and "fair", are
told what was taken from each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate

import numpy as np

from acegames.engines import EngineResult
from acegames.model.arrays import Floats
from acegames.numerics import BASELINE


@dataclass(frozen=True, eq=False)
class Baseline:
    """What is taken out of rewards, and so out of values."""

    taken: Floats  # (H, N) out of the rewards of each time
    to_go: Floats  # (H, N) out of the values of each time: the sum of `taken` from then on
    above: Floats  # (H, N) by how much `to_go` exceeds that of the player with the lowest

    def back(self, found: EngineResult, keep: Callable[[Iterable[Floats]], list[Floats]] = list) -> EngineResult:
        """The answer with the baseline back in those values that are kept.

        `keep` holds them beside the layers.
        """
        if not self.to_go.any():
            return found
        kept = {t: layer.values for t, layer in enumerate(found.layers) if layer.values is not None}
        layers, raised = list(found.layers), keep(_raised(values, self.to_go[t]) for t, values in kept.items())
        for t, values in zip(kept, raised, strict=True):
            layers[t] = replace(layers[t], values=values)
        return replace(found, values=found.values + self.to_go[0], layers=layers)


def _raised(values: Floats, up: Floats) -> Floats:
    """Values with the baseline; in place, except in a layer that a checkpoint maps."""
    return np.add(values, up, out=values if values.flags.writeable else None)


def baseline(low: Floats, high: Floats) -> Baseline:
    """The baseline of a game in which feasible play is paid between low and high (H, N).

    It is zero where rounding cannot hide anything, and with one player, whose maximum has no
    incentives.
    """
    spread, middle = high - low, low / 2 + high / 2
    size = np.maximum(np.abs(low), np.abs(high)).sum(axis=0)
    middle[np.abs(middle) <= spread] = 0.0  # else the differences are exact
    alone = low.shape[1] == 1
    taken = np.zeros_like(low) if alone or (size <= BASELINE * spread.sum(axis=0)).all() else middle
    return Baseline(taken, *_sums(taken))


def with_gross(rewards: Floats) -> Floats:
    """Rewards (R, N), then their sizes, of which rounding is a share; one player needs none."""
    both: Floats = rewards if rewards.shape[1] == 1 else np.hstack([rewards, np.abs(rewards)])
    both.setflags(write=False)
    return both


def _sums(taken: Floats) -> tuple[Floats, Floats]:
    """`to_go` and `above`, exact until the end, because they are differences of large sums."""
    if not taken.any():
        return np.zeros_like(taken), np.zeros_like(taken)
    columns = [list(accumulate(map(Fraction, column[::-1]))) for column in taken.T.tolist()]
    rows = list(zip(*columns, strict=True))[::-1]
    return np.array(rows, dtype=np.float64), np.array([[x - min(row) for x in row] for row in rows], dtype=np.float64)
