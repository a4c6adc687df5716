"""Twin of hw.store.store: the start of stores, the request side, the list of pending responses."""

from __future__ import annotations

from ....isa.faults import Fault
from ....isa.instructions import Engine
from .. import tokens
from ..bus import writer
from ..record_types import Code, Machine, Numbers, Settings, Unit, Wires
from ..registers import Registers, inline
from ..transfer import burst_walker
from . import store_reader

STORE = int(Engine.STORE)
QUEUE_DEPTH = 4             # stores between the request side and the read side
WRITE_ERROR = int(Fault.WRITE_ERROR)
AWAITED = 128               # length of the list; at most `writes_in_flight` + 2 are used

# The list of pending responses: the instruction of each burst, whether it is the last of its store
# and whether it stands for an empty box.
REGISTERS = Registers(same=("fault",),
                      noted=("queue", "reading", "awaited", "head", "fault_position"),
                      storage={"of": AWAITED, "last": AWAITED, "no_bytes": AWAITED})


@inline
def answers_ready(store: Unit) -> bool:
    """Whether the oldest entry of the list waits for a response."""
    return store.awaited != 0 and store.no_bytes[store.head] == 0


@inline
def step(machine: Machine, wires: Wires, code: Code, config: Settings, positions: Numbers) -> int:
    """Returns the position of the store that starts, or -1. `reading` counts those read."""
    store, walker, commands = machine.store, machine.store_rows, machine.store_queue
    wires.store_moved = 0
    if not (burst_walker.is_busy(walker) or store.awaited or store_reader.is_busy(machine)):
        return _rest(machine, wires, code)
    stop = machine.control.halt != 0 or store.fault != 0
    wires.store_busy = burst_walker.is_busy(walker) or store.awaited != 0
    started = -1
    wires.store_wait = 0
    if commands.ready and walker.held == 0 and store.queue != QUEUE_DEPTH and not stop:
        missing = tokens.missing_tokens(machine.tokens, STORE, commands.wait)
        wires.store_wait = missing
        if missing == 0:
            started = int(commands.position)
    bad_row, bad_position = burst_walker.fault(walker, stop), walker.cut_position
    badly, badly_position, awaits = _complete(store, machine.writer, wires, stop)
    taken = _request(machine, wires, config, stop, awaits)
    if taken:
        _await(store, walker)
        wires.hard |= awaits == 0 or wires.store_granted == 0
    burst_walker.step(walker, wires, code, config.bus_bytes, taken, stop, True)
    if started >= 0:
        burst_walker.take(walker, started, code[started])
    finished = store_reader.step(machine, wires, code, config, positions, stop, awaits)
    store.queue += (started >= 0) - finished
    store.reading += finished
    # The first fault stays. Responses belong to older stores than reads, and reads to older ones
    # than rows.
    if badly and not stop:
        store.fault, store.fault_position = WRITE_ERROR, badly_position
    elif wires.store_reader_fault:
        store.fault, store.fault_position = wires.store_reader_fault, wires.store_reader_position
    elif bad_row:
        store.fault, store.fault_position = bad_row, bad_position
    return started


@inline
def _rest(machine: Machine, wires: Wires, code: Code) -> int:
    """Nothing is in flight; the next store may start."""
    store, beats, commands = machine.store, machine.store_beats, machine.store_queue
    wires.store_busy = wires.store_wait = wires.store_wait_memory = wires.store_bytes = 0
    wires.store_granted = wires.store_offers = 0
    wires.store_end = -1
    beats.ended = 0
    if commands.ready == 0 or machine.control.halt or store.fault:
        return -1
    wires.store_wait = tokens.missing_tokens(machine.tokens, STORE, commands.wait)
    if wires.store_wait:
        return -1
    burst_walker.take(machine.store_rows, commands.position, code[commands.position])
    store.queue = 1
    return int(commands.position)


@inline
def _complete(store: Unit, answers: Unit, wires: Wires, stop: int) -> tuple[bool, int, int]:
    """Remove the oldest entry of the list if it is complete. Returns whether its response was an
    error, its instruction, and how many entries there were."""
    wires.store_end = -1
    awaits, head = store.awaited, store.head
    if awaits == 0 or not (store.no_bytes[head] or answers.answered):
        return False, 0, awaits
    badly = store.no_bytes[head] == 0 and answers.answer_error != 0
    if store.last[head] and not badly and not stop:
        wires.store_end = store.of[head]
    store.awaited -= 1
    store.head = (head + 1) & AWAITED - 1
    wires.turned = 1
    wires.hard |= store.awaited == 0
    return badly, store.of[head], awaits


@inline
def _request(machine: Machine, wires: Wires, config: Settings, stop: int, awaits: int) -> bool:
    """Offer the oldest burst. Returns whether it is sent."""
    walker = machine.store_rows
    wires.store_granted = 0
    if not burst_walker.offers(walker, stop) or awaits == config.writes_in_flight + 2:
        return False
    if walker.front_empty == 0:
        if not writer.may_request(machine.writer, wires, config, machine.control.halt):
            return False
        wires.store_granted = 1
        wires.store_beats, wires.store_address = walker.front_beats, walker.front_address
    return True


@inline
def _await(store: Unit, walker: Unit) -> None:
    """Append the oldest burst to the list."""
    place = (store.head + store.awaited) & AWAITED - 1
    store.of[place], store.last[place] = walker.front_of, walker.front_last
    store.no_bytes[place] = walker.front_empty
    store.awaited += 1
