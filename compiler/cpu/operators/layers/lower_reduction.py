"""Many numbers as one: sums, averages, the largest, and where that is."""

from __future__ import annotations

from math import prod

from .....isa.arithmetic import INT32_HIGH
from ....expression.expression import (
    BOOL,
    Axis,
    Constant,
    Expression,
    Reduction,
    both,
    either,
    largest,
    least,
    product_over,
    select,
    total,
)
from ....expression.tensor import Tensor, compute, reduce_axis
from ....graph.operation import normalize_axes
from ....graph.operations.layers.reduction import ORDER, Arg, Reduce, ReduceKind
from ....graph.types import TensorType
from ...registry import Operand, lowers
from ..lowering import (
    Axes,
    clamp,
    clamp_result,
    each,
    is_nan,
    name_of,
    nonzero,
    number,
    saturate,
    working,
)
from ..rescaling import WIDE, scale_and_round, store_result
from ..sums import reduce_values

COMBINERS = {ReduceKind.SUM: total, ReduceKind.MEAN: total, ReduceKind.PROD: product_over,
             ReduceKind.MAX: largest, ReduceKind.MIN: least}


class Places:
    """Where an operand is read while some of its axes are reduced."""

    def __init__(self, x: Operand, axes: tuple[int, ...], keep: bool):
        self.x, self.keep = x, keep
        self.gone = normalize_axes(axes, len(x.type.shape))
        self.extents = [x.type.shape[axis] for axis in self.gone]
        self.kept = [axis for axis in range(len(x.type.shape)) if axis not in self.gone]

    def at(self, i: Axes, reduced: Axes) -> Expression:
        """The element at axes of the result and axes that are reduced."""
        own = [i[axis] for axis in self.kept] if self.keep else list(i)
        indices = dict(zip(self.kept, own, strict=True))
        indices |= dict(zip(self.gone, reduced, strict=True))
        return self.x.tensor[tuple(indices[axis] for axis in sorted(indices))]


@lowers(Reduce)
def reduce(operation: Reduce, result: TensorType, x: Operand) -> Tensor:
    places, kind = Places(x, operation.axes, operation.keep), operation.kind
    if not prod(places.extents):
        return each(operation, result, lambda i: _reduce_nothing(operation, result, x.type))
    if operation.scales:
        return _reduce_quantized(operation, result, places)
    wide = _wide(kind, x.type, prod(places.extents))

    def value(i: Axes, reduced: Axes) -> Expression:
        return places.at(i, reduced).cast(wide)

    found = reduce_values(kind.value, result.shape, places.extents, value, COMBINERS[kind])
    count = prod(places.extents)

    def element(i: Axes) -> Expression:
        value: Expression = found[i]
        if kind == ReduceKind.MEAN and not x.type.is_float:
            low, high = operation.bounds(result)
            return saturate(clamp(value.cast("float64") / count, low, high), result.dtype)
        if kind == ReduceKind.MEAN:
            value = value / count
        if operation.wraps(x.type):
            return value.cast(result.dtype)
        if result.dtype == BOOL:
            value = nonzero(value)
        return clamp_result(operation, result, value)

    return each(operation, result, element)


def _wide(kind: ReduceKind, x: TensorType, count: int = 1) -> str:
    """The type that so many numbers are summed in."""
    if x.dtype == BOOL:
        return "uint8"
    if x.is_float or kind in ORDER:
        return working(x.dtype)
    if kind == ReduceKind.MEAN and x.dtype in (WIDE, "uint64"):
        return "float64"        # whose sums do not wrap
    if kind != ReduceKind.PROD and count * max(map(abs, x.range)) <= INT32_HIGH:
        return "int32"
    return "uint64" if x.dtype == "uint64" else WIDE


def _reduce_nothing(operation: Reduce, result: TensorType, x: TensorType) -> Expression:
    if operation.scales:
        return clamp_result(operation, result,
                            Constant(result.require_quantization().zero_point, WIDE))
    if operation.kind in ORDER:
        value = number(operation.identity(x), working(x.dtype))
    else:
        value = number({ReduceKind.SUM: 0, ReduceKind.PROD: 1}.get(operation.kind, float("nan")),
                       working(x.dtype))
    return clamp_result(operation, result, value)


def _reduce_quantized(operation: Reduce, result: TensorType, places: Places) -> Tensor:
    zero = places.x.type.require_quantization().zero_point
    sums = reduce_values("sum", result.shape, places.extents,
                         lambda i, r: places.at(i, r).cast("int32") - zero, total)
    return each(operation, result, lambda i: store_result(
        operation, result, scale_and_round(sums[i], operation.scales, operation.rounding)))


@lowers(Arg)
def arg(operation: Arg, result: TensorType, x: Operand) -> Tensor:
    """The largest number first, then the first place that has it."""
    places = Places(x, (operation.axis,), operation.keep)
    wide = _wide(operation.kind, x.type)
    highest = operation.kind == ReduceKind.MAX

    def value(i: Axes, reduced: Axes) -> Expression:
        return places.at(i, reduced).cast(wide)

    best = reduce_values("best", result.shape, places.extents, value, largest if highest else least)
    axis = reduce_axis("place", places.extents[0])
    found = compute("place", result.shape, lambda *i: _first(
        operation.last, axis, _is_best(value(i, (axis,)), best[i], x.type.is_float)))
    return compute(name_of(operation), result.shape, lambda *i: found[i].cast(result.dtype))


def _is_best(value: Expression, best: Expression, is_float: bool) -> Expression:
    """Whether a number is the best; what is no number is better than all."""
    same = value.equals(best)
    return either(same, both(is_nan(value), is_nan(best))) if is_float else same


def _first(last: bool, axis: Axis, here: Expression) -> Reduction:
    place = axis.cast("int32")
    if last:
        return largest(select(here, place, -1), axis)
    return least(select(here, place, axis.extent), axis)
