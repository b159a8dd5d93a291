"""Environments of every kind whose steps draw by a function of their generator, which each makes in its own way."""

from __future__ import annotations

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo import AECEnv, ParallelEnv

ONE = spaces.Discrete(1)


class DrawsAlone(gymnasium.Env):
    """Gymnasium's, with `np_random`."""

    observation_space = action_space = ONE

    def __init__(self, draw, make=None, at_reset=False):
        self.draw, self.make, self.at_reset = draw, make, at_reset

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.np_random = self.make(seed) if self.make else self.np_random
        self.drawn = self.draw(self.np_random) if self.at_reset else "start"
        return 0, {}

    def step(self, action):
        self.drawn = self.draw(self.np_random)
        return 0, 0.0, False, False, {}


class DrawsAtOnce(ParallelEnv):
    """Two agents act at once; the generator is numpy's own, made in `reset`, or what `make(seed)` gives."""

    metadata = {"name": "draws"}  # noqa: RUF012
    possible_agents = ["a", "b"]  # noqa: RUF012

    def __init__(self, draw, make=None, at_reset=False):
        self.draw, self.make, self.at_reset = draw, make, at_reset

    def action_space(self, agent):
        return ONE

    def reset(self, seed=None, options=None):
        self.rng = self.make(seed) if self.make else np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self.drawn = self.draw(self.rng) if self.at_reset else "start"
        return dict.fromkeys(self.agents, 0), {a: {} for a in self.agents}

    def step(self, actions):
        self.drawn = self.draw(self.rng)
        none = dict.fromkeys(self.agents, False)
        return dict.fromkeys(self.agents, 0), dict.fromkeys(self.agents, 0.0), none, none, {a: {} for a in self.agents}


class DrawsInTurn(AECEnv):
    """Two agents take turns; the generator is made by Gymnasium's `seeding`, if there is a seed, as by `__init__`."""

    metadata = {"name": "draws", "is_parallelizable": False}  # noqa: RUF012
    possible_agents = ["a", "b"]  # noqa: RUF012

    def __init__(self, draw, make=None, at_reset=False):
        super().__init__()
        self.draw, self.make, self.at_reset, self.render_mode = draw, make, at_reset, None
        self.np_random, _ = seeding.np_random(3)

    def action_space(self, agent):
        return ONE

    observation_space = action_space

    def observe(self, agent):
        return 0

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.np_random, _ = seeding.np_random(seed)
        self.np_random = self.make(seed) if self.make else self.np_random
        self.drawn = self.draw(self.np_random) if self.at_reset else "start"
        self.agents, self.agent_selection = list(self.possible_agents), "a"
        self.rewards, self._cumulative_rewards = dict.fromkeys(self.agents, 0), dict.fromkeys(self.agents, 0)
        self.terminations, self.truncations = dict.fromkeys(self.agents, False), dict.fromkeys(self.agents, False)
        self.infos = {a: {} for a in self.agents}

    def step(self, action):
        self.drawn = self.draw(self.np_random)
        self.agent_selection = "b" if self.agent_selection == "a" else "a"
