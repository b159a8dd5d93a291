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
    """Return the game as dense arrays: `MarkovGame.from_arrays(**game.to_arrays())` is the same
    game.

    Where next state and cost are both random, probabilities may differ in the last bit. Rewards are
    (S, A1..An, N), and (S, A1..An, S, N) where they come with the next state; of a game that
    depends on time (T, ...) of these. Where sizes are such that time could be taken for a state,
    they are (T, S, A1..An, S, N).

    Raises:
        InvalidOption: dense arrays cannot hold the game: the cost depends on the next state, what
            an outcome pays on more than the next state, or a state has no action at some time.
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
    by_next = any(layer.payments is not None for layer in game.layers)
    wide = max(len(game.states) * (len(game.players) if by_next else 1), widest * len(game.constraints))
    size = 8 * int(np.prod([float(c) for c in counts])) * wide
    if size > LARGEST:
        raise TooLarge(f"dense arrays would take {size:.2g} bytes, the limit is {LARGEST}; use to_table")
    layers = [_dense(game, k, rank, widest) for k, rank in enumerate(ranks)]
    found = layers[0]
    if by_next:
        for k, arrays in enumerate(layers):
            arrays["reward"] = _by_next(game, k)
    if len(layers) > 1:
        found = {name: np.stack([layers[k][name] for k in game.layer_at]) for name in layers[0]}
    square = (game.horizon, *counts[1:]) == (*counts[1:], len(game.states))  # then time could be taken for a state
    if square and by_next and len(layers) == 1:
        found["reward"] = np.stack([found["reward"]] * game.horizon)
    elif square and not by_next and len(layers) > 1:
        found["reward"] = np.stack([found["reward"]] * len(game.states), axis=-2)
    return rest_of(game) | found


def _ranks(layer: Layer) -> Ints:
    """Return the number of each outcome's cost vector among the distinct ones of its row."""
    row = owners(layer.out_ptr)
    distinct, which = np.unique(np.column_stack([row, layer.cost]), axis=0, return_inverse=True)
    return which.reshape(-1) - np.searchsorted(distinct[:, 0], row)


def _by_next(game: MarkovGame, k: int) -> NDArray[Any]:
    """Return what layer k pays by next state, (S, A1..An, S, N)."""
    layer, n = game.layers[k].apart(), len(game.states)
    row = owners(layer.out_ptr)
    paid, found = layer.paid(row, slice(None)), np.zeros((len(layer.reward), n, len(game.players)))
    found[row, layer.next_state] = paid
    other = np.flatnonzero((found[row, layer.next_state] != paid).any(axis=1))
    if len(other):
        spot, after = game.place(game.layer_at.index(k), int(row[other[0]])), layer.next_state[other[0]]
        raise InvalidOption(
            f"{spot}: next state {game.states[int(after)]!r} comes with different rewards, which arrays cannot say; use to_table"
        )
    whole = np.zeros((n, *map(len, game.actions), *found.shape[1:]))
    whole[(owners(layer.row_ptr), *layer.action.T)] = found
    return whole


def _dense(game: MarkovGame, k: int, rank: Ints, widest: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of layer k, without a time axis; next state and cost must be independent."""
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
