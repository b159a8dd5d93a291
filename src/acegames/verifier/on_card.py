"""A policy is judged on a GPU: the passes of `feasible` and `deviations`, a thread per pair.

Every pair is judged by itself, also those that are alike: they have the same numbers. What the
policy plays is read from its tables (`stored`): the host asks it for all answers of a time and
checks them, and threads find those of their pairs. The certificate is that of the processors, bit
by bit. What a card does not do is left to them (`Left`), and so is a policy that is wrong in any
other way than by gains, because then words are to be found.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np

from acegames.concepts import Concept
from acegames.model.game import MarkovGame
from acegames.system.axes import room, room_bytes
from acegames.system.cuda_ahead import compile_together
from acegames.system.cuda_card import RESIDENT, usable
from acegames.system.progress import OnProgress, Teller
from acegames.verifier.arrays import Floats, Ints, offsets
from acegames.verifier.card_tables import (
    KERNELS,
    Answering,
    GameTables,
    Left,
    Pairs,
    Shape,
    given_to,
    launch,
    recipe,
    scratch_bytes,
)
from acegames.verifier.counted import Counted
from acegames.verifier.deviations import (
    CHECKING,
    Evaluated,
    all_numbers,
    at_start,
    compared,
    most_spent,
    reads_tables,
)
from acegames.verifier.packed import Packed
from acegames.verifier.phases import STRIP, WORD, Chunk, Drawing, Gaining, Judging
from acegames.verifier.reading import Reader
from acegames.verifier.records import Known, Played, Table
from acegames.verifier.stored import Stored
from acegames.verifier.threads import ALONE, Threads
from acegames.verifier.tolerance import Gains, common_part
from acegames.verifier.units import Spent

log = logging.getLogger("acegames")

CHUNK, LEAST_CHUNK = 2**22, 2**12  # answers of a policy that are on the card together, at most and at least
ASKED = 2**16  # that a thread of the host asks for at once
MOST_SCRATCH = 4096  # bytes of each thread of the card


def evaluate_on_card(
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
        with Threads(engine.host.threads if reader.thread_safe else 1) as threads:
            shape = Shape.of(packed)
            memory = usable(card, engine.memory, RESIDENT * scratch_bytes(shape))
            compile_together(recipe, given_to, (*KERNELS,), shape, card.capability)
            found = OnCard(card, packed, reader, concept, threads, memory).evaluate(progress)
    except Left as why:
        log.info(f"acegames: verifying on the processors: {why}")
        return None
    log.info(f"acegames: verified on the GPU ({card.name})")
    return found


def _fitting(game: MarkovGame, reader: Reader, concept: Concept, smallest: int) -> Packed:
    """Return the pairs of a game that a card can judge."""
    if concept.product:
        raise Left("players draw independently")
    packed = Packed.of(game, reader.units)
    if packed.unrolled is not None:
        raise Left("cumulative costs do not fit into 64 bits")
    if packed.keys * game.horizon < smallest or (smallest and packed.joined is not None):
        raise Left("a small game")
    if scratch_bytes(Shape.of(packed)) > MOST_SCRATCH:
        raise Left("large stage games")
    return packed


class OnCard:
    """Judges a policy."""

    def __init__(
        self, card: Any, packed: Packed, reader: Reader, concept: Concept, threads: Threads, memory: int
    ) -> None:
        self.card, self.packed, self.reader, self.concept, self.threads = card, packed, reader, concept, threads
        self.memory, self.n, self.horizon = memory, len(packed.game.players), packed.game.horizon
        self.shape, self.rooms, self.gains = Shape.of(packed), Answering(card), Gains(reader)

    def evaluate(self, progress: OnProgress | None) -> Evaluated:
        """Find the pairs, then judge them from the last time back."""
        card, packed, reader = self.card, self.packed, self.reader
        numbers = all_numbers(packed, self.concept)
        if GameTables.bytes(packed, numbers) + Pairs.bytes(packed) > self.memory:
            raise Left("the GPU's memory is too small")
        self.tables = GameTables(card, packed, numbers)
        self.pairs = Pairs(card, packed, self.shape, self.tables)
        safe_rows = self.pairs.find()
        base = common_part(reader.game, reader.units, safe_rows)
        self.base, self.wrong = card.upload(base), card.upload(np.zeros(1, dtype=np.int64))
        self._make_room()
        teller = Teller(progress, CHECKING, self.horizon, int(self.pairs.count.sum()))
        here = self._known(0, 0)
        for t in reversed(range(self.horizon)):
            here = self._layer(t, here)
            teller.layer(int(self.pairs.count[t]))
        self.gains.settle()
        with np.errstate(over="ignore", invalid="ignore"):
            values: Floats = at_start(packed.game, card.fetch(here.values)[:, : self.n]) + base.sum(axis=0)
        worst = most_spent(packed.units, card.fetch(here.ahead))
        return Evaluated(int(self.pairs.count.sum()), values, self.gains, faults=[], n_faults=0, worst=worst)

    def _make_room(self) -> None:
        """Room for two times, and for answers of the policy as far as memory goes."""
        card, packed, most = self.card, self.packed, int(self.pairs.count.max())
        lengths, strips = {"6N": 6 * self.n, "M+R": len(packed.low) + len(packed.units.stored)}, -(-most // STRIP)
        each = room_bytes(Known, lengths | {"P": 1})
        fixed = GameTables.bytes(packed, self.tables.numbers) + Pairs.bytes(packed) + 8 * packed.keys
        fixed += most * (2 * each + 9) + strips * 8 * self.n * (3 + 12 * self.n) + 256 * len(packed.game.states)
        tables, entry = packed.keys // 2, 5 * (8 + 16 * packed.rows) // 4  # about, and at most
        fitting = (self.memory - fixed - tables) // entry
        if fitting < LEAST_CHUNK:
            raise Left("the GPU's memory is too small")
        self.chunk = min(fitting, CHUNK)
        self.known = [room(Known, lengths | {"P": most}, card.empty) for _ in range(2)]
        self.number = [card.empty(packed.keys, np.int32) for _ in range(2)]
        self.keys, self.slots = card.empty(most, np.int64), card.empty(1, np.int64)[:0]

    def _known(self, t: int, pairs: int) -> Known:
        values, ahead, fault = self.known[t % 2]
        return Known(values[:pairs], ahead[:pairs], fault[:pairs])

    # -- one time ---------------------------------------------------------------------------------

    def _layer(self, t: int, following: Known) -> Known:
        """Return what `deviations.Judge.layer` does."""
        count = int(self.pairs.count[t])
        keys, found = self.keys[:count], self._known(t, count)
        if t:
            self.pairs.number(t, self.number[t % 2], keys)
        else:
            self.card.write(keys, self.packed.start)
        stored = self.reader.stored(t, self.packed) if reads_tables(count) else None
        if stored is None and reads_tables(count):
            raise Left("the policy shows no tables of this game")
        self._compare(t, stored, keys, count)
        table = Table(self.slots, self.number[(t + 1) % 2], np.int64(0))
        time, numbers = self.tables.time(t), self.tables.numbers[self.packed.game.layer_at[t]]
        game = (time, table, numbers, self.base[t : t + 1], 0 if time.last else len(time.worst))
        for chunk in self._answers_of_pairs(t, keys) if stored is None else self._answers(stored):
            given = Judging(keys, *game, bool(self.concept.interim), following, found, self.wrong, chunk)
            launch(self.card, "judge", self.shape, count, given)
        self._note_gains(t, keys, found)
        if self.card.fetch(self.wrong)[0]:
            raise Left("the policy is at fault, or its values overflow")
        return found

    def _compare(self, t: int, stored: Stored | None, keys: Any, count: int) -> None:
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
            raise Left("the policy's tables have no answers")

    def _answers_of_pairs(self, t: int, keys: Any) -> Iterator[Chunk]:
        """Yield what the policy says at each pair, of which there are few."""
        here = self.card.fetch(keys)
        answers = self.reader.read(t, *self.packed.unpack(t, here), here[:0])
        if answers.faults:
            raise Left("the policy is at fault")
        played = self._uploaded([(answers.ptr, answers.row, answers.prob)])
        unused = self.rooms.tables("no table", None, len(self.packed.game.states))
        yield Chunk(True, unused, unused, 0, len(here), played)

    def _answers(self, stored: Stored) -> Iterator[Chunk]:
        """Yield the answers of the policy's tables; one chunk takes the room of the one before."""
        every = stored.every()
        if every is None:
            raise Left("the policy's tables are not in order")
        states = len(self.packed.game.states)
        first, second = (self.rooms.tables(name, x, states) for name, x in zip("ab", stored.tables, strict=True))
        state, number = every[0] * self.packed.span, every[1]
        for begin in range(0, max(len(state), 1), self.chunk):
            end = min(begin + self.chunk, len(state))
            blocks = [slice(x, min(x + ASKED, end)) for x in range(begin, end, ASKED)]
            parts = self.threads.each(lambda block: stored.read(state[block], number[block]), blocks)
            if any(part is None for part in parts):
                raise Left("an answer of the policy is wrong")
            yield Chunk(False, first, second, begin, end, self._uploaded([part for part in parts if part]))

    def _uploaded(self, parts: list[tuple[Ints, Ints, Floats]]) -> Played:
        """Answers on the card, those of one part after the other."""
        size = offsets(np.array([len(row) for _, row, _ in parts], dtype=np.int64))
        ptr = np.concatenate([[0], *(ptr[1:] + first for (ptr, _, _), first in zip(parts, size, strict=False))])
        there = Played(
            self.rooms.take("ptr", len(ptr), np.int64),
            self.rooms.take("row", int(size[-1]), np.int64),
            self.rooms.take("prob", int(size[-1]), np.float64),
        )
        self.card.write(there.ptr, ptr)
        for (_, row, prob), begin, end in zip(parts, size[:-1].tolist(), size[1:].tolist(), strict=True):
            self.card.write(there.row[begin:end], row)
            self.card.write(there.prob[begin:end], prob)
        return there

    def _note_gains(self, t: int, keys: Any, found: Known) -> None:
        """Take note of the largest gains of a time."""
        strips, n, card = -(-len(keys) // STRIP), self.n, self.card
        given = Gaining(
            found.values,
            self.rooms.take("numbers", (strips, 2 * n), np.int64),
            self.rooms.take("off", (strips, n), np.float64),
            self.rooms.take("gains", (strips, 2 * n, 6 * n), np.float64),
        )
        launch(card, "gain", self.shape, strips, given)
        numbers, picked = card.fetch(given.numbers).reshape(-1), card.fetch(given.picked).reshape(-1, 6 * n)
        pairs, first = np.unique(numbers, return_index=True)
        pairs, values = pairs[pairs >= 0], picked[first[pairs >= 0]]
        if t == 0:  # of which all count
            pairs, values = np.arange(len(keys)), card.fetch(found.values)

        def place(p: int) -> tuple[int, int, Spent]:
            at = int(pairs[p])
            return t, *self.packed.pair(t, card.fetch(keys[at : at + 1]), 0)

        gains = Gains(self.reader)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            gains.add(values, place, start=t == 0)
        gains.off = card.fetch(given.off).max(axis=0)
        self.gains.put_before(gains)
