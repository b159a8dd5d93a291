"""Payoff sets against linear programs over histories, which know no sets and no promises."""

import numpy as np
import pytest

import acegames as ace
import oracle
from exact_payoffs import exact_corners
from histories import Histories
from promising_games import CONCEPTS, REWARDS, made, small
from shares import some


def compare(game, concept, tol, rng):
    """Assert that the histories' support lies between those of the vertices and of the bound; equal for two players at tol=0."""
    found, histories = ace.payoffs(game, concept, tol=tol), Histories(game, concept)
    n = len(game.players)
    size = max(map(histories.range, range(n)))
    for direction in [*np.eye(n), *-np.eye(n), np.ones(n), *rng.normal(size=(5, n))]:
        true = histories.support(direction)
        outer = (found.bound @ direction).max()
        noise = np.abs(direction).sum() * (size + abs(true) * 1e-3)
        assert found.support(direction) <= true + 1e-7 * noise
        assert outer >= true - 1e-8 * noise
        assert outer - found.support(direction) <= (0.05 if tol else 1e-5) * noise or n > 2
        assert tol or found.support(direction) >= true - 1e-7 * noise
    for i, player in enumerate(game.players if n == 2 and not tol else ()):
        assert found.worst(player) == pytest.approx(histories.worst(i), abs=1e-7 * size)


@pytest.mark.parametrize("seed", some(range(150), of=5))
def test_two_players(seed):
    game, rng = small(seed, 2)
    for concept in (CONCEPTS[seed % 6], CONCEPTS[5 - seed % 6]):
        compare(game, concept, (0, 1e-3)[seed % 2], rng)


@pytest.mark.parametrize("seed", some(range(40), of=5))
def test_three_players_are_bracketed(seed):
    compare(*small(seed, 3)[:1], CONCEPTS[seed % 6], 1e-3, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", some(range(40), of=4))
def test_one_player_gets_the_optimum(seed):
    game, _ = small(seed, 1)
    found = ace.payoffs(game, CONCEPTS[seed % 6], tol=0)
    assert found.vertices == pytest.approx(ace.solve(game).values[None], abs=1e-9)
    assert found.policy().values_at_start == pytest.approx(ace.solve(game).values, abs=1e-9)


@pytest.mark.parametrize("seed", some(range(6), of=3))
@pytest.mark.parametrize("kind", REWARDS)
def test_degenerate_games(kind, seed):
    game, rng = made(kind, seed)
    if ace.feasibility(game).feasible:
        compare(game, CONCEPTS[seed], 0, rng)


@pytest.mark.parametrize("concept", CONCEPTS[2:4])
def test_a_player_without_a_choice(concept):
    game, rng = made("ties", 0, own=(("a",), ("a", "b", "c")))
    compare(game, concept, 0, rng)


def test_where_nothing_can_change_everything_is_an_equilibrium_payoff():
    """And the set is the single point that is paid."""
    game, _ = made("nothing", 2)
    for tol in (0, 1e-3):
        found = ace.payoffs(game, ace.CE(), tol=tol)
        assert found.vertices.tolist() == [[0, 0]] and np.abs(found.bound).max() == 0 and found.gap() == 0
        assert found.policy("bargaining").values_at_start.tolist() == [0, 0]


@pytest.mark.parametrize("seed", some(range(1, 80, 2), of=4))
def test_two_players_in_rational_numbers(seed):
    """The same sets, to the last digits, whatever ties there are."""
    rng = np.random.default_rng(seed)
    horizon = int(rng.integers(1, 4))
    game = oracle.random_game(rng, players=2, states=2, actions=2, horizon=horizon, rewards="integers", schedule=False)
    concept = CONCEPTS[seed // 2 % 6]
    if not ace.feasibility(game).feasible or len(game.initial) > 1:
        return
    found = ace.payoffs(game, concept, tol=0)
    exact = np.array(exact_corners(game, concept), dtype=float)
    for direction in [*np.eye(2), *-np.eye(2), *rng.normal(size=(20, 2))]:
        true = (exact @ direction).max()
        assert found.support(direction) == pytest.approx(true, rel=1e-13, abs=1e-13)
        assert true - 1e-12 <= (found.bound @ direction).max() <= true + 1e-5
