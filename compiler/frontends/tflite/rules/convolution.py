"""Convolutions. TFLite keeps weights as (output, y, x, input), or (1, y, x, output) if each channel
is on its own; graphs as (output, input, y, x)."""

from __future__ import annotations

import numpy as np

from ....graph.operations.window import Conv, TransposedConv
from ....graph.types import GraphError, Quantization
from ..reading import Node, reads
from .common import EIGHT_BITS, Settings, double_products, fused, image_sides, pads, single_product


@reads("CONV_2D", options="Conv2DOptions", inputs=(2, 3))
def conv_2d(node: Node) -> None:
    stride, dilation = window(node)
    weights = floated(node, node.permuted(1, (0, 3, 1, 2)))
    depth = shape_of(node, weights)[1]
    channels = node.type(0).shape[-1:] or (0,)
    if depth < 1 or channels[0] % depth:
        raise GraphError(f"the input has {channels[0]} channels, which is no multiple of the "
                         f"weights' {depth}")
    pad = pads(node, image_sides(node), shape_of(node, weights)[2:], stride, dilation)
    node.add(Conv(x=node.input(0), weights=weights, bias=bias_of(node, 2), stride=stride,
                  dilation=dilation, pad=pad, groups=channels[0] // depth,
                  **scaling(node, weights), **fused(node)))


@reads("DEPTHWISE_CONV_2D", options="DepthwiseConv2DOptions", inputs=(2, 3))
def depthwise_conv_2d(node: Node) -> None:
    stride, dilation = window(node)
    weights = floated(node, node.permuted(1, (3, 0, 1, 2)))
    sides = image_sides(node)
    pad = pads(node, sides, shape_of(node, weights)[2:], stride, dilation)
    node.add(Conv(x=node.input(0), weights=weights, bias=bias_of(node, 2), stride=stride,
                  dilation=dilation, pad=pad, groups=node.type(0).shape[3],
                  **scaling(node, weights), **fused(node)))


@reads("TRANSPOSE_CONV", options="TransposeConvOptions", inputs=(3, 4))
def transpose_conv(node: Node) -> None:
    """The shape of the result is an operand; padding follows from it."""
    output = node.integers(0, "the output's sizes")
    stride = node.option("StrideH"), node.option("StrideW")
    weights = floated(node, node.permuted(1, (0, 3, 1, 2)), data=2)
    kernel = shape_of(node, weights)[2:]
    sides = image_sides(node, 2)
    if len(output) != 4 or min(output) < 1:
        raise GraphError(f"the output has shape {output}, but must have 4 axes")
    pad = pads(node, (output[1], output[2]), kernel, stride)
    more = []
    for size, side, step, taps, before, after in zip(
            output[1:3], sides, stride, kernel, pad[::2], pad[1::2], strict=True):
        more.append(size - ((side - 1) * step + taps - before - after))
    # Rows beyond the last window, or windows cut off: only one of the two can be.
    cut = [max(-each, 0) for each in more]
    pad = (pad[0], pad[1] + cut[0], pad[2], pad[3] + cut[1])
    node.add(TransposedConv(
        x=node.input(2), weights=weights, bias=bias_of(node, 3), stride=stride, pad=pad,
        output_padding=(max(more[0], 0), max(more[1], 0)), **scaling(node, weights, data=2),
        **fused(node)))


def window(node: Node) -> tuple[tuple[int, int], tuple[int, int]]:
    """Strides and dilations."""
    return ((node.option("StrideH"), node.option("StrideW")),
            (node.option("DilationHFactor"), node.option("DilationWFactor")))


def shape_of(node: Node, name: str) -> tuple[int, ...]:
    return node.reading.builder.type_of(name).shape


def floated(node: Node, weights: str, data: int = 0) -> str:
    """Weights as real numbers where activations are real numbers. TFLite would quantize such
    activations anew in every run; real numbers are what that approximates."""
    builder = node.reading.builder
    type_, array = builder.type_of(weights), builder.array(weights)
    if not node.type(data).is_float or type_.is_float or not type_.is_quantized:
        return weights
    if array is None:
        raise GraphError("weights are integers that the network computes, but the input has real "
                         "numbers")
    known = type_.known()
    zeros = known.along(known.zero_points, array.ndim)
    scales = known.along(known.scales, array.ndim).astype(np.float32)
    real = (array.astype(np.int64) - zeros).astype(np.float32) * scales
    return node.constant("weights", real)


def bias_of(node: Node, position: int) -> str | None:
    """What is added to sums: 32-bit integers, or real numbers if sums are."""
    if not node.has(position):
        return None
    data = node.type(2 if node.operator.name == "TRANSPOSE_CONV" else 0)
    wanted = data.dtype if data.is_float else "int32"
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
    dtypes = {node.declared().dtype, *(each.dtype for each in types)}
    if len(dtypes) > 1 or dtypes.pop() not in EIGHT_BITS:
        raise GraphError(f"the input is {types[0].dtype}, weights are {types[1].dtype} and the "
                         f"result is {node.declared().dtype}, but all must be int8, uint8 or real "
                         f"numbers")
    return types[0].known(), types[1].known(), node.declared_quantization()
