"""How the window of a depthwise convolution is cut, and how its weights are laid out in tile rows.

Each row holds one tap for all lanes. A window that does not fit as a whole is cut into chunks. On
accelerators with three-tap windows (`Config.window_taps`), one axis of the kernel *slides*: its
taps are stored in groups of three, each group in four rows, with zeros where there is no tap.

    3 × 3, plain:       row = ky × 3 + kx
    sliding along x:    row = ky × 4 + kx
    sliding along y:    row = kx × 4 + ky
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import WINDOW_ROWS, WINDOW_TAPS, Buffer
from ..convolution.conv2d import Conv2d
from ..cost_model import Size
from ..form import blocks_of
from ..packing import Array, pad_axis, weight_planes

MICRO_OPS = 4                   # for each tap: two buffers each of input and weights


@dataclass(frozen=True)
class Chunks:
    """How a window is cut: taps per chunk and number of chunks, along y and x."""

    taps: tuple[int, int]
    counts: tuple[int, int]

    planes: int = 1
    slide: int | None = None        # the axis along which three-tap windows slide, if any
    dense: bool = False             # channel blocks share tiles, and steps take those that do

    @property
    def weight_rows(self) -> int:
        """The number of weight rows that a chunk has."""
        count = prod(self.taps) * self.planes
        return count if self.slide is None else count // WINDOW_TAPS * WINDOW_ROWS

    def rows(self, config: Config) -> int:
        """The number of weight rows in a chunk, rounded up to whole tiles. Where a step takes
        several channel blocks always, those of an accumulator tile, they may share one."""
        count = self.weight_rows
        if self.can_share(config):
            rows = 1 << (count - 1).bit_length()
            return rows if self.dense else max(config.depthwise_lanes, rows)
        return blocks_of(count, config.block_out) * config.block_out

    def can_share(self, config: Config) -> bool:
        """Whether a tile has room for the weights of several channel blocks."""
        return self.counts == (1, 1) and 2 * self.weight_rows <= config.block_out

    def blocks_in_tile(self, config: Config) -> int:
        """Channel blocks whose weights share a tile."""
        return max(1, config.block_out // self.rows(config))

    def strides(self, stride: tuple[int, int]) -> tuple[int, int]:
        """The distance between neighbouring sums in the input: 1 along the axis that slides."""
        return (1 if self.slide == 0 else stride[0], 1 if self.slide == 1 else stride[1])

    def sums(self, stride: tuple[int, int], rows: Size, columns: Size) -> tuple[Size, Size]:
        """How many rows and columns of sums a region of the output needs."""
        own = self.strides(stride)
        return (rows - 1) * (stride[0] // own[0]) + 1, (columns - 1) * (stride[1] // own[1]) + 1

    def cycles(self, stride: tuple[int, int], rows: Size, columns: Size) -> Size:
        """MAC array cycles for one chunk and a region of the output in one channel block."""
        if self.slide is None:
            return rows * columns * prod(self.taps) * self.planes
        height, width = self.sums(stride, rows, columns)
        across, along = (width, height) if self.slide == 0 else (height, width)
        return across * (along + WINDOW_TAPS - 1) * (prod(self.taps) // WINDOW_TAPS) * self.planes

    def pack(self, weights: Array, lanes: int) -> Array:
        """(channels, y, x) → (block, chunk y, chunk x, row, lane), one row per tap"""
        (height, width), (far_y, far_x) = self.taps, self.counts
        weights = pad_axis(pad_axis(pad_axis(weights, 0, lanes), 1, height * far_y), 2,
                           width * far_x)
        taps = weight_planes(weights, self.planes).reshape(
            -1, lanes, far_y, height, far_x, width, self.planes).transpose(0, 2, 4, 3, 5, 6, 1)
        if self.slide is not None:
            taps = self._group_taps(taps)
        return taps.reshape(*taps.shape[:3], -1, lanes)

    def _group_taps(self, taps: Array) -> Array:
        """(block, chunk y, chunk x, y, x, plane, lane) → (…, across, group, plane, row, lane)"""
        if self.slide == 0:
            taps = taps.swapaxes(3, 4)
        across, along = taps.shape[3:5]
        grouped = taps.reshape(*taps.shape[:3], across, along // WINDOW_TAPS, WINDOW_TAPS,
                               *taps.shape[5:])
        return pad_axis(np.moveaxis(grouped, 5, 6), 6, WINDOW_ROWS)


def chunks_of(spec: Conv2d, config: Config, slides: tuple[int, ...] = (1, 0)) -> Chunks:
    """The whole window, sliding along one of some axes if that is faster; or, if it does not fit,
    the fewest equal pieces that do. A single tap always fits."""
    whole = Chunks(spec.kernel, (1, 1), spec.planes)
    ways = [whole, *_sliding(spec, config, slides)]
    for chunks in sorted(ways, key=lambda each: float(each.cycles(spec.stride, *spec.out_shape))):
        if _fits(chunks, spec, config):
            return chunks
    cut = whole
    while not _fits(cut, spec, config):
        taps = list(cut.taps)
        longer = 0 if taps[0] >= taps[1] else 1
        pieces = blocks_of(spec.kernel[longer], taps[longer]) + 1
        taps[longer] = min(blocks_of(spec.kernel[longer], pieces), taps[longer] - 1)
        height, width = taps
        cut = Chunks((height, width), (blocks_of(spec.kernel[0], height),
                                       blocks_of(spec.kernel[1], width)), spec.planes)
    return cut


def _sliding(spec: Conv2d, config: Config, slides: tuple[int, ...]) -> Iterator[Chunks]:
    """The whole window, with the axis that slides padded to a multiple of three taps. The first
    axis wins a tie."""
    for axis in slides if config.has_windows else ():
        taps = list(spec.kernel)
        taps[axis] = blocks_of(taps[axis], WINDOW_TAPS) * WINDOW_TAPS
        if spec.dilation[axis] == 1:
            yield Chunks((taps[0], taps[1]), (1, 1), spec.planes, axis)


def _fits(chunks: Chunks, spec: Conv2d, config: Config) -> bool:
    """Whether two buffers each of input and weights fit, and all micro-ops."""
    reach = [(count - 1) * dilation + 1
             for count, dilation in zip(chunks.taps, spec.dilation, strict=True)]
    count = prod(chunks.taps) * chunks.planes
    return (prod(reach) <= config.tiles(Buffer.INP) // 2
            and blocks_of(chunks.rows(config), config.block_out) <= config.tiles(Buffer.WGT) // 2
            and count <= max(chunks.planes, config.tiles(Buffer.UOP) // MICRO_OPS))
