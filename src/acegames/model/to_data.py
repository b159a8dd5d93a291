"""The ways out: a game as dense arrays, as `from_arrays` takes them, or as one long table.

Dense arrays cannot say everything that a game can; a table can, in linear time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption, TooLarge
from acegames.model.arrays import Ints, owners, pointers
from acegames.model.budgets import own_budget
from acegames.model.checks import place
from acegames.model.from_table import check_columns, cost_columns
from acegames.model.layers import Layer
from acegames.model.numbers import plain
from acegames.model.random_costs import Cost
from acegames.numerics import WRITTEN_PRODUCT

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame


LARGEST = 2**30
"""Bytes of the largest array."""


def game_to_arrays(game: MarkovGame) -> dict[str, Any]:
    """Return the game as dense arrays, which `MarkovGame.from_arrays(**arrays)` takes.

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
    dense = layers[0]
    if by_next:
        for k, arrays in enumerate(layers):
            arrays["reward"] = _by_next(game, k)
    if len(layers) > 1:
        dense = {name: np.stack([layers[k][name] for k in game.layer_at]) for name in layers[0]}
    square = (game.horizon, *counts[1:]) == (*counts[1:], len(game.states))  # then time could be taken for a state
    if square and by_next and len(layers) == 1:
        dense["reward"] = np.stack([dense["reward"]] * game.horizon)
    elif square and not by_next and len(layers) > 1:
        dense["reward"] = np.stack([dense["reward"]] * len(game.states), axis=-2)
    return rest_of(game) | dense


def _ranks(layer: Layer) -> Ints:
    """Return the number of each outcome's cost vector among the distinct ones of its row."""
    row = owners(layer.out_ptr)
    distinct, which = np.unique(np.column_stack([row, layer.cost]), axis=0, return_inverse=True)
    return which.reshape(-1) - np.searchsorted(distinct[:, 0], row)


def _by_next(game: MarkovGame, k: int) -> NDArray[Any]:
    """Return what layer k pays by next state, (S, A1..An, S, N)."""
    layer, n = game.layers[k].apart(), len(game.states)
    row = owners(layer.out_ptr)
    paid, rewards = layer.paid(row, slice(None)), np.zeros((len(layer.reward), n, len(game.players)))
    rewards[row, layer.next_state] = paid
    other = np.flatnonzero((rewards[row, layer.next_state] != paid).any(axis=1))
    if len(other):
        spot, after = game.place(game.layer_at.index(k), int(row[other[0]])), layer.next_state[other[0]]
        raise InvalidOption(
            f"{spot}: next state {game.states[int(after)]!r} comes with different rewards, which arrays cannot say; use to_table"
        )
    whole = np.zeros((n, *map(len, game.actions), *rewards.shape[1:]))
    whole[(owners(layer.row_ptr), *layer.action.T)] = rewards
    return whole


def _dense(game: MarkovGame, k: int, rank: Ints, widest: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of layer k; next state and cost must be independent."""
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
    arrays = {"transition": moves, "reward": layer.reward, "legal": np.ones(rows, dtype=bool)}
    if game.constraints:
        known = numbers([Fraction(0), *(cost for values in game.cost_values for cost in values)])
        code = np.zeros((rows, widest, len(game.constraints)), dtype=np.int64)
        code[row, rank] = layer.cost + 1 + pointers([len(values) for values in game.cost_values])[:-1]
        arrays |= {"cost": known[code], "cost_prob": chances}
    at = (owners(layer.row_ptr), *layer.action.T)
    for name, array in arrays.items():
        arrays[name] = np.zeros((len(game.states), *map(len, game.actions), *array.shape[1:]), array.dtype)
        arrays[name][at] = array
    return arrays


# Tables.

CHUNK = 2**16  # lines that are looked at together


def game_to_table(game: MarkovGame) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the game as one long table {column: values}, and the other arguments of `from_table`.

    With `table, rest = game.to_table()`, `MarkovGame.from_table(table, **rest)` is the same
    game. There is a line for each outcome, with the columns `t` (where the game depends on
    time), `state`, one per player (its action), `next_state`, `probability`, `reward_` and each
    player, and one per constraint (its cost), named as `from_table` wants it. An outcome that may
    pay different amounts has a line for each.
    """
    check_no_tails(game)
    costs = [numbers(values) for values in game.cost_values]
    pieces = table_pieces(game, objects(game.states), [objects(labels) for labels in game.actions], costs)
    columns = map(np.concatenate, zip(*pieces, strict=True))
    return dict(zip(column_names(game), columns, strict=True)), rest_of(game)


def table_pieces(
    game: MarkovGame, states: NDArray[Any], actions: list[NDArray[Any]], costs: list[NDArray[Any]]
) -> Iterator[list[NDArray[Any]]]:
    """Yield the columns in order, some lines at a time.

    `states`, `actions` and `costs` are what stands for them.

    A layer that holds at every time comes once.
    """
    timed = len(game.layers) > 1
    for t in range(game.horizon if timed else 1):
        layer = game.layer(t).apart()
        for first in range(0, len(layer.prob), CHUNK):
            out = slice(first, min(first + CHUNK, len(layer.prob)))
            row = np.searchsorted(layer.out_ptr, np.arange(out.start, out.stop), side="right") - 1
            state = np.searchsorted(layer.row_ptr, row, side="right") - 1
            yield [
                *([np.full(len(row), t)] if timed else []),
                states[state],
                *(own[layer.action[row, i]] for i, own in enumerate(actions)),
                states[layer.next_state[out]],
                layer.prob[out],
                *layer.paid(row, out).T,
                *(own[layer.cost[out, m]] for m, own in enumerate(costs)),
            ]


def column_names(game: MarkovGame) -> list[str]:
    """Return the columns in order; InvalidGame where two would have the same name."""
    names = ["t", "state", *map(str, game.players), "next_state", "probability", *(f"reward_{p}" for p in game.players)]
    names += map(str, cost_columns(names, game.constraints))
    return check_columns(names)[len(game.layers) == 1 :]


def rest_of(game: MarkovGame) -> dict[str, Any]:
    """Return the rest of the game, as arguments of `from_table` and `from_arrays`."""
    rest: dict[str, Any] = {
        "players": game.players,
        "horizon": game.horizon,
        "initial": {game.states[s]: p for s, p in game.initial},
        "states": game.states,
        "actions": game.actions,
        "name": game.name,
    }
    return rest | ({"constraints": game.constraints, "budget": own_budget(game)} if game.constraints else {})


def check_no_tails(game: MarkovGame) -> None:
    """Refuse games that were cut from infinite play: their bounds on the rest would be lost."""
    if game.tails is not None:
        raise InvalidOption("the game was cut short by `discount`, whose bounds tables cannot hold; save it to a file")


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """Return an array of the very objects, also of tuples."""
    return np.fromiter(values, dtype=object, count=len(values))


def numbers(costs: Sequence[Cost]) -> NDArray[Any]:
    """Return an array of costs: whole numbers, or floats where these are exact, else objects."""
    values = [plain(c) if isinstance(c, Fraction) else c for c in costs]
    if all(type(v) is int and abs(v) < 2**63 for v in values):
        return np.array(values, dtype=np.int64)
    if all(type(v) is float or (type(v) is int and abs(v) <= 2**53) for v in values):
        return np.array(values, dtype=np.float64)
    return objects(values)
