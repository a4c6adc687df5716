"""The functional simulator: executes instructions without timing."""

from __future__ import annotations

from functools import cache, cached_property
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from ...isa.instructions import (
    TABLE_ENTRIES,
    TABLE_WORDS,
    WINDOW_TAPS,
    Alu,
    AluI,
    Buffer,
    Gemm,
    GemmFlags,
    Instruction,
    Load,
    Requantize,
    RequantizeFlags,
    Store,
    Table,
    Window,
)
from ...isa.program import Program
from ...isa.stream import decode
from ...isa.verification.bounds import DST, check, check_end
from ..arguments import check_program
from ..counts import Counts, count
from ..limit import DEFAULT_WORK, HEAVY, check_limit, check_work, lane_operations
from .flow import Flow
from .machine_table import DONE
from .memory import Memory
from .order import Effect, Order, ProgramOrder
from .scratchpads import Scratchpads, Tiles

if TYPE_CHECKING:
    from .effects import Effects

Computation: TypeAlias = Gemm | Window | Alu | AluI | Requantize | Table

class Functional:
    """Executes one program, any number of times, on a memory that persists between runs.

    An instruction is checked before it has any effect, so an ExecutionError leaves memory in the
    state after the instruction before. Scratchpads are zero when a run begins.

    `limit` is the number of tile operations that a run may take, by default 10,000,000,000: tile
    products, vectors written by the ALU, tiles loaded or stored. A program that needs more is
    refused before it begins.
    """

    def __init__(self, program: Program, *, limit: int | None = None):
        check_program(program)
        self.limit = check_limit(limit, DEFAULT_WORK)
        self.program = program
        self.config = program.config
        self.instructions = decode(program.code)
        check_end(program.code)
        self.memory = Memory(program)
        self.scratchpads = Scratchpads(program.config)
        self._passed = bytearray(len(self.instructions))
        self._effects: Effects | None = None

    def run(self, order: Order | None = None) -> Counts:
        """Execute everything, in program order unless told otherwise."""
        check_work(self.program, self.limit)
        self.scratchpads = Scratchpads(self.config)
        flow = Flow(self.instructions, self.config)
        (order or ProgramOrder()).drive(flow, self)
        return count(self.program.code, self.config, flow.most_tokens())

    def execute(self, position: int) -> None:
        """Execute an instruction in one step."""
        if isinstance(self.instructions[position], Load | Store):
            instruction = self._check_instruction(position)  # compiled code checks less than this
            if self._effects is None and position not in self._heavy:
                self._transfer(instruction)()
                return
        self._execute_on(self.scratchpads, position)

    def _execute_on(self, pads: Scratchpads, position: int) -> None:
        """Execute with compiled code, which needs numba; a small program that only copies does
        not."""
        if self._effects is None:
            from .effects import Effects
            self._effects = Effects(self.program, self.memory)
        if self._effects.pads is not pads:
            self._effects.use(pads)
        heavy = position in self._heavy
        if self._effects.execute(position, heavy=heavy) != DONE:
            instruction = self._check_instruction(position)
            assert isinstance(instruction, Computation)
            compute(instruction, pads, heavy=heavy)

    def begin(self, position: int) -> Effect:
        """Do the reads of an instruction. The effect does its writes."""
        instruction, pads = self._check_instruction(position), self.scratchpads
        if isinstance(instruction, Load | Store) and position not in self._heavy:
            return self._transfer(instruction)
        if isinstance(instruction, Store):
            before = pads.with_copy_of(instruction.buffer)
            return lambda: self._execute_on(before, position)
        if isinstance(instruction, Table):
            return _fill_table(instruction, pads)
        buffer = target_of(instruction)
        twin = pads.with_copy_of(buffer)
        self._execute_on(twin, position)
        written = tiles_written(instruction, pads)
        result = twin.of(buffer)[written]

        def effect() -> None:
            pads.of(buffer)[written] = result
        return effect

    @cached_property
    def _heavy(self) -> frozenset[int]:
        """The positions of instructions that may take long."""
        return frozenset(np.flatnonzero(lane_operations(self.program) > HEAVY).tolist())

    def _check_instruction(self, position: int) -> Instruction:
        instruction = self.instructions[position]
        if not self._passed[position]:
            check(instruction, self.config, self.program.segments, self.scratchpads.uop,
                  position=position)
            # Micro-ops may change.
            self._passed[position] = not isinstance(instruction, Gemm | Window)
        return instruction

    def _transfer(self, instruction: Instruction) -> Effect:
        pads, memory = self.scratchpads, self.memory
        match instruction:
            case Load():
                read = memory.load_box(instruction, self.config.tile_bytes(instruction.buffer))
                return lambda: pads.fill(instruction, read)
            case Store():
                rows = pads.take(instruction)
                return lambda: memory.store_box(instruction, rows)
        raise AssertionError(f"no engine moves data for {instruction}")


def target_of(instruction: Instruction) -> Buffer:
    """The scratchpad that an instruction writes."""
    match instruction:
        case Load():
            return instruction.buffer
        case Alu() | AluI():
            return instruction.target
        case Requantize():
            return Buffer.ACC if instruction.flags & RequantizeFlags.ACC else Buffer.OUT
        case Gemm() | Window():
            return Buffer.ACC
    raise AssertionError(f"{instruction} writes no scratchpad")


@cache
def _datapath() -> ModuleType:
    """The kernels, imported when needed: a program that only copies does not need numba."""
    from . import datapath
    return datapath


def compute(instruction: Computation, pads: Scratchpads, *,
            heavy: bool = False) -> None:
    """Call the kernel of an instruction whose indices have been checked. `heavy`: it may take so
    long that Ctrl-C must work meanwhile."""
    if heavy:
        from ..compiled.interruptible import Stop, interruptible
        stop = Stop()
        interruptible(lambda: _compute(instruction, pads, {"stop": stop.address}), stop)
    else:
        _compute(instruction, pads, {})


def _fill_table(instruction: Table, pads: Scratchpads) -> Effect:
    """Read the words of a table. The effect fills it."""
    words = pads.acc[instruction.src:].reshape(-1)[:TABLE_WORDS]
    entries = words.astype("<i4").view(np.int8)
    first = TABLE_ENTRIES * instruction.table

    def effect() -> None:
        pads.tables[first:first + TABLE_ENTRIES] = entries
    return effect


def _compute(instruction: Computation, pads: Scratchpads, options: dict[str, int]) -> None:
    if isinstance(instruction, Table):
        _fill_table(instruction, pads)()
        return
    datapath = _datapath()
    target = pads.of(target_of(instruction))
    match instruction:
        case Gemm() as each:
            datapath.gemm(pads.acc, _activations(each, pads), pads.wgt,
                          pads.uop[each.uop:each.uop + each.count],
                          int(each.flags & ~GemmFlags.OUT), each.loops, each.dst_stride,
                          each.src_stride, each.wgt_stride, **options)
        case Window() as each:
            datapath.window(pads.acc, _activations(each, pads), pads.wgt,
                            pads.uop[each.uop:each.uop + 1], int(each.flags & ~GemmFlags.OUT),
                            each.loops, each.dst_stride, each.src_stride, each.wgt_stride,
                            **options)
        case Alu() as each:
            datapath.alu(target, pads.acc, int(each.op), each.dst, each.lhs, each.rhs, each.loops,
                         each.dst_stride, each.rhs_stride, **options)
        case AluI() as each:
            datapath.alui(target, pads.acc, int(each.op), each.dst, each.src, each.loops,
                          each.dst_stride, each.src_stride, each.immediate, **options)
        case Requantize() as each:
            datapath.requantize(target, pads.acc, pads.tables, int(each.flags),
                                int(each.rounding), each.dst, each.src, each.params, each.loops,
                                each.dst_stride, each.src_stride, each.params_stride,
                                each.zero_point, each.low, each.high, **options)


def _activations(product: Gemm | Window, pads: Scratchpads) -> Tiles:
    """The activations of a product: inp, or out in tiles of the same shape."""
    if GemmFlags.OUT not in product.flags:
        return pads.inp
    return pads.out.reshape(-1, *pads.inp.shape[1:])


def tiles_written(instruction: Instruction, pads: Scratchpads) -> npt.NDArray[np.bool_]:
    """Which tiles of its target an instruction writes. Its indices have been checked."""
    written = np.zeros(len(pads.of(target_of(instruction))), np.bool_)
    taps = groups = 1
    match instruction:
        case Load(shape=(z, y, x), pad=(top, bottom, left, right)):
            plane = (top + y + bottom) * (left + x + right)
            written[instruction.sram:instruction.sram + plane] = True
            return _repeat_tiles(written, z, instruction.sram_pitch)
        case Gemm() | Window():
            if isinstance(instruction, Window) or GemmFlags.DEPTHWISE in instruction.flags:
                groups = pads.acc.shape[2] // min(pads.acc.shape[2], pads.inp.shape[2])
            taps = WINDOW_TAPS if isinstance(instruction, Window) else 1
            count = 1 if isinstance(instruction, Window) else instruction.count
            written = np.repeat(written, groups)
            written[pads.uop[instruction.uop:instruction.uop + count, DST]] = True
        case Alu() | AluI() | Requantize():
            written[instruction.dst] = True
        case _:
            raise AssertionError(f"{instruction} writes no scratchpad")
    outer, middle, inner = instruction.loops
    iterations = outer, middle, max(inner - taps + 1, 0)
    for number, stride in zip(iterations, instruction.dst_stride, strict=True):
        written = _repeat_tiles(written, number, stride)
    return np.logical_or.reduceat(written, np.arange(0, len(written), groups))


def _repeat_tiles(tiles: npt.NDArray[np.bool_], number: int, stride: int) -> npt.NDArray[np.bool_]:
    """The union of `number` copies of a set of tiles, each `stride` further. All are in range."""
    if number == 0:
        return np.zeros_like(tiles)
    done = 1
    while done < number:
        more = min(done, number - done)
        tiles = tiles | np.roll(tiles, more * stride)
        done += more
    return tiles
