"""Twin of hw.load.load_writer and load_steps: pairs steps of loads with beats of the bus."""

from __future__ import annotations

from ....isa.faults import Fault
from ....isa.instructions import Engine
from ..bus.reader import LOAD as CLIENT
from ..record_types import Code, Machine, Numbers, Settings, Unit, Wires
from ..registers import Registers, inline
from ..transfer import packing

LOAD = int(Engine.LOAD)
INDEX, READ_ERROR = int(Fault.INDEX), int(Fault.READ_ERROR)
TOP, MIDDLE, BOTTOM = range(3)          # sections of a plane
LEFT, BODY, RIGHT = range(3)            # runs of a row

PLACES = 2                              # of steps that wait for their beat

# The oldest write, and the one behind it; `at` is its index in the scratchpad, as in `packing`, and
# `fault` its fault. Ahead of them are up to two `steps`, the first and the second: whether it
# writes at all, has data, ends its beat, ends its load, its bytes, whether it is out of range, and
# its load. `ended`: the write of the previous cycle ended its load.
STEP = ("writes", "data", "ends", "last", "bytes", "outside")
REGISTERS = Registers(same=("pending", "enable", "last", "bytes", "fault", "back", "back_enable",
                            "back_last", "back_bytes", "back_fault", "steps", "ended",
                            *(f"{place}_{name}" for place in ("first", "second")
                              for name in STEP)),
                      noted=("position", "back_position", "first_of", "second_of", "ended_of"),
                      moving=("at", "back_at", "first_at", "second_at"))


@inline
def step(machine: Machine, wires: Wires, code: Code, config: Settings, positions: Numbers,
         stop: int) -> bool:
    """Returns whether the oldest load has taken its last step."""
    write, steps, reader = machine.load_write, machine.load_steps, machine.reader
    load = machine.load
    waits = write.pending and write.enable and not wires.fill_ready
    valid, has_room = load.queue != load.entering, write.back == 0
    waiting = int(write.steps)
    wires.load_busy = load.queue != 0 or waiting != 0 or write.pending | write.ended != 0
    wires.load_wait_memory = 0
    _complete(write, wires, waits, stop)
    beat_here = reader.queue != 0 and reader.front_client == CLIENT
    if stop:
        if beat_here:
            wires.beat_taken = 1
    elif waiting:
        _take(write, wires, reader.front_error, has_room, beat_here)
    if not valid:
        return False
    if steps.begun == 0:
        steps.of = positions[LOAD, load.writing]
        _begin(steps, code[steps.of], config.bus_bytes)
        return False
    return waiting != PLACES and _enqueue_step(write, steps, code[steps.of], config.bus_bytes)


@inline
def _complete(write: Unit, wires: Wires, waits: int, stop: int) -> None:
    """Do the oldest write, if it is ready."""
    wires.load_end = write.ended_of if write.ended else -1
    write.ended = 0
    wires.load_bytes = 0
    wires.load_writer_fault = 0
    if waits or write.pending == 0:
        return
    if not stop:
        wires.load_writer_fault, wires.load_writer_position = write.fault, write.position
        if write.enable:
            wires.load_bytes = write.bytes
        if write.last and write.fault == 0:
            write.ended, write.ended_of = 1, write.position
    write.pending, write.enable, write.last = write.back, write.back_enable, write.back_last
    write.bytes, write.fault = write.back_bytes, write.back_fault
    write.position, write.at = write.back_position, write.back_at
    write.back = 0


@inline
def _take(write: Unit, wires: Wires, error: int, has_room: int, beat_here: int) -> None:
    """Take the first step with its beat, and queue the write."""
    if write.first_data and not beat_here:
        wires.load_wait_memory = 1
        return
    if not has_room:
        return
    fault = 0
    if write.first_data and error:
        fault = READ_ERROR
    if write.first_outside:
        fault = INDEX
    if write.first_data and write.first_ends:
        wires.beat_taken = 1
    write.back_enable, write.back_last = write.first_writes and fault == 0, write.first_last
    write.back_bytes, write.back_fault = write.first_bytes, fault
    write.back_position, write.back_at = write.first_of, write.first_at
    if write.pending:
        write.back = 1
    else:
        write.pending, write.enable, write.last = 1, write.back_enable, write.back_last
        write.bytes, write.fault = write.back_bytes, write.back_fault
        write.position, write.at = write.back_position, write.back_at
    write.steps -= 1
    _move_up(write)


@inline
def _enqueue_step(write: Unit, steps: Unit, box: Settings, bus_bytes: int) -> bool:
    """Enqueue the next step. Returns whether it is the last one of its load."""
    writes = box.no_tiles == 0
    data = writes and steps.section == MIDDLE and steps.run == BODY
    moved = packing.tiles_moved(steps, box) if data else 1
    write.second_writes, write.second_data = writes, data
    write.second_ends = data and packing.ends_beat(steps, box)
    write.second_outside = (box.inside == 0 and writes
                            and packing.is_outside(steps, box, moved))
    write.second_bytes = (moved * box.tile_bytes if box.lanes > 1 else bus_bytes) if data else 0
    write.second_of, write.second_at = steps.of, steps.at
    last = not writes or _advance(steps, box, data, moved, bus_bytes)
    write.second_last = last
    if write.steps == 0:
        _move_up(write)
    write.steps += 1
    if last:
        steps.begun = 0
        steps.turns += 1
    return last


@inline
def _move_up(write: Unit) -> None:
    """The second step becomes the first."""
    write.first_writes, write.first_data = write.second_writes, write.second_data
    write.first_ends, write.first_last = write.second_ends, write.second_last
    write.first_bytes, write.first_outside = write.second_bytes, write.second_outside
    write.first_of, write.first_at = write.second_of, write.second_at


@inline
def _advance(steps: Unit, box: Settings, data: int, moved: int, bus_bytes: int) -> bool:
    """Advance to the next step. Returns whether this was the last one."""
    run_ends = steps.left == moved
    steps.left -= moved
    if data:
        steps.lane = packing.next_lane(steps, box)
        steps.at += moved
    else:
        steps.at += box.parts
    if not run_ends:
        return False
    steps.turns += 1
    if steps.run != _last(box.left, box.tiles, box.right):
        _set_run(steps, box, BODY if steps.run == LEFT and box.tiles else RIGHT)
        return False
    return _end_row(steps, box, bus_bytes)


@inline
def _end_row(steps: Unit, box: Settings, bus_bytes: int) -> bool:
    if steps.section == MIDDLE:
        steps.row_place += box.row_stride
        steps.lane = packing.lane_at(steps.row_place, box, bus_bytes)
    steps.rows_left -= 1
    if steps.rows_left == 0:
        if steps.section == _last(box.top, box.rows, box.bottom):
            steps.planes_left -= 1
            if steps.planes_left == 0:
                return True
            _begin_plane(steps, box, steps.plane_at + box.plane_pitch * box.parts,
                         steps.plane_place + box.plane_stride, bus_bytes)
            return False
        _set_section(steps, box, MIDDLE if steps.section == TOP and box.rows else BOTTOM)
    _set_run(steps, box, _first(box.left, box.tiles))
    return False


@inline
def _begin(steps: Unit, box: Settings, bus_bytes: int) -> None:
    steps.begun = 1
    steps.turns += 1
    steps.planes_left = box.planes
    _begin_plane(steps, box, box.sram * box.parts, box.offset, bus_bytes)


@inline
def _begin_plane(steps: Unit, box: Settings, at: int, place: int, bus_bytes: int) -> None:
    steps.plane_at = steps.at = at
    steps.plane_place = steps.row_place = place
    steps.lane = packing.lane_at(place, box, bus_bytes)
    _set_section(steps, box, _first(box.top, box.rows))
    _set_run(steps, box, _first(box.left, box.tiles))


@inline
def _set_section(steps: Unit, box: Settings, section: int) -> None:
    steps.section = section
    steps.rows_left = (box.top if section == TOP else box.rows if section == MIDDLE
                       else box.bottom)


@inline
def _set_run(steps: Unit, box: Settings, run: int) -> None:
    """Runs with data count steps, others count tiles."""
    steps.run = run
    if run == BODY:
        steps.left = box.tiles * (box.parts if steps.section == MIDDLE else 1)
    else:
        steps.left = box.left if run == LEFT else box.right


@inline
def _first(first: int, middle: int) -> int:
    """The first of three parts that is not empty; the last one if all are."""
    return 0 if first else 1 if middle else 2


@inline
def _last(first: int, middle: int, last: int) -> int:
    return 2 if last else 1 if middle else 0
