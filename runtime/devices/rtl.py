"""The accelerator's own Verilog as a device, simulated cycle by cycle."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np

from ...base.argument_checks import check_path
from ...base.errors import ExecutionError, MicrotronError
from ...isa.address_map import place_windows
from ...isa.config import Config
from ...isa.faults import Fault
from ...isa.instructions import SEGMENTS
from ...isa.memory_timing import MemoryTiming
from ...isa.program import Access, Program
from ...isa.registers import Control, Status, counters_of, identity_of
from ...isa.stream import as_bytes
from ...sim.counts import count
from ...sim.cycle.stop_reasons import Place, describe_fault, describe_timeout
from ...sim.functional.memory import Memory
from ...sim.limit import check_limit, cycle_limit, generous_limit
from ...sim.report import Report
from ...sim.timeline import empty_timeline
from ...sim.token_counters import most_tokens
from .device import Address, Bytes, check_config, device_config, device_timing
from .rtl_build import WAVEFORMS, Design, library
from .rtl_harness import Harness, Window

REGISTER_LIMIT = (1 << 32) - 1


class RtlDevice:
    """Runs programs on the accelerator of one configuration, or of any if none is given.

    timing      how memory behaves; the reference system unless told otherwise
    waveform    a `.vcd` or `.fst` file that receives every signal of the latest run
    limit       cycles after which a run is given up; by default a generous guess, at most
                10,000,000,000. A program that needs more is refused, as far as its work tells
    failing     DRAM addresses that answer with a bus error
    design      Verilog other than the accelerator's own, with the same ports
    """

    name = "rtl"

    def __init__(self, config: Config | str | None = None, *, timing: MemoryTiming | None = None,
                 waveform: Path | str | None = None, limit: int | None = None,
                 failing: range = range(0), design: Design | None = None):
        waveform = None if waveform is None else check_path("waveform", waveform)
        if waveform is not None and waveform.suffix not in WAVEFORMS:
            raise MicrotronError(f"{waveform}: a waveform's name must end in "
                                 f"{' or '.join(WAVEFORMS)}")
        self.config = device_config(config)
        self.timing = device_timing(timing)
        self.waveform = waveform
        self.limit = None if limit is None else check_limit(limit)
        self.failing = failing
        self.design = design
        self._memory: Memory | None = None
        self._harness: Harness
        self._built_for: Config | None = None

    def load(self, program: Program) -> None:
        check_config(program, self.config)
        self._cycle_limit(program)          # refused before anything is compiled for it
        bases = place_windows(program)
        if self._built_for != program.config:
            suffix = self.waveform.suffix if self.waveform else None
            self._harness = Harness(library(program.config, waveform=suffix, design=self.design),
                                    self.timing)
            self._built_for = program.config
        self._check_hardware(program.config)
        memory = Memory(program)
        code = np.array(as_bytes(program.code)).ravel()
        self._harness.place([
            Window(bases[0], code, False),
            *(Window(base, data, segment.access == Access.WRITE) for base, data, segment
              in zip(bases[1:], memory.segments, program.segments, strict=True))])
        self._harness.fail(self.failing)
        self._memory, self._bases = memory, bases
        self._set_up()

    def write(self, address: Address, data: Bytes | bytes) -> None:
        self._require_loaded().write(address.segment, address.offset, data)

    def read(self, address: Address, size: int) -> Bytes:
        return self._require_loaded().read(address.segment, address.offset, size)

    def run(self) -> Report:
        program, harness = self._require_loaded().program, self._harness
        timeline = empty_timeline(len(program.code))
        harness.trace(timeline.start, timeline.end)
        self._run_to_its_end(self._cycle_limit(program))
        status = Status(harness.read("status"))
        harness.write("status", Status.INTERRUPT)
        if complaint := harness.complaint():
            raise ExecutionError(f"the accelerator misbehaved: {complaint}")
        if Status.DONE not in status:
            raise ExecutionError(describe_fault(program, Fault(harness.read("fault")),
                                                harness.read("fault_position")))
        counters = {name: harness.read(f"{name}_low") | harness.read(f"{name}_high") << 32
                    for name in counters_of(program.config)}
        return Report(device=self.name, config=program.config, memory=self.timing,
                      counts=count(program.code, program.config,
                                   most_tokens(program, timeline)),
                      cycles=counters["cycles"], counters=counters, timeline=timeline)

    def _cycle_limit(self, program: Program) -> int:
        limit = cycle_limit(program, self.timing, self.limit)
        return limit if self.limit else min(limit, generous_limit(program, self.timing))

    def _run_to_its_end(self, limit: int) -> None:
        try:
            with self._record_waveform() if self.waveform else nullcontext():
                self._harness.write("control", Control.START | Control.INTERRUPT_ENABLE)
                if not self._harness.run(limit):
                    raise ExecutionError(self._describe_timeout(limit))
        except BaseException:       # also when the keyboard interrupts: the hardware still runs
            self._harness.reset()
            self._set_up()
            raise

    def _require_loaded(self) -> Memory:
        if self._memory is None:
            raise ExecutionError("no program is loaded; load one first")
        return self._memory

    def _check_hardware(self, config: Config) -> None:
        """Ask the hardware what it is, as a driver on a board must."""
        for register, right in identity_of(config).items():
            value = self._harness.read(register)
            if value != right:
                raise ExecutionError(f"the accelerator's register {register} is {value:#x}, but "
                                     f"the program needs {right:#x}")

    def _set_up(self) -> None:
        """Tell the hardware where the program and its segments are."""
        program, write = self._require_loaded().program, self._harness.write
        write("program_low", self._bases[0] & REGISTER_LIMIT)
        write("program_high", self._bases[0] >> 32)
        write("program_count", len(program.code))
        for number in range(SEGMENTS):
            known = number < len(program.segments)
            segment, base = ((program.segments[number], self._bases[number + 1]) if known
                             else (None, 0))
            write(f"segment{number}_low", base & REGISTER_LIMIT)
            write(f"segment{number}_high", base >> 32)
            write(f"segment{number}_size", segment.size if segment else 0)
            write(f"segment{number}_access",
                  int(segment is not None and segment.access == Access.WRITE))

    @contextmanager
    def _record_waveform(self) -> Iterator[None]:
        """Write a waveform of what happens meanwhile, and give it its name afterwards."""
        assert self.waveform is not None
        try:
            folder = tempfile.TemporaryDirectory(dir=self.waveform.parent, prefix=".waveform.")
        except OSError as error:
            raise MicrotronError(f"{self.waveform}: cannot be written: {error.strerror}") from None
        with folder as name:
            temporary = Path(name) / self.waveform.name
            self._harness.open_waveform(temporary)
            wanted = False
            try:
                yield
                wanted = True
            except ExecutionError:
                wanted = True           # more than ever
                raise
            finally:
                self._harness.close_waveform()
                if wanted:
                    self._rename(temporary)

    def _rename(self, temporary: Path) -> None:
        assert self.waveform is not None
        try:
            os.replace(temporary, self.waveform)
        except OSError as error:
            raise MicrotronError(f"{self.waveform}: cannot be written: {error.strerror}") from None

    def _describe_timeout(self, limit: int) -> str:
        places = {engine: Place(each.started, each.ended, each.start_position)
                  for engine, each in self._harness.progress().items()}
        complaint = self._harness.complaint()
        words = describe_timeout(self._require_loaded().program, limit, places)
        return f"{words}; {complaint}" if complaint else words
