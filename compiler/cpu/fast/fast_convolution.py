"""Convolutions in blocks: some pixels of a row of the result, each with a vector of channels.

Windows lie inside of images: there is a border already. Weights are in panels of as many output
channels as a block has: weights[panel, y, x, input, lane]. Constants are kept so, and float weights
that are computed are put so in each run.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...expression.expression import Axis, Expression, minimum, select, total
from ...expression.tensor import Tensor, compute, constant, reduce_axis
from ...graph.types import Array, Shape
from ..registry import Operand
from .arrange import ACROSS, Blocked, Sums
from .block import Block, Registers, block_of, registers_of
from .bytes import (
    Correction,
    Terms,
    are_bytes,
    copy_left,
    per_column,
    round_up,
    terms_for,
    to_left,
    to_signed_array,
    zero_points,
)
from .fast_depthwise import depthwise_sums
from .fast_window import Window

MOST_TERMS = 4
GROUPED = 16                    # lanes at most, of a convolution with groups
FLOATS = {"float16": "float32", "float32": "float32"}
Indices = tuple[Expression, ...]


def window_sums(images: Operand, weights: Operand, shape: Shape, window: Window) -> Sums | None:
    """Sums of products in windows, without zero points; None, if there is no fast way."""
    floats = images.type.dtype in FLOATS and weights.type.dtype in FLOATS
    array, sides = weights.array, weights.type.shape
    if not min(sides) or (array is None and (window.turned or not floats)):
        return None
    if array is not None and window.turned:
        array = array[:, :, ::-1, ::-1]
    group = sides[0] // window.groups
    if window.groups > 1 and sides[1] == group == 1 and _has_one_zero(images):
        return depthwise_sums(images, weights, array, shape, window)
    block = _block(shape, window, group, registers_of(images.target))
    if block is None:
        return None
    if floats and array is not None:
        return constant_float_sums(images, array.astype(np.float32), shape, window, block)
    if floats:
        kernel = _computed_panels(weights, block.lanes)
        return _float_sums(images, kernel, sides, shape, window, block)
    assert array is not None, "others are constants"
    if are_bytes(images.type, weights.type) and _has_one_zero(images) and (
            _has_one_zero(weights) or weights.type.require_quantization().axis == 0) and (
            window.groups == 1 or (array.shape[1] % MOST_TERMS == 0
                                   and not _zeros(weights).any())):
        return _byte_sums(images, weights, array, shape, window, block)
    return None


def constant_float_sums(images: Operand, array: Array, shape: Shape, window: Window,
                        block: Block) -> Sums:
    """Those of floats with constant weights, in blocks of some size."""
    return _float_sums(images, constant("weights", _pack_panels(array, block.lanes)), array.shape,
                       shape, window, block)


def _has_one_zero(x: Operand) -> bool:
    return x.type.quantization is None or x.type.quantization.axis is None


def _zeros(weights: Operand) -> Array:
    return zero_points(weights.type)


def _block(shape: Shape, window: Window, group: int, registers: Registers) -> Block | None:
    """A block for so many columns of the image. Panels do not reach from group to group."""
    widths = None if window.groups == 1 else [
        each for each in registers.widths if each <= GROUPED and group % each == 0]
    return None if widths == [] else block_of(shape[window.axes[2]], group, widths=widths,
                                              registers=registers)


def _pack_panels(array: Array, lanes: int) -> Array:
    """(output, input, y, x) → (panel, y, x, input, lane)"""
    outputs = len(array)
    wide = np.zeros((round_up(outputs, lanes), *array.shape[1:]), array.dtype)
    wide[:outputs] = array
    parts = wide.reshape(-1, lanes, *array.shape[1:])
    return np.ascontiguousarray(parts.transpose(0, 3, 4, 2, 1))


def _computed_panels(weights: Operand, lanes: int) -> Tensor:
    """The same of weights that are known in a run only."""
    outputs, depth, height, width = weights.type.shape
    panels = round_up(outputs, lanes) // lanes

    def element(panel: Axis, a: Axis, b: Axis, c: Axis, lane: Axis) -> Expression:
        output = panel * lanes + lane
        value = weights.tensor[output, c, a, b].cast("float32")
        return value if panels * lanes == outputs else select(output < outputs, value, 0.0)

    return compute("panels", (panels, height, width, depth, lanes), element)


def _channel(output: Expression, lanes: int, outputs: int, window: Window, depth: int,
             c: Expression) -> Expression:
    """An input channel of an output's group. Written by panels, for it is the same for each."""
    if window.groups == 1:
        return c
    return (output // lanes) // (outputs // window.groups // lanes) * depth + c


def _float_sums(images: Operand, kernel: Tensor, sides: Shape, shape: Shape, window: Window,
               block: Block) -> Sums:
    outputs, depth, *taps = sides
    pixels = _pixels(images, window)
    a, b, c = (reduce_axis(name, size) for name, size in zip("abc", (*taps, depth), strict=True))

    def product(n: Axis, row: Axis, column: Axis, output: Axis) -> Expression:
        channel = _channel(output, block.lanes, outputs, window, depth, c)
        y, x = window.pixel(row, _clamp_column(column, shape, window), a, b)
        weight = kernel[output // block.lanes, a, b, c, output % block.lanes]
        return total(pixels[n, y, x, channel].cast("float32") * weight, a, b, c)

    return _sums(product, shape, window, block)


def _pixels(images: Operand, window: Window) -> Tensor:
    """Images with channels last: their numbers are next to each other in a cache, and mostly in
    one page of memory."""
    if window.channel_axis == 3:
        return images.tensor
    n, channels, height, width = images.type.shape
    return compute(ACROSS, (n, height, width, channels),
                   lambda image, y, x, c: images.tensor[image, c, y, x])


def _clamp_column(column: Axis, shape: Shape, window: Window) -> Expression:
    """Blocks reach beyond the last column, and compute it again there."""
    return minimum(column, shape[window.axes[2]] - 1)


def _sums(product: Callable[..., Expression], shape: Shape, window: Window, block: Block,
          dot: str = "") -> Sums:
    n, rows, columns, channels = (shape[each] for each in window.axes)
    whole = (n, rows, max(block.height, columns), round_up(channels, block.lanes))
    blocked = Blocked(compute("sums", whole, product), *window.axes[2:], block, dot=dot)
    stored = blocked.sums if channels % block.lanes == 0 and not dot else blocked.store()
    return Sums(lambda i: stored[tuple(i[each] for each in window.axes)], blocked)


def _byte_sums(images: Operand, weights: Operand, array: Array, shape: Shape, window: Window,
               block: Block) -> Sums:
    outputs, depth, *taps = array.shape
    terms = terms_for(images.target, to_signed_array(array), 1)
    count, inputs = terms.count, round_up(depth, terms.count)
    deep = np.zeros((outputs, inputs, *taps), np.int8)
    deep[:, :depth] = to_signed_array(array)
    panels = _pack_panels(deep, block.lanes)
    groups = panels.reshape(*panels.shape[:3], inputs // count, count, block.lanes)
    kernel = constant("weights", np.ascontiguousarray(np.swapaxes(groups, -1, -2)))
    pixels = _channels_last(images, window, terms)
    a, b, k, t = (reduce_axis(name, size) for name, size in zip(
        ("a", "b", "c", "t"), (*taps, inputs // count, count), strict=True))

    def product(n: Axis, row: Axis, column: Axis, output: Axis) -> Expression:
        channel = _channel(output, block.lanes, outputs, window, depth, k * count + t)
        y, x = window.pixel(row, _clamp_column(column, shape, window), a, b)
        pixel = pixels[n, y, x, channel]
        weight = kernel[output // block.lanes, a, b, k, output % block.lanes, t]
        return total(pixel.cast("int32") * weight.cast("int32"), a, b, k, t)

    sums = _sums(product, shape, window, block, terms.intrinsic)
    zeros, column = _zeros(weights), window.channel_axis
    more = Correction(
        int(zero_points(images.type, terms)[0]),
        per_column("weight_zeros", zeros, column) if zeros.any() else None,
        _pixel_sums(pixels, shape, window, depth, (a.extent, b.extent)),
        per_column("weight_sums", to_signed_array(array).sum(axis=(1, 2, 3), dtype=np.int64),
                   column),
        depth * taps[0] * taps[1])
    return Sums(lambda i: more.of(sums.value(i), i), sums.schedule)


def _channels_last(images: Operand, window: Window, terms: Terms) -> Tensor:
    """Images as left factors with channels last."""
    if window.channel_axis == 3:
        return copy_left(images, terms)
    n, channels, height, width = images.type.shape
    last = round_up(channels, terms.count)

    def element(image: Axis, y: Axis, x: Axis, c: Axis) -> Expression:
        value = to_left(images.tensor[image, c, y, x], terms)
        return value if last == channels else select(c < channels, value, 0)

    return compute(ACROSS, (n, height, width, last), element)


def _pixel_sums(pixels: Tensor, shape: Shape, window: Window, depth: int,
                taps: tuple[int, int]) -> Callable[[Indices], Expression]:
    """The sum of all pixels of a window."""
    n, rows, columns, _ = (shape[each] for each in window.axes)
    a, b, c = (reduce_axis(name, size) for name, size in zip("abc", (*taps, depth), strict=True))

    def pixels_of(image: Axis, row: Axis, column: Axis) -> Expression:
        y, x = window.pixel(row, column, a, b)
        return total(pixels[image, y, x, c].cast("int32"), a, b, c)

    sums = compute("pixel_sums", (n, rows, columns), pixels_of)
    return lambda i: sums[tuple(i[each] for each in window.axes[:3])]
