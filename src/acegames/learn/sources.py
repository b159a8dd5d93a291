"""Where samples come from: a generative model, an environment with `reset` and `step`, or a known game that plays either part."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from acegames.errors import InvalidGame, InvalidOption
from acegames.learn.facts import END, Facts, facts_of
from acegames.learn.stepping import agents_of, check_env, cost_from_infos, joint_state, reset_env, step_env
from acegames.model.checks import plain_label
from acegames.model.costs.random import Cost, RandomCost
from acegames.model.game import JointAction, Label, Layer, MarkovGame, check_game, place
from acegames.model.numbers import plain
from acegames.model.user_functions import check_function
from acegames.model.written import show, unknown

Model = Callable[[int, Any, JointAction, np.random.Generator], tuple[Any, Any, Any]]
"""`model(t, state, action, rng)` draws (next_state, cost, rewards)."""


class World(Protocol):
    """What can be played step by step, whatever stands behind it."""

    def reset(self, rng: np.random.Generator) -> Label:
        """Begin an episode; return its first state."""

    def step(self, t: int, action: JointAction) -> tuple[Any, Any, Any]:
        """Play a joint action; return (next_state, cost, rewards). The next state is END when the episode is over."""


class ModelWorld:
    """Plays episodes of a generative model."""

    def __init__(self, model: Model, initial: Mapping[Label, float]) -> None:
        self.model, self.initial = model, initial

    def reset(self, rng: np.random.Generator) -> Label:
        """Draw a first state."""
        states, weights = list(self.initial), np.cumsum(list(self.initial.values()))
        self.rng = rng
        self.state = states[int(np.searchsorted(weights[:-1] / weights[-1], rng.random(), "right"))]
        return self.state

    def step(self, t: int, action: JointAction) -> tuple[Any, Any, Any]:
        """Ask the model."""
        found = ask(self.model, t, self.state, action, self.rng)
        self.state = plain_label(f"{place(t, self.state, action)}: next state", found[0])
        return self.state, found[1], found[2]


def check_model(model: Any) -> None:
    """InvalidOption for a model that cannot be asked."""
    check_function("model", model, ("t", "state", "action", "rng"))


def ask(model: Model, t: int, state: Label, action: JointAction, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """One draw from a model; InvalidGame when the answer has another form."""
    answer = model(t, state, action, rng)
    if not isinstance(answer, (tuple, list)) or len(answer) != 3:
        raise InvalidGame(
            f"{place(t, state, action)}: the model answered {show(answer)}, must be (next_state, cost, rewards)"
        )
    return answer[0], answer[1], answer[2]


class EnvWorld:
    """Plays episodes of an environment with PettingZoo's parallel interface."""

    def __init__(self, env: Any, facts: Facts, state: Any, cost: Any) -> None:
        check_env(env)
        if state is not None:
            check_function("state", state, ("env", "observations"))
        if callable(cost):
            check_function("cost", cost, ("infos",))
        self.env, self.facts = env, facts
        self.state, self.rule = state or joint_state, cost or "cost"
        self.playing: Sequence[Label] = facts.players  # who was there at the last step

    def reset(self, rng: np.random.Generator) -> Label:
        """Begin an episode with a seed drawn from `rng`."""
        observations, _ = reset_env(self.env, int(rng.integers(2**31)))
        return plain_label("reset: state", self.state(self.env, observations))

    def step(self, t: int, action: JointAction) -> tuple[Any, Any, Any]:
        """Hand each agent that is still there its action."""
        there = agents_of(self.env, self.facts.players)
        given = {p: a for p, a in zip(self.facts.players, action, strict=True) if p in there}
        self.playing, answer = list(given), step_env(self.env, given, t)
        if answer.cut and t < self.facts.horizon - 1:
            raise InvalidOption(
                f"t={t}: the environment cuts the episode off after {t + 1} steps, the horizon is {self.facts.horizon}; "
                "a shorter horizon, or a longer limit of the environment"
            )
        next_state = END if answer.over else self.state(self.env, answer.observations)
        rewards = tuple(float(answer.rewards.get(p, 0.0)) for p in self.facts.players)
        return next_state, self.cost(answer.infos), rewards

    def cost(self, infos: Any) -> Any:
        """The cost of a step, by the user's function or by a key."""
        if not callable(self.rule):
            return cost_from_infos(infos, self.rule, self.facts.players, self.playing, self.facts.constraints)
        try:
            return self.rule(infos)
        except AttributeError as error:
            raise InvalidOption(
                f"cost(infos): {error}; here it is given the infos, {{agent: info}} (from_parallel_env and shielded give a step)"
            ) from error


def is_env(source: Any) -> bool:
    """Whether a source is an environment."""
    return callable(getattr(source, "reset", None)) and callable(getattr(source, "step", None))


def conventions(source: Any) -> tuple[Any, Any]:
    """Players and action sets that an environment states by convention: `possible_agents` and `action_space(agent).n`; else None."""
    players = getattr(source, "possible_agents", None)
    if players is None or not callable(getattr(source, "action_space", None)):
        return players, None
    spaces = [source.action_space(p) for p in players]
    if not all(hasattr(space, "n") for space in spaces):
        return players, None
    return players, [[int(getattr(s, "start", 0)) + k for k in range(int(s.n))] for s in spaces]


class GameModel:
    """A generative model that draws from a known game: `model(t, state, action, rng) -> (next_state, cost, rewards)`."""

    def __init__(self, game: MarkovGame, noise: float = 0.0) -> None:
        check_game(game)
        self.game, self.noise, self.facts = game, float(noise), facts_of(game)
        self._rows = [
            {(s, tuple(layer.action[r].tolist())): r for s in range(len(game.states)) for r in layer.rows(s)}
            for layer in game.layers
        ]
        self._drawn: dict[tuple[int, int], Any] = {}

    def __call__(self, t: int, state: Label, action: Sequence[Label], rng: np.random.Generator) -> tuple[Any, Any, Any]:
        """Draw an outcome; rewards are the game's, with normal noise of the standard deviation `noise`."""
        game, layer = self.game, self.game.layer(t)
        try:
            row = self._rows[game.layer_at[t]][game.state_index(state), game.action_indices(action)]
        except (KeyError, ValueError, TypeError):
            legal = self.facts.joint_actions(t, state) if state in game.states else game.states
            raise InvalidOption(f"{place(t, state)}: {unknown('legal joint action', action, legal or ())}") from None
        key = game.layer_at[t], row
        if key not in self._drawn:
            self._drawn[key] = self._outcomes(layer, row)
        bounds, outcomes, reward = self._drawn[key]
        next_state, cost = outcomes[bisect.bisect_right(bounds, rng.random())]
        if self.noise:
            reward = tuple(
                r + self.noise * x for r, x in zip(reward, rng.standard_normal(len(reward)).tolist(), strict=True)
            )
        return next_state, {c: float(x.sample(1, rng)[0]) if isinstance(x, RandomCost) else x for c, x in cost}, reward

    def _outcomes(
        self, layer: Layer, row: int
    ) -> tuple[list[float], list[tuple[Label, list[tuple[Label, Any]]]], tuple[float, ...]]:
        """Bounds between the outcomes on the unit interval, the outcomes, and the rewards of a row."""
        game, outs = self.game, layer.outcomes(row)
        found = [
            (
                game.states[int(nxt)],
                [(c, _friendly(v[k])) for c, v, k in zip(game.constraints, game.cost_values, codes, strict=True)],
            )
            for nxt, codes in zip(layer.next_state[outs], layer.cost[outs].tolist(), strict=True)
        ]
        return np.cumsum(layer.prob[outs])[:-1].tolist(), found, tuple(layer.reward[row].tolist())


def _friendly(cost: Cost) -> Any:
    return cost if isinstance(cost, RandomCost) else plain(cost)


class GameEnv:
    """A known game as an environment with PettingZoo's parallel interface. Every agent observes the state and is told all costs."""

    def __init__(self, game: MarkovGame, noise: float = 0.0) -> None:
        self.model = GameModel(game, noise)
        self.facts = self.model.facts
        self.possible_agents = list(game.players)
        self.agents: list[Label] = []

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict[Label, Label], dict[Label, Any]]:
        """Begin an episode."""
        rng = np.random.default_rng(seed)
        assert self.facts.initial is not None
        self._world, self.t = ModelWorld(self.model, self.facts.initial), 0
        self._world.reset(rng)
        self.agents = list(self.possible_agents)
        return self._all(self.state()), {p: {} for p in self.agents}

    def state(self) -> Label:
        """The state of the game."""
        return self._world.state

    def step(self, actions: Mapping[Label, Label]) -> tuple[dict[Label, Any], ...]:
        """Play one action per agent; the episode is truncated at the horizon."""
        if not self.agents:
            raise InvalidOption("the episode is over, or was never begun: call reset")
        played = tuple(actions[p] for p in self.possible_agents)
        next_state, cost, reward = self._world.step(self.t, played)
        self.t += 1
        done = self.t >= self.model.game.horizon
        rewards = dict(zip(self.possible_agents, reward, strict=True))
        infos = {p: {"cost": dict(cost)} for p in self.possible_agents}
        self.agents = [] if done else self.agents
        return self._all(next_state), rewards, self._all(False), self._all(done), infos

    def _all(self, value: Any) -> dict[Label, Any]:
        return dict.fromkeys(self.possible_agents, value)


def game_model(game: MarkovGame, *, noise: float = 0.0) -> GameModel:
    """A known game as a generative model, to try out learning; `noise` is the standard deviation of normal noise on each reward."""
    return GameModel(game, noise)


def game_env(game: MarkovGame, *, noise: float = 0.0) -> GameEnv:
    """A known game as an environment with PettingZoo's parallel interface; `noise` as in `game_model`."""
    return GameEnv(game, noise)
