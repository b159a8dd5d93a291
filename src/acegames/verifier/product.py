"""Do the players draw independently? A distribution is a product when every joint action is as probable as its parts say."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.model.game import JointAction
from acegames.numerics import PRODUCT

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Correlation:
    """Where a distribution is no product."""

    t: int
    place: str
    action: JointAction
    prob: float  # its probability
    apart: float  # and what it would be if the players drew independently, each as often as it does

    def sentence(self) -> str:
        """Say it for a certificate."""
        return (
            f"At {self.place}: the players do not draw independently: {self.action!r} is played with probability "
            f"{self.prob:.6g}, and would be with {self.apart:.6g} if they did."
        )


def correlated(
    action: NDArray[Any], ptr: Ints, row: Ints, prob: NDArray[np.float64]
) -> tuple[int, tuple[int, ...], float, float] | None:
    """Return (pair, action, probability, product of the players' own) of the first pair whose distribution is no product, or None.

    Pair p plays the rows row[ptr[p] : ptr[p+1]] of `action` (R, N). The support must be a product exactly, however small its
    probabilities: which deviations are feasible depends on it.
    """
    size = np.diff(ptr)
    pair = np.repeat(np.arange(len(size)), size)
    some = size[pair] > 1
    pair, row, prob = pair[some], row[some], prob[some]
    apart, cells = np.ones(len(pair)), np.ones(len(size))  # cells of the pairs that are left
    for own in action[row].T.astype(np.int64):
        actions = int(own.max(initial=0)) + 1
        key, at = np.unique(pair * actions + own, return_inverse=True)
        apart *= np.bincount(at.reshape(-1), weights=prob, minlength=len(key))[at.reshape(-1)]
        cells *= np.bincount(key // actions, minlength=len(size))
    off = np.abs(apart - prob)
    wrong = np.flatnonzero((off > PRODUCT) | (cells[pair] != size[pair]))
    if not len(wrong):
        return None
    first = wrong[pair[wrong] == pair[wrong[0]]]
    e = int(first[off[first].argmax()])  # the entry that is furthest off
    if off[e] > PRODUCT:
        return int(pair[e]), tuple(action[row[e]].tolist()), float(prob[e]), float(apart[e])
    return int(pair[e]), *_missing(action[row[first]], prob[first])


def _missing(played: NDArray[Any], prob: NDArray[np.float64]) -> tuple[tuple[int, ...], float, float]:
    """The first combination (with 0, and its product) of actions that are played, each by itself, but not together."""
    own = [np.unique(column) for column in played.T]
    together = set(map(tuple, played.tolist()))
    gap = next(a for a in itertools.product(*(x.tolist() for x in own)) if a not in together)
    return gap, 0.0, math.prod(float(prob[played[:, i] == a].sum()) for i, a in enumerate(gap))
