"""The checker of proofs: it stands alone, agrees with the verifier, bounds what is exact, and takes no harm from hostile files."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import subprocess
import sys
import tokenize
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acegames as ace
import oracle
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
    """Lines of code, without blank lines, comments and docstrings."""
    docs = set()
    for node in ast.walk(ast.parse(SOURCE)):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            docs |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    kinds = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    tokens = tokenize.generate_tokens(io.StringIO(SOURCE).readline)
    assert len({token.start[0] for token in tokens if token.type not in kinds} - docs) <= 300


def test_no_claim_hangs_on_an_assert():
    """`python -O` leaves asserts out."""
    assert not any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(SOURCE)))


# -- it agrees with the verifier, and in floating point bounds what is exact ----------------------------------------


def judged(path, exact, plans=None):
    header, arrays = CHECK.read(path)
    game = CHECK.read_game(header, arrays)
    stages, safe = CHECK.feasible(game)
    plans = plans(safe) if plans else CHECK.read_policy(safe, arrays["policy.prob", "<f8"])
    return CHECK.judge(game, stages, safe, plans, header["concept"], CHECK.numbers_of(game, exact))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from([ace.CE, ace.CCE, ace.Nash]))
def test_values_and_gains_are_those_of_the_verifier(seed, kind, tmp_path_factory):
    game = oracle.random_game(np.random.default_rng(seed))
    try:
        solution = ace.solve(game, kind())
    except (ace.Infeasible, ace.NoEquilibrium):
        return
    certificate = ace.verify(game, solution.policy, kind())
    proof = ace.certify(solution, tmp_path_factory.mktemp("proof") / "a.proof")
    for exact in (False, True):
        low, high, gain, _ = judged(proof.path, exact)
        assert np.array(low, float) == pytest.approx(certificate.values, abs=1e-7)
        assert np.array(high, float) == pytest.approx(certificate.values, abs=1e-7)
        assert np.array(gain, float) == pytest.approx(certificate.regret, abs=1e-7)
    pairs = [
        len(keys)
        for stage in CHECK.feasible(CHECK.read_game(*CHECK.read(proof.path)))[0][:-1]
        for keys in stage.values()
    ]
    assert sum(pairs) == certificate.pairs


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


def random_plans(rng, safe, product):
    """Any distribution over safe joint actions; where it must be a product, a pure one."""

    def one(may):
        weight = rng.dirichlet(np.full(may.shape[1], 0.5), size=len(may)) * rng.choice([1, 1, 1e-200], size=may.shape)
        weight = np.where(may, np.maximum(weight, 5e-324), 0)
        if product:
            weight = np.eye(may.shape[1])[weight.argmax(axis=1)]
        return weight / weight.sum(axis=1, keepdims=True)

    return [{s: one(may) for s, may in stage.items()} for stage in safe]


@pytest.mark.parametrize("kind", [ace.CE, ace.CCE, ace.Nash])
def test_bounds_in_floating_point_hold_in_exact_arithmetic(kind, tmp_path):
    judged_games, loose = 0, []
    for seed in range(14):
        rng = np.random.default_rng([seed, 5])
        game = oracle.random_game(rng)
        try:
            proof = ace.certify(ace.solve(game, kind()), tmp_path / "a.proof")
        except (ace.Infeasible, ace.NoEquilibrium):
            continue
        header, arrays = CHECK.read(proof.path)
        for k, layer in enumerate(nasty(rng, game)):
            arrays[f"{k}.reward", "<f8"], arrays[f"{k}.prob", "<f8"] = layer.reward, layer.prob
        told = CHECK.read_game(header, arrays)
        stages, safe = CHECK.feasible(told)
        plans = random_plans(rng, safe, kind is ace.Nash)
        with np.errstate(all="ignore"):
            found = [
                CHECK.judge(told, stages, safe, plans, kind.__name__, CHECK.numbers_of(told, x)) for x in (False, True)
            ]
        (low, high, gain, _), (true_low, true_high, true_gain, _) = found
        for i in range(len(gain)):
            assert Fraction(low[i]) <= true_low[i] <= true_high[i] <= Fraction(high[i])
            assert gain[i] >= true_gain[i]
            size = told.horizon * max(
                float(abs(m.reward[:, i]).max()) for moves in told.moves for m in moves if m.action
            )
            loose.append(float(gain[i] - true_gain[i]) / size)
        judged_games += 1
    assert judged_games > 4
    assert max(loose) < 1e-11  # and they are no wider than rounding explains


def test_exact_numbers_that_grow_are_shortened_outward():
    third = Fraction(1, 3**3000)
    assert CHECK.shorten(third, 1) > third > CHECK.shorten(third, -1)
    assert CHECK.shorten(-third, 1) > -third > CHECK.shorten(-third, -1)
    assert CHECK.shorten(Fraction(1, 3), 1) == Fraction(1, 3)


# -- damage ---------------------------------------------------------------------------------------------------------


def test_random_damages_are_caught_without_false_alarms():
    damage = load(ROOT / "reliability" / "damage.py")
    text, total = damage.table(damage.run(seed=7, damages=100, games=6))
    assert total["miss"] == total["false alarm"] == 0, text
    assert total["caught"] >= 100 and total["true"] > 20, text


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


def sealed(header, data=b""):
    line = header if isinstance(header, bytes) else json.dumps(header).encode()
    rest = line + b"\n" + data
    return b"acegames-proof 1\n" + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    path = tmp_path_factory.mktemp("honest") / "a.proof"
    ace.certify(ace.solve(ace.catalog.get("intersection")), path)
    _, _, line, data = path.read_bytes().split(b"\n", 3)
    return json.loads(line), data


def edited(honest, **changes):
    header, data = json.loads(json.dumps(honest[0])), honest[1]
    for name, value in changes.items():
        *path, last = name.split("__")
        place = header
        for key in path:
            place = place[key]
        place[last] = value
    return sealed(header, data)


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
    "numbers for labels": lambda honest: edited(honest, game__players=[1, 2]),
}

LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30,) * 2); import runpy, sys; "
LIMITED += "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_unreadable_quickly_and_in_little_memory(name, honest, tmp_path):
    path = tmp_path / "hostile.proof"
    path.write_bytes(HOSTILE[name](honest))
    command = [sys.executable, "-c", LIMITED, str(CHECKER), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "NOT READ" in done.stdout and not done.stderr


def test_a_game_that_grows_beyond_bounds_is_refused(tmp_path, monkeypatch):
    proof = ace.certify(ace.solve(ace.catalog.get("knapsack")), tmp_path / "a.proof")
    monkeypatch.setattr(CHECK, "MOST_OUTCOMES", 10)
    with pytest.raises(CHECK.Unreadable, match="too large"):
        CHECK.check(proof.path, False, None)


def test_labels_cannot_speak_to_the_terminal(tmp_path):
    game = ace.MarkovGame.from_arrays(
        np.ones((1, 2, 1)), np.array([[[1.0], [0.0]]]), np.array([[[1], [0]]]), [1], horizon=2, name="\x1b[2J\nfine"
    )
    path = ace.certify(ace.solve(game), tmp_path / "a.proof").path
    done = subprocess.run([sys.executable, CHECKER, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "\x1b" not in done.stdout


@pytest.mark.parametrize("path", ["missing.proof", "."])
def test_what_is_no_file_is_unreadable(path, tmp_path):
    assert check(tmp_path / path).returncode == 2
