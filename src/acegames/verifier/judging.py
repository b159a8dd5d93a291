"""A block of pairs is judged, as a task: what `deviations` does for a time, of a part of it.

It takes what was found of the blocks of the next time that it leads to, and returns the same of its
own; the largest gains and the first faults come back as numbers. Pairs that are alike are judged as
one within a block. Pairs of other blocks need not be compared for that: it is done only where the
policy's tables give all that are alike the same number, whose answer is one.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import Any, NamedTuple

import numpy as np

from acegames.verifier.alike import Alike, Contradicted
from acegames.verifier.arrays import Floats, Ints, Small
from acegames.verifier.deviations import FAULTS_SHOWN, Faults, Judge, Ready, at_start, most_spent
from acegames.verifier.near import Box, joined
from acegames.verifier.passes import Place
from acegames.verifier.records import Known
from acegames.verifier.setting import Setting
from acegames.verifier.threads import ALONE, Threads
from acegames.verifier.tolerance import first_extremes
from acegames.verifier.units import Spent

Pair = tuple[int, Spent]
"""A state, and what was spent."""

Part = tuple[Small, Floats, Ints, Any]
"""What is known of a block: which of those judged stands for each pair, then as in `Known`."""


class Ask(NamedTuple):
    """A block to be judged."""

    place: Place
    box: Box
    base: Floats  # (N,) taken out of the rewards of this time
    alike: bool  # pairs that are alike are judged as one
    pairs: int  # of this time, all blocks together


class Judged(NamedTuple):
    """What comes back. Ranks are in the order of pairs: keys, or at the start numbers."""

    place: Place
    unseen: bool = False  # the policy's file is not seen here; nothing else is known
    contradicted: bool = False  # pairs are not alike that should be; nothing else is known
    n_faults: int = 0
    faults: tuple[tuple[int, str], ...] = ()  # the first ones: ranks and sentences
    ranks: Ints = np.zeros(0, dtype=np.int64)  # of pairs with the largest gains, in order
    pairs: tuple[Pair, ...] = ()  # these
    values: Floats = np.zeros((0, 0))  # and what is known of them
    off: Floats = np.zeros(0)  # (N,) the most that rounding can have changed
    correlation: Any = None  # as in `Reader`
    disagreement: Any = None
    start: Floats | None = None  # (N,) expected values at the start, without what is taken out
    worst: Spent | None = None  # the most that is spent from the start; None where a fault is run into


def judge(setting: Setting, what: Ask, keys: Ints, *following: Any) -> tuple[Part, Judged]:
    """Judge the pairs of a block, given keys and what is known of each block that it leads to."""
    keys, t = np.array(keys), what.place.t
    if any(not len(block[0]) for block in following[1::2]) or not setting.seen:
        return _nothing(), Judged(what.place, unseen=not setting.seen)
    if what.alike and not setting.alike_by_number(t):
        return _nothing(), Judged(what.place, contradicted=True)
    reader = setting.reader
    reader.correlation = reader.disagreement = None
    here = _Block(setting, what, keys, joined(following[::2]))
    known = _gathered(here, following[1::2])
    try:
        found = here.layer(t, known)
    except Contradicted:
        return _nothing(), Judged(what.place, contradicted=True)
    numbers = here.numbers._replace(correlation=reader.correlation, disagreement=reader.disagreement)
    if t == 0:
        numbers = _at_start(setting, numbers, found)
    return (here.owner.astype(np.int32), *found), numbers


class _ByNumber(Alike):
    """Finds pairs that are alike by their numbers in the policy's tables, and in no other way."""

    def _answered_alike(self, t: int, keys: Ints, instead: Ints, threads: Threads) -> bool:
        return False


class _Block(Judge):
    """Judges one block, and takes note of what is to be told."""

    def __init__(self, setting: Setting, what: Ask, keys: Ints, following: Ints) -> None:
        t = what.place.t
        near, packed = setting.near(t, what.box), setting.packed
        at = {t: keys, t + 1: following}
        base = np.zeros((t + 1, len(what.base)))
        base[t] = what.base
        numbers = {setting.game.layer_at[t]: setting.numbers(t)}
        alike = _ByNumber(at, packed, setting.reader, setting.floors if what.alike else None)
        super().__init__(near, at, setting.reader, numbers, base, setting.concept, ALONE, alike)
        self.numbers, self.owner, self._what = Judged(what.place), keys[:0], what

    def reads_tables(self, pairs: int) -> bool:
        """Return where pairs are judged as one, all have numbers in the tables."""
        return self._what.alike or super().reads_tables(pairs)

    def pairs_at(self, t: int) -> int:
        """Return how many pairs a time has, those of other blocks too."""
        return self._what.pairs

    def _ready_at(self, t: int) -> Ready:
        return self._prepared(t, ALONE)

    def layer(self, t: int, following: Known) -> Known:
        """As of a whole time."""
        found = super().layer(t, following)
        self.owner = self.after
        return found

    def _rank(self, t: int, p: int) -> int:
        return int(self.keys[t][p]) if t else p

    def _note_faults(self, t: int, chosen: Ints, several: list[Faults]) -> None:
        super()._note_faults(t, chosen, several)
        first = nsmallest(FAULTS_SHOWN, (p for faults in several for p in faults))
        ranks = [self._rank(t, int(chosen[p])) for p in first]
        faults = tuple(zip(ranks, self.faults, strict=True))
        self.numbers = self.numbers._replace(n_faults=self.n_faults, faults=faults)

    def _note_gains(self, t: int, chosen: Ints, found: Known) -> None:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            first, off = first_extremes(found.values, self.base.shape[1], start=t == 0)
        at = [int(p) for p in chosen[first]]
        self.numbers = self.numbers._replace(
            ranks=np.array([self._rank(t, p) for p in at], dtype=np.int64),
            pairs=tuple(self.packed.pair(t, self.keys[t], p) for p in at),
            values=found.values[first],
            off=off,
        )


def _gathered(here: _Block, parts: tuple[Part, ...]) -> Known:
    """Put together what is known of the next time, in arrays of its own."""
    if not parts:
        return here.nothing(1)
    count = np.cumsum([0, *(len(part[3]) for part in parts)])
    here.after = np.concatenate([part[0] + first for part, first in zip(parts, count, strict=False)])
    return Known(*(np.concatenate([part[k] for part in parts]) for k in (1, 2, 3)))


def _at_start(setting: Setting, numbers: Judged, found: Known) -> Judged:
    packed = setting.packed
    with np.errstate(over="ignore", invalid="ignore"):
        start = at_start(packed.game, found.values[:, : len(packed.game.players)])
    worst = None if found.fault.any() else most_spent(packed.units, found.ahead)
    return numbers._replace(start=start, worst=worst)


def _nothing() -> Part:
    known = Known(np.zeros((0, 0)), np.zeros((0, 0), dtype=np.int64), np.zeros(0, dtype=np.uint8))
    return np.zeros(0, dtype=np.int32), *known
