"""Sources of samples: a generative model, which a known game may be, or an environment."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from acegames.errors import InvalidGame, InvalidOption, UnknownPair
from acegames.learn.env_protocol import (
    END,
    NO_ACTION,
    EnvAnswer,
    Offer,
    agents_of,
    check_env,
    cost_from_infos,
    in_turns,
    offer_of,
    reset_env,
    state_by_convention,
    step_env,
    user_env,
)
from acegames.learn.known import Facts, action_numbers, drawn, facts_of, is_env
from acegames.model.checks import plain_label, show, unknown
from acegames.model.game import JointAction, Label, MarkovGame, check_game, place
from acegames.model.numbers import plain
from acegames.model.random_costs import RandomCost
from acegames.model.user_functions import check_function

ModelDraw = tuple[Any, Any, Any]
"""(next_state, cost, rewards)"""

Model = Callable[[int, Any, JointAction, np.random.Generator], ModelDraw]
"""`model(t, state, action, rng)` draws (next_state, cost, rewards)."""


class ModelWorld:
    """Plays episodes of a generative model."""

    offers: Sequence[Offer] | None = None  # a model has no masks

    def __init__(self, model: Model, initial: Mapping[Label, float]) -> None:
        check_function("model", model, ("t", "state", "action", "rng"))
        self.model, self.initial = model, initial

    def reset(self, rng: np.random.Generator) -> Label:
        """Draw a first state."""
        self.rng, self.state = rng, drawn(self.initial, rng)
        return self.state

    def step(self, t: int, action: JointAction) -> ModelDraw:
        """Ask the model."""
        next_state, cost, rewards = self.ask(t, self.state, action, self.rng)
        self.state = plain_label(f"{place(t, self.state, action)}: next state", next_state)
        return self.state, cost, rewards

    def ask(self, t: int, state: Label, action: JointAction, rng: np.random.Generator) -> ModelDraw:
        """Return one draw from the model; InvalidGame when the answer has another form."""
        answer: Any = self.model(t, state, action, rng)
        if not isinstance(answer, (tuple, list)) or len(answer) != 3:
            rule = "must be (next_state, cost, rewards)"
            raise InvalidGame(f"{place(t, state, action)}: the model answered {show(answer)}, {rule}")
        return answer[0], answer[1], answer[2]


class EnvWorld:
    """Plays episodes of an environment with PettingZoo's parallel or AEC interface."""

    def __init__(self, env: Any, facts: Facts, state: Any, cost: Any) -> None:
        self.env, self.facts = in_turns(env), facts
        check_env(self.env, state, cost, "infos")
        self.state_of, self.rule = state or state_by_convention(self.env), cost or "cost"
        self.numbers = tuple(action_numbers(env, p) for p in facts.players)

    def reset(self, rng: np.random.Generator) -> Label:
        """Begin an episode with a seed drawn from `rng`."""
        observations, infos = reset_env(self.env, int(rng.integers(2**31)))
        return self._look("reset: state", observations, infos)

    def step(self, t: int, action: JointAction) -> ModelDraw:
        """Hand each agent that is still there its action; UnknownPair where a mask forbids it."""
        for p, a, offer in zip(self.facts.players, action, self.offers, strict=True):
            if offer is not None and a not in offer and p in agents_of(self.env, (p,)):
                rule = f"is not among those that its mask allows, {show(sorted(offer, key=str))}"
                raise UnknownPair(f"{place(t, self.state, action)}: action {a!r} of {p!r} {rule}")
        answer = step_env(
            self.env, dict(zip(self.facts.players, map(_env_action, action, self.numbers), strict=True)), t
        )
        if answer.cut and t < self.facts.horizon - 1:
            raise InvalidOption(
                f"t={t}: the environment cuts the episode off after {t + 1} steps, the horizon is {self.facts.horizon}; "
                "give a shorter horizon, or the environment a longer limit"
            )
        next_state = END if answer.over else self._look(f"t={t + 1}: state", answer.observations, answer.infos)
        return next_state, self._cost(answer), answer.rewards_of(self.facts.players)

    def _look(self, where: str, observations: Any, infos: Any) -> Label:
        """Return the state, and what each agent is offered in it."""
        there = agents_of(self.env, self.facts.players)
        each = zip(self.facts.players, self.numbers, strict=True)
        self.offers: tuple[Offer, ...] = tuple(offer_of(p, own, p in there, observations, infos) for p, own in each)
        self.state: Label = plain_label(where, self.state_of(user_env(self.env), observations))
        return self.state

    def _cost(self, answer: EnvAnswer) -> Any:
        """Return the cost of a step, by the user's function or by a key."""
        if not callable(self.rule):
            return cost_from_infos(answer, self.rule, self.facts.players, self.facts.constraints)
        try:
            return self.rule(answer.infos)
        except AttributeError as error:
            remedy = "here it is given the infos, {agent: info} (from_parallel_env and shielded give a step)"
            raise InvalidOption(f"cost(infos): {error}; {remedy}") from error


def _env_action(action: Label, numbers: range | None) -> Any:
    """Return what the environment is given; the first action from one who has nothing to do."""
    return numbers[0] if action == NO_ACTION and numbers else action


World = ModelWorld | EnvWorld
"""Plays episodes: `reset(rng)` gives the first state, `step(t, action)` the draw; END ends it."""


def world_of(source: Any, facts: Facts, state: Any, cost: Any) -> World:
    """Return what plays episodes of a source; InvalidOption for one that cannot be played."""
    if is_env(source):
        return EnvWorld(source, facts, state, cost)
    if not callable(source):
        rule = "must be an environment or a generative model; estimate() takes samples"
        raise InvalidOption(f"source: got {source!r:.60}, {rule}")
    return ModelWorld(source, facts.initial or {})


class GameModel:
    """Draws from a known game: `model(t, state, action, rng) -> (next_state, cost, rewards)`.

    `noise` is the standard deviation of normal noise on each reward.
    """

    def __init__(self, game: MarkovGame, noise: float = 0.0) -> None:
        check_game(game)
        self.game, self.noise, self.facts = game, float(noise), facts_of(game)
        self._read: dict[tuple[int, Label, JointAction], Any] = {}

    def __call__(self, t: int, state: Label, action: Any, rng: np.random.Generator) -> ModelDraw:
        """Draw an outcome; rewards get normal noise of the standard deviation `noise`."""
        played = tuple(action) if isinstance(action, Iterable) else action
        key = self.game.layer_at[t], state, played
        try:
            bounds, outcomes = self._read[key]
        except (KeyError, TypeError):  # TypeError: it cannot be hashed, and will not be found
            bounds, outcomes = self._read[key] = self._outcomes(t, state, played)
        next_state, costs, reward = outcomes[bisect.bisect_right(bounds, rng.random())]
        if self.noise:
            noise = rng.standard_normal(len(reward)).tolist()
            reward = tuple(r + self.noise * x for r, x in zip(reward, noise, strict=True))
        cost = {c: float(x.sample(1, rng)[0]) if isinstance(x, RandomCost) else plain(x) for c, x in costs}
        return next_state, cost, reward

    def _outcomes(self, t: int, state: Label, action: JointAction) -> tuple[list[float], list[Any]]:
        """Return bounds between outcomes on the unit interval, and outcomes with rewards."""
        game = self.game
        legal = game.legal(t, state) if state in game.states else {}
        if action not in list(legal):  # a list, because an action may be given that has no hash
            rule = unknown("legal joint action", action, legal or game.states)
            raise InvalidOption(f"{place(t, state)}: {rule}")
        drawn = game.payments(t, legal[action])
        outcomes = [(s, list(zip(game.constraints, cost, strict=True)), reward) for _, s, cost, reward in drawn]
        return np.cumsum([chance for chance, *_ in drawn])[:-1].tolist(), outcomes


game_model = GameModel
"""A known game as a generative model, to try out learning; the same as `GameModel`."""
