"""Loop nests in which one step follows from another: how they are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...expression.expression import Axis, Constant, Expression, as_expression, maximum, minimum
from ...nest.nest import (
    Access,
    Allocate,
    Assign,
    Buffer,
    Loop,
    LoopKind,
    Nest,
    Scope,
    Statement,
    When,
    make_sequence,
)
from ..registry import BufferOperand


def at(buffer: Buffer, *indices: Expression | int) -> Access:
    return Access(buffer, tuple(as_expression(index) for index in indices))


def assign(buffer: Buffer, indices: Sequence[Expression | int],
           value: Expression | float) -> Assign:
    """buffer[indices] = value"""
    number = value if isinstance(value, Expression) else Constant(value, buffer.dtype)
    return Assign(at(buffer, *indices), number)


def loop_over(extents: Sequence[int], body: Callable[[tuple[Axis, ...]], Statement],
              kind: LoopKind = LoopKind.SERIAL) -> Statement:
    """Loops around a body of their axes, of which the outermost is of some kind."""
    axes = tuple(Axis(f"i{place}", extent) for place, extent in enumerate(extents))
    statement = body(axes)
    for axis in reversed(axes):
        statement = Loop(axis, statement, kind if axis is axes[0] else LoopKind.SERIAL)
    return statement


def with_buffer(name: str, shape: Sequence[int], dtype: str,
                body: Callable[[Buffer], Statement]) -> Statement:
    """A buffer that exists while a body of it runs."""
    buffer = Buffer(name, tuple(shape), dtype, Scope.LOCAL)
    return Allocate(buffer, body(buffer))


def when(condition: Expression, *statements: Statement) -> Statement:
    return When(condition, make_sequence(*statements))


def place_of(value: Expression, size: int) -> Expression:
    """An index that was computed, and that is inside."""
    return minimum(maximum(value.cast("index"), 0), size - 1)


def nest_of(target: Buffer, body: Statement, *operands: BufferOperand) -> Nest:
    """A nest that fills a buffer from operands that have elements."""
    inputs = dict.fromkeys(each.buffer for each in operands if each.type.size)
    return Nest(tuple(inputs), (target,), body)
