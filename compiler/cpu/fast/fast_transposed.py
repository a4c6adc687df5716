"""Transposed convolutions without the zeros between pixels. Pixels of the result that are a stride
apart, a phase, meet the same taps:

    y[row × s + phase] = Σ x[row - a] × w[phase + a × s]

So all phases are outputs of one convolution, whose result has their pixels side by side.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....base.classes.dataclass import dataclass
from ...expression.expression import Expression
from ...expression.tensor import Tensor, compute
from ...graph.types import Array, Shape
from ..registry import Operand
from .arrange import Blocked
from .block import block_of, registers_of
from .fast_convolution import FLOATS, constant_float_sums
from .fast_window import Window

Pair = tuple[int, int]


@dataclass(frozen=True)
class Phases:
    """The sums of all phases, as (image, output, row, row's phase, column, column's phase)."""

    sums: Tensor
    schedule: Blocked
    stride: Pair
    before: Pair            # rows and columns that the result leaves out

    def of(self, n: Expression, row: Expression, column: Expression,
           output: Expression) -> Expression:
        """The sum of a pixel of the result."""
        (above, left), (down, across) = self.before, self.stride
        y, x = row + above, column + left
        return self.sums[n, output, y // down, y % down, x // across, x % across]


def can_split(images: Operand, weights: Operand, stride: Pair, dilation: Pair, groups: int) -> bool:
    """Whether all phases have the same number of taps: one too many, of weight 0, would not be a
    number with infinite pixels."""
    return (groups == 1 and dilation == (1, 1) and max(stride) > 1 and min(weights.type.shape) > 0
            and weights.array is not None and {images.type.dtype, weights.type.dtype} <= {*FLOATS}
            and all(size % step == 0 for size, step in zip(weights.type.shape[2:], stride,
                                                           strict=True)))


def phase_sums(images: Operand, weights: Operand, sides: Pair, stride: Pair, before: Pair,
               channel_axis: int) -> Phases | None:
    """Sums of so many rows and columns of each phase. `images` have a border above and on the left
    of one pixel less than a phase has taps; None, if vectors do not divide outputs."""
    assert weights.array is not None, "can_split has seen it"
    outputs, registers = len(weights.array), registers_of(images.target)
    widths = [each for each in registers.widths if outputs % each == 0]
    if not widths:
        return None
    n, (rows, columns), (down, across) = images.type.shape[0], sides, stride
    block = block_of(columns, outputs, widths=widths, registers=registers)
    array = _split_weights(weights.array.astype(np.float32), stride)
    shape: Shape = (n, len(array), rows, columns) if channel_axis == 1 else (
        n, rows, columns, len(array))
    found = constant_float_sums(images, array, shape, Window((1, 1), (1, 1), 1, channel_axis),
                                block)

    def element(image: Expression, output: Expression, row: Expression, y: Expression,
                column: Expression, x: Expression) -> Expression:
        channel = (y * across + x) * outputs + output
        return found.value((image, channel, row, column) if channel_axis == 1
                           else (image, row, column, channel))

    sums = compute("phases", (n, outputs, rows, down, columns, across), element)
    return Phases(sums, replace(found.schedule, row=4, column=1, result=sums), stride, before)


def _split_weights(array: Array, stride: Pair) -> Array:
    """(output, input, y, x) → (phase and output, input, taps of a phase, the last one first)"""
    outputs, inputs, height, width = array.shape
    down, across = stride
    parts = array.reshape(outputs, inputs, height // down, down, width // across, across)
    phases = parts[:, :, ::-1, :, ::-1].transpose(3, 5, 0, 1, 2, 4)
    return np.ascontiguousarray(phases.reshape(-1, inputs, height // down, width // across))
