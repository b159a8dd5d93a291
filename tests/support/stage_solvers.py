"""The kernels as solvers of whole batches of stages, so that they pass the tests of every stage solver."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acegames.concepts import Correlated
from acegames.errors import TooLarge
from acegames.kernels.batches import solve_regular, solve_written
from acegames.kernels.lanes import LANES
from acegames.kernels.lockstep import allocate_group
from acegames.kernels.records import Choices, StageAnswers, StageGames
from acegames.kernels.stage import pure_workspace
from acegames.model.arrays import owners, pointers
from acegames.stage import Stage
from acegames.stage.exact import solve_exactly
from acegames.stage.highs import HighsStageSolver
from acegames.stage.nash import solve_stages
from acegames.stage.program import deviation_table, goal_of
from acegames.system.compiled import kernel


class StageBatch(NamedTuple):
    """Many stage games. The feasible joint actions of stage g are the rows ptr[g] : ptr[g+1]."""

    ptr: np.ndarray
    action: np.ndarray
    utility: np.ndarray
    abs_total: np.ndarray | None = None  # by default the absolute utilities
    baseline: np.ndarray | None = None  # by stage

    @property
    def number(self):
        """How many stages there are."""
        return len(self.ptr) - 1

    @property
    def rounded(self):
        """What rounding errors are a share of, by row."""
        return np.abs(self.utility) if self.abs_total is None else self.abs_total

    def stage(self, g, concept, players):
        """One of the stages."""
        rows = slice(self.ptr[g], self.ptr[g + 1])
        baseline = np.zeros(len(players)) if self.baseline is None else self.baseline[g]
        return Stage(self.action[rows], self.utility[rows], concept, players, self.rounded[rows], baseline)


class StageStrategies(NamedTuple):
    """An equilibrium of each stage of a batch, and which stages have none or were given up."""

    sigma: np.ndarray
    programs: int
    repaired: int
    without: tuple = ()
    too_large: tuple = ()


def batch_of(games):
    """One batch of stages [(joint actions, utilities)]."""
    ptr = pointers([len(X) for X, _ in games])
    return StageBatch(ptr, np.concatenate([X for X, _ in games]), np.concatenate([u for _, u in games]))


def answers(games, solver, concept, players="pq"):
    """A solver's distribution of each stage, None where it says that there is no equilibrium."""
    batch = batch_of(games)
    found = solver.solve(batch, concept, tuple(players))
    assert not found.too_large
    return [None if g in found.without else x for g, x in enumerate(np.split(found.sigma, batch.ptr[1:-1]))]


def solved_exactly(action, utility, concept, players):
    """Sigma of one stage in exact arithmetic."""
    return solve_exactly(Stage(action, utility, concept, players, np.abs(utility), np.zeros(len(players))))


def written(batch):
    """The stages as kernels read them; the rows of each count from its first."""
    utility = batch.utility if batch.utility.shape[1] == 1 else np.hstack([batch.utility, batch.rounded])
    return StageGames(np.arange(batch.number), batch.ptr, batch.ptr[:-1], np.arange(len(batch.utility)), utility)


def choices_of(batch, concept, players):
    """The joint actions of all rows, and where each player's switching leads."""
    counts = batch.action.max(axis=0).astype(np.int64) + 1
    deviation = deviation_table(owners(batch.ptr), batch.action, counts, concept.deviators(players))
    action = batch.action.view()
    action.setflags(write=False)  # as in the engine; else the kernel is compiled again
    return Choices(action, deviation if len(counts) > 1 else np.zeros((0, 1), np.int32), pointers(counts))


def above_of(batch):
    """What was taken out of the utilities, by row of the batch; one line where nothing was."""
    if batch.baseline is None:
        return np.zeros((1, batch.utility.shape[1]))
    return np.repeat(batch.baseline, np.diff(batch.ptr), axis=0)


def kernel_arguments(batch, concept, players):
    """The arguments of `kernels.written.solve_written` for a batch."""
    stages, number, rows, widest = written(batch), batch.number, len(batch.utility), int(np.diff(batch.ptr).max())
    row_type = np.uint16 if widest < 65535 else np.uint32
    value, code = np.empty((stages.utility.shape[1], number)), np.empty(number, row_type)
    cell, ptr, opened = (np.empty(n, np.int64) for n in (number, number + 1, number))
    answers = StageAnswers(value, code, cell, ptr, np.empty(rows, row_type), np.empty(rows), opened)
    goal = goal_of(concept, players, above_of(batch))
    return stages, number, choices_of(batch, concept, players), goal, widest, answers


@kernel
def solve_by_warp(games, count, choices, goal, widest, answers, warp, kept):
    """As `solve_written`, of what is plain: how many are mixed, left, and took a program.

    A warp may work on each group; what deviations gain is kept, or found again each time.
    """
    actions = choices.first_action[1:] - choices.first_action[:-1]
    group = allocate_group(widest, len(actions), actions, goal.correlated, LANES, warp, kept)
    answers.mixed_ptr[0] = 0
    pure, nothing = pure_workspace(widest, len(actions)), np.int64(0)
    return solve_regular(games, count, choices, goal, pure, group, nothing, nothing, answers)


def solve_plain_games(*games):
    """As an engine does."""
    return solve_by_warp(*games, None, True)


class PlainFirst:
    """Solves batches as engines do: what is plain in lockstep, and the rest one by one."""

    def solve(self, batch, concept, players):
        """Return an equilibrium of each stage."""
        if not isinstance(concept, Correlated):
            return NashStageSolver().solve(batch, concept, players)
        arguments = kernel_arguments(batch, concept, players)
        answers = arguments[-1]
        mixed, left, programs = solve_plain_games(*arguments)
        sigma, repaired = np.zeros(len(batch.utility)), 0
        cells = answers.open[:left].copy()
        answers.code[cells] = 0
        _file(batch, answers, mixed, sigma)
        if left:
            rows = np.concatenate([np.arange(batch.ptr[g], batch.ptr[g + 1]) for g in cells])
            part = StageBatch(
                pointers(np.diff(batch.ptr)[cells]),
                batch.action[rows],
                batch.utility[rows],
                batch.rounded[rows],
                None if batch.baseline is None else batch.baseline[cells],
            )
            found = BatchStageSolver().solve(part, concept, players)
            sigma[rows], programs, repaired = found.sigma, programs + found.programs, found.repaired
        return StageStrategies(sigma, int(programs), repaired)


def _file(batch, found, mixed, sigma):
    used, pure = found.mixed_ptr[mixed], found.code > 0
    sigma[batch.ptr[:-1][pure] + found.code[pure] - 1] = 1.0
    first = np.repeat(batch.ptr[found.mixed_cell[:mixed]], np.diff(found.mixed_ptr[: mixed + 1]))
    sigma[first + found.mixed_row[:used]] = found.mixed_prob[:used]


class BatchStageSolver:
    """Solves whole batches in numba, one stage after the other, with the same answers as the reference."""

    def solve(self, batch, concept, players):
        """Return an equilibrium of each stage."""
        if not isinstance(concept, Correlated):
            return NashStageSolver().solve(batch, concept, players)
        arguments = kernel_arguments(batch, concept, players)
        mixed, bad, programs = solve_written(*arguments)
        found, sigma = arguments[-1], np.zeros(len(batch.utility))
        opened = found.open[:bad]
        found.code[opened] = 0
        _file(batch, found, mixed, sigma)
        for g in opened.tolist():
            sigma[batch.ptr[g] : batch.ptr[g + 1]] = solve_exactly(batch.stage(g, concept, players))
        return StageStrategies(sigma, int(programs), int(bad))


class ReferenceStageSolver:
    """Solves stages one by one as the reference engine does, with HiGHS; Nash in rational arithmetic."""

    def solve(self, batch, concept, players):
        """Return an equilibrium of each stage that has one."""
        solver, sigma, repaired, failed = HighsStageSolver(), np.zeros(len(batch.utility)), 0, ([], [])
        for g in range(batch.number):
            try:
                found, exactly = solver.solve(batch.stage(g, concept, players))
            except TooLarge:
                failed[1].append(g)
                continue
            repaired += exactly
            if found is None:
                failed[0].append(g)
            else:
                sigma[batch.ptr[g] : batch.ptr[g + 1]] = found
        return StageStrategies(sigma, batch.number, repaired, *map(tuple, failed))


class NashStageSolver:
    """Solves whole batches in numba, and in exact arithmetic what floats cannot decide."""

    def solve(self, batch, concept, players):
        """Return a Nash equilibrium of each stage that has one."""
        choices = choices_of(batch, concept, players)
        found = solve_stages(written(batch), choices, concept, players, above_of(batch))
        sigma, group = np.zeros(len(batch.utility)), owners(batch.ptr)
        pure = np.flatnonzero(found.pure >= 0)
        sigma[batch.ptr[pure] + found.pure[pure]] = 1.0
        share = np.zeros((batch.number, int(choices.first_action[-1])))
        share[owners(found.ptr), found.action] = found.prob
        played = np.isin(group, np.flatnonzero(np.diff(found.ptr)))
        columns = choices.first_action[:-1] + batch.action[played]
        sigma[played] = share[group[played, None], columns].prod(axis=1)
        return StageStrategies(sigma, found.searched, found.repaired, found.without, found.too_large)
