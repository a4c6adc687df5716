"""From a nest of transfers and intrinsics to an instruction stream.

Loops are written out, except those around one intrinsic, which the hardware runs: the intrinsic
that the nest names brings a rule that says how (`rules`). Scratchpad places are fixed
(`scratchpads`). Virtual threads take turns statement by statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ...isa.config import Config
from ...isa.instructions import Instruction, Load, Store
from ...isa.program import Program
from ..errors import CompileError
from ..expression.affine import Affine, affine
from ..expression.expression import Axis, Expression
from ..expression.intervals import conjuncts
from ..nest import nest as ir
from ..nest.listing import Printer
from .chip_contents import Content, Contents
from .conditions import clipped, holds
from .hardware_loops import MOST_INSTRUCTIONS
from .instructions import MicroKernels, fills
from .intrinsic import Intrinsic, Intrinsics, intrinsic_named, known_intrinsics
from .program import dram_of, program_of
from .rules import Loops
from .scratchpads import SCRATCHPADS, place_buffers, tile_index
from .sum_starts import Starts, tiles_copied, tiles_touched
from .transfers import Side, bits_in_dram, loads, scratchpad_of, sides_of, stores

Environment = dict[Axis, int]


def emit(nest: ir.Nest, config: Config, intrinsics: Iterable[Intrinsic] = (), *,
         hide_latency: bool = True) -> Program:
    """The program that runs a nest whose buffers in DRAM are its segments, in order. `intrinsics`
    are those beside the accelerator's own.

    Without `hide_latency`, engines take turns: each waits until the one before has finished. That
    is for comparison only.
    """
    emitter = Emitter(config, nest, known_intrinsics(config, intrinsics))
    dram = dram_of(nest, emitter.bits)
    _check_length(nest)
    for _ in emitter.run(nest.body, Frame()):
        pass
    return program_of(config, dram, emitter.code, emitter.kernels, hide_latency=hide_latency)


def _check_length(nest: ir.Nest) -> None:
    """Refuse at once what would take forever: most statements become an instruction or more."""
    statements = _written_out(nest.body)
    if statements > MOST_INSTRUCTIONS:
        raise CompileError(f"loops that are written out go through {statements} transfers and "
                           f"intrinsics, but a program has at most {MOST_INSTRUCTIONS} "
                           f"instructions; divide the computation")


def _written_out(statement: ir.Statement) -> int:
    """How many transfers and intrinsics a statement is when its loops are written out."""
    innermost = _around(statement)[2]
    if isinstance(statement, ir.Copy) or isinstance(innermost, ir.Invoke):
        return 1
    if isinstance(innermost, ir.Start):
        return 0                    # most sums begin with their first product
    inside = sum(map(_written_out, statement.children()))
    return statement.axis.extent * inside if isinstance(statement, ir.Loop) else inside


@dataclass(frozen=True)
class Frame:
    """Where a walk through the nest is: values of loops, and the first tile of each buffer."""

    values: Environment = field(default_factory=dict)
    bases: Mapping[ir.Buffer, int] = field(default_factory=dict)
    thread: int = 0


class Emitter:
    """The instructions so far, and what they leave on the chip."""

    def __init__(self, config: Config, nest: ir.Nest, intrinsics: Intrinsics):
        self.config, self.nest, self.intrinsics = config, nest, intrinsics
        self.code: list[Instruction] = []
        self.kernels = MicroKernels(config)
        self.contents = Contents(place_buffers(nest, config))
        self.starts = Starts()
        self.constant = set(nest.inputs)                # in DRAM, and never written
        self.segments = {buffer: number for number, buffer
                         in enumerate((*nest.inputs, *nest.outputs), start=1)}
        self.bits = bits_in_dram(nest, config)
        self.forms: dict[int, Affine] = {}              # of regions and indices, by id

    def run(self, statement: ir.Statement, frame: Frame) -> Iterator[None]:
        """Emit a statement. Yields after each of its parts, so that threads can take turns."""
        axes, conditions, innermost = _around(statement)
        if isinstance(innermost, ir.Invoke | ir.Start):
            shorter = clipped(axes, conditions, frame.values)
            if shorter is not None:
                if isinstance(innermost, ir.Start):
                    self._start(innermost, shorter, frame)
                else:
                    self._invoke(innermost, shorter, frame)
            yield
            return
        match statement:
            case ir.Sequence():
                for each in statement.statements:
                    yield from self.run(each, frame)
            case ir.Allocate():
                yield from self.run(statement.body, self._allocated(statement, frame))
            case ir.Loop(kind=ir.LoopKind.THREADS):
                yield from self._threads(statement, frame)
            case ir.Loop():
                for value in range(statement.axis.extent):
                    yield from self.run(statement.body, _with(frame, statement.axis, value))
            case ir.When():
                if holds(statement.condition, frame.values):
                    yield from self.run(statement.body, frame)
            case ir.Copy():
                self._copy(statement, frame)
                yield
            case _:
                raise CompileError(f"{Printer(self.nest).line(statement)}: the accelerator has "
                                   f"no instruction for this; tensorize its loops")

    def _write(self, instructions: Iterable[Instruction]) -> None:
        self.code += instructions
        if len(self.code) > MOST_INSTRUCTIONS:
            raise CompileError(f"a program has at most {MOST_INSTRUCTIONS} instructions, and this "
                               f"one has more; divide the computation")

    def _threads(self, loop: ir.Loop, frame: Frame) -> Iterator[None]:
        """All threads a part further, again and again."""
        extent = loop.axis.extent
        threads = [self.run(loop.body, replace(_with(frame, loop.axis, value),
                                               thread=frame.thread * extent + value))
                   for value in range(extent)]
        while threads:
            threads = [thread for thread in threads if next(thread, self) is not self]
            yield

    def _allocated(self, statement: ir.Allocate, frame: Frame) -> Frame:
        buffer = statement.buffer
        if buffer not in self.contents.places:
            raise CompileError(f"{buffer.name} is allocated in {buffer.scope.value}, which the "
                               f"accelerator does not have; use cache_read or cache_write to give "
                               f"it a scratchpad")
        base = self.contents.first_tile(buffer, frame.thread, self._content(statement, frame))
        base *= buffer.tile_rows or 1                   # counted as instructions count it
        return replace(frame, bases={**frame.bases, buffer: base})

    def _content(self, statement: ir.Allocate, frame: Frame) -> Content | None:
        """What a buffer will hold, if it is only a copy of something that nobody writes."""
        for each in _first_parts(statement.body):
            if isinstance(each, ir.Copy) and each.target.buffer is statement.buffer:
                if each.source.buffer in self.constant:
                    return tuple(self._known(index, frame) for index in each.source.start)
                return None
        return None

    def _tile(self, region: ir.Region, frame: Frame) -> Affine:
        form = self.forms.get(id(region))
        if form is None:        # the nest lives as long as this does, so ids stay
            form = self.forms[id(region)] = tile_index(
                region, self.contents.places[region.buffer].pitch)
        return form.at(frame.values, frame.bases[region.buffer])

    def _known(self, index: Expression, frame: Frame) -> int:
        form = self.forms.get(id(index))
        if form is None:
            found = affine(index)
            if found is None:
                raise CompileError(f"{index} is not a sum of axes times constants")
            form = self.forms[id(index)] = found
        value = form.at(frame.values)
        if value.terms:
            raise CompileError(f"{index} is not known when it is emitted")
        return value.constant

    def _invoke(self, invoke: ir.Invoke, shorter: Mapping[Axis, Axis], frame: Frame) -> None:
        """An intrinsic by its rule."""
        intrinsic = intrinsic_named(invoke.intrinsic, self.intrinsics)
        axes = list(shorter.values())
        tiles = [self._tile(region, frame).renamed(shorter) for region in invoke.regions]
        begins = False
        if self.starts.noted:
            touched = [tiles_touched(axes, tile)
                       for tile, region in zip(tiles, invoke.regions, strict=True)
                       if region.buffer.scope == ir.Scope.ACC]
            begins = intrinsic.begins and self.starts.begun(touched[0])
            self._write(self.starts.cleared(touched))
        self._write(intrinsic.rule(Loops(axes, tiles, self.kernels, begins=begins)))

    def _start(self, start: ir.Start, shorter: Mapping[Axis, Axis], frame: Frame) -> None:
        """Give tiles the value that sums start from. Sums that begin with their first product are
        only noted."""
        axes, tile = list(shorter.values()), self._tile(start.target, frame).renamed(shorter)
        touched = tiles_touched(axes, tile)
        if intrinsic_named(start.intrinsic, self.intrinsics).begins:
            self._write(self.starts.note(touched, start.value))
        else:
            self._write(self.starts.cleared([touched]))
            self._write(fills(axes, tile, start.value))

    def _copy(self, copy: ir.Copy, frame: Frame) -> None:
        if (copy.target.buffer, frame.thread) in self.contents.loaded:
            return
        loading = copy.target.buffer.scope in SCRATCHPADS
        chip, dram = (copy.target, copy.source) if loading else (copy.source, copy.target)
        scratchpad = scratchpad_of(chip.buffer.scope, dram.buffer, chip.buffer)
        tile_bytes = self.config.tile_bytes(scratchpad)
        start = [self._known(index, frame) for index in dram.start]
        offset, sides = sides_of(dram.buffer, start, chip.buffer, dram.extents, tile_bytes,
                                 self.bits[dram.buffer])
        first = self._tile(chip, frame)
        if first.terms:
            raise CompileError(f"{chip}: where it starts is not known when it is emitted")
        if chip.buffer.scope == ir.Scope.ACC:
            self._write(self.starts.cleared([tiles_copied(first.constant, chip)]))
        segment = self.segments[dram.buffer]
        if loading:
            first_tile = first.constant // (chip.buffer.tile_rows or 1)
            self._write(self._loads(Load(buffer=scratchpad, segment=segment, offset=offset,
                                         sram=first_tile), sides, tile_bytes, copy))
        else:
            base = Store(buffer=scratchpad, segment=segment, offset=offset, sram=first.constant)
            self._write(stores(base, sides, tile_bytes))

    def _loads(self, base: Load, sides: list[Side], tile_bytes: int, copy: ir.Copy) -> list[Load]:
        """The loads of a copy. A border that is still there from the last time is left alone, if
        that does not take more of them."""
        whole = list(loads(base, sides, tile_bytes, padding=copy.padding))
        if copy.target.extents != copy.target.buffer.shape:
            return whole
        has_border = copy.padding is not None and any(side.before or side.after for side in sides)
        border = (tuple(sides), copy.padding) if has_border else None
        if not self.contents.renew_border(copy.target.buffer, base.sram, border):
            return whole
        inside = list(loads(base, sides, tile_bytes, padding=None))
        return inside if len(inside) <= len(whole) else whole


def _around(statement: ir.Statement) -> tuple[list[Axis], list[Expression], ir.Statement]:
    """Loops directly around one another, the conditions inside them, and what they are around."""
    axes: list[Axis] = []
    conditions: list[Expression] = []
    while True:
        if isinstance(statement, ir.Loop) and statement.kind == ir.LoopKind.SERIAL:
            axes.append(statement.axis)
        elif isinstance(statement, ir.When) and axes:
            conditions += conjuncts(statement.condition)
        else:
            return axes, conditions, statement
        statement = statement.body


def _first_parts(statement: ir.Statement) -> Iterator[ir.Statement]:
    """The statements that a body consists of, through allocations."""
    if isinstance(statement, ir.Sequence):
        for each in statement.statements:
            yield from _first_parts(each)
    elif isinstance(statement, ir.Allocate):
        yield from _first_parts(statement.body)
    else:
        yield statement


def _with(frame: Frame, axis: Axis, value: int) -> Frame:
    return replace(frame, values={**frame.values, axis: value})
