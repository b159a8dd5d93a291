"""Written stage games of correlated play: solve each, and file the answer under its cell."""

from __future__ import annotations

import numpy as np

from acegames.kernels.stage import MIXED, PURE, Stage, solve_stage, workspace
from acegames.system.compiled import inner, kernel


@kernel
def solve_written(written, count, choices, goal, widest, answers):
    """Solve the first `count` games. Returns the number of mixed answers, of open games, and of games that took a program."""
    N = choices.action.shape[1]
    C = answers.value.shape[1]
    row = np.empty(widest, np.int64)
    position = np.full(widest, -1, np.int64)
    sigma = np.empty(widest)
    work = workspace(widest, N, choices.first_action[1:] - choices.first_action[:-1], goal.correlated)
    mixed = entries = bad = programs = np.int64(0)  # typed at once: a literal 0 would be compiled for a second time
    answers.mixed_ptr[0] = 0
    for g in range(count):
        first, begin, end = written.first_row[g], written.ptr[g], written.ptr[g + 1]
        u, cell = written.utility[begin:end], written.cell[g]
        status = PURE
        if len(u) == 1:
            chosen = np.int64(0)
        elif N == 1:
            chosen = _best(u)
        else:
            for j in range(len(u)):
                row[j] = written.row[begin + j] - first
                position[row[j]] = j
            stage = Stage(u, row, position, choices.action[first:], choices.deviation[first:], choices.first_action)
            status, programmed = solve_stage(stage, goal, work, sigma)
            chosen = work.chosen[0]
            programs += programmed
            for j in range(len(u)):
                position[row[j]] = -1
        if status == PURE:
            answers.code[cell] = 1 + written.row[begin + chosen] - first
            for i in range(C):
                answers.value[cell, i] = u[chosen, i]
        elif status == MIXED:
            answers.code[cell] = 0
            for i in range(C):
                answers.value[cell, i] = 0.0
            for j in range(len(u)):
                if sigma[j] > 0.0:
                    answers.mixed_row[entries] = row[j]
                    answers.mixed_prob[entries] = sigma[j]
                    entries += 1
                    for i in range(C):
                        answers.value[cell, i] += sigma[j] * u[j, i]
            answers.mixed_cell[mixed] = cell
            mixed += 1
            answers.mixed_ptr[mixed] = entries
        else:
            answers.open[bad] = g
            bad += 1
    return mixed, bad, programs


@inner
def _best(u):
    """The only player's best row; the first of several."""
    best = np.int64(0)
    for j in range(1, len(u)):
        if u[j, 0] > u[best, 0]:
            best = np.int64(j)
    return best
