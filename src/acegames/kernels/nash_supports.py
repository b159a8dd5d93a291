"""The search through the pairs of supports of a stage of two players.

Supports of player p, who has more actions, are gone through by an explicit stack. The other's are
the subsets, as bits, of what is feasible with all of them and not dominated.
"""

from __future__ import annotations

import numpy as np

from acegames.kernels.nash_mixtures import mixtures
from acegames.kernels.nash_records import (
    ALL,
    BEST,
    BEST_OR_CENTRE,
    CENTRE,
    MAYBE,
    NO,
    WORST,
    YES,
    Points,
    Side,
    fill_score,
    is_better,
    keep,
)
from acegames.kernels.records import ANY, EGALITARIAN, FAIR, LINEAR
from acegames.numerics import TIE
from acegames.system.compiled import inlined, inner


@inner
def search(p, deepest, limit, tie, objective, scores, work):
    """Look for better equilibria than the best, with up to `deepest` actions of player p.

    Returns YES, MAYBE where some pair of supports was not decided, or NO where there are too many.
    """
    game, pair, size, q = work.game, work.pair, work.pair.size, 1 - p
    sure = YES
    for unequal in range(2):  # most equilibria have supports of equal size, and one found early saves work
        looked = 0
        size[p] = 0
        pair.next[0] = 0
        pair.common[0] = -1  # all bits
        while True:
            _next_support(p, deepest, game, pair)
            if size[p] == 0:
                break
            possible = _undominated(p, game, pair)
            chosen = 0
            while chosen != possible:
                chosen = (chosen - possible) & possible  # the next subset
                looked += 1
                if looked > limit:
                    return NO
                size[q] = _members(chosen, pair.support[q])
                if (size[q] == size[p]) == (unequal == 1) or size[q] + size[p] == 2:
                    continue
                answer = _judge_pair(p, chosen, tie, objective, scores, work)
                if answer == MAYBE:
                    sure = MAYBE
                if answer == YES and is_better(objective.kind, scores.here, scores.best):
                    keep(scores.here, scores.best)
                    _keep_mixtures(game, pair)
                    if objective.kind == ANY:
                        return YES
    return sure


# -- one support after the other ------------------------------------------------------------------


@inner
def _next_support(p, deepest, game, pair):
    """Go on to the next support of p that an equilibrium may have; its size is 0 after the last.

    The rivals of both players become those against all that is feasible for the other.
    """
    q, following, support = 1 - p, pair.next, pair.support[p]
    depth = pair.size[p]
    if depth < deepest:
        following[depth + 1] = following[depth]
        depth += 1
    while depth > 0:
        a = following[depth]
        if a == game.size[p]:
            depth -= 1
            continue
        following[depth] = a + 1
        support[depth - 1] = a
        common = pair.common[depth - 1] & game.fits[a]
        pair.common[depth] = common
        if common != 0:
            pair.rivals_size[q] = _members(common, pair.rivals[q])
            pair.rivals_size[p] = _fitting(common, game.fits[: game.size[p]], pair.rivals[p])
            rivals, against = pair.rivals[p, : pair.rivals_size[p]], pair.rivals[q, : pair.rivals_size[q]]
            if not _any_dominated(game.worth[p], support[:depth], rivals, against, True):
                break
    pair.size[p] = depth


@inner
def _members(bits, out):
    """List the members of a set of bits. Returns their number."""
    n = 0
    k = 0
    while bits >> k:
        if bits >> k & 1:
            out[n] = k
            n += 1
        k += 1
    return n


@inner
def _fitting(bits, fits, out):
    """List the actions that are feasible with all of a set. Returns their number."""
    n = 0
    for c in range(len(fits)):
        if fits[c] & bits == bits:
            out[n] = c
            n += 1
    return n


@inner
def _undominated(p, game, pair):
    """Return the other player's actions, as bits, that no rival dominates against the support of
    p.
    """
    q = 1 - p
    bits = 0
    rivals = pair.rivals[q, : pair.rivals_size[q]]
    for c in rivals:
        if not _is_dominated(game.worth[q], c, rivals, pair.support[p, : pair.size[p]], False):
            bits |= 1 << c
    return bits


@inner
def _is_dominated(worth, a, rivals, against, strictly):
    """Return whether a rival is never worse than `a` and somewhere better (strictly:
    everywhere).
    """
    for c in rivals:
        if c == a:
            continue
        worse = False
        higher = 0
        for k in against:
            gap = worth[c, k] - worth[a, k]
            worse = worse or gap < 0.0
            higher += gap > 0.0
        if not worse and higher >= (len(against) if strictly else 1):
            return True
    return False


@inner
def _any_dominated(worth, own, rivals, against, strictly):
    dominated = False
    for a in own:
        dominated = dominated or _is_dominated(worth, a, rivals, against, strictly)
    return dominated


# -- one pair -------------------------------------------------------------------------------------


@inner
def _judge_pair(p, chosen, tie, objective, scores, work):
    """Return whether the pair has an equilibrium that may beat the best: its score is
    scores.here.
    """
    game, pair, points, equations = work
    here, best, lower, upper = scores
    size, q = pair.size, 1 - p
    pair.rivals_size[p] = _fitting(chosen, game.fits[: game.size[p]], pair.rivals[p])
    side = _side(p, game, pair, tie)
    if _any_dominated(side.worth, side.own, side.rivals, side.others, False):
        return NO
    for i in range(2):
        lower[i], upper[i] = _bounds(_side(i, game, pair, tie))
        if lower[i] > upper[i] + tie[i]:
            return NO
    fill_score(objective, lower, upper, here)
    if not is_better(objective.kind, here, best):
        return NO
    answer = YES
    first = p if size[p] >= size[q] else q  # the one with more conditions than unknowns
    for i in (first, 1 - first):
        own_points = Points(points.mixture[i], points.worth[i], points.full[i])
        part = mixtures(_side(i, game, pair, tie), _wanted(objective, i), own_points, equations)
        if part == NO:
            return NO
        answer = max(answer, part)
    if answer == YES:
        _take_best(objective, pair, points, here)
    return answer


@inlined
def _side(i, game, pair, tie):
    own, others = pair.support[i, : pair.size[i]], pair.support[1 - i, : pair.size[1 - i]]
    return Side(game.worth[i], own, pair.rivals[i, : pair.rivals_size[i]], others, tie[i])


@inner
def _bounds(side):
    """Return what the player gets at least and at most, if all of its support is worth that."""
    lower, upper = -np.inf, np.inf
    for a in side.own:
        low, high = np.inf, -np.inf
        for k in side.others:
            low, high = min(low, side.worth[a, k]), max(high, side.worth[a, k])
        lower, upper = max(lower, low), min(upper, high)
    return lower, upper


@inlined
def _wanted(objective, i):
    """Return which mixtures against player i the objective asks for."""
    if objective.kind == FAIR:
        return ALL
    if objective.kind == EGALITARIAN:
        return BEST_OR_CENTRE
    return WORST if objective.kind == LINEAR and objective.weight[i] < 0.0 else BEST


@inner
def _take_best(objective, pair, points, score):
    """Take the mixtures that are best for the objective from the points, and fill their score."""
    for i in range(2):
        mixture, worth, full = points.mixture[i], points.worth[i], points.full[i]
        taken = pair.taken[i, : pair.size[1 - i]]
        if objective.kind in (EGALITARIAN, FAIR):
            score[1 + i] = _take(_target(i, objective, points), mixture, worth, full, taken)
        else:
            wanted = _wanted(objective, i)
            score[1 + i] = worth[wanted]
            for k in range(len(taken)):
                taken[k] = mixture[wanted, k]
    fill_score(objective, score[1:], score[1:], score)


@inner
def _target(i, objective, points):
    """Return the utility of player i that is best where players are compared.

    `stage.units.Preference.targets` has the mathematics.
    """
    kind, _, gain, offset = objective
    worth, full = points.worth, points.full
    bottom = -np.inf
    top = np.inf
    for h in range(2):
        bottom = max(bottom, offset[h] + gain[h] * worth[h, WORST])
        top = min(top, offset[h] + gain[h] * worth[h, BEST])
    enough = np.inf  # egalitarian: what is reached; fair: where the players meet
    open_end = False
    for h in range(2):
        if offset[h] + gain[h] * worth[h, BEST] <= top + TIE:
            enough = min(enough, offset[h] + gain[h] * worth[h, BEST if full[h, BEST] else CENTRE])
            open_end = open_end or not full[h, BEST]
    best, worst, centre = worth[i, BEST], worth[i, WORST], worth[i, CENTRE]
    if kind == EGALITARIAN:
        if full[i, BEST]:
            return best
        return max(centre, (enough - offset[i]) / gain[i] if gain[i] > 0.0 else centre)
    if bottom > top + TIE:
        return best if offset[i] + gain[i] * worst < bottom else worst
    meet = 0.5 * (bottom + top) if open_end and bottom < top - TIE else top
    return min(max((meet - offset[i]) / gain[i] if gain[i] > 0.0 else best, worst), best)


@inner
def _take(target, mixture, worth, full, taken):
    """Take a mixture of the target utility, the centre at an end that is not full; its utility."""
    end = BEST if target >= worth[CENTRE] or abs(worth[BEST] - target) <= TIE else WORST
    at_end = abs(worth[end] - target) <= TIE
    if at_end and full[end]:
        for k in range(len(taken)):
            taken[k] = mixture[end, k]
        return worth[end]
    share = 0.0
    if not at_end and worth[end] != worth[CENTRE]:
        share = (target - worth[CENTRE]) / (worth[end] - worth[CENTRE])
    for k in range(len(taken)):
        taken[k] = share * mixture[end, k] + (1.0 - share) * mixture[CENTRE, k]
    return share * worth[end] + (1.0 - share) * worth[CENTRE]


@inlined
def _keep_mixtures(game, pair):
    """Copy the mixtures taken into the game: what is found on one side is the other player's."""
    for i in range(2):
        game.mixture[i, : game.size[i]] = 0.0
        for k in range(pair.size[i]):
            game.mixture[i, pair.support[i, k]] = pair.taken[1 - i, k]
