"""The costs of played episodes in whole numbers: as spent, and as the policy counts (spec 5).

Each constraint has a unit. Its plain costs are whole multiples of the unit, and so are draws from
a distribution on the integers or with listed values. A draw from any other distribution is moved to
the next multiple, inside the support and inside the cell that the policy counts it in. As the unit
is finer than a billionth of the distribution's size, only the last digit of the draw changes, and
totals can be compared with budgets exactly. The total of a reservoir begins with what is missing
and never falls below zero (spec 11), both as spent and as counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.model.arrays import Floats, Ints
from acegames.model.game import Layer, MarkovGame
from acegames.model.numbers import common_denominator, exact
from acegames.model.random_costs import Cost, RandomCost

FINEST, COARSEST = 44, 32
"""Binary digits kept of a draw. Where 64-bit totals hold fewer, totals are Python integers."""


class EpisodeCosts:
    """Costs of a game, and what they count as by `rounding` (one rule or None per constraint)."""

    def __init__(self, game: MarkovGame, rounding: Sequence[Any] = ()) -> None:
        rules = tuple(rounding) or (None,) * len(game.constraints)
        self.exact = not any(rules)  # what is counted is what is spent
        self.columns = [
            _Column(values, rule, game.horizon, missing)
            for values, rule, missing in zip(game.cost_values, rules, game.spent_at_start, strict=True)
        ]
        self.dtype: Any = np.int64 if all(column.fits for column in self.columns) else object
        for column in self.columns:
            column.dtype = self.dtype
        self.scale = [column.scale for column in self.columns]
        self.counted_scale = [column.counted_scale for column in self.columns]
        self.budgets = game.budgets
        self.reservoirs = [m for m, x in enumerate(game.reservoirs) if x is not None]
        missing = game.spent_at_start
        self.start = tuple(int(x * k) for x, k in zip(missing, self.scale, strict=True))
        self.counted_start = tuple(int(x * k) for x, k in zip(missing, self.counted_scale, strict=True))
        self.error = [rule.cell if rule and rule.direction == "down" else Fraction(0) for rule in rules]  # per step

    def nothing(self, episodes: int) -> Ints:
        """Return costs of nothing, (E, M)."""
        return np.zeros((episodes, len(self.columns)), dtype=self.dtype)

    def begin(self, episodes: int) -> tuple[Ints, Ints]:
        """Return totals before the first step and what they count as, both (E, M)."""
        nothing = self.nothing(episodes)
        return nothing + np.array(self.start, self.dtype), nothing + np.array(self.counted_start, self.dtype)

    def after(self, total: Ints, cost: Ints) -> Ints:
        """Return totals after one more cost, (E, M)."""
        new = total + cost
        for m in self.reservoirs:
            new[:, m] = np.maximum(new[:, m], 0)
        return new

    def draw(self, layer: Layer, out: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Return the costs of outcomes and what they count as, both (E, M)."""
        true, counted = self.nothing(len(out)), self.nothing(0 if self.exact else len(out))
        for m, column in enumerate(self.columns):
            true[:, m], seen = column.draw(layer.cost[out, m], rng)
            if not self.exact:
                counted[:, m] = seen
        return true, true if self.exact else counted

    def over(self, total: Ints, t: int, *, within_error: bool = False) -> NDArray[np.bool_]:
        """Return which totals (E, M) break a budget after acting at t, or more than rounding
        explains.
        """
        broken = np.zeros(len(total), dtype=bool)
        for m, (bound, k) in enumerate(zip(self.budgets[t], self.scale, strict=True)):
            if not isinstance(bound, float):
                limit = math.floor((bound + (t + 1) * self.error[m] * within_error) * k)
                if self.dtype is not object:
                    limit = max(-(2**63), min(limit, 2**63 - 1))  # beyond what int64 can hold, nothing changes
                broken |= (total[:, m] > limit).astype(bool)
        return broken

    def excess(self, total: Ints, t: int) -> list[Fraction]:
        """Return the most by which each budget is exceeded after acting at t; 0 where kept."""
        return [
            Fraction(0) if isinstance(bound, float) else max(Fraction(0), Fraction(int(total[:, m].max()), k) - bound)
            for m, (bound, k) in enumerate(zip(self.budgets[t], self.scale, strict=True))
        ]

    def in_user_units(self, total: Ints, *, counted: bool = False) -> Floats:
        """Return true amounts, or counted ones, as the nearest floats, (E, M)."""
        rounded = np.empty(total.shape)
        for m, k in enumerate(self.counted_scale if counted else self.scale):
            if self.dtype is not object and max(k, int(np.abs(total[:, m]).max())) <= 2**53:
                rounded[:, m] = total[:, m] / k  # both are floats, so only the quotient is rounded
            else:
                amounts, code = np.unique(total[:, m], return_inverse=True)
                rounded[:, m] = np.array([c / k for c in amounts.tolist()])[code]
        return rounded

    def in_units(self, counted: Ints, units: Any) -> Ints | None:
        """Convert counted amounts (E, M) to whole numbers of other units; None if impossible."""
        whole = np.empty(counted.shape, dtype=np.int64)
        for m, (k, unit) in enumerate(zip(self.counted_scale, units, strict=True)):
            up, down = (1 / (k * Fraction(unit))).as_integer_ratio()
            if self.dtype is object or max(down, int(np.abs(counted[:, m]).max()) * up) >= 2**63:
                return None
            whole[:, m], rest = np.divmod(counted[:, m] * up, down)
            if rest.any():
                return None
        return whole


class _Column:
    """One constraint's costs in multiples of 1 / scale, counted ones of 1 / counted_scale."""

    def __init__(self, values: Sequence[Cost], rule: Any, horizon: int, missing: Fraction) -> None:
        self.rule = rule
        numbers = [Fraction(0) if isinstance(v, RandomCost) else v for v in values]
        self.drawn = {k: v for k, v in enumerate(values) if isinstance(v, RandomCost)}
        counted = numbers if rule is None else [rule.of(v) for v in numbers]
        cells = [] if rule is None else [rule.cell]
        grid = common_denominator([*numbers, *cells, missing])
        ends = (x for cost in self.drawn.values() for x in (cost.upper, cost.upper - cost.depth, cost.offset))
        reach = max([Fraction(0), *map(abs, numbers), *map(abs, ends)])
        self.scale = _scale(grid, reach * horizon + missing, self.drawn.values())
        also = [missing, *(cells if self.drawn else [])]
        self.counted_scale = common_denominator([*counted, *also]) if cells else self.scale
        self.whole = [int(v * self.scale) for v in numbers], [int(v * self.counted_scale) for v in counted]
        most = (reach * horizon + missing) * self.scale
        if rule is not None:
            counts = (max(reach, abs(rule.lowest or 0)) + rule.cell) * horizon + missing
            most = max(most, counts * self.counted_scale, rule.cell * self.scale)
        self.fits = most < 2**63
        self.dtype: Any = object  # until that of all columns is known

    @cached_property
    def tables(self) -> list[Ints]:
        """The cost of each code as it is and as it counts."""
        return [np.array(numbers, dtype=self.dtype) for numbers in self.whole]

    def draw(self, code: NDArray[np.int32], rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Return costs and counted costs of cost codes, both (E,)."""
        true, counted = (table[code] for table in self.tables)
        for k in np.unique(code).tolist() if self.drawn else ():
            if k in self.drawn:
                here = np.flatnonzero(code == k)
                draw = self._discrete if self.drawn[k].has_atoms else self._continuous
                true[here], counted[here] = draw(self.drawn[k], len(here), rng)
        return true, counted

    def _continuous(self, cost: RandomCost, size: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Draw costs at the next unit in the same cell, strictly inside the support."""
        moved, rest = divmod(cost.offset * self.scale, 1)
        inwards = np.ceil if self.rule is not None and self.rule.direction == "up" else np.floor
        scaled = inwards(cost.draw(size, rng) * float(cost.unit * self.scale) + float(rest))
        low = cost.upper - cost.depth
        first, last = math.floor(low * self.scale) + 1, math.ceil(cost.upper * self.scale) - 1
        inside = np.clip(scaled, float(first - moved), float(last - moved))
        whole = np.array([int(x) for x in inside], dtype=object) if self.dtype is object else inside.astype(np.int64)
        whole = np.minimum(np.maximum(whole + moved, first), last)  # the float of an end may lie beyond it
        if self.rule is None or self.rule.direction == "ignore":
            return whole, whole if self.rule is None else np.zeros_like(whole)
        width = int(self.rule.cell * self.scale)
        cells = whole // width if self.rule.direction == "down" else -(-whole // width)
        if self.rule.lowest is not None:
            cells = np.maximum(cells, int(self.rule.lowest / self.rule.cell))
        return whole, cells * int(self.rule.cell * self.counted_scale)

    def _discrete(self, cost: RandomCost, size: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Draw costs counted by their exact values, as they are written; those values recur."""
        drawn, code = np.unique(cost.draw(size, rng), return_inverse=True)
        low = cost.upper - cost.depth
        amounts = [min(max(exact(x) * cost.unit + cost.offset, low), cost.upper) for x in drawn.tolist()]
        whole = [math.floor(a * self.scale) for a in amounts]
        seen = whole if self.rule is None else [int(self.rule.of(a) * self.counted_scale) for a in amounts]
        return np.array(whole, dtype=self.dtype)[code], np.array(seen, dtype=self.dtype)[code]


def _values(cost: RandomCost) -> list[Fraction]:
    """Return costs that whole units must make, and all others with them where all are known."""
    if cost.atoms is not None:
        return [amount for amount, _ in cost.atoms]
    if cost.on_integers:
        return [cost.offset, cost.unit]
    return [cost.upper] if cost.has_atoms else []


def _scale(grid: int, total: Fraction, drawn: Any) -> int:
    """Return units per one: a multiple of `grid`, as fine as lets `total` fit into 64 bits if it
    can.
    """
    grid = math.lcm(grid, common_denominator(v for cost in drawn for v in _values(cost)))
    known = [cost for cost in drawn if cost.on_integers or cost.atoms is not None]
    smooth = [cost.depth if cost.has_atoms else cost.bulk for cost in drawn if cost not in known]
    if not smooth or not min(smooth):
        return grid

    def with_digits(digits: int) -> int:
        needed: Fraction = 2**digits / (min(smooth) * grid)
        return grid << max(0, math.ceil(needed) - 1).bit_length()

    fitting = (k for k in map(with_digits, range(FINEST, COARSEST - 1, -1)) if total * k < 2**62)
    return next(fitting, with_digits(FINEST))
