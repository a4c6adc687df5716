"""The nodes of scalar expressions, and how operators build them.

Nodes are frozen and small. One that is computed once and used in several places is one object:
whatever goes through an expression meets it once. Python's operators build them; types are never
converted in silence: a plain number takes the type of the other side, anything else needs a `cast`.
Axes and positions have the type `index`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, SupportsFloat, TypeAlias

import numpy as np

from ...base.classes.dataclass import unguarded
from ..errors import CompileError
from .scalars import (
    ARITHMETIC,
    BOOL,
    FLOATS,
    INDEX,
    INTEGERS,
    LIMITS,
    LOGIC,
    OF_FLOATS,
    OF_INTEGERS,
    TYPES,
)

SUMS = ("+", "-", "*")
Operand: TypeAlias = "Expression | SupportsFloat"     # a number takes the type of the other side
Evaluate: TypeAlias = Callable[..., Any]              # of arrays or scalars of NumPy's


class Expression:
    """Anything that has a value. `dtype` is its type."""

    dtype: str

    def __add__(self, other: Operand) -> Expression:
        return binary("+", self, other)

    def __radd__(self, other: Operand) -> Expression:
        return binary("+", other, self)

    def __sub__(self, other: Operand) -> Expression:
        return binary("-", self, other)

    def __rsub__(self, other: Operand) -> Expression:
        return binary("-", other, self)

    def __mul__(self, other: Operand) -> Expression:
        return binary("*", self, other)

    def __rmul__(self, other: Operand) -> Expression:
        return binary("*", other, self)

    def __truediv__(self, other: Operand) -> Expression:
        return binary("/", self, other)

    def __rtruediv__(self, other: Operand) -> Expression:
        return binary("/", other, self)

    def __floordiv__(self, other: Operand) -> Expression:
        return binary("//", self, other)

    def __mod__(self, other: Operand) -> Expression:
        return binary("%", self, other)

    def __rshift__(self, other: Operand) -> Expression:
        return binary(">>", self, other)

    def __lshift__(self, other: Operand) -> Expression:
        return binary("<<", self, other)

    def __and__(self, other: Operand) -> Expression:
        return binary("&", self, other)

    def __or__(self, other: Operand) -> Expression:
        return binary("|", self, other)

    def __xor__(self, other: Operand) -> Expression:
        return binary("^", self, other)

    def __lt__(self, other: Operand) -> Expression:
        return binary("<", self, other)

    def __le__(self, other: Operand) -> Expression:
        return binary("<=", self, other)

    def __gt__(self, other: Operand) -> Expression:
        return binary("<", other, self)

    def __ge__(self, other: Operand) -> Expression:
        return binary("<=", other, self)

    def equals(self, other: Operand) -> Expression:
        """Equality as an expression; `==` compares the nodes themselves."""
        return binary("==", self, other)

    def cast(self, dtype: str) -> Expression:
        return self if dtype == self.dtype else Cast(dtype, self)

    def __bool__(self) -> bool:
        raise CompileError(f"{self} has no value yet; use `select`, `both` or `either` instead of "
                           f"if, and, or")

    def operands(self) -> tuple[Expression, ...]:
        """The expressions directly inside this one."""
        return ()

    def with_operands(self, operands: tuple[Expression, ...]) -> Expression:
        """The same node with other operands, in the order of `operands()`."""
        assert not operands, f"{type(self).__name__} must say how its operands are replaced"
        return self


@unguarded(frozen=True, repr=False)
class Constant(Expression):
    """A number."""

    value: int | float
    dtype: str = INDEX

    def __str__(self) -> str:
        return str(self.value)


@unguarded(frozen=True, repr=False)
class Binary(Expression):
    """An operator between two values of one type."""

    operator: str
    left: Expression
    right: Expression

    @property
    def dtype(self) -> str:                                         # type: ignore[override]
        return self.left.dtype if self.operator in ARITHMETIC else BOOL

    def operands(self) -> tuple[Expression, ...]:
        return self.left, self.right

    def with_operands(self, operands: tuple[Expression, ...]) -> Expression:
        return binary(self.operator, *operands)

    def __str__(self) -> str:
        if self.operator in ("min", "max"):
            return f"{self.operator}({self.left}, {self.right})"
        return f"({self.left} {self.operator} {self.right})"


@unguarded(frozen=True, repr=False)
class Cast(Expression):
    """A value as another type; integers that do not fit lose their high bits."""

    dtype: str
    value: Expression

    def __post_init__(self) -> None:
        if self.dtype not in TYPES:
            raise CompileError(f"there is no type {self.dtype!r}; there are {', '.join(TYPES)}")

    def operands(self) -> tuple[Expression, ...]:
        return (self.value,)

    def with_operands(self, operands: tuple[Expression, ...]) -> Expression:
        return Cast(self.dtype, *operands)

    def __str__(self) -> str:
        return f"{self.dtype}({self.value})"


@unguarded(frozen=True, repr=False)
class Select(Expression):
    """One of two values. Only the chosen one has to exist: the other may lie outside a tensor."""

    condition: Expression
    then: Expression
    otherwise: Expression

    @property
    def dtype(self) -> str:                                         # type: ignore[override]
        return self.then.dtype

    def operands(self) -> tuple[Expression, ...]:
        return self.condition, self.then, self.otherwise

    def with_operands(self, operands: tuple[Expression, ...]) -> Expression:
        return Select(*operands)

    def __str__(self) -> str:
        return f"select({self.condition}, {self.then}, {self.otherwise})"


@unguarded(frozen=True)
class Function:
    """A named function of scalars, given by what it does to arrays. To be compiled for the CPU, it
    is also an expression of its arguments, or the name of an instruction that LLVM has for it."""

    name: str
    dtype: str
    evaluate: Evaluate
    definition: Callable[..., Expression] | None = field(default=None, kw_only=True)
    intrinsic: str | None = field(default=None, kw_only=True)


@unguarded(frozen=True, repr=False)
class Call(Expression):
    """A function of scalars, such as a requantization."""

    function: Function
    arguments: tuple[Expression, ...]

    @property
    def dtype(self) -> str:                                         # type: ignore[override]
        return self.function.dtype

    def operands(self) -> tuple[Expression, ...]:
        return self.arguments

    def with_operands(self, operands: tuple[Expression, ...]) -> Expression:
        return Call(self.function, operands)

    def __str__(self) -> str:
        return f"{self.function.name}({', '.join(map(str, self.arguments))})"


def as_expression(value: Operand, dtype: str = INDEX) -> Expression:
    """A plain number becomes a constant of the given type."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise CompileError(f"{value!r} is neither an expression nor a number")
    number = value.item() if isinstance(value, np.generic) else value
    if dtype == BOOL:
        raise CompileError(f"{number} is a number, but the other side has type {dtype}")
    if isinstance(number, float) and dtype not in FLOATS:
        raise CompileError(f"{number} is not a whole number, but the other side has type {dtype}")
    if dtype in INTEGERS and not LIMITS[dtype][0] <= number <= LIMITS[dtype][1]:
        raise CompileError(f"{number} does not fit in {dtype}")
    return Constant(number, dtype)


def binary(operator: str, left: Operand, right: Operand) -> Expression:
    """An operator applied, with constants folded where both sides are known."""
    if operator in SUMS and isinstance(left, Expression) and left.dtype == INDEX:
        other = Constant(right) if type(right) is int else right
        if isinstance(other, Expression) and other.dtype == INDEX:
            return _sum_of_indices(operator, left, other)
    left, right = coerce_operands(operator, left, right)
    if operator in LOGIC and left.dtype != BOOL:
        raise CompileError(f"{left} {operator} {right}: both sides must be bool, not {left.dtype}")
    if operator in ARITHMETIC and left.dtype == BOOL:
        raise CompileError(f"{left} {operator} {right}: both sides must be numbers, not bool")
    if operator in OF_INTEGERS and left.dtype in FLOATS:
        raise CompileError(f"{left} {operator} {right}: both sides must be whole numbers, not "
                           f"{left.dtype}")
    if operator in OF_FLOATS and left.dtype not in FLOATS:
        raise CompileError(f"{left} {operator} {right}: both sides must be {' or '.join(FLOATS)}, "
                           f"not {left.dtype}; // rounds down")
    if operator in ("//", "%") and isinstance(right, Constant) and right.value == 0:
        raise CompileError(f"{left} {operator} {right}: nothing is divided by zero")
    if left.dtype == INDEX and isinstance(left, Constant) and isinstance(right, Constant) and (
            operator in ARITHMETIC):
        return Constant(int(ARITHMETIC[operator](left.value, right.value)), INDEX)
    simpler = _simpler(operator, left, right)
    return Binary(operator, left, right) if simpler is None else simpler


def _sum_of_indices(operator: str, left: Expression, right: Expression) -> Expression:
    """The same for what indices are made of, and sooner: there are very many of them."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        return Constant(int(ARITHMETIC[operator](left.value, right.value)))
    simpler = _simpler(operator, left, right)
    return Binary(operator, left, right) if simpler is None else simpler


def coerce_operands(operator: str, left: Operand, right: Operand) -> tuple[Expression, Expression]:
    """The two sides of an operator, one of which may be a plain number, as expressions of one
    type."""
    if not isinstance(left, Expression):
        left = as_expression(left, right.dtype if isinstance(right, Expression) else INDEX)
    right = as_expression(right, left.dtype)
    if left.dtype != right.dtype:
        raise CompileError(f"{left} {operator} {right}: the types are {left.dtype} and "
                           f"{right.dtype}; cast one of them")
    return left, right


def _simpler(operator: str, left: Expression, right: Expression) -> Expression | None:
    """x + 0, x * 1 and the like: indices are full of them."""
    for value, other in ((left, right), (right, left)):
        if isinstance(value, Constant) and value.dtype == INDEX:
            if operator == "+" and value.value == 0:
                return other
            if operator == "*" and value.value in (0, 1):
                return other if value.value else Constant(0)
    if isinstance(right, Constant) and right.dtype == INDEX:
        if (operator == "-" and right.value == 0) or (operator == "//" and right.value == 1):
            return left
        if operator == "%" and right.value == 1:
            return Constant(0)
    return None


def walk(expression: Expression) -> Iterator[Expression]:
    """An expression and everything inside it, outside first. A node that is used in several places
    comes once: such expressions may be long if they are written out."""
    seen: set[int] = set()
    left = [expression]
    while left:
        node = left.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            left += reversed(node.operands())
