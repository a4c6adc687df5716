"""The reader and its arbiter: two clients, one bus, memory that answers as it likes."""

import random
from dataclasses import replace

import pytest

from microtron.hw.bus.arbiter import RoundRobin
from microtron.hw.bus.reader import Client, Reader
from microtron.isa.config import tiny

from ..bench import Bench
from ..simulate import kept, simulate
from ..transfer.transfers import Until
from .axi_memory import DECERR, EXOKAY, MOST_BEATS, SLVERR, Dram, Reads, Window

DRAM_BYTES = 0x8000


def random_burst(rng, width):
    """An address and a number of beats inside one cell of the burst grid."""
    first = rng.randrange(MOST_BEATS)
    beats = rng.choice((1, 2, rng.randint(1, MOST_BEATS - first), MOST_BEATS - first))
    cell = rng.randrange(DRAM_BYTES // (MOST_BEATS * width))
    return (cell * MOST_BEATS + first) * width, min(beats, MOST_BEATS - first)


class Reading:
    """A client: asks for bursts, takes beats at random times, keeps what came."""

    def __init__(self, bench, reader, client, bursts, rng, stall):
        self.bench, self.rng, self.stall = bench, rng, stall
        self.waiting, self.width = list(bursts), reader.config.bus_bytes
        requests, beats = reader.requests[client], reader.beats[client]
        self.valid, self.address, self.count = map(bench.pin, (
            requests.valid, requests.payload.address, requests.payload.beats))
        self.take = bench.pin(beats.ready)
        self.taken, self.offered, self.data, self.error = map(bench.probe, (
            requests.ready, beats.valid, beats.payload.data, beats.payload.error))
        self.halt = bench.pin(reader.halt) if client == Client.FETCH else None
        self.requested_at, self.came, self.came_at = [], [], []

    def drive(self):
        if not self.valid.value and self.waiting and self.rng.random() >= self.stall:
            address, beats = self.waiting.pop(0)
            self.valid.value, self.address.value, self.count.value = 1, address, beats - 1
        self.take.value = self.rng.random() >= self.stall

    def look(self):
        if self.valid.value and self.taken.value:
            self.valid.value = 0
            self.requested_at.append(self.bench.cycle)
        if self.offered.value and self.take.value:
            self.came.append((self.data.value, self.error.value))
            self.came_at.append(self.bench.cycle)


def run(config, bursts, *, seed=0, stall=0.3, errors=None, halt_after=None, **memory):
    """Both clients read their bursts. Returns them, the bus and what DRAM holds."""
    rng = random.Random(seed)
    reader = kept(Reader, config)
    bench = Bench(reader)
    dram = Dram(bytearray(rng.randbytes(DRAM_BYTES)), [Window(0, DRAM_BYTES)], errors or {})
    bus = bench.add(Reads(bench, reader.bus, dram, rng, stall=stall, **memory))
    clients = [bench.add(Reading(bench, reader, client, bursts[client], rng, stall))
               for client in Client]
    quiet = bench.probe(reader.quiet)

    def over():
        halted = halt_after is not None and bench.cycle >= halt_after
        clients[Client.FETCH].halt.value = halted
        assert not quiet.value or bus.idle
        unasked = any(client.waiting or client.valid.value for client in clients)
        return quiet.value and (halted or not unasked)

    bench.add(Until(bench, over))
    bench.run()
    return clients, bus, dram


@pytest.mark.parametrize("bus_bits", [64, 128, 256])
@pytest.mark.parametrize("shuffle", [True, False])
def test_every_client_gets_its_beats_in_order_whatever_the_order_of_the_bus(bus_bits, shuffle):
    config = replace(tiny, bus_bits=bus_bits, reads_in_flight=5)
    width, rng = bus_bits // 8, random.Random(bus_bits)
    bursts = [[random_burst(rng, width) for _ in range(15)] for _ in Client]
    clients, bus, dram = run(config, bursts, seed=bus_bits, shuffle=shuffle)
    for client, asked in zip(clients, bursts, strict=True):
        expected = [int.from_bytes(dram.content[at:at + width], "little")
                    for address, beats in asked
                    for at in range(address, address + beats * width, width)]
        assert client.came == [(each, 0) for each in expected]
    assert bus.most_pending == 5


def test_errors_of_both_kinds_are_passed_with_their_beat_and_exokay_is_none():
    burst = [(0x100, 6)]
    errors = {0x108: SLVERR, 0x118: DECERR, 0x120: EXOKAY}
    clients, _, _ = run(tiny, [[], burst], errors=errors)
    assert [error for _, error in clients[Client.LOAD].came] == [0, 1, 0, 1, 0, 0]


def test_a_burst_and_a_beat_a_cycle_with_one_cycle_of_latency_each_way():
    bursts = [[], [(64 * number, 8) for number in range(12)]]
    clients, bus, _ = run(tiny, bursts, stall=0.0, latency=(20, 20))
    load = clients[Client.LOAD]
    first = load.requested_at[0]
    assert load.requested_at == list(range(first, first + 12))
    assert bus.taken_at == [each + 1 for each in load.requested_at]
    assert bus.beats_at == list(range(first + 21, first + 21 + 96))
    assert load.came_at == [each + 1 for each in bus.beats_at]


def test_clients_that_both_ask_take_turns():
    bursts = [[(64 * number, 1) for number in range(20)] for _ in Client]
    clients, _, _ = run(replace(tiny, reads_in_flight=64), bursts, stall=0.0)
    both = sorted((cycle, number) for number, client in enumerate(clients)
                  for cycle in client.requested_at)
    order = [number for _, number in both]
    assert order == [0, 1] * 20


def test_after_a_halt_no_burst_begins_and_the_outstanding_ones_end():
    bursts = [[(64 * number, 4) for number in range(60)] for _ in Client]
    clients, bus, _ = run(tiny, bursts, halt_after=40, latency=(30, 60))
    assert 0 < len(bus.bursts) < 60
    assert max(at for client in clients for at in client.requested_at) < 40
    assert sum(len(client.came) for client in clients) == 4 * len(bus.bursts)


@pytest.mark.parametrize("clients", [1, 2, 3, 5])
def test_the_arbiter_starves_nobody_and_grants_only_who_asks(clients):
    unit = RoundRobin(clients)
    rng = random.Random(clients)

    async def testbench(ctx):
        waited = [0] * clients
        requests = 0
        for _ in range(400):
            requests |= rng.getrandbits(clients)        # a client keeps asking
            served = requests != 0 and rng.random() < 0.7
            ctx.set(unit.requests, requests)
            ctx.set(unit.served, served)
            if served:
                grant = ctx.get(unit.grant)
                assert requests >> grant & 1
                requests &= ~(1 << grant)
                for client in range(clients):
                    waited[client] = waited[client] + 1 if requests >> client & 1 else 0
                assert max(waited) < clients
            await ctx.tick()

    simulate(unit, testbench)
