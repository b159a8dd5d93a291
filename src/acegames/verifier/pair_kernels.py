"""The compiled loops of the verifier: safe pairs, values and best deviations (spec 2, 7).

A pair (state, spent) is one number, its *key* (`pair_keys`). An outcome moves a key by a fixed
`jump`, so no successor is ever stored. Keys that differ in what was spent of the last constraint
only, and by little, are neighbours, and outcomes lead from neighbours to neighbours. So pairs are
looked at in *windows*: up to LANES neighbours in order of their keys, from a pair on.

What is known of the next time lies at *positions*, and every window is worked out by the same
functions in one of two ways:

    index is None   a position is a key less the `origin`: an outcome leads from lane x to the
                    position targets[k] + x. The loops over lanes become vector instructions.
                    Lanes that are no pairs are worked out too, and not looked at. Arrays have room
                    for LANES more, because windows may reach beyond the last key.
    index is given  a position is the place of a key among those of the next time, in order. Windows
                    have one lane. This is for pairs that lie sparsely.

A GPU has the first way, with one lane. Numbers are added up in the same order in all of them, and
so are the same to the last bit. Kernels allocate nothing. They unpack their records first: an array
that is read through a tuple inside a loop is reference-counted every time.
"""

from __future__ import annotations

import numpy as np

from acegames.model.arrays import Bytes, Floats, Ints
from acegames.numerics import PROBABILITY_SUM, UNIT_ROUNDOFF, VERIFY
from acegames.system.compiled import inlined, kernel
from acegames.verifier.basics import LANES, Int, Judging, LayerValues, Small, TimeRules, WindowWorkspace, wasted

_WHOLE = 32
"""Lanes are worked out in multiples of this, which vector instructions share without a rest."""
_LEAST = np.iinfo(np.int64).min


# -- pairs and where they lead ---------------------------------------------------------------------


@inlined
def open_key(key: Int, states: Int, time: TimeRules, spent: Ints) -> Int:
    """Write what was spent at a key (M,); return the state."""
    stride, size, low = time.stride, time.size, time.low
    for m in range(len(spent)):
        spent[m] = key // stride[m] % size[m] + low[m]
    return key // time.line % states


@inlined
def _neighbours(keys: Ints, p: Int, line: Int, lane: Ints) -> tuple[np.int64, np.int64]:
    """Write the lanes of the pairs in the window of pair p; return how many pairs and lanes.

    Keys are in order, or runs of them are, each of its own states.
    """
    key = keys[p]
    ending = min(key + np.int64(LANES), key - key % line + np.int64(line))
    many = np.int64(1)
    lane[0] = 0
    while p + many < len(keys) and key < keys[p + many] < ending:
        lane[many] = keys[p + many] - key
        many += np.int64(1)
    return many, (lane[many - 1] // _WHOLE + np.int64(1)) * _WHOLE


@inlined
def _keeping(row: Int, spent: Ints, ceiling: Ints) -> Int:
    """Return in how many lanes a row keeps the budgets: the first ones, which have spent less."""
    final = len(spent) - 1
    m = np.int64(0)
    while m < final and spent[m] <= ceiling[row, m]:  # numba would make vectors of a plain loop
        m += np.int64(1)
    if m < final:
        return np.int64(0)
    return np.int64(LANES) if final < 0 else ceiling[row, final] - spent[final] + np.int64(1)


@inlined
def _when_full(key: Int, k: Int, lanes: Int, spent: Ints, cost: Ints, stored: Ints, stride: Ints) -> Int:
    """Return the key that an outcome leads to, where no reservoir is more than full.

    Of the last constraint the lanes of a window are not cut; see `Positions`.
    """
    for r in range(len(stored)):
        m = stored[r]
        if lanes == 1 or m < len(spent) - 1:
            key += stride[m] * wasted(spent[m], cost[k, m])
    return key


@inlined
def _place_of(index: Ints, key: Int, hint: Int) -> Int:
    """Return the last place whose key is at most this, -1 where there is none.

    It is looked for from a place on, because keys mostly come in order.
    """
    step, low, high = np.int64(1), np.int64(-1), np.int64(len(index))
    if hint < high and index[hint] <= key:
        low = np.int64(hint)
        while low + step < high and index[low + step] <= key:
            low += step
            step += step
        high = min(low + step, high)
    while high - low > 1:
        middle = (low + high) >> 1
        if index[middle] <= key:
            low = middle
        else:
            high = middle
    return low


@inlined
def _safe(
    row: Int, at: Int, key: Int, lanes: Int, time: TimeRules, index: Ints | None, origin: Int, alive: Bytes, sure: bool,
    workspace: WindowWorkspace,
) -> bool:  # fmt: skip
    """Write to safe[at] in which lanes a row is in FA, and where it leads; return whether in any.

    With `sure`, every row that keeps the budgets is.
    """
    out_ptr, jump, cost, stored, stride = time.out_ptr, time.jump, time.cost, time.stored, time.stride
    spent, safe, targets, cursor = workspace.spent, workspace.safe, workspace.targets, workspace.cursor
    keeping = _keeping(row, spent, time.ceiling)
    for x in range(lanes):
        safe[at, x] = x < keeping
    if keeping <= 0:
        return False
    begin = out_ptr[row]
    for k in range(begin, begin if time.last else out_ptr[row + 1]):
        to = _when_full(key + jump[k], k, lanes, spent, cost, stored, stride) - origin
        if index is not None:
            place = _place_of(index, to, cursor[k])
            cursor[k] = max(place, np.int64(0))
            if place < 0 or index[place] != to:
                safe[at, 0] = 0
                return False
            to = place
        targets[k - begin] = to
        if not sure:
            for x in range(lanes):
                safe[at, x] &= alive[np.uint64(to) + np.uint64(x)]
    some = np.uint8(0)
    for x in range(lanes):
        some |= safe[at, x]
    return bool(some > 0)


@kernel
def sweep(
    keys: Ints, time: TimeRules, index: Ints | None, origin: Int, alive: Bytes, sure: bool, forward: bool,
    workspace: WindowWorkspace, own: Bytes, used: Bytes, led: Bytes,
) -> None:  # fmt: skip
    """Mark the pairs that have a safe row; forward also the safe rows, and where they lead.

    Args:
        keys: (P,) pairs of one time, in order.
        time, index, origin: what can happen, and where the next time lies.
        alive: by position, the pairs of the next time from which play can go on.
        sure: every row that keeps the budgets is safe; nothing is looked up in `alive`.
        workspace: room for one window.
        own, used: (P,), (R,) marks of pairs and of rows.
        led: marks by position, of the next time; as long as `alive` would be.
    """
    row_ptr, out_ptr, last = time.row_ptr, time.out_ptr, time.last
    lane, safe, targets = workspace.lane, workspace.safe, workspace.targets
    here, row_safe, pair_safe = safe[0], safe[1], safe[2]
    p = np.int64(0)
    while p < len(keys):
        many = lanes = np.int64(1)
        if index is None:
            many, lanes = _neighbours(keys, p, time.line, lane)
        for x in range(lanes):
            here[x] = pair_safe[x] = 0
        for x in range(many):
            here[lane[x]] = 1
        state = open_key(keys[p], len(row_ptr) - 1, time, workspace.spent)
        left = True
        for row in range(row_ptr[state], row_ptr[state + 1]):
            if (not left and (not forward or (last and used[row]))) or not _safe(
                row, 1, keys[p], lanes, time, index, origin, alive, sure, workspace
            ):
                continue
            some = np.uint8(0)
            for x in range(lanes):
                row_safe[x] &= here[x]
                some |= row_safe[x]
                pair_safe[x] |= row_safe[x]
            lacking = np.uint8(0)
            for x in range(lanes):
                lacking |= here[x] ^ pair_safe[x]
            left = bool(lacking > 0)
            if forward and some:
                if used[row] == 0:  # threads would wait for each other's writes
                    used[row] = 1
                for k in range(np.int64(0) if last else out_ptr[row + 1] - out_ptr[row]):
                    to = np.uint64(targets[k])
                    for x in range(lanes):
                        led[to + np.uint64(x)] |= row_safe[x]
        for x in range(many):
            own[p + x] = pair_safe[lane[x]]
        p += many


@kernel
def list_successors(keys: Ints, time: TimeRules, spent: Ints, own: Bytes, used: Bytes, led: Ints) -> int:
    """Write where the rows lead that keep the budgets; return how many keys these are.

    Args:
        keys: (P,) pairs of one time, in any order.
        time: what can happen.
        spent: (M,) room.
        own, used: (P,), (R,) marks of the pairs that have such a row, and of the rows.
        led: room for the keys, one for each outcome of the rows of each pair; some may be equal.
    """
    row_ptr, out_ptr, jump = time.row_ptr, time.out_ptr, time.jump
    cost, stored, stride = time.cost, time.stored, time.stride
    count = np.int64(0)
    for p in range(len(keys)):
        state = open_key(keys[p], len(row_ptr) - 1, time, spent)
        for row in range(row_ptr[state], row_ptr[state + 1]):
            if _keeping(row, spent, time.ceiling) <= 0:
                continue
            own[p] = 1
            used[row] = 1
            for k in range(out_ptr[row], out_ptr[row] if time.last else out_ptr[row + 1]):
                led[count] = _when_full(keys[p] + jump[k], k, np.int64(1), spent, cost, stored, stride)
                count += np.int64(1)
    return int(count)


@kernel
def unpack(keys: Ints, time: TimeRules, state: Ints, spent: Ints) -> None:
    """Write the state (P,) and what was spent (P, M) of each key."""
    final, states, ending = spent.shape[1] - 1, len(time.row_ptr) - 1, np.int64(-1)
    for p in range(len(keys)):
        if p > 0 and keys[p - 1] <= keys[p] < ending:  # in the same line
            state[p] = state[p - 1]
            for m in range(final + 1):
                spent[p, m] = spent[p - 1, m]
            spent[p, final] += keys[p] - keys[p - 1]
        else:
            state[p] = open_key(keys[p], states, time, spent[p])
            ending = keys[p] - keys[p] % time.line + time.line


@kernel
def ceilings(
    row_ptr: Ints, out_ptr: Ints, next_state: Small, cost: Ints, bound: Ints, following: Ints, stored: Ints, beyond: Int,
    over_all: bool, rows: Ints, here: Ints,
) -> None:  # fmt: skip
    """Write the ceilings of rows (R, M) and of states (S, M), see `Ceilings`.

    Those of a state are the least of its rows (`over_all`), or else the largest. `bound` (M,) and
    `following` (S, M) hold after acting, the outcomes cost `cost` (K, M), and `stored` (R,) are the
    constraints that are reservoirs. Nobody can have spent more than `beyond`. Also run as plain
    Python, on integers of any size.
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


# -- what the policy answers -----------------------------------------------------------------------


@kernel
def check_answers(state: Ints, row_ptr: Ints, ptr: Ints, row: Ints, prob: Floats, chance: Floats) -> bool:
    """Return whether the rows at each pair are legal, with positive probabilities that sum to one.

    Write these probabilities, made to sum to one as nearly as can be, to `chance` (E,). Pair p has
    the state state[p], (P,), and the entries ptr[p] .. ptr[p+1]-1, (P+1,), of row and prob, (E,).
    """
    for p in range(len(state)):
        total, good, low, high = 0.0, ptr[p] < ptr[p + 1] <= len(row), row_ptr[state[p]], row_ptr[state[p] + 1]
        for e in range(ptr[p], ptr[p + 1] if good else ptr[p]):
            good &= low <= row[e] < high and prob[e] > 0.0
            chance[e] = prob[e]
            total += prob[e]
        if not (good and abs(total - 1.0) <= PROBABILITY_SUM):
            return False
        for e in range(ptr[p], ptr[p] if total == 1.0 else ptr[p + 1]):  # division takes long
            chance[e] = prob[e] / total
    return True


@kernel
def clip(keys: Ints, time: TimeRules, floor: Ints, first: int, end: int, pair: Ints, clipped: Ints) -> int:
    """Write the pairs whose states are first .. end-1; return how many there are.

    Write beside each a number from 0 on, the same for all that have spent the same, raised to the
    floor of the state, (S, M). keys (P,), in order.
    """
    stride, size, line, states = time.stride, time.size, time.line, len(time.row_ptr) - 1
    final, p, count = len(stride) - 1, np.int64(0), np.int64(0)
    origin = keys[0] // line // states * (end - first) * line
    while p < len(keys):
        begin = keys[p] - keys[p] % line
        state = begin // line % states
        if first <= state < end:
            base, least = begin, floor[state, final]
            for m in range(final):
                base += stride[m] * max(floor[state, m] - begin // stride[m] % size[m], np.int64(0))
            base = (base // line // states * (end - first) + state - first) * line - origin
            while p < len(keys) and keys[p] < begin + line:
                pair[count], clipped[count] = p, base + max(keys[p] - begin, least)
                count, p = count + np.int64(1), p + np.int64(1)
        else:
            ahead = first - state if state < first else first - state + states
            p = _place_of(keys, begin + ahead * line - 1, p) + np.int64(1)
    return int(count)


@kernel
def merge(
    pair: Ints, clipped: Ints, number: Small, ptr: Ints, row: Ints, prob: Floats, first: Ints, owner: Ints
) -> int:
    """Number pairs (L,) whose entries of `clipped` (L,) are equal alike, in order; -1 where the
    policy does not play alike at them.

    What it plays at pair p are the entries ptr[p] .. ptr[p+1]-1 of row and prob. `number` has a
    place for each value of `clipped`, with -1. Write the first pair of each number, (L,) at most,
    and the number of each pair, to its place in `owner`; return how many numbers there are.
    """
    count = np.int64(0)
    for k in range(len(pair)):
        p, own = pair[k], np.int64(number[clipped[k]])
        if own < 0:
            own = count
            number[clipped[k]], first[count] = np.int32(count), p
            count += np.int64(1)
        owner[p] = own
        q = first[own]
        if ptr[p + 1] - ptr[p] != ptr[q + 1] - ptr[q]:
            return -1
        for e in range(ptr[p + 1] - ptr[p]):
            if row[ptr[q] + e] != row[ptr[p] + e] or prob[ptr[q] + e] != prob[ptr[p] + e]:
                return -1
    return int(count)


# -- values and deviations -------------------------------------------------------------------------


@inlined
def rounding(terms: Int) -> float:
    """Return how far a mean of so many terms can be off, in units of their size."""
    return UNIT_ROUNDOFF * max(16.0, 2.0 * terms + 6.0)


@inlined
def _mean(
    begin: Int, end: Int, lanes: Int, targets: Ints, prob: Floats, values: Floats, field: Int, sums: Floats
) -> None:  # fmt: skip
    """Write the expected next number of a field to sums, lane by lane."""
    for x in range(lanes):
        sums[x] = 0.0
    for k in range(begin, end):
        p, to = prob[k], np.uint64(targets[k - begin])
        for x in range(lanes):
            sums[x] += p * values[field, to + np.uint64(x)]


@inlined
def _add_up(
    begin: Int, end: Int, lanes: Int, targets: Ints, prob: Floats, pay: float, digit: float, values: Floats, field: Int,
    off: Int, sums: Floats, gap: Int, safe: Bytes, q: Floats, j: Int, column: Int, errors: Int,
) -> None:  # fmt: skip
    """Write reward plus the expected next number of a field to q[j, column], -inf where not safe.

    What it can be off by goes to q[j, errors].
    """
    for x in range(lanes):
        sums[x] = sums[gap + x] = sums[2 * gap + x] = 0.0
    for k in range(begin, end):
        p, to = prob[k], np.uint64(targets[k - begin])
        for x in range(lanes):
            term = p * values[field, to + np.uint64(x)]
            sums[x] += term
            sums[gap + x] += abs(term)
            sums[2 * gap + x] += p * values[off, to + np.uint64(x)]
    share = rounding(end - begin)
    for x in range(lanes):
        q[j, column, x] = pay + sums[x] if safe[j, x] else -np.inf
        q[j, errors, x] = sums[2 * gap + x] + digit + share * (abs(pay) + sums[gap + x])


@inlined
def _spend(row: Int, j: Int, lanes: Int, time: TimeRules, ahead: Ints, targets: Ints, most: Ints) -> None:
    """Write the most that is spent from a row on to most[j], as in `LayerValues`."""
    cost, stored, width = time.cost, time.stored, time.cost.shape[1]
    begin, end = time.out_ptr[row], time.out_ptr[row + 1]
    for m in range(width):
        for x in range(lanes):
            most[j, m, x] = _LEAST
        for k in range(begin, end):
            to, more = np.uint64(targets[k - begin]), cost[k, m]
            for x in range(lanes):
                further = np.int64(0) if time.last else max(np.int64(0), ahead[m, to + np.uint64(x)])
                most[j, m, x] = max(most[j, m, x], more + further)
    for r in range(len(stored)):
        for x in range(lanes):
            most[j, width + r, x] = 0
        for k in range(begin, begin if time.last else end):
            to = np.uint64(targets[k - begin])
            for x in range(lanes):
                full = max(ahead[stored[r], to + np.uint64(x)], ahead[width + r, to + np.uint64(x)])
                most[j, width + r, x] = max(most[j, width + r, x], full)


@inlined
def _deviation(
    i: Int, n: Int, x: Int, first: Int, begin: Int, end: Int, support: Ints, chance: Floats, action: Small,
    move: Small, offset: Int, actions: Int, q: Floats, part: Floats, asked: Ints, interim: bool,
) -> tuple[float, float]:  # fmt: skip
    """Return W_i in lane x, and what it can be off by (`judgement`).

    W_i is the best action in place of each recommendation if the player is told (`interim`), else
    one for all of them; then following is one more choice.
    """
    choices = actions if interim else actions + np.int64(1)
    if begin + 1 == end:  # pure play, mostly: the same sums of one term
        row, p, best, more, share = support[begin], chance[begin], -np.inf, 0.0, rounding(1)
        for b in range(choices):
            other = row if b == actions else np.int64(move[row, offset + b])
            value, spare = -np.inf, 0.0
            if other >= 0 and q[other - first, i, x] != -np.inf:
                value = 0.0 + p * q[other - first, i, x]
                spare = p * q[other - first, n + i, x] + share * abs(value)
            part[b, 0], part[b, 1] = value, spare
            if best == best and not (value <= best):
                best = value
        for b in range(choices):
            more = max(more, part[b, 0] - best + part[b, 1])
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
            part[b, 0], part[b, 1] = value, before + share * abs_total
            if best == best and not (value <= best):  # NaN stays
                best = value
        for b in range(choices):
            more = max(more, part[b, 0] - best + part[b, 1])
        total += best
        size += abs(best)
        off += more
        groups += np.int64(1)
    if groups > 1:
        off += rounding(groups) * size
    return total, off


@inlined
def judge_window(
    p: Int, many: Int, lanes: Int, task: Judging, index: Ints | None, sound: bool, place: Int,
    workspace: WindowWorkspace, gap: Int,
) -> None:  # fmt: skip
    """Evaluate the policy and the best deviations at the pairs p .. p+many-1, as `judge` does.

    The three parts of `workspace.sums` are `gap` apart, which is a constant: so the compiler knows
    them apart.
    """
    keys, time, origin, numbers, base, played, interim, following, result, outside = task
    row_ptr, out_ptr, last = time.row_ptr, time.out_ptr, time.last
    prob, reward, action, move, offset = numbers
    its_begin, its_end, support, chance = played
    alive, next_values, next_ahead, next_fault = following
    present, values, ahead, fault = result
    lane, wanted, safe, targets, q = workspace.lane, workspace.wanted, workspace.safe, workspace.targets, workspace.q
    best, sums, part, asked, most = workspace.best, workspace.sums, workspace.part, workspace.asked, workspace.most
    n, key = reward.shape[1], keys[p]
    state = open_key(key, len(row_ptr) - 1, time, workspace.spent)
    first = row_ptr[state]
    rows = row_ptr[state + 1] - first
    for j in range(rows):
        wanted[j] = 0
    for pair in range(p, p + many):
        for e in range(its_begin[pair], its_end[pair]):
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
        if not _safe(row, j, key, lanes, time, index, origin, alive, False, workspace):
            for i in range(n):
                for x in range(lanes):
                    q[j, i, x] = -np.inf
            continue
        begin = out_ptr[row]
        end = begin if last else out_ptr[row + 1]
        for i in range(n):
            pay, digit = reward[row, i] - base[i], 2.0 * UNIT_ROUNDOFF * abs(reward[row, i])
            _mean(begin, end, lanes, targets, prob, next_values, 4 * n + i, sums)
            for x in range(lanes):
                brought = pay + sums[x]
                best[i, x] = brought if safe[j, x] and brought > best[i, x] else best[i, x]
            if wanted[j]:
                _add_up(
                    begin, end, lanes, targets, prob, pay, digit, next_values, n + i, 3 * n + i, sums, gap, safe, q, j, i,
                    n + i,
                )  # fmt: skip
            if wanted[j] >= 2:
                _add_up(
                    begin, end, lanes, targets, prob, pay, digit, next_values, i, 2 * n + i, sums, gap, safe, q, j,
                    2 * n + i, 3 * n + i,
                )  # fmt: skip
                _mean(begin, end, lanes, targets, prob, next_values, 5 * n + i, sums)
                for x in range(lanes):
                    q[j, 4 * n + i, x] = pay + sums[x]
        if wanted[j] >= 2:
            _spend(row, j, lanes, time, next_ahead, targets, most)
    for pair in range(p, p + many):
        x, to = lane[pair - p], place + pair
        begin, end = its_begin[pair], its_end[pair]
        present[to], fault[to], outside[pair] = 1, 0, -1
        for e in range(begin, end):
            if not safe[support[e] - first, x]:
                outside[pair] = support[e]
        if begin == end or outside[pair] >= 0:
            fault[to] = 1
            for m in range(ahead.shape[0]):
                ahead[m, to] = _LEAST
            for i in range(6 * n):
                values[i, to] = np.nan
            continue
        if not sound:
            for e in range(begin, end):
                if not _safe(support[e], support[e] - first, key, lanes, time, index, origin, alive, False, workspace):
                    continue
                for k in range(np.int64(0) if last else out_ptr[support[e] + 1] - out_ptr[support[e]]):
                    fault[to] |= next_fault[np.uint64(targets[k] + x)]
        for m in range(ahead.shape[0]):
            far = _LEAST
            for e in range(begin, end):
                far = max(far, most[support[e] - first, m, x])
            ahead[m, to] = far
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
            values[i, to] = value
            values[2 * n + i, to] = off + rounding(end - begin) * size_of
            values[4 * n + i, to], values[5 * n + i, to] = best[i, x], least
            values[n + i, to], values[3 * n + i, to] = _deviation(
                i, n, x, first, begin, end, support, chance, action, move, offset[i], offset[i + 1] - offset[i], q,
                part, asked, interim,
            )  # fmt: skip


@kernel
def judge(task: Judging, index: Ints | None, sound: bool, place: int, workspace: WindowWorkspace) -> None:
    """Evaluate the policy and the best deviations from it at pairs of one time (`judgement`).

    Args:
        task: the pairs, and where the numbers of each are written.
        index: with the origin in `task`, where the next time lies.
        sound: there is no fault at the next time.
        place: of the first pair in the result; the others follow.
        workspace: room for one window.
    """
    p = np.int64(0)
    workspace.lane[0] = 0
    while p < len(task.keys):
        many = lanes = np.int64(1)
        if index is None:
            many, lanes = _neighbours(task.keys, p, task.time.line, workspace.lane)
        judge_window(p, many, lanes, task, index, sound, place, workspace, np.int64(LANES))
        p += many


@kernel
def spread(places: Ints, origin: int, owner: Ints, known: LayerValues, result: LayerValues) -> None:
    """Write to places (P,), less the origin, of the result what is known in the columns `owner`."""
    _, values, ahead, fault = known
    alive, at_values, at_ahead, at_fault = result
    for p in range(len(places)):
        alive[places[p] - origin] = 1
        at_fault[places[p] - origin] = fault[owner[p]]
    for i in range(len(values)):
        for p in range(len(places)):
            at_values[i, np.uint64(places[p] - origin)] = values[i, np.uint64(owner[p])]
    for m in range(len(ahead)):
        for p in range(len(places)):
            at_ahead[m, np.uint64(places[p] - origin)] = ahead[m, np.uint64(owner[p])]


# -- what is told of a time ------------------------------------------------------------------------


@inlined
def _before(one: Int, two: Int, states: Int, line: Int) -> bool:
    """Return whether a key comes before another one, by the state, then by what was spent."""
    state, other = one // line % states, two // line % states
    return bool(state < other or (state == other and one < two))


@inlined
def extremes_of(
    i: Int, n: Int, values: Floats, keys: Ints, origin: Int | None, states: Int, line: Int, begin: Int, end: Int
) -> tuple[Int, Int, float]:
    """Return what `extremes` finds for one player; the column of a pair is its key, if there is an
    origin.
    """
    most, part, off = -np.inf, -np.inf, 0.0
    largest, share = begin, np.int64(-1)
    for p in range(begin, end):
        at = np.int64(p)
        if origin is not None:
            at = keys[p] - np.int64(origin)
        gain = values[n + i, at] - values[i, at]
        noise = values[2 * n + i, at] + values[3 * n + i, at]
        if noise > off or noise != noise:
            off = noise
        tied = gain == most and gain > 0.0 and _before(keys[p], keys[largest], states, line)
        tied = tied or (gain != gain and most != most and keys[p] < keys[largest])
        if tied or (most == most and not gain <= most):
            most, largest = gain, np.int64(p)
        if not gain <= noise:
            stake = max(values[4 * n + i, at] - values[5 * n + i, at], 0.0)
            beyond = np.inf if stake == np.inf else (gain - noise) / stake
            tied = beyond == part and _before(keys[p], keys[share], states, line)
            tied = tied or (beyond != beyond and part != part and keys[p] < keys[share])
            if tied or (part == part and (share < 0 or not beyond <= part)):
                part, share = beyond, np.int64(p)
    return largest, share, off


@kernel
def extremes(
    values: Floats, keys: Ints, states: Int, line: Int, begin: Int, end: Int, largest: Ints, share: Ints, off: Floats
) -> None:
    """Write for each player the first of the pairs begin .. end-1 with the largest gain, and with
    the largest share of the stake.

    The latter only where a gain is beyond what rounding can have changed it by, else -1; and the
    most that is. Not a number counts as larger than all others. `values` are (6N, P) at keys (P,).
    """
    n = len(largest)
    for i in range(n):
        largest[i], share[i], off[i] = extremes_of(i, n, values, keys, None, states, line, begin, end)
