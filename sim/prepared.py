"""A program as the compiled simulator takes it: worked out once, run as often as wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..isa.bounds import check
from ..isa.config import Config
from ..isa.errors import ExecutionError
from ..isa.instructions import Buffer, Engine, Load
from ..isa.program import Program
from ..isa.stream import positions_of
from .decoded import Rows, decoded
from .placement import placed
from .scratchpads import unpack

ADDRESS_LIMIT = 1 << 62
NO_MICRO_OPS = np.zeros((0, 4), np.uint16)
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """A program on one accelerator."""

    config: Config
    code: Rows                              # a row for each instruction
    positions: npt.NDArray[np.int64]        # of each engine's instructions, in order
    bases: list[int]                        # addresses of the code and of each segment, less …
    moved: int                              # … this: only distances matter, registers are signed
    micro_ops: MicroOps


@dataclass(frozen=True, eq=False)
class MicroOps:
    """What loads of micro-ops bring, by instruction: the scratchpad's tiles `tile[span[0]:span[1]]`
    get what the program's memory has in these places."""

    tile: npt.NDArray[np.int64]
    span: npt.NDArray[np.int64]
    places: list[Places]

    def values(self, segments: Sequence[Bytes | None], config: Config) -> npt.NDArray[np.uint16]:
        """As memory is now. Bytes that a segment has no data for are zero."""
        parts = [unpack(_bytes_at(segments[number], places), Buffer.UOP, config).reshape(-1, 4)
                 for number, places in self.places]
        return np.concatenate(parts) if parts else NO_MICRO_OPS


class Places(NamedTuple):
    """Bytes of a segment."""

    segment: int
    offsets: npt.NDArray[np.int64]


def _bytes_at(data: Bytes | None, offsets: npt.NDArray[np.int64]) -> Bytes:
    if data is None or len(data) == 0:
        return np.zeros(len(offsets), np.uint8)
    there = np.take(data, offsets, mode="clip")
    return there if offsets.max(initial=0) < len(data) else np.where(
        offsets < len(data), there, np.uint8(0))


def prepare(program: Program, config: Config) -> Prepared:
    """The program for an accelerator with its tiles and scratchpads."""
    bases = placed(program)
    moved = bases[0] if bases[-1] >= ADDRESS_LIMIT else 0
    bases = [base - moved for base in bases]
    code = decoded(program.code, config, program.segments, bases[1:])
    return Prepared(config=config, code=code, positions=_positions(code), bases=bases,
                    moved=moved, micro_ops=_micro_ops(program))


def _positions(code: Rows) -> npt.NDArray[np.int64]:
    """The positions of each engine's instructions, in order."""
    engines = np.where(code["legal"] != 0, code["engine"], -1)
    each = [np.flatnonzero(engines == int(engine)) for engine in Engine]
    table = np.zeros((len(Engine), max(map(len, each)) + 1), np.int64)
    for engine, positions in enumerate(each):
        table[engine, :len(positions)] = positions
    return table


def _micro_ops(program: Program) -> MicroOps:
    span = np.zeros((len(program.code), 2), np.int64)
    tiles, places, count = [np.zeros(0, np.int64)], [], 0
    positions, words = positions_of(program.code, Load)
    mine = words["buffer"] == Buffer.UOP
    size = program.config.tile_bytes(Buffer.UOP)
    for position, load in zip(positions[mine].tolist(), Load.of_all(words[mine]), strict=True):
        if not _reaches(load, program):
            continue            # it never ends
        z, y, x = (np.arange(number) for number in load.shape)
        tiles.append((load.sram + z[:, None] * load.sram_pitch
                      + np.arange(len(y) * len(x))[None, :]).ravel())
        rows = load.offset + z[:, None] * load.stride[0] + y[None, :] * load.stride[1]
        places.append(Places(load.segment,
                             (rows[:, :, None] + np.arange(len(x) * size)).ravel()))
        span[position] = count, count + len(tiles[-1])
        count += len(tiles[-1])
    return MicroOps(np.concatenate(tiles), span, places)


def _reaches(load: Load, program: Program) -> bool:
    """Whether a load touches only what there is."""
    try:
        check(load, program.config, program.segments, NO_MICRO_OPS)
    except ExecutionError:
        return False
    return True
