"""Parallel environments of PettingZoo's own kind, to be read as games and to be shielded."""

from __future__ import annotations

import functools

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

import acegames as ace


class Small(ParallelEnv):
    """An environment whose agents have the same spaces, `observations` and so many `choices`."""

    metadata = {"name": "small"}  # noqa: RUF012
    observations, choices, render_mode = spaces.Discrete(2), 2, None

    @functools.cache  # noqa: B019
    def observation_space(self, agent):
        return self.observations

    @functools.cache  # noqa: B019
    def action_space(self, agent):
        return spaces.Discrete(self.choices)


class Rovers(Small):
    """Two rovers on six cells: 0 waits, 1 drives, 2 races two cells. A gust costs one more for each that moves."""

    metadata = {"name": "rovers"}  # noqa: RUF012
    possible_agents = ["red", "blue"]  # noqa: RUF012
    observations, choices = spaces.MultiDiscrete([6, 6]), 3

    def __init__(self, gusts=0.0, limit=None):
        self.gusts, self.limit = gusts, limit

    def reset(self, seed=None, options=None):
        self.rng, self.agents, self.at = np.random.default_rng(seed), list(self.possible_agents), np.array([0, 0])
        self.steps = 0
        return {a: self.at.copy() for a in self.agents}, {a: {} for a in self.agents}

    def state(self):
        return self.at.copy()

    def step(self, actions):
        who = list(self.agents)
        moves = np.array([actions[a] for a in who])
        gust = self.gusts > 0 and self.rng.random() < self.gusts
        battery = int(np.array([0, 1, 3])[moves].sum() + gust * (moves > 0).sum())
        before, self.at, self.steps = self.at, np.minimum(self.at + moves, 5), self.steps + 1
        pay = (self.at - before) * np.where(self.at > self.at[::-1], 2.0, 1.0)
        over, late = bool((self.at == 5).all()), self.limit == self.steps
        self.agents = [] if over or late else who
        return (
            {a: self.at.copy() for a in who},
            dict(zip(who, pay.tolist(), strict=True)),
            dict.fromkeys(who, over),
            dict.fromkeys(who, late),
            {a: {"cost": {"battery": battery}} for a in who},
        )


def set_cells(env, cells):
    env.at = np.array(cells)


class Table(ParallelEnv):
    """A game as a minimal environment: actions are numbers, illegal ones are masked, costs are told, outcomes drawn."""

    metadata = {"name": "table"}  # noqa: RUF012

    def __init__(self, game):
        self.game, self.possible_agents, self.render_mode = game, list(game.players), None

    @functools.cache  # noqa: B019
    def observation_space(self, agent):
        return spaces.Dict(
            {"observation": spaces.Discrete(len(self.game.states)), "action_mask": self._mask_space(agent)}
        )

    def _mask_space(self, agent):
        return spaces.Box(0, 1, (len(self.game.actions[self.game.players.index(agent)]),), np.int8)

    @functools.cache  # noqa: B019
    def action_space(self, agent):
        return spaces.Discrete(len(self.game.actions[self.game.players.index(agent)]))

    def reset(self, seed=None, options=None):
        self.rng, self.agents, self.t = np.random.default_rng(seed), list(self.possible_agents), 0
        starts, weights = zip(*self.game.initial, strict=True)
        self.s = int(self.rng.choice(starts, p=weights))
        return self._observed(), {a: {} for a in self.agents}

    def label(self):
        return self.game.states[self.s]

    def _rows(self):
        layer = self.game.layer(min(self.t, self.game.horizon - 1))
        return {tuple(layer.action[r].tolist()): r for r in layer.rows(self.s)}

    def _observed(self):
        legal = list(self._rows())
        masks = [np.isin(np.arange(len(acts)), [a[i] for a in legal]) for i, acts in enumerate(self.game.actions)]
        return {
            p: {"observation": self.s, "action_mask": mask.astype(np.int8)}
            for p, mask in zip(self.possible_agents, masks, strict=True)
        }

    def step(self, actions):
        layer = self.game.layer(self.t)
        row = self._rows()[tuple(int(actions[p]) for p in self.possible_agents)]
        outs = layer.outcomes(row)
        k = outs.start + self.rng.choice(outs.stop - outs.start, p=layer.prob[outs])
        paid = [ace.model.numbers.plain(v[c]) for v, c in zip(self.game.cost_values, layer.cost[k], strict=True)]
        self.s, self.t = int(layer.next_state[k]), self.t + 1
        done = self.t == self.game.horizon
        who, self.agents = self.agents, [] if done else self.agents
        return (
            self._observed(),
            dict(zip(who, layer.reward[row].tolist(), strict=True)),
            dict.fromkeys(who, False),
            dict.fromkeys(who, done),
            {a: {"cost": dict(zip(self.game.constraints, paid, strict=True))} for a in who},
        )


def table_legal(game):
    """Which joint actions a game allows, by numbers."""

    def legal(t, state, action):
        layer = game.layer(t)
        return any(tuple(layer.action[r].tolist()) == action for r in layer.rows(game.state_index(state)))

    return legal


class Relay(Small):
    """Two runners. The first drops out after its first 1; the second plays on, until it says 1 as well."""

    possible_agents = ["first", "second"]  # noqa: RUF012

    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        return dict.fromkeys(self.agents, 1), {a: {} for a in self.agents}

    def step(self, actions):
        assert list(actions) == self.agents
        who = list(self.agents)
        gone = {a: bool(actions[a] == 1 and (a == "first" or "first" not in who)) for a in who}
        self.agents = [a for a in who if not gone[a]]
        infos = {a: {"cost": {"effort": sum(map(int, actions.values()))}} for a in who}
        return dict.fromkeys(who, 1), dict.fromkeys(who, 1.0), gone, dict.fromkeys(who, False), infos


def who_is_there(env, observations):
    return "+".join(env.agents)
