"""What an environment with PettingZoo's parallel interface answers: read and checked in one place, for all who play one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acegames.errors import InvalidOption
from acegames.model.game import Label
from acegames.model.numbers import is_scalar
from acegames.model.user_functions import check_function
from acegames.model.written import show


@dataclass(frozen=True, eq=False)
class Answer:
    """What an environment says after a step, each a mapping by agent, and what follows from it."""

    observations: Any
    rewards: Any
    terminations: Any
    truncations: Any
    infos: Any
    over: bool  # nobody plays on
    cut: bool  # over because all were truncated, none of them terminated


def agents_of(env: Any, players: Sequence[Label]) -> Sequence[Label]:
    """Who plays now; all of them where the environment does not say."""
    listed = getattr(env, "agents", None)
    return players if listed is None else list(listed)


def nobody_plays(env: Any) -> bool:
    """Whether an environment that says who plays lists nobody."""
    return not agents_of(env, ("somebody",))


def check_env(env: Any) -> None:
    """InvalidOption for an environment that cannot be called as it will be."""
    check_function("env.reset", env.reset, keywords=("seed",))
    check_function("env.step", env.step, ("actions",))


def reset_env(env: Any, seed: int | None) -> tuple[Any, Any]:
    """Begin an episode; return (observations, infos)."""
    answer = env.reset(seed=seed)
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise InvalidOption(f"reset of the environment answered {show(answer)}, must be (observations, infos)")
    if nobody_plays(env):
        raise InvalidOption("env.agents is empty after reset, must list the agents that play")
    return answer[0], answer[1]


def step_env(env: Any, given: Mapping[Label, Any], t: int) -> Answer:
    """Play one action per agent; InvalidOption when the answer has another form."""
    answer = env.step(given)
    if not isinstance(answer, tuple) or len(answer) != 5:
        raise InvalidOption(
            f"t={t}: step of the environment answered {show(answer)}, must be "
            "(observations, rewards, terminations, truncations, infos)"
        )
    _, rewards, terminations, truncations, _ = answer
    absent = [p for p in given if p not in rewards]
    if absent:
        raise InvalidOption(f"t={t}: step of the environment gives no reward to {absent[0]!r}")
    gone = [bool(terminations.get(p)) or bool(truncations.get(p)) for p in {**terminations, **truncations}]
    over = nobody_plays(env) or (bool(gone) and all(gone))
    cut = bool(truncations) and all(truncations.values()) and not any(terminations.values())
    return Answer(*answer, over, cut)


def cost_from_infos(
    infos: Any,
    key: str,
    players: Sequence[Label],
    playing: Sequence[Label],
    constraints: Sequence[Label],
    argument: str = "infos",
) -> Any:
    """`infos[agent][key]` of all who played: {constraint: number}, put together, or a number each, one for each constraint.

    `argument` is what a function of the user's for `cost=` takes, for the messages: "infos", or something that has them.
    """
    every_info = "infos.values()" if argument == "infos" else f"{argument}.infos.values()"
    if not constraints:
        return None
    try:
        found = {p: infos[p][key] for p in playing}
    except (KeyError, TypeError, IndexError):
        raise InvalidOption(
            f'infos {show(infos)}: infos[agent]["{key}"] is missing; give cost=, a function of {argument} that tells the cost'
        ) from None
    if all(isinstance(c, Mapping) for c in found.values()):
        return _together(found, f'cost=lambda {argument}: {{NAME: sum(info["{key}"][NAME] for info in {every_info})}}')
    if len(players) != len(constraints) or not all(is_scalar(c) for c in found.values()):
        raise InvalidOption(
            f"costs {show(found)} are not one number for each of the constraints {list(constraints)!r}; say how they count, "
            f'for a shared budget say cost=lambda {argument}: sum(info["{key}"] for info in {every_info})'
        )
    return [found.get(p, 0) for p in players]


def _together(found: Mapping[Label, Mapping[Label, Any]], summed: str) -> dict[Label, Any]:
    """One cost from what each agent reports; InvalidOption where two of them disagree."""
    cost: dict[Label, Any] = {}
    for agent, part in found.items():
        for constraint, amount in part.items():
            if cost.setdefault(constraint, amount) != amount:
                raise InvalidOption(
                    f"costs {show(found)}: agent {agent!r} reports {amount!r} for {constraint!r}, another one {cost[constraint]!r}; "
                    f"if both are to count, add them up: {summed.replace('NAME', repr(constraint))}"
                )
    return cost


def joint_state(env: Any, observations: Any) -> Label:
    """The state by convention: `env.state()` where there is one, else what the agents observe, one after the other."""
    inner = getattr(env, "unwrapped", env)  # wrappers have a method `state` whatever is below them
    if callable(getattr(env, "state", None)) and callable(getattr(inner, "state", None)):
        try:
            return hashable(env.state())
        except NotImplementedError:
            pass
    if isinstance(observations, Mapping):
        return tuple(hashable(x) for x in observations.values())
    return hashable(observations)


def hashable(value: Any) -> Label:
    """Arrays and lists as tuples, mappings as tuples of items."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return tuple(hashable(x) for x in value)
    if isinstance(value, Mapping):
        return tuple((k, hashable(v)) for k, v in sorted(value.items(), key=lambda item: str(item[0])))
    return value  # type: ignore[no-any-return]
