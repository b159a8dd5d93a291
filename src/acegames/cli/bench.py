"""How fast is acegames on this machine? A few games of growing size, solved and verified."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from acegames.concepts import CE
from acegames.engines import Engine
from acegames.model.game import MarkovGame
from acegames.solving.pipeline import solve
from acegames.verifier import verify

SIZES = ((4, 8, 20), (6, 16, 45), (8, 30, 90), (10, 45, 140))  # states, horizon, budget
LARGE = ((14, 100, 330),)  # the same, for a GPU


def random_game(
    states: int, horizon: int, budget: int, *, actions: int = 3, constraints: int = 2, largest: int = 5, seed: int = 0
) -> MarkovGame:
    """Return a game of two players, random and sparse, with integer costs; (0, 0) is free."""
    rng = np.random.default_rng(seed)
    shape = (states, actions, actions)
    transition = rng.dirichlet(np.ones(states), size=shape)
    transition[transition < 0.25] = 0.0
    transition[..., 0] += transition.sum(axis=-1) == 0
    transition /= transition.sum(axis=-1, keepdims=True)
    cost = rng.integers(0, largest + 1, size=(*shape, constraints))
    cost[:, 0, 0] = 0
    reward = rng.normal(size=(*shape, 2))
    return MarkovGame.from_arrays(transition, reward, cost, [budget] * constraints, horizon=horizon)


def measure(game: MarkovGame, engine: Engine | None = None) -> dict[str, Any]:
    """Solve and verify one game."""
    started = time.perf_counter()
    solution = solve(game, CE(), engine=engine)
    solved = time.perf_counter()
    certificate = verify(game, solution.policy, CE(), engine=engine)
    took = {"solve_seconds": solved - started, "verify_seconds": time.perf_counter() - solved}
    stats = solution.stats
    return {"stage_games": stats.pairs, "programs": stats.programs, **took, "where": stats.where, "ok": certificate.ok}


def measurements(engine: Engine | None = None, *, large: bool = False) -> list[dict[str, Any]]:
    """Return measurements of games of growing size; the first two, unmeasured, warm up the compiled
    code.
    """
    for size in ((2, 2, 2), SIZES[:2][-1]):  # small and large games are verified by kernels of their own
        measure(random_game(*size), engine)
    if large:
        solve(random_game(*SIZES[-1]), CE(), engine=engine)
    return [measure(random_game(*size), engine) for size in SIZES + (LARGE if large else ())]
