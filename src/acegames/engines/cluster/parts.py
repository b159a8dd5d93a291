"""Tasks that solve parts of layers, and small layers in strips, several layers to a task.

Where all cells are held, a *part* is some tiles of a block; where they are listed, a run of a
block's cells. A task solves one part, or a strip of several layers. It returns the values that
other tasks need, and its pieces of the policy.

A *time tile* is some times that follow each other, a *strip* some slabs of all their layers. Where
no step lowers the total of the first constraint, play stays in its strip or rises into a higher
one. So one task can solve a strip of all layers of a time tile, the last time first. It reads the
values at the end of the time tile, and the *halos* of higher strips: the tiles that lower strips
lead to. These are a strip's first slab, which is as wide as a step is long, and the first tile of
each box, where all totals are counted that do not matter any more. Within a time tile nothing else
is needed of a strip by others. Its values at the first time of the time tile are one block, which
goes to the strips of the time tile before that have the same totals, or the next lower ones, and
seldom to others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from acegames.concepts import Concept
from acegames.engines.answers import Answers, Failure, joined, repair
from acegames.engines.baseline import Baseline
from acegames.engines.cluster.cutting import Cut, Layout, Region, boxes_of, gather, region, region_of
from acegames.engines.cluster.explore_tasks import index_of, stage
from acegames.engines.cluster.explored import ReachedCells
from acegames.engines.cluster.pieces import counts_of, piece_of
from acegames.engines.stages import LayerData, LayerOutput, Programs, Searches, buffers_for, empty_output, solve_block
from acegames.kernels.records import Boxes
from acegames.model.arrays import Floats, Ints
from acegames.safety.space import Space

STRIPS_EACH = 3  # for each worker
SLABS_EACH = 3  # of a strip, so that strips can be of about the same size
TASKS_EACH = 14  # for each worker at least
ENDS = 2  # times smaller are the first tasks and the last


class StripPlan(NamedTuple):
    """How small layers are cut."""

    number: int  # of strips
    cells: float  # of a task, about
    least: float  # of one of the first and the last times
    slab: int  # totals of a slab
    begin: int  # the first total of the first slab


def plan_strips(space: Space, wanted: float, workers: int, most: float) -> StripPlan | None:
    """Plan strips with about `wanted` cells in a task; None where strips are no help.

    That is where a layer is enough for tasks, or has more than `most` cells, or strips would need
    each other both ways.
    """
    cost, H = space.tables.cost[:, 0], space.game.horizon
    if not len(cost) or cost.min() < 0 or not 0 < space.totals[:H].max() <= most:
        return None
    ends = [(int(x.lo[:, 0].min()), int((x.lo[:, 0] + x.size[:, 0]).max())) for x in space.layers[:H] if len(x.lo)]
    begin, end = min(a for a, _ in ends), max(b for _, b in ends)
    number = min(STRIPS_EACH * workers, (end - begin) // max(int(cost.max()), 1))
    total = int(space.totals[:H].sum())
    cells, least = (min(wanted, total / (each * workers)) for each in (TASKS_EACH, ENDS * TASKS_EACH))
    if number < workers or STRIPS_EACH * workers * cells < total / H:
        return None
    return StripPlan(number, cells, least, max(int(cost.max()), (end - begin) // (SLABS_EACH * number), 1), begin)


@dataclass(frozen=True, eq=False)
class TimeTile:
    """The strips of the times t0 .. t1-1."""

    t0: int
    t1: int
    bounds: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # (K+1,) where the slabs of each strip begin
    beginning: tuple[bool, ...] = ()  # whether a box of the times t0+1 .. t1-1 begins in a strip
    cells: tuple[float, ...] = ()  # of each strip

    def halo_strips(self, k: int) -> list[int]:
        """Return the strips whose halo strip k needs."""
        if self.t1 - self.t0 == 1:
            return []
        return [q for q in range(k + 1, len(self.beginning)) if q == k + 1 or self.beginning[q]]

    def gives_halo(self, k: int) -> bool:
        """Return whether lower strips need the halo of strip k."""
        return k > 0 and self.t1 - self.t0 > 1

    def work(self, k: int) -> float:
        """Return how much there is to solve in strip k, compared with others."""
        return max(self.cells[k], 1.0) if self.cells else 1.0

    def strips(self, cut: Cut) -> Cut:
        """Cut a layer into the strips."""
        slabs = cut.slabs[cut.order]
        return replace(cut, block=np.searchsorted(slabs, self.bounds))

    def split_halos(self, cut: Cut) -> Cut:
        """Cut a layer into 2k, the halo of strip k, and 2k+1, the rest of it."""
        slabs, number = cut.slabs, len(self.bounds) - 1
        strip = np.searchsorted(self.bounds, slabs, side="right") - 1
        own = 2 * strip + 1
        own[slabs == self.bounds[strip]] -= 1
        own[cut.first_of_box] = 2 * strip[cut.first_of_box]
        order = np.argsort(own, kind="stable")
        return replace(cut, order=order, block=np.searchsorted(own[order], np.arange(2 * number + 1)))


def time_tiles(strips: StripPlan, cuts: Sequence[Cut], number: Sequence[Ints]) -> list[TimeTile]:
    """Return the time tiles of a game, whose tiles have so many reached cells, the last first.

    Where strips begin is the same at all times, though their shares of a layer are not: so they
    never need lower ones, and the highest run ahead. At the first times and the last one strip has
    nearly all cells: so time tiles are cut by the largest of their strips, and strips that are next
    to each other and have little are put together. All workers but one wait for the first task, and
    for the last: so those have less.
    """
    cuts = cuts[:-1]
    slabs = max(int(cut.slabs.max(initial=0)) for cut in cuts) + 1
    each = [np.bincount(cut.slabs, weights=own, minlength=slabs) for cut, own in zip(cuts, number, strict=True)]
    bounds = _even_runs(np.sum(each, axis=0), strips.number)
    strip = np.searchsorted(bounds, np.arange(slabs), side="right") - 1
    cells = np.array([np.bincount(strip, weights=own, minlength=strips.number) for own in each])
    tiles, t1, total = list[TimeTile](), len(cuts), float(cells.sum())
    while t1:
        left = float(cells[:t1].sum())
        most = max(min(strips.cells, min(left, total - left) / strips.number), strips.least)
        t0 = _first(cells[:t1], most)
        own = cells[t0:t1].sum(axis=0)
        inner = _joined(own, most)
        tiles.append(_time_tile(cuts, bounds[inner], np.add.reduceat(own, inner[:-1]), t0, t1))
        t1 = t0
    return tiles


def _first(cells: Floats, most: float) -> int:
    """Return the first of the last times (of T, K) whose strips have at most so many cells each."""
    together = np.cumsum(cells[::-1], axis=0).max(axis=1)
    return len(cells) - max(int(np.searchsorted(together, most, side="right")), 1)


def _joined(sizes: Floats, most: float) -> list[int]:
    """Put neighbours together that have at most so much, the highest first; return the bounds."""
    bounds, held = [len(sizes)], 0.0
    for k in range(len(sizes) - 1, -1, -1):
        if held and held + sizes[k] > most:
            bounds.append(k + 1)
            held = 0.0
        held += sizes[k]
    return [0, *reversed(bounds)]


def _time_tile(cuts: Sequence[Cut], bounds: Ints, cells: Floats, t0: int, t1: int) -> TimeTile:
    """Return the time tile with these strips, which have so many cells."""
    firsts = (np.searchsorted(bounds, cut.slabs[cut.first_of_box], side="right") - 1 for cut in cuts[t0 + 1 : t1])
    begins = [np.bincount(own, minlength=len(bounds) - 1) > 0 for own in firsts]  # whether boxes begin in a strip
    beginning = tuple(np.any(begins, axis=0).tolist()) if begins else ()
    return TimeTile(t0, t1, bounds, beginning, tuple(cells.tolist()))


def _even_runs(sizes: Floats, number: int) -> Ints:
    """Cut slabs of these sizes into runs of about the same size, none of them empty."""
    ends = np.cumsum(sizes)
    wanted = ends[-1] * np.arange(1, number) / number
    cuts = np.searchsorted(ends, wanted, side="left")
    nearer = np.abs(ends[np.maximum(cuts - 1, 0)] - wanted) < np.abs(ends[cuts] - wanted)
    inner = np.where(nearer, cuts, cuts + 1)
    for k in range(number - 1):
        least = inner[k - 1] + 1 if k else 1
        inner[k] = min(max(inner[k], least), len(sizes) - (number - 1 - k))
    return np.concatenate([[0], inner, [2**62]]).astype(np.int64)


# -- parts ----------------------------------------------------------------------------------------


class Runs(NamedTuple):
    """The parts of a layer whose cells are listed: runs of the cells of its blocks."""

    block: Ints  # (P,)
    begin: Ints  # (P,)
    end: Ints  # (P,)


@dataclass(frozen=True, eq=False)
class TaskContext:
    """What the parts of a solve share."""

    layout: Layout
    known: ReachedCells | None  # of a small game: then tasks read no marks and no height maps
    parts: tuple[Cut | Runs, ...]  # of t = 0 .. H-1
    values: tuple[Cut | Runs, ...]  # the blocks of their values: one of each part, or its halo and the rest
    by_cell: tuple[bool, ...]  # whether a layer stores an answer for every cell
    concept: Concept
    base: Baseline
    stages: Programs | Searches
    run: int  # cells that are solved at a time
    stored_columns: int  # columns of values that layers store
    together: bool  # whether the pieces of a task are one block: laying down each takes a millisecond

    @property
    def dense(self) -> bool:
        """Whether all cells are held."""
        return bool(self.layout.space.dense)

    @property
    def columns(self) -> int:
        """Columns of values: with the sums of absolute rewards, where there are several players."""
        n = len(self.layout.space.game.players)
        return n if n == 1 else 2 * n

    def code_type(self, t: int) -> np.dtype[Any]:
        """Return the type in which a layer stores its codes."""
        tables = self.layout.space.tables
        rows = int(np.diff(tables.row_ptr[tables.layer_at[t]]).max())
        return np.dtype(np.uint8 if rows < 255 else np.uint16 if tables.widest[0] < 65535 else np.uint32)

    def number(self, t: int) -> int:
        """Return how many parts a layer has."""
        return _number(self.parts[t])

    def returned(self, t: int, p: int) -> range:
        """Return the blocks of values of a part: one, or two for a strip within a time tile."""
        each = _number(self.values[t]) // max(self.number(t), 1)
        return range(each * p, each * (p + 1))

    def block_of(self, t: int, p: int) -> int:
        """Return the block that a part belongs to."""
        own = self.parts[t]
        if isinstance(own, Cut):
            return int(self.layout.cuts[t].owner[own.order[own.block[p]]]) if own.block[p] < own.block[-1] else 0
        return int(own.block[p])

    def tiles(self, t: int, p: int) -> Ints:
        """Return the tiles of a part, or of the block it belongs to."""
        own = self.parts[t]
        return own.tiles(p) if isinstance(own, Cut) else self.layout.cuts[t].tiles(self.block_of(t, p))

    def region(self, t: int, p: int) -> tuple[Boxes, Ints, Region]:
        """Return the boxes of a part, where they begin among its tiles, and its region of t+1."""
        space, tiles = self.layout.space, self.tiles(t, p)
        here, begin = boxes_of(space.layers[t], self.layout.cuts[t], tiles)
        return here, begin, region(space, self.layout.graph, t, here, self.layout.cuts[t + 1])

    def needed(self, t: int, p: int) -> tuple[list[int], list[int]]:
        """Return the blocks, and the blocks of values, of time t+1 that a part needs.

        The end has no values.
        """
        ahead = self.region(t, p)[2]
        blocks: list[int] = [] if self.known is not None else ahead.blocks.tolist()
        if t + 1 == self.layout.space.game.horizon:
            return ([] if self.dense else blocks), []
        after = self.values[t + 1]
        if isinstance(after, Cut):
            return blocks, np.unique(after.owner[ahead.tiles]).tolist()
        return blocks, np.flatnonzero(np.isin(after.block, blocks)).tolist()


def _number(own: Cut | Runs) -> int:
    return own.blocks if isinstance(own, Cut) else len(own.block)


class PartRequest(NamedTuple):
    """What a task solves: part p of the times t1-1 down to t0, with what it reads."""

    t0: int
    t1: int
    p: int
    ahead: list[list[int]]  # blocks of the times t1 .. t0+1 of which it reads height maps, or cells
    values: list[int]  # blocks of values of time t1
    halo: list[int]  # strips whose halos it reads, of the times t1-1 .. t0+1
    gives_halo: bool  # whether others are given its own


class PartReport(NamedTuple):
    """What the driver learns of a part."""

    t: int
    p: int
    counts: Any
    places: tuple[Ints, ...] | None  # the first four fields of its piece
    failure: Failure | None  # its cell is one of the layer


def solve_parts(context: TaskContext, what: PartRequest, *blocks: Any) -> tuple[Any, ...]:
    """Solve a part: the values of t0, then halos, then pieces of the policy, then reports.

    Halos, of t1-1 .. t0+1, are returned if others need them. Pieces of t1-1 .. t0 are in one block
    or in one of each time.

    `blocks` are the marks or the cells of the part's own blocks, then the height maps or the cells
    of the blocks ahead, unless the context has them; then values, then halos.
    """
    times, inputs = range(what.t1 - 1, what.t0 - 1, -1), iter(blocks)
    own = [None if context.known is not None else next(inputs) for _ in times]
    ahead = [{k: next(inputs) for k in several} for several in what.ahead]
    values = {v: next(inputs) for v in what.values}
    halo = {2 * q: next(inputs) for q in what.halo}
    halos, pieces, reports = list[Floats](), list[Any](), list[PartReport]()
    for k, t in enumerate(times):
        made, piece, report = _solve_part(context, t, what.p, own[k], ahead[k], values)
        pieces.append(piece)
        reports.append(report)
        if t > what.t0:
            halos.append(made[0])
            values = dict(zip(context.returned(t, what.p), made, strict=True))
            values |= {v: several[k] for v, several in halo.items()}
    return (
        *made,
        *([halos] if what.gives_halo else []),
        *([pieces] if context.together else [[x] for x in pieces]),
        reports,
    )


def _solve_part(
    context: TaskContext, t: int, p: int, own: Any, ahead: dict[int, Any], values: dict[int, Floats]
) -> tuple[list[Floats], Any, PartReport]:
    """Return the blocks of values of a part, its piece of the policy, and the report."""
    make = _held if context.dense else _listed
    data, runs, first = make(context, t, p, own, ahead, values)
    solved, out = _solved(context, data)
    reached = None if data.marks is None else data.marks.view(bool)
    pairs = data.cells if reached is None else int(np.count_nonzero(reached))
    made = _split(context, t, p, out.value.T)
    if solved.failure is not None:
        return made, None, PartReport(t, p, None, None, _placed(solved.failure, data, runs, first))
    piece = piece_of(solved, reached, runs, first, context.stored_columns, by_cell=context.by_cell[t])
    piece = piece._replace(code=piece.code.astype(context.code_type(t), copy=False))
    return made, piece, PartReport(t, p, counts_of(piece, solved, pairs), piece[:4], None)


def _split(context: TaskContext, t: int, p: int, value: Floats) -> list[Floats]:
    """Split the values of a part into the blocks in which they are returned."""
    own, blocks, after = context.parts[t], context.returned(t, p), context.values[t]
    if len(blocks) == 1 or not isinstance(own, Cut) or not isinstance(after, Cut):
        return [value]
    several = (after.tiles(v) for v in blocks)
    return [gather({p: value}, tiles, np.full(len(tiles), p), own.cell_offset, own.cells) for tiles in several]


def _held(
    context: TaskContext, t: int, p: int, marks: Any, heights: dict[int, Any], values: dict[int, Floats]
) -> tuple[LayerData, Ints, Ints]:
    """Return the data of a part, where its runs begin, and the first cell of each in the layer."""
    layout, cut, tiles, block = context.layout, context.layout.cuts[t], context.tiles(t, p), context.block_of(t, p)
    here, begin, ahead = context.region(t, p)
    if context.known is not None:
        own, height = context.known.marks(layout, t, tiles), context.known.heights(layout, t + 1, ahead)
    else:
        unpacked = {block: np.unpackbits(marks, count=int(cut.block_cells[block]), bitorder="little")}
        own = gather(unpacked, tiles, np.full(len(tiles), block), cut.cell_offset, cut.cells)
        height = layout.heights(t + 1, ahead, heights)
    after = layout.following(t + 1, ahead, height)
    if values:
        fine = context.values[t + 1]
        assert isinstance(fine, Cut)
        next_value = gather(values, ahead.tiles, fine.owner[ahead.tiles], fine.cell_offset, fine.cells)
    else:
        next_value = np.zeros((context.columns, int(ahead.boxes.base[-1])))
    inputs = (layout.steps(t), rewards(context, t), after, None, next_value.T, layout.space.tables.widest)
    return LayerData(t, here, own, None, *inputs), here.base, cut.first[tiles[begin[:-1]]]


def _listed(
    context: TaskContext, t: int, p: int, keys: Ints, lists: dict[int, Ints], values: dict[int, Floats]
) -> tuple[LayerData, Ints, Ints]:
    """Return the data of a part whose cells are listed, where its runs begin, and their cells.

    A run has the cells of one state; the first cell of each is returned.
    """
    layout, own = context.layout, context.parts[t]
    assert isinstance(own, Runs)
    keys = np.array(keys[own.begin[p] : own.end[p]])
    here, steps, after = stage(layout, t)
    ahead = np.concatenate([*lists.values()]) if lists else np.zeros(0, dtype=np.int64)
    next_value = np.zeros((len(ahead), context.columns))
    if values:
        next_value = np.concatenate([*values.values()], axis=1).T
    inputs = (steps, rewards(context, t), after, index_of(ahead), next_value, layout.space.tables.widest)
    begin = np.flatnonzero(np.diff(np.searchsorted(here.base, keys, side="right"), prepend=-1))
    return LayerData(t, here, None, keys, *inputs), np.append(begin, len(keys)), keys[begin]


@lru_cache(maxsize=4)
def rewards(context: TaskContext, t: int) -> Floats:
    """Return the rewards of all rows less the baseline of time t."""
    return context.base.columns(context.layout.space.tables, t)


@lru_cache(maxsize=1)
def ready(context: TaskContext) -> Programs | Searches:
    """Return the solver of stage games with arrays that are writable where kernels expect it."""
    choices = context.stages.choices
    own = choices._replace(deviation=np.array(choices.deviation), first_action=np.array(choices.first_action))
    return replace(context.stages, choices=own)


def _solved(context: TaskContext, data: LayerData) -> tuple[Answers, LayerOutput]:
    """Solve all cells; what floats cannot decide is decided exactly."""
    stages, out, end = ready(context), empty_output(data), data.cells
    if context.columns == 1 and data.marks is not None:
        solved = solve_block(data, 0, end, stages, out)
        absent = data.marks == 0
        np.copyto(out.code, 0, where=absent)
        np.copyto(out.value[:, 0], 0.0, where=absent)
        return solved, out
    if isinstance(stages, Programs):
        if not end:
            return Answers(*out), out
        solved = stages.share(data, np.zeros(1, np.int64), end, out, buffers_for(data, min(context.run, end)))
        if solved.open:
            solved = repair(solved, context.concept, context.layout.space.game.players, {})
        return solved, out
    several = [solve_block(data, a, min(a + context.run, end), stages, out) for a in range(0, end, context.run)]
    failed = [x for x in several if x.failure]
    return (failed[0] if failed else joined(*out, several) if several else Answers(*out)), out


def _placed(failure: Failure, data: LayerData, runs: Ints, first: Ints) -> Failure:
    """Return the failure with its cell as one of the layer."""
    if data.keys is not None:
        return failure._replace(cell=int(data.keys[failure.cell]))
    run = int(np.searchsorted(runs, failure.cell, side="right")) - 1
    return failure._replace(cell=int(first[run] + failure.cell - runs[run]))


def forget() -> None:
    """Let go of what this process has prepared for the tasks of a solve."""
    for prepared in (rewards, ready, stage, region_of):
        prepared.cache_clear()
