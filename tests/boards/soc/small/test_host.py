"""The host's serial line: commands of LiteX's bridge, whole, half and broken ones."""

from __future__ import annotations

import random
import struct

import pytest

from microtron.boards.facts.catalogue import find_board
from microtron.boards.soc.small.host import Host
from microtron.boards.soc.small.sdr_chip import read_chip

from ....hw.simulate import PERIOD as CLOCK_PERIOD
from ....hw.simulate import kept, simulate

MEMORY, REGISTERS = 0x4000_0000, 0x9000_0000
CHIP = read_chip(find_board("tang_nano_20k"))
BIT = 16                        # cycles
SILENCE = 3                     # bits: eight periods
PERIOD = 100                    # cycles
NOWHERE = 0x5000_0000
ONES = 0xFFFF_FFFF


def command(kind: int, address: int, *words: int, count: int | None = None) -> bytes:
    return struct.pack(f">BBI{len(words)}I", kind, len(words) if count is None else count,
                       address // 4, *words)


async def wait(ctx, cycles: int):
    """Wait until just after a clock edge, without waking up at those before it. (`repeat` does not
    survive a reset of the simulator.)"""
    if cycles > 1:
        await ctx.delay((cycles - 0.75) * CLOCK_PERIOD)
    if cycles:
        await ctx.tick()


async def rise(ctx, signal):
    """Wait until a signal is high at a clock edge."""
    if not ctx.get(signal):
        await ctx.posedge(signal)
    await ctx.tick()


class Bench:
    """The unit with memory and registers as tables, and the other end of the line."""

    def __init__(self, seed: int = 0, bit: float = BIT):
        self.rng, self.bit = random.Random(seed), bit
        self.unit = kept(Host, CHIP, bit_cycles=BIT, silence_bits=SILENCE, memory=MEMORY,
                         registers=REGISTERS)
        self.memory: dict[int, int] = {}
        self.registers: dict[int, int] = {}
        self.writes: list[tuple[int, int]] = []         # to registers
        self.heard = bytearray()

    def run(self, *steps: bytes | int, answer: int = 0) -> bytes:
        """Send bytes, or be silent for so many cycles; returns the bytes that come then."""
        async def host(ctx):
            for step in steps:
                if isinstance(step, int):
                    await wait(ctx, step)
                    continue
                for byte in step:
                    await self._send(ctx, byte)
            while len(self.heard) < answer:
                await ctx.tick()
            await wait(ctx, 30 * BIT)

        self.simulate(host)
        assert len(self.heard) == answer
        return bytes(self.heard)

    def simulate(self, host) -> None:
        simulate(self.unit, host, limit=30_000, background=(
            self._hear, self._serve, self._reads, self._writes, self._periods))

    async def _send(self, ctx, byte: int):
        sent = 0
        for number, level in enumerate((0, *(byte >> bit & 1 for bit in range(8)), 1), 1):
            ctx.set(self.unit.rx, level)
            await wait(ctx, round(number * self.bit) - sent)
            sent = round(number * self.bit)

    async def broken(self, ctx):
        """A byte whose stop bit is missing."""
        ctx.set(self.unit.rx, 0)
        await wait(ctx, 10 * BIT)
        ctx.set(self.unit.rx, 1)
        await wait(ctx, 2 * BIT)

    async def _hear(self, ctx):
        while True:
            await ctx.negedge(self.unit.tx)
            await ctx.tick()
            await wait(ctx, BIT // 2)
            byte = 0
            for bit in range(8):
                await wait(ctx, BIT)
                byte |= ctx.get(self.unit.tx) << bit
            await wait(ctx, BIT)
            assert ctx.get(self.unit.tx)
            self.heard.append(byte)

    async def _serve(self, ctx):
        port = self.unit.memory
        while True:
            ctx.set(port.done, 0)
            ctx.set(port.data_in, self.rng.getrandbits(32))
            await rise(ctx, port.asks)
            await wait(ctx, self.rng.randint(1, BIT - 4))
            assert ctx.get(port.asks)
            address = ctx.get(port.address)
            if ctx.get(port.writes):
                self.memory[address] = ctx.get(port.data)
            ctx.set(port.data_in, self.memory.get(address, 0))
            ctx.set(port.done, 1)
            await ctx.tick()

    async def _writes(self, ctx):
        """AXI4-Lite, which takes an address and data now and then, together."""
        bus = self.unit.bus
        while True:
            ctx.set(bus.bvalid, 0)
            ready = self.rng.random() < 0.5
            ctx.set(bus.awready, ready)
            ctx.set(bus.wready, ready)
            if not ctx.get(bus.awvalid):
                await ctx.posedge(bus.awvalid)
            _, _, valid, address, data, strobes = await ctx.tick().sample(
                bus.awvalid & bus.wvalid, bus.awaddr, bus.wdata, bus.wstrb)
            if valid and ready:
                assert strobes == 15
                self.writes.append((address, data))
                ctx.set(bus.awready, 0)
                ctx.set(bus.wready, 0)
                await wait(ctx, self.rng.randint(1, 4))
                ctx.set(bus.bvalid, 1)
                await ctx.tick()

    async def _reads(self, ctx):
        bus = self.unit.bus
        while True:
            ctx.set(bus.rvalid, 0)
            ctx.set(bus.rdata, self.rng.getrandbits(32))
            ready = self.rng.random() < 0.5
            ctx.set(bus.arready, ready)
            if not ctx.get(bus.arvalid):
                await ctx.posedge(bus.arvalid)
            _, _, valid, address = await ctx.tick().sample(bus.arvalid, bus.araddr)
            if valid and ready:
                ctx.set(bus.arready, 0)
                await wait(ctx, self.rng.randint(1, 6))
                ctx.set(bus.rdata, self.registers.get(address, 0))
                ctx.set(bus.rvalid, 1)
                await ctx.tick()

    async def _periods(self, ctx):
        while True:
            ctx.set(self.unit.period, 1)
            await ctx.tick()
            ctx.set(self.unit.period, 0)
            await wait(ctx, PERIOD - 1)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("bit", [BIT * 0.97, BIT, BIT * 1.03])
def test_words_reach_memory_and_come_back(seed, bit):
    """Also when the clocks of both ends differ by three percent."""
    bench = Bench(seed, bit)
    count = bench.rng.randint(1, 5)
    address = MEMORY + 4 * bench.rng.choice((0, 0x1FF, bench.rng.randrange(1 << 20)))
    words = [bench.rng.choice((0, ONES, bench.rng.getrandbits(32))) for _ in range(count)]
    answer = bench.run(command(1, address, *words), command(2, address, count=count),
                       answer=4 * count)
    assert answer == struct.pack(f">{count}I", *words)
    first = (address - MEMORY) // 4
    assert bench.memory == {first + number: word for number, word in enumerate(words)}


def test_registers_are_written_and_read_one_after_the_other():
    bench = Bench()
    bench.registers = {0: 0x12345678, 4: 0x9ABCDEF0}
    answer = bench.run(command(1, REGISTERS + 0x20, 5, 6), command(2, REGISTERS, count=2), answer=8)
    assert bench.writes == [(0x20, 5), (0x24, 6)]
    assert answer == bytes.fromhex("123456789abcdef0")
    assert not bench.memory


def test_what_is_nowhere_is_read_as_ones_and_not_written():
    bench = Bench()
    last = MEMORY + CHIP.bytes - 4
    answer = bench.run(
        command(1, NOWHERE, 1), command(1, MEMORY + CHIP.bytes, 1), command(1, REGISTERS + 4096, 1),
        command(1, last, 7, 8), command(2, NOWHERE, count=1), 60 * BIT,     # its answer comes
        command(2, last, count=2), answer=12)
    assert answer == struct.pack(">3I", ONES, 7, ONES)
    assert bench.memory == {CHIP.bytes // 4 - 1: 7}
    assert not bench.writes


def test_other_commands_do_nothing_and_a_count_of_none_is_more_than_any():
    bench = Bench()
    bench.memory = {number: number for number in range(256)}

    async def host(ctx):
        for byte in command(9, MEMORY, count=3) + command(2, MEMORY, count=0):
            await bench._send(ctx, byte)
        while len(bench.heard) < 12:
            await ctx.tick()

    bench.simulate(host)
    assert bench.heard == struct.pack(">3I", *range(3))


@pytest.mark.parametrize("length", range(1, 14))
def test_half_a_command_is_forgotten_after_a_silence(length):
    bench = Bench()
    whole = command(1, MEMORY, 1, 2)
    answer = bench.run(whole[:length], 10 * PERIOD, command(1, MEMORY + 4, 3),
                       command(2, MEMORY, count=2), answer=8)
    assert answer == struct.pack(">2I", 1 if length >= 10 else 0, 3)


@pytest.mark.parametrize("length", [1, 5, 8])
def test_a_pause_that_is_shorter_does_not_matter(length):
    bench = Bench()
    whole = command(1, MEMORY, 1, 2)
    bench.run(whole[:length], 5 * PERIOD, whole[length:])
    assert bench.memory == {0: 1, 1: 2}


def test_a_byte_without_its_stop_bit_ends_its_command():
    bench = Bench()

    async def breaks(ctx):
        for byte in command(1, MEMORY, 1)[:7]:
            await bench._send(ctx, byte)
        await bench.broken(ctx)
        for byte in command(1, MEMORY, 2):
            await bench._send(ctx, byte)
        await wait(ctx, BIT)

    bench.simulate(breaks)
    assert bench.memory == {0: 2}


def test_a_spike_on_the_line_is_no_byte():
    bench = Bench()

    async def spikes(ctx):
        ctx.set(bench.unit.rx, 0)
        await wait(ctx, BIT // 4)
        ctx.set(bench.unit.rx, 1)
        await wait(ctx, BIT)
        for byte in command(1, MEMORY, 2):
            await bench._send(ctx, byte)
        await wait(ctx, BIT)

    bench.simulate(spikes)
    assert bench.memory == {0: 2}
