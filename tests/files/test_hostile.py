"""Files from strangers: refused with a clear error or loaded, in bounded time and memory. See also reliability/fuzz.py."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import acegames as ace
from acegames.errors import AceError, BadFile, InvalidGame, TooLarge
from acegames.files import game_archive as archive_form
from acegames.files import game_data, rule_tables
from acegames.files import games as files
from acegames.model import assemble, layers
from acegames.system import npz
from acegames.system.limits import Limit
from bombs import BOMBS, documents, head
from command_line import run
from game_files import CHICKEN, changed, load_text, written
from shares import examples

HERE = Path(__file__).parents[1]
MAY_WARN = pytest.mark.filterwarnings("ignore::acegames.errors.GameWarning")  # of rules that overlap, and the like
MERSENNE = 2**61 - 1  # numbers that differ by it have one hash
PLENTY = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    result = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(result)
    return result


fuzz = module(HERE.parent / "reliability" / "fuzz.py")
CORPUS = sorted(path for path in (HERE / "corpus").rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def loaders(tmp_path_factory):
    return fuzz.Loaders(tmp_path_factory.mktemp("fuzz"))


# -- the corpus: where fuzzing starts, and every file that ever went wrong


@MAY_WARN
@pytest.mark.parametrize("path", CORPUS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_corpus(loaders, path):
    begin = time.monotonic()
    loaders.load(path.parent.name, path.read_bytes())
    assert time.monotonic() - begin < 60


@MAY_WARN
@pytest.mark.parametrize(
    "path",
    [p for p in CORPUS if p.parent.name in ("yaml", "json", "game", "plain", "solution", "policy", "nfg", "table")],
)
def test_where_fuzzing_starts_is_in_order(loaders, path):
    """Otherwise it would get no further than what is wrong there."""
    if not path.stem.startswith(("no_", "bad_")):
        loaders.by_kind[path.parent.name](path.read_bytes())


def test_the_corpus_has_every_kind_and_is_small():
    assert {path.parent.name for path in CORPUS} == set(fuzz.KINDS)
    assert sum(path.stat().st_size for path in CORPUS) < 300_000


def test_documents_of_bombs_are_in_the_corpus():
    for name, document in documents().items():
        assert json.loads((HERE / "corpus" / name).read_text()) == document
        with pytest.raises(AceError):
            fuzz.Loaders(tempfile.mkdtemp()).by_kind[name.partition("/")[0]](json.dumps(document).encode())


def test_the_fuzzer_sees_what_goes_wrong(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz.Loaders, "_yaml", lambda self, content: {}[content])
    recorder = fuzz.Recorder("yaml", tmp_path, tmp_path)
    recorder.run(b"x")
    recorder.tell()
    assert sum(recorder.crashes.values()) == 1 and list(tmp_path.glob("yaml-*.why"))


# -- by chance: changed documents of every kind, and games that are almost right


@MAY_WARN
@pytest.mark.parametrize("kind", fuzz.DOCUMENTS)
@PLENTY
@given(seed=st.integers(0, 2**32))
def test_changed_documents(loaders, kind, seed):
    rng = random.Random(seed)
    start = rng.choice(fuzz.seeds(kind))
    loaders.load(kind, json.dumps(fuzz.changed(json.loads(start), rng)).encode())


def test_changing_documents_leaves_what_is_put_into_them_as_it_is():
    """Once a list among them contained itself, and every later document with it."""
    before, rng = json.dumps(fuzz.OTHERS), random.Random(0)
    for _ in range(2_000):
        fuzz.changed({"a": [1, {"b": []}]}, rng)
    assert json.dumps(fuzz.OTHERS) == before


@MAY_WARN
@pytest.mark.parametrize("kind", ["yaml", "nfg"])
@PLENTY
@given(seed=st.integers(0, 2**32))
def test_changed_bytes(loaders, kind, seed):
    rng = random.Random(seed)
    loaders.load(kind, fuzz.changed_bytes(rng.choice(fuzz.seeds(kind)), rng))


strange = st.sampled_from(["s", "road", "*", "", "\x1b[2J", "\u202e"])
labels = st.one_of(strange, st.integers(-2, 2**70), st.text(max_size=3), st.booleans())
names = st.one_of(labels, st.lists(labels, max_size=3))
drawn = st.fixed_dictionaries(
    {"distribution": st.sampled_from(["uniform", "binom", "norm", "x"])},
    optional={"n": st.integers(-1, 9), "p": st.floats(0, 1)},
)
amounts = st.one_of(
    st.integers(-3, 3),
    st.floats(allow_nan=False),
    st.sampled_from(["1/3", "-1/3", "1/0", "inf", "1e999", "9" * 4000, "0.5", "1e-300", 10**40]),
    drawn,
)
vectors = st.one_of(amounts, st.lists(amounts, max_size=2))
conditions = st.fixed_dictionaries(
    {},
    optional={
        "t": st.one_of(st.integers(-1, 5), st.sampled_from(["0..2", "2..1", "0..999999999", "*", [0, 2]])),
        "state": st.one_of(names, st.just({"any": ["s"]})),
        "action": st.one_of(st.just("*"), st.lists(names, max_size=3)),
    },
)
outcomes = st.fixed_dictionaries({}, optional={"probability": amounts, "next": names, "cost": vectors})
rules = st.fixed_dictionaries(
    {"reward": vectors},
    optional={
        "when": conditions,
        "outcomes": st.lists(outcomes, max_size=3),
        "next": names,
        "cost": amounts,
        "legal": st.booleans(),
    },
)
almost_games = st.fixed_dictionaries(
    {
        "format": st.just("acegames-game"),
        "version": st.just(1),
        "players": st.one_of(st.just(["me"]), st.lists(names, max_size=3)),
        "horizon": st.one_of(st.integers(1, 4), st.sampled_from([0, 10**12, True, 2.0, "3"])),
        "initial": st.one_of(st.just("s"), names),
        "actions": st.one_of(st.just([["a", "b"]]), st.lists(st.lists(names, max_size=3), max_size=3)),
        "rules": st.lists(rules, max_size=4),
    },
    optional={
        "budget": st.one_of(vectors, st.dictionaries(st.text(max_size=2), amounts, max_size=2)),
        "states": st.lists(names, max_size=4),
    },
)


@settings(PLENTY, max_examples=examples(300))
@given(document=almost_games, suffix=st.sampled_from(["json", "yaml"]))
def test_games_that_are_almost_right(loaders, document, suffix):
    loaders.load(suffix, json.dumps(document).encode())


@pytest.mark.parametrize("verb", fuzz.VERBS)
@settings(PLENTY, max_examples=15)
@given(seed=st.integers(0, 2**32))
def test_every_verb_ends_with_an_exit_code(loaders, verb, seed):
    rng = random.Random(seed)
    kind = "solution" if verb in ("verify", "simulate", "report") else rng.choice(["json", "game", "plain"])
    document = json.loads(rng.choice(fuzz.seeds(kind)))
    if "arrays" in document and rng.random() < 0.5:
        document["header"] = fuzz.changed(document.get("header"), rng)
    else:
        document = fuzz.changed(document, rng)
    loaders.load("cli", json.dumps({"verb": verb, "file": document, "json": seed % 2 == 0}).encode())


# -- numbers and labels


@pytest.mark.parametrize("name", ["game.yaml", "game.json"])
def test_a_finite_budget_too_large_for_a_float_is_not_taken_for_none(tmp_path, name):
    loaded = load_text(tmp_path, changed(budget={"risk": 7}).replace('{"risk": 7}', '{"risk": 1e400}'), name)
    assert loaded.budgets[0][0] == 10**400
    with pytest.raises(InvalidGame, match="budget of 'risk'"):
        load_text(tmp_path, changed(budget={"risk": 7}).replace('{"risk": 7}', '{"risk": 1e999999999}'), name)


@pytest.mark.parametrize("number", ["9" * 10**6, "0x" + "f" * 6000, "0o" + "7" * 10**5, "-" + "1" * 5000])
@pytest.mark.parametrize("place", ["horizon", "states", "budget"])
def test_numbers_without_end(tmp_path, number, place):
    with pytest.raises(BadFile, match="digits, the limit is"):
        load_text(tmp_path, changed(**{place: 77}).replace("77", number))


def test_the_longest_numbers_come_back(tmp_path):
    loaded = load_text(tmp_path, changed(budget={"risk": 10**3800}))
    for name in ("again.yaml", "again.json", "again.npz"):
        loaded.save(tmp_path / name)
        assert ace.load(tmp_path / name).digest == loaded.digest


@pytest.mark.parametrize(
    "entries",
    [
        {"states": ["road", *(k * MERSENNE for k in range(3000))]},
        {"states": None, "rules": [{"reward": [0, 0], "next": k * MERSENNE} for k in range(3000)]},
        {"initial": [{"state": k * MERSENNE, "probability": 1 / 3000} for k in range(3000)]},
    ],
)
def test_labels_with_one_hash(tmp_path, entries):
    with pytest.raises(InvalidGame, match="2\\^61"):
        load_text(tmp_path, changed(**entries))


def test_keys_with_one_hash(tmp_path):
    with pytest.raises(BadFile, match="60 bits"):
        load_text(tmp_path, f"{{{MERSENNE}: 1}}")
    with pytest.raises(BadFile, match="60 bits"):
        load_text(tmp_path, f"? [{MERSENNE}]\n: 1")


def test_costs_with_one_hash_take_no_time(tmp_path):
    many = [{"cost": {"risk": k * MERSENNE}, "probability": 1 / 5000} for k in range(5000)]
    begin = time.process_time()
    loaded = load_text(tmp_path, changed(rules=[{"reward": [0, 0], "outcomes": many}]))
    assert len(loaded.cost_values[0]) == 5000 and time.process_time() - begin < 5


def test_a_few_labels_with_one_hash_are_fine(tmp_path):
    assert len(load_text(tmp_path, changed(states=["road", MERSENNE, 2 * MERSENNE])).states) == 3


@pytest.mark.parametrize("count", [70, 20_000])
def test_many_players(tmp_path, count):
    players = [f"p{i}" for i in range(count)]
    loaded = load_text(
        tmp_path,
        changed(players=players, actions={p: [0] for p in players}, rules=[{"reward": [0] * count, "next": "road"}]),
    )
    assert len(loaded.players) == count


def test_many_constraints(tmp_path):
    many = [f"c{i}" for i in range(20_000)]
    rules = [{"reward": [0, 0], "next": "road"}]
    assert (
        len(load_text(tmp_path, changed(constraints=many, budget=dict.fromkeys(many, 1), rules=rules)).constraints)
        == 20_000
    )


# -- a few words that stand for large tables


WIDE = {"red": list(range(300)), "blue": list(range(300))}
BASE = {"reward": [0, 0], "next": "road"}


@pytest.mark.parametrize(
    "entries",
    [
        {"actions": {"red": list(range(10**4)), "blue": list(range(10**4))}, "rules": [BASE]},
        {
            "actions": WIDE,
            "rules": [
                {"reward": [0, 0], "outcomes": [{"probability": "1/500", "cost": {"risk": k}} for k in range(500)]}
            ],
        },
        {
            "actions": WIDE,
            "horizon": 900,
            "rules": [BASE, *({"when": {"t": t, "action": [0, 0]}, "reward": [t, t]} for t in range(900))],
        },
        {"horizon": 9000, "rules": [BASE, *({"when": {"t": f"{t}..8999"}, "reward": [t, t]} for t in range(9000))]},
    ],
    ids=["wildcards", "outcomes", "times", "intervals"],
)
def test_rules_that_expand_are_refused_at_once(tmp_path, entries):
    begin = time.process_time()
    with pytest.raises(InvalidGame, match="use arrays"):
        load_text(tmp_path, changed(**entries))
    assert time.process_time() - begin < 5


def test_rules_below_the_limit_are_the_same_game(tmp_path, monkeypatch):
    text = changed(horizon=4, rules=[BASE, {"when": {"t": [1, 3]}, "reward": [1, 1]}])
    whole = load_text(tmp_path, text)
    monkeypatch.setattr(rule_tables, "EXPANDED", 10**4)
    assert load_text(tmp_path, text).digest == whole.digest
    monkeypatch.setattr(rule_tables, "EXPANDED", 60)
    with pytest.raises(InvalidGame, match="use arrays"):
        load_text(tmp_path, text)


@pytest.mark.parametrize("steps", [200_000, pytest.param(10**6, marks=pytest.mark.slow)])
def test_a_million_steps_are_read_quickly(tmp_path, steps):
    begin = time.process_time()
    assert load_text(tmp_path, changed(horizon=steps)).horizon == steps
    assert time.process_time() - begin < 20


def test_sets_of_states_that_never_come_again(tmp_path, monkeypatch):
    """Cycles of two and three steps: six sets, after which nothing is new."""
    states = ["a0", "a1", "b0", "b1", "b2"]
    after = dict(zip(states, ["a1", "a0", "b1", "b2", "b0"], strict=True))
    entries = {
        "states": states,
        "initial": [{"state": "a0", "probability": 0.5}, {"state": "b0", "probability": 0.5}],
        "rules": [{**BASE, "next": "a0"}, *({"when": {"state": s}, "next": n} for s, n in after.items())],
    }
    loaded = load_text(tmp_path, changed(horizon=100, **entries))
    reach = layers.reachable_states(loaded)
    assert [set(np.flatnonzero(r)) for r in reach[:4]] == [{0, 2}, {1, 3}, {0, 4}, {1, 2}]
    assert len({id(r) for r in reach}) == 7  # the start, and six
    monkeypatch.setattr(layers, "REACH_WORK", 7 * layers.FOLLOW_OVERHEAD)
    assert load_text(tmp_path, changed(horizon=100, **entries)).digest == loaded.digest
    monkeypatch.setattr(layers, "REACH_WORK", 5 * layers.FOLLOW_OVERHEAD)
    with pytest.raises(TooLarge, match="states that can occur"):
        load_text(tmp_path, changed(horizon=100, **entries))


def test_states_remembered_and_forgotten_are_the_same(tmp_path, monkeypatch):
    result = ace.catalog.get("intersection")
    before = [r.tolist() for r in layers.reachable_states(result)]
    monkeypatch.setattr(layers, "FOLLOW_KNOWN", 0)
    assert [r.tolist() for r in layers.reachable_states(result)] == before


def test_plain_arrays_that_stand_for_much_more(tmp_path):
    many, actions = 400, 400
    legal = np.ones((many, 1, actions, 1), dtype=bool)
    arrays = {"transition": np.ones((1, actions, 1, 1)), "reward": np.zeros((1, actions, 1, 2)), "legal": legal}
    arrays |= {"cost": np.zeros((1, actions, 1, 400, 1)), "cost_prob": np.full((1, actions, 1, 400), 1 / 400)}
    np.savez(tmp_path / "g.npz", **arrays, budget=np.array([1.0]), horizon=np.array(many))
    with pytest.raises(TooLarge, match="outcomes"):
        ace.load(tmp_path / "g.npz")
    np.savez(tmp_path / "g.npz", **{**arrays, "legal": legal[:2]}, budget=np.array([1.0]), horizon=np.array(2))
    assert ace.load(tmp_path / "g.npz").horizon == 2


def test_a_time_of_its_own_is_work_however_small(tmp_path, monkeypatch):
    times = 50
    arrays = {"transition": np.ones((times, 1, 1, 1)), "reward": np.zeros((1, 1, 1)), "horizon": np.array(times)}
    np.savez(tmp_path / "g.npz", **arrays)
    monkeypatch.setattr(archive_form, "OUTCOMES", Limit(128 * times, 0))
    assert ace.load(tmp_path / "g.npz").horizon == times
    monkeypatch.setattr(archive_form, "OUTCOMES", Limit(127 * times, 0))
    with pytest.raises(TooLarge, match="a time counts as 128"):
        ace.load(tmp_path / "g.npz")


def test_budgets_of_many_constraints_at_many_times(tmp_path, monkeypatch):
    monkeypatch.setattr(game_data, "EXPANDED", 2**15)
    many = [f"c{k}" for k in range(100)]
    for budget in ([1] * 100, dict.fromkeys(many, 1), {**dict.fromkeys(many, 1), "c0": [1] * 1000}):
        with pytest.raises(InvalidGame, match="100 constraints at 1000 times"):
            load_text(tmp_path, changed(constraints=many, budget=budget, horizon=1000), "game.json")
    game = ace.MarkovGame.from_arrays(
        np.ones((1, 1, 1)), np.ones((1, 1, 1)), np.zeros((1, 1, 40)), np.ones(40), horizon=1000
    )
    for module in (game_data, files):
        monkeypatch.setattr(module, "labels_to_data", None)  # refused before anything is written out
    for name in ("g.yaml", "g.npz"):
        with pytest.raises(InvalidGame, match="40 constraints at 1000 times, a file may have 32768 in all"):
            game.save(tmp_path / name)


def test_layers_that_share_arrays_are_counted(tmp_path, monkeypatch):
    ace.catalog.get("drones").save(tmp_path / "g.npz")
    monkeypatch.setattr(archive_form, "LAYERED", Limit(0, 0))
    with pytest.raises(BadFile, match="its layers have"):
        ace.load(tmp_path / "g.npz")


# -- archives


def archive(path, members, arrays):
    """An archive of a game whose header names these members; its arrays as their bytes."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.json", f'{{"format": "acegames-game", "version": 1, "members": {members}}}')
        for name, content in arrays.items():
            file.writestr(f"{name}.npy", content)


def test_arrays_are_not_read_where_they_are_not_named(tmp_path, monkeypatch):
    archive(path := tmp_path / "g.npz", '["y"]', {"x": head("<f8", (9,)) + bytes(72)})
    monkeypatch.setattr(npz, "_read_array", None)
    with pytest.raises(BadFile, match="not those that its header names"):
        ace.load(path)


def test_more_than_the_memory_that_is_free(tmp_path, monkeypatch):
    ace.catalog.get("intersection").save(tmp_path / "g.npz")
    monkeypatch.setattr(npz, "ALWAYS_FREE", 0)
    monkeypatch.setattr(npz, "available_memory", lambda: 100)
    with pytest.raises(TooLarge, match=r"g\.npz: holds \d+ bytes of arrays, 100 bytes"):
        ace.load(tmp_path / "g.npz")


def test_a_failed_allocation_is_told(tmp_path, monkeypatch):
    def none(*_, **__):
        raise MemoryError

    ace.catalog.get("intersection").save(tmp_path / "g.npz")
    written(tmp_path, CHICKEN)
    monkeypatch.setattr(npz, "_read_array", none)
    monkeypatch.setattr(files, "head_from_document", none)
    for name in ("g.npz", "game.yaml"):
        with pytest.raises(TooLarge, match="does not have enough memory"):
            ace.load(tmp_path / name)


def test_layers_of_an_archive_must_be_in_order(tmp_path):
    """A few arrays in other orders, combined, would make ever new layers."""
    load_text(tmp_path, CHICKEN).save(tmp_path / "g.npz")
    document = fuzz.unpacked(tmp_path / "g.npz")
    name = document["header"]["layers"][0]["action"]
    document["arrays"][name][2] = document["arrays"][name][2][::-1]
    (tmp_path / "g.npz").write_bytes(fuzz.packed(document))
    with pytest.raises(BadFile, match="not in order"):
        ace.load(tmp_path / "g.npz")


def test_layers_share_what_is_made_of_their_pointers(tmp_path):
    timed = load_text(tmp_path, changed(rules=[BASE, *({"when": {"t": t}, "reward": [t, t]} for t in range(3))]))
    header, arrays = archive_form.game_to_archive(timed)
    names = assemble.Names(timed.players, timed.states, timed.actions, timed.constraints)
    layers, _ = archive_form.tables_from_archive(header, arrays, names, 3)
    assert len(layers) == 3 and len({id(layer.out_row) for layer in layers}) == 1


def with_header(folder, kind, change):
    """A file of the corpus whose header was changed."""
    document = json.loads((HERE / "corpus" / kind / "ce.json").read_text())
    change(document["header"])
    (folder / "changed.ace").write_bytes(fuzz.packed(document))
    return folder / "changed.ace"


@pytest.mark.parametrize(
    "entry", [{"pairs": "many"}, {"pairs": -1}, {"seconds": 1.5}, {"where": "here"}, {"programs": 1.5}]
)
def test_what_a_solve_took_is_numbers(tmp_path, entry):
    with pytest.raises(BadFile, match="must be numbers"):
        ace.Solution.load(with_header(tmp_path, "solution", lambda header: header["stats"].update(entry)))


def test_the_policy_of_a_solution_has_the_labels_of_its_game(tmp_path):
    with pytest.raises(BadFile, match="other labels"):
        ace.Solution.load(with_header(tmp_path, "solution", lambda h: h["policy"]["actions"][0].__setitem__(0, "fly")))


def test_a_policy_that_may_play_what_is_not_legal_is_an_error_of_input(tmp_path):
    path = with_header(tmp_path, "policy", lambda header: header.update(actions=[["fly", "swim"]] * 2))
    run("simulate", path, "--game", written(tmp_path, CHICKEN), code=2)


def test_a_companion_is_not_followed_out_of_its_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "TEXT_LIMIT", 0)
    inside = tmp_path / "in"
    inside.mkdir()
    load_text(tmp_path, CHICKEN).save(inside / "g.yaml")
    (tables,) = inside.glob("g.*.npz")
    ace.load(inside / "g.yaml")
    outside = tmp_path / "secret.npz"
    tables.rename(outside)
    tables.symlink_to(outside)
    with pytest.raises(BadFile, match="leads elsewhere"):
        ace.load(inside / "g.yaml")
    tables.unlink()
    os.mkfifo(tables)
    with pytest.raises(BadFile, match="not an ordinary file"):
        ace.load(inside / "g.yaml")
    monkeypatch.chdir(inside)
    tables.unlink()
    outside.rename(tables)
    ace.load("g.yaml")


def test_parquet_that_unfolds(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from acegames.files.tables.csv_parquet import read_pieces

    parquet.write_table(arrow.table({"t": np.zeros(2 * 10**7, dtype=np.int64)}), tmp_path / "p.parquet")
    assert (tmp_path / "p.parquet").stat().st_size < 10**6
    with pytest.raises(TooLarge, match="unfolds"):
        list(read_pieces(tmp_path / "p.parquet"))


def test_a_table_with_fewer_lines_than_steps(tmp_path):
    from acegames.files import tables

    timed = load_text(tmp_path, changed(rules=[BASE, {"when": {"t": 1}, "reward": [1, 1]}]))
    tables.write_game(timed, tmp_path / "g.csv")
    head = json.loads((tmp_path / "g.csv.json").read_text())
    (tmp_path / "g.csv.json").write_text(json.dumps({**head, "horizon": 10**6}))
    with pytest.raises(BadFile, match="too few for a horizon"):
        tables.read_game(tmp_path / "g.csv")


def test_messages_of_the_command_line_are_short(tmp_path):
    path = written(tmp_path, changed(constraints=["x" * 50, *map(str, range(20_000))], budget=[1]))
    with pytest.raises(AceError) as error:
        ace.load(path)
    assert len(str(error.value)) > 10**5
    assert len(said := run("check", path, code=2).output) < 5000 and "xxxx" in said


def fine(count):
    """Costs whose denominators have 10,000 bits each and nothing in common."""
    many = [{"cost": {"risk": f"1/{(1 << 10_000) + 2 * k + 1}"}, "probability": 1 / count} for k in range(count)]
    return changed(rules=[{"reward": [0, 0], "outcomes": many}])


def test_costs_without_a_common_unit(tmp_path):
    loaded = load_text(tmp_path, fine(64))
    begin = time.process_time()
    for work in (ace.solve, ace.feasibility, ace.reduce, ace.estimate):
        with pytest.raises(TooLarge, match="common denominator"):
            work(loaded)
    assert ace.solve(loaded, epsilon=0.1).values.shape == (2,)
    assert time.process_time() - begin < 20
    with pytest.raises(TooLarge, match="common denominator"):
        ace.verify(loaded, ace.solve(load_text(tmp_path, CHICKEN)).policy, ace.CCE())


@pytest.mark.parametrize("verb", ["check", "solve", "frontier", "reduce", "report"])
def test_budgets_beyond_floats_end_with_an_exit_code(tmp_path, verb):
    file = written(tmp_path, changed(budget={"risk": "1e999"}))
    if verb == "report":
        ace.solve(ace.load(file)).save(file := tmp_path / "s.ace")
    words = [verb, file, *(["-o", tmp_path / "r.html"] if verb == "report" else [])]
    assert run(*words, code=None).exit_code in (0, 5)


# -- with little memory


READER = """
import re, resource, signal, sys
from pathlib import Path
import acegames as ace
resource.setrlimit(resource.RLIMIT_AS, (3 * 2**29, 3 * 2**29))
for path in sys.argv[1:]:
    signal.alarm(20)
    try:
        ace.load(path)
        said = "loaded"
    except ace.AceError as error:
        said = f"{type(error).__name__}: {error}"
    peak = re.search(r"VmHWM:\\s*([0-9]+) kB", Path("/proc/self/status").read_text())[1]  # maxrss has the parent's, too
    print(int(peak) // 1024, said[:200].replace("\\n", " "))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
def test_bombs_take_little_memory(tmp_path):
    """One process with 1.5 GiB of addresses reads them all; what is printed is the largest memory so far, in MiB."""
    bombs = BOMBS | {
        "shape.npz": lambda p: archive(p, '["x"]', {"x": head("<f8", (10**12,))}),
        "laughs.yaml": lambda p: p.write_text("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"),
        "deep.yaml": lambda p: p.write_text("[" * 10**6),
        "deep.json": lambda p: p.write_text("[" * 10**6),
        "wild.json": lambda p: p.write_text(
            changed(actions={"red": list(range(4000)), "blue": list(range(4000))}, rules=[BASE])
        ),
        "exponent.json": lambda p: p.write_text(changed(budget={"risk": "1e999999999"})),
        "digits.json": lambda p: p.write_text(changed(budget={"risk": "9" * 10**6})),
        "horizon.json": lambda p: p.write_text(changed(horizon=10**12)),
        "list.json": lambda p: p.write_text("[" + "[]," * 10**6 + "[]]"),
    }
    for name, make in bombs.items():
        make(tmp_path / name)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, "-c", READER, *(str(tmp_path / name) for name in bombs)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == len(bombs), done.stderr[-2000:]
    for name, line in zip(bombs, lines, strict=True):
        memory, said = line.split(" ", 1)
        assert said.startswith(("BadFile", "InvalidGame", "TooLarge")) and "enough memory" not in said, (name, said)
        assert int(memory) < 700, (name, line)
