"""How long a run may take before something must be wrong."""

from __future__ import annotations

from ..isa.config import Config
from ..isa.instructions import Alu, AluI, Buffer, Gemm, Load, Requantize, Store
from ..isa.program import Program
from ..isa.stream import Stream, positions_of
from ..isa.timing import MemoryTiming

SLACK = 20                  # times the longest that the work should take
START_UP = 100_000
MOST = 10 ** 15             # ten years of simulation: no limit at all
BURST_BEATS = 64            # the hardware's are not longer than 4096 bytes, either


def generous_limit(program: Program, timing: MemoryTiming) -> int:
    """Cycles that a program cannot need as long as it makes progress.

    Adds up all work as if nothing overlapped: a vector a cycle, a tile a cycle, every burst
    waiting for memory, every beat delayed by stalls. So a program that waits for a token for ever
    is given up after a time in proportion to its size.
    """
    code = program.code
    _, gemms = positions_of(code, Gemm)
    cycles = float((_product(gemms, "loops") * gemms["count"]).sum())
    for kind in (Alu, AluI, Requantize):
        cycles += float(_product(positions_of(code, kind)[1], "loops").sum())
    _, loads = positions_of(code, Load)
    z, y, x = loads["shape"].astype(float).T
    top, bottom, left, right = loads["pad"].astype(float).T
    cycles += float((z * (top + y + bottom) * (left + x + right)).sum())
    patience = 256 / (256 - timing.stalls)
    latency = (timing.read_latency + timing.write_latency + 10) * patience
    cycles += len(code) * latency
    for words in (loads, positions_of(code, Store)[1]):
        beats, bursts = _moved(words, program.config)
        cycles += beats * timing.cycles_per_beat * patience + bursts * latency
    return int(min(START_UP + SLACK * cycles, MOST))


def _moved(words: Stream, config: Config) -> tuple[float, float]:
    """Beats and bursts of some transfers; a row may start and end in the middle of one."""
    rows = float(words["shape"][:, :2].astype(float).prod(1).sum())
    tiles = _product(words, "shape")
    bytes_moved = sum(float(tiles[words["buffer"] == buffer].sum()) * config.tile_bytes(buffer)
                      for buffer in Buffer)
    beats = bytes_moved / config.bus_bytes + 2 * rows
    bursts = beats / min(BURST_BEATS, 4096 // config.bus_bytes) + 2 * rows
    return beats, bursts


def _product(words: Stream, name: str) -> Stream:
    """In floating point: 48 bits would overflow when they are added up."""
    product: Stream = words[name].astype(float).prod(1)
    return product
