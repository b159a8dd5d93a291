"""What the compiled passes are given (see `kernels`): arrays with names.

What a GPU is given says axes in its types (`system.axes`).
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from acegames.verifier.arrays import Bytes, Floats, Ints, Small

Int = int | np.int64


class Time(NamedTuple):
    """What can happen at one time, and how its keys are read."""

    row_ptr: Ints  # (S+1,)
    out_ptr: Ints  # (R+1,)
    jump: Ints  # (K,)
    worst: Annotated[Ints, "R M"]  # what must be left of each budget for a row, see `Ceilings`
    bound: Ints  # (M,)
    span: np.int64  # number of keys of one state
    low: Ints  # (M,)
    size: Ints  # (M,)
    last: bool  # nothing follows


class Table(NamedTuple):
    """Finds the number of a key.

    Where `shift` is 0 the slot is the key itself; else keys are hashed to 64 - shift bits and
    searched for from there in `slots`, which holds the keys.
    """

    slots: Ints
    number: Small  # the number of the key in each slot, or EMPTY
    shift: np.int64


class Numbers(NamedTuple):
    """The numbers of one time, and where rows lead when one player switches."""

    prob: Floats  # (K,)
    reward: Annotated[Floats, "R N"]
    cost: Annotated[Ints, "K M"]
    stored: Ints  # (R,) the constraints that are reservoirs
    action: Annotated[Small, "R N"]
    # the row where player i plays b instead is at offset[i] + b, or -1
    move: Annotated[Small, "R actions_of_all_players"]
    offset: Ints  # (N+1,)


class Played(NamedTuple):
    """What the policy plays at P pairs; a pair without entries is a fault."""

    ptr: Ints  # (P+1,)
    row: Ints  # (Z,)
    prob: Floats  # (Z,)


class Known(NamedTuple):
    """What is known of the pairs of one time."""

    # V, W, what each can be off by, the best of safe play and the worst of the policy
    values: Annotated[Floats, "P 6N"]
    # the most that is spent from here on, on any history of the policy; then the most that is
    # missing in each of R reservoirs once it was full
    ahead: Annotated[Ints, "P M+R"]
    fault: Annotated[Bytes, "P"]  # 1: the policy runs into a fault from here


class Scratch(NamedTuple):
    """Room for one pair, all zero."""

    q: Annotated[Floats, "rows 4N"]  # of a state
    known: Annotated[Bytes, "rows"]
    targets: Annotated[Ints, "outcomes"]  # of a row
    part: Annotated[Floats, "actions actions+1 3"]  # what a choice comes to, its size and what that can be off by
    asked: Annotated[Ints, "actions"]  # of a player


class Ahead(NamedTuple):
    """What is known of the next time by key, for `lines`; C keys and some room behind them."""

    alive: Bytes  # (C,) 1: is a pair; the rest is meaningless elsewhere
    high: Floats  # (N, C) the best of safe play
    deviating: Floats  # (2N, C) W, and what it can be off by
    own: Floats  # (3N, C) V, what it can be off by, and the worst of the policy
    ahead: Ints  # (M + R, C) as in `Known`
    fault: Bytes  # (C,)


class Lanes(NamedTuple):
    """Room for one window of `lines`."""

    # (rows of a state, 5N, LANES) what a row comes to with W, and what that can be off by; the same
    # with V; and the worst of the policy after it
    q: Floats
    wanted: Bytes  # (rows of a state,) 2: some pair plays the row; 1: some player can switch to it
    safe: Bytes  # (rows of a state and at least 2, LANES)
    lane: Ints  # (LANES,) of each pair
    slack: Ints  # (M,)
    best: Floats  # (N, LANES)
    sums: Floats  # (4 * LANES,) one behind another, so that the compiler sees them apart
    part: Floats  # (1, A_i + 1, 2)
    asked: Ints  # (A_i,)
    most: Ints  # (rows of a state, M + R, LANES) as `ahead` in `Known`, if a row is played


class Boxes(NamedTuple):
    """How a policy numbers pairs: in every state a box of cells, the last dimension fastest.

    What was spent below `lo` counts as `lo`.
    """

    states: Ints  # (B,) ascending
    lo: Annotated[Ints, "B D"]
    size: Annotated[Ints, "B D"]
    base: Ints  # (B+1,) first cell of each box
    least: Annotated[Ints, "B M"]  # least and largest spending of every constraint
    most: Annotated[Ints, "B M"]
    dims: Ints  # (D,) the constraints that boxes count
    listed: bool  # the cells present are in `keys`, else in `bits`
    keys: Ints  # ascending
    bits: Annotated[Bytes, "blocks width"]  # one bit per cell
    counts: Ints  # cells present before each block
    ones: Bytes  # (256,) bits set in each byte
    by_cell: bool  # a pair's number is its cell, else that of the cell among those present
