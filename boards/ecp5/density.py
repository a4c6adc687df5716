"""Density of an ECP5 design's logic: spreads cells where a region has more than it can hold.

This is rough, and only guides the placement of blocks; nextpnr places the logic itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .dies import Die
from .editable_netlist import Cell

# Places of LUTs that a cell takes; a register mostly has one beside its LUT.
TAKEN = {"LUT4": 1.0, "CCU2C": 2.0, "TRELLIS_DPR16X4": 6.0, "TRELLIS_FF": 0.35}
IN_A_TILE = 8 * 0.85        # places; what is fuller cannot be connected any more
SMALL = 3                   # tiles: regions of this size are not divided
BORDER = 2                  # tiles along the edges that hold other things

Region = tuple[int, int, int, int]      # from and to a column, from and to a row


class DensityMap:
    """The capacity of a die by region, and the area of cells."""

    def __init__(self, cells: Mapping[str, Cell], die: Die):
        self.taken = np.array([TAKEN.get(cell["type"], 0.0) for cell in cells.values()])
        places = np.zeros((die.rows, die.columns))
        places[BORDER:-BORDER, BORDER:-BORDER] = IN_A_TILE
        places[[*die.multipliers, *die.memories]] = 0
        # Sums of all places above and to the left.
        self.sums = np.pad(places.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
        self.all: Region = (0, die.columns, 0, die.rows)

    def spread(self, at: np.ndarray) -> np.ndarray:
        """Positions near those of cells, such that no region is overfull."""
        at = at.copy()
        regions = [(np.arange(at.shape[1]), self.all)]
        while regions:
            cells, region = regions.pop()
            sizes = region[1] - region[0], region[3] - region[2]
            if max(sizes) <= SMALL:
                for axis in range(2):
                    first, end = region[2 * axis:2 * axis + 2]
                    at[axis, cells] = np.clip(at[axis, cells], first, end - 0.01)
            elif cells.size:
                regions += self._split(at, cells, region, int(sizes[1] > sizes[0]))
        return at

    def _split(self, at: np.ndarray, cells: np.ndarray, region: Region, axis: int
                ) -> list[tuple[np.ndarray, Region]]:
        """Divide a region; cells go to the half where they are, as far as it has room."""
        left, right, top, bottom = region
        middle = (top + bottom if axis else left + right) // 2
        first: Region = (left, right, top, middle) if axis else (left, middle, top, bottom)
        second: Region = (left, right, middle, bottom) if axis else (middle, right, top, bottom)
        order = cells[np.argsort(at[axis, cells], kind="stable")]
        taken = np.concatenate(([0.0], np.cumsum(self.taken[order])))
        there = int(np.searchsorted(at[axis, order], middle))
        room, beyond = self._capacity(first), self._capacity(second)
        if taken[-1] > room + beyond:
            there = _count_fitting(taken, taken[-1] * room / max(room + beyond, 1.0))
        elif taken[there] > room:
            there = _count_fitting(taken, room)
        elif taken[-1] - taken[there] > beyond:
            there = _count_fitting(taken, taken[-1] - beyond)
        return [(order[:there], first), (order[there:], second)]

    def _capacity(self, region: Region) -> float:
        left, right, top, bottom = region
        return float(self.sums[bottom, right] - self.sums[top, right] - self.sums[bottom, left]
                     + self.sums[top, left])


def _count_fitting(taken: np.ndarray, room: float) -> int:
    """How many cells have room, of those whose sums these are."""
    return int(np.searchsorted(taken, room + 1e-9, side="right")) - 1
