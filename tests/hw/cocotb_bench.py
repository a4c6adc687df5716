"""The accelerator between a memory and a driver of cocotbext-axi that both pause at random."""

import logging
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, with_timeout
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam

from microtron.isa.instructions import SEGMENTS
from microtron.isa.registers import Control, Status, offset_of

logging.getLogger("cocotb.bench").setLevel(logging.WARNING)     # or every transaction is told


def moods(rng):
    """For ever: whether a channel pauses in a cycle, in long and short spells."""
    while True:
        chance = rng.choice((0, 0.2, 0.9))
        for _ in range(rng.randrange(1, 40)):
            yield rng.random() < chance


class Bench:
    """All channels pause: five between accelerator and memory, five between driver and it."""

    def __init__(self, dut, seed, memory_bytes=1 << 16):
        self.dut = dut
        rng = random.Random(seed)
        self.memory = AxiRam(AxiBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, size=memory_bytes)
        self.driver = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi"), dut.clk, dut.rst)
        for each in (self.memory, self.driver):
            read, write = each.read_if, each.write_if
            for channel in (read.ar_channel, read.r_channel, write.aw_channel, write.w_channel,
                            write.b_channel):
                channel.set_pause_generator(moods(rng))

    async def reset(self):
        cocotb.start_soon(Clock(self.dut.clk, 10, "ns").start())
        self.dut.rst.value = 1
        for _ in range(4):
            await RisingEdge(self.dut.clk)
        self.dut.rst.value = 0
        await RisingEdge(self.dut.clk)

    async def write(self, name, value):
        await self.driver.write_dword(offset_of(name), value)

    async def read(self, name):
        return await self.driver.read_dword(offset_of(name))

    async def run(self, program, count, segments, milliseconds=2):
        """Run a program to its interrupt. `segments` are (base, size, writable)."""
        await self.write("program_low", program)
        await self.write("program_count", count)
        unused = [(0, 0, 0)] * (SEGMENTS - len(segments))
        for number, (base, size, writable) in enumerate((*segments, *unused)):
            await self.write(f"segment{number}_low", base)
            await self.write(f"segment{number}_size", size)
            await self.write(f"segment{number}_access", writable)
        await self.write("control", Control.START | Control.INTERRUPT_ENABLE)
        if not self.dut.interrupt.value:
            await with_timeout(RisingEdge(self.dut.interrupt), milliseconds, "ms")
        status = Status(await self.read("status"))
        await self.write("status", Status.INTERRUPT)
        return status
