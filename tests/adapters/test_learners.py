"""Learners of other libraries train on our environments, within the masks, and never break a budget; the examples help them to.

They need PyTorch and more; `make test-learners` installs all of it and runs this file.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

import acegames as ace
from acegames.adapters import pettingzoo as pz
from games import spending
from parallel_envs import Relay, Rovers

THEIRS = pytest.mark.filterwarnings("default")  # warnings of packages that are not ours
ROOT = Path(__file__).parents[2]


class Counting:
    """Makes environments, and counts steps that ended over a budget by what the environments themselves spend."""

    def __init__(self, make):
        self.make, self.steps, self.over = make, 0, 0

    def __call__(self):
        env = self.make()
        play, names = env.step, env.constraint_names
        budgets = (env.game if hasattr(env, "game") else env.shield.game).budgets

        def begin(seed=None, options=None, reset=env.reset):
            env.played = 0
            return reset(seed=seed, options=options)

        def step(actions):
            answer = play(actions)
            info = next(iter(answer[-1].values()))
            spent = [info[f"spent_{name}"] for name in names.values()]
            self.over += any(c > bound for c, bound in zip(spent, budgets[env.played], strict=True))
            env.played, self.steps = env.played + 1, self.steps + 1
            return answer

        env.reset, env.step = begin, step
        return env


def drones(mask, **options):
    return Counting(functools.partial(pz.parallel_env, ace.catalog.get("drones"), mask=mask, **options))


@pytest.fixture(scope="module")
def rovers():
    """A shield around an environment that is not a game of ours."""
    shield = ace.Shield(pz.from_parallel_env(Rovers(), horizon=5, budget={"battery": 8}))
    return Counting(functools.partial(shielded_rovers, shield))


def shielded_rovers(shield):
    return pz.shielded(Rovers(), shield, observation="vector")


def torch():
    module = pytest.importorskip("torch")
    module.set_num_threads(1)
    module.manual_seed(0)
    return module


# -- TorchRL ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@THEIRS
def test_torchrl_takes_every_environment(rovers):
    pytest.importorskip("torchrl")
    from torchrl.envs import PettingZooWrapper, check_env_specs

    game = ace.catalog.get("intersection")
    for observation in ("dict", "vector"):
        for mask in ("safe", "available"):
            check_env_specs(PettingZooWrapper(pz.parallel_env(game, mask=mask, observation=observation)))
        check_env_specs(PettingZooWrapper(pz.aec_env(game, observation=observation), use_mask=True))
    for options in ({}, {"observation": "vector"}, {"style": "rllib"}):
        check_env_specs(PettingZooWrapper(pz.shielded(Rovers(), rovers.make().shield, **options)))
    check_env_specs(PettingZooWrapper(pz.shielded_aec(Rovers(), rovers.make().shield), use_mask=True))
    with pytest.raises(Exception, match="dict"):  # as all were before
        PettingZooWrapper(pz.parallel_env(game, infos="nested"))


# -- BenchMARL --------------------------------------------------------------------------------------------------------


def experiment(task, folder, algorithm):
    from benchmarl.experiment import Experiment, ExperimentConfig
    from benchmarl.models.mlp import MlpConfig

    config = ExperimentConfig.get_from_yaml()
    config.sampling_device = config.train_device = config.buffer_device = "cpu"
    config.max_n_iters, config.max_n_frames = 3, None
    for kind, learning in (("on", "n_minibatch_iters"), ("off", "n_optimizer_steps")):
        setattr(config, f"{kind}_policy_collected_frames_per_batch", 120)
        setattr(config, f"{kind}_policy_n_envs_per_worker", 2)
        setattr(config, f"{kind}_policy_{learning}", 2)
    config.on_policy_minibatch_size = config.off_policy_train_batch_size = 60
    config.off_policy_memory_size = 1000
    config.evaluation, config.render, config.loggers, config.create_json = False, False, [], False
    config.save_folder, config.checkpoint_interval = str(folder), 0
    model = MlpConfig.get_from_yaml()
    return Experiment(task, algorithm.get_from_yaml(), model, seed=0, config=config, critic_model_config=model)


@pytest.mark.slow
@THEIRS
def test_benchmarl_trains_within_the_masks(rovers, tmp_path, example):
    pytest.importorskip("benchmarl")
    task = example("benchmarl_task").ParallelEnvTask
    torch()
    from benchmarl.algorithms import IppoConfig, IqlConfig, MappoConfig

    for algorithm, observation in ((MappoConfig, "dict"), (IqlConfig, "vector")):  # the mask is there, or in infos
        made = drones("safe", observation=observation)
        experiment(task(made), tmp_path, algorithm).run()
        assert made.steps >= 360 and made.over == 0
    made = drones("available")
    experiment(task(made), tmp_path, MappoConfig).run()
    assert made.over > 0
    experiment(task(rovers), tmp_path, IppoConfig).run()
    assert rovers.steps >= 360 and rovers.over == 0


@pytest.mark.slow
@THEIRS
def test_what_a_task_says_of_itself(rovers, example):
    pytest.importorskip("benchmarl")
    make = example("benchmarl_task").ParallelEnvTask
    task = make(rovers, groups={"all": ["red", "blue"]})
    env = task.get_env_fun(1, False, 0, "cpu")()
    assert task.max_steps(env) == 5 and task.group_map(env) == {"all": ["red", "blue"]}
    assert task.supports_discrete_actions() and not task.supports_continuous_actions()
    with pytest.raises(ValueError, match=r"max_steps: .* is not of a game"):
        make(Rovers)
    with pytest.raises(ValueError, match=r"make_env: BenchMARL stores tasks .* not a lambda"):
        make(lambda: pz.parallel_env(ace.catalog.get("drones")))


# -- RLlib ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@THEIRS
def test_rllib_trains_within_the_masks(example):
    ray = pytest.importorskip("ray")
    torch()
    ppo = example("rllib_ppo")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        for mask in ("safe", "available"):
            episodes = ppo.learn("drones", mask, iterations=2, steps=400)
            assert len(episodes) > 100
            assert (sum(episode.over for episode in episodes) == 0) == (mask == "safe")
    finally:
        ray.shutdown()


# -- Stable-Baselines3 ------------------------------------------------------------------------------------------------


@pytest.fixture
def slots(example):
    pytest.importorskip("stable_baselines3")
    return example("sb3_agents").AgentsVecEnv


@pytest.mark.slow
@THEIRS
def test_every_agent_of_every_copy_is_a_slot(slots):
    game = spending((0, 1), (0, 1, 2), players=["few", "many"], horizon=2, budget={"c": 2}, reward=list)
    shield, plain = ace.Shield(game), pz.parallel_env(game)
    env = slots(lambda: pz.parallel_env(game, shield=shield), 3)
    env.seed(5)
    seen = env.reset()
    assert env.num_envs == 6 and env.action_space.n == 3 and env.observation_space.contains(seen[0])
    alone, _ = plain.reset(seed=5)
    assert seen[0].tolist() == [*alone["few"]["observation"], 1, 0] and seen[5, -2:].tolist() == [0, 1]
    masks = np.stack(env.env_method("action_masks"))
    few, many = shield.product(0, "s", 0)
    assert masks[2].tolist() == [*few, False] and masks[3].tolist() == many.tolist()
    assert [mask.tolist() for mask in env.env_method("action_masks", indices=[3])] == [many.tolist()]
    assert env.has_attr("action_masks") and env.get_attr("action_masks", 3)[0]().tolist() == many.tolist()
    assert env.get_attr("game")[0] is game and not env.has_attr("nothing")
    chosen = np.array([np.flatnonzero(mask)[-1] for mask in masks])
    seen, paid, ended, infos = env.step(chosen)
    assert paid.tolist() == chosen.tolist() and not ended.any()
    assert infos[0]["spent_c"] == chosen[:2].sum()
    seen, _, ended, infos = env.step(np.zeros(6, int))
    assert ended.all() and not any(info["TimeLimit.truncated"] for info in infos)
    assert infos[0]["terminal_observation"][plain.layout.time] == 1 and seen[0, plain.layout.time] == 0
    assert np.stack(env.env_method("action_masks")).tolist() == masks.tolist(), "a new episode has begun"
    env.close()


@pytest.mark.slow
@THEIRS
def test_slots_of_agents_that_have_left(slots):
    env = slots(Relay, 1)
    env.reset()
    ended = [False, False]
    while not any(ended):
        _, paid, ended, _ = env.step(np.ones(2, int))
        if env.copies[0].env.agents == ["second"]:
            left = env.action_masks()[0], paid
    assert left[0].tolist() == [True, False] and all(ended)


@pytest.mark.slow
@THEIRS
def test_maskable_ppo_trains_within_the_masks(rovers, slots):
    sb3 = pytest.importorskip("sb3_contrib")
    from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

    torch()
    for made, safe in ((drones("safe"), True), (drones("available"), False), (rovers, True)):
        env = slots(made, 4)
        env.reset()
        assert is_masking_supported(env) and get_action_masks(env).shape == (8, env.action_space.n)
        before = made.steps
        sb3.MaskablePPO("MlpPolicy", env, n_steps=32, batch_size=64, n_epochs=2, seed=0, device="cpu").learn(1000)
        assert made.steps - before >= 500 and (made.over == 0) == safe


@pytest.mark.slow
@THEIRS
def test_what_is_no_environment_for_stable_baselines(slots):
    from gymnasium import spaces

    class Boxes(Rovers):
        def action_space(self, agent):
            return spaces.Box(0, 1, (1,))

    with pytest.raises(ValueError, match=r"agent 'red': action space Box.* must be Discrete"):
        slots(Boxes)


# -- the page -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@THEIRS
def test_what_the_page_shows_runs(capsys, monkeypatch):
    pytest.importorskip("sb3_contrib")
    pytest.importorskip("torchrl")
    torch()
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    page = (ROOT / "docs" / "with-other-libraries" / "learners.md").read_text()
    blocks = re.findall(r"^```py\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    shown, namespace = [block for block in blocks if "benchmarl" not in block], {"__name__": "docs"}
    assert len(shown) == 2, "BenchMARL's is the test above, for longer"
    for block in shown:
        exec(compile(block, "learners.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert printed.startswith("True\n") and "tensor([[[True" in printed
