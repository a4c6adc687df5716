"""How long steps of loading, multiplying, requantizing and storing take: the model behind
estimates.

All numbers may be columns: one for each candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...isa.config import Config
from ...isa.instructions import INSTRUCTION_BYTES
from ...isa.memory_timing import MemoryTiming

ROUND_TRIP = 8              # cycles from a load to its first beat, beside the memory's latency
TRAFFIC = 0.05              # part of a busy bus's time that steps lose by waiting for it
LATE = 10                   # cycles that a transfer costs a busy bus, beside its beats
AHEAD = 1.5                 # steps that loads run ahead, in the mean
RUN = 1                     # cycles that the bus loses between runs
OVERHEAD = 4                # cycles that an instruction more costs GEMM


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Steps in groups; the weights may stay on the chip for a whole group. A step computes its sums
    in pieces, each with its own input and weights. Sizes are cycles of an engine, or bytes."""

    groups: Any
    steps: Any              # of a group
    pieces: Any             # of a step
    products: Any           # of a piece
    vectors: Any            # of a step, for the ALU
    inp: Any                # bytes of a piece
    runs: Any               # in which a piece is loaded
    out_runs: Any           # of a step
    wgt: Any                # bytes of a piece
    out: Any                # bytes of a step
    parameters: Any         # bytes of a group
    wgt_runs: Any = 0       # where they are short
    inp_stays: Any = False  # all inputs are loaded only once
    wgt_stays: Any = True   # weights are loaded once for each group, or for each step
    wgt_ahead: Any = True   # those of the next group can come before the last are no more needed
    last: Any = 1.0         # part of a step that the last one is
    parts: Any = 1          # into which a piece, and the results of a step, are cut

    def cycles(self, config: Config, memory: MemoryTiming) -> Any:
        """Steps follow one another at the pace of the slowest engine; the first loads, and the
        last requantization and store, overlap with nothing. Loads run one step ahead, so that
        what the first step of a group loads does not overlap with the others."""
        latency = memory.read_latency + ROUND_TRIP
        beat = memory.cycles_per_beat / config.bus_bytes
        fetch = INSTRUCTION_BYTES * beat
        vectors = self.vectors * config.vector_cycles
        inp, wgt, out = (size * beat + RUN * runs for size, runs in (
            (self.inp, self.runs), (self.wgt, self.wgt_runs), (self.out, self.out_runs)))
        # Short runs do not fill the bus: the number in flight is limited.
        inp_load, wgt_load = (np.maximum(beats, (runs * latency + beats) / config.reads_in_flight)
                              for beats, runs in ((inp, self.runs), (wgt, self.wgt_runs)))
        other = out + fetch * (2 * self.parts + self.pieces * (1 + 2 * self.parts))
        least = np.maximum(self.pieces * (self.products + OVERHEAD * self.parts),
                           vectors + latency)

        def pace(inputs: Any, weights: Any, steps: Any = 1) -> Any:
            """Cycles of all steps, with this many loads of inputs and weights among them."""
            beats = self.pieces * (inputs * inp + weights * wgt) + steps * other
            loads = self.pieces * (inputs * inp_load + weights * wgt_load)
            late = steps * LATE * (self.pieces + 2)
            return np.maximum(steps * least, np.maximum(beats, loads) + late) + TRAFFIC * beats

        ahead = np.minimum(self.steps, AHEAD)
        first = pace(ahead, np.where(self.wgt_stays, 1, ahead), ahead) + (
            self.steps - ahead) * pace(1, np.where(self.wgt_stays, 0, 1))
        later = np.where(self.inp_stays, pace(0, 1, self.steps), first) + np.where(
            self.wgt_ahead, 0, wgt_load / self.parts + latency)
        # Of the first piece, what nothing overlaps with: its load, or if loads are slower, its sum.
        alone = np.minimum(inp_load + wgt_load / self.parts, self.products)
        begin = self.parameters * beat + alone + 2 * latency
        rest = np.maximum(0, (out - self.products) * (1 - 1 / self.parts))
        end = self.last * ((vectors + out) / self.parts + rest) + 2 * latency
        return first + (self.groups - 1) * later + begin + end
