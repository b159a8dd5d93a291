"""What lies on a GPU while a policy is judged there: the game, the pairs of all times, room."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.system.axes import example, room, room_bytes
from acegames.system.cuda_card import Rooms
from acegames.system.cuda_code import Recipe
from acegames.verifier import phases
from acegames.verifier.arrays import Bytes, Ints, offsets
from acegames.verifier.packed import Packed
from acegames.verifier.phases import WORD, Drawing, Gaining, Judging, Numbering, OwnPair, Packing, Passing, Tables
from acegames.verifier.records import Boxes, Numbers, Scratch, Time

THREADS = 128  # of a block
ROWS = (4, 9, 16, 27, 36, 64)
ALIGNED = 16  # bytes
KERNELS = {  # and what they are given; those first that take longest to compile
    "judge": Judging,
    "pass": Passing,
    "gain": Gaining,
    "draw": Drawing,
    "number": Numbering,
    "pack": Packing,
}


class Left(Exception):
    """Why the processors verify, in words."""


# -- kernels --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """What kernels are compiled for; numbers are rounded up, so that games share kernels."""

    players: int
    constraints: int
    rows: int  # most joint actions of a state
    outcomes: int  # most outcomes of a row
    actions: int  # most actions of a player

    @staticmethod
    def of(packed: Packed) -> Shape:
        """Return the shape of a game."""
        rows = next((n for n in ROWS if n >= packed.rows), packed.rows)
        outcomes = max(1 << (len(packed.targets()) - 1).bit_length(), 8)
        return Shape(len(packed.game.players), len(packed.low), rows, outcomes, max(map(len, packed.game.actions)))


def _room(shape: Shape) -> OwnPair:
    spent, slack = np.empty((2, shape.constraints), np.int64)
    return OwnPair(spent, slack, room(Scratch, _lengths(shape)))


def _lengths(shape: Shape) -> dict[str, int]:
    """Of the axes of `Scratch`."""
    own = {"rows": shape.rows, "4N": 4 * shape.players, "outcomes": shape.outcomes}
    return own | {"actions": shape.actions, "actions+1": shape.actions + 1}


def scratch_bytes(shape: Shape) -> int:
    """Return bytes that each thread has to itself."""
    return 2 * 8 * shape.constraints + room_bytes(Scratch, _lengths(shape))


@cache
def recipe(name: str, shape: Shape) -> Recipe:
    """Return a kernel; one object for each shape: cards know it by that."""
    phase = getattr(phases, f"{name}_phase")
    own = {"pass": _room(shape).slack, "judge": _room(shape)}.get(name)
    return Recipe(f"verify_{name}", (phase,), THREADS, None, own)


def given_to(name: str) -> Any:
    """Return arrays of the types that a kernel is given."""
    return example(KERNELS[name])


def launch(card: Any, name: str, shape: Shape, threads: int, given: Any) -> None:
    """Launch so many threads."""
    card.launch(recipe(name, shape), -(-threads // THREADS), given)


# -- the game -------------------------------------------------------------------------------------


class GameTables:
    """What can happen at each time, and the numbers."""

    def __init__(self, card: Any, packed: Packed, numbers: list[Numbers]) -> None:
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
        self.mirrors = card.upload(np.array(packed.mirrors, dtype=np.int64).reshape(-1, 3))

    @staticmethod
    def bytes(packed: Packed, numbers: list[Numbers]) -> int:
        """Return bytes on the card, about."""
        rows = sum(len(packed.game.layer(t).reward) for t in range(packed.game.horizon))
        steps = sum(8 * (len(x.row_ptr) + len(x.out_ptr) + len(x.next_state)) for x in packed.game.layers)
        return 8 * rows * len(packed.low) + steps + sum(int(x.nbytes) for own in numbers for x in own)

    def time(self, t: int) -> Time:
        """Return what can happen at one time."""
        packed, worst = self._packed, self._worst[int(self.rows[t]) : int(self.rows[t + 1])]
        bound, last = self._bound[t], t == packed.game.horizon - 1
        row_ptr, out_ptr, jump = self._rules[packed.game.layer_at[t]]
        span = np.int64(packed.span)
        return Time(row_ptr, out_ptr, jump, worst, bound, span, self._low, self._size, last)


# -- pairs ----------------------------------------------------------------------------------------


class Pairs:
    """The subgames of all times, as bits of keys."""

    def __init__(self, card: Any, packed: Packed, shape: Shape, tables: GameTables) -> None:
        self._card, self._packed, self._shape, self._tables = card, packed, shape, tables
        self._words, self._horizon = -(-packed.keys // WORD), packed.game.horizon
        self._bits, self._counts = (card.empty(self._horizon * self._words, x) for x in (np.uint64, np.int32))
        self._marks = card.empty(packed.keys, np.uint8)
        self._used, self._stuck = card.empty(int(tables.rows[-1]), np.uint8), card.empty(self._horizon, np.int64)
        self._before = card.empty(self._words, np.int32)
        self.count: Ints = np.zeros(0, dtype=np.int64)  # (H,) pairs of each time, once they are found

    @staticmethod
    def bytes(packed: Packed) -> int:
        """Return bytes on the card, about."""
        return (packed.game.horizon * 12 + 4) * -(-packed.keys // WORD) + packed.keys

    def find(self) -> list[Ints]:
        """Find the subgames as `feasible` does; return the rows of each time that are safe at some.

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
                raise Left("no policy keeps every budget")
            self._lead(sure=False)
        self._every = card.fetch(self._counts).reshape(self._horizon, self._words)
        self.count = self._every.sum(axis=1, dtype=np.int64)
        used = card.fetch(self._used)
        return [np.flatnonzero(used[self._tables.rows[t] : self._tables.rows[t + 1]]) for t in times]

    def number(self, t: int, number: Any, keys: Any) -> None:
        """List the pairs of a time, and number them by key."""
        before = np.cumsum(self._every[t], dtype=np.int32) - self._every[t]
        self._card.write(self._before, before)
        given = Numbering(self._tables.mirrors, self._of(self._bits, t), self._before, number, keys)
        launch(self._card, "number", self._shape, len(number), given)

    def _of(self, every: Any, t: int) -> Any:
        return every[t * self._words : (t + 1) * self._words]

    def _lead(self, *, sure: bool) -> None:
        """From the start on."""
        self._card.zero(self._used)
        self._card.zero(self._stuck)
        for t in range(self._horizon):
            self._pass(t, sure=sure)
            if t + 1 < self._horizon:
                self._pack(t + 1)

    def _pass(self, t: int, *, sure: bool, backwards: bool = False) -> None:
        rows, after = self._tables.rows, min(t + 1, self._horizon - 1)
        self._card.zero(self._marks)
        given = Passing(
            self._tables.time(t),
            self._tables.mirrors,
            self._of(self._bits, t),
            self._of(self._bits, after),
            bool(sure),
            backwards,
            self._marks,
            self._used[int(rows[t]) : int(rows[t + 1])],
            self._stuck[t : t + 1],
        )
        launch(self._card, "pass", self._shape, self._packed.keys, given)

    def _pack(self, t: int) -> None:
        given = Packing(self._marks, self._of(self._bits, t), self._of(self._counts, t))
        launch(self._card, "pack", self._shape, self._words, given)


# -- room -----------------------------------------------------------------------------------------


class Answering(Rooms):
    """Room for the answers of a policy, and for what is found from them."""

    def tables(self, name: str, boxes: Boxes | None, states: int) -> Tables:
        """Return a policy's table on the card, in one piece; one without boxes where there is none."""
        slot = np.full(states, -1, dtype=np.int32)
        if boxes is None:
            nothing, box = np.zeros(0, dtype=np.int64), np.zeros((0, 1), dtype=np.int64)
            bits, ones = np.zeros((0, 1), dtype=np.uint8), np.zeros(256, dtype=np.uint8)
            boxes = Boxes(nothing, box, box, nothing, box, box, nothing, False, nothing, bits, nothing, ones, False)
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
        return Tables(slots, Boxes(*placed))
