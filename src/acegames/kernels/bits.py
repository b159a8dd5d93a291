"""Bits of whole numbers."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def ones(context, word):
    """Return how many bits of a 64-bit number are set."""
    if not isinstance(word, types.Integer) or word.bitwidth != 64:
        return None

    def emit(context, builder, signature, values):
        whole = ir.IntType(64)
        count = builder.module.declare_intrinsic("llvm.ctpop.i64", fnty=ir.FunctionType(whole, [whole]))
        return builder.call(count, values)

    return types.int64(word), emit
