"""The default engine: compiled kernels over the cells of a clipped space, on all processors.

Only the values of two layers are held; solved layers go to a store, in memory or on disk. A layer
is cut into blocks (`blocks`), or threads take its cells from a common counter. Cells need the next
layer's values and nothing else, so the answer does not depend on how many threads there are. A
layer is filed while the next one is solved (`backward`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept, Nash
from acegames.engines import EngineResult, OnProgress
from acegames.engines.ahead import compile_ahead, load_kept
from acegames.engines.answers import Answers, joined
from acegames.engines.backward import ByArray, LayerSolver, backward
from acegames.engines.baseline import Baseline, baseline
from acegames.engines.blocks import LayerData, Room, StageSolver, empty_room, layer_data, solve_block
from acegames.engines.forecast import (
    WAITING_BYTES,
    Estimate,
    block_cells,
    check_limits,
    deviation_seconds,
    estimate_space,
    on_disk,
)
from acegames.engines.layer_store import InMemory, LayerStore
from acegames.engines.measure import SECONDS, Sample, exploring_seconds
from acegames.engines.none_found import failed
from acegames.engines.options import check_limit, check_whole
from acegames.engines.repair import Known, repair
from acegames.engines.stages import Buffers, Programs, Searches, buffers_for, choices_of, lot_of
from acegames.errors import TooLarge
from acegames.model.arrays import Floats, Ints, frozen, pointers
from acegames.model.game import MarkovGame
from acegames.policy.layer import Reached, answers
from acegames.safety.cells import LayerSpace
from acegames.safety.explore import Counted, batches, count, explore, known
from acegames.safety.lattice import Lattice
from acegames.safety.space import Space, plan
from acegames.system.announce import announce
from acegames.system.compiling import NotCompiled, nothing_compiled, working_clock
from acegames.system.machine import available_memory, processors
from acegames.system.threads import Team

RUN = 8192  # cells of a block at most, whatever `block_cells` allows
SHORTEST = 8  # a block has at least one in so many of these cells
RUN_ALONE = 1 << 17  # the same with one player, where a cell takes a few nanoseconds
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
    """

    threads: int | None = None
    memory: int | None = None
    seconds: float | None = None
    dense: bool | None = None

    def __post_init__(self) -> None:
        if self.threads is not None:
            check_whole("threads", self.threads, 1)
        check_limit("memory", self.memory)
        check_limit("seconds", self.seconds)

    def plan(self, game: MarkovGame, lattice: Lattice) -> Space:
        """Lay out the boxes of a game; cheap."""
        space = plan(game, lattice, clip=True)
        return space if self.dense is None or space.sums is not None else replace(space, dense=self.dense)

    def estimate(self, game: MarkovGame, lattice: Lattice, concept: Concept) -> Estimate:
        """Predict pairs, memory and time of a solve without doing it."""
        with Team(self.threads or processors()) as team:
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
        with Team(self.threads or processors()) as team:
            return self._solve(game, lattice, concept, progress, InMemory() if store is None else store, team)

    def _solve(
        self,
        game: MarkovGame,
        lattice: Lattice,
        concept: Concept,
        progress: OnProgress | None,
        store: LayerStore,
        team: Team,
    ) -> EngineResult | None:
        if len(game.players) > 1:
            compile_ahead("nash" if concept.product else "plain")
            if not concept.product and processors() > 2:
                compile_ahead("left")
        prepared = self._prepared(self.plan(game, lattice), lattice, concept, store, team)
        if prepared is None:
            return None
        space, predicted = prepared
        if len(game.players) > 1 and not concept.product:
            compile_ahead("left")  # not before on two processors: each has something to compile
        base = baseline(game, space.played)
        solver = self._solver(space, lattice, concept, base, store, team)
        found = backward(space, solver, concept, base, store, progress, team)
        allowed = reached_bytes(space, predicted, concept, store)
        return replace(found, reached=self._reached(space, lattice, allowed, team))

    def _explore(self, space: Space, memory: int | None, team: Team) -> Space:
        """Find the cells that are reached."""
        return explore(space, memory, team)

    def _solver(
        self, space: Space, lattice: Lattice, concept: Concept, base: Baseline, store: LayerStore, team: Team
    ) -> LayerSolver[Any]:
        """Return what solves the layers."""
        return solver_of(space, lattice, concept, base, team)

    def _reached(self, space: Space, lattice: Lattice, allowed: int, team: Team) -> Reached | None:
        """Return the pairs themselves, nothing clipped; None where they would take more memory."""
        return reached_pairs(space, lattice, lambda exact: self._explore(exact, allowed, team))

    def _prepared(
        self, space: Space, lattice: Lattice, concept: Concept, store: LayerStore, team: Team
    ) -> tuple[Space, Estimate] | None:
        """Return the explored space, within the limits, and what it will take; None if it is
        infeasible.

        Cells are listed where boxes do not fit.
        """
        began = working_clock()
        explored = self._explore(space, self.memory, team)
        took = working_clock() - began
        if not explored.feasible:
            return None
        predicted = self._predicted(explored, concept, store)
        allowed = available_memory() if self.memory is None else self.memory
        if self.dense is None and explored.dense and predicted.memory > allowed:
            try:
                listed = explore(replace(space, dense=False), min(allowed, LISTED_BYTES), team)
            except TooLarge:
                pass  # boxes have the better message
            else:
                either = self._predicted(listed, concept, store)
                if either.memory <= allowed:
                    explored, predicted = listed, either
        if self.seconds is not None:
            predicted = _timed(predicted, known(explored), took, lattice, concept, team)
        check_limits(predicted, explored, self.memory, self.seconds)
        return explored, predicted

    def _predicted(self, space: Space, concept: Concept, store: LayerStore) -> Estimate:
        return predicted_with(store, estimate_space(space, concept, self.threads), space)


def _timed(
    predicted: Estimate, counted: Counted, took: float, lattice: Lattice, concept: Concept, team: Team
) -> Estimate:
    """Return the prediction with a time that is measured, where kernels need not be compiled for
    it.

    Counting took so long.
    """
    space, seen = counted.space, counted.seen
    if not seen.feasible or deviation_seconds(seen) > SECONDS:
        return predicted
    load_kept(len(space.game.players), concept)
    try:
        allowed = reached_bytes(seen, predicted, concept, InMemory())
        exploring = exploring_seconds(counted, took, lattice, allowed, team)
        if _small_alone(seen):
            solving = OnePlayer(seen, baseline(seen.game, seen.played)).seconds() * predicted.pairs / seen.pairs
        else:
            began = time.perf_counter()
            base = baseline(seen.game, seen.played)
            stages = stages_of(seen, concept, base)
            solving = time.perf_counter() - began
            rewards = Threads(seen, lattice, concept, base, stages, team, RUN).rewards
            more = max(predicted.pairs - seen.pairs, 0)
            with Team(min(team.threads, processors())) as few:  # more would wait for each other
                solving += Sample(seen, concept, stages, few, rewards).seconds(more)
    except NotCompiled:
        return predicted
    return replace(predicted, seconds=exploring + solving, measured=True)


def predicted_with(store: LayerStore, predicted: Estimate, space: Space) -> Estimate:
    """Return the prediction, given what the store keeps in memory."""
    if not store.in_memory:
        return on_disk(predicted, space)
    return predicted if store.keep_values else predicted.without_values()


def reached_pairs(space: Space, lattice: Lattice, explored: Callable[[Space], Space]) -> Reached | None:
    """Return the pairs themselves, nothing clipped; None where exploring them raises TooLarge."""
    try:
        exact = plan(space.game, lattice, clip=False, arrivals=space.arrivals)
        if exact.same_boxes(space):
            return Reached(space.dims, space.layers[:-1], exact.sums)
        exact = explored(exact)
    except TooLarge:
        return None
    return Reached(exact.dims, exact.layers[:-1], exact.sums)


def reached_bytes(space: Space, predicted: Estimate, concept: Concept, store: LayerStore) -> int:
    """Return memory allowed for the exact set of reachable pairs (`Policy.reached`)."""
    if predicted.policy <= REACHED_BYTES:
        return REACHED_BYTES
    either = [estimate_space(replace(space, dense=dense), concept, None) for dense in (True, False)]
    policy, working = min(x.policy for x in either), min(x.working for x in either)
    return max(REACHED_BYTES, policy if store.in_memory else min(policy, max(working, WAITING_BYTES)))


def solver_of(space: Space, lattice: Lattice, concept: Concept, base: Baseline, team: Team) -> LayerSolver[Floats]:
    """Return what solves layers on this machine's processors."""
    players, run = space.game.players, min(RUN, block_cells(space))
    if _small_alone(space):
        return OnePlayer(space, base)
    if len(players) == 1 and space.dense:
        run = RUN_ALONE
    if len(players) > 1 and concept.product:
        announce("acegames.kernels.nash", "solve_nash", "kernels for Nash equilibria")
    elif len(players) > 1 or not space.dense:
        announce("acegames.kernels.cells", "solve_cells", "kernels for stage games", 10)
    stages = stages_of(space, concept, base)
    if isinstance(stages, Programs) and (len(players) > 1 or not space.dense):
        return Sharing(space, lattice, concept, base, stages, team, run)
    return Threads(space, lattice, concept, base, stages, team, run)


def _small_alone(space: Space) -> bool:
    """Return whether layers of one player are so small that several are solved in one call."""
    return len(space.game.players) == 1 and bool(space.dense) and int(space.totals.max()) <= RUN_ALONE


def stages_of(space: Space, concept: Concept, base: Baseline) -> Programs | Searches:
    """Return the solver of a game's stage games."""
    players = space.game.players
    if len(players) == 1 or not concept.product:
        return Programs(concept, players, choices_of(space, concept), partial(base.above, space.tables))
    if isinstance(concept, Nash) and concept.backend is not None:
        from acegames.stage.backend import load

        load(concept.backend)  # a missing package is told before the work
    return Searches(concept, players, choices_of(space, concept), partial(base.above, space.tables))


@dataclass(frozen=True, eq=False)
class Threads(ByArray):
    """Solves one layer after the other, its blocks on several threads."""

    space: Space
    lattice: Lattice
    concept: Concept
    base: Baseline
    stages: StageSolver
    team: Team
    run: int  # cells of a block at most

    def solve(self, t0: int, t1: int, after: Floats) -> tuple[list[Answers], Floats]:
        """As `LayerSolver.solve`, of one layer."""
        data = layer_data(self.space, t0, self.rewards(t0), after)
        whole = empty_room(data)
        data.source  # noqa: B018  made once, before threads ask for it

        found = joined(*whole, self._parts(data, whole))
        if len(self.space.game.players) == 1 and self.space.dense:
            _blank(self.space.layers[t0], whole.code, whole.value.reshape(-1))
        return [found], whole.value

    def _parts(self, data: LayerData, whole: Room) -> list[Answers]:
        """Return the answers of all cells, in parts that several threads make."""

        def block(bounds: tuple[int, int]) -> Answers:
            found = solve_block(data, *bounds, self.stages, whole)
            if found.failure:
                raise failed(self.space, self.lattice, data.t, found.failure, self.concept)
            return found

        return self.team.each(block, list(runs(data.cells, self.run, self.team.threads)))

    def rewards(self, t: int) -> Floats:
        """Of all rows, without the baseline of time t; read-only, as kernels are compiled for."""
        return self.base.columns(self.space.tables, t)


@dataclass(frozen=True, eq=False)
class Sharing(Threads):
    """The same; threads take cells from a common counter, and keep their buffers."""

    stages: Programs
    buffers: dict[int, Buffers] = field(default_factory=dict)

    def _parts(self, data: LayerData, whole: Room) -> list[Answers]:
        taken, known = np.zeros(1, dtype=np.int64), Known()

        def share(k: int) -> Answers:
            if k not in self.buffers:
                self.buffers[k] = buffers_for(data, self._games)
            try:
                found = self.stages.share(data, taken, data.cells, whole, self.buffers[k])
                return repair(found, self.concept, self.space.game.players, known) if found.open else found
            except BaseException:
                taken[0] = data.cells  # the other threads need not go on
                raise

        return self.team.each(share, range(max(min(self.team.threads, data.cells // lot_of(data, self._games)), 1)))

    @cached_property
    def _games(self) -> int:
        """How many a thread has room for."""
        return min(self.run, int(self.space.totals.max()))


@dataclass(frozen=True, eq=False)
class OnePlayer(ByArray):
    """Solves many small layers of one player in one call."""

    space: Space
    base: Baseline

    def cuts(self, first: int, end: int) -> list[tuple[int, int]]:
        """Runs of bounded work, so that an interrupt is answered in between."""
        return [(first + t0, first + t1) for t0, t1 in batches(self.space.totals[first:end])]

    def solve(self, t0: int, t1: int, after: Floats) -> tuple[list[Answers], Floats]:
        """As `LayerSolver.solve`; values and codes of all layers lie end to end."""
        from acegames.kernels.dense import alone_range

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
        alone_range(t0, t1, boxes, space.all_steps, *rewards, tables.widest, cell_start, value, code)
        found = []
        for t in reversed(range(t0, t1)):
            own = slice(int(cell_start[t]), int(cell_start[t + 1]))
            _blank(space.layers[t], code[own], value[own])
            found.append(Answers(value[own, None], code[own]))
        return found, value[: int(cell_start[t0 + 1]), None]

    def _rewards(self, t0: int, t1: int) -> tuple[Floats, Ints]:
        """Return rewards without the baseline, and by how much rows are counted from a later one,
        (H,).
        """
        tables, shift = self.space.tables, np.zeros(self.space.game.horizon, dtype=np.int64)
        if self.base.potential is None:
            return tables.reward, shift
        parts = [self.base.rewards(t) for t in range(t0, t1)]
        shift[t0:t1] = tables.row_ptr[tables.layer_at[t0:t1], 0] - pointers(list(map(len, parts)))[:-1]
        return frozen(np.concatenate(parts)), shift

    def seconds(self) -> float:
        """Of all layers, measured on some of the last ones."""
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
