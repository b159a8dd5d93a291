"""The sets of equilibrium payoffs of one time's situations, from those of the next (spec 12).

For each listed cell: write out its program (`payoff_program`), then ask for the best promise in
direction after direction, and keep what was found: of an *inner* set the points, which machines
attain; of an *outer* one the corners of the half-spaces, which no equilibrium leaves.

With two players directions come by refinement. Two neighbouring directions have a point and a line
each; the lines meet in a corner. Where the corner lies more than `tol` beyond the edge between the
points, the direction square to the edge is asked as well. With three and more players directions
are given.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from acegames.kernels.boxes import box_totals
from acegames.kernels.intrinsics import noinline
from acegames.kernels.payoff_program import (
    PayoffSets,
    allocate_program,
    begin_program,
    climb,
    read_solution,
)
from acegames.kernels.records import Boxes, Bytes, Choices, Floats, Ints, Listed, NextLayer, Transitions
from acegames.kernels.scaling import core_range
from acegames.kernels.sparse import allocate_places, next_places
from acegames.numerics import NOISE, PROMISE_BLUR, PROMISE_CLOSE, PROMISE_INDIFFERENT, PROMISE_SAME
from acegames.system.compiled import allocates, inner, kernel


class SetRules(NamedTuple):
    """Which sets are wanted."""

    interim: bool  # CE; else CCE
    floor: float
    tol: float
    outer: bool
    # directions to ask in, first of all: of two players the four axes, counterclockwise
    directions: Annotated[Floats, "directions N"]
    # of three or more players: directions whose half-spaces meet in one point each, and the inverse
    # of their matrix
    corners: Annotated[Ints, "corners N"]
    inverses: Annotated[Floats, "corners N N"]
    most: int  # directions that are asked in one situation


class SetLayer(NamedTuple):
    """What the situations of one time are made of."""

    keys: Ints
    here: Boxes
    step: Transitions
    reward: Annotated[Floats, "R N"]
    choices: Choices
    after: NextLayer
    listed: Listed
    sets: PayoffSets  # of the next time


class DirectionSearch(NamedTuple):
    """What was found in one situation, direction by direction, counterclockwise; and room."""

    direction: Floats  # (V, N)
    height: Floats  # (V,)
    point: Floats  # (V, N)
    needed: Bytes  # (V,) whether the point, or the half-space, is kept
    corner: Floats  # (V, N) the kept points
    origin: Ints  # (V,) and the direction that each comes from
    cut: Floats  # (V, N) room, with `over`, for cutting a polygon
    over: Floats  # (V,)
    # the solutions, where wanted
    size: Ints  # (V,)
    row: Ints  # (V, m)
    chance: Floats  # (V, m)
    choice: Ints  # (V, m, outcomes)
    dual: Floats  # (V, K) of an outer set, where wanted: what each incentive row counts


class SetOutput(NamedTuple):
    """What is written of some cells: points, half-spaces or machines; the arrays of others are
    empty.
    """

    lacking: Bytes  # (cells,) 1 where no point was found
    ptr: Ints  # (cells+1,) the points or half-spaces of each cell; or (promises+1,) the entries of each promise
    point: Annotated[Floats, "K N"]
    # half-spaces, which no equilibrium leaves
    direction: Annotated[Floats, "L N"]  # in units of reward
    dual: Annotated[Floats, "L rows"]  # what each incentive row counts, 0 or more
    # machines: what is recommended for promises
    wanted: Bytes  # of each point of this time's sets
    own: Ints  # where the points of each cell begin
    row: Ints  # (E,) in the tables
    chance: Floats  # (E,)
    to: Annotated[Ints, "E outcomes"]  # the point of the next sets that is promised after each outcome
    punished: Annotated[Bytes, "cells N"]  # of the next time: whether a deviation of the player can end there


@allocates
def _allocate_search(rules, players, places, outcomes, out):
    V, N = rules.most, players
    S, D = V if len(out.wanted) else 0, V if len(out.direction) else 0
    return DirectionSearch(
        np.empty((V, N)), np.empty(V), np.empty((V, N)), np.empty(V, np.uint8), np.empty((max(2 * V, len(rules.corners)), N)),
        np.empty(max(2 * V, len(rules.corners)), np.int64), np.empty((2 * V, N)), np.empty(2 * V),
        np.empty(S, np.int64), np.empty((S, places), np.int64), np.empty((S, places)), np.empty((S, places, outcomes), np.int64),
        np.empty((D, places)),
    )  # fmt: skip


@inner
def _write_program(p, a, layer, rules, c, places, work):
    """Write the program of listed cell p, in box a; return its joint actions and incentive rows."""
    noinline()
    step, sets, unit, low = layer.step, layer.sets, work.unit, work.low
    N = layer.reward.shape[1]
    s = layer.here.states[a]
    first = step.row_ptr[s]
    box_totals(c, len(c), layer.keys[p] - layer.here.base[a], layer.here, a)
    R = count = 0
    for r in range(first, step.row_ptr[s + 1]):
        work.place[r - first] = -1
        if not next_places(r, c, step, layer.after, layer.listed, places):
            continue
        work.place[r - first], work.row[R] = R, r
        for o in range(step.out_ptr[r], step.out_ptr[r + 1]):
            work.next_cell[count], work.chance[count] = places[o - step.out_ptr[r]], step.prob[o]
            count += 1
        R += 1
        work.out_ptr[R] = count
    for r in range(R):
        work.scale[r] = 1.0
    for i in range(N):
        least, most, nearest, size = np.inf, -np.inf, -np.inf, 0.0
        for r in range(R):
            worst = best = layer.reward[work.row[r], i]
            abs_total = abs(worst)
            for o in range(work.out_ptr[r], work.out_ptr[r + 1]):
                cell, high = work.next_cell[o], -np.inf
                for v in range(sets.ptr[cell], sets.ptr[cell + 1]):
                    high = max(high, sets.point[v, i])
                worst += work.chance[o] * sets.least[cell, i]
                best += work.chance[o] * high
                abs_total += work.chance[o] * max(abs(high), abs(sets.least[cell, i]))
            work.worst[r, i] = work.values[r] = worst
            least, most, nearest, size = min(least, worst), max(most, best), max(nearest, worst), max(size, abs_total)
        noise = 4.0 * NOISE * size
        core = core_range(work.values, R, max(noise, PROMISE_BLUR * (most - least)), work.shortfall)
        span = most - nearest + core
        low[i], unit[i] = nearest - core, 1.0 / span if most - least > noise else 0.0
        work.push[i] = noise * unit[i]  # what rounding may have changed
        work.trial[i] = ((1.0 + rules.floor) * least - rules.floor * most - low[i]) * unit[i]  # of what is not feasible
        for r in range(R):
            work.base[r, i] = (layer.reward[work.row[r], i] - low[i]) * unit[i]
            work.worst[r, i] = (work.worst[r, i] - low[i]) * unit[i]
            work.scale[r] = max(work.scale[r], -work.worst[r, i])
    return R, _write_incentives(R, first, layer, rules, work)


@inner
def _write_incentives(R, first, layer, rules, work):
    """Write the incentive rows; return their number."""
    noinline()
    choices, K, first_number = layer.choices, 0, 0
    for i in range(layer.reward.shape[1]):
        begin, end = choices.first_action[i], choices.first_action[i + 1]
        first_number += (end - begin) * (end - begin if rules.interim else 1)
        if work.unit[i] == 0.0:  # all promises are worth the same
            continue
        for advised in range(end - begin if rules.interim else 1):
            for b in range(end - begin):
                if rules.interim and b == advised:
                    continue
                possible = False
                for r in range(R):
                    own = choices.action[work.row[r], i]
                    counts = own == advised if rules.interim else own != b
                    work.member[K, r], work.deviation[K, r] = np.uint8(counts), 0.0
                    if not counts:
                        continue
                    to = choices.deviation[work.row[r], begin + b]
                    if to >= 0:
                        to = work.place[to]
                    possible = possible or to >= 0
                    work.deviation[K, r] = work.worst[to, i] if to >= 0 else work.trial[i]
                if possible:
                    work.player[K] = i
                    work.number[K] = (
                        first_number - (end - begin) * ((end - begin if rules.interim else 1) - advised) + b
                    )
                    work.slack[K] = PROMISE_INDIFFERENT * (1.0 + 0.01 * K) + work.push[i]
                    K += 1
    return K


@inner
def _ask(at, count, R, K, work, sets, rules, search):
    """Ask in direction number `at`, which is written; return the number of directions."""
    noinline()
    goal = search.direction[at]
    search.height[at] = climb(goal, False, R, K, work, sets)
    read_solution(K, work, search.point[at])
    search.needed[at] = 1
    for k in range(K if len(search.dual) else 0):
        search.dual[at, k] = work.dual[k]
    if len(search.size):
        size = 0
        for p in range(K + 1):
            if work.step[p] > 0.0:
                search.row[at, size], search.chance[at, size] = work.kind[p], work.step[p]
                for o in range(work.out_ptr[work.kind[p] + 1] - work.out_ptr[work.kind[p]]):
                    search.choice[at, size, o] = work.choice[p, o]
                size += 1
        search.size[at] = size
    return count + 1


@inner
def _insert(at, count, search):
    """Make room for a direction at a place."""
    noinline()
    n = search.direction.shape[1]
    for j in range(count, at, -1):
        search.height[j], search.needed[j] = search.height[j - 1], search.needed[j - 1]
        for i in range(n):
            search.direction[j, i], search.point[j, i] = search.direction[j - 1, i], search.point[j - 1, i]
        for k in range(search.dual.shape[1] if len(search.dual) else 0):
            search.dual[j, k] = search.dual[j - 1, k]
        if len(search.size):
            search.size[j] = search.size[j - 1]
            for e in range(search.size[j]):
                search.row[j, e], search.chance[j, e] = search.row[j - 1, e], search.chance[j - 1, e]
                for o in range(search.choice.shape[2]):
                    search.choice[j, e, o] = search.choice[j - 1, e, o]


@inner
def _meet(j, k, search, corner):
    """Write where the lines of two directions meet; return whether they do."""
    a, b = search.direction[j], search.direction[k]
    cross = a[0] * b[1] - a[1] * b[0]
    if cross <= 0.5 * PROMISE_CLOSE:
        return False
    corner[0] = (search.height[j] * b[1] - search.height[k] * a[1]) / cross
    corner[1] = (search.height[k] * a[0] - search.height[j] * b[0]) / cross
    return True


@inner
def _refine(count, R, K, work, sets, rules, search):
    """Ask between neighbouring directions of two players, around and around, as long as that finds
    something; return how many directions there are then.
    """
    noinline()
    least, before = max(rules.tol, PROMISE_SAME), 0
    while count != before:
        j, before = 0, count
        while j < count and count < rules.most:
            k = (j + 1) % count
            if (
                search.needed[j]
                and search.needed[k]
                and _write_between(j, k, count, least, work.push, work.trial, search)
            ):
                count = _ask(j + 1, count, R, K, work, sets, rules, search)
                k = (j + 2) % count
                if _beyond(search.point[j], search.point[j + 1], search.point[k]) <= least:
                    search.needed[j + 1] = 0
                j += 1
            j += 1
    return count


@inner
def _write_between(j, k, count, least, corner, way, search):
    """Write between two directions the one square to the edge, if it is to be asked."""
    if not _meet(j, k, search, corner) or _beyond(search.point[j], corner, search.point[k]) <= least:
        return False
    way[0], way[1] = search.point[k, 0] - search.point[j, 0], search.point[k, 1] - search.point[j, 1]
    length = (way[0] * way[0] + way[1] * way[1]) ** 0.5
    if length <= PROMISE_CLOSE:
        return False
    x, y = way[0] / length, way[1] / length
    before = -(search.direction[j, 0] * x + search.direction[j, 1] * y)
    after = search.direction[k, 0] * x + search.direction[k, 1] * y
    if before <= PROMISE_CLOSE or after <= PROMISE_CLOSE:  # it must lie strictly between them, rounding or not
        return False
    _insert(j + 1, count, search)
    search.direction[j + 1, 0], search.direction[j + 1, 1] = y, -x
    return True


@inner
def _beyond(a, b, c):
    """Return how far b lies to the right of the way from a to c; 0 where that is no way."""
    x, y = c[0] - a[0], c[1] - a[1]
    length = (x * x + y * y) ** 0.5
    return ((b[0] - a[0]) * y - (b[1] - a[1]) * x) / length if length > PROMISE_SAME else 0.0


@inner
def _thin(count, least, search, scratch):
    """Leave out half-spaces without which corners lie hardly further out, or up to `least`.

    Of the latter no two neighbours, and no axis.
    """
    noinline()
    for j in range(count):
        search.needed[j] = 1
    for turn in range(2):
        before, spared = 0, True
        for j in range(1, count):
            if not search.needed[j]:
                continue
            after = (j + 1) % count
            while not search.needed[after]:
                after = (after + 1) % count
            axis = search.direction[j, 0] == 0.0 or search.direction[j, 1] == 0.0
            drop = False
            if not axis and (turn == 0 or spared) and _meet(before, after, search, scratch):
                over = search.direction[j, 0] * scratch[0] + search.direction[j, 1] * scratch[1] - search.height[j]
                drop = over <= (PROMISE_SAME if turn == 0 else least)
            if drop:
                search.needed[j] = 0
            else:
                before = j
            spared = not drop


@inner
def _cut(corners, j, search):
    """Cut off the corners that lie beyond the line of direction j; return how many are left."""
    noinline()
    a, b, height, corner = search.direction[j, 0], search.direction[j, 1], search.height[j], search.corner
    beyond = 0
    for q in range(corners):
        search.over[q] = a * corner[q, 0] + b * corner[q, 1] - height
        beyond += search.over[q] > PROMISE_SAME
    if beyond == 0 or beyond == corners:  # nothing to cut, or rounding would leave nothing
        return corners
    made = 0
    for q in range(corners):
        k = (q + 1) % corners
        here, there = search.over[q], search.over[k]
        if here <= PROMISE_SAME:
            search.cut[made, 0], search.cut[made, 1] = corner[q, 0], corner[q, 1]
            made += 1
        if (here < 0.0 and there > PROMISE_SAME) or (here > PROMISE_SAME and there < 0.0):
            share = here / (here - there)
            search.cut[made, 0] = corner[q, 0] + share * (corner[k, 0] - corner[q, 0])
            search.cut[made, 1] = corner[q, 1] + share * (corner[k, 1] - corner[q, 1])
            made += 1
    for q in range(made):
        corner[q, 0], corner[q, 1] = search.cut[q, 0], search.cut[q, 1]
    return made


@inner
def _outer_polygon(count, rules, search, scratch):
    """Fill the corners of what all half-planes have in common; return how many there are.

    Half-planes whose line does not touch it are not needed.
    """
    noinline()
    _thin(count, rules.tol, search, scratch)
    corners = 0
    for j in range(count):  # a box first
        if search.direction[j, 0] == 0.0 or search.direction[j, 1] == 0.0:
            k = (j + 1) % count
            while not (search.direction[k, 0] == 0.0 or search.direction[k, 1] == 0.0):
                k = (k + 1) % count
            if _meet(j, k, search, scratch):
                search.corner[corners, 0], search.corner[corners, 1] = scratch[0], scratch[1]
                corners += 1
    for j in range(count):
        if search.needed[j]:
            corners = _cut(corners, j, search)
    for j in range(count):
        over = -np.inf
        for q in range(corners):
            over = max(
                over, search.direction[j, 0] * search.corner[q, 0] + search.direction[j, 1] * search.corner[q, 1]
            )
        if over < search.height[j] - PROMISE_SAME:
            search.needed[j] = 0
    return corners


@inner
def _keep(corners, origin, scratch, search):
    """Keep a point unless it is there already; return how many there are."""
    corner = search.corner
    for j in range(corners):
        apart = 0.0
        for i in range(len(scratch)):
            apart = max(apart, abs(corner[j, i] - scratch[i]))
        if apart <= PROMISE_SAME:
            return corners
    for i in range(len(scratch)):
        corner[corners, i] = scratch[i]
    search.origin[corners] = origin
    return corners + 1


@inner
def _corners(count, rules, search, scratch):
    """Keep the points of an inner set or the corners of an outer one; return their number."""
    noinline()
    n, corners = search.direction.shape[1], 0
    if rules.outer and n > 2:
        for q in range(len(rules.corners)):
            for i in range(n):
                scratch[i] = 0.0
                for j in range(n):
                    scratch[i] += rules.inverses[q, i, j] * search.height[rules.corners[q, j]]
            inside = True
            for v in range(count):
                over = -search.height[v]
                for i in range(n):
                    over += search.direction[v, i] * scratch[i]
                if over > PROMISE_SAME:
                    inside = False
                    break
            if inside:
                corners = _keep(corners, 0, scratch, search)
        return corners
    if rules.outer and n == 2:
        return _outer_polygon(count, rules, search, scratch)
    for j in range(count):
        if not search.needed[j]:
            continue
        for i in range(n):
            scratch[i] = search.height[j] * search.direction[j, 0] if rules.outer else search.point[j, i]
        corners = _keep(corners, j, scratch, search)
    q = 0
    while n == 2 and q < corners and corners > 2:  # points of an edge
        before, after = search.corner[(q + corners - 1) % corners], search.corner[(q + 1) % corners]
        if 0.0 <= _beyond(before, search.corner[q], after) <= PROMISE_SAME:
            corners = _drop(q, corners, search)
        else:
            q += 1
    return corners


@inner
def _drop(q, corners, search):
    """Drop a kept point; return how many are left."""
    for j in range(q, corners - 1):
        search.origin[j] = search.origin[j + 1]
        for i in range(search.corner.shape[1]):
            search.corner[j, i] = search.corner[j + 1, i]
    return corners - 1


@inner
def _solve_cell(p, a, layer, rules, c, places, work, search, none):
    """Find the set of a listed cell.

    Return how many points it has, 0 where none is found, and its numbers of feasible joint actions,
    of incentive rows and of directions asked.
    """
    noinline()
    n, count = layer.reward.shape[1], 0
    R, K = _write_program(p, a, layer, rules, c, places, work)
    if not begin_program(R, K, work, layer.sets, none):
        return 0, R, K, 0
    for j in range(len(rules.directions)):
        for i in range(n):
            search.direction[count, i] = rules.directions[j, i]
        count = _ask(count, count, R, K, work, layer.sets, rules, search)
    if n == 2:
        count = _refine(count, R, K, work, layer.sets, rules, search)
    corners = _corners(count, rules, search, work.trial)
    return corners, R, K, count


@kernel
def find_sets(cells, layer, rules, widest, out):
    """Find the sets of some listed cells, by number and in order; write what is wanted of them.

    The same cells are always found by the same steps, so points, half-spaces and machines belong
    together. Return how many points, half-spaces or entries there are, or -1 where there is no more
    room.
    """
    n, K = layer.reward.shape[1], incentives(layer.choices.first_action, rules.interim)
    c, places = allocate_places(layer.step, widest)
    work = allocate_program(widest[0], widest[1], n, K)
    search, none = _allocate_search(rules, n, K + 1, widest[1], out), np.zeros(n)
    a, count, promise = np.int64(0), 0, 0
    out.ptr[0] = 0
    for at in range(len(cells)):
        p = cells[at]
        while layer.here.base[a + 1] <= layer.keys[p]:
            a += 1
        corners, R, rows, asked = _solve_cell(p, a, layer, rules, c, places, work, search, none)
        out.lacking[at] = corners == 0
        if len(out.wanted):
            for q in range(corners):
                if out.wanted[out.own[p] + q]:
                    count = _write_entries(search.origin[q], count, R, layer, work, search, out)
                    promise += 1
                    out.ptr[promise] = count
        elif len(out.direction):
            count = _write_half_spaces(count, asked, rows, work, search, out)
            out.ptr[at + 1] = count
        else:
            count = _write_points(count, corners, work, search, out)
            out.ptr[at + 1] = count
        if count < 0:
            return -1
    return count


@inner
def _write_points(count, corners, work, search, out):
    """Write the kept points in units of reward; return how many there are in all."""
    if count + corners > len(out.point):
        return -1
    for q in range(corners):
        for i in range(search.corner.shape[1]):
            more = search.corner[q, i] / work.unit[i] if work.unit[i] > 0.0 else 0.0
            out.point[count + q, i] = work.low[i] + more
    return count + corners


@inner
def _write_half_spaces(count, asked, K, work, search, out):
    """Write the half-spaces of a cell in units of reward; return how many there are in all."""
    noinline()
    n, first = search.direction.shape[1], count
    for j in range(asked):
        if not search.needed[j]:
            continue
        if count == len(out.direction):
            return -1
        for i in range(n):  # a player for whom all is the same counts in its own direction alone
            size = work.unit[i] if work.unit[i] > 0.0 else 1.0
            out.direction[count, i] = search.direction[j, i] * size
        for k in range(out.dual.shape[1]):
            out.dual[count, k] = 0.0
        for k in range(K):
            out.dual[count, work.number[k]] = -search.dual[j, k] * work.unit[work.player[k]]
        if n != 2 or count == first or _turns(out.direction[count - 1], out.direction[count]):
            count += 1
    while n == 2 and count > first and not _turns(out.direction[count - 1], out.direction[first]):
        count -= 1
    return count


@inner
def _write_entries(j, count, R, layer, work, search, out):
    """Write what is recommended for the point of direction j; return how many entries there are."""
    noinline()
    if count < 0 or count + search.size[j] > len(out.row):
        return -1
    for e in range(search.size[j]):
        advised = search.row[j, e]
        out.row[count], out.chance[count] = work.row[advised], search.chance[j, e]
        begin = work.out_ptr[advised]
        for o in range(begin, work.out_ptr[advised + 1]):
            out.to[count, o - begin] = layer.sets.ptr[work.next_cell[o]] + search.choice[j, e, o - begin]
        _mark_punished(advised, R, layer, work, out)
        count += 1
    return count


@inner
def _turns(a, b):
    """Return whether a direction is one more than another, in units of reward."""
    return a[0] * b[1] - a[1] * b[0] > PROMISE_SAME * ((a[0] * a[0] + a[1] * a[1]) * (b[0] * b[0] + b[1] * b[1])) ** 0.5


@inner
def _mark_punished(advised, R, layer, work, out):
    """Mark where play can be when another joint action was played, by its first deviator."""
    action = layer.choices.action
    for r in range(R):
        i = 0
        while i < action.shape[1] and action[work.row[r], i] == action[work.row[advised], i]:
            i += 1
        if i < action.shape[1]:
            for o in range(work.out_ptr[r], work.out_ptr[r + 1]):
                out.punished[work.next_cell[o], i] = 1


@inner
def incentives(first_action, interim):
    """Return how many incentive rows a situation may have.

    They are numbered by player, then by what it is told (CE only), then by what it plays instead.
    """
    count = 0
    for i in range(len(first_action) - 1):
        own = first_action[i + 1] - first_action[i]
        count += own * own if interim else own
    return count
