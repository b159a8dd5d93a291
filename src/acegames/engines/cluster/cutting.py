"""Layers cut into blocks that need little of the next layer.

A *tile* is a slab of a box: some totals of the first constraint, all of the others. Its cells
follow each other in the layer, and so do the tiles of a box. Slabs begin at the same totals in all
states and at all times. A *block* is a run of tiles, slab by slab and, within a slab, in an order
of states that puts neighbours together. Costs of one step are small against budgets, so a block
leads into the same slab of the next layer and into the slabs next to it, not everywhere.

What a block needs of the next layer is its *region*: for each state that it leads to, the tiles
between the least and the largest total that it can come with. Kernels address the next layer only
through its boxes, so a region stands for the layer, numbered anew.

What a tile holds, its *entries*, are its cells, or those of them that are reached where cells are
listed. A *layout* has the boxes of all times and how they are cut, which every task of a solve
shares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.kernels.records import Boxes, NextLayer, Transitions
from acegames.model.arrays import Ints, pointers, spans
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
    entry: Ints  # (T+1,) its first entry in the layer
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

    @cached_property
    def entries(self) -> Ints:
        """(T,) of each tile."""
        return np.diff(self.entry)

    @cached_property
    def owner(self) -> Ints:
        """(T,) the block of each tile."""
        owner = np.empty(len(self.slot), dtype=np.int64)
        owner[self.order] = np.repeat(np.arange(self.blocks), np.diff(self.block))
        return owner

    @cached_property
    def offset(self) -> Ints:
        """(T,) the first entry of each tile within its block."""
        order = np.lexsort((np.arange(len(self.slot)), self.owner))
        before = pointers(self.entries[order])
        begin = before[np.searchsorted(self.owner[order], np.arange(self.blocks))]
        offset = np.empty(len(order), dtype=np.int64)
        offset[order] = before[:-1] - np.repeat(begin, np.diff(self.block))
        return offset

    def split(self, entries: NDArray[Any]) -> list[NDArray[Any]]:
        """Split what a layer holds, along the last axis, into what its blocks hold."""
        tiles = (self.tiles(k) for k in range(self.blocks))
        return [gather({0: entries}, own, np.zeros_like(own), self.entry, self.entries) for own in tiles]


def cut_layer(layer: LayerSpace, place: Ints, most: float, step: int) -> Cut:
    """Cut a layer into blocks of about `most` reached cells at most.

    `place` orders the states; `step` is the largest cost of the first constraint: thinner slabs
    would lead into many others. A block has one total of one state at least.
    """
    assert layer.cells is not None
    length, each = layer.size[:, 0], np.prod(layer.size[:, 1:], axis=1)
    slab, begin = _slab(layer, most, step), int(layer.lo[:, 0].min(initial=2**62))
    number, of_box = spans((layer.lo[:, 0] - begin) // slab, (layer.lo[:, 0] - begin + length - 1) // slab + 1)
    slot = np.repeat(np.arange(len(length)), np.diff(of_box))
    low = np.maximum(begin + number * slab, layer.lo[slot, 0])
    high = np.minimum(begin + (number + 1) * slab, layer.lo[slot, 0] + length[slot])
    first = pointers((high - low) * each[slot])
    across = np.prod(layer.size[:, 1:-1], axis=1)[slot]
    lines = (high - low) * across if layer.size.shape[1] > 1 else np.ones(len(slot), dtype=np.int64)
    order = np.lexsort((place[layer.states[slot]], number))
    before = reached_before(layer.cells, first)
    entry = first if layer.cells.keys is None else before
    block = _runs(np.diff(before)[order], most)
    return Cut(slot, first, entry, lines, low, high - low, of_box, begin, slab, order, block)


def reached_before(cells: Cells, at: Ints) -> Ints:
    """Return how many reached cells come before each of some, the last of which is the end."""
    if cells.keys is not None:
        return np.searchsorted(cells.keys, at)
    return pointers(np.add.reduceat(cells.marks(int(at[-1])), at[:-1], dtype=np.int64))


def _slab(layer: LayerSpace, most: float, step: int) -> int:
    """Return how many totals a slab has: all of them where one block suffices.

    Otherwise as many as a block of all states can hold, but no fewer than a step costs, unless that
    is too much of a single state.
    """
    assert layer.cells is not None
    if layer.cells.number <= most:
        return 2**61
    most *= layer.total / layer.cells.number
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
    def blocks(self) -> list[int]:
        """The blocks of the next layer that are needed, in order."""
        blocks: list[int] = np.unique(self.owner).tolist()
        return blocks

    def gather(self, cut: Cut, blocks: Mapping[int, NDArray[Any]]) -> NDArray[Any]:
        """Put together what blocks hold of the region, which is of a layer cut like this."""
        return gather(blocks, self.tiles, self.owner, cut.offset, cut.entries)


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
    """The boxes of a game in blocks. Block k of time t is some tiles of that layer."""

    space: Space  # without the cells that are reached
    graph: StateGraph
    cuts: tuple[Cut, ...]  # of t = 0 .. H

    @staticmethod
    def of(space: Space, most: Sequence[float]) -> Layout:
        """Cut each layer of an explored space into blocks of so many reached cells at most."""
        graph = StateGraph.of(space.tables)
        place, step = neighbours_together(space, graph), int(np.abs(space.tables.cost[:, 0]).max(initial=0))
        cuts = tuple(cut_layer(layer, place, cells, step) for layer, cells in zip(space.layers, most, strict=True))
        return Layout(replace(space, arrivals=None, cells=(), played=(), height=None), graph, cuts)

    def region(self, t: int, k: int) -> tuple[Boxes, Ints, Region]:
        """Return the boxes of a block, where they begin among its tiles, and what it needs of the
        next layer.
        """
        here, begin = boxes_of(self.space.layers[t], self.cuts[t], self.cuts[t].tiles(k))
        return here, begin, region(self.space, self.graph, t, here, self.cuts[t + 1])

    def steps(self, t: int) -> Transitions:
        """Return what joint actions lead to at time t; writable where kernels are compiled for
        that.
        """
        steps = self.space.steps(t)
        return steps._replace(budget=steps.budget.copy())

    def following(self, t: int, needed: Region, height: NDArray[np.int32]) -> NextLayer:
        """Return the layer of time t as kernels step into it: of which a region stands for the
        whole. Its lines have these heights.
        """
        space, (states, lo, size, base, line) = self.space, needed.boxes
        slot = np.full(len(space.game.states), -1, dtype=np.int32)
        slot[states] = np.arange(len(states), dtype=np.int32)
        weight = np.empty((0, lo.shape[1]), np.int64)
        return NextLayer(slot, lo, size, base, line, height, weight, np.empty((len(states), 0), np.int64))

    def heights(self, t: int, needed: Region, height: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the heights of a region of time t from those of all lines of that time."""
        cut, (_, lo, size, _, _) = self.cuts[t], needed.boxes
        if size.shape[1] > 1:
            return gather({0: height}, needed.tiles, np.zeros_like(needed.tiles), pointers(cut.lines), cut.lines)
        slot = cut.slot[needed.tiles[needed.begin[:-1]]]  # of each box, which is a part of its only line
        return heights_within(height[slot], lo[:, 0] - self.space.layers[t].lo[slot, 0], size[:, 0])


def heights_within(height: NDArray[np.int32], begin: Ints, cells: Ints) -> NDArray[np.int32]:
    """Cut the heights of lines to parts of them, counted from where each part begins.

    The height is -1 where the line's own is below the part, and the last cell where it is above.
    """
    clipped: NDArray[np.int32] = np.clip(height - begin, -1, cells - 1).astype(np.int32)
    return clipped


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
