"""What lowerings have in common: numbers at the place of a result's, in the precision that is
computed with, and within bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from ...expression.expression import (
    BOOL,
    LIMITS,
    Constant,
    Expression,
    as_expression,
    binary,
    maximum,
    minimum,
    select,
)
from ...expression.functions import truncate
from ...expression.tensor import Tensor, compute, constant
from ...graph.operation import Operation
from ...graph.operations.scaled import Clamped
from ...graph.types import Array, TensorType
from ..registry import Operand

Each = TypeVar("Each")
Axes = tuple[Expression, ...]
Element = Callable[[Axes], Expression]
EXACT = {"float32": 24, "float64": 53}      # bits of whole numbers that a type holds


def each(operation: Operation, result: TensorType, element: Element) -> Tensor:
    """The result of an operation, element by element."""
    return compute(name_of(operation), result.shape, lambda *i: element(i))


def name_of(operation: Operation) -> str:
    return operation.title().replace(" ", "_")


def at(x: Operand, axes: Axes) -> Expression:
    """The element of an operand, which is repeated to meet the result, at a place of the result."""
    own = axes[len(axes) - len(x.type.shape):]
    return x.tensor[tuple(0 if size == 1 else axis
                          for axis, size in zip(own, x.type.shape, strict=True))]


def working(dtype: str) -> str:
    """The type that is computed with: half precision is only for keeping numbers."""
    return "float32" if dtype == "float16" else dtype


def real(x: Operand, axes: Axes) -> Expression:
    """An element as the type that is computed with."""
    return at(x, axes).cast(working(x.type.dtype))


def number(value: float, dtype: str) -> Constant:
    """A number as a type holds it: reals lose their fraction where that has none."""
    return Constant(np.asarray(value).astype(dtype).item(), dtype)


def nonzero(value: Expression) -> Expression:
    return value if value.dtype == BOOL else binary("!=", value, as_expression(0, value.dtype))


def is_nan(value: Expression) -> Expression:
    """Whether a real number is none."""
    return binary("!=", value, value)


def clamp(value: Expression, low: float | None, high: float | None) -> Expression:
    """A number within bounds; those that its type has anyway are left out."""
    least, largest = LIMITS.get(value.dtype, (None, None))
    if low is not None and low != least:
        value = maximum(value, low)
    if high is not None and high != largest:
        value = minimum(value, high)
    return value


def clamp_result(operation: Clamped, result: TensorType, value: Expression) -> Expression:
    """What an operation with bounds stores of a value."""
    unbounded = operation.low is None and operation.high is None
    if unbounded and value.dtype in (result.dtype, working(result.dtype)):
        return value.cast(result.dtype)
    if result.dtype == BOOL:
        return nonzero(clamp(value.cast("float32"), operation.low, operation.high))
    return clamp(value, *operation.bounds(result)).cast(result.dtype)


def saturate(value: Expression, dtype: str) -> Expression:
    """A real number as an integer: without its fraction, as near as the type goes, and 0 if it is
    no number."""
    low, high = LIMITS[dtype]
    known = select(is_nan(value), 0, value)
    if high < 1 << EXACT[value.dtype]:
        return clamp(known, low, high).cast(dtype)
    if high < 1 << EXACT["float64"]:
        return saturate(known.cast("float64"), dtype)
    inside = select(known < float(high), maximum(known, float(low)), 0)     # high rounds up
    return select(known < float(high), inside.cast(dtype), high)


def round_half_away(value: Expression) -> Expression:
    """The nearest whole number, of two the one away from zero."""
    whole = truncate(value)
    rest = value - whole                        # exact
    up = select(rest >= 0.5, whole + 1, whole)
    return select(rest <= -0.5, whole - 1, up)


def table(name: str, values: Array, index: Expression) -> Expression:
    """A constant for each index of an axis; a single number if they are all the same."""
    if (values == values.flat[0]).all():
        return as_expression(values.flat[0].item(), values.dtype.name)
    return constant(name, values)[index]


def index_table(name: str, places: Array, index: Expression) -> Expression:
    """Places along an axis, as few sums and quotients of the result's index as they are, and else
    as a table."""
    count, last = len(places), int(places.max())
    here = np.arange(count)
    if count == 1 or (places == places[0]).all():
        return as_expression(int(places[0]))
    for step in {int(places[1] - places[0]), 1}:
        if (places == places[0] + here * step).all():
            return index * step + int(places[0])
    for factor in range(2, count):
        if places[factor] != places[0]:
            if (places == places[0] + here // factor).all():
                return index // factor + int(places[0])
            break
    known = constant(name, places.astype(np.int32))[index].cast("index")
    return maximum(minimum(known, last), 0)


def with_axis(axes: Sequence[Each], place: int, index: Each) -> tuple[Each, ...]:
    """Axes with another one in a place."""
    return (*axes[:place], index, *axes[place + 1:])
