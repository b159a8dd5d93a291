"""Games whose layers are cut into slabs: costs are small against the budgets."""

from __future__ import annotations

import numpy as np

import acegames as ace


def large_game(seed=0, *, players=2, constraints=2, horizon=6, states=12, budget=14, dearest=2, unit=1):
    """Every state leads to many others; playing the first actions costs nothing."""
    rng = np.random.default_rng(seed)
    shape = (states, *[2] * players)
    transition = np.zeros((*shape, states))
    for at in np.ndindex(shape):
        transition[at][rng.choice(states, 3, replace=False)] = [0.5, 0.25, 0.25]
    cost = rng.integers(0, dearest + 1, size=(*shape, constraints))
    cost[:, *[0] * players] = 0
    reward = rng.integers(0, 5, size=(*shape, players)).astype(float)
    return ace.MarkovGame.from_arrays(transition, reward, cost * unit, [budget * unit] * constraints, horizon=horizon)


def slow_game():
    """A game that takes some seconds in small blocks."""
    return large_game(7, states=30, horizon=24, budget=50, dearest=5)
