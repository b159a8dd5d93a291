"""The verifier's passes once more, in plain numpy: what the compiled ones find must be the same, word for word.

Three passes over layers of pairs find FS and FA (`feasible_stages`), one from the last step back V, W and the gains (`evaluate`).
Here every edge is stored, and the edges of all pairs of a time are added up at once.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from acegames.model.record import with_fields
from acegames.numerics import UNIT_ROUNDOFF, VERIFY
from acegames.verifier.arrays import begins, number_pairs, offsets, owners, spans
from acegames.verifier.ceilings import Ceilings
from acegames.verifier.deviations import Evaluated, at_start, switches
from acegames.verifier.tolerance import Gains, common_part, normalised
from acegames.verifier.walk import follow

if TYPE_CHECKING:
    from acegames.verifier.arrays import Bools, Floats, Ints


def take_plain_passes(monkeypatch):
    """Let `verify` judge by these passes, until the test ends."""
    monkeypatch.setattr(sys.modules["acegames.verifier"], "_judge", judge)


def judge(counted, units, reader, concept, _threads, _progress):
    """What `acegames.verifier._judge` finds, and the policy followed in any case."""
    return evaluate(counted.game, feasible_stages(counted.game, units), reader, concept), follow(counted, reader, units)


@dataclass(frozen=True, eq=False)
class Stage:
    """The pairs of one time. An *entry* is a joint action of a pair, an *edge* an outcome of it."""

    state: Ints  # (P,)
    spent: Ints  # (P, M) in units; Python ints in an object array where int64 is too small
    first: Ints  # (P+1,) entries of pair p are first[p] : first[p+1], in the order of the layer's rows
    row: Ints  # (E,) row of the layer
    safe: Bools  # (E,) True: the joint action is in FA
    edge_first: Ints  # (number of safe entries,) where the edges of each safe entry begin
    edge_next: Ints  # (L,) pair of the next stage; all 0 after the last
    edge_out: Ints  # (L,) outcome of the layer

    def pair(self, p):
        """State and spending of one pair."""
        return int(self.state[p]), tuple(self.spent[p].tolist())

    def edge_counts(self):
        """Number of edges of each safe entry."""
        return np.diff(self.edge_first, append=len(self.edge_next))


def feasible_stages(game, units):
    """Return FS and FA for t = 0 .. H-1; an empty list when no policy is feasible from every start."""
    stages = _within_budget(game, units)
    alive = np.ones(1, dtype=bool)
    for t in reversed(range(game.horizon)):
        stages[t] = _drop_unsafe(stages[t], alive)
        alive = np.logical_or.reduceat(stages[t].safe, stages[t].first[:-1])
    if not alive.all():
        return []
    return _reached(stages)


def _within_budget(game, units):
    """First pass: `safe` says that no outcome breaks a budget now, or a single one later."""
    ceilings = Ceilings(game, units)
    state = np.array([s for s, _ in game.initial], dtype=np.int64)
    start = [int(x * k) for x, k in zip(game.spent_at_start, units.scale, strict=True)]
    spent = np.array([start] * len(state), dtype=units.dtype).reshape(len(state), len(start))
    stages = []
    for t in range(game.horizon):
        layer = game.layer(t)
        first = offsets(layer.row_ptr[state + 1] - layer.row_ptr[state])
        row = spans(layer.row_ptr[state], layer.row_ptr[state + 1])
        pair = np.repeat(np.arange(len(state)), np.diff(first))
        out = spans(layer.out_ptr[row], layer.out_ptr[row + 1])
        count = layer.out_ptr[row + 1] - layer.out_ptr[row]
        total = spent[np.repeat(pair, count)] + units.costs[game.layer_at[t]][out]
        for column, kept in zip(total.T, game.reservoirs, strict=True):
            column[column < (0 if kept else -np.inf)] = 0
        kept = units.keeps(total, t) & (total <= ceilings.at[t + 1][layer.next_state[out]]).all(axis=1)
        safe = np.logical_and.reduceat(kept, offsets(count)[:-1]) if len(row) else np.zeros(0, dtype=bool)
        on = np.repeat(safe, count)
        out, total = out[on], total[on]
        following, chosen = number_pairs(layer.next_state[out].astype(np.int64), total)
        last = t == game.horizon - 1
        edge_next = np.zeros_like(following) if last else following
        stages.append(Stage(state, spent, first, row, safe, offsets(count[safe])[:-1], edge_next, out))
        state, spent = layer.next_state[out][chosen].astype(np.int64), total[chosen]
    return stages


def _drop_unsafe(stage, alive):
    """Second pass, one stage: leave the entries all of whose successors are alive."""
    if not stage.safe.any():
        return stage
    good = np.logical_and.reduceat(alive[stage.edge_next], stage.edge_first)
    safe = stage.safe.copy()
    safe[stage.safe] = good
    count = stage.edge_counts()
    on = np.repeat(good, count)
    edges = {"edge_first": offsets(count[good])[:-1], "edge_next": stage.edge_next[on], "edge_out": stage.edge_out[on]}
    return replace(stage, safe=safe, **edges)


def _reached(stages):
    """Third pass: leave the pairs that safe entries lead to, and number them anew."""
    kept = []
    here = np.ones(len(stages[0].state), dtype=bool)
    for t, stage in enumerate(stages):
        entry_on = np.repeat(here, np.diff(stage.first))
        count = stage.edge_counts()
        safe_on = entry_on[stage.safe]
        edge_on = np.repeat(safe_on, count)
        following = stage.edge_next[edge_on]
        there = np.zeros(len(stages[t + 1].state) if t + 1 < len(stages) else 1, dtype=bool)
        there[following] = True
        kept.append(
            Stage(
                state=stage.state[here],
                spent=stage.spent[here],
                first=offsets(np.diff(stage.first)[here]),
                row=stage.row[entry_on],
                safe=stage.safe[entry_on],
                edge_first=offsets(count[safe_on])[:-1],
                edge_next=(np.cumsum(there) - 1)[following],
                edge_out=stage.edge_out[edge_on],
            )
        )
        here = there
    return kept


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


def rounding(terms):
    """How far a mean of so many terms can be off, in units of their size."""
    return UNIT_ROUNDOFF * np.maximum(16.0, 2.0 * terms + 6.0)


def evaluate(game, stages, reader, concept):
    """Return root values and the largest gains of each player over all subgames."""
    base = common_part(game, reader.units, [np.unique(stage.row[stage.safe]) for stage in stages])
    game = with_fields(game, layers=tuple(replace(layer, prob=normalised(layer)) for layer in game.layers))
    n, faults = len(game.players), []
    supports = [_read(game, stage, t, reader, faults) for t, stage in enumerate(stages)]
    gains = Gains(reader)
    deviates = concept.deviators(game.players)
    moves = [switches(game, layer, deviates) for layer in game.layers]
    v = w = _Sum(np.zeros((1, n)), np.zeros((1, n)))
    high = low = np.zeros((1, n))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for t in reversed(range(len(stages))):
            stage, layer, support, k = stages[t], game.layer(t), supports[t], game.layer_at[t]
            layer, last_digit = replace(layer, reward=layer.reward - base[t]), 2 * UNIT_ROUNDOFF * np.abs(layer.reward)
            v = _own_values(stage, layer, support, _action_values(stage, layer, v, last_digit))
            if faults:
                continue
            q = _action_values(stage, layer, w, last_digit)
            w = _deviation_values(stage, layer, support, moves[k], q, told=concept.interim)
            high, low = _best_and_worst(stage, layer, support, high, low)
            here = Gains(reader)
            numbers = np.hstack([v.value, w.value, v.off, w.off, high, low])
            here.add(numbers, lambda p, t=t, stage=stage: (t, *stage.pair(p)), start=t == 0)
            gains.put_before(here)
        values = at_start(game, v.value) + base.sum(axis=0) if stages else np.full(n, np.nan)
    pairs = sum(len(stage.state) for stage in stages)
    gains.settle()
    return Evaluated(pairs, values, gains if stages and not faults else None, faults, len(faults), None)


def _read(game, stage, t, reader, faults):
    """Ask the policy at every pair of a stage; a weight outside FA is a fault."""
    layer = game.layer(t)
    answers = reader.read(t, stage.state, stage.spent)
    pair = owners(answers.ptr)
    outside = np.flatnonzero(~stage.safe[_entries(stage, layer, pair, answers.row)])
    wrong = dict(answers.faults)
    for p, row in zip(pair[outside].tolist(), answers.row[outside].tolist(), strict=True):
        wrong[p] = reader.unsafe(t, *stage.pair(p), row)
    faults += [wrong[p] for p in sorted(wrong)]
    sound = ~np.isin(pair, pair[outside])
    return _Support(pair[sound], answers.row[sound], answers.prob[sound], np.array(sorted(wrong), dtype=np.int64))


def _action_values(stage, layer, following, last_digit):
    """Return reward plus expected following value per entry; -inf off FA."""
    q = _Sum(_totals(stage, layer, following.value), np.zeros((len(stage.row), following.off.shape[1])))
    if len(stage.edge_first):
        row = stage.row[stage.safe]
        terms = stage.edge_counts()[:, None]
        size = np.abs(layer.reward[row]) + _expected(stage, layer, np.abs(following.value))
        q.off[stage.safe] = _expected(stage, layer, following.off) + last_digit[row] + rounding(terms) * size
    return q


def _totals(stage, layer, following):
    """Return reward plus expected following number per entry; -inf off FA."""
    found = np.full((len(stage.row), following.shape[1]), -np.inf)
    if len(stage.edge_first):
        found[stage.safe] = layer.reward[stage.row[stage.safe]] + _expected(stage, layer, following)
    return found


def _expected(stage, layer, following):
    """Return the expected following number of each safe entry."""
    return np.add.reduceat(layer.prob[stage.edge_out, None] * following[stage.edge_next], stage.edge_first)


def _entries(stage, layer, pair, row):
    return stage.first[pair] + row - layer.row_ptr[stage.state[pair]]


def _own_values(stage, layer, support, q):
    """Return V at every pair of a stage, from what joint actions are worth."""
    entry = _entries(stage, layer, support.pair, support.row)
    terms = np.bincount(support.pair, minlength=len(stage.state))[:, None]

    def mean(numbers):
        found = np.zeros((len(stage.state), numbers.shape[1]))
        np.add.at(found, support.pair, support.prob[:, None] * numbers[entry])
        return found

    v = _Sum(mean(q.value), mean(q.off) + rounding(terms) * mean(np.abs(q.value)))
    v.value[support.wrong] = np.nan
    return v


def _best_and_worst(stage, layer, support, high, low):
    """Return the best that safe play and the worst that the policy can bring, (P, N) each."""
    best = _totals(stage, layer, high)
    worst = _totals(stage, layer, low)[_entries(stage, layer, support.pair, support.row)]
    worst[support.prob < VERIFY] = np.inf
    return np.maximum.reduceat(best, stage.first[:-1]), np.minimum.reduceat(worst, begins(support.pair))


def _deviation_values(stage, layer, support, moves, q, *, told):
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


def _best_choice(prob, value, off, first):
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
