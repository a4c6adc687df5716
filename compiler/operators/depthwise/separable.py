"""A depthwise convolution and the pointwise one after it, with no detour through DRAM.

    mobile networks repeat        depthwise → 8 bits ── 1 × 1 convolution → 8 bits

Compiled separately, the first writes what the second reads, and both wait for the bus. Here the
results of the first stay in the out scratchpad, from which GEMM reads them:

    sums ─ requantize ─► between, in out ─ products ─► mixed ─ requantize ─► output

A step takes some rows of the image, all channels at once. GEMM works in order, so the depthwise
sums of the next step come before the products of this one, which wait for the ALU. The arithmetic
is that of both operators one after the other, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from math import log2, prod
from typing import ClassVar

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import PARAMETER_TILES, Buffer, Rounding
from ....isa.memory_timing import MemoryTiming
from ...accelerator.selection.intrinsic import Intrinsic, Requantization, requantize
from ...errors import CompileError
from ...expression.expression import Axis, total
from ...expression.tensor import Tensor, compute, placeholder, reduce_axis
from ...nest.nest import Scope
from ...schedule.schedule import Schedule, Stage
from ..cost_model import Column, Mask, Steps, all_of
from ..description import HIGH, LOW, activation, border, setting
from ..divisions import even_sizes, fair_sizes, grid
from ..form import Template, blocks_of, requantize_sum
from ..kernel import Operator
from ..layout import Layout, tile_images
from ..packing import (
    Array,
    Operand,
    bias_with_zero_point,
    pack_parameters,
    pack_weights,
    parameter_operands,
    unpack_activations,
    weight_operand,
)
from ..work import Work, parameter_bytes, weight_bytes
from . import depthwise
from .depthwise import Before, Depthwise, DepthwiseForm

PART = 64                   # results of a channel block, or several, that are enough for a part


@dataclass(frozen=True, kw_only=True)
class Separable(Depthwise):
    """A depthwise convolution whose 8-bit results are mixed by a 1 × 1 convolution. Zero point,
    bounds and rounding of the output belong to the second. Weights are (channels_out, 1, y, x) for
    the first and (channels_mixed, channels_out) for the second."""

    operator: ClassVar[str] = "separable"

    channels_mixed: int = border("channels of the 1 × 1 convolution; 0: as many as it reads", 0)
    rounding_between: Rounding = setting("how the first results are rounded: twice, even or away",
                                         Rounding.TWICE)
    zero_point_between: int = activation("zero point of the first results")
    low_between: int = activation("least of the first results", LOW)
    high_between: int = activation("largest of the first results", HIGH)

    def check(self) -> None:
        super().check()
        if self.channels_mixed == 0:
            object.__setattr__(self, "channels_mixed", self.channels_out)
        if self.low_between > self.high_between:
            raise self.wrong("low_between", self.low_between,
                             f"at most high_between, which is {self.high_between}")
        if self.planes > 1:
            raise self.wrong("planes", self.planes, "1: both convolutions have weights of 8 bits")

    def first(self) -> Depthwise:
        """The depthwise convolution alone."""
        own = {each.name: getattr(self, each.name) for each in fields(Depthwise)}
        return Depthwise(**own | {"zero_point_out": self.zero_point_between,
                                  "low": self.low_between, "high": self.high_between,
                                  "rounding": self.rounding_between})

    @property
    def macs(self) -> int:
        depthwise: int = super().macs
        return depthwise + self.pixels * self.channels_out * self.channels_mixed

    @property
    def pixels(self) -> int:
        return self.images * self.out_height * self.out_width


@dataclass(frozen=True, kw_only=True)
class SeparableForm(DepthwiseForm):
    """The layer as tensors. Fields inherited from the depthwise convolution describe the first
    step."""

    spec: Separable
    between: Tensor
    narrow: Requantization
    mixing: Tensor              # weights of the second
    terms: Tensor               # its parameters
    mixed: Tensor               # its sums

    @property
    def intrinsics(self) -> list[Intrinsic]:
        return [*super().intrinsics, requantize(self.config, self.narrow)]

    @property
    def work(self) -> Work:
        first, spec, config = super().work, self.spec, self.config
        blocks, results = (blocks_of(channels, config.block_out)
                           for channels in (spec.channels_out, spec.channels_mixed))
        pixels = blocks_of(spec.images, config.batch) * spec.out_height * spec.out_width
        weights = spec.channels_out * spec.channels_mixed
        return Work(macs=spec.macs, products=first.products + pixels * blocks * results,
                    bytes=first.bytes + spec.pixels * (spec.channels_mixed - spec.channels_out)
                    + weight_bytes(weights, config), written=spec.pixels * spec.channels_mixed,
                    passes=first.passes + pixels * results, parameters=first.parameters
                    + parameter_bytes(spec.channels_mixed, config))

    @property
    def operands(self) -> tuple[Operand, ...]:
        spec = self.spec
        second = (weight_operand((spec.channels_mixed, spec.channels_out), self.config),
                  *parameter_operands(spec.channels_mixed))
        return (*super().operands, *(Operand(f"mixed_{each.name}", each.shape, each.range)
                                     for each in second))

    @property
    def layouts(self) -> dict[str, Layout]:
        spec, config = self.spec, self.config
        return {"data": super().layouts["data"], "output": tile_images(
            spec.images, spec.channels_mixed, *spec.out_shape, config, config.block_out)}

    def pack_constants(self, given: Mapping[str, Array]) -> dict[str, Array]:
        weights = given["mixed_weights"]
        bias = bias_with_zero_point(given["mixed_bias"], weights, self.spec.zero_point_between)
        return {**super().pack_constants(given),
                "mixing": pack_weights(weights[:, :, None, None], self.config),
                "terms": pack_parameters(bias, given["mixed_multiplier"], given["mixed_shift"],
                                         self.config)}

    def unpack(self, output: Array) -> Array:
        return unpack_activations(output, self.config, self.spec.images, self.spec.channels_mixed)


def form_of(spec: Separable, config: Config, before: Before | None = None) -> SeparableForm:
    """The tensors of the layer. Its input is in DRAM unless another layer precedes it."""
    if not config.gemm_out_tiles or config.block_in != config.block_out:
        raise CompileError(f"separable: results are activations as they are only where block_in "
                           f"({config.block_in}) is block_out ({config.block_out}) and out_readers "
                           f"({config.out_readers}) is 2; compile both convolutions apart")
    first = depthwise.form_of(spec, config, before)
    function, narrow = spec.requantization(), spec.first().requantization()
    if narrow.name == function.name:
        narrow = function                   # one intrinsic for both
    between = compute("between", first.output.shape, lambda n, o, y, x, b, j: requantize_sum(
        narrow, depthwise.sum_at(spec, first.chunks, first.sums, n, o, y, x, b, j),
        first.parameters, (o,), (b, j)))
    images, depth, height, width, *tile = between.shape
    results = blocks_of(spec.channels_mixed, config.block_out)
    mixing = placeholder("mixing", (results, depth, 1, 1, config.block_out, config.block_in),
                         "int8")
    terms = placeholder("terms", (results, PARAMETER_TILES, *tile), "int32")
    c, k = reduce_axis("c", depth), reduce_axis("k", config.block_in)
    mixed = compute("mixed", (images, results, height, width, *tile),
                    lambda n, o, y, x, b, j: total(
                        between[n, c, y, x, b, k].cast("int32")
                        * mixing[o, c, 0, 0, j, k].cast("int32"), c, k))
    output = compute("output", mixed.shape, lambda n, o, y, x, b, j: requantize_sum(
        function, mixed[n, o, y, x, b, j], terms, (o,), (b, j)))
    return SeparableForm(**{**vars(first), "function": function, "output": output},
                         between=between, narrow=narrow, mixing=mixing, terms=terms, mixed=mixed)


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """How many rows of the output are computed at once, and how many of their channel blocks each
    convolution takes at a time: while the ALU requantizes one part, GEMM computes the next. 0: all
    of them."""

    rows: int
    blocks: int = 0


def schedule(form: SeparableForm, knobs: Knobs) -> Schedule:
    """The template: weights and parameters stay; every step loads input rows, sums lane by lane and
    requantizes, then multiplies, requantizes and stores."""
    plan = Schedule(form.output)
    inside = plan.cache_write(form.output, Scope.OUT)
    plan.cache_read(form.terms, Scope.ACC, inside)          # the last readers first
    mixing = plan.cache_read(form.mixing, Scope.WGT, form.mixed)
    plan.cache_read(form.parameters, Scope.ACC, form.between)
    weights = plan.cache_read(form.weights, Scope.WGT, form.sums)
    inside, output, sums, between, mixed = (plan.replacement_of(each) for each in (
        inside, form.output, form.sums, form.between, form.mixed))
    plan[weights].address_rows(form.config.block_out)
    for loaded in (weights, mixing):
        plan[loaded].dma(plan[loaded].leaves[0])
    last = plan[output]
    n, o, y, x, b, j = last.leaves
    far, near = last.split(y, knobs.rows)
    some, few = last.split(o, knobs.blocks or o.extent)
    last.reorder(n, far, some, few, near, x, b, j)
    last.dma(few)
    once = (form.padded, between) if knobs.blocks and n.extent * far.extent == 1 else ()
    for tensor, scope in ((form.padded, Scope.INP), (sums, Scope.ACC), (between, Scope.OUT),
                          (mixed, Scope.ACC), (inside, Scope.OUT)):
        stage = plan[tensor]
        stage.scope = scope
        stage.compute_at(last, far)
        if tensor not in once:
            stage.double_buffer(far)
    plan[form.padded].dma(plan[form.padded].leaves[0])
    if knobs.blocks:
        _compute_in_parts(plan, knobs, between, sums, (mixed, inside), (last, some))
    else:
        plan[between].compute_ahead()
    plan[between].tensorize(plan[between].leaves[-2], form.narrow.name)
    plan[inside].tensorize(plan[inside].leaves[-2], form.function.name)
    schedule_sums(plan[sums], plan[mixed], "depthwise")
    return plan


def _compute_in_parts(plan: Schedule, knobs: Knobs, between: Tensor, sums: Tensor,
                      results: tuple[Tensor, ...], reader: tuple[Stage, Axis]) -> None:
    """Compute the depthwise sums, and then the products, a few channel blocks at a time: while the
    ALU requantizes one part, GEMM goes on with the next."""
    stage = plan[between]
    n, o, *rest = stage.leaves
    part, few = stage.split(o, knobs.blocks)
    stage.reorder(part, n, few, *rest)
    plan[sums].compute_at(stage, part)
    for tensor in results:
        plan[tensor].compute_at(*reader)


def schedule_sums(stage: Stage, mixed: Stage, intrinsic: str) -> None:
    """Schedule both sums: a tile's taps, or its channels, follow one another. `intrinsic` computes
    the first sum."""
    n, o, y, x, b, j, ty, tx, *taps = stage.leaves
    stage.reorder(ty, tx, n, o, y, x, *taps, b, j)
    stage.tensorize(b, intrinsic)
    n, o, y, x, b, j, c, k = mixed.leaves
    far, near = mixed.split(c, c.extent)
    mixed.reorder(far, n, o, y, x, near, b, j, k)       # all sums are started before
    mixed.tensorize(b, "gemm.out")


def largest(form: SeparableForm) -> Knobs:
    return Knobs(rows=form.spec.out_height,
                 blocks=max(form.between.shape[1], form.output.shape[1]))


def grids(form: SeparableForm) -> Iterator[Knobs]:
    yield grid(Knobs, rows=fair_sizes(form.spec.out_height))


def fits(form: SeparableForm, knobs: Knobs) -> Mask:
    """Whether everything fits: all weights and parameters, and each buffer twice. Parts made of
    channel blocks have two buffers; the whole that they belong to has one if there is a single
    step."""
    config = form.config
    blocks, results = form.between.shape[1], form.output.shape[1]
    height, width = window_of(form, knobs.rows)
    pixels = knobs.rows * form.spec.out_width
    sums = prod(form.chunks.sums(form.spec.stride, knobs.rows, form.spec.out_width))
    parts = knobs.blocks > 0
    copies = np.where(parts & (_steps(form, knobs) == 1), 1, 2)
    some, few = (np.where(parts, np.minimum(knobs.blocks, count), count)
                 for count in (blocks, results))
    need = {Buffer.INP: copies * blocks * height * width,
            Buffer.WGT: blocks * (window_tiles(form) + results),
            Buffer.ACC: 2 * (sums * some + pixels * few) + PARAMETER_TILES * (blocks + results),
            Buffer.OUT: pixels * (copies * blocks + 2 * few)}
    return all_of(tiles <= config.tiles(buffer) for buffer, tiles in need.items())


def _steps(form: SeparableForm, knobs: Knobs) -> Column:
    return form.between.shape[0] * blocks_of(form.spec.out_height, knobs.rows)


def window_tiles(form: SeparableForm) -> int:
    """Tiles of depthwise weights for one block: those of all chunks of the window."""
    return prod(form.chunks.counts) * form.chunks.rows(form.config) // form.config.block_out


def window_of(form: SeparableForm, rows: Column) -> tuple[Column, int]:
    """Rows and columns of the input needed for some rows of the output."""
    spec = form.spec
    height = np.minimum((rows - 1) * spec.stride[0] + spec.reach(0), form.padded.shape[2])
    return height, form.padded.shape[3]


def estimate(form: SeparableForm, knobs: Knobs, memory: MemoryTiming) -> Column:
    """An estimate of the cycles."""
    spec, config = form.spec, form.config
    images, blocks = form.between.shape[:2]
    results = form.output.shape[1]
    steps = _steps(form, knobs)
    height, width = window_of(form, knobs.rows)
    pixels = images * spec.out_height * spec.out_width / steps
    return Steps(
        groups=1, steps=steps, pieces=1,
        products=pixels * blocks * results + blocks * form.chunks.cycles(
            spec.stride, images * spec.out_height / steps, spec.out_width),
        vectors=pixels * (blocks + results),
        inp=blocks * height * width * config.tile_bytes(Buffer.INP), runs=blocks * height,
        wgt=blocks * (window_tiles(form) + results)
        * config.tile_bytes(Buffer.WGT),
        out=pixels * results * config.tile_bytes(Buffer.OUT), out_runs=results,
        parameters=(blocks + results) * PARAMETER_TILES * config.tile_bytes(Buffer.ACC),
        ).cycles(config, memory)


def at_once(form: SeparableForm) -> list[Knobs]:
    """Knobs for the whole image in parts of a few channel blocks: large enough that the start of an
    instruction does not matter, yet small, because the last part overlaps with nothing."""
    spec, blocks = form.spec, max(form.between.shape[1], form.output.shape[1])
    enough = min(blocks, blocks_of(PART, spec.out_height * spec.out_width))
    sizes = sorted(even_sizes(blocks), key=lambda size: abs(log2(size / enough)))
    every = (Knobs(rows=spec.out_height, blocks=size) for size in sizes)
    return [knobs for knobs in every if fits(form, knobs)]


TEMPLATE = Template(knobs=Knobs, largest=largest, grids=grids, fits=fits, estimate=estimate,
                    schedule=schedule, at_once=at_once)
OPERATOR = Operator(description=Separable, forms=lambda spec, config: [form_of(spec, config)],
                    template=TEMPLATE)
