"""Layers held as lists of cells, found by hashing. Successors are computed anew."""

from __future__ import annotations

import numpy as np

from acegames.kernels.boxes import box_of, box_totals, leads_to
from acegames.system.compiled import inner, kernel, making


@inner
def _slot_of(key, size):
    """Return where a key starts looking in a table of `size` (a power of two)."""
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((h >> np.uint64(20)) & np.uint64(size - 1))


@kernel
def build_index(keys, table):
    """Fill an open-addressing table with the positions of the keys; -1 is empty."""
    size = len(table)
    table[:] = -1
    for p in range(len(keys)):
        h = _slot_of(keys[p], size)
        while table[h] >= 0:
            h = (h + 1) & (size - 1)
        table[h] = p


@inner
def find(key, listed):
    """Position of a cell in a list, or -1."""
    size = len(listed.table)
    h = _slot_of(key, size)
    while listed.table[h] >= 0:
        if listed.keys[listed.table[h]] == key:
            return np.int64(listed.table[h])
        h = (h + 1) & (size - 1)
    return np.int64(-1)


@inner
def _exceeds(o, c, to, step, after):
    """Return whether a sum of totals is over the limit of box `to`, to which outcome o leads from
    c.
    """
    for e in range(len(after.weight)):
        total = np.int64(0)
        for m in range(len(c)):
            total += after.weight[e, m] * (c[m] + step.cost[o, m])
        if total > after.limit[to, e]:
            return True
    return False


@inner
def next_cells(r, c, step, after, found):
    """Fill the cells of the next layer that row r leads to; False when a budget breaks."""
    for o in range(step.out_ptr[r], step.out_ptr[r + 1]):
        to, place = leads_to(o, c, len(c), step, after)
        if place < 0 or _exceeds(o, c, to, step, after):
            return False
        found[o - step.out_ptr[r]] = after.base[to] + place
    return True


@inner
def next_places(r, c, step, after, listed, found):
    """The same as positions in the list of the next layer; False when one is not listed."""
    if not next_cells(r, c, step, after, found):
        return False
    for k in range(step.out_ptr[r + 1] - step.out_ptr[r]):
        found[k] = find(found[k], listed)
        if found[k] < 0:
            return False
    return True


@making
def empty_places(step):
    """Room for totals, and for what the row with the most outcomes leads to."""
    widest = 0
    for r in range(len(step.out_ptr) - 1):
        widest = max(widest, step.out_ptr[r + 1] - step.out_ptr[r])
    return np.empty(step.cost.shape[1], np.int64), np.empty(widest, np.int64)


@making
def places_room(step, widest):
    """The same, without a look at every row of the game: it is made for each call of a kernel."""
    return np.empty(step.cost.shape[1], np.int64), np.empty(widest[1], np.int64)


@kernel
def expand(keys, here, step, after, table):
    """Collect the cells that safe rows lead to in a hash set. Returns their number, -1 if full."""
    return _collect(keys, here, step, after, table, *empty_places(step))


@inner
def _collect(keys, here, step, after, table, c, found):
    capacity = len(table)
    table[:] = -1
    count = 0
    a = 0
    for key in keys:
        while here.base[a + 1] <= key:
            a += 1
        s = here.states[a]
        box_totals(c, len(c), key - here.base[a], here, a)
        for r in range(step.row_ptr[s], step.row_ptr[s + 1]):
            if not next_cells(r, c, step, after, found):
                continue
            for to in found[: step.out_ptr[r + 1] - step.out_ptr[r]]:
                h = _slot_of(to, capacity)
                while table[h] >= 0 and table[h] != to:
                    h = (h + 1) & (capacity - 1)
                if table[h] < 0:
                    table[h] = to
                    count += 1
                    if 2 * count > capacity:
                        return -1
    return count


@kernel
def sweep(keys, wanted, here, step, after, listed, next_true, true, next_keep, played):
    """Set true[p] of wanted cells with a row whose successors are all true; mark both."""
    _sweep(keys, wanted, here, step, after, listed, next_true, true, next_keep, played, *empty_places(step))


@inner
def _sweep(keys, wanted, here, step, after, listed, next_true, true, next_keep, played, c, found):
    a = 0
    for p in range(len(keys)):
        while here.base[a + 1] <= keys[p]:
            a += 1
        true[p] = False
        if not wanted[p]:
            continue
        s = here.states[a]
        box_totals(c, len(c), keys[p] - here.base[a], here, a)
        for r in range(step.row_ptr[s], step.row_ptr[s + 1]):
            fine = next_places(r, c, step, after, listed, found)
            places = found[: step.out_ptr[r + 1] - step.out_ptr[r]]
            for at in places:
                fine = fine and next_true[at]
            if fine:
                true[p] = True
                played[r] = True
                for at in places:
                    next_keep[at] = True


@inner
def write_listed(begin, end, count, keys, here, step, reward, after, listed, next_value, c, found, written):
    """As `dense.write_lines`, for the listed cells number begin .. end-1."""
    C = reward.shape[1]
    R = written.ptr[count]
    a = box_of(keys[begin], here.base) if begin < end else np.int64(0)
    for p in range(begin, end):
        while here.base[a + 1] <= keys[p]:
            a += 1
        s = here.states[a]
        box_totals(c, len(c), keys[p] - here.base[a], here, a)
        for r in range(step.row_ptr[s], step.row_ptr[s + 1]):
            if not next_places(r, c, step, after, listed, found):
                continue
            for i in range(C):
                written.utility[R, i] = reward[r, i]
            for o in range(step.out_ptr[r], step.out_ptr[r + 1]):
                at = found[o - step.out_ptr[r]]
                for i in range(C):
                    written.utility[R, i] += step.prob[o] * next_value[at, i]
            written.row[R] = r
            R += 1
        written.cell[count] = p
        written.first_row[count] = step.row_ptr[s]
        count += 1
        written.ptr[count] = R
    return count
