"""Twin of hw.fetch.fetch: prefetches the program and dispatches instructions to the queues."""

from __future__ import annotations

from ....isa.faults import Fault
from ....isa.instructions import INSTRUCTION_BYTES, Engine
from ..bus.reader import FETCH
from ..decode import END, SYNC
from ..record_types import Code, Machine, Settings, Unit, Wires
from ..registers import Registers, inline
from . import command_queue

LOAD, GEMM, ALU = int(Engine.LOAD), int(Engine.GEMM), int(Engine.ALU)
BURST, AHEAD = 8, 16        # instructions: in a burst, and prefetched
READ_ERROR, ILLEGAL, NO_END = int(Fault.READ_ERROR), int(Fault.ILLEGAL), int(Fault.NO_END)

# A request `waits` to be taken; `asked` counts its instructions, too. `complete`: all beats of an
# instruction have arrived; `compared`: it has been checked against all rules; `judged`: it enters
# the buffer. `was_idle`: all was idle in the previous cycle, and nothing was dispatched. `at_end`:
# no instruction was left in the previous cycle. `broken` is the first instruction with a bus error,
# -1 if there is none.
REGISTERS = Registers(same=("finished", "was_idle", "at_end"),
                      noted=("beat", "position", "asked", "arrived", "waits", "complete",
                             "compared", "judged", "held_error", "broken", "request_beats",
                             "request_address"))


@inline
def offer(fetch: Unit, wires: Wires, halt: int) -> None:
    """Request the waiting burst."""
    wires.fetch_requests = halt == 0 and fetch.waits != 0
    wires.fetch_beats, wires.fetch_address = fetch.request_beats, fetch.request_address


@inline
def _prepare(fetch: Unit, config: Settings) -> None:
    """Prepare the next burst."""
    size = min(BURST, config.count - fetch.asked)
    fetch.waits = 1
    fetch.request_beats = size * (INSTRUCTION_BYTES // config.bus_bytes)
    fetch.request_address = config.code_base + fetch.asked * INSTRUCTION_BYTES
    fetch.asked += size


@inline
def wants(fetch: Unit, config: Settings) -> bool:
    """Whether the buffer has room for the next burst in addition to all data in flight."""
    left = config.count - fetch.asked
    return left != 0 and AHEAD - (fetch.asked - fetch.position) >= min(BURST, left)


@inline
def is_asleep(machine: Machine, config: Settings, code: Code) -> bool:
    """Whether FETCH does nothing until a beat arrives or a command leaves its queue, as long as
    some engine is busy."""
    fetch = machine.fetch
    if fetch.waits | fetch.complete | fetch.compared | fetch.judged or wants(fetch, config):
        return False
    if machine.buffer.ready == 0:
        return fetch.position != config.count
    return _is_blocked(machine, config, code)


@inline
def only_collects(machine: Machine, config: Settings, code: Code) -> bool:
    """Whether FETCH only collects what arrives until a command leaves its queue, as long as some
    engine is busy."""
    return (machine.fetch.waits == 0 and machine.buffer.ready != 0
            and not wants(machine.fetch, config) and _is_blocked(machine, config, code))


@inline
def _is_blocked(machine: Machine, config: Settings, code: Code) -> bool:
    """Whether the next instruction waits for room in its queue, or for idle engines."""
    position = machine.fetch.position
    instruction = code[position]
    return position != machine.fetch.broken and instruction.legal != 0 and (
        instruction.engine >= SYNC
        or not _has_room(machine, instruction.engine, config.queue_depth))


@inline
def collect(machine: Machine, bus_bytes: int, beats: int) -> None:
    """Take as many beats, one in each cycle, while FETCH does nothing else."""
    fetch, in_one = machine.fetch, INSTRUCTION_BYTES // bus_bytes
    before = fetch.complete + fetch.compared + fetch.judged
    arrived, beat = divmod(fetch.beat + beats, in_one)
    complete, compared = int(fetch.complete), int(fetch.compared)
    fetch.complete = beat == 0
    fetch.compared = (beat == 1 % in_one) if beats > 1 else complete
    fetch.judged = ((beat == 2 % in_one) if beats > 2 else complete if beats > 1 else compared)
    fetch.beat = beat
    fetch.arrived += arrived
    machine.buffer.inner += (before + arrived
                             - (fetch.complete + fetch.compared + fetch.judged))


@inline
def has_beat(reader: Unit) -> bool:
    return reader.queue != 0 and reader.front_client == FETCH


@inline
def step(machine: Machine, wires: Wires, config: Settings, code: Code) -> None:
    fetch, buffer, halt = machine.fetch, machine.buffer, machine.control.halt
    wires.put_to = -1
    wires.fetch_fault = 0
    wires.fetch_position = fetch.position
    dispatched = _dispatch(machine, wires, config, code, halt)
    wires.dispatched = dispatched
    wires.fetched = fetch.complete | fetch.compared | fetch.judged
    wires.hard |= dispatched
    if wires.fetch_granted:
        fetch.waits = 0
    elif fetch.waits == 0 and halt == 0 and wants(fetch, config):
        _prepare(fetch, config)
        wires.hard = 1
    command_queue.step(buffer, fetch.judged, dispatched)
    fetch.judged = fetch.compared
    fetch.compared = fetch.complete
    fetch.complete = _assemble(fetch, wires, config, machine.reader)
    at_end = int(fetch.position == config.count)
    wires.soft |= fetch.at_end != at_end
    fetch.at_end = at_end
    fetch.position += dispatched
    fetch.was_idle = wires.idle != 0 and not dispatched


@inline
def _dispatch(machine: Machine, wires: Wires, config: Settings, code: Code, halt: int) -> bool:
    fetch = machine.fetch
    position = fetch.position
    valid = machine.buffer.ready != 0 and halt == 0 and fetch.finished == 0
    if fetch.finished == 0 and fetch.at_end:
        wires.fetch_fault = NO_END
    if not valid:
        return False
    if position == fetch.broken:
        wires.fetch_fault = READ_ERROR
        return False
    instruction = code[position]
    if instruction.legal == 0:
        wires.fetch_fault = ILLEGAL
        return False
    if instruction.engine >= SYNC:
        if fetch.was_idle and instruction.engine == END:
            fetch.finished = 1
        return fetch.was_idle != 0
    if not _has_room(machine, instruction.engine, config.queue_depth):
        return False
    wires.put_to = instruction.engine
    return True


@inline
def _has_room(machine: Machine, engine: int, depth: int) -> bool:
    """Whether the queue of an engine can take another command."""
    if engine == LOAD:
        return command_queue.has_room(machine.load_queue, depth)
    if engine == GEMM:
        return command_queue.has_room(machine.gemm_queue, depth)
    if engine == ALU:
        return command_queue.has_room(machine.alu_queue, depth)
    return command_queue.has_room(machine.store_queue, depth)


@inline
def _assemble(fetch: Unit, wires: Wires, config: Settings, reader: Unit) -> bool:
    """Take the beat for FETCH, if there is one. Returns whether it completes an instruction."""
    if not has_beat(reader):
        return False
    wires.beat_taken = wires.fetched = 1
    error = fetch.held_error or reader.front_error
    last = fetch.beat == INSTRUCTION_BYTES // config.bus_bytes - 1
    fetch.held_error = error and not last
    fetch.beat = 0 if last else fetch.beat + 1
    if last:
        if error and fetch.broken < 0:
            fetch.broken = fetch.arrived
        fetch.arrived += 1
    return last
