"""The answers of stage games: those of a block or a layer, their exact repair, and failures.

Stage games that floats cannot decide stay open. `repair` solves them in exact arithmetic, from the
kernel's own numbers. A stage game without a Nash equilibrium, or with too many supports to search,
is a `Failure`; the errors at the end name its place.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept, Correlated, Nash
from acegames.errors import AceError, NoEquilibrium, TooLarge
from acegames.model.arrays import Floats, Ints
from acegames.model.game import MarkovGame, place
from acegames.policy.layer import PURE_ONLY, Mixed
from acegames.safety.explore import explore
from acegames.safety.lattice import Lattice
from acegames.safety.space import Space, plan
from acegames.stage import Stage
from acegames.stage.exact import solve_exactly
from acegames.stage.units import weighted_sum


class OpenStage(NamedTuple):
    """A stage game without a certified answer, as it was written out."""

    cell: int  # as in the answers that it belongs to
    row: Ints  # (R,) counted from the state's first
    action: NDArray[np.int32]  # (R, N)
    utility: Floats  # (R, 2N) utilities, then the sums of their absolute terms
    above: Floats  # (N,) what is added before players are compared: what a baseline took from each


class Failure(NamedTuple):
    """A stage game that has no equilibrium of the kind, or whose search was broken off."""

    cell: int
    joint_actions: int
    too_large: bool


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers by cell (or by listed cell), those that are not reached meaning nothing."""

    value: Floats  # (cells, 2N), or (cells, 1) with one player
    code: NDArray[Any]  # (cells,)
    mixed: Mixed = PURE_ONLY
    more: tuple[Mixed, ...] = ()  # further ones: of a layer's parts, and those repaired
    open: tuple[OpenStage, ...] = ()
    failure: Failure | None = None  # the first one
    programs: int = 0  # stage games that took a program or a search
    repaired: int = 0  # of these, decided in exact arithmetic
    # the answers themselves, where they are on their way; till then only their number is known
    pending: Callable[[], Answers] | None = None


def joined(value: Floats, code: NDArray[Any], parts: Sequence[Answers]) -> Answers:
    """Join the answers of several parts of a layer, all of which are in the same arrays."""
    if len(parts) == 1:
        return parts[0]
    more = tuple(mixed for x in parts for mixed in (x.mixed, *x.more))
    opened = tuple(stage for x in parts for stage in x.open)
    counts = (sum(x.programs for x in parts), sum(x.repaired for x in parts))
    return Answers(value, code, PURE_ONLY, more, opened, None, *counts)


# -- exact repair ---------------------------------------------------------------------------------


class Repaired(NamedTuple):
    """The answer of a stage game."""

    played: Ints  # (E,) which of its joint actions
    prob: Floats  # (E,)
    value: Floats  # (2N,)


RepairCache = dict[bytes, Repaired]
"""Answers by actions, utilities and baselines."""


def repair(answers: Answers, concept: Concept, players: tuple[Hashable, ...], known: RepairCache) -> Answers:
    """Solve the open stages of answers, and write their values and codes into the arrays.

    `known` takes the solutions: many stages of a layer are the same. Mixed answers are the last of
    `more`.
    """
    assert isinstance(concept, Correlated)
    stages, solutions = sorted(answers.open, key=attrgetter("cell")), list[Repaired]()
    for stage in stages:
        key = stage.action.tobytes() + stage.utility.tobytes() + stage.above.tobytes()
        if key not in known:
            utility, abs_total = np.hsplit(stage.utility, 2)
            sigma = solve_exactly(Stage(stage.action, utility, concept, players, abs_total, stage.above))
            played = np.flatnonzero(sigma > 0)
            known[key] = Repaired(played, sigma[played], weighted_sum(sigma[played].tolist(), stage.utility[played]))
        solutions.append(known[key])
    more = (*answers.more, _filed(answers, stages, solutions)) if stages else answers.more
    return replace(answers, more=more, open=(), repaired=answers.repaired + len(stages))


def _filed(answers: Answers, stages: list[OpenStage], solutions: list[Repaired]) -> Mixed:
    """Write the solutions of stages, which are in the order of cells; return the mixed ones."""
    cell, size = np.array([stage.cell for stage in stages]), np.array([len(x.played) for x in solutions])
    row = np.concatenate([stage.row[x.played] for stage, x in zip(stages, solutions, strict=True)])
    prob, several = np.concatenate([x.prob for x in solutions]), size > 1
    answers.value[cell] = [x.value for x in solutions]
    answers.code[cell] = np.where(several, 0, 1 + row[np.cumsum(size) - size])
    of_several = np.repeat(several, size)
    return Mixed(cell[several], size[several], row[of_several], prob[of_several])


# -- failures -------------------------------------------------------------------------------------


PLACE_BYTES = 256 * 2**20  # memory for finding the exact cumulative cost that an error names

OTHERS = "Correlated (CE) and coarse correlated (CCE) equilibria always exist: solve with CE() or CCE()."


def stage_error(game: MarkovGame, t: int, state: Any, spent: Any, failure: Failure, concept: Concept) -> AceError:
    """Return the error that names the place, what was searched, and what exists or takes less."""
    where, joint_actions = f"{place(t, state)}, spent {spent!r}", failure.joint_actions
    if failure.too_large:
        actions = " x ".join(str(len(labels)) for labels in game.actions)
        less = "" if concept.objective is None else "Nash(objective=None) stops at the first one found. "
        return TooLarge(
            f"{where}: the stage game over {joint_actions} feasible joint actions (of {actions}) has too many "
            f"pairs of supports to search for Nash equilibria. {less}{OTHERS}",
            t,
            state,
        )
    stage = f"{where}: the stage game over the {joint_actions} feasible joint actions has no"
    backend = concept.backend if isinstance(concept, Nash) else None
    if len(game.players) == 2:
        reason = f"{stage} Nash equilibrium; exact arithmetic ruled out every pair of supports."
    elif backend is None:
        reason = (
            f"{stage} pure Nash equilibrium. With three or more players only pure equilibria are searched for, so none was found, "
            'but a mixed one may exist: Nash(backend="gambit") or Nash(backend="quantecon") searches for it where the feasible '
            "joint actions are a product."
        )
    else:
        reason = (
            f"{stage} pure Nash equilibrium, and no mixed one was found either, though one may exist: {backend} is used only where the "
            "feasible joint actions are a product of one action set per player."
        )
    if t < game.horizon - 1:
        reason += " The utilities here depend on the equilibria chosen at later steps, so with another objective there may be one."
    return NoEquilibrium(f"{reason} {OTHERS}", t, state, spent, game.constraints)


def failed(space: Space, lattice: Lattice, t: int, failure: Failure, concept: Concept) -> AceError:
    """Return the error for a cell of an explored space."""
    here, game = space.layers[t], space.game
    assert here.cells is not None
    cell = failure.cell if space.dense else int(here.cells.listed(here.total)[failure.cell])
    state, spent = _place(space, lattice, t, cell)
    return stage_error(game, t, game.states[state], spent, failure, concept)


def _place(space: Space, lattice: Lattice, t: int, cell: int) -> tuple[int, Any]:
    """Return the state of a cell and, in the user's units, a reachable cumulative cost of it.

    Where finding one takes too much memory, it is the cost that stands for all costs of the cell.
    """
    game, here = space.game, space.layers[t]
    state, counted = here.spent(np.array([cell]))
    try:
        exact = explore(plan(game, lattice, clip=False), PLACE_BYTES)
        layer = exact.layers[t]
        assert layer.cells is not None
        states, spent = layer.spent(layer.cells.listed(layer.total))
        states, spent = states[states == state[0]], exact.unproject(spent[states == state[0]])
        at = int(np.flatnonzero(here.locate(states, space.project(spent), spent) == cell)[0])
        return int(state[0]), lattice.spent(spent[at].tolist())
    except (TooLarge, MemoryError):
        units = [lattice.units[m] for m in space.dims]
        labels = [game.constraints[m] for m in space.dims]
        amounts = {c: int(x) * u for c, x, u in zip(labels, counted[0], units, strict=True)}
        return int(state[0]), {c: int(x) if x.denominator == 1 else float(x) for c, x in amounts.items()}
