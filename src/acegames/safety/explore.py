"""Which cells does feasible play reach? Two ways with one answer (spec 2).

*Dense*: backwards, a height map holds the largest feasible spending of the last constraint for each
line of cells (an action is feasible up to its own threshold); forwards, cells are marked through
feasible actions, one bit per cell. *Sparse*: the AND/OR graph over listed cells, which are found by
hashing; successors are recomputed and no edge is stored.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from acegames.errors import TooLarge
from acegames.kernels.records import Listed
from acegames.model.arrays import Bools, Ints, pointers
from acegames.safety.cells import RANK_BLOCK, Cells
from acegames.safety.space import Space
from acegames.system.machine import available_memory

SPARSE_BYTES = 40  # of keys, hash tables and marks, per listed cell
BATCH_CELLS = 20_000_000  # cells of the layers that one compiled call runs over


def explore(space: Space, memory: int | None = None) -> Space:
    """Find the cells that feasible play reaches. An infeasible game's space is returned unchanged.

    Raises:
        TooLarge: when that takes more than `memory` bytes, by default what is free.
    """
    allowed = available_memory() if memory is None else memory
    states = np.array([s for s, _ in space.game.initial], dtype=np.int64)
    roots = space.layers[0].locate(states, np.zeros((len(states), space.budget.shape[1]), dtype=np.int64), None)
    if (roots < 0).any():
        return space
    return _explore_dense(space, roots, allowed) if space.dense else _explore_sparse(space, roots, allowed)


def _check_memory(needed: float, allowed: int, cells: int) -> None:
    if needed > allowed:
        raise TooLarge(
            f"finding the situations that safe play can reach takes {needed / 2**30:.3g} GiB for {cells:,} of them, "
            f"but only {allowed / 2**30:.3g} GiB can be used; coarser costs, fewer constraints or smaller budgets would help"
        )


def batches(totals: Ints) -> list[tuple[int, int]]:
    """Cut the layers into runs t0 .. t1-1 of bounded work, so that Ctrl-C works in between."""
    found, t0 = [], 0
    for t in range(1, len(totals) + 1):
        if t == len(totals) or totals[t0 : t + 1].sum() > BATCH_CELLS:
            found.append((t0, t))
            t0 = t
    return found


def _explore_dense(space: Space, roots: Ints, allowed: int) -> Space:
    from acegames.kernels.boxes import heights_range, pack, reach_range

    H = space.game.horizon
    needed = int(space.line_start[-1]) * 4 + int(space.totals.sum()) / 8 + 2 * int(space.totals.max())
    _check_memory(needed, allowed, space.total)
    height = np.empty(int(space.line_start[-1]), dtype=np.int32)
    end = space.layers[-1]
    height[space.line_start[H] :] = np.repeat(end.size[:, -1] - 1, np.diff(end.line))
    boxes, steps, runs = space.all_boxes(height), space.all_steps, batches(space.totals[:-1])
    for t0, t1 in reversed(runs):
        heights_range(t0, t1, boxes, steps)
    top = space.layers[0]
    box = np.searchsorted(top.base, roots, side="right") - 1
    line, place = np.divmod(roots - top.base[box], top.size[box, -1])
    if (place > height[top.line[box] + line]).any():
        return space
    marks = np.zeros(int(space.totals[0]), dtype=np.uint8)
    marks[roots] = 1
    bit_start = pointers(-(-space.totals // RANK_BLOCK) * (RANK_BLOCK // 8))
    bits = np.zeros(int(bit_start[-1]), dtype=np.uint8)
    bounds = (H, len(space.game.players))
    low, high = np.full(bounds, np.inf), np.full(bounds, -np.inf)
    for t0, t1 in runs:
        marks = reach_range(t0, t1, boxes, steps, marks, bit_start, bits, space.tables.reward, low, high)
    pack(marks, bits[bit_start[H] :])
    cells = Cells.split(bits.reshape(-1, RANK_BLOCK // 8), (bit_start // (RANK_BLOCK // 8)).tolist())
    return replace(space, height=height, cells=tuple(cells), rewards=(low, high))


def listed(keys: Ints) -> Listed:
    """The cells of a sparse layer with a hash table over them."""
    from acegames.kernels.sparse import build_index

    table = np.empty(1 << max(4, int(2 * len(keys)).bit_length()), dtype=np.int32)
    build_index(keys, table)
    return Listed(keys, table)


def _explore_sparse(space: Space, roots: Ints, allowed: int) -> Space:
    from acegames.kernels.sparse import sweep

    H, keys, number = space.game.horizon, [np.sort(roots)], 0
    for t in range(H):
        number += len(keys[t])
        _check_memory(SPARSE_BYTES * number, allowed, number)
        keys.append(_successors(space, t, keys[t]))

    def swept(t: int, wanted: Bools, next_true: Bools, played: Bools) -> tuple[Bools, Bools]:
        true, keep = np.empty(len(keys[t]), dtype=bool), np.zeros(len(keys[t + 1]), dtype=bool)
        layer = (space.layers[t].boxes(), space.steps(t), space.following(t + 1), listed(keys[t + 1]))
        sweep(keys[t], wanted, *layer, next_true, true, keep, played)
        return true, keep

    true, rows = [np.ones(len(keys[-1]), dtype=bool)], np.zeros(len(space.tables.reward), dtype=bool)
    for t in reversed(range(H)):
        true.append(swept(t, np.ones(len(keys[t]), dtype=bool), true[-1], rows)[0])
    true.reverse()
    if not true[0].all():
        return space
    keep, cells = true[0], []
    low, high = np.empty((2, H, len(space.game.players)))
    for t in range(H):
        rows[:] = False
        keep_next = swept(t, keep, true[t + 1], rows)[1]
        low[t], high[t] = (bound(space.tables.reward[rows], axis=0) for bound in (np.min, np.max))
        cells.append(Cells.from_keys(keys[t][keep]))
        keep = keep_next
    cells.append(Cells.from_keys(keys[-1][keep]))
    return replace(space, cells=tuple(cells), rewards=(low, high))


def _successors(space: Space, t: int, keys: Ints) -> Ints:
    from acegames.kernels.sparse import expand

    layer = (space.layers[t].boxes(), space.steps(t), space.following(t + 1))
    capacity = 1 << max(10, int(4 * len(keys)).bit_length())
    while True:
        table = np.empty(capacity, dtype=np.int64)
        found = expand(keys, *layer, table)
        if found >= 0:
            return np.sort(table[table >= 0])
        capacity *= 4
