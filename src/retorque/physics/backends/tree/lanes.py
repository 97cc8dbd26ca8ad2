"""Eight numbers beside each other as one value of compiled code: a vector register, or as many as the machine needs.

Loops over eight neighbours are left scalar by the compiler, since it cannot know that what is stored is not what is
loaded next. Here a load, a sum and a store are one instruction each, whatever lies where.

    load(w, at), loads(w, at, 3)         eight numbers from `at` on; a tuple of such, eight apart
    store(w, at, x), stores(w, at, (x, y))  the reverse; a single number is stored eight times
    spread(w, at)                        one number eight times
    dot(a, i, b, j, 6)                   sum of six products, lane by lane
    x + y, x - y, x * y, x / y, -x       lane by lane; one of the two may be a single number
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import extending
from numba.core import types
from numba.core.datamodel import models
from numba.extending import lower_builtin, register_model, type_callable

LANES = 8
"""Knots in a block, numbers in a value."""
DOUBLE = ir.DoubleType()
VECTOR = ir.VectorType(DOUBLE, LANES)
FAST = ("contract", "nsz", "arcp", "reassoc")
"""Freedom of the arithmetic: that of `kernel`."""
intrinsic: Any = extending.intrinsic
"""Calls in compiled code have an argument less than what is decorated: a checker of types cannot know."""
OPERATORS = {
    operator.add: "fadd",
    operator.sub: "fsub",
    operator.mul: "fmul",
    operator.truediv: "fdiv",
    operator.iadd: "fadd",
    operator.isub: "fsub",
    operator.imul: "fmul",
}


class LanesType(types.Type):
    """As the compiler of Python sees it."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


LANES_TYPE = LanesType()


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):
    """As the machine has it."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


def _splat(builder: Any, number: Any) -> Any:
    """One number eight times."""
    none = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(none, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, none, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _vector(builder: Any, kind: Any, value: Any) -> Any:
    return value if isinstance(kind, LanesType) else _splat(builder, value)


def _place(context: Any, builder: Any, kind: Any, array: Any, at: Any, further: int = 0) -> Any:
    """Address of the eight numbers from `at` on, `further` blocks of eight later."""
    data = context.make_array(kind)(context, builder, array).data
    moved = builder.add(at, ir.Constant(at.type, LANES * further)) if further else at
    return builder.bitcast(builder.gep(data, [moved]), VECTOR.as_pointer())


@intrinsic
def load(typing: Any, array: Any, at: Any) -> Any:
    """Eight numbers from `at` on."""

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.load(_place(context, builder, signature.args[0], given[0], given[1]), align=8)

    return LANES_TYPE(array, types.int64), made


@intrinsic(prefer_literal=True)
def loads(typing: Any, array: Any, at: Any, count: Any) -> Any:
    """A tuple of `count` times eight numbers."""
    size = count.literal_value

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        places = [_place(context, builder, signature.args[0], given[0], given[1], k) for k in range(size)]
        return context.make_tuple(builder, signature.return_type, [builder.load(x, align=8) for x in places])

    return types.UniTuple(LANES_TYPE, size)(array, types.int64, count), made


@intrinsic
def spread(typing: Any, array: Any, at: Any) -> Any:
    """The number at `at`, eight times."""

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, given[0]).data
        return _splat(builder, builder.load(builder.gep(data, [given[1]])))

    return LANES_TYPE(array, types.int64), made


@intrinsic
def store(typing: Any, array: Any, at: Any, value: Any) -> Any:
    """Eight numbers, or one eight times, to `at`."""
    kind = value if isinstance(value, LanesType) else types.float64

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place = _place(context, builder, signature.args[0], given[0], given[1])
        builder.store(_vector(builder, signature.args[2], given[2]), place, align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, kind), made


@intrinsic
def stores(typing: Any, array: Any, at: Any, values: Any) -> Any:
    """A tuple of values, eight apart."""

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        for k, kind in enumerate(signature.args[2]):
            value = _vector(builder, kind, builder.extract_value(given[2], k))
            builder.store(value, _place(context, builder, signature.args[0], given[0], given[1], k), align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, values), made


@intrinsic(prefer_literal=True)
def dot(typing: Any, left: Any, i: Any, right: Any, j: Any, count: Any) -> Any:
    """Sum of `count` products of what lies from `i` and from `j` on."""
    size = count.literal_value

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        total = None
        for k in range(size):
            a = builder.load(_place(context, builder, signature.args[0], given[0], given[1], k), align=8)
            b = builder.load(_place(context, builder, signature.args[2], given[2], given[3], k), align=8)
            product = builder.fmul(a, b, flags=FAST)
            total = product if total is None else builder.fadd(total, product, flags=FAST)
        return total

    return LANES_TYPE(left, types.int64, right, types.int64, count), made


def _lane_by_lane(name: str) -> Callable[..., Any]:
    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        values = [_vector(builder, kind, value) for kind, value in zip(signature.args, given, strict=True)]
        return getattr(builder, name)(*values, flags=FAST)

    return made


def _typed(context: Any) -> Callable[..., Any]:
    def typer(left: Any, right: Any) -> Any:
        kinds = (LanesType, types.Float)
        both = isinstance(left, kinds) and isinstance(right, kinds)
        return LANES_TYPE if both and LANES_TYPE in (left, right) else None

    return typer


for _operator, _name in OPERATORS.items():
    type_callable(_operator)(_typed)
    for _left, _right in ((LanesType, LanesType), (LanesType, types.Float), (types.Float, LanesType)):
        lower_builtin(_operator, _left, _right)(_lane_by_lane(_name))


@type_callable(operator.neg)
def _negative(context: Any) -> Callable[..., Any]:
    return lambda value: LANES_TYPE if isinstance(value, LanesType) else None


lower_builtin(operator.neg, LanesType)(_lane_by_lane("fneg"))
