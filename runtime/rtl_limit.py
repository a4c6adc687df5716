"""How long a run may take before something must be wrong."""

from __future__ import annotations

import numpy as np

from ..isa.instructions import Alu, AluI, Gemm, Load, Requantize, Store
from ..isa.program import Program
from ..isa.stream import Stream, positions_of
from ..isa.timing import MemoryTiming

SLACK = 20                  # times the longest that the work should take
START_UP = 100_000
MOST = 10 ** 15             # ten years of simulation: no limit at all


def generous_limit(program: Program, timing: MemoryTiming) -> int:
    """Cycles that no program needs which makes progress.

    Counts all work as if nothing overlapped: one vector a cycle, every row of a transfer waiting
    for memory, every beat delayed by stalls. A program that waits for a token for ever is given
    up after a time in proportion to its size.
    """
    code, config = program.code, program.config
    patience = 256 / (256 - timing.stalls)
    latency = (timing.read_latency + timing.write_latency) * patience
    computing = sum(_product(positions_of(code, kind)[1], "loops") for kind in (Alu, AluI,
                                                                              Requantize))
    _, gemms = positions_of(code, Gemm)
    computing += float((gemms["loops"].astype(float).prod(1) * gemms["count"]).sum())
    moving = 0.0
    for kind in (Load, Store):
        _, words = positions_of(code, kind)
        tiles, rows = words["shape"].astype(float).prod(1), words["shape"][:, :2].astype(float)
        moving += float(rows.prod(1).sum()) * latency
        beats = 4096 / config.bus_bytes     # of the largest tile
        moving += float(tiles.sum()) * beats * timing.cycles_per_beat * patience
        if kind is Load:
            moving += _padding(words)
    work = computing + moving + len(code) * 4 * latency
    return int(min(START_UP + SLACK * work, MOST))


def _product(words: Stream, name: str) -> float:
    return float(words[name].astype(float).prod(1).sum())


def _padding(words: Stream) -> float:
    z, y, x = words["shape"].astype(float).T
    top, bottom, left, right = words["pad"].astype(float).T
    return float((z * (top + y + bottom) * (left + x + right)).sum())
