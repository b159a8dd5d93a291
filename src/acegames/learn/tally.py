"""Samples, read one by one, checked and counted."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from acegames.errors import InvalidGame
from acegames.learn.env_protocol import END
from acegames.learn.known import Cost, Facts
from acegames.model.checks import plain_label, read_at, show, unknown
from acegames.model.from_table import column_lists, columns_of
from acegames.model.game import JointAction, Label, place

LARGEST_REWARD = 1e140
"""The standard errors of mean rewards square and add up rewards; up to here floats can do that."""


class Key(NamedTuple):
    """A joint action in a state at a time. `t` is None where all times are counted together."""

    t: int | None
    state: Label
    action: JointAction

    def __str__(self) -> str:
        return place(self.t, self.state, self.action)


class Sample(NamedTuple):
    """One observed transition, as the user or the environment gives it."""

    t: Any
    state: Any
    action: Any
    next_state: Any
    cost: Any
    reward: Any


class SampleCounts:
    """The samples of one pair, counted."""

    __slots__ = ("count", "mean", "outcomes", "squares")

    def __init__(self, players: int) -> None:
        self.count = 0
        self.outcomes: dict[tuple[Label, Cost], int] = {}
        self.mean, self.squares = [0.0] * players, [0.0] * players

    def add(self, next_state: Label, cost: Cost, reward: tuple[float, ...]) -> None:
        """Count one sample, with a numerically stable update of means and squared deviations."""
        self.count += 1
        self.outcomes[next_state, cost] = self.outcomes.get((next_state, cost), 0) + 1
        for i, r in enumerate(reward):
            off = r - self.mean[i]
            self.mean[i] += off / self.count
            self.squares[i] += off * (r - self.mean[i])

    def errors(self) -> tuple[float, ...]:
        """Return the standard error of each player's mean reward; NaN with a single sample."""
        if self.count < 2:
            return (math.nan,) * len(self.mean)
        return tuple(math.sqrt(s / (self.count - 1) / self.count) for s in self.squares)


class Tally:
    """All samples so far, by pair."""

    def __init__(self, facts: Facts, *, stationary: bool) -> None:
        self.facts, self.stationary = facts, stationary
        self.pairs: dict[Key, SampleCounts] = {}
        self.starts: dict[Label, int] = {}  # how often episodes were seen to start in each state

    def key(self, t: int | None, state: Label, action: JointAction) -> Key:
        """Return the key under which samples of this time, state and joint action are counted."""
        return Key(None if self.stationary else t, state, action)

    def at(self, t: int | None, state: Label, action: JointAction) -> SampleCounts | None:
        """Return the counted samples of a pair; None when there are none."""
        return self.pairs.get(self.key(t, state, action))

    def count(self, t: int | None, state: Label, action: JointAction) -> int:
        """Return how often the pair was sampled."""
        pair = self.at(t, state, action)
        return 0 if pair is None else pair.count

    @property
    def samples(self) -> int:
        """Number of all samples."""
        return sum(pair.count for pair in self.pairs.values())

    def reached(self) -> Iterator[dict[Label, None]]:
        """Yield for each t the states that can be reached, as the samples show when it is asked."""
        here = dict.fromkeys([*self.starts, *(self.facts.starts or ())])
        for t in range(self.facts.horizon):
            yield here
            pairs = [self.at(t, s, a) for s in here for a in self.facts.to_sample(t, s)]
            here = {s: None for pair in pairs if pair is not None for s, _ in pair.outcomes}

    def counts(self, reached: Iterable[Iterable[Label]]) -> dict[Key, int]:
        """Return the number of samples of every legal pair of the states reached at each t."""
        return {
            self.key(t, s, a): self.count(t, s, a)
            for t, here in enumerate(reached)
            for s in here
            for a in self.facts.to_sample(t, s)
        }

    def initial(self) -> dict[Label, float]:
        """Return the initial distribution: as given, else as seen; unseen states count once."""
        if self.facts.initial is not None:
            return self.facts.initial
        if not self.starts:
            raise InvalidGame("initial: missing, give the state where play starts, or {state: probability}")
        counts = {s: self.starts.get(s, 1) for s in self.facts.may_start or self.starts}
        return {s: n / sum(counts.values()) for s, n in counts.items()}

    def add(self, where: str, sample: Sample) -> Label:
        """Check and count one sample, named `where` in messages; return the next state's label."""
        facts = self.facts
        time = self._time(where, sample.t)
        here = plain_label(f"{where}: state", sample.state)
        there = plain_label(f"{where}: next state", sample.next_state)
        played = facts.read_action(sample.action, where)
        if here is None or there is None:
            raise InvalidGame(f"{where}: state {here!r}, next state {there!r}: None is no state, the entry is missing")
        if here == END:
            raise InvalidGame(f"{where}: state {here!r}: nothing is sampled once the episode is over")
        allowed = [facts.joint_actions(k, here) for k in (range(facts.horizon) if time is None else (time,))]
        if not any(legal is None or played in legal for legal in allowed):
            rule = unknown("legal joint action", played, allowed[0] or ())
            raise InvalidGame(f"{where}: {place(time, here)}: {rule}")
        paid, gained = facts.read_cost(sample.cost, where), facts.read_reward(sample.reward, where)
        for player, r in zip(facts.players, gained, strict=True):
            if not abs(r) <= LARGEST_REWARD:
                rule = f"must be a finite number of at most {LARGEST_REWARD:g} in size"
                raise InvalidGame(f"{where}: reward of player {player!r} is {r}, {rule}")
        self.pairs.setdefault(self.key(time, here, played), SampleCounts(len(gained))).add(there, paid, gained)
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


def read_samples(samples: Any, facts: Facts, stationary: bool | None) -> Tally:
    """Count a table or an iterable of transitions.

    Times are counted apart where the samples have them, unless `stationary` says otherwise.
    """
    listed = _samples(samples, facts)
    first = next(listed, None)
    if first is None:
        raise InvalidGame("samples: there are none")
    tally = Tally(facts, stationary=first.t is None if stationary is None else stationary)
    for number, sample in enumerate(itertools.chain([first], listed)):
        if stationary is None and tally.stationary and sample.t is not None:
            raise InvalidGame(
                f"sample {number}: t is {sample.t!r}, but sample 0 has none; give it in all samples or in none, "
                "or stationary=True to count all times together"
            )
        tally.add(f"sample {number}", sample)
    return tally


def _samples(samples: Any, facts: Facts) -> Iterator[Sample]:
    """Yield samples from each accepted form."""
    if (columns := columns_of(samples)) is not None:
        lists = read_at("samples", column_lists, columns)
        samples = (dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True))
    if isinstance(samples, (str, bytes)) or not isinstance(samples, Iterable):
        rule = "must be a table, or records with state, action, next_state, cost, reward"
        raise InvalidGame(f"samples: got {show(samples)}, {rule}")
    for number, sample in enumerate(samples):
        if isinstance(sample, Mapping):
            yield _from_record(f"sample {number}", sample, facts)
        elif isinstance(sample, (tuple, list)) and len(sample) in (5, 6):
            yield Sample(*([None] * (6 - len(sample))), *sample)
        else:
            rule = "must be a mapping, or ([t,] state, action, next_state, cost, reward)"
            raise InvalidGame(f"sample {number}: {show(sample)}, {rule}")


def _from_record(where: str, record: Mapping[Any, Any], facts: Facts) -> Sample:
    """Read one record; action, cost and reward are one entry, or one per player or constraint."""

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
    return Sample(record.get("t"), get("state"), action, get("next_state"), cost, reward)
