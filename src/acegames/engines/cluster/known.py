"""What the driver finds out itself about games that are small enough.

Exploring is little work against solving. Where layers are one block each, its tasks would run one
after the other, and handing them out takes longer than what they do. So the driver explores such
games with the kernels of one machine. What it finds, a bit per cell and a number per line, goes to
the workers with what all tasks share, and a task is given values alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acegames.engines.cluster.cutting import Region
from acegames.engines.cluster.layout import Layout, count_tiles, gather, heights_within
from acegames.model.arrays import Ints, pointers
from acegames.safety.explore import dense_bytes
from acegames.safety.space import Space

SMALL_BYTES = 2**23  # that exploring a small game takes at most: 60 million cells, or fewer
SMALL_OUTCOMES = 2e9  # that are looked at meanwhile, by one thread in a second at most, about


def is_small(space: Space, most: int) -> bool:
    """Return whether exploring a space takes no more than so many bytes, and about a second.

    Compiled calls cannot be interrupted, and workers may be idle meanwhile.
    """
    return dense_bytes(space) <= most and bool(space.totals.sum() * space.tables.widest[1] <= SMALL_OUTCOMES)


@dataclass(frozen=True, eq=False)
class Known:
    """Which cells are reached, and the height maps of all times."""

    bits: tuple[NDArray[np.uint8], ...]  # of t = 0 .. H-1, a bit per cell
    height: NDArray[np.int32]  # of all lines
    number: tuple[Ints, ...]  # (K,) reached cells of each block

    @staticmethod
    def of(found: Space, layout: Layout) -> Known:
        """Return what is known of an explored space, cut like this."""
        bits, number = list[NDArray[np.uint8]](), list[Ints]()
        assert found.height is not None
        for cells, cut in zip(found.cells[:-1], layout.cuts[:-1], strict=True):
            assert cells.bits is not None
            bits.append(cells.bits.ravel())
            by_tile = count_tiles(cells, cut)
            number.append(np.bincount(cut.owner, weights=by_tile, minlength=cut.blocks).astype(np.int64))
        return Known(tuple(bits), found.height, tuple(number))

    def marks(self, layout: Layout, t: int, tiles: Ints) -> NDArray[np.uint8]:
        """Of some tiles: one byte per cell, end to end."""
        cut = layout.cuts[t]
        marks = np.unpackbits(self.bits[t], count=int(cut.first[-1]), bitorder="little")
        return gather({0: marks}, tiles, np.zeros_like(tiles), cut.first, cut.cells)

    def heights(self, layout: Layout, t: int, needed: Region) -> NDArray[np.int32]:
        """Return the height map of a region of time t."""
        space, cut = layout.space, layout.cuts[t]
        own = self.height[space.line_start[t] : space.line_start[t + 1]]
        _, lo, size, _, _ = needed.boxes
        if size.shape[1] > 1:
            return gather({0: own}, needed.tiles, np.zeros_like(needed.tiles), pointers(cut.lines), cut.lines)
        slot = cut.slot[needed.tiles[needed.begin[:-1]]]  # of each box, which is a part of its only line
        return heights_within(own[slot], lo[:, 0] - space.layers[t].lo[slot, 0], size[:, 0])
