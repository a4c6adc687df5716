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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

import numpy as np

from ...isa.arithmetic import quantize_scale, scale_array
from ...isa.config import Config
from ...isa.errors import MicrotronError
from ...isa.instructions import PARAMETER_TILES, AluOp, Rounding
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
from .description import Epilogue, activation, extent, setting
from .form import TensorForm, blocks_of, requantized
from .layout import Layout, tiled_images
from .packing import Array, Operand, pack_activations, pack_parameters, unpack_activations
from .work import Work

HEADROOM = 20               # bits by which TFLite shifts the terms of a sum left

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
    """How an operand of a sum is scaled: after a shift to the left, unless that changes nothing."""

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

    @property
    def layouts(self) -> dict[str, Layout]:
        """Any layout will do, as long as all tensors have the same."""
        spec, config = self.spec, self.config
        layout = tiled_images(spec.images, spec.channels, spec.height, spec.width, config.batch,
                              config.block_out)
        return {name: layout for name in (*spec.operand_names, "output")}

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
    """A function applied element by element to tensors of the same shape."""
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
