"""Warnings about budgets that never bind because nothing costs: mostly a misspelt constraint."""

from __future__ import annotations

import warnings

from acegames.model.game import Label, MarkovGame


def costless(game: MarkovGame) -> list[Label]:
    """Constraints that have a finite budget though no outcome ever costs anything of them."""
    return [
        label
        for m, (label, costs) in enumerate(zip(game.constraints, game.cost_values, strict=True))
        if any(not isinstance(row[m], float) for row in game.budgets) and not any(cost != 0 for cost in costs)
    ]


def costless_sentence(label: Label) -> str:
    """The warning about such a constraint."""
    return f"no outcome of the game ever costs anything of {label!r}, so its budget never binds"


def warn_of_costless(game: MarkovGame) -> None:
    """Warn of every costless constraint."""
    for label in costless(game):
        warnings.warn(costless_sentence(label), stacklevel=4)
