"""Layers held cell by cell. Along a line of cells a row is feasible up to its threshold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acegames.kernels.boxes import (
    any_marked,
    boxes_at,
    following_at,
    leads_to,
    leave,
    line_totals,
    steps_at,
    threshold,
)
from acegames.kernels.records import Ints
from acegames.system.compiled import inner, kernel, making

SEGMENT = 128  # cells of a line whose utilities are computed together


class Line(NamedTuple):
    """The rows of a state on one line of its box."""

    stop: Ints  # (rows,) the place up to which a row is feasible
    first: Ints  # (outcomes,) the first cell of the line that an outcome leads to
    shift: Ints  # (outcomes,) how much further on that line


@making
def empty_line(widest):
    """Room for the state with the most rows, and the most outcomes of these."""
    return Line(np.empty(widest[0], np.int64), np.empty(widest[1], np.int64), np.empty(widest[1], np.int64))


@inner
def line_rows(s, c, low, step, after, line):
    """For each row of state s on a line: how far it is feasible, and where outcomes lead."""
    last = step.cost.shape[1] - 1
    first_row = step.row_ptr[s]
    for r in range(first_row, step.row_ptr[s + 1]):
        top = threshold(r, c, step, after)
        line.stop[r - first_row] = max(top - low + 1, 0)
        if top < low:
            continue
        for o in range(step.out_ptr[r], step.out_ptr[r + 1]):
            to_line, to = leads_to(o, c, step, after)
            k = o - step.out_ptr[first_row]
            line.first[k] = after.base[to] + (to_line - after.line[to]) * after.size[to, last]
            line.shift[k] = low + step.cost[o, last] - after.lo[to, last]


@inner
def _line_utilities(q, s, step, reward, line, k0, k1, next_value):
    """q[row, column, k - k0] = r + E[V(next)] for the feasible places k0 <= k < k1."""
    C = reward.shape[1]
    first_row = step.row_ptr[s]
    for r in range(first_row, step.row_ptr[s + 1]):
        row = r - first_row
        end = min(k1, line.stop[row])
        if end <= k0:
            continue
        for i in range(C):
            for k in range(end - k0):
                q[row, i, k] = reward[r, i]
        for o in range(step.out_ptr[r], step.out_ptr[r + 1]):
            at = o - step.out_ptr[first_row]
            p, f, d = step.prob[o], line.first[at], line.shift[at]
            clipped = min(max(-d, k0), end)
            for i in range(C):
                if clipped > k0:
                    low = p * next_value[f, i]
                    for k in range(clipped - k0):
                        q[row, i, k] += low
                for k in range(clipped, end):
                    q[row, i, k - k0] += p * next_value[f + d + k, i]


@kernel
def write_dense(begin, end, here, mark, step, reward, after, next_value, widest, written):
    """Write out the stage games of the marked cells begin .. end-1: feasible rows and utilities.

    Cells are counted from the first. Returns how many games there are.
    """
    c = np.zeros(step.cost.shape[1], np.int64)
    q = np.empty((widest[0], reward.shape[1], SEGMENT))
    return _write_lines(begin, end, here, mark, step, reward, after, next_value, c, empty_line(widest), q, written)


@inner
def _write_lines(begin, end, here, mark, step, reward, after, next_value, c, line, q, written):
    last = step.cost.shape[1] - 1
    C = reward.shape[1]
    count = np.int64(0)
    R = np.int64(0)
    written.ptr[0] = 0
    a = np.int64(0)
    cell = begin
    while cell < end:
        while here.base[a + 1] <= cell:
            a += 1
        s = here.states[a]
        width = here.size[a, last]
        nth = (cell - here.base[a]) // width
        k0 = (cell - here.base[a]) % width
        line_end = min(width, k0 + end - cell)
        line_totals(c, nth, here, a)
        prepared = False
        while k0 < line_end:
            k1 = min(line_end, k0 + SEGMENT)
            if any_marked(mark[cell : cell + k1 - k0]):
                if not prepared:
                    line_rows(s, c, here.lo[a, last], step, after, line)
                    prepared = True
                _line_utilities(q, s, step, reward, line, k0, k1, next_value)
                for k in range(k1 - k0):
                    if mark[cell + k] == 0:
                        continue
                    for row in range(step.row_ptr[s + 1] - step.row_ptr[s]):
                        if line.stop[row] > k0 + k:
                            written.row[R] = step.row_ptr[s] + row
                            for i in range(C):
                                written.utility[R, i] = q[row, i, k]
                            R += 1
                    written.cell[count] = cell + k - begin
                    written.first_row[count] = step.row_ptr[s]
                    count += 1
                    written.ptr[count] = R
            cell += k1 - k0
            k0 = k1
    return count


# -- one player -----------------------------------------------------------------------------------


@kernel
def solve_alone(begin, end, here, step, reward, after, next_value, widest, value, code):
    """One player: the best action of each cell begin .. end-1, line by line, reached or not."""
    c = np.zeros(step.cost.shape[1], np.int64)
    q = np.empty(SEGMENT * 16)
    _solve_lines(begin, end, here, step, reward, after, next_value, c, empty_line(widest), q, value, code)


@inner
def _solve_lines(begin, end, here, step, reward, after, next_value, c, line, q, value, code):
    last = step.cost.shape[1] - 1
    a = np.int64(0)
    cell = begin
    while cell < end:
        while here.base[a + 1] <= cell:
            a += 1
        s = here.states[a]
        width = here.size[a, last]
        nth = (cell - here.base[a]) // width
        k0 = (cell - here.base[a]) % width
        line_end = min(width, k0 + end - cell)
        line_totals(c, nth, here, a)
        line_rows(s, c, here.lo[a, last], step, after, line)
        while k0 < line_end:
            k1 = min(line_end, k0 + len(q))
            to = cell - begin
            value[to : to + k1 - k0] = -np.inf
            for r in range(step.row_ptr[s], step.row_ptr[s + 1]):
                row = r - step.row_ptr[s]
                count = min(k1, line.stop[row]) - k0
                if count > 0:
                    _one_row(q, r, s, step, reward, line, k0, k0 + count, next_value)
                    _keep_better(value[to : to + count], code[to : to + count], q, 1 + row)
            cell += k1 - k0
            k0 = k1


@kernel
def alone_range(t0, t1, boxes, steps, reward, widest, cell_start, value, code):
    """`solve_alone` for the layers t1-1 down to t0, whose cells lie end to end."""
    slot = np.full(steps.row_ptr.shape[1] - 1, -1, np.int32)
    for t in range(t1 - 1, t0 - 1, -1):
        after = following_at(boxes, t + 1, slot)
        here, there, end = cell_start[t], cell_start[t + 1], cell_start[t + 2]
        solve_alone(
            0, there - here, boxes_at(boxes, t), steps_at(steps, t), reward, after, value[there:end], widest, value[here:there],
            code[here:there],
        )  # fmt: skip
        leave(slot, boxes, t + 1)


@inner
def _one_row(q, r, s, step, reward, line, k0, end, next_value):
    """The utilities of one row of the only player."""
    q[: end - k0] = reward[r, 0]
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


@inner
def _keep_better(value, code, q, number):
    for k in range(len(value)):
        better = q[k] > value[k]
        value[k] = q[k] if better else value[k]
        code[k] = number if better else code[k]
