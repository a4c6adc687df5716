"""What several operators have in common: fused activations, padding, multipliers."""

from __future__ import annotations

from typing import Any

import numpy as np
import tflite

from ....graph.types import Array, GraphError, Quantization
from ..operator_node import Node
from ..tflite_file import Tensor

Bounds = tuple[float | None, float | None]
Settings = dict[str, Any]       # fields of an operation
ACTIVATIONS: dict[int, Bounds] = {
    tflite.ActivationFunctionType.NONE: (None, None),
    tflite.ActivationFunctionType.RELU: (0, None),
    tflite.ActivationFunctionType.RELU_N1_TO_1: (-1, 1),
    tflite.ActivationFunctionType.RELU6: (0, 6)}
EIGHT_BITS = ("int8", "uint8")
FURTHEST = 1 << 31              # beyond any stored number
LONGEST_SIDE = 1 << 16          # of an image
PADDINGS = {tflite.Padding.SAME: "same", tflite.Padding.VALID: "valid"}


def fused_bounds(node: Node) -> Settings:
    """The bounds of the activation that is part of an operator, as settings low and high."""
    activation = node.option("FusedActivationFunction")
    if activation not in ACTIVATIONS:
        raise GraphError(f"the fused activation is number {activation}, but only RELU, "
                         f"RELU_N1_TO_1 and RELU6 are supported")
    return stored_bounds(node.declared_result(), ACTIVATIONS[activation])


def stored_bounds(tensor: Tensor, bounds: Bounds) -> Settings:
    """Bounds of real numbers as settings low and high, which are bounds of stored numbers."""
    return {name: quantize_value(tensor.quantization, bound)
            for name, bound in zip(("low", "high"), bounds, strict=True) if bound is not None}


def quantize_value(quantization: Quantization | None, real: float) -> float:
    """The number that stands for a real one, in the reference kernels' 32-bit arithmetic."""
    if quantization is None:
        return real
    ratio = np.float32(real) / np.float32(quantization.scale)
    nearest = round_half_away(np.asarray(ratio, np.float64))
    return quantization.zero_point + int(np.clip(nearest, -FURTHEST, FURTHEST))


def round_half_away(values: Array) -> Array:
    """To the nearest integer, ties away from zero, as C's round does."""
    result: Array = np.trunc(values + np.copysign(0.5, values))
    # 0.49999999999999994 + 0.5 is 1 in doubles, but its nearest integer is 0.
    return np.where(np.abs(values) < 0.5, 0.0, result)


def pads(node: Node, sizes: tuple[int, int], kernel: tuple[int, ...], stride: tuple[int, int],
         dilation: tuple[int, int] = (1, 1)) -> tuple[int, int, int, int]:
    """What is added above, below, to the left and to the right."""
    padding = PADDINGS.get(node.option("Padding"))
    if padding is None:
        raise GraphError(f"padding is number {node.option('Padding')}, but must be SAME or VALID")
    found = []
    for size, taps, step, spread in zip(sizes, kernel, stride, dilation, strict=True):
        if step < 1 or spread < 1:
            raise GraphError(f"strides are {stride} and dilations {dilation}, but must be 1 or "
                             f"more")
        windows = -(-size // step)
        total = max((windows - 1) * step + (taps - 1) * spread + 1 - size, 0)
        found += [total // 2, total - total // 2] if padding == "same" else [0, 0]
    return found[0], found[1], found[2], found[3]


def image_sides(node: Node, position: int = 0) -> tuple[int, int]:
    """Rows and columns of an input that holds images."""
    shape = node.type(position).shape
    if len(shape) != 4 or max(shape[1:3]) > LONGEST_SIDE:
        raise GraphError(f"input {position} has shape {shape}, but must be images: (n, y, x, "
                         f"channel), of at most {LONGEST_SIDE} rows and columns")
    return shape[1], shape[2]


def single_product(first: Quantization, second: Quantization, result: Quantization) -> float:
    """The multiplier of products where the kernels multiply the two scales in 32 bits."""
    return float(np.float32(first.scale) * np.float32(second.scale)) / result.scale


def double_products(first: Quantization, second: Quantization,
                    result: Quantization) -> tuple[float, ...]:
    """The multipliers of products where the kernels compute in 64 bits, one for each channel."""
    return tuple(first.scale * each / result.scale for each in second.scales)
