"""Game files with mistakes in them: one clear error that names the file, the rule, the key and the value."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from acegames.errors import BadFile, InvalidGame, InvalidOption
from acegames.files.formats import load as load_game
from acegames.model.game import MarkovGame
from game_files import CHICKEN, SUFFIXES, changed, load_text, written

BASE = {"next": "road", "reward": [0, 0]}


def check_refused(path, error, words):
    """The file is refused by one error that names it and says these words."""
    with pytest.raises(error) as caught:
        load_game(path)
    for word in [str(path), *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"horizon": 10**12}, ["horizon", "at most 1000000"]),
        ({"horizon": None}, ["'horizon' is missing"]),
        ({"hoirzon": 3}, ["unknown key 'hoirzon'", "did you mean 'horizon'"]),
        ({"actions": {"red": [], "blue": ["dare"]}}, ["actions of player 'red'", "empty"]),
        ({"actions": {"red": ["dare"]}}, ["actions", "player 'blue'"]),
        ({"actions": {"red": ["dare"], "bleu": ["dare"]}}, ["'bleu'", "did you mean 'blue'"]),
        ({"actions": [["dare"]]}, ["actions", "1 player,", "there are 2"]),
        ({"budget": {"rsik": 1}}, ["budget", "'rsik'", "did you mean 'risk'"]),
        ({"budget": {"risk": "1/0"}}, ["budget of 'risk'", "1/0"]),
        ({"budget": {"risk": "1e999999999"}}, ["budget of 'risk'", "1e999999999"]),
        ({"budget": {"risk": [[1], [1, 2], 3]}}, ["budget of 'risk'"]),
        ({"budget": None}, ["budget", "risk"]),
        ({"initial": "raod"}, ["initial", "'raod'", "did you mean 'road'"]),
        ({"initial": [{"state": "road", "probability": 1}] * 2}, ["initial", "'road' occurs twice"]),
        ({"name": 3}, ["name", "3", "text"]),
        ({"default_legal": 1}, ["default_legal", "1"]),
        ({"rules": None}, ["'rules' is missing"]),
        ({"rules": {}}, ["rules", "must be a list"]),
        ({"rules": [3]}, ["rule 1", "3", "mapping"]),
        ({"rules": [{}]}, ["rule 1", "says nothing"]),
        ({"rules": [BASE, {**BASE, "rewrad": 1}]}, ["rule 2", "'rewrad'", "did you mean 'reward'"]),
        ({"rules": [{**BASE, "when": {"stat": "road"}}]}, ["rule 1: when", "'stat'", "did you mean 'state'"]),
        ({"rules": [{**BASE, "when": {"state": "raod"}}]}, ["rule 1: when: state", "'raod'", "'road'"]),
        ({"rules": [{**BASE, "when": {"state": {"any": []}}}]}, ["rule 1: when: state", "empty"]),
        ({"rules": [{**BASE, "when": {"t": 3}}]}, ["rule 1: when: t", "3", "outside 0..2"]),
        ({"rules": [{**BASE, "when": {"t": "2..7"}}]}, ["rule 1: when: t", "'2..7'", "outside 0..2"]),
        ({"rules": [{**BASE, "when": {"t": True}}]}, ["rule 1: when: t", "True"]),
        ({"rules": [{**BASE, "when": {"action": ["dare"]}}]}, ["rule 1: when: action", "2 entries"]),
        ({"rules": [{**BASE, "when": {"action": ["dare", "yeild"]}}]}, ["rule 1", "'blue'", "'yeild'", "'yield'"]),
        ({"rules": [{**BASE, "when": {"action": {"rde": "dare"}}}]}, ["rule 1", "'rde'", "did you mean 'red'"]),
        ({"rules": [{**BASE, "next": "raod"}]}, ["rule 1: next", "'raod'", "did you mean 'road'"]),
        ({"rules": [{**BASE, "cost": {"rsik": 1}}]}, ["rule 1: cost", "'rsik'", "did you mean 'risk'"]),
        ({"rules": [{**BASE, "cost": [1, 2]}]}, ["rule 1: cost", "2 entries", "is 1 constraint"]),
        ({"rules": [{**BASE, "cost": "much"}]}, ["rule 1: cost", "'much'"]),
        ({"rules": [{**BASE, "reward": [1]}]}, ["rule 1: reward", "1 entry", "2 players"]),
        ({"rules": [{**BASE, "reward": {"red": 1}}]}, ["rule 1: reward", "'blue'"]),
        ({"rules": [{**BASE, "reward": [True, 1]}]}, ["rule 1: reward", "True"]),
        ({"rules": [{**BASE, "legal": "no"}]}, ["rule 1: legal", "'no'"]),
        ({"rules": [{**BASE, "outcomes": [{}]}]}, ["rule 1", "both outcomes and"]),
        ({"rules": [{"outcomes": [], "reward": [0, 0]}]}, ["rule 1: outcomes", "at least one"]),
        ({"rules": [{"outcomes": [{"p": 1}]}]}, ["rule 1", "'p'"]),
        ({"rules": [{"outcomes": [{"probability": 0.5}, {"probability": 0.4}]}]}, ["rule 1", "0.9", "sum to 1"]),
        ({"rules": [{"outcomes": [{"probability": 1.5}, {"probability": -0.5}]}]}, ["outcome 2", "-0.5"]),
        ({"rules": [{"reward": [0, 0]}]}, ["t=0", "'road'", "('dare', 'dare')", "outcomes"]),
        ({"rules": [{"next": "road"}]}, ["t=0", "'road'", "('dare', 'dare')", "reward"]),
        ({"rules": [{**BASE, "when": {"t": 0}}]}, ["t=1", "'road'", "outcomes and reward"]),
        ({"rules": [{**BASE, "when": {"action": ["dare", "*"]}}]}, ["t=0", "('yield', 'dare')"]),
        ({"rules": [{**BASE, "legal": False}]}, ["t=0", "'road'", "no legal joint action"]),
        ({"rules": []}, ["t=0", "'road'", "('dare', 'dare')"]),
        ({"rules": [{"reward": [0, 0]}, BASE]}, ["rule 2", "duplicate rule", "rule 1", "reward"]),
        (
            {
                "rules": [
                    BASE,
                    {"when": {"t": "0..2", "state": "road"}, "cost": [1]},
                    {"when": {"t": [2, 1, 0], "state": {"any": ["road"]}, "action": ["*", "*"]}, "cost": [1]},
                ]
            },
            ["rule 3", "duplicate rule", "rule 2", "outcomes"],
        ),
        ({"rules": [BASE], "arrays": "x.npz"}, ["rules and arrays"]),
    ],
)
@pytest.mark.parametrize("name", ["game.yaml", "game.json"])
def test_bad_text(tmp_path, entries, words, name):
    check_refused(written(tmp_path, changed(**entries), name), InvalidGame, words)


def test_next_state_star_without_listed_states(tmp_path):
    with pytest.raises(InvalidGame, match="'\\*' is no state"):
        load_text(tmp_path, changed(states=None, rules=[{**BASE, "next": "*"}]))


def test_nan_and_infinite_numbers_in_yaml(tmp_path):
    for bad in (".nan", ".inf", "-.inf", "1e999"):
        with pytest.raises(InvalidGame, match="rule 1: reward"):
            load_text(tmp_path, CHICKEN.replace("[0, 0]", f"[0, {bad}]"))
    with pytest.raises(InvalidGame, match="states"):
        load_text(tmp_path, CHICKEN.replace("states: [road]", "states: [road, .nan]"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["not a game file"]),
        ("a: 1", ["not a game file"]),
        ("[1, 2]", ["not a game file"]),
        (CHICKEN.replace("version: 1", "version: 2"), ["version 2", "understands 1"]),
        (CHICKEN.replace("version: 1", ""), ["version is missing", "write `version: 1`"]),
        (CHICKEN.replace("version: 1", "version: one"), ["'one'"]),
        (CHICKEN + "name: again", ["line 18, column 1", "'name' occurs twice"]),
        (CHICKEN.replace("[road]", "[road"), ["line 11"]),
        (CHICKEN.replace("name: chicken", "name: &a chicken"), ["line 4, column 7", "anchors"]),
        (CHICKEN.replace("name: chicken", "name: *a"), ["line 4, column 7", "aliases"]),
        (CHICKEN.replace("name: chicken", "name: !!python/name:os.system x"), ["line 4", "tags"]),
        (CHICKEN + "---\na: 1", ["line 18", "second document"]),
        (CHICKEN.replace("name: chicken", "name: " + "[" * 40 + "]" * 40), ["line 4", "nested deeper"]),
        (CHICKEN.replace("name: chicken", "name: " + "[" * 9999), ["nested deeper"]),
        (CHICKEN.replace("horizon: 3", "horizon: " + "9" * 5000), ["line 7"]),
        (CHICKEN.replace("name: chicken", 'name: "\x01"'), ["line 4"]),
        (CHICKEN.replace("name: chicken", "{a: 1}: 2"), ["line 4", "mapping cannot be a key"]),
    ],
)
def test_bad_yaml(tmp_path, text, words):
    check_refused(written(tmp_path, text), BadFile, words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["line 1, column 1"]),
        ('{"format": "acegames-game",\n "version" 1}', ["line 2, column 12"]),
        ('{"format": 1, "format": 2}', ["'format' occurs twice"]),
        ('{"format": NaN}', ["NaN"]),
        ("[" * 100_000, ["nested deeper"]),
        ('{"format": ' + "[" * 40 + "]" * 40 + "}", ["nested deeper"]),
        ("[1]", ["not a game file"]),
    ],
)
def test_bad_json(tmp_path, text, words):
    check_refused(written(tmp_path, text, "game.json"), BadFile, words)


def test_not_text_and_too_long(tmp_path, monkeypatch):
    path = tmp_path / "game.yaml"
    path.write_bytes(b"format: acegames-game\nname: \xff")
    with pytest.raises(BadFile, match="line 2: not UTF-8"):
        load_game(path)
    monkeypatch.setattr("acegames.model.words.TEXT_BYTES", 10)
    with pytest.raises(BadFile, match="larger than 10 bytes"):
        load_game(path)


@pytest.mark.parametrize("label", [frozenset(), b"x", Fraction(1, 2), math.inf, "\ud800", (1, object())])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_labels_that_cannot_be_written(tmp_path, label, suffix):
    game = MarkovGame.from_arrays(np.ones((1, 1, 1)), np.ones((1, 1, 1)), horizon=1, initial=label, states=[label])
    with pytest.raises(InvalidGame, match=r"states: .*relabel"):
        game.save(tmp_path / f"x{suffix}")
    assert not list(tmp_path.iterdir())


def test_suffixes(tmp_path):
    game = load_text(tmp_path, CHICKEN)
    with pytest.raises(InvalidOption, match=r"\.yaml, \.yml, \.json, \.npz"):
        game.save(tmp_path / "game.txt")
    with pytest.raises(InvalidOption, match=r"\.yaml, \.yml, \.json \(text\), \.npz"):
        load_game(written(tmp_path, CHICKEN, "game.txt"))
    game.save(tmp_path / "GAME.NPZ")
    (tmp_path / "GAME.NPZ").rename(tmp_path / "game")
    assert load_game(tmp_path / "game").digest == game.digest
    with pytest.raises(FileNotFoundError):
        load_game(tmp_path / "none.yaml")
    with pytest.raises(IsADirectoryError):
        load_game(tmp_path)


JUNK = [None, True, 0, -1, 1.5, 10**30, "", "*", "x", "1/0"]
JUNK += [[], [[]], {}, {"any": []}, {"any": "road"}, [{}], {"x": {}}]


def paths(value, here=()):
    """Every place in a document."""
    yield here
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from paths(part, (*here, key))


@pytest.mark.filterwarnings("ignore::acegames.errors.GameWarning")
@pytest.mark.parametrize("name", ["game.yaml", "game.json"])
def test_junk_anywhere_is_a_clear_error_or_a_game(tmp_path, name):
    document = json.loads(changed())
    document["rules"] += [
        {"when": {"t": [0, "1..2"], "state": {"any": ["road"]}, "action": {"red": "dare"}}, "legal": True}
    ]
    for path in list(paths(document))[1:]:
        for junk in JUNK:
            twin = json.loads(json.dumps(document))
            part = twin
            for key in path[:-1]:
                part = part[key]
            part[path[-1]] = junk
            try:
                load_text(tmp_path, json.dumps(twin), name)
            except (BadFile, InvalidGame) as error:
                assert str(tmp_path) in str(error)  # noqa: PT017 (some of these are games)
