"""The engine for games that outgrow a machine: the same answer, in blocks on a cluster.

The driver finds the cells that are reached. `cutting` cuts layers into blocks, `block_solver` asks
for them in order, `stage_tasks` solves them, and `pieces` puts the layers of the policy together.
Where tasks run is up to `system.tasks`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from acegames.concepts import Concept
from acegames.engines import EngineResult, InMemory, LayerStore, OnProgress, check_whole
from acegames.engines.answers import Failure, failed
from acegames.engines.backward import backward
from acegames.engines.baseline import Baseline, baseline
from acegames.engines.cluster.block_solver import BlockSolver
from acegames.engines.cluster.cutting import Layout
from acegames.engines.cluster.stage_tasks import TaskContext
from acegames.engines.forecast import Estimate, block_cells, stage_seconds
from acegames.engines.local import RUN, LocalEngine, predict, reached_bytes, reached_pairs, stages_of
from acegames.errors import InvalidOption, TooLarge
from acegames.model.game import MarkovGame
from acegames.policy.layer import answers
from acegames.safety.explore import explore
from acegames.safety.lattice import Lattice
from acegames.safety.space import Space
from acegames.system.extras import check_installed
from acegames.system.machine import available_memory, bytes_said, processors
from acegames.system.ray_cluster import place_of
from acegames.system.tasks import Tasks, Team

SHORT_BLOCK = 0.05  # seconds of a task at least, so that asking for it costs little
LONG_BLOCK = 0.5  # and at most, where there are enough of them for all workers and the driver keeps up
BLOCKS_EACH = 3  # of a layer for each worker, where they are not too short: workers wait at its end
DRIVER_SECONDS = 2e-3  # of the driver for each task


def block_seconds(layer: float, workers: int) -> float:
    """Return how long the blocks of a layer should take that takes one core `layer` seconds.

    Where asking for them binds, it takes `layer d / b` seconds of the driver, and then the last
    block b, which is least in sum where b is the root of `layer d`.
    """
    usual = min(max(layer / (BLOCKS_EACH * workers), SHORT_BLOCK), LONG_BLOCK)
    return max(usual, min(workers * DRIVER_SECONDS, math.sqrt(layer * DRIVER_SECONDS)))


@dataclass(frozen=True)
class RayEngine:
    """Runs a solve, or a verification, on a cluster that Ray manages.

    It needs Ray on all machines: `pip install 'acegames[cluster]'`. The answer is the same as on
    one machine, to the last bit, however many machines there are and whichever of them fail on the
    way. This process finds the situations that are reachable. The game's layers are cut into
    blocks; each is a task, which begins when the blocks that it leads to are there. With a
    checkpoint folder that all machines share, they write the policy there, and it is mapped;
    without one it comes to this process.

    Args:
        address: "auto" for the cluster that this machine is part of, "HOST:PORT" of its head node,
            or None for a Ray of this process alone where there is none. A connection that the
            process has already is used; `ray.shutdown()` ends it.
        retries: how often a task is run again when its process or its machine ended.
        in_flight: tasks that may be under way at once, by default 4 per processor and 8 more.
        block: stage games of a task, about; by default chosen so that it takes half a second at
            most. The answer does not depend on it.
        dense: as in `LocalEngine`, for tests.
    """

    address: str | None = "auto"
    retries: int = 3
    in_flight: int | None = None
    block: int | None = None
    dense: bool | None = None

    def __post_init__(self) -> None:
        if self.address is not None and not isinstance(self.address, str):
            raise InvalidOption(
                f"address: got {self.address!r:.60}, must be text such as 'auto' or 'HOST:PORT', or None"
            )
        place_of(self.address)
        check_whole("retries", self.retries, 0)
        for name, number in {"in_flight": self.in_flight, "block": self.block}.items():
            if number is not None:
                check_whole(name, number, 1)

    def check_installed(self) -> None:
        """See that Ray is installed here, without importing it.

        Raises:
            MissingExtra: it is not.
        """
        check_installed("ray", "clusters", "cluster")

    def tasks(self) -> Tasks:
        """Connect to the cluster."""
        from acegames.system.ray_tasks import RayTasks

        in_flight = None if self.in_flight is None else int(self.in_flight)
        return RayTasks(self.address, retries=int(self.retries), in_flight=in_flight)

    def estimate(self, game: MarkovGame, lattice: Lattice, concept: Concept) -> Estimate:
        """Predict pairs, memory and time of a solve on this machine without doing it."""
        return LocalEngine().estimate(game, lattice, concept)

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
        with Team(processors()) as team, self.tasks() as tasks:
            space = explore(LocalEngine(dense=self.dense).plan(game, lattice), None, team, on_disk=True)
            if not space.feasible:
                return None
            predicted = predict(store, space, concept, None)
            check_driver(predicted)
            base = baseline(game, space.played)
            context = self._context(space, concept, base, store, tasks.workers)
            failure = partial(_failed, space, lattice, concept)
            with BlockSolver(tasks, context, space, store, failure) as solver:
                result = backward(solver, base, store, progress)
            allowed = reached_bytes(space, predicted, concept, store)
            reached = reached_pairs(space, lattice, lambda exact: explore(exact, allowed, team))
            return replace(result, reached=reached, ran=tasks.account())

    def _context(self, space: Space, concept: Concept, base: Baseline, store: LayerStore, workers: int) -> TaskContext:
        """Return what the tasks of a solve share: the layers, cut into blocks, and how to solve
        these.
        """
        n, (rows, outs) = len(space.game.players), space.tables.widest
        each = stage_seconds(rows, outs, n, concept, dense=bool(space.dense))
        number = [cells.number for cells in space.cells]
        most = [self.block or block_seconds(each * pairs, workers) / each for pairs in number]
        by_cell = [answers(k, total) == total for k, total in zip(number, space.totals.tolist(), strict=True)]
        stored_columns = n if n == 1 or store.in_memory else 2 * n
        stages, run = stages_of(space, concept, base), min(RUN, block_cells(space))
        return TaskContext(Layout.of(space, most), tuple(by_cell), concept, base, stages, run, stored_columns)


def check_driver(predicted: Estimate) -> None:
    """Raise TooLarge where this process has not the memory for the policy that comes to it."""
    held, allowed = predicted.policy - predicted.on_disk, available_memory()
    if held > allowed:
        raise TooLarge(
            f"the policy of {predicted.size} comes to this process and would take {bytes_said(held)} of its memory, but only "
            f"{bytes_said(allowed)} is free. With a checkpoint folder that all machines see (checkpoint=, --checkpoint) they write it there"
        )


def _failed(space: Space, lattice: Lattice, concept: Concept, t: int, failure: Failure) -> Exception:
    """Return the error for a cell of a layer; `failed` counts those that are listed."""
    if not space.dense:
        failure = failure._replace(cell=int(space.cells[t].rank(np.array([failure.cell]))[0]))
    return failed(space, lattice, t, failure, concept)
