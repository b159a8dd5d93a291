"""Tasks of a solve: each solves the stage games of a block, or writes a layer.

A task that solves a block reads which cells of its layer are reached, which the driver lays down
once for all blocks, and the values of the blocks of the next layer that it leads to. It returns its
values, which blocks of the layer before need, and its piece of the policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.engines.answers import Answers, Failure, joined, repair
from acegames.engines.baseline import Baseline
from acegames.engines.checkpoint import write_alone
from acegames.engines.cluster.cutting import Layout, Region
from acegames.engines.cluster.pieces import Counts, LayerAssembly, LayerForm, Piece, counts_of, piece_of, sees
from acegames.engines.stages import LayerData, LayerOutput, Programs, Searches, buffers_for, empty_output, solve_block
from acegames.kernels.records import Boxes, NextLayer, Transitions
from acegames.model.arrays import Bytes, Floats, Ints
from acegames.safety.explore import listed
from acegames.safety.space import Space
from acegames.system.tasks import Block


class ReachedCells(NamedTuple):
    """Which cells of a layer are reached, and what blocks need to know of the next layer."""

    own: NDArray[Any]  # a bit per cell, or the cells
    ahead: NDArray[Any]  # the heights of all lines, or the cells

    @staticmethod
    def of(space: Space, t: int) -> ReachedCells:
        """Take those of a layer of an explored space."""
        here, after = space.cells[t], space.cells[t + 1]
        if here.bits is None:
            assert here.keys is not None and after.keys is not None
            return ReachedCells(here.keys, after.keys)
        assert space.height is not None
        return ReachedCells(here.bits.reshape(-1), space.height[space.line_start[t + 1] : space.line_start[t + 2]])


@dataclass(frozen=True, eq=False)
class TaskContext:
    """What the tasks of a solve share."""

    layout: Layout
    by_cell: tuple[bool, ...]  # whether a layer stores an answer for every cell
    concept: Concept
    base: Baseline
    stages: Programs | Searches
    run: int  # cells that are solved at a time
    stored_columns: int  # columns of values that layers store

    @property
    def dense(self) -> bool:
        """Whether all cells are held."""
        return bool(self.layout.space.dense)

    @property
    def columns(self) -> int:
        """Columns of values: with the sums of absolute rewards, where there are several players."""
        n = len(self.layout.space.game.players)
        return n if n == 1 else 2 * n

    def form(self, t: int, reports: Sequence[BlockReport]) -> LayerForm:
        """Return how a layer is encoded whose blocks have these reports, all of them with
        answers.
        """
        tables, players = self.layout.space.tables, len(self.layout.space.game.players)
        places, counts = [x.places for x in reports], [x.counts for x in reports if x.counts]
        return LayerForm(t, players, self.stored_columns, _code_type(tables, t), places, counts)


def _code_type(tables: Any, t: int) -> np.dtype[Any]:
    """Return the type in which a layer stores its codes."""
    rows = int(np.diff(tables.row_ptr[tables.layer_at[t]]).max())
    return np.dtype(np.uint8 if rows < 255 else np.uint16 if tables.widest[0] < 65535 else np.uint32)


class BlockRequest(NamedTuple):
    """What a task solves: block k of time t."""

    t: int
    k: int
    needed: list[int]  # blocks of the next layer whose values it is given; none at the end


class BlockReport(NamedTuple):
    """What whoever puts a layer together knows of a block before its piece is fetched."""

    counts: Counts | None = None  # None where the block has no answers
    places: tuple[Ints, ...] = ()  # the first four fields of its piece
    failure: Failure | None = None  # its cell is one of the layer; None too if a block that this one needs failed


def solve_stages(
    context: TaskContext, what: BlockRequest, reached: ReachedCells, *values: Floats | None
) -> tuple[Any, ...]:
    """Solve a block: its values, its piece of the policy, its report; then its time.

    There are no values and no piece where a stage game, or a block that this one needs, failed.
    """
    t, make = what.t, _held if context.dense else _listed
    needed = {k: x for k, x in zip(what.needed, values, strict=True) if x is not None}
    if len(needed) < len(values):
        return None, None, BlockReport(), t
    data, runs, first = make(context, what, reached, needed)
    solved, out = _solved(context, data)
    if solved.failure is not None:
        return None, None, BlockReport(failure=_placed(solved.failure, data, runs, first)), t
    marks = None if data.marks is None else data.marks.view(bool)
    piece = piece_of(solved, marks, runs, first, context.stored_columns, by_cell=context.by_cell[t])
    piece = piece._replace(code=piece.code.astype(_code_type(context.layout.space.tables, t), copy=False))
    return out.value.T, piece, BlockReport(counts_of(piece, solved), piece[:4]), t


def _held(
    context: TaskContext, what: BlockRequest, reached: ReachedCells, values: Mapping[int, Floats]
) -> tuple[LayerData, Ints, Ints]:
    """Return the data of a block, where its runs begin, and the first cell of each in the layer."""
    layout, t = context.layout, what.t
    cut, (here, begin, ahead) = layout.cuts[t], layout.region(t, what.k)
    tiles = cut.tiles(what.k)
    first = cut.first[tiles[begin[:-1]]]
    after = layout.following(t + 1, ahead, layout.heights(t + 1, ahead, reached.ahead))
    marks = [_unpacked(reached.own, a, a + n) for a, n in zip(first.tolist(), np.diff(here.base).tolist(), strict=True)]
    own = np.concatenate(marks) if marks else np.zeros(0, np.uint8)
    next_value = _values(context, t + 1, ahead, values)
    inputs = (layout.steps(t), rewards(context, t), after, None, next_value, layout.space.tables.widest)
    return LayerData(t, here, own, None, *inputs), here.base, first


def _unpacked(bits: Bytes, a: int, b: int) -> Bytes:
    """Return the bits a : b as bytes."""
    return np.unpackbits(bits[a // 8 : -(-b // 8)], bitorder="little")[a % 8 : a % 8 + b - a]


def _listed(
    context: TaskContext, what: BlockRequest, reached: ReachedCells, values: Mapping[int, Floats]
) -> tuple[LayerData, Ints, Ints]:
    """Return the data of a block whose cells are listed, where its runs begin, and their cells.

    A run has the cells of one state; the first cell of each is returned.
    """
    layout, t = context.layout, what.t
    _, _, ahead = layout.region(t, what.k)
    keys, next_keys = (
        np.concatenate([own[:0], *(own[a:b] for a, b in zip(cut.entry[tiles], cut.entry[tiles + 1], strict=True))])
        for own, cut, tiles in (
            (reached.own, layout.cuts[t], layout.cuts[t].tiles(what.k)),
            (reached.ahead, layout.cuts[t + 1], ahead.tiles),
        )
    )
    here, steps, after = whole_layer(context, t)
    next_value = _values(context, t + 1, ahead, values)
    inputs = (steps, rewards(context, t), after, listed(next_keys), next_value, layout.space.tables.widest)
    begin = np.flatnonzero(np.diff(np.searchsorted(here.base, keys, side="right"), prepend=-1))
    return LayerData(t, here, None, keys, *inputs), np.append(begin, len(keys)), keys[begin]


def _values(context: TaskContext, t: int, ahead: Region, values: Mapping[int, Floats]) -> Floats:
    """Return the values of a region of time t: zeros at the end."""
    cut = context.layout.cuts[t]
    if values:
        return ahead.gather(cut, values).T
    return np.zeros((context.columns, int(cut.entries[ahead.tiles].sum()))).T


@lru_cache(maxsize=4)
def whole_layer(context: TaskContext, t: int) -> tuple[Boxes, Transitions, NextLayer]:
    """Return a layer's boxes, its steps, and the next layer's boxes; all arrays writable."""
    space = context.layout.space
    own: Any = (np.array(x) for x in space.following(t + 1))
    return Boxes(*(np.array(x) for x in space.layers[t].boxes())), context.layout.steps(t), NextLayer(*own)


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


def forget() -> None:
    """Let go of what this process has prepared for the tasks of a solve."""
    for prepared in (rewards, ready, whole_layer):
        prepared.cache_clear()


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


class WriteRequest(NamedTuple):
    """A layer that a task puts together and writes to the checkpoint folder."""

    t: int
    pieces: list[Block]  # of each block one, which the task fetches itself: a layer may not fit into memory
    sign: str  # a file by which the folder is known
    path: str  # the layer's own file
    digest: str  # of the solve


def write_layer(context: TaskContext, what: WriteRequest, *reports: BlockReport) -> tuple[Any, ...]:
    """Write a layer, unless a block failed; say whether this machine sees the folder."""
    if not sees(what.sign):
        return ((what.t, False),)
    if all(x.counts for x in reports):
        form = context.form(what.t, reports)

        def fill(arrays: Mapping[str, NDArray[Any]]) -> None:
            assembly = LayerAssembly(form, arrays)
            for block in what.pieces:
                piece: Piece = block.fetch()
                assembly.add(piece)

        write_alone(what.path, what.digest, (what.t, *form.totals), form.shapes, fill)
    return ((what.t, True),)
