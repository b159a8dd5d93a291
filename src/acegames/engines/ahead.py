"""Compiles kernels of stage games in processes of their own, while this one compiles the others.

These take most of the time to compile, and numba compiles on one thread at a time.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any, Literal

import numpy as np

from acegames.concepts import CCE, Concept, Nash
from acegames.engines.blocks import LayerData, empty_room
from acegames.engines.stages import Programs, buffers_for
from acegames.kernels.records import Boxes, Choices, Following, Steps, Written
from acegames.model.arrays import read_only
from acegames.stage.nash import solve_stages
from acegames.system.compiling import NotCompiled, nothing_compiled

PLAYERS = ("p", "q")
Games = Literal["plain", "left", "nash"]


@cache
def compile_ahead(games: Games) -> None:
    """Begin to compile what such stage games need, unless it is kept already."""
    from acegames.system.compiled import compile_elsewhere

    compile_elsewhere(_needed(games), f"from {__name__} import solve_one; solve_one({games!r})")


def load_kept(players: int, concept: Concept) -> None:
    """Load the kernels of stage games that are kept already; nothing is compiled."""
    kinds: tuple[Games, ...] = ("nash",) if players > 1 and concept.product else ("plain", "left")
    for games in kinds:
        with suppress(NotCompiled), nothing_compiled():
            solve_one(games)


def _needed(games: Games) -> Any:
    if games == "nash":
        from acegames.kernels.nash import solve_nash

        return solve_nash
    from acegames.kernels.cells import solve_cells
    from acegames.kernels.written import solve_written

    return solve_cells if games == "plain" else solve_written


def solve_one(games: Games) -> None:
    """Solve a stage game of one joint action; the arrays have the types of all others."""
    choices = Choices(read_only(np.zeros((1, 2), np.int32)), np.zeros((1, 2), np.int32), np.arange(3, dtype=np.int64))
    one, ends, nothing = np.zeros(1, np.int64), np.arange(2, dtype=np.int64), np.zeros((1, len(PLAYERS)))
    written = Written(one, ends, one, one, np.zeros((1, 4)))
    if games == "nash":
        solve_stages(written, choices, Nash(), PLAYERS, nothing)
        return
    lo, size, small = np.zeros((1, 1), np.int64), np.ones((1, 1), np.int64), np.zeros(1, np.int32)
    pointers, outcomes = (read_only(ends),) * 2, (read_only(small), read_only(lo), read_only(np.ones(1)))
    here, step = Boxes(one, lo, size, ends, ends), Steps(*pointers, *outcomes, one)
    after, reward = Following(small, lo, size, ends, ends, small, lo, lo), read_only(np.zeros((1, 4)))
    data = LayerData(0, here, np.ones(1, np.uint8), None, step, reward, after, None, np.zeros((1, 4)), (1, 1))
    solver, room = Programs(CCE(), PLAYERS, choices, lambda t: nothing), empty_room(data)
    if games == "plain":
        solver.solve(data, 0, 1, room)
    else:
        solver.solve_each(data, written, 1, buffers_for(data, 1).answers(room))
