"""From a nest of transfers and intrinsics to an instruction stream.

Loops are written out, except those around one intrinsic, which the hardware runs. Scratchpad
places are fixed (`scratchpads`). Virtual threads take turns statement by statement. Waits and
posts are derived from the data at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from ..isa.bounds import DST, SRC, WGT
from ..isa.config import Config
from ..isa.instructions import (
    AluOp,
    Instruction,
    Load,
    MicroOp,
    Requantize,
    Store,
    Sync,
    SyncAction,
)
from ..isa.program import Access, Program, Segment, Tensor
from ..isa.record import fields_of
from ..isa.stream import encode
from ..isa.tokens import with_tokens
from . import nest as ir
from .affine import Affine, affine
from .errors import CompileError
from .expression import Axis, Binary, Expression
from .intervals import conjuncts, interval_of
from .intrinsic import Intrinsic, Rule
from .kernels import (
    MicroKernels,
    Tiles,
    alus,
    fills,
    gemms,
    immediates,
    requantizes,
    tiles_touched,
)
from .scratchpads import SCRATCHPADS, Place, place_buffers, tile_index
from .transfers import element_bytes, loads, scratchpad_of, sides_of, stores

MICRO_OPS = "micro_ops"
Environment = dict[Axis, int]


def emit(nest: ir.Nest, config: Config, *, requantizations: Mapping[str, Requantize] | None = None,
         intrinsics: Mapping[str, Intrinsic] | None = None, hide_latency: bool = True) -> Program:
    """The program that runs a nest whose buffers in DRAM are its segments, in order.

    `intrinsics` are asked for rules; those of the accelerator need none. Without `hide_latency`,
    engines take turns: each waits until the one before has finished. That is for comparison only.
    """
    emitter = Emitter(config, place_buffers(nest, config), dict(requantizations or {}))
    buffers = (*nest.inputs, *nest.outputs)
    for number, buffer in enumerate(buffers):
        emitter.segments[buffer] = number + 1
    emitter.constant |= set(nest.inputs)
    emitter.rules = {name: each.rule for name, each in (intrinsics or {}).items() if each.rule}
    for _ in emitter.run(nest.body, Frame()):
        pass
    emitter.flush()
    if not hide_latency:
        emitter.code = list(_in_turns(emitter.code))
    return with_tokens(_program(emitter, nest))


def _in_turns(code: list[Instruction]) -> Iterator[Instruction]:
    """The instructions with a barrier wherever another engine goes on."""
    before = None
    for instruction in code:
        if before is not None and instruction.engine != before:
            yield Sync(action=SyncAction.BARRIER)
        before = instruction.engine
        yield instruction


@dataclass(frozen=True)
class Frame:
    """Where a walk through the nest is: values of loops, and the first tile of each buffer."""

    values: Environment = field(default_factory=dict)
    bases: Mapping[ir.Buffer, int] = field(default_factory=dict)
    thread: int = 0


@dataclass
class Emitter:
    """The instructions so far."""

    config: Config
    places: Mapping[ir.Buffer, Place]
    requantizations: dict[str, Requantize]
    code: list[Instruction] = field(default_factory=list)
    segments: dict[ir.Buffer, int] = field(default_factory=dict)
    turns: dict[tuple[ir.Buffer, int], int] = field(default_factory=dict)
    rules: dict[str, Rule] = field(default_factory=dict)        # of intrinsics from outside
    constant: set[ir.Buffer] = field(default_factory=set)       # in DRAM, and never written
    holds: dict[tuple[ir.Buffer, int], list[tuple[int, ...] | None]] = field(default_factory=dict)
    loaded: set[tuple[ir.Buffer, int]] = field(default_factory=set)     # holds it already
    unstarted: set[Tiles] = field(default_factory=set)  # accumulator tiles whose sums begin next
    forms: dict[int, Affine] = field(default_factory=dict)      # of regions and indices, by id

    def __post_init__(self) -> None:
        self.kernels = MicroKernels(self.config)

    def run(self, statement: ir.Statement, frame: Frame) -> Iterator[None]:
        """Emit a statement. Yields after each of its parts, so that threads can take turns."""
        axes, conditions, innermost = _around(statement)
        if isinstance(innermost, ir.Invoke):
            clipped = self._clipped(axes, conditions, frame)
            if clipped is not None:
                self._invoke(innermost, clipped, frame)
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
                if self._holds(statement.condition, frame):
                    yield from self.run(statement.body, frame)
            case ir.Copy():
                self._copy(statement, frame)
                yield
            case _:
                raise CompileError(f"the accelerator has no instruction for "
                                   f"{type(statement).__name__.lower()} {statement}")

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
        place = self.places.get(statement.buffer)
        if place is None:
            raise CompileError(f"{statement.buffer.name} is allocated in "
                               f"{statement.buffer.scope.value}, which the accelerator does not "
                               f"have; use cache_read or cache_write to give it a scratchpad")
        turn = self._turn(statement, place, frame)
        base = place.of(frame.thread, turn)
        self._overwrite(statement.buffer, range(base, base + place.tiles))
        base *= statement.buffer.tile_rows or 1         # counted as instructions count it
        return replace(frame, bases={**frame.bases, statement.buffer: base})

    def _turn(self, statement: ir.Allocate, place: Place, frame: Frame) -> int:
        """Which of its copies a buffer is this time: one that holds what is about to be loaded,
        which then need not be loaded again, or the one that has waited longest."""
        key = statement.buffer, frame.thread
        holds = self.holds.setdefault(key, [None] * place.copies)
        content = self._content(statement, frame)
        if content is not None and content in holds:
            turn = holds.index(content)
            self.loaded.add((statement.buffer, frame.thread))
            return turn
        self.loaded.discard((statement.buffer, frame.thread))
        turn = self.turns.get(key, 0)
        self.turns[key] = (turn + 1) % place.copies
        holds[turn] = content
        return turn

    def _overwrite(self, buffer: ir.Buffer, tiles: range) -> None:
        """Other buffers of the scratchpad that share these tiles hold nothing any more."""
        for (other, thread), holds in self.holds.items():
            if other is not buffer and other.scope == buffer.scope:
                place = self.places[other]
                for turn in range(place.copies):
                    first = place.of(thread, turn)
                    if first < tiles.stop and first + place.tiles > tiles.start:
                        holds[turn] = None

    def _content(self, statement: ir.Allocate, frame: Frame) -> tuple[int, ...] | None:
        """What a buffer will hold, if it is only a copy of something that nobody writes."""
        for each in _first_parts(statement.body):
            if isinstance(each, ir.Copy) and each.target.buffer is statement.buffer:
                if each.source.buffer in self.constant:
                    return tuple(self._known(index, frame) for index in each.source.start)
                return None
        return None

    def _holds(self, condition: Expression, frame: Frame) -> bool:
        known: dict[Expression, tuple[int, int]] = {
            axis: (value, value) for axis, value in frame.values.items()}
        return _truth(condition, known)

    def _tile(self, region: ir.Region, frame: Frame) -> Affine:
        form = self.forms.get(id(region))
        if form is None:        # the nest lives as long as this does, so ids stay
            form = self.forms[id(region)] = tile_index(region)
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

    def _clipped(self, axes: list[Axis], conditions: list[Expression],
                 frame: Frame) -> dict[Axis, Axis] | None:
        """The loops with the extents that conditions inside them leave; None if nothing is."""
        extents = {axis: axis.extent for axis in axes}
        for condition in conditions:
            assert isinstance(condition, Binary)
            left, right = affine(condition.left), affine(condition.right)
            if left is None or right is None or condition.operator not in ("<", "<="):
                raise CompileError(f"{condition}: loops of the hardware cannot have such a "
                                   f"condition inside")
            room = (right + left.times(-1)).at(frame.values, -(condition.operator == "<"))
            if not room.terms:
                if room.constant < 0:
                    return None
                continue
            (axis, step), *more = room.terms.items()
            if more or step >= 0 or axis not in extents:
                raise CompileError(f"{condition}: loops of the hardware cannot have a condition "
                                   f"on more than one of them inside")
            extents[axis] = min(extents[axis], room.constant // -step + 1)
            if extents[axis] <= 0:
                return None
        return {axis: axis if extent == axis.extent else Axis(axis.name, extent, axis.reduces)
                for axis, extent in extents.items()}

    def _invoke(self, invoke: ir.Invoke, shorter: Mapping[Axis, Axis], frame: Frame) -> None:
        axes = list(shorter.values())
        tiles = [self._tile(region, frame).renamed(shorter) for region in invoke.regions]
        attributes = dict(invoke.attributes)
        if invoke.intrinsic in self.rules:
            self.flush()
            self.code += self.rules[invoke.intrinsic](axes, tiles)
        elif invoke.intrinsic in ("gemm.start", "depthwise.start"):
            self.unstarted.add(tiles_touched(axes, tiles[0]))
        elif invoke.intrinsic.endswith(".start"):
            self.code += fills(axes, tiles[0], attributes["value"])
        elif invoke.intrinsic in ("gemm", "depthwise"):
            self._gemm(axes, tiles, depthwise=invoke.intrinsic == "depthwise")
        elif invoke.intrinsic in self.requantizations:
            self.flush()
            self.code += requantizes(axes, tiles[0], tiles[1], tiles[2:],
                                     self.requantizations[invoke.intrinsic])
        elif "immediate" in attributes:
            self.flush()
            self.code += immediates(axes, AluOp(attributes["op"]), *tiles,
                                    immediate=attributes["immediate"])
        elif "op" in attributes:
            self.flush()
            left = tiles[0] if len(tiles) == len(("dst", "source")) else tiles[1]
            self.code += alus(axes, AluOp(attributes["op"]), tiles[0], left, tiles[-1])
        else:
            raise CompileError(f"no instruction is known for {invoke.intrinsic}")

    def _gemm(self, axes: list[Axis], tiles: list[Affine], *, depthwise: bool) -> None:
        starts = False
        if self.unstarted:
            touched = tiles_touched(axes, tiles[0])
            starts = touched in self.unstarted
            self.unstarted.discard(touched)
            if not starts and any(touched.each() & other.each() for other in self.unstarted):
                self.flush()
        dst, src, wgt = tiles
        self.code += gemms(axes, dst, src, wgt, self.kernels, starts=starts, depthwise=depthwise)

    def flush(self) -> None:
        """Clear accumulator tiles whose sums should have begun and never did."""
        for tiles in sorted(self.unstarted, key=lambda each: each.first):
            for tile in sorted(tiles.each()):
                self.code += fills([], Affine(tile), 0)
        self.unstarted.clear()

    def _copy(self, copy: ir.Copy, frame: Frame) -> None:
        if (copy.target.buffer, frame.thread) in self.loaded:
            return
        loading = copy.target.buffer.scope in SCRATCHPADS
        chip, dram = (copy.target, copy.source) if loading else (copy.source, copy.target)
        scratchpad = scratchpad_of(chip.buffer.scope, dram.buffer, chip.buffer)
        tile_bytes = self.config.tile_bytes(scratchpad)
        start = [self._known(index, frame) for index in dram.start]
        offset, sides = sides_of(dram.buffer, start, chip.buffer, dram.extents, tile_bytes)
        first = self._tile(chip, frame)
        if first.terms:
            raise CompileError(f"{chip}: where it starts is not known when it is emitted")
        segment = self.segments[dram.buffer]
        if loading:
            base = Load(buffer=scratchpad, segment=segment, offset=offset,
                        sram=first.constant // (chip.buffer.tile_rows or 1))
            self.code += loads(base, sides, tile_bytes, padding=copy.padding)
        else:
            self.flush()
            self.code += stores(Store(buffer=scratchpad, segment=segment, offset=offset,
                                      sram=first.constant), sides, tile_bytes)


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


def _truth(condition: Expression, known: Mapping[Expression, tuple[int, int]]) -> bool:
    assert isinstance(condition, Binary)
    if condition.operator == "and":
        return _truth(condition.left, known) and _truth(condition.right, known)
    left, right = interval_of(condition.left, known), interval_of(condition.right, known)
    if condition.operator == "<" and (left[1] < right[0] or left[0] >= right[1]):
        return left[1] < right[0]
    if condition.operator == "<=" and (left[1] <= right[0] or left[0] > right[1]):
        return left[1] <= right[0]
    raise CompileError(f"whether {condition} holds is not known when it is emitted")


def _program(emitter: Emitter, nest: ir.Nest) -> Program:
    micro_ops = np.zeros((max(1, len(emitter.kernels.micro_ops)), len(fields_of(MicroOp))), "<u2")
    if emitter.kernels.micro_ops:
        micro_ops[:, [DST, SRC, WGT]] = emitter.kernels.micro_ops
    data = micro_ops.reshape(-1).view(np.uint8)
    segments, tensors = [Segment(MICRO_OPS, len(data), Access.READ, data)], []
    for buffer in (*nest.inputs, *nest.outputs):
        name = buffer.name.replace(".", "_")
        size = prod(buffer.shape) * element_bytes(buffer)
        access = Access.WRITE if buffer in nest.outputs else Access.READ
        segments.append(Segment(name, size, access))
        tensors.append(Tensor(name, name, 0, buffer.shape, buffer.dtype))
    code = encode([*emitter.code, Sync()])
    return Program(emitter.config, code, tuple(segments), tuple(tensors))
