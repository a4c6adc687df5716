"""Refuses loop nests that are wrong in themselves, whatever they compute.

Every buffer is used where it is allocated and every axis inside its loop; no index is outside its
buffer; types match; no buffer is read before something is written to it; threads are independent.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple, NoReturn

from ..errors import CompileError
from ..expression.affine import ZERO, affine, is_simple, margin
from ..expression.expression import (
    BOOL,
    FLOATS,
    INDEX,
    INTEGERS,
    LIMITS,
    TYPES,
    Axis,
    Binary,
    Element,
    Expression,
    Reduction,
    Select,
    walk,
)
from ..expression.intervals import Interval, Known, conjuncts, interval_of
from .accesses import Conditions, Touch, intervals_under, touches
from .listing import Printer
from .nest import (
    INDEPENDENT,
    Access,
    Allocate,
    Assign,
    Buffer,
    Copy,
    Invoke,
    Loop,
    LoopKind,
    Nest,
    Region,
    Scope,
    Start,
    Statement,
    When,
)
from .threads import Conflict, conflict

MOST_THREADS = 64       # or lanes of a vector
COUNTED = {LoopKind.THREADS: "threads", LoopKind.VECTORIZED: "lanes"}


def verify_nest(nest: Nest) -> None:
    """Refuse a wrong nest with a sentence that names the statement."""
    verifier = _Verifier(nest)
    for buffer in (*nest.inputs, *nest.outputs):
        verifier.check_buffer(buffer)
    verifier.visit(nest.body, _Place(frozenset((*nest.inputs, *nest.outputs))))
    for buffer in nest.outputs:
        if buffer not in verifier.written:
            raise CompileError(f"{verifier.printer.buffer(buffer)} is a result, but nothing writes "
                               f"it")


class _Place(NamedTuple):
    """What holds where a statement stands."""

    buffers: frozenset[Buffer]
    axes: frozenset[Axis] = frozenset()
    conditions: Conditions = ()
    known: Known | None = MappingProxyType({})      # None where nothing is ever run


class _Verifier:
    """One walk through a nest, in the order of execution."""

    def __init__(self, nest: Nest):
        self.nest = nest
        self.written = set(nest.inputs)
        self.shared: set[Axis] = set()      # of parallel loops

    @cached_property
    def printer(self) -> Printer:
        return Printer(self.nest)

    def _text(self, node: Expression) -> str:
        return self.printer.expression(node)

    def refuse(self, statement: Statement, why: str) -> NoReturn:
        raise CompileError(f"{self.printer.line(statement)}: {why}")

    def visit(self, statement: Statement, place: _Place) -> None:
        match statement:
            case Loop():
                self._loop(statement, place)
            case Allocate():
                self._allocate(statement, place)
            case When():
                if not _is_plain(statement.condition, place):
                    self._uses(statement, place)
                conditions = (*place.conditions, statement.condition)
                known = self._intervals_at(statement, conditions, place)
                self.visit(statement.body, _Place(place.buffers, place.axes, conditions, known))
            case Assign() | Copy() | Invoke() | Start():
                self._uses(statement, place)
            case _:
                for child in statement.children():
                    self.visit(child, place)

    def _loop(self, loop: Loop, place: _Place) -> None:
        if loop.axis in place.axes:
            self.refuse(loop, "the axis already runs in a loop around this one")
        if loop.kind == LoopKind.PARALLEL:
            if not place.axes <= self.shared:
                self.refuse(loop, "a parallel loop is the outermost one, or inside such loops only")
            self.shared.add(loop.axis)
        inner, body = [loop.axis], loop.body
        if loop.kind == LoopKind.SERIAL:        # neighbours at once
            while isinstance(body, Loop) and body.kind == LoopKind.SERIAL and (
                    body.axis not in inner and body.axis not in place.axes):
                inner.append(body.axis)
                body = body.body
        self.visit(body, _Place(place.buffers, place.axes.union(inner), place.conditions,
                                place.known))
        if loop.kind in INDEPENDENT and place.known is not None:
            if loop.axis.extent > MOST_THREADS and loop.kind != LoopKind.PARALLEL:
                self.refuse(loop, f"there can be {MOST_THREADS} {COUNTED[loop.kind]} at most")
            found = conflict(loop, place.conditions)
            if found is not None:
                self.refuse(loop, self._explain(found))

    def _explain(self, found: Conflict) -> str:
        first, second = found.first, found.second
        one, other = ("writes" if each.touch.writes else "reads" for each in (first, second))
        if first.statement is second.statement and one == other:
            return (f"{self.printer.line(first.statement)} may write the same elements in "
                    f"iterations {found.first_iteration} and {found.second_iteration}")
        return (f"{self.printer.line(first.statement)} in iteration {found.first_iteration} "
                f"{one} elements that {self.printer.line(second.statement)} may {other[:-1]} "
                f"in iteration {found.second_iteration}")

    def _allocate(self, allocate: Allocate, place: _Place) -> None:
        buffer = allocate.buffer
        self.check_buffer(buffer, allocate)
        if buffer in place.buffers:
            self.refuse(allocate, "the buffer exists already")
        self.written.discard(buffer)
        self.visit(allocate.body, _Place(place.buffers | {buffer}, place.axes, place.conditions,
                                         place.known))

    def check_buffer(self, buffer: Buffer, allocate: Allocate | None = None) -> None:
        why = ""
        if buffer.dtype not in TYPES or buffer.dtype == INDEX:
            why = f"there is no type {buffer.dtype!r} for a buffer"
        elif min(buffer.shape, default=1) < 1:
            why = "extents are at least 1"
        if why:
            where = (self.printer.declaration(buffer) if allocate is None
                     else self.printer.line(allocate))
            raise CompileError(f"{where}: {why}")

    def _uses(self, statement: Statement, place: _Place) -> None:
        """Check everything about a statement that touches buffers."""
        self._check_form(statement)
        regions = _regions(statement)
        if regions and place.known is not None and _are_inside(statement, regions, place):
            self._note_uses(statement, regions)
            return
        for region in regions:
            self._check_region(statement, region, place)
        for expression in _expressions(statement):
            self._check_expression(statement, expression, place)
        if place.known is None:
            return
        for touch in touches(statement, place.conditions):
            self._check_bounds(statement, touch, place)
            if touch.writes:
                self.written.add(touch.region.buffer)
            else:
                self._check_written(statement, touch.region.buffer)

    def _note_uses(self, statement: Statement, regions: tuple[Region, ...]) -> None:
        """The first region is written, after the others have been read."""
        for region in regions[1:]:
            self._check_written(statement, region.buffer)
        self.written.add(regions[0].buffer)

    def _check_written(self, statement: Statement, buffer: Buffer) -> None:
        if buffer not in self.written:
            self.refuse(statement, f"{self.printer.buffer(buffer)} is read, but nothing has "
                                   f"written it yet")

    def _check_form(self, statement: Statement) -> None:
        """Types and extents."""
        match statement:
            case When() if statement.condition.dtype != BOOL:
                self.refuse(statement, f"the condition has type {statement.condition.dtype}, but "
                                       f"must be bool")
            case Assign() if statement.target.dtype != statement.value.dtype:
                self.refuse(statement, f"a value of type {statement.value.dtype} is assigned to "
                                       f"{statement.target.dtype}; cast it")
            case Copy():
                target, source = statement.target, statement.source
                if target.extents != source.extents:
                    self.refuse(statement, f"the target's extents are {target.extents}, the "
                                           f"source's are {source.extents}")
                if target.buffer.dtype != source.buffer.dtype and not _widens(target, source):
                    self.refuse(statement, f"{source.buffer.dtype} is copied to "
                                           f"{target.buffer.dtype}; a copy does not convert")
                if statement.padding is not None and not _fits(statement.padding,
                                                               target.buffer.dtype):
                    self.refuse(statement, f"padding {statement.padding} does not fit in "
                                           f"{target.buffer.dtype}")
            case Start() if not _fits(statement.value, statement.target.buffer.dtype):
                self.refuse(statement, f"{statement.value} does not fit in "
                                       f"{statement.target.buffer.dtype}")

    def _check_region(self, statement: Statement, region: Region, place: _Place) -> None:
        rank = len(region.buffer.shape)
        if region.buffer not in place.buffers:
            self.refuse(statement, f"{self.printer.buffer(region.buffer)} is used outside its "
                                   f"allocation")
        if len(region.start) != rank or len(region.extents) != rank:
            self.refuse(statement, f"{self.printer.buffer(region.buffer)} has {rank} dimensions, "
                                   f"but the region has {len(region.start)} starts and "
                                   f"{len(region.extents)} extents")
        if min(region.extents, default=1) < 1:
            self.refuse(statement, f"extents are at least 1, but "
                                   f"{self.printer.buffer(region.buffer)}'s are {region.extents}")

    def _check_expression(self, statement: Statement, expression: Expression,
                          place: _Place) -> None:
        if is_simple(expression):           # sums of axes are right if the axes are there
            form = affine(expression)
            if form is not None and form.terms.keys() <= place.axes:
                return
        shown = self._text
        for node in walk(expression):
            match node:
                case Axis() if node not in place.axes:
                    self.refuse(statement, f"axis {shown(node)} is used outside its loop")
                case Access() if node.buffer not in place.buffers:
                    self.refuse(statement, f"{self.printer.buffer(node.buffer)} is used outside "
                                           f"its allocation")
                case Access() if len(node.indices) != len(node.buffer.shape):
                    self.refuse(statement, f"{shown(node)} has {len(node.indices)} indices, but "
                                           f"the buffer has {len(node.buffer.shape)} dimensions")
                case Binary() if node.left.dtype != node.right.dtype:
                    self.refuse(statement, f"{shown(node)}: the types are {node.left.dtype} and "
                                           f"{node.right.dtype}; cast one of them")
                case Select() if node.then.dtype != node.otherwise.dtype:
                    self.refuse(statement, f"{shown(node)}: the types are {node.then.dtype} and "
                                           f"{node.otherwise.dtype}; cast one of them")
                case Element() | Reduction():
                    self.refuse(statement, f"{shown(node)} belongs in a tensor expression; a nest "
                                           f"has accesses and loops")

    def _intervals_at(self, statement: Statement, conditions: Conditions,
                      place: _Place) -> Known | None:
        """What is known where the conditions of a place and some more hold."""
        if place.known is None:
            return None
        try:
            return intervals_under(conditions[len(place.conditions):], place.known)
        except CompileError as error:
            self.refuse(statement, str(error))

    def _interval(self, statement: Statement, index: Expression, known: Known) -> Interval:
        try:
            return interval_of(index, known)
        except CompileError as error:
            self.refuse(statement, str(error))

    def _check_bounds(self, statement: Statement, touch: Touch, place: _Place) -> None:
        known = self._intervals_at(statement, touch.conditions, place)
        may_miss = touch.clipped and not touch.writes and (
            isinstance(statement, Copy) and statement.padding is not None)
        if known is None or may_miss:
            return
        region = touch.region
        for start, count, extent in zip(region.start, region.extents, region.buffer.shape,
                                        strict=True):
            form = affine(start)
            if form is not None:
                low, high = form.range()
                if low >= 0 and high + count <= extent:     # whatever is known besides
                    continue
            low, high = self._interval(statement, start, known)
            last = high + count - 1
            leaves = low < 0 or last >= extent
            if last < 0 or low >= extent if touch.clipped else leaves:
                self.refuse(statement, f"{self.printer.expression(start)} in "
                                       f"{self.printer.buffer(region.buffer)} goes from {low} to "
                                       f"{last}, but there are only 0 to {extent - 1}")


def _are_inside(statement: Statement, regions: tuple[Region, ...], place: _Place) -> bool:
    """Whether regions are plainly right, as most are: they start at sums of axes that are there,
    and whatever these are, nothing lies outside a buffer. Copies may be cut, but not to nothing."""
    may_be_cut = isinstance(statement, Copy) and not place.conditions
    for region in regions:
        buffer, axes = region.buffer, place.axes
        if buffer not in place.buffers or not (
                len(region.start) == len(region.extents) == len(buffer.shape)):
            return False
        for start, count, extent in zip(region.start, region.extents, buffer.shape, strict=True):
            if start is ZERO and 0 < count <= extent:       # as in most dimensions
                continue
            form = affine(start) if is_simple(start) else None
            if form is None or count < 1 or (form.terms and not form.terms.keys() <= axes):
                return False
            low, high = form.range() if form.terms else (form.constant, form.constant)
            if (low >= extent or high + count <= 0 if may_be_cut
                    else low < 0 or high + count > extent):
                return False
    return True


def _is_plain(condition: Expression, place: _Place) -> bool:
    """Whether a condition compares nothing but sums of axes that are there."""
    rooms = map(margin, conjuncts(condition))
    return all(room is not None and room.terms.keys() <= place.axes for room in rooms)


def _regions(statement: Statement) -> tuple[Region, ...]:
    match statement:
        case Copy():
            return statement.target, statement.source
        case Invoke():
            return statement.regions
        case Start():
            return (statement.target,)
    return ()


def _expressions(statement: Statement) -> Iterator[Expression]:
    match statement:
        case When():
            yield statement.condition
        case Assign():
            yield from (statement.target, statement.value)
    for region in _regions(statement):
        yield from region.start


def _widens(target: Region, source: Region) -> bool:
    """Whether a copy is a load that extends bytes to the accumulator's words."""
    return (target.buffer.scope == Scope.ACC
            and (source.buffer.dtype, target.buffer.dtype) == ("int8", "int32"))


def _fits(value: int, dtype: str) -> bool:
    if dtype in INTEGERS:
        low, high = LIMITS[dtype]
        return low <= value <= high
    return dtype in FLOATS
