"""Operators on two tensors at the same place, and choices between them."""

from __future__ import annotations

import numpy as np

from ....graph.operations.data_movement.shape import Reshape
from ....graph.operations.pointwise.binary import Binary, BinaryKind
from ....graph.operations.pointwise.logic import (
    Compare,
    CompareKind,
    Logical,
    LogicKind,
    Not,
    Where,
)
from ....graph.operations.pointwise.unary import Cast, Unary, UnaryKind
from ....graph.operations.tflite.eight_bit import FixedPointSquaredDifference
from ....graph.types import GraphError
from ..operator_node import Node, reads
from .rule_helpers import EIGHT_BITS, Settings, fused_bounds

COMPARISONS = {"EQUAL": CompareKind.EQUAL, "NOT_EQUAL": CompareKind.NOT_EQUAL,
               "LESS": CompareKind.LESS, "LESS_EQUAL": CompareKind.LESS_EQUAL,
               "GREATER": CompareKind.GREATER, "GREATER_EQUAL": CompareKind.GREATER_EQUAL}


def sides(node: Node) -> Settings:
    return {"left": node.input(0), "right": node.input(1)}


def eight_bits(node: Node) -> bool:
    """Whether an operator is one of 8-bit numbers; others with scales are refused."""
    return eight_bits_of(node, *range(len(node.operator.inputs)))


def eight_bits_of(node: Node, *positions: int) -> bool:
    """The same of some inputs only."""
    types = [node.type(position) for position in positions]
    if not any(each.is_quantized for each in types):
        return False
    dtypes = {node.declared_result().dtype, *(each.dtype for each in types)}
    if len(dtypes) > 1 or dtypes.pop() not in EIGHT_BITS:
        raise GraphError(f"operands are {', '.join(str(each.plain()) for each in types)} and the "
                         f"result is {node.declared_result().dtype}, but all must be int8, or all "
                         f"uint8, or real numbers")
    return True


@reads("ADD", options="AddOptions", inputs=2)
def add(node: Node) -> None:
    eight_bits(node)
    node.add(Binary(kind=BinaryKind.ADD, **sides(node), **fused_bounds(node)))


@reads("SUB", options="SubOptions", inputs=2)
def sub(node: Node) -> None:
    eight_bits(node)
    node.add(Binary(kind=BinaryKind.SUB, **sides(node), **fused_bounds(node)))


@reads("MUL", options="MulOptions", inputs=2)
def mul(node: Node) -> None:
    """The kernels compute the multiplier of quantized numbers in 32 bits."""
    scales: tuple[float, ...] = ()
    if eight_bits(node):
        one, other, after = (np.float32(each.scale) for each in (
            node.type(0).require_quantization(), node.type(1).require_quantization(),
            node.declared_quantization()))
        scales = (float(one * other / after),)
    node.add(Binary(kind=BinaryKind.MUL, scales=scales, **sides(node), **fused_bounds(node)))


@reads("DIV", options="DivOptions", inputs=2)
def div(node: Node) -> None:
    node.add(Binary(kind=BinaryKind.DIV, **sides(node), **fused_bounds(node)))


@reads("MINIMUM", "MAXIMUM", inputs=2)
def extreme(node: Node) -> None:
    kind = BinaryKind.MIN if node.operator.name == "MINIMUM" else BinaryKind.MAX
    node.add(Binary(kind=kind, **sides(node)))


@reads("POW", inputs=2)
def power(node: Node) -> None:
    node.add(Binary(kind=BinaryKind.POW, **sides(node)))


@reads("SQUARED_DIFFERENCE", inputs=2)
def squared_difference(node: Node) -> None:
    if eight_bits(node):
        if node.type(0).dtype != "int8":
            raise GraphError("TFLite has no squared difference of uint8")
        node.add(FixedPointSquaredDifference(**sides(node)))
        return
    difference = node.step("difference", Binary(kind=BinaryKind.SUB, **sides(node)))
    node.add(Binary(kind=BinaryKind.MUL, left=difference, right=difference))


@reads("FLOOR_DIV", inputs=2)
def floor_div(node: Node) -> None:
    """A quotient, rounded down. Of integers, the one without its fraction is one too large where
    what is left has not the divisor's sign."""
    quotient = node.step("quotient", Binary(kind=BinaryKind.DIV, **sides(node)))
    if node.type(0).is_float:
        node.add(Unary(kind=UnaryKind.FLOOR, x=quotient))
        return
    below, above = (node.step(kind.value, Binary(kind=kind, **sides(node)))
                    for kind in (BinaryKind.MOD, BinaryKind.FMOD))
    differs = node.step("differs", Compare(kind=CompareKind.NOT_EQUAL, left=below, right=above))
    one = node.step("one", Cast(x=differs, dtype=node.type(0).dtype))
    node.add(Binary(kind=BinaryKind.SUB, left=quotient, right=one))


@reads("FLOOR_MOD", inputs=2)
def floor_mod(node: Node) -> None:
    """What a quotient that was rounded down leaves."""
    if not node.type(0).is_float:
        node.add(Binary(kind=BinaryKind.MOD, **sides(node)))
        return
    quotient = node.step("quotient", Binary(kind=BinaryKind.DIV, **sides(node)))
    whole = node.step("whole", Unary(kind=UnaryKind.FLOOR, x=quotient))
    taken = node.step("taken", Binary(kind=BinaryKind.MUL, left=whole, right=node.input(1)))
    node.add(Binary(kind=BinaryKind.SUB, left=node.input(0), right=taken))


@reads("ADD_N", inputs=(2, 1 << 16))
def add_n(node: Node) -> None:
    """The sum of several tensors of one shape."""
    total = node.input(0)
    last = len(node.operator.inputs) - 1
    if eight_bits(node):
        raise GraphError("TFLite has no sum of several quantized tensors")
    for position in range(1, last):
        total = node.step("sum", Binary(kind=BinaryKind.ADD, left=total,
                                        right=node.input(position)))
    node.add(Binary(kind=BinaryKind.ADD, left=total, right=node.input(last)))


@reads(*COMPARISONS, inputs=2)
def compare(node: Node) -> None:
    node.add(Compare(kind=COMPARISONS[node.operator.name], **sides(node)))


@reads("LOGICAL_AND", "LOGICAL_OR", inputs=2)
def logical(node: Node) -> None:
    kind = LogicKind.AND if node.operator.name == "LOGICAL_AND" else LogicKind.OR
    node.add(Logical(kind=kind, **sides(node)))


@reads("LOGICAL_NOT")
def logical_not(node: Node) -> None:
    node.add(Not(x=node.input(0)))


@reads("SELECT", "SELECT_V2", inputs=3)
def select(node: Node) -> None:
    """SELECT may have a condition for each index of the first axis."""
    condition = node.input(0)
    (shape, wanted) = (node.type(0).shape, node.type(1).shape)
    if node.operator.name == "SELECT" and len(shape) == 1 < len(wanted):
        condition = node.step("condition", Reshape(
            x=condition, shape=(*shape, *(1,) * (len(wanted) - 1))))
    node.add(Where(condition=condition, left=node.input(1), right=node.input(2)))
