"""Layers cut into blocks that need little of the next layer.

A *tile* is a slab of a box: some totals of the first constraint, all of the others. Its cells
follow each other in the layer, and so do the tiles of a box. Slabs begin at the same totals in all
states and at all times. A *block* is a run of tiles, slab by slab and, within a slab, in an order
of states that puts neighbours together. Costs of one step are small against budgets, so a block
leads into the same slab of the next layer and into the ones beside it, not everywhere.

What a block needs of the next layer is its *region*: for each state that it leads to, the tiles
between the least and the largest total that it can come with. Kernels address the next layer only
through its boxes, so a region stands for the layer, numbered anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from acegames.kernels.records import Boxes, Following
from acegames.model.arrays import Ints, pointers, spans
from acegames.safety.cells import LayerSpace
from acegames.safety.space import Space, Tables


@dataclass(frozen=True, eq=False)
class Edges:
    """Which states lead to which in one step, and the range of what that costs of the first
    constraint; by the game's distinct layers.
    """

    ptr: tuple[Ints, ...]  # (S+1,) edges of each state
    to: tuple[Ints, ...]  # (E,)
    least: tuple[Ints, ...]  # (E,)
    most: tuple[Ints, ...]  # (E,)

    @staticmethod
    def of(tables: Tables) -> Edges:
        """Join the outcomes of all joint actions of a state that lead to the same state."""
        found = [_edges(tables, row_ptr) for row_ptr in tables.row_ptr]
        ptr, to, least, most = (tuple(x) for x in zip(*found, strict=True))
        return Edges(ptr, to, least, most)


def _edges(tables: Tables, row_ptr: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    states = len(row_ptr) - 1
    out = tables.out_ptr[row_ptr]
    own = slice(int(out[0]), int(out[-1]))
    key = np.repeat(np.arange(states), np.diff(out)) * states + tables.next_state[own]
    order = np.argsort(key, kind="stable")
    key, cost = key[order], tables.cost[own, 0][order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    state, to = np.divmod(key[first], states)
    least, most = np.minimum.reduceat(cost, first), np.maximum.reduceat(cost, first)
    return pointers(np.bincount(state, minlength=states)), to, least, most


def neighbours_together(space: Space, edges: Edges) -> Ints:
    """Return the place of each state in the order in which play can first come to it.

    States that lead to the same states come close to each other.
    """
    place = np.full(len(space.game.states), -1)
    found, number = np.unique([s for s, _ in space.game.initial]), 0
    while len(found):
        place[found] = number + np.arange(len(found))
        number += len(found)
        several = [to[spans(ptr[found], ptr[found + 1])[0]] for ptr, to in zip(edges.ptr, edges.to, strict=True)]
        following = np.concatenate(several)
        following = following[np.sort(np.unique(following, return_index=True)[1])]
        found = following[place[following] < 0]
    place[place < 0] = number + np.arange(np.count_nonzero(place < 0))
    return place


@dataclass(frozen=True, eq=False)
class Cut:
    """One layer in tiles, numbered in the order of their cells, and these in blocks."""

    slot: Ints  # (T,) the box of each tile
    first: Ints  # (T+1,) its first cell in the layer
    lines: Ints  # (T,) how many lines it has a part of
    at: Ints  # (T,) its first total of the first constraint
    thick: Ints  # (T,) how many totals of it
    of_box: Ints  # (B+1,) the tiles of each box
    begin: int  # the first total of the first slab
    slab: int  # totals of a slab
    order: Ints  # (T,) the tiles in the order of blocks
    block: Ints  # (K+1,) the blocks as runs of `order`

    @property
    def blocks(self) -> int:
        """How many there are."""
        return len(self.block) - 1

    def tiles(self, k: int) -> Ints:
        """Return the tiles of a block, in the order of their cells, as what blocks hold is."""
        return np.sort(self.order[self.block[k] : self.block[k + 1]])

    def tile_of(self, cells: Ints) -> Ints:
        """Return the tile of each cell of the layer."""
        return np.searchsorted(self.first, cells, side="right") - 1

    @cached_property
    def cells(self) -> Ints:
        """(T,) of each tile."""
        return np.diff(self.first)

    @cached_property
    def owner(self) -> Ints:
        """(T,) the block of each tile."""
        owner = np.empty(len(self.slot), dtype=np.int64)
        owner[self.order] = np.repeat(np.arange(self.blocks), np.diff(self.block))
        return owner

    @cached_property
    def slabs(self) -> Ints:
        """(T,) the slab of each tile."""
        return (self.at - self.begin) // self.slab

    @cached_property
    def first_of_box(self) -> Ints:
        """(B,) the first tile of each box."""
        return self.of_box[:-1]

    def offsets(self, sizes: Ints) -> Ints:
        """Return (T,) where what a tile holds begins in its block; a tile holds so many things."""
        order = np.lexsort((np.arange(len(self.slot)), self.owner))
        before = pointers(sizes[order])
        begin = before[np.searchsorted(self.owner[order], np.arange(self.blocks))]
        offset = np.empty(len(order), dtype=np.int64)
        offset[order] = before[:-1] - np.repeat(begin, np.diff(self.block))
        return offset

    @cached_property
    def cell_offset(self) -> Ints:
        """(T,) the first cell of each tile within its block."""
        return self.offsets(self.cells)

    @cached_property
    def line_offset(self) -> Ints:
        """(T,) the first line of each tile within its block."""
        return self.offsets(self.lines)

    @cached_property
    def block_cells(self) -> Ints:
        """(K,) of each block."""
        return np.bincount(self.owner, weights=self.cells, minlength=self.blocks).astype(np.int64)


def cut_layer(
    layer: LayerSpace,
    place: Ints,
    most: float,
    step: int,
    part: float | None = None,
    slabs: tuple[int, int] | None = None,
) -> Cut:
    """Cut a layer into blocks of about `most` cells at most.

    `place` orders the states; `step` is the largest cost of the first constraint, below which slabs
    would lead into many others. A block has one total of one state at least. Where blocks will be
    cut again into parts of about `part` cells, slabs suit these. `slabs` are the totals of a slab,
    and the first total of the first one, if these are given.
    """
    length, each = layer.size[:, 0], np.prod(layer.size[:, 1:], axis=1)
    if slabs is None:
        width = _slab(layer, most if part is None else min(most, part), step)
        slabs = width, int(layer.lo[:, 0].min(initial=2**62))
    slab, begin = slabs
    number, of_box = spans((layer.lo[:, 0] - begin) // slab, (layer.lo[:, 0] - begin + length - 1) // slab + 1)
    slot = np.repeat(np.arange(len(length)), np.diff(of_box))
    low = np.maximum(begin + number * slab, layer.lo[slot, 0])
    high = np.minimum(begin + (number + 1) * slab, layer.lo[slot, 0] + length[slot])
    cells = (high - low) * each[slot]
    across = np.prod(layer.size[:, 1:-1], axis=1)[slot]
    lines = (high - low) * across if layer.size.shape[1] > 1 else np.ones(len(slot), dtype=np.int64)
    order = np.lexsort((place[layer.states[slot]], number))
    own = (slot, pointers(cells), lines, low, high - low, of_box)
    return Cut(*own, begin, slab, order, _runs(cells[order], most))


def _slab(layer: LayerSpace, most: float, step: int) -> int:
    """Return how many totals a slab has: all where one block suffices; else as many as a block of
    all states can hold, but no fewer than a step costs, unless that is too much of a single state.
    """
    if layer.total <= most:
        return 2**61
    longest = int((layer.lo[:, 0] + layer.size[:, 0]).max() - layer.lo[:, 0].min())
    each = int(np.prod(layer.size[:, 1:], axis=1).max(initial=1))
    together = max(int(most * longest / layer.total), step)
    return max(min(together, int(most / each)), 1)


def _runs(sizes: Ints, most: float) -> Ints:
    """Cut what lies in order into runs of about the same size, and about `most` at most."""
    total = int(sizes.sum())
    number = max(int(np.ceil(total / most)), 1)
    ends = np.cumsum(sizes)
    cuts = np.searchsorted(ends, total * np.arange(1, number) / number, side="left") + 1
    return np.unique(np.concatenate([[0], cuts, [len(sizes)]])).astype(np.int64)


def with_blocks(cut: Cut, sizes: Ints, most: float) -> Cut:
    """The same tiles in other blocks, none across two of the old ones; a tile counts as so much."""
    parts = [
        cut.block[k] + _runs(sizes[cut.order[cut.block[k] : cut.block[k + 1]]], most)[:-1] for k in range(cut.blocks)
    ]
    pieces = np.concatenate([*parts, cut.block[-1:]])
    return replace(cut, block=pieces)


def boxes_of(layer: LayerSpace, cut: Cut, tiles: Ints) -> tuple[Boxes, Ints]:
    """Return the boxes of some tiles, in order, and where the tiles of each begin (B+1,).

    Of each state the tiles must follow each other.
    """
    slot = cut.slot[tiles]
    begin = np.flatnonzero(np.diff(slot, prepend=-1))
    own = slot[begin]
    lo, size = layer.lo[own], layer.size[own]  # copies
    lo[:, 0] = cut.at[tiles[begin]]
    size[:, 0] = np.add.reduceat(cut.thick[tiles], begin) if len(begin) else 0
    line = np.prod(size[:, :-1], axis=1)
    boxes = Boxes(layer.states[own], lo, size, pointers(line * size[:, -1]), pointers(line))
    return boxes, np.append(begin, len(tiles))


@dataclass(frozen=True, eq=False)
class Region:
    """What a block needs of the next layer."""

    tiles: Ints  # (T,) in order
    boxes: Boxes
    begin: Ints  # (B+1,) the tiles of each box
    owner: Ints  # (T,) the blocks that hold them

    @cached_property
    def blocks(self) -> Ints:
        """The blocks of the next layer that are needed, in order."""
        return np.unique(self.owner)

    def following(self, n_states: int, height: np.ndarray, space: Space, t: int) -> Following:
        """As kernels step into it; the region is of time t."""
        slot = np.full(n_states, -1, dtype=np.int32)
        slot[self.boxes.states] = np.arange(len(self.boxes.states), dtype=np.int32)
        own = space.layers[t].slots(n_states)[self.boxes.states]
        limit = space.limit[space.start[t] : space.start[t + 1]][own]
        weight = np.empty((0, self.boxes.lo.shape[1]), np.int64) if space.sums is None else space.sums.weight.copy()
        _, lo, size, base, line = self.boxes
        return Following(slot, lo, size, base, line, height, weight, limit)


def region(space: Space, edges: Edges, t: int, here: Boxes, cut: Cut) -> Region:
    """Return what boxes of time t need of time t+1, which is cut like this."""
    after, layer = space.layers[t + 1], int(space.tables.layer_at[t])
    ptr = edges.ptr[layer]
    edge, own = spans(ptr[here.states], ptr[here.states + 1])
    box = np.repeat(np.arange(len(here.states)), np.diff(own))
    slot = after.slots(len(space.game.states))[edges.to[layer][edge]].astype(np.int64)
    least = here.lo[box, 0] + edges.least[layer][edge]
    most = here.lo[box, 0] + here.size[box, 0] - 1 + edges.most[layer][edge]
    fine = (slot >= 0) & (least < after.lo[slot, 0] + after.size[slot, 0])
    slot, least, most = slot[fine], least[fine], most[fine]
    order = np.argsort(slot, kind="stable")
    slot, least, most = slot[order], least[order], most[order]
    begin = np.flatnonzero(np.diff(slot, prepend=-1))
    slot = slot[begin]
    if len(begin):
        least, most = np.minimum.reduceat(least, begin), np.maximum.reduceat(most, begin)
    low, high = after.lo[slot, 0], after.lo[slot, 0] + after.size[slot, 0] - 1
    first, last = (
        cut.of_box[slot] + (np.clip(x, low, high) - cut.begin) // cut.slab - (low - cut.begin) // cut.slab
        for x in (least, most)
    )
    tiles, _ = spans(first, last + 1)
    boxes, within = boxes_of(after, cut, tiles)
    return Region(tiles, boxes, within, cut.owner[tiles])
