"""Remakes the tables and the plot of benchmarks/README.md: `make bench`.

Everything is measured side by side in one run, as medians; every timed result is checked. No figure is a promise: machines differ,
the ratios less so.
"""

from __future__ import annotations

import itertools
import json
import platform
import statistics
import subprocess
import sys
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
import equilibrium_payoffs
import naive
import whole

import acegames as ace
from acegames.cli.bench import random_game
from acegames.kernels.batches import solve_written
from acegames.model.layers import with_fields
from acegames.system.machine import processors
from stage_solvers import PlainFirst, StageBatch, kernel_arguments, solve_plain_games

HERE = Path(__file__).parent


def median_seconds(work, repeat):
    """Median wall time of a call."""
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


# -- (a) the whole solve ------------------------------------------------------------------------------------------------


def whole_solve():
    """Dictionaries and scipy against acegames on the same game."""
    found = []
    for name, size in (("small", (5, 9, 18)), ("large", (6, 18, 45))):  # the hand-written one runs once: minutes
        game = random_game(*size)
        # the hand-written solver meets every pair that spends differently; acegames counts what cannot matter any more once
        started = time.perf_counter()
        values, pairs = naive.solve(game)
        by_hand = time.perf_counter() - started
        solution = ace.solve(game, ace.CE())
        assert np.allclose(values, solution.values, atol=1e-6), (values, solution.values)
        assert ace.verify(game, solution.policy, ace.CE()).ok
        ours = median_seconds(lambda game=game: ace.solve(game, ace.CE()), 9)
        found.append({"game": name, "pairs": pairs, "naive": by_hand, "ours": ours, "ratio": by_hand / ours})
    return found


# -- (b) stage programs -------------------------------------------------------------------------------------------------


def stage_programs():
    """Random stage games against scipy, a reused HiGHS object and QuantEcon's jitted simplex."""
    found = []
    for shape, kind in itertools.product(((2, 2), (3, 3), (5, 5), (3, 3, 3)), (ace.CE, ace.CCE)):
        few, many = 60, 4000
        rng = np.random.default_rng(0)
        actions = list(itertools.product(*map(range, shape)))
        u = rng.normal(size=(many, len(actions), len(shape)))
        expected, by_scipy = _scipy(actions, u[:few], kind)
        highs, by_highs = _highs(actions, u[: few * 5], kind)
        quantecon, by_quantecon = _quantecon(actions, u[: few * 5], kind)
        ours, by_us = _ours(actions, u, kind)
        assert np.allclose(ours[:few], expected, atol=1e-7)
        assert np.allclose(highs[:few], expected, atol=1e-6)
        wrong = int((np.abs(quantecon - ours[: few * 5]) > 1e-6).sum())
        found.append(
            {
                "shape": "x".join(map(str, shape)),
                "concept": kind.__name__,
                "ours": by_us,
                "scipy": by_scipy,
                "highs": by_highs,
                "quantecon": by_quantecon,
                "quantecon_wrong": f"{wrong}/{few * 5}",
            }
        )
    return found


def _scipy(actions, u, kind):
    answers = []

    def work():
        answers.clear()
        answers.extend(naive.stage(actions, x, kind is ace.CE).sum() for x in u)

    seconds = median_seconds(work, 3) / len(u)
    return (np.array(answers), seconds)


def _highs(actions, u, kind):
    import highspy

    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    n = len(actions)
    programs = []
    for x in u:
        A = np.vstack([naive.incentive_rows(actions, x, kind is ace.CE), np.ones(n)])
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = n, len(A)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = -x.sum(axis=1), np.zeros(n), np.full(n, np.inf)
        lp.row_lower_, lp.row_upper_ = (
            np.append(np.full(len(A) - 1, -np.inf), 1.0),
            np.append(np.zeros(len(A) - 1), 1.0),
        )
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.arange(0, A.size + 1, n, dtype=np.int32)
        lp.a_matrix_.index_ = np.tile(np.arange(n, dtype=np.int32), len(A))
        lp.a_matrix_.value_ = A.ravel()
        programs.append(lp)
    answers = np.zeros(len(u))

    def work():
        for k, lp in enumerate(programs):
            solver.passModel(lp)
            solver.run()
            answers[k] = -solver.getInfo().objective_function_value

    return (answers, median_seconds(work, 3) / len(u))


def _quantecon(actions, u, kind):
    from quantecon.optimize import linprog_simplex

    n = len(actions)
    programs = [(x.sum(axis=1), naive.incentive_rows(actions, x, kind is ace.CE)) for x in u]
    answers = np.zeros(len(u))

    def work():
        for k, (c, A) in enumerate(programs):
            answers[k] = linprog_simplex(c, A, np.zeros(len(A)), np.ones((1, n)), np.ones(1)).fun

    work()
    return (answers, median_seconds(work, 3) / len(u))


def _ours(actions, u, kind):
    """As engines do: what is plain in lockstep, and the rest one by one."""
    many, n, players = u.shape
    ptr = np.arange(many + 1) * n
    action = np.tile(np.array(actions, dtype=np.int32), (many, 1))
    flat = u.reshape(-1, players)
    batch = StageBatch(ptr, action, flat)
    sigma = PlainFirst().solve(batch, kind(), tuple(range(players))).sigma
    answers = np.add.reduceat(sigma * flat.sum(axis=1), ptr[:-1])
    arguments = kernel_arguments(batch, kind(), tuple(range(players)))
    _, left, _ = solve_plain_games(*arguments)
    rows = np.concatenate([np.arange(0), *(np.arange(n) + ptr[g] for g in arguments[-1].open[:left])])
    others = StageBatch(np.arange(left + 1) * n, action[rows], flat[rows]) if left else None
    rest = kernel_arguments(others, kind(), tuple(range(players))) if left else None

    def work():
        solve_plain_games(*arguments)
        if rest is not None:
            solve_written(*rest)

    return (answers, median_seconds(work, 9) / many)


# -- (c) one player -------------------------------------------------------------------------------------------------------


def knapsacks():
    """Single-agent knapsack games against a numpy dynamic programme written for knapsack."""
    found = []
    for items, budget in ((60, 28_000), (100, 50_000)):
        rng = np.random.default_rng(items)
        weight = rng.integers(100, 2 * budget * 2 // items, items)
        value = rng.integers(1, 1000, items)
        game = knapsack(weight, value, budget)
        best, choices = numpy_knapsack(weight, value, budget)
        solution = ace.solve(game)
        assert solution.values[0] == best
        assert ace.verify(game, solution.policy, ace.CCE()).ok
        ours = median_seconds(lambda game=game: ace.solve(game), 15)
        theirs = median_seconds(lambda a=(weight, value, budget): numpy_knapsack(*a), 15)
        bare = median_seconds(lambda a=(weight, value, budget): numpy_values(*a), 15)
        found.append(
            {
                "numpy_values": bare,
                "items": items,
                "budget": budget,
                "ours": ours,
                "numpy": theirs,
                "ratio": ours / theirs,
                "cells": choices.size,
            }
        )
    return found


def knapsack(weight, value, budget):
    """Item t is taken or left at time t."""
    return ace.MarkovGame.from_functions(
        players=["packer"],
        horizon=len(weight),
        initial="bag",
        budget={"weight": int(budget)},
        actions=lambda t, s: [("leave", "take")],
        outcomes=lambda t, s, a: [(1.0, "bag", int(weight[t]) if a[0] == "take" else 0)],
        reward=lambda t, s, a: float(value[t]) if a[0] == "take" else 0.0,
    )


def numpy_values(weight, value, budget):
    """The same without the choices: the bare optimum, from which no policy can be read."""
    best = np.zeros(budget + 1)
    for t in range(len(weight) - 1, -1, -1):
        after = best.copy()
        np.maximum(after[weight[t] :], best[: budget + 1 - weight[t]] + value[t], out=after[weight[t] :])
        best = after
    return best[-1]


def numpy_knapsack(weight, value, budget):
    """The textbook programme, policy (a table of choices) included."""
    best = np.zeros(budget + 1)
    choices = np.zeros((len(weight), budget + 1), dtype=bool)
    for t in range(len(weight) - 1, -1, -1):
        taken = best[: budget + 1 - weight[t]] + value[t]
        better = taken > best[weight[t] :]
        choices[t, weight[t] :] = better
        after = best.copy()
        after[weight[t] :][better] = taken[better]
        best = after
    return best[-1], choices


# -- (d), (e) growth ------------------------------------------------------------------------------------------------------


def growth():
    """Time and working memory per pair over three decades of pairs."""
    sizes = ((3, 8, 12), (4, 12, 24), (6, 18, 50), (8, 30, 90), (10, 45, 150), (14, 100, 330))
    return [_grown(random_game(*size), {"states": size[0], "horizon": size[1], "budget": size[2]}) for size in sizes]


def constraints():
    """One, two and three constraints, with about as many pairs each."""
    games = {
        1: random_game(10, 60, 6000, constraints=1, largest=400),
        2: random_game(8, 40, 90),
        3: random_game(5, 26, 26, constraints=3),
    }
    return [_grown(game, {"constraints": m}) for m, game in games.items()]


def _grown(game, facts):
    ace.solve(game, ace.CE())
    repeat = 5 if ace.estimate(game).pairs < 2_000_000 else 1
    seconds = median_seconds(lambda: ace.solve(game, ace.CE()), repeat)
    tracemalloc.start()
    solution = ace.solve(game, ace.CE())
    peak = tracemalloc.get_traced_memory()[1]
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    pairs = solution.stats.pairs
    verify = time.perf_counter()
    ok = ace.verify(game, solution.policy, ace.CE()).ok
    verify = time.perf_counter() - verify
    assert ok
    return {
        **facts,
        "pairs": pairs,
        "programs": solution.stats.programs,
        "repaired": solution.stats.repaired,
        "seconds": seconds,
        "ns_per_pair": seconds / pairs * 1e9,
        "working_bytes_per_pair": max(peak - held, 0) / pairs,
        "policy_bytes_per_pair": held / pairs,
        "verify_seconds": verify,
        "verify_ratio": verify / seconds,
    }


# -- (e') approximation ----------------------------------------------------------------------------------------------------

EPSILONS = {
    1: (1.6, 0.4, 0.1, 0.025, 0.00625, 0.0016, 0.0004),
    2: (3.2, 1.6, 0.8, 0.4, 0.2, 0.1),
    3: (6.4, 3.2, 1.6, 0.8),
}


def approximation():
    """Costs of sixteen digits, solved with finer and finer rounding, for one, two and three constraints."""
    found = []
    for m, epsilons in EPSILONS.items():
        game = _fine_game(m)
        for epsilon in epsilons:
            ace.solve(game, ace.CE(), epsilon=epsilon)
            repeat = 5 if ace.estimate(game, epsilon=epsilon).pairs < 500_000 else 1
            solution = ace.solve(game, ace.CE(), epsilon=epsilon)
            certificate = ace.verify(game, solution.policy, ace.CE())
            assert certificate.ok, str(certificate)
            found.append(
                {
                    "constraints": m,
                    "epsilon": epsilon,
                    "pairs": solution.stats.pairs,
                    "seconds": median_seconds(lambda g=game, e=epsilon: ace.solve(g, ace.CE(), epsilon=e), repeat),
                    "value": float(solution.values.sum()),
                    "worst_excess": float(max(np.asarray(certificate.max_spent, float) - 4.0)),
                }
            )
    return found


# -- (f) penalties ---------------------------------------------------------------------------------------------------------

PENALTIES = (1.0, 1e3, 1e6, 1e9)


def penalties():
    """The same game with an action that is dominated by little, and by more and more, on one core."""
    engine, found = ace.LocalEngine(threads=1), []
    games = {size: _penalised(random_game(8, 16, 24), size) for size in PENALTIES}
    for concept in (ace.CE(), ace.CCE(), ace.CE("egalitarian"), ace.CCE("fair"), ace.Nash()):
        seconds = {size: [] for size in PENALTIES}
        for _ in range(3):
            for size, game in games.items():
                started = time.process_time()
                solution = ace.solve(game, concept, engine=engine)
                seconds[size].append(time.process_time() - started)
                if len(seconds[size]) == 1:
                    assert ace.verify(game, solution.policy, concept).ok
                    facts = {"pairs": solution.stats.pairs, "repaired": solution.stats.repaired}
                    found.append({"concept": str(concept), "penalty": size, **facts})
        plain = statistics.median(seconds[PENALTIES[0]])
        for row in found[-len(PENALTIES) :]:
            row["seconds"] = statistics.median(seconds[row["penalty"]])
            row["ratio"] = row["seconds"] / plain
    return found


def _penalised(game, size):
    """Player 1's last action pays less than everything else, by this much and a little."""
    layer = game.layers[0]
    reward, never = np.array(layer.reward), layer.action[:, 0] == layer.action[:, 0].max()
    reward[never, 0] = reward[:, 0].min() - size - np.abs(reward[never, 0])
    return with_fields(game, layers=(replace(layer, reward=reward),))


def _fine_game(m, horizon=12):
    """Two players, two actions each; every step has costs of its own, with as many digits as a float has."""
    rng = np.random.default_rng(5)
    cost, reward = rng.random((horizon, 2, 2, 6, m)), rng.random((horizon, 2, 2, 2))
    cost[:, 0, 0] = 0  # resting is free
    return ace.MarkovGame.from_functions(
        players=["red", "blue"],
        actions=lambda t, s: [(0, 1), (0, 1)],
        outcomes=lambda t, s, a: [(1 / 6, 0, cost[t, a[0], a[1], k].tolist()) for k in range(6)],
        reward=lambda t, s, a: reward[t, a[0], a[1]].tolist(),
        budget=[4.0] * m,
        horizon=horizon,
        initial=0,
    )


# -- (e'') the shield -------------------------------------------------------------------------------------------------------

BATCH = 4096


def shield():
    """Building a shield, and look-ups in batches on one core: rows of pairs, their masks, and steps."""
    sizes = ((4, 12, 24), (8, 30, 90), (10, 45, 150))
    return [_shielded(random_game(*size)) for size in sizes]


def _shielded(game):
    made = ace.Shield(game)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, made.first[-2], (50, BATCH))
    batches = [made.situations(batch) for batch in rows]
    plays = [_drawn_steps(game, made, batch, rng) for batch in rows]
    _check_shield(game, made, rows, batches, plays)

    def by_row():
        for batch in rows:
            made.masks[made.mask_of[batch]]

    def by_pair():
        for t, states, spent in batches:
            made.masks[made.mask_of[made.pairs(t, states, spent)]]

    def steps():
        for batch, play in zip(rows, plays, strict=True):
            actions, after, costs = play
            made.next_pairs(batch, actions, costs, after)

    few = [(int(t[0]), game.states[s[0]], made.amounts(c[0])) for t, s, c in batches]
    return {
        "pairs": int(made.first[-2]),
        "masks": len(made.masks) - 1,
        "build": median_seconds(lambda: ace.Shield(game), 5),
        "by_row": rows.size / median_seconds(by_row, 9),
        "by_pair": rows.size / median_seconds(by_pair, 9),
        "steps": rows.size / median_seconds(steps, 9),
        "one_by_one": len(few) / median_seconds(lambda: [made.joint(*at) for at in few], 9),
        "from_feasibility": len(few) / median_seconds(lambda: [made.feasibility.actions(*at) for at in few], 3),
    }


def _drawn_steps(game, made, batch, rng):
    """A safe joint action of each row and one of its outcomes: actions, next states, costs in units."""
    t, state, _ = made.situations(batch)
    actions, after, costs = [], [], []
    for k, row in enumerate(batch):
        layer = game.layer(int(t[k]))
        safe = [r for r in layer.rows(int(state[k])) if made.masks[(made.mask_of[row], *layer.action[r])]]
        r = safe[rng.integers(len(safe))]
        o = rng.integers(layer.out_ptr[r], layer.out_ptr[r + 1])
        actions.append(layer.action[r])
        after.append(layer.next_state[o])
        costs.append([values[c] for values, c in zip(game.cost_values, layer.cost[o], strict=True)])
    return np.array(actions), np.array(after), made.cost_units(costs)


def _check_shield(game, made, rows, batches, plays):
    """Every timed answer against the slow path: feasibility asked about one pair at a time."""
    for batch, (t, states, spent), (actions, after, costs) in zip(rows, batches, plays, strict=True):
        assert (made.pairs(t, states, spent) == batch).all()
        assert (made.next_pairs(batch, actions, costs, after) == made.pairs(t + 1, after, spent + costs)).all()
        for k in range(0, BATCH, BATCH // 8):
            at = (int(t[k]), game.states[states[k]], made.amounts(spent[k]))
            mask = made.masks[made.mask_of[batch[k]]]
            assert (mask == made.joint(*at)).all()
            assert {game.joint_action(a) for a in np.argwhere(mask)} == set(made.feasibility.actions(*at))


# -- (f) start-up ---------------------------------------------------------------------------------------------------------


def start_up():
    """Import, first solve with and without the cache of compiled code; each in a process of its own."""
    code = "import time; t = time.perf_counter(); import acegames as ace; ace.solve; i = time.perf_counter() - t; "
    code += "import sys; light = 'numba' not in sys.modules; t = time.perf_counter(); "
    code += "ace.solve(ace.catalog.get('intersection')); print(i, time.perf_counter() - t, light)"
    cold = HERE / ".numba_cache"
    subprocess.run(["rm", "-rf", str(cold)], check=True)
    fresh = _run(code, {"NUMBA_CACHE_DIR": str(cold)})
    cached = [_run(code, {"NUMBA_CACHE_DIR": str(cold)}) for _ in range(3)]
    subprocess.run(["rm", "-rf", str(cold)], check=True)
    assert all(run[2] == "True" for run in cached)
    return {
        "import": statistics.median(float(run[0]) for run in cached),
        "first_solve_compiling": float(fresh[1]),
        "first_solve_cached": statistics.median(float(run[1]) for run in cached),
    }


def _run(code, environment):
    import os

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    return done.stdout.split()


def main():
    """Run everything, or the parts that are named, and write results.json, README.md and the plots.

    `--largest` takes the way from game to answer also for eight million pairs.
    """
    from report import write

    started = time.perf_counter()
    path, only = HERE / "results.json", [name for name in sys.argv[1:] if name != "--largest"]
    results = json.loads(path.read_text()) if only else {}
    parts = (
        start_up,
        stage_programs,
        knapsacks,
        growth,
        constraints,
        approximation,
        penalties,
        equilibrium_payoffs.payoffs,
        shield,
        whole_solve,
        whole.small_games,
        whole.building,
        whole.from_game_to_answer,
    )
    for part in parts:
        if only and part.__name__.replace("_", "-") not in {name.replace("_", "-") for name in only}:
            continue
        print(f"{part.__name__} ...", flush=True)
        asked = {"largest": "--largest" in sys.argv} if part is whole.from_game_to_answer else {}
        results[part.__name__] = part(**asked)
    results["machine"] = {"python": platform.python_version(), "processor": platform.machine(), "cores": processors()}
    if not only:
        results["minutes"] = (time.perf_counter() - started) / 60
    path.write_text(json.dumps(results, indent=2) + "\n")
    write(results, HERE)
    print(f"written to {HERE.name}/README.md in {(time.perf_counter() - started) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
