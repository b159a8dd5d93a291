"""Constraints whose totals are fixed sums of other totals, such as both sides of one limit.

Plain totals begin at zero and costs add up. So where one column of costs is a linear combination of
other columns in every outcome of the game, its total is the same combination of their totals, and
whoever knows the others knows it. A reservoir takes no part: what does not fit into it is lost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from acegames.model.amounts import LARGEST
from acegames.model.arrays import Bools, Ints

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
        """The same of one."""
        counted = [spent[m] for m in self.counted]
        each = zip(self.of, self.scale.tolist(), self.weight.tolist(), strict=True)
        return all(sum(map(int.__mul__, own, counted)) == k * spent[m] for m, k, own in each)

    def fill(self, spent: Ints) -> None:
        """Write the sums into the totals (Q, M), of which the others are known."""
        spent[:, list(self.of)] = spent[:, list(self.counted)] @ self.weight.T // self.scale

    def named(self, names: Sequence[int]) -> Sums:
        """The same with other numbers for the constraints."""
        return replace(self, counted=tuple(names[k] for k in self.counted), of=tuple(names[k] for k in self.of))

    def to_data(self) -> list[list[int | list[int]]]:
        """For files, which say otherwise what is counted."""
        return [list(each) for each in zip(self.of, self.scale.tolist(), self.weight.tolist(), strict=True)]

    @staticmethod
    def from_data(counted: tuple[int, ...], data: Any) -> Sums:
        """From files; ValueError where it does not fit together."""
        of, scale, weight = zip(*data, strict=True)
        sums = Sums(counted, of, np.array(scale), np.array(weight))
        whole = sums.scale.dtype == sums.weight.dtype == np.int64 and all(type(m) is int and m >= 0 for m in of)
        if not whole or sums.weight.shape != (len(of), len(counted)) or not (sums.scale > 0).all():
            raise ValueError("the constraints that follow from others do not fit together")
        return sums


def find_sums(costs: Ints, largest: Sequence[int], order: Sequence[int], plain: Bools) -> Sums | None:
    """Return what constraints are of others, all of which are counted then; None: nothing follows.

    Args:
        costs: (K, M) of all outcomes.
        largest: (M,) bounds of what totals can be, without their signs.
        order: in which constraints become counted ones: a sum is one of constraints before it.
        plain: (M,) which are no reservoirs.
    """
    echelon = _Echelon(order, [m for m in order if plain[m]], largest)
    for first in range(0, len(costs), RUN):
        echelon.add(costs[first : first + RUN])
    found = echelon.sums()
    return found if found.of else None


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
        """Return what the open columns are of all others, as far as is known."""
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
    found = {m: row.get(m, Fraction(0)) - factor * other.get(m, Fraction(0)) for m in {**row, **other}}
    return {m: x for m, x in found.items() if x}


def _scale(own: dict[int, Fraction]) -> int:
    return math.lcm(*(x.denominator for x in own.values()))
