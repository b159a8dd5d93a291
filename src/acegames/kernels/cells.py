"""A run of cells: their stage games are written out and solved, one small lot after the other.

What was written is still in the processor's cache when it is read, and one call does it all: the
interpreter's lock is not asked for in between.
"""

from __future__ import annotations

import numpy as np

from acegames.kernels.dense import lines_room, write_lines
from acegames.kernels.lockstep import group_room
from acegames.kernels.records import Written
from acegames.kernels.sparse import empty_places, write_listed
from acegames.kernels.stage import workspace
from acegames.kernels.written import solve_more
from acegames.system.compiled import inner, kernel, making

LOT = 16384  # numbers that are written at once, about; but at least
FEWEST_CELLS = 64


@kernel
def solve_cells(begin, end, source, choices, goal, widest, answers):
    """Solve the games of the cells begin .. end-1; returns how many are mixed, open, programs."""
    actions = choices.first_action[1:] - choices.first_action[:-1]
    work = workspace(widest[0], len(actions), actions, goal.correlated)
    group = group_room(widest[0], len(actions), actions, goal.correlated)
    cells = max(LOT // (widest[0] * source.reward.shape[1]), FEWEST_CELLS)
    written = written_room(min(cells, end - begin), widest[0], source.reward.shape[1])
    room = lines_room(source.step, source.reward, widest), empty_places(source.step)
    return _solve_lots(begin, end, cells, source, choices, goal, work, group, written, *room, answers)


@kernel
def write_cells(begin, end, source, widest, written):
    """Write out the games of the cells begin .. end-1; returns how many there are."""
    room = lines_room(source.step, source.reward, widest), empty_places(source.step)
    return _write(begin, end, begin, source, *room, written)


@making
def written_room(cells, widest, columns):
    """Room for the games of so many cells."""
    rows = cells * widest + 1  # one more: a row is written before it proves infeasible
    numbers = np.empty(cells, np.int64), np.empty(cells + 1, np.int64), np.empty(cells, np.int64)
    return Written(*numbers, np.empty(rows, np.int64), np.empty((rows, columns)))


@inner
def _solve_lots(begin, end, cells, source, choices, goal, work, group, written, lines, places, answers):
    mixed = bad = programs = np.int64(0)
    answers.mixed_ptr[0] = 0
    for first in range(begin, end, cells):
        count = _write(first, min(first + cells, end), begin, source, lines, places, written)
        mixed, bad, took = solve_more(written, count, choices, goal, work, group, mixed, bad, answers)
        programs += took
    return mixed, bad, programs


@inner
def _write(begin, end, origin, source, lines, places, written):
    here, step, reward, after, next_value = source.here, source.step, source.reward, source.after, source.next_value
    if source.dense:
        return write_lines(begin, end, origin, here, source.marks, step, reward, after, next_value, *lines, written)
    listed = source.keys, here, step, reward, after, source.listed, next_value
    return write_listed(begin, end, origin, *listed, *places, written)
