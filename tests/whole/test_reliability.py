"""The scripts of `reliability` say how they are used, also where nothing but acegames is installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import acegames

FOLDER = Path(__file__).parents[2] / "reliability"
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


SMALL = '''"""Text."""
LIMIT = 100

def f(a: int = 1, *, b=True) -> int:
    """Not changed."""
    log.debug("not this", a + 1)
    if a < b and not a:
        raise ValueError(f"nor this {a + 1}")
    total = max(a, b)
    total += 2
    return g(a, b) if a else None

class C:
    def __repr__(self):
        return str(1 + 1)
'''


@pytest.fixture
def scripts(monkeypatch):
    """The scripts can be imported."""
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.mark.usefixtures("scripts")
def test_what_mutants_need_is_there():
    import fuzz
    import mutate

    for short, tests in mutate.TESTED.items():
        assert (mutate.ROOT / mutate.path_of(short)).is_file(), short
        assert all(mutate.test_file(name) for name in tests)
    for short, functions in mutate.PARTS.items():
        listed = mutate.mutants(mutate.ROOT, mutate.path_of(short), functions)
        assert {m.function.split(".")[0] for m in listed} == functions
    assert not mutate.stale(), "python reliability/mutate.py --tidy"
    assert all(importlib.util.find_spec(name) for name in mutate.LOADED)
    assert all(importlib.util.find_spec(f"acegames.{name}") for name in fuzz.INSTRUMENTED)


@pytest.mark.usefixtures("scripts")
def test_mutants_are_small_changes_with_names_that_stay(tmp_path):
    from mutants import mutants, source_of

    file = tmp_path / "small.py"
    file.write_text(SMALL)
    listed = mutants(tmp_path, "small.py")
    changes = {m.name.removeprefix("small.py:f:"): m.change for m in listed}
    assert changes == {
        "constant:1": "1 -> 0",
        "constant:2": "True -> False",
        "logic:1": "a < b and (not a) -> a < b or not a",
        "drop:1": "a < b and (not a) -> not a",
        "drop:2": "a < b and (not a) -> a < b",
        "compare:1": "a < b -> a <= b",
        "not:1": "not a -> not not a",
        "delete:1": "raise ValueError(f'nor this {a + 1}') -> pass",
        "opposite:1": "max -> min",
        "compute:1": "total += 2 -> total -= 2",
        "constant:3": "2 -> 3",
        "delete:2": "total += 2 -> pass",
        "return:1": "return g(a, b) if a else None -> return None",
        "not:2": "g(a, b) if a else None -> g(a, b) if not a else None",
        "swap:1": "g(a, b) -> g(b, a)",
    }
    sources = {source_of(tmp_path, m) for m in listed}
    assert len(sources) == len(listed) and all(compile(text, "small", "exec") for text in sources)
    file.write_text(SMALL.replace("LIMIT = 100", "def before(a):\n    return a + 1\n"))
    after = {m.name.removeprefix("small.py:f:"): m.change for m in mutants(tmp_path, "small.py")}
    assert {name: after[name] for name in changes} == changes
