"""The budgets of a curve: as the user asks for them, in units between which nothing changes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from acegames.errors import InvalidOption
from acegames.model.arrays import Ints
from acegames.model.budgets import Reservoir, Reservoirs, own_names
from acegames.model.checks import check_known, read_at
from acegames.model.game import Label, MarkovGame, exact_costs
from acegames.model.numbers import Bound, exact_or_inf, is_scalar
from acegames.safety.frontier import Frontier, infeasible, minimal_elements

Budget = tuple[Bound, ...]


class Scale:
    """Budgets of a game in units between which nothing changes; an unbounded one stays at zero.

    The budget of a reservoir is its capacity b. Play from the level L keeps the reserve r after
    costs with the sum S, and the largest sum R of the last few of them, when S <= L - r and
    R <= b - r. Only costs and reserves count in the unit, and L may be cut to whole units too.
    """

    def __init__(self, game: MarkovGame, frontier: Frontier | None = None) -> None:
        frontier = frontier or Frontier(game)
        self.game, self.units, self.reference = game, frontier.units, frontier.reference
        self.bounded = [any(isinstance(budget[m], Fraction) for budget in game.budgets) for m in range(len(self.units))]
        self.range = [self._where_it_matters(m) for m in range(len(self.units))]
        self.own: Budget = tuple(r if b else math.inf for r, b in zip(self.reference, self.bounded, strict=True))
        needs = [self.whole(budget) for budget in frontier.at_root()]
        self.needs: Ints = np.array(needs, dtype=np.int64).reshape(len(needs), len(self.units))

    def whole(self, budget: Iterable[Bound]) -> tuple[int, ...]:
        """Return a budget in whole units, rounded down and cut to where it matters."""
        return tuple(
            most if isinstance(bound, float) else max(least, min(math.floor(bound / unit), most))
            for bound, unit, (least, most) in zip(budget, self.units, self.range, strict=True)
        )

    def exactly(self, whole: Sequence[int], varied: Sequence[int]) -> Budget:
        """Return the budget of whole units; those that do not vary are the game's own, uncut."""
        budget = [w * u if b else math.inf for w, u, b in zip(whole, self.units, self.bounded, strict=True)]
        return tuple(x if m in varied else self.own[m] for m, x in enumerate(budget))

    def reservoirs(self, whole: Sequence[int]) -> Reservoirs:
        """Return reservoirs of other capacities: full where the game's are, else at its level."""
        return tuple(
            reservoir and Reservoir(w * u, min(w, reservoir.start // u) * u if reservoir.missing else w * u)
            for reservoir, w, u in zip(self.game.reservoirs, whole, self.units, strict=True)
        )

    def by_capacity(self, whole: Ints) -> list[Ints]:
        """Return the numbers of budgets (k, M) whose capacities agree, and so share one solve."""
        stored = [m for m, reservoir in enumerate(self.game.reservoirs) if reservoir is not None]
        if not stored:
            return [np.arange(len(whole))]
        _, part = np.unique(whole[:, stored], axis=0, return_inverse=True)
        return [np.flatnonzero(part.reshape(-1) == k) for k in range(part.max() + 1)]

    def minimal(self, varied: list[int]) -> Ints:
        """Return the smallest feasible budgets, (j, M), where the others keep their own."""
        held = [m for m in range(len(self.units)) if m not in varied]
        own = np.array(self.whole(self.own), dtype=np.int64)
        fitting = self.needs[(self.needs[:, held] <= own[held]).all(axis=1)]
        fitting[:, held] = own[held]
        return minimal_elements(fitting) if len(fitting) else fitting

    def default_budgets(self, varied: list[int], points: int) -> tuple[list[Budget], int]:
        """Return the budgets at which values can change, thinned, and how many there are."""
        lowest, own = self.minimal(varied), self.whole(self.own)
        lowest = lowest[(lowest <= own).all(axis=1)]
        if not len(lowest):
            raise infeasible(self.game)
        columns: list[list[Bound]] = [[x] for x in self.own]
        low, more = lowest.min(axis=0).tolist(), [x != w * u for x, w, u in zip(self.own, own, self.units, strict=True)]
        there = [own[m] - low[m] + 1 + more[m] for m in varied]  # the game's own is shown, though nothing changes there
        for m, shown in zip(varied, shares(there, points), strict=True):
            columns[m] = [x * self.units[m] for x in spread(low[m], own[m], shown - more[m])]
            columns[m] += [self.own[m]] * more[m]
        return list(itertools.product(*columns)), math.prod(there)

    def _where_it_matters(self, m: int) -> tuple[int, int]:
        """Return the budgets, in whole units, that no play keeps and that every play keeps."""
        if not self.bounded[m]:
            return 0, 0
        largest = self.game.horizon * max(map(abs, exact_costs(self.game)[m]))
        shifts = [budget[m] - self.reference[m] for budget in self.game.budgets if isinstance(budget[m], Fraction)]
        lowest, highest = (-largest - max(shifts)) / self.units[m], (largest - min(shifts)) / self.units[m]
        return math.floor(lowest) - 1, math.ceil(highest)


def spread(low: int, high: int, most: int) -> list[int]:
    """Return all whole numbers from low to high, or `most` of them, evenly, both ends included."""
    count = min(most, high - low + 1)
    return [low + (high - low) * k // max(1, count - 1) for k in range(count)]


def shares(there: Sequence[int], most: int) -> list[int]:
    """Return how many budgets to show along each axis: at most `most` in all, but 2 on each."""
    if len(there) == 1:
        return [min(there[0], most)]
    first, second = there
    shown = min(first, max(2, math.isqrt(most), most // second))
    return [shown, min(second, max(2, most // shown))]


def chosen(what: str, labels: Sequence[Label], wanted: Any, *, most: int) -> list[int]:
    """Return the numbers of the constraints that the option `what` names: one, or up to two."""
    names = [wanted] if wanted in labels or is_scalar(wanted) else list(wanted)
    check_known("constraint", names, labels, f"{what}: ")
    if not 1 <= len(set(names)) == len(names) <= most:
        rule = "one" if most == 1 else "one or two different ones"
        raise InvalidOption(f"{what}: got {wanted!r}, must be {rule} of {list(labels)!r}")
    return [labels.index(label) for label in names]


def varied_constraints(scale: Scale, constraint: Any) -> list[int]:
    """Return the constraints that vary, by number."""
    labels = scale.game.constraints
    if constraint is None and len(labels) > 2:
        raise InvalidOption(f"constraint: name one or two of {list(labels)!r}, or give `budgets`")
    varied = chosen("constraint", labels, list(labels) if constraint is None else constraint, most=2)
    for m in varied:
        if not scale.bounded[m]:
            raise InvalidOption(f"constraint: {labels[m]!r} has no finite budget that could vary")
    return sorted(varied)


def given_budgets(scale: Scale, constraint: Any, budgets: Any) -> tuple[list[int], list[Budget]]:
    """Read `budgets` as the user gives them: the constraints that vary, and exact budgets."""
    labels = scale.game.constraints
    own = own_names(labels)
    entries = [budgets] if is_scalar(budgets) else list(budgets)
    if entries and all(isinstance(entry, Mapping) for entry in entries):
        check_known("constraint", itertools.chain(*entries), labels, "budgets: ")
        named = set() if constraint is None else {labels[m] for m in varied_constraints(scale, constraint)}
        varied = [m for m, label in enumerate(labels) if label in named.union(*entries)]
        return varied, [_budget(scale, k, {labels.index(c): x for c, x in e.items()}) for k, e in enumerate(entries)]
    single = bool(entries) and all(map(is_scalar, entries))
    if single and constraint is None and len(own) == 1:
        constraint = own[0]
    if single or constraint is not None:
        varied = varied_constraints(scale, constraint)
    else:
        fewer = all(not is_scalar(entry) and len(entry) == len(own) for entry in entries)
        varied = [m for m, label in enumerate(labels) if label in own or not fewer]
    if not entries or (single and len(varied) > 1):
        raise InvalidOption(
            f"budgets: got {budgets!r}, must be sequences of one number per constraint {own!r}, numbers for the one constraint "
            "that varies, or {constraint: number}"
        )
    read = []
    for k, entry in enumerate(entries):
        numbers = [entry] if single else list(entry) if not is_scalar(entry) else []
        of = {len(labels): list(range(len(labels))), len(varied): varied}
        if len(numbers) not in of:
            raise InvalidOption(f"budgets: entry {k} is {entry!r}, must have one number per constraint")
        read.append(_budget(scale, k, dict(zip(of[len(numbers)], numbers, strict=True))))
    other = [m for m in range(len(labels)) if any(budget[m] != scale.own[m] for budget in read)]
    return sorted({*varied, *other}), read


def _budget(scale: Scale, entry: int, entries: Mapping[int, Any]) -> Budget:
    """Return a budget from some of its entries; the game has the others."""
    budget = list(scale.own)
    for m, value in entries.items():
        what = f"budgets: entry {entry}: budget of {scale.game.constraints[m]!r}"
        budget[m] = _bound(what, value, scale.bounded[m])
    return tuple(budget)


def _bound(what: str, value: Any, bounded: bool) -> Bound:
    bound: Bound = read_at(what, exact_or_inf, value, "; must be a finite number or inf", InvalidOption)
    if not bounded and bound != math.inf:
        raise InvalidOption(f"{what}: got {value!r}, but the game's own budget is inf at all times; it must stay inf")
    return bound
