"""Safety-Gymnasium: environments whose `step` returns the cost as its third of six values, as learners written for it expect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from acegames.model.game import MarkovGame
from acegames.system.extras import optional

if TYPE_CHECKING:
    from acegames.adapters.safety_gymnasium.playing import SafetyGameEnv, SafetyMultiAgentEnv

__all__ = ["env", "multi_agent_env"]


def env(
    game: MarkovGame,
    *,
    mask: Literal["safe", "available"] = "safe",
    observation: Literal["dict", "vector"] = "vector",
    **options: Any,
) -> SafetyGameEnv:
    """Make a Gymnasium `Env` of a game with one player, whose `step` returns (observation, reward, cost, terminated, truncated, info).

    Args:
        game, mask, observation, options: as for `acegames.adapters.gymnasium.env`, but that observations are vectors by default.

    Raises:
        InvalidOption, Infeasible: as there.
        MissingExtra: without Gymnasium. Safety-Gymnasium itself is not needed.
    """
    optional("gymnasium", "environments", "gymnasium")
    from acegames.adapters.safety_gymnasium.playing import SafetyGameEnv, check_names

    check_names(game)
    return SafetyGameEnv(game, mask=mask, observation=observation, **options)


def multi_agent_env(
    game: MarkovGame,
    *,
    mask: Literal["safe", "available"] = "safe",
    observation: Literal["dict", "vector"] = "vector",
    **options: Any,
) -> SafetyMultiAgentEnv:
    """Make a multi-agent environment whose `step` returns (observations, rewards, costs, terminations, truncations, infos), by agent.

    Args:
        game, mask, observation, options: as for `acegames.adapters.pettingzoo.parallel_env`, but that observations are vectors by default.

    Raises:
        InvalidOption, Infeasible: as there.
        MissingExtra: without PettingZoo. Safety-Gymnasium itself is not needed.
    """
    from acegames.adapters.pettingzoo import parallel_env

    parallel = parallel_env(game, mask=mask, observation=observation, **options)
    from acegames.adapters.safety_gymnasium.playing import SafetyMultiAgentEnv, check_names

    check_names(game)
    return SafetyMultiAgentEnv(parallel)
