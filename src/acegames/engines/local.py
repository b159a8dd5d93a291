"""The default engine: compiled kernels over the cells of a clipped space, on all processors.

Only the values of two layers are held; solved layers go to a store, in memory or on disk. A layer
is cut into blocks (`stages`), or threads take its cells from a common counter. Cells need the next
layer's values and nothing else, so the answer does not depend on how many threads there are. A
layer is filed while the next one is solved (`backward`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept, Nash
from acegames.engines import EngineResult, InMemory, LayerStore, OnProgress, check_limit, check_whole
from acegames.engines.answers import Answers, RepairCache, failed, joined, repair
from acegames.engines.backward import ByArray, LayerSolver, backward
from acegames.engines.baseline import Baseline, baseline
from acegames.engines.forecast import (
    WAITING_BYTES,
    Estimate,
    block_cells,
    check_limits,
    deviation_seconds,
    estimate_space,
    on_disk,
    stage_seconds,
)
from acegames.engines.measure import SECONDS, TimedSample, exploring_seconds
from acegames.engines.stages import (
    Buffers,
    CellSolver,
    LayerData,
    LayerOutput,
    Programs,
    Searches,
    buffers_for,
    choices_of,
    compile_ahead,
    empty_output,
    layer_data,
    lot_of,
    solve_block,
)
from acegames.errors import TooLarge
from acegames.model.arrays import Floats, Ints, frozen, pointers
from acegames.model.checks import check_flag
from acegames.model.game import MarkovGame
from acegames.policy.layer import Reached, answers
from acegames.safety.cells import LayerSpace
from acegames.safety.explore import PairCounts, as_counted, batches, count, explore
from acegames.safety.lattice import Lattice
from acegames.safety.space import Space, plan
from acegames.system.compiled import expect, running
from acegames.system.compiling import NotCompiled, nothing_compiled, working_clock
from acegames.system.machine import available_memory, processors
from acegames.system.tasks import Team

RUN = 8192  # cells of a block at most, whatever `block_cells` allows
SHORTEST = 8  # a block has at least one in so many of these cells
RUN_ALONE = 1 << 17  # cells of a block with one player, where a cell takes a few nanoseconds
MEASURED_ALONE = 1 << 21  # cells that are solved to see how long they take
REACHED_BYTES = 64 * 2**20  # memory that is always allowed for the exact set of reachable pairs
LISTED_BYTES = 2**30  # memory for listed cells where the boxes may not fit, before boxes are tried all the same


@dataclass(frozen=True)
class LocalEngine:
    """Solves on this machine, with compiled kernels on several threads.

    Args:
        threads: number of threads; all processors by default. The answer does not depend on it.
        memory: bytes that may be used; by default what is free. Larger games are refused with
            TooLarge beforehand.
        seconds: games that are predicted to take longer are refused with TooLarge beforehand (see
            `Estimate`).
        dense: True or False to choose how situations are stored, for tests; chosen from an estimate
            by default. The answer does not depend on it, to the last bit.
        compiled: False to interpret all kernels, which trusts no compiler and is some hundred times
            slower; True to compile them whatever that takes; by default whichever is sooner. The
            answer does not depend on it, to the last bit.
    """

    threads: int | None = None
    memory: int | None = None
    seconds: float | None = None
    dense: bool | None = None
    compiled: bool | None = None

    def __post_init__(self) -> None:
        if self.threads is not None:
            check_whole("threads", self.threads, 1)
        check_limit("memory", self.memory)
        check_limit("seconds", self.seconds)
        for what in ("dense", "compiled"):
            if getattr(self, what) is not None:
                check_flag(what, getattr(self, what))

    def plan(self, game: MarkovGame, lattice: Lattice) -> Space:
        """Lay out the boxes of a game; cheap."""
        space = plan(game, lattice, clip=True)
        return space if self.dense is None or space.sums is not None else replace(space, dense=self.dense)

    def estimate(self, game: MarkovGame, lattice: Lattice, concept: Concept) -> Estimate:
        """Predict pairs, memory and time of a solve without doing it."""
        with running(self.compiled), Team(self.threads or processors()) as team:
            planned, began = self.plan(game, lattice), working_clock()
            counted = count(planned, team)
            took = working_clock() - began
            predicted = estimate_space(counted.space, concept, self.threads, counted.reached)
            return _timed(predicted, counted, took, lattice, concept, team)

    def solve(
        self,
        game: MarkovGame,
        lattice: Lattice,
        concept: Concept,
        progress: OnProgress | None,
        store: LayerStore | None = None,
    ) -> EngineResult | None:
        """Return the equilibrium, or None when no policy keeps the budgets."""
        store = InMemory() if store is None else store
        with running(self.compiled), Team(self.threads or processors()) as team:
            planned = self.plan(game, lattice)
            if planned.dense:  # else boxes may have far more cells than there are situations
                compile_soon(int(planned.totals.sum()), game, concept, ties=processors() > 2)
            prepared = self._prepared(planned, lattice, concept, store, team)
            if prepared is None:
                return None
            space, predicted = prepared
            compile_soon(predicted.pairs, game, concept, ties=True)  # before, two processors had enough to compile
            base = baseline(game, space.played)
            solver = self._solver(space, lattice, concept, base, store, team)
            result = backward(solver, base, store, progress, team)
            allowed = reached_bytes(space, predicted, concept, store)
            reached = reached_pairs(space, lattice, lambda exact: self._explore(exact, allowed, team))
            return replace(result, reached=reached)

    def _explore(self, space: Space, memory: int | None, team: Team) -> Space:
        """Find the cells that are reached."""
        return explore(space, memory, team)

    def _solver(
        self, space: Space, lattice: Lattice, concept: Concept, base: Baseline, store: LayerStore, team: Team
    ) -> LayerSolver[Any]:
        """Return the solver of the layers."""
        return solver_of(space, lattice, concept, base, team)

    def _prepared(
        self, space: Space, lattice: Lattice, concept: Concept, store: LayerStore, team: Team
    ) -> tuple[Space, Estimate] | None:
        """Explore a space, and predict what solving it takes; None if it is infeasible.

        Cells are listed where boxes do not fit. TooLarge where a limit would be broken.
        """
        began = working_clock()
        explored = self._explore(space, self.memory, team)
        took = working_clock() - began
        if not explored.feasible:
            return None
        predicted = predict(store, explored, concept, self.threads)
        allowed = available_memory() if self.memory is None else self.memory
        if self.dense is None and explored.dense and predicted.memory > allowed:
            try:
                listed = explore(replace(space, dense=False), min(allowed, LISTED_BYTES), team)
            except TooLarge:
                pass  # boxes have the better message
            else:
                either = predict(store, listed, concept, self.threads)
                if either.memory <= allowed:
                    explored, predicted = listed, either
        if self.seconds is not None:
            predicted = _timed(predicted, as_counted(explored), took, lattice, concept, team)
        check_limits(predicted, explored, self.memory, self.seconds)
        return explored, predicted


def compile_soon(cells: int, game: MarkovGame, concept: Concept, *, ties: bool) -> None:
    """Begin to compile what so many cells need in other processes, if they are many."""
    if expect(cells) and len(game.players) > 1:
        compile_ahead("nash" if concept.product else "plain")
        if ties and not concept.product:
            compile_ahead("left")


def _timed(
    predicted: Estimate, counted: PairCounts, took: float, lattice: Lattice, concept: Concept, team: Team
) -> Estimate:
    """Return the prediction with a measured time, where no kernel has to be compiled for that.

    `took` are the seconds of counting.
    """
    seen = counted.seen
    if not (seen.feasible and expect(predicted.pairs)) or deviation_seconds(seen) > SECONDS:
        return predicted
    try:
        allowed = reached_bytes(seen, predicted, concept, InMemory())
        exploring = exploring_seconds(counted, took, lattice, allowed)
        if _small_alone(seen):
            solving = OnePlayer(seen, baseline(seen.game, seen.played)).seconds() * predicted.pairs / seen.pairs
        else:
            began = time.perf_counter()
            base = baseline(seen.game, seen.played)
            stages = stages_of(seen, concept, base)
            solving = time.perf_counter() - began
            rewards = partial(base.columns, seen.tables)
            rows, outs = seen.tables.widest
            pace = stage_seconds(rows, outs, len(seen.game.players), concept, dense=bool(seen.dense))
            with Team(min(team.threads, processors())) as few:  # more would wait for each other
                sample = TimedSample(seen, concept, stages, few, rewards, pace)
                solving += sample.seconds(max(predicted.pairs - seen.pairs, 0))
    except NotCompiled:
        return predicted
    return replace(predicted, seconds=exploring + solving, measured=True)


def predict(store: LayerStore, space: Space, concept: Concept, threads: int | None) -> Estimate:
    """Predict from an explored space, given what the store keeps in memory."""
    predicted = estimate_space(space, concept, threads)
    if not store.in_memory:
        return on_disk(predicted, space)
    return predicted if store.keep_values else predicted.without_values()


def reached_pairs(space: Space, lattice: Lattice, explored: Callable[[Space], Space]) -> Reached | None:
    """Find the pairs of a space without clipping; None where exploring them raises TooLarge."""
    try:
        exact = plan(space.game, lattice, clip=False, arrivals=space.arrivals)
        if exact.same_boxes(space):
            return Reached(space.dims, space.layers[:-1], exact.sums)
        exact = explored(exact)
    except TooLarge:
        return None
    return Reached(exact.dims, exact.layers[:-1], exact.sums)


def reached_bytes(space: Space, predicted: Estimate, concept: Concept, store: LayerStore) -> int:
    """Return the memory allowed for the exact set of reachable pairs (`Policy.reached`)."""
    if predicted.policy <= REACHED_BYTES:
        return REACHED_BYTES
    either = [estimate_space(replace(space, dense=dense), concept, None) for dense in (True, False)]
    policy, working = min(x.policy for x in either), min(x.working for x in either)
    return max(REACHED_BYTES, policy if store.in_memory else min(policy, max(working, WAITING_BYTES)))


def solver_of(space: Space, lattice: Lattice, concept: Concept, base: Baseline, team: Team) -> LayerSolver[Floats]:
    """Return the solver of layers for this machine's processors."""
    players, run = space.game.players, min(RUN, block_cells(space))
    if _small_alone(space):
        return OnePlayer(space, base)
    if len(players) == 1 and space.dense:
        run = RUN_ALONE
    stages = stages_of(space, concept, base)
    return ThreadedSolver(space, lattice, concept, base, stages, team, run)


def _small_alone(space: Space) -> bool:
    """Return whether layers of one player are so small that several are solved in one call."""
    return len(space.game.players) == 1 and bool(space.dense) and int(space.totals.max()) <= RUN_ALONE


def stages_of(space: Space, concept: Concept, base: Baseline) -> Programs | Searches:
    """Return the solver of a game's stage games."""
    players = space.game.players
    searches = len(players) > 1 and concept.product
    if searches and isinstance(concept, Nash) and concept.backend is not None:
        from acegames.stage.nash import load

        load(concept.backend)  # raises before the work where a package is missing
    kind = Searches if searches else Programs
    return kind(concept, players, choices_of(space, concept), partial(base.above, space.tables))


@dataclass(frozen=True, eq=False)
class ThreadedSolver(ByArray):
    """Solves one layer after the other on several threads.

    Threads take stage games that need linear programs from a common counter, and keep their
    buffers. Other layers are cut into blocks.
    """

    space: Space
    lattice: Lattice
    concept: Concept
    base: Baseline
    stages: CellSolver
    team: Team
    run: int  # cells of a block, or of a thread's buffers, at most
    buffers: dict[int, Buffers] = field(default_factory=dict)  # by thread

    def solve(self, t0: int, t1: int, after: Floats) -> tuple[list[Answers], Floats]:
        """Solve one layer, see `LayerSolver.solve`."""
        space = self.space
        data = layer_data(space, t0, self.base.columns(space.tables, t0), after)
        out = empty_output(data)
        data.source  # noqa: B018  made once, before threads ask for it
        alone = len(space.game.players) == 1 and bool(space.dense)
        programs = None if alone or not isinstance(self.stages, Programs) else self.stages
        parts = self._blocks(data, out) if programs is None else self._shares(data, out, programs)
        if alone:
            _blank(space.layers[t0], out.code, out.value.reshape(-1))
        return [joined(*out, parts)], out.value

    def _blocks(self, data: LayerData, out: LayerOutput) -> list[Answers]:
        """Return the answers of all cells, block by block."""

        def block(bounds: tuple[int, int]) -> Answers:
            answers = solve_block(data, *bounds, self.stages, out)
            if answers.failure:
                raise failed(self.space, self.lattice, data.t, answers.failure, self.concept)
            return answers

        return self.team.each(block, list(runs(data.cells, self.run, self.team.threads)))

    def _shares(self, data: LayerData, out: LayerOutput, programs: Programs) -> list[Answers]:
        """Return the answers of all cells, as threads take them from a common counter."""
        taken, repaired, games = np.zeros(1, dtype=np.int64), RepairCache(), min(self.run, int(self.space.totals.max()))

        def share(k: int) -> Answers:
            if k not in self.buffers:
                self.buffers[k] = buffers_for(data, games)
            try:
                answers = programs.share(data, taken, data.cells, out, self.buffers[k])
                return repair(answers, self.concept, self.space.game.players, repaired) if answers.open else answers
            except BaseException:
                taken[0] = data.cells  # the other threads need not go on
                raise

        return self.team.each(share, range(max(min(self.team.threads, data.cells // lot_of(data, games)), 1)))


@dataclass(frozen=True, eq=False)
class OnePlayer(ByArray):
    """Solves many small layers of one player in one call."""

    space: Space
    base: Baseline

    def cuts(self, first: int, end: int) -> list[tuple[int, int]]:
        """Cut the times into runs of bounded work, so that an interrupt is answered in between."""
        return [(first + t0, first + t1) for t0, t1 in batches(self.space.totals[first:end])]

    def solve(self, t0: int, t1: int, after: Floats) -> tuple[list[Answers], Floats]:
        """Solve several layers, see `LayerSolver.solve`; their values and codes lie end to end."""
        from acegames.kernels.dense import single_player_range

        space, tables = self.space, self.space.tables
        cell_start = np.concatenate([[0], np.cumsum(space.totals)])
        cell_start -= cell_start[t0]
        value = np.empty(int(cell_start[t1 + 1]))
        value[cell_start[t1] :] = after[:, 0]
        small = tables.widest[0] < 255
        code = np.zeros(len(value), np.uint8 if small else np.uint16 if tables.widest[0] < 65535 else np.uint32)
        assert space.height is not None
        boxes = space.all_boxes(space.height)
        rewards = self._rewards(t0, t1)
        single_player_range(t0, t1, boxes, space.all_steps, *rewards, tables.widest, cell_start, value, code)
        solved = []
        for t in reversed(range(t0, t1)):
            own = slice(int(cell_start[t]), int(cell_start[t + 1]))
            _blank(space.layers[t], code[own], value[own])
            solved.append(Answers(value[own, None], code[own]))
        return solved, value[: int(cell_start[t0 + 1]), None]

    def _rewards(self, t0: int, t1: int) -> tuple[Floats, Ints]:
        """Return rewards without the baseline, and the shift of row numbers of each time (H,)."""
        tables, shift = self.space.tables, np.zeros(self.space.game.horizon, dtype=np.int64)
        if self.base.potential is None:
            return tables.reward, shift
        parts = [self.base.rewards(t) for t in range(t0, t1)]
        shift[t0:t1] = tables.row_ptr[tables.layer_at[t0:t1], 0] - pointers(list(map(len, parts)))[:-1]
        return frozen(np.concatenate(parts)), shift

    def seconds(self) -> float:
        """Return how long all layers take, measured on some of the last ones."""
        H, totals = self.space.game.horizon, self.space.totals
        first = max(H - 1 - int(np.searchsorted(np.cumsum(totals[:H][::-1]), MEASURED_ALONE)), 0)
        with nothing_compiled():
            self.solve(H - 1, H, self.values_at_end())  # loads what is compiled
            began = time.perf_counter()
            self.solve(first, H, self.values_at_end())
        took = time.perf_counter() - began
        return took * float(totals[:H].sum() / totals[first:H].sum())


def _blank(space: LayerSpace, code: NDArray[Any], value: Floats) -> None:
    """Clear the answers of cells that nothing reaches: they would depend on the blocks."""
    assert space.cells is not None
    if space.cells.number < answers(space.cells.number, space.total):
        absent = space.cells.marks(space.total) == 0
        np.copyto(code, 0, where=absent)
        np.copyto(value, 0.0, where=absent)


def runs(count: int, most: int, threads: int) -> Iterator[tuple[int, int]]:
    """Cut a layer into runs of cells, which bounds the buffers of a block.

    For several threads they become shorter towards the end, so that none waits long for another.
    """
    begin, least = 0, max(most // SHORTEST, 1)
    if threads == 1 or count <= 2 * least:  # sharing would take longer than it saves
        least = most
    while begin < count:
        end = min(begin + min(max((count - begin) // (2 * threads), least), most), count)
        yield begin, end
        begin = end
