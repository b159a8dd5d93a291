"""The answer of `solve`: the policy, its values, the guarantee and the work it took."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.engines import Engine, OnProgress
from acegames.model.arrays import seal
from acegames.model.game import MarkovGame
from acegames.model.user_functions import SEED, public
from acegames.model.words import counted
from acegames.policy.policy import Policy
from acegames.policy.simulation import Rollouts, simulate
from acegames.solving.guarantee import Guarantee
from acegames.system.showing import Shown

if TYPE_CHECKING:
    from pandas import DataFrame

    from acegames.report import Written
    from acegames.solving.curve import BudgetCurve
    from acegames.verifier import Certificate
    from acegames.verifier.proof import Proof


@dataclass(frozen=True, repr=False)
class Stats(Shown):
    """The work that a solve took. `print` it for a sentence."""

    pairs: int  # stage games after clipping: cumulative costs that cannot bind any more share one
    programs: int  # stage games that took a linear program
    repaired: int  # of these, solved in exact arithmetic because floats were not certified
    seconds: float | None = None  # None after loading: files are the same for the same solve
    # what solved it, of engines that say so: "on the GPU (NVIDIA H200)"; None after loading
    where: str | None = None

    def __str__(self) -> str:
        took = "" if self.seconds is None else f"; {self.seconds:.3g} s"
        exactly = f", {self.repaired:,} of these in exact arithmetic" if self.repaired else ""
        games = counted(self.pairs, "stage game")
        where = "" if self.where is None else f" {self.where}"
        return f"{games} after clipping, {self.programs:,} by a linear program{exactly}{took}{where}"


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Shown):
    """What `solve` found: an equilibrium policy, its values and its guarantee. `print` it.

    Arrays of results are read-only; `solution.values.copy()` may be changed.
    """

    game: MarkovGame
    concept: Concept
    values: NDArray[np.float64]  # (N,) each player's expected total reward from the start
    policy: Policy
    stats: Stats
    guarantee: Guarantee
    # the file of this solve's layers, which the policy is mapped from; None after loading
    checkpoint: str | None = None

    def __post_init__(self) -> None:
        seal(self)

    def __str__(self) -> str:
        each = ", ".join(f"{p} {v:.6g}" for p, v in zip(self.game.players, self.values, strict=True))
        return f"{self.concept.words.title}. The expected total reward is {each}.\n{self.guarantee}"

    def verify(
        self, *, tol: float | None = None, engine: Any = None, progress: OnProgress | bool | None = None
    ) -> Certificate:
        """Check the policy against the game, independently of how it was found: `acegames.verify`.

        The concept is the solution's own; `tol`, `engine` and `progress` are as there.
        """
        from acegames.verifier import verify

        return verify(self.game, self.policy, self.concept, tol=tol, engine=engine, progress=progress)

    @public("Solution.simulate", **SEED)
    def simulate(self, episodes: int = 1000, *, rng: np.random.Generator | int | None = None) -> Rollouts:
        """Play so many independent episodes: `acegames.simulate`. A seed gives the same ones."""
        return simulate(self.game, self.policy, episodes=episodes, rng=rng)

    def prove(
        self, path: str | PathLike[str], *, tol: float | None = None, progress: OnProgress | bool | None = None
    ) -> Proof:
        """Write a proof that a stranger can check without this library: `acegames.prove`."""
        from acegames.verifier.proof import prove

        return prove(self, path, tol=tol, progress=progress)

    def to_frame(self) -> DataFrame:
        """Return the policy as a pandas data frame, the table that `acegames export` writes.

        It has one line per joint action that may be played in each situation: `t`, `state`, the
        cumulative cost of each constraint, one action per player, and `probability`. It needs the
        extra `tables`.
        """
        from acegames.files.tables import policy_frame

        return policy_frame(self.policy)

    def budget_curve(
        self,
        constraint: Any = None,
        *,
        budgets: Any = None,
        points: int = 100,
        engine: Engine | None = None,
        progress: OnProgress | bool | None = None,
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
        path: str | PathLike[str] | None = None,
        *,
        episodes: int = 1000,
        rng: np.random.Generator | int | None = 0,
        most: int | None = None,
        seed: int | None = None,
        render: Any = None,
        against: Solution | None = None,
        progress: OnProgress | bool | None = None,
    ) -> Written:
        """Write one HTML page that shows the solution, readable from disk without a network.

        In a notebook, `solution.report()` shows the page as the result of its cell.

        Args:
            path: where to write the page; None to write no file.
            episodes: number of episodes to simulate.
            rng: a Generator or a seed; the same seed gives the same page.
            most: number of situations to show at most; by default, what keeps the page below 3 MB.
            seed: the earlier name of `rng`.
            render: pictures of states: a function of the state, or a mapping from states, to an SVG
                text, the bytes of an SVG or PNG file, a figure of matplotlib, or None; or a folder
                of files STATE.svg or STATE.png. Some catalog games bring their own.
            against: another solution to compare with, of the same game; its concept, budgets and
                horizon may differ.
            progress: True for a bar, or a function that is called with a `Progress` now and then;
                its `step` says what is being done.
        """
        from acegames.report import write_report

        return write_report(
            self,
            path,
            episodes=episodes,
            rng=rng,
            most=most,
            seed=seed,
            render=render,
            against=against,
            progress=progress,
        )

    def export(
        self,
        path: str | PathLike[str],
        *,
        name: str | None = None,
        data: bool = False,
        progress: OnProgress | bool | None = None,
    ) -> int:
        """Write the policy for programs without acegames, as `Policy.export` does."""
        return self.policy.export(path, name=name, data=data, progress=progress)

    def save(self, path: str | PathLike[str]) -> None:
        """Write game, policy, values, options and guarantee to one file, such as `answer.ace`.

        InvalidOption is raised where the ending is that of a game file, such as `.yaml`, or of
        something to read, such as `.html`.
        """
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
