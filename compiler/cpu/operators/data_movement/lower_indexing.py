"""Operations that pick, repeat and rearrange numbers."""

from __future__ import annotations

from ....errors import CompileError
from ....expression.expression import Expression, Select, select
from ....expression.functions import check_index
from ....expression.tensor import Tensor
from ....graph.operation import normalize_axis
from ....graph.operations.data_movement.indexing import (
    Expand,
    Gather,
    GatherElements,
    GatherNd,
    OneHot,
    Tile,
)
from ....graph.types import TensorType
from ...registry import Operand, lowers
from ..lowering import Axes, at, each, number, with_axis


def wrap_index(index: Expression, size: int) -> Expression:
    """An index from the front, of an axis that must have it; a negative one counts from the end."""
    if not size:
        raise CompileError("an axis of no indices is indexed")
    place = index.cast("index")
    return check_index(select(place < 0, place + size, place), size)


@lowers(Gather)
def gather(operation: Gather, result: TensorType, x: Operand, indices: Operand) -> Tensor:
    axis = normalize_axis(operation.axis, len(x.type.shape))
    several = len(indices.type.shape) - operation.batch

    def element(i: Axes) -> Expression:
        named = indices.tensor[(*i[:operation.batch], *i[axis:axis + several])]
        return x.tensor[(*i[:axis], wrap_index(named, x.type.shape[axis]), *i[axis + several:])]

    return each(operation, result, element)


@lowers(GatherNd)
def gather_nd(operation: GatherNd, result: TensorType, x: Operand, indices: Operand) -> Tensor:
    depth, several = indices.type.shape[-1], len(indices.type.shape) - 1

    def element(i: Axes) -> Expression:
        named = [wrap_index(indices.tensor[(*i[:several], place)],
                            x.type.shape[operation.batch + place]) for place in range(depth)]
        return x.tensor[(*i[:operation.batch], *named, *i[several:])]

    return each(operation, result, element)


@lowers(GatherElements)
def gather_elements(operation: GatherElements, result: TensorType, x: Operand,
                    indices: Operand) -> Tensor:
    axis = normalize_axis(operation.axis, len(x.type.shape))
    return each(operation, result, lambda i: x.tensor[with_axis(
        i, axis, wrap_index(indices.tensor[i], x.type.shape[axis]))])


@lowers(Tile)
def tile(operation: Tile, result: TensorType, x: Operand) -> Tensor:
    return each(operation, result, lambda i: x.tensor[tuple(
        axis % size if count > 1 else axis
        for axis, size, count in zip(i, x.type.shape, operation.repeats, strict=True))])


@lowers(Expand)
def expand(operation: Expand, result: TensorType, x: Operand) -> Tensor:
    return each(operation, result, lambda i: at(x, i))


@lowers(OneHot)
def one_hot(operation: OneHot, result: TensorType, indices: Operand) -> Tensor:
    axis = normalize_axis(operation.axis, len(result.shape))
    on, off = (number(value, result.dtype) for value in (operation.on, operation.off))

    def element(i: Axes) -> Expression:
        index = indices.tensor[(*i[:axis], *i[axis + 1:])].cast("int64")
        if operation.wrap:
            index = select(index < 0, index + operation.depth, index)
        return Select(index.equals(i[axis].cast("int64")), on, off)

    return each(operation, result, element)
