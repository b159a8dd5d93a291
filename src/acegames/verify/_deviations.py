"""The policy's values V and the values W of the best feasible deviations, from the last step back (spec 7).

With pi the policy at (t, s, c), q(a) = r_i(a) + E[W_i(next)] for a in FA, and -inf elsewhere:

    CCE   W_i = max over b              of sum over a    of pi(a) q(b, a_-i)
    CE    W_i = sum over a_i of max over b of sum over a_-i of pi(a_i, a_-i) q(b, a_-i)

where a sum that meets -inf is -inf, however small the probability: that deviation is not feasible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.model.game import Layer, MarkovGame
from acegames.verify._feasible import Ints, Stage
from acegames.verify._reading import Reader

Floats = NDArray[np.float64]
Place = tuple[int, Any, tuple[Any, ...]]


@dataclass(frozen=True, eq=False)
class Evaluated:
    """What the backward pass found."""

    pairs: int  # number of subgames; 0 when no policy is feasible
    values: Floats  # (N,) at the root; NaN where the policy runs into a fault
    regret: Floats  # (N,) NaN when the policy is at fault in some subgame
    where: tuple[Place | None, ...]  # N
    faults: list[str]  # sentences in order of time, the first few at least
    n_faults: int


@dataclass(frozen=True, eq=False)
class _Support:
    """The policy at the pairs of one stage, entry by entry, in the order of pairs."""

    pair: Ints  # (Z,)
    row: Ints  # (Z,)
    prob: Floats  # (Z,)
    wrong: Ints  # pairs where the policy is at fault; they have no entries here


class Gains:
    """The largest gain of each player so far, and where; of equal ones the earliest in time, there the first pair."""

    def __init__(self, reader: Reader) -> None:
        n = len(reader.game.players)
        self.reader = reader
        self.regret: Floats = np.zeros(n)
        self.where: list[Place | None] = [None] * n

    def add(self, t: int, gain: Floats, pair: Callable[[int], tuple[int, tuple[int, ...]]]) -> None:
        """Take in the gains (P, N) at time t, from the last time back; `pair(p)` is its state and what was spent."""
        for i, p in enumerate(np.argmax(gain, axis=0).tolist()):
            if not (np.isnan(self.regret[i]) or gain[p, i] <= 0 or gain[p, i] < self.regret[i]):
                self.regret[i] = gain[p, i]
                self.where[i] = self.reader.user(t, *pair(p))


def evaluate(game: MarkovGame, stages: list[Stage], reader: Reader, *, coarse: bool) -> Evaluated:
    """Return root values and the largest gain of each player over all subgames."""
    n = len(game.players)
    faults: list[str] = []
    supports = [_read(game, stage, t, reader, faults) for t, stage in enumerate(stages)]
    gains = Gains(reader)
    moves = [[replaced(game, layer, i) for i in range(n)] for layer in game.layers]
    v, w = np.zeros((1, n)), np.zeros((1, n))
    with np.errstate(over="ignore", invalid="ignore"):
        for t in reversed(range(len(stages))):
            stage, layer, support = stages[t], game.layer(t), supports[t]
            v = _own_values(stage, layer, support, v)
            if faults:
                continue
            w = _deviation_values(stage, layer, support, moves[game.layer_at[t]], w, coarse=coarse)
            gains.add(t, w - v, stage.pair)
        values = np.array([p for _, p in game.initial]) @ v if stages else np.full(n, np.nan)
    regret = gains.regret if stages and not faults else np.full(n, np.nan)
    pairs = sum(len(stage.state) for stage in stages)
    return Evaluated(pairs, values, regret, tuple(gains.where), faults, len(faults))


def _read(game: MarkovGame, stage: Stage, t: int, reader: Reader, faults: list[str]) -> _Support:
    """Ask the policy at every pair of a stage; a weight outside FA is a fault."""
    layer = game.layer(t)
    answers = reader.read(t, stage.state, stage.spent)
    pair = np.repeat(np.arange(len(stage.state)), np.diff(answers.ptr))
    outside = np.flatnonzero(~stage.safe[_entries(stage, layer, pair, answers.row)])
    wrong = dict(answers.faults)
    for p, row in zip(pair[outside].tolist(), answers.row[outside].tolist(), strict=True):
        wrong[p] = reader.unsafe(t, *stage.pair(p), row)
    faults += [wrong[p] for p in sorted(wrong)]
    sound = ~np.isin(pair, pair[outside])
    return _Support(pair[sound], answers.row[sound], answers.prob[sound], np.array(sorted(wrong), dtype=np.int64))


def _action_values(stage: Stage, layer: Layer, following: Floats) -> Floats:
    """Return reward plus expected following value per entry, (E, N); -inf off FA."""
    q = np.full((len(stage.row), following.shape[1]), -np.inf)
    if len(stage.edge_first):
        expected = np.add.reduceat(layer.prob[stage.edge_out, None] * following[stage.edge_next], stage.edge_first)
        q[stage.safe] = layer.reward[stage.row[stage.safe]] + expected
    return q


def _entries(stage: Stage, layer: Layer, pair: Ints, row: Ints) -> Ints:
    return stage.first[pair] + row - layer.row_ptr[stage.state[pair]]


def _own_values(stage: Stage, layer: Layer, support: _Support, following: Floats) -> Floats:
    q = _action_values(stage, layer, following)[_entries(stage, layer, support.pair, support.row)]
    v = np.zeros((len(stage.state), following.shape[1]))
    np.add.at(v, support.pair, support.prob[:, None] * q)
    v[support.wrong] = np.nan
    return v


def _deviation_values(
    stage: Stage, layer: Layer, support: _Support, moves: list[Ints], following: Floats, *, coarse: bool
) -> Floats:
    """Return W at every pair of a stage, (P, N)."""
    q = _action_values(stage, layer, following)
    w = np.empty((len(stage.state), len(moves)))
    for i, move in enumerate(moves):
        told = np.zeros_like(support.row) if coarse else layer.action[support.row, i].astype(np.int64)
        order = np.lexsort((told, support.pair))
        pair, row, told = support.pair[order], support.row[order], told[order]
        legal = move[row] >= 0  # (Z, A_i)
        entry = _entries(stage, layer, pair[:, None], np.where(legal, move[row], row[:, None]))
        value = np.where(legal, q[entry, i], -np.inf)
        part = np.where(value == -np.inf, -np.inf, support.prob[order, None] * value)
        best = np.add.reduceat(part, _begins(pair, told)).max(axis=1)  # one choice per recommendation
        asked = pair[_begins(pair, told)]
        w[:, i] = np.add.reduceat(best, _begins(asked))
    return w


def _begins(*columns: Ints) -> Ints:
    """Return where each run of equal lines begins."""
    new = np.ones(len(columns[0]), dtype=bool)
    new[1:] = np.logical_or.reduce([c[1:] != c[:-1] for c in columns])
    return np.flatnonzero(new)


def replaced(game: MarkovGame, layer: Layer, player: int) -> Ints:
    """Return for each row and action b the row where `player` plays b instead, (R, A_i); -1 if not legal."""
    state = np.repeat(np.arange(len(game.states)), np.diff(layer.row_ptr))
    others = np.column_stack([state, np.delete(layer.action, player, axis=1)])
    group = np.unique(others, axis=0, return_inverse=True)[1].reshape(-1)
    table = np.full((int(group.max()) + 1, len(game.actions[player])), -1, dtype=np.int64)
    table[group, layer.action[:, player]] = np.arange(len(group))
    return table[group]
