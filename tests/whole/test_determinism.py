"""The same game, options and version give the same bytes, whatever the threads, the load and the order of hashing."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import acegames as ace
from same_bytes import outcome

CHILD = """
import hashlib, json, sys
from pathlib import Path
import acegames as ace
from acegames.engines import local
from acegames.cli.bench import random_game
from shaped_games import alone, fine, own_costs

local.RUN = local.RUN_ALONE = 256  # so that small layers are shared out among threads, too
threads = int(sys.argv[1])
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
    for dense in (None, True, False):
        if dense and name == "fine":
            continue  # its boxes would take gigabytes
        solution = ace.solve(games[name], concept, engine=ace.LocalEngine(threads=threads, dense=dense), **options)
        solution.save("solution.ace")
        note(f"{number} {name} {concept} {options} {dense}", "solution.ace")
solution.report("page.html", episodes=50, rng=3)
note("report", "page.html")
print(json.dumps(found))
"""
BUSY = "while True: sum(range(10**6))"


def digests(folder, threads, hashing):
    """SHA-256 of every file that a process of its own writes."""
    folder.mkdir()
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(threads)],
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


def test_the_same_bytes(alone_and_quiet, tmp_path):
    check_bytes(alone_and_quiet, digests(tmp_path / "run", threads=2, hashing=1))


@SLOW
@pytest.mark.parametrize(("threads", "hashing"), [(2, 1), (4, 12345), (1, 7)])
@pytest.mark.usefixtures("load")
def test_the_same_bytes_on_a_busy_machine(alone_and_quiet, tmp_path, threads, hashing):
    check_bytes(alone_and_quiet, digests(tmp_path / "run", threads, hashing))


def check_bytes(wanted, files):
    assert len(files) > 20
    assert {name for name in files if files[name] != wanted[name]} == set()


def test_boxes_and_lists_give_the_same_bytes(alone_and_quiet):
    """Which of them are solved depends on the memory that is free."""
    found = {name: x for name, x in alone_and_quiet.items() if name[0].isdigit()}
    cases = {name.rpartition(" ")[0] for name in found}
    assert len(cases) == 10
    for case in cases:
        assert len({x for name, x in found.items() if name.startswith(f"{case} ")}) == 1, case


def any_game(rng):
    """One or two players; one or two budgets, binding or not, of costs coarse or fine; rewards that may have a level."""
    states, players, budgets = rng.integers(1, 4), rng.integers(1, 3), rng.integers(1, 3)
    shape = (states, *rng.integers(2, 4, size=players))
    transition = rng.dirichlet(np.ones(states), size=shape) * (rng.random((*shape, states)) < 0.6)
    transition[..., 0] += transition.sum(axis=-1) == 0
    transition /= transition.sum(axis=-1, keepdims=True)
    cost = rng.integers(0, rng.choice([3, 40]), size=(*shape, budgets)) * rng.integers(1, 3)
    cost[(slice(None), *(0,) * players)] = 0
    horizon = int(rng.integers(1, 7))
    reward = rng.normal(size=(*shape, players)).round(int(rng.integers(0, 4))) + rng.choice([0, 0, 1e9])
    budget = rng.integers(0, 1 + int(cost.max()) * horizon, size=budgets)
    return ace.MarkovGame.from_arrays(transition, reward, cost, budget, horizon=horizon)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=SLOW) for seed in range(1, 10))])
def test_boxes_and_lists_of_random_games(seed, tmp_path):
    rng = np.random.default_rng(seed)
    ways = set()
    for _ in range(80):
        game = any_game(rng)
        options = [None, "welfare", "egalitarian", "fair"]
        concept = [ace.CE, ace.CCE, ace.Nash][rng.integers(3)](options[rng.integers(4)])
        engines = [ace.LocalEngine(dense=dense) for dense in (True, False, None)]
        written = [outcome(game, concept, tmp_path / "solution.ace", engine=engine) for engine in engines]
        assert written[0] == written[1] == written[2]
        if isinstance(written[0], bytes):
            ways |= {layer.by_cell for layer in ace.Policy.load(tmp_path / "solution.ace").layers}
    assert ways == {True, False}  # layers filed by cell, and layers filed by pair


def test_other_games_and_options_give_other_bytes(alone_and_quiet):
    """So that equal digests mean something."""
    solutions = [x for name, x in alone_and_quiet.items() if name[0].isdigit() and name.endswith("None")]
    assert len(set(solutions)) == len(solutions)
