"""What the instructions of `intrinsics` are compiled to, under the same names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from acegames.kernels.intrinsics import ACROSS, SCANNERS, WARP
from acegames.kernels.lanes_llvm import INDEX, WHOLE, on_gpu


@intrinsic
def popcount(context, word):
    if not isinstance(word, types.Integer) or word.bitwidth != 64:
        return None

    def emit(context, builder, signature, values):
        whole = ir.IntType(64)
        count = builder.module.declare_intrinsic("llvm.ctpop.i64", fnty=ir.FunctionType(whole, [whole]))
        return builder.call(count, values)

    return types.int64(word), emit


@intrinsic
def noinline(context):
    def emit(context, builder, signature, values):
        if on_gpu(context):
            builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), emit


@intrinsic
def fetch_add(context, counter, number):
    def emit(context, builder, signature, values):
        place = context.make_array(signature.args[0])(context, builder, values[0]).data
        more = context.cast(builder, values[1], signature.args[1], types.int64)
        return builder.atomic_rmw("add", place, more, "monotonic")

    return types.int64(counter, number), emit


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
    def emit(context, builder, signature, values):
        return WHOLE(WARP if _is_shared(warp) and not on_gpu(context) else 1)

    return types.int64(warp), emit


@intrinsic
def lane_id_of(context, k, warp):
    def emit(context, builder, signature, values):
        if not _is_shared(warp):
            return context.get_dummy_value()
        if on_gpu(context):
            return builder.zext(_called(builder, "llvm.nvvm.read.ptx.sreg.tid.x", INDEX), WHOLE)
        return builder.xor(context.cast(builder, values[0], k, types.int64), builder.extract_value(values[1], 0))

    return (types.int64 if _is_shared(warp) else types.none)(k, warp), emit


@intrinsic
def syncthreads(context, warp):
    def emit(context, builder, signature, values):
        if not _is_shared(warp) and on_gpu(context):
            builder.function.attributes.add("convergent")
            _called(builder, "llvm.nvvm.barrier0", ir.VoidType())
        return context.get_dummy_value()

    return types.none(warp), emit


@intrinsic
def syncwarp(context, warp):
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
column_of = _number(0, lambda builder, lane_id: builder.urem(lane_id, WHOLE(ACROSS)))
row_of = _number(0, lambda builder, lane_id: builder.udiv(lane_id, WHOLE(ACROSS)))
rows_apart = _number(1, lambda builder, lane_id: WHOLE(WARP // ACROSS))
