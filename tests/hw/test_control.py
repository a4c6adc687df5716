"""The control unit behind its AXI4-Lite slave: registers, runs, faults, counters, interrupts."""

import random
from dataclasses import replace

import pytest
from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib.wiring import Component, In, connect, flipped

from microtron.hw.bus.axi import lite_channels
from microtron.hw.bus.axi_lite import AxiLiteSlave
from microtron.hw.control import Control
from microtron.isa.config import tiny
from microtron.isa.faults import Fault
from microtron.isa.instructions import POSITION_BITS, SEGMENTS, Engine
from microtron.isa.registers import (
    IDENTITY,
    Status,
    counter_names,
    identity_of,
    offset_of,
    register_map,
)
from microtron.isa.registers import Control as Bits

from .simulate import kept, simulate


class Both(Component):
    """Control and its slave, as in the accelerator."""

    def __init__(self, config=tiny):
        self.control = Control(config)
        super().__init__({"bus": In(lite_channels())})

    def elaborate(self, platform):
        m = Module()
        m.submodules.control = self.control
        m.submodules.slave = slave = AxiLiteSlave()
        connect(m, flipped(self.bus), slave.bus)
        m.d.comb += [
            self.control.write_enable.eq(slave.write_enable),
            self.control.write_offset.eq(slave.write_offset),
            self.control.write_data.eq(slave.write_data),
            self.control.read_offset.eq(slave.read_offset),
            slave.read_data.eq(self.control.read_data),
        ]
        return m


class Driver:
    """AXI4-Lite transactions with random delays."""

    def __init__(self, unit, ctx, rng):
        self.bus, self.ctx, self.rng = unit.bus, ctx, rng

    async def pause(self):
        for _ in range(self.rng.choice((0, 0, 1, 3))):
            await self.ctx.tick()

    async def write(self, name, value, strobe=15):
        ctx, bus = self.ctx, self.bus
        await self.pause()
        ctx.set(bus.awaddr, offset_of(name))
        ctx.set(bus.wdata, value)
        ctx.set(bus.wstrb, strobe)
        ctx.set(bus.awvalid, 1)
        await self.pause()
        ctx.set(bus.wvalid, 1)
        while not (ctx.get(bus.awready) and ctx.get(bus.wready)):
            await ctx.tick()
        await ctx.tick()
        ctx.set(bus.awvalid, 0)
        ctx.set(bus.wvalid, 0)
        for _ in range(2):
            assert not ctx.get(bus.bvalid)          # an answer comes when a start was seen
            await ctx.tick()
        await self.pause()
        assert ctx.get(bus.bvalid)
        response = ctx.get(bus.bresp)
        ctx.set(bus.bready, 1)
        await ctx.tick()
        ctx.set(bus.bready, 0)
        return response

    async def read(self, name):
        ctx, bus = self.ctx, self.bus
        await self.pause()
        ctx.set(bus.araddr, offset_of(name))
        ctx.set(bus.arvalid, 1)
        while not ctx.get(bus.arready):
            await ctx.tick()
        await ctx.tick()
        ctx.set(bus.arvalid, 0)
        ctx.set(bus.araddr, 0)
        await self.pause()
        while not ctx.get(bus.rvalid):
            await ctx.tick()
        ctx.set(bus.rready, 1)
        value = ctx.get(bus.rdata)
        await ctx.tick()
        ctx.set(bus.rready, 0)
        return value


def drive(scenario, seed=0, config=tiny):
    unit = kept(Both, config)

    async def testbench(ctx):
        ctx.set(unit.control.quiet, 1)
        await scenario(ctx, unit.control, Driver(unit, ctx, random.Random(seed)))

    simulate(unit, testbench)


def test_the_hardware_describes_itself():
    async def scenario(ctx, control, driver):
        assert await driver.read("identity") == IDENTITY
        for name, value in identity_of(tiny).items():
            assert await driver.read(name) == value

    drive(scenario)


@pytest.mark.parametrize("seed", range(3))
def test_settings_are_kept_and_reach_the_engines(seed):
    rng = random.Random(seed)

    async def scenario(ctx, control, driver):
        written = {}
        for register in register_map():
            if register.name.startswith(("program", "segment")):
                bits = {"high": 0, "access": 1, "count": POSITION_BITS}.get(
                    register.name.rpartition("_")[2], 32)
                written[register.name] = rng.getrandbits(bits)
                assert await driver.write(register.name, written[register.name]) == 0
        for name, value in written.items():
            assert await driver.read(name) == value
        assert ctx.get(control.program_base) == written["program_low"]
        assert ctx.get(control.program_count) == written["program_count"]
        for number in range(SEGMENTS):
            for window in (control.load_window, control.store_window):
                ctx.set(window.number, number)
                segment = ctx.get(window.segment)
                assert segment.base == written[f"segment{number}_low"]
                assert segment.size == written[f"segment{number}_size"]
                assert segment.writable == written[f"segment{number}_access"]

    drive(scenario, seed)


def test_a_reset_clears_what_a_driver_set():
    unit, reset = Both(), Signal()

    async def testbench(ctx):
        driver = Driver(unit, ctx, random.Random(0))
        settings = [each.name for each in register_map() if each.name.startswith("segment1_")]
        for name in settings:
            await driver.write(name, 1)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        for name in settings:
            assert await driver.read(name) == 0
        for window in (unit.control.load_window, unit.control.store_window):
            ctx.set(window.number, 1)
            assert ctx.get(window.segment.size) == 0
        await driver.write("segment1_low", 7)
        assert [await driver.read(name) for name in settings] == [7, 0, 0, 0]

    simulate(ResetInserter(reset)(unit), testbench)


def test_a_write_with_missing_bytes_is_refused():
    async def scenario(ctx, control, driver):
        assert await driver.write("program_count", 5) == 0
        assert await driver.write("program_count", 9, strobe=7) == 2
        assert await driver.read("program_count") == 5

    drive(scenario)


def test_a_run_ends_when_fetch_has_finished_and_the_bus_is_quiet():
    async def scenario(ctx, control, driver):
        await driver.write("control", Bits.START | Bits.INTERRUPT_ENABLE)
        assert await driver.read("status") == Status.RUNNING
        ctx.set(control.quiet, 0)
        ctx.set(control.finished, 1)
        assert await driver.read("status") == Status.RUNNING
        ctx.set(control.quiet, 1)
        await ctx.tick().repeat(2)
        assert ctx.get(control.interrupt)
        assert await driver.read("status") == Status.DONE | Status.INTERRUPT
        await driver.write("status", Status.INTERRUPT)
        assert not ctx.get(control.interrupt)
        assert await driver.read("status") == Status.DONE

    drive(scenario)


def test_the_first_fault_halts_and_is_reported_when_the_bus_is_quiet():
    async def scenario(ctx, control, driver):
        await driver.write("control", Bits.START)
        while not ctx.get(control.running):
            await ctx.tick()
        ctx.set(control.quiet, 0)
        ctx.set(control.alu.fault.cause, Fault.INDEX)
        ctx.set(control.alu.fault.position, 77)
        await ctx.tick()
        ctx.set(control.alu.fault.cause, Fault.NONE)
        ctx.set(control.load.fault.cause, Fault.ADDRESS)
        await ctx.tick()
        assert (ctx.get(control.halts), ctx.get(control.halt)) == (1, 0)
        await ctx.tick()
        assert (ctx.get(control.halts), ctx.get(control.halt)) == (0, 1)
        assert await driver.read("status") == Status.RUNNING
        ctx.set(control.quiet, 1)
        ctx.set(control.load.fault.cause, Fault.NONE)
        assert await driver.read("status") == Status.FAILED
        assert await driver.read("fault") == Fault.INDEX
        assert await driver.read("fault_position") == 77
        await driver.write("control", Bits.START)
        assert await driver.read("status") == Status.RUNNING
        assert await driver.read("fault") == Fault.NONE

    drive(scenario)


def test_an_overflow_names_the_instruction_that_posted():
    async def scenario(ctx, control, driver):
        await driver.write("control", Bits.START)
        ctx.set(control.gemm.end_position, 12)
        await ctx.tick()
        ctx.set(control.gemm.end_position, 13)
        ctx.set(control.overflow, 1 << Engine.GEMM)         # of the cycle before
        await ctx.tick().repeat(3)
        assert await driver.read("fault") == Fault.TOKEN_OVERFLOW
        assert await driver.read("fault_position") == 12

    drive(scenario)


def test_a_start_while_running_is_a_fault():
    async def scenario(ctx, control, driver):
        await driver.write("control", Bits.START)
        await driver.write("control", Bits.START)
        assert await driver.read("status") == Status.FAILED
        assert await driver.read("fault") == Fault.RESTARTED

    drive(scenario)


def test_settings_cannot_change_during_a_run():
    async def scenario(ctx, control, driver):
        await driver.write("program_count", 3)
        await driver.write("control", Bits.START)
        await driver.write("program_count", 4)
        assert await driver.read("program_count") == 3

    drive(scenario)


def test_hardware_may_count_cycles_alone():
    async def scenario(ctx, control, driver):
        await driver.write("control", Bits.START)
        while not ctx.get(control.running):
            await ctx.tick()
        ctx.set(control.load.busy, 1)
        cycles = 0
        while ctx.get(control.running):
            cycles += 1
            ctx.set(control.finished, cycles >= 10)
            await ctx.tick()
        values = {name: await driver.read(f"{name}_low") for name in counter_names()}
        assert values == {**dict.fromkeys(counter_names(), 0), "cycles": cycles}
        assert await driver.read("cycles_high") == 0
        assert await driver.read("config_cycles_only") == 1

    drive(scenario, config=replace(tiny, cycles_only=1))


def test_counters_add_up_what_engines_tell_from_start_to_end():
    async def scenario(ctx, control, driver):
        ctx.set(control.load.busy, 1)           # before the start: not counted
        await ctx.tick().repeat(5)
        await driver.write("control", Bits.START)
        while not ctx.get(control.running):
            await ctx.tick()
        ctx.set(control.load.bytes, 8)             # a beat of the bus
        ctx.set(control.store.wait, 1 << Engine.ALU)
        await ctx.tick().repeat(10)
        ctx.set(control.load.busy, 0)
        ctx.set(control.load.bytes, 0)
        ctx.set(control.finished, 1)
        await ctx.tick()
        values = {name: await driver.read(f"{name}_low") for name in counter_names()}
        cycles = values["cycles"]
        assert 11 <= cycles <= 20
        assert values["load_bytes"] == 80
        assert values["load_busy"] == cycles - 1
        assert values["store_wait_alu"] == cycles
        assert values["gemm_busy"] == values["instructions"] == 0

    drive(scenario)
