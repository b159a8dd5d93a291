"""A stage of two players: by minimax where its sum is constant, else by its supports."""

from __future__ import annotations

import numpy as np

from acegames.kernels.nash.records import MIXED, NO, NOTHING, PURE, TOO_MANY, UNSURE, YES
from acegames.kernels.nash.simplex import maximise
from acegames.kernels.nash.supports import search
from acegames.kernels.records import ANY, FAIR
from acegames.kernels.simplex import Dictionary
from acegames.numerics import NOISE, STABLE, SUPPORT
from acegames.system.compiled import inlined, inner

BITS = 62  # of a set of actions
FIRST_PAIRS = 2**14
"""Pairs of supports of a product to look at for any equilibrium: then another way is shorter."""


@inlined
def solve_two_players(stage, v, has_pure, limit, units, objective, scores, room):
    """Solve a stage, given the score of its best pure equilibrium. Returns what becomes of it."""
    game, u = room.game, stage.utility
    _number_actions(stage, game)
    p = 0 if game.size[0] >= game.size[1] else 1
    most, fewest = game.size[p], game.size[1 - p]
    _fill_game(stage, v, p, game)
    is_product = most * fewest == len(u)
    if is_product and _has_constant_sum(u, units.top, units.low, units.unit):
        if has_pure:
            return PURE
        return _accepted(u, units.top, game) if _minimax(game, room.equations) else UNSURE
    if fewest > BITS:
        return TOO_MANY
    deepest = most
    if is_product:  # see `stage.nash_exact`
        deepest = min(most, fewest + (objective.kind == FAIR))
        limit = min(limit, FIRST_PAIRS) if objective.kind == ANY else limit
    game.mixture[0, 0] = -1.0
    sure = search(p, deepest, limit, units.tie, objective, scores, room)
    if sure == NO:
        return TOO_MANY
    if scores.best[0] == -np.inf:
        return NOTHING
    if sure != YES:
        return UNSURE
    return PURE if game.mixture[0, 0] < 0.0 else _accepted(u, units.top, game)


@inlined
def _number_actions(stage, game):
    """Number the actions that are feasible, for each player from 0."""
    for i in range(2):
        game.place[i] = -1
        for j in range(len(stage.utility)):
            game.place[i, stage.action[stage.row[j], i]] = 0
        n = 0
        for c in range(game.place.shape[1]):
            if game.place[i, c] == 0:
                game.place[i, c] = n
                game.name[i, n] = c
                n += 1
        game.size[i] = n


@inlined
def _fill_game(stage, v, p, game):
    """Fill the tables of the game; `fits` belongs to the actions of player p."""
    game.cell[: game.size[0], : game.size[1]] = -1
    game.fits[: game.size[p]] = 0
    for j in range(len(stage.utility)):
        a, k = _place(j, 0, stage, game), _place(j, 1, stage, game)
        game.cell[a, k] = j
        game.worth[0, a, k] = v[j, 0]
        game.worth[1, k, a] = v[j, 1]
        own, other = (a, k) if p == 0 else (k, a)
        if other < BITS:
            game.fits[own] |= 1 << other


@inlined
def _place(j, i, stage, game):
    """Return the number of player i's action in joint action j."""
    return game.place[i, stage.action[stage.row[j], i]]


@inlined
def fill_product(stage, game, sigma):
    """Fill the distribution over joint actions that the players' mixtures make."""
    x, y = game.mixture[0], game.mixture[1]
    for j in range(len(stage.utility)):
        sigma[j] = x[_place(j, 0, stage, game)] * y[_place(j, 1, stage, game)]


# -- constant sum ---------------------------------------------------------------------------------


@inlined
def _has_constant_sum(u, top, low, unit):
    """Return whether the utilities, brought to unit range, add up to the same everywhere."""
    one = 1.0 / (top[0] - low[0]) if unit[0] > 0.0 else 0.0
    two = 1.0 / (top[1] - low[1]) if unit[1] > 0.0 else 0.0
    least = np.inf
    most = -np.inf
    noise = 0.0
    for j in range(len(u)):
        total = (u[j, 0] - top[0]) * one + (u[j, 1] - low[1]) * two
        least = min(least, total)
        most = max(most, total)
        noise = max(noise, NOISE * (u[j, 2] * one + u[j, 3] * two))
    return most - least <= noise


@inlined
def _minimax(game, room):
    """Fill the mixtures of a game of constant sum. Returns whether that was done.

    maximise sum(q), q (1 + u_1 - min u_1) <= 1, q >= 0: then y = q / sum(q), and x are the prices.
    """
    m, n = game.size[0], game.size[1]
    table = Dictionary(room.T, room.rhs, room.none, room.basic, room.nonbasic, m + 1, n)
    T, rhs, basic, nonbasic = table.T, table.rhs, table.basic, table.nonbasic
    worth, x, y = game.worth[0], game.mixture[0], game.mixture[1]
    least = 0.0
    for a in range(m):
        for k in range(n):
            least = min(least, worth[a, k])
    for a in range(m):
        for k in range(n):
            T[a, k] = 1.0 - least + worth[a, k]
        rhs[a] = 1.0
        basic[a] = n + a
    for k in range(n):
        T[m, k] = -1.0
        nonbasic[k] = k
    rhs[m] = 0.0
    x[:m] = 0.0
    y[:n] = 0.0
    room.barred[: m + n] = False
    if not maximise(table, m, m, room.barred):
        return False
    for a in range(m):
        if basic[a] < n:
            y[basic[a]] = rhs[a] / rhs[m]
    for k in range(n):
        if nonbasic[k] >= n:
            x[nonbasic[k] - n] = T[m, k] / rhs[m]
    return True


# -- the certificate ------------------------------------------------------------------------------


@inner
def _accepted(u, top, game):
    """MIXED where the mixtures, rounding taken out, are an equilibrium; else UNSURE."""
    for i in range(2):
        if not _normalise(game.mixture[i, : game.size[i]]):
            return UNSURE
    if not _fill_value(u, game):
        return UNSURE
    for i in range(2):
        accepted = STABLE * (top[i] - game.value[i]) + NOISE * game.value[2 + i]
        for c in range(game.size[i]):
            if _gain(i, c, u, game) > accepted:
                return UNSURE
    return MIXED


@inlined
def _normalise(p):
    total = 0.0
    for k in range(len(p)):
        p[k] = p[k] if p[k] > SUPPORT else 0.0
        total += p[k]
    for k in range(len(p)):
        p[k] /= total
    return total > 0.5


@inlined
def _fill_value(u, game):
    """Fill what the mixtures are worth. Returns whether all that is played is feasible."""
    x, y = game.mixture[0], game.mixture[1]
    game.value[:] = 0.0
    for a in range(game.size[0]):
        for k in range(game.size[1]):
            if x[a] > 0.0 and y[k] > 0.0:
                if game.cell[a, k] < 0:
                    return False
                for i in range(4):
                    game.value[i] += x[a] * y[k] * u[game.cell[a, k], i]
    return True


@inlined
def _gain(i, c, u, game):
    """Return what player i gains by action c against the other's mixture; -inf: it is not feasible."""
    gain = -game.value[i]
    for k in range(game.size[1 - i]):
        p = game.mixture[1 - i, k]
        if p > 0.0:
            j = game.cell[c, k] if i == 0 else game.cell[k, c]
            if j < 0:
                return -np.inf
            gain += p * u[j, i]
    return gain
