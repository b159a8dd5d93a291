"""The JSON answers have exactly the fields that docs/reference/json.md documents, for every verb."""

from __future__ import annotations

import re
from pathlib import Path

import acegames as ace
import command_line
from acegames.cli import EXAMPLES

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "json.md").read_text()
ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \|", flags=re.MULTILINE)
TABLES = {
    section.partition("\n")[0].strip(): dict(ROW.findall(section))
    for section in PAGE.split("\n## ")[1:]
    if ROW.search(section)
}
SIMPLE = {"text": str, "true/false": bool, "number": (int, float), "any": object}


def check_type(value, kind, labels, place):
    """Whether a value is of a documented type; `labels` are the players and the constraints."""
    kind = kind.strip()
    if kind.endswith(" or null"):
        return value is None or check_type(value, kind.removesuffix(" or null"), labels, place)
    if kind.startswith("list of "):
        assert isinstance(value, list), place
        return all(check_type(x, kind.removeprefix("list of "), labels, f"{place}[{k}]") for k, x in enumerate(value))
    if kind in ("by player", "by constraint"):
        known = labels[kind]
        assert isinstance(value, dict) and (known is None or list(value) == known), (place, value)
        return True
    if kind.startswith("*"):
        return check_fields(value, kind.strip("*"), labels, place)
    assert isinstance(value, SIMPLE[kind]), (place, kind, value)
    assert kind != "number" or not isinstance(value, bool), place
    return True


def check_fields(value, table, labels, place, more=()):
    fields = {name: kind for part in (*more, table) for name, kind in TABLES[part].items()}
    assert sorted(value) == sorted(fields), place
    if table == "game":  # labels of its own, where it is not the game of the answer
        labels = {"by player": value["players"], "by constraint": value["constraints"]}
    return all(check_type(value[name], kind, labels, f"{place}.{name}") for name, kind in fields.items())


def answer(*words, code=0):
    """The answer to a command, with every field of it compared with the page."""
    reply = command_line.answer(*words, code=code)
    game = reply.get("game", {})
    labels = {"by player": game.get("players"), "by constraint": game.get("constraints")}
    assert check_fields(reply, "error" if "error" in reply else words[0], labels, words[0], ["every answer"])
    assert (reply["format"], reply["version"], reply["exit_code"]) == ("acegames-answer", 1, code)
    assert reply["acegames"] == ace.__version__
    return reply


def test_every_verb_is_documented_and_keeps_its_word(monkeypatch):
    from acegames.cli import bench, warming

    monkeypatch.setattr(warming, "warm", lambda: None)
    monkeypatch.setattr(bench, "SIZES", ((2, 3, 4),))
    solved = answer("solve", "intersection", "-o", "s.ace")
    commands = [
        ("check", "intersection"),
        ("show", "knapsack", "--t", "3"),
        ("frontier", "intersection"),
        ("frontier", "drones", "--no-curve"),
        ("reduce", "intersection", "-o", "r.yaml"),
        ("solve", "electric_fleet", "--no-verify"),
        ("bracket", "drones", "--epsilon", "0.5"),
        ("payoffs", "intersection"),
        ("verify", "s.ace"),
        ("prove", "s.ace", "-o", "s.proof", "--checker", "c.py"),
        ("simulate", "s.ace", "--episodes", "1"),
        ("export", "s.ace", "-o", "p.csv"),
        ("report", "s.ace", "-o", "s.html", "--episodes", "3"),
        ("catalog",),
        ("catalog", "drones", "-o", "d.yaml"),
        ("warm",),
        ("bench",),
    ]
    reply = [solved, *(answer(*words) for words in commands)]
    assert {x["verb"] for x in reply} == {verb.__name__ for verb in EXAMPLES}
    digests = {x["game"]["digest"] for x in reply if x.get("game", {}).get("name") == "intersection"}
    assert digests == {ace.catalog.get("intersection").digest}


def test_a_failed_check_names_the_place():
    answer("solve", "intersection", "-o", "s.ace")
    ace.catalog.get("intersection", budget=1).save("narrow.yaml")
    certificate = answer("verify", "s.ace", "--game", "narrow.yaml", code=1)["certificate"]
    step = certificate["witness"]["history"][-1]
    assert list(step["joint_action"]) == ["north", "east"] and list(step["spent"]) == ["risk"]
    assert step["spent"]["risk"] + step["cost"]["risk"] > 1 or certificate["problems"]
    nash = answer("verify", "s.ace", "--concept", "nash", code=1)["certificate"]
    assert nash["concept"]["name"] == "Nash equilibrium"


def test_errors_have_one_shape():
    ace.catalog.get("partition", weights=(3, 1, 1)).save("short.yaml")
    assert {"left": 2, "right": 3} in answer("solve", "short.yaml", code=3)["minimal_budgets"]
    assert answer("check", "nosuch", code=2)["verb"] == "check"
    assert answer("check", "drones", "--nonsense", code=2)["error"] == "UsageError"
    reply = answer("solve", "six_cycle", "--concept", "nash", code=4)
    assert reply["error"] == "NoEquilibrium" and reply["place"]["t"] == 0 and reply["place"]["spent"] == {}
