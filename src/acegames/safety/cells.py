"""Cells number the pairs (state, spent) of one time, box by box.

Every state that can occur has a *box* of cells, one per vector of spent units between `lo` and
`lo + size - 1`, the last constraint fastest. Spending below `lo` counts as `lo`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from acegames.errors import TooLarge
from acegames.kernels.records import Boxes, PairTable
from acegames.model.arrays import Ints, frozen, owners, pointers

RANK_BLOCK = 512  # cells per stored count; a multiple of 8

_BITS_SET = np.array([bin(b).count("1") for b in range(256)], dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class Cells:
    """A set of cells of a layer: one bit per cell with a count per RANK_BLOCK, or a sorted list."""

    bits: NDArray[np.uint8] | None  # (blocks, RANK_BLOCK / 8)
    counts: Ints | None  # cells present before each block
    keys: Ints | None
    number: int

    @staticmethod
    def from_bits(bits: NDArray[np.uint8]) -> Cells:
        """Take one bit per cell, (blocks, RANK_BLOCK / 8); without kernels, as files are read."""
        counts = pointers(_BITS_SET[bits].sum(axis=1, dtype=np.int64))
        return Cells(bits, counts, None, int(counts[-1]))

    @staticmethod
    def split(bits: NDArray[np.uint8], blocks: Sequence[int]) -> list[Cells]:
        """Split the bits of several layers end to end, the k-th in blocks[k] : blocks[k+1]."""
        from acegames.kernels.boxes import count_bits

        present = np.empty(len(bits), dtype=np.int64)
        count_bits(bits, _BITS_SET, present)
        counts = pointers(present)
        before = counts[list(blocks)].tolist()
        return [
            Cells(bits[a:b], counts[a : b + 1] - x, None, y - x)
            for (a, b), (x, y) in zip(itertools.pairwise(blocks), itertools.pairwise(before), strict=True)
        ]

    @staticmethod
    def from_keys(keys: Ints) -> Cells:
        """Take the cells in ascending order."""
        return Cells(None, None, keys, len(keys))

    def marks(self, total: int) -> NDArray[np.uint8]:
        """Return one byte per cell."""
        if self.bits is None:
            marks = np.zeros(total, dtype=np.uint8)
            marks[self.keys] = 1
            return marks
        return np.unpackbits(self.bits.ravel(), count=total, bitorder="little")

    def listed(self, total: int) -> Ints:
        """Return the cells in order."""
        return np.flatnonzero(self.marks(total)) if self.keys is None else self.keys

    def smaller(self, total: int) -> Cells:
        """Return the smaller one of bits, 1 per cell, and list, 64 bits per member."""
        if total > 64 * self.number:
            return self if self.keys is not None else Cells.from_keys(self.listed(total))
        return self if self.keys is None else Cells.from_bits(bits_of(self.keys, total))

    def before(self, cell: int) -> int:
        """Return how many of the set come before a cell."""
        if self.keys is not None:
            return int(np.searchsorted(self.keys, cell))
        assert self.bits is not None and self.counts is not None
        block, within = divmod(cell, RANK_BLOCK)
        if block >= len(self.bits):
            return self.number
        bits = np.unpackbits(self.bits[block], count=within, bitorder="little")
        return int(self.counts[block] + bits.sum(dtype=np.int64))

    def rank(self, cells: Ints) -> Ints:
        """Return the number of each cell among those present, -1 where absent."""
        if self.keys is not None:
            at = np.minimum(np.searchsorted(self.keys, cells), max(self.number - 1, 0))
            return np.where(self.keys[at] == cells, at, -1) if self.number else np.full(len(cells), -1)
        from acegames.kernels.boxes import rank_bits

        rank = np.empty(len(cells), dtype=np.int64)
        rank_bits(self.words, self.counts, cells, rank)
        return rank

    @property
    def words(self) -> NDArray[np.uint64]:
        """The bits in words of 64 cells, the first one lowest; none where cells are listed."""
        return words_of(np.empty(0, dtype=np.uint8) if self.bits is None else self.bits)


def words_of(bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return bits, one per cell, in words of 64 cells, the first one lowest."""
    return np.require(bits.reshape(-1).view("<u8"), np.uint64, "A")


def bits_of(keys: Ints, total: int) -> NDArray[np.uint8]:
    """Return one bit per cell from a sorted list; working memory grows with the list alone."""
    bits = np.zeros((-(-total // RANK_BLOCK), RANK_BLOCK // 8), dtype=np.uint8)
    place, bit = keys >> 3, np.left_shift(1, keys & 7).astype(np.uint8)
    first = np.flatnonzero(np.diff(place, prepend=-1))
    bits.reshape(-1)[place[first]] = np.bitwise_or.reduceat(bit, first)
    return bits


@dataclass(frozen=True, eq=False)
class LayerSpace:
    """The boxes of one time, which count D >= 1 constraints, and the cells that play reaches."""

    states: Ints  # (B,) states that have a box, ascending
    lo: Ints  # (B, D) least total of the box
    size: Ints  # (B, D)
    base: Ints  # (B+1,) first cell of each box
    line: Ints  # (B+1,) first line of each box; a line runs along the last constraint
    least: Ints  # (B, M) least total of every constraint with which the state can be entered
    most: Ints  # (B, M) largest
    cells: Cells | None = None  # the reached ones

    @property
    def total(self) -> int:
        """Number of cells of all boxes."""
        return int(self.base[-1])

    def has(self, state: int) -> bool:
        """Return whether a reached cell has this state."""
        box = int(np.searchsorted(self.states, state))
        if self.cells is None or box == len(self.states) or self.states[box] != state:
            return False
        return self.cells.before(int(self.base[box + 1])) > self.cells.before(int(self.base[box]))

    def locate(self, state: Ints, counted: Ints, spent: Ints | None) -> Ints:
        """Return the cell of each (state, spent); -1 outside the boxes.

        It is -1 too if no play enters the state so. Boxes count the amounts `counted` (Q, D).
        Unless it is None, `spent` (Q, M), which has all constraints, is compared with `least` and
        `most`.
        """
        from acegames.kernels import lookup

        cell = np.empty(len(state), dtype=np.int64)
        arrays = (state, counted, np.empty((0, 0)) if spent is None else spent)
        asked, counted, spent = (np.ascontiguousarray(x, dtype=np.int64) for x in arrays)
        states, lo, size, base, least, most = self._fixed
        lookup.locate(states, lo, size, base, least, most, asked, counted, spent, cell)
        return cell

    def pair_table(self, dims: tuple[int, ...], *, by_cell: bool) -> PairTable:
        """Return what `find_pairs` looks pairs up in; boxes count the constraints `dims`."""
        cells, nothing = self.cells, np.empty(0, dtype=np.int64)
        assert cells is not None
        keys, counts = (nothing if x is None else x for x in (cells.keys, cells.counts))
        states, lo, size, base, least, most = self._fixed
        own = (frozen(np.array(dims, dtype=np.int64)), frozen(keys), frozen(cells.words), frozen(counts))
        return PairTable(states, lo, size, base, least, most, *own, by_cell)

    @cached_property
    def _fixed(self) -> tuple[Ints, ...]:
        """The boxes as read-only arrays, so that kernels are compiled once for all of them."""
        boxes = (self.states, self.lo, self.size, self.base, self.least, self.most)
        return tuple(frozen(x) for x in boxes)

    def slots(self, n_states: int) -> NDArray[np.int32]:
        """Return the place of each state among those with a box, -1 for none."""
        slot = np.empty(n_states, dtype=np.int32)
        slot.fill(-1)
        slot[self.states] = np.arange(len(self.states), dtype=np.int32)
        return slot

    def boxes(self) -> Boxes:
        """Return the boxes for kernels."""
        return Boxes(self.states, self.lo, self.size, self.base, self.line)

    def spent(self, cells: Ints) -> tuple[Ints, Ints]:
        """Return state and spent (Q, D) of each cell."""
        at = np.searchsorted(self.base, cells, side="right") - 1
        rest = cells - self.base[at]
        spent = np.empty((len(cells), self.lo.shape[1]), dtype=np.int64)
        for m in reversed(range(self.lo.shape[1])):
            spent[:, m] = self.lo[at, m] + rest % self.size[at, m]
            rest = rest // self.size[at, m]
        return self.states[at], spent


def number_boxes(start: Ints, size: Ints) -> tuple[Ints, Ints]:
    """Number cells and lines: the first ones of each box, layers end to end.

    There is one more entry per layer. The boxes of layer t are start[t] : start[t+1]. TooLarge if
    numbers exceed 64 bits. It needs no kernels: a file is opened without waiting for them.
    """
    _check_numbers(size)
    layer = owners(pointers(np.diff(start) + 1))  # of each entry
    box = np.arange(len(layer)) - layer
    lines = np.prod(size[:, :-1], axis=1)
    base, line = (ends[box] - ends[start[layer]] for ends in (pointers(lines * size[:, -1]), pointers(lines)))
    return base, line


def count_cells(size: Ints) -> float:
    """Return how many cells boxes of these sizes (B, D) have together, about."""
    return float(np.prod(size, axis=1, dtype=np.float64).sum())


def fits_numbers(cells: float) -> bool:
    """Return whether so many cells can be numbered."""
    return cells < 2.0**62


def _check_numbers(size: Ints) -> None:
    if fits_numbers(float(size.max(initial=0)) ** size.shape[1] * len(size)):
        return
    cells = count_cells(size)
    if not fits_numbers(cells):
        raise TooLarge(
            f"the cumulative costs that are possible one constraint at a time combine to {cells:.3g} cells, which cannot be numbered in "
            "62 bits (however few of them occur together); solve approximately, with costs rounded to a coarser unit, or with "
            "fewer constraints"
        )
