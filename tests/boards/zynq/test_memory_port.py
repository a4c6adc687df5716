"""The accelerator's AXI4 as AXI3: every beat arrives once, in order, in pieces that are allowed."""

import random
from dataclasses import replace

import pytest

from microtron.base.errors import ConfigError
from microtron.boards.zynq.axi3 import MOST_BEATS
from microtron.boards.zynq.burst_splitter import BurstSplitter
from microtron.boards.zynq.memory_port import PIECES_IN_FLIGHT, MemoryPort
from microtron.boards.zynq.shell import shell_verilog
from microtron.isa.config import tiny

from ...hw.bench import Bench
from ...hw.bus.axi_memory import DECERR, OKAY, SLVERR, Dram, Reads, Window, Writes
from ...hw.simulate import kept, simulate
from .masters import ReadMaster, Until, WriteMaster

SIZE = 1 << 14
GRID = 512                  # bytes; no burst of the accelerator crosses a multiple of it
CONSTANT = {"size": 3, "burst": 1, "cache": 3}


def place(rng):
    """Address and beats of a burst as the accelerator makes them, often as long as possible."""
    start = rng.randrange(GRID // 8)
    most = GRID // 8 - start
    return (rng.randrange(SIZE // GRID) * GRID + start * 8,
            rng.choice((1, most, min(most, MOST_BEATS), rng.randint(1, most))))


def memory(rng):
    return Dram(bytearray(rng.randbytes(SIZE)), [Window(0, SIZE, writable=True)])


@pytest.mark.parametrize(("address", "beats"), [
    (0, 1), (0xFF8, 1), (0, 16), (0x80, 17), (8, 16), (0x7F8, 256), (0xFFFF_F800, 256),
    (0x1000, 255), (0x1238, 33), (0x800, 32)])
def test_the_pieces_of_a_burst_are_the_burst(address, beats):
    unit, pieces = kept(BurstSplitter), []

    async def testbench(ctx):
        ctx.set(unit.bursts.payload, {"address": address, "beats": beats - 1, "id": 1})
        ctx.set(unit.bursts.valid, 1)
        ctx.set(unit.pieces.ready, 1)
        for _ in range(-(-beats // MOST_BEATS)):
            piece = unit.pieces.payload
            assert ctx.get(unit.pieces.valid)
            pieces.append((ctx.get(piece.address), ctx.get(piece.beats) + 1, ctx.get(piece.final)))
            assert ctx.get(unit.bursts.ready) == ctx.get(piece.final)
            assert ctx.get(piece.id) == 1
            await ctx.tick()

    simulate(unit, testbench)
    touched = [start + 8 * beat for start, count, _ in pieces for beat in range(count)]
    assert touched == list(range(address, address + 8 * beats, 8))
    assert [final for *_, final in pieces] == [0] * (len(pieces) - 1) + [1]


@pytest.mark.parametrize(("seed", "stall"), [(0, 0.3), (1, 0), (2, 0.8), (3, 0.3)])
def test_reads_come_back_in_order_with_their_ids_and_one_last_beat(seed, stall):
    rng = random.Random(seed)
    bench = Bench(kept(MemoryPort, tiny))
    dram = memory(rng)
    dram.errors = {8 * rng.randrange(SIZE // 8): rng.choice((SLVERR, DECERR)) for _ in range(99)}
    places = [place(rng) for _ in range(25)]
    ids = [rng.randrange(2) for _ in places]
    master = ReadMaster(bench, bench.unit.reads, [
        {"addr": address, "len": beats - 1, "id": each, **CONSTANT}
        for (address, beats), each in zip(places, ids, strict=True)], rng, stall=stall)
    slave = Reads(bench, bench.unit.port, dram, rng, stall=stall)
    for part in (master, slave, Until(bench, master)):
        bench.add(part)
    bench.run()
    assert master.beats == [
        (each, dram.read(address + 8 * beat, 8), dram.errors.get(address + 8 * beat, OKAY),
         beat == beats - 1)
        for (address, beats), each in zip(places, ids, strict=True) for beat in range(beats)]
    assert max(beats for _, beats in slave.bursts) == MOST_BEATS


@pytest.mark.parametrize(("seed", "stall", "beats_first"), [
    (0, 0.3, False), (1, 0, False), (2, 0.8, False), (3, 0.3, True), (4, 0, True)])
def test_writes_reach_memory_once_and_get_one_answer_each(seed, stall, beats_first):
    rng = random.Random(seed)
    bench = Bench(kept(MemoryPort, tiny))
    dram = memory(rng)
    dram.errors = {8 * rng.randrange(SIZE // 8): rng.choice((SLVERR, DECERR)) for _ in range(40)}
    expected = Dram(bytearray(dram.content), dram.windows)
    bursts, answers = [], []
    for _ in range(25):
        address, beats = place(rng)
        data = [(rng.getrandbits(64), rng.choice((255, rng.getrandbits(8)))) for _ in range(beats)]
        bursts.append({"addr": address, "len": beats - 1, "id": 0, **CONSTANT, "beats": data})
        responses = [dram.errors.get(address + 8 * number, OKAY) for number in range(beats)]
        answers.append((0, max(responses)))
        for number, (value, strobes) in enumerate(data):
            if responses[number] == OKAY:
                expected.write(address + 8 * number, 8, value, strobes)
    master = WriteMaster(bench, bench.unit.writes, bursts, rng, stall=stall)
    slave = Writes(bench, bench.unit.port, dram, rng, stall=stall, beats_first=beats_first)
    wid = SameId(bench, bench.unit.port)
    for part in (master, slave, wid, Until(bench, master)):
        bench.add(part)
    bench.run()
    assert master.answers == answers
    assert {response for _, response in answers} == {OKAY, SLVERR, DECERR}
    assert dram.content == expected.content
    assert max(beats for _, beats in slave.bursts) == MOST_BEATS


class SameId:
    """Watches that every beat of writes carries the id of its burst."""

    def __init__(self, bench, port):
        self.ids = [bench.probe(each) for each in (port.awid, port.wid, port.arid)]

    def drive(self):
        pass

    def look(self):
        assert not any(each.value for each in self.ids)


def test_no_more_pieces_are_asked_for_than_can_be_noted():
    rng = random.Random(5)
    bench = Bench(kept(MemoryPort, tiny))
    master = ReadMaster(bench, bench.unit.reads, [
        {"addr": 512 * number, "len": 63, "id": 0, **CONSTANT} for number in range(20)], rng,
        stall=0)
    slave = Reads(bench, bench.unit.port, memory(rng), rng, stall=0, latency=(300, 300))
    for part in (master, slave, Until(bench, master)):
        bench.add(part)
    bench.run()
    assert slave.most_pending == PIECES_IN_FLIGHT


@pytest.mark.parametrize(("field", "value"), [("bus_bits", 128), ("address_bits", 40)])
def test_an_accelerator_with_another_bus_is_refused(field, value):
    with pytest.raises(ConfigError, match=f"{field} is {value}, but the memory port of a Zynq"):
        shell_verilog(replace(tiny, **{field: value}))
