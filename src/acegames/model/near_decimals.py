"""Costs and budgets that floats put beside a short decimal: 0.1 * 3 is 0.30000000000000004.

They count exactly as they stand (spec 9), so a cost of 0.1 * 3 breaks a budget of 0.3. That is
hardly ever meant, so it is told where the game is built. Probabilities are left out: they are
compared with nothing, and `1 - p` or counts that were normalised often look like this.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from acegames.model.costs.random import RandomCost
from acegames.model.numbers import plain
from acegames.model.user_functions import warn_of_game
from acegames.model.written import are

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame

DIGITS = 9
"""Of a short decimal: of random floats one in 500,000 is that close to such a one by chance."""
ULPS = 4
"""Units in the last place: what a few operations on floats leave behind."""


MANY = 1000
"""Costs of which not every one is looked at digit by digit."""


def near_decimal(value: Any) -> float | None:
    """Return the short decimal that a number misses by rounding errors of floats; None where none
    is.
    """
    if isinstance(value, RandomCost):
        return None
    if isinstance(value, Fraction):
        value = plain(value)
    if not isinstance(value, float) or not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return short if value != short and abs(value - short) <= ULPS * math.ulp(value) else None


def warn_of_near_decimals(game: MarkovGame, *, costs: bool = True) -> None:
    """GameWarning for the first cost or budget that just misses a short decimal, if there is one.

    It is found among the distinct costs: the outcomes are looked at only to name the place.
    """
    found = [
        f"the budget of {label!r}{_at(game, m, bound)} is {_missed(bound)}"
        for m, label in enumerate(game.constraints)
        for bound in dict.fromkeys(row[m] for row in game.budgets)
        if near_decimal(bound) is not None
    ]
    found += [
        f"the start of the reservoir {label!r} is {_missed(kept.start)}"
        for label, kept in zip(game.constraints, game.reservoirs, strict=True)
        if kept is not None and kept.start != kept.capacity and near_decimal(kept.start) is not None
    ]
    found += [
        f"the reserve of the reservoir {game.constraints[m]!r}{_at(game, m, bound)} is {_missed(kept.capacity - bound)}"
        for m, kept in enumerate(game.reservoirs)
        for bound in dict.fromkeys(row[m] for row in game.budgets)
        if kept is not None and near_decimal(kept.capacity - bound) is not None
    ]
    near = [(m, k) for m, values in enumerate(game.cost_values) for k in _near(values)] if costs else []
    if near:
        m, k = near[0]
        cost = game.cost_values[m][k]
        found += [
            f"{_place(game, m, k)}: the cost of {game.constraints[m]!r} is {_missed(cost)}",
            *[""] * (len(near) - 1),
        ]
    if found:
        more = f" There {are(len(found) - 1, 'more such number')}." if len(found) > 1 else ""
        warn_of_game(f"{found[0]}.{more}")


def _near(values: Sequence[Any]) -> list[int]:
    """Return the numbers of those that just miss a short decimal."""
    if len(values) < MANY:
        return [k for k, value in enumerate(values) if near_decimal(value) is not None]
    size = np.array([0.0 if isinstance(x, RandomCost) else abs(float(x)) for x in values])
    with np.errstate(all="ignore"):
        place = np.floor(np.log10(size)) - (DIGITS - 1)
        digits = np.round(np.where(place < 0, size * 10.0**-place, size / 10.0**place))
        short = np.where(place < 0, digits / 10.0**-place, digits * 10.0**place)  # rounded once up to 10**22
        near = (short != size) & (np.abs(size - short) <= ULPS * np.spacing(size))
    return [k for k in np.flatnonzero(near | ~(np.abs(place) <= 22)).tolist() if near_decimal(values[k]) is not None]


def _missed(value: Any) -> str:
    said = f"{plain(value)!r}, which misses {near_decimal(value)!r} by a rounding error of floats"
    return f"{said} and counts exactly as it stands; round it, or give a Fraction or a Decimal"


def _at(game: MarkovGame, m: int, bound: Any) -> str:
    times = [t for t, row in enumerate(game.budgets) if row[m] == bound]
    return "" if len(times) == game.horizon else f" at t={times[0]}"


def _place(game: MarkovGame, m: int, code: int) -> str:
    for t in range(game.horizon):
        outcome = np.flatnonzero(game.layer(t).cost[:, m] == code)
        if len(outcome):
            return game.place(t, int(np.searchsorted(game.layer(t).out_ptr, outcome[0], "right")) - 1)
    raise AssertionError("every cost value occurs")
