"""Small random games whose payoff sets and policies with memory are looked at."""

import itertools

import numpy as np

import acegames as ace
import oracle
from histories import Histories
from random_games import changing_game

CONCEPTS = tuple(kind(floor=floor) for floor in (0, 1, 5) for kind in (ace.CE, ace.CCE))
LARGEST = 1500  # variables of a program


def small(seed, players):
    """A game that can be played and whose histories are few, and a generator for it."""
    rng = np.random.default_rng([39, seed])
    while True:
        if seed % 3:
            game = oracle.random_game(rng, players=players, reservoirs=seed % 3 == 1)
        else:
            game = changing_game(rng, players=players, horizon=int(rng.integers(2, 4)))
        if ace.feasibility(game).feasible and Histories(game, ace.CE()).size() <= LARGEST:
            return game, rng


REWARDS = {
    "ties": lambda rng: rng.integers(0, 4, 2),
    "zero-sum": lambda rng: rng.integers(-3, 4) * np.array([1, -1]),
    "common": lambda rng: np.full(2, rng.integers(0, 4)),
    "nothing": lambda rng: np.zeros(2),
    "one is indifferent": lambda rng: np.array([2, rng.integers(0, 4)]),
    "far from zero": lambda rng: 1e5 + rng.normal(size=2),
    "penalties": lambda rng: rng.normal(size=2) - 1000 * (rng.random(2) < 0.15),
    "two scales": lambda rng: rng.normal(size=2) * [0.01, 10],
}


def made(kind, seed, own=(("a", "b"), ("a", "b", "c"))):
    """A game of one or two states with such rewards, some of whose joint actions may be missing, and perhaps a budget."""
    rng = np.random.default_rng([seed, list(REWARDS).index(kind)])
    states, budget = ["x", "y"][: int(rng.integers(1, 3))], [int(rng.integers(3))] if seed % 2 else None

    def rule():
        ways = ([1.0], [0.5, 0.5])[int(rng.integers(2))]
        outcomes = [
            (p, states[int(rng.integers(len(states)))], [int(rng.random() < 0.3)] if budget else ()) for p in ways
        ]
        return REWARDS[kind](rng).astype(float).tolist(), outcomes

    joint = [("a", "a"), *(a for a in itertools.product(*own) if a != ("a", "a") and rng.random() < 0.8)]
    tables = [{s: {a: rule() for a in joint} for s in states} for _ in range(2)]
    start = {s: 1 / len(states) for s in states}
    return oracle.from_tables(tables, players=["p", "q"], actions=lambda t, s: own, initial=start, budget=budget), rng


def any_game(seed):
    """A random game with two players, three, or of a special kind."""
    if seed % 3 == 2:
        return made(list(REWARDS)[seed // 3 % len(REWARDS)], 2 * seed)
    return small(seed, 2 + seed % 3)


def scale(found):
    """How large a payoff set is, at least a thousandth of its payoffs."""
    return max(np.ptp(found.bound, axis=0).max(), np.abs(found.bound).max() * 1e-3, 1e-9)
