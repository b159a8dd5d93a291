"""Games from Python functions; states are discovered by walking forward from the start."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from acegames.errors import InvalidGame
from acegames.model.arrays import owners, pointers
from acegames.model.assemble import Names, RawLayer, assemble, code_costs
from acegames.model.budgets import read_budget
from acegames.model.checks import JointAction, Label, check_horizon, check_labels, place, plain_label, read_initial
from acegames.model.costs.random import Cost, is_distribution, read_cost
from acegames.model.numbers import is_scalar, probability
from acegames.model.user_functions import check_function
from acegames.numerics import PROBABILITY_SUM

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame

Outcome = tuple[float, Label, tuple[Cost, ...]]
Block = dict[JointAction, tuple[tuple[float, ...], tuple[Outcome, ...]]]
"""The answers for one (t, state): reward and outcomes of each legal joint action."""
Table = tuple[list[int], dict[Label, Block]]
"""Times, and what happens at them in each state."""


def game_from_functions(
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

    Each function is called once for every (t, state, joint action) that can occur.

    Args:
        players: one label per player.
        actions: `actions(t, s)` gives one sequence of labels per player.
        outcomes: `outcomes(t, s, a)` gives (probability, next_state, cost) triples; a cost is a
            number, a sequence of M numbers, {constraint: number} (absent means 0), or None for no
            cost. In place of a number there may be a distribution: an object with a `cdf` and an
            upper bound (see `random_cost`).
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
    check_function("actions", actions, ("t", "state"), error=InvalidGame)
    for what, function in (("outcomes", outcomes), ("reward", reward), ("legal", legal)):
        if what != "legal" or legal is not None:
            check_function(what, function, ("t", "state", "action"), error=InvalidGame)
    horizon = check_horizon(horizon)
    player_labels = check_labels("players", players)
    constraint_labels, budgets = read_budget(budget, constraints, horizon)
    seen: tuple[dict[Label, None], ...] = tuple({} for _ in player_labels)
    ask = _Questions(player_labels, constraint_labels, actions, outcomes, reward, legal, seen)
    tables: list[Table] = []
    here: dict[Label, None] = dict.fromkeys(read_initial(initial))
    states = dict(here)
    for t in range(horizon):
        blocks = {state: ask.block(t, state) for state in here}
        _file_under_equal_times(tables, t, blocks)
        here = {nxt: None for block in blocks.values() for _, outs in block.values() for _, nxt, _ in outs}
        states |= here
    names = Names(player_labels, tuple(states), tuple(map(tuple, seen)), constraint_labels)
    layers, values = _raw_layers(names, tables)
    return assemble(names, layers, values, horizon=horizon, initial=initial, budgets=budgets, name=name)


def _raw_layers(names: Names, tables: list[Table]) -> tuple[list[RawLayer], list[list[Cost]]]:
    """Return the raw layers of tables with disjoint times, and the cost values of their codes."""
    by_table = [[(s, a, *b[a]) for s, b in blocks.items() for a in b] for _, blocks in tables]
    vectors = (cost for rows in by_table for *_, outs in rows for _, _, cost in outs)
    values, codes = code_costs(vectors, len(names.constraints))
    ends = np.cumsum([sum(len(outs) for *_, outs in rows) for rows in by_table])
    state_index = {s: i for i, s in enumerate(names.states)}
    action_index = [{a: i for i, a in enumerate(labels)} for labels in names.actions]
    layers = []
    for (times, _), rows, cost in zip(tables, by_table, np.split(codes, ends[:-1]), strict=True):
        acts = [[index[x] for index, x in zip(action_index, a, strict=True)] for _, a, *_ in rows]
        layers.append(
            RawLayer(
                times=tuple(times),
                row_state=np.array([state_index[s] for s, *_ in rows], dtype=np.int64),
                row_action=np.array(acts, dtype=np.int64),
                reward=np.array([r for _, _, r, _ in rows], dtype=np.float64),
                out_row=owners(pointers([len(outs) for *_, outs in rows])),
                prob=np.array([p for *_, outs in rows for p, _, _ in outs], dtype=np.float64),
                next_state=np.array([state_index[nxt] for *_, outs in rows for _, nxt, _ in outs], dtype=np.int64),
                cost=cost,
            )
        )
    return layers, values


def _file_under_equal_times(tables: list[Table], t: int, blocks: dict[Label, Block]) -> None:
    """Add time t to the first table that agrees on every state they share, else to a new one."""
    for times, known in tables:
        if all(known.get(s, b) == b for s, b in blocks.items()):
            times.append(t)
            known.update(blocks)
            return
    tables.append(([t], dict(blocks)))


@dataclass(frozen=True)
class _Questions:
    """Asks the user's functions and checks each answer where it is given."""

    players: tuple[Label, ...]
    constraints: tuple[Label, ...]
    actions: Callable[[int, Any], Sequence[Iterable[Label]]]
    outcomes: Callable[[int, Any, Any], Iterable[tuple[float, Any, Any]]]
    reward: Callable[[int, Any, Any], Any]
    legal: Callable[[int, Any, Any], bool] | None
    seen: tuple[dict[Label, None], ...]  # the actions of each player that were given so far

    def block(self, t: int, state: Label) -> Block:
        spot = place(t, state)
        given, choices = list(self.actions(t, state)), []
        if len(given) != len(self.players):
            raise InvalidGame(f"{spot}: actions for {len(given)} players, there are {len(self.players)}")
        for player, labels, seen in zip(self.players, given, self.seen, strict=True):
            choices.append(check_labels(f"{spot}: actions of player {player!r}", labels))
            if not choices[-1]:
                raise InvalidGame(f"{spot}: player {player!r} has an empty action set")
            seen.update(dict.fromkeys(choices[-1]))
        joint = [a for a in itertools.product(*choices) if self.legal is None or self.legal(t, state, a)]
        if not joint:
            raise InvalidGame(f"{spot}: no legal joint action, every state that can occur needs one")
        return {a: (self._reward(t, state, a), self._outcomes(t, state, a)) for a in joint}

    def _reward(self, t: int, state: Label, action: JointAction) -> tuple[float, ...]:
        given = self.reward(t, state, action)
        spot = place(t, state, action)
        numbers: tuple[float, ...] = read_vector(given, self.players, float, spot, "reward", "player")
        for player, number in zip(self.players, numbers, strict=True):
            if not math.isfinite(number):
                raise InvalidGame(f"{spot}: reward of player {player!r} is {number}, must be a finite number")
        return numbers

    def _outcomes(self, t: int, state: Label, action: JointAction) -> tuple[Outcome, ...]:
        spot = place(t, state, action)
        found = []
        for item in self.outcomes(t, state, action):
            try:
                chance, next_state, cost = item
                chance = probability(chance)
            except (TypeError, ValueError):
                raise InvalidGame(f"{spot}: outcome {item!r}, must be (probability, next_state, cost)") from None
            vector = read_vector({} if cost is None else cost, self.constraints, read_cost, spot, "cost", "constraint")
            if not 0 <= chance < math.inf:
                raise InvalidGame(f"{spot}: probability {chance} of next state {next_state!r}, must be at least 0")
            if chance > 0:
                found.append((chance, plain_label(f"{spot}: next state", next_state), vector))
        if not found:
            raise InvalidGame(f"{spot}: no outcome, probabilities must sum to 1 within 1e-8")
        total = math.fsum(p for p, _, _ in found)
        if abs(total - 1) > PROBABILITY_SUM:  # `assemble` would no longer know at which t it was said
            raise InvalidGame(f"{spot}: probabilities sum to {total:.12g}, must sum to 1 within 1e-8")
        return tuple(found)


def read_vector(given: Any, labels: tuple[Label, ...], number: Any, spot: str, what: str, of: str) -> tuple[Any, ...]:
    """Return one number per label from a number, a sequence or a mapping (absent costs are 0)."""
    if what == "cost" and not labels and not (isinstance(given, (Mapping, Sized)) and not len(given)):
        raise InvalidGame(f"{spot}: cost {given!r}, but the game has no budget; give budget={{constraint: number}}")
    if isinstance(given, Mapping):
        unknown = [k for k in given if k not in labels]
        if unknown:
            raise InvalidGame(f"{spot}: {what} names the unknown {of} {unknown[0]!r}, there are {list(labels)!r}")
        missing = [x for x in labels if x not in given]
        if missing and what != "cost":
            raise InvalidGame(f"{spot}: {what} of {of} {missing[0]!r} is missing")
        entries = [given.get(x, 0) for x in labels]
    elif is_distribution(given) or is_scalar(given):
        entries = [given]
    else:
        entries = list(given)
    if len(entries) != len(labels):
        raise InvalidGame(f"{spot}: {what} {given!r} has {len(entries)} entries, there are {len(labels)} {of}s")
    found = []
    for label, entry in zip(labels, entries, strict=True):
        try:
            found.append(number(entry))
        except (TypeError, ValueError) as error:
            which = f"of {label!r}" if is_distribution(entry) else repr(given)
            raise InvalidGame(f"{spot}: {what} {which}: {error}") from None
    return tuple(found)
