"""Batches of environments: step by step what single environments do, with the same draws."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("gymnasium")

import gymnasium
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector.utils import iterate

import acegames as ace
from acegames.adapters import gymnasium as adapter
from acegames.adapters import pettingzoo as pz
from acegames.adapters.environments.env_interface import constraint_names
from acegames.adapters.gymnasium import ONE_PLAYER
from games import deliveries, delivery, spending


def tolls():
    """Three constraints, one without a bound at first, in thirds and tenths; two rules of what is legal."""
    return ace.MarkovGame.from_functions(
        players=["p", "q"],
        horizon=4,
        initial={0: 0.25, 1: 0.75},
        budget={"a": [float("inf"), 1.1, 1.7, 1.7], "b": ace.reservoir(2, start=1), "c": float("inf")},
        actions=lambda t, s: [(0, 1, 2), (0, 1)] if (t + s) % 2 else [(0, 1), (0, 1)],
        outcomes=lambda t, s, a: [
            (0.5, (s + 1) % 2, {"a": 0.3 * a[0], "b": Fraction(sum(a), 3), "c": 1}),
            (0.3, s, {"a": 0.1 * a[1], "b": Fraction(-1, 3), "c": 0}),
            (0.2, 0, {"a": 0, "b": 0, "c": 7}),
        ],
        reward=lambda t, s, a: [a[0] - t, a[1] + s],
    )


ONE = {
    "knapsack": lambda: ace.catalog.get("knapsack"),
    "delivery": lambda: delivery(lambda t, s, a: [t + (a[0] == "drive")]),
}
MANY = {
    "tolls": tolls,
    "intersection": lambda: ace.catalog.get("intersection", horizon=4, budget=4),
    "fleet": lambda: ace.catalog.get("electric_fleet", horizon=4),
    "paid by the outcome": lambda: deliveries(timed=True),
}


class SameDraw:
    """In place of a generator: everybody who draws gets the same number."""

    u = 0.0

    def random(self, size=None):
        return self.u if size is None else np.full(size, self.u)


def choose(mask, rng, heeding):
    """One action per environment: mostly within the mask, else any."""
    within = np.where(mask.astype(bool), rng.random(mask.shape), -1.0).argmax(axis=1)
    return np.where(rng.random(len(mask)) < heeding, within, rng.integers(mask.shape[1], size=len(mask)))


def check_agent(single, i, b, seen, info):
    """Observation and infos of one environment of a batch are those of a single one."""
    expected = single.play.observation(i)
    shown = {key: x[b] for key, x in seen.items()} if isinstance(seen, dict) else seen[b]
    assert data_equivalence(shown, expected, exact=True)
    play = single.play
    assert np.array_equal(info["action_mask"][b], play.mask[i])
    flags = play.episode.violated, play.safe, i in play.illegal
    assert (info["violated"][b], info["safe"][b], info["illegal"][b]) == flags
    for name, spent, left, cost in zip(
        constraint_names(play.game.constraints).values(), play.spent, play.remaining, play.costs, strict=True
    ):
        assert (info[f"spent_{name}"][b], info[f"remaining_{name}"][b]) == (float(spent), float(left))
        assert info[f"cost_{name}"][b] == float(cost)
    assert info["cost"][b] == pytest.approx(sum(float(play.costs[m]) for m in play.charged[i]))


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("options", [{}, {"mask": "available", "observation": "vector", "illegal": -3.0}])
@pytest.mark.parametrize("game", [*ONE, *MANY])
def test_every_environment_of_a_batch_is_a_single_one(game, options, mode):
    made, size = {**ONE, **MANY}[game](), 12
    draw, rng = SameDraw(), np.random.default_rng(1)
    batch = pz.vector_env(made, num_envs=size, autoreset_mode=mode, **options)
    singles = [pz.parallel_env(made, **options) for _ in range(size)]
    for env in (batch, *singles):
        env._rng = draw
    draw.u = rng.random()
    seen, infos = batch.reset()
    for env in singles:
        env.reset()
    for _ in range(3 * made.horizon):
        draw.u = rng.random()
        actions = {a: choose(infos[a]["action_mask"], rng, 0.95) for a in batch.agents}
        seen, rewards, ended, cut, infos = batch.step(actions)
        for b, single in enumerate(singles):
            if single.agents:
                _, own, over, *_ = single.step({a: int(actions[a][b]) for a in batch.agents})
                assert all(rewards[a][b] == own[a] and ended[a][b] == over[a] and not cut[a][b] for a in own)
                if mode == "SameStep" and not single.agents:
                    for i, a in enumerate(batch.agents):
                        last = infos[a]["final_obs"][b]
                        assert data_equivalence(last, single.play.observation(i))
                        assert infos[a]["_final_obs"][b]
                        assert infos[a]["final_info"]["violated"][b] == single.play.episode.violated
                    single.reset()
            else:
                single.reset()
                assert not any(ended[a][b] or rewards[a][b] for a in batch.agents)
            assert batch.situation(b) == single.situation
            for i, a in enumerate(batch.agents):
                check_agent(single, i, b, seen[a], infos[a])


@pytest.mark.parametrize("game", ONE)
def test_the_vector_environment_of_one_player_is_that_of_its_agent(game):
    made = ONE[game]()
    alone, by_agent = adapter.vector_env(made, num_envs=5), pz.vector_env(made, num_envs=5)
    (agent,) = by_agent.agents
    answer, told_by_agent = alone.reset(seed=4), by_agent.reset(seed=4)
    for _ in range(2 * made.horizon + 3):
        actions = answer[-1]["action_mask"].argmax(axis=1)
        answer, told_by_agent = alone.step(actions), by_agent.step({agent: actions})
        infos = {key: x for key, x in answer[-1].items() if not key.startswith("_")}
        parts = [*answer[:-1], infos]
        expected = [part[agent] for part in told_by_agent]
        assert data_equivalence(parts, expected, exact=True)
        assert alone.observation_space.contains(answer[0])
        assert all(answer[-1][f"_{key}"].all() for key in infos)


def test_outcomes_are_drawn_apart_and_by_their_probabilities():
    env = adapter.vector_env(delivery(), num_envs=20_000, mask="available")
    env.reset(seed=3)
    first = env.play.batch.state.copy()
    assert abs((first == 0).mean() - 0.5) < 0.02
    *_, infos = env.step(np.full(20_000, env.game.actions[0].index("drive")))
    assert not infos["illegal"].any()
    assert abs((infos["cost_fuel"] == 2).mean() - 0.25) < 0.02
    both = (first == 0) & (infos["cost_fuel"] == 2)
    assert abs(both.mean() - 0.125) < 0.02


def test_a_shield_that_rounds_counts_in_its_own_cells():
    stats = pytest.importorskip("scipy.stats")
    cost = lambda a: stats.uniform(0, 0.4 * a[0]) if a[0] else 0  # noqa: E731
    game = spending((0, 1, 2), horizon=4, budget={"c": 2}, cost=cost, reward=list)
    shield = ace.Shield(game, epsilon=0.4)
    env, rng = adapter.vector_env(game, num_envs=200, shield=shield), np.random.default_rng(0)
    _, infos = env.reset(seed=1)
    seen = set()
    for _ in range(12):
        for b in range(0, 200, 20):
            if not env.play.ended[b]:
                expected = shield.product(*env.play.batch.counted_pair(b))[0]
                assert np.array_equal(infos["action_mask"][b].astype(bool), expected)
                seen.add(expected.tobytes())
        *_, infos = env.step(choose(infos["action_mask"], rng, 1.0))
        assert infos["safe"].all() and (infos["spent_c"] <= 2).all()
    assert len(seen) > 1


# -- Gymnasium's and PettingZoo's interfaces ----------------------------------------------------------


def test_seeds_and_copies():
    env = adapter.vector_env(delivery(), num_envs=50)
    plays = []
    for made in (env, env, pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
        _, info = made.reset(seed=7)
        steps = [made.step(info["action_mask"].argmax(axis=1))[0]["observation"] for _ in range(7)]
        plays.append(np.stack(steps))
    assert all(np.array_equal(plays[0], play) for play in plays)
    env.reset(seed=8)
    assert not np.array_equal(plays[0][0], env.step(np.zeros(50, dtype=int))[0]["observation"])


def test_spaces_and_metadata():
    env = adapter.vector_env(delivery(), num_envs=3)
    assert isinstance(env, gymnasium.vector.VectorEnv)
    mode = env.metadata["autoreset_mode"]
    assert getattr(mode, "value", mode) == "NextStep"
    seen, _ = env.reset(seed=0)
    single = adapter.env(delivery())
    assert env.single_observation_space == single.observation_space
    assert env.single_action_space == single.action_space
    assert all(x in env.single_observation_space for x in iterate(env.observation_space, seen))
    assert env.action_masks().shape == (3, 3)
    agents = pz.vector_env(tolls(), num_envs=3)
    parallel = pz.parallel_env(tolls())
    for a in agents.possible_agents:
        assert agents.single_observation_space(a) == parallel.observation_space(a)
        assert agents.single_action_space(a) == parallel.action_space(a)
        assert agents.observation_space(a).contains(agents.reset(seed=0)[0][a])
        assert agents.action_space(a).contains(np.zeros(3, dtype=np.int64))


def test_some_environments_are_reset_by_hand():
    env = adapter.vector_env(ace.catalog.get("knapsack"), num_envs=3, autoreset_mode="Disabled")
    env.reset(seed=0)
    for _ in range(10):
        *_, ended, _, _ = env.step(np.ones(3, dtype=int))
    assert ended.all()
    env.reset(options={"reset_mask": np.array([True, False, True])})
    with pytest.raises(ace.InvalidOption, match="environment 1: the episode is over"):
        env.step(np.ones(3, dtype=int))
    env.reset(options={"reset_mask": np.array([False, True, False])})
    env.step(np.ones(3, dtype=int))
    with pytest.raises(ace.InvalidOption, match="reset_mask: got int64"):
        env.reset(options={"reset_mask": np.array([0, 1, 1])})


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 1], "must be 3 whole numbers"),
        ([0.0, 1.0, 1.0], "must be 3 whole numbers"),
        ([0, 5, 1], "environment 1: agent 'van' chose 5, must be a whole number from 0 to 2"),
        (None, "must be 3 whole numbers"),
    ],
)
def test_wrong_actions_are_refused(actions, message):
    env = adapter.vector_env(delivery(), num_envs=3)
    with pytest.raises(ace.InvalidOption, match="call reset"):
        env.step([0, 0, 0])
    env.reset(seed=0)
    with pytest.raises(ace.InvalidOption, match=message):
        env.step(actions)


def test_what_is_not_offered_can_be_an_error():
    env = adapter.vector_env(delivery(), num_envs=40, illegal=None)
    env.reset(seed=0)
    fill = env.game.actions[0].index("fill")
    with pytest.raises(ace.InvalidOption, match=r"environment \d+, t=0, state 'town', .*'fill'"):
        env.step(np.full(40, fill))


def test_wrong_options_are_refused():
    with pytest.raises(ace.InvalidOption, match="the game has 2 players"):
        adapter.vector_env(tolls(), num_envs=2)
    for wrong, message in (
        ({"num_envs": 0}, "num_envs: got 0"),
        ({"autoreset_mode": "now"}, "autoreset_mode"),
        ({"render_mode": "ansi"}, "unknown option 'render_mode'"),
    ):
        with pytest.raises(ace.InvalidOption, match=message):
            adapter.vector_env(delivery(), **{"num_envs": 2, **wrong})
    env = pz.vector_env(tolls(), num_envs=2)
    with pytest.raises(ace.InvalidOption, match="seed: got"):
        env.reset(seed=[1, 2])
    env.reset(seed=1)
    with pytest.raises(ace.InvalidOption, match="none for 'q'"):
        env.step({"p": [0, 0]})


# -- ids ----------------------------------------------------------------------------------------------


def test_every_catalog_game_of_one_player_has_an_id():
    assert [name for name in ace.catalog.names() if len(ace.catalog.get(name).players) == 1] == list(ONE_PLAYER)
    for name in ONE_PLAYER:
        env = gymnasium.make(f"acegames.adapters.gymnasium:acegames/{name}-v0")
        assert env.unwrapped.game.digest == ace.catalog.get(name).digest
        assert env.spec.id == f"acegames/{name}-v0"
        again = gymnasium.make(env.spec)
        assert again.unwrapped.game.digest == env.unwrapped.game.digest


def gymnasium_vector(number):
    return gymnasium.make_vec("acegames/knapsack-v0", num_envs=number, capacity=100)


def test_parameters_and_options_go_with_the_id():
    env = gymnasium.make("acegames/knapsack-v0", capacity=100, observation="vector", render_mode="ansi")
    assert env.unwrapped.game.digest == ace.catalog.get("knapsack", capacity=100).digest
    seen, _ = env.reset(seed=0)
    assert seen.shape == (3,)
    many = gymnasium.make_vec("acegames/knapsack-v0", num_envs=4, capacity=100, autoreset_mode="SameStep")
    assert many.num_envs == 4 and many.game.digest == env.unwrapped.game.digest
    assert len(many.reset(seed=0)[0]["observation"]) == 4
    side_by_side = gymnasium.make_vec("acegames/knapsack-v0", num_envs=2, capacity=100, vectorization_mode="sync")
    assert data_equivalence(side_by_side.reset(seed=0)[0], gymnasium_vector(2).reset(seed=0)[0])
    yours = gymnasium.make_vec("acegames/game-v0", num_envs=2, game=delivery(), mask="available")
    assert yours.play.shield is None
    with pytest.raises(ace.InvalidOption, match="did you mean 'capacity'"):
        gymnasium.make("acegames/knapsack-v0", capacty=3)
    with pytest.raises(ace.InvalidOption, match="game= is missing"):
        gymnasium.make("acegames/game-v0")


def test_ids_are_known_without_loading_a_game_or_a_compiler():
    code = """
import sys, gymnasium
gymnasium.spec  # nothing of acegames is there yet
assert "acegames/knapsack-v0" not in gymnasium.registry
import acegames.adapters.gymnasium, importlib
importlib.reload(acegames.adapters.gymnasium)
assert "acegames/knapsack-v0" in gymnasium.registry
assert not {"numba", "pettingzoo", "matplotlib", "acegames.catalog.knapsack"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
