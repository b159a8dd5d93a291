"""Solves layers on a card, chunk by chunk, and files them there as a policy holds them.

Pure stage games are answered where they are written out; the others wait on a list, are solved
where they are plain, and else one by one. What floats could not decide goes to the host, whose
exact answers come back before the chunk is filed. Filed chunks travel to the host while the next
one is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.engines.answers import Answers, OpenStage
from acegames.engines.baseline import Baseline, with_gross
from acegames.engines.gpu.recipes import GAMES, Shape, recipe
from acegames.engines.gpu.tables import OnCard
from acegames.engines.layer_store import SolvedLayer
from acegames.engines.repair import Known, repair
from acegames.engines.stages import Programs
from acegames.kernels.dense import SEGMENT
from acegames.kernels.phases import ENTRIES, OPEN, RECORDS, STRIP, WAITING, Counting, Filing, Mending, Solving, Waiting
from acegames.kernels.records import EGALITARIAN, FAIR, Choices, Goal
from acegames.model.arrays import Floats, Ints
from acegames.policy.filing import Mixed
from acegames.policy.layer import answers as filed_answers
from acegames.safety.cells import RANK_BLOCK
from acegames.safety.space import Space

CHUNK = 2**23  # cells that are solved together, at most; and where memory is short
LEAST_CHUNK = 2**14
BLOCKS = 32  # of threads that solve plain games, per multiprocessor; and
LEFT_BLOCKS = 4  # all other games, as many as it has registers for
COUNTS = 8  # room for what is counted


class Filed(NamedTuple):
    """A chunk as it is filed, on the card or on the host."""

    values: Any
    codes: Any
    size: Any
    row: Any
    prob: Any


def fixed_bytes(space: Space) -> int:
    """Bytes on the card that do not depend on the size of chunks: tables, two layers, codes."""
    columns, tables = 2 * len(space.game.players), space.tables
    layers = 2 * 8 * columns * int(space.totals.max()) + 2 * int(space.totals.max())
    actions = sum(len(labels) for labels in space.game.actions)
    return OnCard.needs(space) + layers + len(tables.reward) * (8 * columns * 2 + 4 * actions + 4 * columns)


def cell_bytes(space: Space) -> int:
    """Bytes on the card per cell of a chunk."""
    rows, columns = space.tables.widest[0], 2 * len(space.game.players)
    waiting = 40 + rows * (8 * columns + 9)
    filed = 2 * (8 * columns + 2 + rows * 9)
    return waiting + filed + 4


def chunk_cells(space: Space, memory: int) -> int:
    """How many cells a chunk may have in so much memory; not positive where it is too little."""
    most = min(CHUNK, -(-int(space.totals.max()) // SEGMENT) * SEGMENT)
    room = (memory - fixed_bytes(space)) // cell_bytes(space) // SEGMENT * SEGMENT
    return min(most, room) if room >= min(LEAST_CHUNK, most) else 0


@dataclass(eq=False)
class CardSolver:
    """A `LayerSolver` whose values stay on a card."""

    card: Any
    space: Space
    shape: Shape
    concept: Concept
    base: Baseline
    stages: Programs
    chunk: int  # cells
    keep_gross: bool  # whether a checkpoint will go on from the layers
    sent: list[Callable[[], None]] = field(default_factory=list)  # receive the chunks before

    def __post_init__(self) -> None:
        space, card = self.space, self.card
        self.on = OnCard(card, space, self.shape)
        assert space.height is not None
        card.write(self.on.height, space.height)
        for t, cells in enumerate(space.cells):
            assert cells.bits is not None
            card.write(self.on.bits_of(t), cells.bits.reshape(-1))
        columns, most = 2 * self.shape.players, int(space.totals.max())
        self.values = [card.empty(columns * most, np.float64) for _ in range(2)]
        self.code = card.empty(most, np.uint16)
        self.reward = card.upload(with_gross(space.tables.reward))
        action, deviation, first_action = self.stages.choices
        behind = ((0, self.shape.rows), (0, 0))  # kernels look at as many rows from a state's first on
        padded = np.pad(action, behind), np.pad(deviation, behind, constant_values=-1)
        self.choices = Choices(*map(card.upload, (*padded, first_action)))
        self.waiting = self._room(min(self.chunk, -(-most // SEGMENT) * SEGMENT))
        self.strips = card.empty(2 * -(-len(self.waiting.place) // STRIP), np.int32)
        self.numbers = card.empty(most // RANK_BLOCK + 2, np.int64)
        self.filed = [dict[str, Any](), dict[str, Any]()]
        self._goals = dict[int, Goal]()

    def _room(self, games: int) -> Waiting:
        rows, columns, empty = self.shape.rows, 2 * self.shape.players, self.card.empty
        return Waiting(
            counts=empty(COUNTS, np.int64),
            place=empty(games, np.int32),
            cell=empty(games, np.int64),
            first_row=empty(games, np.int32),
            feasible=empty(games, np.int64),
            utility=empty((rows, columns, games), np.float64),
            size=empty(games, np.int32),
            row=empty((rows, games), np.uint8),
            prob=empty((rows, games), np.float64),
            left=empty(games, np.int32),
            open=empty(games, np.int32),
            before=empty((2, games), np.int32),
        )

    # -- as `LayerSolver` -------------------------------------------------------------------------

    def cuts(self, first: int, end: int) -> list[tuple[int, int]]:
        """Layer by layer."""
        return [(t, t + 1) for t in range(first, end)]

    def values_at_end(self) -> Any:
        """Zero."""
        values = self._values(self.space.game.horizon)
        self.card.zero(values)
        return values

    def values_of(self, solved: SolvedLayer) -> Any:
        """Those of a stored layer, on the card."""
        values = self._values(solved.t)
        self.card.write(values, solved.both(by_cell=True).T)
        return values

    def mended(self, values: Any, cells: Ints, repaired: Floats) -> Any:
        """The same: what is open is repaired before a chunk is filed."""
        return values

    def solve(self, t0: int, t1: int, after: Any) -> tuple[list[Answers], Any]:
        """As `LayerSolver.solve`, of one layer."""
        here = self.space.layers[t0]
        assert here.cells is not None
        cells, total, reached = here.cells, here.total, here.cells.number
        filed = filed_answers(reached, total)
        columns = (2 if self.keep_gross else 1) * self.shape.players
        code, value = np.empty(filed, np.uint8), np.empty((filed, columns))
        given = self._given(t0, after)
        parts, programs, repaired, number = list[Filed](), 0, 0, 0
        known = Known()
        for first, count in self.on.chunks(t0, self.chunk):
            begin, end = self.on.cell_of(t0, first), self.on.cell_of(t0, first + count)
            chunk = given._replace(first=first, begin=begin)
            counts = self._solved(chunk, count, end - begin, t0, known)
            own = end - begin if filed == total else cells.before(end) - number
            part = Filed(value[number : number + own], code[number : number + own], *_records(counts))
            self._file(t0, chunk, end, counts, part, number, by_cell=filed == total)
            parts.append(part)
            programs, repaired, number = programs + int(counts[WAITING]), repaired + int(counts[OPEN]), number + own
        sent = self.sent[-len(parts) :]

        def arrived() -> Answers:
            for receive in sent:
                receive()
            mixed = parts[0] if len(parts) == 1 else Filed(*(np.concatenate(x) for x in zip(*parts, strict=True)))
            # in the order of cells; where they are played, the codes say
            at = np.broadcast_to(np.int64(0), (len(mixed.size),))
            size: Any = mixed.size
            found = Mixed(at, size, mixed.row, mixed.prob)
            if not len(at) and filed == total > reached:
                code[cells.marks(total) == 0] = 0  # as the local engine leaves them where no answer is mixed
            return Answers(value, code, found, programs=programs, repaired=repaired)

        self.sent = self.sent[-2:]
        return [Answers(value, code, coming=arrived)], given.value

    # -- one chunk --------------------------------------------------------------------------------

    def _given(self, t: int, after: Any) -> Solving:
        """What kernels take for a layer, of which the chunks are to be said."""
        reward = self.reward
        if self.base.taken[t].any():
            reward = self.card.upload(with_gross(self.space.tables.reward - self.base.taken[t]))
        goal = self._goal(t)
        together = self.shape.together and goal.kind not in (EGALITARIAN, FAIR)
        code = self.code[: int(self.space.totals[t])]
        own = (reward, after, self.choices, goal, together, self._values(t), code, self.waiting)
        return Solving(self.on.layer(t), 0, 0, *own)

    def _goal(self, t: int) -> Goal:
        time = t if self.concept.criterion.compares else 0
        if time not in self._goals:
            goal = self.stages.goal(t)
            self._goals[time] = goal._replace(terms=self.card.upload(goal.terms), correlated=bool(goal.correlated))
        return self._goals[time]

    def _values(self, t: int) -> Any:
        columns, total = 2 * self.shape.players, int(self.space.totals[t])
        return self.values[t % 2][: columns * total].reshape(columns, total)

    def _solved(self, given: Solving, pieces: int, cells: int, t: int, known: Known) -> Ints:
        """Solve the stage games of a chunk; what was counted."""
        card, games = self.card, BLOCKS * self.card.processors
        card.zero(self.waiting.counts)
        card.launch(self._recipe("cells"), pieces, given)
        if given.together:
            card.launch(self._recipe("plain"), games, given)
        card.launch(self._recipe("left"), LEFT_BLOCKS * card.processors, given)
        counts = self._count(cells)
        if counts[OPEN]:
            self._repair(int(counts[OPEN]), given, t, known)
            counts = self._count(cells)
        return counts

    def _recipe(self, name: str) -> Any:
        return recipe(name, self.shape)

    def _count(self, cells: int) -> Ints:
        """Count and number the mixed answers."""
        count = -(-cells // STRIP)
        given = Counting(self.waiting, cells, self.strips[: 2 * count].reshape(2, count))
        self.card.launch(self._recipe("strips"), -(-count // SEGMENT), given)
        self.card.launch(self._recipe("numbers"), 1, given)
        found: Ints = self.card.fetch(self.waiting.counts)
        return found

    def _repair(self, count: int, given: Solving, t: int, known: Known) -> None:
        """Solve the open games of a chunk in exact arithmetic, on the host."""
        card, rows, columns = self.card, self.shape.rows, 2 * self.shape.players
        mending = Mending(
            self.waiting,
            count,
            cell=card.empty(count, np.int64),
            first_row=card.empty(count, np.int64),
            feasible=card.empty(count, np.int64),
            utility=card.empty((count, rows, columns), np.float64),
            mean=card.empty((count, columns), np.float64),
            answer=card.empty(count, np.uint16),
            size=card.empty(count, np.int32),
            row=card.empty((count, rows), np.uint8),
            prob=card.empty((count, rows), np.float64),
            value=given.value,
            code=given.code,
        )
        card.launch(self._recipe("read_open"), -(-count // GAMES), mending)
        first, feasible, utility = map(card.fetch, (mending.first_row, mending.feasible, mending.utility))
        game, row = np.nonzero((feasible[:, None] >> np.arange(rows)) & 1)
        action, end = self.stages.choices.action[first[game] + row], np.cumsum(np.bincount(game))
        opened = list[OpenStage]()
        for k, (a, b) in enumerate(pairwise([0, *end.tolist()])):
            opened.append(OpenStage(k, row[a:b], action[a:b], utility[k, : b - a]))
        room_here = (np.zeros((count, columns)), np.zeros(count, np.uint16))
        above = self.base.above[t]
        found = repair(Answers(*room_here, open=tuple(opened)), self.concept, self.space.game.players, above, known)
        size, played, prob = np.zeros(count, np.int32), np.zeros((count, rows), np.uint8), np.zeros((count, rows))
        mixed = found.more[-1]
        size[mixed.at] = mixed.size
        entry = np.arange(rows) < size[:, None]
        played[entry], prob[entry] = mixed.row, mixed.prob
        places = (mending.mean, mending.answer, mending.size, mending.row, mending.prob)
        for there, here in zip(places, (found.value, found.code, size, played, prob), strict=True):
            card.write(there, here)
        card.launch(self._recipe("mend"), -(-count // GAMES), mending)

    def _file(self, t: int, given: Solving, end: int, counts: Ints, part: Filed, number: int, *, by_cell: bool) -> None:
        """File a chunk on the card, and let it travel to its part of the layer's arrays."""
        cells = end - given.begin
        if len(self.sent) >= 2:
            self.sent[-2]()  # its room is taken again
        room = self._filed_room(part)
        words, numbers = self.on.bits_of(t), self.numbers[:1]
        if not by_cell:
            found = self.space.cells[t].counts
            assert found is not None
            numbers = self.numbers[: len(found)]
            self.card.write(numbers, found)
        count = -(-cells // STRIP)
        filing = Filing(
            self.waiting,
            given.begin,
            end,
            by_cell,
            number,
            words.view(np.uint64),
            numbers,
            self.strips[: 2 * count].reshape(2, count),
            given.value,
            given.code,
            *room,
        )
        self.card.launch(self._recipe("file_cells"), -(-cells // SEGMENT), filing)
        self.card.launch(self._recipe("file_records"), -(-int(counts[WAITING]) // SEGMENT), filing)
        self.sent.append(self.card.send(list(zip(room, part, strict=True))))

    def _filed_room(self, part: Filed) -> Filed:
        """Room on the card for a chunk, one of two in turn; it grows where it must."""
        rooms = self.filed[0]
        self.filed.reverse()
        found, arrays = list[Any](), list[NDArray[Any]](part)
        for name, array in zip(Filed._fields, arrays, strict=True):
            held = rooms.get(name)
            if held is None or held.shape[0] < array.size:
                rooms[name] = None
                rooms[name] = held = self.card.empty(max(array.size + array.size // 4, 1), array.dtype)
            found.append(held[: array.size].reshape(*array.shape))
        return Filed(*found)


def _records(counts: Ints) -> tuple[NDArray[np.uint8], NDArray[np.uint8], Floats]:
    """Room for the mixed answers of a chunk."""
    records, entries = int(counts[RECORDS]), int(counts[ENTRIES])
    return np.empty(records, np.uint8), np.empty(entries, np.uint8), np.empty(entries)
