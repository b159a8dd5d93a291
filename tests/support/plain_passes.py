"""The verifier's passes once more, situation by situation: what the compiled ones find must be the same, word for word.

Which situations there are, and what is safe in them, the checker of proofs finds; values, gains and what rounding can have
changed them by are added up here, from the last step back, in loops over what `spec 7` defines.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from acegames.numerics import UNIT_ROUNDOFF, VERIFY
from acegames.verifier.judgement import Evaluated, at_start, switches
from acegames.verifier.tolerance import Gains, common_part, normalised
from acegames.verifier.walk import follow
from proof_checker import CHECK

V, W, V_OFF, W_OFF, BEST, WORST = range(6)  # what is known of a situation, (6, N)


def take_plain_passes(monkeypatch):
    """Let `verify` judge by these passes, until the test ends."""
    monkeypatch.setattr(sys.modules["acegames.verifier"], "_judge", judge)


def judge(counted, units, reader, concept, _threads, _progress):
    """What `acegames.verifier._judge` finds, and the policy followed in any case."""
    return evaluate(counted.game, safe_play(counted.game, units), reader, concept), follow(counted, reader, units)


def safe_play(game, units):
    """{(state, spent in units): {row of the layer: where it leads}} for t = 0 .. H; an empty list when no policy is feasible."""

    def outcomes(k, row):
        outs = range(game.layers[k].out_ptr[row], game.layers[k].out_ptr[row + 1])
        return [(int(game.layers[k].next_state[o]), tuple(map(int, units.costs[k][o])), ()) for o in outs]

    layers = [
        [{row: ((), (), outcomes(k, row)) for row in layer.rows(s)} for s in range(len(game.states))]
        for k, layer in enumerate(game.layers)
    ]
    endless = 1 + units.beyond
    described = SimpleNamespace(
        states=game.states,
        cost=game.constraints,
        start={(s, tuple(map(int, units.start))): p for s, p in game.initial},
        moves=[layers[k] for k in game.layer_at],
        limits=[[endless if b == math.inf else math.floor(b * k) for b, k in zip(row, units.scale, strict=True)] for row in game.budgets],
        endless=endless,
        least=[-endless if x is None else 0 for x in game.reservoirs],
    )  # fmt: skip
    try:
        return CHECK.feasible(described)
    except CHECK.Refuted:
        return []


def rounding(terms):
    """How far a mean of so many terms can be off, in units of their size."""
    return UNIT_ROUNDOFF * max(16.0, 2.0 * terms + 6.0)


def evaluate(game, stages, reader, concept):
    """Return root values and the largest gains of each player over all subgames."""
    n, faults, gains = len(game.players), [], Gains(reader)
    stages, ends = stages[:-1], stages[-1:]
    safe = [
        np.array(sorted({row for options in stage.values() for row in options}), dtype=np.int64) for stage in stages
    ]
    base = common_part(game, reader.units, safe)
    plans = [read(game, stage, t, reader, faults) for t, stage in enumerate(stages)]
    layers = [replace(layer, prob=normalised(layer)) for layer in game.layers]
    moves = [switches(game, layer, concept.deviators(game.players)) for layer in game.layers]
    after = {here: np.zeros((6, n)) for end in ends for here in end}
    with np.errstate(over="ignore", invalid="ignore"):
        for t in reversed(range(len(stages))):
            k, known = game.layer_at[t], {}
            for (here, options), plan in zip(stages[t].items(), plans[t], strict=True):
                worth = {row: worth_of(layers[k], row, base[t], [after[x] for x in to]) for row, to in options.items()}
                known[here] = judged(layers[k], moves[k], worth, plan, concept.interim)
            if not faults:
                earlier, pairs = Gains(reader), list(stages[t])
                numbers = np.array([x.ravel() for x in known.values()])
                earlier.add(numbers, lambda p, t=t, pairs=pairs: (t, *pairs[p]), start=t == 0)
                gains.put_before(earlier)
            after = known
        values = np.full(n, np.nan)
        if stages:
            values = at_start(game, np.array([x[V] for x in after.values()])) + base.sum(axis=0)
    gains.settle()
    return Evaluated(sum(map(len, stages)), values, gains if stages and not faults else None, faults, len(faults), None)


def read(game, stage, t, reader, faults):
    """What the policy plays at every pair of a stage, [(row, probability)], None where it is at fault."""
    state = np.array([s for s, _ in stage], dtype=np.int64)
    spent = np.array([x for _, x in stage], dtype=reader.units.dtype).reshape(len(state), len(game.constraints))
    answers = reader.read(t, state, spent)
    wrong, plans = dict(answers.faults), []
    for p, (here, options) in enumerate(stage.items()):
        entries = slice(answers.ptr[p], answers.ptr[p + 1])
        plans.append(list(zip(answers.row[entries].tolist(), answers.prob[entries].tolist(), strict=True)))
        for row in (row for row, _ in plans[p] if row not in options):
            wrong[p] = reader.unsafe(t, *here, row)
    faults += [wrong[p] for p in sorted(wrong)]
    return [None if p in wrong else plan for p, plan in enumerate(plans)]


def worth_of(layer, row, base, following):
    """What a safe joint action is worth, (6, N): reward and what is known of where it leads."""
    reward, prob = layer.reward[row] - base, layer.prob[layer.outcomes(row)][:, None, None]
    worth, size = (sum(prob * x) for x in (np.array(following), np.abs(following)))
    worth[[V, W, BEST, WORST]] += reward
    size = np.abs(reward) + size[[V, W]]
    worth[[V_OFF, W_OFF]] += 2 * UNIT_ROUNDOFF * np.abs(layer.reward[row]) + rounding(len(prob)) * size
    return worth


def judged(layer, moves, worth, plan, interim):
    """What is known of a situation, (6, N), from what safe joint actions are worth; not a number where the policy is at fault."""
    n = layer.reward.shape[1]
    if plan is None:
        return np.full((6, n), np.nan)
    own = [p * worth[row][[V, V_OFF]] for row, p in plan]
    size = sum(np.abs(p * worth[row][V]) for row, p in plan)
    best = np.max([x[BEST] for x in worth.values()], axis=0)
    worst = np.min([np.full(n, np.inf), *(worth[row][WORST] for row, p in plan if p >= VERIFY)], axis=0)
    value, off = sum(own)
    known = np.array([value, value, off + rounding(len(plan)) * size, off, best, worst])
    for i, move in enumerate(moves):
        groups = {}  # by what is recommended to the player, where that is heard
        for row, p in plan:
            groups.setdefault(layer.action[row, i] if interim else 0, []).append((row, p))
        choices = [best_choice(move, worth, groups[heard], i) for heard in sorted(groups)]
        value, off = (sum(x) for x in zip(*choices, strict=True))
        size = sum(abs(x) for x, _ in choices)
        known[[W, W_OFF], i] = value, off + (rounding(len(groups)) * size if len(groups) > 1 else 0.0)
    return known


def best_choice(move, worth, group, i):
    """The best that player i may do instead of what is recommended, or as it says; and how far that can be off.

    That is as much as the largest that an action may truly come to is above it: one that is far below does not count.
    """
    sums = []
    for instead in zip(*([*move[row].tolist(), row] for row, _ in group), strict=True):
        if all(row in worth for row in instead):
            terms = [(p, worth[row][W, i], worth[row][W_OFF, i]) for row, (_, p) in zip(instead, group, strict=True)]
            off = sum(p * x for p, _, x in terms) + rounding(len(terms)) * sum(abs(p * x) for p, x, _ in terms)
            sums.append((sum(p * x for p, x, _ in terms), off))
    best = np.max([total for total, _ in sums])
    return best, np.max([total - best + off for total, off in sums])
