"""Convolutions and pools. A border is put around images before, so that the loops over a window
have no conditions in them."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np

from .....isa.arithmetic import quantize_scale
from .....isa.instructions import Rounding
from ....expression.expression import (
    Axis,
    Constant,
    Expression,
    Select,
    as_expression,
    both,
    either,
    largest,
    least,
    select,
    total,
)
from ....expression.tensor import Tensor, compute, constant, reduce_axis
from ....graph.operations.layers.window import Conv, Pool, PoolKind, TransposedConv, _Window
from ....graph.operations.layers.window_places import MaxPlace
from ....graph.types import Array, TensorType
from ...fast.fast_convolution import window_sums
from ...fast.fast_transposed import can_split, phase_sums
from ...fast.fast_window import Window
from ...registry import Operand, Scheduled, lowers
from ..data_movement.lower_blocks import join_axes, split
from ..data_movement.lower_shape import pad_element
from ..lowering import Axes, clamp_result, each, is_nan, number
from ..products import correction, factor, finish_sums, product_type, zero_point
from ..rescaling import WIDE, multiply_shift


def with_border(operation: _Window, x: Operand, border: Constant, pad: tuple[int, ...],
                apart: tuple[int, int] = (1, 1)) -> Operand:
    """Images with a border around them (top, bottom, left, right) and, if pixels are to be
    `apart`, with such numbers between them."""
    n, height, width, channels = operation.image(x.type)
    if not any(pad) and apart == (1, 1):
        return x
    sides = [(size - 1) * step + 1 + sum(pad[2 * axis:2 * axis + 2])
             for axis, (size, step) in enumerate(zip((height, width), apart, strict=True))]
    shape = operation.image_shape(n, sides[0], sides[1], channels)

    def element(*i: Expression) -> Expression:
        image, row, column, channel = split(i, operation.channel_axis)
        if apart == (1, 1):
            return pad_element(x, i, border_widths(operation, pad), border)
        inside, there = [], []
        for index, before, step, size in ((row, pad[0], apart[0], height),
                                          (column, pad[2], apart[1], width)):
            place = index - before
            inside += [place >= 0, place < (size - 1) * step + 1]
            inside.append((place % step).equals(0))
            there.append(place // step)
        value = x.tensor[join_axes(image, there[0], there[1], channel, operation.channel_axis)]
        return Select(both(*inside), value, border)

    tensor = compute("padded", shape, element)
    return replace(x, type=TensorType(shape, x.type.dtype, x.type.quantization), tensor=tensor,
                   array=None)


def border_widths(operation: _Window, pad: tuple[int, ...]) -> tuple[int, ...]:
    """Widths of a border before each axis."""
    return (0, 0, pad[0], pad[2]) if operation.channel_axis == 1 else (0, pad[0], pad[2], 0)


@lowers(Conv)
def convolution(operation: Conv, result: TensorType, x: Operand, weights: Operand,
                *bias: Operand) -> Tensor | Scheduled:
    border = Constant(zero_point(x.type) if x.type.is_integer else 0, x.type.dtype)
    images = with_border(operation, x, border, operation.pad)
    return _convolve(operation, result, images, weights, bias, operation.stride, turned=False)


@lowers(TransposedConv)
def transposed_convolution(operation: TransposedConv, result: TensorType, x: Operand,
                           weights: Operand, *bias: Operand) -> Tensor | Scheduled:
    """A convolution with the window turned around, of images whose pixels are apart."""
    if x.type.is_float and min(weights.type.shape) and (
            weights.array is None or not np.isfinite(weights.array).all()):
        return _transposed_without_zeros(operation, result, x, weights, bias)
    if can_split(x, weights, operation.stride, operation.dilation, operation.groups):
        phases = _transposed_phases(operation, result, x, weights, bias)
        if phases is not None:
            return phases
    border = Constant(zero_point(x.type) if x.type.is_integer else 0, x.type.dtype)
    _, rows, columns, _ = operation.image(result)
    pad: list[int] = []
    for axis, (size, side) in enumerate(zip(operation.image(x.type)[1:3], (rows, columns),
                                            strict=True)):
        reach = (weights.type.shape[2 + axis] - 1) * operation.dilation[axis]
        before = reach - operation.pad[2 * axis]
        pad += [before, side + reach - before - (size - 1) * operation.stride[axis] - 1]
    images = with_border(operation, x, border, tuple(pad), operation.stride)
    return _convolve(operation, result, images, weights, bias, (1, 1), turned=True)


def _transposed_phases(operation: TransposedConv, result: TensorType, x: Operand, weights: Operand,
                       bias: tuple[Operand, ...]) -> Scheduled | None:
    """The same as a convolution of pixels alone, with the pixels of a stride as outputs."""
    sides, pad = [], []
    for axis, (size, wanted) in enumerate(zip(operation.image(x.type)[1:3],
                                              operation.image(result)[1:3], strict=True)):
        step, before = operation.stride[axis], operation.pad[2 * axis]
        reach = weights.type.shape[2 + axis] // step - 1
        sides.append((wanted - 1 + before) // step + 1)
        pad += [reach, max(0, sides[-1] - size)]
    images = with_border(operation, x, Constant(0, x.type.dtype), tuple(pad))
    phases = phase_sums(images, weights, (sides[0], sides[1]), operation.stride,
                        (operation.pad[0], operation.pad[2]), operation.channel_axis)
    if phases is None:
        return None
    return Scheduled(finish_sums(
        operation, result, lambda i: phases.of(*split(i, operation.channel_axis)),
        operation.channel_axis, bias), phases.schedule)


def _transposed_without_zeros(operation: TransposedConv, result: TensorType, x: Operand,
                              weights: Operand, bias: tuple[Operand, ...]) -> Tensor:
    """The same of pixels alone, without zeros between and around them: with an infinite weight,
    their product is no number."""
    outputs, depth, *taps = weights.type.shape
    c, a, b = (reduce_axis(name, size) for name, size in zip("cab", (depth, *taps), strict=True))
    group, dtype = outputs // operation.groups, product_type(x.type)

    def product(*i: Expression) -> Expression:
        n, row, column, output = split(i, operation.channel_axis)
        inside, there = [], []
        for index, tap, before, apart, step, size in zip(
                (row, column), (a, b), operation.pad[::2], operation.dilation, operation.stride,
                operation.image(x.type)[1:3], strict=True):
            place = index + before - tap * apart
            inside += [place >= 0, place < (size - 1) * step + 1, (place % step).equals(0)]
            there.append(place // step)
        channel = c if operation.groups == 1 else output // group * depth + c
        pixel = x.tensor[join_axes(n, there[0], there[1], channel, operation.channel_axis)]
        weight = weights.tensor[output, c, a, b].cast(dtype)
        return total(Select(both(*inside), pixel.cast(dtype) * weight,
                            as_expression(0.0, dtype)), a, b, c)

    sums = compute("sums", result.shape, product)
    return finish_sums(operation, result, lambda i: sums[i], operation.channel_axis, bias)


def _convolve(operation: Conv | TransposedConv, result: TensorType, x: Operand, weights: Operand,
              bias: tuple[Operand, ...], stride: tuple[int, int], *,
              turned: bool) -> Tensor | Scheduled:
    """Sums of products in windows that all lie inside, and what becomes of them."""
    outputs, depth, height, width = weights.type.shape
    group = outputs // operation.groups
    if not depth:
        return finish_sums(operation, result, lambda i: as_expression(0, product_type(x.type)),
                           operation.channel_axis, bias)
    fast = window_sums(x, weights, result.shape, Window(
        stride, operation.dilation, operation.groups, operation.channel_axis, turned))
    if fast is not None:
        return Scheduled(finish_sums(operation, result, fast.value, operation.channel_axis, bias),
                         fast.schedule)
    more = correction(zero_point(x.type), weights, (1, 2, 3)) if x.type.is_integer else None
    packable = operation.channel_axis == 3 and operation.groups == 1
    packed = _pack_weights(weights) if packable else None
    c, a, b = (reduce_axis(name, size) for name, size in (("c", depth), ("a", height),
                                                          ("b", width)))

    def product(*i: Expression) -> Expression:
        n, row, column, output = split(i, operation.channel_axis)
        steps = [(size - 1 - tap if turned else tap) * apart for tap, size, apart in zip(
            (a, b), (height, width), operation.dilation, strict=True)]
        channel = c if operation.groups == 1 else output // group * depth + c
        pixel = join_axes(n, row * stride[0] + steps[0], column * stride[1] + steps[1], channel,
                          operation.channel_axis)
        weight = (packed.tensor[a, b, c, output].cast(product_type(x.type)) if packed is not None
                  else factor(weights, (output, c, a, b)))
        return total(factor(x, pixel, stored=more is not None) * weight, a, b, c)

    sums = compute("sums", result.shape, product)
    return finish_sums(operation, result, lambda i: sums[i], operation.channel_axis, bias, more)


def _pack_weights(weights: Operand) -> Operand | None:
    """Constant weights as (y, x, input, output), so that neighbours are those of neighbours of the
    result; None, if they are not constant or have zero points."""
    known = weights.type.quantization
    if weights.array is None or (known is not None and any(known.zero_points)):
        return None
    array = np.ascontiguousarray(weights.array.transpose(2, 3, 1, 0))
    return replace(weights, tensor=constant("weights", array), array=array)


@lowers(Pool)
def pool(operation: Pool, result: TensorType, x: Operand) -> Tensor:
    if operation.kind == PoolKind.AVERAGE:
        return _average(operation, result, x)
    border = number(-inf if x.type.is_float else x.type.range[0], x.type.dtype)
    images = with_border(operation, x, border, operation.pad)
    taps = _taps(operation)
    found = compute("largest", result.shape, lambda *i: largest(
        images.tensor[_pixel(operation, i, taps)].cast(
            "float32" if x.type.dtype == "float16" else x.type.dtype), *taps))
    return each(operation, result, lambda i: clamp_result(operation, result, found[i]))


def _taps(operation: Pool | MaxPlace) -> tuple[Axis, Axis]:
    return reduce_axis("a", operation.kernel[0]), reduce_axis("b", operation.kernel[1])


def _pixel(operation: Pool | MaxPlace, i: Axes, taps: Axes) -> Axes:
    """The pixel of a window's tap."""
    n, row, column, channel = split(i, operation.channel_axis)
    there = [index * stride + tap * apart for index, stride, tap, apart in zip(
        (row, column), operation.stride, taps, operation.dilation, strict=True)]
    return join_axes(n, there[0], there[1], channel, operation.channel_axis)


def _average(operation: Pool, result: TensorType, x: Operand) -> Tensor:
    zero = 0 if operation.raw or not x.type.is_integer else zero_point(x.type)
    images = with_border(operation, x, number(zero, x.type.dtype), operation.pad)
    taps, size = _taps(operation), operation.kernel[0] * operation.kernel[1]
    dtype = product_type(x.type) if x.type.is_float else WIDE
    sums = compute("sums", result.shape, lambda *i: total(
        images.tensor[_pixel(operation, i, taps)].cast(dtype) - zero, *taps))
    counts = operation.counts(x.type)
    if operation.count_include_pad:
        counts = np.full_like(counts, size)
    shifts = result.is_quantized and not operation.raw
    added = result.require_quantization().zero_point if shifts else 0

    def element(i: Axes) -> Expression:
        _, row, column, _ = split(i, operation.channel_axis)

        def of_window(name: str, values: Array) -> Expression:
            if (values == values.flat[0]).all():
                return as_expression(values.flat[0].item(), values.dtype.name)
            return constant(name, values)[row, column]

        if x.type.is_float:
            return clamp_result(operation, result,
                                sums[i] / of_window("counts", counts.astype(dtype)))
        if operation.scales in ((), (1.0,)):
            value = _round_quotient(sums[i], of_window("counts", counts.astype(WIDE)),
                                    operation.rounding)
        else:
            pairs = {int(count): quantize_scale(operation.scales[0] / count)
                     for count in np.unique(counts)}
            several = [np.vectorize(lambda count, part=part: pairs[int(count)][part],
                                    otypes=[np.int64])(counts) for part in (0, 1)]
            value = multiply_shift(sums[i], several[0], several[1], operation.rounding, of_window)
        return clamp_result(operation, result, value + added)

    return each(operation, result, element)


def _round_quotient(value: Expression, divisor: Expression, rounding: int) -> Expression:
    """value / divisor, rounded exactly: ties to even, or away from zero."""
    below = value // divisor
    rest = (value - below * divisor) * 2
    up = (below & 1).equals(1) if rounding == Rounding.EVEN else value >= 0
    return below + either(rest > divisor, both(rest.equals(divisor), up)).cast(WIDE)


@lowers(MaxPlace)
def max_place(operation: MaxPlace, result: TensorType, x: Operand) -> Tensor:
    """The largest number of each window, and then the first tap that has it inside the image."""
    _, height, width, _ = operation.image(x.type)
    lowest = number(-inf if x.type.is_float else x.type.range[0] if x.type.is_integer else 0,
                    x.type.dtype)
    taps, more = _taps(operation), _taps(operation)
    wide = {"float16": "float32", "bool": "uint8"}.get(x.type.dtype, x.type.dtype)
    images = with_border(operation, x, lowest, operation.pad)
    best = compute("largest", result.shape, lambda *i: largest(
        images.tensor[_pixel(operation, i, taps)].cast(wide), *taps))
    none = operation.kernel[0] * operation.kernel[1]

    def first(*i: Expression) -> Expression:
        pixel = _pixel(operation, i, more)
        _, row, column, _ = split(pixel, operation.channel_axis)
        row, column = row - operation.pad[0], column - operation.pad[2]
        value = images.tensor[pixel].cast(wide)
        same = value.equals(best[i])
        if x.type.is_float:
            same = either(same, both(is_nan(value), is_nan(best[i])))
        inside = both(row >= 0, row < height, column >= 0, column < width)
        tap = (more[0] * operation.kernel[1] + more[1]).cast("int32")
        return least(select(both(inside, same), tap, none), *more)

    tap = compute("tap", result.shape, first)

    def element(i: Axes) -> Expression:
        _, row, column, _ = split(i, operation.channel_axis)
        here = tap[i].cast(WIDE)
        across = operation.kernel[1]
        y = row.cast(WIDE) * operation.stride[0] - operation.pad[0] + (
            here // across) * operation.dilation[0]
        x_ = column.cast(WIDE) * operation.stride[1] - operation.pad[2] + (
            here % across) * operation.dilation[1]
        return x_ * height + y if operation.by_column else y * width + x_

    return each(operation, result, element)
