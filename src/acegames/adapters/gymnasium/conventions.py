"""How a Gymnasium environment is read: its actions, states, masks and costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acegames.adapters.environments.spaces import action_labels, action_mask
from acegames.errors import InvalidOption
from acegames.learn.stepping import hashable
from acegames.model.checks import plain_label
from acegames.model.game import Label
from acegames.model.user_functions import check_function, check_optional
from acegames.model.written import show
from acegames.system.extras import optional

WHO, EXTRA = "Gymnasium environments", "gymnasium"
PLAYER = "agent"
"""The one player of the game."""

TRANSPARENT = (
    "HumanRendering",
    "OrderEnforcing",
    "PassiveEnvChecker",
    "RecordEpisodeStatistics",
    "RecordVideo",
    "RenderCollection",
    "TimeLimit",
)
"""Gymnasium's wrappers that change neither actions, observations, rewards nor what happens."""


@dataclass(frozen=True, eq=False)
class GymStep:
    """One step of an environment, for a user's function that gives its cost."""

    at: int | None  # None where what happens must not depend on time
    state: Label
    action: Label  # a number, or a tuple for MultiDiscrete
    next_state: Label  # what follows, also where the episode ends there
    reward: float
    terminated: bool
    truncated: bool
    info: Any

    @property
    def t(self) -> int:
        """The time; InvalidOption where every time is read at once."""
        if self.at is None:
            raise InvalidOption("cost(step): asks for step.t, but all times are read at once; give stationary=False")
        return self.at


CostRule = str | Callable[[GymStep], Any]
"""A key, so that costs are `info[key]`, or a function of a `GymStep`."""

FIELDS = ".t, .state, .action, .next_state, .reward, .terminated, .truncated and .info"


class Conventions:
    """How one environment is read: what an action is, what the state is, what a step costs."""

    def __init__(self, env: Any, constraints: Sequence[Label], state: Any, cost: CostRule, hidden: Any) -> None:
        check_gymnasium(env)
        if not isinstance(cost, str) and not callable(cost):
            raise InvalidOption(f"cost: got {show(cost)}, must be a key of info, or a function of a step")
        check_function("env.step", env.step, ("action",))
        check_optional("state", state, ("env", "observation"))
        check_optional("hidden", hidden, ("env",))
        check_optional("cost", cost if callable(cost) else None, ("step",))
        self.actions = action_labels("env", env.action_space, WHO, EXTRA)
        self.constraints, self.cost_rule = tuple(constraints), cost
        self.state_of, self.hidden_of = state, hidden

    def state(self, env: Any, observation: Any, when: str) -> Label:
        """Return the label of the state."""
        given = hashable(observation) if self.state_of is None else self.state_of(env, observation)
        label = plain_label(f"{when}: state", given)
        if label is None:
            raise InvalidOption(f"{when}: state(env, observation) gave None, must be a label of the state")
        return label

    def hidden(self, env: Any, when: str) -> Label:
        """Return what matters beside the state; None where nothing does."""
        return None if self.hidden_of is None else plain_label(f"{when}: hidden", hashable(self.hidden_of(env)))

    def choices(self, observation: Any, info: Any) -> tuple[Label, ...]:
        """Return the actions that the environment's own mask allows."""
        mask = action_mask("env", len(self.actions), observation, info)
        return tuple(a for a, free in zip(self.actions, mask, strict=True) if free)

    def cost(self, step: GymStep) -> Any:
        """Return the cost of a step, as the user gives it."""
        return cost_of(step, self.cost_rule, self.constraints)


def cost_of(step: GymStep, rule: CostRule, constraints: Sequence[Label]) -> Any:
    """Return the cost of a step, as the user gives it."""
    if callable(rule):
        try:
            return rule(step)
        except (AttributeError, TypeError) as error:
            raise InvalidOption(f"cost(step): {error}; it is given one step, with {FIELDS}") from error
    if not constraints:
        return None
    try:
        return step.info[rule]
    except (KeyError, TypeError, IndexError):
        remedy = "give cost=, a function of a step that tells the cost"
        raise InvalidOption(f'info {show(step.info)}: info["{rule}"] is missing; {remedy}') from None


def check_gymnasium(env: Any) -> None:
    """Raise InvalidOption, with what to call instead, for what is no single environment of
    Gymnasium.
    """
    if isinstance(env, type):
        raise InvalidOption(f"env: got the class {env.__name__}, must be an environment: {env.__name__}(...)")
    if isinstance(env, str):
        raise InvalidOption(f"env: got {env!r}, must be an environment: gymnasium.make({env!r})")
    if getattr(env, "possible_agents", None) is not None or callable(getattr(env, "action_space", None)):
        rule = "acegames.adapters.pettingzoo.from_parallel_env reads it"
        raise InvalidOption(f"env: got {show(env)}, an environment of PettingZoo; {rule}")
    if hasattr(env, "num_envs"):
        raise InvalidOption(f"env: got {show(env)}, a vector of environments; give one: gymnasium.make(...)")
    if not all(callable(getattr(env, what, None)) for what in ("reset", "step")) or not hasattr(env, "action_space"):
        raise InvalidOption(f"env: got {show(env)}, must be an environment with reset, step and action_space")


def layers(env: Any) -> Iterator[Any]:
    """Yield an environment and what it wraps, from the outermost wrapper to the environment itself."""
    wrapper = optional("gymnasium", WHO, EXTRA).Wrapper
    while isinstance(env, wrapper):
        yield env
        env = env.env
    yield env


def is_bare(env: Any) -> bool:
    """Return whether every wrapper leaves actions, observations, rewards and what happens as they
    are.
    """
    wrappers = optional("gymnasium.wrappers", WHO, EXTRA)
    known = tuple(found for name in TRANSPARENT if (found := getattr(wrappers, name, None)) is not None)
    *around, _ = layers(env)
    return all(type(layer) in known for layer in around)


def time_limit(env: Any) -> int | None:
    """Return the number of steps after which a TimeLimit cuts episodes off."""
    limit = optional("gymnasium.wrappers", WHO, EXTRA).TimeLimit
    found = [int(layer._max_episode_steps) for layer in layers(env) if isinstance(layer, limit)]
    return min(found, default=None)


def name_of(env: Any) -> str:
    """Return its id, as `gymnasium.make` takes it, else the name of its class."""
    named = getattr(getattr(env, "spec", None), "id", None)
    return str(named or type(getattr(env, "unwrapped", env)).__name__)


def step_of(env: Any, action: Any, when: str) -> tuple[Any, float, bool, bool, Any]:
    """Play an action; InvalidOption for a malformed answer."""
    answer = env.step(action)
    if not isinstance(answer, tuple) or len(answer) != 5:
        rule = "must be (observation, reward, terminated, truncated, info)"
        raise InvalidOption(f"{when}: step of the environment answered {show(answer)}, {rule}")
    observation, reward, terminated, truncated, info = answer
    if np.ndim(reward):
        raise InvalidOption(f"{when}: the reward is {show(reward)}, must be one number")
    return observation, float(reward), bool(terminated), bool(truncated), info
