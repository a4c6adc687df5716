"""Twin of hw.packing: how many tiles one step moves between a beat and a scratchpad.

A tile of several beats counts as that many steps: `at` is then tile × parts + part, and `left`
are steps. Otherwise both are tiles, and `lane` is the place of the next one in its beat.
"""

from __future__ import annotations

from typing import Any

from .registers import PER_BEAT, Registers, inlined

# What LOAD's and STORE's walks along their tiles have in common; `of` is the instruction, and
# `turns` counts beginnings and ends of runs.
REGISTERS = Registers(same=("turns", "lane"),
                      falling={"left": PER_BEAT}, moving=("at",),
                      noted=("begun", "of", "run", "section", "rows_left", "planes_left",
                             "plane_at", "row_at", "plane_place", "row_place"))


@inlined
def together(steps: Any, box: Any) -> Any:
    """Whether all tiles that are left of the beat move at once: their lanes are the same in the
    scratchpad."""
    return box.in_acc == 0 and steps.lane == steps.at % box.lanes


@inlined
def tiles_moved(steps: Any, box: Any) -> Any:
    """By the next step; steps, where a tile has several beats."""
    if box.lanes == 1 or not together(steps, box):
        return 1
    return min(steps.left, box.lanes - steps.lane)


@inlined
def ends_beat(steps: Any, box: Any) -> Any:
    return (box.lanes == 1 or together(steps, box) or steps.lane == box.lanes - 1
            or steps.left == 1)


@inlined
def next_lane(steps: Any, box: Any) -> Any:
    if box.lanes == 1 or together(steps, box):
        return 0
    return (steps.lane + 1) % box.lanes


@inlined
def lane_at(place: int, box: Any, bus_bytes: int) -> Any:
    """The lane of the tile at a byte of DRAM."""
    return place % bus_bytes // box.tile_bytes if box.lanes > 1 else 0


@inlined
def is_outside(steps: Any, box: Any, moved: int) -> Any:
    """Whether the step reaches a tile that the scratchpad does not have."""
    last = steps.at // box.parts if box.parts > 1 else steps.at + moved - 1
    return last >= box.pad_tiles
