"""From raw tables to a checked, canonical `MarkovGame`. Every builder and every file ends here.

Canonical: rows and outcomes are sorted, equal outcomes merged, impossible ones dropped, equal
arrays shared, costs coded by the sorted exact values that occur and then the distributions. So the
same content gives the same arrays and the same digest.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidGame
from acegames.model.arrays import Ints, are_in_order, distinct, in_order, owners
from acegames.model.budgets import Budgets
from acegames.model.checks import Label, initial_distribution, place
from acegames.model.costs.random import Cost, RandomCost, cost_order, read_cost
from acegames.model.layers import LAYER_FIELDS, Layer, changes, each_reachable
from acegames.numerics import PROBABILITY_RENORMALISE, PROBABILITY_SUM

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame


_BLOCK = 2**18
"""Outcomes, about, that are put in order at once."""


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
    own: bool = False  # whether `assemble` may keep the arrays and change them; they have the types of `Layer`

    @staticmethod
    def of(layer: Layer, times: tuple[int, ...]) -> RawLayer:
        """A layer of a game, to be changed."""
        rows, outcomes = (layer.action, layer.reward), (layer.prob, layer.next_state, layer.cost)
        return RawLayer(times, owners(layer.row_ptr), *rows, owners(layer.out_ptr), *outcomes)


class Names(NamedTuple):
    """The labels of a game."""

    players: tuple[Label, ...]
    states: tuple[Label, ...]
    actions: tuple[tuple[Label, ...], ...]
    constraints: tuple[Label, ...]

    def place(self, t: int | None, state: Any, action: Iterable[Any] | None = None, *, every_t: bool = False) -> str:
        """The place of a state and of a joint action, given by numbers, for an error message."""
        labels = None if action is None else [own[int(a)] for own, a in zip(self.actions, action, strict=True)]
        return place(t, self.states[int(state)], labels, every_t=every_t)


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
    shared = _Shared()
    distinct: dict[tuple[int, ...], int] = {}
    built: list[Layer] = []
    layer_at = [-1] * horizon
    for raw in sorted(layers, key=lambda r: r.times):
        found = _canonical_layer(raw, names, codes, every_t=len(raw.times) == horizon)
        layer = Layer(*(shared.one(getattr(found, f)) for f in LAYER_FIELDS))
        if settled:
            _check_settled(layer, raw)
        k = distinct.setdefault(tuple(id(getattr(layer, f)) for f in LAYER_FIELDS), len(built))
        if k == len(built):
            built.append(layer)
        elif settled:  # what is written has each layer once
            raise InvalidGame(f"the layer of t={raw.times[0]} comes twice")
        for t in raw.times:
            layer_at[t] = k
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
            for part in (slice(k, k + _BLOCK) for k in range(0, len(raw.prob), _BLOCK)):
                used[raw.cost[part, m][raw.prob[part] > 0]] = True
        kept = sorted({_key(given[int(k)]): given[int(k)] for k in np.flatnonzero(used)}.values(), key=cost_order)
        position = {_key(v): k for k, v in enumerate(kept)}
        values.append(tuple(kept))
        codes.append(np.array([position.get(_key(v), -1) for v in given], dtype=np.int32))
    return tuple(values), codes


def _canonical_layer(raw: RawLayer, names: Names, codes: list[NDArray[np.int32]], *, every_t: bool) -> Layer:
    def where(row: int) -> str:
        return names.place(raw.times[0], raw.row_state[row], raw.row_action[row], every_t=every_t)

    _check_numbers(raw, names, where)
    rows, order = _with_rows_in_order(raw, where)
    state = rows.row_state.astype(np.int32, copy=False)
    reward = rows.reward if rows.own else rows.reward.astype(np.float64)
    reward += 0.0  # no minus zero
    out_ptr, outcomes = _canonical_outcomes(
        _with_outcomes_by_row(rows, codes), codes, lambda row: where(int(order[row]))
    )
    return Layer(
        row_ptr=np.searchsorted(state, np.arange(len(names.states) + 1, dtype=np.int32)).astype(np.int64),
        action=rows.row_action.astype(np.int32, copy=not rows.own),
        reward=reward,
        out_ptr=out_ptr,
        **outcomes,
    )


def _canonical_outcomes(
    raw: RawLayer, codes: list[NDArray[np.int32]], where: Callable[[int], str]
) -> tuple[Ints, dict[str, NDArray[Any]]]:
    """Where the outcomes of each row begin, and the outcomes; block by block, to save memory.

    What belongs to the layer is overwritten: no block has more outcomes than before.
    """
    rows, total = len(raw.row_state), len(raw.prob)
    found: dict[str, NDArray[Any]] = {
        "prob": raw.prob if raw.own else np.empty(total, dtype=np.float64),
        "next_state": raw.next_state if raw.own else np.empty(total, dtype=np.int32),
        "cost": raw.cost if raw.own else np.empty(raw.cost.shape, dtype=np.int32),
    }
    out_ptr = np.zeros(rows + 1, dtype=np.int64)
    cuts = np.searchsorted(raw.out_row, raw.out_row[_BLOCK::_BLOCK]) if total > _BLOCK else np.empty(0, dtype=np.int64)
    first = [0, *np.unique(cuts[cuts > 0]).tolist()]
    first_row = [0, *raw.out_row[first[1:]].tolist(), rows]
    filled = 0
    for k, (begin, end) in enumerate(itertools.pairwise([*first, total])):
        columns, prob = _block_of_outcomes(raw, codes, slice(begin, end), first_row[k])
        counts = np.bincount(columns[0], minlength=first_row[k + 1] - first_row[k])
        totals = np.bincount(columns[0], weights=prob, minlength=len(counts))
        off = np.flatnonzero(~(np.abs(totals - 1) <= PROBABILITY_SUM))
        if len(off):
            spot, amount = where(first_row[k] + int(off[0])), totals[off[0]]
            raise InvalidGame(f"{spot}: probabilities sum to {amount:.12g}, must sum to 1 within 1e-8")
        out_ptr[first_row[k] + 1 : first_row[k + 1] + 1] = counts
        part = slice(filled, filled + len(prob))
        filled = part.stop
        scale = np.where(np.abs(totals - 1) > PROBABILITY_RENORMALISE, totals, 1.0)
        found["prob"][part] = prob / scale[columns[0]]
        found["next_state"][part] = columns[1]
        for m, column in enumerate(columns[2:]):
            found["cost"][part, m] = column
    del columns, prob
    if filled < total:
        for array in found.values():
            array.resize((filled, *array.shape[1:]), refcheck=False)  # no view of it is left
    return np.cumsum(out_ptr, out=out_ptr), found


def _block_of_outcomes(
    raw: RawLayer, codes: list[NDArray[np.int32]], part: slice, first_row: int
) -> tuple[list[NDArray[Any]], NDArray[Any]]:
    """Rows from 0, next states and codes of some rows' outcomes, in order; and probabilities."""
    prob = raw.prob[part]
    costs = (code[raw.cost[part, m]] for m, code in enumerate(codes))
    columns = [raw.out_row[part].astype(np.int64) - first_row, raw.next_state[part], *costs]
    if not (prob > 0).all():
        columns, prob = [column[prob > 0] for column in columns], prob[prob > 0]
    if not are_in_order(columns):
        sort, new = in_order(columns)
        columns = [column[sort[new]] for column in columns]
        prob = np.add.reduceat(prob[sort], np.flatnonzero(new)) if len(prob) else prob
    return columns, prob


def _with_outcomes_by_row(raw: RawLayer, codes: list[NDArray[np.int32]]) -> RawLayer:
    """Put outcomes in the order of their rows, and what belongs to one row in order too."""
    if (raw.out_row[1:] >= raw.out_row[:-1]).all():
        return raw
    costs = (code[raw.cost[:, m]] for m, code in enumerate(codes))
    order, _ = in_order([raw.out_row.astype(np.int64), raw.next_state, *costs])
    return replace(raw, **{name: getattr(raw, name)[order] for name in ("out_row", "prob", "next_state", "cost")})


def _with_rows_in_order(raw: RawLayer, where: Callable[[int], str]) -> tuple[RawLayer, Ints | range]:
    """Put rows in order; also say which row each one was."""
    columns = [raw.row_state, *raw.row_action.T]
    if are_in_order(columns):
        return raw, range(len(raw.row_state))
    order, new = in_order(columns)
    if not new.all():
        raise InvalidGame(f"{where(int(order[np.argmin(new)]))}: described twice")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    rows = {name: getattr(raw, name)[order] for name in ("row_state", "row_action", "reward")}
    return replace(raw, **rows, out_row=rank[raw.out_row.astype(np.int64)]), order


def _check_settled(layer: Layer, raw: RawLayer) -> None:
    found: list[NDArray[Any]] = [layer.action, layer.reward, layer.prob, layer.next_state, layer.cost]
    given = [raw.row_action, raw.reward, raw.prob, raw.next_state, raw.cost]
    if not all(map(np.array_equal, found, given)):
        raise InvalidGame(f"{place(raw.times[0])}: rows and outcomes are not in order")


def _check_numbers(raw: RawLayer, names: Names, where: Callable[[int], str]) -> None:
    finite = np.isfinite(raw.reward)
    if not finite.all():
        row, i = map(int, np.argwhere(~finite)[0])
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
    """The one read-only array of all that are equal, so that stationary parts are stored once."""

    def __init__(self) -> None:
        self.alone: dict[Any, list[NDArray[Any]]] = {}  # by type and shape: one that was not compared yet
        self.known: dict[bytes, NDArray[Any]] = {}

    def one(self, array: NDArray[Any]) -> NDArray[Any]:
        """The array itself, or the one before that is equal."""
        array = np.ascontiguousarray(array)
        if not array.flags.owndata:
            array = array.copy()  # a file that is mapped may change
        array.setflags(write=False)
        kind = array.dtype.str, array.shape
        if kind not in self.alone:
            self.alone[kind] = [array]
            return array
        while self.alone[kind]:
            self._known(self.alone[kind].pop())
        return self._known(array)

    def _known(self, array: NDArray[Any]) -> NDArray[Any]:
        digest = hashlib.sha256(repr((array.dtype.str, array.shape)).encode())
        digest.update(array.data if array.size else b"")
        return self.known.setdefault(digest.digest(), array)


def code_costs(vectors: Iterable[Sequence[Cost]], width: int) -> tuple[list[list[Cost]], Ints]:
    """Return per-constraint value lists and (K, M) codes for a sequence of exact cost vectors."""
    given = list(vectors)
    columns = [_distinct([vector[m] for vector in given]) for m in range(width)]
    codes = np.array([codes for _, codes in columns], dtype=np.int64).reshape(width, len(given))
    return [values for values, _ in columns], codes.T


def read_costs(given: Any, wrong: Callable[[int, str], InvalidGame]) -> tuple[list[Cost], Ints]:
    """The distinct costs of a list or an array, and which of them each entry is.

    `wrong` makes the error for the number of an entry and what is wrong with it.
    """
    values: Iterable[Any]
    if not isinstance(given, list) and np.asarray(given).dtype.kind in "biuf":
        values, codes = distinct(np.asarray(given).reshape(-1))
    else:  # an array of whole numbers beside floats would round them
        values, codes = _distinct(given if isinstance(given, list) else np.asarray(given).tolist())
    found = []
    for k, value in enumerate(values):
        try:
            found.append(read_cost(value))
        except ValueError as error:
            raise wrong(int(np.argmax(codes == k)), str(error)) from None
    return found, codes.reshape(-1)


def _distinct(costs: list[Any]) -> tuple[list[Any], Ints]:
    """The distinct costs in order of appearance, and which of them each one is."""
    keys = list(map(_key, costs))
    numbers = {key: k for k, key in enumerate(dict.fromkeys(keys))}
    codes = np.fromiter(map(numbers.__getitem__, keys), dtype=np.int64, count=len(keys))
    return list(dict(zip(keys, costs, strict=True)).values()), codes


def _key(cost: Any) -> Hashable:
    """The key of a cost in a dict: numbers by their text, since a file can choose their hashes."""
    if isinstance(cost, (Fraction, Decimal)):
        return ("exact", str(cost))
    return cost if isinstance(cost, (int, float, np.number, RandomCost)) else ("object", id(cost))
