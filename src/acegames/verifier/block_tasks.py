"""The passes over blocks of pairs, as tasks: pure functions of a context and of blocks.

A block is the keys of some pairs of one time, in order (but for the first time, which is one block
in the order of the game), that lie in one box (`block_context`). A task takes the blocks that it
leads to, or the pieces that were found for it, and returns what it made, then numbers.

    go_forward     puts the pieces of a block together and finds the pairs that they lead to while
                   budgets are kept; and which rows keep them, and whether some pair has none
    keep_alive     drops the pairs without a safe row
    keep_reached   drops the pairs that safe rows do not lead to

These are the passes of `subgames`. Where no pair is without a row that keeps the budgets, no pair
of any time is dropped, and the first of them is all that is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from heapq import nsmallest
from typing import Any, NamedTuple

import numpy as np

from acegames.verifier.basics import ALONE, LIMITS, BlockThreads, Bytes, Floats, Ints, LayerValues, Small
from acegames.verifier.block_context import Box, SuccessorMap, VerifyContext, joined
from acegames.verifier.judgement import FAULTS_SHOWN, Faults, Judge, PreparedTime, at_start, most_spent
from acegames.verifier.pair_keys import Spent
from acegames.verifier.policy_tables import Contradicted, EquivalentPairs
from acegames.verifier.subgames import by_safe_rows, successors, with_safe_row
from acegames.verifier.tolerance import first_extremes


class BlockNumber(NamedTuple):
    """A block: the time, and its number there."""

    t: int
    number: int


class ForwardRequest(NamedTuple):
    """A block to be made of pieces: those of its keys that lie in a box; None for the start."""

    place: BlockNumber
    box: Box | None


class ForwardResult(NamedTuple):
    """What is known of a block that was gone forward from."""

    place: BlockNumber
    pairs: int
    box: Box | None  # None where there are no pairs
    stuck: int  # pairs without a row that keeps the budgets
    rows: Bytes  # the rows that keep the budgets at some pair, a bit for each
    led: int  # number of pairs that it leads to
    led_box: Box | None
    sample: Ints  # some of these


class KeepRequest(NamedTuple):
    """A block of which pairs are to be dropped."""

    place: BlockNumber
    box: Box
    sure: bool
    before: int = 0  # blocks of what was led to, given first


class Remaining(NamedTuple):
    """What is left of a block."""

    place: BlockNumber
    pairs: int
    dropped: int
    box: Box | None
    rows: Bytes  # the rows that are safe at some pair, a bit for each


def go_forward(context: VerifyContext, what: ForwardRequest, *pieces: Ints) -> tuple[Ints, Ints, ForwardResult]:
    """Make a block; return its keys, and those that it leads to."""
    packed, t = context.packed, what.place.t
    keys = packed.start if what.box is None else what.box.together(pieces, packed.span)
    box, time = context.box(keys), packed.time(t)._replace(last=True)
    ending = context.near(packed.game.horizon - 1, box)  # nothing that follows is looked at
    stuck = np.count_nonzero(~with_safe_row(ending, time, keys[:0], keys))
    rows, _ = by_safe_rows(ending, time, keys[:0], keys)
    led = keys[:0] if t == packed.game.horizon - 1 else successors(context.near(t, box), t, keys)
    sample = led[np.linspace(0, len(led) - 1, min(len(led), LIMITS.sampled)).astype(np.int64)]
    bits = _bits(rows, len(time.worst))
    return keys, led, ForwardResult(what.place, len(keys), box, int(stuck), bits, len(led), context.box(led), sample)


def keep_alive(context: VerifyContext, what: KeepRequest, keys: Ints, *following: Ints) -> tuple[Ints, Remaining]:
    """Drop the pairs without a safe row, given the blocks of those alive at the next time.

    Or, if it is said to be sure, no pair is dropped there.
    """
    keys, t = np.array(keys), what.place.t
    near = context.near(context.game.horizon - 1 if what.sure else t, what.box)
    time = context.packed.time(t)._replace(last=True) if what.sure else near.time(t)
    alive = keys[with_safe_row(near, time, joined(following), keys)]
    left = Remaining(what.place, len(alive), len(keys) - len(alive), context.box(alive), np.zeros(0, dtype=np.uint8))
    return alive, left


def keep_reached(context: VerifyContext, what: KeepRequest, keys: Ints, *others: Ints) -> tuple[Ints, Ints, Remaining]:
    """Drop the pairs that safe rows do not lead to; return the rest, and where theirs lead.

    The first of the other blocks are what blocks before lead to; if it is sure, all pairs are led
    to. The rest are the blocks of those alive at the next time.
    """
    span, t = context.packed.span, what.place.t
    remaining = np.array(keys) if what.sure else what.box.together(others[: what.before], span)
    near = context.near(t, context.box(remaining))
    time = near.time(t)
    rows, led = by_safe_rows(near, time, joined(others[what.before :]), remaining)
    led = np.sort(led, kind="stable")  # of several runs that are in order
    left = Remaining(
        what.place, len(remaining), len(keys) - len(remaining), context.box(remaining), _bits(rows, len(time.worst))
    )
    return remaining, led, left


def _bits(rows: Ints, length: int) -> Bytes:
    marks = np.zeros(length, dtype=np.uint8)
    marks[rows] = 1
    return np.packbits(marks)


# -- a block is judged ----------------------------------------------------------------------------
# A block of pairs is judged, as a task: what `judgement` does for a time, of a part of it.
#
# It takes what was found of the blocks of the next time that it leads to, and returns the same of
# its own; the largest gains and the first faults come back as numbers. Pairs that are alike are
# judged as one within a block. Pairs of other blocks need not be compared for that: it is done only
# where the policy's tables give all that are alike the same number, whose answer is one.


Pair = tuple[int, Spent]
"""A state, and what was spent."""

Part = tuple[Small, Floats, Ints, Any]
"""What is known of a block: which of those judged stands for each pair, then `LayerValues`."""


class JudgeRequest(NamedTuple):
    """A block to be judged."""

    place: BlockNumber
    box: Box
    base: Floats  # (N,) taken out of the rewards of this time
    merged: bool  # pairs that are equal are judged as one
    pairs: int  # of this time, all blocks together


class JudgeResult(NamedTuple):
    """What comes back. Ranks are in the order of pairs: keys, or at the start numbers."""

    place: BlockNumber
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


def judge(context: VerifyContext, what: JudgeRequest, keys: Ints, *following: Any) -> tuple[Part, JudgeResult]:
    """Judge the pairs of a block, given keys and what is known of each block that it leads to."""
    keys, t = np.array(keys), what.place.t
    if any(not len(block[0]) for block in following[1::2]) or not context.seen:
        return _nothing(), JudgeResult(what.place, unseen=not context.seen)
    if what.merged and not context.equal_by_number(t):
        return _nothing(), JudgeResult(what.place, contradicted=True)
    reader = context.reader
    reader.correlation = reader.disagreement = None
    here = _BlockJudge(context, what, keys, joined(following[::2]))
    known = _gathered(here, following[1::2])
    try:
        values = here.layer(t, known)
    except Contradicted:
        return _nothing(), JudgeResult(what.place, contradicted=True)
    numbers = here.numbers._replace(correlation=reader.correlation, disagreement=reader.disagreement)
    if t == 0:
        numbers = _at_start(context, numbers, values)
    return (here.owner.astype(np.int32), *values), numbers


class _EqualByNumber(EquivalentPairs):
    """Finds pairs that are alike by their numbers in the policy's tables, and in no other way."""

    def _same_answers(self, t: int, keys: Ints, instead: Ints, threads: BlockThreads) -> bool:
        return False


class _BlockJudge(Judge):
    """Judges one block, and takes note of what is to be told."""

    def __init__(self, context: VerifyContext, what: JudgeRequest, keys: Ints, following: Ints) -> None:
        t = what.place.t
        near, packed = context.near(t, what.box), context.packed
        at = {t: keys, t + 1: following}
        base = np.zeros((t + 1, len(what.base)))
        base[t] = what.base
        numbers = {context.game.layer_at[t]: context.numbers(t)}
        equivalent = _EqualByNumber(at, packed, context.reader.in_bulk, context.floors if what.merged else None)
        super().__init__(near, at, context.reader, numbers, base, context.concept, ALONE, equivalent)
        self.numbers, self.owner, self._what = JudgeResult(what.place), keys[:0], what

    def reads_tables(self, pairs: int) -> bool:
        """Return where pairs are judged as one, all have numbers in the tables."""
        return self._what.merged or super().reads_tables(pairs)

    def pairs_at(self, t: int) -> int:
        """Return how many pairs a time has, those of other blocks too."""
        return self._what.pairs

    def _ready_at(self, t: int) -> PreparedTime:
        return self._prepared(t, ALONE)

    def layer(self, t: int, following: LayerValues) -> LayerValues:
        """Judge the block; keep which pair stands for each."""
        values = super().layer(t, following)
        self.owner = self.after
        return values

    def _rank(self, t: int, p: int) -> int:
        return int(self.keys[t][p]) if t else p

    def _note_faults(self, t: int, chosen: Ints, several: list[Faults]) -> None:
        super()._note_faults(t, chosen, several)
        first = nsmallest(FAULTS_SHOWN, (p for faults in several for p in faults))
        ranks = [self._rank(t, int(chosen[p])) for p in first]
        faults = tuple(zip(ranks, self.faults, strict=True))
        self.numbers = self.numbers._replace(n_faults=self.n_faults, faults=faults)

    def _note_gains(self, t: int, chosen: Ints, result: LayerValues) -> None:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            first, off = first_extremes(result.values, self.base.shape[1], start=t == 0)
        at = [int(p) for p in chosen[first]]
        self.numbers = self.numbers._replace(
            ranks=np.array([self._rank(t, p) for p in at], dtype=np.int64),
            pairs=tuple(self.packed.pair(t, self.keys[t], p) for p in at),
            values=result.values[first],
            off=off,
        )


def _gathered(here: _BlockJudge, parts: tuple[Part, ...]) -> LayerValues:
    """Put together what is known of the next time, in arrays of its own."""
    if not parts:
        return here.nothing(1)
    count = np.cumsum([0, *(len(part[3]) for part in parts)])
    here.after = np.concatenate([part[0] + first for part, first in zip(parts, count, strict=False)])
    return LayerValues(*(np.concatenate([part[k] for part in parts]) for k in (1, 2, 3)))


def _at_start(context: VerifyContext, numbers: JudgeResult, result: LayerValues) -> JudgeResult:
    packed = context.packed
    with np.errstate(over="ignore", invalid="ignore"):
        start = at_start(packed.game, result.values[:, : len(packed.game.players)])
    worst = None if result.fault.any() else most_spent(packed.units, result.max_future_cost)
    return numbers._replace(start=start, worst=worst)


def _nothing() -> Part:
    known = LayerValues(np.zeros((0, 0)), np.zeros((0, 0), dtype=np.int64), np.zeros(0, dtype=np.uint8))
    return np.zeros(0, dtype=np.int32), *known


# -- times are cut into blocks --------------------------------------------------------------------
# How the pairs of a time are cut into blocks: boxes of about as many pairs, which lead to few.
#
# What is known of a time before it is cut are samples of what each block before leads to. Pairs are
# cut into groups of states, and each group into ranges of keys within a state. How many groups
# there
# are is decided by how many blocks of the next time a block would lead to: few groups where every
# state leads to all others and little is spent at once, many where spending is coarse and states
# are
# neighbours.


class Cutter:
    """Cuts the pairs of one time after another."""

    def __init__(self, ways: SuccessorMap, pairs: int | None = None) -> None:
        self._ways, self._span = ways, ways.packed.span
        self._states = len(ways.packed.game.states)
        self._pairs = LIMITS.task_pairs if pairs is None else pairs
        self._expected, self._scale = 0.0, 1.0  # pairs of the last time, and by what that was wrong

    def learn(self, pairs: int) -> None:
        """Note how many pairs the time that was cut last truly has."""
        if self._expected:
            self._scale = pairs / self._expected

    def cut(self, t: int, before: Sequence[ForwardResult]) -> list[Box]:
        """Return boxes that hold all pairs of a time, given the blocks of the time before."""
        before = [went for went in before if went.led]
        if not before:
            return []
        state, within = np.divmod(np.concatenate([went.sample for went in before]), self._span)
        weight = np.concatenate([np.full(len(went.sample), went.led / len(went.sample)) for went in before])
        weight /= _covered(within, [went.led_box for went in before if went.led_box is not None])
        self._expected = float(weight.sum())
        blocks = max(round(self._expected * self._scale / self._pairs), 1)
        groups = self._groups(t, blocks, int(within.max() - within.min()) + 1)
        ends = _quantiles(state, weight, groups, self._states)
        boxes = []
        for first, end in zip([0, *ends], [*ends, self._states], strict=True):
            mine = (state >= first) & (state < end)
            share = max(round(blocks * float(weight[mine].sum() / weight.sum())), 1)
            cuts = [x - x % self._even(share) for x in _quantiles(within[mine], weight[mine], share, self._span)]
            cuts = sorted({x for x in cuts if x > 0})
            boxes += [Box(first, end, *ends) for ends in zip([0, *cuts], [*cuts, self._span], strict=True)]
        return boxes

    def _even(self, parts: int) -> int:
        """Return the number whose multiples are cut at: between lines, if there are many."""
        line = int(self._ways.packed.size[-1]) if len(self._ways.packed.size) else 1
        return line if self._span // line >= 4 * parts else 1

    def _groups(self, t: int, blocks: int, width: int) -> int:
        """Return in how many groups of states so many blocks lead to the fewest others."""
        best, least = 1, np.inf
        groups = 1
        while groups <= min(blocks, self._states):
            ranges = -(-blocks // groups)
            if ranges <= width:
                leads, spread = self._led(self._ways.packed.game.layer_at[t], groups)
                needed = leads * min(spread * ranges / width + 2, ranges)
                if needed < least:
                    best, least = groups, needed
            groups *= 2
        return best

    def _led(self, layer: int, groups: int) -> tuple[float, int]:
        """Return to how many groups a group leads, on average, and how far steps differ."""
        if (layer, groups) not in self._known:
            ends = np.linspace(0, self._states, groups + 1).astype(np.int64)
            to, far = 0, 0
            for first, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
                _, following, step = self._ways.outcomes(layer, first, end)
                to += len(np.unique(np.searchsorted(ends, following, "right")))
                far = max(far, int(step.max() - step.min()) if len(step) else 0)
            self._known[layer, groups] = to / groups, far
        return self._known[layer, groups]

    @cached_property
    def _known(self) -> dict[tuple[int, int], tuple[float, int]]:
        return {}


def _covered(within: Ints, boxes: Sequence[Box]) -> Ints:
    """Return in how many boxes keys lie, whatever their states: as many may find a pair."""
    begin, end = np.sort([box.low for box in boxes]), np.sort([box.high for box in boxes])
    count: Ints = np.searchsorted(begin, within, "right") - np.searchsorted(end, within, "right")
    return np.maximum(count, 1)


def _quantiles(values: Ints, weight: Floats, parts: int, end: int) -> list[int]:
    """Return where to cut 0 .. end so that about as much lies in each part, ascending."""
    if parts <= 1 or not len(values):
        return []
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    at = np.searchsorted(total, total[-1] * np.arange(1, parts) / parts)
    cuts = set((values[order][at] + 1).tolist())
    return sorted(x for x in cuts if 0 < x < end)
