"""The keys of the next time, seen from a block of pairs: only those that the block leads to.

A block lies in a *box*: some states, one after another, and a range of keys within each of them. An
outcome adds a fixed step to a key within its state, and steps are short where costs are small
against budgets. So a block leads to a box that is not much wider than its own, and tables by key
need no more room than that. `BlockKeys` numbers the keys of that box from 0 on, and is otherwise
what `PairKeys` is: the passes run on it unchanged. What is found does not depend on the numbers of
keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from acegames.concepts import Concept
from acegames.model.arrays import frozen
from acegames.model.game import LAYER_FIELDS, MarkovGame
from acegames.model.layers import with_fields
from acegames.verifier.basics import LIMITS, Ints, Numbers, TimeRules, WindowScratch
from acegames.verifier.judgement import numbers_of
from acegames.verifier.pair_keys import ExactUnits, PairKeys
from acegames.verifier.policy_reader import Reader
from acegames.verifier.policy_tables import floors, internals


class Box(NamedTuple):
    """States and keys within a state, each from the first to before the last."""

    first: int
    end: int
    low: int
    high: int

    @staticmethod
    def around(keys: Ints, span: int) -> Box:
        """Return the box of these keys, of which there are some."""
        from acegames.verifier.key_kernels import extent

        box = np.empty(4, dtype=np.int64)
        extent(keys, span, box)
        return Box(*box.tolist())

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
        from acegames.verifier.key_kernels import choose, mark, unbase

        total, box = sum(map(len, pieces)), np.array(self)
        if len(pieces) != 1 and self.keys <= LIMITS.marked * total:
            marks = np.zeros(self.keys, dtype=np.uint8)
            for piece in pieces:
                mark(np.array(piece), span, box, marks)
            numbered, states = np.flatnonzero(marks.view(bool)), np.arange(self.first, self.end)
            keys = np.empty_like(numbered)
            unbase(numbered, span, states, self.low, self.high - self.low, keys)
            return keys
        chosen = np.empty(total, dtype=np.int64)
        chosen = chosen[: choose(joined(pieces), span, box, chosen)].copy()
        return chosen if len(pieces) == 1 else np.unique(chosen)


class SuccessorRange(NamedTuple):
    """Where the outcomes of some states lead."""

    states: Ints  # in order
    least: int  # and by what they change the key within a state
    most: int

    def box(self, box: Box, span: int) -> tuple[int, int]:
        """Return the range of keys within a state to which those of a box lead."""
        return max(box.low + self.least, 0), min(box.high + self.most, span)


class SuccessorMap:
    """Where blocks of a game lead, found once for the same states and the same tables."""

    def __init__(self, packed: PairKeys) -> None:
        self.packed = packed
        self._known: dict[tuple[int, int, int], SuccessorRange] = {}

    def leads(self, t: int, first: int, end: int) -> SuccessorRange:
        """Return where these states lead at time t."""
        asked = self.packed.game.layer_at[t], first, end
        if asked not in self._known:
            outs, following, step = self.outcomes(*asked)
            states = np.unique(following).astype(np.int64)
            some = outs.stop > outs.start
            self._known[asked] = SuccessorRange(states, int(step.min()) if some else 0, int(step.max()) if some else 0)
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
        if not (low < other.high and other.low < high + self.packed.alias_reach):
            return False
        at, end = np.searchsorted(leads.states, [other.first, other.end]).tolist()
        return bool(at < end)


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockKeys(PairKeys):
    """How pairs become keys; those of the next time are numbered within the box led to."""

    whole: PairKeys
    own: int  # keys of the box itself
    jump: Ints  # (K,) of the outcomes of the box's states
    states: Ints  # those that it leads to
    index: Ints  # (S,) the number of each of them, else -1
    low_within: int  # the first key within each of them
    width: int  # how many there are

    @staticmethod
    def seen_from(ways: SuccessorMap, t: int, box: Box | None) -> BlockKeys:
        """Return what pairs of time t see from a box; nothing, if it is none or nothing follows."""
        packed, layer = ways.packed, ways.packed.game.layer_at[t]
        jump, index = np.zeros_like(packed.jumps(layer)), np.full(len(packed.game.states), -1, dtype=np.int64)
        if box is None:
            return BlockKeys._make(packed, 0, jump, index[:0], index, 0, 0)
        if t == packed.game.horizon - 1:
            return BlockKeys._make(packed, box.keys, jump, index[:0], index, 0, 0)
        leads = ways.leads(t, box.first, box.end)
        low, high = leads.box(box, packed.span)
        index[leads.states], width = np.arange(len(leads.states)), max(high - low, 0)
        outs, following, step = ways.outcomes(layer, box.first, box.end)
        jump[outs] = index[following] * width + step - low
        return BlockKeys._make(packed, box.keys, jump, leads.states, index, low, width)

    @staticmethod
    def _make(
        whole: PairKeys, own: int, jump: Ints, states: Ints, index: Ints, low_within: int, width: int
    ) -> BlockKeys:
        same = {field.name: getattr(whole, field.name) for field in fields(PairKeys)}
        return BlockKeys(
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
        """Return whether that many pairs are dense, in their own box and where they lead to."""
        return self.dense(pairs, self.own) and self.dense(LIMITS.wider * pairs, self.keys)

    def time(self, t: int) -> TimeRules:
        """Return what can happen at time t."""
        return self.whole.time(t)._replace(jump=self.jump)

    def row_ptr(self, t: int) -> Ints:
        """Return where the rows of each state begin at time t, (S+1,)."""
        return self.whole.row_ptr(t)

    def targets(self) -> Ints:
        """Return room for where the outcomes of one row lead."""
        return self.whole.targets()

    def lanes(self) -> WindowScratch:
        """Return room for one window of `window_kernels`, that of this thread."""
        return self.whole.lanes()

    def canonical(self, keys: Ints) -> Ints:
        """Return the keys, numbered as usual, that these stand for, in order."""
        from acegames.verifier.key_kernels import unbase

        usual = np.empty_like(keys)
        unbase(keys, self.span, self.states, self.low_within, self.width, usual)
        return self.whole.canonical(usual)

    def with_aliases(self, keys: Ints) -> tuple[Ints, Ints]:
        """Return the keys in the box led to that stand for one of these, and the number of that."""
        every, which = self.whole.with_aliases(keys)
        from acegames.verifier.key_kernels import rebase

        numbered, inside = np.empty_like(every), np.empty_like(every)
        count = rebase(every, self.span, self.index, self.low_within, self.width, numbered, inside)
        numbered, inside = numbered[:count], inside[:count]
        return numbered, inside if which is None else which[inside]


def joined(blocks: Sequence[Ints]) -> Ints:
    """Return the keys of several blocks in an array of their own."""
    return np.concatenate([np.zeros(0, dtype=np.int64), *blocks])


# -- what tasks share -----------------------------------------------------------------------------
# What whoever judges blocks of pairs must know: the game as counted, the policy, the concept.
#
# This much is given out once. What follows from it is worked out once by each process that is given
# it, and kept there: keys, ceilings, tables, numbers.


@dataclass(frozen=True, eq=False)
class VerifyContext:
    """Given out to all that judge."""

    game: MarkovGame  # as counted
    policy: Any
    concept: Concept
    rounded: bool
    by_file: bool = False  # of the policy's layers only the name of their file is sent

    def __reduce__(self) -> tuple[Any, ...]:
        return received, (self.game, self.policy, self.concept, self.rounded, self.by_file)

    def with_names_of_files(self) -> VerifyContext:
        """Return the context to be sent: of a policy with a file, its name in place of layers."""
        named = getattr(internals(self.policy), "by_file", None)
        policy = named() if callable(named) else None
        return self if policy is None else replace(self, policy=policy, by_file=True)

    @cached_property
    def packed(self) -> PairKeys:
        """Pairs as keys."""
        return PairKeys.of(self.game, ExactUnits(self.game))

    @cached_property
    def ways(self) -> SuccessorMap:
        """Where blocks lead."""
        return SuccessorMap(self.packed)

    @cached_property
    def reader(self) -> Reader:
        """Asks the policy."""
        product = self.concept.product
        return Reader(self.game, self.policy, self.packed.units, rounded=self.rounded, product=product)

    @cached_property
    def floors(self) -> Ints | None:
        """Up to where pairs are alike, if the policy says so."""
        return floors(self.packed, self.reader.declared())

    @cached_property
    def _numbers(self) -> dict[int, Numbers]:
        return {}

    def numbers(self, t: int) -> Numbers:
        """Return the numbers of one time."""
        at, packed = self.game.layer_at[t], self.packed
        if at not in self._numbers:
            layer, cost = packed.game.layers[at], packed.costs[at]
            self._numbers[at] = numbers_of(packed.game, layer, cost, packed.units.stored, self.concept)
        return self._numbers[at]

    def near(self, t: int, box: Box | None) -> BlockKeys:
        """Return the next time, seen from pairs in a box."""
        return BlockKeys.seen_from(self.ways, t, box)

    def box(self, keys: Ints) -> Box | None:
        """Return the box of some keys; None where there are none."""
        return Box.around(keys, self.packed.span) if len(keys) else None

    @cached_property
    def seen(self) -> bool:
        """Whether this process sees the policy's file, if it must."""
        return not self.by_file or bool(self.policy.layers.source.unchanged)

    def equal_by_number(self, t: int) -> bool:
        """Return whether pairs that count as alike have the same number in the policy's tables.

        Then pairs may be judged as one wherever their blocks are: they have the same answer.
        """
        stored = None if self.floors is None else self.reader.stored(t, self.packed)
        return stored is not None and self.floors is not None and stored.below(self.floors[t])


def received(game: MarkovGame, policy: Any, concept: Concept, rounded: bool, by_file: bool) -> VerifyContext:
    """Return what came from another process; arrays are read-only again, as they were there."""
    arrays: list[dict[str, Any]] = [{name: frozen(getattr(x, name)) for name in LAYER_FIELDS} for x in game.layers]
    layers = tuple(replace(x, **own) for x, own in zip(game.layers, arrays, strict=True))
    return VerifyContext(with_fields(game, layers=layers), policy, concept, rounded, by_file)
