"""What the threads of a GPU do when a policy is judged there (`on_card`), in phases.

Phases are plain functions of the thread and its block, as in `kernels/phases.py`. What happens at a
pair is the code of `kernels` and `lookup`. The pairs of a time are *words*: a bit for every key,
WORD of them in a number; keys that are pairs are then listed in order. `own` belongs to a thread.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.system.compiled import inlined, inner
from acegames.verifier.arrays import Bytes, Floats, Ints, Small
from acegames.verifier.kernels import EMPTY, _keeps, _unpack, extremes_of, is_drawn, judge_pair
from acegames.verifier.lookup import _number
from acegames.verifier.records import Boxes, Int, Known, Numbers, Played, Scratch, Table, Time

WORD = 64
STRIP = 256  # pairs among which one thread finds the largest gains

Words = NDArray[np.uint64]


class Passing(NamedTuple):
    """A pass over the pairs of one time."""

    time: Time
    mirrors: Annotated[Ints, "reservoirs 3"]  # those that may overflow, as in `Packed`
    here: Words  # the pairs, and
    after: Words  # those of the next time that are alive
    sure: bool  # all are, where rows lead to that keep the budgets
    backwards: bool
    marks: Bytes  # (keys,) zero before: of the next time what is led to; backwards, of this what is alive
    used: Bytes  # (R,) rows that are safe at some pair
    stuck: Ints  # (1,) 1: some pair has no safe row


class Packing(NamedTuple):
    """Marks as words."""

    marks: Bytes
    words: Words
    counts: Small  # bits that are set in each


class Numbering(NamedTuple):
    """Pairs are listed and numbered."""

    mirrors: Annotated[Ints, "reservoirs 3"]
    words: Words
    before: Small  # pairs before each word
    number: Small  # (keys,) of the pair that a key stands for, or EMPTY
    keys: Ints  # (P,)


class Drawing(NamedTuple):
    """Pairs at which answers are compared."""

    keys: Ints
    t: int
    limit: int
    drawn: Words


class Tables(NamedTuple):
    """A policy's table."""

    slot: Small  # (S,) the box of each state, or -1
    boxes: Boxes


class Chunk(NamedTuple):
    """Some of the policy's answers of one time."""

    by_pair: bool  # they are of the pairs themselves, in order; else of the cells present in tables
    first: Tables
    second: Tables  # that must have a pair, too
    begin: int  # those of cells begin .. end-1
    end: int
    played: Played


class Judging(NamedTuple):
    """The pairs of one time, of which those are judged whose answers are on the card."""

    keys: Ints
    time: Time
    table: Table
    numbers: Numbers
    base: Annotated[Floats, "1 N"]
    ends: int
    told: bool
    following: Known
    found: Known
    wrong: Ints  # (1,) 1: a pair has no answer, is at fault, or has a number that is not finite
    chunk: Chunk


class Gaining(NamedTuple):
    """The pairs with the largest gains among STRIP pairs, and what is known of them."""

    values: Annotated[Floats, "P 6N"]
    numbers: Annotated[Ints, "strips 2N"]  # as `extremes` finds them
    off: Annotated[Floats, "strips N"]
    picked: Annotated[Floats, "strips 2N 6N"]


class OwnPair(NamedTuple):
    """Room for one pair."""

    spent: Ints  # (M,)
    slack: Ints  # (M,)
    scratch: Scratch


@inlined
def _is_in(words: Words, key: Int) -> bool:
    return bool((words[key >> 6] >> np.uint64(key & 63)) & np.uint64(1) != np.uint64(0))


@inlined
def _ones(word: Any) -> Int:
    """Return how many bits of a word are set."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inlined
def _settled(key: Int, mirrors: Ints) -> Int:
    """Return the key that a key stands for, as in `Packed`."""
    for r in range(len(mirrors)):
        key += mirrors[r, 0] * max(mirrors[r, 2] - key // mirrors[r, 0] % mirrors[r, 1], np.int64(0))
    return key


@inlined
def _is_safe(row: Int, within: Int, slack: Ints, given: Passing) -> bool:
    """Return whether a row is in FA."""
    time = given.time
    if not _keeps(row, time.worst, slack):
        return False
    if not (time.last or given.sure):
        for k in range(time.out_ptr[row], time.out_ptr[row + 1]):
            if not _is_in(given.after, _settled(within + time.jump[k], given.mirrors)):
                return False
    return True


@inner
def pass_phase(thread: Int, block: Int, threads: Int, blocks: Int, shared: Any, own: Ints, given: Passing) -> None:
    """Mark the rows that are safe at a pair, and where they lead; or the pair, if it has one."""
    key, time = block * threads + thread, given.time
    if key >= len(given.marks) or not _is_in(given.here, key):
        return
    state, within = _unpack(key, time.span, time.low, time.size, time.bound, own)
    stuck = True
    for row in range(time.row_ptr[state], time.row_ptr[state + 1]):
        if _is_safe(row, within, own, given):
            stuck = False
            if given.backwards:
                given.marks[key] = 1
                break
            if given.used[row] == 0:  # threads would wait for each other's writes
                given.used[row] = 1
            for k in range(time.out_ptr[row], time.out_ptr[row] if time.last else time.out_ptr[row + 1]):
                given.marks[_settled(within + time.jump[k], given.mirrors)] = 1
    if stuck:
        given.stuck[0] = 1


@inner
def pack_phase(thread: Int, block: Int, threads: Int, blocks: Int, shared: Any, own: Any, given: Packing) -> None:
    """Write one word."""
    at = block * threads + thread
    if at < len(given.words):
        word, count = np.uint64(0), np.int64(0)
        for k in range(min(np.int64(WORD), len(given.marks) - WORD * at)):
            mark = given.marks[WORD * at + k]
            word |= np.uint64(mark) << np.uint64(k)
            count += np.int64(mark)
        given.words[at] = word
        given.counts[at] = np.int32(count)


@inner
def number_phase(thread: Int, block: Int, threads: Int, blocks: Int, shared: Any, own: Any, given: Numbering) -> None:
    """Number the pair that a key stands for, and list it where it stands for itself."""
    key = block * threads + thread
    if key >= len(given.number):
        return
    at = _settled(key, given.mirrors)
    found = np.int64(EMPTY)
    if _is_in(given.words, at):
        below = given.words[at >> 6] & ((np.uint64(1) << np.uint64(at & 63)) - np.uint64(1))
        found = np.int64(given.before[at >> 6]) + _ones(below)
        if at == key:
            given.keys[found] = key
    given.number[key] = np.int32(found)


@inner
def draw_phase(thread: Int, block: Int, threads: Int, blocks: Int, shared: Any, own: Any, given: Drawing) -> None:
    """Write which pairs of a word are drawn."""
    at = block * threads + thread
    if at < len(given.drawn):
        word = np.uint64(0)
        for k in range(min(np.int64(WORD), len(given.keys) - WORD * at)):
            if is_drawn(given.keys[WORD * at + k], given.t, given.limit):
                word |= np.uint64(1) << np.uint64(k)
        given.drawn[at] = word


@inlined
def _cell(state: Int, spent: Ints, tables: Tables) -> Int:
    """Return the number of a pair among the cells present in a policy's table, or -1."""
    at, boxes = np.int64(tables.slot[state]), tables.boxes
    if at < 0:
        return np.int64(-1)
    return _number(
        at, spent, boxes.lo, boxes.size, boxes.base, boxes.least, boxes.most, boxes.dims, boxes.listed, boxes.keys,
        boxes.bits, boxes.counts, boxes.ones, False,
    )  # fmt: skip


@inlined
def _answer(p: Int, spent: Ints, given: Judging) -> Int:
    """Return the number of a pair's answer, or -1."""
    if given.chunk.by_pair:
        return p
    low, size, rest = given.time.low, given.time.size, given.keys[p]
    for back in range(len(low)):
        m = len(low) - 1 - back
        above = rest // size[m]
        spent[m] = rest - above * size[m] + low[m]
        rest = above
    found = _cell(rest, spent, given.chunk.first)
    return found if found < 0 or _cell(rest, spent, given.chunk.second) >= 0 else np.int64(-1)


@inner
def judge_phase(thread: Int, block: Int, threads: Int, blocks: Int, shared: Any, own: OwnPair, given: Judging) -> None:
    """Judge a pair whose answer is here."""
    p, chunk = block * threads + thread, given.chunk
    if p >= len(given.keys):
        return
    at = _answer(p, own.spent, given)
    if not chunk.begin <= at < chunk.end:
        if at < 0:
            given.wrong[0] = 1
        return
    for own_action in range(len(own.scratch.asked)):
        own.scratch.asked[own_action] = 0
    begin, end = chunk.played.ptr[at - chunk.begin], chunk.played.ptr[at - chunk.begin + 1]
    judge_pair(
        p, given.keys[p], begin, end, given.time, given.table, given.numbers, given.base, given.ends, chunk.played,
        given.told, given.following, given.found, own.scratch, own.slack,
    )  # fmt: skip
    fine = True  # where the policy is at fault, the numbers are none
    for k in range(given.found.values.shape[1]):
        fine &= abs(given.found.values[p, k]) < np.inf
    if not fine:
        given.wrong[0] = 1


@inner
def gain_phase(thread: Int, block: Int, threads: Int, blocks: Int, shared: Any, own: Any, given: Gaining) -> None:
    """Find the largest gains of a strip."""
    at, n = block * threads + thread, given.off.shape[1]
    if at >= len(given.off):
        return
    end = min(STRIP * (at + 1), len(given.values))
    for i in range(n):
        largest, share, off = extremes_of(i, n, given.values, STRIP * at, end)
        given.numbers[at, i], given.numbers[at, n + i], given.off[at, i] = largest, share, off
        for k in range(6 * n):
            given.picked[at, i, k] = given.values[largest, k]
            given.picked[at, n + i, k] = given.values[max(share, np.int64(0)), k]
