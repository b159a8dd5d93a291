"""The baseline: a potential taken out of values, where common rewards would hide differences.

Let phi(t, s, i) be any numbers with phi(H, ., .) = 0. In the game with the rewards

    r'(t, s, a) = r(t, s, a) - phi(t, s) + E[phi(t+1, s')]

every value is V' = V - phi, and all utilities of a stage game are lower by phi(t, s): deviations
gain what they gained. Floats near zero are finer than floats near large rewards, so wages, living
costs and everything else that is paid whatever is played are taken out: phi is what the best joint
actions bring, budgets aside. r' is computed in twice the digits and rounded once.

Only rewards of joint actions that feasible play can take at that time count, and only at times when
something is paid whatever is played (`Wages`); and nothing is taken from a player for whom all of
that is little beside what joint actions are apart. Objectives that compare players, "egalitarian"
and "fair", take into account what was taken from each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from acegames.engines import EngineResult
from acegames.model.arrays import Bools, Bytes, Floats, Ints, frozen, pointers, spans
from acegames.model.game import MarkovGame
from acegames.model.layers import Layer
from acegames.numerics import BASELINE, COMMON
from acegames.policy.layer import PolicyLayer
from acegames.safety.space import Tables
from acegames.stage.units import weighted_sum

SPLIT = 2.0**27 + 1  # halves the digits of a float


@dataclass(frozen=True, eq=False)
class Baseline:
    """What is taken out of values, and so out of rewards; nothing where `potential` is None."""

    game: MarkovGame
    potential: Floats | None = None  # (H+1, S, N) phi
    played: Sequence[Bytes] = ()  # of which rows of each time rewards are asked, as in `Space`

    def rewards(self, t: int) -> Floats:
        """Return the rewards of time t less the baseline, (R, N) by row of its layer.

        Rows that no feasible play takes then have no meaning.
        """
        layer = self.game.layer(t)
        if self.potential is None:
            return layer.reward
        rows = _rows(self.played[t], layer)
        if len(rows) == len(layer.reward):
            return _lowered(layer, self.potential[t], self.potential[t + 1])
        left = np.zeros_like(layer.reward)
        left[rows] = _lowered(_part(layer, rows), self.potential[t], self.potential[t + 1])
        return left

    def columns(self, tables: Tables, t: int) -> Floats:
        """Return rewards less the baseline, and their sizes, by row of the tables, for stage games.

        Rows of other layers than that of time t have no meaning.
        """
        if self.potential is None:
            return self._plain
        return self._by_table(tables, t, with_sizes(self.rewards(t)))

    def above(self, tables: Tables, t: int) -> Floats:
        """Return by how much more was taken from each player than from the one that lost least.

        By row of the tables, as `Goal.terms` is; one line where nothing was taken.
        """
        if self.potential is None:
            return np.zeros((1, len(self.game.players)))
        rows = np.diff(self.game.layer(t).row_ptr)
        return self._by_table(tables, t, np.repeat(self.above_states(t), rows, axis=0))

    def above_states(self, t: int) -> Floats:
        """Return by how much more was taken from each player at each state, (S, N)."""
        if self.potential is None:
            return np.zeros((len(self.game.states), len(self.game.players)))
        taken = self.potential[t]
        above: Floats = taken - taken.min(axis=1, keepdims=True)
        return above

    def back(self, result: EngineResult, keep: Callable[[Iterable[Floats]], list[Floats]] = list) -> EngineResult:
        """Return the answer with the baseline added to those values that the layers have.

        `keep` stores the new arrays where the layers are.
        """
        if self.potential is None:
            return result
        stored = {t: layer.values for t, layer in enumerate(result.layers) if layer.values is not None}
        raised = keep(_raised(result.layers[t], values, self.potential[t]) for t, values in stored.items())
        layers = list(result.layers)
        for t, values in zip(stored, raised, strict=True):
            layers[t] = replace(layers[t], values=values)
        states, chances = zip(*self.game.initial, strict=True)
        at_start = weighted_sum(chances, self.potential[0, list(states)])
        return replace(result, values=result.values + at_start, layers=layers)

    @cached_property
    def _plain(self) -> Floats:
        rewards = [layer.reward for layer in self.game.layers]
        return with_sizes(rewards[0] if len(rewards) == 1 else np.concatenate(rewards))

    def _by_table(self, tables: Tables, t: int, own: Floats) -> Floats:
        if len(own) == len(tables.reward):
            return own
        every, rows = np.zeros((len(tables.reward), own.shape[1])), tables.row_ptr[tables.layer_at[t]]
        every[rows[0] : rows[-1]] = own
        return frozen(every)


def with_sizes(rewards: Floats) -> Floats:
    """Return rewards (R, N), then their sizes, unless there is one player; rounding is a share."""
    both: Floats = rewards if rewards.shape[1] == 1 else np.hstack([rewards, np.abs(rewards)])
    return frozen(both)


def _raised(layer: PolicyLayer, values: Floats, taken: Floats) -> Floats:
    """Add to a layer's values what was taken at each state (S, N).

    In place, except in a layer that a checkpoint maps.
    """
    space = layer.space
    ends = space.base if layer.by_cell else np.searchsorted(layer.cells.listed(space.total), space.base)
    up = np.repeat(taken[space.states], np.diff(ends), axis=0)
    return np.add(values, up, out=values if values.flags.writeable else None)


# -- what is taken --------------------------------------------------------------------------------


def baseline(game: MarkovGame, played: Sequence[Bytes]) -> Baseline:
    """Choose the baseline of a game; `played` has a bit for each row of each time."""
    seen: dict[tuple[int, bytes], Wages] = {}
    keys = [(layer, bits.tobytes()) for layer, bits in zip(game.layer_at, played, strict=True)]
    for (layer, rows), bits in zip(keys, played, strict=True):
        if (layer, rows) not in seen:
            seen[layer, rows] = Wages.of(game.layers[layer], bits)
    wages = [seen[key] for key in keys]
    paid, size, apart = (np.array([getattr(x, name) for x in wages]) for name in ("paid", "size", "apart"))
    much = np.where(paid, size, 0.0).sum(axis=0)
    paid &= (much > 0) & (much > BASELINE * np.where(apart.min(axis=0) < np.inf, apart.min(axis=0), 0.0))
    return Baseline(game, frozen(_potential(game, wages, paid)), played) if paid.any() else Baseline(game)


def _rows(played: Bytes, layer: Layer) -> Ints:
    """Return the rows whose bits are set."""
    return np.flatnonzero(np.unpackbits(played, count=len(layer.reward), bitorder="little"))


def _part(layer: Layer, rows: Ints) -> Layer:
    """Return some rows of a layer: where states say the time, few are played at each."""
    out, out_ptr = spans(layer.out_ptr[rows], layer.out_ptr[rows + 1])
    row_ptr = np.searchsorted(rows, layer.row_ptr)
    part = replace(layer, row_ptr=row_ptr, action=layer.action[rows], reward=layer.reward[rows], out_ptr=out_ptr)
    return replace(part, prob=layer.prob[out], next_state=layer.next_state[out], cost=layer.cost[out], payments=None)


class Wages(NamedTuple):
    """What is paid at one time whatever is played there, seen from the rows that are played."""

    rows: Ints  # the rows that are played
    states: Ints  # the states that have such rows
    first: Ints  # where the rows of each of these begin among `rows`
    paid: Bools  # (N,) whether there is a wage
    size: Floats  # (N,) the mean size of the best rewards of states
    apart: Floats  # (N,) the smallest positive distance between two rewards

    @staticmethod
    def of(layer: Layer, bits: Bytes) -> Wages:
        """Look for wages in the rows that are played.

        A wage is what typical joint actions of all states nearly share, or what leaves no joint
        action of a state with less than half of its best one, whatever the sign.
        """
        rows = _rows(bits, layer)
        states, first = np.unique(layer.row_ptr.searchsorted(rows, side="right") - 1, return_index=True)
        reward = layer.reward[rows]
        best = np.maximum.reduceat(reward, first, axis=0)
        ends = np.vstack([best, np.sort(reward, axis=0)[len(rows) // 2]])
        low, high = ends.min(axis=0), ends.max(axis=0)
        shared = high - low < np.abs(low / 2 + high / 2) / COMMON
        halves = np.minimum.reduceat(np.abs(reward), first, axis=0) >= np.abs(best) / 2
        gap = np.diff(np.sort(reward, axis=0), axis=0)
        apart = np.where(gap > 0, gap, np.inf).min(axis=0, initial=np.inf)
        return Wages(rows, states, first, shared | halves.all(axis=0), np.abs(best).mean(axis=0), apart)


def _potential(game: MarkovGame, wages: Sequence[Wages], paid: Bools) -> Floats:
    """Return what the best play brings of the wages, budgets aside, (H+1, S, N); paid (H, N)."""
    phi = np.zeros((game.horizon + 1, len(game.states), paid.shape[1]))
    for t in reversed(range(game.horizon)):
        layer, (rows, states, first, *_) = game.layer(t), wages[t]
        some = layer if len(rows) == len(layer.reward) else _part(layer, rows)
        worth = np.where(paid[t], some.reward, 0.0) + _mean(some, phi[t + 1])
        best = np.maximum.reduceat(worth, first, axis=0)
        phi[t] = best[0]  # nothing leads to other states
        phi[t, states] = best
    return phi


# -- means, in floats and in twice their digits ---------------------------------------------------


class Pairing(NamedTuple):
    """One round of adding up the outcomes of rows: neighbours two by two, so that few rounds do."""

    left: Ints  # the first of each pair, or the one that has no partner
    paired: Ints  # which of these have a partner
    right: Ints  # the partners


@lru_cache(maxsize=16)
def _pairings(layer: Layer) -> list[Pairing]:
    """Return the rounds after which one number is left of each row's outcomes."""
    rounds, count = list[Pairing](), np.diff(layer.out_ptr).astype(np.int64)
    while len(count) and count.max() > 1:
        half, begin = (count + 1) // 2, pointers(count)[:-1]
        nth = np.arange(int(half.sum())) - np.repeat(pointers(half)[:-1], half)
        left = np.repeat(begin, half) + 2 * nth
        paired = np.flatnonzero(2 * nth + 1 < np.repeat(count, half))
        rounds.append(Pairing(left, paired, left[paired] + 1))
        count = half
    return rounds


def _mean(layer: Layer, values: Floats) -> Floats:
    """Return the expected values of the next state, (R, N)."""
    total = layer.prob[:, None] * values[layer.next_state]
    for left, paired, right in _pairings(layer):
        partner, total = total[right], total[left]
        total[paired] += partner
    return total


def _exact_sum(layer: Layer, total: Floats, rest: Floats) -> tuple[Floats, Floats]:
    """Return the sums over the outcomes of each row of total + rest, in twice the digits."""
    for left, paired, right in _pairings(layer):
        (partner, small), total, rest = (total[right], rest[right]), total[left], rest[left]
        total[paired], lost = _sum(total[paired], partner)
        rest[paired] += small + lost
    return total, rest


def _lowered(layer: Layer, here: Floats, after: Floats) -> Floats:
    """Return r - phi(t, s) + E[phi(t+1, s')], (R, N), exact up to one rounding of the result."""
    p = layer.prob[:, None]
    total, rest = _exact_sum(layer, *_product(p, after[layer.next_state]))
    whole, part = _exact_sum(layer, p, np.zeros_like(p))  # one, but for rounding
    mean = total / whole
    product, error = _product(mean, whole)
    left = (((total - product) - error) + rest - mean * part) / whole  # of the division
    below, lost = _sum(mean, -np.repeat(here, np.diff(layer.row_ptr), axis=0))
    rounded, more = _sum(below, layer.reward)
    lowered: Floats = rounded + (more + (lost + left))
    return lowered


def _sum(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the rounded sum, and what is missing to the exact one (Knuth)."""
    total = x + y
    shown = total - x
    return total, (x - (total - shown)) + (y - shown)


def _product(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the rounded product, and what is missing to the exact one (Dekker)."""
    product = x * y
    (a, b), (c, d) = _halves(x), _halves(y)
    return product, b * d - (((product - a * c) - b * c) - a * d)


def _halves(x: Floats) -> tuple[Floats, Floats]:
    """Split floats into two of half as many digits."""
    large = SPLIT * x
    high = large - (large - x)
    return high, x - high
