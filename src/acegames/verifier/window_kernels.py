"""The compiled passes again, for tables with a slot for every key: 64 neighbours at once.

The keys of a *line* differ in what was spent of the last constraint only. A *window* is a run of at
most LANES keys of one line, its lanes, from the first that is a pair. Outcome k leads from lane l
to the key within + jump[k] + l, so what is known of the next time is read in one run, and the loops
over lanes become vector instructions. Lanes that are no pairs are worked out too, and not looked
at. What is known of the next time is more than a cache holds, so the same line of all states is
judged before the next line (`order_by_line`). Arrays by key have room for LANES more, because
windows may reach beyond the last key. Numbers are added up in the same order as in `pair_kernels`,
and so are the same to the last bit.
"""

from __future__ import annotations

import numpy as np

from acegames.numerics import UNIT_ROUNDOFF, VERIFY
from acegames.system.compiled import inlined, inner, kernel
from acegames.verifier.basics import (
    Bytes,
    Floats,
    Int,
    Ints,
    KeyedValues,
    LayerValues,
    Numbers,
    PlayedRows,
    Small,
    TimeRules,
    WindowScratch,
)
from acegames.verifier.pair_kernels import LEAST, rounding

LANES = 64
_WHOLE = 32
"""Lanes are worked out in multiples of this, which vector instructions share without a rest."""


@inlined
def _window(
    keys: Ints, p: Int, span: Int, low: Ints, size: Ints, bound: Ints, slack: Ints, lane: Ints
) -> tuple[Int, Int, Int, Int]:
    """Write what is left of each budget in the window that begins with pair p, and its lanes.

    Return the state, the key within it, how many pairs the window has, and how many lanes.
    """
    final = len(low) - 1
    key = keys[p]
    state = key // span
    within = key - state * span
    rest = within
    ending = key + LANES
    for back in range(len(low)):
        m = final - back
        above = rest // size[m]
        slack[m] = bound[m] - low[m] - (rest - above * size[m])
        if m == final:
            ending = min(ending, key - rest + (above + 1) * size[m])
        rest = above
    many = np.int64(1)
    lane[0] = 0
    while p + many < len(keys) and key < keys[p + many] < ending:
        lane[many] = keys[p + many] - key
        many += np.int64(1)
    return state, within, many, (lane[many - 1] // _WHOLE + np.int64(1)) * _WHOLE


@inlined
def _keeping(row: Int, worst: Ints, slack: Ints) -> Int:
    """Return in how many lanes a row keeps the budgets: the first ones, which have spent less."""
    final = len(slack) - 1
    m = np.int64(0)
    while m < final and worst[row, m] <= slack[m]:
        m += np.int64(1)
    return slack[final] - worst[row, final] + np.int64(1) if m == final else np.int64(0)


@inlined
def _safe(
    row: Int, at: Int, within: Int, lanes: Int, slack: Ints, out_ptr: Ints, jump: Ints, worst: Ints, last: bool,
    alive: Bytes, safe: Bytes,
) -> bool:  # fmt: skip
    """Write to safe[at] in which lanes a row is in FA; return whether in any."""
    keeping = _keeping(row, worst, slack)
    for x in range(lanes):
        safe[at, x] = x < keeping
    if keeping <= 0:
        return False
    for k in range(out_ptr[row], out_ptr[row] if last else out_ptr[row + 1]):
        to = np.uint64(within + jump[k])
        for x in range(lanes):
            safe[at, x] &= alive[to + np.uint64(x)]
    some = np.uint8(0)
    for x in range(lanes):
        some |= safe[at, x]
    return bool(some > 0)


@inner
def _mark_own(safe: Bytes, lane: Ints, many: Int, lanes: Int) -> None:
    """Mark in the first row the lanes that have pairs."""
    for x in range(lanes):
        safe[0, x] = 0
    for x in range(many):
        safe[0, lane[x]] = 1


@kernel
def mark_successors(keys: Ints, time: TimeRules, marks: Bytes, workspace: WindowScratch) -> None:
    """Mark the keys that rows lead to which keep the budgets."""
    row_ptr, out_ptr, jump, worst, bound, span, low, size, _ = time
    _, _, safe, lane, slack, _, _, _, _, _ = workspace
    p = np.int64(0)
    while p < len(keys):
        state, within, many, lanes = _window(keys, p, span, low, size, bound, slack, lane)
        _mark_own(safe, lane, many, lanes)
        for row in range(row_ptr[state], row_ptr[state + 1]):
            keeping = _keeping(row, worst, slack)
            if keeping <= 0:
                continue
            for x in range(lanes):
                safe[1, x] = safe[0, x] & np.uint8(x < keeping)
            for k in range(out_ptr[row], out_ptr[row + 1]):
                to = np.uint64(within + jump[k])
                for x in range(lanes):
                    marks[to + np.uint64(x)] |= safe[1, x]
        p += many


@kernel
def mark_alive(keys: Ints, time: TimeRules, following: Bytes, workspace: WindowScratch, alive: Bytes) -> None:
    """Mark the pairs that have a safe row, given the keys of the next time that are alive."""
    row_ptr, out_ptr, jump, worst, bound, span, low, size, last = time
    _, _, safe, lane, slack, _, _, _, _, _ = workspace
    p = np.int64(0)
    while p < len(keys):
        state, within, many, lanes = _window(keys, p, span, low, size, bound, slack, lane)
        dead = many
        for row in range(row_ptr[state], row_ptr[state + 1]):
            if dead and _safe(row, 0, within, lanes, slack, out_ptr, jump, worst, last, following, safe):
                dead = np.int64(0)
                for x in range(many):
                    alive[p + x] |= safe[0, lane[x]]
                    dead += np.int64(1) - alive[p + x]
        p += many


@kernel
def mark_reached(
    keys: Ints, time: TimeRules, following: Bytes, workspace: WindowScratch, used: Bytes, marks: Bytes
) -> None:
    """Mark the rows that are safe at some pair, and the keys of the next time they lead to.

    `following` says which of these are alive.
    """
    row_ptr, out_ptr, jump, worst, bound, span, low, size, last = time
    _, _, safe, lane, slack, _, _, _, _, _ = workspace
    p = np.int64(0)
    while p < len(keys):
        state, within, many, lanes = _window(keys, p, span, low, size, bound, slack, lane)
        _mark_own(safe, lane, many, lanes)
        for row in range(row_ptr[state], row_ptr[state + 1]):
            if last and used[row]:
                continue
            if not _safe(row, 1, within, lanes, slack, out_ptr, jump, worst, last, following, safe):
                continue
            some = np.uint8(0)
            for x in range(lanes):
                safe[1, x] &= safe[0, x]
                some |= safe[1, x]
            used[row] |= some
            for k in range(out_ptr[row], out_ptr[row] if last or not some else out_ptr[row + 1]):
                to = np.uint64(within + jump[k])
                for x in range(lanes):
                    marks[to + np.uint64(x)] |= safe[1, x]
        p += many


@kernel
def order_by_line(keys: Ints, pairs: Ints, span: Int, length: Int, begin: Ints, order: Ints) -> None:
    """Write to `order` how to go through these pairs line by line, the same line of all states.

    Lines that are near to each other lead to lines that are. `length` is that of a line; `begin`
    is room for the lines of a state, and one more, all zero.
    """
    for placing in (False, True):
        line, ending = np.int64(0), np.int64(-1)
        for p in range(len(pairs)):
            key = keys[pairs[p]]
            if key >= ending:
                line = key % span // length
                ending = key - key % length + length
            if placing:
                order[begin[line]] = p
                begin[line] += 1
            else:
                begin[line + 1] += 1
        for after in range(1, len(begin)):
            begin[after] += begin[after - 1]


@kernel
def spread_by_key(keys: Ints, owner: Ints, known: LayerValues, ahead: KeyedValues) -> None:
    """Write to every key what is known of the pair that stands for it."""
    values, most, fault = known
    alive, high, deviating, own, spent, faulty = ahead
    n = len(high)
    for p in range(len(keys)):
        key, q = np.uint64(keys[p]), np.uint64(owner[p])
        alive[key] = 1
        faulty[key] = fault[q]
        for i in range(n):
            high[i, key] = values[q, 4 * n + i]
            deviating[i, key] = values[q, n + i]
            deviating[n + i, key] = values[q, 3 * n + i]
            own[i, key] = values[q, i]
            own[n + i, key] = values[q, 2 * n + i]
            own[2 * n + i, key] = values[q, 5 * n + i]
        for m in range(most.shape[1]):
            spent[m, key] = most[q, m]


@inlined
def _best(
    i: Int, j: Int, within: Int, lanes: Int, begin: Int, end: Int, jump: Ints, prob: Floats, pay: float, high: Floats,
    safe: Bytes, sums: Floats, best: Floats,
) -> None:  # fmt: skip
    """Raise best[i] to what a row brings at most, in the lanes where it is safe."""
    for x in range(lanes):
        sums[x] = 0.0
    for k in range(begin, end):
        p, to = prob[k], np.uint64(within + jump[k])
        for x in range(lanes):
            sums[x] += p * high[i, to + np.uint64(x)]
    for x in range(lanes):
        brought = pay + sums[x]
        best[i, x] = brought if safe[j, x] and brought > best[i, x] else best[i, x]


@inlined
def _add_up(
    i: Int, n: Int, j: Int, within: Int, lanes: Int, begin: Int, end: Int, jump: Ints, prob: Floats, pay: float,
    digit: float, deviating: Floats, safe: Bytes, sums: Floats, q: Floats,
) -> None:  # fmt: skip
    """Write reward plus expected W_i, or -inf where the row is not safe, to q[j, i].

    What it can be off by goes to q[j, n + i].
    """
    for x in range(lanes):
        sums[x] = sums[LANES + x] = sums[2 * LANES + x] = 0.0
    for k in range(begin, end):
        p, to = prob[k], np.uint64(within + jump[k])
        for x in range(lanes):
            term = p * deviating[i, to + np.uint64(x)]
            sums[x] += term
            sums[LANES + x] += abs(term)
            sums[2 * LANES + x] += p * deviating[n + i, to + np.uint64(x)]
    share = rounding(end - begin)
    for x in range(lanes):
        q[j, i, x] = pay + sums[x] if safe[j, x] else -np.inf
        q[j, n + i, x] = sums[2 * LANES + x] + digit + share * (abs(pay) + sums[LANES + x])


@inlined
def _follow(
    i: Int, n: Int, j: Int, within: Int, lanes: Int, begin: Int, end: Int, jump: Ints, prob: Floats, pay: float,
    digit: float, own: Floats, sums: Floats, q: Floats,
) -> None:  # fmt: skip
    """Write reward plus expected V_i to q[j, 2n + i], what that can be off by to q[j, 3n + i].

    The worst that the policy brings after the row goes to q[j, 4n + i].
    """
    for x in range(lanes):
        sums[x] = sums[LANES + x] = sums[2 * LANES + x] = sums[3 * LANES + x] = 0.0
    for k in range(begin, end):
        p, to = prob[k], np.uint64(within + jump[k])
        for x in range(lanes):
            term = p * own[i, to + np.uint64(x)]
            sums[x] += term
            sums[LANES + x] += abs(term)
            sums[2 * LANES + x] += p * own[n + i, to + np.uint64(x)]
            sums[3 * LANES + x] += p * own[2 * n + i, to + np.uint64(x)]
    share = rounding(end - begin)
    for x in range(lanes):
        q[j, 2 * n + i, x] = pay + sums[x]
        q[j, 3 * n + i, x] = sums[2 * LANES + x] + digit + share * (abs(pay) + sums[LANES + x])
        q[j, 4 * n + i, x] = pay + sums[3 * LANES + x]


@inlined
def _spend(
    j: Int, within: Int, lanes: Int, begin: Int, end: Int, last: bool, jump: Ints, cost: Ints, stored: Ints, ahead: Ints,
    far: Ints,
) -> None:  # fmt: skip
    """Write the most that is spent from a row on to far[j], as in `Known`."""
    width = cost.shape[1]
    for m in range(width):
        for x in range(lanes):
            far[j, m, x] = LEAST
        for k in range(begin, end):
            to, more = np.uint64(within + jump[k]), cost[k, m]
            if last:
                for x in range(lanes):
                    far[j, m, x] = max(far[j, m, x], more)
            else:
                for x in range(lanes):
                    far[j, m, x] = max(far[j, m, x], more + max(np.int64(0), ahead[m, to + np.uint64(x)]))
    for r in range(len(stored)):
        for x in range(lanes):
            far[j, width + r, x] = 0
        for k in range(begin, begin if last else end):
            to = np.uint64(within + jump[k])
            for x in range(lanes):
                full = max(ahead[stored[r], to + np.uint64(x)], ahead[width + r, to + np.uint64(x)])
                far[j, width + r, x] = max(far[j, width + r, x], full)


@inlined
def _deviation(
    i: Int, n: Int, x: Int, first: Int, begin: Int, end: Int, support: Ints, chance: Floats, action: Small,
    move: Small, offset: Int, actions: Int, q: Floats, part: Floats, asked: Ints, interim: bool,
) -> tuple[float, float]:  # fmt: skip
    """Return W_i in lane x, and what it can be off by, as in `pair_kernels`."""
    choices = actions if interim else actions + np.int64(1)
    if begin + 1 == end:  # pure play, mostly: the same sums of one term
        row, p, best, more, share = support[begin], chance[begin], -np.inf, 0.0, rounding(1)
        for b in range(choices):
            other = row if b == actions else np.int64(move[row, offset + b])
            value, spare = -np.inf, 0.0
            if other >= 0 and q[other - first, i, x] != -np.inf:
                value = 0.0 + p * q[other - first, i, x]
                spare = p * q[other - first, n + i, x] + share * abs(value)
            part[0, b, 0], part[0, b, 1] = value, spare
            if best == best and not (value <= best):
                best = value
        for b in range(choices):
            more = max(more, part[0, b, 0] - best + part[0, b, 1])
        return 0.0 + best, 0.0 + more
    for e in range(begin, end):
        asked[np.int64(action[support[e], i]) if interim else np.int64(0)] += np.int64(1)
    total, size, off, groups = 0.0, 0.0, 0.0, np.int64(0)
    for heard in range(actions):
        if asked[heard] == 0:
            continue
        share = rounding(asked[heard])
        asked[heard] = 0
        best, more = -np.inf, 0.0
        for b in range(choices):
            value, abs_total, before = 0.0, 0.0, 0.0
            for e in range(begin, end):
                row = support[e]
                if interim and action[row, i] != heard:
                    continue
                other = row if b == actions else np.int64(move[row, offset + b])
                if other >= 0 and q[other - first, i, x] != -np.inf:
                    term = chance[e] * q[other - first, i, x]
                    value += term
                    abs_total += abs(term)
                    before += chance[e] * q[other - first, n + i, x]
                else:
                    value = -np.inf
            part[0, b, 0], part[0, b, 1] = value, before + share * abs_total
            if best == best and not (value <= best):  # NaN stays
                best = value
        for b in range(choices):
            more = max(more, part[0, b, 0] - best + part[0, b, 1])
        total += best
        size += abs(best)
        off += more
        groups += np.int64(1)
    if groups > 1:
        off += rounding(groups) * size
    return total, off


@kernel
def judge_windows(
    keys: Ints,
    time: TimeRules,
    numbers: Numbers,
    base: Floats,
    played: PlayedRows,
    interim: bool,
    following: KeyedValues,
    sound: bool,
    result: LayerValues,
    place: Ints,
    outside: Ints,
    workspace: WindowScratch,
) -> None:
    """Do what `pair_kernels.judge` does; of the next time everything is found by key.

    What is found of pair p is written to `place[p]`. `sound` says that there is no fault at the
    next time.
    """
    row_ptr, out_ptr, jump, worst, bound, span, low, size, last = time
    prob, reward, cost, stored, action, move, offset = numbers
    ptr, support, chance = played
    alive, high, deviating, own, next_ahead, next_fault = following
    values, ahead, fault = result
    q, wanted, safe, lane, slack, best, sums, part, asked, most = workspace
    n = reward.shape[1]
    p = np.int64(0)
    while p < len(keys):
        state, within, many, lanes = _window(keys, p, span, low, size, bound, slack, lane)
        first = row_ptr[state]
        rows = row_ptr[state + 1] - first
        for j in range(rows):
            wanted[j] = 0
        for e in range(ptr[p], ptr[p + many]):
            if wanted[support[e] - first] < 2:
                for d in range(move.shape[1]):
                    if move[support[e], d] >= 0:
                        wanted[move[support[e], d] - first] |= 1
                wanted[support[e] - first] = 2
        for i in range(n):
            for x in range(lanes):
                best[i, x] = -np.inf
        for j in range(rows):
            row = first + j
            if not _safe(row, j, within, lanes, slack, out_ptr, jump, worst, last, alive, safe):
                for i in range(n):
                    for x in range(lanes):
                        q[j, i, x] = -np.inf
                continue
            begin = out_ptr[row]
            end = begin if last else out_ptr[row + 1]
            for i in range(n):
                pay, digit = reward[row, i] - base[i], 2.0 * UNIT_ROUNDOFF * abs(reward[row, i])
                _best(i, j, within, lanes, begin, end, jump, prob, pay, high, safe, sums, best)
                if wanted[j]:
                    _add_up(
                        i, n, j, within, lanes, begin, end, jump, prob, pay, digit, deviating, safe, sums, q
                    )  # fmt: skip
                if wanted[j] >= 2:
                    _follow(i, n, j, within, lanes, begin, end, jump, prob, pay, digit, own, sums, q)
            if wanted[j] >= 2:
                _spend(j, within, lanes, begin, out_ptr[row + 1], last, jump, cost, stored, next_ahead, most)
        for pair in range(p, p + many):
            x, to = lane[pair - p], place[pair]
            begin, end = ptr[pair], ptr[pair + 1]
            outside[pair] = -1
            for e in range(begin, end):
                if not safe[support[e] - first, x]:
                    outside[pair] = support[e]
            if begin == end or outside[pair] >= 0:
                fault[to] = 1
                ahead[to, :] = LEAST
                for i in range(6 * n):
                    values[to, i] = np.nan
                continue
            fault[to] = 0
            for e in range(begin, begin if sound else end):
                for k in range(out_ptr[support[e]], out_ptr[support[e] + 1]):
                    fault[to] |= next_fault[np.uint64(within + x + jump[k])]
            for m in range(ahead.shape[1]):
                far = LEAST
                for e in range(begin, end):
                    far = max(far, most[support[e] - first, m, x])
                ahead[to, m] = far
            for i in range(n):
                value, size_of, off, least = 0.0, 0.0, 0.0, np.inf
                for e in range(begin, end):
                    j = support[e] - first
                    term = chance[e] * q[j, 2 * n + i, x]
                    value += term
                    size_of += abs(term)
                    off += chance[e] * q[j, 3 * n + i, x]
                    if chance[e] >= VERIFY:
                        least = min(least, q[j, 4 * n + i, x])
                values[to, i] = value
                values[to, 2 * n + i] = off + rounding(end - begin) * size_of
                values[to, 4 * n + i], values[to, 5 * n + i] = best[i, x], least
                values[to, n + i], values[to, 3 * n + i] = _deviation(
                    i, n, x, first, begin, end, support, chance, action, move, offset[i], offset[i + 1] - offset[i], q,
                    part, asked, interim,
                )  # fmt: skip
        p += many
