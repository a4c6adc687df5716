"""From clock to clock in simulation: queues, registers and resets, at ratios of all kinds."""

import random

import pytest
from amaranth.hdl import Signal

from microtron.boards.crossing.async_fifo import STAGES, AsyncFifo, synchronize
from microtron.boards.crossing.clock_crossing import MemoryCrossing, payload_names
from microtron.boards.crossing.register_crossing import RegisterCrossing
from microtron.boards.crossing.reset_crossing import ResetCrossing
from microtron.isa.config import tiny

from .two_clocks import PERIODS, receiver, sender, simulate_clocks

WAYS = (("system", "accelerator"), ("accelerator", "system"))


def fifo(depth=16, way=WAYS[0]):
    return AsyncFifo(8, depth, put_domain=way[0], take_domain=way[1])


@pytest.mark.parametrize("periods", PERIODS)
@pytest.mark.parametrize(("depth", "eagerness"), [(2, (1, 1)), (16, (0.5, 0.5)), (4, (1, 0.2)),
                                                  (16, (0.2, 1))])
def test_items_come_out_in_order(periods, depth, eagerness):
    rng = random.Random(depth)
    items = [rng.randrange(256) for _ in range(60)]
    unit = fifo(depth)
    simulate_clocks(unit, periods, sender(unit.put, "system", items, eagerness[0], 1),
                    receiver(unit.take, "accelerator", items, eagerness[1], 2))


@pytest.mark.parametrize("periods", PERIODS)
@pytest.mark.parametrize("way", WAYS)
def test_a_queue_moves_an_item_a_cycle_of_the_slower_clock(periods, way):
    items = list(range(100))
    unit, lasted = fifo(way=way), []
    slower = "system" if periods[0] >= periods[1] else "accelerator"

    async def count(ctx):
        async for _ in ctx.tick(slower):
            lasted.append(1)

    simulate_clocks(unit, periods, sender(unit.put, way[0], items, 1, 0),
                    receiver(unit.take, way[1], items, 1, 0), background=(count,))
    assert len(items) <= len(lasted) <= len(items) + 8


def test_what_crosses_passes_two_registers():
    """A bit that one register catches while it changes needs a cycle to settle."""
    source, seen, edges = Signal(), Signal(), []

    async def count(ctx):
        ctx.set(source, 1)
        while not ctx.get(seen):
            await ctx.tick("accelerator")
            edges.append(1)

    simulate_clocks(synchronize(source, seen, "accelerator"), (7,), count,
                    domains=("accelerator",))
    assert len(edges) == STAGES == 2


class Channel:
    """The signals of a channel as a stream."""

    def __init__(self, bus, lead):
        from amaranth.hdl import Cat

        self.valid, self.ready = getattr(bus, f"{lead}valid"), getattr(bus, f"{lead}ready")
        self.payload = Cat(getattr(bus, name) for name in payload_names(lead))


@pytest.mark.parametrize("periods", PERIODS[::2])
def test_all_channels_of_the_memory_bus_cross_at_once(periods):
    unit = MemoryCrossing(tiny)
    rng = random.Random(5)
    benches = []
    for seed, (lead, near, far) in enumerate((
            ("ar", unit.reads, unit.memory_reads), ("r", unit.memory_reads, unit.reads),
            ("aw", unit.writes, unit.memory_writes), ("w", unit.writes, unit.memory_writes),
            ("b", unit.memory_writes, unit.writes))):
        way = WAYS[lead not in ("r", "b")]
        source, sink = Channel(near, lead), Channel(far, lead)
        items = [rng.getrandbits(len(source.payload)) for _ in range(60)]
        benches += [sender(source, way[0], items, 0.7, seed),
                    receiver(sink, way[1], items, 0.7, seed + 9)]
    simulate_clocks(unit, periods, *benches)


def register_file(bus, memory, seed):
    """A slave that takes its time. Every third register cannot be written."""
    async def run(ctx):
        rng = random.Random(seed)
        while True:
            while not (ctx.get(bus.arvalid) or (ctx.get(bus.awvalid) and ctx.get(bus.wvalid))):
                await ctx.tick("accelerator")
            for _ in range(rng.randrange(4)):
                await ctx.tick("accelerator")
            is_write = bool(ctx.get(bus.awvalid))
            address = ctx.get(bus.awaddr if is_write else bus.araddr)
            wrong = address // 4 % 3 == 0
            if is_write:
                if not wrong:
                    memory[address] = ctx.get(bus.wdata) | ctx.get(bus.wstrb) << 40
                readies, valid, response = (bus.awready, bus.wready), bus.bvalid, bus.bresp
            else:
                ctx.set(bus.rdata, memory.get(address, 0) & 0xFFFF_FFFF)
                readies, valid, response = (bus.arready,), bus.rvalid, bus.rresp
            for ready in readies:
                ctx.set(ready, 1)
            await ctx.tick("accelerator")
            for ready in readies:
                ctx.set(ready, 0)
            ctx.set(response, 2 if wrong else 0)
            ctx.set(valid, 1)
            taken = bus.bready if is_write else bus.rready
            while not (await ctx.tick("accelerator").sample(taken))[-1]:
                pass
            ctx.set(valid, 0)

    return run


async def access(ctx, bus, rng, address, value=None):
    """A write, or a read; returns its response and data."""
    lead = ("ar",) if value is None else ("aw", "w")
    if value is not None:
        ctx.set(bus.wdata, value)
        ctx.set(bus.wstrb, 0b1111)
    ctx.set(bus.araddr if value is None else bus.awaddr, address)
    for each in lead:
        ctx.set(getattr(bus, f"{each}valid"), 1)
    while not (await ctx.tick("system").sample(getattr(bus, f"{lead[0]}ready")))[-1]:
        pass
    for each in lead:
        ctx.set(getattr(bus, f"{each}valid"), 0)
    valid, ready, response = ((bus.rvalid, bus.rready, bus.rresp) if value is None
                              else (bus.bvalid, bus.bready, bus.bresp))
    while True:
        willing = rng.random() < 0.5
        ctx.set(ready, willing)
        _, _, there, found, data = await ctx.tick("system").sample(valid, response, bus.rdata)
        if there and willing:
            ctx.set(ready, 0)
            return found, data


@pytest.mark.parametrize("periods", PERIODS)
def test_registers_are_written_and_read_across(periods):
    """By one driver that reads and another that writes, at once."""
    unit, memory = RegisterCrossing(), {4 * number: number for number in range(16)}

    async def write(ctx):
        rng = random.Random(1)
        for number in range(40):
            address = 64 + 4 * rng.randrange(8)
            response, _ = await access(ctx, unit.driver, rng, address, number << 20 | address)
            assert response == (2 if address // 4 % 3 == 0 else 0)
            if response == 0:
                assert memory[address] == (number << 20 | address) | 0b1111 << 40

    async def read(ctx):
        rng = random.Random(2)
        for _ in range(40):
            address = 4 * rng.randrange(16)
            response, data = await access(ctx, unit.driver, rng, address)
            assert (response, data) == (2 if address // 4 % 3 == 0 else 0, address // 4)

    simulate_clocks(unit, periods, write, read,
                    background=(register_file(unit.registers, memory, 3),))


@pytest.mark.parametrize("periods", PERIODS)
@pytest.mark.parametrize("length", [1, 2, 50])
def test_a_reset_holds_both_sides_together_however_short_its_request(periods, length):
    """The system's side is in reset first and last, and both are long enough for all that is on its
    way to arrive."""
    unit = ResetCrossing()
    together = {"system": 0, "accelerator": 0}      # edges of each clock, both in reset

    async def request(ctx):
        while ctx.get(unit.system_reset):
            await ctx.tick("system")
        assert not ctx.get(unit.accelerator_reset)
        ctx.set(unit.request, 1)
        await ctx.delay(0)
        assert ctx.get(unit.system_reset)
        for _ in range(length):
            await ctx.tick("system")
        ctx.set(unit.request, 0)
        while ctx.get(unit.system_reset):
            await ctx.tick("system")

    def watch(domain):
        async def run(ctx):
            resets = (unit.system_reset, unit.accelerator_reset)
            async for _, _, system, accelerator in ctx.tick(domain).sample(*resets):
                assert system or not accelerator
                together[domain] += accelerator
                if not system:
                    together[domain] = 0
        return run

    async def judge(ctx):
        await request(ctx)
        assert min(together.values()) >= 3, together

    simulate_clocks(unit, periods, judge, background=tuple(map(watch, together)))
