"""Solves layers by tasks: a `LayerSolver` whose values of a layer are handles on those of blocks.

Blocks are asked for before those that they need have ended, and wait for these and for nothing
else. How far that runs ahead is bounded by `Tasks`, and by the layers that may wait to be stored.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType

import numpy as np

from acegames.engines import LayerStore, SolvedLayer
from acegames.engines.answers import Answers, Failure
from acegames.engines.backward import LayerSolver
from acegames.engines.checkpoint import Checkpoint
from acegames.engines.cluster.pieces import LayerAssembly, SharedFolder, layer_of
from acegames.engines.cluster.stage_tasks import (
    BlockReport,
    BlockRequest,
    ReachedCells,
    TaskContext,
    WriteRequest,
    forget,
    solve_stages,
    write_layer,
)
from acegames.safety.space import Space
from acegames.system.tasks import Block, Tasks

NO_ANSWERS = Answers(np.zeros((0, 0)), np.zeros(0, np.uint8))  # they are where blocks are


@dataclass(eq=False)
class _AskedLayer:
    """A layer whose blocks were asked for."""

    pieces: list[Block]
    reports: list[Block]
    tasks: int  # that have not ended
    written: bool | None = None  # whether a task wrote the layer, where one was asked to


@dataclass(eq=False)
class BlockSolver(LayerSolver[list[Block]], AbstractContextManager["BlockSolver"]):
    """Solves layers in blocks, wherever tasks run."""

    tasks: Tasks
    context: TaskContext
    space: Space
    store: LayerStore
    failed: Callable[[int, Failure], Exception]
    ahead = 3
    folder: SharedFolder | None = None
    asked: dict[int, _AskedLayer] = field(default_factory=dict)  # by time
    reached: list[Block] = field(default_factory=list)  # laid down, held in case a block is lost and made again

    def __post_init__(self) -> None:
        self.shared = self.tasks.share(self.context)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        forget()
        if self.folder is not None:
            self.folder.close()

    def values_at_end(self) -> list[Block]:
        """Return nothing: tasks know that they are zero."""
        return []

    def values_of(self, solved: SolvedLayer) -> list[Block]:
        """Lay down the values of a stored layer, block by block."""
        values = solved.both(by_cell=self.context.dense).T
        return [self.tasks.put(x) for x in self.context.layout.cuts[solved.t].split(values)]

    def solve(self, t0: int, t1: int, after: list[Block]) -> tuple[list[Answers], list[Block]]:
        """Ask for the blocks of a layer, see `LayerSolver.solve`; its answers are fetched later.

        The highest totals come first: where no total falls, they need no lower ones.
        """
        reached, layout = self.tasks.put(ReachedCells.of(self.space, t0)), self.context.layout
        self.reached.append(reached)
        number = layout.cuts[t0].blocks
        asked = self.asked[t0] = _AskedLayer([], [], number)
        values = list[Block]()
        for k in reversed(range(number)):
            needed = layout.region(t0, k)[2].blocks if after else []
            inputs = [reached, *(after[j] for j in needed)]
            what = BlockRequest(t0, k, needed)
            value, piece, report = self.tasks.run(solve_stages, self.shared, what, inputs, made=3, on_done=self._solved)
            values.append(value)
            asked.pieces.append(piece)
            asked.reports.append(report)
        self._ask_to_write(t0, asked)
        return [NO_ANSWERS], values[::-1]

    def _ask_to_write(self, t: int, asked: _AskedLayer) -> None:
        """Let a machine that sees the checkpoint folder write a layer."""
        if not isinstance(self.store, Checkpoint) or (self.context.by_cell[t] and not self.context.dense):
            return
        if self.folder is None:
            self.folder = SharedFolder(self.store)
        what = WriteRequest(t, asked.pieces, self.folder.sign, self.folder.file_of(t), self.store.run_digest)
        asked.tasks += 1
        self.tasks.run(write_layer, self.shared, what, asked.reports, made=0, on_done=self._written)

    def _solved(self, t: int) -> None:
        self.asked[t].tasks -= 1

    def _written(self, answer: tuple[int, bool]) -> None:
        t, seen = answer
        self.asked[t].written = seen
        self._solved(t)

    def encoded(self, t: int, answers: Answers) -> SolvedLayer | None:
        """Wait for a layer; return it, unless it is in the checkpoint folder."""
        asked = self.asked[t]
        while asked.tasks:
            self.tasks.wait()
        del self.asked[t]
        reports: list[BlockReport] = [x.fetch() for x in asked.reports]
        failures = [x.failure for x in reports if x.failure is not None]
        if failures:
            raise self.failed(t, min(failures, key=lambda x: x.cell))
        if asked.written:
            assert isinstance(self.store, Checkpoint)
            self.store.adopt(t)
            return None
        if self.folder is not None and asked.written is not None:
            self.folder.tell_unseen()
        form = self.context.form(t, reports)
        assembly = LayerAssembly(form, {name: np.empty(*shape) for name, shape in form.shapes.items()})
        for piece in asked.pieces:
            assembly.add(piece.fetch())
        return layer_of(form, self.space.layers[t], self.space.game.layer(t), assembly.arrays)
