"""A space on a card: tables and boxes of all times, and views of one layer for kernels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from acegames.engines.gpu.recipes import Shape
from acegames.kernels.dense import SEGMENT
from acegames.kernels.phases import Layer
from acegames.kernels.records import Boxes, Following, Steps
from acegames.model.arrays import Ints, pointers
from acegames.safety.explore import bit_starts
from acegames.safety.space import Space

MOST_BLOCKS = 2**30  # of one launch
SLOT_BYTES = 64 * 2**20  # of the boxes of states, for some times together


class OnCard:
    """What kernels read of a space; heights and bits are filled by whoever explores."""

    def __init__(self, card: Any, space: Space, shape: Shape) -> None:
        self.card, self.space, self.shape = card, space, shape
        tables = space.tables
        names = ("row_ptr", "out_ptr", "next_state", "cost", "prob")
        self.row_ptr, *self.steps = (card.upload(getattr(tables, name)) for name in names)
        boxes = (space.states, space.lo, space.size, space.base, space.line, self.pieces)
        self.states, self.lo, self.size, self.base, self.line, self._pieces = map(card.upload, boxes)
        self.budget = card.upload(space.budget)
        self.bit_start = bit_starts(space)
        self.height = card.empty(int(space.line_start[-1]), np.int32)
        self.bits = card.empty(int(self.bit_start[-1]), np.uint8)
        self._nothing = card.empty((1, 1), np.int64)
        self._slots = (0, 0, None)

    @staticmethod
    def needs(space: Space) -> int:
        """Bytes on the card, about."""
        tables = space.tables
        arrays: list[Any] = [tables.row_ptr, tables.out_ptr, tables.next_state, tables.cost, tables.prob]
        arrays += [space.states, space.lo, space.size, space.base, space.line, space.line, space.budget]
        slots = min(SLOT_BYTES, 4 * len(space.game.states) * (space.game.horizon + 1))
        held = 4 * int(space.line_start[-1]) + int(space.totals.sum()) // 8
        return sum(int(x.nbytes) for x in arrays) + max(slots, 4 * len(space.game.states)) + held

    @cached_property
    def pieces(self) -> Ints:
        """First piece of each box within its layer, one more entry per layer."""
        space, H = self.space, self.space.game.horizon
        own = np.diff(np.append(space.line, 0))
        last = space.start[1:] + np.arange(H + 1)  # the further entry of each layer
        boxes = np.ones(len(space.line), dtype=bool)
        boxes[last] = False
        count = np.zeros(len(space.line), dtype=np.int64)
        count[boxes] = own[boxes] * -(-space.size[:, -1] // SEGMENT)
        before = pointers(count)[:-1]
        first = np.concatenate([[0], last[:-1] + 1])
        found: Ints = before - np.repeat(before[first], np.diff(np.append(first, len(before))))
        return found

    def layer(self, t: int) -> Layer:
        """The layer of time t < H, and the next."""
        row_ptr = self._row(self.row_ptr, int(self.space.tables.layer_at[t]))
        out_ptr, next_state, cost, prob = self.steps
        step = Steps(row_ptr, out_ptr, next_state, cost, prob, self._row(self.budget, t))
        here, pieces = self._boxes(t)
        there, _ = self._boxes(t + 1)
        after = Following(self._slot(t + 1), *there[1:], self.heights(t + 1), self._nothing, self._nothing)
        return Layer(here, pieces, self.bits_of(t), step, after)

    def heights(self, t: int) -> Any:
        """The heights of a layer's lines."""
        start = self.space.line_start
        return self.height[int(start[t]) : int(start[t + 1])]

    def bits_of(self, t: int) -> Any:
        """The bits of a layer's cells."""
        return self.bits[int(self.bit_start[t]) : int(self.bit_start[t + 1])]

    def pieces_of(self, t: int) -> int:
        """How many pieces a layer has."""
        return int(self.pieces[int(self.space.start[t + 1]) + t])

    def cell_of(self, t: int, piece: int) -> int:
        """The first cell of a piece of a layer; behind the last piece, the cell behind."""
        space, first = self.space, int(self.space.start[t])
        own = self.pieces[first + t : int(space.start[t + 1]) + t + 1]
        if piece >= own[-1]:
            return int(space.totals[t])
        a = int(np.searchsorted(own, piece, side="right")) - 1
        width = int(space.size[first + a, -1])
        nth, part = divmod(piece - int(own[a]), -(-width // SEGMENT))
        return int(space.base[first + t + a]) + nth * width + part * SEGMENT

    def chunks(self, t: int, cells: int) -> Iterator[tuple[int, int]]:
        """Runs of pieces, first and number, that have at most so many cells, at least SEGMENT."""
        first, pieces = 0, self.pieces_of(t)
        while first < pieces:
            most = self.cell_of(t, first) + cells
            low, high = first + 1, min(pieces, first + MOST_BLOCKS)
            while low < high:
                middle = (low + high + 1) // 2
                low, high = (middle, high) if self.cell_of(t, middle) <= most else (low, middle - 1)
            yield first, low - first
            first = low

    def _row(self, table: Any, k: int) -> Any:
        return table[k : k + 1].reshape(table.shape[1])

    def _boxes(self, t: int) -> tuple[Boxes, Any]:
        a, b = int(self.space.start[t]), int(self.space.start[t + 1])
        own, more = slice(a, b), slice(a + t, b + t + 1)
        boxes = Boxes(self.states[own], self.lo[own], self.size[own], self.base[more], self.line[more])
        return boxes, self._pieces[more]

    def _slot(self, t: int) -> Any:
        """The boxes of states at time t; those of some times are on the card together."""
        begin, end, slots = self._slots
        count = len(self.space.game.states)
        if not begin <= t < end:
            together = max(SLOT_BYTES // (4 * count), 1)
            begin = max(min(t, self.space.game.horizon + 1 - together), 0)
            end = min(begin + together, self.space.game.horizon + 1)
            slots = self.card.upload(np.array([self.space.layer(k).slots(count) for k in range(begin, end)]))
            self._slots = (begin, end, slots)
        return self._row(slots, t - begin)
