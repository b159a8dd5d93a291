"""Threads that solve a stage program together, each in its seat.

Work is cut into *phases*. A phase runs once in every seat and does the seat's share: no seat reads
what another one writes in the same phase. What stands between phases only reads, and every thread
runs it alike, so that all go the same way. A phase `f` of a `team` is written

    for k in range(seats(team)):
        f(seat_of(k, team), ...)
    wait(team)

On a processor a program has one seat, `team` is None and all this costs nothing. On a GPU each
thread of a `Team` has a seat, and they wait for each other. A processor that stands for a team, in
tests, goes through all its seats, in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from acegames.kernels.lanes import WHOLE, on_gpu
from acegames.system.compiled import inlined

WARP = 32  # threads of a GPU that go the same way, or wait
SCANNING = 4  # one seat of so many looks through a list
SEAT = types.UniTuple(types.int64, 3)  # its number, and size and width of its team


class Team(NamedTuple):
    """How many work on a program; powers of two."""

    size: int  # up to WARP
    across: int  # of them side by side along the rows of a table, the others below
    order: int  # less than size: in which a processor goes through the seats


def best_across(size: int, rows: int, width: int) -> int:
    """The width of a team with which it is done first with a table."""
    widths = [1 << k for k in range(size.bit_length())]
    return min(reversed(widths), key=lambda across: -(-width // across) * -(-rows // (size // across)))


def _is_team(kind: Any) -> bool:
    return isinstance(kind, types.BaseTuple)


def _thread(builder: Any) -> Any:
    """The number of a GPU's thread in its block."""
    return builder.zext(_called(builder, "llvm.nvvm.read.ptx.sreg.tid.x", ir.IntType(32)), WHOLE)


def _called(builder: Any, name: str, result: Any, *values: Any) -> Any:
    known = builder.module.globals
    function = known.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(result, [x.type for x in values]), name)
    return builder.call(function, values)


# -- teams ----------------------------------------------------------------------------------------


@intrinsic
def size_of(context, team):
    """How many threads a team has."""

    def emit(context, builder, signature, values):
        return builder.extract_value(values[0], 0) if _is_team(team) else WHOLE(1)

    return types.int64(team), emit


@intrinsic
def seats(context, team):
    """How many seats this thread goes through."""

    def emit(context, builder, signature, values):
        return builder.extract_value(values[0], 0) if _is_team(team) and not on_gpu(context) else WHOLE(1)

    return types.int64(team), emit


@intrinsic
def seat_of(context, k, team):
    """The k-th of these."""

    def emit(context, builder, signature, values):
        if not _is_team(team):
            return context.get_dummy_value()
        size, across, order = (builder.extract_value(values[1], field) for field in range(3))
        number = builder.xor(context.cast(builder, values[0], k, types.int64), order)
        if on_gpu(context):
            number = builder.and_(_thread(builder), builder.sub(size, WHOLE(1)))
        return context.make_tuple(builder, SEAT, [number, size, across])

    return (SEAT if _is_team(team) else types.none)(k, team), emit


@intrinsic
def wait(context, team):
    """Go on once all threads of the team are here, and see what they have written."""

    def emit(context, builder, signature, values):
        if _is_team(team) and on_gpu(context):
            size, one = builder.extract_value(values[0], 0), WHOLE(1)
            first = builder.and_(_thread(builder), builder.sub(WHOLE(WARP), size))
            all_of_them = builder.shl(builder.sub(builder.shl(one, size), one), first)
            _called(builder, "llvm.nvvm.bar.warp.sync", ir.VoidType(), builder.trunc(all_of_them, ir.IntType(32)))
        return context.get_dummy_value()

    return types.none(team), emit


# -- seats ----------------------------------------------------------------------------------------


def _number(alone: int, emit: Callable[..., Any]) -> Any:
    """A number of a seat, known beforehand where there is only one."""

    def typed(context, seat):
        def lower(context, builder, signature, values):
            if not _is_team(seat):
                return WHOLE(alone)
            return emit(builder, *(builder.extract_value(values[0], field) for field in range(3)))

        return types.int64(seat), lower

    return intrinsic(typed)


rank = _number(0, lambda builder, number, size, across: number)
_step = _number(1, lambda builder, number, size, across: size)
_column = _number(0, lambda builder, number, size, across: builder.and_(number, builder.sub(across, WHOLE(1))))
_across = _number(1, lambda builder, number, size, across: across)
_row = _number(0, lambda builder, number, size, across: builder.udiv(number, across))
_down = _number(1, lambda builder, number, size, across: builder.udiv(size, across))
_scanning = _number(1, lambda builder, number, size, across: builder.udiv(size, WHOLE(SCANNING)))


@inlined
def mine(seat, count):
    """The share of a seat in `count` things."""
    return range(rank(seat), count, _step(seat))


@inlined
def is_mine(seat, k):
    """Whether thing k is in the share of a seat."""
    return k % _step(seat) == rank(seat)


@inlined
def leads(seat):
    """Whether a seat does what one alone must do."""
    return rank(seat) == 0


@inlined
def my_rows(seat, count):
    """The rows of a table of which a seat has some columns."""
    return range(_row(seat), count, _down(seat))


@inlined
def my_columns(seat, count):
    """The columns that it has of these."""
    return range(_column(seat), count, _across(seat))


@inlined
def scanners(seat):
    """How many seats look through a list; fewer than all, because all look at what these find."""
    return max(_scanning(seat), 1)
