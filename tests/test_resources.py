"""Memory stays within what is predicted, limits are kept, and an interrupt leaves nothing behind."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import acegames as ace
from acegames.bench import random_game

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}

MEASURE = """
import json, sys
import numpy as np
import acegames as ace
sys.path.insert(0, sys.argv[1])
from test_resources import SHAPES

def status(entry):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(entry + ":"))

build, concept, options = SHAPES[sys.argv[2]]
engine = ace.LocalEngine(threads=2, **options)
ace.solve(build(small=True), concept, engine=engine)  # compiled code is not the solve's
game = build()
predicted = ace.estimate(game, concept, engine=engine)
before = status("VmRSS")
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")
solution = ace.solve(game, concept, engine=engine)
print(json.dumps({"grown": status("VmHWM") - before, "peak": status("VmHWM"), "pairs": solution.stats.pairs,
                  "working": predicted.working, "policy": predicted.policy, "memory": predicted.memory}))
"""


def fine(*, small=False):
    """Costs so fine that reached cells are listed."""
    rng = np.random.default_rng(0)
    shape = (3, 3, 3)
    transition = np.eye(3)[rng.integers(3, size=shape)]
    cost = rng.integers(1, 10**8, size=(*shape, 1))
    cost[:, 0, 0] = 0
    reward = rng.normal(size=(*shape, 2))
    return ace.MarkovGame.from_arrays(transition, reward, cost, [3 * 10**8], horizon=4 if small else 8)


def alone(*, small=False):
    """One player with large boxes."""
    rng = np.random.default_rng(0)
    count = 4 if small else 60
    weights = rng.integers(1, 20_000, count).tolist()
    return ace.catalog.get("knapsack", values=rng.integers(1, 99, count).tolist(), weights=weights, capacity=100_000)


def three(*, small=False):
    """Three players."""
    rng = np.random.default_rng(0)
    shape = (4, 2, 2, 2)
    transition = np.eye(4)[rng.integers(4, size=shape)]
    cost = rng.integers(0, 6, size=(*shape, 2))
    cost[:, 0, 0, 0] = 0
    sizes = (4, 9) if small else (30, 60)
    return ace.MarkovGame.from_arrays(transition, rng.normal(size=(*shape, 3)), cost, [sizes[1]] * 2, horizon=sizes[0])


def two(*, small=False):
    """Two players and two budgets."""
    return random_game(3, 4, 9) if small else random_game(8, 30, 60)


def own_costs(*, small=False):
    """The first player alone decides what is spent, so that safe joint actions are a product and independent play is possible."""
    game = two(small=small)
    rng = np.random.default_rng(1)
    states, shape = len(game.states), (len(game.states), 3, 3)
    cost = np.broadcast_to(rng.integers(0, 6, size=(states, 3, 1, 2)), (*shape, 2)).copy()
    cost[:, 0] = 0
    transition = np.eye(states)[rng.integers(states, size=shape)]
    budget = [9, 9] if small else [45, 45]
    return ace.MarkovGame.from_arrays(transition, rng.normal(size=(*shape, 2)), cost, budget, horizon=game.horizon)


SHAPES = {
    "dense": (two, ace.CE(), {}),
    "dense, coarse": (two, ace.CCE("egalitarian"), {}),
    "lists": (fine, ace.CE(), {}),
    "lists of what could be dense": (two, ace.CCE(), {"dense": False}),
    "one player": (alone, ace.CCE(), {}),
    "independent": (own_costs, ace.Nash(), {}),
    "three players": (three, ace.CE(), {}),
}


def measured(shape):
    """What a solve took in a process of its own, beside what was predicted."""
    here = os.path.dirname(__file__)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, here, shape], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_memory_stays_within_the_estimate(shape):
    found = measured(shape)
    assert found["grown"] > 10 * 2**20, "too small to tell"
    assert found["grown"] <= found["working"] + found["policy"], found


@LINUX
def test_memory_of_one_shape():
    found = measured("dense")
    assert found["grown"] > 10 * 2**20
    assert found["grown"] <= found["working"] + found["policy"], found
