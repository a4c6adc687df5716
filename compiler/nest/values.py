"""Expressions of a loop nest as functions of its loops' values and its buffers' contents."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import CompileError
from ..expression.evaluate import Array, as_type, numpy_type
from ..expression.expression import (
    ARITHMETIC,
    BOOL,
    COMPARISONS,
    INDEX,
    LOGIC,
    Axis,
    Binary,
    Call,
    Cast,
    Constant,
    Expression,
    Select,
)
from .nest import Access, Buffer

# On NumPy's scalars, Python's own operators do what the functions in `scalars` do, only faster.
# Indices are plain integers.
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    **ARITHMETIC, **COMPARISONS, **LOGIC,
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
    "%": operator.mod, ">>": operator.rshift, "<<": operator.lshift,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le}
ON_INDICES: dict[str, Callable[[Any, Any], Any]] = {**OPERATORS, "min": min, "max": max}


@dataclass
class State:
    """The values of the loops around a statement, and the contents of buffers."""

    axes: dict[Axis, int]
    arrays: dict[Buffer, Array]

    def copy(self) -> State:
        """The state of another thread: its own axes and allocations, on the same arrays."""
        return State(dict(self.axes), dict(self.arrays))


Value = Callable[[State], Any]


def check_inside(buffer: Buffer, indices: tuple[int, ...]) -> None:
    """NumPy would count a negative index from the end."""
    for index, extent in zip(indices, buffer.shape, strict=True):
        if not 0 <= index < extent:
            raise CompileError(f"{buffer.name} of shape {buffer.shape} has no element "
                               f"{list(indices)}")


def indices_of(expressions: tuple[Expression, ...]) -> Callable[[State], tuple[int, ...]]:
    values = [value_of(each) for each in expressions]
    return lambda state: tuple([value(state) for value in values])


def value_of(node: Expression) -> Value:
    """A function that computes the value of an expression; that of an index is a plain int."""
    match node:
        case Constant():
            plain, kind = node.value, numpy_type(node.dtype).type
            constant = plain if node.dtype == INDEX else kind(plain)
            return lambda state: constant
        case Axis():
            return lambda state: state.axes[node]
        case Binary():
            function = (ON_INDICES if node.left.dtype == INDEX else OPERATORS)[node.operator]
            left, right = value_of(node.left), value_of(node.right)
            return lambda state: function(left(state), right(state))
        case Select():
            condition, then, otherwise = map(value_of, node.operands())
            return lambda state: then(state) if condition(state) else otherwise(state)
        case Cast():
            return _cast(node)
        case Call():
            return _call(node)
        case Access():
            return _element(node)
    raise AssertionError(f"no meaning for {node}")


def _number(node: Expression) -> Value:
    """Like `value_of`, but an index is a NumPy scalar too."""
    value, kind = value_of(node), numpy_type(node.dtype).type
    return (lambda state: kind(value(state))) if node.dtype in (INDEX, BOOL) else value


def _cast(node: Cast) -> Value:
    value, dtype = _number(node.value), node.dtype
    if dtype == INDEX:
        return lambda state: int(as_type(value(state), dtype))
    return lambda state: as_type(value(state), dtype)


def _call(node: Call) -> Value:
    function, dtype = node.function.evaluate, numpy_type(node.dtype)
    arguments = [_number(each) for each in node.arguments]
    return lambda state: np.asarray(function(*(each(state) for each in arguments)), dtype)[()]


def _element(node: Access) -> Value:
    buffer, place = node.buffer, indices_of(node.indices)

    def value(state: State) -> Any:
        indices = place(state)
        check_inside(buffer, indices)
        return state.arrays[buffer][indices]

    return value
