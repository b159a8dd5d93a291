#!/usr/bin/env python3
"""Check a proof that `acegames certify` wrote, trusting nothing but Python, numpy and this file.

    python ace_check.py PROOF [--exact] [--game DIGEST]

Exit status: 0 when every claim holds, 1 when one does not, 2 when the file cannot be read.

A proof holds a game with hard budgets, a joint policy and claims. The game: at time t, in state s, each joint action (a *row*)
pays every player a reward and has a list of outcomes (probability, next state, costs). What was spent after acting at time t
must not exceed the budget B_t, whatever happens. The policy reads *situations* (t, s, spent). All is derived from the game again:

    FEASIBLE  The situations that play can reach which is sure to keep every budget to the end, and the joint actions that
              are safe there. Integers and sets only: an outcome counts however small its probability.
    SAFE      The policy plays safe joint actions only, in all of these situations. What it can spend at most.
    STABLE    V, the policy's value, and W, that of a player's best safe deviation, in all of them, from the last step back.
              At each step the deviating player does as recommended or, if nothing unsafe can come of it, plays
              CE: another action upon each recommendation;  CCE: one action, whatever would be recommended;
              Nash: as CCE, and the policy is the product of the players' own probabilities.

Floats are the exact binary fractions that they are, and distributions are divided by their sums. Sums in floating point are
moved outward by more than rounding can have changed them (see `mean`), so the bounds printed are true ones. With --exact they
are sums of rational numbers, with no rounding (only those longer than 4096 bits are shortened, outward).
"""

import argparse
import hashlib
import json
import math
import os
import re
import sys
from collections import namedtuple
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace as Record

import numpy as np

MOST_BYTES, MOST_OUTCOMES, FAR = 2**32, 2**26, 2**62  # of a file; of the situations of one time; beyond every total
LAYER = [("row_ptr", "<i8"), ("action", "<i4"), ("reward", "<f8"), ("out_ptr", "<i8")]
LAYER += [("prob", "<f8"), ("next_state", "<i4"), ("cost", "<i4")]
KINDS = {"CE": "correlated equilibrium", "CCE": "coarse correlated equilibrium", "Nash": "Nash equilibrium"}
NOWHERE, DEAD = np.array([2**63 - 1]), np.zeros(1, bool)  # the keys of a state that is not reached, and their life
Outcome = namedtuple("Outcome", "prob after key cost true")  # next state; costs as one number, as counted, as they are


class Unreadable(Exception):
    """The file is damaged, or not a proof that this program understands."""


class Refuted(Exception):
    """A claim is false."""


def need(condition, sentence):
    if not condition:
        raise Unreadable(sentence)


def hold(condition, sentence):
    if not condition:
        raise Refuted(sentence)


# -- Reading: a line of text; a line with the SHA-256 of all that follows; a line of JSON; then arrays, byte after byte.


def read(path):
    need(os.path.isfile(path) and os.path.getsize(path) <= MOST_BYTES, "no such file, or too large")
    with open(path, "rb") as file:
        need(file.readline(80) == b"acegames-proof 1\n", "not a proof, or of another version")
        digest, content = file.readline(80), file.read()
    need(digest == hashlib.sha256(content).hexdigest().encode() + b"\n", "damaged: it has not the digest that it names")
    at = content.index(b"\n") + 1
    header, arrays = json.loads(content[:at]), {}
    for name, kind, *shape in header["arrays"]:
        need(kind in ("<i4", "<i8", "<f8") and all(type(n) is int and n >= 0 for n in shape), "an unknown array")
        need(at + math.prod(shape) * int(kind[2]) <= len(content), "an array is missing")
        arrays[name, kind] = np.frombuffer(content, kind, math.prod(shape), at).reshape(shape)
        at += arrays[name, kind].nbytes
    need(at == len(content), "more bytes than arrays")
    return header, arrays


def rational(text):
    need(re.fullmatch(r"-?[0-9]+(/[0-9]+)?", text), f"{text!r:.40} is not a rational number")
    return Fraction(text)


def whole(values, horizon):
    """Costs as whole multiples of 1 / scale, the scale, and how many different totals there can be."""
    scale = 1
    for value in values:
        scale = math.lcm(scale, value.denominator)
        need(scale.bit_length() < 50_000, "costs have no common unit of sensible size")
    costs = [int(value * scale) for value in values]
    return costs, scale, 2 * horizon * max(map(abs, costs), default=0) + 1


def covered(true, counted, bounds):
    """Whether play that keeps a true budget keeps it as counted: nothing counts for more, or none binds after what does."""
    more, most = [c for x, c in zip(true, counted) if c > x], max([Fraction(0), *counted])
    return not more or all(b is None or max(more) + t * most <= b for t, b in enumerate(bounds))


def read_game(header, arrays):
    """Labels as texts, exact budgets and costs (as they are, and as the policy counts them), and the moves of each time."""
    told, known = header["game"], ("players", "states", "actions", "constraints", "layer_at")
    game = Record(**{key: told[key] for key in known}, m=len(told["constraints"]), horizon=len(told["layer_at"]))
    labels = [x for names in (game.players, game.states, game.constraints, *game.actions) for x in names]
    need(all(type(x) is str for x in labels) and len(game.players) == len(game.actions) > 0, "not the labels of a game")
    game.budgets = [[None if text == "inf" else rational(text) for text in row] for row in told["budgets"]]
    true, counted = ([[*map(rational, values)] for values in x] for x in (told["cost_values"], header["counted"]))
    need(len(game.budgets) == game.horizon and all(len(x) == game.m for x in (true, *game.budgets)), "no budgets")
    need([*map(len, true)] == [*map(len, counted)] and header["concept"] in KINDS, "costs that do not count")
    game.covered = all(map(covered, true, counted, zip(*game.budgets)))
    game.cost, game.scale, width = [*zip(*(whole(x, game.horizon) for x in counted))] or [()] * 3
    game.true, game.true_scale, true_width = [*zip(*(whole(x, game.horizon) for x in true))] or [()] * 3
    need(all(x < FAR for x in width), "costs are too fine to be counted in 64 bits")
    game.key_type, game.true_type = (np.int64 if math.prod(x) < FAR else object for x in (width, true_width))
    game.stride = [math.prod(width[k + 1 :]) for k in range(game.m)]  # spending (x, y) has the key x * width of y + y
    limits = [[FAR if b is None else math.floor(b * k) for b, k in zip(row, game.scale)] for row in game.budgets]
    game.limits = [np.array([min(max(x, -FAR), FAR) for x in row], np.int64) for row in limits]
    game.start = {s: float.fromhex(p) for s, p in told["initial"]}
    need(all(type(s) is int and 0 <= s < len(game.states) and p > 0 for s, p in game.start.items()), "initial states")
    need(abs(math.fsum(game.start.values()) - 1) < 1e-6, "no initial distribution")
    layers = [Record(**{x: arrays[f"{k}.{x}", kind] for x, kind in LAYER}) for k in range(len(set(game.layer_at)))]
    sha = [[hashlib.sha256(repr(a.shape).encode() + a.tobytes()).hexdigest() for a in vars(x).values()] for x in layers]
    game.digest = hashlib.sha256(json.dumps({**told, "layers": sha}, sort_keys=True).encode()).hexdigest()
    moves = dict(enumerate(read_layer(game, layer) for layer in layers))
    game.moves = [moves[k] for k in game.layer_at]
    return game


def read_layer(game, layer):
    """The joint actions of each state at one time, with rewards and outcomes."""
    rows, outs, n = len(layer.action), len(layer.prob), len(game.players)
    for pointer, count, end, least in ((layer.row_ptr, len(game.states), rows, 0), (layer.out_ptr, rows, outs, 1)):
        need(pointer.shape == (count + 1,) and pointer[0] == 0 and pointer[-1] == end, "pointers do not fit")
        need((np.diff(pointer) >= least).all(), "pointers out of order")
    shapes = [layer.action.shape, layer.reward.shape, layer.prob.shape, layer.next_state.shape, layer.cost.shape]
    need(shapes == [(rows, n), (rows, n), (outs,), (outs,), (outs, game.m)], "arrays do not fit together")
    sizes = [len(game.states), *map(len, game.actions), *map(len, game.cost)]
    for indices, size in zip((layer.next_state, *layer.action.T, *layer.cost.T), sizes):
        need(((indices >= 0) & (indices < size)).all(), "an index is out of range")
    need((layer.prob > 0).all() and np.isfinite(layer.reward).all(), "a probability or a reward is none")
    need((abs(np.add.reduceat(layer.prob, layer.out_ptr[:-1]) - 1) < 1e-6).all(), "probabilities do not sum to one")
    codes = layer.cost.tolist()
    cost, true = ([tuple(x[c] for x, c in zip(table, code)) for code in codes] for table in (game.cost, game.true))
    keys = [sum(x * stride for x, stride in zip(c, game.stride)) for c in cost]
    every, moves = [*map(Outcome, layer.prob.tolist(), layer.next_state.tolist(), keys, cost, true)], []
    for begin, end in pairwise(layer.row_ptr.tolist()):
        action, ptr = [tuple(a) for a in layer.action[begin:end].tolist()], layer.out_ptr[begin : end + 1].tolist()
        need(len(set(action)) == len(action), "a joint action comes twice")
        outcomes = [every[a:b] for a, b in pairwise(ptr)]
        moves.append(Record(action=action, reward=layer.reward[begin:end], outcomes=outcomes))
    return moves


# -- FEASIBLE. The situations of one time are {state: ascending keys}; a key is what was spent, as one number.


def spent(game, keys):
    """What was spent, (P, M) in whole units."""
    columns = []
    for stride in game.stride:
        columns.append((2 * keys + stride) // (2 * stride))
        keys = keys - columns[-1] * stride
    return np.array(columns, np.int64).reshape(game.m, len(keys)).T


def find(keys, wanted):
    """Where each wanted key is among ascending ones (if not there, anywhere), and whether it is there."""
    at = np.searchsorted(keys[:-1], wanted)
    return at, keys[at] == wanted


def forward(game, allowed):
    """The situations of t = 0 .. H that joint actions lead to which are allowed(t, state, keys), (P, R)."""
    stages = [{s: np.zeros(1, game.key_type) for s in sorted(game.start)}]
    for t, moves in enumerate(game.moves):
        coming, count = {}, sum(len(keys) * sum(map(len, moves[s].outcomes)) for s, keys in stages[-1].items())
        need(count <= MOST_OUTCOMES, "the game is too large")
        for s, keys in stages[-1].items():
            may = allowed(t, s, keys)
            for r, outcomes in enumerate(moves[s].outcomes):
                for o in outcomes:
                    coming.setdefault(o.after, []).append(keys[may[:, r]] + o.key)
        found = {s: np.unique(np.concatenate(coming[s])) for s in sorted(coming)}
        stages.append({s: keys for s, keys in found.items() if len(keys)})
    return stages


def feasible(game):
    """The situations that safe play reaches, for t = 0 .. H, and which joint actions are safe, {state: (P, R)}."""

    def within(t, s, keys):
        kept, before = np.ones((len(keys), len(game.moves[t][s].action)), bool), spent(game, keys)
        for r, outcomes in enumerate(game.moves[t][s].outcomes):
            for o in outcomes:
                kept[:, r] &= (before + np.array(o.cost, np.int64) <= game.limits[t]).all(axis=1)
        return kept

    reach, safe = forward(game, within), [{}] * game.horizon
    alive = {s: np.ones(len(keys), bool) for s, keys in reach[-1].items()}
    for t in reversed(range(game.horizon)):
        safe[t] = {s: within(t, s, keys) for s, keys in reach[t].items()}
        for s, keys in reach[t].items():
            for r, outcomes in enumerate(game.moves[t][s].outcomes):
                for o in outcomes:
                    at, found = find(reach[t + 1].get(o.after, NOWHERE), keys + o.key)
                    safe[t][s][:, r] &= found & alive.get(o.after, DEAD)[at]
        alive = {s: x.any(axis=1) for s, x in safe[t].items()}
    hold(all(x.all() for x in alive.values()), "no policy keeps every budget for certain")

    def still_safe(t, s, keys):
        return safe[t][s][find(reach[t][s], keys)[0]]

    stages = forward(game, still_safe)
    return stages, [{s: still_safe(t, s, keys) for s, keys in stages[t].items()} for t in range(game.horizon)]


# -- SAFE


def read_policy(safe, told):
    """The policy, {state: (P, R)} for each time: for each situation in turn, a probability for each joint action."""
    plans, at = [], 0
    hold(told.shape == (sum(x.size for may in safe for x in may.values()),), "not a policy for this game")
    for t, stage in enumerate(safe):
        plans.append({})
        for s, may in stage.items():
            plan = plans[t][s] = told[at : at + may.size].reshape(may.shape)
            at += may.size
            hold((plan >= 0).all() and (abs(plan.sum(axis=1) - 1) < 1e-6).all(), f"at t={t}: no distribution")
            hold(not plan[~may].any(), f"at t={t} the policy may play a joint action that is not safe")
    return plans


def spending(game, stages, plans):
    """The largest true total of each constraint after each step, whatever comes of the policy, (T, M)."""
    peaks, most = [], {s: np.zeros((1, game.m), game.true_type) for s in stages[0]}
    reached = {s: np.ones(1, bool) for s in stages[0]}
    for t, plan in enumerate(plans):
        then = {s: np.zeros((len(keys), game.m), game.true_type) for s, keys in stages[t + 1].items()}
        come = {s: np.zeros(len(keys), bool) for s, keys in stages[t + 1].items()}
        for s, keys in stages[t].items():
            for r, outcomes in enumerate(game.moves[t][s].outcomes):
                on = reached[s] & (plan[s][:, r] > 0)
                for o in outcomes if on.any() else ():
                    at, _ = find(stages[t + 1][o.after], keys[on] + o.key)
                    total = most[s][on] + np.array(o.true, game.true_type)
                    before = np.where(come[o.after][at, None], then[o.after][at], total)
                    then[o.after][at], come[o.after][at] = np.maximum(before, total), True
        most, reached = then, come
        peak = np.concatenate([most[s][reached[s]] for s in most]).max(axis=0)
        peaks.append([Fraction(int(x), scale) for x, scale in zip(peak, game.true_scale)])
    return peaks


# -- STABLE


def shorten(x, side):
    return x if x.denominator < 2**4096 else Fraction(-side * math.floor(-side * x * 2**2048), 2**2048)


def numbers_of(game, exact):
    """How to calculate: in rationals, or in floats with what rounding can do to the longest sum that occurs."""
    if exact:
        return Record(of=np.frompyfunc(Fraction, 1, 1), rounding=0, tiny=0, short=np.frompyfunc(shorten, 2, 1))
    moves = [move for layer in game.moves for move in layer if move.action]
    size = game.horizon * max(abs(move.reward).max() for move in moves)
    need(size < 1e300, "rewards are too large for floats; try --exact")
    longest = max(len(game.start), *(max(len(move.action), *map(len, move.outcomes)) for move in moves))
    n = longest * (len(game.players) + 1) + 8
    return Record(of=np.asarray, rounding=n * 2.0**-51, tiny=n * 2.0**-1070, short=lambda x, side: x)


def mean(numbers, weights, values, side, reward=0, total=None):
    """reward + sum of weights * values / sum of weights; with side 1 no less than that, with side -1 no more.

    Each product, sum and quotient is off by at most 2^-53 of its size, or 2^-1075, and a weight that is a product of sums by so
    much for each step to it: the result is off by less than n 2^-52 of |reward| + sum |weights * values| / sum of weights, n as
    in `numbers_of`. It is moved by twice that.
    """
    terms = [w * v for w, v in zip(weights, values)]
    total = sum(weights) if total is None else total
    size = abs(reward) + sum(map(abs, terms)) / total
    return numbers.short(reward + sum(terms) / total + side * (numbers.rounding * size + numbers.tiny), side)


def independent(action, weight, t):
    """The product of the players' own probabilities, (P, R). It must be what is played, every combination included."""
    product, cells, played = 1, 1, weight > 0
    for own in zip(*action):
        mine = {a: sum(weight[:, r] for r, x in enumerate(own) if x == a) for a in set(own)}
        product = product * np.column_stack([mine[a] for a in own])
        cells = cells * sum((x > 0).astype(int) for x in mine.values())
    same = (played.sum(axis=1) == cells).all() and (abs(product - weight)[played] <= 1e-9).all()
    hold(same, f"at t={t} the players do not draw independently")
    need(weight.dtype == object or (product[played] > 1e-290).all(), "probabilities too small for floats; try --exact")
    return np.where(played, product, 0)


def deviation(numbers, move, safe, weight, q, i, told):
    """W of player i, (P, 1), from the worth q of joint actions: a choice for each recommendation if it is told, else one."""
    index, own, best = {a: r for r, a in enumerate(move.action)}, sorted({a[i] for a in move.action}), []
    for rows in [[r for r, a in enumerate(move.action) if a[i] == x] for x in own] if told else [range(len(index))]:
        weights = [weight[:, [r]] for r in rows]
        best.append(mean(numbers, weights, [q[r][:, [i]] for r in rows], 1, total=1))  # as recommended
        for b in own:
            there = [index.get((*move.action[r][:i], b, *move.action[r][i + 1 :])) for r in rows]
            value = mean(numbers, weights, [q[x or 0][:, [i]] for x in there], 1, total=1)
            can = [(w == 0) | (False if x is None else safe[:, [x]]) for w, x in zip(weights, there)]
            best[-1] = np.where(np.logical_and.reduce(can) & (value > best[-1]), value, best[-1])
    return mean(numbers, [1] * len(best), best, 1, total=weight.sum(axis=1)[:, None])


def judge(game, stages, safe, plans, concept, numbers):
    """Bounds on each player's value, from V and W, as W is no less than V; the most it gains in any situation; and where."""
    n = len(game.players)
    gain, where, nothing = [Fraction(0)] * n, [""] * n, [numbers.of(np.zeros((1, n)))] * 2
    bounds = {s: [numbers.of(np.zeros((len(keys), n)))] * 2 for s, keys in stages[-1].items()}
    for t in reversed(range(game.horizon)):
        following, bounds = bounds, {}
        for s, keys in stages[t].items():
            move, q = game.moves[t][s], ([], [])
            for reward, outcomes in zip(numbers.of(move.reward), move.outcomes):
                places = [find(stages[t + 1].get(o.after, NOWHERE), keys + o.key)[0] for o in outcomes]
                for k, side in enumerate((-1, 1)):  # V from below, W from above
                    values = [following.get(o.after, nothing)[k][x] for o, x in zip(outcomes, places)]
                    q[k].append(mean(numbers, [numbers.of(o.prob) for o in outcomes], values, side, reward))
            weight = numbers.of(plans[t][s])
            weight = independent(move.action, weight, t) if concept == "Nash" else weight
            low = mean(numbers, [weight[:, [r]] for r in range(len(move.action))], q[0], -1)
            best = [deviation(numbers, move, safe[t][s], weight, q[1], i, concept == "CE") for i in range(n)]
            bounds[s] = low, np.hstack(best)
            for i, p in enumerate(np.argmax(bounds[s][1] - low, axis=0)):
                most = Fraction(bounds[s][1][p, i]) - Fraction(low[p, i])
                if most > gain[i]:
                    amounts = [str(Fraction(int(x), k)) for x, k in zip(spent(game, keys)[p], game.scale)]
                    gain[i], where[i] = most, f"t={t}, state {shown(game.states[s])}, spent {', '.join(amounts)}"
    start = [numbers.of(game.start[s]) for s in bounds]
    low, high = (mean(numbers, start, [bounds[s][k][0] for s in bounds], side) for k, side in ((0, -1), (1, 1)))
    return low, high, gain, where


# -- The claims


def shown(label):
    return label if label.isprintable() else ascii(label)


def figure(x, rounding):
    x = Fraction(x)
    return f"{Context(7, rounding).divide(Decimal(x.numerator), Decimal(x.denominator)):g}"


def check(path, exact, digest):
    header, arrays = read(path)
    game, claims, name = read_game(header, arrays), header["claims"], shown(str(header["name"]))
    sizes = f"players {len(game.players)}, states {len(game.states)}, steps {game.horizon}, budgets {game.m}"
    print(f"Game {name}: {sizes}.\n  Its digest is {game.digest}.")
    hold(digest in (None, game.digest), "this is another game than the one asked for")
    if "tails" in header["game"]:
        print("  It is the beginning of play without end; what comes later is no part of this proof.")
    stages, safe = feasible(game)
    plans = read_policy(safe, arrays["policy.prob", "<f8"])
    pairs = sum(len(keys) for stage in stages[:-1] for keys in stage.values())
    print(f"Safe: in all {pairs:,} situations that safe play can reach the policy plays only what is safe for certain.")
    peaks = spending(game, stages, plans)
    for m, label in enumerate(map(shown, game.constraints)):
        worst, limits = max(row[m] for row in peaks), [row[m] for row in game.budgets]
        excess = max([Fraction(0), *(row[m] - b for row, b in zip(peaks, limits) if b is not None)])
        hold(worst <= rational(claims["spent"][m]), f"{label} may come to {worst}, more than claimed")
        hold(excess <= rational(claims["excess"][m]), f"{label} may exceed its budget by {excess}")
        budget = " .. ".join(dict.fromkeys("none" if b is None else str(b) for b in (limits[0], limits[-1])))
        kept = f"exceeded by {excess} at most, as costs are rounded" if excess else "never exceeded"
        print(f"  {label}: at most {worst} is spent; budget {budget}, {kept}.")
    low, high, gain, where = judge(game, stages, safe, plans, header["concept"], numbers_of(game, exact))
    which = "safe deviation" if game.covered else "deviation that is safe as the policy counts costs"
    print(f"Stable: a {KINDS[header['concept']]} in all of them ({'exact' if exact else 'floating-point'} arithmetic).")
    for i, label in enumerate(map(shown, game.players)):
        least, most, claimed = map(float.__pos__, (*claims["values"][i], claims["gain"][i]))
        bounds = f"between {figure(low[i], ROUND_FLOOR)} and {figure(high[i], ROUND_CEILING)}"
        gains = figure(gain[i], ROUND_CEILING)
        hold(gain[i] <= Fraction(claimed), f"{label} may gain {gains} by a {which}, more than claimed, at {where[i]}")
        hold(Fraction(least) <= low[i] and high[i] <= Fraction(most), f"{label} expects {bounds}, not what is claimed")
        print(f"  {label}: expects {bounds}; no {which} gains more than {gains} (claimed: {claimed:.7g}).")


def main():
    parser = argparse.ArgumentParser(description="Check a proof written by `acegames certify`.")
    parser.add_argument("proof")
    parser.add_argument("--exact", action="store_true", help="calculate with rational numbers: slow, no rounding")
    parser.add_argument("--game", metavar="DIGEST", help="the game it must be about, as `acegames check GAME` tells it")
    options = parser.parse_args()
    sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with np.errstate(all="ignore"):
            check(options.proof, options.exact, options.game)
    except Refuted as error:
        print(f"NOT TRUE: {error}.")
        return 1
    except Exception as error:  # whatever else goes wrong, nothing is confirmed
        print(f"NOT READ: {error or type(error).__name__}.")
        return 2
    print("Every claim holds.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
