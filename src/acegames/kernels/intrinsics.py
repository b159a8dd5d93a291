"""Instructions that numba lacks, and the threads of a warp that solve a stage program together.

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

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from acegames.kernels.lanes import INDEX, WHOLE, on_gpu
from acegames.system.compiled import inlined


@intrinsic
def popcount(context, word):
    """Return how many bits of a 64-bit number are set."""
    if not isinstance(word, types.Integer) or word.bitwidth != 64:
        return None

    def emit(context, builder, signature, values):
        whole = ir.IntType(64)
        count = builder.module.declare_intrinsic("llvm.ctpop.i64", fnty=ir.FunctionType(whole, [whole]))
        return builder.call(count, values)

    return types.int64(word), emit


@intrinsic
def noinline(context):
    """Keep the function that calls this out of its callers, on a GPU.

    On a GPU all is compiled at once, and copies of a large function at each of its calls would take
    most of the time. Processors' compilers decide by themselves.
    """

    def emit(context, builder, signature, values):
        if on_gpu(context):
            builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), emit


@intrinsic
def fetch_add(context, counter, number):
    """Add to counter[0] and return what it was before: no two threads get the same."""

    def emit(context, builder, signature, values):
        place = context.make_array(signature.args[0])(context, builder, values[0]).data
        more = context.cast(builder, values[1], signature.args[1], types.int64)
        return builder.atomic_rmw("add", place, more, "monotonic")

    return types.int64(counter, number), emit


WARP = 32  # threads of a GPU that go the same way, or wait
ACROSS = 8  # of them side by side along the rows of a table, the others below
SCANNERS = 8  # that look through a list; fewer than all, because all look at what these find


class Warp(NamedTuple):
    """A warp."""

    order: int  # less than WARP: in which a processor goes through the lanes


def _is_shared(kind: Any) -> bool:
    """Return whether a warp, or a lane id, is one of several threads."""
    return isinstance(kind, (types.BaseTuple, types.Integer))


def _called(builder: Any, name: str, result: Any, *values: Any) -> Any:
    known = builder.module.globals
    function = known.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(result, [x.type for x in values]), name)
    return builder.call(function, values)


# -- warps -----------------------------------------------------------------------------------------


@intrinsic
def own_lanes(context, warp):
    """Return how many lanes of the warp this thread goes through."""

    def emit(context, builder, signature, values):
        return WHOLE(WARP if _is_shared(warp) and not on_gpu(context) else 1)

    return types.int64(warp), emit


@intrinsic
def lane_id_of(context, k, warp):
    """Return the id of the k-th lane that this thread goes through."""

    def emit(context, builder, signature, values):
        if not _is_shared(warp):
            return context.get_dummy_value()
        if on_gpu(context):
            return builder.zext(_called(builder, "llvm.nvvm.read.ptx.sreg.tid.x", INDEX), WHOLE)
        return builder.xor(context.cast(builder, values[0], k, types.int64), builder.extract_value(values[1], 0))

    return (types.int64 if _is_shared(warp) else types.none)(k, warp), emit


@intrinsic
def syncthreads(context, warp):
    """Go on once all threads of the block are here, where each works by itself.

    They need nothing of each other, but then they read the same code at about the same time, and a
    GPU keeps little of it at hand. All threads must come here equally often.
    """

    def emit(context, builder, signature, values):
        if not _is_shared(warp) and on_gpu(context):
            builder.function.attributes.add("convergent")
            _called(builder, "llvm.nvvm.barrier0", ir.VoidType())
        return context.get_dummy_value()

    return types.none(warp), emit


@intrinsic
def syncwarp(context, warp):
    """Go on once all threads of the warp are here, and see what they have written."""

    def emit(context, builder, signature, values):
        if _is_shared(warp) and on_gpu(context):
            builder.function.attributes.add("convergent")  # its calls stay where all threads come to
            _called(builder, "llvm.nvvm.bar.warp.sync", ir.VoidType(), INDEX(-1))
        return context.get_dummy_value()

    return types.none(warp), emit


# -- lanes of a warp -------------------------------------------------------------------------------


def _number(alone: int, shared: Callable[..., Any]) -> Any:
    """Return a number of a lane or a warp, known at compile time where there is only one lane."""

    def typed(context, lane_id):
        def emit(context, builder, signature, values):
            return shared(builder, values[0]) if _is_shared(lane_id) else WHOLE(alone)

        return types.int64(lane_id), emit

    return intrinsic(typed)


lane_index = _number(0, lambda builder, lane_id: lane_id)
warp_size = _number(1, lambda builder, lane_id: WHOLE(WARP))
scanners = _number(1, lambda builder, lane_id: WHOLE(SCANNERS))
_column = _number(0, lambda builder, lane_id: builder.urem(lane_id, WHOLE(ACROSS)))
_row = _number(0, lambda builder, lane_id: builder.udiv(lane_id, WHOLE(ACROSS)))
_down = _number(1, lambda builder, lane_id: WHOLE(WARP // ACROSS))


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
    return range(_row(lane_id), count, _down(lane_id))


@inlined
def strided_fours(lane_id, count):
    """Return the first of each four columns that a lane has; the others follow ACROSS apart."""
    return range(_column(lane_id), count, 4 * ACROSS)
