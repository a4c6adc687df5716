"""Where a nest uses intrinsics and transfers: what is the same at every visit is worked out once.

An emitter visits a statement many times, with different values of the loops around it. Affine
forms, the loops that the hardware runs, and the shape of a transfer do not depend on them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import repeat
from typing import NamedTuple

from ....isa.config import Config
from ...errors import CompileError
from ...expression.affine import Affine, affine
from ...expression.expression import Axis, Expression, binary
from ...expression.intervals import conjuncts
from ...nest.accesses import written_by
from ...nest.nest import (
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
    Sequence,
    Slide,
    Start,
    Statement,
    When,
    statements_of,
)
from .conditions import Clipped, Limit, Values, clip_loops, limits_of
from .interleave_buffers import Run, is_spread, runs_of
from .scratchpads import Place, strides_of, tile_index
from .transfers import ends_of, transfer_of

Places = Mapping[Buffer, Place]
Bases = Mapping[Buffer, int]        # the first tile of each buffer
Slides = Mapping[Buffer, Slide]     # how buffers slide that do


class Frame(NamedTuple):
    """Where a walk through a nest is: values of loops, and the first tile of each buffer."""

    values: Values
    bases: Bases
    thread: int = 0

    def enter_iteration(self, axis: Axis, value: int) -> Frame:
        """In an iteration of a loop."""
        return Frame({**self.values, axis: value}, self.bases, self.thread)


def affine_form(index: Expression) -> Affine:
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
        self.start = form.drop_axes(*axes)
        self.steps = [*map(form.terms.get, axes, repeat(0))]
        self.blocks = _blocks_of(region, axes)
        self.parts = self.buffer.parts if self.blocks is not None else 1

    def tile(self, loops: tuple[Axis, ...], starts: tuple[int, ...], frame: Frame) -> Affine:
        """Which tile it is in some loops that begin somewhere, those around them being known."""
        terms = {axis: step for axis, step in zip(loops, self.steps, strict=True) if step}
        first = sum(map(int.__mul__, starts, self.steps))
        return Affine(frame.bases[self.buffer] + self.start.value(frame.values) + first, terms)


class Blocks(NamedTuple):
    """How an operand walks along a dimension that is interleaved: where it starts, the loop that
    steps through it, if there is one, and the tiles from one group to the next."""

    start: Affine
    loop: int | None
    ways: int
    group: int


def _blocks_of(region: Region, axes: tuple[Axis, ...]) -> Blocks | None:
    order = region.buffer.interleave
    if order is None or not is_spread(region.buffer, order):
        return None                     # one after the other
    form = affine_form(region.start[order.dimension])
    loops = [number for number, axis in enumerate(axes) if form.of(axis)]
    assert [form.of(axes[number]) for number in loops] in ([], [1]), "others are not interleaved"
    return Blocks(form.drop_axes(*axes), loops[0] if loops else None, order.ways,
                  strides_of(region.buffer)[order.dimension])


class Visit(NamedTuple):
    """The loops of the hardware at a visit, and which tile each operand is."""

    loops: tuple[Axis, ...]
    tiles: list[Affine]


class IntrinsicSite:
    """An intrinsic, or the start of its sums, in loops that the hardware can run. Buffers may
    slide. If it computes `by_tile`, it takes groups of lanes of a tile as one."""

    def __init__(self, peeled: Peeled, places: Places, slides: Slides, *, by_tile: bool = False):
        axes, conditions, innermost = peeled
        assert isinstance(innermost, Invoke | Start)
        self.statement, self.axes = innermost, tuple(axes)
        self.limits = limits_of(conditions, self.axes)
        regions = innermost.regions if isinstance(innermost, Invoke) else (innermost.target,)
        self.operands = [Operand(region, self.axes, places) for region in regions]
        self.in_acc = [place for place, region in enumerate(regions)
                       if region.buffer.scope == Scope.ACC]
        self.shorter: dict[tuple[int, ...], tuple[Axis, ...]] = {}
        self.from_zero = (0,) * len(axes)
        self.blocks = next((operand.blocks for operand in self.operands if operand.blocks), None)
        self.by_tile = by_tile and any(operand.parts > 1 for operand in self.operands)
        if self.by_tile and len({operand.parts for operand in self.operands}) > 1:
            raise CompileError(f"{innermost}: some operands are groups of lanes, others whole "
                               f"tiles, which the ALU cannot compute together")
        self.places, self.slide, self.ring_step = places, None, 0
        if regions[0].buffer in slides:
            found = slides[regions[0].buffer]
            index = regions[0].start[found.dimension]
            self.slide, self.ring_step = limits_of([binary("<=", 0, index)], axes)[0], found.step

    def visit(self, frame: Frame) -> Visit | None:
        """The loops as far as conditions let them run; None if they do not."""
        if not self.limits:
            return Visit(self.axes, [operand.tile(self.axes, self.from_zero, frame)
                                     for operand in self.operands])
        return self._clip_visit(self.limits, frame)

    def visits(self, frame: Frame) -> Iterator[Visit]:
        """The same in several parts, where an operand is interleaved: loops through whole groups,
        and through parts of one."""
        if self.blocks is None:
            visit = self.visit(frame)
            if visit is not None:
                yield visit
            return
        left = clip_loops(self.axes, self.limits, frame.values)
        if left is None:
            return
        start, loop, ways, _ = self.blocks
        first = start.value(frame.values) + (0 if loop is None else left.starts[loop])
        for run in runs_of(first, 1 if loop is None else left.extents[loop], ways):
            visit = self._along(run, run.first - first, left, frame)
            yield self._whole(run, visit) if self.by_tile else visit

    def _whole(self, run: Run, visit: Visit) -> Visit:
        """The same in whole tiles. One that is not full is at the end of its buffer, so what else
        is in there does not matter."""
        assert self.blocks is not None
        ways, loop = self.blocks.ways, self.blocks.loop
        if run.first % ways:
            raise CompileError("an instruction of the ALU begins within a tile")
        inside = None if loop is None else visit.loops[loop + (1 if run.groups else 0)]
        return Visit(tuple(axis for axis in visit.loops if axis is not inside), [
            Affine(tile.constant // ways, {axis: step // ways for axis, step in tile.terms.items()
                                           if axis is not inside}) for tile in visit.tiles])

    def _along(self, run: Run, skipped: int, left: Clipped, frame: Frame) -> Visit:
        """The loops along a run of an interleaved dimension, which begins later by some indices."""
        assert self.blocks is not None
        loop = self.blocks.loop
        extents = [left.extents[:loop], left.extents[loop + 1:]] if loop is not None else [
            left.extents, ()]
        groups = (run.groups, run.length) if run.groups else (run.length,)
        within = groups if loop is not None else ()
        axes = tuple([Axis(f"loop{number}", extent) for number, extent in enumerate((
            *extents[0], *within, *extents[1]))])
        tiles = []
        for operand in self.operands:
            steps = list(operand.steps)
            first = operand.start.value(frame.values) + sum(map(int.__mul__, left.starts, steps))
            own = operand.blocks
            if own is not None:
                at = run.first + self._behind(own, frame)
                first += at // own.ways * own.group + at % own.ways
                strides = (own.group, 1) if run.groups else (1,)
            else:
                step = steps[loop] if loop is not None else 0
                first += skipped * step
                strides = (step * run.length, step) if run.groups else (step,)
            if loop is not None:
                steps[loop:loop + 1] = strides
            tiles.append(Affine(frame.bases[operand.buffer] + first, {
                axis: step for axis, step in zip(axes, steps, strict=True) if step}))
        return Visit(axes, tiles)

    def _behind(self, own: Blocks, frame: Frame) -> int:
        """How many indices an operand is behind the first that is interleaved."""
        assert self.blocks is not None
        behind = own.start.value(frame.values) - self.blocks.start.value(frame.values)
        if own.loop != self.blocks.loop or own.ways != self.blocks.ways or behind % own.ways:
            raise CompileError("two operands walk through interleaved tiles in different ways")
        return behind

    def _clip_visit(self, limits: list[Limit], frame: Frame) -> Visit | None:
        left = clip_loops(self.axes, limits, frame.values)
        if left is None:
            return None
        loops = self.shorter_axes(left.extents)
        return Visit(loops, [operand.tile(loops, left.starts, frame) for operand in self.operands])

    def again(self, frame: Frame) -> Visit | None:
        """The loops that write what lies at the end of a ring, for its beginning. None if there
        are none, or the result does not slide."""
        buffer, slide = self.operands[0].buffer, self.slide
        if slide is None:
            return None
        place = self.places[buffer]
        turn = (frame.bases[buffer] - place.first) // place.step
        beyond = slide._replace(room=slide.room + Affine(-(place.copies - turn) * self.ring_step))
        found = self._clip_visit([*self.limits, beyond], frame)
        if found is None:
            return None
        first, *others = found.tiles
        return found._replace(tiles=[first + Affine(-place.copies * place.step), *others])

    def shorter_axes(self, extents: tuple[int, ...]) -> tuple[Axis, ...]:
        """The axes with other extents."""
        if extents not in self.shorter:
            self.shorter[extents] = tuple(
                axis if extent == axis.extent else Axis(axis.name, extent, axis.reduces)
                for axis, extent in zip(self.axes, extents, strict=True))
        return self.shorter[extents]


class CopySite:
    """A copy between DRAM and a scratchpad."""

    def __init__(self, copy: Copy, config: Config, places: Places, bits: Mapping[Buffer, int]):
        self.copy = copy
        self.chip, self.dram = ends_of(copy)
        self.transfer = transfer_of(copy, config, bits[self.dram.buffer])
        self.start = [affine_form(index) for index in self.dram.start]
        self.tile = tile_index(self.chip, places[self.chip.buffer].pitch)
        blocks = _blocks_of(self.chip, ())
        if blocks is not None:          # whole groups
            self.tile = self.tile + Affine(
                blocks.start.constant // blocks.ways * blocks.group,
                {axis: each // blocks.ways * blocks.group
                 for axis, each in blocks.start.terms.items()})

    def first_tile(self, frame: Frame) -> int:
        """Where it starts in the scratchpad."""
        return frame.bases[self.chip.buffer] + self.tile.value(frame.values)


class Peeled(NamedTuple):
    """Loops directly around one another, the conditions inside them, and what they are around."""

    axes: list[Axis]
    conditions: list[Expression]
    innermost: Statement


def peel_loops(statement: Statement) -> Peeled:
    """Loops directly around one another, the conditions inside them, and what they are around."""
    axes: list[Axis] = []
    conditions: list[Expression] = []
    while True:
        if isinstance(statement, Loop) and statement.kind == LoopKind.SERIAL:
            axes.append(statement.axis)
        elif isinstance(statement, When) and axes:
            conditions += conjuncts(statement.condition)
        else:
            return Peeled(axes, conditions, statement)
        statement = statement.body


def slides_of(nest: Nest) -> Slides:
    """How buffers of a nest slide that do."""
    return {each.buffer: each.slide for each in statements_of(nest.body)
            if isinstance(each, Allocate) and each.slide is not None}


def single_writer_buffers(nest: Nest) -> set[Buffer]:
    """Buffers that a single statement of a nest writes: between its visits they stay as they are,
    as long as nobody else needs their place."""
    once: set[Buffer] = set()
    again: set[Buffer] = set()
    for each in statements_of(nest.body):
        if isinstance(each, Copy | Invoke | Start | Assign):
            buffer = written_by(each)
            if buffer is not None:
                (again if buffer in once else once).add(buffer)
    return once - again


def constant_start(statement: Allocate, constants: Collection[Buffer]) -> list[Affine] | None:
    """Where in DRAM a copy starts that fills a buffer with something that is never written."""
    for each in _first_parts(statement.body):
        if isinstance(each, Copy) and each.target.buffer is statement.buffer:
            constant = each.source.buffer in constants
            return [affine_form(index) for index in each.source.start] if constant else None
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
