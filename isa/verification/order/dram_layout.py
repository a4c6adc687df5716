"""Boxes of DRAM laid out for the walk of `walk`: cells, stretches of cells, long boxes.

Only segments that something is stored to matter: what is only read cannot be in conflict.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...program import Program
from .accesses import DRAM, NOT_LONG, SPACES, Table

if TYPE_CHECKING:
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


def lay_out_dram(program: Program, table: Table) -> tuple[Table, DramLayout]:
    """The access table with the boxes that matter, tidied up and counted in cells."""
    from .boxes import normalize_boxes

    dram = table["space"] >= DRAM
    stored = np.unique(table["space"][dram & table["write"]])
    table = table[~dram | np.isin(table["space"], stored)]
    dram = table["space"] >= DRAM
    rows = table[dram]
    rows["base"], rows["loops"], rows["stride"] = normalize_boxes(rows["base"], rows["loops"],
                                                                  rows["stride"])
    grain = _coarsen(rows)
    base, cells = np.zeros(SPACES, np.int64), 0
    for space in stored.tolist():
        base[space] = cells
        cells += -(-program.segments[space - DRAM].size // grain)
    coordinates = None
    for limit in ROWS_LIMITS:
        long = _rows_in(rows) > limit
        if cells <= CELLS_LIMIT:
            break
        coordinates = _coordinates(rows[~long], base)
        if len(coordinates) <= COORDINATES_LIMIT:
            break
    first = _number_long(rows, long)
    table[dram] = rows
    return table, DramLayout(grain, base, cells, coordinates, np.flatnonzero(dram)[first],
                             int(np.count_nonzero(~long)))


def _coarsen(rows: Table) -> int:
    """Count in the coarsest cells that fit, and return their bytes.

    All tiles are powers of two and aligned, so the smallest tile that moves will do.
    """
    numbers = np.concatenate([rows["base"], rows["loops"][:, 2],
                              rows["stride"][:, :2][rows["loops"][:, :2] > 1]])
    grain = int(np.bitwise_or.reduce(numbers, initial=0))
    grain = grain & -grain or 1
    rows["base"] //= grain
    rows["loops"][:, 2] //= grain
    rows["stride"][:, :2] = np.where(rows["loops"][:, :2] > 1, rows["stride"][:, :2] // grain, 1)
    return grain


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
