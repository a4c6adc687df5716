"""A convolution, the depthwise one after it and a 1 × 1 one, with no detour through DRAM.

    networks begin with         convolution → 8 bits ── depthwise → 8 bits ── 1 × 1 → 8 bits

The image between the first two is the largest of a mobile network, and its few channels do not even
fill a tile. Here the results of the first stay in the out scratchpad, as those of the second do in
`separable`, with the border that the depthwise convolution wants around them:

    sums ─ requantize, fill ─► padded, in out ─ windows ─► sums ─ requantize ─► between, in out ─ …

A step takes some rows of the result, all channels at once; rows of the first convolution that two
steps need are computed twice. The sums of the first come a step before those of the second, which
come a step before the products of the third, so that GEMM need not wait for the ALU. The arithmetic
is that of all three one after the other, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from math import prod
from typing import ClassVar

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import PARAMETER_TILES, Buffer, Rounding
from ....isa.memory_timing import MemoryTiming
from ...accelerator.selection.intrinsic import Intrinsic, fill, requantize
from ...expression.tensor import Tensor, compute, placeholder
from ...nest.nest import Scope
from ...schedule.schedule import Schedule, Stage
from ..convolution import first_layer
from ..convolution.conv2d import Conv2d, Conv2dForm
from ..cost_model import Column, Mask, Steps, all_of
from ..description import HIGH, LOW, activation, border, extent, setting
from ..divisions import fair_sizes, grid
from ..form import Template, TensorForm, blocks_of, requantize_sum
from ..kernel import Operator
from ..layout import Layout
from ..packing import Array, Operand
from ..work import Work, rows_read
from . import separable
from .depthwise import Before
from .separable import Separable, SeparableForm

CONV = "conv_"                  # before the names of the first one's tensors
WINDOW, MIXED = "window_", "mixed_"     # before the operands of the others
OWN = ("weights", "bias", "multiplier", "shift")


@dataclass(frozen=True, kw_only=True)
class ConvSeparable(Conv2d):
    """A convolution whose results, of 8 bits, are those that a depthwise convolution and a 1 × 1
    convolution after it read. The last step's zero point, bounds and rounding are those of the
    third. Weights are (channels_out, channels_in, y, x), (channels_out, 1, y, x) and
    (channels_mixed, channels_out)."""

    operator: ClassVar[str] = "conv_separable"

    rounding_conv: Rounding = setting("how the first results are rounded: twice, even or away",
                                      Rounding.TWICE)
    zero_point_conv: int = activation("zero point of the first results, which is also what is "
                                      "padded around them")
    low_conv: int = activation("least of the first results", LOW)
    high_conv: int = activation("largest of the first results", HIGH)
    window: tuple[int, int] = extent("rows and columns of the depthwise kernel", (3, 3))
    window_stride: tuple[int, int] = extent("rows and columns from one of its windows to the next",
                                            (1, 1))
    window_dilation: tuple[int, int] = extent("rows and columns from one of its taps to the next",
                                              (1, 1))
    window_pad: tuple[int, int, int, int] = border(
        "rows and columns around the first results: top, bottom, left, right", (0, 0, 0, 0))
    rounding_between: Rounding = setting("how the second results are rounded: twice, even or away",
                                         Rounding.TWICE)
    zero_point_between: int = activation("zero point of the second results")
    low_between: int = activation("least of the second results", LOW)
    high_between: int = activation("largest of the second results", HIGH)
    channels_mixed: int = border("channels of the 1 × 1 convolution; 0: as many as it reads", 0)

    def check(self) -> None:
        super().check()
        self.check_bounds("low_conv", "high_conv")
        if self.channels_mixed == 0:
            object.__setattr__(self, "channels_mixed", self.channels_out)
        if self.planes > 1:
            raise self.wrong("planes", self.planes, "1: all convolutions have weights of 8 bits")
        self.rest()

    def first(self) -> Conv2d:
        """The first convolution alone."""
        own = {each.name: getattr(self, each.name) for each in fields(Conv2d)}
        return Conv2d(**own | {"zero_point_out": self.zero_point_conv, "low": self.low_conv,
                               "high": self.high_conv, "rounding": self.rounding_conv})

    def rest(self) -> Separable:
        """The two others."""
        alike = {name: getattr(self, name) for name in (
            "images", "channels_out", "channels_mixed", "zero_point_out", "low", "high", "rounding",
            "rounding_between", "zero_point_between", "low_between", "high_between")}
        return Separable(**alike, height=self.out_height, width=self.out_width,
                         channels_in=self.channels_out, kernel=self.window,
                         stride=self.window_stride, dilation=self.window_dilation,
                         pad=self.window_pad, zero_point_in=self.zero_point_conv)

    @property
    def macs(self) -> int:
        return super().macs + self.rest().macs


@dataclass(frozen=True, kw_only=True)
class ConvSeparableForm(TensorForm):
    """The layer as tensors: those of the first, and those of the rest, which read its result."""

    spec: ConvSeparable
    conv: Conv2dForm
    first: Tensor               # its results, with parameters that lie beside the second one's
    rest: SeparableForm

    @property
    def handicap(self) -> float:
        return self.conv.handicap

    @property
    def note(self) -> str:
        return self.conv.note

    @property
    def intrinsics(self) -> list[Intrinsic]:
        return [*self.rest.intrinsics, requantize(self.config, self.conv.function),
                fill(self.config, self.spec.zero_point_conv)]

    @property
    def work(self) -> Work:
        """Of the first, what the second reads. What lies between them does not go to DRAM."""
        first, second, rest = self.conv.work, self.rest.work, self.rest.spec
        seen = prod(rows_read(size, outputs, kernel, stride, dilation, pad)
                    for size, outputs, kernel, stride, dilation, pad in zip(
                        (rest.height, rest.width), rest.out_shape, rest.kernel, rest.stride,
                        rest.dilation, rest.pad[::2], strict=True))
        pixels, deep = rest.height * rest.width, rest.images * rest.channels_in
        outside = first.bytes - deep * pixels if seen == pixels else 0
        return Work(macs=self.spec.macs, bytes=outside + second.bytes - deep * seen,
                    written=second.written, parameters=first.parameters + second.parameters,
                    products=first.products // pixels * seen + second.products,
                    passes=first.passes // pixels * seen + second.passes)

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (*self.conv.operands, *(
            each if each.name.startswith(MIXED) else Operand(WINDOW + each.name, each.shape,
                                                             each.range)
            for each in self.rest.operands if each.name != "data"))

    @property
    def layouts(self) -> dict[str, Layout]:
        return {"data": self.conv.layouts["data"], "output": self.rest.layouts["output"]}

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        first = self.conv.pack({name: given[name] for name in ("data", *OWN)})
        others = {name.removeprefix(WINDOW): each for name, each in given.items()
                  if name.startswith((WINDOW, MIXED))}
        rest = self.rest.pack_constants(others)
        parameters = np.concatenate([rest["parameters"], first["parameters"]])
        return {**rest, "parameters": parameters, "data": first["data"],
                CONV + "weights": first["weights"]}

    def unpack(self, output: Array) -> Array:
        return self.rest.unpack(output)


def forms_of(spec: ConvSeparable, config: Config) -> Iterator[ConvSeparableForm]:
    """A form for each of the first convolution's."""
    for conv in first_layer.forms_of(spec.first(), config, CONV):
        blocks, *each = conv.parameters.shape
        parameters = placeholder("parameters", (2 * blocks, *each), "int32")
        first = _results(conv, parameters)
        rest = separable.form_of(spec.rest(), config, Before(first, parameters))
        yield ConvSeparableForm(spec=spec, config=config, function=rest.function,
                                output=rest.output, conv=conv, first=first, rest=rest)


def _results(conv: Conv2dForm, parameters: Tensor) -> Tensor:
    """What the first convolution computes; its parameters are the second half of all."""
    sums, blocks = conv.sums, conv.parameters.shape[0]
    return compute("first", sums.shape, lambda n, o, y, x, b, j: requantize_sum(
        conv.function, sums[n, o, y, x, b, j], parameters, (o + blocks,), (b, j)))


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """Rows of the output that are computed at once."""

    rows: int


def schedule(form: ConvSeparableForm, knobs: Knobs) -> Schedule:
    """The template: weights and parameters stay; every step loads input rows and computes all that
    follows from them."""
    conv, rest = form.conv, form.rest
    plan = Schedule(form.output)
    plan[form.first].compute_inline()
    inside = plan.cache_write(form.output, Scope.OUT)
    plan.cache_read(rest.terms, Scope.ACC, inside)          # the last readers first
    weights = [plan.cache_read(rest.mixing, Scope.WGT, rest.mixed)]
    plan.cache_read(rest.parameters, Scope.ACC, rest.between, form.first)
    rows = plan.cache_read(rest.weights, Scope.WGT, plan.replacement_of(rest.sums))
    plan[rows].address_rows(form.config.block_out)
    weights += [rows, plan.cache_read(conv.weights, Scope.WGT, conv.sums)]
    for each in weights:
        plan[each].dma(plan[each].leaves[0])
    last = plan[plan.replacement_of(form.output)]
    n, o, y, x, b, j = last.leaves
    late = int(_rows(form, knobs.rows).late)
    far, near = last.split(y, knobs.rows, late)
    last.reorder(n, far, o, near, x, b, j)
    last.dma(o)

    def place_stage(tensor: Tensor, scope: Scope, copies: int) -> Stage:
        stage = plan[plan.replacement_of(tensor)]
        stage.scope = scope
        stage.compute_at(last, far)
        stage.keep(copies)
        return stage

    image = place_stage(conv.padded, Scope.INP, 2)
    image.dma(image.leaves[0])
    first = place_stage(conv.sums, Scope.ACC, 1)
    padded = place_stage(rest.padded, Scope.OUT, 2)
    padded.compute_ahead()
    padded.tensorize(padded.leaves[-2], conv.function.name)
    if late:
        padded.slide(padded.tensor.axes[2])
    padded.fill_border(fill(form.config, form.spec.zero_point_conv).name)
    second = place_stage(rest.sums, Scope.ACC, 1)
    between = place_stage(rest.between, Scope.OUT, 2)
    between.tensorize(between.leaves[-2], rest.narrow.name)
    between.compute_ahead()
    third = place_stage(rest.mixed, Scope.ACC, 1)
    results = place_stage(inside, Scope.OUT, 2)
    results.tensorize(results.leaves[-2], form.function.name)
    _schedule_sums(first)
    separable.schedule_sums(second, third, "depthwise.out")
    return plan


def _schedule_sums(stage: Stage) -> None:
    """Schedules the sums of the first convolution: all taps of a tile one after the other."""
    n, o, y, x, b, j, c, ky, kx, *planes, k = stage.leaves
    far, near = stage.split(c, c.extent)
    stage.reorder(far, n, o, y, x, near, ky, kx, *planes, b, j, k)      # all are started before
    stage.tensorize(b, "gemm")


def grids(form: ConvSeparableForm) -> Iterator[Knobs]:
    yield grid(Knobs, rows=fair_sizes(form.rest.spec.out_height))


def largest(form: ConvSeparableForm) -> Knobs:
    return Knobs(rows=form.rest.spec.out_height)


@dataclass(frozen=True)
class _Rows:
    """Rows of the first convolution's results in their border, for a step: those that it needs,
    those that are new, and those of the buffer."""

    needed: Column
    new: Column
    held: Column
    late: Column        # of the result, by which steps come late: the first needs none from before


def _rows(form: ConvSeparableForm, rows: Column) -> _Rows:
    """A step keeps what the next needs, too, if there is one."""
    spec, chunks = form.rest.spec, form.rest.chunks
    stride = spec.stride[0]
    reach = (chunks.counts[0] * chunks.taps[0] - 1) * spec.dilation[0] + 1
    whole, new = form.rest.padded.shape[2], rows * stride
    needed = np.minimum(new - stride + reach, whole)
    slides = (rows < spec.out_height) & (reach > stride)
    before = np.where(slides, reach - stride, 0)
    return _Rows(needed=needed, new=np.where(slides, new, needed), late=-(-before // stride),
                 held=np.where(slides, before + (2 * -(-before // new) + 1) * new, 2 * needed))


@dataclass(frozen=True)
class _Sizes:
    """Tiles of one buffer of a step."""

    image: Column
    first: Column           # sums of the first convolution
    padded: Column          # its results, in all their buffers
    second: Column
    results: Column


def _sizes(form: ConvSeparableForm, rows: Column) -> _Sizes:
    conv, rest = form.conv, form.rest
    padded = _rows(form, rows)
    computed = np.minimum(padded.new, conv.spec.out_height)
    loaded = np.minimum((computed - 1) * conv.steps[0] + conv.spec.reach(0), conv.padded.shape[2])
    pixels = rows * rest.spec.out_width
    blocks, results = rest.between.shape[1], rest.output.shape[1]
    return _Sizes(image=conv.extents[2] * loaded * prod(conv.padded.shape[3:-2]),
                  first=blocks * computed * conv.spec.out_width,
                  padded=blocks * padded.held * rest.padded.shape[3],
                  second=blocks * pixels, results=results * pixels)


def _weight_tiles(form: ConvSeparableForm) -> int:
    rest = form.rest
    return (prod(form.conv.weights.shape[:4]) + rest.between.shape[1] * (
        separable.window_tiles(rest) + rest.output.shape[1]))


def _parameter_tiles(form: ConvSeparableForm) -> int:
    return PARAMETER_TILES * (2 * form.rest.between.shape[1] + form.rest.output.shape[1])


def fits(form: ConvSeparableForm, knobs: Knobs) -> Mask:
    """Whether all weights and parameters, and all buffers, find room."""
    size, rest = _sizes(form, knobs.rows), form.rest
    sums = prod(rest.chunks.sums(rest.spec.stride, knobs.rows, rest.spec.out_width))
    need = {Buffer.INP: 2 * size.image, Buffer.WGT: _weight_tiles(form),
            Buffer.ACC: size.first + rest.between.shape[1] * sums + size.results
            + _parameter_tiles(form),
            Buffer.OUT: size.padded + 2 * size.second + 2 * size.results}
    return all_of(tiles <= form.config.tiles(buffer) for buffer, tiles in need.items())


def estimate(form: ConvSeparableForm, knobs: Knobs, memory: MemoryTiming) -> Column:
    """An estimate of the cycles."""
    config, conv, rest = form.config, form.conv, form.rest
    spec, (images, blocks) = rest.spec, rest.between.shape[:2]
    steps = images * blocks_of(spec.out_height + _rows(form, knobs.rows).late, knobs.rows)
    even = images * spec.out_height / steps             # rows of a step, in the mean
    size, tile = _sizes(form, even), config.tile_bytes
    products = (size.first * prod(conv.weights.shape[1:4]) + size.results * blocks
                + blocks * rest.chunks.cycles(spec.stride, even, spec.out_width))
    return Steps(
        groups=1, steps=steps, pieces=1, products=products,
        vectors=size.first + size.second + size.results,
        inp=size.image * tile(Buffer.INP), runs=conv.extents[2],
        wgt=_weight_tiles(form) * tile(Buffer.WGT), out=size.results * tile(Buffer.OUT),
        out_runs=rest.output.shape[1], parameters=_parameter_tiles(form) * tile(Buffer.ACC),
        ).cycles(config, memory)


TEMPLATE = Template(knobs=Knobs, largest=largest, grids=grids, fits=fits, estimate=estimate,
                    schedule=schedule)
OPERATOR = Operator(description=ConvSeparable, forms=forms_of, template=TEMPLATE)
