"""The policy's values V, and the values W of the best feasible deviations (spec 7).

From the last step back, with pi the policy at x = (t, s, c), q(a) = r_i(a) + E[W_i(next)] for a in
FA(x), and -inf elsewhere:

    CCE, Nash   W_i = max( sum over a of pi(a) q(a),  max over b of sum over a of pi(a) q(b, a_-i) )
    CE          W_i = sum over a_i of max over b of sum over a_-i of pi(a_i, a_-i) q(b, a_-i)

where a sum that meets -inf is -inf, however small the probability: that deviation is not feasible.
At every step a coarse deviator commits to an action before the recommendation is drawn, or follows
it; so W_i is never less than V_i. (Under CE following is b = a_i; under Nash it is no better than
the best b that it mixes.) A player who may not deviate follows always. Beside each number goes a
bound on what floating point can have changed it by, and what is at stake is found on the way
(`tolerance`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from acegames.concepts import Concept
from acegames.model.game import Layer, MarkovGame
from acegames.verifier.feasible import Ints, Stage, begins
from acegames.verifier.reading import Reader
from acegames.verifier.tolerance import Floats, Gain, Gains, Judged, rounding


@dataclass(frozen=True, eq=False)
class Evaluated:
    """What the backward pass found."""

    pairs: int  # number of subgames; 0 when no policy is feasible
    values: Floats  # (N,) at the root; NaN where the policy runs into a fault
    largest: tuple[Gain, ...]  # N; empty when the policy is at fault in some subgame
    share: tuple[Gain, ...]  # N the largest gain as a share of its stake; empty likewise
    off: Floats  # (N,) the most that rounding can have changed a value or a gain by
    faults: list[str]  # sentences in order of time, the first few at least
    n_faults: int

    @staticmethod
    def of(pairs: int, values: Floats, gains: Gains, faults: list[str], n_faults: int) -> Evaluated:
        """The gains count only where the policy is at fault nowhere."""
        sound = pairs > 0 and not n_faults
        largest, share = (tuple(x) if sound else () for x in (gains.largest, gains.share))
        return Evaluated(pairs, values, largest, share, gains.off, faults, n_faults)


@dataclass(frozen=True, eq=False)
class _Support:
    """The policy at the pairs of one stage, entry by entry, in the order of pairs."""

    pair: Ints  # (Z,)
    row: Ints  # (Z,)
    prob: Floats  # (Z,)
    wrong: Ints  # pairs where the policy is at fault; they have no entries here


@dataclass(frozen=True, eq=False)
class _Sum:
    """Numbers, and what each can be off by; both (P, N), or per entry (E, N)."""

    value: Floats
    off: Floats


def evaluate(judged: Judged, stages: list[Stage], reader: Reader, concept: Concept) -> Evaluated:
    """Return root values and the largest gains of each player over all subgames."""
    game, n = judged.game, len(judged.game.players)
    faults: list[str] = []
    supports = [_read(game, stage, t, reader, faults) for t, stage in enumerate(stages)]
    gains = Gains(reader)
    deviates = concept.deviators(game.players)
    moves = [switches(game, layer, deviates) for layer in game.layers]
    v = w = _Sum(np.zeros((1, n)), np.zeros((1, n)))
    high = low = np.zeros((1, n))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for t in reversed(range(len(stages))):
            stage, layer, support, k = stages[t], game.layer(t), supports[t], game.layer_at[t]
            layer, last_digit = replace(layer, reward=layer.reward - judged.base[t]), judged.last_digit[k]
            v = _own_values(stage, layer, support, _action_values(stage, layer, v, last_digit))
            if faults:
                continue
            q = _action_values(stage, layer, w, last_digit)
            w = _deviation_values(stage, layer, support, moves[k], q, told=concept.told)
            high, low = _best_and_worst(stage, layer, support, high, low)
            gains.add(t, w.value - v.value, high - low, v.off + w.off, stage.pair)
        values = at_start(game, v.value) if stages else np.full(n, np.nan)
    return Evaluated.of(sum(len(stage.state) for stage in stages), values, gains, faults, len(faults))


def at_start(game: MarkovGame, values: Floats) -> Floats:
    """Return the expected values (N,) at the start, from those of the initial pairs."""
    chance = np.array([p for _, p in game.initial])
    found: Floats = (chance[:, None] * values).sum(axis=0) / chance.sum()
    return found


def _read(game: MarkovGame, stage: Stage, t: int, reader: Reader, faults: list[str]) -> _Support:
    """Ask the policy at every pair of a stage; a weight outside FA is a fault."""
    layer = game.layer(t)
    answers = reader.read(t, stage.state, stage.spent)
    pair = answers.pair()
    outside = np.flatnonzero(~stage.safe[_entries(stage, layer, pair, answers.row)])
    wrong = dict(answers.faults)
    for p, row in zip(pair[outside].tolist(), answers.row[outside].tolist(), strict=True):
        wrong[p] = reader.unsafe(t, *stage.pair(p), row)
    faults += [wrong[p] for p in sorted(wrong)]
    sound = ~np.isin(pair, pair[outside])
    return _Support(pair[sound], answers.row[sound], answers.prob[sound], np.array(sorted(wrong), dtype=np.int64))


def _action_values(stage: Stage, layer: Layer, following: _Sum, last_digit: Floats) -> _Sum:
    """Return reward plus expected following value per entry; -inf off FA."""
    q = _Sum(_totals(stage, layer, following.value), np.zeros((len(stage.row), following.off.shape[1])))
    if len(stage.edge_first):
        row = stage.row[stage.safe]
        terms = stage.edge_counts()[:, None]
        size = np.abs(layer.reward[row]) + _expected(stage, layer, np.abs(following.value))
        q.off[stage.safe] = _expected(stage, layer, following.off) + last_digit[row] + rounding(terms) * size
    return q


def _totals(stage: Stage, layer: Layer, following: Floats) -> Floats:
    """Return reward plus expected following number per entry; -inf off FA."""
    found = np.full((len(stage.row), following.shape[1]), -np.inf)
    if len(stage.edge_first):
        found[stage.safe] = layer.reward[stage.row[stage.safe]] + _expected(stage, layer, following)
    return found


def _expected(stage: Stage, layer: Layer, following: Floats) -> Floats:
    """Return the expected following number of each safe entry."""
    found: Floats = np.add.reduceat(layer.prob[stage.edge_out, None] * following[stage.edge_next], stage.edge_first)
    return found


def _entries(stage: Stage, layer: Layer, pair: Ints, row: Ints) -> Ints:
    return stage.first[pair] + row - layer.row_ptr[stage.state[pair]]


def _own_values(stage: Stage, layer: Layer, support: _Support, q: _Sum) -> _Sum:
    """Return V at every pair of a stage, from what joint actions are worth."""
    entry = _entries(stage, layer, support.pair, support.row)
    terms = np.bincount(support.pair, minlength=len(stage.state))[:, None]

    def mean(numbers: Floats) -> Floats:
        found = np.zeros((len(stage.state), numbers.shape[1]))
        np.add.at(found, support.pair, support.prob[:, None] * numbers[entry])
        return found

    v = _Sum(mean(q.value), mean(q.off) + rounding(terms) * mean(np.abs(q.value)))
    v.value[support.wrong] = np.nan
    return v


def _best_and_worst(stage: Stage, layer: Layer, support: _Support, high: Floats, low: Floats) -> tuple[Floats, Floats]:
    """Return the best that safe play and the worst that the policy can bring, (P, N) each."""
    best = _totals(stage, layer, high)
    worst = _totals(stage, layer, low)[_entries(stage, layer, support.pair, support.row)]
    return np.maximum.reduceat(best, stage.first[:-1]), np.minimum.reduceat(worst, begins(support.pair))


def _deviation_values(stage: Stage, layer: Layer, support: _Support, moves: list[Ints], q: _Sum, *, told: bool) -> _Sum:
    """Return W at every pair of a stage, from what joint actions are worth."""
    w = _Sum(*(np.empty((len(stage.state), len(moves))) for _ in range(2)))
    for i, move in enumerate(moves):
        heard = layer.action[support.row, i].astype(np.int64) if told else np.zeros_like(support.row)
        order = np.lexsort((heard, support.pair))
        pair, row, heard = support.pair[order], support.row[order], heard[order]
        instead = np.column_stack([move[row], row])  # (Z, A_i + 1): another action, or as recommended
        entry = _entries(stage, layer, pair[:, None], np.where(instead >= 0, instead, row[:, None]))
        value = np.where(instead >= 0, q.value[entry, i], -np.inf)
        first = begins(pair, heard)
        best = _best_choice(support.prob[order, None], value, q.off[entry, i], first)  # one per recommendation
        again = begins(pair[first])
        groups = np.diff(again, append=len(first))
        w.value[:, i], size = (np.add.reduceat(x, again) for x in (best.value, np.abs(best.value)))
        w.off[:, i] = np.add.reduceat(best.off, again) + np.where(groups > 1, rounding(groups) * size, 0.0)
    return w


def _best_choice(prob: Floats, value: Floats, off: Floats, first: Ints) -> _Sum:
    """Return the best column of each run of lines, added up with these weights.

    It can be off by as much as the largest that a column may truly come to is above it: a column
    that is far below does not count.
    """
    barred = value == -np.inf
    terms = np.diff(first, append=len(prob))[:, None]
    each = np.where(barred, -np.inf, prob * value)
    total = np.add.reduceat(each, first)
    spread = np.add.reduceat(np.where(barred, 0.0, prob * off), first)
    spread += rounding(terms) * np.add.reduceat(np.where(barred, 0.0, np.abs(each)), first)
    best = total.max(axis=1)
    return _Sum(best, (total - best[:, None] + spread).max(axis=1))


def switches(game: MarkovGame, layer: Layer, deviates: tuple[bool, ...]) -> list[Ints]:
    """For each player, row and action b the row where the player plays b instead, (R, A_i).

    -1 where that is not legal; for a player who may not deviate, everywhere but at its own action.
    """
    found = [_replaced(game, layer, i) for i in range(len(deviates))]
    for i in np.flatnonzero(~np.array(deviates)).tolist():
        own = np.arange(len(game.actions[i])) == layer.action[:, [i]]
        found[i] = np.where(own, found[i], -1)
    return found


def _replaced(game: MarkovGame, layer: Layer, player: int) -> Ints:
    state = np.repeat(np.arange(len(game.states)), np.diff(layer.row_ptr))
    others = np.column_stack([state, np.delete(layer.action, player, axis=1)])
    group = np.unique(others, axis=0, return_inverse=True)[1].reshape(-1)
    table = np.full((int(group.max()) + 1, len(game.actions[player])), -1, dtype=np.int64)
    table[group, layer.action[:, player]] = np.arange(len(group))
    return table[group]
