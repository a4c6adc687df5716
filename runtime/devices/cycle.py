"""The cycle-exact simulator as a device: every cycle as the hardware has it."""

from __future__ import annotations

from dataclasses import replace

from ...base.errors import ExecutionError
from ...isa.config import Config
from ...isa.memory_timing import MemoryTiming
from ...isa.program import Program
from ...sim.counts import Counts, count
from ...sim.cycle.prepared_program import Prepared, prepare
from ...sim.cycle.replay import Replay
from ...sim.cycle.run import run_prepared
from ...sim.cycle.stop_reasons import check_end
from ...sim.functional.memory import Memory
from ...sim.limit import check_limit, cycle_limit
from ...sim.report import Report
from .device import Address, Bytes, check_config, device_config, device_timing


class CycleDevice:
    """Runs programs on the accelerator of one configuration, or of any if none is given.

    timing      how memory behaves; the reference system unless told otherwise
    limit       cycles after which a run is given up, 10,000,000,000 unless told otherwise; a
                program that needs more is refused when it is loaded, as far as its work tells
    failing     DRAM addresses that answer with a bus error
    data        whether memory changes; without, only time passes

    Memory holds the effects of the instructions that ended, also after a fault.
    """

    name = "cycle"

    def __init__(self, config: Config | str | None = None, *, timing: MemoryTiming | None = None,
                 limit: int | None = None, failing: range = range(0), data: bool = True):
        self.config = device_config(config)
        self.timing = device_timing(timing)
        self.limit = check_limit(limit)
        self.failing = failing
        self.data = data
        self._memory: Memory | None = None
        self._replay: Replay
        self._prepared: Prepared
        self._counts: Counts

    def load(self, program: Program) -> None:
        check_config(program, self.config)
        self._counts = count(program.code, program.config, {})
        cycle_limit(program, self.timing, self.limit, counts=self._counts)
        self._prepared = prepare(program, program.config)   # refuses what no bus could reach
        self._memory = Memory(program)
        self._replay = Replay(program, self._memory)

    def write(self, address: Address, data: Bytes | bytes) -> None:
        self._require_loaded().write(address.segment, address.offset, data)

    def read(self, address: Address, size: int) -> Bytes:
        return self._require_loaded().read(address.segment, address.offset, size)

    def run(self) -> Report:
        memory = self._require_loaded()
        program = memory.program
        # Micro-ops are read as memory is now: the host may have changed them.
        run = run_prepared(self._prepared, memory.segments, timing=self.timing,
                           limit=self.limit, failing=self.failing)
        if self.data:
            self._replay.run(run.timeline)
        check_end(program, run, self.limit)
        return Report(device=self.name, config=program.config, memory=self.timing,
                      counts=replace(self._counts, most_tokens=run.most_tokens),
                      cycles=run.cycles, counters=run.counters, timeline=run.timeline)

    def _require_loaded(self) -> Memory:
        if self._memory is None:
            raise ExecutionError("no program is loaded; load one first")
        return self._memory
