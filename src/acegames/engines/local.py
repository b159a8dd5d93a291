"""The default engine: compiled kernels over the cells of a clipped space, a layer at a time, on all processors.

Only the values of two layers are held; the rest streams onto a shelf, in memory or on disk. A layer is cut into runs of
cells; a run needs the next layer's values and nothing else, so the answer does not depend on how many threads there are.
Stages whose float answer is not certified are solved again in exact arithmetic before the layer is closed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept, Correlated
from acegames.engines import EngineResult, Progress, Report
from acegames.engines.baseline import Level, level, with_gross
from acegames.engines.forecast import RUN_CELLS, WAITING_BYTES, Estimate, check_limits, estimate_space, on_disk
from acegames.engines.layer_store import InMemory, Shelf, SolvedLayer
from acegames.errors import InvalidOption, TooLarge
from acegames.kernels.records import Answers, Boxes, Choices, Following, Listed, Steps, Written
from acegames.model.game import Layer, MarkovGame
from acegames.policy.layer import PolicyLayer, Reached, answers
from acegames.safety.cells import LayerSpace
from acegames.safety.explore import batches, explore, listed
from acegames.safety.lattice import Lattice
from acegames.safety.space import Space, Tables, plan
from acegames.stage.batch import deviation_table, goal_of
from acegames.stage.exact import solve_exactly
from acegames.stage.units import weighted_sum
from acegames.system.machine import available_memory

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mixed = tuple[Ints, Ints, NDArray[Any], Floats]  # cells or pairs, support sizes, rows, probabilities
NOTHING = np.zeros(0, dtype=np.int64)
NOTHING_MIXED: Mixed = (NOTHING, NOTHING, NOTHING, np.zeros(0))

RUN = RUN_CELLS
RUN_ALONE = 1 << 17  # the same with one player, where a cell takes a few nanoseconds
REACHED_BYTES = 64 * 2**20  # what knowing exactly which pairs occur may always take
LISTED_BYTES = 2**30  # what listing cells may take where the boxes may not fit, before they are tried all the same


@dataclass(frozen=True)
class LocalEngine:
    """Solves on this machine.

    Args:
        threads: how many; all processors by default. The answer does not depend on it.
        memory: bytes that may be used; by default what is free. Larger games are refused with TooLarge beforehand.
        seconds: refuse games that are predicted to take longer. The prediction is a lower end: where play is mixed, or floats
            cannot decide, it takes longer.
        dense: True or False to work on layers cell by cell or as lists, for tests; chosen from an estimate by default. The answer
            does not depend on it, to the last bit.
    """

    threads: int | None = None
    memory: int | None = None
    seconds: float | None = None
    dense: bool | None = None

    def __post_init__(self) -> None:
        if self.threads is not None and self.threads < 1:
            raise InvalidOption(f"threads: got {self.threads!r}, must be at least 1")
        for name, limit in (("memory", self.memory), ("seconds", self.seconds)):
            if limit is not None and not limit > 0:
                raise InvalidOption(f"{name}: got {limit!r}, must be more than 0")

    def plan(self, game: MarkovGame, lattice: Lattice) -> Space:
        """Lay out the boxes of a game; cheap."""
        space = plan(game, lattice, clip=True)
        return space if self.dense is None else replace(space, dense=self.dense)

    def estimate(self, game: MarkovGame, lattice: Lattice, concept: Concept) -> Estimate:
        """Predict pairs, memory and time of a solve without doing it."""
        return estimate_space(self.plan(game, lattice), concept, self.threads)

    def solve(
        self,
        game: MarkovGame,
        lattice: Lattice,
        concept: Concept,
        progress: Report | None,
        shelf: Shelf | None = None,
    ) -> EngineResult | None:
        """Return the equilibrium, or None when no policy keeps the budgets."""
        shelf = InMemory() if shelf is None else shelf
        space, predicted = self._prepared(self.plan(game, lattice), concept, shelf)
        if not space.feasible:
            return None
        assert space.rewards is not None
        base = level(*space.rewards)
        stages = partial(_stages, space, lattice, concept, base)
        found = base.back(self._backward(space, stages, predicted.threads, shelf, progress), shelf.keep)
        return replace(found, reached=_reached(game, lattice, _reached_bytes(space, concept, shelf)))

    def _prepared(self, space: Space, concept: Concept, shelf: Shelf) -> tuple[Space, Estimate]:
        """The explored space and what it takes; as lists where boxes may not fit and few enough of their cells are reached."""
        allowed = available_memory() if self.memory is None else self.memory
        if self.dense is None and space.dense and estimate_space(space, concept, self.threads).memory > allowed:
            try:
                return self._within(min(allowed, LISTED_BYTES), replace(space, dense=False), concept, shelf)
            except TooLarge:
                pass  # what is said of the boxes says more
        return self._within(self.memory, space, concept, shelf)

    def _within(self, memory: int | None, space: Space, concept: Concept, shelf: Shelf) -> tuple[Space, Estimate]:
        explored = explore(space, memory)
        predicted = estimate_space(explored, concept, self.threads)
        predicted = predicted if shelf.in_memory else on_disk(predicted, explored)
        if explored.feasible:
            check_limits(predicted, explored, self.memory, self.seconds)
        return explored, predicted

    def _backward(
        self, space: Space, stages: Callable[[], Stages], threads: int, shelf: Shelf, progress: Report | None
    ) -> EngineResult:
        if space.dense and len(space.game.players) == 1 and int(space.totals.max()) <= RUN_ALONE:
            return _backward(space, partial(_solve_alone, space), batches, shelf, progress)
        pool = ThreadPoolExecutor(threads)
        try:
            step = partial(_solve_one, stages(), pool, threads)
            return _backward(space, step, _one_by_one, shelf, progress)
        finally:
            pool.shutdown(cancel_futures=True)  # after an interrupt, runs that have not begun are dropped


def _stages(space: Space, lattice: Lattice, concept: Concept, base: Level) -> Stages:
    if concept.product and len(space.game.players) > 1:
        from acegames.engines.nash import NashStages

        return NashStages(space, lattice, concept, base)
    return Stages(space, concept, base)


def _reached_bytes(space: Space, concept: Concept, shelf: Shelf) -> int:
    """What knowing the pairs exactly may take: as much as the policy, or on disk as the solve; the same for boxes and for lists."""
    either = [estimate_space(replace(space, dense=dense), concept, None) for dense in (True, False)]
    policy, working = min(x.policy for x in either), min(x.working for x in either)
    return max(REACHED_BYTES, policy if shelf.in_memory else min(policy, max(working, WAITING_BYTES)))


def _reached(game: MarkovGame, lattice: Lattice, allowed: int) -> Reached | None:
    """The pairs themselves, nothing clipped; None where they would take more memory than that."""
    try:
        exact = explore(plan(game, lattice, clip=False), allowed)
    except TooLarge:
        return None
    return Reached(exact.dims, exact.layers[:-1])


Step = Callable[[int, int, Floats], tuple[list[SolvedLayer], Floats]]


def _backward(
    space: Space,
    step: Step,
    cuts: Callable[[Ints], list[tuple[int, int]]],
    shelf: Shelf,
    progress: Report | None,
) -> EngineResult:
    """Solve the layers that are not on the shelf, from the last time to the first.

    `step` solves the layers t1-1 down to t0 from the values of t1, and hands back those of t0; `cuts` says which go together.
    """
    game, started, pairs = space.game, time.perf_counter(), space.pairs
    kept = {x.t: x for x in shelf.open(space)}
    resumed = done = sum(len(x.layer) for x in kept.values())
    layers = len(kept)
    if kept and progress:
        progress(Progress(layers, game.horizon, done, pairs, time.perf_counter() - started, resumed))
    for first, end in _missing(kept, game.horizon):
        values = _values_to_go_on(space, kept.get(end))
        for t0, t1 in reversed(cuts(space.totals[first:end])):
            solved, values = step(first + t0, first + t1, values)
            for x in solved:
                shelf.put(x)
                done += len(x.layer)
            layers += len(solved)
            if progress:
                progress(Progress(layers, game.horizon, done, pairs, time.perf_counter() - started, resumed))
    found = shelf.close()
    counts = (sum(x.programs for x in found), sum(x.repaired for x in found))
    return EngineResult(_root_values(space, found[-1].layer), [x.layer for x in reversed(found)], space.dims, *counts)


def _missing(kept: Collection[int], horizon: int) -> Iterator[tuple[int, int]]:
    """Runs of times first .. end-1 that are not kept, the last one first."""
    end = horizon
    for t in (*sorted(kept, reverse=True), -1):
        if t + 1 < end:
            yield t + 1, end
        end = t


def _values_to_go_on(space: Space, solved: SolvedLayer | None) -> Floats:
    """The values of a layer from the shelf, or of the end, by cell (dense) or by pair (sparse), however it files them; gross ones behind.

    They are a copy: kernels would be compiled a second time for arrays that cannot be written.
    """
    n = len(space.game.players)
    if solved is None:
        end = space.layers[-1]
        assert end.cells is not None
        return np.zeros((end.total if space.dense else end.cells.number, n if n == 1 else 2 * n))
    layer = solved.layer
    assert n == 1 or solved.gross is not None
    values = np.array(layer.values) if solved.gross is None else np.hstack([layer.values, solved.gross])
    total = layer.space.total
    if len(values) == (total if space.dense else len(layer)):
        return values
    cells = layer.cells.listed(total)
    return _spread(values, cells, total) if space.dense else values[cells]


def _spread(pairs: NDArray[Any], cells: Ints, total: int) -> NDArray[Any]:
    """By cell what is given by pair, zero where nothing is reached."""
    spread = np.zeros((total, *pairs.shape[1:]), dtype=pairs.dtype)
    spread[cells] = pairs
    return spread


def _one_by_one(totals: Ints) -> list[tuple[int, int]]:
    return [(t, t + 1) for t in range(len(totals))]


def _solve_one(
    stages: Stages, pool: ThreadPoolExecutor, threads: int, t: int, _: int, values: Floats
) -> tuple[list[SolvedLayer], Floats]:
    """A step of `_backward` that is one layer."""
    return stages.solve_layer(t, values, pool, threads)


def _solve_alone(space: Space, t0: int, t1: int, values: Floats) -> tuple[list[SolvedLayer], Floats]:
    """A step of `_backward` with one player and small layers: many layers in one call, values and choices of all of them cell by cell."""
    from acegames.kernels.dense import alone_range

    game, tables = space.game, space.tables
    cell_start = np.concatenate([[0], np.cumsum(space.totals)])
    cell_start -= cell_start[t0]
    value = np.empty(int(cell_start[t1 + 1]))
    value[cell_start[t1] :] = values[:, 0]
    code = np.zeros(len(value), dtype=np.uint8 if tables.widest[0] < 255 else _code_type(tables.widest[0]))
    assert space.height is not None
    boxes = space.all_boxes(space.height)
    alone_range(t0, t1, boxes, space.all_steps, tables.reward, tables.widest, cell_start, value, code)
    solved = []
    for t in reversed(range(t0, t1)):
        a, b = int(cell_start[t]), int(cell_start[t + 1])
        _blank(space.layers[t], code[a:b], value[a:b])
        layer, _ = _file(space.layers[t], game.layer(t), code[a:b], value[a:b, None], None, NOTHING_MIXED)
        solved.append(SolvedLayer(t, layer))
    return solved, value[: int(cell_start[t0 + 1]), None]


def _blank(space: LayerSpace, code: NDArray[Any], value: Floats) -> None:
    """Forget the answers of cells that nothing reaches, so that they cannot depend on where a solve was broken off."""
    assert space.cells is not None
    if space.cells.number < answers(space.cells.number, space.total):
        absent = space.cells.marks(space.total) == 0
        np.copyto(code, 0, where=absent)
        np.copyto(value, 0.0, where=absent)


def _root_values(space: Space, first: PolicyLayer) -> Floats:
    state = np.array([s for s, _ in space.game.initial], dtype=np.int64)
    roots = first.pairs(state, np.zeros((len(state), space.budget.shape[1]), dtype=np.int64), None)
    return weighted_sum([p for _, p in space.game.initial], first.values[roots])


def _code_type(rows: int) -> Any:
    """What kernels write joint actions in; one type for nearly all games, because each would be compiled for anew."""
    return np.uint16 if rows < 65535 else np.uint32


def _file(
    space: LayerSpace, table: Layer, code: NDArray[Any], value: Floats, cells: Ints | None, mixed: Mixed
) -> tuple[PolicyLayer, Floats | None]:
    """A layer of the policy, and its gross values, from answers by cell (dense) or by pair (sparse).

    `cells` are the reached ones where they are at hand.

    How it is filed does not depend on how it was solved, so that neither the answer nor a checkpoint does.
    """
    assert space.cells is not None
    at, size, row, prob = mixed
    filed = answers(space.cells.number, space.total)
    if len(code) != filed:
        cells = space.cells.listed(space.total) if cells is None else cells
        if filed == space.total:
            code, value, at = _spread(code, cells, filed), _spread(value, cells, filed), cells[at]
        else:
            code, value, at = code[cells], value[cells], np.searchsorted(cells, at)
    if code.dtype != np.uint8 and int(np.diff(table.row_ptr).max()) < 255:
        code = code.astype(np.uint8)
    ptr = np.concatenate([[0], np.cumsum(size)])
    fits = int(row.max(initial=0)) <= np.iinfo(code.dtype).max  # numbers of actions may exceed those of joint ones
    row = row.astype(code.dtype if fits else np.uint32)
    n = table.action.shape[1]
    values, gross = (value, None) if value.shape[1] == n else (np.ascontiguousarray(value[:, :n]), value[:, n:])
    return PolicyLayer(space, table.row_ptr, table.action, code, values, at, ptr, row, prob), gross


@dataclass
class Run:
    """The answers of one run of cells: where play is mixed, and the stage games that were not certified, as they were written out."""

    mixed_cell: Ints
    mixed_ptr: Ints
    mixed_row: NDArray[Any]
    mixed_prob: Floats
    programs: int
    repaired: int = 0
    open: tuple[OpenStage, ...] = ()


class OpenStage(NamedTuple):
    """A stage game that was not certified."""

    cell: int
    first_row: int  # of the state
    row: Ints  # (R,)
    utility: Floats  # (R, 2N) and gross ones


@dataclass(frozen=True, eq=False)
class LayerTask:
    """What the runs of one layer share: what they read, and where they write."""

    t: int
    here: Boxes
    marks: NDArray[np.uint8] | None  # of each cell, where cells are held; else the cells are listed
    keys: Ints | None
    step: Steps
    reward: Floats
    after: Following
    listed: Listed | None
    next_value: Floats
    value: Floats
    code: NDArray[Any]


class Stages:
    """Solves the stage games of one layer after the other."""

    def __init__(self, space: Space, concept: Concept, base: Level) -> None:
        game = space.game
        self.space, self.game, self.concept, self.base = space, game, concept, base
        self.players: tuple[Hashable, ...] = game.players
        self.alone = len(game.players) == 1
        counts = np.array([len(labels) for labels in game.actions], dtype=np.int64)
        self.widest = space.tables.widest
        who = concept.deviators(game.players)
        deviation = _deviations(space.tables, counts, who) if not self.alone else np.zeros((0, 1), dtype=np.int32)
        self.choices = Choices(space.tables.action, deviation, np.concatenate([[0], np.cumsum(counts)]))
        self.reward = with_gross(space.tables.reward)

    def solve_layer(
        self, t: int, next_values: Floats, pool: ThreadPoolExecutor, threads: int
    ) -> tuple[list[SolvedLayer], Floats]:
        """Return the policy's layer, and the values by cell (dense) or by pair (sparse)."""
        space, here, after = self.space, self.space.layers[t], self.space.layers[t + 1]
        assert here.cells is not None and after.cells is not None
        count = here.total if space.dense else here.cells.number
        code, value = np.zeros(count, dtype=_code_type(self.widest[0])), np.zeros((count, self.reward.shape[1]))
        marks = here.cells.marks(here.total) if space.dense else None
        there = None if after.cells.keys is None else listed(after.cells.keys)
        layer = (here.boxes(), marks, here.cells.keys, space.steps(t), self._rewards(t), space.following(t + 1), there)
        task = LayerTask(t, *layer, next_values, value, code)
        bounds = self._bounds(count, threads)
        run = partial(self._run, task)
        found = list(map(run, bounds)) if len(bounds) == 1 else list(pool.map(run, bounds))
        if self.alone and space.dense:
            _blank(here, code, value.reshape(-1))
        filed, gross, repaired = self._close(task, here, found)
        repaired += sum(r.repaired for r in found)
        return [SolvedLayer(t, filed, sum(r.programs for r in found), repaired, gross)], value

    def _rewards(self, t: int) -> Floats:
        """Of all rows, without what is taken from them at time t; read-only, as kernels are compiled for."""
        return with_gross(self.space.tables.reward - self.base.taken[t]) if self.base.taken[t].any() else self.reward

    def _bounds(self, count: int, threads: int) -> list[tuple[int, int]]:
        return list(runs(count, threads, RUN_ALONE if self.alone else RUN))

    def _run(self, task: LayerTask, bounds: tuple[int, int]) -> Run:
        """The stage games of a run of cells: write them out, solve them, file the answers."""
        if task.marks is not None and self.alone:
            from acegames.kernels.dense import solve_alone

            layer = (task.here, task.step, task.reward, task.after, task.next_value.reshape(-1), self.widest)
            solve_alone(*bounds, *layer, task.value.reshape(-1), task.code)
            return Run(NOTHING, np.zeros(1, dtype=np.int64), NOTHING, np.zeros(0), 0)
        return self._solve(task, *self._write(task, bounds))

    def _write(self, task: LayerTask, bounds: tuple[int, int]) -> tuple[Written, int]:
        """The stage games of a run of cells, with room behind, and their number."""
        length = bounds[1] - bounds[0]
        entries = length * self.widest[0] + 1  # one more: a row is written before it proves infeasible
        cell, ptr, first_row = (np.empty(n, np.int64) for n in (length, length + 1, length))
        written = Written(cell, ptr, first_row, np.empty(entries, np.int64), np.empty((entries, task.value.shape[1])))
        if task.marks is not None:
            from acegames.kernels.dense import write_dense

            layer = (task.here, task.marks, task.step, task.reward, task.after, task.next_value)
            return written, write_dense(*bounds, *layer, self.widest, written)
        from acegames.kernels.sparse import write_sparse

        listed_layer = (task.keys, task.here, task.step, task.reward, task.after, task.listed, task.next_value)
        return written, write_sparse(*bounds, *listed_layer, written)

    def _solve(self, task: LayerTask, written: Written, count: int) -> Run:
        from acegames.kernels.written import solve_written

        rows = int(written.ptr[count])
        cell, ptr, opened = (np.empty(n, np.int64) for n in (count, count + 1, count))
        row, prob = np.empty(rows, dtype=task.code.dtype), np.empty(rows)
        answers = Answers(task.value, task.code, cell, ptr, row, prob, opened)
        goal = goal_of(self.concept, self.players, self.base.above[task.t])
        mixed, bad, programs = solve_written(written, count, self.choices, goal, self.widest[0], answers)
        used = int(ptr[mixed])
        return Run(
            cell[:mixed].copy(),
            ptr[: mixed + 1].copy(),
            row[:used].copy(),
            prob[:used].copy(),
            programs,
            open=tuple(_open_stage(written, int(g)) for g in opened[:bad]),
        )

    def _close(self, task: LayerTask, here: LayerSpace, found: list[Run]) -> tuple[PolicyLayer, Floats | None, int]:
        """Repair what was not certified and file everything under the numbers of the pairs."""
        known: dict[bytes, Floats] = {}
        repairs = [self._repair(task, stage, known) for run in found for stage in run.open]
        records = [r for r in (*found, *repairs) if len(r.mixed_cell)]
        cells = np.flatnonzero(task.marks) if task.marks is not None else task.keys
        layer = (here, self.game.layer(task.t), task.code, task.value, cells)
        if not records:
            return *_file(*layer, NOTHING_MIXED), len(repairs)
        at = np.concatenate([r.mixed_cell for r in records])
        size = np.concatenate([np.diff(r.mixed_ptr) for r in records])
        row, prob = np.concatenate([r.mixed_row for r in records]), np.concatenate([r.mixed_prob for r in records])
        if any(len(r.mixed_cell) for r in repairs):  # they come last; bring them into the order of the cells
            order = np.argsort(at, kind="stable")
            start = np.cumsum(size) - size
            take = np.concatenate([np.arange(start[k], start[k] + size[k]) for k in order])
            at, size, row, prob = at[order], size[order], row[take], prob[take]
        return *_file(*layer, (at, size, row, prob)), len(repairs)

    def _repair(self, task: LayerTask, stage: OpenStage, known: dict[bytes, Floats]) -> Run:
        """Solve a stage exactly, from the very numbers that the kernel had; many stages of a layer are the same, and in `known`."""
        action, n = self.choices.action[stage.row], len(self.players)
        assert isinstance(self.concept, Correlated)
        key = action.tobytes() + stage.utility.tobytes()
        if key not in known:
            both = (stage.utility[:, :n], self.concept, self.players, stage.utility[:, n:])
            known[key] = solve_exactly(action, *both, self.base.above[task.t])
        sigma, row = known[key], stage.row - stage.first_row
        played = np.flatnonzero(sigma > 0)
        task.value[stage.cell] = weighted_sum(sigma[played].tolist(), stage.utility[played])
        task.code[stage.cell] = 1 + row[played[0]] if len(played) == 1 else 0
        played = played[: 0 if len(played) == 1 else None]
        ptr = np.array([0, len(played)] if len(played) else [0], dtype=np.int64)
        return Run(np.full(len(ptr) - 1, stage.cell), ptr, row[played], sigma[played], 1)


def _open_stage(written: Written, g: int) -> OpenStage:
    rows = slice(int(written.ptr[g]), int(written.ptr[g + 1]))
    return OpenStage(int(written.cell[g]), int(written.first_row[g]), written.row[rows], written.utility[rows])


def runs(count: int, threads: int, least: int) -> Iterator[tuple[int, int]]:
    """Cut a layer into runs, which bounds the buffers of a run; small layers stay whole and take one thread."""
    step = max(least, -(-count // (threads * 64))) if count > least else max(count, 1)
    for begin in range(0, count, step):
        yield begin, min(begin + step, count)


def _deviations(tables: Tables, counts: Ints, deviates: tuple[bool, ...]) -> NDArray[np.int32]:
    """`deviation_table` of every state of every layer."""
    owners = np.diff(tables.row_ptr, axis=1)
    return deviation_table(np.repeat(np.arange(owners.size), owners.ravel()), tables.action, counts, deviates)
