"""First layers: convolutions of few channels, with taps of the kernel folded into channels.

An image has three channels, and a tile product sums over `block_in` of them, mostly zeros. So the
host packs several taps into the channels of a pixel:

    folded[n, (i, j, c), y, x] = padded[n, c, y × step + i × dilation, x × step + j × dilation]

What remains is an ordinary convolution with more channels, fewer taps and no border. On an array
with different blocks, its columns may share tiles (`packed_columns.py`). A kernel of
7 × 7 over 3 channels, folded whole, has 147 channels and one tap: 10 tile products instead of 49.
Loads cannot fold by themselves: a tile in DRAM is one run of bytes, so they would fold along x
only, at three unaligned bus beats a tile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from math import gcd

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import Buffer
from ...errors import CompileError
from ...expression.expression import both, select
from ...expression.tensor import Tensor, compute, placeholder
from ..divisions import even_sizes
from ..form import blocks_of
from ..layout import Layout, Stage
from ..packing import Array, Operand, pad_axis, parameter_operands, weight_operand
from ..work import Work
from .conv2d import Conv2d, Conv2dForm, plain_forms
from .packed_columns import most_columns

MOST_FOLDS = 2              # whose schedules are looked at
MOST_CHANNELS = 1024        # of a folded image: it is loaded for every one of them
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
    """One axis of a convolution, after folding."""

    size: int           # positions of the folded input
    step: int           # from one of them to the next, in pixels
    taps: int           # that remain of the kernel
    stride: int
    dilation: int


def along(spec: Conv2d, fold: Fold, axis: int) -> Along:
    """The folded input has the coarsest grid on which both outputs and remaining taps lie."""
    folded, stride = fold.taps[axis], spec.stride[axis]
    taps = blocks_of(spec.kernel[axis], folded)
    reach = folded * spec.dilation[axis]                # from one remaining tap to the next
    step = gcd(stride, reach) if taps > 1 else stride
    stride, dilation = stride // step, reach // step if taps > 1 else 1
    outputs = (spec.out_height, spec.out_width)[axis]
    return Along((outputs - 1) * stride + (taps - 1) * dilation + 1, step, taps, stride, dilation)


def fold_convolution(spec: Conv2d, fold: Fold) -> Conv2d:
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
    """Folds of every possible part of the kernel; none if the channels already fill a block, or
    if columns share a tile: such images are not the host's."""
    yield UNFOLDED
    if spec.channels_in >= config.block_in or spec.columns_in > 1:
        return
    for rows in reversed(even_sizes(spec.kernel[0])):
        for columns in reversed(even_sizes(spec.kernel[1])):
            if 1 < rows * columns <= MOST_CHANNELS // spec.channels_in:
                yield Fold(rows=rows, columns=columns)


@dataclass(frozen=True, kw_only=True)
class RearrangedForm(Conv2dForm):
    """The convolution of an image that the host rearranges. `spec` is what remains of it."""

    image: Conv2d

    @property
    def handicap(self) -> float:
        return 1 / WORTH

    @property
    def description(self) -> Conv2d:
        return self.image


@dataclass(frozen=True, kw_only=True)
class FoldedForm(RearrangedForm):
    """The convolution of an image that the host folds."""

    fold: Fold

    @property
    def note(self) -> str:
        return f"the host folds {self.fold.rows} × {self.fold.columns} taps into channels"

    @property
    def work(self) -> Work:
        return replace(super().work, macs=self.image.macs)

    @property
    def operands(self) -> tuple[Operand, ...]:
        image = self.image
        return (Operand("data", (image.images, image.channels_in, image.height, image.width)),
                weight_operand((image.channels_out, image.channels_in, *image.kernel),
                               self.config, image.planes), *parameter_operands(image.channels_out))

    @property
    def layouts(self) -> dict[str, Layout]:
        """The image is folded, then cut into tiles."""
        plain = super().layouts
        fold = fold_stage(self.image, self.fold)
        return {**plain, "data": Layout((fold, *plain["data"].stages))}

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        return super().pack({**given,
                             "data": fold_activations(given["data"], self.image, self.fold),
                             "weights": fold_weights(given["weights"], self.fold)})


def fold_activations(tensor: Array, spec: Conv2d, fold: Fold) -> Array:
    """(n, channels, y, x) → (n, taps × channels, y, x) with taps of the kernel in the channels"""
    y, x = along(spec, fold, 0), along(spec, fold, 1)
    (top, _, left, _), (dy, dx) = spec.pad, spec.dilation
    sizes = [(each.size - 1) * each.step + (taps - 1) * dilation + 1
             for each, taps, dilation in zip((y, x), fold.taps, spec.dilation, strict=True)]
    border = [(0, 0), (0, 0), *((before, max(0, size - before - inside)) for before, size, inside
                                in zip((top, left), sizes, tensor.shape[2:], strict=True))]
    padded = np.pad(tensor, border, constant_values=spec.zero_point_in)
    parts = [padded[:, :, i * dy:, j * dx:][:, :, ::y.step, ::x.step][:, :, :y.size, :x.size]
             for i in range(fold.rows) for j in range(fold.columns)]
    return np.concatenate(parts, axis=1)


def fold_stage(spec: Conv2d, fold: Fold) -> Stage:
    """(n, channels, y, x) → (n, i, j, channels, y, x): the same as a layout"""
    y, x = along(spec, fold, 0), along(spec, fold, 1)
    (top, _, left, _), (dy, dx) = spec.pad, spec.dilation
    source = (spec.images, spec.channels_in, spec.height, spec.width)
    return Stage(source, (spec.images, *fold.taps, spec.channels_in, y.size, x.size),
                 ((0, 1), (2, dy), (3, dx), (1, 1), (2, y.step), (3, x.step)),
                 (0, 0, -top, -left), spec.zero_point_in)


def fold_weights(weights: Array, fold: Fold) -> Array:
    """(outputs, channels, y, x) → (outputs, taps × channels, y, x) for folded activations"""
    weights = pad_axis(pad_axis(weights, 2, fold.rows), 3, fold.columns)
    outputs, channels, height, width = weights.shape
    taps = weights.reshape(outputs, channels, height // fold.rows, fold.rows,
                           width // fold.columns, fold.columns).transpose(0, 3, 5, 1, 2, 4)
    return np.ascontiguousarray(taps.reshape(outputs, fold.rows * fold.columns * channels,
                                             height // fold.rows, width // fold.columns))


def forms_of(spec: Conv2d, config: Config, prefix: str = "") -> Iterable[Conv2dForm]:
    """A convolution folded in the most promising ways, those with the lowest bounds, and as it is;
    only as it is where folding gains nothing."""
    def key(fold: Fold) -> tuple[int, int]:
        after = fold_convolution(spec, fold)
        return least(after, config), after.channels_in * after.height * after.width

    folds = sorted(candidates(spec, config), key=key)
    if folds[0] != UNFOLDED:
        for fold in folds[:MOST_FOLDS]:
            if fold != UNFOLDED:
                yield from folded_forms(spec, config, fold, prefix)
        yield from _packed_forms(spec, config, folds, prefix)
    yield from plain_forms(spec, config, prefix)


def _packed_forms(spec: Conv2d, config: Config, folds: Iterable[Fold],
                  prefix: str) -> Iterator[FoldedForm]:
    """The fold of fewest bytes among those whose columns can share tiles of memory, if any."""
    packed = []
    for fold in folds:
        after = fold_convolution(spec, fold)
        columns = most_columns(config, after.channels_in)
        if fold != UNFOLDED and columns > 1 and after.width % columns == 0:
            size = after.height * after.width // columns
            packed.append((size, after.kernel[0], fold, columns))   # fewer rows: tiles have columns
    if packed:
        *_, fold, columns = min(packed, key=lambda each: each[:2])
        with suppress(CompileError):
            for form in plain_forms(replace(fold_convolution(spec, fold), columns_in=columns),
                                    config, prefix):
                yield FoldedForm(**vars(form), image=spec, fold=fold)


def folded_forms(spec: Conv2d, config: Config, fold: Fold, prefix: str = "") -> list[FoldedForm]:
    """The forms of a convolution folded in one way."""
    assert fold != UNFOLDED, "that is a plain convolution"
    return [FoldedForm(**vars(form), image=spec, fold=fold)
            for form in plain_forms(fold_convolution(spec, fold), config, prefix)]


def least(spec: Conv2d, config: Config) -> int:
    """The least cycles of a plain convolution, with one tile product or one bus beat in each."""
    images = blocks_of(spec.images, config.batch)
    depth, outputs = (blocks_of(spec.channels_in, config.block_in),
                      blocks_of(spec.channels_out, config.block_out))
    pixels = images * spec.out_height * spec.out_width
    products = pixels * outputs * depth * spec.kernel[0] * spec.kernel[1] * spec.planes
    moved = (images * depth * spec.height * spec.width * config.tile_bytes(Buffer.INP)
             + pixels * outputs * config.tile_bytes(Buffer.ACC if spec.wide else Buffer.OUT))
    return max(products, moved // config.bus_bytes)
