"""Integer arithmetic to the bit: what the ALU and the requantizer compute.

The scalar functions are the definition, on plain integers, each complete in itself so that a
compiler can translate it alone. `alu_array` and `requantize_array` are the same on whole arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..base.checked_values import quote
from ..base.errors import MicrotronError
from ..base.keywords import check_keywords
from .instructions import AluOp, Rounding

INT32_LOW, INT32_HIGH = -(1 << 31), (1 << 31) - 1
ADD, SUB, MUL, MIN, MAX, SHR, SHL, MOVE = (int(op) for op in AluOp)
TWICE, EVEN, AWAY = (int(each) for each in Rounding)
SHIFT_MASK = 31             # shift amounts are the low five bits of the right operand
SCALE_SHIFT_MASK = 63       # requantize's are the low six bits of the shift lane
HIGH_MULTIPLY_SHIFT = 31    # TFLite's first rounding: the doubling high multiply


def wrap(value: int) -> int:
    """The low 32 bits, as a signed number."""
    return ((value + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


def saturate(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


def alu(op: int, left: int, right: int) -> int:
    """One lane of an ALU operation on 32-bit signed numbers."""
    if op == ADD:
        result = left + right
    elif op == SUB:
        result = left - right
    elif op == MUL:
        result = left * right
    elif op == MIN:
        result = min(left, right)
    elif op == MAX:
        result = max(left, right)
    elif op == SHR:
        amount = right & SHIFT_MASK
        result = (left + ((1 << amount) >> 1)) >> amount
    elif op == SHL:
        result = left << (right & SHIFT_MASK)
    elif op == MOVE:
        result = right
    else:
        raise ValueError("there is no such ALU operation")
    return ((result + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


def scale(value: int, multiplier: int, shift: int, rounding: int) -> int:
    """value × multiplier / 2**shift as a saturated 32-bit number.

    TWICE is what TFLite's reference convolutions do: a doubling high multiply that rounds ties
    up, then a division by a power of two that rounds ties away from zero. Where TFLite shifts
    left first (shift < 31), nothing is left to the second rounding. EVEN and AWAY round the
    exact quotient once. Halves are rounded by `((x >> n - 1) + 1) >> 1`, which needs no 65th bit.
    """
    product = value * multiplier
    amount = shift & SCALE_SHIFT_MASK
    if rounding == TWICE:
        first = min(amount, HIGH_MULTIPLY_SHIFT)
        quotient = product if first == 0 else ((product >> (first - 1)) + 1) >> 1
        quotient = min(max(quotient, INT32_LOW), INT32_HIGH)
        second = amount - first
        if second > 0:
            nudge = (1 << (second - 1)) - (1 if quotient < 0 else 0)
            quotient = (quotient + nudge) >> second
        return quotient
    quotient = product >> amount
    rest = product - (quotient << amount)
    half = 1 << max(amount - 1, 0)
    tie_goes_up = quotient & 1 == 1 if rounding == EVEN else product >= 0
    if amount > 0 and (rest > half or (rest == half and tie_goes_up)):
        quotient += 1
    return min(max(quotient, INT32_LOW), INT32_HIGH)


def requantize(value: int, bias: int, multiplier: int, shift: int, *, zero_point: int = 0,
               low: int = -128, high: int = 127, rounding: int = TWICE) -> int:
    """One lane of a requantize that writes 8 bits."""
    return saturate(scale(wrap(value + bias), multiplier, shift, rounding) + zero_point, low, high)


@check_keywords
def quantize_scale(real: float) -> tuple[int, int]:
    """The multiplier and shift that stand for a real scale, as TFLite chooses them.

    The multiplier has 31 significant bits, so `real` ≈ multiplier / 2**shift. Scales below
    2**-32 become zero.
    """
    if isinstance(real, str | bytes) or not hasattr(real, "__float__") or (
            not 0 <= real <= INT32_HIGH):
        raise MicrotronError(f"scale is {quote(real)}, but must be from 0 to {INT32_HIGH}")
    mantissa, exponent = math.frexp(real)
    multiplier = math.floor(mantissa * (1 << 31) + 0.5)
    if multiplier == 1 << 31:
        multiplier, exponent = multiplier >> 1, exponent + 1
    if exponent < -HIGH_MULTIPLY_SHIFT or multiplier == 0:
        return 0, HIGH_MULTIPLY_SHIFT
    return multiplier, HIGH_MULTIPLY_SHIFT - exponent


Lanes = npt.NDArray[np.int32]
Scales = npt.NDArray[np.int64]


def quantize_scales(reals: npt.ArrayLike) -> tuple[Scales, Scales]:
    """`quantize_scale` on an array: multipliers and shifts."""
    real = np.asarray(reals, np.float64)
    wrong = ~((real >= 0) & (real <= INT32_HIGH))
    if wrong.any():
        quantize_scale(float(real[wrong][0]))
    mantissa, exponent = np.frexp(real)
    multiplier = np.floor(mantissa * (1 << 31) + 0.5).astype(np.int64)
    full = multiplier >> 31             # 1 where it was rounded up to a power of two
    multiplier, exponent = multiplier >> full, exponent.astype(np.int64) + full
    tiny = (exponent < -HIGH_MULTIPLY_SHIFT) | (multiplier == 0)
    return (np.where(tiny, 0, multiplier),
            np.where(tiny, HIGH_MULTIPLY_SHIFT, HIGH_MULTIPLY_SHIFT - exponent))


Operation = Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64]], npt.NDArray[np.int64]]


def _shift_right(left: npt.NDArray[np.int64],
                 right: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    amount = right & SHIFT_MASK
    shifted: npt.NDArray[np.int64] = (left + ((np.int64(1) << amount) >> 1)) >> amount
    return shifted


OPERATIONS: dict[AluOp, Operation] = {
    AluOp.ADD: np.add,
    AluOp.SUB: np.subtract,
    AluOp.MUL: np.multiply,
    AluOp.MIN: np.minimum,
    AluOp.MAX: np.maximum,
    AluOp.SHR: _shift_right,
    AluOp.SHL: lambda left, right: left << (right & SHIFT_MASK),
    AluOp.MOVE: lambda left, right: np.broadcast_to(
        right, np.broadcast_shapes(left.shape, right.shape)),
}
assert set(OPERATIONS) == set(AluOp), "every operation has a definition"


def alu_array(op: AluOp, left: npt.ArrayLike, right: npt.ArrayLike) -> Lanes:
    """`alu` on arrays of 32-bit lanes that broadcast."""
    operation = OPERATIONS[AluOp(op)]
    return operation(np.asarray(left, np.int64), np.asarray(right, np.int64)).astype(np.int32)


def scale_array(value: npt.ArrayLike, multiplier: npt.ArrayLike, shift: npt.ArrayLike,
                rounding: int) -> Lanes:
    """`scale` on arrays that broadcast."""
    product = np.asarray(value, np.int64) * np.asarray(multiplier, np.int64)
    amount = np.asarray(shift, np.int64) & SCALE_SHIFT_MASK
    one = np.int64(1)
    if rounding == TWICE:
        first = np.minimum(amount, HIGH_MULTIPLY_SHIFT)
        quotient = np.where(first == 0, product, ((product >> np.maximum(first - 1, 0)) + 1) >> 1)
        quotient = np.clip(quotient, INT32_LOW, INT32_HIGH)
        second = amount - first
        nudge = ((one << second) >> 1) - (quotient < 0)
        return _saturate_to_8_bits(np.where(second > 0, (quotient + nudge) >> second, quotient))
    quotient = product >> amount
    rest = product - (quotient << amount)
    half = one << np.maximum(amount - 1, 0)
    tie_goes_up = quotient & 1 == 1 if rounding == EVEN else product >= 0
    up = (rest > half) | ((rest == half) & tie_goes_up)
    return _saturate_to_8_bits(quotient + (up & (amount > 0)))


def _saturate_to_8_bits(values: npt.NDArray[np.int64]) -> Lanes:
    lanes: Lanes = np.clip(values, INT32_LOW, INT32_HIGH).astype(np.int32)
    return lanes


def _integers(name: str, given: npt.ArrayLike) -> Scales:
    """Integers as 64 bits. Real numbers are refused: they would lose their fractions in silence."""
    values = np.asarray(given)
    if values.dtype.kind not in "iu" and values.size:
        raise MicrotronError(f"{name} has numbers of type {values.dtype}, but must have integers")
    return values.astype(np.int64, copy=False)


@check_keywords
def requantize_array(value: npt.ArrayLike, bias: npt.ArrayLike, multiplier: npt.ArrayLike,
                     shift: npt.ArrayLike, *, zero_point: int = 0, low: int = -128,
                     high: int = 127, rounding: int = TWICE) -> npt.NDArray[np.int8]:
    """`requantize` on arrays that broadcast."""
    biased = (_integers("value", value) + _integers("bias", bias)).astype(np.int32)
    scaled = scale_array(biased, multiplier, shift, rounding).astype(np.int64)
    return np.clip(scaled + zero_point, low, high).astype(np.int8)
