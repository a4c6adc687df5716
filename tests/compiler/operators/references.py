"""What operators must give, in plain NumPy."""

from __future__ import annotations

import dataclasses

import numpy as np

from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.operators.convolution.residual import ResidualConv2d
from microtron.compiler.operators.convolution.transposed import Transposed
from microtron.compiler.operators.dense.dense import Dense
from microtron.compiler.operators.depthwise.conv_separable import ConvSeparable
from microtron.compiler.operators.depthwise.depthwise import Depthwise
from microtron.compiler.operators.depthwise.grouped import Grouped
from microtron.compiler.operators.depthwise.separable import Separable
from microtron.compiler.operators.depthwise.upsample import Upsample
from microtron.compiler.operators.elementwise.broadcast import Broadcast
from microtron.compiler.operators.elementwise.elementwise import Elementwise, Operation
from microtron.compiler.operators.pool.conv_global_average import AveragedConv2d
from microtron.compiler.operators.pool.pool import Kind, Pool, division
from microtron.isa.arithmetic import quantize_scale, requantize_array, scale_array
from microtron.isa.instructions import Rounding


def expected(spec, given):
    """The result of any operator for operands by name, in plain layouts."""
    return REFERENCES[type(spec)](spec, **given)


def conv2d(spec, data, weights, **parameters):
    return _convolution(spec, 1, data, weights, parameters)


def depthwise(spec, data, weights, **parameters):
    return _convolution(spec, spec.channels_in, data, weights, parameters)


def grouped(spec, data, weights, **parameters):
    return _convolution(spec, spec.groups, data, weights, parameters)


def _convolution(spec, groups, data, weights, parameters):
    """A convolution in groups; weights are (outputs, inputs of a group, y, x)."""
    group_in, group_out = spec.channels_in // groups, spec.channels_out // groups
    sums = np.zeros((spec.images, spec.channels_out, *spec.out_shape), np.int64)
    for (i, j), window in _shifts(spec, data):
        for group in range(groups):
            inputs = slice(group * group_in, (group + 1) * group_in)
            outputs = slice(group * group_out, (group + 1) * group_out)
            sums[:, outputs] += np.einsum("nchw,oc->nohw", window[:, inputs],
                                          weights[outputs, :, i, j].astype(np.int64))
    return _requantize(spec, sums, parameters, (-1, 1, 1))


def _shifts(spec, data):
    """For each tap, what all outputs read: (n, channels, y, x), zero point taken off."""
    top, bottom, left, right = spec.pad
    padded = np.pad(data.astype(np.int64) - spec.zero_point_in,
                    ((0, 0), (0, 0), (top, bottom), (left, right)))
    for i, j in np.ndindex(spec.kernel):
        here = padded[:, :, i * spec.dilation[0]:, j * spec.dilation[1]:]
        here = here[:, :, ::spec.stride[0], ::spec.stride[1]]
        yield (i, j), here[:, :, :spec.out_height, :spec.out_width]


def _requantize(spec, sums, parameters, shape):
    """Sums of 32 bits as results. Parameters get a shape in which channels meet channels."""
    each = {name: np.reshape(values, shape) for name, values in parameters.items()}
    if spec.wide:
        biased = (sums + each["bias"]).astype(np.int32)
        return scale_array(biased, each["multiplier"], each["shift"], spec.rounding)
    return requantize_array(sums.astype(np.int32), **each, zero_point=spec.zero_point_out,
                            low=spec.low, high=spec.high, rounding=spec.rounding)


def transpose(spec, data, weights, **parameters):
    """Every input adds its products to a window of the output; weights are (inputs, outputs, y,
    x)."""
    (sy, sx), (dy, dx), (height, width) = spec.stride, spec.dilation, spec.kernel
    full = np.zeros((spec.images, spec.channels_out,
                     (spec.height - 1) * sy + (height - 1) * dy + 1 + spec.output_padding[0],
                     (spec.width - 1) * sx + (width - 1) * dx + 1 + spec.output_padding[1]),
                    np.int64)
    values = data.astype(np.int64) - spec.zero_point_in
    for i, j in np.ndindex(spec.kernel):
        here = full[:, :, i * dy:, j * dx:][:, :, ::sy, ::sx]
        here[:, :, :spec.height, :spec.width] += np.einsum(
            "nchw,co->nohw", values, weights[:, :, i, j].astype(np.int64))
    top, bottom, left, right = spec.pad
    cut = full[:, :, top:full.shape[2] - bottom, left:full.shape[3] - right]
    return _requantize(spec, cut, parameters, (-1, 1, 1))


def upsample(spec, data, **parameters):
    """Each pixel of the result lies between pixels of the input, or at its border."""
    found = data.astype(np.float64) - spec.zero_point_in
    for axis, factor in zip((2, 3), spec.factors, strict=True):
        size, index = found.shape[axis], np.arange(found.shape[axis] * factor)
        place = (index + 0.5) / factor - 0.5 if spec.centred else index / factor
        found = np.apply_along_axis(
            lambda line, place=place, size=size: np.interp(place, np.arange(size), line), axis,
            found)
    return _requantize(spec, np.rint(found * spec.unit).astype(np.int64), parameters, (-1, 1, 1))


def dense(spec, data, weights, **parameters):
    """A product, or one for each of some matrices; weights are (…, outputs, inputs)."""
    sums = np.einsum("...ri,...oi->...ro", data.astype(np.int64) - spec.zero_point_in,
                     weights.astype(np.int64) - spec.zero_point_weights)
    return _requantize(spec, sums, parameters, -1)


def elementwise(spec, left, right=0):
    """As docs/arithmetic.md says, step by step."""
    def scale(values, real):
        return scale_array(values, *quantize_scale(real), spec.rounding).astype(np.int64)

    a = np.asarray(left, np.int64) - spec.zero_point_left
    b = np.asarray(right, np.int64) - spec.zero_point_right
    match spec.operation:
        case Operation.ADD | Operation.SUB:
            double = 2 * max(spec.scale_left, spec.scale_right)
            sign = 1 if spec.operation == Operation.ADD else -1
            terms = (scale(a << 20, spec.scale_left / double)
                     + sign * scale(b << 20, spec.scale_right / double))
            result = scale(terms, double / ((1 << 20) * spec.scale_out))
        case Operation.MUL:
            result = scale(a * b, spec.scale_left * spec.scale_right / spec.scale_out)
        case Operation.MIN:
            result = np.minimum(a, b)
        case Operation.MAX:
            result = np.maximum(a, b)
        case Operation.RESCALE:
            result = scale(a, spec.scale_left / spec.scale_out)
    return np.clip(result + spec.zero_point_out, spec.low, spec.high).astype(np.int8)


def pool(spec, data):
    """Maxima; averages as TFLite's kernels divide, or through scales."""
    top, bottom, left, right = spec.pad
    border = ((0, 0), (0, 0), (top, bottom), (left, right))
    filling = -128 if spec.kind == Kind.MAX else spec.zero_point_in
    values = _windows(spec, np.pad(data.astype(np.int64), border, constant_values=filling))
    inside = _windows(spec, np.pad(np.ones(data.shape, np.int64), border))
    if spec.kind == Kind.MAX:
        result = values.max(axis=-1)
    else:
        weights = np.ones_like(inside) if spec.count_include_pad else inside
        sums = ((values - spec.zero_point_in) * weights).sum(axis=-1)
        result = _divide(spec, sums, weights.sum(axis=-1)) + spec.zero_point_out
    return np.clip(result, spec.low, spec.high).astype(np.int8)


def _windows(spec, values):
    """(n, c, y, x) → (n, c, y, x, elements of the window)"""
    rows, columns = (
        np.arange(outputs)[:, None] * stride + np.arange(kernel) * dilation
        for outputs, stride, kernel, dilation in zip(spec.out_shape, spec.stride, spec.kernel,
                                                     spec.dilation, strict=True))
    found = values[:, :, rows[:, None, :, None], columns[None, :, None, :]]
    return found.reshape(*found.shape[:4], -1)


def _divide(spec, sums, counts):
    """Exactly, if the scale stays and rounding says what is right; otherwise by a multiplier."""
    exact = {Rounding.AWAY: round_away, Rounding.EVEN: round_to_even}
    if spec.scale_in == spec.scale_out and spec.rounding in exact:
        return exact[spec.rounding](sums, counts)
    ratio = spec.scale_in / spec.scale_out
    scales = np.reshape([division(int(count)) if ratio == 1 else quantize_scale(ratio / int(count))
                         for count in counts.flat], (*counts.shape, 2))
    return scale_array(sums, scales[..., 0], scales[..., 1], spec.rounding).astype(np.int64)


def round_away(sums, counts):
    """Quotients of integers; ties go away from zero."""
    magnitude = (np.abs(sums) + counts // 2) // counts
    return np.where(sums > 0, magnitude, -magnitude)


def round_to_even(sums, counts):
    """Quotients of integers; ties go to the even neighbour."""
    below, rest = np.divmod(sums, counts)
    return below + ((2 * rest > counts) | ((2 * rest == counts) & (below % 2 == 1)))


def residual(spec, data, weights, residual, **parameters):
    """The convolution, then the addition."""
    own = {each.name: getattr(spec, each.name) for each in dataclasses.fields(Conv2d)} | {
        "zero_point_out": spec.zero_point_conv, "low": spec.low_conv, "high": spec.high_conv}
    return elementwise(spec.addition(), conv2d(Conv2d(**own), data, weights, **parameters),
                       residual)


def average(spec, data, weights, **parameters):
    """The convolution, then the average."""
    own = {each.name: getattr(spec, each.name) for each in dataclasses.fields(Conv2d)} | {
        "zero_point_out": spec.zero_point_conv, "low": spec.low_conv, "high": spec.high_conv,
        "rounding": spec.rounding_conv}
    return pool(spec.average(), conv2d(Conv2d(**own), data, weights, **parameters))


def separable(spec, data, weights, mixed_weights, **parameters):
    """The depthwise convolution, then the 1 × 1 convolution."""
    second = {name.removeprefix("mixed_"): each for name, each in parameters.items()
              if name.startswith("mixed_")}
    own = {name: each for name, each in parameters.items() if not name.startswith("mixed_")}
    between = depthwise(spec.first(), data, weights, **own)
    height, width = spec.out_shape
    mixing = Conv2d(height=height, width=width, channels_in=spec.channels_out, kernel=1,
                    channels_out=spec.channels_mixed, images=spec.images,
                    zero_point_in=spec.zero_point_between, zero_point_out=spec.zero_point_out,
                    low=spec.low, high=spec.high, rounding=spec.rounding)
    return conv2d(mixing, between, mixed_weights[:, :, None, None], **second)


def conv_separable(spec, data, weights, **parameters):
    """The convolution, then the others."""
    own, rest = {}, {}
    for name, each in parameters.items():
        if name.startswith(("window_", "mixed_")):
            rest[name.removeprefix("window_")] = each
        else:
            own[name] = each
    return separable(spec.rest(), conv2d(spec.first(), data, weights, **own), **rest)


REFERENCES = {Conv2d: conv2d, ResidualConv2d: residual, AveragedConv2d: average,
              ConvSeparable: conv_separable,
              Separable: separable, Depthwise: depthwise, Grouped: grouped,
              Transposed: transpose, Upsample: upsample, Dense: dense, Pool: pool,
              Elementwise: elementwise, Broadcast: elementwise}
