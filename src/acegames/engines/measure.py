"""How long a solve takes on this machine, measured on a sample of its stage games.

Layers are taken from the last to the first, as a solve does. Of each layer as many cells are solved
as there is time for, in runs that lie evenly, by the engine's own solver; cells between them get
values between those of their neighbours, so that earlier stage games are about as mixed as in the
solve. Small games are solved completely. Nothing is compiled for this.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from acegames.concepts import Concept
from acegames.engines.answers import Answers, RepairCache, joined, repair
from acegames.engines.stages import (
    CellSolver,
    LayerData,
    LayerOutput,
    Programs,
    empty_output,
    layer_data,
    solve_block,
)
from acegames.model.arrays import Floats, Ints, spans
from acegames.policy.layer import encode_layer
from acegames.safety.explore import DENSE_FROM_THE_START, SPARSE_BYTES, PairCounts, explore, sampled
from acegames.safety.lattice import Lattice
from acegames.safety.space import DENSE_OCCUPANCY, Space, plan
from acegames.system.compiling import nothing_compiled, seconds_loading, working_clock
from acegames.system.tasks import Team

SECONDS = 0.2  # for all layers together, about
RUN_SECONDS = 1e-3  # for a run of cells at least, so that beginning it does not count
LOADS = 3  # times that a run is solved at most
LEAST = RUN_SECONDS / 1_000_000  # of a run: clocks are set back when another thread has loaded a kernel
BLOCK = 8192  # cells of a run where all are solved
EXPLORED = 1e7  # outcomes that are looked at to see how long exploring takes


@dataclass(eq=False)
class TimedSample:
    """Solves some cells of an explored space, and adds up what all of them would take."""

    space: Space
    concept: Concept
    stages: CellSolver
    team: Team
    rewards: Callable[[int], Floats]  # of a time, for the stage solver
    pace: float = field(default=0.0, init=False)  # seconds of a cell; 0 when nothing is known

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
        out, source = empty_output(data), data.source
        once = working_clock() - began
        unknown = not self.pace
        if unknown:
            self._probe(data, out)
        runs = self._runs(data.cells, allowed)
        if unknown:
            self._touch(data, runs, out)
        timed = self.team.each(lambda run: self._block(data, run, out), runs)
        parts, each = [answers for answers, _ in timed], [seconds for _, seconds in timed]
        took = sum(each) / min(self.team.threads, len(runs))  # waiting at the end of a layer takes a small share of it
        cells = sum(end - begin for begin, end in runs)
        self.pace = took / cells
        answers = joined(*out, parts)
        repairs, answers = self._repaired(answers, t, allowed)
        solved, _ = spans(*np.array(runs).T)
        if len(source.marks):
            solved = solved[source.marks[solved] != 0]
        number = self.space.cells[t].number
        share = number / len(solved) if len(solved) else data.cells / cells
        if cells < data.cells:
            return once + (took + repairs) * share, _between(solved, out.value)
        began = working_clock()
        if not answers.failure and not answers.open:
            here, table = self.space.layers[t], self.space.game.layer(t)
            encode_layer(here, table, answers.code, answers.value, answers.mixed, *answers.more)
        return once + took + repairs + working_clock() - began, out.value

    def _block(self, data: LayerData, run: tuple[int, int], out: LayerOutput) -> tuple[Answers, float]:
        """Return the answers of a run, and how long this thread has worked on them.

        That is not the time that has passed: on a busy machine a thread waits for a processor far
        longer than a run takes. But threads that run Python wait for each other in a solve as well.
        A run in which a kernel was loaded is solved again: loading takes longer than what is
        counted as such.
        """
        for _ in range(LOADS):
            loaded, began, worked = seconds_loading(), working_clock(), time.thread_time()
            with nothing_compiled():
                answers = solve_block(data, *run, self.stages, out)
            passed, worked = working_clock() - began, time.thread_time() - worked
            if seconds_loading() == loaded:
                break
        if isinstance(self.stages, Programs) and worked:  # that clock ticks seldom on some systems
            passed = min(passed, worked)
        return answers, max(passed, LEAST)

    def _probe(self, data: LayerData, out: LayerOutput) -> None:
        """Find out the pace with one cell, then with more of them, so that this stays short."""
        cells, took = 1, 0.0
        while took < 2 * RUN_SECONDS and cells <= data.cells:
            runs = evenly(data.cells, 1, cells)
            self._touch(data, runs, out)
            took = sum(self._block(data, run, out)[1] for run in runs)
            self.pace, cells = took / cells, 4 * cells

    def _touch(self, data: LayerData, runs: list[tuple[int, int]], out: LayerOutput) -> None:
        """Solve runs of the last layer before they are timed.

        The first call loads what is compiled; and the values behind that layer are memory that was
        never used, which takes longer to come than the work on a few cells. A solve uses all of it.
        """
        for run in runs:
            self._block(data, run, out)

    def _runs(self, cells: int, allowed: float) -> list[tuple[int, int]]:
        """Return the runs that there is time for; all cells where it suffices."""
        most = int(allowed / self.pace)
        if most >= cells:
            return evenly(cells, -(-cells // BLOCK), BLOCK)
        run = max(int(max(min(4 * RUN_SECONDS, allowed), RUN_SECONDS) / self.pace), 1)
        return evenly(cells, max(most // run, self.team.threads), run)

    def _repaired(self, answers: Answers, t: int, allowed: float) -> tuple[float, Answers]:
        """Return the seconds that open stage games take, and answers with some of these decided."""
        known, opened, players = RepairCache(), answers.open, self.space.game.players
        times, done = list[float](), 0
        for done, stage in enumerate(opened, 1):
            began = working_clock()
            one = repair(replace(answers, open=(stage,)), self.concept, players, known)
            answers = replace(one, open=opened[done:])
            times.append(working_clock() - began)
            if sum(times) > allowed:
                break
        each = min(times, default=0.0)  # the first one loads what it needs
        return each * (len(opened) if len(known) == done else len(known)), answers


def exploring_seconds(counted: PairCounts, took: float, lattice: Lattice, allowed: int, team: Team) -> float:
    """Return how long exploring a space takes, and exploring it again without clipping.

    The second (`Policy.reached`) takes at most `allowed` bytes. `took` is what counting took. Small
    spaces are explored anew, because kernels are loaded by now.
    """
    space, seen = counted.space, counted.seen
    dense, lists = float(space.totals.sum()), float(counted.reached.sum())
    work = np.cumsum(seen.totals if space.dense else [x.number for x in seen.cells]) * space.tables.widest[1]
    part = seen.until(min(max(int(np.searchsorted(work, EXPLORED)) - 1, 1), seen.game.horizon))
    began = working_clock()
    explored = explore(part, None, team)
    again = working_clock() - began
    share = part.totals.sum() / dense if space.dense else sum(x.number for x in explored.cells) / lists
    own = took if space.explored and share < 1 else again / share
    each = own / (dense if space.dense else lists)
    listed_each, held_each = (each * DENSE_OCCUPANCY, each) if space.dense else (each, each / DENSE_OCCUPANCY)
    began = working_clock()
    exact = plan(space.game, lattice, clip=False, arrivals=space.arrivals)
    total = 3 * (working_clock() - began) + own
    if exact.same_boxes(space):
        return total
    dense = float(exact.totals.sum())
    if exact.dense or (space.dense and dense < DENSE_FROM_THE_START * space.totals.sum()):
        return total + dense * held_each
    lists = float(sampled(exact, outcomes=EXPLORED / 4).sum())
    if exact.dense is None and lists * DENSE_OCCUPANCY > dense:
        return total + dense * held_each
    return total + min(lists, allowed / SPARSE_BYTES) * listed_each


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
