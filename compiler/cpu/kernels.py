"""A loop nest as kernels: its outermost statements, one after the other.

Buffers between them lie in scratch memory. So do large ones inside a kernel, one for each iteration
that threads share; small ones are on the stack, and mostly in registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from ...base.classes.dataclass import dataclass
from ..expression.expression import Axis, Expression, walk
from ..expression.rewrite import rewrite
from ..nest.nest import (
    Access,
    Allocate,
    Assign,
    Buffer,
    Scope,
    Sequence,
    Statement,
    When,
    parallel_loops,
    statements_of,
    with_children,
)
from .code.emit_kernel import Kernel
from .code.writer import SIZES

STACK = 16 << 10            # bytes of a buffer that may lie on the stack


@dataclass(frozen=True)
class Steps:
    """Kernels in order, and the buffers that live from one to the next."""

    kernels: tuple[Kernel, ...]
    scratch: tuple[Buffer, ...]


def steps_of(body: Statement, name: str, node: str) -> Steps:
    """A nest's body in steps, called after a node of the graph."""
    kernels: list[Kernel] = []
    scratch: list[Buffer] = []
    for number, statement in enumerate(_outermost(body, scratch)):
        statement = _hoist_large_buffers(statement, scratch)
        reads, writes = _reads_and_writes(statement)
        kernels.append(Kernel(f"{name}_{number}" if number else name, statement, reads, writes,
                              node))
    return Steps(tuple(kernels), tuple(scratch))


def _outermost(statement: Statement, scratch: list[Buffer]) -> Iterator[Statement]:
    match statement:
        case Sequence():
            for each in statement.statements:
                yield from _outermost(each, scratch)
        case Allocate():
            scratch.append(statement.buffer)
            yield from _outermost(statement.body, scratch)
        case _:
            yield statement


def _hoist_large_buffers(statement: Statement, scratch: list[Buffer]) -> Statement:
    """The statement with large buffers outside of it."""
    shared = tuple(loop.axis for loop in parallel_loops(statement))
    for each in list(statements_of(statement)):
        if isinstance(each, Allocate) and bytes_of(each.buffer) > STACK:
            wide = replace(each.buffer, scope=Scope.DRAM, shape=(
                *(axis.extent for axis in shared), *each.buffer.shape))
            scratch.append(wide)
            statement = _replace_buffer(statement, each.buffer, wide, shared)
    return statement


def bytes_of(buffer: Buffer) -> int:
    return prod(buffer.shape) * SIZES[buffer.dtype]


def _replace_buffer(statement: Statement, old: Buffer, new: Buffer,
                    shared: tuple[Axis, ...]) -> Statement:
    """The statement with another buffer, which has a place for each iteration that is shared."""
    def change(node: Expression) -> Expression | None:
        if isinstance(node, Access) and node.buffer is old:
            indices = tuple(rewrite(each, change) for each in node.indices)
            return Access(new, (*shared, *indices))
        return None

    def move(each: Statement) -> Statement:
        if isinstance(each, Allocate) and each.buffer is old:
            return move(each.body)
        if isinstance(each, Assign):
            target = rewrite(each.target, change)
            assert isinstance(target, Access)
            return Assign(target, rewrite(each.value, change))
        children = tuple(move(child) for child in each.children())
        if isinstance(each, When):
            return When(rewrite(each.condition, change), children[0])
        return with_children(each, children) if children else each
    return move(statement)


def _reads_and_writes(statement: Statement) -> tuple[tuple[Buffer, ...], tuple[Buffer, ...]]:
    """The buffers that a statement only reads, and those that it writes."""
    reads: dict[Buffer, None] = {}
    writes: dict[Buffer, None] = {}
    own: set[Buffer] = set()
    for each in statements_of(statement):
        expressions: tuple[Expression, ...] = ()
        match each:
            case Allocate():
                own.add(each.buffer)
            case Assign():
                writes[each.target.buffer] = None
                expressions = (*each.target.indices, each.value)
            case When():
                expressions = (each.condition,)
        for expression in expressions:
            reads |= dict.fromkeys(node.buffer for node in walk(expression)
                                   if isinstance(node, Access))
    return (tuple(each for each in reads if each not in own and each not in writes),
            tuple(each for each in writes if each not in own))
