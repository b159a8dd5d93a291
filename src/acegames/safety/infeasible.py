"""The error for a game that no policy plays safely: which budgets would do, and what rounded costs have to do with it."""

from __future__ import annotations

from typing import Any

from acegames.approximate.rounding import Rounding, round_costs
from acegames.approximate.within import default_epsilon
from acegames.errors import Infeasible, TooLarge
from acegames.model.game import MarkovGame
from acegames.model.numbers import plain_array
from acegames.safety.frontier import Frontier

__all__ = ["infeasible", "infeasible_as_counted"]


def infeasible(game: MarkovGame, how: str = "") -> Infeasible:
    """The error for a game without a feasible policy, with help in it; `how` says how costs were counted."""
    verdict = "no policy keeps every budget with probability one" + (f", {how}" if how else "")
    try:
        minimal = plain_array(Frontier(game).at_root(), len(game.constraints))
    except (TooLarge, OverflowError) as error:
        return Infeasible(f"{verdict} (which budgets would do is unknown: {error})")
    shown = [
        ", ".join(f"{c!r}: {b}" for c, b in zip(game.constraints, row, strict=True)) for row in minimal[:3].tolist()
    ]
    more = f"; and {len(minimal) - 3} more" if len(minimal) > 3 else ""
    last = " (last finite entry of the schedule, the others shifted along)" if len(set(game.budgets)) > 1 else ""
    return Infeasible(
        f"{verdict}. Minimal budgets that would do{last}{', so counted' if how else ''}: {'; or '.join(shown)}{more}",
        minimal,
    )


def infeasible_as_counted(
    game: MarkovGame, rules: tuple[Rounding | None, ...], epsilon: Any, relative: bool, rounding: str
) -> Infeasible:
    """The error, with the minimal budgets of the game as it was counted, but with nothing left out for the sake of its own budget."""
    if not rules:
        return infeasible(game)
    try:
        options: dict[str, Any] = {"relative": relative, "rounding": rounding, "any_budget": True}
        again = round_costs(game, default_epsilon(game, epsilon), **options)
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
