"""Exploration of layers whose reached cells are listed, in blocks (see `safety.explore`).

Three passes, as there: forward, the cells that rows lead to that keep the budgets; backward, those
from which some row is safe to the end; forward again, those that safe rows reach. A block lists the
cells of its tiles in order, by their numbers in the layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from acegames.engines.cluster.layout import Layout
from acegames.kernels.records import Boxes, Following, Listed, Steps
from acegames.model.arrays import Bools, Bytes, Ints
from acegames.safety.explore import listed, merged, no_rows, successors
from acegames.system.tasks import Block, Shared, Tasks

UNLIMITED = 2**62  # whether all blocks together take too much is judged by their numbers


@dataclass(frozen=True, eq=False)
class Lists:
    """Which cells are reached, by time (0 .. H) and block; no times if the game is infeasible."""

    keys: list[list[Block]] = field(default_factory=list)  # in order
    number: list[Ints] = field(default_factory=list)  # (K,) of each block
    played: tuple[Bytes, ...] = ()  # a bit for each row of each time, as in `Space`


def explore_listing(
    tasks: Tasks, shared: Shared, layout: Layout, check: Callable[[Sequence[int]], None] = lambda _: None
) -> Lists:
    """Find the cells that feasible play reaches.

    `check` is told how many cells of each time may be reached, after each time of the first pass,
    and may raise.
    """
    asked = _Asked(tasks, shared, layout)
    asked.forward(check)
    asked.backward()
    if not asked.begins_safely():
        return Lists()
    return asked.again()


class _Asked:
    """Asks for the tasks of the three passes."""

    def __init__(self, tasks: Tasks, shared: Shared, layout: Layout) -> None:
        self.tasks, self.shared, self.layout = tasks, shared, layout
        self.H = layout.space.game.horizon
        self.keys: list[list[Block]] = [[] for _ in layout.cuts]
        self.safe: list[list[Block]] = [[] for _ in layout.cuts]
        self.needed = [
            [layout.region(t, k).blocks.tolist() for k in range(layout.cuts[t].blocks)] for t in range(self.H)
        ]

    def forward(self, check: Callable[[Sequence[int]], None]) -> None:
        """List what may be reached, and count it time by time."""
        numbers = np.zeros(self.H + 1, dtype=np.int64)

        def told(numbers_of: tuple[int, int]) -> None:
            t, count = numbers_of
            numbers[t] += count

        arriving: list[list[Block]] = [[] for _ in range(self.layout.cuts[0].blocks)]
        for k, cells in self.layout.roots().items():
            arriving[k] = [self.tasks.put(cells)]
        for t, cut in enumerate(self.layout.cuts):
            following: list[list[Block]] = [[] for _ in range(self.layout.cuts[t + 1].blocks if t < self.H else 0)]
            for k in range(cut.blocks):
                needed = self.needed[t][k] if t < self.H else []
                own, *sent = self.tasks.run(
                    list_cells, self.shared, (t, k), arriving[k], made=1 + len(needed), told=told
                )
                self.keys[t].append(own)
                for j, block in zip(needed, sent, strict=True):
                    following[j].append(block)
            arriving = following
            self.tasks.finish()  # the numbers of this time decide whether to go on
            check(numbers[: t + 1].tolist())

    def backward(self) -> None:
        """Find from which of them play is safe to the end."""
        for t in reversed(range(self.H)):
            for k in range(self.layout.cuts[t].blocks):
                after = [block for j in self.needed[t][k] for block in self._after(t + 1, j)]
                self.safe[t] += self.tasks.run(find_safe, self.shared, (t, k), [self.keys[t][k], *after])
        self.tasks.finish()

    def _after(self, t: int, k: int) -> list[Block]:
        """Return the cells of a block, and which are safe: at the end all."""
        return [self.keys[t][k]] if t == self.H else [self.keys[t][k], self.safe[t][k]]

    def begins_safely(self) -> bool:
        """Return whether all cells where play begins are safe."""
        return all(bool(self.safe[0][k].fetch().all()) for k in self.layout.roots())

    def again(self) -> Lists:
        """Leave those that safe play reaches."""
        cuts = self.layout.cuts
        found: list[list[Block]] = [[] for _ in cuts]
        number = [np.zeros(cut.blocks, dtype=np.int64) for cut in cuts]
        played = no_rows(self.layout.space)

        def told(numbers: tuple[int, int, int, Bytes | None]) -> None:
            t, k, count, rows = numbers
            number[t][k] = count
            if rows is not None:
                played[t] |= rows

        arriving: list[list[Block]] = [[] for _ in range(cuts[0].blocks)]
        for t, cut in enumerate(cuts):
            following: list[list[Block]] = [[] for _ in range(cuts[t + 1].blocks if t < self.H else 0)]
            for k in range(cut.blocks):
                needed = self.needed[t][k] if t < self.H else []
                after = [block for j in needed for block in self._after(t + 1, j)]
                given = [self.keys[t][k], *after, *arriving[k]]
                own, *sent = self.tasks.run(keep_reached, self.shared, (t, k), given, made=1 + len(needed), told=told)
                found[t].append(own)
                for j, block in zip(needed, sent, strict=True):
                    following[j].append(block)
            arriving = following
        self.tasks.finish()
        return Lists(found, number, tuple(played))


# -- tasks ----------------------------------------------------------------------------------------


def list_cells(layout: Layout, what: tuple[int, int], *arriving: Ints) -> tuple[Any, ...]:
    """Return the cells of a block from those that others send, and the cells these lead to, by
    block.
    """
    t, k = what
    keys = merged(arriving) if arriving else np.zeros(0, dtype=np.int64)
    if t == layout.space.game.horizon:
        return keys, (t, len(keys))
    found = successors(keys, *stage(layout, t), UNLIMITED)
    cut = layout.cuts[t + 1]
    owner = cut.owner[cut.tile_of(found)]
    return keys, *(found[owner == j] for j in layout.region(t, k).blocks.tolist()), (t, len(keys))


def find_safe(layout: Layout, what: tuple[int, int], keys: Ints, *after: Any) -> tuple[Any, ...]:
    """From which cells of a block some row leads to safe cells only."""
    t, k = what
    lists, safe, _ = _after(layout, t, k, after)
    rows, reached = np.zeros(len(layout.space.tables.reward), bool), np.zeros(len(safe), bool)
    wanted = np.ones(len(keys), dtype=bool)
    return _swept(layout, t, keys, wanted, lists, safe, reached, rows), None


def keep_reached(layout: Layout, what: tuple[int, int], keys: Ints, *blocks: Any) -> tuple[Any, ...]:
    """Return the cells of a block that safe play reaches, and which it reaches of each block it
    needs.
    """
    t, k = what
    H = layout.space.game.horizon
    needed = layout.region(t, k).blocks.tolist() if t < H else []
    count = len(needed) * (1 if t + 1 == H else 2)
    after, arriving = blocks[:count], blocks[count:]
    keep = np.full(len(keys), t == 0)
    for reached in arriving:
        keep |= np.unpackbits(reached, count=len(keys), bitorder="little").view(bool)
    if t == H:
        return keys[keep], (t, k, int(keep.sum()), None)
    lists, safe, ends = _after(layout, t, k, after)
    rows, reached = np.zeros(len(layout.space.tables.reward), bool), np.zeros(len(safe), bool)
    _swept(layout, t, keys, keep, lists, safe, reached, rows)
    sent = [np.packbits(part, bitorder="little") for part in np.split(reached, ends)]
    return keys[keep], *sent[: len(needed)], (t, k, int(keep.sum()), layout.space.packed_rows(t, rows))


def _after(layout: Layout, t: int, k: int, given: Sequence[Any]) -> tuple[Ints, Bools, list[int]]:
    """Return the cells of the blocks that are needed, which are safe, and where the others begin."""
    end = t + 1 == layout.space.game.horizon
    lists = list(given) if end else list(given[::2])
    if not lists:
        return np.zeros(0, np.int64), np.zeros(0, bool), []
    keys = np.concatenate(lists)
    safe = np.ones(len(keys), dtype=bool) if end else np.concatenate(given[1::2])
    return keys, safe, np.cumsum([len(x) for x in lists])[:-1].tolist()


@lru_cache(maxsize=4)
def stage(layout: Layout, t: int) -> tuple[Boxes, Steps, Following]:
    """Return the whole layer's boxes, the steps, and the next layer's boxes; writable."""
    layer, after = layout.space.layers[t], layout.space.following(t + 1)
    here = Boxes(*(np.array(x) for x in layer.boxes()))
    own: Any = (np.array(x) for x in after)
    return here, layout.steps(t), Following(*own)


def _swept(
    layout: Layout, t: int, keys: Ints, wanted: Bools, after: Ints, safe: Bools, reached: Bools, rows: Bools
) -> Bools:
    from acegames.kernels.sparse import sweep

    found = np.empty(len(keys), dtype=bool)
    sweep(np.array(keys), wanted, *stage(layout, t), index_of(after), safe, found, reached, rows)
    return found


def index_of(keys: Ints) -> Listed:
    """Return the cells with a hash table over them."""
    return listed(np.array(keys))
