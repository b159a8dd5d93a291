"""The options epsilon, relative and rounding: whether and how costs are rounded (spec 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acegames.approximate.rounding import Rounded, round_costs
from acegames.errors import InvalidOption
from acegames.model.checks import check_flag
from acegames.model.game import MarkovGame
from acegames.model.numbers import exact, is_scalar, plain


@dataclass(frozen=True)
class Within:
    """How far budgets may be exceeded: epsilon, relative and rounding, as every function has them.

    One rule says which rounding None means. Where an equilibrium is computed (`solve`, `estimate`,
    `budget_curve`) costs are rounded down: every deviation that is safe with the true costs is
    deterred, and an infeasible verdict holds for the true costs. Where safety is promised
    (`Shield`) they are rounded up: no true budget is ever exceeded.
    """

    epsilon: Any = None
    relative: bool = False
    rounding: str | None = None
    default: str = "down"  # the rounding that None means

    @property
    def direction(self) -> str:
        """Which way costs are rounded."""
        return self.default if self.rounding is None else self.rounding

    def rounded(self, game: MarkovGame, *, any_budget: bool = False) -> Rounded | None:
        """Return the game with rounded costs; None without an epsilon (`discount` gives its games
        one).
        """
        epsilon, direction = self.epsilon, self.direction
        if epsilon is None and game.tails is not None:
            if self.relative:
                raise InvalidOption(
                    "relative: the epsilon of a discounted game is an amount; give epsilon= as well to use a relative one"
                )
            epsilon = game.tails.shares
        if epsilon is None:
            if check_flag("relative", self.relative) or not isinstance(direction, str) or direction != self.default:
                raise InvalidOption("relative and rounding say how costs are rounded; give epsilon too")
            return None
        return round_costs(game, epsilon, relative=self.relative, rounding=direction, any_budget=any_budget)

    def count(self, game: MarkovGame) -> Rounded:
        """Return the game as costs are counted; itself, with no rules, where every cost is exact."""
        found = self.rounded(game)
        return Rounded(game, game, ()) if found is None or not any(found.rounding) else found

    def in_words(self, game: MarkovGame) -> str:
        """Return the epsilon in words; empty where the answer is to be exact."""
        epsilon = self.epsilon
        if epsilon is None and game.tails is not None:
            return f"epsilon {plain(game.tails.epsilon)} in all"
        if epsilon is None or (is_scalar(epsilon) and not epsilon):
            return ""
        if isinstance(epsilon, Mapping):
            shown = ", ".join(f"{c} {plain(exact(e))}" for c, e in epsilon.items())
        else:
            shown = ", ".join(str(plain(exact(e))) for e in ([epsilon] if is_scalar(epsilon) else epsilon))
        return f"epsilon {shown}" + (" of each budget" if self.relative else "")
