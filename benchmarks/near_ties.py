"""Games in which joint actions come to differ by 1e-5 to 1e-16 of a range, or by a rare event, so that floats cannot certify them.

What is measured is the time beyond floats on one thread: in the kernel with twice the digits, and in exact arithmetic.
"""

from __future__ import annotations

import time

import numpy as np

import acegames as ace
from acegames.cli.bench import random_game
from acegames.engines import answers, stages
from acegames.kernels import precise
from acegames.system.machine import processors

SHAPE = (6, 3, 3)  # states and actions


def arrays(rng, transition, reward, budget, horizon, constraints=2):
    """A game with costs of 0 to 3 each step; the first joint action is free."""
    cost = rng.integers(0, 4, size=(*reward.shape[:-1], constraints))
    cost[:, 0, 0] = 0
    return ace.MarkovGame.from_arrays(transition, reward, cost, [budget] * constraints, horizon=horizon)


def sparse(rng, shape):
    """Random transitions, most of which are zero."""
    transition = rng.dirichlet(np.ones(shape[0]), size=shape)
    transition[transition < 0.25] = 0.0
    transition[..., 0] += transition.sum(axis=-1) == 0
    return transition / transition.sum(axis=-1, keepdims=True)


def whole_rewards(rng, horizon=150):
    """Rewards 0 to 4, probabilities 1/3."""
    transition = np.zeros((*SHAPE, SHAPE[0]))
    for place in np.ndindex(SHAPE):
        transition[place][rng.choice(SHAPE[0], 3, replace=False)] = 1 / 3
    return arrays(rng, transition, rng.integers(0, 5, size=(*SHAPE, 2)).astype(float), 150, horizon, 1)


def rare_events(rng, horizon=45):
    """Probabilities of 1e-3 to 1e-12."""
    transition = np.zeros((*SHAPE, SHAPE[0]))
    for place in np.ndindex(SHAPE):
        a, b = rng.choice(SHAPE[0], 2, replace=False)
        transition[place][b] = 10.0 ** rng.uniform(-12, -3)
        transition[place][a] = 1.0 - transition[place][b]
    return arrays(rng, transition, rng.normal(size=(*SHAPE, 2)), 60, horizon)


def congestion(rng, horizon=45):
    """A road takes longer if both take it."""
    delay, reward = rng.integers(1, 6, size=(SHAPE[0], SHAPE[1], 2)), np.zeros((*SHAPE, 2))
    for s, a, b in np.ndindex(SHAPE):
        reward[s, a, b] = -delay[s, a, int(a == b)], -delay[s, b, int(a == b)]
    return arrays(rng, sparse(rng, SHAPE), reward, 60, horizon)


def penalties(rng, size, horizon=30):
    """One joint action in twenty is penalised."""
    shape = (10, 3, 3)
    reward = rng.normal(size=(*shape, 2))
    reward[rng.random(shape) < 1 / 20] -= size
    return arrays(rng, sparse(rng, shape), reward, 40, horizon)


def families():
    """Names, games and concepts."""
    bench, rng = random_game(50, 60, 80), np.random.default_rng
    yield "`acegames bench`, 50 states, 60 steps, budgets 80", bench, ace.CE()
    yield "the same", bench, ace.CCE()
    yield "rewards 0 to 4, probabilities 1/3", whole_rewards(rng(0)), ace.CE()
    yield "probabilities of 1e-3 to 1e-12", rare_events(rng(0)), ace.CE()
    yield "the same", rare_events(rng(1)), ace.CCE()
    yield "congestion, whole rewards", congestion(rng(0)), ace.CE()
    yield "the same", congestion(rng(1)), ace.CCE()
    for size in (1.0, 1e3, 1e6, 1e9):
        for objective in ("welfare", "egalitarian", "fair") if size in (1.0, 1e6) else ("welfare",):
            yield f"penalties of {size:g}", penalties(rng(0), size), ace.CE(objective=objective)


class Clock:
    """Adds up what calls of a function take on their thread, and counts what it is told to."""

    def __init__(self, function):
        self.function, self.seconds, self.calls = function, 0.0, 0

    def __call__(self, *arguments):
        """Call it."""
        began = time.thread_time()
        try:
            return self.function(*arguments)
        finally:
            self.seconds, self.calls = self.seconds + time.thread_time() - began, self.calls + 1


def near_ties():
    """Share of the time beyond floats on one thread, what reaches exact arithmetic, and how all processors help."""
    stages.solve_one("near")  # else it is compiled once exact arithmetic has taken some seconds
    found = []
    for name, game, concept in families():
        exact, kernel, taken = answers.solve_exactly, precise.solve_precisely, []
        ace.solve(game, concept, engine=ace.LocalEngine(threads=1))
        for _ in range(3):
            answers.solve_exactly, precise.solve_precisely = Clock(exact), Clock(kernel)
            precise.solve_precisely.replaces = kernel.replaces
            try:
                began = time.thread_time()
                solution = ace.solve(game, concept, engine=ace.LocalEngine(threads=1))
                taken.append((time.thread_time() - began, precise.solve_precisely.seconds, answers.solve_exactly))
            finally:
                answers.solve_exactly, precise.solve_precisely = exact, kernel
        whole, digits, exactly = sorted(taken, key=lambda x: x[0])[1]
        began = time.perf_counter()
        again = ace.solve(game, concept)
        everywhere = time.perf_counter() - began
        assert np.array_equal(again.values, solution.values)
        stats = solution.stats
        found.append(
            {
                "game": name,
                "concept": str(concept),
                "programs": stats.programs,
                "repaired": stats.repaired,
                "exact": exactly.calls,
                "seconds": whole,
                "digits": digits,
                "exactly": exactly.seconds,
                "beyond_floats": (digits + exactly.seconds) / whole,
                "processors": processors(),
                "all_processors": everywhere,
            }
        )
        print(found[-1], flush=True)
    return found
