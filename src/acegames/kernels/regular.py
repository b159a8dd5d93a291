"""The steps of regular stage programs: what each lane of a warp does for the games of a group.

`lockstep` says in which order, and explains the group; `intrinsics` says what a lane is. Sums are
always made by one lane, in the order of the source.
"""

from __future__ import annotations

import numpy as np

from acegames.kernels.intrinsics import (
    ACROSS,
    is_lane0,
    lane_index,
    popcount,
    scanners,
    strided,
    strided_fours,
    strided_rows,
    warp_size,
)
from acegames.kernels.lanes import absolute, any_lane, broadcast, gather, get, lane_count, opaque, put, scatter, where
from acegames.kernels.records import ANY
from acegames.numerics import COARSE, DUAL_INFEASIBILITY, HARRIS, NOISE, OUTLIER, PIVOT, ROW_FEASIBLE, STABLE, TIE
from acegames.system.compiled import inlined, inner

TOP, UNIT, OUTSIDE, MISSING, ROUNDING = range(5)  # what is known of a player
LINE, COLUMN = 0, 1  # a lane's places of the pivot: where its row begins, its column
ALWAYS = -1  # the recommendation before a deviation of CCE: none


@inlined
def is_feasible(j, group):
    """Return where joint action j is feasible."""
    return get(group.fixed, group.feasible + j) > 0.0


@inlined
def flag_fallback(unclear, lane_id, group):
    """Give the game up where something is found that is not regular."""
    place = group.fallback + lane_index(lane_id)
    put(group.fixed, place, where(unclear, 1.0, get(group.fixed, place)))


@inlined
def sum_of_lanes(place, group):
    """Return the sum of whole numbers that all lanes have left."""
    total = get(group.fixed, place)
    for k in range(1, warp_size(group.warp)):
        total = total + get(group.fixed, place + k)
    return total


# -- the programs ---------------------------------------------------------------------------------


@inlined
def clear(lane_id, n, group):
    """Let no joint action be feasible."""
    for j in strided(lane_id, n):
        put(group.fixed, group.feasible + j, 0.0)


@inner
def enter(lane_id, batch, n, group):
    """Fill utilities, absolute totals, and which joint actions are feasible."""
    for lane in range(lane_count(group.fixed)):
        g = group.games[lane]
        begin, end = batch.ptr[g], batch.ptr[g + 1]
        for r in range(begin + lane_index(lane_id), end, warp_size(lane_id)):
            j = batch.row[r] - batch.first_row[g]
            group.fixed[group.feasible + j, lane] = 1.0
            for i in range(2 * group.N):
                group.fixed[_utilities(i, n, group) + j, lane] = batch.utility[r, i]
        _entered(lane_id, end - begin, lane, n, group)


@inner
def enter_bits(lane_id, bits, utility, n, group):
    """Fill all lanes with one game: utilities (joint actions, 2N) where bits are set."""
    for lane in range(lane_count(group.fixed)):
        for j in strided(lane_id, n):
            here, r = (bits >> j) & 1, popcount(bits & ((np.int64(1) << j) - 1))
            group.fixed[group.feasible + j, lane] = here
            for i in range(2 * group.N):
                u = utility[r, i]  # that of another one where j is not feasible
                group.fixed[_utilities(i, n, group) + j, lane] = u if here != 0 else 0.0
        _entered(lane_id, popcount(bits), lane, n, group)


@inlined
def _adds(x, group):
    """Return whether a weight adds to a sum, in which all else is finite; weights are not negative.

    A thread that is alone does not ask: its warp goes along.
    """
    return warp_size(group.warp) == 1 or any_lane(x > 0.0)


@inlined
def _utilities(i, n, group):
    """Return where the utilities i of a player begin; absolute totals come behind all others."""
    return group.utility + i * n if i < group.N else group.abs_total + (i - group.N) * n


@inlined
def _entered(lane_id, count, lane, n, group):
    """Fill the number of joint actions, and clear the fallback flag."""
    group.fixed[group.fallback + lane_index(lane_id), lane] = 0.0
    if is_lane0(lane_id):
        group.fixed[group.feasible + n, lane] = count
        group.fixed[group.feasible + n + 1, lane] = max(count // 4, 1)


@inner
def measure_players(lane_id, floor, n, group):
    """Fill what is known of each player, and look whether its utilities are regular."""
    m = group.memory
    for i in strided(lane_id, group.N):
        top, low, abs_total = broadcast(-np.inf), broadcast(np.inf), broadcast(0.0)
        for j in range(n):
            here, u = is_feasible(j, group), get(group.fixed, group.utility + i * n + j)
            top = where(here, max(top, u), top)
            low = where(here, min(low, u), low)
            abs_total = where(here, max(abs_total, get(group.fixed, group.abs_total + i * n + j)), abs_total)
        cares = top - low > NOISE * abs_total
        unit = where(cares, top - low, 0.0)
        outside = where(cares, -(1.0 + floor) * unit / where(cares, unit, 1.0), -floor)
        near = broadcast(0.0)
        for j in range(n):
            below = top - get(group.fixed, group.utility + i * n + j)
            near = near + where(is_feasible(j, group) & (below * OUTLIER < unit), 1.0, 0.0)
        flag_fallback(near > get(group.fixed, group.feasible + n + 1), lane_id, group)
        put(m, group.player + 5 * i + TOP, top)
        put(m, group.player + 5 * i + UNIT, unit)
        put(m, group.player + 5 * i + OUTSIDE, outside)
        put(m, group.player + 5 * i + ROUNDING, abs_total)


@inlined
def _unit(i, group):
    """Return what a player's utilities are divided by."""
    unit = get(group.memory, group.player + 5 * i + UNIT)
    return where(unit > 0.0, unit, 1.0)


@inner
def count_in_units(lane_id, terms, n, group):
    """Fill utilities in units, and what joint actions are worth."""
    m = group.memory
    for i in range(group.N):
        top, outside = get(m, group.player + 5 * i + TOP), get(m, group.player + 5 * i + OUTSIDE)
        cares, unit = get(m, group.player + 5 * i + UNIT) > 0.0, _unit(i, group)
        for j in strided(lane_id, n):
            below = top - get(group.fixed, group.utility + i * n + j)
            v = where(cares, (0.0 - below) / unit, 0.0)
            put(m, group.v + i * n + j, where(is_feasible(j, group), v, outside))
    for j in strided(lane_id, n):
        put(group.fixed, group.reduced_payoff + j, _objective(j, terms, n, group))


@inlined
def _objective(j, terms, n, group):
    """Return what a joint action is worth below the players' best."""
    m = group.memory
    total = broadcast(0.0)
    for i in range(group.N):
        u = get(group.fixed, group.utility + i * n + j)
        part = terms[i] * (u - get(m, group.player + 5 * i + TOP))
        total = where(get(m, group.player + 5 * i + UNIT) > 0.0, total + part, total)
    return total


@inner
def weigh(lane_id, terms, span, n, group):
    """Fill the objective in units of `span`; look for utilities that are equal but for rounding."""
    m = group.memory
    for j in strided(lane_id, n):
        put(group.fixed, group.c + j, 0.0)
    for i in range(group.N):
        factor = terms[i] * get(m, group.player + 5 * i + UNIT) / span
        blur = NOISE * get(m, group.player + 5 * i + ROUNDING) / _unit(i, group)
        close = span < span
        for j in strided(lane_id, n):
            here, v = is_feasible(j, group), get(m, group.v + i * n + j)
            put(group.fixed, group.c + j, get(group.fixed, group.c + j) + factor * v)
            for step in range(n // 2):  # the next half of them, in a circle, so that each two meet
                k = j + 1 + step - (n if j + 1 + step >= n else 0)
                gap = absolute(get(m, group.v + i * n + k) - v)
                close = close | (here & is_feasible(k, group) & (gap > 0.0) & (gap <= blur))
        flag_fallback(close, lane_id, group)


@inlined
def _speaks(r, j, first, choices, group):
    """Return whether row r is about joint action j; of rows that are stored all are, with zeros."""
    recommended = group.recommended[r]
    return len(group.A) > 0 or recommended == ALWAYS or choices.action[first + j, group.owner[r]] == recommended


@inlined
def _gain(r, j, first, choices, n, group):
    """Return what deviation r gains at j; anything where j is not feasible, so not played."""
    if len(group.A) > 0:
        return get(group.A, r * n + j)
    return _gained(r, j, first, choices, n, group)


@inlined
def _gained(r, j, first, choices, n, group):
    """Return what deviation r gains at j, from the utilities."""
    i, to = np.int64(group.owner[r]), choices.deviation[first + j, group.target[r]]
    place = group.v + i * n + to if 0 <= to < n else group.player + 5 * i + OUTSIDE
    return get(group.memory, place) - get(group.memory, group.v + i * n + j)


@inner
def incentive_rows(lane_id, first, choices, n, rows, group):
    """Fill scale, size, and A where it is kept."""
    for r in strided(lane_id, rows):
        most, size, recommended = broadcast(0.0), broadcast(1.0), group.recommended[r]
        for j in range(n):
            gain = broadcast(0.0)
            if recommended == ALWAYS or choices.action[first + j, group.owner[r]] == recommended:
                gain = where(is_feasible(j, group), _gained(r, j, first, choices, n, group), 0.0)
                most, size = max(most, gain), max(size, absolute(gain))
            if len(group.A) > 0:
                put(group.A, r * n + j, gain)
        put(group.memory, group.scale + r, most)
        put(group.memory, group.slack_scale + r, size)


@inner
def start(lane_id, a, most, first, choices, n, rows, group):
    """Fill the tableaus at joint action a, where the objective is `most`, its best."""
    T, whole, width = group.table, group.whole, n + 1
    for r in strided(lane_id, rows):
        own, binds = broadcast(0.0), get(group.memory, group.scale + r) > 0.0
        for j in range(n):
            if _speaks(r, j, first, choices, group) and (warp_size(lane_id) == 1 or any_lane(a == j)):
                own = where(a == j, _gain(r, j, first, choices, n, group), own)
        for j in range(n):
            here, entry = binds & is_feasible(j, group) & ~(a == j), 0.0 - own
            if _speaks(r, j, first, choices, group):
                entry = _gain(r, j, first, choices, n, group) - own
            put(T, r * width + j, where(here, entry, 0.0))
        put(T, r * width + n, where(binds, 0.0 - own, 1.0))
        put(whole, group.basic + r, broadcast(n + r))
    for j in strided(lane_id, n):
        here = is_feasible(j, group) & ~(a == j)
        put(T, rows * width + j, where(here, 1.0, 0.0))
        put(T, (rows + 1) * width + j, where(here, most - get(group.fixed, group.c + j), 1.0))
        put(whole, group.other + j, where(a == j, n + rows, j))
    if is_lane0(lane_id):
        put(T, rows * width + n, 1.0)
        put(T, (rows + 1) * width + n, 0.0)
        put(whole, group.basic + rows, a)


# -- first level ----------------------------------------------------------------------------------


@inlined
def find_lowest(lane_id, n, count, group):
    """Find the lowest of some right sides, the first of several."""
    if lane_index(lane_id) < scanners(lane_id):
        lowest, r = broadcast(-ROW_FEASIBLE), broadcast(-1.0)
        for i in range(lane_index(lane_id), count, scanners(lane_id)):
            b = get(group.table, i * (n + 1) + n)
            r = where(b < lowest, i, r)
            lowest = min(b, lowest)
        put(group.fixed, group.lowest + 2 * lane_index(lane_id), lowest)
        put(group.fixed, group.lowest + 2 * lane_index(lane_id) + 1, r)


@inlined
def lowest_of_lanes(group):
    """Return the row of the lowest of all; -1: there is none."""
    m, place = group.fixed, group.lowest
    lowest, r = get(m, place), get(m, place + 1)
    for k in range(1, scanners(group.warp)):
        b, i = get(m, place + 2 * k), get(m, place + 2 * k + 1)
        lower = (b < lowest) | ((b == lowest) & (i < r))
        lowest, r = where(lower, b, lowest), where(lower, i, r)
    return r


@inlined
def find_bound(lane_id, r, n, count, group):
    """Find the least of some ratios of reduced costs to row r, each a bit larger than it is.

    Leaves the ratios at `reduced_payoff`, and what pivots are divided by at `inverse`.
    """
    T, width, line = group.table, n + 1, group.place + 2 * lane_index(lane_id) + LINE
    put(group.whole, line, r * width)
    bound = broadcast(np.inf)
    for k in strided(lane_id, n):
        a = 0.0 - gather(T, group.whole, line, k)
        d = max(get(T, count * width + k), 0.0)
        put(group.row, k, a)
        inverse = 1.0 / opaque(where(a > PIVOT, a, 1.0))
        put(group.fixed, group.inverse + k, inverse)
        put(group.fixed, group.reduced_payoff + k, d * inverse)
        bound = where(a > PIVOT, min(bound, (d + HARRIS) * inverse), bound)
    put(group.fixed, group.bound + lane_index(lane_id), bound)


@inlined
def join_bounds(lane_id, group):
    """Find the least of the ratios that some lanes have found."""
    if lane_index(lane_id) < scanners(lane_id):
        many = warp_size(lane_id) // scanners(lane_id)
        least = get(group.fixed, group.bound + lane_index(lane_id) * many)
        for k in range(1, many):
            least = min(least, get(group.fixed, group.bound + lane_index(lane_id) * many + k))
        put(group.fixed, group.least + lane_index(lane_id), least)


@inlined
def find_largest(lane_id, n, group):
    """Find the largest pivot of some ratios within the bound, the first of several."""
    if lane_index(lane_id) < scanners(lane_id):
        bound = get(group.fixed, group.least)
        for k in range(1, scanners(group.warp)):
            bound = min(bound, get(group.fixed, group.least + k))
        j, size, inverse = broadcast(-1.0), broadcast(PIVOT), broadcast(0.0)
        for k in range(lane_index(lane_id), n, scanners(lane_id)):
            a = get(group.row, k)
            better = (a > size) & (get(group.fixed, group.reduced_payoff + k) <= bound)
            j, size = where(better, k, j), where(better, a, size)
            inverse = where(better, get(group.fixed, group.inverse + k), inverse)
        place = group.largest + 3 * lane_index(lane_id)
        put(group.fixed, place, size)
        put(group.fixed, place + 1, j)
        put(group.fixed, place + 2, inverse)


@inlined
def largest_of_lanes(group):
    """Return the column of the largest pivot, -1 if there is none, and 1 over the pivot."""
    m, place = group.fixed, group.largest
    size, j, inverse = get(m, place), get(m, place + 1), get(m, place + 2)
    for k in range(1, scanners(group.warp)):
        a, i = get(m, place + 3 * k), get(m, place + 3 * k + 1)
        better = (a > size) | ((a == size) & (i < j))
        size, j, inverse = (
            where(better, a, size),
            where(better, i, j),
            where(better, get(m, place + 3 * k + 2), inverse),
        )
    return j, inverse


@inlined
def set_apart(lane_id, busy, r, j, inverse, n, count, group):
    """Take row r and column j out of the table, where a lane is busy; 1 / `inverse` is the pivot.

    They count as zero in the table, the row is scaled, and of its own row -1 times that is
    subtracted. Where they crossing, the column is taken out. The variables change places.
    """
    T, whole, width = group.table, group.whole, n + 1
    line, column = group.place + 2 * lane_index(lane_id) + LINE, group.place + 2 * lane_index(lane_id) + COLUMN
    put(whole, column, max(j, 0.0))
    for k in strided(lane_id, width):
        crossing = busy & (j == k)
        put(group.row, k, inverse)
        if any_lane(~crossing):
            before = gather(T, whole, line, k)
            put(group.row, k, where(crossing, inverse, where(busy, before * inverse, 0.0)))
            scatter(T, whole, line, k, where(busy, 0.0, before))
    for i in strided(lane_id, count + 1):
        before = gather(T, whole, column, i * width)
        put(group.memory, group.column + i, where(busy & (r == i), -1.0, where(busy, before, 0.0)))
        scatter(T, whole, column, i * width, where(busy, 0.0, before))
    if is_lane0(lane_id):
        put(whole, line, where(busy, r, -1.0))
        for lane in range(lane_count(T)):
            if whole[line, lane] >= 0:
                row, other = group.basic + whole[line, lane], group.other + whole[column, lane]
                whole[row, lane], whole[other, lane] = whole[other, lane], whole[row, lane]


@inner
def eliminate(lane_id, n, count, group):
    """Subtract the pivot's row from all rows, as often as its column says."""
    if warp_size(lane_id) > 1:
        for k in strided_fours(lane_id, n + 1):
            _eliminate_four(lane_id, k, n, count, group)
    else:
        T, width = group.table, n + 1
        for i in range(count + 1):
            factor = get(group.memory, group.column + i)
            for k in range(width):
                put(T, i * width + k, get(T, i * width + k) - factor * get(group.row, k))


@inlined
def _eliminate_four(lane_id, k, n, count, group):
    """Subtract the pivot's row in four columns, whose parts of that row stay in registers."""
    T, width = group.table, n + 1
    k1, k2, k3 = _column(k, 1, n), _column(k, 2, n), _column(k, 3, n)
    x, x1, x2, x3 = get(group.row, k), get(group.row, k1), get(group.row, k2), get(group.row, k3)
    for i in strided_rows(lane_id, count + 1):
        place, factor = i * width, get(group.memory, group.column + i)
        y, y1, y2, y3 = get(T, place + k), get(T, place + k1), get(T, place + k2), get(T, place + k3)
        put(T, place + k3, y3 - factor * x3)
        put(T, place + k2, y2 - factor * x2)
        put(T, place + k1, y1 - factor * x1)
        put(T, place + k, y - factor * x)


@inlined
def _column(k, nth, n):
    """Return the nth column of a lane after k; k itself, once more, where there is none."""
    return k + nth * ACROSS if k + nth * ACROSS <= n else k


# -- its certificate ------------------------------------------------------------------------------


@inlined
def recompute_gains(lane_id, n, group):
    """Hide the utilities in units from the optimiser, so that gains are computed anew."""
    for k in strided(lane_id, group.N * n):
        put(group.memory, group.v + k, opaque(get(group.memory, group.v + k)))


@inlined
def read_point(lane_id, n, rows, group):
    """Fill the values of variables and, behind them, their duals: one of both is zero."""
    for i in strided(lane_id, rows + 1):
        b = max(get(group.table, i * (n + 1) + n), 0.0)
        scatter(group.point, group.whole, group.basic + i, 0, b)
        scatter(group.point, group.whole, group.basic + i, n + rows + 1, broadcast(0.0))
    for k in strided(lane_id, n):
        d = get(group.table, (rows + 1) * (n + 1) + k)
        scatter(group.point, group.whole, group.other + k, 0, broadcast(0.0))
        scatter(group.point, group.whole, group.other + k, n + rows + 1, d)


@inlined
def read_weights(lane_id, n, rows, group):
    """Fill the values of basic variables again."""
    for i in strided(lane_id, rows + 1):
        b = max(get(group.table, i * (n + 1) + n), 0.0)
        scatter(group.point, group.whole, group.basic + i, 0, b)


@inlined
def dual_of(k, n, rows, group):
    """Return the dual of a variable."""
    return get(group.point, n + rows + 1 + k)


@inner
def check_duals(lane_id, accepted, first, choices, n, rows, group):
    """Fill reduced payoffs, each row's dual infeasibility, and the highest dual of a lane."""
    m, highest = group.memory, broadcast(0.0)
    for r in strided(lane_id, rows):
        y = dual_of(n + r, n, rows, group)
        size = absolute(y)
        over = dual_infeasibility = broadcast(0.0)
        if any_lane(size > 0.0):
            flag_fallback(~(y * get(m, group.slack_scale + r) >= 0.0 - accepted), lane_id, group)
            for j in range(n):
                x = get(group.point, j)
                if _speaks(r, j, first, choices, group) and _adds(x, group):
                    gain = _gain(r, j, first, choices, n, group)
                    over = over + gain * x
                    dual_infeasibility = dual_infeasibility + 0.25 * NOISE * absolute(y * gain * x)
            dual_infeasibility, highest = dual_infeasibility + size * max(over, 0.0), max(size, highest)
        put(m, group.dual_infeasibility + r, dual_infeasibility)
    put(group.fixed, group.bound + lane_index(lane_id), highest)
    for j in strided(lane_id, n):
        put(group.fixed, group.reduced_payoff + j, get(group.fixed, group.c + j))
    for r in range(rows):
        y = dual_of(n + r, n, rows, group)
        if any_lane(absolute(y) > 0.0):
            for j in strided(lane_id, n):
                if _speaks(r, j, first, choices, group):
                    gain = _gain(r, j, first, choices, n, group)
                    put(group.fixed, group.reduced_payoff + j, get(group.fixed, group.reduced_payoff + j) - y * gain)


@inlined
def highest_of_lanes(group):
    """Return the highest dual that a lane has found."""
    highest = get(group.fixed, group.bound)
    for k in range(1, warp_size(group.warp)):
        highest = max(highest, get(group.fixed, group.bound + k))
    return highest


@inner
def check_levels(lane_id, level, high, n, rows, group):
    """Look whether another level is open: all that is not played must have a dual.

    Where duals are `high`, they must agree with the program's own numbers: what a joint action is
    worth below the `level` of those that are played. Fills how many rows' duals do not say so.
    """
    silent = broadcast(0.0)
    for k in strided(lane_id, n):
        dual, which = get(group.table, (rows + 1) * (n + 1) + k), get(group.whole, group.other + k)
        flag_fallback((which < n) & ~(dual > TIE), lane_id, group)
        silent = silent + where((which < n) | (which >= n + rows), 0.0, 1.0)
    for j in strided(lane_id, n):
        distance = absolute(level - get(group.fixed, group.reduced_payoff + j) - dual_of(j, n, rows, group))
        flag_fallback(high & is_feasible(j, group) & ~(distance <= DUAL_INFEASIBILITY), lane_id, group)
    for r in strided(lane_id, rows):
        y = dual_of(n + r, n, rows, group)
        clear = (y >= PIVOT) & (y * get(group.memory, group.slack_scale + r) > TIE)
        silent = silent - where(clear, 1.0, 0.0)
    put(group.fixed, group.bound + lane_index(lane_id), silent)


# -- the answers ----------------------------------------------------------------------------------


@inlined
def total_weight(n, group):
    """Return the sum of the weights."""
    total = broadcast(0.0)
    for j in range(n):
        total = total + get(group.point, j)
    return total


@inlined
def multiply_weights(lane_id, factor, n, group):
    """Multiply the weights by a factor, so that they sum to one but for rounding."""
    for j in strided(lane_id, n):
        put(group.point, j, get(group.point, j) * factor)


@inlined
def divide_weights(lane_id, total, n, group):
    """Divide the weights by their total, so that they sum to one."""
    for j in strided(lane_id, n):
        put(group.point, j, get(group.point, j) / total)


@inlined
def find_slacks(lane_id, first, choices, n, rows, group):
    """Fill the values of slacks; nothing is left in the sum of the weights."""
    for r in strided(lane_id, rows):
        put(group.point, n + r, _slack(r, first, choices, n, group))
    if is_lane0(lane_id):
        put(group.point, n + rows, 0.0)


@inlined
def _slack(r, first, choices, n, group):
    """Return the slack of row r at the weights."""
    slack = broadcast(0.0)
    for j in range(n):
        x = get(group.point, j)
        if _speaks(r, j, first, choices, group) and _adds(x, group):
            slack = slack - _gain(r, j, first, choices, n, group) * x
    return slack


@inlined
def slacks_of_columns(lane_id, n, group):
    """Fill the slack of each nonbasic variable; joint actions have none."""
    for k in strided(lane_id, n):
        slack = gather(group.point, group.whole, group.other + k, 0)
        put(group.row, k, where(get(group.whole, group.other + k) < n, 0.0, slack))


@inlined
def take_slacks_out(lane_id, factor, n, rows, group):
    """Correct the right sides by these; weights were multiplied by `factor`."""
    T, width = group.table, n + 1
    for i in strided(lane_id, rows + 1):
        b = get(T, i * width + n)
        b = where(get(group.whole, group.basic + i) < n, b * factor, b)
        for k in range(n):
            slack = get(group.row, k)
            if _adds(absolute(slack), group):
                b = b + get(T, i * width + k) * slack
        put(T, i * width + n, b)


@inlined
def drop_rounding(lane_id, n, group):
    """Set tiny weights to zero."""
    for j in strided(lane_id, n):
        x = get(group.point, j)
        put(group.point, j, where(x > TIE, x, 0.0))


@inner
def measure_answer(lane_id, n, group):
    """Fill how far players are below their best, and what of that is rounding."""
    m = group.memory
    for i in strided(lane_id, group.N):
        missing = noise = broadcast(0.0)
        for j in range(n):
            x = get(group.point, j)
            if _adds(x, group):
                missing = missing - x * get(m, group.v + i * n + j)
                part = NOISE * x * get(group.fixed, group.abs_total + i * n + j)
                noise = where(x > 0.0, noise + part, noise)
        put(m, group.player + 5 * i + MISSING, missing)
        put(m, group.player + 5 * i + ROUNDING, noise / _unit(i, group))


@inner
def check_rows(lane_id, first, choices, n, rows, group):
    """Look whether all rows hold."""
    m = group.memory
    for r in strided(lane_id, rows):
        player, slack = group.player + 5 * group.owner[r], _slack(r, first, choices, n, group)
        least = min(get(m, group.scale + r), get(m, player + MISSING))
        flag_fallback(slack < 0.0 - (STABLE * least + get(m, player + ROUNDING)), lane_id, group)


@inner
def check_units(lane_id, goal, n, span, best, group):
    """Look whether a player's unit, or that of the objective, is too coarse for the answer."""
    m = group.memory
    for i in strided(lane_id, group.N):
        top, unit = get(m, group.player + 5 * i + TOP), get(m, group.player + 5 * i + UNIT)
        missing = abs_total = broadcast(0.0)
        for j in range(n):
            x = get(group.point, j)
            if _adds(x, group):
                missing = where(x > 0.0, missing + x * (top - get(group.fixed, group.utility + i * n + j)), missing)
        coarse = missing * COARSE < unit
        if any_lane(coarse):
            for j in range(n):
                x = get(group.point, j)
                abs_total = where(x > 0.0, abs_total + x * get(group.fixed, group.abs_total + i * n + j), abs_total)
            flag_fallback(coarse & (missing > NOISE * abs_total), lane_id, group)
    if goal.kind != ANY and is_lane0(lane_id):
        here = abs_total = broadcast(0.0)
        for j in range(n):
            x = get(group.point, j)
            if _adds(x, group):
                here = where(x > 0.0, here + x * _objective(j, goal.terms[0], n, group), here)
        missing = best - here
        coarse = missing * COARSE < span
        if any_lane(coarse):
            for i in range(group.N):
                for j in range(n):
                    x = get(group.point, j)
                    part = x * get(group.fixed, group.abs_total + i * n + j)
                    abs_total = where(x > 0.0, abs_total + part * abs(goal.terms[0, i]), abs_total)
            flag_fallback(coarse & (missing > OUTLIER * NOISE * abs_total), lane_id, group)


@inner
def find_values(lane_id, played, n, group):
    """Fill what the answer is worth, utilities and absolute totals."""
    for i in strided(lane_id, 2 * group.N):
        mean = broadcast(0.0)
        for j in range(n):
            x = get(group.point, j)
            if _adds(x, group):
                u = get(group.fixed, _utilities(i, n, group) + j)
                mean = where(x > 0.0, where(played == 1.0, u, mean + x * u), mean)
        put(group.memory, group.values + i, mean)
    if is_lane0(lane_id):
        put(group.fixed, group.feasible + n, played)


@inlined
def file_lane(lane_id, lane, cell, n, group, value, code, row, prob):
    """Store the answer of a SIMD lane; return how many joint actions are played, 0 without an
    answer.

    Where several are, they and their weights are filled into row and prob.
    """
    played = np.int64(group.fixed[group.feasible + n, lane])
    if played > 0:
        for i in strided(lane_id, 2 * group.N):
            value[i, cell] = group.memory[group.values + i, lane]
        if is_lane0(lane_id):
            entries = chosen = np.int64(0)
            for j in range(n):
                x = group.point[j, lane]
                if x > 0.0:
                    chosen = j + 1
                    if played > 1:
                        row[entries] = j
                        prob[entries] = x
                        entries += 1
            code[cell] = chosen if played == 1 else 0
    return played
