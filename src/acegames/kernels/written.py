"""Written stage games of correlated play: solve each, and file the answer under its cell."""

from __future__ import annotations

import numpy as np

from acegames.kernels.lanes import LANES
from acegames.kernels.lockstep import FEWEST, group_room, solve_group
from acegames.kernels.records import EGALITARIAN, FAIR
from acegames.kernels.stage import MIXED, PURE, is_pure, solve_by_programs, workspace
from acegames.system.compiled import inner, kernel


@kernel
def solve_written(written, count, choices, goal, widest, answers):
    """Solve the first `count` games. Returns how many are mixed, open, and took a program."""
    actions = choices.first_action[1:] - choices.first_action[:-1]
    work = workspace(widest, len(actions), actions, goal.correlated)
    group = group_room(widest, len(actions), actions, goal.correlated)
    answers.mixed_ptr[0] = 0
    return solve_more(written, count, choices, goal, work, group, np.int64(0), np.int64(0), answers)


@inner
def solve_more(written, count, choices, goal, work, group, mixed, bad, answers):
    """The same behind answers of which some are mixed and some open. The numbers of both go on.

    Games that need programs wait until there are eight of a kind.
    """
    programs = waiting = widest = np.int64(0)  # typed at once: a literal would be compiled again
    for g in range(count + 1):
        if g < count:
            if group.N == 1:
                _file_pure(g, written, best_row(written, g), answers)
                continue
            if is_pure(g, written, choices, goal, work):
                _file_pure(g, written, work.chosen[0], answers)
                continue
        if waiting == LANES or g == count or (waiting > 0 and not _is_alike(g, group.games[0], written, choices)):
            programs += waiting
            mixed, bad = _solve_waiting(waiting, widest, written, choices, goal, work, group, mixed, bad, answers)
            waiting = widest = np.int64(0)
        if g < count:
            group.games[waiting] = g
            waiting += 1
            widest = max(widest, written.row[written.ptr[g + 1] - 1] - written.first_row[g] + 1)
    return mixed, bad, programs


@inner
def _is_alike(g, other, written, choices):
    """Whether the rows of game g are in the other's tables too: the same actions and deviations."""
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
def _solve_waiting(waiting, widest, written, choices, goal, work, group, mixed, bad, answers):
    """Solve the games of the group. Returns how many are mixed and open in all."""
    together = waiting >= FEWEST and goal.kind not in (EGALITARIAN, FAIR)
    if together:
        group.games[waiting:] = group.games[0]
        widest = min(widest, len(choices.action) - written.first_row[group.games[0]])
        solve_group(written, choices, goal, widest, group)
    for lane in range(waiting):
        g = group.games[lane]
        begin, end, first = written.ptr[g], written.ptr[g + 1], written.first_row[g]
        played = group.memory[group.feasible + widest, lane] if together else 0.0
        if played > 0.0:
            for r in range(begin, end):
                work.sigma[r - begin] = group.memory[group.x + written.row[r] - first, lane]
                if work.sigma[r - begin] > 0.0:
                    work.chosen[0] = r - begin
            status = PURE if played == 1.0 else MIXED
        else:
            status = solve_by_programs(g, written, choices, goal, work)
        if status == PURE:
            _file_pure(g, written, work.chosen[0], answers)
        elif status == MIXED:
            _file_mixed(g, written, work.sigma, mixed, answers)
            mixed += 1
        else:
            answers.open[bad] = written.cell[g]
            bad += 1
    return mixed, bad


@inner
def best_row(written, g):
    """The only player's best row; the first of several."""
    best = written.ptr[g]
    for r in range(written.ptr[g], written.ptr[g + 1]):
        if written.utility[r, 0] > written.utility[best, 0]:
            best = r
    return best - written.ptr[g]


@inner
def _file_pure(g, written, chosen, answers):
    r, cell = written.ptr[g] + chosen, written.cell[g]
    answers.code[cell] = 1 + written.row[r] - written.first_row[g]
    for i in range(answers.value.shape[1]):
        answers.value[cell, i] = written.utility[r, i]


@inner
def _file_mixed(g, written, sigma, mixed, answers):
    """The entries follow those of the mixed answers before."""
    begin, cell, entries = written.ptr[g], written.cell[g], answers.mixed_ptr[mixed]
    answers.code[cell] = 0
    answers.mixed_cell[mixed] = cell
    for i in range(answers.value.shape[1]):
        answers.value[cell, i] = 0.0
    for j in range(written.ptr[g + 1] - begin):
        if sigma[j] > 0.0:
            answers.mixed_row[entries] = written.row[begin + j] - written.first_row[g]
            answers.mixed_prob[entries] = sigma[j]
            entries += 1
            for i in range(answers.value.shape[1]):
                answers.value[cell, i] += sigma[j] * written.utility[begin + j, i]
    answers.mixed_ptr[mixed + 1] = entries
