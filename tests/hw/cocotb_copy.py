"""Drives the stand-in through cocotbext-axi: registers by AXI4-Lite, memory by AXI4."""

import logging
import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, with_timeout
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam

from microtron.isa.faults import Fault
from microtron.isa.registers import Control, Status, offset_of

PROGRAM, SOURCE, TARGET = 0x1000, 0x2000, 0x8000
SIZE = int(os.environ["SIZE"])

logging.getLogger("cocotb.bench").setLevel(logging.WARNING)     # or every transaction is told


def moods(rng):
    """For ever: whether a channel pauses in a cycle, in long and short spells."""
    while True:
        chance = rng.choice((0, 0.2, 0.9))
        for _ in range(rng.randrange(1, 40)):
            yield rng.random() < chance


class Bench:
    """The accelerator between a memory and a driver that both pause at random, on all channels."""

    def __init__(self, dut, seed):
        self.dut = dut
        rng = random.Random(seed)
        self.memory = AxiRam(AxiBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, size=1 << 16)
        self.driver = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi"), dut.clk, dut.rst)
        for half in (self.memory.write_if, self.driver.write_if):
            for channel in (half.aw_channel, half.w_channel, half.b_channel):
                channel.set_pause_generator(moods(rng))
        for half in (self.memory.read_if, self.driver.read_if):
            for channel in (half.ar_channel, half.r_channel):
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

    async def run(self):
        for name, value in {"program_low": PROGRAM, "program_count": 3, "segment0_low": SOURCE,
                            "segment0_size": SIZE, "segment1_low": TARGET}.items():
            await self.write(name, value)
        await self.write("control", Control.START | Control.INTERRUPT_ENABLE)
        if not self.dut.interrupt.value:
            await with_timeout(RisingEdge(self.dut.interrupt), 1, "ms")
        status = Status(await self.read("status"))
        await self.write("status", Status.INTERRUPT)
        return status


@cocotb.test()
async def copies_under_random_pauses(dut):
    bench = Bench(dut, seed=cocotb.RANDOM_SEED)
    await bench.reset()
    for turn in range(3):
        data = random.Random(turn).randbytes(SIZE)
        bench.memory.write(PROGRAM, bytes([1, *bytes(31)]) * 3)
        bench.memory.write(SOURCE, data)
        bench.memory.write(TARGET, bytes(SIZE + 64))
        assert await bench.run() == Status.DONE | Status.INTERRUPT
        assert bench.memory.read(TARGET, SIZE) == data
        assert bench.memory.read(TARGET + SIZE, 64) == bytes(64)
        assert await bench.read("load_bytes_low") >= SIZE


@cocotb.test()
async def stops_at_an_illegal_word_and_runs_again(dut):
    bench = Bench(dut, seed=cocotb.RANDOM_SEED + 1)
    await bench.reset()
    bench.memory.write(PROGRAM, bytes([1, *bytes(31), 1, *bytes(31), 0, *bytes(31)]))
    assert await bench.run() == Status.FAILED | Status.INTERRUPT
    assert await bench.read("fault") == Fault.ILLEGAL
    assert await bench.read("fault_position") == 2
    bench.memory.write(PROGRAM, bytes([1, *bytes(31)]) * 3)
    assert await bench.run() == Status.DONE | Status.INTERRUPT
