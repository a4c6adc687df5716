"""Scalar expressions: what one element of a tensor is.

    select(both(1 <= y, y < 9), x[y - 1].cast("int32"), 0)

Nodes and Python's operators on them are in `nodes`, those that refer to tensors in `elements`; here
are the functions that go with them, and everything that expressions are written with.
"""

from __future__ import annotations

from functools import reduce

from ..errors import CompileError
from .elements import Axis, Element, Reduction
from .nodes import (
    Binary,
    Call,
    Cast,
    Constant,
    Expression,
    Function,
    Operand,
    Select,
    as_expression,
    binary,
    coerce_operands,
    walk,
)
from .scalars import ARITHMETIC, BOOL, COMPARISONS, FLOATS, INDEX, INTEGERS, LIMITS, LOGIC, TYPES

__all__ = [
    "ARITHMETIC", "BOOL", "COMPARISONS", "FLOATS", "INDEX", "INTEGERS", "LIMITS", "LOGIC", "TYPES",
    "Axis", "Binary", "Call", "Cast", "Constant", "Element", "Expression", "Function",
    "Reduction", "Select",
    "as_expression", "binary", "both", "either", "largest", "least", "maximum", "minimum",
    "negate", "product_over", "select", "total", "walk",
]


def minimum(left: Operand, right: Operand) -> Expression:
    return binary("min", left, right)


def maximum(left: Operand, right: Operand) -> Expression:
    return binary("max", left, right)


def both(*conditions: Expression) -> Expression:
    """All of some conditions."""
    return reduce(lambda left, right: binary("and", left, right), conditions)


def either(*conditions: Expression) -> Expression:
    """At least one of some conditions."""
    return reduce(lambda left, right: binary("or", left, right), conditions)


def negate(condition: Expression) -> Expression:
    """Where a condition does not hold."""
    return binary("==", condition, Constant(False, BOOL))


def select(condition: Expression, then: Operand, otherwise: Operand) -> Expression:
    """`then` where a condition holds, `otherwise` elsewhere."""
    if not isinstance(condition, Expression) or condition.dtype != BOOL:
        raise CompileError(f"select: {condition} is not a condition, such as i < 3")
    return Select(condition, *coerce_operands("or", then, otherwise))


def total(value: Expression, *axes: Axis) -> Reduction:
    """The sum over reduce axes."""
    return _reduction("+", value, axes)


def largest(value: Expression, *axes: Axis) -> Reduction:
    """The maximum over reduce axes."""
    return _reduction("max", value, axes)


def least(value: Expression, *axes: Axis) -> Reduction:
    """The minimum over reduce axes."""
    return _reduction("min", value, axes)


def product_over(value: Expression, *axes: Axis) -> Reduction:
    """The product over reduce axes."""
    return _reduction("*", value, axes)


def _reduction(combiner: str, value: Expression, axes: tuple[Axis, ...]) -> Reduction:
    if not isinstance(value, Expression) or value.dtype == BOOL:
        raise CompileError(f"{value} is not an expression that has a sum or a maximum")
    for place, axis in enumerate(axes):
        if not isinstance(axis, Axis) or not axis.reduces:
            raise CompileError(f"{axis} is not a reduce axis")
        if axis in axes[:place]:
            raise CompileError(f"axis {axis} is named twice")
    if not axes:
        raise CompileError(f"{value}: name at least one axis to reduce over")
    return Reduction(combiner, value, axes)
