"""Operations that move numbers and compute nothing."""

from __future__ import annotations

from math import prod

from ....expression.expression import (
    Axis,
    Constant,
    Expression,
    Select,
    as_expression,
    both,
    maximum,
    minimum,
)
from ....expression.tensor import Tensor
from ....graph.operation import normalize_axis
from ....graph.operations.data_movement.shape import Concat, Pad, PadMode, Reshape, Slice, Transpose
from ....graph.types import Shape, TensorType
from ....nest.nest import Access, Assign, Buffer, Loop, Nest, Statement, make_sequence
from ...registry import BufferOperand, Operand, lowers, lowers_to_nest
from ..lowering import Axes, each, number


@lowers(Reshape)
def reshape(operation: Reshape, result: TensorType, x: Operand) -> Tensor:
    return each(operation, result,
                lambda i: x.tensor[reshape_indices(i, result.shape, x.type.shape)])


def reshape_indices(axes: Axes, after: Shape, before: Shape) -> Axes:
    """The indices in one shape that are those of another. Axes that go together, for they have as
    many elements, are taken apart together: whatever is only split stays a sum."""
    found: list[Expression] = []
    place = 0
    first = 0
    while first < len(before) or place < len(after):
        inside, outside = first, place
        many, few = 1, 1
        while True:             # at least one of each, and as many elements in both
            if (many <= few and inside < len(before)) or outside == len(after):
                if inside == len(before):
                    break
                many, inside = many * before[inside], inside + 1
            else:
                few, outside = few * after[outside], outside + 1
            if many == few and inside > first and outside > place:
                break
        linear = _linear(axes[place:outside], after[place:outside])
        found += _unravel(linear, before[first:inside])
        first, place = inside, outside
    return tuple(found)


def _linear(axes: Axes, sizes: Shape) -> Expression:
    total: Expression = Constant(0)
    for axis, size in zip(axes, sizes, strict=True):
        total = total * size + (0 if size == 1 else axis)
    return total


def _unravel(linear: Expression, sizes: Shape) -> list[Expression]:
    """An index among all elements as one for each axis."""
    found = []
    for place, size in enumerate(sizes):
        rest = prod(sizes[place + 1:])
        index = linear // rest
        outermost = prod(sizes[:place]) == 1
        found.append(as_expression(0) if size == 1 else index if outermost else index % size)
    return found


@lowers(Transpose)
def transpose(operation: Transpose, result: TensorType, x: Operand) -> Tensor:
    places = [operation.order.index(axis) for axis in range(len(operation.order))]
    return each(operation, result, lambda i: x.tensor[tuple(i[place] for place in places)])


@lowers(Slice)
def part(operation: Slice, result: TensorType, x: Operand) -> Tensor:
    return each(operation, result, lambda i: x.tensor[tuple(
        axis * step + start if size > 1 else as_expression(start)
        for axis, start, step, size in zip(i, operation.starts, operation.steps, result.shape,
                                           strict=True))])


@lowers_to_nest(Concat)
def concat(operation: Concat, result: TensorType, target: Buffer, *parts: BufferOperand) -> Nest:
    """One part after the other is copied: a choice between them would be made for each element."""
    place = normalize_axis(operation.axis, len(result.shape))
    copies = []
    start = 0
    for each_part in parts:
        if not each_part.type.size:
            continue
        axes = [Axis(f"i{axis}", size) for axis, size in enumerate(each_part.type.shape)]
        there = tuple(axis + start if number == place else axis
                      for number, axis in enumerate(axes))
        copy: Statement = Assign(Access(target, there), Access(each_part.buffer, tuple(axes)))
        for axis in reversed(axes):
            copy = Loop(axis, copy)
        copies.append(copy)
        start += each_part.type.shape[place]
    inputs = dict.fromkeys(each_part.buffer for each_part in parts if each_part.type.size)
    return Nest(tuple(inputs), (target,), make_sequence(*copies))


@lowers(Pad)
def pad(operation: Pad, result: TensorType, x: Operand) -> Tensor:
    sizes = x.type.shape
    if operation.mode == PadMode.CONSTANT:
        return each(operation, result, lambda i: pad_element(
            x, i, operation.before, number(operation.value, x.type.dtype)))
    return each(operation, result, lambda i: x.tensor[tuple(
        _near(axis - before, size, operation.mode) if before or after else axis
        for axis, before, after, size in zip(i, operation.before, operation.after, sizes,
                                             strict=True))])


def pad_element(x: Operand, i: Axes, before: tuple[int, ...], border: Constant) -> Expression:
    """An element of a tensor with a border of one number around it, whose widths before each axis
    are these."""
    if not x.type.size:
        return border
    inside, there = [], []
    for axis, width, size in zip(i, before, x.type.shape, strict=True):
        index = axis - width
        there.append(index)
        if isinstance(axis, Axis) and not -size < width < axis.extent:
            return border               # with all of it cut off
        if width:
            inside.append(index >= 0)
        if not isinstance(axis, Axis) or axis.extent > width + size:
            inside.append(index < size)
    value = x.tensor[tuple(there)]
    return Select(both(*inside), value, border) if inside else value


def _near(index: Expression, size: int, mode: PadMode) -> Expression:
    """The place inside that a place in a border is a copy of."""
    if mode == PadMode.WRAP:
        return index % size
    if mode == PadMode.EDGE or size == 1:
        return minimum(maximum(index, 0), size - 1)
    # Reflections repeat: back and forth, with both ends twice or once.
    both_ways = 2 * size if mode == PadMode.SYMMETRIC else 2 * size - 2
    forth = index % both_ways
    back = both_ways - (mode == PadMode.SYMMETRIC) - forth
    return minimum(minimum(forth, back), size - 1)


