"""The loop nest: statements over buffers, between schedules and instructions.

A nest says what is computed in which order, and where the data lie. Every transformation turns a
nest into a nest that can be listed (`listing`), checked (`verify`) and run (`run`).
"""

from __future__ import annotations

from dataclasses import field, replace
from enum import Enum

from ...base.classes.dataclass import unguarded
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
TILE_RANK = 2                   # dimensions of a tile
DMA = "dma"                     # marks loops that are to become a transfer
INSIDE = "inside"               # what a statement remembers everything inside it as


class LoopKind(Enum):
    """How the iterations of a loop relate."""

    SERIAL = "for"
    UNROLLED = "unroll"
    THREADS = "threads"         # virtual threads: independent, interleaved
    PARALLEL = "parallel"       # independent, on any number of the CPU's threads
    VECTORIZED = "vector"       # independent, as one vector of the CPU


INDEPENDENT = (LoopKind.THREADS, LoopKind.PARALLEL, LoopKind.VECTORIZED)


@unguarded(frozen=True)
class Interleave:
    """Some indices of a dimension lie side by side in memory, tile after tile: the index within
    such a group is the last before the tile. A group that is not whole is filled up. In a
    scratchpad, a group may be one `whole` tile: those of the buffer are its groups of lanes."""

    dimension: int
    ways: int
    whole: bool = False

    def memory_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape with its dimensions in the order in which they lie in memory."""
        leading, tile = list(shape[:-TILE_RANK]), shape[-TILE_RANK:]
        leading[self.dimension] = -(-leading[self.dimension] // self.ways)
        return (*leading, self.ways, *tile)


@unguarded(frozen=True, eq=False)
class Buffer:
    """An array somewhere. Two buffers are equal only if they are the same object.

    With `tile_rows`, instructions address single rows, and a tile consists of that many. An
    `interleave` says how tiles lie in memory, and nothing about what an index means.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scope: Scope = Scope.DRAM
    tile_rows: int = 0
    interleave: Interleave | None = None

    @property
    def parts(self) -> int:
        """How many indices a tile of the scratchpad has where instructions address its rows, or
        groups of its lanes."""
        if self.interleave is not None and self.interleave.whole:
            return self.interleave.ways
        return self.tile_rows or 1

    def __str__(self) -> str:
        return self.name


@unguarded(frozen=True)
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


@unguarded(frozen=True)
class Region:
    """A box of a buffer: a start and an extent for each of its dimensions."""

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


@unguarded(frozen=True)
class Assign(Statement):
    """target = value"""

    target: Access
    value: Expression


@unguarded(frozen=True)
class Copy(Statement):
    """target = source, a box of the same extents. Where the source box reaches beyond its buffer,
    the target gets `padding`, or keeps what it has if there is none. Where the target box reaches
    beyond its own, nothing is copied."""

    target: Region
    source: Region
    padding: int | None = None


@unguarded(frozen=True)
class Invoke(Statement):
    """A hardware intrinsic, by name, on regions in the order of its declaration: first what it
    writes, and may read, then what it only reads. What the name means is for the back end to know.
    """

    intrinsic: str
    regions: tuple[Region, ...]


@unguarded(frozen=True)
class Start(Statement):
    """Everything in a region gets the value from which an intrinsic's sums, minima or maxima
    start."""

    intrinsic: str
    target: Region
    value: int


@unguarded(frozen=True)
class Loop(Statement):
    """The body, once for each value of an axis, in order."""

    axis: Axis
    body: Statement
    kind: LoopKind = LoopKind.SERIAL

    def children(self) -> tuple[Statement, ...]:
        return (self.body,)


@unguarded(frozen=True)
class When(Statement):
    """The body, but only if a condition holds."""

    condition: Expression
    body: Statement

    def children(self) -> tuple[Statement, ...]:
        return (self.body,)


@unguarded(frozen=True)
class Sequence(Statement):
    """Statements one after the other."""

    statements: tuple[Statement, ...]

    def children(self) -> tuple[Statement, ...]:
        return self.statements


@unguarded(frozen=True)
class Slide:
    """How a buffer slides: so many indices of a dimension, each time. The indices from
    `first` on are new."""

    dimension: int
    step: int
    first: int


@unguarded(frozen=True)
class Allocate(Statement):
    """A buffer that exists while the body runs; its contents are undefined at first. With several
    `copies` in memory, successive runs take turns in using them. If it is filled `ahead`, a back
    end with several engines fills it in the next iteration of the loop around it before it goes on
    in this one. If it slides, it begins with what it held further on the last time: copies overlap.
    With a `period`, its contents come again after so many runs, and a part of them stays.
    """

    buffer: Buffer
    body: Statement
    copies: int = 1
    ahead: bool = False
    slide: Slide | None = None
    period: int = 0

    def children(self) -> tuple[Statement, ...]:
        return (self.body,)


@unguarded(frozen=True)
class Marked(Statement):
    """Loops that are to become a hardware intrinsic, the start of its sums or, where the intrinsic
    is `DMA`, a transfer."""

    intrinsic: str
    body: Statement
    starts: bool = False

    def children(self) -> tuple[Statement, ...]:
        return (self.body,)


@unguarded(frozen=True)
class Nest:
    """A whole computation. Its inputs and outputs are the buffers that are not allocated inside."""

    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    body: Statement
    notes: dict[str, str] = field(default_factory=dict, compare=False)


def make_sequence(*statements: Statement) -> Statement:
    """Statements one after the other, without nesting; a single statement is returned as it is."""
    flat: list[Statement] = []
    for statement in statements:
        flat += statement.statements if isinstance(statement, Sequence) else (statement,)
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def statements_of(statement: Statement) -> tuple[Statement, ...]:
    """A statement and everything inside it, outside first; found once for every statement."""
    return statement, *_inside(statement)


def _inside(statement: Statement) -> tuple[Statement, ...]:
    known: dict[str, tuple[Statement, ...]] = statement.__dict__
    if INSIDE not in known:
        found: list[Statement] = []
        for each in statement.children():
            found.append(each)
            found += _inside(each)
        known[INSIDE] = tuple(found)        # without itself, or it would never be freed
    return known[INSIDE]


def parallel_loops(statement: Statement) -> tuple[Loop, ...]:
    """The outermost loops whose iterations the CPU's threads share, directly inside each other."""
    if isinstance(statement, Loop) and statement.kind == LoopKind.PARALLEL:
        return (statement, *parallel_loops(statement.body))
    return ()


def with_children(statement: Statement, children: tuple[Statement, ...]) -> Statement:
    """The same statement with other children, in the order of `children()`."""
    match statement:
        case Sequence():
            return make_sequence(*children)
        case Loop():
            return Loop(statement.axis, children[0], statement.kind)
        case When():
            return When(statement.condition, children[0])
        case Allocate():
            return replace(statement, body=children[0])
        case Marked():
            return Marked(statement.intrinsic, children[0], statement.starts)
    return statement
