"""Maximum and average over windows of int8 tensors, and over whole images.

Tensors are packed as (n, channel block, y, x, batch, lane) with block_out lanes. The ALU does it:
tiles are widened on their way into the accumulator, combined there and requantized. A large window
is combined along y first, then along x, which is less work where windows overlap.

At a border, an average counts the elements that are there: then every position has parameters of
its own, (y, x, 3, batch, lane); where a dimension makes no difference, its extent is 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from ...isa.arithmetic import quantize_scale
from ...isa.config import Config
from ...isa.instructions import PARAMETER_TILES, Rounding
from ..accelerator.intrinsic import requantize_function
from ..errors import CompileError
from ..expression.expression import Call, Function, both, largest, select, total
from ..expression.tensor import Tensor, compute, placeholder, reduce_axis
from .packing import Array, pack_parameters
from .window import Windowed

LATENCY = 12                # cycles until the ALU's result can be its operand, about


class Kind(Enum):
    MAX = "max"
    AVERAGE = "average"


@dataclass(frozen=True, kw_only=True)
class Pool(Windowed):
    """What is to be computed.

    An average is divided by the number of elements inside the image, or by that of the whole
    window with `count_include_pad`; what is padded then is `zero_point_in`. With the defaults for
    scales, zero points and rounding the result is TFLite's, which leaves zero points in.
    """

    kind: Kind
    channels: int
    count_include_pad: bool = False
    scale_in: float = 1.0
    scale_out: float = 1.0
    rounding: Rounding = Rounding.AWAY

    def __post_init__(self) -> None:
        self.check("pool", "channels")
        if min(self.counts(0).min(), self.counts(1).min()) < 1:
            raise CompileError(f"pool: with pad {self.pad} there are windows that lie outside the "
                               f"image altogether; take less padding")

    def counts(self, axis: int) -> Array:
        """Elements of each window inside the image, along rows (0) or columns (1)."""
        before, extent = self.pad[2 * axis], (self.height, self.width)[axis]
        first = np.arange(self.out_shape[axis])[:, None] * self.stride[axis] - before
        places = first + np.arange(self.kernel[axis]) * self.dilation[axis]
        counts: Array = ((places >= 0) & (places < extent)).sum(axis=1)
        return counts

    def divisors(self) -> Array:
        """What each sum is divided by, (y, x); an extent is 1 where it makes no difference."""
        if self.kind == Kind.MAX:
            return np.ones((1, 1), np.int64)
        sides = [np.full(1, self.kernel[axis]) if self.count_include_pad else self.counts(axis)
                 for axis in range(2)]
        rows, columns = (side[:1] if (side == side[0]).all() else side for side in sides)
        table: Array = rows[:, None] * columns[None, :]
        return table

    @property
    def padding(self) -> int:
        """The value that is padded."""
        if self.kind == Kind.MAX:
            return -128
        return self.zero_point_in if self.count_include_pad else 0


def global_average(*, height: int, width: int, channels: int, images: int = 1) -> Pool:
    """The average of each channel of an image."""
    return Pool(kind=Kind.AVERAGE, height=height, width=width, channels=channels, images=images,
                kernel=(height, width))


def division(count: int) -> tuple[int, int]:
    """Multiplier and shift that divide by a count. The multiplier is rounded up, so that what lies
    on a tie does not fall short of it; up to 2^21 elements nothing else is lifted to a tie."""
    shift = 30 + (count - 1).bit_length()
    return -(-(1 << shift) // count), shift


def parameters(spec: Pool, config: Config) -> Array:
    """What the program takes as `parameters`."""
    divisors = spec.divisors()
    ratio = spec.scale_in / spec.scale_out
    tiles = np.empty((*divisors.shape, PARAMETER_TILES, config.batch, config.block_out), np.int32)
    for place in np.ndindex(divisors.shape):
        count = int(divisors[place])
        scale = division(count) if ratio == 1 else quantize_scale(ratio / count)
        bias, multiplier, shift = (np.full(config.block_out, each)
                                   for each in (-count * spec.zero_point_in, *scale))
        tiles[place] = pack_parameters(bias, multiplier, shift, config)[0]
    return tiles


@dataclass(frozen=True, kw_only=True)
class Expressions:
    """The tensors of a pool on one configuration."""

    spec: Pool
    config: Config
    function: Function
    data: Tensor
    padded: Tensor
    parameters: Tensor
    columns: Tensor | None      # combined along y, if that is done apart
    sums: Tensor                # or maxima
    output: Tensor


def separable(spec: Pool) -> bool:
    """Whether to combine along y first, for all columns of the input."""
    (height, width), outputs = spec.kernel, spec.out_shape[1]
    columns = min((outputs - 1) * spec.stride[1] + spec.reach(1), width * outputs)
    apart = columns * (height + 1) + outputs * width
    few = outputs * spec.out_shape[0] < LATENCY     # the ALU would wait for its own results
    return height > 1 and width > 1 and (few or apart < outputs * height * width)


def expressions(spec: Pool, config: Config) -> Expressions:
    """What is computed."""
    images, blocks = -(-spec.images // config.batch), -(-spec.channels // config.block_out)
    tile = (config.batch, config.block_out)
    (top, _, left, _), (height, width) = spec.pad, spec.padded
    data = placeholder("data", (images, blocks, spec.height, spec.width, *tile), "int8")
    padded = compute("padded", (images, blocks, height, width, *tile),
                     lambda n, c, y, x, b, j: select(
                         both(top <= y, y < top + spec.height, left <= x, x < left + spec.width),
                         data[n, c, y - top, x - left, b, j].cast("int32"), spec.padding))
    ky, kx = reduce_axis("ky", spec.kernel[0]), reduce_axis("kx", spec.kernel[1])
    (sy, sx), (dy, dx) = spec.stride, spec.dilation
    combine = largest if spec.kind == Kind.MAX else total
    shape = (images, blocks, *spec.out_shape, *tile)
    columns = None
    if separable(spec):
        columns = column = compute(
            "columns", (images, blocks, spec.out_shape[0], width, *tile),
            lambda n, c, y, x, b, j: combine(padded[n, c, y * sy + ky * dy, x, b, j], ky))
        sums = compute("sums", shape, lambda n, c, y, x, b, j: combine(
            column[n, c, y, x * sx + kx * dx, b, j], kx))
    else:
        sums = compute("sums", shape, lambda n, c, y, x, b, j: combine(
            padded[n, c, y * sy + ky * dy, x * sx + kx * dx, b, j], ky, kx))
    given = placeholder("parameters", (*spec.divisors().shape, PARAMETER_TILES, *tile), "int32")
    by_row, by_column = (extent > 1 for extent in given.shape[:2])
    function = requantize_function(rounding=spec.rounding, zero_point=spec.zero_point_out,
                                   low=spec.low, high=spec.high)
    output = compute("output", shape, lambda n, c, y, x, b, j: Call(function, (
        sums[n, c, y, x, b, j], *(given[y if by_row else 0, x if by_column else 0, number, b, j]
                                  for number in range(PARAMETER_TILES)))))
    return Expressions(spec=spec, config=config, function=function, data=data, padded=padded,
                       parameters=given, columns=columns, sums=sums, output=output)
