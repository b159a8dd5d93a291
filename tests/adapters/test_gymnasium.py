"""Games of one player as Gymnasium environments, and steps of six values as in Safety-Gymnasium."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import acegames as ace
from acegames.adapters import gymnasium as adapter
from acegames.adapters import safety_gymnasium as six
from acegames.adapters.pettingzoo import parallel_env
from games import delivery, spending

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env, data_equivalence  # noqa: E402

GAMES = {"knapsack": lambda: ace.catalog.get("knapsack"), "delivery": delivery}


@pytest.fixture(params=GAMES)
def game(request):
    return GAMES[request.param]()


@pytest.mark.parametrize("observation", ["dict", "vector"])
@pytest.mark.parametrize("mask", ["safe", "available"])
def test_check_env_has_nothing_to_remark(game, observation, mask, capsys):
    env = adapter.env(game, mask=mask, observation=observation)
    assert isinstance(env, gymnasium.Env)
    check_env(env)  # warnings are errors here
    assert "t = 0 of" in capsys.readouterr().out, "it was shown to people, too"


@pytest.mark.parametrize("mask", ["safe", "available"])
def test_it_is_the_parallel_environment_of_one_agent(game, mask):
    env, parallel = adapter.env(game, mask=mask), parallel_env(game, mask=mask)
    (agent,) = parallel.possible_agents
    answer, told_parallel = env.reset(seed=3), parallel.reset(seed=3)
    ended = False
    while not ended:
        action = int(np.flatnonzero(answer[-1]["action_mask"])[-1])
        answer, told_parallel = env.step(action), parallel.step({agent: action})
        own = {key: x for key, x in answer[-1].items() if key != "action_mask"}  # which observations have, too
        assert data_equivalence([*answer[:-1], own], [part[agent] for part in told_parallel], exact=True)
        ended = answer[2]
    assert env.situation == parallel.situation


def test_the_optimal_plan_earns_its_value():
    game = ace.catalog.get("knapsack")
    env, solution = adapter.env(game), ace.solve(game)
    env.reset(seed=0)
    earned, ended = 0.0, False
    while not ended:
        action = solution.policy.act(*env.situation)
        assert env.decode(env.encode(action)) == action
        _, reward, ended, truncated, info = env.step(env.encode(action))
        earned += reward
    assert (earned, truncated, info["remaining_weight"]) == (309, False, 0)


def test_in_vectors_and_wrappers(game):
    vector = gymnasium.vector.SyncVectorEnv([lambda: adapter.env(game)] * 3)
    _, infos = vector.reset(seed=[1, 2, 3])
    for _ in range(2 * game.horizon):
        _, _, _, _, infos = vector.step([int(np.flatnonzero(mask)[0]) for mask in infos["action_mask"]])
        assert not infos["violated"].any()
    made = gymnasium.make(adapter.env(game).spec)
    made.reset(seed=0)
    assert made.get_wrapper_attr("action_masks")().dtype == bool
    assert made.unwrapped.game.digest == game.digest


def test_amounts_in_vectors_of_environments_are_not_cut_to_whole_numbers():
    game = spending((0, 0.1), budget={"c": [1, float("inf")]}, horizon=2)
    vector = gymnasium.vector.SyncVectorEnv([lambda: adapter.env(game)] * 2)
    vector.reset(seed=0)
    *_, infos = vector.step([0, 1])
    assert infos["cost_c"].tolist() == infos["spent_c"].tolist() == [0, 0.1]
    assert infos["remaining_c"].tolist() == [float("inf")] * 2


def test_masks_for_maskable_learners():
    env = adapter.env(delivery(), mask="available")
    for seed in range(8):
        observation, _ = env.reset(seed=seed)
        assert env.action_masks().tolist() == observation["action_mask"].astype(bool).tolist()
        assert env.action_masks().tolist() == [True, env.situation[1] == "depot", True]


def test_what_there_is_only_after_reset_says_so(game):
    env = adapter.env(game, render_mode="ansi")
    for ask in (env.action_masks, env.render, lambda: env.situation, lambda: env.costs):
        with pytest.raises(ace.InvalidOption, match="call reset first"):
            ask()
    with pytest.raises(ace.InvalidOption, match=r"agent .* chose 9, must be a whole number"):
        env.decode(9)


def test_an_option_that_is_none_is_named(game):
    with pytest.raises(ace.InvalidOption, match="unknown option 'maks', did you mean 'mask'"):
        adapter.env(game, maks="safe")
    for illegal in ("x", float("nan"), True):
        with pytest.raises(ace.InvalidOption, match=r"illegal: .* must be a finite number"):
            adapter.env(game, illegal=illegal)


def test_a_game_of_several_players_is_refused():
    for make in (adapter.env, six.env):
        with pytest.raises(ace.InvalidOption, match=r"2 players .*parallel_env"):
            make(ace.catalog.get("intersection"))


def test_a_mode_is_needed_to_render():
    env = adapter.env(delivery())
    env.reset(seed=0)
    with pytest.raises(ace.InvalidOption, match="render_mode"):
        env.render()


@pytest.mark.parametrize("name", ["knapsack", "delivery"])
def test_pictures_and_words(name):
    env = adapter.env(GAMES[name](), render_mode="rgb_array")
    env.reset(seed=0)
    before = env.render()
    env.step(0)
    assert before.dtype == np.uint8 and before.shape == env.render().shape and (before != env.render()).any()
    env = adapter.env(GAMES[name](), render_mode="ansi")
    env.reset(seed=0)
    env.step(0)
    assert f"t = 1 of {env.game.horizon}" in env.render()


def test_words_say_what_is_spent_and_what_may_be_done():
    env = adapter.env(ace.catalog.get("knapsack", capacity=30), render_mode="ansi")
    env.reset()
    env.step(0)
    assert env.render().split() == [
        *("knapsack,", "t", "=", "1", "of", "10:", "bag"),
        *("weight", "█" * 15 + "░" * 5, "23", "of", "30"),
        *("packer", "played", "take", "for", "92,", "may", "leave"),
    ]


# -- six values -----------------------------------------------------------------------------------------------------


def test_steps_of_six_values(game):
    env, five = six.env(game), adapter.env(game, observation="vector")
    observation, info = env.reset(seed=1)
    assert np.array_equal(observation, five.reset(seed=1)[0])
    ended = False
    while not ended:
        action = int(np.flatnonzero(info["action_mask"])[0])
        observation, reward, cost, ended, truncated, info = env.step(action)
        expected = five.step(action)
        assert np.array_equal(observation, expected[0])
        assert (reward, ended, truncated) == expected[1:4]
        assert cost == expected[4]["cost"] == info["cost_sum"]
        names = [f"cost_{name}" for name in five.constraint_names.values()]
        assert [info[name] for name in names] == [expected[4][name] for name in names] and sum(
            map(info.get, names)
        ) == cost
        assert "cost" not in info, (
            "Safety-Gymnasium's conversion to Gymnasium puts it there and warns if it is there already"
        )
        assert type(cost) is float


def test_six_values_by_agent():
    game = ace.catalog.get("drones")
    owners = {"red battery": "red", "blue battery": "blue"}
    env, parallel = six.multi_agent_env(game, owners=owners), parallel_env(game, owners=owners)
    assert (env.possible_agents, env.agents) == (["red", "blue"], [])
    _, infos = env.reset(seed=2)
    parallel.reset(seed=2)
    while env.agents:
        actions = {a: int(np.flatnonzero(infos[a]["action_mask"])[-1]) for a in env.agents}
        observations, rewards, costs, terminations, truncations, infos = env.step(actions)
        seen, *expected, infos_of_five = parallel.step(actions)
        assert [rewards, terminations, truncations] == expected
        assert costs == {a: infos_of_five[a]["cost"] for a in infos_of_five} == {a: infos[a]["cost_sum"] for a in infos}
        assert all(np.array_equal(observations[a], seen[a]["observation"]) for a in seen)
    assert any(costs.values()) or infos["red"]["spent_red_battery"] != 0


def test_without_the_packages_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    for make in (adapter.env, six.env):
        with pytest.raises(ace.MissingExtra, match=r"acegames\[gymnasium\]"):
            make(delivery())
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    with pytest.raises(ace.MissingExtra, match=r"acegames\[pettingzoo\]"):
        six.multi_agent_env(ace.catalog.get("drones"))
