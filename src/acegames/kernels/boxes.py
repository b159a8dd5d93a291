"""Where safe play can go: bounds on what was spent, height maps, and reached cells."""

from __future__ import annotations

import numpy as np

from acegames.kernels.intrinsics import fetch_add, popcount
from acegames.kernels.records import Boxes, NextLayer, Transitions
from acegames.system.compiled import allocates, inlined, inner, kernel

# -- bounds ---------------------------------------------------------------------------------------


@kernel
def forward_bounds(initial, spent, floor, steps, states, least, most):
    """Fill the states, and the least and largest totals that legal play can have spent there.

    Play begins with the totals `spent`; none falls below `floor`.

    Returns where the states of t = 0 .. H begin, and their number. Without room for states, and for
    totals of no constraint, they are only counted.
    """
    S, D, H = steps.row_ptr.shape[1] - 1, least.shape[1], len(steps.layer_at)
    start = np.zeros(H + 2, np.int64)
    here = np.zeros(S, np.bool_)
    low, high = np.zeros((S, D), np.int64), np.zeros((S, D), np.int64)
    next_low, next_high = np.empty((S, D), np.int64), np.empty((S, D), np.int64)
    for s in initial:
        here[s] = True
        for m in range(D):
            low[s, m] = high[s, m] = spent[m]
    for t in range(H + 1):
        rows = steps.row_ptr[steps.layer_at[min(t, H - 1)]]
        there = np.zeros(S, np.bool_)
        at = start[t]
        for s in range(S):
            if not here[s]:
                continue
            if len(states):
                states[at] = s
            for m in range(D):
                least[at, m] = low[s, m]
                most[at, m] = high[s, m]
            at += 1
            if t == H:
                continue
            for o in range(steps.out_ptr[rows[s]], steps.out_ptr[rows[s + 1]]):
                to = steps.next_state[o]
                for m in range(D):
                    a = max(low[s, m] + steps.cost[o, m], floor[m])
                    b = max(high[s, m] + steps.cost[o, m], floor[m])
                    if not there[to] or a < next_low[to, m]:
                        next_low[to, m] = a
                    if not there[to] or b > next_high[to, m]:
                        next_high[to, m] = b
                there[to] = True
        start[t + 1] = at
        here = there
        low, next_low = next_low, low
        high, next_high = next_high, high
    return start


@kernel
def backward_boxes(steps, start, states, least, most, clip, lo, size):
    """Fill the boxes lo, size (X, D) between what can be spent and what can be afforded.

    A box has size 0 where play is unsafe. States, least and most are those of `forward_bounds`,
    (X,) and (X, D).

    worst and best are the largest, and the least avoidable, excess over the budgets still to come:
    sums of costs minus B. Spending up to -worst cannot bind any more; spending above -best must
    break a budget.
    """
    S, D = steps.row_ptr.shape[1] - 1, steps.cost.shape[1]
    H = len(steps.layer_at)
    worst, best = np.full((S, D), -np.int64(2**62)), np.full((S, D), -np.int64(2**62))
    next_worst, next_best = worst.copy(), best.copy()
    for p in range(start[H], start[H + 1]):
        for m in range(D):
            lo[p, m] = np.int64(2**62) if clip else least[p, m]
            top = max(min(most[p, m], steps.budget[H - 1, m]), least[p, m])
            size[p, m] = 1 if clip else top - least[p, m] + 1
    for t in range(H - 1, -1, -1):
        worst, next_worst = next_worst, worst
        best, next_best = next_best, best
        rows = steps.row_ptr[steps.layer_at[t]]
        for p in range(start[t], start[t + 1]):
            s = states[p]
            for m in range(D):
                most_excess = -np.int64(2**62)
                least_excess = np.int64(2**62)
                for r in range(rows[s], rows[s + 1]):
                    here = -np.int64(2**62)
                    for o in range(steps.out_ptr[r], steps.out_ptr[r + 1]):
                        to, cost, bound = steps.next_state[o], steps.cost[o, m], -steps.budget[t, m]
                        most_excess = max(most_excess, cost + max(next_worst[to, m], bound))
                        here = max(here, cost + max(next_best[to, m], bound))
                    least_excess = min(least_excess, here)
                worst[s, m] = most_excess
                best[s, m] = least_excess
                lo[p, m] = max(-most_excess, least[p, m]) if clip else least[p, m]
                size[p, m] = max(min(-least_excess, max(most[p, m], lo[p, m])) - lo[p, m] + 1, 0)


# -- one layer, and the next ----------------------------------------------------------------------


@allocates
def boxes_at(boxes, t):
    """Return the boxes of one layer."""
    a, b = boxes.start[t], boxes.start[t + 1]
    base, line = boxes.base[a + t : b + t + 1], boxes.line[a + t : b + t + 1]
    return Boxes(boxes.states[a:b], boxes.lo[a:b], boxes.size[a:b], base, line)


@allocates
def following_at(boxes, t, slot):
    """Return the boxes of time t as a step into that layer finds them; fills slot (S,)."""
    here = boxes_at(boxes, t)
    height = boxes.height[boxes.height_start[t] : boxes.height_start[t + 1]]
    for a in range(len(here.states)):
        slot[here.states[a]] = a
    return NextLayer(slot, here.lo, here.size, here.base, here.line, height, here.lo[:0], here.lo[:0])


@inner
def leave(slot, boxes, t):
    """Empty slot (S,) again, so that another layer can use it."""
    for p in range(boxes.start[t], boxes.start[t + 1]):
        slot[boxes.states[p]] = -1


@allocates
def steps_at(steps, t):
    """Return the transitions of one time."""
    row_ptr = steps.row_ptr[steps.layer_at[t]]
    return Transitions(row_ptr, steps.out_ptr, steps.next_state, steps.cost, steps.prob, steps.budget[t])


@inner
def leads_to(o, c, count, step, after):
    """Return the box that outcome o leads to from the totals c, and the place in this box.

    Places are lines or cells of the box, by the first `count` constraints; -1: a budget breaks.
    """
    to = after.slot[step.next_state[o]]
    if to < 0:
        return to, np.int64(-1)
    place = np.int64(0)
    for m in range(count):
        total = c[m] + step.cost[o, m]
        at = max(total - after.lo[to, m], 0)
        if total > step.budget[m] or at >= after.size[to, m]:
            return to, np.int64(-1)
        place = place * after.size[to, m] + at
    return to, place


@inner
def threshold(r, c, step, after):
    """Return the largest total of the last constraint at which row r is feasible, given the others.

    c (D,) holds the others' totals.
    """
    last = step.cost.shape[1] - 1
    top = np.int64(2**62)
    for o in range(step.out_ptr[r], step.out_ptr[r + 1]):
        to, line = leads_to(o, c, last, step, after)
        height = after.height[after.line[to] + line] if line >= 0 else -1
        if height < 0:
            return -np.int64(2**62)
        top = min(top, min(step.budget[last], after.lo[to, last] + height) - step.cost[o, last])
    return top


@inlined
def _last_at_most(values, begin, end, wanted):
    """Return the last place of begin .. end-1 with a value up to `wanted`, or begin - 1."""
    while begin < end:
        middle = (begin + end) >> 1
        if values[middle] <= wanted:
            begin = middle + 1
        else:
            end = middle
    return begin - 1


@inner
def box_of(number, first):
    """Return the box of a cell, or of a line: `first` (B+1,) are those of each box."""
    return _last_at_most(first, np.int64(0), np.int64(len(first) - 1), number)


@inner
def box_totals(c, count, place, here, a):
    """Fill c with the totals of the first `count` constraints at a place of box a.

    A place is a cell or a line.

    Places are counted from the first of the box.
    """
    for m in range(count - 1, -1, -1):
        c[m] = here.lo[a, m] + place % here.size[a, m]
        place //= here.size[a, m]


# -- height maps and reached cells ----------------------------------------------------------------


ALL_LINES = 2**62


@inner
def reach(begin, end, here, mark, step, after, next_mark, played, c):
    """Mark in next_mark the cells that feasible actions reach from marked ones, line by line.

    played (R,): which rows these actions are.
    """
    last = step.cost.shape[1] - 1
    for a in range(len(here.states)):
        s = here.states[a]
        width = here.size[a, last]
        for nth in range(max(begin - here.line[a], 0), min(end, here.line[a + 1]) - here.line[a]):
            start = here.base[a] + nth * width
            if not any_marked(mark[start : start + width]):
                continue
            box_totals(c, last, nth, here, a)
            for r in range(step.row_ptr[s], step.row_ptr[s + 1]):
                top = threshold(r, c, step, after)
                stop = min(top - here.lo[a, last] + 1, width)
                if stop <= 0:
                    continue
                if played[r] == 0 and any_marked(mark[start : start + stop]):
                    played[r] = 1
                for o in range(step.out_ptr[r], step.out_ptr[r + 1]):
                    to, line = leads_to(o, c, last, step, after)
                    first = after.base[to] + line * after.size[to, last]
                    shift = here.lo[a, last] + step.cost[o, last] - after.lo[to, last]
                    clipped = min(max(-shift, 0), stop)
                    if any_marked(mark[start : start + clipped]):
                        next_mark[first] = 1
                    at = first + shift + clipped
                    _mark_each(next_mark[at : at + stop - clipped], mark[start + clipped : start + stop])


@inner
def any_marked(marks):
    """Return whether any mark is set."""
    any_set = np.uint8(0)
    for k in range(len(marks)):
        any_set |= marks[k]
    return any_set != 0


@inner
def _mark_each(into, marks):
    # slices counted from zero: the compiler then knows that no index is negative, and vectorises
    for k in range(len(marks)):
        into[k] |= marks[k]


@kernel
def heights_range(t0, t1, begin, end, boxes, steps):
    """Fill boxes.height for the lines begin .. end-1 of the layers t1-1 down to t0.

    The height (spec 2) of a line is its largest feasible place, or -1.
    """
    slot = np.full(steps.row_ptr.shape[1] - 1, -1, np.int32)
    c = np.zeros(steps.cost.shape[1], np.int64)
    for t in range(t1 - 1, t0 - 1, -1):
        after = following_at(boxes, t + 1, slot)
        height = boxes.height[boxes.height_start[t] : boxes.height_start[t + 1]]
        _heights(begin, end, boxes_at(boxes, t), steps_at(steps, t), after, height, c)
        leave(after.slot, boxes, t + 1)


@inner
def _heights(begin, end, here, step, after, height, c):
    """Fill the heights (lines,) of the lines begin .. end-1 of one layer; c (D,) is scratch."""
    last = step.cost.shape[1] - 1
    for a in range(len(here.states)):
        s = here.states[a]
        for nth in range(max(begin - here.line[a], 0), min(end, here.line[a + 1]) - here.line[a]):
            box_totals(c, last, nth, here, a)
            most = -np.int64(2**62)
            for r in range(step.row_ptr[s], step.row_ptr[s + 1]):
                most = max(most, threshold(r, c, step, after))
            height[here.line[a] + nth] = max(min(most - here.lo[a, last], here.size[a, last] - 1), -1)


@kernel
def reach_range(t0, t1, boxes, steps, marks, bit_start, bits, row_start, rows):
    """Mark what feasible play reaches, for the layers t0 .. t1-1, and return the marks of t1.

    marks (cells of t0,); bits: those of the layers after t0, of time t from bit_start[t] on.

    rows: the rows that are played, as bits; those of time t begin at row_start[t].
    """
    slot = np.full(steps.row_ptr.shape[1] - 1, -1, np.int32)
    played = np.zeros(len(steps.out_ptr) - 1, np.uint8)
    c = np.zeros(steps.cost.shape[1], np.int64)
    for t in range(t0, t1):
        after, step = following_at(boxes, t + 1, slot), steps_at(steps, t)
        next_marks = np.zeros(after.base[-1], np.uint8)
        reach(0, ALL_LINES, boxes_at(boxes, t), marks, step, after, next_marks, played, c)
        own = played[step.row_ptr[0] : step.row_ptr[-1]]
        pack(own, rows[row_start[t] : row_start[t + 1]])
        own[:] = 0
        leave(after.slot, boxes, t + 1)
        pack(next_marks, bits[bit_start[t + 1] : bit_start[t + 2]])
        marks = next_marks
    return marks


@kernel
def reach_lines(t, taken, run, boxes, steps, marks, next_marks, played):
    """Mark what feasible play reaches from lines of one layer, in marks of this thread's own.

    marks, next_marks (cells,); played (R,) may be shared by threads.

    taken[0] is the first line that no thread has taken; this one takes `run` at a time.
    """
    slot = np.full(steps.row_ptr.shape[1] - 1, -1, np.int32)
    c = np.zeros(steps.cost.shape[1], np.int64)
    next_marks[:] = 0
    after, step = following_at(boxes, t + 1, slot), steps_at(steps, t)
    here = boxes_at(boxes, t)
    begin = fetch_add(taken, run)
    while begin < here.line[-1]:
        reach(begin, begin + run, here, marks, step, after, next_marks, played, c)
        begin = fetch_add(taken, run)


@kernel
def join_marks(marks, begin, bits):
    """Join marks (pieces, cells) into the first row, and as bits, from the cell `begin` on."""
    end = min(begin + 8 * len(bits), marks.shape[1])
    for piece in range(1, len(marks)):
        _mark_each(marks[0, begin:end], marks[piece, begin:end])
    pack(marks[0, begin:end], bits)


# -- bits -----------------------------------------------------------------------------------------


@kernel
def pack(marks, bits):
    """Pack marks (cells,) into bits, the lowest first; bits is zero before."""
    whole = len(marks) // 8
    eight = marks[: 8 * whole].reshape(whole, 8)
    for b in range(whole):
        word = np.uint64(0)
        for k in range(8):
            word |= np.uint64(eight[b, k]) << np.uint64(k)
        bits[b] = np.uint8(word)
    for k in range(8 * whole, len(marks)):
        bits[k // 8] |= np.uint8(marks[k] << (k % 8))


@kernel
def count_bits(bits, ones, counts):
    """Fill counts (blocks,) with the bits set in each block (blocks, width).

    ones (256,): those of each byte.
    """
    for b in range(len(bits)):
        total = np.int64(0)
        for k in range(bits.shape[1]):
            total += ones[bits[b, k]]
        counts[b] = total


@kernel
def rank_bits(words, counts, cells, rank):
    """Fill rank (Q,) with what `rank_of` says of each cell (Q,)."""
    for q in range(len(cells)):
        rank[q] = rank_of(cells[q], words, counts)


@inlined
def rank_of(cell, words, counts):
    """Return the number of a cell among those whose bits are set, or -1.

    words: a bit per cell, the lowest first; counts: set bits before each block of eight words.
    """
    at, bit = cell >> 6, np.uint64(1) << np.uint64(cell & 63)
    if not is_set(cell, words):
        return np.int64(-1)
    total = counts[at >> 3]
    for k in range((at >> 3) << 3, at):
        total += popcount(words[k])
    return total + popcount(words[at] & (bit - np.uint64(1)))


@inlined
def is_set(cell, words):
    """Return whether the bit of a cell is set."""
    return words[cell >> 6] & (np.uint64(1) << np.uint64(cell & 63)) != np.uint64(0)
