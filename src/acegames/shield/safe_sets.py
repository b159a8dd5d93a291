"""The safe joint actions of every safe pair, each distinct set of them held once.

A pair of FS_t gets a number, its *row*; a joint action is safe there when every outcome of it keeps the budgets of time t and leads to
a pair of FS_{t+1} (spec 2). Time is linear in pairs times joint actions times outcomes; four bytes per pair are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import TooLarge
from acegames.feasibility.cells import RANK_BLOCK, Cells
from acegames.feasibility.space import Space
from acegames.machine import available_memory
from acegames.model.game import MarkovGame

if TYPE_CHECKING:
    from acegames.shield._kernels import Place

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

FIRST_SETS = 1 << 10  # room for so many distinct sets to begin with


@dataclass(frozen=True, eq=False)
class Rows:
    """The safe pairs of t = 0 .. H, numbered through. Arrays are read-only."""

    place: Place  # where the kernels find them
    dims: Ints  # the constraint that each axis of the boxes counts
    constraints: int  # M

    @property
    def first(self) -> Ints:
        """The rows of time t are first[t] : first[t+1], (H+2,)."""
        return self.place[5]

    def find(self, t: Any, state: Any, spent: Any) -> Ints:
        """The row of each pair: t one or (B,), state (B,), spent (B, M) whole units; -1 where no safe play comes."""
        from acegames.shield import _kernels as kernels

        row = np.empty(len(state), dtype=np.int64)
        kernels.find_rows(t, state, spent, self.dims, self.place, row)
        return row

    def pairs(self, row: Ints) -> tuple[Ints, Ints, Ints]:
        """Time (B,), state (B,) and spent (B, M) of each row; t = -1 for what is none."""
        from acegames.shield import _kernels as kernels

        t, state = np.empty(len(row), dtype=np.int64), np.zeros(len(row), dtype=np.int64)
        spent = np.zeros((len(row), self.constraints), dtype=np.int64)
        kernels.find_pairs(row, self.dims, self.place, t, state, spent)
        return t, state, spent


@dataclass(frozen=True, eq=False)
class SafeSets:
    """The distinct sets of safe joint actions, and which of them each row has. The last set is empty: nothing is played at the end."""

    of: NDArray[np.int32]  # (rows,)
    ptr: Ints  # (D+1,) the joint actions of set d are action[ptr[d] : ptr[d+1]], in lexicographic order
    action: NDArray[np.int32]  # (E, N)

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def __getitem__(self, d: int) -> NDArray[np.int32]:
        return self.action[self.ptr[d] : self.ptr[d + 1]]


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """The array, read-only from now on."""
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array


def number_rows(space: Space) -> Rows:
    """Number the safe pairs of a feasible space in which nothing is clipped."""
    first = np.concatenate([[0], np.cumsum([cells.number for cells in space.cells])])
    words, counts, keys, word = _cells_joined(space.cells)
    arrays = (space.start, space.states, space.lo, space.size, space.base, first, word, words, counts, keys)
    place: Any = tuple(frozen(array) for array in arrays)
    return Rows(place, frozen(np.array(space.dims, dtype=np.int64)), len(space.game.constraints))


def _cells_joined(layers: tuple[Cells, ...]) -> tuple[Words, Ints, Ints, Ints]:
    """Words, counts and keys of all layers end to end, and each layer's first word."""
    nothing, no_words = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
    blocks = [0 if cells.bits is None else len(cells.bits) for cells in layers]
    word = np.concatenate([[0], np.cumsum(blocks)]) * (RANK_BLOCK // 64)
    if layers[0].bits is None:
        keys = [cells.keys for cells in layers if cells.keys is not None]
        return no_words, nothing, np.concatenate(keys), word
    bits = np.concatenate([cells.bits for cells in layers if cells.bits is not None])
    words = bits.reshape(-1).view("<u8").astype(np.uint64, copy=False)
    before = np.cumsum([0, *(cells.number for cells in layers)])
    counts = [cells.counts[:-1] + n for cells, n in zip(layers, before, strict=False) if cells.counts is not None]
    return words, np.concatenate([*counts, before[-1:]]), nothing, word


def find_safe_sets(space: Space, rows: Rows) -> SafeSets:
    """Find the safe joint actions of every row; TooLarge where four bytes for each do not fit."""
    from acegames.shield import _kernels as kernels

    game, tables = space.game, space.tables
    number = int(rows.first[-1])
    if 4 * number > available_memory():
        raise TooLarge(
            f"shield: {number:,} safe situations take {4 * number / 2**30:.3g} GiB, more than can be used; "
            "coarser costs, fewer constraints or smaller budgets would help"
        )
    blocks, lists = _action_lists(game)
    width = -(-tables.widest[0] // 64)
    known = _room(np.zeros((0, width), dtype=np.uint64), np.zeros(0, dtype=np.int32))
    code = np.empty(number, dtype=np.int32)
    count = 0
    for t in range(game.horizon):
        row, cell = int(rows.first[t]), 0
        while row < rows.first[t + 1]:
            row, cell, count = kernels.safe_sets(
                t, row, cell, rows.place, tables.stepping(t), space.budget[t], blocks[game.layer_at[t]], known, count, code
            )  # fmt: skip
            if row < rows.first[t + 1]:
                known = _room(known[0], known[1])
                kernels.fill_table(known, count)
    return _merged(rows, code, known[0][:count], known[1][:count], lists)


def _room(sets: Words, lists: NDArray[np.int32]) -> tuple[Words, NDArray[np.int32], NDArray[np.int32]]:
    """Room for twice as many sets, with an empty hash table."""
    more = max(FIRST_SETS, len(sets))
    sets = np.concatenate([sets, np.zeros((more, sets.shape[1]), dtype=np.uint64)])
    lists = np.concatenate([lists, np.zeros(more, dtype=np.int32)])
    return sets, lists, np.full(1 << (4 * len(sets) - 1).bit_length(), -1, dtype=np.int32)


def _action_lists(game: MarkovGame) -> tuple[list[NDArray[np.int32]], list[NDArray[np.int32]]]:
    """The distinct lists of joint actions of states, and for each layer which of them a state has, (S,)."""
    lists: dict[bytes, int] = {}
    found: list[NDArray[np.int32]] = []
    blocks = []
    for layer in game.layers:
        block = np.zeros(len(game.states), dtype=np.int32)
        for s in range(len(game.states)):
            actions = layer.action[layer.row_ptr[s] : layer.row_ptr[s + 1]]
            key = actions.tobytes()
            if key not in lists:
                lists[key] = len(found)
                found.append(actions)
            block[s] = lists[key]
        blocks.append(block)
    return blocks, found


def _merged(
    rows: Rows, code: NDArray[np.int32], known: Words, block: NDArray[np.int32], lists: list[NDArray[np.int32]]
) -> SafeSets:
    """Sets that are equal although their states offer different joint actions become one."""
    numbers: dict[bytes, int] = {}
    parts: list[NDArray[np.int32]] = []
    final = np.empty(len(known), dtype=np.int32)
    bits = np.unpackbits(
        known.astype("<u8", copy=False).view(np.uint8).reshape(len(known), -1), axis=1, bitorder="little"
    )
    for k in range(len(known)):
        actions = lists[block[k]]
        safe = actions[bits[k, : len(actions)].astype(bool)]
        number = numbers.setdefault(safe.tobytes(), len(parts))
        if number == len(parts):
            parts.append(safe)
        final[k] = number
    end = int(rows.first[-2])
    code[:end] = final[code[:end]]
    code[end:] = len(parts)
    ptr = np.cumsum([0, *(len(part) for part in parts), 0])
    return SafeSets(frozen(code), frozen(ptr), frozen(np.concatenate(parts)))
