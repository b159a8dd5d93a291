"""Backward induction, written once: engines differ only in how they solve a layer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from acegames.engines import EngineResult, ExploredSpace, LayerStore, OnProgress, SolvedLayer
from acegames.engines.answers import Answers
from acegames.engines.baseline import Baseline
from acegames.model.arrays import Floats
from acegames.policy.layer import PolicyLayer, encode_layer
from acegames.stage.units import weighted_sum
from acegames.system.progress import ProgressReporter
from acegames.system.tasks import Team

V = TypeVar("V")
LARGE = 4096  # cells of layers that are encoded on another thread


class LayerSolver(ABC, Generic[V]):
    """The only thing that engines differ in. V is a handle on the values of one layer."""

    ahead = 1  # layers that may wait to be stored before the next one is asked for
    space: ExploredSpace

    def cuts(self, first: int, end: int) -> list[tuple[int, int]]:
        """Cut the times first .. end-1 into runs t0 .. t1-1 that `solve` takes in one step."""
        return [(t, t + 1) for t in range(first, end)]

    @abstractmethod
    def values_at_end(self) -> V:
        """Return the values after the last step: zero."""

    @abstractmethod
    def values_of(self, solved: SolvedLayer) -> V:
        """Return the values of a stored layer, to go on from."""

    @abstractmethod
    def solve(self, t0: int, t1: int, after: V) -> tuple[list[Answers], V]:
        """Return the answers of t1-1 down to t0 from the values of t1, and the values of t0."""

    def encoded(self, t: int, answers: Answers) -> SolvedLayer | None:
        """Return a layer as a policy holds it, waited for; None where the store has it already."""
        answers = answers.pending() if answers.pending else answers
        here, table = self.space.layers[t], self.space.game.layer(t)
        layer, abs_total = encode_layer(here, table, answers.code, answers.value, answers.mixed, *answers.more)
        return SolvedLayer(t, layer, answers.programs, answers.repaired, abs_total)


class ByArray(LayerSolver[Floats]):
    """A solver whose values of a layer are an array.

    Values are by cell where all cells are held, else by reached cell; behind them come the sums of
    absolute rewards, of which rounding errors are a share.
    """

    def values_at_end(self) -> Floats:
        """Return zeros."""
        end, n = self.space.layers[-1], len(self.space.game.players)
        assert end.cells is not None
        return np.zeros((end.total if self.space.dense else end.cells.number, n if n == 1 else 2 * n))

    def values_of(self, solved: SolvedLayer) -> Floats:
        """Return a copy: for read-only arrays kernels would be compiled a second time."""
        return solved.both(by_cell=bool(self.space.dense))


def backward(
    solver: LayerSolver[Any],
    base: Baseline,
    store: LayerStore,
    progress: OnProgress | None,
    team: Team | None = None,
) -> EngineResult:
    """Solve the layers that the store does not hold, from the last time to the first.

    Where the team has other threads, large layers are encoded while the next one is solved.
    """
    space, game = solver.space, solver.space.game
    stored = {x.t: x for x in store.open(space)}
    pairs = [len(x.layer) for x in stored.values()]
    reporter = ProgressReporter(progress, "solving", game.horizon, space.pairs, pairs)
    writer = _LayerWriter(solver, store, reporter, team or Team())
    if stored:
        reporter.report()
    for first, end in missing(stored, game.horizon):
        values = solver.values_of(stored[end]) if end < game.horizon else solver.values_at_end()
        for t0, t1 in reversed(solver.cuts(first, end)):
            answers, values = solver.solve(t0, t1, values)
            writer.put(t0, t1, answers)
        writer.finish()
    solved = store.close()
    counts = (sum(x.programs for x in solved), sum(x.repaired for x in solved))
    result = EngineResult(
        root_values(space, solved[-1].layer), [x.layer for x in reversed(solved)], space.dims, *counts
    )
    return base.back(result, store.keep)


class _LayerWriter:
    """Encodes layers and stores them; where there are threads, large ones in the background.

    No more layers wait than the solver allows. Where it allows one, that is a layer whose values
    the next step holds anyway.
    """

    def __init__(self, solver: LayerSolver[Any], store: LayerStore, reporter: ProgressReporter, team: Team) -> None:
        self.solver, self.store, self.reporter, self.team = solver, store, reporter, team
        self.waiting = deque[Callable[[], tuple[int, int]]]()

    def put(self, t0: int, t1: int, answers: Sequence[Answers]) -> None:
        """Take the answers of the times t1-1 down to t0."""
        self.finish(self.solver.ahead - 1)
        work = partial(self._encode, range(t1 - 1, t0 - 1, -1), answers)
        if self.solver.ahead > 1 or (self.team.threads > 1 and sum(len(x.code) for x in answers) >= LARGE):
            self.waiting.append(self.team.later(work))
        else:
            self.reporter.layer(*work())

    def finish(self, left: int = 0) -> None:
        """Wait until so few layers wait to be stored."""
        while len(self.waiting) > left:
            self.reporter.layer(*self.waiting.popleft()())

    def _encode(self, times: Sequence[int], answers: Sequence[Answers]) -> tuple[int, int]:
        """Store the layers of some times; return how many pairs and layers these are."""
        pairs = 0
        for t, x in zip(times, answers, strict=True):
            solved = self.solver.encoded(t, x)
            if solved is not None:
                self.store.put(solved)
            cells = self.solver.space.layers[t].cells
            assert cells is not None
            pairs += cells.number
        return pairs, len(times)


def missing(stored: Collection[int], horizon: int) -> Iterator[tuple[int, int]]:
    """Yield the runs of times first .. end-1 that are not stored, the last run first."""
    end = horizon
    for t in (*sorted(stored, reverse=True), -1):
        if t + 1 < end:
            yield t + 1, end
        end = t


def root_values(space: ExploredSpace, first: PolicyLayer) -> Floats:
    """Return the players' expected values over the initial states."""
    roots = first.pairs(*space.roots, None)
    return weighted_sum([p for _, p in space.game.initial], first.values_at(roots))
