"""MaskablePPO with several agents: one network plays every agent, each within its own mask.

Agents choose at once. To Stable-Baselines3 every agent of every copy of the game is one environment
of a vector: it sees the state, the time, what is left of each budget and who it is, and is paid its
own reward. The masks are the products of the shield, so that no budget can break; without it, those
of the same game without its budgets, so that budgets are the only difference.

Run: python examples/maskable_ppo.py [folder for the curves and the picture]
Needs: pip install 'acegames[learners,pettingzoo,plot]'; no GPU, a minute for each of 12 trainings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from learning_curves import NO_SHIELD, SHIELD, Bin, Episode, compare
from sb3_contrib import MaskablePPO
from showing import run
from stable_baselines3.common.vec_env import VecEnv

import acegames as ace
from acegames.adapters.pettingzoo import parallel_env


def drones_in_numbers(state: Any) -> list[float]:
    """Places of the drones, who waits, and the pack: better to learn from than a state's number."""
    red, blue, waiting, pack = state
    return [*red, *blue, *(village in waiting for village in ("school", "clinic", "farm")), pack == "pack"]


GAMES = {"intersection": None, "drones": drones_in_numbers}


class Copy:
    """One copy of the game; it counts itself what is earned and how often a budget is exceeded."""

    def __init__(self, game: ace.MarkovGame, shield: ace.Shield, features: Any) -> None:
        self.env = parallel_env(game, mask="available", illegal=None, observation="vector", features=features)
        self.shield = shield
        self.agents = list(self.env.possible_agents)
        self.budgets = [dict(zip(game.constraints, map(float, row), strict=True)) for row in game.budgets]

    def begin(self, seed: int | None = None) -> np.ndarray:
        """Begin an episode; return what each agent sees, (N, size)."""
        seen, _ = self.env.reset(seed=seed)
        self.t = self.over = 0
        self.total = 0.0
        return self._shown(seen)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Play one action per agent; return what each sees (N, size) and is paid (N,)."""
        seen, rewards, *_, infos = self.env.step(dict(zip(self.agents, actions.tolist(), strict=True)))
        spent = infos[self.agents[0]]["spent"]
        self.over += any(spent[c] > bound for c, bound in self.budgets[self.t].items())
        self.t += 1
        paid = np.array([rewards[a] for a in self.agents], dtype=np.float32)
        self.total += float(paid.sum())
        return self._shown(seen), paid

    def masks(self) -> tuple[np.ndarray, ...]:
        """What each agent may choose now, at once and alone."""
        return self.shield.product(*self.env.situation)

    def _shown(self, seen: dict[str, np.ndarray]) -> np.ndarray:
        """The vector, and who one is."""
        return np.hstack([np.stack([seen[a] for a in self.agents]), np.eye(len(self.agents), dtype=np.float32)])


class Agents(VecEnv):
    """All agents of some copies of a game, copy by copy, each agent as one environment."""

    def __init__(self, game: ace.MarkovGame, shield: ace.Shield, features: Any, *, copies: int, seed: int) -> None:
        self.copies = [Copy(game, shield, features) for _ in range(copies)]
        self.first_seeds = range(seed * copies, (seed + 1) * copies)
        self.steps, self.episodes = 0, []
        self.players, self.actions = len(game.players), max(map(len, game.actions))
        seen = spaces.Box(-1.0, 1.0, (self.copies[0].env.layout.size + self.players,), np.float32)
        super().__init__(copies * self.players, seen, spaces.Discrete(self.actions))

    def reset(self) -> np.ndarray:
        """Begin an episode in every copy."""
        return np.concatenate([copy.begin(seed) for copy, seed in zip(self.copies, self.first_seeds, strict=True)])

    def step_async(self, actions: np.ndarray) -> None:
        """Take one action per agent of every copy."""
        self.chosen = actions.reshape(len(self.copies), self.players)

    def step_wait(self) -> Any:
        """Play one step in every copy; one that comes to its end begins anew."""
        seen, paid, ended, infos = [], [], [], []
        for copy, actions in zip(self.copies, self.chosen, strict=True):
            shown, rewards = copy.step(actions)
            over, self.steps = not copy.env.agents, self.steps + 1
            infos += [{"terminal_observation": last} if over else {} for last in shown]
            if over:
                self.episodes.append(Episode(self.steps, copy.total, copy.over))
                shown = copy.begin()
            seen.append(shown)
            paid.append(rewards)
            ended += [over] * self.players
        return np.concatenate(seen), np.concatenate(paid), np.array(ended), infos

    def action_masks(self) -> list[np.ndarray]:
        """The mask of every agent, filled up with False where another agent has more actions."""
        return [np.pad(mask, (0, self.actions - len(mask))) for copy in self.copies for mask in copy.masks()]

    def has_attr(self, attr_name: str) -> bool:
        """MaskablePPO asks for `action_masks`."""
        return attr_name == "action_masks"

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """One answer per agent."""
        return getattr(self, method_name)()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """One answer per agent; only `render_mode` is ever asked for."""
        return [{"render_mode": None}[attr_name]] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """There is nothing to set."""

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """No agent is wrapped."""
        return [False] * self.num_envs

    def close(self) -> None:
        """Nothing is held open."""


def learn(name: str, how: str, *, steps: int, seed: int, copies: int = 32) -> list[Episode]:
    """Train one network for so many steps of a game; return its episodes."""
    game = ace.catalog.get(name)
    shield = ace.Shield(game if how == SHIELD else ace.baselines.without_budgets(game))
    agents = Agents(game, shield, GAMES[name], copies=copies, seed=seed)
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
