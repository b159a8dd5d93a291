"""Look-ups in batches: stored answers of policies, and safe pairs and safe sets of shields.

Safe pairs (t, state, spent) are numbered through all times t = 0 .. H. The sets of safe joint
actions are each held once, one bit per joint action of the state: those found so far are the first
`count` of a `Sets`; `block` is the number of a state's list of joint actions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.kernels.boxes import _last_at_most, any_marked, box_totals, is_set, rank_of
from acegames.kernels.dense import allocate_line, line_rows
from acegames.kernels.intrinsics import popcount
from acegames.kernels.records import Small
from acegames.kernels.sparse import allocate_places, next_places
from acegames.system.compiled import inlined, inner, kernel


@inlined
def _place_of(values, begin, end, wanted):
    """Return the place of a value among begin .. end-1, -1 where it is not there."""
    at = _last_at_most(values, begin, end, wanted)
    return at if at >= begin and values[at] == wanted else np.int64(-1)


@inlined
def _cell_in_box(box, q, total, dims, lo, size, clipped):
    """Return the cell of a box with the totals `dims` of total[q], from its first; -1 outside.

    Where boxes are `clipped`, totals below the least count as the least.
    """
    cell = np.int64(0)
    for d in range(len(dims)):
        at = total[q, dims[d]] - lo[box, d]
        if clipped:
            at = max(at, np.int64(0))
        if at < 0 or at >= size[box, d]:
            return np.int64(-1)
        cell = cell * size[box, d] + at
    return cell


@inlined
def _number(cell, begin, end, word, cells):
    """Return the number of a cell, -1 where it has none.

    It is among the keys begin .. end-1 of `cells`, or has a bit from the word `word` on.
    """
    if not len(cells.words):
        return _place_of(cells.keys, begin, end, cell)
    return rank_of((word << 6) + cell, cells.words, cells.counts)


@inlined
def _is_between(q, total, least, most, box):
    """Return whether the totals total[q] are between the bounds of a box."""
    known = True
    for m in range(total.shape[1]):
        known &= least[box, m] <= total[q, m] <= most[box, m]
    return known


@kernel
def locate(states, lo, size, base, least, most, state, counted, spent, cell_of):
    """Fill the cell of each situation, or -1: cell_of (Q,).

    state (Q,); counted (Q, D): spending of the constraints that boxes count. The boxes are states
    (B,), lo and size (B, D), base (B+1,), least and most (B, M).

    Where `spent` (Q, M) has rows, each is compared with the bounds of all constraints too.
    """
    dims = np.arange(counted.shape[1])
    for q in range(len(state)):
        cell_of[q] = -1
        at = _place_of(states, 0, len(states), state[q])
        if at >= 0 and (len(spent) == 0 or _is_between(q, spent, least, most, at)):
            cell = _cell_in_box(at, q, counted, dims, lo, size, True)
            if cell >= 0:
                cell_of[q] = base[at] + cell


@kernel
def find_pairs(table, state, total, pair):
    """Fill the pair of each situation, or -1, and return the first without a pair, or -1.

    state (Q,), total (Q, M) in whole units, pair (Q,): where it is -1 already, it stays so.
    """
    states, lo, size, base, least, most, dims, keys, words, counts, by_cell = table
    at, missing, listed = np.int64(-1), np.int64(-1), len(words) == 0
    for q in range(len(state)):
        if q == 0 or state[q] != state[q - 1]:
            at = _place_of(states, 0, len(states), state[q])
        number = np.int64(-1)
        if pair[q] >= 0 and at >= 0 and _is_between(q, total, least, most, at):
            cell = _cell_in_box(at, q, total, dims, lo, size, True)
            if cell >= 0:
                cell += base[at]
                if listed:
                    number = _place_of(keys, 0, len(keys), cell)
                    number = cell if by_cell and number >= 0 else number
                elif by_cell:
                    number = cell if is_set(cell, words) else number
                else:
                    number = rank_of(cell, words, counts)
        pair[q] = number
        if number < 0 and missing < 0:
            missing = q
    return missing


@kernel
def count_entries(code, size, first_record, first_entry, entries, together, pair, ptr, begin):
    """Fill where the entries of each pair (Q,) begin: ptr (Q+1,), and begin (Q,), -1 if not mixed.

    Return the first pair whose answer is not among what is stored, else -1.

    Pairs b * together .. have the records first_record[b] .. and the entries first_entry[b] .. What
    lies between is counted, from there or from the pair asked for before, if that comes later.
    """
    ptr[0] = 0
    near = record = at = np.int64(0)  # the records and the entries that come before this pair
    for q in range(len(pair)):
        begin[q] = -1
        if not 0 <= pair[q] < len(code):
            return pair[q]
        if code[pair[q]] > 0:
            ptr[q + 1] = ptr[q] + 1
            continue
        block = pair[q] // together
        if not block * together <= near <= pair[q]:
            near, record, at = block * together, first_record[block], first_entry[block]
        first = record
        for k in range(near, pair[q]):
            record += code[k] == 0
        near = pair[q]
        if record >= len(size):
            return near
        for r in range(first, record):
            at += size[r]
        if at + size[record] > entries:
            return near
        begin[q] = at
        ptr[q + 1] = ptr[q] + size[record]
    return np.int64(-1)


@kernel
def fill_entries(code, mixed_row, mixed_prob, row_ptr, state, pair, ptr, begin, row, prob):
    """Fill row and prob (E,) with the entries of each pair (Q,); those of pair q begin at
    ptr[q].
    """
    for q in range(len(pair)):
        first, at = row_ptr[state[q]], ptr[q]
        if begin[q] < 0:
            row[at] = first + np.int64(code[pair[q]]) - 1
            prob[at] = 1.0
        else:
            for e in range(ptr[q + 1] - at):
                row[at + e] = first + np.int64(mixed_row[begin[q] + e])
                prob[at + e] = mixed_prob[begin[q] + e]


# -- the pairs of a shield -------------------------------------------------------------------------


_ONE = np.uint64(1)


@inlined
def _cell_of(t, number, place):
    """Return the cell with a number of time t."""
    word, words, counts, keys = place.word, place.words, place.counts, place.keys
    if not len(words):
        return keys[number]
    block = _last_at_most(counts, word[t] >> 3, word[t + 1] >> 3, number)
    left = number - counts[block]
    at = block << 3
    here = popcount(words[at])
    while here <= left:
        left -= here
        at += 1
        here = popcount(words[at])
    own = words[at]
    for _ in range(left):
        own &= own - _ONE
    return ((at - word[t]) << 6) + popcount((own & (~own + _ONE)) - _ONE)


@kernel
def find_numbers(t, state, spent, dims, place, number):
    """Fill the number (B,) of each pair t, state, spent (B, M); -1 where no safe play comes."""
    last = len(place.start) - 2
    for q in range(len(state)):
        number[q] = -1
        time = t[q] if len(t) > 1 else t[0]
        if time < 0 or time > last:
            continue
        box = _place_of(place.states, place.start[time], place.start[time + 1], state[q])
        if box < 0:
            continue
        cell = _cell_in_box(box, q, spent, dims, place.lo, place.size, False)
        if cell >= 0:
            first, end = place.first[time], place.first[time + 1]
            number[q] = _number(place.base[box + time] + cell, first, end, place.word[time], place)


@kernel
def pairs_of_numbers(number, dims, place, t, state, spent):
    """Fill t, state (B,) and spent (B, M) of each number (B,); t = -1 where no pair has it."""
    states, base, first = place.states, place.base, place.first
    total = np.zeros(place.lo.shape[1], np.int64)
    for q in range(len(number)):
        t[q] = -1
        if number[q] < 0 or number[q] >= first[-1]:
            continue
        time = _last_at_most(first, 0, len(first), number[q])
        begin, end = place.start[time], place.start[time + 1]
        cell = _cell_of(time, number[q], place)
        box = _last_at_most(base, begin + time, end + time, cell) - time
        rest = cell - base[box + time]
        for m in range(len(total) - 1, -1, -1):
            total[m] = place.lo[box, m] + rest % place.size[box, m]
            rest //= place.size[box, m]
        t[q], state[q] = time, states[box]
        for k in range(len(dims)):
            spent[q, dims[k]] = total[k]


# -- the safe sets of a shield ---------------------------------------------------------------------


class Sets(NamedTuple):
    """Sets, with room for more."""

    bits: NDArray[np.uint64]  # (C, words)
    block: Small  # (C,)
    table: Small  # a hash table over both, -1 empty, at least twice as long


@inner
def _slot(bits, block, size):
    h = np.uint64(block) + np.uint64(1)
    for k in range(len(bits)):
        h = (h ^ bits[k]) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    h *= np.uint64(0x9E3779B97F4A7C15)
    return np.int64((h >> np.uint64(20)) & np.uint64(size - 1))


@inner
def _number_of(bits, block, sets, count):
    """Return the number of a set, which is added where it is new; and how many sets there are."""
    h = _slot(bits, block, len(sets.table))
    while sets.table[h] >= 0:
        number = np.int64(sets.table[h])
        same = sets.block[number] == block
        for k in range(len(bits)):
            same &= sets.bits[number, k] == bits[k]
        if same:
            return number, count
        h = (h + 1) & (len(sets.table) - 1)
    for k in range(len(bits)):
        sets.bits[count, k] = bits[k]
    sets.block[count] = block
    sets.table[h] = count
    return count, count + 1


@kernel
def add_sets(sets, larger):
    """Add sets, which are all different, to room for more of them."""
    for d in range(len(sets.block)):
        _number_of(sets.bits[d], sets.block[d], larger, d)


@inner
def _set_bit(bits, k):
    bits[k >> 6] |= np.uint64(1) << np.uint64(k & 63)


@inner
def _line_set(bits, stop, rows, k):
    """Return the feasible rows at place k of a line, as bits; and how far they stay the same."""
    bits[:] = 0
    end = np.int64(2**62)
    for r in range(rows):
        if stop[r] > k:
            _set_bit(bits, r)
            end = min(end, stop[r])
    return end


@inner
def _fill_marked(code, pair, mark, number):
    for k in range(len(mark)):
        if mark[k]:
            code[pair] = number
            pair += 1
    return pair


@kernel
def dense_sets(a, nth, k, pair, here, mark, step, after, widest, block, sets, count, code):
    """Fill code with the number of each marked cell's set of feasible rows.

    Begins at place `k` of line `nth` of box `a`; the first marked cell gets code[pair]. mark
    (cells,), block (S,), code (pairs,).

    Along a line a row is feasible up to its threshold, so that sets change at few places. Returns
    the box, line, place and pair to go on from and the number of sets: before the end where there
    is no room for another set.
    """
    last = step.cost.shape[1] - 1
    c = np.zeros(last + 1, np.int64)
    line = allocate_line(widest)
    bits = np.zeros(sets.bits.shape[1], np.uint64)
    while a < len(here.states):
        s = here.states[a]
        rows = step.row_ptr[s + 1] - step.row_ptr[s]
        width = here.size[a, last]
        while nth < here.line[a + 1] - here.line[a]:
            start = here.base[a] + nth * width
            if any_marked(mark[start + k : start + width]):
                box_totals(c, last, nth, here, a)
                line_rows(s, c, here.lo[a, last], step, after, line)
                while k < width:
                    end = min(_line_set(bits, line.stop, rows, k), width)
                    if any_marked(mark[start + k : start + end]):
                        if count == len(sets.bits):
                            return a, nth, k, pair, count
                        number, count = _number_of(bits, block[s], sets, count)
                        pair = _fill_marked(code, pair, mark[start + k : start + end], number)
                    k = end
            k = np.int64(0)
            nth += 1
        nth = np.int64(0)
        a += 1
    return a, nth, k, pair, count


@kernel
def sparse_sets(pair, keys, here, step, after, listed, widest, block, sets, count, code):
    """Fill code with the number of each listed cell's set of feasible rows.

    Return the pair to go on from and the number of sets: before the end where there is no room for
    another. keys, code (pairs,), block (S,).
    """
    c, places = allocate_places(step, widest)
    bits = np.zeros(sets.bits.shape[1], np.uint64)
    a = np.int64(0)
    while pair < len(keys):
        if count == len(sets.bits):
            return pair, count
        while here.base[a + 1] <= keys[pair]:
            a += 1
        s = here.states[a]
        box_totals(c, len(c), keys[pair] - here.base[a], here, a)
        bits[:] = 0
        for r in range(step.row_ptr[s], step.row_ptr[s + 1]):
            if next_places(r, c, step, after, listed, places):
                _set_bit(bits, r - step.row_ptr[s])
        code[pair], count = _number_of(bits, block[s], sets, count)
        pair += 1
    return pair, count
