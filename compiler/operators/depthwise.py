"""Depthwise convolution: every output channel sums over a window of one input channel.

A tile product multiplies lane by lane, with one row of a weight tile for each tap of the window.
Tensors are packed in blocks of `depthwise_lanes` channels: activations as (n, block, y, x, batch,
lane), weights as (block, chunk y, chunk x, row, lane), where a chunk holds the rows of some taps of
the window and is filled up to whole tiles; one chunk is the whole window, unless that does not fit.
With a channel multiplier, the packed input repeats each channel for every output that reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from ...isa.config import Config
from ...isa.instructions import PARAMETER_TILES, Buffer
from ...isa.timing import MemoryTiming
from ..accelerator.intrinsic import lane_product
from ..errors import CompileError
from ..expression.expression import both, select, total
from ..expression.tensor import Tensor, compute, placeholder, reduce_axis
from ..schedule.schedule import Schedule
from .conv2d import Conv2d, convolution_bytes
from .divisions import even_sizes, grid
from .form import Template, TensorForm, blocks_of, requantized
from .kernel import Operator
from .pace import Steps
from .packing import (
    Array,
    Operand,
    bias_with_zero_point,
    filled,
    pack_activations,
    pack_parameters,
    parameter_operands,
    unpack_activations,
    weight_operand,
    weights_in_dram,
)
from .tiled import first_of_all, tiled
from .work import Work

FAR_AHEAD = 8                   # buffers of parameters
MICRO_OPS = 4                   # for each tap: two buffers each of input and weights


@dataclass(frozen=True, kw_only=True)
class Depthwise(Conv2d):
    """A depthwise convolution. `channels_out` is a multiple of `channels_in`: output channel o
    reads input channel o // multiplier. Weights are (channels_out, 1, y, x)."""

    operator: ClassVar[str] = "depthwise"

    def check(self) -> None:
        super().check()
        if self.channels_out % self.channels_in:
            raise self.wrong("channels_out", self.channels_out,
                             f"a multiple of channels_in, which is {self.channels_in}")

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
class DepthwiseForm(TensorForm):
    """A depthwise convolution in tensors."""

    spec: Depthwise
    chunks: Chunks
    data: Tensor
    padded: Tensor
    weights: Tensor
    parameters: Tensor
    sums: Tensor

    @property
    def work(self) -> Work:
        spec, config = self.spec, self.config
        vectors = (blocks_of(spec.images, config.batch) * spec.out_height * spec.out_width
                   * blocks_of(spec.channels_out, config.depthwise_lanes))
        return Work(macs=spec.macs, products=vectors * spec.kernel[0] * spec.kernel[1],
                    bytes=convolution_bytes(spec, 1, config), passes=vectors)

    @property
    def operands(self) -> tuple[Operand, ...]:
        spec = self.spec
        return (Operand("data", (spec.images, spec.channels_in, spec.height, spec.width)),
                weight_operand((spec.channels_out, 1, *spec.kernel), self.config),
                *parameter_operands(spec.channels_out))

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """Channels are repeated for every output channel that reads them."""
        spec, config = self.spec, self.config
        repeated = np.repeat(given["data"], spec.multiplier, axis=1)
        data = pack_activations(repeated, config, config.depthwise_lanes)
        bias = bias_with_zero_point(given["bias"], given["weights"], spec.zero_point_in)
        bias, multiplier, shift = (self._with_lanes(filled(
            each, 0, config.depthwise_lanes).reshape(-1, config.depthwise_lanes),
            config.block_out).reshape(-1)
            for each in (bias, given["multiplier"], given["shift"]))
        return {"data": self._with_lanes(data, config.block_in),
                "weights": self._packed_weights(given["weights"][:, 0]),
                "parameters": pack_parameters(bias, multiplier, shift, config)}

    def _packed_weights(self, weights: Array) -> Array:
        """(channels, y, x) → (block, chunk y, chunk x, row, lane): a row for each tap of a chunk"""
        config, chunks = self.config, self.chunks
        lanes, (height, width), (far_y, far_x) = config.depthwise_lanes, chunks.taps, chunks.counts
        weights = filled(filled(filled(weights, 0, lanes), 1, height * far_y), 2, width * far_x)
        taps = weights.reshape(-1, lanes, far_y, height, far_x, width).transpose(0, 2, 4, 3, 5, 1)
        rows = taps.reshape(*taps.shape[:3], height * width, lanes)
        tiles = self._with_lanes(filled(rows, 3, chunks.rows(config)), config.block_in)
        return weights_in_dram(np.ascontiguousarray(tiles), config)

    def unpack(self, output: Array) -> Array:
        return unpack_activations(output[..., :self.config.depthwise_lanes], self.spec.images,
                                  self.spec.channels_out)

    @staticmethod
    def _with_lanes(tiles: Array, lanes: int) -> Array:
        """The last axis filled with zeros up to a number of lanes."""
        return filled(tiles, tiles.ndim - 1, lanes)


def chunks_of(spec: Depthwise, config: Config) -> Chunks:
    """The whole window, or the fewest even pieces whose input and weights fit twice."""
    taps = list(spec.kernel)
    while not _fits(taps, spec, config):
        longer = 0 if taps[0] >= taps[1] else 1
        if taps[longer] == 1:
            raise CompileError(f"depthwise: not even one tap fits: uop_bytes is "
                               f"{config.uop_bytes}, but must be "
                               f"{MICRO_OPS * config.tile_bytes(Buffer.UOP)} or more")
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
            and MICRO_OPS * taps[0] * taps[1] <= config.tiles(Buffer.UOP))


def form_of(spec: Depthwise, config: Config) -> DepthwiseForm:
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
    function = spec.requantization()
    output = compute("output", shape, lambda n, o, y, x, b, j: requantized(
        function, sums[n, o, y, x, b, j], parameters, (o,), (b, j)))
    return DepthwiseForm(spec=spec, config=config, chunks=chunks, function=function, data=data,
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


def schedule(form: DepthwiseForm, knobs: Knobs) -> Schedule:
    """The template: channel blocks one after the other; every step loads input rows, sums,
    requantizes and stores, each in buffers that are used by turns."""
    plan, weights, sums = tiled(form, knobs, kept_parameters=int(_kept_parameters(form, knobs)))
    plan[weights].address_rows(form.config.block_out)
    plan[form.padded].compute_whole(form.padded.axes[-1])       # some lanes may not be used
    stage = plan[sums]
    n, o, y, x, b, j, ty, tx, ky, kx = stage.leaves
    stage.reorder(ty, tx, n, o, y, x, ky, kx, b, j)
    stage.tensorize(b, "depthwise")
    plan[form.padded].compute_at(stage, tx)
    plan[form.padded].double_buffer(tx)
    plan[weights].compute_at(stage, tx)
    plan[weights].keep(int(_kept_weights(form, knobs)))
    first_of_all(plan, weights)             # inputs wait for their buffers
    return plan


def _kept_weights(form: DepthwiseForm, knobs: Knobs) -> Any:
    """Two pieces of the weights, or all chunks of some blocks and one more, if they fit."""
    piece = knobs.blocks * form.chunks.rows(form.config) // form.config.block_out
    return np.minimum(prod(form.chunks.counts) + 1, form.config.tiles(Buffer.WGT) // piece)


def _kept_parameters(form: DepthwiseForm, knobs: Knobs) -> Any:
    """Steps are short, and a load that waits for its buffer holds up all that follow: with more
    than two buffers, the next parameters are loaded well ahead."""
    results = 2 * knobs.blocks * knobs.rows * knobs.columns
    room = form.config.tiles(Buffer.ACC) - results
    return np.minimum(FAR_AHEAD, room // (knobs.blocks * PARAMETER_TILES))


def grids(form: DepthwiseForm) -> Iterator[Knobs]:
    yield grid(Knobs, blocks=even_sizes(form.output.shape[1]),
               columns=even_sizes(form.spec.out_width), rows=even_sizes(form.spec.out_height))


def fits(form: DepthwiseForm, knobs: Knobs) -> Any:
    """Whether all buffers find room, twice. Some knobs do: chunks are cut so that one output tile
    fits."""
    config, (height, width) = form.config, _window(form, knobs)
    vectors = knobs.blocks * knobs.rows * knobs.columns
    need = {Buffer.WGT: knobs.blocks * form.chunks.rows(config) // config.block_out,
            Buffer.INP: knobs.blocks * height * width, Buffer.OUT: vectors,
            Buffer.ACC: vectors + knobs.blocks * PARAMETER_TILES}
    return np.all([2 * tiles <= config.tiles(buffer) for buffer, tiles in need.items()], 0)


def _window(form: DepthwiseForm, knobs: Knobs) -> tuple[Any, Any]:
    """Rows and columns of the input that a chunk needs for some of the output."""
    height, width = (np.minimum((count - 1) * stride + (taps - 1) * dilation + 1, size)
                     for count, stride, taps, dilation, size in zip(
                         (knobs.rows, knobs.columns), form.spec.stride, form.chunks.taps,
                         form.spec.dilation, form.padded.shape[2:4], strict=True))
    return height, width


def estimate(form: DepthwiseForm, knobs: Knobs, memory: MemoryTiming) -> Any:
    """Cycles, roughly. Weights and parameters are few, and loaded well ahead: what they take is
    spread over all steps."""
    spec, config, chunks = form.spec, form.config, form.chunks
    images, blocks = form.output.shape[:2]
    groups = blocks_of(blocks, knobs.blocks)
    steps = images * blocks_of(spec.out_height, knobs.rows) * blocks_of(
        spec.out_width, knobs.columns)
    (height, width), vectors = _window(form, knobs), knobs.blocks * knobs.rows * knobs.columns
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


TEMPLATE = Template(knobs=Knobs, grids=grids, fits=fits, estimate=estimate, schedule=schedule)
OPERATOR = Operator(description=Depthwise, forms=lambda spec, config: [form_of(spec, config)],
                    template=TEMPLATE)
