"""What an environment with PettingZoo's parallel interface answers, read and checked."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acegames.errors import InvalidOption
from acegames.model.game import Label
from acegames.model.numbers import is_scalar
from acegames.model.user_functions import check_function, check_optional
from acegames.model.written import show


@dataclass(frozen=True, eq=False)
class EnvAnswer:
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
        return tuple(float(self.rewards.get(p, 0.0)) for p in players)


def check_parallel(env: Any) -> None:
    """Raise InvalidOption for a Gymnasium environment, which has one agent and none of their names."""
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
    given = {p: a for p, a in actions.items() if p in there}
    answer = env.step(given)
    if not isinstance(answer, tuple) or len(answer) != 5:
        rule = "must be (observations, rewards, terminations, truncations, infos)"
        raise InvalidOption(f"t={t}: step of the environment answered {show(answer)}, {rule}")
    _, rewards, terminations, truncations, _ = answer
    absent = [p for p in given if p not in rewards]
    if absent:
        raise InvalidOption(f"t={t}: step of the environment gives no reward to {absent[0]!r}")
    gone = [bool(terminations.get(p)) or bool(truncations.get(p)) for p in {**terminations, **truncations}]
    over = not agents_of(env, ("somebody",)) or (bool(gone) and all(gone))
    cut = bool(truncations) and all(truncations.values()) and not any(terminations.values())
    return EnvAnswer(*answer, list(given), over, cut)


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
        found = {p: answer.infos[p][key] for p in answer.playing}
    except (KeyError, TypeError, IndexError):
        rule = f"give cost=, a function of {takes} that tells the cost"
        raise InvalidOption(f'infos {show(answer.infos)}: infos[agent]["{key}"] is missing; {rule}') from None
    every_info = "infos.values()" if takes == "infos" else f"{takes}.infos.values()"
    if all(isinstance(c, Mapping) for c in found.values()):
        return _together(found, f'cost=lambda {takes}: {{NAME: sum(info["{key}"][NAME] for info in {every_info})}}')
    if len(players) != len(constraints) or not all(is_scalar(c) for c in found.values()):
        shared = f'cost=lambda {takes}: sum(info["{key}"] for info in {every_info})'
        raise InvalidOption(
            f"costs {show(found)} are not one number for each of the constraints {list(constraints)!r}; say how they "
            f"count, for a shared budget say {_of_turn(key, players, takes) if _in_turn(answer) else shared}"
        )
    return [found.get(p, 0) for p in players]


def _in_turn(answer: EnvAnswer) -> bool:
    """Return whether infos are there of agents that did not act: they are of earlier turns."""
    return isinstance(answer.infos, Mapping) and any(p not in answer.playing for p in answer.infos)


def _of_turn(key: str, players: Sequence[Label], takes: str) -> str:
    """Return how to say that the cost of the agent whose turn it was counts for all."""
    if takes == "infos":
        return f'{{constraint: number}} in infos[agent]["{key}"] of the agent that acts'
    acted = f'for p, a in zip({list(players)!r}, {takes}.action) if a != "(none)"'
    return f'cost=lambda {takes}: sum({takes}.infos[p]["{key}"] {acted})'


def _together(found: Mapping[Label, Mapping[Label, Any]], summed: str) -> dict[Label, Any]:
    """Return one cost from what each agent reports; InvalidOption where two of them disagree."""
    cost: dict[Label, Any] = {}
    for agent, part in found.items():
        for constraint, amount in part.items():
            if cost.setdefault(constraint, amount) != amount:
                raise InvalidOption(
                    f"costs {show(found)}: agent {agent!r} reports {amount!r} for {constraint!r}, another one "
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


def hashable(value: Any) -> Label:
    """Return arrays and lists as tuples, mappings as tuples of items."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return tuple(hashable(x) for x in value)
    if isinstance(value, Mapping):
        return tuple((k, hashable(v)) for k, v in sorted(value.items(), key=lambda item: str(item[0])))
    return value  # type: ignore[no-any-return]
