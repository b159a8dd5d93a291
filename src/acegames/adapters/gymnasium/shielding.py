"""A shield around a Gymnasium environment: the machinery of several agents, for the only one.

The environment is shown to it as one with PettingZoo's parallel interface (which needs no
PettingZoo), in which the player of the shield's game is the agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from numpy.typing import NDArray

from acegames.adapters.environments.guarding import Guarded, Price, any_state, check_shield, knows_only_actions
from acegames.adapters.gymnasium.conventions import CostRule, GymStep, cost_of
from acegames.adapters.pettingzoo.conventions import Conventions
from acegames.errors import InvalidOption
from acegames.learn.facts import END
from acegames.learn.stepping import EnvAnswer, hashable
from acegames.model.checks import check_choice, plain_label
from acegames.model.game import JointAction, Label
from acegames.model.user_functions import check_optional
from acegames.model.written import show
from acegames.shield import Shield

OBSERVATIONS = ("dict", "vector", "own")


class OneAgent:
    """A Gymnasium environment with everything by agent, for the one agent that it has."""

    def __init__(self, env: Any, agent: Label) -> None:
        self.env, self.agent = env, agent
        self.possible_agents, self.agents = [agent], list[Label]()

    def __str__(self) -> str:
        return str(self.env)

    def action_space(self, agent: Label) -> Any:
        """Return the space of actions."""
        return self.env.action_space

    def observation_space(self, agent: Label) -> Any:
        """Return the space of observations."""
        return self.env.observation_space

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict[Label, Any], dict[Label, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.agents = [self.agent]
        return {self.agent: observation}, {self.agent: info}

    def step(self, actions: Mapping[Label, Any]) -> tuple[dict[Label, Any], ...]:
        """Play the agent's action."""
        answer = self.env.step(actions[self.agent])
        if not isinstance(answer, tuple) or len(answer) != 5:
            rule = "must be (observation, reward, terminated, truncated, info)"
            raise InvalidOption(f"step of the environment answered {show(answer)}, {rule}")
        if answer[2] or answer[3]:
            self.agents = []
        return tuple({self.agent: part} for part in answer)


class OneAgentConventions(Conventions):
    """How a Gymnasium environment is read."""

    def __init__(self, env: OneAgent, shield: Shield, state: Any, cost: CostRule | None) -> None:
        check_optional("state", state, ("env", "observation"))
        self.only_actions = knows_only_actions(shield)
        key: Any = "cost" if cost is None else cost
        super().__init__(env, shield.game.constraints, any_state, key, shield.players)
        self.own_state = state
        self.price = Price(shield) if self.only_actions and cost is None else None

    @property
    def source(self) -> str:
        """Where the state comes from, and what helps if the game calls it otherwise."""
        told = "the observation" if self.own_state is None else "state(env, observation)"
        return f"{told}: if the game calls it otherwise, give state=, a function of (env, observation)"

    def state(self, env: OneAgent, observations: Any, when: str) -> Label:
        """Return the label of the state: by default the observation."""
        observation = observations[env.agent]
        if self.own_state is None and self.only_actions:
            return any_state(env, observation)
        found = hashable(observation) if self.own_state is None else self.own_state(env.env, observation)
        label = plain_label(f"{when}: state", found)
        if label is None:
            raise InvalidOption(f"{when}: state(env, observation) gave None, must be a label of the state")
        return label

    def read(self, env: OneAgent, t: int, state: Label, action: JointAction, answer: EnvAnswer) -> tuple[Label, Any]:
        """Return the next state and the cost, as the user gives it, of a step that was just played."""
        agent = env.agent
        after = self.state(env, answer.observations, f"t={t + 1}") if not answer.over or callable(self.cost) else END
        told = answer.rewards[agent], bool(answer.terminations[agent]), bool(answer.truncations[agent])
        if self.price is not None:
            return END if answer.over else after, self.price.of(action)
        rule: Any = self.cost
        step = GymStep(t, state, action[0], after, *told, answer.infos[agent])
        return END if answer.over else after, cost_of(step, rule, self.constraints)


class ShieldedEnv(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """The environment that `acegames.adapters.gymnasium.shielded` makes, with its options."""

    def __init__(
        self,
        env: Any,
        shield: Shield,
        *,
        state: Any = None,
        cost: CostRule | None = None,
        actions: Any = None,
        unsafe: str = "repair",
        surprise: str = "error",
        observation: str = "dict",
    ) -> None:
        check_shield(shield)
        check_choice("observation", observation, OBSERVATIONS)
        _check_environment(env, shield)
        given = {"state": state, "cost": cost, "actions": actions, "unsafe": unsafe, "surprise": surprise}
        saved = {"shield": shield, "observation": observation, **given}
        gymnasium.utils.RecordConstructorArgs.__init__(self, _disable_deepcopy=True, **saved)
        gymnasium.Wrapper.__init__(self, env)
        self.shield, self._agent, self._own = shield, shield.players[0], observation == "own"
        view = OneAgent(env, self._agent)
        rules = OneAgentConventions(view, shield, state, cost)
        named = None if actions is None else {self._agent: actions}
        handling = {"how": "product", "unsafe": unsafe, "surprise": surprise}
        shape = {"observation": "dict" if self._own else observation, "infos": "flat", "style": "pettingzoo"}
        self._guard = Guarded(view, shield, rules, named, **handling, **shape)
        self.constraint_names = self._guard.constraint_names  # {label: name in the keys of infos}
        if not self._own:
            self.observation_space = self._guard.observation_space(self._agent)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode with nothing spent, but what reservoirs lack."""
        seen, infos = self._guard.reset(seed=seed, options=options)
        return self._shown(seen), self._told(infos)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Play the action if it is safe, else the nearest that is."""
        answer = self._guard.step({self._agent: action})
        rewards, terminations, truncations = (part[self._agent] for part in answer[1:4])
        return self._shown(answer[0]), rewards, bool(terminations), bool(truncations), self._told(answer[4])

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the mask as learners such as MaskablePPO ask for it; all ones when an episode is
        over.
        """
        return self._guard.mask(self._agent).astype(bool)

    @property
    def surprise(self) -> str | None:
        """A sentence about the last step, if the game excludes what the environment did."""
        return self._guard.surprise

    def _shown(self, seen: Mapping[Any, Any]) -> Any:
        return self._guard.own_observations[self._agent] if self._own else seen[self._agent]

    def _told(self, infos: Mapping[Any, Any]) -> dict[str, Any]:
        """Return the environment's own info, with what the shield tells."""
        mask = {"action_mask": self._guard.mask(self._agent)}
        return {**self._guard.own_infos.get(self._agent, {}), **infos[self._agent], **mask}


def _check_environment(env: Any, shield: Shield) -> None:
    if getattr(env, "possible_agents", None):
        rule = "acegames.adapters.pettingzoo.shielded is for it"
        raise InvalidOption(f"env: got {show(env)}, which has several agents; {rule}")
    if not isinstance(env, gymnasium.Env):
        raise InvalidOption(f"env: got {show(env)}, must be a Gymnasium environment: gymnasium.make(id)")
    if len(shield.players) != 1:
        rule = "must have one, as the environment has"
        raise InvalidOption(f"the shield's game has {len(shield.players)} players {shield.players!r}, {rule}")
