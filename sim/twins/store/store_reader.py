"""Twin of hw.store.store_reader and store_steps: reads tiles and packs them into beats."""

from __future__ import annotations

from ....isa.faults import Fault
from ....isa.instructions import Engine
from ..bus import writer
from ..record_types import Code, Machine, Numbers, Settings, Unit, Wires
from ..registers import Registers, inline
from ..transfer import packing

STORE = int(Engine.STORE)
QUEUE_DEPTH = 5             # beats, including those between a read and the queue
INDEX = int(Fault.INDEX)

# A step in one number: 0 if there is none; otherwise whether it reads the accumulator, ends a
# beat, is out of range, and its bytes.
THERE, READS, ENDS, OUTSIDE = (1 << bit for bit in range(4))
BYTES = 16                  # their lowest bit
STAGES = 3                  # cycles from the end of a beat until it is in the queue

# Beats in flight: the set of those that `ended` in the last cycles, bit k for k + 1 cycles ago,
# those in the queue, and all that have a place reserved there. Ahead of them are up to two steps,
# the front and the back one, each with its store and its index (as in `packing`).
REGISTERS = Registers(same=("reserved", "beats", "ended", "front", "back"),
                      noted=("front_of", "back_of"), moving=("front_at", "back_at"))


@inline
def reads_acc(machine: Machine, code: Code) -> int:
    """The accumulator tile that the front step would read if it could be taken; otherwise -1."""
    beats = machine.store_beats
    if (beats.front & READS == 0 or beats.reserved == QUEUE_DEPTH
            or machine.control.halt or machine.store.fault):
        return -1
    return beats.front_at // code[beats.front_of].parts


@inline
def is_busy(machine: Machine) -> bool:
    """Whether there is a step to take, or a beat in flight."""
    return machine.store.queue | machine.store_beats.front | machine.store_beats.reserved != 0


@inline
def step(machine: Machine, wires: Wires, code: Code, config: Settings, positions: Numbers,
         stop: int, awaits: int) -> bool:
    """Returns whether the last step of the oldest store has been enqueued."""
    store, beats = machine.store, machine.store_beats
    front, back, reserved, queued = beats.front, beats.back, beats.reserved, beats.beats
    wires.store_bytes = wires.store_moved = wires.store_reader_fault = 0
    offers = beats.beats != 0 and not stop
    goes = offers and not machine.control.halt and writer.wants_beat(machine.writer, wires)
    wires.store_offers = offers
    wires.store_wait_memory = (offers and not goes) or (awaits != 0 and not is_busy(machine))
    if not goes and beats.ended == 0 and (front == 0 or reserved == QUEUE_DEPTH) and (
            store.queue == 0 or back != 0):
        return False                    # it waits
    ends = False
    if front and reserved != QUEUE_DEPTH and not stop:
        ends = _take(beats, wires)
    finished = False
    if store.queue:
        steps = machine.store_steps
        if steps.begun == 0:
            steps.of = positions[STORE, store.reading]
            _begin(steps, code[steps.of], config.bus_bytes)
            wires.hard = 1
        elif back == 0:
            finished = _enqueue_step(beats, steps, wires, code[steps.of], config.bus_bytes)
    ended = (beats.ended << 1 | ends) & (1 << STAGES) - 1
    beats.reserved = reserved + ends - goes
    beats.beats = queued + (beats.ended >> STAGES - 1) - goes
    wires.soft |= (front ^ beats.front | back ^ beats.back | reserved ^ beats.reserved
                   | queued ^ beats.beats | ended ^ beats.ended)
    beats.ended = ended
    return finished


@inline
def _take(beats: Unit, wires: Wires) -> bool:
    """Take the front step. Returns whether it ends a beat."""
    front = beats.front
    if front & OUTSIDE:
        wires.store_reader_fault, wires.store_reader_position = INDEX, beats.front_of
        return False
    if wires.store_reads and not wires.store_granted_read:
        return False
    wires.store_bytes = front >> BYTES
    beats.front, beats.front_of, beats.front_at = beats.back, beats.back_of, beats.back_at
    beats.back = 0
    return front & ENDS != 0


@inline
def _enqueue_step(beats: Unit, steps: Unit, wires: Wires, box: Settings, bus_bytes: int) -> bool:
    """Enqueue the next step. Returns whether it is the last one of its store."""
    entry, last, of, at = THERE, True, steps.of, steps.at
    if box.no_tiles == 0:
        moved, lane, outside = packing.tiles_moved(steps, box), steps.lane, False
        if box.inside == 0:
            wires.hard = 1
            outside = packing.is_outside(steps, box, moved)
        if outside:
            entry |= OUTSIDE
        elif box.in_acc and at % box.parts == 0:
            entry |= READS
        entry |= (moved * box.tile_bytes if box.lanes > 1 else bus_bytes) << BYTES
        entry |= ENDS if packing.ends_beat(steps, box) else 0
        wires.store_moved = moved
        last = _advance(steps, wires, box, moved, bus_bytes)
        wires.toggled |= lane ^ steps.lane
    if last:
        steps.begun = 0
        wires.hard = 1
    if beats.front == 0:
        beats.front, beats.front_of, beats.front_at = entry, of, at
    else:
        beats.back, beats.back_of, beats.back_at = entry, of, at
    return last


@inline
def _advance(steps: Unit, wires: Wires, box: Settings, moved: int, bus_bytes: int) -> bool:
    """Advance to the next step. Returns whether this was the last one."""
    steps.lane = packing.next_lane(steps, box)
    steps.left -= moved
    steps.at += moved
    if steps.left:
        return False
    wires.turned = 1
    steps.left = box.tiles * box.parts
    steps.rows_left -= 1
    if steps.rows_left:
        steps.row_at += box.row_pitch * box.parts
        steps.row_place += box.row_stride
    else:
        steps.planes_left -= 1
        if steps.planes_left == 0:
            return True
        steps.rows_left = box.rows
        steps.plane_at += box.plane_pitch * box.parts
        steps.plane_place += box.plane_stride
        steps.row_at, steps.row_place = steps.plane_at, steps.plane_place
    steps.at = steps.row_at
    steps.lane = packing.lane_at(steps.row_place, box, bus_bytes)
    return False


@inline
def _begin(steps: Unit, box: Settings, bus_bytes: int) -> None:
    steps.begun = 1
    steps.left, steps.rows_left, steps.planes_left = box.tiles * box.parts, box.rows, box.planes
    steps.plane_at = steps.row_at = steps.at = box.sram * box.parts
    steps.plane_place = steps.row_place = box.offset
    steps.lane = packing.lane_at(box.offset, box, bus_bytes)
