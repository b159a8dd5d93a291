"""Environments pay what the outcome that was drawn pays, and environments that are read keep it."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import acegames as ace
from acegames import learn
from acegames.adapters import gymnasium as gym
from acegames.adapters import pettingzoo as pz
from games import deliveries


def check(before, after, paid, scale=1):
    """Whether a step that led from one state to another can have paid this."""
    if before == 1:
        return paid == -scale
    return paid == 10 * scale if after == 1 else paid in (0, 3)


@pytest.mark.parametrize("timed", [False, True])
def test_single_steps_pay_what_was_drawn(timed):
    env, seen = pz.parallel_env(deliveries(timed=timed)), []
    for seed in range(40):
        env.reset(seed=seed)
        for t in range(4):
            before = env.play.episode.state
            rewards = env.step(dict.fromkeys(env.possible_agents, 0))[1]
            (paid,) = set(rewards.values())  # both are paid by one draw
            assert check(before, env.play.episode.state, paid, t + 1 if timed else 1)
            seen.append(paid)
    assert {0.0, 3.0}.issubset(seen) and max(seen) >= 10 and min(seen) < 0


def test_samples_for_learning_are_paid_what_was_drawn():
    model, rng, seen = learn.game_model(deliveries()), np.random.default_rng(0), set()
    for _ in range(200):
        following, cost, rewards = model(0, 0, ("x", "x"), rng)
        assert check(0, following, rewards[0]) and rewards[0] == rewards[1]
        assert cost["c"] == (following == 1)
        seen.add(rewards[0])
    assert seen == {0.0, 3.0, 10.0}
    env = learn.game_env(deliveries())
    env.reset(seed=0)
    before = env.state()
    _, rewards, *_ = env.step({"p0": "x", "p1": "x"})
    assert check(before, env.state(), rewards["p0"])


class Coin(gymnasium.Env):
    """The state stays as it is; one throw in four pays 5."""

    observation_space, action_space = gymnasium.spaces.Discrete(1), gymnasium.spaces.Discrete(1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, 5.0 if self.np_random.integers(4) == 0 else 0.0, False, False, {}


def test_an_environment_that_is_played_keeps_its_rewards():
    game = gym.from_env(Coin(), horizon=2)
    assert sorted((p, paid) for p, _, _, paid in game.payments(0, 0)) == [(0.25, (5.0,)), (0.75, (0.0,))]
    assert game.layer(0).reward.tolist() == [[1.25]] and len(game.outcomes(0, 0)) == 1


class Throws:
    """Two agents, one of whom wins what chance decides; the state stays as it is."""

    def __init__(self):
        self.possible_agents, self.agents = ["a", "b"], []

    def action_space(self, agent):
        return gymnasium.spaces.Discrete(1)

    def observation_space(self, agent):
        return gymnasium.spaces.Discrete(1)

    def reset(self, seed=None, options=None):
        self.rng, self.agents = np.random.default_rng(seed), list(self.possible_agents)
        return dict.fromkeys(self.agents, 0), {a: {} for a in self.agents}

    def step(self, actions):
        winner = "a" if self.rng.random() < 0.25 else "b"
        rewards = {a: 8.0 * (a == winner) for a in self.agents}
        none = dict.fromkeys(self.agents, False)
        return dict.fromkeys(self.agents, 0), rewards, none, none, {a: {} for a in self.agents}


def test_agents_that_chance_pays_are_read_so():
    game = pz.from_parallel_env(Throws(), horizon=2, state=lambda env, seen: "s")
    assert sorted((p, paid) for p, _, _, paid in game.payments(0, 0)) == [(0.25, (8.0, 0.0)), (0.75, (0.0, 8.0))]
    assert game.layer(0).reward.tolist() == [[2.0, 6.0]]


def test_frozen_lake_pays_a_prize_or_nothing():
    game = gym.from_env(gymnasium.make("FrozenLake-v1", is_slippery=True), horizon=8)
    assert any(layer.payments is not None for layer in game.layers)
    played = ace.solve(game).simulate(3000, rng=0)
    assert set(np.unique(played.returns)) == {0.0, 1.0}
