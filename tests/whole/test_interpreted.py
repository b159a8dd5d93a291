"""Small games need no compiler: it is not loaded, and need not be there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import acegames as ace
import command_line
from acegames.system.compiled import running

COMMANDS = """
import sys
import acegames as ace
from command_line import run

for name in ("intersection", "medium_access_3"):
    others = f"check {name}", f"frontier {name}", "simulate a.ace --episodes 20"
    for words in (f"solve {name} -o a.ace", "verify a.ace", "verify a.ace --engine interpreted", *others):
        assert "compiling" not in run(*words.split()).output, words
    ace.Shield(ace.catalog.get(name)).start().joint()
assert not {"numba", "llvmlite"} & set(sys.modules)
"""

WITHOUT_NUMBA = """
import sys
from importlib.machinery import PathFinder

class WithoutNumba(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in ("numba", "llvmlite") else super().find_spec(name, path, target)

sys.meta_path[:] = [WithoutNumba if x is PathFinder else x for x in sys.meta_path]
import acegames as ace
from acegames.system import compiled
from command_line import refused

for concept in (ace.CE(), ace.Nash()):
    solution = ace.solve(ace.catalog.get("intersection"), concept)
    solution.save(f"{type(concept).__name__}.ace")
    assert ace.verify(solution.game, solution.policy).ok
compiled.LARGE = 0
for work in (ace.solve, ace.Shield, lambda game: ace.solve(game, engine=ace.LocalEngine(compiled=True))):
    try:
        work(ace.catalog.get("intersection"))
    except ace.MissingExtra as error:
        assert "pip install numba" in str(error)
    else:
        raise AssertionError(work)
assert "pip install numba" in refused("warm")
"""


def run(code, folder):
    """Run code in another process, and an empty folder, for compiled kernels too; return what is there then."""
    support = str(Path(command_line.__file__).parent)
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([support, *filter(None, sys.path)]),
        "NUMBA_CACHE_DIR": str(folder / "kernels"),
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=folder, env=env, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return sorted(path.name for path in folder.iterdir())


def test_numba_is_not_loaded_for_small_games(tmp_path):
    assert run(COMMANDS, tmp_path) == ["a.ace"]


def test_without_numba_small_games_are_solved_to_the_same_bytes(tmp_path):
    assert run(WITHOUT_NUMBA, tmp_path) == ["CE.ace", "Nash.ace"]
    for concept in (ace.CE(), ace.Nash()):
        with running(compiled=True):
            ace.solve(ace.catalog.get("intersection"), concept).save(tmp_path / "compiled.ace")
        assert (tmp_path / f"{type(concept).__name__}.ace").read_bytes() == (tmp_path / "compiled.ace").read_bytes()
