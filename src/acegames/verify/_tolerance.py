"""How large a gain is rounding? A share of what each player has at stake where safe play can come, player by player."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from acegames.model.game import MarkovGame
from acegames.numerics import VERIFY
from acegames.verify._units import Units

Floats = NDArray[np.float64]


def default_tolerance(game: MarkovGame, units: Units) -> Floats:
    """Return (N,): VERIFY times the total spread of a player's rewards over the steps, never below rounding error.

    States that no legal play reaches and joint actions that break a budget however little was spent before are left out.
    """
    spread, size = np.zeros(len(game.players)), np.zeros(len(game.players))
    with np.errstate(over="ignore"):
        for t, possible in enumerate(_possible_rows(game, units)):
            reward = game.layer(t).reward[possible]
            spread += reward.max(axis=0) - reward.min(axis=0)
            size += np.abs(reward).max(axis=0)
    float64 = np.finfo(np.float64)
    return np.minimum(np.maximum(VERIFY * spread, 8 * float64.eps * size), float64.max)


def without_base(game: MarkovGame, units: Units) -> tuple[MarkovGame, Floats]:
    """The same game with the common part of a player's rewards taken out, and what that comes to over the steps, (N,).

    Gains are differences: sums of small numbers show them, sums of large ones may round them away or make them up. A common part is only
    taken out where the rewards differ by less than that, so that subtracting it rounds nothing.
    """
    low = [np.full(len(game.players), np.inf) for _ in game.layers]
    high = [-x for x in low]
    for k, possible in zip(game.layer_at, _possible_rows(game, units), strict=False):
        reward = game.layers[k].reward[possible]
        low[k], high[k] = np.minimum(low[k], reward.min(axis=0)), np.maximum(high[k], reward.max(axis=0))
    with np.errstate(over="ignore", invalid="ignore"):
        middle = [lo / 2 + hi / 2 for lo, hi in zip(low, high, strict=True)]
        base = [np.where(hi - lo < np.abs(c), c, 0.0) for lo, hi, c in zip(low, high, middle, strict=True)]
        layers = [replace(x, reward=x.reward - c) if c.any() else x for x, c in zip(game.layers, base, strict=True)]
        total = np.sum([base[k] for k in game.layer_at], axis=0)
    return replace(game, layers=tuple(layers)), total


def _possible_rows(game: MarkovGame, units: Units) -> Iterator[NDArray[np.bool_]]:
    """Of each time, the joint actions that keep the budgets after the least that can have been spent; up to where there is none."""
    least = np.zeros((len(game.states), len(game.constraints)), dtype=np.int64 if units.small else object)
    here = np.zeros(len(game.states), dtype=bool)
    here[[s for s, _ in game.initial]] = True
    for t in range(game.horizon):
        layer, cost = game.layer(t), units.cost_table(game.layer(t))
        owner = np.repeat(np.arange(len(here)), np.diff(layer.row_ptr))
        row = np.repeat(np.arange(len(owner)), np.diff(layer.out_ptr))
        total = least[owner[row]] + cost
        possible = np.logical_and.reduceat(units.keeps(total, t), layer.out_ptr[:-1]) & here[owner]
        if not possible.any():
            break
        yield possible
        here, least = _step(layer.next_state, total, possible[row], least)


def _step(
    next_state: NDArray[np.int32], total: NDArray[np.int64], possible: NDArray[np.bool_], least: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which states come next, and the least that can have been spent on arrival, constraint by constraint."""
    there = np.zeros(len(least), dtype=bool)
    there[next_state[possible]] = True
    after = np.zeros_like(least)
    order = np.argsort(next_state[possible], kind="stable")
    states, first = np.unique(next_state[possible][order], return_index=True)
    after[states] = np.minimum.reduceat(total[possible][order], first, axis=0)
    return there, after
