"""acegames show, parameters of catalog games by -p, and warnings about game files, on the command line."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

import acegames as ace
from acegames.cli.game_options import as_typed
from command_line import answer, refused, run
from game_files import CHICKEN, rows_of, written

OVERLAP = (
    CHICKEN.partition("  - when")[0]
    + """
  - {when: {action: {red: dare}}, cost: 1, reward: [1, 0]}
  - {when: {action: {blue: dare}}, cost: 1, reward: [0, 1]}
"""
)


@pytest.fixture(autouse=True)
def _on_a_plain_screen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "dumb")


# -- show -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["intersection", "knapsack", "six_cycle", "medium_access_3", "electric_fleet"])
def test_show_tells_all_that_the_game_holds(name):
    game = ace.catalog.get(name)
    held = rows_of(game)
    for t in {0, game.horizon - 1}:
        reply = answer("show", name, "--t", t, "--most", 10**6)
        rows = {where[1:]: row for where, row in held.items() if where[0] == t}
        assert reply["t"] == t in reply["same_at"]
        assert reply["game"]["digest"] == game.digest
        assert reply["left_out"] == 0
        assert len(reply["rows"]) == len(rows)
        for row in reply["rows"]:
            leads = {(o["next_state"], tuple(o["cost"].values())): o["probability"] for o in row["outcomes"]}
            shown = tuple(row["reward"].values()), leads
            assert shown == rows[row["state"], tuple(row["joint_action"].values())]


def test_show_for_people():
    shown = run("show", "intersection").stdout
    for word in ("north, east", "dare, dare", "risk cost", "state dry", "state ice", "0.75", "Play begins in dry"):
        assert word in shown
    assert "same at all times" in shown
    one = run("show", "intersection", "--state", "ice").stdout
    assert "state ice" in one
    assert "state dry" not in one
    assert "did you mean 'ice'" in refused("show", "intersection", "--state", "iec")


def test_show_is_bounded_and_says_what_is_left_out():
    reply = answer("show", "drones", "--most", 5)
    rows = len(ace.catalog.get("drones").layers[0].reward)
    assert (len(reply["rows"]), reply["left_out"]) == (5, rows - 5)
    shown = run("show", "drones", "--most", 5).stdout
    assert f"{rows - 5:,} more legal joint actions are not shown" in shown.replace("\n", " ")
    assert "--most" in shown
    assert "--state" in shown
    state = ace.catalog.get("drones").states[7]
    assert answer("show", "drones", "--state", state)["rows"][0]["state"] == json.loads(json.dumps(state))


def test_show_of_a_game_that_changes_with_time():
    shown = run("show", "knapsack").stdout
    assert "This is t=0" in shown
    assert "--t T" in shown
    assert answer("show", "knapsack", "--t", 3)["rows"][0]["outcomes"][0]["cost"] == {"weight": 44}
    assert "between 0 and 9" in refused("show", "knapsack", "--t", 10)


def test_show_takes_files_and_solutions():
    game = ace.catalog.get("intersection")
    game.save("game.yaml")
    ace.solve(game).save("solution.ace")
    assert answer("show", "game.yaml") == answer("show", "solution.ace") == answer("show", "intersection")


def test_show_spells_costs_that_are_distributions():
    scipy = pytest.importorskip("scipy.stats")
    moves, pay = np.ones((1, 1, 1)), np.ones((1, 1, 1))
    cost = np.array([[[scipy.uniform(0, 2)]]], dtype=object)
    ace.MarkovGame.from_arrays(moves, pay, horizon=1, initial=0, cost=cost, budget=[3]).save("g.yaml")
    assert "uniform" in run("show", "g.yaml").stdout


# -- parameters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words", "parameters"),
    [
        ("partition", ["weights=3,1,1,1"], {"weights": (3, 1, 1, 1)}),
        ("partition", ["weights=1/3, 0.1, 13/30"], {"weights": (Fraction(1, 3), Fraction(1, 10), Fraction(13, 30))}),
        (
            "knapsack",
            ["values=1.5,2", "weights=1,2", "capacity=2"],
            {"values": (1.5, 2), "weights": (1, 2), "capacity": 2},
        ),
        ("intersection", ["budget=inf", "horizon=3"], {"budget": float("inf"), "horizon": 3}),
        ("drones", ["battery=3,4", "gust=0.5", "horizon=2"], {"battery": (3, 4), "gust": 0.5, "horizon": 2}),
        ("rendezvous", ["always=true", "horizon=3"], {"always": True, "horizon": 3}),
        ("net_zero", ["settled=always"], {"settled": "always"}),
        ("electric_fleet", ["start=none", "horizon=2"], {"start": None, "horizon": 2}),
        ("warehouse", ["pads=[0,1],[2,1]", "horizon=2"], {"pads": ((0, 1), (2, 1)), "horizon": 2}),
    ],
)
def test_parameters_are_read_by_their_types(name, words, parameters):
    typed = [part for word in words for part in ("-p", word)]
    assert answer("show", name, *typed, "--most", 1)["game"]["digest"] == ace.catalog.get(name, **parameters).digest


@pytest.mark.parametrize("name", ace.catalog.names())
def test_every_parameter_can_be_given_and_is_explained(name):
    entry = ace.catalog.describe(name)
    assert set(entry.meanings) == set(entry.parameters) == set(entry.types)
    assert all(text.endswith(".") for text in entry.meanings.values())
    typed = [part for key, value in entry.parameters.items() for part in ("-p", f"{key}={as_typed(value)}")]
    assert answer("show", name, *typed, "--most", 1)["game"]["digest"] == ace.catalog.get(name).digest
    shown = run("catalog", name).stdout
    assert all(key in shown for key in entry.parameters)


def test_every_verb_takes_parameters():
    short = ("-p", "weights=1,1")
    half = ace.catalog.get("partition", weights=(1, 1))
    assert answer("check", "partition", *short)["game"]["digest"] == half.digest
    assert answer("frontier", "partition", *short)["game"]["budget"] == {"left": 1, "right": 1}
    assert answer("reduce", "partition", *short)["game"]["horizon"] == 2
    assert answer("bracket", "partition", *short, "--epsilon", 1)["verdict"]
    assert answer("export", "partition", *short, "-o", "game.csv")["what"] == "game"
    assert ace.load("game.csv").digest == half.digest
    assert answer("catalog", "partition", *short, "-o", "game.yaml")["file"] == "game.yaml"
    assert ace.load("game.yaml").digest == half.digest
    assert answer("solve", "partition", *short, "-o", "s.ace")["values"]["sorter"] == 1
    for verb in ("verify", "simulate"):
        run(verb, "s.ace", "--game", "partition", *short)
        assert "--game" in refused(verb, "s.ace", *short)
    run("report", "s.ace", "--game", "partition", *short, "-o", "page.html")
    assert "--game" in refused("report", "s.ace", *short)


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        (("partition", "-p", "wieghts=1"), ["did you mean 'weights'", "weights=3,1,1,2,2,1"]),
        (("intersection", "-p", "x=1"), ["'x'", "horizon=6, budget=6"]),
        (("partition", "-p", "weights"), ["NAME=VALUE", "weights=3,1,1,2,2,1"]),
        (("partition", "-p", "weights="), ["a list such as 3,1,1"]),
        (("partition", "-p", "weights=a,b"), ["'a' is not a number"]),
        (("partition", "-p", "weights=[1"), ["commas"]),
        (("partition", "-p", "weights=1", "-p", "weights=2"), ["given twice"]),
        (("intersection", "-p", "horizon=six"), ["'six'", "a whole number"]),
        (("intersection", "-p", "horizon=2.5"), ["a whole number"]),
        (("intersection", "-p", "horizon=1,2"), ["a whole number"]),
        (("intersection", "-p", "horizon=0"), ["horizon", "at least 1"]),
        (("drones", "-p", "gust=high"), ["a number"]),
        (("rendezvous", "-p", "always=1"), ["true or false"]),
        (("net_zero", "-p", "settled=never"), ["'always'"]),
        (("knapsack", "-p", "values=1,2"), ["2 values and 10 weights"]),
        (("medium_access", "-p", "battery=1,2,3"), ["3 batteries for 2 players"]),
        (("drones", "-p", "battery=1,2,3"), ["battery"]),
        (("six_cycle", "-p", "x=1"), ["no parameters"]),
        (("game.yaml", "-p", "horizon=1"), ["game.yaml is a file", "only catalog games"]),
    ],
)
def test_wrong_parameters(words, reply):
    ace.catalog.get("six_cycle").save("game.yaml")
    shown = refused("check", *words)
    assert all(word in shown for word in reply), shown


def test_catalog_with_an_output_is_short():
    shown = run("catalog", "warehouse", "-o", "w.yaml").stdout
    assert "Written to w.yaml" in shown
    assert "Source" not in shown
    assert "-o" in refused("catalog", "warehouse", "-p", "width=4")
    assert "name" in refused("catalog", "-p", "width=4")


# -- warnings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["check", "solve", "show"])
def test_warnings_are_sentences(verb, tmp_path):
    written(tmp_path, OVERLAP)
    reply = run(verb, "game.yaml")
    assert reply.stderr.startswith("Warning: game.yaml: rule 2 (line 16) and rule 3 (line 17) overlap: ")
    assert reply.stderr.count("\n") == 1
    assert run(verb, "game.yaml", "--quiet").stderr == ""
    assert isinstance(json.loads(run(verb, "game.yaml", "--json").stdout), dict)
