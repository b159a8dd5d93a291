"""The solver against the brute-force oracle, on hundreds of random games and on constructed cases (spec 10)."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import acegames as ace
import oracle
from acegames import CCE, CE
from acegames.model.numbers import exact_or_inf
from games import one_state, with_budget
from random_games import changing_game
from shares import examples, some

GAMES = 300


def make(seed, **fixed):
    """A game of the oracle's; one in three is a game in which everything changes with time."""
    rng = np.random.default_rng(seed)
    return oracle.random_game(rng, **fixed) if fixed or seed % 3 else changing_game(rng)


def is_feasible(game):
    return oracle.feasible_sets(game)[0]


def scale(game):
    """The largest total reward the game can pay, at least 1."""
    return max(1.0, sum(float(np.abs(game.layer(t).reward).max()) for t in range(game.horizon)))


def budgets(rows, width):
    rows = np.asarray(rows, dtype=object)
    assert rows.ndim == 2
    assert rows.shape[1] == width
    return [tuple(exact_or_inf(x) for x in row) for row in rows]


def check_feasibility(game):
    feasible, _, _ = oracle.check_feasible(game)
    rows, minimal = budgets(ace.feasibility(game).minimal_budgets, len(game.constraints)), oracle.minimal_budgets(game)
    assert len(rows) == len(set(rows)) and set(rows) == minimal
    return feasible, minimal


def check_solution(game, concept):
    """Solve, and check values at every pair, the certificate and the play."""
    solution = ace.solve(game, concept)
    expected = oracle.all_values(game, concept)
    tol = 1e-7 * scale(game)
    assert np.asarray(solution.values) == pytest.approx(np.array(oracle.root_values(game, concept), float), abs=tol)
    for (t, s, c), value in expected.items():
        assert np.asarray(solution.policy.values(t, game.states[s], c)) == pytest.approx(
            np.array(value, float), abs=tol
        )
    certificate = ace.verify(game, solution.policy, concept)
    assert certificate.ok, certificate
    assert np.asarray(certificate.values) == pytest.approx(np.asarray(solution.values), abs=tol)
    rollouts = ace.simulate(game, solution.policy, episodes=20, rng=np.random.default_rng(0))
    assert rollouts.violations == 0
    return solution


def random_concept(rng, game):
    n = len(game.players)
    objective = [
        "welfare",
        "egalitarian",
        "fair",
        game.players[int(rng.integers(n))],
        tuple(rng.integers(-1, 4, size=n).tolist()),
    ][int(rng.integers(5))]
    return [CE, CCE][int(rng.integers(2))](objective=objective, floor=[0, 0.5, 1.0, 1.0, 3.0][int(rng.integers(5))])


# 11636 has a stage whose best equilibrium exists only because a tie, blurred by rounding, counts as a tie.
@pytest.mark.parametrize("seed", [11636, *some(range(GAMES), of=6)])
def test_random_game(seed):
    game = make(seed)
    feasible, minimal = check_feasibility(game)
    rng = np.random.default_rng([seed, 1])
    for concept in (CE(), CCE(), random_concept(rng, game), random_concept(rng, game))[seed % 2 :: 2]:
        if feasible:
            check_solution(game, concept)
        else:
            with pytest.raises(ace.Infeasible) as caught:
                ace.solve(game, concept)
            assert set(budgets(caught.value.minimal_budgets, len(game.constraints))) == minimal


SIGNED = {"players": 2, "constraints": 2, "horizon": 3, "costs": "signed", "schedule": True}
THREE = {"constraints": 3, "states": 2, "horizon": 3}


@settings(max_examples=examples(70), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(oracle.games(**SIGNED), oracle.games(**THREE)))
def test_signed_schedules_and_three_constraints(game):
    check_feasibility(game)


@pytest.mark.parametrize("kind", [CE, CCE])
@pytest.mark.parametrize("objective", ["welfare", "egalitarian", "fair", "p1", (0, 0, 0), (2, -1, 0.5)])
def test_three_players_with_many_ties(kind, objective):
    for seed in (1000, 1001):
        game = make(seed, players=3, states=2, actions=2, constraints=1, horizon=2, rewards="integers", schedule=False)
        if is_feasible(game):
            check_solution(game, kind(objective=objective))


@pytest.mark.parametrize("kind", [CE, CCE])
def test_no_objective_gives_an_equilibrium(kind):
    """Also of the other kind, where that asks for less."""
    for game in filter(is_feasible, map(make, range(2000, 2030))):
        policy = ace.solve(game, kind(objective=None)).policy
        assert ace.verify(game, policy, kind()).ok and ace.verify(game, policy, CCE()).ok


def test_the_generator_covers_the_model():
    seen = [make(seed) for seed in range(GAMES // 2)]
    assert 0.55 < np.mean(list(map(is_feasible, seen))) < 0.85
    assert {len(g.players) for g in seen} == {1, 2, 3}
    assert {len(g.constraints) for g in seen} == {0, 1, 2, 3}
    assert any(len(g.layers) > 1 for g in seen)
    assert any(min(v[0] for v in g.cost_values if v) < 0 for g in seen if g.constraints)
    assert any(math.inf in row for g in seen for row in g.budgets)
    assert any(len(g.initial) > 1 for g in seen)


# -- the oracle itself ------------------------------------------------------------------------------------------


def test_a_stage_known_by_hand():
    """Aumann's chicken: the best correlated equilibrium earns 10.5 = 1/2 (6, 6) + 1/4 (7, 2) + 1/4 (2, 7)."""
    X = list(itertools.product("yd", repeat=2))
    u = [(6, 6), (2, 7), (7, 2), (0, 0)]
    values, sigma = oracle.stage_value(X, [tuple(map(Fraction, v)) for v in u], "CE", "welfare")
    assert sum(values) == Fraction(21, 2)
    assert sigma == [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4), 0]


# -- constructed cases ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [CE, CCE])
def test_a_budget_that_makes_the_feasible_set_no_product(kind):
    """Both may spend, but not both at once; alone each is worth it."""
    pay = {("use", "use"): (2, 2), ("use", "spare"): (3, -1), ("spare", "use"): (-1, 3), ("spare", "spare"): (0, 0)}
    own = [("use", "spare")] * 2
    game = one_state(["p", "q"], own, lambda t, a: a.count("use"), lambda t, a: pay[a], horizon=2, budget=[1])
    check_feasibility(game)
    assert set(ace.feasibility(game).actions(0, "s", [0])) == {("use", "spare"), ("spare", "use"), ("spare", "spare")}
    for objective in ("welfare", "egalitarian", "fair"):
        check_solution(game, kind(objective=objective))


@pytest.mark.parametrize("kind", [CE, CCE])
@pytest.mark.parametrize("objective", ["welfare", "egalitarian", "fair", "chaser", (1, 3)])
def test_six_cycle(kind, objective):
    check_solution(ace.catalog.get("six_cycle"), kind(objective=objective))


@pytest.mark.parametrize("seed", some(range(4000, 4012), of=3))
def test_budgets_that_never_bind(seed):
    game = make(seed, constraints=2, rewards="integers")
    widest = [[math.inf] * 2] * game.horizon
    plenty = [[sum(max(map(abs, v)) for v in game.cost_values) * game.horizon] * 2] * game.horizon
    free, rich = (with_budget(game, b) for b in (widest, plenty))
    for concept in (CE(), CCE("egalitarian")):
        values = check_solution(free, concept).values
        assert ace.solve(rich, concept).values == pytest.approx(np.asarray(values), abs=1e-9)
        without = with_budget(game, None)
        assert ace.solve(without, concept).values == pytest.approx(np.asarray(values), abs=1e-9)
