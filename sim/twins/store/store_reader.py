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
PLACES = 2                  # of steps that wait for their read
INDEX = int(Fault.INDEX)

# Beats in flight: those whose read was one to three cycles ago, those in the queue, and all that
# have a place reserved there. Ahead of them are up to two `steps`, the front and the back one:
# whether it reads the accumulator, its index (as in `packing`), whether it ends a beat, its bytes,
# whether it is out of range, and its store.
REGISTERS = Registers(
    same=("reserved", "beats", "ends_1_ago", "ends_2_ago", "ends_3_ago", "steps", "front_reads",
          "front_ends", "front_bytes", "front_outside", "back_reads", "back_ends", "back_bytes",
          "back_outside"),
    noted=("front_of", "back_of"), moving=("front_at", "back_at"))


@inline
def reads_acc(machine: Machine, code: Code) -> int:
    """The accumulator tile that the front step would read if it could be taken; otherwise -1."""
    beats = machine.store_beats
    if (beats.steps == 0 or beats.front_reads == 0 or beats.reserved == QUEUE_DEPTH
            or machine.control.halt or machine.store.fault):
        return -1
    return beats.front_at // code[beats.front_of].parts


@inline
def is_busy(machine: Machine) -> bool:
    """Whether there is a step to take, or a beat in flight."""
    return machine.store.queue | machine.store_beats.steps | machine.store_beats.reserved != 0


@inline
def step(machine: Machine, wires: Wires, code: Code, config: Settings, positions: Numbers,
         stop: int, awaits: int) -> bool:
    """Returns whether the last step of the oldest store has been enqueued."""
    store, beats = machine.store, machine.store_beats
    wires.store_bytes = 0
    wires.store_reader_fault = 0
    offers = beats.beats != 0 and not stop
    goes = offers and not machine.control.halt and writer.wants_beat(machine.writer, wires)
    wires.store_offers = offers
    wires.store_wait_memory = (offers and not goes) or (awaits != 0 and not is_busy(machine))
    waiting, ends = int(beats.steps), False
    if waiting and beats.reserved != QUEUE_DEPTH and not stop:
        ends = _take(beats, wires)
    finished = False
    if store.queue:
        steps = machine.store_steps
        if steps.begun == 0:
            steps.of = positions[STORE, store.reading]
            _begin(steps, code[steps.of], config.bus_bytes)
        elif waiting != PLACES:
            finished = _enqueue_step(beats, steps, code[steps.of], config.bus_bytes)
    beats.reserved += ends - goes
    beats.beats += beats.ends_3_ago - goes
    beats.ends_3_ago = beats.ends_2_ago
    beats.ends_2_ago = beats.ends_1_ago
    beats.ends_1_ago = ends
    return finished


@inline
def _take(beats: Unit, wires: Wires) -> bool:
    """Take the front step. Returns whether it ends a beat."""
    if beats.front_outside:
        wires.store_reader_fault, wires.store_reader_position = INDEX, beats.front_of
        return False
    if wires.store_reads and not wires.store_granted_read:
        return False
    wires.store_bytes = beats.front_bytes
    ends = beats.front_ends != 0
    beats.steps -= 1
    beats.front_reads, beats.front_ends = beats.back_reads, beats.back_ends
    beats.front_bytes, beats.front_outside = beats.back_bytes, beats.back_outside
    beats.front_of, beats.front_at = beats.back_of, beats.back_at
    return ends


@inline
def _enqueue_step(beats: Unit, steps: Unit, box: Settings, bus_bytes: int) -> bool:
    """Enqueue the next step. Returns whether it is the last one of its store."""
    at, of, reads, ends, size, outside, last = steps.at, steps.of, False, False, 0, False, True
    if box.no_tiles == 0:
        moved = packing.tiles_moved(steps, box)
        outside = box.inside == 0 and packing.is_outside(steps, box, moved)
        reads = box.in_acc != 0 and not outside and steps.at % box.parts == 0
        size = moved * box.tile_bytes if box.lanes > 1 else bus_bytes
        ends = packing.ends_beat(steps, box)
        last = _advance(steps, box, moved, bus_bytes)
    else:
        steps.turns += 1
    beats.back_reads, beats.back_ends, beats.back_bytes = reads, ends, size
    beats.back_outside, beats.back_of, beats.back_at = outside, of, at
    if beats.steps == 0:
        beats.front_reads, beats.front_ends, beats.front_bytes = reads, ends, size
        beats.front_outside, beats.front_of, beats.front_at = outside, of, at
    beats.steps += 1
    if last:
        steps.begun = 0
    return last


@inline
def _advance(steps: Unit, box: Settings, moved: int, bus_bytes: int) -> bool:
    """Advance to the next step. Returns whether this was the last one."""
    steps.lane = packing.next_lane(steps, box)
    steps.left -= moved
    steps.at += moved
    if steps.left:
        return False
    steps.turns += 1
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
    steps.turns += 1
    steps.left, steps.rows_left, steps.planes_left = box.tiles * box.parts, box.rows, box.planes
    steps.plane_at = steps.row_at = steps.at = box.sram * box.parts
    steps.plane_place = steps.row_place = box.offset
    steps.lane = packing.lane_at(box.offset, box, bus_bytes)
