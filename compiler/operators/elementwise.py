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

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from ...isa.arithmetic import quantize_scale, scale_array
from ...isa.config import Config
from ...isa.instructions import PARAMETER_TILES, AluOp, Buffer, Rounding
from ...isa.timing import MemoryTiming
from ..accelerator.intrinsic import (
    Intrinsic,
    immediate,
    requantize,
    requantize_function,
    scale_function,
)
from ..errors import CompileError
from ..expression.expression import Call, Expression, Function, binary
from ..expression.tensor import Tensor, compute, placeholder
from ..nest.nest import Scope
from ..schedule.schedule import Schedule
from .divisions import even_sizes, grid
from .epilogue import Epilogue
from .packing import Array, pack_parameters

HEADROOM = 20               # bits by which TFLite shifts the terms of a sum left
STEP_START = 40             # cycles that a step costs beside its work


class Operation(Enum):
    ADD = "add"
    MUL = "mul"
    RESCALE = "rescale"


@dataclass(frozen=True, kw_only=True)
class Elementwise(Epilogue):
    """What is to be computed. A rescale has no right operand."""

    operation: Operation
    channels: int
    height: int = 1
    width: int = 1
    images: int = 1
    scale_left: float = 1.0
    scale_right: float = 1.0
    scale_out: float = 1.0
    zero_point_left: int = 0
    zero_point_right: int = 0

    def __post_init__(self) -> None:
        for name in ("channels", "height", "width", "images"):
            if getattr(self, name) < 1:
                raise CompileError(f"{self.operation.value}: {name} is {getattr(self, name)}, but "
                                   f"must be at least 1")
        for name in ("scale_left", "scale_right", "scale_out"):
            if not 0 < getattr(self, name) < np.inf:
                raise CompileError(f"{self.operation.value}: {name} is {getattr(self, name)}, but "
                                   f"must be positive")

    def tiles(self, config: Config) -> int:
        """Tiles of each operand."""
        return (-(-self.images // config.batch) * -(-self.channels // config.block_out)
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
class Expressions:
    """The tensors of an operation on one configuration, and the intrinsics that it needs besides
    those of the accelerator."""

    spec: Elementwise
    config: Config
    operands: tuple[Tensor, ...]
    wide: tuple[Tensor, ...]                # operands in the accumulator
    steps: dict[Tensor, str]                # what the ALU computes on the way, in order
    parameters: Tensor
    output: Tensor
    function: Function
    intrinsics: list[Intrinsic]


def parameters(spec: Elementwise, config: Config) -> Array:
    """What the program takes as `parameters`: those of the terms, if it is a sum, then the last."""
    sets = [spec.last_scale()]
    if spec.operation == Operation.ADD:
        sets = [(term.bias, term.multiplier, term.shift) for term in spec.terms()] + sets
    lanes = np.ones(config.block_out, np.int64)
    return np.concatenate([pack_parameters(bias * lanes, multiplier * lanes, shift * lanes, config)
                           for bias, multiplier, shift in sets])


def expressions(spec: Elementwise, config: Config) -> Expressions:
    """What is computed."""
    shape = (spec.tiles(config), config.batch, config.block_out)
    names = ("left",) if spec.operation == Operation.RESCALE else ("left", "right")
    operands = tuple(placeholder(name, shape, "int8") for name in names)
    wide = tuple(_step(f"{each.name}.wide", lambda element: element.cast("int32"), each)
                 for each in operands)
    sets = 3 if spec.operation == Operation.ADD else 1
    given = placeholder("parameters", (sets, PARAMETER_TILES, *shape[1:]), "int32")
    function = requantize_function(rounding=spec.rounding, zero_point=spec.zero_point_out,
                                   low=spec.low, high=spec.high)
    what = Expressions(spec=spec, config=config, operands=operands, wide=wide, steps={},
                       parameters=given, function=function, output=operands[0],
                       intrinsics=[requantize(config, function)])
    match spec.operation:
        case Operation.ADD:
            value = _sum(what)
        case Operation.MUL:
            value = _product(what)
        case Operation.RESCALE:
            value, = wide
    output = _requantized("output", function, value, given, sets - 1)
    return replace(what, output=output)


def _step(name: str, function: Callable[..., Expression], *sources: Tensor) -> Tensor:
    """A function of the elements of some tensors at the same place."""
    return compute(name, sources[0].shape, lambda t, b, j: function(
        *(source[t, b, j] for source in sources)))


def _requantized(name: str, function: Function, value: Tensor, parameters: Tensor,
                 number: int) -> Tensor:
    return compute(name, value.shape, lambda t, b, j: Call(function, (
        value[t, b, j], *(parameters[number, each, b, j] for each in range(PARAMETER_TILES)))))


def _sum(what: Expressions) -> Tensor:
    """Both operands scaled and added."""
    spec, config = what.spec, what.config
    scale = scale_function(spec.rounding)
    what.intrinsics.append(requantize(config, scale))
    scaled = []
    for number, (wide, term) in enumerate(zip(what.wide, spec.terms(), strict=True)):
        value = wide
        if term.shifted:
            value = _with_constant(what, wide, AluOp.SHL, HEADROOM)
        scaled.append(_requantized(f"{wide.name}.scaled", scale, value, what.parameters, number))
        what.steps[scaled[-1]] = scale.name
    sums = _step("sums", lambda left, right: left + right, *scaled)
    what.steps[sums] = "alu.add"
    return sums


def _product(what: Expressions) -> Tensor:
    """Both operands without their zero points, multiplied."""
    zeros = what.spec.zero_point_left, what.spec.zero_point_right
    factors = [_with_constant(what, wide, AluOp.SUB, zero) if zero else wide
               for wide, zero in zip(what.wide, zeros, strict=True)]
    products = _step("products", lambda left, right: left * right, *factors)
    what.steps[products] = "alu.mul"
    return products


def _with_constant(what: Expressions, source: Tensor, op: AluOp, value: int) -> Tensor:
    intrinsic = immediate(what.config, op, value)
    operator = {AluOp.SHL: "<<", AluOp.SUB: "-"}[op]
    result = _step(f"{source.name}.{op.name.lower()}",
                   lambda element: binary(operator, element, value), source)
    what.intrinsics.append(intrinsic)
    what.steps[result] = intrinsic.name
    return result


def schedule(what: Expressions, knobs: Knobs) -> Schedule:
    """The template: operands come in, pass through the ALU step by step, and go out. What is
    loaded and stored has two buffers; the ALU alone uses what lies between."""
    plan = Schedule(what.output)
    inside = plan.cache_write(what.output, Scope.OUT)
    readers = [inside, *(step for step in reversed(what.steps) if what.parameters in step.inputs())]
    parameters = plan.cache_read(what.parameters, Scope.ACC, *readers)
    inside, output = plan.renewed(inside), plan.renewed(what.output)
    last = plan[output]
    far, _ = last.split(last.leaves[0], knobs.tiles)
    for step, name in what.steps.items():
        stage = plan[plan.renewed(step)]
        stage.scope = Scope.ACC
        stage.compute_at(last, far)
        stage.tensorize(stage.leaves[1], name)
    for tensor, scope in (*((each, Scope.ACC) for each in what.wide), (inside, Scope.OUT)):
        plan[tensor].scope = scope
        plan[tensor].compute_at(last, far)
        if knobs.doubled and far.extent > 1:
            plan[tensor].double_buffer(far)
    plan[inside].tensorize(plan[inside].leaves[1], what.function.name)
    assert plan[parameters].attach is None, "parameters are loaded once"
    return plan


def _copies(what: Expressions, knobs: Knobs) -> Any:
    return np.where(knobs.doubled & (knobs.tiles < what.output.shape[0]), 2, 1)


def grids(what: Expressions) -> Iterator[Knobs]:
    """Without double buffers only if nothing fits with them."""
    for doubled in (True, False):
        yield replace(grid(Knobs, tiles=even_sizes(what.output.shape[0])), doubled=doubled)


def fits(what: Expressions, knobs: Knobs) -> Any:
    """Whether all buffers find room."""
    config, copies = what.config, _copies(what, knobs)
    used = PARAMETER_TILES * what.parameters.shape[0] + knobs.tiles * (
        len(what.steps) + copies * len(what.wide))
    return ((used <= config.tiles(Buffer.ACC))
            & (knobs.tiles * copies <= config.tiles(Buffer.OUT)))


def estimate(what: Expressions, knobs: Knobs, memory: MemoryTiming) -> Any:
    """Cycles, roughly: the larger of what the ALU and the bus do, and what cannot overlap."""
    config, tiles = what.config, what.output.shape[0]
    pieces = -(-tiles // knobs.tiles)
    moved = ((len(what.wide) + 1) * config.tile_bytes(Buffer.OUT) * memory.cycles_per_beat
             / config.bus_bytes)
    passes = len(what.steps) + 1
    apart = (moved + passes) * knobs.tiles * (1 if knobs.doubled else pieces)
    return max(moved, passes) * tiles + pieces * STEP_START + apart
