"""A game with other budgets: plain ones are shifted, reservoirs have another capacity."""

from __future__ import annotations

import math
from fractions import Fraction

from acegames.model.budgets import Reservoir
from acegames.model.record import with_fields
from acegames.safety.frontier import last_finite

PLENTY = 10**6  # a capacity that is as good as infinite


def own_budgets(game):
    """The last finite entry of each budget, or the capacity."""
    columns = zip(zip(*game.budgets, strict=True), game.reservoirs, strict=True)
    return [kept.capacity if kept else last_finite(column) for column, kept in columns]


def shifted(game, row):
    """The game with its budgets shifted so that the last finite entries, or the capacities, are the row's."""
    own = own_budgets(game)
    row = [min(b, PLENTY) if kept else b for kept, b in zip(game.reservoirs, row, strict=True)]
    stored = []
    for kept, b in zip(game.reservoirs, row, strict=True):
        level = None if kept is None else b if kept.start == kept.capacity else min(kept.start, b)
        stored.append(kept and Reservoir(Fraction(b), Fraction(level)))
    game = with_fields(game, reservoirs=tuple(stored))
    rows = []
    for old in game.budgets:
        rows.append(
            tuple(b if b == math.inf or x == math.inf else b - o + x for b, o, x in zip(old, own, row, strict=True))
        )
        rows[-1] = tuple(math.inf if x == math.inf else b for b, x in zip(rows[-1], row, strict=True))
    return with_fields(game, budgets=tuple(rows))
