"""Play a policy many times: vectorised, seeded, with exact spending.

Episodes run side by side. At each step those in the same (state, spent) ask the policy once. Cumulative
costs are whole numbers of a unit per constraint, so a violation is decided exactly and never by a float.

Time is linear in episodes times horizon (times log for sorting), plus one question to the policy per pair.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.model.game import JointAction, Layer, MarkovGame, place
from acegames.model.numbers import plain
from acegames.numerics import PROBABILITY_SUM

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rollouts:
    """E played episodes of one policy. Indices refer to `game.states` and `game.actions`."""

    returns: Floats
    """(E, N) total reward of each player."""
    spent: Floats
    """(E, T, M) cumulative cost after acting at t, in the user's units (rounded to float64)."""
    violations: int
    """Number of episodes that break some budget at some time; decided on exact integers."""
    state: NDArray[np.int32]
    """(E, T+1) state index before acting at t; the last column is where the episode ends."""
    action: NDArray[np.int32]
    """(E, T, N) action index of each player."""

    def summary(self) -> dict[str, Any]:
        """Return {episodes, mean (N,), std_error (N,), max_spent (M,), violations}.

        `mean` and `std_error` are of the returns (the error is NaN for a single episode); `max_spent` is the
        largest cumulative cost at any time of any episode.
        """
        episodes, n = self.returns.shape
        error = self.returns.std(axis=0, ddof=1) / math.sqrt(episodes) if episodes > 1 else np.full(n, np.nan)
        return {
            "episodes": episodes,
            "mean": self.returns.mean(axis=0),
            "std_error": error,
            "max_spent": self.spent.max(axis=(0, 1)),
            "violations": self.violations,
        }


def simulate(game: MarkovGame, policy: Any, *, episodes: int, rng: np.random.Generator | int | None = None) -> Rollouts:
    """Play `episodes` independent episodes of a policy.

    Args:
        game: the game.
        policy: any object with `distribution(t, state, spent) -> {joint action: probability}`.
        episodes: how many, at least 1.
        rng: a Generator, a seed, or None for fresh randomness. The same seed gives the same episodes.

    Raises:
        ValueError: `episodes` is not a whole number of at least 1, or an answer of the policy is no
            distribution over legal joint actions.
        KeyError: from the policy, where it is not defined.
    """
    if isinstance(episodes, bool) or not isinstance(episodes, (int, np.integer)) or episodes < 1:
        raise ValueError(f"episodes: got {episodes!r}, must be a whole number of at least 1")
    rng = np.random.default_rng(rng)
    costs = _Costs(game)
    e, n = int(episodes), len(game.players)
    returns = np.zeros((e, n))
    state = np.empty((e, game.horizon + 1), dtype=np.int32)
    action = np.empty((e, game.horizon, n), dtype=np.int32)
    spent = np.empty((e, game.horizon, len(game.constraints)))
    total = np.zeros((e, len(game.constraints)), dtype=costs.dtype)
    broken = np.zeros(e, dtype=bool)
    state[:, 0] = _draw([p for _, p in game.initial], rng.random(e), [s for s, _ in game.initial])
    for t in range(game.horizon):
        layer = game.layer(t)
        row = _choose(game, policy, costs, t, state[:, t].astype(np.int64), total, rng.random(e))
        out = _happen(layer, row, rng.random(e))
        total = total + costs.of(layer, out)
        broken |= costs.over(total, t)
        returns += layer.reward[row]
        state[:, t + 1], action[:, t], spent[:, t] = (
            layer.next_state[out],
            layer.action[row],
            costs.in_user_units(total),
        )
    return Rollouts(returns, spent, int(broken.sum()), state, action)


class _Costs:
    """Costs as whole numbers of one unit per constraint: int64, or Python ints where sums would not fit."""

    def __init__(self, game: MarkovGame) -> None:
        self.scale = [math.lcm(*(v.denominator for v in values)) for values in game.cost_values]
        whole = [[int(v * k) for v in values] for values, k in zip(game.cost_values, self.scale, strict=True)]
        largest = max((abs(c) for column in whole for c in column), default=0) * game.horizon
        self.dtype: Any = np.int64 if largest < 2**63 else object
        self.values = [np.array(column, dtype=self.dtype) for column in whole]
        self.budgets = game.budgets

    def of(self, layer: Layer, out: Ints) -> Ints:
        """Return the costs of outcomes, (E, M)."""
        columns = [values[layer.cost[out, m]] for m, values in enumerate(self.values)]
        return np.column_stack(columns) if columns else np.zeros((len(out), 0), dtype=np.int64)

    def over(self, total: Ints, t: int) -> NDArray[np.bool_]:
        """Return which rows of `total` (E, M) break a budget after acting at t."""
        broken = np.zeros(len(total), dtype=bool)
        for m, (bound, k) in enumerate(zip(self.budgets[t], self.scale, strict=True)):
            if not isinstance(bound, float):
                amounts, code = np.unique(total[:, m], return_inverse=True)
                limit = math.floor(bound * k)
                broken |= np.array([c > limit for c in amounts.tolist()])[code]
        return broken

    def in_user_units(self, total: Ints) -> Floats:
        """Return amounts as the nearest floats, (E, M)."""
        rounded = np.empty(total.shape)
        for m, k in enumerate(self.scale):
            amounts, code = np.unique(total[:, m], return_inverse=True)
            rounded[:, m] = np.array([c / k for c in amounts.tolist()])[code]
        return rounded


def _draw(weights: Any, uniform: Floats, values: Any) -> Any:
    """Return one of `values` per uniform number in [0, 1), with probability proportional to the weights."""
    ladder = np.cumsum(weights)
    picked = np.searchsorted(ladder, uniform * ladder[-1], side="right")
    return np.asarray(values)[np.minimum(picked, len(ladder) - 1)]


def _choose(game: MarkovGame, policy: Any, costs: _Costs, t: int, state: Ints, total: Ints, uniform: Floats) -> Ints:
    """Return the row that each episode plays at time t, (E,)."""
    number = np.unique(state, return_inverse=True)[1]
    for column in total.T:
        amounts, code = np.unique(column, return_inverse=True)
        number = np.unique(number * len(amounts) + code, return_inverse=True)[1]
    order = np.argsort(number, kind="stable")
    row = np.empty(len(state), dtype=np.int64)
    for members in np.split(order, np.flatnonzero(np.diff(number[order])) + 1):
        s = int(state[members[0]])
        spent = tuple(plain(Fraction(c, k)) for c, k in zip(total[members[0]].tolist(), costs.scale, strict=True))
        rows, weights = _support(game, t, s, policy.distribution(t, game.states[s], spent), spent)
        row[members] = _draw(weights, uniform[members], rows)
    return row


def _support(game: MarkovGame, t: int, state: int, given: Any, spent: Any) -> tuple[list[int], list[float]]:
    """Return the rows of positive probability and their probabilities, checked."""
    where = f"{place(t, game.states[state])}, spent {spent!r}"
    if not isinstance(given, Mapping):
        raise ValueError(f"{where}: the policy answered {given!r}, must be {{joint action: probability}}")
    layer = game.layer(t)
    legal: dict[JointAction, int] = {game.joint_action(layer.action[r]): r for r in layer.rows(state)}
    weights = {action: float(p) for action, p in given.items() if p != 0}
    for action, p in weights.items():
        if not p >= 0:
            raise ValueError(f"{where}: action {action!r} has probability {p}, must be at least 0")
        if action not in legal:
            raise ValueError(f"{where}: the policy may play {action!r}, which is not legal")
    if not abs(sum(weights.values()) - 1) <= PROBABILITY_SUM:
        raise ValueError(f"{where}: probabilities sum to {sum(weights.values())!r}, must sum to 1")
    return [legal[action] for action in weights], list(weights.values())


def _happen(layer: Layer, row: Ints, uniform: Floats) -> Ints:
    """Return the outcome that each episode meets, (E,)."""
    out = layer.out_ptr[row].copy()
    chance = np.flatnonzero(layer.out_ptr[row + 1] - out > 1)
    if not len(chance):
        return out
    order = chance[np.argsort(row[chance], kind="stable")]
    for members in np.split(order, np.flatnonzero(np.diff(row[order])) + 1):
        span = layer.outcomes(int(row[members[0]]))
        out[members] = _draw(layer.prob[span], uniform[members], np.arange(span.start, span.stop))
    return out
