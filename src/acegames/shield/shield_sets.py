"""The safe joint actions of every safe pair, each distinct set of them held once.

The pairs of FS_t are numbered; a joint action is safe at one when every outcome of it keeps the
budgets of time t and leads to a pair of FS_{t+1} (spec 2). Four bytes per pair are kept. Time is
linear in pairs, and in joint actions times outcomes of each line of pairs where spending is held as
boxes, of each pair where it is listed.

A set takes one bit per joint action of the state: games list their joint actions once, and with
many players a list of them for every set would not fit.

What follows from a set (masks, the nearest safe joint actions) is held once per distinct set too,
in arrays: `table[mask_of[pairs]]`.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption, TooLarge
from acegames.kernels.records import Place
from acegames.model.arrays import Bools, Ints, frozen, pointers
from acegames.policy.tracker import CostTracker
from acegames.safety.cells import RANK_BLOCK, words_of
from acegames.safety.explore import listed
from acegames.safety.space import Space
from acegames.system.machine import check_memory

if TYPE_CHECKING:
    from acegames.kernels.lookup import Sets


Words = NDArray[np.uint64]

FIRST_BYTES = 1 << 20  # of distinct sets that there is room for to begin with
BESIDES_BITS = 64  # bytes of a set at most, for its place in the index
KEPT_BYTES = 1 << 26  # of lists of safe joint actions, which are kept once they were asked for


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array that users get read-only for good, also what it is a view of, and return it."""
    array = np.ascontiguousarray(array)
    for part in (array.base, array):
        if isinstance(part, np.ndarray):
            part.setflags(write=False)
    return array.view()


class Sealed:
    """Seals its arrays again after it was pickled or copied, which makes them writable."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: _sealed_again(value) for name, value in state.items()})


def _sealed_again(value: Any) -> Any:
    """Seal arrays, also those in tuples and dicts, and return the value."""
    if isinstance(value, tuple):
        parts = map(_sealed_again, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, dict):
        return {key: _sealed_again(part) for key, part in value.items()}
    return sealed(value) if isinstance(value, np.ndarray) else value


@dataclass(frozen=True, eq=False)
class SafeSets(Sealed):
    """The distinct sets of safe joint actions, and which one each pair has; the last is empty."""

    of: NDArray[np.int32]  # by pair
    lists: tuple[NDArray[np.int32], ...]  # joint actions (R, N) that states offer, in lexicographic order
    block: NDArray[np.int32]  # (D-1,) the list that a set is taken from
    bits: NDArray[np.uint8]  # (D-1, bytes) which of the list are in the set, the lowest bit first
    _lists: dict[int, NDArray[np.int32]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.block) + 1

    def __getitem__(self, d: int) -> NDArray[np.int32]:
        """Return the joint actions of set d, (E, N), in lexicographic order."""
        if d in self._lists:
            return self._lists[d]
        if len(self._lists) * self._longest > KEPT_BYTES:
            self._lists.clear()
        offered, chosen = self.marked(d)
        return self._lists.setdefault(d, sealed(offered[chosen]))

    @cached_property
    def _longest(self) -> int:
        """Bytes of the longest list."""
        return max(offered.nbytes for offered in self.lists)

    def marked(self, d: int) -> tuple[NDArray[np.int32], Bools]:
        """Return a list of joint actions (R, N), and which of them are in set d, (R,)."""
        if d == len(self.block):
            return self.lists[0], np.zeros(len(self.lists[0]), dtype=bool)
        offered = self.lists[self.block[d]]
        return offered, np.unpackbits(self.bits[d], count=len(offered), bitorder="little").view(bool)


def number_pairs(space: Space) -> Place:
    """Return where kernels find the safe pairs, numbered through t = 0 .. H. Nothing may be
    clipped.

    The words, counts and keys of all layers lie end to end; `word` is each layer's first word.
    """
    first = sealed(pointers([cells.number for cells in space.cells]))
    word = pointers([0 if cells.bits is None else len(cells.bits) for cells in space.cells]) * (RANK_BLOCK // 64)
    words, counts, keys = np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.int64)
    if space.cells[0].bits is None:
        keys = np.concatenate([cells.keys for cells in space.cells if cells.keys is not None])
    else:
        bits = np.concatenate([cells.bits for cells in space.cells if cells.bits is not None])
        words = words_of(bits)
        before = zip(space.cells, first, strict=False)
        own = [cells.counts[:-1] + n for cells, n in before if cells.counts is not None]
        counts = np.concatenate([*own, first[-1:]])
    arrays = (space.start, space.states, space.lo, space.size, space.base, first, word, words, counts, keys)
    return Place(*map(frozen, arrays))


def find_safe_sets(space: Space, first: Ints) -> SafeSets:
    """Find the safe joint actions of every pair; TooLarge where four bytes for each do not fit."""
    from acegames.kernels.lookup import Sets

    game, number = space.game, int(first[-1])
    advice = "coarser costs, fewer constraints or smaller budgets would help"
    check_memory(f"shield: {number:,} situations", 4 * number, advice)
    # which list of joint actions each state of each layer has, (L, S), and the distinct lists
    offered = [layer.action[a:b] for layer in game.layers for a, b in itertools.pairwise(layer.row_ptr)]
    of, firsts = _distinct(offered)
    blocks, lists = of.reshape(len(game.layers), len(game.states)), tuple(offered[k] for k in firsts)
    code = np.empty(number, dtype=np.int32)
    words = -(-space.tables.widest[0] // 64)
    nothing = Sets(np.zeros((0, words), np.uint64), np.zeros(0, np.int32), np.zeros(0, np.int32))
    known, count = _with_room(nothing, max(FIRST_BYTES // (8 * words), 1)), 0
    for t in range(game.horizon):
        kernel, at, end, layer = _layer(space, t)
        into = code[first[t] : first[t + 1]]
        while at[0] < end:
            *at, count = kernel(*at, *layer, blocks[game.layer_at[t]], known, count, into)
            if at[0] < end:  # there was no room for another set
                known = _with_room(known, 2 * len(known.bits))
    return _merged(int(first[-2]), code, known, count, lists)


def _with_room(known: Sets, number: int) -> Sets:
    """Return the sets with room for `number` in all; see the kernels."""
    from acegames.kernels.lookup import Sets, add_sets

    count, words = known.bits.shape
    what = f"shield: {count:,} different sets of safe joint actions so far, with {64 * words:,} bits each, and room for more"
    advice = "fewer joint actions, or smaller budgets with coarser costs, would help"
    check_memory(what, (8 * words + BESIDES_BITS) * number, advice)
    table = np.full(1 << (2 * number).bit_length(), -1, dtype=np.int32)
    larger = Sets(np.zeros((number, words), dtype=np.uint64), np.zeros(number, dtype=np.int32), table)
    add_sets(known, larger)
    return larger


def _layer(space: Space, t: int) -> tuple[Any, list[int], int, tuple[Any, ...]]:
    """Return the kernel that numbers the sets of time t, where it begins and ends, and what it
    reads.

    It goes line by line where spending is held as boxes, pair by pair where it is listed.
    """
    from acegames.kernels.lookup import dense_sets, sparse_sets

    here, after = space.layers[t], space.layers[t + 1].cells
    assert here.cells is not None and after is not None
    both, widest = (space.steps(t), space.following(t + 1)), space.tables.widest
    if space.dense:
        layer = (here.boxes(), here.cells.marks(here.total), *both, widest)
        return dense_sets, [0, 0, 0, 0], len(here.states), layer
    assert here.cells.keys is not None and after.keys is not None
    keys = here.cells.keys
    return sparse_sets, [0], len(keys), (keys, here.boxes(), *both, listed(after.keys), widest)


def _distinct(arrays: Iterable[NDArray[np.int32]]) -> tuple[NDArray[np.int32], list[int]]:
    """Return the number of each array among the distinct ones, and the places of these."""
    numbers: dict[bytes, int] = {}
    of, firsts = list[int](), list[int]()
    for k, array in enumerate(arrays):
        of.append(numbers.setdefault(hashlib.blake2b(array.tobytes(), digest_size=32).digest(), len(firsts)))
        if of[-1] == len(firsts):
            firsts.append(k)
    return np.array(of, dtype=np.int32), firsts


def _merged(
    end: int, code: NDArray[np.int32], known: Sets, count: int, lists: tuple[NDArray[np.int32], ...]
) -> SafeSets:
    """Merge equal sets of states with different joint actions; `end` counts the pairs before the
    end.
    """
    bits = known.bits[:count].astype("<u8", copy=False).view(np.uint8)
    merged = SafeSets(code, lists, known.block[:count], bits)
    if len(lists) > 1:
        final, firsts = _distinct(offered[chosen] for offered, chosen in map(merged.marked, range(count)))
        code[:end] = final[code[:end]]
        merged = SafeSets(code, lists, merged.block[firsts], bits[firsts])
    code[end:] = len(merged) - 1
    return SafeSets(sealed(code), tuple(map(sealed, lists)), sealed(merged.block), sealed(merged.bits))


# -- answers for every set, in arrays --------------------------------------------------------------

ALWAYS_FINE = 1 << 24  # bytes: asking how many there are takes longer
FAR = 1 << 62  # farther than any safe joint action
MOST_AXES = 64 if int(np.__version__.partition(".")[0]) >= 2 else 32
DO_WITHOUT = "for one situation, `turn`, `product`, `repair` and `safe` need no such array; neither does `next_pairs` without actions"


def check_size(what: str, number: int, shape: tuple[int, ...], entry: int = 1) -> None:
    """Raise TooLarge for arrays over joint actions that do not fit."""
    if len(shape) >= MOST_AXES:
        raise TooLarge(f"{what}: arrays have at most {MOST_AXES} axes, there are {len(shape)} players; {DO_WITHOUT}")
    size = number * math.prod(shape) * entry
    if size > ALWAYS_FINE:
        entries = f"{number:,} times the {math.prod(shape):,} joint actions of {len(shape)} players"
        check_memory(f"{what}: {entries}", size, DO_WITHOUT)


def joint_masks(sets: SafeSets, shape: tuple[int, ...]) -> Bools:
    """Return the masks over joint actions, (D, *shape)."""
    check_size("masks", len(sets), shape)
    masks = np.zeros((len(sets), math.prod(shape)), dtype=bool)
    places = [np.ravel_multi_index(tuple(offered.T), shape) for offered in sets.lists]
    for mask, block, d in zip(masks, sets.block, itertools.count(), strict=False):
        mask[places[block]] = sets.marked(d)[1]
    return sealed(masks.reshape(-1, *shape))


def turn_masks(masks: Bools) -> tuple[Bools, ...]:
    """Return for each player what may follow the choices of those before, (D, n_1, ..., n_i)."""
    by_player = [masks]
    while by_player[-1].ndim > 2:
        by_player.append(np.asarray(by_player[-1].any(axis=-1)))
    return tuple(map(sealed, reversed(by_player)))


def nearest_actions(sets: SafeSets, shape: tuple[int, ...]) -> NDArray[np.int32]:
    """Return the safe joint action nearest to each, (D, *shape, N); -1 where nothing is safe.

    One player after the other stays or changes, so that time is linear in joint actions times
    players. `best` holds for each joint action the nearest safe one that the players so far can
    change it to: how many change, times the number of joint actions, plus its place among them.
    """
    check_size("repairs", len(sets), shape, 4 * len(shape))
    number = math.prod(shape)
    every = np.indices(shape, dtype=np.int32).reshape(len(shape), -1).T.copy()
    nearest = np.full((len(sets), *every.shape), -1, dtype=np.int32)
    for d in range(len(sets) - 1):
        safe = tuple(sets[d].T)
        best = np.full(shape, FAR, dtype=np.int64)
        best[safe] = np.ravel_multi_index(safe, shape)
        for i in range(len(shape)):
            np.minimum(best, best.min(axis=i, keepdims=True) + number, out=best)
        np.take(every, best.reshape(-1) % number, axis=0, out=nearest[d], mode="clip")
    return sealed(nearest.reshape(len(sets), *shape, len(shape)))


def whole_units(tracker: CostTracker, amounts: Any, *, costs: bool) -> Ints:
    """Return whole units of amounts, (M,) or (B, M); costs are rounded as the tracker rounds."""
    tracker = tracker if costs else replace(tracker, rounding=())
    try:
        if np.ndim(amounts) != 2:
            return np.array(tracker.total(tracker.counted(amounts)), dtype=np.int64)
        # objects, because a float32 in a list made a float64 would be another number
        arrays = isinstance(amounts, np.ndarray) or all(isinstance(row, np.ndarray) for row in amounts)
        columns = np.asarray(amounts, dtype=None if arrays else object).T
        if len(columns) != len(tracker.units):
            raise ValueError(f"{len(columns)} columns given, there are {len(tracker.units)} constraints")
        whole = np.empty((len(amounts), len(columns)), dtype=np.int64)
        for m, column in enumerate(columns):  # each distinct amount is read once
            own = slice(m, m + 1)
            one = CostTracker(tracker.constraints[own], tracker.units[own], tracker.rounding[own])
            values, inverse = np.unique(column, return_inverse=True)
            units = [one.total(one.counted([value]))[0] for value in values]
            whole[:, m] = np.array(units, dtype=np.int64)[inverse.reshape(-1)]
        return whole
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidOption(f"{'costs' if costs else 'spent'}: {error}") from None
