"""A game as one long table, one line per outcome: the inverse of `from_table`, in linear time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidGame, InvalidOption
from acegames.model.arrays import Ints
from acegames.model.costs.random import Cost, RandomCost
from acegames.model.game import Layer, MarkovGame
from acegames.model.numbers import plain
from acegames.model.table_columns import cost_columns

CHUNK = 2**16  # lines that are looked at together


@dataclass(frozen=True, eq=False)
class Lines:
    """Some lines of the table, by indices."""

    t: int | None  # None: at every time
    state: Ints  # (L,)
    action: NDArray[np.int32]  # (L, N)
    next_state: NDArray[np.int32]  # (L,)
    prob: NDArray[np.float64]  # (L,)
    reward: NDArray[np.float64]  # (L, N)
    cost: NDArray[np.int32]  # (L, M) codes into the game's cost values


def to_table(game: MarkovGame) -> tuple[dict[str, Any], dict[str, Any]]:
    """See `MarkovGame.to_table`."""
    check_no_tails(game)
    columns: dict[str, list[Any]] = {name: [] for name in column_names(game)}
    state, actions = objects(game.states), [objects(labels) for labels in game.actions]
    costs = [numbers([_shown(c) for c in values]) for values in game.cost_values]
    for lines in outcome_lines(game):
        parts = [
            state[lines.state],
            *(own[lines.action[:, i]] for i, own in enumerate(actions)),
            state[lines.next_state],
            lines.prob,
            *lines.reward.T,
            *(own[lines.cost[:, m]] for m, own in enumerate(costs)),
        ]
        if lines.t is not None:
            parts.insert(0, np.full(len(lines.state), lines.t))
        for column, part in zip(columns.values(), parts, strict=True):
            column.append(part)
    return {name: np.concatenate(parts) for name, parts in columns.items()}, rest_of(game)


def outcome_lines(game: MarkovGame, most: int = CHUNK) -> Iterator[Lines]:
    """The lines in order, up to `most` at once. A layer that holds at every time comes once."""
    timed = len(game.layers) > 1
    for t in range(game.horizon if timed else 1):
        layer = game.layer(t)
        for first in range(0, len(layer.prob), most):
            yield _lines(layer, t if timed else None, first, min(first + most, len(layer.prob)))


def _lines(layer: Layer, t: int | None, first: int, last: int) -> Lines:
    row = np.searchsorted(layer.out_ptr, np.arange(first, last), side="right") - 1
    state = np.searchsorted(layer.row_ptr, row, side="right") - 1
    outs = slice(first, last)
    return Lines(
        t, state, layer.action[row], layer.next_state[outs], layer.prob[outs], layer.reward[row], layer.cost[outs]
    )


def column_names(game: MarkovGame) -> list[str]:
    """The columns in order; InvalidGame where two would have the same name."""
    names = ["t", "state", *map(str, game.players), "next_state", "probability", *(f"reward_{p}" for p in game.players)]
    names += map(str, cost_columns(names, game.constraints))
    return check_columns(names)[len(game.layers) == 1 :]


def check_columns(names: list[str]) -> list[str]:
    """The names; InvalidGame where one occurs twice."""
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice:
        raise InvalidGame(f"the column {twice[0]!r} would have two meanings; rename the player or constraint")
    return names


def rest_of(game: MarkovGame) -> dict[str, Any]:
    """What is not in the table, as arguments of `from_table` and `from_arrays`."""
    found: dict[str, Any] = {
        "players": game.players,
        "horizon": game.horizon,
        "initial": {game.states[s]: p for s, p in game.initial},
        "states": game.states,
        "actions": game.actions,
        "name": game.name,
    }
    if game.constraints:
        found["constraints"] = game.constraints
        found["budget"] = {
            label: plain(schedule[0]) if len(set(schedule)) == 1 else [plain(b) for b in schedule]
            for label, schedule in zip(game.constraints, zip(*game.budgets, strict=True), strict=True)
        }
    return found


def check_no_tails(game: MarkovGame) -> None:
    """Refuse games that were cut from infinite play, whose bounds on the rest would be lost."""
    if game.tails is not None:
        raise InvalidOption(
            "the game was cut short by `discount`, and arrays and tables cannot hold the bounds on what comes later; save it to a file"
        )


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """An array of the very objects, tuples too."""
    found = np.empty(len(values), dtype=object)
    for k, value in enumerate(values):
        found[k] = value
    return found


def numbers(values: Sequence[Any]) -> NDArray[Any]:
    """An array of exact numbers: whole numbers, or floats where these are exact, else objects."""
    if all(type(v) is int and abs(v) < 2**63 for v in values):
        return np.array(values, dtype=np.int64)
    if all(type(v) is float or (type(v) is int and abs(v) <= 2**53) for v in values):
        return np.array(values, dtype=np.float64)
    return objects(values)


def _shown(cost: Cost) -> Any:
    return cost if isinstance(cost, RandomCost) else plain(cost)
