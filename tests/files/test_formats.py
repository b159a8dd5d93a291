"""The table of file formats: one record is all that a new format needs."""

from __future__ import annotations

import pytest

import acegames as ace
from acegames.cli import game_options
from acegames.files import formats
from acegames.files.formats import Format
from acegames.system import limits
from command_line import answer, refused


@pytest.fixture
def game():
    return ace.catalog.get("intersection")


@pytest.fixture
def story(monkeypatch):
    """A format of our own: a file that holds the name of a catalog game."""

    def load(path):
        with open(path) as file:
            return ace.catalog.get(file.read())

    def save(game, path):
        with open(path, "w") as file:
            return file.write(game.name)

    monkeypatch.setattr(formats, "FORMATS", list(formats.FORMATS))
    monkeypatch.setattr(limits, "GAMES", list(limits.GAMES))
    formats.register(Format((".story",), "the name of a game", load=load, save=save, export=save))


@pytest.mark.usefixtures("story")
def test_a_new_format_is_known_everywhere(game, tmp_path, monkeypatch):
    path = tmp_path / "game.story"
    game.save(path)
    assert ace.load(path).digest == game.digest
    monkeypatch.chdir(tmp_path)
    assert game_options.games("game.s") == ["game.story"]
    with pytest.raises(ace.InvalidOption, match=r"\.story"):
        game.save(tmp_path / "game.txt")
    (tmp_path / "game.txt").write_text("?")
    with pytest.raises(ace.InvalidOption, match=r"\.story \(the name of a game\)"):
        ace.load(tmp_path / "game.txt")
    assert answer("export", path, "-o", "again.story")["what"] == "game"
    assert ace.load(tmp_path / "again.story").digest == game.digest
    assert "a game; give a solution of it" in refused("verify", path)


def test_endings_are_told_apart():
    every = [ending for one in formats.FORMATS for ending in one.endings]
    assert len(set(every)) == len(every)
    assert formats.holds_game("GAME.YAML")
    assert not formats.holds_game("solution.ace")
    assert not formats.holds_game("solution")


def test_export_names_the_endings_that_are_possible(game, tmp_path):
    solution = ace.solve(game)
    solution.save(tmp_path / "solution.ace")

    for output, options, said in (
        ("policy.txt", {}, ".csv, .parquet"),
        ("game.txt", {"game": True}, ".nfg, .csv, .parquet"),
        ("policy.nfg", {}, "holds no policy"),
        ("game.csv", {"game": True, "outside": -1.0}, "ends in .nfg"),
    ):
        with pytest.raises(ace.InvalidOption, match=said):
            formats.exporting(str(tmp_path / "solution.ace"), tmp_path / output, **options)


def test_the_builders_are_methods_with_their_own_signatures():
    for name in ("from_arrays", "from_functions", "from_table"):
        builder = getattr(ace.MarkovGame, name)
        assert builder.__name__ == f"game_{name}"
        assert "horizon" in builder.__annotations__
        assert "Raises:" in builder.__doc__
