"""What the rules of a game file that add make of costs and rewards: each different sum, once.

A sum is a vector to begin with (a *base*: the cost of an outcome, a reward) and the rules that add
to it. Sums are exact and do not depend on the order of the rules. A reward is rounded to a float at
the end. Cost: one addition per different sum, however many places have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from acegames.errors import InvalidGame
from acegames.files.rules import Rule
from acegames.model.arrays import Floats, Ints
from acegames.model.costs.random import Cost, RandomCost
from acegames.model.numbers import exact
from acegames.system.limits import SUMS


class Sums:
    """The numbers of the sums of one kind: bases come first, then sums as they are found."""

    def __init__(self, kind: str, bases: int) -> None:
        self.kind, self.bases = kind, bases
        self.found: dict[tuple[int, int], int] = {}  # {(a sum, the rule that adds to it): the new sum}

    def add(self, rule: int, sums: Ints) -> Ints:
        """The numbers of these sums with what a rule adds."""
        before, which = np.unique(sums, return_inverse=True)
        after = [self.found.setdefault((k, rule), self.bases + len(self.found)) for k in before.tolist()]
        if len(self.found) > SUMS:
            raise InvalidGame(f"rules: what they add makes more than {SUMS} different sums; use arrays")
        return np.array(after, dtype=np.int64)[which]

    def vectors(self, bases: Sequence[Sequence[Any]], rules: Sequence[Rule]) -> list[tuple[Any, ...]]:
        """The vector of each sum that is not a base, in their order."""
        known: dict[int, tuple[Any, ...]] = {}
        for (before, k), number in self.found.items():
            start = known.get(before) if before in known else tuple(map(_exact, bases[before]))
            added = getattr(rules[k].add, self.kind)
            try:
                known[number] = tuple(map(_plus, start or (), added))
            except ValueError as error:
                raise InvalidGame(f"rule {rules[k].number}: add: {self.kind}: {error}") from None
        return list(known.values())


def summed_floats(sums: Sums, bases: Floats, rules: Sequence[Rule]) -> Floats:
    """The bases, and below them the nearest floats of all sums."""
    if not sums.found:
        return bases
    vectors = sums.vectors(bases.tolist(), rules)
    try:
        return np.concatenate([bases, np.array([[float(x) for x in vector] for vector in vectors])])
    except OverflowError:
        raise InvalidGame("rules: what they add makes a reward that is too large for a float") from None


def _exact(value: Any) -> Cost:
    return value if isinstance(value, (Fraction, RandomCost)) else exact(value)


def _plus(start: Cost, given: Any) -> Cost:
    added = _exact(given)
    if start == 0 or added == 0:
        return added if start == 0 else start
    if isinstance(start, RandomCost) or isinstance(added, RandomCost):
        raise ValueError("meets another cost; one given by a distribution cannot be added up, set it in one rule")
    return exact(start + added)
