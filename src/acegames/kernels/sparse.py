"""Layers held as lists of cells, found by hashing. Successors are computed anew."""

from __future__ import annotations

import numpy as np

from acegames.kernels.boxes import box_of, box_totals, leads_to
from acegames.system.compiled import allocates, inner, kernel


@inner
def _slot_of(key, size):
    """Return where a key starts looking in a table of `size` (a power of two)."""
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((h >> np.uint64(20)) & np.uint64(size - 1))


@kernel
def build_index(keys, table):
    """Fill an open-addressing table (slots,) with the positions of the keys (cells,); -1 is
    empty.
    """
    size = len(table)
    table[:] = -1
    for p in range(len(keys)):
        h = _slot_of(keys[p], size)
        while table[h] >= 0:
            h = (h + 1) & (size - 1)
        table[h] = p


@inner
def find(key, listed):
    """Return the position of a cell in a list, or -1."""
    size = len(listed.table)
    h = _slot_of(key, size)
    while listed.table[h] >= 0:
        if listed.keys[listed.table[h]] == key:
            return np.int64(listed.table[h])
        h = (h + 1) & (size - 1)
    return np.int64(-1)


@inner
def _exceeds(o, c, to, step, after):
    """Return whether outcome o from the totals c breaks a limit on a sum of totals in box `to`."""
    for e in range(len(after.weight)):
        total = np.int64(0)
        for m in range(len(c)):
            total += after.weight[e, m] * (c[m] + step.cost[o, m])
        if total > after.limit[to, e]:
            return True
    return False


@inner
def next_cells(r, c, step, after, cells):
    """Fill the cells of the next layer that row r leads to; False when a budget breaks."""
    for o in range(step.out_ptr[r], step.out_ptr[r + 1]):
        to, place = leads_to(o, c, len(c), step, after)
        if place < 0 or _exceeds(o, c, to, step, after):
            return False
        cells[o - step.out_ptr[r]] = after.base[to] + place
    return True


@inner
def next_places(r, c, step, after, listed, places):
    """Fill where the cells that row r leads to are in the list of the next layer.

    Return False when one is not listed.
    """
    if not next_cells(r, c, step, after, places):
        return False
    for k in range(step.out_ptr[r + 1] - step.out_ptr[r]):
        places[k] = find(places[k], listed)
        if places[k] < 0:
            return False
    return True


@allocates
def allocate_places(step, widest):
    """Allocate totals and successors; widest (2,): most rows of a state, and most outcomes of
    these.
    """
    return np.empty(step.cost.shape[1], np.int64), np.empty(widest[1], np.int64)


@kernel
def expand(keys, here, step, after, widest, table):
    """Collect the cells that safe rows lead to in a hash set: keys (cells,), table (slots,).

    Return their number, -1 if the table is full.
    """
    return _collect(keys, here, step, after, table, *allocate_places(step, widest))


@inner
def _collect(keys, here, step, after, table, c, cells):
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
            if not next_cells(r, c, step, after, cells):
                continue
            for to in cells[: step.out_ptr[r + 1] - step.out_ptr[r]]:
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
def sweep(keys, wanted, here, step, after, listed, widest, next_true, true, next_keep, played):
    """Set true[p] for wanted cells with a row whose successors are all true; mark both.

    keys, wanted, true (cells,); next_true, next_keep (cells of the next layer,); played (R,).
    """
    layer = here, step, after, listed
    _sweep(keys, wanted, *layer, next_true, true, next_keep, played, *allocate_places(step, widest))


@inner
def _sweep(keys, wanted, here, step, after, listed, next_true, true, next_keep, played, c, successors):
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
            fine = next_places(r, c, step, after, listed, successors)
            places = successors[: step.out_ptr[r + 1] - step.out_ptr[r]]
            for at in places:
                fine = fine and next_true[at]
            if fine:
                true[p] = True
                played[r] = True
                for at in places:
                    next_keep[at] = True


@inner
def write_listed(begin, end, count, keys, here, step, reward, after, listed, next_value, c, places, batch):
    """Write out the stage games of the listed cells number begin .. end-1.

    reward (R, C); next_value (cells, C). `count` games are written already; return how many there
    are.
    """
    C = reward.shape[1]
    R = batch.ptr[count]
    a = box_of(keys[begin], here.base) if begin < end else np.int64(0)
    for p in range(begin, end):
        while here.base[a + 1] <= keys[p]:
            a += 1
        s = here.states[a]
        box_totals(c, len(c), keys[p] - here.base[a], here, a)
        for r in range(step.row_ptr[s], step.row_ptr[s + 1]):
            if not next_places(r, c, step, after, listed, places):
                continue
            for i in range(C):
                batch.utility[R, i] = reward[r, i]
            for o in range(step.out_ptr[r], step.out_ptr[r + 1]):
                at = places[o - step.out_ptr[r]]
                for i in range(C):
                    batch.utility[R, i] += step.prob[o] * next_value[at, i]
            batch.row[R] = r
            R += 1
        batch.cell[count] = p
        batch.first_row[count] = step.row_ptr[s]
        count += 1
        batch.ptr[count] = R
    return count
