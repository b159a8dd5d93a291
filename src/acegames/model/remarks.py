"""What is no error in a game, but is hardly meant."""

from __future__ import annotations

import warnings

from acegames.model.game import Label, MarkovGame


def free(game: MarkovGame) -> list[Label]:
    """Constraints that have a budget though nothing ever costs: mostly a misspelt name in the rule that tells the cost."""
    return [
        label
        for m, (label, costs) in enumerate(zip(game.constraints, game.cost_values, strict=True))
        if any(not isinstance(row[m], float) for row in game.budgets) and not any(cost != 0 for cost in costs)
    ]


def free_in_words(label: Label) -> str:
    """What to tell the user of such a constraint."""
    return f"no outcome of the game ever costs anything of {label!r}, so its budget never binds"


def warn_of_free(game: MarkovGame) -> None:
    """Warn of constraints that are free."""
    for label in free(game):
        warnings.warn(free_in_words(label), stacklevel=4)
