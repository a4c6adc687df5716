"""Maximum and average over windows of int8 tensors, and over whole images.

Tensors are packed as (n, channel block, y, x, batch, lane) with block_out lanes. The ALU does it:
tiles are widened on their way into the accumulator, combined there and requantized. A large window
is combined along y first, then along x, which is less work where windows overlap.

At a border, an average counts the elements that are there. Instead of dividing each sum by its own
count, sums are multiplied by L / count and divided by L, the least common multiple of all counts,
which is the same number: one set of parameters does for all positions, and a byte for each, (y, x,
batch, lane). Where that would round otherwise, every position has parameters of its own, (y, x,
set, 3, batch, lane). Where a dimension makes no difference, its extent is 1.

Ties that go to the even neighbour need more than one multiplication: 1/6 has no exact multiplier,
so that no sum would ever lie on a tie. Two products, with the multiplier rounded up and rounded
down, differ by one just there, and half of their sum, rounded to even, is what is wanted:

    51 / 6:    up 9, down 8    →    17 / 2 = 8.5 → 8
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from math import lcm, prod
from typing import ClassVar

import numpy as np

from ....base.classes.dataclass import dataclass
from ....base.errors import MicrotronError
from ....isa.arithmetic import quantize_scale
from ....isa.config import Config
from ....isa.instructions import PARAMETER_TILES, AluOp, Rounding
from ...accelerator.selection.intrinsic import Intrinsic, element_wise, requantize, scale_function
from ...errors import CompileError
from ...expression.expression import Expression, Function, both, largest, select, total
from ...expression.tensor import Tensor, compute, placeholder, reduce_axis
from ...nest.nest import Interleave
from ..description import HIGH, activation, extent, setting
from ..form import TensorForm, blocks_of, requantize_sum
from ..layout import Layout, interleaves, memory_block, tile_images, wide_tiles
from ..packing import Array, Operand, pack_activations, pack_parameters, unpack_activations
from ..sliding_window import Windowed
from ..work import Work, rows_read
from .combine_windows import sliding_intrinsic
from .overlapping_windows import Inside, count_steps, least_steps, sliding_steps

LATENCY = 12                # cycles until the ALU's result can be its operand, about
LARGEST_WINDOW = 1 << 21    # elements of an average: sums and divisions are exact up to here
UP, DOWN = range(2)         # the first sets of parameters where ties go to even


class Kind(Enum):
    MAX = "max"
    AVERAGE = "average"


@dataclass(frozen=True, kw_only=True)
class Pool(Windowed):
    """A maximum or an average over windows.

    An average is divided by the number of elements inside the image, or by that of the whole
    window with `count_include_pad`; what is padded then is `zero_point_in`. With the defaults for
    scales, zero points and rounding the result is TFLite's, which leaves zero points in.
    """

    operator: ClassVar[str] = "pool"

    kind: Kind = setting("max or average")
    channels: int = extent("channels")
    zero_point_in: int = activation("zero point of the input of an average")
    count_include_pad: bool = setting("an average counts what is padded", False)
    scale_in: float = setting("scale of the input of an average", 1.0)
    scale_out: float = setting("scale of the result of an average", 1.0)
    rounding: Rounding = setting("how averages are rounded: away, even or twice", Rounding.AWAY)

    def check(self) -> None:
        super().check()
        for name in ("zero_point_in", "scale_in", "scale_out"):
            right = type(self).__dataclass_fields__[name].default
            if self.kind == Kind.MAX and getattr(self, name) != right:
                raise self.wrong(name, getattr(self, name), f"{right} for a maximum")
        if min(self.counts(0).min(), self.counts(1).min()) < 1:
            raise CompileError(f"pool: with pad {self.pad} there are windows that lie outside the "
                               f"image altogether; take less padding")
        try:
            quantize_scale(self.scale_in / self.scale_out)
        except MicrotronError as error:
            raise CompileError(f"pool: {error}; scales are {self.scale_in} and "
                               f"{self.scale_out}") from None
        size = self.kernel[0] * self.kernel[1]
        if self.kind == Kind.AVERAGE and size > LARGEST_WINDOW:
            raise self.wrong("kernel", self.kernel,
                             f"{LARGEST_WINDOW} elements at most, not {size}, for an average")

    def counts(self, axis: int) -> Array:
        """Elements of each window inside the image, along rows (0) or columns (1)."""
        before, size = self.pad[2 * axis], (self.height, self.width)[axis]
        dilation = self.dilation[axis]
        first = np.arange(self.out_shape[axis]) * self.stride[axis] - before
        begin = np.maximum(0, -(first // dilation))
        end = np.minimum(self.kernel[axis] - 1, (size - 1 - first) // dilation)
        counts: Array = np.maximum(0, end - begin + 1)
        return counts

    def sides(self) -> tuple[Array, Array]:
        """What divides a sum: the product of a number for its row and one for its column; one
        number for all where it makes no difference."""
        if self.kind == Kind.MAX:
            return np.ones(1, np.int64), np.ones(1, np.int64)
        sides = [np.full(1, self.kernel[axis]) if self.count_include_pad else self.counts(axis)
                 for axis in range(2)]
        rows, columns = (side[:1] if (side == side[0]).all() else side for side in sides)
        return rows, columns

    @property
    def ties_to_even(self) -> bool:
        """Whether sums can be ties that no single multiplication recognizes."""
        if self.rounding != Rounding.EVEN or self.scale_in != self.scale_out:
            return False
        rows, columns = self.sides()
        counts = rows[:, None] * columns
        return bool(((counts % 2 == 0) & (counts & counts - 1 != 0)).any())

    @property
    def is_uniform(self) -> bool:
        """Whether all sums are divided by the same number."""
        return max(len(side) for side in self.sides()) == 1

    @property
    def common_count(self) -> int:
        """The least common multiple of what divides sums."""
        rows, columns = self.sides()
        return lcm(*(int(each) for each in rows)) * lcm(*(int(each) for each in columns))

    @property
    def has_factors(self) -> bool:
        """Whether sums are multiplied by a number for each position. Factors have 8 bits, and where
        results are rounded twice, scales are changed, or ties are told by the count itself, another
        divisor would give other results."""
        if self.is_uniform or self.scale_in != self.scale_out or self.rounding == Rounding.TWICE:
            return False
        (rows, columns), common = self.sides(), self.common_count
        tells_ties = (self.rounding == Rounding.AWAY or self.ties_to_even or common % 2 == 1
                      or common & common - 1 == 0)
        return (tells_ties and common <= LARGEST_WINDOW
                and common // int(rows.min() * columns.min()) <= HIGH)

    @property
    def padding(self) -> int:
        """The value of the padding."""
        if self.kind == Kind.MAX:
            return -128
        return self.zero_point_in if self.count_include_pad else 0


def global_average(*, height: int, width: int, channels: int, images: int = 1) -> Pool:
    """The average of each channel of an image."""
    return Pool(kind=Kind.AVERAGE, height=height, width=width, channels=channels, images=images,
                kernel=(height, width))


def division(count: int, *, up: bool = True) -> tuple[int, int]:
    """Multiplier and shift that divide by a count. With the multiplier rounded up, what lies on a
    tie does not fall short of it, and rounded down, it does not reach it; up to LARGEST_WINDOW
    elements nothing else is lifted to a tie, or below one."""
    shift = 30 + (count - 1).bit_length()
    return -(-(1 << shift) // count) if up else (1 << shift) // count, shift


def position_operands(spec: Pool, config: Config) -> dict[str, Array]:
    """What the program takes as `parameters`, and as `factors` if it has any."""
    if not spec.has_factors:
        return {"parameters": parameters(spec, config)}
    rows, columns = spec.sides()
    factors = spec.common_count // (rows[:, None] * columns)
    shape = (*factors.shape, config.batch, config.block_out)
    return {"parameters": _parameter_tiles(spec, np.full((1, 1), spec.common_count), config),
            "factors": np.broadcast_to(factors[:, :, None, None], shape).astype(np.int8)}


def parameters(spec: Pool, config: Config) -> Array:
    """The parameters of positions whose sums are divided by their own counts."""
    rows, columns = spec.sides()
    return _parameter_tiles(spec, rows[:, None] * columns, config)


def _parameter_tiles(spec: Pool, divisors: Array, config: Config) -> Array:
    sets = 3 if spec.ties_to_even else 1
    tiles = np.empty((*divisors.shape, sets, PARAMETER_TILES, config.batch, config.block_out),
                     np.int32)
    for count in sorted(set(divisors.ravel().tolist())):
        for number, numbers in enumerate(_sets(spec, count)):
            bias, multiplier, shift = (np.full(config.block_out, each) for each in numbers)
            tiles[divisors == count, number] = pack_parameters(bias, multiplier, shift, config)[0]
    return tiles


def _sets(spec: Pool, count: int) -> list[tuple[int, int, int]]:
    """Bias, multiplier and shift of each step from a sum to a result."""
    bias, ratio = -count * spec.zero_point_in, spec.scale_in / spec.scale_out
    if spec.ties_to_even:
        return [(bias, *division(count)), (bias, *division(count, up=False)), (0, *division(2))]
    return [(bias, *(division(count) if ratio == 1 else quantize_scale(ratio / count)))]


@dataclass(frozen=True, kw_only=True)
class PoolForm(TensorForm):
    """A pool in tensors. `steps` are what the ALU computes between sums and results."""

    spec: Pool
    data: Tensor
    padded: Tensor
    parameters: Tensor
    columns: Tensor | None      # combined along y, if that is done apart
    sums: Tensor                # or maxima
    steps: dict[Tensor, Intrinsic] = field(default_factory=dict)
    factors: Tensor | None = None       # of positions, in 32 bits

    @property
    def intrinsics(self) -> list[Intrinsic]:
        return [*super().intrinsics, *self.steps.values(), *(
            self.combination(axis, clipped=clipped) for axis in range(2)
            for clipped in (False, True))]

    def combination(self, axis: int, *, clipped: bool) -> Intrinsic:
        """What combines windows along rows (0) or columns (1). `clipped`: without the border, and
        along rows only the columns that columns without a border read."""
        inside = self.inside(axis) if clipped and self.leaves_border_out(axis) else None
        seen = self.inside(1) if clipped and axis == 0 and self.leaves_border_out(1) else None
        op = AluOp.MAX if self.spec.kind == Kind.MAX else AluOp.ADD
        return sliding_intrinsic(self.config, op, "yx"[axis], inside, seen)

    def inside(self, axis: int) -> Inside:
        """The first and the last place along an axis that are no border, and that windows reach."""
        spec, before = self.spec, self.spec.pad[2 * axis]
        reached = (spec.out_shape[axis] - 1) * spec.stride[axis] + spec.reach(axis)
        return before, min(before + (spec.height, spec.width)[axis], reached) - 1

    def leaves_border_out(self, axis: int) -> bool:
        """Whether steps that take an axis whole can leave the border out."""
        spec = self.spec
        return (spec.kind == Kind.MAX and spec.dilation[axis] == 1 and self.columns is not None
                and min(spec.out_shape[axis], spec.kernel[axis]) > 1)

    def steps_along(self, axis: int, results: int, *, clipped: bool) -> tuple[int, int]:
        """How many steps copy an element, and how many combine one, for some results in a row."""
        spec = self.spec
        taps, stride, dilation = (each[axis] for each in (
            spec.kernel, spec.stride, spec.dilation))
        if stride % dilation:
            return results, results * (taps - 1)
        inside = self.inside(axis) if clipped and self.leaves_border_out(axis) else None
        return count_steps(sliding_steps(results, taps, stride // dilation, inside))

    @property
    def work(self) -> Work:
        """Windows are combined as a whole, or along one axis before the other. Where they have more
        in common than a row or a column, results may share what they are combined from."""
        spec, config = self.spec, self.config
        (height, width), (rows, columns) = spec.kernel, spec.out_shape
        used_rows, used_columns = (
            rows_read(size, *each) for size, *each in zip(
                (spec.height, spec.width), spec.out_shape, spec.kernel, spec.stride,
                spec.dilation, spec.pad[::2], strict=True))
        combined = min(rows * columns * (height * width - 1),
                       rows * used_columns * (height - 1) + rows * columns * (width - 1),
                       used_rows * columns * (width - 1) + rows * columns * (height - 1))
        if max(map(int.__sub__, spec.kernel, spec.stride)) > 1:
            inside = prod(_whole_windows(spec, axis) for axis in range(2))
            apart = prod(count for count, taps, step in zip(
                spec.out_shape, spec.kernel, spec.stride, strict=True) if taps <= step)
            combined = min(combined, max(used_rows * used_columns - apart, rows * columns + int(
                inside * (least_steps(spec.kernel, spec.stride, spec.out_shape) - 1))))
        blocks = blocks_of(spec.images, config.batch) * blocks_of(spec.channels, config.block_out)
        return Work(macs=0, products=0, bytes=spec.images * spec.channels * (
            used_rows * used_columns + rows * columns),
            written=spec.images * spec.channels * rows * columns,
            pairs=blocks * combined, kept=blocks * (combined + rows * columns * len(self.steps)),
            filled=spec.images * spec.channels * used_rows * used_columns,
            passes=blocks * (combined + rows * columns * (1 + len(self.steps))))

    @property
    def operands(self) -> tuple[Operand, ...]:
        spec = self.spec
        return (Operand("data", (spec.images, spec.channels, spec.height, spec.width)),)

    @property
    def layouts(self) -> dict[str, Layout]:
        spec, config = self.spec, self.config
        block = memory_block(config, config.block_out)
        return {"data": tile_images(spec.images, spec.channels, spec.height, spec.width,
                                    config, block),
                "output": tile_images(spec.images, spec.channels, *spec.out_shape, config,
                                      block)}

    @property
    def interleaves(self) -> dict[str, Interleave]:
        return interleaves(self.config, read=(), written=("data", "output"))

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        config = self.config
        data = pack_activations(given["data"], config, memory_block(config, config.block_out))
        return {"data": data.reshape(self.shapes["data"]), **(
            {"parameters": parameters(self.spec, config)} if self.factors is None
            else position_operands(self.spec, config))}

    def unpack(self, output: Array) -> Array:
        tiles = wide_tiles(output, self.config, self.config.block_out)
        return unpack_activations(tiles, self.config, self.spec.images, self.spec.channels)


def _whole_windows(spec: Pool, axis: int) -> int:
    """How many windows along an axis have no border."""
    first = np.arange(spec.out_shape[axis]) * spec.stride[axis] - spec.pad[2 * axis]
    size = (spec.height, spec.width)[axis]
    return int(((first >= 0) & (first + spec.reach(axis) <= size)).sum())


def separable(spec: Pool) -> bool:
    """Whether to combine along y first, for all columns of the input."""
    (height, width), outputs = spec.kernel, spec.out_shape[1]
    columns = min((outputs - 1) * spec.stride[1] + spec.reach(1), width * outputs)
    apart = columns * height + outputs * width
    few = outputs * spec.out_shape[0] < LATENCY     # the ALU would wait for its own results
    return height > 1 and width > 1 and (few or apart < outputs * height * width)


def form_of(spec: Pool, config: Config, *, by_factors: bool = True) -> PoolForm:
    """What is computed, with factors of positions if they do, or with parameters of each."""
    images, blocks = (blocks_of(spec.images, config.batch),
                      blocks_of(spec.channels, config.block_out))
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
    by_factors = by_factors and spec.has_factors
    sides = (1, 1) if by_factors else tuple(len(side) for side in spec.sides())
    sets = 3 if spec.ties_to_even else 1
    given = placeholder("parameters", (*sides, sets, PARAMETER_TILES, *tile), "int32")
    function, value, factors = spec.requantization(), sums, None
    steps: dict[Tensor, Intrinsic] = {}
    if by_factors:
        factors, value = multiply_by_position(spec, sums)
        steps[value] = element_wise(config, AluOp.MUL)
    if spec.ties_to_even:
        steps |= halves(config, value, given)
        value = list(steps)[-1]
    return PoolForm(spec=spec, config=config, function=function, data=data, padded=padded,
                    parameters=given, columns=columns, sums=sums, steps=steps, factors=factors,
                    output=scale_values("output", function, value, given, sets - 1))


def multiply_by_position(spec: Pool, sums: Tensor) -> tuple[Tensor, Tensor]:
    """The factors of positions, and sums times these."""
    rows, columns = (len(side) for side in spec.sides())
    given = placeholder("factors", (rows, columns, *sums.shape[-2:]), "int8")
    factors = compute("factors.wide", given.shape,
                      lambda y, x, b, j: given[y, x, b, j].cast("int32"))
    scaled = compute("scaled", sums.shape, lambda n, o, y, x, b, j: (
        sums[n, o, y, x, b, j] * factors[y if rows > 1 else 0, x if columns > 1 else 0, b, j]))
    return factors, scaled


def scale_values(name: str, function: Function, value: Tensor, parameters: Tensor,
            number: int) -> Tensor:
    """Values scaled with one set of the parameters of their position."""
    by_row, by_column = (size > 1 for size in parameters.shape[:2])

    def element(n: Expression, c: Expression, y: Expression, x: Expression, b: Expression,
                j: Expression) -> Expression:
        at = (y if by_row else 0, x if by_column else 0, number)
        return requantize_sum(function, value[n, c, y, x, b, j], parameters, at, (b, j))

    return compute(name, value.shape, element)


def halves(config: Config, sums: Tensor, parameters: Tensor) -> dict[Tensor, Intrinsic]:
    """Averages rounded up and down at ties, and their sum, which is twice the average."""
    scale = scale_function(Rounding.EVEN)
    up, down = (scale_values(name, scale, sums, parameters, number)
                for name, number in (("up", UP), ("down", DOWN)))
    twice = compute("twice", sums.shape, lambda n, c, y, x, b, j: (
        up[n, c, y, x, b, j] + down[n, c, y, x, b, j]))
    return {up: requantize(config, scale), down: requantize(config, scale),
            twice: element_wise(config, AluOp.ADD)}
