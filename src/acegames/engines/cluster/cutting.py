"""Layers cut into blocks that need little of the next layer.

A *tile* is a slab of a box: some totals of the first constraint, all of the others. Its cells
follow each other in the layer, and so do the tiles of a box. Slabs begin at the same totals in all
states and at all times. A *block* is a run of tiles, slab by slab and, within a slab, in an order
of states that puts neighbours together. Costs of one step are small against budgets, so a block
leads into the same slab of the next layer and into the slabs next to it, not everywhere.

What a block needs of the next layer is its *region*: for each state that it leads to, the tiles
between the least and the largest total that it can come with. Kernels address the next layer only
through its boxes, so a region stands for the layer, numbered anew.

A *layout* has the boxes of all times and how they are cut, which every task of a solve shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.kernels.records import Boxes, NextLayer, Transitions
from acegames.model.arrays import Floats, Ints, pointers, spans
from acegames.safety.cells import Cells, LayerSpace
from acegames.safety.space import Space, Tables


@dataclass(frozen=True, eq=False)
class StateGraph:
    """Which states lead to which in one step, and the range of what that costs of the first
    constraint; by the game's distinct layers.
    """

    ptr: tuple[Ints, ...]  # (S+1,) edges of each state
    to: tuple[Ints, ...]  # (E,)
    least: tuple[Ints, ...]  # (E,)
    most: tuple[Ints, ...]  # (E,)

    @staticmethod
    def of(tables: Tables) -> StateGraph:
        """Join the outcomes of all joint actions of a state that lead to the same state."""
        layers = [_edges(tables, row_ptr) for row_ptr in tables.row_ptr]
        ptr, to, least, most = (tuple(x) for x in zip(*layers, strict=True))
        return StateGraph(ptr, to, least, most)


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


def neighbours_together(space: Space, graph: StateGraph) -> Ints:
    """Return the place of each state in the order in which play can first come to it.

    States that lead to the same states come close to each other.
    """
    place = np.full(len(space.game.states), -1)
    states_now, number = np.unique([s for s, _ in space.game.initial]), 0
    while len(states_now):
        place[states_now] = number + np.arange(len(states_now))
        number += len(states_now)
        several = [
            to[spans(ptr[states_now], ptr[states_now + 1])[0]] for ptr, to in zip(graph.ptr, graph.to, strict=True)
        ]
        following = np.concatenate(several)
        following = following[np.sort(np.unique(following, return_index=True)[1])]
        states_now = following[place[following] < 0]
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

    `place` orders the states; `step` is the largest cost of the first constraint: thinner slabs
    would lead into many others. A block has one total of one state at least. Where blocks will be
    cut again into parts of about `part` cells, slabs suit these. `slabs`, if there are any, say how
    many totals a slab has, and where the first one begins.
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
    """Return how many totals a slab has: all of them where one block suffices.

    Otherwise as many as a block of all states can hold, but no fewer than a step costs, unless that
    is too much of a single state.
    """
    if layer.total <= most:
        return 2**61
    longest = int((layer.lo[:, 0] + layer.size[:, 0]).max() - layer.lo[:, 0].min())
    each = int(np.prod(layer.size[:, 1:], axis=1).max(initial=1))
    together = max(int(most * longest / layer.total), step)
    return max(min(together, int(most / each)), 1)


def _runs(sizes: Ints, most: float) -> Ints:
    """Cut sizes in a row into runs of about the same sum, of about `most` at most."""
    total = int(sizes.sum())
    number = max(int(np.ceil(total / most)), 1)
    ends = np.cumsum(sizes)
    cuts = np.searchsorted(ends, total * np.arange(1, number) / number, side="left") + 1
    return np.unique(np.concatenate([[0], cuts, [len(sizes)]])).astype(np.int64)


def with_blocks(cut: Cut, sizes: Ints, most: float) -> Cut:
    """Cut the tiles of a layer into other blocks, none across two of the old ones.

    Each tile counts as `sizes` says.
    """
    parts = [
        cut.block[k] + _runs(sizes[cut.order[cut.block[k] : cut.block[k + 1]]], most)[:-1] for k in range(cut.blocks)
    ]
    pieces = np.concatenate([*parts, cut.block[-1:]])
    return replace(cut, block=pieces)


def boxes_of(layer: LayerSpace, cut: Cut, tiles: Ints) -> tuple[Boxes, Ints]:
    """Return the boxes of some tiles, in order, and where the tiles of each begin (B+1,).

    The tiles of each state must follow each other.
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

    def following(self, n_states: int, height: np.ndarray, space: Space, t: int) -> NextLayer:
        """Return the region, which is of time t, as kernels step into it."""
        slot = np.full(n_states, -1, dtype=np.int32)
        slot[self.boxes.states] = np.arange(len(self.boxes.states), dtype=np.int32)
        own = space.layers[t].slots(n_states)[self.boxes.states]
        limit = space.limit[space.start[t] : space.start[t + 1]][own]
        weight = np.empty((0, self.boxes.lo.shape[1]), np.int64) if space.sums is None else space.sums.weight.copy()
        _, lo, size, base, line = self.boxes
        return NextLayer(slot, lo, size, base, line, height, weight, limit)


def region(space: Space, graph: StateGraph, t: int, here: Boxes, cut: Cut) -> Region:
    """Return the region of boxes of time t, in time t+1, which is cut like this."""
    after, layer = space.layers[t + 1], int(space.tables.layer_at[t])
    ptr = graph.ptr[layer]
    edge, own = spans(ptr[here.states], ptr[here.states + 1])
    box = np.repeat(np.arange(len(here.states)), np.diff(own))
    slot = after.slots(len(space.game.states))[graph.to[layer][edge]].astype(np.int64)
    least = here.lo[box, 0] + graph.least[layer][edge]
    most = here.lo[box, 0] + here.size[box, 0] - 1 + graph.most[layer][edge]
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


# -- all layers of a game -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Layout:
    """A planned space in blocks. Block k of time t is some tiles of that layer."""

    space: Space  # nothing of it is explored
    graph: StateGraph
    cuts: tuple[Cut, ...]  # of t = 0 .. H

    @staticmethod
    def of(space: Space, most: Floats, part: Floats | None = None, slabs: tuple[int, int] | None = None) -> Layout:
        """Cut each layer into blocks of so many cells at most, with parts of so many.

        `slabs`, if there are any, say how wide slabs are and where the first one begins.
        """
        graph = StateGraph.of(space.tables)
        place, step = neighbours_together(space, graph), int(np.abs(space.tables.cost[:, 0]).max(initial=0))
        layers = (space.layer(t) for t in range(space.game.horizon + 1))
        each = zip(layers, most, most if part is None else part, strict=True)
        cuts = tuple(cut_layer(layer, place, cells, step, fine, slabs) for layer, cells, fine in each)
        return Layout(replace(space, arrivals=None), graph, cuts)

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

    def steps(self, t: int) -> Transitions:
        """Return what joint actions lead to at time t; writable where kernels are compiled for
        that.
        """
        steps = self.space.steps(t)
        return steps._replace(budget=steps.budget.copy())

    def following(self, t: int, needed: Region, height: NDArray[np.int32] | None = None) -> NextLayer:
        """Return the layer of time t as kernels step into it: of which a region stands for the
        whole.
        """
        nothing = np.zeros(0, dtype=np.int32)
        return needed.following(len(self.space.game.states), nothing if height is None else height, self.space, t)

    def heights(self, t: int, needed: Region, blocks: Mapping[int, NDArray[np.int32]]) -> NDArray[np.int32]:
        """Join the heights of a region of time t from those of blocks; at the end all is safe."""
        _, _, size, _, line = needed.boxes
        if t == self.space.game.horizon:
            return np.repeat(size[:, -1] - 1, np.diff(line)).astype(np.int32)
        if not blocks:  # nothing is needed
            return np.zeros(0, dtype=np.int32)
        cut = self.cuts[t]
        joined = gather(blocks, needed.tiles, needed.owner, cut.line_offset, cut.lines)
        if size.shape[1] > 1 or not len(joined):
            return joined
        places: NDArray[np.int64] = np.add.reduceat(
            joined + np.int64(1), needed.begin[:-1]
        )  # tiles are parts of a line
        return (places - 1).astype(np.int32)


@lru_cache(maxsize=256)
def region_of(layout: Layout, t: int, k: int) -> Region:
    """Return the region of a block; cached, because several tasks ask for it."""
    return region(layout.space, layout.graph, t, layout.boxes(t, k), layout.cuts[t + 1])


def heights_within(height: NDArray[np.int32], begin: Ints, cells: Ints) -> NDArray[np.int32]:
    """Cut the heights of lines to parts of them, counted from where each part begins.

    The height is -1 where the line's own is below the part, and the last cell where it is above.
    """
    clipped: NDArray[np.int32] = np.clip(height - begin, -1, cells - 1).astype(np.int32)
    return clipped


def count_tiles(cells: Cells, cut: Cut) -> Ints:
    """Return how many cells of each tile of a layer are reached."""
    counts: Ints = np.add.reduceat(cells.marks(int(cut.first[-1])), cut.first[:-1], dtype=np.int64)
    return counts


def gather(blocks: Mapping[int, NDArray[Any]], tiles: Ints, owner: Ints, offset: Ints, sizes: Ints) -> NDArray[Any]:
    """Put together what some tiles hold, end to end along the last axis, in a fresh array.

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
    gathered = np.empty((*some.shape[:-1], int(to[-1])), dtype=some.dtype)
    for k, at, a, b in zip(owner[first].tolist(), begin[first].tolist(), to[first].tolist(), end.tolist(), strict=True):
        gathered[..., a:b] = blocks[k][..., at : at + b - a]
    return gathered
