"""How long steps of loading, multiplying, requantizing and storing take: the model behind
estimates.

All numbers may be columns: one for each candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ...base import arrays
from ...base.classes.dataclass import dataclass
from ...isa.config import Config
from ...isa.instructions import INSTRUCTION_BYTES
from ...isa.memory_timing import MemoryTiming

Array = arrays.Array
Column: TypeAlias = int | float | Array        # a number, or one for each candidate
Mask: TypeAlias = bool | npt.NDArray[np.bool_]
Size = TypeVar("Size", int, Column)

ROUND_TRIP = 8              # cycles from a load to its first beat, beside the memory's latency
TRAFFIC = 0.05              # part of a busy bus's time that steps lose by waiting for it
LATE = 10                   # cycles that a transfer costs a busy bus, beside its beats
AHEAD = 1.5                 # steps that loads run ahead, in the mean
RUN = 1                     # cycles that the bus loses between runs
OVERHEAD = 4                # cycles that an instruction more costs GEMM
BURST = 64                  # beats at most: longer runs are several bursts


def all_of(conditions: Iterable[Mask]) -> Mask:
    """Whether all conditions hold, for each candidate."""
    together: Mask = True
    for each in conditions:
        together = np.logical_and(together, each)
    return together


def load_cycles(beats: Column, runs: Column, config: Config, memory: MemoryTiming) -> Column:
    """Cycles of loads that take so many of the bus, in runs. Short bursts do not fill the bus: the
    number in flight is limited."""
    return _transfer_cycles(beats, runs, memory.read_latency, config.reads_in_flight, memory)


def store_cycles(beats: Column, runs: Column, config: Config, memory: MemoryTiming) -> Column:
    """The same of stores."""
    return _transfer_cycles(beats, runs, memory.write_latency, config.writes_in_flight, memory)


def _transfer_cycles(beats: Column, runs: Column, latency: int, in_flight: int,
                     memory: MemoryTiming) -> Column:
    bursts = np.maximum(runs, beats / (BURST * memory.cycles_per_beat))
    return np.maximum(beats, (bursts * (latency + ROUND_TRIP) + beats) / in_flight)


def staying_part(copies: Column, period: Column) -> Column:
    """The part of inputs, which come again after more than so many copies, that stays in them
    (`Stage.keep`)."""
    part: Column = np.maximum(copies - 2, 0) / period
    return part


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Steps in groups; the weights may stay on the chip for a whole group. A step computes its sums
    in pieces, each with its own input and weights. Sizes are cycles of an engine, or bytes."""

    groups: Column
    steps: Column              # of a group
    pieces: Column             # of a step
    products: Column           # of a piece
    vectors: Column            # of a step, for the ALU
    inp: Column                # bytes of a piece
    runs: Column               # in which a piece is loaded
    out_runs: Column           # of a step
    wgt: Column                # bytes of a piece
    out: Column                # bytes of a step
    parameters: Column         # bytes of a group
    wgt_runs: Column = 0       # where they are short
    inp_stays: Mask = False  # all inputs are loaded only once, or
    fresh: Column = 1          # so often: with the first of as many groups
    wgt_stays: Mask = True   # weights are loaded once for each group, or for each step,
    wgt_kept: Column = 0       # but for this part of them
    wgt_with: Mask = False   # those of a group come with its first step, piece by piece
    wgt_ahead: Mask = True   # those of the next group can come before the last are no more needed
    last: Column = 1.0         # part of a step that the last one is
    parts: Column = 1          # into which a piece, and the results of a step, are cut
    waits: Mask = False      # GEMM waits until the ALU has taken the sums of a step

    def cycles(self, config: Config, memory: MemoryTiming) -> Column:
        """The slowest engine limits the rate of steps; the first loads, and the last requantization
        and store, overlap with nothing. Loads run one step ahead, so that those of the first step
        of a group do not overlap with the others."""
        recorded = _recorded.get()
        if recorded is not None:
            recorded.append(self)
        latency = memory.read_latency + ROUND_TRIP
        beat = memory.cycles_per_beat / config.bus_bytes
        fetch = INSTRUCTION_BYTES * beat
        vectors = self.vectors * config.vector_cycles
        inp, out = (size * beat + RUN * runs for size, runs in (
            (self.inp, self.runs), (self.out, self.out_runs)))
        wgt = self.wgt * beat
        inp_load, wgt_load = (load_cycles(beats, runs, config, memory)
                              for beats, runs in ((inp, self.runs), (wgt, self.wgt_runs)))
        other = out + fetch * (2 * self.parts + self.pieces * (1 + 2 * self.parts))
        sums = self.pieces * (self.products + OVERHEAD * self.parts)
        waits = np.where(self.waits, vectors + latency, 0)      # nor does the bus find much to do
        # A single bank gives one operand a cycle: of the ALU, or a sum that is added to.
        meet = (self.pieces - 1) * self.vectors if config.acc_banks == 1 else 0
        least = np.maximum(store_cycles(out, self.out_runs, config, memory),
                           np.maximum(sums + waits, vectors + latency + meet))

        def step_cycles(inputs: Column, weights: Column, steps: Column = 1) -> Column:
            """Cycles of all steps, with this many loads of inputs and weights among them."""
            beats = self.pieces * (inputs * inp + weights * wgt) + steps * other
            loads = self.pieces * (inputs * inp_load + weights * wgt_load)
            late = steps * (LATE * (self.pieces + 2) + waits)
            return np.maximum(steps * least, np.maximum(beats, loads) + late) + TRAFFIC * beats

        ahead, again = np.minimum(self.steps, AHEAD), np.where(self.wgt_stays, 0, 1 - self.wgt_kept)
        first = step_cycles(ahead, 1 + (ahead - 1) * again, ahead) + (
            self.steps - ahead) * step_cycles(1, again)
        late = np.maximum(0, inp_load + wgt_load - self.products)
        known = np.maximum(0, ahead * (inp_load - self.products)
                           + (1 + (ahead - 1) * again) * wgt_load)
        first += np.where(self.wgt_with, self.pieces * np.maximum(0, late - known), 0)
        later = np.where(self.inp_stays, step_cycles(0, 1, self.steps), first) + np.where(
            self.wgt_ahead, 0, wgt_load / self.parts + latency)
        # Of the first piece, what nothing overlaps with: its load, or if loads are slower, its sum.
        alone = np.minimum(inp_load + wgt_load / self.parts, self.products)
        begin = self.parameters * beat + alone + 2 * latency
        rest = np.maximum(0, (out - self.products) * (1 - 1 / self.parts))
        end = self.last * ((vectors + out) / self.parts + rest) + 2 * latency
        return self.fresh * first + (self.groups - self.fresh) * later + begin + end


_recorded: ContextVar[list[Steps] | None] = ContextVar("recorded", default=None)


@contextmanager
def record_steps() -> Iterator[list[Steps]]:
    """The steps that estimates are made of, for whoever wants to know more than their cycles."""
    found: list[Steps] = []
    token = _recorded.set(found)
    try:
        yield found
    finally:
        _recorded.reset(token)
