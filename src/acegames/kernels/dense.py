"""Layers held cell by cell. Along a line of cells a row is feasible up to its threshold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acegames.kernels.boxes import (
    any_marked,
    box_of,
    box_totals,
    boxes_at,
    following_at,
    leads_to,
    leave,
    steps_at,
    threshold,
)
from acegames.kernels.records import Ints
from acegames.system.compiled import allocates, inlined, inner, kernel

SEGMENT = 128  # cells of a line whose utilities are computed together


class Line(NamedTuple):
    """The rows of a state on one line of its box."""

    stop: Ints  # (rows,) the place up to which a row is feasible
    first: Ints  # (outcomes,) the first cell of the line that an outcome leads to
    shift: Ints  # (outcomes,) how much further on that line


@allocates
def allocate_line(widest):
    """Allocate a line for the state with most rows, and with most outcomes of these: widest
    (2,).
    """
    return Line(np.empty(widest[0], np.int64), np.empty(widest[1], np.int64), np.empty(widest[1], np.int64))


@inner
def line_rows(s, c, low, step, after, line):
    """Fill, for each row of state s, how far it is feasible on a line, and where outcomes lead.

    c (D,): the line's totals; `low`: the first of the last constraint.
    """
    first_row = step.row_ptr[s]
    for r in range(first_row, step.row_ptr[s + 1]):
        line_row(r, first_row, c, low, step, after, line)


@inlined
def line_row(r, first_row, c, low, step, after, line):
    """Fill, for row r, how far it is feasible on a line, and where its outcomes lead."""
    last = step.cost.shape[1] - 1
    top = threshold(r, c, step, after)
    line.stop[r - first_row] = max(top - low + 1, 0)
    if top >= low:
        for o in range(step.out_ptr[r], step.out_ptr[r + 1]):
            to, place = leads_to(o, c, last, step, after)
            k = o - step.out_ptr[first_row]
            line.first[k] = after.base[to] + place * after.size[to, last]
            line.shift[k] = low + step.cost[o, last] - after.lo[to, last]


@inner
def _enter_line(cell, end, here, a, c):
    """Return the box of a cell, its place on its line, and where the line or the run of cells ends.

    Boxes are looked through from `a` on. Fills the totals c of all but the last constraint.
    """
    last = here.size.shape[1] - 1
    while here.base[a + 1] <= cell:
        a += 1
    width = here.size[a, last]
    k0 = (cell - here.base[a]) % width
    box_totals(c, last, (cell - here.base[a]) // width, here, a)
    return a, k0, min(width, k0 + end - cell)


@inner
def row_utilities(q, r, s, step, reward, line, k0, end, next_value):
    """Fill q[k - k0] = r + E[V(next)] of one player, in row r of state s, for places k0 <= k <
    end.
    """
    q[: end - k0] = reward
    for o in range(step.out_ptr[r], step.out_ptr[r + 1]):
        at = o - step.out_ptr[step.row_ptr[s]]
        p, f, d = step.prob[o], line.first[at], line.shift[at]
        clipped = min(max(-d, k0), end)
        if clipped > k0:
            _add(q[: clipped - k0], p * next_value[f])
        _add_scaled(q[clipped - k0 : end - k0], p, next_value[f + d + clipped : f + d + end])


@inner
def _add(q, number):
    for k in range(len(q)):
        q[k] += number


@inner
def _add_scaled(q, p, values):
    for k in range(len(q)):
        q[k] += p * values[k]


@allocates
def allocate_lines(step, reward, widest):
    """Allocate what `write_lines` works with: totals, a line, and utilities of a segment of it."""
    q = np.empty((widest[0], reward.shape[1], SEGMENT))
    return np.zeros(step.cost.shape[1], np.int64), allocate_line(widest), q


@inner
def write_lines(begin, end, count, here, mark, step, reward, after, next_value, c, line, q, batch):
    """Write out the stage games of the marked cells begin .. end-1.

    mark (cells,); reward (R, C); next_value (C, cells); q (rows, C, SEGMENT). `count` games are
    written already; return how many there are.
    """
    C = reward.shape[1]
    R = batch.ptr[count]
    a = box_of(begin, here.base)
    cell = begin
    while cell < end:
        a, k0, line_end = _enter_line(cell, end, here, a, c)
        s = here.states[a]
        first_row, rows = step.row_ptr[s], step.row_ptr[s + 1] - step.row_ptr[s]
        prepared = False
        while k0 < line_end:
            k1 = min(line_end, k0 + SEGMENT)
            if any_marked(mark[cell : cell + k1 - k0]):
                if not prepared:
                    line_rows(s, c, here.lo[a, len(c) - 1], step, after, line)
                    prepared = True
                for row in range(rows):
                    stop = min(k1, line.stop[row])
                    if stop > k0:
                        r = first_row + row
                        for i in range(C):
                            row_utilities(q[row, i], r, s, step, reward[r, i], line, k0, stop, next_value[i])
                for k in range(k1 - k0):
                    if mark[cell + k] == 0:
                        continue
                    for row in range(rows):
                        if line.stop[row] > k0 + k:
                            batch.row[R] = first_row + row
                            for i in range(C):
                                batch.utility[R, i] = q[row, i, k]
                            R += 1
                    batch.cell[count] = cell + k
                    batch.first_row[count] = first_row
                    count += 1
                    batch.ptr[count] = R
            cell += k1 - k0
            k0 = k1
    return count


# -- one player -----------------------------------------------------------------------------------


@kernel
def solve_single_player(begin, end, here, step, reward, shift, after, next_value, widest, value, code):
    """Fill value and code (cells,) of one player's best action in the cells begin .. end-1.

    All cells are solved, reached or not, line by line. The reward of row r is reward[r - shift].
    """
    c = np.zeros(step.cost.shape[1], np.int64)
    q = np.empty(SEGMENT * 16)
    _solve_lines(begin, end, here, step, reward, shift, after, next_value, c, allocate_line(widest), q, value, code)


@inner
def _solve_lines(begin, end, here, step, reward, shift, after, next_value, c, line, q, value, code):
    a = np.int64(0)
    cell = begin
    while cell < end:
        a, k0, line_end = _enter_line(cell, end, here, a, c)
        s = here.states[a]
        line_rows(s, c, here.lo[a, len(c) - 1], step, after, line)
        while k0 < line_end:
            k1 = min(line_end, k0 + len(q))
            to = cell - begin
            value[to : to + k1 - k0] = -np.inf
            for r in range(step.row_ptr[s], step.row_ptr[s + 1]):
                row = r - step.row_ptr[s]
                count = min(k1, line.stop[row]) - k0
                if count > 0:
                    row_utilities(q, r, s, step, reward[r - shift, 0], line, k0, k0 + count, next_value)
                    _keep_better(value[to : to + count], code[to : to + count], q, 1 + row)
            cell += k1 - k0
            k0 = k1


@inner
def _keep_better(value, code, q, number):
    for k in range(len(value)):
        better = q[k] > value[k]
        value[k] = q[k] if better else value[k]
        code[k] = number if better else code[k]


@kernel
def single_player_range(t0, t1, boxes, steps, reward, shift, widest, cell_start, value, code):
    """Solve a game of one player for the layers t1-1 down to t0.

    The cells of all layers lie end to end: those of time t begin at cell_start[t]. shift (H,).
    """
    slot = np.full(steps.row_ptr.shape[1] - 1, -1, np.int32)
    for t in range(t1 - 1, t0 - 1, -1):
        after = following_at(boxes, t + 1, slot)
        here, there, end = cell_start[t], cell_start[t + 1], cell_start[t + 2]
        layer = boxes_at(boxes, t), steps_at(steps, t), reward, shift[t], after, value[there:end], widest
        solve_single_player(0, there - here, *layer, value[here:there], code[here:there])
        leave(slot, boxes, t + 1)
