"""Twin of hw.bus.writer: bursts and beats of STORE on the write channels, and the responses."""

from __future__ import annotations

from ..record_types import Settings, Unit, Wires
from ..registers import Registers, inline

BURSTS = 64                 # most bursts in flight

REGISTERS = Registers(
    same=("wvalid", "answered"),
    noted=("in_flight", "awvalid", "lengths", "lengths_head", "answer_error", "aw_beats",
           "aw_address"),
    falling={"beats_to_send": 2},       # of the oldest burst whose beats have not all been taken
    storage={"length": BURSTS})


@inline
def is_quiet(writer: Unit) -> bool:
    return writer.in_flight == 0 and writer.answered == 0


@inline
def may_request(writer: Unit, wires: Wires, config: Settings, halt: int) -> bool:
    return ((writer.awvalid == 0 or wires.awready != 0) and halt == 0
            and writer.in_flight != config.writes_in_flight)


@inline
def wants_beat(writer: Unit, wires: Wires) -> bool:
    return writer.lengths != 0 and (writer.wvalid == 0 or wires.wready != 0)


@inline
def step(writer: Unit, wires: Wires, halt: int) -> None:
    """Advance, after STORE has driven its requests and beats on the wires."""
    begun = wires.store_granted
    wires.beat_sent = 0
    if writer.in_flight | writer.answered | begun == 0:
        return
    wvalid, answered = writer.wvalid, writer.answered
    wanted = wants_beat(writer, wires)
    if wires.awready:
        writer.awvalid = 0
    if wires.wready:
        writer.wvalid = 0
    if wanted and (wires.store_offers or halt):
        writer.wvalid = wires.beat_sent = 1
        writer.beats_to_send -= 1
        if writer.beats_to_send == 0:
            wires.turned = 1
            writer.lengths -= 1
            writer.lengths_head = (writer.lengths_head + 1) & BURSTS - 1
            writer.beats_to_send = writer.length[writer.lengths_head] if writer.lengths else 0
    if begun:
        writer.awvalid = 1
        writer.aw_beats, writer.aw_address = wires.store_beats, wires.store_address
        writer.length[(writer.lengths_head + writer.lengths) & BURSTS - 1] = wires.store_beats
        if writer.lengths == 0:
            writer.beats_to_send = wires.store_beats
        wires.hard |= writer.lengths == 0
        wires.asked = 1
        writer.lengths += 1
    writer.in_flight += begun
    if writer.answered == 0 or wires.answers_ready:
        writer.answered = wires.b_taken
        writer.answer_error = wires.b_error
        writer.in_flight -= wires.b_taken
    wires.soft |= wvalid ^ writer.wvalid | answered ^ writer.answered
