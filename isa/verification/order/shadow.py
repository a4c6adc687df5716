"""Shadow memory: for every tile and every byte of DRAM, who touched it last.

The instructions of an engine have sequence numbers, which only grow. A lane is what one engine
does to memory, writing or reading; each tile of a scratchpad has, for each lane, the number of the
instruction that touched it last. `shadow_dram` does the same for segments of DRAM, which are too
large for a number a byte. Compiled with numba.
"""

# No postponed annotations here: numba reads the functions as they are.
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...config import Config
from ...instructions import Buffer, Engine, MicroOp
from .accesses import NO_COLUMN, Row
from .footprints import (
    Extent,
    Mask,
    Numbers,
    Workspace,
    extent_of,
    fill_mask,
    is_empty,
    is_sparse,
    new_workspace,
)
from .jit import helper, inline_always
from .shadow_dram import Sequences

ENGINES = len(Engine)
WRITES, READS = 0, ENGINES              # a lane is one of these plus an engine
CONFIGS = 16                            # whose sizes are kept


class Shadow(NamedTuple):
    """Of the scratchpads; and what is needed to find out what an access touches."""

    base: Numbers           # first cell of each scratchpad
    limit: Numbers          # number of cells of each
    latest: Numbers         # by scratchpad and lane: the last to touch any of it
    pads: Sequences         # by lane and cell of the scratchpads
    uops: npt.NDArray[np.int32]         # the micro-ops themselves, by column
    room: Workspace


class Fixed(NamedTuple):
    """What is the same for all programs of an accelerator."""

    base: Numbers
    sizes: Numbers
    cells: int
    most_indices: int


@lru_cache(CONFIGS)
def _fixed(config: Config) -> Fixed:
    sizes = np.array([config.tiles(each) for each in Buffer], np.int64)
    most_indices = max(int(sizes.max()), config.tiles(Buffer.WGT) * config.block_out,
                       config.tiles(Buffer.ACC) * config.acc_groups,
                       config.tiles(Buffer.OUT) * config.acc_groups,
                       config.tiles(Buffer.INP) * config.inp_groups)
    return Fixed(np.cumsum(sizes) - sizes, sizes, int(sizes.sum()), most_indices)


def new_shadow(config: Config) -> Shadow:
    """A blank shadow: nobody has touched anything, and all micro-ops are zero."""
    base, sizes, cells, most_indices = _fixed(config)
    return Shadow(base, sizes, np.zeros((len(Buffer), 2 * ENGINES), np.int64),
                  np.zeros((2 * ENGINES, cells), np.int32),
                  np.zeros((MicroOp.size // 2, config.tiles(Buffer.UOP)), np.int32),
                  new_workspace(most_indices))


@inline_always
def touch_pad(row: Row, shadow: Shadow, known: Numbers, own: int, sequence: int) -> bool:
    """Note that an engine touches tiles; let `known` grow to what it conflicts with, by engine.

    False if a tile or micro-op lies outside, or beside a grid.
    """
    if is_empty(row):
        return True
    if row.column != NO_COLUMN and row.uop + row.count > shadow.uops.shape[1]:
        return False
    if row.grid > 1 and not _is_on_grid(row, shadow.uops):
        return False
    extent = extent_of(row, shadow.uops, shadow.room)
    first = extent.first // row.divisor
    if first < 0 or extent.last // row.divisor >= shadow.limit[row.space]:
        return False
    if is_sparse(row, extent, shadow.room):
        _touch_runs(row, extent, shadow, known, own, sequence)
    else:
        cells = fill_mask(row, extent, shadow.uops, shadow.room)
        _touch_masked(row, first, shadow.room.mask[:cells], shadow, known, own, sequence)
    shadow.latest[row.space, own + (WRITES if row.write else READS)] = sequence
    return True


@helper
def _is_on_grid(row: Row, uops: npt.NDArray[np.int32]) -> bool:
    """Whether all indices of an access with micro-ops are multiples of its grid."""
    beside = 0
    for at in range(row.uop, row.uop + row.count):
        beside |= int(uops[row.column, at]) % row.grid
    for each in range(3):
        if row.loops[each] > 1:
            beside |= row.stride[each] % row.grid
    return beside == 0


@helper
def _touch_runs(row: Row, extent: Extent, shadow: Shadow, known: Numbers, own: int,
                sequence: int) -> None:
    loops, stride = shadow.room.loops, shadow.room.stride
    for step in range(row.count):
        start = row.base
        if row.column != NO_COLUMN:
            start = int(shadow.uops[row.column, row.uop + step]) * row.span
        for outer in range(loops[2]):
            for middle in range(loops[1]):
                for inner in range(loops[0]):
                    first = (start + extent.shift + outer * stride[2] + middle * stride[1]
                             + inner * stride[0])
                    _touch_run(row, first // row.divisor,
                               (first + extent.length - 1) // row.divisor, shadow, known, own,
                               sequence)


@inline_always
def _conflicts(row: Row, lane: int, shadow: Shadow, known: Numbers, own: int) -> bool:
    """Whether anything that is not known yet could conflict: another engine's, and one writes."""
    other = lane % ENGINES
    return (other != own and (row.write or lane < READS)
            and shadow.latest[row.space, lane] > known[other])


@helper
def _touch_run(row: Row, first: int, last: int, shadow: Shadow, known: Numbers, own: int,
               sequence: int) -> None:
    begin, end = shadow.base[row.space] + first, shadow.base[row.space] + last + 1
    for lane in range(2 * ENGINES):
        if _conflicts(row, lane, shadow, known, own):
            seen, most = shadow.pads[lane, begin:end], np.int32(0)
            for cell in range(len(seen)):
                if seen[cell] > most:
                    most = seen[cell]
            known[lane % ENGINES] = max(known[lane % ENGINES], most)
    mine = shadow.pads[own + (WRITES if row.write else READS), begin:end]
    now = np.int32(sequence)
    for cell in range(len(mine)):
        mine[cell] = now


@helper
def _touch_masked(row: Row, first: int, mask: Mask, shadow: Shadow, known: Numbers, own: int,
                  sequence: int) -> None:
    """As `_touch_run`, for the cells that are marked. Without branches, for vector units."""
    begin, nobody = shadow.base[row.space] + first, np.int32(0)
    for lane in range(2 * ENGINES):
        if _conflicts(row, lane, shadow, known, own):
            seen, most = shadow.pads[lane, begin:begin + len(mask)], nobody
            for cell in range(len(mask)):
                last = seen[cell]
                last = last if mask[cell] else nobody
                most = max(most, last)
            known[lane % ENGINES] = max(known[lane % ENGINES], most)
    mine = shadow.pads[own + (WRITES if row.write else READS), begin:begin + len(mask)]
    now = np.int32(sequence)
    for cell in range(len(mask)):
        last = mine[cell]
        mine[cell] = now if mask[cell] else last
