"""Environments in which agents take turns (PettingZoo's AEC interface), one turn as one step.

    agent_selection acts: last(), step(action)  ->  rewards, terminations, infos of that turn
    whoever is terminated or truncated then leaves by step(None), which is no turn

The others have nothing to do in that step. `env.rewards` after a step is what the step pays each
agent, also those who wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from acegames.errors import InvalidOption
from acegames.learn.stepping import joint_state
from acegames.model.game import Label

AT_ONCE = "pettingzoo.utils.conversions.aec_to_parallel"
TURN_INTERFACE = ("agent_iter", "observe", "last", "reset", "step", "action_space")


def takes_turns(env: Any) -> bool:
    """Return whether an environment, or its class, has the interface of agents who take turns."""
    return all(callable(getattr(env, what, None)) for what in TURN_INTERFACE)


def chosen_at_once(env: Any) -> bool:
    """Return whether an AEC environment only lines up agents who in truth choose at once."""
    metadata = getattr(env, "metadata", None)
    return isinstance(metadata, Mapping) and bool(metadata.get("is_parallelizable"))


class Turns:
    """An AEC environment with the parallel interface; `agents` is the one whose turn it is."""

    def __init__(self, env: Any) -> None:
        if chosen_at_once(env):
            raise InvalidOption(
                f"env: the agents of {env} choose at once (is_parallelizable in its metadata), so that none may know what the "
                f"others choose, as it would if each choice were a step: give {AT_ONCE}(env), as a parallel environment"
            )
        self.aec_env = env
        self.possible_agents = list(getattr(env, "possible_agents", None) or ())

    def __str__(self) -> str:
        return str(self.aec_env)

    @property
    def agents(self) -> list[Label]:
        """The agent whose turn it is; nobody once the episode is over."""
        return [self.aec_env.agent_selection] if self.aec_env.agents else []

    def action_space(self, agent: Label) -> Any:
        """Return the actions of an agent."""
        return self.aec_env.action_space(agent)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict[Label, Any], dict[Label, Any]]:
        """Begin an episode."""
        self.aec_env.reset(seed=seed, options=options)
        self._leave()
        return self._observed(), dict(self.aec_env.infos)

    def step(self, actions: Mapping[Label, Any]) -> tuple[dict[Label, Any], ...]:
        """Play the action of the agent whose turn it is; nobody else's is looked at."""
        env = self.aec_env
        env.last()  # wrappers compare the action with the mask that was seen last
        env.step(actions[env.agent_selection])
        answer = [dict(told) for told in (env.rewards, env.terminations, env.truncations, env.infos)]
        self._leave()
        return self._observed(), *answer

    def _observed(self) -> dict[Label, Any]:
        """Return what each agent that is still there sees."""
        return {agent: self.aec_env.observe(agent) for agent in self.aec_env.agents}

    def _leave(self) -> None:
        """Let those leave whose turn it is but who are terminated or truncated."""
        env = self.aec_env
        while env.agents and (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
            env.step(None)


def in_turns(env: Any) -> Any:
    """Return an AEC environment as `Turns`; every other as it is."""
    return Turns(env) if takes_turns(env) else env


def user_env(env: Any) -> Any:
    """Return what the user's functions are given: of `Turns`, the AEC environment itself."""
    return env.aec_env if isinstance(env, Turns) else env


def turn_state(env: Any, observations: Any) -> Label:
    """By convention, whose turn it is, and the usual state of all."""
    return env.agent_selection, joint_state(env, observations)


def state_by_convention(env: Any) -> Callable[[Any, Any], Label]:
    """Return the function of the user's environment and the observations that gives the state."""
    return turn_state if isinstance(env, Turns) else joint_state
