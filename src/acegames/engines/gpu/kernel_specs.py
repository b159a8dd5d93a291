"""What is compiled for a card and what lies on it: kernels by shape of stage game, and tables.

A `Shape` says what the kernels of a game are compiled for; `kernel_spec` gives them. `DeviceTables`
holds the tables and boxes of all times on a card, with views of one layer for kernels.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.kernels import device
from acegames.kernels.dense import SEGMENT, allocate_line
from acegames.kernels.device import DeviceLayer, OwnCell, OwnGroup, OwnWork
from acegames.kernels.intrinsics import WARP, Warp
from acegames.kernels.lanes_llvm import ALONE
from acegames.kernels.lockstep import allocate_group
from acegames.kernels.records import Choices, NextLayer, StageGames
from acegames.kernels.stage import pure_workspace, workspace
from acegames.model.arrays import Ints, pointers
from acegames.safety.cells import number_boxes
from acegames.safety.explore import bit_starts
from acegames.safety.space import Space
from acegames.stage.program import deviation_table
from acegames.system.axes import example
from acegames.system.cuda_card import RESIDENT
from acegames.system.cuda_code import KernelSpec

GAMES = 64  # threads of a block where each solves any stage game
THREADS_PER_BLOCK = 256  # of a block where each solves a regular one: a multiprocessor has registers for so many
FEWEST_THREADS = 64  # if there is shared memory for fewer tables, each is in its thread's own memory
MOST_UNROLLED = 160  # places of a table up to which code that names each is fast, and
MOST_BY_THREAD = 320, 256  # with two players, with more: up to which a thread is faster than a warp
# (`benchmarks/gpu.py programs`: CCE of 5x5 has 312, faster by threads; of 3x3x3 308, by warps)
WARPS = 32  # blocks per multiprocessor where a warp solves a plain game; else there is one
MOST_ROWS = 64  # joint actions of a state: a bit for each
FEW = 16  # joint actions up to which one thread solves any game as fast as a processor
MOST_SHARED = 48 * 1024  # bytes of shared memory of a block of which a multiprocessor should have several
SHARED = {(7, 5): 64, (8, 0): 163, (8, 7): 163, (9, 0): 227, (10, 0): 227, (10, 3): 227, (11, 0): 227}  # KB of a block
LEAST_SHARED = 99  # KB of a block of other cards
ROLLED = ("acegames.kernels.regular", "disable"), ("acegames.kernels.lockstep", "disable")
UNROLLED = (("acegames.kernels.regular", "full"),)
DEVIATIONS = "group.owner", "group.target", "group.recommended"
NUMBERING = 1024  # threads of the block that numbers strips of cells


class KernelEntry(NamedTuple):
    """What the threads of a kernel do, the record that it takes, and the threads of a block."""

    phases: tuple[Any, ...]
    record: Any
    threads: int = SEGMENT


KERNELS = {  # those first that take longest to compile
    "left": KernelEntry((device.solve_fallback_games,), device.Solving, GAMES),
    "cells": KernelEntry((device.prepare_cell_rows, device.solve_pure_cell), device.Solving),
    "plain": KernelEntry((device.solve_regular_by_thread,), device.Solving),
    "read_open": KernelEntry((device.read_open_game,), device.Opening, GAMES),
    "mend": KernelEntry((device.apply_repair,), device.Repairing, GAMES),
    "strips": KernelEntry((device.count_strip,), device.Counting),
    "numbers": KernelEntry((device.sum_strips, device.prefix_sums, device.number_strips), device.Counting, NUMBERING),
    "file_cells": KernelEntry((device.encode_cell,), device.Encoding),
    "file_records": KernelEntry((device.encode_mixed,), device.Encoding),
}


@dataclass(frozen=True)
class Shape:
    """What kernels are compiled for; numbers are rounded up, so that games share kernels."""

    rows: int  # most joint actions of a state; or all that there are, where some state has half of them
    outcomes: int  # most outcomes of a state's rows
    constraints: int  # that boxes count
    players: int
    actions: tuple[int, ...]
    correlated: bool
    warp: bool = False  # whether a warp solves a plain game, else a thread
    uniform_actions: bool = False  # whether kernels know all joint actions; those that a state lacks are infeasible
    shared: int = LEAST_SHARED  # KB of a block on the card

    @staticmethod
    def of(space: Space, capability: tuple[int, int], concept: Concept) -> Shape:
        """Return the shape of a game's stage games under a concept."""
        rows, outcomes = space.tables.widest
        actions = tuple(len(labels) for labels in space.game.actions)
        rows = prod(actions) if prod(actions) <= min(2 * rows, MOST_ROWS) else rows
        rounded = max(1 << (outcomes - 1).bit_length(), 32)
        shape = Shape(rows, rounded, space.budget.shape[1], len(actions), actions, concept.interim)
        uniform = rows == prod(actions) and all(concept.deviators(space.game.players))
        shared = SHARED.get(capability, LEAST_SHARED)
        return replace(shape, warp=shape.wants_warp, uniform_actions=uniform, shared=shared)

    @property
    def wants_warp(self) -> bool:
        """Whether a warp solves plain games faster."""
        return bool(self.group.table.size > MOST_BY_THREAD[self.players > 2])

    @cached_property
    def group(self) -> Any:
        """Room for a plain game; without joint actions where there is none."""
        actions, team = np.array(self.actions), Warp(0) if self.warp else None
        own = allocate_group(
            self.rows, self.players, actions, self.correlated, 1, team, keep_gains=self.warp or not self.uniform_actions
        )
        names, kind = ("whole", "owner", "target", "recommended"), np.int16 if own.table.size < 2**15 else np.int32
        return own._replace(**{name: getattr(own, name).astype(kind) for name in names})

    @property
    def together(self) -> bool:
        """Whether plain games are solved apart."""
        return len(self.group.row) > 1

    def fits(self, *, comparing: bool) -> bool:
        """Return whether the card solves such games, and faster than processors."""
        large = self.rows > FEW and (self.rows > MOST_ROWS or comparing or not self.together)
        return not large and self.has_room("plain", "cells")

    def has_room(self, *names: str) -> bool:
        """Return whether there is shared memory for these kernels."""
        return all(kernel_spec(name, self).shared_bytes <= 1024 * self.shared for name in names)

    @property
    def blocks(self) -> int:
        """Blocks per multiprocessor that solve plain games."""
        return WARPS if self.warp else 1

    @cached_property
    def own_bytes(self) -> int:
        """Memory that a multiprocessor's threads need for games that are not plain."""
        return RESIDENT * kernel_spec("left", self).stack_bytes

    @cached_property
    def shared_choices(self) -> Choices:
        """All joint actions, where kernels know them; else no rows."""
        counts = np.array(self.actions)
        action = np.indices(self.actions, dtype=np.int32).reshape(self.players, -1).T
        deviation = deviation_table(np.zeros(len(action), np.int64), action, counts, (True,) * self.players)
        count = len(action) if self.uniform_actions else 0
        return Choices(np.ascontiguousarray(action)[:count], deviation[:count], pointers(counts))

    def joint(self, action: NDArray[np.int32], row_ptr: Ints) -> NDArray[np.uint8]:
        """Return the numbers of rows among all joint actions, where kernels know them; else within
        the state.
        """
        number = np.arange(len(action)) - np.repeat(row_ptr[:, :-1], np.diff(row_ptr).ravel())
        if self.uniform_actions:
            number = np.ravel_multi_index(tuple(action.T), self.actions)
        return number.astype(np.uint8)

    @cached_property
    def written(self) -> Any:
        """Room for one game."""
        cell, ptr, first_row, row = (np.empty(n, np.int64) for n in (1, 2, 1, self.rows))
        return StageGames(cell, ptr, first_row, row, np.empty((self.rows, 2 * self.players)))


@cache
def kernel_spec(name: str, shape: Shape) -> KernelSpec:
    """Return the kernel for a shape, always as the same object: cards know it by that."""
    kernel, line = KERNELS[name], allocate_line((shape.rows, shape.outcomes))
    made = KernelSpec(name, kernel.phases, kernel.threads, scalar_types=ALONE)
    spent, ends = np.empty(shape.constraints, np.int64), np.empty(3, np.int64)
    if name == "numbers":
        return replace(made, shared=np.empty((2, made.threads), np.int64))
    if name == "cells":
        pure = pure_workspace(shape.rows, shape.players)
        made = replace(made, shared=line, own=OwnCell(spent, shape.written, ends, pure))
        in_shared = replace(made, shared_fields=("batch.utility",))
        return in_shared if in_shared.shared_bytes <= MOST_SHARED else made
    if name == "left":
        work = workspace(shape.rows, shape.players, np.array(shape.actions), shape.correlated)
        return replace(made, own=OwnWork(shape.written, ends, work))
    if name == "plain":
        own_group = OwnGroup(shape.group, shape.shared_choices)
        made = replace(
            made, constants=(*DEVIATIONS, *(f"choices.{field}" for field in Choices._fields if shape.uniform_actions))
        )
        if shape.warp:
            return replace(made, phases=(device.solve_regular_by_warp,), threads=WARP, shared=own_group, unroll=ROLLED)
        table = shape.group.table
        tables = min(1024 * shape.shared // table.nbytes // WARP * WARP, THREADS_PER_BLOCK)
        if tables < FEWEST_THREADS:
            return replace(made, threads=THREADS_PER_BLOCK, own=own_group)
        loops = UNROLLED if shape.uniform_actions and table.size <= MOST_UNROLLED else ()
        return replace(made, threads=tables, own=own_group, shared_fields=("group.table",), unroll=loops)
    return made


def example_arguments(name: str) -> Any:
    """Return arrays of the types that a kernel takes."""
    return example(KERNELS[name].record)


# -- a space on a card ----------------------------------------------------------------------------


SLOT_BYTES = 64 * 2**20  # of the boxes of states, for some times together
TABLES = ("row_ptr", "out_ptr", "next_state", "cost", "prob")  # arrays of `Tables` that kernels read; and
BOXES = ("budget", "states", "lo", "size", "base", "line")  # of `Space`


class DeviceTables:
    """What kernels read of an explored space."""

    def __init__(self, card: Any, space: Space, shape: Shape) -> None:
        self.card, self.space, self.shape = card, space, shape
        tables = replace(space.tables, **{name: card.upload(getattr(space.tables, name)) for name in TABLES})
        self._there = replace(space, tables=tables, **{name: card.upload(getattr(space, name)) for name in BOXES})
        # first piece of each box within its layer: the first cell, if a run of SEGMENT were one
        runs = np.column_stack([space.size[:, :-1], -(-space.size[:, -1] // SEGMENT)])
        self.pieces, _ = number_boxes(space.start, runs)
        self._pieces, self._bit_start = card.upload(self.pieces), bit_starts(space)
        self._height = card.upload(space.height)
        self.bits = card.empty(int(self._bit_start[-1]), np.uint8)
        self._nothing, self._slots = card.empty((1, 1), np.int64), dict[int, Any]()
        for t, cells in enumerate(space.cells):
            assert cells.bits is not None
            card.write(self.bits_of(t), cells.bits.reshape(-1))

    @staticmethod
    def needs(space: Space) -> int:
        """Return bytes on the card, about."""
        arrays = [*(getattr(space.tables, name) for name in TABLES), *(getattr(space, name) for name in BOXES)]
        slots = 4 * len(space.game.states) * min(_slots_together(space), space.game.horizon + 1)
        held = 4 * int(space.line_start[-1]) + int(bit_starts(space)[-1])
        return sum(int(x.nbytes) for x in (*arrays, space.line)) + slots + held  # as many pieces as lines

    def launch(self, name: str, blocks: int, record: Any) -> None:
        """Begin a kernel on so many blocks."""
        self.card.launch(kernel_spec(name, self.shape), blocks, record)

    def each(self, name: str, count: int, record: Any) -> None:
        """Begin a kernel with a thread for each of so many."""
        made = kernel_spec(name, self.shape)
        self.card.launch(made, -(-count // made.threads), record)

    def layer(self, t: int) -> DeviceLayer:
        """Return the layer of time t < H, and the next."""
        here, there = (self._there.layer(k).boxes() for k in (t, t + 1))
        height = self._height[int(self.space.line_start[t + 1]) : int(self.space.line_start[t + 2])]
        after = NextLayer(self._slot(t + 1), *there[1:], height, self._nothing, self._nothing)
        return DeviceLayer(here, self._pieces[self._boxes_of(t)], self.bits_of(t), self._there.steps(t), after)

    def bits_of(self, t: int) -> Any:
        """Return the bits of a layer's cells."""
        return self.bits[int(self._bit_start[t]) : int(self._bit_start[t + 1])]

    def pieces_of(self, t: int) -> int:
        """Return how many pieces a layer has."""
        return int(self.pieces[int(self.space.start[t + 1]) + t])

    def cell_of(self, t: int, piece: int) -> int:
        """Return the first cell of a piece of a layer; behind the last piece, the cell behind."""
        space, boxes = self.space, self._boxes_of(t)
        own = self.pieces[boxes]
        if piece >= own[-1]:
            return int(space.totals[t])
        a = int(np.searchsorted(own, piece, side="right")) - 1
        width = int(space.size[boxes.start - t + a, -1])
        nth, part = divmod(piece - int(own[a]), -(-width // SEGMENT))
        return int(space.base[boxes.start + a]) + nth * width + part * SEGMENT

    def chunks(self, t: int, cells: int) -> Iterator[tuple[range, range]]:
        """Yield runs of pieces with their cells, which are at most so many; at least SEGMENT."""
        first, begin, pieces = 0, 0, self.pieces_of(t)
        while first < pieces:
            last, ends = pieces, range(first + 1, pieces + 1)
            if self.cell_of(t, last) > begin + cells:
                last = ends[bisect_right(ends, begin + cells, key=partial(self.cell_of, t)) - 1]
            end = self.cell_of(t, last)
            yield range(first, last), range(begin, end)
            first, begin = last, end

    def _boxes_of(self, t: int) -> slice:
        """Return the boxes of a layer, where it has one entry more."""
        return slice(int(self.space.start[t]) + t, int(self.space.start[t + 1]) + t + 1)

    def _slot(self, t: int) -> Any:
        """Return the boxes of states at time t; those of some times are on the card together."""
        together, states = _slots_together(self.space), len(self.space.game.states)
        run, within = divmod(t, together)
        if run not in self._slots:
            self._slots.clear()
            times = range(t - within, self.space.game.horizon + 1)[:together]
            self._slots[run] = self.card.upload(np.array([self.space.layer(k).slots(states) for k in times]))
        return self._slots[run][within]


def _slots_together(space: Space) -> int:
    return max(SLOT_BYTES // (4 * len(space.game.states)), 1)
