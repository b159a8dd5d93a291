"""A block is a run of cells of one layer. It is solved from what it is given and nothing else.

Threads, processes, a cluster and a GPU can run the same blocks: `solve_block` is a function of the
layer's data, the run of cells and the stage solver, and returns what it made. `cut` takes out of a
layer what some of its boxes need, so that a block can travel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from acegames.engines.answers import Answers
from acegames.kernels.records import Boxes, Following, Listed, Source, Steps, Written
from acegames.model.arrays import Floats, Ints, read_only, spans
from acegames.safety.explore import listed
from acegames.safety.space import Space

TABLES = ("row_ptr", "out_ptr", "next_state", "cost", "prob")  # of `Steps`: the game's own


@dataclass(frozen=True, eq=False)
class LayerData:
    """What the stage games of one layer are made of."""

    t: int
    here: Boxes
    marks: NDArray[np.uint8] | None  # which cells are reached, where all cells are held; else
    keys: Ints | None  # the reached cells in order
    step: Steps
    reward: Floats  # (R, 2N), or (R, 1) with one player
    after: Following
    next_listed: Listed | None  # the cells of the next layer, where they are listed
    next_value: Floats  # by cell, or by listed cell, of the next layer
    widest: tuple[int, int]  # most rows of a state, and most outcomes of a state's rows together

    @property
    def cells(self) -> int:
        """How many cells are held or listed."""
        return int(self.here.base[-1]) if self.keys is None else len(self.keys)

    @cached_property
    def source(self) -> Source:
        """The same as kernels read it, which are compiled for tables that are read-only."""
        step, reward = self.step, self.reward
        if reward.flags.writeable:  # it has travelled
            step = step._replace(**{name: read_only(getattr(step, name)) for name in TABLES})
            reward = read_only(reward)
        marks = np.empty(0, np.uint8) if self.marks is None else self.marks
        keys = np.empty(0, np.int64) if self.keys is None else self.keys
        next_listed = _no_cells() if self.next_listed is None else self.next_listed
        dense = self.marks is not None
        next_value = np.ascontiguousarray(self.next_value.T if dense else self.next_value)
        return Source(self.here, dense, marks, keys, step, reward, self.after, next_listed, next_value)


@cache
def _no_cells() -> Listed:
    return listed(np.empty(0, np.int64))


def layer_data(space: Space, t: int, reward: Floats, next_value: Floats) -> LayerData:
    """Return the data of a whole layer of an explored space."""
    here, after = space.layers[t], space.layers[t + 1]
    assert here.cells is not None and after.cells is not None
    marks = here.cells.marks(here.total) if space.dense else None
    keys = None if space.dense else here.cells.keys
    next_listed = None if after.cells.keys is None else listed(after.cells.keys)
    following = space.following(t + 1)
    return LayerData(
        t, here.boxes(), marks, keys, space.steps(t), reward, following, next_listed, next_value, space.tables.widest
    )


class Room(NamedTuple):
    """Where the values and codes of a layer's cells go."""

    value: Floats  # (cells, 2N), or (cells, 1) with one player; column by column in memory
    code: NDArray[Any]


class StageSolver(Protocol):
    """Solves the stage games of cells, and files the answers under them in `room`."""

    def solve(self, data: LayerData, begin: int, end: int, room: Room) -> Answers:
        """Return the answers of the cells begin .. end-1."""


def empty_room(data: LayerData) -> Room:
    """Room for the cells."""
    return Room(np.zeros((data.reward.shape[1], data.cells)).T, np.zeros(data.cells, code_type(data)))


def code_type(data: LayerData) -> type[np.unsignedinteger[Any]]:
    """Return the type of codes. Nearly all games share one, because each is compiled for anew."""
    return np.uint16 if data.widest[0] < 65535 else np.uint32


def solve_block(data: LayerData, begin: int, end: int, solver: StageSolver, room: Room) -> Answers:
    """Solve the stage games of the cells begin .. end-1."""
    if data.marks is not None and data.reward.shape[1] == 1:
        from acegames.kernels.dense import solve_alone

        source = data.source
        rewards, values = (source.reward, np.int64(0)), source.next_value.reshape(-1)
        layer = (source.here, source.step, *rewards, source.after, values, data.widest)
        solve_alone(begin, end, *layer, room.value[begin:end].reshape(-1), room.code[begin:end])
        return Answers(*room)
    return solver.solve(data, begin, end, room)


def solve_all(data: LayerData, solver: StageSolver) -> Answers:
    """Solve the stage games of all cells."""
    return solve_block(data, 0, data.cells, solver, empty_room(data))


def write_out(data: LayerData, cells: Ints) -> tuple[Written, int]:
    """Return the stage games of some cells, in ascending order, with room behind; and their number."""
    length = len(cells)
    entries = length * data.widest[0] + 1  # one more: a row is written before it proves infeasible
    cell, ptr, first_row = (np.empty(n, np.int64) for n in (length, length + 1, length))
    written = Written(cell, ptr, first_row, np.empty(entries, np.int64), np.empty((entries, data.reward.shape[1])))
    from acegames.kernels.cells import write_cells

    return written, write_cells(cells, data.source, data.widest, written)


# -- blocks that travel ---------------------------------------------------------------------------


def needs(data: LayerData, first: int, last: int) -> Ints:
    """Return the boxes of the next layer that the boxes first .. last-1 of this one lead to."""
    step = data.step
    rows = [slice(step.row_ptr[s], step.row_ptr[s + 1] + 1) for s in data.here.states[first:last].tolist()]
    outs = [step.next_state[step.out_ptr[r][0] : step.out_ptr[r][-1]] for r in rows]
    slots = data.after.slot[np.unique(np.concatenate(outs))]
    found: Ints = np.sort(slots[slots >= 0]).astype(np.int64)
    return found


def cut(data: LayerData, first: int, last: int) -> LayerData:
    """Return the data of the boxes first .. last-1 alone, with what they need of the next layer."""
    here = data.here
    begin, end = int(here.base[first]), int(here.base[last])
    base, line = here.base[first : last + 1] - begin, here.line[first : last + 1] - here.line[first]
    states, lo, size = (x[first:last].copy() for x in (here.states, here.lo, here.size))
    boxes = Boxes(states, lo, size, base, line)
    marks, keys = data.marks, data.keys
    if marks is not None:
        marks = marks[begin:end].copy()
    if keys is not None:
        keys = keys[np.searchsorted(keys, begin) : np.searchsorted(keys, end)] - begin
    after, next_listed, next_value = _selected(data, needs(data, first, last))
    return LayerData(data.t, boxes, marks, keys, data.step, data.reward, after, next_listed, next_value, data.widest)


def _selected(data: LayerData, boxes: Ints) -> tuple[Following, Listed | None, Floats]:
    """Return the next layer with some of its boxes only, numbered anew."""
    after = data.after
    slot = np.full_like(after.slot, -1)
    state_of = np.argsort(after.slot, kind="stable")[np.count_nonzero(after.slot < 0) :]
    slot[state_of[boxes]] = np.arange(len(boxes))
    cells, base = spans(after.base[boxes], after.base[boxes + 1])
    lines, line = spans(after.line[boxes], after.line[boxes + 1])
    height = after.height[lines] if len(after.height) else after.height
    own = (after.weight, after.limit[boxes])
    following = Following(slot, after.lo[boxes], after.size[boxes], base, line, height, *own)
    if data.next_listed is None:
        return following, None, data.next_value[cells]
    keys = data.next_listed.keys
    owner = np.searchsorted(after.base, keys, side="right") - 1
    kept = np.flatnonzero(np.isin(owner, boxes))
    at = np.searchsorted(boxes, owner[kept])
    return following, listed(keys[kept] - after.base[owner[kept]] + base[at]), data.next_value[kept]
