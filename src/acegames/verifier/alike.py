"""Pairs that are judged as one: no budget can bind any more, and the policy answers them alike.

    floor_H(s) = no end
    floor_t(s) = min of what the policy declares and, over rows and outcomes (c', s'),
                 of min(B_t, floor_{t+1}(s')) - c'

Whoever has spent no more than that of a constraint can never break its budget, whatever is played
(or, of a reservoir, only after it was full, when nothing of the time before counts any more), and
the policy says that it answers there as at the floor itself. So such pairs have the same
numbers, and one of them is judged for all. The bounds are the verifier's own. What the policy says
is not believed: its answers at all of them are read and compared, and if any differs every pair is
judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from acegames.verifier.arrays import Ints
from acegames.verifier.ceilings import Ceilings
from acegames.verifier.packed import Packed
from acegames.verifier.reading import Reader
from acegames.verifier.threads import Threads


def floors(packed: Packed, declared: list[Ints] | None) -> Ints | None:
    """Return the floors (H, S, M), counted as in keys; None where none are declared."""
    if declared is None or packed.unrolled is not None or not len(packed.low):
        return None
    ceilings = Ceilings(packed.game, packed.units, over_all=True, cut=declared)
    found: Ints = np.minimum(ceilings.at[:-1] - packed.low, packed.size - 1)
    return found


class Contradicted(Exception):
    """The policy does not answer alike where it says so."""


class Alike:
    """Finds the pairs of each time that are judged, and which of them stands for each pair."""

    def __init__(
        self, keys: Sequence[Ints] | dict[int, Ints], packed: Packed, reader: Reader, floors: Ints | None
    ) -> None:
        self._keys, self._packed, self._reader, self._floors = keys, packed, reader, floors

    def classes(self, t: int, stored: Ints | None, threads: Threads) -> tuple[Ints, Ints]:
        """Return the pairs to judge (C,), in order, and the number of each pair's own (P,).

        `stored` (P,) are the pairs' numbers in the policy's tables, where it shows them.

        Raises:
            Contradicted: the policy has other answers at pairs that it declares alike.
        """
        from acegames.verifier import kernels

        keys, span = self._keys[t], self._packed.span
        if self._floors is None:
            return np.arange(len(keys)), np.arange(len(keys))
        floor = self._floors[t]
        owner, table = np.empty(len(keys), dtype=np.int64), self._packed.table(len(keys))

        def work(part: slice) -> tuple[Ints, bool]:
            first, mine = np.empty(part.stop - part.start, dtype=np.int64), owner[part]
            first = first[: kernels.classify(keys[part], span, self._packed.size, floor, table, first, mine)]
            alike = stored is not None and kernels.numbered_alike(stored[part], first, mine)
            return first, alike

        parts = [slice(0, len(keys))] if table.shift > 0 else self._parts(keys, threads)
        found = threads.each(work, parts)
        number = 0
        for part, (first, _) in zip(parts, found, strict=True):
            first += part.start
            owner[part] += number
            number += len(first)
        first = np.concatenate([first for first, _ in found])
        if all(alike for _, alike in found):
            return first, owner
        others = np.flatnonzero(first[owner] != np.arange(len(keys)))
        if not self._answered_alike(t, keys[others], keys[first[owner[others]]], threads):
            raise Contradicted
        return first, owner

    def _parts(self, keys: Ints, threads: Threads) -> list[slice]:
        """Cut pairs, which are in order, between states: the classes of one are not of another."""
        shares = threads.shares(len(keys))
        if len(shares) == 1:
            return shares
        state = np.array([keys[share.start] // self._packed.span for share in shares])
        cuts = np.unique(np.searchsorted(keys, state * self._packed.span)).tolist()
        return [slice(*ends) for ends in pairwise([*cuts, len(keys)])]

    def _answered_alike(self, t: int, keys: Ints, instead: Ints, threads: Threads) -> bool:
        """Return whether the policy answers at each of these pairs as at the one judged instead."""

        def work(block: slice) -> bool:
            asked = np.concatenate([keys[block], instead[block]])
            found = self._reader.in_bulk(t, *self._packed.unpack(t, asked))
            if found is None:
                return False
            ptr, row, prob = found
            sizes, end = np.diff(ptr).reshape(2, -1), ptr[len(asked) // 2]
            return all(map(np.array_equal, (sizes[0], row[:end], prob[:end]), (sizes[1], row[end:], prob[end:])))

        return all(threads.over(len(keys), work))
