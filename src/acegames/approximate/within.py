"""How the costs of a game are counted: as they are, or rounded by an epsilon, and what "infeasible" then means (spec 5)."""

from __future__ import annotations

from typing import Any

from acegames.approximate.rounding import round_costs
from acegames.errors import Infeasible, InvalidOption, TooLarge
from acegames.model.game import MarkovGame
from acegames.policy.tracker import Rounding
from acegames.safety.reduction import infeasible

__all__ = ["count_costs", "infeasible_as_counted"]


def count_costs(
    game: MarkovGame, epsilon: Any, relative: bool, rounding: str, *, usual: str = "down"
) -> tuple[MarkovGame, tuple[Rounding | None, ...]]:
    """The game with costs as they are counted, and how; the game itself and nothing where that is exactly. `usual` is the default."""
    if epsilon is None and game.tails is not None and relative:
        raise InvalidOption(
            "relative: the epsilon of a discounted game is an amount; give an epsilon of your own to make it relative"
        )
    epsilon = _default_epsilon(game, epsilon)
    if epsilon is None:
        if relative is not False or not isinstance(rounding, str) or rounding != usual:
            raise InvalidOption("relative and rounding say how costs are rounded; give epsilon too")
        return game, ()
    rounded = round_costs(game, epsilon, relative=relative, rounding=rounding)
    return (game, ()) if not any(rounded.rounding) else (rounded.game, rounded.rounding)


def _default_epsilon(game: MarkovGame, epsilon: Any) -> Any:
    """A game from `discount` brings its own: what its tails leave of the epsilon that it was cut with."""
    if epsilon is not None or game.tails is None:
        return epsilon
    return game.tails.shares


def infeasible_as_counted(
    game: MarkovGame, rules: tuple[Rounding | None, ...], epsilon: Any, relative: bool, rounding: str
) -> Infeasible:
    """The error, with the minimal budgets of the game as it was counted, but with nothing left out for the sake of its own budget."""
    if not rules:
        return infeasible(game)
    try:
        options: dict[str, Any] = {"relative": relative, "rounding": rounding, "any_budget": True}
        again = round_costs(game, _default_epsilon(game, epsilon), **options)
        return infeasible(again.game, _how(again.rounding))
    except TooLarge:
        return Infeasible(
            f"no policy keeps every budget with probability one, {_how(rules)} (which budgets would do is unknown)"
        )


def _how(rules: tuple[Rounding | None, ...]) -> str:
    """What an infeasible verdict means where costs are rounded."""
    if any(r is not None and r.direction == "up" for r in rules):
        return "with costs rounded up (the true game may still be feasible: try a smaller epsilon, or rounding down)"
    if any(r is not None and r.direction == "down" for r in rules):
        return "even with costs rounded down, so none does in truth"
    return ""
