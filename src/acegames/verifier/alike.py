"""Pairs that are judged as one: no budget can bind any more, and the policy answers them alike.

    floor_H(s) = no end
    floor_t(s) = min of what the policy declares and, over rows and outcomes (c', s'),
                 of min(B_t, floor_{t+1}(s')) - c'

Whoever has spent no more than that of a constraint can never break its budget, whatever is played,
and the policy says that it answers there as at the floor itself. So such pairs have the same
numbers, and one of them is judged for all. The bounds are the verifier's own. What the policy says
is not believed: it must name the same stored answer for every one of them (`policy.pairs`) and, at
some, be seen to answer so; or every pair is judged.
"""

from __future__ import annotations

import numpy as np

from acegames.verifier.arrays import Ints
from acegames.verifier.ceilings import Ceilings
from acegames.verifier.feasible import Subgames
from acegames.verifier.reading import Reader
from acegames.verifier.threads import Threads

_COMPARED = 64
"""Pairs, about, that are asked to see whether they are answered as the one that is judged."""


class Contradicted(Exception):
    """The policy does not answer alike where it says so."""


class Alike:
    """Finds the pairs of each time that are judged, and which of them stands for each pair."""

    def __init__(self, subgames: Subgames, reader: Reader, threads: Threads, declared: list[Ints] | None) -> None:
        self._keys, self._packed, self._reader, self._threads = subgames.keys, subgames.packed, reader, threads
        self._floors = None
        if declared is not None and subgames.packed.unrolled is None and len(subgames.packed.low):
            floors = Ceilings(subgames.packed.game, subgames.packed.units, over_rows=np.minimum, cut=declared)
            self._floors = floors.at

    def classes(self, t: int) -> tuple[Ints, Ints]:
        """Return the pairs to judge (C,), in order, and the number of each pair's own (P,).

        Raises:
            Contradicted: the policy names other answers for pairs that it declares alike.
        """
        from acegames.verifier import kernels

        keys, packed = self._keys[t], self._packed
        if self._floors is None:
            return np.arange(len(keys)), np.arange(len(keys))
        first, owner = np.empty(len(keys), dtype=np.int64), np.empty(len(keys), dtype=np.int64)
        floor = np.minimum(self._floors[t], packed.low + packed.size - 1) - packed.low
        count = kernels.classify(keys, packed.span, packed.size, floor, packed.table(len(keys)), first, owner)
        first = first[:count]
        if count < len(keys) and not self._named_alike(t, keys, first, owner):
            raise Contradicted
        return first, owner

    def _named_alike(self, t: int, keys: Ints, first: Ints, owner: Ints) -> bool:
        """Whether the policy names the same stored answer for all pairs of a class."""
        named = np.empty(len(keys), dtype=np.int64)

        def work(block: slice) -> bool:
            found = self._reader.named(t, *self._packed.unpack(t, keys[block]))
            if found is None:
                return False
            named[block] = found
            return True

        if not all(self._threads.over(len(keys), work)) or not np.array_equal(named, named[first][owner]):
            return False
        others = np.flatnonzero(first[owner] != np.arange(len(keys)))
        some = np.random.default_rng([t, len(others)]).choice(others, size=max(1, _COMPARED // len(self._keys)))
        for p in some.tolist():
            one, two = (self._packed.pair(t, keys, int(q)) for q in (p, first[owner[p]]))
            if self._reader.ask(t, *one)[:2] != self._reader.ask(t, *two)[:2]:
                return False
        return True
