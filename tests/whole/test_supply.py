"""What acegames depends on: lower bounds that are tested, a lock that fits, licences that may be used, documents that say so."""

from __future__ import annotations

import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from proof_checker import ROOT, load

licences = load(ROOT / "docs" / "_licences.py")
CONSTRAINTS = ROOT / "constraints"
PROJECT = tomllib.loads(licences.PROJECT.read_text())["project"]
BROUGHT_ALONG = {"click", "pyparsing"}  # by typer and matplotlib; today's warn of what the oldest of those do
UNTESTED = {"benchmarl", "pygambit", "sb3-contrib"}  # no binaries for the Python of the oldest versions; with PyTorch
UNTESTED |= {"numba-cuda"}  # large: `make test-gpu`
UNTESTED |= {"stormpy", "umbi", "bitstring"}  # large: `make test-storm`


def lower_bounds(lines):
    """{package: lowest version allowed}; every requirement must have one."""
    bounds = {}
    for need in map(Requirement, lines):
        (bound,) = [Version(s.version) for s in need.specifier if s.operator == ">="]
        assert bounds.setdefault(canonicalize_name(need.name), bound) == bound, f"two lower bounds of {need.name}"
    return bounds


def for_users():
    return lower_bounds([line for lines in licences.requirements().values() for line in lines])


def pinned(name):
    """(package, version, marker) of each line of a constraints file."""
    lines = [line for line in (CONSTRAINTS / name).read_text().splitlines() if line and not line.startswith("#")]
    needs = [Requirement(line) for line in lines]
    assert all([s.operator for s in need.specifier] == ["=="] for need in needs), "exact versions only"
    return [(canonicalize_name(n.name), Version(next(iter(n.specifier)).version), n.marker) for n in needs]


def test_the_oldest_versions_are_the_lower_bounds():
    oldest = {name: version for name, version, _ in pinned("oldest.txt") if name not in BROUGHT_ALONG}
    assert oldest == {name: version for name, version in for_users().items() if name not in UNTESTED}


def test_the_lock_has_every_direct_dependency_within_its_bounds():
    asked = [line for lines in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()) for line in lines]
    locked = pinned("dev.txt")
    for need in map(Requirement, asked):
        versions = [version for name, version, _ in locked if name == canonicalize_name(need.name)]
        assert versions and all(need.specifier.contains(version) for version in versions), need


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_the_lock_names_one_version_for_each_python(python):
    here = {"python_version": python, "python_full_version": f"{python}.9"}
    names = [name for name, _, marker in pinned("dev.txt") if marker is None or marker.evaluate(here)]
    assert len(names) == len(set(names)) > 50


def test_the_lock_names_no_place():
    text = (CONSTRAINTS / "dev.txt").read_text()
    assert not any(word in text for word in ("://", "--index", "--find-links", "file:", "@"))


def test_every_licence_may_be_used():
    packages = licences.dependencies()
    assert {"numpy", "numba", "scipy", "pygambit"} <= set(packages)
    assert [text for text in map(licences.problem, packages) if text] == []


@pytest.mark.parametrize(
    ("licence", "fine"),
    [
        ("MIT", True),
        ("Apache-2.0 OR GPL-3.0-only", True),
        ("BSD-2-Clause AND Apache-2.0 WITH LLVM-exception", True),
        ("BSD-3-Clause AND GPL-3.0-only", False),
        ("LGPL-2.1-or-later", False),
        ("Dual License", False),
        ("", False),
    ],
)
def test_other_licences_are_noticed(licence, fine, monkeypatch):
    monkeypatch.setattr(licences, "licence", lambda name: licence)
    assert (licences.problem("something") is None) == fine


def test_a_changed_licence_is_noticed(monkeypatch):
    monkeypatch.setattr(licences, "licence", lambda name: "AGPL-3.0-only")
    assert "AGPL" in licences.problem("certifi")


def test_the_docs_list_every_direct_dependency():
    text = licences.DOCS.read_text()
    for name in [*for_users(), "uPlot"]:
        assert f"\n| {name} | " in text, f"{name} is missing: make licences"
    assert "MIT" in (ROOT / "src/acegames/report/assets/uplot.LICENSE.txt").read_text()
