"""Many questions to the policy at once, where it has a method for that.

    lookup(t, state (Q,), total (Q, M)) -> ptr (Q+1,), action (E, N), probability (E,)

with states and actions by index and totals in whole `tracker.units`. It must say what
`distribution` says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.model.game import MarkovGame
from acegames.verifier.basics import BELOW, BlockThreads, Floats, Ints, PolicyBoxes, offsets
from acegames.verifier.pair_keys import Ceilings, ExactUnits, PairKeys


class BulkLookup:
    """The `lookup` of a policy."""

    def __init__(self, game: MarkovGame, policy: Any, ratios: list[Fraction]) -> None:
        self.game, self.policy, self.ratios = game, policy, ratios  # units of the policy per unit of ours
        said = (vars(_owner(policy)).get("thread_safe"), getattr(policy, "thread_safe", None))
        self.thread_safe = said == (True, True)  # `lookup` may be asked by several threads

    @staticmethod
    def of(game: MarkovGame, policy: Any, units: ExactUnits) -> BulkLookup | None:
        """Return None where the policy has no `lookup`, or other states, actions or costs."""
        if _lacking(game, policy, units) is not None:
            return None
        try:
            return BulkLookup(game, policy, _ratios(policy, units))
        except Exception:  # of its `thread_safe`
            return None

    def declared(self) -> list[Ints] | None:
        """Return the totals below which the policy says its answers are the same, (S, M) by time.

        None where it does not say.
        """
        inside = internals(self.policy)
        if not callable(getattr(inside, "flat_below", None)) or any(ratio != 1 for ratio in self.ratios):
            return None
        try:
            floors = [np.asarray(inside.flat_below(t)) for t in range(self.game.horizon)]
        except Exception:  # then every pair is judged
            return None
        shape = (len(self.game.states), len(self.game.constraints))
        return floors if all(x.shape == shape and x.dtype == np.int64 for x in floors) else None

    def numbering(self, t: int) -> Any:
        """Return what the policy's `internals.numbering` says, None where it has none.

        They must be of the very class that has `distribution` and `lookup`.
        """
        policy, own = self.policy, _owner(self.policy)
        if "internals" in getattr(policy, "__dict__", ()) or any(ratio != 1 for ratio in self.ratios):
            return None
        try:
            mine = own is not None and own is type(self.policy) and "internals" in vars(own)
            return policy.internals.numbering(t) if mine else None
        except Exception:
            return None

    def read(self, t: int, state: Ints, spent: Ints) -> tuple[Ints, Ints, Floats] | None:
        """Return pointers (P+1,), rows (Z,), probabilities (Z,); None where any answer is wrong."""
        total = in_units(spent, self.ratios)
        if total is None:
            return None
        total = total.copy() if total is spent else total  # the policy may write into what it is given
        from acegames.verifier.pair_kernels import read_rows

        try:
            ptr, action, prob = (np.asarray(x) for x in self.policy.lookup(t, state.copy(), total))
        except Exception:
            return None
        if not _well_formed(ptr, action, prob, len(state), len(self.game.players)):
            return None
        ptr, action = ptr.astype(np.int64, copy=False), action.astype(np.int32, copy=False)
        prob = prob.astype(np.float64, copy=False)
        layer, row, chance = self.game.layer(t), np.empty(len(prob), dtype=np.int64), np.empty(len(prob))
        if read_rows(layer.row_ptr, layer.action, state, ptr, action, prob, row, chance):
            return ptr, row, chance
        some = prob != 0  # those that are not played may be said, too
        if some.all() or not (ptr[1:] > ptr[:-1]).all():
            return None
        ptr, action, prob = offsets(np.add.reduceat(some, ptr[:-1], dtype=np.int64)), action[some], prob[some]
        fine = read_rows(layer.row_ptr, layer.action, state, ptr, action, prob, row, chance)
        return (ptr, row[: len(prob)], chance[: len(prob)]) if fine else None


def internals(policy: Any) -> Any:
    """Return what a policy shows of its inside (`acegames.Policy.internals`), or None."""
    try:
        return getattr(policy, "internals", None)
    except Exception:  # a judge must not fall over what it judges
        return None


def why_alone(game: MarkovGame, policy: Any, units: ExactUnits) -> str:
    """Return why only one may ask a policy at a time that is not `thread_safe`, in words."""
    lacking = _lacking(game, policy, units)
    owner = _owner(policy) if lacking is None else None
    if owner is not None and vars(owner).get("thread_safe") is not True:
        return f"the class {owner.__name__}, which has the policy's distribution and lookup, does not say thread_safe = True"
    return f"the policy, of class {type(policy).__name__}, {lacking or 'has another thread_safe than True'}"


def _lacking(game: MarkovGame, policy: Any, units: ExactUnits) -> str | None:
    """Return why the `lookup` of a policy is not used, in words; None where it is."""
    if not units.small:
        return "is for costs that do not fit into 64 bits"
    own: dict[str, Callable[[], bool]] = {
        "has no method lookup": lambda: hasattr(type(policy), "lookup"),
        "does not have distribution and lookup from the same class": lambda: _owner(policy) is not None,
        "has no states that equal those of the game": lambda: tuple(policy.states) == game.states,
        "has no actions that equal those of the game": lambda: tuple(map(tuple, policy.actions)) == game.actions,
        "has no tracker.units, a number for each constraint": lambda: _ratios(policy, units) is not None,
    }
    for lacking, fine in own.items():
        try:
            if not fine():
                return lacking
        except Exception:  # a judge must not fall over what it judges: `distribution` is asked instead
            return lacking
    return None


def _ratios(policy: Any, units: ExactUnits) -> list[Fraction]:
    """Return units of the policy per unit of ours."""
    theirs = [Fraction(u) for u in policy.tracker.units]
    return [1 / (k * u) for k, u in zip(units.scale, theirs, strict=True)]


def in_units(spent: Ints, ratios: list[Fraction]) -> Ints | None:
    """Return amounts (P, M) in the policy's units; None when one is not whole, or too large."""
    if all(ratio == 1 for ratio in ratios):
        return spent
    total = np.empty(spent.shape, dtype=np.int64)
    for m, ratio in enumerate(ratios):
        column, (up, down) = spent[:, m], ratio.as_integer_ratio()
        if down >= BELOW or (up != 1 and int(np.abs(column).max(initial=0)) * up >= BELOW):
            return None
        total[:, m] = column * up // down
        if not np.array_equal(total[:, m] * down, column * up):
            return None
    return total


def _owner(policy: Any) -> type | None:
    """Return the class that gives both methods; a `lookup` of another one may say otherwise."""
    methods = {"distribution", "lookup"}
    if methods & set(getattr(policy, "__dict__", ())):
        return None
    owner = next((c for c in type(policy).__mro__ if methods & set(vars(c))), object)
    return owner if methods <= set(vars(owner)) else None


def _well_formed(ptr: NDArray[Any], action: NDArray[Any], prob: NDArray[Any], pairs: int, players: int) -> bool:
    """Return whether these have the types and shapes of an answer, and no number is too large for
    them.
    """
    return bool(
        (ptr.dtype.kind, action.dtype.kind, prob.dtype.kind) in {("i", "i", "f"), ("i", "u", "f")}
        and ptr.shape == (pairs + 1,)
        and prob.ndim == 1
        and action.shape == (len(prob), players)
        and ptr[0] == 0
        and ptr[-1] == len(prob)
        and (action.dtype == np.int32 or not action.size or (action.min() >= 0 and action.max() < 2**31))
    )


# -- the tables of a policy -----------------------------------------------------------------------
# A policy's answers by number, where it shows how it numbers pairs (`Policy.internals`).
#
# Pairs are found in its tables by the verifier's own compiled code, and those with the same state
# and
# number have the same answer, which `answers` gives. So what is declared alike is compared by
# number,
# and blocks of many pairs are read with little of the interpreter's time. Anything that is not as
# it
# should be is no answer; then the policy is asked by `lookup`. At some pairs `lookup` and
# `distribution` are compared with what is read.


class PolicyTables:
    """The tables of one time."""

    def __init__(self, packed: PairKeys, policy: Any, t: int, tables: list[PolicyBoxes]) -> None:
        self._packed, self._policy, self._t, self._tables = packed, policy, t, tables

    @staticmethod
    def of(packed: PairKeys, policy: Any, t: int, numbering: Any) -> PolicyTables | None:
        """Return None where `given`, the policy's `numbering`, does not fit the game at time t."""
        layer = packed.game.layer(t)
        try:
            first, second, row_ptr, action = numbering
            tables = [PolicyBoxes(*table) for table in (first, second) if table is not None]
            same = np.array_equal(row_ptr, layer.row_ptr) and np.array_equal(action, layer.action)
            fine = same and all(_sound(table, len(packed.low)) for table in tables)
        except Exception:  # a judge must not fall over what it judges
            return None
        return PolicyTables(packed, policy, t, tables) if fine else None

    def find(self, keys: Ints, threads: BlockThreads) -> Ints:
        """Return the number of each pair, -1 where there is none."""
        from acegames.verifier.key_kernels import find_stored

        packed, several = self._packed, [np.empty(len(keys), dtype=np.int64) for _ in self._tables]

        def work(block: slice) -> None:
            spent = np.zeros(len(packed.low), dtype=np.int64)
            for table, numbers in zip(self._tables, several, strict=True):
                find_stored(keys[block], packed.low, packed.size, table, spent, numbers[block])
            first, *others = (numbers[block] for numbers in several)
            for other in others:
                first[other < 0] = -1

        threads.shared(len(keys), work)
        return several[0]

    @property
    def tables(self) -> tuple[PolicyBoxes, PolicyBoxes]:
        """The table that numbers pairs, and one that must have them too: the same, or another."""
        return self._tables[0], self._tables[-1]

    def every(self) -> tuple[Ints, Ints] | None:
        """Return states and numbers of all pairs of the table, in the order of cells; None where
        boxes or counts are out of order, so that cells present cannot be numbered through.
        """
        table, states = self._tables[0], len(self._packed.game.states)
        width = 8 * table.bits.shape[1]
        present = np.unpackbits(table.bits, bitorder="little").view(bool)
        cells = table.keys if table.listed else np.flatnonzero(present)
        before = np.searchsorted(cells, np.arange(len(table.bits)) * width)
        fine = (
            bool((np.diff(table.base) >= 0).all())
            and (not table.listed or bool((np.diff(cells) > 0).all()))
            and (len(cells) == 0 or (table.base[0] <= cells[0] and cells[-1] < table.base[-1]))
            and (table.listed or np.array_equal(table.counts[: len(before)], before))
            and all(
                bool((np.diff(x.states) > 0).all() and ((x.states >= 0) & (x.states < states)).all())
                for x in self._tables
            )
        )
        if not fine:
            return None
        count = np.diff(np.searchsorted(cells, table.base))
        return np.repeat(table.states, count), cells if table.by_cell else np.arange(len(cells))

    def below(self, floor: Ints) -> bool:
        """Return whether all that was spent up to the floor of a state, (S, M), has the same
        number.

        Floors are counted as in keys. What was spent below the box of a state counts as its edge.
        """
        first = self._tables[0]
        edge = first.lo[:, : len(first.dims)] - self._packed.low[first.dims]
        here = floor[first.states][:, first.dims]
        return bool(((here <= edge) | (here <= 0)).all())

    def read(self, keys: Ints, pairs: Ints) -> tuple[Ints, Ints, Floats] | None:
        """Return pointers (P+1,), rows (Z,), probabilities (Z,); None where any answer is wrong."""
        from acegames.verifier.key_kernels import read_entries

        if pairs.min(initial=0) < 0:
            return None
        span = np.int64(self._packed.span)
        try:
            ptr, row, prob = self._policy.internals.answers(self._t, keys // span, pairs)
            fine = (
                all(_is(x, kind, 1) for x, kind in ((ptr, np.int64), (row, np.int64), (prob, np.float64)))
                and (len(ptr), len(row)) == (len(keys) + 1, len(prob))
                and (int(ptr[0]), int(ptr[-1])) == (0, len(prob))
                and bool((ptr[1:] > ptr[:-1]).all())
            )
        except Exception:
            return None
        chance = np.empty_like(prob)
        fine = fine and read_entries(keys, span, self._packed.row_ptr(self._t), ptr, row, prob, chance)
        return (ptr, row, chance) if fine else None


def _sound(table: PolicyBoxes, constraints: int) -> bool:
    """Return whether everything in a table has its type and shape."""
    boxes, counted = len(table.states), len(table.dims)
    box = (boxes, max(counted, 1))  # where no constraint is counted, a box has one cell
    shapes = [(boxes,), box, box, (boxes + 1,), *[(boxes, constraints)] * 2, (counted,)]
    return (
        all(_is(array, np.int64, len(shape)) for array, shape in zip(table, shapes, strict=False))
        and [array.shape for array in table[:7]] == shapes
        and _is(table.keys, np.int64, 1)
        and _is(table.counts, np.int64, 1)
        and _is(table.bits, np.uint8, 2)
        and table.bits.shape[1] > 0
        and _is(table.ones, np.uint8, 1)
        and len(table.ones) == 256
        and bool(((table.dims >= 0) & (table.dims < constraints)).all())
        and isinstance(table.listed, bool)
        and isinstance(table.by_cell, bool)
    )


def _is(array: Any, dtype: type, ndim: int) -> bool:
    return bool(array.dtype == dtype and array.ndim == ndim and array.flags.c_contiguous)


# -- pairs that are judged as one -----------------------------------------------------------------
# Pairs that are judged as one: no budget can bind any more, and the policy answers them alike.
#
# floor_H(s) = no end
# floor_t(s) = min of what the policy declares and, over rows and outcomes (c', s'),
# of min(B_t, floor_{t+1}(s')) - c'
#
# Whoever has spent no more than that of a constraint can never break its budget, whatever is played
# (or, of a reservoir, only after it was full, when nothing of the time before counts any more), and
# the policy says that it answers there as at the floor itself. So such pairs have the same
# numbers, and one of them is judged for all. The bounds are the verifier's own. What the policy
# says
# is not believed: its answers at all of them are read and compared, and if any differs every pair
# is
# judged.


def floors(packed: PairKeys, declared: list[Ints] | None) -> Ints | None:
    """Return the floors (H, S, M), counted as in keys; None where none are declared."""
    if declared is None or packed.unrolled is not None or not len(packed.low):
        return None
    ceilings = Ceilings(packed.game, packed.units, over_all=True, cut=declared)
    floor: Ints = np.minimum(ceilings.at[:-1] - packed.low, packed.size - 1)
    return floor


InBulk = Callable[[int, Ints, Ints], tuple[Ints, Ints, Floats] | None]
"""`Reader.in_bulk`."""


class Contradicted(Exception):
    """The policy does not answer alike where it says so."""


class EquivalentPairs:
    """Finds the pairs of each time that are judged, and which of them stands for each pair."""

    def __init__(
        self, keys: Sequence[Ints] | dict[int, Ints], packed: PairKeys, in_bulk: InBulk, floors: Ints | None
    ) -> None:
        self._keys, self._packed, self._in_bulk, self._floors = keys, packed, in_bulk, floors

    def classes(self, t: int, stored: Ints | None, threads: BlockThreads) -> tuple[Ints, Ints]:
        """Return the pairs to judge (C,), in order, and the number of each pair's own (P,).

        `stored` (P,) are the pairs' numbers in the policy's tables, where it shows them.

        Raises:
            Contradicted: the policy has other answers at pairs that it declares alike.
        """
        from acegames.verifier import pair_kernels

        keys, span = self._keys[t], self._packed.span
        if self._floors is None:
            return np.arange(len(keys)), np.arange(len(keys))
        floor = self._floors[t]
        owner, table = np.empty(len(keys), dtype=np.int64), self._packed.table(len(keys))

        def work(part: slice) -> tuple[Ints, bool]:
            first, mine = np.empty(part.stop - part.start, dtype=np.int64), owner[part]
            first = first[: pair_kernels.classify(keys[part], span, self._packed.size, floor, table, first, mine)]
            numbered = stored is not None and pair_kernels.same_numbers(stored[part], first, mine)
            return first, numbered

        parts = [slice(0, len(keys))] if table.shift > 0 else self._parts(keys, threads)
        classified = threads.each(work, parts)
        number = 0
        for part, (first, _) in zip(parts, classified, strict=True):
            first += part.start
            owner[part] += number
            number += len(first)
        first = np.concatenate([first for first, _ in classified])
        if all(numbered for _, numbered in classified):
            return first, owner
        others = np.flatnonzero(first[owner] != np.arange(len(keys)))
        if not self._same_answers(t, keys[others], keys[first[owner[others]]], threads):
            raise Contradicted
        return first, owner

    def _parts(self, keys: Ints, threads: BlockThreads) -> list[slice]:
        """Cut pairs, which are in order, between states: the classes of one are not of another."""
        shares = threads.shares(len(keys))
        if len(shares) == 1:
            return shares
        state = np.array([keys[share.start] // self._packed.span for share in shares])
        cuts = np.unique(np.searchsorted(keys, state * self._packed.span)).tolist()
        return [slice(*ends) for ends in pairwise([*cuts, len(keys)])]

    def _same_answers(self, t: int, keys: Ints, instead: Ints, threads: BlockThreads) -> bool:
        """Return whether the policy answers at each of these pairs as at the one judged instead."""

        def work(block: slice) -> bool:
            asked = np.concatenate([keys[block], instead[block]])
            entries = self._in_bulk(t, *self._packed.unpack(t, asked))
            if entries is None:
                return False
            ptr, row, prob = entries
            sizes, end = np.diff(ptr).reshape(2, -1), ptr[len(asked) // 2]
            return all(map(np.array_equal, (sizes[0], row[:end], prob[:end]), (sizes[1], row[end:], prob[end:])))

        return all(threads.over(len(keys), work))
