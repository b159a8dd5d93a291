"""How large a gain is rounding? A share of what each player has at stake where safe play can come, player by player."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acegames.model.game import MarkovGame
from acegames.numerics import VERIFY
from acegames.verify._units import Units


def default_tolerance(game: MarkovGame, units: Units) -> NDArray[np.float64]:
    """Return (N,): VERIFY times the total spread of a player's rewards over the steps, never below rounding error.

    States that no legal play reaches and joint actions that break a budget however little was spent before are left out.
    """
    n = len(game.players)
    spread, size = np.zeros(n), np.zeros(n)
    least = np.zeros((len(game.states), len(game.constraints)), dtype=np.int64 if units.small else object)
    here = np.zeros(len(game.states), dtype=bool)
    here[[s for s, _ in game.initial]] = True
    with np.errstate(over="ignore"):
        for t in range(game.horizon):
            layer, cost = game.layer(t), units.cost_table(game.layer(t))
            owner = np.repeat(np.arange(len(here)), np.diff(layer.row_ptr))
            row = np.repeat(np.arange(len(owner)), np.diff(layer.out_ptr))
            total = least[owner[row]] + cost
            possible = np.logical_and.reduceat(units.keeps(total, t), layer.out_ptr[:-1]) & here[owner]
            if not possible.any():
                break
            reward = layer.reward[possible]
            spread += reward.max(axis=0) - reward.min(axis=0)
            size += np.abs(reward).max(axis=0)
            here, least = _step(layer.next_state, total, possible[row], least)
    float64 = np.finfo(np.float64)
    return np.minimum(np.maximum(VERIFY * spread, 8 * float64.eps * size), float64.max)


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
