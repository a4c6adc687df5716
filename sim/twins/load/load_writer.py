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

# A step in one number: 0 if there is none; otherwise whether it writes at all, has data, ends its
# beat, ends its load, is out of range, its fault, and its bytes.
THERE, WRITES, DATA, ENDS, LAST, OUTSIDE = (1 << bit for bit in range(6))
FAULT, MOST_FAULTS, BYTES = 8, 255, 16  # the lowest bit of each, and a mask

# The oldest write is `pending`, with one `back` behind it; `at` is its index in the scratchpad, as
# in `packing`. Ahead of them are up to two steps, which wait for their beats: the `first` and the
# `second`; `…_of` is the load of each. `ended`: the write of the previous cycle ended its load.
REGISTERS = Registers(same=("pending", "back", "first", "second", "ended"),
                      noted=("position", "back_position", "first_of", "second_of", "ended_of"),
                      moving=("at", "back_at", "first_at", "second_at"))


@inline
def next_kind(steps: Unit) -> int:
    """Whether the next step has data: DATA, or else WRITES."""
    return DATA if steps.section == MIDDLE and steps.run == BODY else WRITES


@inline
def is_busy(write: Unit) -> bool:
    """Whether there is a step, or a write that has not ended."""
    return write.first | write.pending | write.ended != 0


@inline
def step(machine: Machine, wires: Wires, code: Code, config: Settings, positions: Numbers,
         stop: int) -> bool:
    """Returns whether the oldest load has taken its last step."""
    write, steps, reader = machine.load_write, machine.load_steps, machine.reader
    load = machine.load
    pending, back, first, second = write.pending, write.back, write.first, write.second
    beat_here = reader.queue != 0 and reader.front_client == CLIENT
    wires.load_busy = load.queue != 0 or is_busy(write)
    wires.load_wait_memory = wires.load_moved = wires.load_bytes = wires.load_writer_fault = 0
    wires.load_end = write.ended_of if write.ended else -1
    if first & DATA and not beat_here and pending | write.ended == 0 and (
            second != 0 or load.queue == load.entering):
        wires.load_wait_memory = not stop
        return False                    # it waits
    wires.soft |= write.ended
    write.ended = 0
    if pending and (pending & WRITES == 0 or wires.fill_ready):
        _complete(write, wires, stop)
    if stop:
        if beat_here:
            wires.beat_taken = 1
    elif first:
        _take(write, wires, reader.front_error, back == 0, beat_here)
    finished = False
    if load.queue != load.entering:
        if steps.begun == 0:
            steps.of = positions[LOAD, load.writing]
            _begin(steps, code[steps.of], config.bus_bytes)
            wires.hard = 1
        elif second == 0:
            finished = _enqueue_step(write, steps, wires, code[steps.of], config.bus_bytes)
    wires.soft |= (pending ^ write.pending | back ^ write.back | first ^ write.first
                   | second ^ write.second | write.ended)
    return finished


@inline
def _complete(write: Unit, wires: Wires, stop: int) -> None:
    """Do the oldest write."""
    pending = write.pending
    if not stop:
        wires.load_writer_fault = pending >> FAULT & MOST_FAULTS
        wires.load_writer_position = write.position
        if pending & WRITES:
            wires.load_bytes = pending >> BYTES
        if pending & LAST and wires.load_writer_fault == 0:
            write.ended, write.ended_of = 1, write.position
    write.pending, write.position, write.at = write.back, write.back_position, write.back_at
    write.back = 0


@inline
def _take(write: Unit, wires: Wires, error: int, has_room: int, beat_here: int) -> None:
    """Take the first step with its beat, and queue the write."""
    first = int(write.first)
    if first & DATA and not beat_here:
        wires.load_wait_memory = 1
        return
    if not has_room:
        return
    if first & OUTSIDE:
        first = (first & ~WRITES) | INDEX << FAULT
    elif first & DATA and error:
        first = (first & ~WRITES) | READ_ERROR << FAULT
    wires.beat_taken |= first & ENDS
    if write.pending:
        write.back, write.back_position, write.back_at = first, write.first_of, write.first_at
    else:
        write.pending, write.position, write.at = first, write.first_of, write.first_at
    write.first, write.first_of, write.first_at = write.second, write.second_of, write.second_at
    write.second = 0


@inline
def _enqueue_step(write: Unit, steps: Unit, wires: Wires, box: Settings, bus_bytes: int) -> bool:
    """Enqueue the next step. Returns whether it is the last one of its load."""
    entry, last, of, at = THERE, True, steps.of, steps.at
    if box.no_tiles == 0:
        data, moved, lane = steps.section == MIDDLE and steps.run == BODY, 1, steps.lane
        entry |= WRITES
        if data:
            moved = packing.tiles_moved(steps, box)
            entry |= DATA | (ENDS if packing.ends_beat(steps, box) else 0)
            entry |= (moved * box.tile_bytes if box.lanes > 1 else bus_bytes) << BYTES
        if box.inside == 0:
            wires.hard = 1
            entry |= OUTSIDE if packing.is_outside(steps, box, moved) else 0
        wires.load_moved, wires.load_stride = moved, moved if data else box.parts
        wires.load_kind = DATA if data else WRITES
        last = _advance(steps, wires, box, data, moved, bus_bytes)
        wires.toggled |= lane ^ steps.lane
    if last:
        entry |= LAST
        steps.begun = 0
        wires.hard = 1
    if write.first == 0:
        write.first, write.first_of, write.first_at = entry, of, at
    else:
        write.second, write.second_of, write.second_at = entry, of, at
    return last


@inline
def _advance(steps: Unit, wires: Wires, box: Settings, data: int, moved: int,
             bus_bytes: int) -> bool:
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
    wires.turned = 1
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
