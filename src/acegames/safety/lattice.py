"""Costs and budgets as integers (spec 9), and constraints whose totals follow from others.

The unit of a constraint is the greatest common divisor of its costs, and of what is missing in a
reservoir at the beginning. A cumulative cost is a whole number of units, so `c <= B` holds exactly
when `c / unit <= floor(B / unit)`. Budgets larger than any play can spend (`inf` too) are cut to
the largest total, which never binds.

Plain totals begin at zero and costs add up. So where one column of costs is a linear combination of
other columns in every outcome of the game, such as the other side of one limit, its total is the
same combination of their totals, and whoever knows the others knows it (`Sums`). A reservoir takes
no part: what does not fit into it is lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import TooLarge
from acegames.model.arrays import Bools, Ints, look_up
from acegames.model.game import MarkovGame, exact_costs
from acegames.model.numbers import LARGEST, common_unit, from_units
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
        total: Ints = np.maximum(spent + cost, self.floor)
        return total

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


# -- constraints that follow from others ----------------------------------------------------------


RUN = 1 << 16  # outcomes that are held against the sums at once


@dataclass(frozen=True, eq=False)
class Sums:
    """The totals of E constraints from those of D others that are counted.

    scale[e] * total of `of[e]` = the sum over d of weight[e, d] * total of counted[d].
    """

    counted: tuple[int, ...]
    of: tuple[int, ...]
    scale: Ints  # (E,) positive
    weight: Ints  # (E, D)

    def agree(self, spent: Ints) -> Bools:
        """Return whether the totals (Q, M) are such sums of others."""
        sums = spent[:, list(self.counted)] @ self.weight.T
        return np.asarray((sums == self.scale * spent[:, list(self.of)]).all(axis=1))

    def agree_one(self, spent: Sequence[int]) -> bool:
        """Return whether the totals of one pair are such sums of others."""
        counted = [spent[m] for m in self.counted]
        each = zip(self.of, self.scale.tolist(), self.weight.tolist(), strict=True)
        return all(sum(map(int.__mul__, own, counted)) == k * spent[m] for m, k, own in each)

    def fill(self, spent: Ints) -> None:
        """Write the sums into the totals (Q, M), of which the others are known."""
        spent[:, list(self.of)] = spent[:, list(self.counted)] @ self.weight.T // self.scale

    def named(self, names: Sequence[int]) -> Sums:
        """Return the sums with other numbers for the constraints."""
        return replace(self, counted=tuple(names[k] for k in self.counted), of=tuple(names[k] for k in self.of))

    def to_data(self) -> list[list[int | list[int]]]:
        """Return the sums for files, which store separately what is counted."""
        return [list(each) for each in zip(self.of, self.scale.tolist(), self.weight.tolist(), strict=True)]

    @staticmethod
    def from_data(counted: tuple[int, ...], data: Any) -> Sums:
        """Read the sums from a file; ValueError where they do not fit together."""
        of, scale, weight = zip(*data, strict=True)
        sums = Sums(counted, of, np.array(scale), np.array(weight))
        whole = sums.scale.dtype == sums.weight.dtype == np.int64 and all(type(m) is int and m >= 0 for m in of)
        if not whole or sums.weight.shape != (len(of), len(counted)) or not (sums.scale > 0).all():
            raise ValueError("the constraints that follow from others do not fit together")
        return sums


def find_sums(costs: Ints, largest: Sequence[int], order: Sequence[int], plain: Bools) -> Sums | None:
    """Find constraints that are sums of others, which are counted; None where there are none.

    Args:
        costs: (K, M) of all outcomes.
        largest: (M,) bounds of what totals can be, without their signs.
        order: in which constraints become counted ones: a sum is one of constraints before it.
        plain: (M,) which are no reservoirs.
    """
    echelon = _Echelon(order, [m for m in order if plain[m]], largest)
    for first in range(0, len(costs), RUN):
        echelon.add(costs[first : first + RUN])
    result = echelon.sums()
    return result if result.of else None


class _Echelon:
    """The reduced row echelon form of outcomes that span all that were seen, exact.

    A column without a leading one is the combination, with the numbers that stand in it, of those
    with one. One whose combination does not fit into 64-bit integers is given up.
    """

    def __init__(self, order: Sequence[int], columns: Sequence[int], largest: Sequence[int]) -> None:
        self.order, self.columns, self.largest = order, columns, largest
        self.open = list(columns)  # columns without a leading one
        self.rows: dict[int, dict[int, Fraction]] = {}  # by column of the leading one, without zeros

    def add(self, costs: Ints) -> None:
        """Take in outcomes (K, M) until all others are combinations of those taken."""
        while len(costs) and self.open:
            costs = costs[~self.sums().agree(costs)]
            if len(costs):
                self._take({m: Fraction(int(costs[0, m])) for m in self.columns if costs[0, m]})

    def sums(self) -> Sums:
        """Return which open columns are sums of all others, as far as is known."""
        follow = {m: {lead: row[m] for lead, row in self.rows.items() if m in row} for m in self.open}
        follow = {m: own for m, own in follow.items() if self._fits(m, own)}
        self.open = list(follow)
        counted = [m for m in self.order if m not in follow]
        scale = [_scale(own) for own in follow.values()]
        weight = [[int(k * own.get(m, 0)) for m in counted] for k, own in zip(scale, follow.values(), strict=True)]
        whole = (np.array(scale, dtype=np.int64), np.array(weight, dtype=np.int64).reshape(len(scale), len(counted)))
        return Sums(tuple(counted), tuple(follow), *whole)

    def _take(self, row: dict[int, Fraction]) -> None:
        for lead, own in self.rows.items():
            row = _less(row, row.get(lead), own)
        lead = next(m for m in self.open if m in row)
        row = {m: x / row[lead] for m, x in row.items()}
        self.rows = {m: _less(own, own.get(lead), row) for m, own in self.rows.items()} | {lead: row}
        self.open.remove(lead)

    def _fits(self, m: int, own: dict[int, Fraction]) -> bool:
        """Return whether the sum is a 64-bit integer whatever is spent."""
        most = max(self.largest[m], sum(abs(x) * self.largest[k] for k, x in own.items()))
        return _scale(own) * most < LARGEST


def _less(row: dict[int, Fraction], factor: Fraction | None, other: dict[int, Fraction]) -> dict[int, Fraction]:
    """Return the row less a multiple of another, without zeros."""
    if factor is None:
        return row
    difference = {m: row.get(m, Fraction(0)) - factor * other.get(m, Fraction(0)) for m in {**row, **other}}
    return {m: x for m, x in difference.items() if x}


def _scale(own: dict[int, Fraction]) -> int:
    return math.lcm(*(x.denominator for x in own.values()))
