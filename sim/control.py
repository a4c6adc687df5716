"""Twin of hw.control: the state of a run, the first fault, and the counters."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from ..isa.faults import Fault
from ..isa.instructions import Engine
from ..isa.registers import counter_names
from . import gemm
from .unit import Registers

LOAD, GEMM, ALU, STORE = (int(each) for each in Engine)
INDEX, TOKEN_OVERFLOW = int(Fault.INDEX), int(Fault.TOKEN_OVERFLOW)
COUNTERS = len(counter_names())

# `now` is the cycle of the run. Counters are those of the hardware, in the order of their names.
REGISTERS = Registers(same=("halt", "ended", "fault", "fault_position"), moving=("now",))
COUNTS = Registers(moving=counter_names())

WAITS = np.array([[counter_names().index(f"{taker.name.lower()}_wait_{giver.name.lower()}")
                   if taker != giver else -1 for giver in Engine] for taker in Engine])


@numba.njit(forceinline=True)
def first_fault(machine: Any, wires: Any, overflow: int) -> Any:
    """Of the faults raised in this cycle, the one that is reported: cause and position."""
    cause, position = wires.fetch_fault, wires.fetch_position
    if wires.load_fault:
        cause, position = wires.load_fault, wires.load_fault_position
    if overflow >> LOAD & 1:
        cause, position = TOKEN_OVERFLOW, wires.load_end
    if gemm.is_stopped(machine.gemm, machine.control.now):
        cause, position = INDEX, machine.gemm.fault_position
    if overflow >> GEMM & 1:
        cause, position = TOKEN_OVERFLOW, wires.gemm_end
    if wires.alu_fault:
        cause, position = INDEX, wires.alu_fault_position
    if overflow >> ALU & 1:
        cause, position = TOKEN_OVERFLOW, wires.alu_end
    if wires.store_fault:
        cause, position = wires.store_fault, wires.store_fault_position
    if overflow >> STORE & 1:
        cause, position = TOKEN_OVERFLOW, wires.store_end
    return cause, position


@numba.njit(forceinline=True)
def step(machine: Any, wires: Any, overflow: int) -> None:
    """A run is over when FETCH has finished, or after a fault, and the bus is quiet."""
    control = machine.control
    cause, position = first_fault(machine, wires, overflow)
    if control.halt == 0 and cause:
        control.halt, control.fault, control.fault_position = 1, cause, position
    elif wires.quiet and (control.halt or wires.finished):
        control.ended = 1
    control.now += 1


@numba.njit(forceinline=True)
def count(counts: Any, wires: Any) -> None:
    """Add up what the engines tell."""
    counts.cycles += 1
    counts.instructions += wires.dispatched
    counts.load_busy += wires.load_busy
    counts.gemm_busy += wires.gemm_busy
    counts.alu_busy += wires.alu_busy
    counts.store_busy += wires.store_busy
    counts.load_wait_memory += wires.load_wait_memory
    counts.store_wait_memory += wires.store_wait_memory
    counts.load_bytes += wires.load_bytes
    counts.store_bytes += wires.store_bytes


@numba.njit(forceinline=True)
def count_waits(counters: Any, engine: int, missing: int) -> None:
    """Add a cycle to the counters of the engines whose tokens are missing."""
    for giver in range(len(WAITS)):
        if missing >> giver & 1:
            counters[WAITS[engine, giver]] += 1
