"""Instructions that numba lacks, and the threads of a warp that solve a stage program together.

What they mean is said here in Python, for kernels that are interpreted; `intrinsics_llvm` says what
they are compiled to.

Work that a warp shares is cut into steps. A step runs once in every lane and does the lane's share;
what one lane writes in a step, no other one reads or writes in it. What stands between steps only
reads, and every thread runs it in the same way. A step `f` is written

    for k in range(own_lanes(warp)):
        f(lane_id_of(k, warp), ...)
    syncwarp(warp)

and a `syncwarp` more stands before a step that writes what was read since the last one (`lockstep`,
`batches`, `device`). That is all that a GPU asks for: where two threads come to one place and one
of them writes, both have come to a `syncwarp` in between; and all threads of the warp, which is a
block of its own, come to every `syncwarp`. `tests/kernels/test_races.py` watches each access, and
sees that no `syncwarp` can be left out.

On a processor a program has one lane, `warp` is None and all this costs nothing. On a GPU each
thread of a `Warp` is a lane. A processor that stands for a warp, in tests, goes through all its
lanes, in any order.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

from acegames.system.compiled import inlined, instruction

_counting = Lock()


@instruction
def popcount(word):
    """Return how many bits of a 64-bit number are set."""
    return (int(word) & 0xFFFF_FFFF_FFFF_FFFF).bit_count()


@instruction
def noinline():
    """Keep the function that calls this out of its callers, on a GPU.

    On a GPU all is compiled at once, and copies of a large function at each of its calls would take
    most of the time. Processors' compilers decide by themselves.
    """


@instruction
def fetch_add(counter, number):
    """Add to counter[0] and return what it was before: no two threads get the same."""
    with _counting:
        before = counter[0]
        counter[0] += number
        return before


WARP = 32  # threads of a GPU that go the same way, or wait
ACROSS = 8  # of them side by side along the rows of a table, the others below
SCANNERS = 8  # that look through a list; fewer than all, because all look at what these find


class Warp(NamedTuple):
    """A warp."""

    order: int  # less than WARP: in which a processor goes through the lanes


# -- warps -----------------------------------------------------------------------------------------


@instruction
def own_lanes(warp):
    """Return how many lanes of the warp this thread goes through."""
    return 1 if warp is None else WARP


@instruction
def lane_id_of(k, warp):
    """Return the id of the k-th lane that this thread goes through."""
    return None if warp is None else k ^ warp.order


@instruction
def syncthreads(warp):
    """Go on once all threads of the block are here, where each works by itself.

    They need nothing of each other, but then they read the same code at about the same time, and a
    GPU keeps little of it at hand. All threads must come here equally often.
    """


@instruction
def syncwarp(warp):
    """Go on once all threads of the warp are here, and see what they have written."""


# -- lanes of a warp -------------------------------------------------------------------------------


@instruction
def lane_index(lane_id):
    """Return the number of a lane; the numbers of lanes are known when kernels are compiled, where
    there is only one."""
    return 0 if lane_id is None else lane_id


@instruction
def warp_size(lane_id):
    """Return how many lanes share the work."""
    return 1 if lane_id is None else WARP


@instruction
def scanners(lane_id):
    """Return how many lanes look through a list."""
    return 1 if lane_id is None else SCANNERS


@instruction
def column_of(lane_id):
    """Return the first column of a table that a lane has."""
    return 0 if lane_id is None else lane_id % ACROSS


@instruction
def row_of(lane_id):
    """Return the first row of a table of which a lane has some columns."""
    return 0 if lane_id is None else lane_id // ACROSS


@instruction
def rows_apart(lane_id):
    """Return how far apart the rows of a lane are."""
    return 1 if lane_id is None else WARP // ACROSS


@inlined
def strided(lane_id, count):
    """Return the share of a lane in `count` things: each WARP-th of them."""
    return range(lane_index(lane_id), count, warp_size(lane_id))


@inlined
def is_lane0(lane_id):
    """Return whether a lane does what one alone must do."""
    return lane_index(lane_id) == 0


@inlined
def strided_rows(lane_id, count):
    """Return the rows of a table of which a lane has some columns."""
    return range(row_of(lane_id), count, rows_apart(lane_id))


@inlined
def strided_fours(lane_id, count):
    """Return the first of each four columns that a lane has; the others follow ACROSS apart."""
    return range(column_of(lane_id), count, 4 * ACROSS)
