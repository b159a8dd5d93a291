"""The arrays that kernels work on, by name. Numba compiles NamedTuples at no cost.

Axes: T time, S state, B box, R row (one legal joint action of one state), K outcome of a row, D
constraint that is kept, N player, G stage game, E entry of a mixed strategy. Totals and costs are
whole units of their constraint. What a GPU is given says axes in its types (`system.axes`).
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Small = NDArray[np.int32]
Floats = NDArray[np.float64]

LINEAR, EGALITARIAN, FAIR, ANY = 0, 1, 2, 3
"""Kinds of objective."""

MAX_BATCH_TABLEAU = 2**15
"""Numbers of the incentive rows of one stage program up to which several are solved together: their
room is made for each call of a kernel, and grows with the fourth power of the number of actions."""


class Boxes(NamedTuple):
    """The boxes of one layer: for each state that occurs, a cell for every total spent.

    Cells of a box run through the totals lo .. lo + size - 1, the last constraint fastest. A *line*
    is a run of cells along the last constraint. Spending below `lo` counts as `lo`: from there on
    no budget can bind.
    """

    states: Ints  # (B,) ascending
    lo: Annotated[Ints, "B D"]
    size: Annotated[Ints, "B D"]
    base: Ints  # (B+1,) first cell of each box
    line: Ints  # (B+1,) first line of each box


class PairTable(NamedTuple):
    """The boxes of one layer, and which of their cells are present; all read-only."""

    states: Ints  # (B,) ascending
    lo: Ints  # (B, D)
    size: Ints  # (B, D)
    base: Ints  # (B+1,)
    least: Ints  # (B, M) least spending of every constraint with which the state is entered
    most: Ints  # (B, M) largest
    dims: Ints  # the constraints that boxes count; if none, a box has one cell
    keys: Ints  # the present cells in order, where they are listed; or empty
    words: NDArray[np.uint64]  # a bit per cell, set where it is present; or empty
    counts: Ints  # cells present before each block of 8 words
    by_cell: bool  # a pair is the cell itself, else the cell's number among those present


class Transitions(NamedTuple):
    """What the joint actions of one time lead to."""

    row_ptr: Ints  # (S+1,) the rows of each state
    out_ptr: Ints  # (R+1,) the outcomes of each row
    next_state: Small  # (K,)
    cost: Annotated[Ints, "K D"]
    prob: Floats  # (K,)
    budget: Ints  # (D,) at the end of the step


class NextLayer(NamedTuple):
    """The boxes of the next layer, as a step finds them."""

    slot: Small  # (S,) the box of each state, -1 for none
    lo: Annotated[Ints, "B D"]
    size: Annotated[Ints, "B D"]
    base: Ints
    line: Ints
    height: Small  # the largest feasible place on each line, -1 for none; not read where cells are listed
    # sums of totals, which must stay within limits besides; none but where cells are listed
    weight: Annotated[Ints, "sums D"]
    limit: Annotated[Ints, "B sums"]


class Listed(NamedTuple):
    """The cells of a layer that is held as a list."""

    keys: Ints  # in order
    table: Small  # a hash table over them


class AllBoxes(NamedTuple):
    """`Boxes` and heights of all layers, end to end."""

    start: Ints  # (T+2,) boxes of time t are start[t] : start[t+1]
    states: Ints
    lo: Ints
    size: Ints
    base: Ints  # one more entry for each layer
    line: Ints
    height_start: Ints  # (T+2,)
    height: Small


class AllTransitions(NamedTuple):
    """`Transitions` of all times; those with the same tables share them."""

    layer_at: Ints  # (T,) the table of each time
    row_ptr: Ints  # (tables, S+1)
    out_ptr: Ints
    next_state: Small
    cost: Ints
    prob: Floats
    budget: Ints  # (T, D)


class GatherInput(NamedTuple):
    """What the stage games of one layer are made of."""

    here: Boxes
    dense: bool
    marks: NDArray[np.uint8]  # which cells are reached, where all cells are held; else empty
    keys: Ints  # the reached cells in order, where they are listed; else empty
    step: Transitions
    reward: Floats  # (R, 2N), or (R, 1) with one player
    after: NextLayer
    listed: Listed  # the cells of the next layer, where they are listed; else empty
    next_value: (
        Floats  # of the next layer: by column of `reward` and cell; where cells are listed, by listed cell and column
    )


class StageGames(NamedTuple):
    """Stage games written out, with room for more: the rows of game g are ptr[g] : ptr[g+1]."""

    cell: Ints  # (G,)
    ptr: Ints  # (G+1,)
    first_row: Ints  # (G,) of the state; `row` counts through the tables
    row: Ints
    utility: Floats  # (rows, 2N): utilities, then absolute totals: the same sums of rewards without their signs. One player: (rows, 1)


class Choices(NamedTuple):
    """The joint actions that rows stand for."""

    action: Annotated[Small, "R N"]
    # the row, from the state's first, when one player switches, or -1
    deviation: Annotated[Small, "R actions_of_all_players"]
    first_action: Ints  # (N+1,) the columns of player i in `deviation` are first_action[i] : first_action[i+1]


class Goal(NamedTuple):
    """The equilibrium that is asked for."""

    correlated: bool  # CE; else CCE
    floor: float
    kind: int  # of objective
    # weights of a linear objective, in one line; else what is added to utilities before players are
    # compared: one line for all states, or one for each row of the tables
    terms: Annotated[Floats, "lines N"]


class StageAnswers(NamedTuple):
    """Answers of written stage games, by cell; mixed and open ones are appended."""

    value: Floats  # (2N, cells), or (1, cells)
    code: NDArray[Any]  # (cells,) 1 + the row counted from the state's first; 0 where play is mixed
    mixed_cell: Ints
    mixed_ptr: Ints
    mixed_row: NDArray[Any]  # (E,) counted from the state's first
    mixed_prob: Floats  # (E,)
    open: Ints  # the cells of games without an answer


class Place(NamedTuple):
    """Where safe pairs lie: X boxes of all times, end to end, whose cells are bits or listed."""

    start: Ints  # (H+2,) boxes of time t are start[t] : start[t+1]
    states: Ints  # (X,) ascending within a time
    lo: Ints  # (X, D) least spending
    size: Ints  # (X, D) how many spendings from there on, the last constraint fastest
    base: Ints  # (X+H+1,) first cell of each box within its time, one more entry per time
    first: Ints  # (H+2,) first number of each time
    word: Ints  # (H+2,) first word of each time's bits
    words: NDArray[np.uint64]  # a bit per cell, set where it has a number; or empty
    counts: Ints  # numbers before each block of 8 words
    keys: Ints  # the cells that have numbers, in order within a time; or empty
