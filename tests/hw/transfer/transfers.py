"""LOAD or STORE as a machine: the engine, its half of the memory engine, DRAM, scratchpads."""

import random

import numpy as np
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import wiring

from microtron.hw.bus.reader import Client, Reader
from microtron.hw.bus.writer import Writer
from microtron.hw.load.load import LoadEngine
from microtron.hw.store.store import StoreEngine
from microtron.isa.instructions import Buffer, Store, Sync
from microtron.isa.program import Access, Program, Segment
from microtron.isa.stream import encode
from microtron.sim.functional.scratchpads import pack, unpack
from microtron.sim.functional.simulator import Functional

from ..bench import Bench
from ..bus.axi_memory import Dram, Reads, Window, Writes
from ..commander import FIRST_POSITION, Commander
from ..simulate import kept
from .boxes import SEGMENT_BASES, SEGMENT_SIZES
from .pads import Fillable, Readable

PADS = {Buffer.UOP: "uop", Buffer.INP: "inp", Buffer.WGT: "wgt", Buffer.ACC: "acc",
        Buffer.OUT: "out"}
DRAM_BYTES = 0xC000


class Until:
    """Ends the run a few cycles after something has come true."""

    def __init__(self, bench, condition, after=4):
        self.bench, self.condition, self.left = bench, condition, after

    def drive(self):
        pass

    def look(self):
        if self.condition():
            self.left -= 1
            self.bench.finished = self.left == 0


class Machine:
    """An engine with its half of the memory engine, DRAM and scratchpads."""

    def __init__(self, config, instructions, seed=0, *, stall=0.3, refusals=0.3, latency=(1, 40),
                 errors=None, halt_at=None, **memory):
        self.config, self.instructions = config, instructions
        rng = self.rng = random.Random(seed)
        self.stores = isinstance(instructions[0], Store)
        unit = kept(Joined, config, self.stores)
        engine, port = unit.engine, unit.port
        bench = self.bench = Bench(unit)
        self.dram = Dram(bytearray(rng.randbytes(DRAM_BYTES)), [
            Window(base, size, base != SEGMENT_BASES[0])
            for base, size in zip(SEGMENT_BASES, SEGMENT_SIZES, strict=True)], errors or {})
        self.before = bytes(self.dram.content)
        self.bus = bench.add((Writes if self.stores else Reads)(
            bench, port.bus, self.dram, rng, stall=stall, latency=latency, **memory))
        buffers = (Buffer.OUT, Buffer.ACC) if self.stores else (
            Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC)
        self.pads = {buffer: bench.add((Readable if self.stores else Fillable)(
            bench, getattr(engine, PADS[buffer]), config, buffer, rng,
            *((refusals, unit.spared) if buffer == Buffer.ACC else ()))) for buffer in buffers}
        self.pads_before = {buffer: pad.content.copy() for buffer, pad in self.pads.items()}
        self.commander = bench.add(Commander(bench, engine, instructions, rng, stall=stall,
                                             halt_at=halt_at))
        self.quiet = bench.probe(port.quiet)
        bench.add(Halt(bench, port, self.commander))

    def run(self, limit=20_000):
        """Until every instruction has ended, or the engine is halted and the bus is quiet."""
        self.bench.add(Until(self.bench, lambda: self.commander.done or (
            self.commander.halt.value and self.quiet.value), after=30))
        self.bench.run(limit)
        return self

    def duration(self, number=0):
        """Cycles from the start of an instruction to its end."""
        return self.commander.ends[number][0] - self.commander.starts[number][0]

    def expected(self):
        """The functional simulator after the same instructions on the same memory."""
        contents = [self.before[base:base + size]
                    for base, size in zip(SEGMENT_BASES, SEGMENT_SIZES, strict=True)]
        segments = tuple(
            Segment(f"s{number}", len(content), Access.WRITE if number else Access.READ,
                    np.frombuffer(content, np.uint8)) for number, content in enumerate(contents))
        machine = Functional(Program(self.config, encode([*self.instructions, Sync()]), segments))
        for buffer, content in self.pads_before.items():
            size = self.config.tiles(buffer) * self.config.tile_bytes(buffer)
            machine.scratchpads.of(buffer)[:] = unpack(content[None, :size], buffer,
                                                       self.config)[0]
        for position in range(len(self.instructions)):
            machine.execute(position)
        return machine

    def assert_as_expected(self):
        machine = self.expected()
        for buffer, pad in self.pads.items():
            tiles = pack(machine.scratchpads.of(buffer)[None], buffer, self.config)[0]
            np.testing.assert_array_equal(pad.content[:len(tiles)], tiles, err_msg=buffer.name)
        after = bytearray(self.before)
        for base, content in zip(SEGMENT_BASES, machine.memory.segments, strict=True):
            after[base:base + len(content)] = content.tobytes()
        assert self.dram.content == after
        assert [position for _, position in self.commander.ends] == list(
            range(FIRST_POSITION, FIRST_POSITION + len(self.instructions)))
        tiles = sum(np.prod(each.shape, dtype=int) * self.config.tile_bytes(each.buffer)
                    for each in self.instructions)
        assert self.commander.bytes == tiles
        assert self.quiet.value
        assert self.bus.idle

    def assert_stopped(self, cause=None, position=None):
        """A fault, if one is expected, or the halt: from then on nothing happened."""
        commander = self.commander
        if cause is None:
            assert commander.first_fault is None
            stopped = commander.halt_at
        else:
            stopped, *reported = commander.first_fault
            assert reported == [cause, position]
            assert position not in [each for _, each in commander.ends]
        happened = [cycle for cycle, _ in commander.starts + commander.ends]
        assert max(happened, default=0) < stopped
        if not self.stores:                 # what is on its way to a scratchpad is written
            written = [cycle for pad in self.pads.values() for cycle in pad.written_at]
            assert max(written, default=0) <= stopped
        late = [cycle for cycle in self.bus.offered_at if cycle > stopped]     # asked before
        assert len(late) <= (0 if self.stores else 1)       # one more address waits in the reader
        assert self.quiet.value
        assert self.bus.idle


def undisturbed(config, instructions, latency, **memory):
    """A machine after its run with a memory that never pauses."""
    machine = Machine(config, instructions, stall=0.0, refusals=0.0, latency=(latency, latency),
                      **memory).run()
    machine.assert_as_expected()
    return machine


def one_a_cycle(cycles):
    return cycles == list(range(cycles[0], cycles[0] + len(cycles)))


class Halt:
    """Passes the halt of the engine on to the memory engine, like the control unit."""

    def __init__(self, bench, port, commander):
        self.pin, self.commander = bench.pin(port.halt), commander

    def drive(self):
        self.pin.value = self.commander.halt.value

    def look(self):
        pass


class Joined(Elaboratable):
    """An engine and its half of the memory engine. `spared`: nobody else wants the bank of the
    accumulator that the engine wants, if it does."""

    def __init__(self, config, stores):
        self.spared = Signal()
        self.engine = StoreEngine(config) if stores else LoadEngine(config)
        self.port = Writer(config) if stores else Reader(config)

    def elaborate(self, platform):
        m = Module()
        m.submodules.engine, m.submodules.port = engine, port = self.engine, self.port
        if isinstance(port, Writer):
            wiring.connect(m, engine.requests, port.requests)
            wiring.connect(m, engine.beats, port.beats)
            wiring.connect(m, engine.answers, port.answers)
            m.d.comb += engine.acc.granted.eq(engine.acc.banks.any() & self.spared)
        else:
            wiring.connect(m, engine.requests, port.requests[Client.LOAD])
            wiring.connect(m, port.beats[Client.LOAD], engine.beats)
            m.d.comb += engine.acc.ready.eq(~engine.acc.banks.any() | self.spared)
        segment = engine.window.segment
        with m.Switch(engine.window.number):
            for number, (base, size) in enumerate(zip(SEGMENT_BASES, SEGMENT_SIZES, strict=True)):
                with m.Case(number):
                    m.d.comb += [segment.base.eq(base), segment.size.eq(size),
                                 segment.writable.eq(number > 0)]
        return m
