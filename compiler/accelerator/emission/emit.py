"""From a nest of transfers and intrinsics to an instruction stream.

Loops are written out, except those around one intrinsic, which the hardware runs: the intrinsic
that the nest names brings a rule that says how (`rules`). Scratchpad places are fixed
(`scratchpads`). Virtual threads take turns statement by statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import prod

from ....isa.config import Config
from ....isa.instructions import Engine, Instruction, Load
from ....isa.program import Program
from ....isa.stream import Stream, encode
from ...errors import CompileError
from ...nest import nest as ir
from ...nest.listing import Printer
from ..selection.hardware_loops import MOST_INSTRUCTIONS
from ..selection.instruction_rules import Loops
from ..selection.instructions import MicroKernels, Tiles, fills
from ..selection.intrinsic import Intrinsic, collect_intrinsics, find_intrinsic
from .assemble_program import dram_of, fill_tables, program_of, with_tables
from .chip_contents import Contents
from .compiled.build import emit_words
from .conditions import decision
from .interleave_buffers import Interleaves, interleave_buffers
from .placed_nest import PlacedNest, ahead_of, ahead_sections
from .sites import (
    CopySite,
    Frame,
    IntrinsicSite,
    constant_start,
    peel_loops,
)
from .sum_starts import Starts, copied_tiles, touched_tiles
from .transfers import Ends, Sides, load_pieces, loads_of, store_pieces, stores_of

Step = Callable[[Frame], Iterator[None]]


def emit(nest: ir.Nest, config: Config, intrinsics: Iterable[Intrinsic] = (), *,
         hide_latency: bool = True, interleaves: Interleaves | None = None,
         tables: int = 0) -> Program:
    """The program that runs a nest whose buffers in DRAM are its segments, in order. `intrinsics`
    are those besides the accelerator's own, `interleaves` say which buffers are interleaved. So
    many `tables` are one more input.

    Without `hide_latency`, engines take turns: each waits until the one before has finished. That
    is for comparison only.
    """
    known = collect_intrinsics(config, intrinsics)
    try:
        placed = PlacedNest(config, interleave_buffers(nest, interleaves or {}, config), known)
    except CompileError:                    # no room to fill up groups
        if not interleaves:
            raise
        placed = PlacedNest(config, interleave_buffers(nest, interleaves, config, filled=False),
                            known)
    nest = placed.nest
    dram = dram_of(nest, placed.bits)
    if tables:
        dram = with_tables(dram, config, tables)
    _check_length(nest)
    code, micro_ops = emit_words(placed, MOST_INSTRUCTIONS) or Emitter(placed).emit_objects()
    if tables:
        code = fill_tables(code, config, tables, segment=len(dram.segments))
    return program_of(config, dram, code, micro_ops, hide_latency=hide_latency)


def _check_length(nest: ir.Nest) -> None:
    """Refuse at once what would take forever: most statements become at least one instruction."""
    statements = _count_unrolled(nest.body)
    if statements > MOST_INSTRUCTIONS:
        raise CompileError(f"loops that are written out go through {statements} transfers and "
                           f"intrinsics, but a program has at most {MOST_INSTRUCTIONS} "
                           f"instructions; divide the computation")


def _count_unrolled(statement: ir.Statement) -> int:
    """How many transfers and intrinsics a statement is when its loops are written out."""
    axes, _, innermost = peel_loops(statement)
    if isinstance(innermost, ir.Invoke):
        return 1
    if isinstance(innermost, ir.Start):
        return 0                    # most sums begin with their first product
    times = prod([axis.extent for axis in axes])
    if isinstance(innermost, ir.Copy):
        return times
    if isinstance(innermost, ir.Loop):
        times *= innermost.axis.extent
    return times * sum(map(_count_unrolled, innermost.children()))


class Emitter:
    """Turns statements into functions that emit them, and holds the instructions emitted so far."""

    def __init__(self, placed: PlacedNest):
        self.config, self.nest, self.intrinsics = placed.config, placed.nest, placed.intrinsics
        self.places, self.stable, self.slides = placed.places, placed.stable, placed.slides
        self.segments, self.bits = placed.segments, placed.bits
        self.code: list[Instruction] = []
        self.kernels = MicroKernels(self.config)
        self.contents = Contents(self.places)
        self.starts = Starts()

    def emit_objects(self) -> tuple[Stream, list[Tiles]]:
        """All instructions, without tokens, and the micro-ops: what `emit_words` gives too, one
        object for each of them."""
        for _ in self.of(self.nest.body)(Frame({}, {})):
            pass
        return encode(self.code), self.kernels.micro_ops

    def of(self, statement: ir.Statement) -> Step:
        """A function that emits a statement. It yields after each of its parts, so that threads
        can take turns."""
        peeled = peel_loops(statement)
        innermost = peeled.innermost
        if isinstance(innermost, ir.Invoke):
            by_tile = find_intrinsic(innermost.intrinsic, self.intrinsics).engine == Engine.ALU
            return self._invoke(innermost, IntrinsicSite(peeled, self.places, self.slides,
                                                         by_tile=by_tile))
        if isinstance(innermost, ir.Start):
            return self._start(innermost, IntrinsicSite(peeled, self.places, self.slides))
        match statement:
            case ir.Sequence():
                return _sequence([self.of(each) for each in statement.statements])
            case ir.Allocate():
                return self._allocate(statement)
            case ir.Loop(kind=ir.LoopKind.THREADS):
                return _threads(statement, self.of(statement.body))
            case ir.Loop() if ahead_of(statement):
                return self._ahead(statement)
            case ir.Loop():
                return _loop(statement, self.of(statement.body))
            case ir.When():
                return _when(statement, self.of(statement.body))
            case ir.Copy():
                return self._copy(CopySite(statement, self.config, self.places, self.bits))
        raise CompileError(f"{Printer(self.nest).line(statement)}: the accelerator has no "
                           f"instruction for this; tensorize its loops")

    def _write(self, instructions: Iterable[Instruction]) -> None:
        self.code += instructions
        if len(self.code) > MOST_INSTRUCTIONS:
            raise CompileError(f"a program has at most {MOST_INSTRUCTIONS} instructions, and this "
                               f"one has more; divide the computation")

    def _clear(self, instructions: Iterable[Instruction]) -> None:
        """Clear what is touched before its sums have begun, which only whole tiles can be."""
        cleared = list(instructions)
        if cleared and any(buffer.scope == ir.Scope.ACC and buffer.parts > 1
                           for buffer in self.places):
            raise CompileError("sums in groups of lanes must begin with their first products")
        self._write(cleared)

    def _ahead(self, loop: ir.Loop) -> Step:
        """A loop of which the next iteration begins before this one goes on. Each buffer that is
        filled ahead ends a section of the body: while an iteration is in one, the next is in the
        section before."""
        statements, parts = ahead_sections(loop)
        allocated = [self._enter_allocation(each) for each in statements]
        sections = [_sequence([self.of(each) for each in some]) for some in parts]
        filled = len(sections) - 1

        def run(frame: Frame) -> Iterator[None]:
            under_way: list[Frame] = []         # the last to begin first
            for value in range(loop.axis.extent + filled):
                if value < loop.axis.extent:
                    inside = frame.enter_iteration(loop.axis, value)
                    for enter in allocated:
                        inside = enter(inside)
                    under_way.insert(0, inside)
                first = max(0, value - loop.axis.extent + 1)
                for section, each in zip(sections[first:], under_way, strict=False):
                    yield from section(each)
                del under_way[filled - first:]

        return run

    def _allocate(self, statement: ir.Allocate) -> Step:
        enter, body = self._enter_allocation(statement), self.of(statement.body)

        def run(frame: Frame) -> Iterator[None]:
            yield from body(enter(frame))

        return run

    def _enter_allocation(self, statement: ir.Allocate) -> Callable[[Frame], Frame]:
        """A function that gives the frame inside an allocation."""
        buffer = statement.buffer
        if buffer not in self.places:
            raise CompileError(f"{buffer.name} is allocated in {buffer.scope.value}, which the "
                               f"accelerator does not have; use cache_read or cache_write to give "
                               f"it a scratchpad")
        start = constant_start(statement, self.nest.inputs) if buffer in self.stable else None
        parts = buffer.parts

        def enter(frame: Frame) -> Frame:
            content = None if start is None else tuple([each.value(frame.values)
                                                        for each in start])
            tile = self.contents.first_tile(buffer, frame.thread, content)
            # Counted as instructions count: in tiles, or in rows or groups of lanes.
            return frame._replace(bases={**frame.bases, buffer: tile * parts})

        return enter

    def _invoke(self, invoke: ir.Invoke, site: IntrinsicSite) -> Step:
        """An intrinsic by its rule."""
        intrinsic = find_intrinsic(invoke.intrinsic, self.intrinsics)

        def run(frame: Frame) -> Iterator[None]:
            for axes, tiles in site.visits(frame):
                begins = False
                if self.starts.noted:
                    touched = [touched_tiles(axes, tiles[place]) for place in site.in_acc]
                    begins = intrinsic.begins and self.starts.begin_sums(touched[0])
                    self._clear(self.starts.clear_touched(touched))
                self._write(intrinsic.rule(Loops(axes, tiles, self.kernels, begins=begins)))
                again = site.again(frame)
                if again is not None:
                    self._write(intrinsic.rule(Loops(*again, self.kernels)))
            yield

        return run

    def _start(self, start: ir.Start, site: IntrinsicSite) -> Step:
        """Give tiles the value that sums start from. Sums that begin with their first product are
        only noted."""
        begins = find_intrinsic(start.intrinsic, self.intrinsics).begins

        def run(frame: Frame) -> Iterator[None]:
            for axes, (tile,) in site.visits(frame):
                touched = touched_tiles(axes, tile)
                if begins:
                    self._clear(self.starts.note(touched, start.value))
                else:
                    self._clear(self.starts.clear_touched([touched]))
                    self._write(fills(axes, tile, start.value))
            yield

        return run

    def _copy(self, site: CopySite) -> Step:
        """A load or a store. What is still on the chip is not loaded again."""
        segment, scratchpad = self.segments[site.dram.buffer], site.transfer.scratchpad
        parts = site.chip.buffer.parts

        def run(frame: Frame) -> Iterator[None]:
            if (site.copy.target.buffer, frame.thread) not in self.contents.loaded:
                first = site.first_tile(frame)
                if self.starts.noted and site.chip.buffer.scope == ir.Scope.ACC:
                    self._clear(self.starts.clear_touched([copied_tiles(first, site.chip)]))
                boxes = list(site.transfer.boxes([each.value(frame.values) for each in site.start]))
                for box in boxes:
                    ends = Ends(scratchpad, first // parts + box.sram, segment, box.offset)
                    self._write(self._loads(site, ends, box.sides, only=len(boxes) == 1)
                                if site.transfer.loads else
                                stores_of(store_pieces(box.sides, site.transfer.tile_bytes), ends))
            yield

        return run

    def _loads(self, site: CopySite, ends: Ends, sides: Sides, *, only: bool) -> Iterator[Load]:
        """The loads of a box of a copy. If it is the only one, a border that is still there from
        the last time is left alone, if that does not take more of them."""
        target, padding = site.copy.target, site.copy.padding
        whole = load_pieces(sides, site.transfer.tile_bytes, padded=padding is not None)
        if only and target.extents == target.buffer.shape and target.buffer in self.stable:
            has_border = padding is not None and any(side.before or side.after for side in sides)
            border = (sides, padding) if has_border else None
            if self.contents.renew_border(target.buffer, ends.sram, border):
                inside = load_pieces(sides, site.transfer.tile_bytes, padded=False)
                if len(inside) <= len(whole):
                    return loads_of(inside, ends, 0)
        return loads_of(whole, ends, padding or 0)


def _sequence(steps: list[Step]) -> Step:
    def run(frame: Frame) -> Iterator[None]:
        for step in steps:
            yield from step(frame)

    return run


def _loop(loop: ir.Loop, body: Step) -> Step:
    def run(frame: Frame) -> Iterator[None]:
        for value in range(loop.axis.extent):
            yield from body(frame.enter_iteration(loop.axis, value))

    return run


def _threads(loop: ir.Loop, body: Step) -> Step:
    """Let all threads take turns, one part at a time, until all are done."""
    axis = loop.axis

    def run(frame: Frame) -> Iterator[None]:
        threads = []
        for value in range(axis.extent):
            inside = frame.enter_iteration(axis, value)
            threads.append(body(inside._replace(thread=frame.thread * axis.extent + value)))
        while threads:
            threads = [thread for thread in threads if next(thread, threads) is not threads]
            yield

    return run


def _when(statement: ir.When, body: Step) -> Step:
    holds = decision(statement.condition)

    def run(frame: Frame) -> Iterator[None]:
        if holds(frame.values):
            yield from body(frame)

    return run
