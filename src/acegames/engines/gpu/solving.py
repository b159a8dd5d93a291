"""Solves layers on a card, chunk by chunk, and files them there as a policy holds them.

Pure stage games are answered where they are written out; the others wait on a list, are solved
where they are plain, and else one by one. What floats could not decide goes to the host, whose
exact answers come back before the chunk is filed. Filed chunks travel to the host while the next
one is computed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.engines.answers import Answers, OpenStage
from acegames.engines.backward import LayerByLayer
from acegames.engines.baseline import Baseline
from acegames.engines.gpu.recipes import Shape
from acegames.engines.gpu.tables import OnCard
from acegames.engines.layer_store import SolvedLayer
from acegames.engines.repair import Known, repair
from acegames.engines.stages import Programs
from acegames.errors import TooLarge
from acegames.kernels import device
from acegames.kernels.dense import SEGMENT
from acegames.kernels.records import EGALITARIAN, FAIR, Choices
from acegames.model.arrays import Floats, Ints, pointers
from acegames.policy.filing import Mixed
from acegames.policy.layer import answers as filed_answers
from acegames.safety.space import Space
from acegames.system.axes import room, room_bytes
from acegames.system.cuda_card import GROWING, Rooms
from acegames.system.machine import bytes_said

CHUNK = 2**23  # cells that are solved together, at most; and where memory is short
LEAST_CHUNK = 2**14
LEFT_BLOCKS = 4  # of threads that solve games that are not plain, per multiprocessor: it has registers for these
COUNTS = 8  # room for what is counted


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
    fixed = OnCard.needs(space) + sum(np.asarray(x.counts).nbytes for x in space.cells)
    fixed += largest * (2 * 8 * columns + 2)  # two layers
    fixed += rows * (2 * 8 * columns + 4 * (shape.players + sum(map(len, space.game.actions))))  # rewards twice
    answers = {"pairs": SEGMENT, "columns": columns, "records": SEGMENT, "entries": SEGMENT * shape.rows}
    filed = 2 * room_bytes(device.EncodedChunk, answers)
    segment = room_bytes(device.Waiting, _lengths(shape, SEGMENT)) + filed + filed // GROWING
    most, found = min(CHUNK // SEGMENT, -(-largest // SEGMENT)), (memory - fixed) // segment
    least = min(LEAST_CHUNK // SEGMENT, most)
    if found < least:
        raise TooLarge(
            f"the solve would need {bytes_said(fixed + segment * least)} of the GPU's memory, for two layers of up to "
            f"{largest:,} cells, but only {bytes_said(memory)} can be used; LocalEngine() solves it in the memory "
            "of the machine, and coarser costs, smaller budgets or fewer constraints make layers smaller"
        )
    return min(found, most) * SEGMENT


@dataclass(eq=False)
class CardSolver(LayerByLayer):
    """A `LayerSolver` whose values stay on a card."""

    card: Any
    space: Space
    shape: Shape
    stages: Programs
    base: Baseline
    chunk: int  # cells
    keep_gross: bool  # whether a checkpoint will go on from the layers

    def __post_init__(self) -> None:
        card, space, largest = self.card, self.space, int(self.space.totals.max())
        self.on = OnCard(card, space, self.shape)
        self.values = [card.empty(2 * self.shape.players * largest, np.float64) for _ in range(2)]
        self.code = card.empty(largest, np.uint16)
        self.held: tuple[Any, Any] | None = None  # rewards and terms on the card
        action, deviation, first_action = self.stages.choices
        behind = ((0, self.shape.rows), (0, 0))  # kernels look at as many rows from a state's first on
        padded = np.pad(action, behind), np.pad(deviation, behind, constant_values=-1)
        self.choices = Choices(*map(card.upload, (*padded, first_action)))
        self.waiting = room(device.Waiting, _lengths(self.shape, self.chunk), card.empty)
        counts = [np.asarray(cells.counts, np.int64) for cells in space.cells]  # reached cells before each of some
        numbers, ends = card.upload(np.concatenate(counts)), pointers(list(map(len, counts))).tolist()
        self.numbers = [numbers[a:b] for a, b in pairwise(ends)]
        self.rooms = deque((Rooms(card), Rooms(card)))  # for filed chunks, in turn
        self.sent = deque[Callable[[], None]](maxlen=len(self.rooms))  # receive the chunks in these rooms

    # -- as `LayerSolver` -------------------------------------------------------------------------

    def values_at_end(self) -> Any:
        """Zero."""
        values = self._values(self.space.game.horizon)
        self.card.zero(values)
        return values

    def values_of(self, solved: SolvedLayer) -> Any:
        """Return those of a stored layer, on the card."""
        values = self._values(solved.t)
        self.card.write(values, solved.both(by_cell=True).T)
        return values

    def solve(self, t0: int, t1: int, after: Any) -> tuple[list[Answers], Any]:
        """As `LayerSolver.solve`, of one layer."""
        cells, total, given, known = self.space.cells[t0], int(self.space.totals[t0]), self._given(t0, after), Known()
        filed, columns = filed_answers(cells.number, total), (2 if self.keep_gross else 1) * self.shape.players
        by_cell = filed == total
        value, code = np.empty((filed, columns)), np.empty(filed, np.uint8)
        kept = (by_cell, self.on.bits_of(t0).view(np.uint64), self.numbers[t0], given.value, given.code)
        parts, sent, counted, number = list[Any](), list[Callable[[], None]](), np.zeros(COUNTS, np.int64), 0
        for pieces, own in self.on.chunks(t0, self.chunk):
            chunk, counting = (
                given._replace(first=pieces.start, begin=own.start),
                device.Counting(self.waiting, len(own)),
            )
            counts = self._solved(chunk, len(pieces), counting, t0, known)
            end = own.stop if by_cell else cells.before(own.stop)
            part, there = self._rooms(value[number:end], code[number:end], counts)
            filing = device.Encoding(counting, own.start, number, there, *kept)
            sent.append(self._file(filing, part, games=int(counts[device.WAITING])))
            parts.append(part[2:])
            counted, number = counted + counts, end

        def arrived() -> Answers:
            for receive in sent:
                receive()
            size, row, prob = (np.concatenate(x) for x in zip(*parts, strict=True)) if len(parts) > 1 else parts[0]
            # in the order of cells; where they are played, the codes say
            found = Mixed(np.broadcast_to(np.int64(0), (len(size),)), size, row, prob)
            if not len(size) and by_cell and total > cells.number:
                code[cells.marks(total) == 0] = 0  # as the local engine leaves them where no answer is mixed
            programs, repaired = int(counted[device.WAITING]), int(counted[device.OPEN])
            return Answers(value, code, found, programs=programs, repaired=repaired)

        return [Answers(value, code, coming=arrived)], given.value

    # -- one chunk --------------------------------------------------------------------------------

    def _given(self, t: int, after: Any) -> device.Solving:
        """Return what kernels take for a layer, of which the chunks are to be said."""
        goal = self.stages.goal(t)
        if self.held is None or self.base.potential is not None:  # else all times have the same
            self.held = self.card.upload(self.base.columns(self.space.tables, t)), self.card.upload(goal.terms)
        reward, terms = self.held
        asked = goal._replace(terms=terms, correlated=bool(goal.correlated))
        together = self.shape.together and goal.kind not in (EGALITARIAN, FAIR)
        code = self.code[: int(self.space.totals[t])]
        own = (reward, after, self.choices, asked, together, self._values(t), code, self.waiting)
        return device.Solving(self.on.layer(t), 0, 0, *own)

    def _values(self, t: int) -> Any:
        columns, total = 2 * self.shape.players, int(self.space.totals[t])
        return self.values[t % 2][: columns * total].reshape(columns, total)

    def _solved(self, given: device.Solving, pieces: int, counting: device.Counting, t: int, known: Known) -> Ints:
        """Solve the stage games of a chunk; what was counted."""
        self.card.zero(self.waiting.counts)
        self.on.launch("cells", pieces, given)
        if given.try_regular:
            self.on.launch("plain", self.shape.blocks * self.card.processors, given)
        self.on.launch("left", LEFT_BLOCKS * self.card.processors, given)
        counts = self._count(counting)
        if counts[device.OPEN]:
            self._repair(int(counts[device.OPEN]), given, t, known)
            counts = self._count(counting)
        return counts

    def _count(self, counting: device.Counting) -> Ints:
        """Count and number the mixed answers."""
        self.on.each("strips", -(-counting.cells // device.STRIP), counting)
        self.on.launch("numbers", 1, counting)
        found: Ints = self.card.fetch(self.waiting.counts)
        return found

    def _repair(self, count: int, given: device.Solving, t: int, known: Known) -> None:
        """Solve the open games of a chunk in exact arithmetic, on the host."""
        lengths, stages = _lengths(self.shape, count), self.stages
        games, answers = (
            room(device.OpenGames, lengths, self.card.empty),
            room(device.RepairedStages, lengths, np.zeros),
        )
        self.on.each("read_open", count, device.Opening(self.waiting, games))
        first, feasible, utility = map(self.card.fetch, games)
        every = np.arange(self.shape.rows)
        game, row = np.nonzero((feasible[:, None] >> every) & 1)
        action, runs = stages.choices.action[first[game] + row], pairwise(pointers(np.bincount(game)).tolist())
        above = [stages.compared(stages.goal(t), int(k)) for k in first]
        opened = (OpenStage(k, row[a:b], action[a:b], utility[k, : b - a], above[k]) for k, (a, b) in enumerate(runs))
        asked = Answers(answers.value, answers.code, open=tuple(opened))  # which are filled
        mixed = repair(asked, stages.concept, stages.players, known).more[-1]
        answers.size[mixed.at] = mixed.size
        entry = every < answers.size[:, None]
        answers.row[entry], answers.prob[entry] = mixed.row, mixed.prob
        there = device.RepairedStages(*map(self.card.upload, answers))
        self.on.each("mend", count, device.Repairing(self.waiting, there, given.value, given.code))

    def _rooms(
        self, value: Floats, code: NDArray[np.uint8], counts: Ints
    ) -> tuple[device.EncodedChunk, device.EncodedChunk]:
        """Room for a filed chunk on the host, where values and codes have theirs, and on the card.

        There it takes that of the chunk before the last, which arrives first.
        """
        records, entries = int(counts[device.RECORDS]), int(counts[device.ENTRIES])
        here = value, code, np.empty(records, np.uint8), np.empty(entries, np.uint8), np.empty(entries)
        if len(self.sent) == self.sent.maxlen:
            self.sent[0]()
        self.rooms.rotate()
        take, arrays = self.rooms[0].take, zip(device.EncodedChunk._fields, list[NDArray[Any]](here), strict=True)
        return device.EncodedChunk(*here), device.EncodedChunk(*(take(name, x.shape, x.dtype) for name, x in arrays))

    def _file(self, filing: device.Encoding, here: device.EncodedChunk, *, games: int) -> Callable[[], None]:
        """Return file a chunk on the card, and let it travel to its part of the layer's arrays."""
        self.on.each("file_cells", filing.counted.cells, filing)
        self.on.each("file_records", games, filing)
        self.sent.append(self.card.send(list(zip(filing.encoded, here, strict=True))))
        return self.sent[-1]
