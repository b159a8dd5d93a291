"""What the program says about wrong words, unfit files and closed pipes, in the words of the command line."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import acegames as ace
from acegames.cli import TYPED, in_option_words
from command_line import refused, run
from programs import environment, runs


@pytest.mark.parametrize("said", TYPED)
def test_every_advice_that_is_reworded_exists_in_the_library(said):
    source = Path(ace.__file__).parent
    plain = ["".join(p.read_text().split()) for p in source.rglob("*.py") if "cli" not in p.parts]
    wanted = "".join(said.split())
    assert any(wanted in text.replace('""', "").replace('"f"', "") for text in plain)


def test_options_are_named_as_they_are_typed():
    assert "--objective nroth" in refused("solve", "intersection", "--objective", "nroth")
    assert "did you mean north?" in refused("solve", "intersection", "--objective", "nroth")
    assert "none" in refused("solve", "intersection", "--objective", "x")
    assert "None" not in refused("solve", "intersection", "--objective", "x")
    assert refused("frontier", "intersection", "--constraint", "rsk").startswith("Error: --constraint: unknown")
    assert "give --epsilon too" in refused("solve", "intersection", "--rounding", "up")
    assert refused("solve", "drones", "-p", "gust=1e400").startswith("Error: -p gust=1e400: ")
    assert "1.5 is no whole number of at least 1" in run("simulate", "x.ace", "--episodes", "1.5", code=2).stderr
    ten_thousand = refused("simulate", "x.ace", "--episodes", "1e4")
    assert ten_thousand == "Error: x.ace: no such file\n"  # the number is fine
    assert str(in_option_words(ace.InvalidOption("cost_gamma: wrong"), ["cost_gamma"])) == "--cost-gamma: wrong"
    assert str(in_option_words(ace.InvalidOption("t=3: wrong"), ["t"])) == "t=3: wrong"


def test_files_that_are_no_solutions_are_told_apart():
    ace.solve(ace.catalog.get("intersection")).save("s.ace")
    run("export", "s.ace", "-o", "p.csv")
    assert "g.csv.json was written too" in run("export", "intersection", "-o", "g.csv").stdout
    assert "python ck.py s.proof" in run("prove", "s.ace", "-o", "s.proof", "--checker", "ck.py").stdout
    assert "a table for other programs, not a policy file" in refused("verify", "p.csv", "--game", "intersection")
    assert "acegames solve g.csv" in refused("verify", "g.csv")
    assert "python ace_check.py s.proof" in refused("verify", "s.proof")
    Path("vans.html").touch()
    assert "did you mean" not in refused("solve", "vans.txt")
    Path("vans.yaml").touch()
    assert "did you mean vans.yaml?" in refused("solve", "van.yaml")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_a_closed_pipe_ends_the_program_without_a_word():
    read, write = os.pipe()
    os.close(read)
    for done in runs("check intersection", "check intersection --json", stdout=write):
        assert (done.code, done.stderr) == (141, "")
    os.close(write)


THREE = """
format: acegames-game
version: 1
players: [alice, bob]
horizon: 3
initial: a state with a rather long name
budget: {fuel: 1234567, noise exposure: 7654321, wear: 9}
actions: {alice: [accelerate, stay], bob: [accelerate, stay]}
rules:
  - {next: a state with a rather long name, reward: [-12345.5, 54321.25], cost: {fuel: 123457, noise exposure: 765437, wear: 1}}
"""


def test_nothing_is_wrapped_in_a_pipe():
    Path("three.yaml").write_text(THREE)
    variables = {key: value for key, value in environment().items() if key != "COLUMNS"}
    words = ("show three.yaml", "check three.yaml", "frontier three.yaml", "catalog drones")
    outputs = dict(zip(words, runs(*words, env=variables), strict=True))
    for done in outputs.values():
        assert done.code == 0, done.stderr
        assert [line for line in done.stdout.splitlines() if line != line.rstrip()] == []
    shown, checked = (outputs[x].stdout.splitlines() for x in words[:2])
    assert any("-12345.5, 54321.2" in line and "765437" in line for line in shown)
    assert any(line.startswith("To be solved: ") and line.endswith(".") for line in checked)


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120])
def test_narrow_tables_lose_no_number(width, monkeypatch):
    Path("three.yaml").write_text(THREE)
    monkeypatch.setenv("COLUMNS", str(width))
    shown = run("show", "three.yaml").stdout
    for number in ("54321.2", "123457", "765437"):
        assert shown.count(number) == 4, shown
    assert "wear" in shown and "more legal" not in shown


def test_what_is_left_out_is_counted_in_words():
    shown = run("show", "intersection", "--state", "ice", "--most", "3").stdout
    assert "1 more legal joint action is not shown: --most N shows more." in shown
    shown = run("show", "intersection", "--most", "4").stdout
    assert "among them all of 1 state: --state S" in shown


def test_what_is_not_said_is_that_of_the_solution_file():
    run("solve", "intersection", "--concept", "ce", "--objective", "egalitarian", "--floor", "2", "-o", "ce.ace", "-q")
    for words, kind, objective, floor in (
        ((), "ce", "egalitarian", 2.0),
        (("--objective", "fair"), "ce", "fair", 2.0),
        (("--floor", "0.5"), "ce", "egalitarian", 0.5),
        (("--floor", "1"), "ce", "egalitarian", 1.0),
        (("--concept", "cce"), "cce", "egalitarian", 1.0),
    ):
        reply = json.loads(run("solve", "ce.ace", *words, "--no-verify", "--json").stdout)["concept"]
        assert (reply["kind"], reply["objective"], reply["floor"]) == (kind, objective, floor)
    for option in ("--concept", "--objective"):  # an empty word is not the same as none
        assert f"{option} :" in refused("solve", "ce.ace", option, "")


def test_large_seeds_are_whole_numbers():
    run("solve", "intersection", "-o", "s.ace", "-q")
    assert run("simulate", "s.ace", "--episodes", "1e1", "--seed", 2**53 + 1).exit_code == 0
