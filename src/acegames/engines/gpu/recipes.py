"""The kernels that a game needs, for the shape of its stage games."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from acegames.concepts import Concept
from acegames.kernels import phases
from acegames.kernels.dense import SEGMENT, empty_line
from acegames.kernels.lanes import ALONE
from acegames.kernels.lockstep import group_room
from acegames.kernels.phases import OwnCell, OwnGroup, OwnWork
from acegames.kernels.records import Written
from acegames.kernels.stage import pure_room, workspace
from acegames.safety.space import Space
from acegames.system.cuda_code import Recipe

GAMES = 64  # threads of a block where each solves a stage game
ROWS = (4, 9, 16)
MOST_SHARED = 96 * 1024  # bytes of such a block for tables; with more, a multiprocessor would have one block only
NUMBERING = 1024  # threads of the block that numbers strips


@dataclass(frozen=True)
class Shape:
    """What kernels are compiled for; numbers are rounded up, so that games share kernels."""

    rows: int  # most joint actions of a state
    outcomes: int  # most outcomes of a state's rows
    constraints: int  # that boxes count
    players: int
    actions: tuple[int, ...]
    correlated: bool

    @staticmethod
    def of(space: Space, concept: Concept | None = None) -> Shape:
        """The shape of a game's stage games under a concept; exploring needs none."""
        rows, outcomes = space.tables.widest
        rows = next((n for n in ROWS if n >= rows), rows)
        rounded = max(1 << (outcomes - 1).bit_length(), 32)
        players, most = len(space.game.players), max(len(labels) for labels in space.game.actions)
        told = concept is not None and bool(concept.told)
        return Shape(rows, rounded, space.budget.shape[1], players, (most,) * players, told)

    @property
    def incentives(self) -> int:
        """Rows of a stage program."""
        return sum(a * (a - 1) if self.correlated else a for a in self.actions)

    @cached_property
    def line(self) -> Any:
        """Room for the rows of a line."""
        return _plain(empty_line)((self.rows, self.outcomes))

    @cached_property
    def totals(self) -> Any:
        """Room for what is spent."""
        return np.empty(self.constraints, np.int64)

    @cached_property
    def group(self) -> Any:
        """Room for a plain game; without joint actions where there is none."""
        return _plain(group_room)(self.rows, self.players, np.array(self.actions), self.correlated, 1)

    @property
    def together(self) -> bool:
        """Whether plain games are solved apart."""
        return bool(len(self.group.sigma))

    def written(self, *, utility: bool) -> Any:
        """Room for one game."""
        cell, ptr, first_row, row = (np.empty(n, np.int64) for n in (1, 2, 1, self.rows))
        return Written(cell, ptr, first_row, row, np.empty((self.rows if utility else 1, 2 * self.players)))


def _plain(making: Any) -> Any:
    """The Python function of a compiled one."""
    return making.py_func


def heights(shape: Shape) -> Recipe:
    """The height map of a layer."""
    return Recipe("heights", (phases.height_phase,), SEGMENT, None, shape.totals)


def reach(shape: Shape) -> Recipe:
    """The cells of the next layer that are reached."""
    return Recipe("reach", (phases.reached_rows_phase, phases.reach_phase), SEGMENT, shape.line, shape.totals)


def pack(shape: Shape) -> Recipe:
    """Marks as bits."""
    return Recipe("pack", (phases.pack_phase,), SEGMENT)


def bounds(shape: Shape) -> Recipe:
    """Bounds of the rewards of what is played."""
    return Recipe("bounds", (phases.bound_phase, phases.join_bounds_phase), SEGMENT, np.empty((2, SEGMENT)))


def cells(shape: Shape) -> Recipe:
    """Stage games are written out, and the pure ones filed."""
    own = OwnCell(
        shape.totals, shape.written(utility=True), np.empty(2, np.int64), _plain(pure_room)(shape.rows, shape.players)
    )
    return Recipe("cells", (phases.cell_rows_phase, phases.cell_phase), SEGMENT, shape.line, own)


def plain(shape: Shape) -> Recipe:
    """Plain stage games are solved."""
    own = OwnGroup(shape.written(utility=False), np.empty(2, np.int64), shape.group)
    held = Recipe("plain", (phases.plain_phase,), GAMES, None, own, ("group.table",), ALONE)
    return held if held.shared_bytes <= MOST_SHARED else replace(held, beside=())


def left(shape: Shape) -> Recipe:
    """All other stage games are solved."""
    work = _plain(workspace)(shape.rows, shape.players, np.array(shape.actions), shape.correlated)
    own = OwnWork(shape.written(utility=True), np.empty(2, np.int64), work)
    return Recipe("left", (phases.left_phase,), GAMES, None, own, single=ALONE)


def read_open(shape: Shape) -> Recipe:
    """Games without an answer go to the host."""
    return Recipe("read_open", (phases.read_open_phase,), GAMES)


def mend(shape: Shape) -> Recipe:
    """The host's answers come back."""
    return Recipe("mend", (phases.mend_phase,), GAMES)


def strips(shape: Shape) -> Recipe:
    """Mixed answers are counted."""
    return Recipe("strips", (phases.strip_phase,), SEGMENT)


def numbers(shape: Shape) -> Recipe:
    """Mixed answers are numbered."""
    steps = (phases.sum_phase, phases.join_sums_phase, phases.number_phase)
    return Recipe("numbers", steps, NUMBERING, np.empty((2, NUMBERING), np.int64))


def file_cells(shape: Shape) -> Recipe:
    """Codes and values as a policy holds them."""
    return Recipe("file_cells", (phases.file_cell_phase,), SEGMENT)


def file_records(shape: Shape) -> Recipe:
    """Mixed answers as a policy holds them."""
    return Recipe("file_records", (phases.file_record_phase,), SEGMENT)
