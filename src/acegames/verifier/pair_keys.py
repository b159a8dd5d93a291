"""Cumulative costs as exact integers, and pairs (state, cumulative cost) as 64-bit keys.

Costs are counted in units of one over their common denominator (`ExactUnits`). A sum of costs is a
whole number of units, and it keeps a budget B exactly when it is at most floor(B / unit). What may
have been spent at all (`Ceilings`) says how many keys there are (`PairKeys`); a game with too many
of them becomes one whose states are its pairs (`unroll`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property
from threading import get_ident
from typing import Any

import numpy as np

from acegames.model.arrays import Ints
from acegames.model.game import Layer, MarkovGame, exact_costs
from acegames.model.layers import with_fields
from acegames.model.numbers import Bound, common_denominator, plain
from acegames.system.axes import allocate, padded
from acegames.verifier.basics import (
    BELOW,
    LANES,
    LIMITS,
    Sizes,
    Small,
    TimeRules,
    WindowWorkspace,
    number_pairs,
    offsets,
    owners,
    spans,
    wasted,
)

Spent = tuple[int, ...]
"""Cumulative cost, in units, one entry per constraint."""

Number = int | float | Fraction


class ExactUnits:
    """The exact integer scale of a game's costs."""

    def __init__(self, game: MarkovGame) -> None:
        costs_of, missing = exact_costs(game), [x.capacity - x.start if x else Fraction(0) for x in game.reservoirs]
        self.scale = [common_denominator([*values, x]) for values, x in zip(costs_of, missing, strict=True)]
        values = [
            [v.numerator * (k // v.denominator) for v in costs] for costs, k in zip(costs_of, self.scale, strict=True)
        ]
        start = [int(x * k) for x, k in zip(missing, self.scale, strict=True)]
        largest = max((abs(c) for costs in values for c in costs), default=0)
        self.beyond = largest * (game.horizon + 1) + max(start, default=0)  # no total comes here
        self.small = self.beyond < BELOW
        self.dtype: type = np.int64 if self.small else object  # object: of Python ints
        self.start: Ints = np.array(start, dtype=self.dtype)  # (M,) the totals in the beginning
        # (R,) the constraints that are reservoirs: what is missing in one is never less than 0
        self.stored = np.array([m for m, x in enumerate(game.reservoirs) if x is not None], dtype=np.int64)
        # (M,) at each time: the budgets, cut to what can be spent at all
        self.bounds: list[Ints] = [
            np.array([self._cut(b, k) for b, k in zip(row, self.scale, strict=True)], dtype=self.dtype)
            for row in game.budgets
        ]
        # row_ptr, out_ptr and next_state of each distinct layer, as kernels are compiled for
        self.steps: list[tuple[Ints, Ints, Small]] = [
            (x.row_ptr.copy(), x.out_ptr.astype(np.int64), x.next_state.copy()) for x in game.layers
        ]
        self.costs: list[Ints] = []  # (K, M) of each distinct layer: the cost of each outcome
        for layer in game.layers:
            self.costs.append(np.zeros(layer.cost.shape, dtype=self.dtype))
            for m, costs in enumerate(values):
                self.costs[-1][:, m] = np.array(costs, dtype=self.dtype)[layer.cost[:, m]]
        self._plain = cache(lambda m, amount: plain(Fraction(amount, self.scale[m])))

    def user(self, spent: Spent) -> tuple[Number, ...]:
        """Return an amount in the user's units: int, float if its text is exact, else Fraction."""
        return tuple(map(self._plain, range(len(spent)), spent))

    def amounts(self, spent: Iterable[int]) -> list[Fraction]:
        """Return an amount in the user's units, as fractions."""
        return [Fraction(c, k) for c, k in zip(spent, self.scale, strict=True)]

    def add(self, spent: Ints, cost: Ints) -> Ints:
        """Return the totals (L, M) after costs."""
        total, stored = spent + cost, self.stored
        total[:, stored] += wasted(spent[:, stored], cost[:, stored])
        return total

    def _cut(self, budget: Bound, scale: int) -> int:
        whole = self.beyond if isinstance(budget, float) else budget.numerator * scale // budget.denominator
        return max(-self.beyond - 1, min(self.beyond, whole))


# -- ceilings of constraints ----------------------------------------------------------------------
# How much may have been spent if each constraint, taken alone, is still to be kept (spec 6).


class Ceilings:
    """The most that may have been spent, in units, before acting at each time and state.

        ceiling_H(s) = no end
        ceiling_t(s) = max over rows, min over outcomes (c', s') of min(B_t, ceiling_{t+1}(s')) - c'

    Whoever has spent more than that of a single constraint must break its budget later, whatever is
    played. Without this cut a budget that holds only at the end would leave every running total to
    be looked at.

    With `over_all`, the least over rows, whoever has spent no more cannot break a budget.
    """

    def __init__(self, game: MarkovGame, units: ExactUnits, *, over_all: bool = False) -> None:
        self._game, self._units, self._over_all = game, units, over_all
        shape = game.horizon + 1, len(game.states), len(game.constraints)
        self.at: Ints = np.full(shape, units.beyond, dtype=units.dtype)  # (H+1, S, M)
        for t in reversed(range(game.horizon)):
            self._find(t, self.at[t])

    def rows(self, t: int) -> Ints:
        """Return the most that may have been spent before each row at time t, (R, M)."""
        return self._find(t, np.empty_like(self.at[t]))

    def _find(self, t: int, here: Ints) -> Ints:
        """Write the ceilings of states, as low as can be for those that cannot act; return rows."""
        from acegames.verifier.pair_kernels import ceilings

        units, layer = self._units, self._game.layer_at[t]
        rows: Ints = np.empty((len(self._game.layers[layer].reward), here.shape[1]), dtype=units.dtype)
        run: Any = ceilings if units.small else ceilings.py_func  # type: ignore[attr-defined]
        inputs = units.costs[layer], units.bounds[t], self.at[t + 1], units.stored, units.beyond, self._over_all
        run(*units.steps[layer], *inputs, rows, here)
        return rows


# -- pairs as 64-bit keys -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PairKeys:
    """How pairs become keys, for the compiled loops.

        key = sum over m < M-1 of stride_m (c_m - low_m) + line * state + (c_{M-1} - low_{M-1})

    Totals that keep the budgets lie in `low` to `low + size - 1`, and `line` is the last size. So
    keys of one line differ in what was spent of the last constraint only, all states have their
    lines next to each other, and pairs of near totals have near keys, whatever their states: an
    outcome moves a key by little, and from all of the pairs between two keys play leads to pairs
    between two others.
    """

    game: MarkovGame
    units: ExactUnits
    low: Ints  # (M,)
    size: Ints  # (M,)
    ceilings: Ceilings
    costs: list[Ints]  # (K, M) in units, of each distinct layer; no charge is larger than what it fills
    unrolled: Unrolled | None = None  # what `game` stands for, if it is not the game itself
    _times: dict[int, TimeRules] = field(default_factory=dict)
    _workspaces: dict[tuple[int, int], WindowWorkspace] = field(default_factory=dict)  # of threads, by lanes

    @staticmethod
    def of(game: MarkovGame, units: ExactUnits, unrolled: Unrolled | None = None) -> PairKeys:
        """Find the range of totals; a game whose pairs do not fit into 64 bits is unrolled."""
        if units.small:
            ceilings, costs = Ceilings(game, units), _charges_cut(units)
            ranges = _ranges(game, units, costs, ceilings)
            low, size = [least for least, _ in ranges], [most - least + 1 for least, most in ranges]
            if len(game.states) * math.prod(size) < BELOW:
                arrays = (np.array(low, dtype=np.int64), np.array(size, dtype=np.int64))
                return PairKeys(game, units, *arrays, ceilings, costs, unrolled)
        listed = unroll(game, units)
        return PairKeys.of(listed.game, ExactUnits(listed.game), listed)

    @cached_property
    def line(self) -> int:
        """Keys of a line: all that may have been spent of the last constraint."""
        return int(self.size[-1]) if len(self.size) else 1

    @cached_property
    def stride(self) -> Ints:
        """How far a unit of each constraint moves a key, (M,)."""
        sizes, stride = self.size.tolist(), [1] * len(self.size)
        for m in reversed(range(len(sizes) - 1)):
            stride[m] = len(self.game.states) * self.line if m == len(sizes) - 2 else stride[m + 1] * sizes[m + 1]
        return np.array(stride, dtype=np.int64)

    @cached_property
    def keys(self) -> int:
        """Number of keys."""
        return len(self.game.states) * int(math.prod(self.size.tolist()))

    @cached_property
    def start(self) -> Ints:
        """The initial pairs, in the order of the game."""
        states = np.array([s for s, _ in self.game.initial], dtype=np.int64)
        keys: Ints = states * self.line + (self.units.start - self.low) @ self.stride
        return keys

    @cached_property
    def beyond_full(self) -> int:
        """How many keys at the beginning of a line stand for the next, that of a full reservoir.

        Windows lead there where an outcome fills the last reservoir beyond full (`subgames`); of
        other reservoirs they do not (`pair_kernels`).
        """
        stored = len(self.low) - 1 in self.units.stored
        return max(-int(self.low[-1].item()), 0) if stored else 0

    def unpack(self, t: int, keys: Ints) -> tuple[Ints, Ints]:
        """Return states (P,) and what was spent (P, M), of the game as it was given."""
        from acegames.verifier.pair_kernels import unpack

        state, spent = np.empty(len(keys), dtype=np.int64), np.empty((len(keys), len(self.low)), dtype=np.int64)
        unpack(keys, self.time(t), state, spent)
        if self.unrolled is None:
            return state, spent
        return self.unrolled.state[t][state], self.unrolled.spent[t][state]

    def shift(self, t: int, keys: Ints) -> Ints | None:
        """Return how far the rows of each pair are from those of the game as it was given, (P,)."""
        if self.unrolled is None:
            return None
        first = self.game.layer(t).row_ptr[keys // self.line % len(self.game.states)]
        return first - self.unrolled.row[t][first]

    def time(self, t: int) -> TimeRules:
        """Return what can happen at time t, without the numbers."""
        rules = self._times.get(t)
        if rules is None:
            at, last = self.game.layer_at[t], t == self.game.horizon - 1
            row_ptr, out_ptr, _ = self.units.steps[at]
            layout = self.units.stored, self.stride, self.size, self.low, np.int64(self.line), last
            rules = TimeRules(row_ptr, out_ptr, self._jumps[at], self.costs[at], self.ceilings.rows(t), *layout)
            if len(rules.ceiling) * self.game.horizon > LIMITS.kept_rows:
                self._times.clear()
            self._times[t] = rules
        return rules

    @cached_property
    def _jumps(self) -> list[Ints]:
        """How far each outcome of each distinct layer moves a key, (K,)."""
        jumps = []
        for (row_ptr, out_ptr, next_state), cost in zip(self.units.steps, self.costs, strict=True):
            state = np.repeat(owners(row_ptr), np.diff(out_ptr))
            jumps.append((next_state - state) * self.line + cost @ self.stride)
        return jumps

    @cached_property
    def reach(self) -> list[tuple[int, int]]:
        """How far outcomes of each distinct layer move keys, at the least and at the most."""
        reach, stored = [], self.units.stored
        for jump, cost in zip(self._jumps, self.costs, strict=True):
            filled = np.minimum(cost, 0)[:, stored] @ self.stride[stored]  # at most, of full reservoirs
            reach.append((int(jump.min()), int((jump - filled).max())))
        return reach

    @cached_property
    def sizes(self) -> Sizes:
        """What the room that a window needs depends on."""
        rows, outcomes = (max(int(np.diff(step[k]).max()) for step in self.units.steps) for k in (0, 1))
        actions, stored = max(map(len, self.game.actions)), len(self.units.stored)
        return Sizes(len(self.game.players), len(self.size), stored, rows, outcomes, actions)

    def workspace(self, lanes: int) -> WindowWorkspace:
        """Return room for one window of so many lanes, that of this thread."""
        own = get_ident(), lanes
        if own not in self._workspaces:
            rows = max(self.sizes.rows, 3)  # `sweep` writes three of them
            cursors = max(len(x.prob) for x in self.game.layers) if lanes == 1 else 0
            lengths = self.sizes._replace(rows=rows).lengths(lanes, cursors, LANES)
            self._workspaces[own] = allocate(WindowWorkspace, lengths, padded)
        return self._workspaces[own]

    def windows(self, pairs: int, keys: int) -> bool:
        """Return whether so many pairs among so many keys are dense enough for windows."""
        return self.line >= LIMITS.long_line and keys <= max(LIMITS.keys_per_pair * pairs, LIMITS.few_keys)


def _charges_cut(units: ExactUnits) -> list[Ints]:
    """Return the costs, with no charge larger than what can be missing while budgets are kept."""
    most = np.max([units.start, *units.bounds], axis=0)[units.stored]
    cut = []
    for cost in units.costs:
        cut.append(cost.copy())
        cut[-1][:, units.stored] = np.maximum(cost[:, units.stored], -most)
    return cut


def _ranges(game: MarkovGame, units: ExactUnits, costs: list[Ints], ceilings: Ceilings) -> list[tuple[int, int]]:
    """Return the least and the largest totals while the budgets were, and can be, kept.

    The last constraint has room for totals of which a window has lanes: a reservoir more than full.
    """
    spread = [(cost.min(axis=0).tolist(), cost.max(axis=0).tolist()) for cost in costs]
    bounds = np.minimum(units.bounds, ceilings.at[1:].max(axis=1)).tolist()
    ranges = []
    for m, start in enumerate(units.start.tolist()):
        least = most = lowest = highest = start
        stored = m in units.stored
        for at, bound in zip(game.layer_at, bounds, strict=True):
            down, up = spread[at]
            least, most = least + down[m], most + up[m]
            lowest = min(lowest, least)
            least = max(least, 0) if stored else least
            most = max(least, min(most, bound[m]))
            highest = max(highest, most)
        ranges.append((0 if stored and m + 1 < len(units.start) else lowest, highest))
    return ranges


# -- games whose pairs do not fit -----------------------------------------------------------------
# A game with more pairs than 64-bit keys becomes a game whose states are its pairs.
#
# Each pair (state, spent) that play can reach while every budget is kept is a state, with the rows
# of its old state. A row that breaks a budget costs 1, and nothing may be spent. So it can be
# judged as any other game, and `state`, `spent` and `row` lead back.


@dataclass(frozen=True, eq=False)
class Unrolled:
    """The new game, and what its states stand for; lists have one entry per time."""

    game: MarkovGame
    state: list[Ints]  # (P,)
    spent: list[Ints]  # (P, M) in the units of the old game, Python ints where int64 is too small
    row: list[Ints]  # (R,) what each row was


def unroll(game: MarkovGame, units: ExactUnits) -> Unrolled:
    """List the pairs of a game; where a time has no way to keep the budgets, only up to there."""
    ceilings = Ceilings(game, units)
    layers: list[Layer] = []
    states = [np.array([s for s, _ in game.initial], dtype=np.int64)]
    spents: list[Ints] = [np.tile(units.start, (len(game.initial), 1))]
    rows: list[Ints] = []
    for t in range(game.horizon):
        layer, state, spent = game.layer(t), states[t], spents[t]
        row, first = spans(layer.row_ptr[state], layer.row_ptr[state + 1]), offsets(np.diff(layer.row_ptr)[state])
        pair = owners(first)
        safe = (spent[pair] <= ceilings.rows(t)[row]).all(axis=1)
        out, count = spans(layer.out_ptr[row], layer.out_ptr[row + 1]), np.diff(layer.out_ptr)[row]
        on = np.repeat(safe, count)
        total = units.add(spent[np.repeat(pair, count)[on]], units.costs[game.layer_at[t]][out[on]])
        number, chosen = number_pairs(layer.next_state[out[on]].astype(np.int64), total)
        following = np.zeros(len(out), dtype=np.int32)
        following[on] = 0 if t == game.horizon - 1 else number
        rows.append(row)
        layers.append(
            Layer(
                first, layer.action[row], layer.reward[row], offsets(count), layer.prob[out], following,
                (~on).astype(np.int32)[:, None],
            )
        )  # fmt: skip
        states.append(layer.next_state[out[on]][chosen].astype(np.int64))
        spents.append(total[chosen])
        if not safe.any():
            break
    most = max(len(layer.row_ptr) for layer in layers)
    unrolled = with_fields(
        game,
        states=tuple(range(most - 1)),
        constraints=("budgets",),
        horizon=len(layers),
        initial=tuple((p, chance) for p, (_, chance) in enumerate(game.initial)),
        budgets=((Fraction(0),),) * len(layers),
        cost_values=((Fraction(0), Fraction(1)),),
        layers=tuple(replace(x, row_ptr=np.pad(x.row_ptr, (0, most - len(x.row_ptr)), "edge")) for x in layers),
        layer_at=tuple(range(len(layers))),
        reservoirs=(None,),
    )
    return Unrolled(unrolled, states, spents, rows)
