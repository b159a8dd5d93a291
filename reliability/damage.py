"""Damage proofs in many ways and see whether the checker notices: `python reliability/damage.py [--damages 5000] [--seed 0]`.

Proofs of random games are written by `acegames.prove` and damaged in one of two ways:

    bytes     bits flipped, pieces cut out, added, moved or zeroed. The file is not what was written, so it must be refused.
    content   game, policy or claims changed, and the digest of the file made right again. What the file says may still be
              true. That is decided by brute force in exact arithmetic (`proof_truth`): a false one must be refused, a true one accepted.
              Whatever is true of another game must be refused when the digest of the game is asked for (--game).

Claims that are true may be worth nothing: a gain of a million, a budget exceeded by a thousand "as costs are rounded". So the
checker is asked twice: whether the claims are true (--rounded, and any --gain), and as everybody asks it, when it must refuse
what is no equilibrium that keeps its budgets.

The table counts misses (accepted, though false or damaged) and false alarms (refused, though true). Exit status 1 if there is either.
Where a gain or a value is closer to its claim than rounding errors, or a probability too small for products, floating point may refuse
what is true; those that --exact then accepts are counted apart, as "exact only".
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "reliability")]

import proof_truth  # noqa: E402

import acegames as ace  # noqa: E402

CHECKER = ROOT / "checker" / "ace_check.py"
NEAR = 1e-9  # nearer to a claim than that, rounding decides in floating point
TINY = 1e-280  # products of probabilities below that are no ordinary floats


def load_checker():
    """The checker as a module, to run it many times."""
    spec = importlib.util.spec_from_file_location("ace_check", CHECKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CHECK = load_checker()


def status(path, *options, apart=False):
    """The checker's exit status, in this process or in one of its own."""
    if apart:
        return subprocess.run([sys.executable, CHECKER, path, *options], capture_output=True, check=False).returncode
    before, sys.argv = sys.argv, ["ace_check.py", str(path), *options]
    try:
        with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
            return CHECK.main()
    finally:
        sys.argv = before


# -- proofs -----------------------------------------------------------------------------------------------------


def random_games():
    """The maker of random games, which is one of the tests'."""
    try:
        import oracle
    except ModuleNotFoundError as error:
        sys.exit(
            f"{error}; random games are made as in the tests, which need more packages: pip install 'acegames[dev]'"
        )
    return oracle.random_game


def proofs(rng, folder, number):
    """Write proofs of random games, and return their bytes."""
    random_game, found = random_games(), []
    while len(found) < number:
        game = random_game(rng)
        concept = [ace.CE(), ace.CCE(), ace.Nash()][int(rng.integers(3))]
        rounding = {"epsilon": float(rng.choice([0.5, 1.5])), "rounding": str(rng.choice(["down", "up"]))}
        try:
            solution = ace.solve(game, concept, **(rounding if rng.random() < 0.25 else {}))
        except ace.AceError:
            continue
        path = Path(folder) / "honest.proof"
        ace.prove(solution, path)
        found.append(path.read_bytes())
    return found


# -- damages to bytes ---------------------------------------------------------------------------------------------


def flip(rng, content):
    """One bit."""
    at = int(rng.integers(len(content)))
    return content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :]


def truncate(rng, content):
    """The end is missing."""
    return content[: int(rng.integers(len(content)))]


def lengthen(rng, content):
    """Something follows."""
    return content + rng.bytes(int(rng.integers(1, 20)))


def cut(rng, content):
    """A piece is missing."""
    a, b = sorted(rng.integers(len(content) + 1, size=2).tolist())
    return content[:a] + content[b:] if a < b else content[:-1]


def exchange(rng, content):
    """Two pieces have changed places."""
    size = int(rng.integers(1, 9))
    a, b = sorted(rng.choice(len(content) // size - 1, size=2, replace=False).tolist())
    x, y = (slice(k * size, (k + 1) * size) for k in (a, b))
    return content[: x.start] + content[y] + content[x.stop : y.start] + content[x] + content[y.stop :]


def zero(rng, content):
    """A piece is nothing but zeros."""
    a = int(rng.integers(len(content)))
    b = min(len(content), a + int(rng.integers(1, 64)))
    return content[:a] + bytes(b - a) + content[b:]


# -- damages to content; each changes a header and arrays in place ------------------------------------------------


def any_array(rng, arrays, suffix):
    """One of the arrays of this name."""
    names = [name for name in arrays if name.endswith(suffix)]
    return arrays[names[int(rng.integers(len(names)))]]


def spot(rng, array):
    """A random entry."""
    return tuple(int(rng.integers(n)) for n in array.shape)


def policy_noise(rng, header, arrays):
    """One probability is another."""
    prob = arrays["policy.prob"]
    prob[spot(rng, prob)] = rng.choice([0.0, 1.0, 0.5, 1e-12, 1e-300, -0.1, np.nan])


def policy_exchange(rng, header, arrays):
    """Two probabilities, mostly of the same situation, have changed places."""
    prob = arrays["policy.prob"]
    a = int(rng.integers(len(prob)))
    b = (a + int(rng.integers(1, 4))) % len(prob)
    prob[a], prob[b] = prob[b], prob[a]


def policy_shift(rng, header, arrays):
    """Some probability moves to the next joint action."""
    prob = arrays["policy.prob"]
    a = int(rng.choice(np.flatnonzero(prob)))
    moved = prob[a] * rng.choice([1.0, 0.5, 1e-3, 1e-7, 1e-14])
    prob[a] -= moved
    prob[(a + int(rng.choice([-1, 1]))) % len(prob)] += moved


def policy_length(rng, header, arrays):
    """A probability too many, or too few."""
    prob = arrays["policy.prob"]
    arrays["policy.prob"] = prob[:-1] if rng.random() < 0.5 else np.append(prob, 1.0)


def claim(rng, header, arrays):
    """A claim is another."""
    claims = header["claims"]
    i = int(rng.integers(len(claims["gain"])))
    kind = int(rng.integers(4)) if claims["spent"] else int(rng.integers(2))
    if kind == 0:
        claims["gain"][i] = float(rng.choice([0.0, -1.0, 1e-18, 1.0, claims["gain"][i] * 2]))
    elif kind == 1:
        k, by = int(rng.integers(2)), float(rng.choice([-1.0, 1.0, 1e-3, -1e-3, 1e-6, -1e-6]))
        claims["values"][i][k] += by
    else:
        name, m = ("spent", "excess")[kind - 2], int(rng.integers(len(claims["spent"])))
        claims[name][m] = str(proof_truth.Fraction(claims[name][m]) + int(rng.choice([-1, 1])))


def concept(rng, header, arrays):
    """The equilibrium is of another kind."""
    header["concept"] = str(rng.choice(["CE", "CCE", "Nash", "SPE"]))


def counted(rng, header, arrays):
    """A cost counts as something else."""
    values = [x for x in header["counted"] if x]
    if values:
        line = values[int(rng.integers(len(values)))]
        line[int(rng.integers(len(line)))] = str(rng.choice(["0", "1", "-1", "1/2", "5"]))


def reward(rng, header, arrays):
    """A reward is another."""
    table = any_array(rng, arrays, ".reward")
    table[spot(rng, table)] += rng.choice([1.0, -1.0, 1e-3, np.inf])


def chance(rng, header, arrays):
    """Probabilities of outcomes are others."""
    table = any_array(rng, arrays, "0.prob")
    if len(table) > 1 and rng.random() < 0.7:
        a = int(rng.integers(len(table) - 1))
        moved = min(table[a], table[a + 1]) * 0.5
        table[a], table[a + 1] = table[a] - moved, table[a + 1] + moved
    else:
        table[spot(rng, table)] = rng.choice([0.0, 0.5, 1.0, 2.0, 5e-324])


def target(rng, header, arrays):
    """An outcome leads elsewhere."""
    table = any_array(rng, arrays, ".next_state")
    table[spot(rng, table)] = int(rng.integers(-1, len(header["game"]["states"]) + 1))


def cost_code(rng, header, arrays):
    """An outcome costs something else."""
    table = any_array(rng, arrays, ".cost")
    if table.size:
        table[spot(rng, table)] = int(rng.integers(-1, 4))


def cost_value(rng, header, arrays):
    """A cost is another, and counts as what it is."""
    game = header["game"]
    if game["cost_values"]:
        m = int(rng.integers(len(game["cost_values"])))
        k = int(rng.integers(len(game["cost_values"][m])))
        game["cost_values"][m][k] = header["counted"][m][k] = str(rng.choice(["0", "3", "1/7", "-2", "1e5", "x"]))


def budget(rng, header, arrays):
    """A budget is another."""
    rows = header["game"]["budgets"]
    if rows[0]:
        row = rows[int(rng.integers(len(rows)))]
        row[int(rng.integers(len(row)))] = str(rng.choice(["0", "1", "-1", "1/2", "inf", "100", "NaN"]))


def reservoir(rng, header, arrays):
    """A reservoir holds more or less, begins at another level, or is none."""
    kept = header["game"].get("reservoirs", [None])
    m = int(rng.integers(len(kept)))
    kept[m] = [None, ["1", "0"], ["0", "1"], ["100", "1/2"], ["inf", "0"], ["2"]][int(rng.integers(6))]
    if rng.random() < 0.5:
        header["game"]["reservoirs"] = kept


def pointer(rng, header, arrays):
    """A row begins elsewhere."""
    table = any_array(rng, arrays, "_ptr")
    table[spot(rng, table)] += int(rng.choice([-1, 1, 1000]))


def action(rng, header, arrays):
    """A joint action is another."""
    table = any_array(rng, arrays, ".action")
    table[spot(rng, table)] = int(rng.integers(-1, 4))


def start(rng, header, arrays):
    """The game begins elsewhere."""
    header["game"]["initial"] = [[int(rng.integers(-1, len(header["game"]["states"]) + 1)), (1.0).hex()]]


def times(rng, header, arrays):
    """A step is like another, or there is one more or less."""
    at = header["game"]["layer_at"]
    at[int(rng.integers(len(at)))] = int(rng.integers(-1, max(at) + 2))


def label(rng, header, arrays):
    """A player has another name. (This is another game, in which the same is true.)"""
    header["game"]["players"][0] = "'somebody else'"


def forge(rng, header, arrays):
    """Claims so wide that they are true of anything, a policy that is another, or costs that count for nothing or for too much."""
    claims = header["claims"]
    claims["gain"] = [1e9 for _ in claims["gain"]]
    claims["values"] = [[-1e9, 1e9] for _ in claims["values"]]
    claims["spent"], claims["excess"] = (["1000000"] * len(claims[name]) for name in ("spent", "excess"))
    kind = int(rng.integers(4))
    if kind == 0:
        header["counted"] = [["0"] * len(line) for line in header["counted"]]
    elif kind == 1:
        counted(rng, header, arrays)
    for _ in range(int(rng.integers(1, 4))):
        (policy_shift if kind == 2 else policy_exchange)(rng, header, arrays)


def whole_array(rng, header, arrays):
    """An array is in the place of another, or is gone."""
    names = list(arrays)
    a, b = (names[int(k)] for k in rng.integers(len(names), size=2))
    arrays[a], arrays[b] = arrays[b], arrays[a]
    if a == b:
        del arrays[a]


BYTES = [flip, flip, truncate, lengthen, cut, exchange, zero]
POLICY = [policy_noise, policy_exchange, policy_shift, policy_shift, policy_length]
GAME = [reward, chance, target, cost_code, cost_value, budget, reservoir, pointer, action, start, times, label]
CONTENT = [*POLICY, *POLICY, claim, claim, concept, counted, forge, forge, *GAME, whole_array]
CLAIMS_ALONE = ("--rounded", "--gain", str(10**300))  # the options that leave only the claims to be judged


# -- the count ----------------------------------------------------------------------------------------------------


def damage_bytes(rng, content, path, count):
    """Damage bytes; they must be noticed."""
    how = BYTES[int(rng.integers(len(BYTES)))]
    damaged = how(rng, content)
    if damaged == content:
        return
    path.write_bytes(damaged)
    count["bytes", how.__name__, "miss" if status(path) == 0 else "caught"] += 1


def damage_content(rng, content, path, count):
    """Damage content and make the digest right again; what is false must be noticed, and what is true accepted."""
    how = CONTENT[int(rng.integers(len(CONTENT)))]
    header, arrays = proof_truth.unpack(content)
    how(rng, header, arrays)
    damaged = proof_truth.pack(header, arrays)
    if damaged == content:
        return
    path.write_bytes(damaged)
    exact = rng.random() < 0.3
    arithmetic = ["--exact"] if exact else []
    accepted, plainly = (status(path, *arithmetic, *options) == 0 for options in (CLAIMS_ALONE, ()))
    try:
        verdict = proof_truth.judge(damaged)
    except proof_truth.Nonsense:
        count["content", how.__name__, "miss" if accepted else "caught"] += 1
        return
    if accepted:
        count["content", how.__name__, "true" if verdict.true else "miss"] += 1
    elif not verdict.true:
        count["content", how.__name__, "caught"] += 1
    else:
        hard = verdict.margin < NEAR or (arrays["policy.prob"][arrays["policy.prob"] > 0] < TINY).any()
        near = not exact and hard and status(path, "--exact", *CLAIMS_ALONE) == 0
        count["content", how.__name__, "exact only" if near else "false alarm"] += 1
    if plainly and (verdict.poor or not accepted):
        count["content", how.__name__, "miss"] += 1
    if accepted and verdict.equilibrium and not plainly:
        near = not exact and status(path, "--exact") == 0
        count["content", how.__name__, "exact only" if near else "false alarm"] += 1
    if accepted and not plainly:
        count["content", how.__name__, "caught"] += 1
    if how in GAME and accepted:
        count["content", how.__name__, "another game"] += 1
        if status(path, "--game", digest_of(content, path), *CLAIMS_ALONE) == 0:
            count["content", how.__name__, "miss"] += 1


def digest_of(content, path):
    """The digest of the game in a proof, as the checker tells it."""
    header, arrays = CHECK.read(_written(content, path.with_suffix(".honest")))
    return CHECK.read_game(header, arrays).digest


def _written(content, path):
    path.write_bytes(content)
    return path


def run(seed, damages, games):
    """Count what becomes of so many damages."""
    rng, count = np.random.default_rng(seed), Counter()
    with tempfile.TemporaryDirectory() as folder:
        honest, path = proofs(rng, folder, games), Path(folder) / "damaged.proof"
        for k, content in enumerate(honest):
            path.write_bytes(content)
            verdict = proof_truth.judge(content)
            for options in ([], ["--exact"]):
                fine = status(path, *options, "--rounded", apart=k == 0) == 0 and verdict.true
                fine = fine and (status(path, *options) == 0 or not verdict.equilibrium)
                count["untouched", "honest", "true" if fine else "false alarm"] += 1
        while sum(n for (*_, fate), n in count.items() if fate == "caught") < damages:
            content = honest[int(rng.integers(len(honest)))]
            (damage_bytes if rng.random() < 0.4 else damage_content)(rng, content, path, count)
    return count


def table(count):
    """The counts, damage by damage."""
    fates = ["caught", "true", "exact only", "miss", "false alarm"]
    lines = [f"{'damage':32}" + "".join(f"{fate:>13}" for fate in fates)]
    for group, how in dict.fromkeys((g, h) for g, h, _ in count):
        lines.append(f"{group + ': ' + how:32}" + "".join(f"{count[group, how, fate]:13,}" for fate in fates))
    total = {fate: sum(n for (*_, f), n in count.items() if f == fate) for fate in [*fates, "another game"]}
    lines.append(f"{'all':32}" + "".join(f"{total[fate]:13,}" for fate in fates))
    lines.append(
        f"True of another game, and refused when the digest of this one is asked for: {total['another game']:,}"
    )
    return "\n".join(lines), total


def main():
    """Run, print the table, and tell by the exit status whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--damages", type=int, default=5000, help="how many must have been caught")
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    text, total = table(run(options.seed, options.damages, options.games))
    print(text)
    return 1 if total["miss"] or total["false alarm"] else 0


if __name__ == "__main__":
    sys.exit(main())
