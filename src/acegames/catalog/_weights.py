"""Weights that a catalog game is built with."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from acegames.errors import InvalidGame
from acegames.model.numbers import exact
from acegames.model.written import show

LARGEST = Fraction(10) ** 300
"""Weights are also rewards, of which floats hold the sum."""


def check_weights(game: str, weights: Sequence[Any]) -> list[Fraction]:
    """Return the weights as exact numbers; InvalidGame, naming the game and the weight, for wrong
    ones.
    """
    if not len(weights):
        raise InvalidGame(f"{game}: weights: there are none, must be at least one")
    found = []
    for k, weight in enumerate(weights):
        try:
            found.append(exact(weight))
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidGame(f"{game}: weights: entry {k}: {error}") from None
        if not 0 <= found[-1] <= LARGEST:
            rule = "must be at least 0" if found[-1] < 0 else "must be at most 1e300"
            raise InvalidGame(f"{game}: weights: entry {k} is {show(weight)}, {rule}")
    return found
