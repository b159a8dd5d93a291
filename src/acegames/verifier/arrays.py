"""Types of arrays, and blocks of different lengths that lie one after another."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Small = NDArray[np.int32]
Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

BELOW = 2**62
"""Keys, codes and sums stay below this: one more fits into int64, too."""


def room(*shape: int, dtype: type = np.int64) -> NDArray[Any]:
    """Return zeros apart from other arrays, so that threads do not share lines of the cache."""
    length = math.prod(shape)
    return np.zeros(max(length, 4096), dtype=dtype)[:length].reshape(shape)


def spans(start: Ints, stop: Ints) -> Ints:
    """Return the numbers start[0] .. stop[0]-1, then start[1] .. stop[1]-1, and so on."""
    count = stop - start
    return np.arange(int(count.sum())) + np.repeat(start - offsets(count)[:-1], count)


def offsets(count: Ints) -> Ints:
    """Return where each of consecutive blocks begins, and where the last one ends."""
    ptr = np.zeros(len(count) + 1, dtype=np.int64)
    np.cumsum(count, out=ptr[1:])
    return ptr


def owners(ptr: Ints) -> Ints:
    """Return the block that each line lies in, given where blocks begin and the last one ends."""
    return np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))


def begins(*columns: NDArray[np.integer]) -> Ints:
    """Return where each run of equal lines begins."""
    new = np.ones(len(columns[0]), dtype=bool)
    new[1:] = np.logical_or.reduce([c[1:] != c[:-1] for c in columns])
    return np.flatnonzero(new)


def number_pairs(state: Ints, spent: Ints) -> tuple[Ints, Ints]:
    """Number equal (state, spent) alike, in order.

    Return each line's number, and the first line of each number.
    """
    low = [int(column.min(initial=0)) for column in spent.T]
    size = [int(column.max(initial=0)) - least + 1 for column, least in zip(spent.T, low, strict=True)]
    key = state
    if spent.dtype != object and (int(state.max(initial=0)) + 1) * math.prod(size) < BELOW:
        for column, least, many in zip(spent.T, low, size, strict=True):
            key = key * many + (column - least)
    else:
        for column in spent.T:
            values, code = np.unique(column, return_inverse=True)
            key = np.unique(key * len(values) + code, return_inverse=True)[1]
    _, chosen, number = np.unique(key, return_index=True, return_inverse=True)
    return number, chosen
