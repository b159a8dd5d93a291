"""How the costs of a game are counted: as they are, or rounded by an epsilon, and what "infeasible" then means (spec 5)."""

from __future__ import annotations

from typing import Any

from acegames.approximate.rounding import Rounding, round_costs
from acegames.errors import InvalidOption
from acegames.model.game import MarkovGame

__all__ = ["count_costs", "default_epsilon"]


def count_costs(
    game: MarkovGame, epsilon: Any, relative: bool, rounding: str, *, usual: str = "down"
) -> tuple[MarkovGame, tuple[Rounding | None, ...]]:
    """The game with costs as they are counted, and how; the game itself and nothing where that is exactly. `usual` is the default."""
    if epsilon is None and game.tails is not None and relative:
        raise InvalidOption(
            "relative: the epsilon of a discounted game is an amount; give an epsilon of your own to make it relative"
        )
    epsilon = default_epsilon(game, epsilon)
    if epsilon is None:
        if relative is not False or not isinstance(rounding, str) or rounding != usual:
            raise InvalidOption("relative and rounding say how costs are rounded; give epsilon too")
        return game, ()
    rounded = round_costs(game, epsilon, relative=relative, rounding=rounding)
    return (game, ()) if not any(rounded.rounding) else (rounded.game, rounded.rounding)


def default_epsilon(game: MarkovGame, epsilon: Any) -> Any:
    """A game from `discount` brings its own: what its tails leave of the epsilon that it was cut with."""
    if epsilon is not None or game.tails is None:
        return epsilon
    return game.tails.shares
