"""Samples, read one by one, checked and counted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from acegames.errors import InvalidGame
from acegames.learn.facts import END, Cost, Facts
from acegames.model.checks import plain_label
from acegames.model.from_functions import read_vector
from acegames.model.game import JointAction, Label, place
from acegames.model.numbers import exact
from acegames.model.written import show, unknown

LARGEST_REWARD = 1e140
"""Rewards up to here can be squared and added up in floats, as the standard errors of their means need it."""


class Key(NamedTuple):
    """A pair: a joint action in a state at a time. `t` is None where all times are counted together."""

    t: int | None
    state: Label
    action: JointAction

    def __str__(self) -> str:
        return place(self.t, self.state, self.action)


class Pair:
    """What the samples of one pair showed."""

    __slots__ = ("count", "mean", "outcomes", "squares")

    def __init__(self, players: int) -> None:
        self.count = 0
        self.outcomes: dict[tuple[Label, Cost], int] = {}
        self.mean, self.squares = [0.0] * players, [0.0] * players

    def add(self, next_state: Label, cost: Cost, reward: tuple[float, ...]) -> None:
        """Count one sample; the mean and the sum of squared deviations are updated in a way that loses no digits."""
        self.count += 1
        self.outcomes[next_state, cost] = self.outcomes.get((next_state, cost), 0) + 1
        for i, r in enumerate(reward):
            off = r - self.mean[i]
            self.mean[i] += off / self.count
            self.squares[i] += off * (r - self.mean[i])

    def errors(self) -> tuple[float, ...]:
        """Standard error of each player's mean reward; NaN with a single sample."""
        if self.count < 2:
            return (math.nan,) * len(self.mean)
        return tuple(math.sqrt(s / (self.count - 1) / self.count) for s in self.squares)


class Tally:
    """All samples so far, by pair."""

    def __init__(self, facts: Facts, *, stationary: bool) -> None:
        self.facts, self.stationary = facts, stationary
        self.pairs: dict[Key, Pair] = {}
        self.starts: dict[Label, int] = {}  # where episodes were seen to start

    def key(self, t: int | None, state: Label, action: JointAction) -> Key:
        """Where samples of this time, state and joint action are counted."""
        return Key(None if self.stationary else t, state, action)

    def at(self, t: int | None, state: Label, action: JointAction) -> Pair | None:
        """What was seen there, None when nothing was."""
        return self.pairs.get(self.key(t, state, action))

    def count(self, t: int | None, state: Label, action: JointAction) -> int:
        """How often the pair was sampled."""
        found = self.at(t, state, action)
        return 0 if found is None else found.count

    @property
    def samples(self) -> int:
        """Number of all samples."""
        return sum(pair.count for pair in self.pairs.values())

    def initial(self) -> dict[Label, float]:
        """The initial distribution: as given, else as seen; a state that was listed but not seen counts as seen once."""
        if self.facts.initial is not None:
            return self.facts.initial
        if not self.starts:
            raise InvalidGame("initial: missing, give the state where play starts, or {state: probability}")
        counts = {s: self.starts.get(s, 1) for s in self.facts.may_start or self.starts}
        return {s: n / sum(counts.values()) for s, n in counts.items()}

    def add(self, where: str, t: Any, state: Any, action: Any, next_state: Any, cost: Any, reward: Any) -> Label:
        """Check and count one sample; return the next state as a label. `where` names the sample in messages."""
        facts = self.facts
        time = self._time(where, t)
        here = plain_label(f"{where}: state", state)
        played = joint_action(where, facts, action)
        there = plain_label(f"{where}: next state", next_state)
        if here is None or there is None:
            raise InvalidGame(f"{where}: state {here!r}, next state {there!r}: None is no state, the entry is missing")
        if here == END:
            raise InvalidGame(f"{where}: state {here!r}: nothing is sampled once the episode is over")
        allowed = [facts.joint_actions(k, here) for k in (range(facts.horizon) if time is None else (time,))]
        if not any(legal is None or played in legal for legal in allowed):
            raise InvalidGame(
                f"{where}: {place(time, here)}: {unknown('legal joint action', played, allowed[0] or ())}"
            )
        paid: Cost = read_vector({} if cost is None else cost, facts.constraints, exact, where, "cost", "constraint")
        gained: tuple[float, ...] = read_vector(reward, facts.players, float, where, "reward", "player")
        for player, r in zip(facts.players, gained, strict=True):
            if not abs(r) <= LARGEST_REWARD:
                raise InvalidGame(
                    f"{where}: reward of player {player!r} is {r}, must be a finite number of at most {LARGEST_REWARD:g} in size"
                )
        self.pairs.setdefault(self.key(time, here, played), Pair(len(gained))).add(there, paid, gained)
        return there

    def _time(self, where: str, t: Any) -> int | None:
        if t is None:
            if not self.stationary:
                raise InvalidGame(f"{where}: t is missing; give it, or stationary=True to count all times together")
            return None
        last = self.facts.horizon - 1
        whole = isinstance(t, (int, float, np.integer, np.floating)) and not isinstance(t, bool) and 0 <= t <= last
        if not whole or int(t) != t:
            raise InvalidGame(f"{where}: t is {t!r}, must be a whole number from 0 to {last} (horizon {last + 1})")
        return int(t)


def joint_action(where: str, facts: Facts, action: Any) -> JointAction:
    """A joint action from a sequence with one label per player, from {player: label}, or from one label for one player."""
    if isinstance(action, Mapping):
        strange = [p for p in action if p not in facts.players]
        missing = [p for p in facts.players if p not in action]
        if strange or missing:
            said = unknown("player", strange[0], facts.players) if strange else f"player {missing[0]!r} is missing"
            raise InvalidGame(f"{where}: action {show(action)}: {said}")
        parts = [action[p] for p in facts.players]
    else:
        whole = isinstance(action, (tuple, list, np.ndarray)) and np.ndim(action) > 0
        parts = list(action) if whole else [action]
    if len(parts) != len(facts.players):
        raise InvalidGame(
            f"{where}: action {show(action)} has {len(parts)} entries, there are {len(facts.players)} players"
        )
    return tuple(
        plain_label(f"{where}: action of player {p!r}", part) for p, part in zip(facts.players, parts, strict=True)
    )


def read_samples(samples: Any, facts: Facts, stationary: bool | None) -> Tally:
    """Count a table or an iterable of transitions; times are counted apart where they are given, unless `stationary`."""
    lines = _lines(samples, facts)
    first = next(lines, None)
    if first is None:
        raise InvalidGame("samples: there are none")
    tally = Tally(facts, stationary=first[0] is None if stationary is None else stationary)
    for number, line in enumerate(_chain(first, lines)):
        if stationary is None and tally.stationary and line[0] is not None:
            raise InvalidGame(
                f"sample {number}: t is {line[0]!r}, but sample 0 has none; give it in all samples or in none, "
                "or stationary=True to count all times together"
            )
        tally.add(f"sample {number}", *line)
    return tally


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _lines(samples: Any, facts: Facts) -> Iterator[tuple[Any, ...]]:
    """Yield (t, state, action, next_state, cost, reward) from each accepted form."""
    if isinstance(samples, Mapping) or hasattr(samples, "columns"):
        samples = _records(samples)
    if isinstance(samples, (str, bytes)) or not isinstance(samples, Iterable):
        raise InvalidGame(
            f"samples: got {show(samples)}, must be a table, or records with state, action, next_state, cost, reward"
        )
    for number, sample in enumerate(samples):
        if isinstance(sample, Mapping):
            yield _from_record(f"sample {number}", sample, facts)
        elif isinstance(sample, (tuple, list)) and len(sample) in (5, 6):
            yield (None, *sample) if len(sample) == 5 else tuple(sample)
        else:
            raise InvalidGame(
                f"sample {number}: {show(sample)}, must be a mapping, or ([t,] state, action, next_state, cost, reward)"
            )


def _records(table: Any) -> Iterator[dict[Any, Any]]:
    names = list(table.columns) if hasattr(table, "columns") else list(table)
    columns = [_entries(c, table[c]) for c in names]
    for name, column in zip(names, columns, strict=True):
        if len(column) != len(columns[0]):
            raise InvalidGame(
                f"samples: column {name!r} has {len(column)} lines, column {names[0]!r} has {len(columns[0])}"
            )
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _entries(name: Any, column: Any) -> list[Any]:
    """A column as a list; short floats stay what they are, so that a cost of 0.1 is one tenth in float32 too."""
    if isinstance(column, (list, tuple)):
        return list(column)
    array = np.asarray(column)
    if array.ndim == 0:
        raise InvalidGame(
            f"samples: column {name!r} is {show(column)}, must be a list of values; a single record goes into a list: [{{...}}]"
        )
    return list(array) if array.dtype.kind == "f" else list(array.tolist())


def _from_record(where: str, record: Mapping[Any, Any], facts: Facts) -> tuple[Any, ...]:
    """Read one record; action, cost and reward are one entry, or one entry per player or constraint."""

    def get(*names: Any) -> Any:
        for name in names:
            if name in record:
                return record[name]
        there = ", ".join(map(show, record)) or "none"
        raise InvalidGame(f"{where}: {names[0]!r} is missing, there are {there}")

    def each(name: str, labels: tuple[Label, ...], prefix: str = "") -> Any:
        apart = [x for x in labels if f"{prefix}{x}" in record or (not prefix and x in record)]
        if name in record or not apart:
            return get(name) if labels else ()
        return tuple(get(f"{prefix}{x}") if prefix else get(x, str(x)) for x in labels)

    action = each("action", facts.players)
    cost = each("cost", facts.constraints)
    reward = each("reward", facts.players, "reward_")
    return record.get("t"), get("state"), action, get("next_state"), cost, reward
