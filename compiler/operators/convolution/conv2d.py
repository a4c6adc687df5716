"""Convolution of int8 tensors with per-channel requantization.

Tensors are packed: activations as (n, channel block, y, x, batch, lane), weights as (output block,
input block, y, x, output lane, input lane), parameters as (output block, 3, batch, lane): bias,
multiplier and shift. What a zero point of the input adds to a sum is part of the bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import PARAMETER_TILES
from ...expression.expression import both, select, total
from ...expression.tensor import Tensor, compute, placeholder, reduce_axis
from ...nest.nest import Interleave
from ..description import setting
from ..form import ACCUMULATOR_BYTES, TensorForm, blocks_of, requantize_sum
from ..layout import Layout, interleaves, memory_block, tile_images
from ..packing import (
    PARAMETERS,
    Array,
    Operand,
    bias_with_zero_point,
    pack_parameters,
    pack_weights,
    parameter_operands,
    weight_operand,
    weight_planes,
)
from ..work import Work, parameter_bytes, rows_read, weight_bytes
from .output_tiles import AluSteps
from .packed_columns import Convolution, PackedColumns

MOST_PLANES = 2


@dataclass(frozen=True, kw_only=True)
class Conv2d(Convolution):
    """A convolution. Weights are (channels_out, channels_in, y, x)."""

    operator: ClassVar[str] = "conv2d"

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
    packed_columns: PackedColumns[Conv2d] | None = None     # what `spec` is made from, if any

    @property
    def later_columns(self) -> int:
        """Columns of the input that only later output blocks see."""
        packed = self.packed_columns
        return 0 if packed is None else packed.later * (packed.outputs - 1)

    @property
    def asked(self) -> Conv2d:
        """The convolution before columns became channels."""
        return self.spec if self.packed_columns is None else self.packed_columns.image

    @property
    def description(self) -> Conv2d:
        return self.asked

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
        asked = self.asked
        return Work(macs=asked.macs, products=pixels * blocks * spec.kernel[0] * spec.kernel[1]
                    * spec.planes * blocks_of(spec.channels_in, config.block_in),
                    bytes=convolution_bytes(asked, asked.channels_in, config),
                    written=output_bytes(asked), passes=pixels * blocks,
                    parameters=parameter_bytes(asked.channels_out, config))

    @property
    def operands(self) -> tuple[Operand, ...]:
        spec = self.asked
        return (Operand("data", (spec.images, spec.channels_in, spec.height, spec.width)),
                weight_operand((spec.channels_out, spec.channels_in, *spec.kernel), self.config,
                               spec.planes),
                *parameter_operands(spec.channels_out))

    @property
    def layouts(self) -> dict[str, Layout]:
        spec, config = self.asked, self.config
        return {"data": self._data_tiles(),
                "output": tile_images(
                    spec.images, spec.channels_out, *spec.out_shape, config,
                    memory_block(config, config.block_out), spec.columns_out)}

    def _data_tiles(self) -> Layout:
        spec, config = self.asked, self.config
        return tile_images(spec.images, spec.channels_in, spec.height, spec.width, config,
                           memory_block(config, config.block_in), spec.columns_in)

    @property
    def interleaves(self) -> dict[str, Interleave]:
        if self.packed_columns is None:
            return interleaves(self.config)
        return {name: Interleave(1, ways)
                for name, ways in self.packed_columns.ways.items() if ways > 1}

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        data = self._data_tiles().pack(given["data"])
        weights = given["weights"]
        bias, multiplier, shift = (given[name] for name in PARAMETERS)
        if self.packed_columns is not None:
            weights = self.packed_columns.weights(weights)
            bias, multiplier, shift = (self.packed_columns.parameters(each)
                                       for each in (bias, multiplier, shift))
        bias = bias_with_zero_point(bias, weights, self.spec.zero_point_in)
        return {"data": data.reshape(self.shapes["data"]),
                "weights": pack_weights(self._split_planes(weights), self.config),
                "parameters": pack_parameters(bias, multiplier, shift, self.config)}

    def _split_planes(self, weights: Array) -> Array:
        """(outputs, inputs, y, x) → (outputs, inputs, y, x and plane)"""
        planes = weight_planes(weights, self.spec.planes)
        return planes.reshape(*planes.shape[:3], -1)

    def unpack(self, output: Array) -> Array:
        return self.layouts["output"].unpack(output)


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
            + output_bytes(spec))


def output_bytes(spec: Conv2d) -> int:
    """Bytes of the output."""
    return (spec.images * spec.channels_out * spec.out_height * spec.out_width
            * (ACCUMULATOR_BYTES if spec.wide else 1))


def form_of(spec: Conv2d, config: Config, *, skip_columns: bool = False,
            prefix: str = "", later: int = 0) -> Conv2dForm:
    """The form of a convolution. Where unused rows are skipped, unused columns may be, too: that
    means fewer bytes, but in runs of one tile. A `prefix` tells all tensors but the data from those
    of other operators in the same program. Each output block may begin
    some columns `later` than the one before."""
    images = blocks_of(spec.images, config.batch)
    depth, outputs = (blocks_of(spec.channels_in, config.block_in),
                      blocks_of(spec.channels_out, config.block_out))
    data, padded = _inputs(spec, config, images, depth, skip_columns, prefix,
                           later * (outputs - 1))
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
        padded[n, c, y * sy + ky * dy, *between, x * sx + kx * dx + o * later, *beside, b,
               k].cast("int32")
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
    if max(spec.columns_in, spec.columns_out) > 1:
        columns = PackedColumns(spec, config)
        return [replace(form_of(columns.convolution, config, skip_columns=skip, prefix=prefix,
                                later=columns.later), packed_columns=columns)
                for skip in _column_skips(columns.convolution)]
    return [form_of(spec, config, skip_columns=skip, prefix=prefix)
            for skip in _column_skips(spec)]


def _column_skips(spec: Conv2d) -> tuple[bool, ...]:
    return (False, True) if spec.skips_columns else (False,)


def _inputs(spec: Conv2d, config: Config, images: int, depth: int, skip_columns: bool,
            prefix: str, more: int) -> tuple[Tensor, Tensor]:
    """The data, and the data in a border, with some `more` columns on the right. Where only one row
    out of several is used, rows between are a dimension of their own, of which the first is
    loaded; memory is the same. So it is with columns."""
    (top, _, left, _), height, width = spec.pad, spec.padded[0], spec.padded[1] + more
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
