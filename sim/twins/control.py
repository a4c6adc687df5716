"""Twin of hw.control: the state of a run, the first fault, and the counters."""

from __future__ import annotations

import numpy as np

from ...isa.faults import Fault
from ...isa.instructions import Engine
from ...isa.registers import counter_names
from .gemm import gemm
from .record_types import Machine, Numbers, Unit, Wires
from .registers import Registers, inline

LOAD, GEMM, ALU, STORE = (int(each) for each in Engine)
INDEX, TOKEN_OVERFLOW = int(Fault.INDEX), int(Fault.TOKEN_OVERFLOW)

# `now` is the cycle of the run. Each hardware counter belongs to one side of the machine. `seen` is
# the fault of the previous cycle. Once it is `caught`, all units halt.
REGISTERS = Registers(same=("halt", "ended", "seen", "caught"),
                      noted=("seen_position", "fault", "fault_position"))
CLOCK = Registers(moving=("now",))
MEMORY_COUNTS = Registers(moving=tuple(
    name for name in counter_names() if name.startswith(("cycles", "load_", "store_"))))
COMPUTE_COUNTS = Registers(moving=tuple(
    name for name in counter_names() if name not in MEMORY_COUNTS.moving))

# Wait counters by taker and giver, numbered from the first of MEMORY_COUNTS; the others follow.
COUNTER_ORDER = MEMORY_COUNTS.moving + COMPUTE_COUNTS.moving
WAITS = np.array([[COUNTER_ORDER.index(f"{taker.name.lower()}_wait_{giver.name.lower()}")
                   if taker != giver else -1 for giver in Engine] for taker in Engine])


@inline
def _or(raised: int, cause: int, position: int, fault: tuple[int, int]) -> tuple[int, int]:
    """This fault if it is raised, otherwise `fault`."""
    return (cause, position) if raised else fault


@inline
def first_fault(machine: Machine, wires: Wires, overflow: int) -> tuple[int, int]:
    """The fault of this cycle that is reported, if any: cause and position."""
    fault = wires.fetch_fault, wires.fetch_position
    fault = _or(wires.load_fault, wires.load_fault, wires.load_fault_position, fault)
    fault = _or(overflow >> LOAD & 1, TOKEN_OVERFLOW, wires.load_end, fault)
    fault = _or(gemm.is_stopped(machine.gemm, machine.clock.now), INDEX,
                machine.gemm.fault_position, fault)
    fault = _or(overflow >> GEMM & 1, TOKEN_OVERFLOW, wires.gemm_end, fault)
    fault = _or(wires.alu_fault, INDEX, wires.alu_fault_position, fault)
    fault = _or(overflow >> ALU & 1, TOKEN_OVERFLOW, wires.alu_end, fault)
    fault = _or(wires.store_fault, wires.store_fault, wires.store_fault_position, fault)
    return _or(overflow >> STORE & 1, TOKEN_OVERFLOW, wires.store_end, fault)


@inline
def step(machine: Machine, wires: Wires, overflow: int) -> None:
    """A run ends when FETCH has finished or a fault has occurred, and the bus is quiet. Faults take
    effect one cycle later."""
    control = machine.control
    if wires.quiet and (control.halt or (wires.finished and control.caught | control.seen == 0)):
        control.ended = 1
    control.halt = control.caught
    if control.caught == 0 and control.seen:
        control.caught, control.fault = 1, control.seen
        control.fault_position = control.seen_position
    control.seen, control.seen_position = first_fault(machine, wires, overflow)
    machine.clock.now += 1


@inline
def count_memory(counts: Unit, wires: Wires) -> None:
    """Update the counters of LOAD and STORE."""
    counts.cycles += 1
    counts.load_busy += wires.load_busy
    counts.store_busy += wires.store_busy
    counts.load_wait_memory += wires.load_wait_memory
    counts.store_wait_memory += wires.store_wait_memory
    counts.load_bytes += wires.load_bytes
    counts.store_bytes += wires.store_bytes


@inline
def count_compute(counts: Unit, wires: Wires) -> None:
    """Update the counters of the other engines."""
    counts.instructions += wires.dispatched
    counts.gemm_busy += wires.gemm_busy
    counts.alu_busy += wires.alu_busy


@inline
def count_waits(counters: Numbers, engine: int, missing: int, cycles: int) -> None:
    """Add cycles to the counters of the engines whose tokens are missing."""
    for giver in range(len(WAITS)):
        if missing >> giver & 1:
            counters[WAITS[engine, giver]] += cycles
