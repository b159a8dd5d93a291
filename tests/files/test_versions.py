"""Every file has version 1, and a file of a newer version, or of none, is refused in plain words."""

from __future__ import annotations

import json
import zipfile

import pytest

import acegames as ace
from acegames.files import tables
from damaged_files import rewritten
from paying_games import paying_game

NAMES = ("game.yaml", "game.json", "game.npz", "game.csv", "policy.ace", "solution.ace")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file of each kind, of games with all that a file can say: rules that add, rewards of outcomes, reservoirs."""
    folder = tmp_path_factory.mktemp("files")
    adding, paying = ace.catalog.get("medium_access_3"), paying_game(0, states=1, horizon=1).game
    adding.save(folder / "game.yaml")
    paying.save(folder / "game.json")
    paying.save(folder / "game.npz")
    tables.write_game(paying, folder / "game.csv")
    solution = ace.solve(ace.catalog.get("electric_fleet"), ace.CE())
    solution.save(folder / "solution.ace")
    solution.policy.save(folder / "policy.ace")
    return folder


def load(path):
    return (
        {"policy": ace.Policy, "solution": ace.Solution}[path.stem].load(path)
        if path.suffix == ".ace"
        else ace.load(path)
    )


def with_version(path, folder, version):
    """A copy of a file that says it is of this version; what it was before must be 1."""
    copy = folder / path.name
    if path.suffix == ".ace":
        copy.write_bytes(rewritten(path.read_bytes(), lambda header: swapped(header, version)))
    elif path.suffix == ".npz":
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w") as new:
            for name in old.namelist():
                content = old.read(name)
                if name == "header.json":
                    content = json.dumps(swapped(json.loads(content), version)).encode()
                new.writestr(name, content)
    elif path.suffix == ".csv":
        copy.write_bytes(path.read_bytes())
        head = json.loads(path.with_name("game.csv.json").read_text())
        copy.with_name("game.csv.json").write_text(json.dumps(swapped(head, version)))
    else:
        before = {".yaml": "version: 1\n", ".json": '"version": 1'}[path.suffix]
        text = path.read_text()
        assert before in text
        copy.write_text(text.replace(before, before.replace("1", json.dumps(version))))
    return copy


def swapped(header, version):
    assert header["version"] == 1
    header["version"] = version
    return header


@pytest.mark.parametrize("name", NAMES)
def test_a_newer_version_is_refused(files, name, tmp_path):
    load(with_version(files / name, tmp_path, 1))
    with pytest.raises(ace.BadFile) as refused:
        load(with_version(files / name, tmp_path, 2))
    wanted = f"{name}: written in version 2 of the format, this acegames understands 1; upgrade it"
    assert str(refused.value).endswith(wanted)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("version", [0, True, None, "1", 1.5])
def test_what_is_no_version_is_refused(files, name, version, tmp_path):
    with pytest.raises(ace.BadFile, match=r"version is .*, must be 1$"):
        load(with_version(files / name, tmp_path, version))
