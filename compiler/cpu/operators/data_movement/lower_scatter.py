"""Numbers written to places that indices name."""

from __future__ import annotations

from collections.abc import Callable

from ....expression.expression import BOOL, Axis, Expression, both, either, maximum, minimum
from ....graph.operation import normalize_axis
from ....graph.operations.data_movement.scatter import ScatterElements, ScatterKind, ScatterNd
from ....graph.types import TensorType
from ....nest.nest import Buffer, LoopKind, Nest, Statement, make_sequence
from ...registry import BufferOperand, lowers_to_nest
from ..lowering import with_axis, working
from ..nest_builders import assign, at, loop_over, nest_of
from .lower_indexing import wrap_index

Joined = Callable[[Expression, Expression], Expression]
NUMBERS: dict[ScatterKind, Joined] = {
    ScatterKind.REPLACE: lambda old, new: new, ScatterKind.ADD: lambda old, new: old + new,
    ScatterKind.MUL: lambda old, new: old * new, ScatterKind.MIN: minimum,
    ScatterKind.MAX: maximum}
TRUTH: dict[ScatterKind, Joined] = {
    ScatterKind.REPLACE: lambda old, new: new, ScatterKind.MIN: both, ScatterKind.MAX: either}


def _scatter(kind: ScatterKind, target: Buffer, x: BufferOperand, indices: BufferOperand,
             updates: BufferOperand,
             places: Callable[[tuple[Axis, ...]], tuple[Expression | int, ...]]) -> Nest:
    """The input, and then the updates at their places, one after the other."""
    wide = working(target.dtype)
    joined = (TRUTH if target.dtype == BOOL else NUMBERS)[kind]

    def update(axes: tuple[Axis, ...]) -> Statement:
        there = places(axes)
        value = joined(at(target, *there).cast(wide), at(updates.buffer, *axes).cast(wide))
        return assign(target, there, value.cast(target.dtype))

    copy = loop_over(target.shape, lambda axes: assign(target, axes, at(x.buffer, *axes)),
                     LoopKind.PARALLEL)
    body = make_sequence(copy, loop_over(updates.type.shape, update)) if updates.type.size else copy
    return nest_of(target, body, x, indices, updates)


@lowers_to_nest(ScatterElements)
def scatter_elements(operation: ScatterElements, result: TensorType, target: Buffer,
                     x: BufferOperand, indices: BufferOperand, updates: BufferOperand) -> Nest:
    axis = normalize_axis(operation.axis, len(result.shape))
    return _scatter(operation.kind, target, x, indices, updates, lambda axes: with_axis(
        axes, axis, wrap_index(at(indices.buffer, *axes), result.shape[axis])))


@lowers_to_nest(ScatterNd)
def scatter_nd(operation: ScatterNd, result: TensorType, target: Buffer, x: BufferOperand,
               indices: BufferOperand, updates: BufferOperand) -> Nest:
    depth, several = indices.type.shape[-1], len(indices.type.shape) - 1

    def places(axes: tuple[Axis, ...]) -> tuple[Expression | int, ...]:
        named = [wrap_index(at(indices.buffer, *axes[:several], place), result.shape[place])
                 for place in range(depth)]
        return (*named, *axes[several:])

    return _scatter(operation.kind, target, x, indices, updates, places)
