"""What a valid game file probably does not mean: sentences for warnings.

A rule for a special case after a general one is how files are written. Other overlaps are warned
of: rules that both hold at some places and have others of their own, where one of them is lost, and
rules that a later, more general one replaces everywhere. So are rules that add to nothing and
states that nothing leads to. A label with a typing error is behind most of them: where a file lists
no states, it is a state of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
        self.sets: dict[tuple[int, ...], frozenset[int]] = {}
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
        return all(own <= other for own, other in self._sides(a, b))

    def _sides(self, a: Rule, b: Rule) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
        """Yield the states and actions of two rules wherever the second one names them; lengths
        decide most.
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
    """Return whether each interval lies within one of the outer ones; both lists are sorted and
    disjoint.
    """
    lows = [low for low, _ in outer]
    at = np.searchsorted(lows, [low for low, _ in inner], side="right") - 1
    return all(k >= 0 and high <= outer[k][1] for (_, high), k in zip(inner, at.tolist(), strict=True))


# -- sentences -------------------------------------------------------------------------------------

Document = Mapping[str, Any]


def doubts_about(tables: RuleTables, text: str, document: Document) -> list[str]:
    """Return sentences about the rules, each with the lines that it is about."""
    return [
        *_overlapping(tables, text, document),
        *_never_entered(tables, text, document),
        *_adding_nothing(tables, text, document),
    ]


def _named(text: str, document: Document, rules: Sequence[int]) -> list[str]:
    """Return rules, counted from 0, as people call them."""
    lines = _lines(text, document, rules)
    return [f"rule {k + 1}" + (f" (line {line})" if line else "") for k, line in zip(rules, lines, strict=True)]


def _lines(text: str, document: Document, rules: Sequence[int]) -> list[int | None]:
    from acegames.files.yaml_json import lines_of_rules  # brings yaml, which archives do not need

    return lines_of_rules(text, document, rules)


def _overlapping(tables: RuleTables, text: str, document: Document) -> list[str]:
    overlaps = tables.overlaps
    named = _named(text, document, [k for overlap in overlaps for k in (overlap.lost, overlap.counts)])
    pairs = zip(overlaps[:SHOWN], named[::2], named[1::2], strict=False)
    sentences = [_overlap_sentence(tables, *pair) for pair in pairs]
    more = [f"more rules overlap; {SHOWN} of these overlaps were named"] if len(overlaps) > SHOWN else []
    return sentences + more


def _overlap_sentence(tables: RuleTables, overlap: Overlap, lost: str, counts: str) -> str:
    parts = " and ".join(overlap.parts)
    sums = {"outcomes": "cost: ...", "reward": "reward: ..."}
    added = ", ".join(sums[part] for part in overlap.parts if part in sums)
    help_ = f"; where both are to count, write `add: {{{added}}}`" if added else ""
    if overlap.everywhere:
        return f"{lost} has no effect on {parts}: {counts} is later and more general, and replaces it{help_}"
    said = f"{lost} and {counts} overlap: at {tables.described(overlap)} the later one alone gives {parts}"
    return f"{said}{help_}; where one is to count, write a rule for the overlap alone"


def _never_entered(tables: RuleTables, text: str, document: Document) -> list[str]:
    """Return sentences about states that play cannot enter, with the rule that names each first.

    A file that lists its states means those it lists: games from arrays have such states.
    """
    if tables.words.states_listed:
        return []
    states, lost = tables.words.names.states, tables.never_entered
    entered = {str(states[s]): states[s] for s in range(len(states)) if s not in tables.never_entered}
    sentences = []
    for s in sorted(lost)[:SHOWN]:
        meant = did_you_mean(states[s], entered)
        where = _line_of_state(tables, text, document, s)
        sentences.append(f"{where}nothing leads to the state {states[s]!r}, and play does not begin there{meant}")
    if len(lost) > SHOWN:
        sentences.append(f"nothing leads to {len(lost):,} states in all; {SHOWN} of them were named")
    return sentences


def _line_of_state(tables: RuleTables, text: str, document: Document, state: int) -> str:
    label = tables.words.names.states[state]
    rule = next(k for k, raw in enumerate(document["rules"]) if label in mentioned_states([raw]))
    (line,) = _lines(text, document, [rule])
    return "" if line is None else f"line {line}: "


def _adding_nothing(tables: RuleTables, text: str, document: Document) -> list[str]:
    """Return sentences about rules that add to no outcome, except rules of states that play cannot
    enter.
    """
    idle = [k for k in sorted(tables.adding_nothing) if not _speaks_of(tables.rules[k], tables.never_entered)]
    named = _named(text, document, idle[:SHOWN])
    more = [f"{len(idle)} rules add to nothing in all; {SHOWN} of them were named"] if len(idle) > SHOWN else []
    return [f"{name} adds to nothing: no outcome fits its `when`" for name in named] + more


def _speaks_of(rule: Rule, states: set[int]) -> bool:
    nexts = rule.add.nexts if rule.add is not None else None
    return not states.isdisjoint((*(rule.states or ()), *(nexts or ())))
