"""A memory controller between masters that stall at random and a chip that checks its use."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from microtron.boards.facts.catalogue import find_board
from microtron.boards.soc.small.controller import DECERR, OKAY, Controller
from microtron.boards.soc.small.sdr_chip import Chip, read_chip
from microtron.isa.config import Config

from ....hw.simulate import kept, simulate
from .sdram import Sdram, Times, connect

BASE = 0x4000_0000
BUS = Config(block_in=2, block_out=2)           # only its bus counts: 64 bits
# The chip of the Tang Nano 20K, that of the ULX3S, and one that is slow in every way.
TANG = replace(read_chip(find_board("tang_nano_20k")), start=600)
TANG_TIMES = Times(period=1e9 / 48e6, row_to_column=15, precharge=15, row_open=40,
                   write_recovery=15, refresh=55, refresh_interval=64e6 / 4096, start=600 * 20.8)
ULX3S = replace(read_chip(find_board("ulx3s")), start=600)
ULX3S_TIMES = Times(period=20, row_to_column=20, precharge=20, row_open=44, write_recovery=15,
                    refresh=66, refresh_interval=64e6 / 8192, start=12_000)
SLOW = Chip(data_bits=32, bank_bits=2, row_bits=12, column_bits=9, latency=3, row_to_column=3,
            precharge=3, row_open=8, write_recovery=3, refresh=9, refresh_interval=300, start=600)
SLOW_TIMES = Times(period=7.5, row_to_column=20, precharge=20, row_open=60, write_recovery=20,
                   refresh=66, refresh_interval=300 * 7.5, start=4500)
CHIPS = {"tang": (TANG, TANG_TIMES), "ulx3s": (ULX3S, ULX3S_TIMES), "slow": (SLOW, SLOW_TIMES)}
GRID = 512                                      # bytes that bursts stay within
LIMIT = 60_000


@dataclass(frozen=True)
class Burst:
    address: int                                # in memory, or beyond
    beats: int
    id: int

    def inside(self, chip: Chip) -> bool:
        return 0 <= self.address < chip.bytes


class Bench:
    """A controller with its chip. Reads are of one part of memory, writes of another one, and a
    host has the third, so that each knows what it finds."""

    def __init__(self, name: str, seed: int, stalls: float = 0.3):
        self.chip, times = CHIPS[name]
        self.rng, self.stalls = random.Random(seed), stalls
        self.unit = kept(Controller, BUS, self.chip, BASE)
        self.sdram = Sdram(times, self.chip.data_bits, self.chip.latency, self.rng)
        self.expected: dict[int, int] = {}      # word of the chip: content
        self.filled: set[tuple[int, int, int]] = set()      # places of what is read

    def run(self, *testbenches, limit: int = LIMIT):
        simulate(self.unit, *testbenches, limit=limit,
                 background=(connect(self.sdram, self.unit.pins),))

    def page(self, part: int) -> int:
        """The address of one of a few grids, all over memory, in a part of each 3 × 512 bytes."""
        place = self.rng.choice((0, self.chip.bytes // 2, self.chip.bytes - 8 * 1536,
                                 1536 * self.rng.randrange(8)))
        return place // 1536 * 1536 + GRID * part

    def burst(self, part: int) -> Burst:
        beats = self.rng.choice((1, 1, 2, 3, self.rng.randint(1, 64), 64))
        first = self.rng.choice((0, 64 - beats, self.rng.randint(0, 64 - beats)))
        outside = self.rng.choice((0,) * 8 + (self.chip.bytes, -self.chip.bytes, 1 << 31))
        return Burst(self.page(part) + 8 * first + outside, beats, self.rng.randrange(2))

    def place(self, address: int) -> tuple[int, int, int]:
        word = address // self.chip.word_bytes
        bank = word >> self.chip.column_bits
        return (bank % (1 << self.chip.bank_bits), bank >> self.chip.bank_bits,
                word % (1 << self.chip.column_bits))

    def fill(self, part: int) -> None:
        for _ in range(300):
            start = self.page(part)
            for address in range(start, start + GRID, self.chip.word_bytes):
                self.sdram.content[self.place(address)] = self.rng.getrandbits(self.chip.data_bits)
        self.filled = set(self.sdram.content)

    def value(self, address: int, size: int) -> int:
        """What memory has, as bytes of the bus."""
        words = [self.sdram.content.get(self.place(each), 0)
                 for each in range(address, address + size, self.chip.word_bytes)]
        return sum(word << self.chip.data_bits * number for number, word in enumerate(words))

    async def pause(self, ctx):
        while self.rng.random() < self.stalls:
            await ctx.tick()

    def reader(self, count: int):
        """A master that reads, and its beats, which it takes now and then."""
        bus, bursts = self.unit.reads, [self.burst(0) for _ in range(count)]

        async def addresses(ctx):
            for burst in bursts:
                await self.pause(ctx)
                ctx.set(bus.araddr, (BASE + burst.address) % (1 << 32))
                ctx.set(bus.arlen, burst.beats - 1)
                ctx.set(bus.arid, burst.id)
                ctx.set(bus.arvalid, 1)
                await until(ctx, bus.arready)
                ctx.set(bus.arvalid, 0)

        async def beats(ctx):
            for burst in bursts:
                for beat in range(burst.beats):
                    data, response, last, id_ = await self._beat(ctx, bus)
                    assert (last, id_) == (beat == burst.beats - 1, burst.id)
                    if burst.inside(self.chip):
                        assert response == OKAY
                        assert data == self.value(burst.address + 8 * beat, 8)
                    else:
                        assert response == DECERR
            ctx.set(bus.rready, 0)

        return addresses, beats

    async def _beat(self, ctx, bus):
        """A beat that is shown and not taken must stay as it is."""
        shown = None
        while True:
            willing = self.rng.random() >= self.stalls
            ctx.set(bus.rready, willing)
            *_, valid, data, response, last, id_ = await ctx.tick().sample(
                bus.rvalid, bus.rdata, bus.rresp, bus.rlast, bus.rid)
            found = (data, response, last, id_) if valid else None
            assert shown is None or found == shown
            if valid and willing:
                return found
            shown = found

    def writer(self, count: int):
        bus, bursts = self.unit.writes, [self.burst(1) for _ in range(count)]

        async def addresses(ctx):
            for burst in bursts:
                await self.pause(ctx)
                ctx.set(bus.awaddr, (BASE + burst.address) % (1 << 32))
                ctx.set(bus.awlen, burst.beats - 1)
                ctx.set(bus.awid, burst.id)
                ctx.set(bus.awvalid, 1)
                await until(ctx, bus.awready)
                ctx.set(bus.awvalid, 0)

        async def beats(ctx):
            for burst in bursts:
                for beat in range(burst.beats):
                    await self.pause(ctx)
                    data, strobes = self.rng.getrandbits(64), self.rng.choice(
                        (255, 255, 0, self.rng.getrandbits(8)))
                    ctx.set(bus.wdata, data)
                    ctx.set(bus.wstrb, strobes)
                    ctx.set(bus.wlast, beat == burst.beats - 1)
                    ctx.set(bus.wvalid, 1)
                    await until(ctx, bus.wready)
                    ctx.set(bus.wvalid, 0)
                    if burst.inside(self.chip):
                        self.note(burst.address + 8 * beat, data, strobes)

        async def answers(ctx):
            for burst in bursts:
                await self.pause(ctx)
                ctx.set(bus.bready, 1)
                *_, response, id_ = await until(ctx, bus.bvalid, bus.bresp, bus.bid)
                ctx.set(bus.bready, 0)
                assert (response, id_) == (OKAY if burst.inside(self.chip) else DECERR, burst.id)

        return addresses, beats, answers

    def note(self, address: int, data: int, strobes: int) -> None:
        for lane in range(8):
            if strobes >> lane & 1:
                self.expected[address + lane] = data >> 8 * lane & 255

    def host(self, count: int):
        port = self.unit.host

        async def words(ctx):
            for _ in range(count):
                await self.pause(ctx)
                address = self.page(2) + 4 * self.rng.randrange(GRID // 4)
                writes, data = self.rng.randrange(2), self.rng.getrandbits(32)
                ctx.set(port.writes, writes)
                ctx.set(port.address, address // 4)
                ctx.set(port.data, data)
                ctx.set(port.asks, 1)
                *_, found = await until(ctx, port.done, port.data_in)
                ctx.set(port.asks, 0)
                if writes:
                    self.note(address, data, 15)
                else:
                    right = [self.expected.get(address + lane, 0) for lane in range(4)]
                    assert found == int.from_bytes(right, "little")
                await ctx.tick()

        return (words,)

    def check(self) -> None:
        """Memory has what was written, and nothing else where only writers were."""
        for address, byte in self.expected.items():
            word = address - address % self.chip.word_bytes
            found = self.sdram.content.get(self.place(word), 0)
            assert found >> 8 * (address - word) & 255 == byte
        written = {(place, lane) for place, word in self.sdram.content.items()
                   for lane in range(self.chip.word_bytes) if word >> 8 * lane & 255}
        right = {(self.place(address - address % self.chip.word_bytes),
                  address % self.chip.word_bytes) for address, byte in self.expected.items()}
        assert {each for each in written if each[0] not in self.filled} <= right


async def until(ctx, signal, *others):
    """Past the clock edge at which a signal is high, and what others are there."""
    while True:
        if not ctx.get(signal):
            await ctx.posedge(signal)
        _, _, high, *rest = await ctx.tick().sample(signal, *others)
        if high:
            return rest
