"""The subgames that some feasible policy reaches, FS, and what may be done in each, FA (spec 2).

Up to three compiled passes over the keys of each time:

    forward   from the initial pairs through the rows all of whose outcomes keep the budgets, now
              and, constraint by constraint, to the end (`Ceilings`);
    backward  a row is safe when all its successors are alive, a pair when some row is safe;
    forward   again, through safe rows only: a pair that is alive but is reached only by unsafe rows
              is no subgame of any feasible policy.

The first suffices where no pair is stuck without a row that keeps the budgets. The others go over
the times from which play can lead to such a pair. Successors are worked out anew in each pass.
Memory is eight bytes per pair, and a byte or so for each key of the largest time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from acegames.model.arrays import Bytes, Ints
from acegames.model.game import MarkovGame
from acegames.system.compiled import expect
from acegames.verifier.basics import ALONE, LANES, BlockThreads, begins, wasted
from acegames.verifier.pair_keys import ExactUnits, PairKeys

_MARKED = 16
"""Keys for each that is listed up to which all of them have a mark, else they are sorted."""
_LISTED = 2**20
"""Successors, about, that one thread lists together."""


class Subgames(NamedTuple):
    """FS, and the rows that are in FA somewhere; no times when no policy is feasible."""

    packed: PairKeys
    keys: list[Ints]  # (P,) for t = 0 .. H, each in order; at H there are none
    safe_rows: list[Ints]  # of the layers of the game as it was given, in order

    @staticmethod
    def of(game: MarkovGame, units: ExactUnits, threads: BlockThreads = ALONE) -> Subgames:
        """Find the subgames; every start must be one."""
        packed = PairKeys.of(game, units)
        layers, rows, last = [np.sort(packed.start)], list[Ints](), -1
        for t in range(packed.game.horizon):
            own, used, led = _forward(packed, t, layers[t], None, threads)
            rows.append(used)
            layers.append(led)
            last = last if own.view(bool).all() else t
            expect(sum(map(len, layers)))
        if last >= 0:  # pairs are stuck there, and at no time after it
            first = _drop_dead(packed, layers, last, threads)
            if len(layers[0]) < len(packed.start):
                return Subgames(packed, [], [])
            for t in range(max(first - 1, 0), packed.game.horizon):
                _, rows[t], layers[t + 1] = _forward(packed, t, layers[t], layers[t + 1], threads)
        if packed.unrolled is not None:
            rows = [np.unique(packed.unrolled.row[t][used]) for t, used in enumerate(rows)]
        return Subgames(packed, layers, rows)

    def pairs(self, t: int) -> tuple[Ints, Ints]:
        """Return states (P,) and what was spent (P, M) in the subgames of one time."""
        return self.packed.unpack(t, self.keys[t])


@dataclass(frozen=True, eq=False)
class Positions:
    """Where what is known of the next time lies (`pair_kernels`)."""

    index: Ints | None  # the keys, in order; None where a position is a key less `first`
    first: int  # the first key of a line
    count: int  # positions
    line: int = 1  # positions of a line, the first of which ...
    beyond_full: int = 0  # ... stand for the next one (`PairKeys.beyond_full`)

    @staticmethod
    def of(packed: PairKeys, t: int, keys: Ints, following: Ints | None) -> Positions | None:
        """Return where the next time lies for pairs of time t; None where only its keys would do.

        After the last time nothing is looked up. Where positions are keys, they reach as far as
        rows that keep the budgets can lead.
        """
        if t == packed.game.horizon - 1:
            return Positions(None if packed.windows(1, 0) else np.zeros(0, dtype=np.int64), 0, 0)
        (least, most), first, count = packed.reach[packed.game.layer_at[t]], 0, 0
        if len(keys):
            low, high = max(int(keys[0]) + least, 0), min(int(keys[-1]) + most, packed.keys - 1)
            first = low // packed.line * packed.line
            count = (high // packed.line + 1) * packed.line - first
        if packed.windows(len(keys), count):
            return Positions(None, first, count, packed.line, packed.beyond_full)
        return None if following is None else Positions(following, 0, len(following))

    def places(self, keys: Ints) -> tuple[Ints, slice | Ints]:
        """Return the places at which pairs of the next time are looked up, and which each is.

        Given all their keys, in order. A place less `first` is a position. A full reservoir has
        several.
        """
        if self.index is not None:
            return np.arange(len(keys)), slice(None)
        begin, end = np.searchsorted(keys, [self.first, self.first + self.count]).tolist()
        if not self.beyond_full:
            return keys[begin:end], slice(begin, end)
        at = keys[begin:end]
        full = np.flatnonzero(self._when_full(at - 1) == at)
        more = at[full, None] - np.arange(1, self.beyond_full + 1)
        which = np.concatenate([np.arange(len(at)), np.repeat(full, self.beyond_full)]) + begin
        return np.concatenate([at, more.reshape(-1)]), which

    def keys(self, marks: Sequence[Bytes], threads: BlockThreads) -> Ints:
        """Return the keys that any of these marks, in place of those beyond full the full ones."""

        def work(part: slice) -> Ints:
            at = np.flatnonzero(np.bitwise_or.reduce([x[part].view(bool) for x in marks]))
            at += self.first + part.start
            return self._when_full(at) if self.beyond_full else at if self.index is None else self.index[at]

        keys: Ints = threads.joined(threads.each(work, threads.shares(len(marks[0]))))
        return keys[begins(keys)] if self.beyond_full else keys

    def _when_full(self, keys: Ints) -> Any:
        """Return keys, in place of those beyond full the full ones (`PairKeys.beyond_full`)."""
        return keys + wasted(keys % self.line, -self.beyond_full)

    @property
    def length(self) -> int:
        """Length of what is known by position: windows may reach beyond the last key."""
        return self.count + LANES

    @property
    def lanes(self) -> int:
        """Pairs that a window may have."""
        return LANES if self.index is None else 1


def _forward(
    packed: PairKeys, t: int, keys: Ints, following: Ints | None, threads: BlockThreads
) -> tuple[Bytes, Ints, Ints]:
    """Return marks of the pairs that have a safe row, all such rows, and the keys they lead to.

    `following` are the keys of the next time from which play can go on; None: all that are led to
    by rows that keep the budgets.
    """
    after = Positions.of(packed, t, keys, following)
    return _list(packed, t, keys, threads) if after is None else _sweep(packed, t, keys, after, following, threads)


def _drop_dead(packed: PairKeys, layers: list[Ints], last: int, threads: BlockThreads) -> int:
    """Drop the pairs without a safe row, at no time after `last`; return the first with any."""
    first, following = last, None  # None: all of the next time are alive
    for t in range(last, -1, -1):
        keys = layers[t]
        after = Positions.of(packed, packed.game.horizon - 1 if following is None else t, keys, following)
        assert after is not None
        alive, _, _ = _sweep(packed, t, keys, after, following, threads, forward=False)
        following = None
        if not alive.view(bool).all():
            layers[t] = following = keys[alive.view(bool)]
            first = t
    return first


def _sweep(
    packed: PairKeys, t: int, keys: Ints, after: Positions, following: Ints | None, threads: BlockThreads, *,
    forward: bool = True,
) -> tuple[Bytes, Ints, Ints]:  # fmt: skip
    """Do what `_forward` does, by position; backward find no more than the pairs."""
    from acegames.verifier.pair_kernels import sweep

    time, sure = packed.time(t), following is None
    if sure and not forward:  # it makes no difference where rows lead
        time = time._replace(last=True)
    alive = np.zeros(0 if following is None else after.length, dtype=np.uint8)
    if following is not None:
        alive[after.places(following)[0] - after.first] = 1
    own, used = np.zeros(len(keys), dtype=np.uint8), np.zeros(len(time.ceiling), dtype=np.uint8)

    def work(part: slice) -> Bytes:
        led = np.zeros(after.length if forward else 0, dtype=np.uint8)
        sweep(
            keys[part], time, after.index, after.first, alive, sure, forward, packed.workspace(after.lanes), own[part], used,
            led,
        )  # fmt: skip
        return led

    led = threads.each(work, threads.shares(len(keys)))
    return own, np.flatnonzero(used), after.keys(led, threads)


def _list(packed: PairKeys, t: int, keys: Ints, threads: BlockThreads) -> tuple[Bytes, Ints, Ints]:
    """Do what `_forward` does with all rows that keep the budgets, where pairs lie sparsely."""
    from acegames.verifier.pair_kernels import list_successors

    time = packed.time(t)
    own, used = np.zeros(len(keys), dtype=np.uint8), np.zeros(len(time.ceiling), dtype=np.uint8)
    outcomes = np.diff(time.out_ptr[time.row_ptr])[keys // packed.line % len(packed.game.states)]
    size = max(_LISTED // max(int(outcomes.max(initial=1)), 1), 1)
    parts = [slice(begin, begin + size) for begin in range(0, len(keys), size)]

    def work(part: slice) -> Ints:
        led = np.empty(int(outcomes[part].sum()), dtype=np.int64)
        spent = np.empty(len(packed.low), dtype=np.int64)
        return _distinct(led[: list_successors(keys[part], time, spent, own[part], used, led)])

    every = threads.each(work, parts)
    return own, np.flatnonzero(used), _distinct(threads.joined([keys[:0], *every]))


def _distinct(keys: Ints) -> Ints:
    """Return each key once, in order; the array given may be sorted. (`numpy.unique` is slower.)"""
    if not len(keys):
        return keys
    first, count = keys.min(), int(np.ptp(keys)) + 1
    if count <= _MARKED * len(keys):
        marks = np.zeros(count, dtype=bool)
        marks[keys - first] = True
        marked: Ints = first + np.flatnonzero(marks)
        return marked
    keys.sort()
    return keys[begins(keys)]
