"""The memory of a runner between the steps of an episode: time, state and cumulative costs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any

from acegames.errors import InvalidOption, UnknownPair
from acegames.model.amounts import read_amounts
from acegames.model.budgets import Rows
from acegames.model.game import Label, place
from acegames.model.numbers import plain
from acegames.model.written import unknown
from acegames.policy.tracker import CostTracker, Spent
from acegames.system.showing import Shown

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
                    told = f"the step brought {label!r} to {plain(sums[0])!r}, its budget at t={t} is {plain(bound)!r}"
                    raise UnknownPair(f"{place(self.t, self.state)}, spent {self.spent!r}: {told}")

    def move(self, after: tuple[Amounts, Amounts], next_state: Label) -> None:
        """Go on to the next time with what `after` says."""
        self.total, self.total_counted = after
        self.t, self.state = self.t + 1, next_state
