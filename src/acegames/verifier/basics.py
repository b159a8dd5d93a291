"""Tools for lists end to end, records, thresholds and threads, which all of the verifier uses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.model.arrays import Bytes, Floats, Ints
from acegames.model.game import Layer, MarkovGame
from acegames.system.compiled import inlined
from acegames.system.machine import processors
from acegames.system.tasks import Team

Small = NDArray[np.int32]
Int = int | np.int64
T = TypeVar("T")

BELOW = 2**62
"""Keys, codes and sums stay below this: one more fits into int64, too."""

LANES = 64
"""Keys that a window of neighbours has (`pair_kernels`)."""


@inlined
def wasted(spent: Any, cost: Any) -> Any:
    """Return how much of a charge a reservoir has no room for: full is full (spec 11).

    `spent` is missing in it, and a charge is a negative cost. Also of arrays, and of integers of
    any size.
    """
    return -(spent + cost) * (spent + cost < 0)


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


# -- records that kernels are given --------------------------------------------------------------
# Arrays with names and shapes; what a GPU is given says its axes in types (`system.axes`).


class TimeRules(NamedTuple):
    """What can happen at one time, and how its keys are read (`pair_keys`)."""

    row_ptr: Ints  # (S+1,)
    out_ptr: Ints  # (R+1,)
    jump: Ints  # (K,) how far an outcome moves a key
    cost: Annotated[Ints, "K M"]  # of an outcome, in units
    ceiling: Annotated[Ints, "R M"]  # the most that may have been spent before a row, see `Ceilings`
    stored: Ints  # the constraints that are reservoirs
    stride: Ints  # (M,) how far one unit of a constraint moves a key
    size: Ints  # (M,)
    low: Ints  # (M,)
    line: np.int64  # how far one state moves a key
    last: bool  # nothing follows


class Numbers(NamedTuple):
    """The numbers of one time, and where rows lead when one player switches."""

    prob: Floats  # (K,)
    reward: Annotated[Floats, "R N"]
    action: Annotated[Small, "R N"]
    # the row where player i plays b instead is at offset[i] + b, or -1
    move: Annotated[Small, "R actions_of_all_players"]
    offset: Ints  # (N+1,)


def numbers_of(game: MarkovGame, layer: Layer, concept: Concept) -> Numbers:
    """Return the numbers of a layer."""
    total = np.add.reduceat(layer.prob, layer.out_ptr[:-1])
    prob: Floats = layer.prob / np.repeat(total, np.diff(layer.out_ptr))  # sums to one in each row
    deviates = concept.deviators(game.players)
    move = np.column_stack([switches(game, layer, i, free) for i, free in enumerate(deviates)])
    offset = np.cumsum([0, *map(len, game.actions)], dtype=np.int64)
    return Numbers(prob, layer.reward.copy(), layer.action.copy(), move.astype(np.int32, order="C"), offset)


def switches(game: MarkovGame, layer: Layer, player: int, free: bool) -> Ints:
    """Return for each row and action b the row where a player plays b instead, (R, A_i).

    -1 where that is not legal; for a player who may not deviate, everywhere but at its own action.
    """
    own, others = layer.action[:, player], np.delete(layer.action, player, axis=1).astype(np.int64)
    group, first = number_pairs(owners(layer.row_ptr), others)  # rows of a state where the others play alike
    table = np.full((len(first), len(game.actions[player])), -1, dtype=np.int64)
    table[group, own] = np.arange(len(group))
    move = table[group]
    return move if free else np.where(own[:, None] == np.arange(move.shape[1]), move, -1)


class PlayedRows(NamedTuple):
    """What the policy plays at P pairs: the entries begin[p] .. end[p]-1; none at a fault."""

    begin: Ints  # (P,)
    end: Ints  # (P,)
    row: Ints  # (Z,)
    prob: Floats  # (Z,)


class LayerValues(NamedTuple):
    """What is known of P pairs of one time, or of P positions, of which some are pairs."""

    alive: Annotated[Bytes, "P"]  # 1: is a pair; the rest is meaningless elsewhere
    # V, W, what each can be off by, the best of safe play and the worst of the policy
    values: Annotated[Floats, "6N P"]
    # the most that is spent from here on, on any history of the policy; then the most that is
    # missing in each of the reservoirs once it was full
    max_future_cost: Annotated[Ints, "M+R P"]
    fault: Annotated[Bytes, "P"]  # 1: the policy runs into a fault from here


class Judging(NamedTuple):
    """Some pairs of one time that are to be judged (`judgement`)."""

    keys: Ints  # (P,) in order
    time: TimeRules
    origin: int  # the key at the first position of the next time
    numbers: Numbers
    base: Floats  # (N,) taken out of rewards
    played: PlayedRows
    interim: bool  # a deviator hears its recommendation first
    following: LayerValues  # of the next time, by position; nothing is read after the last
    result: LayerValues
    outside: Ints  # (P,) to be written: the last row played that is not in FA, or -1


class WindowWorkspace(NamedTuple):
    """Room for one window of pairs, that of one thread; at most `lanes` pairs."""

    spent: Annotated[Ints, "M"]  # at its first pair
    lane: Annotated[Ints, "lanes"]  # of each pair
    wanted: Annotated[Bytes, "rows"]  # 2: some pair plays the row; 1: some player can switch to it
    safe: Annotated[Bytes, "rows lanes"]
    targets: Annotated[Ints, "outcomes"]  # the positions that a row leads to
    cursor: Annotated[Ints, "cursors"]  # where each outcome led to before; none where positions are keys
    # what a row comes to with W, and what that can be off by; the same with V; and the worst of the
    # policy after it
    q: Annotated[Floats, "rows 5N lanes"]
    best: Annotated[Floats, "N lanes"]
    sums: Annotated[Floats, "3gap"]
    part: Annotated[Floats, "actions+1 2"]  # what a choice comes to, and what that can be off by
    asked: Annotated[Ints, "actions"]  # entries in which a player is told each action
    most: Annotated[Ints, "rows M+R lanes"]  # as `max_future_cost`, if a row is played


class Sizes(NamedTuple):
    """What the room that a window needs depends on."""

    players: int
    constraints: int
    reservoirs: int
    rows: int  # most joint actions of a state
    outcomes: int  # most outcomes of a row
    actions: int  # most actions of a player

    def lengths(self, lanes: int = 1, cursors: int = 0, gap: int = 1) -> dict[str, int]:
        """Return the lengths of the axes of a `WindowWorkspace`, and of what is known of pairs."""
        n, m, most = self.players, self.constraints, self.constraints + self.reservoirs
        axes = {"N": n, "5N": 5 * n, "6N": 6 * n, "M": m, "M+R": most, "rows": self.rows, "outcomes": self.outcomes}
        axes |= {"actions": self.actions, "actions+1": self.actions + 1}
        return axes | {"lanes": lanes, "cursors": cursors, "3gap": 3 * gap}


# -- thresholds and threads -----------------------------------------------------------------------


@dataclass
class Limits:
    """Sizes from which on the verifier works in another way, or refuses to.

    What it finds does not depend on them, and there is one such record, `LIMITS`: tests set it.
    """

    # pairs (`pair_keys`, `judgement`)
    long_line: int = 8  # keys of a line, and ...
    keys_per_pair: int = 8  # ... keys per pair at most ...
    few_keys: int = 2**15  # ... or in all, for windows of neighbours
    kept_rows: int = 2**17  # rows of all times up to which the rules of each time are kept, else of one time
    walked: int = 2**16  # situations of the policy whose outcomes are held together
    merged: int = 2**10  # pairs of a time from which on those that are alike are judged as one
    # questions to the policy
    remembered: int = 2**17  # answers of `distribution` that are kept
    compared: int = 64  # pairs, about, at which one verification compares `rows` with `distribution`
    compared_of: int = 2**14  # of a time with more pairs than this, more are compared
    # costs
    outcomes: int = 2**25  # of one time: some gigabytes
    compared_costs: int = 1000  # of a constraint, about, for which the policy's counting is compared with its record
    # blocks of threads, and of tasks on a cluster
    block: int = 2**15  # pairs of a block at most
    least_block: int = 2**11  # and at least: waking a thread takes as long as judging some thousand
    local: int = 2**21  # pairs up to which a game is judged in this process: about a second
    task_pairs: int = 2**18  # pairs of a task, about: a tenth of a second
    # GPUs
    chunk: int = 2**22  # pairs whose answers are on the card together, at most ...
    least_chunk: int = 2**12  # ... and at least
    thread_bytes: int = 4096  # workspace of each thread of the card


LIMITS = Limits()


class BlockThreads(Team):
    """Some threads, or none but the caller's. What is found does not depend on how many."""

    def __init__(self, count: int | None = None) -> None:
        super().__init__(processors() if count is None else count)

    def blocks(self, length: int, rounds: int = 2) -> list[slice]:
        """Cut so many pairs into blocks of equal size: for each thread some, if there are as many.

        If one takes longer than others, none waits long for it at the end.
        """
        size = -(-length // (rounds * self.threads)) if self.threads > 1 else length
        size = min(max(size, LIMITS.least_block), LIMITS.block)
        return [slice(start, min(start + size, length)) for start in range(0, length, size)]

    def shares(self, length: int) -> list[slice]:
        """Cut so many pairs into one part for each thread, or fewer if these would be small."""
        size = max(-(-length // self.threads), LIMITS.block)
        return [slice(start, min(start + size, length)) for start in range(0, max(length, 1), size)]


ALONE = BlockThreads(1)
