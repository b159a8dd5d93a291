"""What a valid game file probably does not mean: sentences for warnings.

A rule for a special case after a general one is how files are written. Other overlaps are warned
of: rules that both hold at some places and have others of their own, where one of them is lost, and
rules that a later, more general one replaces everywhere. So are rules that add to nothing and
states that nothing leads to. A label with a typing error is behind most of them: where a file lists
no states, it is a state of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from acegames.files.rules import Intervals, Rule, mentioned_states
from acegames.model.arrays import Ints
from acegames.model.checks import did_you_mean

if TYPE_CHECKING:
    from acegames.files.rule_tables import RuleTables

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
        self.as_set: Callable[[tuple[int, ...]], frozenset[int]] = cache(frozenset)  # rules share sides
        self.overlaps: dict[tuple[int, int], Overlap] = {}

    def look(self, part: str, rule: Ints, counts: Ints, place: Ints, time: int) -> None:
        """Look at the places of one table: a rule that gives the part, and the one that counts."""
        if len(self.overlaps) > SHOWN:
            return
        lost = np.flatnonzero((rule != counts) & ~self.general[rule])
        codes, first = np.unique(rule[lost] * len(self.rules) + counts[lost], return_index=True)
        new = ~np.isin(codes, self.seen.get(part, ()))
        self.seen[part] = np.concatenate([self.seen.get(part, codes[:0]), codes[new]])
        for code, at in zip(codes[new].tolist(), lost[first[new]].tolist(), strict=True):
            pair = a, b = divmod(code, len(self.rules))
            if pair in self.overlaps:
                self.overlaps[pair] = self.overlaps[pair]._replace(parts=(*self.overlaps[pair].parts, part))
            elif not self._same(part, a, b) and not self._within(b, a):
                self.overlaps[pair] = Overlap(a, b, (part,), int(place[at]), time, self._within(a, b))
            if len(self.overlaps) > SHOWN:
                return

    def _same(self, part: str, a: int, b: int) -> bool:
        """Return whether nothing is lost: both rules say the same, and it is nothing that adds
        up.
        """
        own, other = (getattr(self.rules[k], part) for k in (a, b))
        amounts = [x for o in own for x in (*o.cost, *(o.reward or ()))] if part == "outcomes" else own
        return own == other and (part == "legal" or not any(x != 0 for x in amounts))

    def _within(self, inner: int, outer: int) -> bool:
        """Return whether a rule holds only where another one does."""
        a, b = self.rules[inner], self.rules[outer]
        if b.times is not None and not _inside(a.times or ((0, self.horizon - 1),), b.times):
            return False
        sides = zip((a.states, *a.actions), (b.states, *b.actions), self.shape, strict=True)
        return all(other is None or self._covers(other, own, size) for own, other, size in sides)

    def _covers(self, other: tuple[int, ...], own: tuple[int, ...] | None, size: int) -> bool:
        """Return whether a side has all that another one names, or all that there is."""
        if (size if own is None else len(own)) > len(other):  # decides most
            return False
        return own is None or self.as_set(own) <= self.as_set(other)


def _inside(inner: Intervals, outer: Intervals) -> bool:
    """Return whether each interval lies within one of the outer ones; both lists are sorted and
    disjoint.
    """
    lows = [low for low, _ in outer]
    at = np.searchsorted(lows, [low for low, _ in inner], side="right") - 1
    return all(k >= 0 and high <= outer[k][1] for (_, high), k in zip(inner, at.tolist(), strict=True))


# -- sentences -------------------------------------------------------------------------------------


def doubts_about(tables: RuleTables, document: Mapping[str, Any], lines: Callable[[], list[int | None]]) -> list[str]:
    """Return sentences about the rules.

    Args:
        tables: what the rules make, once `layers` was called.
        document: the file.
        lines: returns the line of each rule; asked only where there is something to say.
    """
    idle = [k for k in sorted(tables.adding_nothing) if not _speaks_of(tables.rules[k], tables.never_entered)]
    # A file that lists its states means those it lists: games from arrays have such states.
    lost = [] if tables.words.states_listed else sorted(tables.never_entered)
    if not (tables.replaced.overlaps or lost or idle):
        return []
    line_of = lines()
    named = [f"rule {k + 1}" + (f" (line {line})" if line else "") for k, line in enumerate(line_of)]
    overlaps = list(tables.replaced.overlaps.values())
    return [
        *(_overlap_sentence(tables, overlap, named) for overlap in overlaps[:SHOWN]),
        *([f"more rules overlap; {SHOWN} of these overlaps were named"] if len(overlaps) > SHOWN else []),
        *(_never_entered(tables, s, document["rules"], line_of) for s in lost[:SHOWN]),
        *([f"nothing leads to {len(lost):,} states in all; {SHOWN} of them were named"] if len(lost) > SHOWN else []),
        *(f"{named[k]} adds to nothing: no outcome fits its `when`" for k in idle[:SHOWN]),
        *([f"{len(idle)} rules add to nothing in all; {SHOWN} of them were named"] if len(idle) > SHOWN else []),
    ]


def _overlap_sentence(tables: RuleTables, overlap: Overlap, named: list[str]) -> str:
    lost, counts, parts = named[overlap.lost], named[overlap.counts], " and ".join(overlap.parts)
    sums = {"outcomes": "cost: ...", "reward": "reward: ..."}
    added = ", ".join(sums[part] for part in overlap.parts if part in sums)
    help_ = f"; where both are to count, write `add: {{{added}}}`" if added else ""
    if overlap.everywhere:
        return f"{lost} has no effect on {parts}: {counts} is later and more general, and replaces it{help_}"
    spot = tables.place(overlap.time, overlap.place)
    said = f"{lost} and {counts} overlap: at {spot} the later one alone gives {parts}"
    return f"{said}{help_}; where one is to count, write a rule for the overlap alone"


def _never_entered(tables: RuleTables, state: int, raw_rules: list[Any], line_of: list[int | None]) -> str:
    """Return a sentence about a state that play cannot enter, with the line that names it first."""
    states = tables.words.names.states
    entered = {str(label): label for s, label in enumerate(states) if s not in tables.never_entered}
    line = line_of[next(k for k, raw in enumerate(raw_rules) if states[state] in mentioned_states([raw]))]
    where, meant = "" if line is None else f"line {line}: ", did_you_mean(states[state], entered)
    return f"{where}nothing leads to the state {states[state]!r}, and play does not begin there{meant}"


def _speaks_of(rule: Rule, states: set[int]) -> bool:
    """Return whether a rule names one of these states, which play cannot enter."""
    nexts = rule.add.nexts if rule.add is not None else None
    return not states.isdisjoint((*(rule.states or ()), *(nexts or ())))
