"""Eight stage programs in lockstep, one per lane: the plain case of `stage`, to the same bits.

Plain means: a linear objective or none, no outliers, no values that are equal but for rounding, and
nothing in the answer that asks for another attempt, another level or exact arithmetic. Most
programs are plain. A lane that turns out not to be is given up, and `stage` solves its game alone.

The games of a group share their table of deviations. In a lane, joint actions that are not feasible
have columns of zeros, which never enter, and so has the one where it starts; deviations that cannot
bind have rows of zeros, which never leave. None of these changes what becomes of the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acegames.kernels.lanes import LANES, anywhere, gather, get, lane_count, put, scatter, spread, where
from acegames.kernels.records import ANY, TOGETHER, Floats, Ints
from acegames.kernels.simplex import STRICT
from acegames.numerics import (
    COARSE,
    HARRIS,
    HIGH_PRICE,
    LARGE_CERTIFICATE,
    LEVER,
    LP_CERTIFICATE,
    NOISE,
    OUTLIER,
    PIVOT,
    ROW_FEASIBLE,
    STABLE,
    TIE,
)
from acegames.system.compiled import inlined, inner, making

PIVOTS = 64  # after so many a lane is given up
TOP, UNIT, OUTSIDE, MISSING, ROUNDING = range(5)  # what is known of a player
LINE, COLUMN = 0, 1  # rows of `whole`: where the pivot's row begins, its column


class Group(NamedTuple):
    """Room for eight games. The numbers say where in `memory` something begins."""

    memory: Floats  # (places, 8)
    # the same, apart because it is worked on most: (rows + 2, joint actions + 1) rows, sum of
    # weights, reduced costs; right sides in the last column
    table: Floats
    whole: Ints  # (places, 8): the pivot, the basic variable of each row, the other one of each column
    games: Ints  # (8,)
    owner: Ints  # (rows,) whose deviation
    sigma: Floats  # (joint actions,) room for one lane's answer
    N: int
    utility: int  # (N, joint actions)
    gross: int  # the same
    v: int  # the same, in units; what leaving X is worth, where a joint action is not feasible
    player: int  # (N, 5)
    feasible: int  # (joint actions,) 1 or 0; behind them the number of joint actions, and a quarter of it
    A: int  # (rows, joint actions)
    scale: int  # (rows,)
    c: int  # (joint actions,)
    size: int  # (variables,): joint actions, slacks, and the one that stands for none
    x: int
    y: int
    spare: int
    row: int  # (joint actions + 1,) the pivot's row, in `table`
    basic: int  # in `whole`
    other: int


@making
def group_room(n, N, actions, correlated, lanes=LANES):
    """Room for games of up to n joint actions, or for none where that is too much (`has_room`).

    `actions` (N,) is the number of each player's.
    """
    rows = np.int64(0)
    for i in range(N):
        rows += actions[i] * (actions[i] - 1) if correlated else actions[i]
    if rows * n > TOGETHER:
        rows, n = np.int64(0), np.int64(0)
    variables = n + rows + 1
    gross, v = N * n, 2 * N * n
    player = v + N * n
    feasible = player + 5 * N
    A = feasible + n + 2
    scale = A + rows * n
    c = scale + rows
    size = c + n
    x, y, spare, end = size + variables, size + 2 * variables, size + 3 * variables, size + 4 * variables
    row = (rows + 2) * (n + 1)
    memory, table = np.zeros((end, lanes)), np.zeros((row + n + 1, lanes))
    whole = np.zeros((2 + rows + 1 + n, lanes), np.int64)
    games, owner = np.zeros(lanes, np.int64), np.zeros(rows, np.int64)
    places = gross, v, player, feasible, A, scale, c, size, x, y, spare, row
    return Group(memory, table, whole, games, owner, np.empty(n), N, np.int64(0), *places, np.int64(2), 3 + rows)


@inlined
def has_room(group):
    """Whether there is room for games in a group."""
    return len(group.sigma) > 0


@inner
def solve_group(written, choices, goal, n, group):
    """Solve the group's games, in the first n rows of their states.

    Fills the weights of joint actions at `group.x`, and behind `group.feasible` how many are
    played, 0 in lanes that are given up.
    """
    _enter(written, n, group)
    plain, span, best = _in_units(goal, n, group)
    rows = _incentive_rows(written.first_row[group.games[0]], choices, goal.correlated, n, group)
    _start(n, rows, group)
    plain = _dual_simplex(n, rows + 1, plain, group)
    plain, value = _certified(goal.kind, n, rows, plain, group)
    _refine(n, rows, group)
    if goal.kind != ANY:  # else ties gave the objective away
        for j in range(n):
            value = value - get(group.memory, group.c + j) * get(group.memory, group.x + j)
        plain = plain & (value <= 4.0 * TIE)
    plain, played = _accepted(n, rows, plain, group)
    plain = _fine_enough(goal, n, span, best, plain, group)
    put(group.memory, group.feasible + n, where(plain, played, 0.0))


# -- the programs ---------------------------------------------------------------------------------


@inner
def _enter(written, n, group):
    """Fill utilities, gross utilities, and which joint actions are feasible."""
    memory, N = group.memory, group.N
    for j in range(n):
        put(memory, group.feasible + j, 0.0)
    for lane in range(lane_count(memory)):
        g = group.games[lane]
        begin, end = written.ptr[g], written.ptr[g + 1]
        memory[group.feasible + n, lane] = end - begin
        memory[group.feasible + n + 1, lane] = max((end - begin) // 4, 1)
        for r in range(begin, end):
            j = written.row[r] - written.first_row[g]
            memory[group.feasible + j, lane] = 1.0
            for i in range(N):
                memory[group.utility + i * n + j, lane] = written.utility[r, i]
                memory[group.gross + i * n + j, lane] = written.utility[r, N + i]


@inlined
def _is_feasible(j, group):
    return get(group.memory, group.feasible + j) > 0.0


@inner
def _in_units(goal, n, group):
    """Fill utilities in units and the objective; where they are plain, its unit and its best."""
    m = group.memory
    quarter = get(m, group.feasible + n + 1)
    plain = quarter > 0.0
    largest = noise = spread(0.0)
    for i in range(group.N):
        plain = plain & _player_in_units(i, goal.floor, n, quarter, group)
        weight = abs(goal.terms[i])
        unit, top = get(m, group.player + 5 * i + UNIT), get(m, group.player + 5 * i + TOP)
        largest = max(largest, unit * weight)
        gross = get(m, group.player + 5 * i + ROUNDING)
        noise = noise + OUTLIER * NOISE * weight * (max(top, 0.0 - top) + gross)
    best, worst = spread(-np.inf), spread(np.inf)
    for j in range(n):
        total = _objective(j, goal.terms, n, group)
        put(m, group.spare + j, total)
        best = where(_is_feasible(j, group), max(best, total), best)
        worst = where(_is_feasible(j, group), min(worst, total), worst)
        put(m, group.c + j, 0.0)
    span = best - worst
    near = spread(0.0)
    for j in range(n):
        close = (best - get(m, group.spare + j)) * OUTLIER < span
        near = near + where(_is_feasible(j, group) & close, 1.0, 0.0)
    plain = plain & (span > noise) & (near <= quarter)
    span = min(span, largest)
    for i in range(group.N):
        factor = goal.terms[i] * get(m, group.player + 5 * i + UNIT) / span
        for j in range(n):
            put(m, group.c + j, get(m, group.c + j) + factor * get(m, group.v + i * n + j))
    return plain, span, best


@inner
def _player_in_units(i, floor, n, quarter, group):
    """Fill v, and what is known of a player; returns where its utilities are plain."""
    m = group.memory
    top, low, gross = spread(-np.inf), spread(np.inf), spread(0.0)
    for j in range(n):
        here, u = _is_feasible(j, group), get(m, group.utility + i * n + j)
        top = where(here, max(top, u), top)
        low = where(here, min(low, u), low)
        gross = where(here, max(gross, get(m, group.gross + i * n + j)), gross)
    cares = top - low > NOISE * gross
    unit = where(cares, top - low, 0.0)
    safe = where(cares, unit, 1.0)
    outside = where(cares, -(1.0 + floor) * unit / safe, -floor)
    blur = NOISE * gross / safe
    near = spread(0.0)
    plain = quarter > 0.0
    for j in range(n):
        here, below = _is_feasible(j, group), top - get(m, group.utility + i * n + j)
        near = near + where(here & (below * OUTLIER < unit), 1.0, 0.0)
        v = where(here, where(cares, (0.0 - below) / safe, 0.0), outside)
        put(m, group.v + i * n + j, v)
        for k in range(j):  # equal but for rounding
            gap = get(m, group.v + i * n + k) - v
            gap = max(gap, 0.0 - gap)
            plain = plain & ~(here & _is_feasible(k, group) & (gap > 0.0) & (gap <= blur))
    for place, x in ((TOP, top), (UNIT, unit), (OUTSIDE, outside), (ROUNDING, gross)):
        put(m, group.player + 5 * i + place, x)
    return plain & (near <= quarter)


@inlined
def _objective(j, terms, n, group):
    """What a joint action is worth below the players' best."""
    m = group.memory
    total = spread(0.0)
    for i in range(group.N):
        part = terms[i] * (get(m, group.utility + i * n + j) - get(m, group.player + 5 * i + TOP))
        total = where(get(m, group.player + 5 * i + UNIT) > 0.0, total + part, total)
    return total


@inner
def _incentive_rows(first, choices, correlated, n, group):
    """Fill A, scale and owner; returns how many rows there are."""
    m = group.memory
    rows = np.int64(0)
    for i in range(group.N):
        begin, end = choices.first_action[i], choices.first_action[i + 1]
        for target in range(begin, end):
            for told in range(end - begin if correlated else 1):
                if correlated and told == target - begin:
                    continue
                most = spread(0.0)
                for j in range(n):
                    gain = spread(0.0)
                    if not correlated or choices.action[first + j, i] == told:
                        to = choices.deviation[first + j, target]
                        place = group.v + i * n + to if 0 <= to < n else group.player + 5 * i + OUTSIDE
                        gain = where(_is_feasible(j, group), get(m, place) - get(m, group.v + i * n + j), 0.0)
                        most = max(most, gain)
                    put(m, group.A + rows * n + j, gain)
                put(m, group.scale + rows, most)
                group.owner[rows] = i
                rows += 1
    return rows


# -- first level ----------------------------------------------------------------------------------


@inner
def _start(n, rows, group):
    """The dictionaries where the objective is best."""
    m, T, whole, width = group.memory, group.table, group.whole, n + 1
    a, most = spread(0.0), spread(-np.inf)
    for j in range(n):
        c = get(m, group.c + j)
        better = _is_feasible(j, group) & (c > most)
        a, most = where(better, j, a), where(better, c, most)
    put(whole, COLUMN, a)
    for r in range(rows):
        own, size = gather(m, whole, COLUMN, group.A + r * n), spread(1.0)
        binds = get(m, group.scale + r) > 0.0
        for j in range(n):
            gain = get(m, group.A + r * n + j)
            size = max(size, max(gain, 0.0 - gain))
            put(T, r * width + j, where(binds & _is_feasible(j, group) & ~(a == j), gain - own, 0.0))
        put(T, r * width + n, where(binds, 0.0 - own, 1.0))
        put(m, group.size + n + r, size)
        put(whole, group.basic + r, spread(n + r))
    for j in range(n):
        here = _is_feasible(j, group) & ~(a == j)
        put(T, rows * width + j, where(here, 1.0, 0.0))
        put(T, (rows + 1) * width + j, where(here, most - get(m, group.c + j), 1.0))
        put(m, group.size + j, 1.0)
        put(whole, group.other + j, where(a == j, n + rows, j))
    put(T, rows * width + n, 1.0)
    put(T, (rows + 1) * width + n, 0.0)
    put(m, group.size + n + rows, 1.0)
    put(whole, group.basic + rows, a)


@inner
def _dual_simplex(n, count, plain, group):
    """As in `simplex`, of `count` rows; returns where it came to an end."""
    T, width = group.table, n + 1
    for _ in range(PIVOTS):
        lowest, r = spread(-ROW_FEASIBLE), spread(-1.0)
        for i in range(count):
            b = get(T, i * width + n)
            r = where(b < lowest, i, r)
            lowest = min(b, lowest)
        busy = plain & (r >= 0.0)
        if not anywhere(busy):
            return plain
        put(group.whole, LINE, where(busy, r * width, 0.0))
        bound = spread(np.inf)
        for k in range(n):
            a = 0.0 - gather(T, group.whole, LINE, k)
            d = max(get(T, count * width + k), 0.0)
            put(T, group.row + k, a)
            bound = where(a > PIVOT, min(bound, (d + HARRIS) / a), bound)
        j, size = spread(-1.0), spread(PIVOT)
        for k in range(n):
            a = get(T, group.row + k)
            d = max(get(T, count * width + k), 0.0)
            better = (a > size) & (d / a <= bound)
            j, size = where(better, k, j), where(better, a, size)
        plain = plain & ~(busy & (j < 0.0))
        busy = busy & (j >= 0.0)
        _pivot(n, count, where(busy, r, -1.0), where(busy, j, -1.0), 0.0 - size, group)
    return plain & ~plain


@inner
def _pivot(n, count, r, j, size, group):
    """Exchange row r and column j of each lane, where they are not negative; `size` is there.

    The lanes' own rows and columns count as zero before, and their rows are subtracted -1 times.
    """
    T, whole, width = group.table, group.whole, n + 1
    busy = r >= 0.0
    inverse = where(busy, 1.0 / size, 0.0)
    put(whole, COLUMN, max(j, 0.0))
    for k in range(width):
        scaled = where(busy, gather(T, whole, LINE, k) * inverse, 0.0)
        put(T, group.row + k, where(j == k, inverse, scaled))
    for i in range(count + 1):
        own = r == i
        factor = where(own, -1.0, where(busy, gather(T, whole, COLUMN, i * width), 0.0))
        for k in range(width):
            before = where(own | (j == k), 0.0, get(T, i * width + k))
            put(T, i * width + k, before - factor * get(T, group.row + k))
    put(whole, LINE, r)
    for lane in range(lane_count(T)):
        row, column = group.basic + whole[LINE, lane], group.other + whole[COLUMN, lane]
        if row >= group.basic:
            whole[row, lane], whole[column, lane] = whole[column, lane], whole[row, lane]


@inner
def _read_point(n, rows, group):
    """Fill the weights, and slacks behind them."""
    m = group.memory
    for k in range(n + rows + 1):
        put(m, group.x + k, 0.0)
    for i in range(rows + 1):
        scatter(m, group.whole, group.basic + i, group.x, max(get(group.table, i * (n + 1) + n), 0.0))


@inner
def _certified(kind, n, rows, plain, group):
    """Where weak duality holds and no other level is open; and the objective."""
    m, T, d = group.memory, group.table, (rows + 1) * (n + 1)
    few = get(m, group.feasible + n) <= STRICT
    accepted = where(few, LP_CERTIFICATE, LARGE_CERTIFICATE)
    _read_point(n, rows, group)
    for k in range(n + rows + 1):
        put(m, group.y + k, 0.0)
    for k in range(n):
        scatter(m, group.whole, group.other + k, group.y, get(T, d + k))
    value = lever = high = spread(0.0)
    for j in range(n):
        value = value + get(m, group.c + j) * get(m, group.x + j)
        put(m, group.spare + j, get(m, group.c + j))
    for r in range(rows):
        y = get(m, group.y + n + r)
        size = max(y, 0.0 - y)
        if not anywhere(size > 0.0):
            continue
        high = max(high, size)
        plain = plain & ~(y * get(m, group.size + n + r) < 0.0 - accepted)
        over = spread(0.0)
        for j in range(n):
            gain, x = get(m, group.A + r * n + j), get(m, group.x + j)
            over = over + gain * x
            part = y * gain * x
            lever = lever + 0.25 * NOISE * max(part, 0.0 - part)
            put(m, group.spare + j, get(m, group.spare + j) - y * gain)
        lever = lever + size * max(over, 0.0)
    gap = spread(-np.inf)
    for j in range(n):
        gap = where(_is_feasible(j, group), max(gap, get(m, group.spare + j) - value), gap)
    plain = plain & (high <= HIGH_PRICE) & (~few | (lever <= LEVER)) & (max(gap, 0.0 - gap) <= accepted)
    if kind != ANY:
        for k in range(n):
            price = get(T, d + k)
            plain = plain & (price >= PIVOT) & (price * gather(m, group.whole, group.other + k, group.size) > TIE)
    return plain, value


@inner
def _refine(n, rows, group):
    """As in `simplex`."""
    m, T, width = group.memory, group.table, n + 1
    total = spread(0.0)
    for j in range(n):
        total = total + get(m, group.x + j)
    for j in range(n):
        put(m, group.x + j, get(m, group.x + j) / total)
        put(m, group.spare + j, 0.0)
    for r in range(rows):
        put(m, group.spare + n + r, _slack(r, n, group))
    put(m, group.spare + n + rows, 0.0)
    for k in range(n):
        put(T, group.row + k, gather(m, group.whole, group.other + k, group.spare))
    for i in range(rows + 1):
        b = get(T, i * width + n)
        b = where(get(group.whole, group.basic + i) < n, b / total, b)
        for k in range(n):
            b = b + get(T, i * width + k) * get(T, group.row + k)
        put(T, i * width + n, b)
    _read_point(n, rows, group)


@inlined
def _slack(r, n, group):
    slack = spread(0.0)
    for j in range(n):
        slack = slack - get(group.memory, group.A + r * n + j) * get(group.memory, group.x + j)
    return slack


# -- the answers ----------------------------------------------------------------------------------


@inner
def _accepted(n, rows, plain, group):
    """Drop weights that are rounding; returns where the rows hold, and how many are left."""
    m = group.memory
    total = played = spread(0.0)
    for j in range(n):
        x = get(m, group.x + j)
        x = where(x > TIE, x, 0.0)
        put(m, group.x + j, x)
        total = total + x
        played = played + where(x > 0.0, 1.0, 0.0)
    for j in range(n):
        put(m, group.x + j, get(m, group.x + j) / total)
    for i in range(group.N):
        missing = noise = spread(0.0)
        unit = get(m, group.player + 5 * i + UNIT)
        unit = where(unit > 0.0, unit, 1.0)
        for j in range(n):
            x = get(m, group.x + j)
            missing = missing - x * get(m, group.v + i * n + j)
            part = NOISE * x * get(m, group.gross + i * n + j) / unit
            noise = where(x > 0.0, noise + part, noise)
        put(m, group.player + 5 * i + MISSING, missing)
        put(m, group.player + 5 * i + ROUNDING, noise)
    for r in range(rows):
        player = group.player + 5 * group.owner[r]
        least = min(get(m, group.scale + r), get(m, player + MISSING))
        plain = plain & ~(_slack(r, n, group) < 0.0 - (STABLE * least + get(m, player + ROUNDING)))
    return plain & (total > 0.5), played


@inner
def _fine_enough(goal, n, span, best, plain, group):
    """Where neither a player's unit nor that of the objective is too coarse for the answer."""
    m = group.memory
    here = all_gross = spread(0.0)
    for i in range(group.N):
        top, unit = get(m, group.player + 5 * i + TOP), get(m, group.player + 5 * i + UNIT)
        missing = gross = spread(0.0)
        for j in range(n):
            x = get(m, group.x + j)
            missing = where(x > 0.0, missing + x * (top - get(m, group.utility + i * n + j)), missing)
            part = x * get(m, group.gross + i * n + j)
            gross = where(x > 0.0, gross + part, gross)
            all_gross = where(x > 0.0, all_gross + part * abs(goal.terms[i]), all_gross)
        least = where(missing > NOISE * gross, missing, max(missing, unit))
        plain = plain & ~(least * COARSE < unit)
    if goal.kind == ANY:
        return plain
    for j in range(n):
        x = get(m, group.x + j)
        here = where(x > 0.0, here + x * _objective(j, goal.terms, n, group), here)
    missing = best - here
    return plain & ~((missing > OUTLIER * NOISE * all_gross) & (missing * COARSE < span))
