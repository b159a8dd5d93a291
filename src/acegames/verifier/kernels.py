"""The compiled passes over layers of pairs, and the table by which a pair is found. The verifier's own, all in one file.

A pair (state, spent) is one number, its *key*: state * span + (spent - low) in mixed radix, the last constraint
fastest. An outcome adds to it a fixed `jump`, and so no successor is ever stored.

    rules   of one time: row_ptr (S+1,), out_ptr (R+1,), jump (K,), worst (R, M), what must be left of each budget for a row:
            the largest cost that it can bring, or more where that could not be recovered later (`_recover`)
    box     span, low (M,), size (M,)
    table   index: the number of the key in each slot, or EMPTY; shift: 0 where the slot is the key itself, else keys are
            hashed to 64 - shift bits and searched for from there in slots, which holds the keys

A row keeps the budgets when worst <= slack = bound - spent. Kernels do not allocate but for one line of scratch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acegames.numerics import UNIT_ROUNDOFF
from acegames.system.compiled import inlined, kernel

Int = int | np.int64
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]
Small = NDArray[np.int32]
Rules = tuple[Ints, Ints, Ints, Ints]
Numbers = tuple[Floats, Floats, Ints, Floats]
Moves = tuple[Small, Small, Ints]
Box = tuple[np.int64, Ints, Ints]
Table = tuple[Ints, Small, np.int64]

EMPTY = np.int64(-1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)

UNASKED, ASKED, PLAYED, SAFE, UNSAFE = (
    np.uint8(0),
    np.uint8(1),
    np.uint8(2),
    np.uint8(3),
    np.uint8(4),
)  # what is known of a row


@inlined
def _slot(slots: Ints, shift: Int, key: Int) -> Int:
    """Return the slot where a key is, or the empty one where it would be."""
    if shift == 0:
        return key
    mask = np.int64(len(slots) - 1)
    at = np.int64((np.uint64(key) * _GOLDEN) >> np.uint64(shift))
    while slots[at] != key and slots[at] != EMPTY:
        at = (at + np.int64(1)) & mask
    return at


@inlined
def _unpack(key: Int, span: Int, low: Ints, size: Ints, bound: Ints, slack: Ints) -> tuple[Int, Int]:
    """Write what is left of each budget into `slack`; return the state, and the key less its state."""
    state = key // span
    within = key - state * span
    rest = within
    for back in range(len(low)):
        m = len(low) - 1 - back
        above = rest // size[m]
        slack[m] = bound[m] - low[m] - (rest - above * size[m])
        rest = above
    return state, within


@inlined
def _keeps(row: Int, worst: Ints, slack: Ints) -> bool:
    """Whether a row keeps the budgets. (A loop with a way out: numba would make vectors of a plain one, for two numbers.)"""
    m = np.int64(0)
    while m < len(slack) and worst[row, m] <= slack[m]:
        m += np.int64(1)
    return bool(m == len(slack))


@inlined
def _leads(row: Int, within: Int, out_ptr: Ints, jump: Ints, slots: Ints, index: Small, shift: Int) -> bool:
    """Whether all outcomes of a row are in the table."""
    k, end = out_ptr[row], out_ptr[row + 1]
    while k < end and index[_slot(slots, shift, within + jump[k])] != EMPTY:
        k += np.int64(1)
    return bool(k == end)


@kernel
def fill(keys: Ints, table: Table) -> None:
    """Put keys, each once, into an empty table."""
    slots, index, shift = table
    for p in range(len(keys)):
        at = _slot(slots, shift, keys[p])
        index[at] = np.int32(p)
        if shift > 0:
            slots[at] = keys[p]


@kernel
def expand(keys: Ints, rules: Rules, box: Box, bound: Ints, table: Table, room: np.int64, progress: Ints) -> None:
    """Put the successors by rows that keep the budgets into the table, from pair progress[0] on.

    It stops where the table may come to hold more than `room` keys; progress[1] counts them.
    """
    row_ptr, out_ptr, jump, worst = rules
    slots, index, shift = table
    span, low, size = box
    slack = np.empty(len(bound), dtype=np.int64)
    used = progress[1]
    p = progress[0]
    while p < len(keys):
        state, within = _unpack(keys[p], span, low, size, bound, slack)
        if used + out_ptr[row_ptr[state + 1]] - out_ptr[row_ptr[state]] > room:
            break
        for row in range(row_ptr[state], row_ptr[state + 1]):
            if _keeps(row, worst, slack):
                for k in range(out_ptr[row], out_ptr[row + 1]):
                    key = within + jump[k]
                    at = _slot(slots, shift, key)
                    if index[at] == EMPTY:
                        index[at] = np.int32(0)
                        used += np.int64(1)
                        if shift > 0:
                            slots[at] = key
        p += np.int64(1)
    progress[0] = p
    progress[1] = used


@kernel
def find_alive(keys: Ints, rules: Rules, box: Box, bound: Ints, table: Table, last: bool, alive: Bytes) -> None:
    """Mark the pairs that have a safe row, given the table of those alive at the next time."""
    row_ptr, out_ptr, jump, worst = rules
    slots, index, shift = table
    span, low, size = box
    slack = np.empty(len(bound), dtype=np.int64)
    for p in range(len(keys)):
        state, within = _unpack(keys[p], span, low, size, bound, slack)
        alive[p] = 0
        for row in range(row_ptr[state], row_ptr[state + 1]):
            if _keeps(row, worst, slack) and (last or _leads(row, within, out_ptr, jump, slots, index, shift)):
                alive[p] = 1
                break


@kernel
def find_reached(
    keys: Ints, rules: Rules, box: Box, bound: Ints, table: Table, last: bool, safe: Bytes, reached: Bytes
) -> None:
    """Mark the rows that are safe at some pair, and the pairs of the next time, all alive and in the table, that they lead to."""
    row_ptr, out_ptr, jump, worst = rules
    slots, index, shift = table
    span, low, size = box
    slack = np.empty(len(bound), dtype=np.int64)
    for p in range(len(keys)):
        state, within = _unpack(keys[p], span, low, size, bound, slack)
        for row in range(row_ptr[state], row_ptr[state + 1]):
            if _keeps(row, worst, slack) and (last or _leads(row, within, out_ptr, jump, slots, index, shift)):
                safe[row] = 1
                for k in range(out_ptr[row], out_ptr[row] if last else out_ptr[row + 1]):
                    reached[index[_slot(slots, shift, within + jump[k])]] = 1


@inlined
def _rounding(terms: Int) -> float:
    """How far a mean of so many terms can be off, in units of their size (as `_tolerance.rounding`)."""
    return UNIT_ROUNDOFF * max(16.0, 2.0 * terms + 6.0)


@inlined
def _targets(
    row: Int, within: Int, slack: Ints, out_ptr: Ints, jump: Ints, worst: Ints, slots: Ints, index: Small, shift: Int,
    last: bool, targets: Ints,
) -> bool:  # fmt: skip
    """Write where a row leads; return whether it is in FA."""
    if not _keeps(row, worst, slack):
        return False
    begin, end = out_ptr[row], out_ptr[row + 1]
    if not last:
        for k in range(begin, end):
            targets[k - begin] = index[_slot(slots, shift, within + jump[k])]
            if targets[k - begin] == EMPTY:
                return False
    return True


@inlined
def _add_up(
    begin: Int, count: Int, targets: Ints, prob: Floats, reward: float, digit: float, following: Floats, column: Int,
    off: Int, q: Floats, at: Int,
) -> None:  # fmt: skip
    """Write reward plus expected following number of a column to q[at, column], and what it can be off by to q[at, off]."""
    total, size, before = 0.0, 0.0, 0.0
    for k in range(count):
        term = prob[begin + k] * following[targets[k], column]
        total += term
        size += abs(term)
        before += prob[begin + k] * following[targets[k], off]
    q[at, column] = reward + total
    q[at, off] = before + digit + _rounding(count) * (abs(reward) + size)


@inlined
def _expected(begin: Int, count: Int, targets: Ints, prob: Floats, following: Floats, column: Int) -> float:
    total = 0.0
    for k in range(count):
        total += prob[begin + k] * following[targets[k], column]
    return total


@inlined
def _deviation(
    i: Int, first: Int, begin: Int, end: Int, support: Ints, chance: Floats, action: Small,
    move: Small, offset: Int, actions: Int, known: Bytes, q: Floats, part: Floats, asked: Ints, coarse: bool,
) -> tuple[float, float]:  # fmt: skip
    """Return W_i at one pair: for each recommendation (one for all, when coarse) the best action instead of it; and what it can be off by.

    When coarse, following is one more choice. part[told, b] is what choice b comes to, its size and what that can be off by.
    """
    n = action.shape[1]
    choices = actions + np.int64(1) if coarse else actions
    for e in range(begin, end):
        row = support[e]
        told = np.int64(0) if coarse else np.int64(action[row, i])
        if asked[told] == 0:
            for b in range(choices):
                part[told, b, 0] = part[told, b, 1] = part[told, b, 2] = 0.0
        asked[told] += 1
        for b in range(choices):
            other = row if b == actions else np.int64(move[row, offset + b])
            if other >= 0 and known[other - first] == SAFE and q[other - first, n + i] != -np.inf:
                term = chance[e] * q[other - first, n + i]
                part[told, b, 0] += term
                part[told, b, 1] += abs(term)
                part[told, b, 2] += chance[e] * q[other - first, 3 * n + i]
            else:
                part[told, b, 0] = -np.inf
    total, size, off, groups = 0.0, 0.0, 0.0, np.int64(0)
    for own in range(actions):
        if asked[own] > 0:
            share = _rounding(asked[own])
            asked[own] = 0
            best, more = -np.inf, 0.0
            for b in range(choices):
                if best == best and not (part[own, b, 0] <= best):  # NaN stays
                    best = part[own, b, 0]
            for b in range(choices):
                more = max(more, part[own, b, 0] - best + (part[own, b, 2] + share * part[own, b, 1]))
            total += best
            size += abs(best)
            off += more
            groups += np.int64(1)
    if groups > 1:
        off += _rounding(groups) * size
    return total, off


@kernel
def judge(
    keys: Ints,
    rules: Rules,
    box: Box,
    bound: Ints,
    table: Table,
    last: bool,
    numbers: Numbers,
    base: Floats,
    moves: Moves,
    answer: tuple[Ints, Ints, Floats],
    coarse: bool,
    following: tuple[Floats, Ints, Bytes],
    found: tuple[Floats, Ints, Bytes],
    outside: Ints,
    scratch: tuple[Floats, Bytes, Ints, Floats, Ints],
) -> None:
    """Evaluate the policy and the best deviations from it at pairs of one time.

    Args:
        keys, rules, box, bound, table, last: as above; the table holds the subgames of the next time.
        numbers: prob (K,), reward (R, N), cost (K, M), what a reward can be off by (R, N).
        base: (N,) what is to be taken out of rewards.
        moves: action (R, N); move (R, sum of A_i), the row where player i plays b instead at offset[i] + b, or -1;
            offset (N+1,).
        answer: ptr (P+1,), row (Z,) and probability (Z,) of what the policy plays; a pair without entries is a fault.
        coarse: one deviation for all recommendations.
        following: of the next time, by pair: V, W, what these can be off by, and the best that safe play and the worst that the policy can
            bring (P, 6N); the largest cumulative cost ahead on any history that the policy realises (P, M); whether
            it runs into a fault (P,). All zero after the last time.
        found: the same of this time, to be written; anything, the least number, and zero.
        outside: (P,) is set to the last row played that is not in FA, or -1.
        scratch: q (rows of a state, 4N), known (rows of a state,), targets (outcomes of a row,), part (A_i, A_i + 1, 3), asked (A_i,),
            all zero.
    """
    row_ptr, out_ptr, jump, worst = rules
    prob, reward, cost, last_digit = numbers
    action, move, offset = moves
    ptr, support, chance = answer
    next_values, next_ahead, next_fault = following
    values, ahead, fault = found
    q, known, targets, part, asked = scratch
    slots, index, shift = table
    span, low, size = box
    n = reward.shape[1]
    slack = np.empty(len(bound), dtype=np.int64)
    for p in range(len(keys)):
        state, within = _unpack(keys[p], span, low, size, bound, slack)
        first = row_ptr[state]
        rows = row_ptr[state + 1] - first
        for j in range(rows):
            known[j] = UNASKED
        begin, end = ptr[p], ptr[p + 1]
        for e in range(begin, end):
            for d in range(move.shape[1]):
                if move[support[e], d] >= 0:
                    known[move[support[e], d] - first] = ASKED
        for e in range(begin, end):
            known[support[e] - first] = PLAYED
        for i in range(n):
            values[p, 4 * n + i], values[p, 5 * n + i] = -np.inf, np.inf
        for j in range(rows):
            asked_for, row = known[j], first + j
            if not _targets(row, within, slack, out_ptr, jump, worst, slots, index, shift, last, targets):
                known[j] = UNSAFE
                continue
            known[j] = SAFE
            out = out_ptr[row]
            count = np.int64(0) if last else out_ptr[row + 1] - out
            for i in range(n):
                pay, digit = reward[row, i] - base[i], last_digit[row, i]
                most = pay + _expected(out, count, targets, prob, next_values, 4 * n + i)
                values[p, 4 * n + i] = max(values[p, 4 * n + i], most)
                if asked_for >= ASKED:
                    _add_up(out, count, targets, prob, pay, digit, next_values, n + i, 3 * n + i, q, j)
                if asked_for == PLAYED:
                    _add_up(out, count, targets, prob, pay, digit, next_values, i, 2 * n + i, q, j)
                    least = pay + _expected(out, count, targets, prob, next_values, 5 * n + i)
                    values[p, 5 * n + i] = min(values[p, 5 * n + i], least)
        outside[p] = -1
        for e in range(begin, end):
            if known[support[e] - first] == UNSAFE:
                outside[p] = support[e]
        if begin == end or outside[p] >= 0:
            fault[p] = 1
            for i in range(6 * n):
                values[p, i] = np.nan
            continue
        for i in range(n):
            own, absolute, off = 0.0, 0.0, 0.0
            for e in range(begin, end):
                term = chance[e] * q[support[e] - first, i]
                own += term
                absolute += abs(term)
                off += chance[e] * q[support[e] - first, 2 * n + i]
            values[p, i] = own
            values[p, 2 * n + i] = off + _rounding(end - begin) * absolute
        for e in range(begin, end):
            for k in range(out_ptr[support[e]], out_ptr[support[e] + 1]):
                target = np.int64(0) if last else np.int64(index[_slot(slots, shift, within + jump[k])])
                fault[p] |= next_fault[target]
                for m in range(len(bound)):
                    ahead[p, m] = max(ahead[p, m], cost[k, m] + max(np.int64(0), next_ahead[target, m]))
        for i in range(n):
            values[p, n + i], values[p, 3 * n + i] = _deviation(
                i, first, begin, end, support, chance, action, move, offset[i], offset[i + 1] - offset[i], known, q,
                part, asked, coarse,
            )  # fmt: skip
