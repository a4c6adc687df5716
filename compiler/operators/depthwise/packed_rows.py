"""Convolutions whose rows the host packs into tiles without gaps, whatever the channels.

Channels of a group that do not fill tiles leave lanes empty in each pixel. So the host writes the
channels of all pixels of a row one after the other, 24 to a pixel here, and takes results so:

    tiles of data      | pixel 0      | 0    1 | 1             | pixel 2      | …
    tiles of results   | pixel 0      | 0    1 | 1             | …

A tile of results takes products with those tiles of data alone that its pixels see, in each row of
the kernel: 5, 6 and 5 of them, 24 for a pixel with 3 × 3 taps, where two tiles of padded pixels
take 36 and pairs of pixels 27. What a tile sees repeats after some pixels, 2 here. Tiles that see
the same make a convolution over tiles of data, with a stride of those in a period; all of them are
one program.

No other operator reads or writes such rows: this is for layers between a host and a host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from math import prod

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import PARAMETER_TILES, Buffer
from ....isa.memory_timing import MemoryTiming
from ....isa.program import Program
from ...accelerator.selection.intrinsic import requantize
from ...nest.nest import Buffer as Memory
from ...nest.nest import Nest
from ..choice import CLOSE, columns_of
from ..convolution.conv2d import Conv2d, Conv2dForm
from ..convolution.conv2d_schedule import TEMPLATE, Knobs
from ..convolution.patches import groups_of
from ..form import Form, blocks_of
from ..kernel import AnyOperator, Kernel, Options, best_kernel, build_nest
from ..layout import Layout, Stage
from ..packing import (
    Array,
    Operand,
    bias_with_zero_point,
    pack_parameters,
    parameter_operands,
    weight_operand,
    weights_in_dram,
)
from ..program_cache import cached_program
from ..segment_sizes import fits_segments
from ..work import Work
from .grouped import Grouped, GroupedForm
from .grouped import form_of as grouped_form_of
from .row_periods import Part, Period, depths, period_of

WORTH = 0.97                # the part of the cycles otherwise at which it is tried


@dataclass(frozen=True, kw_only=True)
class PartConv2d(Grouped):
    """The convolution that some tiles of results are. Its border may be negative: tiles of data
    that only others see."""

    def __post_init__(self) -> None:        # nothing that a user wrote
        assert min(self.out_height, self.out_width) >= 1, "parts are made to fit"


@dataclass(frozen=True, kw_only=True)
class PackedRowsForm(Form):
    """A convolution of packed rows, as one for each part of a period. `own` is the work of the
    convolution, whatever lies in tiles."""

    spec: Conv2d
    period: Period
    own: Work

    @property
    def note(self) -> str:
        return f"the host packs rows without gaps, in {len(self.period.parts)} parts"

    @property
    def work(self) -> Work:
        return self.own

    @property
    def periods(self) -> int:
        """Of a row."""
        return blocks_of(self.spec.out_width, self.period.pixels)

    @property
    def columns(self) -> int:
        """Tiles of a row of data."""
        return (self.periods - 1) * self.period.data_tiles + self.period.reach

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        spec, config, tiles = self.spec, self.config, self.period.result_tiles
        images, groups = blocks_of(spec.images, config.batch), groups_of(spec)
        return {
            "data": (images, groups, 1, spec.height, self.columns, config.batch, config.block_in),
            "weights": (groups, tiles, 1, spec.kernel[0],
                        max(each.width for each in self.period.parts), config.block_out,
                        config.block_in),
            "parameters": (groups, tiles, PARAMETER_TILES, config.batch, config.block_out),
            "output": (images, groups, tiles, spec.out_height, self.periods, config.batch,
                       config.block_out)}

    @property
    def operands(self) -> tuple[Operand, ...]:
        spec = self.spec
        return (Operand("data", (spec.images, spec.channels_in, spec.height, spec.width)),
                weight_operand((spec.channels_out, depths(spec)[0], *spec.kernel), self.config),
                *parameter_operands(spec.channels_out))

    @property
    def layouts(self) -> dict[str, Layout]:
        spec, config, groups, period = self.spec, self.config, groups_of(self.spec), self.period
        (inputs, outputs), shapes = depths(spec), self.shapes
        pixels = blocks_of(self.columns * config.block_in, inputs)
        return {
            "data": Layout((
                _pixels_first((spec.images, spec.channels_in, spec.height, spec.width), groups,
                              pixels, -spec.pad[2], spec.zero_point_in),
                Stage((spec.images, groups, spec.height, pixels * inputs), shapes["data"],
                      ((0, config.batch), (1, 1), (1, 1), (2, 1), (3, config.block_in), (0, 1),
                       (3, 1)), (0, 0, 0, -period.shift)))),
            "output": Layout((
                _pixels_first((spec.images, spec.channels_out, *spec.out_shape), groups,
                              self.periods * period.pixels, 0, 0),
                Stage((spec.images, groups, spec.out_height,
                       self.periods * period.pixels * outputs), shapes["output"],
                      ((0, config.batch), (1, 1), (3, config.block_out), (2, 1),
                       (3, period.result_tiles * config.block_out), (0, 1), (3, 1)),
                      (0, 0, 0, 0))))}

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        bias = bias_with_zero_point(given["bias"], given["weights"], self.spec.zero_point_in)
        rows = [self._lanes(each) for each in (bias, given["multiplier"], given["shift"])]
        return {"data": self.layouts["data"].pack(given["data"]),
                "weights": weights_in_dram(self._weights(given["weights"]), self.config),
                "parameters": np.stack([
                    pack_parameters(biases, multipliers, shifts, self.config)
                    for biases, multipliers, shifts in zip(*rows, strict=True)])}

    def _lanes(self, values: Array) -> Array:
        """Numbers of channels → (group, lanes of the results of a period)"""
        return np.tile(values.reshape(groups_of(self.spec), -1), (1, self.period.pixels))

    def _weights(self, weights: Array) -> Array:
        """(outputs, inputs, y, x) → tiles: what each lane of a result sees, from where its part
        begins."""
        spec, groups = self.spec, groups_of(self.spec)
        inputs, outputs = depths(spec)
        _, tiles, _, rows, width, lanes, block = self.shapes["weights"]
        found = np.zeros((groups, tiles, lanes, rows, width * block), weights.dtype)
        plain = weights.reshape(groups, outputs, inputs, *spec.kernel)
        for part in self.period.parts:
            for lane in range(part.first * lanes, (part.first + part.count) * lanes):
                pixel, channel = divmod(lane, outputs)
                for tap in range(spec.kernel[1]):
                    column = pixel * spec.stride[1] + tap * spec.dilation[1]
                    begin = column * inputs + self.period.shift - part.start * block
                    found[:, lane // lanes, lane % lanes, :, begin:begin + inputs] = (
                        plain[:, channel, :, :, tap].swapaxes(1, 2))
        return found.reshape(groups, tiles, 1, lanes, rows, width, block).transpose(
            0, 1, 2, 4, 5, 3, 6)

    def unpack(self, output: Array) -> Array:
        return self.layouts["output"].unpack(output)

    def build(self, knobs: tuple[Knobs, ...], *, hide_latency: bool) -> Kernel:
        return build_parts(self, knobs, hide_latency=hide_latency)


def _pixels_first(shape: tuple[int, int, int, int], groups: int, width: int, start: int,
                  fill: int) -> Stage:
    """(n, channel, y, x) → (n, group, y, x, channel of the group)"""
    images, channels, height, _ = shape
    own = channels // groups
    return Stage(shape, (images, groups, height, width, own),
                 ((0, 1), (1, own), (2, 1), (3, 1), (1, 1)), (0, 0, 0, start), fill)


def form_of(spec: Conv2d, config: Config, own: Work) -> PackedRowsForm | None:
    """The form of packed rows; None if there is none."""
    if spec.planes > 1 or spec.wide or max(spec.columns_in, spec.columns_out) > 1 or (
            config.block_in != config.block_out):
        return None
    period = period_of(spec, config)
    return None if period is None else PackedRowsForm(spec=spec, config=config, period=period,
                                                      own=own)


def least_cycles(form: PackedRowsForm, memory: MemoryTiming) -> float:
    """Of the MAC array, or of the bus: every part loads what it sees."""
    spec, config, size = form.spec, form.config, form.shapes
    pixels = prod(size["output"][:2]) * spec.out_height * form.periods
    moved = (prod(size["data"]) * len(form.period.parts) + prod(size["output"])
             + prod(size["weights"]) * config.tile_bytes(Buffer.WGT) // (
                 config.block_in * config.block_out))
    return max(pixels * spec.kernel[0] * form.period.products,
               moved * memory.cycles_per_beat / config.bus_bytes)


def part_form(form: PackedRowsForm, part: Part) -> GroupedForm:
    """The convolution of a part: what was channels are tiles side by side, one deep."""
    spec, config, groups = form.spec, form.config, groups_of(form.spec)
    after = (form.periods - 1) * form.period.data_tiles + part.start + part.width - form.columns
    return grouped_form_of(PartConv2d(
        height=spec.height, width=form.columns, channels_in=groups * config.block_in,
        channels_out=groups * part.count * config.block_out, groups=groups,
        kernel=(spec.kernel[0], part.width), stride=(spec.stride[0], form.period.data_tiles),
        dilation=(spec.dilation[0], 1), pad=(*spec.pad[:2], -part.start, after),
        images=spec.images, zero_point_in=spec.zero_point_in, zero_point_out=spec.zero_point_out,
        low=spec.low, high=spec.high, rounding=spec.rounding, lookup=spec.lookup), config, 1)


def compile_packed_rows(form: PackedRowsForm, options: Options) -> Kernel | None:
    """A convolution for each part, with knobs of its own, all in one program; None if one has no
    room."""
    forms: list[Conv2dForm] = [part_form(form, part) for part in form.period.parts]
    if not fits_segments(form) or any(columns_of(TEMPLATE, each) is None for each in forms):
        return None
    kernels = [best_kernel(TEMPLATE, [each], options) for each in forms]
    return build_parts(form, tuple(each.knobs for each in kernels),
                       hide_latency=options.hide_latency)


def build_parts(form: PackedRowsForm, knobs: tuple[Knobs, ...], *, hide_latency: bool) -> Kernel:
    """All parts with their knobs in one program."""
    @cache
    def loops() -> Nest:
        return _join_parts(form, [build_nest(TEMPLATE, part_form(form, part), own)
                                  for part, own in zip(form.period.parts, knobs, strict=True)])

    last = requantize(form.config, form.spec.requantization())

    def emit_program() -> Program:
        from ...accelerator.emission.emit import emit  # most programs are kept from before
        return emit(loops(), form.config, [last], hide_latency=hide_latency,
                    tables=len(form.tables))

    program = cached_program(emit_program, form.config, build_parts, form, knobs, hide_latency)
    return Kernel(form, knobs, program, loops)


def _join_parts(form: PackedRowsForm, nests: list[Nest]) -> Nest:
    """The loops of all parts, on the same tensors."""
    from ...nest.views import View, concatenate
    data, weights, parameters, output = (
        Memory(name, shape, "int32" if name == "parameters" else "int8")
        for name, shape in form.shapes.items())
    parts = []
    for part, nest in zip(form.period.parts, nests, strict=True):
        views = {"data": View(data), "weights": View(weights, offsets={1: part.first}),
                 "parameters": View(parameters, offsets={1: part.first}),
                 "output": View(output, offsets={2: part.first})}
        parts.append((nest, {buffer: views[buffer.name]
                             for buffer in (*nest.inputs, *nest.outputs)}))
    return concatenate(parts, (data, weights, parameters), (output,))


def pack_rows(operator: AnyOperator, spec: Conv2d, kernel: Kernel,
              options: Options) -> Kernel | None:
    """If the kernel of an operator alone is far from its bound, one of packed rows, if that is
    faster."""
    cost, config, memory = options.cost, kernel.program.config, options.memory
    assert cost is not None, "whoever calls this has one"
    work = min((form.work for form in operator.forms_of(spec, config, alone=True)),
               key=lambda each: each.bound(config, memory).cycles)
    cycles, form = cost(kernel.program), form_of(spec, config, work)
    if form is None or cycles <= CLOSE * work.bound(config, memory).cycles or (
            least_cycles(form, memory) > WORTH * cycles):
        return None
    packed = compile_packed_rows(form, replace(options, hide_latency=True))
    if packed is None or cost(packed.program) >= cycles:
        return None
    return packed if options.hide_latency else compile_packed_rows(form, options)
