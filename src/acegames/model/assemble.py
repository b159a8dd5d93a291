"""From raw tables to a checked, canonical `MarkovGame`. Every builder and every file ends here.

Canonical: rows and outcomes are sorted, equal outcomes merged, impossible ones dropped, equal
arrays shared, costs coded by the sorted exact values that occur and then the distributions. So the
same content gives the same arrays and the same digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidGame
from acegames.model.arrays import Ints, pointers
from acegames.model.budgets import Budgets
from acegames.model.checks import Label, initial_distribution, place
from acegames.model.costs.random import Cost, cost_order
from acegames.model.layers import LAYER_FIELDS, Layer, changes, each_reachable
from acegames.numerics import PROBABILITY_RENORMALISE, PROBABILITY_SUM

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame


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


class Names(NamedTuple):
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
    budgets: Budgets,
    name: str = "",
    settled: bool = False,
) -> MarkovGame:
    """Check raw layers that together cover every time, and build the game.

    `settled` demands layers that are canonical already, each once, as those of archives are. (A
    file that combines a few arrays to ever new layers could otherwise fill the memory.)
    """
    from acegames.model.game import MarkovGame

    if not names.players:
        raise InvalidGame("players: a game needs at least one player")
    start = initial_distribution(initial, names.states)
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
    game = MarkovGame(*names, horizon, start, budgets, values, tuple(built), tuple(layer_at), name)
    _check_every_state_can_act(game)
    return game


def _canonical_costs(
    cost_values: Sequence[Sequence[Cost]], layers: Sequence[RawLayer]
) -> tuple[tuple[tuple[Cost, ...], ...], list[NDArray[np.int32]]]:
    """Return the sorted values that occur, and per constraint the new code of each old code."""
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
        spot, total = where(int(order[off[0]])), totals[off[0]]
        raise InvalidGame(f"{spot}: probabilities sum to {total:.12g}, must sum to 1 within 1e-8")
    scale = np.where(np.abs(totals - 1) > PROBABILITY_RENORMALISE, totals, 1.0)
    return Layer(
        row_ptr=pointers(np.bincount(raw.row_state, minlength=len(names.states))),
        action=raw.row_action[order].astype(np.int32),
        reward=raw.reward[order].astype(np.float64) + 0.0,
        out_ptr=pointers(np.bincount(out_row, minlength=len(order))),
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
        who, value = names.players[i], raw.reward[row, i]
        raise InvalidGame(f"{where(row)}: reward of player {who!r} is {value}, must be a finite number")
    wrong = np.flatnonzero(~((raw.prob >= 0) & np.isfinite(raw.prob)))
    if len(wrong):
        k = int(wrong[0])
        spot, nxt = where(int(raw.out_row[k])), names.states[int(raw.next_state[k])]
        raise InvalidGame(f"{spot}: probability {raw.prob[k]} of next state {nxt!r}, must be at least 0")


def _check_every_state_can_act(game: MarkovGame) -> None:
    for t, k, here in changes(each_reachable(game), game.layer_at):
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


def code_costs(vectors: Iterable[Sequence[Cost]], width: int) -> tuple[list[list[Cost]], Ints]:
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
    """The key of a cost in a dict: numbers by their text, since a file can choose their hashes."""
    return str(cost) if isinstance(cost, Fraction) else cost
