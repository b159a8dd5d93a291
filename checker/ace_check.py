#!/usr/bin/env python3
"""Check a proof that `acegames prove` wrote, trusting nothing but Python, numpy and this file.

    python ace_check.py PROOF [--game DIGEST] [--exact] [--rounded] [--gain AMOUNT] [--memory GB]

Exit status: 0 when all of what follows holds, and every claim; 1 when something does not; 2 when the file cannot be read.

A proof holds a game with hard budgets, a joint policy and claims. The game: at time t, in state s, each joint action
pays every player a reward and has a list of outcomes (probability, next state, costs). What was spent after acting at
time t must not exceed the budget B_t, whatever happens. Of a reservoir (a battery) that is what is missing: at first
capacity - start, and never below 0. The policy reads *situations* (t, s, spent). The checker finds
    FEASIBLE  the situations that play can reach which is sure to keep every budget to the end, and the joint actions
              that are safe there. Integers and sets only: an outcome counts however small its probability.
    SAFE      that the policy plays safe joint actions only, in all of these situations; and the most it can spend. A policy
              may round costs and count otherwise than they are: what then is exceeded only --rounded accepts.
    STABLE    V, the policy's value, and W, that of a player's best safe deviation, in all of them, from the last step
              back. At each step the deviating player does as recommended or, if nothing unsafe can come of it, plays
              CE: another action upon each recommendation;  CCE: one action, whatever would be recommended;
              Nash: as CCE, and the policy is the product of the players' own probabilities.
              W - V is the player's gain. Beyond what rounding can have changed, SMALL of the stake there is accepted:
              of the best total of safe play, less the worst of what the policy plays with probability SMALL or more.
Floats are the exact binary fractions that they are, and distributions are divided by their sums. Every bound is a true
one: sums of floats are moved outward by more than rounding can have changed them; with --exact they are rational.
"""

import argparse
import hashlib
import json
import math
import os
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import chain, pairwise
from operator import add, getitem, le, mul, sub
from types import SimpleNamespace as Record

import numpy as np

MOST_BYTES = 2**31  # of situations, about; a file may have a quarter of that
SMALL = Fraction(1, 10**8)
# sides, and whether `rough`; see `judge`
BOUNDS = ((-1, False), (1, True), (-1, True), (1, False), (-1, False), (1, False))
LAYER = {"row_ptr": "<i8", "action": "<i4", "reward": "<f8", "out_ptr": "<i8"}
LAYER |= {"prob": "<f8", "next_state": "<i4", "cost": "<i4"}
KINDS = {"CE": "correlated equilibrium", "CCE": "coarse correlated equilibrium", "Nash": "Nash equilibrium"}


class Refuted(Exception):
    """A claim is false. (Any other exception: the file is damaged, or not a proof that this program understands.)"""


def need(condition, sentence, error=ValueError):
    if not condition:
        raise error(sentence)


def read(path):
    """A line of text; a line with the SHA-256 of all that follows; a line of JSON; then arrays, byte after byte."""
    with open(path, "rb") as file:
        content = file.read(min(MOST_BYTES // 4, os.fstat(file.fileno()).st_size or MOST_BYTES // 4) + 1)
    need(len(content) <= MOST_BYTES // 4, "the file is too large (see --memory)")
    first, digest, content, *_ = *content.split(b"\n", 2), b"", b""
    need(digest == hashlib.sha256(content).hexdigest().encode(), "damaged: it has not the digest that it names")
    at, arrays = content.index(b"\n") + 1, {}
    header = json.loads(content[:at], parse_constant=rational)  # which NaN and Infinity are not
    need(first == b"acegames-proof 1", "not a proof, or of another version")
    for name, kind, *shape in header["arrays"]:
        need(kind in LAYER.values() and all(n >= 0 for n in shape), "an unknown array")
        arrays[name, kind] = np.frombuffer(content, kind, math.prod(shape), at).reshape(shape)
        at += arrays[name, kind].nbytes
    need(at == len(content), "more bytes than arrays")
    return header, arrays


def rational(text):
    """An exact number such as -7/2, or infinity."""
    return math.inf if text == "inf" else Fraction(*map(int, text.split("/")))


def covered(true, counted, bounds, start):
    """Whether play that keeps a true budget keeps it as counted: no cost counts for more, or none matters after that."""
    more, most = [c for x, c in zip(true, counted) if c > x], max([0, *counted])
    return not more or all(start + max(more) + t * most <= bound for t, bound in enumerate(bounds))


def is_distribution(chances):
    """Whether these are probabilities, none of them 0. Their sum may be off by rounding."""
    return all(p > 0 for p in chances) and abs(math.fsum(chances) - 1) < 1e-6


def read_game(header, arrays, exact=False):
    """Labels; costs (as they are, and as the policy counts them) and budgets in whole units; and the moves of each time."""
    told = header["game"]
    labels = {k: [x if x.isprintable() else ascii(x) for x in told[k]] for k in ("players", "states", "constraints")}
    game = Record(**labels, exact=exact, number=Fraction if exact else float)
    stored = told.get("reservoirs", [None] * len(told["constraints"]))  # capacity and level at the beginning
    tables = told["cost_values"], header["counted"], told["budgets"], [x or ("0", "0") for x in stored]
    tables = [[[*map(rational, row)] for row in table] for table in tables]
    game.unit, game.budgets = 1, tables[2]
    for denominator in {x.denominator for table in tables for row in table for x in row if x != math.inf}:
        game.unit = math.lcm(game.unit, denominator)
        need(game.unit < 2**16384, "costs have no common unit of sensible size")
    game.true, game.cost = ([[int(x * game.unit) for x in row] for row in table] for table in tables[:2])
    need([*map(len, game.true)] == [*map(len, game.cost)], "not a count for each cost")
    need({*map(len, game.budgets), len(stored)} == {len(game.cost)}, "not a budget for each cost and time")
    for x, (capacity, start), bounds in zip(stored, tables[3], zip(*game.budgets)):
        fits = 0 <= min(start, *bounds) <= max(start, *bounds) <= capacity < math.inf
        need(x is None or fits, "a reservoir's level or bound is no level of it")
    spent = tuple(int((capacity - start) * game.unit) for capacity, start in tables[3])
    game.endless = 1 + sum(spent) + len(told["layer_at"]) * max(map(abs, chain([0], *game.true, *game.cost)))
    game.least = [-game.endless if x is None else 0 for x in stored]
    game.limits = [[game.endless if x == math.inf else int(x * game.unit) for x in row] for row in game.budgets]
    game.covered = all(map(covered, game.true, game.cost, zip(*game.limits), spent))
    need(len({s for s, _ in told["initial"]}) == len(told["initial"]), "an initial state comes twice")
    game.start = {(s, spent): float.fromhex(p) for s, p in sorted(told["initial"])}
    need(all(0 <= s < len(game.states) for s, _ in game.start), "no such initial state")
    need(is_distribution(game.start.values()), "no initial distribution")
    layers = [[arrays[f"{k}.{x}", LAYER[x]] for x in LAYER] for k in range(len(set(told["layer_at"])))]
    sha = [[hashlib.sha256(repr(a.shape).encode() + a.tobytes()).hexdigest() for a in layer] for layer in layers]
    game.digest = hashlib.sha256(json.dumps({**told, "layers": sha}, sort_keys=True).encode()).hexdigest()
    moves = dict(enumerate(read_layer(game, [*map(len, told["actions"])], *layer) for layer in layers))
    game.moves = [moves[k] for k in told["layer_at"]]
    return game


def spent_after(game, spent, cost):
    """What was spent after one more cost."""
    return tuple(map(max, map(add, spent, cost), game.least))


def pieces(pointers, items):
    """The items between one pointer and the next."""
    fits = pointers[0] == 0 and pointers[-1] == len(items) and (pointers[1:] >= pointers[:-1]).all()
    need(fits, "pointers do not fit")
    return [items[begin:end] for begin, end in pairwise(pointers.tolist())]


def read_layer(game, sizes, row_ptr, action, reward, out_ptr, prob, next_state, cost):
    """{joint action: (rewards, chances, outcomes)} of each state; an outcome: (next state, counted costs, true costs)."""
    rows, outs, n = len(out_ptr) - 1, len(prob), len(game.players)
    shapes = [x.shape for x in (action, reward, prob, next_state, cost)]
    need(shapes == [(rows, n), (rows, n), (outs,), (outs,), (outs, len(game.cost))], "arrays do not fit together")
    need(len(sizes) == n > 0, "not actions for each player")
    for codes, size in ((action, sizes), (cost, [*map(len, game.cost)]), (next_state, len(game.states))):
        need(((codes >= 0) & (codes < size)).all(), "an index is out of range")
    need(np.isfinite(reward).all(), "a reward is not finite")
    costs = [[tuple(map(getitem, table, codes)) for codes in cost.tolist()] for table in (game.cost, game.true)]
    outcomes, chances = pieces(out_ptr, [*zip(next_state.tolist(), *costs)]), pieces(out_ptr, prob.tolist())
    need(all(map(is_distribution, chances)), "probabilities do not sum to one")
    rewards, chances = ([[*map(game.number, x)] for x in table] for table in (reward.tolist(), chances))
    every = [*zip(map(tuple, action.tolist()), zip(rewards, chances, outcomes))]
    moves = [dict(part) for part in pieces(row_ptr, every)]
    need(len(moves) == len(game.states) and sum(map(len, moves)) == rows, "a joint action comes twice")
    return moves


def ceilings(game):
    """The totals of each state, of t = 0 .. H, above which no play keeps the budget of that one cost to the end."""
    caps = [[[game.endless] * len(game.cost)] * len(game.states)]
    for moves, limits in zip(reversed(game.moves), reversed(game.limits), strict=True):
        bounds = [[*map(min, limits, cap)] for cap in caps[-1]]
        caps.append([])
        for actions in moves:
            rows = [[map(sub, bounds[s], cost) for s, cost, _ in outcomes] for _, _, outcomes in actions.values()]
            rows = [[*map(min, zip(*row))] for row in rows]
            caps[-1].append([*map(max, zip(*rows, [-game.endless] * len(game.cost)))])
    return caps[::-1]


def feasible(game):
    """{situation: {safe joint action: where it leads}} of t = 0 .. H, in order; a situation being (state, spent)."""
    situation = 400 + 40 * len(game.cost)  # bytes, about
    need(len(game.moves) * len(game.states) * situation < MOST_BYTES, "the game is too large (see --memory)")
    stages, size, caps = [dict.fromkeys(game.start)], 0, ceilings(game)
    for moves, limits, cap in zip(game.moves, game.limits, caps[1:], strict=True):  # forward through what may keep them
        stages.append({})
        for state, spent in stages[-2]:
            stages[-2][state, spent] = options = {}
            for action, (_, _, outcomes) in moves[state].items():
                after = [(s, spent_after(game, spent, cost)) for s, cost, _ in outcomes]
                if all(all(map(le, sums, map(min, limits, cap[s]))) for s, sums in after):
                    options[action] = [stages[-1].setdefault(x, x) for x in after]
            size += situation + sum(120 + 8 * len(after) for after in options.values())
            need(size + situation * len(stages[-1]) < MOST_BYTES, "the game is too large (see --memory)")
    for t in reversed(range(len(game.moves))):  # back: what can be kept to the end
        for here, options in stages[t].items():
            stages[t][here] = {a: after for a, after in options.items() if all(map(stages[t + 1].__contains__, after))}
        stages[t] = {here: options for here, options in stages[t].items() if options}
    need(len(stages[0]) == len(game.start), "no policy keeps every budget for certain", Refuted)
    for t in range(len(game.moves)):  # forward again, through that alone
        reached = {x for options in stages[t].values() for after in options.values() for x in after}
        stages[t + 1] = {here: stages[t + 1][here] for here in sorted(reached)}
    return stages


def follow(game, stages, told, concept):
    """The policy as told, {situation: {joint action: chance}} of each time, and the largest true totals after each step."""
    size = sum(len(moves[state]) for moves, stage in zip(game.moves, stages) for state, _ in stage)
    need(told.shape == (size,), "not a policy for this game", Refuted)
    plans, peaks, chances, most = [], [], map(float, told), {here: here[1] for here in game.start}
    for t, moves in enumerate(game.moves):
        plans.append({})
        before, most = most, {}  # the largest totals in each situation that the policy comes to
        for here, safe in stages[t].items():
            plan = {a: p for a, p in zip(moves[here[0]], chances) if p != 0}
            need(is_distribution(plan.values()), f"at t={t} the policy is no distribution", Refuted)
            need(plan.keys() <= safe.keys(), f"at t={t} the policy may play what is not safe", Refuted)
            plan = independent(plan, t, game.exact) if concept == "Nash" else plan
            plans[t][here] = {a: game.number(p) for a, p in plan.items()}
            for action in plan if here in before else ():
                for after, (_, _, costs) in zip(safe[action], moves[here[0]][action][2]):
                    totals = spent_after(game, before[here], costs)
                    most[after] = tuple(map(max, totals, most.get(after, totals)))
        peaks.append([*map(max, zip(*most.values()))])
    return plans, peaks


def independent(plan, t, exact):
    """The product of the players' own probabilities. It must be what is played, every combination included."""
    total, own = sum(map(Fraction, plan.values())), [{} for _ in next(iter(plan))]
    plan = {action: Fraction(p) / total for action, p in plan.items()}
    for action, p in plan.items():
        for mine, a in zip(own, action):
            mine[a] = mine.get(a, 0) + p
    product = {action: math.prod(mine[a] for mine, a in zip(own, action)) for action in plan}
    same = math.prod(map(len, own)) == len(plan) and all(abs(product[a] - plan[a]) <= 1e-9 for a in plan)
    need(same, f"at t={t} the players do not draw independently", Refuted)
    need(exact or min(product.values()) > 1e-290, "probabilities too small for floats; try --exact")
    return product


def mean(game, weights, values, side, rough=False, reward=0, shares=None):
    """reward + sum of weights * values / sum of shares (or weights); with side 1 no less than that, with -1 no more.

    Rational numbers of more than 4096 bits are shortened. In floats each weight, product, sum (`fsum`) and quotient is
    off by at most 2^-53 of its size, or 2^-1074, and shares sum to about 1. So the result is off by less than 2^-50 of
    |reward| + sum |weights * values| / sum of shares, and 2^-1071 for each term. It is moved by twice that. If it is to be
    rough, a rational number is moved too: by as much as floats could have been off.
    """
    plus, terms = sum if game.exact else math.fsum, [*map(mul, weights, values)]
    total = plus(shares or weights)
    result = reward + plus(terms) / total
    if rough or not game.exact:
        size = abs(reward) + plus(map(abs, terms)) / total
        need(game.exact or size < 1e300, "numbers too large for floats; try --exact")
        result += side * (size / 2**49 + game.number(2.0**-1070) * len(terms))
    if not game.exact or result.denominator < 2**4096:
        return result
    return side * Fraction(math.ceil(side * result * 2**2048), 2**2048)


def deviation(game, i, plan, worth, told, side, rough):
    """W of player i, from the worth of safe joint actions: a choice for each recommendation if it is told, else one."""
    groups, best = {}, []
    for action in plan:
        groups.setdefault(action[i] if told else None, []).append(action)
    for group in groups.values():
        choices = [group, *([(*a[:i], own, *a[i + 1 :]) for a in group] for own in {a[i] for a in worth})]
        safe = [[worth[a] for a in choice] for choice in choices if worth.keys() >= set(choice)]
        best.append(max(mean(game, [plan[a] for a in group], x, side, rough, shares=plan.values()) for x in safe))
    return mean(game, [1] * len(best), best, side, rough, shares=[1])


def judge(game, stages, plans, i, told, shared):
    """V of player i from below and W from above in the beginning; the largest gain, and the largest share of a stake.

    These two are (amount, gain, stake, where, gain beyond rounding, situation). Six bounds are found together: on V and W from below and
    above, on the best that safe play can bring from below, on the worst that the policy can from above. The inner ones of V and W are
    rough, and rewards are read as far inward as their last digits allow: a gain that is left is not rounding.
    What the rewards of a step share is left out and added in the end. Leaving it out rounds nothing where that matters:
    floats x, y with y/2 <= x <= 2y have an exact difference.
    """
    bounds, largest, share = dict.fromkeys(stages[-1], (0,) * 6), (0, 0, 0, "", 0, None), (0, 0, 0, "", 0, None)
    for t in reversed(range(len(plans))):
        after, bounds = bounds, {}
        for here, plan in plans[t].items():
            worth = [{} for _ in BOUNDS]  # of safe joint actions
            for action, leads in stages[t][here].items():
                rewards, chances, _ = game.moves[t][here[0]][action]
                for k, (side, rough) in enumerate(BOUNDS):
                    reward = rewards[i] - shared[t] + rough * side * abs(rewards[i]) / 2**51
                    worth[k][action] = mean(game, chances, [after[x][k] for x in leads], side, rough, reward)
            own = [mean(game, plan.values(), [worth[k][a] for a in plan], *BOUNDS[k]) for k in (0, 1)]
            best = [deviation(game, i, plan, worth[k], told, *BOUNDS[k]) for k in (2, 3)]
            plausible = [worth[5][a] for a, p in plan.items() if p >= SMALL]  # less would buy a stake for nothing
            bounds[here] = *own, *best, max(worth[4].values()), min(plausible or [max(worth[4].values())])
            low, own, best, high, most, least = map(Fraction, bounds[here])
            gain, stake, certain = high - low, max(most - least, 0), max(best - own, 0)
            amounts = ", ".join(str(Fraction(x, game.unit)) for x in here[1])
            found = gain, stake, f"t={t}, state {game.states[here[0]]}, spent {amounts}", certain, (t, here)
            largest = max(largest, (gain, *found), key=lambda x: x[0])
            share = max(share, (certain and (certain / stake if stake else math.inf), *found), key=lambda x: x[0])
    start, base = [game.number(game.start[here]) for here in bounds], sum(map(Fraction, shared))
    low, high = (Fraction(mean(game, start, [x[k] for x in bounds.values()], BOUNDS[k][0])) for k in (0, 3))
    return base + low, base + high, largest, share


def common(game, stages, i):
    """What player i's rewards share at each step: where the median and the best of each state differ by far less, their middle."""
    shared = []
    for moves, stage in zip(game.moves, stages):
        safe = {(s, action) for (s, _), options in stage.items() for action in options}
        rewards = sorted((Fraction(moves[s][action][0][i]), s) for s, action in safe)
        marks = [rewards[len(rewards) // 2][0], *{s: x for x, s in rewards}.values()]
        middle = (min(marks) + max(marks)) / 2
        shared.append(game.number(middle if 64 * (max(marks) - min(marks)) < abs(middle) else 0))
    return shared


def figure(x, rounding=ROUND_CEILING):
    """An exact number if it is short; else seven digits of it, rounded outward."""
    if isinstance(x, Fraction) and len(str(x)) < 12:
        return str(x)
    return f"{Context(7, rounding).divide(*map(Decimal, Fraction(x).as_integer_ratio())):g}"


def spending(game, peaks, claims, rounded):
    """A line for each cost. Budgets may only be exceeded by rounding costs, and by what is claimed."""
    tables = zip(*peaks), zip(*game.limits), zip(*game.budgets)
    columns = zip(game.constraints, game.least, *tables, claims["spent"], claims["excess"], strict=True)
    for label, least, totals, limits, budgets, spent, over in columns:
        worst, excess = (Fraction(x, game.unit) for x in (max(totals), max(0, *map(sub, totals, limits))))
        need(worst <= rational(spent) < math.inf, f"{label} may come to {figure(worst)}, more than claimed", Refuted)
        more = "as costs are rounded (--rounded accepts that)" if excess <= rational(over) else "more than claimed"
        allowed = rational(over) if rounded else min(0, rational(over))
        need(excess <= allowed, f"{label} may exceed its budget by {figure(excess)}, {more}", Refuted)
        bounds = ["none" if x == math.inf else figure(x, ROUND_FLOOR) for x in (budgets[0], budgets[-1])]
        kept = f"exceeded by {figure(excess)} at most, as costs are rounded" if excess else "never exceeded"
        word = "spent; budget" if least else "missing, of what a full one holds; bound"
        yield f"  {label}: at most {figure(worst)} is {word} {' .. '.join(dict.fromkeys(bounds))}, {kept}."


def gains(game, stages, plans, concept, claims, most_gain):
    """A line for each player, whose gain must be small, and no more than is claimed."""
    numbers = [*claims["gain"], *(x for pair in claims["values"] for x in pair)]
    need(all(type(x) in (int, float) for x in numbers), "a claim is no number")
    which = "safe deviation" if game.covered else "deviation that is safe as the policy counts costs"
    claimed = zip(game.players, claims["gain"], claims["values"], strict=True)
    for i, (label, largest, (least, most)) in enumerate(claimed):
        low, high, *found = judge(game, stages, plans, i, concept == "CE", common(game, stages, i))
        gain, share = (x[0] for x in found)
        too_much = [f"{label} may gain {figure(x)} of {figure(y)} by a {which}, at {at}" for _, x, y, at, *_ in found]
        need(gain <= largest, f"{too_much[0]}; that is more than claimed", Refuted)
        if most_gain is None:
            need(
                share <= SMALL, f"{too_much[1]}; more than {float(SMALL)} of a stake is too much (see --gain)", Refuted
            )
        else:
            need(gain <= most_gain, f"{too_much[0]}; more than {figure(most_gain)} is too much (see --gain)", Refuted)
        bounds = f"between {figure(low, ROUND_FLOOR)} and {figure(high)}"
        need(least <= low and high <= most, f"{label} expects {bounds}, not what is claimed", Refuted)
        told = f"no {which} gains more than {figure(gain)}; as a share of the stake, at most {figure(share)}"
        yield f"  {label}: expects {bounds}; {told}."


def check(path, exact=False, digest=None, rounded=False, most_gain=None):
    """Print what holds, as far as it does."""
    header, arrays = read(path)
    game, claims, concept = read_game(header, arrays, exact), header["claims"], header["concept"]
    need(concept in KINDS, f"{concept!r:.60} is a kind of equilibrium that this program does not know")
    sizes = f"players {len(game.players)}, states {len(game.states)}, steps {len(game.moves)}, budgets {len(game.cost)}"
    print(f"Game {str(header['name'])!r}: {sizes}.\n  Its digest is {game.digest}.")
    asked = game.digest if digest is None else digest.lower()
    need(len(asked) >= 12 and game.digest.startswith(asked), "this is another game than the one asked for", Refuted)
    if "tails" in header["game"]:
        print("  It is the beginning of play without end; what comes later is no part of this proof.")
    stages = feasible(game)
    plans, peaks = follow(game, stages, arrays["policy.prob", "<f8"], concept)
    lines, count = [*spending(game, peaks, claims, rounded)], sum(map(len, plans))
    how = "for certain" if game.true == game.cost else "for certain as it counts costs, which it rounds"
    safe = f"Safe: in all {count:,} situations that safe play can reach the policy plays only what is safe {how}."
    print(safe, *lines, sep="\n")
    counts = "the policy counts costs too high, so some safe deviations are left out (--rounded accepts that)"
    need(rounded or game.covered, counts, Refuted)
    lines = [*gains(game, stages, plans, concept, claims, most_gain)]
    stable = f"Stable: a {KINDS[concept]} in all of them ({'exact' if exact else 'floating-point'} arithmetic)."
    print(stable, *lines, "Every claim holds.", sep="\n")


def main():
    global MOST_BYTES
    parser = argparse.ArgumentParser(description="Check a proof written by `acegames prove`.")
    parser.add_argument("proof")
    parser.add_argument("--game", metavar="DIGEST", help="the game it must be about, by 12 or more digits")
    parser.add_argument("--exact", action="store_true", help="calculate with rational numbers: slow, no rounding")
    parser.add_argument("--rounded", action="store_true", help="accept that the policy rounds costs, as is told then")
    parser.add_argument("--gain", metavar="GAIN", type=Fraction, help="largest gain to accept; else 1e-8 of the stake")
    told = "what situations may take, about; 2 by default, and one takes 1 to 2 kB. The file may have a quarter of that"
    parser.add_argument("--memory", metavar="GB", type=float, default=MOST_BYTES / 2**30, help=told)
    options = parser.parse_args()
    sys.stdout.reconfigure(errors="backslashreplace")
    try:
        need(0 < options.memory < 1e9, f"--memory: got {options.memory}, must be a number of GB above 0")
        MOST_BYTES = int(options.memory * 2**30)
        check(options.proof, options.exact, options.game, options.rounded, options.gain)
        sys.stdout.flush()
    except BrokenPipeError:  # nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # whatever goes wrong, nothing is confirmed
        print(f"NOT {'TRUE' if isinstance(error, Refuted) else 'READ'}: {str(error) or type(error).__name__}.")
        return 1 if isinstance(error, Refuted) else 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
