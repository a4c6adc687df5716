"""Floats that are surely between two bounds, so that they become integers of 32 bits at once."""

from __future__ import annotations

from math import inf, isnan

from ...expression.expression import Binary, Call, Constant, Expression

LOW, HIGH = -float(1 << 31), float((1 << 31) - 128)     # the last that float32 has below 2^31
ROUNDINGS = ("floor", "ceil", "trunc", "roundeven")


def fits_in_32(node: Expression) -> bool:
    """Whether a float surely lies in the range of 32-bit integers, or is NaN."""
    low, high = _range(node)
    return low >= LOW and high <= HIGH


def _range(node: Expression) -> tuple[float, float]:
    match node:
        case Constant() if not isnan(node.value):
            return node.value, node.value
        case Binary(operator="min" | "max"):
            (low, high), (least, most) = _range(node.left), _range(node.right)
            choose = min if node.operator == "min" else max
            return choose(low, least), choose(high, most)
        case Binary(operator="+"):
            (low, high), (least, most) = _range(node.left), _range(node.right)
            if inf not in (high, most, -low, -least):
                return low + least, high + most
        case Call() if node.function.name in ROUNDINGS:
            return _range(node.arguments[0])
    return -inf, inf
