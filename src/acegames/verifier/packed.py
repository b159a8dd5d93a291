"""Pairs (state, spent) as single 64-bit numbers, for the compiled passes.

An outcome adds the same to every key, also where that is more than fits into a reservoir (spec 11):
then it leads to a key of less than nothing missing, which stands for the one of nothing missing.
`settled` replaces such keys, and `mirrored` gives them what is known of the one they stand for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from threading import get_ident
from typing import NamedTuple

import numpy as np

from acegames.model.game import Layer, MarkovGame
from acegames.verifier.arrays import BELOW, Bytes, Ints, offsets, room
from acegames.verifier.ceilings import Ceilings
from acegames.verifier.records import Lanes, Table, Time
from acegames.verifier.units import Spent, Units
from acegames.verifier.unrolled import Unrolled, unroll

_DENSE = 16
"""A table has a slot for every key where that is no more than this many slots per pair: successors
of neighbours are then neighbours, and nothing is searched for. Else it is hashed, at most half
full."""

_KEPT = 2**17
"""What can happen is worked out once if a game has at most so many rows, all times together."""

_MIRRORED = 2**22
"""Keys of less than nothing missing at most that can stand for pairs of full reservoirs, of one
time; a game with more is unrolled."""

_LONG, _FULL, _FEW = 8, 8, 2**15
"""Passes go line by line where lines have at least _LONG keys, and there are at most _FULL keys per
pair, or _FEW in all."""


_LINES = 16
"""Lines of a state per pair, up to which each line is counted to bring pairs into their order."""

_FEW_KEYS, _FEW_ROWS = 2**23, 2**19
"""Keys and rows of all times that may be numbered through, at most."""


class Joined(NamedTuple):
    """All times as one: states, rows, outcomes and keys are numbered through, time after time."""

    layer: Layer  # without costs
    cost: Ints  # (K, M) in units
    rows: Ints  # (H+1,) the first row of each time
    time: Time  # bounds are 0, and taken off what rows need

    @property
    def ends(self) -> int:
        """The first row after which nothing follows."""
        return int(self.rows[-2])


@dataclass(frozen=True, eq=False)
class Packed:
    """How pairs become keys: totals that keep the budgets lie in `low` to `low + size - 1`."""

    game: MarkovGame
    units: Units
    low: Ints  # (M,)
    size: Ints  # (M,)
    ceilings: Ceilings
    costs: list[Ints]  # (K, M) in units, of each distinct layer; no charge is larger than what it fills
    unrolled: Unrolled | None = None  # what `game` stands for, if it is not the game itself

    @staticmethod
    def of(game: MarkovGame, units: Units, unrolled: Unrolled | None = None) -> Packed:
        """Find the range of totals.

        A game is unrolled if its pairs do not fit into 64 bits, or too many keys can stand for one.
        """
        if units.small:
            ceilings, costs = Ceilings(game, units), _charges_cut(units)
            ranges = _ranges(game, units, costs, ceilings)
            low, size = [least for least, _ in ranges], [most - least + 1 for least, most in ranges]
            below = [-low[m] if m in units.stored and low[m] < 0 else 0 for m in range(len(low))]
            mirrored = len(game.states) * math.prod(n + 1 if n else own for n, own in zip(below, size, strict=True))
            few = not any(below) or mirrored < _MIRRORED
            if few and len(game.states) * math.prod(size) < BELOW:
                arrays = (np.array(low, dtype=np.int64), np.array(size, dtype=np.int64))
                return Packed(game, units, *arrays, ceilings, costs, unrolled)
        listed = unroll(game, units)
        return Packed.of(listed.game, Units(listed.game), listed)

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
    def mirrors(self) -> list[tuple[int, int, int]]:
        """Of each reservoir that may overflow: how far apart its keys are, how many, and how many
        of less than nothing missing.
        """
        low, size = self.low.tolist(), self.size.tolist()
        return [(math.prod(size[m + 1 :]), size[m], -low[m]) for m in self.units.stored.tolist() if low[m] < 0]

    @cached_property
    def mirrored_by(self) -> int:
        """How far the key that a key stands for can be above it, at most."""
        return sum(apart * below for apart, _, below in self.mirrors)

    def settled(self, keys: Ints) -> Ints:
        """Return the keys that these stand for, in order; they themselves if they are settled."""
        for apart, size, below in self.mirrors:
            keys = keys + apart * np.maximum(below - keys // apart % size, 0)
        return np.unique(keys) if self.mirrors else keys

    def mirrored(self, keys: Ints) -> tuple[Ints, Ints | None]:
        """Return these keys with all that stand for one of them, and the number of that one.

        None where each stands for itself only.
        """
        if not self.mirrors:
            return keys, None
        number = np.arange(len(keys))
        for apart, size, below in self.mirrors:
            full = np.flatnonzero(keys // apart % size == below)
            more = keys[full, None] - apart * np.arange(1, below + 1)
            keys = np.concatenate([keys, more.reshape(-1)])
            number = np.concatenate([number, np.repeat(number[full], below)])
        return keys, number

    def unpack(self, t: int, keys: Ints) -> tuple[Ints, Ints]:
        """Return states (P,) and what was spent (P, M), of the game as it was given."""
        from acegames.verifier.kernels import unpack

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

    def time(self, t: int) -> Time:
        """Return what can happen at time t, without the numbers."""
        found = self._times.get(t)
        if found is None:
            found = self._time(t)
            if len(found.worst) * self.game.horizon <= _KEPT:
                self._times[t] = found
        return found

    @cached_property
    def _times(self) -> dict[int, Time]:
        return {}

    def _time(self, t: int) -> Time:
        bound, last = self.units.bounds[t], t == self.game.horizon - 1
        rules = (*self._rules[self.game.layer_at[t]], bound - self.ceilings.rows(t), bound)
        return Time(*rules, np.int64(self.span), self.low, self.size, last)

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
    def joined(self) -> Joined | None:
        """All times as one; None where that would be large."""
        layers, times = [self.game.layer(t) for t in range(self.game.horizon)], range(self.game.horizon)
        rows, outs = (offsets(np.array([len(getattr(x, name)) for x in layers])) for name in ("reward", "prob"))
        large = self.keys * len(layers) > _FEW_KEYS or rows[-1] > _FEW_ROWS
        if large or self.mirrors or self.unrolled is not None:
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
        time = Time(
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
        return Joined(layer, np.concatenate([self.costs[at] for at in self.game.layer_at]), rows, time)

    def slots(self) -> Table:
        """Return an empty table with a slot for every key of all times."""
        number = np.full(self.keys * self.game.horizon, -1, dtype=np.int32)
        return Table(np.full(0, -1, dtype=np.int64), number, np.int64(0))

    def targets(self) -> Ints:
        """Return room for where the outcomes of one row lead."""
        return room(self._widest)

    @cached_property
    def _widest(self) -> int:
        return max(int(np.diff(layer.out_ptr).max()) for layer in self.game.layers)

    @cached_property
    def rows(self) -> int:
        """The most rows of a state."""
        return max(int(np.diff(layer.row_ptr).max()) for layer in self.game.layers)

    def by_line(self, pairs: int) -> bool:
        """Return whether that many pairs of one time are dense enough for the passes of `lines`."""
        return self.dense(pairs, self.keys)

    def dense(self, pairs: int, keys: int) -> bool:
        """Return whether that many pairs are, among so many keys."""
        long = len(self.size) > 0 and int(self.size[-1]) >= _LONG
        return long and keys <= max(min(_FULL, _DENSE) * pairs, _FEW)

    def marks(self, keys: Ints | None = None) -> Bytes:
        """Return a byte for every key, and room for a window behind: 1 for these keys, else 0.

        Keys that stand for one of these have 1, too.
        """
        from acegames.verifier.lines import LANES

        marks = np.zeros(self.keys + LANES, dtype=np.uint8)
        if keys is not None:
            marks[self.mirrored(keys)[0]] = 1
        return marks

    def lanes(self) -> Lanes:
        """Return room for one window of `lines`, that of this thread."""
        me = get_ident()
        if me not in self._rooms:
            self._rooms[me] = self._lanes()
        return self._rooms[me]

    @cached_property
    def _rooms(self) -> dict[int, Lanes]:
        return {}

    def _lanes(self) -> Lanes:
        from acegames.verifier.lines import LANES

        n, most = len(self.game.players), max(map(len, self.game.actions))
        return Lanes(
            np.zeros((self.rows, 5 * n, LANES)),
            room(self.rows, dtype=np.uint8),
            room(max(2, self.rows), LANES, dtype=np.uint8),
            room(LANES),
            room(len(self.size)),
            room(n, LANES, dtype=np.float64),
            room(4 * LANES, dtype=np.float64),
            room(1, most + 1, 2, dtype=np.float64),
            room(most),
            np.zeros((self.rows, len(self.size) + len(self.units.stored), LANES), dtype=np.int64),
        )

    def abreast(self, keys: Ints, pairs: Ints) -> Ints:
        """Return the order in which `lines` go through the pairs of these numbers."""
        from acegames.verifier.lines import abreast

        if len(self.size) < 2:
            return np.arange(len(pairs))
        order, length = np.empty(len(pairs), dtype=np.int64), int(self.size[-1])
        if self.span // length > _LINES * len(pairs):  # of a block, which has few of them
            return np.argsort(keys[pairs] % self.span // length, kind="stable")
        abreast(keys, pairs, self.span, length, np.zeros(self.span // length + 1, dtype=np.int64), order)
        return order

    def _steps(self, amounts: Ints) -> Ints:
        """Return how far amounts (K, M) move a key."""
        steps = np.zeros(len(amounts), dtype=np.int64)
        for m in range(len(self.size)):
            steps = steps * self.size[m] + amounts[:, m]
        return steps

    def hashed(self, expected: int) -> bool:
        """Return whether a table with room for so many keys is hashed."""
        return self.keys > _DENSE * max(expected, 64)

    def table(self, expected: int) -> Table:
        """Return an empty table with room for so many keys."""
        if not self.hashed(expected):
            return Table(np.full(0, -1, dtype=np.int64), np.full(self.keys, -1, dtype=np.int32), np.int64(0))
        bits = max(2 * expected, 2).bit_length()
        slots = np.full(1 << bits, -1, dtype=np.int64)
        return Table(slots, np.full(1 << bits, -1, dtype=np.int32), np.int64(64 - bits))

    def filled(self, keys: Ints, numbers: Ints | None = None) -> Table:
        """Return a table of these keys, each once, with these numbers, or else in order.

        Keys that stand for one of these have its number.
        """
        from acegames.verifier.kernels import fill

        every, which = self.mirrored(keys)
        table = self.table(len(every))
        if numbers is None:
            numbers = np.arange(len(keys))
        fill(every, numbers if which is None else numbers[which], table)
        return table


def _charges_cut(units: Units) -> list[Ints]:
    """Return the costs, with no charge larger than what can be missing while budgets are kept."""
    most = np.max([units.start, *units.bounds], axis=0)[units.stored]
    found = []
    for cost in units.costs:
        found.append(cost.copy())
        found[-1][:, units.stored] = np.maximum(cost[:, units.stored], -most)
    return found


def _ranges(game: MarkovGame, units: Units, costs: list[Ints], ceilings: Ceilings) -> list[tuple[int, int]]:
    """Return the least and the largest totals while the budgets were, and can be, kept."""
    spread = [(cost.min(axis=0).tolist(), cost.max(axis=0).tolist()) for cost in costs]
    bounds = np.minimum(units.bounds, ceilings.at[1:].max(axis=1)).tolist()
    found = []
    for m, start in enumerate(units.start.tolist()):
        least = most = lowest = highest = start
        stored = m in units.stored
        for at, bound in zip(game.layer_at, bounds, strict=True):
            down, up = spread[at]
            least, most = least + down[m], most + up[m]
            lowest = min(lowest, least)  # also where that is settled
            least = max(least, 0) if stored else least
            most = max(least, min(most, bound[m]))
            highest = max(highest, most)
        found.append((lowest, highest))
    return found
