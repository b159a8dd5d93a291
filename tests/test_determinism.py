"""The same game, options and version give the same bytes, whatever the threads, the load and the order of hashing."""

import json
import os
import subprocess
import sys

import pytest

CHILD = """
import hashlib, json, sys
from pathlib import Path
import acegames as ace
from acegames.engines import local
sys.path.insert(0, sys.argv[1])
from test_resources import fine, own_costs, alone
from acegames.bench import random_game

local.RUN = local.RUN_ALONE = 256  # so that small layers are shared out among threads, too
threads = int(sys.argv[2])
found = {}

def note(name, path):
    found[name] = hashlib.sha256(Path(path).read_bytes()).hexdigest()

named = ace.MarkovGame.from_functions(
    players=("ann", "bob"), actions=lambda t, s: [("stay", "go")] * 2,
    outcomes=lambda t, s, a: [(0.5, max(set(a) | {"rest"}), 1 if "go" in a else 0), (0.5, "-".join(sorted({"stay", "rest", *a})), 0)],
    reward=lambda t, s, a: (a.count("go"), a[0] == a[1]), budget=2, horizon=4, initial="rest",
)
games = {"two": random_game(4, 10, 20), "own": own_costs(small=True), "fine": fine(small=True), "one": alone(small=True), "named": named}
for name, game in games.items():
    game.save("game.npz")
    note(name, "game.npz")
cases = [("two", ace.CE(), {}), ("two", ace.CCE("fair"), {}), ("two", ace.CE("egalitarian"), {}), ("two", ace.CCE(None), {}),
         ("two", ace.CE(), {"epsilon": 20, "rounding": "up"}), ("own", ace.Nash(), {}), ("own", ace.Nash(None), {}),
         ("fine", ace.CE(), {}), ("one", ace.CCE(), {}), ("named", ace.CE(), {})]
for number, (name, concept, options) in enumerate(cases):
    for dense in (None, False):
        solution = ace.solve(games[name], concept, engine=ace.LocalEngine(threads=threads, dense=dense), **options)
        solution.save("solution.ace")
        note(f"{number} {name} {concept} {options} {dense}", "solution.ace")
solution.report("page.html", episodes=50, seed=3)
note("report", "page.html")
print(json.dumps(found))
"""
BUSY = "while True: sum(range(10**6))"


def digests(folder, threads, hashing):
    """SHA-256 of every file that a process of its own writes."""
    folder.mkdir()
    here = os.path.dirname(__file__)
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, here, str(threads)],
        env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": str(hashing)},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def alone_and_quiet(tmp_path_factory):
    return digests(tmp_path_factory.mktemp("quiet") / "run", 1, 0)


@pytest.fixture
def load():
    """Other work on every processor."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(2)]
    yield
    for process in busy:
        process.kill()
        process.wait()


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("threads", "hashing"), [(2, 1), pytest.param(4, 12345, marks=SLOW), pytest.param(1, 7, marks=SLOW)]
)
def test_the_same_bytes(alone_and_quiet, load, tmp_path, threads, hashing):
    again = digests(tmp_path / "run", threads, hashing)
    assert len(again) > 20
    assert {name for name in again if again[name] != alone_and_quiet[name]} == set()


def test_other_games_and_options_give_other_bytes(alone_and_quiet):
    """So that equal digests mean something."""
    solutions = [x for name, x in alone_and_quiet.items() if name[0].isdigit() and name.endswith("None")]
    assert len(set(solutions)) == len(solutions)
