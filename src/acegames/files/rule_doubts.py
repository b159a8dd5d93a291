"""What a valid game file probably does not mean: sentences for warnings.

Rules of which one replaces what another says, though neither is the exception of the other; rules
that add to nothing; states that nothing leads to. A label with a typing error is behind most of
them: where a file lists no states, it is a state of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from acegames.files.lines import lines_of_rules
from acegames.files.rule_overlaps import SHOWN, Overlap
from acegames.files.rule_tables import RuleTables
from acegames.files.rules import Rule, mentioned_states
from acegames.model.written import did_you_mean

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
    lines = lines_of_rules(text, document, rules)
    return [f"rule {k + 1}" + (f" (line {line})" if line else "") for k, line in zip(rules, lines, strict=True)]


def _overlapping(tables: RuleTables, text: str, document: Document) -> list[str]:
    overlaps = tables.overlaps
    named = _named(text, document, [k for overlap in overlaps for k in (overlap.lost, overlap.counts)])
    pairs = zip(overlaps[:SHOWN], named[::2], named[1::2], strict=False)
    found = [_overlap_sentence(tables, *pair) for pair in pairs]
    more = [f"more rules overlap; {SHOWN} of these overlaps were named"] if len(overlaps) > SHOWN else []
    return found + more


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
    """Return states that play cannot enter, with the rule that names each first.

    A file that lists its states means those it lists: games from arrays have such states.
    """
    if tables.words.states_listed:
        return []
    states, lost = tables.words.names.states, tables.never_entered
    entered = {str(states[s]): states[s] for s in range(len(states)) if s not in tables.never_entered}
    found = []
    for s in sorted(lost)[:SHOWN]:
        meant = did_you_mean(states[s], entered)
        where = _line_of_state(tables, text, document, s)
        found.append(f"{where}nothing leads to the state {states[s]!r}, and play does not begin there{meant}")
    if len(lost) > SHOWN:
        found.append(f"nothing leads to {len(lost):,} states in all; {SHOWN} of them were named")
    return found


def _line_of_state(tables: RuleTables, text: str, document: Document, state: int) -> str:
    label = tables.words.names.states[state]
    rule = next(k for k, raw in enumerate(document["rules"]) if label in mentioned_states([raw]))
    (line,) = lines_of_rules(text, document, [rule])
    return "" if line is None else f"line {line}: "


def _adding_nothing(tables: RuleTables, text: str, document: Document) -> list[str]:
    """Return rules that add to no outcome, but for those of states that play cannot enter."""
    idle = [k for k in sorted(tables.adding_nothing) if not _speaks_of(tables.rules[k], tables.never_entered)]
    named = _named(text, document, idle[:SHOWN])
    more = [f"{len(idle)} rules add to nothing in all; {SHOWN} of them were named"] if len(idle) > SHOWN else []
    return [f"{name} adds to nothing: no outcome fits its `when`" for name in named] + more


def _speaks_of(rule: Rule, states: set[int]) -> bool:
    nexts = rule.add.nexts if rule.add is not None else None
    return not states.isdisjoint((*(rule.states or ()), *(nexts or ())))
