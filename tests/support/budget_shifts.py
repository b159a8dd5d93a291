"""A game with other budgets: plain ones are shifted, reservoirs have another capacity."""

from __future__ import annotations

import math
from fractions import Fraction

from acegames.model.budgets import Reservoir
from acegames.model.layers import with_fields
from acegames.safety.frontier import last_finite

PLENTY = 10**6  # a capacity that is as good as infinite


def own_budgets(game):
    """The last finite entry of each budget, or the capacity."""
    columns = zip(zip(*game.budgets, strict=True), game.reservoirs, strict=True)
    return [stored.capacity if stored else last_finite(column) for column, stored in columns]


def shifted(game, row):
    """The game with its budgets shifted so that the last finite entries, or the capacities, are the row's."""
    own = own_budgets(game)
    row = [min(b, PLENTY) if reservoir else b for reservoir, b in zip(game.reservoirs, row, strict=True)]
    stored = []
    for reservoir, b in zip(game.reservoirs, row, strict=True):
        level = None if reservoir is None else b if reservoir.start == reservoir.capacity else min(reservoir.start, b)
        stored.append(reservoir and Reservoir(Fraction(b), Fraction(level)))
    game = with_fields(game, reservoirs=tuple(stored))
    columns = [
        [math.inf if math.inf in (b, x) else b - o + x for b in column]
        for column, o, x in zip(zip(*game.budgets, strict=True), own, row, strict=True)
    ]
    return with_fields(game, budgets=tuple(zip(*columns, strict=True)) if columns else game.budgets)
