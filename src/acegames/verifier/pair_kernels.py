"""The compiled passes over layers of pairs, and the table by which a pair is found.

A pair (state, spent) is one number, its *key*: state * span + (spent - low) in mixed radix, the
last constraint fastest. An outcome adds to it a fixed `jump`, and so no successor is ever stored. A
row keeps the budgets when worst <= slack = bound - spent. Kernels allocate nothing but one line of
scratch. They unpack their records first: an array that is read through a tuple inside a loop is
reference-counted every time, which made some passes eight times slower.
"""

from __future__ import annotations

import numpy as np

from acegames.numerics import PROBABILITY_SUM, UNIT_ROUNDOFF, VERIFY
from acegames.system.compiled import inlined, kernel
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
    Small,
    TimeRules,
)

EMPTY = np.int64(-1)
LEAST = np.iinfo(np.int64).min
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)

UNASKED, ASKED, RARE, PLAYED, SAFE, UNSAFE = np.arange(6, dtype=np.uint8)  # what is known of a row


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
    """Write what is left of each budget into `slack`; return the state, and the rest."""
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
    """Return whether a row keeps the budgets. (Numba would make vectors of a plain loop.)"""
    m = np.int64(0)
    while m < len(slack) and worst[row, m] <= slack[m]:
        m += np.int64(1)
    return bool(m == len(slack))


@inlined
def _targets(
    row: Int, within: Int, slack: Ints, out_ptr: Ints, jump: Ints, worst: Ints, slots: Ints, number: Small, shift: Int,
    last: bool, targets: Ints,
) -> bool:  # fmt: skip
    """Write where a row leads; return whether it is in FA."""
    if not _keeps(row, worst, slack):
        return False
    begin, end = out_ptr[row], out_ptr[row + 1]
    if not last:
        for k in range(begin, end):
            targets[k - begin] = number[_slot(slots, shift, within + jump[k])]
            if targets[k - begin] == EMPTY:
                return False
    return True


@kernel
def read_rows(
    row_ptr: Ints, legal: Small, state: Ints, ptr: Ints, action: Small, prob: Floats, row: Ints, chance: Floats
) -> bool:
    """Write the row of each joint action and its probability, made to sum to one at each pair.

    Return whether all are legal, and every pair has positive probabilities that sum to one. What
    lies between the first and the last pointer need not be in order.
    """
    for p in range(len(state)):
        if ptr[p] >= ptr[p + 1]:
            return False
    for p in range(len(state)):
        total = 0.0
        for e in range(ptr[p], ptr[p + 1]):
            if not prob[e] > 0.0:
                return False
            total += prob[e]
            low, high = row_ptr[state[p]], row_ptr[state[p] + 1]
            while low < high:  # rows are in lexicographic order
                middle = (low + high) // 2
                i = 0
                while i < legal.shape[1] and legal[middle, i] == action[e, i]:
                    i += 1
                if i == legal.shape[1]:
                    break
                if legal[middle, i] < action[e, i]:
                    low = middle + 1
                else:
                    high = middle
            if low >= high:
                return False
            row[e] = middle
        if not abs(total - 1.0) <= PROBABILITY_SUM:
            return False
        for e in range(ptr[p], ptr[p + 1]):
            chance[e] = prob[e] / total
    return True


@kernel
def fill(keys: Ints, numbers: Ints, table: KeyTable) -> None:
    """Put keys, each once, into an empty table, with these numbers."""
    slots, number, shift = table
    for p in range(len(keys)):
        at = _slot(slots, shift, keys[p])
        number[at] = np.int32(numbers[p])
        if shift > 0:
            slots[at] = keys[p]


@inlined
def is_drawn(key: Int, t: Int, limit: Int) -> bool:
    """Return whether a key of a time is drawn, as `limit` of 2**32 are."""
    mixed = (np.uint64(key) + np.uint64(t + 1) * _GOLDEN) * _GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(32))) * _GOLDEN
    return bool(np.int64(mixed >> np.uint64(32)) < limit)


@kernel
def draw(keys: Ints, t: Int, limit: Int, drawn: Ints) -> int:
    """Write the numbers of the keys that are drawn, `limit` of 2**32; return how many there are.

    Whether a key is drawn depends on nothing but itself and the time.
    """
    count = np.int64(0)
    for p in range(len(keys)):
        if is_drawn(keys[p], t, limit):
            drawn[count] = p
            count += np.int64(1)
    return int(count)


@kernel
def classify(keys: Ints, span: Int, size: Ints, floor: Ints, table: KeyTable, first: Ints, owner: Ints) -> int:
    """Number the pairs that differ in what was spent above the floor of their state, (S, M).

    Write the first pair of each number, and the number of each pair; return how many there are.
    """
    slots, number, shift = table
    final, count = len(size) - 1, np.int64(0)
    before = ending = line = place = least = np.int64(0)
    for p in range(len(keys)):
        key = keys[p]
        if before < key < ending:  # in the line of the pair before
            place += key - before
            before = key
            if place <= least:
                owner[p] = owner[p - 1]
                continue
        else:
            state = key // span
            rest, line, step = key - state * span, state * span, np.int64(1)
            for back in range(len(size)):
                m = final - back
                above = rest // size[m]
                if m == final:
                    place, least = rest - above * size[m], floor[state, m]
                    ending = key - place + size[m]
                else:
                    line += step * max(rest - above * size[m], floor[state, m])
                step *= size[m]
                rest = above
            before = key
        clipped = line + max(place, least)
        at = _slot(slots, shift, clipped)
        if number[at] == EMPTY:
            number[at] = np.int32(count)
            if shift > 0:
                slots[at] = clipped
            first[count] = p
            count += np.int64(1)
        owner[p] = number[at]
    return int(count)


@kernel
def same_numbers(stored: Ints, first: Ints, owner: Ints) -> bool:
    """Return whether every pair has a number in the policy's tables, that of the pair judged
    instead.
    """
    same = True
    for p in range(len(owner)):
        same &= stored[p] >= 0 and stored[p] == stored[first[owner[p]]]
    return bool(same)


@kernel
def ceilings(
    row_ptr: Ints, out_ptr: Ints, next_state: Small, cost: Ints, bound: Ints, following: Ints, stored: Ints, beyond: Int,
    over_all: bool, rows: Ints, here: Ints,
) -> None:  # fmt: skip
    """Write the ceilings of rows (R, M) and of states (S, M), see `Ceilings`.

    They are of all rows of a state, or else of the best. `bound` (M,) and `following` (S, M) hold
    after acting; `stored` are the reservoirs. Also run as plain Python, on integers of any size.
    """
    for s in range(len(row_ptr) - 1):
        here[s, :] = -beyond - 1
        for r in range(row_ptr[s], row_ptr[s + 1]):
            for k in range(out_ptr[r], out_ptr[r + 1]):
                for m in range(len(bound)):
                    left = min(bound[m], following[next_state[k], m]) - cost[k, m]
                    rows[r, m] = left if k == out_ptr[r] else min(rows[r, m], left)
                for m in stored:
                    if min(bound[m], following[next_state[k], m]) < 0:  # not even a full reservoir would do
                        rows[r, m] = -beyond - 1
            for m in range(len(bound)):
                rows[r, m] = max(rows[r, m], -beyond - 1)
                if r == row_ptr[s] or (rows[r, m] < here[s, m]) == over_all:
                    here[s, m] = rows[r, m]
        for m in range(len(bound)):
            here[s, m] = min(here[s, m], beyond)


@kernel
def unpack(keys: Ints, low: Ints, size: Ints, state: Ints, spent: Ints) -> None:
    """Write the state (P,) and what was spent (P, M) of each key."""
    for p in range(len(keys)):
        rest = keys[p]
        for back in range(len(size)):
            m = len(size) - 1 - back
            above = rest // size[m]
            spent[p, m] = rest - above * size[m] + low[m]
            rest = above
        state[p] = rest


@kernel
def best_rewards(row_ptr: Ints, rows: Ints, reward: Floats, low: Floats, high: Floats) -> None:
    """Stretch low to high, (N,), to the best rewards of each state over these rows, in order.

    `reward` (P, N) is that of these rows.
    """
    for i in range(len(low)):
        p, state = np.int64(0), np.int64(0)
        while p < len(rows):
            while row_ptr[state + 1] <= rows[p]:
                state += np.int64(1)
            best = reward[p, i]
            while p < len(rows) and rows[p] < row_ptr[state + 1]:
                best = max(best, reward[p, i])
                p += np.int64(1)
            low[i], high[i] = min(low[i], best), max(high[i], best)


@inlined
def extremes_of(i: Int, n: Int, values: Floats, begin: Int, end: Int) -> tuple[Int, Int, float]:
    """Return what `extremes` finds for one player, of pairs begin .. end-1."""
    most, part, off = -np.inf, -np.inf, 0.0
    largest, share = begin, np.int64(-1)
    for p in range(begin, end):
        gain = values[p, n + i] - values[p, i]
        noise = values[p, 2 * n + i] + values[p, 3 * n + i]
        if noise > off or noise != noise:
            off = noise
        if most == most and not gain <= most:
            most, largest = gain, np.int64(p)
        if not gain <= noise:
            stake = max(values[p, 4 * n + i] - values[p, 5 * n + i], 0.0)
            beyond = np.inf if stake == np.inf else (gain - noise) / stake
            if part == part and (share < 0 or not beyond <= part):
                part, share = beyond, np.int64(p)
    return largest, share, off


@kernel
def extremes(values: Floats, largest: Ints, share: Ints, off: Floats) -> None:
    """For each player the first pair of the largest gain, and of the largest share of the stake.

    The latter only where a gain is beyond what rounding can have changed it by, else -1; and the
    most that is. Not a number counts as larger than all others.
    """
    n = len(largest)
    for i in range(n):
        largest[i], share[i], off[i] = extremes_of(i, n, values, np.int64(0), np.int64(len(values)))


@kernel
def expand(keys: Ints, time: TimeRules, table: KeyTable, most: np.int64, progress: Ints) -> None:
    """Put the successors by rows that keep the budgets into the table, from pair progress[0] on.

    It stops where the table may come to hold more than `room` keys; progress[1] counts them.
    """
    row_ptr, out_ptr, jump, worst, bound, span, low, size, _ = time
    slots, number, shift = table
    slack = np.empty(len(bound), dtype=np.int64)
    used = progress[1]
    p = progress[0]
    while p < len(keys):
        state, within = _unpack(keys[p], span, low, size, bound, slack)
        if used + out_ptr[row_ptr[state + 1]] - out_ptr[row_ptr[state]] > most:
            break
        for row in range(row_ptr[state], row_ptr[state + 1]):
            if _keeps(row, worst, slack):
                for k in range(out_ptr[row], out_ptr[row + 1]):
                    key = within + jump[k]
                    at = _slot(slots, shift, key)
                    if number[at] == EMPTY:
                        number[at] = np.int32(0)
                        used += np.int64(1)
                        if shift > 0:
                            slots[at] = key
        p += np.int64(1)
    progress[0] = p
    progress[1] = used


@kernel
def find_alive(keys: Ints, time: TimeRules, table: KeyTable, targets: Ints, alive: Bytes) -> None:
    """Mark the pairs that have a safe row, given the table of those alive at the next time."""
    row_ptr, out_ptr, jump, worst, bound, span, low, size, last = time
    slots, number, shift = table
    slack = np.empty(len(bound), dtype=np.int64)
    for p in range(len(keys)):
        state, within = _unpack(keys[p], span, low, size, bound, slack)
        for row in range(row_ptr[state], row_ptr[state + 1]):
            if _targets(row, within, slack, out_ptr, jump, worst, slots, number, shift, last, targets):
                alive[p] = 1
                break


@kernel
def find_reached(keys: Ints, time: TimeRules, table: KeyTable, targets: Ints, safe: Bytes, reached: Bytes) -> None:
    """Mark the rows that are safe at some pair, and the pairs of the next time that they lead to.

    The table holds the pairs of the next time that are alive.
    """
    row_ptr, out_ptr, jump, worst, bound, span, low, size, last = time
    slots, number, shift = table
    slack = np.empty(len(bound), dtype=np.int64)
    for p in range(len(keys)):
        state, within = _unpack(keys[p], span, low, size, bound, slack)
        for row in range(row_ptr[state], row_ptr[state + 1]):
            if _targets(row, within, slack, out_ptr, jump, worst, slots, number, shift, last, targets):
                if safe[row] == 0:  # threads would wait for each other's writes
                    safe[row] = 1
                for k in range(0 if last else out_ptr[row + 1] - out_ptr[row]):
                    if reached[targets[k]] == 0:
                        reached[targets[k]] = 1


@kernel
def search(keys: Ints, starts: Int, time: TimeRules, ends: Int, table: KeyTable, targets: Ints, safe: Bytes) -> None:
    """Make all three passes over all times, made one as in `judge`.

    `keys` has room for all of them and begins with the pairs of the start, which are in the table.
    In the end the table has 1 for the pairs that are reached, and `safe` marks the rows that are
    safe at some of them.
    """
    row_ptr, out_ptr, jump, worst, bound, span, low, size, _ = time
    slots, number, shift = table
    slack = np.empty(len(bound), dtype=np.int64)
    count, p = np.int64(starts), np.int64(0)
    while p < count:
        state, within = _unpack(keys[p], span, low, size, bound, slack)
        for row in range(row_ptr[state], min(row_ptr[state + 1], ends)):
            if _keeps(row, worst, slack):
                for k in range(out_ptr[row], out_ptr[row + 1]):
                    key = within + jump[k]
                    if number[key] == EMPTY:
                        number[key] = np.int32(0)
                        keys[count] = key
                        count += np.int64(1)
        p += np.int64(1)
    while p > 0:
        p -= np.int64(1)
        state, within = _unpack(keys[p], span, low, size, bound, slack)
        alive = False
        for row in range(row_ptr[state], row_ptr[state + 1]):
            if _targets(row, within, slack, out_ptr, jump, worst, slots, number, shift, bool(row >= ends), targets):
                alive = True
                break
        if not alive:
            number[keys[p]] = EMPTY
        elif p < starts:
            number[keys[p]] = np.int32(1)
    for reached in keys[:count]:
        if number[reached] != np.int32(1):
            continue
        state, within = _unpack(reached, span, low, size, bound, slack)
        for row in range(row_ptr[state], row_ptr[state + 1]):
            if _targets(row, within, slack, out_ptr, jump, worst, slots, number, shift, bool(row >= ends), targets):
                safe[row] = 1
                for k in range(out_ptr[row], out_ptr[row] if row >= ends else out_ptr[row + 1]):
                    number[within + jump[k]] = np.int32(1)


@inlined
def rounding(terms: Int) -> float:
    """Return how far a mean of so many terms can be off, in units of their size."""
    return UNIT_ROUNDOFF * max(16.0, 2.0 * terms + 6.0)


@inlined
def _add_up(
    begin: Int, count: Int, targets: Ints, prob: Floats, reward: float, digit: float, following: Floats, column: Int,
    off: Int, q: Floats, at: Int,
) -> None:  # fmt: skip
    """Write reward plus expected following number of a column to q[at, column].

    What it can be off by goes to q[at, off].
    """
    total, size, before = 0.0, 0.0, 0.0
    for k in range(count):
        term = prob[begin + k] * following[targets[k], column]
        total += term
        size += abs(term)
        before += prob[begin + k] * following[targets[k], off]
    q[at, column] = reward + total
    q[at, off] = before + digit + rounding(count) * (abs(reward) + size)


@inlined
def _expected(begin: Int, count: Int, targets: Ints, prob: Floats, following: Floats, column: Int) -> float:
    total = 0.0
    for k in range(count):
        total += prob[begin + k] * following[targets[k], column]
    return total


@inlined
def _deviation(
    i: Int, first: Int, begin: Int, end: Int, support: Ints, chance: Floats, action: Small,
    move: Small, offset: Int, actions: Int, known: Bytes, q: Floats, part: Floats, asked: Ints, interim: bool,
) -> tuple[float, float]:  # fmt: skip
    """Return W_i at one pair, and what it can be off by.

    W_i is the best action in place of each recommendation if the player is told, else one for all
    of them; then following is one more choice.
    """
    n = action.shape[1]
    choices = actions if interim else actions + np.int64(1)
    for e in range(begin, end):
        row = support[e]
        heard = np.int64(action[row, i]) if interim else np.int64(0)
        if asked[heard] == 0:
            for b in range(choices):
                part[heard, b, 0] = part[heard, b, 1] = part[heard, b, 2] = 0.0
        asked[heard] += 1
        for b in range(choices):
            other = row if b == actions else np.int64(move[row, offset + b])
            if other >= 0 and known[other - first] == SAFE and q[other - first, n + i] != -np.inf:
                term = chance[e] * q[other - first, n + i]
                part[heard, b, 0] += term
                part[heard, b, 1] += abs(term)
                part[heard, b, 2] += chance[e] * q[other - first, 3 * n + i]
            else:
                part[heard, b, 0] = -np.inf
    total, size, off, groups = 0.0, 0.0, 0.0, np.int64(0)
    for own in range(actions):
        if asked[own] > 0:
            share = rounding(asked[own])
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
        off += rounding(groups) * size
    return total, off


@inlined
def judge_pair(
    p: Int, key: Int, begin: Int, end: Int, time: TimeRules, table: KeyTable, numbers: Numbers, base: Floats, ends: Int,
    played: PlayedRows, interim: bool, following: LayerValues, result: LayerValues, scratch: PairScratch, slack: Ints,
) -> Int:  # fmt: skip
    """Evaluate the policy and the best deviations from it at one pair, as `judge` does.

    The policy plays the entries begin .. end-1 there. Write what is found to place p; return the
    last row played that is not in FA, or -1.
    """
    row_ptr, out_ptr, jump, worst, bound, span, low, size, _ = time
    prob, reward, cost, stored, action, move, offset = numbers
    _, support, chance = played
    next_values, next_ahead, next_fault = following
    values, ahead, fault = result
    q, known, targets, part, asked = scratch
    slots, number, shift = table
    n, states = reward.shape[1], (len(row_ptr) - 1) // len(base)
    state, within = _unpack(key, span, low, size, bound, slack)
    first, shared = row_ptr[state], state // states
    last = first >= ends
    rows = row_ptr[state + 1] - first
    for j in range(rows):
        known[j] = UNASKED
    for e in range(begin, end):
        for d in range(move.shape[1]):
            if move[support[e], d] >= 0:
                known[move[support[e], d] - first] = ASKED
    for e in range(begin, end):
        known[support[e] - first] = PLAYED if chance[e] >= VERIFY else RARE
    for i in range(n):
        values[p, 4 * n + i], values[p, 5 * n + i] = -np.inf, np.inf
    for j in range(rows):
        asked_for, row = known[j], first + j
        if not _targets(row, within, slack, out_ptr, jump, worst, slots, number, shift, last, targets):
            known[j] = UNSAFE
            continue
        known[j] = SAFE
        out = out_ptr[row]
        count = np.int64(0) if last else out_ptr[row + 1] - out
        for i in range(n):
            pay, digit = reward[row, i] - base[shared, i], 2.0 * UNIT_ROUNDOFF * abs(reward[row, i])
            most = pay + _expected(out, count, targets, prob, next_values, 4 * n + i)
            values[p, 4 * n + i] = max(values[p, 4 * n + i], most)
            if asked_for >= ASKED:
                _add_up(out, count, targets, prob, pay, digit, next_values, n + i, 3 * n + i, q, j)
            if asked_for >= RARE:
                _add_up(out, count, targets, prob, pay, digit, next_values, i, 2 * n + i, q, j)
            if asked_for == PLAYED:
                least = pay + _expected(out, count, targets, prob, next_values, 5 * n + i)
                values[p, 5 * n + i] = min(values[p, 5 * n + i], least)
    outside = np.int64(-1)
    for e in range(begin, end):
        if known[support[e] - first] == UNSAFE:
            outside = support[e]
    for m in range(ahead.shape[1]):
        ahead[p, m] = LEAST
    if begin == end or outside >= 0:
        fault[p] = 1
        for i in range(6 * n):
            values[p, i] = np.nan
        return outside
    for i in range(n):
        own, absolute, off = 0.0, 0.0, 0.0
        for e in range(begin, end):
            term = chance[e] * q[support[e] - first, i]
            own += term
            absolute += abs(term)
            off += chance[e] * q[support[e] - first, 2 * n + i]
        values[p, i] = own
        values[p, 2 * n + i] = off + rounding(end - begin) * absolute
    fault[p] = 0
    for e in range(begin, end):
        for k in range(out_ptr[support[e]], out_ptr[support[e] + 1]):
            target = np.int64(0) if last else np.int64(number[_slot(slots, shift, within + jump[k])])
            fault[p] |= np.uint8(0) if last else next_fault[target]
            for m in range(len(bound)):
                later = np.int64(0) if last else next_ahead[target, m]
                ahead[p, m] = max(ahead[p, m], cost[k, m] + max(np.int64(0), later))
            for r in range(np.int64(0) if last else len(stored)):
                later = max(next_ahead[target, stored[r]], next_ahead[target, len(bound) + r])
                ahead[p, len(bound) + r] = max(ahead[p, len(bound) + r], later)
    for r in range(len(stored)):
        ahead[p, len(bound) + r] = max(ahead[p, len(bound) + r], np.int64(0))
    for i in range(n):
        values[p, n + i], values[p, 3 * n + i] = _deviation(
            i, first, begin, end, support, chance, action, move, offset[i], offset[i + 1] - offset[i], known, q,
            part, asked, interim,
        )  # fmt: skip
    return outside


@kernel
def judge(
    keys: Ints,
    time: TimeRules,
    table: KeyTable,
    numbers: Numbers,
    base: Floats,
    ends: Int,
    played: PlayedRows,
    interim: bool,
    following: LayerValues,
    result: LayerValues,
    outside: Ints,
    scratch: PairScratch,
) -> None:
    """Evaluate the policy and the best deviations from it at pairs of one time, or of all times.

    All times are made one by numbering states and rows through, time after time. Then `following`
    is `found` itself: the last pairs are judged first.

    Args:
        keys, time, table: the pairs, and the subgames of the next time.
        numbers, base: those of this time, and what is to be taken out of rewards, (T, N); each line
            is for as many states as any other.
        ends: nothing follows after the rows from this one on.
        played: what the policy plays.
        told: a deviator hears its recommendation first.
        following: what is known of the next time; all zero after the last.
        found: the same of this time, to be written.
        outside: (P,) is set to the last row played that is not in FA, or -1.
        scratch: room for one pair.
    """
    ptr, slack = played.ptr, np.empty(len(time.bound), dtype=np.int64)
    for back in range(len(keys)):
        p = len(keys) - 1 - back
        outside[p] = judge_pair(
            p, keys[p], ptr[p], ptr[p + 1], time, table, numbers, base, ends, played, interim, following, result, scratch, slack
        )  # fmt: skip
