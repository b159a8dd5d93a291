"""Compiled reading of a policy's tables (see `stored`). What is out of place is no answer."""

from __future__ import annotations

import numpy as np

from acegames.numerics import PROBABILITY_SUM
from acegames.system.compiled import inlined, kernel
from acegames.verifier.arrays import Bytes, Floats, Ints
from acegames.verifier.records import Boxes, Int


@inlined
def _number(
    at: Int, spent: Ints, lo: Ints, size: Ints, base: Ints, least: Ints, most: Ints, dims: Ints, listed: bool,
    keys: Ints, bits: Bytes, counts: Ints, ones: Bytes, by_cell: bool,
) -> Int:  # fmt: skip
    """Return the number of what was spent in one state's box, or -1."""
    for m in range(len(spent)):
        if not least[at, m] <= spent[m] <= most[at, m]:
            return np.int64(-1)
    cell = base[at]
    step = np.int64(1)
    for back in range(len(dims)):
        d = len(dims) - 1 - back
        place = max(spent[dims[d]] - lo[at, d], np.int64(0))
        if place >= size[at, d]:
            return np.int64(-1)
        cell += step * place
        step *= size[at, d]
    if listed:
        rank = np.searchsorted(keys, cell)
        if rank == len(keys) or keys[rank] != cell:
            return np.int64(-1)
        return np.int64(cell) if by_cell else np.int64(rank)
    width = np.int64(8 * bits.shape[1])
    block = cell // width
    if not 0 <= block < min(len(bits), len(counts)):
        return np.int64(-1)
    byte, bit = (cell - block * width) >> 3, cell & 7
    here = np.int64(bits[block, byte])
    if not (here >> bit) & 1:
        return np.int64(-1)
    if by_cell:
        return np.int64(cell)
    rank = counts[block] + np.int64(ones[here & ((1 << bit) - 1)])
    for k in range(byte):
        rank += np.int64(ones[bits[block, k]])
    return np.int64(rank)


@kernel
def find_stored(keys: Ints, low: Ints, size: Ints, boxes: Boxes, spent: Ints, found: Ints) -> None:
    """Write the number of each pair in a policy's table, -1 where it is not in it.

    `spent` is room for one pair.
    """
    states, lo, places, base, least, most, dims, listed, cells, bits, counts, ones, by_cell = boxes
    final, before, ending = len(low) - 1, np.int64(0), np.int64(0)
    at = np.int64(-1)
    for p in range(len(keys)):
        key = keys[p]
        if before <= key < ending:  # in the same line
            spent[final] += key - before
        else:
            rest = key
            for back in range(len(low)):
                m = final - back
                above = rest // size[m]
                spent[m] = rest - above * size[m] + low[m]
                rest = above
            at = np.int64(np.searchsorted(states, rest))
            if at < len(states) and states[at] != rest:
                at = np.int64(len(states))
            ending = key + (size[final] + low[final] - spent[final] if final >= 0 else np.int64(1))
        before = key
        found[p] = -1
        if at < len(states):
            found[p] = _number(
                at, spent, lo, places, base, least, most, dims, listed, cells, bits, counts, ones, by_cell
            )  # fmt: skip


@kernel
def read_entries(keys: Ints, span: Int, row_ptr: Ints, ptr: Ints, row: Ints, prob: Floats, chance: Floats) -> bool:
    """Write the probabilities of rows at each pair, made to sum to one.

    Return whether all are legal, and every pair has positive probabilities that sum to one.
    """
    for p in range(len(keys)):
        state = keys[p] // span
        total = 0.0
        for e in range(ptr[p], ptr[p + 1]):
            if not row_ptr[state] <= row[e] < row_ptr[state + 1] or not prob[e] > 0.0:
                return False
            total += prob[e]
        if not abs(total - 1.0) <= PROBABILITY_SUM:
            return False
        for e in range(ptr[p], ptr[p + 1]):
            chance[e] = prob[e] / total
    return True
