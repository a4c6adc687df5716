"""Convolution of int8 tensors with per-channel requantization.

Tensors are packed: activations as (n, channel block, y, x, batch, lane), weights as (output block,
input block, y, x, output lane, input lane), parameters as (output block, 3, batch, lane): bias,
multiplier and shift. What a zero point of the input adds to a sum is part of the bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ....isa.config import Config
from ....isa.instructions import PARAMETER_TILES
from ...expression.expression import both, select, total
from ...expression.tensor import Tensor, compute, placeholder, reduce_axis
from ...nest.nest import Interleave
from ..description import extent, setting
from ..form import ACCUMULATOR_BYTES, TensorForm, blocks_of, requantize_sum
from ..layout import Layout, interleaves, memory_block, tile_images, wide_tiles
from ..packing import (
    Array,
    Operand,
    bias_with_zero_point,
    pack_activations,
    pack_parameters,
    pack_weights,
    parameter_operands,
    unpack_activations,
    weight_operand,
    weight_planes,
)
from ..sliding_window import Windowed
from ..work import Work, rows_read, weight_bytes
from .output_tiles import AluSteps

MOST_PLANES = 2


@dataclass(frozen=True, kw_only=True)
class Conv2d(Windowed):
    """A convolution. Weights are (channels_out, channels_in, y, x)."""

    operator: ClassVar[str] = "conv2d"

    channels_in: int = extent("channels of the input")
    channels_out: int = extent("channels of the output")
    kernel: tuple[int, int] = extent("rows and columns of the kernel", (3, 3))
    planes: int = setting("numbers whose sum a weight is: 2 where weights have a bit more, as "
                          "uint8 weights without their zero point have", 1, low=1,
                          high=MOST_PLANES)

    @property
    def skips_rows(self) -> bool:
        """Whether unused rows of the input can stay in DRAM."""
        return (self.kernel[0] == 1 and self.stride[0] > 1 and self.pad[:2] == (0, 0)
                and self.height % self.stride[0] == 0)

    @property
    def skips_columns(self) -> bool:
        """Whether unused columns can stay in DRAM, too."""
        return (self.skips_rows and self.kernel[1] == 1 and self.stride[1] > 1
                and self.pad[2:] == (0, 0) and self.width % self.stride[1] == 0)

    @property
    def macs(self) -> int:
        return (self.images * self.out_height * self.out_width * self.channels_out
                * self.channels_in * self.kernel[0] * self.kernel[1])


@dataclass(frozen=True, kw_only=True)
class Conv2dForm(TensorForm):
    """A convolution in tensors. `steps` are the loaded rows and columns from one output to the
    next."""

    spec: Conv2d
    steps: tuple[int, int]
    data: Tensor
    padded: Tensor
    weights: Tensor
    parameters: Tensor
    sums: Tensor
    between: AluSteps | None = None     # of the ALU, from sums to results

    @property
    def extents(self) -> tuple[int, int, int]:
        """Groups, output blocks and input blocks."""
        *groups, outputs, depth = self.weights.shape[:-4]
        return groups[0] if groups else 1, outputs, depth

    @property
    def skips_columns(self) -> bool:
        return self.steps[1] < self.spec.stride[1]

    @property
    def note(self) -> str:
        return "columns that no output sees are not loaded" if self.skips_columns else ""

    @property
    def work(self) -> Work:
        spec, config = self.spec, self.config
        blocks = blocks_of(spec.channels_out, config.block_out)
        pixels = blocks_of(spec.images, config.batch) * spec.out_height * spec.out_width
        return Work(macs=spec.macs, products=pixels * blocks * spec.kernel[0] * spec.kernel[1]
                    * spec.planes * blocks_of(spec.channels_in, config.block_in),
                    bytes=convolution_bytes(spec, spec.channels_in, config),
                    passes=pixels * blocks)

    @property
    def operands(self) -> tuple[Operand, ...]:
        spec = self.spec
        return (Operand("data", (spec.images, spec.channels_in, spec.height, spec.width)),
                weight_operand((spec.channels_out, spec.channels_in, *spec.kernel), self.config,
                               spec.planes),
                *parameter_operands(spec.channels_out))

    @property
    def layouts(self) -> dict[str, Layout]:
        spec, config = self.spec, self.config
        return {"data": tile_images(spec.images, spec.channels_in, spec.height, spec.width,
                                     config, memory_block(config, config.block_in)),
                "output": tile_images(spec.images, spec.channels_out, *spec.out_shape,
                                       config, memory_block(config, config.block_out))}

    @property
    def interleaves(self) -> dict[str, Interleave]:
        return interleaves(self.config)

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        config = self.config
        data = pack_activations(given["data"], config, memory_block(config, config.block_in))
        bias = bias_with_zero_point(given["bias"], given["weights"], self.spec.zero_point_in)
        return {"data": data.reshape(self.shapes["data"]),
                "weights": pack_weights(self._split_planes(given["weights"]), self.config),
                "parameters": pack_parameters(bias, given["multiplier"], given["shift"],
                                              self.config)}

    def _split_planes(self, weights: Array) -> Array:
        """(outputs, inputs, y, x) → (outputs, inputs, y, x and plane)"""
        planes = weight_planes(weights, self.spec.planes)
        return planes.reshape(*planes.shape[:3], -1)

    def unpack(self, output: Array) -> Array:
        tiles = wide_tiles(output, self.config, self.config.block_out)
        return unpack_activations(tiles, self.config, self.spec.images, self.spec.channels_out)


def convolution_bytes(spec: Conv2d, depth: int, config: Config) -> int:
    """Bytes of the pixels that are used, of weights over this many input channels, and of the
    output."""
    rows, columns = (
        rows_read(size, outputs, kernel, stride, dilation, pad)
        for size, outputs, kernel, stride, dilation, pad in zip(
            (spec.height, spec.width), spec.out_shape, spec.kernel, spec.stride, spec.dilation,
            spec.pad[::2], strict=True))
    weights = spec.channels_out * depth * spec.kernel[0] * spec.kernel[1] * spec.planes
    return (spec.images * spec.channels_in * rows * columns + weight_bytes(weights, config)
            + spec.images * spec.channels_out * spec.out_height * spec.out_width
            * (ACCUMULATOR_BYTES if spec.wide else 1))


def form_of(spec: Conv2d, config: Config, *, skip_columns: bool = False,
            prefix: str = "") -> Conv2dForm:
    """The form of a convolution. Where unused rows are skipped, unused columns may be, too: that
    means fewer bytes, but in runs of one tile. A `prefix` tells all tensors but the data from those
    of other operators in the same program."""
    images = blocks_of(spec.images, config.batch)
    depth, outputs = (blocks_of(spec.channels_in, config.block_in),
                      blocks_of(spec.channels_out, config.block_out))
    data, padded = _inputs(spec, config, images, depth, skip_columns, prefix)
    weights = placeholder(f"{prefix}weights", (
        outputs, depth, spec.kernel[0], spec.kernel[1] * spec.planes, config.block_out,
        config.block_in), "int8")
    parameters = placeholder(f"{prefix}parameters", (outputs, PARAMETER_TILES, config.batch,
                                                     config.block_out), "int32")
    c, ky, kx, k = (reduce_axis(name, extent) for name, extent in (
        ("c", depth), ("ky", spec.kernel[0]), ("kx", spec.kernel[1]), ("k", config.block_in)))
    shape = (images, outputs, spec.out_height, spec.out_width, config.batch, config.block_out)
    (sy, sx), (dy, dx) = spec.stride, spec.dilation
    sy, sx = 1 if spec.skips_rows else sy, 1 if skip_columns else sx
    between = (0,) if spec.skips_rows else ()
    beside = (0,) if skip_columns else ()
    planes = [reduce_axis("plane", spec.planes)] if spec.planes > 1 else []
    sums = compute(f"{prefix}sums", shape, lambda n, o, y, x, b, j: total(
        padded[n, c, y * sy + ky * dy, *between, x * sx + kx * dx, *beside, b, k].cast("int32")
        * weights[o, c, ky, sum(planes, kx * spec.planes), j, k].cast("int32"),
        c, ky, kx, *planes, k))
    function = spec.requantization()
    output = compute(f"{prefix}output", shape, lambda n, o, y, x, b, j: requantize_sum(
        function, sums[n, o, y, x, b, j], parameters, (o,), (b, j)))
    return Conv2dForm(spec=spec, config=config, steps=(sy, sx), function=function, data=data,
                      padded=padded, weights=weights, parameters=parameters, sums=sums,
                      output=output)


def plain_forms(spec: Conv2d, config: Config, prefix: str = "") -> list[Conv2dForm]:
    """The ways to load the input: with all its columns, and without those that are not used."""
    skips = (False, True) if spec.skips_columns else (False,)
    return [form_of(spec, config, skip_columns=skip, prefix=prefix) for skip in skips]


def _inputs(spec: Conv2d, config: Config, images: int, depth: int, skip_columns: bool,
            prefix: str) -> tuple[Tensor, Tensor]:
    """The data, and the data in a border. Where only one row out of several is used, rows between
    are a dimension of their own, of which the first is loaded; memory is the same. So it is with
    columns."""
    (top, _, left, _), (height, width) = spec.pad, spec.padded
    tile, name = (config.batch, config.block_in), f"{prefix}padded"
    rows, step = spec.height // spec.stride[0], spec.stride[0]
    if skip_columns:
        columns, aside = spec.width // spec.stride[1], spec.stride[1]
        data = placeholder("data", (images, depth, rows, step, columns, aside, *tile), "int8")
        return data, compute(name, (images, depth, rows, 1, columns, 1, *tile),
                             lambda n, c, y, z, x, w, b, i: data[n, c, y, z, x, w, b, i])
    if spec.skips_rows:
        data = placeholder("data", (images, depth, rows, step, spec.width, *tile), "int8")
        return data, compute(
            name, (images, depth, rows, 1, width, *tile), lambda n, c, y, z, x, b, i: select(
                both(left <= x, x < left + spec.width), data[n, c, y, z, x - left, b, i],
                spec.zero_point_in))
    data = placeholder("data", (images, depth, spec.height, spec.width, *tile), "int8")
    return data, compute(
        name, (images, depth, height, width, *tile), lambda n, c, y, x, b, i: select(
            both(top <= y, y < top + spec.height, left <= x, x < left + spec.width),
            data[n, c, y - top, x - left, b, i], spec.zero_point_in))
