"""Finds stored answers: the cell of a state and what was spent, and what is played there."""

from __future__ import annotations

import numpy as np

from acegames.system.compiled import kernel


@kernel
def locate(states, lo, size, base, least, most, state, kept, spent, found):
    """The cell of each (state (Q,), spending (Q, D) of the constraints that boxes count), or -1.

    Where `spent` (Q, M) has rows, each is compared with the bounds of all constraints too.
    """
    for q in range(len(state)):
        found[q] = -1
        at = np.searchsorted(states, state[q])
        if at == len(states) or states[at] != state[q]:
            continue
        known = True
        for m in range(spent.shape[1] if len(spent) else 0):
            known &= least[at, m] <= spent[q, m] <= most[at, m]
        cell = np.int64(0)
        for d in range(kept.shape[1]):
            place = max(kept[q, d] - lo[at, d], np.int64(0))
            known &= place < size[at, d]
            cell = cell * size[at, d] + place
        if known:
            found[q] = base[at] + cell


@kernel
def find_pairs(table, state, total, found):
    """The pair of each (state (Q,), spent whole units (Q, M)); -1 where there is none."""
    states, lo, size, base, least, most, dims, listed, keys, bits, counts, ones, by_cell = table
    width = bits.shape[1]
    for q in range(len(state)):
        found[q] = -1
        at = np.searchsorted(states, state[q])
        if at == len(states) or states[at] != state[q]:
            continue
        known = True
        for m in range(total.shape[1]):
            known &= least[at, m] <= total[q, m] <= most[at, m]
        cell = np.int64(0)
        for d in range(len(dims)):
            place = max(total[q, dims[d]] - lo[at, d], np.int64(0))
            known &= place < size[at, d]
            cell = cell * size[at, d] + place
        if not known:
            continue
        cell += base[at]
        if listed:
            rank = np.searchsorted(keys, cell)
            if rank < len(keys) and keys[rank] == cell:
                found[q] = cell if by_cell else rank
            continue
        block, byte, bit = cell // (8 * width), cell % (8 * width) // 8, cell % 8
        if not 0 <= block < len(bits):
            continue
        own = bits[block, byte]
        if (own >> bit) & 1:
            rank = counts[block]
            for k in range(0 if by_cell else byte):
                rank += ones[bits[block, k]]
            found[q] = cell if by_cell else rank + ones[own & ((1 << bit) - 1)]


@kernel
def count_entries(code, size, first_record, first_entry, entries, together, pair, ptr, begin):
    """Return pointers (Q+1,) to the entries of each pair, and where those of mixed pairs begin,
    else -1.

    Pairs b * together .. have the records first_record[b] .. and the entries first_entry[b] .. What
    lies between is counted, from there or from the pair asked for before, if that comes later.
    Return the first pair whose answer is not among what is stored, else -1.
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
    """The rows and probabilities of each pair's entries."""
    for q in range(len(pair)):
        first, at = row_ptr[state[q]], ptr[q]
        if begin[q] < 0:
            row[at] = first + np.int64(code[pair[q]]) - 1
            prob[at] = 1.0
        else:
            for e in range(ptr[q + 1] - at):
                row[at + e] = first + np.int64(mixed_row[begin[q] + e])
                prob[at + e] = mixed_prob[begin[q] + e]
