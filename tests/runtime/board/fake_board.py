"""A board in software: registers and memory on one bus, and programs run by the simulator."""

import numpy as np

from microtron.base.errors import MicrotronError
from microtron.isa.config import Config
from microtron.isa.faults import Fault
from microtron.isa.instructions import INSTRUCTION_BYTES, SEGMENTS
from microtron.isa.program import Access, Program, Segment
from microtron.isa.registers import (
    WINDOW_BYTES,
    Control,
    Status,
    counter_names,
    identity_of,
    register_map,
)
from microtron.isa.stream import from_bytes
from microtron.runtime.board.link import poll
from microtron.runtime.devices.functional import FunctionalDevice

NAMES = {register.offset: register.name for register in register_map()}
WRITABLE = {register.name for register in register_map() if register.writable} - {"control"}
CYCLES = 1234567890123          # of every run: more than 32 bits


class FakeBoard:
    """The bus of a board. Accesses outside of registers and memory are noted and do nothing.

    `hangs` says that a program which was started never ends; `deaf` that it cannot be stopped.
    """

    def __init__(self, config: Config, memory: range, registers: int, *, hangs=False, deaf=False):
        self.memory, self.base = memory, registers
        self.data = np.full(len(memory), 0xAA, np.uint8)
        self.hangs, self.deaf = hangs, deaf
        self.strays, self.starts = [], 0
        self.registers = dict.fromkeys(NAMES.values(), 0) | {
            **identity_of(config)}
        self.config = config

    def read_word(self, address: int) -> int:
        if address in range(self.base, self.base + WINDOW_BYTES):
            return self.registers.get(NAMES.get(address - self.base, ""), 0)
        if address not in self.memory:
            self.strays.append(address)
            return 0
        start = address - self.memory.start
        return int.from_bytes(self.data[start:start + 4].tobytes(), "little")

    def write_word(self, address: int, value: int) -> None:
        if address in range(self.base, self.base + WINDOW_BYTES):
            self._write_register(NAMES.get(address - self.base, ""), value)
        elif address not in self.memory:
            self.strays.append(address)
        else:
            start = address - self.memory.start
            self.data[start:start + 4] = list(value.to_bytes(4, "little"))

    def _write_register(self, name: str, value: int) -> None:
        if name == "control" and value & Control.START:
            self._start(bool(value & Control.INTERRUPT_ENABLE))
        elif name == "status":
            self.registers[name] &= ~(value & Status.INTERRUPT)
        elif name in WRITABLE:
            self.registers[name] = value

    def _start(self, interrupts: bool) -> None:
        self.starts += 1
        was_running = self.registers["status"] & Status.RUNNING
        if self.hangs and not (was_running and not self.deaf):
            self.registers |= {"status": Status.RUNNING, "instructions_low": 1}
            return
        fault, position = (Fault.RESTARTED, 0) if was_running else self._run()
        self.registers |= {"fault": fault, "fault_position": position, "status": int(
            (Status.FAILED if fault else Status.DONE) | (Status.INTERRUPT if interrupts else 0))}

    def _run(self) -> tuple[Fault, int]:
        read = self.registers
        segments, windows = [], []
        for number in range(SEGMENTS):
            size = read[f"segment{number}_size"]
            windows.append(self._window(f"segment{number}", size))
            access = Access.WRITE if read[f"segment{number}_access"] else Access.READ
            segments.append(Segment(f"s{number}", max(size, 1), access, windows[-1].copy()))
        code = self._window("program", read["program_count"] * INSTRUCTION_BYTES)
        device = FunctionalDevice(self.config)
        try:
            device.load(Program(self.config, from_bytes(code.tobytes()), tuple(segments)))
            device.run()
        except MicrotronError:
            return Fault.INDEX, 1
        for segment, window in zip(segments, windows, strict=True):
            window[:] = device._require_loaded().memory.read(segment.name, 0, len(window))
        for name in counter_names():
            read |= {f"{name}_low": CYCLES & 0xFFFF_FFFF, f"{name}_high": CYCLES >> 32}
        return Fault.NONE, 0

    def _window(self, register: str, size: int):
        address = self.registers[f"{register}_low"] | self.registers[f"{register}_high"] << 32
        start = address - self.memory.start
        return self.data[start:start + size] if address in self.memory else self.data[:0]


class DirectLink:
    """A link without a way in between."""

    def __init__(self, board: FakeBoard):
        self.board, self.address, self.memory = board, "fake", board.memory
        self.is_open = self.is_sound = True

    def read_registers(self, offset, count):
        return [self.board.read_word(self.board.base + offset + 4 * number)
                for number in range(count)]

    def set_registers(self, offset, values):
        for number, value in enumerate(values):
            self.write_register(offset + 4 * number, value)

    def write_register(self, offset, value):
        self.board.write_word(self.board.base + offset, value)

    def read(self, address, size):
        start = address - self.memory.start
        return self.board.data[start:start + size].copy()

    def write(self, address, data):
        assert address in self.memory
        start = address - self.memory.start
        self.board.data[start:start + len(data)] = data

    def wait(self, seconds):
        return poll(self, 0)

    def close(self):
        self.is_open = False
