"""The rules of a game file: where they hold (`when`) and what they give (outcomes, reward, legal).

Of rules that give the same part, the last one that matches counts. What rules `add` to costs and
rewards is summed, and nothing replaces it. Each parsed rule is read into indices; every key, label
and number is checked where it stands. `rule_tables` works out what the rules mean together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from acegames.errors import InvalidGame
from acegames.files.game_data import NAME, in_order, is_written_distribution, look_up, read_written_cost
from acegames.model.assemble import Names
from acegames.model.checks import Label, are, check_hashes, check_keys, counted, read_at, show
from acegames.model.random_costs import Cost
from acegames.model.words import label_from_data, labels_from_data, read_float, read_probability
from acegames.numerics import PROBABILITY_SUM

WILD = "*"
RULE_KEYS = ("when", "outcomes", "next", "cost", "reward", "legal", "add")
WHEN_KEYS = ("t", "state", "action", "next")
OUTCOME_KEYS = ("probability", "next", "cost", "reward")
ADD_KEYS = ("cost", "reward")
PARTS = ("outcomes", "reward", "legal")
"""What a rule can give; the last rule that gives a part counts."""
STAY = -1
"""Stands for the state of the row in place of a next state."""

_RANGE = re.compile(r"\s*([0-9]{1,9})\s*\.\.\s*([0-9]{1,9})\s*")

Intervals = tuple[tuple[int, int], ...]


class Outcome(NamedTuple):
    """What may happen after a joint action."""

    probability: float
    next: int  # a state, or STAY
    cost: tuple[Cost, ...]
    reward: tuple[float, ...] | None = None  # what it pays besides the reward of the joint action


class Added(NamedTuple):
    """What a rule adds to every outcome that it speaks of."""

    cost: tuple[Cost, ...] | None
    reward: tuple[float, ...] | None
    nexts: tuple[int, ...] | None  # only to outcomes that lead to these states; None for all


@dataclass(frozen=True)
class Rule:
    """A rule in indices. None in a condition means any, None in a part that it is not given."""

    number: int  # counted from 1, for people
    times: Intervals | None  # sorted, disjoint, not adjacent, ends included
    states: tuple[int, ...] | None  # sorted
    actions: tuple[tuple[int, ...] | None, ...]  # one per player, sorted
    outcomes: tuple[Outcome, ...] | None
    reward: tuple[float, ...] | None
    legal: bool | None
    add: Added | None

    @property
    def parts(self) -> tuple[str, ...]:
        """Which of outcomes, reward and legal the rule gives."""
        return tuple(part for part in PARTS if getattr(self, part) is not None)


class Vocabulary:
    """The labels that rules may use, with their indices."""

    def __init__(self, names: Names, horizon: int, *, states_listed: bool) -> None:
        self.names, self.horizon, self.states_listed = names, horizon, states_listed
        self.players, self.states, self.constraints = map(_index, (names.players, names.states, names.constraints))
        self.actions = list(map(_index, names.actions))


def read_rules(raw_rules: Any, vocabulary: Vocabulary) -> list[Rule]:
    """Return the checked rules of a file; no two give the same part under the same condition."""
    if not isinstance(raw_rules, list):
        raise InvalidGame(f"rules: {show(raw_rules)}, must be a list")
    rules = [_read_rule(number, raw, vocabulary) for number, raw in enumerate(raw_rules, start=1)]
    first: dict[Any, int] = {}
    for rule in rules:
        for part in rule.parts:
            other = first.setdefault((rule.times, rule.states, rule.actions, part), rule.number)
            if other != rule.number:
                raise InvalidGame(
                    f"rule {rule.number}: duplicate rule, rule {other} gives {part} under the same condition "
                    f"{show(raw_rules[rule.number - 1].get('when', {}))}"
                )
    return rules


def mentioned_states(rules: Any) -> list[Label]:
    """Return the states that rules name, in order; `read_rules` reports what is malformed."""
    states: list[Label] = []
    for number, rule in enumerate(rules if isinstance(rules, list) else (), start=1):
        if not isinstance(rule, Mapping):
            continue
        when, outcomes = rule.get("when"), rule.get("outcomes")
        when = when if isinstance(when, Mapping) else {}
        places = [rule, *(o for o in (outcomes if isinstance(outcomes, list) else ()) if isinstance(o, Mapping))]
        there = [p["next"] for p in places if "next" in p and p["next"] != WILD and not isinstance(p["next"], Mapping)]
        labels = [*_named(when.get("state", WILD)), *there, *_named(when.get("next", WILD))]
        states += [label_from_data(f"rule {number}", label) for label in labels]
    return list(dict.fromkeys(check_hashes("states", states)))


def _named(spec: Any) -> list[Any]:
    """Return the labels that a condition names, as far as it is well formed."""
    labels = spec.get("any") if isinstance(spec, Mapping) else [] if spec == WILD else [spec]
    return labels if isinstance(labels, list) else []


def _index(labels: Iterable[Label]) -> dict[Label, int]:
    return {label: i for i, label in enumerate(labels)}


def _read_rule(number: int, raw: Any, words: Vocabulary) -> Rule:
    where = f"rule {number}"
    check_keys(where, raw, RULE_KEYS)
    when = raw.get("when", {})
    check_keys(f"{where}: when", when, WHEN_KEYS)
    if "outcomes" in raw and ("next" in raw or "cost" in raw):
        raise InvalidGame(f"{where}: gives both outcomes and a certain outcome by next or cost; give one of them")
    certain = {key: raw[key] for key in ("next", "cost") if key in raw}
    outcomes = raw.get("outcomes", [certain] if certain else None)
    legal = raw.get("legal")
    if legal is not None and not isinstance(legal, bool):
        raise InvalidGame(f"{where}: legal: {show(legal)}, must be true or false")
    rule = Rule(
        number=number,
        times=_times(f"{where}: when: t", when.get("t", WILD), words.horizon),
        states=_choice(f"{where}: when: state", "state", when.get("state", WILD), words.states),
        actions=_actions(f"{where}: when: action", when.get("action", WILD), words),
        outcomes=None if outcomes is None else _outcomes(where, outcomes, words),
        reward=_reward(f"{where}: reward", raw["reward"], words) if "reward" in raw else None,
        legal=legal,
        add=_added(where, raw["add"], when.get("next", WILD), words) if "add" in raw else None,
    )
    if not rule.parts and rule.add is None:
        raise InvalidGame(f"{where}: says nothing, give outcomes (or next, cost), reward, legal or add")
    if "next" in when and (rule.parts or rule.add is None):
        raise InvalidGame(f"{where}: when: next: goes with add alone, such as `add: {{reward: ...}}`")
    return rule


def _added(rule: str, raw: Any, nexts: Any, words: Vocabulary) -> Added:
    leads, where = _choice(f"{rule}: when: next", "state", nexts, words.states), f"{rule}: add"
    check_keys(where, raw, ADD_KEYS)
    if not raw:
        raise InvalidGame(f"{where}: says nothing, give cost or reward")
    cost = _cost(f"{where}: cost", raw["cost"], words) if "cost" in raw else None
    reward = _reward(f"{where}: reward", raw["reward"], words, rest=0) if "reward" in raw else None
    return Added(cost, reward, leads)


def _times(where: str, spec: Any, horizon: int) -> Intervals | None:
    if spec == WILD:
        return None
    intervals = sorted(_interval(where, item, horizon) for item in (spec if isinstance(spec, list) else [spec]))
    if not intervals:
        raise InvalidGame(f"{where}: the list is empty, name at least one time")
    merged = [intervals[0]]
    for low, high in intervals[1:]:
        if low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def _interval(where: str, item: Any, horizon: int) -> tuple[int, int]:
    match = _RANGE.fullmatch(item) if isinstance(item, str) else None
    if match:
        low, high = int(match[1]), int(match[2])
    elif isinstance(item, int) and not isinstance(item, bool):
        low = high = item
    else:
        raise InvalidGame(f"{where}: {show(item)}, must be a whole number, a range such as 2..5, or a list of these")
    if not 0 <= low <= high < horizon:
        raise InvalidGame(f"{where}: {show(item)} is outside 0..{horizon - 1}, the times of horizon {horizon}")
    return low, high


def _choice(where: str, kind: str, spec: Any, index: Mapping[Label, int]) -> tuple[int, ...] | None:
    """Return the indices that a label, `*` or {any: [labels]} stands for; None for all."""
    if spec == WILD:
        return None
    if isinstance(spec, Mapping):
        check_keys(where, spec, ("any",), ("any",))
        labels = labels_from_data(f"{where}: any", spec["any"])
        if not labels:
            raise InvalidGame(f"{where}: any is empty, name at least one {kind}")
    else:
        labels = [label_from_data(where, spec)]
    indices = sorted({look_up(where, kind, label, index) for label in labels})
    return tuple(indices)  # naming all is narrower than naming none: a later rule may do it


def _actions(where: str, spec: Any, words: Vocabulary) -> tuple[tuple[int, ...] | None, ...]:
    entries = in_order(where, "player", spec, words.players, WILD) if isinstance(spec, Mapping) else spec
    if spec == WILD:
        entries = [WILD] * len(words.players)
    if not isinstance(entries, list) or len(entries) != len(words.players):
        player = next(iter(words.players), "PLAYER")
        ways = f"a list of {len(words.players)} entries, or a mapping such as {{{player}: ACTION}}"
        raise InvalidGame(f"{where}: {show(spec)}, must be {ways}")
    return tuple(
        _choice(f"{where}: player {player!r}", "action", entry, index)
        for player, entry, index in zip(words.names.players, entries, words.actions, strict=True)
    )


def _outcomes(where: str, listed: Any, words: Vocabulary) -> tuple[Outcome, ...]:
    if not isinstance(listed, list) or not listed:
        such = "[{probability: 0.5, next: STATE}, ...]"
        raise InvalidGame(f"{where}: outcomes: {show(listed)}, must be a list of at least one outcome, such as {such}")
    outcomes = []
    for k, raw in enumerate(listed, start=1):
        spot = where if len(listed) == 1 else f"{where}: outcome {k}"
        check_keys(spot, raw, OUTCOME_KEYS)
        probability = read_at(f"{spot}: probability", read_probability, raw.get("probability", 1))
        if probability < 0:
            raise InvalidGame(f"{spot}: probability {probability}, must be at least 0")
        cost = _cost(f"{spot}: cost", raw.get("cost"), words)
        pays = _reward(f"{spot}: reward", raw["reward"], words, rest=0) if "reward" in raw else None
        outcomes.append(Outcome(probability, _next(f"{spot}: next", raw, words), cost, pays))
    total = math.fsum(probability for probability, *_ in outcomes)
    if not abs(total - 1) <= PROBABILITY_SUM:
        raise InvalidGame(f"{where}: outcomes: probabilities sum to {total:.12g}, must sum to 1")
    return tuple(outcomes)


def _next(where: str, raw: Mapping[str, Any], words: Vocabulary) -> int:
    if "next" not in raw:
        return STAY
    if raw["next"] == WILD and not words.states_listed:
        raise InvalidGame(f"{where}: {WILD!r} is no state; leave next out to stay, or list the states")
    if isinstance(raw["next"], Mapping):
        several = "for several write `outcomes: [{probability: 0.5, next: STATE}, ...]`"
        raise InvalidGame(f"{where}: {show(raw['next'])}, must be the label of one state; {several}")
    return look_up(where, "state", label_from_data(where, raw["next"]), words.states)


def _cost(where: str, raw: Any, words: Vocabulary) -> tuple[Cost, ...]:
    if is_written_distribution(raw) and NAME not in words.constraints:
        raw = [raw]
    entries = _vector(where, {} if raw is None else raw, "constraint", words.constraints)
    costs = []
    for label, entry in zip(words.constraints, entries, strict=True):
        spot = f"{where} of {label!r}" if isinstance(entry, Mapping) else where
        costs.append(Fraction(0) if entry is None else read_at(spot, read_written_cost, entry))
    return tuple(costs)


def _reward(where: str, raw: Any, words: Vocabulary, rest: int | None = None) -> tuple[float, ...]:
    """Return one number per player; a mapping may leave out players where `rest` stands for
    them.
    """
    entries = [rest if entry is None else entry for entry in _vector(where, raw, "player", words.players)]
    if None in entries:
        who = words.names.players[entries.index(None)]
        some = "; give one for each, or `add: {reward: ...}` for some of them"
        raise InvalidGame(f"{where}: {show(raw)} has no number for player {who!r}{some}")
    return tuple(read_at(where, read_float, entry) for entry in entries)


def _vector(where: str, raw: Any, kind: str, index: Mapping[Label, int]) -> list[Any]:
    """Return one raw number per label, None where a mapping has none."""
    if isinstance(raw, Mapping):
        return in_order(where, kind, raw, index)
    if raw is None:
        raise InvalidGame(f"{where}: there is no value, must be a number for each {kind}")
    entries = raw if isinstance(raw, list) else [raw]
    if len(entries) != len(index):
        has = f"has {counted(len(entries), 'entry')}" if isinstance(raw, list) else "is a single number"
        raise InvalidGame(f"{where}: {show(raw)} {has}, there {are(len(index), kind)}")
    return entries
