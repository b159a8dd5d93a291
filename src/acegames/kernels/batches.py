"""The stage games of a layer's cells: written out, solved where they are regular, answers stored.

This happens in small lots: what was written is still in the processor's cache when it is read.
Threads take lots from a common counter, so that none asks for the interpreter's lock in between.

`solve_regular` does what nearly all games need: pure answers, and regular programs in lockstep. The
games that it leaves are for `solve_written`, which does everything, one by one. They are compiled
apart, because the second takes as long to compile as the first, and many games never need it.
"""

from __future__ import annotations

import numpy as np

from acegames.kernels import regular
from acegames.kernels.dense import allocate_lines, write_lines
from acegames.kernels.intrinsics import fetch_add, lane_id_of, own_lanes, syncwarp
from acegames.kernels.lanes import LANES, vectorized
from acegames.kernels.lockstep import allocate_group, fits_group, solve_group
from acegames.kernels.records import EGALITARIAN, FAIR, StageGames
from acegames.kernels.sparse import allocate_places, write_listed
from acegames.kernels.stage import MIXED, PURE, is_pure, pure_workspace, solve_by_programs, workspace
from acegames.system.compiled import allocates, inner, kernel

LOTS = 256  # that one call takes at most, so that an interrupt is answered in between


@kernel
def solve_cells(taken, end, lot, source, choices, goal, widest, answers, rest):
    """Solve the regular games of some cells, and copy the others to `rest`.

    taken[0] is the first cell that no thread has taken. This one takes `lot` cells at a time, until
    it comes to `end`, or there is no room for the answers of another lot. Returns how many games
    are mixed, left, and took a program.
    """
    actions = choices.first_action[1:] - choices.first_action[:-1]
    pure = pure_workspace(widest[0], len(actions))
    group = allocate_group(widest[0], len(actions), actions, goal.correlated)
    batch = allocate_batch(lot, widest[0], source.reward.shape[1])
    scratch = allocate_lines(source.step, source.reward, widest), allocate_places(source.step, widest)
    return _solve_lots(taken, end, lot, source, choices, goal, pure, group, batch, *scratch, answers, rest)


@kernel
def write_cells(begin, end, source, widest, batch):
    """Write out the stage games of the cells begin .. end-1; return how many there are.

    `widest` (2,): most rows of a state, and most outcomes of these.
    """
    scratch = allocate_lines(source.step, source.reward, widest), allocate_places(source.step, widest)
    batch.ptr[0] = 0
    return _write(begin, end, np.int64(0), source, *scratch, batch)


@allocates
def allocate_batch(cells, widest, columns):
    """Allocate a batch for the games of `cells` cells, with `columns` utilities per row."""
    rows = cells * widest + 1  # one more: a row is written before it proves infeasible
    numbers = np.empty(cells, np.int64), np.empty(cells + 1, np.int64), np.empty(cells, np.int64)
    return StageGames(*numbers, np.empty(rows, np.int64), np.empty((rows, columns)))


@inner
def _solve_lots(taken, end, lot, source, choices, goal, pure, group, batch, lines, places, answers, rest):
    mixed = left = programs = np.int64(0)
    answers.mixed_ptr[0] = 0
    batch.ptr[0] = 0
    rest.ptr[0] = 0
    rows = len(batch.row)
    for _ in range(LOTS if vectorized() else 1):
        if mixed + lot > len(answers.mixed_cell) or answers.mixed_ptr[mixed] + rows > len(answers.mixed_row):
            break
        if left + lot > len(rest.cell) or rest.ptr[left] + rows > len(rest.row):
            break
        first = fetch_add(taken, lot)
        if first >= end:
            break
        count = _write(first, min(first + lot, end), np.int64(0), source, lines, places, batch)
        before = left
        mixed, left, took = solve_regular(batch, count, choices, goal, pure, group, mixed, left, answers)
        _copy_left(before, left, batch, answers, rest)
        programs += took
    return mixed, left, programs


@inner
def _copy_left(before, left, batch, answers, rest):
    """Copy the games that were left last; they are in the order in which they were written."""
    g = np.int64(0)
    for k in range(before, left):
        while batch.cell[g] != answers.open[k]:
            g += 1
        rest.cell[k] = batch.cell[g]
        rest.first_row[k] = batch.first_row[g]
        at = rest.ptr[k]
        for r in range(batch.ptr[g], batch.ptr[g + 1]):
            rest.row[at] = batch.row[r]
            for i in range(batch.utility.shape[1]):
                rest.utility[at, i] = batch.utility[r, i]
            at += 1
        rest.ptr[k + 1] = at


@inner
def _write(begin, end, count, source, lines, places, batch):
    here, step, reward, after, next_value = source.here, source.step, source.reward, source.after, source.next_value
    if source.dense:
        table = here, source.marks, step, reward, after, next_value
        return write_lines(begin, end, count, *table, *lines, batch)
    listed = source.keys, here, step, reward, after, source.listed, next_value
    return write_listed(begin, end, count, *listed, *places, batch)


# -- one by one ------------------------------------------------------------------------------------


@kernel
def solve_written(batch, count, choices, goal, widest, answers):
    """Solve the first `count` games of a batch one by one, with every means that floats have.

    Return how many are mixed, open, and took a program. `widest`: rows of the largest state.
    """
    actions = choices.first_action[1:] - choices.first_action[:-1]
    work = workspace(widest, len(actions), actions, goal.correlated)
    return _solve_each(batch, count, choices, goal, work, answers)


@inner
def _solve_each(batch, count, choices, goal, work, answers):
    mixed = bad = programs = np.int64(0)  # typed at once: a literal would be compiled again
    answers.mixed_ptr[0] = 0
    for g in range(count):
        if is_pure(g, batch, choices, goal, work):
            file_pure(g, batch, work.chosen[0], answers)
        else:
            mixed, bad = solve_scalar(g, batch, choices, goal, work, mixed, bad, answers)
            programs += 1
    return mixed, bad, programs


@inner
def solve_scalar(g, batch, choices, goal, work, mixed, bad, answers):
    """Solve a game that is not pure; returns how many are mixed and open in all."""
    status = solve_by_programs(g, batch, choices, goal, work)
    if status == PURE:
        file_pure(g, batch, work.chosen[0], answers)
    elif status == MIXED:
        _file_mixed(g, batch, work.sigma, mixed, answers)
        mixed += 1
    else:
        answers.open[bad] = batch.cell[g]
        bad += 1
    return mixed, bad


# -- regular games ---------------------------------------------------------------------------------


@inner
def solve_regular(batch, count, choices, goal, pure, group, mixed, left, answers):
    """Solve what is pure or regular of the first `count` games, and leave the others.

    Of earlier games some are mixed and some left; the numbers of both go on. Returns them, and how
    many games took a program. Those wait until there are eight of a kind.
    """
    programs = waiting = widest = np.int64(0)
    together = vectorized() and goal.kind not in (EGALITARIAN, FAIR) and fits_group(group)
    for g in range(count + 1):
        if g < count:
            if is_pure(g, batch, choices, goal, pure):
                file_pure(g, batch, pure.chosen[0], answers)
                continue
            if not together:
                answers.open[left] = batch.cell[g]
                left += 1
                continue
        if waiting == LANES or g == count or (waiting > 0 and not _is_alike(g, group.games[0], batch, choices)):
            before = left
            mixed, left = _solve_waiting(waiting, widest, batch, choices, goal, group, mixed, left, answers)
            programs += waiting - (left - before)
            waiting = widest = np.int64(0)
        if g < count:
            group.games[waiting] = g
            waiting += 1
            widest = max(widest, batch.row[batch.ptr[g + 1] - 1] - batch.first_row[g] + 1)
    return mixed, left, programs


@inner
def _is_alike(g, other, batch, choices):
    """Return whether game g has the tables of another one: the same actions and deviations."""
    first, at = batch.first_row[g], batch.first_row[other]
    if first == at:
        return True
    for r in range(batch.ptr[g], batch.ptr[g + 1]):
        row = batch.row[r]
        same = at + row - first
        if same >= len(choices.action):
            return False
        for i in range(choices.action.shape[1]):
            if choices.action[row, i] != choices.action[same, i]:
                return False
        for k in range(choices.deviation.shape[1]):
            if choices.deviation[row, k] != choices.deviation[same, k]:
                return False
    return True


@inner
def _solve_waiting(waiting, widest, batch, choices, goal, group, mixed, left, answers):
    """Solve the first `waiting` games of the group, which have up to `widest` rows.

    Return how many games are mixed and left in all.
    """
    if waiting == 0:
        return mixed, left
    warp, n = group.warp, min(widest, len(choices.action) - batch.first_row[group.games[0]])
    for lane in range(waiting, LANES):
        group.games[lane] = group.games[0]
    for k in range(own_lanes(warp)):
        regular.clear(lane_id_of(k, warp), n, group)
    syncwarp(warp)
    for k in range(own_lanes(warp)):
        regular.enter(lane_id_of(k, warp), batch, n, group)
    syncwarp(warp)
    solve_group(batch.first_row[group.games[0]], choices, goal, n, group)
    for lane in range(waiting):
        cell, entries, played = batch.cell[group.games[lane]], answers.mixed_ptr[mixed], np.int64(0)
        support = answers.mixed_row[entries:], answers.mixed_prob[entries:]
        for k in range(own_lanes(warp)):
            played = regular.file_lane(lane_id_of(k, warp), lane, cell, n, group, answers.value, answers.code, *support)
        if played > 1:
            answers.mixed_cell[mixed] = cell
            answers.mixed_ptr[mixed + 1] = entries + played
            mixed += 1
        elif played == 0:
            answers.open[left] = cell
            left += 1
    return mixed, left


# -- answers ---------------------------------------------------------------------------------------


@inner
def file_pure(g, batch, chosen, answers):
    """Store a pure answer: the joint action in row `chosen` of game g."""
    r, cell = batch.ptr[g] + chosen, batch.cell[g]
    answers.code[cell] = 1 + batch.row[r] - batch.first_row[g]
    for i in range(len(answers.value)):
        answers.value[i, cell] = batch.utility[r, i]


@inner
def _file_mixed(g, batch, sigma, mixed, answers):
    """Store a mixed answer; its entries follow those of the mixed answers before."""
    begin, cell, entries = batch.ptr[g], batch.cell[g], answers.mixed_ptr[mixed]
    answers.code[cell] = 0
    answers.mixed_cell[mixed] = cell
    for j in range(batch.ptr[g + 1] - begin):
        if sigma[j] > 0.0:
            answers.mixed_row[entries] = batch.row[begin + j] - batch.first_row[g]
            answers.mixed_prob[entries] = sigma[j]
            entries += 1
    answers.mixed_ptr[mixed + 1] = entries
    for i in range(len(answers.value)):
        mean = 0.0
        for j in range(batch.ptr[g + 1] - begin):
            if sigma[j] > 0.0:
                mean += sigma[j] * batch.utility[begin + j, i]
        answers.value[i, cell] = mean
