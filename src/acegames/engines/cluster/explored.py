"""Exploration for the cluster: in this process, or in blocks in whichever way suits the space.

Exploring is little work against solving. Where layers are one block each, its tasks would run one
after the other, and handing them out takes longer than what they do. So the driver explores small
games with the kernels of one machine. What it finds, a bit per cell and a number per line, goes to
the workers with what all tasks share, and tasks read values alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from acegames.engines.cluster.cutting import Cut, Layout, Region, count_tiles, gather, heights_within
from acegames.engines.cluster.explore_tasks import UNLIMITED, Lists, Marked, explore_listing, explore_marking
from acegames.engines.forecast import block_seconds
from acegames.errors import TooLarge
from acegames.model.arrays import Floats, Ints, pointers
from acegames.safety.cells import RANK_BLOCK, Cells
from acegames.safety.explore import SPARSE_BYTES, check_memory, check_successors, crowded, dense_bytes, sampled
from acegames.safety.explore import explore as explore_whole
from acegames.safety.lattice import Lattice
from acegames.safety.space import Space, plan
from acegames.system.machine import available_memory, bytes_said, processors
from acegames.system.tasks import Block, Tasks, Team

if TYPE_CHECKING:
    from acegames.engines.cluster.parts import StripPlan

SMALL_BYTES = 2**23  # that exploring a small game takes at most: 60 million cells, or fewer
SMALL_OUTCOMES = 2e9  # that are looked at meanwhile, by one thread in a second at most, about


def is_small(space: Space, most: int) -> bool:
    """Return whether exploring a space takes no more than so many bytes, and about a second.

    Compiled calls cannot be interrupted, and workers may be idle meanwhile.
    """
    return dense_bytes(space) <= most and bool(space.totals.sum() * space.tables.widest[1] <= SMALL_OUTCOMES)


@dataclass(frozen=True, eq=False)
class ReachedCells:
    """Which cells are reached, and the height maps of all times."""

    bits: tuple[NDArray[np.uint8], ...]  # of t = 0 .. H-1, a bit per cell
    height: NDArray[np.int32]  # of all lines
    number: tuple[Ints, ...]  # (K,) reached cells of each block

    @staticmethod
    def of(space: Space, layout: Layout) -> ReachedCells:
        """Take the reached cells of an explored space, cut like this."""
        bits, number = list[NDArray[np.uint8]](), list[Ints]()
        assert space.height is not None
        for cells, cut in zip(space.cells[:-1], layout.cuts[:-1], strict=True):
            assert cells.bits is not None
            bits.append(cells.bits.ravel())
            by_tile = count_tiles(cells, cut)
            number.append(np.bincount(cut.owner, weights=by_tile, minlength=cut.blocks).astype(np.int64))
        return ReachedCells(tuple(bits), space.height, tuple(number))

    def marks(self, layout: Layout, t: int, tiles: Ints) -> NDArray[np.uint8]:
        """Return whether the cells of some tiles are reached, one byte per cell, end to end."""
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


# -- exploring in blocks --------------------------------------------------------------------------


BLOCK_CELLS = 2**21  # of blocks whose cells are marked, at least: a tenth of a second, about
MOST_CELLS = 2**23  # at most: a task holds about eight bytes for each
OUTCOMES = 1e9  # that marking looks at in a second, at least
BLOCK_KEYS = 2**19  # of those whose cells are listed
SAMPLED = 1e6  # outcomes that are looked at to see how full the boxes are


@dataclass(frozen=True, eq=False)
class Explored:
    """An explored space, and its blocks where they are."""

    space: Space  # feasible or not
    layout: Layout
    reached: Marked | Lists | ReachedCells


class UnclippedPairs:
    """The pairs without clipping, explored by a thread of its own while a game is solved.

    Only so few pairs are explored that they are stored in any case. The thread explores them itself
    where that is little work and takes no more than `small` bytes; else it asks for tasks, where
    these can run apart from the solve.
    """

    tasks: Tasks | None
    future: Future[Space | None] | None

    def __init__(
        self, tasks: Tasks, planned: Space, lattice: Lattice, allowed: int, block: int | None, small: int = 0
    ) -> None:
        self.thread, self.tasks, self.future = ThreadPoolExecutor(1), None, None
        try:
            exact = plan(planned.game, lattice, clip=False, arrivals=planned.arrivals)
        except TooLarge:
            return
        if exact.same_boxes(planned) or dense_bytes(exact) > allowed:
            return
        if is_small(exact, small):
            self.future = self.thread.submit(self._explore_here, exact, allowed)
        elif (apart := tasks.apart()) is not None:
            self.tasks, self.future = apart, self.thread.submit(self._explore, apart, exact, allowed, block)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.tasks is not None:
            self.tasks.interrupt()
        self.thread.shutdown()

    @staticmethod
    def _explore_here(exact: Space, allowed: int) -> Space | None:
        try:
            return explore_whole(exact, allowed)
        except TooLarge:
            return None

    @staticmethod
    def _explore(tasks: Tasks, exact: Space, allowed: int, block: int | None) -> Space | None:
        try:
            with tasks:
                return explore(tasks, exact, allowed, block, at=0.75).space
        except TooLarge:
            return None

    def check(self) -> None:
        """Raise what went wrong in the thread, if anything did by now."""
        if self.future is not None and self.future.done():
            self.future.result()

    def space(self) -> Space | None:
        """Wait for the explored space; None where it was not wanted, or takes too much memory."""
        return None if self.future is None else self.future.result()


class _Crowded(Exception):
    """Boxes hold the reached cells better than lists."""


def explore(
    tasks: Tasks,
    space: Space,
    allowed: int | None,
    block: int | None = None,
    part: Floats | None = None,
    strips: StripPlan | None = None,
    at: float = 0.25,
) -> Explored:
    """Find the cells that feasible play reaches, as `safety.explore` does, in blocks.

    The driver holds a bit per cell, or a number per listed cell. Blocks have about `block` cells,
    and slabs suit parts of about `part` cells of each layer, or strips. `at` says where within a
    block's share of the machines it is explored.

    Raises:
        TooLarge: when `safety.explore` would take more than `allowed` bytes; or, if that is None,
            when the driver has not the memory for what it holds.
    """
    if not space.totals.all() or (space.layer(0).locate(*space.roots, None) < 0).any():
        return Explored(space, Layout.of(space, np.full(len(space.totals), np.inf)), Marked())
    limit = UNLIMITED if allowed is None else allowed
    if space.dense is not True:
        lists, most = replace(space, dense=False), _most_listed(space, sampled(space, outcomes=SAMPLED), block)
        try:
            return _listed(tasks, lists, most, allowed, either=space.dense is None)
        except _Crowded:
            if dense_bytes(space) > limit:
                return _listed(tasks, lists, most, allowed, either=False)
    check_memory(dense_bytes(space), limit, space.total)
    if allowed is None:
        _check_held(int(space.totals.sum()) // 8)
    space = replace(space, dense=True)
    return _held(tasks, space, _layout(space, tasks.workers, block, part, strips), at)


def explore_here(
    tasks: Tasks, space: Space, block: int | None = None, part: Floats | None = None, strips: StripPlan | None = None
) -> Explored:
    """Explore a small game in this process: nothing else can be done before that."""
    with Team(min(processors(), tasks.workers)) as team:
        whole = explore_whole(space, None, team)
    if not whole.feasible:
        return Explored(space, Layout.of(space, np.full(len(space.totals), np.inf)), Marked())
    if whole.dense:
        layout = _layout(replace(space, dense=True), tasks.workers, block, part, strips)
        return Explored(replace(whole, height=None), layout, ReachedCells.of(whole, layout))
    number = np.array([cells.number for cells in whole.cells])
    layout = Layout.of(replace(space, dense=False), _most_listed(space, number, block))
    lists = Lists(played=whole.played)
    for cells, cut in zip(whole.cells, layout.cuts, strict=True):
        assert cells.keys is not None
        owner = cut.owner[cut.tile_of(cells.keys)]
        lists.keys.append([tasks.put(cells.keys[owner == k]) for k in range(cut.blocks)])
        lists.number.append(np.bincount(owner, minlength=cut.blocks))
    return Explored(whole, layout, lists)


def most_marked(cells: int, outcomes: int, workers: int) -> float:
    """Return how many cells a block has at most, of a layer with so many cells.

    Each cell has so many outcomes. The size suits the workers and, within bounds, lets the driver
    ask for all blocks in time.
    """
    each = OUTCOMES / max(outcomes, 1)  # cells in a second
    return min(max(block_seconds(cells / each, workers) * each, BLOCK_CELLS), MOST_CELLS)


def _layout(space: Space, workers: int, block: int | None, part: Floats | None, strips: StripPlan | None) -> Layout:
    """Cut layers that hold all cells."""
    most = np.array(
        [block or most_marked(n, space.tables.widest[1], workers) for n in space.totals.tolist()], dtype=float
    )
    return Layout.of(space, most, part, None if strips is None else (strips.slab, strips.begin))


def _most_listed(space: Space, number: Floats | Ints, block: int | None) -> Floats:
    """Return how many cells of boxes a block has, where so many cells are listed."""
    return (block or BLOCK_KEYS) / (np.maximum(number, 1) / np.maximum(space.totals, 1))


def _held(tasks: Tasks, space: Space, layout: Layout, at: float) -> Explored:
    marked = explore_marking(tasks, tasks.share(layout), layout, at)
    if not marked.marks:
        return Explored(space, layout, marked)
    cells = [put_together(tasks, cut, marks) for cut, marks in zip(layout.cuts[:-1], marked.marks, strict=True)]
    last = Cells.from_keys(np.zeros(0, dtype=np.int64))  # nothing is asked of the end
    return Explored(replace(space, cells=(*cells, last), played=marked.played), layout, marked)


def tile_counts(explored: Explored) -> list[Ints]:
    """Return how many cells of each tile are reached, by time, where all cells are held."""
    layers = zip(explored.space.cells[:-1], explored.layout.cuts[:-1], strict=True)
    return [count_tiles(cells, cut) for cells, cut in layers]


def put_together(tasks: Tasks, cut: Cut, marks: Sequence[Block]) -> Cells:
    """Join the marks of the blocks of a layer: the reached cells."""
    from acegames.kernels.boxes import place_bits

    tasks.bring(marks)
    bits = np.zeros((-(-int(cut.first[-1]) // RANK_BLOCK), RANK_BLOCK // 8), dtype=np.uint8)
    for k, block in enumerate(marks):
        tiles = cut.tiles(k)
        first, size, offset = cut.first[tiles], cut.cells[tiles], cut.cell_offset[tiles]
        place_bits(np.array(block.fetch()), offset, size, first, bits.reshape(-1))
    return Cells.split(bits, [0, len(bits)])[0]


def _listed(tasks: Tasks, space: Space, most: Floats, allowed: int | None, *, either: bool) -> Explored:
    """List the reached cells; with `either`, only while boxes do not hold them better."""
    layout, limit = Layout.of(space, most), UNLIMITED if allowed is None else allowed
    limits = np.cumsum(space.totals)

    def check(numbers: Sequence[int]) -> None:
        before = sum(numbers[:-1])
        if len(numbers) > 1:
            check_successors(numbers[-2], numbers[-1], limit - SPARSE_BYTES * before)
        if len(numbers) == len(limits):
            return
        if either and crowded(limits, numbers):
            raise _Crowded
        check_memory(SPARSE_BYTES * sum(numbers), limit, sum(numbers))

    lists = explore_listing(tasks, tasks.share(layout), layout, check)
    if not lists.keys:
        return Explored(space, layout, lists)
    if allowed is None:
        _check_held(8 * sum(int(number.sum()) for number in lists.number))
    cells = tuple(Cells.from_keys(_keys(tasks, lists, t)) for t in range(space.game.horizon + 1))
    return Explored(replace(space, cells=cells, played=lists.played), layout, lists)


def _check_held(needed: int) -> None:
    """Raise TooLarge where this process cannot hold which cells are reached."""
    allowed = available_memory()
    if needed > allowed:
        raise TooLarge(
            f"this process holds which situations are reachable, in {bytes_said(needed)} of memory, but only {bytes_said(allowed)} "
            "is free; start it on a machine with more, or round the costs to a coarser unit"
        )


def _keys(tasks: Tasks, lists: Lists, t: int) -> Ints:
    """Return the reached cells of a layer, in order."""
    tasks.bring(lists.keys[t])
    return np.sort(np.concatenate([block.fetch() for block in lists.keys[t]]))
