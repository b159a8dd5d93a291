"""Rewards without the part that no choice can change, where that part is so large that its rounding would hide the rest.

A constant c_t taken from all rewards of time t takes c_t + c_{t+1} + ... from all values of time t and changes no equilibrium.
Floats near zero are finer than floats near the level of the rewards, so what is left is solved as finely as its own size allows. Rewards of
joint actions that no safe play can take do not count either: they become zero. Objectives that compare players with each other,
"egalitarian" and "fair", are told what was taken from each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.engines import Engine, EngineResult, Report
from acegames.engines.shelf import Shelf
from acegames.feasibility.lattice import Lattice
from acegames.model.game import Layer, MarkovGame
from acegames.numerics import LEVEL
from acegames.policy import PolicyLayer

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def solve_level(
    engine: Engine,
    game: MarkovGame,
    lattice: Lattice,
    concept: Concept,
    progress: Report | None,
    shelf: Shelf | None = None,
) -> EngineResult | None:
    """`engine.solve` of the game without its level, where that is worth it; the values have it again."""
    levelled = level(game, lattice)
    if levelled is None:
        return engine.solve(game, lattice, concept, progress, shelf)
    found = engine.solve(levelled.game, lattice, concept, progress, shelf, levelled.ahead)
    return None if found is None else levelled.back(found)


@dataclass(frozen=True, eq=False)
class Levelled:
    """A game without its level, and the way back."""

    game: MarkovGame
    ahead: Floats  # (H, N) what was taken from time t on

    def back(self, found: EngineResult) -> EngineResult:
        """The same answer with the values of the game as it was."""
        layers = [_raised(layer, up) for layer, up in zip(found.layers, self.ahead, strict=True)]
        return replace(found, values=found.values + self.ahead[0], layers=layers)


def _raised(layer: PolicyLayer, up: Floats) -> PolicyLayer:
    """In place where that can be: a layer that a checkpoint maps is not to be written."""
    if not layer.values.flags.writeable:
        return replace(layer, values=layer.values + up)
    np.add(layer.values, up, out=layer.values)
    return layer


def level(game: MarkovGame, lattice: Lattice) -> Levelled | None:
    """Take the level out of a game; None where rounding cannot hide anything in it."""
    if len(game.players) == 1:  # a maximum: there are no incentives that rounding could invent
        return None
    low, high = (np.zeros((game.horizon, len(game.players))) for _ in range(2))
    size = np.zeros(len(game.players))
    taken = _rows_in_play(game, lattice)
    for t, rows in enumerate(taken):
        reward = game.layer(t).reward
        low[t], high[t] = reward[rows].min(axis=0), reward[rows].max(axis=0)
        size += np.abs(reward).max(axis=0)
    if len(taken) < game.horizon or (size <= LEVEL * (high - low).sum(axis=0)).all():
        return None
    middle = low / 2 + high / 2
    middle[np.abs(middle) <= high - low] = 0.0  # no level to speak of; else the differences are exact
    return Levelled(_without(game, middle, taken), np.cumsum(middle[::-1], axis=0)[::-1])


def _without(game: MarkovGame, middle: Floats, taken: list[Mask]) -> MarkovGame:
    """The game with other rewards; times that stay alike share a layer."""
    number: dict[tuple[int, bytes], int] = {}
    layers: list[Layer] = []
    layer_at = []
    for k, c, rows in zip(game.layer_at, middle, taken, strict=True):
        reward = np.where(rows[:, None], game.layers[k].reward - c, 0.0)
        layer_at.append(number.setdefault((k, reward.tobytes()), len(layers)))
        if layer_at[-1] == len(layers):
            reward.setflags(write=False)
            layers.append(replace(game.layers[k], reward=reward))
    return replace(game, layers=tuple(layers), layer_at=tuple(layer_at))


def _rows_in_play(game: MarkovGame, lattice: Lattice) -> list[Mask]:
    """Of each time, the rows that keep the budgets after the least that can have been spent; shorter where none is left."""
    states, found = len(game.states), []
    here = np.zeros(states, dtype=bool)
    here[[s for s, _ in game.initial]] = True
    least = np.zeros((states, len(lattice.units)), dtype=np.int64)
    costs = [lattice.costs(layer.cost) for layer in game.layers]
    for t, k in enumerate(game.layer_at):
        table = game.layers[k]
        owner = np.repeat(np.arange(states), np.diff(table.row_ptr))
        row = np.repeat(np.arange(len(owner)), np.diff(table.out_ptr))
        total = least[owner[row]] + costs[k]
        rows = here[owner]
        rows[row[(total > lattice.budget[t]).any(axis=1)]] = False
        if not rows.any():
            break
        found.append(rows)
        to, spent = table.next_state[rows[row]], total[rows[row]]
        here = np.bincount(to, minlength=states) > 0
        least = np.full_like(least, np.iinfo(np.int64).max)
        np.minimum.at(least, to, spent)
        least[~here] = 0
    return found
