"""The tables of a game as explicit rules, one per state and joint action, more if `t` matters."""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any

import numpy as np

from acegames.files.written_costs import write_cost
from acegames.model.arrays import owners
from acegames.model.game import Label, Layer, MarkovGame
from acegames.model.written import label_to_data, write_number

LayerSet = tuple[int, ...]


def rules_document(game: MarkovGame) -> dict[str, Any]:
    """Return `rules`, and `default_legal: false` where some joint actions are illegal."""
    writer = _Writer(game)
    said: dict[tuple[int, ...], dict[Any, list[int]]] = {}  # {place: {what a rule says there: layers}}
    for k, layer in enumerate(game.layers):
        for row, state in enumerate(owners(layer.row_ptr).tolist()):
            here = said.setdefault((state, *layer.action[row].tolist()), {})
            here.setdefault(("outcomes", _outcome_key(layer, row)), []).append(k)
            here.setdefault(("reward", tuple(layer.reward[row].tolist())), []).append(k)
    rules = []
    for place in sorted(said):
        parts: dict[LayerSet, dict[str, Any]] = {}
        for (part, key), layers in said[place].items():
            told = writer.outcomes(key) if part == "outcomes" else {part: [_friendly(r) for r in key]}
            parts.setdefault(tuple(layers), {}).update(told)
        rules += [{"when": writer.when(place, layers), **told} for layers, told in sorted(parts.items())]
    return {**({} if _all_legal(game) else {"default_legal": False}), "rules": rules}


def _outcome_key(layer: Layer, row: int) -> Any:
    here = layer.outcomes(row)
    costs = map(tuple, layer.cost[here].tolist())
    return tuple(zip(layer.prob[here].tolist(), layer.next_state[here].tolist(), costs, strict=True))


def _all_legal(game: MarkovGame) -> bool:
    """Whether every state allows all joint actions, but for states that cannot occur."""
    joint = math.prod(len(labels) for labels in game.actions)
    return all(np.isin(np.diff(layer.row_ptr), (0, joint)).all() for layer in game.layers)


class _Writer:
    def __init__(self, game: MarkovGame) -> None:
        self.game = game
        self.states = [label_to_data("states", s) for s in game.states]
        self.costs = [[write_cost(c, write_number) for c in values] for values in game.cost_values]

    def when(self, place: tuple[int, ...], layers: LayerSet) -> dict[str, Any]:
        state, *acts = place
        labels = (known[a] for known, a in zip(self.game.actions, acts, strict=True))
        condition = {"state": _condition(self.game.states[state]), "action": list(map(_condition, labels))}
        if len(layers) == len(self.game.layers):
            return condition
        spans = _spans(sorted(t for k in layers for t in self.game.times[k]))
        return {"t": spans[0] if len(spans) == 1 else spans, **condition}

    def outcomes(self, key: Any) -> dict[str, Any]:
        if len(key) == 1 and key[0][0] == 1.0:
            return self._effect(key[0])
        return {"outcomes": [{"probability": outcome[0], **self._effect(outcome)} for outcome in key]}

    def _effect(self, outcome: Any) -> dict[str, Any]:
        _, next_state, codes = outcome
        cost = [values[code] for values, code in zip(self.costs, codes, strict=True)]
        return {"next": self.states[next_state], **({"cost": cost} if any(c != 0 for c in cost) else {})}


def _condition(label: Label) -> Any:
    """How a label is written in a condition, where a bare `*` would mean any."""
    return {"any": ["*"]} if label == "*" else label_to_data("states", label)


def _friendly(value: float) -> int | float:
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _spans(times: list[int]) -> list[int | str]:
    """Sorted times as numbers and ranges such as `2..5`."""
    runs = (list(run) for _, run in groupby(enumerate(times), lambda entry: entry[1] - entry[0]))
    return [run[0][1] if len(run) == 1 else f"{run[0][1]}..{run[-1][1]}" for run in runs]
