"""Element-wise operations of int8 tensors: sum, difference and product of two with different
scales, minimum and maximum of two with the same, and a change of scale of one, which is also ReLU
and clip on their own.

The arithmetic is TFLite's, see docs/arithmetic.md:

    add, sub  a, b = scale((q − z) × 2^20, s / t) each, with t = 2 × max(s1, s2)
              y = z + scale(a ± b, t / (2^20 × s))
    mul       y = z + scale((q1 − z1) × (q2 − z2), s1 × s2 / s)
    min, max  of stored numbers
    rescale   y = z + scale(q1 − z1, s1 / s)
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

import numpy as np

from ....base.classes.dataclass import dataclass
from ....base.errors import MicrotronError
from ....isa.arithmetic import quantize_scale, scale_array
from ....isa.config import Config
from ....isa.instructions import AluOp, Rounding
from ...errors import CompileError
from ...expression.tensor import Tensor
from ..description import activation, setting
from .lanewise import Lanewise, LanewiseForm, Passes, Scale

HEADROOM = 20               # bits by which TFLite shifts the terms of a sum left


class Operation(Enum):
    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    MIN = "min"
    MAX = "max"
    RESCALE = "rescale"


COMBINED = {Operation.ADD: AluOp.ADD, Operation.SUB: AluOp.SUB, Operation.MUL: AluOp.MUL,
            Operation.MIN: AluOp.MIN, Operation.MAX: AluOp.MAX}
SUMS = (Operation.ADD, Operation.SUB)
EXTREMES = (Operation.MIN, Operation.MAX)


@dataclass(frozen=True, kw_only=True)
class Elementwise(Lanewise):
    """An element-wise operation. A rescale has no right operand."""

    operator: ClassVar[str] = "elementwise"

    operation: Operation = setting("add, sub, mul, min, max or rescale")
    scale_left: float = setting("scale of the left operand", 1.0)
    scale_right: float = setting("scale of the right operand", 1.0)
    scale_out: float = setting("scale of the result", 1.0)
    zero_point_left: int = activation("zero point of the left operand")
    zero_point_right: int = activation("zero point of the right operand")

    def check(self) -> None:
        super().check()
        if self.operation in EXTREMES and len({
                (self.scale_left, self.zero_point_left), (self.scale_out, self.zero_point_out),
                (self.scale_right, self.zero_point_right)}) > 1:
            raise CompileError(f"{self.operator}: operands and result of a "
                               f"{self.operation.value} must have one scale and zero point")
        try:
            self.terms(), self.last_scale()
        except MicrotronError as error:
            raise CompileError(f"{self.operator}: {error}; scales are {self.scale_left}, "
                               f"{self.scale_right} and {self.scale_out}") from None

    @property
    def operand_names(self) -> tuple[str, ...]:
        return ("left",) if self.operation == Operation.RESCALE else ("left", "right")

    def scales(self) -> list[Scale]:
        terms = self.terms() if self.operation in SUMS else ()
        return [*((term.bias, term.multiplier, term.shift) for term in terms), self.last_scale()]

    def terms(self) -> tuple[Term, Term]:
        """How the operands of a sum are scaled."""
        double = 2 * max(self.scale_left, self.scale_right)
        return (_term(self.zero_point_left, self.scale_left / double, self.rounding),
                _term(self.zero_point_right, self.scale_right / double, self.rounding))

    def last_scale(self) -> Scale:
        """Bias, multiplier and shift of the last step."""
        match self.operation:
            case Operation.ADD | Operation.SUB:
                double = 2 * max(self.scale_left, self.scale_right)
                return 0, *quantize_scale(double / ((1 << HEADROOM) * self.scale_out))
            case Operation.MUL:
                return 0, *quantize_scale(self.scale_left * self.scale_right / self.scale_out)
            case Operation.RESCALE | Operation.MIN | Operation.MAX:
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


def form_of(spec: Elementwise, config: Config, *, flat: bool = False) -> LanewiseForm:
    """What is computed, in images of tiles or in runs of numbers."""
    passes = Passes(spec, config, flat=flat)
    return passes.form(combine_operands(spec, passes))


def flat_forms(spec: Elementwise, config: Config) -> list[LanewiseForm]:
    """The form of a layer between a host and a host, where it takes fewer tiles."""
    fewer = spec.flat_tiles(config) < spec.tiles(config)
    return [form_of(spec, config, flat=True)] if fewer else []


def combine_operands(spec: Elementwise, passes: Passes) -> Tensor:
    """The operation of the operands of some passes, before the last requantization."""
    match spec.operation:
        case Operation.ADD | Operation.SUB:
            return _sum(spec, passes)
        case Operation.MUL:
            return _product(spec, passes)
        case Operation.RESCALE:
            return passes.operands[0]
        case Operation.MIN | Operation.MAX:
            return passes.combine(COMBINED[spec.operation], *passes.operands)


def _sum(spec: Elementwise, passes: Passes) -> Tensor:
    """Both operands scaled, and added or subtracted."""
    scaled = []
    for operand, term in zip(passes.operands, spec.terms(), strict=True):
        value = operand
        if term.shifted:
            value = passes.with_constant(AluOp.SHL, operand, HEADROOM)
        scaled.append(passes.scale(value))
    return passes.combine(COMBINED[spec.operation], *scaled)


def _product(spec: Elementwise, passes: Passes) -> Tensor:
    """Both operands without their zero points, multiplied."""
    zeros = spec.zero_point_left, spec.zero_point_right
    factors = [passes.with_constant(AluOp.SUB, operand, zero) if zero else operand
               for operand, zero in zip(passes.operands, zeros, strict=True)]
    return passes.combine(AluOp.MUL, *factors)
