"""What is asked for: the kind of equilibrium, and which one of that kind. Small frozen records (spec 4).

`objective` chooses among the equilibria of each stage:

    "welfare"      the largest sum of the players' values (the default)
    "egalitarian"  the largest value of the worst-off player
    "fair"         the smallest gap between the best-off and the worst-off player
    a player       the largest value of that player
    N weights      the largest weighted sum
    None           any equilibrium

Ties go to the first player's value, then to the second's, and so on, so the values are unique (except with None).
The choice is made stage by stage, from the last to the first; it is not the best equilibrium of the whole game.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from acegames.errors import InvalidOption

NAMED_OBJECTIVES = ("welfare", "egalitarian", "fair")

BACKENDS = {"quantecon": ("quantecon.game_theory", "quantecon"), "gambit": ("pygambit", "gambit")}
"""Libraries that can be asked for Nash equilibria: the module of each, and the extra that installs it."""

LARGEST_FLOOR = 1e6
"""Beyond this the float programs cannot tell the players' own utilities apart any more."""

Objective = str | Hashable | tuple[float, ...] | None


@dataclass(frozen=True)
class _Chosen:
    objective: Any = "welfare"

    def __post_init__(self) -> None:
        objective = self.objective
        if not isinstance(objective, (str, tuple)) and (
            isinstance(objective, Sequence) or hasattr(objective, "__array__")
        ):
            try:
                object.__setattr__(self, "objective", tuple(float(w) for w in objective))
            except (TypeError, ValueError):
                raise InvalidOption(f"objective: got {objective!r}, weights must be numbers") from None

    def weights(self, players: tuple[Hashable, ...]) -> tuple[float, ...] | None:
        """Return the weights of a linear objective, or None for "egalitarian", "fair" and None."""
        objective, n = self.objective, len(players)
        if objective is None or objective in ("egalitarian", "fair"):
            return None
        if isinstance(objective, str) and objective == "welfare":
            return (1.0,) * n
        if objective in players:
            return tuple(float(p == objective) for p in players)
        if isinstance(objective, tuple):
            try:
                weights = tuple(float(w) for w in objective)
            except (TypeError, ValueError):
                weights = ()
            if len(weights) == n and all(math.isfinite(w) for w in weights):
                return weights
        raise InvalidOption(
            f"objective: got {objective!r}; must be one of {', '.join(map(repr, NAMED_OBJECTIVES))}, None, "
            f"one of the players {list(players)!r}, or {n} finite weights"
        )


@dataclass(frozen=True)
class _Correlated(_Chosen):
    floor: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.floor, (int, float)) and 0 <= self.floor <= LARGEST_FLOOR):
            raise InvalidOption(f"floor: got {self.floor!r}, must be a number between 0 and {LARGEST_FLOOR:g}")


@dataclass(frozen=True)
class CE(_Correlated):
    """Correlated equilibrium: no player gains by answering a recommendation with a feasible other action.

    Args:
        objective: which equilibrium of each stage; see the module.
        floor: how far below a player's worst feasible utility a deviation that leaves the feasible joint actions
            is valued, in units of the range of that player's utilities at the stage. Sound for every value; a larger one leaves the
            objective more equilibria to choose from.
    """


@dataclass(frozen=True)
class CCE(_Correlated):
    """Coarse correlated equilibrium: no player gains by committing to a feasible action before the recommendation is drawn.

    At every step a deviator commits so, or follows; it may follow after it has committed, and the other way round.

    Args:
        objective: which equilibrium of each stage; see the module.
        floor: as in `CE`.
    """


@dataclass(frozen=True)
class Nash(_Chosen):
    """Nash equilibrium: the players draw their actions independently, and none gains by a feasible other action.

    Two players: every stage is solved exactly, or shown to have no equilibrium (hard budgets can take it away). Three or more
    players: only pure equilibria are looked for, unless there is a backend. Where a stage has none, `solve` raises NoEquilibrium.

    Args:
        objective: which of the equilibria found at each stage; see the module.
        backend: "quantecon" or "gambit": stages whose feasible joint actions are a product are put to that library. Two players: all of
            them. Three or more: those without a pure equilibrium, so that mixed ones are found too. Its answers are checked, and
            where it has none, or two players have too many supports for it, the stage is solved as without it.
    """

    backend: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.backend is not None and (not isinstance(self.backend, str) or self.backend not in BACKENDS):
            raise InvalidOption(
                f"backend: got {self.backend!r}, must be None or one of {', '.join(map(repr, BACKENDS))}"
            )


Correlated = CE | CCE
Concept = Correlated | Nash
