"""Game files: exact round trips and the meaning of rules."""

import itertools
import json
import math
import re
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import acegames as ace
from acegames.errors import InvalidGame
from acegames.files import games as files
from acegames.files import rules as reader
from acegames.files.formats import load as load_game
from acegames.files.formats import save as save_game
from acegames.files.game_archive import game_from_archive, game_to_archive
from acegames.model.assemble import Names, RawLayer, assemble, code_costs
from acegames.model.budgets import Budgets, Reservoir
from acegames.model.game import MarkovGame
from acegames.system.container import write_archive
from game_files import CHICKEN, SUFFIXES, changed, load_text, written
from shares import examples


def row(game, t, state, action):
    """(reward, {(next state, cost): probability}) of a joint action, None where it is not legal."""
    layer = game.layer(t)
    for r in layer.rows(game.state_index(state)):
        if game.joint_action(layer.action[r]) == action:
            here = layer.outcomes(r)
            costs = [
                tuple(values[int(c)] for values, c in zip(game.cost_values, codes, strict=True))
                for codes in layer.cost[here]
            ]
            nexts = [game.states[int(s)] for s in layer.next_state[here]]
            return tuple(layer.reward[r]), dict(zip(zip(nexts, costs, strict=True), layer.prob[here], strict=True))
    return None


# -- games of every kind ---------------------------------------------------------------------------------------

ODD = ["*", "1", "yes", "on", "null", "~", "", " ", "1e3", "0x1F", "012", "1:30", "2001-01-01", "a: b", "#x", "- x"]
ODD += [
    "\n",
    "\x85",
    "\u2028",
    "\ufeff",
    "\x7f",
    "🚗",
    "é",
    "'",
    '"',
    "\\",
    "any",
    "2..5",
    "inf",
    ".inf",
    "<<",
    "=",
    "y",
]
scalars = st.one_of(
    st.sampled_from(ODD),
    st.text(max_size=5),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
)
labels = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)
rewards = st.one_of(st.sampled_from([0.0, -0.0, 1e300, -1e-300, 5e-324, 1 / 3, 1e15, 123456789.0]), st.floats(-9, 9))
costs = st.one_of(
    st.sampled_from([Fraction(1, 3), Fraction(1, 10), Fraction(-5), Fraction(10**25), Fraction(1, 10**400)]),
    st.integers(-3, 3).map(Fraction),
)


@st.composite
def games(draw):
    """Any game: per time and state any set of joint actions, also none where the state cannot occur."""

    def unique(size):
        return tuple(draw(st.lists(labels, min_size=size, max_size=size, unique=True)))

    names = Names(
        unique(draw(st.integers(1, 2))),
        unique(draw(st.integers(1, 3))),
        (),
        unique(draw(st.integers(0, 2))),
    )
    names = Names(names.players, names.states, tuple(unique(2) for _ in names.players), names.constraints)
    horizon = draw(st.integers(1, 4))
    kinds = [draw(layers(names)) for _ in range(draw(st.integers(1, 3)))]
    raw, vectors = [], []
    for t in range(horizon):
        rows, outs = kinds[draw(st.integers(0, len(kinds) - 1))]
        raw.append((t, rows, outs))
        vectors += [c for *_, c in outs]
    values, codes = code_costs(vectors, len(names.constraints))
    built, used = [], 0
    for t, rows, outs in raw:
        built.append(raw_layer(t, rows, outs, codes[used : used + len(outs)], len(names.players)))
        used += len(outs)
    bound = st.one_of(st.just(math.inf), costs)
    reservoirs, columns = [], []
    for _ in names.constraints:
        reservoir, entry = None, bound
        if draw(st.booleans()):
            capacity = abs(draw(costs))
            part = st.integers(0, 4).map(lambda k, whole=capacity: whole * Fraction(k, 4))
            reservoir, entry = Reservoir(capacity, draw(part)), part
        reservoirs.append(reservoir)
        columns.append([draw(entry) for _ in range(horizon)] if draw(st.booleans()) else [draw(entry)] * horizon)
    budgets = Budgets(tuple(zip(*columns, strict=True)) if columns else ((),) * horizon, tuple(reservoirs))
    start = {s: 1 / len(names.states) for s in names.states} if draw(st.booleans()) else {names.states[0]: 1.0}
    try:
        return assemble(names, built, values, horizon=horizon, initial=start, budgets=budgets, name=draw(st.text()))
    except InvalidGame as error:
        if "no legal joint action" not in str(error):
            raise
        assume(False)


@st.composite
def layers(draw, names):
    joint = list(itertools.product(range(2), repeat=len(names.players)))
    rows, outs = [], []
    for state in range(len(names.states)):
        for action in draw(st.sets(st.sampled_from(joint))) if draw(st.integers(0, 3)) else joint:
            split = draw(st.sampled_from([[1.0], [0.5, 0.5], [1 / 3, 2 / 3], [1e-300, 1.0], [0.1] * 10]))
            for p in split:
                cost = tuple(draw(costs) for _ in names.constraints)
                outs.append((len(rows), p, draw(st.integers(0, len(names.states) - 1)), cost))
            rows.append((state, action, [draw(rewards) for _ in names.players]))
    return rows, outs


def raw_layer(t, rows, outs, codes, n):
    return RawLayer(
        (t,),
        np.array([s for s, _, _ in rows], dtype=int),
        np.array([a for _, a, _ in rows], dtype=int).reshape(-1, n),
        np.array([r for _, _, r in rows], dtype=float).reshape(-1, n),
        np.array([o[0] for o in outs], dtype=int),
        np.array([o[1] for o in outs], dtype=float),
        np.array([o[2] for o in outs], dtype=int),
        codes,
    )


@settings(deadline=None, max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(game=games(), suffix=st.sampled_from(SUFFIXES))
def test_round_trip_is_exact(game, suffix, tmp_path_factory):
    path = tmp_path_factory.mktemp("round") / f"game{suffix}"
    save_game(game, path)
    back = load_game(path)
    assert back.digest == game.digest
    assert back.name == game.name
    assert [repr(x) for x in back.states] == [repr(x) for x in game.states]
    assert (back.budgets, back.reservoirs) == (game.budgets, game.reservoirs)


@settings(deadline=None, max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(game=games(), suffix=st.sampled_from(SUFFIXES[:3]))
def test_round_trip_with_a_companion(game, suffix, tmp_path_factory):
    path = tmp_path_factory.mktemp("round") / f"game{suffix}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "TEXT_LIMIT", 0)
        save_game(game, path)
    assert sorted(p.name for p in path.parent.iterdir()) == sorted([f"game.{game.digest[:12]}.npz", path.name])
    assert load_game(path).digest == game.digest


@settings(deadline=None, max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(game=games())
def test_round_trip_inside_a_solution(game, tmp_path_factory):
    path = tmp_path_factory.mktemp("round") / "solution.ace"
    header, arrays = game_to_archive(game)
    assert game_from_archive(header, arrays).digest == game.digest
    write_archive(path, files.SOLUTION, {"game": header}, {f"game/{k}": a for k, a in arrays.items()})
    assert load_game(path).digest == game.digest


def test_a_cost_of_one_tenth_comes_back_exact(tmp_path):
    game = MarkovGame.from_arrays(np.ones((1, 1, 1)), np.ones((1, 1, 1)), [[[0.1]]], [Fraction(1, 3)], horizon=2)
    for suffix in SUFFIXES:
        game.save(tmp_path / f"x{suffix}")
        back = load_game(tmp_path / f"x{suffix}")
        assert back.cost_values == ((Fraction(1, 10),),)
        assert back.budgets == ((Fraction(1, 3),),) * 2


def test_equal_arrays_are_stored_once():
    reward = np.arange(3.0).reshape(3, 1, 1, 1)  # depends on time, the rest does not
    game = MarkovGame.from_arrays(np.ones((1, 1, 1)), reward, horizon=3)
    header, arrays = game_to_archive(game)
    assert len(header["layers"]) == 3
    assert sorted(name.rsplit("_", 1)[0] for name in arrays).count("reward") == 3
    assert sorted(name.rsplit("_", 1)[0] for name in arrays).count("prob") == 1


# -- what rules mean -------------------------------------------------------------------------------------------


def test_the_example(tmp_path):
    game = load_text(tmp_path, CHICKEN)
    assert game.name == "chicken"
    assert len(game.layers) == 1
    assert row(game, 1, "road", ("dare", "dare")) == ((1, 2), {("road", (2,)): 0.5, ("road", (0,)): 0.5})
    assert row(game, 1, "road", ("dare", "yield")) == ((0, 0), {("road", (0,)): 1})


def naive(document, t, state, action):
    """The meaning of rules, read off the documentation: the last rule that matches, part by part."""

    def fits(spec, value):
        return spec == "*" or (value in spec["any"] if isinstance(spec, dict) else spec == value)

    said = {}
    for rule in document["rules"]:
        when = rule.get("when", {})
        times = when.get("t", "*")
        if isinstance(times, str) and times != "*":
            low, high = map(int, times.split(".."))
            times = list(range(low, high + 1))
        at = times == "*" or (t in times if isinstance(times, list) else t == times)
        acts = when.get("action", ["*", "*"])
        if isinstance(acts, dict):
            acts = [acts.get(p, "*") for p in document["players"]]
        if at and fits(when.get("state", "*"), state) and all(map(fits, acts, action)):
            if "next" in rule or "cost" in rule:
                said["outcomes"] = [{k: rule[k] for k in ("next", "cost") if k in rule}]
            said |= {k: v for k, v in rule.items() if k in ("outcomes", "reward", "legal")}
    legal = said.get("legal", document.get("default_legal", True) or "outcomes" in said)
    if not legal:
        return None
    if "outcomes" not in said or "reward" not in said:
        return "missing"
    results = {}
    for o in said["outcomes"]:
        key = (o.get("next", state), (Fraction(str(o.get("cost", [0])[0])),))
        results[key] = results.get(key, 0) + o.get("probability", 1)
    return tuple(said["reward"]), results


def specs(choices):
    one = st.sampled_from(choices)
    return st.one_of(st.just("*"), one, st.builds(lambda x: {"any": x}, st.lists(one, min_size=1, max_size=2)))


effects = st.fixed_dictionaries({}, optional={"next": st.sampled_from("pqr"), "cost": st.sampled_from([[1], [0.5]])})
rules = st.fixed_dictionaries(
    {},
    optional={
        "when": st.fixed_dictionaries(
            {},
            optional={
                "t": st.sampled_from(["*", 0, 2, [0, 2], "1..2", "0..2"]),
                "state": specs("pqr"),
                "action": st.one_of(
                    st.lists(specs("xy"), min_size=2, max_size=2), st.dictionaries(st.sampled_from("ab"), specs("xy"))
                ),
            },
        ),
        "outcomes": st.lists(effects.map(lambda e: {**e, "probability": 0.25}), min_size=4, max_size=4),
        "reward": st.lists(st.integers(0, 9), min_size=2, max_size=2),
        "legal": st.booleans(),
    },
).filter(lambda rule: rule.keys() & {"outcomes", "reward", "legal"})


@pytest.mark.filterwarnings("ignore::acegames.errors.GameWarning")
@settings(deadline=None, max_examples=examples(300), suppress_health_check=list(HealthCheck))
@given(
    extra=st.lists(rules, max_size=6),
    base=st.booleans(),
    default=st.booleans(),
    listed=st.booleans(),
)
def test_the_last_rule_that_matches_wins(extra, base, default, listed, tmp_path_factory):
    document = {
        "format": "acegames-game",
        "version": 1,
        "players": ["a", "b"],
        "constraints": ["c"],
        "budget": [9],
        "horizon": 3,
        "initial": "p",
        "actions": [["x", "y"], ["x", "y"]],
        "default_legal": default,
        "rules": [{"next": "q", "cost": [2], "reward": [7, 8]}, *extra] if base else extra,
    }
    if listed:
        document["states"] = ["p", "q", "r"]
    path = written(tmp_path_factory.mktemp("rules"), json.dumps(document), "game.json")
    everywhere = list(itertools.product("xy", repeat=2))
    here, trouble = {"p"}, False
    for t in range(3):
        expected_by_action = {s: {a: naive(document, t, s, a) for a in everywhere} for s in here}
        trouble = any("missing" in of.values() or not any(of.values()) for of in expected_by_action.values())
        if trouble:
            break
        here = {nxt for of in expected_by_action.values() for said in of.values() if said for nxt, _ in said[1]}
    try:
        game = load_game(path)
    except InvalidGame as error:
        if not trouble and "duplicate rule" not in str(error):
            raise
        return
    assert not trouble
    for t, s, a in itertools.product(range(3), game.states, everywhere):
        expected = naive(document, t, s, a)
        assert row(game, t, s, a) == (None if expected == "missing" else expected)


def test_labels_that_yaml_1_1_would_change_stay_text(tmp_path):
    text = CHICKEN.replace("dare", "on").replace("yield", "off").replace("road", "2001-01-01")
    game = load_text(tmp_path, text)
    assert game.actions == (("on", "off"),) * 2
    assert game.states == ("2001-01-01",)


def test_numbers_are_what_is_written(tmp_path):
    text = CHICKEN.replace("cost: {risk: 2}", "cost: {risk: 0.12345678901234567890}").replace(
        "{risk: 2}", '{risk: "1/3"}'
    )
    text = text.replace("probability: 0.5, cost: {risk: 0}", 'probability: "1/2", cost: {risk: 1e-3}')
    game = load_text(tmp_path, text)
    assert game.cost_values == ((0, Fraction(1, 1000), Fraction(12345678901234567890, 10**20)),)
    assert game.budgets[0] == (Fraction(1, 3),)


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        ({"risk": ["inf", 1, "3/2"]}, [(math.inf,), (1,), (Fraction(3, 2),)]),
        ([2], [(2,)] * 3),
        ([["inf"], ["inf"], [1]], [(math.inf,), (math.inf,), (1,)]),
    ],
)
def test_budgets(tmp_path, budget, expected):
    assert load_text(tmp_path, changed(budget=budget)).budgets == tuple(expected)


def test_initial_distribution(tmp_path):
    start = [{"state": "road", "probability": "1/4"}, {"state": "ditch", "probability": 0.75}]
    game = load_text(tmp_path, changed(initial=start, states=None))
    assert game.states == ("road", "ditch")
    assert game.initial == ((0, 0.25), (1, 0.75))


# -- the documentation -----------------------------------------------------------------------------------------

DOCS = Path(__file__).parents[2] / "docs"


def test_the_documented_examples(tmp_path):
    first, drawn, adding, second = re.findall(
        r"```yaml\n(.*?)```", (DOCS / "reference" / "game-file.md").read_text(), re.DOTALL
    )
    (rule,) = yaml.safe_load(drawn)
    changes = {"constraints": ["fuel", "risk"], "budget": [9, 9], "actions": [["drive"]], "players": ["me"]}
    game = load_text(tmp_path, changed(rules=[{"reward": [0], "next": "road"}, rule], **changes))
    assert game.cost_values[0][-1].upper == Fraction(7, 2)
    game = load_text(tmp_path, first)
    assert game.cost_values == ((0, Fraction(1, 10), 2),)
    assert row(game, 1, "ditch", ("dare", "dare")) is None
    assert row(game, 0, "road", ("yield", "dare"))[0] == (0, 0)
    assert row(game, 1, "road", ("yield", "dare"))[0] == (0, 2)
    reward, outcomes = row(load_text(tmp_path, adding), 0, "road", ("dare", "dare"))
    assert reward == (1.9, 1.9)
    assert outcomes == {("road", (2,)): 0.9, ("ditch", (Fraction(5, 2),)): 0.1}
    np.savez(tmp_path / "tables.npz", transition=np.ones((1, 1, 1)), reward=np.ones((1, 1, 1)), cost=np.ones((1, 1, 2)))
    assert load_text(tmp_path, second).budgets[0] == (7, math.inf)


def test_the_schema_knows_the_keys_of_the_reader():
    schema = json.loads((DOCS / "reference" / "game-file.schema.json").read_text())
    parts = schema["$defs"]
    assert set(schema["properties"]) == set(files.KEYS)
    assert set(parts["rule"]["properties"]) == set(reader.RULE_KEYS)
    assert set(parts["when"]["properties"]) == set(reader.WHEN_KEYS)
    assert set(parts["outcome"]["properties"]) == set(reader.OUTCOME_KEYS)
    stores = [set(x["properties"]) for x in parts["entry"]["anyOf"] if "reservoir" in x.get("properties", ())]
    assert stores == [{"reservoir", "start", "reserve"}]


def test_other_yaml_readers_see_the_same_labels(tmp_path):
    words = [x for x in ODD if x != "\x7f"]
    moves = np.ones((len(words), 1, len(words))) / len(words)
    game = MarkovGame.from_arrays(moves, np.full((len(words), 1, 1), 1e300), horizon=1, initial="*", states=words)
    game.save(tmp_path / "words.yaml")
    document = yaml.safe_load((tmp_path / "words.yaml").read_text())
    assert document["states"] == words
    assert document["rules"][0]["reward"] == [1e300]


def test_a_rule_that_names_the_only_state_overrides_one_that_names_none(tmp_path):
    path = tmp_path / "game.yaml"
    path.write_text(
        "format: acegames-game\nversion: 1\nplayers: [a]\nhorizon: 1\ninitial: s\nactions: {a: [x]}\n"
        "rules:\n  - {next: s, reward: [0]}\n  - {when: {state: s}, reward: [1]}\n"
    )
    assert load_game(path).layers[0].reward.tolist() == [[1.0]]


@pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
def test_a_link_to_a_text_file_with_a_companion(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "TEXT_LIMIT", 10)
    game = ace.catalog.get("intersection")
    (tmp_path / "place").mkdir()
    (tmp_path / "link.yaml").symlink_to("place/game.yaml")
    game.save(tmp_path / "link.yaml")
    assert len(list((tmp_path / "place").iterdir())) == 2 and len(list(tmp_path.iterdir())) == 2
    for name in ("link.yaml", "place/game.yaml"):
        assert ace.load(tmp_path / name).digest == game.digest
