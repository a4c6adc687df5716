"""Where a nest uses intrinsics and transfers: what is the same at every visit is worked out once.

An emitter visits a statement many times, with different values of the loops around it. Affine
forms, the loops that the hardware runs, and the shape of a transfer do not depend on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from ...isa.config import Config
from ..errors import CompileError
from ..expression.affine import Affine, affine
from ..expression.expression import Axis, Expression
from ..expression.intervals import conjuncts
from ..nest.accesses import touches
from ..nest.nest import (
    Allocate,
    Buffer,
    Copy,
    Invoke,
    Loop,
    LoopKind,
    Nest,
    Region,
    Scope,
    Sequence,
    Start,
    Statement,
    When,
    statements_of,
)
from .conditions import Values, clipped, limits_of
from .scratchpads import Place, tile_index
from .transfers import ends_of, transfer_of

Places = Mapping[Buffer, Place]
Bases = Mapping[Buffer, int]        # the first tile of each buffer


class Frame(NamedTuple):
    """Where a walk through a nest is: values of loops, and the first tile of each buffer."""

    values: Values
    bases: Bases
    thread: int = 0

    def inside(self, axis: Axis, value: int) -> Frame:
        """In an iteration of a loop."""
        return Frame({**self.values, axis: value}, self.bases, self.thread)


def known_form(index: Expression) -> Affine:
    """An index that is known when it is emitted, once the loops around it are."""
    form = affine(index)
    if form is None:
        raise CompileError(f"{index} is not a sum of axes times constants")
    return form


class Operand:
    """A region of an intrinsic: a tile that moves with the loops of the hardware."""

    def __init__(self, region: Region, axes: tuple[Axis, ...], places: Places):
        self.buffer = region.buffer
        form = tile_index(region, places[region.buffer].pitch)
        self.start = form.without(*axes)
        self.steps = [form.of(axis) for axis in axes]

    def tile(self, loops: tuple[Axis, ...], frame: Frame) -> Affine:
        """Which tile it is in some loops, those around them being known."""
        terms = {axis: step for axis, step in zip(loops, self.steps, strict=True) if step}
        return Affine(frame.bases[self.buffer] + self.start.value(frame.values), terms)


class IntrinsicSite:
    """An intrinsic, or the start of its sums, in loops that the hardware can run."""

    def __init__(self, statement: Statement, places: Places):
        axes, conditions, innermost = loops_around(statement)
        assert isinstance(innermost, Invoke | Start)
        self.statement, self.axes = innermost, tuple(axes)
        self.limits = limits_of(conditions, self.axes)
        regions = innermost.regions if isinstance(innermost, Invoke) else (innermost.target,)
        self.operands = [Operand(region, self.axes, places) for region in regions]
        self.in_acc = [place for place, region in enumerate(regions)
                       if region.buffer.scope == Scope.ACC]
        self.shorter: dict[tuple[int, ...], tuple[Axis, ...]] = {}

    def loops(self, values: Values) -> tuple[Axis, ...] | None:
        """The loops as far as conditions let them run; None if they do not."""
        if not self.limits:
            return self.axes
        extents = clipped(self.axes, self.limits, values)
        if extents is None:
            return None
        if extents not in self.shorter:
            self.shorter[extents] = tuple(
                axis if extent == axis.extent else Axis(axis.name, extent, axis.reduces)
                for axis, extent in zip(self.axes, extents, strict=True))
        return self.shorter[extents]

    def tiles(self, loops: tuple[Axis, ...], frame: Frame) -> list[Affine]:
        """Which tile each operand is."""
        return [operand.tile(loops, frame) for operand in self.operands]


class CopySite:
    """A copy between DRAM and a scratchpad."""

    def __init__(self, copy: Copy, config: Config, places: Places, bits: Mapping[Buffer, int]):
        self.copy = copy
        self.chip, self.dram = ends_of(copy)
        self.transfer = transfer_of(copy, config, bits[self.dram.buffer])
        self.start = [known_form(index) for index in self.dram.start]
        self.tile = tile_index(self.chip, places[self.chip.buffer].pitch)

    def first_tile(self, frame: Frame) -> int:
        """Where it starts in the scratchpad."""
        return frame.bases[self.chip.buffer] + self.tile.value(frame.values)


def loops_around(statement: Statement) -> tuple[list[Axis], list[Expression], Statement]:
    """Loops directly around one another, the conditions inside them, and what they are around."""
    axes: list[Axis] = []
    conditions: list[Expression] = []
    while True:
        if isinstance(statement, Loop) and statement.kind == LoopKind.SERIAL:
            axes.append(statement.axis)
        elif isinstance(statement, When) and axes:
            conditions += conjuncts(statement.condition)
        else:
            return axes, conditions, statement
        statement = statement.body


def filled_once(nest: Nest) -> set[Buffer]:
    """Buffers that a single statement of a nest writes: between its visits they stay as they are,
    as long as nobody else needs their place."""
    writes = Counter(touch.region.buffer for each in statements_of(nest.body)
                     for touch in touches(each) if touch.writes)
    return {buffer for buffer, count in writes.items() if count == 1}


def constant_start(statement: Allocate, constants: Collection[Buffer]) -> list[Affine] | None:
    """Where in DRAM a copy starts that fills a buffer with something that is never written."""
    for each in _first_parts(statement.body):
        if isinstance(each, Copy) and each.target.buffer is statement.buffer:
            constant = each.source.buffer in constants
            return [known_form(index) for index in each.source.start] if constant else None
    return None


def _first_parts(statement: Statement) -> Iterator[Statement]:
    """The statements that a body consists of, through allocations."""
    if isinstance(statement, Sequence):
        for each in statement.statements:
            yield from _first_parts(each)
    elif isinstance(statement, Allocate):
        yield from _first_parts(statement.body)
    else:
        yield statement
