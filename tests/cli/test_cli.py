"""The command-line program: each verb for people and for machines, exit codes, and errors in one clear line."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import acegames as ace
from command_line import answer, refused, run
from emulated_gpu import EmulatedGPU
from games import alone, one_state
from programs import runs


@pytest.fixture(autouse=True)
def _on_a_plain_screen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """The bytes of a solution file and of its policy alone."""
    folder = tmp_path_factory.mktemp("solved")
    solution = ace.solve(ace.catalog.get("intersection"), ace.CE())
    solution.save(folder / "s")
    solution.policy.save(folder / "p")
    return (folder / "s").read_bytes(), (folder / "p").read_bytes()


@pytest.fixture
def solution(solved, tmp_path):
    (tmp_path / "solution.ace").write_bytes(solved[0])
    (tmp_path / "policy.ace").write_bytes(solved[1])
    return "solution.ace"


def works(*words):
    result = run(*words)
    assert result.stderr == ""
    return result.stdout


def fails(*words, code=2):
    """One clear line on stderr, nothing on stdout, and nothing left in the folder that was not there."""
    before = sorted(os.listdir("."))
    said = refused(*words, code=code)
    assert sorted(os.listdir(".")) == before
    reply = answer(*words, code=code)
    assert reply["exit_code"] == code
    assert reply["error"]
    assert said == f"Error: {reply['message']}\n"
    assert sorted(os.listdir(".")) == before
    return said


# -- each verb ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["intersection", "six_cycle", "partition", "knapsack"])
def test_check(name):
    shown = works("check", name)
    assert "Feasible" in shown
    reply, game = answer("check", name), ace.catalog.get(name)
    direct = ace.feasibility(game)
    assert reply["feasible"] is True
    needs, about = ace.estimate(game), reply["game"]
    assert (reply["situations"], reply["estimate"]["stage_games"]) == (direct.pairs, needs.pairs)
    assert all(x in " ".join(shown.split()) for x in (f"{direct.pairs:,} situation", f"{needs.pairs:,} stage game"))
    assert "of memory besides the program itself; " in " ".join(shown.split())
    assert (about["players"], about["states"], about["horizon"]) == (list(game.players), len(game.states), game.horizon)
    assert about["digest"] == game.digest
    assert list(about["budget"]) == about["constraints"] == list(game.constraints)
    assert about["actions_per_player"] == dict(zip(game.players, map(len, game.actions), strict=True))
    assert about["budget_is_a_schedule"] is False


WOULD_DO = r"'left': 2(\.0)?, 'right': 3(\.0)?"


def infeasible(path="infeasible.yaml"):
    ace.catalog.get("partition", weights=(3, 1, 1)).save(path)
    return path


def test_check_of_an_infeasible_game():
    path = infeasible()
    assert "Infeasible" in run("check", path, code=3).stdout
    assert answer("check", path, code=3)["feasible"] is False


def test_frontier():
    shown = works("frontier", "partition")
    reply = answer("frontier", "partition")
    expected = ace.feasibility(ace.catalog.get("partition")).minimal_budgets
    assert reply["minimal_budgets"] == [{"left": left, "right": right} for left, right in expected.tolist()]
    assert reply["game"]["constraints"] == ["left", "right"] and reply["feasible"] is True
    assert reply["game"]["budget"] == {"left": 5, "right": 5}
    assert "left" in shown
    few = works("frontier", "partition", "--most", "2")
    assert f"{len(expected) - 2} more" in few
    assert "no budgets" in works("frontier", "six_cycle")
    assert answer("frontier", "six_cycle")["minimal_budgets"] == [{}]
    assert works("frontier", infeasible())


def test_frontier_with_a_curve():
    shown = works("frontier", "knapsack", "--curve", "--points", "12")
    assert "12 of the 166" in shown and "minimal" in shown and "309" in shown
    reply = answer("frontier", "knapsack", "--curve", "--points", "200")["curve"]
    game = ace.catalog.get("knapsack")
    expected = ace.budget_curve(game, points=200)
    points = reply["points"]
    assert [list(p["values"].values()) for p in points] == expected.values.tolist()
    assert [list(p["budget"].values()) for p in points] == expected.budgets.tolist()
    assert [p["feasible"] for p in points] == [True] * 166 and [p["minimal"] for p in points] == [True] + [False] * 165
    assert (reply["steps"], reply["thinned"], reply["constraints"]) == (166, False, ["weight"])
    assert answer("frontier", "knapsack", "--no-curve")["curve"] is None
    assert len(answer("frontier", "knapsack")["curve"]["points"]) == 20  # small enough to be shown without asking


def test_frontier_with_a_curve_of_chosen_constraints():
    words = ("frontier", "drones", "--curve", "--constraint", "blue battery")
    one = answer(*words, "--concept", "ce", "--objective", "fair")["curve"]
    assert one["constraints"] == ["blue battery"]
    expected = ace.budget_curve(ace.catalog.get("drones"), ace.CE("fair"), "blue battery")
    assert [list(p["values"].values()) for p in one["points"]] == expected.values.tolist()
    assert one["concept"] == {"kind": "ce", "name": "correlated equilibrium", "objective": "fair", "floor": 1.0}
    both = answer(*words, "--constraint", "red battery", "--points", "30")["curve"]
    assert len(both["points"]) == 25
    ace.catalog.get("partition", weights=(2, 1, 1)).save("even.yaml")
    grid = answer("frontier", "even.yaml", "--curve")["curve"]
    assert [p["feasible"] for p in grid["points"]] == [True]
    assert answer("frontier", "partition", "--constraint", "left")["curve"]["constraints"] == ["left"]
    fails("frontier", "partition", "--no-curve", "--constraint", "left")
    fails("frontier", "partition", "--curve", "--constraint", "middle")
    fails("frontier", "six_cycle", "--curve")
    fails("frontier", infeasible(), "--curve", code=3)


def fine_game():
    """A game file with costs of sixteen digits."""
    cost = np.array([[[0.7390851332151607, 0.1], [0.2679491924311227, 0.0]]])
    reward = np.array([[[2.0], [1.0]]])
    game = ace.MarkovGame.from_arrays(
        np.ones((1, 2, 1)), reward, cost, {"fuel": 3, "risk": 0.45}, horizon=6, players=["rover"]
    )
    game.save("fine.yaml")
    return "fine.yaml", game


def test_solving_within_an_epsilon():
    path, _ = fine_game()
    reply = answer("solve", path, "--epsilon", "0.3", "-o", "s.ace")
    assert reply["certificate"]["ok"] and reply["excess"] == {"fuel": 0.3, "risk": 0}
    assert "0.3" in reply["guarantee"] and "0.3" in works("solve", path, "--epsilon", "0.3")
    assert answer("verify", "s.ace")["certificate"]["ok"]
    played = answer("simulate", "s.ace", "--episodes", "50", "--seed", "1")
    assert played["beyond_guarantee"] == 0 and played["largest_excess"]["fuel"] <= 0.3
    assert works("simulate", "s.ace", "--seed", "1")
    up = answer("solve", path, "--epsilon", "fuel=0.3,risk=0", "--rounding", "up")
    assert up["excess"] == {"fuel": 0, "risk": 0} and up["values"]["rover"] <= reply["values"]["rover"]
    relative = answer("solve", path, "--epsilon", "0.1", "--relative")
    assert relative["excess"]["fuel"] == pytest.approx(0.3)
    assert answer("check", path, "--epsilon", "0.3")["feasible"]
    direct = answer("frontier", path, "--epsilon", "0.3", "--no-curve")["minimal_budgets"]
    assert all(budget["fuel"] <= 6 * 0.2679491924311227 for budget in direct)
    shown = works("frontier", path, "--epsilon", "0.3", "--rounding", "up", "--constraint", "fuel")
    assert "each row suffices for the true costs" in shown
    for words in (
        ("--epsilon", "small"),
        ("--epsilon", "-1"),
        ("--epsilon", "fule=1,risk=1"),
        ("--rounding", "up"),
        ("--relative",),
        ("--epsilon", "1", "--rounding", "left"),
    ):
        fails("solve", path, *words)
        fails("check", path, *words)
    fails("solve", path, "--epsilon", "fuel=1,fuel=2")
    some, all_said = (answer("solve", path, "--epsilon", e) for e in ("fuel=0.3", "fuel=0.3,risk=0"))
    assert some["values"] == all_said["values"] and some["guarantee"] == all_said["guarantee"]
    assert "--rounding" in fails("solve", path, "--rounding", "up")
    assert "Fraction" not in fails("solve", path, "--epsilon", "-1/3")


def test_what_is_said_of_rounded_games_is_sure_or_says_that_it_is_not():
    cost = np.array([[[0.31], [0.357]]])
    game = ace.MarkovGame.from_arrays(np.ones((1, 2, 1)), np.zeros((1, 2, 1)), cost, {"fuel": 1}, horizon=3)
    game.save("g.yaml")
    down = answer("check", "g.yaml", "--epsilon", "0.9")
    assert (
        down["feasible"]
        and not down["sure"]
        and down["costs"] == "rounded down"
        and down["game"]["digest"] == game.digest
    )
    assert "may be feasible" in run("check", "g.yaml", "--epsilon", "0.9", "--rounding", "up", code=3).stdout
    assert answer("check", "g.yaml", "--epsilon", "0.01", "--rounding", "up")["sure"]


def test_brackets():
    path, game = fine_game()
    reply = answer("bracket", path, "--epsilon", "0.3")
    direct = ace.bracket(game, epsilon=0.3)
    assert reply["verdict"] == direct.verdict == "feasible"
    assert (
        reply["down"]["values"]["rover"] == direct.down.values[0]
        and reply["up"]["values"]["rover"] == direct.up.values[0]
    )
    assert "Feasible for sure" in works("bracket", path, "--epsilon", "0.3")
    fails("bracket", path)
    assert "Infeasible for sure" in run("bracket", infeasible(), "--epsilon", "0.01", code=3).stdout


def test_playing_forever():
    reply = answer("solve", "intersection", "--gamma", "0.8", "--epsilon", "1", "-o", "s.ace")
    assert reply["certificate"]["ok"] and "cut after" in reply["guarantee"]
    assert "cut after" in works("solve", "intersection", "--gamma", "0.8", "--epsilon", "1")
    assert answer("verify", "s.ace")["ok"]
    assert reply["excess"]["risk"] <= 1
    ace.discount(ace.catalog.get("intersection"), 0.8, epsilon=1).save("forever.npz")
    assert answer("check", "forever.npz")["costs"] == "rounded down"
    assert answer("frontier", "forever.npz", "--no-curve")["costs"] == "rounded down"
    assert not answer("check", "forever.npz", "--rounding", "up")["sure"]  # what comes later is not judged
    fails("solve", "intersection", "--gamma", "0.8")
    fails("solve", "intersection", "--gamma", "1", "--epsilon", "1")
    fails("solve", "intersection", "--cost-gamma", "0.8", "--epsilon", "1")
    fails("solve", "knapsack", "--gamma", "0.8", "--epsilon", "1")


def test_reduce():
    shown = works("reduce", "intersection", "-o", "reduced.yaml")
    assert "reduced.yaml" in shown and "none" in shown
    reply = answer("reduce", "intersection", "-o", "reduced.json")
    expected = ace.reduce(ace.catalog.get("intersection")).game
    reduced = reply["reduced"]
    assert reduced["digest"] == ace.load("reduced.yaml").digest == ace.load("reduced.json").digest == expected.digest
    assert reply["game"]["digest"] == ace.catalog.get("intersection").digest
    assert reduced["budget"] == {} and reply["file"] == "reduced.json"
    assert answer("reduce", "intersection")["file"] is None
    values = answer("solve", "intersection", "--concept", "ce")["values"]
    assert answer("solve", "reduced.yaml", "--concept", "ce")["values"] == pytest.approx(values)
    fails("reduce", infeasible(), code=3)
    fails("reduce", "intersection", "-o", "nowhere/reduced.yaml")
    fails("reduce", "intersection", "-o", "reduced.txt")


def test_every_verb_without_budgets():
    assert "none" in works("check", "corridor")
    assert "no budgets" in works("frontier", "corridor")
    assert "no budgets" in works("solve", "corridor", "-o", "x.ace")
    assert "no budgets" in works("verify", "x.ace")
    assert "Largest" not in works("simulate", "x.ace", "--episodes", "10")
    assert answer("simulate", "x.ace", "--episodes", "10")["violations"] == 0


def test_solve_says_what_ran_where(monkeypatch):
    monkeypatch.setattr(ace, "GPUEngine", EmulatedGPU)
    reply = answer("solve", "intersection", "--engine", "gpu", "--no-verify", "-o", "x.ace")
    assert reply["stats"]["where"] == "on the processors (a small game)"
    said = " ".join(
        works("solve", "intersection", "--engine", "gpu", "--no-verify", "-o", "x.ace").replace("│", "").split()
    )
    assert re.search(r"Solved .* s on the processors \(a small game\)\.", said)


def test_bench_says_what_ran_where(monkeypatch):
    monkeypatch.setattr(ace, "GPUEngine", EmulatedGPU)
    for name in ("SIZES", "LARGE"):
        monkeypatch.setattr(f"acegames.cli.bench.{name}", ((2, 3, 4),))
    measured = answer("bench", "--engine", "gpu")["measurements"]
    assert {m["where"] for m in measured} == {"on the processors (a small game)"}
    judged, verify = [], ace.verify
    monkeypatch.setattr(
        "acegames.cli.bench.verify", lambda *x, engine: judged.append(engine) or verify(*x, engine=engine)
    )
    said = works("bench", "--engine", "gpu")
    assert "┏" in said and "on the processors" in said, "a table, in 80 columns too"
    assert len(judged) > 1 and all(isinstance(engine, EmulatedGPU) for engine in judged)
    assert [m["where"] for m in answer("bench")["measurements"]] == [None]


@pytest.mark.parametrize("concept", ["ce", "cce", "CE"])
@pytest.mark.parametrize("objective", ["welfare", "egalitarian", "fair", "none", "north", "1,2"])
def test_solve(concept, objective):
    reply = answer("solve", "intersection", "--concept", concept, "--objective", objective, "-o", "x.ace")
    kind = {"ce": ace.CE, "cce": ace.CCE}[concept.lower()]
    chosen = {"none": None, "1,2": (1, 2)}.get(objective, objective)
    expected = ace.solve(ace.catalog.get("intersection"), kind(objective=chosen))
    assert reply["certificate"]["ok"] is True
    assert reply["file"] == "x.ace"
    assert set(reply["stats"]) == {"stage_games", "programs", "repaired", "seconds", "where"}
    assert reply["stats"]["where"] is None
    assert reply["guarantee"] == str(expected.guarantee)
    assert reply["concept"]["kind"] == concept.lower() and reply["concept"]["name"] == kind().words.noun
    if objective != "none":
        assert list(reply["values"].values()) == pytest.approx(expected.values.tolist(), abs=1e-8)
    written = ace.Solution.load("x.ace")
    assert written.values.tolist() == list(reply["values"].values())
    assert type(written.concept) is kind
    assert ace.verify(written.game, written.policy, written.concept).ok
    assert os.listdir(".") == ["x.ace"]


def test_solve_for_people():
    shown = works("solve", "intersection", "--output", "x.ace")
    assert "north" in shown
    assert "Written to x.ace" in shown
    assert "was not saved; add -o" not in shown
    assert "was not saved; add -o" in works("solve", "intersection", "--no-verify")
    assert answer("solve", "six_cycle", "--no-verify")["certificate"] is None
    assert answer("solve", "six_cycle", "--floor", "0")["file"] is None


def test_a_solution_serves_as_a_game(solution):
    digest = ace.catalog.get("intersection").digest
    assert answer("check", solution)["game"]["digest"] == digest
    assert answer("frontier", solution)["minimal_budgets"] == answer("frontier", "intersection")["minimal_budgets"]
    answer("solve", solution, "--objective", "fair", "-o", "again.ace")
    assert ace.Solution.load("again.ace").game.digest == digest
    answer("solve", solution, "-o", solution)  # its own place
    assert ace.Solution.load(solution).concept == ace.CE()  # as it was solved for
    answer("solve", solution, "--concept", "cce", "-o", "other.ace")
    assert ace.Solution.load("other.ace").concept == ace.CCE()
    assert answer("bracket", solution, "--epsilon", "1")["down"]["concept"]["kind"] == "ce"


def test_verify(solution):
    assert works("verify", solution)
    reply = answer("verify", solution)["certificate"]
    assert reply["ok"] is True
    assert list(reply["values"].values()) == pytest.approx(ace.Solution.load(solution).values.tolist())
    assert reply["situations"] == ace.feasibility(ace.catalog.get("intersection")).pairs
    assert reply["problems"] == []
    assert reply["witness"] is None
    assert answer("verify", solution, "--tol", "0.5")["certificate"]["tolerance"] == {"north": 0.5, "east": 0.5}


def test_verify_for_another_concept(solution):
    reply = answer("verify", solution, "--concept", "cce")
    assert reply["ok"] and reply["certificate"]["concept"]["kind"] == "cce"
    policy = ace.Solution.load(solution).policy
    nash = answer("verify", solution, "--concept", "nash", code=1)["certificate"]
    assert nash["ok"] == ace.verify(ace.catalog.get("intersection"), policy, ace.Nash()).ok is False
    fails("verify", solution, "--concept", "pure")


def test_verify_a_policy_file_with_its_game(solution):
    for game in ("intersection", solution):
        assert answer("verify", "policy.ace", "--game", game)["ok"] is True
        assert answer("verify", solution, "--game", game)["ok"] is True
    for words in (("verify",), ("simulate",), ("report",), ("prove", "-o", "x.proof")):
        assert "a policy without its game" in fails(words[0], "policy.ace", *words[1:])
    assert "--game GAME" in fails("verify", "policy.ace")


def test_verify_fails_with_code_one(solution):
    """A policy of another game, and a policy that a narrower budget forbids."""
    ace.catalog.get("intersection", budget=1).save("narrow.yaml")
    for game in ("drones", "narrow.yaml"):
        result = run("verify", "policy.ace", "--game", game, code=1)
        reply = answer("verify", "policy.ace", "--game", game, code=1)
        assert reply["ok"] is False
        problems = reply["certificate"]["problems"]
        assert problems[0][:30] in " ".join(result.stdout.split())


def test_verify_holds_what_the_file_states_against_what_the_policy_is_worth(solution):
    """Values that are wrong everywhere, so that the file does not contradict itself."""
    honest = ace.Solution.load(solution)
    more = np.array([0.0, 1e-3])
    first, *later = honest.policy.layers
    layers = (dataclasses.replace(first, values=first.values + more), *later)
    boasting = dataclasses.replace(
        honest, values=honest.values + more, policy=dataclasses.replace(honest.policy, layers=layers)
    )
    boasting.save("boasting.ace")
    reply = answer("verify", "boasting.ace", code=1)
    assert reply["ok"] is False
    problems = reply["certificate"]["problems"]
    assert len(problems) == 1 and "states that player 'east' expects" in problems[0]


def test_simulate_holds_what_the_file_states_against_what_is_played(solution):
    """Other probabilities at the start, where every episode comes: the file contradicts itself."""
    honest = ace.Solution.load(solution)
    first, *later = honest.policy.layers
    layers = (dataclasses.replace(first, mixed_prob=np.roll(first.mixed_prob, 1)), *later)
    dataclasses.replace(honest, policy=dataclasses.replace(honest.policy, layers=layers)).save("other.ace")
    assert "at t=0, state 'dry', spent (0,), but what the policy plays there is worth" in fails("simulate", "other.ace")
    assert answer("verify", "other.ace", code=1)["certificate"]["problems"]
    answer("simulate", "other.ace", "--game", "intersection", "--episodes", "5")  # of that game the file states nothing


def test_simulate(solution):
    assert "Episodes: 2,000" in works("simulate", solution, "--episodes", "2000", "--seed", "3")
    reply = answer("simulate", solution, "--episodes", "2000", "--seed", "3")
    assert reply == answer("simulate", solution, "--episodes", "2000", "--seed", "3")
    assert reply != answer("simulate", solution, "--episodes", "2000", "--seed", "4")
    assert reply["violations"] == 0
    assert reply["episodes"] == 2000
    assert reply["largest_spending"]["risk"] <= 6
    values = ace.Solution.load(solution).values
    for player, value in zip(("north", "east"), values, strict=True):
        assert abs(reply["mean_return"][player] - value) <= 6 * reply["standard_error"][player] + 1e-9
    played = ace.Solution.load(solution).simulate(2000, rng=3).summary()
    assert list(reply["standard_error"].values()) == pytest.approx(played["std_error"], rel=1e-12)
    assert answer("simulate", "policy.ace", "--game", "intersection", "--episodes", "5")["violations"] == 0


def test_simulate_counts_broken_budgets(solution):
    ace.catalog.get("intersection", budget=0).save("narrow.yaml")
    reply = answer("simulate", solution, "--game", "narrow.yaml", "--episodes", "300", "--seed", "0", code=1)
    assert reply["violations"] > 0


def test_catalog():
    names = ace.catalog.names()
    shown = works("catalog")
    assert all(name in shown for name in names)
    assert [entry["name"] for entry in answer("catalog")["games"]] == names
    for name in names:
        (reply,) = answer("catalog", name)["games"]
        assert reply["name"] == name
        assert reply["title"].split()[0] in works("catalog", name)


@pytest.mark.parametrize("suffix", ["yaml", "json", "npz"])
def test_catalog_writes_games(suffix):
    path = f"game.{suffix}"
    assert f"Written to {path}" in works("catalog", "intersection", "-o", path)
    assert answer("catalog", "intersection", "-o", path)["file"] == path
    assert ace.load(path).digest == ace.catalog.get("intersection").digest
    assert answer("check", path)["feasible"] is True


# -- errors ---------------------------------------------------------------------------------------------------------


def test_missing_files():
    long = "a_folder_with_quite_a_long_name/" * 3
    for verb in ("check", "frontier", "solve", "verify", "simulate"):
        assert "none.yaml" in fails(verb, "none.yaml")
        assert f"{long}game.yaml" in fails(verb, f"{long}game.yaml")


def test_unknown_names():
    for verb in ("check", "frontier", "solve"):
        words = fails(verb, "intersectoin")
        assert "intersectoin" in words
        assert "did you mean intersection?" in words
    assert "intersection" in fails("catalog", "intersectoin")
    ace.catalog.get("six_cycle").save("cycle.yaml")
    assert "did you mean cycle.yaml?" in fails("check", "cycle.yml")
    os.mkdir("games")
    ace.catalog.get("six_cycle").save("games/cycle.yaml")
    assert "did you mean games/cycle.yaml?" in fails("solve", "games/cycel.yaml")
    assert "did you mean cycle.yaml?" in fails("verify", "cycl.yaml")
    assert "nosuch" in fails("verify", "nosuch")
    assert "name" in fails("catalog", "-o", "x.yaml")


def test_bad_game_files():
    whole = "format: acegames-game\nversion: 1\n"
    files = {
        "syntax.yaml": "players: [a\nrules: {",
        "empty.yaml": "",
        "foreign.yaml": "hello: world\n",
        "newer.yaml": "format: acegames-game\nversion: 99\n",
        "short.yaml": whole,
        "bytes.yaml": b"\xff\xfe\x00",
        "syntax.json": '{"format": ',
        "text.npz": "not an archive",
        "no_suffix": "not an archive",
        "other.txt": "hello",
    }
    for name, content in files.items():
        with open(name, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
    for name in files:
        for verb in ("check", "frontier", "solve"):
            assert name in fails(verb, name)
    assert ".ace (solutions)" in fails("check", "other.txt")
    os.mkdir("folder.yaml")
    assert "folder.yaml: a folder" in fails("check", "folder.yaml")
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe.yaml")
        assert "pipe.yaml: not an ordinary file" in fails("check", "pipe.yaml")


def test_damaged_solutions(solved):
    content = solved[0]
    for name, damaged in {"cut.ace": content[: len(content) // 2], "empty.ace": b"", "foreign.ace": b"hello"}.items():
        with open(name, "wb") as file:
            file.write(damaged)
        for verb in ("verify", "simulate", "check", "solve"):
            said = fails(verb, name)
            assert name in said and "damaged" in said and ".yaml" not in said
        assert name in fails("verify", name, "--game", "intersection")


def test_a_game_is_no_solution():
    ace.catalog.get("intersection").save("game.npz")
    ace.catalog.get("intersection").save("game.yaml")
    for verb in ("verify", "simulate", "prove", "report"):
        for game in ("game.npz", "game.yaml", "intersection"):
            said = fails(verb, game, *(["-o", "x"] if verb in ("prove", "report") else []))
            assert f"{game}: a game; give a solution of it" in said


@pytest.mark.parametrize("objective", ["wellfare", "1", "1,2,3", "1,x", "1,nan", "nobody", ""])
def test_bad_objectives(objective):
    words = fails("solve", "intersection", "--objective", objective, "-o", "x.ace")
    assert "objective" in words
    assert "welfare" in words


def test_bad_concepts_and_floors():
    for concept in ("ne", "pure", ""):
        assert "ce, cce or nash" in fails("solve", "intersection", "--concept", concept, "-o", "x.ace")
    for floor in ("-1", "nan", "inf"):
        assert "floor" in fails("solve", "intersection", "--floor", floor, "-o", "x.ace")


def test_infeasible_games_say_which_budgets_would_do():
    path = infeasible()
    words = fails("solve", path, "-o", "x.ace", code=3)
    assert re.search(WOULD_DO, words)
    reply = answer("solve", path, code=3)
    assert {"left": 2, "right": 3} in reply["minimal_budgets"]
    assert reply["error"] == "Infeasible"


def test_too_large():
    cost = np.array([[[1], [Fraction(1, 10**30)]]], dtype=object)
    ace.MarkovGame.from_arrays(np.ones((1, 2, 1)), np.ones((1, 2, 1)), cost, {"fuel": 1}, horizon=2).save("fine.yaml")
    for verb in ("check", "frontier", "solve"):
        words = fails(verb, "fine.yaml", code=5)
        assert "fuel" in words
        assert "approximate" in words


def test_outputs_into_nowhere(solution):
    for words in (["solve", "six_cycle"], ["catalog", "six_cycle"]):
        assert "nowhere" in fails(*words, "-o", os.path.join("nowhere", "x.yaml"))
        os.makedirs("folder.yaml", exist_ok=True)
        assert "folder.yaml" in fails(*words, "-o", "folder.yaml")
    assert os.listdir("folder.yaml") == []
    assert "x.txt" in fails("catalog", "six_cycle", "-o", "x.txt")


@pytest.mark.parametrize(
    "words",
    [
        ["simulate", "solution.ace", "--episodes", "0"],
        ["simulate", "solution.ace", "--episodes", "many"],
        ["simulate", "solution.ace", "--seed", "-1"],
        ["verify", "solution.ace", "--tol", "-1"],
        ["verify", "solution.ace", "--tol", "nan"],
        ["verify", "solution.ace", "--tol", "inf"],
        ["frontier", "intersection", "--most", "0"],
        ["solve"],
        ["nonsense"],
        ["frontier", "x", "--most", "0"],
        ["check", "intersection", "--nonsense"],
    ],
    ids=" ".join,
)
def test_wrong_words_are_bad_input(words, solution):
    result = run(*words, code=2)
    assert result.stdout == "" and result.stderr
    reply = run(*words, "--json", code=2)
    assert json.loads(reply.stdout)["message"] and json.loads(reply.stdout)["error"] and reply.stderr == ""


@pytest.mark.parametrize(
    ("words", "call"),
    [("solve intersection -o solution.ace", "replace"), ("report solution.ace --episodes 3 -o r.html", "fsync")],
)
def test_a_failed_write_keeps_the_old_file(words, call, solution, monkeypatch):
    works(*words.split())
    file = Path(words.rpartition(" ")[2])
    before = file.read_bytes()

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    assert "No space left" in fails(*words.split())
    assert file.read_bytes() == before


def test_hints_of_a_page_are_commands_that_work(solved, tmp_path, monkeypatch):
    monkeypatch.setattr("acegames.report.budget_view.MOST_PAIRS", 1)
    (tmp_path / "my solution.ace").write_bytes(solved[0])
    (tmp_path / "policy.ace").write_bytes(solved[1])
    of_policy = ("policy.ace", "--game", "intersection", "-p", "horizon=6", "-o", "r.html")
    for words in (("my solution.ace", "--seed", "3", "-o", "a page.html"), of_policy):
        reply = answer("report", *words, "--episodes", "3", "--most", "3")
        data = re.search(r'id="data">(.*?)</script>', (tmp_path / words[-1]).read_text(), re.DOTALL)[1]
        direct = [note[1] for note in [*json.loads(data)["notes"], *json.loads(data)["curves"][0]["notes"]] if note[1]]
        larger, curve = map(shlex.split, direct)
        assert set(larger) >= {*words, "--episodes", "3", "--most", "30"} and " ".join(larger[:2]) == "acegames report"
        assert answer(*larger[1:])["situations"] == 30 > reply["situations"]
        assert answer(*curve[1:])["curve"] is not None


def test_parts_of_a_game_that_are_no_options_are_explained():
    works("catalog", "intersection", "-o", "g.yaml")
    for words in (("--budget", "risk=4"), ("--horizon", "3")):
        said = run("solve", "g.yaml", *words, "--json", code=2).stdout
        assert "with_budget" in said and "--quiet" not in said
    assert "with_horizon" in fails("solve", "g.yaml", "-p", "horizon=3")


def test_what_is_written_over_is_said():
    assert "in place of" not in works("catalog", "intersection", "-o", "g.yaml")
    assert "in place of the file that was there" in works("catalog", "intersection", "-o", "g.yaml")


def test_limits_on_both_sides_and_labels_with_line_breaks_take_one_line():
    game = ace.catalog.get("intersection").with_budget({"risk": ace.between(0, 5)})
    assert "Budgets: 0 <= risk <= 5" in str(game).splitlines()
    game.save("both.yaml")
    assert "0 <= risk <= 5" in works("check", "both.yaml")
    alone(lambda s, a: [(1, s, 1)], players=["two\nlines"], initial=("a", 1), budget={"fuel": 2}).save("odd.json")
    assert "Players: two lines\n" in works("check", "odd.json")
    for spelled in ("a · 1", "(a, 1)", "('a', 1)"):
        assert answer("show", "odd.json", "--state", spelled)["rows"]
    assert "(a, 1)" in str(ace.load("odd.json")) and "a · 1" in works("show", "odd.json")


@pytest.mark.skipif(sys.platform == "win32", reason="devices of POSIX")
def test_outputs_to_a_device(solution):
    os.symlink(os.devnull, "null.nfg")
    ace.MarkovGame.from_arrays(np.ones((1, 2, 1)), np.ones((1, 2, 1)), None, None, horizon=1).save("g.yaml")
    works("solve", "six_cycle", "-o", os.devnull)
    works("prove", solution, "-o", os.devnull)
    works("report", solution, "-o", os.devnull, "--episodes", "3")
    works("export", "g.yaml", "-o", "null.nfg")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode) and os.path.islink("null.nfg")


def test_the_digest_is_printed_whole():
    digest = ace.catalog.get("intersection").digest
    for done in runs(*(f"COLUMNS={width} check intersection" for width in (20, 60, 80, 200))):
        assert f"digest {digest}\n" in done.stdout


def test_whose_budget_varies():
    game = ace.MarkovGame.from_arrays(
        np.ones((1, 2, 1)), np.ones((1, 2, 1)), np.ones((1, 2, 3)), {"a": 1, "b": 2, "c": 3}, horizon=1
    )
    game.save("three.yaml")
    said = fails("frontier", "three.yaml", "--curve")
    assert "--constraint" in said and "a, b, c" in said


@pytest.mark.parametrize("label", ["[/]", "[bold]b", "[/x] y", "a\\[b]"])
def test_labels_that_look_like_markup(label):
    spent = lambda t, a: int(a[0] == label)  # noqa: E731
    one_state([label], [(label, "rest")], spent, spent, budget={label: 1}, name=label).save("g.yaml")
    for words in (["check"], ["frontier"], ["solve", "-o", "s.ace"]):
        assert label in works(words[0], "g.yaml", *words[1:])
    for verb in ("verify", "simulate"):
        assert label in works(verb, "s.ace")
    assert f"a player ({label})" in fails("solve", "g.yaml", "--objective", "nobody")


# -- as a program ---------------------------------------------------------------------------------------------------


FORKED = """
import os, sys
import numba, numpy, rich.console, rich.table, typer, yaml  # which take longest; nothing of acegames
codes = []
for line in sys.stdin.read().splitlines():
    if not (child := os.fork()):
        sys.argv[1:] = line.split()
        from acegames.__main__ import main
        main()
        os._exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print("codes", *codes)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
@pytest.mark.parametrize(
    "lines",
    [
        ("solve {}", "export {} -o s.h", "prove {} -o s.proof", "show {}"),
        pytest.param(
            ("report {} -o s.html", "simulate {} --episodes 9", "verify {}", "check {}"), marks=pytest.mark.slow
        ),
    ],
    ids=["some", "others"],
)
def test_every_verb_of_a_solution_in_a_fresh_process(lines, solution):
    """Each loads acegames anew, so that none relies on what another verb, or a test, has loaded."""
    typed = "\n".join(lines).format(*[solution] * len(lines))
    words = [sys.executable, "-W", "error", "-c", FORKED]
    done = subprocess.run(words, input=typed, capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[-1].split() == ["codes", *("0" for _ in lines)], done.stderr


def test_errors_as_a_program():
    wanted = {
        "check none.yaml": (2, "none.yaml"),
        "catalog nosuch": (2, "nosuch"),
        f"solve {infeasible()} -o x.ace": (3, WOULD_DO),
    }
    for done, (code, word) in zip(runs(*wanted), wanted.values(), strict=True):
        assert done.code == code
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1, done.stderr
        assert re.search(word, done.stderr)
    assert os.listdir(".") == ["infeasible.yaml"]


def test_check_notes_a_budget_that_nothing_costs(tmp_path):
    game = ace.MarkovGame.from_arrays(
        np.ones((1, 2, 1)), np.zeros((1, 2, 1)), np.zeros((1, 2, 1)), {"fuel": 1}, horizon=2
    )
    game.save(tmp_path / "free.json")
    assert "no outcome of the game has a cost of 'fuel'" in run("check", str(tmp_path / "free.json")).stdout
    assert "no outcome of the game" not in run("check", "intersection").stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_standard_output_that_is_full():
    lines = ("catalog --json", "check intersection --json", "catalog", "--version")
    wrong = ("check nosuch --json", "check --nonsense --json")
    with open("/dev/full", "w") as full:
        for line, done in zip([*lines, *wrong], runs(*lines, *wrong, stdout=full), strict=True):
            assert done.code == 2, line
            assert done.stderr.count("\n") == 1, line
            assert "No space left" in done.stderr or "nosuch" in done.stderr, line


LATER = """
import signal, sys
sys.path.insert(0, sys.argv.pop(1))
{prepare}
from acegames.__main__ import main
main()
"""
SLOW_IMPORT = """
import importlib.abc, os, time
class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "{slow}":
            print("importing", flush=True)
            time.sleep(20)
sys.meta_path.insert(0, Slow())
"""
SLOW_WRITE = """
import os, time
def slow(*args):
    print("writing", flush=True)
    time.sleep(20)
os.fsync = slow
"""


def interrupted(prepare, number, *words):
    """Status and errors of the program that gets a signal once it has said something."""
    source = str(Path(ace.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", LATER.format(prepare=prepare), source, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline()
    time.sleep(0.2)
    process.send_signal(number)
    _, said = process.communicate(timeout=15)
    return process.returncode, said


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("slow", "word"), [("acegames.cli", "interrupted\n"), ("numpy", "interrupted; nothing was written\n")]
)
def test_interruption_while_it_loads(slow, word):
    """The program itself, or what a verb needs."""
    status, said = interrupted(SLOW_IMPORT.format(slow=slow), signal.SIGINT, "catalog")
    assert (status, said) == (130, word)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)]
)
def test_interruption_while_it_writes(number, code):
    status, said = interrupted(SLOW_WRITE, number, "solve", "six_cycle", "-o", "x.ace", "-q")
    assert status == code and "Traceback" not in said
    assert os.listdir(".") == []


@pytest.mark.parametrize("stored", [False, True])
def test_an_interrupted_solve_names_a_checkpoint_that_holds_something(tmp_path, capsys, stored):
    from acegames.cli import _stopped

    if stored:
        (tmp_path / "layer").touch()
    assert _stopped(KeyboardInterrupt(), str(tmp_path)) == 130
    assert ("what was stored is in" in capsys.readouterr().err) == stored
