"""Eight stage programs in lockstep, one per lane: the regular case of `stage`, to the same bits.

Regular means: a linear objective or none, no outliers, no values that are equal but for rounding,
and nothing in the answer that asks for another attempt, another level or exact arithmetic. Most
programs are regular. A lane that turns out not to be is given up, and `stage` solves its game
alone.

The games of a group share their table of deviations. In a lane, joint actions that are not feasible
have columns of zeros, which never enter, and so has the one where it starts; deviations that cannot
bind have rows of zeros, which never leave. None of these changes what becomes of the others.

On a GPU a group is one game, and the threads of a warp may work on it (`intrinsics`). This module
says in which order the steps of `regular` follow each other, and what follows from each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from acegames.kernels import regular as lanewise
from acegames.kernels.intrinsics import SCANNERS, WARP, lane_id_of, own_lanes, syncwarp
from acegames.kernels.lanes import LANES, absolute, any_lane, broadcast, get, where
from acegames.kernels.records import ANY, MAX_BATCH_TABLEAU, Floats, Ints
from acegames.kernels.simplex import STRICT
from acegames.numerics import DUAL_INFEASIBILITY, HIGH_DUAL, LARGE_CERTIFICATE, LP_CERTIFICATE, NOISE, OUTLIER, TIE
from acegames.system.compiled import allocates, inlined, inner

PIVOTS = 64  # after so many a lane is given up


class Group(NamedTuple):
    """Room for eight games. The numbers say where something begins."""

    memory: Floats  # (places, 8)
    fixed: Floats  # the same, apart because its places are known beforehand, so that a GPU holds it in registers
    # the same, apart because it is worked on most: (rows + 2, joint actions + 1) rows, sum of
    # weights, reduced costs; right sides in the last column
    table: Floats
    point: Floats  # (2 variables, 8) values of joint actions, of slacks, and of the one that stands for none; then their duals
    A: Floats  # (rows x joint actions, 8) what deviations gain; without places where that is found again each time
    whole: Ints  # (places, 8): basic variable of each row, other one of each column, places of the pivot
    games: Ints  # (8,)
    row: Floats  # (joint actions + 1, 8) the pivot's row
    owner: Ints  # (rows,) whose deviation, to which action of all players', after which recommendation, or `regular.ALWAYS`
    target: Ints
    recommended: Ints
    warp: Any  # that works on it; None: one thread
    N: int
    # in `memory`
    v: int  # (N, joint actions) utilities in units; what leaving X is worth, where one is not feasible
    player: int  # (N, 5)
    scale: int  # (rows,)
    slack_scale: int  # (rows,)
    dual_infeasibility: int  # (rows,)
    column: int  # (rows + 2,) the pivot's
    values: int  # (2N,) of the answer
    # in `fixed`
    feasible: int  # (joint actions,) 1 or 0; behind them the number of joint actions, and a quarter of it
    utility: int  # (N, joint actions)
    abs_total: int  # the same
    c: int  # (joint actions,)
    reduced_payoff: int  # (joint actions,) reduced payoffs; in between, reduced costs over the pivot's row
    inverse: int  # (joint actions,) 1 over the pivot's row
    fallback: int  # (warp lanes,) 1 where a lane of the warp has found that a game is not regular
    bound: int  # (warp lanes,) the least ratio that a lane has found; its highest dual; how many of its duals do not say enough
    least: int  # (scanners,) the least of those ratios that some lanes have found
    lowest: int  # (scanners, 2) the lowest right side, and its row
    largest: int  # (scanners, 3) the largest pivot, its column, and 1 over it
    # in `whole`
    basic: int
    other: int
    place: int  # (warp lanes, 2) where the pivot's row begins, and its column


@allocates
def allocate_group(n, N, actions, correlated, lanes=LANES, warp=None, keep_gains=True):
    """Allocate a group for games of up to n joint actions; an empty one where that is too much.

    What deviations gain is stored if `keep_gains`. `actions` (N,) is the number of each player's.
    """
    rows = np.int64(0)
    for i in range(N):
        rows += actions[i] * (actions[i] - 1) if correlated else actions[i]
    if rows * n > MAX_BATCH_TABLEAU:
        rows, n = np.int64(0), np.int64(0)
    chairs, scanners = (1, 1) if warp is None else (WARP, SCANNERS)
    player = N * n
    scale = player + 5 * N
    slack_scale, dual_infeasibility, column, values = (
        scale + rows,
        scale + 2 * rows,
        scale + 3 * rows,
        scale + 4 * rows + 2,
    )
    utility = n + 2
    abs_total, c = utility + N * n, utility + 2 * N * n
    reduced_payoff, inverse, fallback = c + n, c + 2 * n, c + 3 * n
    bound, least = fallback + chairs, fallback + 2 * chairs
    lowest, largest, end = least + scanners, least + 3 * scanners, least + 6 * scanners
    place = rows + 1 + n
    memory, fixed = np.zeros((values + 2 * N, lanes)), np.zeros((end, lanes))
    table, row = np.zeros(((rows + 2) * (n + 1), lanes)), np.zeros((n + 1, lanes))
    point, A = np.zeros((2 * (n + rows + 1), lanes)), np.zeros((rows * n if keep_gains else 0, lanes))
    whole, games = np.zeros((place + 2 * chairs, lanes), np.int64), np.zeros(lanes, np.int64)
    owner, target, recommended = np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.full(rows, lanewise.ALWAYS)
    r = begin = np.int64(0)
    for i in range(N if rows > 0 else 0):
        for to in range(actions[i]):
            for after in range(actions[i] if correlated else 1):
                if not (correlated and after == to):
                    owner[r], target[r] = i, begin + to
                    recommended[r] = after if correlated else lanewise.ALWAYS
                    r += 1
        begin += actions[i]
    arrays = memory, fixed, table, point, A, whole, games, row, owner, target, recommended
    numbers = np.int64(0), player, scale, slack_scale, dual_infeasibility, column, values
    known = np.int64(0), utility, abs_total, c, reduced_payoff, inverse, fallback, bound, least, lowest, largest
    return Group(*arrays, warp, N, *numbers, *known, np.int64(0), rows + 1, place)


@inlined
def fits_group(group):
    """Return whether there is room for games in a group."""
    return len(group.row) > 1


@inner
def solve_group(first, choices, goal, n, group):
    """Solve the group's games (`regular.enter`), whose joint actions are n rows from the `first`
    on.

    Fills the weights of joint actions, what they are worth, and behind `group.feasible` how many
    are played, 0 in lanes that are given up (`regular.file_lane`).
    """
    rows = len(group.owner)
    regular, span, best = _program(first, choices, goal, n, rows, group)
    played = broadcast(0.0)
    if any_lane(regular):
        regular = _dual_simplex(n, rows + 1, regular, group)
        regular, value = _certified(goal.kind, first, choices, n, rows, regular, group)
        if any_lane(regular):
            _refine(first, choices, n, rows, group)
            if goal.kind != ANY:  # else ties gave the objective away
                for j in range(n):
                    value = value - get(group.fixed, group.c + j) * get(group.point, j)
                regular = regular & (value <= 4.0 * TIE)
            regular, played = _accepted(goal, span, best, first, choices, n, rows, regular, group)
    for k in range(own_lanes(group.warp)):
        lanewise.find_values(lane_id_of(k, group.warp), where(regular, played, 0.0), n, group)
    syncwarp(group.warp)


@inlined
def _no_fallback(group):
    """Return where no lane has found anything that is not regular."""
    flags = lanewise.sum_of_lanes(group.fallback, group)
    return flags <= 0.0


@inner
def _program(first, choices, goal, n, rows, group):
    """Fill the programs and their first dictionaries.

    Returns where they are regular, and the unit and the best of the objective.
    """
    warp = group.warp
    for k in range(own_lanes(warp)):
        lanewise.measure_players(lane_id_of(k, warp), goal.floor, n, group)
    syncwarp(warp)
    for k in range(own_lanes(warp)):
        lanewise.count_in_units(lane_id_of(k, warp), goal.terms[0], n, group)
    syncwarp(warp)
    regular, span, best = _objective_range(goal.terms[0], n, group)
    for k in range(own_lanes(warp)):
        lanewise.weigh(lane_id_of(k, warp), goal.terms[0], span, n, group)
        lanewise.incentive_rows(lane_id_of(k, warp), first, choices, n, rows, group)
    syncwarp(warp)
    a, most = _best_action(n, group)
    for k in range(own_lanes(warp)):
        lanewise.start(lane_id_of(k, warp), a, most, first, choices, n, rows, group)
    syncwarp(warp)
    return regular & _no_fallback(group), span, best


@inner
def _objective_range(terms, n, group):
    """Return where the objective is regular, its unit and its best."""
    m = group.memory
    largest = noise = broadcast(0.0)
    for i in range(group.N):
        weight = abs(terms[i])
        unit, top = get(m, group.player + 5 * i + lanewise.UNIT), get(m, group.player + 5 * i + lanewise.TOP)
        largest = max(largest, unit * weight)
        abs_total = get(m, group.player + 5 * i + lanewise.ROUNDING)
        noise = noise + OUTLIER * NOISE * weight * (max(top, 0.0 - top) + abs_total)
    best, worst = broadcast(-np.inf), broadcast(np.inf)
    for j in range(n):
        total = get(group.fixed, group.reduced_payoff + j)
        best = where(lanewise.is_feasible(j, group), max(best, total), best)
        worst = where(lanewise.is_feasible(j, group), min(worst, total), worst)
    span = best - worst
    near = broadcast(0.0)
    for j in range(n):
        close = (best - get(group.fixed, group.reduced_payoff + j)) * OUTLIER < span
        near = near + where(lanewise.is_feasible(j, group) & close, 1.0, 0.0)
    regular = (span > noise) & (near <= get(group.fixed, group.feasible + n + 1))
    return regular, min(span, largest), best


@inner
def _best_action(n, group):
    """Return the joint action where the objective is best, and what it is there."""
    a, most = broadcast(0.0), broadcast(-np.inf)
    for j in range(n):
        c = get(group.fixed, group.c + j)
        better = lanewise.is_feasible(j, group) & (c > most)
        a, most = where(better, j, a), where(better, c, most)
    return a, most


@inner
def _dual_simplex(n, count, regular, group):
    """Run the dual simplex of `simplex` on `count` rows; return where it came to an end."""
    warp = group.warp
    for _ in range(PIVOTS):
        for k in range(own_lanes(warp)):
            lanewise.find_lowest(lane_id_of(k, warp), n, count, group)
        syncwarp(warp)
        r = lanewise.lowest_of_lanes(group)
        busy = regular & (r >= 0.0)
        if not any_lane(busy):
            return regular
        for k in range(own_lanes(warp)):
            lanewise.find_bound(lane_id_of(k, warp), where(busy, r, 0.0), n, count, group)
        syncwarp(warp)
        for k in range(own_lanes(warp)):
            lanewise.join_bounds(lane_id_of(k, warp), group)
        syncwarp(warp)
        for k in range(own_lanes(warp)):
            lanewise.find_largest(lane_id_of(k, warp), n, group)
        syncwarp(warp)
        j, inverse = lanewise.largest_of_lanes(group)
        regular = regular & ~(busy & (j < 0.0))
        busy = busy & (j >= 0.0)
        if any_lane(busy):
            for k in range(own_lanes(warp)):
                lanewise.set_apart(lane_id_of(k, warp), busy, r, j, where(busy, 0.0 - inverse, 0.0), n, count, group)
            syncwarp(warp)
            for k in range(own_lanes(warp)):
                lanewise.eliminate(lane_id_of(k, warp), n, count, group)
            syncwarp(warp)
    return regular & ~regular


@inner
def _certified(kind, first, choices, n, rows, regular, group):
    """Return where weak duality holds and no other level is open; and the objective."""
    warp = group.warp
    for k in range(own_lanes(warp)):
        lanewise.recompute_gains(lane_id_of(k, warp), n, group)
        lanewise.read_point(lane_id_of(k, warp), n, rows, group)
    syncwarp(warp)
    few = get(group.fixed, group.feasible + n) <= STRICT
    accepted = where(few, LP_CERTIFICATE, LARGE_CERTIFICATE)
    for k in range(own_lanes(warp)):
        lanewise.check_duals(lane_id_of(k, warp), accepted, first, choices, n, rows, group)
    syncwarp(warp)
    value = dual_infeasibility = broadcast(0.0)
    for j in range(n):
        value = value + get(group.fixed, group.c + j) * get(group.point, j)
    for r in range(rows):
        dual_infeasibility = dual_infeasibility + get(group.memory, group.dual_infeasibility + r)
    gap = level = broadcast(-np.inf)
    for j in range(n):
        reduced_payoff = get(group.fixed, group.reduced_payoff + j)
        gap = where(lanewise.is_feasible(j, group), max(gap, reduced_payoff - value), gap)
        level = where(get(group.point, j) > 0.0, max(level, reduced_payoff), level)
    regular = regular & (~few | (dual_infeasibility <= DUAL_INFEASIBILITY)) & (absolute(gap) <= accepted)
    if kind != ANY:
        high = lanewise.highest_of_lanes(group) > HIGH_DUAL
        syncwarp(warp)
        for k in range(own_lanes(warp)):
            lanewise.check_levels(lane_id_of(k, warp), level, high, n, rows, group)
        syncwarp(warp)
        regular = regular & (lanewise.sum_of_lanes(group.bound, group) <= 0.0)
    return regular & _no_fallback(group), value


@inner
def _refine(first, choices, n, rows, group):
    """Take rounding out of the points, as `simplex.refine` does."""
    warp = group.warp
    factor = 1.0 / lanewise.total_weight(n, group)
    syncwarp(warp)
    for k in range(own_lanes(warp)):
        lanewise.multiply_weights(lane_id_of(k, warp), factor, n, group)
    syncwarp(warp)
    for k in range(own_lanes(warp)):
        lanewise.find_slacks(lane_id_of(k, warp), first, choices, n, rows, group)
    syncwarp(warp)
    for k in range(own_lanes(warp)):
        lanewise.slacks_of_columns(lane_id_of(k, warp), n, group)
    syncwarp(warp)
    for k in range(own_lanes(warp)):
        lanewise.take_slacks_out(lane_id_of(k, warp), factor, n, rows, group)
        lanewise.read_weights(lane_id_of(k, warp), n, rows, group)
    syncwarp(warp)


@inner
def _accepted(goal, span, best, first, choices, n, rows, regular, group):
    """Drop weights that are rounding; returns where the answer holds, and how many are left."""
    warp = group.warp
    syncwarp(warp)
    for k in range(own_lanes(warp)):
        lanewise.drop_rounding(lane_id_of(k, warp), n, group)
    syncwarp(warp)
    total, played = lanewise.total_weight(n, group), broadcast(0.0)
    for j in range(n):
        played = played + where(get(group.point, j) > 0.0, 1.0, 0.0)
    syncwarp(warp)
    for k in range(own_lanes(warp)):
        lanewise.divide_weights(lane_id_of(k, warp), total, n, group)
    syncwarp(warp)
    for k in range(own_lanes(warp)):
        lanewise.measure_answer(lane_id_of(k, warp), n, group)
    syncwarp(warp)
    for k in range(own_lanes(warp)):
        lanewise.check_rows(lane_id_of(k, warp), first, choices, n, rows, group)
        lanewise.check_units(lane_id_of(k, warp), goal, n, span, best, group)
    syncwarp(warp)
    return regular & (total > 0.5) & _no_fallback(group), played
