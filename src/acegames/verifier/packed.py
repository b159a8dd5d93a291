"""A game whose pairs (state, spent) are single 64-bit numbers, as the compiled passes take it (see `kernels`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from acegames.model.game import MarkovGame
from acegames.verifier.deviations import replaced
from acegames.verifier.feasible import Ints
from acegames.verifier.recover import Ceilings
from acegames.verifier.tolerance import Judged
from acegames.verifier.units import Spent, Units

if TYPE_CHECKING:
    from acegames.verifier.kernels import Box, Moves, Numbers, Rules, Table

_KEYS = 2**62
"""Keys stay below this."""

_DENSE = 16
"""A table has a slot for every key where that is no more than this many slots per pair: successors of neighbours are
then neighbours, and nothing is searched for. Else it is hashed, at most half full."""


@dataclass(frozen=True, eq=False)
class Packed:
    """How pairs become keys. `low` to `low + size - 1` is what can have been spent while the budgets were kept."""

    game: MarkovGame
    units: Units
    low: Ints  # (M,)
    size: Ints  # (M,)
    ceilings: Ceilings

    @staticmethod
    def of(game: MarkovGame, units: Units) -> Packed | None:
        """Return None when pairs do not fit into 64 bits."""
        if not units.small:
            return None
        low, size, ceilings = [], [], Ceilings(game, units)
        for m in range(len(game.constraints)):
            least, most = _range(game, units, ceilings, m)
            low.append(least)
            size.append(most - least + 1)
        if len(game.states) * math.prod(size) >= _KEYS:
            return None
        return Packed(game, units, np.array(low, dtype=np.int64), np.array(size, dtype=np.int64), ceilings)

    @cached_property
    def span(self) -> int:
        """Number of keys of one state."""
        return math.prod(self.size.tolist())

    @property
    def box(self) -> Box:
        """What kernels need to read a key."""
        return np.int64(self.span), self.low, self.size

    @cached_property
    def start(self) -> Ints:
        """The initial pairs."""
        return np.array([s for s, _ in self.game.initial], dtype=np.int64) * self.span - self._steps(self.low[None, :])

    def unpack(self, keys: Ints) -> tuple[Ints, Ints]:
        """Return states (P,) and what was spent (P, M)."""
        spent = np.empty((len(keys), len(self.low)), dtype=np.int64)
        rest = keys
        for m in reversed(range(len(self.low))):
            above = rest // self.size[m]
            spent[:, m] = rest - above * self.size[m] + self.low[m]
            rest = above
        return rest, spent

    def pair(self, keys: Ints, p: int) -> tuple[int, Spent]:
        """Return one of these pairs."""
        state, spent = self.unpack(keys[p : p + 1])
        return int(state[0]), tuple(spent[0].tolist())

    def bound(self, t: int) -> Ints:
        """Return the budgets at time t, (M,), beyond reach where there is none."""
        return self.ceilings.bound(t)

    def rules_at(self, t: int) -> Rules:
        """Return what can happen at time t, without the numbers."""
        return *self._steps_of[self.game.layer_at[t]], self.bound(t) - self.ceilings.rows(t)

    @cached_property
    def _steps_of(self) -> list[tuple[Ints, Ints, Ints]]:
        """row_ptr, out_ptr and jump of each distinct layer."""
        found = []
        for layer in self.game.layers:
            jump = layer.next_state.astype(np.int64) * self.span + self._steps(self.units.cost_table(layer))
            found.append((layer.row_ptr.copy(), layer.out_ptr.copy(), jump))
        return found

    def numbers(self, judged: Judged) -> list[Numbers]:
        """Probabilities (K,), rewards (R, N), costs (K, M) and what rewards can be off by (R, N) of each distinct layer."""
        return [
            (layer.prob.copy(), layer.reward.copy(), self.units.cost_table(layer), digit)
            for layer, digit in zip(judged.game.layers, judged.last_digit, strict=True)
        ]

    @cached_property
    def moves(self) -> list[Moves]:
        """What each player plays in each row, and the rows where one plays something else, for each distinct layer."""
        found = []
        offset = np.cumsum([0, *map(len, self.game.actions)], dtype=np.int64)
        for layer in self.game.layers:
            tables = [replaced(self.game, layer, i).astype(np.int32) for i in range(len(self.game.players))]
            found.append((layer.action.copy(), np.ascontiguousarray(np.column_stack(tables)), offset))
        return found

    def _steps(self, amounts: Ints) -> Ints:
        """Return how far amounts (K, M) move a key."""
        steps = np.zeros(len(amounts), dtype=np.int64)
        for m in range(len(self.size)):
            steps = steps * self.size[m] + amounts[:, m]
        return steps

    def table(self, expected: int) -> Table:
        """Return an empty table with room for so many keys."""
        keys = len(self.game.states) * self.span
        if keys <= _DENSE * max(expected, 64):
            return np.full(0, -1, dtype=np.int64), np.full(keys, -1, dtype=np.int32), np.int64(0)
        bits = max(2 * expected, 2).bit_length()
        return np.full(1 << bits, -1, dtype=np.int64), np.full(1 << bits, -1, dtype=np.int32), np.int64(64 - bits)


def _range(game: MarkovGame, units: Units, ceilings: Ceilings, m: int) -> tuple[int, int]:
    """Return the least and the largest amount that can have been spent at any time while the budgets were, and can be, kept."""
    spread = []
    for layer in game.layers:
        codes = layer.cost[:, m]  # in the order of the costs
        spread.append((units.costs[m][int(codes.min())], units.costs[m][int(codes.max())]))
    least, most, lowest, highest = 0, 0, 0, 0
    for t in range(game.horizon):
        down, up = spread[game.layer_at[t]]
        bound = min(int(ceilings.bound(t)[m]), int(ceilings.at[t + 1][:, m].max()))
        least, most = least + down, most + up
        most = max(least, min(most, bound))
        lowest, highest = min(lowest, least), max(highest, most)
    return lowest, highest
