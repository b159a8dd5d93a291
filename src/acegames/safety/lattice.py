"""Costs and budgets as integers (spec 9), in units of each constraint.

The unit of a constraint is the greatest common divisor of its costs, and of what is missing in a
reservoir at the beginning. A cumulative cost is a whole
number of units, so `c <= B` holds exactly when `c / unit <= floor(B / unit)`. Budgets larger than
any play can spend (`inf` too) are cut to the largest total, which never binds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import TooLarge
from acegames.model.amounts import LARGEST, common_unit, from_units
from acegames.model.arrays import Ints, look_up
from acegames.model.game import MarkovGame, exact_costs
from acegames.model.words import to_digits


@dataclass(frozen=True, eq=False)
class Lattice:
    """The integer form of a game's costs and budgets."""

    units: tuple[Fraction, ...]  # M
    cost_units: tuple[Ints, ...]  # M arrays: whole units of each cost code
    budget: Ints  # (H, M)
    start: Ints  # (M,) spent at the beginning
    floor: Ints  # (M,) the least that can be spent: 0 of a reservoir, else beyond reach

    def costs(self, codes: NDArray[Any]) -> Ints:
        """Return whole units of (K, M) cost codes."""
        return look_up(self.cost_units, codes)

    def after(self, spent: Ints, cost: Ints) -> Ints:
        """Return totals (..., M) after one more cost."""
        found: Ints = np.maximum(spent + cost, self.floor)
        return found

    def spent(self, units: Iterable[int]) -> tuple[int | float | Fraction, ...]:
        """Return whole units as exact numbers in the user's units."""
        return from_units(self.units, units)


def lattice(game: MarkovGame) -> Lattice:
    """Return the integer lattice of a game; TooLarge if a constraint's totals exceed 64 bits."""
    costs = exact_costs(game)
    spent = game.spent_at_start
    units = tuple(common_unit([*values, own]) for values, own in zip(costs, spent, strict=True))
    scaled = [[_floor(v, u) for v in values] for values, u in zip(costs, units, strict=True)]
    budget = np.zeros((game.horizon, len(units)), dtype=np.int64)
    for m, whole in enumerate(scaled):
        missing = _floor(spent[m], units[m])
        most = game.horizon * max(map(abs, whole)) + missing
        if most >= LARGEST:
            unit, label = units[m], game.constraints[m]
            if missing >= LARGEST // 2:
                raise TooLarge(
                    f"constraint {label!r}: the reservoir starts {to_digits(missing)} units of {to_digits(unit)} below full, which does "
                    "not fit into 64-bit integers; if it can never be filled, give it a smaller capacity"
                )
            raise TooLarge(
                f"constraint {label!r}: the costs are whole multiples of no unit coarser than {to_digits(unit)}, and {game.horizon} "
                f"steps can add up to {to_digits(most)} of them, which does not fit into 64-bit integers. Costs of such "
                "high precision cannot be added up exactly: solve approximately, with an epsilon or a larger one (epsilon=..., --epsilon)"
            )
        bounds = (most if isinstance(b, float) else _floor(b, units[m]) for b in (row[m] for row in game.budgets))
        budget[:, m] = [max(min(bound, most), -most - 1) for bound in bounds]
    start = np.array([_floor(x, u) for x, u in zip(spent, units, strict=True)], dtype=np.int64)
    floor = np.array([-LARGEST if x is None else 0 for x in game.reservoirs], dtype=np.int64)
    return Lattice(units, tuple(np.array(w, dtype=np.int64) for w in scaled), budget, start, floor)


def _floor(amount: Fraction, unit: Fraction) -> int:
    """Return `math.floor(amount / unit)`, without making the fraction."""
    return (amount.numerator * unit.denominator) // (amount.denominator * unit.numerator)
