"""Eight stage programs in lockstep, one per lane: the plain case of `stage`, to the same bits.

Plain means: a linear objective or none, no outliers, no values that are equal but for rounding, and
nothing in the answer that asks for another attempt, another level or exact arithmetic. Most
programs are plain. A lane that turns out not to be is given up, and `stage` solves its game alone.

The games of a group share their table of deviations. In a lane, joint actions that are not feasible
have columns of zeros, which never enter, and so has the one where it starts; deviations that cannot
bind have rows of zeros, which never leave. None of these changes what becomes of the others.

On a GPU a group is one game, and the threads of a warp may work on it (`teams`). This module says
in which order the phases of `plain` follow each other, and what each makes of what is found so far.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from acegames.kernels import plain as phase
from acegames.kernels.lanes import LANES, anywhere, get, magnitude, spread, where
from acegames.kernels.records import ANY, TOGETHER, Floats, Ints
from acegames.kernels.simplex import STRICT
from acegames.kernels.teams import SCANNERS, WARP, seat_of, seats, wait
from acegames.numerics import HIGH_PRICE, LARGE_CERTIFICATE, LEVER, LP_CERTIFICATE, NOISE, OUTLIER, TIE
from acegames.system.compiled import inlined, inner, making

PIVOTS = 64  # after so many a lane is given up


class Group(NamedTuple):
    """Room for eight games. The numbers say where something begins."""

    memory: Floats  # (places, 8)
    fixed: Floats  # the same, apart because its places are known beforehand, so that a GPU holds it in registers
    # the same, apart because it is worked on most: (rows + 2, joint actions + 1) rows, sum of
    # weights, reduced costs; right sides in the last column
    table: Floats
    point: Floats  # (2 variables, 8) values of joint actions, of slacks, and of the one that stands for none; then their prices
    A: Floats  # (rows x joint actions, 8) what deviations gain; without places where that is found again each time
    whole: Ints  # (places, 8): basic variable of each row, other one of each column, places of the pivot
    games: Ints  # (8,)
    row: Floats  # (joint actions + 1, 8) the pivot's row
    owner: Ints  # (rows,) whose deviation, to which action of all players', and told which, or `plain.ALWAYS`
    target: Ints
    told: Ints
    team: Any  # that works on it; None: one thread
    N: int
    # in `memory`
    v: int  # (N, joint actions) utilities in units; what leaving X is worth, where one is not feasible
    player: int  # (N, 5)
    scale: int  # (rows,)
    size: int  # (rows,)
    lever: int  # (rows,)
    column: int  # (rows + 2,) the pivot's
    values: int  # (2N,) of the answer
    # in `fixed`
    feasible: int  # (joint actions,) 1 or 0; behind them the number of joint actions, and a quarter of it
    utility: int  # (N, joint actions)
    gross: int  # the same
    c: int  # (joint actions,)
    worth: int  # (joint actions,) prices; in between, reduced costs over the pivot's row
    inverse: int  # (joint actions,) 1 over the pivot's row
    doubt: int  # (seats,) 1 where a seat has found that a game is not plain
    bound: int  # (seats,) the least ratio that a seat has found; its highest price; how many of its prices do not say enough
    least: int  # (scanners,) the least of those ratios that some seats have found
    lowest: int  # (scanners, 2) the lowest right side, and its row
    largest: int  # (scanners, 3) the largest pivot, its column, and 1 over it
    # in `whole`
    basic: int
    other: int
    place: int  # (seats, 2) where the pivot's row begins, and its column


@making
def group_room(n, N, actions, correlated, lanes=LANES, team=None, kept=True):
    """Room for games of up to n joint actions, or for none where that is too much (`has_room`).

    `actions` (N,) is the number of each player's. What deviations gain may be `kept`.
    """
    rows = np.int64(0)
    for i in range(N):
        rows += actions[i] * (actions[i] - 1) if correlated else actions[i]
    if rows * n > TOGETHER:
        rows, n = np.int64(0), np.int64(0)
    chairs, scanners = (1, 1) if team is None else (WARP, SCANNERS)
    player = N * n
    scale = player + 5 * N
    size, lever, column, values = scale + rows, scale + 2 * rows, scale + 3 * rows, scale + 4 * rows + 2
    utility = n + 2
    gross, c = utility + N * n, utility + 2 * N * n
    worth, inverse, doubt = c + n, c + 2 * n, c + 3 * n
    bound, least = doubt + chairs, doubt + 2 * chairs
    lowest, largest, end = least + scanners, least + 3 * scanners, least + 6 * scanners
    place = rows + 1 + n
    memory, fixed = np.zeros((values + 2 * N, lanes)), np.zeros((end, lanes))
    table, row = np.zeros(((rows + 2) * (n + 1), lanes)), np.zeros((n + 1, lanes))
    point, A = np.zeros((2 * (n + rows + 1), lanes)), np.zeros((rows * n if kept else 0, lanes))
    whole, games = np.zeros((place + 2 * chairs, lanes), np.int64), np.zeros(lanes, np.int64)
    owner, target, told = np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.full(rows, phase.ALWAYS)
    r = begin = np.int64(0)
    for i in range(N if rows > 0 else 0):
        for to in range(actions[i]):
            for after in range(actions[i] if correlated else 1):
                if not (correlated and after == to):
                    owner[r], target[r] = i, begin + to
                    told[r] = after if correlated else phase.ALWAYS
                    r += 1
        begin += actions[i]
    arrays = memory, fixed, table, point, A, whole, games, row, owner, target, told
    numbers = np.int64(0), player, scale, size, lever, column, values
    known = np.int64(0), utility, gross, c, worth, inverse, doubt, bound, least, lowest, largest
    return Group(*arrays, team, N, *numbers, *known, np.int64(0), rows + 1, place)


@inlined
def has_room(group):
    """Return whether there is room for games in a group."""
    return len(group.row) > 1


@inner
def solve_group(first, choices, goal, n, group):
    """Solve the group's games (`plain.enter`), whose joint actions are n rows from the `first` on.

    Fills the weights of joint actions, what they are worth, and behind `group.feasible` how many
    are played, 0 in lanes that are given up (`plain.file_lane`).
    """
    rows = len(group.owner)
    plain, span, best = _program(first, choices, goal, n, rows, group)
    played = spread(0.0)
    if anywhere(plain):
        plain = _dual_simplex(n, rows + 1, plain, group)
        plain, value = _certified(goal.kind, first, choices, n, rows, plain, group)
        if anywhere(plain):
            _refine(first, choices, n, rows, group)
            if goal.kind != ANY:  # else ties gave the objective away
                for j in range(n):
                    value = value - get(group.fixed, group.c + j) * get(group.point, j)
                plain = plain & (value <= 4.0 * TIE)
            plain, played = _accepted(goal, span, best, first, choices, n, rows, plain, group)
    for k in range(seats(group.team)):
        phase.find_values(seat_of(k, group.team), where(plain, played, 0.0), n, group)
    wait(group.team)


@inlined
def _undoubted(group):
    """Return where no seat has found anything that is not plain."""
    doubts = phase.sum_of_seats(group.doubt, group)
    return doubts <= 0.0


@inner
def _program(first, choices, goal, n, rows, group):
    """Fill the programs and their first dictionaries.

    Returns where they are plain, and the unit and the best of the objective.
    """
    team = group.team
    for k in range(seats(team)):
        phase.measure_players(seat_of(k, team), goal.floor, n, group)
    wait(team)
    for k in range(seats(team)):
        phase.count_in_units(seat_of(k, team), goal.terms[0], n, group)
    wait(team)
    plain, span, best = _objective_range(goal.terms[0], n, group)
    for k in range(seats(team)):
        phase.weigh(seat_of(k, team), goal.terms[0], span, n, group)
        phase.incentive_rows(seat_of(k, team), first, choices, n, rows, group)
    wait(team)
    a, most = _best_action(n, group)
    for k in range(seats(team)):
        phase.start(seat_of(k, team), a, most, first, choices, n, rows, group)
    wait(team)
    return plain & _undoubted(group), span, best


@inner
def _objective_range(terms, n, group):
    """Return where the objective is plain, its unit and its best."""
    m = group.memory
    largest = noise = spread(0.0)
    for i in range(group.N):
        weight = abs(terms[i])
        unit, top = get(m, group.player + 5 * i + phase.UNIT), get(m, group.player + 5 * i + phase.TOP)
        largest = max(largest, unit * weight)
        gross = get(m, group.player + 5 * i + phase.ROUNDING)
        noise = noise + OUTLIER * NOISE * weight * (max(top, 0.0 - top) + gross)
    best, worst = spread(-np.inf), spread(np.inf)
    for j in range(n):
        total = get(group.fixed, group.worth + j)
        best = where(phase.is_feasible(j, group), max(best, total), best)
        worst = where(phase.is_feasible(j, group), min(worst, total), worst)
    span = best - worst
    near = spread(0.0)
    for j in range(n):
        close = (best - get(group.fixed, group.worth + j)) * OUTLIER < span
        near = near + where(phase.is_feasible(j, group) & close, 1.0, 0.0)
    plain = (span > noise) & (near <= get(group.fixed, group.feasible + n + 1))
    return plain, min(span, largest), best


@inner
def _best_action(n, group):
    """Return the joint action where the objective is best, and what it is there."""
    a, most = spread(0.0), spread(-np.inf)
    for j in range(n):
        c = get(group.fixed, group.c + j)
        better = phase.is_feasible(j, group) & (c > most)
        a, most = where(better, j, a), where(better, c, most)
    return a, most


@inner
def _dual_simplex(n, count, plain, group):
    """As in `simplex`, of `count` rows; returns where it came to an end."""
    team = group.team
    for _ in range(PIVOTS):
        for k in range(seats(team)):
            phase.find_lowest(seat_of(k, team), n, count, group)
        wait(team)
        r = phase.lowest_of_seats(group)
        busy = plain & (r >= 0.0)
        if not anywhere(busy):
            return plain
        for k in range(seats(team)):
            phase.find_bound(seat_of(k, team), where(busy, r, 0.0), n, count, group)
        wait(team)
        for k in range(seats(team)):
            phase.join_bounds(seat_of(k, team), group)
        wait(team)
        for k in range(seats(team)):
            phase.find_largest(seat_of(k, team), n, group)
        wait(team)
        j, inverse = phase.largest_of_seats(group)
        plain = plain & ~(busy & (j < 0.0))
        busy = busy & (j >= 0.0)
        if anywhere(busy):
            for k in range(seats(team)):
                phase.set_apart(seat_of(k, team), busy, r, j, where(busy, 0.0 - inverse, 0.0), n, count, group)
            wait(team)
            for k in range(seats(team)):
                phase.eliminate(seat_of(k, team), n, count, group)
            wait(team)
    return plain & ~plain


@inner
def _certified(kind, first, choices, n, rows, plain, group):
    """Return where weak duality holds and no other level is open; and the objective."""
    team = group.team
    for k in range(seats(team)):
        phase.take_again(seat_of(k, team), n, group)
        phase.read_point(seat_of(k, team), n, rows, group)
    wait(team)
    few = get(group.fixed, group.feasible + n) <= STRICT
    accepted = where(few, LP_CERTIFICATE, LARGE_CERTIFICATE)
    for k in range(seats(team)):
        phase.check_prices(seat_of(k, team), accepted, first, choices, n, rows, group)
    wait(team)
    value = lever = spread(0.0)
    for j in range(n):
        value = value + get(group.fixed, group.c + j) * get(group.point, j)
    for r in range(rows):
        lever = lever + get(group.memory, group.lever + r)
    gap = level = spread(-np.inf)
    for j in range(n):
        worth = get(group.fixed, group.worth + j)
        gap = where(phase.is_feasible(j, group), max(gap, worth - value), gap)
        level = where(get(group.point, j) > 0.0, max(level, worth), level)
    plain = plain & (~few | (lever <= LEVER)) & (magnitude(gap) <= accepted)
    if kind != ANY:
        high = phase.highest_of_seats(group) > HIGH_PRICE
        wait(team)
        for k in range(seats(team)):
            phase.check_levels(seat_of(k, team), level, high, n, rows, group)
        wait(team)
        plain = plain & (phase.sum_of_seats(group.bound, group) <= 0.0)
    return plain & _undoubted(group), value


@inner
def _refine(first, choices, n, rows, group):
    """As in `simplex`."""
    team = group.team
    factor = 1.0 / phase.total_weight(n, group)
    wait(team)
    for k in range(seats(team)):
        phase.multiply_weights(seat_of(k, team), factor, n, group)
    wait(team)
    for k in range(seats(team)):
        phase.find_slacks(seat_of(k, team), first, choices, n, rows, group)
    wait(team)
    for k in range(seats(team)):
        phase.slacks_of_columns(seat_of(k, team), n, group)
    wait(team)
    for k in range(seats(team)):
        phase.take_slacks_out(seat_of(k, team), factor, n, rows, group)
        phase.read_weights(seat_of(k, team), n, rows, group)
    wait(team)


@inner
def _accepted(goal, span, best, first, choices, n, rows, plain, group):
    """Drop weights that are rounding; returns where the answer holds, and how many are left."""
    team = group.team
    wait(team)
    for k in range(seats(team)):
        phase.drop_rounding(seat_of(k, team), n, group)
    wait(team)
    total, played = phase.total_weight(n, group), spread(0.0)
    for j in range(n):
        played = played + where(get(group.point, j) > 0.0, 1.0, 0.0)
    wait(team)
    for k in range(seats(team)):
        phase.divide_weights(seat_of(k, team), total, n, group)
    wait(team)
    for k in range(seats(team)):
        phase.measure_answer(seat_of(k, team), n, group)
    wait(team)
    for k in range(seats(team)):
        phase.check_rows(seat_of(k, team), first, choices, n, rows, group)
        phase.check_units(seat_of(k, team), goal, n, span, best, group)
    wait(team)
    return plain & (total > 0.5) & _undoubted(group), played
