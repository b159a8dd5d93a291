"""Episodes of a game, played step by step, by indices: one, or a batch in arrays.

Draws come from a generator that the caller gives. Spending is counted in whole numbers, so whether
a budget is broken is decided exactly.

A batch has B episodes, each with its own time. The layers of the game are one there: state s of
layer k has the place k S + s, so that episodes at different times are looked up together. An
outcome is drawn from one uniform number in the way of `Episode`: one number gives one outcome in
both. Time is linear in episodes, and in the outcomes of a joint action; memory is that of the game,
once more where it has several layers.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.model.arrays import Bools, Floats, Ints, owners
from acegames.model.budgets import spent_after
from acegames.model.game import Label, Layer, MarkovGame, Payments, place
from acegames.model.numbers import Bound, common_denominator, nearest_float, plain
from acegames.policy.episode_costs import EpisodeCosts
from acegames.policy.layer import RowIndex, action_offsets
from acegames.policy.simulation import pick

Action = tuple[int, ...]
Amounts = tuple[int | float | Fraction, ...]


class PlayedStep(NamedTuple):
    """The joint action of one time, and what followed from it."""

    action: Action  # N
    rewards: tuple[float, ...]  # N
    costs: Amounts  # M
    spent: Amounts  # M, in total


class Episode:
    """Plays a game. A policy or shield counts costs by `rounding`, one rule per constraint."""

    def __init__(self, game: MarkovGame, rounding: Sequence[Any] = ()) -> None:
        self.game, self._layers = game, [layer.apart() for layer in game.layers]
        self._costs = EpisodeCosts(game, rounding)
        self._initial = list(accumulate(p for _, p in game.initial))
        self._bounds = tuple(bounds_in_force(game))
        self._limits = _limits(game, self._costs).tolist()
        self._legal: dict[tuple[int, int], dict[Action, int]] = {}
        self._outcomes: dict[tuple[int, int], list[float]] = {}  # cumulative probabilities, by row

    def begin(self, rng: np.random.Generator) -> None:
        """Draw a first state; nothing is spent yet, but what reservoirs lack."""
        self.t = 0
        self.state = self.game.initial[_drawn(self._initial, rng)][0]
        self._total, self._counted = self._costs.start, self._costs.counted_start
        self.violated = False
        self.steps: list[PlayedStep] = []

    @property
    def over(self) -> bool:
        """Whether the horizon is reached."""
        return self.t >= self.game.horizon

    @property
    def legal(self) -> Mapping[Action, int]:
        """The legal joint actions, with their rows."""
        key = self.game.layer_at[self.t], self.state
        if key not in self._legal:
            layer = self.game.layer(self.t)
            self._legal[key] = {tuple(layer.action[row].tolist()): row for row in layer.rows(self.state)}
        return self._legal[key]

    def play(self, action: Action, rng: np.random.Generator) -> PlayedStep:
        """Play a legal joint action."""
        layer, row = self._layers[self.game.layer_at[self.t]], self.legal[action]
        key, outs = (self.game.layer_at[self.t], row), layer.outcomes(row)
        if key not in self._outcomes:
            self._outcomes[key] = list(accumulate(layer.prob[outs].tolist()))
        out = outs.start + _drawn(self._outcomes[key], rng)
        cost, counted = (tuple(whole[0].tolist()) for whole in self._costs.draw(layer, np.array([out]), rng))
        self._total = spent_after(self.game.reservoirs, self._total, cost)
        self._counted = spent_after(self.game.reservoirs, self._counted, counted)
        self.violated |= any(c > most for c, most in zip(self._total, self._limits[self.t], strict=True))
        rewards = tuple(layer.paid(row, out).tolist())
        self.t, self.state = self.t + 1, int(layer.next_state[out])
        self.steps.append(PlayedStep(action, rewards, _amounts(cost, self._costs.scale), self.spent))
        return self.steps[-1]

    @property
    def spent(self) -> Amounts:
        """The cumulative cost, exactly, one number per constraint."""
        return _amounts(self._total, self._costs.scale)

    @property
    def remaining(self) -> Amounts:
        """The bounds in force minus the cumulative cost, exactly."""
        return tuple(
            bound if isinstance(bound, float) else plain(bound - Fraction(c, k))
            for bound, c, k in zip(self.bounds, self._total, self._costs.scale, strict=True)
        )

    @property
    def key(self) -> tuple[int, ...]:
        """Time, state and counted cost as whole numbers, on which masks depend."""
        return (self.t, self.state, *self._counted)

    @property
    def counted_pair(self) -> tuple[int, Label, Amounts]:
        """(t, state, spent) with costs as they are counted, for a policy or a shield."""
        return self.t, self.game.states[self.state], _amounts(self._counted, self._costs.counted_scale)

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The bounds in force now, one per constraint; `inf` where there is none any more."""
        return self._bounds[self.t]

    @property
    def place(self) -> str:
        """The situation, for a message."""
        return f"{place(self.t, self.game.states[self.state])}, spent {self.spent!r}"


def _amounts(whole: Sequence[int], scale: Sequence[int]) -> Amounts:
    return tuple(c if k == 1 else plain(Fraction(c, k)) for c, k in zip(whole, scale, strict=True))


def _drawn(cumulative: Sequence[float], rng: np.random.Generator) -> int:
    """Return an index drawn by cumulative probabilities. A single one takes no draw."""
    if len(cumulative) == 1:
        return 0
    return bisect_right(cumulative, rng.random() * cumulative[-1], hi=len(cumulative) - 1)


def bounds_in_force(game: MarkovGame) -> Iterator[tuple[Bound, ...]]:
    """Yield for t = 0 .. H the next finite bound of each constraint; at the end the last one."""
    ahead: list[tuple[Bound, ...]] = [game.budgets[-1], game.budgets[-1]]
    for row in reversed(game.budgets[:-1]):
        ahead.append(tuple(later if isinstance(now, float) else now for now, later in zip(row, ahead[-1], strict=True)))
    return reversed(ahead)


# -- a batch of episodes

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
        """Return what a shield with these units counts as spent, in whole units, (B, M)."""
        converted = self.costs.in_units(self.counted, units)
        if converted is not None:
            return converted
        scales = zip(self.costs.counted_scale, units, strict=True)
        factors = [1 / (k * Fraction(unit)) for k, unit in scales]
        rows = [[int(c * f) for c, f in zip(row, factors, strict=True)] for row in self.counted.tolist()]
        return np.array(rows, dtype=np.int64).reshape(self.counted.shape)

    def situation(self, b: int) -> tuple[int, Label, Amounts]:
        """Return (t, state, spent) of one episode, in the words of the game."""
        return int(self.t[b]), self.game.states[self.state[b]], _amounts(self.total[b].tolist(), self.costs.scale)

    def counted_pair(self, b: int) -> tuple[int, Label, Amounts]:
        """Return (t, state, spent) of one episode with costs as they are counted, for a shield."""
        counted = _amounts(self.counted[b].tolist(), self.costs.counted_scale)
        return int(self.t[b]), self.game.states[self.state[b]], counted


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
        """Return what is left, (B,), at times (B,) with totals (B,); inf without a bound."""
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
    """Return for each player which actions are part of a legal joint action, (places, n_i)."""
    owner = np.repeat(np.arange(len(layer.row_ptr) - 1), np.diff(layer.row_ptr))
    masks = tuple(np.zeros((len(layer.row_ptr) - 1, len(labels)), dtype=bool) for labels in actions)
    for i, mask in enumerate(masks):
        mask[owner, layer.action[:, i]] = True
    return masks
