"""Parts of layers, solved from what they are given: tasks.

Where all cells are held, a part is some tiles of a block; where they are listed, a run of a block's
cells. A task solves one part, or a strip of several layers. It returns the values that other tasks
need, and its pieces of the policy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from acegames.concepts import Concept
from acegames.engines.answers import Answers, Failure, joined
from acegames.engines.baseline import Baseline
from acegames.engines.blocks import LayerData, Room, empty_room, solve_block
from acegames.engines.cluster.cutting import Cut, Region, boxes_of, region
from acegames.engines.cluster.known import Known
from acegames.engines.cluster.layout import Layout, gather, region_of
from acegames.engines.cluster.listing import index_of, stage
from acegames.engines.cluster.pieces import counts_of, piece_of
from acegames.engines.repair import repair
from acegames.engines.stages import Programs, Searches, buffers_for
from acegames.kernels.records import Boxes
from acegames.model.arrays import Floats, Ints


class Runs(NamedTuple):
    """The parts of a layer whose cells are listed: runs of the cells of its blocks."""

    block: Ints  # (P,)
    begin: Ints  # (P,)
    end: Ints  # (P,)


@dataclass(frozen=True, eq=False)
class Setting:
    """What the parts of a solve share."""

    layout: Layout
    known: Known | None  # of a small game: then tasks are given no marks and no height maps
    parts: tuple[Cut | Runs, ...]  # of t = 0 .. H-1
    values: tuple[Cut | Runs, ...]  # the blocks of their values: one of each part, or its edges and the rest
    by_cell: tuple[bool, ...]  # whether a layer files an answer for every cell
    concept: Concept
    base: Baseline
    stages: Programs | Searches
    run: int  # cells that are solved at a time
    filed: int  # columns of values that are filed
    together: bool  # whether the pieces of a task are one block: laying down each takes a millisecond

    @property
    def dense(self) -> bool:
        """Whether all cells are held."""
        return bool(self.layout.space.dense)

    @property
    def columns(self) -> int:
        """Of values: with gross ones, where there are several players."""
        n = len(self.layout.space.game.players)
        return n if n == 1 else 2 * n

    def code_type(self, t: int) -> np.dtype[Any]:
        """Return the type in which a layer files its codes."""
        tables = self.layout.space.tables
        rows = int(np.diff(tables.row_ptr[tables.layer_at[t]]).max())
        return np.dtype(np.uint8 if rows < 255 else np.uint16 if tables.widest[0] < 65535 else np.uint32)

    def number(self, t: int) -> int:
        """Return how many parts a layer has."""
        return _number(self.parts[t])

    def returned(self, t: int, p: int) -> range:
        """Return the blocks of values of a part: one, or of a strip within a stretch two."""
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
        """Return the boxes of a part, where they begin among its tiles, and what it needs of t+1."""
        space, tiles = self.layout.space, self.tiles(t, p)
        here, begin = boxes_of(space.layers[t], self.layout.cuts[t], tiles)
        return here, begin, region(space, self.layout.edges, t, here, self.layout.cuts[t + 1])

    def needed(self, t: int, p: int) -> tuple[list[int], list[int]]:
        """Return the blocks, and those of values, of time t+1 that a part needs; the end has no
        values.
        """
        found = self.region(t, p)[2]
        blocks: list[int] = [] if self.known is not None else found.blocks.tolist()
        if t + 1 == self.layout.space.game.horizon:
            return ([] if self.dense else blocks), []
        after = self.values[t + 1]
        if isinstance(after, Cut):
            return blocks, np.unique(after.owner[found.tiles]).tolist()
        return blocks, np.flatnonzero(np.isin(after.block, blocks)).tolist()


def _number(own: Cut | Runs) -> int:
    return own.blocks if isinstance(own, Cut) else len(own.block)


class Wanted(NamedTuple):
    """What a task solves: part p of the times t1-1 down to t0, with what it is given."""

    t0: int
    t1: int
    p: int
    ahead: list[list[int]]  # blocks of the times t1 .. t0+1 of which it is given height maps, or cells
    values: list[int]  # blocks of values of time t1
    beside: list[int]  # strips whose edges it is given, of the times t1-1 .. t0+1
    edged: bool  # whether others are given its own


class Told(NamedTuple):
    """What the driver is told of a part."""

    t: int
    p: int
    counts: Any
    places: tuple[Ints, ...] | None  # the first four fields of its piece
    failure: Failure | None  # its cell is one of the layer


def solve_parts(setting: Setting, what: Wanted, *blocks: Any) -> tuple[Any, ...]:
    """Return the values of t0, the edges of t1-1 .. t0+1 if others are given them, and the pieces
    of the policy of t1-1 .. t0, in one block or in one of each time.

    Given are the marks or the cells of the part's own blocks, then those of the blocks ahead
    (height maps, or cells), unless they are known; then values, then edges.
    """
    times, given = range(what.t1 - 1, what.t0 - 1, -1), iter(blocks)
    own = [None if setting.known is not None else next(given) for _ in times]
    ahead = [{k: next(given) for k in several} for several in what.ahead]
    values = {v: next(given) for v in what.values}
    beside = {2 * q: next(given) for q in what.beside}
    edges, pieces, told = list[Floats](), list[Any](), list[Told]()
    for k, t in enumerate(times):
        found, piece, said = _solve_part(setting, t, what.p, own[k], ahead[k], values)
        pieces.append(piece)
        told.append(said)
        if t > what.t0:
            edges.append(found[0])
            values = dict(zip(setting.returned(t, what.p), found, strict=True))
            values |= {v: several[k] for v, several in beside.items()}
    return *found, *([edges] if what.edged else []), *([pieces] if setting.together else [[x] for x in pieces]), told


def _solve_part(
    setting: Setting, t: int, p: int, own: Any, ahead: dict[int, Any], values: dict[int, Floats]
) -> tuple[list[Floats], Any, Told]:
    """Return blocks of values, the piece of the policy, and what is told of it."""
    make = _held if setting.dense else _listed
    data, runs, first = make(setting, t, p, own, ahead, values)
    found, room = _solved(setting, data)
    reached = None if data.marks is None else data.marks.view(bool)
    pairs = data.cells if reached is None else int(np.count_nonzero(reached))
    made = _split(setting, t, p, room.value.T)
    if found.failure is not None:
        return made, None, Told(t, p, None, None, _placed(found.failure, data, runs, first))
    piece = piece_of(found, reached, runs, first, setting.filed, by_cell=setting.by_cell[t])
    piece = piece._replace(code=piece.code.astype(setting.code_type(t), copy=False))
    return made, piece, Told(t, p, counts_of(piece, found, pairs), piece[:4], None)


def _split(setting: Setting, t: int, p: int, value: Floats) -> list[Floats]:
    """Return the values of a part in the blocks in which they are returned."""
    own, blocks, after = setting.parts[t], setting.returned(t, p), setting.values[t]
    if len(blocks) == 1 or not isinstance(own, Cut) or not isinstance(after, Cut):
        return [value]
    several = (after.tiles(v) for v in blocks)
    return [gather({p: value}, tiles, np.full(len(tiles), p), own.cell_offset, own.cells) for tiles in several]


def _held(
    setting: Setting, t: int, p: int, marks: Any, heights: dict[int, Any], values: dict[int, Floats]
) -> tuple[LayerData, Ints, Ints]:
    """Return the data of a part, where its runs begin, and the first cell of each in the layer."""
    layout, cut, tiles, block = setting.layout, setting.layout.cuts[t], setting.tiles(t, p), setting.block_of(t, p)
    here, begin, found = setting.region(t, p)
    if setting.known is not None:
        own, height = setting.known.marks(layout, t, tiles), setting.known.heights(layout, t + 1, found)
    else:
        unpacked = {block: np.unpackbits(marks, count=int(cut.block_cells[block]), bitorder="little")}
        own = gather(unpacked, tiles, np.full(len(tiles), block), cut.cell_offset, cut.cells)
        height = layout.heights(t + 1, found, heights)
    after = layout.following(t + 1, found, height)
    if values:
        fine = setting.values[t + 1]
        assert isinstance(fine, Cut)
        next_value = gather(values, found.tiles, fine.owner[found.tiles], fine.cell_offset, fine.cells)
    else:
        next_value = np.zeros((setting.columns, int(found.boxes.base[-1])))
    given = (layout.steps(t), rewards(setting, t), after, None, next_value.T, layout.space.tables.widest)
    return LayerData(t, here, own, None, *given), here.base, cut.first[tiles[begin[:-1]]]


def _listed(
    setting: Setting, t: int, p: int, keys: Ints, lists: dict[int, Ints], values: dict[int, Floats]
) -> tuple[LayerData, Ints, Ints]:
    """The same where cells are listed; runs are those of a state."""
    layout, own = setting.layout, setting.parts[t]
    assert isinstance(own, Runs)
    keys = np.array(keys[own.begin[p] : own.end[p]])
    here, steps, after = stage(layout, t)
    ahead = np.concatenate([*lists.values()]) if lists else np.zeros(0, dtype=np.int64)
    next_value = np.zeros((len(ahead), setting.columns))
    if values:
        next_value = np.concatenate([*values.values()], axis=1).T
    given = (steps, rewards(setting, t), after, index_of(ahead), next_value, layout.space.tables.widest)
    begin = np.flatnonzero(np.diff(np.searchsorted(here.base, keys, side="right"), prepend=-1))
    return LayerData(t, here, None, keys, *given), np.append(begin, len(keys)), keys[begin]


@lru_cache(maxsize=4)
def rewards(setting: Setting, t: int) -> Floats:
    """Of all rows, without the baseline of time t."""
    return setting.base.columns(setting.layout.space.tables, t)


@lru_cache(maxsize=1)
def ready(setting: Setting) -> Programs | Searches:
    """Return the solver of stage games; arrays are writable where kernels are compiled for it."""
    choices = setting.stages.choices
    own = choices._replace(deviation=np.array(choices.deviation), first_action=np.array(choices.first_action))
    return replace(setting.stages, choices=own)


def _solved(setting: Setting, data: LayerData) -> tuple[Answers, Room]:
    """Return the answers of all cells; what floats cannot decide is decided exactly."""
    stages, room, end = ready(setting), empty_room(data), data.cells
    if setting.columns == 1 and data.marks is not None:
        found = solve_block(data, 0, end, stages, room)
        absent = data.marks == 0
        np.copyto(room.code, 0, where=absent)
        np.copyto(room.value[:, 0], 0.0, where=absent)
        return found, room
    if isinstance(stages, Programs):
        if not end:
            return Answers(*room), room
        found = stages.share(data, np.zeros(1, np.int64), end, room, buffers_for(data, min(setting.run, end)))
        if found.open:
            found = repair(found, setting.concept, setting.layout.space.game.players, {})
        return found, room
    several = [solve_block(data, a, min(a + setting.run, end), stages, room) for a in range(0, end, setting.run)]
    failed = [x for x in several if x.failure]
    return (failed[0] if failed else joined(*room, several) if several else Answers(*room)), room


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
