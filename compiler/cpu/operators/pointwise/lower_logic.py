"""Comparisons, truth values, and the choice between two tensors."""

from __future__ import annotations

from ....expression.expression import BOOL, Expression, Select, binary, both, either, negate
from ....expression.tensor import Tensor
from ....graph.operations.pointwise.logic import (
    Compare,
    CompareKind,
    Logical,
    LogicKind,
    Not,
    Where,
)
from ....graph.types import TensorType
from ...registry import Operand, lowers
from ..lowering import Axes, at, each

OPERATORS = {CompareKind.EQUAL: "==", CompareKind.NOT_EQUAL: "!=", CompareKind.LESS: "<",
             CompareKind.LESS_EQUAL: "<=", CompareKind.GREATER: "<",
             CompareKind.GREATER_EQUAL: "<="}
TURNED = (CompareKind.GREATER, CompareKind.GREATER_EQUAL)


@lowers(Compare)
def compare(operation: Compare, result: TensorType, left: Operand, right: Operand) -> Tensor:
    def element(i: Axes) -> Expression:
        sides = [at(left, i), at(right, i)]
        if left.type.dtype == BOOL:
            sides = [side.cast("uint8") for side in sides]
        if operation.kind in TURNED:
            sides.reverse()
        return binary(OPERATORS[operation.kind], *sides)

    return each(operation, result, element)


@lowers(Logical)
def logical(operation: Logical, result: TensorType, left: Operand, right: Operand) -> Tensor:
    def element(i: Axes) -> Expression:
        one, other = at(left, i), at(right, i)
        match operation.kind:
            case LogicKind.AND:
                return both(one, other)
            case LogicKind.OR:
                return either(one, other)
        return binary("!=", one, other)

    return each(operation, result, element)


@lowers(Not)
def opposite(operation: Not, result: TensorType, x: Operand) -> Tensor:
    return each(operation, result, lambda i: negate(at(x, i)))


@lowers(Where)
def where(operation: Where, result: TensorType, condition: Operand, left: Operand,
          right: Operand) -> Tensor:
    return each(operation, result, lambda i: Select(at(condition, i), at(left, i), at(right, i)))
