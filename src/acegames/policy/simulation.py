"""Play a policy many times: vectorised, seeded, with costs added up exactly.

Episodes run side by side. At each step those in the same (state, spent) ask the policy once, all of
them together where the policy has `rows` (see `acegames.Policy`). Cumulative costs are whole
numbers of a unit per constraint, so a violation is decided exactly and never by a float. Costs
given by a distribution are drawn from it; a policy that rounds costs gets the rounded totals, and
is judged by the true ones (see `episode_costs`). What does not fit into a reservoir is wasted.

Time is linear in episodes times horizon (times log for sorting), plus one question to the policy
per pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption
from acegames.model.arrays import Floats, Ints, number_rows, seal
from acegames.model.budgets import own_budget
from acegames.model.checks import check_count, check_rng, unknown
from acegames.model.game import Label, MarkovGame, check_game, place
from acegames.model.numbers import plain
from acegames.model.user_functions import SEED, check_function, policy_of, public
from acegames.model.words import named, number
from acegames.numerics import PROBABILITY_SUM
from acegames.policy.episode_costs import EpisodeCosts
from acegames.system.display import Shown


@dataclass(frozen=True, eq=False, repr=False)
class Rollouts(Shown):
    """E episodes of one policy that were played. Indices are into `game.states`, `game.actions`."""

    returns: Floats
    """(E, N) total reward of each player."""
    spent: Floats
    """(E, T, M) cumulative cost after acting at t, of a reservoir what is missing to its capacity;
    in the user's units, rounded to float64."""
    violations: int
    """Number of episodes that exceed some budget at some time; decided on exact integers. It is 0
    for an exact policy, and for one with costs rounded up."""
    state: NDArray[np.int32]
    """(E, T+1) state index before acting at t; the last column is where the episode ends."""
    action: NDArray[np.int32]
    """(E, T, N) action index of each player."""
    excess: Floats
    """(M,) the largest amount by which a budget was ever exceeded in any episode; 0 if never."""
    beyond: int
    """Number of episodes that exceed some budget by more than the policy's rounding allows: after
    acting at t, t + 1 cells for costs rounded down, else nothing (then it is `violations`)."""
    counted: Floats
    """(E, T, M) what the policy counts as spent after acting at t; `spent` if it rounds nothing."""
    wasted: Floats
    """(E, M) what did not fit into each reservoir, in all; 0 of a plain budget."""
    players: tuple[Label, ...] = ()
    """N labels, in the order of `returns`."""
    constraints: tuple[Label, ...] = ()
    """M labels, in the order of `spent`."""
    capacities: tuple[float | None, ...] = ()
    """M capacities of reservoirs, None for plain budgets."""
    limits: tuple[Any, ...] = ()
    """M budgets as the user gives them: a number, or one for each step."""
    rewards: Floats | None = None
    """(E, T, N) what each step paid; None where that is the reward of state and joint action."""

    def __post_init__(self) -> None:
        seal(self)

    def __str__(self) -> str:
        said = self.summary()
        players = _names("player", self.players, len(said["mean"]))
        constraints = _names("constraint", self.constraints, len(said["max_spent"]))
        full = self.capacities or (None,) * len(constraints)
        error = [f" ± {e:.2g}" if len(self.returns) > 1 else "" for e in said["std_error"]]
        means = [f"{p}{m:.6g}{e}" for p, m, e in zip(players, said["mean"], error, strict=True)]
        limits = map(self._limit_words, range(len(constraints)))
        each = list(zip(constraints, said["max_spent"], limits, said["wasted"], full, strict=True))
        largest = [f"{name}{x:.6g}{limit}" for name, x, limit, _, capacity in each if capacity is None]
        lowest = [f"{name}{full - x:.6g} of {full:.6g}" for name, x, _, _, full in each if full is not None]
        wasted = [f"{name}{x:.6g}" for name, _, _, x, full in each if full is not None]
        allowed = f", {self.beyond:,} by more than its rounding allows" * (self.beyond < self.violations)
        excess = [f"{name}{x:.6g}" for name, x in zip(constraints, said["excess"], strict=True) if x > 0]
        lines = [
            f"Episodes: {len(self.returns):,}, {self.violations:,} exceeded a budget{allowed}.",
            f"Largest excess: {', '.join(excess)}." if excess else "",
            f"Mean returns: {', '.join(means)}{' (± standard error)' * any(error)}.",
            f"Largest cumulative cost: {', '.join(largest)}." if largest else "",
            f"Lowest level: {', '.join(lowest)}." if lowest else "",
            f"Wasted on average: {', '.join(wasted)}." if self.wasted.any() else "",
        ]
        return "\n".join(filter(None, lines))

    def _limit_words(self, m: int) -> str:
        """Return what to say of a budget beside the largest cost."""
        if not self.limits or not isinstance(self.limits[m], list):
            return f" of {number(self.limits[m])}" if self.limits else ""
        return f", at the end {self.spent[:, -1, m].max():.6g} (budget {number(self.limits[m])})"

    def __repr__(self) -> str:
        mean = self.returns.mean(axis=0)
        each = ", ".join(f"{p}{x:.6g}" for p, x in zip(_names("player", self.players, len(mean)), mean, strict=True))
        lost = ", ".join(f"{x:.6g}" for x in self.wasted.mean(axis=0))
        wasted = f", on average {lost} did not fit into the reservoirs" if self.wasted.any() else ""
        said = f"{len(self.returns):,} episodes, mean returns {each}, {self.violations:,} exceeded a budget{wasted}"
        return f"<Rollouts: {said}>"

    def summary(self) -> dict[str, Any]:
        """Return means, errors and extremes over all episodes by name.

        `episodes` is their number; `violations`, `excess` (M,) and `beyond` are the fields. `mean`
        and `std_error` (N,) are of the returns (the error is NaN for a single episode). `max_spent`
        (M,) is the largest cumulative cost at any time of any episode, `wasted` (M,) the mean of
        what did not fit into each reservoir.
        """
        episodes, n = self.returns.shape
        error = self.returns.std(axis=0, ddof=1) / math.sqrt(episodes) if episodes > 1 else np.full(n, np.nan)
        return {
            "episodes": episodes,
            "mean": self.returns.mean(axis=0),
            "std_error": error,
            "max_spent": self.spent.max(axis=(0, 1)),
            "violations": self.violations,
            "excess": self.excess,
            "beyond": self.beyond,
            "wasted": self.wasted.mean(axis=0),
        }


def _names(kind: str, labels: tuple[Label, ...], number: int) -> list[str]:
    """Return what stands before each of so many numbers: a label, or nothing."""
    return [f"{named(kind, label)} " for label in labels] or [""] * number


@public("simulate", memory=("playing so many episodes", "fewer of them (episodes=) at once take less"), instead=SEED)
def simulate(
    game: MarkovGame,
    policy: Any,
    *,
    episodes: int,
    rng: np.random.Generator | int | None = None,
    deviate: Mapping[Label, Callable[..., Label]] | None = None,
) -> Rollouts:
    """Play `episodes` independent episodes of a policy.

    Args:
        game: the game.
        policy: a solution, or any object with `distribution(t, state, spent) -> {joint action:
            probability}`; if it has a `tracker` that rounds costs, `spent` is what that counts. A
            policy with memory (`Payoffs.policy`) remembers what was recommended and played.
        episodes: how many, at least 1.
        rng: a Generator, a seed, or None for fresh randomness. A seed gives the same episodes.
        deviate: {player: rule} for players who do not follow: `rule(t, state, spent, told)` returns
            the action that the player takes in place of the one that it is told. It must leave play
            feasible, whatever the others are told.

    Raises:
        InvalidGame: `game` is no MarkovGame.
        InvalidOption: a rule plays what is not legal or not safe; the message names the place.
        InvalidOption: `policy` has no `distribution(t, state, spent)`, or `episodes` is not a whole
            number of at least 1.
        TooLarge: there is not enough memory for so many episodes.
        ValueError: an answer of the policy is no distribution over legal joint actions.
        KeyError: from the policy, where it is not defined.
    """
    check_game(game)
    policy = policy_of(policy)
    _check_policy(policy)
    episodes = check_count("episodes", episodes)
    rng = check_rng(rng)
    costs = EpisodeCosts(game, getattr(getattr(policy, "tracker", None), "rounding", ()))
    e, n = episodes, len(game.players)
    returns = np.zeros((e, n))
    state = np.empty((e, game.horizon + 1), dtype=np.int32)
    action = np.empty((e, game.horizon, n), dtype=np.int32)
    spent = np.empty((e, game.horizon, len(game.constraints)))
    seen_so_far = spent if costs.exact else np.empty_like(spent)
    total, counted = costs.begin(e)
    wasted = costs.nothing(e)
    if hasattr(policy, "memory_after") and policy.game_digest != game.digest:
        raise InvalidOption(
            f"policy: it was found for game {policy.game_digest[:12]}, and this is game {game.digest[:12]}; a policy with memory "
            "serves only the game that it was found for"
        )
    asked = (_MemoryQuestions if hasattr(policy, "memory_after") else _PolicyQuestions)(game, policy, costs)
    deviations = None if not deviate else Deviations(game, deviate, costs)
    broken, beyond = np.zeros(e, dtype=bool), np.zeros(e, dtype=bool)
    excess = [Fraction(0)] * len(game.constraints)
    start, weights = (np.array(column) for column in zip(*game.initial, strict=True))
    state[:, 0] = start[pick(weights, np.zeros(e, dtype=np.int64), np.full(e, len(start)), rng.random(e))]
    asked.begin(state[:, 0].astype(np.int64), rng)
    layers = [layer.apart() for layer in game.layers]
    own = any(layer.payments is not None for layer in layers)
    rewards = np.empty((e, game.horizon, n)) if own else None
    for t in range(game.horizon):
        layer = layers[game.layer_at[t]]
        here = state[:, t].astype(np.int64)
        row = asked.choose(t, here, counted, rng.random(e))
        row = row if deviations is None else deviations.played(t, here, counted, row)
        out = pick(layer.prob, layer.out_ptr[row], layer.out_ptr[row + 1] - layer.out_ptr[row], rng.random(e))
        true, seen = costs.draw(layer, out, rng)
        before, total = total, costs.after(total, true)
        counted = total if costs.exact else costs.after(counted, seen)
        asked.remember(t, row, layer.next_state[out].astype(np.int64), counted)
        if costs.reservoirs:
            wasted += total - before - true
        over = costs.over(total, t)
        broken |= over
        beyond |= over if costs.exact else costs.over(total, t, within_error=True)
        excess = list(map(max, excess, costs.excess(total, t)))
        paid = layer.paid(row, out)
        returns += paid
        if rewards is not None:
            rewards[:, t] = paid
        state[:, t + 1], action[:, t] = layer.next_state[out], layer.action[row]
        spent[:, t] = costs.in_user_units(total)
        if not costs.exact:
            seen_so_far[:, t] = costs.in_user_units(counted, counted=True)
    most = np.array(list(map(float, excess)))
    counts = int(broken.sum()), state, action, most, int(beyond.sum())
    capacities = tuple(None if stored is None else float(stored.capacity) for stored in game.reservoirs)
    limits = tuple(own_budget(game).values())
    labels = game.players, game.constraints, capacities, limits
    return Rollouts(returns, spent, *counts, seen_so_far, costs.in_user_units(wasted), *labels, rewards)


def _check_policy(policy: Any) -> None:
    if not callable(getattr(policy, "distribution", None)):
        raise InvalidOption(
            f"policy: got {type(policy).__name__} {policy!r:.60}, must have a method distribution(t, state, spent)"
        )
    with_memory = ("memory",) if hasattr(policy, "memory_after") else ()
    check_function("policy.distribution", policy.distribution, ("t", "state", "spent", *with_memory))
    if _has_rows(policy):
        check_function("policy.rows", policy.rows, ("t", "state", "total"))


def pick(weights: Floats, first: Ints, count: Ints, uniform: Floats) -> Ints:
    """Draw an index from first[e] : first[e] + count[e] for each e, in proportion to the weights.

    It is where the cumulative weight, summed from the first on, exceeds uniform[e] in [0, 1) times
    the total.
    """
    picked = first.copy()
    some = np.flatnonzero(count > 1)
    first, count = first[some], count[some]
    most = int(count.max(initial=0))
    total = np.zeros(len(some))
    for k in range(most):
        on = k < count
        total[on] += weights[first[on] + k]
    wanted, below = uniform[some] * total, np.zeros(len(some))
    for k in range(most - 1):
        on = k < count - 1
        below[on] += weights[first[on] + k]
        picked[some[on]] += below[on] <= wanted[on]
    return picked


Answers = tuple[Ints, Ints, Floats]  # pointers (G+1,), rows (Z,), probabilities (Z,)


class _PolicyQuestions:
    """The policy, queried in many situations at once if it can answer so."""

    def __init__(self, game: MarkovGame, policy: Any, costs: EpisodeCosts) -> None:
        self.game, self.policy, self.costs = game, policy, costs
        self.together = _has_rows(policy) and policy.states == game.states and policy.actions == game.actions
        self._same_rows = cache(self._numbers_as_the_game)

    def _numbers_as_the_game(self, t: int) -> bool:
        """Return whether the policy's rows of time t are those of the game."""
        layer = self.game.layer(t)
        row_ptr, action = self.policy.joint_actions(t)
        return np.array_equal(row_ptr, layer.row_ptr) and np.array_equal(action, layer.action)

    def begin(self, state: Ints, rng: np.random.Generator) -> None:
        """Begin episodes in these states: these policies remember nothing."""

    def remember(self, t: int, row: Ints, state: Ints, total: Ints) -> None:
        """Take note of what was played and where that led."""

    def choose(self, t: int, state: Ints, total: Ints, uniform: Floats) -> Ints:
        """Return the row that each episode plays at time t, (E,)."""
        _, member, group = np.unique(number_rows([state, *total.T]), return_index=True, return_inverse=True)
        state, total = state[member], total[member]
        ptr, row, prob = self._at_once(t, state, total) or self._one_by_one(t, state, total)
        return row[pick(prob, ptr[group], ptr[group + 1] - ptr[group], uniform)]

    def _one_by_one(self, t: int, state: Ints, total: Ints) -> Answers:
        ptr, row, prob = [0], [], []
        for s, amounts in zip(state.tolist(), total.tolist(), strict=True):
            spent = tuple(plain(Fraction(c, k)) for c, k in zip(amounts, self.costs.counted_scale, strict=True))
            rows, weights = _support(self.game, t, s, self.policy.distribution(t, self.game.states[s], spent), spent)
            row += rows
            prob += weights
            ptr.append(len(row))
        return np.array(ptr, dtype=np.int64), np.array(row, dtype=np.int64), np.array(prob, dtype=np.float64)

    def _at_once(self, t: int, state: Ints, total: Ints) -> Answers | None:
        """Return the answer of `rows`; None if it counts otherwise than the game or is not in
        order.
        """
        together = self.together and self._same_rows(t)
        whole = self.costs.in_units(total, self.policy.tracker.units) if together else None
        if whole is None:
            return None
        ptr, row, prob = (np.asarray(x) for x in self.policy.rows(t, state, whole))
        if len(ptr) != len(state) + 1 or not (np.diff(ptr) > 0).all() or len(row) != ptr[-1] or len(prob) != len(row):
            return None
        owner, row_ptr = np.repeat(state, np.diff(ptr)), self.game.layer(t).row_ptr
        legal = ((row_ptr[owner] <= row) & (row < row_ptr[owner + 1])).all()
        sums = np.add.reduceat(prob, ptr[:-1])
        fine = legal and (prob > 0).all() and (np.abs(sums - 1) <= PROBABILITY_SUM).all()
        return (ptr, row, prob) if fine else None


class _MemoryQuestions(_PolicyQuestions):
    """A policy with memory, and what it remembers in each episode."""

    def begin(self, state: Ints, rng: np.random.Generator) -> None:
        """Draw what each episode begins with."""
        self.memory = self.policy.first_memory(state, rng.random(len(state)))

    def choose(self, t: int, state: Ints, total: Ints, uniform: Floats) -> Ints:
        """Return the row that is recommended in each episode at time t, (E,)."""
        ptr, row, prob = self.policy.recommendations(t, state, self._whole(total), self.memory)
        drawn = pick(prob, ptr[:-1], np.diff(ptr), uniform)
        self.entry = drawn - ptr[:-1]
        return np.asarray(row[drawn])

    def remember(self, t: int, row: Ints, state: Ints, total: Ints) -> None:
        """Take note of what was played and where that led."""
        self.memory = self.policy.memory_after(t, self.memory, self.entry, row, state, self._whole(total))

    def _whole(self, total: Ints) -> Ints:
        whole = self.costs.in_units(total, self.policy.tracker.units)
        if whole is None:
            raise InvalidOption("policy: it counts costs in another unit than the game; was it made for another game?")
        return whole


class Deviations:
    """Players who do something else than they are told."""

    def __init__(self, game: MarkovGame, rules: Any, costs: EpisodeCosts) -> None:
        from acegames.safety.feasible import feasibility

        if not isinstance(rules, Mapping):
            raise InvalidOption(f"deviate: got {rules!r:.60}, must be {{player: rule}}")
        for player in rules:
            if player not in game.players:
                raise InvalidOption(f"deviate: {unknown('player', player, game.players)}")
        for player, rule in rules.items():
            check_function(f"deviate[{player!r}]", rule, ("t", "state", "spent", "told"))
        self.game, self.costs = game, costs
        self.rules = {game.players.index(player): rule for player, rule in rules.items()}
        self.feasible = feasibility(game)
        self._played = dict[Any, int]()

    def played(self, t: int, state: Ints, total: Ints, row: Ints) -> Ints:
        """Return what is played where these rows are told."""
        asked = zip(state.tolist(), map(tuple, total.tolist()), row.tolist(), strict=True)
        return np.array([self._one(t, *question) for question in asked], dtype=np.int64)

    def _one(self, t: int, state: int, total: tuple[int, ...], row: int) -> int:
        key = t, state, total, row
        if key not in self._played:
            self._played[key] = self._ask(*key)
        return self._played[key]

    def _ask(self, t: int, state: int, total: tuple[int, ...], row: int) -> int:
        game, label = self.game, self.game.states[state]
        spent = tuple(plain(Fraction(c, k)) for c, k in zip(total, self.costs.counted_scale, strict=True))
        action = list(game.joint_action(game.layer(t).action[row]))
        for i, rule in self.rules.items():
            action[i] = rule(t, label, spent, action[i])
        where = f"{place(t, label)}, spent {spent!r}"
        to = game.legal(t, label).get(tuple(action))
        if to is None:
            raise InvalidOption(f"deviate: {where}: the joint action {tuple(action)!r} is not legal")
        if tuple(action) not in self.feasible.actions(t, label, spent):
            raise InvalidOption(
                f"deviate: {where}: after {tuple(action)!r} no policy keeps every budget with probability one"
            )
        return to


def _has_rows(policy: Any) -> bool:
    """Return whether one class gives `distribution`, `rows` and `joint_actions`: one replaced alone
    would differ.
    """
    methods = {"distribution", "rows", "joint_actions"}
    if methods & set(getattr(policy, "__dict__", ())):
        return False
    owner = next((c for c in type(policy).__mro__ if methods & set(vars(c))), object)
    return methods <= set(vars(owner))


def _support(game: MarkovGame, t: int, state: int, answer: Any, spent: Any) -> tuple[list[int], list[float]]:
    """Return the rows of positive probability and their probabilities, checked."""
    where = f"{place(t, game.states[state])}, spent {spent!r}"
    if not isinstance(answer, Mapping):
        raise ValueError(f"{where}: the policy answered {answer!r}, must be {{joint action: probability}}")
    layer = game.layer(t)
    legal = {game.joint_action(layer.action[r]): r for r in layer.rows(state)}
    weights = {action: float(p) for action, p in answer.items() if p != 0}
    for action, p in weights.items():
        if not p >= 0:
            raise ValueError(f"{where}: action {action!r} has probability {p}, must be at least 0")
        if action not in legal:
            raise ValueError(f"{where}: the policy may play {action!r}, which is not legal")
    if not abs(sum(weights.values()) - 1) <= PROBABILITY_SUM:
        raise ValueError(f"{where}: probabilities sum to {sum(weights.values())!r}, must sum to 1")
    return [legal[action] for action in weights], list(weights.values())
