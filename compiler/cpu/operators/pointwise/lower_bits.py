"""Numbers as bits."""

from __future__ import annotations

from ....expression.expression import FLOATS, LIMITS, Expression, binary, both, select
from ....expression.functions import BITS, as_bits, from_bits
from ....expression.tensor import Tensor
from ....graph.operations.pointwise.bits import BitCast, BitNot, Bits, BitsKind
from ....graph.types import TensorType
from ...registry import Operand, lowers
from ..lowering import Axes, at, each

JOINED = {BitsKind.AND: "&", BitsKind.OR: "|", BitsKind.XOR: "^"}


@lowers(Bits)
def bits(operation: Bits, result: TensorType, left: Operand, right: Operand) -> Tensor:
    def element(i: Axes) -> Expression:
        one, other = at(left, i), at(right, i)
        if operation.kind in JOINED:
            return binary(JOINED[operation.kind], one, other)
        return _shift(one, other, operation.kind == BitsKind.SHIFT_LEFT)

    return each(operation, result, element)


def _shift(value: Expression, places: Expression, left: bool) -> Expression:
    """What is shifted by its width or more, or by a negative number, is gone."""
    low, high = LIMITS[value.dtype]
    width = high.bit_length() + (low < 0)
    inside = both(places >= 0, places < width) if low else places < width
    amount = select(inside, places, 0)
    gone = select(value < 0, -1, value - value) if low and not left else value - value
    return select(inside, value << amount if left else value >> amount, gone)


@lowers(BitNot)
def bit_not(operation: BitNot, result: TensorType, x: Operand) -> Tensor:
    low, high = LIMITS[x.type.dtype]
    return each(operation, result, lambda i: at(x, i) ^ (-1 if low else high))


@lowers(BitCast)
def bit_cast(operation: BitCast, result: TensorType, x: Operand) -> Tensor:
    def element(i: Axes) -> Expression:
        value = at(x, i)
        whole = as_bits(value) if x.type.is_float else value
        return from_bits(whole.cast(BITS[result.dtype])) if result.dtype in FLOATS else (
            whole.cast(result.dtype))

    return each(operation, result, element)
