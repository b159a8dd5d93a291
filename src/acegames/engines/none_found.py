"""What to say where the stage games of a solve have no Nash equilibrium, or too many supports to search."""

from __future__ import annotations

from typing import Any

from acegames.concepts import Concept, Nash
from acegames.errors import NoEquilibrium, TooLarge
from acegames.model.game import MarkovGame, place

OTHERS = "Correlated (CE) and coarse correlated (CCE) equilibria always exist."


def none_found(game: MarkovGame, t: int, state: Any, spent: Any, joint_actions: int, concept: Concept) -> NoEquilibrium:
    """Name the place, what was searched, and what exists instead."""
    stage = f"{place(t, state)}, spent {spent!r}: the stage game over the {joint_actions} feasible joint actions has no"
    backend = concept.backend if isinstance(concept, Nash) else None
    if len(game.players) == 2:
        reason = f"{stage} Nash equilibrium; exact arithmetic ruled out every pair of supports."
    elif backend is None:
        reason = (
            f"{stage} pure Nash equilibrium. With three or more players only pure equilibria are looked for, so none was found, "
            "but a mixed one may exist."
        )
    else:
        reason = (
            f"{stage} pure Nash equilibrium, and no mixed one was found either, though one may exist: {backend} is asked where the "
            "feasible joint actions are a product."
        )
    if t < game.horizon - 1:
        reason += " Its utilities depend on the equilibria chosen at later steps: with another objective there may be one here."
    return NoEquilibrium(f"{reason} {OTHERS}", t, state, spent)


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
