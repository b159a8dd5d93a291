"""Solvers of written stage games: programs for correlated play, searches for Nash equilibria."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.engines.answers import Answers, Failure, OpenStage
from acegames.engines.blocks import LayerData, Room, code_type, write_out
from acegames.kernels import records
from acegames.kernels.records import Choices, Goal, Written
from acegames.model.arrays import Floats, Ints, read_only
from acegames.policy.filing import PURE_ONLY, Mixed
from acegames.safety.space import Space
from acegames.stage.kernel_form import deviation_table, goal_of
from acegames.stage.nash import solve_stages
from acegames.system.announce import announce

LOT = 16384  # numbers of the stage games that a thread writes out at once, about; but at least
FEWEST_CELLS = 64  # that many games
_announcing = Lock()


def choices_of(space: Space, concept: Concept) -> Choices:
    """Return the joint actions of all rows, and where each player's switching leads."""
    tables = space.tables
    counts = np.array([len(labels) for labels in space.game.actions], dtype=np.int64)
    deviation = np.zeros((0, 1), dtype=np.int32)
    if len(counts) > 1:
        owners = np.diff(tables.row_ptr, axis=1)
        who = concept.deviators(space.game.players)
        deviation = deviation_table(np.repeat(np.arange(owners.size), owners.ravel()), tables.action, counts, who)
    return Choices(tables.action, deviation, np.concatenate([[0], np.cumsum(counts)]))


class Buffers(NamedTuple):
    """Room for the answers of some games (`records.Answers`), and for games that are left."""

    lot: int  # cells that are taken at a time
    mixed_cell: Ints
    mixed_ptr: Ints
    mixed_row: NDArray[Any]
    mixed_prob: Floats
    open: Ints
    rest: Written

    def answers(self, room: Room) -> records.Answers:
        """Return what kernels write to."""
        return records.Answers(room.value.T, room.code, *self[1:6])


def buffers_for(data: LayerData, games: int) -> Buffers:
    """Room for so many games."""
    widest, columns = data.widest[0], data.reward.shape[1]
    lot, rows = lot_of(data, games), games * widest + 1  # one more: a row is written before it proves infeasible
    (cell, opened, of, first), (ptr, start) = np.empty((4, games), np.int64), np.empty((2, games + 1), np.int64)
    rest = Written(of, start, first, np.empty(rows, np.int64), np.empty((rows, columns)))
    return Buffers(lot, cell, ptr, np.empty(rows, code_type(data)), np.empty(rows), opened, rest)


def lot_of(data: LayerData, games: int) -> int:
    """Return how many cells are taken at a time, where there is room for so many games."""
    columns = int(data.reward.shape[1])
    return min(max(LOT // (data.widest[0] * columns), FEWEST_CELLS), games)


@dataclass(frozen=True, eq=False)
class Programs:
    """Correlated play, and one player's: what floats cannot certify is left open."""

    concept: Concept
    players: tuple[Any, ...]
    choices: Choices
    above: Callable[[int], Floats]  # `Baseline.above` of a time
    goals: dict[int, Goal] = field(default_factory=dict)  # of times that were solved

    def solve(self, data: LayerData, begin: int, end: int, room: Room) -> Answers:
        """As `blocks.StageSolver`."""
        return self.share(data, np.array([begin]), end, room, buffers_for(data, end - begin))

    def share(self, data: LayerData, taken: Ints, end: int, room: Room, buffers: Buffers) -> Answers:
        """Return the answers of cells from taken[0] to `end` that this thread takes; others may
        take some.

        The lock of the interpreter is asked for where buffers are full, and at the end. Games that
        are not plain are solved then.
        """
        from acegames.kernels.cells import solve_cells

        mixed, opened, programs = list[Mixed](), tuple[OpenStage, ...](), 0
        answers, rest, given = buffers.answers(room), buffers.rest, self._given(data)
        while taken[0] < end:
            how = (buffers.lot, data.source, *given, data.widest)
            count, left, took = solve_cells(taken, end, *how, answers, rest)
            mixed, programs = [*mixed, _mixed(answers, count)], programs + took
            if left:
                with _announcing:
                    announce("acegames.kernels.written", "solve_written", "further kernels for stage games")
                found = self.solve_each(data, rest, left, answers)
                mixed, opened, programs = [*mixed, found.mixed], opened + found.open, programs + found.programs
        return Answers(*room, more=tuple(mixed), open=opened, programs=programs)

    def solve_each(self, data: LayerData, written: Written, count: int, answers: records.Answers) -> Answers:
        """Return the answers of the first written games, whether they are plain or not."""
        from acegames.kernels.written import solve_written

        mixed, bad, programs = solve_written(written, count, *self._given(data), data.widest[0], answers)
        games = np.searchsorted(written.cell[:count], answers.open[:bad])
        stages = tuple(self._open(written, int(g), self.goal(data.t)) for g in games)
        return Answers(answers.value.T, answers.code, _mixed(answers, mixed), open=stages, programs=programs)

    def goal(self, t: int) -> Goal:
        """Return the equilibrium that is asked for at time t."""
        t = t if self.concept.criterion.compares else 0  # else all times have the same goal
        if t not in self.goals:
            self.goals[t] = goal_of(self.concept, self.players, self.above(t))
        return self.goals[t]

    def _given(self, data: LayerData) -> tuple[Choices, Goal]:
        choices = self.choices
        if choices.action.flags.writeable:  # it has travelled
            choices = choices._replace(action=read_only(choices.action))
        return choices, self.goal(data.t)

    def _open(self, written: Written, g: int, goal: Goal) -> OpenStage:
        rows = slice(int(written.ptr[g]), int(written.ptr[g + 1]))
        row = written.row[rows]
        counted, above = row - written.first_row[g], self.compared(goal, int(written.first_row[g]))
        return OpenStage(int(written.cell[g]), counted, self.choices.action[row], written.utility[rows].copy(), above)

    def compared(self, goal: Goal, first_row: int) -> Floats:
        """Return what is added to utilities before players are compared, (N,)."""
        if not self.concept.criterion.compares:
            return np.zeros(len(self.players))
        found: Floats = goal.terms[first_row if len(goal.terms) > 1 else 0]
        return found


def _mixed(answers: records.Answers, count: int) -> Mixed:
    if not count:
        return PURE_ONLY
    ptr, used = answers.mixed_ptr, int(answers.mixed_ptr[count])
    cell, size = answers.mixed_cell[:count].copy(), ptr[1 : count + 1] - ptr[:count]
    return Mixed(cell, size, answers.mixed_row[:used].copy(), answers.mixed_prob[:used].copy())


@dataclass(frozen=True, eq=False)
class Searches:
    """Nash equilibria. Mixed records hold the probabilities of each player's own actions."""

    concept: Concept
    players: tuple[Any, ...]
    choices: Choices
    above: Callable[[int], Floats]  # `Baseline.above` of a time

    def solve(self, data: LayerData, begin: int, end: int, room: Room) -> Answers:
        """As `blocks.StageSolver`."""
        written, count = write_out(data, np.arange(begin, end))
        used = int(written.ptr[count])
        cell, ptr, first_row = written.cell[:count], written.ptr[: count + 1], written.first_row[:count]
        stages = Written(cell, ptr, first_row, written.row[:used], written.utility[:used])
        found = solve_stages(stages, self.choices, self.concept, self.players, self.above(data.t))
        failed = sorted([*found.without, *found.too_large])[:1]
        if failed:
            g = failed[0]
            return Answers(*room, failure=Failure(int(cell[g]), int(ptr[g + 1] - ptr[g]), g in found.too_large))
        n, pure = len(self.players), found.pure >= 0
        room.value[cell, :n], room.value[cell, n:] = found.values, found.gross
        room.code[cell[pure]] = 1 + stages.row[ptr[:-1][pure] + found.pure[pure]] - first_row[pure]
        room.code[cell[~pure]] = 0
        mixed = Mixed(cell[~pure], np.diff(found.ptr)[~pure], found.action, found.prob)
        return Answers(*room, mixed, programs=found.searched, repaired=found.repaired)
