"""A convolution scheduled by hand, for the benchmarks that need real work: int8, requantized.

Tensors are packed as NCHWnc: tiles of batch × block channels, by channel block, row and column.
A step is some rows of the output for a group of channel blocks, one instruction on each engine:

    LOAD    the input rows it needs, with their border       inp: halves, by turns
    GEMM    all its sums                                     acc: banks 0–1 and 2–3, by turns
    ALU     their requantization                             out: halves, by turns
    STORE   the result

While GEMM fills one half of the banks, the ALU empties the other. A group keeps its weights while
its rows pass by; if not all fit, the groups take the halves of wgt by turns. A sum is one pass
over a sequence of micro-ops, so that the three loops of a gemm are left for the output.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from microtron.base.errors import MicrotronError
from microtron.isa.arithmetic import quantize_scale, requantize_array
from microtron.isa.config import Config
from microtron.isa.instructions import (
    PARAMETER_TILES,
    Buffer,
    Gemm,
    GemmFlags,
    Instruction,
    Load,
    MicroOp,
    Requantize,
    Store,
    Sync,
)
from microtron.isa.program import Access, Program, Segment, Tensor
from microtron.isa.stream import encode, encode_micro_ops
from microtron.isa.verification.derive_tokens import with_tokens
from microtron.sim.functional.scratchpads import pack

Array = npt.NDArray[np.int64]
MICRO_OPS, INPUT, WEIGHTS, PARAMETERS, OUTPUT = range(5)        # segments
ZERO_POINT, LOW, HIGH = 3, -100, 127
SPREAD = 40.0               # of the results before they are clamped: a few are


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What is convolved."""

    height: int
    width: int
    channels_in: int
    channels_out: int
    kernel: int
    stride: int
    pad: int

    @property
    def out_height(self) -> int:
        return (self.height + 2 * self.pad - self.kernel) // self.stride + 1

    @property
    def out_width(self) -> int:
        return (self.width + 2 * self.pad - self.kernel) // self.stride + 1

    @property
    def padded_width(self) -> int:
        return self.width + 2 * self.pad

    def input_rows(self, rows: int) -> int:
        """That so many rows of output need."""
        return (rows - 1) * self.stride + self.kernel


def convolution(config: Config, height: int, width: int, channels_in: int, channels_out: int,
                kernel: int = 3, stride: int = 1, pad: int = 1,
                ) -> tuple[Program, npt.NDArray[np.int8]]:
    """The program, with random input and weights in it, and what its tensor `output` becomes."""
    shape = Shape(height=height, width=width, channels_in=channels_in, channels_out=channels_out,
                  kernel=kernel, stride=stride, pad=pad)
    schedule = Schedule(config, shape)
    rng = np.random.default_rng(0)
    limit = 1 << config.wgt_bits - 1
    image = rng.integers(-128, 128, (config.batch, channels_in, height, width))
    weights = rng.integers(-limit, limit, (channels_out, channels_in, kernel, kernel))
    sums = _convolve(image, weights, shape)
    bias = rng.integers(-1000, 1000, channels_out)
    multiplier, shift = np.transpose([quantize_scale(SPREAD / each)
                                      for each in sums.std((0, 2, 3)) * rng.uniform(
                                          0.9, 1.1, channels_out)])
    parameters = bias, multiplier, shift
    result = requantize_array(sums, *(each[:, None, None] for each in parameters),
                              zero_point=ZERO_POINT, low=LOW, high=HIGH)
    expected = _pack(result, config.block_out, config)
    data: dict[str, npt.NDArray[Any]] = {
        "micro_ops": encode_micro_ops(schedule.micro_ops).view(np.uint8),
        "input": _pack(image, config.block_in, config).astype(np.int8),
        "weights": pack(_weight_tiles(weights, config), Buffer.WGT, config),
        "parameters": _parameter_tiles(parameters, config)}
    program = Program(
        config, encode([*schedule.instructions(), Sync()]),
        (*(Segment(name, each.nbytes, Access.READ, each.ravel().view(np.uint8))
           for name, each in data.items()), Segment("output", expected.nbytes, Access.WRITE)),
        (Tensor("input", "input", 0, data["input"].shape),
         Tensor("output", "output", 0, expected.shape)))
    return with_tokens(program), expected


class Schedule:
    """Which tiles lie where, and the instructions that follow from it."""

    def __init__(self, config: Config, shape: Shape):
        self.config, self.shape = config, shape
        for name, channels, block in (("channels_in", shape.channels_in, config.block_in),
                                      ("channels_out", shape.channels_out, config.block_out)):
            if channels % block:
                raise MicrotronError(f"{name} is {channels}, but must be a multiple of {block}")
        if shape.pad >= shape.kernel or min(shape.out_height, shape.out_width) < 1:
            raise MicrotronError(f"pad is {shape.pad}, but a kernel of {shape.kernel} must reach "
                                 f"the {shape.height} × {shape.width} input from everywhere")
        self.depth, self.blocks = (shape.channels_in // config.block_in,
                                   shape.channels_out // config.block_out)
        self.products = self.depth * shape.kernel**2        # of a sum
        self.half = {buffer: config.tiles(buffer) // 2 for buffer in Buffer}
        self.parameters = self.half[Buffer.ACC] - PARAMETER_TILES * self.blocks
        space = min(self.half[Buffer.OUT], self.parameters)     # for results
        all_fit = self.products * self.blocks <= config.tiles(Buffer.WGT)
        group = self.blocks if all_fit else self.half[Buffer.WGT] // self.products
        if group * shape.out_width > space:
            group = min(self.half[Buffer.WGT] // self.products, space // shape.out_width)
        self.groups = -(-self.blocks // group) if group > 0 else 0
        self.group = -(-self.blocks // self.groups) if self.groups else 0
        self.rows = self._rows(space)
        self.micro_ops = list(self._micro_ops())
        if 0 in (self.group, self.rows) or len(self.micro_ops) > config.tiles(Buffer.UOP):
            raise MicrotronError(f"{shape} does not divide into steps that fit in halves of the "
                                 f"scratchpads of this configuration")

    def _rows(self, space: int) -> int:
        """The most rows of output that a step can have."""
        row = self.depth * self.shape.padded_width
        fit = [rows for rows in range(1, self.shape.out_height + 1)
               if self.shape.input_rows(rows) * row <= self.half[Buffer.INP]
               and rows * self.shape.out_width * self.group <= space]
        return max(fit, default=0)

    @property
    def plane(self) -> int:
        """Tiles of inp from one channel block to the next."""
        return self.shape.input_rows(self.rows) * self.shape.padded_width

    def _micro_ops(self) -> Iterator[MicroOp]:
        """A sequence for each half of wgt that is in use and each half of the others."""
        for weights, turn in product(range(min(self.groups, 2)), range(2)):
            places = product(range(self.depth), range(self.shape.kernel), range(self.shape.kernel))
            for number, (block, y, x) in enumerate(places):
                yield MicroOp(
                    dst=turn * self.half[Buffer.ACC],
                    src=turn * self.half[Buffer.INP] + block * self.plane
                    + y * self.shape.padded_width + x,
                    wgt=weights * self.half[Buffer.WGT] + number)

    def instructions(self) -> Iterator[Instruction]:
        """In the order in which one engine would do them; tokens let four overlap."""
        yield Load(buffer=Buffer.UOP, segment=MICRO_OPS, shape=(1, 1, len(self.micro_ops)))
        for turn in range(2):
            yield Load(buffer=Buffer.ACC, segment=PARAMETERS,
                       sram=turn * self.half[Buffer.ACC] + self.parameters,
                       shape=(1, 1, PARAMETER_TILES * self.blocks))
        step = 0
        for number in range(self.groups):
            first = number * self.group
            blocks = min(self.group, self.blocks - first)
            for row in range(0, self.shape.out_height, self.rows):
                yield self._load_input(row, self._rows_from(row), step % 2)
                if row == 0:
                    yield Load(buffer=Buffer.WGT, segment=WEIGHTS,
                               sram=number % 2 * self.half[Buffer.WGT],
                               offset=first * self.products * self.config.tile_bytes(Buffer.WGT),
                               shape=(1, 1, blocks * self.products))
                yield from self._step(first, blocks, row, number % 2, step % 2)
                step += 1

    def _rows_from(self, row: int) -> int:
        return min(self.rows, self.shape.out_height - row)

    def _load_input(self, row: int, rows: int, turn: int) -> Load:
        shape, tile = self.shape, self.config.tile_bytes(Buffer.INP)
        first = row * shape.stride - shape.pad
        last = first + shape.input_rows(rows)
        top, bottom = max(0, -first), max(0, last - shape.height)
        return Load(buffer=Buffer.INP, segment=INPUT, sram=turn * self.half[Buffer.INP],
                    offset=(first + top) * shape.width * tile,
                    shape=(self.depth, last - first - top - bottom, shape.width),
                    stride=(shape.height * shape.width * tile, shape.width * tile),
                    sram_pitch=self.plane, pad=(top, bottom, shape.pad, shape.pad))

    def _step(self, first: int, blocks: int, row: int, weights: int,
              turn: int) -> Iterator[Instruction]:
        shape, rows, tile = self.shape, self._rows_from(row), self.config.tile_bytes(Buffer.OUT)
        plane, width = rows * shape.out_width, shape.out_width
        acc, out = (turn * self.half[buffer] for buffer in (Buffer.ACC, Buffer.OUT))
        yield Gemm(flags=GemmFlags.START | GemmFlags.FIRST_UOP, count=self.products,
                   uop=(2 * weights + turn) * self.products, loops=(blocks, rows, width),
                   dst_stride=(plane, width, 1), wgt_stride=(self.products, 0, 0),
                   src_stride=(0, shape.stride * shape.padded_width, shape.stride))
        yield Requantize(dst=out, src=acc, loops=(blocks, 1, plane), dst_stride=(plane, 0, 1),
                         src_stride=(plane, 0, 1), params_stride=PARAMETER_TILES,
                         params=acc + self.parameters + first * PARAMETER_TILES,
                         zero_point=ZERO_POINT, low=LOW, high=HIGH)
        channel = shape.out_height * width * tile
        yield Store(buffer=Buffer.OUT, segment=OUTPUT, sram=out, shape=(1, blocks, plane),
                    offset=first * channel + row * width * tile, sram_pitch=(0, plane),
                    stride=(0, channel))


def _convolve(image: Array, weights: Array, shape: Shape) -> Array:
    """The sums in NumPy: doubles hold them exactly, and multiply faster than its integers."""
    padded = np.pad(image, ((0, 0), (0, 0), *[(shape.pad, shape.pad)] * 2)).astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (shape.kernel,) * 2, (2, 3))
    sums = np.tensordot(windows[:, :, ::shape.stride, ::shape.stride], weights.astype(np.float64),
                        ((1, 4, 5), (1, 2, 3)))
    return sums.transpose(0, 3, 1, 2).astype(np.int64)


def _pack(tensor: npt.NDArray[Any], block: int, config: Config) -> npt.NDArray[Any]:
    """From (n, channels, height, width) to (blocks, height, width, n, channels of a block), by
    count: in a tile, groups of lanes follow one another (`Config.place_in_tile`)."""
    batch, channels, height, width = tensor.shape
    lanes = config.depthwise_lanes
    tiles = tensor.reshape(batch, channels // block, block // lanes, lanes, height, width)
    return np.ascontiguousarray(tiles.transpose(1, 4, 5, 2, 0, 3)).reshape(
        channels // block, height, width, batch, block)


def _weight_tiles(weights: Array, config: Config) -> Array:
    """The tiles of a block of outputs in the order of the micro-ops."""
    outputs, inputs, height, width = weights.shape
    blocks = weights.reshape(outputs // config.block_out, config.block_out,
                             inputs // config.block_in, config.block_in, height, width)
    return blocks.transpose(0, 2, 4, 5, 1, 3).reshape(-1, config.block_out, config.block_in)


def _parameter_tiles(parameters: tuple[Array, Array, Array],
                     config: Config) -> npt.NDArray[np.int32]:
    """Bias, multiplier and shift of each block, the same for every image of the batch."""
    blocks = np.stack([each.reshape(-1, config.acc_groups, 1, config.depthwise_lanes)
                       for each in parameters], axis=1)
    return np.repeat(blocks, config.batch, axis=3).astype("<i4")
