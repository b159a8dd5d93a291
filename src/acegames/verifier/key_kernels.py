"""Compiled reading of tables of policies (`policy_tables`); what is out of place is no answer."""

from __future__ import annotations

import numpy as np

from acegames.numerics import PROBABILITY_SUM
from acegames.system.compiled import inlined, kernel
from acegames.verifier.basics import Bytes, Floats, Int, Ints, PolicyBoxes


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
def find_stored(keys: Ints, low: Ints, size: Ints, boxes: PolicyBoxes, spent: Ints, numbers: Ints) -> None:
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
        numbers[p] = -1
        if at < len(states):
            numbers[p] = _number(
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


# -- keys and boxes of keys -----------------------------------------------------------------------
# Compiled steps between keys and boxes of keys (see `block_context`). Keys that follow each other
# mostly have the same state, which is then not worked out again.


@kernel
def extent(keys: Ints, span: Int, box: Ints) -> None:
    """Write the box of keys, of which there are some: states, then keys within a state."""
    begin = ending = np.int64(0)
    first, end, low, high = np.int64(2**62), np.int64(0), np.int64(2**62), np.int64(0)
    for p in range(len(keys)):
        key = keys[p]
        if not begin <= key < ending:
            state = key // span
            begin, ending = state * span, state * span + span
            first, end = min(first, state), max(end, state + np.int64(1))
        low, high = min(low, key - begin), max(high, key - begin + np.int64(1))
    box[0], box[1], box[2], box[3] = first, end, low, high


@kernel
def choose(keys: Ints, span: Int, box: Ints, chosen: Ints) -> int:
    """Write the keys that lie in a box; return how many there are."""
    begin = ending = count = np.int64(0)
    fine, low, high = False, box[2], box[3]
    for p in range(len(keys)):
        key = keys[p]
        if not begin <= key < ending:
            state = key // span
            begin, ending = state * span, state * span + span
            fine = box[0] <= state < box[1]
        if fine and low <= key - begin < high:
            chosen[count] = key
            count += np.int64(1)
    return int(count)


@kernel
def mark(keys: Ints, span: Int, box: Ints, marks: Bytes) -> None:
    """Mark the keys that lie in a box; it has a byte for each of its own."""
    begin = ending = base = np.int64(0)
    fine, low, high = False, box[2], box[3]
    for p in range(len(keys)):
        key = keys[p]
        if not begin <= key < ending:
            state = key // span
            begin, ending = state * span, state * span + span
            fine = box[0] <= state < box[1]
            base = (state - box[0]) * (high - low) - low
        if fine and low <= key - begin < high:
            marks[base + key - begin] = 1


@kernel
def rebase(keys: Ints, span: Int, index: Ints, low: Int, width: Int, numbered: Ints, which: Ints) -> int:
    """Write keys as they are numbered in a box, and which they are; return how many lie in it.

    The box has the states that have an index, and so many keys within each, from `low` on.
    """
    begin = ending = base = count = np.int64(0)
    fine = False
    for p in range(len(keys)):
        key = keys[p]
        if not begin <= key < ending:
            state = key // span
            begin, ending = state * span, state * span + span
            fine, base = index[state] >= 0, index[state] * width - low
        if fine and low <= key - begin < low + width:
            numbered[count] = base + key - begin
            which[count] = p
            count += np.int64(1)
    return int(count)


@kernel
def unbase(numbered: Ints, span: Int, states: Ints, low: Int, width: Int, keys: Ints) -> None:
    """Write the keys that are numbered so in a box."""
    begin = ending = base = np.int64(0)
    for p in range(len(numbered)):
        if not begin <= numbered[p] < ending:
            place = numbered[p] // width
            begin, ending = place * width, place * width + width
            base = states[place] * span + low - begin
        keys[p] = base + numbered[p]
