"""Element-wise operations of int8 tensors: addition and multiplication of two with different
scales, and a change of scale of one, which is also ReLU and clip on their own.

Tensors are rows of tiles, (tile, batch, lane): any packed activation, whatever its dimensions, as
long as all operands are packed alike. The arithmetic is TFLite's, see docs/arithmetic.md:

    add       a, b = scale((q − z) × 2^20, s / t) each, with t = 2 × max(s1, s2)
              y = z + scale(a + b, t / (2^20 × s))
    mul       y = z + scale((q1 − z1) × (q2 − z2), s1 × s2 / s)
    rescale   y = z + scale(q1 − z1, s1 / s)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar

import numpy as np

from ...isa.arithmetic import quantize_scale, scale_array
from ...isa.config import Config
from ...isa.errors import MicrotronError
from ...isa.instructions import PARAMETER_TILES, AluOp, Buffer, Rounding
from ...isa.timing import MemoryTiming
from ..accelerator.intrinsic import (
    Intrinsic,
    element_wise,
    immediate,
    requantize,
    scale_function,
)
from ..errors import CompileError
from ..expression.expression import Expression, Function, binary
from ..expression.tensor import Tensor, compute, placeholder
from ..nest.nest import Scope
from ..schedule.schedule import Schedule
from .description import Epilogue, activation, extent, setting
from .divisions import even_sizes, grid
from .form import Template, TensorForm, blocks_of, requantized
from .kernel import Operator
from .packing import Array, Operand, pack_activations, pack_parameters, unpack_activations
from .work import Work

HEADROOM = 20               # bits by which TFLite shifts the terms of a sum left
STEP_START = 40             # cycles that a step costs beside its work

Steps = dict[Tensor, Intrinsic]     # what the ALU computes, and the intrinsic that does


class Operation(Enum):
    ADD = "add"
    MUL = "mul"
    RESCALE = "rescale"


@dataclass(frozen=True, kw_only=True)
class Elementwise(Epilogue):
    """An element-wise operation. A rescale has no right operand."""

    operator: ClassVar[str] = "elementwise"

    operation: Operation = setting("add, mul or rescale")
    channels: int = extent("channels")
    height: int = extent("rows", 1)
    width: int = extent("columns", 1)
    images: int = extent("images at once", 1)
    scale_left: float = setting("scale of the left operand", 1.0)
    scale_right: float = setting("scale of the right operand", 1.0)
    scale_out: float = setting("scale of the result", 1.0)
    zero_point_left: int = activation("zero point of the left operand")
    zero_point_right: int = activation("zero point of the right operand")

    def check(self) -> None:
        super().check()
        try:
            self.terms(), self.last_scale()
        except MicrotronError as error:
            raise CompileError(f"{self.operator}: {error}; scales are {self.scale_left}, "
                               f"{self.scale_right} and {self.scale_out}") from None

    @property
    def operand_names(self) -> tuple[str, ...]:
        return ("left",) if self.operation == Operation.RESCALE else ("left", "right")

    def tiles(self, config: Config) -> int:
        """Tiles of each operand."""
        return (blocks_of(self.images, config.batch) * blocks_of(self.channels, config.block_out)
                * self.height * self.width)

    def terms(self) -> tuple[Term, Term]:
        """How the operands of a sum are scaled."""
        double = 2 * max(self.scale_left, self.scale_right)
        return (_term(self.zero_point_left, self.scale_left / double, self.rounding),
                _term(self.zero_point_right, self.scale_right / double, self.rounding))

    def last_scale(self) -> tuple[int, int, int]:
        """Bias, multiplier and shift of the last step."""
        match self.operation:
            case Operation.ADD:
                double = 2 * max(self.scale_left, self.scale_right)
                return 0, *quantize_scale(double / ((1 << HEADROOM) * self.scale_out))
            case Operation.MUL:
                return 0, *quantize_scale(self.scale_left * self.scale_right / self.scale_out)
            case Operation.RESCALE:
                return -self.zero_point_left, *quantize_scale(self.scale_left / self.scale_out)


@dataclass(frozen=True)
class Term:
    """How an operand of a sum is scaled: shifted left first, unless that changes nothing."""

    shifted: bool
    bias: int
    multiplier: int
    shift: int


def _term(zero_point: int, real: float, rounding: Rounding) -> Term:
    multiplier, shift = quantize_scale(real)
    values = np.arange(-128, 128) - zero_point
    if shift >= HEADROOM:
        # Rounding once instead of twice may differ; 256 values are soon tried.
        exact = scale_array(values << HEADROOM, multiplier, shift, rounding)
        short = scale_array(values, multiplier, shift - HEADROOM, rounding)
        if (exact == short).all():
            return Term(False, -zero_point, multiplier, shift - HEADROOM)
    return Term(True, -zero_point << HEADROOM, multiplier, shift)


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """How many tiles are computed at once."""

    tiles: int
    doubled: bool = True        # two buffers each, so that engines overlap


@dataclass(frozen=True, kw_only=True)
class ElementwiseForm(TensorForm):
    """An operation in tensors: `wide` are the operands in the accumulator, `steps` what the ALU
    computes on the way, in order, each with its intrinsic."""

    spec: Elementwise
    placeholders: tuple[Tensor, ...]
    wide: tuple[Tensor, ...]
    parameters: Tensor
    steps: dict[Tensor, Intrinsic] = field(default_factory=dict)

    @property
    def intrinsics(self) -> list[Intrinsic]:
        return [*super().intrinsics, *self.steps.values()]

    @property
    def work(self) -> Work:
        spec, tiles = self.spec, self.output.shape[0]
        values = spec.images * spec.channels * spec.height * spec.width
        return Work(macs=0, products=0, bytes=(len(self.placeholders) + 1) * values,
                    passes=tiles * (len(self.steps) + 1))

    @property
    def operands(self) -> tuple[Operand, ...]:
        spec = self.spec
        shape = (spec.images, spec.channels, spec.height, spec.width)
        return tuple(Operand(name, shape) for name in spec.operand_names)

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        tiles = {name: pack_activations(given[name], self.config, self.config.block_out)
                 for name in self.spec.operand_names}
        return {**{name: each.reshape(self.output.shape) for name, each in tiles.items()},
                "parameters": parameters(self.spec, self.config)}

    def unpack(self, output: Array) -> Array:
        spec, config = self.spec, self.config
        shape = (blocks_of(spec.images, config.batch), blocks_of(spec.channels, config.block_out),
                 spec.height, spec.width, *output.shape[-2:])
        return unpack_activations(output.reshape(shape), spec.images, spec.channels)


def parameters(spec: Elementwise, config: Config) -> Array:
    """What the program takes as `parameters`: those of the terms, if it is a sum, then the last."""
    sets = [spec.last_scale()]
    if spec.operation == Operation.ADD:
        sets = [(term.bias, term.multiplier, term.shift) for term in spec.terms()] + sets
    lanes = np.ones(config.block_out, np.int64)
    return np.concatenate([pack_parameters(bias * lanes, multiplier * lanes, shift * lanes, config)
                           for bias, multiplier, shift in sets])


def form_of(spec: Elementwise, config: Config) -> ElementwiseForm:
    """What is computed."""
    shape = (spec.tiles(config), config.batch, config.block_out)
    operands = tuple(placeholder(name, shape, "int8") for name in spec.operand_names)
    wide = tuple(_step(f"{each.name}.wide", lambda element: element.cast("int32"), each)
                 for each in operands)
    sets = 3 if spec.operation == Operation.ADD else 1
    given = placeholder("parameters", (sets, PARAMETER_TILES, *shape[1:]), "int32")
    function = spec.requantization()
    steps: Steps = {}
    match spec.operation:
        case Operation.ADD:
            value = _sum(spec, config, wide, given, steps)
        case Operation.MUL:
            value = _product(spec, config, wide, steps)
        case Operation.RESCALE:
            value, = wide
    return ElementwiseForm(spec=spec, config=config, placeholders=operands, wide=wide,
                           parameters=given, function=function, steps=steps,
                           output=_scaled("output", function, value, given, sets - 1))


def _step(name: str, function: Callable[..., Expression], *sources: Tensor) -> Tensor:
    """A function of the elements of some tensors at the same place."""
    return compute(name, sources[0].shape, lambda t, b, j: function(
        *(source[t, b, j] for source in sources)))


def _scaled(name: str, function: Function, value: Tensor, parameters: Tensor,
            number: int) -> Tensor:
    return compute(name, value.shape, lambda t, b, j: requantized(
        function, value[t, b, j], parameters, (number,), (b, j)))


def _sum(spec: Elementwise, config: Config, wide: tuple[Tensor, ...], parameters: Tensor,
         steps: Steps) -> Tensor:
    """Both operands scaled and added."""
    scale = scale_function(spec.rounding)
    scaled = []
    for number, (operand, term) in enumerate(zip(wide, spec.terms(), strict=True)):
        value = operand
        if term.shifted:
            value = _with_constant(config, operand, AluOp.SHL, HEADROOM, steps)
        scaled.append(_scaled(f"{operand.name}.scaled", scale, value, parameters, number))
        steps[scaled[-1]] = requantize(config, scale)
    sums = _step("sums", lambda left, right: left + right, *scaled)
    steps[sums] = element_wise(config, AluOp.ADD)
    return sums


def _product(spec: Elementwise, config: Config, wide: tuple[Tensor, ...],
             steps: Steps) -> Tensor:
    """Both operands without their zero points, multiplied."""
    zeros = spec.zero_point_left, spec.zero_point_right
    factors = [_with_constant(config, operand, AluOp.SUB, zero, steps) if zero else operand
               for operand, zero in zip(wide, zeros, strict=True)]
    products = _step("products", lambda left, right: left * right, *factors)
    steps[products] = element_wise(config, AluOp.MUL)
    return products


def _with_constant(config: Config, source: Tensor, op: AluOp, value: int,
                   steps: Steps) -> Tensor:
    operator = {AluOp.SHL: "<<", AluOp.SUB: "-"}[op]
    result = _step(f"{source.name}.{op.name.lower()}",
                   lambda element: binary(operator, element, value), source)
    steps[result] = immediate(config, op, value)
    return result


def schedule(form: ElementwiseForm, knobs: Knobs) -> Schedule:
    """The template: operands come in, pass through the ALU step by step, and go out. What is
    loaded and stored has two buffers; the ALU alone uses what lies between."""
    plan = Schedule(form.output)
    inside = plan.cache_write(form.output, Scope.OUT)
    readers = [inside, *(step for step in reversed(form.steps) if form.parameters in step.inputs())]
    parameters = plan.cache_read(form.parameters, Scope.ACC, *readers)
    inside, output = plan.renewed(inside), plan.renewed(form.output)
    last = plan[output]
    far, _ = last.split(last.leaves[0], knobs.tiles)
    for step, intrinsic in form.steps.items():
        stage = plan[plan.renewed(step)]
        stage.scope = Scope.ACC
        stage.compute_at(last, far)
        stage.tensorize(stage.leaves[1], intrinsic.name)
    for tensor, scope in (*((each, Scope.ACC) for each in form.wide), (inside, Scope.OUT)):
        plan[tensor].scope = scope
        plan[tensor].compute_at(last, far)
        if knobs.doubled and far.extent > 1:
            plan[tensor].double_buffer(far)
    plan[inside].tensorize(plan[inside].leaves[1], form.function.name)
    assert plan[parameters].attach is None, "parameters are loaded once"
    return plan


def _copies(form: ElementwiseForm, knobs: Knobs) -> Any:
    return np.where(knobs.doubled & (knobs.tiles < form.output.shape[0]), 2, 1)


def grids(form: ElementwiseForm) -> Iterator[Knobs]:
    """Without double buffers only if nothing fits with them."""
    for doubled in (True, False):
        yield replace(grid(Knobs, tiles=even_sizes(form.output.shape[0])), doubled=doubled)


def fits(form: ElementwiseForm, knobs: Knobs) -> Any:
    """Whether all buffers find room."""
    config, copies = form.config, _copies(form, knobs)
    used = PARAMETER_TILES * form.parameters.shape[0] + knobs.tiles * (
        len(form.steps) + copies * len(form.wide))
    return ((used <= config.tiles(Buffer.ACC))
            & (knobs.tiles * copies <= config.tiles(Buffer.OUT)))


def estimate(form: ElementwiseForm, knobs: Knobs, memory: MemoryTiming) -> Any:
    """Cycles, roughly: the larger of what the ALU and the bus do, and what cannot overlap."""
    config, tiles = form.config, form.output.shape[0]
    pieces = -(-tiles // knobs.tiles)
    moved = ((len(form.wide) + 1) * config.tile_bytes(Buffer.OUT) * memory.cycles_per_beat
             / config.bus_bytes)
    passes = len(form.steps) + 1
    apart = (moved + passes) * knobs.tiles * (1 if knobs.doubled else pieces)
    return max(moved, passes) * tiles + pieces * STEP_START + apart


TEMPLATE = Template(knobs=Knobs, grids=grids, fits=fits, estimate=estimate, schedule=schedule)
OPERATOR = Operator(description=Elementwise, forms=lambda spec, config: [form_of(spec, config)],
                    template=TEMPLATE)
