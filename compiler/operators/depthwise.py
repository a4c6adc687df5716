"""Depthwise convolution: every output channel sums over a window of one input channel.

A tile product multiplies lane by lane, with one row of a weight tile for each tap of the window.
Tensors are packed in blocks of `depthwise_lanes` channels: activations as (n, block, y, x, batch,
lane), weights as (block, chunk y, chunk x, row, lane), where a chunk holds the rows of some taps of
the window and is filled up to whole tiles; one chunk is the whole window, unless that does not fit.
With a channel multiplier, the packed input repeats each channel for every output that reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...isa.config import Config
from ...isa.instructions import PARAMETER_TILES, Buffer
from ..accelerator.intrinsic import lane_product
from ..expression.expression import both, select, total
from ..expression.tensor import Tensor, compute, placeholder, reduce_axis
from .conv2d import Conv2d, convolution_bytes
from .form import TensorForm, blocks_of, requantized
from .layout import Layout, Stage, tiled_images
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
    weight_planes,
    weights_in_dram,
)
from .work import Work

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

    planes: int = 1

    def rows(self, config: Config) -> int:
        """Rows of weights that a chunk takes, in whole tiles."""
        count = self.taps[0] * self.taps[1] * self.planes
        return blocks_of(count, config.block_out) * config.block_out


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
        return Work(macs=spec.macs,
                    products=vectors * spec.kernel[0] * spec.kernel[1] * spec.planes,
                    bytes=convolution_bytes(spec, 1, config), passes=vectors)

    @property
    def operands(self) -> tuple[Operand, ...]:
        spec = self.spec
        return (Operand("data", (spec.images, spec.channels_in, spec.height, spec.width)),
                weight_operand((spec.channels_out, 1, *spec.kernel), self.config, spec.planes),
                *parameter_operands(spec.channels_out))

    @property
    def layouts(self) -> dict[str, Layout]:
        """Channels are repeated for every output that reads them; lanes that do not take part are
        filled up."""
        spec, config = self.spec, self.config
        return {"data": self._in_lanes(spec.channels_in, spec.multiplier, spec.height, spec.width,
                                       config.block_in),
                "output": self._in_lanes(spec.channels_out, 1, *spec.out_shape,
                                         config.block_out)}

    def _in_lanes(self, channels: int, copies: int, height: int, width: int,
                  block: int) -> Layout:
        spec, config, lanes = self.spec, self.config, self.config.depthwise_lanes
        source = (spec.images, channels, height, width)
        stages = []
        if copies > 1:
            stages.append(Stage(source, (spec.images, channels, copies, height, width),
                                ((0, 1), (1, 1), (1, 0), (2, 1), (3, 1)), (0,) * 4))
        tiles, = tiled_images(spec.images, channels * copies, height, width, config.batch,
                              lanes).stages
        stages.append(tiles)
        if block > lanes:
            stages.append(Stage(tiles.shape, (*tiles.shape[:-1], block),
                                tuple((axis, 1) for axis in range(len(tiles.shape))),
                                (0,) * len(tiles.shape)))
        return Layout(tuple(stages))

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
        taps = weight_planes(weights, chunks.planes).reshape(
            -1, lanes, far_y, height, far_x, width, chunks.planes).transpose(0, 2, 4, 3, 5, 6, 1)
        rows = taps.reshape(*taps.shape[:3], height * width * chunks.planes, lanes)
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
    """The whole window, or the fewest even pieces whose input and weights fit twice, and whose
    micro-ops stay in their scratchpad. A single tap always fits."""
    taps = list(spec.kernel)
    while not _fits(taps, spec, config):
        longer = 0 if taps[0] >= taps[1] else 1
        pieces = blocks_of(spec.kernel[longer], taps[longer]) + 1
        taps[longer] = min(blocks_of(spec.kernel[longer], pieces), taps[longer] - 1)
    height, width = taps
    return Chunks((height, width), (blocks_of(spec.kernel[0], height),
                                    blocks_of(spec.kernel[1], width)), spec.planes)


def _fits(taps: list[int], spec: Depthwise, config: Config) -> bool:
    reach = [(count - 1) * dilation + 1 for count, dilation in zip(taps, spec.dilation,
                                                                   strict=True)]
    count = taps[0] * taps[1] * spec.planes
    return (reach[0] * reach[1] <= config.tiles(Buffer.INP) // 2
            and blocks_of(count, config.block_out) <= config.tiles(Buffer.WGT) // 2
            and count <= max(spec.planes, config.tiles(Buffer.UOP) // MICRO_OPS))


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
    planes = [reduce_axis("plane", spec.planes)] if spec.planes > 1 else []
    sums = compute("sums", shape, lambda n, o, y, x, b, j: total(lane_product(
        config, j, padded[n, o, y * sy + (ty * fy + ky) * dy, x * sx + (tx * fx + kx) * dx, b, j],
        weights[o, ty, tx, sum(planes, (ky * fx + kx) * spec.planes), j]), ty, tx, ky, kx, *planes))
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
