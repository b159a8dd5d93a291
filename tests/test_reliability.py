"""The scripts of `reliability` say how they are used, also where nothing but acegames is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import acegames

FOLDER = Path(__file__).parents[1] / "reliability"
USED_BY = {"proof_truth": "damage", "mutants": "mutate"}
PLAIN = """
import runpy, sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("hypothesis", "scipy", "pytest", "atheris"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
sys.argv = sys.argv[1:]
sys.path[0] = sys.argv[0].rpartition("/")[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(script, *words):
    """Run a script without the packages of development."""
    source = str(Path(acegames.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-c", PLAIN, str(script), *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
        timeout=120,
    )


@pytest.mark.parametrize("script", sorted(FOLDER.glob("*.py")), ids=lambda p: p.stem)
def test_help_in_a_plain_installation(script):
    done = run(script, "--help")
    if script.stem in USED_BY:
        assert done.returncode == 1 and f"a module, used by {USED_BY[script.stem]}.py" in done.stderr
    else:
        assert (done.returncode, done.stderr) == (0, "") and "usage" in done.stdout


def test_what_to_install_is_said():
    done = run(FOLDER / "damage.py", "--damages", "1", "--games", "1")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "hypothesis" in done.stderr and "pip install 'acegames[dev]'" in done.stderr
