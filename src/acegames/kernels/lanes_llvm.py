"""What the operations of `lanes` are compiled to, under the same names: a vector type for kernels.

`Lanes` holds eight floats, `Choice` a truth value for each. Operations work on all of them at once
and round as they do on single numbers, so that an answer is the same to the last bit. Numbers mixed
with lanes count for all of them. Memory is an array of shape (places, 8): place i holds eight
numbers, one per lane. Indices are not checked.

On a GPU every thread is a lane by itself: there `Lanes` is one float, `lane_count` is 1, and memory
(places, 1) may be any view, so that the memories of neighbours can lie side by side.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from acegames.kernels.lanes import LANES

INDEX, WHOLE, BITS = ir.IntType(32), ir.IntType(64), ir.IntType(LANES)
VECTOR, MASK = ir.VectorType(ir.DoubleType(), LANES), ir.VectorType(ir.IntType(1), LANES)


class LanesType(types.Type):  # type: ignore[misc]
    """The type of eight floats."""

    def __init__(self) -> None:
        super().__init__("lanes")


class ChoiceType(types.Type):  # type: ignore[misc]
    """The type of eight truth values."""

    def __init__(self) -> None:
        super().__init__("choice")


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


@register_model(ChoiceType)
class _ChoiceModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, MASK)


lanes, choice = LanesType(), ChoiceType()
ALONE = ((LanesType, ir.DoubleType()), (ChoiceType, ir.IntType(1)))  # what they are on a GPU


def on_gpu(context: Any) -> bool:
    """Return whether this is compiled for a GPU, where lanes are single numbers."""
    return not isinstance(context.get_value_type(lanes), ir.VectorType)


# -- operators ------------------------------------------------------------------------------------


def _broadcast(context: Any, builder: Any, value: Any, kind: Any) -> Any:
    """Return a number in all lanes; lanes as they are."""
    if kind is lanes:
        return value
    number = context.cast(builder, value, kind, types.float64)
    if on_gpu(context):
        return number
    first = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), number, INDEX(0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(INDEX, LANES), [0] * LANES))


def _define(operation: Any, result: Any, emit: Callable[..., Any]) -> None:
    """Define an operation of two lanes, or of lanes and a number."""

    @type_callable(operation)  # type: ignore[untyped-decorator]
    def typed(context: Any) -> Any:
        def of(a: Any, b: Any) -> Any:
            numbers = all(x is lanes or isinstance(x, types.Number) for x in (a, b))
            return result if numbers and lanes in (a, b) else None

        return of

    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        numbers = [_broadcast(context, builder, *x) for x in zip(values, signature.args, strict=True)]
        return (
            _quotient(builder, *numbers)
            if on_gpu(context) and operation is operator.truediv
            else emit(builder, *numbers)
        )

    for kinds in ((LanesType, LanesType), (LanesType, types.Number), (types.Number, LanesType)):
        lower_builtin(operation, *kinds)(lower)


def _quotient(builder: Any, a: Any, b: Any) -> Any:
    """Return a / b on a GPU, whose division of zero takes long; b is positive where a is zero."""
    one, zero = ir.Constant(a.type, 1.0), builder.fcmp_ordered("==", a, ir.Constant(a.type, 0.0))
    return builder.select(zero, a, builder.fdiv(_opaque(builder, builder.select(zero, one, a)), b))


def _opaque(builder: Any, x: Any) -> Any:
    """Return a copy on a GPU, of which the compiler knows nothing."""
    copy = ir.InlineAsm(ir.FunctionType(ir.DoubleType(), [ir.DoubleType()]), "mov.f64 $0, $1;", "=d,d", True)
    return builder.call(copy, [x])


for _operation, _name in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _define(_operation, lanes, lambda builder, a, b, name=_name: getattr(builder, name)(a, b))
for _operation, _sign in (
    (operator.lt, "<"),
    (operator.le, "<="),
    (operator.gt, ">"),
    (operator.ge, ">="),
    (operator.eq, "=="),
):
    _define(_operation, choice, lambda builder, a, b, sign=_sign: builder.fcmp_ordered(sign, a, b))
for _operation, _sign in ((min, "<"), (max, ">")):
    _define(_operation, lanes, lambda builder, a, b, sign=_sign: builder.select(builder.fcmp_ordered(sign, a, b), a, b))


def _define_logical(operation: Any, name: str, count: int) -> None:
    """Define an operation of choices."""

    @type_callable(operation)  # type: ignore[untyped-decorator]
    def typed(context: Any) -> Any:
        return lambda *kinds: choice if kinds == (choice,) * count else None

    @lower_builtin(operation, *(ChoiceType,) * count)  # type: ignore[untyped-decorator]
    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return getattr(builder, name)(*values)


_define_logical(operator.and_, "and_", 2)
_define_logical(operator.or_, "or_", 2)
_define_logical(operator.invert, "not_", 1)


# -- functions ------------------------------------------------------------------------------------


@intrinsic
def vectorized(context):
    return types.boolean(), lambda context, builder, signature, values: ir.IntType(1)(1)


@intrinsic
def broadcast(context, x):
    return lanes(x), lambda context, builder, signature, values: _broadcast(
        context, builder, values[0], signature.args[0]
    )


@intrinsic
def where(context, chosen, a, b):
    def emit(context, builder, signature, values):
        a, b = (_broadcast(context, builder, values[k], signature.args[k]) for k in (1, 2))
        return builder.select(values[0], a, b)

    return lanes(chosen, a, b), emit


@intrinsic
def absolute(context, x):
    def emit(context, builder, signature, values):
        kind = values[0].type
        name = "llvm.nvvm.fabs.d" if on_gpu(context) else f"llvm.fabs.v{LANES}f64"
        return builder.call(builder.module.declare_intrinsic(name, fnty=ir.FunctionType(kind, [kind])), values)

    return lanes(x), emit


@intrinsic
def opaque(context, x):
    def emit(context, builder, signature, values):
        return _opaque(builder, values[0]) if on_gpu(context) else values[0]

    return lanes(x), emit


@intrinsic
def any_lane(context, chosen):
    def emit(context, builder, signature, values):
        if on_gpu(context):
            return values[0]
        return builder.icmp_unsigned("!=", builder.bitcast(values[0], BITS), BITS(0))

    return types.boolean(chosen), emit


@intrinsic
def lane_count(context, memory):
    def emit(context, builder, signature, values):
        return WHOLE(1 if on_gpu(context) else LANES)

    return types.int64(memory), emit


# -- memory ---------------------------------------------------------------------------------------


def _element(context: Any, builder: Any, array: tuple[Any, Any], *counts: tuple[Any, Any]) -> Any:
    """Return the address of a place of a memory: the sum of the counts, given with their types."""
    place = WHOLE(0)
    for value, kind in counts:
        place = builder.add(place, context.cast(builder, value, kind, types.int64))
    memory = context.make_array(array[1])(context, builder, array[0])
    if not on_gpu(context):
        return builder.gep(memory.data, [builder.mul(place, WHOLE(LANES))])
    begin = builder.bitcast(memory.data, ir.IntType(8).as_pointer())
    at = builder.gep(begin, [builder.mul(place, builder.extract_value(memory.strides, 0))])
    return builder.bitcast(at, memory.data.type)


def _pointer(builder: Any, place: Any, kind: Any) -> Any:
    return builder.bitcast(place, kind.as_pointer())


def _several(values: Any, signature: Any) -> list[tuple[Any, Any]]:
    return list(zip(values, signature.args, strict=True))


@intrinsic
def get(context, memory, place):
    def emit(context, builder, signature, values):
        at = _element(context, builder, *_several(values, signature))
        if on_gpu(context):
            return context.cast(builder, builder.load(at), memory.dtype, types.float64)
        if memory.dtype == types.int64:
            vector = ir.VectorType(WHOLE, LANES)
            return builder.sitofp(builder.load(_pointer(builder, at, vector), align=8), VECTOR)
        return builder.load(_pointer(builder, at, VECTOR), align=8)

    return lanes(memory, place), emit


@intrinsic
def put(context, memory, place, x):
    def emit(context, builder, signature, values):
        at = _element(context, builder, *_several(values, signature)[:2])
        vector = _broadcast(context, builder, values[2], signature.args[2])
        if on_gpu(context):
            builder.store(context.cast(builder, vector, types.float64, memory.dtype), at)
            return context.get_dummy_value()
        if memory.dtype == types.int64:
            vector = builder.fptosi(vector, ir.VectorType(WHOLE, LANES))
        builder.store(vector, _pointer(builder, at, vector.type), align=8)
        return context.get_dummy_value()

    return types.none(memory, place, x), emit


@intrinsic
def gather(context, memory, where_to, row, begin):
    def emit(context, builder, signature, values):
        source, table, row, begin = _several(values, signature)
        places = _element(context, builder, table, row)
        if on_gpu(context):
            return builder.load(_element(context, builder, source, (builder.load(places), where_to.dtype), begin))
        gathered = ir.Constant(VECTOR, ir.Undefined)
        for lane in range(LANES):
            place = builder.load(builder.gep(places, [WHOLE(lane)])), types.int64
            at = builder.gep(_element(context, builder, source, place, begin), [WHOLE(lane)])
            gathered = builder.insert_element(gathered, builder.load(at), INDEX(lane))
        return gathered

    return lanes(memory, where_to, row, begin), emit


@intrinsic
def scatter(context, memory, where_to, row, begin, x):
    def emit(context, builder, signature, values):
        target, table, row, begin, _ = _several(values, signature)
        places = _element(context, builder, table, row)
        if on_gpu(context):
            builder.store(values[4], _element(context, builder, target, (builder.load(places), where_to.dtype), begin))
            return context.get_dummy_value()
        for lane in range(LANES):
            place = builder.load(builder.gep(places, [WHOLE(lane)])), types.int64
            at = builder.gep(_element(context, builder, target, place, begin), [WHOLE(lane)])
            builder.store(builder.extract_element(values[4], INDEX(lane)), at)
        return context.get_dummy_value()

    return types.none(memory, where_to, row, begin, x), emit
