"""Images of integers enlarged bilinearly by whole numbers, with integer weights."""

from __future__ import annotations

import numpy as np

from .....base.classes.dataclass import dataclass
from ....operators.depthwise.linear_taps import LARGEST_UNIT, AxisTaps, axis_taps
from ...operation import Value, operand
from ...types import Array, GraphError, TensorType
from ..layers.window import AXES, Pair
from ..scaled import Scaled
from .resize import Coordinates, Resize, ResizeKind

CENTRED = (Coordinates.HALF_PIXEL, Coordinates.HALF_PIXEL_SYMMETRIC, Coordinates.PYTORCH_HALF_PIXEL)


@dataclass(frozen=True, kw_only=True)
class Upsample(Scaled):
    """Each pixel as a block of pixels, which are averages of the four around them. `scales` hold
    one number, with which sums are multiplied whose weights add up to `unit`. With `raw`, stored
    numbers are averaged as they are, with their zero points."""

    x: str = operand()
    factors: Pair
    centred: bool = True            # as half_pixel has it; else asymmetric
    raw: bool = False
    channel_axis: int = 3

    def image(self, x: TensorType) -> tuple[int, int, int, int]:
        """Images, rows, columns and channels of the input."""
        if len(x.shape) != AXES or self.channel_axis not in (1, 3) or not x.size:
            raise GraphError(f"the input has shape {x.shape} and channels on axis "
                             f"{self.channel_axis}, but must have {AXES} axes, and channels on "
                             f"axis 1 or 3")
        n, *sides = x.shape
        channels = sides.pop(self.channel_axis - 1)
        return n, sides[0], sides[1], channels

    def axes(self, x: TensorType) -> tuple[AxisTaps, AxisTaps]:
        """The taps of rows and columns."""
        _, height, width, _ = self.image(x)
        return (axis_taps(height, self.factors[0], centred=self.centred),
                axis_taps(width, self.factors[1], centred=self.centred))

    def infer(self, x: TensorType) -> TensorType:
        n, height, width, channels = self.image(x)
        if not all(1 <= each <= LARGEST_UNIT for each in self.factors):
            raise GraphError(f"factors are {self.factors}, but must be from 1 to {LARGEST_UNIT}")
        rows, columns = height * self.factors[0], width * self.factors[1]
        shape = (n, channels, rows, columns) if self.channel_axis == 1 else (
            n, rows, columns, channels)
        return TensorType(shape, x.dtype, x.quantization)

    def check(self, result: TensorType, *types: TensorType) -> None:
        expected = self.infer(*types)
        if (result.shape, result.dtype) != (expected.shape, expected.dtype):
            raise GraphError(f"the result is {result.plain()}, but must be {expected.plain()}")
        if not result.is_quantized or not types[0].is_quantized or len(self.scales) != 1:
            raise GraphError("only integers with scales are enlarged this way, with one scale")
        if self.raw and result.quantization != types[0].quantization:
            raise GraphError("stored numbers are averaged, but the scale changes")
        self.check_scaled(result, 1, types[0])
        rows, columns = self.axes(types[0])
        if rows.unit * columns.unit > LARGEST_UNIT:
            raise GraphError(f"weights add up to {rows.unit * columns.unit}, but to "
                             f"{LARGEST_UNIT} at most")

    def compute(self, result: TensorType, x: Value) -> Array:
        rows, columns = self.axes(x.type)
        zero = 0 if self.raw else x.type.require_quantization().zero_point
        values = np.moveaxis(x.array.astype(np.int64) - zero, self.channel_axis, -1)
        found = _average(_average(values, 1, rows), 2, columns)
        known = result.require_quantization()
        target = result if not self.raw else TensorType(
            result.shape, result.dtype, type(known)(known.scales, (0,)))
        return np.moveaxis(self.scale_sums(found, target), -1, self.channel_axis)


def _average(values: Array, axis: int, taps: AxisTaps) -> Array:
    """Sums of two pixels along an axis, each times its weight."""
    shape = [-1 if each == axis else 1 for each in range(values.ndim)]
    last = values.shape[axis] - 1
    found: Array = (np.take(values, taps.below, axis) * taps.lower.reshape(shape)
                    + np.take(values, np.minimum(taps.below + 1, last), axis)
                    * taps.upper.reshape(shape))
    return found


def as_upsample(resize: Resize, x: TensorType) -> Upsample | None:
    """The integer form of a bilinear resize, without a scale yet: of images by whole numbers, with
    weights that fit 8 bits."""
    if resize.kind != ResizeKind.LINEAR or len(x.shape) != AXES or not x.size or any(
            after % before for before, after in zip(x.shape, resize.shape, strict=True)):
        return None
    factors = [after // before for before, after in zip(x.shape, resize.shape, strict=True)]
    if resize.ratios and tuple(resize.ratios) != tuple(factors):
        return None
    axis = 1 if factors[1] == 1 else 3
    pair = (factors[2], factors[3]) if axis == 1 else (factors[1], factors[2])
    if factors[0] != 1 or factors[axis] != 1 or max(pair) == 1 or max(pair) > LARGEST_UNIT or (
            resize.coordinates not in (*CENTRED, Coordinates.ASYMMETRIC)):
        return None
    found = Upsample(x=resize.x, factors=pair, centred=resize.coordinates in CENTRED,
                     channel_axis=axis)
    rows, columns = found.axes(x)
    return found if rows.unit * columns.unit <= LARGEST_UNIT else None
