"""Compiled steps between keys and boxes of keys (see `near`). Keys that follow each other mostly
have the same state, which is then not worked out again.
"""

from __future__ import annotations

import numpy as np

from acegames.system.compiled import kernel
from acegames.verifier.arrays import Bytes, Ints
from acegames.verifier.records import Int


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
def rebase(keys: Ints, span: Int, index: Ints, low: Int, width: Int, found: Ints, which: Ints) -> int:
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
            found[count] = base + key - begin
            which[count] = p
            count += np.int64(1)
    return int(count)


@kernel
def unbase(found: Ints, span: Int, states: Ints, low: Int, width: Int, keys: Ints) -> None:
    """Write the keys that are numbered so in a box."""
    begin = ending = base = np.int64(0)
    for p in range(len(found)):
        if not begin <= found[p] < ending:
            place = found[p] // width
            begin, ending = place * width, place * width + width
            base = states[place] * span + low - begin
        keys[p] = base + found[p]
