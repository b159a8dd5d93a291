"""The keys of the next time, seen from a block of pairs: only those that the block leads to.

A block lies in a *box*: some states, one after another, and a range of keys within each of them. An
outcome adds a fixed step to a key within its state, and steps are short where costs are small
against budgets. So a block leads to a box that is not much wider than its own, and tables by key
need no more room than that. `Near` numbers the keys of that box from 0 on, and is otherwise what
`Packed` is: the passes run on it unchanged. What is found does not depend on the numbers of keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import numpy as np

from acegames.verifier.arrays import Ints
from acegames.verifier.packed import Packed
from acegames.verifier.records import Lanes, Time

_WIDER = 4
"""Keys of the next time per key of a block's own box, at most, where the passes go line by line."""

_MARKED = 16
"""Keys of a box per key that is put together, at most, where each has a mark."""


class Box(NamedTuple):
    """States and keys within a state, each from the first to before the last."""

    first: int
    end: int
    low: int
    high: int

    @staticmethod
    def around(keys: Ints, span: int) -> Box:
        """Return the box of these keys, of which there are some."""
        from acegames.verifier.within import extent

        found = np.empty(4, dtype=np.int64)
        extent(keys, span, found)
        return Box(*found.tolist())

    @property
    def keys(self) -> int:
        """How many keys lie in it."""
        return (self.end - self.first) * (self.high - self.low)

    def meets(self, other: Box) -> bool:
        """Return whether some key lies in both."""
        states = self.first < other.end and other.first < self.end
        return states and self.low < other.high and other.low < self.high

    def together(self, pieces: Sequence[Ints], span: int) -> Ints:
        """Return the keys of all pieces that lie in the box, each once, in order.

        In each piece they are so.
        """
        from acegames.verifier.within import choose, mark, unbase

        total, box = sum(map(len, pieces)), np.array(self)
        if len(pieces) != 1 and self.keys <= _MARKED * total:
            marks = np.zeros(self.keys, dtype=np.uint8)
            for piece in pieces:
                mark(np.array(piece), span, box, marks)
            found, states = np.flatnonzero(marks.view(bool)), np.arange(self.first, self.end)
            keys = np.empty_like(found)
            unbase(found, span, states, self.low, self.high - self.low, keys)
            return keys
        chosen = np.empty(total, dtype=np.int64)
        chosen = chosen[: choose(joined(pieces), span, box, chosen)].copy()
        return chosen if len(pieces) == 1 else np.unique(chosen)


class Leads(NamedTuple):
    """Where the outcomes of some states lead."""

    states: Ints  # in order
    least: int  # and by what they change the key within a state
    most: int

    def box(self, box: Box, span: int) -> tuple[int, int]:
        """Return the range of keys within a state to which those of a box lead."""
        return max(box.low + self.least, 0), min(box.high + self.most, span)


class Ways:
    """Where blocks of a game lead, found once for the same states and the same tables."""

    def __init__(self, packed: Packed) -> None:
        self.packed = packed
        self._known: dict[tuple[int, int, int], Leads] = {}

    def leads(self, t: int, first: int, end: int) -> Leads:
        """Return where these states lead at time t."""
        asked = self.packed.game.layer_at[t], first, end
        if asked not in self._known:
            outs, following, step = self.outcomes(*asked)
            states = np.unique(following).astype(np.int64)
            some = outs.stop > outs.start
            self._known[asked] = Leads(states, int(step.min()) if some else 0, int(step.max()) if some else 0)
        return self._known[asked]

    def outcomes(self, layer: int, first: int, end: int) -> tuple[slice, Ints, Ints]:
        """Return the outcomes of these states in a layer, where they lead, and their steps."""
        row_ptr, out_ptr, next_state = self.packed.units.steps[layer]
        outs = slice(int(out_ptr[row_ptr[first]]), int(out_ptr[row_ptr[end]]))
        following = next_state[outs].astype(np.int64)
        return outs, following, self.packed.jumps(layer)[outs] - following * self.packed.span

    def meet(self, t: int, box: Box, other: Box) -> bool:
        """Return whether pairs in a box may lead to pairs in another one of the next time."""
        leads = self.leads(t, box.first, box.end)
        low, high = leads.box(box, self.packed.span)
        if not (low < other.high and other.low < high + self.packed.mirrored_by):
            return False
        at, end = np.searchsorted(leads.states, [other.first, other.end]).tolist()
        return bool(at < end)


@dataclass(frozen=True, eq=False, kw_only=True)
class Near(Packed):
    """How pairs become keys; those of the next time are numbered within the box led to."""

    whole: Packed
    own: int  # keys of the box itself
    jump: Ints  # (K,) of the outcomes of the box's states
    states: Ints  # those that it leads to
    index: Ints  # (S,) the number of each of them, else -1
    low_within: int  # the first key within each of them
    width: int  # how many there are

    @staticmethod
    def seen_from(ways: Ways, t: int, box: Box | None) -> Near:
        """Return what pairs of time t see from a box; nothing, if it is none or nothing follows."""
        packed, layer = ways.packed, ways.packed.game.layer_at[t]
        jump, index = np.zeros_like(packed.jumps(layer)), np.full(len(packed.game.states), -1, dtype=np.int64)
        if box is None:
            return Near._make(packed, 0, jump, index[:0], index, 0, 0)
        if t == packed.game.horizon - 1:
            return Near._make(packed, box.keys, jump, index[:0], index, 0, 0)
        leads = ways.leads(t, box.first, box.end)
        low, high = leads.box(box, packed.span)
        index[leads.states], width = np.arange(len(leads.states)), max(high - low, 0)
        outs, following, step = ways.outcomes(layer, box.first, box.end)
        jump[outs] = index[following] * width + step - low
        return Near._make(packed, box.keys, jump, leads.states, index, low, width)

    @staticmethod
    def _make(whole: Packed, own: int, jump: Ints, states: Ints, index: Ints, low_within: int, width: int) -> Near:
        same = {field.name: getattr(whole, field.name) for field in fields(Packed)}
        return Near(
            **same, whole=whole, own=own, jump=jump, states=states, index=index, low_within=low_within, width=width
        )

    @cached_property
    def keys(self) -> int:
        """Number of keys of the box led to."""
        return len(self.states) * self.width

    @cached_property
    def rows(self) -> int:
        """The most rows of a state."""
        return self.whole.rows

    def by_line(self, pairs: int) -> bool:
        """Return whether that many pairs are dense enough, in their own box and where they lead to."""
        return self.dense(pairs, self.own) and self.dense(_WIDER * pairs, self.keys)

    def time(self, t: int) -> Time:
        """Return what can happen at time t."""
        return self.whole.time(t)._replace(jump=self.jump)

    def row_ptr(self, t: int) -> Ints:
        """Return where the rows of each state begin at time t, (S+1,)."""
        return self.whole.row_ptr(t)

    def targets(self) -> Ints:
        """Return room for where the outcomes of one row lead."""
        return self.whole.targets()

    def lanes(self) -> Lanes:
        """Return room for one window of `lines`, that of this thread."""
        return self.whole.lanes()

    def settled(self, keys: Ints) -> Ints:
        """Return the keys, numbered as usual, that these stand for, in order."""
        from acegames.verifier.within import unbase

        found = np.empty_like(keys)
        unbase(keys, self.span, self.states, self.low_within, self.width, found)
        return self.whole.settled(found)

    def mirrored(self, keys: Ints) -> tuple[Ints, Ints]:
        """Return the keys in the box led to that stand for one of these, and the number of that."""
        every, which = self.whole.mirrored(keys)
        from acegames.verifier.within import rebase

        found, inside = np.empty_like(every), np.empty_like(every)
        count = rebase(every, self.span, self.index, self.low_within, self.width, found, inside)
        found, inside = found[:count], inside[:count]
        return found, inside if which is None else which[inside]


def joined(blocks: Sequence[Ints]) -> Ints:
    """Return the keys of several blocks in an array of their own."""
    return np.concatenate([np.zeros(0, dtype=np.int64), *blocks])
