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
from acegames.model.budgets import ConstraintBudget, Reservoir
from acegames.model.game import MarkovGame
from acegames.system.container import write_archive
from game_files import CHICKEN, SUFFIXES, changed, load_text, meaning, rows_of
from shares import examples

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

    names = Names(unique(draw(st.integers(1, 2))), unique(draw(st.integers(1, 3))), (), unique(draw(st.integers(0, 2))))
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
    budgets = dict(zip(names.constraints, map(ConstraintBudget, map(tuple, columns), reservoirs), strict=True))
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
    assert rows_of(game)[1, "road", ("dare", "dare")] == ((1, 2), {("road", (2,)): 0.5, ("road", (0,)): 0.5})
    assert rows_of(game)[1, "road", ("dare", "yield")] == ((0, 0), {("road", (0,)): 1})


def specs(choices):
    one = st.sampled_from(choices)
    return st.one_of(st.just("*"), one, st.builds(lambda x: {"any": x}, st.lists(one, min_size=1, max_size=2)))


pairs = st.lists(st.sampled_from([0, 1, -2, 0.1, 0.2, 0.7, 3]), min_size=2, max_size=2)
outcome = st.fixed_dictionaries(
    {"probability": st.just(0.25)}, optional={"next": st.sampled_from("pqr"), "cost": pairs, "reward": pairs}
)
conditions = {
    "t": st.sampled_from(["*", 0, 2, [0, 2], "1..2", "0..2"]),
    "state": specs("pqr"),
    "action": st.one_of(
        st.lists(specs("xy"), min_size=2, max_size=2), st.dictionaries(st.sampled_from("ab"), specs("xy"))
    ),
}
setting = st.fixed_dictionaries(
    {},
    optional={
        "when": st.fixed_dictionaries({}, optional=conditions),
        "outcomes": st.lists(outcome, min_size=4, max_size=4),
        "reward": pairs,
        "legal": st.booleans(),
    },
).filter(lambda rule: rule.keys() & {"outcomes", "reward", "legal"})
adding = st.fixed_dictionaries(
    {
        "when": st.fixed_dictionaries({}, optional={**conditions, "next": st.sampled_from("pqr")}),
        "add": st.fixed_dictionaries({}, optional={"cost": pairs, "reward": pairs}).filter(bool),
    }
)
FIRST = {"outcomes": [{"probability": 0.5, "next": "p"}, {"probability": 0.5, "next": "q"}], "reward": [1, 0.1]}


@pytest.mark.filterwarnings("ignore::acegames.errors.GameWarning")
@settings(deadline=None, max_examples=examples(300), suppress_health_check=list(HealthCheck))
@given(
    sets=st.lists(setting, max_size=5),
    adds=st.lists(adding, max_size=4),
    base=st.booleans(),
    default=st.booleans(),
    listed=st.booleans(),
    data=st.data(),
)
def test_the_last_rule_that_sets_counts_and_all_that_add(sets, adds, base, default, listed, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rules")
    document = {
        "format": "acegames-game",
        "version": 1,
        "players": ["a", "b"],
        "constraints": ["c", "d"],
        "budget": [9, 9],
        "horizon": 3,
        "initial": "p",
        "actions": [["x", "y"], ["x", "y"]],
        "default_legal": default,
        "rules": [*([FIRST] if base else []), *sets, *adds],
        **({"states": ["p", "q", "r"]} if listed else {}),
    }
    everywhere = list(itertools.product("xy", repeat=2))
    here, trouble = {"p"}, False
    for t in range(3):
        expected_by_action = {s: {a: meaning(document, t, s, a) for a in everywhere} for s in here}
        trouble = any("missing" in of.values() or not any(of.values()) for of in expected_by_action.values())
        if trouble:
            break
        here = {nxt for of in expected_by_action.values() for said in of.values() if said for nxt, _ in said[1]}
    try:
        game = load_text(folder, json.dumps(document), "game.json")
    except InvalidGame as error:
        if not trouble and "duplicate rule" not in str(error):
            raise
        return
    assert not trouble
    held = rows_of(game)
    for t, s, a in itertools.product(range(3), game.states, everywhere):
        expected = meaning(document, t, s, a)
        if expected in (None, "missing"):
            assert (t, s, a) not in held
        else:
            assert held[t, s, a] == (pytest.approx(expected[0], rel=1e-14, abs=1e-14), expected[1])
    # rules that add may stand anywhere, before or after those that set, in any order
    others = data.draw(st.permutations(adds))
    cut = data.draw(st.integers(0, len(others)))
    document["rules"] = [*others[:cut], *document["rules"][: len(document["rules"]) - len(adds)], *others[cut:]]
    if listed:  # else states are numbered as rules name them
        assert load_text(folder, json.dumps(document), "game.json").digest == game.digest
    game.save(folder / "again.yaml")
    assert load_game(folder / "again.yaml").digest == game.digest


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
    assert (1, "ditch", ("dare", "dare")) not in rows_of(game)
    assert rows_of(game)[0, "road", ("yield", "dare")][0] == (0, 0)
    assert rows_of(game)[1, "road", ("yield", "dare")][0] == (0, 2)
    reward, outcomes = rows_of(load_text(tmp_path, adding))[0, "road", ("dare", "dare")]
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
