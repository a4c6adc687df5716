"""The write side of LOAD: pairs the steps of loads with the beats of the bus."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import Component, In, Out, Signature
from amaranth.utils import exact_log2

from ...isa.config import INDEX_BITS, Config
from ...isa.faults import Fault
from ...isa.instructions import Buffer, Engine, Load
from ..accumulator import request
from ..fifo import RegisterSlice
from ..interfaces import FAULT, fill_port, read_beat
from ..layouts import POSITION_BITS, buffers_of
from ..logic import require_entries
from ..transfer.packing import parts_of
from .load_steps import LoadSteps

# The scratchpad of each buffer that a load may name.
TARGETS = require_entries(buffers_of(Load), {
    Buffer.UOP: "uop", Buffer.INP: "inp", Buffer.WGT: "wgt", Buffer.ACC: "acc",
    Buffer.ACC8: "acc"})
PORTS = tuple(dict.fromkeys(TARGETS.values()))
SHARED = TARGETS[Buffer.ACC]                # the others are always ready


def fill_parts(config: Config, target: str) -> int:
    """Parts of a tile that the fill port of a scratchpad can select."""
    return max(parts_of(config, buffer) for buffer, name in TARGETS.items() if name == target)


def fill_port_of(config: Config, target: str) -> Signature:
    """The fill port of a scratchpad; that of the accumulator, which is shared, has banks."""
    return fill_port(config, fill_parts(config, target),
                     config.acc_banks if target == SHARED else 0)


class LoadWriter(Component):
    """Writes the border and the data of loads into the scratchpads.

    Rate: one write a cycle: a tile of padding, a beat, or, where smaller tiles have different lanes
    in the beat and in the scratchpad (see `Packing`), a tile of data. No bubble between rows, one
    between loads. Latency: the first step can be taken in the second cycle after the load arrived;
    a step taken in cycle t is written in t + 1, if its port is ready. A load ends in the cycle
    after its last write, since `ready` may arrive late; one that writes nothing ends like a write.

        LoadSteps ──► two places ──► with its beat ──► two places ──► written

    A step waits while two writes before it wait for their port, and a step with data while there is
    no beat (`wait_memory`). A tile outside its scratchpad (INDEX) and a beat with an error
    (READ_ERROR) are not written: they raise a fault in that cycle, after which `stop` must be high.

    Members
    -------
    instructions : In(stream of prepared_layout)
        Loads, in order, as `steps.prepare` gives them. Each is taken with its last step.
    beats : In(stream of read_beat)
        The beats of all loads, in order. A beat is taken with the last step that needs it.
    uop, inp, wgt, acc : Out(fill_port)
        To the scratchpads. A write stays until its port is ready.
    stop : In(1)
        Discard beats, and write nothing from the next cycle on. A write of the previous cycle may
        still end a load.
    goes_on : In(1)
        The inverse of `stop`, from its own register, for critical paths.
    end : Out(1)
        A load completed in the previous cycle. From a register, as the next two.
    end_post : Out(len(Engine))
        The engines to post a token to; zero in all other cycles.
    end_position : Out(32)
        Its number in the program.
    fault : Out(FAULT)
        The oldest write is not possible. Raised for one cycle; undefined during a stop.
    busy : Out(1)
        A load has arrived and is not complete.
    wait_memory : Out(1)
        The current step waits for its beat.
    bytes : Out(range(bus_bytes + 1))
        Bytes from DRAM that are written in this cycle.
    """

    def __init__(self, config: Config):
        self.config = config
        self.steps = LoadSteps(config)
        super().__init__({
            "instructions": In(stream.Signature(self.steps.prepared_layout)),
            "beats": In(stream.Signature(read_beat(config))),
            **{target: Out(fill_port_of(config, target)) for target in PORTS},
            "stop": In(1), "goes_on": In(1, init=1),
            "end": Out(1), "end_post": Out(len(Engine)), "end_position": Out(POSITION_BITS),
            "fault": Out(FAULT),
            "busy": Out(1), "wait_memory": Out(1), "bytes": Out(range(config.bus_bytes + 1)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.steps = steps = self.steps
        wiring.connect(m, wiring.flipped(self.instructions), steps.instructions)
        m.submodules.places = self.places = RegisterSlice(steps.steps.payload.shape())
        wiring.connect(m, steps.steps, self.places.put)
        self.step = self.places.take.payload
        m.submodules.writes = self.writes = RegisterSlice(self._write_layout())
        self._take(m)
        self._write(m)
        m.d.comb += self.busy.eq(self.instructions.valid | self.places.take.valid
                                 | self.writes.take.valid | self.end)
        return m

    def _write_layout(self):
        step = self.step.shape()
        return data.StructLayout({
            "targets": len(PORTS), "banks": self.config.acc_banks, "widen": 1,
            "data": self.config.bus_bits, "whole": 1, "index": INDEX_BITS,
            "broken": 1, "ends": 1, **{name: step[name].shape for name in (
                "outside", "part", "word_lanes", "bytes", "post", "position")},
        })

    def _take(self, m):
        """Take the next step with its beat, and queue the write."""
        step, beat, write = self.step, self.beats.payload, self.writes.put.payload
        taken, enable = Signal(), Signal()
        bad, spoiled = Signal(), Signal()       # this step is faulty; it or an earlier one is
        with m.If(taken & bad):
            m.d.sync += spoiled.eq(1)
        m.d.comb += [
            taken.eq(self.places.take.valid & (~step.data | self.beats.valid)
                     & self.writes.put.ready & ~self.stop),
            self.wait_memory.eq(self.places.take.valid & step.data & ~self.beats.valid
                                & ~self.stop),
            self.places.take.ready.eq(taken),
            self.beats.ready.eq(self.stop | (taken & step.data & step.ends_beat)),
            self.writes.put.valid.eq(taken),
            write.data.eq(Mux(step.data, self._from_beat(m), self._padding())),
            write.whole.eq(~step.data), write.broken.eq(step.data & beat.error),
            bad.eq(step.outside | write.broken),
            enable.eq(~step.empty & ~bad & ~spoiled),
            *(write.targets[number].eq(enable & Cat(step.buffer == buffer for buffer, name
                                                    in TARGETS.items() if name == target).any())
              for number, target in enumerate(PORTS)),
            write.banks.eq(request(self.config, write.targets[PORTS.index(SHARED)], step.index)),
            write.bytes.eq(Mux(enable, step.bytes, 0)),
            write.widen.eq((step.buffer == Buffer.ACC8) | ~step.data),
            write.ends.eq(step.last & ~bad),
            write.post.eq(Mux(write.ends, step.post, 0)),
            *(write[name].eq(step[name]) for name in (
                "index", "outside", "part", "word_lanes", "position")),
        ]

    def _padding(self):
        """The value in every lane of the border, as wide as the bus."""
        value = self.step.pad_value
        plain = value.replicate(self.config.bus_bytes)
        if self.config.wgt_bits == 8:
            return plain
        weights = value[:self.config.wgt_bits].replicate(
            self.config.bus_bits // self.config.wgt_bits)
        return Mux(self.step.buffer == Buffer.WGT, weights, plain)

    def _from_beat(self, m):
        """The beat, or one tile of it in every lane."""
        result = self.beats.payload.data
        for size in sorted({self.config.tile_bytes(buffer) for buffer in TARGETS}):
            if size < self.config.bus_bytes:
                fits = Cat(self.step.buffer == buffer for buffer in TARGETS
                           if self.config.tile_bytes(buffer) == size).any()
                tile = Signal(8 * size, name=f"tile_of_{size}")
                lane = self.step.lane[:exact_log2(self.config.bus_bytes // size)]
                m.d.comb += tile.eq(self.beats.payload.data.word_select(lane, 8 * size))
                result = Mux(self.step.alone & fits,
                             tile.replicate(self.config.bus_bytes // size), result)
        return result

    def _write(self, m):
        """Do the oldest write, unless it has to wait or is faulty."""
        write, pending = self.writes.take.payload, self.writes.take.valid
        shared = getattr(self, SHARED)
        may_write = Signal(init=1)          # registered, since its net is long
        m.d.sync += may_write.eq(self.goes_on)
        for target, addressed in zip(PORTS, write.targets, strict=True):
            port = getattr(self, target)
            m.d.comb += [
                # `banks` implies that it is the accumulator.
                port.enable.eq(~self.writes.vacant & (addressed | (target == SHARED)) & may_write),
                port.index.eq(write.index), port.part.eq(write.part),
                port.whole.eq(write.whole), port.lanes.eq(write.word_lanes),
                port.data.eq(write.data), port.widen.eq(Const(target == "acc") & write.widen),
            ]
        goes, ends = Signal(), Signal()
        m.d.comb += [
            shared.banks.eq(write.banks),
            goes.eq(pending & shared.ready & self.goes_on),
            self.writes.take.ready.eq(shared.ready),
            ends.eq(goes & write.ends),
            # An explicit AND: synthesis would otherwise infer a reset, which is slower.
            self.bytes.eq(write.bytes & goes.replicate(len(write.bytes))),
            self.fault.position.eq(write.position),
        ]
        m.d.sync += [self.end.eq(ends),
                     self.end_post.eq(write.post & goes.replicate(len(write.post))),
                     self.end_position.eq(write.position)]
        with m.If(pending):                 # not used during a stop
            with m.If(write.outside):
                m.d.comb += self.fault.cause.eq(Fault.INDEX)
            with m.Elif(write.broken):
                m.d.comb += self.fault.cause.eq(Fault.READ_ERROR)
