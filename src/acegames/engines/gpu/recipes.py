"""The kernels that a game needs, for the shape of its stage games, and what they are given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from acegames.concepts import Concept
from acegames.kernels import device
from acegames.kernels.dense import SEGMENT, allocate_line
from acegames.kernels.device import OwnCell, OwnGroup, OwnWork
from acegames.kernels.intrinsics import WARP, Warp
from acegames.kernels.lanes import ALONE
from acegames.kernels.lockstep import allocate_group
from acegames.kernels.records import Choices, StageGames
from acegames.kernels.stage import pure_workspace, workspace
from acegames.model.arrays import pointers
from acegames.safety.space import Space
from acegames.stage.program import deviation_table
from acegames.system.axes import example
from acegames.system.cuda_card import RESIDENT
from acegames.system.cuda_code import Recipe

GAMES = 64  # threads of a block where each solves any stage game
TOGETHER = 256  # the same of plain ones, which begin together: a multiprocessor has registers for so many
FEW_TOGETHER = 64  # if there is shared memory for fewer tables, each is in its thread's own memory
MOST_UNROLLED = 160  # places of a table up to which code that names each is fast, and
MOST_BY_THREAD = 256  # up to which a thread is faster than a warp (measured: `benchmarks/gpu.py programs`)
WARPS = 32  # blocks per multiprocessor where a warp solves a plain game; else there is one
MOST_ROWS = 64  # joint actions of a state: a bit for each
FEW = 16  # joint actions up to which one thread solves any game as fast as a processor
MOST_BESIDE = 48 * 1024  # bytes of shared memory of a block of which a multiprocessor should have several
SHARED = {(7, 5): 64, (8, 0): 163, (8, 7): 163, (9, 0): 227, (10, 0): 227, (10, 3): 227, (11, 0): 227}  # KB of a block
LEAST_SHARED = 99  # KB of a block of other cards
ROLLED = ("acegames.kernels.regular", "disable"), ("acegames.kernels.lockstep", "disable")
UNROLLED = (("acegames.kernels.regular", "full"),)
DEVIATIONS = "group.owner", "group.target", "group.recommended"
NUMBERING = 1024  # threads of the block that numbers strips


class Kernel(NamedTuple):
    """What the threads of a kernel do, the record that it is given, and the threads of a block."""

    phases: tuple[Any, ...]
    given: Any
    threads: int = SEGMENT


EXPLORING = {
    "heights": Kernel((device.find_height,), device.Heights),
    "reach": Kernel((device.prepare_reached_rows, device.mark_successors), device.Reaching),
    "pack": Kernel((device.pack_marks,), device.Packing),
}
SOLVING = {  # those first that take longest to compile
    "left": Kernel((device.solve_fallback_games,), device.Solving, GAMES),
    "cells": Kernel((device.prepare_cell_rows, device.solve_pure_cell), device.Solving),
    "plain": Kernel((device.solve_regular_by_thread,), device.Solving),
    "read_open": Kernel((device.read_open_game,), device.Opening, GAMES),
    "mend": Kernel((device.apply_repair,), device.Repairing, GAMES),
    "strips": Kernel((device.count_strip,), device.Counting),
    "numbers": Kernel((device.sum_strips, device.prefix_sums, device.number_strips), device.Counting, NUMBERING),
    "file_cells": Kernel((device.encode_cell,), device.Encoding),
    "file_records": Kernel((device.encode_mixed,), device.Encoding),
}
KERNELS = EXPLORING | SOLVING


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
    alike: bool = False  # whether all states have all joint actions, one after the other
    shared: int = LEAST_SHARED  # KB of a block on the card

    @staticmethod
    def of(space: Space, capability: tuple[int, int], concept: Concept | None = None) -> Shape:
        """Return the shape of a game's stage games under a concept; exploring needs none."""
        rows, outcomes = space.tables.widest
        actions = tuple(len(labels) for labels in space.game.actions)
        rows = prod(actions) if prod(actions) <= min(2 * rows, MOST_ROWS) else rows
        rounded = max(1 << (outcomes - 1).bit_length(), 32)
        told = concept is not None and bool(concept.interim)
        shape = Shape(rows, rounded, space.budget.shape[1], len(actions), actions, told)
        return replace(shape, warp=shape.wants_warp, shared=SHARED.get(capability, LEAST_SHARED))

    @property
    def wants_warp(self) -> bool:
        """Whether a warp solves plain games faster."""
        return bool(self.group.table.size > MOST_BY_THREAD)

    @cached_property
    def group(self) -> Any:
        """Room for a plain game; without joint actions where there is none."""
        actions, team = np.array(self.actions), Warp(0) if self.warp else None
        room = _plain(allocate_group)(
            self.rows, self.players, actions, self.correlated, 1, team, keep_gains=self.warp or not self.alike
        )
        names, kind = ("whole", "owner", "target", "recommended"), np.int16 if room.table.size < 2**15 else np.int32
        return room._replace(**{name: getattr(room, name).astype(kind) for name in names})

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
        return all(recipe(name, self).shared_bytes <= 1024 * self.shared for name in names)

    @property
    def blocks(self) -> int:
        """Blocks per multiprocessor that solve plain games."""
        return WARPS if self.warp else 1

    @cached_property
    def own_bytes(self) -> int:
        """Memory that a multiprocessor's threads need for games that are not plain."""
        return RESIDENT * recipe("left", self).stack_bytes

    @cached_property
    def known(self) -> Choices:
        """What all states have in common, where they are alike; else without rows."""
        counts = np.array(self.actions)
        action = np.indices(self.actions, dtype=np.int32).reshape(self.players, -1).T
        deviation = deviation_table(np.zeros(len(action), np.int64), action, counts, (True,) * self.players)
        count = len(action) if self.alike else 0
        return Choices(np.ascontiguousarray(action)[:count], deviation[:count], pointers(counts))

    def for_choices(self, choices: Choices) -> Shape:
        """Return the shape for a game with these choices."""
        alike = replace(self, alike=True)
        rows, same = len(alike.known.action), np.array_equal(choices.first_action, alike.known.first_action)
        if not same or rows != self.rows or len(choices.action) % rows:
            return self
        tables = zip(choices[:2], alike.known[:2], strict=True)
        return alike if all((x.reshape(-1, *k.shape) == k).all() for x, k in tables) else self

    @cached_property
    def written(self) -> Any:
        """Room for one game."""
        cell, ptr, first_row, row = (np.empty(n, np.int64) for n in (1, 2, 1, self.rows))
        return StageGames(cell, ptr, first_row, row, np.empty((self.rows, 2 * self.players)))


def _plain(allocates: Any) -> Any:
    """Return the Python function of a compiled one."""
    return allocates.py_func


@cache
def recipe(name: str, shape: Shape) -> Recipe:
    """Return a kernel for a shape; always the same object: cards know it by that."""
    kernel, line = KERNELS[name], _plain(allocate_line)((shape.rows, shape.outcomes))
    made = Recipe(name, kernel.phases, kernel.threads, single=ALONE)
    spent, ends = np.empty(shape.constraints, np.int64), np.empty(3, np.int64)
    if name == "heights":
        return replace(made, own=spent)
    if name == "reach":
        return replace(made, shared=line, own=spent)
    if name == "numbers":
        return replace(made, shared=np.empty((2, made.threads), np.int64))
    if name == "cells":
        pure = _plain(pure_workspace)(shape.rows, shape.players)
        made = replace(made, shared=line, own=OwnCell(spent, shape.written, ends, pure))
        held = replace(made, beside=("written.utility",))
        return held if held.shared_bytes <= MOST_BESIDE else made
    if name == "left":
        work = _plain(workspace)(shape.rows, shape.players, np.array(shape.actions), shape.correlated)
        return replace(made, own=OwnWork(shape.written, ends, work))
    if name == "plain":
        room = OwnGroup(shape.group, shape.known)
        made = replace(made, known=(*DEVIATIONS, *(f"choices.{field}" for field in Choices._fields if shape.alike)))
        if shape.warp:
            return replace(made, phases=(device.solve_regular_by_warp,), threads=WARP, shared=room, loops=ROLLED)
        table = shape.group.table
        tables = min(1024 * shape.shared // table.nbytes // WARP * WARP, TOGETHER)
        if tables < FEW_TOGETHER:
            return replace(made, threads=TOGETHER, own=room)
        loops = UNROLLED if shape.alike and table.size <= MOST_UNROLLED else ()
        return replace(made, threads=tables, own=room, beside=("group.table",), loops=loops)
    return made


def given_to(name: str) -> Any:
    """Return arrays of the types that a kernel is given."""
    return example(KERNELS[name].given)
