"""Functions of two tensors, which are repeated to meet."""

from __future__ import annotations

from ....errors import CompileError
from ....expression.expression import (
    BOOL,
    FLOATS,
    LIMITS,
    Expression,
    as_expression,
    binary,
    both,
    either,
    maximum,
    minimum,
    negate,
    select,
)
from ....expression.tensor import Tensor
from ....graph.operations.pointwise.binary import HEADROOM, SCALED, Binary, BinaryKind
from ....graph.types import TensorType
from ... import functions
from ...registry import Operand, lowers
from ...setting import setting
from ..lowering import Axes, at, clamp_result, each, working
from ..rescaling import WIDE, scale_and_round, store_result


@lowers(Binary)
def element_wise(operation: Binary, result: TensorType, left: Operand, right: Operand) -> Tensor:
    quantized = result.is_quantized and operation.kind.value in SCALED

    def element(i: Axes) -> Expression:
        one, other = at(left, i), at(right, i)
        if quantized:
            return store_result(operation, result,
                                _quantized_element(operation, result, left.type, right.type,
                                                                      one, other))
        return clamp_result(operation, result, _plain_element(operation.kind, one, other, right))

    return each(operation, result, element)


def _quantized_element(operation: Binary, result: TensorType, left: TensorType, right: TensorType,
                       one: Expression, other: Expression) -> Expression:
    wide = "int32" if {left.dtype, right.dtype} <= {"int8", "uint8"} else WIDE
    first, second = (value.cast(wide) -
                     setting("zero", known.require_quantization().zero_point, wide)
                     for value, known in ((one, left), (other, right)))
    if operation.kind == BinaryKind.MUL:
        return scale_and_round(first * second, operation.scales, operation.rounding)
    double = 2 * max(left.require_quantization().scale, right.require_quantization().scale)
    terms = [scale_and_round(value << HEADROOM, [known.require_quantization().scale / double],
                             operation.rounding)
             for value, known in ((first, left), (second, right))]
    # int32 holds both terms, but their sum wraps as the graph's does.
    total = (binary("+" if operation.kind == BinaryKind.ADD else "-", *terms)).cast("int32")
    last = double / ((1 << HEADROOM) * result.require_quantization().scale)
    return scale_and_round(total, [last], operation.rounding)


def _plain_element(kind: BinaryKind, left: Expression, right: Expression,
                   operand: Operand) -> Expression:
    if left.dtype == BOOL:
        return _boolean_arithmetic(kind, left, right)
    dtype = working(left.dtype)
    left, right = left.cast(dtype), right.cast(dtype)
    match kind:
        case BinaryKind.ADD:
            return left + right
        case BinaryKind.SUB:
            return left - right
        case BinaryKind.MUL:
            return left * right
        case BinaryKind.MIN:
            return minimum(left, right)
        case BinaryKind.MAX:
            return maximum(left, right)
        case BinaryKind.DIV:
            return left / right if dtype in FLOATS else divide(left, right)
        case BinaryKind.POW:
            if dtype not in FLOATS:
                return _whole_power(left, right)
            if operand.array is not None and operand.array.size == 1:
                return functions.constant_power(left, float(operand.array.item()))
            return functions.power(left, right)
        case BinaryKind.MOD:
            return functions.modulo(left, right) if dtype in FLOATS else _modulo(left, right)
        case BinaryKind.FMOD:
            return functions.remainder(left, right) if dtype in FLOATS else (
                _remainder(left, right))
    raise CompileError(f"there is no {kind.value} of {dtype} for the CPU")


def _boolean_arithmetic(kind: BinaryKind, left: Expression, right: Expression) -> Expression:
    """What NumPy does to truth values: they are added as `or`, and multiplied as `and`."""
    match kind:
        case BinaryKind.ADD | BinaryKind.MAX:
            return either(left, right)
        case BinaryKind.MUL | BinaryKind.MIN:
            return both(left, right)
        case BinaryKind.DIV | BinaryKind.POW:
            return either(left, negate(right))
    raise CompileError(f"there is no {kind.value} of truth values")


def divide(left: Expression, right: Expression) -> Expression:
    """A quotient of integers without its fraction; 0, if the divisor is."""
    safe, zero = _safe(right)
    below = left // safe
    rest = both(binary("!=", below * safe, left), binary("!=", left < 0, safe < 0))
    whole = select(zero, 0, select(rest, below + 1, below))
    return select(right.equals(-1), 0 - left, whole) if _is_signed(right) else whole


def _modulo(left: Expression, right: Expression) -> Expression:
    """What a division that rounds down leaves; nothing, of one by zero."""
    safe, zero = _safe(right)
    return select(zero, 0, left % safe)


def _remainder(left: Expression, right: Expression) -> Expression:
    """What a division that cuts fractions off leaves."""
    return select(right.equals(0), 0, left - divide(left, right) * right)


def _safe(right: Expression) -> tuple[Expression, Expression]:
    """A divisor that no processor minds, and whether the real one is zero. Quotients by −1 may not
    fit; instead, numbers are divided by 1, which leaves as much."""
    zero = right.equals(0)
    odd = either(zero, right.equals(-1)) if _is_signed(right) else zero
    return select(odd, 1, right), zero


def _is_signed(value: Expression) -> bool:
    return LIMITS[value.dtype][0] < 0


def _whole_power(left: Expression, right: Expression) -> Expression:
    """By squaring, once for each bit of the exponent. Only 1 and −1 have negative powers."""
    one = as_expression(1, left.dtype)
    found, square = one, left
    bits = LIMITS[left.dtype][1].bit_length()
    for bit in range(bits):
        found = select(((right >> bit) & 1).equals(1), found * square, found)
        square = square * square
    if not _is_signed(left):
        return found
    odd = select((right & 1).equals(1), -1, one)
    inverse = select(left.equals(1), one, select(left.equals(-1), odd, 0))
    return select(right < 0, inverse, found)
