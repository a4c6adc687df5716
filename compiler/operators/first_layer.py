"""First layers: convolutions of few channels, with taps of the kernel folded into channels.

An image has three channels, and a tile product sums over `block_in` of them, mostly zeros. So the
host packs several taps into the channels of a pixel:

    folded[n, (i, j, c), y, x] = padded[n, c, y × step + i × dilation, x × step + j × dilation]

What remains is an ordinary convolution with more channels, fewer taps and no border. A kernel of
7 × 7 over 3 channels, folded whole, has 147 channels and one tap: 10 tile products instead of 49.
Loads cannot fold by themselves: a tile in DRAM is one run of bytes, so they would fold along x
only, at three unaligned bus beats a tile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import gcd

from ...isa.config import Config
from ...isa.instructions import Buffer
from ..expression.expression import both, select
from ..expression.tensor import Tensor, compute, placeholder
from . import conv2d, conv2d_schedule
from .choice import ranked
from .conv2d import Conv2d, blocks_of

MOST_ESTIMATED = 2          # folds whose schedules are looked at
WORTH = 0.9                 # the part of plain cycles at which folding on the host pays


@dataclass(frozen=True, kw_only=True)
class Fold:
    """How many taps of the kernel become channels."""

    rows: int
    columns: int

    @property
    def taps(self) -> tuple[int, int]:
        return self.rows, self.columns


UNFOLDED = Fold(rows=1, columns=1)


@dataclass(frozen=True)
class Along:
    """What folding makes of one axis of a convolution."""

    size: int           # positions of the folded input
    step: int           # from one of them to the next, in pixels
    taps: int           # that remain of the kernel
    stride: int
    dilation: int


def along(spec: Conv2d, fold: Fold, axis: int) -> Along:
    """Positions are kept on the grid that outputs and remaining taps both stand on."""
    folded, stride = fold.taps[axis], spec.stride[axis]
    taps = blocks_of(spec.kernel[axis], folded)
    reach = folded * spec.dilation[axis]                # from one remaining tap to the next
    step = gcd(stride, reach) if taps > 1 else stride
    stride, dilation = stride // step, reach // step if taps > 1 else 1
    outputs = (spec.out_height, spec.out_width)[axis]
    return Along((outputs - 1) * stride + (taps - 1) * dilation + 1, step, taps, stride, dilation)


def folded(spec: Conv2d, fold: Fold) -> Conv2d:
    """The convolution of the folded input."""
    if fold == UNFOLDED:
        return spec
    y, x = along(spec, fold, 0), along(spec, fold, 1)
    return replace(spec, height=y.size, width=x.size,
                   channels_in=fold.rows * fold.columns * spec.channels_in,
                   kernel=(y.taps, x.taps), stride=(y.stride, x.stride),
                   dilation=(y.dilation, x.dilation), pad=(0, 0, 0, 0))


def folding(spec: Conv2d, fold: Fold) -> tuple[Tensor, Tensor]:
    """An image, (n, channel, y, x), and what it is folded to: (n, i, j, channel, y, x). Taps
    beyond the kernel read what lies there, or the border; their weights are zero."""
    image = placeholder("image", (spec.images, spec.channels_in, spec.height, spec.width), "int8")
    y_along, x_along = along(spec, fold, 0), along(spec, fold, 1)
    (top, _, left, _), (dy, dx) = spec.pad, spec.dilation
    shape = (spec.images, *fold.taps, spec.channels_in, y_along.size, x_along.size)

    def value(n, i, j, c, y, x):                                # type: ignore[no-untyped-def]
        row, column = y * y_along.step + i * dy, x * x_along.step + j * dx
        inside = both(top <= row, row < top + spec.height,
                      left <= column, column < left + spec.width)
        return select(inside, image[n, c, row - top, column - left], spec.zero_point_in)

    return image, compute("folded", shape, value)


def candidates(spec: Conv2d, config: Config) -> Iterator[Fold]:
    """Folds of any part of the kernel; none where channels fill a block."""
    yield UNFOLDED
    if spec.channels_in >= config.block_in:
        return
    for rows in range(1, spec.kernel[0] + 1):
        for columns in range(1, spec.kernel[1] + 1):
            even = (blocks_of(spec.kernel[0], blocks_of(spec.kernel[0], rows)) == rows
                    and blocks_of(spec.kernel[1], blocks_of(spec.kernel[1], columns)) == columns)
            if even and rows * columns > 1:
                yield Fold(rows=rows, columns=columns)


def bound(spec: Conv2d, config: Config) -> int:
    """Cycles that a convolution takes at least: one tile product each, or one bus beat."""
    images = blocks_of(spec.images, config.batch)
    depth, outputs = (blocks_of(spec.channels_in, config.block_in),
                      blocks_of(spec.channels_out, config.block_out))
    pixels = images * spec.out_height * spec.out_width
    products = pixels * outputs * depth * spec.kernel[0] * spec.kernel[1]
    moved = (images * depth * spec.height * spec.width * config.tile_bytes(Buffer.INP)
             + pixels * outputs * config.tile_bytes(Buffer.OUT))
    return max(products, moved // config.bus_bytes)


def estimate(spec: Conv2d, config: Config) -> float:
    return ranked(conv2d_schedule, [conv2d.expressions(spec, config)])[0].estimate


def default_fold(spec: Conv2d, config: Config) -> Fold:
    """The fold with the best estimate, or none if that is nearly as fast: folding is work for the
    host. Few are estimated, those with the lowest bounds."""
    def key(fold: Fold) -> tuple[int, int]:
        after = folded(spec, fold)
        return bound(after, config), after.channels_in * after.height * after.width

    folds = sorted(candidates(spec, config), key=key)
    if folds[0] == UNFOLDED:
        return UNFOLDED
    cycles = {fold: estimate(folded(spec, fold), config) for fold in folds[:MOST_ESTIMATED]}
    best = min(cycles, key=lambda fold: cycles[fold])
    plain = bound(spec, config)             # its estimate is no less, and slow to find
    return best if cycles[best] <= WORTH * plain else UNFOLDED
