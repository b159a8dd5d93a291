"""Gymnasium (`pip install 'acegames[gymnasium]'`): games of one player as environments, and shields.

env(game), vector_env(game, num_envs=...)    ->  an environment of a game, or a batch of them
shielded(env, shield)                        ->  an environment in which budgets always hold
gymnasium.make("acegames/knapsack-v0")       ->  a catalog game, once this module is imported
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from acegames.adapters.gymnasium.ids import register
from acegames.model.game import MarkovGame
from acegames.system.extras import optional

if TYPE_CHECKING:
    from acegames.adapters.gymnasium.playing import SingleAgentEnv
    from acegames.adapters.gymnasium.vector import GameVectorEnv

__all__ = ["env", "vector_env"]

if find_spec("gymnasium") is not None:
    register()


def env(game: MarkovGame, *, mask: Literal["safe", "available"] = "safe", **options: Any) -> SingleAgentEnv:
    """Make a Gymnasium `Env` of a game with one player.

    Args:
        game: the game.
        mask: what `action_mask` allows: "safe", with which no budget is ever exceeded, or
            "available", every legal action.
        options: as for `acegames.adapters.pettingzoo.parallel_env`.

    Raises:
        Infeasible: no policy keeps every budget; mask="available" makes an environment anyway.
        InvalidOption: the game has several players, or an argument breaks a rule.
        MissingExtra: Gymnasium is not installed.
    """
    optional("gymnasium", "environments", "gymnasium")
    from acegames.adapters.gymnasium.playing import SingleAgentEnv

    return SingleAgentEnv(game, mask=mask, **options)


def vector_env(
    game: MarkovGame,
    *,
    num_envs: int,
    autoreset_mode: Any = "NextStep",
    mask: Literal["safe", "available"] = "safe",
    **options: Any,
) -> GameVectorEnv:
    """Make a Gymnasium `VectorEnv` of a game with one player: a batch of episodes in one step.

    Nothing is done environment by environment, so that thousands of them cost little more than one.
    They follow the same law as `env`, with the same masks, observations and infos.

    Args:
        game: the game.
        num_envs: how many environments.
        autoreset_mode: how episodes begin anew: "NextStep", "SameStep" or "Disabled", or
            Gymnasium's `AutoresetMode`.
        mask: as for `env`.
        options: `shield`, `illegal`, `owners`, `features` and `observation` as for `env`.

    Raises:
        Infeasible, InvalidOption, MissingExtra: as for `env`.
    """
    optional("gymnasium", "environments", "gymnasium")
    from acegames.adapters.gymnasium.vector import GameVectorEnv

    return GameVectorEnv(game, num_envs, autoreset_mode, mask=mask, **options)
