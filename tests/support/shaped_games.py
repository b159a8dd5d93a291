"""Games of every shape that takes memory in its own way, each small for compiling or large for measuring."""

import numpy as np

import acegames as ace
from acegames.cli.bench import random_game


def fine(*, small=False):
    """Costs so fine that reached cells are listed."""
    rng = np.random.default_rng(0)
    shape = (3, 3, 3)
    transition = np.eye(3)[rng.integers(3, size=shape)]
    cost = rng.integers(1, 10**8, size=(*shape, 1))
    cost[:, 0, 0] = 0
    reward = rng.normal(size=(*shape, 2))
    return ace.MarkovGame.from_arrays(transition, reward, cost, [3 * 10**8], horizon=4 if small else 8)


def alone(*, small=False):
    """One player with large boxes."""
    rng = np.random.default_rng(0)
    count = 4 if small else 60
    weights = rng.integers(1, 20_000, count).tolist()
    return ace.catalog.get("knapsack", values=rng.integers(1, 99, count).tolist(), weights=weights, capacity=100_000)


def three(*, small=False):
    """Three players."""
    rng = np.random.default_rng(0)
    shape = (4, 2, 2, 2)
    transition = np.eye(4)[rng.integers(4, size=shape)]
    cost = rng.integers(0, 6, size=(*shape, 2))
    cost[:, 0, 0, 0] = 0
    sizes = (4, 9) if small else (30, 60)
    return ace.MarkovGame.from_arrays(transition, rng.normal(size=(*shape, 3)), cost, [sizes[1]] * 2, horizon=sizes[0])


def two(*, small=False):
    """Two players and two budgets."""
    return random_game(3, 4, 9) if small else random_game(8, 30, 60)


def own_costs(*, small=False):
    """The first player alone decides what is spent, so that safe joint actions are a product and independent play is possible."""
    game = two(small=small)
    rng = np.random.default_rng(1)
    states, shape = len(game.states), (len(game.states), 3, 3)
    cost = np.broadcast_to(rng.integers(0, 6, size=(states, 3, 1, 2)), (*shape, 2)).copy()
    cost[:, 0] = 0
    transition = np.eye(states)[rng.integers(states, size=shape)]
    budget = [9, 9] if small else [45, 45]
    return ace.MarkovGame.from_arrays(transition, rng.normal(size=(*shape, 2)), cost, budget, horizon=game.horizon)


def wide(*, small=False):
    """Few stage games with many joint actions, and other tables at every time: what is prepared from the tables is most of it."""
    horizon, actions = (3, 3) if small else (60, 40)
    shape = (horizon, 1, actions, actions)
    reward = np.repeat(np.random.default_rng(0).normal(size=(*shape, 1)), 2, axis=-1)
    return ace.MarkovGame.from_arrays(
        np.ones((*shape, 1)), reward, np.zeros((*shape[1:], 1), int), [1], horizon=horizon
    )


def large_game(seed=0, *, players=2, constraints=2, horizon=6, states=12, budget=14, dearest=2, unit=1):
    """Costs are small against the budgets, so that layers are cut; every state leads to many others, the first actions cost nothing."""
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


SHAPES = {
    "dense": (two, ace.CE(), {}),
    "dense, coarse": (two, ace.CCE("egalitarian"), {}),
    "lists": (fine, ace.CE(), {}),
    "lists of what could be dense": (two, ace.CCE(), {"dense": False}),
    "one player": (alone, ace.CCE(), {}),
    "independent": (own_costs, ace.Nash(), {}),
    "three players": (three, ace.CE(), {}),
    "wide": (wide, ace.CCE(), {}),
}
