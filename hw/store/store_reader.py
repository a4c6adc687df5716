"""The read side of STORE: reads tiles from the scratchpads and packs them into beats."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import Component, In, Out

from ...isa.config import Config
from ...isa.faults import Fault
from ...isa.instructions import Buffer, Store
from ..accumulator import READ_LATENCY, granted_read_port, request
from ..fifo import RegisteredFifo, RegisterSlice
from ..interfaces import FAULT, read_port, write_beat
from ..layouts import buffers_of
from ..logic import register, step_by_one
from .store_steps import StoreSteps

assert {*buffers_of(Store)} == {Buffer.OUT, Buffer.ACC}, "another buffer needs hardware here"

QUEUE_DEPTH = 5             # beats, including those between a read and the queue


def word_bits(config: Config) -> int:
    """Bits of a read from `out`: a tile, or all tiles that share a beat."""
    return max(8 * config.tile_bytes(Buffer.OUT), config.bus_bits)


class StoreReader(Component):
    """Reads tiles and assembles the beats of stores.

    Rate: one step a cycle: a beat, or, where smaller tiles have different lanes in the scratchpad
    and in the beat (see `Packing`), a tile. A tile of several beats is read once. No bubble between
    rows, one between stores. Latency: the first step can be taken in the second cycle after the
    store arrived; a step taken in cycle t lands in t + 3, when its data are valid, and a beat that
    is then complete is offered from t + 4 on.

        StoreSteps ──► two places ──► read ──► one, two, three cycles ago ──► beat ──► queue

    A step waits while five beats are in flight between a read and the writer (`reserved`), and
    while the accumulator does not grant its read. A tile outside its scratchpad is not read and
    raises a fault (INDEX) for one cycle, after which `stop` must be high.

    Members
    -------
    instructions : In(stream of prepared_layout)
        Stores, in order, as `steps.prepare` gives them. Each is taken with its last step.
    out : Out(read_port)
        From the result scratchpad, whole words: the tile and all that share a beat with it.
    acc : Out(granted_read_port)
        From the accumulator. A read is requested until it is granted.
    beats : Out(stream of write_beat)
        Complete beats, in order; bytes without strobe are zero. One that is not taken stays.
    stop : In(1)
        Read nothing, offer nothing.
    goes_on : In(1)
        The inverse of `stop`, from its own register, for critical paths.
    fault : Out(FAULT)
        The current step is outside its scratchpad. Undefined during a stop.
    bytes : Out(range(bus_bytes + 1))
        Bytes of the step that was taken in the previous cycle.
    busy : Out(1)
        There is a step to take, or a beat in flight.
    """

    def __init__(self, config: Config):
        self.config = config
        self.steps = StoreSteps(config)
        super().__init__({
            "instructions": In(stream.Signature(self.steps.prepared_layout)),
            "out": Out(read_port(word_bits(config))),
            "acc": Out(granted_read_port(config)),
            "beats": Out(stream.Signature(write_beat(config))),
            "stop": In(1), "goes_on": In(1, init=1),
            "fault": Out(FAULT),
            "bytes": Out(range(config.bus_bytes + 1)),
            "busy": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.steps = steps = self.steps
        wiring.connect(m, wiring.flipped(self.instructions), steps.instructions)
        step = steps.steps.payload
        kept = data.StructLayout({name: field.shape for name, field in step.shape()
                                  if name != "position"})
        m.submodules.reads = self.reads = reads = RegisterSlice(data.StructLayout({
            "step": kept, "from_out": 1, "banks": self.config.acc_banks, "freely": 1}))
        read = step.read & ~step.outside
        m.d.comb += [
            reads.put.valid.eq(steps.steps.valid), steps.steps.ready.eq(reads.put.ready),
            *(reads.put.payload.step[name].eq(step[name]) for name in kept.members),
            reads.put.payload.from_out.eq(read & (step.buffer == Buffer.OUT)),
            reads.put.payload.banks.eq(request(
                self.config, read & (step.buffer == Buffer.ACC), step.index)),
            reads.put.payload.freely.eq(~step.outside & ~(step.read & (step.buffer == Buffer.ACC))),
        ]
        # The position only matters for a faulty step, and no step is taken after the first of
        # these.
        found, position = Signal(), Signal.like(step.position, name="position", reset_less=True)
        with m.If(~found):
            m.d.sync += [found.eq(step.outside & reads.put.valid & reads.put.ready),
                         position.eq(step.position)]
        m.d.comb += self.fault.position.eq(position)
        self.step = reads.take.payload.step
        landing = self._take(m)
        self._land(m, landing)
        return m

    def _take(self, m):
        """Take the next step and enable its read. Returns the step that lands in this cycle."""
        step = self.step
        self.reserved = Signal(range(QUEUE_DEPTH + 1))
        room = Signal(init=1)                           # reserved != QUEUE_DEPTH
        reserves, frees = Signal(), Signal()
        attempt, taken = Signal(name="attempt"), Signal(name="taken")
        ready, read = self.reads.take.ready, self.reads.take.payload
        m.d.comb += [
            attempt.eq(self.reads.take.valid & room & self.goes_on),
            self.out.enable.eq(attempt & read.from_out),
            self.acc.enable.eq(attempt), self.acc.banks.eq(read.banks),
            self.out.index.eq(step.index), self.acc.index.eq(step.index),
            # `ready` need not depend on whether there is a step.
            ready.eq(room & self.goes_on & (read.freely | self.acc.granted)),
            taken.eq(self.reads.take.valid & ready),
            self.busy.eq(self.instructions.valid | self.reads.take.valid | (self.reserved != 0)),
        ]
        with m.If(self.reads.take.valid & room & step.outside):
            m.d.comb += self.fault.cause.eq(Fault.INDEX)
        m.d.comb += [reserves.eq(taken & step.ends_beat),
                     frees.eq(self.beats.valid & self.beats.ready)]
        with m.If(reserves ^ frees):
            m.d.sync += [self.reserved.eq(step_by_one(self.reserved, ~frees)),
                         room.eq(frees | (self.reserved != QUEUE_DEPTH - 1))]

        kept = ("part", "alone", "word_lane", "strobe", "ends_beat")
        layout = data.StructLayout({"valid": 1, "acc": 1,
                                    **{name: step.shape()[name].shape for name in kept}})
        under_way = [Signal(layout, name=f"read_{age}_ago") for age in range(1, READ_LATENCY + 1)]
        m.d.sync += [
            under_way[0].valid.eq(taken & ~step.empty),
            under_way[0].acc.eq(step.buffer == Buffer.ACC),
            *(under_way[0][name].eq(step[name]) for name in kept),
            *(older.eq(newer) for newer, older in pairwise(under_way)),
        ]
        bytes_taken = Signal.like(self.bytes, reset_less=True)
        m.d.sync += bytes_taken.eq(step.bytes)
        m.d.comb += self.bytes.eq(Mux(under_way[0].valid, bytes_taken, 0))
        return under_way[-1]

    def _land(self, m, landing):
        """Merge the data that were read into the beat; queue the beat when it is complete."""
        m.submodules.queue = queue = RegisteredFifo(
            write_beat(self.config), QUEUE_DEPTH, reserved=True)
        held = Signal(write_beat(self.config))          # an incomplete beat
        beat = Signal(write_beat(self.config))
        mask = Cat(each.replicate(8) for each in landing.strobe)
        m.d.comb += [
            beat.data.eq(held.data | (Mux(landing.acc, self._from_acc(landing),
                                          self._from_out(m, landing)) & mask)),
            beat.strobe.eq(held.strobe | landing.strobe),
            queue.put.payload.eq(beat),
            queue.put.valid.eq(landing.valid & landing.ends_beat),
            self.beats.payload.eq(queue.take.payload),
            self.beats.valid.eq(queue.take.valid & ~self.stop),
            queue.take.ready.eq(self.beats.ready & ~self.stop),
        ]
        with m.If(landing.valid):
            m.d.sync += held.eq(Mux(landing.ends_beat, 0, beat))

    def _from_out(self, m, landing):
        tile, bus = 8 * self.config.tile_bytes(Buffer.OUT), self.config.bus_bits
        word = register(m, self.out.data, "out_data")       # to match the accumulator's latency
        if tile >= bus:
            return word.word_select(landing.part, bus)[:bus]
        alone = Signal(tile)
        m.d.comb += alone.eq(word.word_select(landing.word_lane, tile))
        return Mux(landing.alone, alone.replicate(bus // tile), word)

    def _from_acc(self, landing):
        tile, bus = 8 * self.config.tile_bytes(Buffer.ACC), self.config.bus_bits
        if tile >= bus:
            return self.acc.data.word_select(landing.part, bus)[:bus]
        return self.acc.data.replicate(bus // tile)
