"""Array types, and tools for lists of different lengths that lie end to end in one array.

List k takes the places `ptr[k] : ptr[k + 1]`. (The verifier has its own versions, on purpose.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def pointers(lengths: ArrayLike) -> Ints:
    """Where each list begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def owners(ptr: NDArray[Any]) -> Ints:
    """The number of the list that each place belongs to."""
    return np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))


def spans(start: NDArray[Any], stop: NDArray[Any]) -> tuple[Ints, Ints]:
    """The numbers start[k] .. stop[k] - 1 of every k, end to end, and the pointers to them."""
    ptr = pointers(stop - start)
    return np.arange(ptr[-1]) + np.repeat(start - ptr[:-1], stop - start), ptr


def in_order(keys: NDArray[Any]) -> tuple[Ints, Bools]:
    """The lexicographic order of rows (K, W), and which of the rows so ordered occur first."""
    order = np.lexsort(keys.T[::-1])
    new = np.ones(len(keys), dtype=bool)
    new[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    return order, new


def look_up(tables: Sequence[NDArray[Any]], codes: NDArray[Any]) -> Ints:
    """`tables[m][codes[:, m]]` for each column m of codes (K, M)."""
    found = np.empty(codes.shape, dtype=np.int64)
    for m, table in enumerate(tables):
        found[:, m] = table[codes[:, m]]
    return found
