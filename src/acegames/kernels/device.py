"""What the threads of a GPU do, as device functions; between two, all threads of a block wait.

A device function is a plain function of the thread and its block: on a GPU it is compiled around
nothing else (`system/cuda_code.py`), and the tests drive the very same functions on the processor,
at full size. What happens in a cell, a line or a stage game is the solver's own code.

A *piece* is a run of up to SEGMENT cells of one line: a block works on a piece, a thread on a cell.
A layer is solved in *chunks* of pieces that follow each other. `shared` belongs to a block, `own`
to a thread; neither holds anything from one kernel to the next.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.kernels.batches import file_pure, solve_scalar
from acegames.kernels.boxes import box_of, box_totals, rank_of
from acegames.kernels.dense import SEGMENT, line_row, row_utilities
from acegames.kernels.intrinsics import (
    WARP,
    fetch_add,
    is_lane0,
    lane_id_of,
    own_lanes,
    popcount,
    syncthreads,
    syncwarp,
)
from acegames.kernels.lockstep import Group, solve_group
from acegames.kernels.records import (
    Boxes,
    Choices,
    Floats,
    Goal,
    Ints,
    NextLayer,
    Small,
    StageAnswers,
    StageGames,
    Transitions,
)
from acegames.kernels.regular import enter_bits, file_lane
from acegames.kernels.stage import PureWorkspace, Workspace, is_pure
from acegames.system.compiled import inlined, inner

Bytes = NDArray[np.uint8]
Codes = NDArray[np.uint16]
WAITING, FALLBACK, OPEN, RECORDS, ENTRIES = range(5)  # what is counted in a chunk
FEW = 4  # games per warp that are spread over all warps
STRIP = 32  # cells whose mixed answers one thread counts


class DeviceLayer(NamedTuple):
    """One layer, and the next as steps lead to it."""

    here: Boxes
    pieces: Ints  # (B+1,) first piece of each box
    bits: Bytes  # which cells are reached
    step: Transitions
    after: NextLayer


class Waiting(NamedTuple):
    """Stage games of a chunk that are not pure, in any order, and what becomes of them.

    There is room for one in each cell of the chunk, so that G is both.
    """

    counts: Annotated[Ints, "counts"]  # by WAITING .. ENTRIES
    place: Annotated[Small, "G"]  # of each cell of the chunk, the number of its game, or -1
    cell: Annotated[Ints, "G"]
    first_row: Annotated[Small, "G"]  # of the state
    feasible: Annotated[Ints, "G"]  # a bit for each joint action
    utility: Annotated[Floats, "rows 2N G"]
    size: Annotated[Small, "G"]  # of the mixed answer's support, else 0
    row: Annotated[Bytes, "rows G"]
    prob: Annotated[Floats, "rows G"]
    fallback: Annotated[Small, "G"]  # the games that are not regular
    open: Annotated[Small, "G"]  # the games without an answer
    before: Annotated[Small, "2 G"]  # mixed answers, and their entries, before this one in its strip
    strips: Annotated[Small, "2 strips"]  # mixed answers, and entries, of each strip; then those before it


class Solving(NamedTuple):
    """A chunk of a layer that is solved."""

    layer: DeviceLayer
    first: int  # piece of the first block
    begin: int  # cell of the chunk
    reward: Annotated[Floats, "R 2N"]
    next_value: Annotated[Floats, "2N cells"]  # of the next layer
    choices: Choices  # with as many rows behind the last as a state has at most
    joint: Annotated[Bytes, "R"]  # what number each row is to the kernels (`Shape.joint`), ascending in a state
    goal: Goal
    try_regular: bool  # whether regular games are solved apart; else all are left
    value: Annotated[Floats, "2N cells"]
    code: Codes  # (cells,)
    waiting: Waiting


class OpenGames(NamedTuple):
    """Games without an answer, as the host reads them."""

    first_row: Annotated[Ints, "G"]
    size: Annotated[Ints, "G"]
    row: Annotated[Ints, "G rows"]
    utility: Annotated[Floats, "G rows 2N"]


class Opening(NamedTuple):
    """Games without an answer are put together."""

    waiting: Waiting
    joint: Annotated[Bytes, "R"]  # as in `Solving`
    games: OpenGames


class RepairedStages(NamedTuple):
    """Answers of these games, as the host writes them."""

    value: Annotated[Floats, "G 2N"]
    code: Annotated[Codes, "G"]
    size: Annotated[Small, "G"]
    row: Annotated[Bytes, "G rows"]
    prob: Annotated[Floats, "G rows"]


class Repairing(NamedTuple):
    """Answers of the host take their places."""

    waiting: Waiting
    answers: RepairedStages
    value: Annotated[Floats, "2N cells"]
    code: Codes


class Counting(NamedTuple):
    """A chunk whose mixed answers are counted, and numbered in the order of cells."""

    waiting: Waiting
    cells: int  # of the chunk


class EncodedChunk(NamedTuple):
    """A chunk as a policy holds it."""

    values: Annotated[Floats, "pairs columns"]  # N or 2N columns
    codes: Annotated[Bytes, "pairs"]
    size: Annotated[Bytes, "records"]
    row: Annotated[Bytes, "entries"]
    prob: Annotated[Floats, "entries"]


class Encoding(NamedTuple):
    """A chunk of a layer that is filed."""

    counted: Counting
    begin: int  # cell of the chunk
    number: int  # of the chunk's first reached cell
    encoded: EncodedChunk
    by_cell: bool  # else by reached cell
    words: NDArray[np.uint64]  # which cells of the layer are reached
    numbers: Ints  # reached cells before each block of 512
    value: Annotated[Floats, "2N cells"]
    code: Codes


class OwnCell(NamedTuple):
    """Room for the stage game of a cell."""

    c: Ints  # (D,)
    batch: StageGames
    mixed_ptr: Ints  # (3,) one place more than pointers
    pure: PureWorkspace


class OwnGroup(NamedTuple):
    """Room for a regular game."""

    group: Group
    choices: Choices  # the joint actions of each state, where all have the same; else without rows


class OwnWork(NamedTuple):
    """Room for any game."""

    batch: StageGames
    mixed_ptr: Ints
    work: Workspace


# -- solving --------------------------------------------------------------------------------------


@inlined
def _enter_piece(piece, layer):
    """Return the box of a piece, the line in the box, and the place on the line where it begins."""
    a = box_of(piece, layer.pieces)
    width = layer.here.size[a, layer.here.size.shape[1] - 1]
    per_line = (width + SEGMENT - 1) // SEGMENT
    within = piece - layer.pieces[a]
    return a, within // per_line, within % per_line * SEGMENT


@inlined
def _is_reached(cell, bits):
    return (bits[cell >> 3] >> (cell & 7)) & 1 != 0


@inner
def prepare_cell_rows(thread, block, threads, blocks, shared, own, args):
    """Prepare the rows of a piece's line, shared out among threads; no rows if no cell is
    reached.
    """
    here, step, c = args.layer.here, args.layer.step, own.c
    a, nth, k0 = _enter_piece(args.first + block, args.layer)
    last = here.size.shape[1] - 1
    width = here.size[a, last]
    cell = here.base[a] + nth * width + k0
    any_reached = 0
    for at in range(cell >> 3, ((cell + min(width - k0, SEGMENT) - 1) >> 3) + 1):
        any_reached |= args.layer.bits[at]
    if any_reached != 0:
        box_totals(c, last, nth, here, a)
        s = here.states[a]
        for r in range(step.row_ptr[s] + thread, step.row_ptr[s + 1], threads):
            line_row(r, step.row_ptr[s], c, here.lo[a, last], step, args.layer.after, shared)


@inner
def solve_pure_cell(thread, block, threads, blocks, shared, own, args):
    """Write the stage game of a reached cell out and store its answer where it is pure; else it
    waits.
    """
    here = args.layer.here
    a, nth, k0 = _enter_piece(args.first + block, args.layer)
    width, k = here.size[a, here.size.shape[1] - 1], k0 + thread
    if k >= width:
        return
    cell = here.base[a] + nth * width + k
    for row in range(len(own.pure.position)):
        own.pure.position[row] = -1
    at = np.int64(-1)
    if _is_reached(cell, args.layer.bits):
        _write_game(cell, k, here.states[a], shared, own.batch, args)
        if is_pure(0, own.batch, args.choices, args.goal, own.pure):
            file_pure(0, own.batch, own.pure.chosen[0], _answers(0, own, args))
        else:
            at = _let_wait(cell, own.batch, args)
    else:
        args.code[cell] = 0
        for i in range(len(args.value)):
            args.value[i, cell] = 0.0
    args.waiting.place[cell - args.begin] = at


@inlined
def _answers(at, own, args):
    """Return where the answer of a game goes; the cell of a mixed one goes where nobody looks."""
    row, prob, nowhere = args.waiting.row[:, at], args.waiting.prob[:, at], own.mixed_ptr[2:]
    return StageAnswers(args.value, args.code, nowhere, own.mixed_ptr, row, prob, nowhere)


@inlined
def _write_game(cell, k, s, line, batch, args):
    """Write out the stage game at place k of a line."""
    step = args.layer.step
    first_row, R = step.row_ptr[s], np.int64(0)
    for row in range(step.row_ptr[s + 1] - first_row):
        if line.stop[row] > k:
            r = first_row + row
            for i in range(args.reward.shape[1]):
                q = batch.utility[R, i : i + 1]
                row_utilities(q, r, s, step, args.reward[r, i], line, k, k + 1, args.next_value[i])
            batch.row[R] = r
            R += 1
    batch.cell[0] = cell
    batch.first_row[0] = first_row
    batch.ptr[0] = 0
    batch.ptr[1] = R


@inlined
def _let_wait(cell, batch, args):
    """Add a game to those that wait for a program; return its number."""
    waiting, feasible = args.waiting, np.int64(0)
    at = fetch_add(waiting.counts[WAITING:], 1)
    waiting.cell[at] = cell
    waiting.first_row[at] = batch.first_row[0]
    waiting.size[at] = 0
    for j in range(batch.ptr[1]):
        feasible |= np.int64(1) << args.joint[batch.row[j]]
        for i in range(batch.utility.shape[1]):
            waiting.utility[j, i, at] = batch.utility[j, i]
    waiting.feasible[at] = feasible
    return at


@inlined
def _read_waiting(at, row, utility, args):
    """Fill the rows of a waiting game, and their utilities; return how many there are."""
    waiting, r = args.waiting, np.int64(args.waiting.first_row[at])
    R = popcount(waiting.feasible[at])
    for j in range(R):
        r = _row_of(r, waiting.feasible[at], args.joint)
        row[j] = r
        for i in range(utility.shape[1]):
            utility[j, i] = waiting.utility[j, i, at]
        r += 1
    return R


@inlined
def _row_of(r, bits, joint):
    """Return the first row, from r on, whose joint action is among those of the bits."""
    while (bits >> joint[r]) & 1 == 0:
        r += 1
    return r


@inner
def solve_regular_by_thread(thread, block, threads, blocks, shared, own, args):
    """Solve those of the waiting games that are regular, one with each thread.

    The games of a warp follow each other. Those of the next one are for another block, so that all
    have some.
    """
    _solve_regular(block * WARP, thread // WARP * blocks * WARP + thread % WARP, blocks * threads, own, args)


@inner
def solve_regular_by_warp(thread, block, threads, blocks, shared, own, args):
    """Solve those of the waiting games that are regular, one with each block, which is a warp."""
    _solve_regular(block, 0, blocks, shared, args)


@inlined
def _solve_regular(begin, own, step, work, args):
    """Solve the games whose numbers are own + begin, own + begin + step, and so on."""
    count, warp = args.waiting.counts[WAITING], work.group.warp
    while begin < count:  # a range would divide by the step, which takes a GPU long
        syncthreads(warp)
        if begin + own < count:
            _solve_one(begin + own, work, args)
        syncwarp(warp)
        begin += step


@inlined
def _solve_one(at, work, args):
    """Solve one waiting game; it is noted for the scalar solver where it is not regular."""
    waiting, group = args.waiting, work.group
    warp, n = group.warp, len(group.row) - 1  # known when this is compiled
    uniform = len(work.choices.action) > 0
    choices = work.choices if uniform else args.choices
    for k in range(own_lanes(warp)):
        enter_bits(lane_id_of(k, warp), waiting.feasible[at], waiting.utility[:, :, at], n, group)
    syncwarp(warp)
    solve_group(0 if uniform else np.int64(waiting.first_row[at]), choices, args.goal, n, group)
    place = args.value, args.code, waiting.row[:, at], waiting.prob[:, at]
    for k in range(own_lanes(warp)):
        lane_id = lane_id_of(k, warp)
        played = file_lane(lane_id, 0, waiting.cell[at], n, group, *place)
        if is_lane0(lane_id):
            waiting.size[at] = played if played > 1 else 0
            if played == 0:
                waiting.fallback[fetch_add(waiting.counts[FALLBACK:], 1)] = at
            else:
                _count_rows(at, args)


@inlined
def _count_rows(at, args):
    """Let an answer that names joint actions name rows of the state."""
    waiting, cell, first = args.waiting, args.waiting.cell[at], np.int64(args.waiting.first_row[at])
    if args.code[cell] > 0:
        args.code[cell] = 1 + _row_of(first, np.int64(1) << (args.code[cell] - 1), args.joint) - first
    for e in range(waiting.size[at]):
        waiting.row[e, at] = _row_of(first, np.int64(1) << waiting.row[e, at], args.joint) - first


@inner
def solve_fallback_games(thread, block, threads, blocks, shared, own, args):
    """Solve the games that are left, with the scalar solver."""
    waiting, batch = args.waiting, own.batch
    for row in range(len(own.work.position)):
        own.work.position[row] = -1
    count = waiting.counts[FALLBACK] if args.try_regular else waiting.counts[WAITING]
    first, warps = block * threads + thread, blocks * threads // WARP
    if count <= FEW * warps:  # each goes its own way, so those of a warp would wait for each other
        first = thread % WARP * warps + first // WARP
    for nth in range(first, count, blocks * threads):
        at = np.int64(waiting.fallback[nth]) if args.try_regular else np.int64(nth)
        batch.cell[0] = waiting.cell[at]
        batch.first_row[0] = waiting.first_row[at]
        batch.ptr[0] = 0
        batch.ptr[1] = _read_waiting(at, batch.row, batch.utility, args)
        own.mixed_ptr[0] = 0
        how = args.choices, args.goal, own.work, np.int64(0), np.int64(0)
        mixed, bad = solve_scalar(0, batch, *how, _answers(at, own, args))
        if mixed > 0:
            waiting.size[at] = own.mixed_ptr[1]
        if bad > 0:
            waiting.open[fetch_add(waiting.counts[OPEN:], 1)] = at


@inner
def read_open_game(thread, block, threads, blocks, shared, own, args):
    """Copy one game without an answer to where the host reads it."""
    waiting, games, nth = args.waiting, args.games, block * threads + thread
    if nth < len(games.size):
        at = waiting.open[nth]
        games.first_row[nth] = waiting.first_row[at]
        games.size[nth] = _read_waiting(at, games.row[nth], games.utility[nth], args)


@inner
def apply_repair(thread, block, threads, blocks, shared, own, args):
    """Write one answer of the host to its cell."""
    waiting, answers, nth = args.waiting, args.answers, block * threads + thread
    if nth < len(answers.code):
        at = waiting.open[nth]
        cell = waiting.cell[at]
        args.code[cell] = answers.code[nth]
        for i in range(len(args.value)):
            args.value[i, cell] = answers.value[nth, i]
        waiting.size[at] = answers.size[nth]
        for e in range(answers.size[nth]):
            waiting.row[e, at] = answers.row[nth, e]
            waiting.prob[e, at] = answers.prob[nth, e]


# -- filing ---------------------------------------------------------------------------------------


@inner
def count_strip(thread, block, threads, blocks, shared, own, args):
    """Count the mixed answers of one strip, and their entries."""
    waiting, strip = args.waiting, block * threads + thread
    records = entries = np.int64(0)
    for k in range(strip * STRIP, min((strip + 1) * STRIP, args.cells)):
        at = waiting.place[k]
        if at >= 0 and waiting.size[at] > 0:
            waiting.before[0, at] = records
            waiting.before[1, at] = entries
            records += 1
            entries += waiting.size[at]
    if strip * STRIP < args.cells:
        waiting.strips[0, strip] = records
        waiting.strips[1, strip] = entries


@inlined
def _share(thread, threads, args):
    """Return the strips of one of the threads that number them."""
    strips = (args.cells + STRIP - 1) // STRIP
    each = (strips + threads - 1) // threads
    return thread * each, min((thread + 1) * each, strips)


@inner
def sum_strips(thread, block, threads, blocks, shared, own, args):
    """Add up a share of the strips."""
    begin, end = _share(thread, threads, args)
    for what in range(2):
        total = np.int64(0)
        for strip in range(begin, end):
            total += args.waiting.strips[what, strip]
        shared[what, thread] = total


@inner
def prefix_sums(thread, block, threads, blocks, shared, own, args):
    """Sum up what lies before each share, and in all."""
    if thread < 2:
        before = np.int64(0)
        for k in range(threads):
            here = shared[thread, k]
            shared[thread, k] = before
            before += here
        args.waiting.counts[RECORDS + thread] = before


@inner
def number_strips(thread, block, threads, blocks, shared, own, args):
    """Fill what lies before each strip of a share."""
    begin, end = _share(thread, threads, args)
    for what in range(2):
        before = shared[what, thread]
        for strip in range(begin, end):
            here = args.waiting.strips[what, strip]
            args.waiting.strips[what, strip] = before
            before += here


@inner
def encode_cell(thread, block, threads, blocks, shared, own, args):
    """Store the code and the values of one cell."""
    cell = args.begin + block * threads + thread
    if cell >= args.begin + args.counted.cells:
        return
    to = cell - args.begin
    if not args.by_cell:
        to = rank_of(cell, args.words, args.numbers) - args.number
        if to < 0:
            return
    reached = not args.by_cell or (args.words[cell >> 6] >> np.uint64(cell & 63)) & np.uint64(1) != np.uint64(0)
    encoded = args.encoded
    encoded.codes[to] = args.code[cell] if reached else 1  # 0 is for mixed answers alone
    for i in range(encoded.values.shape[1]):
        encoded.values[to, i] = args.value[i, cell]


@inner
def encode_mixed(thread, block, threads, blocks, shared, own, args):
    """Store the support of one mixed answer."""
    waiting, encoded, at = args.counted.waiting, args.encoded, block * threads + thread
    if at >= waiting.counts[WAITING] or waiting.size[at] == 0:
        return
    strip = (waiting.cell[at] - args.begin) // STRIP
    record = waiting.strips[0, strip] + waiting.before[0, at]
    entry = waiting.strips[1, strip] + waiting.before[1, at]
    encoded.size[record] = waiting.size[at]
    for e in range(waiting.size[at]):
        encoded.row[entry + e] = waiting.row[e, at]
        encoded.prob[entry + e] = waiting.prob[e, at]
