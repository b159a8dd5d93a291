"""How long a solve takes on this machine, measured on a sample of its stage games.

Layers are taken from the last to the first, as a solve does. Of each layer as many cells are solved
as there is time for, in runs that lie evenly, by the engine's own solver; cells between them get
values between those of their neighbours, so that earlier stage games are about as mixed as in the
solve. Small games are solved completely. Nothing is compiled for this. Runs are solved twice and
the second time counts: the first may load a kernel, or write to memory that was never used.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from acegames.concepts import Concept
from acegames.engines.answers import Answers, RepairCache, joined, repair
from acegames.engines.stages import CellSolver, LayerData, LayerOutput, Programs, empty_output, layer_data, solve_block
from acegames.model.arrays import Floats, Ints, spans
from acegames.safety.explore import DENSE_FROM_THE_START, SPARSE_BYTES, PairCounts, sampled
from acegames.safety.lattice import Lattice
from acegames.safety.space import DENSE_OCCUPANCY, Space, plan
from acegames.system.compiling import nothing_compiled, working_clock
from acegames.system.tasks import Team

SECONDS = 0.2  # for all layers together, about
RUN_SECONDS = 1e-3  # for a run of cells at least, so that beginning it does not count
LEAST = RUN_SECONDS / 1_000_000  # of a run: clocks may stand still
BLOCK = 8192  # cells of a run where all are solved
DRAWN = 2.5e6  # outcomes that are looked at to see how many pairs there are without clipping


@dataclass(eq=False)
class TimedSample:
    """Solves some cells of an explored space, and adds up what all of them would take."""

    space: Space
    concept: Concept
    stages: CellSolver
    team: Team
    rewards: Callable[[int], Floats]  # of a time, for the stage solver
    pace: float  # seconds of a cell, by stored figures until some are solved

    def seconds(self, more: float) -> float:
        """Return how long all layers take, without exploring.

        `more` further pairs are in layers that are at least as wide as the widest ones here.
        """
        space, began, total, pairs = self.space, working_clock(), 0.0, 0
        number = [x.number for x in space.cells]
        wide, wide_pairs = 0.0, 0
        held = space.totals if space.dense else [x.number for x in space.cells]
        after = np.zeros((int(held[-1]), self.rewards(0).shape[1]))
        for t in reversed(range(space.game.horizon)):
            used = working_clock() - began
            if used > 2 * SECONDS:
                break
            took, after = self._layer(t, after, max(SECONDS - used, 0.0) / (t + 1))
            total, pairs = total + took, pairs + number[t]
            if 2 * number[t] >= max(number[:-1]):
                wide, wide_pairs = wide + took, wide_pairs + number[t]
        pace = wide / wide_pairs if wide_pairs else total / pairs
        return total + pace * (space.pairs - pairs + more)

    def _layer(self, t: int, after: Floats, allowed: float) -> tuple[float, Floats]:
        """Return seconds that the whole layer would take, and its values."""
        began = working_clock()
        data = layer_data(self.space, t, self.rewards(t), after)
        out, marks = empty_output(data), data.source.marks
        once = working_clock() - began
        runs = self._runs(data.cells, allowed)
        timed = self.team.each(lambda run: self._block(data, run, out), runs)
        took = sum(seconds for _, seconds in timed) / min(self.team.threads, len(runs))
        cells = sum(end - begin for begin, end in runs)
        self.pace = took / cells
        took += self._repair_seconds(joined(*out, [answers for answers, _ in timed]), allowed)
        solved, _ = spans(*np.array(runs).T)
        if len(marks):
            solved = solved[marks[solved] != 0]
        share = self.space.cells[t].number / len(solved) if len(solved) else data.cells / cells
        if cells == data.cells:
            return once + took, out.value
        return once + took * share, _between(solved, out.value)

    def _block(self, data: LayerData, run: tuple[int, int], out: LayerOutput) -> tuple[Answers, float]:
        """Return the answers of a run, and how long this thread has worked on them.

        That is not the time that has passed: on a busy machine a thread waits for a processor far
        longer than a run takes. But threads that run Python wait for each other in a solve as well.
        """
        for _ in range(2):
            began, worked = working_clock(), time.thread_time()
            with nothing_compiled():
                answers = solve_block(data, *run, self.stages, out)
            passed, worked = working_clock() - began, time.thread_time() - worked
        if isinstance(self.stages, Programs) and worked:  # that clock ticks seldom on some systems
            passed = min(passed, worked)
        return answers, max(passed, LEAST)

    def _runs(self, cells: int, allowed: float) -> list[tuple[int, int]]:
        """Return the runs that there is time for; all cells where it suffices."""
        most = int(allowed / self.pace)
        if most >= cells:
            return evenly(cells, -(-cells // BLOCK), BLOCK)
        run = max(int(max(min(4 * RUN_SECONDS, allowed), RUN_SECONDS) / self.pace), 1)
        return evenly(cells, max(most // run, self.team.threads), run)

    def _repair_seconds(self, answers: Answers, allowed: float) -> float:
        """Return the seconds that open stage games take; some of them are decided."""
        known, times = RepairCache(), list[float]()
        for stage in answers.open:
            began = working_clock()
            repair(replace(answers, open=(stage,)), self.concept, self.space.game.players, known)
            times.append(working_clock() - began)
            if sum(times) > allowed:
                break
        each = min(times, default=0.0)  # the first one loads what it needs
        return each * (len(answers.open) if len(known) == len(times) else len(known))


def exploring_seconds(counted: PairCounts, took: float, lattice: Lattice, allowed: int) -> float:
    """Return how long exploring a space takes, and exploring it again without clipping.

    `took` is what counting took. The second (`Policy.reached`) takes at most `allowed` bytes, and
    holds all cells or lists those that are reached, whichever is quicker.
    """
    space, pairs = counted.space, float(counted.reached.sum())
    own = took * max(pairs / sum(x.number for x in counted.seen.cells), 1.0)
    exact = plan(space.game, lattice, clip=False, arrivals=space.arrivals)
    if exact.same_boxes(space):
        return own
    held, now = float(exact.totals.sum()), float(space.totals.sum())
    if not exact.dense and not (space.dense and held < DENSE_FROM_THE_START * now):
        held = min(held, DENSE_OCCUPANCY * min(float(sampled(exact, outcomes=DRAWN).sum()), allowed / SPARSE_BYTES))
    return own + held * own / (now if space.dense else DENSE_OCCUPANCY * pairs)


def evenly(cells: int, number: int, length: int) -> list[tuple[int, int]]:
    """Return runs of so many cells, each in the middle of one of `number` equal parts of a layer.

    Parts that are shorter are runs themselves.
    """
    number = min(number, cells)
    parts = [(cells * k // number, cells * (k + 1) // number) for k in range(number)]
    less = [max(end - begin - length, 0) // 2 for begin, end in parts]
    return [(begin + x, min(begin + x + length, end)) for (begin, end), x in zip(parts, less, strict=True)]


def _between(solved: Ints, values: Floats) -> Floats:
    """Fill in the values of cells that were not solved, on straight lines between the others.

    Equal values would be ties, which take long.
    """
    if not len(solved) or values.shape[1] == 1:  # how long one player's maximum takes depends on no value
        return values
    cells = np.arange(len(values))
    for column in values.T:
        column[:] = np.interp(cells, solved, column[solved])
    return values
