"""Expressions of a loop nest as functions of its loops' values and its buffers' contents."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np

from ...base.classes.dataclass import dataclass
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
    walk,
)
from .nest import Access, Buffer

Scalar: TypeAlias = Any     # a number of NumPy's; that of an index is Python's

# On NumPy's scalars, Python's own operators do what the functions in `scalars` do, only faster.
# Indices are plain integers.
OPERATORS: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    **ARITHMETIC, **COMPARISONS, **LOGIC,
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
    "%": operator.mod, ">>": operator.rshift, "<<": operator.lshift,
    "/": operator.truediv, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le}
ON_INDICES: dict[str, Callable[[Scalar, Scalar], Scalar]] = {**OPERATORS, "min": min, "max": max}


@dataclass
class State:
    """The values of the loops around a statement, and the contents of buffers."""

    axes: dict[Axis, int]
    arrays: dict[Buffer, Array]
    shared: dict[int, Scalar] = field(default_factory=dict)     # by node, for one expression

    def copy(self) -> State:
        """The state of another thread: its own axes and allocations, on the same arrays."""
        return State(dict(self.axes), dict(self.arrays))


Value = Callable[[State], Scalar]


def check_inside(buffer: Buffer, indices: tuple[int, ...]) -> None:
    """NumPy would count a negative index from the end."""
    for index, extent in zip(indices, buffer.shape, strict=True):
        if not 0 <= index < extent:
            raise CompileError(f"{buffer.name} of shape {buffer.shape} has no element "
                               f"{list(indices)}")


def indices_of(expressions: tuple[Expression, ...]) -> Callable[[State], tuple[int, ...]]:
    return _compile_all([value_of(each) for each in expressions])


def _compile_all(values: list[Value]) -> Callable[[State], tuple[int, ...]]:
    return lambda state: tuple([value(state) for value in values])


def value_of(node: Expression) -> Value:
    """A function that computes the value of an expression; that of an index is a plain int."""
    functions = _Functions(node)
    value = functions.of(node)
    if not functions.shared:
        return value

    def fresh(state: State) -> Scalar:
        state.shared.clear()
        return value(state)

    return fresh


class _Functions:
    """The functions that compute the nodes of one expression. A node that is used more than once
    is computed when it is first needed, and remembered."""

    def __init__(self, expression: Expression):
        uses = Counter(id(each) for node in walk(expression) for each in node.operands()
                       if each.operands())
        self.shared = {node for node, count in uses.items() if count > 1}
        self.made: dict[int, Value] = {}

    def of(self, node: Expression) -> Value:
        if id(node) not in self.made:
            value = self._compute(node)
            self.made[id(node)] = self._once(id(node), value) if id(node) in self.shared else value
        return self.made[id(node)]

    def _once(self, place: int, value: Value) -> Value:
        def once(state: State) -> Scalar:
            if place not in state.shared:
                state.shared[place] = value(state)
            return state.shared[place]

        return once

    def _compute(self, node: Expression) -> Value:
        match node:
            case Constant():
                plain, kind = node.value, numpy_type(node.dtype).type
                constant = plain if node.dtype == INDEX else kind(plain)
                return lambda state: constant
            case Axis():
                return lambda state: state.axes[node]
            case Binary():
                function = (ON_INDICES if node.left.dtype == INDEX else OPERATORS)[node.operator]
                left, right = self.of(node.left), self.of(node.right)
                return lambda state: function(left(state), right(state))
            case Select():
                condition, then, otherwise = map(self.of, node.operands())
                return lambda state: then(state) if condition(state) else otherwise(state)
            case Cast():
                return self._cast(node)
            case Call():
                return self._call(node)
            case Access():
                return self._element(node)
        raise AssertionError(f"no meaning for {node}")

    def _number(self, node: Expression) -> Value:
        """The value of a node, as a NumPy scalar even if it is an index."""
        value, kind = self.of(node), numpy_type(node.dtype).type
        return (lambda state: kind(value(state))) if node.dtype in (INDEX, BOOL) else value

    def _cast(self, node: Cast) -> Value:
        value, dtype = self._number(node.value), node.dtype
        if dtype == INDEX:
            return lambda state: int(as_type(value(state), dtype))
        return lambda state: as_type(value(state), dtype)

    def _call(self, node: Call) -> Value:
        function, dtype = node.function.evaluate, numpy_type(node.dtype)
        arguments = [self._number(each) for each in node.arguments]
        return lambda state: np.asarray(function(*(each(state) for each in arguments)), dtype)[()]

    def _element(self, node: Access) -> Value:
        buffer, place = node.buffer, _compile_all([self.of(each) for each in node.indices])

        def value(state: State) -> Scalar:
            indices = place(state)
            check_inside(buffer, indices)
            return state.arrays[buffer][indices]

        return value
