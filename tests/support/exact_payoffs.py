"""The payoff sets of two players in rational numbers, by the recursion of spec 12 as it is written: for very small games."""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction

import oracle


def exact_corners(game, concept):
    """The corners of the payoff set at the start, for one initial state."""
    g = oracle.spell_out(game)
    nodes = oracle.feasible_nodes(g)

    @functools.cache
    def corners(x):
        if x[0] == g.horizon:
            return [(Fraction(0), Fraction(0))]
        later = {m.action: promises(m, lambda s, cost: corners((x[0] + 1, s, g.after(x[2], cost)))) for m in nodes[x]}
        return polygon(*program(later, concept.interim, Fraction(concept.floor)))

    ((state, _),) = g.initial
    return corners((0, state, g.start))


def promises(move, corners):
    """The corners of W(a), what play of a joint action can be worth."""
    points = {move.reward}
    for p, s, cost in move.outcomes:
        points = hull({(x[0] + p * y[0], x[1] + p * y[1]) for x in points for y in corners(s, cost)})
    return points


def program(later, interim, floor):
    """The columns of a situation's program, pairs (joint action, promise), and its rows of gains, each to be 0 at most."""
    columns, rows = [(a, w) for a, points in later.items() for w in points], []
    for i in (0, 1):
        least = {a: min(w[i] for w in points) for a, points in later.items()}
        low, high = min(least.values()), max(w[i] for _, w in columns)
        least[None] = low - floor * (high - low)
        own = {a[i] for a in later}
        for told, b in itertools.product(own if interim else [None], own):
            row = []
            for a, w in columns:
                other = (b, a[1]) if i == 0 else (a[0], b)
                counts = a[i] != b and told in (None, a[i])
                row.append(least[other if other in later else None] - w[i] if counts else Fraction(0))
            rows.append([*row, 0])
    return columns, rows


def polygon(columns, rows):
    """The corners of what the columns can bring, counterclockwise, asked edge by edge until nothing lies beyond."""

    def furthest(direction):
        levels = [
            [*(sum(d * x for d, x in zip(way, w, strict=True)) for _, w in columns), 0]
            for way in (direction, (1, 0), (0, 1))
        ]
        sigma = oracle.lexicographic_simplex(levels, rows, len(columns))
        return tuple(sum(p * w[i] for p, (_, w) in zip(sigma, columns, strict=True)) for i in (0, 1))

    def between(p, q):
        normal = (q[1] - p[1], p[0] - q[0])
        new = furthest(normal) if p != q else p
        if sum(n * (x - y) for n, x, y in zip(normal, new, p, strict=True)) <= 0:
            return []
        return [*between(p, new), new, *between(new, q)]

    ends = [furthest(way) for way in ((1, 0), (0, 1), (-1, 0), (0, -1))]
    return hull({v for p, q in zip(ends, [*ends[1:], ends[0]], strict=True) for v in (p, *between(p, q))})


def hull(points):
    """The corners of the convex hull, counterclockwise."""
    points = sorted(points)
    if len(points) < 3:
        return points

    def half(points):
        chain = []
        for p in points:
            while len(chain) > 1 and turn(chain[-2], chain[-1], p) <= 0:
                chain.pop()
            chain.append(p)
        return chain[:-1]

    return half(points) + half(points[::-1])


def turn(a, b, c):
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
