"""Environments with PettingZoo's parallel or AEC interface: answers, turns, action masks.

Where agents take turns (AEC), one turn is one step:

    agent_selection acts: last(), step(action)  ->  rewards, terminations, infos of that turn
    whoever is terminated or truncated then leaves by step(None), which is no turn

The others have nothing to do in that step. `env.rewards` after a step is what the step pays each
agent, also those who wait. A mask that allows nothing means that the agent waits for its turn.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption
from acegames.model.checks import show
from acegames.model.game import Label
from acegames.model.numbers import is_scalar
from acegames.model.user_functions import check_function, check_optional

END = "(episode over)"
"""The state after an environment has terminated; samples may have it as next state.

Nothing costs or pays there, and it is never left."""

NO_ACTION = "(none)"
"""The only action of a player who has nothing to do, and of all once the episode is over."""

Offer = frozenset[Label] | None
"""The actions that an environment offers to a player at the moment; None for all."""


class EnvAnswer(NamedTuple):
    """What an environment says after a step, each a mapping by agent, and what follows from it."""

    observations: Any
    rewards: Any
    terminations: Any
    truncations: Any
    infos: Any
    playing: Sequence[Label]  # the agents that acted
    over: bool  # nobody plays on
    cut: bool  # over because all were truncated, none of them terminated

    def rewards_of(self, players: Sequence[Label]) -> tuple[float, ...]:
        """Return one reward per player; zero for those who are gone."""
        rewards = [self.rewards.get(p, 0.0) for p in players]
        strange = next((x for x in rewards if np.ndim(x)), None)
        if strange is not None:
            raise InvalidOption(f"the reward is {show(strange)}, must be one number")
        return tuple(map(float, rewards))


def check_parallel(env: Any) -> None:
    """Raise InvalidOption for a class, or an environment of Gymnasium, which names no agents."""
    if isinstance(env, type):
        raise InvalidOption(f"env: got the class {env.__name__}, must be an environment: {env.__name__}(...)")
    listed = any(getattr(env, name, None) is not None for name in ("possible_agents", "agents"))
    space = getattr(env, "action_space", None)
    if not listed and space is not None and not callable(space):
        raise InvalidOption(
            f"env: got {show(env)}, an environment of Gymnasium, with one agent; "
            "acegames.adapters.gymnasium.from_env reads it"
        )


def agents_of(env: Any, players: Sequence[Label]) -> Sequence[Label]:
    """Return who plays now; all players where the environment does not say."""
    listed = getattr(env, "agents", None)
    return players if listed is None else list(listed)


def check_env(env: Any, state: Any, cost: Any, takes: str) -> None:
    """Raise InvalidOption where reset, step, `state` or `cost` cannot be called as they will be."""
    check_function("env.reset", env.reset, keywords=("seed",))
    check_function("env.step", env.step, ("actions",))
    check_optional("state", state, ("env", "observations"))
    check_optional("cost", cost if callable(cost) else None, (takes,))


def reset_env(env: Any, seed: int | None) -> tuple[Any, Any]:
    """Begin an episode; return (observations, infos)."""
    answer = env.reset(seed=seed)
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise InvalidOption(f"reset of the environment answered {show(answer)}, must be (observations, infos)")
    if not agents_of(env, ("somebody",)):
        raise InvalidOption("env.agents is empty after reset, must list the agents that play")
    return answer[0], answer[1]


def step_env(env: Any, actions: Mapping[Label, Any], t: int) -> EnvAnswer:
    """Play the actions of the agents that are still there; InvalidOption for a malformed answer."""
    there = agents_of(env, list(actions))
    chosen = {p: a for p, a in actions.items() if p in there}
    answer = env.step(chosen)
    if not isinstance(answer, tuple) or len(answer) != 5:
        rule = "must be (observations, rewards, terminations, truncations, infos)"
        raise InvalidOption(f"t={t}: step of the environment answered {show(answer)}, {rule}")
    _, rewards, terminations, truncations, _ = answer
    absent = [p for p in chosen if p not in rewards]
    if absent:
        raise InvalidOption(f"t={t}: step of the environment gives no reward to {absent[0]!r}")
    gone = [bool(terminations.get(p)) or bool(truncations.get(p)) for p in {**terminations, **truncations}]
    over = not agents_of(env, ("somebody",)) or (bool(gone) and all(gone))
    cut = over and bool(truncations) and all(truncations.values()) and not any(terminations.values())
    return EnvAnswer(*answer, list(chosen), over, cut)


def cost_from_infos(
    answer: EnvAnswer, key: str, players: Sequence[Label], constraints: Sequence[Label], takes: str = "infos"
) -> Any:
    """Return the cost that `infos[agent][key]` of all who acted give together.

    Each agent gives {constraint: number}, and agents must agree; or a number, one for each
    constraint. `takes` names the argument of a user's own `cost=`, for messages: "infos", or what
    has them.
    """
    if not constraints:
        return {}
    try:
        reported = {p: answer.infos[p][key] for p in answer.playing}
    except (KeyError, TypeError, IndexError):
        rule = f"give cost=, a function of {takes} that tells the cost"
        raise InvalidOption(f'infos {show(answer.infos)}: infos[agent]["{key}"] is missing; {rule}') from None
    every_info = "infos.values()" if takes == "infos" else f"{takes}.infos.values()"
    if all(isinstance(c, Mapping) for c in reported.values()):
        return _together(reported, f'cost=lambda {takes}: {{NAME: sum(info["{key}"][NAME] for info in {every_info})}}')
    if len(players) != len(constraints) or not all(is_scalar(c) for c in reported.values()):
        shared = f'cost=lambda {takes}: sum(info["{key}"] for info in {every_info})'
        raise InvalidOption(
            f"costs {show(reported)} are not one number for each of the constraints {list(constraints)!r}; say how they "
            f"count, for a shared budget say {_of_turn(key, players, takes) if _in_turn(answer) else shared}"
        )
    return [reported.get(p, 0) for p in players]


def _in_turn(answer: EnvAnswer) -> bool:
    """Return whether infos are there of agents that did not act: they are of earlier turns."""
    return isinstance(answer.infos, Mapping) and any(p not in answer.playing for p in answer.infos)


def _of_turn(key: str, players: Sequence[Label], takes: str) -> str:
    """Return how to say that the cost of the agent whose turn it was counts for all."""
    if takes == "infos":
        return f'{{constraint: number}} in infos[agent]["{key}"] of the agent that acts'
    acted = f'for p, a in zip({list(players)!r}, {takes}.action) if a != "(none)"'
    return f'cost=lambda {takes}: sum({takes}.infos[p]["{key}"] {acted})'


def _together(reported: Mapping[Label, Mapping[Label, Any]], summed: str) -> dict[Label, Any]:
    """Return one cost from what each agent reports; InvalidOption where two of them disagree."""
    cost: dict[Label, Any] = {}
    for agent, part in reported.items():
        for constraint, amount in part.items():
            if cost.setdefault(constraint, amount) != amount:
                raise InvalidOption(
                    f"costs {show(reported)}: agent {agent!r} reports {amount!r} for {constraint!r}, another one "
                    f"{cost[constraint]!r}; if both count, add them up: {summed.replace('NAME', repr(constraint))}"
                )
    return cost


def joint_state(env: Any, observations: Any) -> Label:
    """Return the state by convention: `env.state()`, else the tuple of all observations."""
    inner = getattr(env, "unwrapped", env)  # wrappers have a method `state` whatever is below them
    if callable(getattr(env, "state", None)) and callable(getattr(inner, "state", None)):
        with contextlib.suppress(NotImplementedError):
            return hashable(env.state())
    return hashable(list(observations.values()) if isinstance(observations, Mapping) else observations)


PLAIN = frozenset({int, float, bool, str})


def hashable(value: Any) -> Label:
    """Return arrays and lists as tuples, mappings as tuples of items."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return tuple(value) if PLAIN.issuperset(map(type, value)) else tuple(hashable(x) for x in value)
    if isinstance(value, Mapping):
        return tuple((k, hashable(v)) for k, v in sorted(value.items(), key=lambda item: str(item[0])))
    return value  # type: ignore[no-any-return]


# -- agents who take turns

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
        answer = [dict(part) for part in (env.rewards, env.terminations, env.truncations, env.infos)]
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


class OneAgent:
    """A Gymnasium environment with the parallel interface, for the one agent that it has."""

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
        asked = {"seed": seed, "options": options}
        answer = self.env.reset(**{name: x for name, x in asked.items() if x is not None})
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise InvalidOption(f"reset of the environment answered {show(answer)}, must be (observation, info)")
        self.agents = [self.agent]
        return {self.agent: answer[0]}, {self.agent: answer[1]}

    def step(self, actions: Mapping[Label, Any]) -> tuple[dict[Label, Any], ...]:
        """Play the agent's action."""
        answer = self.env.step(actions[self.agent])
        if not isinstance(answer, tuple) or len(answer) != 5:
            rule = "must be (observation, reward, terminated, truncated, info)"
            raise InvalidOption(f"step of the environment answered {show(answer)}, {rule}")
        if answer[2] or answer[3]:
            self.agents = []
        return tuple({self.agent: part} for part in answer)


def user_env(env: Any) -> Any:
    """Return what the user's functions are given: the environment behind `Turns` or `OneAgent`."""
    return env.aec_env if isinstance(env, Turns) else env.env if isinstance(env, OneAgent) else env


def turn_state(env: Any, observations: Any) -> Label:
    """Return the state by convention: whose turn it is, and the usual state of all."""
    return env.agent_selection, joint_state(env, observations)


def own_state(env: Any, observation: Any) -> Label:
    """Return the state by convention where there is one agent: what it sees."""
    return hashable(observation)


def state_by_convention(env: Any) -> Callable[[Any, Any], Label]:
    """Return the function of the user's environment and the observations that gives the state.

    Environments around it are pickled, so it is a function of this module.
    """
    return turn_state if isinstance(env, Turns) else own_state if isinstance(env, OneAgent) else joint_state


# -- action masks

MASK = "action_mask"


def action_mask(whose: str, n: int, observation: Any, info: Any) -> NDArray[np.bool_]:
    """Return `action_mask` in an observation, in an info, or in both; (n,), True means allowed."""
    mask = np.ones(n, dtype=bool)
    for where, entries in (("observation", observation), ("infos", info)):
        if has_mask(entries):
            own = np.asarray(entries[MASK])
            if own.shape != (n,):
                rule = f"must be one entry for each of the {n} actions"
                raise InvalidOption(f"{whose}: {MASK} in {where} has the shape {own.shape}, {rule}")
            mask &= own.astype(bool)
    return mask


def entry_of(agent: Label, by_agent: Any) -> Any:
    """Return what a mapping by agent says to one of them."""
    return by_agent.get(agent) if isinstance(by_agent, Mapping) else None


def offer_of(agent: Label, numbers: range | None, there: bool, observations: Any, infos: Any) -> Offer:
    """Return the actions that an agent is offered now; None for all of them.

    Args:
        agent: the agent.
        numbers: the numbers of its action space; None where that is not discrete, without masks.
        there: whether it plays on.
        observations, infos: by agent.
    """
    if not there:
        return frozenset({NO_ACTION})
    observation, info = entry_of(agent, observations), entry_of(agent, infos)
    if numbers is None or not (has_mask(observation) or has_mask(info)):
        return None
    mask = action_mask(f"agent {agent!r}", len(numbers), observation, info)
    return frozenset(numbers[int(k)] for k in np.flatnonzero(mask)) or frozenset({NO_ACTION})


def has_mask(entries: Any) -> bool:
    """Return whether an observation or an info tells an action mask."""
    return isinstance(entries, (dict, Mapping)) and entries.get(MASK) is not None
