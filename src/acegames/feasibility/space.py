"""The pairs (t, state, spent) of a game as cells of boxes, and which of them feasible play reaches. The fast path of spec 2.

Each layer gives every state that can occur a *box* of cells, one per vector of spent units between what can have been spent on
arrival and what can still be afforded. With `clip`, spending so little that a budget cannot bind any more counts as the largest
such spending (spec 9, lossless), and constraints that never bind or are implied by another are left out.

*Dense*: feasibility by height map, reachability by bytes, line by line; kept as one bit per cell. *Sparse*: where the boxes do not fit or
would stay nearly empty, the reached cells are listed in order and found by hashing. Both give the same pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import TooLarge
from acegames.feasibility.lattice import Lattice
from acegames.model.game import MarkovGame

Ints = NDArray[np.int64]

DENSE_IF_BELOW = 2_000_000  # cells in all: small enough that nothing is gained by listing them
DENSE_OCCUPANCY = 50  # else boxes may have this many cells for each pair that can be reached at most
BATCH_CELLS = 20_000_000  # one compiled call runs over layers of about so many cells
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
class Tables:
    """The game's distinct layers end to end, so that one compiled call can run over many times. Rows and outcomes count through."""

    row_ptr: Ints  # (L, S+1)
    out_ptr: Ints  # (R+1,)
    action: NDArray[np.int32]  # (R, N)
    reward: NDArray[np.float64]  # (R, N)
    prob: NDArray[np.float64]  # (K,)
    next_state: NDArray[np.int32]  # (K,)
    cost: Ints  # (K, D) whole units of the constraints that are kept
    layer_at: Ints  # (H,)

    @staticmethod
    def of(game: MarkovGame, costs: Ints) -> Tables:
        """Put the layers end to end; a stationary game's arrays are taken as they are."""
        rows = np.cumsum([0, *(len(x.reward) for x in game.layers)])
        outs = np.cumsum([0, *(len(x.prob) for x in game.layers)])
        return Tables(
            np.stack([x.row_ptr + r for x, r in zip(game.layers, rows, strict=False)]),
            _joined([x.out_ptr[:-1] + o for x, o in zip(game.layers, outs, strict=False)] + [outs[-1:]]),
            _joined([x.action for x in game.layers]),
            _joined([x.reward for x in game.layers]),
            _joined([x.prob for x in game.layers]),
            _joined([x.next_state for x in game.layers]),
            costs,
            np.array(game.layer_at, dtype=np.int64),
        )

    @property
    def widest(self) -> tuple[int, int]:
        """Most rows of a state, and most outcomes of a state's rows together."""
        return int(np.diff(self.row_ptr, axis=1).max()), int(np.diff(self.out_ptr[self.row_ptr], axis=1).max())

    def stepping(self, t: int) -> tuple[Any, ...]:
        """What kernels need to step through time t: row_ptr, out_ptr, cost, next_state."""
        return self.row_ptr[self.layer_at[t]], self.out_ptr, self.cost, self.next_state


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class Space:
    """All layers t = 0 .. H end to end. Boxes of time t are start[t] : start[t+1]; base and line have one more entry per layer."""

    game: MarkovGame
    dims: tuple[int, ...]  # the constraints that are kept; none leaves one column of zeros
    tables: Tables
    budget: Ints  # (H, D)
    start: Ints  # (H+2,)
    states: Ints
    lo: Ints
    size: Ints
    least: Ints
    most: Ints
    base: Ints
    line: Ints
    dense: bool
    height: NDArray[np.int32] | None = None
    cells: tuple[Cells, ...] = ()  # of each layer, once explored; none where infeasible

    @cached_property
    def layers(self) -> tuple[LayerSpace, ...]:
        """Views of the layers t = 0 .. H."""
        return tuple(self._layer(t) for t in range(self.game.horizon + 1))

    def _layer(self, t: int) -> LayerSpace:
        a, b = int(self.start[t]), int(self.start[t + 1])
        height = None if self.height is None else self.height[self.line_start[t] : self.line_start[t + 1]]
        return LayerSpace(
            self.states[a:b], self.lo[a:b], self.size[a:b], self.base[a + t : b + t + 1], self.line[a + t : b + t + 1],
            self.least[a:b], self.most[a:b], height, self.cells[t] if self.cells else None,
        )  # fmt: skip

    @cached_property
    def totals(self) -> Ints:
        """Cells of each layer, (H+1,)."""
        return self.base[self.start[1:] + np.arange(self.game.horizon + 1)]

    @cached_property
    def line_start(self) -> Ints:
        """First line of each layer when counted through, (H+2,)."""
        lines = self.line[self.start[1:] + np.arange(self.game.horizon + 1)]
        return np.concatenate([[0], np.cumsum(lines)])

    @property
    def explored(self) -> bool:
        """Whether `explore` has found the space feasible."""
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

    def contains(self, t: int, state: NDArray[Any], spent: Ints) -> NDArray[np.bool_]:
        """Whether each (state, spent (Q, M) whole units) is reached at t."""
        if not self.feasible:
            return np.zeros(len(state), dtype=bool)
        cell = self.layers[t].locate(state.astype(np.int64), self.project(spent))
        found = cell >= 0
        found[found] = self.cells[t].rank(cell[found]) >= 0
        return found

    def project(self, spent: Ints) -> Ints:
        """The kept constraints of (Q, M) whole units."""
        return spent[:, list(self.dims)] if self.dims else np.zeros((len(spent), 1), dtype=np.int64)

    def unproject(self, kept: Ints) -> Ints:
        """(Q, M) whole units from (Q, D), for a space that keeps every constraint."""
        spent = np.zeros((len(kept), len(self.dims)), dtype=np.int64)
        for column, m in enumerate(self.dims):
            spent[:, m] = kept[:, column]
        return spent


def plan(game: MarkovGame, lattice: Lattice, *, clip: bool) -> Space:
    """Lay out the boxes. Cheap: linear in the game, whatever the budgets."""
    from acegames import kernels

    codes = _joined([layer.cost for layer in game.layers])
    costs = lattice.costs(codes)
    dims = _needed(game, lattice, costs) if clip else list(range(len(lattice.units)))
    costs, budget = costs[:, dims], lattice.budget[:, dims]
    if not dims:
        costs, budget = np.zeros((len(codes), 1), dtype=np.int64), np.zeros((game.horizon, 1), dtype=np.int64)
    tables = Tables.of(game, np.ascontiguousarray(costs))
    initial = np.array([s for s, _ in game.initial], dtype=np.int64)
    step = (tables.layer_at, tables.row_ptr, tables.out_ptr, tables.next_state)
    start = np.concatenate([[0], np.cumsum(kernels.forward_count(initial, *step))])
    states, shape = np.empty(int(start[-1]), np.int64), (int(start[-1]), budget.shape[1])
    least, most, lo, size = (np.empty(shape, np.int64) for _ in range(4))
    kernels.forward_bounds(initial, *step, tables.cost, start, states, least, most)
    kernels.backward_boxes(*step, tables.cost, budget, start, states, least, most, clip, lo, size)
    kept = (size > 0).all(axis=1)
    start = np.concatenate([[0], np.cumsum(kept)])[start]
    order = _longest_last(size)
    boxes = [np.ascontiguousarray(x[kept][:, order]) for x in (lo, size, least, most)]
    base, line = _number(start, boxes[1])
    space = Space(
        game,
        tuple(dims[k] for k in order) if dims else (),
        replace(tables, cost=np.ascontiguousarray(tables.cost[:, order])),
        np.ascontiguousarray(budget[:, order]),
        start,
        states[kept],
        *boxes,
        base,
        line,
        dense=True,
    )
    return replace(space, dense=_prefer_dense(space))


def _longest_last(size: Ints) -> list[int]:
    """Order of the constraints: the one with the longest boxes last, because lines run along it."""
    longest = int(size.sum(axis=0).argmax())
    return [*(k for k in range(size.shape[1]) if k != longest), longest]


def _number(start: Ints, size: Ints) -> tuple[Ints, Ints]:
    from acegames import kernels

    cells = np.prod(size.astype(np.float64), axis=1).sum()
    if cells >= 2.0**62:
        raise TooLarge(
            f"{cells:.3g} different amounts can have been spent, which cannot even be numbered in 64 bits; solve "
            "approximately, with costs rounded to a coarser unit"
        )
    base, line = (np.empty(len(size) + len(start) - 1, dtype=np.int64) for _ in range(2))
    kernels.number_boxes(start, size, base, line)
    return base, line


def numbered(layer: LayerSpace) -> LayerSpace:
    """Number the cells and the lines of one layer's boxes; TooLarge where 64 bits do not do."""
    base, line = _number(np.array([0, len(layer.states)]), layer.size)
    return replace(layer, base=base, line=line)


def _needed(game: MarkovGame, lattice: Lattice, costs: Ints) -> list[int]:
    """The constraints that can bind and are not implied by another one (spec 9)."""
    kept = [m for m in range(len(lattice.units)) if _can_bind(game, lattice, m)]
    for j in list(kept):
        for k in kept:
            implied = (lattice.budget[:, j] >= lattice.budget[:, k]).all() and (costs[:, j] <= costs[:, k]).all()
            if j != k and implied:
                kept.remove(j)
                break
    return kept


def _can_bind(game: MarkovGame, lattice: Lattice, m: int) -> bool:
    """Whether the largest single costs added up break the budget at some time."""
    units = lattice.cost_units[m]
    largest = np.array([units[layer.cost[:, m].max()] for layer in game.layers])
    return bool((np.cumsum(largest[list(game.layer_at)]) > lattice.budget[:, m]).any())


def _prefer_dense(space: Space) -> bool:
    """Whether boxes are worth holding cell by cell: few cells, or not many more than the pairs that can be reached at most."""
    if space.total <= DENSE_IF_BELOW:
        return True
    game, tables, at_most, reachable = space.game, space.tables, 0.0, float(len(space.game.initial))
    outs = tables.out_ptr[tables.row_ptr[:, [0, -1]]]
    ways = [len(np.unique(np.column_stack([tables.next_state[a:b], tables.cost[a:b]]), axis=0)) for a, b in outs.tolist()]
    for t in range(game.horizon):
        reachable = min(reachable, float(space.totals[t]))
        at_most += reachable
        reachable *= ways[game.layer_at[t]]
    return space.total <= DENSE_OCCUPANCY * at_most


def explore(space: Space) -> Space:
    """Find the cells that feasible play reaches. The space of an infeasible game comes back as it was."""
    return _explore_dense(space) if space.dense else _explore_sparse(space)


def _roots(space: Space) -> Ints:
    """The cells of the initial states; -1 where one cannot be played safely."""
    states = np.array([s for s, _ in space.game.initial], dtype=np.int64)
    return space.layers[0].locate(states, np.zeros((len(states), space.budget.shape[1]), dtype=np.int64))


def batches(totals: Ints) -> list[tuple[int, int]]:
    """Cut the layers into runs t0 .. t1-1 of bounded work, so that an interrupt is answered in between."""
    found, t0 = [], 0
    for t in range(1, len(totals) + 1):
        if t == len(totals) or totals[t0 : t + 1].sum() > BATCH_CELLS:
            found.append((t0, t))
            t0 = t
    return found


def _explore_dense(space: Space) -> Space:
    from acegames import kernels

    H, tables = space.game.horizon, space.tables
    height = np.empty(int(space.line_start[-1]), dtype=np.int32)
    end = space.layers[-1]
    height[space.line_start[H] :] = np.repeat(end.size[:, -1] - 1, np.diff(end.line))
    step = (tables.layer_at, tables.row_ptr, tables.out_ptr, tables.cost, tables.next_state, space.budget, space.line_start)
    runs = batches(space.totals[:-1])
    for t0, t1 in reversed(runs):
        kernels.heights_range(t0, t1, space.start, space.states, space.lo, space.size, space.line, *step, height)
    if not _roots_feasible(space, height):
        return space
    marks = np.zeros(int(space.totals[0]), dtype=np.uint8)
    marks[_roots(space)] = 1
    bit_start = np.concatenate([[0], np.cumsum(-(-space.totals // RANK_BLOCK) * (RANK_BLOCK // 8))])
    bits = np.zeros(int(bit_start[-1]), dtype=np.uint8)
    for t0, t1 in runs:
        marks = kernels.reach_range(
            t0, t1, space.start, space.states, space.lo, space.size, space.base, space.line, *step, height,
            marks, bit_start, bits,
        )  # fmt: skip
    kernels.pack(marks, bits[bit_start[H] :])
    blocks = bits.reshape(-1, RANK_BLOCK // 8)
    cells = tuple(
        Cells.from_bits(blocks[a:b]) for a, b in zip(bit_start[:-1] // 64, bit_start[1:] // 64, strict=True)
    )
    return replace(space, height=height, cells=cells)


def _roots_feasible(space: Space, height: NDArray[np.int32]) -> bool:
    roots, top = _roots(space), space.layers[0]
    if (roots < 0).any():
        return False
    box = np.searchsorted(top.base, roots, side="right") - 1
    line, place = np.divmod(roots - top.base[box], top.size[box, -1])
    return bool((place <= height[top.line[box] + line]).all())


def index_table(keys: Ints) -> NDArray[np.int32]:
    """A hash table over the cells of a sparse layer."""
    from acegames import kernels

    table = np.empty(1 << max(4, int(2 * len(keys)).bit_length()), dtype=np.int32)
    kernels.build_index(keys, table)
    return table


def _explore_sparse(space: Space) -> Space:
    from acegames import kernels

    H, n = space.game.horizon, len(space.game.states)
    roots = _roots(space)
    if (roots < 0).any():
        return space
    keys = [np.sort(roots)]
    for t in range(H):
        keys.append(_successors(space, t, keys[t]))

    def sweep(t: int, wanted: NDArray[np.bool_], next_true: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        here, after = space.layers[t], space.layers[t + 1]
        true, keep = np.empty(len(keys[t]), dtype=bool), np.zeros(len(keys[t + 1]), dtype=bool)
        kernels.sweep(
            keys[t], wanted, here.states, here.lo, here.size, here.base, *space.tables.stepping(t), space.budget[t],
            *after.boxes(n), keys[t + 1], index_table(keys[t + 1]), next_true, true, keep,
        )  # fmt: skip
        return true, keep

    true = [np.ones(len(keys[-1]), dtype=bool)]
    for t in reversed(range(H)):
        true.append(sweep(t, np.ones(len(keys[t]), dtype=bool), true[-1])[0])
    true.reverse()
    if not true[0].all():
        return space
    keep, cells = true[0], []
    for t in range(H):
        keep_next = sweep(t, keep, true[t + 1])[1]
        cells.append(Cells.from_keys(keys[t][keep]))
        keep = keep_next
    cells.append(Cells.from_keys(keys[-1][keep]))
    return replace(space, cells=tuple(cells))


def _successors(space: Space, t: int, keys: Ints) -> Ints:
    from acegames import kernels

    here, after, n = space.layers[t], space.layers[t + 1], len(space.game.states)
    capacity = 1 << max(10, int(4 * len(keys)).bit_length())
    while True:
        table = np.empty(capacity, dtype=np.int64)
        found = kernels.expand(
            keys, here.states, here.lo, here.size, here.base, *space.tables.stepping(t), space.budget[t],
            *after.boxes(n), table,
        )  # fmt: skip
        if found >= 0:
            return np.sort(table[table >= 0])
        capacity *= 4
