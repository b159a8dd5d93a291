"""The constrained Markov game, as frozen arrays (spec 1).

    n players, states S, joint actions A = A_1 x ... x A_n of which a state allows some, horizon H, t = 0 .. H-1;
    at (t, s, a): a reward per player, and a list of outcomes (probability, next state, cost vector);
    a joint policy is feasible when c_0 + ... + c_t <= B_t, in every component, for every t, with probability one.

Held sparsely. A *row* is one legal joint action of one state; a row's outcomes are contiguous. Equal arrays of
different times are one object, and times that agree entirely share one `Layer`. Costs are small integer codes
into `cost_values`, the exact values that occur, sorted, then the distributions, one tuple per constraint.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acegames.errors import InvalidGame, InvalidOption, TooLarge
from acegames.model.costs.random import Cost, RandomCost, cost_text
from acegames.model.numbers import Bound, probability, text
from acegames.model.tails import Tails
from acegames.system.limits import REACH_WORK, SAME_HASH

Label = Hashable
JointAction = tuple[Label, ...]
Moves = tuple[NDArray[Any], NDArray[Any]]
"""From which state to which, one entry per outcome."""


@dataclass(frozen=True, eq=False)
class Layer:
    """What can happen at one time. Arrays are read-only.

    A state that cannot occur at this time may have no rows. Rows of a state are in lexicographic order of `action`;
    outcomes of a row are in lexicographic order of (next_state, cost), each once, with positive probability.
    """

    row_ptr: NDArray[np.int64]  # (S+1,) rows of state s are row_ptr[s] : row_ptr[s+1]
    action: NDArray[np.int32]  # (R, N) index of each player's action
    reward: NDArray[np.float64]  # (R, N)
    out_ptr: NDArray[np.int64]  # (R+1,) outcomes of row r are out_ptr[r] : out_ptr[r+1]
    prob: NDArray[np.float64]  # (K,)
    next_state: NDArray[np.int32]  # (K,)
    cost: NDArray[np.int32]  # (K, M) codes into MarkovGame.cost_values

    def rows(self, state: int) -> range:
        """Rows (legal joint actions) of a state."""
        return range(int(self.row_ptr[state]), int(self.row_ptr[state + 1]))

    def outcomes(self, row: int) -> slice:
        """Outcomes of a row, as a slice of `prob`, `next_state` and `cost`."""
        return slice(int(self.out_ptr[row]), int(self.out_ptr[row + 1]))


@dataclass(frozen=True, eq=False, repr=False)
class MarkovGame:
    """A finite-horizon Markov game with hard budgets. Build one with `from_arrays`, `from_functions` or `from_table`.

    With no constraints at all (M = 0) it is an action-constrained Markov game: `legal` alone restricts play.
    """

    players: tuple[Label, ...]  # N
    states: tuple[Label, ...]  # S
    actions: tuple[tuple[Label, ...], ...]  # N tuples: every label that player uses anywhere
    constraints: tuple[Label, ...]  # M
    horizon: int
    initial: tuple[tuple[int, float], ...]  # (state index, probability), probabilities positive
    budgets: tuple[tuple[Bound, ...], ...]  # H rows of M: the bound on the cumulative cost after acting at t
    cost_values: tuple[tuple[Cost, ...], ...]  # M sorted tuples of the exact costs that occur; random costs come last
    layers: tuple[Layer, ...]  # the distinct layers, in order of first use
    layer_at: tuple[int, ...]  # H indices into layers
    name: str = field(default="")  # for people; not part of the digest
    tails: Tails | None = None  # where infinite discounted play was cut short: what comes later, at most

    # -- building -----------------------------------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls,
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
            reward: (S, A1..An, N) expected reward of each player.
            cost: (S, A1..An, M); with `cost_prob`, (S, A1..An, K, M). Ints, Fractions, Decimals, or floats read by
                their decimal text; or distributions, each an object with a `cdf` and an upper bound (see `random_cost`).
                Leave out together with `budget` for a game without budgets.
            budget: (M,) or (T, M), `inf` allowed; or {constraint: number or T numbers}; or one number when M = 1. Row t
                of a schedule bounds what is spent after the step at time t. (A flat list is one number per constraint.)
                In place of a number, `almost_sure(number)` bounds the total at the end alone.
            horizon: number of steps, at least 1.
            initial: a state, or {state: probability}.
            cost_prob: (S, A1..An, K) probabilities of K cost vectors, drawn independently of the next state.
            legal: bool (S, A1..An); True means allowed.
            players, states, actions, constraints: labels; integers from 0 where left out.
            name: a name for people.

        Raises:
            InvalidGame: naming the place, the value and the rule.
        """
        from acegames.model.from_arrays import from_arrays

        return from_arrays(
            transition,
            reward,
            cost,
            budget,
            horizon=horizon,
            initial=initial,
            cost_prob=cost_prob,
            legal=legal,
            players=players,
            states=states,
            actions=actions,
            constraints=constraints,
            name=name,
        )

    @classmethod
    def from_functions(
        cls,
        *,
        players: Sequence[Label],
        actions: Callable[[int, Any], Sequence[Iterable[Label]]],
        outcomes: Callable[[int, Any, Any], Iterable[tuple[float, Any, Any]]],
        reward: Callable[[int, Any, Any], Any],
        horizon: int,
        initial: Any,
        budget: Any = None,
        legal: Callable[[int, Any, Any], bool] | None = None,
        constraints: Sequence[Label] | None = None,
        name: str = "",
    ) -> MarkovGame:
        """Build a game from functions; states are any hashables and are discovered from `initial`.

        Args:
            players: one label per player.
            actions: `actions(t, s)` gives one sequence of labels per player.
            outcomes: `outcomes(t, s, a)` gives (probability, next_state, cost) triples; a cost is a number, a
                sequence of M numbers, {constraint: number} (absent means 0), or None for no cost. In place of a
                number there may be a distribution: an object with a `cdf` and an upper bound (see `random_cost`).
            reward: `reward(t, s, a)` gives one number per player, or {player: number}.
            horizon: number of steps, at least 1.
            initial: a state, or {state: probability}.
            budget: as in `from_arrays`; leave out for a game without budgets.
            legal: `legal(t, s, a)` is True where the joint action is allowed.
            constraints: one label per constraint; taken from a `budget` that is a dict, else integers.
            name: a name for people.

        Raises:
            InvalidGame: naming the place, the value and the rule.
        """
        from acegames.model.from_functions import from_functions

        return from_functions(
            players=players,
            actions=actions,
            outcomes=outcomes,
            reward=reward,
            budget=budget,
            horizon=horizon,
            initial=initial,
            legal=legal,
            constraints=constraints,
            name=name,
        )

    @classmethod
    def from_table(
        cls,
        outcomes: Any,
        rewards: Any = None,
        *,
        players: Sequence[Label],
        horizon: int,
        initial: Any,
        budget: Any = None,
        constraints: Sequence[Label] | None = None,
        states: Sequence[Label] | None = None,
        actions: Sequence[Sequence[Label]] | None = None,
        name: str = "",
    ) -> MarkovGame:
        """Build a game from long tables, two or one: data frames, {column: values}, or sequences of records.

        Args:
            outcomes: one line per outcome, with the columns `state`, one per player (named as the player; its
                action), `probability`, `next_state`, one per constraint (its cost; named as the constraint, after
                `cost_` where another column has that name), and `t` when the game depends on time. A joint action is
                legal where it has outcomes.
            rewards: one line per legal joint action, with `state`, one column per player (its action), one per
                player named `reward_` and the player, and `t` when rewards depend on time. Left out: the columns of rewards
                are in the one table, the same in all lines of a joint action.
            players, horizon, initial, budget, constraints, name: as in `from_functions`.
            states, actions: labels in the order wanted; by default in order of first appearance.

        Raises:
            InvalidGame: naming the place, the value and the rule.
        """
        from acegames.model.from_table import from_table

        return from_table(
            outcomes,
            rewards,
            players=players,
            horizon=horizon,
            initial=initial,
            budget=budget,
            constraints=constraints,
            states=states,
            actions=actions,
            name=name,
        )

    def to_arrays(self) -> dict[str, Any]:
        """The game as dense arrays: `MarkovGame.from_arrays(**game.to_arrays())` is the same game.

        Where next state and cost are both random, probabilities may differ in the last bit.

        Raises:
            InvalidOption: dense arrays cannot say it: the cost depends on the next state, or a state has no action at some time.
            TooLarge: an array would take more than a gigabyte.
        """
        from acegames.model.to_arrays import to_arrays

        return to_arrays(self)

    def to_table(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The game as one long table {column: values}, and the other arguments of `from_table`.

        `table, rest = game.to_table()`; then `MarkovGame.from_table(table, **rest)` is the same game. There is a line for each outcome,
        with the columns `t` (where the game depends on time), `state`, one per player (its action), `next_state`, `probability`,
        `reward_` and each player, and one per constraint (its cost), named as `from_table` wants it.
        """
        from acegames.model.to_table import to_table

        return to_table(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the game to `.yaml`, `.yml`, `.json` or `.npz`; `acegames.load` gives the same game back."""
        from acegames.files.games import save_game

        save_game(self, path)

    # -- reading ------------------------------------------------------------------------------------------------

    def layer(self, t: int) -> Layer:
        """Rewards and outcomes at time t."""
        return self.layers[self.layer_at[t]]

    def state_index(self, state: Label) -> int:
        """Index of a state label; KeyError when there is none."""
        return self.state_numbers[state]

    def joint_action(self, indices: Iterable[int]) -> JointAction:
        """Labels of a joint action given by one index per player."""
        return tuple(labels[int(i)] for labels, i in zip(self.actions, indices, strict=True))

    def action_indices(self, action: Sequence[Label]) -> tuple[int, ...]:
        """Indices of a joint action given by labels; KeyError when a label is unknown."""
        return tuple(index[label] for index, label in zip(self.action_numbers, action, strict=True))

    @cached_property
    def state_numbers(self) -> dict[Label, int]:
        """Number of each state."""
        return {s: i for i, s in enumerate(self.states)}

    @cached_property
    def action_numbers(self) -> tuple[dict[Label, int], ...]:
        """Number of each action of each player."""
        return tuple({a: i for i, a in enumerate(labels)} for labels in self.actions)

    def content(self) -> dict[str, Any]:
        """The game but for the arrays of its layers, as the texts and numbers that its digest is taken of."""
        content: dict[str, Any] = {
            "players": [_label_text(x) for x in self.players],
            "states": [_label_text(x) for x in self.states],
            "actions": [[_label_text(x) for x in labels] for labels in self.actions],
            "constraints": [_label_text(x) for x in self.constraints],
            "initial": [[s, p.hex()] for s, p in self.initial],
            "budgets": [[text(b) for b in row] for row in self.budgets],
            "cost_values": [[cost_text(c) for c in values] for values in self.cost_values],
            "layer_at": list(self.layer_at),
        }
        return content if self.tails is None else {**content, "tails": self.tails.to_data()}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the game's content: labels, budgets, costs, rewards, probabilities. Stable across machines."""
        seen: dict[int, str] = {}

        def of(array: NDArray[Any]) -> str:
            if id(array) not in seen:
                little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
                seen[id(array)] = hashlib.sha256(repr(array.shape).encode() + little.tobytes()).hexdigest()
            return seen[id(array)]

        content = {**self.content(), "layers": [[of(getattr(layer, f)) for f in LAYER_FIELDS] for layer in self.layers]}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def __repr__(self) -> str:
        title = f" {self.name!r}" if self.name else ""
        rows = sum(len(layer.reward) for layer in self.layers)
        return (
            f"<MarkovGame{title}: {len(self.players)} players, {len(self.states)} states, horizon {self.horizon}, "
            f"{len(self.constraints)} constraints, {rows} stored joint actions, digest {self.digest[:12]}>"
        )


def _label_text(label: Any) -> str:
    """The text of a label for the digest; a set's does not depend on the order in which Python happens to list it."""
    if isinstance(label, (set, frozenset)):
        return "{" + ",".join(sorted(map(_label_text, label))) + "}"
    return "(" + ",".join(map(_label_text, label)) + ")" if type(label) is tuple else repr(label)


FOLLOW_OVERHEAD = 2**13
"""Moves that take as long as beginning one more step."""
FOLLOW_KNOWN = 2**26
"""Bytes of the sets that are remembered."""

LAYER_FIELDS = ("row_ptr", "action", "reward", "out_ptr", "prob", "next_state", "cost")


def reachable_states(game: MarkovGame) -> list[NDArray[np.bool_]]:
    """For t = 0 .. H, which states some legal play reaches at t, budgets aside."""
    return list(each_reach(game))


def each_reach(game: MarkovGame) -> Iterator[NDArray[np.bool_]]:
    """`reachable_states` one at a time."""
    here = np.zeros(len(game.states), dtype=bool)
    here[[s for s, _ in game.initial]] = True
    return follow(here, game.layer_at, lambda k: _moves(game.layers[k], len(game.states)))


def _moves(layer: Layer, n_states: int) -> Moves:
    row_state = np.repeat(np.arange(n_states), np.diff(layer.row_ptr))
    return np.repeat(row_state, np.diff(layer.out_ptr)), layer.next_state


def new_sets(
    reach: Iterable[NDArray[np.bool_]], layer_at: Sequence[int]
) -> Iterator[tuple[int, int, NDArray[np.bool_]]]:
    """(t, layer, states) of what `follow` gives, but where it is the same as one step before."""
    before: tuple[int, Any] = (-1, None)
    for t, (k, here) in enumerate(zip(layer_at, reach, strict=False)):
        if k != before[0] or here is not before[1]:
            yield t, k, here
        before = k, here


def follow(
    start: NDArray[np.bool_], layer_at: Sequence[int], moves: Callable[[int], Moves]
) -> Iterator[NDArray[np.bool_]]:
    """For t = 0 .. H, which states can occur, where `moves(k)` are those of layer k; sets that come again are looked up.

    Raises:
        TooLarge: there are too many times, and sets that never come again (see `limits`).
    """
    moves = functools.lru_cache(maxsize=1)(moves)
    known: dict[tuple[int, bytes], NDArray[np.bool_]] = {}
    here, work = start, 0
    yield here
    for t, k in enumerate(layer_at):
        key = (k, here.tobytes())
        if key not in known:
            begin, end = moves(k)
            work += FOLLOW_OVERHEAD + len(here) + len(end)
            if work > REACH_WORK:
                raise TooLarge(f"finding the states that can occur took too long; it was done up to t={t}", t)
            if len(known) * (FOLLOW_OVERHEAD + len(here)) > FOLLOW_KNOWN:
                known.clear()
            there = np.zeros_like(here)
            there[end[here[begin]]] = True
            known[key] = there
        here = known[key]
        yield here


def exact_costs(game: MarkovGame) -> tuple[tuple[Fraction, ...], ...]:
    """The cost values of a game whose costs are all numbers; InvalidOption naming a place where one is drawn from a distribution."""
    for m, values in enumerate(game.cost_values):
        drawn = [k for k, cost in enumerate(values) if isinstance(cost, RandomCost)]
        if drawn:
            spot = _first_place(game, m, drawn[0])
            raise InvalidOption(
                f"constraint {game.constraints[m]!r}: the cost at {spot} is drawn from {cost_text(values[drawn[0]])}. "
                "Exact methods count whole units of cost and need numbers; solve approximately: solve(game, epsilon=...), "
                "on the command line --epsilon"
            )
    return tuple(tuple(c for c in values if not isinstance(c, RandomCost)) for values in game.cost_values)


def _first_place(game: MarkovGame, constraint: int, code: int) -> str:
    for t in range(game.horizon):
        layer = game.layer(t)
        outcome = np.flatnonzero(layer.cost[:, constraint] == code)
        if len(outcome):
            row = int(np.searchsorted(layer.out_ptr, outcome[0], "right")) - 1
            state = int(np.searchsorted(layer.row_ptr, row, "right")) - 1
            return place(t, game.states[state], game.joint_action(layer.action[row]))
    raise AssertionError("every cost value occurs")


def place(
    t: int | None = None, state: Any = None, action: Iterable[Any] | None = None, *, every_t: bool = False
) -> str:
    """Return `t=2, state 'road', action ('dare', 'yield')` for an error message."""
    parts = ["every t"] if every_t else ([] if t is None else [f"t={t}"])
    if state is not None:
        parts.append(f"state {state!r}")
    if action is not None:
        parts.append(f"action {tuple(action)!r}")
    return ", ".join(parts)


def check_game(game: Any) -> None:
    """Raise InvalidGame with a hint unless `game` is a MarkovGame."""
    if not isinstance(game, MarkovGame):
        hint = (
            "; acegames.load(path) reads one from a file, acegames.catalog.get(name) builds a ready one"
            if isinstance(game, str)
            else ""
        )
        raise InvalidGame(f"game: got {type(game).__name__} {game!r:.60}, must be a MarkovGame{hint}")


def check_horizon(horizon: Any) -> int:
    """Return the horizon as an int of at least one."""
    if isinstance(horizon, bool) or not isinstance(horizon, (int, np.integer)) or horizon < 1:
        raise InvalidGame(f"horizon: got {horizon!r}, must be a whole number of at least 1")
    return int(horizon)


def check_labels(kind: str, labels: Iterable[Any]) -> tuple[Label, ...]:
    """Return labels as plain hashable Python values, each once."""
    if isinstance(labels, str):
        raise InvalidGame(f"{kind}: got the text {labels!r}, must be a sequence of labels such as [{labels!r}]")
    seen: dict[Label, None] = {}
    for label in spread(kind, [plain_label(kind, raw) for raw in labels]):
        if label in seen:
            raise InvalidGame(f"{kind}: the label {label!r} occurs twice")
        seen[label] = None
    return tuple(seen)


def spread(kind: str, labels: Sequence[Label]) -> Sequence[Label]:
    """Return labels unless so many of them have one hash that tables of them would take quadratic time."""
    if (
        len(labels) > SAME_HASH
        and max(Counter(map(hash, labels)).values()) > SAME_HASH
        and len(set(map(repr, labels))) > SAME_HASH
    ):
        raise InvalidGame(
            f"{kind}: more than {SAME_HASH} labels are numbers that differ by multiples of 2^61 - 1; use text"
        )
    return labels


def plain_label(kind: str, label: Any) -> Label:
    """Return a label with numpy scalars made plain Python; InvalidGame when it cannot be hashed."""
    if isinstance(label, np.generic):
        label = label.item()
    if type(label) is tuple:
        return tuple(plain_label(kind, part) for part in label)
    if isinstance(label, float) and math.isnan(label):
        raise InvalidGame(f"{kind}: NaN cannot be a label")
    try:
        hash(label)
    except TypeError:
        raise InvalidGame(f"{kind}: the label {label!r} cannot be hashed; use a string, a number or a tuple") from None
    return label  # type: ignore[no-any-return]


def read_initial(initial: Any, index: Mapping[Label, int] | None = None) -> dict[Label, float]:
    """Return {state: probability} from a state or a mapping."""
    if isinstance(initial, (list, np.ndarray)):
        raise InvalidGame(f"initial: got {initial!r}, must be a state, or {{state: probability}}")
    given = dict(initial) if isinstance(initial, Mapping) else {plain_label("initial", initial): 1.0}
    out: dict[Label, float] = {}
    for raw, p in given.items():
        state = plain_label("initial", raw)
        if index is not None and state not in index:
            raise InvalidGame(f"initial: unknown state {state!r}")
        try:
            prob = probability(p)
        except (TypeError, ValueError):
            raise InvalidGame(f"initial: state {state!r} has probability {p!r}, which is not a number") from None
        if not 0.0 <= prob < math.inf:
            raise InvalidGame(f"initial: state {state!r} has probability {prob}, must be at least 0")
        if prob > 0:
            out[state] = prob
    return out
