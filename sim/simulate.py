"""Exact cycle counts by a function call: for cost models, tuning and sweeps. Runs without data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from ..base.keywords import check_keywords
from ..isa.config import Config
from ..isa.memory_timing import MemoryTiming
from ..isa.program import Program
from ..isa.stream import as_bytes
from .arguments import check_memory, check_program, resolve_config
from .counts import Counts, count
from .cycle.prepared_program import Prepared, prepare
from .cycle.run import check_meaning, image, run_prepared
from .cycle.stop_reasons import check_end
from .limit import DEFAULT_CYCLES, cycle_limit
from .report import Report

DEVICE = "cycle"            # the device in reports: the one of that name takes the same cycles


@check_keywords
def simulate(program: Program, config: Config | str | None = None,
             memory: MemoryTiming | None = None, *, limit: int | None = None) -> Report:
    """Simulate a program without data: exact cycles and counters, equal to the hardware's.

    config      another configuration than the program's own, with the same tiles and scratchpads:
                a Config, the name of a preset, or the path of a .toml file
    memory      timing of the DRAM; the reference system unless given
    limit       cycles after which to give up; 10,000,000,000 unless given

    Raises ExecutionError if the program does not end. One whose work alone exceeds the limit is
    refused before it starts.
    """
    check_program(program)
    check_memory(memory)
    return Ready(program, resolve_config(config, program.config)).simulate(memory, limit)


@dataclass
class Known:
    """Cached results about a program from its last simulation, for one configuration."""

    code: bytes
    config: Config
    counts: Counts | None = None            # both on demand
    prepared: Prepared | None = None


# Dropped together with their programs, to which they hold no reference.
KNOWN: WeakKeyDictionary[Program, Known] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Ready:
    """A program on an accelerator, with everything that does not depend on the memory prepared.
    That its words are instructions of the accelerator may be proven already."""

    program: Program
    config: Config
    is_proven: bool = False

    @cached_property
    def counts(self) -> Counts:
        if self._known.counts is None:
            self._known.counts = count(self.program.code, self.config, {})
        return self._known.counts

    @cached_property
    def prepared(self) -> Prepared:
        if self._known.prepared is None:
            check_meaning(self.config, self.program.config)
            self._known.prepared = prepare(self.program, self.config, is_proven=self.is_proven)
        return self._known.prepared

    @cached_property
    def _known(self) -> Known:
        """Cached results about the program, unless its code has changed: an array is mutable."""
        code = as_bytes(self.program.code).tobytes()
        known = KNOWN.get(self.program)
        if known is None or known.config != self.config or known.code != code:
            known = Known(code, self.config)
            KNOWN[self.program] = known
        return known

    def simulate(self, memory: MemoryTiming | None, limit: int | None) -> Report:
        memory = memory or MemoryTiming()
        most = cycle_limit(self.program, memory, limit, self.config, self.counts)
        run = run_prepared(self.prepared, image(self.program), timing=memory, limit=most)
        if run.stuck or run.fault:
            check_end(replace(self.program, config=self.config), run, most)
        return Report(device=DEVICE, config=self.config, memory=memory,
                      counts=replace(self.counts, most_tokens=run.most_tokens), cycles=run.cycles,
                      counters=run.counters, timeline=run.timeline)

    def count_cycles(self, memory: MemoryTiming | None) -> int:
        """Only the cycles of a program that reaches its end, sooner."""
        rows = self.prepared.code
        work = rows["slots"] + rows["outer"] * rows["middle"] * rows["inner"]
        if work.sum(dtype=np.float64) < DEFAULT_CYCLES:
            run = run_prepared(self.prepared, image(self.program), timing=memory,
                               limit=DEFAULT_CYCLES)
            if not (run.stuck or run.fault):
                return run.cycles
        cycles = self.simulate(memory, None).cycles         # says what is wrong
        assert cycles is not None, "the simulator counts them"
        return cycles
