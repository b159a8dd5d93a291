"""A policy's answers from the tables in which it keeps them, where it says how (`Policy.stored`).

Reading them takes a few nanoseconds per pair and none of the interpreter's time. The verifier has
its own code for it: `find` gives each pair a number, as `PairTable` says, and pairs with the same
number and state have the same answer. Anything that is not as it should be is no answer, and the
policy is asked instead. At some pairs `lookup` and `distribution` are compared with what is read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from acegames.model.game import Layer
from acegames.verifier.arrays import Floats, Ints
from acegames.verifier.packed import Packed
from acegames.verifier.records import Boxes, Entries
from acegames.verifier.threads import Threads


class Stored:
    """The tables of one time."""

    def __init__(self, packed: Packed, layer: Layer, boxes: Boxes, reached: Boxes | None, entries: Entries) -> None:
        self._packed, self._layer, self._boxes, self._reached, self._entries = packed, layer, boxes, reached, entries

    @staticmethod
    def of(packed: Packed, t: int, given: Any) -> Stored | None:
        """Return None where these are no tables for the game at time t; `given` by the policy."""
        layer = packed.game.layer(t)
        try:
            boxes, reached, row_ptr, action, *entries = given
            tables = [Boxes(*x) for x in (boxes, reached) if x is not None]
            answers = Entries(*entries)
            same = np.array_equal(row_ptr, layer.row_ptr) and np.array_equal(action, layer.action)
            if same and all(_sound_boxes(x, len(packed.low)) for x in tables) and _sound_entries(answers):
                return Stored(packed, layer, tables[0], tables[1] if reached is not None else None, answers)
        except Exception:  # a judge must not fall over what it judges
            pass
        return None

    def find(self, keys: Ints, threads: Threads) -> Ints:
        """Return the number of each pair, -1 where there is none."""
        from acegames.verifier.lookup import find_stored

        packed, found = self._packed, np.empty(len(keys), dtype=np.int64)
        also, reached = self._reached is not None, self._reached or self._boxes

        def work(block: slice) -> None:
            spent = np.zeros(len(packed.low), dtype=np.int64)
            given = np.int64(packed.span), packed.low, packed.size, self._boxes, also, reached, spent
            find_stored(keys[block], *given, found[block])

        threads.over(len(keys), work)
        return found

    def read(self, keys: Ints, pairs: Ints) -> tuple[Ints, Ints, Floats] | None:
        """Return pointers (P+1,), rows (Z,), probabilities (Z,); None where any answer is wrong."""
        from acegames.verifier.lookup import count_entries, read_entries

        ptr, record = np.empty(len(keys) + 1, dtype=np.int64), np.empty(len(keys), dtype=np.int64)
        if not count_entries(self._entries, pairs, ptr, record):
            return None
        row, chance = np.empty(int(ptr[-1]), dtype=np.int64), np.empty(int(ptr[-1]))
        given = np.int64(self._packed.span), self._layer.row_ptr, self._entries
        return (ptr, row, chance) if read_entries(keys, *given, pairs, ptr, record, row, chance) else None


def _sound_boxes(boxes: Boxes, constraints: int) -> bool:
    """Whether everything has its type and shape."""
    number, counted = len(boxes.states), len(boxes.dims)
    shapes = (
        (number,), (number, counted), (number, counted), (number + 1,), (number, constraints), (number, constraints),
        (counted,),
    )  # fmt: skip
    ints = boxes[:7] + (boxes.keys, boxes.counts)
    return (
        all(_is(x, np.int64, x.ndim) for x in ints)
        and tuple(x.shape for x in boxes[:7]) == shapes
        and all(_is(x, np.uint8, d) for x, d in ((boxes.bits, 2), (boxes.ones, 1)))
        and boxes.keys.ndim == boxes.counts.ndim == 1
        and boxes.bits.shape[1] > 0
        and len(boxes.ones) == 256
        and bool(((boxes.dims >= 0) & (boxes.dims < constraints)).all())
        and isinstance(boxes.listed, bool)
        and isinstance(boxes.by_cell, bool)
    )


def _sound_entries(entries: Entries) -> bool:
    unsigned = (entries.code, entries.mixed_row)
    return (
        all(x.dtype.kind == "u" and x.ndim == 1 and x.flags.c_contiguous for x in unsigned)
        and _is(entries.mixed_pair, np.int64, 1)
        and _is(entries.mixed_ptr, np.int64, 1)
        and _is(entries.mixed_prob, np.float64, 1)
        and len(entries.mixed_ptr) > 0
    )


def _is(array: Any, dtype: type, ndim: int) -> bool:
    return bool(array.dtype == dtype and array.ndim == ndim and array.flags.c_contiguous)
