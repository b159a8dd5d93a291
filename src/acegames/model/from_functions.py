"""Games from Python functions; states are discovered by walking forward from the start."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from operator import add
from types import GeneratorType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from acegames.errors import InvalidGame, TooLarge
from acegames.model.arrays import owners, pointers
from acegames.model.assemble import Names, RawLayer, assemble, code_costs
from acegames.model.budgets import read_budget
from acegames.model.checks import (
    UNORDERED,
    JointAction,
    Label,
    are,
    check_count,
    check_flag,
    check_horizon,
    check_labels,
    counted,
    is_iterable,
    place,
    plain_label,
    read_initial,
    show,
    unknown,
)
from acegames.model.numbers import is_scalar, probability, real
from acegames.model.random_costs import Cost, is_distribution, read_cost
from acegames.model.user_functions import (
    BUILDING,
    DISCOVERING,
    SUGGESTION,
    BuildingReporter,
    OnBuilding,
    note_of_place,
    public,
    roles,
    warn_of_game,
)
from acegames.numerics import PROBABILITY_SUM
from acegames.system.machine import check_memory

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame

Rewards = tuple[float, ...]
Outcome = tuple[float, Label, tuple[Cost, ...], Rewards | None]
"""Probability, next state, cost, and what it pays; None: the reward of its joint action."""

JOINT_BYTES = 500  # that a joint action takes while answers are gathered, at least
ALWAYS_FINE = 100_000  # joint actions of a state: asking what is free takes longer


class StateBlock(NamedTuple):
    """The answers for one (t, state), by joint action, and the states that may follow."""

    rewards: dict[JointAction, Rewards]
    outcomes: dict[JointAction, tuple[Outcome, ...]]
    following: tuple[Label, ...]


Table = tuple[list[int], dict[Label, StateBlock]]
"""Times, and what happens at them in each state."""


@public("MarkovGame.from_functions", progress="building", begins=DISCOVERING)
def game_from_functions(
    *,
    players: Sequence[Label],
    actions: Callable[..., Sequence[Iterable[Label]]],
    outcomes: Callable[..., Iterable[tuple[Any, ...]]],
    reward: Callable[..., Any] | None = None,
    horizon: int,
    initial: Any,
    budget: Any = None,
    legal: Callable[..., bool] | None = None,
    constraints: Sequence[Label] | None = None,
    stationary: bool = False,
    most: int = 500_000,
    time_limit: float | None = None,
    name: str = "",
    progress: OnBuilding | bool | None = None,
) -> MarkovGame:
    """Build a game from functions; states are any hashables and are discovered from `initial`.

    Each function is called once for every (t, state, joint action) that can occur. A function
    that requires one argument fewer, and does not call its first one `t` or `time`, is called
    without it, as `reward(s, a)`, once for every (state, joint action): faster by a factor of the
    horizon. Arguments come in the order below; where names such as `t`, `state` or `action` say
    that they are in another order, the function is refused.

    Args:
        players: one label per player.
        actions: `actions(t, s)` gives one sequence of labels per player, or {player: labels}.
        outcomes: `outcomes(t, s, a)` gives (probability, next_state, cost) triples; a cost is a
            number, a sequence of M numbers, or {constraint: number} (absent means 0). None means no
            cost, in a game with budgets with a GameWarning: most often a function forgot to return.
            In place of a number there may be a distribution: an object with a `cdf` and an upper
            bound (see `random_cost`). A fourth entry, written as a reward, is what this outcome
            pays, besides `reward` if that is given: for rewards that the next state does not tell.
        reward: `reward(t, s, a)` gives one number per player, or {player: number}. A reward may
            depend on where play goes: `reward(t, s, a, next_s)` is called for each next state. Play
            then pays that of the outcome that is drawn, and solving takes the mean, weighted with
            the probabilities of `outcomes`. It is left out where outcomes pay all there is. Of
            three arguments, the names say whether they are (t, s, a) or (s, a, next_s). It is the
            latter where the first is `s` or `state`, the second `a` or `action`, or the last
            `next...`, `new_...`, `..._next`, `..._prime`, `after`, `successor`, `s2` and the like,
            unless the first is a time such as `t`, `time` or `step`. Where no name says so, it is
            (t, s, a), with a GameWarning.
        horizon: number of steps, at least 1.
        initial: a state, or {state: probability}. A state None, here or as a next state, is allowed
            with a GameWarning: most often a function forgot to return.
        budget: as in `from_arrays`; leave out for a game without budgets.
        legal: `legal(t, s, a)` is True where the joint action is allowed.
        constraints: one label per constraint; taken from a `budget` that is a dict, else integers.
        stationary: True if no answer depends on `t`, also of functions that take it: they are
            called for the first time only.
        most: the most (t, state) to ask about, or states if no answer depends on `t`. More are most
            often a number in the state that grows without bound.
        time_limit: the most seconds to take. What takes longer is an error that says how far it
            came, as soon as that can be foreseen.
        name: a name for people.
        progress: True for a bar, or a function that is called with a `Building` now and then,
            before and after each time.

    Raises:
        InvalidGame: naming the place, the value and the rule.
        TooLarge: there are more (t, state) than `most`, the `time_limit` does not suffice, or a
            state has more joint actions than fit into memory.
    """
    assert not isinstance(progress, bool)  # `public` has made a callback of it
    horizon = check_horizon(horizon)
    reporter = BuildingReporter(progress, horizon, name=str(name), time_limit=time_limit, less=LESS)
    return ask_functions(
        players=players,
        actions=actions,
        outcomes=outcomes,
        reward=reward,
        legal=legal,
        horizon=horizon,
        initial=initial,
        budget=budget,
        constraints=constraints,
        stationary=stationary,
        most=check_count("most", most),
        name=name,
        reporter=reporter,
    )


LESS = "Fewer states or joint actions, or a shorter horizon, take less"


@public(memory=BUILDING)
def ask_functions(
    *,
    players: Sequence[Label],
    actions: Any,
    outcomes: Any,
    reward: Any,
    legal: Any,
    horizon: int,
    initial: Any,
    budget: Any,
    constraints: Any,
    name: str,
    stationary: bool = False,
    most: float = math.inf,
    reporter: BuildingReporter | None = None,
    offered: Sequence[Iterable[Label]] | None = None,
) -> MarkovGame:
    """Build a game from functions that need not be the user's own.

    Args:
        offered: actions of each player that come first, in their order, whether or not they occur.
    """
    horizon, stationary = check_horizon(horizon), check_flag("stationary", stationary, InvalidGame)
    reporter = reporter or BuildingReporter(None, horizon)
    player_labels = check_labels("players", players)
    budgets = read_budget(budget, constraints, horizon)
    ask = _Questions(
        player_labels,
        tuple(budgets),
        actions=_UserFunction.of("actions", actions, stationary),
        outcomes=_UserFunction.of("outcomes", outcomes, stationary),
        reward=_UserFunction.of("reward", reward, stationary, outcomes),
        legal=_UserFunction.of("legal", legal, stationary),
        seen=tuple({} for _ in player_labels) if offered is None else tuple(map(dict.fromkeys, offered)),
        count=reporter.joint_action,
    )
    tables: list[Table] = []
    here: dict[Label, None] = dict.fromkeys(read_initial(initial))
    if None in here:
        warn_of_game("initial: the state is None; is a `return` missing?")
        ask.labels[None] = None  # said once
    states, asked, earlier = dict(here), 0, 0
    for t in range(horizon):
        blocks: dict[Label, StateBlock] = {}
        reporter.time(len(here))
        for state in here:
            blocks[state] = ask.block(t, state)
            reporter.states(len(blocks), len(here))
            if (asked + len(blocks) if ask.depends_on_t else len(ask.blocks)) > most:
                known = itertools.islice(states, earlier)
                raise too_many_states(most, not ask.depends_on_t, t, horizon, known, here, _bounded(reporter.repeats))
        met_again = bool(tables) and not tables[0][1].keys().isdisjoint(blocks)
        _file_under_equal_times(tables, t, blocks)
        reporter.repeated(ask.depends_on_t and len(tables) == 1, met_again)
        asked, earlier = asked + len(here), len(states)
        here = dict.fromkeys(itertools.chain.from_iterable(block.following for block in blocks.values()))
        states |= here
    names = Names(player_labels, tuple(states), tuple(map(tuple, ask.seen)), ask.constraints)
    layers, values = _raw_layers(names, tables)
    return assemble(names, layers, values, horizon=horizon, initial=initial, budgets=budgets, name=name)


def too_many_states(
    most: float, pooled: bool, t: int, horizon: int, earlier: Iterable[Label], here: Collection[Label], advice: str
) -> TooLarge:
    """Return an error that says which states there are too many of, and what grows in them.

    Args:
        most: how many there may be.
        pooled: whether all times count together.
        t, horizon: the time, and the number of steps.
        earlier: the states of earlier times.
        here: the states of this time.
        advice: sentences on what helps.
    """
    what, last = "states" if pooled else "situations (t, state)", next(reversed(tuple(here)), None)
    so_far = f", where there {are(len(here), 'state')} so far, such as {show(last)}{_growth(earlier, here)}" * bool(
        here
    )
    return TooLarge(f"more than {most:,} {what}: stopped at t={t} of {horizon}{so_far}. {advice}")


def _growth(earlier: Iterable[Label], here: Iterable[Label]) -> str:
    """Say which numbers in the states of a time go beyond those of all earlier times."""
    beyond, known = (_ranges(states) for states in (here, earlier))
    grown = [(k, high, known[k][1]) for k, (_, high) in beyond.items() if k in known and high > known[k][1]]
    grown += [(k, low, known[k][0]) for k, (low, _) in beyond.items() if k in known and low < known[k][0]]
    said = [f"{'it' if k is None else f'entry {k} of it'} has come to {x}, from {last} before" for k, x, last in grown]
    return "; " + ", ".join(said) if said else ""


def _ranges(states: Iterable[Label]) -> dict[int | None, tuple[Any, Any]]:
    """Return the least and the largest of each number in the states, by its place; None alone."""
    ranges: dict[int | None, tuple[Any, Any]] = {}
    for state in states:
        for k, x in enumerate(state) if isinstance(state, tuple) else [(None, state)]:
            if is_scalar(x):
                low, high = ranges.get(k, (x, x))
                ranges[k] = min(low, x), max(high, x)
    return ranges


def _bounded(repeats: bool) -> str:
    """Return what to do about states without end."""
    rule = "If a number in the state grows without bound, bound it, as by min(x, LIMIT); else give a larger most="
    return f"{rule}{f'. {SUGGESTION}' if repeats else ''}"


def _raw_layers(names: Names, tables: list[Table]) -> tuple[list[RawLayer], list[list[Cost]]]:
    """Return the raw layers of tables with disjoint times, and the cost values of their codes."""
    by_table = [
        [(s, a, r, b.outcomes[a]) for s, b in blocks.items() for a, r in b.rewards.items()] for _, blocks in tables
    ]
    vectors = (cost for rows in by_table for *_, outs in rows for _, _, cost, _ in outs)
    values, codes = code_costs(vectors, len(names.constraints))
    ends = np.cumsum([sum(len(outs) for *_, outs in rows) for rows in by_table])
    state_index = {s: i for i, s in enumerate(names.states)}
    action_index = [{a: i for i, a in enumerate(labels)} for labels in names.actions]
    layers = []
    for (times, _), rows, cost in zip(tables, by_table, np.split(codes, ends[:-1]), strict=True):
        paid = any(out[3] is not None for *_, outs in rows for out in outs)
        pays = [r if own is None else own for _, _, r, outs in rows for *_, own in outs] if paid else None
        acts = [[index[x] for index, x in zip(action_index, a, strict=True)] for _, a, *_ in rows]
        layers.append(
            RawLayer(
                times=tuple(times),
                row_state=np.array([state_index[s] for s, *_ in rows], dtype=np.int64),
                row_action=np.array(acts, dtype=np.int64),
                reward=np.array([r for _, _, r, _ in rows], dtype=np.float64),
                out_row=owners(pointers([len(outs) for *_, outs in rows])),
                prob=np.array([p for *_, outs in rows for p, *_ in outs], dtype=np.float64),
                next_state=np.array([state_index[nxt] for *_, outs in rows for _, nxt, *_ in outs], dtype=np.int64),
                cost=cost,
                paid=None if pays is None else np.array(pays, dtype=np.float64),
            )
        )
    return layers, values


def _file_under_equal_times(tables: list[Table], t: int, blocks: dict[Label, StateBlock]) -> None:
    """Add time t to the first table that agrees on every state they share, else to a new one."""
    for times, known in tables:
        if all(_agree(known.get(s, b), b) for s, b in blocks.items()):
            times.append(t)
            known.update(blocks)
            return
    tables.append(([t], dict(blocks)))


def _agree(one: StateBlock, two: StateBlock) -> bool:
    """Return whether two answers are the same; what does not depend on time is one object."""
    return all(x is y or x == y for x, y in zip(one, two, strict=True))


LAZY = (GeneratorType, map, filter, zip)  # answers that are worked out when they are read

ANSWERS = {
    "actions": "one sequence of labels per player",
    "outcomes": "(probability, next_state, cost) triples",
    "reward": "one number per player",
    "legal": "True or False",
}


def asked_at(t: int, state: Label, action: JointAction | None = None, *following: Label) -> str:
    """Return the place that a function was asked about, for an error message."""
    return ", ".join([place(t, state, action), *(f"next state {s!r}" for s in following)])


class _UserFunction(NamedTuple):
    """One of the user's functions; `function` is None where it is left out."""

    what: str
    function: Any
    takes_t: bool
    depends_on_t: bool
    takes_next: bool = False  # of a reward: whether it depends on the next state

    @staticmethod
    def of(what: str, function: Any, stationary: bool, outcomes: Any = None) -> _UserFunction:
        if function is None and what in ("legal", "reward"):
            return _UserFunction(what, None, takes_t=False, depends_on_t=False)
        takes = roles(what, function, outcomes)
        takes_t = takes[0] == "t"
        return _UserFunction(what, function, takes_t, takes_t and not stationary, takes[-1] == "next_state")

    def ask(self, t: int, *where: Any) -> Any:
        """Return the user's answer; an error of the function gets a note of its place."""
        try:
            answer = self.function(t, *where) if self.takes_t else self.function(*where)
            if type(answer) in LAZY:
                answer = list(answer)  # what it raises is raised here
        except Exception as error:
            note_of_place(error, self.what, t, *where)
            raise
        if answer is None:
            raise InvalidGame(
                f"{asked_at(t, *where)}: {self.what} gave None, must give {ANSWERS[self.what]}; is a `return` missing?"
            )
        return answer


@dataclass(frozen=True, eq=False)
class _Questions:
    """Asks the user's functions and checks each answer where it is given."""

    players: tuple[Label, ...]
    constraints: tuple[Label, ...]
    actions: _UserFunction
    outcomes: _UserFunction
    reward: _UserFunction
    legal: _UserFunction
    seen: tuple[dict[Label, None], ...]  # the actions of each player that were given so far
    count: Callable[[], None]  # called for every joint action that is asked about
    blocks: dict[Label, StateBlock] = field(default_factory=dict)  # of games that do not depend on time
    known: dict[Any, Any] = field(default_factory=dict)  # answers that do not depend on time
    labels: dict[Any, Label] = field(default_factory=dict)  # next states as given, made plain
    costs: dict[Any, tuple[Cost, ...]] = field(default_factory=dict)  # costs as given, made exact

    def block(self, t: int, state: Label) -> StateBlock:
        """Return what happens at one (t, state)."""
        if self.depends_on_t:
            return self._block(t, state)
        if state not in self.blocks:
            self.blocks[state] = self._block(t, state)
        return self.blocks[state]

    @cached_property
    def depends_on_t(self) -> bool:
        """Whether any answer may depend on time."""
        return any(asked.depends_on_t for asked in (self.actions, self.legal, self.reward, self.outcomes))

    def _block(self, t: int, state: Label) -> StateBlock:
        choices = self._once(self.actions, self._choices, t, state)
        number = math.prod(map(len, choices))
        if number > ALWAYS_FINE and not self.legal.depends_on_t:  # else those that are not legal are not remembered
            what = f"{place(t, state)}: {number:,} joint actions of {len(self.players)} players"
            check_memory(what, JOINT_BYTES * number, "offer fewer actions where the state allows it")
        every, rule = itertools.product(*choices), self.legal
        joint = list(every) if rule.function is None else [a for a in every if self._once(rule, rule.ask, t, state, a)]
        if not joint:
            raise InvalidGame(f"{place(t, state)}: no legal joint action, every state that can occur needs one")
        rewards = dict.fromkeys(joint, (0.0,) * len(self.players))
        if not self.reward.takes_next and self.reward.function is not None:
            rewards = {a: self._once(self.reward, self._reward, t, state, a) for a in joint}
        outs_of = {a: self._once(self.outcomes, self._outcomes, t, state, a) for a in joint}
        for a, outs in outs_of.items():
            if self.reward.takes_next or any(out[3] is not None for out in outs):
                outs_of[a] = self._paying(t, state, a, rewards[a], outs)
        following = dict.fromkeys(out[1] for outs in outs_of.values() for out in outs)
        return StateBlock(rewards, outs_of, tuple(following))

    def _once(self, asked: _UserFunction, read: Callable[..., Any], t: int, *place: Any) -> Any:
        """Return an answer, which is remembered where it does not depend on time but others do."""
        if asked.depends_on_t or not self.depends_on_t:
            return read(t, *place)
        key = asked.what, place
        if key not in self.known:
            self.known[key] = read(t, *place)
        return self.known[key]

    def _choices(self, t: int, state: Label) -> list[tuple[Label, ...]]:
        """Return the actions of each player."""
        spot = place(t, state)
        choices = read_choices(self.actions.ask(t, state), self.players, spot)
        for player, labels, seen in zip(self.players, choices, self.seen, strict=True):
            if not labels:
                raise InvalidGame(f"{spot}: player {player!r} has an empty action set")
            seen.update(dict.fromkeys(labels))
        return choices

    def _paying(
        self, t: int, state: Label, action: JointAction, reward: Rewards, outcomes: tuple[Outcome, ...]
    ) -> tuple[Outcome, ...]:
        """Return the outcomes with all that each pays; each next state is asked about once."""
        base = dict.fromkeys((out[1] for out in outcomes), reward)
        if self.reward.takes_next:
            base = {s: self._once(self.reward, self._reward, t, state, action, s) for s in base}
        return tuple(
            (p, s, cost, base[s] if own is None else tuple(map(add, base[s], own))) for p, s, cost, own in outcomes
        )

    def _reward(self, t: int, state: Label, action: JointAction, *following: Label) -> Rewards:
        return self._read_reward(self.reward.ask(t, state, action, *following), t, state, action, *following)

    def _read_reward(self, answer: Any, t: int, state: Label, action: JointAction, *following: Label) -> Rewards:
        if type(answer) in (tuple, list) and len(answer) == len(self.players) and {float}.issuperset(map(type, answer)):
            numbers: Rewards = tuple(answer)
        else:
            numbers = read_vector(
                answer, self.players, real, asked_at(t, state, action, *following), "reward", "player"
            )
        if not all(map(math.isfinite, numbers)):
            spot = asked_at(t, state, action, *following)
            player, number = next((i, x) for i, x in zip(self.players, numbers, strict=True) if not math.isfinite(x))
            raise InvalidGame(f"{spot}: reward of player {player!r} is {number}, must be a finite number")
        return numbers

    def _outcomes(self, t: int, state: Label, action: JointAction) -> tuple[Outcome, ...]:
        self.count()
        possible, answer = [], self.outcomes.ask(t, state, action)
        if type(answer) is not list and (isinstance(answer, (str, Mapping, *UNORDERED)) or not is_iterable(answer)):
            spot, kind = place(t, state, action), type(answer).__name__
            rule = (
                "must be (probability, next_state, cost) triples in a list, a fourth entry being what the outcome pays"
            )
            raise InvalidGame(f"{spot}: outcomes are {answer!r:.60}, of type {kind}; they {rule}")
        for item in answer:
            pays = None
            if type(item) in (tuple, list) and len(item) == 4:
                *item, pays = item
            try:
                chance, next_state, cost = item
                chance = probability(chance)
            except (TypeError, ValueError):
                spot = place(t, state, action)
                alone = isinstance(answer, (list, tuple)) and len(answer) == 3 and is_scalar(answer[0])
                hint = "; put one triple alone into a list: [(probability, next_state, cost)]" if alone else ""
                rule = "must be (probability, next_state, cost), and the reward where the outcome has one of its own"
                raise InvalidGame(f"{spot}: outcome {item!r}, {rule}{hint}") from None
            vector = self._cost(cost, t, state, action)
            if not 0 <= chance < math.inf:
                spot = place(t, state, action)
                raise InvalidGame(f"{spot}: probability {chance} of next state {next_state!r}, must be at least 0")
            if chance > 0:
                label = self._label(next_state, t, state, action)
                own = None if pays is None else self._read_reward(pays, t, state, action, label)
                if own is None and self.reward.function is None:
                    rule = "give reward=, or (probability, next_state, cost, reward)"
                    raise InvalidGame(f"{asked_at(t, state, action, label)}: the outcome pays no reward; {rule}")
                possible.append((chance, label, vector, own))
        total = math.fsum(p for p, *_ in possible)
        if abs(total - 1) > PROBABILITY_SUM:  # `assemble` would no longer know at which t it was said
            spot = place(t, state, action)
            if not possible:
                raise InvalidGame(f"{spot}: no outcome, probabilities must sum to 1 within 1e-8")
            raise InvalidGame(f"{spot}: probabilities sum to {total:.12g}, must sum to 1 within 1e-8")
        return tuple(possible)

    def _label(self, state: Any, *where: Any) -> Label:
        """Return a next state, made plain once."""
        try:
            return self.labels[state]
        except (KeyError, TypeError):
            label = plain_label(f"{place(*where)}: next state", state)
            if label is None:
                warn_of_game(f"{place(*where)}: the next state is None; is a `return` missing?")
            return self.labels.setdefault(label, label)

    def _cost(self, said: Any, *where: Any) -> tuple[Cost, ...]:
        """Return a cost vector, made exact once.

        Equal numbers of different types may be read differently.
        """
        entries = said.items() if type(said) is dict else said if type(said) is tuple else (said,)
        key: Any
        try:
            key = (type(said), *((entry, type(entry[1] if type(said) is dict else entry)) for entry in entries))
            vector = self.costs.get(key)
        except TypeError:  # it cannot be hashed
            key = vector = None
        if vector is None:
            if said is None:
                if self.constraints:
                    rule = "which counts as no cost; is a `return` missing? Where there is no cost, write {}"
                    warn_of_game(f"{place(*where)}: the cost is None, {rule}")
                said = {}
            vector = read_vector(said, self.constraints, read_cost, place(*where), "cost", "constraint")
            if key is not None and all(isinstance(cost, Fraction) for cost in vector):
                vector = self.costs.setdefault(key, self.costs.setdefault(vector, vector))
        return vector


def read_choices(answer: Any, players: tuple[Label, ...], spot: str) -> list[tuple[Label, ...]]:
    """Return the actions of each player from one list per player, or {player: list}."""
    if isinstance(answer, Mapping):
        answer = read_vector(answer, players, lambda labels: labels, spot, "actions", "player")
    if isinstance(answer, UNORDERED) or not is_iterable(answer):
        raise InvalidGame(f"{spot}: actions gave {answer!r:.60}, must give a list of {ANSWERS['actions']}")
    each = list(answer)
    if len(each) != len(players):
        raise InvalidGame(f"{spot}: actions for {counted(len(each), 'player')}, there {are(len(players), 'player')}")
    named = zip(players, each, strict=True)
    return [check_labels(f"{spot}: actions of player {player!r}", labels) for player, labels in named]


def read_vector(answer: Any, labels: tuple[Label, ...], number: Any, spot: str, what: str, of: str) -> tuple[Any, ...]:
    """Return one number per label from a number, a sequence or a mapping (absent costs are 0)."""
    if what == "cost" and not labels and answer == 0:
        return ()
    if what == "cost" and not labels and not (isinstance(answer, (Mapping, Sized)) and not len(answer)):
        raise InvalidGame(f"{spot}: cost {answer!r}, but the game has no budget; give budget={{constraint: number}}")
    if isinstance(answer, Mapping):
        strange = [k for k in answer if k not in labels]
        if strange:
            unnamed = what == "cost" and labels == tuple(range(len(labels)))
            hint = f"; the budget is unnamed, write budget={{{strange[0]!r}: ...}}" if unnamed else ""
            if what == "cost" and not unnamed:
                hint = "; give it a budget too (math.inf where it has no limit), or leave it out of the cost"
            raise InvalidGame(f"{spot}: {what} names the {unknown(of, strange[0], labels)}{hint}")
        missing = [x for x in labels if x not in answer]
        if missing and what != "cost":
            raise InvalidGame(f"{spot}: {what} of {of} {missing[0]!r} is missing")
        entries = [answer.get(x, 0) for x in labels]
    elif is_distribution(answer) or is_scalar(answer):
        entries = [answer]
    else:
        entries = list(answer)
    if len(entries) != len(labels):
        raise InvalidGame(
            f"{spot}: {what} {answer!r} has {counted(len(entries), 'entry')}, there {are(len(labels), of)}"
        )
    vector = []
    for label, entry in zip(labels, entries, strict=True):
        try:
            vector.append(number(entry))
        except (TypeError, ValueError, OverflowError) as error:
            which = f"of {label!r}" if is_distribution(entry) else repr(answer)
            raise InvalidGame(f"{spot}: {what} {which}: {error}") from None
    return tuple(vector)
