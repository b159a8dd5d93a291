"""Many episodes of a game side by side, in arrays: the law of `Episode`, a batch at a step.

B episodes, each with its own time. The layers of the game are one here: state s of layer k has the
place k S + s, so that episodes at different times are looked up together. Spending is counted in
whole numbers, so whether a budget is broken is decided exactly. An outcome is drawn from one
uniform number in the way of `Episode`: the same number gives the same outcome.

Time is linear in episodes, and in the outcomes of a joint action. Memory is that of the game, once
more where it has several layers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.adapters.environments.episode import bounds_in_force
from acegames.model.arrays import Bools, Floats, Ints, owners
from acegames.model.game import Label, Layer, MarkovGame, Payments
from acegames.model.numbers import Bound, common_denominator, nearest_float, plain
from acegames.policy.episode_costs import EpisodeCosts
from acegames.policy.layer import action_offsets
from acegames.policy.player_records import RowIndex
from acegames.policy.simulation import pick

MOST = 2**62
"""Whole numbers below this can be added as 64-bit integers."""


class Batch:
    """Plays B episodes of a game. A shield counts costs by `rounding`, one rule per constraint."""

    def __init__(self, game: MarkovGame, size: int, rounding: Sequence[Any] = ()) -> None:
        self.game, self.size = game, size
        self.costs = EpisodeCosts(game, rounding)
        self.layer = together(game.layers)
        self._rows = RowIndex(self.layer.row_ptr, self.layer.action, action_offsets(game))
        self._layer_at = np.array([*game.layer_at, game.layer_at[-1]], dtype=np.int64)
        first, chances = zip(*game.initial, strict=True)
        self._first, self._chances = np.array(first), np.array(chances)
        self._limits = _limits(game, self.costs)
        bounds = list(bounds_in_force(game))
        self._left = [_Remaining([row[m] for row in bounds], scale) for m, scale in enumerate(self.costs.scale)]
        self.t, self.state = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        self.total, self.counted = self.costs.begin(size)
        self.violated = np.zeros(size, dtype=bool)

    def begin(self, which: Ints, rng: np.random.Generator) -> None:
        """Begin the episodes with these numbers anew."""
        number = len(which)
        first, count = np.zeros(number, dtype=np.int64), np.full(number, len(self._first))
        self.t[which] = 0
        self.state[which] = self._first[pick(self._chances, first, count, rng.random(number))]
        self.total[which], self.counted[which] = self.costs.begin(number)
        self.violated[which] = False

    @property
    def place(self) -> Ints:
        """Where each episode is among the states of all layers, (B,)."""
        return self._layer_at[self.t] * len(self.game.states) + self.state

    def rows(self, actions: NDArray[np.integer[Any]]) -> Ints:
        """Return the rows of joint actions (B, N); -1 where they are not legal."""
        return self._rows.find(self.place, actions)

    def play(self, which: Ints, rows: Ints, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """Play rows in the episodes of these numbers.

        Returns their costs in whole units, (K, M), and what they paid, (K, N).
        """
        layer, costs = self.layer, self.costs
        first = layer.out_ptr[rows].astype(np.int64)
        out = pick(layer.prob, first, layer.out_ptr[rows + 1] - first, rng.random(len(rows)))
        cost, counted = costs.draw(layer, out, rng)
        self.total[which] = costs.after(self.total[which], cost)
        self.counted[which] = costs.after(self.counted[which], counted)
        if self._limits.size:
            self.violated[which] |= (self.total[which] > self._limits[self.t[which]]).any(axis=1).astype(bool)
        self.t[which] += 1
        self.state[which] = layer.next_state[out]
        return cost, layer.paid(rows, out)

    # -- amounts

    @property
    def spent(self) -> Floats:
        """The cumulative costs as the nearest floats, (B, M)."""
        return self.costs.in_user_units(self.total)

    @property
    def remaining(self) -> Floats:
        """The bounds in force minus the cumulative costs, as the nearest floats, (B, M)."""
        left = np.empty((self.size, len(self._left)))
        for m, column in enumerate(self._left):
            left[:, m] = column.of(self.t, self.total[:, m])
        return left

    def counted_units(self, units: Sequence[Fraction]) -> Ints:
        """Return what a shield with these units counts as spent, in whole numbers of them, (B, M)."""
        found = self.costs.in_units(self.counted, units)
        if found is not None:
            return found
        scales = zip(self.costs.counted_scale, units, strict=True)
        factors = [1 / (k * Fraction(unit)) for k, unit in scales]
        rows = [[int(c * f) for c, f in zip(row, factors, strict=True)] for row in self.counted.tolist()]
        return np.array(rows, dtype=np.int64).reshape(self.counted.shape)

    def situation(self, b: int) -> tuple[int, Label, tuple[Any, ...]]:
        """Return (t, state, spent) of one episode, in the words of the game."""
        total = zip(self.total[b].tolist(), self.costs.scale, strict=True)
        return int(self.t[b]), self.game.states[self.state[b]], tuple(plain(Fraction(c, k)) for c, k in total)

    def counted_pair(self, b: int) -> tuple[int, Label, tuple[Any, ...]]:
        """Return (t, state, spent) of one episode with costs as they are counted, for a shield."""
        total = zip(self.counted[b].tolist(), self.costs.counted_scale, strict=True)
        return int(self.t[b]), self.game.states[self.state[b]], tuple(plain(Fraction(c, k)) for c, k in total)


class _Remaining:
    """What is left of one budget: bounds and totals as multiples of one unit."""

    def __init__(self, bounds: Sequence[Bound], scale: int) -> None:
        finite = [b for b in bounds if not isinstance(b, float)]
        self.scale = math.lcm(scale, common_denominator(finite))
        self.factor = self.scale // scale
        self.endless = np.array([isinstance(b, float) for b in bounds])
        whole = [0 if isinstance(b, float) else int(b * self.scale) for b in bounds]
        self.most = max(map(abs, whole))
        self.bounds = np.array(whole, dtype=np.int64 if self.most < MOST // 2 else object)

    def of(self, t: Ints, total: Ints) -> Floats:
        """Return the nearest floats at times (B,) with totals (B,); inf where no bound comes any
        more.
        """
        reach = self.most + int(np.abs(total).max(initial=0)) * self.factor
        held = total if reach < MOST else total.astype(object)
        left = self.bounds[t] - held * self.factor
        return np.where(self.endless[t], np.inf, floats(left, self.scale))


def floats(whole: NDArray[Any], scale: int) -> Floats:
    """Return whole multiples (B,) of 1 / scale as the nearest floats."""
    if whole.dtype != object and max(scale, int(np.abs(whole).max(initial=0))) <= 2**53:
        return np.asarray(whole / scale)  # both are floats, so only the quotient is rounded
    values, code = np.unique(whole, return_inverse=True)
    return np.array([nearest_float(Fraction(c, scale)) for c in values.tolist()])[code.reshape(-1)]


def _limits(game: MarkovGame, costs: EpisodeCosts) -> NDArray[Any]:
    """Return the largest whole totals that keep the bounds, (H, M)."""
    largest: Any = math.inf if costs.dtype is object else 2**63 - 1
    rows = [
        [largest if isinstance(b, float) else math.floor(b * k) for b, k in zip(row, costs.scale, strict=True)]
        for row in game.budgets
    ]
    if costs.dtype is not object:  # beyond what totals can reach, nothing changes
        rows = [[max(-(2**63), min(x, largest)) for x in row] for row in rows]
    return np.array(rows, dtype=costs.dtype).reshape(game.horizon, len(game.constraints))


def together(layers: Sequence[Layer]) -> Layer:
    """Return one layer, its outcomes apart, in which state s of layer k has the number k S + s."""
    layers = [layer.apart() for layer in layers]
    if len(layers) == 1:
        return layers[0]
    rows = np.cumsum([0, *(len(layer.reward) for layer in layers)])
    outs = np.cumsum([0, *(len(layer.prob) for layer in layers)])
    pointers = {
        "row_ptr": [layer.row_ptr[:-1] + n for layer, n in zip(layers, rows, strict=False)],
        "out_ptr": [layer.out_ptr[:-1].astype(np.int64) + n for layer, n in zip(layers, outs, strict=False)],
    }
    ends = {"row_ptr": rows[-1:], "out_ptr": outs[-1:]}
    plain_fields = ("action", "reward", "prob", "next_state", "cost")
    joined = {name: np.concatenate([*parts, ends[name]]) for name, parts in pointers.items()}
    whole = {name: np.concatenate([getattr(x, name) for x in layers]) for name in plain_fields}
    payments = None
    if any(layer.payments is not None for layer in layers):
        paid = np.concatenate([layer.paid(owners(layer.out_ptr), slice(None)) for layer in layers])
        payments = Payments(np.arange(len(paid) + 1), whole["prob"], paid)
    return Layer(**joined, **whole, payments=payments)


def offered_masks(layer: Layer, actions: Sequence[Sequence[Label]]) -> tuple[Bools, ...]:
    """For each player, the actions that are part of some legal joint action, (places, n_i)."""
    owner = np.repeat(np.arange(len(layer.row_ptr) - 1), np.diff(layer.row_ptr))
    masks = tuple(np.zeros((len(layer.row_ptr) - 1, len(labels)), dtype=bool) for labels in actions)
    for i, mask in enumerate(masks):
        mask[owner, layer.action[:, i]] = True
    return masks
