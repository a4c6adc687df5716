"""Blocks of pixels as channels or as images, and back."""

from __future__ import annotations

from math import prod

from ....expression.expression import Expression
from ....expression.tensor import Tensor
from ....graph.operations.data_movement.blocks import (
    BatchToSpace,
    DepthOrder,
    DepthToSpace,
    SpaceToBatch,
    SpaceToDepth,
    as_images,
)
from ....graph.types import TensorType
from ...registry import Operand, lowers
from ..lowering import Axes, each, number
from .lower_shape import pad_element


def split(axes: Axes, channel_axis: int) -> Axes:
    """Image, row, column and channel of a pixel."""
    n, *others = axes
    channel = others.pop(channel_axis - 1)
    return (n, *others, channel)


def join_axes(n: Expression, y: Expression, x: Expression, channel: Expression,
              channel_axis: int) -> Axes:
    """The same as axes of an image."""
    return (n, channel, y, x) if channel_axis == 1 else (n, y, x, channel)


@lowers(DepthToSpace)
def depth_to_space(operation: DepthToSpace, result: TensorType, x: Operand) -> Tensor:
    side = operation.block
    depth = as_images(result, operation.channel_axis)[3]

    def element(i: Axes) -> Expression:
        n, row, column, channel = split(i, operation.channel_axis)
        place = row % side * side + column % side
        there = (place * depth + channel if operation.order == DepthOrder.BLOCK_FIRST
                 else channel * side ** 2 + place)
        return x.tensor[join_axes(n, row // side, column // side, there, operation.channel_axis)]

    return each(operation, result, element)


@lowers(SpaceToDepth)
def space_to_depth(operation: SpaceToDepth, result: TensorType, x: Operand) -> Tensor:
    side = operation.block
    depth = as_images(x.type, operation.channel_axis)[3]

    def element(i: Axes) -> Expression:
        n, row, column, channel = split(i, operation.channel_axis)
        place, there = channel // depth, channel % depth
        if operation.order == DepthOrder.CHANNEL_FIRST:
            place, there = channel % side ** 2, channel // side ** 2
        return x.tensor[join_axes(n, row * side + place // side, column * side + place % side,
                                  there, operation.channel_axis)]

    return each(operation, result, element)


@lowers(SpaceToBatch)
def space_to_batch(operation: SpaceToBatch, result: TensorType, x: Operand) -> Tensor:
    axes, images = len(operation.block), x.type.shape[0]
    rest = len(x.type.shape) - axes - 1
    border = number(operation.value, x.type.dtype)

    def element(i: Axes) -> Expression:
        place = i[0] // images if images else i[0]
        there = []
        for axis, block in enumerate(operation.block):
            inner = place // prod(operation.block[axis + 1:])
            there.append(i[axis + 1] * block + (inner % block if axis else inner))
        image = i[0] % images if images else i[0]
        return pad_element(x, (image, *there, *i[axes + 1:]), (0, *operation.before, *[0] * rest),
                           border)

    return each(operation, result, element)


@lowers(BatchToSpace)
def batch_to_space(operation: BatchToSpace, result: TensorType, x: Operand) -> Tensor:
    axes, images = len(operation.block), result.shape[0]

    def element(i: Axes) -> Expression:
        place: Expression = i[0] * 0
        there = []
        for axis, block in enumerate(operation.block):
            index = i[axis + 1] + operation.before[axis]
            place = place * block + index % block
            there.append(index // block)
        return x.tensor[(place * images + i[0], *there, *i[axes + 1:])]

    return each(operation, result, element)
