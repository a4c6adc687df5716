"""Operators on bits."""

from __future__ import annotations

from ....graph.operations.pointwise.bits import BitCast, BitNot, Bits, BitsKind
from ....graph.types import GraphError
from ..call import Call
from ..onnx_file import dtype_of
from ..operator_table import operator

JOINED = {"BitwiseAnd": BitsKind.AND, "BitwiseOr": BitsKind.OR, "BitwiseXor": BitsKind.XOR}
SHIFTS = {"LEFT": BitsKind.SHIFT_LEFT, "RIGHT": BitsKind.SHIFT_RIGHT}


@operator(" ".join(JOINED))
def bitwise_binary(call: Call) -> None:
    call.give(Bits(kind=JOINED[call.node.op_type], left=call.plain_operand(0),
                   right=call.plain_operand(1)))


@operator("BitwiseNot")
def bitwise_not(call: Call) -> None:
    call.give(BitNot(x=call.plain_operand(0)))


@operator("BitShift", "direction")
def bit_shift(call: Call) -> None:
    direction = call.text("direction", "", " ".join(SHIFTS))
    if not direction:
        raise GraphError("direction is missing")
    call.give(Bits(kind=SHIFTS[direction], left=call.plain_operand(0), right=call.plain_operand(1)))


@operator("BitCast", "to")
def bit_cast(call: Call) -> None:
    call.give(BitCast(x=call.plain_operand(0), dtype=dtype_of(call.integer("to", 0))))
