"""Independent Q-learners, shielded or not: who breaks a budget, and what do they earn?

Every player keeps a table of its own over the situations (time, state, what was spent) and learns
from its own reward as if it were alone. All choose at once, each within its own mask. Three ways:

- shield: the masks are the shield's products;
- no shield: the same on the game without its budgets, so that masks allow every legal action;
- no shield, but fined: the usual remedy, a player loses 10 for every step that ends over a budget.

Twenty episodes are played side by side with the shield's arrays. They explore less and less, and in
the last fifth not at all.

Run: python examples/q_learning.py [folder for the curves and the picture]
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from learning_curves import FINED, LATE, NO_SHIELD, SHIELD, Bin, Episode, compare
from showing import run

import acegames as ace

GAMES = ("intersection", "drones", "medium_access_3")
FINE = 10.0
RATE = 0.1
TOGETHER = 20  # episodes side by side


def learn(game: ace.MarkovGame, how: str, *, steps: int, seed: int) -> Iterator[Episode]:
    """Let independent Q-learners play so many steps of a game; yield their episodes."""
    shield = ace.Shield(game if how == SHIELD else ace.baselines.without_budgets(game))
    world, rng, played = World(game, shield), np.random.default_rng(seed), 0
    tables = [np.zeros((len(shield.mask_of), n)) for n in shield.shape]
    while played < steps:
        explore = max(0.0, 1 - played / (LATE * steps))
        pairs = world.begin(rng)
        for _ in range(game.horizon):
            masks = [own[shield.mask_of[pairs]] for own in shield.products]
            chosen = [choose(q[pairs], mask, explore, rng) for q, mask in zip(tables, masks, strict=True)]
            after, rewards, over = world.step(pairs, np.column_stack(chosen), rng)
            for i, q in enumerate(tables):
                paid = rewards[:, i] - (FINE * over if how == FINED else 0.0)
                later = best(q[after], shield.products[i][shield.mask_of[after]])
                q[pairs, chosen[i]] += RATE * (paid + later - q[pairs, chosen[i]])
            pairs = after
        for total, over in zip(world.total, world.over, strict=True):
            played += game.horizon
            yield Episode(played, float(total), int(over))


def choose(values: np.ndarray, mask: np.ndarray, explore: float, rng: np.random.Generator) -> np.ndarray:
    """An allowed action per episode, (B,): any with the probability `explore`, else the best."""
    wander = rng.random(len(values)) < explore
    scores = np.where(wander[:, None], rng.random(values.shape), values)
    return np.where(mask, scores, -np.inf).argmax(axis=1)


def best(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """What the best allowed action is worth, (B,); nothing at the end, where none is allowed."""
    return np.where(mask.any(axis=1), np.where(mask, values, -np.inf).max(axis=1), 0.0)


class World:
    """Episodes of a game side by side, with budgets counted apart from the shield."""

    def __init__(self, game: ace.MarkovGame, shield: ace.Shield) -> None:
        self.game, self.shield = game, shield
        self.limits = np.array(
            [[float(b / u) for b, u in zip(row, shield.tracker.units, strict=True)] for row in game.budgets]
        )
        self.costs = [shield.cost_units(_amounts(game, layer)) for layer in game.layers]
        self.below = [np.concatenate([[0.0], np.cumsum(layer.prob)]) for layer in game.layers]
        self.row_of = [self._rows(layer) for layer in game.layers]

    def _rows(self, layer) -> np.ndarray:
        """The layer's row of every state and joint action, (S, *shape); -1 where it has none."""
        found = np.full((len(self.game.states), *self.shield.shape), -1)
        state = np.repeat(np.arange(len(self.game.states)), np.diff(layer.row_ptr))
        found[(state, *layer.action.T)] = np.arange(len(state))
        return found

    def begin(self, rng: np.random.Generator) -> np.ndarray:
        """Begin episodes anew; return their pairs in the shield."""
        first, weights = zip(*self.game.initial, strict=True)
        self.t, self.states = 0, rng.choice(first, TOGETHER, p=weights)
        self.spent = np.zeros((TOGETHER, len(self.game.constraints)), dtype=np.int64)
        self.total, self.over = np.zeros(TOGETHER), np.zeros(TOGETHER, dtype=np.int64)
        return self.shield.pairs(0, self.states, self.spent)

    def step(
        self, pairs: np.ndarray, actions: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Play joint actions (B, N); return the next pairs, rewards (B, N), and who is over (B,)."""
        number = self.game.layer_at[self.t]
        layer, below = self.game.layers[number], self.below[number]
        played = self.row_of[number][(self.states, *actions.T)]
        low, high = below[layer.out_ptr[played]], below[layer.out_ptr[played + 1]]
        out = np.searchsorted(below, low + rng.random(TOGETHER) * (high - low), "right") - 1
        out = np.clip(out, layer.out_ptr[played], layer.out_ptr[played + 1] - 1)  # a sum may be rounded
        cost, self.states = self.costs[number][out], layer.next_state[out].astype(np.int64)
        after = self.shield.next_pairs(pairs, actions, cost, self.states)
        self.spent += cost
        over = (self.spent > self.limits[self.t]).any(axis=1)
        self.total += layer.reward[played].sum(axis=1)
        self.over += over
        self.t += 1
        return after, layer.reward[played], over


def _amounts(game: ace.MarkovGame, layer) -> list[list]:
    """The exact costs of every outcome."""
    return [[values[code] for values, code in zip(game.cost_values, line, strict=True)] for line in layer.cost.tolist()]


def main(folder: str | None = None, *, steps: int = 120_000, seeds: int = 5) -> list[Bin]:
    """Let learners play each game in each way, print the table; with a folder, draw the curves."""

    def play(name: str, how: str, *, steps: int, seed: int) -> Iterator[Episode]:
        return learn(ace.catalog.get(name), how, steps=steps, seed=seed)

    return compare("q_learning", play, GAMES, (SHIELD, NO_SHIELD, FINED), folder, steps=steps, seeds=seeds)


if __name__ == "__main__":
    run(main)
