"""What the threads of a GPU do, in phases; between two of a kernel they wait for each other.

Phases are plain functions of the thread and its block: on a GPU they are compiled around nothing
else (`system/cuda_code.py`), and the tests drive the very same functions on the processor, at
full size. What happens in a cell, a line or a stage game is the solver's own code.

A *piece* is a run of up to SEGMENT cells of one line: a block works on a piece, a thread on a cell.
A layer is solved in *chunks* of pieces that follow each other. `shared` belongs to a block, `own`
to a thread; neither holds anything from one kernel to the next.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.kernels.bits import ones
from acegames.kernels.boxes import box_of, box_totals, line_height
from acegames.kernels.dense import SEGMENT, line_row, row_utilities
from acegames.kernels.lockstep import Group, solve_group
from acegames.kernels.plain import enter_bits, file_lane
from acegames.kernels.records import Answers, Boxes, Choices, Floats, Following, Goal, Ints, Small, Steps, Written
from acegames.kernels.sharing import take
from acegames.kernels.stage import PureRoom, Workspace, is_pure
from acegames.kernels.teams import WARP, leads, meet, seat_of, seats, wait
from acegames.kernels.written import file_pure, solve_alone
from acegames.system.compiled import inlined, inner

Bytes = NDArray[np.uint8]
Codes = NDArray[np.uint16]
WAITING, LEFT, OPEN, RECORDS, ENTRIES = range(5)  # what is counted in a chunk
FEW = 4  # games per warp that are spread over all warps
STRIP = 32  # cells whose mixed answers one thread counts
BLOCK = 512  # cells between two stored counts of reached cells


class Layer(NamedTuple):
    """One layer, and the next as steps lead to it."""

    here: Boxes
    pieces: Ints  # (B+1,) first piece of each box
    bits: Bytes  # which cells are reached
    step: Steps
    after: Following


class Heights(NamedTuple):
    """A step of the exploration backwards."""

    layer: Layer  # without bits
    height: Small  # (lines,)


class Reaching(NamedTuple):
    """A step of the exploration forwards."""

    layer: Layer
    first: int  # piece of the first block
    next_marks: Bytes  # (cells of the next layer,) zero before
    played: Bytes  # (R,) zero before


class Packing(NamedTuple):
    """Marks as they are kept."""

    marks: Bytes
    bits: Bytes


class Waiting(NamedTuple):
    """Stage games of a chunk that are not pure, in any order, and what becomes of them.

    There is room for one in each cell of the chunk, so that G is both.
    """

    counts: Annotated[Ints, "counts"]  # by WAITING .. ENTRIES
    place: Annotated[Small, "G"]  # of each cell of the chunk, the number of its game, or -1
    cell: Annotated[Ints, "G"]
    first_row: Annotated[Small, "G"]  # of the state
    feasible: Annotated[Ints, "G"]  # a bit for each row of the state
    utility: Annotated[Floats, "rows 2N G"]
    size: Annotated[Small, "G"]  # of the mixed answer's support, else 0
    row: Annotated[Bytes, "rows G"]
    prob: Annotated[Floats, "rows G"]
    left: Annotated[Small, "G"]  # the games that are not plain
    open: Annotated[Small, "G"]  # the games without an answer
    before: Annotated[Small, "2 G"]  # mixed answers, and their entries, before this one in its strip
    strips: Annotated[Small, "2 strips"]  # mixed answers, and entries, of each strip; then those before it


class Solving(NamedTuple):
    """A chunk of a layer that is solved."""

    layer: Layer
    first: int  # piece of the first block
    begin: int  # cell of the chunk
    reward: Annotated[Floats, "R 2N"]
    next_value: Annotated[Floats, "2N cells"]  # of the next layer
    choices: Choices  # with as many rows behind the last as a state has at most
    goal: Goal
    together: bool  # whether plain games are solved apart; else all are left
    value: Annotated[Floats, "2N cells"]
    code: Codes  # (cells,)
    waiting: Waiting


class OpenGames(NamedTuple):
    """Games without an answer, as the host reads them."""

    first_row: Annotated[Ints, "G"]
    feasible: Annotated[Ints, "G"]
    utility: Annotated[Floats, "G rows 2N"]


class Opening(NamedTuple):
    """Games without an answer are put together."""

    waiting: Waiting
    games: OpenGames


class Mended(NamedTuple):
    """Answers of these games, as the host writes them."""

    value: Annotated[Floats, "G 2N"]
    code: Annotated[Codes, "G"]
    size: Annotated[Small, "G"]
    row: Annotated[Bytes, "G rows"]
    prob: Annotated[Floats, "G rows"]


class Mending(NamedTuple):
    """Answers of the host take their places."""

    waiting: Waiting
    answers: Mended
    value: Annotated[Floats, "2N cells"]
    code: Codes


class Counting(NamedTuple):
    """A chunk whose mixed answers are counted, and numbered in the order of cells."""

    waiting: Waiting
    cells: int  # of the chunk


class Filed(NamedTuple):
    """A chunk as a policy holds it."""

    values: Annotated[Floats, "pairs columns"]  # N or 2N columns
    codes: Annotated[Bytes, "pairs"]
    size: Annotated[Bytes, "records"]
    row: Annotated[Bytes, "entries"]
    prob: Annotated[Floats, "entries"]


class Filing(NamedTuple):
    """A chunk of a layer that is filed."""

    counted: Counting
    begin: int  # cell of the chunk
    number: int  # of the chunk's first reached cell
    filed: Filed
    by_cell: bool  # else by reached cell
    words: NDArray[np.uint64]  # which cells of the layer are reached
    numbers: Ints  # reached cells before each BLOCK cells
    value: Annotated[Floats, "2N cells"]
    code: Codes


class OwnCell(NamedTuple):
    """Room for the stage game of a cell."""

    c: Ints  # (D,)
    written: Written
    mixed_ptr: Ints  # (3,) one place more than pointers
    pure: PureRoom


class OwnGroup(NamedTuple):
    """Room for a plain game."""

    group: Group
    choices: Choices  # the joint actions of each state, where all have the same; else without rows


class OwnWork(NamedTuple):
    """Room for any game."""

    written: Written
    mixed_ptr: Ints
    work: Workspace


# -- exploring ------------------------------------------------------------------------------------


@inner
def height_phase(thread, block, threads, blocks, shared, own, given):
    """The height of one line."""
    layer, at = given.layer, block * threads + thread
    if at < len(given.height):
        a = box_of(at, layer.here.line)
        given.height[at] = line_height(a, at - layer.here.line[a], layer.here, layer.step, layer.after, own)


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


@inlined
def _prepare_rows(thread, threads, piece, line, c, layer):
    """The rows of a piece's line, shared out among threads; nothing where no cell is reached."""
    here, step = layer.here, layer.step
    a, nth, k0 = _enter_piece(piece, layer)
    last = here.size.shape[1] - 1
    width = here.size[a, last]
    cell = here.base[a] + nth * width + k0
    found = 0
    for at in range(cell >> 3, ((cell + min(width - k0, SEGMENT) - 1) >> 3) + 1):
        found |= layer.bits[at]
    if found != 0:
        box_totals(c, last, nth, here, a)
        s = here.states[a]
        for r in range(step.row_ptr[s] + thread, step.row_ptr[s + 1], threads):
            line_row(r, step.row_ptr[s], c, here.lo[a, last], step, layer.after, line)


@inner
def reached_rows_phase(thread, block, threads, blocks, shared, own, given):
    """Prepare the rows of a piece."""
    _prepare_rows(thread, threads, given.first + block, shared, own, given.layer)


@inner
def reach_phase(thread, block, threads, blocks, shared, own, given):
    """Mark where feasible rows lead from one reached cell."""
    here, step = given.layer.here, given.layer.step
    a, nth, k0 = _enter_piece(given.first + block, given.layer)
    width, k = here.size[a, here.size.shape[1] - 1], k0 + thread
    cell = here.base[a] + nth * width + k
    if k >= width or not _is_reached(cell, given.layer.bits):
        return
    s = here.states[a]
    first_row = step.row_ptr[s]
    for r in range(first_row, step.row_ptr[s + 1]):
        if shared.stop[r - first_row] > k:
            given.played[r] = 1
            for o in range(step.out_ptr[r], step.out_ptr[r + 1]):
                at = o - step.out_ptr[first_row]
                given.next_marks[shared.first[at] + max(shared.shift[at] + k, 0)] = 1


@inner
def pack_phase(thread, block, threads, blocks, shared, own, given):
    """Eight marks as bits."""
    marks, at = given.marks, block * threads + thread
    if at < len(given.bits):
        found = 0
        for k in range(min(len(marks) - 8 * at, 8)):
            found |= marks[8 * at + k] << k
        given.bits[at] = found


# -- solving --------------------------------------------------------------------------------------


@inner
def cell_rows_phase(thread, block, threads, blocks, shared, own, given):
    """Prepare the rows of a piece."""
    _prepare_rows(thread, threads, given.first + block, shared, own.c, given.layer)


@inner
def cell_phase(thread, block, threads, blocks, shared, own, given):
    """Write the stage game of a reached cell out; file it where it is pure, else it waits."""
    here = given.layer.here
    a, nth, k0 = _enter_piece(given.first + block, given.layer)
    width, k = here.size[a, here.size.shape[1] - 1], k0 + thread
    if k >= width:
        return
    cell = here.base[a] + nth * width + k
    for row in range(len(own.pure.position)):
        own.pure.position[row] = -1
    at = np.int64(-1)
    if _is_reached(cell, given.layer.bits):
        feasible = _write_game(cell, k, here.states[a], shared, own.written, given)
        if is_pure(0, own.written, given.choices, given.goal, own.pure):
            file_pure(0, own.written, own.pure.chosen[0], _answers(0, own, given))
        else:
            at = _let_wait(cell, feasible, own.written, given.waiting)
    else:
        given.code[cell] = 0
        for i in range(len(given.value)):
            given.value[i, cell] = 0.0
    given.waiting.place[cell - given.begin] = at


@inlined
def _answers(at, own, given):
    """Return where the answer of a game goes, mixed or not; its cell goes where nobody looks."""
    row, prob, nowhere = given.waiting.row[:, at], given.waiting.prob[:, at], own.mixed_ptr[2:]
    return Answers(given.value, given.code, nowhere, own.mixed_ptr, row, prob, nowhere)


@inlined
def _write_game(cell, k, s, line, written, given):
    """Return the feasible rows at place k of a line, and their utilities; returns the rows as bits."""
    step = given.layer.step
    first_row = step.row_ptr[s]
    feasible, R = np.int64(0), np.int64(0)
    for row in range(step.row_ptr[s + 1] - first_row):
        if line.stop[row] > k:
            r = first_row + row
            for i in range(given.reward.shape[1]):
                q = written.utility[R, i : i + 1]
                row_utilities(q, r, s, step, given.reward[r, i], line, k, k + 1, given.next_value[i])
            written.row[R] = r
            feasible |= np.int64(1) << row
            R += 1
    written.cell[0] = cell
    written.first_row[0] = first_row
    written.ptr[0] = 0
    written.ptr[1] = R
    return feasible


@inlined
def _let_wait(cell, feasible, written, waiting):
    at = take(waiting.counts[WAITING:], 1)
    waiting.cell[at] = cell
    waiting.first_row[at] = written.first_row[0]
    waiting.feasible[at] = feasible
    waiting.size[at] = 0
    for j in range(written.ptr[1]):
        for i in range(written.utility.shape[1]):
            waiting.utility[j, i, at] = written.utility[j, i]
    return at


@inlined
def _enter_waiting(at, written, mixed_ptr, waiting):
    """Return the rows of a waiting game; returns how many there are."""
    first, feasible, R = waiting.first_row[at], waiting.feasible[at], np.int64(0)
    for row in range(len(written.row)):
        if (feasible >> row) & 1:
            written.row[R] = first + row
            R += 1
    written.cell[0] = waiting.cell[at]
    written.first_row[0] = first
    written.ptr[0] = 0
    written.ptr[1] = R
    mixed_ptr[0] = 0
    return R


@inner
def plain_phase(thread, block, threads, blocks, shared, own, given):
    """Solve those of the waiting games that are plain, one with each thread.

    The games of a warp follow each other. Those of the next one are for another block, so that all
    have some.
    """
    _solve_plain(block * WARP, thread // WARP * blocks * WARP + thread % WARP, blocks * threads, own, given)


@inner
def warp_phase(thread, block, threads, blocks, shared, own, given):
    """The same, one with each block, which is a warp."""
    _solve_plain(block, 0, blocks, shared, given)


@inlined
def _solve_plain(begin, own, step, room, given):
    """The games whose numbers are own + begin, own + begin + step, and so on."""
    count, team = given.waiting.counts[WAITING], room.group.team
    while begin < count:  # a range would divide by the step, which takes a GPU long
        meet(team)
        if begin + own < count:
            _solve_one(begin + own, room, given)
        wait(team)
        begin += step


@inlined
def _solve_one(at, room, given):
    waiting, group = given.waiting, room.group
    team, n = group.team, len(group.row) - 1  # known when this is compiled
    alike = len(room.choices.action) > 0
    choices = room.choices if alike else given.choices
    for k in range(seats(team)):
        enter_bits(seat_of(k, team), waiting.feasible[at], waiting.utility[:, :, at], n, group)
    wait(team)
    solve_group(0 if alike else np.int64(waiting.first_row[at]), choices, given.goal, n, group)
    place = given.value, given.code, waiting.row[:, at], waiting.prob[:, at]
    for k in range(seats(team)):
        seat = seat_of(k, team)
        played = file_lane(seat, 0, waiting.cell[at], n, group, *place)
        if leads(seat):
            waiting.size[at] = played if played > 1 else 0
            if played == 0:
                waiting.left[take(waiting.counts[LEFT:], 1)] = at


@inner
def left_phase(thread, block, threads, blocks, shared, own, given):
    """Solve the games that are left."""
    waiting, written = given.waiting, own.written
    for row in range(len(own.work.position)):
        own.work.position[row] = -1
    count = waiting.counts[LEFT] if given.together else waiting.counts[WAITING]
    first, warps = block * threads + thread, blocks * threads // WARP
    if count <= FEW * warps:  # each goes its own way, so those of a warp would wait for each other
        first = thread % WARP * warps + first // WARP
    for nth in range(first, count, blocks * threads):
        at = np.int64(waiting.left[nth]) if given.together else np.int64(nth)
        R = _enter_waiting(at, written, own.mixed_ptr, waiting)
        for j in range(R):
            for i in range(written.utility.shape[1]):
                written.utility[j, i] = waiting.utility[j, i, at]
        how = given.choices, given.goal, own.work, np.int64(0), np.int64(0)
        mixed, bad = solve_alone(0, written, *how, _answers(at, own, given))
        if mixed > 0:
            waiting.size[at] = own.mixed_ptr[1]
        if bad > 0:
            waiting.open[take(waiting.counts[OPEN:], 1)] = at


@inner
def read_open_phase(thread, block, threads, blocks, shared, own, given):
    """One game without an answer, for the host."""
    waiting, games, nth = given.waiting, given.games, block * threads + thread
    if nth < len(games.feasible):
        at = waiting.open[nth]
        games.first_row[nth] = waiting.first_row[at]
        games.feasible[nth] = waiting.feasible[at]
        for j in range(games.utility.shape[1]):
            for i in range(games.utility.shape[2]):
                games.utility[nth, j, i] = waiting.utility[j, i, at]


@inner
def mend_phase(thread, block, threads, blocks, shared, own, given):
    """One answer of the host."""
    waiting, answers, nth = given.waiting, given.answers, block * threads + thread
    if nth < len(answers.code):
        at = waiting.open[nth]
        cell = waiting.cell[at]
        given.code[cell] = answers.code[nth]
        for i in range(len(given.value)):
            given.value[i, cell] = answers.value[nth, i]
        waiting.size[at] = answers.size[nth]
        for e in range(answers.size[nth]):
            waiting.row[e, at] = answers.row[nth, e]
            waiting.prob[e, at] = answers.prob[nth, e]


# -- filing ---------------------------------------------------------------------------------------


@inner
def strip_phase(thread, block, threads, blocks, shared, own, given):
    """Count the mixed answers of one strip, and their entries."""
    waiting, strip = given.waiting, block * threads + thread
    records = entries = np.int64(0)
    for k in range(strip * STRIP, min((strip + 1) * STRIP, given.cells)):
        at = waiting.place[k]
        if at >= 0 and waiting.size[at] > 0:
            waiting.before[0, at] = records
            waiting.before[1, at] = entries
            records += 1
            entries += waiting.size[at]
    if strip * STRIP < given.cells:
        waiting.strips[0, strip] = records
        waiting.strips[1, strip] = entries


@inlined
def _share(thread, threads, given):
    """Return the strips of one of the threads that number them."""
    strips = (given.cells + STRIP - 1) // STRIP
    each = (strips + threads - 1) // threads
    return thread * each, min((thread + 1) * each, strips)


@inner
def sum_phase(thread, block, threads, blocks, shared, own, given):
    """Add up a share of the strips."""
    begin, end = _share(thread, threads, given)
    for what in range(2):
        total = np.int64(0)
        for strip in range(begin, end):
            total += given.waiting.strips[what, strip]
        shared[what, thread] = total


@inner
def join_sums_phase(thread, block, threads, blocks, shared, own, given):
    """How much lies before each share, and in all."""
    if thread < 2:
        before = np.int64(0)
        for k in range(threads):
            here = shared[thread, k]
            shared[thread, k] = before
            before += here
        given.waiting.counts[RECORDS + thread] = before


@inner
def number_phase(thread, block, threads, blocks, shared, own, given):
    """How much lies before each strip of a share."""
    begin, end = _share(thread, threads, given)
    for what in range(2):
        before = shared[what, thread]
        for strip in range(begin, end):
            here = given.waiting.strips[what, strip]
            given.waiting.strips[what, strip] = before
            before += here


@inner
def file_cell_phase(thread, block, threads, blocks, shared, own, given):
    """The code and the values of one cell."""
    cell = given.begin + block * threads + thread
    if cell >= given.begin + given.counted.cells:
        return
    to = cell - given.begin
    if not given.by_cell:
        to = _number_of(cell, given.words, given.numbers) - given.number
        if to < 0:
            return
    reached = not given.by_cell or (given.words[cell >> 6] >> np.uint64(cell & 63)) & np.uint64(1) != np.uint64(0)
    filed = given.filed
    filed.codes[to] = given.code[cell] if reached else 1  # 0 is for mixed answers alone
    for i in range(filed.values.shape[1]):
        filed.values[to, i] = given.value[i, cell]


@inlined
def _number_of(cell, words, numbers):
    """Return the number of a cell among those that are reached; -2**62: it is not."""
    own = words[cell >> 6]
    if (own >> np.uint64(cell & 63)) & np.uint64(1) == np.uint64(0):
        return -np.int64(2**62)
    total = numbers[cell // BLOCK] + ones(own & ((np.uint64(1) << np.uint64(cell & 63)) - np.uint64(1)))
    for word in range(cell // BLOCK * (BLOCK // 64), cell >> 6):
        total += ones(words[word])
    return total


@inner
def file_record_phase(thread, block, threads, blocks, shared, own, given):
    """The support of one mixed answer."""
    waiting, filed, at = given.counted.waiting, given.filed, block * threads + thread
    if at >= waiting.counts[WAITING] or waiting.size[at] == 0:
        return
    strip = (waiting.cell[at] - given.begin) // STRIP
    record = waiting.strips[0, strip] + waiting.before[0, at]
    entry = waiting.strips[1, strip] + waiting.before[1, at]
    filed.size[record] = waiting.size[at]
    for e in range(waiting.size[at]):
        filed.row[entry + e] = waiting.row[e, at]
        filed.prob[entry + e] = waiting.prob[e, at]
