"""Depthwise convolution: every output channel sums over a window of one input channel.

A tile product multiplies lane by lane, with one row of a weight tile for each tap of the window.
Tensors are packed in blocks of `depthwise_lanes` channels: activations as (n, block, y, x, batch,
lane), weights as (block, chunk y, chunk x, row, lane), where a chunk holds the rows of some taps of
the window and is filled up to whole tiles; one chunk is the whole window, unless that does not fit.
With a channel multiplier, the packed input repeats each channel for every output that reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...isa.config import Config
from ...isa.instructions import PARAMETER_TILES, Buffer
from ...isa.timing import MemoryTiming
from ..accelerator.intrinsic import lane_product, requantize_function
from ..errors import CompileError
from ..expression.expression import Call, Function, both, select, total
from ..expression.tensor import Tensor, compute, placeholder, reduce_axis
from ..schedule.schedule import Schedule
from .conv2d import Conv2d, blocks_of
from .divisions import even_sizes, grid
from .pace import Steps
from .tiled import first_of_all, tiled

FAR_AHEAD = 8                   # buffers of parameters


@dataclass(frozen=True, kw_only=True)
class Depthwise(Conv2d):
    """What is to be computed. `channels_out` is a multiple of `channels_in`: output channel o
    reads input channel o // multiplier."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.channels_out % self.channels_in:
            raise CompileError(f"depthwise: channels_out is {self.channels_out}, but must be a "
                               f"multiple of channels_in, which is {self.channels_in}")

    @property
    def multiplier(self) -> int:
        return self.channels_out // self.channels_in

    @property
    def macs(self) -> int:
        return (self.images * self.out_height * self.out_width * self.channels_out
                * self.kernel[0] * self.kernel[1])


@dataclass(frozen=True)
class Chunks:
    """How a window is cut: taps of a chunk, and chunks, along y and x."""

    taps: tuple[int, int]
    counts: tuple[int, int]

    def rows(self, config: Config) -> int:
        """Rows of weights that a chunk takes, in whole tiles."""
        return blocks_of(self.taps[0] * self.taps[1], config.block_out) * config.block_out


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """How much is computed at once: channel blocks, rows and columns."""

    blocks: int
    rows: int
    columns: int


@dataclass(frozen=True, kw_only=True)
class Expressions:
    """The tensors of a depthwise convolution on one configuration."""

    spec: Depthwise
    config: Config
    chunks: Chunks
    function: Function
    data: Tensor
    padded: Tensor
    weights: Tensor
    parameters: Tensor
    sums: Tensor
    output: Tensor


def chunks_of(spec: Depthwise, config: Config) -> Chunks:
    """The whole window, or the fewest even pieces whose input and weights fit twice."""
    taps = list(spec.kernel)
    while not _fits(taps, spec, config):
        longer = 0 if taps[0] >= taps[1] else 1
        if taps[longer] == 1:
            raise CompileError("depthwise: not even one tap fits in the scratchpads")
        pieces = blocks_of(spec.kernel[longer], taps[longer]) + 1
        taps[longer] = min(blocks_of(spec.kernel[longer], pieces), taps[longer] - 1)
    height, width = taps
    return Chunks((height, width),
                  (blocks_of(spec.kernel[0], height), blocks_of(spec.kernel[1], width)))


def _fits(taps: list[int], spec: Depthwise, config: Config) -> bool:
    reach = [(count - 1) * dilation + 1 for count, dilation in zip(taps, spec.dilation,
                                                                   strict=True)]
    return (reach[0] * reach[1] <= config.tiles(Buffer.INP) // 2
            and blocks_of(taps[0] * taps[1], config.block_out) <= config.tiles(Buffer.WGT) // 2
            and taps[0] * taps[1] <= config.tiles(Buffer.UOP) // 4)


def expressions(spec: Depthwise, config: Config) -> Expressions:
    """What is computed."""
    chunks = chunks_of(spec, config)
    images = blocks_of(spec.images, config.batch)
    blocks = blocks_of(spec.channels_out, config.depthwise_lanes)
    data = placeholder("data", (images, blocks, spec.height, spec.width, config.batch,
                                config.block_in), "int8")
    weights = placeholder("weights", (blocks, *chunks.counts, chunks.rows(config),
                                      config.block_in), "int8")
    parameters = placeholder("parameters", (blocks, PARAMETER_TILES, config.batch,
                                            config.block_out), "int32")
    padded = _padded(spec, config, chunks, data)
    (fy, fx), (sy, sx), (dy, dx) = chunks.taps, spec.stride, spec.dilation
    ty, tx, ky, kx = (reduce_axis(name, extent) for name, extent in (
        ("ty", chunks.counts[0]), ("tx", chunks.counts[1]), ("ky", fy), ("kx", fx)))
    shape = (images, blocks, spec.out_height, spec.out_width, config.batch, config.block_out)
    sums = compute("sums", shape, lambda n, o, y, x, b, j: total(lane_product(
        config, j, padded[n, o, y * sy + (ty * fy + ky) * dy, x * sx + (tx * fx + kx) * dx, b, j],
        weights[o, ty, tx, ky * fx + kx, j]), ty, tx, ky, kx))
    function = requantize_function(rounding=spec.rounding, zero_point=spec.zero_point_out,
                                   low=spec.low, high=spec.high)
    output = compute("output", shape, lambda n, o, y, x, b, j: Call(function, (
        sums[n, o, y, x, b, j], *(parameters[o, number, b, j]
                                  for number in range(PARAMETER_TILES)))))
    return Expressions(spec=spec, config=config, chunks=chunks, function=function, data=data,
                       padded=padded, weights=weights, parameters=parameters, sums=sums,
                       output=output)


def _padded(spec: Depthwise, config: Config, chunks: Chunks, data: Tensor) -> Tensor:
    """The input in its border. It is larger where chunks reach over the window: weights are zero
    there."""
    top, _, left, _ = spec.pad
    sizes = [max(size, (out - 1) * stride + (count * taps - 1) * dilation + 1)
             for size, out, stride, count, taps, dilation in zip(
                 spec.padded, (spec.out_height, spec.out_width), spec.stride, chunks.counts,
                 chunks.taps, spec.dilation, strict=True)]
    shape = (*data.shape[:2], *sizes, config.batch, config.block_in)
    return compute("padded", shape, lambda n, c, y, x, b, i: select(
        both(top <= y, y < top + spec.height, left <= x, x < left + spec.width),
        data[n, c, y - top, x - left, b, i], spec.zero_point_in))


def schedule(what: Expressions, knobs: Knobs) -> Schedule:
    """The template: channel blocks one after the other; every step loads input rows, sums,
    requantizes and stores, each in buffers that are used by turns."""
    plan, weights, sums = tiled(what, knobs, kept_parameters=int(_kept_parameters(what, knobs)))
    plan[weights].address_rows(what.config.block_out)
    plan[what.padded].compute_whole(what.padded.axes[-1])       # some lanes may not be used
    stage = plan[sums]
    n, o, y, x, b, j, ty, tx, ky, kx = stage.leaves
    stage.reorder(ty, tx, n, o, y, x, ky, kx, b, j)
    stage.tensorize(b, "depthwise")
    plan[what.padded].compute_at(stage, tx)
    plan[what.padded].double_buffer(tx)
    plan[weights].compute_at(stage, tx)
    plan[weights].keep(int(_kept_weights(what, knobs)))
    first_of_all(plan, weights)             # inputs wait for their buffers
    return plan


def _kept_weights(what: Expressions, knobs: Knobs) -> Any:
    """Two pieces of the weights, or all chunks of some blocks and one more, if they fit."""
    piece = knobs.blocks * what.chunks.rows(what.config) // what.config.block_out
    return np.minimum(prod(what.chunks.counts) + 1, what.config.tiles(Buffer.WGT) // piece)


def _kept_parameters(what: Expressions, knobs: Knobs) -> Any:
    """Steps are short, and a load that waits for its buffer holds up all that follow: with more
    than two buffers, the next parameters are loaded well ahead."""
    results = 2 * knobs.blocks * knobs.rows * knobs.columns
    room = what.config.tiles(Buffer.ACC) - results
    return np.minimum(FAR_AHEAD, room // (knobs.blocks * PARAMETER_TILES))


def grids(what: Expressions) -> Iterator[Knobs]:
    yield grid(Knobs, blocks=even_sizes(what.output.shape[1]),
               columns=even_sizes(what.spec.out_width), rows=even_sizes(what.spec.out_height))


def fits(what: Expressions, knobs: Knobs) -> Any:
    """Whether all buffers find room, twice. Some knobs do: chunks are cut so that one output tile
    fits."""
    config, (height, width) = what.config, _window(what, knobs)
    vectors = knobs.blocks * knobs.rows * knobs.columns
    need = {Buffer.WGT: knobs.blocks * what.chunks.rows(config) // config.block_out,
            Buffer.INP: knobs.blocks * height * width, Buffer.OUT: vectors,
            Buffer.ACC: vectors + knobs.blocks * PARAMETER_TILES}
    return np.all([2 * tiles <= config.tiles(buffer) for buffer, tiles in need.items()], 0)


def _window(what: Expressions, knobs: Knobs) -> tuple[Any, Any]:
    """Rows and columns of the input that a chunk needs for some of the output."""
    height, width = (np.minimum((count - 1) * stride + (taps - 1) * dilation + 1, size)
                     for count, stride, taps, dilation, size in zip(
                         (knobs.rows, knobs.columns), what.spec.stride, what.chunks.taps,
                         what.spec.dilation, what.padded.shape[2:4], strict=True))
    return height, width


def estimate(what: Expressions, knobs: Knobs, memory: MemoryTiming) -> Any:
    """Cycles, roughly. Weights and parameters are few, and loaded well ahead: what they take is
    spread over all steps."""
    spec, config, chunks = what.spec, what.config, what.chunks
    images, blocks = what.output.shape[:2]
    groups = blocks_of(blocks, knobs.blocks)
    steps = images * blocks_of(spec.out_height, knobs.rows) * blocks_of(
        spec.out_width, knobs.columns)
    (height, width), vectors = _window(what, knobs), knobs.blocks * knobs.rows * knobs.columns
    parameters = knobs.blocks * PARAMETER_TILES * config.tile_bytes(Buffer.ACC)
    products = images * blocks * spec.out_height * spec.out_width * prod(chunks.taps)
    return Steps(
        groups=1, steps=groups * steps, pieces=prod(chunks.counts),
        products=products / (groups * steps), vectors=vectors,
        inp=knobs.blocks * height * width * config.tile_bytes(Buffer.INP),
        runs=knobs.blocks * height, out_runs=knobs.blocks * knobs.rows,
        wgt=knobs.blocks * chunks.rows(config) * config.block_in / steps,
        out=vectors * config.tile_bytes(Buffer.OUT) + parameters / steps,
        parameters=parameters, wgt_stays=False).cycles(config, memory)
