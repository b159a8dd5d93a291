"""Bounds on a game with high-precision costs: rounding down and up encloses it (spec 5)."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec

from acegames.concepts import Concept
from acegames.engines import Engine, OnProgress
from acegames.errors import Infeasible, InvalidOption
from acegames.model.game import MarkovGame
from acegames.model.user_functions import OF_CONCEPT, THREADS, public
from acegames.model.watching import takes_progress
from acegames.model.words import rounded_up
from acegames.solving.pipeline import solve
from acegames.solving.solution import Solution
from acegames.system.deprecation import deprecated
from acegames.system.showing import Shown


@dataclass(frozen=True, eq=False, repr=False)
class Bracket(Shown):
    """The solutions with costs rounded down and up, and what they say together.

    With one player the true optimum lies between the two values. With more players it need not:
    equilibria are not ordered by safety.
    """

    game: MarkovGame
    down: Solution | None  # None: infeasible even with costs rounded down
    up: Solution | None  # None: infeasible with costs rounded up

    @property
    def verdict(self) -> str:
        """ "feasible" or "infeasible" for sure, or "between": this epsilon does not decide it.

        No epsilon can show that infinite play is feasible.
        """
        if self.up is not None and self.game.tails is None:
            return "feasible"
        return "infeasible" if self.down is None else "between"

    def __str__(self) -> str:
        if self.down is None:
            return "Infeasible for sure: even with costs rounded down no policy keeps the budgets."
        said = "Feasible for sure: with costs rounded up some policy keeps every true budget."
        if self.up is None:
            said = "Undecided: feasible with costs rounded down, infeasible with costs rounded up; a smaller epsilon may decide."
        elif self.verdict == "between":
            said = "Undecided: the steps before play is cut off are feasible for sure, "
            said += "but the costs of later steps may exceed the budgets."
        lines = [said, f"Rounded down: {self._side(self.down)}."]
        if self.up is not None:
            lines.append(f"Rounded up:   {self._side(self.up)}.")
            if len(self.game.players) == 1 and self.game.tails is None:
                lines.append("With one player the true optimum lies between the two values.")
        return "\n".join(lines)

    def _side(self, solution: Solution) -> str:
        each = ", ".join(f"{p} {v:.6g}" for p, v in zip(self.game.players, solution.values, strict=True))
        excess = zip(self.game.constraints, solution.guarantee.excess, strict=True)
        over = ", ".join(f"{c} {rounded_up(e)}" for c, e in excess if e)
        kept = f"budgets are exceeded by at most {over}" if over else "no budget is ever exceeded"
        return f"values {each}; {kept}"


P = ParamSpec("P")


def _taking_the_old_order(function: Callable[P, Bracket]) -> Callable[P, Bracket]:
    """Calls as bracket(game, epsilon, concept) go on working for one version, with a warning."""

    @functools.wraps(function)
    def wrapped(*given: Any, **named: Any) -> Any:
        if len(given) > 1 and "epsilon" not in named and not isinstance(given[1], Concept | None | type | str):
            deprecated("bracket(game, epsilon, concept)", "bracket(game, concept, epsilon=epsilon)")
            game, named["epsilon"], *more = given
            given = (game, *more)
        return function(*given, **named)

    return wrapped


@_taking_the_old_order
@public("bracket", **THREADS, **OF_CONCEPT)
@takes_progress("solving")
def bracket(
    game: MarkovGame,
    concept: Concept | None = None,
    *,
    epsilon: Any = None,
    relative: bool = False,
    engine: Engine | None = None,
    progress: OnProgress | bool | None = None,
) -> Bracket:
    """Solve with costs rounded down and rounded up, which brackets the game with its true costs.

    Args:
        game: the game.
        epsilon: as in `solve`, but required unless the game comes from `discount`.
        concept, relative, engine, progress: as in `solve`; `CCE()` is the default concept.

    Raises:
        InvalidOption: epsilon is missing, or an option breaks a rule.
        NoEquilibrium, TooLarge: as in `solve`.
    """
    if epsilon is None and game.tails is None:
        raise InvalidOption("epsilon: missing; bracket rounds costs by it (without rounding, solve(game) is exact)")
    options: dict[str, Any] = {"epsilon": epsilon, "relative": relative, "engine": engine, "progress": progress}
    found: dict[str, Solution] = {}
    with contextlib.suppress(Infeasible):
        for rounding in ("down", "up"):
            found[rounding] = solve(game, concept, rounding=rounding, **options)
    return Bracket(game, found.get("down"), found.get("up"))
