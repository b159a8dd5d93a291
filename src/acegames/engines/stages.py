"""Solvers of written stage games: programs for correlated play, searches for Nash equilibria."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from acegames.concepts import Concept
from acegames.engines.answers import Answers, Failure, OpenStage
from acegames.engines.baseline import Baseline
from acegames.engines.blocks import LayerData, Room, write_out
from acegames.kernels import records
from acegames.kernels.records import Choices, Goal, Written
from acegames.model.arrays import Ints, read_only
from acegames.policy.filing import PURE_ONLY, Mixed
from acegames.safety.space import Space
from acegames.stage.kernel_form import deviation_table, goal_of
from acegames.stage.nash import solve_stages


def choices_of(space: Space, concept: Concept) -> Choices:
    """The joint actions of all rows, and where each player's switching leads."""
    tables = space.tables
    counts = np.array([len(labels) for labels in space.game.actions], dtype=np.int64)
    deviation = np.zeros((0, 1), dtype=np.int32)
    if len(counts) > 1:
        owners = np.diff(tables.row_ptr, axis=1)
        who = concept.deviators(space.game.players)
        deviation = deviation_table(np.repeat(np.arange(owners.size), owners.ravel()), tables.action, counts, who)
    return Choices(tables.action, deviation, np.concatenate([[0], np.cumsum(counts)]))


@dataclass(frozen=True, eq=False)
class Programs:
    """Correlated play, and one player's: what floats cannot certify is left open."""

    concept: Concept
    players: tuple[Any, ...]
    choices: Choices
    base: Baseline
    goals: dict[int, Goal] = field(default_factory=dict)  # of times that were solved

    def solve(self, data: LayerData, begin: int, end: int, room: Room) -> Answers:
        """As `blocks.StageSolver`; games that are not plain are left."""
        from acegames.kernels.cells import solve_cells

        answers = _empty(room, end - begin, data.widest[0])
        mixed, left, programs = solve_cells(begin, end, data.source, *self._given(data), data.widest, answers)
        return Answers(*room, _mixed(answers, mixed), left=answers.open[:left].copy(), programs=programs)

    def solve_left(self, data: LayerData, cells: Ints, room: Room) -> Answers:
        """As `blocks.StageSolver`."""
        return self.solve_each(data, *write_out(data, cells), room)

    def solve_each(self, data: LayerData, written: Written, count: int, room: Room) -> Answers:
        """The answers of the first written games, whether they are plain or not."""
        from acegames.kernels.written import solve_written

        answers = _empty(room, count, data.widest[0])
        mixed, bad, programs = solve_written(written, count, *self._given(data), data.widest[0], answers)
        games = np.searchsorted(written.cell[:count], answers.open[:bad])
        stages = tuple(self._open(written, int(g)) for g in games)
        return Answers(*room, _mixed(answers, mixed), open=stages, programs=programs)

    def _given(self, data: LayerData) -> tuple[Choices, Goal]:
        t = data.t if self.concept.criterion.compares else 0  # else all times have the same goal
        if t not in self.goals:
            self.goals[t] = goal_of(self.concept, self.players, self.base.above[t])
        choices = self.choices
        if choices.action.flags.writeable:  # it has travelled
            choices = choices._replace(action=read_only(choices.action))
        return choices, self.goals[t]

    def _open(self, written: Written, g: int) -> OpenStage:
        rows = slice(int(written.ptr[g]), int(written.ptr[g + 1]))
        row = written.row[rows]
        counted = row - written.first_row[g]
        return OpenStage(int(written.cell[g]), counted, self.choices.action[row], written.utility[rows].copy())


def _empty(room: Room, games: int, widest: int) -> records.Answers:
    """Room for the answers of so many games."""
    cell, ptr, opened = (np.empty(n, np.int64) for n in (games, games + 1, games))
    row, prob = np.empty(games * widest, dtype=room.code.dtype), np.empty(games * widest)
    return records.Answers(*room, cell, ptr, row, prob, opened)


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
    base: Baseline

    def solve(self, data: LayerData, begin: int, end: int, room: Room) -> Answers:
        """As `blocks.StageSolver`."""
        written, count = write_out(data, np.arange(begin, end))
        used = int(written.ptr[count])
        cell, ptr, first_row = written.cell[:count], written.ptr[: count + 1], written.first_row[:count]
        stages = Written(cell, ptr, first_row, written.row[:used], written.utility[:used])
        found = solve_stages(stages, self.choices, self.concept, self.players, self.base.above[data.t])
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

    def solve_left(self, data: LayerData, cells: Ints, room: Room) -> Answers:
        """As `blocks.StageSolver`; nothing is ever left."""
        return Answers(*room)
