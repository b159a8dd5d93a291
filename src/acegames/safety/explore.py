"""Which cells does feasible play reach? Two ways with one answer (spec 2).

*Dense*: backwards, a height map holds the largest feasible spending of the last constraint for each
line of cells (an action is feasible up to its own threshold); forwards, cells are marked through
feasible actions, one bit per cell. *Sparse*: the AND/OR graph over listed cells, which are found by
hashing; successors are recomputed and no edge is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from acegames.errors import TooLarge
from acegames.kernels.records import AllBoxes, Listed
from acegames.model.arrays import Bools, Floats, Ints, pointers
from acegames.safety.cells import RANK_BLOCK, Cells, LayerSpace
from acegames.safety.space import Space
from acegames.system.machine import available_memory
from acegames.system.threads import Team

SPARSE_BYTES = 40  # of keys, hash tables and marks, per listed cell
BATCH_CELLS = 20_000_000  # cells of the layers that one compiled call runs over
PIECE_CELLS = 1 << 14  # and, on several threads, of one thread's piece of a layer at least
PIECE_KEYS = 1 << 12  # of listed cells
SUCCESSOR_SETS = 4  # that threads make at once, because each may be as large as the next layer
ALL_LINES = 2**62

Bytes = NDArray[np.uint8]


def explore(space: Space, memory: int | None = None, team: Team | None = None) -> Space:
    """Find the cells that feasible play reaches. An infeasible game's space is returned unchanged.

    The answer does not depend on how many threads the team has.

    Raises:
        TooLarge: when that takes more than `memory` bytes, by default what is free.
    """
    allowed = available_memory() if memory is None else memory
    states = np.array([s for s, _ in space.game.initial], dtype=np.int64)
    top = space.layer(0)
    roots = top.locate(states, np.zeros((len(states), space.budget.shape[1]), dtype=np.int64), None)
    if (roots < 0).any():
        return space
    team = Team() if team is None else team
    return (
        _explore_dense(space, top, roots, allowed, team)
        if space.dense
        else _explore_sparse(space, roots, allowed, team)
    )


def _check_memory(needed: float, allowed: int, cells: int) -> None:
    if needed > allowed:
        raise TooLarge(
            f"finding the situations that safe play can reach takes {needed / 2**30:.3g} GiB for {cells:,} of them, "
            f"but only {allowed / 2**30:.3g} GiB can be used; coarser costs, fewer constraints or smaller budgets would help"
        )


def batches(totals: Ints, most: int | None = None) -> list[tuple[int, int]]:
    """Cut the layers into runs t0 .. t1-1 of bounded work, so that Ctrl-C works in between."""
    most, found, t0, held = BATCH_CELLS if most is None else most, [], 0, 0
    for t, cells in enumerate(totals.tolist()):
        if t > t0 and held + cells > most:
            found.append((t0, t))
            t0, held = t, 0
        held += cells
    return [*found, (t0, len(totals))] if len(totals) else []


def pieces(count: int, number: int) -> list[tuple[int, int]]:
    """Cut 0 .. count-1 into `number` runs of about the same length."""
    return [(count * k // number, count * (k + 1) // number) for k in range(number)]


def _explore_dense(space: Space, top: LayerSpace, roots: Ints, allowed: int, team: Team) -> Space:
    from acegames.kernels.boxes import heights_range, pack, reach_range

    H, totals = space.game.horizon, space.totals.tolist()
    widest = max(totals)
    needed = int(space.line_start[-1]) * 4 + sum(totals) / 8 + 2 * widest
    _check_memory(needed, allowed, space.total)
    height = np.empty(int(space.line_start[-1]), dtype=np.int32)
    end = space.layer(H)
    height[space.line_start[H] :] = (end.size[:, -1] - 1).repeat(end.line[1:] - end.line[:-1])
    boxes, steps = space.all_boxes(height), space.all_steps
    spare = int(allowed - needed) // (2 * widest)  # each thread has marks of its own
    threads = 1 + max(min(team.threads - 1, spare, widest // PIECE_CELLS), 0)
    runs = batches(space.totals[:-1], PIECE_CELLS if threads > 1 else None)
    shares = [_shares(space, t0, t1, threads) for t0, t1 in runs]
    for (t0, t1), lines in zip(reversed(runs), reversed(shares), strict=True):
        work = [(t0, t1, *run, boxes, steps) for run in lines]
        team.each(lambda piece: heights_range(*piece), work)
    box = top.base.searchsorted(roots, side="right") - 1
    line, place = np.divmod(roots - top.base[box], top.size[box, -1])
    if (place > height[top.line[box] + line]).any():
        return space
    marks = np.zeros(totals[0], dtype=np.uint8)
    marks[roots] = 1
    bit_start = pointers(-(-space.totals // RANK_BLOCK) * (RANK_BLOCK // 8))
    bits = np.zeros(int(bit_start[-1]), dtype=np.uint8)
    pack(marks, bits[: bit_start[1]])
    low, high = np.empty((2, H, len(space.game.players)))
    low[:], high[:] = np.inf, -np.inf
    reaching = _Reaching(space, team, boxes, threads) if threads > 1 else None
    for (t0, t1), lines in zip(runs, shares, strict=True):
        if len(lines) == 1 or reaching is None:
            marks = reach_range(t0, t1, boxes, steps, marks, bit_start, bits, space.tables.reward, low, high)
        else:
            own = bits[bit_start[t1] : bit_start[t1 + 1]]
            marks, low[t0], high[t0] = reaching.layer(t0, lines, marks, own)
    cells = Cells.split(bits.reshape(-1, RANK_BLOCK // 8), (bit_start // (RANK_BLOCK // 8)).tolist())
    return replace(space, height=height, cells=tuple(cells), rewards=(low + 0.0, high + 0.0))  # no negative zeros


def _shares(space: Space, t0: int, t1: int, threads: int) -> list[tuple[int, int]]:
    """The runs of lines that threads take of one layer; several small layers are one piece."""
    number = min(threads, int(space.totals[t0]) // PIECE_CELLS) if t1 == t0 + 1 else 1
    lines = int(space.line_start[t0 + 1] - space.line_start[t0])
    return pieces(lines, number) if number > 1 else [(0, ALL_LINES)]


class _Reaching:
    """Marks cells of large layers on several threads, each into marks of its own."""

    def __init__(self, space: Space, team: Team, boxes: AllBoxes, threads: int) -> None:
        self.space, self.team, self.boxes = space, team, boxes
        self.played = np.zeros(len(space.tables.reward), dtype=bool)
        # of two layers, because the marks of one are read while those of the next are written
        self.marks = np.empty((2, threads * int(space.totals.max())), dtype=np.uint8)

    def layer(self, t: int, lines: list[tuple[int, int]], marks: Bytes, bits: Bytes) -> tuple[Bytes, Floats, Floats]:
        """The marks of t+1, also as bits, and the least and largest rewards of what is played."""
        from acegames.kernels.boxes import join_marks, reach_lines

        space, total = self.space, int(self.space.totals[t + 1])
        found = self.marks[t % 2, : len(lines) * total].reshape(len(lines), total)
        low, high = np.empty((2, len(lines), len(space.game.players)))
        low[:], high[:] = np.inf, -np.inf

        def reach(k: int) -> None:
            to = (found[k], space.tables.reward, self.played, low[k], high[k])
            reach_lines(t, *lines[k], self.boxes, space.all_steps, marks, *to)

        self.team.each(reach, range(len(lines)))
        rows = space.steps(t).row_ptr
        self.played[rows[0] : rows[-1]] = False
        words = RANK_BLOCK // 8
        self.team.each(
            lambda run: join_marks(found, run[0] * RANK_BLOCK, bits[run[0] * words : run[1] * words]),
            pieces(len(bits) // words, len(lines)),
        )
        return found[0], low.min(axis=0), high.max(axis=0)


def listed(keys: Ints) -> Listed:
    """The cells of a sparse layer with a hash table over them."""
    from acegames.kernels.sparse import build_index

    table = np.empty(1 << max(4, int(2 * len(keys)).bit_length()), dtype=np.int32)
    build_index(keys, table)
    return Listed(keys, table)


def _explore_sparse(space: Space, roots: Ints, allowed: int, team: Team) -> Space:
    from acegames.kernels.sparse import sweep

    H, keys, number = space.game.horizon, [np.sort(roots)], 0
    for t in range(H):
        number += len(keys[t])
        _check_memory(SPARSE_BYTES * number, allowed, number)
        keys.append(_successors(space, t, keys[t], team))

    def swept(t: int, wanted: Bools, next_true: Bools, played: Bools) -> tuple[Bools, Bools]:
        true, keep = np.empty(len(keys[t]), dtype=bool), np.zeros(len(keys[t + 1]), dtype=bool)
        layer = (space.layers[t].boxes(), space.steps(t), space.following(t + 1), listed(keys[t + 1]))

        def run(piece: tuple[int, int]) -> None:  # pieces only ever set what they share
            own = slice(*piece)
            sweep(keys[t][own], wanted[own], *layer, next_true, true[own], keep, played)

        team.each(run, pieces(len(keys[t]), max(len(keys[t]) // PIECE_KEYS, 1)))
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


def _successors(space: Space, t: int, keys: Ints, team: Team) -> Ints:
    """The cells that safe rows lead to, in order."""
    number = max(min(team.threads, SUCCESSOR_SETS, len(keys) // PIECE_KEYS), 1)
    found = team.each(lambda run: _set_of_successors(space, t, keys[slice(*run)]), pieces(len(keys), number))
    if number == 1:
        return found[0]
    longest = max(found, key=len)
    edges = [int(longest[a]) for a, _ in pieces(len(longest), number)[1:]] if len(longest) else []
    parts = [np.split(x, np.searchsorted(x, edges)) for x in found]
    return np.concatenate(team.each(_merged, list(zip(*parts, strict=True))))


def _merged(parts: Sequence[Ints]) -> Ints:
    """The different ones in order; faster than `np.unique`."""
    keys = np.sort(np.concatenate(parts))
    return keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys


def _set_of_successors(space: Space, t: int, keys: Ints) -> Ints:
    from acegames.kernels.sparse import expand

    layer = (space.layers[t].boxes(), space.steps(t), space.following(t + 1))
    capacity = 1 << max(10, int(4 * len(keys)).bit_length())
    while True:
        table = np.empty(capacity, dtype=np.int64)
        found = expand(keys, *layer, table)
        if found >= 0:
            return np.sort(table[table >= 0])
        capacity *= 4
