"""Environments in which agents take turns, with PettingZoo's AEC interface, to be read as games."""

from __future__ import annotations

import functools

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv

from acegames.learn import END
from acegames.model.from_functions import ask_functions


class Sticks(AECEnv):
    """Take one or two sticks; each pays its taker and annoys who is next. Who takes two of four drops out."""

    metadata = {"name": "sticks", "is_parallelizable": False, "render_modes": []}  # noqa: RUF012
    possible_agents = ["ann", "bob", "cat"]  # noqa: RUF012

    def __init__(self, pile=6):
        super().__init__()
        self.sticks, self.render_mode = pile, None

    @functools.cache  # noqa: B019
    def observation_space(self, agent):
        mask = spaces.Box(0, 1, (2,), np.int8)
        return spaces.Dict({"observation": spaces.Discrete(self.sticks + 1), "action_mask": mask})

    @functools.cache  # noqa: B019
    def action_space(self, agent):
        return spaces.Discrete(2)

    def observe(self, agent):
        free = [agent == self.agent_selection and self.pile > k for k in range(2)]
        return {"observation": np.int64(self.pile), "action_mask": np.array(free, dtype=np.int8)}

    def reset(self, seed=None, options=None):
        self.agents, self.pile = list(self.possible_agents), self.sticks
        self.rewards, self._cumulative_rewards = dict.fromkeys(self.agents, 0), dict.fromkeys(self.agents, 0)
        self.terminations, self.truncations = dict.fromkeys(self.agents, False), dict.fromkeys(self.agents, False)
        self.infos = {a: {} for a in self.agents}
        self.agent_selection = self.agents[0]

    def step(self, action):
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        assert self.observe(agent)["action_mask"][action], "played against the mask"
        self._cumulative_rewards[agent] = 0
        self._clear_rewards()
        following = self.agents[(self.agents.index(agent) + 1) % len(self.agents)]
        self.rewards[agent] = action + 1.0
        self.rewards[following] -= 0.5
        self.infos[agent] = {"cost": {"effort": action + 1}}
        self.terminations[agent] = bool(self.pile == 4 and action == 1)
        self.pile -= action + 1
        if not self.pile:
            self.terminations = dict.fromkeys(self.agents, True)
        self._accumulate_rewards()
        self.agent_selection = following
        self._deads_step_first()


def whose_pile(env, observations):
    return (env.agent_selection, env.pile, tuple(env.agents))


def sticks_game(pile=6, horizon=5, budget=None):
    """The same game by its rules, without an environment."""
    players = Sticks.possible_agents

    def actions(t, state):
        if state == END:
            return [("(none)",)] * 3
        mover, left, _ = state
        return [tuple(range(min(2, left))) if p == mover else ("(none)",) for p in players]

    def after(state, action):
        mover, left, there = state
        taken = action[players.index(mover)]
        following = there[(there.index(mover) + 1) % len(there)]
        stay = tuple(p for p in there if not (p == mover and left == 4 and taken == 1))
        return END if left == taken + 1 else (following, left - taken - 1, stay), taken + 1, mover, following

    def outcomes(t, state, action):
        if state == END:
            return [(1, END, {})]
        following, taken, *_ = after(state, action)
        return [(1, following, {"effort": taken} if budget else {})]

    def reward(t, state, action):
        if state == END:
            return (0, 0, 0)
        _, taken, mover, following = after(state, action)
        return [taken * (p == mover) - 0.5 * (p == following) for p in players]

    start = (players[0], pile, tuple(players))
    said = {"players": players, "horizon": horizon, "initial": start, "budget": budget, "name": "sticks"}
    ask = {"actions": actions, "outcomes": outcomes, "reward": reward, "legal": None, "constraints": None}
    return ask_functions(**ask, **said, offered=[range(2)] * 3)  # numbered as the environment's
