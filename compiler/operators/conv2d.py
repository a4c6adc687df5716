"""Convolution of int8 tensors with per-channel requantization.

Tensors are packed: activations as (n, channel block, y, x, batch, lane), weights as (output block,
input block, y, x, output lane, input lane), parameters as (output block, 3, batch, lane): bias,
multiplier and shift. What a zero point of the input adds to a sum is part of the bias.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from ...isa.config import Config
from ...isa.instructions import (
    INSTRUCTION_BYTES,
    PARAMETER_TILES,
    Buffer,
)
from ..errors import CompileError
from ..expression import Call, Function, both, select, total
from ..intrinsic import requantize_function
from ..nest import Scope
from ..schedule import Schedule
from ..tensor import Tensor, compute, placeholder, reduce_axis
from .epilogue import Epilogue


@dataclass(frozen=True, kw_only=True)
class Conv2d(Epilogue):
    """What is to be computed. `pad` is top, bottom, left, right."""

    height: int
    width: int
    channels_in: int
    channels_out: int
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)
    images: int = 1
    zero_point_in: int = 0

    def __post_init__(self) -> None:
        for name in ("height", "width", "channels_in", "channels_out", "images"):
            if getattr(self, name) < 1:
                raise CompileError(f"conv2d: {name} is {getattr(self, name)}, but must be at "
                                   f"least 1")
        if min(*self.kernel, *self.stride, *self.dilation) < 1 or min(self.pad) < 0:
            raise CompileError("conv2d: kernel, stride and dilation must be at least 1, pad at "
                               "least 0")
        if min(self.out_height, self.out_width) < 1:
            raise CompileError(f"conv2d: the kernel reaches over {self._reach(0)} × "
                               f"{self._reach(1)}, more than the padded input")

    def _reach(self, axis: int) -> int:
        return (self.kernel[axis] - 1) * self.dilation[axis] + 1

    @property
    def padded(self) -> tuple[int, int]:
        top, bottom, left, right = self.pad
        return self.height + top + bottom, self.width + left + right

    @property
    def out_height(self) -> int:
        return (self.padded[0] - self._reach(0)) // self.stride[0] + 1

    @property
    def out_width(self) -> int:
        return (self.padded[1] - self._reach(1)) // self.stride[1] + 1

    @property
    def skips_rows(self) -> bool:
        """Whether rows of the input between those that are used need not be loaded."""
        return (self.kernel[0] == 1 and self.stride[0] > 1 and self.pad[:2] == (0, 0)
                and self.height % self.stride[0] == 0)

    @property
    def row_step(self) -> int:
        """Rows that are loaded, from one row of the output to the next."""
        return 1 if self.skips_rows else self.stride[0]

    @property
    def macs(self) -> int:
        return (self.images * self.out_height * self.out_width * self.channels_out
                * self.channels_in * self.kernel[0] * self.kernel[1])


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """How much is computed at once: output blocks, rows and columns, input blocks, and rows and
    columns of the kernel, where 0 is all of them."""

    blocks: int
    rows: int
    columns: int
    depth: int
    tap_rows: int = 0
    tap_columns: int = 0

    def taps(self, kernel: tuple[int, int]) -> tuple[int, int]:
        return (min(self.tap_rows or kernel[0], kernel[0]),
                min(self.tap_columns or kernel[1], kernel[1]))


@dataclass(frozen=True, kw_only=True)
class Expressions:
    """The tensors of a convolution on one configuration."""

    spec: Conv2d
    config: Config
    function: Function
    data: Tensor
    padded: Tensor
    weights: Tensor
    parameters: Tensor
    sums: Tensor
    output: Tensor


def blocks_of(channels: int, block: int) -> int:
    return -(-channels // block)


def expressions(spec: Conv2d, config: Config) -> Expressions:
    """What is computed."""
    images = blocks_of(spec.images, config.batch)
    depth, outputs = (blocks_of(spec.channels_in, config.block_in),
                      blocks_of(spec.channels_out, config.block_out))
    data, padded = _inputs(spec, config, images, depth)
    weights = placeholder("weights", (outputs, depth, *spec.kernel, config.block_out,
                                      config.block_in), "int8")
    parameters = placeholder("parameters", (outputs, PARAMETER_TILES, config.batch,
                                            config.block_out), "int32")
    c, ky, kx, k = (reduce_axis(name, extent) for name, extent in (
        ("c", depth), ("ky", spec.kernel[0]), ("kx", spec.kernel[1]), ("k", config.block_in)))
    shape = (images, outputs, spec.out_height, spec.out_width, config.batch, config.block_out)
    (_, sx), (dy, dx) = spec.stride, spec.dilation
    between = (0,) if spec.skips_rows else ()
    sums = compute("sums", shape, lambda n, o, y, x, b, j: total(
        padded[n, c, y * spec.row_step + ky * dy, *between, x * sx + kx * dx, b, k].cast("int32")
        * weights[o, c, ky, kx, j, k].cast("int32"), c, ky, kx, k))
    function = requantize_function(rounding=spec.rounding, zero_point=spec.zero_point_out,
                                   low=spec.low, high=spec.high)
    output = compute("output", shape, lambda n, o, y, x, b, j: Call(function, (
        sums[n, o, y, x, b, j], *(parameters[o, number, b, j]
                                  for number in range(PARAMETER_TILES)))))
    return Expressions(spec=spec, config=config, function=function, data=data, padded=padded,
                       weights=weights, parameters=parameters, sums=sums, output=output)


def _inputs(spec: Conv2d, config: Config, images: int, depth: int) -> tuple[Tensor, Tensor]:
    """The data, and the data in a border. Where only one row out of several is used, rows between
    are a dimension of their own, of which the first is loaded; memory is the same."""
    (top, _, left, _), (height, width) = spec.pad, spec.padded
    tile = config.batch, config.block_in
    if spec.skips_rows:
        rows, step = spec.height // spec.stride[0], spec.stride[0]
        data = placeholder("data", (images, depth, rows, step, spec.width, *tile), "int8")
        return data, compute(
            "padded", (images, depth, rows, 1, width, *tile), lambda n, c, y, z, x, b, i: select(
                both(left <= x, x < left + spec.width), data[n, c, y, z, x - left, b, i],
                spec.zero_point_in))
    data = placeholder("data", (images, depth, spec.height, spec.width, *tile), "int8")
    return data, compute(
        "padded", (images, depth, height, width, *tile), lambda n, c, y, x, b, i: select(
            both(top <= y, y < top + spec.height, left <= x, x < left + spec.width),
            data[n, c, y - top, x - left, b, i], spec.zero_point_in))


def schedule(what: Expressions, knobs: Knobs) -> Schedule:
    """The template: weights of some output blocks stay while the image passes by; every step
    loads input rows, sums, requantizes and stores, each in buffers that are used by turns."""
    plan = Schedule(what.output)
    inside = plan.cache_write(what.output, Scope.OUT)
    parameters = plan.cache_read(what.parameters, Scope.ACC, inside)
    weights = plan.cache_read(what.weights, Scope.WGT, what.sums)
    sums, inside, output = (plan.renewed(each) for each in (what.sums, inside, what.output))
    plan[what.padded].scope, plan[sums].scope = Scope.INP, Scope.ACC

    last = plan[output]
    n, o, y, x, b, j = last.leaves
    o_far, o_near = last.split(o, knobs.blocks)
    y_far, y_near = last.split(y, knobs.rows)
    x_far, x_near = last.split(x, knobs.columns)
    last.reorder(o_far, n, y_far, x_far, o_near, y_near, x_near, b, j)
    for stage in (plan[inside], plan[sums]):
        stage.compute_at(last, x_far)
        stage.double_buffer(x_far)
    plan[parameters].compute_at(last, o_far)
    plan[parameters].double_buffer(o_far)
    plan[inside].tensorize(plan[inside].leaves[4], what.function.name)

    stage = plan[sums]
    n, o, y, x, b, j, c, ky, kx, k = stage.leaves
    tap_rows, tap_columns = knobs.taps(what.spec.kernel)
    c_far, c_near = stage.split(c, knobs.depth)
    ky_far, ky_near = stage.split(ky, tap_rows)
    kx_far, kx_near = stage.split(kx, tap_columns)
    stage.reorder(c_far, ky_far, kx_far, n, o, y, x, c_near, ky_near, kx_near, b, j, k)
    stage.tensorize(b, "gemm")
    plan[what.padded].compute_at(stage, kx_far)
    plan[what.padded].keep(_kept_inputs(what, knobs))
    plan[weights].compute_at(stage, kx_far)
    plan[weights].keep(_kept_weights(what, knobs))
    return plan


def _kept_weights(what: Expressions, knobs: Knobs) -> int:
    """As many pieces of the weights as there are, or as fit."""
    tap_rows, tap_columns = knobs.taps(what.spec.kernel)
    pieces = -(-what.weights.shape[0] // knobs.blocks) * _parts_of_sums(what, knobs)
    piece = knobs.blocks * knobs.depth * tap_rows * tap_columns
    return max(1, min(pieces, what.config.tiles(Buffer.WGT) // piece))


def _kept_inputs(what: Expressions, knobs: Knobs) -> int:
    """All pieces of the input if they fit, for the output blocks that follow; else two."""
    spec, (tap_rows, tap_columns) = what.spec, knobs.taps(what.spec.kernel)
    pieces = (what.output.shape[0] * -(-spec.out_height // knobs.rows)
              * -(-spec.out_width // knobs.columns) * _parts_of_sums(what, knobs))
    piece = (knobs.depth * _seen(spec, 0, knobs.rows, tap_rows)
             * _seen(spec, 1, knobs.columns, tap_columns))
    return pieces if pieces * piece <= what.config.tiles(Buffer.INP) else 2


def _parts_of_sums(what: Expressions, knobs: Knobs) -> int:
    """Pieces of input and weights that a step loads one after the other."""
    (rows, columns), (tap_rows, tap_columns) = what.spec.kernel, knobs.taps(what.spec.kernel)
    return (-(-what.weights.shape[1] // knobs.depth) * -(-rows // tap_rows)
            * -(-columns // tap_columns))


def _seen(spec: Conv2d, axis: int, outputs: int, taps: int) -> int:
    """Rows or columns of the input that so many outputs see through so many taps."""
    step = spec.stride[1] if axis else spec.row_step
    return min((outputs - 1) * step + (taps - 1) * spec.dilation[axis] + 1, spec.padded[axis])


def candidates(what: Expressions) -> Iterator[Knobs]:
    """Knobs whose buffers fit, twice each. The kernel is taken apart only if it does not fit."""
    for tap_rows, tap_columns in ((0, 0), (1, 0), (0, 1), (1, 1)):
        found = False
        for knobs in _fitting(what, tap_rows, tap_columns):
            found = True
            yield knobs
        if found:
            return


def _fitting(what: Expressions, tap_rows: int, tap_columns: int) -> Iterator[Knobs]:
    spec, config = what.spec, what.config
    outputs, depth = what.weights.shape[:2]
    half = {buffer: config.tiles(buffer) // 2 for buffer in Buffer}
    taps = tap_rows or spec.kernel[0], tap_columns or spec.kernel[1]
    heights = {rows: _seen(spec, 0, rows, taps[0]) for rows in _steps(spec.out_height)}
    for blocks, deep, columns in product(_steps(outputs), _steps(depth), _steps(spec.out_width)):
        if blocks * deep * taps[0] * taps[1] > half[Buffer.WGT]:
            continue
        width = _seen(spec, 1, columns, taps[1])
        for rows, height in heights.items():
            if (deep * height * width <= half[Buffer.INP]
                    and blocks * rows * columns <= half[Buffer.OUT]
                    and blocks * (rows * columns + PARAMETER_TILES) <= half[Buffer.ACC]):
                yield Knobs(blocks=blocks, rows=rows, columns=columns, depth=deep,
                            tap_rows=tap_rows, tap_columns=tap_columns)


def _steps(extent: int) -> list[int]:
    """Sizes that divide an extent evenly, or nearly so: one for each number of pieces."""
    return sorted({-(-extent // pieces) for pieces in range(1, extent + 1)}, reverse=True)


LATENCY = 48                # cycles from the start of a load to its first beats
TRAFFIC = 0.08              # part of a busy bus's time that steps lose by waiting for it
OVERHEAD = 5                # cycles that an instruction more costs GEMM


def estimate(what: Expressions, knobs: Knobs) -> float:
    """Cycles, roughly. Steps follow one another at the pace of the slowest engine; the first
    loads, and the last requantization and store, overlap with nothing. Loads run one step ahead,
    so that what the first step of some output blocks loads does not overlap with the others."""
    spec, config = what.spec, what.config
    images, outputs = what.output.shape[:2]
    far = [-(-extent // step) for extent, step in ((outputs, knobs.blocks),
                                                   (spec.out_height, knobs.rows),
                                                   (spec.out_width, knobs.columns))]
    deep, steps = _parts_of_sums(what, knobs), images * far[1] * far[2]
    tap_rows, tap_columns = knobs.taps(spec.kernel)
    height = _seen(spec, 0, knobs.rows, tap_rows)
    width = _seen(spec, 1, knobs.columns, tap_columns)
    vectors = knobs.blocks * knobs.rows * knobs.columns
    inp = knobs.depth * height * (width * config.tile_bytes(Buffer.INP) / config.bus_bytes + 1)
    wgt = (knobs.blocks * knobs.depth * tap_rows * tap_columns * config.tile_bytes(Buffer.WGT)
           / config.bus_bytes)
    out = vectors * config.tile_bytes(Buffer.OUT) / config.bus_bytes
    products = images * prod(what.weights.shape[:4]) * spec.out_height * spec.out_width
    other = out / deep + (2 + 2 / deep) * INSTRUCTION_BYTES / config.bus_bytes
    least = max(products / (steps * far[0] * deep) + OVERHEAD, (vectors + LATENCY) / deep)

    def cycles(loads: float, together: int = 1) -> float:
        beats = loads + together * other
        return max(together * least, beats + LATENCY) + TRAFFIC * beats

    copies = _kept_weights(what, knobs)             # all, or those of some blocks and one more
    kept = copies > deep or copies == far[0] * deep
    first = cycles(inp + wgt) + (steps - 1) * cycles(inp if kept else inp + wgt)
    later = first
    if kept and deep * steps * knobs.depth * height * width <= config.tiles(Buffer.INP):
        later = cycles(wgt, steps)                  # inputs are kept: nothing holds weights up
    return deep * (first + (far[0] - 1) * later) + inp + wgt + vectors + out + 4 * LATENCY


def default_knobs(what: Expressions) -> Knobs:
    """The candidate with the best estimate."""
    best = min(candidates(what), key=lambda knobs: estimate(what, knobs), default=None)
    if best is None:
        raise CompileError(f"conv2d: no tile of {what.spec} fits in the scratchpads of "
                           f"this configuration")
    return best
