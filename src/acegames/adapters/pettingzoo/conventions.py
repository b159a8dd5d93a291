"""How a PettingZoo environment is read: agents, action spaces, masks, states and costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.adapters.environments.spaces import MASK, action_labels, action_mask
from acegames.errors import InvalidOption
from acegames.learn.facts import END
from acegames.learn.stepping import EnvAnswer, check_env, check_parallel, cost_from_infos, joint_state
from acegames.model.checks import plain_label
from acegames.model.game import JointAction, Label
from acegames.model.written import show

__all__ = ["EXTRA", "MASK", "WHO", "Conventions", "CostRule", "EnvStep"]

WHO, EXTRA = "PettingZoo environments", "pettingzoo"


@dataclass(frozen=True, eq=False)
class EnvStep:
    """One step of an environment, for a user's function that gives its cost."""

    t: int
    state: Label
    action: JointAction  # one entry per player; "(none)" for an agent that was gone
    next_state: Label  # "(episode over)" after the last step
    infos: Any  # by agent


CostRule = str | Callable[[EnvStep], Any]
"""A key, so that costs are `infos[agent][key]`, or a function of an `EnvStep`."""


class Conventions:
    """How one environment is read: who plays, what the state is, what a step costs."""

    def __init__(
        self, env: Any, constraints: Sequence[Label], state: Any, cost: CostRule, players: Sequence[Label] | None = None
    ) -> None:
        agents = getattr(env, "possible_agents", None)
        if isinstance(env, type):
            raise InvalidOption(f"env: got the class {env.__name__}, must be an environment: {env.__name__}(...)")
        check_parallel(env)
        parallel = all(callable(getattr(env, what, None)) for what in ("reset", "step", "action_space"))
        if not agents or not parallel or callable(getattr(env, "agent_iter", None)):
            raise InvalidOption(
                f"env: got {show(env)}, must be a parallel environment with reset, step, action_space and possible_agents; "
                "an AEC environment becomes one by pettingzoo.utils.conversions.aec_to_parallel"
            )
        if not isinstance(cost, str) and not callable(cost):
            raise InvalidOption(f"cost: got {show(cost)}, must be a key of infos[agent], or a function of a step")
        check_env(env, state, cost, "step")
        known = tuple(plain_label("possible_agents", p) for p in agents)
        self.players: tuple[Label, ...] = known if players is None else tuple(players)
        if set(self.players) != set(known):
            rule = f"the game's players {list(self.players)!r}; they must be the same"
            raise InvalidOption(f"the environment's agents are {list(known)!r}, {rule}")
        self.actions = tuple(action_labels(f"agent {p!r}", env.action_space(p), WHO, EXTRA) for p in self.players)
        self.constraints, self.state_of, self.cost = tuple(constraints), state or joint_state, cost

    def state(self, env: Any, observations: Any, when: str) -> Label:
        """The label of the state."""
        label = plain_label(f"{when}: state", self.state_of(env, observations))
        if label is None:
            raise InvalidOption(f"{when}: state(env, observations) gave None, must be a label of the state")
        return label

    @property
    def source(self) -> str:
        """Where the state comes from, and what helps if the game calls it otherwise."""
        by = "env.state() or else all observations together"
        told = by if self.state_of is joint_state else "state(env, observations)"
        return f"{told}: if the game calls it otherwise, give state=, a function of (env, observations)"

    def read(self, env: Any, t: int, state: Label, action: JointAction, answer: EnvAnswer) -> tuple[Label, Any]:
        """The next state and the cost, as the user gives it, of a step that was just played."""
        next_state = END if answer.over else self.state(env, answer.observations, f"t={t + 1}")
        if not callable(self.cost):
            return next_state, cost_from_infos(answer, self.cost, self.players, self.constraints, "step")
        try:
            return next_state, self.cost(EnvStep(t, state, action, next_state, answer.infos))
        except (AttributeError, TypeError) as error:
            rule = "it is given one step, with .t, .state, .action, .next_state and .infos"
            raise InvalidOption(f"cost(step): {error}; {rule}") from error

    def masks(self, observations: Any, infos: Any) -> tuple[NDArray[np.bool_], ...]:
        """The environment's own action masks, (n_i,) of each player; True means allowed."""
        return tuple(
            action_mask(f"agent {p!r}", len(a), _told(observations, p), _told(infos, p))
            for p, a in zip(self.players, self.actions, strict=True)
        )


def _told(told: Any, agent: Label) -> Any:
    """What a mapping by agent says to one of them."""
    return told.get(agent) if isinstance(told, Mapping) else None
