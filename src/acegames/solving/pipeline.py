"""From a game to an equilibrium policy. The algorithm itself, on one screen: `engines.reference`.

game (-> rounded costs) -> integer lattice -> engine (feasible pairs, then backward induction) ->
policy
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

from acegames.approximate.rounding import RoundingOptions
from acegames.concepts import CCE, Concept, check_concept
from acegames.engines import Engine, InMemory, LayerStore, OnProgress, check_rewards
from acegames.engines.checkpoint import Checkpoint
from acegames.engines.cluster import RayEngine
from acegames.engines.forecast import Estimate
from acegames.engines.gpu import GPUEngine
from acegames.engines.local import LocalEngine
from acegames.errors import Infeasible, InvalidOption, NoEquilibrium
from acegames.model.checks import check_flag
from acegames.model.game import MarkovGame, check_game
from acegames.model.user_functions import OF_SOLVING, check_engine, check_function, public
from acegames.model.words import rounded_up
from acegames.policy.policy import build_policy
from acegames.safety.frontier import infeasible_as_counted
from acegames.safety.lattice import lattice
from acegames.solving.solution import Solution, Stats, guarantee
from acegames.system.display import Shown

__all__ = ["Solution", "Stats", "estimate", "solve"]


@public(
    "solve",
    progress="solving",
    memory=(
        "solving the game",
        "`estimate` says what it takes; a checkpoint keeps the policy on disk, keep_values=False takes less, as do "
        "rounded costs (epsilon=), a cluster (engine=RayEngine()) has more, and a limit of its own "
        "(LocalEngine(memory=...)) is kept beforehand",
    ),
    instead=OF_SOLVING,
)
def solve(
    game: MarkovGame,
    concept: Concept | None = None,
    *,
    epsilon: Any = None,
    relative: bool = False,
    rounding: str | None = None,
    engine: Engine | None = None,
    progress: OnProgress | bool | None = None,
    checkpoint: str | PathLike[str] | None = None,
    keep_values: bool = True,
) -> Solution:
    """Compute a subgame-perfect equilibrium that keeps every budget with probability one.

    No player gains by a safe deviation, in any situation that is reachable under feasible play.

    Args:
        game: the game.
        concept: `CCE()` (the default), `CE()` or `Nash()`, with an objective that chooses among the
            equilibria of each stage game.
        epsilon: None or 0 solves exactly. Otherwise costs are rounded, so that high-precision and
            continuous costs can be solved: rounded down, no budget is exceeded by more than
            epsilon; rounded up, none is exceeded at all. One number, one per constraint, or
            {constraint: number}. A game from `discount` brings its own; 0 overrules it.
        relative: whether epsilon is a share of each budget's size instead of an amount.
        rounding: "down" (the default for equilibria): if the rounded game is infeasible, so is the
            game with its true costs. "up" (the default of `Shield`): if the rounded game is
            feasible, so is the game with its true costs.
        engine: where the solve runs; by default on this machine (`LocalEngine()`). `RayEngine()`
            runs it on a cluster, with the same answer to the last bit.
        progress: True for a bar, on a terminal or in a notebook; or a function that is called with
            a `Progress` after each time step that is solved.
        checkpoint: a folder in which the time steps are stored as they are solved. The same call
            resumes a solve that was interrupted, and gives the same answer to the last bit. The
            policy stays there, mapped, so it may be larger than memory.
        keep_values: False for a policy without the value of each stage game, which takes 8 bytes
            per stage game and player, in memory and in files. Such a policy is played and verified
            as usual; `Policy.values`, reports and value maps need the values.

    Raises:
        Infeasible: no policy keeps every budget; it carries the minimal budgets that suffice.
        NoEquilibrium: under Nash, a stage game has no equilibrium, or with three or more players no
            pure one.
        TooLarge: costs have too many digits for 64-bit integers, or the game is too large for the
            machine.
        InvalidGame: rewards are so large that their totals overflow.
        InvalidOption: an option breaks a rule; the message names both.
        CheckpointError: the folder is in use, cannot be written, or is full; stored layers stay.
        ClusterError: the cluster (of `RayEngine`) cannot be used, or lost too much.
    """
    assert not isinstance(progress, bool)  # `public` has made a callback of it
    concept = check_asked(game, concept, engine, checkpoint, keep_values=keep_values)
    check_rewards(game, concept)
    keep_values = bool(keep_values)  # numpy's too
    started = time.perf_counter()
    options = RoundingOptions(epsilon, relative, rounding)
    counted = options.count(game)
    whole = lattice(counted.game)
    engine = engine or LocalEngine()
    store: LayerStore | None = None if keep_values else InMemory(keep_values=False)
    if checkpoint is not None:  # its name says which game is solved, how costs are rounded, and by which engine
        named = {} if isinstance(engine, (LocalEngine, GPUEngine, RayEngine)) else {"engine": type(engine).__name__}
        facts = {"game": game.digest, "counted": counted.game.digest, **named}
        store = Checkpoint(checkpoint, concept, facts, keep_values=keep_values)
    try:
        with store if isinstance(store, Checkpoint) else contextlib.nullcontext():
            solved = engine.solve(counted.game, whole, concept, progress, *([] if store is None else [store]))
    except NoEquilibrium as error:
        if not counted.rounding:
            raise
        said = "This holds for the game with rounded costs, and `spent` is in rounded costs; another epsilon may help."
        raise NoEquilibrium(f"{error} {said}", error.t, error.state, error.spent, error.constraints) from None
    if solved is None:
        raise infeasible_as_counted(game, options)
    layers = solved.layers if keep_values else [replace(layer, values=None) for layer in solved.layers]
    policy = build_policy(game, whole.units, solved.dims, layers, concept, solved.reached, counted.rounding)
    took = time.perf_counter() - started
    stats = Stats(sum(map(len, solved.layers)), solved.programs, solved.repaired, took, solved.ran or None)
    promise = guarantee(game, concept, counted.rounding, options.in_words(game))
    run = store.run if isinstance(store, Checkpoint) else None
    return Solution(game, concept, solved.values, policy, stats, promise, run)


@public(
    "estimate",
    memory=("the estimate", "a shorter horizon or coarser costs (epsilon=) take less"),
    instead=OF_SOLVING,
)
def estimate(
    game: MarkovGame,
    concept: Concept | None = None,
    *,
    epsilon: Any = None,
    relative: bool = False,
    rounding: str | None = None,
    engine: Engine | None = None,
    keep_values: bool = True,
) -> Estimate:
    """Predict the stage games, the memory and the time that `solve` would take, in a second or two.

    Args:
        game: the game.
        concept: as in `solve`; `CCE()` by default.
        epsilon, relative, rounding: as in `solve`.
        engine: as in `solve`.
        keep_values: as in `solve`.

    Raises:
        TooLarge: costs have too many digits for 64-bit integers.
        InvalidOption: an option breaks a rule; the message names both.
    """
    concept = check_asked(game, concept, engine, keep_values=keep_values)
    counted = RoundingOptions(epsilon, relative, rounding).count(game).game
    predicted = (engine or LocalEngine()).estimate(counted, lattice(counted), concept)
    return predicted if keep_values else predicted.without_values()


def check_asked(game: Any, concept: Any, engine: Any, checkpoint: Any = None, *, keep_values: Any = True) -> Concept:
    """Refuse options that no solve can take, before the work; return the concept, or `CCE()`."""
    check_game(game)
    asked = CCE() if concept is None else check_concept(concept)
    asked.weights(game.players)  # an unknown objective is refused here
    if asked.product and not all(asked.deviators(game.players)):
        raise InvalidOption(f"concept: got {asked!r:.60}, of independent players all must be able to deviate")
    check_flag("keep_values", keep_values)
    if engine is not None:
        check_engine(engine, fits=callable(getattr(engine, "solve", None)))
        stored = [] if checkpoint is None and keep_values else ["store"]
        check_function("engine.solve", engine.solve, ("game", "lattice", "concept", "progress", *stored))
    if checkpoint is not None and not isinstance(checkpoint, (str, PathLike)):
        raise InvalidOption(f"checkpoint: got {checkpoint!r:.60}, must be the path of a folder")
    if checkpoint is not None and "\0" in os.fsdecode(checkpoint):
        raise InvalidOption(f"checkpoint: got {checkpoint!r:.60}, and no path holds a null character")
    return asked


# Rounded down and up.


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
        promise = f"budgets are exceeded by at most {over}" if over else "no budget is ever exceeded"
        return f"values {each}; {promise}"


@public("bracket", progress="solving", instead=OF_SOLVING)
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
    solutions: dict[str, Solution] = {}
    with contextlib.suppress(Infeasible):
        for rounding in ("down", "up"):
            solutions[rounding] = solve(game, concept, rounding=rounding, **options)
    return Bracket(game, solutions.get("down"), solutions.get("up"))
