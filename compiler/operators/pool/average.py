"""Averages whose sums the MAC array makes: a depthwise convolution with weights of 1.

The ALU adds one element of a window in a pass. The MAC array does it too, three of them with
windows, while the ALU scales what was summed before:

    sums ─ × factor of the position ─► scaled ─ divide ─► output

All blocks have the same weights, which are loaded once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import prod

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import PARAMETER_TILES, WINDOW_TAPS, AluOp
from ...accelerator.selection.intrinsic import Intrinsic, element_wise, requantize
from ...expression.expression import Expression, both, select, total
from ...expression.tensor import Tensor, compute, placeholder, reduce_axis
from ...nest.nest import Interleave
from ..depthwise.depthwise import Depthwise, DepthwiseForm, sum_at, taps_of
from ..depthwise.weight_chunks import Chunks, chunks_of
from ..form import blocks_of, requantize_sum
from ..layout import Layout, Stage, tile_images
from ..packing import Array, Operand, pad_axis, weights_in_dram
from ..work import Work, rows_read
from .pool import Kind, Pool, halves, multiply_by_position, position_operands, scale_values

MOST_TAPS = 256             # of a chunk: as many micro-ops, and rows of weights
LEAST_TAPS = 16             # of a chunk of a larger window: shorter ones cost more than they save


@dataclass(frozen=True, kw_only=True)
class AverageForm(DepthwiseForm):
    """An average in tensors. `spec` is the convolution that makes its sums; `steps` are what the
    ALU computes between sums and results."""

    pool: Pool
    factors: Tensor | None      # of positions, in 32 bits
    steps: dict[Tensor, Intrinsic] = field(default_factory=dict)
    rows_first: bool = False    # the host writes rows with their border, block after block

    @property
    def description(self) -> Pool:      # type: ignore[override]
        return self.pool

    @property
    def note(self) -> str:
        rows = ", and the host packs rows of all channels with their border"
        return f"the MAC array makes the sums{rows if self.rows_first else ''}"

    @property
    def intrinsics(self) -> list[Intrinsic]:
        return [requantize(self.config, self.function), *self.steps.values()]

    @property
    def interleaves(self) -> dict[str, Interleave]:
        return {}

    @property
    def work(self) -> Work:
        pool, config = self.pool, self.config
        blocks = blocks_of(pool.images, config.batch) * blocks_of(pool.channels, config.block_out)
        used = prod(rows_read(size, *each) for size, *each in zip(
            (pool.height, pool.width), pool.out_shape, pool.kernel, pool.stride, pool.dilation,
            pool.pad[::2], strict=True))
        cycles = prod(self.chunks.counts) * self.chunks.cycles(pool.stride, *pool.out_shape)
        outputs, sums = prod(pool.out_shape), prod(self.chunks.sums(pool.stride, *pool.out_shape))
        taps = prod(self.chunks.counts) * prod(self.chunks.taps)
        added = sums * (taps if self.chunks.slide is None else taps // WINDOW_TAPS) - sums
        return Work(macs=0, products=blocks * cycles, passes=blocks * outputs * (
            1 + len(self.steps)), bytes=pool.images * pool.channels * (used + outputs),
            pairs=blocks * (added + outputs * (self.factors is not None)),
            written=pool.images * pool.channels * outputs)

    @property
    def operands(self) -> tuple[Operand, ...]:
        pool = self.pool
        return (Operand("data", (pool.images, pool.channels, pool.height, pool.width)),)

    @property
    def layouts(self) -> dict[str, Layout]:
        pool, block = self.pool, self.config.block_out
        return {"data": self._rows_layout() if self.rows_first else tile_images(
                    pool.images, pool.channels, pool.height, pool.width, self.config, block),
                "output": tile_images(pool.images, pool.channels, *pool.out_shape, self.config,
                                      block)}

    def _rows_layout(self) -> Layout:
        """(n, channel, y, x) → (n, y, block, x within the border, batch, lane)"""
        pool, config = self.pool, self.config
        shape, width = (pool.images, pool.channels, pool.height), self.data.shape[3]
        border = Stage((*shape, pool.width), (*shape, width), ((0, 1), (1, 1), (2, 1), (3, 1)),
                       (0, 0, 0, -pool.pad[2]), pool.padding)
        return Layout((border, Stage(border.shape, self.data.shape, (
            (0, config.batch), (2, 1), (1, config.block_out), (3, 1), (0, 1), (1, 1)), (0,) * 4)))

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        config = self.config
        return {"data": self.layouts["data"].pack(given["data"]).reshape(self.shapes["data"]),
                "weights": weights_in_dram(self._pack_ones(), config),
                **position_operands(self.pool, config)}

    def _pack_ones(self) -> Array:
        """The weights: (1, 1, row, lane), 0 where groups of taps extend beyond the window"""
        if self.chunks.slide is None:
            return np.ones(self.weights.shape, np.int8)
        lanes = self.config.depthwise_lanes
        rows = self.chunks.pack(np.ones((lanes, *self.spec.kernel), np.int8), lanes)
        return np.ascontiguousarray(pad_axis(rows[0], 2, self.weights.shape[2]))


def is_summed(pool: Pool, config: Config) -> bool:
    """Whether the MAC array can make the sums of a pool: those of an average, one tile from one,
    that need no parameters for each position."""
    return (pool.kind == Kind.AVERAGE and config.block_in == config.block_out
            and (pool.is_uniform or pool.has_factors))


def window_chunks(spec: Depthwise, config: Config, *, slides: bool) -> Chunks | None:
    """The whole window if it is small, or equal parts of it; None if there are none. Sums between
    outputs, which sliding makes, are no part of further steps."""
    whole = chunks_of(spec, config, (1, 0) if slides else ())
    if whole.counts == (1, 1) and prod(spec.kernel) <= MOST_TAPS:
        return whole
    height, width = spec.kernel
    columns = _largest_divisor(width, MOST_TAPS)
    rows = _largest_divisor(height, MOST_TAPS // columns) if columns == width else 1
    chunks = Chunks((rows, columns), (height // rows, width // columns))
    return chunks if rows * columns >= LEAST_TAPS else None


def _largest_divisor(number: int, most: int) -> int:
    return next(each for each in range(min(number, most), 0, -1) if number % each == 0)


def form_of(pool: Pool, config: Config, *, rows_first: bool = False) -> AverageForm | None:
    """What is computed; None if the MAC array is no help. With `rows_first`, the host writes rows
    with their border, those of all channels of an image row one after the other: then they are one
    run, where loads that fill a border in have a run for each row and block."""
    if not is_summed(pool, config):
        return None
    spec = _convolution(pool)
    has_steps = pool.has_factors or pool.ties_to_even
    chunks = window_chunks(spec, config, slides=not has_steps or pool.stride == (1, 1))
    if chunks is None:
        return None
    images, blocks = (blocks_of(pool.images, config.batch),
                      blocks_of(pool.channels, config.block_out))
    tile = (config.batch, config.block_out)
    data = placeholder("data", (images, blocks, pool.height, pool.width, *tile), "int8")
    weights = placeholder("weights", (1, 1, _weight_tiles(chunks, config) * config.block_out,
                                      config.block_in), "int8")
    padded = _pad(spec, chunks, data)
    if rows_first:
        height, width = padded.shape[2:4]
        data = placeholder("data", (images, pool.height, blocks, width, *tile), "int8")
        padded = _pad_rows(spec, data, (images, height, blocks, width, *tile))
    sums = _sum(spec, chunks, padded, weights, blocks, rows_first=rows_first)
    sets = 3 if pool.ties_to_even else 1
    parameters = placeholder("parameters", (1, 1, sets, PARAMETER_TILES, *tile), "int32")
    factors, value, steps = None, sums, {}
    if pool.has_factors:
        factors, value = multiply_by_position(pool, sums)
        steps[value] = element_wise(config, AluOp.MUL)
    if pool.ties_to_even:
        steps |= halves(config, value, parameters)
        value = list(steps)[-1]
    function = pool.requantization()
    if steps:
        output = scale_values("output", function, value, parameters, sets - 1)
    else:
        output = compute("output", (images, blocks, *pool.out_shape, *tile),
                         lambda n, o, y, x, b, j: requantize_sum(
            function, sum_at(spec, chunks, sums, n, o, y, x, b, j), parameters, (0, 0, 0), (b, j)))
    return AverageForm(spec=spec, asked=spec, pool=pool, config=config, chunks=chunks, data=data,
                       padded=padded, weights=weights, parameters=parameters, sums=sums,
                       function=function, output=output, factors=factors, steps=steps,
                       rows_first=rows_first)


def _convolution(pool: Pool) -> Depthwise:
    """The convolution that sums windows up."""
    return Depthwise(
        height=pool.height, width=pool.width, channels_in=pool.channels,
        channels_out=pool.channels, images=pool.images, kernel=pool.kernel, stride=pool.stride,
        dilation=pool.dilation, pad=pool.pad, zero_point_in=pool.padding, rounding=pool.rounding,
        zero_point_out=pool.zero_point_out, low=pool.low, high=pool.high, lookup=pool.lookup)


def _pad(spec: Depthwise, chunks: Chunks, data: Tensor) -> Tensor:
    """The input within its border, which is wider where the last group of taps extends beyond the
    window."""
    top, _, left, _ = spec.pad
    height, width = (max(size, (out - 1) * stride + (count * taps - 1) * dilation + 1)
                     for size, out, stride, count, taps, dilation in zip(
                         spec.padded, spec.out_shape, spec.stride, chunks.counts, chunks.taps,
                         spec.dilation, strict=True))
    return compute("padded", (*data.shape[:2], height, width, *data.shape[-2:]),
                   lambda n, c, y, x, b, i: select(
        both(top <= y, y < top + spec.height, left <= x, x < left + spec.width),
        data[n, c, y - top, x - left, b, i], spec.zero_point_in))


def _pad_rows(spec: Depthwise, data: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The input of which each row has its border, with rows above and below."""
    top = spec.pad[0]
    return compute("padded", shape, lambda n, y, c, x, b, i: select(
        both(top <= y, y < top + spec.height), data[n, y - top, c, x, b, i], spec.zero_point_in))


def _sum(spec: Depthwise, chunks: Chunks, padded: Tensor, weights: Tensor, blocks: int, *,
         rows_first: bool) -> Tensor:
    """Sums of windows. All chunks have the same weights."""
    (fy, fx), (dy, dx), (sy, sx) = chunks.taps, spec.dilation, chunks.strides(spec.stride)
    ty, tx = (reduce_axis(name, count) for name, count in zip(("ty", "tx"), chunks.counts,
                                                              strict=True))
    taps, ky, kx, row = taps_of(chunks)
    sums = chunks.sums(spec.stride, *spec.out_shape)
    shape = (padded.shape[0], blocks, *sums, *padded.shape[-2:])

    def element(n: Expression, o: Expression, y: Expression, x: Expression, b: Expression,
                j: Expression) -> Expression:
        row, column = y * sy + (ty * fy + ky) * dy, x * sx + (tx * fx + kx) * dx
        at = (row, o) if rows_first else (o, row)
        return padded[(n, *at, column, b, j)].cast("int32")

    return compute("sums", shape, lambda n, o, y, x, b, j: total(
        element(n, o, y, x, b, j)
        * weights[0, 0, 0 if chunks.slide is None else row, j].cast("int32"), ty, tx, *taps))


def _weight_tiles(chunks: Chunks, config: Config) -> int:
    """Tiles of weights: one row of ones does for all taps, unless some windows have fewer."""
    rows = 1 if chunks.slide is None else chunks.weight_rows
    return blocks_of(rows, config.block_out)
