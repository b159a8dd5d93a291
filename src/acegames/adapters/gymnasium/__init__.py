"""Gymnasium: a game of one player as an environment, an environment as a game of one player.

env(game)                                   ->  an environment of a game
from_env(env, horizon, budget=..., ...)     ->  MarkovGame, to be solved or shielded
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from acegames.adapters.gymnasium.reading import from_env
from acegames.model.game import MarkovGame
from acegames.system.extras import optional

if TYPE_CHECKING:
    from acegames.adapters.gymnasium.playing import SingleAgentEnv

__all__ = ["env", "from_env"]


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
