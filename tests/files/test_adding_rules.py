"""Rules that add: their sums, what is warned of where rules replace each other, and the lines that messages name."""

import itertools
import json
import re
import warnings
from fractions import Fraction

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import acegames as ace
from acegames.errors import GameWarning, InvalidGame
from acegames.files import rule_tables
from acegames.files.formats import load as load_game
from acegames.files.write_rules import additive
from game_files import CHICKEN, changed, load_text, rows_of, written

# Rules about rewards alone spend nothing of the budget that the file has.
pytestmark = pytest.mark.filterwarnings("ignore:.* its budget never binds:acegames.errors.GameWarning")

BASE = {"next": "road", "reward": [0, 0]}


def test_each_player_pays_for_itself(tmp_path):
    going = [
        {"when": {"action": {p: "dare"}}, "add": {"cost": {"risk": "1/3"}, "reward": {p: 0.1}}} for p in ("red", "blue")
    ]
    game = load_text(tmp_path, changed(rules=[BASE, *going, *({**rule} for rule in going)]))
    reward, outcomes = rows_of(game)[0, "road", ("dare", "dare")]
    assert reward == (0.2, 0.2)
    assert outcomes == {("road", (Fraction(4, 3),)): 1.0}
    assert rows_of(game)[0, "road", ("yield", "yield")] == ((0.0, 0.0), {("road", (Fraction(0),)): 1.0})


def test_an_outcome_may_pay(tmp_path):
    outcomes = [{"probability": 0.25, "reward": {"red": 8}}, {"probability": 0.75, "reward": [0, 4]}]
    game = load_text(tmp_path, changed(rules=[{"outcomes": outcomes}]))  # no other reward is needed
    assert rows_of(game)[0, "road", ("dare", "yield")][0] == (2.0, 3.0)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"add": {}}, ["rule 2: add", "says nothing"]),
        ({"add": 1}, ["rule 2: add", "mapping", "cost, reward"]),
        ({"add": {"next": "road"}}, ["rule 2: add", "unknown key 'next'"]),
        ({"add": {"cost": {"rsik": 1}}}, ["rule 2: add: cost", "did you mean 'risk'"]),
        ({"add": {"reward": {"rde": 1}}}, ["rule 2: add: reward", "did you mean 'red'"]),
        ({"add": {"reward": [1]}}, ["rule 2: add: reward", "1 entry", "2 players"]),
        ({"when": {"next": "road"}, "reward": [1, 1]}, ["rule 2: when: next", "add"]),
        ({"when": {"next": "raod"}, "add": {"cost": 1}}, ["rule 2: when: next", "did you mean 'road'"]),
        (
            {"when": {"t": 0}, "add": {"cost": {"risk": {"distribution": "uniform"}}}, "cost": 1},
            ["rule 2: add: cost", "given by a distribution"],
        ),
    ],
)
def test_wrong_additions(tmp_path, rule, words):
    with pytest.raises(InvalidGame) as caught:
        load_text(tmp_path, changed(rules=[BASE, rule]))
    assert all(word in str(caught.value) for word in words), caught.value


def test_adding_needs_something_to_add_to(tmp_path):
    with pytest.raises(InvalidGame, match=r"no rule gives outcomes and reward.*rules that add need"):
        load_text(tmp_path, changed(rules=[{"add": {"reward": {"red": 1}}}]))


UNIFORM = {"cost": {"risk": {"distribution": "uniform"}}}


@pytest.mark.parametrize(
    ("adds", "words"),
    [
        ([{"reward": {"red": 1e308}}, {"reward": {"red": 1e308}}, {"reward": {"red": -1e308}}], None),
        ([{"cost": 1}, UNIFORM, {"cost": -1}], None),
        ([{"cost": 1}, UNIFORM, {"cost": -2}], "given by a distribution"),
        ([UNIFORM, UNIFORM, {"cost": 0}], "given by a distribution"),
        ([{"cost": f"1/{10**2000 + k}"} for k in (1, 3, 7)], "more than 3900 digits"),
        (
            [{"reward": {"red": 1e308}}, {"reward": {"red": 1e308}}, {"reward": {"red": -1e307}}],
            "too large for a float",
        ),
    ],
)
def test_the_order_of_rules_that_add_does_not_matter(tmp_path, adds, words):
    """Only the sum of all is judged; a distribution may meet numbers that are zero together."""
    pytest.importorskip("scipy")
    rules = [{"add": add} for add in adds]
    digests = set()
    for order in itertools.permutations(rules):
        if words is None:
            digests.add(load_text(tmp_path, changed(rules=[BASE, *order])).digest)
        else:
            with pytest.raises(InvalidGame, match=words):
                load_text(tmp_path, changed(rules=[BASE, *order]))
    assert len(digests) == (words is None)


def test_a_sum_that_is_wrong_is_named_by_a_rule_that_adds_to_it(tmp_path):
    pytest.importorskip("scipy")
    rules = [BASE, {"add": UNIFORM}, {"add": {"cost": 1}}, {"add": {"cost": 0, "reward": [1, 1]}}]
    with pytest.raises(InvalidGame, match=r"rule 3: add: cost: meets another cost"):
        load_text(tmp_path, changed(rules=rules))


def test_too_many_sums_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(rule_tables, "SUMS", 3)
    adds = [{"when": {"action": {"red": "dare"}}, "add": {"reward": {"red": k}}} for k in range(4)]
    with pytest.raises(InvalidGame, match="more than 3 different sums"):
        load_text(tmp_path, changed(rules=[BASE, *adds]))


# -- written files --------------------------------------------------------------------------------------------------

vectors = st.tuples(*[st.sampled_from([Fraction(0), Fraction(1), Fraction(-2), Fraction(1, 3)])] * 2)


@given(
    parts=st.lists(st.lists(vectors, min_size=1, max_size=3), min_size=1, max_size=3),
    spoil=st.booleans(),
    data=st.data(),
)
def test_sums_over_players_are_found(parts, spoil, data):
    def total(acts):
        return tuple(map(sum, zip(*(own[a] for own, a in zip(parts, acts, strict=True)), strict=True)))

    table = {acts: total(acts) for acts in itertools.product(*(range(len(own)) for own in parts))}
    if spoil:
        somewhere = data.draw(st.sampled_from(sorted(table)))
        table[somewhere] = (table[somewhere][0] + 1, table[somewhere][1])
    result = additive(table, parts)
    if result is None:
        assert spoil
        return
    start, changes = result
    for acts, vector in table.items():
        added = [changes.get(who, (0, 0)) for who in enumerate(acts)]
        assert tuple(map(sum, zip(table[start], *added, strict=True))) == vector
    assert all(who not in changes for who in enumerate(start))


def test_what_players_add_is_written_so(tmp_path):
    game = ace.catalog.get("medium_access_3")
    game.save(tmp_path / "game.yaml")
    rules = yaml.safe_load((tmp_path / "game.yaml").read_text())["rules"]
    assert {"when": {"state": "bad", "action": {"tx2": "send"}}, "add": {"cost": {"energy of tx2": 2}}} in rules
    assert len(rules) < len(game.layers[0].reward)
    assert load_game(tmp_path / "game.yaml").digest == game.digest


@pytest.mark.parametrize("reward", [-0.0, 0.1 + 0.2, 1e300, 5e-324])
def test_rewards_come_back_to_the_last_bit(tmp_path, reward):
    """Also where a sum of written numbers would not give them."""

    def build(*pays):
        payoff = dict(zip(itertools.product("xy", repeat=2), pays, strict=True))
        return ace.MarkovGame.from_functions(
            players=["a", "b"],
            horizon=1,
            initial="s",
            actions=lambda t, s: [["x", "y"], ["x", "y"]],
            outcomes=lambda t, s, a: [(0.5, "s", None), (0.5, "another state with a long label", None)],
            reward=lambda t, s, a: [payoff[a], reward],
        )

    for pays in ((reward, 0.1, 0.2, 0.30000000000000004), (0.0, 0.1, 0.2, 0.1 + 0.2), (0.0, reward, -0.0, reward)):
        game = build(*pays)
        game.save(tmp_path / "game.yaml")
        assert load_game(tmp_path / "game.yaml").digest == game.digest


# -- what is warned of --------------------------------------------------------------------------------------------


def warnings_of(tmp_path, rules):
    path = written(tmp_path, changed(rules=rules))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_game(path)
    assert all(issubclass(w.category, GameWarning) and str(path) in str(w.message) for w in caught)
    assert all(w.filename == __file__ for w in caught)
    return [str(w.message) for w in caught if "never binds" not in str(w.message)]


def when(**conditions):
    return {"when": conditions}


RED, BLUE = {"action": {"red": "dare"}}, {"action": {"blue": "dare"}}


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (
            [{**when(**RED), "cost": 1}, {**when(**BLUE), "cost": 1}],
            ["rule 2", "rule 3", "('dare', 'dare')", "add: {cost"],
        ),
        (
            [{**when(**RED), "reward": [1, 0]}, {**when(**BLUE), "reward": [0, 1]}],
            ["rule 2", "rule 3", "the later one alone gives reward", "add: {reward"],
        ),
        ([{**when(**RED), "legal": False}, {**when(**BLUE), "legal": True}], ["rule 2", "rule 3", "legal"]),
        (
            [{**when(**RED), "reward": [1, 0]}, {**when(state="road"), "reward": [2, 0]}],
            ["rule 2", "rule 3", "overlap|no effect"],
        ),
        (
            [{**when(t=1, **RED), "reward": [1, 0]}, {**when(**RED), "reward": [2, 0]}],
            ["rule 2", "has no effect on reward", "rule 3"],
        ),
    ],
)
def test_overlaps_that_lose_something_are_warned_of(tmp_path, rules, words):
    (message,) = warnings_of(tmp_path, [BASE, *rules])
    assert all(any(way in message for way in word.split("|")) for word in words), message


@pytest.mark.parametrize(
    "rules",
    [
        [{**when(**RED), "reward": [1, 0]}, {**when(action=["dare", "dare"]), "reward": [0, 1]}],  # an exception
        [{**when(**RED), "reward": [1, 0]}, {**when(t="1..2", **RED), "reward": [0, 1]}],
        [{**when(**RED), "legal": True}, {**when(**BLUE), "legal": True}],  # both say the same
        [{**when(**RED), "add": {"cost": 1}}, {**when(**BLUE), "add": {"cost": 1}}],
        [{**when(t=0), "cost": 1}, {**when(t=1), "cost": 1}],  # apart
        [  # the overlap has a rule of its own
            {**when(**RED), "cost": 1},
            {**when(**BLUE), "cost": 1},
            {**when(action=["dare", "dare"]), "cost": 2},
        ],
    ],
)
def test_exceptions_are_not_warned_of(tmp_path, rules):
    assert warnings_of(tmp_path, [BASE, *rules]) == []


def test_few_overlaps_are_named_and_the_rest_mentioned(tmp_path):
    many = {"red": ["dare", "yield"], "blue": list(range(12))}
    rules = [BASE, *({"when": {"action": {"blue": k}}, "reward": [k + 1, 0]} for k in range(12))]
    text = changed(actions=many, rules=[*rules, {**when(**RED), "reward": [0, 1]}])
    with pytest.warns(GameWarning) as caught:
        load_text(tmp_path, text)
    assert len(caught) == 6
    assert "more rules overlap" in str(caught[-1].message)


def test_saved_games_and_catalog_files_give_no_warning(tmp_path):
    for name in ace.catalog.names():
        game = ace.catalog.get(name)
        game.save(tmp_path / "game.yaml")
        assert load_game(tmp_path / "game.yaml").digest == game.digest  # warnings are errors here


TYPING_ERRORS = """
format: acegames-game
version: 1
players: [a]
constraints: [c, money]
budget: {c: 1, money: 4}
horizon: 3
initial: road
actions: {a: [go, stay]}
rules:
  - reward: [0]
    next: road
  - when: {state: road, action: {a: go}}
    outcomes: [{probability: 0.5, next: road}, {probability: 0.5, next: ditch}]
  - when: {next: ditch}
    add: {cost: {c: 1}}
  - when: {t: 2, state: road, action: {a: stay}, next: road}
    add: {cost: {money: 1}}
"""
STATES = ("initial: road\n", "initial: road\nstates: [road, ditch, quiet]\n")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([], []),
        ([("{next: ditch}", "{next: dicth}")], ["line 15: nothing leads to the state 'dicth'.*did you mean 'ditch'"]),
        (
            [("{t: 2, state: road,", "{t: 2, state: raod,")],
            ["line 17: nothing leads to the state 'raod'.*did you mean 'road'"],
        ),
        ([STATES], []),
        ([("a: stay}, next: road", "a: stay}, next: ditch")], [r"rule 4 \(line 17\) adds to nothing"]),
    ],
)
def test_labels_with_typing_errors_are_warned_of(tmp_path, changes, words):
    """A state that is only a typing error makes a rule that adds a cost hold nowhere: the cost is lost."""
    text = TYPING_ERRORS
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_text(tmp_path, text)
    said = [str(w.message) for w in caught]
    assert len(said) == len(words), said
    assert all(any(re.search(word, message) for message in said) for word in words), said


def test_of_many_states_that_nothing_leads_to_few_are_named(tmp_path):
    far = [{**when(state=f"far {k}"), "reward": [1, 0]} for k in range(9)]
    text = changed(states=None, rules=[BASE, *far])
    with pytest.warns(GameWarning) as caught:
        load_text(tmp_path, text)
    assert len(caught) == 6
    assert "nothing leads to 9 states in all" in str(caught[-1].message)


def test_a_label_that_looks_like_a_setting(tmp_path):
    text = CHICKEN.replace("constraints: [risk]\n", "").replace("{risk: 2}", "{reservoir: 2}")
    text = text.replace("cost: {risk: 2}", "cost: 2").replace("cost: {risk: 0}", "cost: 0")
    with pytest.warns(GameWarning, match="line 8: budget: 'reservoir' is taken for the label"):
        load_text(tmp_path, text)
    listed = text.replace("horizon: 3", "constraints: [reservoir]\nhorizon: 3")
    assert load_text(tmp_path, listed).constraints == ("reservoir",)


# -- lines ----------------------------------------------------------------------------------------------------------

LONG = """
format: acegames-game
version: 1
players: [red, blue]
constraints: [risk]
horizon: 3
initial: road
budget:
  risk: 2
states: [road]
actions:
  red: [dare, yield]
  blue: [dare, yield]
rules:
  - reward: [0, 0]
    next: road
  - when:
      state: road
      action:
        red: dare
        blue: dare
    outcomes:
      - probability: 0.5
        cost: 1
      - probability: 0.5
        cost:
          risk: 2
"""


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("horizon: 3", "horizon: -3", 6),
        ("  risk: 2\nstates", "  risk: two\nstates", 9),
        ("  risk: 2\nstates", "  rsik: 2\nstates", 9),
        ("  blue: [dare, yield]", "  bleu: [dare, yield]", 13),
        ("  blue: [dare, yield]", "  blue: dare", 13),
        ("states:", "stats:", 10),
        ("reward: [0, 0]", "reward: [0]", 15),
        ("    next: road", "    next: raod", 16),
        ("state: road\n", "state: raod\n", 18),
        ("red: dare\n", "red: drae\n", 20),
        ("      - probability: 0.5\n        cost:\n", "      - probability: -0.5\n        cost:\n", 25),
        ("          risk: 2", "          rsik: 2", 27),
        ("    outcomes:", "    next: road\n    outcomes:", 17),
    ],
)
def test_errors_name_the_line(tmp_path, old, new, line):
    assert LONG.count(old) == 1
    path = written(tmp_path, LONG.replace(old, new))
    with pytest.raises(InvalidGame, match=f"game.yaml: line {line}: "):
        load_game(path)


def test_lines_in_json_and_of_both_rules(tmp_path):
    document = yaml.safe_load(LONG)
    document["rules"][1]["when"]["state"] = "raod"
    text = json.dumps(document, indent=1)
    line = text[: text.index('"raod"')].count("\n") + 1
    with pytest.raises(InvalidGame, match=f"line {line}: rule 2: when: state"):
        load_game(written(tmp_path, text, "game.json"))
    doubled = LONG + "  - reward: [1, 1]\n"
    with pytest.raises(InvalidGame, match=r"line 28: rule 3: duplicate rule, rule 1 \(line 15\) gives reward"):
        load_game(written(tmp_path, doubled))
    overlap = (
        LONG + "  - {when: {action: {red: dare}}, reward: [1, 1]}\n  - {when: {action: {blue: dare}}, reward: [2, 1]}\n"
    )
    with pytest.warns(GameWarning, match=r"rule 3 \(line 28\) and rule 4 \(line 29\) overlap"):
        load_game(written(tmp_path, overlap))


def test_odd_budgets(tmp_path):
    for entry, words in {
        "{reservoir: {reservoir: 3}}": "unknown constraint 'reservoir'; write the label of the constraint first",
        "{reservoir: 3, start: 1}": r"`budget: \{risk: \{reservoir: 3, start: 1\}\}`",
        "{risk: {start: 1}}": "`reservoir: CAPACITY` is missing beside start",
        "{risk: {capacity: 1}}": "unknown key 'capacity', there are 'reservoir'",
        "{risk: {reservoir: {capacity: 1}}}": "reservoir: {'capacity': 1}, must be a number",
        "{risk: {}}": "it is empty",
        "{risk: }": "there is no value",
    }.items():
        with pytest.raises(InvalidGame, match=f"line 9: budget.*{words}"):
            load_text(tmp_path, CHICKEN.replace("{risk: 2}", entry))
    named = CHICKEN.replace("budget: {risk: 2}", "budget: {risk: {reservoir: 2}}").replace("risk", "'a: b'")
    assert load_text(tmp_path, named).reservoirs[0].capacity == 2
