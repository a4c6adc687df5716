"""Operations on images through a window that slides over them: convolutions and pools.

Images are (n, y, x, channel), or (n, channel, y, x) with `channel_axis` 1. Weights are always
(output, input of its group, y, x).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

import numpy as np

from .....base.classes.dataclass import dataclass
from .....isa.arithmetic import quantize_scale, scale_array
from .....isa.instructions import Rounding
from ...operation import Operation, Value, operand
from ...types import Array, GraphError, Shape, TensorType
from ..scaled import SUMS, Scaled, check_scale, subtract_zero_point

Pair = tuple[int, int]
Sides = tuple[int, int, int, int]       # top, bottom, left, right
AXES = 4
MOST_WINDOWS = 1 << 20      # of a pool along a side: no image is larger


@dataclass(frozen=True, kw_only=True)
class _Window(Scaled):
    """Where a window lies."""

    x: str = operand()
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    pad: Sides = (0, 0, 0, 0)
    channel_axis: int = 3

    def image(self, x: TensorType) -> tuple[int, int, int, int]:
        """Images, rows, columns and channels of the input."""
        if len(x.shape) != AXES or self.channel_axis not in (1, 3):
            raise GraphError(f"the input has shape {x.shape} and channels on axis "
                             f"{self.channel_axis}, but must have {AXES} axes, and channels on "
                             f"axis 1 or 3")
        n, *sides = x.shape
        channels = sides.pop(self.channel_axis - 1)
        return n, sides[0], sides[1], channels

    def image_shape(self, n: int, rows: int, columns: int, channels: int) -> Shape:
        """The shape of images with their channels where they belong."""
        return (n, channels, rows, columns) if self.channel_axis == 1 else (
            n, rows, columns, channels)

    def windows(self, x: TensorType, kernel: Pair) -> Pair:
        """Rows and columns of windows."""
        n, height, width, channels = self.image(x)
        if min(*self.stride, *self.dilation, *kernel) < 1 or min(self.pad) < 0:
            raise GraphError(f"kernel {kernel}, stride {self.stride} and dilation {self.dilation} "
                             f"must be 1 or more, and pad {self.pad} not negative")
        top, bottom, left, right = self.pad
        # A border counts too: what does not fit into memory with it is refused.
        TensorType((n, height + top + bottom, width + left + right, channels), x.dtype)
        counts = [(size - (taps - 1) * dilation - 1) // stride + 1 for size, taps, dilation, stride
                  in zip((height + top + bottom, width + left + right), kernel, self.dilation,
                         self.stride, strict=True)]
        if min(counts) < 1:
            raise GraphError(f"a kernel of {kernel} with dilation {self.dilation} is larger than "
                             f"the padded input of {height + top + bottom} × "
                             f"{width + left + right}")
        return counts[0], counts[1]

    def channels_last(self, array: Array) -> Array:
        return np.moveaxis(array, self.channel_axis, -1)

    def place_channels(self, array: Array) -> Array:
        """Channels from the end to where they belong."""
        return np.moveaxis(array, -1, self.channel_axis)

    def taps(self, images: Array, kernel: Pair, counts: Pair,
             padding: float) -> Iterator[tuple[int, int, Array]]:
        """For each tap of the window, what all windows read there: (n, y, x, channel)."""
        top, bottom, left, right = self.pad
        padded = np.pad(images, ((0, 0), (top, bottom), (left, right), (0, 0)),
                        constant_values=padding)
        for i, j in np.ndindex(kernel):
            here = padded[:, i * self.dilation[0]:, j * self.dilation[1]:]
            here = here[:, ::self.stride[0], ::self.stride[1]]
            yield i, j, here[:, :counts[0], :counts[1]]


@dataclass(frozen=True, kw_only=True)
class _Convolution(_Window):
    """A window with weights in it, (output, input of its group, y, x), and perhaps a bias."""

    weights: str = operand()
    bias: str | None = operand(None)
    groups: int = 1

    def check_weights(self, channels: int, weights: TensorType, *bias: TensorType) -> None:
        """Refuse weights, or a bias, that do not fit an input of so many channels."""
        if len(weights.shape) != AXES or self.groups < 1 or (
                weights.shape[1] * self.groups != channels or weights.shape[0] % self.groups):
            raise GraphError(f"weights have shape {weights.shape} in {self.groups} groups, but the "
                             f"input has {channels} channels")
        check_bias(weights.shape[0], *bias)

    def check(self, result: TensorType, *types: TensorType) -> None:
        expected = self.infer(*types)
        if result.shape != expected.shape:
            raise GraphError(f"the result has shape {result.shape}, but must have "
                             f"{expected.shape}")
        self.check_scaled(result, types[1].shape[0], *types[:2])


@dataclass(frozen=True, kw_only=True)
class Conv(_Convolution):
    """A convolution, plain, in groups, or with a group for each channel."""

    def infer(self, x: TensorType, weights: TensorType, *bias: TensorType) -> TensorType:
        n, _, _, channels = self.image(x)
        self.check_weights(channels, weights, *bias)
        rows, columns = self.windows(x, (weights.shape[2], weights.shape[3]))
        return TensorType(self.image_shape(n, rows, columns, weights.shape[0]),
                          x.dtype if x.is_float else SUMS)

    def compute(self, result: TensorType, x: Value, weights: Value, *bias: Value) -> Array:
        images = self.channels_last(subtract_zero_point(x.array, x.type))
        kernel = subtract_zero_point(weights.array, weights.type)
        outputs, depth, *taps = kernel.shape
        counts = self.windows(x.type, (taps[0], taps[1]))
        sums: Array = np.zeros((images.shape[0], *counts, self.groups, outputs // self.groups),
                               images.dtype)
        # One matrix after the other in memory: NumPy multiplies others an element at a time.
        by_tap = np.ascontiguousarray(kernel.reshape(
            self.groups, outputs // self.groups, depth, *taps).transpose(3, 4, 0, 2, 1))
        for i, j, here in self.taps(images, (taps[0], taps[1]), counts, 0):
            here = here.reshape(*here.shape[:3], self.groups, depth)        # a copy, in order
            if depth == 1:
                sums += here * by_tap[i, j, :, 0]
            elif self.groups == 1:
                sums += (here.reshape(-1, depth) @ by_tap[i, j, 0]).reshape(sums.shape)
            else:
                sums += np.matmul(here[..., None, :], by_tap[i, j])[..., 0, :]
        total = sums.reshape(*sums.shape[:3], outputs) + sum(each.array for each in bias)
        return self.place_channels(self.scale_sums(total, result))


@dataclass(frozen=True, kw_only=True)
class TransposedConv(_Convolution):
    """Every input pixel adds its products to a window of the output. `pad` is cut off, and rows
    and columns of `output_padding` are added below and to the right. The zero point of the input
    is subtracted before."""

    output_padding: Pair = (0, 0)

    def infer(self, x: TensorType, weights: TensorType, *bias: TensorType) -> TensorType:
        n, height, width, channels = self.image(x)
        self.check_weights(channels, weights, *bias)
        if min(*self.stride, *self.dilation, *weights.shape[2:]) < 1 or min(
                *self.pad, *self.output_padding) < 0:
            raise GraphError(f"kernel {weights.shape[2:]}, stride {self.stride} and dilation "
                             f"{self.dilation} must be 1 or more, and pad {self.pad} and "
                             f"{self.output_padding} not negative")
        full = [(size - 1) * stride + (taps - 1) * dilation + 1 + more
                for size, stride, taps, dilation, more in zip(
                    (height, width), self.stride, weights.shape[2:], self.dilation,
                    self.output_padding, strict=True)]
        TensorType((n, *full, weights.shape[0]), x.dtype)       # before pad is cut off
        sides = [size - before - after for size, before, after in zip(
            full, self.pad[::2], self.pad[1::2], strict=True)]
        if min(sides) < 1:
            raise GraphError(f"pad {self.pad} leaves nothing of the output")
        return TensorType(self.image_shape(n, sides[0], sides[1], weights.shape[0]),
                          x.dtype if x.is_float else SUMS)

    def compute(self, result: TensorType, x: Value, weights: Value, *bias: Value) -> Array:
        images = self.channels_last(subtract_zero_point(x.array, x.type))
        kernel = subtract_zero_point(weights.array, weights.type)
        outputs, depth, *taps = kernel.shape
        n, height, width, _ = images.shape
        (sy, sx), (dy, dx) = self.stride, self.dilation
        full = np.zeros((n, (height - 1) * sy + (taps[0] - 1) * dy + 1 + self.output_padding[0],
                         (width - 1) * sx + (taps[1] - 1) * dx + 1 + self.output_padding[1],
                         self.groups, outputs // self.groups), images.dtype)
        by_group = kernel.reshape(self.groups, outputs // self.groups, depth, *taps)
        grouped = images.reshape(n, height, width, self.groups, 1, depth)
        for i, j in np.ndindex(*taps):
            here = full[:, i * dy:, j * dx:][:, ::sy, ::sx][:, :height, :width]
            here += np.matmul(grouped, by_group[..., i, j].swapaxes(1, 2))[..., 0, :]
        top, bottom, left, right = self.pad
        cut = full[:, top:full.shape[1] - bottom, left:full.shape[2] - right]
        total = cut.reshape(*cut.shape[:3], outputs) + sum(each.array for each in bias)
        return self.place_channels(self.scale_sums(total, result))


class PoolKind(Enum):
    MAX = "max"
    AVERAGE = "average"


@dataclass(frozen=True, kw_only=True)
class Pool(_Window):
    """A maximum or an average over windows.

    An average is divided by the number of elements inside the image or, with `count_include_pad`,
    by that of the whole window. Of quantized tensors, zero points are subtracted before, unless
    `raw`: TFLite averages stored numbers as they are. With a scale, the average is multiplied with
    it; without, or if it is 1, quotients are rounded exactly.
    """

    kind: PoolKind
    kernel: Pair
    count_include_pad: bool = False
    raw: bool = False

    def infer(self, x: TensorType) -> TensorType:
        n, _, _, channels = self.image(x)
        return TensorType(self.image_shape(n, *self.windows(x, self.kernel), channels), x.dtype,
                          x.quantization)

    def check(self, result: TensorType, *types: TensorType) -> None:
        expected = self.infer(*types)
        self.check_bounds(result)
        if (result.shape, result.dtype) != (expected.shape, expected.dtype):
            raise GraphError(f"the result is {result.plain()}, but must be {expected.plain()}")
        for scale in self.scales:
            check_scale(scale)
        if len(self.scales) > 1 or (self.scales and (
                self.kind == PoolKind.MAX or self.raw or not result.is_quantized)):
            raise GraphError(f"there are scales {self.scales}, but only averages of quantized "
                             f"tensors have one")
        if not self.scales and not self.raw and result.quantization != expected.quantization:
            raise GraphError(f"the result is {result}, but must be {expected}")
        if any((each < 1).any() for each in self._sides(types[0])):
            raise GraphError(f"with pad {self.pad} there are windows outside the image")

    def counts(self, x: TensorType) -> Array:
        """Elements of each window inside the image: (y, x)."""
        rows, columns = self._sides(x)
        found: Array = rows[:, None] * columns
        return found

    def _sides(self, x: TensorType) -> tuple[Array, Array]:
        """Taps of each row and of each column of windows inside the image."""
        _, height, width, _ = self.image(x)
        rows, columns = self.windows(x, self.kernel)
        return self._taps_inside(0, height, rows), self._taps_inside(1, width, columns)

    def _taps_inside(self, axis: int, size: int, windows: int) -> Array:
        """Taps of each window inside the image, along an axis: those i with
        0 ≤ start + i × dilation < size."""
        if windows > MOST_WINDOWS:
            raise GraphError(f"there are {windows} windows along a side, more than {MOST_WINDOWS}")
        dilation = self.dilation[axis]
        starts = np.arange(windows, dtype=np.int64) * self.stride[axis] - self.pad[2 * axis]
        first = -(np.minimum(starts, 0) // dilation)
        last = np.minimum((size - 1 - starts) // dilation, self.kernel[axis] - 1)
        found: Array = np.maximum(last - first + 1, 0)
        return found

    def compute(self, result: TensorType, x: Value) -> Array:
        images, counts = self.channels_last(x.array), self.windows(x.type, self.kernel)
        if self.kind == PoolKind.MAX:
            least = -np.inf if x.type.is_float else x.type.range[0]
            taps = self.taps(images, self.kernel, counts, least)
            return self.place_channels(self.clamp(
                np.max([here for _, _, here in taps], axis=0), result))
        return self.place_channels(self._average(images, x.type, result, counts))

    def _average(self, images: Array, x: TensorType, result: TensorType, counts: Pair) -> Array:
        zero = x.require_quantization().zero_point if x.is_quantized and not self.raw else 0
        values = images if x.is_float else images.astype(np.int64) - zero
        sums = np.sum([here for _, _, here in self.taps(values, self.kernel, counts, 0)], axis=0)
        size = self.kernel[0] * self.kernel[1]
        divisor = np.full(counts, size) if self.count_include_pad else self.counts(x)
        if x.is_float:
            return self.clamp((sums / divisor[..., None]).astype(x.dtype), result)
        shifts = result.is_quantized and not self.raw
        added = result.require_quantization().zero_point if shifts else 0
        if self.scales in ((), (1.0,)):
            return self.clamp(round_quotient(sums, divisor[..., None], self.rounding) + added,
                              result)
        averages = np.empty_like(sums)
        for count in np.unique(divisor):
            at = divisor == count
            averages[:, at] = scale_array(sums[:, at], *quantize_scale(self.scales[0] / count),
                                          self.rounding)
        return self.clamp(averages + added, result)


def round_quotient(value: Array, divisor: Array, rounding: int) -> Array:
    """value / divisor, rounded exactly: ties to even, or away from zero."""
    below = np.floor_divide(value, divisor)
    rest = 2 * (value - below * divisor)
    up = below % 2 == 1 if rounding == Rounding.EVEN else value >= 0
    found: Array = below + ((rest > divisor) | ((rest == divisor) & up))
    return found


def check_bias(outputs: int, *bias: TensorType) -> None:
    for each in bias:
        if each.shape != (outputs,):
            raise GraphError(f"the bias has shape {each.shape}, but must have ({outputs},)")


def common_channel_axis(operations: Iterable[Operation]) -> int | None:
    """The axis on which all windows among some operations have their channels, if there is one."""
    axes = {each.channel_axis for each in operations
            if isinstance(each, Conv | TransposedConv | Pool)}
    return axes.pop() if len(axes) == 1 else None
