"""Exploration of layers that hold all cells, in blocks: height maps backward, marks forward.

A block of marks is made from what the blocks before it send: each sends the cells of its region
that it reaches, to the block that holds them. Runs of layers of one block each are one task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.engines.cluster.cutting import Cut, Region
from acegames.engines.cluster.layout import Layout, gather, heights_within
from acegames.model.arrays import Ints, pointers
from acegames.safety.explore import batches, no_rows
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
    """Find the cells that feasible play reaches; `at` says where within a block's share of the
    machines it is explored.
    """
    heights = _ask_heights(tasks, shared, layout, at)
    roots = {k: _within(layout.cuts[0], cells) for k, cells in layout.roots().items()}
    for k, cells in roots.items():
        if not _safe(layout, k, cells, heights[0][k].fetch()):
            return Marked()
    return _ask_marks(tasks, shared, layout, heights, roots, at)


def _stretches(layout: Layout) -> list[tuple[int, int]]:
    """Times t0 .. t1-1 that are explored together."""
    found, t0 = list[tuple[int, int]](), 0
    several = [t for t in range(layout.space.game.horizon) if layout.cuts[t].blocks > 1]
    for t in [*several, layout.space.game.horizon]:
        found += [(t0 + a, t0 + b) for a, b in batches(layout.space.totals[t0:t], RUN_CELLS)]
        if t < layout.space.game.horizon:
            found.append((t, t + 1))
        t0 = t + 1
    return found


# -- height maps ----------------------------------------------------------------------------------


def _ask_heights(tasks: Tasks, shared: Shared, layout: Layout, at: float) -> list[list[Block]]:
    found: list[list[Block]] = [[] for _ in layout.cuts]
    for t0, t1 in reversed(_stretches(layout)):
        for k in range(layout.cuts[t0].blocks):
            needed = [found[t1][j] for j in _needed(layout, t1 - 1, k)]
            place = (k + at) / layout.cuts[t0].blocks
            made = tasks.run(make_heights, shared, (t0, t1, k), needed, made=t1 - t0, at=place)
            for t, block in zip(reversed(range(t0, t1)), made, strict=True):
                found[t].append(block)
    tasks.finish()
    return found


def _needed(layout: Layout, t: int, k: int) -> list[int]:
    """Return the blocks of time t+1 that a block needs; none of the end, where all is safe."""
    end = t + 1 == layout.space.game.horizon
    blocks: list[int] = [] if end else layout.region(t, k).blocks.tolist()
    return blocks


def make_heights(layout: Layout, what: tuple[int, int, int], *blocks: Heights) -> tuple[Any, ...]:
    """Return the height maps of block k of the times t1-1 down to t0, where t1 = t0 + 1 or k = 0."""
    t0, t1, k = what
    found, following = list[Heights](), dict(zip(_needed(layout, t1 - 1, k), blocks, strict=True))
    for t in reversed(range(t0, t1)):
        found.append(_heights(layout, t, k, following))
        following = {k: found[-1]}
    return *found, None


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
    """Return cells of the layer as cells of the blocks that hold them."""
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

    def told(numbers: tuple[int, int, Sequence[tuple[int, Bits]]]) -> None:
        t0, k, several = numbers
        for t, (count, rows) in enumerate(several, t0):
            number[t][k] = count
            played[t] |= rows

    arriving: list[dict[int, Block]] = [{} for _ in range(cuts[0].blocks)]  # by block, from blocks before
    for t0, t1 in _stretches(layout):
        following: list[dict[int, Block]] = [{} for _ in range(cuts[t1].blocks)]
        for k in range(cuts[t0].blocks):
            needed = _needed(layout, t1 - 1, k)
            sources = sorted(arriving[k])
            given = [*_heights_for(layout, heights, t0, t1, k), *(arriving[k][j] for j in sources)]
            what = (t0, t1, k, roots.get(k) if t0 == 0 else None, sources)
            number_made, place = t1 - t0 + len(needed), (k + at) / cuts[t0].blocks
            made = tasks.run(make_marks, shared, what, given, made=number_made, told=told, at=place)
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
    """Return the marks of block k of the times t0 .. t1-1, and what it reaches of each block it
    needs.
    """
    t0, t1, k, roots, sources = what
    cut, given = layout.cuts[t0], iter(blocks)
    needed = {t: {j: next(given) for j in _needed(layout, t, k)} for t in range(t0, t1)}
    marks = np.zeros(int(cut.block_cells[k]), dtype=np.uint8)
    if roots is not None:
        marks[roots] = 1
    for source, bits in zip(sources, given, strict=True):
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
    """Return what is reached of the tiles that block k holds, as bits."""
    offset, tiles = np.empty(len(cut.slot), dtype=np.int64), region.tiles[region.owner == k]
    offset[region.tiles] = pointers(cut.cells[region.tiles])[:-1]
    return np.packbits(gather({0: reached}, tiles, np.zeros_like(tiles), offset, cut.cells), bitorder="little")


def _arrive(layout: Layout, t: int, k: int, source: int, bits: Bits, marks: Bits) -> None:
    """Set the marks of what a block of the time before reaches of this one."""
    region, cut = layout.region(t - 1, source), layout.cuts[t]
    tiles = region.tiles[region.owner == k]
    found = np.unpackbits(bits, count=int(cut.cells[tiles].sum()), bitorder="little")
    _spread(layout, t - 1, k, tiles, found, marks)


def _spread(layout: Layout, t: int, k: int, tiles: Ints, found: Bits, marks: Bits) -> None:
    """Set the marks of a block of time t+1 from those of some of its tiles, end to end."""
    cut, at = layout.cuts[t + 1], 0
    for offset, size in zip(cut.cell_offset[tiles].tolist(), cut.cells[tiles].tolist(), strict=True):
        marks[offset : offset + size] |= found[at : at + size]
        at += size


def _reach(layout: Layout, t: int, k: int, marks: Bits, blocks: dict[int, Heights]) -> tuple[Bits, Bits]:
    """Return what marked cells reach of the region, and a bit for each row, whether it is played."""
    from acegames.kernels.boxes import reach_from

    needed = layout.region(t, k)
    after = layout.following(t + 1, needed, layout.heights(t + 1, needed, blocks))
    found = np.zeros(int(needed.boxes.base[-1]), dtype=np.uint8)
    played = np.zeros(len(layout.space.tables.reward), dtype=np.uint8)
    reach_from(layout.boxes(t, k), marks, layout.steps(t), after, found, played)
    return found, layout.space.packed_rows(t, played)
