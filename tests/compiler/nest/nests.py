"""Loop nests to print, refuse and run."""

from __future__ import annotations

from dataclasses import dataclass, field

from microtron.compiler.expression.expression import Axis, Constant, Expression, maximum
from microtron.compiler.nest.nest import (
    Access,
    Allocate,
    Assign,
    Buffer,
    Copy,
    Loop,
    LoopKind,
    Nest,
    Region,
    Scope,
    Statement,
    make_sequence,
)


def access(buffer: Buffer, *indices: Expression | int) -> Access:
    return Access(buffer, tuple(map(as_index, indices)))


def region(buffer: Buffer, *sides: tuple[Expression | int, int]) -> Region:
    """A box, from the start and the extent of each dimension."""
    return Region(buffer, tuple(as_index(start) for start, _ in sides),
                  tuple(extent for _, extent in sides))


def as_index(value: Expression | int) -> Expression:
    return value if isinstance(value, Expression) else Constant(value)


def loop(axis: Axis, *body: Statement) -> Loop:
    return Loop(axis, make_sequence(*body))


def threads(axis: Axis, *body: Statement) -> Loop:
    return Loop(axis, make_sequence(*body), LoopKind.THREADS)


@dataclass
class Relu:
    """max(x, 0) row by row, in threads, each through a padded buffer of its own."""

    x: Buffer = field(default_factory=lambda: Buffer("x", (4, 10), "int8"))
    y: Buffer = field(default_factory=lambda: Buffer("y", (4, 10), "int8"))
    row: Buffer = field(default_factory=lambda: Buffer("a", (1, 16), "int8", Scope.INP))
    i: Axis = field(default_factory=lambda: Axis("i", 4))
    j: Axis = field(default_factory=lambda: Axis("j", 10))

    def load(self) -> Copy:
        return Copy(region(self.row, (0, 1), (0, 16)), region(self.x, (self.i, 1), (0, 16)), 0)

    def work(self) -> Statement:
        return loop(self.j, Assign(access(self.y, self.i, self.j),
                                   maximum(access(self.row, 0, self.j), 0)))

    def nest(self) -> Nest:
        return Nest((self.x,), (self.y,), threads(self.i, Allocate(
            self.row, make_sequence(self.load(), self.work()))))

    def sharing_the_row(self) -> Nest:
        """Wrong: threads use one buffer."""
        return Nest((self.x,), (self.y,), Allocate(self.row, threads(
            self.i, self.load(), self.work())))
