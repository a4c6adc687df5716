"""The accelerator's own Verilog as a device, simulated cycle by cycle."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..isa.config import PAGE_BYTES, Config
from ..isa.disassembly import format_instruction
from ..isa.errors import ExecutionError, IsaError, MicrotronError
from ..isa.faults import Fault
from ..isa.instructions import INSTRUCTION_BYTES, ISA_VERSION, SEGMENTS
from ..isa.program import Access, Program
from ..isa.registers import IDENTITY, Control, Status, counter_names
from ..isa.stream import as_bytes, decode
from ..isa.timing import MemoryTiming
from ..sim.counts import count
from ..sim.memory import Memory
from .device import Address, Bytes, Report, check_config
from .rtl_build import WAVEFORMS, Design, library
from .rtl_harness import Cycles, Harness, Window
from .rtl_limit import generous_limit

GUARD_BYTES = 1 << 16       # between windows, where nothing answers: strays are noticed
REGISTER_LIMIT = (1 << 32) - 1


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The cycle in which each instruction started and was complete; -1 where it did not.

    Cycles are counted from the first one of the run. A sync is executed by FETCH and has none.
    """

    start: Cycles
    end: Cycles


@dataclass(frozen=True, kw_only=True)
class RtlReport(Report):
    """With the accelerator's own counters, and when it did what."""

    counters: dict[str, int] = field(default_factory=dict)
    trace: Trace | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything but the trace, which has a line for each instruction."""
        return {"device": self.device, "counts": self.counts.to_dict(), "cycles": self.cycles,
                "counters": self.counters}


class RtlDevice:
    """Runs programs on the accelerator of one configuration, or of any if none is given.

    timing      how memory behaves; the reference system unless told otherwise
    waveform    a `.vcd` or `.fst` file that receives every signal of the latest run
    limit       cycles after which a run is given up; by default a generous guess
    failing     DRAM addresses that answer with a bus error
    design      Verilog other than the accelerator's own, with the same ports
    """

    name = "rtl"

    def __init__(self, config: Config | None = None, *, timing: MemoryTiming | None = None,
                 waveform: Path | None = None, limit: int | None = None,
                 failing: range = range(0), design: Design | None = None):
        if waveform is not None and waveform.suffix not in WAVEFORMS:
            raise MicrotronError(f"{waveform}: a waveform's name must end in "
                                 f"{' or '.join(WAVEFORMS)}")
        self.config = config
        self.timing = timing or MemoryTiming()
        self.waveform = waveform
        self.limit = limit
        self.failing = failing
        self.design = design
        self._memory: Memory | None = None
        self._harness: Harness
        self._built_for: Config | None = None

    def load(self, program: Program) -> None:
        check_config(program, self.config or program.config)
        bases = placed(program)
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
        self._loaded().write(address.segment, address.offset, data)

    def read(self, address: Address, size: int) -> Bytes:
        return self._loaded().read(address.segment, address.offset, size)

    def run(self) -> RtlReport:
        program, harness = self._loaded().program, self._harness
        trace = Trace(start=np.full(len(program.code), -1, np.int64),
                      end=np.full(len(program.code), -1, np.int64))
        harness.trace(trace.start, trace.end)
        self._run_to_its_end(self.limit or generous_limit(program, self.timing))
        status = Status(harness.read("status"))
        harness.write("status", Status.INTERRUPT)
        if complaint := harness.complaint():
            raise ExecutionError(f"the accelerator misbehaved: {complaint}")
        if Status.DONE not in status:
            raise ExecutionError(self._failure(program))
        counters = {name: harness.read(f"{name}_low") | harness.read(f"{name}_high") << 32
                    for name in counter_names()}
        return RtlReport(device=self.name, counts=count(program.code, program.config, {}),
                         cycles=counters["cycles"], counters=counters, trace=trace)

    def _run_to_its_end(self, limit: int) -> None:
        try:
            with self._recorded() if self.waveform else nullcontext():
                self._harness.write("control", Control.START | Control.INTERRUPT_ENABLE)
                if not self._harness.run(limit):
                    raise ExecutionError(f"the program has not ended after {limit} cycles: "
                                         f"{self._progress()}")
        except BaseException:       # also when the keyboard interrupts: the hardware still runs
            self._harness.reset()
            self._set_up()
            raise

    def _loaded(self) -> Memory:
        if self._memory is None:
            raise ExecutionError("no program is loaded; load one first")
        return self._memory

    def _check_hardware(self, config: Config) -> None:
        """Ask the hardware what it is, as a driver on a board must."""
        expected = {"identity": IDENTITY, "isa_version": ISA_VERSION,
                    **{f"config_{name}": value for name, value in config.to_dict().items()}}
        for register, right in expected.items():
            value = self._harness.read(register)
            if value != right:
                raise ExecutionError(f"the accelerator's register {register} is {value:#x}, but "
                                     f"the program needs {right:#x}")

    def _set_up(self) -> None:
        """Tell the hardware where the program and its segments are."""
        program, write = self._loaded().program, self._harness.write
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
    def _recorded(self) -> Iterator[None]:
        """Write a waveform of what happens meanwhile, and give it its name afterwards."""
        assert self.waveform is not None
        try:
            folder = tempfile.TemporaryDirectory(dir=self.waveform.parent, prefix=".waveform.")
        except OSError as error:
            raise MicrotronError(f"{self.waveform}: cannot be written: {error.strerror}") from None
        with folder as name:
            temporary = Path(name) / self.waveform.name
            self._harness.open_waveform(temporary)
            try:
                yield
            finally:
                self._harness.close_waveform()
                os.replace(temporary, self.waveform)

    def _progress(self) -> str:
        """Where every engine is."""
        program = self._loaded().program
        places = []
        for engine, place in self._harness.progress().items():
            name = engine.name.lower()
            if place.started == place.ended:
                places.append(f"{name} has completed {place.ended} instructions")
            else:
                places.append(f"{name} is at {_line(program, place.start_position)}")
        if complaint := self._harness.complaint():
            places.append(complaint)
        return "; ".join(places)

    def _failure(self, program: Program) -> str:
        cause = Fault(self._harness.read("fault"))
        position = self._harness.read("fault_position")
        if cause == Fault.NO_END:
            return (f"the program ran out of instructions: it has {len(program.code)}, but none "
                    f"of them is sync.end")
        return f"{_line(program, position)}: {cause.name.lower()} fault"


def placed(program: Program) -> list[int]:
    """Addresses of the code and of each segment: page-aligned, with gaps where nothing is.

    Where addresses have more than 32 bits, memory lies in their upper half, so that the high
    halves of addresses are never all zero.
    """
    bits = program.config.address_bits
    limit = 1 << bits
    address = PAGE_BYTES if bits == 32 else limit >> 1
    bases = []
    for name, size in (("the code", len(program.code) * INSTRUCTION_BYTES),
                       *((f"segment {each.name}", each.size) for each in program.segments)):
        if size > REGISTER_LIMIT:
            raise ExecutionError(f"{name} has {size} bytes, but a window holds at most "
                                 f"{REGISTER_LIMIT}")
        if address + size > limit:
            raise ExecutionError(f"{name} does not fit: it would end at {address + size:#x}, but "
                                 f"addresses have {bits} bits")
        bases.append(address)
        address += -(-(size + GUARD_BYTES) // PAGE_BYTES) * PAGE_BYTES
    return bases


def _line(program: Program, position: int) -> str:
    """An instruction's number and text."""
    if not 0 <= position < len(program.code):
        return f"instruction {position}, which the program does not have"
    try:
        instruction, = decode(program.code[position:position + 1])
    except IsaError as error:
        return f"instruction {position} ({str(error).removeprefix('instruction 0: ')})"
    return f"instruction {position} ({format_instruction(instruction, program.segments)})"
