"""Operations on the elements of two tensors at the same place, which are repeated to meet."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np

from .....base.classes.dataclass import dataclass
from .....isa.arithmetic import quantize_scale, scale_array
from ...operation import Value, broadcast, operand
from ...types import Array, GraphError, TensorType
from ..scaled import Scaled, check_scale

HEADROOM = 20               # bits by which the terms of a quantized sum are shifted left
SCALED = ("add", "sub", "mul")


class BinaryKind(Enum):
    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    MIN = "min"
    MAX = "max"
    POW = "pow"
    MOD = "mod"             # what is left of a division, with the sign of the divisor
    FMOD = "fmod"           # the same with the sign of the dividend


def divide(left: Array, right: Array) -> Array:
    """Integers lose the fraction of their quotient; what is divided by zero becomes 0."""
    if left.dtype.kind == "f":
        return np.divide(left, right)
    below: Array = np.floor_divide(left, right)
    rest = (left - below * right != 0) & ((left < 0) != (right < 0)) & (right != 0)
    below += rest
    return below


def power(left: Array, right: Array) -> Array:
    """Integers to a negative power lose their fraction as well: only 1 and −1 keep something."""
    if left.dtype.kind == "f":
        return np.power(left, right)
    found = np.power(left, np.maximum(right, 0))
    odd = np.where(left == 1, 1, np.where(left + 1 == 0, 1 - 2 * (right % 2).astype(np.int64), 0))
    return np.where(right < 0, odd.astype(left.dtype), found)


FUNCTIONS: dict[BinaryKind, Callable[..., Array]] = {
    BinaryKind.ADD: np.add, BinaryKind.SUB: np.subtract, BinaryKind.MUL: np.multiply,
    BinaryKind.DIV: divide, BinaryKind.MIN: np.minimum, BinaryKind.MAX: np.maximum,
    BinaryKind.POW: power, BinaryKind.MOD: np.mod, BinaryKind.FMOD: np.fmod}


@dataclass(frozen=True, kw_only=True)
class Binary(Scaled):
    """A function of two tensors. Of quantized ones:

        add, sub    a, b = scale((q − z) × 2^20, s / t) each, with t = 2 × max(s1, s2)
                    y = z + scale(a ± b, t / (2^20 × s))
        mul         y = z + scale((q1 − z1) × (q2 − z2), real), where `scales` has the one `real`
        min, max    of stored numbers; all three have the same scale and zero point
    """

    kind: BinaryKind
    left: str = operand()
    right: str = operand()

    def infer(self, left: TensorType, right: TensorType) -> TensorType:
        if left.dtype != right.dtype:
            raise GraphError(f"one side is {left.plain()} and the other {right.plain()}, but both "
                             f"must be of one type")
        same = left.quantization if self.kind in (BinaryKind.MIN, BinaryKind.MAX) else None
        return TensorType(broadcast(left.shape, right.shape), left.dtype, same)

    def check(self, result: TensorType, *types: TensorType) -> None:
        expected = self.infer(*types)
        self.check_bounds(result)
        if (result.shape, result.dtype) != (expected.shape, expected.dtype):
            raise GraphError(f"the result is {result.plain()}, but must be {expected.plain()}")
        if len({each.is_quantized for each in (result, *types)}) > 1:
            raise GraphError("some of the operands and the result have scales and some have none")
        if len(self.scales) != (result.is_quantized and self.kind == BinaryKind.MUL):
            raise GraphError(f"there are {len(self.scales)} scales, but quantized products have "
                             f"one, and nothing else has any")
        for scale in self.scales:
            check_scale(scale)
        if not result.is_quantized:
            return
        if self.kind in (BinaryKind.MIN, BinaryKind.MAX):
            if any(each.quantization != result.quantization for each in types):
                raise GraphError("a quantized minimum or maximum has one scale and zero point")
        elif self.kind.value not in SCALED:
            raise GraphError(f"there is no quantized {self.kind.value}")
        elif self.kind != BinaryKind.MUL:
            check_scale(self._last_scale(result, *types))

    def compute(self, result: TensorType, left: Value, right: Value) -> Array:
        if not result.is_quantized or self.kind.value not in SCALED:
            return self.clamp(FUNCTIONS[self.kind](left.array, right.array), result)
        zeroless = [each.array.astype(np.int64) - each.type.require_quantization().zero_point
                    for each in (left, right)]
        if self.kind == BinaryKind.MUL:
            values = scale_array(zeroless[0] * zeroless[1], *quantize_scale(self.scales[0]),
                                 self.rounding)
        else:
            values = self._sum(result, left.type, right.type, *zeroless)
        return self.clamp(values.astype(np.int64) + result.require_quantization().zero_point,
                          result)

    def _sum(self, result: TensorType, left: TensorType, right: TensorType, first: Array,
             second: Array) -> Array:
        one, other = left.require_quantization().scale, right.require_quantization().scale
        double = 2 * max(one, other)
        terms = [scale_array(value << HEADROOM, *quantize_scale(scale / double), self.rounding)
                 for value, scale in ((first, one), (second, other))]
        total = FUNCTIONS[self.kind](terms[0], terms[1])
        real = self._last_scale(result, left, right)
        return scale_array(total, *quantize_scale(real), self.rounding)

    def _last_scale(self, result: TensorType, left: TensorType, right: TensorType) -> float:
        """Of a quantized sum: t / (2^20 × s)."""
        double = 2 * max(left.require_quantization().scale, right.require_quantization().scale)
        return double / ((1 << HEADROOM) * result.require_quantization().scale)
