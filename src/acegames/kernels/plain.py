"""The phases of plain stage programs: what each seat of a team does for the games of a group.

`lockstep` says in which order; there the group is explained, and in `teams` what a seat is. Sums
are always made by one seat, in the order of the source.
"""

from __future__ import annotations

import numpy as np

from acegames.kernels.bits import ones
from acegames.kernels.lanes import again, anywhere, gather, get, lane_count, magnitude, put, scatter, spread, where
from acegames.kernels.records import ANY
from acegames.kernels.teams import ACROSS, leads, mine, my_fours, my_rows, rank, scanners, size_of
from acegames.numerics import COARSE, HARRIS, LEVER, NOISE, OUTLIER, PIVOT, ROW_FEASIBLE, STABLE, TIE
from acegames.system.compiled import inlined, inner

TOP, UNIT, OUTSIDE, MISSING, ROUNDING = range(5)  # what is known of a player
LINE, COLUMN = 0, 1  # a seat's places of the pivot: where its row begins, its column
ALWAYS = -1  # what is told before a deviation of CCE


@inlined
def is_feasible(j, group):
    """Return where joint action j is feasible."""
    return get(group.fixed, group.feasible + j) > 0.0


@inlined
def _doubt(unclear, seat, group):
    """Where something is found that is not plain, the game is given up."""
    place = group.doubt + rank(seat)
    put(group.fixed, place, where(unclear, 1.0, get(group.fixed, place)))


@inlined
def sum_of_seats(place, group):
    """Return the sum of whole numbers that all seats have left."""
    total = get(group.fixed, place)
    for k in range(1, size_of(group.team)):
        total = total + get(group.fixed, place + k)
    return total


# -- the programs ---------------------------------------------------------------------------------


@inlined
def clear(seat, n, group):
    """No joint action is feasible."""
    for j in mine(seat, n):
        put(group.fixed, group.feasible + j, 0.0)


@inner
def enter(seat, written, n, group):
    """Fill utilities, gross utilities, and which joint actions are feasible."""
    for lane in range(lane_count(group.fixed)):
        g = group.games[lane]
        begin, end = written.ptr[g], written.ptr[g + 1]
        for r in range(begin + rank(seat), end, size_of(seat)):
            j = written.row[r] - written.first_row[g]
            group.fixed[group.feasible + j, lane] = 1.0
            for i in range(2 * group.N):
                group.fixed[_utilities(i, n, group) + j, lane] = written.utility[r, i]
        _entered(seat, end - begin, lane, n, group)


@inner
def enter_bits(seat, bits, utility, n, group):
    """The same of one game in all lanes: utilities (joint actions, 2N) where bits are set."""
    for lane in range(lane_count(group.fixed)):
        for j in mine(seat, n):
            here, r = (bits >> j) & 1, ones(bits & ((np.int64(1) << j) - 1))
            group.fixed[group.feasible + j, lane] = here
            for i in range(2 * group.N):
                u = utility[r, i]  # that of another one where j is not feasible
                group.fixed[_utilities(i, n, group) + j, lane] = u if here != 0 else 0.0
        _entered(seat, ones(bits), lane, n, group)


@inlined
def _adds(x, group):
    """Return whether a weight adds to a sum, in which all else is finite; weights are not negative.

    A thread that is alone does not ask: its warp goes along.
    """
    return size_of(group.team) == 1 or anywhere(x > 0.0)


@inlined
def _utilities(i, n, group):
    """Return where those of a player begin; the gross ones are counted behind all others."""
    return group.utility + i * n if i < group.N else group.gross + (i - group.N) * n


@inlined
def _entered(seat, count, lane, n, group):
    """There are so many joint actions, and nothing is in doubt."""
    group.fixed[group.doubt + rank(seat), lane] = 0.0
    if leads(seat):
        group.fixed[group.feasible + n, lane] = count
        group.fixed[group.feasible + n + 1, lane] = max(count // 4, 1)


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
        put(m, group.player + 5 * i + TOP, top)
        put(m, group.player + 5 * i + UNIT, unit)
        put(m, group.player + 5 * i + OUTSIDE, outside)
        put(m, group.player + 5 * i + ROUNDING, gross)


@inlined
def _unit(i, group):
    """Return what a player's utilities are divided by."""
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
    """Return what a joint action is worth below the players' best."""
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
            for step in range(n // 2):  # the next half of them, in a circle, so that each two meet
                k = j + 1 + step - (n if j + 1 + step >= n else 0)
                gap = magnitude(get(m, group.v + i * n + k) - v)
                close = close | (here & is_feasible(k, group) & (gap > 0.0) & (gap <= blur))
        _doubt(close, seat, group)


@inlined
def _speaks(r, j, first, choices, group):
    """Return whether row r is about joint action j; of rows that are kept all are, with zeros."""
    told = group.told[r]
    return len(group.A) > 0 or told == ALWAYS or choices.action[first + j, group.owner[r]] == told


@inlined
def _gain(r, j, first, choices, n, group):
    """Return what deviation r gains at j: anything where j is not feasible, so not played, or it is
    0.
    """
    if len(group.A) > 0:
        return get(group.A, r * n + j)
    return _gained(r, j, first, choices, n, group)


@inlined
def _gained(r, j, first, choices, n, group):
    i, to = np.int64(group.owner[r]), choices.deviation[first + j, group.target[r]]
    place = group.v + i * n + to if 0 <= to < n else group.player + 5 * i + OUTSIDE
    return get(group.memory, place) - get(group.memory, group.v + i * n + j)


@inner
def incentive_rows(seat, first, choices, n, rows, group):
    """Fill scale, size, and A where it is kept."""
    for r in mine(seat, rows):
        most, size, told = spread(0.0), spread(1.0), group.told[r]
        for j in range(n):
            gain = spread(0.0)
            if told == ALWAYS or choices.action[first + j, group.owner[r]] == told:
                gain = where(is_feasible(j, group), _gained(r, j, first, choices, n, group), 0.0)
                most, size = max(most, gain), max(size, magnitude(gain))
            if len(group.A) > 0:
                put(group.A, r * n + j, gain)
        put(group.memory, group.scale + r, most)
        put(group.memory, group.size + r, size)


@inner
def start(seat, a, most, first, choices, n, rows, group):
    """The dictionaries at joint action a, where the objective is `most`, its best."""
    T, whole, width = group.table, group.whole, n + 1
    for r in mine(seat, rows):
        own, binds = spread(0.0), get(group.memory, group.scale + r) > 0.0
        for j in range(n):
            if _speaks(r, j, first, choices, group) and (size_of(seat) == 1 or anywhere(a == j)):
                own = where(a == j, _gain(r, j, first, choices, n, group), own)
        for j in range(n):
            here, entry = binds & is_feasible(j, group) & ~(a == j), 0.0 - own
            if _speaks(r, j, first, choices, group):
                entry = _gain(r, j, first, choices, n, group) - own
            put(T, r * width + j, where(here, entry, 0.0))
        put(T, r * width + n, where(binds, 0.0 - own, 1.0))
        put(whole, group.basic + r, spread(n + r))
    for j in mine(seat, n):
        here = is_feasible(j, group) & ~(a == j)
        put(T, rows * width + j, where(here, 1.0, 0.0))
        put(T, (rows + 1) * width + j, where(here, most - get(group.fixed, group.c + j), 1.0))
        put(whole, group.other + j, where(a == j, n + rows, j))
    if leads(seat):
        put(T, rows * width + n, 1.0)
        put(T, (rows + 1) * width + n, 0.0)
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
    """Return the row of the lowest of all; -1: there is none."""
    m, place = group.fixed, group.lowest
    lowest, r = get(m, place), get(m, place + 1)
    for k in range(1, scanners(group.team)):
        b, i = get(m, place + 2 * k), get(m, place + 2 * k + 1)
        lower = (b < lowest) | ((b == lowest) & (i < r))
        lowest, r = where(lower, b, lowest), where(lower, i, r)
    return r


@inlined
def find_bound(seat, r, n, count, group):
    """The least of some ratios of reduced costs to row r, each a bit larger than it is.

    Leaves the ratios at `worth`, and what pivots are divided by at `inverse`.
    """
    T, width, line = group.table, n + 1, group.place + 2 * rank(seat) + LINE
    put(group.whole, line, r * width)
    bound = spread(np.inf)
    for k in mine(seat, n):
        a = 0.0 - gather(T, group.whole, line, k)
        d = max(get(T, count * width + k), 0.0)
        put(group.row, k, a)
        inverse = 1.0 / again(where(a > PIVOT, a, 1.0))
        put(group.fixed, group.inverse + k, inverse)
        put(group.fixed, group.worth + k, d * inverse)
        bound = where(a > PIVOT, min(bound, (d + HARRIS) * inverse), bound)
    put(group.fixed, group.bound + rank(seat), bound)


@inlined
def join_bounds(seat, group):
    """The least of the ratios that some seats have found."""
    if rank(seat) < scanners(seat):
        many = size_of(seat) // scanners(seat)
        least = get(group.fixed, group.bound + rank(seat) * many)
        for k in range(1, many):
            least = min(least, get(group.fixed, group.bound + rank(seat) * many + k))
        put(group.fixed, group.least + rank(seat), least)


@inlined
def find_largest(seat, n, group):
    """Of some ratios within the bound, the one with the largest pivot, the first of several."""
    if rank(seat) < scanners(seat):
        bound = get(group.fixed, group.least)
        for k in range(1, scanners(group.team)):
            bound = min(bound, get(group.fixed, group.least + k))
        j, size, inverse = spread(-1.0), spread(PIVOT), spread(0.0)
        for k in range(rank(seat), n, scanners(seat)):
            a = get(group.row, k)
            better = (a > size) & (get(group.fixed, group.worth + k) <= bound)
            j, size = where(better, k, j), where(better, a, size)
            inverse = where(better, get(group.fixed, group.inverse + k), inverse)
        place = group.largest + 3 * rank(seat)
        put(group.fixed, place, size)
        put(group.fixed, place + 1, j)
        put(group.fixed, place + 2, inverse)


@inlined
def largest_of_seats(group):
    """Return the column of the largest pivot of all, -1: there is none; and what it is divided by."""
    m, place = group.fixed, group.largest
    size, j, inverse = get(m, place), get(m, place + 1), get(m, place + 2)
    for k in range(1, scanners(group.team)):
        a, i = get(m, place + 3 * k), get(m, place + 3 * k + 1)
        better = (a > size) | ((a == size) & (i < j))
        size, j, inverse = (
            where(better, a, size),
            where(better, i, j),
            where(better, get(m, place + 3 * k + 2), inverse),
        )
    return j, inverse


@inlined
def set_apart(seat, busy, r, j, inverse, n, count, group):
    """Take row r and column j out of the table, where a lane is busy; 1 / `inverse` is the pivot.

    They count as zero in the table, the row is scaled, and of its own row -1 times that is
    subtracted. Where they meet, the column is taken out. The variables change places.
    """
    T, whole, width = group.table, group.whole, n + 1
    line, column = group.place + 2 * rank(seat) + LINE, group.place + 2 * rank(seat) + COLUMN
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
        put(group.memory, group.column + i, where(busy & (r == i), -1.0, where(busy, before, 0.0)))
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
    if size_of(seat) > 1:
        for k in my_fours(seat, n + 1):
            _eliminate_four(seat, k, n, count, group)
    else:
        T, width = group.table, n + 1
        for i in range(count + 1):
            factor = get(group.memory, group.column + i)
            for k in range(width):
                put(T, i * width + k, get(T, i * width + k) - factor * get(group.row, k))


@inlined
def _eliminate_four(seat, k, n, count, group):
    """The same in four columns, whose parts of the pivot's row are kept meanwhile."""
    T, width = group.table, n + 1
    k1, k2, k3 = _column(k, 1, n), _column(k, 2, n), _column(k, 3, n)
    x, x1, x2, x3 = get(group.row, k), get(group.row, k1), get(group.row, k2), get(group.row, k3)
    for i in my_rows(seat, count + 1):
        place, factor = i * width, get(group.memory, group.column + i)
        y, y1, y2, y3 = get(T, place + k), get(T, place + k1), get(T, place + k2), get(T, place + k3)
        put(T, place + k3, y3 - factor * x3)
        put(T, place + k2, y2 - factor * x2)
        put(T, place + k1, y1 - factor * x1)
        put(T, place + k, y - factor * x)


@inlined
def _column(k, nth, n):
    """Return the nth column of a seat after k; k itself, once more, where there is none."""
    return k + nth * ACROSS if k + nth * ACROSS <= n else k


# -- its certificate ------------------------------------------------------------------------------


@inlined
def take_again(seat, n, group):
    """Let go of what was found from the utilities in units."""
    for k in mine(seat, group.N * n):
        put(group.memory, group.v + k, again(get(group.memory, group.v + k)))


@inlined
def read_point(seat, n, rows, group):
    """Fill the values of variables and, behind them, their prices: one of both is zero."""
    for i in mine(seat, rows + 1):
        b = max(get(group.table, i * (n + 1) + n), 0.0)
        scatter(group.point, group.whole, group.basic + i, 0, b)
        scatter(group.point, group.whole, group.basic + i, n + rows + 1, spread(0.0))
    for k in mine(seat, n):
        d = get(group.table, (rows + 1) * (n + 1) + k)
        scatter(group.point, group.whole, group.other + k, 0, spread(0.0))
        scatter(group.point, group.whole, group.other + k, n + rows + 1, d)


@inlined
def read_weights(seat, n, rows, group):
    """Fill the values of basic variables again."""
    for i in mine(seat, rows + 1):
        b = max(get(group.table, i * (n + 1) + n), 0.0)
        scatter(group.point, group.whole, group.basic + i, 0, b)


@inlined
def price_of(k, n, rows, group):
    """Return the price of a variable."""
    return get(group.point, n + rows + 1 + k)


@inner
def check_prices(seat, accepted, first, choices, n, rows, group):
    """Fill what joint actions are worth, each row's lever, and the highest price of a seat."""
    m, highest = group.memory, spread(0.0)
    for r in mine(seat, rows):
        y = price_of(n + r, n, rows, group)
        size = magnitude(y)
        over = lever = spread(0.0)
        if anywhere(size > 0.0):
            _doubt(~(y * get(m, group.size + r) >= 0.0 - accepted), seat, group)
            for j in range(n):
                x = get(group.point, j)
                if _speaks(r, j, first, choices, group) and _adds(x, group):
                    gain = _gain(r, j, first, choices, n, group)
                    over = over + gain * x
                    lever = lever + 0.25 * NOISE * magnitude(y * gain * x)
            lever, highest = lever + size * max(over, 0.0), max(size, highest)
        put(m, group.lever + r, lever)
    put(group.fixed, group.bound + rank(seat), highest)
    for j in mine(seat, n):
        put(group.fixed, group.worth + j, get(group.fixed, group.c + j))
    for r in range(rows):
        y = price_of(n + r, n, rows, group)
        if anywhere(magnitude(y) > 0.0):
            for j in mine(seat, n):
                if _speaks(r, j, first, choices, group):
                    gain = _gain(r, j, first, choices, n, group)
                    put(group.fixed, group.worth + j, get(group.fixed, group.worth + j) - y * gain)


@inlined
def highest_of_seats(group):
    """Return the highest price."""
    highest = get(group.fixed, group.bound)
    for k in range(1, size_of(group.team)):
        highest = max(highest, get(group.fixed, group.bound + k))
    return highest


@inner
def check_levels(seat, level, high, n, rows, group):
    """Look whether another level is open: all that is not played must have a price.

    Where prices are `high`, they must agree with the program's own numbers: what a joint action is
    worth below the `level` of those that are played. Fills how many rows' prices do not say so.
    """
    silent = spread(0.0)
    for k in mine(seat, n):
        price, which = get(group.table, (rows + 1) * (n + 1) + k), get(group.whole, group.other + k)
        _doubt((which < n) & ~(price > TIE), seat, group)
        silent = silent + where((which < n) | (which >= n + rows), 0.0, 1.0)
    for j in mine(seat, n):
        apart = magnitude(level - get(group.fixed, group.worth + j) - price_of(j, n, rows, group))
        _doubt(high & is_feasible(j, group) & ~(apart <= LEVER), seat, group)
    for r in mine(seat, rows):
        y = price_of(n + r, n, rows, group)
        clear = (y >= PIVOT) & (y * get(group.memory, group.size + r) > TIE)
        silent = silent - where(clear, 1.0, 0.0)
    put(group.fixed, group.bound + rank(seat), silent)


# -- the answers ----------------------------------------------------------------------------------


@inlined
def total_weight(n, group):
    """Return the sum of the weights."""
    total = spread(0.0)
    for j in range(n):
        total = total + get(group.point, j)
    return total


@inlined
def multiply_weights(seat, factor, n, group):
    """Let weights sum to one, but for rounding."""
    for j in mine(seat, n):
        put(group.point, j, get(group.point, j) * factor)


@inlined
def divide_weights(seat, total, n, group):
    """Let weights sum to one."""
    for j in mine(seat, n):
        put(group.point, j, get(group.point, j) / total)


@inlined
def find_slacks(seat, first, choices, n, rows, group):
    """Fill the values of slacks; nothing is left in the sum of the weights."""
    for r in mine(seat, rows):
        put(group.point, n + r, _slack(r, first, choices, n, group))
    if leads(seat):
        put(group.point, n + rows, 0.0)


@inlined
def _slack(r, first, choices, n, group):
    slack = spread(0.0)
    for j in range(n):
        x = get(group.point, j)
        if _speaks(r, j, first, choices, group) and _adds(x, group):
            slack = slack - _gain(r, j, first, choices, n, group) * x
    return slack


@inlined
def slacks_of_columns(seat, n, group):
    """The same of the variables that are zero; joint actions have none."""
    for k in mine(seat, n):
        slack = gather(group.point, group.whole, group.other + k, 0)
        put(group.row, k, where(get(group.whole, group.other + k) < n, 0.0, slack))


@inlined
def take_slacks_out(seat, factor, n, rows, group):
    """Correct the right sides by these; weights were multiplied by `factor`."""
    T, width = group.table, n + 1
    for i in mine(seat, rows + 1):
        b = get(T, i * width + n)
        b = where(get(group.whole, group.basic + i) < n, b * factor, b)
        for k in range(n):
            slack = get(group.row, k)
            if _adds(magnitude(slack), group):
                b = b + get(T, i * width + k) * slack
        put(T, i * width + n, b)


@inlined
def drop_rounding(seat, n, group):
    """Tiny weights become zero."""
    for j in mine(seat, n):
        x = get(group.point, j)
        put(group.point, j, where(x > TIE, x, 0.0))


@inner
def measure_answer(seat, n, group):
    """Fill how far players are below their best, and what of that is rounding."""
    m = group.memory
    for i in mine(seat, group.N):
        missing = noise = spread(0.0)
        for j in range(n):
            x = get(group.point, j)
            if _adds(x, group):
                missing = missing - x * get(m, group.v + i * n + j)
                part = NOISE * x * get(group.fixed, group.gross + i * n + j)
                noise = where(x > 0.0, noise + part, noise)
        put(m, group.player + 5 * i + MISSING, missing)
        put(m, group.player + 5 * i + ROUNDING, noise / _unit(i, group))


@inner
def check_rows(seat, first, choices, n, rows, group):
    """Look whether all rows hold."""
    m = group.memory
    for r in mine(seat, rows):
        player, slack = group.player + 5 * group.owner[r], _slack(r, first, choices, n, group)
        least = min(get(m, group.scale + r), get(m, player + MISSING))
        _doubt(slack < 0.0 - (STABLE * least + get(m, player + ROUNDING)), seat, group)


@inner
def check_units(seat, goal, n, span, best, group):
    """Look whether a player's unit, or that of the objective, is too coarse for the answer."""
    m = group.memory
    for i in mine(seat, group.N):
        top, unit = get(m, group.player + 5 * i + TOP), get(m, group.player + 5 * i + UNIT)
        missing = gross = spread(0.0)
        for j in range(n):
            x = get(group.point, j)
            if _adds(x, group):
                missing = where(x > 0.0, missing + x * (top - get(group.fixed, group.utility + i * n + j)), missing)
        coarse = missing * COARSE < unit
        if anywhere(coarse):
            for j in range(n):
                x = get(group.point, j)
                gross = where(x > 0.0, gross + x * get(group.fixed, group.gross + i * n + j), gross)
            _doubt(coarse & (missing > NOISE * gross), seat, group)
    if goal.kind != ANY and leads(seat):
        here = gross = spread(0.0)
        for j in range(n):
            x = get(group.point, j)
            if _adds(x, group):
                here = where(x > 0.0, here + x * _objective(j, goal.terms[0], n, group), here)
        missing = best - here
        coarse = missing * COARSE < span
        if anywhere(coarse):
            for i in range(group.N):
                for j in range(n):
                    x = get(group.point, j)
                    part = x * get(group.fixed, group.gross + i * n + j)
                    gross = where(x > 0.0, gross + part * abs(goal.terms[0, i]), gross)
            _doubt(coarse & (missing > OUTLIER * NOISE * gross), seat, group)


@inner
def find_values(seat, played, n, group):
    """Fill what the answer is worth, utilities and gross utilities."""
    for i in mine(seat, 2 * group.N):
        mean = spread(0.0)
        for j in range(n):
            x = get(group.point, j)
            if _adds(x, group):
                u = get(group.fixed, _utilities(i, n, group) + j)
                mean = where(x > 0.0, where(played == 1.0, u, mean + x * u), mean)
        put(group.memory, group.values + i, mean)
    if leads(seat):
        put(group.fixed, group.feasible + n, played)


@inlined
def file_lane(seat, lane, cell, n, group, value, code, row, prob):
    """Return file the answer of a lane; returns how many joint actions are played, 0: it has none.

    Where several are, they and their weights are filled into row and prob.
    """
    played = np.int64(group.fixed[group.feasible + n, lane])
    if played > 0:
        for i in mine(seat, 2 * group.N):
            value[i, cell] = group.memory[group.values + i, lane]
        if leads(seat):
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
