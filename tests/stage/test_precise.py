"""The kernel with twice the digits: what it decides is what exact arithmetic decides, to the last bit."""

import itertools

import numpy as np
import pytest

import acegames as ace
from acegames.concepts import Correlated
from acegames.engines.stages import Programs
from acegames.kernels.precise import solve_precisely
from acegames.stage.exact import solve_exactly
from stage_solvers import StageBatch, kernel_arguments

PLAYERS = ("p", "q", "r")
CONCEPTS = [
    kind(**options)
    for kind, options in itertools.product(
        (ace.CE, ace.CCE), ({}, {"objective": "egalitarian"}, {"objective": "fair"}, {"floor": 0.0}, {"floor": 0.3})
    )
] + [ace.CE(objective=(1.0, 3.0, 0.1)[:2]), ace.CCE(objective=(-1.0, 0.0))]
FAMILIES = ("random", "near ties", "whole", "rare", "penalties", "equal rows")


def stages(rng, family, number, shape):
    """Stage games of a family, some joint actions of which may be infeasible."""
    for _ in range(number):
        joint = np.array([*itertools.product(*map(range, shape))], np.int32)
        kept = rng.random(len(joint)) < rng.choice([0.6, 1.0])
        joint = joint[kept] if kept.sum() > 1 else joint
        u = rng.normal(size=(len(joint), len(shape)))
        if family == "near ties":
            u = np.round(u) + 10.0 ** rng.integers(-17, -5) * rng.normal(size=u.shape)
        elif family == "whole":
            u = rng.integers(0, 4, size=u.shape).astype(float)
        elif family == "rare":
            u = 40.0 + 10.0 ** rng.uniform(-16, 0, size=u.shape) * u
        elif family == "penalties":
            u = u - 10.0 ** rng.integers(3, 10) * (rng.random(u.shape) < 0.2)
        elif family == "equal rows":
            u = u[rng.integers(0, max(len(u) // 2, 1), len(u))]
        yield joint, u, np.abs(u) * rng.choice([1.0, 50.0])


def solved(batch, concept, players):
    """Sigma of each stage, None where the kernel leaves it."""
    games, number, choices, goal, widest, answers = kernel_arguments(batch, concept, players)
    answers.mixed_ptr[0], answers.open[:] = 0, np.arange(number)
    weights = Programs(concept, players, choices, None).weights
    mixed, left = solve_precisely(games, number, choices, goal, weights, widest, 0, answers)
    opened, at = (
        set(answers.open[:left].tolist()),
        dict(zip(answers.mixed_cell[:mixed].tolist(), range(mixed), strict=True)),
    )
    for g in range(number):
        sigma = np.zeros(batch.ptr[g + 1] - batch.ptr[g])
        if g in at:
            entries = slice(*answers.mixed_ptr[at[g] : at[g] + 2])
            sigma[answers.mixed_row[entries]] = answers.mixed_prob[entries]
        elif g not in opened:
            sigma[answers.code[g] - 1] = 1.0
        yield None if g in opened else sigma


def compare(rng, family, concept: Correlated, shape, number):
    """Solve some stages in both ways; return which share the kernel left."""
    players = PLAYERS[: len(shape)]
    X, u, size = zip(*stages(rng, family, number, shape), strict=True)
    ptr = np.concatenate([[0], np.cumsum([*map(len, X)])])
    base = rng.normal(size=(number, len(shape))) if concept.criterion.compares else None
    batch = StageBatch(ptr, np.concatenate(X), np.concatenate(u), np.concatenate(size), base)
    left = 0
    for g, sigma in enumerate(solved(batch, concept, players)):
        left += sigma is None
        if sigma is not None:
            expected = solve_exactly(batch.stage(g, concept, players))
            assert sigma.tobytes() == expected.tobytes(), (family, concept, g, X[g], u[g], sigma, expected)
    return left / number


@pytest.mark.parametrize("family", FAMILIES)
def test_what_it_decides_is_exact(family):
    """Probabilities have the bits of exact arithmetic, and few stages are left to it."""
    rng = np.random.default_rng(FAMILIES.index(family))
    for concept in CONCEPTS:
        left = compare(rng, family, concept, (2, 3), 12)
        assert left <= 0.4 or concept.objective == "fair", (concept, left)
    compare(rng, family, ace.CE(), (2, 2, 2), 5)


def test_what_it_cannot_know_goes_on():
    """Numbers further apart than twice the digits are left to exact arithmetic, in their order."""
    joint = np.array([*itertools.product(range(2), range(2))], np.int32)
    u = np.array([[1.0, -1.0], [-1e-200, 1.0], [-1.0, 1.0], [1.0, -1e-200]])
    batch = StageBatch(np.arange(3) * 4, np.tile(joint, (2, 1)), np.vstack([u, u + 1e-300]), np.zeros((8, 2)))
    assert [*solved(batch, ace.CE(objective="fair"), ("p", "q"))] == [None, None]
