"""Written stage games of correlated play: solve each, and file the answer under its cell."""

from __future__ import annotations

import numpy as np

from acegames.kernels.stage import MIXED, PURE, solve_stage, workspace
from acegames.system.compiled import inner, kernel


@kernel
def solve_written(written, count, choices, goal, widest, answers):
    """Solve the first `count` games. Returns how many are mixed, open, and took a program."""
    actions = choices.first_action[1:] - choices.first_action[:-1]
    work = workspace(widest, len(actions), actions, goal.correlated)
    mixed = bad = programs = np.int64(0)  # typed at once: a literal 0 would be compiled for a second time
    answers.mixed_ptr[0] = 0
    for g in range(count):
        status, took = PURE, False
        if len(actions) == 1:
            work.chosen[0] = best_row(written, g)
        else:
            status, took = solve_stage(g, written, choices, goal, work)
        programs += took
        if status == PURE:
            _file_pure(g, written, work.chosen[0], answers)
        elif status == MIXED:
            _file_mixed(g, written, work.sigma, mixed, answers)
            mixed += 1
        else:
            answers.open[bad] = g
            bad += 1
    return mixed, bad, programs


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
