"""Limits on the cycles and the work of a run, most of them checked beforehand.

A program has no branches, so its work can be counted. One that needs more than its limit is refused
before its first instruction; one that fails to end is given up at the limit. Every simulator takes
`limit=`, and the command line has `--limit`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..base.errors import ExecutionError
from ..isa.config import Config
from ..isa.instructions import (
    TABLE_WORDS,
    Alu,
    AluI,
    Buffer,
    Gemm,
    Load,
    Requantize,
    Store,
    Table,
    Window,
)
from ..isa.memory_timing import MemoryTiming
from ..isa.program import Program
from ..isa.stream import Stream, positions_of
from .arguments import check_positive
from .counts import Counts, Numbers, count, total

DEFAULT_CYCLES = 10 ** 10           # minutes of simulation
DEFAULT_WORK = 10 ** 10             # tile operations of the functional simulator: also minutes
HEAVY = 1 << 29             # lane operations that may take tenths of a second, so that they
                            # must be interruptible

SLACK = 20                  # factor over the longest expected time
START_UP = 100_000
MOST = 10 ** 15             # ten years of simulation: unlimited
BURST_BEATS = 64            # the hardware's have at most 4096 bytes, too


def check_limit(limit: int | None, default: int = DEFAULT_CYCLES) -> int:
    """The given limit, checked, or the default."""
    return default if limit is None else min(check_positive("limit", limit), MOST)


def cycle_limit(program: Program, timing: MemoryTiming, limit: int | None,
                config: Config | None = None, counts: Counts | None = None) -> int:
    """The number of cycles after which to give up a run on a device with a clock. Refuses a program
    whose work needs more. `config` and `counts` are the program's own unless given."""
    config = config or program.config
    cycles = check_limit(limit)
    least = least_cycles(program, timing, counts or count(program.code, config, {}), config)
    if least > cycles:
        raise ExecutionError(f"the program needs at least {least:,} cycles, but the limit is "
                             f"{cycles:,}; {HINT}")
    return cycles


def check_work(program: Program, limit: int | None) -> None:
    """Refuse a program that is too much work for the functional simulator."""
    most, work = check_limit(limit, DEFAULT_WORK), total(work_of(program))
    if work > most:
        raise ExecutionError(f"the program needs {work:,} tile operations, but the limit is "
                             f"{most:,}; {HINT}")


HINT = "it was not started: give a higher limit (limit= in Python, --limit on the command line)"


def work_of(program: Program) -> Numbers:
    """Tile operations of each instruction: tile products, iterations of windows, vectors written by
    the ALU, and tiles loaded or stored, borders included."""
    work = np.zeros(len(program.code), np.uint64)
    for kind in (Alu, AluI, Requantize, Gemm, Window):
        positions, words = positions_of(program.code, kind)
        work[positions] = _product(words, "loops")
        if kind is Gemm:
            work[positions] *= words["count"]
    work[positions_of(program.code, Table)[0]] = TABLE_WORDS
    positions, words = positions_of(program.code, Load)
    work[positions] = _count_tiles_written(words)
    positions, words = positions_of(program.code, Store)
    work[positions] = _product(words, "shape")
    return work


def lane_operations(program: Program) -> npt.NDArray[np.float64]:
    """Multiplications of each instruction, with every tile operation counted as a tile product."""
    config = program.config
    lanes = config.batch * config.block_in * config.block_out
    return work_of(program).astype(np.float64) * lanes


def least_cycles(program: Program, timing: MemoryTiming, counts: Counts, config: Config) -> int:
    """A lower bound on cycles. A tile product, a vector, a beat, and the part of a scratchpad that
    a beat fills take one each."""
    loaded, stored = (-(-sum(each.values()) // config.bus_bytes)
                      for each in (counts.bytes_loaded, counts.bytes_stored))
    beats = loaded + stored if timing.shared else max(loaded, stored)
    tiles_in_a_beat = max(1, config.bus_bytes // min(map(config.tile_bytes, Buffer)))
    filled = total(_count_tiles_written(positions_of(program.code, Load)[1])) // tiles_in_a_beat
    return max(counts.tile_products, counts.alu_vectors, beats * timing.cycles_per_beat, filled)


def generous_limit(program: Program, timing: MemoryTiming) -> int:
    """More cycles than a program can need as long as it makes progress.

    Adds up all work without overlap: a vector per cycle, a tile per cycle, every burst waiting for
    memory, every beat delayed by stalls. Hardware, which does not detect deadlocks, can thus give
    up after a time in proportion to the program's size.
    """
    code = program.code
    cycles = float(work_of(program).astype(float).sum())
    patience = 256 / (256 - timing.stalls)
    latency = (timing.read_latency + timing.write_latency + 10) * patience
    cycles += len(code) * latency
    for kind in (Load, Store):
        beats, bursts = _count_traffic(positions_of(code, kind)[1], program.config)
        cycles += (beats * (timing.cycles_per_beat + timing.turn) * patience
                   + bursts * latency)
    return int(min(START_UP + SLACK * cycles, MOST))


def _count_traffic(words: Stream, config: Config) -> tuple[float, float]:
    """Beats and bursts of some transfers; a row may start and end inside one."""
    rows = float(words["shape"][:, :2].astype(float).prod(1).sum())
    tiles = _product(words, "shape").astype(float)
    bytes_moved = sum(float(tiles[words["buffer"] == buffer].sum()) * config.tile_bytes(buffer)
                      for buffer in Buffer)
    beats = bytes_moved / config.bus_bytes + 2 * rows
    bursts = beats / min(BURST_BEATS, 4096 // config.bus_bytes) + 2 * rows
    return beats, bursts


def _count_tiles_written(loads: Stream) -> Numbers:
    """Tiles that loads write, with their borders."""
    z, y, x = loads["shape"].astype(np.uint64).T
    top, bottom, left, right = loads["pad"].astype(np.uint64).T
    tiles: Numbers = z * (top + y + bottom) * (left + x + right)
    return tiles


def _product(words: Stream, name: str) -> Numbers:
    """The product of three 16-bit numbers; there is room for a fourth in 64 bits."""
    product: Numbers = words[name].astype(np.uint64).prod(1)
    return product
