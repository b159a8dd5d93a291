"""The tables of a game as explicit rules, one per state and joint action, more if `t` matters."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from acegames.files.game_text import label_condition
from acegames.files.written_costs import write_cost
from acegames.model.game import Label, Layer, MarkovGame
from acegames.model.written import label_to_data, write_number

LayerSet = tuple[int, ...]


def rules_document(game: MarkovGame) -> dict[str, Any]:
    """Return `rules`, and `default_legal: false` where some joint actions are illegal."""
    writer = _Writer(game)
    outcomes: dict[tuple[int, ...], dict[Any, list[int]]] = {}
    rewards: dict[tuple[int, ...], dict[Any, list[int]]] = {}
    for k, layer in enumerate(game.layers):
        for state in range(len(game.states)):
            for row in layer.rows(state):
                place = (state, *map(int, layer.action[row]))
                outcomes.setdefault(place, {}).setdefault(_outcome_key(layer, row), []).append(k)
                rewards.setdefault(place, {}).setdefault(tuple(layer.reward[row].tolist()), []).append(k)
    rules = []
    for place in sorted(outcomes):
        parts: dict[LayerSet, dict[str, Any]] = {}
        for key, layers in outcomes[place].items():
            parts.setdefault(tuple(layers), {}).update(writer.outcomes(key))
        for reward, layers in rewards[place].items():
            parts.setdefault(tuple(layers), {})["reward"] = [_friendly(r) for r in reward]
        rules += [{"when": writer.when(place, layers), **said} for layers, said in sorted(parts.items())]
    return {**({} if _all_legal(game) else {"default_legal": False}), "rules": rules}


def _outcome_key(layer: Layer, row: int) -> Any:
    here = layer.outcomes(row)
    costs = (tuple(c) for c in layer.cost[here].tolist())
    return tuple(zip(layer.prob[here].tolist(), layer.next_state[here].tolist(), costs, strict=True))


def _all_legal(game: MarkovGame) -> bool:
    """Whether every state allows all joint actions, but for states that cannot occur."""
    joint = math.prod(len(labels) for labels in game.actions)
    counts = [np.diff(layer.row_ptr) for layer in game.layers]
    return all(bool(((count == 0) | (count == joint)).all()) for count in counts)


class _Writer:
    def __init__(self, game: MarkovGame) -> None:
        self.game = game
        self.states = [label_to_data("states", s) for s in game.states]
        self.costs = [[write_cost(c, write_number) for c in values] for values in game.cost_values]
        self.times: list[list[int]] = [[] for _ in game.layers]
        for t, k in enumerate(game.layer_at):
            self.times[k].append(t)

    def when(self, place: tuple[int, ...], layers: LayerSet) -> dict[str, Any]:
        state, *acts = place
        labels: Iterable[Label] = (known[a] for known, a in zip(self.game.actions, acts, strict=True))
        condition = {"state": label_condition(self.game.states[state]), "action": [label_condition(x) for x in labels]}
        if len(layers) == len(self.game.layers):
            return condition
        spans = _spans(sorted(t for k in layers for t in self.times[k]))
        return {"t": spans[0] if len(spans) == 1 else spans, **condition}

    def outcomes(self, key: Any) -> dict[str, Any]:
        if len(key) == 1 and key[0][0] == 1.0:
            return self._effect(key[0])
        return {"outcomes": [{"probability": outcome[0], **self._effect(outcome)} for outcome in key]}

    def _effect(self, outcome: Any) -> dict[str, Any]:
        _, next_state, codes = outcome
        cost = [values[code] for values, code in zip(self.costs, codes, strict=True)]
        return {"next": self.states[next_state], **({"cost": cost} if any(c != 0 for c in cost) else {})}


def _friendly(value: float) -> int | float:
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _spans(times: list[int]) -> list[int | str]:
    """Return sorted times as numbers and ranges such as `2..5`."""
    spans: list[int | str] = []
    first = previous = times[0]
    for t in [*times[1:], -1]:
        if t != previous + 1:
            spans.append(first if first == previous else f"{first}..{previous}")
            first = t
        previous = t
    return spans
