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

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from acegames.model.arrays import Floats, Ints
from acegames.model.game import MarkovGame
from acegames.numerics import COMMON, VERIFY
from acegames.verifier.basics import begins, owners
from acegames.verifier.pair_keys import PairKeys
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


class Extremes(NamedTuple):
    """The pairs, of some of one time, at which gains are largest."""

    keys: Ints  # (C,)
    values: Annotated[Floats, "6N C"]  # of these, as in `LayerValues`
    off: Floats  # (N,) the most that rounding can have changed a gain by, at any of the pairs

    @staticmethod
    def of(packed: PairKeys, keys: Ints, values: Floats, part: slice) -> Extremes:
        """Find them among a part of some pairs."""
        largest, share, off = _extremes(packed, keys, values, part)
        some = np.unique([*largest, *share[share >= 0]])
        return Extremes(keys[some], values.take(some, axis=1), off)


class Gains:
    """The gains of each player that are largest, and largest as a share of the stake.

    Times are taken in from the last back: of equal gains the earliest in time counts, there that of
    the first pair. Where nothing is to be gained anywhere, the largest gain says the least that is
    accepted at the start.
    """

    def __init__(self, reader: Reader) -> None:
        n = len(reader.game.players)
        self.reader = reader
        self.largest = [Gain(0.0, 0.0, 0.0, None)] * n
        self.share = list(self.largest)
        self.off: Floats = np.zeros(n)  # the largest

    def add(self, packed: PairKeys, t: int, parts: Sequence[Extremes]) -> None:
        """Take in a time, from the extremes of its parts."""
        keys = np.concatenate([part.keys for part in parts])
        values = np.concatenate([part.values for part in parts], axis=1)
        self.off = np.maximum.reduce([self.off, *(part.off for part in parts)])
        n = len(self.largest)

        def gain_at(i: int, p: int) -> Gain:
            v, w, v_off, w_off, high, low = (float(x) for x in values[i::n, p])
            state, spent = packed.unpack(t, keys[p : p + 1])
            place = self.reader.user(t, int(state[0]), tuple(spent[0].tolist()))
            return Gain(w - v, max(0.0, high - low), v_off + w_off, place)

        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            largest, share, _ = _extremes(packed, keys, values, slice(0, len(keys)))
            for i in range(n):
                p, mine = int(largest[i]), self.largest[i]
                gain = values[n + i, p] - values[i, p]
                if not (gain <= 0 or np.isnan(mine.gain) or gain < mine.gain):
                    self.largest[i] = gain_at(i, p)
                if share[i] >= 0:
                    its, mine = gain_at(i, int(share[i])), self.share[i]
                    if not (np.isnan(mine.share) or its.share < mine.share):
                        self.share[i] = its

    def at_start(self, values: Floats) -> None:
        """Take in the pairs of the first time, (6N, P), where nothing is to be gained anywhere."""
        n = len(self.largest)
        with np.errstate(over="ignore", invalid="ignore"):
            for i in range(n):
                _, _, v_off, w_off, high, low = values[i::n]
                off, stake = v_off + w_off, high - low
                p = np.argmin(VERIFY * stake + off)
                if self.largest[i].place is None:
                    self.largest[i] = Gain(0.0, max(0.0, float(stake[p])), float(off[p]), None)


def _extremes(packed: PairKeys, keys: Ints, values: Floats, part: slice) -> tuple[Ints, Ints, Floats]:
    """Return what `pair_kernels.extremes` finds, for each player."""
    from acegames.verifier.pair_kernels import extremes

    n = len(values) // 6
    largest, share, off = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n)
    extremes(values, keys, len(packed.game.states), packed.line, part.start, part.stop, largest, share, off)
    return largest, share, off


def common_part(game: MarkovGame, safe_rows: Sequence[Ints]) -> Floats:
    """Return what is to be taken out of the rewards of each time and player, (H, N).

    Gains are differences: sums of small numbers show them, sums of large ones may round them away
    or make them up. The common part of a time is taken out where the best safe rewards of its
    states, and the median of all, differ by far less than that. So penalties do not switch it off,
    and a large number is taken out of small ones only where there is much at stake.
    """
    low, high = np.zeros((2, game.horizon, len(game.players)))
    for t, rows in enumerate(safe_rows):
        reward = game.layer(t).reward[rows]
        best = np.maximum.reduceat(reward, begins(owners(game.layer(t).row_ptr)[rows]))  # of each state
        some = np.vstack([best, np.sort(reward, axis=0)[len(rows) // 2]])
        low[t], high[t] = some.min(axis=0), some.max(axis=0)
    with np.errstate(over="ignore"):
        middle = low / 2 + high / 2
        base: Floats = np.where(high - low < np.abs(middle) / COMMON, middle, 0.0)
    return base
