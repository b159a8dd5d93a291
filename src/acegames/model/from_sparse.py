"""Games from flat arrays: rows (a state and a legal joint action each) and their outcomes."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acegames.errors import InvalidGame
from acegames.model.arrays import Floats
from acegames.model.assemble import Names, RawLayer, assemble, read_costs
from acegames.model.budgets import read_budget
from acegames.model.building import SMALLER_GAME
from acegames.model.checks import Label, check_horizon, check_labels, float_array
from acegames.model.costs.random import Cost
from acegames.model.user_functions import public
from acegames.system.memory import within_memory

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame


@public("MarkovGame.from_sparse")
@within_memory("building the game", SMALLER_GAME)
def game_from_sparse(
    *,
    row_state: ArrayLike,
    row_action: ArrayLike,
    reward: ArrayLike,
    out_row: ArrayLike,
    prob: ArrayLike,
    next_state: ArrayLike,
    cost: Any = None,
    budget: Any = None,
    horizon: int,
    initial: Any = 0,
    row_t: ArrayLike | None = None,
    out_reward: ArrayLike | None = None,
    players: Sequence[Label] | None = None,
    states: Sequence[Label] | None = None,
    actions: Sequence[Sequence[Label]] | None = None,
    constraints: Sequence[Label] | None = None,
    name: str = "",
) -> MarkovGame:
    """Build a game from flat arrays of numbers: the fastest way, made for millions of outcomes.

    A row is one legal joint action of one state. Rows and outcomes may be in any order; those that
    are in order already (rows by state and actions, outcomes by row, next state and cost) are not
    sorted again.

    Args:
        row_state: (R,) the number of each row's state.
        row_action: (R, N) the number of each player's action.
        reward: (R, N) reward of each player.
        out_row: (K,) the row that each outcome belongs to.
        prob: (K,) probabilities; those of a row sum to one.
        next_state: (K,) the number of the next state.
        out_reward: (K, N) what each outcome pays each player, besides `reward`. Play pays what is
            drawn, and solving takes the mean.
        cost: (K, M), or (K,) when M = 1: numbers, read as in `from_arrays`. Leave out together with
            `budget` for a game without budgets.
        budget: as in `from_arrays`.
        horizon: number of steps, at least 1.
        initial: a state, or {state: probability}.
        row_t: (R,) the time of each row; left out, every row holds at every time.
        players, states, actions, constraints: labels in the order of the numbers; integers from 0
            where left out, as many as the arrays name.
        name: a name for people.

    Raises:
        InvalidGame: naming the place, the value and the rule.
    """
    horizon = check_horizon(horizon)
    limits, budgets = read_budget(budget, constraints, horizon)
    rewards = float_array("reward", reward)
    if rewards.ndim != 2 or not rewards.shape[1]:
        raise InvalidGame(f"reward has shape {rewards.shape}, must be (rows, players)")
    rows, n = rewards.shape
    chances = float_array("prob", prob)
    if chances.ndim != 1:
        raise InvalidGame(f"prob has shape {chances.shape}, must be (outcomes,)")
    outcomes = len(chances)
    _check_length("reward", rewards, "rows", row_state=row_state, row_action=row_action)
    _check_length("prob", chances, "outcomes", out_row=out_row, next_state=next_state)
    state = _whole("row_state", row_state, (rows,), "rows")
    action = _whole("row_action", row_action, (rows, n), "rows, players")
    after = _whole("next_state", next_state, (outcomes,), "outcomes")
    owner = _whole("out_row", out_row, (outcomes,), "outcomes")
    _check_range("out_row", owner, rows, "rows")
    seen = max(int(state.max(initial=-1)), int(after.max(initial=-1))) + 1
    state_labels = check_labels("states", range(seen) if states is None else states)
    _check_range("row_state", state, len(state_labels), "states")
    _check_range("next_state", after, len(state_labels), "states")
    names = Names(_players(players, n), state_labels, _action_labels(actions, action), limits)
    for i, labels in enumerate(names.actions):
        _check_range(f"row_action of player {names.players[i]!r}", action[:, i], len(labels), "actions")
    values, codes = _costs(cost, outcomes, limits)
    action, after = action.astype(np.int32), after.astype(np.int32)  # copies: a game's arrays are its own
    paid = None if out_reward is None else _paid(out_reward, (outcomes, n), rewards, owner)
    whole = RawLayer(tuple(range(horizon)), state, action, rewards, owner, chances, after, codes, paid)
    layers = [whole] if row_t is None else _by_time(whole, _times(row_t, rows, horizon), horizon)
    return assemble(names, layers, values, horizon=horizon, initial=initial, budgets=budgets, name=name)


def _paid(given: ArrayLike, shape: tuple[int, int], rewards: Floats, owner: NDArray[Any]) -> Floats:
    """Return what outcomes pay in all."""
    own = float_array("out_reward", given)
    if own.shape != shape:
        raise InvalidGame(f"out_reward has shape {own.shape}, must be {shape} (outcomes, players)")
    return np.asarray(own + rewards[owner])


def _check_length(what: str, array: Floats, of: str, **others: Any) -> None:
    """Refuse an array that has another length than all others of the same axis."""
    lengths = {len(given) for given in others.values() if isinstance(given, Sized)}
    if len(lengths) == 1 and {len(array)} != lengths:
        rule = f"must have {lengths.pop()} {of}, as {' and '.join(others)} have"
        raise InvalidGame(f"{what} has shape {array.shape}, {rule}")


def _whole(what: str, given: ArrayLike, shape: tuple[int, ...], axes: str) -> NDArray[Any]:
    try:
        array = np.asarray(given)
    except ValueError as error:  # of lists of different lengths
        raise InvalidGame(f"{what}: not an array of whole numbers ({error})") from None
    if array.shape != shape:
        raise InvalidGame(f"{what} has shape {array.shape}, must be {shape} ({axes})")
    if array.dtype.kind not in "iu" and array.size:
        raise InvalidGame(f"{what} has entries of type {array.dtype}, must be whole numbers")
    return array if array.dtype.kind == "i" else array.astype(np.int64)


def _check_range(what: str, numbers: NDArray[Any], count: int, of: str) -> None:
    if not len(numbers) or (int(numbers.min()) >= 0 and int(numbers.max()) < count):
        return
    k = int(np.flatnonzero((numbers < 0) | (numbers >= count))[0])
    raise InvalidGame(f"{what}, entry {k}: {numbers[k]}, must be at least 0 and less than {count}, the number of {of}")


def _players(given: Sequence[Label] | None, n: int) -> tuple[Label, ...]:
    labels = check_labels("players", range(n) if given is None else given)
    if len(labels) != n:
        raise InvalidGame(f"players: {len(labels)} labels given, reward has a column for each of {n}")
    return labels


def _action_labels(given: Sequence[Sequence[Label]] | None, action: NDArray[Any]) -> tuple[tuple[Label, ...], ...]:
    if given is None:
        return tuple(tuple(range(int(column.max(initial=-1)) + 1)) for column in action.T)
    if len(given) != action.shape[1]:
        raise InvalidGame(f"actions: label lists for {len(given)} players, row_action has {action.shape[1]} columns")
    return tuple(check_labels(f"actions of player {i}", labels) for i, labels in enumerate(given))


def _times(given: ArrayLike, rows: int, horizon: int) -> NDArray[Any]:
    times = _whole("row_t", given, (rows,), "rows")
    _check_range("row_t", times, horizon, "steps")
    return times


def _by_time(whole: RawLayer, times: NDArray[Any], horizon: int) -> list[RawLayer]:
    """Return a layer for each time, from rows that hold at one time each."""
    order = np.argsort(times, kind="stable")
    begin = np.searchsorted(times[order], np.arange(horizon + 1))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    at = rank[whole.out_row]
    out_order = np.argsort(at, kind="stable")
    out_begin = np.searchsorted(at[out_order], begin)
    layers = []
    for t in range(horizon):
        rows, outs = order[begin[t] : begin[t + 1]], out_order[out_begin[t] : out_begin[t + 1]]
        layers.append(
            RawLayer(
                (t,),
                whole.row_state[rows],
                whole.row_action[rows],
                whole.reward[rows],
                at[outs] - begin[t],
                whole.prob[outs],
                whole.next_state[outs],
                whole.cost[outs],
                None if whole.paid is None else whole.paid[outs],
            )
        )
    return layers


def _costs(given: Any, outcomes: int, limits: tuple[Label, ...]) -> tuple[list[list[Cost]], NDArray[np.int32]]:
    """Return the exact values of each constraint, and the codes of each outcome."""
    if given is None:
        if limits:
            raise InvalidGame(f"cost: missing, but there are budgets for {list(limits)!r}")
        return [], np.empty((outcomes, 0), dtype=np.int32)
    if not limits:
        raise InvalidGame("cost: given, but there is no budget; give one number per constraint")
    array = given if isinstance(given, np.ndarray) else np.array(given, dtype=object)
    if array.ndim == 1 and len(limits) == 1:
        array = array[:, None]
    if array.shape != (outcomes, len(limits)):
        raise InvalidGame(f"cost has shape {array.shape}, must be {(outcomes, len(limits))} (outcomes, constraints)")
    codes = np.empty(array.shape, dtype=np.int32)
    values = []
    for m, label in enumerate(limits):
        found, codes[:, m] = read_costs(array[:, m], partial(_wrong_cost, label))
        values.append(found)
    return values, codes


def _wrong_cost(constraint: Label, entry: int, problem: str) -> InvalidGame:
    return InvalidGame(f"cost of {constraint!r}, entry {entry}: {problem}")
