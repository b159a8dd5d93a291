"""The errors for a stage game without a Nash equilibrium, or with too many supports."""

from __future__ import annotations

from typing import Any

import numpy as np

from acegames.concepts import Concept, Nash
from acegames.engines.answers import Failure
from acegames.errors import NoEquilibrium, TooLarge
from acegames.model.game import MarkovGame, place
from acegames.safety.explore import explore
from acegames.safety.lattice import Lattice
from acegames.safety.space import Space, plan

PLACE_BYTES = 256 * 2**20  # memory for finding the exact cumulative cost that an error names

OTHERS = "Correlated (CE) and coarse correlated (CCE) equilibria always exist: solve with CE() or CCE()."


def none_found(game: MarkovGame, t: int, state: Any, spent: Any, joint_actions: int, concept: Concept) -> NoEquilibrium:
    """Name the place, what was searched, and what exists instead."""
    stage = f"{place(t, state)}, spent {spent!r}: the stage game over the {joint_actions} feasible joint actions has no"
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


def too_large(game: MarkovGame, t: int, state: Any, spent: Any, joint_actions: int, concept: Concept) -> TooLarge:
    """Name the place, the size, and what takes less."""
    actions = " x ".join(str(len(labels)) for labels in game.actions)
    less = "" if concept.objective is None else "Nash(objective=None) stops at the first one found. "
    return TooLarge(
        f"{place(t, state)}, spent {spent!r}: the stage game over {joint_actions} feasible joint actions (of {actions}) has too many "
        f"pairs of supports to search for Nash equilibria. {less}{OTHERS}",
        t,
        state,
    )


def failed(space: Space, lattice: Lattice, t: int, failure: Failure, concept: Concept) -> NoEquilibrium | TooLarge:
    """Return the error for a cell of an explored space."""
    here, game = space.layers[t], space.game
    assert here.cells is not None
    cell = failure.cell if space.dense else int(here.cells.listed(here.total)[failure.cell])
    state, spent = _place(space, lattice, t, cell)
    build = too_large if failure.too_large else none_found
    return build(game, t, game.states[state], spent, failure.joint_actions, concept)


def _place(space: Space, lattice: Lattice, t: int, cell: int) -> tuple[int, Any]:
    """Return state and, in the user's units, a reachable cumulative cost of the cell.

    What the cell itself says of it, where finding that out would take too much memory.
    """
    game, here = space.game, space.layers[t]
    state, kept = here.spent(np.array([cell]))
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
        amounts = {c: int(x) * u for c, x, u in zip(labels, kept[0], units, strict=True)}
        return int(state[0]), {c: int(x) if x.denominator == 1 else float(x) for c, x in amounts.items()}
