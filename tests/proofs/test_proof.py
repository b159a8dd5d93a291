"""Proofs are written for every kind of exact answer, say what they claim, and are refused where nothing can be proved."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import acegames as ace
import oracle
from acegames.cli import app
from acegames.errors import BadFile, InvalidOption
from games import one_stage, one_state, solo
from proof_checker import check


def parts(path):
    kind, digest, line, data = path.read_bytes().split(b"\n", 3)
    return kind, digest, json.loads(line), data


WITHOUT_NASH = ("medium_access_3", "six_cycle")  # the first: none in pure strategies, and it has three players


@pytest.mark.parametrize("name", ["intersection", "medium_access_3", "net_zero", "knapsack", "rendezvous", "six_cycle"])
@pytest.mark.parametrize("concept", [ace.CE(), ace.CCE(), ace.Nash()], ids=repr)
def test_catalog_games_are_proved(name, concept, tmp_path):
    game = ace.catalog.get(name)
    if isinstance(concept, ace.Nash) and name in WITHOUT_NASH:
        with pytest.raises(ace.NoEquilibrium):
            ace.solve(game, concept)
        return
    solution = ace.solve(game, concept)
    proof = ace.prove(solution, tmp_path / "a.proof")
    done = check(proof.path, "--game", game.digest)
    assert done.returncode == 0, done.stdout
    assert f"Its digest is {game.digest}." in done.stdout
    assert f"in all {proof.situations:,} situations" in done.stdout
    assert (proof.values[:, 0] <= solution.values).all() and (solution.values <= proof.values[:, 1]).all()
    assert proof.size == proof.path.stat().st_size


def test_the_file_is_what_the_docstring_says(tmp_path):
    solution = ace.solve(ace.catalog.get("intersection"), ace.CE())
    proof = ace.prove(solution, tmp_path / "a.proof")
    first, digest, header, data = parts(proof.path)
    assert first == b"acegames-proof 1"
    assert digest.decode() == hashlib.sha256(proof.path.read_bytes().split(b"\n", 2)[2]).hexdigest()
    assert header["concept"] == "CE"
    assert len(data) == sum(int(np.prod(shape)) * int(kind[2]) for _, kind, *shape in header["arrays"])
    ace.prove(solution, tmp_path / "b.proof")
    assert (tmp_path / "b.proof").read_bytes() == proof.path.read_bytes()


def test_a_reservoir_is_in_the_proof_and_judged_by_the_checker(tmp_path):
    rule = {"go": 2, "stay": 0, "charge": -3}
    pay, budget = lambda t, a: [a[0] == "go"], {"battery": ace.reservoir(5, start=3)}
    solution = ace.solve(one_state(["car"], [list(rule)], lambda t, a: rule[a[0]], pay, horizon=4, budget=budget))
    proof = ace.prove(solution, tmp_path / "a.proof")
    first, _, header, _ = parts(proof.path)
    assert first == b"acegames-proof 1" and header["game"]["reservoirs"] == [["5", "3"]]
    done = check(proof.path)
    assert done.returncode == 0 and "'battery': at most 5 is missing" in done.stdout, done.stdout
    smaller = proof.path.read_bytes().split(b"\n", 2)[2].replace(b'[["5", "3"]]', b'[["4", "3"]]', 1)
    line = hashlib.sha256(smaller).hexdigest().encode()
    (tmp_path / "c.proof").write_bytes(b"\n".join([b"acegames-proof 1", line, smaller]))
    done = check(tmp_path / "c.proof")
    assert done.returncode == 2 and "bound is no level of it" in done.stdout


def test_another_game_is_refused_when_this_one_is_asked_for(tmp_path):
    proof = ace.prove(ace.solve(ace.catalog.get("knapsack")), tmp_path / "a.proof")
    done = check(proof.path, "--game", ace.catalog.get("intersection").digest)
    assert done.returncode == 1 and "another game" in done.stdout


def fine_game(costs=(0.37, 0.61), budget=2.05, horizon=5):
    """Two players who pay in hundredths for what they like to do."""
    table = {"go": (2.0, costs[0]), "run": (3.0, costs[1]), "stay": (0.0, 0)}
    return ace.MarkovGame.from_functions(
        players=["a", "b"],
        actions=lambda t, s: [list(table)] * 2,
        outcomes=lambda t, s, x: [(0.5, "even", table[x[0]][1]), (0.5, "odd", table[x[1]][1])],
        reward=lambda t, s, x: [table[x[0]][0] - (x[0] == x[1]), table[x[1]][0] - (s == "odd")],
        budget={"fuel": budget},
        horizon=horizon,
        initial="even",
    )


@pytest.mark.parametrize(("rounding", "covers"), [("down", "no safe deviation"), ("up", "as the policy counts costs")])
def test_a_policy_that_rounds_is_proved_for_the_true_costs(rounding, covers, tmp_path):
    game = fine_game()
    solution = ace.solve(game, ace.CCE(), epsilon=0.5, rounding=rounding)
    assert not solution.policy.tracker.exact
    certificate = ace.verify(game, solution.policy, ace.CCE())
    proof = ace.prove(solution, tmp_path / "a.proof")
    assert Fraction(proof.spent[0]) == Fraction(str(certificate.max_spent[0]))
    assert (Fraction(proof.excess[0]) > 0) == (rounding == "down")
    assert proof.rounded and str(proof).endswith("--rounded")
    assert (
        check(proof.path, "--game", game.digest).returncode == 1
    )  # nobody gets a rounded budget without asking for it
    done = check(proof.path, "--game", game.digest, "--rounded")
    assert done.returncode == 0, done.stdout
    assert covers in done.stdout
    assert f"at most {proof.spent[0]} is spent" in done.stdout
    assert (f"exceeded by {proof.excess[0]} at most" in done.stdout) == (rounding == "down")


def test_discounted_play_is_proved_for_its_first_steps(tmp_path):
    solution = ace.solve(ace.discount(fine_game(horizon=2), 0.5, epsilon=0.5))
    done = check(ace.prove(solution, tmp_path / "a.proof").path)
    assert done.returncode == 0, done.stdout
    assert "what comes later is no part of this proof" in done.stdout


def test_costs_from_distributions_are_refused_with_a_way_out(tmp_path):
    stats = pytest.importorskip("scipy.stats")
    game = fine_game(costs=(stats.uniform(0, 0.5), 0.61))
    with pytest.raises(InvalidOption, match="round_costs"):
        ace.prove(ace.solve(game, epsilon=0.5), tmp_path / "a.proof")
    assert not (tmp_path / "a.proof").exists()
    rounded = ace.round_costs(game, 0.5).game
    proof = ace.prove(ace.solve(rounded), tmp_path / "a.proof")
    assert check(proof.path, "--game", rounded.digest).returncode == 0


def rock_paper_scissors():
    """A tie costs both; the best coarse equilibrium never ties, and told an action one knows what the other does."""
    return one_stage({(a, b): [(-2, -2), (1, -1), (-1, 1)][(a - b) % 3] for a in range(3) for b in range(3)})


def test_what_is_not_certified_is_not_proved(tmp_path):
    solution = ace.solve(rock_paper_scissors(), ace.CCE())
    other = replace(solution, concept=ace.CE())
    with pytest.raises(InvalidOption, match="gains"):
        ace.prove(other, tmp_path / "a.proof")
    with pytest.raises(InvalidOption, match="must be what solve"):
        ace.prove(solution.policy, tmp_path / "a.proof")
    with pytest.raises(InvalidOption, match=r"^path: got None, must be the path of a file"):
        solution.prove(None)
    assert not (tmp_path / "a.proof").exists()


def test_too_many_situations_are_refused_with_their_number(tmp_path, monkeypatch):
    solution = ace.solve(ace.catalog.get("intersection"))
    (entries,) = (shape[0] for name, _, *shape in written(solution, tmp_path)["arrays"] if name == "policy.prob")
    monkeypatch.setattr("acegames.proofs.MOST_ENTRIES", entries)
    ace.prove(solution, tmp_path / "fits.proof")
    monkeypatch.setattr("acegames.proofs.MOST_ENTRIES", entries - 1)
    with pytest.raises(ace.TooLarge, match=f"at most {entries - 1} joint actions of situations; there are {entries}"):
        ace.prove(solution, tmp_path / "a.proof")
    assert not (tmp_path / "a.proof").exists()


def written(solution, folder):
    """The header of its proof."""
    return parts(ace.prove(solution, folder / "whole.proof").path)[2]


def test_the_checker_takes_as_much_memory_as_it_is_allowed(tmp_path):
    path = ace.prove(ace.solve(ace.catalog.get("intersection")), tmp_path / "a.proof").path
    short, enough = check(path, "--memory", "1e-6"), check(path, "--memory", "0.5")
    assert short.returncode == 2 and "too large (see --memory)" in short.stdout
    assert enough.returncode == 0


def test_a_game_without_budgets_and_one_with_wide_totals(tmp_path):
    bare = oracle.random_game(np.random.default_rng(3), constraints=0, players=2)
    assert check(ace.prove(ace.solve(bare), tmp_path / "a.proof").path).returncode == 0
    wide = fine_game(costs=(Fraction(1, 3) + Fraction(1, 10**15), Fraction(1, 7)), budget=1, horizon=3)
    assert check(ace.prove(ace.solve(wide), tmp_path / "b.proof").path, "--exact").returncode == 0


def test_three_budgets_whose_totals_together_do_not_fit_into_64_bits(tmp_path):
    sevenths = Fraction(1, 7) + Fraction(1, 10**14)
    game = solo(
        lambda t, s, a: [(0.5, s, (sevenths * (a == "go"),) * 3), (0.5, s, (0, -1, 1))],
        horizon=3,
        budget=[2, 2, 3],
        reward=lambda t, s, a: float(a == "go"),
        actions=("go", "stay"),
    )
    done = check(ace.prove(ace.solve(game), tmp_path / "a.proof").path)
    assert done.returncode == 0, done.stdout


def test_the_command_line(tmp_path):
    solution, proof = tmp_path / "s.ace", tmp_path / "s.proof"
    run = CliRunner().invoke
    assert run(app, ["solve", "intersection", "-q", "-o", str(solution)]).exit_code == 0
    done = run(app, ["prove", str(solution), "-o", str(proof)])
    assert done.exit_code == 0 and "checker/ace_check.py" in done.output
    assert check(proof).returncode == 0
    told = json.loads(run(app, ["prove", str(solution), "-o", str(proof), "--json"]).output)
    assert told["game"]["digest"] == ace.catalog.get("intersection").digest and told["situations"] == 53
    checker = tmp_path / "checker.py"
    assert run(app, ["prove", str(solution), "-o", str(proof), "--checker", str(checker)]).exit_code == 0
    assert checker.read_bytes() == (Path(__file__).parents[2] / "checker" / "ace_check.py").read_bytes()
    assert run(app, ["prove", str(proof), "-o", str(proof)]).exit_code == 2
    with pytest.raises(BadFile):
        ace.Solution.load(proof)
