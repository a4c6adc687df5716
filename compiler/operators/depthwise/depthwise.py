"""Depthwise convolution: every output channel sums over a window of one input channel.

A tile product multiplies lane by lane, with one row of a weight tile for each tap of the window.
Blocks of `depthwise_lanes` channels are tiles, or groups of the lanes of a wider tile. Tensors are
packed in such blocks: activations as (n, block, y, x, batch, lane), weights as (block, chunk y,
chunk x, row, lane), where a chunk holds the rows of some taps of the window and is filled up to
whole tiles; one chunk is the whole window, unless that does not fit. With a channel multiplier, the
packed input repeats each channel for every output that reads it.

Where several columns share a tile of memory (`packed_columns.py`), each is a group of its lanes. On
an array with wider inputs, a row of columns is a row of groups. With wider outputs, columns of a
tile are computed like channel blocks, each from a column further on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import PARAMETER_TILES, WINDOW_ROWS, WINDOW_TAPS
from ...accelerator.selection.intrinsic import Intrinsic, requantize
from ...expression.expression import Axis, Element, Expression, both, select, total
from ...expression.tensor import Tensor, compute, placeholder, reduce_axis
from ...nest.nest import Interleave
from ..convolution.conv2d import Conv2d, convolution_bytes, output_bytes
from ..convolution.packed_columns import check_columns
from ..form import TensorForm, blocks_of, requantize_sum
from ..layout import Layout, Stage, largest_block, tile_images, ways_of
from ..packing import (
    Array,
    Operand,
    bias_with_zero_point,
    pack_parameters,
    pad_axis,
    parameter_operands,
    weight_operand,
    weights_in_dram,
)
from ..work import Work, parameter_bytes
from .weight_chunks import Chunks, chunks_of

COLUMN = 3                  # the dimension of columns


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
    asked: Depthwise            # of which `spec` has every so many columns
    pitch: int = 0              # tiles from row to row, if they have a border between them in DRAM

    @property
    def description(self) -> Depthwise:
        return self.asked

    @property
    def repeats(self) -> int:
        """Columns that are computed like channel blocks."""
        return self.asked.columns_out if self.config.acc_groups > 1 else 1

    @property
    def work(self) -> Work:
        spec, config = self.spec, self.config
        blocks = blocks_of(spec.channels_out, config.depthwise_lanes) * self.repeats
        vectors = blocks_of(spec.images, config.batch) * spec.out_height * spec.out_width * blocks
        products = vectors * spec.kernel[0] * spec.kernel[1] * spec.planes
        if self.chunks.slide is not None:
            products = (blocks_of(spec.images, config.batch) * blocks
                        * self.chunks.cycles(spec.stride, *spec.out_shape))
        passes = (blocks_of(spec.images, config.batch) * spec.out_height * spec.out_width
                  * blocks_of(spec.channels_out, config.block_out))
        return Work(macs=self.asked.macs, products=products,
                    bytes=convolution_bytes(self.asked, 1, config),
                    written=output_bytes(self.asked), passes=passes,
                    parameters=parameter_bytes(self.asked.channels_out, config))

    @property
    def operands(self) -> tuple[Operand, ...]:
        spec = self.asked
        return (Operand("data", (spec.images, spec.channels_in, spec.height, spec.width)),
                weight_operand((spec.channels_out, 1, *spec.kernel), self.config, spec.planes),
                *parameter_operands(spec.channels_out))

    @property
    def intrinsics(self) -> list[Intrinsic]:
        return [requantize(self.config, self.function, self.config.depthwise_lanes)]

    @property
    def layouts(self) -> dict[str, Layout]:
        """Each input channel is repeated for every output that reads it, and unused lanes are
        filled with zeros."""
        spec = self.asked
        return {"data": self._tile_layout("data", spec.channels_in, spec.multiplier, spec.height,
                                       spec.width, spec.columns_in),
                "output": self._tile_layout("output", spec.channels_out, 1, *spec.out_shape,
                                         spec.columns_out)}

    @property
    def interleaves(self) -> dict[str, Interleave]:
        """Channel blocks are groups of lanes in a wider tile, whether the accelerator has such
        tiles itself, or only memory does. Columns that share a tile are groups of its lanes, too,
        unless they have tiles of their own on the chip."""
        config, spec = self.config, self.asked
        ways = {"data": max(config.inp_groups, ways_of(config, config.block_in)
                            if spec.columns_in == 1 else 1),
                "output": max(config.acc_groups, ways_of(config, config.block_out)
                              if spec.columns_out == 1 else 1),
                "parameters": config.acc_groups}
        dimensions = {"data": 1 if spec.columns_in == 1 else COLUMN, "output": 1, "parameters": 0}
        return {name: Interleave(dimensions[name], count)
                for name, count in ways.items() if count > 1}

    def _block(self, name: str) -> int:
        """Lanes of a tensor's tiles in memory."""
        order = self.interleaves.get(name)
        return self.config.depthwise_lanes * (1 if order is None else order.ways)

    def _tile_layout(self, name: str, channels: int, copies: int, height: int, width: int,
                  columns: int) -> Layout:
        spec, config = self.spec, self.config
        stages = []
        if copies > 1:
            stages.append(Stage((spec.images, channels, height, width),
                                (spec.images, channels, copies, height, width),
                                ((0, 1), (1, 1), (1, 0), (2, 1), (3, 1)), (0,) * 4))
        tiles = tile_images(spec.images, channels * copies, height, width, config,
                            self._block(name) if columns == 1 else largest_block(config), columns)
        return Layout((*stages, *tiles.stages))

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """Each input channel is repeated for every output channel that reads it."""
        data = self.layouts["data"].pack(given["data"])
        return {"data": data.reshape(self.shapes["data"]), **self.pack_constants(given)}

    def pack_constants(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """Pack every input except the data."""
        bias = bias_with_zero_point(given["bias"], given["weights"], self.spec.zero_point_in)
        weights, *numbers = (self._repeat(each) for each in (
            given["weights"][:, 0], bias, given["multiplier"], given["shift"]))
        parameters = pack_parameters(numbers[0], numbers[1], numbers[2], self.config)
        return {"weights": self._pack_weights(weights),
                "parameters": self.group_lanes("parameters", parameters)}

    def _repeat(self, values: Array) -> Array:
        """What each channel has, for every column that is computed like channel blocks."""
        if self.repeats == 1:
            return values
        values = pad_axis(values, 0, self.config.depthwise_lanes)
        return np.concatenate([values] * self.repeats)

    def group_lanes(self, name: str, tiles: Array) -> Array:
        """Tiles as the program takes them: some lanes of each after the other, if need be."""
        return tiles.reshape(self.shapes[name]) if name in self.interleaves else tiles

    def _pack_weights(self, weights: Array) -> Array:
        """(channels, y, x) → (block, chunk y, chunk x, row, lane), in whole tiles"""
        config, chunks = self.config, self.chunks
        rows = pad_axis(chunks.pack(weights, config.depthwise_lanes), 3, chunks.rows(config))
        rows = pad_axis(rows, 0, blocks_of(config.block_out, chunks.rows(config)))
        tiles = pad_axis(rows, rows.ndim - 1, config.block_in)
        return weights_in_dram(np.ascontiguousarray(tiles), config)

    def unpack(self, output: Array) -> Array:
        return self.layouts["output"].unpack(output)


class Before(NamedTuple):
    """What a preceding layer in the same program provides: its result, and the parameters of both
    layers, those of the second first."""

    data: Tensor
    parameters: Tensor


def form_of(spec: Depthwise, config: Config, before: Before | None = None,
            chunks: Chunks | None = None) -> DepthwiseForm:
    """The tensors of the layer. Its input is in DRAM unless another layer precedes it. Chunks are
    the fastest unless given."""
    asked, repeats = spec, spec.columns_out if config.acc_groups > 1 else 1
    _check_columns(spec, config)
    if max(spec.columns_in, spec.columns_out) > 1:
        spec = replace(spec, stride=(spec.stride[0], spec.stride[1] * repeats), columns_in=1,
                       columns_out=1)
    chunks = chunks or chunks_of(spec, config, (0,) if repeats > 1 else (1, 0))
    images = blocks_of(spec.images, config.batch)
    blocks = blocks_of(spec.channels_out, config.depthwise_lanes) * repeats
    tile = config.batch, config.depthwise_lanes
    shape = (images, blocks // repeats, spec.height, spec.width, *tile)
    data = before.data if before else placeholder("data", shape, "int8")
    rows = chunks.rows(config)
    shared = blocks_of(config.block_out, rows)          # blocks that share a tile
    weights = placeholder("weights", (blocks_of(blocks, shared) * shared, *chunks.counts, rows,
                                      config.block_in), "int8")
    parameters = before.parameters if before else placeholder("parameters", (
        blocks, PARAMETER_TILES, *tile), "int32")
    padded, skipped = _pad_input(asked, config, chunks, data)
    (fy, fx), (dy, dx), (sy, sx) = chunks.taps, spec.dilation, chunks.strides(spec.stride)
    ty, tx = (reduce_axis(name, count) for name, count in zip(("ty", "tx"), chunks.counts,
                                                              strict=True))
    taps, ky, kx, row = taps_of(chunks)
    heights, widths = chunks.sums(spec.stride, *spec.out_shape)

    def sum_of(n, o, y, x, b, j):                               # type: ignore[no-untyped-def]
        block, first = (o, skipped) if repeats == 1 else (0, o * asked.stride[1] + skipped)
        return total(padded[n, block, y * sy + (ty * fy + ky) * dy,
                            x * sx + (tx * fx + kx) * dx + first, b, j].cast("int32")
                     * weights[o, ty, tx, row, j].cast("int32"), ty, tx, *taps)

    sums = compute("sums", (images, blocks, heights, widths, *tile), sum_of)
    function = spec.requantization()
    output = compute("output", (images, blocks, *spec.out_shape, *tile),
                     lambda n, o, y, x, b, j: requantize_sum(
        function, sum_at(spec, chunks, sums, n, o, y, x, b, j), parameters, (o,), (b, j)))
    return DepthwiseForm(spec=spec, config=config, chunks=chunks, function=function, data=data,
                         padded=padded, weights=weights, parameters=parameters, sums=sums,
                         output=output, asked=asked)


def _check_columns(spec: Depthwise, config: Config) -> None:
    """Refuse columns that are no groups of lanes."""
    check_columns(spec, config)
    groups = max(config.inp_groups, config.acc_groups)
    for name in ("columns_in", "columns_out"):
        if getattr(spec, name) not in (1, groups):
            raise spec.wrong(name, getattr(spec, name), f"1 or {groups}, groups of "
                                                        f"{config.depthwise_lanes} lanes")
    if spec.columns_in > 1 and spec.multiplier > 1:
        raise spec.wrong("columns_in", spec.columns_in, "1 if channels are multiplied")


def sum_at(spec: Depthwise, chunks: Chunks, sums: Tensor, *indices: Expression) -> Element:
    """The sum for one output. Sliding windows also compute the sums between outputs."""
    n, o, y, x, *tile = indices
    skip_y, skip_x = (full // step for full, step in zip(spec.stride, chunks.strides(spec.stride),
                                                         strict=True))
    return sums[(n, o, y * skip_y, x * skip_x, *tile)]


def taps_of(chunks: Chunks) -> tuple[list[Axis], Expression, Expression, Expression]:
    """The taps of a chunk: loops over them, the offset of each along y and x, and its row of
    weights."""
    (height, width), slide = chunks.taps, chunks.slide
    planes = [reduce_axis("plane", chunks.planes)] if chunks.planes > 1 else []
    if slide is None:
        ky, kx = reduce_axis("ky", height), reduce_axis("kx", width)
        return [ky, kx, *planes], ky, kx, sum(planes, (ky * width + kx) * chunks.planes)
    names = ("kx", "ky") if slide == 0 else ("ky", "kx")
    groups = chunks.taps[slide] // WINDOW_TAPS
    across, near = reduce_axis(names[0], chunks.taps[1 - slide]), reduce_axis(names[1], WINDOW_TAPS)
    group = reduce_axis("group", groups)
    along = group * WINDOW_TAPS + near
    row = sum(planes, (across * groups + group) * chunks.planes) * WINDOW_ROWS + near
    both_ways: tuple[Expression, Expression] = (
        (along, across) if slide == 0 else (across, along))
    return [across, group, *planes, near], *both_ways, row


def _pad_input(spec: Depthwise, config: Config, chunks: Chunks,
               data: Tensor) -> tuple[Tensor, int]:
    """The input within its border, which is wider where chunks extend beyond the window: the
    weights there are zero. Where columns are groups of lanes, it consists of whole tiles; and how
    many columns lie before the first that is used."""
    top, _, left, _ = spec.pad
    group = config.inp_groups if spec.columns_in > 1 else 1
    skipped = -left % group
    height, width = (max(size, (out - 1) * stride + (count * taps - 1) * dilation + 1)
                     for size, out, stride, count, taps, dilation in zip(
                         spec.padded, (spec.out_height, spec.out_width), spec.stride,
                         chunks.counts, chunks.taps, spec.dilation, strict=True))
    left, width = left + skipped, blocks_of(width + skipped, group) * group
    shape = (*data.shape[:2], height, width, *data.shape[-2:])
    return compute("padded", shape, lambda n, c, y, x, b, i: select(
        both(top <= y, y < top + spec.height, left <= x, x < left + spec.width),
        data[n, c, y - top, x - left, b, i], spec.zero_point_in)), skipped
