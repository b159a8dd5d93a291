"""The phases of plain stage programs: what each seat of a team does for the games of a group.

`lockstep` says in which order; there the group is explained, and in `teams` what a seat is. Sums
are always made by one seat, in the order of the source.
"""

from __future__ import annotations

import numpy as np

from acegames.kernels.lanes import anywhere, gather, get, lane_count, put, scatter, spread, where
from acegames.kernels.records import ANY
from acegames.kernels.teams import is_mine, leads, mine, my_columns, my_rows, rank, scanners, size_of
from acegames.numerics import COARSE, HARRIS, HIGH_PRICE, NOISE, OUTLIER, PIVOT, ROW_FEASIBLE, STABLE, TIE
from acegames.system.compiled import inlined, inner

TOP, UNIT, OUTSIDE, MISSING, ROUNDING = range(5)  # what is known of a player
LINE, COLUMN = 0, 1  # a seat's places of the pivot: where its row begins, its column


@inlined
def is_feasible(j, group):
    """Where joint action j is feasible."""
    return get(group.fixed, group.feasible + j) > 0.0


@inlined
def _doubt(unclear, seat, group):
    """Where something is found that is not plain, the game is given up."""
    place = group.doubt + rank(seat)
    put(group.fixed, place, where(unclear, 1.0, get(group.fixed, place)))


@inlined
def sum_of_seats(place, group):
    """The sum of whole numbers that all seats have left."""
    total = get(group.fixed, place)
    for k in range(1, size_of(group.team)):
        total = total + get(group.fixed, place + k)
    return total


# -- the programs ---------------------------------------------------------------------------------


@inlined
def clear(seat, n, group):
    """No joint action is feasible, and nothing is in doubt."""
    for j in mine(seat, n):
        put(group.fixed, group.feasible + j, 0.0)
    put(group.fixed, group.doubt + rank(seat), 0.0)


@inner
def enter(seat, written, n, group):
    """Fill utilities, gross utilities, and which joint actions are feasible."""
    fixed = group.fixed
    for lane in range(lane_count(fixed)):
        g = group.games[lane]
        begin, end = written.ptr[g], written.ptr[g + 1]
        if leads(seat):
            fixed[group.feasible + n, lane] = end - begin
            fixed[group.feasible + n + 1, lane] = max((end - begin) // 4, 1)
        if size_of(seat) > 1:
            for k in mine(seat, end - begin):
                _take(begin + k, written.row[begin + k] - written.first_row[g], lane, written, n, group)
        else:  # places that are known beforehand may be registers
            k = begin
            for j in range(n):
                if k < end and written.row[k] == written.first_row[g] + j:
                    _take(k, j, lane, written, n, group)
                    k += 1


@inlined
def _take(r, j, lane, written, n, group):
    """Take what is written of a joint action."""
    group.fixed[group.feasible + j, lane] = 1.0
    for i in range(group.N):
        group.fixed[group.utility + i * n + j, lane] = written.utility[r, i]
        group.fixed[group.gross + i * n + j, lane] = written.utility[r, group.N + i]


@inner
def measure_players(seat, floor, n, group):
    """Fill what is known of each player, and look whether its utilities are plain."""
    m = group.memory
    for i in mine(seat, group.N):
        top, low, gross = spread(-np.inf), spread(np.inf), spread(0.0)
        for j in range(n):
            here, u = is_feasible(j, group), get(group.fixed, group.utility + i * n + j)
            top = where(here, max(top, u), top)
            low = where(here, min(low, u), low)
            gross = where(here, max(gross, get(group.fixed, group.gross + i * n + j)), gross)
        cares = top - low > NOISE * gross
        unit = where(cares, top - low, 0.0)
        outside = where(cares, -(1.0 + floor) * unit / where(cares, unit, 1.0), -floor)
        near = spread(0.0)
        for j in range(n):
            below = top - get(group.fixed, group.utility + i * n + j)
            near = near + where(is_feasible(j, group) & (below * OUTLIER < unit), 1.0, 0.0)
        _doubt(near > get(group.fixed, group.feasible + n + 1), seat, group)
        for place, x in ((TOP, top), (UNIT, unit), (OUTSIDE, outside), (ROUNDING, gross)):
            put(m, group.player + 5 * i + place, x)


@inlined
def _unit(i, group):
    """What a player's utilities are divided by."""
    unit = get(group.memory, group.player + 5 * i + UNIT)
    return where(unit > 0.0, unit, 1.0)


@inner
def count_in_units(seat, terms, n, group):
    """Fill utilities in units, and what joint actions are worth."""
    m = group.memory
    for i in range(group.N):
        top, outside = get(m, group.player + 5 * i + TOP), get(m, group.player + 5 * i + OUTSIDE)
        cares, unit = get(m, group.player + 5 * i + UNIT) > 0.0, _unit(i, group)
        for j in mine(seat, n):
            below = top - get(group.fixed, group.utility + i * n + j)
            v = where(cares, (0.0 - below) / unit, 0.0)
            put(m, group.v + i * n + j, where(is_feasible(j, group), v, outside))
    for j in mine(seat, n):
        put(group.fixed, group.worth + j, _objective(j, terms, n, group))


@inlined
def _objective(j, terms, n, group):
    """What a joint action is worth below the players' best."""
    m = group.memory
    total = spread(0.0)
    for i in range(group.N):
        u = get(group.fixed, group.utility + i * n + j)
        part = terms[i] * (u - get(m, group.player + 5 * i + TOP))
        total = where(get(m, group.player + 5 * i + UNIT) > 0.0, total + part, total)
    return total


@inner
def weigh(seat, terms, span, n, group):
    """Fill the objective in units of `span`; look for utilities that are equal but for rounding."""
    m = group.memory
    for j in mine(seat, n):
        put(group.fixed, group.c + j, 0.0)
    for i in range(group.N):
        factor = terms[i] * get(m, group.player + 5 * i + UNIT) / span
        blur = NOISE * get(m, group.player + 5 * i + ROUNDING) / _unit(i, group)
        close = span < span
        for j in mine(seat, n):
            here, v = is_feasible(j, group), get(m, group.v + i * n + j)
            put(group.fixed, group.c + j, get(group.fixed, group.c + j) + factor * v)
            for k in range(j):
                gap = get(m, group.v + i * n + k) - v
                gap = max(gap, 0.0 - gap)
                close = close | (here & is_feasible(k, group) & (gap > 0.0) & (gap <= blur))
        _doubt(close, seat, group)


@inner
def list_rows(seat, choices, correlated, group):
    """Fill whose deviation each row is, to what and after what. All games have the same rows."""
    r = np.int64(0)
    for i in range(group.N):
        begin, end = choices.first_action[i], choices.first_action[i + 1]
        for target in range(begin, end):
            for told in range(end - begin if correlated else 1):
                if correlated and told == target - begin:
                    continue
                if is_mine(seat, r):
                    group.owner[r] = i
                    group.target[r] = target
                    group.told[r] = told if correlated else -1
                r += 1


@inlined
def count_rows(choices, correlated, group):
    """How many rows there are."""
    rows = np.int64(0)
    for i in range(group.N):
        actions = choices.first_action[i + 1] - choices.first_action[i]
        rows += actions * (actions - 1) if correlated else actions
    return rows


@inner
def incentive_rows(seat, first, choices, n, rows, group):
    """Fill A and scale."""
    m = group.memory
    for r in mine(seat, rows):
        i, target, told = np.int64(group.owner[r]), np.int64(group.target[r]), np.int64(group.told[r])
        most = spread(0.0)
        for j in range(n):
            gain = spread(0.0)
            if told < 0 or choices.action[first + j, i] == told:
                to = choices.deviation[first + j, target]
                place = group.v + i * n + to if 0 <= to < n else group.player + 5 * i + OUTSIDE
                gain = where(is_feasible(j, group), get(m, place) - get(m, group.v + i * n + j), 0.0)
                most = max(most, gain)
            put(m, group.A + r * n + j, gain)
        put(m, group.scale + r, most)


@inner
def start(seat, a, most, n, rows, group):
    """The dictionaries at joint action a, where the objective is `most`, its best."""
    m, T, whole, width = group.memory, group.table, group.whole, n + 1
    column = group.place + 2 * rank(seat) + COLUMN
    put(whole, column, a)
    for r in mine(seat, rows):
        own, size = gather(m, whole, column, group.A + r * n), spread(1.0)
        binds = get(m, group.scale + r) > 0.0
        for j in range(n):
            gain = get(m, group.A + r * n + j)
            size = max(size, max(gain, 0.0 - gain))
            put(T, r * width + j, where(binds & is_feasible(j, group) & ~(a == j), gain - own, 0.0))
        put(T, r * width + n, where(binds, 0.0 - own, 1.0))
        put(m, group.size + n + r, size)
        put(whole, group.basic + r, spread(n + r))
    for j in mine(seat, n):
        here = is_feasible(j, group) & ~(a == j)
        put(T, rows * width + j, where(here, 1.0, 0.0))
        put(T, (rows + 1) * width + j, where(here, most - get(group.fixed, group.c + j), 1.0))
        put(m, group.size + j, 1.0)
        put(whole, group.other + j, where(a == j, n + rows, j))
    if leads(seat):
        put(T, rows * width + n, 1.0)
        put(T, (rows + 1) * width + n, 0.0)
        put(m, group.size + n + rows, 1.0)
        put(whole, group.basic + rows, a)


# -- first level ----------------------------------------------------------------------------------


@inlined
def find_lowest(seat, n, count, group):
    """The lowest of some right sides, the first of several."""
    if rank(seat) < scanners(seat):
        lowest, r = spread(-ROW_FEASIBLE), spread(-1.0)
        for i in range(rank(seat), count, scanners(seat)):
            b = get(group.table, i * (n + 1) + n)
            r = where(b < lowest, i, r)
            lowest = min(b, lowest)
        put(group.fixed, group.lowest + 2 * rank(seat), lowest)
        put(group.fixed, group.lowest + 2 * rank(seat) + 1, r)


@inlined
def lowest_of_seats(group):
    """The row of the lowest of all; -1: there is none."""
    m, place = group.fixed, group.lowest
    lowest, r = get(m, place), get(m, place + 1)
    for k in range(1, scanners(group.team)):
        b, i = get(m, place + 2 * k), get(m, place + 2 * k + 1)
        lower = (b < lowest) | ((b == lowest) & (i < r))
        lowest, r = where(lower, b, lowest), where(lower, i, r)
    return r


@inlined
def find_bound(seat, r, n, count, group):
    """The least of some ratios of reduced costs to row r, each a bit larger than it is."""
    T, width, line = group.table, n + 1, group.place + 2 * rank(seat) + LINE
    put(group.whole, line, r * width)
    bound = spread(np.inf)
    for k in mine(seat, n):
        a = 0.0 - gather(T, group.whole, line, k)
        d = max(get(T, count * width + k), 0.0)
        put(group.row, k, a)
        a = where(a > PIVOT, a, 1.0)
        put(group.fixed, group.worth + k, d / a)
        bound = where(get(group.row, k) > PIVOT, min(bound, (d + HARRIS) / a), bound)
    put(group.fixed, group.bound + rank(seat), bound)


@inlined
def find_largest(seat, n, group):
    """Of some ratios within the bound, the one with the largest pivot, the first of several."""
    if rank(seat) < scanners(seat):
        bound = get(group.fixed, group.bound)
        for k in range(1, size_of(group.team)):
            bound = min(bound, get(group.fixed, group.bound + k))
        j, size = spread(-1.0), spread(PIVOT)
        for k in range(rank(seat), n, scanners(seat)):
            a = get(group.row, k)
            better = (a > size) & (get(group.fixed, group.worth + k) <= bound)
            j, size = where(better, k, j), where(better, a, size)
        put(group.fixed, group.largest + 2 * rank(seat), size)
        put(group.fixed, group.largest + 2 * rank(seat) + 1, j)


@inlined
def largest_of_seats(group):
    """The column of the largest pivot of all, -1: there is none; and its size."""
    m, place = group.fixed, group.largest
    size, j = get(m, place), get(m, place + 1)
    for k in range(1, scanners(group.team)):
        a, i = get(m, place + 2 * k), get(m, place + 2 * k + 1)
        better = (a > size) | ((a == size) & (i < j))
        size, j = where(better, a, size), where(better, i, j)
    return j, size


@inlined
def set_apart(seat, busy, r, j, size, n, count, group):
    """Take row r and column j out of the table, where a lane is busy; the pivot is `size`.

    They count as zero in the table, the row is scaled, and of its own row -1 times that is
    subtracted. Where they meet, the column is taken out. The variables change places.
    """
    T, whole, width = group.table, group.whole, n + 1
    line, column = group.place + 2 * rank(seat) + LINE, group.place + 2 * rank(seat) + COLUMN
    inverse = where(busy, 1.0 / size, 0.0)
    put(whole, column, max(j, 0.0))
    for k in mine(seat, width):
        meet = busy & (j == k)
        put(group.row, k, inverse)
        if anywhere(~meet):
            before = gather(T, whole, line, k)
            put(group.row, k, where(meet, inverse, where(busy, before * inverse, 0.0)))
            scatter(T, whole, line, k, where(busy, 0.0, before))
    for i in mine(seat, count + 1):
        before = gather(T, whole, column, i * width)
        put(group.memory, group.y + i, where(busy & (r == i), -1.0, where(busy, before, 0.0)))
        scatter(T, whole, column, i * width, where(busy, 0.0, before))
    if leads(seat):
        put(whole, line, where(busy, r, -1.0))
        for lane in range(lane_count(T)):
            if whole[line, lane] >= 0:
                row, other = group.basic + whole[line, lane], group.other + whole[column, lane]
                whole[row, lane], whole[other, lane] = whole[other, lane], whole[row, lane]


@inner
def eliminate(seat, n, count, group):
    """Subtract the pivot's row from all rows, as often as its column says."""
    T, width = group.table, n + 1
    for i in my_rows(seat, count + 1):
        factor = get(group.memory, group.y + i)
        for k in my_columns(seat, width):
            put(T, i * width + k, get(T, i * width + k) - factor * get(group.row, k))


# -- its certificate ------------------------------------------------------------------------------


@inlined
def clear_point(seat, n, rows, group):
    """All weights, slacks and prices are zero."""
    for k in mine(seat, n + rows + 1):
        put(group.memory, group.x + k, 0.0)
        put(group.memory, group.y + k, 0.0)


@inlined
def read_point(seat, n, rows, group):
    """Fill the weights, and slacks behind them."""
    for i in mine(seat, rows + 1):
        b = max(get(group.table, i * (n + 1) + n), 0.0)
        scatter(group.memory, group.whole, group.basic + i, group.x, b)


@inlined
def read_prices(seat, n, rows, group):
    """Fill the prices, behind those of joint actions."""
    for k in mine(seat, n):
        d = get(group.table, (rows + 1) * (n + 1) + k)
        scatter(group.memory, group.whole, group.other + k, group.y, d)


@inner
def check_prices(seat, kind, accepted, n, rows, group):
    """Fill what joint actions are worth, and each row's lever; look whether a level is open."""
    m, T, d = group.memory, group.table, (rows + 1) * (n + 1)
    for r in mine(seat, rows):
        y = get(m, group.y + n + r)
        size = max(y, 0.0 - y)
        over = lever = spread(0.0)
        if anywhere(size > 0.0):
            clear = (size <= HIGH_PRICE) & (y * get(m, group.size + n + r) >= 0.0 - accepted)
            _doubt(~clear, seat, group)
            for j in range(n):
                gain, x = get(m, group.A + r * n + j), get(m, group.x + j)
                over = over + gain * x
                part = y * gain * x
                lever = lever + 0.25 * NOISE * max(part, 0.0 - part)
            lever = lever + size * max(over, 0.0)
        put(m, group.spare + n + r, lever)
    for j in mine(seat, n):
        put(group.fixed, group.worth + j, get(group.fixed, group.c + j))
    for r in range(rows):
        y = get(m, group.y + n + r)
        if anywhere(max(y, 0.0 - y) > 0.0):
            for j in mine(seat, n):
                gain = get(m, group.A + r * n + j)
                put(group.fixed, group.worth + j, get(group.fixed, group.worth + j) - y * gain)
    if kind != ANY:
        for k in mine(seat, n):
            price = get(T, d + k)
            clear = (price >= PIVOT) & (price * gather(m, group.whole, group.other + k, group.size) > TIE)
            _doubt(~clear, seat, group)


# -- the answers ----------------------------------------------------------------------------------


@inlined
def total_weight(n, group):
    """The sum of the weights."""
    total = spread(0.0)
    for j in range(n):
        total = total + get(group.memory, group.x + j)
    return total


@inlined
def divide_weights(seat, total, n, group):
    """Let weights sum to one."""
    for j in mine(seat, n):
        put(group.memory, group.x + j, get(group.memory, group.x + j) / total)


@inlined
def find_slacks(seat, n, rows, group):
    """What is left in each row; nothing in the sum of the weights, and joint actions have none."""
    m = group.memory
    for j in mine(seat, n):
        put(m, group.spare + j, 0.0)
    for r in mine(seat, rows):
        put(m, group.spare + n + r, _slack(r, n, group))
    if leads(seat):
        put(m, group.spare + n + rows, 0.0)


@inlined
def _slack(r, n, group):
    slack = spread(0.0)
    for j in range(n):
        slack = slack - get(group.memory, group.A + r * n + j) * get(group.memory, group.x + j)
    return slack


@inlined
def slacks_of_columns(seat, n, group):
    """The same of the variables that are zero."""
    for k in mine(seat, n):
        put(group.row, k, gather(group.memory, group.whole, group.other + k, group.spare))


@inlined
def take_slacks_out(seat, total, n, rows, group):
    """Correct the right sides by these; weights had a sum of `total`."""
    T, width = group.table, n + 1
    for i in mine(seat, rows + 1):
        b = get(T, i * width + n)
        b = where(get(group.whole, group.basic + i) < n, b / total, b)
        for k in range(n):
            b = b + get(T, i * width + k) * get(group.row, k)
        put(T, i * width + n, b)


@inlined
def drop_rounding(seat, n, group):
    """Tiny weights become zero."""
    for j in mine(seat, n):
        x = get(group.memory, group.x + j)
        put(group.memory, group.x + j, where(x > TIE, x, 0.0))


@inner
def measure_answer(seat, n, group):
    """Fill how far players are below their best, and what of that is rounding."""
    m = group.memory
    for i in mine(seat, group.N):
        missing = noise = spread(0.0)
        unit = _unit(i, group)
        for j in range(n):
            x = get(m, group.x + j)
            missing = missing - x * get(m, group.v + i * n + j)
            part = NOISE * x * get(group.fixed, group.gross + i * n + j) / unit
            noise = where(x > 0.0, noise + part, noise)
        put(m, group.player + 5 * i + MISSING, missing)
        put(m, group.player + 5 * i + ROUNDING, noise)


@inner
def check_rows(seat, n, rows, group):
    """Look whether all rows hold."""
    m = group.memory
    for r in mine(seat, rows):
        player = group.player + 5 * group.owner[r]
        least = min(get(m, group.scale + r), get(m, player + MISSING))
        _doubt(_slack(r, n, group) < 0.0 - (STABLE * least + get(m, player + ROUNDING)), seat, group)


@inner
def check_units(seat, goal, n, span, best, group):
    """Look whether a player's unit, or that of the objective, is too coarse for the answer."""
    m = group.memory
    for i in mine(seat, group.N):
        top, unit = get(m, group.player + 5 * i + TOP), get(m, group.player + 5 * i + UNIT)
        missing = gross = spread(0.0)
        for j in range(n):
            x = get(m, group.x + j)
            missing = where(x > 0.0, missing + x * (top - get(group.fixed, group.utility + i * n + j)), missing)
            gross = where(x > 0.0, gross + x * get(group.fixed, group.gross + i * n + j), gross)
        least = where(missing > NOISE * gross, missing, max(missing, unit))
        _doubt(least * COARSE < unit, seat, group)
    if goal.kind != ANY and leads(seat):
        here = gross = spread(0.0)
        for i in range(group.N):
            for j in range(n):
                x = get(m, group.x + j)
                part = x * get(group.fixed, group.gross + i * n + j)
                gross = where(x > 0.0, gross + part * abs(goal.terms[i]), gross)
        for j in range(n):
            x = get(m, group.x + j)
            here = where(x > 0.0, here + x * _objective(j, goal.terms, n, group), here)
        missing = best - here
        _doubt((missing > OUTLIER * NOISE * gross) & (missing * COARSE < span), seat, group)


@inlined
def leave(seat, n, played, group):
    """Fill how many joint actions are played."""
    if leads(seat):
        put(group.fixed, group.feasible + n, played)
