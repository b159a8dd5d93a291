"""The tables of a game as rules: one per state and joint action, more if `t` matters.

Where it is shorter, a state has one rule for all of its joint actions, rules that add what each
player's action changes, and exceptions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from operator import add, sub
from typing import Any

import numpy as np

from acegames.files.game_data import are_keys, write_cost
from acegames.model.arrays import owners
from acegames.model.game import Label, Layer, MarkovGame
from acegames.model.numbers import exact
from acegames.model.random_costs import RandomCost
from acegames.model.words import label_to_data, write_number

SHORTER = 0.85
"""A state's rules are written together where they then take less than this share of the room."""

LayerSet = tuple[int, ...]
Acts = tuple[int, ...]
"""The numbers of a joint action."""
Place = tuple[int, ...]
"""A state and a joint action."""
Parts = dict[Any, list[int]]
"""{(part, what is said there): layers}"""


def rules_document(game: MarkovGame) -> dict[str, Any]:
    """Return `rules`, and `default_legal: false` where some joint actions are illegal."""
    writer = _Writer(game)
    said: dict[Place, Parts] = {}
    for k, layer in enumerate(layer.apart() for layer in game.layers):
        for row, state in enumerate(owners(layer.row_ptr).tolist()):
            here = said.setdefault((state, *layer.action[row].tolist()), {})
            paid = _paid(layer, row)
            here.setdefault(("outcomes", _outcome_key(layer, row, paid)), []).append(k)
            if paid is None:
                here.setdefault(("reward", tuple(layer.reward[row].tolist())), []).append(k)
    rules = []
    for _, places in groupby(sorted(said), lambda place: place[0]):
        state = {place[1:]: (place, said[place]) for place in places}
        explicit = [rule for place, parts in state.values() for rule in writer.explicit(place, parts)]
        shorter = writer.together(state)
        rules += shorter if _length(shorter) < SHORTER * _length(explicit) else explicit
    return {**({} if _all_legal(game) else {"default_legal": False}), "rules": rules}


def _length(rules: list[dict[str, Any]]) -> float:
    return sum(len(str(rule)) for rule in rules) if rules else math.inf


def _paid(layer: Layer, row: int) -> list[Any] | None:
    """Return what each outcome of a row pays; None where that is the reward of the row."""
    paid = layer.paid(row, layer.outcomes(row))
    return None if (paid == layer.reward[row]).all() else list(map(tuple, paid.tolist()))


def _outcome_key(layer: Layer, row: int, paid: list[Any] | None) -> Any:
    here = layer.outcomes(row)
    prob, costs = layer.prob[here].tolist(), map(tuple, layer.cost[here].tolist())
    return tuple(zip(prob, layer.next_state[here].tolist(), costs, paid or [None] * len(prob), strict=True))


def _all_legal(game: MarkovGame) -> bool:
    """Return whether every state allows all joint actions, but for states that cannot occur."""
    joint = math.prod(len(labels) for labels in game.actions)
    return all(np.isin(np.diff(layer.row_ptr), (0, joint)).all() for layer in game.layers)


class _Writer:
    def __init__(self, game: MarkovGame) -> None:
        self.game = game
        self.states = [label_to_data("states", s) for s in game.states]
        self.costs = [[write_cost(c, write_number) for c in values] for values in game.cost_values]

    def explicit(self, place: Place, parts: Parts) -> list[dict[str, Any]]:
        """Return the rules of one state and joint action."""
        by_layers: dict[LayerSet, dict[str, Any]] = {}
        for (part, key), layers in parts.items():
            by_layers.setdefault(tuple(layers), {}).update(self.said(part, key))
        return [
            {"when": self.when(place[0], layers, self.acting(place[1:])), **said}
            for layers, said in sorted(by_layers.items())
        ]

    def together(self, here: dict[Acts, tuple[Place, Parts]]) -> list[dict[str, Any]]:
        """Return rules that speak of all joint actions of a state at once; none where that
        fails.
        """
        if len(here) < math.prod(map(len, self.game.actions)):
            return []
        tables: dict[tuple[str, int], dict[Acts, Any]] = {}
        for acts, (_, parts) in here.items():
            for (part, key), present in parts.items():
                for k in present:
                    tables.setdefault((part, k), {})[acts] = key
        if any(len(table) < len(here) for table in tables.values()):
            return []
        equal: dict[Any, list[int]] = {}
        for (part, k), table in tables.items():
            equal.setdefault((part, *(table[acts] for acts in here)), []).append(k)
        state = next(iter(here.values()))[0][0]
        first: dict[LayerSet, dict[str, Any]] = {}
        adds: dict[tuple[LayerSet, tuple[int, int]], dict[str, Any]] = {}
        exceptions: dict[tuple[LayerSet, Acts], dict[str, Any]] = {}
        for (part, *keys), same in equal.items():
            table, layers = dict(zip(here, keys, strict=True)), tuple(sorted(same))
            base, added, others = self._common(part, table)
            if part == "outcomes" and others:
                return []
            first.setdefault(layers, {}).update(self.said(part, base))
            for who, amount in added.items():
                adds.setdefault((layers, who), {}).update(amount)
            for acts, key in others.items():
                exceptions.setdefault((layers, acts), {}).update(self.said(part, key))
        rules = [{"when": self.when(state, layers), **said} for layers, said in sorted(first.items())]
        rules += [{"when": self.when(state, x, self.acting_alone(*who)), "add": y} for (x, who), y in adds.items()]
        return rules + [{"when": self.when(state, x, self.acting(a)), **said} for (x, a), said in exceptions.items()]

    def acting_alone(self, player: int, action: int) -> Any:
        """Return a condition on the action of one player."""
        label = self.game.players[player]
        entry = _condition(self.game.actions[player][action])
        if are_keys([label]):
            return {label: entry}
        return [entry if i == player else "*" for i in range(len(self.game.players))]

    def _common(self, part: str, table: dict[Acts, Any]) -> tuple[Any, dict[tuple[int, int], Any], dict[Acts, Any]]:
        """Return what holds for all joint actions, what single actions add, and the exceptions."""
        base = Counter(table.values()).most_common(1)[0][0]
        others = {acts: key for acts, key in table.items() if key != base}
        vectors = self._vectors(part, table) if others else None
        sums = None if vectors is None else additive(vectors, self.game.actions)
        if sums is None:
            return base, {}, others
        start, changes = sums
        if part == "outcomes":
            amounts = {who: {"cost": self._amounts(self.game.constraints, cost)} for who, cost in changes.items()}
            return table[start], amounts, {}
        if any(exact(float(x)) != x for gain in changes.values() for x in gain):
            return base, {}, others
        return table[start], {who: {"reward": self._amounts(self.game.players, x)} for who, x in changes.items()}, {}

    def _vectors(self, part: str, table: dict[Acts, Any]) -> dict[Acts, tuple[Fraction, ...]] | None:
        """Return the cost of the first outcome, if all others differ by the same from it, or the
        rewards.
        """
        if part == "reward":
            signed_zero = any(x == 0 and math.copysign(1, x) < 0 for key in table.values() for x in key)
            return None if signed_zero else {acts: tuple(map(exact, key)) for acts, key in table.items()}
        vectors = {}
        first = next(iter(table.values()))
        for acts, key in table.items():
            costs = [self._cost(codes) for _, _, codes, _ in key]
            others = [self._cost(codes) for _, _, codes, _ in first]
            if any(isinstance(x, RandomCost) for cost in (*costs, *others) for x in cost):
                return None
            if [(*out[:2], out[3]) for out in key] != [(*out[:2], out[3]) for out in first]:
                return None
            if len({tuple(map(sub, mine, its)) for mine, its in zip(costs, others, strict=True)}) > 1:
                return None
            vectors[acts] = costs[0]
        return vectors

    def _cost(self, codes: Any) -> tuple[Any, ...]:
        return tuple(values[code] for values, code in zip(self.game.cost_values, codes, strict=True))

    def _amounts(self, labels: Sequence[Label], amounts: Sequence[Fraction]) -> Any:
        written = [write_number(x) for x in amounts]
        if not are_keys(labels):
            return written
        return {label: x for label, x in zip(labels, written, strict=True) if x != 0}

    def said(self, part: str, key: Any) -> dict[str, Any]:
        """Return what a rule says of a part."""
        return self.outcomes(key) if part == "outcomes" else {part: [_friendly(r) for r in key]}

    def acting(self, acts: Acts) -> list[Any]:
        """Return a condition on the actions of all players."""
        return [_condition(known[a]) for known, a in zip(self.game.actions, acts, strict=True)]

    def when(self, state: int, layers: LayerSet, acting: Any = None) -> dict[str, Any]:
        """Return a condition on a state, on the times of these layers and on actions."""
        times: dict[str, Any] = {}
        if len(layers) < len(self.game.layers):
            spans = _spans(sorted(t for k in layers for t in self.game.times[k]))
            times = {"t": spans[0] if len(spans) == 1 else spans}
        actions = {} if acting is None else {"action": acting}
        return {**times, "state": _condition(self.game.states[state]), **actions}

    def outcomes(self, key: Any) -> dict[str, Any]:
        if len(key) == 1 and key[0][0] == 1.0:
            return self._effect(key[0])
        return {"outcomes": [{"probability": outcome[0], **self._effect(outcome)} for outcome in key]}

    def _effect(self, outcome: Any) -> dict[str, Any]:
        _, next_state, codes, paid = outcome
        cost = [values[code] for values, code in zip(self.costs, codes, strict=True)]
        effect = {"next": self.states[next_state], **({"cost": cost} if any(c != 0 for c in cost) else {})}
        return effect if paid is None else {**effect, "reward": [_friendly(r) for r in paid]}


def additive(
    table: Mapping[Acts, tuple[Fraction, ...]], actions: Sequence[Sequence[Any]]
) -> tuple[Acts, dict[tuple[int, int], tuple[Fraction, ...]]] | None:
    """Return a joint action and what each player's other actions add to its vector; None where the
    vector of some joint action is not such a sum.
    """
    zero = (0,) * len(actions)

    def own(i: int, a: int) -> tuple[Fraction, ...]:
        return table[(*zero[:i], a, *zero[i + 1 :])]

    start = tuple(
        min(range(len(labels)), key=lambda a: (sum(own(i, a) != own(i, b) for b in range(len(labels))), sum(own(i, a))))
        for i, labels in enumerate(actions)
    )
    changes = {
        (i, a): change
        for i, labels in enumerate(actions)
        for a in range(len(labels))
        if any(change := tuple(map(sub, own(i, a), own(i, start[i]))))
    }
    for acts, vector in table.items():
        total = table[start]
        for who in enumerate(acts):
            total = tuple(map(add, total, changes[who])) if who in changes else total
        if total != vector:
            return None
    return start, changes


def _condition(label: Label) -> Any:
    """Return a label as a condition, in which a bare `*` would mean any."""
    return {"any": ["*"]} if label == "*" else label_to_data("states", label)


def _friendly(value: float) -> int | float:
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _spans(times: list[int]) -> list[int | str]:
    """Return sorted times as numbers and ranges such as `2..5`."""
    runs = (list(run) for _, run in groupby(enumerate(times), lambda entry: entry[1] - entry[0]))
    return [run[0][1] if len(run) == 1 else f"{run[0][1]}..{run[-1][1]}" for run in runs]
