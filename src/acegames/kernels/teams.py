"""The threads of a warp that solve a stage program together, each in its seat.

Work is cut into *phases*. A phase runs once in every seat and does the seat's share; what one seat
writes in a phase, no other one reads or writes in it. What stands between phases only reads, and
every thread runs it alike, so that all go the same way. A phase `f` of a `team` is written

    for k in range(seats(team)):
        f(seat_of(k, team), ...)
    wait(team)

and a `wait` more stands before a phase that writes what was read since the last one (`lockstep`,
`written`, `phases`). That is all that a GPU asks for: where two threads come to one place and one
of them writes, both have waited in between; and all threads of the warp, which is a block of its
own, come to every `wait`. `tests/kernels/test_races.py` watches each access, and sees that no
`wait` can be left out.

On a processor a program has one seat, `team` is None and all this costs nothing. On a GPU each
thread of a `Team` has a seat. A processor that stands for a team, in tests, goes through all its
seats, in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from acegames.kernels.lanes import INDEX, WHOLE, on_gpu
from acegames.system.compiled import inlined

WARP = 32  # threads of a GPU that go the same way, or wait
ACROSS = 8  # of them side by side along the rows of a table, the others below
SCANNERS = 8  # that look through a list; fewer than all, because all look at what these find


class Team(NamedTuple):
    """A warp."""

    order: int  # less than WARP: in which a processor goes through the seats


def _is_shared(kind: Any) -> bool:
    """Return whether a team, or a seat, is one of a warp."""
    return isinstance(kind, (types.BaseTuple, types.Integer))


def _called(builder: Any, name: str, result: Any, *values: Any) -> Any:
    known = builder.module.globals
    function = known.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(result, [x.type for x in values]), name)
    return builder.call(function, values)


# -- teams ----------------------------------------------------------------------------------------


@intrinsic
def seats(context, team):
    """Return how many seats this thread goes through."""

    def emit(context, builder, signature, values):
        return WHOLE(WARP if _is_shared(team) and not on_gpu(context) else 1)

    return types.int64(team), emit


@intrinsic
def seat_of(context, k, team):
    """Return the k-th of these."""

    def emit(context, builder, signature, values):
        if not _is_shared(team):
            return context.get_dummy_value()
        if on_gpu(context):
            return builder.zext(_called(builder, "llvm.nvvm.read.ptx.sreg.tid.x", INDEX), WHOLE)
        return builder.xor(context.cast(builder, values[0], k, types.int64), builder.extract_value(values[1], 0))

    return (types.int64 if _is_shared(team) else types.none)(k, team), emit


@intrinsic
def meet(context, team):
    """Return where each thread works by itself: go on once all threads of the block are here.

    They need nothing of each other, but then they read the same code at about the same time, and a
    GPU keeps little of it at hand. All threads must come here equally often.
    """

    def emit(context, builder, signature, values):
        if not _is_shared(team) and on_gpu(context):
            builder.function.attributes.add("convergent")
            _called(builder, "llvm.nvvm.barrier0", ir.VoidType())
        return context.get_dummy_value()

    return types.none(team), emit


@intrinsic
def wait(context, team):
    """Go on once all threads of the warp are here, and see what they have written."""

    def emit(context, builder, signature, values):
        if _is_shared(team) and on_gpu(context):
            builder.function.attributes.add("convergent")  # its calls stay where all threads come to
            _called(builder, "llvm.nvvm.bar.warp.sync", ir.VoidType(), INDEX(-1))
        return context.get_dummy_value()

    return types.none(team), emit


# -- seats ----------------------------------------------------------------------------------------


def _number(alone: int, shared: Callable[..., Any]) -> Any:
    """Return a number of a seat or a team, known beforehand where there is only one seat."""

    def typed(context, seat):
        def emit(context, builder, signature, values):
            return shared(builder, values[0]) if _is_shared(seat) else WHOLE(alone)

        return types.int64(seat), emit

    return intrinsic(typed)


rank = _number(0, lambda builder, seat: seat)
size_of = _number(1, lambda builder, seat: WHOLE(WARP))
scanners = _number(1, lambda builder, seat: WHOLE(SCANNERS))
_column = _number(0, lambda builder, seat: builder.urem(seat, WHOLE(ACROSS)))
_row = _number(0, lambda builder, seat: builder.udiv(seat, WHOLE(ACROSS)))
_down = _number(1, lambda builder, seat: WHOLE(WARP // ACROSS))


@inlined
def mine(seat, count):
    """Return the share of a seat in `count` things."""
    return range(rank(seat), count, size_of(seat))


@inlined
def leads(seat):
    """Return whether a seat does what one alone must do."""
    return rank(seat) == 0


@inlined
def my_rows(seat, count):
    """Return the rows of a table of which a seat has some columns."""
    return range(_row(seat), count, _down(seat))


@inlined
def my_fours(seat, count):
    """Return the columns that it has of these, the first of each four; the others follow ACROSS
    apart.
    """
    return range(_column(seat), count, 4 * ACROSS)
