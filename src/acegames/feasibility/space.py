"""The pairs (t, state, spent) of a game as cells of boxes, and which of them feasible play reaches. The fast path of spec 2.

Each layer gives every state that can occur a *box* of cells, one per vector of spent units between what can have been spent on
arrival and what can still be afforded. With `clip`, spending so little that a budget cannot bind any more counts as the largest
such spending (spec 9, lossless), and constraints that never bind or are implied by another are left out.

*Dense*: feasibility by height map, reachability by bytes, line by line; kept as one bit per cell. *Sparse*: where the boxes do not fit or
would stay nearly empty, the reached cells are listed in order and found by hashing. Both give the same pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import TooLarge
from acegames.feasibility.lattice import Lattice
from acegames.model.game import MarkovGame

Ints = NDArray[np.int64]

EVERYTHING = np.int64(2**61)
"""Spending bound of the layer after the last: nothing binds there, so all spending is one cell."""
DENSE_IF_BELOW = 2_000_000  # cells in all: small enough that nothing is gained by listing them
DENSE_OCCUPANCY = 50  # else boxes may have this many cells for each pair that can be reached at most
RANK_BLOCK = 512  # cells per stored count; a multiple of 8

_BITS_SET = np.array([bin(b).count("1") for b in range(256)], dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class Cells:
    """Which cells of a layer are there: one bit per cell with counts every RANK_BLOCK, or the list of cells in order."""

    bits: NDArray[np.uint8] | None  # (blocks, RANK_BLOCK / 8)
    counts: Ints | None  # cells present before each block
    keys: Ints | None
    number: int

    @staticmethod
    def from_marks(marks: NDArray[np.uint8]) -> Cells:
        """From one byte per cell."""
        bits = np.packbits(marks, bitorder="little")
        return Cells.from_bits(np.append(bits, np.zeros(-len(bits) % (RANK_BLOCK // 8), np.uint8)).reshape(-1, RANK_BLOCK // 8))

    @staticmethod
    def from_bits(bits: NDArray[np.uint8]) -> Cells:
        """From one bit per cell, (blocks, RANK_BLOCK / 8)."""
        per_block = _BITS_SET[bits].sum(axis=1, dtype=np.int64)
        return Cells(bits, np.concatenate([[0], np.cumsum(per_block)]), None, int(per_block.sum()))

    @staticmethod
    def from_keys(keys: Ints) -> Cells:
        """From the cells in order."""
        return Cells(None, None, keys, len(keys))

    def marks(self, total: int) -> NDArray[np.uint8]:
        """One byte per cell."""
        if self.bits is None:
            marks = np.zeros(total, dtype=np.uint8)
            marks[self.keys] = 1
            return marks
        return np.unpackbits(self.bits.ravel(), count=total, bitorder="little")

    def listed(self, total: int) -> Ints:
        """The cells in order."""
        return np.flatnonzero(self.marks(total)) if self.keys is None else self.keys

    def rank(self, cells: Ints) -> Ints:
        """Number of each given cell among those present, -1 where absent."""
        if self.keys is not None:
            at = np.minimum(np.searchsorted(self.keys, cells), max(self.number - 1, 0))
            return np.where(self.keys[at] == cells, at, -1) if self.number else np.full(len(cells), -1)
        assert self.bits is not None and self.counts is not None
        block, byte, bit = cells // RANK_BLOCK, cells % RANK_BLOCK // 8, (cells % 8).astype(np.uint8)
        own = self.bits[block, byte]
        before = np.arange(RANK_BLOCK // 8) < byte[:, None]
        rank = self.counts[block] + (_BITS_SET[self.bits[block]] * before).sum(axis=1, dtype=np.int64)
        rank += _BITS_SET[own & ((np.uint8(1) << bit) - np.uint8(1))]
        return np.where((own >> bit) & 1, rank, -1)


@dataclass(frozen=True, eq=False)
class LayerSpace:
    """The boxes of one time, and the cells that feasible play reaches. D is the number of constraints that are kept (at least 1)."""

    states: Ints  # (B,) states that have a box, ascending
    lo: Ints  # (B, D) least spending of the box
    size: Ints  # (B, D)
    base: Ints  # (B+1,) first cell of each box
    line: Ints  # (B+1,) first line of each box; a line runs along the last constraint
    least: Ints  # (B, D) least and largest spending with which the state can be entered
    most: Ints  # (B, D)
    height: NDArray[np.int32] | None = None  # (lines,) dense only: largest feasible place on the line, -1 for none
    cells: Cells | None = None  # the reached ones

    @property
    def total(self) -> int:
        """Number of cells of all boxes."""
        return int(self.base[-1])

    def locate(self, state: Ints, spent: Ints, *, anyhow: bool = False) -> Ints:
        """Cell of each (state, spent (Q, D)), -1 outside the boxes or (unless `anyhow`) where no play enters the state like that.

        `anyhow` is for spending that was clipped before, which may be more than any play spends.
        """
        if not len(self.states):
            return np.full(len(state), -1)
        at = np.minimum(np.searchsorted(self.states, state), len(self.states) - 1)
        place = np.maximum(spent - self.lo[at], 0)
        known = place < self.size[at]
        if not anyhow:
            known &= (spent >= self.least[at]) & (spent <= self.most[at])
        cell = np.zeros(len(state), dtype=np.int64)
        for m in range(spent.shape[1]):
            cell = cell * self.size[at, m] + place[:, m]
        return np.where((self.states[at] == state) & known.all(axis=1), self.base[at] + cell, -1)

    def slots(self, n_states: int) -> NDArray[np.int32]:
        """Place of each state among those with a box, -1 for none."""
        slot = np.full(n_states, -1, dtype=np.int32)
        slot[self.states] = np.arange(len(self.states), dtype=np.int32)
        return slot

    def boxes(self, n_states: int) -> tuple[Any, ...]:
        """What kernels need of a layer that is stepped into."""
        return self.slots(n_states), self.lo, self.size, self.base

    def spent(self, cells: Ints) -> tuple[Ints, Ints]:
        """State and spending (Q, D) of each cell."""
        at = np.searchsorted(self.base, cells, side="right") - 1
        rest = cells - self.base[at]
        spent = np.empty((len(cells), self.lo.shape[1]), dtype=np.int64)
        for m in reversed(range(self.lo.shape[1])):
            spent[:, m] = self.lo[at, m] + rest % self.size[at, m]
            rest = rest // self.size[at, m]
        return self.states[at], spent


@dataclass(frozen=True, eq=False)
class Space:
    """All layers t = 0 .. H, with the tables in the constraints that are kept."""

    game: MarkovGame
    dims: tuple[int, ...]  # the constraints that are kept; none leaves one column of zeros
    costs: tuple[Ints, ...]  # per distinct layer of the game: (K, D)
    budget: Ints  # (H, D)
    layers: tuple[LayerSpace, ...]
    dense: bool

    @property
    def feasible(self) -> bool:
        """Whether every initial state has a feasible policy (known once `explore` has run)."""
        cells = self.layers[0].cells
        return cells is not None and cells.number > 0

    @property
    def pairs(self) -> int:
        """Reached cells with t < H."""
        return sum(layer.cells.number for layer in self.layers[:-1] if layer.cells is not None)

    @property
    def total(self) -> int:
        """Cells of all boxes with t < H."""
        return sum(layer.total for layer in self.layers[:-1])

    def cost(self, t: int) -> Ints:
        """Costs of the outcomes at t, (K, D)."""
        return self.costs[self.game.layer_at[t]]

    def contains(self, t: int, state: NDArray[Any], spent: Ints) -> NDArray[np.bool_]:
        """Whether each (state, spent (Q, M) whole units) is reached at t."""
        layer = self.layers[t]
        assert layer.cells is not None
        cell = layer.locate(state.astype(np.int64), self.project(spent))
        found = cell >= 0
        found[found] = layer.cells.rank(cell[found]) >= 0
        return found

    def unproject(self, kept: Ints) -> Ints:
        """(Q, M) whole units from (Q, D), for a space that keeps every constraint."""
        spent = np.zeros((len(kept), len(self.dims)), dtype=np.int64)
        for column, m in enumerate(self.dims):
            spent[:, m] = kept[:, column]
        return spent

    def project(self, spent: Ints) -> Ints:
        """The kept constraints of (Q, M) whole units."""
        return spent[:, list(self.dims)] if self.dims else np.zeros((len(spent), 1), dtype=np.int64)


def plan(game: MarkovGame, lattice: Lattice, *, clip: bool) -> Space:
    """Lay out the boxes. Cheap: linear in the game, whatever the budgets."""
    dims = _needed(game, lattice) if clip else list(range(len(lattice.units)))
    costs = [lattice.costs(layer.cost)[:, dims] for layer in game.layers]
    budget = lattice.budget[:, dims]
    if not dims:
        costs = [np.zeros((len(layer.prob), 1), dtype=np.int64) for layer in game.layers]
        budget = np.zeros((game.horizon, 1), dtype=np.int64)
    layers = _boxes(game, costs, budget, clip=clip)
    widths = sum((layer.size.sum(axis=0) for layer in layers[:-1]), np.zeros(budget.shape[1], dtype=np.int64))
    order = [*np.delete(np.arange(len(widths)), widths.argmax()).tolist(), int(widths.argmax())]
    reordered = [
        replace(x, lo=x.lo[:, order], size=x.size[:, order], least=x.least[:, order], most=x.most[:, order]) for x in layers
    ]
    space = Space(
        game,
        tuple(dims[k] for k in order) if dims else (),
        tuple(np.ascontiguousarray(c[:, order]) for c in costs),
        np.ascontiguousarray(budget[:, order]),
        tuple(numbered(x) for x in reordered),
        dense=False,
    )
    return replace(space, dense=_prefer_dense(space))


def _needed(game: MarkovGame, lattice: Lattice) -> list[int]:
    """The constraints that can bind and are not implied by another one (spec 9)."""
    codes = np.unique(np.concatenate([layer.cost for layer in game.layers]), axis=0)
    vectors = lattice.costs(codes)
    kept = [m for m in range(len(lattice.units)) if _can_bind(game, lattice, m)]
    for j in list(kept):
        for k in kept:
            implied = (vectors[:, j] <= vectors[:, k]).all() and (lattice.budget[:, j] >= lattice.budget[:, k]).all()
            if j != k and implied:
                kept.remove(j)
                break
    return kept


def _can_bind(game: MarkovGame, lattice: Lattice, m: int) -> bool:
    """Whether the largest single costs added up break the budget at some time."""
    units = lattice.cost_units[m]
    largest = [units[layer.cost[:, m]].max() for layer in game.layers]
    return bool((np.cumsum([largest[k] for k in game.layer_at]) > lattice.budget[:, m]).any())


def _boxes(game: MarkovGame, costs: list[Ints], budget: Ints, *, clip: bool) -> list[LayerSpace]:
    """Bounds forwards (what can have been spent) and backwards (what can still be afforded), and the boxes between them."""
    from acegames import kernels

    n, D = len(game.states), budget.shape[1]
    here = np.zeros(n, dtype=bool)
    here[[s for s, _ in game.initial]] = True
    low, high = np.zeros((n, D), dtype=np.int64), np.zeros((n, D), dtype=np.int64)
    forward = []
    for t in range(game.horizon):
        states = np.flatnonzero(here)
        forward.append((states, low[states], high[states]))
        table = game.layer(t)
        there, next_low, next_high = np.zeros(n, dtype=bool), np.empty((n, D), np.int64), np.empty((n, D), np.int64)
        kernels.forward_bounds(
            here, low, high, table.row_ptr, table.out_ptr, table.next_state, costs[game.layer_at[t]], there, next_low, next_high
        )
        here, low, high = there, next_low, next_high
    ends = np.flatnonzero(here)
    least, most = low[ends], np.minimum(high[ends], np.maximum(budget[-1], low[ends]))
    lo = np.full_like(least, EVERYTHING) if clip else least
    layers = [LayerSpace(ends, lo, np.maximum(most - lo, 0) + 1, *_no_cells(), least=least, most=most)]
    worst = best = np.full((n, D), -EVERYTHING)
    for t in reversed(range(game.horizon)):
        states, least, most = forward[t]
        table = game.layer(t)
        next_worst, next_best = worst, best
        worst, best = np.empty((n, D), dtype=np.int64), np.empty((n, D), dtype=np.int64)
        kernels.backward_bounds(
            states, table.row_ptr, table.out_ptr, table.next_state, costs[game.layer_at[t]], budget[t],
            next_worst, next_best, worst, best,
        )  # fmt: skip
        lo = np.maximum(-worst[states], least) if clip else least
        size = np.minimum(-best[states], np.maximum(most, lo)) - lo + 1
        kept = (size > 0).all(axis=1)
        layers.append(LayerSpace(states[kept], lo[kept], size[kept], *_no_cells(), least=least[kept], most=most[kept]))
    return layers[::-1]


def _no_cells() -> tuple[Ints, Ints]:
    return np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)


def numbered(layer: LayerSpace) -> LayerSpace:
    """Number the cells and the lines of a layer's boxes; TooLarge where 64 bits do not do."""
    if float(np.prod(layer.size.astype(np.float64), axis=1).sum()) >= 2.0**62:
        raise TooLarge(
            f"{np.prod(layer.size.astype(np.float64), axis=1).sum():.3g} different amounts can have been spent at one time, "
            "which cannot even be numbered in 64 bits; solve approximately, with costs rounded to a coarser unit"
        )
    cells = np.prod(layer.size, axis=1)
    lines = np.prod(layer.size[:, :-1], axis=1)
    return replace(
        layer,
        base=np.concatenate([[0], np.cumsum(cells)]).astype(np.int64),
        line=np.concatenate([[0], np.cumsum(lines)]).astype(np.int64),
        lo=np.ascontiguousarray(layer.lo),
        size=np.ascontiguousarray(layer.size),
    )


def _prefer_dense(space: Space) -> bool:
    """Whether boxes are worth holding cell by cell: few cells, or not many more than the pairs that can be reached at most."""
    if space.total <= DENSE_IF_BELOW:
        return True
    game, at_most, reachable = space.game, 0.0, float(len(space.game.initial))
    for t in range(game.horizon):
        reachable = min(reachable, space.layers[t].total)
        at_most += reachable
        reachable *= len(np.unique(np.column_stack([game.layer(t).next_state, space.cost(t)]), axis=0))
    return space.total <= DENSE_OCCUPANCY * at_most


def explore(space: Space) -> Space:
    """Find the cells that feasible play reaches. The space of an infeasible game comes back without any."""
    return _explore_dense(space) if space.dense else _explore_sparse(space)


def _tables(space: Space, t: int) -> tuple[Any, ...]:
    table = space.game.layer(t)
    return table.row_ptr, table.out_ptr, space.cost(t), table.next_state, space.budget[t]


def _roots(space: Space) -> Ints:
    """The cells of the initial states; -1 where one cannot be played safely."""
    states = np.array([s for s, _ in space.game.initial], dtype=np.int64)
    return space.layers[0].locate(states, np.zeros((len(states), space.budget.shape[1]), dtype=np.int64))


def _infeasible(space: Space) -> Space:
    return replace(space, layers=tuple(replace(x, cells=Cells.from_keys(x.base[:0])) for x in space.layers))


def _explore_dense(space: Space) -> Space:
    from acegames import kernels

    game, layers, n = space.game, list(space.layers), len(space.game.states)
    end = layers[-1]
    layers[-1] = replace(end, height=np.repeat(end.size[:, -1] - 1, np.diff(end.line)).astype(np.int32))
    for t in reversed(range(game.horizon)):
        here, after = layers[t], layers[t + 1]
        height = np.empty(int(here.line[-1]), dtype=np.int32)
        kernels.heights(
            here.states, here.lo, here.size, here.line, *_tables(space, t),
            after.slots(n), after.lo, after.size, after.line, after.height, height,
        )  # fmt: skip
        layers[t] = replace(here, height=height)
    roots = _roots(space)
    top = layers[0]
    slot = np.searchsorted(top.base, roots, side="right") - 1
    width = top.size[slot, -1] if len(top.states) else roots
    if (roots < 0).any() or ((roots - top.base[slot]) % width > top.height[top.line[slot] + (roots - top.base[slot]) // width]).any():
        return _infeasible(space)
    marks = np.zeros(top.total, dtype=np.uint8)
    marks[roots] = 1
    for t in range(game.horizon):
        here, after = layers[t], layers[t + 1]
        next_marks = np.zeros(after.total, dtype=np.uint8)
        kernels.reach(
            here.states, here.lo, here.size, here.base, here.line, marks, *_tables(space, t),
            after.slots(n), after.lo, after.size, after.base, after.line, after.height, next_marks,
        )  # fmt: skip
        layers[t] = replace(here, cells=Cells.from_marks(marks))
        marks = next_marks
    layers[-1] = replace(layers[-1], cells=Cells.from_marks(marks))
    return replace(space, layers=tuple(layers))


def index_table(keys: Ints) -> NDArray[np.int32]:
    """A hash table over the cells of a sparse layer."""
    from acegames import kernels

    table = np.empty(1 << max(4, int(2 * len(keys)).bit_length()), dtype=np.int32)
    kernels.build_index(keys, table)
    return table


def _explore_sparse(space: Space) -> Space:
    from acegames import kernels

    game, n = space.game, len(space.game.states)
    roots = _roots(space)
    if (roots < 0).any():
        return _infeasible(space)
    keys = [np.sort(roots)]
    for t in range(game.horizon):
        keys.append(_successors(space, t, keys[t]))

    def sweep(t: int, wanted: NDArray[np.bool_], next_true: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        here, after = space.layers[t], space.layers[t + 1]
        true, keep = np.empty(len(keys[t]), dtype=bool), np.zeros(len(keys[t + 1]), dtype=bool)
        kernels.sweep(
            keys[t], wanted, here.states, here.lo, here.size, here.base, *_tables(space, t), *after.boxes(n),
            keys[t + 1], index_table(keys[t + 1]), next_true, true, keep,
        )  # fmt: skip
        return true, keep

    true = [np.ones(len(keys[-1]), dtype=bool)]
    for t in reversed(range(game.horizon)):
        true.append(sweep(t, np.ones(len(keys[t]), dtype=bool), true[-1])[0])
    true.reverse()
    if not true[0].all():
        return _infeasible(space)
    keep, layers = true[0], []
    for t in range(game.horizon):
        keep_next = sweep(t, keep, true[t + 1])[1]
        layers.append(replace(space.layers[t], cells=Cells.from_keys(keys[t][keep])))
        keep = keep_next
    layers.append(replace(space.layers[-1], cells=Cells.from_keys(keys[-1][keep])))
    return replace(space, layers=tuple(layers))


def _successors(space: Space, t: int, keys: Ints) -> Ints:
    from acegames import kernels

    here, after, n = space.layers[t], space.layers[t + 1], len(space.game.states)
    capacity = 1 << max(10, int(4 * len(keys)).bit_length())
    while True:
        table = np.empty(capacity, dtype=np.int64)
        found = kernels.expand(
            keys, here.states, here.lo, here.size, here.base, *_tables(space, t), *after.boxes(n), table
        )
        if found >= 0:
            return np.sort(table[table >= 0])
        capacity *= 4
