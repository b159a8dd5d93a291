"""From raw tables to a checked, canonical `MarkovGame`. Every builder and every file ends here.

Canonical: rows and outcomes sorted, equal outcomes merged, impossible ones dropped, equal arrays shared, costs coded
by the sorted exact values that occur, then the distributions. The same content therefore gives the same arrays and the same digest.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidGame
from acegames.model.budgets import AtEnd
from acegames.model.costs.random import Cost, cost_order
from acegames.model.game import (
    LAYER_FIELDS,
    Label,
    Layer,
    MarkovGame,
    check_labels,
    each_reach,
    new_sets,
    place,
    read_initial,
)
from acegames.model.numbers import Bound, exact_or_inf, is_scalar
from acegames.numerics import PROBABILITY_RENORMALISE, PROBABILITY_SUM


@dataclass(frozen=True)
class RawLayer:
    """One time's rows and outcomes, in any order, unchecked but for their shapes."""

    times: tuple[int, ...]  # when it applies
    row_state: NDArray[Any]  # (R,)
    row_action: NDArray[Any]  # (R, N)
    reward: NDArray[Any]  # (R, N) floats
    out_row: NDArray[Any]  # (K,)
    prob: NDArray[Any]  # (K,) floats
    next_state: NDArray[Any]  # (K,)
    cost: NDArray[Any]  # (K, M) codes into the cost values given to `assemble`


@dataclass(frozen=True)
class Names:
    """The labels of a game."""

    players: tuple[Label, ...]
    states: tuple[Label, ...]
    actions: tuple[tuple[Label, ...], ...]
    constraints: tuple[Label, ...]


def assemble(
    names: Names,
    layers: Sequence[RawLayer],
    cost_values: Sequence[Sequence[Cost]],
    *,
    horizon: int,
    initial: Any,
    budgets: tuple[tuple[Bound, ...], ...],
    name: str = "",
    settled: bool = False,
) -> MarkovGame:
    """Check raw layers that together cover every time, and build the game.

    `settled` says that the layers are as they were left here, as those of archives are: a few arrays combined to ever new layers
    would otherwise take memory without bound.
    """
    if not names.players:
        raise InvalidGame("players: a game needs at least one player")
    start = _check_initial(initial, names.states)
    values, codes = _canonical_costs(cost_values, layers)
    store = _Shared()
    distinct: dict[tuple[int, ...], int] = {}
    built: list[Layer] = []
    layer_at = [-1] * horizon
    for raw in sorted(layers, key=lambda r: r.times):
        layer = store.share(_canonical_layer(raw, names, codes, every_t=len(raw.times) == horizon))
        if settled:
            _check_settled(layer, raw)
        key = tuple(id(getattr(layer, f)) for f in LAYER_FIELDS)
        if settled and key in distinct:  # what is written has each layer once
            raise InvalidGame(f"the layer of t={raw.times[0]} comes twice")
        if key not in distinct:
            distinct[key] = len(built)
            built.append(layer)
        for t in raw.times:
            layer_at[t] = distinct[key]
    game = MarkovGame(
        names.players,
        names.states,
        names.actions,
        names.constraints,
        horizon,
        start,
        budgets,
        values,
        tuple(built),
        tuple(layer_at),
        name,
    )
    _check_every_state_can_act(game)
    return game


def read_budget(
    budget: Any, constraints: Sequence[Label] | None, horizon: int
) -> tuple[tuple[Label, ...], tuple[tuple[Bound, ...], ...]]:
    """Return constraint labels and H rows of M exact bounds from any accepted form of budget."""
    if budget is None:
        if constraints:
            raise InvalidGame(f"budget: missing for the constraints {list(constraints)!r}")
        return (), ((),) * horizon
    if isinstance(budget, Mapping):
        labels = check_labels("constraints", budget if constraints is None else constraints)
        if set(labels) != set(budget):
            raise InvalidGame(f"budget: has entries for {list(budget)!r}, the constraints are {list(labels)!r}")
        columns = [_schedule(label, budget[label], horizon) for label in labels]
        return labels, tuple(zip(*columns, strict=True)) if columns else ((),) * horizon
    rows = _budget_rows(budget, horizon)
    width = len(rows[0])
    labels = check_labels("constraints", range(width) if constraints is None else constraints)
    if len(labels) != width:
        raise InvalidGame(f"budget: has {width} entries, there are {len(labels)} constraints {list(labels)!r}")
    if len(rows) == 1:  # a constant, but for `almost_sure` entries
        columns = [_schedule(label, entry, horizon) for label, entry in zip(labels, rows[0], strict=True)]
        return labels, tuple(zip(*columns, strict=True)) if columns else ((),) * horizon
    return labels, tuple(
        tuple(_bound(f"budget of {label!r} at t={t}", v) for label, v in zip(labels, row, strict=True))
        for t, row in enumerate(rows)
    )


def _budget_rows(budget: Any, horizon: int) -> list[list[Any]]:
    """Return one row (constant) or H rows (a schedule) of raw budget entries, all of one length."""
    if is_scalar(budget):
        return [[budget]]
    entries = list(budget)
    nested = [not is_scalar(e) for e in entries]
    if not any(nested):
        return [entries]
    if not all(nested):
        raise InvalidGame(f"budget: {budget!r} mixes numbers and rows; give M numbers, or one row of M per time")
    rows = [list(e) for e in entries]
    if len(rows) != horizon:
        raise InvalidGame(f"budget: the schedule has {len(rows)} rows, the horizon is {horizon}")
    for t, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise InvalidGame(f"budget: row t={t} has {len(row)} entries, row t=0 has {len(rows[0])}")
    return rows


def _schedule(label: Label, entry: Any, horizon: int) -> tuple[Bound, ...]:
    if isinstance(entry, AtEnd):
        return (math.inf,) * (horizon - 1) + (_bound(f"budget of {label!r}", entry.bound),)
    if is_scalar(entry):
        return (_bound(f"budget of {label!r}", entry),) * horizon
    values = list(entry)
    if len(values) != horizon:
        raise InvalidGame(f"budget of {label!r}: the schedule has {len(values)} entries, the horizon is {horizon}")
    return tuple(_bound(f"budget of {label!r} at t={t}", v) for t, v in enumerate(values))


def _bound(what: str, value: Any) -> Bound:
    try:
        return exact_or_inf(value)
    except ValueError as error:
        raise InvalidGame(f"{what}: {error}; must be a finite number or inf") from None


def _check_initial(initial: Any, states: tuple[Label, ...]) -> tuple[tuple[int, float], ...]:
    index = {s: i for i, s in enumerate(states)}
    start = read_initial(initial, index)
    total = math.fsum(start.values())
    if abs(total - 1) > PROBABILITY_SUM:
        raise InvalidGame(f"initial: probabilities sum to {total!r}, must sum to 1 within 1e-8")
    scale = total if abs(total - 1) > PROBABILITY_RENORMALISE else 1.0
    return tuple(sorted((index[s], p / scale) for s, p in start.items()))


def _canonical_costs(
    cost_values: Sequence[Sequence[Cost]], layers: Sequence[RawLayer]
) -> tuple[tuple[tuple[Cost, ...], ...], list[NDArray[np.int32]]]:
    """Return the sorted distinct values that occur, and for each constraint the new code of each old code."""
    values, codes = [], []
    for m, given in enumerate(cost_values):
        used = np.zeros(len(given), dtype=bool)
        for raw in layers:
            used[raw.cost[raw.prob > 0, m]] = True
        kept = sorted({_key(given[int(k)]): given[int(k)] for k in np.flatnonzero(used)}.values(), key=cost_order)
        position = {_key(v): k for k, v in enumerate(kept)}
        values.append(tuple(kept))
        codes.append(np.array([position.get(_key(v), -1) for v in given], dtype=np.int32))
    return tuple(values), codes


def _canonical_layer(raw: RawLayer, names: Names, codes: list[NDArray[np.int32]], *, every_t: bool) -> Layer:
    n_states = len(names.states)
    t = raw.times[0]

    def where(row: int) -> str:
        labels = [names.actions[i][int(a)] for i, a in enumerate(raw.row_action[row])]
        return place(t, names.states[int(raw.row_state[row])], labels, every_t=every_t)

    _check_numbers(raw, names, where)
    order = np.lexsort((*raw.row_action.T[::-1], raw.row_state))
    keys = np.column_stack([raw.row_state, raw.row_action])[order]
    twice = np.flatnonzero((keys[1:] == keys[:-1]).all(axis=1))
    if len(twice):
        raise InvalidGame(f"{where(int(order[twice[0]]))}: described twice")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))

    possible = raw.prob > 0
    out_row = rank[raw.out_row[possible].astype(np.int64)]
    cost = np.column_stack(
        [code[raw.cost[possible, m]] for m, code in enumerate(codes)] or [np.empty((len(out_row), 0), np.int32)]
    )
    next_state = raw.next_state[possible]
    prob = raw.prob[possible].astype(np.float64)
    sort = np.lexsort((*cost.T[::-1], next_state, out_row))
    keys = np.column_stack([out_row, next_state, cost])[sort]
    new = np.ones(len(keys), dtype=bool)
    new[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    merged = np.add.reduceat(prob[sort], np.flatnonzero(new)) if len(keys) else prob[sort]
    out_row = keys[new, 0]

    totals = np.bincount(out_row, weights=merged, minlength=len(order))
    off = np.flatnonzero(~(np.abs(totals - 1) <= PROBABILITY_SUM))
    if len(off):
        row = int(off[0])
        raise InvalidGame(
            f"{where(int(order[row]))}: probabilities sum to {totals[row]:.12g}, must sum to 1 within 1e-8"
        )
    scale = np.where(np.abs(totals - 1) > PROBABILITY_RENORMALISE, totals, 1.0)
    return Layer(
        row_ptr=_pointers(raw.row_state[order], n_states),
        action=raw.row_action[order].astype(np.int32),
        reward=raw.reward[order].astype(np.float64) + 0.0,
        out_ptr=_pointers(out_row, len(order)),
        prob=merged / scale[out_row],
        next_state=keys[new, 1].astype(np.int32),
        cost=keys[new, 2:].astype(np.int32),
    )


def _check_settled(layer: Layer, raw: RawLayer) -> None:
    pairs = (
        (layer.action, raw.row_action),
        (layer.reward, raw.reward),
        (layer.prob, raw.prob),
        (layer.next_state, raw.next_state),
        (layer.cost, raw.cost),
    )
    if not all(np.array_equal(found, given) for found, given in pairs):
        raise InvalidGame(f"{place(raw.times[0])}: rows and outcomes are not in order")


def _check_numbers(raw: RawLayer, names: Names, where: Any) -> None:
    bad = np.argwhere(~np.isfinite(raw.reward))
    if len(bad):
        row, i = map(int, bad[0])
        raise InvalidGame(
            f"{where(row)}: reward of player {names.players[i]!r} is {raw.reward[row, i]}, must be a finite number"
        )
    wrong = np.flatnonzero(~((raw.prob >= 0) & np.isfinite(raw.prob)))
    if len(wrong):
        k = int(wrong[0])
        nxt = names.states[int(raw.next_state[k])]
        raise InvalidGame(
            f"{where(int(raw.out_row[k]))}: probability {raw.prob[k]} of next state {nxt!r}, must be at least 0"
        )


def _pointers(sorted_index: NDArray[Any], size: int) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.bincount(sorted_index, minlength=size))]).astype(np.int64)


def _check_every_state_can_act(game: MarkovGame) -> None:
    for t, k, here in new_sets(each_reach(game), game.layer_at):
        stuck = np.flatnonzero(here & (np.diff(game.layers[k].row_ptr) == 0))
        if len(stuck):
            state = game.states[int(stuck[0])]
            raise InvalidGame(f"{place(t, state)}: no legal joint action, every state that can occur needs one")


class _Shared:
    """Makes equal arrays one read-only object, so that stationary parts are stored once."""

    def __init__(self) -> None:
        self._known: dict[bytes, NDArray[Any]] = {}

    def share(self, layer: Layer) -> Layer:
        return Layer(*(self._one(getattr(layer, f)) for f in LAYER_FIELDS))

    def _one(self, array: NDArray[Any]) -> NDArray[Any]:
        array = np.ascontiguousarray(array)
        key = hashlib.sha256(repr((array.dtype.str, array.shape)).encode() + array.tobytes()).digest()
        if key not in self._known:
            array.setflags(write=False)
            self._known[key] = array
        return self._known[key]


def code_costs(vectors: Iterable[Sequence[Cost]], width: int) -> tuple[list[list[Cost]], NDArray[np.int64]]:
    """Return per-constraint value lists and (K, M) codes for a sequence of exact cost vectors."""
    tables: list[dict[Any, int]] = [{} for _ in range(width)]
    values: list[list[Cost]] = [[] for _ in range(width)]
    codes = []
    for vector in vectors:
        codes.append([table.setdefault(_key(c), len(table)) for table, c in zip(tables, vector, strict=True)])
        for m, code in enumerate(codes[-1]):
            if code == len(values[m]):
                values[m].append(vector[m])
    return values, np.array(codes, dtype=np.int64).reshape(len(codes), width)


def _key(cost: Cost) -> Any:
    """What a cost is looked up by: numbers by their text, because the hash of a number can be chosen by whoever writes the file."""
    return str(cost) if isinstance(cost, Fraction) else cost
