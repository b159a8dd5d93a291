"""A policy is judged on a GPU: the passes of `subgames` and `judgement`, a thread per pair.

Every pair is judged by itself, also those that are alike: they have the same numbers. What the
policy plays is read from its tables (`PolicyTables`): the host asks it for all answers of a time
and checks them, and threads find those of their pairs. The certificate is that of the processors,
bit by bit. What a card does not do is left to them (`FallBack`), and so is a policy that is wrong
in any other way than by gains, because then words are to be found.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.model.game import MarkovGame
from acegames.system.axes import allocate, allocated_bytes, example
from acegames.system.cuda_card import RESIDENT, DeviceBuffers, usable
from acegames.system.cuda_code import KernelSpec, compile_together
from acegames.system.progress import OnProgress, ProgressReporter
from acegames.verifier import gpu_functions
from acegames.verifier.basics import (
    ALONE,
    LIMITS,
    BlockThreads,
    Bytes,
    Floats,
    Ints,
    KeyTable,
    LayerValues,
    Numbers,
    PairScratch,
    PlayedRows,
    PolicyBoxes,
    TimeRules,
    offsets,
)
from acegames.verifier.counting import Counted
from acegames.verifier.gpu_functions import (
    STRIP,
    WORD,
    Chunk,
    DevicePolicyTable,
    Drawing,
    Gaining,
    Judging,
    OwnPair,
    PairNumbering,
    Passing,
    WordPacking,
)
from acegames.verifier.judgement import CHECKING, Evaluated, all_numbers, at_start, compared, most_spent, reads_tables
from acegames.verifier.pair_keys import PairKeys, Spent
from acegames.verifier.policy_reader import Reader
from acegames.verifier.policy_tables import PolicyTables
from acegames.verifier.tolerance import Gains, common_part

log = logging.getLogger("acegames")


def evaluate_on_gpu(
    engine: Any, counted: Counted, reader: Reader, concept: Concept, progress: OnProgress | None
) -> Evaluated | None:
    """Judge on the card of an engine; None where that is left to the processors.

    Raises:
        MissingExtra: a package, the driver or the card is missing.
        TooLarge: other programs have taken the card's memory meanwhile.
    """
    card = engine.open_card()
    try:
        packed = _fitting(counted.game, reader, concept, int(engine.smallest))
        with BlockThreads(engine.threads if reader.thread_safe else 1) as threads:
            shape = VerifyShape.of(packed)
            memory = usable(card, engine.memory, RESIDENT * scratch_bytes(shape))
            compile_together(kernel_spec, example_arguments, (*KERNELS,), shape, card.capability)
            evaluated = DeviceVerifier(card, packed, reader, concept, threads, memory).evaluate(progress)
    except FallBack as why:
        log.info(f"acegames: verifying on the processors: {why}")
        return None
    log.info(f"acegames: verified on the GPU ({card.name})")
    return evaluated


def _fitting(game: MarkovGame, reader: Reader, concept: Concept, smallest: int) -> PairKeys:
    """Return the pairs of a game that a card can judge."""
    if concept.product:
        raise FallBack("players draw independently")
    packed = PairKeys.of(game, reader.units)
    if packed.unrolled is not None:
        raise FallBack("cumulative costs do not fit into 64 bits")
    if packed.keys * game.horizon < smallest or (smallest and packed.joined is not None):
        raise FallBack("a small game")
    if scratch_bytes(VerifyShape.of(packed)) > LIMITS.thread_bytes:
        raise FallBack("large stage games")
    return packed


class DeviceVerifier:
    """Judges a policy."""

    def __init__(
        self, card: Any, packed: PairKeys, reader: Reader, concept: Concept, threads: BlockThreads, memory: int
    ) -> None:
        self.card, self.packed, self.reader, self.concept, self.threads = card, packed, reader, concept, threads
        self.memory, self.n, self.horizon = memory, len(packed.game.players), packed.game.horizon
        self.shape, self.rooms, self.gains = VerifyShape.of(packed), AnswerBuffers(card), Gains(reader)

    def evaluate(self, progress: OnProgress | None) -> Evaluated:
        """Find the pairs, then judge them from the last time back."""
        card, packed, reader = self.card, self.packed, self.reader
        numbers = all_numbers(packed, self.concept)
        if DeviceGame.bytes(packed, numbers) + DevicePairs.bytes(packed) > self.memory:
            raise FallBack("the GPU's memory is too small")
        self.tables = DeviceGame(card, packed, numbers)
        self.pairs = DevicePairs(card, packed, self.shape, self.tables)
        safe_rows = self.pairs.find()
        base = common_part(reader.game, reader.units, safe_rows)
        self.base, self.wrong = card.upload(base), card.upload(np.zeros(1, dtype=np.int64))
        self._allocate()
        reporter = ProgressReporter(progress, CHECKING, self.horizon, int(self.pairs.count.sum()))
        here = self._known(0, 0)
        for t in reversed(range(self.horizon)):
            here = self._layer(t, here)
            reporter.layer(int(self.pairs.count[t]))
        self.gains.settle()
        with np.errstate(over="ignore", invalid="ignore"):
            values: Floats = at_start(packed.game, card.fetch(here.values)[:, : self.n]) + base.sum(axis=0)
        worst = most_spent(packed.units, card.fetch(here.max_future_cost))
        return Evaluated(int(self.pairs.count.sum()), values, self.gains, faults=[], n_faults=0, worst=worst)

    def _allocate(self) -> None:
        """Allocate arrays for two times, and for answers of the policy as far as memory goes."""
        card, packed, most = self.card, self.packed, int(self.pairs.count.max())
        lengths, strips = {"6N": 6 * self.n, "M+R": len(packed.low) + len(packed.units.stored)}, -(-most // STRIP)
        each = allocated_bytes(LayerValues, lengths | {"P": 1})
        fixed = DeviceGame.bytes(packed, self.tables.numbers) + DevicePairs.bytes(packed) + 8 * packed.keys
        fixed += most * (2 * each + 9) + strips * 8 * self.n * (3 + 12 * self.n) + 256 * len(packed.game.states)
        tables, entry = packed.keys // 2, 5 * (8 + 16 * packed.rows) // 4  # about, and at most
        fitting = (self.memory - fixed - tables) // entry
        if fitting < LIMITS.least_chunk:
            raise FallBack("the GPU's memory is too small")
        self.chunk = min(fitting, LIMITS.chunk)
        self.known = [allocate(LayerValues, lengths | {"P": most}, card.empty) for _ in range(2)]
        self.number = [card.empty(packed.keys, np.int32) for _ in range(2)]
        self.keys, self.slots = card.empty(most, np.int64), card.empty(1, np.int64)[:0]

    def _known(self, t: int, pairs: int) -> LayerValues:
        values, ahead, fault = self.known[t % 2]
        return LayerValues(values[:pairs], ahead[:pairs], fault[:pairs])

    # -- one time ---------------------------------------------------------------------------------

    def _layer(self, t: int, following: LayerValues) -> LayerValues:
        """Return what `judgement.Judge.layer` does."""
        count = int(self.pairs.count[t])
        keys, result = self.keys[:count], self._known(t, count)
        if t:
            self.pairs.number(t, self.number[t % 2], keys)
        else:
            self.card.write(keys, self.packed.start)
        stored = self.reader.stored(t, self.packed) if reads_tables(count) else None
        if stored is None and reads_tables(count):
            raise FallBack("the policy shows no tables of this game")
        self._compare(t, stored, keys, count)
        table = KeyTable(self.slots, self.number[(t + 1) % 2], np.int64(0))
        time, numbers = self.tables.time(t), self.tables.numbers[self.packed.game.layer_at[t]]
        game = (time, table, numbers, self.base[t : t + 1], 0 if time.last else len(time.worst))
        for chunk in self._answers_of_pairs(t, keys) if stored is None else self._answers(stored):
            task = Judging(keys, *game, bool(self.concept.interim), following, result, self.wrong, chunk)
            launch(self.card, "judge", self.shape, count, task)
        self._note_gains(t, keys, result)
        if self.card.fetch(self.wrong)[0]:
            raise FallBack("the policy is at fault, or its values overflow")
        return result

    def _compare(self, t: int, stored: PolicyTables | None, keys: Any, count: int) -> None:
        """Compare what the policy says, and its tables, at some pairs."""
        words = self.rooms.take("drawn", -(-count // WORD), np.uint64)
        limit = self.reader.limit(count)
        launch(self.card, "draw", self.shape, len(words), Drawing(keys, t, limit, words))
        drawn = self.card.fetch(words)
        some = np.flatnonzero(drawn)
        bits = np.unpackbits(drawn[some].view(np.uint8).reshape(-1, 8), axis=1, bitorder="little").astype(bool)
        some = (some[:, None] * WORD + np.arange(WORD))[bits]
        there = np.array([self.card.fetch(keys[p : p + 1])[0] for p in some.tolist()], dtype=np.int64)
        numbers = there[:0] if stored is None else stored.find(there, ALONE)
        if compared(self.packed, self.reader, t, stored, there, numbers) is not stored:
            raise FallBack("the policy's tables have no answers")

    def _answers_of_pairs(self, t: int, keys: Any) -> Iterator[Chunk]:
        """Yield what the policy says at each pair, of which there are few."""
        here = self.card.fetch(keys)
        answers = self.reader.read(t, *self.packed.unpack(t, here), here[:0])
        if answers.faults:
            raise FallBack("the policy is at fault")
        played = self._uploaded([(answers.ptr, answers.row, answers.prob)])
        unused = self.rooms.tables("no table", None, len(self.packed.game.states))
        yield Chunk(True, unused, unused, 0, len(here), played)

    def _answers(self, stored: PolicyTables) -> Iterator[Chunk]:
        """Yield the answers of the policy's tables; one chunk takes the room of the one before."""
        every = stored.every()
        if every is None:
            raise FallBack("the policy's tables are not in order")
        states = len(self.packed.game.states)
        first, second = (self.rooms.tables(name, x, states) for name, x in zip("ab", stored.tables, strict=True))
        state, number = every[0] * self.packed.span, every[1]
        for begin in range(0, max(len(state), 1), self.chunk):
            end = min(begin + self.chunk, len(state))
            blocks = [slice(x, min(x + LIMITS.asked, end)) for x in range(begin, end, LIMITS.asked)]
            parts = self.threads.each(lambda block: stored.read(state[block], number[block]), blocks)
            if any(part is None for part in parts):
                raise FallBack("an answer of the policy is wrong")
            yield Chunk(False, first, second, begin, end, self._uploaded([part for part in parts if part]))

    def _uploaded(self, parts: list[tuple[Ints, Ints, Floats]]) -> PlayedRows:
        """Return answers on the card, those of one part after the other."""
        size = offsets(np.array([len(row) for _, row, _ in parts], dtype=np.int64))
        ptr = np.concatenate([[0], *(ptr[1:] + first for (ptr, _, _), first in zip(parts, size, strict=False))])
        there = PlayedRows(
            self.rooms.take("ptr", len(ptr), np.int64),
            self.rooms.take("row", int(size[-1]), np.int64),
            self.rooms.take("prob", int(size[-1]), np.float64),
        )
        self.card.write(there.ptr, ptr)
        for (_, row, prob), begin, end in zip(parts, size[:-1].tolist(), size[1:].tolist(), strict=True):
            self.card.write(there.row[begin:end], row)
            self.card.write(there.prob[begin:end], prob)
        return there

    def _note_gains(self, t: int, keys: Any, result: LayerValues) -> None:
        """Take note of the largest gains of a time."""
        strips, n, card = -(-len(keys) // STRIP), self.n, self.card
        task = Gaining(
            result.values,
            self.rooms.take("numbers", (strips, 2 * n), np.int64),
            self.rooms.take("off", (strips, n), np.float64),
            self.rooms.take("gains", (strips, 2 * n, 6 * n), np.float64),
        )
        launch(card, "gain", self.shape, strips, task)
        numbers, picked = card.fetch(task.numbers).reshape(-1), card.fetch(task.picked).reshape(-1, 6 * n)
        pairs, first = np.unique(numbers, return_index=True)
        pairs, values = pairs[pairs >= 0], picked[first[pairs >= 0]]
        if t == 0:  # of which all count
            pairs, values = np.arange(len(keys)), card.fetch(result.values)

        def place(p: int) -> tuple[int, int, Spent]:
            at = int(pairs[p])
            return t, *self.packed.pair(t, card.fetch(keys[at : at + 1]), 0)

        gains = Gains(self.reader)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            gains.add(values, place, start=t == 0)
        gains.off = card.fetch(task.off).max(axis=0)
        self.gains.put_before(gains)


# -- what lies on the card ------------------------------------------------------------------------
# What lies on a GPU while a policy is judged there: the game, the pairs of all times, room.


THREADS = 128  # of a block
ROWS = (4, 9, 16, 27, 36, 64)
ALIGNED = 16  # bytes
KERNELS = {  # and what they are given; those first that take longest to compile
    "judge": Judging,
    "pass": Passing,
    "gain": Gaining,
    "draw": Drawing,
    "number": PairNumbering,
    "pack": WordPacking,
}


class FallBack(Exception):
    """Why the processors verify, in words."""


# -- kernels --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VerifyShape:
    """What kernels are compiled for; numbers are rounded up, so that games share kernels."""

    players: int
    constraints: int
    rows: int  # most joint actions of a state
    outcomes: int  # most outcomes of a row
    actions: int  # most actions of a player

    @staticmethod
    def of(packed: PairKeys) -> VerifyShape:
        """Return the shape of a game."""
        rows = next((n for n in ROWS if n >= packed.rows), packed.rows)
        outcomes = max(1 << (len(packed.targets()) - 1).bit_length(), 8)
        return VerifyShape(
            len(packed.game.players), len(packed.low), rows, outcomes, max(map(len, packed.game.actions))
        )


def _own_pair(shape: VerifyShape) -> OwnPair:
    spent, slack = np.empty((2, shape.constraints), np.int64)
    return OwnPair(spent, slack, allocate(PairScratch, _lengths(shape)))


def _lengths(shape: VerifyShape) -> dict[str, int]:
    """Return the lengths of the axes of `PairScratch`."""
    own = {"rows": shape.rows, "4N": 4 * shape.players, "outcomes": shape.outcomes}
    return own | {"actions": shape.actions, "actions+1": shape.actions + 1}


def scratch_bytes(shape: VerifyShape) -> int:
    """Return bytes that each thread has to itself."""
    return 2 * 8 * shape.constraints + allocated_bytes(PairScratch, _lengths(shape))


@cache
def kernel_spec(name: str, shape: VerifyShape) -> KernelSpec:
    """Return a kernel; one object for each shape: cards know it by that."""
    device_function = getattr(gpu_functions, f"{name}_thread")
    own = {"pass": _own_pair(shape).slack, "judge": _own_pair(shape)}.get(name)
    return KernelSpec(f"verify_{name}", (device_function,), THREADS, None, own)


def example_arguments(name: str) -> Any:
    """Return arrays of the types that a kernel is given."""
    return example(KERNELS[name])


def launch(card: Any, name: str, shape: VerifyShape, threads: int, task: Any) -> None:
    """Launch so many threads."""
    card.launch(kernel_spec(name, shape), -(-threads // THREADS), task)


# -- the game -------------------------------------------------------------------------------------


class DeviceGame:
    """What can happen at each time, and the numbers."""

    def __init__(self, card: Any, packed: PairKeys, numbers: list[Numbers]) -> None:
        self._packed, times = packed, range(packed.game.horizon)
        first = {packed.game.layer_at[t]: packed.time(t) for t in reversed(times)}
        self._rules = {at: tuple(map(card.upload, time[:3])) for at, time in first.items()}
        self.rows = offsets(np.array([len(packed.time(t).worst) for t in times]))
        self._worst = card.empty((int(self.rows[-1]), len(packed.low)), np.int64)
        for t in times:
            card.write(self._worst[int(self.rows[t]) : int(self.rows[t + 1])], packed.time(t).worst)
        self._bound = card.upload(np.array([packed.time(t).bound for t in times]))
        self._low, self._size = card.upload(packed.low), card.upload(packed.size)
        self.numbers = [Numbers(*map(card.upload, x)) for x in numbers]
        self.aliased = card.upload(np.array(packed.aliased, dtype=np.int64).reshape(-1, 3))

    @staticmethod
    def bytes(packed: PairKeys, numbers: list[Numbers]) -> int:
        """Return bytes on the card, about."""
        rows = sum(len(packed.game.layer(t).reward) for t in range(packed.game.horizon))
        steps = sum(8 * (len(x.row_ptr) + len(x.out_ptr) + len(x.next_state)) for x in packed.game.layers)
        return 8 * rows * len(packed.low) + steps + sum(int(x.nbytes) for own in numbers for x in own)

    def time(self, t: int) -> TimeRules:
        """Return what can happen at one time."""
        packed, worst = self._packed, self._worst[int(self.rows[t]) : int(self.rows[t + 1])]
        bound, last = self._bound[t], t == packed.game.horizon - 1
        row_ptr, out_ptr, jump = self._rules[packed.game.layer_at[t]]
        span = np.int64(packed.span)
        return TimeRules(row_ptr, out_ptr, jump, worst, bound, span, self._low, self._size, last)


# -- pairs ----------------------------------------------------------------------------------------


class DevicePairs:
    """The subgames of all times, as bits of keys."""

    def __init__(self, card: Any, packed: PairKeys, shape: VerifyShape, tables: DeviceGame) -> None:
        self._card, self._packed, self._shape, self._tables = card, packed, shape, tables
        self._words, self._horizon = -(-packed.keys // WORD), packed.game.horizon
        self._bits, self._counts = (card.empty(self._horizon * self._words, x) for x in (np.uint64, np.int32))
        self._marks = card.empty(packed.keys, np.uint8)
        self._used, self._stuck = card.empty(int(tables.rows[-1]), np.uint8), card.empty(self._horizon, np.int64)
        self._before = card.empty(self._words, np.int32)
        self.count: Ints = np.zeros(0, dtype=np.int64)  # (H,) pairs of each time, once they are found

    @staticmethod
    def bytes(packed: PairKeys) -> int:
        """Return bytes on the card, about."""
        return (packed.game.horizon * 12 + 4) * -(-packed.keys // WORD) + packed.keys

    def find(self) -> list[Ints]:
        """Find the subgames as `subgames` does; return the rows of each time that are safe at some.

        Only where a pair is stuck at which the budgets are kept, the other passes are needed.
        """
        card, start, times = self._card, self._packed.start, range(self._horizon)
        words, counts = np.zeros(self._words, dtype=np.uint64), np.zeros(self._words, dtype=np.int32)
        np.bitwise_or.at(words, start // WORD, np.left_shift(np.uint64(1), (start % WORD).astype(np.uint64)))
        np.add.at(counts, start // WORD, 1)
        card.write(self._of(self._bits, 0), words)
        card.write(self._of(self._counts, 0), counts)
        self._lead(sure=True)
        stuck = np.flatnonzero(card.fetch(self._stuck))
        if len(stuck):
            for t in range(int(stuck[-1]), -1, -1):
                self._pass(t, sure=t == stuck[-1], backwards=True)
                self._pack(t)
            if card.fetch(self._of(self._counts, 0)).sum() < len(start):
                raise FallBack("no policy keeps every budget")
            self._lead(sure=False)
        self._every = card.fetch(self._counts).reshape(self._horizon, self._words)
        self.count = self._every.sum(axis=1, dtype=np.int64)
        used = card.fetch(self._used)
        return [np.flatnonzero(used[self._tables.rows[t] : self._tables.rows[t + 1]]) for t in times]

    def number(self, t: int, number: Any, keys: Any) -> None:
        """List the pairs of a time, and number them by key."""
        before = np.cumsum(self._every[t], dtype=np.int32) - self._every[t]
        self._card.write(self._before, before)
        task = PairNumbering(self._tables.aliased, self._of(self._bits, t), self._before, number, keys)
        launch(self._card, "number", self._shape, len(number), task)

    def _of(self, every: Any, t: int) -> Any:
        return every[t * self._words : (t + 1) * self._words]

    def _lead(self, *, sure: bool) -> None:
        """Mark what is led to, from the start on."""
        self._card.zero(self._used)
        self._card.zero(self._stuck)
        for t in range(self._horizon):
            self._pass(t, sure=sure)
            if t + 1 < self._horizon:
                self._pack(t + 1)

    def _pass(self, t: int, *, sure: bool, backwards: bool = False) -> None:
        rows, after = self._tables.rows, min(t + 1, self._horizon - 1)
        self._card.zero(self._marks)
        task = Passing(
            self._tables.time(t),
            self._tables.aliased,
            self._of(self._bits, t),
            self._of(self._bits, after),
            bool(sure),
            backwards,
            self._marks,
            self._used[int(rows[t]) : int(rows[t + 1])],
            self._stuck[t : t + 1],
        )
        launch(self._card, "pass", self._shape, self._packed.keys, task)

    def _pack(self, t: int) -> None:
        task = WordPacking(self._marks, self._of(self._bits, t), self._of(self._counts, t))
        launch(self._card, "pack", self._shape, self._words, task)


# -- room -----------------------------------------------------------------------------------------


class AnswerBuffers(DeviceBuffers):
    """Room for the answers of a policy, and for what is found from them."""

    def tables(self, name: str, boxes: PolicyBoxes | None, states: int) -> DevicePolicyTable:
        """Return a policy's table on the card, in one piece; without boxes where there is none."""
        slot = np.full(states, -1, dtype=np.int32)
        if boxes is None:
            nothing, box = np.zeros(0, dtype=np.int64), np.zeros((0, 1), dtype=np.int64)
            bits, ones = np.zeros((0, 1), dtype=np.uint8), np.zeros(256, dtype=np.uint8)
            boxes = PolicyBoxes(
                nothing, box, box, nothing, box, box, nothing, False, nothing, bits, nothing, ones, False
            )
        slot[boxes.states] = np.arange(len(boxes.states), dtype=np.int32)
        arrays: list[NDArray[Any]] = [slot, *(x for x in boxes if isinstance(x, np.ndarray))]
        end = np.cumsum([-(-x.nbytes // ALIGNED) * ALIGNED for x in arrays]).tolist()
        whole: Bytes = np.zeros(end[-1], dtype=np.uint8)
        held, there = self.take(name, end[-1], np.uint8), list[Any]()
        for x, first in zip(arrays, [0, *end], strict=False):
            whole[first : first + x.nbytes] = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
            there.append(held[first : first + x.nbytes].view(x.dtype).reshape(*x.shape))
        self.card.write(held, whole)
        slots, *fields = there
        numbers = iter(fields)
        placed: Any = [next(numbers) if isinstance(x, np.ndarray) else x for x in boxes]
        return DevicePolicyTable(slots, PolicyBoxes(*placed))
