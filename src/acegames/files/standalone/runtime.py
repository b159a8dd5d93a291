"""Plays a policy from plain arrays, with Python's standard library alone (3.8 or newer).

A module that `acegames export` writes consists of the policy's arrays and of this file.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import numbers
import os
import random
import sys
from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

TYPES = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "f8": "d"}
HEAD = 64  # bytes before the arrays of a data file


class UnknownPair(KeyError):
    """The situation (t, state, spent) is not reachable under feasible play."""

    def __str__(self) -> str:
        return str(self.args[0])


class StoredPolicy:
    """A joint policy that reads (t, state, spent), as `acegames.Policy` does.

    Args:
        facts: labels, units and how costs are counted.
        arrays: what `acegames.files.standalone.plain` describes, each flat.
    """

    def __init__(self, facts: Mapping[str, Any], arrays: Mapping[str, Sequence[Any]]) -> None:
        self.players: tuple[Any, ...] = facts["players"]
        self.states: tuple[Any, ...] = facts["states"]
        self.actions: tuple[tuple[Any, ...], ...] = facts["actions"]
        self.constraints: tuple[Any, ...] = facts["constraints"]
        self.horizon: int = facts["horizon"]
        self.initial: tuple[tuple[int, float], ...] = facts["initial"]
        self.units = tuple(map(Fraction, facts["units"]))
        self.rounding: tuple[tuple[str, str, str | None] | None, ...] = facts["rounding"]
        self.reservoirs: tuple[bool, ...] = facts["reservoirs"]
        self.lower: tuple[int | None, ...] = facts["lower"]
        self.spent_at_start = tuple(map(Fraction, facts["begins"]))
        self.arrays = arrays
        self._numbers = {_known(label): k for k, label in enumerate(self.states)}

    def distribution(self, t: int, state: Any, spent: Any) -> dict[tuple[Any, ...], float]:
        """Return the probability of each joint action that may be played.

        Args:
            t: the time, from 0.
            state: the label of the state.
            spent: the cumulative cost: a number, one per constraint, or {constraint: number}.

        Raises:
            UnknownPair: the situation is not reachable under feasible play. It is a KeyError.
        """
        probability, played = self.arrays["probability"], self.arrays["played"]
        return {self._joint(played[k]): float(probability[k]) for k in self._support(t, state, spent)}

    def act(self, t: int, state: Any, spent: Any, rng: Any = random) -> tuple[Any, ...]:
        """Draw a joint action, one action per player; `rng.random()` is a number from [0, 1)."""
        support, drawn, total = self._support(t, state, spent), rng.random(), 0.0
        for k in support:
            total += self.arrays["probability"][k]
            if drawn < total:
                return self._joint(self.arrays["played"][k])
        return self._joint(self.arrays["played"][support[-1]])

    def start(self, rng: Any = None, *, state: Any = ...) -> Runner:
        """Begin an episode.

        Args:
            rng: what draws random numbers, by `rng.random()`; or a seed, or None for fresh ones.
            state: the initial state; needed if play can begin in several.
        """
        first = [self.states[s] for s, _ in self.initial]
        if state is ...:
            if len(first) > 1:
                raise ValueError(f"state: play can begin in several states, give one of {_some(first)}")
            state = first[0]
        elif not any(_known(state) == _known(s) for s in first):
            raise ValueError(f"state: play cannot begin in {state!r}, it can in {_some(first)}")
        return Runner(self, rng if hasattr(rng, "random") else random.Random(rng), state)

    def find(self, t: int, state: int, total: Sequence[int]) -> int:
        """Return the entry of a situation, by the number of the state and whole units; -1 for none."""
        arrays, width, depth = self.arrays, len(self.constraints), len(self.arrays["keys"])
        if not 0 <= t < self.horizon:
            return -1
        end = arrays["time"][t + 1]
        box = bisect_left(arrays["state"], state, arrays["time"][t], end)
        if box == end or arrays["state"][box] != state:
            return -1
        for m in range(width):
            if not arrays["least"][box * width + m] <= total[m] <= arrays["most"][box * width + m]:
                return -1
        key = [max(total[m], arrays["clip"][box * width + m]) for m in arrays["keys"]]
        low, high = arrays["first"][box], arrays["first"][box + 1]
        while low < high:
            middle = (low + high) // 2
            here = list(arrays["spent"][middle * depth : (middle + 1) * depth])
            if here == key:
                return int(middle)
            low, high = (middle + 1, high) if here < key else (low, middle)
        return -1

    def amounts(self, given: Any) -> tuple[Fraction, ...]:
        """Return exact amounts, one per constraint; ValueError where they are none."""
        if given is None:
            given = {}
        own = [c for c, of in zip(self.constraints, self.lower) if of is None]
        if isinstance(given, Mapping):
            for label in given:
                if label not in self.constraints:
                    raise ValueError(f"unknown constraint {label!r}, there are {_some(self.constraints)}")
            return tuple(self._amount(given, m) for m in range(len(self.constraints)))
        if isinstance(given, (numbers.Number, Decimal)):
            given = [given]
        given = list(given)
        if len(given) == len(own) < len(self.constraints):
            return self.amounts(dict(zip(own, given)))
        if len(given) != len(self.constraints):
            raise ValueError(f"{len(given)} numbers given, there are {len(self.constraints)} constraints")
        return tuple(map(exact, given))

    def counted(self, amounts: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """Return what exact costs count as: rounded, where the policy rounds."""
        return tuple(map(_rounded, amounts, self.rounding))

    def after(self, spent: Sequence[Fraction], cost: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """Return the sums after one more cost; a reservoir is never more than full."""
        sums = [x + y for x, y in zip(spent, cost)]
        return tuple(max(x, Fraction(0)) if full else x for x, full in zip(sums, self.reservoirs))

    def total(self, amounts: Sequence[Fraction]) -> list[int]:
        """Return whole units of exact amounts; ValueError where they are no multiples of the unit."""
        for amount, unit in zip(amounts, self.units):
            if (amount / unit).denominator != 1:
                raise ValueError(f"{amount} is no whole multiple of {unit}, which every cost is")
        return [int(amount / unit) for amount, unit in zip(amounts, self.units)]

    def number(self, state: Any) -> int:
        """Return the number of a state; ValueError for one that is not known."""
        try:
            return self._numbers[_known(state)]
        except (KeyError, TypeError):
            raise ValueError(f"unknown state {state!r}, there are {_some(self.states)}") from None

    def _support(self, t: Any, state: Any, spent: Any) -> range:
        where = f"t={t!r}, state {state!r}, spent {spent!r}"
        if isinstance(t, bool) or not isinstance(t, numbers.Integral):
            raise UnknownPair(f"{where}: t must be a whole number")
        try:
            entry = self.find(int(t), self.number(state), self.total(self.amounts(spent)))
        except (ValueError, TypeError) as error:
            raise UnknownPair(f"{where}: {error}") from None
        if entry < 0:
            raise UnknownPair(f"{where}: this situation is not reachable under feasible play")
        answer = self.arrays["answer"][entry]
        return range(self.arrays["support"][answer], self.arrays["support"][answer + 1])

    def _joint(self, number: int) -> tuple[Any, ...]:
        row = self.arrays["joint"][number * len(self.players) : (number + 1) * len(self.players)]
        return tuple(own[a] for own, a in zip(self.actions, row))

    def _amount(self, given: Mapping[Any, Any], m: int) -> Fraction:
        label, of = self.constraints[m], self.lower[m]
        if label in given or of is None:
            return exact(given.get(label, 0))
        return -exact(given.get(self.constraints[of], 0))


class Runner:
    """Plays one episode: `act` draws a joint action, `observe` takes its cost and next state."""

    def __init__(self, policy: StoredPolicy, rng: Any, state: Any) -> None:
        self.policy, self.rng, self.t, self.state = policy, rng, 0, state
        self.spent = policy.spent_at_start  # exactly, as costs were
        self.counted = policy.spent_at_start  # as the policy counts them

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.t >= self.policy.horizon

    def act(self) -> tuple[Any, ...]:
        """Draw the joint action to play now, one action per player."""
        self._check_running()
        return self.policy.act(self.t, self.state, self.counted, self.rng)

    def observe(self, action: Any, cost: Any, next_state: Any) -> None:
        """Tell the runner what was played, what it cost and which state followed.

        ValueError for what the policy cannot count or does not know; nothing has changed then.
        Whether the cost and the state can follow is not known here: if not, the next `act` raises.
        """
        self._check_running()
        policy = self.policy
        given = zip(action, policy.actions) if _size(action) == len(policy.players) else [(None, ())]
        if any(_known(a) not in map(_known, own) for a, own in given):
            raise ValueError(f"action {action!r}: must be one known action per player")
        policy.number(next_state)
        amounts = policy.amounts(cost)
        counted = policy.counted(amounts)
        policy.total(counted)
        self.spent, self.counted = policy.after(self.spent, amounts), policy.after(self.counted, counted)
        self.t, self.state = self.t + 1, next_state

    def _check_running(self) -> None:
        if self.done:
            raise ValueError(f"the episode is over: the horizon is {self.policy.horizon}")


def exact(value: Any) -> Fraction:
    """Return the rational that a number stands for; a float is read by its text, so 0.1 is 1/10."""
    if isinstance(value, (numbers.Rational, Decimal)):
        return Fraction(value)
    if isinstance(value, numbers.Real):
        return Fraction(str(value))
    raise ValueError(f"{value!r} is not a number")


def _rounded(amount: Fraction, rule: tuple[str, str, str | None] | None) -> Fraction:
    if rule is None:
        return amount
    direction, text, lowest = rule
    if direction == "ignore":
        return Fraction(0)
    cell = Fraction(text)
    counted = (math.floor(amount / cell) if direction == "down" else math.ceil(amount / cell)) * cell
    return counted if lowest is None else max(counted, Fraction(lowest))


def _known(label: Any) -> Any:
    """Return a label as a key, such that lists stand for tuples."""
    return tuple(map(_known, label)) if isinstance(label, (list, tuple)) else label


def _size(given: Any) -> int:
    return len(given) if hasattr(given, "__len__") else -1


def _some(labels: Sequence[Any]) -> str:
    return ", ".join(map(repr, labels[:10])) + (", ..." if len(labels) > 10 else "")


def open_arrays(
    path: str, size: int, sha256: str, places: Mapping[str, tuple[int, str, int]]
) -> dict[str, Sequence[Any]]:
    """Return the arrays of a data file, mapped; ValueError unless it is the file that was written
    along.

    Args:
        path: the file.
        size: its bytes.
        sha256: of all that follows the head.
        places: where each array begins, its type, and how many numbers it has.
    """
    if os.path.getsize(path) != size:
        raise ValueError(f"{path}: has {os.path.getsize(path)} bytes, must have {size}")
    with open(path, "rb") as file:
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    if hashlib.sha256(content[HEAD:]).hexdigest() != sha256:
        raise ValueError(f"{path}: is damaged, or was not written with this module")
    found: dict[str, Sequence[Any]] = {}
    for name, (offset, kind, count) in places.items():
        code = TYPES[kind]
        part = content[offset : offset + count * int(kind[1:])]
        if sys.byteorder == "little":
            found[name] = part.cast(code)  # type: ignore[call-overload]
        else:
            own = array(code, bytes(part))
            own.byteswap()
            found[name] = own
    return found
