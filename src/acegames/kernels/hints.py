"""What kernels tell the compiler."""

from __future__ import annotations

from numba import types
from numba.extending import intrinsic

from acegames.kernels.lanes import on_gpu


@intrinsic
def apart(context):
    """On a GPU, keep the function that says this out of its callers.

    There all is compiled at once, and copies of a large function at each of its calls would take
    most of the time. Processors' compilers decide by themselves.
    """

    def emit(context, builder, signature, values):
        if on_gpu(context):
            builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), emit
