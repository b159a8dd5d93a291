"""All equilibrium payoffs: how the time grows, and the same recursion with scipy's `linprog`.

The recursion with SciPy is that of `acegames.promises`, written as a reader of the theory page would: columns are joint actions with
vertices of the Minkowski sums, and each direction is a program of its own. Its best welfare must agree. All policies are verified, with
their distance to the best.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import acegames as ace
from acegames.system.machine import processors

TOL = 1e-2


def random_game(states: int, horizon: int, actions: int, following: int, budget: int, seed: int = 0) -> ace.MarkovGame:
    """Make a game with rewards drawn from 0 .. 1, costs from 0, 1, 2 and so many next states."""
    rng = np.random.default_rng(seed)
    shape = (states, actions, actions)
    move = np.zeros((*shape, states))
    for place in itertools.product(*map(range, shape)):
        move[(*place, rng.choice(states, following, replace=False))] = 1 / following
    reward, cost = rng.random((*shape, 2)).round(3), rng.integers(0, 3, (*shape, 1))
    return ace.MarkovGame.from_arrays(move, reward, cost, horizon=horizon, budget=budget)


def timed(game: ace.MarkovGame, concept: Any, tol: float, turns: int = 3) -> tuple[float, ace.Payoffs]:
    """Return the median seconds of finding all payoffs, compiled, and the payoffs."""
    taken = []
    for _ in range(turns):
        began = time.perf_counter()
        sets = ace.payoffs(game, concept, tol=tol, engine=ace.LocalEngine(compiled=True))
        taken.append(time.perf_counter() - began)
    return statistics.median(taken), sets


def growth() -> list[dict[str, Any]]:
    """Return how the time grows with tol, horizon, actions and next states."""
    cases = [((10, 10, 3, 3, 10), tol) for tol in (1e-1, 1e-2, 1e-3, 1e-4)]
    cases += [((10, horizon, 3, 3, 2 * horizon), 1e-2) for horizon in (5, 20, 40)]
    cases += [((10, 6, actions, 3, 6), 1e-2) for actions in (2, 4, 5, 6)]
    cases += [((10, 10, 3, following, 10), 1e-2) for following in (1, 6)]
    timed(random_game(2, 2, 2, 1, 2), ace.CE(), 0.1, 1)
    rows = []
    for (size, tol), concept in itertools.product(cases, (ace.CE(), ace.CCE())):
        seconds, sets = timed(random_game(*size), concept, tol, 1)
        certificate = ace.verify(sets.game, sets.policy(), best="welfare", engine=ace.LocalEngine(compiled=True))
        assert certificate.ok and certificate.optimality is not None
        rows.append(
            {
                **dict(zip(("states", "steps", "actions", "next_states", "budget"), size, strict=True)),
                "tol": tol,
                "concept": type(concept).__name__,
                "situations": sets.situations,
                "seconds": seconds,
                "points": sum(len(layer.point) for layer in sets.inner[:-1]) / sets.situations,
                "gap": certificate.optimality.gap / abs(sets.best().sum()),
            }
        )
    return rows


# -- the same with scipy -----------------------------------------------------------------------------


def scipy_welfare(game: ace.MarkovGame, tol: float) -> tuple[int, float]:
    """Return the number of situations and the best welfare under CE, by `linprog`."""
    verdict = ace.feasibility(game)
    sets: dict[Any, np.ndarray] = {}
    situations = 0
    for t in reversed(range(game.horizon)):
        here = {}
        for state, spent in verdict.states(t):
            stage = []
            for action in verdict.actions(t, state, spent):
                row = game.legal(t, state)[action]
                outcomes = [(p, (s, (spent[0] + float(c[0]),))) for p, s, c in game.outcomes(t, row)]
                parts = [p * sets[x] if t + 1 < game.horizon else np.zeros((1, 2)) for p, x in outcomes]
                stage.append((action, game.layer(t).reward[row] + minkowski(parts)))
            here[state, spent] = polygon(stage, tol)
            situations += 1
        sets = here
    root = sets[next(iter(sets))]
    return situations, float(root.sum(axis=1).max())


def minkowski(parts: list[np.ndarray]) -> np.ndarray:
    """Return the vertices of the sum of polygons: one for each direction between two normals."""
    angles = [np.array([0.1, 1.6, 3.2, 4.8])]
    for part in parts:
        edge = np.roll(part, -1, axis=0) - part
        angles.append(np.mod(np.arctan2(-edge[:, 0], edge[:, 1]), 2 * np.pi))
    at = np.unique(np.concatenate(angles))
    middle = 0.5 * (at + np.append(at[1:], at[0] + 2 * np.pi))
    directions = np.column_stack([np.cos(middle), np.sin(middle)])
    chosen = np.unique(np.column_stack([np.argmax(part @ directions.T, axis=0) for part in parts]), axis=0)
    return sum(part[chosen[:, k]] for k, part in enumerate(parts))


def polygon(stage: list[tuple[Any, np.ndarray]], tol: float) -> np.ndarray:
    """Return the equilibrium payoffs of one situation, from those that follow each joint action."""
    from scipy.optimize import linprog

    columns = [(a, w) for a, points in stage for w in points]
    points = np.array([w for _, w in columns])
    least = {a: w.min(axis=0) for a, w in stage}
    low, high = points.min(axis=0), points.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    rows = []
    for i, told, other in deviations([a for a, _ in stage]):
        row = np.zeros(len(columns))
        for k, (a, w) in enumerate(columns):
            if a[i] == told:
                to = (*a[:i], other, *a[i + 1 :])
                row[k] = (least[to][i] if to in least else low[i] - (high - low)[i]) - w[i]
        rows.append(row / span[i])
    options = {
        "A_ub": np.array(rows).reshape(-1, len(columns)),
        "b_ub": np.full(len(rows), 1e-10),
        "A_eq": np.ones((1, len(columns))),
        "b_eq": [1.0],
    }

    def furthest(direction: np.ndarray) -> np.ndarray:
        weights = linprog(-(points / span) @ direction, **options, method="highs").x
        return weights @ points

    axes = [np.array(d, dtype=float) for d in ((1, 0), (1, 1), (0, 1), (-1, 0), (0, -1))]
    corners = [furthest(d) for d in axes]
    j = 0
    while j < len(corners):
        here, there = corners[j] / span, corners[(j + 1) % len(corners)] / span
        way = there - here
        normal = np.array([way[1], -way[0]])
        length = np.linalg.norm(normal)
        if length > 1e-9:
            beyond = furthest(normal / length)
            if (beyond / span - here) @ normal / length > max(tol, 1e-9):
                corners.insert(j + 1, beyond)
                continue
        j += 1
    return np.array(corners)


def deviations(joint: list[Any]) -> Iterator[tuple[int, Any, Any]]:
    """Yield each player, what it is told and what it might play instead."""
    for i in range(2):
        own = sorted({a[i] for a in joint})
        yield from ((i, told, other) for told, other in itertools.permutations(own, 2))


def against_scipy() -> dict[str, Any]:
    """Return the time of a situation of the same game in both ways, and their ratio."""
    game = random_game(3, 4, 3, 2, 6)
    timed(game, ace.CE(), TOL)
    seconds, sets = timed(game, ace.CE(), TOL)
    began = time.perf_counter()
    situations, welfare = scipy_welfare(game, TOL)
    took = time.perf_counter() - began
    assert abs(welfare - sets.support((1, 1))) <= TOL * (1 + abs(welfare)), (welfare, sets.support((1, 1)))
    ours, theirs = seconds / sets.situations, took / situations
    return {"situations": sets.situations, "tol": TOL, "ours": ours, "scipy": theirs, "ratio": theirs / ours}


def payoffs() -> dict[str, Any]:
    """Return both."""
    return {"against_scipy": against_scipy(), "growth": growth(), "processors": processors()}
