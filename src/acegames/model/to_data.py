"""The way out: a game as one long table, as `from_table` takes it, in linear time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption
from acegames.model.budgets import own_budget
from acegames.model.from_table import check_columns, cost_columns
from acegames.model.numbers import plain
from acegames.model.random_costs import Cost

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame


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
    """Return the rest of the game, as arguments of `from_table`."""
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
