"""Compiled execution of one instruction, or of a whole program in one call.

Importing this module imports numba.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from ...isa.instructions import Buffer, Gemm, GemmFlags, Opcode, Window
from ...isa.program import Program
from ...isa.stream import positions_of
from ..compiled.interruptible import Stop, interruptible
from ..compiled.vectors import c_function, call, callable_at, number_at, write_number
from ..limit import HEAVY, lane_operations
from . import (
    alu_kernels,
    gemm_kernels,
    gemm_plan,
    requantize_kernels,
    transfer_kernels,
    window_plan,
)
from .machine_table import DONE, ELSEWHERE, Numbers, machine, rows_of
from .memory import Memory
from .scratchpads import Scratchpads

FUNCTIONS: dict[int, Callable[[], int]] = {
    Opcode.LOAD: transfer_kernels.load, Opcode.GEMM: gemm_plan.gemm, Opcode.ALU: alu_kernels.alu,
    Opcode.ALUI: alu_kernels.alui, Opcode.REQUANTIZE: requantize_kernels.requantize,
    Opcode.STORE: transfer_kernels.store, Opcode.WINDOW: window_plan.window,
    Opcode.TABLE: requantize_kernels.fill_table}
OPCODES = 256               # that a byte can hold


class Effects:
    """Executes a program's instructions on scratchpads, which may be replaced, and a memory.

    The result tells whether an instruction is DONE. If it has an index OUTSIDE, or has to be
    executed ELSEWHERE, it had no effect.
    """

    def __init__(self, program: Program, memory: Memory):
        self.program = program
        self.memory = memory
        self.pads: Scratchpads | None = None
        self._rows = rows_of(program.code)
        self._space = gemm_plan.space()
        self._stop = Stop()
        self._numbers: Numbers

    def use(self, pads: Scratchpads) -> None:
        """Use these scratchpads. Their arrays must stay at their addresses."""
        self.pads = pads
        dense, depthwise = self._kernels
        self._numbers = machine(
            {each: pads.of(each) for each in Buffer}, self._tile_bytes, self.memory,
            stop=self._stop.address, dense=dense, depthwise=depthwise,
            plan=self._space.ctypes.data, gemm_out=self.program.config.gemm_out_tiles,
            windows=self.program.config.has_windows,
            tables=pads.tables.ctypes.data if self.program.config.tables else 0)
        self._machine = self._numbers.ctypes.data
        self._first_row = self._rows.ctypes.data

    @cached_property
    def _tile_bytes(self) -> dict[Buffer, int]:
        return {each: self.program.config.tile_bytes(each) for each in Buffer}

    @cached_property
    def _kernels(self) -> tuple[int, int]:
        """The kernels for gemms and for depthwise gemms, if the program has any."""
        config = self.program.config
        depthwise = positions_of(self.program.code, Gemm)[1]["flags"] & GemmFlags.DEPTHWISE != 0
        used = {*depthwise.tolist()} | {True for _ in positions_of(self.program.code, Window)[0]}
        tiles = config.batch, config.block_in, config.block_out
        dense, lanewise = (gemm_kernels.kernel_for(*tiles, each)
                           if each in used else gemm_kernels.NO_KERNEL
                           for each in (False, True))
        return dense, lanewise

    @cached_property
    def _functions(self) -> Numbers:
        """Addresses by opcode; 0 if the program does not use it."""
        functions = np.zeros(OPCODES, np.int64)
        for opcode in set(self._opcodes) & set(FUNCTIONS):
            functions[opcode] = function_of(opcode)
        return functions

    @cached_property
    def _opcodes(self) -> list[int]:
        opcodes: list[int] = self.program.code["opcode"].tolist()
        return opcodes

    @cached_property
    def _is_heavy(self) -> bool:
        return bool(lane_operations(self.program).sum() > HEAVY)

    def execute(self, position: int, *, heavy: bool = False) -> int:
        """Execute one instruction. `heavy`: it must be interruptible by Ctrl-C."""
        opcode = self._opcodes[position]
        if opcode not in FUNCTIONS:
            return ELSEWHERE
        row = self._first_row + position * self._rows.strides[0]
        if heavy:
            function = callable_at(function_of(opcode), locks=False)
            return interruptible(lambda: function(row, self._machine), self._stop)
        return callable_at(function_of(opcode))(row, self._machine)

    def execute_all(self, order: npt.NDArray[np.intp], first: int) -> tuple[int, int]:
        """Execute the instructions at these positions, beginning with number `first`. Returns the
        number of the first that was not done, or how many there are, and the last result."""
        order = np.ascontiguousarray(order, np.int64)
        given = np.array([first, len(order), self._first_row, self._rows.strides[0],
                          self._functions.ctypes.data, self._machine], np.int64)
        function = callable_at(execute_list(), locks=False)
        arguments = order.ctypes.data, given.ctypes.data
        if self._is_heavy:
            heard = interruptible(lambda: function(*arguments), self._stop)
        else:
            heard = function(*arguments)
        return int(given[STEP]), heard


@cache
def function_of(opcode: int) -> int:
    """The address of the compiled function for an instruction."""
    return FUNCTIONS[opcode]()


# Arguments of `execute_list`: the next step, their number, the address of the rows of instructions,
# bytes of a row, and the addresses of the function table and of the machine.
STEP, STEPS, ROWS, ROW, BY_OPCODE, MACHINE = range(6)


@cache
def execute_list() -> int:
    """The address of a C function that does what `execute_all` does, given the positions and the
    rest. It leaves there the number of the first step that was not done."""
    def function(order: int, given: int) -> int:
        steps, machine = number_at(given, STEPS), number_at(given, MACHINE)
        for step in range(number_at(given, STEP), steps):
            row = number_at(given, ROWS) + number_at(given, ROW) * number_at(order, step)
            execute, heard = number_at(number_at(given, BY_OPCODE), number_at(row, 0)), ELSEWHERE
            if execute != 0:
                heard = call(execute, row, machine)
            if heard != DONE:
                write_number(given, STEP, step)
                return heard
        write_number(given, STEP, steps)
        return DONE
    return c_function(function)
