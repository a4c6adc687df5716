"""Depthwise convolutions of images that the host packs with the border between rows.

Loads fill a border in, and so a box of an image with a border on both sides is loaded row by row:
7 rows of 7 tiles are 7 bursts, each with a latency of its own where few are in flight. Where the
host writes the border into memory, once between the end of a row and the begin of the next, rows
follow one another as they do on the chip, and a box of any height is one run:

    . a b c . d e f . g h i        rows of 3 pixels, and a column that is the right border of one
                                   row and the left border of the next

Only rows above and below are filled in. No other operator reads such tiles: this is for layers
between a host and a host.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ...expression.expression import Expression, both, select, total
from ...expression.tensor import Tensor, compute, placeholder, reduce_axis
from ..form import requantize_sum
from ..layout import Layout, Stage, tile_images
from .depthwise import Depthwise, DepthwiseForm, sum_at, taps_of

MOST_BORDER = 255                   # tiles that a load fills before or after others


@dataclass(frozen=True, kw_only=True)
class BorderedForm(DepthwiseForm):
    """A depthwise convolution of rows with a border between them."""

    @property
    def note(self) -> str:
        return "the host packs a border between rows"

    @property
    def layouts(self) -> dict[str, Layout]:
        spec, config = self.spec, self.config
        shape = (spec.images, spec.channels_in, spec.height)
        rows = Stage((*shape, spec.width), (*shape, self.pitch),
                     ((0, 1), (1, 1), (2, 1), (3, 1)), (0, 0, 0, -spec.pad[2]), spec.zero_point_in)
        tiles = tile_images(*shape, self.pitch, config, config.depthwise_lanes)
        return {**super().layouts, "data": Layout((rows, *tiles.stages))}


def forms_of(spec: Depthwise, config: Config, plain: DepthwiseForm) -> Iterator[BorderedForm]:
    """The form, if there is a border beside rows and every block of channels has tiles of its
    own."""
    top, _, left, right = spec.pad
    pitch = spec.width + max(left, right)
    if (config.block_in == config.block_out == config.depthwise_lanes and left + right > 0
            and spec.multiplier == 1 and max(spec.columns_in, spec.columns_out) == 1
            and min(spec.pad) >= 0 and _after(spec, plain, pitch) <= MOST_BORDER
            and top * pitch <= MOST_BORDER):
        yield form_of(plain, pitch)


def _length(plain: DepthwiseForm, pitch: int) -> int:
    """Tiles of an image with its border, as far as any window sees."""
    height, width = plain.padded.shape[2:4]
    return (height - 1) * pitch + max(width, pitch)


def _after(spec: Depthwise, plain: DepthwiseForm, pitch: int) -> int:
    """Tiles after the last row."""
    return _length(plain, pitch) - (spec.pad[0] + spec.height) * pitch


def form_of(plain: DepthwiseForm, pitch: int) -> BorderedForm:
    """The form with so many tiles from row to row."""
    spec, chunks, weights = plain.spec, plain.chunks, plain.weights
    images, blocks, *_, batch, lanes = plain.data.shape
    size, before = spec.height * pitch, spec.pad[0] * pitch
    data = placeholder("data", (images, blocks, 1, size, batch, lanes), "int8")
    padded = compute("padded", (images, blocks, 1, _length(plain, pitch), batch, lanes),
                     lambda n, c, y, x, b, i: select(
        both(before <= x, x < before + size), data[n, c, y, x - before, b, i], spec.zero_point_in))
    (fy, fx), (dy, dx), (sy, sx) = chunks.taps, spec.dilation, chunks.strides(spec.stride)
    ty, tx = (reduce_axis(name, count) for name, count in zip(("ty", "tx"), chunks.counts,
                                                              strict=True))
    taps, ky, kx, row = taps_of(chunks)

    def place(y: Expression, x: Expression) -> Expression:
        return (y * sy + (ty * fy + ky) * dy) * pitch + x * sx + (tx * fx + kx) * dx

    sums: Tensor = compute("sums", plain.sums.shape, lambda n, o, y, x, b, j: total(
        padded[n, o, 0, place(y, x), b, j].cast("int32")
        * weights[o, ty, tx, row, j].cast("int32"), ty, tx, *taps))
    output = compute("output", plain.output.shape, lambda n, o, y, x, b, j: requantize_sum(
        plain.function, sum_at(spec, chunks, sums, n, o, y, x, b, j), plain.parameters, (o,),
        (b, j)))
    return BorderedForm(**vars(replace(plain, data=data, padded=padded, sums=sums, output=output,
                                       pitch=pitch)))
