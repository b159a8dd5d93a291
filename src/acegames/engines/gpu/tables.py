"""A space on a card: tables and boxes of all times, and views of one layer for kernels."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from acegames.engines.gpu.recipes import Shape, recipe
from acegames.kernels.dense import SEGMENT
from acegames.kernels.phases import Layer
from acegames.kernels.records import Following
from acegames.safety.cells import number_boxes
from acegames.safety.explore import bit_starts
from acegames.safety.space import Space

MOST_BLOCKS = 2**30  # of one launch
SLOT_BYTES = 64 * 2**20  # of the boxes of states, for some times together
TABLES = ("row_ptr", "out_ptr", "next_state", "cost", "prob")  # arrays of `Tables` that kernels read; and
BOXES = ("budget", "states", "lo", "size", "base", "line")  # of `Space`


class OnCard:
    """What kernels read of a space. Heights and bits are to be filled, unless it is explored."""

    def __init__(self, card: Any, space: Space, shape: Shape) -> None:
        self.card, self.space, self.shape = card, space, shape
        tables = replace(space.tables, **{name: card.upload(getattr(space.tables, name)) for name in TABLES})
        self._there = replace(space, tables=tables, **{name: card.upload(getattr(space, name)) for name in BOXES})
        # first piece of each box within its layer: the first cell, if a run of SEGMENT were one
        runs = np.column_stack([space.size[:, :-1], -(-space.size[:, -1] // SEGMENT)])
        self.pieces, _ = number_boxes(space.start, runs)
        self._pieces, self._bit_start = card.upload(self.pieces), bit_starts(space)
        self.height = card.empty(int(space.line_start[-1]), np.int32)
        self.bits = card.empty(int(self._bit_start[-1]), np.uint8)
        self._nothing, self._slots = card.empty((1, 1), np.int64), dict[int, Any]()
        if space.height is not None:
            card.write(self.height, space.height)
        for t, cells in enumerate(space.cells):
            assert cells.bits is not None
            card.write(self.bits_of(t), cells.bits.reshape(-1))

    @staticmethod
    def needs(space: Space) -> int:
        """Return bytes on the card, about."""
        arrays = [*(getattr(space.tables, name) for name in TABLES), *(getattr(space, name) for name in BOXES)]
        slots = 4 * len(space.game.states) * min(_slots_together(space), space.game.horizon + 1)
        held = 4 * int(space.line_start[-1]) + int(bit_starts(space)[-1])
        return sum(int(x.nbytes) for x in (*arrays, space.line)) + slots + held  # as many pieces as lines

    def launch(self, name: str, blocks: int, given: Any) -> None:
        """Begin a kernel on so many blocks."""
        self.card.launch(recipe(name, self.shape), blocks, given)

    def each(self, name: str, count: int, given: Any) -> None:
        """Begin a kernel with a thread for each of so many."""
        made = recipe(name, self.shape)
        self.card.launch(made, -(-count // made.threads), given)

    def layer(self, t: int) -> Layer:
        """Return the layer of time t < H, and the next."""
        here, there = (self._there.layer(k).boxes() for k in (t, t + 1))
        after = Following(self._slot(t + 1), *there[1:], self.heights(t + 1), self._nothing, self._nothing)
        return Layer(here, self._pieces[self._boxes_of(t)], self.bits_of(t), self._there.steps(t), after)

    def heights(self, t: int) -> Any:
        """Return the heights of a layer's lines."""
        return self.height[int(self.space.line_start[t]) : int(self.space.line_start[t + 1])]

    def bits_of(self, t: int) -> Any:
        """Return the bits of a layer's cells."""
        return self.bits[int(self._bit_start[t]) : int(self._bit_start[t + 1])]

    def pieces_of(self, t: int) -> int:
        """Return how many pieces a layer has."""
        return int(self.pieces[int(self.space.start[t + 1]) + t])

    def cell_of(self, t: int, piece: int) -> int:
        """Return the first cell of a piece of a layer; behind the last piece, the cell behind."""
        space, boxes = self.space, self._boxes_of(t)
        own = self.pieces[boxes]
        if piece >= own[-1]:
            return int(space.totals[t])
        a = int(np.searchsorted(own, piece, side="right")) - 1
        width = int(space.size[boxes.start - t + a, -1])
        nth, part = divmod(piece - int(own[a]), -(-width // SEGMENT))
        return int(space.base[boxes.start + a]) + nth * width + part * SEGMENT

    def chunks(self, t: int, cells: int) -> Iterator[tuple[range, range]]:
        """Runs of pieces, and their cells: at most so many, which are at least SEGMENT."""
        first, begin, pieces = 0, 0, self.pieces_of(t)
        while first < pieces:
            ends = range(first + 1, min(pieces, first + MOST_BLOCKS) + 1)
            last = ends[-1]
            if self.cell_of(t, last) > begin + cells:
                last = ends[bisect_right(ends, begin + cells, key=partial(self.cell_of, t)) - 1]
            end = self.cell_of(t, last)
            yield range(first, last), range(begin, end)
            first, begin = last, end

    def _boxes_of(self, t: int) -> slice:
        """Return the boxes of a layer, where it has one entry more."""
        return slice(int(self.space.start[t]) + t, int(self.space.start[t + 1]) + t + 1)

    def _slot(self, t: int) -> Any:
        """Return the boxes of states at time t; those of some times are on the card together."""
        together, states = _slots_together(self.space), len(self.space.game.states)
        run, within = divmod(t, together)
        if run not in self._slots:
            self._slots.clear()
            times = range(t - within, self.space.game.horizon + 1)[:together]
            self._slots[run] = self.card.upload(np.array([self.space.layer(k).slots(states) for k in times]))
        return self._slots[run][within]


def _slots_together(space: Space) -> int:
    return max(SLOT_BYTES // (4 * len(space.game.states)), 1)
