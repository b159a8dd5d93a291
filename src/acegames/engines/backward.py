"""Backward induction, written once: engines differ only in how they solve a layer."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from acegames.concepts import Concept
from acegames.engines import EngineResult, OnProgress, Progress
from acegames.engines.answers import Answers
from acegames.engines.baseline import Baseline
from acegames.engines.layer_store import ExploredSpace, LayerStore, SolvedLayer
from acegames.engines.repair import repair
from acegames.model.arrays import Floats, Ints
from acegames.policy.filing import file_layer
from acegames.policy.layer import PolicyLayer
from acegames.stage.units import weighted_sum
from acegames.system.threads import Team

V = TypeVar("V")
LARGE = 4096  # cells of layers that are filed on another thread


class LayerSolver(Protocol[V]):
    """The only thing that engines differ in. V is a handle on the values of one layer."""

    def cuts(self, first: int, end: int) -> list[tuple[int, int]]:
        """Cut the times first .. end-1 into runs t0 .. t1-1 that `solve` takes in one step."""

    def values_at_end(self) -> V:
        """Return the values after the last step: zero."""

    def values_of(self, solved: SolvedLayer) -> V:
        """Return the values of a stored layer, to go on from."""

    def solve(self, t0: int, t1: int, after: V) -> tuple[list[Answers], V]:
        """Return the answers of t1-1 down to t0 from the values of t1, and the values of t0.

        Only the layer t0 may have open stages.
        """

    def mended(self, values: V, cells: Ints, repaired: Floats) -> V:
        """Return the values that `solve` returned, with those of cells that were open replaced."""


class LayerByLayer:
    """What solvers share that take one layer after the other."""

    def cuts(self, first: int, end: int) -> list[tuple[int, int]]:
        """Return layer by layer."""
        return [(t, t + 1) for t in range(first, end)]

    def mended(self, values: V, cells: Ints, repaired: Floats) -> V:
        """Return the values themselves: those of open stages are written into them."""
        return values


class ByArray(LayerByLayer):
    """The same, with the values of a layer in an array.

    Values are by cell where all cells are held, else by reached cell; gross ones come behind.
    """

    space: ExploredSpace

    def values_at_end(self) -> Floats:
        """Zero."""
        end, n = self.space.layers[-1], len(self.space.game.players)
        assert end.cells is not None
        return np.zeros((end.total if self.space.dense else end.cells.number, n if n == 1 else 2 * n))

    def values_of(self, solved: SolvedLayer) -> Floats:
        """Return a copy: kernels would be compiled a second time for arrays that cannot be written."""
        return solved.both(by_cell=bool(self.space.dense))


def backward(
    space: ExploredSpace,
    solver: LayerSolver[Any],
    concept: Concept,
    base: Baseline,
    store: LayerStore,
    progress: OnProgress | None,
    team: Team | None = None,
) -> EngineResult:
    """Solve the layers that the store does not hold, from the last time to the first.

    Where the team has other threads, large layers are filed while the next one is solved.
    """
    kept = {x.t: x for x in store.open(space)}
    game, filing = space.game, _Filing(space, store, [x.layer for x in kept.values()], progress, team or Team())
    if kept:
        filing.tell()
    for first, end in missing(kept, game.horizon):
        values = solver.values_of(kept[end]) if end < game.horizon else solver.values_at_end()
        for t0, t1 in reversed(solver.cuts(first, end)):
            found, values = solver.solve(t0, t1, values)
            if found[-1].open:
                cells = np.array([stage.cell for stage in found[-1].open])
                found[-1] = repair(found[-1], concept, game.players, {})
                values = solver.mended(values, cells, found[-1].value[cells])
            filing.put(t0, t1, found)
        filing.finish()
    solved = store.close()
    counts = (sum(x.programs for x in solved), sum(x.repaired for x in solved))
    result = EngineResult(
        root_values(space, solved[-1].layer), [x.layer for x in reversed(solved)], space.dims, *counts
    )
    return base.back(result, store.keep)


class _Filing:
    """Files layers and tells of progress; where there are threads, large layers in the background.

    No more than one step's layers wait, whose values the next step holds anyway.
    """

    def __init__(
        self,
        space: ExploredSpace,
        store: LayerStore,
        kept: Sequence[PolicyLayer],
        progress: OnProgress | None,
        team: Team,
    ) -> None:
        self.space, self.store, self.progress, self.team = space, store, progress, team
        self.started, self.layers = time.perf_counter(), len(kept)
        self.resumed = self.done = sum(map(len, kept))
        self.begun: Callable[[], list[int]] | None = None

    def put(self, t0: int, t1: int, found: Sequence[Answers]) -> None:
        """Take the answers of the times t1-1 down to t0."""
        self.finish()
        work = partial(self._file, range(t1 - 1, t0 - 1, -1), found)
        if self.team.threads > 1 and sum(len(x.code) for x in found) >= LARGE:
            self.begun = self.team.later(work)
        else:
            self._count(work())

    def finish(self) -> None:
        """Wait for layers that are being filed."""
        if self.begun is not None:
            begun, self.begun = self.begun, None
            self._count(begun())

    def tell(self) -> None:
        """Say how far the solve is."""
        if self.progress:
            seconds = time.perf_counter() - self.started
            space = self.space
            self.progress(Progress(self.layers, space.game.horizon, self.done, space.pairs, seconds, self.resumed))

    def _file(self, times: Sequence[int], found: Sequence[Answers]) -> list[int]:
        """Return how many pairs each layer has."""
        pairs = []
        for t, x in zip(times, found, strict=True):
            x = x.coming() if x.coming else x
            here, table = self.space.layers[t], self.space.game.layer(t)
            layer, gross = file_layer(here, table, x.code, x.value, x.mixed, *x.more)
            self.store.put(SolvedLayer(t, layer, x.programs, x.repaired, gross))
            pairs.append(len(layer))
        return pairs

    def _count(self, pairs: list[int]) -> None:
        self.layers, self.done = self.layers + len(pairs), self.done + sum(pairs)
        self.tell()


def missing(kept: Collection[int], horizon: int) -> Iterator[tuple[int, int]]:
    """Runs of times first .. end-1 that are not kept, the last one first."""
    end = horizon
    for t in (*sorted(kept, reverse=True), -1):
        if t + 1 < end:
            yield t + 1, end
        end = t


def root_values(space: ExploredSpace, first: PolicyLayer) -> Floats:
    """Return the players' expected values over the initial states."""
    roots = first.pairs(*space.roots, None)
    return weighted_sum([p for _, p in space.game.initial], first.values_at(roots))
