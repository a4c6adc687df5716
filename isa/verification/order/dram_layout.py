"""Boxes of DRAM laid out for the walk of `walk`: cells, stretches of cells, long boxes.

Only segments that something is stored to matter: what is only read cannot be in conflict.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ....base.classes.dataclass import dataclass
from ...program import Program
from .accesses import DRAM, NOT_LONG, SPACES, Table

if TYPE_CHECKING:
    from .fill_accesses import Summary
    from .shadow_dram import DramShadow

CELLS_LIMIT = 1 << 24       # with more, cells that are always touched together count as one
ROWS_LIMITS = (1024, 64, 4, 1)      # rows a box may have before it is long: the first that leaves
COORDINATES_LIMIT = 1 << 22         # ... few enough of these stretches of cells
ROWS_AT_ONCE = 1 << 22

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class DramLayout:
    """What a shadow of DRAM is made of."""

    grain: int              # bytes of a cell
    base: Numbers           # first cell of each space
    cells: int
    coordinates: Numbers | None     # at which stretches of cells begin, unless each cell is one
    long_rows: Numbers      # the different long boxes, by their first row of the access table
    short: int              # boxes that are not long

    def new_shadow(self) -> DramShadow:
        from .shadow_dram import new_dram_shadow

        leaves = self.cells if self.coordinates is None else len(self.coordinates)
        return new_dram_shadow(self.base, leaves, self.coordinates, self.long_rows, self.short)


def lay_out_dram(program: Program, table: Table, stored: Numbers, summary: Summary) -> DramLayout:
    """How the boxes of an access table lie, which is complete but for the numbers of long ones."""
    grain = summary.grain
    base, cells = np.zeros(SPACES, np.int64), 0
    for number, segment in enumerate(program.segments):
        if stored[number]:
            base[DRAM + number] = cells
            cells += -(-segment.size // grain)
    if cells <= CELLS_LIMIT and summary.most_rows <= ROWS_LIMITS[0]:        # as always, nearly
        return DramLayout(grain, base, cells, None, np.zeros(0, np.int64), summary.boxes)
    places = np.flatnonzero(table["space"] >= DRAM)
    rows, coordinates = table[places], None
    for limit in ROWS_LIMITS:
        long = _rows_in(rows) > limit
        if cells <= CELLS_LIMIT:
            break
        coordinates = _coordinates(rows[~long], base)
        if len(coordinates) <= COORDINATES_LIMIT:
            break
    first = _number_long(rows, long)
    table[places] = rows
    return DramLayout(grain, base, cells, coordinates, places[first], int(np.count_nonzero(~long)))


def _rows_in(boxes: Table) -> Numbers:
    rows: Numbers = boxes["loops"][:, 0] * boxes["loops"][:, 1]
    return rows


def _number_long(rows: Table, long: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Give equal long boxes the same number. Returns where each number is first found."""
    rows["long"] = NOT_LONG
    keys = np.column_stack([rows["space"], rows["base"], rows["loops"], rows["stride"]])[long]
    _, first, number = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    rows["long"][long] = number.reshape(-1)
    return np.flatnonzero(long)[first]


def _coordinates(boxes: Table, base: Numbers) -> Numbers:
    """The cells at which rows begin or end."""
    found = np.zeros(0, np.int64)
    for chunk in _chunks(boxes[_rows_in(boxes) > 0]):
        count = _rows_in(chunk)
        row = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        inner = np.repeat(chunk["loops"][:, 1], count)
        stride = np.repeat(chunk["stride"], count, axis=0)
        first = (np.repeat(base[chunk["space"]] + chunk["base"], count)
                 + row // inner * stride[:, 0] + row % inner * stride[:, 1])
        last = first + np.repeat(chunk["loops"][:, 2], count)
        found = np.sort(np.concatenate([found, first, last]))
        found = found[np.append(True, found[1:] != found[:-1])]     # np.unique takes far longer
        if len(found) > COORDINATES_LIMIT:
            break
    return found


def _chunks(boxes: Table) -> Iterator[Table]:
    """Boxes in groups that do not have too many rows at once."""
    ends = np.searchsorted(np.cumsum(_rows_in(boxes)),
                           np.arange(1, _rows_in(boxes).sum() // ROWS_AT_ONCE + 2) * ROWS_AT_ONCE)
    yield from (each for each in np.split(boxes, np.unique(ends)) if len(each))
