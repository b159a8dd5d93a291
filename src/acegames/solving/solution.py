"""The answer of `solve`: the policy, its values, the guarantee and the work it took."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.engines import Engine, OnProgress
from acegames.model.game import MarkovGame
from acegames.policy.policy import Policy
from acegames.solving.guarantee import Guarantee

if TYPE_CHECKING:
    from acegames.report import Written
    from acegames.solving.curve import BudgetCurve


@dataclass(frozen=True)
class Stats:
    """The work that a solve took. `print` it for a sentence."""

    pairs: int  # stage games after clipping: cumulative costs that cannot bind any more share one
    programs: int  # stage games that took a linear program
    repaired: int  # of these, solved in exact arithmetic because floats were not certified
    seconds: float | None = None  # None after loading: files are the same for the same solve

    def __str__(self) -> str:
        exactly = f", {self.repaired:,} of these in exact arithmetic" if self.repaired else ""
        took = "" if self.seconds is None else f"; {self.seconds:.3g} s"
        return f"{self.pairs:,} stage games after clipping, {self.programs:,} by a linear program{exactly}{took}"


@dataclass(frozen=True, eq=False)
class Solution:
    """What `solve` found: an equilibrium policy, its values and its guarantee. `print` it."""

    game: MarkovGame
    concept: Concept
    values: NDArray[np.float64]  # (N,) each player's expected total reward from the start
    policy: Policy
    stats: Stats
    guarantee: Guarantee
    # the file of this solve's layers, which the policy is mapped from; None after loading
    checkpoint: str | None = None

    def __str__(self) -> str:
        each = ", ".join(f"{p} {v:.6g}" for p, v in zip(self.game.players, self.values, strict=True))
        lines = [f"{self.concept.words.title}. The expected total reward is {each}.", str(self.guarantee)]
        return "\n".join(lines)

    def budget_curve(
        self,
        constraint: Any = None,
        *,
        budgets: Any = None,
        points: int = 100,
        engine: Engine | None = None,
        progress: OnProgress | None = None,
    ) -> BudgetCurve:
        """Compute the values as a function of the initial budget, with one more solve.

        Args:
            constraint, budgets, points, engine, progress: as in `acegames.budget_curve`.

        Returns: The curve; of an approximate solution, that of the game with rounded costs.

        Raises:
            InvalidOption: costs were cut off or ignored that would count under a smaller budget.
            NoEquilibrium, TooLarge: as in `acegames.budget_curve`.
        """
        from acegames.solving.curve import curve_of

        return curve_of(self, constraint, budgets=budgets, points=points, engine=engine, progress=progress)

    def report(
        self,
        path: str | PathLike[str],
        *,
        episodes: int = 1000,
        rng: np.random.Generator | int | None = 0,
        most: int | None = None,
        seed: int | None = None,
        progress: OnProgress | None = None,
    ) -> Written:
        """Write one HTML page that shows the solution, readable from disk without a network.

        Args:
            path: where to write the page.
            episodes: number of episodes to simulate.
            rng: a Generator or a seed; the same seed gives the same page.
            most: number of situations to show at most; by default, what keeps the page below 3 MB.
            seed: the earlier name of `rng`.
            progress: called with a `Progress` now and then; its `step` says what is being done.
        """
        from acegames.report import write_report

        return write_report(self, path, episodes=episodes, rng=rng, most=most, seed=seed, progress=progress)

    def save(self, path: str | PathLike[str]) -> None:
        """Write game, policy, values, options and guarantee to one file."""
        from acegames.files.solution import save_solution

        save_solution(self, path)

    @staticmethod
    def load(path: str | PathLike[str]) -> Solution:
        """Read a solution that `save` wrote; BadFile if it is damaged or no solution.

        The policy of a file above 4 MiB stays in the file, mapped: each layer is read and checked
        (BadFile) at its first use. Do not overwrite such a file while the solution is in use;
        `save` replaces it safely.
        """
        from acegames.files.solution import load_solution

        return load_solution(path)
