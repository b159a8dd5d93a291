"""The engine for games that outgrow a machine: the same answer, in blocks on a cluster.

`cutting` cuts layers into blocks, `explored` finds the cells that are reached (with the tasks of
`explore_tasks`), `parts` solves parts of layers, `backward_tasks` asks for them in order, and
`pieces` puts the layers of the policy together. Where tasks run is up to `system.tasks`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from acegames.concepts import Concept
from acegames.engines import EngineResult, InMemory, LayerStore, OnProgress, check_whole
from acegames.engines.answers import Failure, failed
from acegames.engines.backward import root_values
from acegames.engines.baseline import baseline
from acegames.engines.cluster.backward_tasks import BackwardTasks
from acegames.engines.cluster.cutting import Cut, with_blocks
from acegames.engines.cluster.explore_tasks import Lists
from acegames.engines.cluster.explored import (
    BLOCK_CELLS,
    SMALL_BYTES,
    Explored,
    ReachedCells,
    UnclippedPairs,
    explore,
    explore_here,
    is_small,
    tile_counts,
)
from acegames.engines.cluster.parts import Runs, StripPlan, TaskContext, TimeTile, forget, plan_strips, time_tiles
from acegames.engines.forecast import STRETCH_BLOCK, Estimate, block_cells, block_seconds, stage_seconds
from acegames.engines.local import (
    REACHED_BYTES,
    RUN,
    LocalEngine,
    predict,
    reached_bytes,
    reached_pairs,
    stages_of,
)
from acegames.errors import InvalidOption, TooLarge
from acegames.model.arrays import Floats, Ints
from acegames.model.game import MarkovGame
from acegames.policy.layer import answers
from acegames.safety.explore import pieces
from acegames.safety.lattice import Lattice
from acegames.safety.space import Space
from acegames.system.extras import check_installed
from acegames.system.machine import available_memory, bytes_said
from acegames.system.ray_cluster import place_of
from acegames.system.tasks import Tasks

EXPLORED = 16  # times as many cells are explored in a task as stage games are solved


class InBlocks(ABC):
    """An engine that solves a game in blocks, wherever tasks run."""

    block: int | None
    dense: bool | None
    small: ClassVar[int] = SMALL_BYTES  # that exploring a game may take for this process to do it

    @abstractmethod
    def tasks(self) -> Tasks:
        """Return where tasks run."""

    def check_installed(self) -> None:  # noqa: B027, what is local needs no package
        """Raise MissingExtra where a package is missing, before any work."""

    def plan(self, game: MarkovGame, lattice: Lattice) -> Space:
        """Lay out the boxes of a game; cheap."""
        return LocalEngine(dense=self.dense).plan(game, lattice)

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
        try:
            with self.tasks() as tasks:
                planned = self.plan(game, lattice)
                strips = self._strips(planned, concept, tasks)
                explored = self._explore(tasks, planned, concept, strips)
                if not explored.space.feasible:
                    return None
                tiles = []
                if strips and explored.space.dense:
                    tiles = time_tiles(strips, explored.layout.cuts, tile_counts(explored))
                with UnclippedPairs(tasks, planned, lattice, REACHED_BYTES, self._explored, self.small) as unclipped:
                    return self._solved(tasks, explored, tiles, lattice, concept, progress, store, unclipped)
        finally:
            forget()

    def _explore(self, tasks: Tasks, planned: Space, concept: Concept, strips: StripPlan | None) -> Explored:
        """Find the cells that are reached: those of a small game in this process."""
        part = self._most(planned, concept, planned.totals, tasks.workers)
        if is_small(planned, self.small):
            return explore_here(tasks, planned, self._explored, part, strips)
        return explore(tasks, planned, None, self._explored, part, strips)

    def _solved(
        self,
        tasks: Tasks,
        explored: Explored,
        tiles: list[TimeTile],
        lattice: Lattice,
        concept: Concept,
        progress: OnProgress | None,
        store: LayerStore,
        unclipped: UnclippedPairs,
    ) -> EngineResult:
        space = explored.space
        predicted = predict(store, space, concept, None)
        check_driver(predicted)
        context = self._context(tasks, explored, tiles, concept, store)
        failure = partial(_failed, space, lattice, concept)
        solved = BackwardTasks(tasks, context, explored, tiles, store, progress, failure, unclipped.check).run()
        counts = (sum(x.programs for x in solved), sum(x.repaired for x in solved))
        layers = [x.layer for x in reversed(solved)]
        result = EngineResult(root_values(space, layers[0]), layers, space.dims, *counts)
        result = context.base.back(result, store.keep)
        allowed = reached_bytes(space, predicted, concept, store)
        reached = reached_pairs(
            space, lattice, lambda exact: unclipped.space() or explore(tasks, exact, allowed, self._explored).space
        )
        return replace(result, reached=reached, ran=tasks.account())

    @property
    def _explored(self) -> int | None:
        """Cells of the blocks that are explored, which takes far less than to solve them."""
        return None if self.block is None else EXPLORED * self.block

    def _strips(self, space: Space, concept: Concept, tasks: Tasks) -> StripPlan | None:
        """Return how layers are cut that are too small for a task."""
        wanted = STRETCH_BLOCK / self._each(space, concept) if self.block is None else self.block
        return plan_strips(space, wanted, tasks.workers, self._explored or BLOCK_CELLS)

    def _context(
        self, tasks: Tasks, explored: Explored, tiles: list[TimeTile], concept: Concept, store: LayerStore
    ) -> TaskContext:
        space, layout = explored.space, explored.layout
        base, times, n = baseline(space.game, space.played), range(space.game.horizon), len(space.game.players)
        parts = values = tuple(self._parts(explored, concept, t, tasks.workers) for t in times if not tiles)
        if tiles:
            own = {t: x for x in tiles for t in range(x.t0, x.t1)}
            parts = tuple(own[t].strips(layout.cuts[t]) for t in times)
            values = tuple(own[t].split_halos(layout.cuts[t]) if t > own[t].t0 else parts[t] for t in times)
        by_cell = [
            answers(cells.number, total) == total for cells, total in zip(space.cells, space.totals, strict=True)
        ]
        stages, run = stages_of(space, concept, base), min(RUN, block_cells(space))
        stored_columns = n if n == 1 or store.in_memory else 2 * n
        known = explored.reached if isinstance(explored.reached, ReachedCells) else None
        together = store.in_memory  # layers that nodes write are fetched by several
        return TaskContext(
            layout, known, parts, values, tuple(by_cell), concept, base, stages, run, stored_columns, together
        )

    def _parts(self, explored: Explored, concept: Concept, t: int, workers: int) -> Cut | Runs:
        """Return the parts of a layer: so much work each that asking for them costs little."""
        space, reached, number = explored.space, explored.reached, explored.reached.number[t]
        most = float(self._most(space, concept, number.sum(keepdims=True), workers)[0])
        if isinstance(reached, Lists):
            cuts = (pieces(n, max(math.ceil(n / most), 1)) for n in number.tolist())
            runs = [(k, a, b) for k, several in enumerate(cuts) for a, b in several]
            return Runs(*np.array(runs, dtype=np.int64).reshape(-1, 3).T)
        cut = explored.layout.cuts[t]
        filled = number / np.maximum(cut.block_cells, 1)
        return with_blocks(cut, np.ceil(cut.cells * filled[cut.owner]), most)

    def _most(self, space: Space, concept: Concept, pairs: Ints, workers: int) -> Floats:
        """Return how many stage games a part should have, of layers with so many of them."""
        each = self._each(space, concept)
        seconds = np.array([block_seconds(each * n, workers) for n in pairs.tolist()])
        return seconds / each if self.block is None else np.full(len(pairs), float(self.block))

    def _each(self, space: Space, concept: Concept) -> float:
        """Estimate how many seconds a stage game takes."""
        rows, outs = space.tables.widest
        return stage_seconds(rows, outs, len(space.game.players), concept, dense=bool(space.dense))


@dataclass(frozen=True)
class RayEngine(InBlocks):
    """Runs a solve, or a verification, on a cluster that Ray manages.

    It needs Ray on all machines: `pip install 'acegames[cluster]'`. The answer is the same as on
    one machine, to the last bit, however many machines there are and whichever of them fail on the
    way. The game's layers are cut into blocks; each is a task, which begins when the blocks that it
    leads to are there. With a checkpoint folder that all machines share, they write the policy
    there, and it is mapped; without one it comes to this process.

    Args:
        address: "auto" for the cluster that this machine is part of, "HOST:PORT" of its head node,
            or None for a Ray of this process alone where there is none. A connection that the
            process has already is used; `ray.shutdown()` ends it.
        retries: how often a task is run again when its process or its machine ended.
        in_flight: tasks that may be under way at once, by default 4 per processor and 8 more.
        block: stage games of a task, about; by default chosen so that it takes some tenths of a
            second, or a few seconds. The answer does not depend on it.
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
