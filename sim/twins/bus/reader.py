"""Twin of hw.bus.reader: bursts of FETCH and LOAD on the read channels, and their beats back."""

from __future__ import annotations

from ..record_types import Settings, Unit, Wires
from ..registers import Registers, inline

FETCH, LOAD = 0, 1          # clients, and their ids on the bus
QUEUE_DEPTH = 2             # beats

# The queue of two beats has a front and a back: the client of each, and whether the bus reported an
# error. Of two addresses, one is on the bus, and the other one waits behind it.
REGISTERS = Registers(same=("queue", "front_client", "back_client"),
                      noted=("in_flight", "arvalid", "ar_waits", "front_error", "back_error",
                             "head", "ar_client", "ar_beats", "ar_address", "next_client",
                             "next_beats", "next_address"))


@inline
def is_quiet(reader: Unit) -> bool:
    return reader.in_flight == 0 and reader.queue == 0


@inline
def take_request(reader: Unit, wires: Wires, config: Settings, halt: int) -> None:
    """Grant a request. `head` is the client with the highest priority."""
    wires.fetch_granted = 0
    wires.load_granted = 0
    may_take = (reader.ar_waits == 0 and halt == 0
                and reader.in_flight != config.reads_in_flight)
    if wires.ar_taken:
        reader.arvalid, reader.ar_waits = reader.ar_waits, 0
        _show_next(reader)
        wires.asked = 1
    if not may_take or not (wires.fetch_requests or wires.load_requests):
        return
    if wires.load_requests and (reader.head == LOAD or not wires.fetch_requests):
        wires.load_granted = 1
        reader.next_client, reader.next_beats = LOAD, wires.load_beats
        reader.next_address = wires.load_address
    else:
        wires.fetch_granted = 1
        reader.next_client, reader.next_beats = FETCH, wires.fetch_beats
        reader.next_address = wires.fetch_address
    reader.head = 1 - reader.next_client
    reader.ar_waits = reader.arvalid
    if reader.arvalid == 0:
        reader.arvalid = 1
        _show_next(reader)
    reader.in_flight += 1
    wires.asked = 1


@inline
def _show_next(reader: Unit) -> None:
    """Move the waiting address to the bus."""
    reader.ar_client, reader.ar_beats = reader.next_client, reader.next_beats
    reader.ar_address = reader.next_address


@inline
def deliver(reader: Unit, wires: Wires) -> None:
    """The front beat leaves if its client took it, and the beat on the bus arrives if there is
    room.

    The bus has already been decided for this cycle: `r_taken` implies that there was room.
    """
    if not (wires.beat_taken or wires.r_taken):
        return
    queue, front, back = reader.queue, reader.front_client, reader.back_client
    if wires.beat_taken:
        reader.queue -= 1
        reader.front_client, reader.front_error = reader.back_client, reader.back_error
    if wires.r_taken:
        if reader.queue == 0:
            reader.front_client, reader.front_error = wires.r_client, wires.r_error
        else:
            reader.back_client, reader.back_error = wires.r_client, wires.r_error
        reader.queue += 1
        if wires.r_last:
            reader.in_flight -= 1
            wires.turned = 1
    wires.soft |= (queue ^ reader.queue | front ^ reader.front_client
                   | back ^ reader.back_client)
