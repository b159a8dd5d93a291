"""The compiled look-ups of a shield: which row a pair is, and which pair a row is.

A *row* is the number of a safe pair (t, state, spent), counted through all times t = 0 .. H. A *place* says where rows are:

    start (H+2,)      boxes of time t are start[t] : start[t+1]
    states (X,)       of each box, ascending within a time
    lo, size (X, D)   least spending of the box, and how many from there on, per constraint, the last fastest
    base (X+H+1,)     first cell of each box counted from the time's first, one more entry per time
    first (H+2,)      first row of each time
    word (H+2,)       first word of each time's bits
    words             one bit per cell, 64 to a word, set where the cell is a row; none where cells are listed
    counts            rows before each block of 8 words
    keys              the cells that are rows, in order within a time; none where cells are bits
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.system.compiled import inlined, kernel

Int = Any  # a number that numba types
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Place = tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints, Words, Ints, Ints]

_ONE = np.uint64(1)


@inlined
def _last_at_most(values: Ints, begin: Int, end: Int, wanted: Int) -> Int:
    """The last place of begin .. end-1 whose value is at most `wanted`, or begin - 1; values ascend."""
    while begin < end:
        middle = (begin + end) >> 1
        if values[middle] <= wanted:
            begin = middle + 1
        else:
            end = middle
    return begin - 1


@inlined
def _ones(word: Int) -> Int:
    """How many bits are set."""
    word = word - ((word >> _ONE) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inlined
def _bit(cell: Int) -> Int:
    return np.uint64(cell & 63)


@inlined
def _row(t: Int, cell: Int, place: Place) -> Int:
    """The row of a cell of time t, -1 where it is none."""
    first, word, words, counts, keys = place[5], place[6], place[7], place[8], place[9]
    if not len(words):
        at = _last_at_most(keys, first[t], first[t + 1], cell)
        return at if at >= first[t] and keys[at] == cell else np.int64(-1)
    at = word[t] + (cell >> 6)
    own = words[at] >> _bit(cell)
    if own & _ONE == np.uint64(0):
        return np.int64(-1)
    total = counts[at >> 3]
    for k in range((at >> 3) << 3, at):
        total += _ones(words[k])
    return total + _ones(words[at] & ((_ONE << _bit(cell)) - _ONE))


@inlined
def _cell_of_row(t: Int, row: Int, place: Place) -> Int:
    """The cell of a row of time t."""
    word, words, counts, keys = place[6], place[7], place[8], place[9]
    if not len(words):
        return keys[row]
    block = _last_at_most(counts, word[t] >> 3, word[t + 1] >> 3, row)
    left = row - counts[block]
    at = block << 3
    here = _ones(words[at])
    while here <= left:
        left -= here
        at += 1
        here = _ones(words[at])
    own = words[at]
    for _ in range(left):
        own &= own - _ONE
    return ((at - word[t]) << 6) + _ones((own & (~own + _ONE)) - _ONE)


@inlined
def _box(t: Int, state: Int, place: Place) -> Int:
    """The box of a state at time t, -1 where it has none."""
    start, states = place[0], place[1]
    at = _last_at_most(states, start[t], start[t + 1], state)
    return at if at >= start[t] and states[at] == state else np.int64(-1)


@inlined
def _cell(t: Int, box: Int, total: Ints, place: Place) -> Int:
    """The cell of a box with the totals spent, -1 outside."""
    lo, size, base = place[2], place[3], place[4]
    cell = np.int64(0)
    for m in range(lo.shape[1]):
        at = total[m] - lo[box, m]
        if at < 0 or at >= size[box, m]:
            return np.int64(-1)
        cell = cell * size[box, m] + at
    return base[box + t] + cell


@inlined
def _totals(t: Int, box: Int, cell: Int, place: Place, total: Ints) -> None:
    """What was spent at a cell of a box."""
    lo, size, base = place[2], place[3], place[4]
    rest = cell - base[box + t]
    for m in range(lo.shape[1] - 1, -1, -1):
        total[m] = lo[box, m] + rest % size[box, m]
        rest //= size[box, m]


@kernel
def find_rows(t: Ints, state: Ints, spent: Ints, dims: Ints, place: Place, row: Ints) -> None:
    """The row of each (t, state, spent (B, M)), -1 where no safe play comes. One t stands for all."""
    total = np.zeros(place[2].shape[1], np.int64)
    last = len(place[0]) - 2
    for q in range(len(state)):
        row[q] = -1
        time = t[q] if len(t) > 1 else t[0]
        if time < 0 or time > last:
            continue
        box = _box(time, state[q], place)
        if box < 0:
            continue
        for k in range(len(dims)):
            total[k] = spent[q, dims[k]]
        cell = _cell(time, box, total, place)
        if cell >= 0:
            row[q] = _row(time, cell, place)


@kernel
def find_pairs(row: Ints, dims: Ints, place: Place, t: Ints, state: Ints, spent: Ints) -> None:
    """Time, state and spent (B, M) of each row; t = -1 where it is none."""
    states, base, first = place[1], place[4], place[5]
    total = np.zeros(place[2].shape[1], np.int64)
    for q in range(len(row)):
        t[q] = -1
        if row[q] < 0 or row[q] >= first[-1]:
            continue
        time = _last_at_most(first, 0, len(first), row[q])
        begin, end = place[0][time], place[0][time + 1]
        cell = _cell_of_row(time, row[q], place)
        box = _last_at_most(base, begin + time, end + time, cell) - time
        _totals(time, box, cell, place, total)
        t[q], state[q] = time, states[box]
        for k in range(len(dims)):
            spent[q, dims[k]] = total[k]
