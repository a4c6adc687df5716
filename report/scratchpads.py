"""How full scratchpads are over time: a map of each, part by part.

A scratchpad is looked at in 64 parts. A part is live from the start of the first of some
instructions that write it to the end of the last that reads it before another writes it again. An
instruction that walks with gaps counts for all parts from its first tile to its last.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.arrays import Array
from ..base.checked_values import PlainData
from ..isa.instructions import SCRATCHPADS, Buffer, Load, MicroOp
from ..isa.program import Program
from ..isa.stream import positions_of
from ..isa.verification.bounds import BIAS, DST, SRC, WGT
from ..isa.verification.order.accesses import NO_COLUMN, Table
from ..isa.verification.order.layout import prepare
from ..runtime.reports.inference_timeline import PlacedProgram
from .encoding import encode_array

PARTS = 64                  # of a scratchpad
BINS = 480                  # of time
FULL = 255                  # in a map: live all the time
MOST_INSTRUCTIONS = 1 << 19 # of programs that maps are drawn for
FIELDS = {SRC: "src", WGT: "wgt", DST: "dst", BIAS: "bias"}


def scratchpad_data(programs: Sequence[PlacedProgram], cycles: float,
                    parts: int = PARTS) -> list[PlainData]:
    """A map of each scratchpad over a whole inference; none for very long programs."""
    if sum(len(each.program.code) for each in programs) > MOST_INSTRUCTIONS:
        return []
    maps = {buffer: np.zeros((parts, BINS + 1)) for buffer in SCRATCHPADS}
    used: dict[Buffer, int] = dict.fromkeys(SCRATCHPADS, 0)
    for placed in programs:
        table, low, high = _extents(placed.program)
        for buffer in SCRATCHPADS:
            mine = np.flatnonzero((table["space"] == buffer) & (high >= low))
            if len(mine):
                used[buffer] = max(used[buffer], int(high[mine].max()) + 1)
                tiles = placed.program.config.tiles(buffer)
                _add_spans(maps[buffer], table[mine], low[mine] * parts // tiles,
                           high[mine] * parts // tiles, placed, BINS / max(cycles, 1.0))
    config = programs[0].program.config if programs else None
    return [{"name": buffer.name.lower(), "tiles": config.tiles(buffer) if config else 0,
             "bytes": config.tiles(buffer) * config.tile_bytes(buffer) if config else 0,
             "used": used[buffer], "parts": parts, "bins": BINS,
             "map": encode_array(np.rint(np.clip(np.cumsum(maps[buffer], 1)[:, :BINS], 0, 1)
                                         * FULL).astype(np.uint8))}
            for buffer in SCRATCHPADS]


def _extents(program: Program) -> tuple[Table, Array, Array]:
    """All accesses, and the first and the last cell that each reaches; last < first for none."""
    table = prepare(program).code.rows
    table = table[table["space"] < len(Buffer)]
    steps = (table["loops"] - 1) * table["stride"]
    low = table["base"] + np.minimum(steps, 0).sum(1)
    high = table["base"] + np.maximum(steps, 0).sum(1)
    first, last = _uop_extents(program, table)
    low, high = (low + first) // table["divisor"], (high + last) // table["divisor"]
    high += table["span"] - 1
    nothing = (table["loops"] < 1).any(1) | (table["count"] < 1)
    return table, low, np.where(nothing, low - 1, high)


def _uop_extents(program: Program, table: Table) -> tuple[Array, Array]:
    """The least and the largest index that micro-ops add to each access."""
    first, last = np.zeros(len(table), np.int64), np.zeros(len(table), np.int64)
    rows = np.flatnonzero((table["column"] != NO_COLUMN) & (table["count"] > 0))
    pool, places = _micro_ops(program)
    begins = _origins(program, places, table[rows])
    known = (begins >= 0) & (begins + table["count"][rows] <= len(pool))
    rows, begins = rows[known], begins[known]
    for column, name in FIELDS.items():
        some = table["column"][rows] == column
        if some.any():
            edges = np.empty(2 * int(some.sum()), np.int64)
            edges[::2], edges[1::2] = begins[some], begins[some] + table["count"][rows[some]]
            values = np.append(pool[name].astype(np.int64), 0)      # so that every edge is inside
            first[rows[some]] = np.minimum.reduceat(values, edges)[::2]
            last[rows[some]] = np.maximum.reduceat(values, edges)[::2]
    return first, last


def _micro_ops(program: Program) -> tuple[Array, dict[int, int]]:
    """All micro-ops that segments hold, and where those of each segment begin."""
    _, words = positions_of(program.code, Load)
    pieces, places, end = [], {}, 0
    for number in np.unique(words["segment"][words["buffer"] == Buffer.UOP]).tolist():
        data = program.segments[number].data
        if data is not None:
            count = len(data) // MicroOp.size
            pieces.append(np.ascontiguousarray(data[:count * MicroOp.size]).view(MicroOp.dtype()))
            places[number] = end
            end += count
    return np.concatenate(pieces) if pieces else np.zeros(0, MicroOp.dtype()), places


def _origins(program: Program, places: dict[int, int], rows: Table) -> Array:
    """Where the first micro-op of each access is among all micro-ops; -1 if nobody knows. It was
    loaded by the last load of its slot."""
    positions, words = positions_of(program.code, Load)
    uop_loads = words["buffer"] == Buffer.UOP
    positions, words = positions[uop_loads], words[uop_loads]
    slots = np.full(program.config.tiles(Buffer.UOP) + 1, -1, np.int64)
    found = np.full(len(rows), -1, np.int64)
    cuts = [*np.searchsorted(rows["instruction"], positions).tolist(), len(rows)]
    used = np.minimum(rows["uop"], len(slots) - 1)
    shapes, strides = words["shape"].tolist(), words["stride"].tolist()
    for number, (sram, offset, segment, pitch) in enumerate(zip(
            words["sram"].tolist(), words["offset"].tolist(), words["segment"].tolist(),
            words["sram_pitch"].tolist(), strict=True)):
        planes, lines, count = shapes[number]
        if planes * lines > len(slots):         # it writes some of them again and again
            slots[:] = -1
            planes = 0
        for plane in range(planes):
            for line in range(lines):
                at = sram + plane * pitch + line * count
                byte = offset + plane * strides[number][0] + line * strides[number][1]
                room = max(0, min(count, len(slots) - 1 - at))
                begin = places.get(segment, -1 << 40) + byte // MicroOp.size
                slots[at:at + room] = np.arange(begin, begin + room)
        part = slice(cuts[number], cuts[number + 1])
        found[part] = slots[used[part]]
    return found


def _add_spans(changes: Array, table: Table, first: Array, last: Array, placed: PlacedProgram,
               scale: float) -> None:
    """Add to `changes`, which are summed up along time, the spans in which parts are live."""
    timeline = placed.report.timeline
    assert timeline is not None
    first, last = (np.clip(each, 0, len(changes) - 1) for each in (first, last))
    count = last - first + 1
    rows = np.repeat(np.arange(len(table)), count)
    part = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count) + first[rows]
    order = np.lexsort((rows, part))            # part by part, each in program order
    rows, part = rows[order], part[order]
    position = table["instruction"][rows]
    writes = table["write"][rows] != 0
    begins = np.flatnonzero((writes & ~np.roll(writes, 1)) | (np.diff(part, prepend=-1) != 0))
    until = np.maximum.reduceat(np.where(writes, -1, timeline.end[position]), begins)
    start = timeline.start[position[begins]]
    is_live = writes[begins] & (until > start)
    begin = (start[is_live] + placed.base) * scale
    end = (until[is_live] + placed.base) * scale
    where = part[begins][is_live]
    for time, sign in ((begin, 1.0), (end, -1.0)):
        cell = np.minimum(time.astype(np.int64), BINS - 1)
        inside = time - cell            # a span that begins inside a bin fills what is left of it
        np.add.at(changes, (where, cell), sign * (1 - inside))
        np.add.at(changes, (where, cell + 1), sign * inside)
