"""The kinds of equilibrium, and the objectives that choose one of them (spec 4).

`CCE()` is the default concept. A concept is a class: its words, when a deviating player commits
itself (`interim`), whether the players draw independently (`product`), and which players deviate.
`CONCEPTS` lists them for the command line and for files. An objective is a record in `OBJECTIVES`:

    "welfare"      the largest sum of the players' values (the default)
    "egalitarian"  the largest value of the worst-off player
    "fair"         the smallest gap between the best-off and the worst-off player
    a player       the largest value of that player
    N weights      the largest weighted sum
    None           any equilibrium

Ties go to the first player's value, then to the second's, and so on, so the values are unique
(except with None). `solve` chooses stage by stage, from the last to the first; the best equilibrium
of the whole game is found by `payoffs`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from acegames.errors import InvalidOption

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

BACKENDS = {"quantecon": ("quantecon.game_theory", "quantecon"), "gambit": ("pygambit", "gambit")}
"""Libraries that find Nash equilibria: the module of each, and the extra that installs it."""

LARGEST_FLOOR = 1e6  # beyond this the float programs cannot tell the players' own utilities apart any more


@dataclass(frozen=True)
class Objective:
    """What is maximised at each stage."""

    sentence: str  # after "chosen for" in a report
    kernel: int  # its number in `kernels.records`
    measure: str = ""  # where players' values are compared: "lowest" value, or "gap" to the largest
    effort: float = 1.0  # of a stage program, as a multiple of that of a weighted sum

    @property
    def compares(self) -> bool:
        """Whether players' values are compared; then programs have more rows."""
        return bool(self.measure)


WEIGHTED = Objective("a weighted sum of values", 0)  # one player, or weights: what no word names
OBJECTIVES: dict[str | None, Objective] = {
    "welfare": Objective("the largest sum of values", 0),
    "egalitarian": Objective("the largest value of the worst-off player", 1, "lowest", effort=3.0),
    "fair": Objective("the smallest gap between values", 2, "gap", effort=3.0),
    None: Objective("any", 3),
}
"""The objectives that have a word, the same for every game."""


@dataclass(frozen=True)
class Words:
    """How people speak of a concept."""

    adjective: str  # before "equilibrium", inside a sentence
    meaning: str  # one or two sentences

    @property
    def noun(self) -> str:
        """The concept inside a sentence, such as "coarse correlated equilibrium"."""
        return f"{self.adjective} equilibrium"

    @property
    def title(self) -> str:
        """The concept at the beginning of a sentence."""
        return self.noun[0].upper() + self.noun[1:]


@dataclass(frozen=True)
class Concept:
    """A kind of equilibrium, and the objective that chooses among the equilibria of each stage."""

    objective: str | Hashable | ArrayLike | None = "welfare"

    words: ClassVar[Words]
    interim: ClassVar[bool] = False
    """Whether a deviator hears its recommendation first; else it commits to an action before."""
    product: ClassVar[bool] = False
    """Whether the players draw their actions independently."""
    floor = 0.0  # a field of the concepts that are linear programs

    def __post_init__(self) -> None:
        objective: Any = self.objective
        listed = isinstance(objective, Sequence) or hasattr(objective, "__array__")
        if listed and not isinstance(objective, (str, tuple)):
            try:
                object.__setattr__(self, "objective", tuple(float(w) for w in objective))
            except (TypeError, ValueError):
                raise InvalidOption(f"objective: got {objective!r}, weights must be numbers") from None

    @property
    def criterion(self) -> Objective:
        """The record of the objective."""
        objective = self.objective
        return OBJECTIVES.get(objective, WEIGHTED) if objective is None or isinstance(objective, str) else WEIGHTED

    def deviators(self, players: tuple[Hashable, ...]) -> tuple[bool, ...]:
        """Return whether each player may deviate; under concepts with `product` all must."""
        return (True,) * len(players)

    def weights(self, players: tuple[Hashable, ...]) -> tuple[float, ...] | None:
        """Return the weights of a linear objective, or None for "egalitarian", "fair" and None."""
        objective, n = self.objective, len(players)
        if self.criterion.kernel != WEIGHTED.kernel:
            return None
        if objective == "welfare":
            return (1.0,) * n
        if objective in players:
            return tuple(float(p == objective) for p in players)
        if isinstance(objective, tuple) and len(objective) == n:
            with contextlib.suppress(TypeError, ValueError):
                weights = tuple(float(w) for w in objective)
                if all(map(math.isfinite, weights)):
                    return weights
        raise InvalidOption(
            f"objective: got {objective!r}; must be one of {', '.join(repr(word) for word in OBJECTIVES)}, "
            f"one of the players {list(players)!r}, or {n} finite weights"
        )

    def score(self, values: Any, players: tuple[Hashable, ...]) -> Any:
        """Return the objective of values (Q, N), larger is better; None where any will do."""
        weights = self.weights(players)
        if weights is not None:
            return values @ weights
        if not self.criterion.compares:
            return None
        lowest = values.min(axis=1)
        return lowest - values.max(axis=1) if self.criterion.measure == "gap" else lowest


@dataclass(frozen=True)
class Correlated(Concept):
    """What the correlated concepts share: every stage is a linear program."""

    floor: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.floor, (int, float)) and 0 <= self.floor <= LARGEST_FLOOR):
            raise InvalidOption(f"floor: got {self.floor!r}, must be a number between 0 and {LARGEST_FLOOR:g}")


@dataclass(frozen=True)
class CE(Correlated):
    """Correlated equilibrium: no player gains by answering a recommendation with another action.

    Args:
        objective: which equilibrium is chosen at each stage game: "welfare" (the default),
            "egalitarian", "fair", a player, one weight per player, or None for any.
        floor: a deviation may lead to an infeasible joint action, which the deviator cannot play.
            The solver gives the deviator a utility for it that is below that of its worst feasible
            joint action, by `floor` times the spread of its utilities at that stage game.
            Every value gives a correct equilibrium; a larger one leaves the objective more
            equilibria to choose from.
    """

    words = Words(
        "correlated",
        "Before each step a joint action is drawn and each player is told its part. No player gains by "
        "answering what it is told with another safe action.",
    )
    interim = True


@dataclass(frozen=True)
class CCE(Correlated):
    """Coarse correlated equilibrium, the default: no player gains by committing to an action.

    At every step a deviator either commits to a safe action before the recommendation is drawn, or
    follows the recommendation; it may decide anew at the next step.

    Args:
        objective: as in `CE`.
        floor: as in `CE`.
    """

    words = Words(
        "coarse correlated",
        "Before each step a joint action is drawn and each player is told its part. No player gains by "
        "committing, before it is told, to another safe action.",
    )


@dataclass(frozen=True)
class Nash(Concept):
    """Nash equilibrium: the players draw independently, and none gains by another action.

    With two players, every stage game is solved exactly or shown to have no equilibrium (hard
    budgets can rule out all of them). With three or more players, only pure equilibria are searched
    for, unless there is a backend. If a stage game has none, `solve` raises NoEquilibrium.

    Args:
        objective: which of the equilibria found at each stage game; the words are those of `CE`.
        backend: "quantecon" or "gambit", to let that library solve stage games whose feasible joint
            actions are a product of one action set per player: with two players all of these, with
            three or more those without a pure equilibrium, so that mixed ones are found too. Its
            answers are checked. If it finds none, or two players have too many supports for it, the
            stage game is solved without it.
    """

    backend: str | None = None
    words = Words(
        "Nash", "At each step every player draws its action by itself. No player gains by another safe action."
    )
    product = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.backend is not None and (not isinstance(self.backend, str) or self.backend not in BACKENDS):
            raise InvalidOption(
                f"backend: got {self.backend!r}, must be None or one of {', '.join(map(repr, BACKENDS))}"
            )


CONCEPTS: dict[str, type[Concept]] = {"ce": CE, "cce": CCE, "nash": Nash}
"""Every concept by its word on the command line, which is its name in small letters."""


def check_concept(concept: Any) -> Concept:
    """Check and return the concept; InvalidOption says what to write instead of anything else."""
    if isinstance(concept, Concept):
        return concept
    kind = CONCEPTS.get(concept.lower()) if isinstance(concept, str) else concept
    hint = ""
    if isinstance(kind, type) and issubclass(kind, Concept):
        write, one = "write it with parentheses" if kind is concept else "write", f"ace.{kind.__name__}"
        hint = f"; {write}: {one}(), or with an objective {one}(objective='welfare')"
    *names, last = (f"{known.__name__}()" for known in CONCEPTS.values())
    raise InvalidOption(f"concept: got {concept!r:.60}, must be {', '.join(names)} or {last}{hint}")
