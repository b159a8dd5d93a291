"""The wheel, built from the sdist, is whole: it installs and works where the source tree is not, and it is typed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
PIP += ("--constraint", str(ROOT / "constraints" / "dev.txt"))

EVERY_MODULE = """
import importlib, pathlib, pkgutil, acegames
assert pathlib.Path(acegames.__file__).is_relative_to(pathlib.Path(%r)), acegames.__file__
def is_no_fault(name):  # only what walk_packages meets: the adapters' own folders may need their library
    assert name.startswith("acegames.adapters."), name

names = [m.name for m in pkgutil.walk_packages(acegames.__path__, "acegames.", is_no_fault) if not m.name.endswith("__main__")]
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        assert name.startswith("acegames.adapters.") and error.name in ("gymnasium", "pettingzoo", "pyspiel"), (name, error)
print(len(names))
"""

TYPED = """
import acegames as ace

game: ace.MarkovGame = ace.catalog.get("intersection")
solution: ace.Solution = ace.solve(game, ace.CE())
first: float = float(solution.values[0])
certificate: ace.Certificate = ace.verify(game, solution.policy, solution.concept)
assert certificate.ok
"""

WRONG = """
import acegames as ace

solution: int = ace.solve(ace.catalog.get("intersection"), "ce")
"""


def run(*command, cwd):
    """Run away from the source tree, with nothing in the environment that leads back to it."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def new_python(folder):
    venv.create(folder, with_pip=True)
    return folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """(sdist, wheel), the wheel being made from the sdist alone."""
    place = tmp_path_factory.mktemp("build")
    shutil.copytree(
        ROOT, place / "tree", ignore=shutil.ignore_patterns(".venv*", ".git", "__pycache__", ".*_cache", "site")
    )
    python = new_python(place / "venv")
    run(python, *PIP, "hatchling", cwd=place)
    run(python, "-m", "hatchling", "build", "-t", "sdist", "-d", place, cwd=place / "tree")
    (sdist,) = place.glob("acegames-*.tar.gz")
    shutil.rmtree(place / "tree")
    with tarfile.open(sdist) as archive:
        archive.extractall(place / "unpacked", filter="data")
    (tree,) = (place / "unpacked").iterdir()
    run(python, "-m", "hatchling", "build", "-t", "wheel", "-d", place, cwd=tree)
    (wheel,) = place.glob("acegames-*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def elsewhere(built, tmp_path_factory):
    """A folder with an environment in which the wheel is installed; its python."""
    place = tmp_path_factory.mktemp("elsewhere")
    python = new_python(place / "venv")
    run(python, *PIP, built[1], "mypy", cwd=place)
    return place, python


@pytest.mark.slow
def test_contents(built):
    sdist, wheel = built
    with tarfile.open(sdist) as archive:
        inner = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "tests/conftest.py", "tests/support/oracle.py"}
    wanted |= {"tests/whole/test_wheel.py", "checker/ace_check.py", "reliability/damage.py"}
    wanted |= {"docs/reference/supply.md", "constraints/dev.txt"}
    assert wanted <= inner
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tracked = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*") if path.is_file()}
    checker = "acegames/proofs/ace_check.py"
    assert {n for n in names if ".dist-info/" not in n} == {n for n in tracked if "__pycache__" not in n} | {checker}
    assert "acegames/py.typed" in names and "acegames/report/assets/uplot.min.js" in names
    assert {"LICENSE", "uplot.LICENSE.txt"} <= {Path(name).name for name in names if "/licenses/" in name}


@pytest.mark.slow
def test_it_works_without_the_source_tree(elsewhere):
    place, python = elsewhere
    program = python.with_name("acegames")
    assert int(run(python, "-c", EVERY_MODULE % str(place), cwd=place)) > 100
    assert "intersection" in run(program, "catalog", cwd=place)
    run(program, "solve", "intersection", "-o", "demo.ace", cwd=place)
    run(program, "verify", "demo.ace", cwd=place)
    run(program, "prove", "demo.ace", "-o", "demo.proof", "--checker", "check.py", cwd=place)
    assert (place / "check.py").read_bytes() == (ROOT / "checker" / "ace_check.py").read_bytes()
    run(program, "report", "demo.ace", "-o", "report.html", cwd=place)
    page = (place / "report.html").read_text()
    assert "uPlot" in page and len(page) > 50_000


@pytest.mark.slow
def test_it_is_typed(elsewhere):
    place, python = elsewhere
    (place / "typed.py").write_text(TYPED)
    (place / "wrong.py").write_text(WRONG)
    run(python, "-m", "mypy", "--strict", "typed.py", cwd=place)
    shown = subprocess.run([python, "-m", "mypy", "--strict", "wrong.py"], cwd=place, capture_output=True, text=True)
    assert "[arg-type]" in shown.stdout and "[assignment]" in shown.stdout
