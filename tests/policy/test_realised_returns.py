"""Simulated returns are sums of rewards that were paid: against a list of all play, and against values."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats

import acegames as ace
from acegames.policy.simulation import simulate
from games import ByFunction, alone
from paying_games import paying_game
from shares import some

EPISODES = 20_000


def drones():
    """Two drones, of which exactly one delivers, once: worth 10 to it."""
    return ace.MarkovGame.from_functions(
        players=["a", "b"],
        actions=lambda s: [["fly"], ["fly"]],
        outcomes=lambda s, a: [(0.2, "a did", 1), (0.8, "b did", 0)] if s == "start" else [(1.0, s, 0)],
        reward=lambda s, a, next_s: (
            10.0 * (s == "start" and next_s == "a did"),
            10.0 * (s == "start" and next_s == "b did"),
        ),
        horizon=2,
        initial="start",
        budget={"fuel": 9},
    )


def test_what_is_delivered_once_is_paid_once():
    solution = ace.solve(drones())
    played = solution.simulate(5000, rng=0)
    assert {tuple(x) for x in played.returns.tolist()} == {(10.0, 0.0), (0.0, 10.0)}
    first = np.array(solution.game.states)[played.state[:, 1]] == "a did"
    assert np.array_equal(played.returns[:, 0], 10.0 * first)
    assert np.array_equal(played.rewards.sum(axis=1), played.returns)
    assert played.rewards.shape == (5000, 2, 2) and not played.rewards.flags.writeable
    error = played.summary()["std_error"]
    np.testing.assert_allclose(error, np.sqrt(0.2 * 0.8 * 100 / 5000), rtol=0.1)
    assert (np.abs(played.returns.mean(axis=0) - solution.values) <= 3 * error).all()


@pytest.mark.parametrize("seed", some(range(16)))
def test_the_distribution_of_returns_is_that_of_all_play(seed):
    """Next states with several costs and rewards, one to three players, with and without time."""
    made = paying_game(seed, players=1 + seed % 3, stationary=bool(seed % 2))
    wanted = made.returns()
    played = simulate(made.game, made, episodes=EPISODES, rng=seed)
    counts = Counter(map(tuple, played.returns.round(6).tolist()))
    assert set(counts) <= set(wanted), "a return that never happens"
    chance = np.array(list(wanted.values()))
    off = np.array([counts[x] for x in wanted]) - EPISODES * chance
    assert (np.abs(off) <= 5 * np.sqrt(EPISODES * chance * (1 - chance)) + 5).all()
    if all(layer.payments is None for layer in made.game.layers):
        assert played.rewards is None


def test_games_that_pay_means_alone_play_as_before():
    """The same draws in the same order: an outcome that pays nothing of its own needs none."""
    game = drones()
    mean = ace.MarkovGame.from_functions(
        players=game.players,
        actions=lambda s: game.actions,
        outcomes=lambda s, a: game.outcomes(0, game.legal(0, s)[a]),
        reward=lambda s, a: game.layer(0).reward[game.legal(0, s)[a]],
        horizon=2,
        initial="start",
        budget={"fuel": 9},
    )
    ours, theirs = (ace.solve(g).simulate(300, rng=5) for g in (game, mean))
    assert np.array_equal(ours.state, theirs.state) and np.array_equal(ours.spent, theirs.spent)
    assert theirs.rewards is None
    assert set(theirs.returns[:, 0]) == {2.0}


def test_a_random_cost_stays_with_the_reward_that_it_comes_with():
    """A delivery costs a random amount and pays 5; else nothing is spent and nothing paid. The next state is the same."""
    cost = ace.random_cost(stats.uniform(1, 1))
    outcomes = [(0.25, "s", cost, 5), (0.25, "s", cost, 6), (0.5, "s", 0, 0)]
    game = alone(lambda s, a: outcomes, horizon=3, budget={"fuel": 6}, reward=None)
    played = simulate(game, ByFunction(lambda t, s, c: {("go",): 1.0}), episodes=2000, rng=1)
    spent = np.diff(played.spent[:, :, 0], axis=1, prepend=0)
    paid = played.rewards[:, :, 0]
    assert set(np.unique(paid)) == {0.0, 5.0, 6.0}
    assert np.array_equal(paid == 0, spent == 0)
    assert ((spent == 0) | ((spent >= 1) & (spent <= 2))).all()
    assert abs((paid == 5).mean() - 0.25) < 0.03 and abs((paid == 6).mean() - 0.25) < 0.03


@pytest.mark.parametrize("of", [*ace.catalog.names(), *range(4)])
def test_means_of_returns_agree_with_values(of):
    """Of the games of the catalog, and where outcomes pay."""
    solution = ace.solve(ace.catalog.get(of) if isinstance(of, str) else paying_game(of).game)
    played = solution.simulate(4000, rng=11)
    error = np.maximum(played.summary()["std_error"], 1e-9 * (1 + np.abs(solution.values)))
    assert (np.abs(played.returns.mean(axis=0) - solution.values) <= 3 * error).all()
