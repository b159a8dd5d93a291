"""Written stage games of correlated play: solve each, and file the answer under its cell.

`solve_plain` does what nearly all games need: pure answers, and plain programs in lockstep. The
games that it leaves are for `solve_written`, which does everything, one by one. They are compiled
apart, because the second takes as long to compile as the first, and many games never need it.
"""

from __future__ import annotations

import numpy as np

from acegames.kernels import plain
from acegames.kernels.lanes import LANES
from acegames.kernels.lockstep import has_room, solve_group
from acegames.kernels.records import EGALITARIAN, FAIR
from acegames.kernels.stage import MIXED, PURE, is_pure, solve_by_programs, workspace
from acegames.kernels.teams import seat_of, seats, wait
from acegames.system.compiled import inner, kernel


@kernel
def solve_written(written, count, choices, goal, widest, answers):
    """Solve the first `count` games. Returns how many are mixed, open, and took a program."""
    actions = choices.first_action[1:] - choices.first_action[:-1]
    work = workspace(widest, len(actions), actions, goal.correlated)
    return _solve_each(written, count, choices, goal, work, answers)


@inner
def _solve_each(written, count, choices, goal, work, answers):
    mixed = bad = programs = np.int64(0)  # typed at once: a literal would be compiled again
    answers.mixed_ptr[0] = 0
    for g in range(count):
        if is_pure(g, written, choices, goal, work):
            file_pure(g, written, work.chosen[0], answers)
        else:
            mixed, bad = solve_alone(g, written, choices, goal, work, mixed, bad, answers)
            programs += 1
    return mixed, bad, programs


@inner
def solve_alone(g, written, choices, goal, work, mixed, bad, answers):
    """Solve a game that is not pure; returns how many are mixed and open in all."""
    status = solve_by_programs(g, written, choices, goal, work)
    if status == PURE:
        file_pure(g, written, work.chosen[0], answers)
    elif status == MIXED:
        _file_mixed(g, written, work.sigma, mixed, answers)
        mixed += 1
    else:
        answers.open[bad] = written.cell[g]
        bad += 1
    return mixed, bad


# -- what is plain --------------------------------------------------------------------------------


@inner
def solve_plain(written, count, choices, goal, pure, group, mixed, left, answers):
    """Solve what is pure or plain of the first `count` games, and leave the others.

    Of earlier games some are mixed and some left; the numbers of both go on. Returns them, and how
    many games took a program. Those wait until there are eight of a kind.
    """
    programs = waiting = widest = np.int64(0)
    together = goal.kind not in (EGALITARIAN, FAIR) and has_room(group)
    for g in range(count + 1):
        if g < count:
            if is_pure(g, written, choices, goal, pure):
                file_pure(g, written, pure.chosen[0], answers)
                continue
            if not together:
                answers.open[left] = written.cell[g]
                left += 1
                continue
        if waiting == LANES or g == count or (waiting > 0 and not _is_alike(g, group.games[0], written, choices)):
            before = left
            mixed, left = _solve_waiting(waiting, widest, written, choices, goal, group, mixed, left, answers)
            programs += waiting - (left - before)
            waiting = widest = np.int64(0)
        if g < count:
            group.games[waiting] = g
            waiting += 1
            widest = max(widest, written.row[written.ptr[g + 1] - 1] - written.first_row[g] + 1)
    return mixed, left, programs


@inner
def _is_alike(g, other, written, choices):
    """Return whether the rows of game g are in the other's tables too: the same actions and
    deviations.
    """
    first, at = written.first_row[g], written.first_row[other]
    if first == at:
        return True
    for r in range(written.ptr[g], written.ptr[g + 1]):
        row = written.row[r]
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
def _solve_waiting(waiting, widest, written, choices, goal, group, mixed, left, answers):
    """Solve the games of the group. Returns how many are mixed and left in all."""
    if waiting == 0:
        return mixed, left
    n = min(widest, len(choices.action) - written.first_row[group.games[0]])
    return solve_in_lanes(waiting, n, written, choices, goal, group, mixed, left, answers)


@inner
def solve_in_lanes(waiting, n, written, choices, goal, group, mixed, left, answers):
    """The same, with the first n rows of their states; the tables have as many from there on."""
    team = group.team
    for lane in range(waiting, LANES):
        group.games[lane] = group.games[0]
    for k in range(seats(team)):
        plain.clear(seat_of(k, team), n, group)
    wait(team)
    for k in range(seats(team)):
        plain.enter(seat_of(k, team), written, n, group)
    wait(team)
    solve_group(written.first_row[group.games[0]], choices, goal, n, group)
    for lane in range(waiting):
        cell, entries, played = written.cell[group.games[lane]], answers.mixed_ptr[mixed], np.int64(0)
        support = answers.mixed_row[entries:], answers.mixed_prob[entries:]
        for k in range(seats(team)):
            played = plain.file_lane(seat_of(k, team), lane, cell, n, group, answers.value, answers.code, *support)
        if played > 1:
            answers.mixed_cell[mixed] = cell
            answers.mixed_ptr[mixed + 1] = entries + played
            mixed += 1
        elif played == 0:
            answers.open[left] = cell
            left += 1
    return mixed, left


# -- filing ---------------------------------------------------------------------------------------


@inner
def file_pure(g, written, chosen, answers):
    r, cell = written.ptr[g] + chosen, written.cell[g]
    answers.code[cell] = 1 + written.row[r] - written.first_row[g]
    for i in range(len(answers.value)):
        answers.value[i, cell] = written.utility[r, i]


@inner
def _file_mixed(g, written, sigma, mixed, answers):
    """The entries follow those of the mixed answers before."""
    begin, cell, entries = written.ptr[g], written.cell[g], answers.mixed_ptr[mixed]
    answers.code[cell] = 0
    answers.mixed_cell[mixed] = cell
    for j in range(written.ptr[g + 1] - begin):
        if sigma[j] > 0.0:
            answers.mixed_row[entries] = written.row[begin + j] - written.first_row[g]
            answers.mixed_prob[entries] = sigma[j]
            entries += 1
    answers.mixed_ptr[mixed + 1] = entries
    for i in range(len(answers.value)):
        mean = 0.0
        for j in range(written.ptr[g + 1] - begin):
            if sigma[j] > 0.0:
                mean += sigma[j] * written.utility[begin + j, i]
        answers.value[i, cell] = mean
