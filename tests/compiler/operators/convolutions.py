"""What special convolutions must give, in plain NumPy, and numbers to try them on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from microtron.isa.arithmetic import quantize_scale, requantize_array
from microtron.isa.config import tiny
from microtron.isa.verifier import verify
from microtron.runtime.device import run

CONFIGS = {
    "tiny": tiny,
    "batch 2": replace(tiny, batch=2),
    "more in than out": replace(tiny, block_in=8),
    "more out than in, batch 2": replace(tiny, block_out=8, batch=2, acc_bytes=16 << 10),
}


def numbers(spec, weights_shape, seed=0):
    """Data, weights, bias, multiplier and shift for a convolution."""
    rng = np.random.default_rng(seed)
    data = rng.integers(-128, 128, (spec.images, spec.channels_in, spec.height, spec.width),
                        dtype=np.int8)
    weights = rng.integers(-128, 128, weights_shape, dtype=np.int8)
    bias = rng.integers(-5000, 5000, spec.channels_out).astype(np.int32)
    scales = rng.uniform(0.0005, 0.01, spec.channels_out)
    multiplier, shift = np.transpose([quantize_scale(float(scale)) for scale in scales])
    return data, weights, bias, multiplier, shift


def result(program, data, weights, parameters, device="functional"):
    """The packed output of a program, which is verified first, and the report."""
    verify(program)
    outputs, report = run(program, {"data": data, "weights": weights, "parameters": parameters},
                          device)
    return outputs["output"], report


def windows(spec, data):
    """For each tap, what all outputs read: (n, channels, y, x), zero point taken off."""
    top, bottom, left, right = spec.pad
    padded = np.pad(data.astype(np.int64) - spec.zero_point_in,
                    ((0, 0), (0, 0), (top, bottom), (left, right)))
    for i in range(spec.kernel[0]):
        for j in range(spec.kernel[1]):
            here = padded[:, :, i * spec.dilation[0]:, j * spec.dilation[1]:]
            here = here[:, :, ::spec.stride[0], ::spec.stride[1]]
            yield (i, j), here[:, :, :spec.out_height, :spec.out_width]


def requantized(spec, sums, bias, multiplier, shift):
    return requantize_array(sums.astype(np.int32), bias[:, None, None], multiplier[:, None, None],
                            shift[:, None, None], zero_point=spec.zero_point_out, low=spec.low,
                            high=spec.high, rounding=spec.rounding)


def grouped(spec, groups, data, weights, bias, multiplier, shift):
    """A convolution in groups; weights are (outputs, inputs of a group, y, x)."""
    group_in, group_out = spec.channels_in // groups, spec.channels_out // groups
    sums = np.zeros((spec.images, spec.channels_out, spec.out_height, spec.out_width), np.int64)
    for (i, j), window in windows(spec, data):
        for group in range(groups):
            inputs = slice(group * group_in, (group + 1) * group_in)
            outputs = slice(group * group_out, (group + 1) * group_out)
            sums[:, outputs] += np.einsum("nchw,oc->nohw", window[:, inputs],
                                          weights[outputs, :, i, j].astype(np.int64))
    return requantized(spec, sums, bias, multiplier, shift)


def transposed(spec, data, weights, bias, multiplier, shift):
    """Every input adds its products to a window of the output; weights are (inputs, outputs, y,
    x)."""
    (sy, sx), (dy, dx), (height, width) = spec.stride, spec.dilation, spec.kernel
    full = np.zeros((spec.images, spec.channels_out,
                     (spec.height - 1) * sy + (height - 1) * dy + 1 + spec.output_padding[0],
                     (spec.width - 1) * sx + (width - 1) * dx + 1 + spec.output_padding[1]),
                    np.int64)
    values = data.astype(np.int64) - spec.zero_point_in
    for i in range(height):
        for j in range(width):
            here = full[:, :, i * dy:, j * dx:][:, :, ::sy, ::sx]
            here[:, :, :spec.height, :spec.width] += np.einsum(
                "nchw,co->nohw", values, weights[:, :, i, j].astype(np.int64))
    top, bottom, left, right = spec.pad
    cut = full[:, :, top:full.shape[2] - bottom, left:full.shape[3] - right]
    return requantized(spec, cut, bias, multiplier, shift)
