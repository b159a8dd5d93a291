"""What outcomes pay: from an amount for each outcome to the payments and the mean of a layer.

    reward[r] = sum of prob[k] paid[k]  /  sum of prob[k],  over the outcomes k of row r

The mean is a function of the outcomes alone, whoever builds the game and whichever file it comes
from: outcomes with the same next state and payment count as one, sums are as good as exact and then
rounded once, and the mean lies between the amounts, so that equal ones are not rounded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.model.arrays import Bools, Floats, Ints, alike, distinct, owners, pointer_type, pointers
from acegames.model.layers import Layer, Payments


def settled_payments(layer: Layer, paid: Floats) -> Layer:
    """Return a layer in which each (next state, cost) is one outcome, from one with one per
    payment.

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
    kept = replace(layer, reward=mean, out_ptr=out_ptr, prob=prob, payments=payments)
    return replace(kept, next_state=layer.next_state[new], cost=layer.cost[new])


def _new(*columns: NDArray[Any]) -> Bools:
    """Return where some column differs from the entry before."""
    found = np.ones(len(columns[0]), dtype=bool)
    found[1:] = False
    for column in columns:
        found[1:] |= column[1:] != column[:-1]
    return found


def _means(layer: Layer, row: Ints, paid: Floats) -> Floats:
    """Return the mean of what the outcomes of each row pay, (R, N)."""
    prob, following = layer.prob, layer.next_state.astype(np.int64)
    if not _new(row, following).all():  # several costs or payments: those that pay the same are one
        number = alike([row, following, *(distinct(column)[1] for column in paid.T)])
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
    """Return the sum of the probabilities of each number, added up in their order."""
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
