"""What is known of a game that is too fine to be solved exactly: costs rounded down and rounded up enclose the truth (spec 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from acegames.concepts import Concept
from acegames.engines import Engine, Report
from acegames.errors import Infeasible, InvalidOption
from acegames.model.game import MarkovGame
from acegames.solving.pipeline import Solution, solve

__all__ = ["Bracket", "bracket"]


@dataclass(frozen=True, eq=False)
class Bracket:
    """The solutions with costs rounded down and up, and what they say together.

    With one player the true optimum lies between the two values. With more it need not: equilibria are not ordered by safety.
    """

    game: MarkovGame
    down: Solution | None  # None: infeasible even with costs rounded down
    up: Solution | None  # None: infeasible with costs rounded up

    @property
    def verdict(self) -> str:
        """ "feasible" or "infeasible" for sure, or "between": this epsilon cannot tell (nor any, that infinite play is feasible)."""
        if self.up is not None and self.game.tails is None:
            return "feasible"
        return "infeasible" if self.down is None else "between"

    def __str__(self) -> str:
        if self.down is None:
            return "Infeasible for sure: even with costs rounded down no policy keeps the budgets."
        said = {
            "feasible": "Feasible for sure: with costs rounded up some policy keeps every true budget.",
            "between": "Between: feasible with costs rounded down, infeasible with costs rounded up; a smaller epsilon may tell."
            if self.up is None
            else "Between: the first steps are feasible for sure, what comes after play was cut short may exceed the budgets by its tail.",
        }[self.verdict]
        over = ", ".join(
            f"{c} {e}" for c, e in zip(self.game.constraints, self.down.guarantee.excess, strict=True) if e
        )
        kept = f"budgets exceeded at most by {over}" if over else "budgets never exceeded"
        lines = [said, f"Rounded down: {self._values(self.down)}; {kept}."]
        if self.up is not None:
            lines.append(f"Rounded up:   {self._values(self.up)}; {self._kept(self.up)}.")
            if len(self.game.players) == 1 and self.game.tails is None:
                lines.append("With one player the true optimum lies between the two values.")
        return "\n".join(lines)

    def _kept(self, solution: Solution) -> str:
        excess = zip(self.game.constraints, solution.guarantee.excess, strict=True)
        over = ", ".join(f"{c} {float(e):.6g}" for c, e in excess if e)
        return f"budgets exceeded at most by {over}" if over else "budgets never exceeded"

    def _values(self, solution: Solution) -> str:
        each = ", ".join(f"{p} {v:.6g}" for p, v in zip(self.game.players, solution.values, strict=True))
        return f"values {each}"


def bracket(
    game: MarkovGame,
    epsilon: Any = None,
    concept: Concept | None = None,
    *,
    relative: bool = False,
    engine: Engine | None = None,
    progress: Report | None = None,
) -> Bracket:
    """Solve with costs rounded down and rounded up, and say what is known of the true game.

    Args:
        game: the game.
        epsilon: as in `solve`; only a game from `discount` needs none.
        concept, relative, engine, progress: as in `solve`.
    """
    if epsilon is None and game.tails is None:
        raise InvalidOption("epsilon: bracket needs one; an exact solve needs no bracket")

    def one(rounding: str) -> Solution | None:
        try:
            return solve(
                game, concept, epsilon=epsilon, relative=relative, rounding=rounding, engine=engine, progress=progress
            )
        except Infeasible:
            return None

    down = one("down")
    return Bracket(game, down, None if down is None else one("up"))
