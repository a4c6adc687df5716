"""Twin of hw.store_reader and hw.store_steps: reads tiles and packs them into beats."""

from __future__ import annotations

from ...isa.faults import Fault
from ...isa.instructions import Engine
from . import packing, writer
from .registers import Registers, inlined
from .types import Code, Machine, Numbers, Settings, Unit, Wires

STORE = int(Engine.STORE)
QUEUE_DEPTH = 4             # beats; those on their way from a read to the queue included
INDEX = int(Fault.INDEX)

# Beats under way: those whose read was one and two cycles ago, those in the queue, and all that
# have a place reserved there.
REGISTERS = Registers(same=("reserved", "beats", "ends_1_ago", "ends_2_ago"))


@inlined
def reads_acc(machine: Machine, code: Code) -> int:
    """The accumulator tile that the next step would read if it could be taken; otherwise -1."""
    store, steps, halt = machine.store, machine.store_steps, machine.control.halt
    if (store.queue == 0 or steps.begun == 0 or machine.store_beats.reserved == QUEUE_DEPTH
            or halt or store.fault):
        return -1
    box = code[steps.of]
    if box.in_acc == 0 or box.no_tiles or steps.at % box.parts:
        return -1
    if box.inside == 0 and packing.is_outside(steps, box, packing.tiles_moved(steps, box)):
        return -1
    return steps.at // box.parts


@inlined
def step(machine: Machine, wires: Wires, code: Code, config: Settings, positions: Numbers,
         stop: int, awaits: int) -> bool:
    """Returns whether the oldest store has taken its last step."""
    store, beats = machine.store, machine.store_beats
    wires.store_bytes = 0
    wires.store_reader_fault = 0
    valid = store.queue != 0
    offers = beats.beats != 0 and not stop
    goes = offers and not machine.control.halt and writer.wants_beat(machine.writer, wires)
    wires.store_offers = offers
    wires.store_wait_memory = ((offers and not goes)
                                or (awaits != 0 and not (valid or beats.reserved != 0)))
    finished, ends = False, False
    if valid:
        steps = machine.store_steps
        if steps.begun == 0:
            steps.of = positions[STORE, store.reading]
            _begin(steps, code[steps.of], config.bus_bytes)
        elif beats.reserved != QUEUE_DEPTH and not stop:
            finished, ends = _take(machine, wires, code[steps.of], steps.of, config.bus_bytes)
    beats.reserved += ends - goes
    beats.beats += beats.ends_2_ago - goes
    beats.ends_2_ago = beats.ends_1_ago
    beats.ends_1_ago = ends
    return finished


@inlined
def _take(machine: Machine, wires: Wires, box: Settings, position: int,
          bus_bytes: int) -> tuple[bool, bool]:
    """Take the next step. Returns whether it is the last one, and whether it ends a beat."""
    steps = machine.store_steps
    if box.no_tiles:
        steps.begun = 0
        steps.turns += 1
        return True, False
    moved = packing.tiles_moved(steps, box)
    if box.inside == 0 and packing.is_outside(steps, box, moved):
        wires.store_reader_fault, wires.store_reader_position = INDEX, position
        return False, False
    if wires.store_reads and not wires.store_granted_read:
        return False, False
    wires.store_bytes = moved * box.tile_bytes if box.lanes > 1 else bus_bytes
    ends = packing.ends_beat(steps, box)
    last = _advance(steps, box, moved, bus_bytes)
    if last:
        steps.begun = 0
    return last, ends


@inlined
def _advance(steps: Unit, box: Settings, moved: int, bus_bytes: int) -> bool:
    """Go to the next step. Returns whether this was the last one."""
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


@inlined
def _begin(steps: Unit, box: Settings, bus_bytes: int) -> None:
    steps.begun = 1
    steps.turns += 1
    steps.left, steps.rows_left, steps.planes_left = box.tiles * box.parts, box.rows, box.planes
    steps.plane_at = steps.row_at = steps.at = box.sram * box.parts
    steps.plane_place = steps.row_place = box.offset
    steps.lane = packing.lane_at(box.offset, box, bus_bytes)
