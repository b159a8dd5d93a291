"""Cells of a layer: their stage games are written out and, where they are plain, solved.

This happens in small lots: what was written is still in the processor's cache when it is read.
Threads take lots from a common counter, so that none asks for the interpreter's lock in between.
"""

from __future__ import annotations

import numpy as np

from acegames.kernels.dense import lines_room, write_lines
from acegames.kernels.lockstep import group_room
from acegames.kernels.records import Written
from acegames.kernels.sharing import take
from acegames.kernels.sparse import places_room, write_listed
from acegames.kernels.stage import pure_room
from acegames.kernels.written import solve_plain
from acegames.system.compiled import inner, kernel, making

LOTS = 256  # that one call takes at most, so that an interrupt is answered in between


@kernel
def solve_cells(taken, end, lot, source, choices, goal, widest, answers, rest):
    """Solve the plain games of some cells, and copy the others to `rest`.

    taken[0] is the first cell that no thread has taken. This one takes `lot` cells at a time, until
    it comes to `end`, or there is no room for the answers of another lot. Returns how many games
    are mixed, left, and took a program.
    """
    actions = choices.first_action[1:] - choices.first_action[:-1]
    pure = pure_room(widest[0], len(actions))
    group = group_room(widest[0], len(actions), actions, goal.correlated)
    written = written_room(lot, widest[0], source.reward.shape[1])
    room = lines_room(source.step, source.reward, widest), places_room(source.step, widest)
    return _solve_lots(taken, end, lot, source, choices, goal, pure, group, written, *room, answers, rest)


@kernel
def write_cells(cells, source, widest, written):
    """Write out the games of some cells, in ascending order; returns how many there are."""
    room = lines_room(source.step, source.reward, widest), places_room(source.step, widest)
    return _write_runs(cells, source, *room, written)


@making
def written_room(cells, widest, columns):
    """Room for the games of so many cells."""
    rows = cells * widest + 1  # one more: a row is written before it proves infeasible
    numbers = np.empty(cells, np.int64), np.empty(cells + 1, np.int64), np.empty(cells, np.int64)
    return Written(*numbers, np.empty(rows, np.int64), np.empty((rows, columns)))


@inner
def _solve_lots(taken, end, lot, source, choices, goal, pure, group, written, lines, places, answers, rest):
    mixed = left = programs = np.int64(0)
    answers.mixed_ptr[0] = 0
    written.ptr[0] = 0
    rest.ptr[0] = 0
    rows = len(written.row)
    for _ in range(LOTS):
        if mixed + lot > len(answers.mixed_cell) or answers.mixed_ptr[mixed] + rows > len(answers.mixed_row):
            break
        if left + lot > len(rest.cell) or rest.ptr[left] + rows > len(rest.row):
            break
        first = take(taken, lot)
        if first >= end:
            break
        count = _write(first, min(first + lot, end), np.int64(0), source, lines, places, written)
        before = left
        mixed, left, took = solve_plain(written, count, choices, goal, pure, group, mixed, left, answers)
        _copy_left(before, left, written, answers, rest)
        programs += took
    return mixed, left, programs


@inner
def _copy_left(before, left, written, answers, rest):
    """Copy the games that were left last; they are in the order in which they were written."""
    g = np.int64(0)
    for k in range(before, left):
        while written.cell[g] != answers.open[k]:
            g += 1
        rest.cell[k] = written.cell[g]
        rest.first_row[k] = written.first_row[g]
        at = rest.ptr[k]
        for r in range(written.ptr[g], written.ptr[g + 1]):
            rest.row[at] = written.row[r]
            for i in range(written.utility.shape[1]):
                rest.utility[at, i] = written.utility[r, i]
            at += 1
        rest.ptr[k + 1] = at


@inner
def _write_runs(cells, source, lines, places, written):
    """Return cells that follow each other are written together."""
    count = first = np.int64(0)
    written.ptr[0] = 0
    for k in range(len(cells)):
        if k + 1 == len(cells) or cells[k + 1] != cells[k] + 1:
            count = _write(cells[first], cells[k] + 1, count, source, lines, places, written)
            first = np.int64(k + 1)
    return count


@inner
def _write(begin, end, count, source, lines, places, written):
    here, step, reward, after, next_value = source.here, source.step, source.reward, source.after, source.next_value
    if source.dense:
        table = here, source.marks, step, reward, after, next_value
        return write_lines(begin, end, count, *table, *lines, written)
    listed = source.keys, here, step, reward, after, source.listed, next_value
    return write_listed(begin, end, count, *listed, *places, written)
