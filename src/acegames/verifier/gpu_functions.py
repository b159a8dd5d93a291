"""What the threads of a GPU do when a policy is judged there (`on_gpu`), as device functions.

These are plain functions of the thread and its block, as in `kernels/device.py`. What happens at a
pair is the code of `pair_kernels`. The pairs of a time are *words*: a bit for every key, WORD of
them in a number; keys that are pairs are then listed in order. `own` belongs to a thread.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.system.compiled import inlined, inner
from acegames.verifier.basics import (
    Bytes,
    Floats,
    Int,
    Ints,
    KeyTable,
    LayerValues,
    Numbers,
    PairScratch,
    PlayedRows,
    PolicyBoxes,
    Small,
    TimeRules,
)
from acegames.verifier.key_kernels import _number
from acegames.verifier.pair_kernels import EMPTY, _keeps, _unpack, extremes_of, is_drawn, judge_pair

WORD = 64
STRIP = 256  # pairs among which one thread finds the largest gains

Words = NDArray[np.uint64]


class Passing(NamedTuple):
    """A pass over the pairs of one time."""

    time: TimeRules
    aliased: Annotated[Ints, "reservoirs 3"]  # those that may overflow, as in `PairKeys`
    here: Words  # the pairs, and
    after: Words  # those of the next time that are alive
    sure: bool  # all are, where rows lead to that keep the budgets
    backwards: bool
    marks: Bytes  # (keys,) zero before: of the next time what is led to; backwards, of this what is alive
    used: Bytes  # (R,) rows that are safe at some pair
    stuck: Ints  # (1,) 1: some pair has no safe row


class WordPacking(NamedTuple):
    """Marks as words."""

    marks: Bytes
    words: Words
    counts: Small  # bits that are set in each


class PairNumbering(NamedTuple):
    """Pairs are listed and numbered."""

    aliased: Annotated[Ints, "reservoirs 3"]
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


class DevicePolicyTable(NamedTuple):
    """A policy's table."""

    slot: Small  # (S,) the box of each state, or -1
    boxes: PolicyBoxes


class Chunk(NamedTuple):
    """Some of the policy's answers of one time."""

    by_pair: bool  # they are of the pairs themselves, in order; else of the cells present in tables
    first: DevicePolicyTable
    second: DevicePolicyTable  # that must have a pair, too
    begin: int  # those of cells begin .. end-1
    end: int
    played: PlayedRows


class Judging(NamedTuple):
    """The pairs of one time, of which those are judged whose answers are on the card."""

    keys: Ints
    time: TimeRules
    table: KeyTable
    numbers: Numbers
    base: Annotated[Floats, "1 N"]
    ends: int
    interim: bool
    following: LayerValues
    result: LayerValues
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
    scratch: PairScratch


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
def _canonical(key: Int, aliased: Ints) -> Int:
    """Return the key that a key stands for, as in `PairKeys`."""
    for r in range(len(aliased)):
        key += aliased[r, 0] * max(aliased[r, 2] - key // aliased[r, 0] % aliased[r, 1], np.int64(0))
    return key


@inlined
def _is_safe(row: Int, within: Int, slack: Ints, task: Passing) -> bool:
    """Return whether a row is in FA."""
    time = task.time
    if not _keeps(row, time.worst, slack):
        return False
    if not (time.last or task.sure):
        for k in range(time.out_ptr[row], time.out_ptr[row + 1]):
            if not _is_in(task.after, _canonical(within + time.jump[k], task.aliased)):
                return False
    return True


@inner
def pass_thread(thread: Int, block: Int, threads: Int, blocks: Int, shared: Any, own: Ints, task: Passing) -> None:
    """Mark the rows that are safe at a pair, and where they lead; or the pair, if it has one."""
    key, time = block * threads + thread, task.time
    if key >= len(task.marks) or not _is_in(task.here, key):
        return
    state, within = _unpack(key, time.span, time.low, time.size, time.bound, own)
    stuck = True
    for row in range(time.row_ptr[state], time.row_ptr[state + 1]):
        if _is_safe(row, within, own, task):
            stuck = False
            if task.backwards:
                task.marks[key] = 1
                break
            if task.used[row] == 0:  # threads would wait for each other's writes
                task.used[row] = 1
            for k in range(time.out_ptr[row], time.out_ptr[row] if time.last else time.out_ptr[row + 1]):
                task.marks[_canonical(within + time.jump[k], task.aliased)] = 1
    if stuck:
        task.stuck[0] = 1


@inner
def pack_thread(thread: Int, block: Int, threads: Int, blocks: Int, shared: Any, own: Any, task: WordPacking) -> None:
    """Write one word."""
    at = block * threads + thread
    if at < len(task.words):
        word, count = np.uint64(0), np.int64(0)
        for k in range(min(np.int64(WORD), len(task.marks) - WORD * at)):
            mark = task.marks[WORD * at + k]
            word |= np.uint64(mark) << np.uint64(k)
            count += np.int64(mark)
        task.words[at] = word
        task.counts[at] = np.int32(count)


@inner
def number_thread(
    thread: Int, block: Int, threads: Int, blocks: Int, shared: Any, own: Any, task: PairNumbering
) -> None:
    """Number the pair that a key stands for, and list it where it stands for itself."""
    key = block * threads + thread
    if key >= len(task.number):
        return
    at = _canonical(key, task.aliased)
    pair = np.int64(EMPTY)
    if _is_in(task.words, at):
        below = task.words[at >> 6] & ((np.uint64(1) << np.uint64(at & 63)) - np.uint64(1))
        pair = np.int64(task.before[at >> 6]) + _ones(below)
        if at == key:
            task.keys[pair] = key
    task.number[key] = np.int32(pair)


@inner
def draw_thread(thread: Int, block: Int, threads: Int, blocks: Int, shared: Any, own: Any, task: Drawing) -> None:
    """Write which pairs of a word are drawn."""
    at = block * threads + thread
    if at < len(task.drawn):
        word = np.uint64(0)
        for k in range(min(np.int64(WORD), len(task.keys) - WORD * at)):
            if is_drawn(task.keys[WORD * at + k], task.t, task.limit):
                word |= np.uint64(1) << np.uint64(k)
        task.drawn[at] = word


@inlined
def _cell(state: Int, spent: Ints, tables: DevicePolicyTable) -> Int:
    """Return the number of a pair among the cells present in a policy's table, or -1."""
    at, boxes = np.int64(tables.slot[state]), tables.boxes
    if at < 0:
        return np.int64(-1)
    return _number(
        at, spent, boxes.lo, boxes.size, boxes.base, boxes.least, boxes.most, boxes.dims, boxes.listed, boxes.keys,
        boxes.bits, boxes.counts, boxes.ones, False,
    )  # fmt: skip


@inlined
def _answer(p: Int, spent: Ints, task: Judging) -> Int:
    """Return the number of a pair's answer, or -1."""
    if task.chunk.by_pair:
        return p
    low, size, rest = task.time.low, task.time.size, task.keys[p]
    for back in range(len(low)):
        m = len(low) - 1 - back
        above = rest // size[m]
        spent[m] = rest - above * size[m] + low[m]
        rest = above
    entry = _cell(rest, spent, task.chunk.first)
    return entry if entry < 0 or _cell(rest, spent, task.chunk.second) >= 0 else np.int64(-1)


@inner
def judge_thread(thread: Int, block: Int, threads: Int, blocks: Int, shared: Any, own: OwnPair, task: Judging) -> None:
    """Judge a pair whose answer is here."""
    p, chunk = block * threads + thread, task.chunk
    if p >= len(task.keys):
        return
    at = _answer(p, own.spent, task)
    if not chunk.begin <= at < chunk.end:
        if at < 0:
            task.wrong[0] = 1
        return
    for own_action in range(len(own.scratch.asked)):
        own.scratch.asked[own_action] = 0
    begin, end = chunk.played.ptr[at - chunk.begin], chunk.played.ptr[at - chunk.begin + 1]
    judge_pair(
        p, task.keys[p], begin, end, task.time, task.table, task.numbers, task.base, task.ends, chunk.played,
        task.interim, task.following, task.result, own.scratch, own.slack,
    )  # fmt: skip
    fine = True  # where the policy is at fault, the numbers are none
    for k in range(task.result.values.shape[1]):
        fine &= abs(task.result.values[p, k]) < np.inf
    if not fine:
        task.wrong[0] = 1


@inner
def gain_thread(thread: Int, block: Int, threads: Int, blocks: Int, shared: Any, own: Any, task: Gaining) -> None:
    """Find the largest gains of a strip."""
    at, n = block * threads + thread, task.off.shape[1]
    if at >= len(task.off):
        return
    end = min(STRIP * (at + 1), len(task.values))
    for i in range(n):
        largest, share, off = extremes_of(i, n, task.values, STRIP * at, end)
        task.numbers[at, i], task.numbers[at, n + i], task.off[at, i] = largest, share, off
        for k in range(6 * n):
            task.picked[at, i, k] = task.values[largest, k]
            task.picked[at, n + i, k] = task.values[max(share, np.int64(0)), k]
