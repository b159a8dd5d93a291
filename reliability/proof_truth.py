"""Is what a proof claims true? Slow, obvious and exact: dictionaries, recursion and rationals, from the definitions.

It shares no code with the checker.

`judge(content)` returns a `Verdict`, or raises `Nonsense` where a file does not describe a game, a policy and claims.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

TYPES = {"row_ptr": "<i8", "action": "<i4", "reward": "<f8", "out_ptr": "<i8", "prob": "<f8", "next_state": "<i4"}
TYPES["cost"] = "<i4"


class Nonsense(Exception):
    """The file is no proof."""


@dataclass(frozen=True)
class Verdict:
    """Whether all claims are true, and how far the closest gain is from its claim, in units of the claim.

    Claims that are true may still say little. `equilibrium`: budgets are kept to the last unit and no gain is more than half of 1e-8 of
    what is at stake in its situation; `poor`: a budget may be exceeded, or somebody gains clearly more than 1e-8 of it.
    """

    true: bool
    margin: float
    equilibrium: bool = False
    poor: bool = True


def unpack(content: bytes) -> tuple[dict, dict]:
    """Header and arrays of a proof, whatever its digest."""
    _, _, line, data = content.split(b"\n", 3)
    header, arrays, at = json.loads(line), {}, 0
    for name, kind, *shape in header["arrays"]:
        size = math.prod(shape) * np.dtype(kind).itemsize
        arrays[name] = np.frombuffer(data[at : at + size], kind).reshape(shape).copy()
        at += size
    if at != len(data):
        raise Nonsense("bytes left over")
    return header, arrays


def pack(header: dict, arrays: dict) -> bytes:
    """The bytes of a proof with the right digest, whatever it says."""
    header = {**header, "arrays": [[name, a.dtype.str, *a.shape] for name, a in arrays.items()]}
    rest = json.dumps(header).encode() + b"\n" + b"".join(a.tobytes() for a in arrays.values())
    return b"acegames-proof 1\n" + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def judge(content: bytes) -> Verdict:
    """Whether the claims of a proof are true."""
    try:
        header, arrays = unpack(content)
        return _judge(header, arrays)
    except (Nonsense, ValueError, KeyError, IndexError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise Nonsense(f"{type(error).__name__}: {error}") from None


def check(condition: bool) -> None:
    """Nonsense unless it holds."""
    if not condition:
        raise Nonsense


def rational(text: str) -> Fraction:
    """An exact number as proofs write it."""
    check(re.fullmatch(r"-?[0-9]+(/[0-9]+)?", text) is not None)
    return Fraction(text)


def shares(numbers: list[float]) -> list[Fraction]:
    """Exact probabilities; Nonsense unless they are nearly so."""
    check(all(p >= 0 and math.isfinite(p) for p in numbers) and abs(math.fsum(numbers) - 1) < 1e-6)
    total = sum(map(Fraction, numbers))
    return [Fraction(p) / total for p in numbers]


def spell_out(game: dict, counted: list, arrays: dict) -> list:
    """moves[t][s] = [(action, rewards, [(probability, next state, counted costs, true costs)])]."""
    true = [[rational(x) for x in values] for values in game["cost_values"]]
    count = [[rational(x) for x in values] for values in counted]
    check([len(x) for x in true] == [len(x) for x in count] and len(true) == len(game["constraints"]))
    layers = {}
    for k in sorted(set(game["layer_at"])):
        a = {name: arrays[f"{k}.{name}"] for name in TYPES}
        check(all(a[name].dtype == kind for name, kind in TYPES.items()))
        rows, outs, n = len(a["action"]), len(a["prob"]), len(game["players"])
        check(a["action"].shape == a["reward"].shape == (rows, n) and np.isfinite(a["reward"]).all())
        check(a["next_state"].shape == a["prob"].shape == (outs,) and a["cost"].shape == (outs, len(true)))
        for name, runs, end in (("row_ptr", len(game["states"]), rows), ("out_ptr", rows, outs)):
            check(a[name].shape == (runs + 1,) and a[name][0] == 0 and a[name][-1] == end)
        check((np.diff(a["row_ptr"]) >= 0).all() and (np.diff(a["out_ptr"]) >= 1).all() and (a["prob"] > 0).all())
        check(((a["next_state"] >= 0) & (a["next_state"] < len(game["states"]))).all() and (a["cost"] >= 0).all())
        layers[k] = [[] for _ in game["states"]]
        for s in range(len(game["states"])):
            for r in range(a["row_ptr"][s], a["row_ptr"][s + 1]):
                span = range(a["out_ptr"][r], a["out_ptr"][r + 1])
                chance = shares([float(a["prob"][o]) for o in span])
                outcomes = [
                    (
                        p,
                        int(a["next_state"][o]),
                        tuple(count[m][c] for m, c in enumerate(a["cost"][o])),
                        tuple(true[m][c] for m, c in enumerate(a["cost"][o])),
                    )
                    for p, o in zip(chance, span, strict=True)
                ]
                action = tuple(int(x) for x in a["action"][r])
                check(all(0 <= x < len(names) for x, names in zip(action, game["actions"], strict=True)))
                layers[k][s].append((action, tuple(map(Fraction, a["reward"][r].tolist())), outcomes))
            check(len({move[0] for move in layers[k][s]}) == len(layers[k][s]))
    check(sorted(layers) == list(range(len(layers))) and len(game["players"]) == len(game["actions"]) > 0)
    return [layers[k] for k in game["layer_at"]]


def within(x: tuple, bounds: list) -> bool:
    """Whether a total keeps the budgets."""
    return all(b == "inf" or a <= rational(b) for a, b in zip(x, bounds, strict=True))


def _judge(header: dict, arrays: dict) -> Verdict:
    game, claims, kind = header["game"], header["claims"], header["concept"]
    moves, budgets, horizon = spell_out(game, header["counted"], arrays), game["budgets"], len(game["layer_at"])
    width, players = len(game["constraints"]), range(len(game["players"]))
    check(kind in ("CE", "CCE", "Nash") and len(budgets) == horizon > 0 and all(len(row) == width for row in budgets))
    every = [x for names in (game["players"], game["states"], game["constraints"], *game["actions"]) for x in names]
    check(all(isinstance(x, str) for x in every))
    start = {s: float.fromhex(p) for s, p in game["initial"]}
    check(all(type(s) is int and 0 <= s < len(game["states"]) and p > 0 for s, p in start.items()))
    chance = dict(zip(start, shares(list(start.values())), strict=True))
    kept = [x and [*map(rational, x)] for x in game.get("reservoirs", [None] * width)]  # capacity, first level
    check(len(kept) == width and all(x is None or (len(x) == 2 and 0 <= x[1] <= x[0]) for x in kept))
    begin = tuple(Fraction(0) if x is None else x[0] - x[1] for x in kept)

    def plus(c: tuple, d: tuple) -> tuple:
        """What was spent after one more cost."""
        return tuple(a + b if x is None else max(a + b, Fraction(0)) for a, b, x in zip(c, d, kept, strict=True))

    check(all(b == "inf" or rational(b) is not None for row in budgets for b in row))

    @functools.cache
    def alive(t: int, s: int, c: tuple) -> bool:
        return t == horizon or any(safe(t, c, move) for move in moves[t][s])

    def safe(t: int, c: tuple, move: tuple) -> bool:
        return all(within(plus(c, d), budgets[t]) and alive(t + 1, s2, plus(c, d)) for _, s2, d, _ in move[2])

    if not all(alive(0, s, begin) for s in start):
        return Verdict(False, math.inf)

    # the policy, and whether it is safe
    listed, at, here = {}, 0, {(s, begin) for s in start}
    prob = arrays["policy.prob"]
    check(prob.dtype == np.float64 and prob.ndim == 1)
    good = True
    for t in range(horizon):
        coming = set()
        for s, c in sorted(here):
            told = prob[at : at + len(moves[t][s])].tolist()
            at += len(told)
            if len(told) != len(moves[t][s]):
                return Verdict(False, math.inf)
            part = dict(zip([m[0] for m in moves[t][s]], shares(told), strict=True))
            allowed = {m[0]: m for m in moves[t][s] if safe(t, c, m)}
            good = good and all(a in allowed for a, p in part.items() if p > 0)
            part = {a: p for a, p in part.items() if p > 0}
            if kind == "Nash":
                part, alike = product(part)
                good = good and alike
            listed[t, s, c] = part, allowed
            coming |= {(s2, plus(c, d)) for m in allowed.values() for _, s2, d, _ in m[2]}
        here = coming
    if at != len(prob) or not good:
        return Verdict(False, math.inf)

    # what is truly spent: every node that the policy comes to, with every true total
    nodes, worst, excess = {(s, begin, begin) for s in start}, [], [Fraction(0)] * width
    for t in range(horizon):
        nodes = {
            (s2, plus(c, d), plus(x, e))
            for s, c, x in nodes
            for a in listed[t, s, c][0]
            for _, s2, d, e in listed[t, s, c][1][a][2]
        }
        for m in range(width):
            worst.append((m, max(x[m] for _, _, x in nodes)))
            if budgets[t][m] != "inf":
                excess[m] = max(excess[m], worst[-1][1] - rational(budgets[t][m]))
    spent = [max(x for k, x in worst if k == m) for m in range(width)]

    def worth(key: tuple, a: tuple, i: int, after) -> Fraction:
        t, _, c = key
        _, reward, outcomes = listed[key][1][a]
        return reward[i] + sum(p * after(i, (t + 1, s2, plus(c, d))) for p, s2, d, _ in outcomes)

    @functools.cache
    def value(i: int, key: tuple) -> Fraction:
        return sum(p * worth(key, a, i, value) for a, p in listed[key][0].items()) if key[0] < horizon else Fraction(0)

    @functools.cache
    def best(i: int, key: tuple) -> Fraction:
        if key[0] == horizon:
            return Fraction(0)
        part, allowed = listed[key]
        total = Fraction(0)
        for heard in {a[i] for a in part} if kind == "CE" else {None}:
            group = {a: p for a, p in part.items() if heard in (None, a[i])}
            choices = [sum(p * worth(key, a, i, best) for a, p in group.items())]
            for b in {a[i] for a in allowed}:
                instead = {a: (*a[:i], b, *a[i + 1 :]) for a in group}
                if all(x in allowed for x in instead.values()):
                    choices.append(sum(p * worth(key, instead[a], i, best) for a, p in group.items()))
            total += max(choices)
        return total

    @functools.cache
    def highest(i: int, key: tuple) -> Fraction:
        return max(worth(key, a, i, highest) for a in listed[key][1]) if key[0] < horizon else Fraction(0)

    @functools.cache
    def lowest(i: int, key: tuple) -> Fraction:
        return min(worth(key, a, i, lowest) for a in listed[key][0]) if key[0] < horizon else Fraction(0)

    @functools.cache
    def size(i: int, key: tuple) -> Fraction:
        """How large numbers can be that are added up from here: rounding is a share of that."""
        if key[0] == horizon:
            return Fraction(0)
        return max(abs(worth(key, a, i, size)) + 2 * abs(move[1][i]) for a, move in listed[key][1].items())

    check(all(type(x) is float for x in (*claims["gain"], *(y for pair in claims["values"] for y in pair))))
    gains = [max(best(i, key) - value(i, key) for key in listed) for i in players]
    roots = [sum(p * value(i, (0, s, begin)) for s, p in chance.items()) for i in players]
    tops = [sum(p * best(i, (0, s, begin)) for s, p in chance.items()) for i in players]
    checks = [max(gains[i], Fraction(0)) <= Fraction(claims["gain"][i]) for i in players]
    checks += [
        Fraction(claims["values"][i][0]) <= roots[i] and tops[i] <= Fraction(claims["values"][i][1]) for i in players
    ]
    checks += [
        spent[m] <= rational(claims["spent"][m]) and excess[m] <= rational(claims["excess"][m]) for m in range(width)
    ]
    near = [abs(float(gains[i] - Fraction(claims["gain"][i]))) for i in players]
    near += [
        abs(float(x - Fraction(y)))
        for i in players
        for x, y in zip((roots[i], tops[i]), claims["values"][i], strict=True)
    ]
    judged = [(best(i, x) - value(i, x), highest(i, x) - lowest(i, x), size(i, x)) for i in players for x in listed]
    exceeded = any(x > 0 for x in excess)
    small = all(gain <= Fraction(1, 2 * 10**8) * stake for gain, stake, _ in judged)
    large = any(gain > Fraction(2, 10**8) * stake + Fraction(1, 2**40) * most for gain, stake, most in judged)
    as_they_are = header["counted"] == game["cost_values"]
    return Verdict(all(checks), min(near), small and not exceeded and as_they_are, exceeded or large)


def product(part: dict) -> tuple[dict, bool]:
    """The product of the players' own probabilities, and whether that is what is played."""
    n = len(next(iter(part)))
    own = [{} for _ in range(n)]
    for a, p in part.items():
        for i in range(n):
            own[i][a[i]] = own[i].get(a[i], Fraction(0)) + p
    alike = math.prod(map(len, own)) == len(part)
    made = {a: math.prod((own[i][a[i]] for i in range(n)), start=Fraction(1)) for a in part}
    alike = alike and all(abs(made[a] - p) <= Fraction(1, 10**9) for a, p in part.items())
    total = sum(made.values())
    return {a: p / total for a, p in made.items()}, alike


if __name__ == "__main__":
    raise SystemExit("a module, used by damage.py: python reliability/damage.py --help")
