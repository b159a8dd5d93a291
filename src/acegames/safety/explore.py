"""Which cells does feasible play reach? Two ways with one answer (spec 2).

*Dense*: backwards, a height map holds the largest feasible total of the last constraint for each
line of cells (an action is feasible up to its own threshold); forwards, cells are marked through
feasible actions, one bit per cell. *Sparse*: the AND/OR graph over listed cells, which are found by
hashing; successors are recomputed and no edge is stored.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import TooLarge
from acegames.kernels.records import AllBoxes, Listed
from acegames.model.arrays import Bools, Bytes, Floats, Ints, pointers
from acegames.safety.cells import RANK_BLOCK, Cells
from acegames.safety.space import DENSE_OCCUPANCY, Space
from acegames.system.machine import available_memory, bytes_said
from acegames.system.tasks import Team

SPARSE_BYTES = 56  # of keys, hash tables and marks, per listed cell
BATCH_CELLS = 20_000_000  # cells of the layers that one compiled call runs over
PIECE_CELLS = 1 << 14  # and, on several threads, of one thread's piece of a layer at least
TURNS = 8  # in which a thread takes its piece, about: how long a line takes differs
PIECE_KEYS = 1 << 12  # of listed cells
SUCCESSOR_SETS = 4  # that threads make at once, because each may be as large as the next layer
ALL_LINES = 2**62
FEW_CELLS = 10_000  # after which boxes that are filled are not given up to lists
DENSE_FROM_THE_START = 8  # cells of all boxes so far, per listed one, at which they count as filled
QUICK_LISTED = 5e7  # outcomes of listed cells, and
QUICK_HELD = 3e9  # of cells of boxes, that are looked at in about a second
FEWEST_DRAWN = 256  # cells of a layer where numbers are estimated by sampling


def explore(
    space: Space,
    memory: int | None = None,
    team: Team | None = None,
    *,
    on_disk: bool = False,
) -> Space:
    """Find the cells that feasible play reaches. An infeasible game's space is returned unchanged.

    The answer does not depend on how many threads the team has.
    With `on_disk` the cells of all layers lie in the folder for temporary files where memory is
    short.

    Raises:
        TooLarge: when that takes more than `memory` bytes, by default what is free.
    """
    allowed = available_memory() if memory is None else memory
    roots = space.layer(0).locate(*space.roots, None)
    if (roots < 0).any():
        return space
    team, dense = Team() if team is None else team, space.dense
    if dense is None:
        try:
            enough = partial(crowded, np.cumsum(space.totals))
            return _explore_sparse(space, roots, allowed, team, enough, on_disk=on_disk)
        except _StopListing:
            dense = dense_bytes(space, on_disk=on_disk) <= allowed
    if dense:
        return explore_dense(space, roots, allowed, team, on_disk=on_disk)
    return _explore_sparse(space, roots, allowed, team, on_disk=on_disk)


@dataclass(frozen=True, eq=False)
class PairCounts:
    """How many cells are reached."""

    space: Space  # explored where all could be counted; where not, with the choice of boxes or lists
    reached: Floats  # (H+1,) cells of each layer; zeros if the game is infeasible
    seen: Space  # explored, as many first layers as are quick: the space itself where that is all of them


def count(space: Space, team: Team | None = None) -> PairCounts:
    """Explore a space where that is quick.

    Where it is not, the numbers of the first layers are known and the others estimated by sampling.
    """
    roots, outs = space.layer(0).locate(*space.roots, None), space.tables.widest[1]
    cells, dense, first = np.cumsum(space.totals), space.dense, [np.sort(roots)]
    team = Team() if team is None else team
    if (roots < 0).any():
        return as_counted(space)

    def enough(numbers: Sequence[int]) -> bool:
        full = space.dense is None and crowded(cells, numbers)
        return full or sum(numbers) * outs > QUICK_LISTED / 2

    if not dense:
        try:
            return as_counted(_explore_sparse(space, roots, available_memory(), team, enough))
        except _StopListing as far:
            first = far.keys
            dense = space.dense is None and crowded(cells, list(map(len, first)))
    boxes = space.dense is not False and dense_bytes(space) <= available_memory()
    if boxes and cells[-1] * outs <= QUICK_HELD:
        return as_counted(explore_dense(space, roots, available_memory(), team))
    reached = sampled(space, first)
    dense = dense or (boxes and reached.sum() * DENSE_OCCUPANCY > cells[-1])
    work, most = (cells, QUICK_HELD / 4) if dense else (np.cumsum(reached), QUICK_LISTED / 8)
    part = replace(space, dense=dense).until(max(int(np.searchsorted(work * outs, most)) - 1, 1))
    seen = (explore_dense if dense else _explore_sparse)(part, roots, available_memory(), team)
    if dense:  # what is drawn misses the corners of boxes
        numbers = np.array([x.number for x in seen.cells], dtype=np.float64)
        share = numbers.sum() / cells[len(numbers) - 1]
        reached = np.maximum(reached, share * space.totals)
        reached[: len(numbers)] = numbers
    return PairCounts(replace(space, dense=dense), reached, seen)


def as_counted(space: Space) -> PairCounts:
    """Count the cells of a space that is explored, or infeasible."""
    numbers = [x.number for x in space.cells] or np.zeros(len(space.totals))
    return PairCounts(space, np.array(numbers, dtype=np.float64), space)


def sampled(space: Space, first: Sequence[Ints] | None = None, outcomes: float | None = None) -> Floats:
    """Estimate the numbers of cells of layers by sampling; those of the first layers are known.

    About `outcomes` outcomes are looked at. Of each layer some cells are drawn, in two halves. If n
    cells follow one half, m the other and k both, then about n m / k follow the layer (capture and
    recapture); and at most as many per cell of the layer as per drawn one. Cells from which no play
    is safe to the end count too.
    """
    H, rng = space.game.horizon, np.random.default_rng(0)
    first = [space.layer(0).locate(*space.roots, None)] if first is None else first
    numbers, keys = [float(len(x)) for x in first], first[-1]
    most_drawn = (QUICK_LISTED / 2 if outcomes is None else outcomes) / space.tables.widest[1]
    drawn = int(max(most_drawn / max(H + 1 - len(first), 1), FEWEST_DRAWN))
    for t in range(len(first) - 1, H):
        keys = rng.permutation(keys)[:drawn]
        halves = [_set_of_successors(space, t, np.sort(x), available_memory()) for x in (keys[::2], keys[1::2])]
        n, m = map(len, halves)
        following, whole = merged(halves), len(keys) == numbers[t]
        both = n + m - len(following)
        most = min(len(following) * numbers[t] / max(len(keys), 1), space.totals[t + 1])
        numbers.append(
            float(len(following)) if whole else max(min((n + 1) * (m + 1) / (both + 1), most), len(following))
        )
        keys = following
    return np.array(numbers)


class _StopListing(Exception):
    """More cells are reached than shall be listed; `keys` are those of each time so far."""

    def __init__(self, keys: list[Ints]) -> None:
        self.keys = keys


def crowded(cells: Ints, numbers: Sequence[int]) -> bool:
    """Return whether boxes hold the reached cells better than lists.

    `cells` are those of all boxes up to each time.
    """
    listed = sum(numbers)
    filled = listed > FEW_CELLS and listed * DENSE_FROM_THE_START > cells[len(numbers) - 1]
    return bool(filled or listed * DENSE_OCCUPANCY > cells[-1])


def check_memory(needed: float, allowed: int, cells: int) -> None:
    """Raise TooLarge where exploring takes more bytes than can be used."""
    if needed > allowed:
        raise TooLarge(
            f"finding the situations reachable under feasible play takes {bytes_said(needed)} for {cells:,} of them, "
            f"but only {bytes_said(allowed)} can be used; coarser costs, fewer constraints or smaller budgets would help"
        )


def batches(totals: Ints, most: int | None = None) -> list[tuple[int, int]]:
    """Cut the layers into runs t0 .. t1-1 of bounded work, so that Ctrl-C works in between."""
    most, runs, t0, held = BATCH_CELLS if most is None else most, [], 0, 0
    for t, cells in enumerate(totals.tolist()):
        if t > t0 and held + cells > most:
            runs.append((t0, t))
            t0, held = t, 0
        held += cells
    return [*runs, (t0, len(totals))] if len(totals) else []


def pieces(count: int, number: int) -> list[tuple[int, int]]:
    """Cut 0 .. count-1 into `number` runs of about the same length."""
    return [(count * k // number, count * (k + 1) // number) for k in range(number)]


def dense_bytes(space: Space, *, on_disk: bool = False) -> float:
    """Return the bytes of heights, of the marks of two layers, and of one bit per cell, unless that
    is on disk.
    """
    bits = 0.0 if on_disk else int(space.totals.sum()) / 8
    return int(space.line_start[-1]) * 4 + 2 * int(space.totals.max()) + bits


def explore_dense(space: Space, roots: Ints, allowed: int, team: Team, *, on_disk: bool = False) -> Space:
    """Explore boxes whose cells are all held: heights backwards, then marks forwards."""
    from acegames.kernels.boxes import heights_range, pack, reach_range

    H, widest = space.game.horizon, int(space.totals.max())
    on_disk = on_disk and dense_bytes(space) > allowed
    needed = dense_bytes(space, on_disk=on_disk)
    check_memory(needed, allowed, space.total)
    height, end = np.empty(int(space.line_start[-1]), dtype=np.int32), space.layer(H)
    height[space.line_start[H] :] = (end.size[:, -1] - 1).repeat(end.line[1:] - end.line[:-1])
    boxes, steps = space.all_boxes(height), space.all_steps
    spare = int(allowed - needed) // (2 * widest)  # each thread has marks of its own
    threads = 1 + max(min(team.threads - 1, spare, widest // PIECE_CELLS), 0)
    runs = batches(space.totals[:-1], PIECE_CELLS if threads > 1 else None)
    shares = [_shares(space, t0, t1, threads) for t0, t1 in runs]
    for (t0, t1), lines in zip(reversed(runs), reversed(shares), strict=True):
        work = [(t0, t1, *run, boxes, steps) for run in lines]
        team.each(lambda piece: heights_range(*piece), work)
    if not _are_feasible(space, roots, height):
        return replace(space, dense=True)
    marks = np.zeros(int(space.totals[0]), dtype=np.uint8)
    marks[roots] = 1
    bit_start = bit_starts(space)
    bits = (_zeros_on_disk if on_disk else np.zeros)(int(bit_start[-1]), np.dtype(np.uint8))
    pack(marks, bits[: bit_start[1]])
    row_start = row_starts(space)
    rows = np.zeros(int(row_start[-1]), dtype=np.uint8)
    reaching = _ThreadedReach(space, team, boxes, threads) if threads > 1 else None
    for (t0, t1), lines in zip(runs, shares, strict=True):
        if len(lines) == 1 or reaching is None:
            marks = reach_range(t0, t1, boxes, steps, marks, bit_start, bits, row_start, rows)
        else:
            own = bits[bit_start[t1] : bit_start[t1 + 1]]
            marks = reaching.layer(t0, lines, marks, own, rows[row_start[t0] : row_start[t1]])
    starts = (bit_start // (RANK_BLOCK // 8)).tolist()
    cells = Cells.split(bits.reshape(-1, RANK_BLOCK // 8), starts)
    played = tuple(np.split(rows, row_start[1:-1]))
    return replace(space, dense=True, height=height, cells=tuple(cells), played=played)


def _are_feasible(space: Space, roots: Ints, height: NDArray[np.int32]) -> bool:
    """Return whether play is feasible from all roots.

    `height` begins with the heights of the first layer.
    """
    top = space.layer(0)
    box = top.base.searchsorted(roots, side="right") - 1
    line, place = np.divmod(roots - top.base[box], top.size[box, -1])
    return not (place > height[top.line[box] + line]).any()


def bit_starts(space: Space) -> Ints:
    """Return the byte at which the bits of each layer begin."""
    return pointers(-(-space.totals // RANK_BLOCK) * (RANK_BLOCK // 8))


def row_starts(space: Space) -> Ints:
    """Return the byte at which the bits of the rows of each time begin, (H+1,).

    Tables may have more times than a space that was cut short.
    """
    tables = space.tables
    rows = np.diff(tables.row_ptr[:, [0, -1]], axis=1)[tables.layer_at[: space.game.horizon], 0]
    return pointers(-(-rows // 8))


def _shares(space: Space, t0: int, t1: int, threads: int) -> list[tuple[int, int]]:
    """Return the runs of lines that threads take of one layer; small layers are one piece."""
    number = min(threads, int(space.totals[t0]) // PIECE_CELLS) if t1 == t0 + 1 else 1
    lines = int(space.line_start[t0 + 1] - space.line_start[t0])
    return pieces(lines, number) if number > 1 else [(0, ALL_LINES)]


class _ThreadedReach:
    """Marks cells of large layers on several threads, each into marks of its own."""

    def __init__(self, space: Space, team: Team, boxes: AllBoxes, threads: int) -> None:
        self.space, self.team, self.boxes = space, team, boxes
        self.played = np.zeros(len(space.tables.reward), dtype=np.uint8)
        # of two layers, because the marks of one are read while those of the next are written
        self.marks = np.empty((2, threads * int(space.totals.max())), dtype=np.uint8)

    def layer(self, t: int, lines: list[tuple[int, int]], marks: Bytes, bits: Bytes, rows: Bytes) -> Bytes:
        """Mark the cells of t+1 that play reaches; fill their bits, and those of rows at t."""
        from acegames.kernels.boxes import join_marks, pack, reach_lines

        space, total = self.space, int(self.space.totals[t + 1])
        own_marks = self.marks[t % 2, : len(lines) * total].reshape(len(lines), total)
        taken, run = np.zeros(1, dtype=np.int64), max(lines[0][1] // TURNS, 1)

        def reach(k: int) -> None:
            reach_lines(t, taken, run, self.boxes, space.all_steps, marks, own_marks[k], self.played)

        self.team.each(reach, range(len(lines)))
        row_ptr = space.steps(t).row_ptr
        played = self.played[row_ptr[0] : row_ptr[-1]]
        pack(played, rows)
        played[:] = 0
        words = RANK_BLOCK // 8
        self.team.each(
            lambda run: join_marks(own_marks, run[0] * RANK_BLOCK, bits[run[0] * words : run[1] * words]),
            pieces(len(bits) // words, len(lines)),
        )
        joined: Bytes = own_marks[0]
        return joined


def listed(keys: Ints) -> Listed:
    """Return the cells of a sparse layer with a hash table over them."""
    from acegames.kernels.sparse import build_index

    table = np.empty(1 << max(4, int(2 * len(keys)).bit_length()), dtype=np.int32)
    build_index(keys, table)
    return Listed(keys, table)


def _explore_sparse(
    space: Space,
    roots: Ints,
    allowed: int,
    team: Team,
    enough: Callable[[Sequence[int]], bool] | None = None,
    *,
    on_disk: bool = False,
) -> Space:
    """List the reached cells; raise _StopListing where `enough` says so of their numbers."""
    from acegames.kernels.sparse import sweep

    H, keys, number, moved = space.game.horizon, [np.sort(roots)], 0, 0
    for t in range(H):
        number += len(keys[t])
        if enough is not None and enough(list(map(len, keys))):
            raise _StopListing(keys)
        if on_disk and SPARSE_BYTES * number > allowed:
            keys[moved:t], moved, number = list(map(_on_disk, keys[moved:t])), t, len(keys[t])
        check_memory(SPARSE_BYTES * number, allowed, number)
        keys.append(_successors(space, t, keys[t], allowed - SPARSE_BYTES * number, team))

    def swept(t: int, wanted: Bools, next_true: Bools, played: Bools) -> tuple[Bools, Bools]:
        true, keep = np.empty(len(keys[t]), dtype=bool), np.zeros(len(keys[t + 1]), dtype=bool)
        both = (space.layers[t].boxes(), space.steps(t), space.following(t + 1))
        layer = (*both, listed(keys[t + 1]), space.tables.widest)

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
        return replace(space, dense=False)
    keep, cells, played = true[0], [], list[Bytes]()
    for t in range(H):
        rows[:] = False
        keep_next = swept(t, keep, true[t + 1], rows)[1]
        played.append(space.packed_rows(t, rows))
        reached = keys[t][keep]
        cells.append(Cells.from_keys(_on_disk(reached) if moved else reached))
        keep = keep_next
    cells.append(Cells.from_keys(keys[-1][keep]))
    return replace(space, dense=False, cells=tuple(cells), played=tuple(played))


def _zeros_on_disk(count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return zeros in a file without a name, which is gone when they are.

    Raises:
        TooLarge: there is no room for the file.
    """
    needed = count * dtype.itemsize
    if not needed:
        return np.zeros(0, dtype)
    try:
        with tempfile.TemporaryFile() as file:
            os.ftruncate(file.fileno(), needed)
            if hasattr(os, "posix_fallocate"):  # a full disk is an error here; while mapped it would end the process
                os.posix_fallocate(file.fileno(), 0, needed)
            return np.frombuffer(mmap.mmap(file.fileno(), needed), dtype)
    except OSError as error:
        raise TooLarge(
            f"the situations reachable under feasible play do not fit into memory, and {tempfile.gettempdir()} has no room for "
            f"{bytes_said(needed)} of them ({error.strerror or error}); set TMPDIR to a folder on a larger disk"
        ) from None


def _on_disk(keys: Ints) -> Ints:
    stored: Ints = _zeros_on_disk(len(keys), keys.dtype)
    stored[:] = keys
    return stored


def _successors(space: Space, t: int, keys: Ints, allowed: int, team: Team) -> Ints:
    """Return the cells that safe rows lead to, in order.

    Whether that takes too much memory is judged by one set of all, however many sets there are.
    """
    number = max(min(team.threads, SUCCESSOR_SETS, len(keys) // PIECE_KEYS), 1)
    if number == 1:
        return _set_of_successors(space, t, keys, allowed)
    limit, sets = allowed // number, list[Ints]()
    with suppress(TooLarge):
        sets = team.each(lambda run: _set_of_successors(space, t, keys[slice(*run)], limit), pieces(len(keys), number))
    if not sets:  # several sets take more than one
        return _set_of_successors(space, t, keys, allowed)
    longest = max(sets, key=len)
    edges = [int(longest[a]) for a, _ in pieces(len(longest), number)[1:]] if len(longest) else []
    parts = [np.split(x, np.searchsorted(x, edges)) for x in sets]
    together = np.concatenate(team.each(merged, list(zip(*parts, strict=True))))
    check_successors(len(keys), len(together), allowed)
    return together


def merged(parts: Sequence[Ints]) -> Ints:
    """Return the different keys of several sorted lists, in order; faster than `np.unique`."""
    keys = np.sort(np.concatenate(parts))
    return keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys


def successor_bytes(keys: int, following: int) -> int:
    """Return the bytes of the hash set of `_set_of_successors`, of which there are `following`."""
    capacity = _first_capacity(keys)
    while 2 * following > capacity:
        capacity *= 4
    return 8 * capacity


def check_successors(keys: int, following: int, allowed: int) -> None:
    """Raise TooLarge where one set of them all would."""
    needed = successor_bytes(keys, following)
    check_memory(needed, max(allowed, 2**20), needed // 16)


def _first_capacity(keys: int) -> int:
    return 1 << max(10, int(4 * keys).bit_length())


def _set_of_successors(space: Space, t: int, keys: Ints, allowed: int) -> Ints:
    """Return the cells of time t + 1 that rows lead to that keep the budgets, in order.

    Raises:
        TooLarge: when that takes more than `allowed` bytes.
    """
    from acegames.kernels.sparse import expand

    layer = (space.layers[t].boxes(), space.steps(t), space.following(t + 1), space.tables.widest)
    capacity = _first_capacity(len(keys))
    while True:
        check_memory(8 * capacity, max(allowed, 2**20), capacity // 2)
        table = np.empty(capacity, dtype=np.int64)
        number = expand(keys, *layer, table)
        if number >= 0:
            return np.sort(table[table >= 0])
        capacity *= 4
