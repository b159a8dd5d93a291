"""Cumulative costs as integers: units of one over the common denominator of the costs.

A sum of costs is a whole number of units, and it keeps a budget B exactly when it is at most
floor(B / unit).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np

from acegames.model.game import Layer, MarkovGame, exact_costs
from acegames.model.layers import with_fields
from acegames.model.numbers import Bound, common_denominator, plain
from acegames.verifier.basics import (
    BELOW,
    LIMITS,
    Bools,
    Bytes,
    Ints,
    KeyTable,
    Small,
    TimeRules,
    WindowScratch,
    number_pairs,
    offsets,
    owners,
    padded_zeros,
    spans,
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
        total = spent + cost
        total[:, self.stored] = np.maximum(total[:, self.stored], 0)
        return total

    def keeps(self, spent: Ints, t: int) -> Bools:
        """Return whether each row of `spent` (L, M) keeps the budgets after acting at time t."""
        fine: Bools = np.all(spent <= self.bounds[t], axis=1)
        return fine

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

    With `over_all`, the least over rows, whoever has spent no more cannot break a budget. `cut`
    holds bounds on the ceilings of each time, (S, M).
    """

    def __init__(
        self, game: MarkovGame, units: ExactUnits, *, over_all: bool = False, cut: list[Ints] | None = None
    ) -> None:
        self._game, self._units, self._over_all = game, units, over_all
        shape = game.horizon + 1, len(game.states), len(game.constraints)
        self.at: Ints = np.full(shape, units.beyond, dtype=units.dtype)  # (H+1, S, M)
        for t in reversed(range(game.horizon)):
            self._find(t, self.at[t])
            if cut is not None:  # however low that is: differences must stay within 64 bits
                self.at[t] = np.minimum(self.at[t], np.maximum(cut[t], -units.beyond - 1))

    def rows(self, t: int) -> Ints:
        """Return the most that may have been spent before each row at time t, (R, M)."""
        return self._find(t, np.empty_like(self.at[t]))

    def _find(self, t: int, here: Ints) -> Ints:
        """Write the ceilings of states, as low as can be for those that cannot act; return rows."""
        from acegames.verifier.pair_kernels import ceilings

        units, layer = self._units, self._game.layer_at[t]
        rows: Ints = np.empty((len(self._game.layers[layer].reward), here.shape[1]), dtype=units.dtype)
        run: Any = ceilings if units.small else getattr(ceilings, "py_func", ceilings)
        inputs = units.costs[layer], units.bounds[t], self.at[t + 1], units.stored, units.beyond, self._over_all
        run(*units.steps[layer], *inputs, rows, here)
        return rows


# -- pairs as 64-bit keys -------------------------------------------------------------------------
# Pairs (state, spent) as single 64-bit numbers, for the compiled passes.
#
# An outcome adds the same to every key, also where that is more than fits into a reservoir (spec
# 11):
# then it leads to a key of less than nothing missing, which stands for the one of nothing missing.
# `canonical` replaces such keys, and `with_aliases` gives them what is known of the one they
# stand for.


class AllTimes(NamedTuple):
    """All times as one: states, rows, outcomes and keys are numbered through, time after time."""

    layer: Layer  # without costs
    cost: Ints  # (K, M) in units
    rows: Ints  # (H+1,) the first row of each time
    time: TimeRules  # bounds are 0, and taken off what rows need

    @property
    def ends(self) -> int:
        """The first row after which nothing follows."""
        return int(self.rows[-2])


@dataclass(frozen=True, eq=False)
class PairKeys:
    """How pairs become keys: totals that keep the budgets lie in `low` to `low + size - 1`."""

    game: MarkovGame
    units: ExactUnits
    low: Ints  # (M,)
    size: Ints  # (M,)
    ceilings: Ceilings
    costs: list[Ints]  # (K, M) in units, of each distinct layer; no charge is larger than what it fills
    unrolled: Unrolled | None = None  # what `game` stands for, if it is not the game itself

    @staticmethod
    def of(game: MarkovGame, units: ExactUnits, unrolled: Unrolled | None = None) -> PairKeys:
        """Find the range of totals.

        A game is unrolled if its pairs do not fit into 64 bits, or too many keys can stand for one.
        """
        if units.small:
            ceilings, costs = Ceilings(game, units), _charges_cut(units)
            ranges = _ranges(game, units, costs, ceilings)
            low, size = [least for least, _ in ranges], [most - least + 1 for least, most in ranges]
            below = [-low[m] if m in units.stored and low[m] < 0 else 0 for m in range(len(low))]
            with_aliases = len(game.states) * math.prod(n + 1 if n else own for n, own in zip(below, size, strict=True))
            few = not any(below) or with_aliases < LIMITS.aliases
            if few and len(game.states) * math.prod(size) < BELOW:
                arrays = (np.array(low, dtype=np.int64), np.array(size, dtype=np.int64))
                return PairKeys(game, units, *arrays, ceilings, costs, unrolled)
        listed = unroll(game, units)
        return PairKeys.of(listed.game, ExactUnits(listed.game), listed)

    @cached_property
    def span(self) -> int:
        """Number of keys of one state."""
        return math.prod(self.size.tolist())

    @cached_property
    def keys(self) -> int:
        """Number of keys of all states."""
        return len(self.game.states) * self.span

    @cached_property
    def start(self) -> Ints:
        """The initial pairs."""
        states = np.array([s for s, _ in self.game.initial], dtype=np.int64)
        return states * self.span + self._steps(self.units.start[None, :] - self.low)

    @cached_property
    def aliased(self) -> list[tuple[int, int, int]]:
        """Of each reservoir that may overflow: how far apart its keys are, how many, and how many
        of less than nothing missing.
        """
        low, size = self.low.tolist(), self.size.tolist()
        return [(math.prod(size[m + 1 :]), size[m], -low[m]) for m in self.units.stored.tolist() if low[m] < 0]

    @cached_property
    def alias_reach(self) -> int:
        """How far the key that a key stands for can be above it, at most."""
        return sum(apart * below for apart, _, below in self.aliased)

    def canonical(self, keys: Ints) -> Ints:
        """Return the keys that these stand for, in order; they themselves if they are canonical."""
        for apart, size, below in self.aliased:
            keys = keys + apart * np.maximum(below - keys // apart % size, 0)
        return np.unique(keys) if self.aliased else keys

    def with_aliases(self, keys: Ints) -> tuple[Ints, Ints | None]:
        """Return these keys with all that stand for one of them, and the number of that one.

        None where each stands for itself only.
        """
        if not self.aliased:
            return keys, None
        number = np.arange(len(keys))
        for apart, size, below in self.aliased:
            full = np.flatnonzero(keys // apart % size == below)
            more = keys[full, None] - apart * np.arange(1, below + 1)
            keys = np.concatenate([keys, more.reshape(-1)])
            number = np.concatenate([number, np.repeat(number[full], below)])
        return keys, number

    def unpack(self, t: int, keys: Ints) -> tuple[Ints, Ints]:
        """Return states (P,) and what was spent (P, M), of the game as it was given."""
        from acegames.verifier.pair_kernels import unpack

        state, spent = np.empty(len(keys), dtype=np.int64), np.empty((len(keys), len(self.low)), dtype=np.int64)
        unpack(keys, self.low, self.size, state, spent)
        if self.unrolled is None:
            return state, spent
        return self.unrolled.state[t][state], self.unrolled.spent[t][state]

    def pair(self, t: int, keys: Ints, p: int) -> tuple[int, Spent]:
        """Return one of these pairs."""
        state, spent = self.unpack(t, keys[p : p + 1])
        return int(state[0]), tuple(spent[0].tolist())

    def shift(self, t: int, keys: Ints) -> Ints | None:
        """Return how far the rows of each pair are from those of the game as it was given, (P,)."""
        if self.unrolled is None:
            return None
        first = self.game.layer(t).row_ptr[keys // self.span]
        return first - self.unrolled.row[t][first]

    def time(self, t: int) -> TimeRules:
        """Return what can happen at time t, without the numbers."""
        rules = self._times.get(t)
        if rules is None:
            rules = self._time(t)
            if len(rules.worst) * self.game.horizon <= LIMITS.kept_rows:
                self._times[t] = rules
        return rules

    @cached_property
    def _times(self) -> dict[int, TimeRules]:
        return {}

    def _time(self, t: int) -> TimeRules:
        bound, last = self.units.bounds[t], t == self.game.horizon - 1
        rules = (*self._rules[self.game.layer_at[t]], bound - self.ceilings.rows(t), bound)
        return TimeRules(*rules, np.int64(self.span), self.low, self.size, last)

    def row_ptr(self, t: int) -> Ints:
        """Return where the rows of each state begin at time t, (S+1,)."""
        return self._rules[self.game.layer_at[t]][0]

    def jumps(self, layer: int) -> Ints:
        """Return how far each outcome of a layer moves a key, (K,)."""
        return self._rules[layer][2]

    @cached_property
    def _rules(self) -> list[tuple[Ints, Ints, Ints]]:
        """row_ptr, out_ptr and jump of each distinct layer."""
        return [
            (row_ptr, out_ptr, next_state * np.int64(self.span) + self._steps(cost))
            for (row_ptr, out_ptr, next_state), cost in zip(self.units.steps, self.costs, strict=True)
        ]

    @cached_property
    def joined(self) -> AllTimes | None:
        """All times as one; None where that would be large."""
        layers, times = [self.game.layer(t) for t in range(self.game.horizon)], range(self.game.horizon)
        rows, outs = (offsets(np.array([len(getattr(x, name)) for x in layers])) for name in ("reward", "prob"))
        large = self.keys * len(layers) > LIMITS.joined_keys or rows[-1] > LIMITS.joined_rows
        if large or self.aliased or self.unrolled is not None:
            return None
        layer = Layer(
            np.concatenate([*(x.row_ptr[:-1] + r for x, r in zip(layers, rows, strict=False)), rows[-1:]]),
            np.concatenate([x.action for x in layers]),
            np.concatenate([x.reward for x in layers]),
            np.concatenate([*(x.out_ptr[:-1] + k for x, k in zip(layers, outs, strict=False)), outs[-1:]]),
            np.concatenate([x.prob for x in layers]),
            np.concatenate([x.next_state for x in layers]),
            np.zeros((0, 0), dtype=np.int64),
        )
        time = TimeRules(
            layer.row_ptr,
            layer.out_ptr,
            np.concatenate([self._rules[self.game.layer_at[t]][2] + (t + 1) * self.keys for t in times]),
            np.concatenate([-self.ceilings.rows(t) for t in times]),
            np.zeros_like(self.low),
            np.int64(self.span),
            self.low,
            self.size,
            False,
        )
        return AllTimes(layer, np.concatenate([self.costs[at] for at in self.game.layer_at]), rows, time)

    def slots(self) -> KeyTable:
        """Return an empty table with a slot for every key of all times."""
        number = np.full(self.keys * self.game.horizon, -1, dtype=np.int32)
        return KeyTable(np.full(0, -1, dtype=np.int64), number, np.int64(0))

    def targets(self) -> Ints:
        """Return room for where the outcomes of one row lead."""
        return padded_zeros(self._widest)

    @cached_property
    def _widest(self) -> int:
        return max(int(np.diff(layer.out_ptr).max()) for layer in self.game.layers)

    @cached_property
    def rows(self) -> int:
        """The most rows of a state."""
        return max(int(np.diff(layer.row_ptr).max()) for layer in self.game.layers)

    def by_line(self, pairs: int) -> bool:
        """Return whether so many pairs of one time are dense enough for `window_kernels`."""
        return self.dense(pairs, self.keys)

    def dense(self, pairs: int, keys: int) -> bool:
        """Return whether that many pairs are, among so many keys."""
        long = len(self.size) > 0 and int(self.size[-1]) >= LIMITS.long_line
        return long and keys <= max(min(LIMITS.keys_per_pair, LIMITS.dense) * pairs, LIMITS.few_keys)

    def marks(self, keys: Ints | None = None) -> Bytes:
        """Return a byte for every key, and room for a window behind: 1 for these keys, else 0.

        Keys that stand for one of these have 1, too.
        """
        from acegames.verifier.window_kernels import LANES

        marks = np.zeros(self.keys + LANES, dtype=np.uint8)
        if keys is not None:
            marks[self.with_aliases(keys)[0]] = 1
        return marks

    def lanes(self) -> WindowScratch:
        """Return room for one window of `window_kernels`, that of this thread."""
        me = get_ident()
        if me not in self._rooms:
            self._rooms[me] = self._lanes()
        return self._rooms[me]

    @cached_property
    def _rooms(self) -> dict[int, WindowScratch]:
        return {}

    def _lanes(self) -> WindowScratch:
        from acegames.verifier.window_kernels import LANES

        n, most = len(self.game.players), max(map(len, self.game.actions))
        return WindowScratch(
            np.zeros((self.rows, 5 * n, LANES)),
            padded_zeros(self.rows, dtype=np.uint8),
            padded_zeros(max(2, self.rows), LANES, dtype=np.uint8),
            padded_zeros(LANES),
            padded_zeros(len(self.size)),
            padded_zeros(n, LANES, dtype=np.float64),
            padded_zeros(4 * LANES, dtype=np.float64),
            padded_zeros(1, most + 1, 2, dtype=np.float64),
            padded_zeros(most),
            np.zeros((self.rows, len(self.size) + len(self.units.stored), LANES), dtype=np.int64),
        )

    def order_by_line(self, keys: Ints, pairs: Ints) -> Ints:
        """Return the order in which `window_kernels` go through the pairs of these numbers."""
        from acegames.verifier.window_kernels import order_by_line

        if len(self.size) < 2:
            return np.arange(len(pairs))
        order, length = np.empty(len(pairs), dtype=np.int64), int(self.size[-1])
        if self.span // length > LIMITS.lines_per_pair * len(pairs):  # of a block, which has few of them
            return np.argsort(keys[pairs] % self.span // length, kind="stable")
        order_by_line(keys, pairs, self.span, length, np.zeros(self.span // length + 1, dtype=np.int64), order)
        return order

    def _steps(self, amounts: Ints) -> Ints:
        """Return how far amounts (K, M) move a key."""
        steps = np.zeros(len(amounts), dtype=np.int64)
        for m in range(len(self.size)):
            steps = steps * self.size[m] + amounts[:, m]
        return steps

    def hashed(self, expected: int) -> bool:
        """Return whether a table with room for so many keys is hashed."""
        return self.keys > LIMITS.dense * max(expected, 64)

    def table(self, expected: int) -> KeyTable:
        """Return an empty table with room for so many keys."""
        if not self.hashed(expected):
            return KeyTable(np.full(0, -1, dtype=np.int64), np.full(self.keys, -1, dtype=np.int32), np.int64(0))
        bits = max(2 * expected, 2).bit_length()
        slots = np.full(1 << bits, -1, dtype=np.int64)
        return KeyTable(slots, np.full(1 << bits, -1, dtype=np.int32), np.int64(64 - bits))

    def filled(self, keys: Ints, numbers: Ints | None = None) -> KeyTable:
        """Return a table of these keys, each once, with these numbers, or else in order.

        Keys that stand for one of these have its number.
        """
        from acegames.verifier.pair_kernels import fill

        every, which = self.with_aliases(keys)
        table = self.table(len(every))
        if numbers is None:
            numbers = np.arange(len(keys))
        fill(every, numbers if which is None else numbers[which], table)
        return table


def _charges_cut(units: ExactUnits) -> list[Ints]:
    """Return the costs, with no charge larger than what can be missing while budgets are kept."""
    most = np.max([units.start, *units.bounds], axis=0)[units.stored]
    cut = []
    for cost in units.costs:
        cut.append(cost.copy())
        cut[-1][:, units.stored] = np.maximum(cost[:, units.stored], -most)
    return cut


def _ranges(game: MarkovGame, units: ExactUnits, costs: list[Ints], ceilings: Ceilings) -> list[tuple[int, int]]:
    """Return the least and the largest totals while the budgets were, and can be, kept."""
    spread = [(cost.min(axis=0).tolist(), cost.max(axis=0).tolist()) for cost in costs]
    bounds = np.minimum(units.bounds, ceilings.at[1:].max(axis=1)).tolist()
    ranges = []
    for m, start in enumerate(units.start.tolist()):
        least = most = lowest = highest = start
        stored = m in units.stored
        for at, bound in zip(game.layer_at, bounds, strict=True):
            down, up = spread[at]
            least, most = least + down[m], most + up[m]
            lowest = min(lowest, least)  # also where that is canonical
            least = max(least, 0) if stored else least
            most = max(least, min(most, bound[m]))
            highest = max(highest, most)
        ranges.append((lowest, highest))
    return ranges


# -- games whose pairs do not fit -----------------------------------------------------------------
# A game whose pairs cannot be numbered well, made one whose states are its pairs.
#
# Each pair (state, spent) that play can reach while every budget is kept is a state, with the
# rows of
# its old state. A row that breaks a budget costs 1, and nothing may be spent. So it can be judged
# as
# any other game, and `state`, `spent` and `row` lead back.


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
