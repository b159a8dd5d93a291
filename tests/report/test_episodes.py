"""The episodes of the explorer show what each step paid."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import acegames as ace
from acegames.report.summary import episode_data
from paying_games import paying_game


def shown_rewards(game):
    solution = ace.solve(game)
    played = solution.simulate(30, rng=2)
    view = SimpleNamespace(game=game, policy=solution.policy)
    shown = episode_data(view, played, {e: f"Episode {e}" for e in range(30)})
    return np.array([entry["reward"] for entry in shown]), played.returns


def test_rewards_of_steps_sum_to_the_returns_where_outcomes_pay():
    rewards, returns = shown_rewards(paying_game(1).game)
    assert np.array_equal(rewards.sum(axis=1), returns)
    assert len(np.unique(returns[:, 0])) > 2


def test_rewards_of_steps_sum_to_the_returns_where_joint_actions_pay():
    rewards, returns = shown_rewards(ace.catalog.get("intersection"))
    np.testing.assert_allclose(rewards.sum(axis=1), returns, rtol=1e-9)
