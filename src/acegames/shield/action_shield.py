"""The shield of a game that knows only actions and their prices, without a table of situations.

Let c(a) >= 0 be the cost of joint action a and c* the least one, in every component, which some
joint action has. With budgets B_t, the largest totals after acting at t with which play can go on
are

    room_t = min over s = t .. H-1 of  B_s - (s - t) c*,     room_t = min(B_t, room_{t+1} - c*),

because nothing spends less than c* at every step. So a is safe at (t, spent) if and only if
spent + c(a) <= room_t. Memory is linear in joint actions and in the horizon, whatever the budgets:
ten thousand steps with a budget for each of ten agents are as easy as one.

Situations are numbered as cells of one box per time. A number stands for every total that the least
and the largest costs allow, whether or not sums of costs meet it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.approximate.within import Within
from acegames.errors import TooLarge
from acegames.model.amounts import LARGEST, read_pair, unreachable
from acegames.model.arrays import Bools, Ints
from acegames.model.checks import check_choice
from acegames.model.game import Label, MarkovGame
from acegames.model.words import counted
from acegames.policy.tracker import CostTracker
from acegames.safety.explore import explore
from acegames.safety.feasible import Feasibility
from acegames.safety.infeasible import infeasible_as_counted
from acegames.safety.lattice import Lattice, lattice
from acegames.safety.space import plan
from acegames.shield.product_sets import CRITERIA
from acegames.shield.safe_sets import Sealed, sealed
from acegames.shield.shield import Shield
from acegames.shield.situation import Situation

KEPT = 1 << 10
"""Sets of safe joint actions that are kept once they were asked for."""


def least_cost(costs: Ints) -> Ints | None:
    """Return the least cost in every component that a joint action has; None where none has it.

    None too where a cost is negative: what was spent could come back.
    """
    least = costs.min(axis=0)
    return least if (least >= 0).all() and (costs == least).all(axis=1).any() else None


@dataclass(frozen=True, eq=False)
class ActionSets(Sealed):
    """The sets of joint actions that cost at most so much; the last one is empty.

    `levels` are the costs of each constraint that occur. What is left of a budget allows the costs
    up to one of them, so a set has one level per constraint, and its number counts them through.
    """

    actions: NDArray[np.int32]  # (R, N), in lexicographic order
    costs: Ints  # (R, M)
    levels: tuple[Ints, ...]  # M sorted arrays
    _kept: dict[int, NDArray[np.int32]] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many levels each constraint has."""
        return tuple(map(len, self.levels))

    def __len__(self) -> int:
        return math.prod(self.shape) + 1

    def numbers(self, left: Ints) -> Ints:
        """Return the sets of what is left (B, M); the empty one where it is below a least cost."""
        at = [np.searchsorted(levels, left[:, m], side="right") - 1 for m, levels in enumerate(self.levels)]
        number = np.zeros(len(left), dtype=np.int64)
        for own, levels in zip(at, self.levels, strict=True):
            number = number * len(levels) + np.maximum(own, 0)
        return np.where(np.all([own >= 0 for own in at], axis=0) if at else True, number, len(self) - 1)

    def marked(self, d: int) -> tuple[NDArray[np.int32], Bools]:
        """Return all joint actions (R, N), and which of them are in set d, (R,)."""
        if d == len(self) - 1:
            return self.actions, np.zeros(len(self.actions), dtype=bool)
        at = np.unravel_index(d, self.shape) if self.levels else ()
        most = np.array([levels[k] for levels, k in zip(self.levels, at, strict=True)], dtype=np.int64)
        return self.actions, np.asarray((self.costs <= most).all(axis=1))

    def __getitem__(self, d: int) -> NDArray[np.int32]:
        """Return the joint actions of set d, (E, N), in lexicographic order."""
        if d not in self._kept:
            if len(self._kept) >= KEPT:
                self._kept.clear()
            offered, chosen = self.marked(d)
            self._kept[d] = sealed(offered[chosen])
        return self._kept[d]

    @property
    def lists(self) -> tuple[NDArray[np.int32], ...]:
        """The list that every set is taken from."""
        return (self.actions,)

    @property
    def block(self) -> NDArray[np.int32]:
        """(D-1,) the list that a set is taken from: the only one."""
        return np.zeros(len(self) - 1, dtype=np.int32)


class ActionShield(Shield):
    """What `Shield.of_actions` gives where prices allow it: no table, for any horizon."""

    def __init__(self, game: MarkovGame, least: Ints, *, criterion: str = "largest") -> None:
        check_choice("criterion", criterion, CRITERIA)
        self.game, self.criterion = game, criterion
        self._counted, self._lattice = game, lattice(game)
        self.tracker = CostTracker(game.constraints, self._lattice.units, (), game.reservoirs)
        self._room = sealed(_rooms(self._lattice, least))  # (H, M)
        costs = self._lattice.costs(game.layers[0].cost)
        levels = tuple(sealed(np.unique(column)) for column in costs.T)
        self._sets: Any = ActionSets(sealed(game.layers[0].action), sealed(costs), levels)
        times = np.arange(game.horizon + 1)[:, None]
        ends = np.concatenate([self._room - least, self._room[-1:]])
        self._lo = sealed(times * least)  # (H+1, M) the least and the largest totals at each time
        self._hi = sealed(np.minimum(times * costs.max(axis=0), ends))
        self._products: dict[int, tuple[Bools, ...]] = {}
        if (self._hi[0] < 0).any():
            raise infeasible_as_counted(game, Within(None, False, None, default="up"))

    @cached_property
    def feasibility(self) -> Feasibility:  # type: ignore[override]
        """The situations as a table; TooLarge where there are too many."""
        return Feasibility(self.game, self._lattice, explore(plan(self.game, self._lattice, clip=False)))

    # -- one situation

    def at(self, t: int, state: Label, spent: Any) -> Situation:
        """Return a situation (t, state, spent) with its safe joint actions; at the end there are
        none.
        """
        _, total = read_pair(t, self.game.horizon, state, self.game.state_numbers, spent, self.tracker.total)
        if not self._within(np.array([t]), total)[0]:
            raise unreachable(t, state, spent, occurs=True, hint=self.tracker.hint(t))
        number = int(self._set_at(np.array([t]), total)[0])
        return Situation(self.game, t, state, spent, number, self._sets[number])

    def _within(self, t: Ints, spent: Ints) -> Bools:
        return np.asarray(((spent >= self._lo[t]) & (spent <= self._hi[t])).all(axis=1))

    def _set_at(self, t: Ints, spent: Ints) -> Ints:
        """Return the numbers of the sets of safe joint actions, (B,); that of the empty one at the
        end.
        """
        last = self.game.horizon - 1
        found = self._sets.numbers(self._room[np.minimum(t, last)] - spent)
        return np.where(t <= last, found, len(self._sets) - 1)

    # -- numbered situations

    @cached_property
    def _sizes(self) -> Ints:
        """(M,) how many totals a box has room for."""
        sizes: Ints = self._hi.max(axis=0) + 1
        if math.prod(sizes.tolist()) * (self.game.horizon + 2) >= LARGEST:
            boxes = " x ".join(f"{n:,}" for n in sizes.tolist())
            rule = "cannot be numbered; `product`, `turn`, `repair` and `start` need no numbers"
            raise TooLarge(f"{self.game.horizon:,} steps with {boxes} totals {rule}")
        return sizes

    @cached_property
    def first(self) -> Ints:
        """The situations of time t have the numbers first[t] : first[t+1], (H+2,); H is the end."""
        return sealed(np.arange(self.game.horizon + 2) * math.prod(self._sizes.tolist()))

    def _find(self, t: Ints, state: Ints, spent: Ints) -> Ints:
        times = np.broadcast_to(t, (len(state),))
        known = (times >= 0) & (times <= self.game.horizon) & (state == 0)
        times = np.where(known, times, 0)
        known &= self._within(times, spent)
        cell = np.zeros(len(state), dtype=np.int64)
        for m, size in enumerate(self._sizes.tolist()):
            cell = cell * size + np.where(known, spent[:, m], 0)
        return np.where(known, self.first[times] + cell, -1)

    def _situations(self, number: Ints) -> tuple[Ints, Ints, Ints]:
        known = (number >= 0) & (number < self.first[-1])
        t, cell = np.divmod(np.where(known, number, 0), self.first[1])
        spent = np.zeros((len(number), len(self._sizes)), dtype=np.int64)
        for m in range(len(self._sizes) - 1, -1, -1):
            cell, spent[:, m] = np.divmod(cell, self._sizes[m])
        known &= self._within(t, spent)
        return np.where(known, t, -1), np.zeros(len(number), dtype=np.int64), spent * known[:, None]

    @property
    def mask_of(self) -> Any:
        """Where `masks`, `turns`, `products`, `repairs` hold a number: `masks[mask_of[pairs]]`."""
        return _MaskOf(self)

    def __str__(self) -> str:
        return f"Shield of priced actions: {counted(len(self._sets.actions), 'joint action')}.\n{self.game}"

    def __repr__(self) -> str:
        return f"<Shield of {len(self._sets.actions):,} priced joint actions, of {self.game!r}>"


class _MaskOf:
    """The numbers of masks, found when they are asked for."""

    def __init__(self, shield: ActionShield) -> None:
        self._shield = shield

    def __len__(self) -> int:
        return int(self._shield.first[-1])

    def __getitem__(self, pairs: Any) -> Any:
        numbers = np.asarray(pairs)
        t, _, spent = self._shield._situations(numbers.reshape(-1).astype(np.int64))
        found = np.where(t >= 0, self._shield._set_at(t, spent), len(self._shield._sets) - 1)
        return found.reshape(numbers.shape)[()]


def _rooms(whole: Lattice, least: Ints) -> Ints:
    """Return the largest totals after acting at each time with which play can go on, (H, M)."""
    steps = np.arange(len(whole.budget))[:, None]
    later = whole.budget + 0 - steps * least  # in terms of the first step
    return np.asarray(np.minimum.accumulate(later[::-1], axis=0)[::-1] + steps * least)
