"""A program laid out for the walk of `walk`: access table, shadow memory, micro-ops."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ....base.classes.dataclass import dataclass
from ....base.errors import ExecutionError
from ...config import Config
from ...instructions import SEGMENTS, Buffer, Load, Store
from ...program import Access, Program, engines_of
from ...stream import as_bytes, instruction_at
from ..bounds import MicroOps, check_supported, place_of
from ..bounds import check as check_bounds
from .accesses import ROW, Table
from .dram_layout import DramLayout, lay_out_dram

if TYPE_CHECKING:
    from .feeds import Contents, Feeds
    from .fill_accesses import Facts
    from .walk import Code, Order

NUMBERS = 256               # that the field of a segment can hold
NO_CONTENT = np.zeros(0, np.uint8)
CONFIGS = 16                # whose sizes are kept


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
    from .access_rows import ROW_COUNTS, new_numbers
    from .feeds import FEED
    from .fill_accesses import Filled, fill_accesses
    from .walk import Code

    stream, count = program.code, len(program.code)
    facts = _facts(program)
    most_rows = int(ROW_COUNTS[stream["opcode"]].sum())
    filled = Filled(np.empty((most_rows, ROW.itemsize // 8), np.int64),
                    np.zeros(count + 1, np.int64), np.zeros(count, np.uint8),
                    np.empty((count, FEED.itemsize // 8), np.int64),
                    np.zeros(count + 1, np.int64), new_numbers())
    raw = as_bytes(stream)
    if not raw.flags.writeable:         # another type for numba
        raw = raw.copy()
    summary = fill_accesses(raw, facts, filled)
    for position in np.flatnonzero(filled.suspect).tolist():
        _check(program, position)
    rows = filled.rows[:summary.rows].view(ROW)[:, 0]
    feeds = filled.feeds[:summary.feeds].view(FEED)[:, 0]
    dram = lay_out_dram(program, rows, facts.stored, summary)
    code = Code(engine=engines_of(program), wait=stream["wait"].astype(np.int64),
                post=stream["post"].astype(np.int64), rows=rows, row_begin=filled.row_begin,
                feeds=feeds, feed_begin=filled.feed_begin,
                contents=_contents(program, feeds, filled.feed_begin))
    return Layout(program, code, dram)


def _facts(program: Program) -> Facts:
    """What compiled code is to know about the accelerator and the segments."""
    from .fill_accesses import Facts

    config, segments = program.config, program.segments
    sizes = np.zeros((2, NUMBERS), np.int64)            # of no bytes, where there is no segment
    sizes[:, :len(segments)] = [[each.size for each in segments],
                                [each.size if each.access == Access.WRITE else 0
                                 for each in segments]]
    return Facts(_tile_bytes(config), sizes[0], sizes[1], np.zeros(NUMBERS, np.int64),
                 config.inp_groups, config.acc_groups, config.block_out, config.table_tiles,
                 int(config.has_windows), int(config.tables > 0), int(config.gemm_out_tiles > 0),
                 1 << config.wgt_bits - 1)


@lru_cache(CONFIGS)
def _tile_bytes(config: Config) -> npt.NDArray[np.int64]:
    return np.array([config.tile_bytes(buffer) for buffer in Buffer], np.int64)


def _check(program: Program, position: int) -> None:
    """Say what is wrong with a suspect, if anything is."""
    instruction = instruction_at(program.code, position)
    if isinstance(instruction, Load | Store):
        check_bounds(instruction, program.config, program.segments, np.zeros((0, 4), np.uint16),
                     position=position)
    else:
        check_supported(instruction, program.config, position)


def _contents(program: Program, feeds: Feeds, begin: npt.NDArray[np.int64]) -> Contents:
    """What the segments hold that micro-ops come from."""
    contents = [NO_CONTENT] * SEGMENTS
    for number in sorted(set(feeds["segment"].tolist())):
        segment = program.segments[number]
        if segment.access == Access.WRITE or segment.data is None:
            at = int(np.argmax(feeds["segment"] == number))
            first = np.searchsorted(begin, at, side="right") - 1
            raise ExecutionError(f"instruction {first} (load.uop): micro-ops come from segment "
                                 f"{segment.name}, but only a read-only segment with data tells "
                                 f"in advance what they will be")
        contents[number] = np.ascontiguousarray(segment.data)
    return tuple(_read_only(content) for content in contents)


def _read_only(content: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """A view of one type, whether it is ours or lies in a mapped file."""
    view = content.view()
    view.flags.writeable = False
    return view
