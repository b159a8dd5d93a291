"""How large a gain is accepted, situation by situation, and what rounding is (spec 7).

A gain W_i - V_i at x is accepted up to VERIFY * stake_i(x) + off_i(x), where stake_i = hi_i - lo_i
and

    hi_i(x) = max over a in FA(x)           of r_i(a) + E[hi_i(next)]   the best of safe play
    lo_i(x) = min over a played >= VERIFY   of r_i(a) + E[lo_i(next)]   the worst of the policy

and off_i is what floating point can have changed W_i and V_i by, a running bound over what was
added up: each mean can be off by a share of the size of its terms (`pair_kernels`), and each
reward, a float itself, by its last digit. In exact arithmetic a gain is at least 0 and at most the
stake. Rewards that are past, elsewhere or never taken are in none of these sums, and shifting or
scaling the rewards scales both sides alike. A joint action that is played with less than VERIFY
does not count for lo: a penalty behind it would buy a tolerance for nothing. Behind a larger
probability it costs the player as much as the tolerance that it buys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from acegames.model.game import Layer, MarkovGame
from acegames.numerics import COMMON, VERIFY
from acegames.verifier.basics import ALONE, BlockThreads, Floats, Ints
from acegames.verifier.pair_keys import ExactUnits, Spent
from acegames.verifier.policy_reader import Reader

Place = tuple[int, Any, tuple[Any, ...]]


class Gain(NamedTuple):
    """What a player gains by the best feasible deviation in one subgame."""

    gain: float
    stake: float
    off: float  # what rounding can have changed the gain by
    place: Place | None  # None where nothing is to be gained anywhere; the rest is then of the start

    @property
    def accepted(self) -> float:
        """The largest gain that is accepted there; nothing where the numbers overflow."""
        accepted = VERIFY * self.stake + self.off
        return accepted if np.isfinite(accepted) else 0.0

    @property
    def share(self) -> float:
        """What the gain is beyond rounding, as a share of the stake: accepted up to VERIFY."""
        beyond = self.gain - self.off
        if beyond <= 0:
            return 0.0
        return beyond / self.stake if 0 < self.stake < np.inf else np.inf * beyond


class Gains:
    """The gains of each player that are largest, and largest as a share of the stake.

    Each time has its own, put together from the last back: of equal ones the earliest in time
    counts, there the first pair.
    """

    def __init__(self, reader: Reader) -> None:
        n = len(reader.game.players)
        self.reader = reader
        self.largest = [Gain(0.0, 0.0, 0.0, None)] * n
        self.share, self.start = list(self.largest), list(self.largest)  # and at the start, the least that is accepted
        self.off: Floats = np.zeros(n)  # the largest

    def add(
        self,
        values: Floats,
        pair: Callable[[int], tuple[int, int, Spent]],
        *,
        start: bool,
        threads: BlockThreads = ALONE,
    ) -> None:
        """Take in numbers (P, 6N) of pairs, as in `Known`; `pair(p)`: (t, state, spent).

        They are those of the start, or none of them is.
        """
        n = len(self.largest)
        largest, share, self.off = _extremes(values, n, threads)
        for i in range(n):

            def gain_at(p: int, i: int = i) -> Gain:
                v, w, v_off, w_off, high, low = (float(x) for x in values[p, i::n])
                return Gain(w - v, max(0.0, high - low), v_off + w_off, self.reader.user(*pair(p)))

            p = int(largest[i])
            if not values[p, n + i] - values[p, i] <= 0:
                self.largest[i] = gain_at(p)
            if share[i] >= 0:
                self.share[i] = gain_at(int(share[i]))
            if start:
                self.start[i] = gain_at(_least_accepted(values[:, i::n]))._replace(gain=0.0)

    def put_before(self, other: Gains) -> None:
        """Take in those of earlier pairs, or of pairs before in order."""
        self.off = np.maximum(self.off, other.off)
        for i in range(len(self.largest)):
            mine, its = self.largest[i], other.largest[i]
            if its.place is not None and not (np.isnan(mine.gain) or its.gain < mine.gain):
                self.largest[i] = its
            mine, its = self.share[i], other.share[i]
            if its.place is not None and not (np.isnan(mine.share) or its.share < mine.share):
                self.share[i] = its
            mine, its = self.start[i], other.start[i]
            if its.place is not None and (mine.place is None or its.accepted <= mine.accepted):
                self.start[i] = its

    def settle(self) -> None:
        """Show what is accepted at the start where nothing is to be gained anywhere."""
        for i, start in enumerate(self.start):
            if self.largest[i].place is None:
                self.largest[i] = start._replace(place=None)


def first_extremes(values: Floats, n: int, *, start: bool) -> tuple[Ints, Floats]:
    """Return the pairs that `Gains.add` would look at, in order; and the largest `off`, (N,)."""
    largest, share, off = _extremes(values, n, ALONE)
    pairs = [largest, share[share >= 0]]
    if start:
        pairs.append(np.array([_least_accepted(values[:, i::n]) for i in range(n)], dtype=np.int64))
    return np.unique(np.concatenate(pairs)), off


def _least_accepted(values: Floats) -> int:
    """Return the first pair at which least is accepted, by the numbers of one player, (P, 6)."""
    _, _, v_off, w_off, high, low = values.T
    return int(np.argmin(VERIFY * (high - low) + (v_off + w_off)))


def _extremes(values: Floats, n: int, threads: BlockThreads) -> tuple[Ints, Ints, Floats]:
    """Return what `pair_kernels.extremes` finds, for each player."""
    from acegames.verifier.pair_kernels import extremes

    def find(values: Floats) -> tuple[Ints, Ints, Floats]:
        extreme = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n)
        extremes(values, *extreme)
        return extreme

    blocks = threads.shares(len(values))
    extreme = threads.each(lambda block: find(values[block]), blocks)
    if len(blocks) == 1:
        return extreme[0]
    some = [block.start + x[x >= 0] for block, parts in zip(blocks, extreme, strict=True) for x in parts[:2]]
    first = np.unique(np.concatenate(some))
    largest, share, _ = find(values[first])
    return first[largest], np.where(share < 0, -1, first[share]), np.maximum.reduce([off for *_, off in extreme])


def common_part(game: MarkovGame, units: ExactUnits, safe_rows: Sequence[Ints]) -> Floats:
    """Return what is to be taken out of the rewards of each time and player, (H, N).

    Gains are differences: sums of small numbers show them, sums of large ones may round them away
    or make them up. The common part of a time is taken out where the best safe rewards of its
    states, and the median of all, differ by far less than that. So penalties do not switch it off,
    and a large number is taken out of small ones only where there is much at stake.
    """
    from acegames.verifier.pair_kernels import best_rewards

    low, high = np.zeros((2, game.horizon, len(game.players)))
    for t, rows in enumerate(safe_rows):
        reward, (row_ptr, *_) = game.layer(t).reward[rows], units.steps[game.layer_at[t]]
        low[t] = high[t] = np.sort(reward, axis=0)[len(rows) // 2]
        best_rewards(row_ptr, rows, reward, low[t], high[t])
    with np.errstate(over="ignore"):
        middle = low / 2 + high / 2
        base: Floats = np.where(high - low < np.abs(middle) / COMMON, middle, 0.0)
    return base


def normalised(layer: Layer) -> Floats:
    """Return the probabilities of outcomes (K,), which sum to one in each row."""
    total = np.add.reduceat(layer.prob, layer.out_ptr[:-1])
    shares: Floats = layer.prob / np.repeat(total, np.diff(layer.out_ptr))
    return shares
