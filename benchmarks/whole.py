"""From game to saved, verified answer: what a user waits for; small games; and the building of games.

Every timed result is checked: each solve's own policy is verified, each file that is written is read back and compared.
"""

from __future__ import annotations

import itertools
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np

import acegames as ace
from acegames.cli.bench import random_game
from acegames.system.machine import processors

HERE = Path(__file__).parent
SIZES = ((4, 7, 9), (7, 12, 18), (12, 22, 32), (20, 40, 60))  # states, horizon, budgets
LARGEST = (50, 60, 80)
SMALL = ((2, 2, 2), (3, 4, 4), (3, 8, 10))
STEPS = ("build", "solve", "verify", "save", "load")


def timed(work):
    """What a call returns, and its wall time."""
    started = time.perf_counter()
    found = work()
    return found, time.perf_counter() - started


def median(work, repeat):
    """The last answer of a call, and its median wall time."""
    answers = [timed(work) for _ in range(repeat)]
    return answers[-1][0], statistics.median(seconds for _, seconds in answers)


# -- from game to answer ----------------------------------------------------------------------------------------------


def from_game_to_answer(*, largest=False):
    """Build, solve, verify, save and load, for games of growing size, both concepts and several numbers of threads."""
    found, concepts, counts = [], (ace.CE(), ace.CCE()), sorted({1, 2, processors()})
    for concept, threads in itertools.product(concepts, counts):  # compiled before anything is timed
        _one_way(random_arrays(*SIZES[0]), concept, threads)
    for size in (*SIZES, *[LARGEST] * largest):
        arrays = random_arrays(*size)
        for concept in concepts:
            held = None
            for threads in counts:
                first, pairs = _one_way(arrays, concept, threads)
                runs = [first] + [_one_way(arrays, concept, threads)[0] for _ in range(_more_runs(pairs))]
                held = _held(arrays, concept) / pairs if held is None else held
                row = {step: statistics.median(run[step] for run in runs) for step in STEPS}
                facts = {"pairs": pairs, "concept": type(concept).__name__, "threads": threads}
                found.append({**facts, **row, "file_bytes": first["bytes"] / pairs, "policy_bytes": held})
    return found


def _more_runs(pairs):
    return 6 if pairs < 200_000 else 2 if pairs < 2_000_000 else 0


def random_arrays(states, horizon, budget, actions=(3, 3), nexts=3, costs=2, seed=0):
    """The arguments of `from_sparse` for a random game whose rules change at every step; half of the costs are zero."""
    rng = np.random.default_rng(seed)
    t, state, *action = (x.reshape(-1) for x in np.indices((horizon, states, *actions)))
    rows = len(t)
    after = rng.permuted(np.tile(np.arange(states), (rows, 1)), axis=1)[:, :nexts]
    spent = rng.integers(0, 4, (rows, costs, 2)) * (rng.random((rows, costs, 2)) < 0.5)
    share, chance = rng.dirichlet(np.ones(after.shape[1]), rows), rng.dirichlet(np.ones(costs), rows)
    outs = after.shape[1] * costs
    return {
        "row_t": t,
        "row_state": state,
        "row_action": np.stack(action, axis=1),
        "reward": rng.random((rows, len(actions))),
        "out_row": np.repeat(np.arange(rows), outs),
        "prob": (share[:, :, None] * chance[:, None, :]).reshape(-1),
        "next_state": np.repeat(after, costs, axis=1).reshape(-1),
        "cost": np.tile(spent, (1, after.shape[1], 1)).reshape(-1, 2),
        "budget": [budget] * 2,
        "horizon": horizon,
    }


def _one_way(arrays, concept, threads):
    """Seconds of each step and bytes of the file, and the number of pairs."""
    engine, took = ace.LocalEngine(threads=threads), {}
    game, took["build"] = timed(lambda: ace.MarkovGame.from_sparse(**arrays))
    solution, took["solve"] = timed(lambda: ace.solve(game, concept, engine=engine))
    certificate, took["verify"] = timed(lambda: ace.verify(game, solution.policy, concept, engine=engine))
    assert certificate.ok, str(certificate)
    with tempfile.TemporaryDirectory(dir=HERE) as folder:
        path = Path(folder) / "answer.ace"
        _, took["save"] = timed(lambda: solution.save(path))
        took["bytes"] = path.stat().st_size
        loaded, took["load"] = timed(lambda: ace.Solution.load(path))
        assert loaded.game.digest == game.digest and np.array_equal(loaded.values, solution.values)
        del loaded
    return took, solution.stats.pairs


def _held(arrays, concept):
    """Bytes that a solution holds besides its game."""
    game = ace.MarkovGame.from_sparse(**arrays)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    solution = ace.solve(game, concept)
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert ace.verify(game, solution.policy, concept).ok
    return held


def small_games():
    """Games of a few pairs, over and over, as in a sweep."""
    found = []
    for size, concept in itertools.product(SMALL, (ace.CE(), ace.CCE())):
        game = random_game(*size)
        solution = ace.solve(game, concept)
        assert ace.verify(game, solution.policy, concept).ok
        _, solving = median(lambda game=game, concept=concept: ace.solve(game, concept), 100)
        again, checking = median(lambda g=game, s=solution, c=concept: ace.verify(g, s.policy, c), 100)
        assert again.ok
        facts = {"pairs": solution.stats.pairs, "concept": type(concept).__name__}
        found.append({**facts, "solve": solving, "verify": checking})
    return found


# -- building ---------------------------------------------------------------------------------------------------------

MOVES = {"stay": (0, 0), "up": (0, 1), "down": (0, -1), "left": (-1, 0), "right": (1, 0)}


def building():
    """Rows of one table: what is built, how, how large it is, and how long it takes."""
    return [*_by_functions(), _robots(10, 2), _robots(5, 3), _flat(), _on_a_map()]


def _row(what, how, game, seconds, **more):
    rows, outs = (sum(len(getattr(layer, f)) for layer in game.layers) for f in ("reward", "prob"))
    facts = {"what": what, "how": how, "states": len(game.states), "rows": rows, "outcomes": outs}
    return {**facts, "seconds": seconds, **more}


def _by_functions(n=6, horizon=20):
    """Two robots that must not meet, against loops that ask the same functions and keep nothing."""
    cells = list(itertools.product(range(n), range(n)))

    def to(s, a):
        return tuple(min(max(x + d, 0), n - 1) for x, d in zip(s, MOVES[a], strict=True))

    def actions(t, s):
        return [list(MOVES), list(MOVES)]

    def legal(t, s, a):
        return to(s[0], a[0]) != to(s[1], a[1])

    def outcomes(t, s, a):
        cost = (int(a[0] != "stay"), int(a[1] != "stay"))
        return [(0.9, (to(s[0], a[0]), to(s[1], a[1])), cost), (0.1, s, cost)]

    def reward(t, s, a):
        return (float(s[0] == (n - 1, n - 1)), float(s[1] == (0, n - 1)))

    def loops(known):
        for t, here in enumerate(known):
            for s in here:
                for a in itertools.product(*actions(t, s)):
                    if legal(t, s, a):
                        outcomes(t, s, a), reward(t, s, a)

    rules = {"actions": actions, "legal": legal, "outcomes": outcomes, "reward": reward}
    rules |= {"players": ["a", "b"], "horizon": horizon, "initial": (cells[0], (n - 1, 0)), "budget": [12, 12]}
    found, digests = [], set()
    for stationary in (True, False):
        game, seconds = median(lambda s=stationary: ace.MarkovGame.from_functions(**rules, stationary=s), 3)
        reached = [[game.states[s] for s in np.flatnonzero(here)] for here in _reached(game)]
        _, own = median(lambda known=[game.states] if stationary else reached: loops(known), 3)
        digests.add(game.digest)
        how = "`from_functions`" + ("" if stationary else ", asked at every time")
        found.append(_row(f"two robots on {n}x{n}, {horizon} steps", how, game, seconds, own_loops=own))
    assert len(digests) == 1
    return found


def _reached(game):
    from acegames.model.game import reachable_states

    return reachable_states(game)[:-1]


def _robot(player, cells, start, goal, horizon, *, slips):
    """A robot on some cells, whose moves may go to either side."""
    known = set(cells)

    def to(s, step):
        there = (s[0] + step[0], s[1] + step[1])
        return there if there in known else s

    def outcomes(s, a):
        x, y = MOVES[a[0]]
        if not slips or a[0] == "stay":
            return [(1.0, to(s, (x, y)), int(a[0] != "stay"))]
        return [(0.8, to(s, (x, y)), 1), (0.1, to(s, (y, x)), 1), (0.1, to(s, (-y, -x)), 1)]

    def actions(s):
        return [[a for a, step in MOVES.items() if slips or a == "stay" or to(s, step) != s]]

    return ace.MarkovGame.from_functions(
        players=[player],
        actions=actions,
        outcomes=outcomes,
        reward=lambda s, a: [float(s == goal)],
        horizon=horizon,
        initial=start,
        budget={f"battery of {player}": 8},
    )


def _apart(s):
    """Where no two robots are in the same cell."""
    return np.all([(s[i] != s[j]).any(axis=1) for i, j in itertools.combinations(s, 2)], axis=0)


def _robots(n, count):
    """Robots on a square whose moves go astray, and which must not be in one cell."""
    cells = list(itertools.product(range(n), range(n)))
    corners = [(0, 0), (n - 1, 0), (0, n - 1)]
    agents = [_robot(f"r{k}", cells, corners[k], corners[k - 1], 30, slips=True) for k in range(count)]
    game, seconds = median(lambda: ace.compose(agents, possible=_apart), 3)
    assert len(game.states) == np.prod([n * n - k for k in range(count)])
    return _row(f"{count} robots on {n}x{n}, three outcomes each", "`compose`", game, seconds)


def _flat(states=111_111, outs=10):
    """Ten million outcomes as arrays, in order; the same in any order is the same game."""
    rng = np.random.default_rng(0)
    state, *action = (x.reshape(-1) for x in np.indices((states, 3, 3)))
    rows = len(state)
    rowwise = {"row_state": state, "row_action": np.stack(action, axis=1), "reward": rng.random((rows, 2))}
    outwise = {
        "out_row": np.repeat(np.arange(rows), outs),
        "prob": np.full(rows * outs, 1 / outs),
        "next_state": np.sort(rng.integers(0, states, (rows, outs)), axis=1).reshape(-1),
        "cost": np.tile(rng.integers(0, 3, (rows, 1, 2)), (1, outs, 1)).reshape(-1, 2),
    }
    rest = {"budget": [9, 9], "horizon": 20}
    game, seconds = median(lambda: ace.MarkovGame.from_sparse(**rowwise, **outwise, **rest), 3)
    order = rng.permutation(rows * outs)
    mixed = {name: array[order] for name, array in outwise.items()}
    assert ace.MarkovGame.from_sparse(**rowwise, **mixed, **rest).digest == game.digest
    return _row("flat arrays", "`from_sparse`", game, seconds)


def _on_a_map():
    """Three robots on a map of 73 cells, in a process of its own whose memory is watched."""
    done = subprocess.run([sys.executable, __file__, "map"], capture_output=True, text=True, check=True)
    states, rows, outcomes, seconds, peak = done.stdout.split()
    facts = {"states": int(states), "rows": int(rows), "outcomes": int(outcomes), "seconds": float(seconds)}
    how = {"what": "3 robots on a map of 73 cells", "how": "`compose`"}
    return {**how, **facts, "peak_bytes_per_row": int(peak) / int(rows)}


def _peak():
    """Bytes that this process has held at most; Linux counts what its parent held into `ru_maxrss`."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _map():
    """Build the game of `_on_a_map` and print its facts; the peak is what the process grew by."""
    lanes = (cell for cell in itertools.product(range(10), range(13)) if cell[0] % 3 == 0 or cell[1] % 4 == 0)
    cells = list(itertools.islice(lanes, 73))
    starts = (cells[0], cells[36], cells[-1])
    agents = [_robot(f"r{k}", cells, starts[k], starts[k - 1], 60, slips=False) for k in range(3)]
    ace.compose(agents[:1])  # what is loaded once

    def not_all_together(s):
        return ~((s["r0"] == s["r1"]).all(axis=1) & (s["r1"] == s["r2"]).all(axis=1))

    before = _peak()
    game, seconds = timed(lambda: ace.compose(agents, possible=not_all_together))
    grown = _peak() - before
    (layer,) = game.layers
    assert len(game.states) == 73**3 - 73 and np.array_equal(layer.prob, np.ones(len(layer.reward)))
    print(len(game.states), len(layer.reward), len(layer.prob), seconds, grown)


if __name__ == "__main__":
    if sys.argv[1:] != ["map"]:
        sys.exit("these are parts of run.py: python benchmarks/run.py from_game_to_answer small_games building")
    _map()
