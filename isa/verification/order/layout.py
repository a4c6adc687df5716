"""A program laid out for the walk of `walk`: access table, shadow memory, micro-ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ....base.errors import ExecutionError
from ...instructions import (
    SEGMENTS,
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
from ...program import Access, Program, engines_of
from ...stream import Stream, instruction_at, positions_of
from ..bounds import MicroOps, check_supported, place_of
from ..bounds import check as check_bounds
from .accesses import Table, access_table
from .dram_layout import DramLayout, lay_out_dram

if TYPE_CHECKING:
    from .feeds import Contents, Feeds
    from .walk import Code, Order

NO_CONTENT = np.zeros(0, np.uint8)


@dataclass(frozen=True)
class Layout:
    """Everything `walk` wants to know about a program."""

    program: Program
    code: Code
    dram: DramLayout

    def walk(self, order: Order, *, derive: bool) -> tuple[int, int, int]:
        """From the first instruction on, with memory that nobody has touched."""
        from .shadow import new_shadow
        from .walk import new_state, walk

        return walk(self.code, new_shadow(self.program.config), self.dram.new_shadow(), order,
                    new_state(0 if derive else len(self.code.engine)), derive)

    def rows_of(self, position: int) -> Table:
        begin, end = self.code.row_begin[position:position + 2]
        return self.code.rows[begin:end]

    def uops_at(self, position: int) -> MicroOps:
        """The micro-op scratchpad as it is when an instruction runs in program order."""
        from .feeds import bring, new_micro_ops

        uops = new_micro_ops(self.program.config.tiles(Buffer.UOP))
        for at in range(self.code.feed_begin[position]):
            bring(self.code.feeds, at, self.code.contents, uops)
        return uops.T.astype(np.uint16)

    def describe_stop(self, end: int, position: int) -> str:
        """Why the walk stopped at an instruction that reaches too far, or too much."""
        from .shadow_dram import WORK_LIMIT
        from .walk import TOO_MUCH

        instruction = instruction_at(self.program.code, position)
        if end == TOO_MUCH:
            return (f"{place_of(instruction, position)}: comparing it with earlier transfers of "
                    f"very many rows takes more than {WORK_LIMIT} steps, which is the limit; use "
                    f"fewer different boxes of DRAM, or put a sync.barrier between them")
        try:
            check_bounds(instruction, self.program.config, self.program.segments,
                         self.uops_at(position), position=position)
        except ExecutionError as error:
            return str(error)
        raise AssertionError(f"instruction {position}: the walk left a buffer, its check did not")


def prepare(program: Program) -> Layout:
    """Check addresses, then lay the program out. Raises ExecutionError."""
    from .walk import Code

    _check_products(program)
    _check_transfers(program)
    table = access_table(program.code, program.config)
    table, dram = lay_out_dram(program, table)
    feeds, feed_begin, contents = _feeds(program)
    count = len(program.code)
    code = Code(engine=engines_of(program), wait=program.code["wait"].astype(np.int64),
                post=program.code["post"].astype(np.int64), rows=table,
                row_begin=np.searchsorted(table["instruction"], np.arange(count + 1)),
                feeds=feeds, feed_begin=feed_begin, contents=contents)
    return Layout(program, code, dram)


def _check_products(program: Program) -> None:
    """Whether the accelerator has what gemms, windows and lookups ask for."""
    for kind in (Gemm, Window):
        positions, words = positions_of(program.code, kind)
        lacks_out = (words["flags"] & GemmFlags.OUT != 0) & (program.config.gemm_out_tiles == 0)
        lacks = lacks_out | (kind is Window and not program.config.has_windows)
        for position in positions[lacks].tolist():
            check_supported(instruction_at(program.code, position), program.config, position)
    if not program.config.tables:
        positions, words = positions_of(program.code, Requantize)
        lookups = positions[words["flags"] & RequantizeFlags.LOOKUP != 0]
        fills, _ = positions_of(program.code, FillTable)
        for position in (*lookups.tolist(), *fills.tolist()):
            check_supported(instruction_at(program.code, position), program.config, position)


def _check_transfers(program: Program) -> None:
    """Addresses, sizes and access rights of loads and stores, all at once; a suspect gets the
    full check, which says what is wrong."""
    for kind in (Load, Store):
        positions, words = positions_of(program.code, kind)
        for suspect in np.flatnonzero(_suspicious(program, words, kind is Store)).tolist():
            instruction = instruction_at(program.code, positions[suspect])
            check_bounds(instruction, program.config, program.segments,
                         np.zeros((0, 4), np.uint16), position=int(positions[suspect]))


def _suspicious(program: Program, words: Stream, stores: bool) -> npt.NDArray[np.bool_]:
    tile = np.array([program.config.tile_bytes(buffer) for buffer in Buffer])[words["buffer"]]
    size = np.zeros(256, np.int64)
    for number, segment in enumerate(program.segments):
        allowed = not stores or segment.access == Access.WRITE
        size[number] = segment.size if allowed else 0
    extent, stride = words["shape"].astype(np.int64), words["stride"].astype(np.int64)
    offset = words["offset"].astype(np.int64)
    steps = np.maximum(extent[:, :2] - 1, 0) * stride
    low = offset + np.minimum(steps, 0).sum(axis=1)
    high = offset + np.maximum(steps, 0).sum(axis=1) + extent[:, 2] * tile
    suspicious: npt.NDArray[np.bool_] = (offset % tile != 0) | np.any(
        stride % tile[:, None] != 0, axis=1)
    suspicious |= ((low < 0) | (high > size[words["segment"]])) & np.all(extent > 0, axis=1)
    if not stores:
        most = 1 << program.config.wgt_bits - 1
        pad = words["pad_value"].astype(np.int64)
        suspicious |= (words["buffer"] == Buffer.WGT) & ((pad < -most) | (pad >= most))
    return suspicious


def _feeds(program: Program) -> tuple[Feeds, npt.NDArray[np.int64], Contents]:
    """The loads of micro-ops, where each instruction's begin, and what segments hold."""
    from .feeds import feeds_of

    positions, words = positions_of(program.code, Load)
    chosen = (words["buffer"] == Buffer.UOP) & np.all(words["shape"] > 0, axis=1)
    positions, words = positions[chosen], words[chosen]
    contents = [NO_CONTENT] * SEGMENTS
    for number in np.unique(words["segment"]).tolist():
        segment = program.segments[number]
        if segment.access == Access.WRITE or segment.data is None:
            first = positions[words["segment"] == number][0]
            raise ExecutionError(f"instruction {first} (load.uop): micro-ops come from segment "
                                 f"{segment.name}, but only a read-only segment with data tells "
                                 f"in advance what they will be")
        contents[number] = np.ascontiguousarray(segment.data)
    begin = np.searchsorted(positions, np.arange(len(program.code) + 1)).astype(np.int64)
    return feeds_of(words), begin, tuple(_read_only(content) for content in contents)


def _read_only(content: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """A view of one type, whether it is ours or lies in a mapped file."""
    view = content.view()
    view.flags.writeable = False
    return view
