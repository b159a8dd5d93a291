"""Cells of a layer: their stage games are written out and, where they are plain, solved.

This happens in small lots: what was written is still in the processor's cache when it is read, and
one call does it all, so that the interpreter's lock is not asked for in between.
"""

from __future__ import annotations

import numpy as np

from acegames.kernels.dense import lines_room, write_lines
from acegames.kernels.lockstep import group_room
from acegames.kernels.records import Written
from acegames.kernels.sparse import places_room, write_listed
from acegames.kernels.stage import pure_room
from acegames.kernels.written import solve_plain
from acegames.system.compiled import inner, kernel, making

LOT = 16384  # numbers that are written at once, about; but at least
FEWEST_CELLS = 64


@kernel
def solve_cells(begin, end, source, choices, goal, widest, answers):
    """Solve the plain games of the cells begin .. end-1, and name the cells of the others.

    Returns how many games are mixed, left, and took a program.
    """
    actions = choices.first_action[1:] - choices.first_action[:-1]
    pure = pure_room(widest[0], len(actions))
    group = group_room(widest[0], len(actions), actions, goal.correlated)
    cells = max(LOT // (widest[0] * source.reward.shape[1]), FEWEST_CELLS)
    written = written_room(min(cells, end - begin), widest[0], source.reward.shape[1])
    room = lines_room(source.step, source.reward, widest), places_room(source.step, widest)
    return _solve_lots(begin, end, cells, source, choices, goal, pure, group, written, *room, answers)


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
def _solve_lots(begin, end, cells, source, choices, goal, pure, group, written, lines, places, answers):
    mixed = left = programs = np.int64(0)
    answers.mixed_ptr[0] = 0
    written.ptr[0] = 0
    for first in range(begin, end, cells):
        count = _write(first, min(first + cells, end), np.int64(0), source, lines, places, written)
        mixed, left, took = solve_plain(written, count, choices, goal, pure, group, mixed, left, answers)
        programs += took
    return mixed, left, programs


@inner
def _write_runs(cells, source, lines, places, written):
    """Cells that follow each other are written together."""
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
