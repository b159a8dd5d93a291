"""Nash equilibria of many stage games in numba. The mathematics is that of `acegames.stage.nash_exact`; read its docstring first.

For supports S_1 x S_2 the conditions on one player's mixture y are linear: all actions of the other's support are worth the same
(equations, solved by elimination), and no feasible action is worth more. Where the equations leave one y, it is checked; where
they leave more, a small simplex finds the y that is best for the objective and positive throughout. Where they leave none, and
in general that is so for supports of unequal size, the pair is done.

Floats decide only what is clear: a quantity within the player's `tie` of zero is zero, one beyond `NASH_CLEAR` is not, and what lies
between makes the stage UNSURE, to be solved again exactly. So is a stage in which nothing was found, and one whose answer
misses the certificate.

Utilities are counted from a player's best in units as in `kernels.stage`; an answer that leaves a player far less than a unit to gain
is looked for again in finer units.
"""

from __future__ import annotations

import numpy as np

from acegames.kernels.records import ANY, EGALITARIAN, FAIR, LINEAR
from acegames.kernels.units import finer, finer_goal, goal_range, leave_outliers_out, measure
from acegames.numerics import (
    INDIFFERENT,
    LEAST_PROBABILITY,
    NASH_CLEAR,
    NASH_PIVOT,
    NASH_ZERO,
    NOISE,
    STABLE,
    SUPPORT,
    TIE,
)
from acegames.system.compiled import inner, kernel

PURE, MIXED, UNSURE, NOTHING, TOO_MANY = 0, 1, 2, 3, 4  # what becomes of a stage
NO, YES, MAYBE = 0, 1, 2  # what becomes of a condition

ATTEMPTS = 4  # at one stage, in units that the one before shows, until exact arithmetic is asked
FIRST_PAIRS = 2**14
"""Where any equilibrium of a product will do: after so many pairs of supports another way is shorter."""


# -- utilities and objectives -----------------------------------------------------------------------------------------


@inner
def _scale(u, R, N, top, unit, v, tie, order):
    """Count each player's utilities from its best, in its unit; those that follow each other within its tie become the lowest of them."""
    for i in range(N):
        per = unit[i] if unit[i] > 0.0 else 1.0
        gross = 0.0  # of what is no outlier
        for j in range(R):
            v[j, i] = (u[j, i] - top[i]) / per if unit[i] > 0.0 else 0.0
            if v[j, i] >= -1.0:
                gross = max(gross, u[j, N + i])
            k = j
            while k > 0 and v[order[k - 1], i] > v[j, i]:
                order[k] = order[k - 1]
                k -= 1
            order[k] = j
        tie[i] = max(NOISE * gross / per, INDIFFERENT)
        lowest = v[order[0], i]
        before = lowest
        for k in range(1, R):
            here = v[order[k], i]
            if here - before > tie[i]:
                lowest = here
            before = here
            v[order[k], i] = lowest


@inner
def _prepare(kind, terms, top, unit, goal, N, scaled, gain, offset):
    """The objective in terms of utilities in units: scaled weights, and what brings the players to one scale, that of the objective."""
    lowest = np.inf
    for i in range(N):
        offset[i] = top[i] + (terms[i] if kind in (EGALITARIAN, FAIR) else 0.0)
        lowest = min(lowest, offset[i])
    for i in range(N):
        gain[i] = unit[i] / (goal if goal > 0.0 else 1.0)
        offset[i] = (offset[i] - lowest) / (goal if goal > 0.0 else 1.0)
        scaled[i] = terms[i] * gain[i]


@inner
def _best_case(kind, scaled, gain, offset, lower, upper, N):
    """The largest objective of utilities between lower and upper; see `stage.preference`."""
    if kind == LINEAR:
        total = 0.0
        for i in range(N):
            total += max(scaled[i] * lower[i], scaled[i] * upper[i])
        return total
    if kind == ANY:
        return 0.0
    least = np.inf
    most = -np.inf
    for i in range(N):
        least = min(least, offset[i] + gain[i] * upper[i])
        most = max(most, offset[i] + gain[i] * lower[i])
    return least if kind == EGALITARIAN else min(0.0, least - most)


@inner
def _better(kind, objective, v, best_objective, best_v, N):
    """Whether (objective, v) is lexicographically larger than the best, ties within TIE."""
    if kind == ANY:
        return False
    gap = objective - best_objective
    i = 0
    while i < N and abs(gap) <= TIE:
        gap = v[i] - best_v[i]
        i += 1
    return gap > TIE


@inner
def _best_pure(kind, v, R, N, row, deviation, first_action, position, scaled, gain, offset, best_v):
    """The best pure equilibrium, or -1; its utilities in best_v."""
    best = -1
    best_objective = 0.0
    for j in range(R):
        stable = True
        for i in range(N):
            for target in range(first_action[i], first_action[i + 1]):
                to = deviation[row[j], target]
                if 0 <= to < len(position) and position[to] >= 0 and v[position[to], i] > v[j, i]:
                    stable = False
                    break
            if not stable:
                break
        if stable:
            objective = _best_case(kind, scaled, gain, offset, v[j], v[j], N)
            if best < 0 or _better(kind, objective, v[j], best_objective, best_v, N):
                best = j
                best_objective = objective
                for i in range(N):
                    best_v[i] = v[j, i]
    return best, best_objective


@inner
def _cannot_be_beaten(kind, v, R, N, scaled, gain, offset, best_objective, best_v, lower, upper):
    """Whether no mixture at all has a better score (a lexicographic best over mixtures of a linear objective is at a joint action)."""
    if kind == ANY:
        return True
    if kind == LINEAR:
        for j in range(R):
            if _better(kind, _best_case(kind, scaled, gain, offset, v[j], v[j], N), v[j], best_objective, best_v, N):
                return False
        return True
    for i in range(N):
        lower[i] = np.inf
        upper[i] = -np.inf
        for j in range(R):
            lower[i] = min(lower[i], v[j, i])
            upper[i] = max(upper[i], v[j, i])
    return not _better(kind, _best_case(kind, scaled, gain, offset, lower, upper, N), upper, best_objective, best_v, N)


# -- a small simplex: x_B = rhs - T x_N, objectives as further rows ------------------------------------------------------


@inner
def _pivot(T, rhs, m, n, r, j, basic, nonbasic):
    inverse = 1.0 / T[r, j]
    for k in range(n):
        T[r, k] *= inverse
    T[r, j] = inverse
    rhs[r] *= inverse
    for i in range(m):
        f = T[i, j]
        if i != r and f != 0.0:
            for k in range(n):
                T[i, k] -= f * T[r, k]
            T[i, j] = -f * inverse
            rhs[i] -= f * rhs[r]
    basic[r], nonbasic[j] = nonbasic[j], basic[r]


@inner
def _make_feasible(T, rhs, m, rows, n, basic, nonbasic):
    """Make rhs >= 0 in the first m rows, whatever the objectives."""
    limit = 20 * (m + n) + 50
    for step in range(limit):
        bland = step > limit // 2
        r = -1
        worst = -NASH_ZERO
        for i in range(m):
            if rhs[i] < worst:
                r = i
                if bland:
                    break
                worst = rhs[i]
        if r < 0:
            return YES
        best = -1
        size = NASH_PIVOT
        for j in range(n):
            if -T[r, j] > size:
                best = j
                size = -T[r, j]
                if bland:
                    break
        if best < 0:
            return NO if rhs[r] < -NASH_CLEAR else MAYBE
        _pivot(T, rhs, rows, n, r, best, basic, nonbasic)
    return MAYBE


@inner
def _maximise(T, rhs, m, rows, n, basic, nonbasic, barred, o):
    """Raise the objective of row o, keeping rhs >= 0 in the first m rows; False when that fails."""
    limit = 20 * (m + n) + 50
    for step in range(limit):
        bland = step > limit // 2
        j = -1
        worst = -NASH_PIVOT
        for k in range(n):
            if not barred[nonbasic[k]] and T[o, k] < worst:
                j = k
                if bland:
                    break
                worst = T[o, k]
        if j < 0:
            return True
        bound = np.inf
        for i in range(m):
            if T[i, j] > NASH_PIVOT:
                bound = min(bound, max(rhs[i], 0.0) / T[i, j])
        if bound == np.inf:
            return False
        r = -1
        size = 0.0
        for i in range(m):
            if (
                T[i, j] > NASH_PIVOT
                and max(rhs[i], 0.0) / T[i, j] <= bound * (1.0 + NASH_ZERO) + NASH_ZERO
                and T[i, j] > size
            ):
                r = i
                size = T[i, j]
                if bland:
                    break
        _pivot(T, rhs, rows, n, r, j, basic, nonbasic)
        for i in range(m):
            if rhs[i] < 0.0 and rhs[i] > -NASH_ZERO:
                rhs[i] = 0.0
    return False


@inner
def _bar(T, n, nonbasic, barred, o):
    """Leave only what keeps the objective of row o."""
    for k in range(n):
        if T[o, k] > TIE:
            barred[nonbasic[k]] = True


# -- one side of a pair of supports -------------------------------------------------------------------------------------


@inner
def _judge(G, own, n_own, choices, n_choices, others, n, y, tie):
    """Whether every action of `own` is as good as any of `choices` against y; and what they are worth."""
    least = np.inf
    most = -np.inf
    worth = 0.0
    for e in range(n_own + n_choices):
        c = own[e] if e < n_own else choices[e - n_own]
        w = 0.0
        for k in range(n):
            w += y[k] * G[c, others[k]]
        most = max(most, w)
        if e < n_own:
            least = min(least, w)
        if e == 0:
            worth = w
    gain = most - least
    return (YES if gain <= tie else NO if gain > max(NASH_CLEAR, 100.0 * tie) else MAYBE), worth


@inner
def _enough(p):
    """Whether a probability is large enough for a support."""
    return YES if p >= 2.0 * LEAST_PROBABILITY else NO if p < 0.5 * LEAST_PROBABILITY else MAYBE


@inner
def _eliminate(G, own, n_own, others, n, tie, E, rhs, pivot_column):
    """Solve: the actions of `own` are worth the same, and y sums to one. Returns the rank, and whether the equations can hold."""
    for k in range(n):
        for e in range(1, n_own):
            E[e - 1, k] = G[own[e], others[k]] - G[own[0], others[k]]
        E[n_own - 1, k] = 1.0
        pivot_column[k] = -1  # the row in which column k is basic
    for e in range(n_own):
        rhs[e] = 0.0
    rhs[n_own - 1] = 1.0
    sure = YES
    rank = 0
    while rank < n_own and rank < n:
        r = -1
        j = -1
        size = 0.0
        for e in range(rank, n_own):
            for k in range(n):
                if pivot_column[k] < 0 and abs(E[e, k]) > size:
                    r, j, size = e, k, abs(E[e, k])
        if size <= tie:
            break
        if size < max(NASH_CLEAR, 100.0 * tie):
            sure = MAYBE
            break
        for k in range(n):
            E[rank, k], E[r, k] = E[r, k], E[rank, k]
        rhs[rank], rhs[r] = rhs[r], rhs[rank]
        inverse = 1.0 / E[rank, j]
        for k in range(n):
            E[rank, k] *= inverse
        E[rank, j] = 1.0
        rhs[rank] *= inverse
        for e in range(n_own):
            f = E[e, j]
            if e != rank and f != 0.0:
                for k in range(n):
                    E[e, k] -= f * E[rank, k]
                E[e, j] = 0.0
                rhs[e] -= f * rhs[rank]
        pivot_column[j] = rank
        rank += 1
    for e in range(rank, n_own):
        if abs(rhs[e]) > max(NASH_CLEAR, 100.0 * tie):
            return rank, (NO if sure == YES else MAYBE)
        if abs(rhs[e]) > tie:
            sure = MAYBE
    return rank, sure


@inner
def _read(rhs, basic, m, n, y):
    """The mixture at the present basis: y = y' + z, z the least probability."""
    least = 0.0
    for k in range(n):
        y[k] = 0.0
    for i in range(m):
        if basic[i] < n:
            y[basic[i]] = max(rhs[i], 0.0)
        elif basic[i] == n:
            least = max(rhs[i], 0.0)
    for k in range(n):
        y[k] += least
    return least


@inner
def _mixtures(G, own, n_own, choices, n_choices, others, n, tie, want, points, worth, full, B):
    """How the other player may mix over `others` so that `own` is optimal among `choices`. Returns NO, YES or MAYBE.

    points[0] is best for the player, [1] worst, [2] the one whose least probability is largest; worth and full (positive throughout)
    go with them. want: 1 fills [0] only, -1 [1] only, and [2] replaces it where it is not full; 2 fills [0], and [2] where [0] is not full;
    0 fills all three.
    """
    E, rhs, T, b, basic, nonbasic, barred, pivot_column = B
    rank, answer = _eliminate(G, own, n_own, others, n, tie, E, rhs, pivot_column)
    if answer != YES:
        return answer
    if rank == n:
        for k in range(n):
            y = rhs[pivot_column[k]]
            enough = _enough(y)
            if enough == NO:
                return NO
            answer = max(answer, enough)
            points[0, k] = points[1, k] = points[2, k] = y
        good, w = _judge(G, own, n_own, choices, n_choices, others, n, points[0], tie)
        worth[0] = worth[1] = worth[2] = w
        full[0] = full[1] = full[2] = True
        return NO if good == NO else max(answer, good)

    # the free mixtures as a dictionary: rows are the basic y', then a slack per deviation, then three objectives: z, worth, -worth
    free = 0
    for k in range(n):
        if pivot_column[k] < 0:
            nonbasic[free] = k
            free += 1
        else:
            basic[pivot_column[k]] = k
    nonbasic[free] = n
    for i in range(rank):
        total = 1.0
        for f in range(free):
            T[i, f] = E[i, nonbasic[f]]
            total += T[i, f]
        T[i, free] = total
        b[i] = rhs[i]
    m = rank
    for e in range(n_choices):
        c = choices[e]
        inside = False
        for s in range(n_own):
            inside = inside or own[s] == c
        if inside:
            continue
        b[m] = 0.0
        for f in range(free):
            T[m, f] = G[c, others[nonbasic[f]]] - G[own[0], others[nonbasic[f]]]
        for i in range(rank):
            d = G[c, others[basic[i]]] - G[own[0], others[basic[i]]]
            b[m] -= d * rhs[i]
            for f in range(free):
                T[m, f] -= d * T[i, f]
        total = 0.0
        for f in range(free):
            total += T[m, f]
        T[m, free] = total
        basic[m] = n + 1 + m
        m += 1
    rows = m + 3
    for o in range(3):
        b[m + o] = 0.0
        basic[m + o] = n + 1 + m + o  # never looked at: objectives do not leave
    for f in range(free):
        T[m, f] = 0.0
        T[m + 1, f] = -G[own[0], others[nonbasic[f]]]
        for i in range(rank):
            T[m + 1, f] += G[own[0], others[basic[i]]] * T[i, f]
    T[m, free] = -1.0
    total = 0.0
    for f in range(free):
        total += T[m + 1, f]
    T[m + 1, free] = total
    for f in range(free + 1):
        T[m + 2, f] = -T[m + 1, f]
    width = free + 1
    answer = _make_feasible(T, b, m, rows, width, basic, nonbasic)
    if answer != YES:
        return answer
    for which in range(3):  # the wanted ends, then the centre if it is needed
        if (which == 0 and want < 0) or (which == 1 and want > 0):
            continue
        if which == 2 and want != 0 and full[0 if want > 0 else 1]:
            break
        for k in range(n + 1 + rows):
            barred[k] = False
        one, two = (m + 1 + which, m) if which < 2 else (m, m + 1)
        if not _maximise(T, b, m, rows, width, basic, nonbasic, barred, one):
            return MAYBE
        _bar(T, width, nonbasic, barred, one)
        if not _maximise(T, b, m, rows, width, basic, nonbasic, barred, two):
            return MAYBE
        enough = _enough(_read(b, basic, m, n, points[which]))
        if enough == MAYBE or (which == 2 and enough == NO):
            return enough
        full[which] = enough == YES
        good, worth[which] = _judge(G, own, n_own, choices, n_choices, others, n, points[which], tie)
        if good != YES:
            return MAYBE
        if which == 2 and abs(want) == 1:
            at = 0 if want > 0 else 1
            worth[at] = worth[2]
            for k in range(n):
                points[at, k] = points[2, k]
    return YES


@inner
def _take(target, n, points, worth, full, y):
    """The mixture with the utility `target` from the points of a side, the centre where that end is open; returns its utility."""
    end = 0 if target >= worth[2] or abs(worth[0] - target) <= TIE else 1
    at_end = abs(worth[end] - target) <= TIE
    if at_end and full[end]:
        for k in range(n):
            y[k] = points[end, k]
        return worth[end]
    share = 0.0
    if not at_end and worth[end] != worth[2]:
        share = (target - worth[2]) / (worth[end] - worth[2])
    for k in range(n):
        y[k] = share * points[end, k] + (1.0 - share) * points[2, k]
    return share * worth[end] + (1.0 - share) * worth[2]


@inner
def _targets(kind, gain, offset, worth, full, target):
    """See `Preference.targets`; worth and full (2, 3) are those of both sides' points, of egalitarian and fair objectives."""
    bottom = -np.inf
    top = np.inf
    for i in range(2):
        bottom = max(bottom, offset[i] + gain[i] * worth[i, 1])
        top = min(top, offset[i] + gain[i] * worth[i, 0])
    enough = np.inf  # egalitarian: what is reached; fair: where the players meet
    open_end = False
    for i in range(2):
        if offset[i] + gain[i] * worth[i, 0] <= top + TIE:
            enough = min(enough, offset[i] + gain[i] * worth[i, 0 if full[i, 0] else 2])
            open_end = open_end or not full[i, 0]
    if kind == FAIR:
        enough = 0.5 * (bottom + top) if open_end and bottom < top - TIE else top
    for i in range(2):
        own = (enough - offset[i]) / gain[i] if gain[i] > 0.0 else worth[i, 0]
        if kind == EGALITARIAN:
            target[i] = worth[i, 0] if full[i, 0] else max(worth[i, 2], own if gain[i] > 0.0 else worth[i, 2])
        elif bottom > top + TIE:
            target[i] = worth[i, 0] if offset[i] + gain[i] * worth[i, 1] < bottom else worth[i, 1]
        else:
            target[i] = min(max(own, worth[i, 1]), worth[i, 0])


# -- two players ----------------------------------------------------------------------------------------------------


@inner
def _dominated(G, a, rivals, n_rivals, against, n, strictly):
    """Whether some rival is never worse than `a` and somewhere better (strictly: everywhere better)."""
    for e in range(n_rivals):
        c = rivals[e]
        if c == a:
            continue
        worse = False
        higher = 0
        for k in range(n):
            gap = G[c, against[k]] - G[a, against[k]]
            worse = worse or gap < 0.0
            higher += gap > 0.0
        if not worse and higher >= (n if strictly else 1):
            return True
    return False


@inner
def _listed(mask, count, out):
    n = 0
    for k in range(count):
        if (mask >> np.uint64(k)) & np.uint64(1):
            out[n] = k
            n += 1
    return n


@inner
def _support_pairs(
    G1,
    G2,
    n1,
    n2,
    columns,
    p,
    deepest,
    kind,
    scaled,
    gain,
    offset,
    tie,
    limit,
    found,
    best_objective,
    best_v,
    best_x,
    best_y,
    W,
):
    """Look at every pair of supports: up to `deepest` rows, which are player p's actions, and columns, the other's.

    Returns (whether an equilibrium is held, whether all was decided: YES, MAYBE, or NO: too many).
    """
    (
        rows,
        common,
        upcoming,
        rivals,
        all_columns,
        open_columns,
        others,
        lower,
        upper,
        target,
        v,
        P1,
        P2,
        worth,
        full,
        y,
        x,
        B,
    ) = W
    q = 1 - p
    want1 = want2 = 1
    if kind == FAIR:
        want1 = want2 = 0
    elif kind == EGALITARIAN:
        want1 = want2 = 2
    elif kind == LINEAR:
        want1 = 1 if scaled[p] >= 0.0 else -1
        want2 = 1 if scaled[q] >= 0.0 else -1
    sure = YES
    for unequal in range(
        2
    ):  # in general only supports of equal size hold equilibria, and a good one found early saves work
        looked = 0
        depth = 0
        upcoming[0] = 0
        while depth >= 0:
            a = upcoming[depth]
            if a >= n1:
                depth -= 1
                continue
            upcoming[depth] = a + 1
            mask = columns[a] if depth == 0 else columns[a] & common[depth - 1]
            if mask == np.uint64(0):
                continue
            rows[depth] = a
            n_rows = depth + 1
            n_common = _listed(mask, n2, all_columns)
            n_rivals = 0
            for c in range(n1):
                if columns[c] & mask == mask:
                    rivals[n_rivals] = c
                    n_rivals += 1
            hopeless = False
            for e in range(n_rows):
                hopeless = hopeless or _dominated(G1, rows[e], rivals, n_rivals, all_columns, n_common, True)
            if hopeless:
                continue
            common[depth] = mask
            if depth + 1 < min(n1, deepest):
                depth += 1
                upcoming[depth] = a + 1
            n_open = 0
            for e in range(n_common):
                if not _dominated(G2, all_columns[e], all_columns, n_common, rows, n_rows, False):
                    open_columns[n_open] = all_columns[e]
                    n_open += 1
            subset = np.uint64(0)
            full_set = (np.uint64(1) << np.uint64(n_open)) - np.uint64(1)
            while subset < full_set:
                subset += np.uint64(1)
                looked += 1
                if looked > limit:
                    return found, NO
                n = 0
                chosen = np.uint64(0)
                for e in range(n_open):
                    if (subset >> np.uint64(e)) & np.uint64(1):
                        others[n] = open_columns[e]
                        chosen |= np.uint64(1) << np.uint64(open_columns[e])
                        n += 1
                if (n == n_rows) == (unequal == 1) or n + n_rows == 2:
                    continue
                n_rivals = 0
                for c in range(n1):
                    if columns[c] & chosen == chosen:
                        rivals[n_rivals] = c
                        n_rivals += 1
                pruned = False
                for e in range(n_rows):
                    pruned = pruned or _dominated(G1, rows[e], rivals, n_rivals, others, n, False)
                if pruned:
                    continue
                for i in range(2):
                    lower[i] = -np.inf
                    upper[i] = np.inf
                for e in range(n_rows):
                    low, high = np.inf, -np.inf
                    for k in range(n):
                        low, high = min(low, G1[rows[e], others[k]]), max(high, G1[rows[e], others[k]])
                    lower[p], upper[p] = max(lower[p], low), min(upper[p], high)
                for k in range(n):
                    low, high = np.inf, -np.inf
                    for e in range(n_rows):
                        low, high = min(low, G2[others[k], rows[e]]), max(high, G2[others[k], rows[e]])
                    lower[q], upper[q] = max(lower[q], low), min(upper[q], high)
                if lower[0] > upper[0] + tie[0] or lower[1] > upper[1] + tie[1]:
                    continue
                if found and not _better(
                    kind, _best_case(kind, scaled, gain, offset, lower, upper, 2), upper, best_objective, best_v, 2
                ):
                    continue
                answer = YES
                for side in range(2):  # the one with more conditions than unknowns first
                    if (side == 0) == (n_rows >= n):
                        part = _mixtures(
                            G1, rows, n_rows, rivals, n_rivals, others, n, tie[p], want1, P1, worth[p], full[p], B,
                        )  # fmt: skip
                    else:
                        part = _mixtures(
                            G2, others, n, all_columns, n_common, rows, n_rows, tie[q], want2, P2, worth[q], full[q], B,
                        )  # fmt: skip
                    if part == NO:
                        answer = NO
                        break
                    answer = max(answer, part)
                if answer == NO:
                    continue
                if answer == MAYBE:
                    sure = MAYBE
                    continue
                if kind in (FAIR, EGALITARIAN):
                    _targets(kind, gain, offset, worth, full, target)
                    v[p] = _take(target[p], n, P1, worth[p], full[p], y)
                    v[q] = _take(target[q], n_rows, P2, worth[q], full[q], x)
                else:
                    at1, at2 = (0 if want1 > 0 else 1), (0 if want2 > 0 else 1)
                    v[p], v[q] = worth[p, at1], worth[q, at2]
                    for k in range(n):
                        y[k] = P1[at1, k]
                    for e in range(n_rows):
                        x[e] = P2[at2, e]
                objective = _best_case(kind, scaled, gain, offset, v, v, 2)
                if not found or _better(kind, objective, v, best_objective, best_v, 2):
                    found = True
                    best_objective = objective
                    for i in range(2):
                        best_v[i] = v[i]
                    for c in range(n1):
                        best_x[c] = 0.0
                    for k in range(n2):
                        best_y[k] = 0.0
                    for e in range(n_rows):
                        best_x[rows[e]] = x[e]
                    for k in range(n):
                        best_y[others[k]] = y[k]
                    if kind == ANY:
                        return True, YES
    return found, sure


@inner
def _minimax(G1, n1, n2, x, y, T, rhs, basic, nonbasic, barred):
    """Constant sum: maximise sum(q), q (1 + u_1 - min u_1) <= 1, q >= 0; then y = q / sum(q), and x are the prices."""
    least = 0.0
    for a in range(n1):
        for k in range(n2):
            least = min(least, G1[a, k])
    for a in range(n1):
        for k in range(n2):
            T[a, k] = 1.0 - least + G1[a, k]
        rhs[a] = 1.0
        basic[a] = n2 + a
    for k in range(n2):
        T[n1, k] = -1.0
        nonbasic[k] = k
    rhs[n1] = 0.0
    basic[n1] = n1 + n2
    for k in range(n1 + n2 + 1):
        barred[k] = False
    if not _maximise(T, rhs, n1, n1 + 1, n2, basic, nonbasic, barred, n1):
        return False
    for a in range(n1):
        x[a] = 0.0
    for k in range(n2):
        y[k] = 0.0
    for a in range(n1):
        if basic[a] < n2:
            y[basic[a]] = rhs[a] / rhs[n1]
    for k in range(n2):
        if nonbasic[k] >= n2:
            x[nonbasic[k] - n2] = T[n1, k] / rhs[n1]
    return True


@inner
def _normalise(p, n):
    total = 0.0
    for k in range(n):
        p[k] = p[k] if p[k] > SUPPORT else 0.0
        total += p[k]
    for k in range(n):
        p[k] /= total
    return total > 0.5


@inner
def _certified(u, cell, n1, n2, x, y, top, value):
    """Whether the support is feasible and no feasible deviation gains, by the stage's own numbers; fills utilities and gross ones."""
    value[:] = 0.0
    for a in range(n1):
        for k in range(n2):
            if x[a] > 0.0 and y[k] > 0.0:
                if cell[a, k] < 0:
                    return False
                for i in range(4):
                    value[i] += x[a] * y[k] * u[cell[a, k], i]
    for i in range(2):
        for c in range(n1 if i == 0 else n2):
            gain = -value[i]
            feasible = True
            for k in range(n2 if i == 0 else n1):
                p = y[k] if i == 0 else x[k]
                if p > 0.0:
                    j = cell[c, k] if i == 0 else cell[k, c]
                    if j < 0:
                        feasible = False
                        break
                    gain += p * u[j, i]
            if feasible and gain > STABLE * (top[i] - value[i]) + NOISE * value[2 + i]:
                return False
    return True


@inner
def _two_players(
    u, v, R, act, row, kind, top, low, unit, tie, scaled, gain, offset, limit, pure, best_objective, best_v, M, W
):
    """An equilibrium of a stage of two players, given its best pure one (or -1); M holds mixtures x, y, actions' names, values."""
    cell, G1, G2, columns, name, place, x, y, value, sizes, counts = M
    B = W[17]
    n1 = n2 = 0
    for i in range(2):
        for c in range(counts[i]):
            place[i, c] = -1
    for j in range(R):
        for i in range(2):
            place[i, act[row[j], i]] = 0
    for i in range(2):
        n = 0
        for c in range(counts[i]):
            if place[i, c] == 0:
                place[i, c] = n
                name[i, n] = c
                n += 1
        sizes[i] = n
    n1, n2 = sizes[0], sizes[1]
    for a in range(n1):
        for k in range(n2):
            cell[a, k] = -1
    p = 0 if n1 >= n2 else 1  # whose actions are the rows of the search
    for a in range(sizes[p]):
        columns[a] = np.uint64(0)
    per1 = 1.0 / (top[0] - low[0]) if unit[0] > 0.0 else 0.0
    per2 = 1.0 / (top[1] - low[1]) if unit[1] > 0.0 else 0.0
    least = np.inf
    most = -np.inf
    noise = 0.0
    for j in range(R):
        a, k = place[0, act[row[j], 0]], place[1, act[row[j], 1]]
        cell[a, k] = j
        G1[a, k] = v[j, 0]
        G2[k, a] = v[j, 1]
        if sizes[1 - p] < 63:
            columns[a if p == 0 else k] |= np.uint64(1) << np.uint64(k if p == 0 else a)
        total = (u[j, 0] - top[0]) * per1 + (u[j, 1] - low[1]) * per2
        least = min(least, total)
        most = max(most, total)
        noise = max(noise, NOISE * (u[j, 2] * per1 + u[j, 3] * per2))
    if n1 * n2 == R and most - least <= noise:
        if pure >= 0:
            return PURE
        if not _minimax(G1, n1, n2, x, y, B[2], B[3], B[4], B[5], B[6]):
            return UNSURE
        good = _normalise(x, n1) and _normalise(y, n2)
        return MIXED if good and _certified(u, cell, n1, n2, x, y, top, value) else UNSURE
    if sizes[1 - p] >= 63:
        return TOO_MANY
    deepest = n1 * n2
    if n1 * n2 == R:  # see `nash_exact`
        deepest = sizes[1 - p] + (kind == FAIR)
        limit = min(limit, FIRST_PAIRS) if kind == ANY else limit
    x[0] = -1.0  # stays where the pure one is not beaten
    own, other, best_own, best_other = (G1, G2, x, y) if p == 0 else (G2, G1, y, x)
    found, sure = _support_pairs(
        own, other, sizes[p], sizes[1 - p], columns, p, deepest, kind, scaled, gain, offset, tie, limit, pure >= 0,
        best_objective, best_v, best_own, best_other, W,
    )  # fmt: skip
    if sure == NO:
        return TOO_MANY
    if not found:
        return NOTHING
    if x[0] < 0.0:
        return PURE if sure == YES else UNSURE
    good = _normalise(x, n1) and _normalise(y, n2)
    return MIXED if good and sure == YES and _certified(u, cell, n1, n2, x, y, top, value) else UNSURE


@inner
def _one_stage(u, R, N, act, row, deviation, first_action, position, kind, terms, limit, P, M, W):
    """What becomes of a stage of several players and joint actions; and its best pure equilibrium, which is the answer if that is PURE."""
    v, order, top, low, unit, core, tie, scaled, gain, offset, best_v, lower, upper, sigma, searched, values = P
    searched[0] = 0
    if not measure(u, R, N, top, low, unit):
        return PURE, np.int64(0)
    leave_outliers_out(u, R, N, top, unit, values, sigma)
    goal = goal_range(u, R, N, kind, terms, top, unit, values, sigma)
    for i in range(N):
        core[i] = unit[i]
    status = UNSURE
    best = np.int64(-1)
    for _ in range(ATTEMPTS):
        _scale(u, R, N, top, unit, v, tie, order)
        _prepare(kind, terms, top, unit, goal, N, scaled, gain, offset)
        best, objective = _best_pure(
            kind, v, R, N, row, deviation, first_action, position, scaled, gain, offset, best_v
        )
        status = PURE if best >= 0 else NOTHING
        if N == 2 and (
            best < 0 or not _cannot_be_beaten(kind, v, R, N, scaled, gain, offset, objective, best_v, lower, upper)
        ):
            searched[0] = 1
            status = _two_players(
                u, v, R, act, row, kind, top, low, unit, tie, scaled, gain, offset, limit, best, objective, best_v, M, W,
            )  # fmt: skip
        if status > MIXED:
            return status, best
        for j in range(R):
            sigma[j] = j == best
            if status == MIXED:
                sigma[j] = M[6][M[5][0, act[row[j], 0]]] * M[7][M[5][1, act[row[j], 1]]]
        closer = finer_goal(u, R, N, kind, terms, top, unit, sigma, goal) if kind != ANY else goal
        if not finer(u, R, N, sigma, top, core, unit) and closer == goal:
            stable = status == MIXED or _pure_is_stable(best, u, N, row, deviation, first_action, position)
            return (status if stable else UNSURE), best
        goal = closer
    return UNSURE, best


@inner
def _pure_is_stable(a, u, N, row, deviation, first_action, position):
    """Whether no player gains by a feasible move, by the stage's own numbers."""
    for i in range(N):
        for target in range(first_action[i], first_action[i + 1]):
            to = deviation[row[a], target]
            if 0 <= to < len(position) and position[to] >= 0:
                gain = u[position[to], i] - u[a, i]
                if gain > NOISE * max(u[a, N + i], u[position[to], N + i]):
                    return False
    return True


@kernel
def solve_nash(written, choices, kind, terms, limit, value, pure, mixed_ptr, mixed_action, mixed_prob, status):
    """A Nash equilibrium of each written stage.

    Fills value (G, 2N), status (G,), the pure joint action (G,), counted within the stage, or -1, and where play is mixed the entries
    mixed_ptr[g] : mixed_ptr[g+1]: first_action[i] + the action of player i, and its probability. Returns the number of stages that
    took a search.
    """
    _, ptr, first, row, utility = written
    act, deviation, first_action = choices
    N = act.shape[1]
    widest = 1
    for g in range(len(ptr) - 1):
        widest = max(widest, ptr[g + 1] - ptr[g])
    counts = first_action[1:] - first_action[:-1]
    big = np.int64(1)
    for i in range(N):
        big = max(big, counts[i])
    span = np.int64(1)
    for g in range(len(ptr) - 1):
        for r in range(ptr[g], ptr[g + 1]):
            span = max(span, row[r] - first[g] + 1)
    position = np.full(span, -1, np.int64)
    P = (
        np.empty((widest, N)),
        np.empty(widest, np.int64),
        np.empty(N),
        np.empty(N),
        np.empty(N),
        np.empty(N),
        np.empty(N),
        np.empty(N),
        np.empty(N),
        np.empty(N),
        np.empty(N),
        np.empty(N),
        np.empty(N),
        np.empty(widest),
        np.zeros(1, np.int64),
        np.empty(widest),
    )
    side = big if N == 2 else np.int64(1)
    tall = 2 * side + 5
    B = (
        np.empty((side + 1, side)),
        np.empty(side + 1),
        np.empty((tall, side + 2)),
        np.empty(tall),
        np.empty(tall, np.int64),
        np.empty(side + 2, np.int64),
        np.empty(4 * side + 16, np.bool_),
        np.empty(side, np.int64),
    )
    W = (
        np.empty(side, np.int64),
        np.empty(side, np.uint64),
        np.empty(side + 1, np.int64),
        np.empty(side, np.int64),
        np.empty(side, np.int64),
        np.empty(side, np.int64),
        np.empty(side, np.int64),
        np.empty(2),
        np.empty(2),
        np.empty(2),
        np.empty(2),
        np.empty((3, side)),
        np.empty((3, side)),
        np.empty((2, 3)),
        np.empty((2, 3), np.bool_),
        np.empty(side),
        np.empty(side),
        B,
    )
    M = (
        np.empty((side, side), np.int64),
        np.empty((side, side)),
        np.empty((side, side)),
        np.empty(side, np.uint64),
        np.empty((2, side), np.int64),
        np.empty((2, side), np.int64),
        np.empty(side),
        np.empty(side),
        np.empty(4),
        np.empty(2, np.int64),
        counts,
    )
    searched = np.int64(0)
    entries = np.int64(0)
    mixed_ptr[0] = 0
    for g in range(len(ptr) - 1):
        begin, end = ptr[g], ptr[g + 1]
        R = end - begin
        u, rows = utility[begin:end], row[begin:end]
        status[g] = PURE
        pure[g] = 0
        if N == 1:
            for j in range(1, R):
                if u[j, 0] > u[pure[g], 0]:
                    pure[g] = j
        elif R > 1:
            for j in range(R):
                position[rows[j] - first[g]] = j
            status[g], pure[g] = _one_stage(
                u, R, N, act, rows, deviation, first_action, position, kind, terms, limit, P, M, W
            )
            searched += P[14][0]
            for j in range(R):
                position[rows[j] - first[g]] = -1
        if status[g] == PURE:
            for i in range(value.shape[1]):
                value[g, i] = u[pure[g], i]
        elif status[g] == MIXED:
            pure[g] = -1
            for i in range(4):
                value[g, i] = M[8][i]
            for i in range(2):
                for c in range(M[9][i]):
                    p = M[6][c] if i == 0 else M[7][c]
                    if p > 0.0:
                        mixed_action[entries] = first_action[i] + M[4][i, c]
                        mixed_prob[entries] = p
                        entries += 1
        mixed_ptr[g + 1] = entries
    return searched
