"""Finds stored answers: the pair of a state and what was spent, and what is played there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.kernels.records import Ints, Small
from acegames.system.compiled import inlined, kernel

Words = NDArray[np.uint64]

WORDS = 8
"""Words of 64 cells per stored count."""


class PairTable(NamedTuple):
    """The boxes of one layer, and which of their cells are present."""

    slot: Small  # (S,) the box of each state, -1 for none
    lo: Ints  # (B, D)
    size: Ints  # (B, D)
    base: Ints  # (B+1,)
    least: Ints  # (B, M) least spending of every constraint with which the state is entered
    most: Ints  # (B, M) largest
    dims: Ints  # the constraints that boxes count; if none, a box has one cell
    listed: bool  # the present cells are in `keys`, else in `words`
    keys: Ints  # ascending
    words: Words  # one bit per cell
    counts: Ints  # cells present before each WORDS words
    by_cell: bool  # a pair is the cell itself, else the cell's number among those present


@inlined
def _ones(word):
    """How many bits are set."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inlined
def _rank_of_bit(words, counts, cell, by_cell):
    """The number of a cell among those present (or the cell itself); -1 if it is not present."""
    at, bit = cell >> np.int64(6), np.uint64(cell & np.int64(63))
    word = words[at]
    if not (word >> bit) & np.uint64(1):
        return np.int64(-1)
    if by_cell:
        return cell
    block = at // np.int64(WORDS)
    found = counts[block]
    for k in range(block * np.int64(WORDS), at):
        found += _ones(words[k])
    return found + _ones(word & ((np.uint64(1) << bit) - np.uint64(1)))


@inlined
def _rank_of_key(keys, cell, by_cell):
    """The same among listed cells."""
    low, high = np.int64(0), np.int64(len(keys))
    while low < high:
        middle = (low + high) >> np.int64(1)
        if keys[middle] < cell:
            low = middle + np.int64(1)
        else:
            high = middle
    if low == len(keys) or keys[low] != cell:
        return np.int64(-1)
    return cell if by_cell else low


@kernel
def find_pairs(table, state, total, found):
    """The pair of each (state (Q,), spent whole units (Q, M)); -1 where there is none."""
    slot, lo, size, base, least, most, dims, listed, keys, words, counts, by_cell = table
    for q in range(len(state)):
        found[q] = -1
        at = slot[state[q]]
        if at < 0:
            continue
        known = True
        for m in range(total.shape[1]):
            known &= least[at, m] <= total[q, m] <= most[at, m]
        cell = base[at]
        within = np.int64(0)
        for d in range(len(dims)):
            place = max(total[q, dims[d]] - lo[at, d], np.int64(0))
            known &= place < size[at, d]
            within = within * size[at, d] + place
        if known:
            if listed:
                found[q] = _rank_of_key(keys, cell + within, by_cell)
            else:
                found[q] = _rank_of_bit(words, counts, cell + within, by_cell)


@kernel
def count_entries(code, mixed_pair, mixed_ptr, pair, ptr, record):
    """Pointers (Q+1,) to the entries of each pair, and the record (Q,) of mixed ones, else -1."""
    ptr[0] = 0
    for q in range(len(pair)):
        record[q] = -1
        size = np.int64(1)
        if code[pair[q]] == 0:
            record[q] = np.searchsorted(mixed_pair, pair[q])
            size = mixed_ptr[record[q] + 1] - mixed_ptr[record[q]]
        ptr[q + 1] = ptr[q] + size


@kernel
def fill_entries(code, mixed_ptr, mixed_row, mixed_prob, row_ptr, state, pair, ptr, record, row, prob):
    """The rows and probabilities of each pair's entries."""
    for q in range(len(pair)):
        first, at = row_ptr[state[q]], ptr[q]
        if record[q] < 0:
            row[at] = first + np.int64(code[pair[q]]) - 1
            prob[at] = 1.0
        else:
            begin = mixed_ptr[record[q]]
            for e in range(ptr[q + 1] - at):
                row[at + e] = first + np.int64(mixed_row[begin + e])
                prob[at + e] = mixed_prob[begin + e]
