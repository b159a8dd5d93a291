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

from typing import NamedTuple

import numpy as np

from acegames.verifier.arrays import Bytes, Ints
from acegames.verifier.feasible import by_safe_rows, successors, with_safe_row
from acegames.verifier.near import Box, joined
from acegames.verifier.setting import Setting

_SAMPLED = 64
"""Keys that are shown of what a block leads to, for the cuts of the next time."""


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
    pairs: int
    box: Box | None  # None where there are no pairs
    stuck: int  # pairs without a row that keeps the budgets
    rows: Bytes  # the rows that keep the budgets at some pair, a bit for each
    led: int  # number of pairs that it leads to
    led_box: Box | None
    sample: Ints  # some of these


class Leave(NamedTuple):
    """A block of which pairs are to be dropped."""

    place: Place
    box: Box
    sure: bool
    before: int = 0  # blocks of what was led to, given first


class Left(NamedTuple):
    """What is left of a block."""

    place: Place
    pairs: int
    dropped: int
    box: Box | None
    rows: Bytes  # the rows that are safe at some pair, a bit for each


def go_forward(setting: Setting, what: Forward, *pieces: Ints) -> tuple[Ints, Ints, Went]:
    """Make a block; return its keys, and those that it leads to."""
    packed, t = setting.packed, what.place.t
    keys = packed.start if what.box is None else what.box.together(pieces, packed.span)
    box, time = setting.box(keys), packed.time(t)._replace(last=True)
    ending = setting.near(packed.game.horizon - 1, box)  # nothing that follows is looked at
    stuck = np.count_nonzero(~with_safe_row(ending, time, keys[:0], keys))
    rows, _ = by_safe_rows(ending, time, keys[:0], keys)
    led = keys[:0] if t == packed.game.horizon - 1 else successors(setting.near(t, box), t, keys)
    sample = led[np.linspace(0, len(led) - 1, min(len(led), _SAMPLED)).astype(np.int64)]
    bits = _bits(rows, len(time.worst))
    return keys, led, Went(what.place, len(keys), box, int(stuck), bits, len(led), setting.box(led), sample)


def leave_alive(setting: Setting, what: Leave, keys: Ints, *following: Ints) -> tuple[Ints, Left]:
    """Drop the pairs without a safe row, given the blocks of those alive at the next time.

    Or, if it is said to be sure, no pair is dropped there.
    """
    keys, t = np.array(keys), what.place.t
    near = setting.near(setting.game.horizon - 1 if what.sure else t, what.box)
    time = setting.packed.time(t)._replace(last=True) if what.sure else near.time(t)
    alive = keys[with_safe_row(near, time, joined(following), keys)]
    left = Left(what.place, len(alive), len(keys) - len(alive), setting.box(alive), np.zeros(0, dtype=np.uint8))
    return alive, left


def leave_reached(setting: Setting, what: Leave, keys: Ints, *others: Ints) -> tuple[Ints, Ints, Left]:
    """Drop the pairs that safe rows do not lead to; return the rest, and where theirs lead.

    The first of the other blocks are what blocks before lead to; if it is sure, all pairs are led
    to. The rest are the blocks of those alive at the next time.
    """
    span, t = setting.packed.span, what.place.t
    kept = np.array(keys) if what.sure else what.box.together(others[: what.before], span)
    near = setting.near(t, setting.box(kept))
    time = near.time(t)
    rows, led = by_safe_rows(near, time, joined(others[what.before :]), kept)
    led = np.sort(led, kind="stable")  # of several runs that are in order
    left = Left(what.place, len(kept), len(keys) - len(kept), setting.box(kept), _bits(rows, len(time.worst)))
    return kept, led, left


def _bits(rows: Ints, length: int) -> Bytes:
    marks = np.zeros(length, dtype=np.uint8)
    marks[rows] = 1
    return np.packbits(marks)
