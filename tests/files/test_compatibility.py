"""Files written by earlier code keep loading and verifying, and files of a newer version are refused in plain words.

`samples/` has one folder per remembered commit, written by the code of that commit (`samples/make.py`), with a manifest of
what that code knew about each file.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import acegames as ace
from acegames.cli import app
from acegames.files.games import TEXT_VERSION
from acegames.system.container import BLOCK_VERSION, MAGIC
from acegames.system.headers import VERSION
from damaged_files import rewritten

SAMPLES = Path(__file__).parents[1] / "samples"
MANIFESTS = {folder.name: json.loads((folder / "manifest.json").read_text()) for folder in SAMPLES.glob("20*")}
KNOWN = [(folder, name, facts) for folder, manifest in sorted(MANIFESTS.items()) for name, facts in manifest.items()]
NEWEST = max(MANIFESTS)
ZIPPED = "2026-11-16T0532-6d3f17e"  # the last one whose solutions and policies are archives of version 1


def of_kind(kind):
    found = [pytest.param(SAMPLES / folder / name, facts, id=f"{folder}/{name}") for folder, name, facts in KNOWN]
    return [entry for entry in found if entry.values[1]["kind"] == kind]


def first_of(policy):
    """What is played first: [[joint action, probability], ...]."""
    start, nothing = policy.states[policy.initial[0][0]], [0] * len(policy.constraints)
    return [[list(action), p] for action, p in policy.distribution(0, start, nothing).items()]


def check_policy(policy, facts):
    assert (type(policy.concept).__name__, policy.game_digest) == (facts["concept"], facts["digest"])
    assert first_of(policy) == facts["first"]


def test_every_sample_is_in_its_manifest():
    assert len(MANIFESTS) >= 3
    for folder, manifest in MANIFESTS.items():
        files = {path.name for path in (SAMPLES / folder).iterdir()}
        assert files == {*manifest, "manifest.json"}, folder
    assert {facts["kind"] for facts in MANIFESTS[NEWEST].values()} == {"game", "policy", "solution"}
    assert {facts.get("concept") for facts in MANIFESTS[NEWEST].values()} == {None, "CE", "CCE", "Nash"}


@pytest.mark.parametrize(("path", "facts"), of_kind("game"))
def test_games(path, facts):
    game = ace.load(path)
    assert game.digest == facts["digest"]


@pytest.mark.parametrize(("path", "facts"), of_kind("policy"))
def test_policies(path, facts):
    policy = ace.Policy.load(path)
    check_policy(policy, facts)
    start, nothing = policy.states[policy.initial[0][0]], [0] * len(policy.constraints)
    np.testing.assert_array_equal(policy.values(0, start, nothing), facts["values"])


@pytest.mark.parametrize(("path", "facts"), of_kind("solution"))
def test_solutions(path, facts):
    solution = ace.Solution.load(path)
    check_policy(solution.policy, facts)
    assert solution.game.digest == facts["digest"] == ace.load(path).digest
    np.testing.assert_array_equal(solution.values, facts["values"])
    assert str(solution.guarantee) == facts["guarantee"]
    certificate = ace.verify(solution.game, solution.policy, solution.concept)
    assert certificate.ok, certificate
    np.testing.assert_allclose(certificate.values, facts["values"], rtol=1e-12)
    assert [float(x) for x in certificate.max_spent] == facts["max_spent"]
    check_policy(ace.Policy.load(path), facts)


@pytest.mark.parametrize(("path", "facts"), of_kind("solution"))
def test_what_is_loaded_is_written_again_with_nothing_lost(path, facts, tmp_path):
    solution = ace.Solution.load(path)
    solution.save(tmp_path / "again.ace")
    again = ace.Solution.load(tmp_path / "again.ace")
    stats = replace(solution.stats, seconds=None)  # how long it took is in old files only
    assert (again.game.digest, again.stats, again.guarantee) == (solution.game.digest, stats, solution.guarantee)
    check_policy(again.policy, facts)


def with_version(path, folder, version):
    """A copy of a file that says it is of this version."""
    copy = folder / path.name
    if path.read_bytes().startswith(MAGIC):
        copy.write_bytes(rewritten(path.read_bytes(), lambda header: header.update(version=version)))
    elif path.suffix in (".ace", ".npz"):
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w") as new:
            for name in old.namelist():
                content = old.read(name)
                if name == "header.json":
                    content = json.dumps({**json.loads(content), "version": version}).encode()
                new.writestr(name, content)
    else:
        before = {".yaml": "version: 1\n", ".json": '"version": 1'}[path.suffix]
        text = path.read_text()
        assert before in text
        copy.write_text(text.replace(before, before.replace("1", json.dumps(version))))
    return copy


ONE_OF_EACH = [(NEWEST, name) for name in ("chicken.npz", "chicken.yaml", "chicken.json", "policy-ce.ace", "ce.ace")]
ONE_OF_EACH += [(ZIPPED, name) for name in ("policy-ce.ace", "ce.ace")]


@pytest.mark.parametrize(("folder", "name"), ONE_OF_EACH)
def test_a_newer_version_is_refused(folder, name, tmp_path):
    known = TEXT_VERSION if name.endswith((".yaml", ".json")) else VERSION
    known = BLOCK_VERSION if (SAMPLES / folder / name).read_bytes().startswith(MAGIC) else known
    path = with_version(SAMPLES / folder / name, tmp_path, known + 1)
    load = {"game": ace.load, "policy": ace.Policy.load, "solution": ace.Solution.load}[MANIFESTS[folder][name]["kind"]]
    wanted = f"{name}: written in version {known + 1} of the format, this acegames understands {known}; upgrade it"
    with pytest.raises(ace.BadFile) as refused:
        load(path)
    assert str(refused.value).endswith(wanted)


@pytest.mark.parametrize(("folder", "name"), ONE_OF_EACH)
@pytest.mark.parametrize("version", [0, -1, True, None, "1", 1.5])
def test_what_is_no_version_is_refused(folder, name, version, tmp_path):
    path = with_version(SAMPLES / folder / name, tmp_path, version)
    with pytest.raises(ace.BadFile, match="version is"):
        (ace.load if path.suffix != ".ace" else ace.Policy.load)(path)


def test_the_program_refuses_a_newer_version(tmp_path):
    path = with_version(SAMPLES / NEWEST / "ce.ace", tmp_path, BLOCK_VERSION + 1)
    shown = CliRunner().invoke(app, ["verify", str(path), "--json"])
    assert shown.exit_code == 2
    assert "upgrade it" in json.loads(shown.stdout)["message"]
