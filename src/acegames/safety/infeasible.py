"""The error for a game that no policy plays safely: it says which budgets suffice."""

from __future__ import annotations

from acegames.approximate.rounding import Rounding
from acegames.approximate.within import Within
from acegames.errors import Infeasible, TooLarge
from acegames.model.budgets import has_schedule
from acegames.model.game import Label, MarkovGame
from acegames.model.numbers import plain, plain_array
from acegames.model.words import number_beside
from acegames.safety.frontier import Frontier


def infeasible(game: MarkovGame, how: str = "") -> Infeasible:
    """Return the error for a game without a feasible policy; `how` says how costs were counted."""
    verdict = "no policy keeps every budget with probability one" + (f", {how}" if how else "")
    try:
        frontier = Frontier(game)
        minimal = plain_array(frontier.at_root(), len(game.constraints))
    except (TooLarge, OverflowError) as error:
        return Infeasible(f"{verdict} (which budgets would suffice is unknown: {error})")
    if not len(minimal):
        stored = [
            c for c, kept in zip(game.constraints, game.reservoirs, strict=True) if kept is not None and kept.missing
        ]
        return Infeasible(
            f"{verdict}. No capacity suffices: {_some(stored)} must start at a higher level", minimal, game.constraints
        )
    shown = [
        ", ".join(
            f"{c!r}: {'capacity ' * (kept is not None)}{number_beside(b, plain(own))}"
            for c, kept, b, own in zip(game.constraints, game.reservoirs, row, frontier.reference, strict=True)
        )
        for row in minimal[:3].tolist()
    ]
    more = f"; and {len(minimal) - 3} more" if len(minimal) > 3 else ""
    last = (
        " (the last finite entry of the schedule, with the other entries raised or lowered by the same amount)"
        if has_schedule(game)
        else ""
    )
    return Infeasible(
        f"{verdict}. Minimal budgets that suffice{last}{', with costs so rounded' if how else ''}: {'; or '.join(shown)}{more}",
        minimal,
        game.constraints,
    )


def _some(labels: list[Label]) -> str:
    """Return names of which one, or several, are meant."""
    together = ["", "", " or both"][len(labels)] if len(labels) < 3 else " or several of them"
    return " or ".join(map(repr, labels)) + together


def infeasible_as_counted(game: MarkovGame, within: Within) -> Infeasible:
    """Return the error for a game whose costs may be rounded.

    The budgets that suffice come from costs rounded for every budget: the rounding for the game's
    own leaves out what cannot break that one, but might break a smaller one.
    """
    rules = within.count(game).rounding
    if not rules:
        return infeasible(game)
    try:
        again = within.rounded(game, any_budget=True)
        assert again is not None
        return infeasible(again.game, _how(again.rounding))
    except TooLarge:
        return Infeasible(
            f"no policy keeps every budget with probability one, {_how(rules)} (which budgets would suffice is unknown)"
        )


def _how(rules: tuple[Rounding | None, ...]) -> str:
    """Return what an infeasible verdict means where costs are rounded."""
    if any(r is not None and r.direction == "up" for r in rules):
        return "with costs rounded up (with the true costs the game may still be feasible: try a smaller epsilon, or rounding='down')"
    if any(r is not None and r.direction == "down" for r in rules):
        return "even with costs rounded down, so none does with the true costs"
    return ""
