"""The subgames that some feasible policy reaches, FS, and what may be done in each, FA (spec 2).

Three compiled passes over the keys of each time:

    forward   from the initial pairs through the rows all of whose outcomes keep the budgets, now
              and, constraint by constraint, to the end (`Ceilings`);
    backward  a row is safe when all its successors are alive, a pair when some row is safe;
    forward   again, through safe rows only: a pair that is alive but is reached only by unsafe rows
              is no subgame of any feasible policy.

Successors are worked out anew in each pass. Memory is eight bytes per pair, and some tens per pair
of the largest time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acegames.model.game import MarkovGame
from acegames.verifier.arrays import BELOW, Bytes, Ints
from acegames.verifier.packed import Packed
from acegames.verifier.records import Table, Time
from acegames.verifier.threads import ALONE, Threads
from acegames.verifier.units import Units


class Subgames(NamedTuple):
    """FS, and the rows that are in FA somewhere; no times when no policy is feasible."""

    packed: Packed
    keys: list[Ints]  # (P,) for t = 0 .. H, each in order but for the first; at H there are none
    safe_rows: list[Ints]  # of the layers of the game as it was given, in order

    @staticmethod
    def of(game: MarkovGame, units: Units, threads: Threads = ALONE) -> Subgames:
        """Find the subgames; every start must be one."""
        packed = Packed.of(game, units)
        keys = within_budget(packed, threads)
        _leave_alive(packed, keys, threads)
        if len(keys[0]) < len(packed.start):
            return Subgames(packed, [], [])
        return Subgames(packed, keys, _leave_reached(packed, keys, threads))

    def pairs(self, t: int) -> tuple[Ints, Ints]:
        """Return states (P,) and what was spent (P, M) in the subgames of one time."""
        return self.packed.unpack(t, self.keys[t])


def within_budget(packed: Packed, threads: Threads = ALONE) -> list[Ints]:
    """Return the keys of each time that play can reach while every budget is kept; none at H."""
    layers = [packed.start]
    for t in range(packed.game.horizon - 1):
        table = packed.table(4 * len(layers[t]))
        layers.append(_searched(packed, t, layers[t]) if table.shift else _marked(packed, t, layers[t], table, threads))
    return [*layers, packed.start[:0]]


def _marked(packed: Packed, t: int, keys: Ints, table: Table, threads: Threads) -> Ints:
    """The successors, in order, by a table with a slot for every key."""
    from acegames.verifier import kernels

    time = packed.time(t)

    def work(block: slice) -> None:
        kernels.expand(keys[block], time, table, np.int64(BELOW), np.zeros(2, dtype=np.int64))

    threads.over(len(keys), work)
    return np.flatnonzero(table.number >= 0)


def _searched(packed: Packed, t: int, keys: Ints) -> Ints:
    """The same by a hashed table, which grows."""
    from acegames.verifier import kernels

    time, table = packed.time(t), packed.table(4 * len(keys))
    progress = np.zeros(2, dtype=np.int64)
    while True:
        hashed = table.shift > 0
        kernels.expand(keys, time, table, np.int64(len(table.slots) // 2 if hashed else BELOW), progress)
        found = table.slots[table.slots >= 0] if hashed else np.flatnonzero(table.number >= 0)
        if progress[0] == len(keys):
            return np.sort(found) if hashed else found
        widest = int(np.diff(time.out_ptr[time.row_ptr]).max())
        table = packed.table(4 * len(found) + widest)
        kernels.fill(found, np.arange(len(found)), table)


def _leave_alive(packed: Packed, layers: list[Ints], threads: Threads) -> None:
    from acegames.verifier import kernels

    for t in reversed(range(packed.game.horizon)):
        time, table, keys = packed.time(t), packed.filled(layers[t + 1]), layers[t]
        alive = np.zeros(len(keys), dtype=np.uint8)

        def work(
            block: slice, time: Time = time, table: Table = table, keys: Ints = keys, alive: Bytes = alive
        ) -> None:
            kernels.find_alive(keys[block], time, table, packed.targets(), alive[block])

        threads.over(len(keys), work)
        layers[t] = keys[alive.view(bool)]


def _leave_reached(packed: Packed, layers: list[Ints], threads: Threads) -> list[Ints]:
    from acegames.verifier import kernels

    safe_rows = []
    for t in range(packed.game.horizon):
        reached = np.zeros(len(layers[t + 1]), dtype=np.uint8)
        safe = np.zeros(len(packed.game.layer(t).reward), dtype=np.uint8)
        time, table, keys = packed.time(t), packed.filled(layers[t + 1]), layers[t]

        def work(
            block: slice, time: Time = time, table: Table = table, keys: Ints = keys, safe: Bytes = safe,
            reached: Bytes = reached,
        ) -> None:  # fmt: skip
            kernels.find_reached(
                keys[block], time, table, packed.targets(), safe, reached
            )  # sets bytes to 1, in any order

        threads.over(len(keys), work)
        rows = np.flatnonzero(safe)
        safe_rows.append(rows if packed.unrolled is None else np.unique(packed.unrolled.row[t][rows]))
        layers[t + 1] = layers[t + 1][reached.view(bool)]
    return safe_rows
