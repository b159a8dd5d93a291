"""The numbers of safe pairs, and the pairs of numbers, in batches: the look-ups of a shield.

Safe pairs (t, state, spent) are numbered through all times t = 0 .. H.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from acegames.kernels.bits import ones
from acegames.kernels.records import Ints, Place
from acegames.system.compiled import inlined, kernel

Int = Any  # a number that numba types

_ONE = np.uint64(1)


@inlined
def _last_at_most(values: Ints, begin: Int, end: Int, wanted: Int) -> Int:
    """Return the last place of begin .. end-1 with a value up to `wanted`, or begin - 1."""
    while begin < end:
        middle = (begin + end) >> 1
        if values[middle] <= wanted:
            begin = middle + 1
        else:
            end = middle
    return begin - 1


@inlined
def _place_of(values: Ints, begin: Int, end: Int, wanted: Int) -> Int:
    """Return the place of a value among begin .. end-1, -1 where it is not there."""
    at = _last_at_most(values, begin, end, wanted)
    return at if at >= begin and values[at] == wanted else np.int64(-1)


@inlined
def _number(t: Int, cell: Int, place: Place) -> Int:
    """Return the number of a cell of time t, -1 where it has none."""
    first, word, words, counts, keys = place.first, place.word, place.words, place.counts, place.keys
    if not len(words):
        return _place_of(keys, first[t], first[t + 1], cell)
    at = word[t] + (cell >> 6)
    bit = _ONE << np.uint64(cell & 63)
    if words[at] & bit == np.uint64(0):
        return np.int64(-1)
    total = counts[at >> 3]
    for k in range((at >> 3) << 3, at):
        total += ones(words[k])
    return total + ones(words[at] & (bit - _ONE))


@inlined
def _cell_of(t: Int, number: Int, place: Place) -> Int:
    """Return the cell with a number of time t."""
    word, words, counts, keys = place.word, place.words, place.counts, place.keys
    if not len(words):
        return keys[number]
    block = _last_at_most(counts, word[t] >> 3, word[t + 1] >> 3, number)
    left = number - counts[block]
    at = block << 3
    here = ones(words[at])
    while here <= left:
        left -= here
        at += 1
        here = ones(words[at])
    own = words[at]
    for _ in range(left):
        own &= own - _ONE
    return ((at - word[t]) << 6) + ones((own & (~own + _ONE)) - _ONE)


@inlined
def _cell(t: Int, box: Int, total: Ints, place: Place) -> Int:
    """Return the cell of a box with the totals spent, -1 outside."""
    lo, size, base = place.lo, place.size, place.base
    cell = np.int64(0)
    for m in range(lo.shape[1]):
        at = total[m] - lo[box, m]
        if at < 0 or at >= size[box, m]:
            return np.int64(-1)
        cell = cell * size[box, m] + at
    return base[box + t] + cell


@kernel
def find_numbers(t: Ints, state: Ints, spent: Ints, dims: Ints, place: Place, number: Ints) -> None:
    """The number of each pair (t, state, spent (B, M)), -1 where no safe play comes."""
    total = np.zeros(place.lo.shape[1], np.int64)
    last = len(place.start) - 2
    for q in range(len(state)):
        number[q] = -1
        time = t[q] if len(t) > 1 else t[0]
        if time < 0 or time > last:
            continue
        box = _place_of(place.states, place.start[time], place.start[time + 1], state[q])
        if box < 0:
            continue
        for k in range(len(dims)):
            total[k] = spent[q, dims[k]]
        cell = _cell(time, box, total, place)
        if cell >= 0:
            number[q] = _number(time, cell, place)


@kernel
def find_pairs(number: Ints, dims: Ints, place: Place, t: Ints, state: Ints, spent: Ints) -> None:
    """Time, state and spent (B, M) of each number; t = -1 where no pair has it."""
    states, base, first = place.states, place.base, place.first
    total = np.zeros(place.lo.shape[1], np.int64)
    for q in range(len(number)):
        t[q] = -1
        if number[q] < 0 or number[q] >= first[-1]:
            continue
        time = _last_at_most(first, 0, len(first), number[q])
        begin, end = place.start[time], place.start[time + 1]
        cell = _cell_of(time, number[q], place)
        box = _last_at_most(base, begin + time, end + time, cell) - time
        rest = cell - base[box + time]
        for m in range(len(total) - 1, -1, -1):
            total[m] = place.lo[box, m] + rest % place.size[box, m]
            rest //= place.size[box, m]
        t[q], state[q] = time, states[box]
        for k in range(len(dims)):
            spent[q, dims[k]] = total[k]
