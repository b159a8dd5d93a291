"""What is no error in a game, but is hardly meant."""

from __future__ import annotations

import warnings

from acegames.model.game import MarkovGame


def warn_of_free(game: MarkovGame) -> None:
    """Warn of constraints that have a budget though nothing ever costs: mostly a misspelt name in the rule that tells the cost."""
    for m, (label, costs) in enumerate(zip(game.constraints, game.cost_values, strict=True)):
        bounded = any(not isinstance(row[m], float) for row in game.budgets)
        if bounded and not any(cost != 0 for cost in costs):
            warnings.warn(
                f"no outcome of the game ever costs anything of {label!r}, so its budget never binds", stacklevel=4
            )
