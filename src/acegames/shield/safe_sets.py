"""The safe joint actions of every safe pair, each distinct set of them held once.

A pair of FS_t gets a number, its *row*; a joint action is safe there when every outcome of it keeps the budgets of time t and leads to
a pair of FS_{t+1} (spec 2). Four bytes per pair are kept. Time is linear in pairs, and in joint actions times
outcomes of each line of pairs where spending is held as boxes, of each pair where it is listed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import TooLarge
from acegames.model.arrays import Ints, pointers
from acegames.model.game import MarkovGame
from acegames.safety.cells import RANK_BLOCK, Cells
from acegames.safety.explore import listed
from acegames.safety.space import Space
from acegames.system.machine import available_memory

if TYPE_CHECKING:
    from acegames.kernels.safe_sets import Sets
    from acegames.kernels.shielding import Place

Words = NDArray[np.uint64]

FIRST_SETS = 1 << 10  # room for so many distinct sets to begin with


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A view of the array, read-only. (Kernels are compiled for such alone: for arrays that can be written they would be again.)"""
    array = np.ascontiguousarray(array).view()
    array.setflags(write=False)
    return array


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """The array, read-only for good, for users: so is what it is a view of."""
    array = np.ascontiguousarray(array)
    for part in (array.base, array):
        if isinstance(part, np.ndarray):
            part.setflags(write=False)
    return array.view()


class Sealed:
    """Seals its arrays again after it was pickled or copied, which makes them writable (and kernels compile anew for such)."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take in the attributes."""
        vars(self).update({name: _sealed_again(value) for name, value in state.items()})


def _sealed_again(value: Any) -> Any:
    """Arrays, also in tuples and dicts, sealed."""
    if isinstance(value, tuple):
        return tuple(map(_sealed_again, value))
    if isinstance(value, dict):
        return {key: _sealed_again(part) for key, part in value.items()}
    return sealed(value) if isinstance(value, np.ndarray) else value


@dataclass(frozen=True, eq=False)
class Rows(Sealed):
    """The safe pairs of t = 0 .. H, numbered through. Arrays are read-only."""

    place: Place  # where the kernels find them
    dims: Ints  # the constraint that each axis of the boxes counts
    constraints: int  # M

    @property
    def first(self) -> Ints:
        """The rows of time t are first[t] : first[t+1], (H+2,)."""
        return self.place[5]

    def find(self, t: Ints, state: Ints, spent: Ints) -> Ints:
        """The row of each pair: t one or (B,), state (B,), spent (B, M) whole units; -1 where no safe play comes."""
        from acegames.kernels import shielding as kernels

        row = np.empty(len(state), dtype=np.int64)
        kernels.find_rows(frozen(t), frozen(state), frozen(spent), self.dims, self.place, row)
        return row

    def pairs(self, row: Ints) -> tuple[Ints, Ints, Ints]:
        """Time (B,), state (B,) and spent (B, M) of each row; t = -1 for what is none."""
        from acegames.kernels import shielding as kernels

        t, state = np.empty(len(row), dtype=np.int64), np.zeros(len(row), dtype=np.int64)
        spent = np.zeros((len(row), self.constraints), dtype=np.int64)
        kernels.find_pairs(frozen(row), self.dims, self.place, t, state, spent)
        return t, state, spent


@dataclass(frozen=True, eq=False)
class SafeSets(Sealed):
    """The distinct sets of safe joint actions, and which of them each row has. The last set is empty: nothing is played at the end."""

    of: NDArray[np.int32]  # (rows,)
    ptr: Ints  # (D+1,) the joint actions of set d are action[ptr[d] : ptr[d+1]], in lexicographic order
    action: NDArray[np.int32]  # (E, N)

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def __getitem__(self, d: int) -> NDArray[np.int32]:
        return self.action[self.ptr[d] : self.ptr[d + 1]]


def number_rows(space: Space) -> Rows:
    """Number the safe pairs of a feasible space in which nothing is clipped."""
    first = sealed(pointers([cells.number for cells in space.cells]))
    words, counts, keys, word = _cells_joined(space.cells)
    arrays = (space.start, space.states, space.lo, space.size, space.base, first, word, words, counts, keys)
    place: Any = tuple(frozen(array) for array in arrays)
    return Rows(place, frozen(np.array(space.dims, dtype=np.int64)), len(space.game.constraints))


def _cells_joined(layers: tuple[Cells, ...]) -> tuple[Words, Ints, Ints, Ints]:
    """Words, counts and keys of all layers end to end, and each layer's first word."""
    nothing, no_words = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
    blocks = [0 if cells.bits is None else len(cells.bits) for cells in layers]
    word = pointers(blocks) * (RANK_BLOCK // 64)
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
    game, tables = space.game, space.tables
    number = int(rows.first[-1])
    if 4 * number > available_memory():
        raise TooLarge(
            f"shield: {number:,} safe situations take {4 * number / 2**30:.3g} GiB, more than can be used; "
            "coarser costs, fewer constraints or smaller budgets would help"
        )
    blocks, lists = _action_lists(game)
    code = np.empty(number, dtype=np.int32)
    known = _Known.empty(tables.widest[0])
    for t in range(game.horizon):
        into = code[rows.first[t] : rows.first[t + 1]]
        sets = _dense_layer if space.dense else _sparse_layer
        known = sets(space, t, blocks[game.layer_at[t]], known, into)
    return _merged(rows, code, known.sets[: known.count], known.lists[: known.count], lists)


@dataclass(frozen=True, eq=False)
class _Known:
    """The sets found so far, with room for more; see the kernels."""

    sets: Words  # (C, W)
    lists: NDArray[np.int32]  # (C,)
    index: NDArray[np.int32]
    count: int

    @staticmethod
    def empty(rows: int) -> _Known:
        """Room for sets of so many joint actions, a few times as many as one line can have."""
        room = max(FIRST_SETS, 2 * rows)
        return _Known._with_room(np.zeros((0, -(-rows // 64)), np.uint64), np.zeros(0, np.int32), 0, room)

    @property
    def kernel_sets(self) -> Sets:
        """The same for kernels."""
        from acegames.kernels.safe_sets import Sets

        return Sets(self.sets, self.lists, self.index)

    def larger(self) -> _Known:
        """Twice the room."""
        return self._with_room(self.sets, self.lists, self.count, len(self.sets))

    @staticmethod
    def _with_room(sets: Words, lists: NDArray[np.int32], count: int, more: int) -> _Known:
        from acegames.kernels.safe_sets import Sets, index_sets

        sets = np.concatenate([sets, np.zeros((more, sets.shape[1]), dtype=np.uint64)])
        lists = np.concatenate([lists, np.zeros(more, dtype=np.int32)])
        index = np.full(1 << (2 * len(sets)).bit_length(), -1, dtype=np.int32)
        index_sets(Sets(sets, lists, index), count)
        return _Known(sets, lists, index, count)


def _dense_layer(space: Space, t: int, block: NDArray[np.int32], known: _Known, code: NDArray[np.int32]) -> _Known:
    """Number the sets of the pairs of time t, line by line."""
    from acegames.kernels.safe_sets import dense_sets

    here = space.layers[t]
    assert here.cells is not None
    layer = (here.boxes(), here.cells.marks(here.total), space.steps(t), space.following(t + 1), space.tables.widest)
    a = nth = pair = 0
    while True:
        a, nth, pair, count = dense_sets(a, nth, pair, *layer, block, known.kernel_sets, known.count, code)
        known = replace(known, count=count)
        if a == len(here.states):
            return known
        known = known.larger()


def _sparse_layer(space: Space, t: int, block: NDArray[np.int32], known: _Known, code: NDArray[np.int32]) -> _Known:
    """Number the sets of the pairs of time t, one by one."""
    from acegames.kernels.safe_sets import sparse_sets

    here, after = space.layers[t], space.layers[t + 1]
    assert (
        here.cells is not None
        and here.cells.keys is not None
        and after.cells is not None
        and after.cells.keys is not None
    )
    keys = here.cells.keys
    layer = (keys, here.boxes(), space.steps(t), space.following(t + 1), listed(after.cells.keys))
    pair = 0
    while True:
        pair, count = sparse_sets(pair, *layer, block, known.kernel_sets, known.count, code)
        known = replace(known, count=count)
        if pair == len(keys):
            return known
        known = known.larger()


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
    return SafeSets(sealed(code), sealed(ptr), sealed(np.concatenate(parts)))
