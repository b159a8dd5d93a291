"""The subgames that some feasible policy reaches, FS, and what may be done in each, FA (spec 2).

Three compiled passes over the keys of each time:

    forward   from the initial pairs through the rows all of whose outcomes keep the budgets, now
              and, constraint by constraint, to the end (`Ceilings`);
    backward  a row is safe when all its successors are alive, a pair when some row is safe;
    forward   again, through safe rows only: a pair that is alive but is reached only by unsafe rows
              is no subgame of any feasible policy.

Where pairs lie densely, many that are neighbours are looked at at once (`window_kernels`), else one
by one (`pair_kernels`); in small games all three passes are one call. Successors are worked out
anew in each pass. Memory is eight bytes per pair, and some tens per pair of the largest time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from acegames.model.game import MarkovGame
from acegames.verifier.basics import ALONE, BELOW, LIMITS, BlockThreads, Bools, Bytes, Ints, TimeRules
from acegames.verifier.pair_keys import AllTimes, ExactUnits, PairKeys


class Subgames(NamedTuple):
    """FS, and the rows that are in FA somewhere; no times when no policy is feasible."""

    packed: PairKeys
    keys: list[Ints]  # (P,) for t = 0 .. H, each in order but for the first; at H there are none
    safe_rows: list[Ints]  # of the layers of the game as it was given, in order

    @staticmethod
    def of(game: MarkovGame, units: ExactUnits, threads: BlockThreads = ALONE) -> Subgames:
        """Find the subgames; every start must be one."""
        packed = PairKeys.of(game, units)
        if packed.keys <= LIMITS.searched_keys and packed.joined is not None:
            return _searched_together(packed, packed.joined)
        keys = within_budget(packed, threads)
        first = _leave_alive(packed, keys, threads)
        if len(keys[0]) < len(packed.start):
            return Subgames(packed, [], [])
        return Subgames(packed, keys, _leave_reached(packed, keys, threads, first))

    def pairs(self, t: int) -> tuple[Ints, Ints]:
        """Return states (P,) and what was spent (P, M) in the subgames of one time."""
        return self.packed.unpack(t, self.keys[t])


def within_budget(packed: PairKeys, threads: BlockThreads = ALONE) -> list[Ints]:
    """Return the keys of each time that play can reach while every budget is kept; none at H."""
    layers = [packed.start]
    for t in range(packed.game.horizon - 1):
        layers.append(successors(packed, t, layers[t], threads))
    return [*layers, packed.start[:0]]


def successors(packed: PairKeys, t: int, keys: Ints, threads: BlockThreads = ALONE) -> Ints:
    """Return the keys that rows lead to which keep the budgets, in order."""
    by_line, hashed = packed.by_line(len(keys)), packed.hashed(4 * len(keys))
    find = _marked_by_line if by_line else _searched if hashed else _marked
    return packed.canonical(find(packed, t, keys, threads))


def _marked_by_line(packed: PairKeys, t: int, keys: Ints, threads: BlockThreads) -> Ints:
    """Return the successors, in order."""
    from acegames.verifier import window_kernels

    time = packed.time(t)

    def work(block: slice) -> Bytes:
        marks = packed.marks()
        window_kernels.mark_successors(keys[block], time, marks, packed.lanes())
        return marks

    return _any_marked(threads.shared(len(keys), work), threads)


def _marked(packed: PairKeys, t: int, keys: Ints, threads: BlockThreads) -> Ints:
    """Return the successors, by a table with a slot for every key."""
    from acegames.verifier import pair_kernels

    time, table = packed.time(t), packed.table(4 * len(keys))

    def work(block: slice) -> None:
        pair_kernels.expand(keys[block], time, table, np.int64(BELOW), np.zeros(2, dtype=np.int64))

    threads.over(len(keys), work)
    return np.flatnonzero(table.number >= 0)


def _any_marked(several: Sequence[Bytes], threads: BlockThreads) -> Ints:
    """Return the keys that are marked in any of these, which are written to."""

    def work(part: slice) -> Ints:
        first, *others = (marks[part] for marks in several)
        for marks in others:
            np.bitwise_or(first, marks, out=first)
        marked: Ints = part.start + np.flatnonzero(first.view(bool))
        return marked

    return np.concatenate(threads.shared(len(several[0]), work))


def _searched(packed: PairKeys, t: int, keys: Ints, _: BlockThreads) -> Ints:
    """Return the successors, by a hashed table, which grows."""
    from acegames.verifier import pair_kernels

    time, table = packed.time(t), packed.table(4 * len(keys))
    progress = np.zeros(2, dtype=np.int64)
    while True:
        hashed = table.shift > 0
        pair_kernels.expand(keys, time, table, np.int64(len(table.slots) // 2 if hashed else BELOW), progress)
        reached = table.slots[table.slots >= 0] if hashed else np.flatnonzero(table.number >= 0)
        if progress[0] == len(keys):
            return np.sort(reached) if hashed else reached
        widest = int(np.diff(time.out_ptr[time.row_ptr]).max())
        table = packed.table(4 * len(reached) + widest)
        pair_kernels.fill(reached, np.arange(len(reached)), table)


def _leave_alive(packed: PairKeys, layers: list[Ints], threads: BlockThreads) -> int:
    """Drop the pairs without a safe row; return the first time at which there are some, or else H.

    Where the next time has none, every row that keeps the budgets is safe, and nothing else is
    looked at.
    """
    first, after = packed.game.horizon, -1  # and the last time found to have some
    for t in reversed(range(packed.game.horizon)):
        alive = with_safe_row(packed, *_ahead(packed, t, layers, sure=after != t + 1), layers[t], threads)
        if not alive.all():
            layers[t], first, after = layers[t][alive], t, t
    return first


def _ahead(packed: PairKeys, t: int, layers: list[Ints], *, sure: bool) -> tuple[TimeRules, Ints]:
    """Return what can happen at time t, and the pairs of the next time, none if all are alive."""
    time = packed.time(t)
    return (time._replace(last=True), layers[t + 1][:0]) if sure else (time, layers[t + 1])


def with_safe_row(
    packed: PairKeys, time: TimeRules, following: Ints, keys: Ints, threads: BlockThreads = ALONE
) -> Bools:
    """Return which pairs have a safe row, given the pairs of the next time that are alive."""
    find = _alive_by_line if packed.by_line(len(keys)) else _alive
    return find(packed, time, following, keys, threads).view(bool)


def _alive_by_line(packed: PairKeys, time: TimeRules, following: Ints, keys: Ints, threads: BlockThreads) -> Bytes:
    """Return which pairs have a safe row."""
    from acegames.verifier import window_kernels

    marks, alive = packed.marks(following), np.zeros(len(keys), dtype=np.uint8)

    def work(block: slice) -> None:
        window_kernels.mark_alive(keys[block], time, marks, packed.lanes(), alive[block])

    threads.shared(len(keys), work)
    return alive


def _alive(packed: PairKeys, time: TimeRules, following: Ints, keys: Ints, threads: BlockThreads) -> Bytes:
    """Return which pairs have a safe row, pair by pair."""
    from acegames.verifier import pair_kernels

    table, alive = packed.filled(following), np.zeros(len(keys), dtype=np.uint8)

    def work(block: slice) -> None:
        pair_kernels.find_alive(keys[block], time, table, packed.targets(), alive[block])

    threads.over(len(keys), work)
    return alive


def _leave_reached(packed: PairKeys, layers: list[Ints], threads: BlockThreads, first: int) -> list[Ints]:
    """Drop the pairs that safe rows do not lead to; return the rows that are safe somewhere.

    Before time `first` no pair was dropped: there the safe rows are those that keep the budgets,
    and they lead to the pairs that these led to.
    """
    safe_rows = []
    for t in range(packed.game.horizon):
        sure = t + 1 < first
        rows, reached = by_safe_rows(packed, *_ahead(packed, t, layers, sure=sure), layers[t], threads)
        layers[t + 1] = layers[t + 1] if sure else reached
        safe_rows.append(rows if packed.unrolled is None else np.unique(packed.unrolled.row[t][rows]))
    return safe_rows


def by_safe_rows(
    packed: PairKeys, time: TimeRules, following: Ints, keys: Ints, threads: BlockThreads = ALONE
) -> tuple[Ints, Ints]:
    """Return the rows that are safe at some of the pairs, and the pairs that they lead to."""
    find = _reached_by_line if packed.by_line(len(keys)) else _reached
    return find(packed, time, following, keys, threads)


def _reached_by_line(
    packed: PairKeys, time: TimeRules, following: Ints, keys: Ints, threads: BlockThreads
) -> tuple[Ints, Ints]:
    """Return the rows that are safe at some of the pairs, and the pairs of the next time they lead
    to.
    """
    from acegames.verifier import window_kernels

    alive = packed.marks(following)

    def work(block: slice) -> tuple[Bytes, Bytes]:
        safe, marks = np.zeros(len(time.worst), dtype=np.uint8), packed.marks()
        window_kernels.mark_reached(keys[block], time, alive, packed.lanes(), safe, marks)
        return safe, marks

    safe, marks = zip(*threads.shared(len(keys), work), strict=True)
    return _any_marked(safe, ALONE), packed.canonical(_any_marked(marks, threads))


def _reached(
    packed: PairKeys, time: TimeRules, following: Ints, keys: Ints, threads: BlockThreads
) -> tuple[Ints, Ints]:
    """Return the rows safe somewhere and the pairs they lead to, pair by pair."""
    from acegames.verifier import pair_kernels

    table = packed.filled(following)
    reached, safe = (np.zeros(length, dtype=np.uint8) for length in (len(following), len(time.worst)))

    def work(block: slice) -> None:
        pair_kernels.find_reached(
            keys[block], time, table, packed.targets(), safe, reached
        )  # sets bytes to 1, in any order

    threads.over(len(keys), work)
    return np.flatnonzero(safe), following[reached.view(bool)]


def _searched_together(packed: PairKeys, joined: AllTimes) -> Subgames:
    """Return the subgames of a small game."""
    from acegames.verifier import pair_kernels

    table, safe = packed.slots(), np.zeros(len(joined.time.worst), dtype=np.uint8)
    keys, starts = np.empty(len(table.number), dtype=np.int64), len(packed.start)
    keys[:starts] = packed.start
    table.number[packed.start] = 0
    pair_kernels.search(keys, starts, joined.time, joined.ends, table, packed.targets(), safe)
    if not (table.number[packed.start] == 1).all():
        return Subgames(packed, [], [])
    ends, rows = np.arange(1, packed.game.horizon) * packed.keys, np.flatnonzero(safe)
    _, *later = np.split(reached := np.flatnonzero(table.number == 1), np.searchsorted(reached, ends))
    layers = [packed.start, *(keys - t * packed.keys for t, keys in enumerate(later, 1)), packed.start[:0]]
    first = joined.rows[:-1]
    safe_rows = [x - r for x, r in zip(np.split(rows, np.searchsorted(rows, first[1:])), first, strict=True)]
    return Subgames(packed, layers, safe_rows)
