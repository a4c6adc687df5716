"""Convolutions. TFLite keeps weights as (output, y, x, input), or (1, y, x, output) if each channel
is on its own; graphs as (output, input, y, x)."""

from __future__ import annotations

from ....graph.operations.layers.window import Conv, TransposedConv
from ....graph.types import GraphError, Quantization
from ..operator_node import Node, reads
from .rule_helpers import (
    EIGHT_BITS,
    Settings,
    double_products,
    fused_bounds,
    image_sides,
    pads,
    single_product,
)


@reads("CONV_2D", options="Conv2DOptions", inputs=(2, 3))
def conv_2d(node: Node) -> None:
    sides = image_sides(node)
    channels = node.type(0).shape[3]
    weights = weights_of(node, (0, 3, 1, 2))
    depth = shape_of(node, weights)[1]
    if depth < 1 or channels % depth:
        raise GraphError(f"the input has {channels} channels, which is no multiple of the "
                         f"weights' {depth}")
    add_conv(node, sides, weights, channels // depth)


@reads("DEPTHWISE_CONV_2D", options="DepthwiseConv2DOptions", inputs=(2, 3))
def depthwise_conv_2d(node: Node) -> None:
    sides = image_sides(node)
    add_conv(node, sides, weights_of(node, (3, 0, 1, 2)), node.type(0).shape[3])


def add_conv(node: Node, sides: tuple[int, int], weights: str, groups: int) -> None:
    stride, dilation = window(node)
    pad = pads(node, sides, shape_of(node, weights)[2:], stride, dilation)
    node.add(Conv(x=node.input(0), weights=weights, bias=bias_of(node, 2), stride=stride,
                  dilation=dilation, pad=pad, groups=groups, **scaling(node, weights),
                  **fused_bounds(node)))


@reads("TRANSPOSE_CONV", options="TransposeConvOptions", inputs=(3, 4))
def transpose_conv(node: Node) -> None:
    """The shape of the result is an operand. Padding follows from it, and where windows do not
    meet it exactly, they are cut off at the end, or rows and columns without any are added."""
    output = node.integers(0, "the output's sizes")
    if len(output) != 4 or min(output) < 1:
        raise GraphError(f"the output has shape {output}, but must have 4 axes")
    stride = node.option("StrideH"), node.option("StrideW")
    weights = weights_of(node, (0, 3, 1, 2), data=2)
    kernel, sides = shape_of(node, weights)[2:], image_sides(node, 2)
    top, bottom, left, right = pads(node, (output[1], output[2]), kernel, stride)
    rows, columns = (size - ((side - 1) * step + taps - padding)
                     for size, side, step, taps, padding in zip(
                         output[1:3], sides, stride, kernel, (top + bottom, left + right),
                         strict=True))
    node.add(TransposedConv(
        x=node.input(2), weights=weights, bias=bias_of(node, 3, data=2), stride=stride,
        pad=(top, bottom + max(-rows, 0), left, right + max(-columns, 0)),
        output_padding=(max(rows, 0), max(columns, 0)), **scaling(node, weights, data=2),
        **fused_bounds(node)))


def window(node: Node) -> tuple[tuple[int, int], tuple[int, int]]:
    """Strides and dilations."""
    return ((node.option("StrideH"), node.option("StrideW")),
            (node.option("DilationHFactor"), node.option("DilationWFactor")))


def shape_of(node: Node, name: str) -> tuple[int, ...]:
    return node.reading.builder.type_of(name).shape


def weights_of(node: Node, order: tuple[int, ...], data: int = 0) -> str:
    """Weights with their axes in the graph's order. They are real numbers where activations are:
    TFLite would quantize such activations anew in every run, which real numbers approximate."""
    return node.permute(1, order, real=node.type(data).is_float)


def bias_of(node: Node, position: int, data: int = 0) -> str | None:
    """What is added to sums: 32-bit integers, or real numbers if sums are."""
    if not node.has(position):
        return None
    wanted = node.type(data).dtype if node.type(data).is_float else "int32"
    if node.type(position).dtype != wanted:
        raise GraphError(f"the bias is {node.type(position).plain()}, but must be {wanted}")
    return node.input(position)


def scaling(node: Node, weights: str, data: int = 0) -> Settings:
    """The multipliers of an integer convolution. Signed weights have one for each channel,
    computed in 64 bits; unsigned ones share one, whose product is of 32 bits."""
    if node.type(data).is_float:
        return {}
    first, second, result = eight_bit_factors(node, data, weights)
    if node.type(data).dtype == "int8" and any(second.zero_points):
        raise GraphError("int8 weights have zero points other than 0")
    if node.type(data).dtype == "uint8":
        return {"scales": (single_product(first, second, result),)}
    return {"scales": double_products(first, second, result)}


def eight_bit_factors(node: Node, data: int,
                      weights: str) -> tuple[Quantization, Quantization, Quantization]:
    """The scales of activations, weights and results, all of one 8-bit type."""
    types = [node.type(data), node.reading.builder.type_of(weights)]
    dtypes = {node.declared_result().dtype, *(each.dtype for each in types)}
    if len(dtypes) > 1 or dtypes.pop() not in EIGHT_BITS:
        raise GraphError(f"the input is {types[0].dtype}, weights are {types[1].dtype} and the "
                         f"result is {node.declared_result().dtype}, but all must be int8, uint8 "
                         f"or real numbers")
    first, second = (each.require_quantization() for each in types)
    return first, second, node.declared_quantization()
