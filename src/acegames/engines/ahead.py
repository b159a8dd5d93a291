"""Compiles the kernel of stage games in a process of its own, while this one compiles the others.

It takes more than half of the time to compile, and numba compiles on one thread at a time.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from acegames.concepts import CCE, Nash
from acegames.engines.baseline import baseline
from acegames.engines.blocks import LayerData, solve_block
from acegames.engines.stages import Programs
from acegames.kernels.records import Boxes, Choices, Following, Steps, Written
from acegames.model.arrays import read_only
from acegames.stage.nash import solve_stages

PLAYERS = ("p", "q")


@cache
def compile_ahead(*, product: bool) -> None:
    """Begin to compile the kernel that a concept's stage games need, unless it is kept already."""
    from acegames.kernels.cells import solve_cells
    from acegames.kernels.nash import solve_nash
    from acegames.system.compiled import compile_elsewhere

    needed = solve_nash if product else solve_cells
    compile_elsewhere(needed, f"from {__name__} import solve_one; solve_one(product={product})")


def solve_one(*, product: bool) -> None:
    """Solve a stage game of one joint action; the arrays have the types of all others."""
    choices = Choices(read_only(np.zeros((1, 2), np.int32)), np.zeros((1, 2), np.int32), np.arange(3, dtype=np.int64))
    one, ends, nothing = np.zeros(1, np.int64), np.arange(2, dtype=np.int64), np.zeros((1, len(PLAYERS)))
    if product:
        solve_stages(Written(one, ends, one, one, np.zeros((1, 4))), choices, Nash(), PLAYERS, nothing[0])
        return
    lo, size = np.zeros((1, 1), np.int64), np.ones((1, 1), np.int64)
    small = np.zeros(1, np.int32)
    pointers, outcomes = (read_only(ends),) * 2, (read_only(small), read_only(lo), read_only(np.ones(1)))
    step = Steps(*pointers, *outcomes, one)
    after, reward = Following(small, lo, size, ends.copy(), ends.copy(), small), read_only(np.zeros((1, 4)))
    here, marks = Boxes(one, lo, size, ends.copy(), ends.copy()), np.ones(1, np.uint8)
    data = LayerData(0, here, marks, None, step, reward, after, None, np.zeros((1, 4)), (1, 1))
    solve_block(data, 0, 1, Programs(CCE(), PLAYERS, choices, baseline(nothing, nothing)))
