"""What the utilities of a stage game are counted in; `acegames.stage.units` has the reasons.

u (R, 2N) holds the utilities of the feasible joint actions, then the absolute totals: the same sums
of rewards without their signs. Rounding is a share of these, NOISE. Utilities are counted from the
player's best, in units: v = (u - top) / unit. A unit is the range that matters: that of the
utilities without outliers far below, and if the answer shows a player closer to its best, a
multiple of that distance.
"""

from __future__ import annotations

import numpy as np

from acegames.kernels.intrinsics import noinline
from acegames.kernels.records import EGALITARIAN, FAIR
from acegames.numerics import COARSE, NOISE, OUTLIER
from acegames.system.compiled import inner


@inner
def measure(u, R, N, top, low, unit):
    """Fill each player's best, worst and range. Returns whether anything matters to anyone."""
    matters = False
    for i in range(N):
        most = u[0, i]
        least = u[0, i]
        abs_total = u[0, N + i]
        for j in range(1, R):
            most = max(most, u[j, i])
            least = min(least, u[j, i])
            abs_total = max(abs_total, u[j, N + i])
        top[i] = most
        low[i] = least
        unit[i] = most - least if most - least > NOISE * abs_total else 0.0
        matters |= unit[i] > 0.0
    return matters


@inner
def merge_equal(v, blur, values, order):
    """Set values that follow each other within their rounding `blur` to the lowest of them.

    v, blur, values, order (R,); the last two are scratch.
    """
    noinline()
    largest = 0.0
    nearly = False  # rarely: look for two that are close but not equal before sorting
    for j in range(len(v)):
        largest = max(largest, blur[j])
        values[j] = v[j]
    for j in range(len(v)):
        for k in range(j):
            gap = abs(values[k] - values[j])
            nearly |= (gap <= largest) & (gap > 0.0)
    if not nearly:
        return
    for j in range(len(v)):
        k = j
        while k > 0 and values[order[k - 1]] > values[j]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = j
    lowest = values[order[0]]
    for k in range(1, len(v)):
        before, here = order[k - 1], order[k]
        if values[here] - values[before] > max(blur[before], blur[here]):
            lowest = values[here]
        v[here] = lowest


@inner
def core_range(values, R, noise, shortfall):
    """Return the range of values (R,) without outliers, OUTLIER times below a quarter of them."""
    noinline()
    top = values[0]
    low = values[0]
    for j in range(1, R):
        top = max(top, values[j])
        low = min(low, values[j])
    span = top - low
    if span <= noise:
        return 0.0
    near = 0
    for j in range(R):
        near += (top - values[j]) * OUTLIER < span
    quarter = max(R // 4, 1)
    if near <= quarter:
        return span
    for j in range(R):
        here = top - values[j]
        k = j
        while k > 0 and shortfall[k - 1] > here:
            shortfall[k] = shortfall[k - 1]
            k -= 1
        shortfall[k] = here
    while shortfall[quarter] <= noise and quarter < R - 1:
        quarter += 1
    last = R - 1
    while shortfall[last] > OUTLIER * shortfall[quarter]:
        last -= 1
    return shortfall[last]


@inner
def leave_outliers_out(u, R, N, top, unit, values, shortfall):
    """Bring units from the range to that of utilities without outliers."""
    for i in range(N):
        if unit[i] > 0.0:
            noise = 0.0  # of the best
            for j in range(R):
                values[j] = u[j, i]
                if u[j, i] == top[i]:
                    noise = max(noise, NOISE * u[j, N + i])
            unit[i] = core_range(values, R, noise, shortfall)


@inner
def goal_range(u, R, N, kind, terms, top, unit, values, shortfall):
    """Return the unit of the objective: its range over joint actions that are no outliers."""
    noinline()
    comparing = kind in (EGALITARIAN, FAIR)
    largest = 0.0
    noise = 0.0  # of what is no outlier, with a margin
    for i in range(N):
        weight = 1.0 if comparing else abs(terms[i])
        largest = max(largest, unit[i] * weight)
        noise += OUTLIER * NOISE * weight * abs(top[i] + (terms[i] if comparing else 0.0))
    for j in range(R):  # the absolute total of joint actions, in order
        here = 0.0
        for i in range(N):
            here += u[j, N + i] * (1.0 if comparing else abs(terms[i]))
        k = j
        while k > 0 and shortfall[k - 1] > here:
            shortfall[k] = shortfall[k - 1]
            k -= 1
        shortfall[k] = here
    noise += OUTLIER * NOISE * shortfall[min(max(R // 4, 1), R - 1)]
    count = 0
    for usual in (True, False):  # joint actions that are no outlier for anyone, if there are any
        for j in range(R):
            least = np.inf
            most = -np.inf
            total = 0.0
            deep = False
            for i in range(N):
                least = min(least, u[j, i] + terms[i])
                most = max(most, u[j, i] + terms[i])
                total += terms[i] * (u[j, i] - top[i]) if unit[i] > 0.0 else 0.0
                deep = deep or (unit[i] > 0.0 and top[i] - u[j, i] > OUTLIER * unit[i])
            if not (usual and deep):
                values[count] = least - most if kind == FAIR else least if kind == EGALITARIAN else total
                count += 1
        if count > 1:
            break
        count = 0
    core = core_range(values, count, noise, shortfall)
    return min(core, largest) if core > 0.0 else largest


@inner
def finer(u, R, N, sigma, top, core, unit):
    """Fit units to what the answer leaves to gain. Returns whether one was far from it.

    An answer that leaves a player M below its best is judged in units of M. `core` are the units
    without outliers.
    """
    noinline()
    changed = False
    for i in range(N):
        if unit[i] == 0.0:
            continue
        missing = 0.0
        abs_total = 0.0
        for j in range(R):
            if sigma[j] > 0.0:
                missing += sigma[j] * (top[i] - u[j, i])
                abs_total += sigma[j] * u[j, N + i]
        least = missing if missing > NOISE * abs_total else max(missing, core[i])
        if least * COARSE < unit[i]:
            unit[i] = 8.0 * least
            changed = True
    return changed


@inner
def finer_goal(u, R, N, kind, terms, top, unit, sigma, goal):
    """Return a finer unit of the objective, where the answer leaves far less to gain than
    `goal`.
    """
    noinline()
    comparing = kind in (EGALITARIAN, FAIR)
    abs_total = 0.0
    best = -np.inf  # of the objective, at most
    here = 0.0
    least = np.inf
    most = -np.inf
    bound = np.inf
    for i in range(N):
        mean = terms[i] if comparing else 0.0
        for j in range(R):
            if sigma[j] > 0.0:
                mean += sigma[j] * u[j, i]
                abs_total += sigma[j] * u[j, N + i] * (1.0 if comparing else abs(terms[i]))
        least = min(least, mean)
        most = max(most, mean)
        bound = min(bound, top[i] + terms[i])
    for j in range(R):
        worth = 0.0
        for i in range(N):
            worth += terms[i] * (u[j, i] - top[i]) if unit[i] > 0.0 else 0.0
        best = max(best, worth)
        here += sigma[j] * worth if sigma[j] > 0.0 else 0.0
    missing = most - least if kind == FAIR else bound - least if kind == EGALITARIAN else best - here
    if missing > OUTLIER * NOISE * abs_total and missing * COARSE < goal:
        return 8.0 * missing
    return goal
