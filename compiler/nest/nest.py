"""The loop nest: statements over buffers, between schedules and instructions.

A nest says in which order what is computed, and where it lies. Every transformation takes a nest
and gives a nest; `print`, `verify` and `interpret` go with each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

from ..expression.expression import Axis, Expression


class Scope(Enum):
    """Where a buffer lies."""

    DRAM = "dram"
    UOP = "uop"
    INP = "inp"
    WGT = "wgt"
    ACC = "acc"
    OUT = "out"
    LOCAL = "local"             # on the CPU


LOADED = (Scope.UOP, Scope.INP, Scope.WGT, Scope.ACC)       # from DRAM
STORED = (Scope.ACC, Scope.OUT)                             # to DRAM
ON_CHIP = (*LOADED, Scope.OUT)
DMA = "dma"                     # the mark of loops that are to become a transfer


class LoopKind(Enum):
    """How the iterations of a loop relate."""

    SERIAL = "for"
    UNROLLED = "unroll"
    THREADS = "threads"         # virtual threads: independent, interleaved


@dataclass(frozen=True, eq=False)
class Buffer:
    """An array somewhere. Two buffers are the same only if they are one object.

    With `tile_rows`, rows of the last dimension are addressed one by one; so many are a tile.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scope: Scope = Scope.DRAM
    tile_rows: int = 0

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Access(Expression):
    """One element of a buffer."""

    buffer: Buffer
    indices: tuple[Expression, ...]

    @property
    def dtype(self) -> str:                                         # type: ignore[override]
        return self.buffer.dtype

    def operands(self) -> tuple[Expression, ...]:
        return self.indices

    def with_operands(self, operands: tuple[Expression, ...]) -> Expression:
        return Access(self.buffer, operands)

    def __str__(self) -> str:
        return f"{self.buffer.name}[{', '.join(map(str, self.indices))}]"


@dataclass(frozen=True)
class Region:
    """A box of a buffer: where it starts, and its extents, as many as the buffer has."""

    buffer: Buffer
    start: tuple[Expression, ...]
    extents: tuple[int, ...]

    def __str__(self) -> str:
        parts = (f"{start}" if extent == 1 else f"{start} :+ {extent}"
                 for start, extent in zip(self.start, self.extents, strict=True))
        return f"{self.buffer.name}[{', '.join(parts)}]"


class Statement:
    """Something that happens."""

    def children(self) -> tuple[Statement, ...]:
        return ()


@dataclass(frozen=True)
class Assign(Statement):
    """target = value"""

    target: Access
    value: Expression


@dataclass(frozen=True)
class Copy(Statement):
    """target = source, a box of the same extents. Where the source box leaves its buffer, the
    target gets `padding`; without padding, nothing. What leaves the target is not copied."""

    target: Region
    source: Region
    padding: int | None = None


@dataclass(frozen=True)
class Invoke(Statement):
    """A hardware intrinsic, by name, on regions in the order of its declaration: first what it
    writes, and may read, then what it only reads. What the name means is for the back end to know.
    """

    intrinsic: str
    regions: tuple[Region, ...]


@dataclass(frozen=True)
class Start(Statement):
    """Everything in a region gets the value from which an intrinsic's sums, minima or maxima
    start."""

    intrinsic: str
    target: Region
    value: int


@dataclass(frozen=True)
class Loop(Statement):
    """The body for each value of an axis, in order."""

    axis: Axis
    body: Statement
    kind: LoopKind = LoopKind.SERIAL

    def children(self) -> tuple[Statement, ...]:
        return (self.body,)


@dataclass(frozen=True)
class When(Statement):
    """The body, if a condition holds."""

    condition: Expression
    body: Statement

    def children(self) -> tuple[Statement, ...]:
        return (self.body,)


@dataclass(frozen=True)
class Sequence(Statement):
    """Statements one after the other."""

    statements: tuple[Statement, ...]

    def children(self) -> tuple[Statement, ...]:
        return self.statements


@dataclass(frozen=True)
class Allocate(Statement):
    """A buffer that exists while the body runs; what it holds at first is undefined. With several
    `copies` in memory, the buffer is another one each time, by turns."""

    buffer: Buffer
    body: Statement
    copies: int = 1

    def children(self) -> tuple[Statement, ...]:
        return (self.body,)


@dataclass(frozen=True)
class Marked(Statement):
    """Loops that are to become a hardware intrinsic, or the start of its sums, or, where the
    intrinsic is `DMA`, a transfer."""

    intrinsic: str
    body: Statement
    starts: bool = False

    def children(self) -> tuple[Statement, ...]:
        return (self.body,)


@dataclass(frozen=True)
class Nest:
    """A whole computation. Buffers that are not allocated inside come from outside."""

    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    body: Statement
    notes: dict[str, str] = field(default_factory=dict, compare=False)


def in_sequence(*statements: Statement) -> Statement:
    """Statements one after the other, flat; one alone is itself."""
    flat: list[Statement] = []
    for statement in statements:
        flat += statement.statements if isinstance(statement, Sequence) else (statement,)
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def statements_of(statement: Statement) -> Iterator[Statement]:
    """A statement and all inside it, outside first."""
    yield statement
    for child in statement.children():
        yield from statements_of(child)


def with_children(statement: Statement, children: tuple[Statement, ...]) -> Statement:
    """The same statement around other children, in the order of `children()`."""
    match statement:
        case Sequence():
            return in_sequence(*children)
        case Loop() | When() | Allocate() | Marked():
            return replace(statement, body=children[0])
    return statement
