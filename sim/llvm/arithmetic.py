"""Python's operators on numbers in compiled code: of 64 bits, or folded at compile time."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import reduce

from llvmlite import ir

from .values import I64, Number, truth, word

Binary = Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]


def _floor_divide(builder: ir.IRBuilder, left: ir.Value, right: ir.Value) -> tuple[ir.Value,
                                                                                   ir.Value]:
    """Quotient and remainder, rounded down as in Python. The divisor is never zero."""
    quotient = builder.sdiv(left, right)
    rest = builder.sub(left, builder.mul(quotient, right))
    # LLVM rounds towards zero, where the remainder has the sign of the dividend instead of the
    # divisor's.
    wrong = builder.and_(builder.icmp_signed("!=", rest, I64(0)),
                         builder.icmp_signed("<", builder.xor(rest, right), I64(0)))
    return (builder.sub(quotient, builder.zext(wrong, I64)),
            builder.add(rest, builder.select(wrong, right, I64(0))))


BINARY: dict[type[ast.operator], tuple[Callable[[int, int], int], Binary]] = {
    ast.Add: (operator.add, lambda builder, *both: builder.add(*both)),
    ast.Sub: (operator.sub, lambda builder, *both: builder.sub(*both)),
    ast.Mult: (operator.mul, lambda builder, *both: builder.mul(*both)),
    ast.BitAnd: (operator.and_, lambda builder, *both: builder.and_(*both)),
    ast.BitOr: (operator.or_, lambda builder, *both: builder.or_(*both)),
    ast.BitXor: (operator.xor, lambda builder, *both: builder.xor(*both)),
    ast.LShift: (operator.lshift, lambda builder, *both: builder.shl(*both)),
    ast.RShift: (operator.rshift, lambda builder, *both: builder.ashr(*both)),
    ast.FloorDiv: (operator.floordiv, lambda builder, *both: _floor_divide(builder, *both)[0]),
    ast.Mod: (operator.mod, lambda builder, *both: _floor_divide(builder, *both)[1]),
}
COMPARED: dict[type[ast.cmpop], tuple[Callable[[int, int], bool], str]] = {
    ast.Eq: (operator.eq, "=="), ast.NotEq: (operator.ne, "!="), ast.Lt: (operator.lt, "<"),
    ast.LtE: (operator.le, "<="), ast.Gt: (operator.gt, ">"), ast.GtE: (operator.ge, ">="),
}


def emit_binary(builder: ir.IRBuilder, kind: type[ast.operator], left: Number,
                right: Number) -> Number:
    if kind not in BINARY:
        raise TypeError(f"compiled code has no {kind.__name__}")
    known, emitted = BINARY[kind]
    if isinstance(left, int) and isinstance(right, int):
        return known(left, right)
    return emitted(builder, word(builder, left), word(builder, right))


def emit_comparison(builder: ir.IRBuilder, kind: type[ast.cmpop], left: Number,
                    right: Number) -> Number:
    if kind not in COMPARED:
        raise TypeError(f"compiled code has no {kind.__name__}")
    known, sign = COMPARED[kind]
    if isinstance(left, int) and isinstance(right, int):
        return int(known(left, right))
    return builder.icmp_signed(sign, word(builder, left), word(builder, right))


def both(builder: ir.IRBuilder, one: Number, other: Number) -> Number:
    """Whether both are true. Conditions have no side effects, so both can be computed."""
    if isinstance(one, int) and isinstance(other, int):
        return int(bool(one and other))
    return builder.and_(truth(builder, one), truth(builder, other))


def either(builder: ir.IRBuilder, one: Number, other: Number) -> Number:
    if isinstance(one, int) and isinstance(other, int):
        return int(bool(one or other))
    return builder.or_(truth(builder, one), truth(builder, other))


def emit_not(builder: ir.IRBuilder, number: Number) -> Number:
    """Python's `not`."""
    if isinstance(number, int):
        return int(not number)
    return builder.not_(truth(builder, number))


def emit_negation(builder: ir.IRBuilder, number: Number) -> Number:
    return -number if isinstance(number, int) else builder.neg(word(builder, number))


def emit_complement(builder: ir.IRBuilder, number: Number) -> Number:
    """Python's `~`."""
    return ~number if isinstance(number, int) else builder.not_(word(builder, number))


def emit_min(builder: ir.IRBuilder, *numbers: Number) -> Number:
    return reduce(lambda one, other: _select(builder, ast.Lt, one, other), numbers)


def emit_max(builder: ir.IRBuilder, *numbers: Number) -> Number:
    return reduce(lambda one, other: _select(builder, ast.Gt, one, other), numbers)


def _select(builder: ir.IRBuilder, kind: type[ast.cmpop], one: Number, other: Number) -> Number:
    better = emit_comparison(builder, kind, other, one)        # of equal ones, the first
    if isinstance(better, int):
        return other if better else one
    return builder.select(better, word(builder, other), word(builder, one))


def emit_int(builder: ir.IRBuilder, number: Number) -> Number:
    """Python's `int`."""
    return number if isinstance(number, int) else word(builder, number)


def emit_divmod(builder: ir.IRBuilder, left: Number,
                right: Number) -> tuple[Number, Number]:
    """Python's `divmod`."""
    if isinstance(left, int) and isinstance(right, int):
        return divmod(left, right)
    return _floor_divide(builder, word(builder, left), word(builder, right))
