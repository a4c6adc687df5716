"""Twin of hw.transfer.burst_walker: splits the rows of a box in DRAM into bursts."""

from __future__ import annotations

from ....isa.faults import Fault
from ..record_types import Code, Settings, Unit, Wires
from ..registers import Registers, inline

GRID_BITS = 6               # bursts are split at multiples of 64 beats
GRID = 1 << GRID_BITS
ALIGNMENT, ADDRESS = int(Fault.ALIGNMENT), int(Fault.ADDRESS)

# A box is held at one of its rows; the row before it is being split. `position` and `cut_position`
# are the instructions of the box and of the row, `here` and `last_beat` beats of the window,
# `cause` is the fault of the row. Up to two `bursts` wait to be sent: the front and the back one.
REGISTERS = Registers(noted=("cutting", "held", "here", "last_beat", "final", "no_bytes",
                             "cut_position", "cause", "position", "rows_left", "planes_left",
                             "row_start", "plane_start", "bursts", *(
                                 f"{place}_{name}" for place in ("front", "back") for name in
                                 ("of", "address", "beats", "last", "empty"))))
PLACES = 2                  # for bursts that wait to be sent


@inline
def fault(walker: Unit, stop: int) -> int:
    """The fault of the row to be split, if any."""
    return int(walker.cause) if walker.cutting and not stop else 0


@inline
def offers(walker: Unit, stop: int) -> bool:
    """Whether there is a burst, or the entry of an empty box."""
    return walker.bursts != 0 and not stop


@inline
def is_busy(walker: Unit) -> bool:
    """Whether a box is held, or a burst of one."""
    return walker.held | walker.cutting | walker.bursts != 0


@inline
def is_waiting(walker: Unit) -> bool:
    """Whether it does nothing until a burst is sent, or a box comes. A fault comes at once."""
    if walker.cutting:
        return walker.bursts == PLACES and walker.cause == 0
    return walker.held == 0


@inline
def _find_fault(walker: Unit, box: Settings) -> int:
    """The fault of the current row of the box, if any."""
    if box.misaligned:
        return ALIGNMENT
    end = walker.row_start + box.tiles * box.tile_bytes - 1
    if box.no_bytes == 0 and (walker.row_start < 0 or end >= box.size):
        return ADDRESS
    return 0


@inline
def ends_row(walker: Unit) -> bool:
    return walker.here >> GRID_BITS == walker.last_beat >> GRID_BITS


@inline
def beats(walker: Unit) -> int:
    """The number of beats of the current burst."""
    end = walker.last_beat & GRID - 1 if ends_row(walker) else GRID - 1
    return end - (walker.here & GRID - 1) + 1


@inline
def step(walker: Unit, wires: Wires, code: Code, bus_bytes: int, taken: int, stop: int,
         keeps_empty: bool) -> None:
    """`taken`: the front burst is sent. `keeps_empty`: empty boxes are enqueued too."""
    if stop:
        return
    cutting, ends = walker.cutting != 0, True
    cuts = cutting and walker.cause == 0 and walker.bursts != PLACES
    if not (taken or cuts or (walker.held != 0 and not cutting)):
        return
    wires.asked = 1
    if taken:
        walker.bursts -= 1
        walker.front_of, walker.front_address = walker.back_of, walker.back_address
        walker.front_beats, walker.front_last = walker.back_beats, walker.back_last
        walker.front_empty = walker.back_empty
    if cuts:
        ends = ends_row(walker)
        if keeps_empty or walker.no_bytes == 0:
            _enqueue_burst(walker, code[walker.cut_position].base + walker.here * bus_bytes, ends)
        walker.cutting = not ends
        walker.here = (walker.here >> GRID_BITS) + 1 << GRID_BITS
    if walker.held and (not cutting or (cuts and ends)):
        _hand_over(walker, code[walker.position], bus_bytes)


@inline
def _enqueue_burst(walker: Unit, address: int, ends: int) -> None:
    """Enqueue the current burst."""
    walker.back_of, walker.back_address = walker.cut_position, address
    walker.back_beats, walker.back_empty = beats(walker), walker.no_bytes
    walker.back_last = walker.final != 0 and ends
    if walker.bursts == 0:
        walker.front_of, walker.front_address = walker.back_of, walker.back_address
        walker.front_beats, walker.front_last = walker.back_beats, walker.back_last
        walker.front_empty = walker.back_empty
    walker.bursts += 1


@inline
def _hand_over(walker: Unit, box: Settings, bus_bytes: int) -> None:
    final = box.no_bytes != 0 or (walker.rows_left == 1 and walker.planes_left == 1)
    walker.cutting = 1
    walker.cause = _find_fault(walker, box)
    walker.here = walker.row_start // bus_bytes
    end = int(walker.row_start)
    if box.no_bytes == 0:
        end += box.tiles * box.tile_bytes - 1
    walker.last_beat = end // bus_bytes
    walker.final, walker.no_bytes = final, box.no_bytes
    walker.cut_position = walker.position
    walker.held = not final
    if walker.rows_left == 1:
        walker.planes_left -= 1
        walker.rows_left = box.rows
        walker.plane_start += box.plane_stride
        walker.row_start = walker.plane_start
    else:
        walker.rows_left -= 1
        walker.row_start += box.row_stride


@inline
def take(walker: Unit, position: int, box: Settings) -> None:
    """Take a new box, when none is held."""
    walker.held, walker.position = 1, position
    walker.planes_left, walker.rows_left = box.planes, box.rows
    walker.plane_start = walker.row_start = box.offset
