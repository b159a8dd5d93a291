"""Stage programs that floats cannot certify, in numbers of twice the digits (`doubles`).

The program is that of `stage.program`, of the same numbers as in exact arithmetic (`stage.exact`):
no utility is rounded, and units, ties and the order of pivots are the same (`precise_program`,
`precise_simplex`). What decides is not whether every pivot was right, but that the last basis of
each level is certified, and each probability known to the last bit (`precise_certificate`). What is
not decided in this way is left to exact arithmetic.
"""

from __future__ import annotations

import numpy as np

from acegames.kernels.precise_certificate import bar, fill_point, invert, keeps_levels
from acegames.kernels.precise_program import allocate_work, measure_changes, set_objective, write_program
from acegames.kernels.precise_simplex import dual_simplex, price, primal_simplex, start
from acegames.kernels.scaling import finer, finer_goal, goal_range, leave_outliers_out, measure
from acegames.kernels.stage import enter_stage, leave_stage, terms_line
from acegames.system.compiled import inner, kernel

TRIES = 4  # as in `stage.exact`


@kernel
def solve_precisely(batch, count, choices, goal, weights, widest, mixed, answers):
    """Solve the games answers.open[:count], which floats left; answer after `mixed` mixed ones.

    `weights` (N,) of the objective, as the concept has them. Return how many are mixed and open.
    """
    actions = choices.first_action[1:] - choices.first_action[:-1]
    work = allocate_work(widest, len(actions), actions, goal.correlated)
    return _solve_open(batch, count, choices, goal, weights, work, mixed, answers)


@inner
def _solve_open(batch, count, choices, goal, weights, work, mixed, answers):
    left = g = np.int64(0)
    for k in range(count):
        cell = answers.open[k]
        while batch.cell[g] != cell:
            g += 1
        stage = enter_stage(g, batch, choices, work.row, work.position)
        decided = _decided(stage, goal, goal.terms[terms_line(g, batch, goal)], weights, work)
        leave_stage(stage)
        if decided:
            mixed = _file(g, batch, stage, work.sigma, mixed, answers)
        else:
            answers.open[left] = cell
            left += 1
    return mixed, left


@inner
def _file(g, batch, stage, sigma, mixed, answers):
    """Store an answer; return how many are mixed in all."""
    cell, at, played = batch.cell[g], answers.mixed_ptr[mixed], 0
    for i in range(len(answers.value)):
        answers.value[i, cell] = 0.0
    for j in range(len(stage.utility)):
        if sigma[j] > 0.0:
            answers.mixed_row[at + played] = stage.row[j]
            answers.mixed_prob[at + played] = sigma[j]
            answers.code[cell] = 1 + stage.row[j]
            played += 1
            for i in range(len(answers.value)):
                answers.value[i, cell] += sigma[j] * stage.utility[j, i]
    if played == 1:
        return mixed
    answers.code[cell] = 0
    answers.mixed_cell[mixed] = cell
    answers.mixed_ptr[mixed + 1] = at + played
    return mixed + 1


@inner
def _decided(stage, goal, terms, weights, work):
    """Fill sigma as `stage.exact.solve_exactly` does; False: that is not certified."""
    u, top, unit = stage.utility, work.top, work.unit
    R, N = len(u), len(top)
    measure(u, R, N, top, work.low, unit)
    leave_outliers_out(u, R, N, top, unit, work.values, work.order)
    span = goal_range(u, R, N, goal.kind, terms, top, unit, work.values, work.order)
    for i in range(N):
        work.core[i] = unit[i]
    for _ in range(TRIES):
        if not _best(stage, goal, terms, weights, span, work):
            return False
        closer = finer_goal(u, R, N, goal.kind, terms, top, unit, work.sigma, span)
        if not finer(u, R, N, work.sigma, top, work.core, unit) and closer >= span:
            return True
        span = closer
    return True


@inner
def _best(stage, goal, terms, weights, span, work):
    """Fill sigma with the best point, level by level; False: it is not certified."""
    program = write_program(stage, goal, terms, span if span > 0.0 else 1.0, work)
    for by_depth in (True, False):  # if outliers are played with more than a tiny probability
        measure_changes(program, by_depth, work)
        m, n = start(program, weights, work)
        levels, k = _climb(program, m, n, weights, work)
        if levels == 0 or (work.near[0] and (program.fair or work.doubt[0])):
            return False  # which way exact arithmetic goes is not known
        if not by_depth or keeps_levels(program, levels, weights, work):
            return fill_point(program, k, m, work)
    return False


@inner
def _climb(program, m, n, weights, work):
    """Go to the best point level by level. Return how many levels that took, 0 if one of them is
    not certified, and how many weights are basic.
    """
    k = np.int64(0)
    if not dual_simplex(program, m, n, work):
        return np.int64(0), k
    for level in range(program.N + 1):
        if level > 0:
            set_objective(program, level, weights, work)
        price(program, m, n, work)
        if not primal_simplex(program, m, n, work):
            break
        k = invert(program, m, n, work)
        if k == 0:
            break
        for j in range(program.columns):
            work.levels[level, j], work.levels0[level, j] = 0.0, 0.0
        for i in range(k):
            j = work.basic[work.weight[i]]
            work.levels[level, j], work.levels0[level, j] = work.x[i], work.x0[i]
        left = bar(program, level, k, n, weights, work)
        if left < 0:
            break
        if left == 0:
            return np.int64(level + 1), k
    return np.int64(0), k
