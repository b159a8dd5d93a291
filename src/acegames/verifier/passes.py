"""The passes over blocks of pairs, as tasks: pure functions of a setting and of blocks.

A block is the keys of some pairs of one time, in order (but for the first time, which is one block
in the order of the game), that lie in one box (`near`). A task takes the blocks that it leads to,
or the pieces that were found for it, and returns what it made, then numbers.

    go_forward     puts the pieces of a block together and finds the pairs that they lead to while
                   budgets are kept; and which rows keep them, and whether some pair has none
    leave_alive    drops the pairs without a safe row
    leave_reached  drops the pairs that safe rows do not lead to

These are the passes of `feasible`. Where no pair is without a row that keeps the budgets, no pair
of any time is dropped, and the first of them is all that is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from acegames.verifier.arrays import Bytes, Ints
from acegames.verifier.feasible import by_safe_rows, successors, with_safe_row
from acegames.verifier.near import Box
from acegames.verifier.packed import Packed
from acegames.verifier.setting import Setting

_SAMPLED = 64
"""Keys that are shown of what a block leads to, for the cuts of the next time."""

_MARKED = 16
"""Keys of a box per key that is put together, at most, where each has a mark."""


class Place(NamedTuple):
    """A block: the time, and its number there."""

    t: int
    number: int


class Forward(NamedTuple):
    """A block to be made of pieces: those of its keys that lie in a box; None for the start."""

    place: Place
    box: Box | None


class Went(NamedTuple):
    """What is known of a block that was gone forward from."""

    place: Place
    count: int
    box: Box | None  # None where there are no pairs
    stuck: int  # pairs without a row that keeps the budgets
    rows: Bytes  # the rows that keep the budgets at some pair, a bit for each
    led: int  # number of pairs that it leads to
    led_box: Box | None
    sample: Ints  # some of these


class Left(NamedTuple):
    """What is left of a block."""

    place: Place
    count: int
    dropped: int
    box: Box | None
    rows: Bytes  # the rows that are safe at some pair, a bit for each


def go_forward(setting: Setting, what: Forward, *pieces: Ints) -> tuple[Ints, Ints, Went]:
    """Make a block; return its keys, and those that it leads to."""
    packed, t = setting.packed, what.place.t
    keys = packed.start if what.box is None else together(pieces, what.box, packed.span)
    nowhere = setting.near(packed.game.horizon - 1, keys)
    ending = packed.time(t)._replace(last=True)
    stuck = int(np.count_nonzero(~with_safe_row(nowhere, ending, keys[:0], keys)))
    rows, _ = by_safe_rows(nowhere, ending, keys[:0], keys)
    led = keys[:0] if t == packed.game.horizon - 1 else successors(setting.near(t, keys), t, keys)
    sample = led[np.linspace(0, len(led) - 1, min(len(led), _SAMPLED)).astype(np.int64)]
    boxes = _box(keys, packed), _box(led, packed)
    went = Went(
        what.place, len(keys), boxes[0], stuck, _bits(rows, len(ending.worst)), len(led), boxes[1], sample
    )  # fmt: skip
    return keys, led, went


def leave_alive(setting: Setting, what: tuple[Place, bool], keys: Ints, *following: Ints) -> tuple[Ints, Left]:
    """Drop the pairs without a safe row, given the blocks of those alive at the next time.

    Or, if it is said to be sure, no pair is dropped there.
    """
    place, sure = what
    keys = np.array(keys)
    near = setting.near(setting.game.horizon - 1 if sure else place.t, keys)
    time = near.whole.time(place.t)._replace(last=True) if sure else near.time(place.t)
    alive = keys[with_safe_row(near, time, _joined(following), keys)]
    nothing = np.zeros(0, dtype=np.uint8)
    return alive, Left(place, len(alive), len(keys) - len(alive), _box(alive, near), nothing)


def leave_reached(
    setting: Setting, what: tuple[Place, int], keys: Ints, *others: Ints
) -> tuple[Ints, Ints, Left]:
    """Drop the pairs that safe rows do not lead to; return the rest, and where theirs lead.

    So many of the other blocks are what blocks before lead to, or -1 if all pairs are led to; the
    rest are the blocks of those alive at the next time.
    """
    place, before = what
    keys = np.array(keys)
    kept = together(others[:before], Box.around(keys, setting.packed.span), setting.packed.span) if len(keys) and before >= 0 else keys
    near = setting.near(place.t, kept)
    time = near.time(place.t)
    rows, led = by_safe_rows(near, time, _joined(others[max(before, 0) :]), kept)
    led = np.sort(led, kind="stable")  # of several runs that are in order
    numbers = Left(place, len(kept), len(keys) - len(kept), _box(kept, near), _bits(rows, len(time.worst)))
    return kept, led, numbers


def together(pieces: Sequence[Ints], box: Box, span: int) -> Ints:
    """Return the keys of all pieces that lie in a box, each once, in order."""
    parts = [box.inside(piece, span) for piece in pieces]
    total, width = sum(map(len, parts)), box.high - box.low
    if len(parts) == 1:
        return parts[0].copy()
    if box.keys > _MARKED * total:
        return np.unique(_joined(parts))
    marks = np.zeros(box.keys, dtype=np.bool_)
    for part in parts:
        state, within = np.divmod(part, span)
        marks[(state - box.first) * width + within - box.low] = True
    state, within = np.divmod(np.flatnonzero(marks), width)
    keys: Ints = (state + box.first) * span + within + box.low
    return keys


def _joined(blocks: Sequence[Ints]) -> Ints:
    """The keys of several blocks, in an array of their own."""
    return np.concatenate([np.zeros(0, dtype=np.int64), *blocks])


def _box(keys: Ints, packed: Packed) -> Box | None:
    return Box.around(keys, packed.span) if len(keys) else None


def _bits(rows: Ints, length: int) -> Bytes:
    marks = np.zeros(length, dtype=np.uint8)
    marks[rows] = 1
    return np.packbits(marks)
