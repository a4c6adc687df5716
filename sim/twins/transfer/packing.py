"""Twin of hw.transfer.packing: how many tiles one step moves between a beat and a scratchpad.

A tile of several beats counts as that many steps: `at` is then tile × parts + part, and `left`
counts steps. Otherwise both count tiles, and `lane` is the lane of the next one in its beat.
"""

from __future__ import annotations

from ..record_types import Settings, Unit
from ..registers import PER_BEAT, Registers, inline

# The registers that LOAD and STORE share; `of` is the instruction.
REGISTERS = Registers(same=("lane",),
                      falling={"left": PER_BEAT}, moving=("at",),
                      noted=("begun", "of", "run", "section", "rows_left", "planes_left",
                             "plane_at", "row_at", "plane_place", "row_place"))


@inline
def together(steps: Unit, box: Settings) -> bool:
    """Whether all remaining tiles of the beat move at once, because they have the same lanes in the
    scratchpad."""
    return box.in_acc == 0 and steps.lane == steps.at % box.lanes


@inline
def tiles_moved(steps: Unit, box: Settings) -> int:
    """How many tiles the next step moves, or steps, if a tile has several beats."""
    if box.lanes == 1 or not together(steps, box):
        return 1
    return min(steps.left, box.lanes - steps.lane)


@inline
def ends_beat(steps: Unit, box: Settings) -> bool:
    return (box.lanes == 1 or together(steps, box) or steps.lane == box.lanes - 1
            or steps.left == 1)


@inline
def next_lane(steps: Unit, box: Settings) -> int:
    if box.lanes == 1 or together(steps, box):
        return 0
    return (steps.lane + 1) % box.lanes


@inline
def lane_at(place: int, box: Settings, bus_bytes: int) -> int:
    """The lane of the tile at a byte address in DRAM."""
    return place % bus_bytes // box.tile_bytes if box.lanes > 1 else 0


@inline
def is_outside(steps: Unit, box: Settings, moved: int) -> bool:
    """Whether the step includes a tile out of range."""
    last = steps.at // box.parts if box.parts > 1 else steps.at + moved - 1
    return last >= box.pad_tiles
