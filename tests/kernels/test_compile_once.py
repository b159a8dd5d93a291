"""Kernels are compiled for one signature: a second one would cost a user another silent wait."""

import os
import subprocess
import sys

import stage_solvers

CODE = """
import importlib
import pkgutil
import numpy as np
import acegames as ace
from stage_solvers import BatchStageSolver, NashStageSolver, StageBatch
import acegames.kernels
from acegames.system import compiled
compiled.LARGE = 0  # nothing is interpreted
from acegames.engines.stages import solve_one
for games in ("plain", "left", "nash"):
    solve_one(games)  # what another process compiles is what a solve needs
from acegames.safety import space
short = {"horizon": 4}
games = [ace.catalog.get(name, **short) for name in ("intersection", "rendezvous", "medium_access_3", "corridor", "drones")]
games.append(ace.catalog.get("six_cycle"))
for game in games:
    for concept in (ace.CE(), ace.CCE("fair")):
        ace.solve(game, concept)
    ace.feasibility(game)
for prefer in (space._prefer_dense, lambda _: False):
    space._prefer_dense = prefer
    for game in (*games, ace.catalog.get("knapsack")):
        shield = ace.Shield(game)
        t, states, spent = shield.situations(np.arange(shield.first[-2]))
        for frozen in (False, True):
            for array in (t, states, spent):
                array.setflags(write=not frozen)
            shield.next_pairs(shield.pairs(t, states, spent), None, spent, states)
        shield.pairs(0, [0], spent[:1])
        shield.start().joint()
ace.solve(ace.catalog.get("knapsack"))
for name in ("intersection", "rendezvous", "corridor", "knapsack"):
    for engine in (ace.LocalEngine(), ace.LocalEngine(dense=False)):
        ace.solve(ace.catalog.get(name, **({} if name == "knapsack" else short)), ace.Nash(), engine=engine)
NashStageSolver().solve(StageBatch(np.array([0, 1]), np.zeros((1, 2), np.int32), np.zeros((1, 2))), ace.Nash(), ("p", "q"))
one = StageBatch(np.array([0, 2]), np.array([[0, 0], [0, 1]], np.int32), np.eye(2))
BatchStageSolver().solve(one, ace.CE(), ("p", "q"))
found = pkgutil.iter_modules(acegames.kernels.__path__)
modules = [importlib.import_module(f"acegames.kernels.{x.name}") for x in found]
kernels = {f.__name__: f for m in modules for f in vars(m).values() if isinstance(f, compiled.Kernel)}.values()
for f in kernels:
    print(f.__name__, len(f.machine_code.signatures))
"""


def test_one_signature_per_kernel():
    path = os.pathsep.join([os.path.dirname(stage_solvers.__file__), *sys.path])
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=env)
    counts = dict(line.split() for line in done.stdout.splitlines())
    needed = ("solve_cells", "write_cells", "solve_written", "solve_nash", "dense_sets", "sparse_sets", "find_numbers")
    assert [counts[name] for name in needed] == ["1"] * len(needed)
    assert {name: n for name, n in counts.items() if int(n) > 1 and not name.startswith("_")} == {}
