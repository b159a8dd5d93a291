"""Safety-Gymnasium: environments whose `step` returns the cost as the third of six values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from acegames.adapters.environments.env_interface import check_names, read_options
from acegames.model.game import MarkovGame
from acegames.system.extras import optional

if TYPE_CHECKING:
    from acegames.adapters.gymnasium.gym_environments import SafetyGameEnv
    from acegames.adapters.pettingzoo.pz_environments import SafetyMultiAgentEnv


__all__ = ["env", "multi_agent_env"]


def env(game: MarkovGame, *, observation: Literal["dict", "vector"] = "vector", **options: Any) -> SafetyGameEnv:
    """Make a Gymnasium `Env` of a game with one player, with steps of six values.

    `step` returns (observation, reward, cost, terminated, truncated, info). Safety-Gymnasium itself
    is not needed.

    Args:
        game, observation, options: as for `acegames.adapters.gymnasium.env`, but with vectors by
            default.

    Raises:
        InvalidOption, Infeasible, MissingExtra: as there.
    """
    optional("gymnasium", "environments", "gymnasium")
    from acegames.adapters.gymnasium.gym_environments import SafetyGameEnv

    check_names(game)
    return SafetyGameEnv(game, observation=observation, **options)


def multi_agent_env(
    game: MarkovGame, *, observation: Literal["dict", "vector"] = "vector", **options: Any
) -> SafetyMultiAgentEnv:
    """Make a multi-agent environment with steps of six values.

    `step` returns (observations, rewards, costs, terminations, truncations, infos), each by agent.

    Args:
        game, observation, options: as for `acegames.adapters.pettingzoo.parallel_env`, but with
            vectors by default.

    Raises:
        InvalidOption, Infeasible, MissingExtra: as there.
    """
    optional("pettingzoo", "environments", "pettingzoo")
    from acegames.adapters.pettingzoo.pz_environments import SafetyMultiAgentEnv

    check_names(game)
    return SafetyMultiAgentEnv(game, read_options({"observation": observation, **options}))
