"""A convolution and the residual addition after it, in one pass over the accumulator.

    a residual block ends with        conv → 8 bits ─┐
                                      shortcut ──────┴─ add → 8 bits

On its own, the addition reads both tensors from DRAM and writes a third: in a network of
convolutions that keep the MAC array busy, it is the largest part of what remains. Here the shortcut
is loaded into the accumulator while sums are computed, and the ALU does the rest, in place:

    sums ─ requantize ─► first ─ scale ─┐
    shortcut ─ widen ─► second ─ scale ─┴─ add ─ requantize ─► output

The arithmetic is that of both operators one after the other, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from ....base.classes.dataclass import dataclass
from ....base.errors import MicrotronError
from ....isa.config import Config
from ....isa.instructions import PARAMETER_TILES, AluOp, Buffer
from ....isa.memory_timing import MemoryTiming
from ...accelerator.selection.intrinsic import (
    Intrinsic,
    Requantization,
    clamp_function,
    element_wise,
    immediate,
    requantize,
    scale_function,
)
from ...errors import CompileError
from ...expression.expression import Expression, Function, binary
from ...expression.tensor import Tensor, compute, placeholder
from ...nest.nest import Interleave
from ..cost_model import Column, Mask, all_of
from ..description import HIGH, LOW, activation, setting
from ..elementwise.elementwise import HEADROOM, Elementwise, Operation, Term
from ..elementwise.lanewise import parameters
from ..form import Template, requantize_sum
from ..kernel import Operator
from ..layout import Layout
from ..packing import Array, Operand
from ..work import Work
from . import conv2d_schedule
from .conv2d import Conv2d, Conv2dForm, plain_forms
from .conv2d_schedule import Knobs
from .output_tiles import AluSteps

Steps = dict[Tensor, Intrinsic]


@dataclass(frozen=True, kw_only=True)
class ResidualConv2d(Conv2d):
    """A convolution whose result, of 8 bits, is added to another tensor. The last step's zero
    point, bounds and rounding are those of the sum; the convolution rounds alike."""

    operator: ClassVar[str] = "residual_conv2d"

    scale_conv: float = setting("scale of the convolution's own result", 1.0)
    scale_residual: float = setting("scale of what is added to it", 1.0)
    scale_out: float = setting("scale of the sum", 1.0)
    zero_point_conv: int = activation("zero point of the convolution's own result")
    zero_point_residual: int = activation("zero point of what is added")
    low_conv: int = activation("least result of the convolution", LOW)
    high_conv: int = activation("largest result of the convolution", HIGH)

    def check(self) -> None:
        super().check()
        self.check_bounds("low_conv", "high_conv")
        try:
            self.addition()
        except MicrotronError as error:
            raise CompileError(f"{self.operator}: {error}") from None

    def addition(self) -> Elementwise:
        """The addition alone."""
        return Elementwise(
            operation=Operation.ADD, channels=self.channels_out, height=self.out_height,
            width=self.out_width, images=self.images, scale_left=self.scale_conv,
            scale_right=self.scale_residual, scale_out=self.scale_out,
            zero_point_left=self.zero_point_conv, zero_point_right=self.zero_point_residual,
            zero_point_out=self.zero_point_out, low=self.low, high=self.high,
            rounding=self.rounding)


@dataclass(frozen=True, kw_only=True)
class ResidualForm(Conv2dForm):
    """A residual convolution in tensors."""

    spec: ResidualConv2d
    residual: Tensor
    between: AluSteps

    @property
    def intrinsics(self) -> list[Intrinsic]:
        return [*super().intrinsics, *self.between.steps.values()]

    @property
    def work(self) -> Work:
        alone, spec = super().work, self.asked
        more = spec.images * spec.channels_out * spec.out_height * spec.out_width
        return replace(alone, bytes=alone.bytes + more,
                       passes=alone.passes * (1 + len(self.between.steps)))

    @property
    def operands(self) -> tuple[Operand, ...]:
        spec = self.asked
        return (*super().operands,
                Operand("residual", (spec.images, spec.channels_out, *spec.out_shape)))

    @property
    def layouts(self) -> dict[str, Layout]:
        found = super().layouts
        return {**found, "residual": found["output"]}

    @property
    def interleaves(self) -> dict[str, Interleave]:
        found = super().interleaves
        return {**found, "residual": found["output"]} if "output" in found else found

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        residual = self.layouts["residual"].pack(given["residual"])
        return {**super().pack(given), "terms": parameters(self.spec.addition(), self.config),
                "residual": residual.reshape(self.shapes["residual"])}


def form_of(plain: Conv2dForm) -> ResidualForm:
    """The whole form, given that of the convolution alone."""
    spec, config = plain.spec, plain.config
    assert isinstance(spec, ResidualConv2d), "the convolution was made from it"
    addition = spec.addition()
    shape = plain.sums.shape
    residual = placeholder("residual", shape, "int8")
    terms = placeholder("terms", (3, PARAMETER_TILES, *shape[-2:]), "int32")
    wide = _each("wide", lambda value: value.cast("int32"), residual)
    narrow = clamp_function(rounding=spec.rounding, zero_point=spec.zero_point_conv,
                            low=spec.low_conv, high=spec.high_conv)
    first = compute("first", shape, lambda n, o, y, x, b, j: requantize_sum(
        narrow, plain.sums[n, o, y, x, b, j], plain.parameters, (o,), (b, j)))
    steps: Steps = {first: requantize(config, narrow)}
    scale = scale_function(spec.rounding)
    scaled = [_scale_term(config, source, term, scale, terms, number, steps)
              for number, (source, term) in enumerate(zip((first, wide), addition.terms(),
                                                          strict=True))]
    added = _each("added", lambda one, other: one + other, *scaled)
    steps[added] = element_wise(config, AluOp.ADD)
    function = addition.requantization()
    fields = {**vars(plain), "function": function, "between": AluSteps(steps, wide, terms),
              "output": _scale_terms("output", function, added, terms, 2)}
    return ResidualForm(**fields, residual=residual)


def _each(name: str, function: Callable[..., Expression], *sources: Tensor) -> Tensor:
    """A function applied element by element to tensors of the same shape."""
    return compute(name, sources[0].shape, lambda n, o, y, x, b, j: function(
        *(source[n, o, y, x, b, j] for source in sources)))


def _scale_terms(name: str, function: Function, value: Tensor, terms: Tensor,
                 number: int) -> Tensor:
    """A tensor scaled with one set of the addition's parameters."""
    def element(n: Expression, o: Expression, y: Expression, x: Expression, b: Expression,
                j: Expression) -> Expression:
        return requantize_sum(function, value[n, o, y, x, b, j], terms, (number,), (b, j))
    return compute(name, value.shape, element)


def _scale_term(config: Config, source: Tensor, term: Term, scale: Requantization, terms: Tensor,
                number: int, steps: Steps) -> Tensor:
    """A term of the sum."""
    if term.shifted:
        shifted = _each(f"{source.name}.shl", lambda value: binary("<<", value, HEADROOM), source)
        steps[shifted] = immediate(config, AluOp.SHL, HEADROOM)
        source = shifted
    result = _scale_terms(f"{source.name}.scaled", scale, source, terms, number)
    steps[result] = requantize(config, scale)
    return result


def forms_of(spec: ResidualConv2d, config: Config) -> Iterable[ResidualForm]:
    return [form_of(plain) for plain in plain_forms(spec, config)]


def fits(form: ResidualForm, knobs: Knobs) -> Mask:
    """Whether the shortcut has room beside sums and parameters."""
    tiles = form.config.tiles(Buffer.ACC)
    box = knobs.groups * knobs.blocks * (2 * knobs.rows * knobs.columns + PARAMETER_TILES)
    return all_of((conv2d_schedule.fits(form, knobs), np.logical_not(knobs.single_sums),
                   2 * box + form.between.parameters.shape[0] * PARAMETER_TILES <= tiles))


def estimate(form: ResidualForm, knobs: Knobs, memory: MemoryTiming) -> Column:
    steps = conv2d_schedule.steps_of(form, knobs)
    config = form.config
    more = steps.vectors * config.tile_bytes(Buffer.OUT)
    return replace(steps, vectors=steps.vectors * (1 + len(form.between.steps)),
                   inp=steps.inp + more / steps.pieces).cycles(config, memory)


TEMPLATE = Template(knobs=Knobs, largest=conv2d_schedule.largest, grids=conv2d_schedule.grids,
                    fits=fits, estimate=estimate,
                    schedule=conv2d_schedule.schedule)
OPERATOR = Operator(description=ResidualConv2d, forms=forms_of, template=TEMPLATE)
