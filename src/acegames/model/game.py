"""The constrained Markov game, as frozen arrays (spec 1).

    n players, states S, joint actions A = A_1 x ... x A_n of which a state allows some,
    horizon H, t = 0 .. H-1; at (t, s, a): an expected reward per player, and a list of outcomes
    (probability, next state, cost vector), which may each pay rewards; a policy is feasible when
    c_0 + ... + c_t <= B_t, in every component, for every t, with probability one. The cumulative
    cost of a reservoir follows max(c + c_t, 0) instead (spec 11).

The game is held sparsely. A *row* is one legal joint action of one state; a row's outcomes are
contiguous. Equal arrays of different times are one object, and times that agree entirely share one
`Layer`. Costs are small integer codes into `cost_values`: the exact values that occur, sorted, then
the distributions, one tuple per constraint.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import index
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidGame, InvalidOption, UnknownPair
from acegames.model.assemble import place_of_cost
from acegames.model.budgets import Reservoirs, own_budget, spent_at_start
from acegames.model.changing import game_with_budget, game_with_horizon, game_with_name
from acegames.model.checks import JointAction, Label, counted, place, unknown
from acegames.model.from_arrays import game_from_arrays, game_from_sparse
from acegames.model.from_functions import game_from_functions
from acegames.model.from_table import game_from_table
from acegames.model.layers import (
    LAYER_FIELDS,
    PAYMENT_TYPES,
    STATED_TYPES,
    Layer,
    Payments,
    Tails,
    reachable_states,
    times_of,
)
from acegames.model.numbers import Bound, text
from acegames.model.random_costs import Cost, RandomCost, cost_text
from acegames.model.to_data import game_to_table
from acegames.model.words import budgets_listed, called, listed
from acegames.system.display import Instead, Shown, shortened

__all__ = ["LAYER_FIELDS", "PAYMENT_TYPES", "STATED_TYPES", "JointAction", "Label", "Layer", "MarkovGame", "Payments"]
__all__ += ["check_game", "exact_costs", "place", "reachable_states"]

_HASHED = 2**16
"""Rows of an array that are hashed together."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class MarkovGame(Shown):
    """A finite-horizon Markov game with hard budgets.

    Build one with `from_functions`, `from_arrays`, `from_sparse` or `from_table`, or from agents
    that move on their own with `compose`. Without constraints (M = 0) it is an action-constrained
    Markov game: `legal` alone restricts play.
    """

    players: tuple[Label, ...]  # N
    states: tuple[Label, ...]  # S
    actions: tuple[tuple[Label, ...], ...]  # N tuples: every label that player uses anywhere
    constraints: tuple[Label, ...]  # M
    horizon: int
    initial: tuple[tuple[int, float], ...]  # (state index, probability), probabilities positive
    budgets: tuple[tuple[Bound, ...], ...]  # H rows of M: bounds on the cumulative cost after acting
    cost_values: tuple[tuple[Cost, ...], ...]  # M sorted tuples of exact costs; random ones come last
    layers: tuple[Layer, ...]  # the distinct layers, in order of first use
    layer_at: tuple[int, ...]  # H indices into layers
    name: str  # for people; not part of the digest
    tails: Tails | None  # where infinite play was cut short: bounds on what comes later
    reservoirs: Reservoirs  # M: None for a plain budget

    from_arrays = staticmethod(game_from_arrays)
    from_functions = staticmethod(game_from_functions)
    from_sparse = staticmethod(game_from_sparse)
    from_table = staticmethod(game_from_table)
    to_table = game_to_table
    with_budget = game_with_budget
    with_horizon = game_with_horizon
    with_name = game_with_name

    if not TYPE_CHECKING:  # names that one may look for
        load = Instead("acegames.load(path) reads a game from a file")
        budget = Instead("game.budgets has the bounds of each time, and game.with_budget(...) gives the game others")

    def __init__(self, *_: object, **__: object) -> None:
        """Refuse fields, as `dataclasses.replace` gives them: they might not fit each other."""
        raise InvalidGame(
            "MarkovGame: a game cannot be made from fields, nor with dataclasses.replace. Change a game with "
            "game.with_budget(...), .with_horizon(...) or .with_name(...), and build one with MarkovGame.from_functions, "
            "from_arrays, from_sparse or from_table, or with compose"
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the game to `.yaml`, `.yml`, `.json` or `.npz`; `acegames.load` reads it back."""
        from acegames.files.formats import save

        save(self, path)

    def layer(self, t: int) -> Layer:
        """Return the rewards and outcomes of time t."""
        return self.layers[self.layer_at[t]]

    def state_index(self, state: Label) -> int:
        """Return the index of a state label; UnknownPair, a KeyError, where there is none."""
        return _number("state", state, self.state_numbers)

    def joint_action(self, indices: Iterable[int]) -> JointAction:
        """Return the labels of a joint action given by one index per player."""
        return tuple(labels[int(i)] for labels, i in zip(self.actions, indices, strict=True))

    def legal(self, t: int, state: Label) -> dict[JointAction, int]:
        """Return the legal joint actions of a state and their rows; KeyError for an unknown one."""
        layer = self.layer(t)
        return {self.joint_action(layer.action[row]): row for row in layer.rows(self.state_index(state))}

    def outcomes(self, t: int, row: int) -> list[tuple[float, Label, tuple[Cost, ...]]]:
        """Return probability, next state and cost of each outcome of a row.

        `legal` gives the number of a row.
        """
        try:
            row = index(row)
        except TypeError:
            rule = "must be the number of a row: game.legal(t, state)[action] gives that of a joint action"
            raise InvalidOption(f"row: got {row!r:.60}, {rule}") from None
        if not (isinstance(t, (int, np.integer)) and 0 <= t < self.horizon):
            raise InvalidOption(f"t: got {t!r:.60}, must be a time from 0 to {self.horizon - 1}")
        if not 0 <= row < len(self.layer(t).reward):
            last = len(self.layer(t).reward) - 1
            raise InvalidOption(f"row: got {row}, must be from 0 to {last}: game.legal(t, state)[action] gives it")
        layer, outs = self.layer(t), self.layer(t).outcomes(row)
        costs = [tuple(v[k] for v, k in zip(self.cost_values, code, strict=True)) for code in layer.cost[outs].tolist()]
        following = [self.states[s] for s in layer.next_state[outs].tolist()]
        return list(zip(layer.prob[outs].tolist(), following, costs, strict=True))

    def payments(self, t: int, row: int) -> list[tuple[float, Label, tuple[Cost, ...], tuple[float, ...]]]:
        """Return what can be drawn in a row: as `outcomes`, and what it pays each player.

        An outcome that may pay different amounts stands here once for each, and once in `outcomes`.
        """
        outcomes, layer = self.outcomes(t, row), self.layer(t)
        if layer.payments is None:
            return [(*outcome, tuple(layer.reward[row].tolist())) for outcome in outcomes]
        ptr, prob, reward = layer.payments.ptr, layer.payments.prob, layer.payments.reward
        return [
            (float(prob[j]), following, cost, tuple(reward[j].tolist()))
            for k, (_, following, cost) in enumerate(outcomes, start=layer.outcomes(row).start)
            for j in range(int(ptr[k]), int(ptr[k + 1]))
        ]

    def place(self, t: int, row: int) -> str:
        """Return time, state and joint action of a row, for an error message."""
        state = int(np.searchsorted(self.layer(t).row_ptr, row, "right")) - 1
        return place(t, self.states[state], self.joint_action(self.layer(t).action[row]))

    def action_indices(self, action: Sequence[Label]) -> tuple[int, ...]:
        """Return the indices of a joint action given by labels; UnknownPair for unknown ones."""
        if len(action) != len(self.players):
            raise UnknownPair(f"action {action!r}: must be one action per player {list(self.players)!r}")
        named = zip(self.players, action, self.action_numbers, strict=True)
        return tuple(_number(f"action of player {player!r}", label, index) for player, label, index in named)

    @cached_property
    def spent_at_start(self) -> tuple[Fraction, ...]:
        """The cumulative costs at the beginning: zero, or what is missing in a reservoir."""
        return spent_at_start(self.reservoirs)

    @cached_property
    def times(self) -> list[tuple[int, ...]]:
        """The times at which each layer applies."""
        return list(times_of(self.layer_at).values())

    @cached_property
    def state_numbers(self) -> dict[Label, int]:
        """Number of each state."""
        return {s: i for i, s in enumerate(self.states)}

    @cached_property
    def action_numbers(self) -> tuple[dict[Label, int], ...]:
        """Number of each action of each player."""
        return tuple({a: i for i, a in enumerate(labels)} for labels in self.actions)

    def content(self) -> dict[str, Any]:
        """Return the texts and numbers that the digest covers besides the arrays of the layers."""
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
        if any(self.reservoirs):
            content["reservoirs"] = [x and [text(x.capacity), text(x.start)] for x in self.reservoirs]
        if any(layer.payments is not None for layer in self.layers):
            content["payments"] = _hashes([layer.payments for layer in self.layers], PAYMENT_TYPES)
        return content if self.tails is None else {**content, "tails": self.tails.to_data()}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of labels, budgets, costs, rewards, probabilities; the same on all machines."""
        layers = _hashes(self.layers, STATED_TYPES)
        return hashlib.sha256(json.dumps({**self.content(), "layers": layers}, sort_keys=True).encode()).hexdigest()

    def __str__(self) -> str:
        named = zip(self.players, self.actions, strict=True)
        budgets = {called(label): budget for label, budget in own_budget(self).items()}
        lines = {
            "Game": ", ".join(filter(None, [self.name, counted(self.horizon, "step"), f"digest {self.digest[:12]}"])),
            "Players": listed(self.players),
            "Actions": "; ".join(f"{called(player)}: {listed(actions)}" for player, actions in named),
            "States": listed(self.states),
            "Budgets": budgets_listed(budgets) or "none",
        }
        return "\n".join(shortened(" ".join(f"{head}: {said}".split()), 300) for head, said in lines.items())

    def __repr__(self) -> str:
        title = f" {self.name!r}" if self.name else ""
        rows = sum(len(layer.reward) for layer in self.layers)
        counts = {"player": len(self.players), "state": len(self.states), "constraint": len(self.constraints)}
        players, states, constraints = (f"{n} {what}{'s' * (n != 1)}" for what, n in counts.items())
        return (
            f"<MarkovGame{title}: {players}, {states}, horizon {self.horizon}, {constraints}, "
            f"{rows} stored joint action{'s' * (rows != 1)}, digest {self.digest[:12]}>"
        )


def _number(kind: str, label: Any, index: Mapping[Label, int]) -> int:
    try:
        return index[label]
    except (KeyError, TypeError):  # unknown, or no label at all
        raise UnknownPair(unknown(kind, label, index)) from None


def _hashes(records: Sequence[Any], types: Mapping[str, str]) -> list[list[str] | None]:
    """Return the SHA-256 of the arrays of each record, in these types, each array once."""
    seen: dict[tuple[int, str], str] = {}

    def of(array: NDArray[Any], dtype: str) -> str:
        key = id(array), dtype
        if key not in seen:
            digest = hashlib.sha256(repr(array.shape).encode())
            for begin in range(0, len(array) if array.size else 0, _HASHED):
                digest.update(np.ascontiguousarray(array[begin : begin + _HASHED], dtype=dtype).data)
            seen[key] = digest.hexdigest()
        return seen[key]

    return [x and [of(getattr(x, field), dtype) for field, dtype in types.items()] for x in records]


def _label_text(label: Any) -> str:
    """Return the text of a label for the digest; sets are sorted."""
    if isinstance(label, (set, frozenset)):
        return "{" + ",".join(sorted(map(_label_text, label))) + "}"
    return "(" + ",".join(map(_label_text, label)) + ")" if type(label) is tuple else repr(label)


def exact_costs(game: MarkovGame) -> tuple[tuple[Fraction, ...], ...]:
    """Return the cost values of a game without random costs.

    Raises InvalidOption that names a place with a random one.
    """
    for m, values in enumerate(game.cost_values):
        drawn = [k for k, cost in enumerate(values) if isinstance(cost, RandomCost)]
        if drawn:
            spot = place_of_cost(game, m, drawn[0])
            raise InvalidOption(
                f"constraint {game.constraints[m]!r}: the cost at {spot} is drawn from {cost_text(values[drawn[0]])}. "
                "Exact methods count whole units of cost and need numbers; solve approximately: solve(game, epsilon=...), "
                "on the command line --epsilon"
            )
    return tuple(tuple(c for c in values if not isinstance(c, RandomCost)) for values in game.cost_values)


def check_game(game: Any) -> None:
    """Raise InvalidGame with a hint unless `game` is a MarkovGame."""
    if not isinstance(game, MarkovGame):
        hint = "; acegames.load(path) reads one from a file, acegames.catalog.get(name) builds a ready one"
        if not isinstance(game, str):
            kind = type(game).__name__
            hint = f"; {kind.lower()}.game is one" if isinstance(getattr(game, "game", None), MarkovGame) else ""
        shown = f" {game!r:.60}" if isinstance(game, (str, PathLike, int, float)) else ""
        raise InvalidGame(f"game: got {type(game).__name__}{shown}, must be a MarkovGame{hint}")
