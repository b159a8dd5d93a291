"""Steps of six values, in the order and with the keys of Safety-Gymnasium.

There the infos of a step hold `cost_sum` and one `cost_...` per kind of cost, and no `cost`: its
own conversion to Gymnasium adds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acegames.adapters.environments.keys import constraint_names
from acegames.adapters.gymnasium.playing import SingleAgentEnv
from acegames.errors import InvalidOption
from acegames.model.game import MarkovGame, check_game

Six = tuple[Any, Any, Any, Any, Any, Any]


class SafetyGameEnv(SingleAgentEnv):
    """A game that one agent plays, with the cost as the third value of a step."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        seen, info = super().reset(seed=seed, options=options)
        return seen, info_of_six(info)[1]

    def step(self, action: Any) -> Six:  # type: ignore[override]
        """Play an action number; return Gymnasium's five values with the cost as the third."""
        seen, reward, terminated, truncated, info = super().step(action)
        cost, info = info_of_six(info)
        return seen, reward, cost, terminated, truncated, info


class SafetyMultiAgentEnv:
    """A parallel environment of a game, with the costs as the third value of a step."""

    def __init__(self, env: Any) -> None:
        self.env = env

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "env":
            raise AttributeError(name)
        return getattr(self.env, name)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        seen, infos = self.env.reset(seed=seed, options=options)
        return seen, {agent: info_of_six(info)[1] for agent, info in infos.items()}

    def step(self, actions: Mapping[str, Any]) -> Six:
        """Play one action number per agent; return six values, the costs as the third."""
        seen, rewards, terminations, truncations, infos = self.env.step(actions)
        told = {agent: info_of_six(info) for agent, info in infos.items()}
        costs = {agent: cost for agent, (cost, _) in told.items()}
        return seen, rewards, costs, terminations, truncations, {agent: info for agent, (_, info) in told.items()}


def check_names(game: MarkovGame) -> None:
    """Raise InvalidOption for a constraint whose cost would have the name of the sum of all costs."""
    check_game(game)
    if "sum" in {*map(str, game.constraints), *constraint_names(game.constraints).values()}:
        raise InvalidOption("constraint 'sum': infos hold the sum of all costs as `cost_sum`; choose another name")


def info_of_six(info: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    """Return the cost of a step, and its info under the names of Safety-Gymnasium."""
    told = dict(info)
    cost = told.pop("cost")
    kinds = {f"cost_{label}": float(amount) for label, amount in info.get("costs", {}).items()}
    return cost, {**told, **kinds, "cost_sum": cost}
