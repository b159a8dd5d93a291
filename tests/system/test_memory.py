"""No memory left: every public function says so with TooLarge, which step it was and what would help."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import acegames as ace
from acegames.files import tables
from acegames.files.formats import exporting
from acegames.system.machine import memory_guard
from command_line import answer

FAILS = "Unable to allocate 35.5 GiB for an array"
MAKERS = ("zeros", "empty", "full", "array", "asarray", "arange", "concatenate", "column_stack", "tile")


def test_a_block_and_a_function():
    @memory_guard("counting", "fewer take less")
    def count(n):
        if n < 0:
            raise MemoryError
        if n == 0:
            raise MemoryError(FAILS)
        return n

    assert count(3) == 3 and count.__name__ == "count"
    with pytest.raises(ace.TooLarge, match=r"not have enough memory for counting; fewer take less$") as caught:
        count(-1)
    assert isinstance(caught.value.__cause__, MemoryError)
    with pytest.raises(ace.TooLarge, match=r"for counting \(Unable to allocate 35\.5 GiB"):
        count(0)
    with pytest.raises(ace.TooLarge, match=r"^as it was$"), memory_guard("counting", ""):
        raise ace.TooLarge("as it was")


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """A game, its solution and files of both. Everything is done once, so that nothing is compiled later."""
    folder = tmp_path_factory.mktemp("memory")
    game = ace.catalog.get("intersection")
    solution = ace.solve(game)
    game.save(folder / "game.npz")
    solution.save(folder / "solution.ace")
    for call in CALLS.values():
        call(game, solution, folder)
    return game, solution, folder


CALLS = {
    "solve": lambda g, s, f: ace.solve(g),
    "estimate": lambda g, s, f: ace.estimate(g),
    "feasibility": lambda g, s, f: ace.feasibility(g),
    "minimal budgets": lambda g, s, f: ace.feasibility(g).minimal_budgets,
    "reduce": lambda g, s, f: ace.reduce(g),
    "reduced game": lambda g, s, f: ace.reduce(g).game,
    "Shield": lambda g, s, f: ace.Shield(g),
    "verify": lambda g, s, f: ace.verify(g, s.policy),
    "prove": lambda g, s, f: ace.prove(s, f / "a.proof"),
    "report": lambda g, s, f: s.report(f / "a.html"),
    "simulate": lambda g, s, f: ace.simulate(g, s.policy, episodes=10, rng=1),
    "budget_curve": lambda g, s, f: ace.budget_curve(g, None, g.constraints[0]),
    "curve of a solution": lambda g, s, f: s.budget_curve(g.constraints[0]),
    "bracket": lambda g, s, f: ace.bracket(g, epsilon=1),
    "from_arrays": lambda g, s, f: ace.MarkovGame.from_arrays([[[1.0]]], [[[1.0]]], horizon=2),
    "from_functions": lambda g, s, f: ace.catalog.get("intersection"),
    "compose": lambda g, s, f: ace.catalog.get("warehouse"),
    "load": lambda g, s, f: ace.load(f / "game.npz"),
    "Solution.load": lambda g, s, f: ace.Solution.load(f / "solution.ace"),
    "Policy.load": lambda g, s, f: ace.Policy.load(f / "solution.ace"),
    "save": lambda g, s, f: g.save(f / "b.csv"),
    "export a game": lambda g, s, f: exporting(str(f / "game.npz"), f / "g.csv")[1](g, None),
    "export a policy": lambda g, s, f: exporting(str(f / "solution.ace"), f / "p.csv")[1](s.policy, None),
    "write_policy": lambda g, s, f: tables.write_policy(s, f / "p.csv"),
    "write_game": lambda g, s, f: tables.write_game(g, f / "g.csv"),
}


@pytest.mark.parametrize("entry", CALLS)
def test_no_public_function_lets_a_memory_error_out(entry, there, monkeypatch):
    failed = []

    def fail(*_, **__):
        failed.append(True)
        raise MemoryError(FAILS)

    for name in MAKERS:
        monkeypatch.setattr(np, name, fail)
    try:
        with pytest.raises(ace.TooLarge, match="not have enough memory for") as caught:
            CALLS[entry](*there)
    finally:
        monkeypatch.undo()
    assert failed and isinstance(caught.value.__cause__, MemoryError)
    assert not list(there[2].glob(".acegames-*")), "nothing unfinished is left"


def test_a_solution_that_cannot_be_written_for_want_of_memory(there, tmp_path, monkeypatch):
    def fail(*_):
        raise MemoryError(FAILS)

    monkeypatch.setattr("acegames.files.solution_file.write_archive", fail)
    for what in (there[1], there[1].policy):
        with pytest.raises(ace.TooLarge, match="not have enough memory for writing the"):
            what.save(tmp_path / "a.ace")


def test_without_memory_for_the_minimal_budgets_a_report_leaves_them_out(tmp_path, monkeypatch):
    def fail(*_):
        raise MemoryError(FAILS)

    solution = ace.solve(ace.catalog.get("intersection"))
    monkeypatch.setattr("acegames.safety.frontier._step_back", fail)
    assert solution.report(tmp_path / "a.html").ok
    assert "not have enough memory for the minimal budgets" in (tmp_path / "a.html").read_text()


@pytest.mark.parametrize("said", [MemoryError(FAILS), OverflowError("too big")])
def test_the_program_says_it_in_json_too(said, monkeypatch):
    def fail(*_, **__):
        raise said

    monkeypatch.setattr(ace, "estimate", fail)
    caught = answer("check", "intersection", code=5)
    assert caught["exit_code"] == 5 and caught["error"] == "TooLarge"


LIMITED = """
import resource, sys
import numpy as np
import acegames as ace
game = ace.catalog.get("intersection")
policy = ace.solve(game).policy
ace.simulate(game, policy, episodes=10, rng=1)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, used + 2**28))
try:
    ace.simulate(game, policy, episodes=10**8, rng=1)
except ace.TooLarge as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits are set as on Linux")
def test_a_process_with_little_memory_says_what_it_asked_for():
    source = str(Path(ace.__file__).parents[1])
    code = f"import sys; sys.path.insert(0, {source!r})\n{LIMITED}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "not have enough memory for playing so many episodes (Unable to allocate" in done.stdout, done.stderr
