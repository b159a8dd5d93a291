"""PettingZoo: games out as environments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from acegames.extras import optional
from acegames.model.game import Label, MarkovGame

if TYPE_CHECKING:
    from acegames.adapters.pettingzoo.playing import GameParallelEnv
    from acegames.shield import Shield

__all__ = ["aec_env", "parallel_env", "raw_aec_env"]


def parallel_env(
    game: MarkovGame,
    *,
    mask: Literal["safe", "available"] = "safe",
    shield: Shield | None = None,
    illegal: float | None = -1.0,
    owners: Mapping[Label, Label] | None = None,
    features: Callable[[Any], Any] | None = None,
    observation: Literal["dict", "vector"] = "dict",
    render_mode: str | None = None,
) -> GameParallelEnv:
    """Make a PettingZoo `ParallelEnv` of a game. Every agent sees the state, the time and what is left of each budget.

    Args:
        game: the game.
        mask: what `action_mask` allows. "safe": agents who choose at once, each within its own mask, never break a budget.
            "available": whatever the game offers.
        shield: a `Shield` of the game, where there is one already, or one that rounds fine or random costs: Shield(game, epsilon=...).
        illegal: an action that the game does not offer in this situation ends the episode with this reward for the agent that chose it (for
            all, where only the combination is not offered), as under PettingZoo's TerminateIllegalWrapper. None: InvalidOption instead.
        owners: {constraint: player} where a budget is one player's own: `cost` in the infos of others leaves it out.
        features: shows a state as the numbers that this function gives for it, in place of a one for its number.
        observation: "dict" with the keys "observation" and "action_mask"; or "vector", with the mask in the infos alone.
        render_mode: None, "human" (prints), "ansi" (text), "rgb_array" (a picture).

    Raises:
        Infeasible: no play keeps every budget; with mask="available" there is an environment all the same.
        InvalidOption: an argument breaks a rule.
        MissingExtra: without PettingZoo.
    """
    optional("pettingzoo", "environments", "pettingzoo")
    from acegames.adapters.pettingzoo.playing import GameParallelEnv
    from acegames.adapters.play import Options

    return GameParallelEnv(game, Options(mask, shield, illegal, owners, features, observation, render_mode))


def raw_aec_env(game: MarkovGame, *, mask: Literal["turn", "safe", "available"] = "turn", **options: Any) -> Any:
    """Make an `AECEnv` of a game through PettingZoo's own conversion: agents choose one after the other, and the last choice plays all.

    Args:
        game: the game.
        mask: "turn": each mask knows what the agents before have chosen, and leaves those behind a safe choice; it allows more than
            "safe", whose masks do not tell an agent anything about the others. "available": whatever the game offers.
        options: as for `parallel_env`.
    """
    optional("pettingzoo", "environments", "pettingzoo")
    from acegames.adapters.pettingzoo.playing import convert
    from acegames.adapters.play import Options

    return convert(game, Options(mask=mask, **options))


def aec_env(game: MarkovGame, *, mask: Literal["turn", "safe", "available"] = "turn", **options: Any) -> Any:
    """Make an `AECEnv` as `raw_aec_env` does, in the wrappers that PettingZoo's own come in: they check actions and the order of calls."""
    raw = raw_aec_env(game, mask=mask, **options)
    from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper, OrderEnforcingWrapper

    return OrderEnforcingWrapper(AssertOutOfBoundsWrapper(raw))
