"""PPO of RLlib with several agents, each with a network of its own and within its own mask.

RLlib has a module for action masks (`ActionMaskingTorchRLModule`). It looks for them, as floats,
beside the key "observations", so the environments are made with `style="rllib"`. With the masks of
the shield no budget breaks; with masks that allow every legal action, budgets do.

Run: python examples/rllib_ppo.py [iterations]
Needs: pip install 'acegames[pettingzoo]' 'ray[rllib]' torch; no GPU, a few minutes.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule

import acegames as ace
from acegames.adapters.pettingzoo import parallel_env


class Episode(NamedTuple):
    """What all agents earned together, and how many steps ended over a budget."""

    total: float
    over: int


class Counted(ParallelPettingZooEnv):
    """RLlib's wrapper; it counts itself what is earned and how often a budget is exceeded."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.game = ace.catalog.get(config["game"])
        self.episodes: list[Episode] = []
        super().__init__(parallel_env(self.game, mask=config["mask"], style="rllib"))

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> Any:
        """Begin an episode."""
        self.total, self.over, self.t = 0.0, 0, 0
        return super().reset(seed=seed, options=options)

    def step(self, action_dict: dict[str, int]) -> Any:
        """Play a step."""
        seen, rewards, terminated, truncated, infos = super().step(action_dict)
        info = infos[self.game.players[0]]
        spent = [info[f"spent_{name}"] for name in self.par_env.constraint_names.values()]
        self.over += any(c > float(bound) for c, bound in zip(spent, self.game.budgets[self.t], strict=True))
        self.total, self.t = self.total + sum(rewards.values()), self.t + 1
        if terminated["__all__"]:
            self.episodes.append(Episode(self.total, self.over))
        return seen, rewards, terminated, truncated, infos


def learn(name: str, mask: str, *, iterations: int, steps: int = 1000, seed: int = 0) -> list[Episode]:
    """Train with masks of a kind, for so many iterations of so many steps; return the episodes."""
    players = ace.catalog.get(name).players
    modules = {player: RLModuleSpec(module_class=ActionMaskingTorchRLModule) for player in players}
    config = (
        PPOConfig()
        .environment(Counted, env_config={"game": name, "mask": mask})
        .env_runners(num_env_runners=0)
        .multi_agent(policies=set(modules), policy_mapping_fn=lambda agent, episode, **kwargs: agent)
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs=modules))
        .training(train_batch_size_per_learner=steps, minibatch_size=steps // 4, num_epochs=5, lr=1e-3, gamma=1.0)
        .debugging(seed=seed, log_level="ERROR")
    )
    algorithm = config.build_algo()
    for _ in range(iterations):
        algorithm.train()
    (env,) = algorithm.env_runner.env.unwrapped.envs
    algorithm.stop()
    return env.unwrapped.episodes


def main(iterations: int = 20) -> dict[str, list[Episode]]:
    """Train with the shield and without; print what was earned, and how often a budget broke."""
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    found = {mask: learn("drones", mask, iterations=iterations) for mask in ("safe", "available")}
    ray.shutdown()
    for mask, episodes in found.items():
        broken, last = sum(episode.over > 0 for episode in episodes), episodes[-len(episodes) // 5 :]
        earned = sum(episode.total for episode in last) / len(last)
        print(f"mask={mask!r}: {broken} of {len(episodes)} episodes broke a budget; the last earned {earned:.2f}")
    return found


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
