"""MaskablePPO with several agents: one network plays every agent, each within its own mask.

Agents choose at once. To Stable-Baselines3 every agent of every copy of the game is one environment
of a vector (examples/sb3_agents.py): it sees the state, the time, what is left of each budget and who it is,
and is paid its own reward. The masks are the products of the shield, so that no budget can break;
without it, those of the same game without its budgets, so that budgets are the only difference.

Run: python examples/maskable_ppo.py [folder for the curves and the picture]
Needs: pip install 'acegames[learners,pettingzoo,plot]'; no GPU, a minute for each of 12 trainings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from learning_curves import NO_SHIELD, SHIELD, Bin, Episode, compare
from sb3_agents import AgentsVecEnv
from sb3_contrib import MaskablePPO
from showing import run
from stable_baselines3.common.vec_env import VecEnvWrapper

import acegames as ace
from acegames.adapters.environments.env_interface import Options
from acegames.adapters.pettingzoo import parallel_env
from acegames.adapters.pettingzoo.pz_environments import GameParallelEnv


def drones_in_numbers(state: Any) -> list[float]:
    """Places of the drones, who waits, and the pack: better to learn from than a state's number."""
    red, blue, waiting, pack = state
    return [*red, *blue, *(village in waiting for village in ("school", "clinic", "farm")), pack == "pack"]


GAMES = {"intersection": None, "drones": drones_in_numbers}


class Counted(VecEnvWrapper):
    """The agents; it counts itself what is earned and how often a budget is exceeded."""

    def __init__(self, agents: Any, game: ace.MarkovGame) -> None:
        super().__init__(agents)
        self.players, self.names = len(game.players), agents.get_attr("constraint_names")[0].values()
        self.budgets = [list(map(float, row)) for row in game.budgets]
        self.now = [Count() for _ in range(self.num_envs // self.players)]
        self.steps, self.episodes = 0, []

    def reset(self) -> np.ndarray:
        """Begin an episode in every copy."""
        return self.venv.reset()

    def seed(self, seed: int | None = None) -> Any:
        """Seed the copies so that no two trainings share a seed."""
        return self.venv.seed(None if seed is None else seed * len(self.now))

    def step_wait(self) -> Any:
        """Play one step in every copy."""
        seen, paid, ended, infos = self.venv.step_wait()
        for k, count in enumerate(self.now):
            slots = slice(k * self.players, (k + 1) * self.players)
            spent = [infos[slots.start][f"spent_{name}"] for name in self.names]
            count.over += any(c > bound for c, bound in zip(spent, self.budgets[count.t], strict=True))
            count.t, count.total, self.steps = count.t + 1, count.total + float(paid[slots].sum()), self.steps + 1
            if ended[slots.start]:
                self.episodes.append(Episode(self.steps, count.total, count.over))
                self.now[k] = Count()
        return seen, paid, ended, infos


@dataclass
class Count:
    """An episode so far: its steps, those that ended over a budget, and what was earned."""

    t: int = 0
    over: int = 0
    total: float = 0.0


class WithoutBudgets(GameParallelEnv):
    """A game with the masks that it would have without its budgets."""

    def __init__(self, game: ace.MarkovGame, shield: ace.Shield, features: Any) -> None:
        super().__init__(game, Options(mask="available", illegal=None, features=features))
        self.shield = shield

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        """Begin an episode."""
        seen, infos = super().reset(seed, options)
        return self._masked(seen), infos

    def step(self, actions: Any) -> Any:
        """Play one action number per agent."""
        seen, *rest = super().step(actions)
        return (self._masked(seen) if self.agents else seen), *rest

    def _masked(self, seen: Any) -> Any:
        products = zip(seen, self.shield.product(*self.situation), strict=True)
        return {agent: {**seen[agent], "action_mask": mask.astype(np.int8)} for agent, mask in products}


def agents_of(name: str, how: str, copies: int) -> Counted:
    """All agents of some copies of a game, with the masks of its shield or without budgets."""
    game, features = ace.catalog.get(name), GAMES[name]
    if how == SHIELD:
        shield = ace.Shield(game)
        agents = AgentsVecEnv(lambda: parallel_env(game, shield=shield, illegal=None, features=features), copies)
    else:
        free = ace.Shield(ace.baselines.without_budgets(game))
        agents = AgentsVecEnv(lambda: WithoutBudgets(game, free, features), copies)
    return Counted(agents, game)


def learn(name: str, how: str, *, steps: int, seed: int, copies: int = 32) -> list[Episode]:
    """Train one network for so many steps of a game; return its episodes."""
    agents = agents_of(name, how, copies)
    model = MaskablePPO(
        "MlpPolicy",
        agents,
        n_steps=64,  # of each copy between two updates
        batch_size=1024,
        n_epochs=5,
        learning_rate=1e-3,
        gamma=1.0,
        ent_coef=0.01,
        seed=seed,
        device="cpu",
    )
    model.learn(total_timesteps=steps * agents.players)
    return agents.episodes


def main(folder: str | None = None, *, steps: int = 102_400, seeds: int = 3) -> list[Bin]:
    """Train with the shield and without, print the table; with a folder, draw the curves."""
    torch.set_num_threads(1)  # the networks are small
    return compare("maskable_ppo", learn, GAMES, (SHIELD, NO_SHIELD), folder, steps=steps, seeds=seeds)


if __name__ == "__main__":
    run(main)
