"""The way to LiteDRAM: random bursts against a memory, for every width of the controller."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass

import pytest

from microtron.boards.soc.dram.dram_port import DECERR, OKAY, Port
from microtron.boards.soc.dram.dram_reader import DramReader
from microtron.boards.soc.dram.dram_writer import DramWriter
from microtron.isa.config import tiny

from ...hw.simulate import simulate

BASE, SIZE = 0x4000_0000, 1 << 16
WORD_BITS = (16, 32, 64, 128)
LATENCY = 7


def port(word_bits: int) -> Port:
    return Port(word_bits, 24, BASE, SIZE)


@dataclass(frozen=True)
class Burst:
    address: int
    beats: int
    id: int

    @property
    def inside(self) -> bool:
        return BASE <= self.address < BASE + SIZE

    def offset(self, beat: int) -> int:
        return self.address - BASE + 8 * beat


def bursts(rng: random.Random, count: int) -> list[Burst]:
    """Short and long ones, at the edges of memory and of pages, and some outside of memory."""
    found = []
    for _ in range(count):
        beats = rng.choice((1, 2, 3, rng.randint(1, 40), rng.randint(1, 40), 256))
        page = rng.choice((0, SIZE - 4096, rng.randrange(0, SIZE, 4096)))
        place = rng.choice((0, 4096 - 8 * beats, 8 * rng.randrange(513 - beats)))
        start = rng.choice((BASE,) * 6 + (BASE + SIZE, BASE - SIZE))
        found.append(Burst(start + page + place, beats, rng.randrange(2)))
    return found


def controller_reads(rng: random.Random, unit: DramReader, memory: bytearray):
    """LiteDRAM: takes commands now and then, and answers each after some cycles, in order."""
    async def run(ctx):
        size, waiting, cycle, last = unit.words.word_bytes, deque(), 0, 0
        while True:
            ready = rng.random() < 0.8
            shown = bool(waiting) and waiting[0][0] <= cycle
            ctx.set(unit.port.ready, ready)
            ctx.set(unit.port.data_valid, shown)
            if shown:
                place = waiting.popleft()[1] * size
                ctx.set(unit.port.data, int.from_bytes(memory[place:place + size], "little"))
            if ready and ctx.get(unit.port.valid):
                last = max(cycle + LATENCY + rng.choice((0, 0, 0, 12)), last + 1)
                waiting.append((last, ctx.get(unit.port.address)))
            assert len(waiting) <= 32
            await ctx.tick()
            cycle += 1

    return run


def controller_writes(rng: random.Random, unit: DramWriter, memory: bytearray):
    """LiteDRAM: takes the data of a command in the next cycle or later, whether there or not."""
    async def run(ctx):
        size, waiting, cycle = unit.words.word_bytes, deque(), 0
        while True:
            ready = rng.random() < 0.8
            taken = bool(waiting) and waiting[0][0] <= cycle
            ctx.set(unit.port.ready, ready)
            ctx.set(unit.port.data_ready, taken)
            if taken:
                assert ctx.get(unit.port.data_valid)
                place = waiting.popleft()[1] * size
                word, strobes = ctx.get(unit.port.data), ctx.get(unit.port.strobes)
                for lane in range(size):
                    if strobes >> lane & 1:
                        memory[place + lane] = word >> 8 * lane & 255
            if ready and ctx.get(unit.port.valid):
                waiting.append((cycle + 1 + rng.choice((0, 0, 6)), ctx.get(unit.port.address)))
            await ctx.tick()
            cycle += 1

    return run


async def until(ctx, signal):
    """Past the clock edge at which a signal is high, which others may decide after us."""
    while not (await ctx.tick().sample(signal))[-1]:
        pass


async def offered(ctx, rng, valid, ready, fields):
    """Show something on a channel until it is taken, after a pause."""
    while rng.random() < 0.3:
        await ctx.tick()
    for signal, value in fields:
        ctx.set(signal, value)
    ctx.set(valid, 1)
    await until(ctx, ready)
    ctx.set(valid, 0)


async def taken(ctx, rng, valid, ready, *fields):
    """What is on a channel when it is taken, now and then."""
    while True:
        willing = rng.random() < 0.7
        ctx.set(ready, willing)
        _, _, there, *values = await ctx.tick().sample(valid, *fields)
        if willing and there:
            return values


@pytest.mark.parametrize("word_bits", WORD_BITS)
def test_reads_give_what_is_in_memory_in_order_and_errors_outside(word_bits):
    rng = random.Random(word_bits)
    unit = DramReader(tiny, port(word_bits))
    memory, wanted = bytearray(rng.randbytes(SIZE)), bursts(rng, 16)

    async def ask(ctx):
        for burst in wanted:
            await offered(ctx, rng, unit.bus.arvalid, unit.bus.arready, [
                (unit.bus.araddr, burst.address), (unit.bus.arlen, burst.beats - 1),
                (unit.bus.arid, burst.id)])

    async def check(ctx):
        bus = unit.bus
        for burst in wanted:
            for beat in range(burst.beats):
                found = await taken(ctx, rng, bus.rvalid, bus.rready, bus.rid, bus.rlast,
                                    bus.rresp, bus.rdata)
                place = burst.offset(beat)
                assert found[:3] == [burst.id, beat == burst.beats - 1,
                                     OKAY if burst.inside else DECERR]
                if burst.inside:
                    assert found[3] == int.from_bytes(memory[place:place + 8], "little")
        ctx.set(bus.rready, 0)
        while not ctx.get(unit.quiet):
            await ctx.tick()

    simulate(unit, ask, check, limit=60_000, background=[controller_reads(rng, unit, memory)])


@pytest.mark.parametrize("word_bits", WORD_BITS)
def test_writes_change_the_bytes_of_their_strobes_and_nothing_else(word_bits):
    rng = random.Random(word_bits)
    unit = DramWriter(tiny, port(word_bits))
    memory = bytearray(rng.randbytes(SIZE))
    right, wanted = bytearray(memory), bursts(rng, 16)
    beats = [(burst, beat, rng.getrandbits(64), rng.choice((255, 255, 0, rng.getrandbits(8))))
             for burst in wanted for beat in range(burst.beats)]
    for burst, beat, word, strobes in beats:
        for lane in range(8):
            if burst.inside and strobes >> lane & 1:
                right[burst.offset(beat) + lane] = word >> 8 * lane & 255

    async def ask(ctx):
        for burst in wanted:
            await offered(ctx, rng, unit.bus.awvalid, unit.bus.awready, [
                (unit.bus.awaddr, burst.address), (unit.bus.awlen, burst.beats - 1),
                (unit.bus.awid, burst.id)])

    async def give(ctx):
        for burst, beat, word, strobes in beats:
            await offered(ctx, rng, unit.bus.wvalid, unit.bus.wready, [
                (unit.bus.wdata, word), (unit.bus.wstrb, strobes),
                (unit.bus.wlast, beat == burst.beats - 1)])

    async def check(ctx):
        for burst in wanted:
            found = await taken(ctx, rng, unit.bus.bvalid, unit.bus.bready, unit.bus.bid,
                                unit.bus.bresp)
            assert found == [burst.id, OKAY if burst.inside else DECERR]
        while not ctx.get(unit.quiet):
            await ctx.tick()
        await ctx.tick().repeat(4)

    simulate(unit, ask, give, check, limit=60_000,
             background=[controller_writes(rng, unit, memory)])
    assert memory == right


@pytest.mark.parametrize("word_bits", WORD_BITS)
def test_a_long_read_takes_a_cycle_for_each_word_or_beat(word_bits):
    unit = DramReader(tiny, port(word_bits))
    cycles = 0

    async def ask(ctx):
        for page in range(2):
            ctx.set(unit.bus.araddr, BASE + 4096 * page)
            ctx.set(unit.bus.arlen, 255)
            ctx.set(unit.bus.arvalid, 1)
            await until(ctx, unit.bus.arready)
        ctx.set(unit.bus.arvalid, 0)

    async def check(ctx):
        nonlocal cycles
        ctx.set(unit.bus.rready, 1)
        left = 2 * 256
        while left:
            left -= (await ctx.tick().sample(unit.bus.rvalid))[-1]
            cycles += 1

    async def controller(ctx):
        ctx.set(unit.port.ready, 1)
        valid = deque([0] * LATENCY)
        while True:
            valid.append(ctx.get(unit.port.valid))
            ctx.set(unit.port.data_valid, valid.popleft())
            await ctx.tick()

    simulate(unit, ask, check, limit=20_000, background=[controller])
    assert cycles <= 2 * 256 * max(1, 64 // word_bits) + LATENCY + 16


def test_a_stopped_bridge_gives_no_command_and_becomes_quiet():
    rng = random.Random(0)
    unit = DramReader(tiny, port(16))

    async def ask(ctx):
        ctx.set(unit.bus.araddr, BASE)
        ctx.set(unit.bus.arlen, 255)
        ctx.set(unit.bus.arvalid, 1)
        await ctx.tick().repeat(20)
        assert not ctx.get(unit.quiet)
        ctx.set(unit.stop, 1)
        await ctx.tick().repeat(40)
        assert ctx.get(unit.quiet)
        assert not ctx.get(unit.port.valid)

    simulate(unit, ask, background=[controller_reads(rng, unit, bytearray(SIZE))])
