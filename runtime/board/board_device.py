"""A board as a device: the accelerator in its FPGA, behind a link."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np

from ...base.errors import ExecutionError
from ...isa.config import PAGE_BYTES, Config
from ...isa.faults import Fault
from ...isa.instructions import SEGMENTS
from ...isa.memory_timing import MemoryTiming
from ...isa.program import Access, Program
from ...isa.registers import Control, Status, counters_of, offset_of
from ...isa.stream import as_bytes
from ...sim.counts import count
from ...sim.cycle.stop_reasons import LIMIT, describe_fault
from ...sim.limit import check_limit, generous_limit
from ...sim.report import Report
from ..devices.device import Address, Bytes, check_config, device_config
from .connection import Connection, Space, connect
from .link import Link, LinkError, registers_of
from .places import link_to, place_of

REGISTER_LIMIT = (1 << 32) - 1
SEGMENT_REGISTERS = 4           # of a segment: both halves of its address, its size, its access
START = Control.START | Control.INTERRUPT_ENABLE
ATTEMPTS = 4                    # to lower an interrupt
LEAST_SECONDS = 10.0            # however short a program is: other software runs on boards, too
STOP_SECONDS = 1.0              # that a program takes to stop once it is told to
SLOW = MemoryTiming(read_latency=500, write_latency=500, cycles_per_beat=16)    # for the patience


class BoardDevice:
    """Runs programs on the accelerator of a board, of the configuration that its bitstream has.

    place       board:NAME@ADDRESS: /dev/uio0 or /dev/mem on a Zynq's own Linux; for boards with
                LiteX a serial line such as /dev/ttyUSB0, with another speed than 115200 as
                /dev/ttyUSB0:1000000, or a host's name or number
    limit       cycles after which a run is given up; by default ten seconds or a generous guess
    link        another link than the place's own

    Every device with the same place shares the board: each program has memory of its own there, and
    they run one at a time.
    """

    def __init__(self, config: Config | str | None = None, *, place: str, limit: int | None = None,
                 link: Link | None = None):
        self.name = place
        self.config = device_config(config)
        self.place = place_of(place)
        self.limit = None if limit is None else check_limit(limit)
        opening = link_to(self.place)
        self.connection = (connect(f"{self.place.board}@{self.place.address}", opening)
                            if link is None else Connection(link))
        self._program: Program | None = None
        self._bases: list[int]
        self._space: Space | None = None

    def load(self, program: Program) -> None:
        check_config(program, self.config)
        check_config(program, self.connection.config)
        sizes = [as_bytes(program.code).nbytes, *(each.size for each in program.segments)]
        offsets = [0]
        for size in sizes:
            offsets.append(-(-(offsets[-1] + size) // PAGE_BYTES) * PAGE_BYTES)
        self._program = self._space = None          # the room of the last one is free again
        with self._turn() as link:
            self._space = self.connection.space(offsets[-1])
            self._bases = [self._space.start + offset for offset in offsets[:-1]]
            link.write(self._bases[0], np.array(as_bytes(program.code)).ravel())
            for segment, base in zip(program.segments, self._bases[1:], strict=True):
                data = np.zeros(segment.size, np.uint8)
                if segment.data is not None:
                    data[:len(segment.data)] = segment.data
                link.write(base, data)
        self._program = program

    def write(self, address: Address, data: Bytes | bytes) -> None:
        content = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
        content = content.ravel().view(np.uint8)
        with self._turn() as link:
            link.write(self._translate(address, content.size), content)

    def read(self, address: Address, size: int) -> Bytes:
        with self._turn() as link:
            return link.read(self._translate(address, size), size)

    def run(self) -> Report:
        program = self._require_loaded()
        limit = self.limit or int(max(generous_limit(program, SLOW),
                                      LEAST_SECONDS * self.place.hz))
        with self._turn() as link:
            self._check_idle(link)
            _lower(link)
            self._set_up(link, program)
            link.write_register(offset_of("control"), START)
            try:
                ended = link.wait(limit / self.place.hz)
            except LinkError:
                raise                       # nobody there to be stopped
            except BaseException:           # such as an interrupt from the keyboard: it still runs
                with suppress(LinkError):
                    self._stop(link)
                raise
            if not ended:
                raise ExecutionError(self._describe_timeout(link, limit))
            status = _status(link)
            _lower(link)
            return self._report(link, program, status)

    def _report(self, link: Link, program: Program, status: Status) -> Report:
        told = registers_of(link, ("fault", "fault_position"))
        cause = told["fault"]
        if not status & (Status.INTERRUPT | Status.RUNNING):
            # What else the status says is of an earlier run.
            raise LinkError(f"{self.place.address}: the program was not started, or not as it "
                            f"should have been: it does not run, but the status, {status:#x}, is "
                            "without the interrupt that tells of its end; run it again")
        if Status.FAILED in status and cause in set(Fault):
            raise ExecutionError(describe_fault(program, Fault(cause), told["fault_position"]))
        if status != Status.DONE | Status.INTERRUPT:
            raise LinkError(f"{self.place.address}: the accelerator says neither that the program "
                            f"is done nor why it failed: its status is {status:#x}, its fault "
                            f"{cause:#x}; load the bitstream again")
        names = counters_of(program.config)
        words = registers_of(link, [f"{name}_{half}" for name in names for half in ("low", "high")])
        counters = {name: words[f"{name}_low"] | words[f"{name}_high"] << 32 for name in names}
        return Report(device=self.name, config=program.config,
                      counts=count(program.code, program.config, {}),
                      cycles=counters["cycles"], counters=counters)

    def _set_up(self, link: Link, program: Program) -> None:
        """Tell the hardware where the program and its segments are. An address is what the
        accelerator's own bits can say: registers have no more, and read as they are."""
        mask = (1 << program.config.address_bits) - 1
        link.set_registers(offset_of("program_low"),
                           [*_halves(self._bases[0] & mask), len(program.code)])
        table: list[int] = []
        for segment, base in zip(program.segments, self._bases[1:], strict=True):
            table += [*_halves(base & mask), segment.size, int(segment.access == Access.WRITE)]
        none = [0] * SEGMENT_REGISTERS * (SEGMENTS - len(program.segments))
        link.set_registers(offset_of("segment0_low"), table + none)

    def _check_idle(self, link: Link) -> None:
        if Status.RUNNING in _status(link) and not self._stop(link):
            raise ExecutionError(f"{self.place.address}: the accelerator runs something and does "
                                 "not stop; load its bitstream again")

    def _stop(self, link: Link) -> bool:
        """Stop what runs: a start while running is a fault, which ends it as soon as memory has
        answered."""
        link.write_register(offset_of("control"), START)
        stopped = link.wait(STOP_SECONDS)
        _lower(link)
        return stopped

    def _describe_timeout(self, link: Link, limit: int) -> str:
        stopped = self._stop(link)
        handed_out = registers_of(link, ("instructions_low",))["instructions_low"]
        words = (f"the program has not ended after {limit:,} cycles, {LIMIT}: {handed_out:,} of "
                 f"{len(self._require_loaded().code):,} instructions were handed out")
        if stopped:
            return words
        return f"{words}; it cannot be stopped either: load the bitstream again"

    def _translate(self, address: Address, size: int) -> int:
        program = self._require_loaded()
        segment = program.segment(address.segment)
        if address.offset < 0 or size < 0 or address.offset + size > segment.size:
            raise ExecutionError(f"segment {segment.name}: {size} bytes at {address.offset} end at "
                                 f"byte {address.offset + size}, but it has {segment.size}")
        return self._bases[1 + program.segments.index(segment)] + address.offset

    def _require_loaded(self) -> Program:
        if self._program is None:
            raise ExecutionError("no program is loaded; load one first")
        return self._program

    @contextmanager
    def _turn(self) -> Iterator[Link]:
        with self.connection.turn:
            yield self.connection.link


def _status(link: Link) -> Status:
    return Status(registers_of(link, ("status",))["status"])


def _lower(link: Link) -> None:
    """Have the interrupt lowered. Only a run that was started raises it, at its end: the rest of
    the status may be that of the run before, if a start gets lost."""
    for _ in range(ATTEMPTS):
        if Status.INTERRUPT not in _status(link):
            return
        link.write_register(offset_of("status"), Status.INTERRUPT)
    raise LinkError(f"{link.address}: the accelerator does not lower its interrupt: its status is "
                    f"{_status(link):#x}; load the bitstream again")


def _halves(value: int) -> tuple[int, int]:
    return value & REGISTER_LIMIT, value >> 32
