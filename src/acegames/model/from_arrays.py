"""Games from dense numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acegames.errors import InvalidGame
from acegames.model.arrays import Bools, Ints
from acegames.model.assemble import Names, RawLayer, assemble, read_costs
from acegames.model.budgets import read_budget
from acegames.model.building import SMALLER_GAME
from acegames.model.checks import Label, check_horizon, check_labels, float_array
from acegames.model.costs.random import Cost
from acegames.model.numbers import TINIEST
from acegames.model.user_functions import public, warn_of_game
from acegames.system.memory import within_memory

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame


@public("MarkovGame.from_arrays")
@within_memory("building the game", SMALLER_GAME)
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
    labels, budgets = read_budget(budget, constraints, horizon)
    m = len(labels)
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
    given = _numbers("legal", np.ones(shape, bool) if legal is None else legal)
    allowed = _timed("legal", given, shape, horizon, axes)
    if allowed.dtype != bool:
        raise InvalidGame(f"legal has entries of type {allowed.dtype}, must be bool (True means allowed)")
    if cost is not None and budget is None and np.size(cost):
        raise InvalidGame("cost: given, but there is no budget; give one number per constraint")
    if cost is None:
        if m:
            raise InvalidGame(f"cost: missing, but there are budgets for {list(labels)!r}")
        cost = np.zeros((*shape, 0))
    costs, counted = _numbers("cost", cost), f"; M is the number of budgets, here {m}"
    if cost_prob is None:
        chances = np.ones((1, *shape, 1))
        costs = _timed("cost", costs, (*shape, m), horizon, (*axes, "M"), counted)[..., None, :]
    else:
        chances = float_array("cost_prob", cost_prob)
        k = chances.shape[-1] if chances.ndim else 0
        chances = _timed("cost_prob", chances, (*shape, k), horizon, (*axes, "K"))
        costs = _timed("cost", costs, (*shape, k, m), horizon, (*axes, "K", "M"), counted)
    who, where = _labels("players", players, n), _labels("states", states, shape[0])
    names = Names(who, where, _action_labels(actions, shape[1:]), labels)
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


def _labels(what: str, given: Sequence[Label] | None, count: int) -> tuple[Label, ...]:
    labels = check_labels(what, range(count) if given is None else given)
    if len(labels) != count:
        raise InvalidGame(f"{what}: {len(labels)} labels given, the arrays have {count}")
    return labels


def _action_labels(given: Sequence[Sequence[Label]] | None, counts: tuple[int, ...]) -> tuple[tuple[Label, ...], ...]:
    if given is None:
        return tuple(tuple(range(k)) for k in counts)
    if len(given) != len(counts):
        raise InvalidGame(f"actions: label lists for {len(given)} players, the arrays have {len(counts)} players")
    return tuple(_labels(f"actions of player {i}", g, k) for i, (g, k) in enumerate(zip(given, counts, strict=True)))


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
