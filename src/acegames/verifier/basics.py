"""Types of arrays, records, thresholds and threads, which all of the verifier uses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from acegames.system.machine import processors
from acegames.system.tasks import Team

Ints = NDArray[np.int64]
Small = NDArray[np.int32]
Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

BELOW = 2**62
"""Keys, codes and sums stay below this: one more fits into int64, too."""


def padded_zeros(*shape: int, dtype: type = np.int64) -> NDArray[Any]:
    """Return zeros apart from other arrays, so that threads do not share lines of the cache."""
    length = math.prod(shape)
    return np.zeros(max(length, 4096), dtype=dtype)[:length].reshape(shape)


def spans(start: Ints, stop: Ints) -> Ints:
    """Return the numbers start[0] .. stop[0]-1, then start[1] .. stop[1]-1, and so on."""
    count = stop - start
    return np.arange(int(count.sum())) + np.repeat(start - offsets(count)[:-1], count)


def offsets(count: Ints) -> Ints:
    """Return where each of consecutive blocks begins, and where the last one ends."""
    ptr = np.zeros(len(count) + 1, dtype=np.int64)
    np.cumsum(count, out=ptr[1:])
    return ptr


def owners(ptr: Ints) -> Ints:
    """Return the block that each line lies in, given where blocks begin and the last one ends."""
    return np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))


def begins(*columns: NDArray[np.integer]) -> Ints:
    """Return where each run of equal lines begins."""
    new = np.ones(len(columns[0]), dtype=bool)
    new[1:] = np.logical_or.reduce([c[1:] != c[:-1] for c in columns])
    return np.flatnonzero(new)


def number_pairs(state: Ints, spent: Ints) -> tuple[Ints, Ints]:
    """Number equal (state, spent) alike, in order.

    Return each line's number, and the first line of each number.
    """
    low = [int(column.min(initial=0)) for column in spent.T]
    size = [int(column.max(initial=0)) - least + 1 for column, least in zip(spent.T, low, strict=True)]
    key = state
    if spent.dtype != object and (int(state.max(initial=0)) + 1) * math.prod(size) < BELOW:
        for column, least, many in zip(spent.T, low, size, strict=True):
            key = key * many + (column - least)
    else:
        for column in spent.T:
            values, code = np.unique(column, return_inverse=True)
            key = np.unique(key * len(values) + code, return_inverse=True)[1]
    _, chosen, number = np.unique(key, return_index=True, return_inverse=True)
    return number, chosen


# -- records --------------------------------------------------------------------------------------
# What the compiled passes are given (see `pair_kernels`): arrays with names.
#
# What a GPU is given says axes in its types (`system.axes`).


Int = int | np.int64


class TimeRules(NamedTuple):
    """What can happen at one time, and how its keys are read."""

    row_ptr: Ints  # (S+1,)
    out_ptr: Ints  # (R+1,)
    jump: Ints  # (K,)
    worst: Annotated[Ints, "R M"]  # what must be left of each budget for a row, see `Ceilings`
    bound: Ints  # (M,)
    span: np.int64  # number of keys of one state
    low: Ints  # (M,)
    size: Ints  # (M,)
    last: bool  # nothing follows


class KeyTable(NamedTuple):
    """Finds the number of a key.

    Where `shift` is 0 the slot is the key itself; else keys are hashed to 64 - shift bits and
    searched for from there in `slots`, which holds the keys.
    """

    slots: Ints
    number: Small  # the number of the key in each slot, or EMPTY
    shift: np.int64


class Numbers(NamedTuple):
    """The numbers of one time, and where rows lead when one player switches."""

    prob: Floats  # (K,)
    reward: Annotated[Floats, "R N"]
    cost: Annotated[Ints, "K M"]
    stored: Ints  # (R,) the constraints that are reservoirs
    action: Annotated[Small, "R N"]
    # the row where player i plays b instead is at offset[i] + b, or -1
    move: Annotated[Small, "R actions_of_all_players"]
    offset: Ints  # (N+1,)


class PlayedRows(NamedTuple):
    """What the policy plays at P pairs; a pair without entries is a fault."""

    ptr: Ints  # (P+1,)
    row: Ints  # (Z,)
    prob: Floats  # (Z,)


class LayerValues(NamedTuple):
    """What is known of the pairs of one time."""

    # V, W, what each can be off by, the best of safe play and the worst of the policy
    values: Annotated[Floats, "P 6N"]
    # the most that is spent from here on, on any history of the policy; then the most that is
    # missing in each of R reservoirs once it was full
    max_future_cost: Annotated[Ints, "P M+R"]
    fault: Annotated[Bytes, "P"]  # 1: the policy runs into a fault from here


class PairScratch(NamedTuple):
    """Room for one pair, all zero."""

    q: Annotated[Floats, "rows 4N"]  # of a state
    known: Annotated[Bytes, "rows"]
    targets: Annotated[Ints, "outcomes"]  # of a row
    part: Annotated[Floats, "actions actions+1 3"]  # what a choice comes to, its size and what that can be off by
    asked: Annotated[Ints, "actions"]  # of a player


class KeyedValues(NamedTuple):
    """What is known of the next time by key, for `window_kernels`; C keys and some more."""

    alive: Bytes  # (C,) 1: is a pair; the rest is meaningless elsewhere
    high: Floats  # (N, C) the best of safe play
    deviating: Floats  # (2N, C) W, and what it can be off by
    own: Floats  # (3N, C) V, what it can be off by, and the worst of the policy
    max_future_cost: Ints  # (M + R, C) as in `LayerValues`
    fault: Bytes  # (C,)


class WindowScratch(NamedTuple):
    """Room for one window of `window_kernels`."""

    # (rows of a state, 5N, LANES) what a row comes to with W, and what that can be off by; the same
    # with V; and the worst of the policy after it
    q: Floats
    wanted: Bytes  # (rows of a state,) 2: some pair plays the row; 1: some player can switch to it
    safe: Bytes  # (rows of a state and at least 2, LANES)
    lane: Ints  # (LANES,) of each pair
    slack: Ints  # (M,)
    best: Floats  # (N, LANES)
    sums: Floats  # (4 * LANES,) one behind another, so that the compiler sees them apart
    part: Floats  # (1, A_i + 1, 2)
    asked: Ints  # (A_i,)
    most: Ints  # (rows of a state, M + R, LANES) as `max_future_cost` in `LayerValues`, if a row is played


class PolicyBoxes(NamedTuple):
    """How a policy numbers pairs: in every state a box of cells, the last dimension fastest.

    What was spent below `lo` counts as `lo`.
    """

    states: Ints  # (B,) ascending
    lo: Annotated[Ints, "B D"]
    size: Annotated[Ints, "B D"]
    base: Ints  # (B+1,) first cell of each box
    least: Annotated[Ints, "B M"]  # least and largest spending of every constraint
    most: Annotated[Ints, "B M"]
    dims: Ints  # (D,) the constraints that boxes count
    listed: bool  # the cells present are in `keys`, else in `bits`
    keys: Ints  # ascending
    bits: Annotated[Bytes, "blocks width"]  # one bit per cell
    counts: Ints  # cells present before each block
    ones: Bytes  # (256,) bits set in each byte
    by_cell: bool  # a pair's number is its cell, else that of the cell among those present


# -- thresholds and threads -----------------------------------------------------------------------
# Runs the passes over many pairs in blocks, on several threads.


T = TypeVar("T")


@dataclass
class Limits:
    """Sizes from which on the verifier works in another way, or refuses to.

    What it finds does not depend on them, and there is one such record, `LIMITS`: tests set it.
    """

    # keys of pairs (`pair_keys`)
    dense: int = 16  # slots per pair up to which a table has one for every key; else it is hashed, half full
    kept_rows: int = 2**17  # rows of all times up to which the rules of each time are worked out once
    aliases: int = 2**22  # keys of a time that may stand for pairs of full reservoirs; else the game is unrolled
    long_line: int = 8  # keys of a line, and ...
    keys_per_pair: int = 8  # ... keys per pair at most ...
    few_keys: int = 2**15  # ... or in all, for the passes over windows
    lines_per_pair: int = 16  # up to which the lines of a state are counted to bring pairs into their order
    joined_keys: int = 2**23  # keys and ...
    joined_rows: int = 2**19  # ... rows of all times that may be numbered through
    # small games
    searched_keys: int = 2**10  # keys of a time up to which one call finds the subgames of all times
    judged_at_once: int = 2**11  # pairs of any time up to which one call judges all times
    # judgement of a time
    groups: int = 2**12  # actions of the others in all states that may have a line each, however few occur
    many: int = 2**9  # pairs of a time from which on a policy's tables are read: looking takes a moment, too
    prepared: int = 2**21  # pairs of times that are prepared together, which takes some fifty bytes for each
    worthwhile: int = 2**16  # pairs for which threads are woken to prepare them
    walked: int = 2**16  # situations of the policy whose outcomes are held together
    # questions to the policy
    remembered: int = 2**17  # answers kept; a policy without `lookup` is asked again for those beyond
    compared: int = 64  # pairs, about, at which one verification compares `lookup` with `distribution`
    compared_of: int = 2**14  # of a time with more pairs than this, more are compared
    singly: int = 64  # pairs of a faulty bulk that are asked one by one rather than halved again
    # costs
    cells: int = 10**7  # of one random cost; each is an outcome of every row that has this cost
    outcomes: int = 2**25  # of one time: some gigabytes
    compared_costs: int = 1000  # of a constraint, about, for which the policy's counting is compared with its record
    # blocks of threads: waking a thread takes as long as judging some thousand pairs
    block: int = 2**14  # pairs of a block at most
    least_block: int = 2**13  # and at least
    least_quick_block: int = 2**11  # the same where a block is one compiled call
    once: int = 192  # pairs that take as long as what is done once per block, by one thread at a time
    once_quick: int = 48
    share: int = 2**15  # pairs of a thread at least, where they are only looked at
    rounds: int = 2  # blocks of each thread, if there are as many: none waits long for others at the end
    # clusters
    local: int = 2**21  # times x states x totals up to which a game is judged in this process: about a second
    task_pairs: int = 2**18  # pairs of a task, about: a tenth of a second
    sampled: int = 64  # keys shown of what a block leads to, for the cuts of the next time
    wider: int = 4  # keys led to per key of a block's own box, for the passes over windows
    marked: int = 16  # keys of a box per key put together, up to which each has a mark
    # GPUs
    chunk: int = 2**22  # answers of a policy that are on the card together, at most ...
    least_chunk: int = 2**12  # ... and at least
    asked: int = 2**16  # answers that a thread of the host asks for together
    thread_bytes: int = 4096  # scratch of each thread of the card


LIMITS = Limits()


class BlockThreads(Team):
    """Some threads, or none but the caller's. What is found does not depend on how many."""

    def __init__(self, count: int | None = None) -> None:
        super().__init__(processors() if count is None else count)

    def blocks(self, length: int, *, quick: bool = False) -> list[slice]:
        """Cut so many pairs into blocks of equal size, a power of two.

        Blocks are so few that what is done once for each takes no longer than the rest. `quick`:
        that is one compiled call.
        """
        smallest, once = (LIMITS.least_quick_block, LIMITS.once_quick) if quick else (LIMITS.least_block, LIMITS.once)
        size = LIMITS.block
        while size > smallest and self.threads > 1 and length < LIMITS.rounds * self.threads * size:
            if size * size < once * length:
                break
            size //= 2
        return [slice(start, min(start + size, length)) for start in range(0, length, size)]

    def shares(self, length: int) -> list[slice]:
        """Cut so many pairs into one part for each thread, or fewer if these would be small."""
        size = max(-(-length // self.threads), LIMITS.share)
        return [slice(start, min(start + size, length)) for start in range(0, max(length, 1), size)]

    def shared(self, length: int, work: Callable[[slice], T]) -> list[T]:
        """Do what is quick on the share of each thread; return what it gives, in order."""
        return self.each(work, self.shares(length))

    def over(self, length: int, work: Callable[[slice], T]) -> list[T]:
        """Do the work on every block; return what it gives, in order."""
        return self.each(work, self.blocks(length))


ALONE = BlockThreads(1)
