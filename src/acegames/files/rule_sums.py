"""What the rules of a game file that add make of costs and rewards: each different sum, once.

A sum is a vector to begin with (a *base*: the cost of an outcome, a reward) and the rules that add
to it. Sums are exact and do not depend on the order of the rules: only what all rules have made of
a place is judged, and a reward is rounded to a float then. Cost: one addition per different sum,
however many places have it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from acegames.errors import InvalidGame
from acegames.files.rules import Rule
from acegames.model.arrays import Floats, Ints
from acegames.model.costs.random import Cost, RandomCost
from acegames.model.numbers import exact
from acegames.system.limits import DIGITS, SUMS


class Sums:
    """The numbers of the sums of one kind: bases come first, then sums as they are found."""

    def __init__(self, kind: str, bases: int) -> None:
        self.kind, self.bases = kind, bases
        self.found: dict[tuple[int, int], int] = {}  # {(a sum, the rule that adds to it): the new sum}

    def add(self, rule: int, sums: Ints) -> Ints:
        """Return the numbers of these sums with what a rule adds."""
        before, which = np.unique(sums, return_inverse=True)
        after = [self.found.setdefault((k, rule), self.bases + len(self.found)) for k in before.tolist()]
        if len(self.found) > SUMS:
            raise InvalidGame(f"rules: what they add makes more than {SUMS} different sums; use arrays")
        return np.array(after, dtype=np.int64)[which]

    def vectors(
        self, bases: Sequence[Sequence[Any]], rules: Sequence[Rule], used: Iterable[Ints]
    ) -> list[tuple[Cost, ...]]:
        """Return the vector of each sum that is not a base, in their order; zeros where no place
        has it.

        `used`: the sums that places have when every rule has been counted.
        """
        known: dict[int, tuple[_Part, ...]] = {}
        for (before, k), number in self.found.items():
            start = known[before] if before in known else tuple(_NOTHING.plus(x, None) for x in bases[before])
            added = getattr(rules[k].add, self.kind)
            known[number] = tuple(own.plus(x, rules[k].number) for own, x in zip(start, added, strict=True))
        final = np.zeros(self.bases + len(known), dtype=bool)
        for sums in used:
            final[sums] = True
        return [
            tuple(part.settled(self.kind) if final[number] else Fraction(0) for part in parts)
            for number, parts in known.items()
        ]


def summed_floats(sums: Sums, bases: Floats, rules: Sequence[Rule], used: Iterable[Ints]) -> Floats:
    """Return the bases, and below them the nearest floats of all sums, as `Sums.vectors` gives
    them.
    """
    if not sums.found:
        return bases
    vectors: Any = sums.vectors(bases.tolist(), rules, used)
    try:
        return np.concatenate([bases, np.array([[float(x) for x in vector] for vector in vectors])])
    except OverflowError:
        raise InvalidGame("rules: what they add makes a reward that is too large for a float") from None


class _Part(NamedTuple):
    """One component of a sum that is not complete yet."""

    number: Fraction
    denominator: int  # a common one of all numbers, to refuse sums that grow without end
    drawn: tuple[RandomCost, ...]  # two stand for more
    rule: int | None  # the last one that added something

    def plus(self, given: Any, rule: int | None) -> _Part:
        """With a number or a distribution added."""
        if given == 0 or self.denominator > _LONGEST:
            return self
        if isinstance(given, RandomCost):
            return self._replace(drawn=(*self.drawn[:1], given), rule=rule)
        added = exact(given)
        return _Part(self.number + added, math.lcm(self.denominator, added.denominator), self.drawn, rule)

    def settled(self, kind: str) -> Cost:
        """Return the complete sum; InvalidGame where there is none."""
        try:
            if self.drawn and (self.number or len(self.drawn) > 1):
                raise ValueError(
                    "meets another cost; one given by a distribution cannot be added up, set it in one rule"
                )
            if self.denominator > _LONGEST:
                raise ValueError(f"the common denominator has more than {DIGITS} digits")
            return self.drawn[0] if self.drawn else exact(self.number)
        except ValueError as error:
            raise InvalidGame(f"rule {self.rule}: add: {kind}: {error}") from None


_NOTHING = _Part(Fraction(0), 1, (), None)
_LONGEST = 10**DIGITS
