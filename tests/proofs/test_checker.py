"""The checker of proofs: it stands alone, agrees with the verifier, bounds what is exact, and takes no harm from hostile files."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import io
import json
import subprocess
import sys
import tempfile
import tokenize
import tracemalloc
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acegames as ace
import oracle
from games import doubling, one_state, solo
from proof_checker import CHECK, CHECKER, ROOT, check, load

SOURCE = CHECKER.read_text()


# -- it stands alone --------------------------------------------------------------------------------------------


def test_it_imports_the_standard_library_and_numpy_only():
    tree = ast.parse(SOURCE)
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names | {"numpy"}
    assert "acegames" not in {name.split(".")[0] for name in names}


def test_it_is_short():
    """Some 290 lines of code, to be read at a sitting; blank lines, comments and docstrings come on top."""
    docs = set()
    for node in ast.walk(ast.parse(SOURCE)):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            docs |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    kinds = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    tokens = tokenize.generate_tokens(io.StringIO(SOURCE).readline)
    assert len({token.start[0] for token in tokens if token.type not in kinds} - docs) <= 300
    assert len(SOURCE.splitlines()) <= 410


def test_no_claim_hangs_on_an_assert():
    """`python -O` leaves asserts out."""
    assert not any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(SOURCE)))


# -- it agrees with the verifier, and in floating point bounds what is exact ----------------------------------------


def judged(header, arrays, exact, plans=None):
    """The game; and low, high and gain of each player, under the policy of the file or another, plans(stages)."""
    game = CHECK.read_game(header, arrays, exact)
    stages, concept = CHECK.feasible(game), header["concept"]
    told = plans(stages) if plans else CHECK.follow(game, stages, arrays["policy.prob", "<f8"], concept)[0]
    told = [{x: {a: game.number(p) for a, p in plan.items()} for x, plan in stage.items()} for stage in told]
    shared = [CHECK.common(game, stages, i) for i in range(len(game.players))]
    found = [CHECK.judge(game, stages, told, i, concept == "CE", base) for i, base in enumerate(shared)]
    return game, zip(*((*ends, gain[0]) for *ends, gain, _ in found), strict=True), sum(map(len, told))


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from([ace.CE, ace.CCE, ace.Nash]))
def test_values_and_gains_are_those_of_the_verifier(seed, kind, tmp_path_factory):
    game = oracle.random_game(np.random.default_rng(seed))
    try:
        solution = ace.solve(game, kind())
    except (ace.Infeasible, ace.NoEquilibrium):
        return
    certificate = ace.verify(game, solution.policy, kind())
    proof = ace.prove(solution, tmp_path_factory.mktemp("proof") / "a.proof")
    for exact in (False, True):
        _, (low, high, gain), situations = judged(*CHECK.read(proof.path), exact)
        assert np.array(low, float) == pytest.approx(certificate.values, abs=1e-7)
        assert np.array(high, float) == pytest.approx(certificate.values, abs=1e-7)
        assert np.array(gain, float) == pytest.approx(certificate.regret, abs=1e-7)
        assert situations == certificate.pairs


def nasty(rng, game):
    """The same game with rewards and probabilities of very different sizes."""
    layers = []
    for layer in game.layers:
        prob = layer.prob.copy()
        for a, b in zip(layer.out_ptr[:-1], layer.out_ptr[1:], strict=True):
            if b - a > 1:
                prob[a] = rng.choice([1e-300, 5e-324, 1e-17, 0.3])
                prob[a + 1 : b] = (1 - prob[a]) / (b - a - 1)
        scale = 10.0 ** rng.choice([-300, -150, 0, 0, 150, 290], size=layer.reward.shape)
        reward = rng.normal(size=layer.reward.shape) * scale
        layers.append(
            ace.model.game.Layer(layer.row_ptr, layer.action, reward, layer.out_ptr, prob, layer.next_state, layer.cost)
        )
    return layers


def random_plans(rng, stages, product):
    """Any distribution over safe joint actions; where it must be a product, a pure one."""

    def one(safe):
        weight = rng.dirichlet(np.full(len(safe), 0.5)) * rng.choice([1, 1, 1e-200], size=len(safe))
        weight = np.maximum(weight, 5e-324)
        weight = np.eye(len(safe))[weight.argmax()] if product else weight / weight.sum()
        return {action: p for action, p in zip(safe, weight.tolist(), strict=True) if p > 0}

    return [{here: one(safe) for here, safe in stage.items()} for stage in stages[:-1]]


@pytest.mark.parametrize("number", [3, pytest.param(14, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [ace.CE, ace.CCE, ace.Nash])
def test_bounds_in_floating_point_hold_in_exact_arithmetic(kind, number, tmp_path):
    judged_games, loose = 0, []
    for seed in range(number):
        rng = np.random.default_rng([seed, 5])
        game = oracle.random_game(rng)
        try:
            proof = ace.prove(ace.solve(game, kind()), tmp_path / "a.proof")
        except (ace.Infeasible, ace.NoEquilibrium):
            continue
        header, arrays = CHECK.read(proof.path)
        for k, layer in enumerate(nasty(rng, game)):
            arrays[f"{k}.reward", "<f8"], arrays[f"{k}.prob", "<f8"] = layer.reward, layer.prob
        same = rng.integers(2**32)

        def plans(stages, same=same):
            return random_plans(np.random.default_rng(same), stages, kind is ace.Nash)

        _, (low, high, gain), _ = judged(header, arrays, False, plans)
        told, (true_low, true_high, true_gain), _ = judged(header, arrays, True, plans)
        for i in range(len(gain)):
            assert Fraction(low[i]) <= true_low[i] <= true_high[i] <= Fraction(high[i])
            assert gain[i] >= true_gain[i]
            largest = max(abs(reward[i]) for moves in told.moves for move in moves for reward, *_ in move.values())
            loose.append(float((gain[i] - true_gain[i]) / (len(told.moves) * largest)))
        judged_games += 1
    assert judged_games > number / 3
    assert 0 < max(loose) < 1e-12  # and they are no wider than rounding explains


def test_a_mean_of_floats_is_bounded_on_both_sides():
    rng, floats, exact = (
        np.random.default_rng(0),
        SimpleNamespace(exact=False, number=float),
        SimpleNamespace(exact=True, number=Fraction),
    )
    for _ in range(300):
        n = int(rng.choice([1, 2, 3, 50]))
        weights = rng.dirichlet(np.full(n, 0.1)) + rng.choice([5e-324, 1e-310, 1e-17], size=n)
        values = rng.normal(size=n) * 10.0 ** rng.choice([-320, -100, 0, 0, 16, 290], size=n)
        weights, values, reward = weights.tolist(), values.tolist(), float(rng.choice([0, 1, -values[0], 1e-320]))
        numbers = [*map(Fraction, weights)], [*map(Fraction, values)], 1, False, Fraction(reward)
        true, size = CHECK.mean(exact, *numbers), max(map(abs, [*values, reward]))
        low, high = (CHECK.mean(floats, weights, values, side, reward=reward) for side in (-1, 1))
        assert Fraction(low) < true < Fraction(high)
        assert high - low < 1e-13 * size + 1e-319


def test_exact_numbers_that_grow_are_shortened_outward():
    exact, third = SimpleNamespace(exact=True), Fraction(1, 3**3000)
    for x in (third, -third):
        assert CHECK.mean(exact, [1], [x], 1) > x > CHECK.mean(exact, [1], [x], -1)
        assert CHECK.mean(exact, [1], [x], 1) - CHECK.mean(exact, [1], [x], -1) < Fraction(1, 2**2000)
    assert CHECK.mean(exact, [1], [Fraction(1, 3)], 1) == Fraction(1, 3)


# -- damage ---------------------------------------------------------------------------------------------------------


def sealed(header, data=b""):
    line = header if isinstance(header, bytes) else json.dumps(header).encode()
    rest = line + b"\n" + data
    return b"acegames-proof 1\n" + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    path = tmp_path_factory.mktemp("honest") / "a.proof"
    ace.prove(ace.solve(ace.catalog.get("intersection")), path)
    _, _, line, data = path.read_bytes().split(b"\n", 3)
    return json.loads(line), data


def test_random_damages_are_caught_without_false_alarms():
    damage = load(ROOT / "reliability" / "damage.py")
    text, total = damage.table(damage.run(seed=7, damages=100, games=6))
    assert total["miss"] == total["false alarm"] == 0, text
    assert total["caught"] >= 100 and total["true"] > 20, text


def unsafe(header, arrays):
    """In some situation all probability is on a joint action that is not safe."""
    game, at = CHECK.read_game(header, {(name, a.dtype.str): a for name, a in arrays.items()}), 0
    for moves, stage in zip(game.moves, CHECK.feasible(game), strict=False):
        for (state, _), safe in stage.items():
            flags = [action in safe for action in moves[state]]
            if not all(flags):
                arrays["policy.prob"][at : at + len(flags)] = 0
                arrays["policy.prob"][at + flags.index(False)] = 1
                return
            at += len(flags)


def safe_actions(header, arrays):
    """For each situation in order, whether each joint action is safe."""
    game = CHECK.read_game(*CHECK.read(written(header, arrays)))
    for moves, stage in zip(game.moves, CHECK.feasible(game), strict=False):
        for (state, _), safe in stage.items():
            yield [action in safe for action in moves[state]]


def everywhere_the_last(header, arrays):
    """The policy of all situations as they are counted that takes the last safe joint action."""
    flags = [*safe_actions(header, arrays)]
    return np.concatenate([np.arange(len(x)) == len(x) - 1 - x[::-1].index(True) for x in flags]).astype(float)


def written(header, arrays):
    """A file that says this."""
    path = Path(tempfile.mkdtemp()) / "a.proof"
    path.write_bytes(load(ROOT / "reliability" / "proof_truth.py").pack(header, arrays))
    return path


def started_twice(header, arrays):
    """The same state begins the game with two probabilities."""
    header["game"]["initial"] *= 2


def without_players(header, arrays):
    """Nobody is there who could gain anything."""
    header["game"] |= {"players": [], "actions": []}
    header["claims"] |= {"gain": [], "values": []}
    arrays |= {"0.action": arrays["0.action"][:, :0], "0.reward": arrays["0.reward"][:, :0]}


def nearly_independent(header, arrays):
    """One combination of what the players may do never comes, though that is hardly seen in the numbers."""
    header["concept"] = "Nash"
    arrays["policy.prob"][:4] = [1 - 1e-10, 5e-11, 5e-11, 0]


def told(place, value):
    """Another entry in an array."""

    def change(header, arrays):
        name, *at = place
        arrays[name][tuple(at)] = value

    return change


def claimed(name, value):
    """Another claim."""
    return lambda header, arrays: header["claims"].update({name: value})


def policy(change):
    """Another policy."""
    return lambda header, arrays: arrays.update({"policy.prob": change(arrays["policy.prob"])})


def forged(header, arrays):
    """Claims so wide that anything would be true, and a policy that always takes the first safe joint action."""
    header["claims"] |= {"gain": [1e9, 1e9], "values": [[-1e9, 1e9]] * 2, "spent": ["1000"], "excess": ["1000"]}
    at, prob = 0, arrays["policy.prob"]
    for flags in safe_actions(header, arrays):
        prob[at : at + len(flags)] = np.arange(len(flags)) == flags.index(True)
        at += len(flags)


def counted_as_nothing(header, arrays):
    """Nothing seems to cost anything, and so everything is safe."""
    forged(header, arrays)
    header["counted"] = [["0"] * len(values) for values in header["counted"]]
    arrays["policy.prob"] = everywhere_the_last(header, arrays)


def counted_as_too_much(header, arrays):
    """What costs most seems to cost too much, and so nobody may deviate to it."""
    forged(header, arrays)
    header["counted"] = [[*values[:-1], "1000"] for values in header["counted"]]
    arrays["policy.prob"] = everywhere_the_last(header, arrays)


FALSE = {
    "no equilibrium": (forged, 1, "is too much"),
    "costs that count for nothing": (counted_as_nothing, 1, "as costs are rounded (--rounded accepts that)"),
    "costs that count for too much": (counted_as_too_much, 1, "safe deviations are left out"),
    "pointers that overflow": (told(("0.row_ptr", slice(0, 3)), [0, 2**63 - 1, -(2**63)]), 2, "pointers"),
    "nobody who plays": (without_players, 2, "not actions for each player"),
    "an initial state twice": (started_twice, 2, "comes twice"),
    "a claim that is no number": (claimed("gain", [True, 1.0]), 2, "no number"),
    "a claim too many": (claimed("gain", [1.0, 1.0, 1.0]), 2, "zip"),
    "spending without bound": (claimed("spent", ["inf"]), 1, "more than claimed"),
    "unsafe": (unsafe, 1, "not safe"),
    "nearly independent": (nearly_independent, 1, "at t=0 the players do not draw independently"),
    "one probability less, a zero": (policy(lambda prob: prob[:-1]), 1, "not a policy"),
    "one probability more, a zero": (policy(lambda prob: np.append(prob, 0.0)), 1, "not a policy"),
    "no policy": (policy(lambda prob: prob[:0]), 1, "not a policy"),
    "nothing played": (told(("policy.prob", slice(None)), 0.0), 1, "no distribution"),
    "a probability that is no number": (told(("policy.prob", 0), np.nan), 1, "no distribution"),
    "a probability below zero": (told(("policy.prob", slice(0, 4)), [-1.0, 2.0, 0.0, 0.0]), 1, "no distribution"),
    "a joint action twice": (told(("0.action", 1), [0, 0]), 2, "comes twice"),
    "an infinite reward": (told(("0.reward", -1), np.inf), 2, "not finite"),
    "an action below zero": (told(("0.action", -1), -1), 2, "out of range"),
    "a state below zero": (told(("0.next_state", -1), -1), 2, "out of range"),
    "a state too many": (told(("0.next_state", -1), 2), 2, "out of range"),
    "a cost below zero": (told(("0.cost", -1), -1), 2, "out of range"),
    "pointers out of order": (told(("0.out_ptr", 2), 10), 2, "pointers"),
    "rows out of order": (told(("0.row_ptr", 1), -1), 2, "pointers"),
    "an outcome of no probability": (told(("0.prob", slice(0, 2)), [0.0, 1.0]), 2, "do not sum to one"),
    "an outcome of any probability": (told(("0.prob", -1), np.nan), 2, "do not sum to one"),
    "values too high": (claimed("values", [[31.0, 40.0], [31.0, 40.0]]), 1, "not what is claimed"),
    "values too low": (claimed("values", [[0.0, 30.0], [0.0, 40.0]]), 1, "not what is claimed"),
    "a gain below zero": (claimed("gain", [1.0, -1.0]), 1, "more than claimed"),
    "less spent": (claimed("spent", ["5"]), 1, "more than claimed"),
    "an excess below zero": (claimed("excess", ["-1"]), 1, "exceed"),
    "a claim too few": (claimed("spent", []), 2, "zip"),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_is_false_or_makes_no_sense_is_refused_with_the_reason(name, honest, tmp_path):
    truth, (change, code, reason) = load(ROOT / "reliability" / "proof_truth.py"), FALSE[name]
    header, arrays = truth.unpack(sealed(*honest))
    change(header, arrays)
    (tmp_path / "a.proof").write_bytes(truth.pack(header, arrays))
    done = check(tmp_path / "a.proof")
    assert done.returncode == code and reason in done.stdout.splitlines()[-1], done.stdout


def test_the_judge_of_damages_can_say_no(tmp_path):
    """A checker that believes everything is found out."""
    damage = load(ROOT / "reliability" / "damage.py")
    damage.status = lambda path, *options, apart=False: 0
    count, rng = damage.Counter(), np.random.default_rng(0)
    honest = damage.proofs(rng, tmp_path, 3)
    for k in range(60):
        damage.damage_content(rng, honest[k % 3], tmp_path / "x.proof", count)
        damage.damage_bytes(rng, honest[k % 3], tmp_path / "x.proof", count)
    assert sum(n for (*_, fate), n in count.items() if fate == "miss") > 60


# -- hostile files ----------------------------------------------------------------------------------------------------


def edited(honest, **changes):
    header, data = json.loads(json.dumps(honest[0])), honest[1]
    for name, value in changes.items():
        *path, last = name.split("__")
        place = header
        for key in path:
            place = place[key]
        place[last] = value
    return sealed(header, data)


def relabelled(arrays):
    """Rewards said to be integers: the same bytes, and so the same digest of the game."""
    return [[name, "<i8" if name == "0.reward" else kind, *shape] for name, kind, *shape in arrays]


HOSTILE = {
    "nothing": lambda honest: b"",
    "text": lambda honest: b"hello\n" * 50,
    "a pickle": lambda honest: b"acegames-proof 1\n" + b"\x80\x04cos\nsystem\n(S'true'\ntR.",
    "another version": lambda honest: sealed(*honest).replace(b"proof 1", b"proof 2", 1),
    "no JSON": lambda honest: sealed(b"{"),
    "a list": lambda honest: sealed([]),
    "deep JSON": lambda honest: sealed(b"[" * 200_000),
    "long number": lambda honest: sealed(b'{"arrays": ' + b"9" * 100_000 + b"}"),
    "huge array": lambda honest: sealed({"arrays": [["0.prob", "<f8", 2**62]]}),
    "huge empty array": lambda honest: sealed({"arrays": [["0.prob", "<f8", 2**62, 0]]}),
    "huge product": lambda honest: sealed({"arrays": [["0.prob", "<f8"] + [2**31] * 40]}),
    "negative array": lambda honest: sealed({"arrays": [["0.prob", "<f8", -1]]}),
    "objects": lambda honest: sealed({"arrays": [["0.prob", "|O", 1]]}, b"\0" * 8),
    "no game": lambda honest: sealed({"arrays": []}),
    "no arrays": lambda honest: edited((honest[0], b"")),
    "fine costs": lambda honest: edited(honest, counted=[["0"] * 6 + [f"1/{10**4000}"]]),
    "exponents": lambda honest: edited(honest, game__budgets=[["1e999999999"]] * 6),
    "division by zero": lambda honest: edited(honest, game__budgets=[["1/0"]] * 6),
    "claims with exponents": lambda honest: edited(honest, claims__gain=["1e999999999"] * 2),
    "claims that are not numbers": lambda honest: edited(honest, claims__gain=[float("nan")] * 2),
    "a million steps": lambda honest: edited(honest, game__layer_at=[0] * 10**6),
    "unknown layers": lambda honest: edited(honest, game__layer_at=[7] * 6),
    "many labels": lambda honest: edited(honest, game__states=["x"] * 10**6),
    "surrogates": lambda honest: edited(honest, game__players=["\ud800", "\x1b[31m"], game__budgets=[]),
    "floats called integers": lambda honest: edited(honest, arrays=relabelled(honest[0]["arrays"])),
    "numbers for labels": lambda honest: edited(honest, game__players=[1, 2]),
}

LIMITED = """
import contextlib, io, json, resource, runpy, signal, sys
resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30,) * 2)
main = runpy.run_path(sys.argv[1])["main"]
for path in sys.argv[2:]:
    signal.alarm(20)
    sys.argv, out = ["ace_check.py", path], io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stdout(out):
        code = main()
    out.flush()
    print(json.dumps([path, code, out.buffer.getvalue().decode()]), flush=True)
"""


@pytest.fixture(scope="module")
def verdicts(honest, tmp_path_factory):
    """{kind of file: (exit status, output)}, from one process with little memory that is killed where it hangs."""
    folder = tmp_path_factory.mktemp("hostile")
    paths = {str(folder / f"{k}.proof"): name for k, name in enumerate(HOSTILE)}
    for path, name in paths.items():
        Path(path).write_bytes(HOSTILE[name](honest))
    done = subprocess.run([sys.executable, "-c", LIMITED, str(CHECKER), *paths], capture_output=True, check=False)
    assert not done.stderr
    return {paths[path]: (code, out) for path, code, out in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_unreadable_quickly_and_in_little_memory(name, verdicts):
    code, out = verdicts[name]
    assert code == 2 and "NOT READ" in out, out


def test_an_honest_file_is_readable_in_as_little_memory(honest, tmp_path):
    (tmp_path / "a.proof").write_bytes(sealed(*honest))
    command = [sys.executable, "-c", LIMITED, str(CHECKER), str(tmp_path / "a.proof")]
    assert json.loads(subprocess.run(command, capture_output=True, check=True).stdout)[1] == 0


def test_a_game_that_grows_beyond_bounds_is_refused(tmp_path, monkeypatch):
    proof = ace.prove(ace.solve(ace.catalog.get("knapsack")), tmp_path / "a.proof")
    for most, what in ((4 * proof.size - 4, "the file"), (4 * proof.size, "the game")):
        monkeypatch.setattr(CHECK, "MOST_BYTES", most)
        with pytest.raises(ValueError, match=f"{what} is too large"):
            CHECK.check(proof.path)


def bold(path, game):
    """A file about a game and a policy of a single number."""
    counted = [[str(x) for x in values] for values in game.content()["cost_values"]]
    header = {"name": "", "concept": "CE", "game": game.content(), "counted": counted}
    header["claims"] = {
        "spent": ["0"] * len(counted),
        "excess": ["0"] * len(counted),
        "values": [[0.0, 9.0]],
        "gain": [1.0],
    }
    truth = load(ROOT / "reliability" / "proof_truth.py")
    arrays = {f"0.{f}": getattr(game.layers[0], f).astype(d) for f, d in truth.TYPES.items()}
    path.write_bytes(truth.pack(header, arrays | {"policy.prob": np.ones(1)}))
    return path


def test_a_small_file_cannot_take_much_memory(tmp_path, monkeypatch):
    """300 outcomes of different costs at each of 5 steps: some 300^5 situations, refused before they take what may be taken."""
    outcomes = [(1 / 300, "s", {f"c{m}": pow(k + 1, m + 2, 9973) for m in range(3)}) for k in range(300)]
    budget = {f"c{m}": 60_000 for m in range(3)}
    game = solo(lambda t, s, a: outcomes, horizon=5, budget=budget, actions=("go",))
    path = bold(tmp_path / "hostile.proof", game)
    monkeypatch.setattr(CHECK, "MOST_BYTES", 2**23)
    tracemalloc.start()
    with pytest.raises(ValueError, match="the game is too large"):
        CHECK.check(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 2**20 < peak < 2**23


def test_many_ways_to_few_situations_take_memory_too(tmp_path, monkeypatch):
    """60 actions that lead to each of 100 states: as much again as the states themselves."""
    outcomes = [(1 / 100, f"s{k}", ()) for k in range(100)]
    game = ace.MarkovGame.from_functions(
        players=("p",),
        actions=lambda t, s: [range(60 if s == "s0" else 1)],
        horizon=8,
        initial="s0",
        outcomes=lambda t, s, a: outcomes if s == "s0" else [(1.0, "s0", ())],
        reward=lambda t, s, a: (1.0,),
    )
    monkeypatch.setattr(CHECK, "MOST_BYTES", 2**19)
    with pytest.raises(ValueError, match="the game is too large"):
        CHECK.check(bold(tmp_path / "hostile.proof", game))


def test_labels_cannot_speak_to_the_terminal(tmp_path):
    game = ace.MarkovGame.from_arrays(
        np.ones((1, 2, 1)), np.array([[[1.0], [0.0]]]), np.array([[[1], [0]]]), [1], horizon=2, name="\x1b[2J\nfine"
    )
    path = ace.prove(ace.solve(game), tmp_path / "a.proof").path
    done = subprocess.run([sys.executable, CHECKER, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "\x1b" not in done.stdout


@pytest.mark.parametrize("path", ["missing.proof", "."])
def test_what_is_no_file_is_unreadable(path, tmp_path):
    assert check(tmp_path / path).returncode == 2


def test_play_that_may_owe_until_the_end_is_followed_no_further_than_it_can_be_recovered(tmp_path):
    """Costs double each step and only the end counts: of 2^30 totals some hundred can still be kept."""
    done = check(ace.prove(ace.solve(doubling(30)), tmp_path / "a.proof").path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("number", [150, pytest.param(400, marks=pytest.mark.slow)])
def test_costs_without_a_small_common_denominator_and_huge_ones_are_read(number, tmp_path):
    """Hundreds of unit fractions; and numbers that no float can hold beside no budget at all."""
    fractions = [Fraction(1, k) for k in range(1, number)]
    many = one_state(
        ["p"],
        [range(len(fractions))],
        lambda t, a: {"c": fractions[a[0]], "end": Fraction(10**304) + Fraction(1, 10**5)},
        lambda t, a: [1.0 / (1 + a[0])],
        horizon=2,
        budget={"c": Fraction(4, 3 * number), "end": ace.almost_sure(Fraction(10**305))},
    )
    proof = ace.prove(ace.solve(many, epsilon={"c": Fraction(1, 10), "end": 0}), tmp_path / "a.proof")
    assert check(proof.path, "--rounded").returncode == 0


def test_a_gain_is_accepted_only_by_whoever_says_so(honest, tmp_path):
    """What the file claims does not count: it is as wide for what is small as for what is large."""
    wide = ace.prove(ace.solve(ace.catalog.get("intersection"), ace.CCE()), tmp_path / "wide.proof", tol=1e6)
    assert check(wide.path).returncode == 0
    truth = load(ROOT / "reliability" / "proof_truth.py")
    header, arrays = truth.unpack(sealed(*honest))
    forged(header, arrays)
    (tmp_path / "a.proof").write_bytes(truth.pack(header, arrays))
    assert check(tmp_path / "a.proof", "--gain", "1/1000").returncode == 1
    assert check(tmp_path / "a.proof", "--gain", "1000").returncode == 0


@pytest.mark.parametrize("memory", ["nan", "inf", "-1", "0"])
def test_memory_that_is_no_amount_is_refused(memory, tmp_path):
    told = check(tmp_path / "a.proof", "--memory", memory)
    assert told.returncode == 2 and "NOT READ: --memory: got" in told.stdout


def test_any_amount_of_memory_may_be_allowed(tmp_path):
    ace.prove(ace.solve(ace.catalog.get("intersection")), tmp_path / "a.proof")
    assert check(tmp_path / "a.proof", "--memory", "1e8").returncode == 0


@pytest.mark.parametrize(
    ("level", "horizon"), [(1e12, 20), (1e15, 1), (1e9, 200), pytest.param(1e9, 1000, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("options", [[], ["--exact"]])
def test_a_level_hides_no_gain(level, horizon, options, tmp_path):
    """All rewards are huge and differ by one, and the policy takes the smaller one in the beginning."""
    best = np.zeros((horizon, 1, 2, 1))
    best[:, 0, 1] = 1
    worst = best.copy()
    worst[0] = 1 - worst[0]
    game, other = (ace.MarkovGame.from_arrays(np.ones((1, 2, 1)), x + level, horizon=horizon) for x in (best, worst))
    wrong = dataclasses.replace(ace.solve(other), game=game)
    path = ace.prove(ace.solve(game), tmp_path / "a.proof").path
    assert check(path, *options).returncode == 0
    truth = load(ROOT / "reliability" / "proof_truth.py")
    header, arrays = truth.unpack(path.read_bytes())
    header["claims"] |= {"gain": [1e9], "values": [[-1e300, 1e300]]}
    arrays["policy.prob"] = np.concatenate(
        [wrong.policy.distribution(t, 0, ()).get((a,), 0.0) * np.ones(1) for t in range(horizon) for a in (0, 1)]
    )
    path.write_bytes(truth.pack(header, arrays))
    done = check(path, *options)
    assert done.returncode == 1 and "may gain 1" in done.stdout, done.stdout


def test_interrupted_or_unheard_it_says_nothing_more(tmp_path, monkeypatch):
    proof = ace.prove(ace.solve(ace.catalog.get("intersection")), tmp_path / "a.proof")
    done = subprocess.run(
        f"{sys.executable} {CHECKER} {proof.path} | true", shell=True, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(CHECK, "feasible", interrupted)
    assert check(proof.path).returncode == 130


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=6), st.booleans())
def test_what_a_deviator_gets_is_bounded_from_above(values, told):
    """In floats, and by each of its sums: adding up the best replies to several recommendations as well."""
    plan = {(k, 0): 1 / len(values) for k in range(len(values))}
    worth = dict(zip(plan, values, strict=True))
    floats = SimpleNamespace(exact=False, number=float)
    bound = Fraction(CHECK.deviation(floats, 0, plan, worth, told, 1, False))
    shares = {a: Fraction(p) / sum(map(Fraction, plan.values())) for a, p in plan.items()}
    follow = sum(shares[a] * Fraction(worth[a]) for a in plan)
    assert bound >= (sum(shares.values()) * Fraction(max(values)) if told else max(follow, Fraction(max(values))))
