"""The answer of `solve`: the policy, its values, the work it took, and its guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.approximate.rounding import Rounding
from acegames.concepts import Concept
from acegames.engines import Engine, OnProgress
from acegames.model.arrays import seal
from acegames.model.checks import counted
from acegames.model.game import MarkovGame
from acegames.model.numbers import Bound, plain
from acegames.model.user_functions import SEED, public
from acegames.model.words import constraint_called, rounded_up, to_digits
from acegames.policy.policy import Policy
from acegames.policy.simulation import Rollouts, simulate
from acegames.system.display import Shown

if TYPE_CHECKING:
    from pandas import DataFrame

    from acegames.proofs import Proof
    from acegames.report import ReportResult
    from acegames.solving.curve import BudgetCurve
    from acegames.verifier import Certificate


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
        self,
        *,
        tol: float | None = None,
        exact: bool = False,
        engine: Any = None,
        progress: OnProgress | bool | None = None,
    ) -> Certificate:
        """Check the policy against the game, independently of how it was found: `acegames.verify`.

        The concept is the solution's own; the options are as there.
        """
        from acegames.verifier import verify

        return verify(self.game, self.policy, self.concept, tol=tol, exact=exact, engine=engine, progress=progress)

    @public("Solution.simulate", instead=SEED)
    def simulate(self, episodes: int = 1000, *, rng: np.random.Generator | int | None = None) -> Rollouts:
        """Play independent episodes, as `acegames.simulate` does; a seed gives the same ones."""
        return simulate(self.game, self.policy, episodes=episodes, rng=rng)

    def prove(
        self, path: str | PathLike[str], *, tol: float | None = None, progress: OnProgress | bool | None = None
    ) -> Proof:
        """Write a proof that a stranger can check without this library: `acegames.prove`."""
        from acegames.proofs import prove

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

    @public("Solution.report", instead=SEED)
    def report(
        self,
        path: str | PathLike[str] | None = None,
        *,
        episodes: int = 1000,
        rng: np.random.Generator | int | None = 0,
        most: int | None = None,
        render: Any = None,
        against: Solution | None = None,
        progress: OnProgress | bool | None = None,
    ) -> ReportResult:
        """Write one HTML page that shows the solution, readable from disk without a network.

        In a notebook, `solution.report()` shows the page as the result of its cell.

        Args:
            path: where to write the page; None to write no file.
            episodes: number of episodes to simulate.
            rng: a Generator or a seed; the same seed gives the same page.
            most: number of situations to show at most; by default, what keeps the page below 3 MB.
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
        """Write the policy for programs without acegames; `Policy.export` says how."""
        return self.policy.export(path, name=name, data=data, progress=progress)

    def save(self, path: str | PathLike[str]) -> None:
        """Write game, policy, values, options and guarantee to one file, such as `answer.ace`.

        InvalidOption is raised where the ending is that of a game file, such as `.yaml`, or of
        something to read, such as `.html`.
        """
        from acegames.files.solution_file import save_solution

        save_solution(self, path)

    @staticmethod
    def load(path: str | PathLike[str]) -> Solution:
        """Read a solution that `save` wrote; BadFile if it is damaged or no solution.

        The policy of a file above 4 MiB stays in the file, mapped: each layer is read and checked
        (BadFile) at its first use. Do not overwrite such a file while the solution is in use;
        `save` replaces it safely.
        """
        from acegames.files.solution_file import load_solution

        return load_solution(path)


# The promise that comes with an answer.

Number = int | float | Fraction


@dataclass(frozen=True, repr=False)
class Guarantee(Shown):
    """The promise in words, and `excess`: the most by which each budget may be exceeded."""

    text: str
    excess: tuple[Number, ...] = ()

    def __str__(self) -> str:
        return self.text


def guarantee(
    game: MarkovGame, concept: Concept, rounding: Sequence[Rounding | None] = (), asked: str = ""
) -> Guarantee:
    """Return the promise of an equilibrium of `game`, whose costs count as `rounding` says.

    `asked` says in words which epsilon the user gave, if any.
    """
    names = [*map(constraint_called, game.constraints)]
    rules = list(rounding) or [None] * len(names)
    over = [_over(schedule, rule) for schedule, rule in zip(zip(*game.budgets, strict=True), rules, strict=True)]
    rounded = [(name, r) for name, r in zip(names, rules, strict=True) if r is not None and r.direction != "ignore"]
    cells = ", ".join(f"{name} to multiples of {to_digits(r.cell, 6)}" for name, r in rounded)
    directions = {r.direction for _, r in rounded}
    if not directions:
        text = _exact(concept, asked)
    elif directions == {"up"}:
        text = _rounded_up(concept, cells, asked)
    else:
        text = _rounded_down(concept, names, over, cells, asked)
        if any(reservoir is not None and o > 0 for reservoir, o in zip(game.reservoirs, over, strict=True)):
            text += " The level of a reservoir may fall by that amount below its reserve, or below zero if it has none."
    tails = game.tails
    if tails is not None:
        text = f"For the first {game.horizon} steps: {text[0].lower()}{text[1:]} {tails.text(game.horizon)}"
        over = [a + b for a, b in zip(over, tails.cost, strict=True)]
        each = ", ".join(f"{name} by at most {rounded_up(o)}" for name, o in zip(names, over, strict=True) if o > 0)
        text += f" In all, over infinite play, the following budgets may be exceeded: {each}." if each else ""
    return Guarantee(text, tuple(map(plain, over)))


def _over(schedule: Sequence[Bound], rule: Rounding | None) -> Fraction:
    """Return the most by which a budget may be exceeded: a cell for each cost rounded down."""
    if rule is None or rule.direction != "down":
        return Fraction(0)
    return rule.cell * max(t + 1 for t, b in enumerate(schedule) if not isinstance(b, float))


def _exact(concept: Concept, asked: str) -> str:
    how = f"Exact, although {asked} allows an approximation" if asked else "Exact"
    return (
        f"{how}: every budget holds at every step with probability one, and in every situation reachable under feasible "
        f"play no player gains by a safe deviation (a subgame-perfect anytime-constrained {concept.words.noun}, up to "
        "floating-point error)."
    )


def _rounded_down(concept: Concept, names: list[str], over: list[Fraction], cells: str, asked: str) -> str:
    each = ", ".join(f"{name} by at most {rounded_up(o)}" for name, o in zip(names, over, strict=True) if o > 0)
    never = ", ".join(name for name, o in zip(names, over, strict=True) if o == 0)
    return (
        f"Approximate ({asked}): at every step, with probability one, budgets are exceeded by little or not at all: {each} "
        f"(costs are rounded down: {cells}). {f'Never exceeded: {never}. ' if never else ''}"
        "In every situation reachable under feasible play no player gains by a deviation that keeps the true budgets "
        f"(a subgame-perfect {concept.words.noun} of the game with rounded costs, up to floating-point error)."
    )


def _rounded_up(concept: Concept, cells: str, asked: str) -> str:
    return (
        f"Never exceeds a budget ({asked}): every budget holds at every step with probability one, with the true costs "
        f"(costs are rounded up: {cells}). No player gains by a deviation that keeps the budgets with costs rounded up "
        f"(a subgame-perfect {concept.words.noun} of that game, up to floating-point error); deviations that keep the "
        "budgets only with the true costs, which are smaller, are not covered."
    )
