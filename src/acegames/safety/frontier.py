"""Which budgets are feasible: the Pareto frontier of minimal budgets of every (t, state) (spec 2).

    N_H(s) = {nothing needed}
    N_t(s) = minimal elements of
             U_a { join over outcomes (c', s') of (x + c', at least c' - D_t), x in N_{t+1}(s') }

where D_t = B_t - B_ref shifts a schedule against its last finite entry B_ref, and an infinite B_t
asks for nothing. The join takes one x per outcome and the component-wise maximum; every combination
counts.

A reservoir (spec 11) needs two numbers: play that starts at c uses up to max(c + x, y) of it, where
x is as above and y is used once it was full: y_t = max over outcomes of (x', y', at least -D_t).
The y of all reservoirs follow the x as further columns. B_ref is the capacity, which must be at
least y; what is left at the beginning must be at least x.

A larger budget is never worse, so the minimal elements say everything. With one constraint there is
one number per (t, s): O(H S A K). With two or more the antichains can grow without bound (deciding
feasibility is NP-hard), so their size is limited.

The error for an infeasible game names these budgets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.approximate.rounding import Rounding, RoundingOptions
from acegames.errors import Infeasible, TooLarge, UnknownPair
from acegames.model.arrays import Bools, Ints, look_up, owners
from acegames.model.budgets import has_schedule
from acegames.model.game import Label, Layer, MarkovGame, exact_costs, place, reachable_states
from acegames.model.numbers import LARGEST, Bound, common_unit, plain, plain_array
from acegames.model.user_functions import public
from acegames.model.words import number_beside, to_digits
from acegames.system.progress import OnProgress, ProgressReporter

Antichain = Ints  # (k, M + R): what is needed, then what each of the R reservoirs must hold
NOTHING = np.int64(-LARGEST)
"""Stands for minus infinity: no budget is needed."""
MOST_ELEMENTS = 50_000
FINDING = "finding minimal budgets"  # the step that progress is told of


@dataclass(frozen=True, eq=False)
class _Needs:
    """The antichain of every state of one time: one element for most, `chains` for the others."""

    single: Ints  # (S, M + R)
    chains: dict[int, Antichain]
    reached: Bools  # (S,)

    def of(self, state: int) -> Antichain:
        return self.chains.get(state, self.single[state : state + 1])


def _step_back(
    table: Layer,
    cost: Ints,
    at_least: Ints,
    stored: Sequence[int],
    after: _Needs,
    reached: Bools,
    teller: ProgressReporter,
) -> _Needs:
    """Take a step of the recursion: by arrays where one element is minimal, else by state."""
    need = np.maximum(at_least, _shift(after.single[table.next_state], cost, stored))
    joined = np.maximum.reduceat(need, table.out_ptr[:-1], axis=0)  # (rows, M + R)
    acting = np.flatnonzero(np.diff(table.row_ptr))
    single = np.full_like(after.single, NOTHING)
    single[acting] = np.minimum.reduceat(joined, table.row_ptr[acting], axis=0)
    owner = owners(table.row_ptr)
    plural = np.logical_or.reduceat(np.isin(table.next_state, list(after.chains)), table.out_ptr[:-1])  # (R,)
    attained = (joined == single[owner]).all(axis=1) & ~plural
    settled = np.zeros(len(single), dtype=bool)
    settled[owner[attained]] = True
    settled[owner[plural]] = False
    chains = {}
    sure = plural & (np.diff(table.out_ptr) == 1)  # rows with one outcome, which need no join
    for s in map(int, np.flatnonzero(reached & ~settled)):
        rows = np.arange(table.row_ptr[s], table.row_ptr[s + 1])
        choices = [joined[rows[~plural[rows]]]]
        outs = table.out_ptr[rows[sure[rows]]]
        if len(outs):
            needs = [after.of(nxt) for nxt in table.next_state[outs].tolist()]
            each = np.repeat(outs, list(map(len, needs)))
            choices.append(np.maximum(at_least[each], _shift(np.concatenate(needs), cost[each], stored)))
        for r in rows[plural[rows] & ~sure[rows]].tolist():
            here = table.outcomes(r)
            join = at_least[here].max(axis=0, keepdims=True)
            for nxt, c in zip(table.next_state[here].tolist(), cost[here], strict=True):
                join = _join(join, _shift(after.of(nxt), c, stored))
            choices.append(join)
        minimal = minimal_elements(np.concatenate(choices))
        if len(minimal) == 1:
            single[s] = minimal[0]
        else:
            chains[s] = minimal
        teller.pair()
    teller.layer(int((reached & settled).sum()))
    return _Needs(single, chains, reached)


class Frontier:
    """Minimal budgets of every (t, state) that can occur.

    `reference` holds the last finite entry of each budget (0 if there is none) or the capacity of a
    reservoir; a minimal budget replaces that entry. A reservoir that starts full starts full with
    any capacity, another one at its level, or full where less fits. Every minimal budget is a whole
    multiple of `units`. The `progress` callback counts the states of each time.
    """

    @public(memory=("the minimal budgets", "fewer constraints or coarser costs have fewer of them"))
    def __init__(self, game: MarkovGame, progress: OnProgress | None = None) -> None:
        self._game = game
        columns = list(zip(*game.budgets, strict=True))
        self.reference = [
            last_finite(column) if reservoir is None else reservoir.capacity
            for column, reservoir in zip(columns, game.reservoirs, strict=True)
        ]
        self._stored = stored = [m for m, reservoir in enumerate(game.reservoirs) if reservoir is not None]
        self.units: list[Fraction] = []
        costs: list[Ints] = []  # whole units of each cost code
        shift = np.zeros((game.horizon, len(columns)), dtype=np.int64)  # D_t
        for m, (values, column) in enumerate(zip(exact_costs(game), columns, strict=True)):
            shifts = [b - self.reference[m] if isinstance(b, Fraction) else Fraction(0) for b in column]
            unit = common_unit([*values, *shifts])
            whole, whole_shift = ([int(x / unit) for x in numbers] for numbers in (values, shifts))
            extent = game.horizon * max(map(abs, whole)) + max(map(abs, whole_shift))
            if extent >= LARGEST:
                raise TooLarge(
                    f"constraint {game.constraints[m]!r}: costs and budgets together are multiples of {to_digits(unit)}, and "
                    f"{to_digits(extent)} of that do not fit into 64-bit integers; solve approximately (epsilon=..., --epsilon)"
                )
            self.units.append(unit)
            costs.append(np.array(whole, dtype=np.int64))
            shift[:, m] = whole_shift
        bounded = np.array([[isinstance(b, Fraction) for b in row] for row in game.budgets], dtype=bool)
        reach = reachable_states(game)
        teller = ProgressReporter(progress, FINDING, game.horizon, sum(int(x.sum()) for x in reach[:-1]))
        needs = [_Needs(np.full((len(game.states), len(columns) + len(stored)), NOTHING), {}, reach[-1])]
        for t in reversed(range(game.horizon)):
            table = game.layer(t)
            cost = look_up(costs, table.cost)
            at_least = np.where(bounded[t], cost - shift[t], NOTHING)
            held = np.broadcast_to(-shift[t, stored], (len(cost), len(stored)))
            needs.append(_step_back(table, cost, np.hstack([at_least, held]), stored, needs[-1], reach[t], teller))
        self._need = needs[::-1]

    def at_root(self) -> list[tuple[Bound, ...]]:
        """Return minimal budgets that are enough for every initial state; inf without bounds."""
        need = np.full((1, len(self.units) + len(self._stored)), NOTHING)
        for s, _ in self._game.initial:
            need = _join(need, self._need[0].of(s))
        for k, m in enumerate(self._stored, len(self.units)):
            reservoir = self._game.reservoirs[m]
            assert reservoir is not None
            if reservoir.missing:  # no capacity helps where more than the level at the beginning is needed
                need = need[need[:, m] <= int(reservoir.start / self.units[m])]
            need[:, m] = np.maximum(need[:, m], need[:, k])
        return self._budgets(minimal_elements(need[:, : len(self.units)]), math.inf)

    def at(self, t: int, state: int) -> list[tuple[Bound, ...]]:
        """Return minimal remaining budgets before acting in `state` at `t`; -inf without bounds.

        Of a reservoir with its own capacity: the level. UnknownPair if the state cannot occur then.
        """
        if not self._need[t].reached[state]:
            raise UnknownPair(f"{place(t, self._game.states[state])}: this state cannot occur at this time")
        need = self._need[t].of(state)
        for k, m in enumerate(self._stored, len(self.units)):
            need = need[need[:, k] <= int(self.reference[m] / self.units[m])]
        return self._budgets(minimal_elements(need[:, : len(self.units)]), -math.inf)

    def _budgets(self, need: Antichain, nothing: float) -> list[tuple[Bound, ...]]:
        order = np.lexsort(need.T[::-1]) if need.shape[1] else np.arange(len(need))
        return [
            tuple(nothing if x == NOTHING else int(x) * u for x, u in zip(row, self.units, strict=True))
            for row in need[order].tolist()
        ]


def last_finite(column: tuple[Bound, ...]) -> Fraction:
    """Return the last finite entry of a schedule."""
    return next((b for b in reversed(column) if isinstance(b, Fraction)), Fraction(0))


def _shift(need: Antichain, cost: Ints, stored: Sequence[int]) -> Antichain:
    """Return what is needed before a cost, (..., M + R); of a full reservoir, after it."""
    width = cost.shape[-1]
    own, held = need[..., :width], need[..., width:]
    before = np.where(own == NOTHING, NOTHING, own + cost)
    return np.concatenate([before, np.maximum(held, own[..., stored])], axis=-1)


def _join(left: Antichain, right: Antichain) -> Antichain:
    if len(left) * len(right) > MOST_ELEMENTS * 100:
        raise TooLarge(
            f"the frontier of minimal budgets has too many elements ({len(left)} x {len(right)} to combine); fewer constraints "
            "or coarser costs would help. Whether the game's own budget is feasible can still be decided"
        )
    both = np.maximum(left[:, None, :], right[None, :, :])
    return minimal_elements(both.reshape(len(left) * len(right), left.shape[1]))


def minimal_elements(points: NDArray[Any]) -> NDArray[Any]:
    """Return the minimal elements, each once, in lexicographic order."""
    if len(points) <= 1 or points.shape[1] == 0:
        return points[:1]
    if points.shape[1] == 1:
        return np.minimum.reduce(points, axis=0, keepdims=True)
    points = points[np.lexsort(points.T[::-1])]
    if points.shape[1] == 2:  # sorted by the first: keep what is lower in the second than everything before
        lower = points[1:, 1] < np.minimum.accumulate(points[:, 1])[:-1]
        stairs: NDArray[Any] = points[np.append(True, lower)]
        return stairs
    minimal: list[Ints] = []
    while len(points):  # the first in lexicographic order is minimal; drop all that it beats
        minimal.append(points[0])
        points = points[~(points >= points[0]).all(axis=1)]
        if len(minimal) > MOST_ELEMENTS:
            raise TooLarge(f"the frontier of minimal budgets has more than {MOST_ELEMENTS} elements")
    return np.array(minimal)


# -- the error for infeasible games ---------------------------------------------------------------


def infeasible(game: MarkovGame, how: str = "") -> Infeasible:
    """Return the error for a game without a feasible policy; `how` says how costs were counted."""
    verdict = "no policy keeps every budget with probability one" + (f", {how}" if how else "")
    try:
        frontier = Frontier(game)
        minimal = plain_array(frontier.at_root(), len(game.constraints))
    except (TooLarge, OverflowError) as error:
        return Infeasible(f"{verdict} (which budgets would suffice is unknown: {error})")
    if not len(minimal):
        stored = [
            c
            for c, reservoir in zip(game.constraints, game.reservoirs, strict=True)
            if reservoir is not None and reservoir.missing
        ]
        return Infeasible(
            f"{verdict}. No capacity suffices: {_some(stored)} must start at a higher level", minimal, game.constraints
        )
    shown = [
        ", ".join(
            f"{c!r}: {'capacity ' * (reservoir is not None)}{number_beside(b, plain(own))}"
            for c, reservoir, b, own in zip(game.constraints, game.reservoirs, row, frontier.reference, strict=True)
        )
        for row in minimal[:3].tolist()
    ]
    more = f"; and {len(minimal) - 3} more" if len(minimal) > 3 else ""
    last = (
        " (the last finite entry of the schedule, with the other entries raised or lowered by the same amount)"
        if has_schedule(game)
        else ""
    )
    return Infeasible(
        f"{verdict}. Minimal budgets that suffice{last}{', with costs so rounded' if how else ''}: {'; or '.join(shown)}{more}",
        minimal,
        game.constraints,
    )


def _some(labels: list[Label]) -> str:
    """Name constraints of which one, or several, are meant."""
    together = ["", "", " or both"][len(labels)] if len(labels) < 3 else " or several of them"
    return " or ".join(map(repr, labels)) + together


def infeasible_as_counted(game: MarkovGame, within: RoundingOptions) -> Infeasible:
    """Return the error for a game whose costs may be rounded.

    The budgets that suffice come from costs rounded for every budget: the rounding for the game's
    own leaves out what cannot break that one, but might break a smaller one.
    """
    rules = within.count(game).rounding
    if not rules:
        return infeasible(game)
    try:
        again = within.rounded(game, any_budget=True)
        assert again is not None
        return infeasible(again.game, _how(again.rounding))
    except TooLarge:
        return Infeasible(
            f"no policy keeps every budget with probability one, {_how(rules)} (which budgets would suffice is unknown)"
        )


def _how(rules: tuple[Rounding | None, ...]) -> str:
    """Say what an infeasible verdict means where costs are rounded."""
    if any(r is not None and r.direction == "up" for r in rules):
        return "with costs rounded up (with the true costs the game may still be feasible: try a smaller epsilon, or rounding='down')"
    if any(r is not None and r.direction == "down" for r in rules):
        return "even with costs rounded down, so none does with the true costs"
    return ""
