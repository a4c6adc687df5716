"""The accelerator between a memory and a driver of cocotbext-axi that both pause at random."""

import logging
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotb_memory import Memory, connect
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster

from microtron.isa.address_map import place_windows
from microtron.isa.instructions import INSTRUCTION_BYTES, SEGMENTS
from microtron.isa.program import Access
from microtron.isa.registers import Control, Status, offset_of
from microtron.isa.stream import as_bytes

logging.getLogger("cocotb.bench").setLevel(logging.ERROR)     # else every transaction is logged

CLOCK_NS = 10
QUIET_CYCLES = 50       # for which the bus is watched after a program has stopped


def moods(rng):
    """For ever: whether a channel pauses in a cycle, in long and short spells."""
    while True:
        chance = rng.choice((0, 0.2, 0.9))
        for _ in range(rng.randrange(1, 40)):
            yield rng.random() < chance


class Bench:
    """All channels pause: five between accelerator and memory, five between driver and it."""

    def __init__(self, dut, seed, memory_bytes, memory_start=0):
        self.dut = dut
        self.rng = rng = random.Random(seed)
        self.memory = Memory(memory_bytes, memory_start)
        self.driver = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi"), dut.clk, dut.rst)
        self.settings = {}              # what the registers of program and segments hold
        slave = connect(AxiBus.from_prefix(dut, "m_axi"), dut, self.memory)
        self.pauses = [(channel, moods(rng)) for each in (slave, self.driver) for channel in (
            each.read_if.ar_channel, each.read_if.r_channel, each.write_if.aw_channel,
            each.write_if.w_channel, each.write_if.b_channel)]

    async def _pause(self):
        """Pause all channels at random: one task for all takes less time than one each."""
        edge = RisingEdge(self.dut.clk)
        while True:
            for channel, mood in self.pauses:
                channel.pause = next(mood)
            await edge

    async def reset(self):
        cocotb.start_soon(Clock(self.dut.clk, CLOCK_NS, "ns").start())
        cocotb.start_soon(self._pause())
        self.dut.rst.value = 1
        await ClockCycles(self.dut.clk, 4)
        self.dut.rst.value = 0
        await RisingEdge(self.dut.clk)

    async def write(self, name, value):
        await self.driver.write_dword(offset_of(name), value)

    async def read(self, name):
        return await self.driver.read_dword(offset_of(name))

    async def set_up(self, program, count, segments):
        """Tell where everything is. `segments` are (base, size, writable)."""
        wanted = {**self._address("program", program), "program_count": count}
        unused = [(0, 0, 0)] * (SEGMENTS - len(segments))
        for number, (base, size, writable) in enumerate((*segments, *unused)):
            wanted |= {**self._address(f"segment{number}", base),
                       f"segment{number}_size": size, f"segment{number}_access": writable}
        for name, value in wanted.items():
            if self.settings.get(name) != value:        # they stay from one program to the next
                await self.write(name, value)
        self.settings = wanted

    def _address(self, name, place):
        """The registers of an address on the bus; the high ones, where they matter."""
        high, low = divmod(self.memory.start + place, 1 << 32)
        return {f"{name}_low": low, **({f"{name}_high": high} if high else {})}

    async def start(self):
        await self.write("control", Control.START | Control.INTERRUPT_ENABLE)

    async def stopped(self, cycles=20_000):
        """The status after the interrupt, which is lowered again."""
        if not self.dut.interrupt.value:
            await with_timeout(RisingEdge(self.dut.interrupt), CLOCK_NS * cycles, "ns")
        status = Status(await self.read("status"))
        await self.write("status", Status.INTERRUPT)
        return status

    async def load(self, program, contents, count=None):
        """Place a program and the contents of its segments in a memory full of noise.

        `count` are the instructions that the driver gives, if not all.
        """
        count = len(program.code) if count is None else count
        self.code, *bases = (place - self.memory.start for place in place_windows(program))
        self.windows = [range(base, base + segment.size)
                        for base, segment in zip(bases, program.segments, strict=True)]
        self.memory.clear(self.rng)
        self.memory.write(self.code, as_bytes(program.code).tobytes())
        for window, content in zip(self.windows, contents, strict=True):
            self.memory.write(window.start, bytes(content))
        self.before = bytes(self.memory.content)
        self.readable = [range(self.code, self.code + count * INSTRUCTION_BYTES), *self.windows]
        await self.set_up(self.code, count, [
            (window.start, len(window), int(segment.access == Access.WRITE))
            for window, segment in zip(self.windows, program.segments, strict=True)])

    def assert_memory(self, contents):
        """All memory is as before but for segments with new contents.

        None: anything may be there; a tuple of contents: each byte is that of one of them. Nothing
        was read outside the windows, except for the rest of a beat.
        """
        expected = bytearray(self.before)
        for window, content in zip(self.windows, contents, strict=True):
            found = self.memory.read(window.start, len(window))
            if content is None:
                content = found
            elif isinstance(content, tuple):
                content = [byte if byte in choice else choice[0]
                           for byte, *choice in zip(found, *content, strict=True)]
            expected[window.start:window.stop] = bytes(content)
        if self.memory.content != expected:
            wrong = [at for at, (found, right) in enumerate(
                zip(self.memory.content, expected, strict=True)) if found != right]
            raise AssertionError(f"{len(wrong)} bytes are wrong, the first at {wrong[0]:#x}")
        for beat in self.memory.beats_read:
            assert any(beat.start < window.stop and window.start < beat.stop
                       for window in self.readable), f"read {beat.start:#x}, outside all windows"

    async def assert_quiet(self):
        """The accelerator has stopped: it asks memory for nothing, and is owed nothing."""
        touched = self.memory.touched
        for _ in range(QUIET_CYCLES):
            await RisingEdge(self.dut.clk)
            for channel in ("ar", "r", "aw", "w", "b"):
                assert not getattr(self.dut, f"m_axi_{channel}valid").value, f"{channel} is busy"
        assert self.memory.touched == touched
