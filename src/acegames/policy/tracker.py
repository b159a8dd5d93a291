"""The cumulative cost of each constraint as a policy counts it: its memory between steps (spec 5).

An exact policy counts every cost as it is. An approximate one rounds each observed cost to a whole
number of *cells* before adding it. What is counted of a reservoir never falls below zero (spec 11).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from acegames.approximate.rounding import Rounding
from acegames.errors import InvalidOption
from acegames.model.amounts import from_units, read_amounts, to_units
from acegames.model.budgets import Amount, Reservoirs, spent_after, spent_at_start
from acegames.model.game import Label
from acegames.model.numbers import plain

__all__ = ["CostTracker", "Spent"]

Spent = tuple[int | float | Fraction, ...]

AT_AN_END = (
    "if the cost is drawn from a continuous distribution and lies exactly at an end of it, which happens with "
    "probability zero, report one that is a little further inside"
)


@dataclass(frozen=True)
class CostTracker:
    """Adds up costs exactly, in whole units: the memory that a policy needs between steps."""

    constraints: tuple[Label, ...]
    units: tuple[Fraction, ...]  # M
    rounding: tuple[Rounding | None, ...] = ()  # M, None where costs count as they are; empty: all of them
    reservoirs: Reservoirs = ()  # M, None for a plain budget; empty: all of them

    @property
    def exact(self) -> bool:
        """Whether every cost counts as it is."""
        return not any(self.rounding)

    @property
    def spent_at_start(self) -> tuple[Fraction, ...]:
        """What is spent at the beginning: nothing, or what is missing in a reservoir."""
        return spent_at_start(self.reservoirs or (None,) * len(self.units))

    def hint(self, t: int) -> str:
        """Return what may be behind a question about a cumulative cost that cannot occur, in
        brackets.
        """
        if t == 0:
            return f" (at t=0 spent is {tuple(map(plain, self.spent_at_start))!r})"
        return "" if self.exact else f" ({AT_AN_END})"

    def start(self) -> tuple[int, ...]:
        """Return the total at the beginning."""
        return self.total(self.spent_at_start)

    def add(self, total: tuple[int, ...], cost: Any) -> tuple[int, ...]:
        """Return the new total; InvalidOption for what cannot be counted, whether it can occur or
        not.
        """
        return self.after(total, self.whole(cost))

    def after(self, total: tuple[Amount, ...], counted: tuple[Amount, ...]) -> tuple[Amount, ...]:
        """Return the new total after a counted cost, both in the same unit."""
        return spent_after(self.reservoirs, total, counted)

    def whole(self, cost: Any) -> tuple[int, ...]:
        """Return whole units that a cost counts as; InvalidOption as `add`."""
        try:
            return self.total(self.counted({} if cost is None else cost))
        except (ValueError, TypeError) as error:
            hint = "" if self.exact else f"; {AT_AN_END}"
            raise InvalidOption(f"cost {cost!r}: {str(error).partition(';')[0]}{hint}") from None

    def counted(self, cost: Any) -> tuple[Fraction, ...]:
        """Return an observed cost after rounding, in the user's units; ValueError where it is no
        cost.
        """
        amounts = read_amounts(self.constraints, cost)
        rules = self.rounding or (None,) * len(amounts)
        return tuple(c if r is None else r.of(c) for c, r in zip(amounts, rules, strict=True))

    def spent(self, total: Sequence[int]) -> Spent:
        """Return a total in the user's units."""
        return from_units(self.units, total)

    def total(self, spent: Any) -> tuple[int, ...]:
        """Return whole units of a total in the user's units (number, sequence or dict), or
        ValueError.
        """
        return to_units(self.constraints, self.units, spent)
