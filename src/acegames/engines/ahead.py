"""Compiles the kernel of stage games in a process of its own, while this one compiles the others.

It takes more than half of the time to compile, and numba compiles on one thread at a time.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from acegames.concepts import CCE, Nash
from acegames.engines.baseline import baseline
from acegames.engines.blocks import Room, StageSolver
from acegames.engines.stages import Programs, Searches
from acegames.kernels.records import Choices, Written
from acegames.model.arrays import read_only


@cache
def compile_ahead(*, product: bool) -> None:
    """Begin to compile the kernel that a concept's stage games need, unless it is kept already."""
    from acegames.kernels.nash import solve_nash
    from acegames.kernels.written import solve_written
    from acegames.system.compiled import compile_elsewhere

    needed = solve_nash if product else solve_written
    compile_elsewhere(needed, f"from {__name__} import solve_one; solve_one(product={product})")


def solve_one(*, product: bool) -> None:
    """Solve a stage game of one joint action; the arrays have the types of all others."""
    players, alone = ("p", "q"), np.zeros(1, np.int64)
    nothing = np.zeros((1, len(players)))
    choices = Choices(read_only(np.zeros((1, 2), np.int32)), np.zeros((1, 2), np.int32), np.arange(3, dtype=np.int64))
    written = Written(alone, np.arange(2, dtype=np.int64), alone, alone, np.zeros((1, 4)))
    base = baseline(nothing, nothing)
    solver: StageSolver = Programs(CCE(), players, choices, 1, base)
    if product:
        solver = Searches(Nash(), players, choices, base)
    solver.solve(0, written, 1, Room(np.zeros((1, 4)), np.zeros(1, np.uint16)))
