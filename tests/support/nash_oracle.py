"""Nash equilibria of a stage in Fractions, by brute force: products of supports, corners of small polytopes, no programs.

Over the equilibria of one pair of supports each player's utility takes an interval, whose ends are attained or only approached.
Of three players pure equilibria are listed.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest


@dataclass(frozen=True)
class Span:
    """An interval; `bottom` and `top` say whether its ends belong to it."""

    low: Fraction
    high: Fraction
    bottom: bool = True
    top: bool = True

    def scaled(self, w):
        """The interval of w times its numbers."""
        if not w:
            return Span(Fraction(0), Fraction(0))
        ends = [(w * self.low, self.bottom), (w * self.high, self.top)][:: 1 if w > 0 else -1]
        return Span(ends[0][0], ends[1][0], ends[0][1], ends[1][1])

    def meet(self, other):
        """What both hold, or None."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        bottom = all(s.bottom for s in (self, other) if s.low == low)
        top = all(s.top for s in (self, other) if s.high == high)
        return Span(low, high, bottom, top) if low < high or (low == high and bottom and top) else None

    def holds(self, x, tol):
        """Whether x is inside, give or take."""
        return self.low - tol <= x <= self.high + tol


def subsets(items):
    return itertools.chain.from_iterable(itertools.combinations(items, k) for k in range(1, len(items) + 1))


def corners(own, choices, others, worth):
    """The corners of the mixtures over `others` against which all of `own` are best among `choices`."""
    same = [[worth[a, k] - worth[own[0], k] for k in others] for a in own[1:]]
    less = [[worth[c, k] - worth[own[0], k] for k in others] for c in choices if c not in own]
    return mixtures(same, less, len(others))


def mixtures(same, less, n):
    """The corners of the mixtures y of n actions with `same` y = 0 and `less` y <= 0."""
    less = [*less, *([Fraction(-(j == k)) for j in range(n)] for k in range(n))]
    points = set()
    for tight in itertools.combinations(less, n - rank([[Fraction(1)] * n, *same])):
        y = unique([*same, *tight], n)
        if y and all(dot(row, y) == 0 for row in same) and all(dot(row, y) <= 0 for row in less):
            points.add(y)
    return points


def unique(rows, n):
    """The one solution of rows y = 0, sum(y) = 1, or None."""
    left, leading = eliminated([[Fraction(1)] * (n + 1), *([*row, 0] for row in rows)])
    return tuple(row[-1] for row in left[:n]) if leading == list(range(n)) else None


def rank(rows):
    return len(eliminated(rows)[1])


def eliminated(rows):
    """Gauss-Jordan: what is left of the rows, and the columns of their leading ones."""
    left, leading = [list(map(Fraction, row)) for row in rows], []
    for k in range(len(rows[0])):
        r = len(leading)
        at = next((i for i in range(r, len(left)) if left[i][k]), None)
        if at is not None:
            left[r], left[at] = left[at], left[r]
            left[r] = [x / left[r][k] for x in left[r]]
            for i in range(len(left)):
                if i != r and left[i][k]:
                    left[i] = [x - left[i][k] * y for x, y in zip(left[i], left[r], strict=True)]
            leading.append(k)
    return left, leading


def dot(one, other):
    return sum(x * y for x, y in zip(one, other, strict=True))


def full(points):
    """Whether some mixture between these corners is positive throughout."""
    return bool(points) and all(map(any, zip(*points, strict=True)))


def span(own, choices, others, worth):
    """The utilities of a player over the mixtures that are positive throughout, or None where there are none."""
    points = corners(own, choices, others, worth)
    level = {y: dot([worth[own[0], k] for k in others], y) for y in points}
    if not full(points):
        return None
    low, high = min(level.values()), max(level.values())
    ends = [full([y for y in points if level[y] == end]) for end in (low, high)]
    return Span(low, high, *ends)


def boxes(cells):
    """The utilities (Span, Span) over the equilibria of each pair of supports that holds any; cells: {(a, k): (u_1, u_2)}."""
    worth = {a: u[0] for a, u in cells.items()}, {a[::-1]: u[1] for a, u in cells.items()}
    rows, columns = (sorted({a[i] for a in cells}) for i in (0, 1))
    spans = []
    for first, second in itertools.product(subsets(rows), subsets(columns)):
        if all(a in cells for a in itertools.product(first, second)):
            one = span(first, [c for c in rows if all((c, k) in cells for k in second)], second, worth[0])
            two = one and span(second, [c for c in columns if all((a, c) in cells for a in first)], first, worth[1])
            if two:
                spans.append((one, two))
    return spans


def best_of(objective, box):
    """The best of the objective over a box, and whether it is attained."""
    if objective == "egalitarian":
        best = min(s.high for s in box)
        return best, all(s.top for s in box if s.high == best)
    if objective == "fair":
        if box[0].meet(box[1]):
            return Fraction(0), True
        below, above = sorted(box, key=lambda s: (s.low + s.high, s.high))
        return below.high - above.low, below.top and above.bottom
    parts = [s.scaled(w) for s, w in zip(box, objective, strict=True)]
    return sum(s.high for s in parts), all(s.top for s in parts)


def choices_at(objective, best, box):
    """What each player may get where the objective takes its best, which the box attains."""
    if objective == "egalitarian":
        return [s.meet(Span(best, s.high, True, s.top)) for s in box]
    if objective == "fair":
        if best == 0:
            return [box[0].meet(box[1])] * 2  # both the same
        below = min(s.high for s in box)
        ends = [s.high if s.high == below else s.low for s in box]
        return [Span(end, end) for end in ends]
    ends = [(s.high if w > 0 else s.low) for s, w in zip(box, objective, strict=True)]
    return [Span(end, end) if w else s for end, s, w in zip(ends, box, objective, strict=True)]


def faults(spans, objective, value, tol=1e-7):
    """Why `value` is not what the objective (weights, where it is linear) chooses among the equilibria of these boxes: sentences.

    What is attained must be chosen: the best of the objective, then of player 1's utility, then of player 2's. Where one of these is only
    approached, what is chosen is at least as good as every pair of supports that attains its own best.
    """
    point = tuple(Span(x, x) for x in value)
    best = [(*best_of(objective, box), box) for box in spans]
    chosen, goal = best_of(objective, point)[0], Fraction(0)
    for name, i in (("objective", None), ("player 1", 0), ("player 2", 1)):
        if i is not None:
            best = [(s.high, s.top, box) for box in spans for s in [choices_at(objective, goal, box)[i]]]
            chosen = value[i]
        top = max(b for b, *_ in best)
        reached = max((b for b, attained, _ in best if attained), default=None)
        if reached is not None and chosen < reached - tol:
            return [f"{name}: {chosen} although {reached} is attained"]
        if reached != top:
            return []
        if chosen > top + tol:
            return [f"{name}: {chosen} although nothing is above {top}"]
        spans = [box for b, attained, box in best if attained and b == top]
        if i is None:
            goal = top
    return []


def gain(X, u, sigma):
    """The most that a player gains by a feasible move from a distribution, in floats; it must be a product inside X."""
    assert sigma.sum() == pytest.approx(1, abs=1e-12) and (sigma >= 0).all()
    at = {tuple(a): r for r, a in enumerate(X.tolist())}
    own = [np.bincount(x, weights=sigma) for x in X.T]
    for a in itertools.product(*(np.flatnonzero(p).tolist() for p in own)):
        assert a in at, "the support is no product inside X"
        assert sigma[at[a]] == pytest.approx(np.prod([p[x] for p, x in zip(own, a, strict=True)]), abs=1e-12)
    most = 0.0
    for i, b in [(i, b) for i, x in enumerate(X.T) for b in np.unique(x)]:
        target = X[sigma > 0].copy()
        target[:, i] = b
        to = [at.get(tuple(a)) for a in target.tolist()]
        if None not in to:
            most = max(most, sigma[sigma > 0] @ (u[to, i] - u[sigma > 0, i]))
    return most


def pure(cells):
    """The joint actions at which nobody gains by a feasible move, of any number of players."""
    own = [sorted({a[i] for a in cells}) for i in range(len(next(iter(cells))))]

    def moves(a):
        return ((i, (*a[:i], b, *a[i + 1 :])) for i, choices in enumerate(own) for b in choices)

    return [a for a, u in cells.items() if all(to not in cells or cells[to][i] <= u[i] for i, to in moves(a))]
