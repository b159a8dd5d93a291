"""Work that threads share inside kernels, without the interpreter's lock."""

from __future__ import annotations

from numba import types
from numba.extending import intrinsic


@intrinsic
def take(context, counter, number):
    """Add to counter[0] and return what it was before: no two threads get the same."""

    def emit(context, builder, signature, values):
        place = context.make_array(signature.args[0])(context, builder, values[0]).data
        more = context.cast(builder, values[1], signature.args[1], types.int64)
        return builder.atomic_rmw("add", place, more, "monotonic")

    return types.int64(counter, number), emit
