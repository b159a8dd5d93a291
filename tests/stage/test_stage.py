"""Stage solvers against the definitions of spec 4 and against exact arithmetic, on games made to be degenerate."""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction

import numpy as np
import pytest

import oracle
from acegames import CCE, CE
from acegames.stage import program
from shares import examples
from stage_solvers import BatchStageSolver, PlainFirst, ReferenceStageSolver, StageBatch, batch_of, solved_exactly

TOLERANCE = 1e-8  # in units of the stage's utility range

SOLVERS = {"highs": ReferenceStageSolver, "fast": BatchStageSolver, "lockstep": PlainFirst}


@functools.cache
def solver(name):
    return SOLVERS[name]()


# -- families of stages: each gives (joint actions, utilities) ------------------------------------------------------


def product(*counts):
    return list(itertools.product(*map(range, counts)))


def some_cells(rng, cells, keep=0.6):
    """A random non-empty subset: in general not a product."""
    return [a for a in cells if rng.random() < keep] or [cells[int(rng.integers(len(cells)))]]


def integers(rng, low=-3, high=4):
    X = product(3, 3)
    return X, rng.integers(low, high, size=(len(X), 2))


def ties(rng):
    """Two levels only: nearly every choice is a tie."""
    return integers(rng, 0, 2)


def zero_sum(rng):
    X = product(3, 3)
    u = rng.integers(-3, 4, size=len(X))
    return X, np.column_stack([u, -u])


def common_interest(rng):
    X = product(3, 3)
    return X, np.repeat(rng.integers(0, 3, size=(len(X), 1)), 2, axis=1)


def public_goods(rng):
    """Each of three may give 1; what is given is multiplied and shared."""
    X = product(2, 2, 2)
    share = int(rng.integers(1, 6)) / 4
    return X, np.array([[share * sum(a) - a[i] for i in range(3)] for a in X])


def constant(rng):
    X = some_cells(rng, product(3, 2))
    return X, np.full((len(X), 2), rng.normal())


def constant_for_one(rng):
    X, u = integers(rng)
    u[:, int(rng.integers(2))] = 5
    return X, u


def holes(rng):
    X = some_cells(rng, product(3, 3))
    return X, rng.integers(-2, 3, size=(len(X), 2))


def holes_for_three(rng):
    X = some_cells(rng, product(2, 2, 2), 0.7)
    return X, rng.integers(-2, 3, size=(len(X), 3))


def floats(rng):
    X = some_cells(rng, product(3, 3), 0.8)
    return X, rng.normal(size=(len(X), 2))


def moved(name, family, factor=1.0, offset=0.0):
    """The stages of a family with other utilities."""

    def stage(rng):
        X, u = family(rng)
        return X, u * factor + offset

    stage.__name__ = name
    return stage


tenths = moved("tenths", holes, 0.1)
tiny = moved("tiny", holes, 1e-6)
huge = moved("huge", floats, 1e6)
far_from_zero = moved("far_from_zero", holes, offset=1e6)
unequal_scales = moved("unequal_scales", integers, [1.0, 1000.0], [0.0, 7.0])


def alone(rng):
    X = some_cells(rng, product(5))
    return X, rng.integers(0, 3, size=(len(X), 1))


def one_cell(rng):
    return [tuple(rng.integers(0, 3, size=3).tolist())], rng.normal(size=(1, 3))


def one_has_no_choice(rng):
    X = [(a, 2) for a in range(4)]
    return X, rng.integers(0, 3, size=(4, 2))


def six_cycle(rng):
    X = sorted([(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 0)])
    return X, np.array([[a == b, a != b] for a, b in X])


FAMILIES = (
    integers, ties, zero_sum, common_interest, public_goods, constant, constant_for_one, holes, holes_for_three, floats,
    tenths, tiny, huge, far_from_zero, unequal_scales, alone, one_cell, one_has_no_choice, six_cycle,
)  # fmt: skip
STAGES = examples(6)
PLAYERS = ("p", "q", "r")
OBJECTIVES = ("welfare", "egalitarian", "fair", "last player", "weights", None)
FLOORS = (0, 1, 10)


@functools.cache
def stages(family):
    rng = np.random.default_rng(sum(map(ord, family.__name__)))
    count = 1 if family is six_cycle else STAGES
    return [
        (np.array(X, dtype=np.int32), np.array(u, dtype=np.float64)) for X, u in (family(rng) for _ in range(count))
    ]


def players_of(family):
    return PLAYERS[: stages(family)[0][0].shape[1]]


def concept_of(kind, objective, floor, players):
    if objective == "last player":
        objective = players[-1]
    elif objective == "weights":
        objective = (2.0, -1.0, 0.5)[: len(players)]
    return kind(objective=objective, floor=floor)


@functools.cache
def exact_utilities(family, concept):
    return [solved_exactly(X, u, concept, players_of(family)) @ u for X, u in stages(family)]


# -- the definitions, read off spec 4 -------------------------------------------------------------------------------


def spread(u):
    return (u.max(axis=0) - u.min(axis=0)).max() or 1.0


def recommendations(X, i, kind):
    """The events after which player i may deviate: any (CCE), or each recommendation (CE)."""
    everything = np.arange(len(X))
    return [everything] if kind is CCE else [np.flatnonzero(X[:, i] == told) for told in np.unique(X[:, i])]


def gains(X, u, sigma, kind, floor):
    """(player, deviation, row of the program with the floor, gain if the deviation is feasible against sigma else None)."""
    at = {tuple(a): r for r, a in enumerate(X.tolist())}
    for i in range(X.shape[1]):
        low = u[:, i].min() - floor * np.ptp(u[:, i])
        for b in np.unique(X[:, i]):
            target = X.copy()
            target[:, i] = b
            to = np.array([at.get(tuple(a), -1) for a in target.tolist()])
            gain = sigma * (np.where(to >= 0, u[to, i], low) - u[:, i])
            for told in recommendations(X, i, kind):
                feasible = (to[told][sigma[told] > 0] >= 0).all()
                yield i, b, gain[told].sum(), gain[told][sigma[told] > 0].sum() if feasible else None


def check_equilibrium(X, u, sigma, kind, floor):
    assert sigma.shape == (len(X),)
    assert (sigma >= 0).all()
    assert sigma.sum() == pytest.approx(1, abs=1e-12)
    for i, b, row, gain in gains(X, u, sigma, kind, floor):
        own = (1 + floor) * max(np.ptp(u[:, i]), 1e-15 * np.abs(u[:, i]).max())
        assert row <= TOLERANCE * own, f"the incentive row of player {i}, action {b} is off by {row}"
        assert gain is None or gain <= TOLERANCE * own, f"player {i} gains {gain} by the safe deviation to {b}"


@pytest.mark.parametrize("floor", [0, 1, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [CE, CCE])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", SOLVERS)
def test_equilibrium_and_exact_choice(name, family, kind, floor):
    games, players = stages(family), players_of(family)
    batch = batch_of(games)
    for objective in OBJECTIVES:
        concept = concept_of(kind, objective, floor, players)
        found = solver(name).solve(batch, concept, players)
        assert 0 <= found.repaired <= found.programs <= len(games)
        assert found.sigma.shape == (len(batch.utility),)
        for g, (X, u) in enumerate(games):
            sigma = found.sigma[batch.ptr[g] : batch.ptr[g + 1]]
            check_equilibrium(X, u, sigma, kind, floor)
            if objective is not None:
                expected = exact_utilities(family, concept)[g]
                assert sigma @ u == pytest.approx(expected, abs=TOLERANCE * spread(u)), (
                    concept,
                    X.tolist(),
                    u.tolist(),
                )


@pytest.mark.parametrize("kind", [CE, CCE])
@pytest.mark.parametrize(
    "family", [integers, ties, holes, holes_for_three, zero_sum, six_cycle], ids=lambda f: f.__name__
)
def test_exact_solver_against_the_oracle(family, kind):
    """The measure of the other tests is itself measured, by a program written apart from it."""
    players = players_of(family)
    for X, u in stages(family):
        for objective, floor in [("welfare", 1), ("egalitarian", 0), ("fair", 10), ("weights", 1)]:
            concept = concept_of(kind, objective, floor, players)
            sigma = solved_exactly(X, u, concept, players)
            check_equilibrium(X, u, sigma, kind, floor)
            cells = [tuple(a) for a in X.tolist()]
            rational = [tuple(Fraction(x) for x in row) for row in u.tolist()]
            target = tuple(map(Fraction, concept.objective)) if objective == "weights" else objective
            value, _ = oracle.stage_value(cells, rational, kind.__name__, target, floor)
            assert sigma @ u == pytest.approx(np.array(value, dtype=float), abs=TOLERANCE * spread(u))


# -- facts that hold whatever the numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [CE, CCE])
def test_a_power_of_two_changes_no_bit_of_an_exact_answer(kind):
    for family, objective in itertools.product((floats, tenths), ("welfare", "egalitarian", "fair", None)):
        for X, u in stages(family):
            sigmas = [solved_exactly(X, u * factor, kind(objective), ("p", "q")) for factor in (1.0, 2.0**-20, 2.0**20)]
            assert len({sigma.tobytes() for sigma in sigmas}) == 1


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("kind", [CE, CCE])
def test_a_player_of_small_numbers_is_not_overlooked(name, kind):
    """One player's utilities span 1e9 and more, the other's span 1: its incentives count all the same."""
    X = np.array([(0, 0), (0, 1), (1, 0), (1, 1)], dtype=np.int32)
    for large in (1e6, 1e9, 1e12):
        u = np.array([(0.0, 0.0), (0.0, 1.0), (-large, 1.0), (-large, 0.0)])  # the second player should play 1
        sigma = solver(name).solve(StageBatch(np.array([0, 4]), X, u), kind(objective=(1, -1e-3)), (0, 1)).sigma
        assert sigma[1] == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("name", SOLVERS)
def test_large_floors_keep_the_objective(name):
    X = np.array([(0, 0), (1, 0), (1, 1), (1, 2), (2, 2)], dtype=np.int32)
    u = np.array([(0, 3), (3, 4), (0, 5), (3, 2), (5, 1)], dtype=float)
    welfare = []
    for floor in (0, 1, 1e2, 1e4, 1e6):
        concept = CCE(floor=floor)
        sigma = solver(name).solve(StageBatch(np.array([0, 5]), X, u), concept, (0, 1)).sigma
        welfare.append((sigma @ u).sum())
        assert welfare[-1] == pytest.approx((solved_exactly(X, u, concept, (0, 1)) @ u).sum(), abs=1e-6)
    assert welfare == pytest.approx(sorted(welfare), abs=1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_deviations_are_the_same_however_they_are_found(seed, monkeypatch):
    rng = np.random.default_rng([seed, 5])
    counts = rng.integers(1, 4, rng.integers(1, 4))
    every = np.array(list(np.ndindex(int(rng.integers(1, 5)), *counts)))
    legal = every[np.sort(rng.choice(len(every), rng.integers(1, len(every) + 1), replace=False))]
    groups, action, deviates = legal[:, 0], legal[:, 1:].astype(np.int32), rng.random(len(counts)) < 0.8
    tables = []
    for spread in (0, 10**9):
        monkeypatch.setattr(program, "SPREAD", spread)
        tables.append(program.deviation_table(groups, action, counts, deviates.tolist()))
    assert np.array_equal(*tables)
    numbers = {tuple(row): k - int(np.searchsorted(groups, row[0])) for k, row in enumerate(legal.tolist())}
    for row, found in zip(legal.tolist(), tables[0].tolist(), strict=True):
        for i, own in enumerate(deviates):
            for a in range(counts[i]):
                switched = numbers.get((*row[: i + 1], a, *row[i + 2 :]), -1) if own else -1
                assert found[int(counts[:i].sum()) + a] == switched
