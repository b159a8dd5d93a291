"""The rows and outcomes of one time, from raw tables to a checked, canonical `Layer`.

Builders give a `RawLayer`, in any order, or an `OrderedLayer`, which is settled where it lies: the
memory of a large game is then that of its arrays.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidGame
from acegames.model.arrays import (
    Bools,
    Floats,
    Ints,
    are_in_order,
    code_type,
    distinct,
    in_order,
    number_rows,
    owners,
    pointer_type,
    pointers,
)
from acegames.model.checks import Label, place
from acegames.model.layers import Layer, Payments
from acegames.numerics import PROBABILITY_RENORMALISE, PROBABILITY_SUM

BLOCK = 2**16
"""Outcomes, about, that are looked at together."""

Codes = Sequence[NDArray[Any]]
"""For each constraint the code in the game of every code of the builder; -1 where none occurs."""


class Names(NamedTuple):
    """The labels of a game."""

    players: tuple[Label, ...]
    states: tuple[Label, ...]
    actions: tuple[tuple[Label, ...], ...]
    constraints: tuple[Label, ...]

    def place(self, t: int | None, state: Any, action: Iterable[Any] | None = None, *, every_t: bool = False) -> str:
        """Return the place of a state and a joint action, given by number, for a message."""
        labels = None if action is None else [own[int(a)] for own, a in zip(self.actions, action, strict=True)]
        return place(t, self.states[int(state)], labels, every_t=every_t)


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
    paid: NDArray[Any] | None = None  # (K, N) what each outcome pays, of which the mean then replaces `reward`

    @staticmethod
    def of(layer: Layer, times: tuple[int, ...]) -> RawLayer:
        """Return a layer of a game as a raw one that can be changed."""
        drawn = layer.apart()
        rows, outcomes = (layer.action, layer.reward), (drawn.prob, drawn.next_state, drawn.cost)
        paid = None if drawn.payments is None else drawn.payments.reward
        return RawLayer(times, owners(layer.row_ptr), *rows, owners(drawn.out_ptr), *outcomes, paid)


@dataclass(frozen=True)
class OrderedLayer:
    """Rows in order, each with its outcomes in any order. `assemble` takes over the arrays."""

    times: tuple[int, ...]  # when it applies
    row_ptr: NDArray[np.int64]  # (S+1,) the rows of each state
    action: NDArray[np.int32]  # (R, N)
    reward: NDArray[np.float64]  # (R, N)
    out_ptr: NDArray[Any]  # (R+1,) the outcomes of each row, of `pointer_type`
    prob: NDArray[np.float64]  # (K,)
    next_state: NDArray[np.int32]  # (K,)
    cost: NDArray[Any]  # (K, M) codes into the cost values given to `assemble`, of a `code_type`
    paid: NDArray[np.float64] | None = None  # (K, N) as in `RawLayer`


def canonical_layer(raw: RawLayer | OrderedLayer, names: Names, codes: Codes, values: int, *, every_t: bool) -> Layer:
    """Check a layer and put it in order; no constraint has more than `values` values."""
    ordered = _ordered(raw, names, codes, every_t=every_t) if isinstance(raw, RawLayer) else raw

    def where(row: int) -> str:
        state = int(np.searchsorted(ordered.row_ptr, row, "right")) - 1
        return names.place(ordered.times[0], state, ordered.action[row], every_t=every_t)

    _check_numbers(ordered, names, where)
    for rewards in (ordered.reward,) if ordered.paid is None else (ordered.reward, ordered.paid):
        np.add(rewards, 0.0, out=rewards)  # no minus zero
    length = _settle_outcomes(ordered, codes, where)
    if length < len(ordered.prob):
        for array in (ordered.prob, ordered.next_state, ordered.cost, ordered.paid):
            if array is not None:
                array.resize((length, *array.shape[1:]), refcheck=False)  # no view of it is left
    layer = Layer(
        ordered.row_ptr,
        ordered.action,
        ordered.reward,
        ordered.out_ptr.astype(pointer_type(length), copy=False),
        ordered.prob,
        ordered.next_state,
        ordered.cost.astype(code_type(values), copy=False),
    )
    return layer if ordered.paid is None else settled_payments(layer, ordered.paid)


def _settle_outcomes(layer: OrderedLayer, codes: Codes, where: Callable[[int], str]) -> int:
    """Put the outcomes of each row in order, each once, with the codes of the game.

    Outcomes that pay different amounts stay apart.

    Block by block, in place: no block has more outcomes than before. Returns how many are left.
    """
    rows, total, ptr = len(layer.action), len(layer.prob), layer.out_ptr
    recode = [None if np.array_equal(code, np.arange(len(code))) else code for code in codes]
    cuts = np.searchsorted(ptr, np.arange(BLOCK, total, BLOCK, dtype=ptr.dtype))
    begin = filled = 0
    for first, last in itertools.pairwise(np.unique([0, *cuts.tolist(), rows]).tolist()):
        many = np.diff(ptr[first + 1 : last + 1], prepend=begin)
        part = slice(begin, int(ptr[last]))
        columns, paid, prob = _in_order(layer, recode, np.repeat(np.arange(last - first), many), part)
        totals = np.bincount(columns[0], weights=prob, minlength=last - first)
        off = np.flatnonzero(~(np.abs(totals - 1) <= PROBABILITY_SUM))
        if len(off):
            spot, amount = where(first + int(off[0])), totals[off[0]]
            raise InvalidGame(f"{spot}: probabilities sum to {amount:.12g}, must sum to 1 within 1e-8")
        scale = np.where(np.abs(totals - 1) > PROBABILITY_RENORMALISE, totals, 1.0)
        if (scale != 1.0).any():
            prob = prob / scale[columns[0]]
        begin, to = part.stop, slice(filled, filled + len(prob))
        if to != part:
            many = np.bincount(columns[0], minlength=last - first)
            ptr[first + 1 : last + 1] = filled + np.cumsum(many)
        layer.prob[to], layer.next_state[to] = prob, columns[1]
        for m, column in enumerate(columns[2:]):
            layer.cost[to, m] = column
        if layer.paid is not None:
            layer.paid[to] = np.stack(paid, axis=1)
        filled = to.stop
    return filled


def _in_order(
    layer: OrderedLayer, recode: Sequence[NDArray[Any] | None], row: NDArray[Any], part: slice
) -> tuple[list[NDArray[Any]], list[NDArray[Any]], NDArray[Any]]:
    """Return some outcomes in order: rows, next states and codes; payments; probabilities."""
    prob = layer.prob[part]
    costs = (layer.cost[part, m] if code is None else code[layer.cost[part, m]] for m, code in enumerate(recode))
    columns = [row, layer.next_state[part], *costs]
    paid = [] if layer.paid is None else list(layer.paid[part].T)
    if not (prob > 0).all():
        columns, paid = ([column[prob > 0] for column in some] for some in (columns, paid))
        prob = prob[prob > 0]
    keys = [*columns, *(distinct(column)[1] for column in paid)]
    if not are_in_order(keys):
        sort, new = in_order(keys)
        columns, paid = ([column[sort[new]] for column in some] for some in (columns, paid))
        prob = np.add.reduceat(prob[sort], np.flatnonzero(new)) if len(prob) else prob
    return columns, paid, prob


def _ordered(raw: RawLayer, names: Names, codes: Codes, *, every_t: bool) -> OrderedLayer:
    """Return a copy with rows in order and outcomes in the order of their rows."""
    state, action, reward, out_row = raw.row_state, raw.row_action, raw.reward, raw.out_row
    if not are_in_order([state, *action.T]):
        order, new = in_order([state, *action.T])
        if not new.all():
            twice = int(order[np.argmin(new)])
            spot = names.place(raw.times[0], state[twice], action[twice], every_t=every_t)
            raise InvalidGame(f"{spot}: described twice")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        state, action, reward, out_row = state[order], action[order], reward[order], rank[out_row.astype(np.int64)]
    outcomes: dict[str, NDArray[Any]] = {
        "prob": np.array(raw.prob, dtype=np.float64),
        "next_state": np.array(raw.next_state, dtype=np.int32),
        "cost": np.array(raw.cost, dtype=code_type(max(map(len, codes), default=0)), order="C"),
    }
    if raw.paid is not None:
        outcomes["paid"] = np.array(raw.paid, dtype=np.float64, order="C")
    if not (out_row[1:] >= out_row[:-1]).all():
        costs = (code[raw.cost[:, m]] for m, code in enumerate(codes))
        order, _ = in_order([out_row.astype(np.int64), raw.next_state, *costs])
        outcomes = {name: array[order] for name, array in outcomes.items()}
    return OrderedLayer(
        raw.times,
        np.searchsorted(state, np.arange(len(names.states) + 1, dtype=state.dtype)),
        np.array(action, dtype=np.int32, order="C"),
        np.array(reward, dtype=np.float64, order="C"),
        pointers(np.bincount(out_row.astype(np.int64), minlength=len(state))),
        **outcomes,
    )


def _check_numbers(layer: OrderedLayer, names: Names, where: Callable[[int], str]) -> None:
    if layer.paid is None:
        _check_rewards(layer.reward, names, where)
    for begin in range(0, len(layer.prob), BLOCK):
        prob = layer.prob[begin : begin + BLOCK]
        fine = (prob >= 0) & np.isfinite(prob)
        if not fine.all():
            k = begin + int(np.argmin(fine))
            spot = where(int(np.searchsorted(layer.out_ptr, k, "right")) - 1)
            nxt = names.states[int(layer.next_state[k])]
            raise InvalidGame(f"{spot}: probability {layer.prob[k]} of next state {nxt!r}, must be at least 0")
    if layer.paid is not None:

        def leading(k: int) -> str:
            spot = where(int(np.searchsorted(layer.out_ptr, k, "right")) - 1)
            return f"{spot}, next state {names.states[int(layer.next_state[k])]!r}"

        _check_rewards(layer.paid, names, leading, layer.prob)


def _check_rewards(rewards: Floats, names: Names, where: Callable[[int], str], prob: Floats | None = None) -> None:
    """Refuse rewards that are not finite numbers, unless they cannot occur."""
    for begin in range(0, len(rewards), BLOCK):
        finite = np.isfinite(rewards[begin : begin + BLOCK])
        if prob is not None:
            finite |= (prob[begin : begin + BLOCK] == 0)[:, None]
        if not finite.all():
            k, i = map(int, np.argwhere(~finite)[0])
            who, value = names.players[i], rewards[begin + k, i]
            raise InvalidGame(f"{where(begin + k)}: reward of player {who!r} is {value}, must be a finite number")


# What outcomes pay:
#
#     reward[r] = sum of prob[k] paid[k]  /  sum of prob[k],  over the outcomes k of row r
#
# The mean is a function of the outcomes alone, whoever builds the game and whichever file it comes
# from: outcomes with the same next state and payment count as one, sums are as good as exact and
# then rounded once, and the mean lies between the amounts, so that equal ones are not rounded.


def settled_payments(layer: Layer, paid: Floats) -> Layer:
    """Return a layer in which each (next state, cost) is one outcome, with its payments.

    Outcomes are in order of row, next state, cost and what they pay, (K, N). Where every outcome
    pays the reward of its row, there are no payments: the game is the one without them.
    """
    row = owners(layer.out_ptr)
    mean = _means(layer, row, paid)
    if np.array_equal(paid, mean[row]):
        return replace(layer, reward=mean)
    new = _new(row, layer.next_state, *layer.cost.T)
    first = np.append(np.flatnonzero(new), len(new))
    payments = Payments(first.astype(pointer_type(len(new))), layer.prob, paid)
    if new.all():
        return replace(layer, reward=mean, payments=payments)
    prob = _added(np.cumsum(new) - 1, layer.prob)
    out_ptr = np.searchsorted(first, layer.out_ptr).astype(pointer_type(len(prob)))
    merged = replace(layer, reward=mean, out_ptr=out_ptr, prob=prob, payments=payments)
    return replace(merged, next_state=layer.next_state[new], cost=layer.cost[new])


def _new(*columns: NDArray[Any]) -> Bools:
    """Return where some column differs from its entry before."""
    new = np.ones(len(columns[0]), dtype=bool)
    new[1:] = False
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def _means(layer: Layer, row: Ints, paid: Floats) -> Floats:
    """Return the mean of what the outcomes of each row pay, (R, N)."""
    prob, following = layer.prob, layer.next_state.astype(np.int64)
    if not _new(row, following).all():  # several costs or payments: those that pay the same are one
        number = number_rows([row, following, *(distinct(column)[1] for column in paid.T)])
        prob, one = _added(number, prob), np.unique(number, return_index=True)[1]
        row, paid = row[one], paid[one]
    ptr = pointers(np.bincount(row, minlength=len(layer.action)))
    if not len(row):
        return np.zeros((len(layer.action), paid.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        total, error = _sums(np.column_stack([prob[:, None] * paid, prob]), ptr)
        excess = (total[:, -1:] - 1) + error[:, -1:]  # of the probabilities, whose decimals were rounded: tiny
        mean = total[:, :-1] + (error[:, :-1] - excess * total[:, :-1])
        mean = np.where(np.isnan(mean), total[:, :-1], mean)  # the sum was too large on its way
    least, most = (bound.reduceat(paid, ptr[:-1], axis=0) for bound in (np.minimum, np.maximum))
    return np.asarray(np.clip(mean, least, most) + 0.0)


def _added(number: Ints, prob: Floats) -> Floats:
    """Return the sum of the probabilities of each number, added up in order."""
    return np.bincount(number, weights=prob).astype(np.float64, copy=False)


def _sums(terms: Floats, ptr: Ints) -> tuple[Floats, Floats]:
    """Return the sums of terms (K, C) over each list, (R, C), and what rounding took from them."""
    many = np.diff(ptr)
    order = np.argsort(-many, kind="stable")
    longer = np.searchsorted(-many[order], -np.arange(int(many.max(initial=0))))  # lists with a k-th term
    total = np.zeros((len(many), terms.shape[1]))
    error = np.zeros_like(total)
    for k, lists in enumerate(longer.tolist()):
        here = order[:lists]
        before, term = total[here], terms[ptr[here] + k]
        after = before + term
        back = after - before
        error[here] += (before - (after - back)) + (term - back)
        total[here] = after
    return total, error
