"""The cumulative cost of each constraint as a policy counts it: its memory between steps (spec 5).

An exact policy counts every cost as it is. An approximate one rounds each observed cost to a whole
number of *cells* before adding it. What is counted of a reservoir never falls below zero (spec 11).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from acegames.approximate.rounding import Rounding
from acegames.errors import InvalidOption, UnknownPair
from acegames.model.budgets import Amount, Reservoirs, Rows, read_amounts, spent_after, spent_at_start, to_units
from acegames.model.checks import unknown
from acegames.model.game import Label, MarkovGame, place
from acegames.model.numbers import from_units, nearest_float, plain
from acegames.model.random_costs import Cost, RandomCost, cost_text
from acegames.numerics import OBSERVED_COST
from acegames.system.display import Shown

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


# -- the memory of a runner -----------------------------------------------------------------------
# The memory of a runner between the steps of an episode: time, state and cumulative costs.


Amounts = tuple[Fraction, ...]


class Spending(Shown):
    """Follows one episode and adds up its costs exactly. Runners are built on it."""

    def __init__(self, horizon: int, tracker: CostTracker, state: Label, budgets: Rows | None = None) -> None:
        self.t, self.state = 0, state
        self._horizon, self._tracker, self._budgets = horizon, tracker, budgets
        # cumulative costs, as they were and as the tracker counts them
        self.total: Amounts = tracker.spent_at_start
        self.total_counted = self.total

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        over = "done, " if self.done else ""
        return f"{type(self).__name__}: {over}t={self.t}, state {self.state!r}, spent {self.spent!r}"

    @property
    def spent(self) -> Spent:
        """The cumulative cost, one exact number per constraint; what is missing in a reservoir."""
        return tuple(map(plain, self.total))

    @property
    def counted(self) -> Spent:
        """The cumulative cost as it is counted; the same as `spent` unless costs are rounded."""
        return tuple(map(plain, self.total_counted))

    @property
    def left(self) -> Spent:
        """The rest of each budget for the next step, exactly; `inf` where there is no bound.

        Raises:
            InvalidOption: the policy comes from a policy file, which holds no budgets.
        """
        if self._budgets is None:
            raise InvalidOption("left: a policy file holds no budgets; save and load the solution instead")
        bounds = self._budgets[min(self.t, self._horizon - 1)]
        return tuple(b if isinstance(b, float) else plain(b - c) for b, c in zip(bounds, self.total, strict=True))

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.t >= self._horizon

    def check_running(self) -> None:
        """Raise InvalidOption at the end of the episode."""
        if self.done:
            raise InvalidOption(f"the episode is over: the horizon is {self._horizon}")

    def check_next_state(self, known: Mapping[Label, int], next_state: Any) -> None:
        """Raise InvalidOption unless the next state is a state of the game."""
        if not isinstance(next_state, Hashable) or next_state not in known:
            said = unknown("state", next_state, known)
            raise InvalidOption(f"next state {next_state!r}: {said}; give observe(action, cost, next_state)")

    def after(self, cost: Any, *, whole: bool = True) -> tuple[Amounts, Amounts]:
        """Return the sums spent and counted after one more cost; InvalidOption if it cannot be
        counted.

        `whole`: the cost must count as whole units, as every cost of the game does.
        """
        tracker = self._tracker
        if whole:
            tracker.whole(cost)
        try:
            step = read_amounts(tracker.constraints, {} if cost is None else cost)
        except (ValueError, TypeError) as error:
            raise InvalidOption(f"cost {cost!r}: {error}") from None
        return tracker.after(self.total, step), tracker.after(self.total_counted, tracker.counted(step))

    def check_budgets(self, after: tuple[Amounts, Amounts], until: int | None = None) -> None:
        """Raise UnknownPair where these sums break a budget of now, or of a time before `until`.

        A rounded cost counts as a little less or more than it was: a budget is broken where it is
        exceeded both by what was spent and by what is counted. Less than that is the excess that
        rounding down allows, or the slack that rounding up takes.
        """
        if self._budgets is None:
            return
        for t in range(self.t, self.t + 1 if until is None else until):
            for label, *sums, bound in zip(self._tracker.constraints, *after, self._budgets[t], strict=True):
                if min(sums) > bound:
                    over = f"the step brought {label!r} to {plain(sums[0])!r}, its budget at t={t} is {plain(bound)!r}"
                    raise UnknownPair(f"{place(self.t, self.state)}, spent {self.spent!r}: {over}")

    def move(self, after: tuple[Amounts, Amounts], next_state: Label) -> None:
        """Go on to the next time with what `after` says."""
        self.total, self.total_counted = after
        self.t, self.state = self.t + 1, next_state


# -- what can happen ------------------------------------------------------------------------------
# What can happen after a joint action: runners refuse what cannot, and name what can.


NAMED = 5  # outcomes that an error names, at most


Vector = tuple[Cost, ...]


class Possible:
    """The outcomes of a game. Where costs are rounded, floats may be off by their own rounding."""

    def __init__(self, game: MarkovGame, tracker: CostTracker) -> None:
        self.game, self.tracker = game, tracker
        # costs by next state, of joint actions that were asked about
        self._known: dict[tuple[int, Label, tuple[Label, ...]], dict[Label, list[Vector]]] = {}

    def check(self, t: int, state: Label, action: Sequence[Label], cost: Any, next_state: Label) -> None:
        """Raise UnknownPair unless some outcome of the joint action has this next state and this
        cost.
        """
        amounts = read_amounts(self.tracker.constraints, {} if cost is None else cost)
        key = self.game.layer_at[t], state, tuple(action)
        if key not in self._known:
            costs_of: dict[Label, list[Vector]] = {}
            for s, own in self._outcomes(t, state, action):
                costs_of.setdefault(s, []).append(own)
            self._known[key] = costs_of
        costs = self._known[key].get(next_state, [])
        if amounts not in costs and not any(self._agree(amounts, own) for own in costs):
            hint = "" if self.tracker.exact else f" ({AT_AN_END})"
            raise UnknownPair(
                f"{place(t, state, action)}: no outcome of the game leads to {next_state!r} at a cost of {cost!r}{hint}; "
                f"{self.named(t, state, action)}"
            )

    def named(self, t: int, state: Label, action: Sequence[Label]) -> str:
        """Return the outcomes of a joint action, for a message."""
        possible = list(dict.fromkeys(f"{s!r} at {self._shown(cost)}" for s, cost in self._outcomes(t, state, action)))
        more = f" and {len(possible) - NAMED:,} more" if len(possible) > NAMED else ""
        return f"possible are {'; '.join(possible[:NAMED])}{more}"

    def _outcomes(self, t: int, state: Label, action: Sequence[Label]) -> list[tuple[Label, Vector]]:
        row = self.game.legal(t, state).get(tuple(action))
        if row is None:
            raise UnknownPair(f"{place(t, state, action)}: the joint action is not legal here")
        return [(s, cost) for _, s, cost in self.game.outcomes(t, row)]

    def _agree(self, amounts: tuple[Fraction, ...], own: Vector) -> bool:
        rules = self.tracker.rounding or (None,) * len(own)
        return all(self._may_be(x, c, rule) for x, c, rule in zip(amounts, own, rules, strict=True))

    def _may_be(self, amount: Fraction, cost: Cost, rule: Any) -> bool:
        """Return whether an observed amount may be this cost of the game."""
        if isinstance(cost, RandomCost):
            if cost.atoms is not None:
                return any(self._may_be(amount, value, rule) for value, _ in cost.atoms)
            return nearest_float(cost.lower) <= nearest_float(amount) <= nearest_float(cost.upper)
        if amount == cost:
            return True
        if rule is not None and abs(amount - cost) <= Fraction(OBSERVED_COST) * max(Fraction(1), abs(cost)):
            return bool(rule.of(amount) == rule.of(cost))
        tails = self.game.tails  # discounted costs with very many digits were cut by less than this
        return tails is not None and abs(amount - cost) <= tails.epsilon / (self.game.horizon + 1)

    def _shown(self, cost: Vector) -> str:
        each = [cost_text(c) if isinstance(c, RandomCost) else str(plain(c)) for c in cost]
        named = ", ".join(f"{label!r}: {x}" for label, x in zip(self.game.constraints, each, strict=True))
        return f"a cost of {{{named}}}" if named else "no cost"
