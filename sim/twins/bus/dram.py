"""DRAM timing as defined in isa.memory_timing, with its queues as registers.

In each cycle `decide` computes what memory offers and accepts, from its registers and those of the
bus, and `clock` ends the cycle. If memory is `calm`, nothing stalls and no address fails.
"""

from __future__ import annotations

from ....isa.memory_timing import HASH_MIX, HASH_STEP, Channel
from ..record_types import Settings, Unit, Wires
from ..registers import Registers, inline

BURSTS = 64                 # most bursts of each kind in flight; a power of two
REGISTERS = Registers(
    same=("rvalid", "bvalid", "read_bus_busy", "write_bus_busy", "read_was_last"),
    wide=("uncertain",),
    noted=("reads", "reads_head", "writes", "writes_head", "answers", "answers_head", "rlast",
           "rid", "rerror", "berror"),
    falling={"beats_to_show": 2, "read_ready_in": 1, "beats_to_take": 2, "answer_ready_in": 1},
    storage={"read_beats": BURSTS, "read_ready": BURSTS, "read_client": BURSTS,
             "read_address": BURSTS, "write_beats": BURSTS, "write_address": BURSTS,
             "answer_ready": BURSTS, "answer_error": BURSTS})

READ_ADDRESS, READ_DATA = int(Channel.READ_ADDRESS), int(Channel.READ_DATA)
WRITE_ADDRESS, WRITE_DATA = int(Channel.WRITE_ADDRESS), int(Channel.WRITE_DATA)
WRITE_RESPONSE, CHANNELS = int(Channel.WRITE_RESPONSE), len(Channel)
FIRST_MIX, SECOND_MIX = HASH_MIX
WORD = (1 << 64) - 1


@inline
def is_calm(timing: Settings) -> bool:
    return timing.stalls | timing.fail_to == 0


@inline
def is_stalled(timing: Settings, cycle: int, channel: int) -> bool:
    """isa.memory_timing.stalled, with 64-bit numbers."""
    if timing.stalls == 0:
        return False
    value = timing.seed + (cycle * CHANNELS + channel + 1) * HASH_STEP & WORD
    value = (value ^ (value >> 30 & WORD >> 30)) * FIRST_MIX & WORD
    value = (value ^ (value >> 27 & WORD >> 27)) * SECOND_MIX & WORD
    return (value ^ value >> 31) & 255 < timing.stalls


@inline
def fails(timing: Settings, address: int) -> bool:
    return address < timing.fail_to and address + timing.bus_bytes > timing.fail_from


@inline
def decide(dram: Unit, timing: Settings, wires: Wires, writer: Unit, now: int, calm: bool) -> None:
    """The outputs of the slave in this cycle."""
    wires.arready = dram.reads < timing.reads and (
        calm or not is_stalled(timing, now, READ_ADDRESS))
    wires.rvalid_before, wires.read_was_due_in = dram.rvalid, dram.read_ready_in
    read = (dram.rvalid | dram.read_ready_in | dram.read_bus_busy == 0 and dram.reads != 0
            and (calm or not is_stalled(timing, now, READ_DATA)))
    write = False
    if writer.in_flight:
        wires.awready = dram.writes + dram.answers < timing.writes and (
            calm or not is_stalled(timing, now, WRITE_ADDRESS))
        wires.bvalid_before, wires.answer_was_due_in = dram.bvalid, dram.answer_ready_in
        write = (writer.wvalid != 0 and dram.writes != 0 and dram.write_bus_busy == 0
                 and (calm or not is_stalled(timing, now, WRITE_DATA)))
        if (dram.bvalid == 0 and dram.answers != 0 and dram.answer_ready_in == 0
                and (calm or not is_stalled(timing, now, WRITE_RESPONSE))):
            dram.bvalid = 1
            dram.berror = dram.answer_error[dram.answers_head]
        if timing.shared and read and write:
            if dram.read_was_last:
                read = False
            else:
                write = False
    wires.wready, wires.read_shown = write, read
    if read:
        _show_read(dram, timing, calm)
    if read or write:
        _occupy(dram, timing, wires, read, write)


@inline
def _occupy(dram: Unit, timing: Settings, wires: Wires, read: int, write: int) -> None:
    """A beat is on the bus."""
    busy = timing.cycles_per_beat
    if dram.read_was_last != read:
        if timing.shared:
            busy += timing.turn
        wires.toggled = 1
        dram.read_was_last = read
    if read or timing.shared:
        dram.read_bus_busy = busy
    if write or timing.shared:
        dram.write_bus_busy = busy


@inline
def _show_read(dram: Unit, timing: Settings, calm: bool) -> None:
    head = dram.reads_head
    dram.rvalid = 1
    dram.rid = dram.read_client[head]
    dram.rlast = dram.beats_to_show == 1
    dram.rerror = 0
    if not calm:
        beat = dram.read_beats[head] - dram.beats_to_show
        dram.rerror = fails(timing, dram.read_address[head] + beat * timing.bus_bytes)
    dram.beats_to_show -= 1


@inline
def clock(dram: Unit, timing: Settings, wires: Wires, reader: Unit, writer: Unit, now: int,
          calm: bool) -> None:
    """End the cycle; `wires` say which handshakes took place."""
    after = now + 1
    if wires.r_taken:
        dram.rvalid = 0
        if dram.rlast:
            dram.reads -= 1
            dram.reads_head = (dram.reads_head + 1) & BURSTS - 1
            dram.beats_to_show = dram.read_beats[dram.reads_head]
            wires.turned = 1
    wires.soft |= wires.rvalid_before ^ dram.rvalid
    if wires.ar_taken:
        wires.hard |= dram.reads == 0
        wires.asked = 1
        _accept_read(dram, timing, reader, now)
    if writer.in_flight:
        _clock_writes(dram, timing, wires, writer, now, calm)
    if dram.read_bus_busy | dram.write_bus_busy:
        wires.toggled |= (dram.read_bus_busy | dram.write_bus_busy) > 1 or not (
            wires.read_shown or wires.wready)
        dram.read_bus_busy = max(0, dram.read_bus_busy - 1)
        dram.write_bus_busy = max(0, dram.write_bus_busy - 1)
    dram.read_ready_in = max(0, dram.read_ready[dram.reads_head] - after) if dram.reads else 0
    # Stalls and failing addresses are not periodic; cycles that may meet them must not be skipped.
    if not calm:
        active = dram.reads + dram.writes + dram.answers + reader.arvalid + writer.awvalid
        dram.uncertain = after if active != 0 and not is_calm(timing) else 0


@inline
def _clock_writes(dram: Unit, timing: Settings, wires: Wires, writer: Unit, now: int,
                  calm: bool) -> None:
    """The same on the write channels."""
    if wires.w_taken:
        _take_write(dram, timing, wires, now, calm)
    if wires.b_taken:
        dram.bvalid = 0
        dram.answers -= 1
        dram.answers_head = (dram.answers_head + 1) & BURSTS - 1
        wires.turned = 1
    wires.soft |= wires.bvalid_before ^ dram.bvalid
    if wires.aw_taken:
        wires.hard |= dram.writes == 0
        wires.asked = 1
        _accept_write(dram, writer)
    dram.answer_ready_in = max(0, dram.answer_ready[dram.answers_head] - now - 1) if (
        dram.answers) else 0


@inline
def _accept_read(dram: Unit, timing: Settings, reader: Unit, now: int) -> None:
    place = (dram.reads_head + dram.reads) & BURSTS - 1
    dram.read_beats[place] = reader.ar_beats
    dram.read_client[place] = reader.ar_client
    dram.read_address[place] = reader.ar_address
    dram.read_ready[place] = now + timing.read_latency
    dram.reads += 1
    if dram.reads == 1:
        dram.beats_to_show = reader.ar_beats


@inline
def _accept_write(dram: Unit, writer: Unit) -> None:
    place = (dram.writes_head + dram.writes) & BURSTS - 1
    dram.write_beats[place] = writer.aw_beats
    dram.write_address[place] = writer.aw_address
    dram.writes += 1
    if dram.writes == 1:
        dram.beats_to_take = writer.aw_beats
        dram.answer_error[(dram.answers_head + dram.answers) & BURSTS - 1] = 0


@inline
def _take_write(dram: Unit, timing: Settings, wires: Wires, now: int, calm: bool) -> None:
    head = dram.writes_head
    place = (dram.answers_head + dram.answers) & BURSTS - 1
    if not calm:
        beat = dram.write_beats[head] - dram.beats_to_take
        if fails(timing, dram.write_address[head] + beat * timing.bus_bytes):
            dram.answer_error[place] = 1
    dram.beats_to_take -= 1
    if dram.beats_to_take == 0:
        wires.turned = 1
        dram.answer_ready[place] = now + timing.write_latency
        dram.answers += 1
        dram.writes -= 1
        dram.writes_head = (head + 1) & BURSTS - 1
        dram.answer_error[(place + 1) & BURSTS - 1] = 0
        if dram.writes:
            dram.beats_to_take = dram.write_beats[dram.writes_head]
