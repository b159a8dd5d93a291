"""A game as dense arrays: the inverse of `from_arrays`, where dense arrays can say it."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption, TooLarge
from acegames.model.arrays import Ints, owners, pointers
from acegames.model.checks import place
from acegames.model.layers import Layer
from acegames.model.to_table import check_no_tails, numbers, rest_of
from acegames.numerics import WRITTEN_PRODUCT

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame

LARGEST = 2**30
"""Bytes of the largest array."""


def game_to_arrays(game: MarkovGame) -> dict[str, Any]:
    """The game as dense arrays: `MarkovGame.from_arrays(**game.to_arrays())` is the same game.

    Where next state and cost are both random, probabilities may differ in the last bit. Rewards are
    (S, A1..An, N), of a game that depends on time (T, S, A1..An, N); where all these sizes are
    equal, so that time could be taken for a state, (T, S, A1..An, S, N).

    Raises:
        InvalidOption: dense arrays cannot hold the game: the cost depends on the next state, or
            a state has no action at some time.
        TooLarge: an array would take more than a gigabyte.
    """
    check_no_tails(game)
    for k, layer in enumerate(game.layers):
        if not np.diff(layer.row_ptr).all():
            spot = place(game.layer_at.index(k), game.states[int(np.argmin(np.diff(layer.row_ptr)))])
            raise InvalidOption(
                f"{spot}: cannot occur and has no joint action, but dense arrays need one in every state at every time; use to_table"
            )
    ranks = [_ranks(layer) for layer in game.layers]
    widest = max(int(rank.max()) for rank in ranks) + 1
    counts = (len(game.layers), len(game.states), *map(len, game.actions))
    size = 8 * int(np.prod([float(c) for c in counts])) * max(len(game.states), widest * len(game.constraints))
    if size > LARGEST:
        raise TooLarge(f"dense arrays would take {size:.2g} bytes, the limit is {LARGEST}; use to_table")
    layers = [_dense(game, k, rank, widest) for k, rank in enumerate(ranks)]
    stacked = {name: np.stack([layers[k][name] for k in game.layer_at]) for name in layers[0]}
    if stacked["reward"].shape[:-1] == stacked["transition"].shape[1:]:  # `from_arrays` could take time for a state
        stacked["reward"] = np.stack([stacked["reward"]] * len(game.states), axis=-2)
    return rest_of(game) | (stacked if len(layers) > 1 else layers[0])


def _ranks(layer: Layer) -> Ints:
    """The number of each outcome's cost vector among the distinct ones of its row."""
    row = owners(layer.out_ptr)
    distinct, which = np.unique(np.column_stack([row, layer.cost]), axis=0, return_inverse=True)
    return which.reshape(-1) - np.searchsorted(distinct[:, 0], row)


def _dense(game: MarkovGame, k: int, rank: Ints, widest: int) -> dict[str, NDArray[Any]]:
    """The arrays of layer k, without a time axis; next state and cost must be independent."""
    layer = game.layers[k]
    row, rows = owners(layer.out_ptr), len(layer.reward)
    moves, chances = np.zeros((rows, len(game.states))), np.zeros((rows, widest))
    np.add.at(moves, (row, layer.next_state), layer.prob)
    np.add.at(chances, (row, rank), layer.prob)
    # With one next state or one cost, the other's probabilities are exactly the outcomes' own.
    one_cost = (chances > 0).sum(axis=1) == 1
    one_state = ((moves > 0).sum(axis=1) == 1) & ~one_cost
    chances[one_cost], moves[one_state] = chances[one_cost] > 0, moves[one_state] > 0
    whole = np.diff(layer.out_ptr) == (moves > 0).sum(axis=1) * (chances > 0).sum(axis=1)
    apart = np.abs(moves[row, layer.next_state] * chances[row, rank] - layer.prob) > WRITTEN_PRODUCT * layer.prob
    wrong = np.union1d(np.flatnonzero(~whole), row[apart])
    if len(wrong):
        spot = game.place(game.layer_at.index(k), int(wrong[0]))
        raise InvalidOption(f"{spot}: the cost depends on the next state, which arrays cannot say; use to_table")
    found = {"transition": moves, "reward": layer.reward, "legal": np.ones(rows, dtype=bool)}
    if game.constraints:
        known = numbers([Fraction(0), *(cost for values in game.cost_values for cost in values)])
        code = np.zeros((rows, widest, len(game.constraints)), dtype=np.int64)
        code[row, rank] = layer.cost + 1 + pointers([len(values) for values in game.cost_values])[:-1]
        found |= {"cost": known[code], "cost_prob": chances}
    at = (owners(layer.row_ptr), *layer.action.T)
    for name, array in found.items():
        found[name] = np.zeros((len(game.states), *map(len, game.actions), *array.shape[1:]), array.dtype)
        found[name][at] = array
    return found
