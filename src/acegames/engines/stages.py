"""The stage games of a layer: their data, their solvers, and the kernels that these need.

A *block* is a run of cells of one layer. Threads and a cluster solve blocks alike: `solve_block` is
a function of the layer's data, the run of cells and the solver. `Programs` solves for correlated
play with linear programs, `Searches` for Nash equilibria. `compile_ahead` compiles their kernels in
other processes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import CCE, Concept, Nash
from acegames.engines.answers import Answers, Failure, OpenStage
from acegames.kernels import records
from acegames.kernels.records import Boxes, Choices, GatherInput, Goal, Listed, NextLayer, StageGames, Transitions
from acegames.model.arrays import Floats, Ints, read_only
from acegames.policy.layer import PURE_ONLY, Mixed
from acegames.safety.explore import listed
from acegames.safety.space import Space
from acegames.stage.nash import solve_stages
from acegames.stage.program import deviation_table, goal_of
from acegames.system.compiled import running

TABLES = ("row_ptr", "out_ptr", "next_state", "cost", "prob")  # of `Transitions`: the game's own


@dataclass(frozen=True, eq=False)
class LayerData:
    """What the stage games of one layer are made of."""

    t: int
    here: Boxes
    marks: NDArray[np.uint8] | None  # which cells are reached, where all cells are held; else
    keys: Ints | None  # the reached cells in order
    step: Transitions
    reward: Floats  # (R, 2N), or (R, 1) with one player
    after: NextLayer
    next_listed: Listed | None  # the cells of the next layer, where they are listed
    next_value: Floats  # by cell, or by listed cell, of the next layer
    widest: tuple[int, int]  # most rows of a state, and most outcomes of a state's rows together

    @property
    def cells(self) -> int:
        """How many cells are held or listed."""
        return int(self.here.base[-1]) if self.keys is None else len(self.keys)

    @cached_property
    def source(self) -> GatherInput:
        """The data as kernels read them, which are compiled for tables that are read-only."""
        step, reward = self.step, self.reward
        if reward.flags.writeable:  # it has travelled
            step = step._replace(**{name: read_only(getattr(step, name)) for name in TABLES})
            reward = read_only(reward)
        marks = np.empty(0, np.uint8) if self.marks is None else self.marks
        keys = np.empty(0, np.int64) if self.keys is None else self.keys
        next_listed = _no_cells() if self.next_listed is None else self.next_listed
        dense = self.marks is not None
        next_value = np.ascontiguousarray(self.next_value.T if dense else self.next_value)
        return GatherInput(self.here, dense, marks, keys, step, reward, self.after, next_listed, next_value)


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


class LayerOutput(NamedTuple):
    """Where the values and codes of a layer's cells go."""

    value: Floats  # (cells, 2N), or (cells, 1) with one player; column by column in memory
    code: NDArray[Any]


def empty_output(data: LayerData) -> LayerOutput:
    """Allocate the output for the cells of a layer."""
    return LayerOutput(np.zeros((data.reward.shape[1], data.cells)).T, np.zeros(data.cells, code_type(data)))


def code_type(data: LayerData) -> type[np.unsignedinteger[Any]]:
    """Return the type of codes. Nearly all games share one, because each is compiled for anew."""
    return np.uint16 if data.widest[0] < 65535 else np.uint32


def solve_block(data: LayerData, begin: int, end: int, solver: CellSolver, out: LayerOutput) -> Answers:
    """Solve the stage games of the cells begin .. end-1."""
    if data.marks is not None and data.reward.shape[1] == 1:
        from acegames.kernels.dense import solve_single_player

        source = data.source
        rewards, values = (source.reward, np.int64(0)), source.next_value.reshape(-1)
        layer = (source.here, source.step, *rewards, source.after, values, data.widest)
        solve_single_player(begin, end, *layer, out.value[begin:end].reshape(-1), out.code[begin:end])
        return Answers(*out)
    return solver.solve(data, begin, end, out)


def write_out(data: LayerData, begin: int, end: int) -> tuple[StageGames, int]:
    """Write out the stage games of the cells begin .. end-1; return their number too.

    The arrays have room for more entries than there are.
    """
    length = end - begin
    entries = length * data.widest[0] + 1  # one more: a row is written before it proves infeasible
    cell, ptr, first_row = (np.empty(n, np.int64) for n in (length, length + 1, length))
    written = StageGames(cell, ptr, first_row, np.empty(entries, np.int64), np.empty((entries, data.reward.shape[1])))
    from acegames.kernels.batches import write_cells

    return written, write_cells(begin, end, data.source, data.widest, written)


# -- solvers --------------------------------------------------------------------------------------


LOT = 16384  # numbers of the stage games that a thread writes out at once, about; but at least
FEWEST_CELLS = 64  # that many games


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
    """The arrays of one thread: for the answers of some games, and for games that are left."""

    lot: int  # cells that are taken at a time
    mixed_cell: Ints
    mixed_ptr: Ints
    mixed_row: NDArray[Any]
    mixed_prob: Floats
    open: Ints
    rest: StageGames

    def answers(self, out: LayerOutput) -> records.StageAnswers:
        """Return the record that kernels write answers to."""
        return records.StageAnswers(out.value.T, out.code, *self[1:6])


def buffers_for(data: LayerData, games: int) -> Buffers:
    """Allocate the buffers for so many games."""
    widest, columns = data.widest[0], data.reward.shape[1]
    lot, rows = lot_of(data, games), games * widest + 1  # one more: a row is written before it proves infeasible
    (cell, opened, of, first), (ptr, start) = np.empty((4, games), np.int64), np.empty((2, games + 1), np.int64)
    rest = StageGames(of, start, first, np.empty(rows, np.int64), np.empty((rows, columns)))
    return Buffers(lot, cell, ptr, np.empty(rows, code_type(data)), np.empty(rows), opened, rest)


def lot_of(data: LayerData, games: int) -> int:
    """Return how many cells a thread takes at a time, whose buffers hold so many games."""
    columns = int(data.reward.shape[1])
    return min(max(LOT // (data.widest[0] * columns), FEWEST_CELLS), games)


@dataclass(frozen=True, eq=False)
class CellSolver(ABC):
    """Solves the stage games of cells, all of which have the same concept."""

    concept: Concept
    players: tuple[Any, ...]
    choices: Choices
    above: Callable[[int], Floats]  # `Baseline.above` of a time

    @abstractmethod
    def solve(self, data: LayerData, begin: int, end: int, out: LayerOutput) -> Answers:
        """Return the answers of the cells begin .. end-1, written to where `out` holds these."""


@dataclass(frozen=True, eq=False)
class Programs(CellSolver):
    """Correlated play, and one player's: what floats cannot certify is left open."""

    goals: dict[int, Goal] = field(default_factory=dict)  # of times that were solved

    def solve(self, data: LayerData, begin: int, end: int, out: LayerOutput) -> Answers:
        """Solve the stage games of some cells, see `CellSolver.solve`."""
        return self.share(data, np.array([begin]), end, out, buffers_for(data, end - begin))

    def share(self, data: LayerData, taken: Ints, end: int, out: LayerOutput, buffers: Buffers) -> Answers:
        """Solve those of the cells taken[0] .. end-1 that this thread takes from the counter.

        The lock of the interpreter is asked for where buffers are full, and at the end. Games that
        the quick kernels leave are solved then.
        """
        from acegames.kernels.batches import solve_cells

        mixed, opened, programs = list[Mixed](), tuple[OpenStage, ...](), 0
        answers, rest, asked = buffers.answers(out), buffers.rest, self._choices_and_goal(data)
        while taken[0] < end:
            how = (buffers.lot, data.source, *asked, data.widest)
            count, left, took = solve_cells(taken, end, *how, answers, rest)
            mixed, programs = [*mixed, _mixed(answers, count)], programs + took
            if left:
                others = self.solve_each(data, rest, left, answers)
                mixed, opened, programs = [*mixed, others.mixed], opened + others.open, programs + others.programs
        return Answers(*out, more=tuple(mixed), open=opened, programs=programs)

    def solve_each(self, data: LayerData, written: StageGames, count: int, answers: records.StageAnswers) -> Answers:
        """Solve the first `count` written games with the kernel that solves any game."""
        from acegames.kernels.batches import solve_written

        mixed, bad, programs = solve_written(written, count, *self._choices_and_goal(data), data.widest[0], answers)
        games = np.searchsorted(written.cell[:count], answers.open[:bad])
        stages = tuple(self._open(written, int(g), self.goal(data.t)) for g in games)
        return Answers(answers.value.T, answers.code, _mixed(answers, mixed), open=stages, programs=programs)

    def goal(self, t: int) -> Goal:
        """Return which equilibrium is wanted at time t."""
        t = t if self.concept.criterion.compares else 0  # else all times have the same goal
        if t not in self.goals:
            self.goals[t] = goal_of(self.concept, self.players, self.above(t))
        return self.goals[t]

    def _choices_and_goal(self, data: LayerData) -> tuple[Choices, Goal]:
        choices = self.choices
        if choices.action.flags.writeable:  # it has travelled
            choices = choices._replace(action=read_only(choices.action))
        return choices, self.goal(data.t)

    def _open(self, written: StageGames, g: int, goal: Goal) -> OpenStage:
        rows = slice(int(written.ptr[g]), int(written.ptr[g + 1]))
        row = written.row[rows]
        counted, above = row - written.first_row[g], self.compared(goal, int(written.first_row[g]))
        return OpenStage(int(written.cell[g]), counted, self.choices.action[row], written.utility[rows].copy(), above)

    def compared(self, goal: Goal, first_row: int) -> Floats:
        """Return what is added to utilities before players are compared, (N,)."""
        if not self.concept.criterion.compares:
            return np.zeros(len(self.players))
        added: Floats = goal.terms[first_row if len(goal.terms) > 1 else 0]
        return added


def _mixed(answers: records.StageAnswers, count: int) -> Mixed:
    if not count:
        return PURE_ONLY
    ptr, used = answers.mixed_ptr, int(answers.mixed_ptr[count])
    cell, size = answers.mixed_cell[:count].copy(), ptr[1 : count + 1] - ptr[:count]
    return Mixed(cell, size, answers.mixed_row[:used].copy(), answers.mixed_prob[:used].copy())


@dataclass(frozen=True, eq=False)
class Searches(CellSolver):
    """Nash equilibria. Mixed records hold the probabilities of each player's own actions."""

    def solve(self, data: LayerData, begin: int, end: int, out: LayerOutput) -> Answers:
        """Solve the stage games of some cells, see `CellSolver.solve`."""
        written, count = write_out(data, begin, end)
        used = int(written.ptr[count])
        cell, ptr, first_row = written.cell[:count], written.ptr[: count + 1], written.first_row[:count]
        stages = StageGames(cell, ptr, first_row, written.row[:used], written.utility[:used])
        solved = solve_stages(stages, self.choices, self.concept, self.players, self.above(data.t))
        failed = sorted([*solved.without, *solved.too_large])[:1]
        if failed:
            g = failed[0]
            return Answers(*out, failure=Failure(int(cell[g]), int(ptr[g + 1] - ptr[g]), g in solved.too_large))
        n, pure = len(self.players), solved.pure >= 0
        out.value[cell, :n], out.value[cell, n:] = solved.values, solved.abs_total
        out.code[cell[pure]] = 1 + stages.row[ptr[:-1][pure] + solved.pure[pure]] - first_row[pure]
        out.code[cell[~pure]] = 0
        mixed = Mixed(cell[~pure], np.diff(solved.ptr)[~pure], solved.action, solved.prob)
        return Answers(*out, mixed, programs=solved.searched, repaired=solved.repaired)


# -- kernels that are compiled ahead --------------------------------------------------------------


PLAYERS = ("p", "q")
Games = Literal["plain", "left", "nash"]


@cache
def compile_ahead(games: Games) -> None:
    """Begin to compile the kernels of some stage games in another process, unless they are cached.

    They take most of the time to compile, and numba compiles on one thread at a time.
    """
    from acegames.system.machine_code import compile_in_subprocess

    compile_in_subprocess(_needed(games), f"from {__name__} import solve_one; solve_one({games!r})")


def _needed(games: Games) -> Any:
    if games == "nash":
        from acegames.kernels.nash_stages import solve_nash

        return solve_nash
    from acegames.kernels.batches import solve_cells, solve_written

    return solve_cells if games == "plain" else solve_written


@running(compiled=True)
def solve_one(games: Games) -> None:
    """Solve a stage game of one joint action, compiled; the arrays have the types of all others."""
    choices = Choices(read_only(np.zeros((1, 2), np.int32)), np.zeros((1, 2), np.int32), np.arange(3, dtype=np.int64))
    one, ends, nothing = np.zeros(1, np.int64), np.arange(2, dtype=np.int64), np.zeros((1, len(PLAYERS)))
    written = StageGames(one, ends, one, one, np.zeros((1, 4)))
    if games == "nash":
        solve_stages(written, choices, Nash(), PLAYERS, nothing)
        return
    lo, size, small = np.zeros((1, 1), np.int64), np.ones((1, 1), np.int64), np.zeros(1, np.int32)
    pointers, outcomes = (read_only(ends),) * 2, (read_only(small), read_only(lo), read_only(np.ones(1)))
    here, step = Boxes(one, lo, size, ends, ends), Transitions(*pointers, *outcomes, one)
    after, reward = NextLayer(small, lo, size, ends, ends, small, lo, lo), read_only(np.zeros((1, 4)))
    data = LayerData(0, here, np.ones(1, np.uint8), None, step, reward, after, None, np.zeros((1, 4)), (1, 1))
    solver, out = Programs(CCE(), PLAYERS, choices, lambda t: nothing), empty_output(data)
    if games == "plain":
        solver.solve(data, 0, 1, out)
    else:
        solver.solve_each(data, written, 1, buffers_for(data, 1).answers(out))
