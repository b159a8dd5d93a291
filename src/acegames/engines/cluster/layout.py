"""What every task of a solve shares: the boxes of all times and how they are cut; and how what
blocks hold is put together where a block needs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.engines.cluster.cutting import Cut, Edges, Region, boxes_of, cut_layer, neighbours_together, region
from acegames.kernels.records import Boxes, Following, Steps
from acegames.model.arrays import Floats, Ints, pointers
from acegames.safety.cells import Cells
from acegames.safety.space import Space


@dataclass(frozen=True, eq=False)
class Layout:
    """A planned space in blocks. Block k of time t is some tiles of that layer."""

    space: Space  # nothing of it is explored
    edges: Edges
    cuts: tuple[Cut, ...]  # of t = 0 .. H

    @staticmethod
    def of(space: Space, most: Floats, part: Floats | None = None, slabs: tuple[int, int] | None = None) -> Layout:
        """Cut each layer into blocks of so many cells at most, with parts of so many, or into given
        slabs (how wide, and where the first begins).
        """
        edges = Edges.of(space.tables)
        place, step = neighbours_together(space, edges), int(np.abs(space.tables.cost[:, 0]).max(initial=0))
        layers = (space.layer(t) for t in range(space.game.horizon + 1))
        each = zip(layers, most, most if part is None else part, strict=True)
        cuts = tuple(cut_layer(layer, place, cells, step, fine, slabs) for layer, cells, fine in each)
        return Layout(replace(space, arrivals=None), edges, cuts)

    def roots(self) -> dict[int, Ints]:
        """Return the cells where play begins, in order, by the block of time 0 that holds them."""
        cells = np.unique(self.space.layers[0].locate(*self.space.roots, None))
        owner = self.cuts[0].owner[self.cuts[0].tile_of(cells)]
        return {int(k): cells[owner == k] for k in np.unique(owner)}

    def boxes(self, t: int, k: int) -> Boxes:
        """Return the boxes of a block, numbered by themselves."""
        cut = self.cuts[t]
        return boxes_of(self.space.layers[t], cut, cut.tiles(k))[0]

    def region(self, t: int, k: int) -> Region:
        """Return what a block needs of the next layer."""
        return region_of(self, t, k)

    def steps(self, t: int) -> Steps:
        """Return what joint actions lead to at time t; writable where kernels are compiled for
        that.
        """
        steps = self.space.steps(t)
        return steps._replace(budget=steps.budget.copy())

    def following(self, t: int, needed: Region, height: NDArray[np.int32] | None = None) -> Following:
        """Return the layer of time t as kernels step into it: of which a region stands for the
        whole.
        """
        nothing = np.zeros(0, dtype=np.int32)
        return needed.following(len(self.space.game.states), nothing if height is None else height, self.space, t)

    def heights(self, t: int, needed: Region, blocks: Mapping[int, NDArray[np.int32]]) -> NDArray[np.int32]:
        """Return the height map of a region of time t, from those of blocks; at the end all is
        safe.
        """
        _, _, size, _, line = needed.boxes
        if t == self.space.game.horizon:
            return np.repeat(size[:, -1] - 1, np.diff(line)).astype(np.int32)
        if not blocks:  # nothing is needed
            return np.zeros(0, dtype=np.int32)
        cut = self.cuts[t]
        found = gather(blocks, needed.tiles, needed.owner, cut.line_offset, cut.lines)
        if size.shape[1] > 1 or not len(found):
            return found
        places: NDArray[np.int64] = np.add.reduceat(found + np.int64(1), needed.begin[:-1])  # tiles are parts of a line
        return (places - 1).astype(np.int32)


@lru_cache(maxsize=256)
def region_of(layout: Layout, t: int, k: int) -> Region:
    """Return what a block needs of the next layer; kept, because several tasks ask for it."""
    return region(layout.space, layout.edges, t, layout.boxes(t, k), layout.cuts[t + 1])


def heights_within(height: NDArray[np.int32], begin: Ints, cells: Ints) -> NDArray[np.int32]:
    """Return the heights of parts of lines, each counted from where its part begins; -1 below, and
    the last cell above.
    """
    found: NDArray[np.int32] = np.clip(height - begin, -1, cells - 1).astype(np.int32)
    return found


def count_tiles(cells: Cells, cut: Cut) -> Ints:
    """Return how many cells of each tile of a layer are reached."""
    found: Ints = np.add.reduceat(cells.marks(int(cut.first[-1])), cut.first[:-1], dtype=np.int64)
    return found


def gather(blocks: Mapping[int, NDArray[Any]], tiles: Ints, owner: Ints, offset: Ints, sizes: Ints) -> NDArray[Any]:
    """Return what some tiles hold, end to end along the last axis; a fresh array.

    `owner` (of these tiles) are the blocks that hold them; `offset` and `sizes` (of all tiles) say
    where in the block, and how much.
    """
    length = sizes[tiles]
    to, begin = pointers(length), offset[tiles]
    new = np.ones(len(tiles), dtype=bool)
    new[1:] = (owner[1:] != owner[:-1]) | (begin[1:] != begin[:-1] + length[:-1])
    first = np.flatnonzero(new)
    end = to[np.append(first[1:], len(tiles))[: len(first)]]
    some = next(iter(blocks.values()))
    found = np.empty((*some.shape[:-1], int(to[-1])), dtype=some.dtype)
    for k, at, a, b in zip(owner[first].tolist(), begin[first].tolist(), to[first].tolist(), end.tolist(), strict=True):
        found[..., a:b] = blocks[k][..., at : at + b - a]
    return found
