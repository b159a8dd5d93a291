"""Rules of a game file of which one replaces what another says, though neither is the exception.

A rule for a special case after a general one is how files are written. Other overlaps are warned
of: rules that both hold at some places and have others of their own, where one of them is lost, and
rules that a later, more general one replaces everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from acegames.files.rules import Intervals, Rule
from acegames.model.arrays import Ints

SHOWN = 5
"""At most this many overlaps of a file are told."""


class Overlap(NamedTuple):
    """A rule of which some parts are replaced by another's at a place."""

    lost: int  # numbers of the two rules, counted from 0
    counts: int
    parts: tuple[str, ...]
    place: int  # an example, as `RuleTables` numbers places
    time: int
    everywhere: bool  # nothing is left of what the lost rule gives


class Overlaps:
    """Collects the overlaps of a file, table by table."""

    def __init__(self, rules: Sequence[Rule], shape: Sequence[int], horizon: int) -> None:
        self.rules, self.shape, self.horizon = rules, shape, horizon
        self.general = np.array([not any((r.times, r.states, *r.actions)) for r in rules], dtype=bool)
        self.seen: dict[str, Ints] = {}
        self.sets: dict[tuple[int, ...], frozenset[int]] = {}
        self.found: dict[tuple[int, int], Overlap] = {}

    def look(self, part: str, rule: Ints, counts: Ints, place: Ints, time: int) -> None:
        """Look at the places of one table: a rule that gives the part, and the one that counts."""
        if len(self.found) > SHOWN:
            return
        lost = np.flatnonzero((rule != counts) & ~self.general[rule])
        codes, first = np.unique(rule[lost] * len(self.rules) + counts[lost], return_index=True)
        new = ~np.isin(codes, self.seen.get(part, ()))
        self.seen[part] = np.concatenate([self.seen.get(part, codes[:0]), codes[new]])
        for code, at in zip(codes[new].tolist(), lost[first[new]].tolist(), strict=True):
            pair = a, b = divmod(code, len(self.rules))
            if pair in self.found:
                self.found[pair] = self.found[pair]._replace(parts=(*self.found[pair].parts, part))
            elif not self._same(part, a, b) and not self._within(b, a):
                self.found[pair] = Overlap(a, b, (part,), int(place[at]), time, self._within(a, b))
            if len(self.found) > SHOWN:
                return

    def _same(self, part: str, a: int, b: int) -> bool:
        """Return whether nothing is lost: both say the same, and it is nothing that adds up."""
        own, other = (getattr(self.rules[k], part) for k in (a, b))
        amounts = [x for o in own for x in (*o.cost, *(o.reward or ()))] if part == "outcomes" else own
        return own == other and (part == "legal" or not any(x != 0 for x in amounts))

    def _within(self, inner: int, outer: int) -> bool:
        """Return whether a rule holds only where another one does."""
        a, b = self.rules[inner], self.rules[outer]
        if b.times is not None and not _inside(a.times or ((0, self.horizon - 1),), b.times):
            return False
        return all(own <= other for own, other in self._sides(a, b))

    def _sides(self, a: Rule, b: Rule) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
        """Yield states and actions of two rules, where the second one names them; lengths decide
        most.
        """
        for own, other, size in zip((a.states, *a.actions), (b.states, *b.actions), self.shape, strict=True):
            if other is None:
                continue
            if (size if own is None else len(own)) > len(other):
                yield frozenset((-1,)), frozenset()
            elif own is not None:
                yield self._set(own), self._set(other)

    def _set(self, side: tuple[int, ...]) -> frozenset[int]:
        return self.sets.setdefault(side, frozenset(side)) if side not in self.sets else self.sets[side]


def _inside(inner: Intervals, outer: Intervals) -> bool:
    """Return whether each of some intervals lies in one of others; both are sorted and apart."""
    lows = [low for low, _ in outer]
    at = np.searchsorted(lows, [low for low, _ in inner], side="right") - 1
    return all(k >= 0 and high <= outer[k][1] for (_, high), k in zip(inner, at.tolist(), strict=True))
