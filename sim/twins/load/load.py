"""Twin of hw.load.load: the start of loads, the request side and the faults.

`load_writer` is the write side, and `transfer.burst_walker` splits the rows into bursts.
"""

from __future__ import annotations

from ....isa.faults import Fault
from ....isa.instructions import Engine
from .. import tokens
from ..record_types import Code, Machine, Numbers, Settings, Unit, Wires
from ..registers import Registers, inline
from ..transfer import burst_walker
from . import load_writer

LOAD = int(Engine.LOAD)
QUEUE_DEPTH = 4             # loads between the request side and the write side
ILLEGAL = int(Fault.ILLEGAL)

# Of those in the `queue`, the last one may be `entering`.
REGISTERS = Registers(same=("fault",), noted=("queue", "writing", "entering", "fault_position"))


@inline
def offer(machine: Machine, wires: Wires) -> None:
    """Request the oldest burst from the reader."""
    walker = machine.load_rows
    wires.load_requests = 0
    stop = machine.control.halt != 0 or machine.load.fault != 0
    if burst_walker.offers(walker, stop):
        wires.load_requests = 1
        wires.load_beats, wires.load_address = walker.front_beats, walker.front_address


@inline
def step(machine: Machine, wires: Wires, code: Code, config: Settings, positions: Numbers) -> int:
    """Returns the position of the load that starts, or -1. `writing` counts those written."""
    load, walker, commands = machine.load, machine.load_rows, machine.load_queue
    stop = machine.control.halt != 0 or load.fault != 0
    if not (stop or burst_walker.is_busy(walker) or load.queue
            or load_writer.is_busy(machine.load_write)):
        return _rest(machine, wires, code)
    wires.load_wait = 0
    started = -1
    if commands.ready and walker.held == 0 and load.queue != QUEUE_DEPTH and not stop:
        missing = tokens.missing_tokens(machine.tokens, LOAD, commands.wait)
        wires.load_wait = missing
        if missing == 0:
            started = int(commands.position)
    bad_row = burst_walker.fault(walker, stop)
    bad_position = walker.cut_position
    burst_walker.step(walker, wires, code, config.bus_bytes, wires.load_granted, stop, False)
    if started >= 0:
        burst_walker.take(walker, started, code[started])
    finished = load_writer.step(machine, wires, code, config, positions, stop)
    load.queue += (started >= 0) - finished
    wires.hard |= load.entering
    load.entering = started >= 0
    load.writing += finished
    _note_fault(load, wires, code, started, bad_row, bad_position)
    return started


@inline
def _rest(machine: Machine, wires: Wires, code: Code) -> int:
    """Nothing is in flight; the next load may start."""
    load, commands = machine.load, machine.load_queue
    wires.load_busy = wires.load_wait = wires.load_wait_memory = wires.load_bytes = 0
    wires.load_end = -1
    if commands.ready == 0:
        return -1
    wires.load_wait = tokens.missing_tokens(machine.tokens, LOAD, commands.wait)
    if wires.load_wait:
        return -1
    burst_walker.take(machine.load_rows, commands.position, code[commands.position])
    load.queue = load.entering = 1
    if code[commands.position].bad_padding:
        load.fault, load.fault_position = ILLEGAL, commands.position
    return int(commands.position)


@inline
def _note_fault(load: Unit, wires: Wires, code: Code, started: int, bad_row: int,
                bad_position: int) -> None:
    """Record the first fault. Loads on the write side are older than those of the walker."""
    if wires.load_writer_fault:
        load.fault, load.fault_position = wires.load_writer_fault, wires.load_writer_position
    elif bad_row:
        load.fault, load.fault_position = bad_row, bad_position
    elif started >= 0 and code[started].bad_padding:
        load.fault, load.fault_position = ILLEGAL, started
