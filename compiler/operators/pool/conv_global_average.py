"""A convolution fused with the average of its results over the whole image, per channel.

    a classifier begins with        conv → 8 bits ── average of the image → 8 bits

On its own, the average would read back from DRAM what the convolution has just written, while the
MAC array waits. Here the results stay in the accumulator, where the ALU adds them up: rows first,
so that it never waits for its own sums. Only one tile per channel block goes to DRAM:

    sums ─ requantize, in place ─► first ─ + y ─► columns ─ + x ─► all ─ divide ─► output

The results are those of the two operators one after the other, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from ....base.classes.dataclass import dataclass
from ....base.errors import MicrotronError
from ....isa.config import Config
from ....isa.instructions import PARAMETER_TILES, Buffer, Rounding
from ....isa.memory_timing import MemoryTiming
from ...accelerator.selection.intrinsic import Intrinsic, clamp_function, requantize
from ...errors import CompileError
from ...expression.expression import total
from ...expression.tensor import Tensor, compute, placeholder, reduce_axis
from ...nest.nest import Scope
from ...schedule.schedule import Schedule
from ..convolution import conv2d_schedule
from ..convolution.conv2d import Conv2d, Conv2dForm, plain_forms
from ..convolution.conv2d_schedule import Knobs
from ..cost_model import Column, Mask, all_of
from ..description import HIGH, LOW, activation, setting
from ..form import Template, requantize_sum
from ..kernel import Operator
from ..layout import Layout, memory_block, tile_images
from ..packing import Array
from ..work import Work
from .pool import Kind, Pool, halves, parameters, scale_values


@dataclass(frozen=True, kw_only=True)
class AveragedConv2d(Conv2d):
    """A convolution whose 8-bit results are averaged over the whole image. `zero_point_out`, `low`,
    `high` and `rounding` apply to the average."""

    operator: ClassVar[str] = "averaged_conv2d"

    rounding: Rounding = setting("how averages are rounded: away, even or twice", Rounding.AWAY)
    rounding_conv: Rounding = setting("how the convolution's own results are rounded: twice, even "
                                      "or away", Rounding.TWICE)
    zero_point_conv: int = activation("zero point of the convolution's own result")
    zero_point_average: int = activation("zero point that the average takes off; 0 leaves it in")
    low_conv: int = activation("least result of the convolution", LOW)
    high_conv: int = activation("largest result of the convolution", HIGH)
    scale_conv: float = setting("scale of the convolution's own result", 1.0)
    scale_out: float = setting("scale of the average", 1.0)

    def check(self) -> None:
        super().check()
        self.check_bounds("low_conv", "high_conv")
        try:
            self.average()
        except MicrotronError as error:
            raise CompileError(f"{self.operator}: {error}") from None

    def average(self) -> Pool:
        """The average alone."""
        return Pool(kind=Kind.AVERAGE, height=self.out_height, width=self.out_width,
                    channels=self.channels_out, images=self.images, kernel=self.out_shape,
                    zero_point_in=self.zero_point_average, zero_point_out=self.zero_point_out,
                    scale_in=self.scale_conv, scale_out=self.scale_out, low=self.low,
                    high=self.high, rounding=self.rounding)


@dataclass(frozen=True, kw_only=True)
class AveragedForm(Conv2dForm):
    """An averaged convolution in tensors."""

    spec: AveragedConv2d
    terms: Tensor               # of the average
    first: Tensor
    columns: Tensor
    all: Tensor
    narrow: Intrinsic           # from sums to the convolution's results
    halves: dict[Tensor, Intrinsic]

    @property
    def intrinsics(self) -> list[Intrinsic]:
        return [*super().intrinsics, self.narrow, *self.halves.values()]

    @property
    def work(self) -> Work:
        """The convolution's results stay out of DRAM; the ALU adds each one to a running sum."""
        alone, spec = super().work, self.spec
        pixels = spec.out_height * spec.out_width
        blocks = alone.passes // pixels
        written = spec.images * spec.channels_out
        return replace(alone, bytes=alone.bytes - written * (pixels - 1), written=written,
                       passes=blocks * (2 * pixels - 1 + 1 + len(self.halves)))

    @property
    def layouts(self) -> dict[str, Layout]:
        spec, config = self.spec, self.config
        return {**super().layouts, "output": tile_images(
            spec.images, spec.channels_out, 1, 1, config,
            memory_block(config, config.block_out))}

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        return {**super().pack(given), "terms": parameters(self.spec.average(), self.config)}


def form_of(plain: Conv2dForm) -> AveragedForm:
    """The complete form, built on that of the convolution alone."""
    spec, config = plain.spec, plain.config
    assert isinstance(spec, AveragedConv2d), "the convolution was made from it"
    images, blocks, height, width, *tile = plain.sums.shape
    narrow = clamp_function(rounding=spec.rounding_conv, zero_point=spec.zero_point_conv,
                            low=spec.low_conv, high=spec.high_conv)
    first = compute("first", plain.sums.shape, lambda n, o, y, x, b, j: requantize_sum(
        narrow, plain.sums[n, o, y, x, b, j], plain.parameters, (o,), (b, j)))
    row, column = reduce_axis("row", height), reduce_axis("column", width)
    columns = compute("columns", (images, blocks, 1, width, *tile),
                      lambda n, o, y, x, b, j: total(first[n, o, row, x, b, j], row))
    every = compute("all", (images, blocks, 1, 1, *tile),
                    lambda n, o, y, x, b, j: total(columns[n, o, y, column, b, j], column))
    average = spec.average()
    sets = 3 if average.ties_to_even else 1
    terms = placeholder("terms", (1, 1, sets, PARAMETER_TILES, *tile), "int32")
    steps = halves(config, every, terms) if average.ties_to_even else {}
    function = average.requantization()
    output = scale_values("output", function, [every, *steps][-1], terms, sets - 1)
    fields = {**vars(plain), "function": function, "output": output}
    return AveragedForm(**fields, terms=terms, first=first, columns=columns, all=every,
                        narrow=requantize(config, narrow), halves=steps)


def forms_of(spec: AveragedConv2d, config: Config) -> Iterable[AveragedForm]:
    return [form_of(plain) for plain in plain_forms(spec, config)]


def schedule(form: AveragedForm, knobs: Knobs) -> Schedule:
    """The template: the weights of some output blocks stay in place while the image streams past, a
    few rows per step; each step adds its results to the running sums."""
    plan = Schedule(form.output)
    inside = plan.cache_write(form.output, Scope.OUT)
    readers = [step for step in reversed(form.halves) if form.terms in step.inputs()]
    plan.cache_read(form.terms, Scope.ACC, inside, *readers)        # once for all
    loaded = plan.cache_read(form.parameters, Scope.ACC, form.first)
    weights = plan.cache_read(form.weights, Scope.WGT, form.sums)
    sums, inside, output = (plan.replacement_of(each) for each in (form.sums, inside, form.output))
    plan[form.padded].scope, plan[sums].scope = Scope.INP, Scope.ACC

    last = plan[output]
    n, o, y, x, b, j = last.leaves
    o_far, o_near = last.split(o, knobs.blocks)
    last.reorder(o_far, n, o_near, y, x, b, j)
    last.dma(o_near)
    plan[loaded].compute_at(last, o_far)
    plan[loaded].keep(2)
    for tensor in (form.padded, weights, loaded):
        plan[tensor].dma(plan[tensor].leaves[0])
    plan[inside].compute_at(last, n)
    plan[inside].double_buffer(n)
    plan[inside].tensorize(plan[inside].leaves[-2], form.function.name)
    for step, intrinsic in form.halves.items():
        stage = plan[plan.replacement_of(step)]
        stage.scope = Scope.ACC
        stage.compute_at(last, n)
        stage.tensorize(stage.leaves[-2], intrinsic.name)
    _schedule_additions(plan, form, knobs, sums)
    conv2d_schedule.schedule_sums(plan, form, knobs, weights, sums)
    return plan


def _schedule_additions(plan: Schedule, form: AveragedForm, knobs: Knobs, sums: Tensor) -> None:
    """Schedule the additions, and the results inside each of their steps."""
    last = plan[plan.replacement_of(form.output)]
    n_axis = last.leaves[1]
    every, columns, first = (plan[plan.replacement_of(each)]
                             for each in (form.all, form.columns, form.first))
    for stage in (every, columns, first):
        stage.scope = Scope.ACC
    every.compute_at(last, n_axis)
    n, o, y, x, b, j, column = every.leaves
    every.reorder(column, n, o, y, x, b, j)
    every.tensorize(b, "pool_sum")
    columns.compute_at(last, n_axis)
    n, o, y, x, b, j, row = columns.leaves
    far, near = columns.split(row, knobs.rows)
    columns.reorder(far, near, n, o, y, x, b, j)
    columns.tensorize(b, "pool_sum")
    first.compute_at(columns, far)
    first.compute_in_place(sums)
    first.tensorize(first.leaves[-2], form.narrow.name)
    plan[sums].compute_at(columns, far)
    plan[sums].double_buffer(far)


def grids(form: AveragedForm) -> Iterator[Knobs]:
    """Only whole rows, and output blocks together."""
    for every in conv2d_schedule.grids(form):
        alike = (every.columns == form.spec.out_width) & ~every.one_by_one & ~every.single_sums
        yield Knobs(**{name: value[alike] if getattr(value, "shape", ()) else value
                       for name, value in vars(every).items()})


def fits(form: AveragedForm, knobs: Knobs) -> Mask:
    """Whether the running sums of the average fit beside the sums and parameters."""
    width, config = form.spec.out_width, form.config
    per_block = 2 * (knobs.rows * width + PARAMETER_TILES) + width + 1 + len(form.halves)
    fixed = form.terms.shape[2] * PARAMETER_TILES
    whole = (knobs.columns == width) & (knobs.groups == 1)
    return all_of((conv2d_schedule.fits(form, knobs), whole, np.logical_not(knobs.one_by_one),
                   np.logical_not(knobs.single_sums),
                   knobs.blocks * per_block + fixed <= config.tiles(Buffer.ACC)))


def estimate(form: AveragedForm, knobs: Knobs, memory: MemoryTiming) -> Column:
    steps = conv2d_schedule.steps_of(form, knobs)
    tile = form.config.tile_bytes(Buffer.OUT)
    ends = knobs.blocks * (form.spec.out_width + 1 + len(form.halves))
    return replace(steps, vectors=2 * steps.vectors + ends, out=knobs.blocks * tile / steps.steps,
                   out_runs=knobs.blocks / steps.steps).cycles(form.config, memory)


TEMPLATE = Template(knobs=Knobs, largest=conv2d_schedule.largest, grids=grids, fits=fits,
                    estimate=estimate, schedule=schedule)
OPERATOR = Operator(description=AveragedConv2d, forms=forms_of, template=TEMPLATE)
