"""The pairs (t, state, spent) of a game as cells of boxes. The fast path of spec 2.

Each layer gives every state that can occur a *box* of cells, one per vector of spent units between
what can have been spent on arrival and what can still be afforded. With `clip`, cumulative costs so
low that a budget cannot bind any more count as the largest of them (spec 9, lossless), and
constraints that never bind or are implied by another are left out.

`explore` finds the cells that feasible play reaches. *Dense*: feasibility by height map,
reachability line by line, one bit per cell. *Sparse*: boxes that do not fit or would stay
nearly empty are not stored; the reached cells are listed in order and found by hashing. Both give
the same pairs. Where the boxes are large, `explore` finds out how empty they are.

Without `clip`, a constraint whose total is a sum of other totals (`sums`), such as the other side
of one limit, would leave large boxes empty but for a diagonal. There boxes count the others only;
cells are listed, and the sum is held against the budget on the way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import TooLarge
from acegames.kernels.records import AllBoxes, AllTransitions, NextLayer, Transitions
from acegames.model.arrays import Bools, Bytes, Floats, Ints, frozen, pointers
from acegames.model.game import MarkovGame
from acegames.model.layers import with_fields
from acegames.safety.cells import Cells, LayerSpace, count_cells, fits_numbers, number_boxes
from acegames.safety.lattice import Lattice, Sums, find_sums

DENSE_IF_BELOW = 2_000_000  # cells of all boxes: below this, listing them gains nothing
DENSE_OCCUPANCY = 50  # above it, boxes may have this many cells per one that is listed


@dataclass(frozen=True, eq=False)
class Tables:
    """The game's distinct layers end to end, so that one compiled call can run over many times.

    Rows and outcomes are numbered through all layers.
    """

    row_ptr: Ints  # (L, S+1)
    out_ptr: Ints  # (R+1,)
    action: NDArray[np.int32]  # (R, N)
    reward: Floats  # (R, N)
    prob: Floats  # (K,)
    next_state: NDArray[np.int32]  # (K,)
    cost: Ints  # (K, D) whole units of the constraints that are kept
    layer_at: Ints  # (H,)

    @staticmethod
    def of(game: MarkovGame, costs: Ints) -> Tables:
        """Put the layers end to end; a stationary game's arrays are taken as they are."""
        row_ptr, out_ptr = list[Ints](), list[Ints]()
        rows = outs = 0
        for x in game.layers:
            row_ptr.append(x.row_ptr.astype(np.int64) + rows)
            out_ptr.append(x.out_ptr[min(len(out_ptr), 1) :].astype(np.int64) + outs)  # one begins where another ends
            rows, outs = rows + len(x.reward), outs + len(x.prob)
        return Tables(
            row_ptr=frozen(np.array(row_ptr)),
            out_ptr=_joined(out_ptr),
            **{f: _joined([getattr(x, f) for x in game.layers]) for f in ("action", "reward", "prob", "next_state")},
            cost=frozen(costs),
            layer_at=frozen(np.array(game.layer_at, dtype=np.int64)),
        )

    @cached_property
    def widest(self) -> tuple[int, int]:
        """Most rows of a state, and most outcomes of a state's rows together."""
        return int(np.diff(self.row_ptr, axis=1).max()), int(np.diff(self.out_ptr[self.row_ptr], axis=1).max())

    def steps(self, budget: Ints) -> AllTransitions:
        """Return the tables for kernels, with the budget (H, D)."""
        return AllTransitions(self.layer_at, self.row_ptr, self.out_ptr, self.next_state, self.cost, self.prob, budget)


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return frozen(parts[0] if len(parts) == 1 else np.concatenate(parts))


@dataclass(frozen=True, eq=False)
class Space:
    """All layers t = 0 .. H end to end. Boxes of time t are start[t] : start[t+1].

    `base` and `line` have one more entry per layer.
    """

    game: MarkovGame
    dims: tuple[int, ...]  # the constraints that boxes count; none leaves one column of zeros
    tables: Tables
    budget: Ints  # (H, D)
    spent: Ints  # (D,) at the beginning
    start: Ints  # (H+2,)
    states: Ints
    lo: Ints
    size: Ints
    least: Ints
    most: Ints
    base: Ints
    line: Ints
    dense: bool | None  # None: `explore` decides; False where there are sums
    limit: Ints  # (X, E) up to where sums lead into each box, in the scale of `sums`
    sums: Sums | None = None  # the constraints that are kept besides, because they follow from `dims`
    arrivals: Arrivals | None = None  # what it was planned from
    # dense and explored: the largest feasible place on each line, -1 for none
    height: NDArray[np.int32] | None = None
    cells: tuple[Cells, ...] = ()  # the reached cells of each layer; empty if not explored or infeasible
    played: tuple[Bytes, ...] = ()  # explored: a bit for each row of each time, whether feasible play takes it

    @cached_property
    def layers(self) -> tuple[LayerSpace, ...]:
        """Views of the layers t = 0 .. H."""
        return tuple(map(self.layer, range(self.game.horizon + 1)))

    def layer(self, t: int) -> LayerSpace:
        """Return a view of one layer; `layers` holds them all."""
        a, b = int(self.start[t]), int(self.start[t + 1])
        own, more = slice(a, b), slice(a + t, b + t + 1)  # `base` and `line` have one more entry per layer
        cells = self.cells[t] if self.cells else None
        boxes = (self.states[own], self.lo[own], self.size[own], self.base[more], self.line[more])
        return LayerSpace(*boxes, self.least[own], self.most[own], cells)

    @cached_property
    def all_steps(self) -> AllTransitions:
        """What joint actions lead to, for kernels that run over many times."""
        return self.tables.steps(self.budget)

    def all_boxes(self, height: NDArray[np.int32]) -> AllBoxes:
        """Return the boxes of all layers with heights, for kernels that run over many times."""
        return AllBoxes(self.start, self.states, self.lo, self.size, self.base, self.line, self.line_start, height)

    def steps(self, t: int) -> Transitions:
        """Return what joint actions lead to at time t, for kernels."""
        tables = self.tables
        row_ptr = tables.row_ptr[tables.layer_at[t]]
        return Transitions(row_ptr, tables.out_ptr, tables.next_state, tables.cost, tables.prob, self.budget[t])

    def following(self, t: int) -> NextLayer:
        """Return the layer of time t for kernels that step into it."""
        layer = self.layers[t]
        height = np.zeros(0, dtype=np.int32)
        if self.height is not None:
            height = self.height[self.line_start[t] : self.line_start[t + 1]]
        limit = self.limit[self.start[t] : self.start[t + 1]]
        weight = np.empty((0, layer.lo.shape[1]), np.int64) if self.sums is None else self.sums.weight
        boxes = (layer.lo, layer.size, layer.base, layer.line)
        return NextLayer(layer.slots(len(self.game.states)), *boxes, height, weight, limit)

    def packed_rows(self, t: int, rows: Bools | Bytes) -> Bytes:
        """Pack flags of all rows of the tables into a bit for each row of time t."""
        row_ptr = self.tables.row_ptr[self.tables.layer_at[t]]
        return np.packbits(rows[row_ptr[0] : row_ptr[-1]], bitorder="little")

    @cached_property
    def totals(self) -> Ints:
        """Cells of each layer, (H+1,)."""
        totals: Ints = self.base[self.start[1:] + np.arange(self.game.horizon + 1)]
        return totals

    @cached_property
    def line_start(self) -> Ints:
        """First line of each layer when counted through, (H+2,)."""
        return pointers(self.line[self.start[1:] + np.arange(self.game.horizon + 1)])

    @property
    def explored(self) -> bool:
        """Whether `explore` ran and found the game feasible."""
        return bool(self.cells)

    feasible = explored

    @cached_property
    def pairs(self) -> int:
        """Reached cells with t < H."""
        return sum(cells.number for cells in self.cells[:-1])

    @property
    def total(self) -> int:
        """Cells of all boxes with t < H."""
        return int(self.totals[:-1].sum())

    def until(self, t: int) -> Space:
        """Return the boxes of the first t steps, after which play ends; they are not explored."""
        game, boxes = self.game, int(self.start[t + 1])
        own, more = slice(boxes), slice(boxes + t + 1)
        shorter = with_fields(game, horizon=t, budgets=game.budgets[:t], layer_at=game.layer_at[:t])
        return Space(
            *(shorter, self.dims, self.tables, self.budget[:t], self.spent, self.start[: t + 2]),
            *(self.states[own], self.lo[own], self.size[own], self.least[own], self.most[own]),
            *(self.base[more], self.line[more], self.dense, self.limit[own], self.sums),
        )

    @property
    def roots(self) -> tuple[Ints, Ints]:
        """Initial states, and what is spent there of the kept constraints (Q, D)."""
        states = np.array([s for s, _ in self.game.initial], dtype=np.int64)
        return states, self.spent[None, :].repeat(len(states), axis=0)

    def same_boxes(self, other: Space) -> bool:
        """Return whether all boxes before the end are those of another plan."""
        last = int(self.start[-2])
        same = self.dims == other.dims and np.array_equal(self.start[:-1], other.start[:-1])
        boxes = ((self.states, other.states), (self.lo, other.lo), (self.size, other.size))
        return same and all(np.array_equal(own[:last], others[:last]) for own, others in boxes)

    def contains(self, t: int, state: NDArray[Any], spent: Ints) -> NDArray[np.bool_]:
        """Return whether each (state, spent (Q, M) whole units) is reached at t."""
        if not self.feasible:
            return np.zeros(len(state), dtype=bool)
        cell = self.layers[t].locate(state.astype(np.int64), self.project(spent), spent)
        inside = cell >= 0
        if self.sums is not None:
            inside &= self.sums.agree(spent)
        inside[inside] = self.cells[t].rank(cell[inside]) >= 0
        return inside

    def project(self, spent: Ints) -> Ints:
        """Return the columns of (Q, M) whole units that boxes count."""
        return spent[:, list(self.dims)] if self.dims else np.zeros((len(spent), 1), dtype=np.int64)

    def unproject(self, counted: Ints) -> Ints:
        """Return (Q, M) whole units from (Q, D), where boxes or sums have every constraint."""
        spent = np.zeros((len(counted), self.least.shape[1]), dtype=np.int64)
        spent[:, list(self.dims)] = counted[:, : len(self.dims)]
        if self.sums is not None:
            self.sums.fill(spent)
        return spent


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Which states legal play can come to, and what it can have spent by then, budgets or none."""

    tables: Tables  # with the costs of all constraints
    start: Ints  # (H+2,) the states of time t are start[t] : start[t+1]
    states: Ints
    least: Ints  # (B, M)
    most: Ints  # (B, M)

    @staticmethod
    def of(game: MarkovGame, lattice: Lattice) -> Arrivals:
        """Count the states, then fill them in."""
        from acegames.kernels.boxes import forward_bounds

        tables = Tables.of(game, lattice.costs(_joined([layer.cost for layer in game.layers])))
        initial = np.array([s for s, _ in game.initial], dtype=np.int64)
        steps, nothing = tables.steps(lattice.budget), np.empty((0, 0), np.int64)
        spent = (initial, lattice.start, lattice.floor)
        boxes = int(forward_bounds(*spent, steps, np.empty(0, np.int64), nothing, nothing)[-1])
        states, bounds = np.empty(boxes, np.int64), np.empty((2, boxes, tables.cost.shape[1]), np.int64)
        return Arrivals(tables, forward_bounds(*spent, steps, states, *bounds), states, *bounds)


def plan(game: MarkovGame, lattice: Lattice, *, clip: bool, arrivals: Arrivals | None = None) -> Space:
    """Lay out the boxes. Cheap: linear in the game, whatever the budgets.

    Another plan of the same game may lend its arrivals. Clipped boxes that cannot be numbered are
    laid out without clipping, in the same constraints: then some may follow from others.
    """
    arrivals = Arrivals.of(game, lattice) if arrivals is None else arrivals
    if not clip:
        return _laid_out(game, lattice, arrivals, list(range(len(lattice.units))), clip=False)
    dims = _needed(game, lattice, arrivals.tables.cost)
    try:
        return _laid_out(game, lattice, arrivals, dims, clip=True)
    except TooLarge:
        return _laid_out(game, lattice, arrivals, dims, clip=False)


def _laid_out(game: MarkovGame, lattice: Lattice, arrivals: Arrivals, dims: list[int], *, clip: bool) -> Space:
    from acegames.kernels.boxes import backward_boxes

    tables, start, states = arrivals.tables, arrivals.start, arrivals.states
    least, most = arrivals.least, arrivals.most
    arrays = (tables.cost, lattice.budget, lattice.start[None, :], least, most)
    cost, budget, spent, low, high = (_columns(x, dims) for x in arrays)
    lo, size = np.empty((2, len(states), budget.shape[1]), np.int64)
    backward_boxes(tables.steps(budget)._replace(cost=cost), start, states, low, high, clip, lo, size)
    playable = (size > 0).all(axis=1)
    if not playable.all():
        start = pointers(playable)[start]
        states, least, most, lo, size = (x[playable] for x in (states, least, most, lo, size))
    sums, limit = None, np.empty((len(states), 0), np.int64)
    if size.shape[1] > 1:
        longest = int(size.sum(axis=0).argmax())  # comes last, because lines run along it
        order = [*(k for k in range(size.shape[1]) if k != longest), longest]
        if not clip and (implied := _worthwhile_sums(lattice, arrivals, dims, cost, size)):
            order, limit = list(implied.counted), _limits(implied, start, lo + size - 1, budget)
            sums = implied.named(dims)
        dims = [dims[k] for k in order]
        cost, budget, spent, lo, size = (_columns(x, order) for x in (cost, budget, spent, lo, size))
    boxes = (start, states, lo, size, least, most, *number_boxes(start, size))
    own = (replace(tables, cost=cost), budget, spent[0])
    space = Space(game, tuple(dims), *own, *boxes, dense=True, limit=limit, sums=sums, arrivals=arrivals)
    dense = _prefer_dense(space)
    return space if dense else replace(space, dense=dense)


def _worthwhile_sums(lattice: Lattice, arrivals: Arrivals, dims: list[int], cost: Ints, size: Ints) -> Sums | None:
    """Find constraints that follow from others and are better left out of boxes; None: none.

    They are where large boxes without them have so much fewer cells that lists hold these better.
    """
    cells = count_cells(size)
    if cells <= DENSE_IF_BELOW:
        return None
    reach = [np.abs(x[:, dims]).max(axis=0, initial=0) for x in (arrivals.least, arrivals.most, arrivals.tables.cost)]
    order = [int(k) for k in size.sum(axis=0).argsort(kind="stable")]  # counting the short ones takes the fewest cells
    plain = lattice.floor[dims] < 0
    sums = find_sums(cost, np.max(reach, axis=0).tolist(), order, plain)
    if (
        sums is None
        or not sums.counted
        or (fits_numbers(cells) and count_cells(size[:, list(sums.counted)]) * DENSE_OCCUPANCY > cells)
    ):
        return None
    return sums


def _limits(sums: Sums, start: Ints, top: Ints, budget: Ints) -> Ints:
    """Return up to where sums (E,) lead into each box: its `top`, or the budget before it."""
    own, entered = list(sums.of), int(start[1])  # nothing leads into the boxes before
    before = np.repeat(np.arange(len(budget)), np.diff(start[1:]))  # the time of the step that leads there
    limit = top[:, own]
    limit[entered:] = np.minimum(limit[entered:], budget[before][:, own])
    return np.ascontiguousarray(limit * sums.scale)


def _columns(array: Ints, dims: list[int]) -> Ints:
    """Return some columns in this order, or one of zeros; read-only as the array is."""
    if dims == list(range(array.shape[1])) and dims:
        return array
    taken = np.ascontiguousarray(array[:, dims]) if dims else np.zeros((len(array), 1), dtype=np.int64)
    return taken if array.flags.writeable else frozen(taken)


def _needed(game: MarkovGame, lattice: Lattice, costs: Ints) -> list[int]:
    """Return the constraints that can bind and are not implied by another one (spec 9)."""
    binding = [m for m in range(len(lattice.units)) if _can_bind(game, lattice, m)]
    for j in list(binding):
        for k in binding:
            if j != k and _implied(j, k, lattice, costs):
                binding.remove(j)
                break
    return binding


def _implied(j: int, k: int, lattice: Lattice, costs: Ints) -> bool:
    """Return whether whoever keeps the budget of constraint k keeps that of j, spending less."""
    never_more = lattice.start[j] <= lattice.start[k] and lattice.floor[j] <= lattice.floor[k]
    budget = lattice.budget
    return bool(never_more and (budget[:, j] >= budget[:, k]).all() and (costs[:, j] <= costs[:, k]).all())


def _can_bind(game: MarkovGame, lattice: Lattice, m: int) -> bool:
    """Return whether the largest single costs added up break the budget at some time."""
    units = lattice.cost_units[m]
    largest = [int(units[layer.cost[:, m].max()]) for layer in game.layers]
    total, floor = int(lattice.start[m]), int(lattice.floor[m])
    for bound, k in zip(lattice.budget[:, m].tolist(), game.layer_at, strict=True):
        total = max(total + largest[k], floor)
        if total > bound:
            return True
    return False


def _prefer_dense(space: Space) -> bool | None:
    """Return whether to store boxes cell by cell; None where that depends on what is reached."""
    if space.sums is not None or int(space.size.max(initial=0)) >= 2**31:  # heights are 32-bit
        return False
    return True if int(space.totals.sum()) <= DENSE_IF_BELOW else None
