"""The sets of safe joint actions, each held once.

Sets found so far are the first `count` of a `Sets`, one bit per joint action of the state; `block`
is the number of a state's list of joint actions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.kernels.boxes import any_marked, box_totals
from acegames.kernels.dense import empty_line, line_rows
from acegames.kernels.records import Small
from acegames.kernels.sparse import empty_places, next_places
from acegames.system.compiled import inner, kernel


class Sets(NamedTuple):
    """Sets, with room for more."""

    bits: NDArray[np.uint64]  # (C, words)
    block: Small  # (C,)
    table: Small  # a hash table over both, -1 empty, at least twice as long


@inner
def _slot(bits, block, size):
    h = np.uint64(block) + np.uint64(1)
    for k in range(len(bits)):
        h = (h ^ bits[k]) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    h *= np.uint64(0x9E3779B97F4A7C15)
    return np.int64((h >> np.uint64(20)) & np.uint64(size - 1))


@inner
def _number_of(bits, block, sets, count):
    """Number of a set, which is added where it is new; and how many there are."""
    h = _slot(bits, block, len(sets.table))
    while sets.table[h] >= 0:
        number = np.int64(sets.table[h])
        same = sets.block[number] == block
        for k in range(len(bits)):
            same &= sets.bits[number, k] == bits[k]
        if same:
            return number, count
        h = (h + 1) & (len(sets.table) - 1)
    for k in range(len(bits)):
        sets.bits[count, k] = bits[k]
    sets.block[count] = block
    sets.table[h] = count
    return count, count + 1


@kernel
def index_sets(sets, count):
    """Put the first `count` sets into an empty index."""
    for d in range(count):
        h = _slot(sets.bits[d], sets.block[d], len(sets.table))
        while sets.table[h] >= 0:
            h = (h + 1) & (len(sets.table) - 1)
        sets.table[h] = d


@inner
def _set_bit(bits, k):
    bits[k >> 6] |= np.uint64(1) << np.uint64(k & 63)


@inner
def _line_set(bits, stop, rows, k):
    """Return the feasible rows at place k of a line, as bits; and how far they stay the same."""
    bits[:] = 0
    end = np.int64(2**62)
    for r in range(rows):
        if stop[r] > k:
            _set_bit(bits, r)
            end = min(end, stop[r])
    return end


@inner
def _fill_marked(code, pair, mark, number):
    for k in range(len(mark)):
        if mark[k]:
            code[pair] = number
            pair += 1
    return pair


@kernel
def dense_sets(a, nth, k, pair, here, mark, step, after, widest, block, sets, count, code):
    """Return the number of each marked cell's set of feasible rows, into code, from place `k` of
    line `nth` of box `a` on; the first gets code[pair].

    Along a line a row is feasible up to its threshold, so that sets change at few places. Returns
    the box, line, place and pair to go on from and the number of sets: before the end where there
    is no room for another set.
    """
    last = step.cost.shape[1] - 1
    c = np.zeros(last + 1, np.int64)
    line = empty_line(widest)
    bits = np.zeros(sets.bits.shape[1], np.uint64)
    while a < len(here.states):
        s = here.states[a]
        rows = step.row_ptr[s + 1] - step.row_ptr[s]
        width = here.size[a, last]
        while nth < here.line[a + 1] - here.line[a]:
            start = here.base[a] + nth * width
            if any_marked(mark[start + k : start + width]):
                box_totals(c, last, nth, here, a)
                line_rows(s, c, here.lo[a, last], step, after, line)
                while k < width:
                    end = min(_line_set(bits, line.stop, rows, k), width)
                    if any_marked(mark[start + k : start + end]):
                        if count == len(sets.bits):
                            return a, nth, k, pair, count
                        number, count = _number_of(bits, block[s], sets, count)
                        pair = _fill_marked(code, pair, mark[start + k : start + end], number)
                    k = end
            k = np.int64(0)
            nth += 1
        nth = np.int64(0)
        a += 1
    return a, nth, k, pair, count


@kernel
def sparse_sets(pair, keys, here, step, after, listed, block, sets, count, code):
    """As `dense_sets`, for listed cells. Returns the pair to go on from and the sets."""
    c, found = empty_places(step)
    bits = np.zeros(sets.bits.shape[1], np.uint64)
    a = np.int64(0)
    while pair < len(keys):
        if count == len(sets.bits):
            return pair, count
        while here.base[a + 1] <= keys[pair]:
            a += 1
        s = here.states[a]
        box_totals(c, len(c), keys[pair] - here.base[a], here, a)
        bits[:] = 0
        for r in range(step.row_ptr[s], step.row_ptr[s + 1]):
            if next_places(r, c, step, after, listed, found):
                _set_bit(bits, r - step.row_ptr[s])
        code[pair], count = _number_of(bits, block[s], sets, count)
        pair += 1
    return pair, count
