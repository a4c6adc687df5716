"""Where two instructions of a stream meet: the tiles or bytes for which they are in conflict."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.classes.dataclass import dataclass
from ...instructions import Buffer
from .accesses import DRAM
from .layout import Layout

NO_LIMIT = 1 << 62          # the walk has compared these boxes already, within its limit


@dataclass(frozen=True)
class Conflict:
    """Cells that two instructions touch: all between the first and last of a scratchpad, one run
    of them in DRAM."""

    first: int
    last: int
    wrote: bool             # the earlier of the two writes there
    writes: bool            # the later one does


def find_conflict(layout: Layout, earlier: int, later: int, space: int) -> Conflict:
    """The conflict of two instructions in a space where they are known to have one."""
    found = [Conflict(first, last, bool(one["write"]), bool(two["write"]))
             for one, two in itertools.product(layout.rows_of(earlier), layout.rows_of(later))
             if one["space"] == two["space"] == space and (one["write"] or two["write"])
             for first, last in _find_common_cells(layout, one, two)]
    if space >= DRAM:
        return found[0]
    return Conflict(min(each.first for each in found), max(each.last for each in found),
                    any(each.wrote for each in found), any(each.writes for each in found))


def _find_common_cells(layout: Layout, one: Any, two: Any) -> list[tuple[int, int]]:
    """First and last of the cells that two accesses share, if there are any."""
    if one["space"] < DRAM:
        both = np.flatnonzero(_touched_tiles(layout, one) & _touched_tiles(layout, two))
        return [(int(both[0]), int(both[-1]))] if len(both) else []
    from .boxes import find_common_run
    first, last = find_common_run(one["base"], one["loops"], one["stride"], two["base"],
                                  two["loops"], two["stride"], np.zeros(1, np.int64), NO_LIMIT)
    return [(first, last)] if first <= last else []


def _touched_tiles(layout: Layout, row: Any) -> npt.NDArray[np.bool_]:
    """Which tiles of its scratchpad an access touches."""
    from .footprints import is_empty, mark, new_workspace

    config = layout.program.config
    touched = np.zeros(config.tiles(Buffer(row["space"])), np.bool_)
    if not is_empty(row):
        room = new_workspace(len(touched) * int(row["divisor"]))
        uops = np.ascontiguousarray(layout.uops_at(int(row["instruction"])).T, np.int32)
        first, count = mark(row, uops, room)
        touched[first:first + count] = room.mask[:count]
    return touched
