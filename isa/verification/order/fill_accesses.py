"""Fills the access table of a stream in one pass over its words. Compiled with numba.

`access_rows` says which rows an instruction has; here are the numbers that they consist of.
Instructions that may reach where they must not are marked as suspects; `bounds` says what is wrong
with them. Boxes of DRAM are normalized on the way, and those of segments that nothing is stored to
are left out: what is only read cannot be in conflict.

numba compiles functions slowly, one by one, so there are few of them.
"""

# No postponed annotations here: numba reads the functions as they are.
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...instructions import (
    PARAMETER_TILES,
    WINDOW_ROWS,
    WINDOW_TAPS,
    Alu,
    AluI,
    AluOp,
    Buffer,
    Gemm,
    GemmFlags,
    Load,
    Requantize,
    RequantizeFlags,
    Store,
    Window,
)
from ...instructions import Table as FillTable
from .access_rows import (
    BIASES,
    BLOCK,
    BYTES,
    DIVISOR,
    FIELDS,
    GRID,
    GROUPS,
    HEIGHT,
    PICKED,
    PLACES,
    ROW_COUNTS,
    SEGMENT,
    SPACE,
    SPAN,
    STEPS,
    SUMS,
    THERE,
    TILES,
    WIDTH,
    WORKS,
    place,
)
from .accesses import AT, DRAM, NOT_LONG
from .boxes import normalize_box
from .feeds import FEED
from .footprints import Numbers
from .jit import entry_point, helper

UOP, WEIGHTS, ACC, ACC8 = map(int, (Buffer.UOP, Buffer.WGT, Buffer.ACC, Buffer.ACC8))
INP, OUT = int(Buffer.INP), int(Buffer.OUT)
LOAD, GEMM, WINDOW, ALU, ALUI, REQUANTIZE, TABLE, STORE = (int(kind.opcode) for kind in (
    Load, Gemm, Window, Alu, AluI, Requantize, FillTable, Store))
DEPTHWISE, FROM_BIAS, FIRST_UOP, FROM_OUT = (int(flag) for flag in (
    GemmFlags.DEPTHWISE, GemmFlags.BIAS, GemmFlags.FIRST_UOP, GemmFlags.OUT))
TO_ACC, LOOKUP = int(RequantizeFlags.ACC), int(RequantizeFlags.LOOKUP)
READS_LEFT = sum(1 << each for each in AluOp if each.reads_left)        # as a set

INSTRUCTION, IN_SPACE, BASE, LOOPS, STRIDE, LONG = (AT[name] for name in (
    "instruction", "space", "base", "loops", "stride", "long"))
PADDING, PAD = place(Load, "pad_value"), place(Load, "pad")
# The element of a load that each number of a feed is.
FED = np.array([place(Load, name) + number for name in FEED.names or ()
                for number in range(max(1, FEED[name].itemsize // 8))])


def _by_kind(name: str, *kinds: type[Load | Store | Gemm | Window | Alu | AluI | Requantize]
             ) -> npt.NDArray[np.int64]:
    """Where a field of several kinds is, by opcode."""
    places = np.zeros(256, np.int64)
    for kind in kinds:
        places[kind.opcode] = place(kind, name)
    return places


TRANSFERS, PRODUCTS = (Load, Store), (Gemm, Window)
BUFFERS, SEGMENTS, OFFSETS, SHAPES, STRIDES = (_by_kind(name, *TRANSFERS) for name in (
    "buffer", "segment", "offset", "shape", "stride"))
FLAGS = _by_kind("flags", *PRODUCTS, Requantize)
ALL_LOOPS, SOURCES = _by_kind("loops", *PRODUCTS, Requantize), _by_kind("src_stride", *PRODUCTS)
OPERATIONS, COUNT = _by_kind("op", Alu, AluI), place(Gemm, "count")


class Facts(NamedTuple):
    """What is known about the accelerator and the program's segments."""

    tile_bytes: Numbers     # by buffer
    sizes: Numbers          # of segments
    writable: Numbers       # bytes of segments that stores may write
    stored: Numbers         # filled: whether something is stored to a segment
    inp_groups: int
    acc_groups: int
    block_out: int
    table_tiles: int
    has_windows: int
    has_tables: int
    reads_out: int          # whether GEMM does
    most_weight: int


class Filled(NamedTuple):
    """What is filled: rows are those of `accesses.ROW` and `feeds.FEED`, as numbers."""

    rows: Numbers
    row_begin: Numbers      # where the rows of each instruction begin
    suspect: npt.NDArray[np.uint8]
    feeds: Numbers          # loads of micro-ops
    feed_begin: Numbers     # ... and where each instruction's begin
    numbers: Numbers        # room for those of one instruction


class Summary(NamedTuple):
    rows: int
    feeds: int
    boxes: int              # of DRAM
    grain: int              # bytes that all boxes are multiples of
    most_rows: int          # of a box


@entry_point
def fill_accesses(code: npt.NDArray[np.uint8], facts: Facts, filled: Filled) -> Summary:
    """Fill rows in program order; there is room for as many as there can be."""
    numbers, at, feeds = filled.numbers, 0, 0
    for now in range(len(code)):
        if code[now, 0] == STORE:
            _read(code[now], numbers)
            facts.stored[numbers[SEGMENTS[STORE]]] = 1
    for now in range(len(code)):
        filled.row_begin[now], filled.feed_begin[now] = at, feeds
        opcode = code[now, 0]
        _read(code[now], numbers)
        if opcode in (LOAD, STORE):
            filled.suspect[now] = _transfer(opcode, numbers, facts)
            if opcode == LOAD and numbers[BUFFERS[LOAD]] == UOP and numbers[WORKS]:
                for each in range(len(FED)):
                    filled.feeds[feeds, each] = numbers[FED[each]]
                feeds += 1
        elif opcode in (GEMM, WINDOW):
            filled.suspect[now] = _products(opcode, numbers, facts)
        elif opcode in (ALU, ALUI):
            numbers[THERE] = READS_LEFT >> numbers[OPERATIONS[opcode]] & 1
        elif opcode == REQUANTIZE:
            flags, loops = numbers[FLAGS[opcode]], ALL_LOOPS[opcode]
            numbers[SPACE] = ACC if flags & TO_ACC else OUT
            numbers[WORKS] = numbers[loops + 1] > 0 and numbers[loops + 2] > 0
            numbers[TILES] = PARAMETER_TILES
            filled.suspect[now] = flags & LOOKUP != 0 and not facts.has_tables
        elif opcode == TABLE:
            numbers[TILES] = facts.table_tiles
            filled.suspect[now] = not facts.has_tables
        at = _pick(opcode, numbers, filled.rows, at, now)
    filled.row_begin[len(code)], filled.feed_begin[len(code)] = at, feeds
    boxes, grain, most_rows = _coarsen(filled.rows, at)
    return Summary(at, feeds, boxes, grain, most_rows)


@helper
def _read(word: npt.NDArray[np.uint8], numbers: Numbers) -> None:
    """The elements of an instruction's fields."""
    fields = FIELDS[word[0]]
    for each in range(len(fields)):
        first, size, value = fields[each, 0], fields[each, 1], np.int64(0)
        for byte in range(size):
            value |= np.int64(word[first + byte]) << 8 * byte
        if fields[each, 2] and value >> 8 * size - 1:
            value -= 1 << 8 * size
        numbers[each] = value


@helper
def _transfer(opcode: int, numbers: Numbers, facts: Facts) -> bool:
    """What a load or a store has besides its fields. Whether it may be out of place in DRAM."""
    buffer, segment, offset = (numbers[BUFFERS[opcode]], numbers[SEGMENTS[opcode]],
                               numbers[OFFSETS[opcode]])
    shape, stride, tile = SHAPES[opcode], STRIDES[opcode], facts.tile_bytes[buffer]
    works = numbers[shape] * numbers[shape + 1] * numbers[shape + 2] > 0
    numbers[WORKS], numbers[BYTES] = works, numbers[shape + 2] * tile
    numbers[SEGMENT], numbers[THERE] = DRAM + segment, facts.stored[segment]
    size, suspect = facts.writable[segment], False
    if opcode == LOAD:
        size = facts.sizes[segment]
        numbers[SPACE] = ACC if buffer == ACC8 else buffer
        numbers[HEIGHT] = numbers[PAD] + numbers[shape + 1] + numbers[PAD + 1]
        numbers[WIDTH] = numbers[PAD + 2] + numbers[shape + 2] + numbers[PAD + 3]
        suspect = buffer == WEIGHTS and (numbers[PADDING] < -facts.most_weight
                                         or numbers[PADDING] >= facts.most_weight)
    low, high = offset, offset + numbers[BYTES]
    for each in range(2):
        step = numbers[stride + each]
        suspect = suspect or step % tile != 0
        low += min((numbers[shape + each] - 1) * step, 0)
        high += max((numbers[shape + each] - 1) * step, 0)
    return suspect or offset % tile != 0 or (works and (low < 0 or high > size))


@helper
def _products(opcode: int, numbers: Numbers, facts: Facts) -> bool:
    """What a gemm or a window has besides its fields. Whether the accelerator may lack it."""
    flags, loops, source = numbers[FLAGS[opcode]], ALL_LOOPS[opcode], SOURCES[opcode]
    depthwise = opcode == WINDOW or flags & DEPTHWISE != 0
    groups = facts.inp_groups if depthwise else 1
    numbers[WORKS] = numbers[loops] > 0 and numbers[loops + 1] > 0 and numbers[loops + 2] > 0
    numbers[SPACE], numbers[DIVISOR], numbers[SPAN] = INP, groups, 1
    if flags & FROM_OUT:            # cells of out are tiles of results
        numbers[SPACE], numbers[DIVISOR] = OUT, facts.acc_groups
        numbers[SPAN] = facts.inp_groups // groups
    for each in range(3):
        numbers[STEPS + each] = numbers[source + each] * numbers[SPAN]
    numbers[GROUPS] = facts.acc_groups if depthwise else 1
    numbers[BLOCK] = facts.block_out if depthwise else 1
    numbers[THERE] = flags & FROM_BIAS != 0
    numbers[SUMS], numbers[BIASES], numbers[GRID] = numbers[loops + 2], 1, 1
    if opcode == WINDOW:            # rows lie in one tile; the last iterations begin no sum
        numbers[SUMS] = max(numbers[loops + 2] - WINDOW_TAPS + 1, 0)
        numbers[GRID] = WINDOW_ROWS
    else:
        count = numbers[COUNT]
        numbers[WORKS] = numbers[WORKS] and count > 0
        numbers[BIASES] = min(count, 1) if flags & FIRST_UOP else count
    return (opcode == WINDOW and not facts.has_windows) or (
        flags & FROM_OUT != 0 and not facts.reads_out)


@helper
def _pick(opcode: int, numbers: Numbers, rows: Numbers, at: int, now: int) -> int:
    """The rows of an instruction. Returns where the next one's begin."""
    for number in range(ROW_COUNTS[opcode]):
        places = PLACES[opcode, number]
        if not numbers[places[0]]:
            continue
        row = rows[at]
        row[INSTRUCTION], row[LONG] = now, NOT_LONG
        for each in range(len(PICKED)):
            row[PICKED[each]] = numbers[places[1 + each]]
        for each in range(3):       # steps that do not move reach the same cells: once is enough
            if row[STRIDE + each] == 0:
                row[LOOPS + each] = min(row[LOOPS + each], 1)
        if row[IN_SPACE] >= DRAM:
            row[BASE] += normalize_box(row[LOOPS:], row[STRIDE:])
        at += 1
    return at


@helper
def _coarsen(rows: Numbers, count: int) -> tuple[int, int, int]:
    """Count boxes of DRAM in the coarsest cells that fit. All tiles are powers of two and aligned,
    so the smallest tile that moves will do. Returns how many boxes there are, the bytes of a cell,
    and the most rows that a box has."""
    boxes = numbers = most_rows = 0
    for at in range(count):
        row = rows[at]
        if row[IN_SPACE] >= DRAM:
            numbers |= row[BASE] | row[LOOPS + 2]
            for each in range(2):
                if row[LOOPS + each] > 1:
                    numbers |= row[STRIDE + each]
    grain = max(numbers & -numbers, 1)
    for at in range(count):
        row = rows[at]
        if row[IN_SPACE] >= DRAM:
            row[BASE] //= grain
            row[LOOPS + 2] //= grain
            for each in range(2):
                row[STRIDE + each] = row[STRIDE + each] // grain if row[LOOPS + each] > 1 else 1
            boxes += 1
            most_rows = max(most_rows, row[LOOPS] * row[LOOPS + 1])
    return boxes, grain, most_rows
