"""Backward induction, written once: engines differ only in how they solve a layer."""

from __future__ import annotations

import time
from collections import deque
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
from acegames.model.game import MarkovGame
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
        """The values after the last step: zero."""

    def values_of(self, solved: SolvedLayer) -> V:
        """The values of a stored layer, to go on from."""

    def solve(self, t0: int, t1: int, after: V) -> tuple[list[Answers], V]:
        """The answers of t1-1 down to t0 from the values of t1, and the values of t0.

        Only the layer t0 may have open stages.
        """

    def mended(self, values: V, cells: Ints, repaired: Floats) -> V:
        """The values that `solve` returned, with those of cells that were open replaced."""


class ByArray:
    """What solvers share that take one layer after the other and hold its values as an array.

    Values are by cell where all cells are held, else by reached cell; gross ones come behind.
    """

    space: ExploredSpace

    def cuts(self, first: int, end: int) -> list[tuple[int, int]]:
        """Layer by layer."""
        return [(t, t + 1) for t in range(first, end)]

    def values_at_end(self) -> Floats:
        """Zero."""
        end, n = self.space.layers[-1], len(self.space.game.players)
        assert end.cells is not None
        return np.zeros((end.total if self.space.dense else end.cells.number, n if n == 1 else 2 * n))

    def values_of(self, solved: SolvedLayer) -> Floats:
        """A copy: kernels would be compiled a second time for arrays that cannot be written."""
        return solved.both(by_cell=self.space.dense)

    def mended(self, values: Floats, cells: Ints, repaired: Floats) -> Floats:
        """The array itself: repair wrote into it."""
        return values


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
    team = Team() if team is None else team
    game, started = space.game, time.perf_counter()
    kept = {x.t: x for x in store.open(space)}
    resumed = done = sum(len(x.layer) for x in kept.values())
    layers = len(kept)

    def tell() -> None:
        if progress:
            progress(Progress(layers, game.horizon, done, space.pairs, time.perf_counter() - started, resumed))

    def file(times: Sequence[int], found: Sequence[Answers]) -> int:
        pairs = 0
        for t, x in zip(times, found, strict=True):
            layer, gross = file_layer(space.layers[t], game.layer(t), x.code, x.value, x.mixed, *x.more)
            store.put(SolvedLayer(t, layer, x.programs, x.repaired, gross))
            pairs += len(layer)
        return pairs

    if kept:
        tell()
    filing: deque[tuple[int, Callable[[], int]]] = deque()  # how many layers, and how many pairs they had
    for first, end in _missing(kept, game.horizon):
        values = solver.values_of(kept[end]) if end < game.horizon else solver.values_at_end()
        for t0, t1 in reversed(solver.cuts(first, end)):
            found, values = solver.solve(t0, t1, values)
            if found[-1].open:
                cells = np.array([stage.cell for stage in found[-1].open])
                found[-1] = repair(found[-1], concept, game.players, base.above[t0])
                values = solver.mended(values, cells, found[-1].value[cells])
            aside = team.threads > 1 and sum(len(x.code) for x in found) >= LARGE
            work = partial(file, range(t1 - 1, t0 - 1, -1), found)
            filing.append((len(found), team.later(work) if aside else work))
            while len(filing) > (aside and t0 > first):
                number, pairs = filing.popleft()
                done += pairs()
                layers += number
                tell()
    solved = store.close()
    counts = (sum(x.programs for x in solved), sum(x.repaired for x in solved))
    result = EngineResult(root_values(game, solved[-1].layer), [x.layer for x in reversed(solved)], space.dims, *counts)
    return base.back(result, store.keep)


def _missing(kept: Collection[int], horizon: int) -> Iterator[tuple[int, int]]:
    """Runs of times first .. end-1 that are not kept, the last one first."""
    end = horizon
    for t in (*sorted(kept, reverse=True), -1):
        if t + 1 < end:
            yield t + 1, end
        end = t


def root_values(game: MarkovGame, first: PolicyLayer) -> Floats:
    """The players' expected values over the initial states."""
    state = np.array([s for s, _ in game.initial], dtype=np.int64)
    roots = first.pairs(state, np.zeros((len(state), first.space.lo.shape[1]), dtype=np.int64), None)
    return weighted_sum([p for _, p in game.initial], first.values[roots])
