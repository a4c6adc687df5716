"""The functional simulator: what every instruction means, without a notion of time."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...isa.bounds import DST, MicroOps, check, check_end
from ...isa.instructions import (
    Alu,
    AluI,
    Buffer,
    Gemm,
    Instruction,
    Load,
    Requantize,
    RequantizeFlags,
    Store,
)
from ...isa.program import Program
from ...isa.stream import decode
from ..arguments import check_program
from ..counts import Counts, count
from ..limit import DEFAULT_WORK, check_work, checked_limit
from .flow import Flow
from .machine_table import DONE
from .memory import Memory
from .order import Effect, Order, ProgramOrder
from .scratchpads import Scratchpads

if TYPE_CHECKING:
    from .effects import Effects


class Functional:
    """Executes one program, as often as wanted, on a memory that stays between runs.

    An instruction is checked before it has any effect, so an ExecutionError leaves memory as the
    instructions before it left it. Scratchpads are zero when a run begins.

    `limit` is how many tile operations a run may take, 10,000,000,000 unless given: tile products,
    vectors that the ALU writes, tiles that are loaded or stored. A program that needs more is
    refused before it begins.
    """

    def __init__(self, program: Program, *, limit: int | None = None):
        check_program(program)
        self.limit = checked_limit(limit, DEFAULT_WORK)
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
        """Do an instruction at once."""
        match self.instructions[position]:
            case Gemm() | Alu() | AluI() | Requantize() as instruction:
                if self._compiled().execute(position) != DONE:
                    self._checked(position)
                    compute(instruction, self.scratchpads)
            case _:
                transfer = self._checked(position)
                if self._effects is None or self._compiled().execute(position) != DONE:
                    self._transfer(transfer)()

    def _compiled(self) -> Effects:
        """What GEMM and ALU do; imported when needed, so that a program that only copies does
        without numba."""
        if self._effects is None:
            from .effects import Effects
            self._effects = Effects(self.program, self.memory)
        if self._effects.pads is not self.scratchpads:
            self._effects.use(self.scratchpads)
        return self._effects

    def begin(self, position: int) -> Effect:
        """Let an instruction read everything it reads. The effect is what it writes."""
        match self._checked(position):
            case Gemm() | Alu() | AluI() | Requantize() as instruction:
                return self._computation(instruction)
            case instruction:
                return self._transfer(instruction)

    def _checked(self, position: int) -> Instruction:
        instruction = self.instructions[position]
        if not self._passed[position]:
            check(instruction, self.config, self.program.segments, self.scratchpads.uop,
                  position=position)
            self._passed[position] = not isinstance(instruction, Gemm)  # micro-ops may change
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

    def _computation(self, instruction: Gemm | Alu | AluI | Requantize) -> Effect:
        """Work on a copy; only the tiles that were written come back from it."""
        pads, buffer = self.scratchpads, target_of(instruction)
        twin = pads.with_copy_of(buffer)
        compute(instruction, twin)
        tiles = _written(instruction, pads.uop)
        result = twin.of(buffer)[tiles]

        def effect() -> None:
            pads.of(buffer)[tiles] = result
        return effect


def target_of(instruction: Gemm | Alu | AluI | Requantize) -> Buffer:
    """The scratchpad that GEMM or ALU writes."""
    match instruction:
        case Alu() | AluI():
            return instruction.target
        case Requantize(flags=flags) if not flags & RequantizeFlags.ACC:
            return Buffer.OUT
    return Buffer.ACC


@cache
def _datapath() -> ModuleType:
    """The kernels; imported when needed, so that a program that only copies does without numba."""
    from . import datapath
    return datapath


def compute(instruction: Gemm | Alu | AluI | Requantize, pads: Scratchpads) -> None:
    """Call the kernel of an instruction. Its indices have been checked."""
    datapath = _datapath()
    target = pads.of(target_of(instruction))
    match instruction:
        case Gemm() as each:
            datapath.gemm(pads.acc, pads.inp, pads.wgt, pads.uop[each.uop:each.uop + each.count],
                          int(each.flags), each.loops, each.dst_stride, each.src_stride,
                          each.wgt_stride)
        case Alu() as each:
            datapath.alu(target, pads.acc, int(each.op), each.dst, each.lhs, each.rhs, each.loops,
                         each.dst_stride, each.rhs_stride)
        case AluI() as each:
            datapath.alui(target, pads.acc, int(each.op), each.dst, each.src, each.loops,
                          each.dst_stride, each.src_stride, each.immediate)
        case Requantize() as each:
            datapath.requantize(target, pads.acc, int(each.flags), int(each.rounding), each.dst,
                                each.src, each.params, each.loops, each.dst_stride,
                                each.src_stride, each.params_stride, each.zero_point, each.low,
                                each.high)


def _written(instruction: Gemm | Alu | AluI | Requantize, uops: MicroOps) -> npt.NDArray[np.int64]:
    """The tiles an instruction writes, each once."""
    tiles = np.array([getattr(instruction, "dst", 0)], np.int64)
    if isinstance(instruction, Gemm):
        tiles = tiles + uops[instruction.uop:instruction.uop + instruction.count, DST]
    for number, stride in zip(instruction.loops, instruction.dst_stride, strict=True):
        tiles = np.unique(tiles[:, None] + np.arange(number) * stride)
    return tiles
