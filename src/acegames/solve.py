"""From a game to an equilibrium policy: the pipeline. The algorithm itself, on one screen, is `engines.reference`.

game -> integer lattice -> engine (feasible pairs, then backward induction over stage games) -> policy
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import CCE, Concept
from acegames.engines import Engine, Report
from acegames.engines.estimate import Estimate
from acegames.engines.local import LocalEngine
from acegames.feasibility.lattice import lattice
from acegames.model.game import MarkovGame, check_game
from acegames.policy import Policy, build_policy
from acegames.reduction import infeasible

__all__ = ["Solution", "Stats", "estimate", "solve"]


@dataclass(frozen=True)
class Stats:
    """What a solve took."""

    pairs: int  # stage games: (t, state, spent) with t < H, spending that cannot matter any more counted once
    programs: int  # stage games that took a linear program
    repaired: int  # of these, solved in exact arithmetic because the float answer was not certified
    seconds: float


@dataclass(frozen=True, eq=False)
class Solution:
    """An equilibrium policy with what was asked and what is promised."""

    game: MarkovGame
    concept: Concept
    values: NDArray[np.float64]  # (N,) each player's expected total reward from the start
    policy: Policy
    stats: Stats
    guarantee: str

    def save(self, path: str | PathLike[str]) -> None:
        """Write game, policy, values, options and guarantee to one file."""
        from acegames.solution_file import save_solution

        save_solution(self, path)

    @staticmethod
    def load(path: str | PathLike[str]) -> Solution:
        """Read a file written by `save`; BadFile when it is damaged or of another kind."""
        from acegames.solution_file import load_solution

        return load_solution(path)


def solve(
    game: MarkovGame,
    concept: Concept | None = None,
    *,
    engine: Engine | None = None,
    progress: Report | None = None,
) -> Solution:
    """Compute an equilibrium in which no player gains by any safe deviation, at any feasible pair.

    Args:
        game: the game.
        concept: `CCE()` (the default), `CE()` or `Nash()`, with an objective among the equilibria of each stage.
        engine: where layers are computed; by default on this machine.
        progress: called with a `Progress` after each layer.

    Raises:
        Infeasible: when no policy keeps the budgets; it carries the minimal budgets that would do.
        NoEquilibrium: under Nash, when a stage has no equilibrium, or with three or more players no pure one.
        TooLarge: when costs are too fine for exact integers, or the game too large for the machine.
    """
    check_game(game)
    concept = CCE() if concept is None else concept
    if not isinstance(concept, Concept):
        raise TypeError(f"concept: got {concept!r}, must be CE(...), CCE(...) or Nash(...)")
    concept.weights(game.players)  # an unknown objective fails here, before the work
    started = time.perf_counter()
    whole = lattice(game)
    found = (engine or LocalEngine()).solve(game, whole, concept, progress)
    if found is None:
        raise infeasible(game)
    policy = build_policy(game, whole.units, found.dims, found.layers, concept, found.reached)
    stats = Stats(sum(map(len, found.layers)), found.programs, found.repaired, time.perf_counter() - started)
    return Solution(game, concept, found.values, policy, stats, exact_guarantee(concept))


def estimate(game: MarkovGame, concept: Concept | None = None, *, engine: LocalEngine | None = None) -> Estimate:
    """Predict the pairs, the memory and the time that `solve` would take, without solving. Cheap, whatever the budgets.

    Raises:
        TooLarge: when costs are too fine for exact integers.
    """
    check_game(game)
    return (engine or LocalEngine()).estimate(game, lattice(game), concept or CCE())


def exact_guarantee(concept: Any) -> str:
    """Say in words what an exact solve promises."""
    kind = {"CE": "correlated", "CCE": "coarse correlated", "Nash": "Nash"}[type(concept).__name__]
    return (
        "Exact: every budget holds at every step with probability one, and at every situation that safe play can reach "
        f"no player gains by any safe deviation (a subgame-perfect anytime-constrained {kind} equilibrium, up to rounding)."
    )
