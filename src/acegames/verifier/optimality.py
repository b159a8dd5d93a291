"""Is any equilibrium better? Checks half-planes with multipliers, and solves no program (spec 12).

For a situation x, a direction d and multipliers y >= 0 of the incentive rows k, every equilibrium
payoff v in V(x) has

    d . v  <=  h  =  max over safe a of  S_a(d + Y(a)) - sum over k with a of y_k d~_k(a)
    S_a(g)  =  g . r(a) + sum over x' of P(x'|a) S(x', g)
    Y_i(a)  =  sum of y_k over i's rows k with a

by weak duality: whatever keeps the incentive rows keeps their sum with multipliers. S(x', g), the
most that g . v can be at x', and what deviations bring at least, d~, are read off the half-planes
of the next time. So a proof is a list of d and y for each situation, and the heights h are computed
here, from the last time back; a bad proof gives a weak bound, never a false one.

Of two players the half-planes of a situation come counterclockwise, less than half a turn apart, so
that all of them have a polygon in common: a box around the points in which neighbours' lines meet,
cut along every line. S(g) is the largest g . corner.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from acegames.concepts import Concept, Correlated
from acegames.errors import InvalidOption
from acegames.model.arrays import Floats, Ints
from acegames.numerics import FULL_TURN, UNIT_ROUNDOFF
from acegames.system.compiled import kernel
from acegames.verifier.basics import Numbers, Small
from acegames.verifier.policy_reader import Reader
from acegames.verifier.subgames import Subgames
from acegames.verifier.with_memory import MemoryJudge, SafeGraph, is_with_memory, one_column

ROUNDED = 64.0 * UNIT_ROUNDOFF
"""How far a height can be off by rounding, as a share of the numbers that it is made of."""


@dataclass(frozen=True)
class Optimality:
    """How good an equilibrium is among all of its kind."""

    objective: str  # in words
    value: float  # of this policy
    bound: float  # no equilibrium has more
    covers: str  # which equilibria

    @property
    def gap(self) -> float:
        """By how much at most another equilibrium is better."""
        return max(self.bound - self.value, 0.0)

    def __str__(self) -> str:
        return f"Best: {self.covers} has {self.objective} more than {self.gap:.2g} above {self.value:.6g}."


class HalfPlanes(NamedTuple):
    """What the proof says of the situations of one time."""

    ptr: Ints  # (P+1,)
    direction: Floats  # (L, N)
    dual: Floats  # (L, K) of incentive rows, by player, then what it is told (CE), then what it plays


class Outer(NamedTuple):
    """A set for each situation that no equilibrium leaves, as corners."""

    ptr: Ints  # (P+1,)
    corner: Floats  # (C, N)
    low: Floats  # (P, N)
    high: Floats  # (P, N)


def bound_of(subgames: Subgames, reader: Reader, concept: Concept, objective: Any) -> tuple[float, str]:
    """Return what no equilibrium exceeds in an objective, and what is wrong with the proof, if
    anything: then the bound is infinite.
    """
    game, policy = reader.game, reader.policy
    judge = MemoryJudge(subgames, reader, concept)
    outer = None
    for t in reversed(range(game.horizon)):
        state, spent = subgames.pairs(t)
        following = subgames.pairs(t + 1) if t + 1 < game.horizon else None
        graph = judge.graph(t, (state, spent), following)
        try:
            ptr, *lines = policy.bounds(t, state.copy(), judge.whole(spent))
            direction, dual = (np.ascontiguousarray(x) for x in lines)
            if direction.dtype != np.float64 or dual.dtype != np.float64:
                raise ValueError("directions and multipliers must be floats")
            planes = HalfPlanes(one_column(ptr, np.int64), direction, dual)
            _check(planes, len(state), concept, game)
        except Exception as error:  # a judge must not fall over what it judges
            return math.inf, f"At t={t}: the proof of optimality is unsound ({type(error).__name__}: {error})."
        outer = _outer(planes, _heights(planes, graph, judge.moves[game.layer_at[t]], concept, outer))
        if outer is None:
            return math.inf, f"At t={t}: the half-planes of a situation do not enclose a set."
    assert outer is not None
    state, spent = subgames.pairs(0)
    chances = np.array([p for _, p in game.initial])
    roots = [int(np.flatnonzero(state == s)[0]) for s, _ in game.initial]
    parts = [outer.corner[outer.ptr[x] : outer.ptr[x + 1]] for x in roots]

    def support(direction: Floats) -> float:
        return float(sum(p * (part @ direction).max() for p, part in zip(chances / chances.sum(), parts, strict=True)))

    weights = concept_weights(concept, objective, game.players)
    if weights is not None:
        return support(weights), ""
    candidates = [np.eye(len(game.players))[i] for i in range(len(game.players))]
    candidates += [d / d.sum() for d in planes.direction if (d >= 0).all() and d.sum() > 0]
    return min(map(support, candidates)), ""  # the lowest is at most any mean


def optimality_of(
    concept: Concept, objective: Any, players: tuple[Any, ...], values: Floats, bound: float
) -> Optimality:
    """Return what is known of a policy of these values."""
    weights = concept_weights(concept, objective, players)
    value = float(values.min() if weights is None else values @ weights)
    words = {"welfare": "a sum of values", "egalitarian": "a lowest value"}
    said = words.get(objective) if isinstance(objective, str) else None
    if said is None:
        said = f"a value of {objective!r}" if objective in players else "a weighted sum of values"
    floor = f" with floor {concept.floor:g}"
    return Optimality(said, value, bound, f"no {concept.words.noun}{floor}")


def concept_weights(concept: Concept, objective: Any, players: tuple[Any, ...]) -> Floats | None:
    """Return the weights of a linear objective, None for the value of the worst-off player."""
    asked = type(concept)(objective=objective)
    weights = asked.weights(players)
    if weights is None and asked.criterion.measure != "lowest":
        raise InvalidOption(
            f'best: got {objective!r:.60}; optimality is proved for "welfare", "egalitarian", a player, or one weight per player'
        )
    return None if weights is None else np.array(weights)


def can_be_proved(concept: Concept, objective: Any, players: tuple[Any, ...]) -> bool:
    """Return whether half-planes can show how good a policy is."""
    try:
        concept_weights(concept, objective, players)
    except InvalidOption:
        return False
    return isinstance(concept, Correlated) and len(players) <= 2


def check_best(policy: Any, concept: Concept, objective: Any, players: tuple[Any, ...]) -> None:
    """Refuse what no optimality can be proved of."""
    if not (is_with_memory(policy) and callable(getattr(policy, "bounds", None))):
        raise InvalidOption(
            "best: this policy brings no proof of optimality; that of payoffs(game, concept).policy(objective) does"
        )
    if getattr(policy, "half_planes", policy) is None:
        raise InvalidOption("best: this policy was saved without its proof of optimality")
    own: Any = getattr(policy, "concept", None) or concept
    if (type(own), own.floor) != (type(concept), concept.floor):
        raise InvalidOption(f"best: the policy's proof is about {own!r}, and cannot say anything of {concept!r}")
    concept_weights(concept, objective, players)
    if not can_be_proved(concept, objective, players):
        raise InvalidOption("best: optimality is proved for CE and CCE of one or two players")


def _check(planes: HalfPlanes, pairs: int, concept: Concept, game: Any) -> None:
    """Raise ValueError where a proof is not of the right form."""
    sizes = [len(labels) for labels in game.actions]
    rows = sum(k * k if concept.interim else k for k in sizes)
    lines, fine = len(planes.direction), np.isfinite(planes.direction).all() and np.isfinite(planes.dual).all()
    if planes.direction.shape != (lines, len(sizes)) or planes.dual.shape != (lines, rows) or not fine:
        raise ValueError("half-planes need finite directions and multipliers")
    if len(planes.ptr) != pairs + 1 or planes.ptr[0] != 0 or planes.ptr[-1] != lines or (np.diff(planes.ptr) < 2).any():
        raise ValueError("every situation needs half-planes")
    if (planes.dual < 0).any():
        raise ValueError("a multiplier is negative")


def _heights(planes: HalfPlanes, graph: SafeGraph, numbers: Numbers, concept: Concept, after: Outer | None) -> Floats:
    """Return the height of each half-plane."""
    n = planes.direction.shape[1]
    if after is None:
        after = Outer(np.arange(2), np.zeros((1, n)), np.zeros((1, n)), np.zeros((1, n)))
    height = np.empty(len(planes.direction))
    most = int(np.diff(graph.ptr).max())
    scratch = np.empty((2, most, n)), np.empty(n)
    chance = numbers.prob[graph.out]
    find_heights(
        planes.ptr, planes.direction, planes.dual, graph.ptr, graph.row, graph.out_ptr, chance, graph.to,
        numbers.reward, numbers.action, numbers.move, numbers.offset, after.ptr, after.corner, after.low, after.high,
        concept.interim, float(concept.floor), *scratch, height,
    )  # fmt: skip
    return height


@kernel
def find_heights(
    line_ptr: Ints, direction: Floats, dual: Floats, row_ptr: Ints, row: Ints, out_ptr: Ints, chance: Floats, to: Ints,
    reward: Floats, action: Small, move: Small, offset: Ints, corner_ptr: Ints, corner: Floats, low: Floats, high: Floats,
    interim: bool, floor: float, promise: Floats, push: Floats, height: Floats,
) -> None:  # fmt: skip
    """Write the height of each half-plane (L,), as the formula at the top of this file says.

    The half-planes of pair x are line_ptr[x] : line_ptr[x+1], its safe rows row_ptr[x] :
    row_ptr[x+1] of `row`, their outcomes out_ptr[r] : out_ptr[r+1] of `chance` and `to`, and the
    corners of pair x' of the next time corner_ptr[x'] : corner_ptr[x'+1]. `promise` (2, rows, N) is
    room for the least and the most that each row can bring, `push` (N,) for a direction.
    """
    n = direction.shape[1]
    for x in range(len(line_ptr) - 1):
        begin, end = row_ptr[x], row_ptr[x + 1]
        for i in range(n):
            for r in range(begin, end):
                least = most = reward[row[r], i]
                for o in range(out_ptr[r], out_ptr[r + 1]):
                    least += chance[o] * low[to[o], i]
                    most += chance[o] * high[to[o], i]
                promise[0, r - begin, i], promise[1, r - begin, i] = least, most
        for line in range(line_ptr[x], line_ptr[x + 1]):
            best, size = -np.inf, 0.0
            for r in range(begin, end):
                advised, value, abs_total, first = row[r], 0.0, 0.0, 0
                for i in range(n):
                    push[i] = direction[line, i]
                    least, most = promise[0, 0, i], promise[1, 0, i]
                    for q in range(1, end - begin):
                        least, most = min(least, promise[0, q, i]), max(most, promise[1, q, i])
                    own, actions = np.int64(action[advised, i]), offset[i + 1] - offset[i]
                    for b in range(actions):
                        if b == own:
                            continue
                        y = dual[line, first + (own * actions + b if interim else b)]
                        if y == 0.0:
                            continue
                        other = move[advised, offset[i] + b]
                        brought = least - floor * (most - least)
                        for q in range(begin, end):
                            if row[q] == other:
                                brought = promise[0, q - begin, i]
                        push[i] += y
                        value -= y * brought
                        abs_total += abs(y * brought)
                    first += actions * actions if interim else actions
                for i in range(n):
                    value += push[i] * reward[advised, i]
                    abs_total += abs(push[i] * reward[advised, i])
                for o in range(out_ptr[r], out_ptr[r + 1]):
                    ahead = -np.inf
                    for v in range(corner_ptr[to[o]], corner_ptr[to[o] + 1]):
                        there = 0.0
                        for i in range(n):
                            there += push[i] * corner[v, i]
                        ahead = max(ahead, there)
                    value += chance[o] * ahead
                    abs_total += chance[o] * abs(ahead)
                best, size = max(best, value), max(size, abs_total)
            height[line] = best + ROUNDED * size


def _outer(planes: HalfPlanes, height: Floats) -> Outer | None:
    """Return the corners of the half-planes of each situation; None where some enclose no set."""
    ptr, n = planes.ptr.astype(np.int64), planes.direction.shape[1]
    count = np.diff(ptr)
    if n == 1:
        signs = planes.direction[:, 0]
        if (count != 2).any() or not ((signs[::2] > 0) & (signs[1::2] < 0)).all():
            return None
        corner = (height / signs)[:, None]
    else:
        following = np.arange(len(height)) + 1
        following[ptr[1:] - 1] = ptr[:-1]
        one, two = planes.direction, planes.direction[following]
        cross = one[:, 0] * two[:, 1] - one[:, 1] * two[:, 0]
        length = np.hypot(one[:, 0], one[:, 1]) * np.hypot(two[:, 0], two[:, 1])
        turn = np.add.reduceat(np.arctan2(cross, (one * two).sum(axis=1)), ptr[:-1])
        if (cross <= ROUNDED * length).any() or (np.abs(turn - 2 * np.pi) > FULL_TURN).any():
            return None
        ahead = height[following]
        corner = np.column_stack([height * two[:, 1] - ahead * one[:, 1], ahead * one[:, 0] - height * two[:, 0]])
        corner /= cross[:, None]
        box = np.minimum.reduceat(corner, ptr[:-1]), np.maximum.reduceat(corner, ptr[:-1])
        longest = int(count.max()) + 4
        corner, ends = np.empty((len(height) + 4 * len(count), 2)), np.zeros(len(count) + 1, dtype=np.int64)
        cut_polygons(ptr, planes.direction, height, *box, np.empty((longest, 2)), np.empty(longest), ends, corner)
        corner, ptr = corner[: ends[-1]], ends
    low, high = np.minimum.reduceat(corner, ptr[:-1]), np.maximum.reduceat(corner, ptr[:-1])
    return Outer(ptr, np.ascontiguousarray(corner), low, high)


@kernel
def cut_polygons(
    ptr: Ints, direction: Floats, height: Floats, low: Floats, high: Floats, scratch: Floats, over: Floats, ends: Ints,
    corner: Floats,
) -> None:  # fmt: skip
    """Write the corners of the box low .. high (P, 2) of each pair, cut along its lines.

    The lines of pair x are ptr[x] : ptr[x+1] of `direction` (L, 2) and `height` (L,), its corners
    will be ends[x] : ends[x+1] of `corner`, which has room for four more than there are lines.
    `scratch` and `over` are room for the corners of one pair.
    """
    for x in range(len(ptr) - 1):
        begin, many = ends[x], 4
        for q in range(4):
            corner[begin + q, 0] = high[x, 0] if q in (0, 1) else low[x, 0]
            corner[begin + q, 1] = high[x, 1] if q in (1, 2) else low[x, 1]
        for line in range(ptr[x], ptr[x + 1]):
            beyond, left = 0, 0
            for q in range(many):
                over[q] = -height[line]
                for i in range(2):
                    over[q] += direction[line, i] * corner[begin + q, i]
                beyond += over[q] > 0.0
            if beyond == 0 or beyond == many:  # nothing to cut, or a point, but for rounding
                continue
            for q in range(many):
                after = (q + 1) % many
                if over[q] <= 0.0:
                    scratch[left, 0], scratch[left, 1] = corner[begin + q, 0], corner[begin + q, 1]
                    left += 1
                if (over[q] < 0.0 and over[after] > 0.0) or (over[q] > 0.0 and over[after] < 0.0):
                    share = over[q] / (over[q] - over[after])
                    for i in range(2):
                        way = corner[begin + after, i] - corner[begin + q, i]
                        scratch[left, i] = corner[begin + q, i] + share * way
                    left += 1
            many = left
            for q in range(many):
                corner[begin + q, 0], corner[begin + q, 1] = scratch[q, 0], scratch[q, 1]
        ends[x + 1] = begin + many
