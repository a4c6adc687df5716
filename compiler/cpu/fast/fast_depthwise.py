"""Convolutions with a group for each channel, in blocks. Where channels come last, a block is some
pixels of a row with a vector of channels; where they come first, some rows with a vector of pixels.
Taps are written out, so that pixels that several windows share are loaded once."""

from __future__ import annotations

import numpy as np

from ...expression.expression import Axis, Expression, minimum, total
from ...expression.tensor import Tensor, compute, constant, reduce_axis
from ...graph.types import Array, Shape
from ..registry import Operand
from .arrange import Blocked, Sums
from .block import Block, block_of, registers_of
from .bytes import Correction, are_bytes, per_column
from .fast_window import Window

WIDTHS = (16, 8, 4)
WRITTEN_OUT = 9                 # taps, at most; more are written out row by row
FLOATS = ("float16", "float32")


def depthwise_sums(images: Operand, weights: Operand, array: Array | None, shape: Shape,
                   window: Window) -> Sums | None:
    """Sums of products for each channel; None, if vectors do not divide a row or the channels.
    `array` has the weights, unless they are floats that are computed."""
    floats = images.type.dtype in FLOATS and weights.type.dtype in FLOATS
    known = weights.type.quantization
    if not floats and (not are_bytes(images.type, weights.type) or (
            known is not None and any(known.zero_points))):
        return None
    lanes = next((each for each in WIDTHS if shape[3] % each == 0), None)
    if lanes is None:
        return None
    dtype = "float32" if floats else "int32"
    if array is None:
        kernel = compute("kernel", (*weights.type.shape[2:], weights.type.shape[0]),
                         lambda a, b, c: weights.tensor[c, 0, a, b].cast("float32"))
    else:
        narrow = array.astype("float32" if floats else "int16")
        kernel = constant("weights", np.ascontiguousarray(narrow[:, 0].transpose(1, 2, 0)))
    unsigned = images.type.dtype == weights.type.dtype == "uint8"
    block = block_of(shape[2], shape[3], widths=[lanes], registers=registers_of(images.target))
    sums = _sums(images, kernel, shape, window, block, dtype, unsigned=unsigned)
    if floats or images.type.quantization is None:
        return sums
    assert array is not None, "bytes are constants"
    more = Correction(images.type.require_quantization().zero_point, None, sums.value, per_column(
        "weight_sums", array.sum(axis=(1, 2, 3), dtype=np.int64), window.channel_axis), 0)
    return Sums(lambda i: more.of(sums.value(i), i), sums.schedule)


def _sums(images: Operand, kernel: Tensor, shape: Shape, window: Window, block: Block,
          dtype: str, *, unsigned: bool) -> Sums:
    """The last axis is that of vectors, and the one before that of rows of a block."""
    first, taps = window.channel_axis == 1, kernel.shape[:2]
    a, b = (reduce_axis(name, size) for name, size in zip("ab", taps, strict=True))

    def product(n: Axis, one: Axis, two: Axis, three: Axis) -> Expression:
        inside = minimum(two, shape[2] - 1)
        channel, row, column = (one, inside, three) if first else (three, one, inside)
        y, x = window.pixel(row, column, a, b)
        pixel = images.tensor[(n, channel, y, x) if first else (n, y, x, channel)]
        # 16 bits hold a product of bytes, unless both are unsigned, and are multiplied twice as
        # many at a time.
        short = dtype if dtype == "float32" or unsigned else "int16"
        return total((pixel.cast(short) * kernel[a, b, channel].cast(short)).cast(dtype), a, b)

    whole = (*shape[:2], max(block.height, shape[2]), shape[3])
    blocked = Blocked(compute("sums", whole, product), 2, 3, block, before=(0, 1),
                      unrolled=2 if taps[0] * taps[1] <= WRITTEN_OUT else 1)
    return Sums(lambda i: blocked.sums[i], blocked)
