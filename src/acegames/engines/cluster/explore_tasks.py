"""Tasks that explore layers in blocks: by marking cells, or by listing them.

*Marking*, where all cells are held: height maps backward, marks forward. A block of marks is made
from what the blocks before it send: each sends the cells of its region that it reaches, to the
block that holds them. Runs of layers of one block each are one task.

*Listing*, in three passes as `safety.explore` does: forward, the cells that rows lead to that keep
the budgets; backward, those from which some row is safe to the end; forward again, those that safe
rows reach. A block lists the cells of its tiles in order, by their numbers in the layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.engines.cluster.cutting import Cut, Layout, Region, gather, heights_within
from acegames.kernels.records import Boxes, Listed, NextLayer, Transitions
from acegames.model.arrays import Bools, Bytes, Ints, pointers
from acegames.safety.explore import batches, listed, merged, no_rows, successors
from acegames.system.tasks import Block, Shared, Tasks

RUN_CELLS = 2**22  # of the layers, of one block each, that one task explores

Bits = NDArray[np.uint8]
Heights = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Marked:
    """Which cells are reached, by time and block; no times if the game is infeasible."""

    heights: list[list[Block]] = field(default_factory=list)  # of each tile's lines
    marks: list[list[Block]] = field(default_factory=list)  # a bit per cell
    number: list[Ints] = field(default_factory=list)  # (K,) reached cells
    played: tuple[Bits, ...] = ()  # a bit for each row of each time, as in `Space`


def explore_marking(tasks: Tasks, shared: Shared, layout: Layout, at: float = 0.5) -> Marked:
    """Find the cells that feasible play reaches, where all cells are held.

    `at` says where within a block's share of the machines it is explored.
    """
    heights = _ask_heights(tasks, shared, layout, at)
    roots = {k: _within(layout.cuts[0], cells) for k, cells in layout.roots().items()}
    for k, cells in roots.items():
        if not _safe(layout, k, cells, heights[0][k].fetch()):
            return Marked()
    return _ask_marks(tasks, shared, layout, heights, roots, at)


def _time_runs(layout: Layout) -> list[tuple[int, int]]:
    """Return the runs of times t0 .. t1-1 that are explored together."""
    runs, t0 = list[tuple[int, int]](), 0
    several = [t for t in range(layout.space.game.horizon) if layout.cuts[t].blocks > 1]
    for t in [*several, layout.space.game.horizon]:
        runs += [(t0 + a, t0 + b) for a, b in batches(layout.space.totals[t0:t], RUN_CELLS)]
        if t < layout.space.game.horizon:
            runs.append((t, t + 1))
        t0 = t + 1
    return runs


# -- height maps ----------------------------------------------------------------------------------


def _ask_heights(tasks: Tasks, shared: Shared, layout: Layout, at: float) -> list[list[Block]]:
    maps: list[list[Block]] = [[] for _ in layout.cuts]
    for t0, t1 in reversed(_time_runs(layout)):
        for k in range(layout.cuts[t0].blocks):
            needed = [maps[t1][j] for j in _needed(layout, t1 - 1, k)]
            place = (k + at) / layout.cuts[t0].blocks
            made = tasks.run(make_heights, shared, (t0, t1, k), needed, made=t1 - t0, at=place)
            for t, block in zip(reversed(range(t0, t1)), made, strict=True):
                maps[t].append(block)
    tasks.finish()
    return maps


def _needed(layout: Layout, t: int, k: int) -> list[int]:
    """Return the blocks of time t+1 that a block needs; none of the end, where all is safe."""
    end = t + 1 == layout.space.game.horizon
    blocks: list[int] = [] if end else layout.region(t, k).blocks.tolist()
    return blocks


def make_heights(layout: Layout, what: tuple[int, int, int], *blocks: Heights) -> tuple[Any, ...]:
    """Make the height maps of block k of the times t1-1 down to t0; t1 = t0 + 1 or k = 0."""
    t0, t1, k = what
    maps, following = list[Heights](), dict(zip(_needed(layout, t1 - 1, k), blocks, strict=True))
    for t in reversed(range(t0, t1)):
        maps.append(_heights(layout, t, k, following))
        following = {k: maps[-1]}
    return *maps, None


def _heights(layout: Layout, t: int, k: int, blocks: dict[int, Heights]) -> Heights:
    from acegames.kernels.boxes import heights_of

    here, needed, cut = layout.boxes(t, k), layout.region(t, k), layout.cuts[t]
    after = layout.following(t + 1, needed, layout.heights(t + 1, needed, blocks))
    height = np.empty(int(here.line[-1]), dtype=np.int32)
    heights_of(here, layout.steps(t), after, height)
    if here.lo.shape[1] > 1:
        return height
    tiles = cut.tiles(k)  # each is a part of the only line of its box
    box = np.searchsorted(here.states, layout.space.layers[t].states[cut.slot[tiles]])
    return heights_within(height[box], cut.at[tiles] - here.lo[box, 0], cut.thick[tiles])


def _within(cut: Cut, cells: Ints) -> Ints:
    """Renumber cells of the layer as cells of the blocks that hold them."""
    tile = cut.tile_of(cells)
    return cut.cell_offset[tile] + cells - cut.first[tile]


def _safe(layout: Layout, k: int, cells: Ints, height: Heights) -> bool:
    """Return whether play can begin at these cells of a block of time 0."""
    cut, size = layout.cuts[0], layout.space.layers[0].size
    tiles = cut.tiles(k)
    tile = tiles[np.searchsorted(cut.cell_offset[tiles], cells, side="right") - 1]
    width = size[cut.slot[tile], -1] if size.shape[1] > 1 else cut.thick[tile]
    line, place = np.divmod(cells - cut.cell_offset[tile], width)
    return bool((place <= height[cut.line_offset[tile] + line]).all())


# -- marks ----------------------------------------------------------------------------------------


def _ask_marks(
    tasks: Tasks, shared: Shared, layout: Layout, heights: list[list[Block]], roots: dict[int, Ints], at: float
) -> Marked:
    space, cuts = layout.space, layout.cuts
    H = space.game.horizon
    marks: list[list[Block]] = [[] for _ in range(H)]
    number = [np.zeros(cut.blocks, dtype=np.int64) for cut in cuts[:-1]]
    played = no_rows(space)

    def take_counts(numbers: tuple[int, int, Sequence[tuple[int, Bits]]]) -> None:
        t0, k, several = numbers
        for t, (count, rows) in enumerate(several, t0):
            number[t][k] = count
            played[t] |= rows

    arriving: list[dict[int, Block]] = [{} for _ in range(cuts[0].blocks)]  # by block, from blocks before
    for t0, t1 in _time_runs(layout):
        following: list[dict[int, Block]] = [{} for _ in range(cuts[t1].blocks)]
        for k in range(cuts[t0].blocks):
            needed = _needed(layout, t1 - 1, k)
            sources = sorted(arriving[k])
            inputs = [*_heights_for(layout, heights, t0, t1, k), *(arriving[k][j] for j in sources)]
            what = (t0, t1, k, roots.get(k) if t0 == 0 else None, sources)
            number_made, place = t1 - t0 + len(needed), (k + at) / cuts[t0].blocks
            made = tasks.run(make_marks, shared, what, inputs, made=number_made, on_done=take_counts, at=place)
            for t in range(t0, t1):
                marks[t].append(made[t - t0])
            for j, block in zip(needed, made[t1 - t0 :], strict=True):
                following[j][k] = block
        arriving = following
    tasks.finish()
    return Marked(heights, marks, number, tuple(played))


def _heights_for(layout: Layout, heights: list[list[Block]], t0: int, t1: int, k: int) -> list[Block]:
    """Return the height maps that a task reads: of the times after each of its own."""
    return [heights[t + 1][j] for t in range(t0, t1) for j in _needed(layout, t, k)]


def make_marks(layout: Layout, what: tuple[int, int, int, Ints | None, list[int]], *blocks: Any) -> tuple[Any, ...]:
    """Make the marks of block k of the times t0 .. t1-1, and those it sends to other blocks."""
    t0, t1, k, roots, sources = what
    cut, inputs = layout.cuts[t0], iter(blocks)
    needed = {t: {j: next(inputs) for j in _needed(layout, t, k)} for t in range(t0, t1)}
    marks = np.zeros(int(cut.block_cells[k]), dtype=np.uint8)
    if roots is not None:
        marks[roots] = 1
    for source, bits in zip(sources, inputs, strict=True):
        _arrive(layout, t0, k, source, bits, marks)
    made, numbers, sent = list[Bits](), [], list[Bits]()
    for t in range(t0, t1):
        made.append(np.packbits(marks, bitorder="little"))
        reached, rows = _reach(layout, t, k, marks, needed[t])
        numbers.append((int(np.count_nonzero(marks)), rows))
        region = layout.region(t, k)
        if t + 1 == t1:
            sent = [_sent(layout.cuts[t1], region, j, reached) for j in needed[t]]
        else:
            marks = np.zeros(int(layout.cuts[t + 1].block_cells[0]), dtype=np.uint8)
            _spread(layout, t, 0, region.tiles, reached, marks)
    return *made, *sent, (t0, k, numbers)


def _sent(cut: Cut, region: Region, k: int, reached: Bits) -> Bits:
    """Return which cells of the tiles of block k are reached, as bits."""
    offset, tiles = np.empty(len(cut.slot), dtype=np.int64), region.tiles[region.owner == k]
    offset[region.tiles] = pointers(cut.cells[region.tiles])[:-1]
    return np.packbits(gather({0: reached}, tiles, np.zeros_like(tiles), offset, cut.cells), bitorder="little")


def _arrive(layout: Layout, t: int, k: int, source: int, bits: Bits, marks: Bits) -> None:
    """Set the marks of what a block of the time before reaches of this one."""
    region, cut = layout.region(t - 1, source), layout.cuts[t]
    tiles = region.tiles[region.owner == k]
    marked = np.unpackbits(bits, count=int(cut.cells[tiles].sum()), bitorder="little")
    _spread(layout, t - 1, k, tiles, marked, marks)


def _spread(layout: Layout, t: int, k: int, tiles: Ints, marked: Bits, marks: Bits) -> None:
    """Set the marks of a block of time t+1 from those of some of its tiles, end to end."""
    cut, at = layout.cuts[t + 1], 0
    for offset, size in zip(cut.cell_offset[tiles].tolist(), cut.cells[tiles].tolist(), strict=True):
        marks[offset : offset + size] |= marked[at : at + size]
        at += size


def _reach(layout: Layout, t: int, k: int, marks: Bits, blocks: dict[int, Heights]) -> tuple[Bits, Bits]:
    """Return which cells of the region marked cells reach, and a bit for each played row."""
    from acegames.kernels.boxes import reach_from

    needed = layout.region(t, k)
    after = layout.following(t + 1, needed, layout.heights(t + 1, needed, blocks))
    reached = np.zeros(int(needed.boxes.base[-1]), dtype=np.uint8)
    played = np.zeros(len(layout.space.tables.reward), dtype=np.uint8)
    reach_from(layout.boxes(t, k), marks, layout.steps(t), after, reached, played)
    return reached, layout.space.packed_rows(t, played)


# -- listed cells: asking for the tasks of three passes -------------------------------------------


UNLIMITED = 2**62  # whether all blocks together take too much is judged by their numbers


@dataclass(frozen=True, eq=False)
class Lists:
    """Which cells are reached, by time (0 .. H) and block; no times if the game is infeasible."""

    keys: list[list[Block]] = field(default_factory=list)  # in order
    number: list[Ints] = field(default_factory=list)  # (K,) of each block
    played: tuple[Bytes, ...] = ()  # a bit for each row of each time, as in `Space`


def explore_listing(
    tasks: Tasks, shared: Shared, layout: Layout, check: Callable[[Sequence[int]], None] = lambda _: None
) -> Lists:
    """Find the cells that feasible play reaches, and list them.

    `check` is called with the numbers of cells of each time that may be reached, after each time of
    the first pass, and may raise.
    """
    asked = _ListingPasses(tasks, shared, layout)
    asked.forward(check)
    asked.backward()
    if not asked.begins_safely():
        return Lists()
    return asked.again()


class _ListingPasses:
    """The three passes, and the tasks that they ask for."""

    def __init__(self, tasks: Tasks, shared: Shared, layout: Layout) -> None:
        self.tasks, self.shared, self.layout = tasks, shared, layout
        self.H = layout.space.game.horizon
        self.keys: list[list[Block]] = [[] for _ in layout.cuts]
        self.safe: list[list[Block]] = [[] for _ in layout.cuts]
        self.needed = [
            [layout.region(t, k).blocks.tolist() for k in range(layout.cuts[t].blocks)] for t in range(self.H)
        ]
        self.needed.append([[] for _ in range(layout.cuts[self.H].blocks)])

    def _forward(
        self,
        task: Callable[..., tuple[Any, ...]],
        roots: Mapping[int, list[Block]],
        inputs: Callable[[int, int], list[Block]],
        done: Callable[[Any], None],
    ) -> Iterator[list[Block]]:
        """Run a task for every block, time by time; yield what it makes of the blocks of a time.

        A task reads `inputs` and what tasks of the time before send to its block, or `roots`.
        """
        arriving = [roots.get(k, []) for k in range(self.layout.cuts[0].blocks)]
        for t, needed in enumerate(self.needed):
            own, following = list[Block](), [list[Block]() for _ in (self.needed[t + 1] if t < self.H else [])]
            for k, blocks in enumerate(needed):
                reads = [*inputs(t, k), *arriving[k]]
                made, *sent = self.tasks.run(task, self.shared, (t, k), reads, made=1 + len(blocks), on_done=done)
                own.append(made)
                for j, block in zip(blocks, sent, strict=True):
                    following[j].append(block)
            arriving = following
            yield own

    def forward(self, check: Callable[[Sequence[int]], None]) -> None:
        """List the cells that may be reached, and count them time by time."""
        numbers = np.zeros(self.H + 1, dtype=np.int64)

        def take_count(numbers_of: tuple[int, int]) -> None:
            t, count = numbers_of
            numbers[t] += count

        roots = {k: [self.tasks.put(cells)] for k, cells in self.layout.roots().items()}
        for t, keys in enumerate(self._forward(list_cells, roots, lambda t, k: [], take_count)):
            self.keys[t] = keys
            self.tasks.finish()  # the numbers of this time decide whether to go on
            check(numbers[: t + 1].tolist())

    def backward(self) -> None:
        """Find the cells from which play is safe to the end."""
        for t in reversed(range(self.H)):
            for k in range(self.layout.cuts[t].blocks):
                reads = [self.keys[t][k], *self._ahead(t, k)]
                self.safe[t] += self.tasks.run(find_safe, self.shared, (t, k), reads)
        self.tasks.finish()

    def _ahead(self, t: int, k: int) -> list[Block]:
        """Return the cells of the blocks that a block needs, each with which of them are safe."""
        own = (self.keys,) if t + 1 == self.H else (self.keys, self.safe)  # at the end all are
        return [blocks[t + 1][j] for j in self.needed[t][k] for blocks in own]

    def begins_safely(self) -> bool:
        """Return whether all cells where play begins are safe."""
        return all(bool(self.safe[0][k].fetch().all()) for k in self.layout.roots())

    def again(self) -> Lists:
        """Leave the cells that safe play reaches."""
        number = [np.zeros(cut.blocks, dtype=np.int64) for cut in self.layout.cuts]
        played = no_rows(self.layout.space)

        def take_counts(numbers: tuple[int, int, int, Bytes | None]) -> None:
            t, k, count, rows = numbers
            number[t][k] = count
            if rows is not None:
                played[t] |= rows

        def inputs(t: int, k: int) -> list[Block]:
            return [self.keys[t][k], *self._ahead(t, k)]

        reached = list(self._forward(keep_reached, {}, inputs, take_counts))
        self.tasks.finish()
        return Lists(reached, number, tuple(played))


# -- tasks ----------------------------------------------------------------------------------------


def list_cells(layout: Layout, what: tuple[int, int], *arriving: Ints) -> tuple[Any, ...]:
    """Return the cells of a block, which others send, and those they lead to, by block."""
    t, k = what
    keys = merged(arriving) if arriving else np.zeros(0, dtype=np.int64)
    if t == layout.space.game.horizon:
        return keys, (t, len(keys))
    following = successors(keys, *stage(layout, t), UNLIMITED)
    cut = layout.cuts[t + 1]
    owner = cut.owner[cut.tile_of(following)]
    return keys, *(following[owner == j] for j in layout.region(t, k).blocks.tolist()), (t, len(keys))


def find_safe(layout: Layout, what: tuple[int, int], keys: Ints, *after: Any) -> tuple[Any, ...]:
    """Find the cells of a block from which some row leads to safe cells only."""
    t, k = what
    lists, safe, _ = _after(layout, t, k, after)
    rows, reached = np.zeros(len(layout.space.tables.reward), bool), np.zeros(len(safe), bool)
    wanted = np.ones(len(keys), dtype=bool)
    return _swept(layout, t, keys, wanted, lists, safe, reached, rows), None


def keep_reached(layout: Layout, what: tuple[int, int], keys: Ints, *blocks: Any) -> tuple[Any, ...]:
    """Return the cells of a block that safe play reaches, and what it sends to other blocks."""
    t, k = what
    H = layout.space.game.horizon
    needed = layout.region(t, k).blocks.tolist() if t < H else []
    count = len(needed) * (1 if t + 1 == H else 2)
    after, arriving = blocks[:count], blocks[count:]
    keep = np.full(len(keys), t == 0)
    for reached in arriving:
        keep |= np.unpackbits(reached, count=len(keys), bitorder="little").view(bool)
    if t == H:
        return keys[keep], (t, k, int(keep.sum()), None)
    lists, safe, ends = _after(layout, t, k, after)
    rows, reached = np.zeros(len(layout.space.tables.reward), bool), np.zeros(len(safe), bool)
    _swept(layout, t, keys, keep, lists, safe, reached, rows)
    sent = [np.packbits(part, bitorder="little") for part in np.split(reached, ends)]
    return keys[keep], *sent[: len(needed)], (t, k, int(keep.sum()), layout.space.packed_rows(t, rows))


def _after(layout: Layout, t: int, k: int, inputs: Sequence[Any]) -> tuple[Ints, Bools, list[int]]:
    """Return the cells of the needed blocks, which are safe, and where all but the first begin."""
    end = t + 1 == layout.space.game.horizon
    lists = list(inputs) if end else list(inputs[::2])
    if not lists:
        return np.zeros(0, np.int64), np.zeros(0, bool), []
    keys = np.concatenate(lists)
    safe = np.ones(len(keys), dtype=bool) if end else np.concatenate(inputs[1::2])
    return keys, safe, np.cumsum([len(x) for x in lists])[:-1].tolist()


@lru_cache(maxsize=4)
def stage(layout: Layout, t: int) -> tuple[Boxes, Transitions, NextLayer]:
    """Return a layer's boxes, its steps, and the next layer's boxes; all arrays writable."""
    layer, after = layout.space.layers[t], layout.space.following(t + 1)
    here = Boxes(*(np.array(x) for x in layer.boxes()))
    own: Any = (np.array(x) for x in after)
    return here, layout.steps(t), NextLayer(*own)


def _swept(
    layout: Layout, t: int, keys: Ints, wanted: Bools, after: Ints, safe: Bools, reached: Bools, rows: Bools
) -> Bools:
    from acegames.kernels.sparse import sweep

    is_safe = np.empty(len(keys), dtype=bool)
    sweep(np.array(keys), wanted, *stage(layout, t), index_of(after), safe, is_safe, reached, rows)
    return is_safe


def index_of(keys: Ints) -> Listed:
    """Make a hash table over cells."""
    return listed(np.array(keys))
