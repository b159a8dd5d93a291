"""A policy's answers by number, where it shows how it numbers pairs (`Policy.numbering`).

Pairs are found in its tables by the verifier's own compiled code, and those with the same state and
number have the same answer, which `answers` gives. So what is declared alike is compared by number,
and blocks of many pairs are read with little of the interpreter's time. Anything that is not as it
should be is no answer; then the policy is asked by `lookup`. At some pairs `lookup` and
`distribution` are compared with what is read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from acegames.verifier.arrays import Floats, Ints
from acegames.verifier.packed import Packed
from acegames.verifier.records import Boxes
from acegames.verifier.threads import Threads


class Stored:
    """The tables of one time."""

    def __init__(self, packed: Packed, policy: Any, t: int, tables: list[Boxes]) -> None:
        self._packed, self._policy, self._t, self._tables = packed, policy, t, tables

    @staticmethod
    def of(packed: Packed, policy: Any, t: int, given: Any) -> Stored | None:
        """Return None where `given`, the policy's `numbering`, does not fit the game at time t."""
        layer = packed.game.layer(t)
        try:
            first, second, row_ptr, action = given
            tables = [Boxes(*table) for table in (first, second) if table is not None]
            same = np.array_equal(row_ptr, layer.row_ptr) and np.array_equal(action, layer.action)
            fine = same and all(_sound(table, len(packed.low)) for table in tables)
        except Exception:  # a judge must not fall over what it judges
            return None
        return Stored(packed, policy, t, tables) if fine else None

    def find(self, keys: Ints, threads: Threads) -> Ints:
        """Return the number of each pair, -1 where there is none."""
        from acegames.verifier.lookup import find_stored

        packed, several = self._packed, [np.empty(len(keys), dtype=np.int64) for _ in self._tables]

        def work(block: slice) -> None:
            spent = np.zeros(len(packed.low), dtype=np.int64)
            for table, found in zip(self._tables, several, strict=True):
                find_stored(keys[block], packed.low, packed.size, table, spent, found[block])
            first, *others = (found[block] for found in several)
            for other in others:
                first[other < 0] = -1

        threads.shared(len(keys), work)
        return several[0]

    @property
    def tables(self) -> tuple[Boxes, Boxes]:
        """The table that numbers pairs, and one that must have them too: the same, or another."""
        return self._tables[0], self._tables[-1]

    def every(self) -> tuple[Ints, Ints] | None:
        """Return states and numbers of all pairs of the table, in the order of cells; None where
        boxes or counts are out of order, so that cells present cannot be numbered through.
        """
        table, states = self._tables[0], len(self._packed.game.states)
        width = 8 * table.bits.shape[1]
        present = np.unpackbits(table.bits, bitorder="little").view(bool)
        cells = table.keys if table.listed else np.flatnonzero(present)
        before = np.searchsorted(cells, np.arange(len(table.bits)) * width)
        fine = (
            bool((np.diff(table.base) >= 0).all())
            and (not table.listed or bool((np.diff(cells) > 0).all()))
            and (len(cells) == 0 or (table.base[0] <= cells[0] and cells[-1] < table.base[-1]))
            and (table.listed or np.array_equal(table.counts[: len(before)], before))
            and all(
                bool((np.diff(x.states) > 0).all() and ((x.states >= 0) & (x.states < states)).all())
                for x in self._tables
            )
        )
        if not fine:
            return None
        count = np.diff(np.searchsorted(cells, table.base))
        return np.repeat(table.states, count), cells if table.by_cell else np.arange(len(cells))

    def below(self, floor: Ints) -> bool:
        """Return whether all that was spent up to the floor of a state, (S, M), has the same
        number.

        Floors are counted as in keys. What was spent below the box of a state counts as its edge.
        """
        first = self._tables[0]
        edge = first.lo[:, : len(first.dims)] - self._packed.low[first.dims]
        here = floor[first.states][:, first.dims]
        return bool(((here <= edge) | (here <= 0)).all())

    def read(self, keys: Ints, pairs: Ints) -> tuple[Ints, Ints, Floats] | None:
        """Return pointers (P+1,), rows (Z,), probabilities (Z,); None where any answer is wrong."""
        from acegames.verifier.lookup import read_entries

        if pairs.min(initial=0) < 0:
            return None
        span = np.int64(self._packed.span)
        try:
            ptr, row, prob = self._policy.answers(self._t, keys // span, pairs)
            fine = (
                all(_is(x, kind, 1) for x, kind in ((ptr, np.int64), (row, np.int64), (prob, np.float64)))
                and (len(ptr), len(row)) == (len(keys) + 1, len(prob))
                and (int(ptr[0]), int(ptr[-1])) == (0, len(prob))
                and bool((ptr[1:] > ptr[:-1]).all())
            )
        except Exception:
            return None
        chance = np.empty_like(prob)
        fine = fine and read_entries(keys, span, self._packed.row_ptr(self._t), ptr, row, prob, chance)
        return (ptr, row, chance) if fine else None


def _sound(table: Boxes, constraints: int) -> bool:
    """Return whether everything in a table has its type and shape."""
    boxes, counted = len(table.states), len(table.dims)
    box = (boxes, max(counted, 1))  # where no constraint is counted, a box has one cell
    shapes = [(boxes,), box, box, (boxes + 1,), *[(boxes, constraints)] * 2, (counted,)]
    return (
        all(_is(array, np.int64, len(shape)) for array, shape in zip(table, shapes, strict=False))
        and [array.shape for array in table[:7]] == shapes
        and _is(table.keys, np.int64, 1)
        and _is(table.counts, np.int64, 1)
        and _is(table.bits, np.uint8, 2)
        and table.bits.shape[1] > 0
        and _is(table.ones, np.uint8, 1)
        and len(table.ones) == 256
        and bool(((table.dims >= 0) & (table.dims < constraints)).all())
        and isinstance(table.listed, bool)
        and isinstance(table.by_cell, bool)
    )


def _is(array: Any, dtype: type, ndim: int) -> bool:
    return bool(array.dtype == dtype and array.ndim == ndim and array.flags.c_contiguous)
