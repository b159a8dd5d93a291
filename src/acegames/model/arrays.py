"""Array types, and tools for lists of different lengths that lie end to end in one array.

List k takes the places `ptr[k] : ptr[k + 1]`. (The verifier has its own versions, on purpose.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]

_SAMPLE, _FEW = 2**16, 2**10
"""Entries of a column that are looked at together or first, and different ones that are few."""


def frozen(array: Any) -> NDArray[Any]:
    """Return a read-only view, the only kind of array for which kernels are compiled."""
    return read_only(np.ascontiguousarray(array))


def seal(record: Any) -> None:
    """Make the arrays of a frozen dataclass read-only, as its other fields are."""
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, np.ndarray) and value.flags.writeable:
            value.setflags(write=False)


def pointers(lengths: ArrayLike) -> Ints:
    """Return the pointers of lists of these lengths: where each begins, and where the last ends."""
    lengths = np.asarray(lengths)
    ptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ptr[1:])
    return ptr


def pointer_type(end: int) -> type[np.signedinteger[Any]]:
    """Return the integer type of a game's pointers, of which `end` is the largest."""
    return np.int32 if end < 2**31 else np.int64


def code_type(count: int) -> type[np.signedinteger[Any]]:
    """Return the smallest integer type for the codes 0 .. count-1 and one more."""
    return np.int8 if count < 2**7 else np.int16 if count < 2**15 else np.int32


def owners(ptr: NDArray[Any]) -> Ints:
    """Return the number of the list that each place belongs to."""
    return np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))


def spans(start: NDArray[Any], stop: NDArray[Any]) -> tuple[Ints, Ints]:
    """Return the numbers start[k] .. stop[k] - 1 of all k, end to end, and their pointers."""
    ptr = pointers(stop - start)
    return np.arange(ptr[-1]) + np.repeat(start - ptr[:-1], stop - start), ptr


def in_order(columns: Sequence[NDArray[Any]]) -> tuple[Ints, Bools]:
    """Return the lexicographic order of rows, given by columns, and which are new in it.

    A row, in that order, is new if it differs from the row before.
    """
    key = _one_number(columns)
    order = np.lexsort(tuple(columns)[::-1]) if key is None else np.argsort(key, kind="stable")
    new = np.zeros(len(order), dtype=bool)
    new[:1] = True
    for column in columns if key is None else [key]:
        new[1:] |= column[order[1:]] != column[order[:-1]]
    return order, new


def in_pair_order(state: Ints, spent: Ints) -> tuple[Ints, Ints]:
    """Return states (Q,) and what is spent in them (Q, M), in lexicographic order."""
    order = np.lexsort((*spent.T[::-1], state))
    return state[order], spent[order]


def number_rows(columns: Sequence[NDArray[Any]]) -> Ints:
    """Number rows, given by columns, in lexicographic order; equal rows have the same number."""
    order, new = in_order(columns)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return number


def are_in_order(columns: Sequence[NDArray[Any]]) -> bool:
    """Return whether rows are known to be in strict lexicographic order.

    False also where it would take long to say.
    """
    for begin in range(0, len(columns[0]), _SAMPLE):  # the last row of a block is the first of the next
        key = _one_number([column[begin : begin + _SAMPLE + 1] for column in columns])
        if key is None or not (key[1:] > key[:-1]).all():
            return False
    return True


def _one_number(columns: Sequence[NDArray[Any]]) -> Ints | None:
    """Return one number for each row, in the same order; None where 62 bits do not suffice."""
    spans = [(int(column.min(initial=0)), int(column.max(initial=0)) + 1) for column in columns]
    if min(low for low, _ in spans) < 0 or math.prod(high for _, high in spans) >= 2**62:
        return None
    key = columns[0].astype(np.int64)
    for column, (_, size) in zip(columns[1:], spans[1:], strict=True):
        key *= size
        np.add(key, column, out=key, casting="unsafe")  # also numbers without a sign
    return key


def distinct(column: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """Return `np.unique(column, return_inverse=True)`, faster where few numbers differ."""
    known = np.unique(column[:_SAMPLE])
    if len(column) <= _SAMPLE or len(known) > _FEW or (column != column).any():
        return np.unique(column, return_inverse=True)
    codes = np.minimum(np.searchsorted(known, column), len(known) - 1)
    others = column[known[codes] != column]
    if not len(others):
        return known, codes
    known = np.union1d(known, others)
    return known, np.searchsorted(known, column)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written."""
    view = array.view()
    view.setflags(write=False)
    return view


class Growing:
    """An array to which blocks are added; there is never a second copy of it all."""

    def __init__(self, dtype: Any, *width: int, capacity: int) -> None:
        """Reserve memory for so many entries; what is not used takes none."""
        self.array = np.empty((capacity, *width), dtype=dtype)
        self.length = 0

    def add(self, block: NDArray[Any]) -> None:
        """Put a block behind the others."""
        begin, self.length = self.length, self.length + len(block)
        if self.length > len(self.array):
            self._resize(max(self.length, len(self.array) * 17 // 16))
        self.array[begin : self.length] = block

    def widen(self, dtype: Any) -> None:
        """Hold entries of another type from now on; this takes a copy."""
        wide = np.empty(self.array.shape, dtype=dtype)
        wide[: self.length] = self.array[: self.length]
        self.array = wide

    def whole(self) -> NDArray[Any]:
        """Return the array; nothing may be added any more."""
        self._resize(self.length)
        return self.array

    def _resize(self, length: int) -> None:
        self.array.resize((length, *self.array.shape[1:]), refcheck=False)  # no view of it is kept


def look_up(tables: Sequence[NDArray[Any]], codes: NDArray[Any]) -> Ints:
    """Return `tables[m][codes[:, m]]` for each column m of codes (K, M)."""
    values = np.empty(codes.shape, dtype=np.int64)
    for m, table in enumerate(tables):
        values[:, m] = table[codes[:, m]]
    return values
