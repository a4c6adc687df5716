"""Convolutions of images that have several columns in a tile of memory.

On an array with different blocks, memory has tiles of the larger one. If an image has channels for
a part of such a tile only, neighbouring columns share it: 16 channels in tiles of 32 lanes take 16
bytes a pixel, not 32. What the array then multiplies or writes at once are several columns, and the
convolution is another one, with these columns in its channels:

    1 × 32 × 16     an input tile has columns 2 x and 2 x + 1, and each of two output blocks has the
                    weights of one output column, over both
    1 × 16 × 32     an output tile has columns 2 x and 2 x + 1: a kernel one column wider, with
                    stride 2, whose weights are zero where a column does not see a tap

Both take no more tile products than without, and where kernels have several columns fewer: three
columns, for two outputs, are four columns and not six, or two tiles of two columns for each.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd, lcm
from typing import Generic, TypeVar

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ...errors import CompileError
from ..description import extent
from ..layout import largest_block
from ..packing import Array
from ..sliding_window import Windowed

PACKED_OPERATORS = ("conv2d", "residual_conv2d", "depthwise")   # that take such images


@dataclass(frozen=True, kw_only=True)
class Convolution(Windowed):
    """The part of a convolution's description that says how its images lie in memory."""

    channels_in: int = extent("channels of the input")
    channels_out: int = extent("channels of the output")
    kernel: tuple[int, int] = extent("rows and columns of the kernel", (3, 3))
    columns_in: int = extent("columns of the input that share a tile of memory, on an array with "
                             "different blocks", 1)
    columns_out: int = extent("columns of the output that share a tile of memory", 1)

    def check(self) -> None:
        super().check()
        for name, width in (("columns_in", self.width), ("columns_out", self.out_width)):
            columns = getattr(self, name)
            if columns > 1 and self.operator not in PACKED_OPERATORS:
                raise self.wrong(name, columns, f"1: only {', '.join(PACKED_OPERATORS)} take "
                                                f"several columns in a tile")
            if columns & columns - 1 or width % columns:
                raise self.wrong(name, columns, f"a power of two that divides {width} columns")
        if self.wide and self.columns_out > 1:
            raise self.wrong("columns_out", self.columns_out, "1 if results are wide")


SpecT = TypeVar("SpecT", bound=Convolution)


@dataclass(frozen=True)
class PackedColumns(Generic[SpecT]):
    """A convolution of such images on a configuration."""

    image: SpecT            # what is asked for
    config: Config

    def __post_init__(self) -> None:
        spec = self.image
        check_columns(spec, self.config)
        if spec.out_width % self.outputs or self.convolution.out_width != (
                spec.out_width // self.outputs):
            raise CompileError(f"{spec.operator}: {self.outputs} columns of the output are "
                               f"computed at once, which {spec.out_width} are no multiple of")

    @property
    def pixel_in(self) -> int:
        """Lanes of a pixel of the input in memory."""
        return largest_block(self.config) // self.image.columns_in

    @property
    def pixel_out(self) -> int:
        return largest_block(self.config) // self.image.columns_out

    @property
    def inputs(self) -> int:
        """Columns in a tile of activations."""
        return max(1, self.config.block_in // self.pixel_in)

    @property
    def outputs(self) -> int:
        """Columns that are computed at once: those of a tile of results, and as many as begin in
        the same column of a tile of activations."""
        return lcm(max(1, self.config.block_out // self.pixel_out),
                   self.inputs // gcd(self.inputs, self.image.stride[1]))

    @property
    def channels(self) -> int:
        """Of the output, next to which lie those of the next column: all of them, or those of a
        tile of memory."""
        return self.image.channels_out if self.outputs == 1 else self.pixel_out

    @property
    def later(self) -> int:
        """Tiles by which each output block's columns are later than those of the one before, where
        a block has one column: it need not multiply the tiles that others see. 0: all alike."""
        if self.inputs == 1 or self.outputs == 1 or self.pixel_out != self.config.block_out:
            return 0
        firsts = [self._column(output, 0) // self.inputs for output in range(self.outputs)]
        even = all(first == number * firsts[1] for number, first in enumerate(firsts))
        return firsts[1] if even and self._right(firsts[1]) >= 0 else 0

    def _taps(self, later: int) -> int:
        """Tiles that the columns of an output block reach over."""
        return max(self._column(output, self.image.kernel[1] - 1) // self.inputs - output * later
                   for output in range(self.outputs)) + 1

    def _right(self, later: int) -> int:
        """Tiles of border on the right, without those that only later blocks see."""
        spec, steps = self.image, self.image.out_width // self.outputs - 1
        return (steps * (spec.stride[1] * self.outputs // self.inputs) + self._taps(later)
                - -(-spec.pad[2] // self.inputs) - spec.width // self.inputs)

    @property
    def ways(self) -> dict[str, int]:
        """Tiles of the array that are one in memory, or lie side by side."""
        return {"data": max(1, self.pixel_in // self.config.block_in),
                "output": self.outputs * self.pixel_out // self.config.block_out}

    @property
    def convolution(self) -> SpecT:
        """The convolution with columns in its channels."""
        spec, inputs, outputs = self.image, self.inputs, self.outputs
        if inputs == outputs == 1:
            return replace(spec, columns_in=1, columns_out=1)
        blocks = -(-spec.channels_out // self.channels)
        step, left = spec.stride[1] * outputs // inputs, -(-spec.pad[2] // inputs)
        return replace(
            spec, columns_in=1, columns_out=1, width=spec.width // inputs,
            channels_in=spec.channels_in if inputs == 1 else inputs * self.pixel_in,
            channels_out=blocks * outputs * self.channels,
            kernel=(spec.kernel[0], self._taps(self.later)), stride=(spec.stride[0], step),
            dilation=(spec.dilation[0], 1),
            pad=(*spec.pad[:2], left, max(0, self._right(self.later))))

    def _column(self, output: int, tap: int) -> int:
        """The column that a tap of an output reads, counted from the first tile that any output
        computed at once reads."""
        spec = self.image
        first = -(-spec.pad[2] // self.inputs) * self.inputs
        return first + output * spec.stride[1] - spec.pad[2] + tap * spec.dilation[1]

    def weights(self, weights: Array) -> Array:
        """(outputs, inputs, y, x) for the convolution with columns in its channels"""
        inner = self.convolution
        outputs, inputs, rows, taps = weights.shape
        if self.inputs == self.outputs == 1:
            return weights
        depth = inner.channels_in // self.inputs
        blocks = -(-outputs // self.channels)
        filled = np.zeros((blocks * self.channels, *weights.shape[1:]), weights.dtype)
        filled[:outputs] = weights
        found = np.zeros((blocks, self.outputs, self.channels, self.inputs, depth, rows,
                          inner.kernel[1]), weights.dtype)
        for output in range(self.outputs):
            for tap in range(taps):
                tile, column = divmod(self._column(output, tap), self.inputs)
                tile -= output * self.later
                found[:, output, :, column, :inputs, :, tile] = filled[..., tap].reshape(
                    blocks, self.channels, inputs, rows)
        return found.reshape(inner.channels_out, inner.channels_in, rows, inner.kernel[1])

    def parameters(self, values: Array) -> Array:
        """One number for each channel of the output, for the convolution with columns in its
        channels"""
        blocks = -(-len(values) // self.channels)
        filled = np.zeros(blocks * self.channels, values.dtype)
        filled[:len(values)] = values
        return np.repeat(filled.reshape(blocks, 1, self.channels), self.outputs, axis=1).ravel()


def check_columns(spec: Convolution, config: Config) -> None:
    """Refuse columns that cannot share a tile of memory on a configuration."""
    narrow, wide = sorted((config.block_in, config.block_out))
    for name, columns, channels in (("columns_in", spec.columns_in, spec.channels_in),
                                    ("columns_out", spec.columns_out, spec.channels_out)):
        most = most_columns(config, channels)
        if columns > 1 and (columns > most or wide % columns):
            raise spec.wrong(name, columns, f"a power of two of at most {most} for {channels} "
                                            f"channels and blocks of {narrow} and {wide}")


def most_columns(config: Config, channels: int) -> int:
    """How many columns of an image can share a tile of memory: as many as leave a pixel whole
    tiles of the smaller block. Several rows of a tile, as with a larger batch, leave no choice."""
    narrow, wide = sorted((config.block_in, config.block_out))
    pixel = narrow
    while pixel < channels:
        pixel *= 2
    return max(1, wide // pixel) if config.batch == 1 else 1
