"""Random games whose rewards come with outcomes, with the functions that they were built from, and what their play can return."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

import acegames as ace


class Paying(NamedTuple):
    """A game, and what was said of it: {(t, state, joint action): [(probability, next state, cost, rewards)]}."""

    game: ace.MarkovGame
    law: dict[Any, list[tuple[float, int, int, tuple[float, ...]]]]
    policy: dict[Any, dict[tuple[str, ...], float]]  # by (t, state)

    def distribution(self, t: int, state: int, spent: Any) -> dict[tuple[str, ...], float]:
        return self.policy[t, state]

    def returns(self) -> dict[tuple[float, ...], float]:
        """The probability of each vector of returns, by listing all play: nothing of the game's arrays is read."""
        here: dict[Any, float] = {(0, (0.0,) * len(self.game.players)): 1.0}
        for t in range(self.game.horizon):
            there: dict[Any, float] = defaultdict(float)
            for (state, so_far), chance in here.items():
                for action, p in self.policy[t, state].items():
                    for q, following, _, paid in self.law[t, state, action]:
                        total = tuple(round(x + y, 6) for x, y in zip(so_far, paid, strict=True))
                        there[following, total] += chance * p * q
            here = there
        chances: dict[tuple[float, ...], float] = defaultdict(float)
        for (_, total), chance in here.items():
            chances[total] += chance
        return dict(chances)


def paying_game(seed: int, *, players: int = 2, horizon: int = 3, states: int = 2, stationary: bool = False) -> Paying:
    """A random game in which the same next state may come with different costs, and the same of both with different rewards."""
    rng = np.random.default_rng([7, seed])
    names = [f"p{i}" for i in range(players)]
    joint = list(itertools.product(*(("x", "y"),) * players))
    law: dict[Any, Any] = {}
    for state, action in itertools.product(range(states), joint):
        for t in range(horizon):
            if stationary and t:
                law[t, state, action] = law[0, state, action]
                continue
            number = int(rng.integers(1, 5))
            chances = rng.multinomial(16 - number, np.ones(number) / number) + 1
            law[t, state, action] = [
                (
                    c / 16,
                    int(rng.integers(states)),
                    int(rng.integers(2)),
                    tuple(rng.integers(-2, 3, size=players).astype(float)),
                )
                for c in chances.tolist()
            ]
    shares = {(t, s): rng.dirichlet(np.ones(len(joint))) for t in range(horizon) for s in range(states)}
    game = ace.MarkovGame.from_functions(
        players=names,
        actions=lambda t, s: [("x", "y")] * players,
        outcomes=lambda t, s, a: law[t, s, a],
        horizon=horizon,
        initial=0,
        budget={"c": 2 * horizon},
    )
    return Paying(game, law, {key: dict(zip(joint, own.tolist(), strict=True)) for key, own in shares.items()})
