"""The local engine, with the large part of a solve on a card: solving layers.

Layers are solved chunk by chunk, and encoded on the card as a policy holds them. Pure stage games
are answered where they are written out; the others wait on a list, are solved where the quick
kernels can, and else one by one. What floats could not decide goes to the host, whose exact answers
come back before the chunk is encoded. Encoded chunks travel to the host while the next one is
computed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.engines import EngineResult, LayerStore, SolvedLayer
from acegames.engines.answers import Answers, OpenStage, RepairCache, repair
from acegames.engines.backward import LayerSolver
from acegames.engines.baseline import Baseline
from acegames.engines.gpu import GPUEngine
from acegames.engines.gpu.kernel_specs import KERNELS, DeviceTables, Shape, example_arguments, kernel_spec
from acegames.engines.local import LocalEngine, solver_of, stages_of
from acegames.engines.stages import Programs
from acegames.errors import TooLarge
from acegames.kernels import device
from acegames.kernels.dense import SEGMENT
from acegames.kernels.records import EGALITARIAN, FAIR, Choices
from acegames.model.arrays import Floats, Ints, pointers
from acegames.policy.layer import Mixed
from acegames.policy.layer import answers as filed_answers
from acegames.safety.explore import explore
from acegames.safety.lattice import Lattice
from acegames.safety.space import Space
from acegames.system.axes import allocate, allocated_bytes
from acegames.system.cuda_card import GROWING, DeviceBuffers, usable
from acegames.system.cuda_code import compile_together
from acegames.system.machine import bytes_said
from acegames.system.tasks import Team

CHUNK = 2**23  # cells that are solved together, at most; and where memory is short
LEAST_CHUNK = 2**14
LEFT_BLOCKS = 4  # of threads that solve games that are not plain, per multiprocessor: it has registers for these
COUNTS = 8  # numbers that are counted


def _lengths(shape: Shape, games: int) -> dict[str, int]:
    """Return how long the axes of `device.Waiting` are for so many games."""
    own = {"rows": shape.rows, "2N": 2 * shape.players, "counts": COUNTS}
    return own | {"G": games, "strips": -(-games // device.STRIP)}


def chunk_cells(space: Space, shape: Shape, memory: int) -> int:
    """Return how many cells a chunk may have in so much memory.

    Raises:
        TooLarge: it is too little.
    """
    largest, columns, rows = int(space.totals.max()), 2 * shape.players, len(space.tables.reward) + shape.rows
    fixed = DeviceTables.needs(space) + sum(np.asarray(x.counts).nbytes for x in space.cells)
    fixed += largest * (2 * 8 * columns + 2)  # two layers
    fixed += rows * (2 * 8 * columns + 4 * (shape.players + sum(map(len, space.game.actions))) + 1)  # rewards twice
    answers = {"pairs": SEGMENT, "columns": columns, "records": SEGMENT, "entries": SEGMENT * shape.rows}
    filed = 2 * allocated_bytes(device.EncodedChunk, answers)
    segment = allocated_bytes(device.Waiting, _lengths(shape, SEGMENT)) + filed + filed // GROWING
    most, segments = min(CHUNK // SEGMENT, -(-largest // SEGMENT)), (memory - fixed) // segment
    least = min(LEAST_CHUNK // SEGMENT, most)
    if segments < least:
        raise TooLarge(
            f"the solve would need {bytes_said(fixed + segment * least)} of the GPU's memory, for two layers of up to "
            f"{largest:,} cells, but only {bytes_said(memory)} can be used; LocalEngine() solves it in the memory "
            "of the machine, and coarser costs, smaller budgets or fewer constraints make layers smaller"
        )
    return min(segments, most) * SEGMENT


@dataclass(eq=False)
class CardSolver(LayerSolver[Any]):
    """A `LayerSolver` whose values stay on a card."""

    card: Any
    space: Space
    shape: Shape
    stages: Programs
    base: Baseline
    chunk: int  # cells
    keep_abs_total: bool  # whether a checkpoint will go on from the layers

    def __post_init__(self) -> None:
        card, space, largest = self.card, self.space, int(self.space.totals.max())
        self.on = DeviceTables(card, space, self.shape)
        self.values = [card.empty(2 * self.shape.players * largest, np.float64) for _ in range(2)]
        self.code = card.empty(largest, np.uint16)
        self.held: tuple[Any, Any] | None = None  # rewards and terms on the card
        action, deviation, first_action = self.stages.choices
        behind = ((0, self.shape.rows), (0, 0))  # kernels look at as many rows from a state's first on
        padded = np.pad(action, behind), np.pad(deviation, behind, constant_values=-1)
        self.choices = Choices(*map(card.upload, (*padded, first_action)))
        self.joint = card.upload(self.shape.joint(action, space.tables.row_ptr))
        self.waiting = allocate(device.Waiting, _lengths(self.shape, self.chunk), card.empty)
        counts = [np.asarray(cells.counts, np.int64) for cells in space.cells]  # reached cells before each of some
        numbers, ends = card.upload(np.concatenate(counts)), pointers(list(map(len, counts))).tolist()
        self.numbers = [numbers[a:b] for a, b in pairwise(ends)]
        self.chunks = deque((DeviceBuffers(card), DeviceBuffers(card)))  # for encoded chunks, in turn
        self.sent = deque[Callable[[], None]](maxlen=len(self.chunks))  # receive the chunks in these rooms

    # -- as `LayerSolver` -------------------------------------------------------------------------

    def values_at_end(self) -> Any:
        """Return zeros on the card."""
        values = self._values(self.space.game.horizon)
        self.card.zero(values)
        return values

    def values_of(self, solved: SolvedLayer) -> Any:
        """Return the values of a stored layer, on the card."""
        values = self._values(solved.t)
        self.card.write(values, solved.both(by_cell=True).T)
        return values

    def solve(self, t0: int, t1: int, after: Any) -> tuple[list[Answers], Any]:
        """Solve one layer, see `LayerSolver.solve`; its answers may still be under way."""
        cells, total, record, known = (
            self.space.cells[t0],
            int(self.space.totals[t0]),
            self._record(t0, after),
            RepairCache(),
        )
        filed, columns = filed_answers(cells.number, total), (2 if self.keep_abs_total else 1) * self.shape.players
        by_cell = filed == total
        value, code = np.empty((filed, columns)), np.empty(filed, np.uint8)
        where = (by_cell, self.on.bits_of(t0).view(np.uint64), self.numbers[t0], record.value, record.code)
        parts, sent, counted, number = list[Any](), list[Callable[[], None]](), np.zeros(COUNTS, np.int64), 0
        for pieces, own in self.on.chunks(t0, self.chunk):
            chunk, counting = (
                record._replace(first=pieces.start, begin=own.start),
                device.Counting(self.waiting, len(own)),
            )
            counts = self._solved(chunk, len(pieces), counting, t0, known)
            end = own.stop if by_cell else cells.before(own.stop)
            part, there = self._allocate(value[number:end], code[number:end], counts)
            encoding = device.Encoding(counting, own.start, number, there, *where)
            sent.append(self._encode(encoding, part, games=int(counts[device.WAITING])))
            parts.append(part[2:])
            counted, number = counted + counts, end

        def arrived() -> Answers:
            for receive in sent:
                receive()
            size, row, prob = (np.concatenate(x) for x in zip(*parts, strict=True)) if len(parts) > 1 else parts[0]
            # in the order of cells; where they are played, the codes say
            mixed = Mixed(np.broadcast_to(np.int64(0), (len(size),)), size, row, prob)
            if not len(size) and by_cell and total > cells.number:
                code[cells.marks(total) == 0] = 0  # as the local engine leaves them where no answer is mixed
            programs, repaired = int(counted[device.WAITING]), int(counted[device.OPEN])
            return Answers(value, code, mixed, programs=programs, repaired=repaired)

        return [Answers(value, code, pending=arrived)], record.value

    # -- one chunk --------------------------------------------------------------------------------

    def _record(self, t: int, after: Any) -> device.Solving:
        """Return what kernels take for a layer, without the place of a chunk."""
        goal = self.stages.goal(t)
        if self.held is None or self.base.potential is not None:  # else all times have the same
            self.held = self.card.upload(self.base.columns(self.space.tables, t)), self.card.upload(goal.terms)
        reward, terms = self.held
        asked = goal._replace(terms=terms, correlated=bool(goal.correlated))
        together = self.shape.together and goal.kind not in (EGALITARIAN, FAIR)
        code = self.code[: int(self.space.totals[t])]
        own = (reward, after, self.choices, self.joint, asked, together, self._values(t), code, self.waiting)
        return device.Solving(self.on.layer(t), 0, 0, *own)

    def _values(self, t: int) -> Any:
        columns, total = 2 * self.shape.players, int(self.space.totals[t])
        return self.values[t % 2][: columns * total].reshape(columns, total)

    def _solved(
        self, record: device.Solving, pieces: int, counting: device.Counting, t: int, known: RepairCache
    ) -> Ints:
        """Solve the stage games of a chunk; return what was counted."""
        self.card.zero(self.waiting.counts)
        self.on.launch("cells", pieces, record)
        if record.try_regular:
            self.on.launch("plain", self.shape.blocks * self.card.processors, record)
        self.on.launch("left", LEFT_BLOCKS * self.card.processors, record)
        counts = self._count(counting)
        if counts[device.OPEN]:
            self._repair(int(counts[device.OPEN]), record, t, known)
            counts = self._count(counting)
        return counts

    def _count(self, counting: device.Counting) -> Ints:
        """Count and number the mixed answers."""
        self.on.each("strips", -(-counting.cells // device.STRIP), counting)
        self.on.launch("numbers", 1, counting)
        fetched: Ints = self.card.fetch(self.waiting.counts)
        return fetched

    def _repair(self, count: int, record: device.Solving, t: int, known: RepairCache) -> None:
        """Solve the open games of a chunk in exact arithmetic, on the host."""
        lengths, stages = _lengths(self.shape, count), self.stages
        games, answers = (
            allocate(device.OpenGames, lengths, self.card.empty),
            allocate(device.RepairedStages, lengths, np.zeros),
        )
        self.on.each("read_open", count, device.Opening(self.waiting, self.joint, games))
        opened = list[OpenStage]()
        for first, size, own, utility in zip(*map(self.card.fetch, games), strict=True):
            row, above = own[:size], stages.compared(stages.goal(t), int(first))
            opened.append(OpenStage(len(opened), row - first, stages.choices.action[row], utility[:size], above))
        asked = Answers(answers.value, answers.code, open=tuple(opened))  # which are filled
        mixed = repair(asked, stages.concept, stages.players, known).more[-1]
        answers.size[mixed.at] = mixed.size
        entry = np.arange(self.shape.rows) < answers.size[:, None]
        answers.row[entry], answers.prob[entry] = mixed.row, mixed.prob
        there = device.RepairedStages(*map(self.card.upload, answers))
        self.on.each("mend", count, device.Repairing(self.waiting, there, record.value, record.code))

    def _allocate(
        self, value: Floats, code: NDArray[np.uint8], counts: Ints
    ) -> tuple[device.EncodedChunk, device.EncodedChunk]:
        """Allocate an encoded chunk on the host and on the card.

        On the host values and codes have their place. On the card the chunk takes that of the chunk
        before the last, which arrives first.
        """
        records, entries = int(counts[device.RECORDS]), int(counts[device.ENTRIES])
        here = value, code, np.empty(records, np.uint8), np.empty(entries, np.uint8), np.empty(entries)
        if len(self.sent) == self.sent.maxlen:
            self.sent[0]()
        self.chunks.rotate()
        take, arrays = self.chunks[0].take, zip(device.EncodedChunk._fields, list[NDArray[Any]](here), strict=True)
        return device.EncodedChunk(*here), device.EncodedChunk(*(take(name, x.shape, x.dtype) for name, x in arrays))

    def _encode(self, encoding: device.Encoding, here: device.EncodedChunk, *, games: int) -> Callable[[], None]:
        """Encode a chunk on the card, and let it travel to its part of the layer's arrays."""
        self.on.each("file_cells", encoding.counted.cells, encoding)
        self.on.each("file_records", games, encoding)
        self.sent.append(self.card.send(list(zip(encoding.encoded, here, strict=True))))
        return self.sent[-1]


# -- what goes to the card ------------------------------------------------------------------------


MOST_OUTCOMES = 4096  # of a state, which a block of threads shares


@dataclass(frozen=True)
class HybridEngine(LocalEngine):
    """The local engine with its limits, and a card with others."""

    gpu: GPUEngine = field(default_factory=GPUEngine)
    opening: Future[Any] = field(default_factory=Future)
    ran: list[str] = field(default_factory=list)

    def solve(self, *args: Any) -> EngineResult | None:
        """Solve as `LocalEngine` does; the result says where it ran."""
        if self.opening.done():
            self.opening.result()  # raises what is missing, before any work
        solved = super().solve(*args)
        return solved if solved is None else replace(solved, ran=", ".join(self.ran))

    @property
    def card(self) -> Any:
        """The card (`system.cuda_card.Card`), once the driver has opened it."""
        return self.opening.result()

    def _explore(self, space: Space, memory: int | None, team: Team) -> Space:
        """Find the cells that are reached; what does not fit into memory may lie on disk, if it
        fits on the card.
        """
        try:
            return explore(space, memory, team)
        except TooLarge:
            if memory is not None or DeviceTables.needs(space) > usable(self.card, self.gpu.memory):
                raise
            return explore(space, memory, team, on_disk=True)

    def _solver(
        self, space: Space, lattice: Lattice, concept: Concept, base: Baseline, store: LayerStore, team: Team
    ) -> LayerSolver[Any]:
        self.card.enter()
        shape = Shape.of(space, self.card.capability, concept)
        why = self._left_to_host(space, shape, concept)
        if why is not None:
            self.ran.append(f"on the processors ({why})")
            return solver_of(space, lattice, concept, base, team)
        stages = stages_of(space, concept, base)
        assert isinstance(stages, Programs)
        chunk = chunk_cells(space, shape, usable(self.card, self.gpu.memory, shape.own_bytes))
        self.ran.append(f"on the GPU ({self.card.name})")
        compile_together(kernel_spec, example_arguments, (*KERNELS,), shape, self.card.capability)
        return CardSolver(self.card, space, shape, stages, base, chunk, keep_abs_total=not store.in_memory)

    def _left_to_host(self, space: Space, shape: Shape, concept: Concept) -> str | None:
        """Return why a solve is left to the processors; None where the card does it."""
        if shape.players == 1:
            return "one player"
        if concept.product:
            return "players draw independently"
        if not space.dense:
            return "cells are listed"
        if space.pairs < self.gpu.smallest:
            return "a small game"
        fits = shape.fits(comparing=concept.criterion.compares)
        short = 2 * shape.own_bytes * self.card.processors > self.card.free
        if not fits or short or shape.outcomes > MOST_OUTCOMES:
            return "large stage games"
        return None
