"""A game as dense arrays: the inverse of `from_arrays`, where dense arrays can say it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption, TooLarge
from acegames.model.arrays import Ints, owners
from acegames.model.costs.random import RandomCost
from acegames.model.game import Layer, MarkovGame, place
from acegames.model.numbers import plain
from acegames.model.to_table import check_no_tails, numbers, rest_of
from acegames.numerics import ARRAY_PRODUCT

LARGEST = 2**30
"""Bytes of the largest array."""


def to_arrays(game: MarkovGame) -> dict[str, Any]:
    """See `MarkovGame.to_arrays`."""
    check_no_tails(game)
    tables = [_Table(game, k) for k in range(len(game.layers))]
    widest = max(table.widest for table in tables)
    counts = (len(game.layers), len(game.states), *map(len, game.actions))
    size = 8 * int(np.prod([float(c) for c in counts])) * max(len(game.states), widest * len(game.constraints))
    if size > LARGEST:
        raise TooLarge(f"dense arrays would take {size:.2g} bytes, the limit is {LARGEST}; use to_table")
    found = rest_of(game)
    names = ("transition", "reward", "legal", *(("cost", "cost_prob") if game.constraints else ()))
    layers = [table.dense(widest) for table in tables]
    for name in names:
        array = np.stack([layers[k][name] for k in (game.layer_at if len(layers) > 1 else (0,))])
        found[name] = array if len(layers) > 1 else array[0]
    return found


class _Table:
    """One layer: for each row its next states and its costs, which must be independent."""

    def __init__(self, game: MarkovGame, k: int) -> None:
        self.game, self.layer, self.t = game, game.layers[k], game.layer_at.index(k)
        layer: Layer = self.layer
        if (np.diff(layer.row_ptr) == 0).any():
            state = int(np.flatnonzero(np.diff(layer.row_ptr) == 0)[0])
            raise InvalidOption(
                f"{place(self.t, game.states[state])}: cannot occur and has no joint action, but dense arrays need one in every state at "
                "every time; use to_table"
            )
        self.state = owners(layer.row_ptr)
        self.row = owners(layer.out_ptr)
        self.codes, self.place = self._distinct_costs()  # (D, M) and for each outcome its number within the row
        self.widest = int(self.place.max()) + 1

    def _distinct_costs(self) -> tuple[Ints, Ints]:
        """The distinct cost vectors of each row, and which of them each outcome has."""
        keys = np.column_stack([self.row, self.layer.cost]).astype(np.int64)
        distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
        first = np.searchsorted(distinct[:, 0], np.arange(len(self.layer.reward)))
        return distinct, inverse.reshape(-1) - first[self.row]

    def dense(self, widest: int) -> dict[str, NDArray[Any]]:
        """The arrays of this layer, without a time axis."""
        game, layer = self.game, self.layer
        shape = (len(game.states), *map(len, game.actions))
        at = (self.state, *layer.action.T)
        moves = np.zeros((len(layer.reward), len(game.states)))
        np.add.at(moves, (self.row, layer.next_state), layer.prob)
        chances = np.zeros((len(layer.reward), widest))
        np.add.at(chances, (self.row, self.place), layer.prob)
        # With one next state or one cost, the other's probabilities are exactly the outcomes' own.
        one_cost = (chances > 0).sum(axis=1) == 1
        one_state = ((moves > 0).sum(axis=1) == 1) & ~one_cost
        chances[one_cost], moves[one_state] = chances[one_cost] > 0, moves[one_state] > 0
        self._check_independent(moves, chances)
        found: dict[str, NDArray[Any]] = {"legal": np.zeros(shape, dtype=bool)}
        for name, rows, width in (("transition", moves, len(game.states)), ("reward", layer.reward, len(game.players))):
            found[name] = np.zeros((*shape, width))
            found[name][at] = rows
        found["legal"][at] = True
        if game.constraints:
            found["cost_prob"] = np.zeros((*shape, widest))
            found["cost_prob"][at] = chances
            found["cost"] = self._costs(shape, at, widest)
        return found

    def _costs(self, shape: tuple[int, ...], at: tuple[Any, ...], widest: int) -> NDArray[Any]:
        """The costs (S, A1..An, K, M), zero where there are fewer."""
        rank = np.arange(len(self.codes)) - np.searchsorted(self.codes[:, 0], self.codes[:, 0])
        where = (*(own[self.codes[:, 0]] for own in at), rank)
        columns = []
        for m, values in enumerate(self.game.cost_values):
            known = numbers([0, *(c if isinstance(c, RandomCost) else plain(c) for c in values)])
            code = np.zeros((*shape, widest), dtype=np.int64)
            code[where] = 1 + self.codes[:, 1 + m]
            columns.append(known[code])
        exact = any(column.dtype == object for column in columns)
        return np.stack([column.astype(object) if exact else column for column in columns], axis=-1)

    def _check_independent(self, moves: NDArray[np.float64], chances: NDArray[np.float64]) -> None:
        count = np.diff(self.layer.out_ptr)
        whole = count == (moves > 0).sum(axis=1) * (chances > 0).sum(axis=1)
        product = moves[self.row, self.layer.next_state] * chances[self.row, self.place]
        apart = np.abs(product - self.layer.prob) > ARRAY_PRODUCT * self.layer.prob
        wrong = np.union1d(np.flatnonzero(~whole), self.row[apart])
        if len(wrong):
            row = int(wrong[0])
            where = place(
                self.t, self.game.states[int(self.state[row])], self.game.joint_action(self.layer.action[row])
            )
            raise InvalidOption(f"{where}: the cost depends on the next state, which arrays cannot say; use to_table")
