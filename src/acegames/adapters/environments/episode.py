"""One episode of a game, step by step, by indices.

Draws come from a generator that the caller gives. Spending is counted in whole numbers, so whether
a budget is broken is decided exactly.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from acegames.model.budgets import spent_after
from acegames.model.game import Label, MarkovGame, place
from acegames.model.numbers import Bound, plain
from acegames.policy.episode_costs import EpisodeCosts

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
        self._limits = [  # the largest whole totals that keep the bounds
            [b if isinstance(b, float) else math.floor(b * k) for b, k in zip(row, self._costs.scale, strict=True)]
            for row in game.budgets
        ]
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


def _amounts(whole: tuple[int, ...], scale: Sequence[int]) -> Amounts:
    return tuple(c if k == 1 else plain(Fraction(c, k)) for c, k in zip(whole, scale, strict=True))


def _drawn(cumulative: Sequence[float], rng: np.random.Generator) -> int:
    """Return an index drawn by cumulative probabilities. A single one takes no draw."""
    if len(cumulative) == 1:
        return 0
    return bisect_right(cumulative, rng.random() * cumulative[-1], hi=len(cumulative) - 1)


def bounds_in_force(game: MarkovGame) -> Iterator[tuple[Bound, ...]]:
    """For t = 0 .. H the next finite bound from t on, per constraint; at the end the last one."""
    ahead: list[tuple[Bound, ...]] = [game.budgets[-1], game.budgets[-1]]
    for row in reversed(game.budgets[:-1]):
        ahead.append(tuple(later if isinstance(now, float) else now for now, later in zip(row, ahead[-1], strict=True)))
    return reversed(ahead)
