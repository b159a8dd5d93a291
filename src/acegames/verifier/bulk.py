"""Many questions to the policy at once, where it has a method for that.

    lookup(t, state (Q,), total (Q, M)) -> ptr (Q+1,), action (E, N), probability (E,)

with states and actions by index and totals in whole `tracker.units`. It must say what
`distribution` says.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.model.game import MarkovGame
from acegames.numerics import PROBABILITY_SUM
from acegames.verifier.arrays import BELOW, Floats, Ints, offsets, owners
from acegames.verifier.units import Units


class Bulk:
    """The `lookup` of a policy."""

    def __init__(self, game: MarkovGame, policy: Any, ratios: list[Fraction]) -> None:
        self.game, self.policy, self.ratios = game, policy, ratios  # units of the policy per unit of ours
        self._strides = np.array(_strides(game), dtype=np.int64)
        self._codes = [self._code(owners(layer.row_ptr), layer.action) for layer in game.layers]  # (R,) ascending

    @staticmethod
    def of(game: MarkovGame, policy: Any, units: Units) -> Bulk | None:
        """Return None where the policy has no `lookup`, or other states, actions or costs."""
        try:
            usable = (
                units.small
                and _defined_together(policy)
                and tuple(policy.states) == game.states
                and tuple(map(tuple, policy.actions)) == game.actions
                and _strides(game)[0] * len(game.states) < BELOW
            )
            if not usable:
                return None
            theirs = [Fraction(u) for u in policy.tracker.units]
            return Bulk(game, policy, [1 / (k * u) for k, u in zip(units.scale, theirs, strict=True)])
        except Exception:  # a judge must not fall over what it judges: `distribution` is asked instead
            return None

    def read(self, t: int, state: Ints, spent: Ints) -> tuple[Ints, Ints, Floats] | None:
        """Return pointers (P+1,), rows (Z,), probabilities (Z,); None where any answer is wrong."""
        total = in_units(spent, self.ratios)
        if total is None:
            return None
        try:
            ptr, action, prob = (np.asarray(x) for x in self.policy.lookup(t, state.copy(), total))
        except Exception:
            return None
        if not _well_formed(ptr, action, prob, len(state), len(self.game.players)):
            return None
        count = np.diff(ptr)
        if (prob == 0).any():
            count = np.add.reduceat(prob != 0, ptr[:-1], dtype=np.int64)
            action, prob = action[prob != 0], prob[prob != 0]
        row = self._rows(t, np.repeat(state, count), action)
        if row is None or not (count > 0).all() or not (prob > 0).all():
            return None
        return _normalised(offsets(count), row, prob.astype(np.float64))

    def _rows(self, t: int, state: Ints, action: NDArray[Any]) -> Ints | None:
        """Return the row of each joint action; None when one is not legal."""
        if any(
            len(x) and not 0 <= x.min() <= x.max() < len(y) for x, y in zip(action.T, self.game.actions, strict=True)
        ):
            return None
        codes, code = self._codes[self.game.layer_at[t]], self._code(state, action)
        row = np.minimum(np.searchsorted(codes, code), len(codes) - 1)
        return row if np.array_equal(codes[row], code) else None

    def _code(self, state: Ints, action: NDArray[Any]) -> Ints:
        """Return one number per state and joint action."""
        code: Ints = state * self._strides[0]
        for own, stride in zip(action.T, self._strides[1:], strict=True):
            code = code + own.astype(np.int64) * stride
        return code


def in_units(spent: Ints, ratios: list[Fraction]) -> Ints | None:
    """Return amounts (P, M) in the policy's units; None when one is not whole, or too large."""
    total = np.empty(spent.shape, dtype=np.int64)
    for m, ratio in enumerate(ratios):
        column, (up, down) = spent[:, m], ratio.as_integer_ratio()
        if down >= BELOW or (up != 1 and int(np.abs(column).max(initial=0)) * up >= BELOW):
            return None
        total[:, m] = column * up // down
        if not np.array_equal(total[:, m] * down, column * up):
            return None
    return total


def _defined_together(policy: Any) -> bool:
    """Whether one class gives both methods; a `lookup` of another class may say something else."""
    methods = {"distribution", "lookup"}
    if methods & set(getattr(policy, "__dict__", ())):
        return False
    owner = next((c for c in type(policy).__mro__ if methods & set(vars(c))), object)
    return methods <= set(vars(owner))


def _strides(game: MarkovGame) -> list[int]:
    """Return what a state, and then each player's action, counts in the code of a row."""
    sizes = [len(labels) for labels in game.actions]
    return [math.prod(sizes[i:]) for i in range(len(sizes) + 1)]


def _well_formed(ptr: NDArray[Any], action: NDArray[Any], prob: NDArray[Any], pairs: int, players: int) -> bool:
    return bool(
        (ptr.dtype.kind, action.dtype.kind, prob.dtype.kind) in {("i", "i", "f"), ("i", "u", "f")}
        and ptr.shape == (pairs + 1,)
        and prob.ndim == 1
        and action.shape == (len(prob), players)
        and ptr[0] == 0
        and ptr[-1] == len(prob)
        and (np.diff(ptr) > 0).all()
    )


def _normalised(ptr: Ints, row: Ints, prob: Floats) -> tuple[Ints, Ints, Floats] | None:
    with np.errstate(over="ignore"):
        total = np.add.reduceat(prob, ptr[:-1]) if len(prob) else np.ones(0)
    if not (np.abs(total - 1) <= PROBABILITY_SUM).all():
        return None
    if (total != 1).any():
        prob = prob / np.repeat(total, np.diff(ptr))
    return ptr, row, prob
