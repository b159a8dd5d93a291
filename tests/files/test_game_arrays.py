"""Games as arrays: damaged and hostile files, plain numpy files, and companions of text files."""

import json

import numpy as np
import pytest

from acegames.errors import BadFile, InvalidGame
from acegames.files import games as files
from acegames.files.formats import load as load_game
from acegames.model.game import MarkovGame
from acegames.system.container import read_archive
from acegames.system.npz import write_npz
from game_files import CHICKEN, SUFFIXES, load_text, written

# -- damage ----------------------------------------------------------------------------------------------------


@pytest.fixture
def game(tmp_path):
    return load_text(tmp_path, CHICKEN.replace("action: [dare, dare]", 'action: [dare, dare], t: "1..2"'))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_truncation_never_gives_another_game(tmp_path, game, suffix):
    path = tmp_path / f"whole{suffix}"
    game.save(path)
    whole = path.read_bytes()
    expected = BadFile if suffix in (".npz", ".json") else (BadFile, InvalidGame)  # a YAML head lacks its rules
    end = len(whole.rstrip())
    for length in sorted({*range(0, end, 1 + end // 400), *range(end - 100, end)}):
        path.write_bytes(whole[:length])
        with pytest.raises(expected):
            load_game(path)


@pytest.mark.filterwarnings("ignore::acegames.errors.GameWarning")  # a flipped bit may make rules overlap
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_flipped_bits_never_surprise(tmp_path, game, suffix):
    path = tmp_path / f"whole{suffix}"
    game.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(11)
    refused = 0
    positions = rng.choice(len(whole), size=min(len(whole), 500), replace=False).tolist()
    for position in positions:
        damaged = bytearray(whole)
        damaged[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            loaded = load_game(path)
        except (BadFile, InvalidGame):
            refused += 1
        else:  # one digit of a text may make another valid game; an archive must be the same
            assert suffix != ".npz" or loaded.digest == game.digest
    assert refused > len(positions) / 4


def rearrange(path, header_changes=None, **arrays):
    kind, header, loaded = read_archive(path, "acegames-game")
    header = {k: v for k, v in header.items() if k not in ("format", "version")} | (header_changes or {})
    write_npz(path, kind, header, {**loaded, **arrays})


@pytest.mark.parametrize(
    "change",
    [
        {"players": ["red"]},
        {"players": "red"},
        {"players": [["red", {}], "blue"]},
        {"players": ["green", "blue"]},
        {"states": ["road", "ditch"]},
        {"states": []},
        {"actions": [["dare", "yield"]]},
        {"actions": [["dare"], ["dare", "yield"]]},
        {"constraints": []},
        {"horizon": 4},
        {"horizon": -3},
        {"horizon": 10**15},
        {"horizon": "3"},
        {"initial": [[5, 1.0]]},
        {"initial": [[0, 0.5], [0, 0.5]]},
        {"initial": [[0, "1"]]},
        {"initial": 0},
        {"budgets": [["2", "3"]]},
        {"budgets": [["3"]]},
        {"budgets": [["x"]]},
        {"budgets": []},
        {"cost_values": [["0"]]},
        {"cost_values": [["0", "1e9999999"]]},
        {"cost_values": [["0", "3"]]},
        {"layer_at": [0, 1, 7]},
        {"layer_at": [0, 1, -1]},
        {"layer_at": [0, 1, True]},
        {"layer_at": [1, 0, 0]},
        {"layers": []},
        {"layers": [{}, {}]},
        {"layers": [None, None]},
        {"layers": [{"row_ptr": []}, 3]},
        {"name": None},
        {"digest": "0"},
    ],
)
def test_hostile_headers(tmp_path, game, change):
    path = tmp_path / "game.npz"
    game.save(path)
    rearrange(path, change)
    with pytest.raises(BadFile, match=r"game\.npz: "):
        load_game(path)


def test_hostile_arrays(tmp_path, game):
    path = tmp_path / "game.npz"
    game.save(path)
    _, _, arrays = read_archive(path, "acegames-game")
    rng = np.random.default_rng(3)
    for name, array in arrays.items():
        twins = [array[:-1], array[..., None], array.astype(bool), array.astype(np.uint8).reshape(-1)[:0]]
        extremes = [-1, 10**6, 2**31 - 1] if array.dtype.kind == "i" else [np.nan, np.inf, -1.0]
        for value in extremes:
            twin = array.astype(np.int64 if array.dtype.kind == "i" else array.dtype)  # files may hold wider types
            twin.flat[int(rng.integers(array.size))] = value
            twins.append(twin)
        for twin in twins:
            game.save(path)
            rearrange(path, **{name: twin})
            with pytest.raises(BadFile, match=r"game\.npz: "):
                load_game(path)


# -- arrays alone and companions -------------------------------------------------------------------------------

MOVES = np.full((2, 2, 2, 2), 0.5)
PRIZES = np.arange(16.0).reshape(2, 2, 2, 2)
COSTS = np.array([0.1, 0.2] * 4).reshape(2, 2, 2, 1)


def plain(**entries):
    return {"transition": MOVES, "reward": PRIZES, "cost": COSTS, "budget": [0.3], "horizon": 3, **entries}


def test_plain_arrays(tmp_path):
    path = tmp_path / "plain.npz"
    np.savez(path, **plain())
    assert load_game(path).digest == MarkovGame.from_arrays(MOVES, PRIZES, COSTS, [0.3], horizon=3).digest


def test_plain_arrays_with_labels(tmp_path):
    path = tmp_path / "plain.npz"
    words = {"players": ["a", "b"], "states": ["p", "q"], "constraints": ["c"]}
    np.savez(path, **plain(initial=[0.25, 0.75], actions_0=["x", "y"], actions_1=[3, 4], **words))
    same = MarkovGame.from_arrays(
        MOVES, PRIZES, COSTS, [0.3], horizon=3, initial={"p": 0.25, "q": 0.75}, actions=[["x", "y"], [3, 4]], **words
    )
    assert load_game(path).digest == same.digest
    np.savez(path, **plain(states=["p", "q"], initial="q"))
    assert load_game(path).initial == ((1, 1.0),)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"horizon": [3]}, "horizon"),
        ({"horizon": 10**9}, "at most"),
        ({"transitoin": MOVES}, "did you mean 'transition'"),
        ({"actions_1": ["x", "y"]}, "numbered from actions_0"),
        ({"initial": [1.0]}, "initial"),
        ({"initial": 7}, "initial: unknown state 7"),
        ({"cost": np.full((2, 2, 2, 1), "x")}, "cost"),
        ({"transition": MOVES / 2}, "sum to 0.5"),
    ],
)
def test_bad_plain_arrays(tmp_path, entries, words):
    path = tmp_path / "plain.npz"
    np.savez(path, **plain(**entries))
    with pytest.raises(InvalidGame, match=r"plain\.npz: ") as caught:
        load_game(path)
    assert words in str(caught.value)


HEAD = {
    "format": "acegames-game",
    "version": 1,
    "horizon": 3,
    "initial": "p",
    "states": ["p", "q"],
    "budget": {"c": 0.3},
}


def test_text_header_with_plain_arrays(tmp_path):
    np.savez(tmp_path / "my.npz", transition=MOVES, reward=PRIZES, cost=COSTS)
    game = load_text(tmp_path, json.dumps({**HEAD, "arrays": "my.npz"}))
    same = MarkovGame.from_arrays(MOVES, PRIZES, COSTS, {"c": 0.3}, horizon=3, initial="p", states=["p", "q"])
    assert game.digest == same.digest


@pytest.mark.parametrize("name", ["/etc/passwd", "../my.npz", "a/my.npz", "a\\my.npz", "C:my.npz", "..", "", 3])
def test_companions_lie_beside(tmp_path, name):
    np.savez(tmp_path / "my.npz", transition=MOVES, reward=PRIZES, cost=COSTS)
    (tmp_path / "a").mkdir()
    with pytest.raises(InvalidGame, match=r"arrays: .*bare name"):
        load_game(written(tmp_path / "a", json.dumps({**HEAD, "arrays": name})))


def test_companion_missing_or_foreign(tmp_path):
    with pytest.raises(BadFile, match=r"no file 'my.npz' beside"):
        load_text(tmp_path, json.dumps({**HEAD, "arrays": "my.npz"}))
    (tmp_path / "my.npz").write_text("hello")
    with pytest.raises(BadFile, match=r"my\.npz: not an archive"):
        load_text(tmp_path, json.dumps({**HEAD, "arrays": "my.npz"}))


def test_large_games_get_a_companion(tmp_path):
    rng = np.random.default_rng(0)
    moves = rng.dirichlet(np.ones(150), size=(150, 1))
    game = MarkovGame.from_arrays(moves, rng.random((150, 1, 1)), horizon=2, name="large")
    game.save(tmp_path / "large.yaml")
    (beside,) = tmp_path.glob("large.*.npz")
    assert "rules" not in (tmp_path / "large.yaml").read_text()
    assert load_game(tmp_path / "large.yaml").digest == game.digest
    with pytest.raises(BadFile, match="acegames-tables"):
        load_game(beside)


def test_companion_of_another_game(tmp_path, game, monkeypatch):
    monkeypatch.setattr(files, "TEXT_LIMIT", 0)
    game.save(tmp_path / "one.json")
    text = (tmp_path / "one.json").read_text()
    (tmp_path / "one.json").write_text(text.replace('"risk": 2', '"risk": 1'))
    assert load_game(tmp_path / "one.json").budgets[0] == (1,)  # the head may be edited
    (tmp_path / "one.json").write_text(text.replace('"dare", "yield"', '"dare", "yield", "stop"'))
    assert load_game(tmp_path / "one.json").actions[0] == ("dare", "yield", "stop")
    (tmp_path / "one.json").write_text(text.replace('"horizon": 3', '"horizon": 2'))
    with pytest.raises(BadFile, match="does not fit"):
        load_game(tmp_path / "one.json")
    load_text(tmp_path, CHICKEN).save(tmp_path / "two.json")
    (one,), (two,) = tmp_path.glob("one.*.npz"), tmp_path.glob("two.*.npz")
    two.replace(one)
    (tmp_path / "one.json").write_text(text)
    with pytest.raises(BadFile, match="not the companion"):
        load_game(tmp_path / "one.json")


def test_a_failed_save_leaves_the_old_game_whole(tmp_path, game, monkeypatch):
    monkeypatch.setattr(files, "TEXT_LIMIT", 0)
    other = load_text(tmp_path, CHICKEN)
    game.save(tmp_path / "g.yaml")
    other.save(tmp_path / "g.json")  # the same stem: each text has an archive of its own
    before = sorted(p.name for p in tmp_path.iterdir())

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(files, "write_text", full)
    larger = MarkovGame.from_arrays(np.ones((1, 2, 1)), np.zeros((1, 2, 1)), horizon=1)
    with pytest.raises(OSError, match="no space"):
        larger.save(tmp_path / "g.yaml")
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    assert load_game(tmp_path / "g.yaml").digest == game.digest
    assert load_game(tmp_path / "g.json").digest == other.digest


def test_numbers_without_a_sign(tmp_path, game):
    """Other programs may write them."""
    game.save(tmp_path / "i.npz")
    kind, header, arrays = read_archive(tmp_path / "i.npz", files.FORMAT)
    changed = {name: a.astype(np.uint64) if a.dtype.kind == "i" else a for name, a in arrays.items()}
    write_npz(
        tmp_path / "u.npz", kind, {k: v for k, v in header.items() if k in files.game_to_archive(game)[0]}, changed
    )
    assert load_game(tmp_path / "u.npz").digest == game.digest
