"""Games from numpy arrays: dense ones, or flat ones of rows and their outcomes.

A row is one legal joint action of one state.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acegames.errors import InvalidGame
from acegames.model.arrays import Bools, Floats, Ints
from acegames.model.assemble import Names, RawLayer, assemble, read_costs
from acegames.model.budgets import read_budget
from acegames.model.checks import Label, check_horizon, check_labels, float_array
from acegames.model.numbers import TINIEST
from acegames.model.random_costs import Cost
from acegames.model.user_functions import BUILDING, public, warn_of_game

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame


@public("MarkovGame.from_arrays", memory=BUILDING)
def game_from_arrays(
    transition: ArrayLike,
    reward: ArrayLike,
    cost: Any = None,
    budget: Any = None,
    *,
    horizon: int,
    initial: Any = 0,
    cost_prob: ArrayLike | None = None,
    legal: ArrayLike | None = None,
    players: Sequence[Label] | None = None,
    states: Sequence[Label] | None = None,
    actions: Sequence[Sequence[Label]] | None = None,
    constraints: Sequence[Label] | None = None,
    name: str = "",
) -> MarkovGame:
    """Build a game from dense arrays; each may have a leading time axis of length `horizon`.

    Args:
        transition: (S, A1..An, S) probabilities of the next state.
        reward: (S, A1..An, N) reward of each player; or (S, A1..An, S, N) where it depends on the
            next state: play pays that of the state it goes to, and solving takes the mean. (Where
            all sizes are equal, so that the first axis could be time, it is time, and a
            GameWarning says so; (T, S, A1..An, S, N) has one meaning.)
        cost: (S, A1..An, M); with `cost_prob`, (S, A1..An, K, M). Ints, Fractions, Decimals, or
            floats read by their decimal text; or distributions, each an object with a `cdf` and an
            upper bound (see `random_cost`). Leave out together with `budget` for a game without
            budgets.
        budget: (M,) or (T, M), `inf` allowed; or {constraint: number or T numbers}; or one number
            when M = 1. Row t of a schedule bounds the cumulative cost after the step at time t. (A
            flat list is one number per constraint.) In place of a number, `almost_sure(number)`
            bounds the total at the end alone.
        horizon: number of steps, at least 1.
        initial: a state, or {state: probability}.
        cost_prob: (S, A1..An, K) probabilities of K cost vectors, drawn independently of the next
            state.
        legal: bool (S, A1..An); True means allowed.
        players, states, actions, constraints: labels; integers from 0 where left out.
        name: a name for people.

    Raises:
        InvalidGame: naming the place, the value and the rule.
    """
    horizon = check_horizon(horizon)
    rewards, moves = float_array("reward", reward), float_array("transition", transition)
    n = rewards.shape[-1] if rewards.ndim else 0
    if n == 0 or moves.ndim not in (n + 2, n + 3):
        players = " or ".join(str(k) for k in (moves.ndim - 2, moves.ndim - 3) if k > 0)
        raise InvalidGame(
            f"transition has shape {moves.shape} and reward {rewards.shape}: must be (S, A1..An, S) and (S, A1..An, N), "
            "or (S, A1..An, S, N) where rewards depend on the next state, "
            f"each possibly with a leading time axis; the last axis of reward stands for the players, here {n}, "
            f"but the axes of transition are those of N = {players or 0}"
        )
    shape = moves.shape[-n - 2 : -1]  # (S, A1..An)
    if 0 in shape:
        raise InvalidGame(f"transition has shape {moves.shape}: every player needs at least one action, and S >= 1")
    budgets = read_budget(budget, constraints, horizon)
    labels, m = tuple(budgets), len(budgets)
    axes = ("S", *(f"A{i + 1}" for i in range(n)))
    counted = f"; the last axis of reward stands for the players, here {n}"
    moves = _timed("transition", moves, (*shape, shape[0]), horizon, (*axes, "S"), counted)
    by_next, by_time = (*shape, shape[0], n), (horizon, *shape, n)
    if rewards.shape == by_next == by_time and horizon > 1:
        warn_of_game(
            f"reward has shape {by_time}, which is (T, S, A1..An, N) and (S, A1..An, S, N) alike, and is read as the "
            "first. (T, S, A1..An, S, N) has one meaning: np.stack([reward] * S, axis=-2) says the first, "
            "np.stack([reward] * T) the second"
        )
    if rewards.shape in (by_next, (horizon, *by_next)) and rewards.shape != by_time:
        rewards = _timed("reward", rewards, by_next, horizon, (*axes, "S", "N"))
    else:
        rewards = _timed("reward", rewards, (*shape, n), horizon, (*axes, "N"))
    mask = _numbers("legal", np.ones(shape, bool) if legal is None else legal)
    allowed = _timed("legal", mask, shape, horizon, axes)
    if allowed.dtype != bool:
        raise InvalidGame(f"legal has entries of type {allowed.dtype}, must be bool (True means allowed)")
    _check_whether_costs(cost, labels)
    costs = _numbers("cost", np.zeros((*shape, 0)) if cost is None else cost)
    counted = f"; M is the number of budgets, here {m}"
    if cost_prob is None:
        chances = np.ones((1, *shape, 1))
        costs = _timed("cost", costs, (*shape, m), horizon, (*axes, "M"), counted)[..., None, :]
    else:
        chances = float_array("cost_prob", cost_prob)
        k = chances.shape[-1] if chances.ndim else 0
        chances = _timed("cost_prob", chances, (*shape, k), horizon, (*axes, "K"))
        costs = _timed("cost", costs, (*shape, k, m), horizon, (*axes, "K", "M"), counted)
    own_actions = _action_labels(actions, shape[1:])
    for i, (own, count) in enumerate(zip(own_actions, shape[1:], strict=True)):
        _check_number(f"actions of player {i}", own, count)
    names = Names(_labels("players", players, n), _labels("states", states, shape[0]), own_actions, labels)
    values, codes = _cost_codes(costs, chances, allowed, names)
    parts = (moves, rewards, allowed, chances, codes)
    timed = max(map(len, parts)) > 1
    layers = [
        _raw_layer(names, times, *(p[times[0] if len(p) > 1 else 0] for p in parts))
        for times in ([(t,) for t in range(horizon)] if timed else [tuple(range(horizon))])
    ]
    return assemble(names, layers, values, horizon=horizon, initial=initial, budgets=budgets, name=name)


def _raw_layer(names: Names, times: tuple[int, ...], *tables: NDArray[Any]) -> RawLayer:
    moves, rewards, allowed, chances, codes = tables

    def where(*state_and_action: Any) -> str:
        return names.place(times[0], *state_and_action, every_t=len(times) > 1)

    stuck = np.flatnonzero(~allowed.reshape(len(allowed), -1).any(axis=1))
    if len(stuck):
        raise InvalidGame(f"{where(stuck[0])}: no legal joint action, every state needs one")
    rows = np.argwhere(allowed)  # (R, 1+N)
    at = tuple(rows.T)
    moves, chances, codes = moves[at], chances[at], codes[at]  # (R, S), (R, K), (R, K, M)
    for what, probs in (("cost_prob", chances), ("transition", moves)):
        bad = np.argwhere(~((probs >= 0) & np.isfinite(probs)))
        if len(bad):
            r, k = bad[0]
            spot = where(rows[r, 0], rows[r, 1:])
            raise InvalidGame(f"{spot}: {what} {k} is {probs[r, k]}, must be a probability of at least 0")
    out_row, nxt, k = np.nonzero((moves[:, :, None] > 0) & (chances[:, None, :] > 0))
    paid = None
    if rewards.ndim > rows.shape[1] + 1:  # by next state
        rewards, paid = np.zeros((*allowed.shape, rewards.shape[-1])), rewards[at][out_row, nxt]
    return RawLayer(
        times=times,
        row_state=rows[:, 0],
        row_action=rows[:, 1:],
        reward=rewards[at],
        out_row=out_row,
        prob=np.maximum(moves[out_row, nxt] * chances[out_row, k], TINIEST),  # a product may underflow
        next_state=nxt,
        cost=codes[out_row, k],
        paid=paid,
    )


def _numbers(what: str, value: Any) -> NDArray[Any]:
    try:
        if isinstance(value, (list, tuple)):  # numpy would round large ints that stand beside floats
            value = np.array(value, dtype=object)
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InvalidGame(f"{what}: not an array of numbers ({error})") from None
    if array.dtype.kind not in "biufO":
        raise InvalidGame(f"{what}: entries of type {array.dtype}, must be numbers")
    return array


def _timed(
    what: str, array: NDArray[Any], shape: tuple[int, ...], horizon: int, axes: tuple[str, ...], why: str = ""
) -> NDArray[Any]:
    """Return the array with a leading time axis of length 1 or `horizon`; `why` says why so."""
    if array.shape == shape:
        return array[None]
    if array.shape == (horizon, *shape):
        return array
    named = f"({', '.join(axes)}) or (T, {', '.join(axes)})"
    raise InvalidGame(f"{what} has shape {array.shape}, must be {shape} or {(horizon, *shape)}, which is {named}{why}")


def _check_whether_costs(cost: Any, constraints: tuple[Label, ...]) -> None:
    """Refuse costs without budgets, and budgets without costs."""
    if cost is None and constraints:
        raise InvalidGame(f"cost: missing, but there are budgets for {list(constraints)!r}")
    if cost is not None and not constraints and np.size(cost):
        raise InvalidGame("cost: given, but there is no budget; give one number per constraint")


def _labels(what: str, labels: Sequence[Label] | None, count: int) -> tuple[Label, ...]:
    named = check_labels(what, range(count) if labels is None else labels)
    _check_number(what, named, count)
    return named


def _check_number(what: str, labels: tuple[Label, ...], count: int) -> None:
    if len(labels) != count:
        raise InvalidGame(f"{what}: {len(labels)} labels given, the arrays have {count}")


def _action_labels(actions: Sequence[Sequence[Label]] | None, counts: Sequence[int]) -> tuple[tuple[Label, ...], ...]:
    """Return each player's labels, which may be more than the actions that occur."""
    if actions is None:
        return tuple(tuple(range(k)) for k in counts)
    if len(actions) != len(counts):
        raise InvalidGame(f"actions: label lists for {len(actions)} players, the arrays have {len(counts)} players")
    return tuple(check_labels(f"actions of player {i}", labels) for i, labels in enumerate(actions))


def _cost_codes(
    costs: NDArray[Any], chances: NDArray[Any], allowed: Bools, names: Names
) -> tuple[list[list[Cost]], Ints]:
    """Return each constraint's exact values and the array of codes; illegal actions are ignored."""
    t = max(len(costs), len(chances), len(allowed))
    used = np.broadcast_to(allowed[..., None] & (chances > 0), (t, *chances.shape[1:]))
    if len(costs) == 1:
        used = np.asarray(used.any(axis=0, keepdims=True))
    codes = np.zeros(costs.shape, dtype=np.int64)
    tables: list[list[Cost]] = []

    def wrong(constraint: Label, entry: int, problem: str) -> InvalidGame:
        t, s, *acts, _ = np.argwhere(used)[entry]
        return InvalidGame(f"{names.place(t, s, acts, every_t=len(costs) == 1)}: cost of {constraint!r}: {problem}")

    for m, label in enumerate(names.constraints):
        table, codes[..., m][used] = read_costs(costs[..., m][used], partial(wrong, label))
        tables.append(table)
    return tables, codes


# Flat arrays.


@public("MarkovGame.from_sparse", memory=BUILDING)
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
    budgets = read_budget(budget, constraints, horizon)
    limits = tuple(budgets)
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
    own_actions = _action_labels(actions, [int(column.max(initial=-1)) + 1 for column in action.T])
    names = Names(_labels("players", players, n), state_labels, own_actions, limits)
    for i, labels in enumerate(names.actions):
        _check_range(f"row_action of player {names.players[i]!r}", action[:, i], len(labels), "actions")
    values, codes = _costs(cost, outcomes, limits)
    action, after = action.astype(np.int32), after.astype(np.int32)  # copies: a game's arrays are its own
    paid = None if out_reward is None else _paid(out_reward, (outcomes, n), rewards, owner)
    whole = RawLayer(tuple(range(horizon)), state, action, rewards, owner, chances, after, codes, paid)
    layers = [whole] if row_t is None else _by_time(whole, row_t, horizon)
    return assemble(names, layers, values, horizon=horizon, initial=initial, budgets=budgets, name=name)


def _paid(out_reward: ArrayLike, shape: tuple[int, int], rewards: Floats, owner: NDArray[Any]) -> Floats:
    """Return what outcomes pay in all."""
    own = float_array("out_reward", out_reward)
    if own.shape != shape:
        raise InvalidGame(f"out_reward has shape {own.shape}, must be {shape} (outcomes, players)")
    return np.asarray(own + rewards[owner])


def _check_length(what: str, array: Floats, of: str, **others: Any) -> None:
    """Refuse an array that has another length than all others of the same axis."""
    lengths = {len(other) for other in others.values() if isinstance(other, Sized)}
    if len(lengths) == 1 and {len(array)} != lengths:
        rule = f"must have {lengths.pop()} {of}, as {' and '.join(others)} have"
        raise InvalidGame(f"{what} has shape {array.shape}, {rule}")


def _whole(what: str, numbers: ArrayLike, shape: tuple[int, ...], axes: str) -> NDArray[Any]:
    try:
        array = np.asarray(numbers)
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


def _by_time(whole: RawLayer, row_t: ArrayLike, horizon: int) -> list[RawLayer]:
    """Return a layer for each time, from rows that hold at one time each."""
    times = _whole("row_t", row_t, (len(whole.reward),), "rows")
    _check_range("row_t", times, horizon, "steps")
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
        parts = {what: getattr(whole, what)[rows] for what in ("row_state", "row_action", "reward")}
        parts |= {what: getattr(whole, what)[outs] for what in ("prob", "next_state", "cost")}
        paid = None if whole.paid is None else whole.paid[outs]
        layers.append(RawLayer(times=(t,), out_row=at[outs] - begin[t], paid=paid, **parts))
    return layers


def _costs(cost: Any, outcomes: int, limits: tuple[Label, ...]) -> tuple[list[list[Cost]], NDArray[np.int32]]:
    """Return the exact values of each constraint, and the codes of each outcome."""
    _check_whether_costs(cost, limits)
    if not limits:
        return [], np.empty((outcomes, 0), dtype=np.int32)
    array = cost if isinstance(cost, np.ndarray) else np.array(cost, dtype=object)
    if array.ndim == 1 and len(limits) == 1:
        array = array[:, None]
    if array.shape != (outcomes, len(limits)):
        raise InvalidGame(f"cost has shape {array.shape}, must be {(outcomes, len(limits))} (outcomes, constraints)")
    codes = np.empty(array.shape, dtype=np.int32)
    values = []
    for m, label in enumerate(limits):
        table, codes[:, m] = read_costs(array[:, m], partial(_wrong_cost, label))
        values.append(table)
    return values, codes


def _wrong_cost(constraint: Label, entry: int, problem: str) -> InvalidGame:
    return InvalidGame(f"cost of {constraint!r}, entry {entry}: {problem}")
