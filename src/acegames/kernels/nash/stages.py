"""All written stages, one after the other.

Utilities are counted from a player's best in units, as in `kernels.stage`; an answer that leaves a
player far less than a unit to gain is looked for again in finer units.
"""

from __future__ import annotations

import numpy as np

from acegames.kernels.nash.records import MIXED, NOTHING, PURE, UNSURE, workspace
from acegames.kernels.nash.scale import best_pure, may_be_beaten, scale, scale_objective
from acegames.kernels.nash.two_players import fill_product, solve_two_players
from acegames.kernels.records import ANY
from acegames.kernels.stage import best_row, enter_stage, gains_alone, leave_stage, terms_line
from acegames.kernels.units import finer, finer_goal, goal_range, leave_outliers_out, measure
from acegames.system.compiled import inlined, inner, kernel

ATTEMPTS = 4  # at one stage, in units that the one before shows, until exact arithmetic is asked


@kernel
def solve_nash(written, choices, goal, limit, found):
    """Find a Nash equilibrium of each stage, looking at up to `limit` pairs of supports.

    Returns the number of stages that took a search.
    """
    most = rows = widest = np.int64(1)
    for i in range(choices.action.shape[1]):
        actions = choices.first_action[i + 1] - choices.first_action[i]
        most = max(most, actions)
        rows = min(rows * actions, len(choices.action))  # a state has each joint action once at most
    for g in range(len(written.cell)):
        widest = max(widest, written.ptr[g + 1] - written.ptr[g])
    work = workspace(widest, choices.action.shape[1], goal.kind, most, rows)
    return _solve(written, choices, goal, limit, work, found)


@inner
def _solve(written, choices, goal, limit, work, found):
    game, row, position = work.search.game, work.row, work.position
    searched = entries = np.int64(0)
    found.mixed_ptr[0] = 0
    for g in range(len(written.cell)):
        status, pure, took = PURE, np.int64(0), False
        if choices.action.shape[1] == 1:
            pure = best_row(written.utility[written.ptr[g] : written.ptr[g + 1]])
        elif written.ptr[g + 1] - written.ptr[g] > 1:
            stage = enter_stage(g, written, choices, row, position)
            terms = goal.terms[terms_line(g, written, goal)]
            status, pure, took = _solve_stage(stage, goal.kind, terms, limit, work)
            leave_stage(stage)
        searched += took
        if status == PURE:
            for i in range(found.value.shape[1]):
                found.value[g, i] = written.utility[written.ptr[g] + pure, i]
        elif status == MIXED:
            pure = np.int64(-1)
            entries = _file_mixed(g, entries, choices.first_action, game, found)
        found.status[g] = status
        found.pure[g] = pure
        found.mixed_ptr[g + 1] = entries
    return searched


@inner
def _solve_stage(stage, kind, terms, limit, work):
    """Return what becomes of a stage, its best pure equilibrium or -1, and whether it took a
    search.
    """
    v, values, order, sigma, _, _, units, objective, scores, room = work
    top, low, unit, core, _ = units
    u = stage.utility
    R, N = len(u), len(top)
    best = np.int64(0)
    searched = False
    if not measure(u, R, N, top, low, unit):
        return PURE, best, searched
    leave_outliers_out(u, R, N, top, unit, values, sigma)
    span = goal_range(u, R, N, kind, terms, top, unit, values, sigma)
    for i in range(N):
        core[i] = unit[i]
    for _ in range(ATTEMPTS):
        scale(u, units, v, sigma, values, order)
        scale_objective(terms, span, units, objective)
        best = best_pure(stage, v, objective, scores)
        status = PURE if best >= 0 else NOTHING
        if N == 2 and (best < 0 or may_be_beaten(v[:R], objective, scores)):
            searched = True
            status = solve_two_players(stage, v, best >= 0, limit, units, objective, scores, room)
        if status > MIXED:
            return status, best, searched
        if status == MIXED:
            fill_product(stage, room.game, sigma)
        else:
            for j in range(R):
                sigma[j] = j == best
        closer = finer_goal(u, R, N, kind, terms, top, unit, sigma, span) if kind != ANY else span
        if not finer(u, R, N, sigma, top, core, unit) and closer == span:
            return (status if status == MIXED or _is_stable(best, stage) else UNSURE), best, searched
        span = closer
    return UNSURE, best, searched


@inlined
def _is_stable(a, stage):
    """Return whether no player gains by a feasible deviation from a, by the stage's own numbers."""
    stable = True
    for i in range(len(stage.first_action) - 1):
        stable = stable and not gains_alone(a, i, stage)
    return stable


@inlined
def _file_mixed(g, entries, first_action, game, found):
    """Append the mixtures of both players to the entries. Returns the number of entries."""
    for i in range(4):
        found.value[g, i] = game.value[i]
    for i in range(2):
        for c in range(game.size[i]):
            if game.mixture[i, c] > 0.0:
                found.mixed_action[entries] = first_action[i] + game.name[i, c]
                found.mixed_prob[entries] = game.mixture[i, c]
                entries += 1
    return entries
