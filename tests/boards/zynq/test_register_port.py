"""The processors' AXI3 as register accesses: every kind of burst, and what lies beyond."""

import random

import pytest

from microtron.boards.facts.zynq7000 import REGISTERS
from microtron.boards.zynq.axi3 import DECERR, FIXED, INCR, OKAY, SLVERR, WRAP
from microtron.boards.zynq.register_port import RegisterPort
from microtron.isa.registers import WINDOW_BYTES

from ...hw.bench import Bench, Steady
from ...hw.simulate import kept
from .masters import ReadMaster, Until, WriteMaster

REFUSED = range(0x800, 0x900)       # offsets that the registers answer with an error


class Registers:
    """AXI4-Lite registers as words that stall at random; each channel goes its own way."""

    def __init__(self, bench, bus, rng, *, stall):
        self.rng, self.stall = rng, stall
        self.words = {offset: rng.getrandbits(32) for offset in range(0, WINDOW_BYTES, 4)}
        self.pins = {name: bench.pin(getattr(bus, name)) for name in (
            "arready", "rvalid", "rdata", "rresp", "awready", "wready", "bvalid", "bresp")}
        self.probes = {name: bench.probe(getattr(bus, name)) for name in (
            "arvalid", "araddr", "rready", "awvalid", "awaddr", "wvalid", "wdata", "wstrb",
            "bready")}
        self.steady = [(Steady(bench, "AR", self.probes["arvalid"], None, bus.araddr), "arready"),
                       (Steady(bench, "AW", self.probes["awvalid"], None, bus.awaddr), "awready"),
                       (Steady(bench, "W", self.probes["wvalid"], None, bus.wdata, bus.wstrb),
                        "wready")]
        self.read, self.address, self.beat = None, None, None

    def drive(self):
        pins = self.pins
        for name, waiting in (("arready", self.read), ("awready", self.address),
                              ("wready", self.beat)):
            pins[name].value = waiting is None and self.rng.random() >= self.stall
        if self.read is not None and not pins["rvalid"].value and self.rng.random() >= self.stall:
            pins["rvalid"].value, pins["rdata"].value = 1, self.words[self.read]
            pins["rresp"].value = SLVERR if self.read in REFUSED else OKAY
        if self.address is not None and self.beat is not None and not pins["bvalid"].value \
                and self.rng.random() >= self.stall:
            pins["bvalid"].value, pins["bresp"].value = 1, self._write(self.address, *self.beat)

    def _write(self, offset, value, strobes):
        if offset in REFUSED:
            return SLVERR
        mask = sum(255 << 8 * lane for lane in range(4) if strobes >> lane & 1)
        self.words[offset] = self.words[offset] & ~mask | value & mask
        return OKAY

    def look(self):
        pins, seen = self.pins, {name: probe.value for name, probe in self.probes.items()}
        for steady, ready in self.steady:
            steady.look(pins[ready].value)
        if pins["rvalid"].value and seen["rready"]:
            pins["rvalid"].value, self.read = 0, None
        if pins["bvalid"].value and seen["bready"]:
            pins["bvalid"].value, self.address, self.beat = 0, None, None
        if pins["arready"].value and seen["arvalid"]:
            self.read = seen["araddr"]
        if pins["awready"].value and seen["awvalid"]:
            self.address = seen["awaddr"]
        if pins["wready"].value and seen["wvalid"]:
            self.beat = seen["wdata"], seen["wstrb"]


def burst(rng):
    """A burst that the standard allows, mostly inside the window of registers."""
    size, kind = rng.choice((0, 1, 2, 2, 2)), rng.choice((FIXED, INCR, INCR, WRAP))
    beats = rng.choice((2, 4, 8, 16)) if kind == WRAP else rng.randint(1, 16)
    offset = rng.randrange(WINDOW_BYTES - 64)
    if kind == WRAP:
        offset &= -(1 << size)
    if rng.random() < 0.2:
        offset += rng.choice((WINDOW_BYTES, 1 << 20, (1 << 30) - 2 * WINDOW_BYTES))
    return {"addr": REGISTERS + offset, "len": beats - 1, "size": size, "burst": kind,
            "id": rng.getrandbits(12)}


def offsets(burst):
    """Where the standard says that the beats of a burst are."""
    step, beats = 1 << burst["size"], burst["len"] + 1
    start = burst["addr"] - REGISTERS
    if burst["burst"] == FIXED:
        return [start] * beats
    if burst["burst"] == WRAP:
        low = start // (beats * step) * beats * step
        return [low + (start - low + number * step) % (beats * step) for number in range(beats)]
    return [start, *(start // step * step + number * step for number in range(1, beats))]


def response(offset):
    return DECERR if offset >= WINDOW_BYTES else SLVERR if offset & -4 in REFUSED else OKAY


@pytest.mark.parametrize(("seed", "stall"), [(0, 0.3), (1, 0), (2, 0.7)])
def test_bursts_of_every_kind_read_the_registers_the_standard_says(seed, stall):
    rng = random.Random(seed)
    bench = Bench(kept(RegisterPort))
    slave = Registers(bench, bench.unit.bus, rng, stall=stall)
    reads = [burst(rng) for _ in range(60)]
    before = dict(slave.words)
    reader = ReadMaster(bench, bench.unit.port, reads, rng, stall=stall)
    for part in (reader, slave, Until(bench, reader)):
        bench.add(part)
    bench.run()
    assert reader.beats == [
        (each["id"], 0 if offset >= WINDOW_BYTES else before[offset & -4], response(offset),
         number == each["len"])
        for each in reads for number, offset in enumerate(offsets(each))]


@pytest.mark.parametrize(("seed", "stall"), [(0, 0.3), (1, 0), (2, 0.7)])
def test_bursts_of_every_kind_write_the_registers_the_standard_says(seed, stall):
    rng = random.Random(seed)
    bench = Bench(kept(RegisterPort))
    slave = Registers(bench, bench.unit.bus, rng, stall=stall)
    expected, answers = dict(slave.words), []
    writes = [{**each, "beats": [(rng.getrandbits(32), rng.getrandbits(4))
                                 for _ in range(each["len"] + 1)]}
              for each in (burst(rng) for _ in range(60))]
    for each in writes:
        answers.append((each["id"], max(map(response, offsets(each)))))
        for offset, (value, strobes) in zip(offsets(each), each["beats"], strict=True):
            if response(offset) == OKAY:
                mask = sum(255 << 8 * lane for lane in range(4) if strobes >> lane & 1)
                expected[offset & -4] = expected[offset & -4] & ~mask | value & mask
    writer = WriteMaster(bench, bench.unit.port, writes, rng, stall=stall)
    for part in (writer, slave, Until(bench, writer)):
        bench.add(part)
    bench.run()
    assert writer.answers == answers
    assert slave.words == expected
    assert {each for _, each in answers} == {OKAY, SLVERR, DECERR}
