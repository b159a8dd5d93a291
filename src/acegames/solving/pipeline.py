"""From a game to an equilibrium policy: the pipeline. The algorithm itself, on one screen, is `engines.reference`.

game (-> rounded costs) -> integer lattice -> engine (feasible pairs, then backward induction over stage games) -> policy
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.approximate.rounding import rounded_by
from acegames.approximate.within import count_costs
from acegames.concepts import CCE, Concept
from acegames.engines import Engine, EngineResult, Report, check_rewards
from acegames.engines.checkpoint import Checkpoint
from acegames.engines.forecast import Estimate
from acegames.engines.local import LocalEngine
from acegames.errors import InvalidOption, NoEquilibrium
from acegames.model.game import MarkovGame, check_game
from acegames.model.numbers import exact, is_scalar, plain
from acegames.model.user_functions import check_function
from acegames.policy.policy import Policy, build_policy
from acegames.safety.infeasible import infeasible_as_counted
from acegames.safety.lattice import Lattice, lattice
from acegames.solving.guarantee import Guarantee, guarantee

if TYPE_CHECKING:
    from acegames.report import Written
    from acegames.solving.curve import BudgetCurve

__all__ = ["Solution", "Stats", "estimate", "solve"]


@dataclass(frozen=True)
class Stats:
    """What a solve took."""

    pairs: int  # stage games: (t, state, spent) with t < H, spending that cannot matter any more counted once
    programs: int  # stage games that took a linear program
    repaired: int  # of these, solved in exact arithmetic because the float answer was not certified
    seconds: float | None = None  # None after loading: a file does not say, so that the same solve gives the same bytes


@dataclass(frozen=True, eq=False)
class Solution:
    """An equilibrium policy with what was asked and what is promised."""

    game: MarkovGame
    concept: Concept
    values: NDArray[np.float64]  # (N,) each player's expected total reward from the start
    policy: Policy
    stats: Stats
    guarantee: Guarantee
    checkpoint: str | None = (
        None  # the file of this solve's layers, which the policy is mapped from; None after loading
    )

    def __str__(self) -> str:
        worth = ", ".join(f"{p} {v:.6g}" for p, v in zip(self.game.players, self.values, strict=True))
        return f"{self.concept}: values {worth}. {self.guarantee}"

    def budget_curve(
        self,
        constraint: Any = None,
        *,
        budgets: Any = None,
        points: int = 100,
        engine: Engine | None = None,
        progress: Report | None = None,
    ) -> BudgetCurve:
        """The values as a function of the initial budget, by one more solve; arguments as in `acegames.budget_curve`.

        Of an approximate solution it is the curve of the game with rounded costs, where that has one: costs that were cut off, or not
        counted at all, because the game's own budget is what it is, would count under a smaller one (InvalidOption).
        """
        from acegames.solving.curve import budget_curve

        options: dict[str, Any] = {"budgets": budgets, "points": points, "engine": engine, "progress": progress}
        rules = self.policy.tracker.rounding
        if self.policy.tracker.exact:
            return budget_curve(self.game, self.concept, constraint, **options)
        varied = self.game.constraints if constraint is None else constraint
        for label, rule in zip(self.game.constraints, rules, strict=True):
            named = label == varied or (isinstance(varied, (list, tuple)) and label in varied)
            if named and rule is not None and (rule.direction == "ignore" or rule.lowest is not None):
                how = "not counted" if rule.direction == "ignore" else "cut off where they are very low"
                raise InvalidOption(
                    f"budget_curve: the costs of {label!r} were {how}, which is right for its own budget and wrong for smaller ones; "
                    "ask acegames.budget_curve(game, concept, epsilon=...), which rounds for all of them"
                )
        curve = budget_curve(rounded_by(self.game, rules), self.concept, constraint, **options)
        return replace(
            curve,
            remarks=(
                *curve.remarks,
                f"Costs are rounded. At the game's own budget: {self.guarantee}",
            ),
        )

    def report(
        self, path: str | PathLike[str], *, episodes: int = 1000, seed: int = 0, most: int | None = None
    ) -> Written:
        """Write one HTML page in which the solution can be looked at, from disk and without a network.

        Args:
            path: where to write the page.
            episodes: how many episodes to simulate for it.
            seed: of the random numbers; the same seed gives the same page.
            most: show at most so many situations (t, state, spent); by default as many as keep the page below 3 MB.
        """
        from acegames.report import write_report

        return write_report(self, path, episodes=episodes, seed=seed, most=most)

    def save(self, path: str | PathLike[str]) -> None:
        """Write game, policy, values, options and guarantee to one file."""
        from acegames.files.solution import save_solution

        save_solution(self, path)

    @staticmethod
    def load(path: str | PathLike[str]) -> Solution:
        """Read a file written by `save`; BadFile when it is damaged or of another kind, or states what its policy is not.

        The policy of a file above 4 MiB stays in the file, mapped. Each of its layers is read and checked when it is first used,
        and gives BadFile then if it is damaged. Do not write over such a file while the solution is used; `save` replaces it.
        """
        from acegames.files.solution import load_solution

        return load_solution(path)


def solve(
    game: MarkovGame,
    concept: Concept | None = None,
    *,
    epsilon: Any = None,
    relative: bool = False,
    rounding: str = "down",
    engine: Engine | None = None,
    progress: Report | None = None,
    checkpoint: str | PathLike[str] | None = None,
) -> Solution:
    """Compute an equilibrium in which no player gains by any safe deviation, at any feasible pair.

    Args:
        game: the game.
        concept: `CCE()` (the default), `CE()` or `Nash()`, with an objective among the equilibria of each stage.
        epsilon: None or 0 solves exactly. Else costs are rounded, so that fine or continuous ones can be solved: with costs rounded
            down no budget is exceeded by more than epsilon, with costs rounded up none is exceeded at all. One number, one per constraint,
            or {constraint: number}. A game from `discount` brings its own; 0 overrules it.
        relative: whether epsilon is a share of each budget's size instead of an amount.
        rounding: "down" (what is infeasible then is so in truth) or "up" (what is feasible then is so in truth).
        engine: where layers are computed; by default on this machine.
        progress: called with a `Progress` after each layer.
        checkpoint: a folder that layers are stored in as they are solved. The same call goes on where another one was broken off, and
            gives the same answer to the last bit; the policy stays there, mapped, so it may be larger than memory.

    Raises:
        Infeasible: when no policy keeps the budgets; it carries the minimal budgets that would do.
        NoEquilibrium: under Nash, when a stage has no equilibrium, or with three or more players no pure one.
        TooLarge: when costs are too fine for exact integers, or the game too large for the machine.
        InvalidGame: when rewards are so large that their totals overflow.
        InvalidOption: naming the option and the rule.
        CheckpointError: when the folder is in use, cannot be written, or is full; what is stored stays good.
    """
    check_game(game)
    concept = CCE() if concept is None else concept
    if not isinstance(concept, Concept):
        raise TypeError(f"concept: got {concept!r}, must be CE(...), CCE(...) or Nash(...)")
    concept.weights(game.players)  # an unknown objective fails here, before the work
    check_run(engine, progress, shelf=checkpoint is not None)
    check_rewards(game, concept)
    started = time.perf_counter()
    counted, rules = count_costs(game, epsilon, relative, rounding)
    whole = lattice(counted)
    shelf = _shelf(checkpoint, game, counted, concept)
    try:
        found = _found(engine or LocalEngine(), counted, whole, concept, progress, shelf)
    except NoEquilibrium as error:
        if not rules:
            raise
        said = "All this is about the game with rounded costs, in which `spent` is counted; with another epsilon it may be otherwise."
        raise NoEquilibrium(f"{error} {said}", error.t, error.state, error.spent) from None
    if found is None:
        raise infeasible_as_counted(game, rules, epsilon, relative, rounding)
    policy = build_policy(game, whole.units, found.dims, found.layers, concept, found.reached, rules)
    stats = Stats(sum(map(len, found.layers)), found.programs, found.repaired, time.perf_counter() - started)
    promise = guarantee(game, concept, rules, _asked(game, epsilon, relative))
    return Solution(game, concept, found.values, policy, stats, promise, None if shelf is None else shelf.run)


def check_run(engine: Any, progress: Any, *, shelf: bool = False) -> None:
    """InvalidOption unless an engine and a progress function can be called; `shelf`: whether layers are to be stored."""
    if engine is not None:
        if not callable(getattr(engine, "solve", None)):
            raise InvalidOption(f"engine: got {engine!r:.60}, which has no solve")
        check_function("engine.solve", engine.solve, ("game", "lattice", "concept", "progress", *["shelf"] * shelf))
    if progress is not None:
        check_function("progress", progress, ("progress",))


def _shelf(checkpoint: Any, game: MarkovGame, counted: MarkovGame, concept: Concept) -> Checkpoint | None:
    """The folder, told what is solved: the game, and the game with costs as they are counted, which says how they are rounded."""
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, (str, PathLike)):
        raise InvalidOption(f"checkpoint: got {checkpoint!r:.60}, must be the path of a folder")
    return Checkpoint(checkpoint, concept, {"game": game.digest, "counted": counted.digest})


def _found(
    engine: Engine,
    counted: MarkovGame,
    whole: Lattice,
    concept: Concept,
    progress: Report | None,
    shelf: Checkpoint | None,
) -> EngineResult | None:
    if shelf is None:
        return engine.solve(counted, whole, concept, progress)
    with shelf:
        return engine.solve(counted, whole, concept, progress, shelf)


def estimate(
    game: MarkovGame,
    concept: Concept | None = None,
    *,
    epsilon: Any = None,
    relative: bool = False,
    rounding: str = "down",
    engine: LocalEngine | None = None,
) -> Estimate:
    """Predict the pairs, the memory and the time that `solve` would take, without solving. Cheap, whatever the budgets.

    Raises:
        TooLarge: when costs are too fine for exact integers.
    """
    check_game(game)
    counted, _ = count_costs(game, epsilon, relative, rounding)
    return (engine or LocalEngine()).estimate(counted, lattice(counted), concept or CCE())


def _asked(game: MarkovGame, epsilon: Any, relative: bool) -> str:
    """The epsilon in words; nothing where an exact answer was asked for."""
    if epsilon is None and game.tails is not None:
        return f"epsilon {plain(game.tails.epsilon)} in all"
    if epsilon is None or (is_scalar(epsilon) and not epsilon):
        return ""
    if isinstance(epsilon, Mapping):
        shown = ", ".join(f"{c} {plain(exact(e))}" for c, e in epsilon.items())
    else:
        shown = ", ".join(str(plain(exact(e))) for e in ([epsilon] if is_scalar(epsilon) else epsilon))
    return f"epsilon {shown}" + (" of each budget" if relative else "")
