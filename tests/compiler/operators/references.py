"""What operators other than convolutions must give, in plain NumPy."""

from __future__ import annotations

import numpy as np

from microtron.compiler.operators.elementwise import Operation
from microtron.compiler.operators.pool import Kind
from microtron.isa.arithmetic import quantize_scale, requantize_array, scale_array


def dense(spec, x, w, bias, multiplier, shift):
    """A product for each of some matrices; weights are (matrices, outputs, inputs)."""
    sums = np.einsum("mri,moi->mro", x.astype(np.int64) - spec.zero_point_in,
                     w.astype(np.int64) - spec.zero_point_weights)
    return requantize_array(sums.astype(np.int32), bias, multiplier, shift,
                            rounding=spec.rounding, zero_point=spec.zero_point_out, low=spec.low,
                            high=spec.high)


def elementwise(spec, left, right):
    """As docs/arithmetic.md says, step by step."""
    def scale(values, real):
        return scale_array(values, *quantize_scale(real), spec.rounding).astype(np.int64)

    a = left.astype(np.int64) - spec.zero_point_left
    b = right.astype(np.int64) - spec.zero_point_right
    match spec.operation:
        case Operation.ADD:
            double = 2 * max(spec.scale_left, spec.scale_right)
            terms = (scale(a << 20, spec.scale_left / double)
                     + scale(b << 20, spec.scale_right / double))
            result = scale(terms, double / ((1 << 20) * spec.scale_out))
        case Operation.MUL:
            result = scale(a * b, spec.scale_left * spec.scale_right / spec.scale_out)
        case Operation.RESCALE:
            result = scale(a, spec.scale_left / spec.scale_out)
    return np.clip(result + spec.zero_point_out, spec.low, spec.high).astype(np.int8)


def _windows(spec, values):
    """(n, c, y, x) → (n, c, y, x, elements of the window)"""
    rows = np.arange(spec.out_shape[0])[:, None] * spec.stride[0] + (
        np.arange(spec.kernel[0]) * spec.dilation[0])
    columns = np.arange(spec.out_shape[1])[:, None] * spec.stride[1] + (
        np.arange(spec.kernel[1]) * spec.dilation[1])
    found = values[:, :, rows[:, None, :, None], columns[None, :, None, :]]
    return found.reshape(*found.shape[:4], -1)


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
        counts = weights.sum(axis=-1)
        result = _divided(spec, sums, counts) + spec.zero_point_out
    return np.clip(result, spec.low, spec.high).astype(np.int8)


def _divided(spec, sums, counts):
    if spec.scale_in == spec.scale_out:
        magnitude = (np.abs(sums) + counts // 2) // counts
        return np.where(sums > 0, magnitude, -magnitude)
    scales = np.reshape([quantize_scale(spec.scale_in / spec.scale_out / int(count))
                         for count in counts.flat], (*counts.shape, 2))
    return scale_array(sums, scales[..., 0], scales[..., 1], spec.rounding).astype(np.int64)
