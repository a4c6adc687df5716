"""LOAD: copies boxes of tiles from DRAM into the scratchpads, inside a border of padding."""

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import Component, In, Out

from ..isa.config import Config
from ..isa.faults import Fault
from ..isa.instructions import Buffer, Load
from .interfaces import (
    FAULT,
    commands,
    events,
    fill_port,
    read_beat,
    read_request,
    segment_table,
    tokens,
)
from .layouts import COMMAND, unpack
from .load_steps import BUFFERS
from .load_writer import TARGETS, LoadWriter, fill_parts
from .rows import RowWalker, set_box

QUEUE_DEPTH = 4             # loads between the request side and the write side


class LoadEngine(Component):
    """Executes loads in order: one side requests rows from DRAM, the other writes what comes.

                  ┌─► RowWalker ──► requests (bursts)
        commands ─┤
                  └─► queue of 4 ─► LoadWriter ──► uop, inp, wgt, acc
                                        ▲
                                      beats

    Rate: a burst a cycle; a beat a cycle, or a tile of padding (see `LoadWriter`). The request
    side runs ahead of the write side by as many loads as the queue holds.

    Latency: a load that starts in cycle t requests its first burst in t + 2. A beat taken in
    cycle t is written in t + 1. The load ends, and posts, in the cycle of its last write.

    The next load starts when the walker holds no box and the queue has room, one cycle after the
    walker handed over its last row at the earliest, and its tokens are there. Padding that does
    not fit in a weight is an ILLEGAL fault. For other faults see `RowWalker` and `LoadWriter`; of
    two in one cycle, that of the older load is reported. From the cycle after a fault, and while
    `halt` is high, nothing starts, is requested, written or posted, and beats are swallowed.

    Members
    -------
    commands : In(commands)
    tokens : Out(tokens)
    events : Out(events)
        `bytes` counts the bytes of tiles that came from DRAM, not those beside them in a beat.
    halt : In(1)
    segments : In(segment_table)
    requests : Out(stream of read_request)
    beats : In(stream of read_beat)
    uop, inp, wgt, acc : Out(fill_port)
    """

    def __init__(self, config: Config):
        self.config = config
        self.targets = tuple(dict.fromkeys(TARGETS.values()))
        super().__init__({
            "commands": In(commands), "tokens": Out(tokens), "events": Out(events),
            "halt": In(1), "segments": In(segment_table(config)),
            "requests": Out(stream.Signature(read_request(config))),
            "beats": In(stream.Signature(read_beat(config))),
            **{target: Out(fill_port(config, fill_parts(config, target)))
               for target in self.targets},
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.walker = walker = RowWalker(self.config, BUFFERS)
        m.submodules.queue = queue = SyncFIFO(width=COMMAND.size, depth=QUEUE_DEPTH)
        m.submodules.writer = writer = LoadWriter(self.config)
        self.fault = Signal(FAULT)
        stop = Signal()
        m.d.comb += [
            stop.eq(self.halt | (self.fault.cause != Fault.NONE)),
            walker.stop.eq(stop), writer.stop.eq(stop),
        ]
        started = self._start(m, walker, queue, stop)
        self._connect(m, walker, queue, writer)
        self._report(m, writer)
        self._note_faults(m, started, walker, writer)
        return m

    def _start(self, m, walker, queue, stop):
        """Give the next load to both sides. Returns when."""
        command = self.commands.payload
        fields = unpack(Load, command.word)
        room = Signal()
        started = Signal()
        m.d.comb += [
            room.eq(walker.boxes.ready & queue.w_rdy & ~stop),
            self.commands.ready.eq(room & self.tokens.granted),
            started.eq(self.commands.valid & self.commands.ready),
            walker.boxes.valid.eq(started), queue.w_en.eq(started), queue.w_data.eq(command),
        ]
        with m.If(self.commands.valid):
            m.d.comb += self.tokens.wait.eq(fields.wait)
            with m.If(room):
                m.d.comb += self.events.wait.eq(self.tokens.missing)
        set_box(m, walker.boxes.payload, fields, command, self.segments[fields.segment[:3]])
        m.d.comb += [
            self.tokens.take.eq(started),
            self.events.start.eq(started), self.events.start_position.eq(command.position),
        ]
        return started

    def _connect(self, m, walker, queue, writer):
        bursts = walker.bursts
        m.d.comb += [
            self.requests.payload.address.eq(bursts.payload.address),
            self.requests.payload.beats.eq(bursts.payload.beats),
            self.requests.valid.eq(bursts.valid & ~bursts.payload.empty),
            bursts.ready.eq(self.requests.ready | bursts.payload.empty),
            writer.loads.payload.eq(queue.r_data),
            writer.loads.valid.eq(queue.r_rdy),
            queue.r_en.eq(writer.loads.ready),
        ]
        wiring.connect(m, wiring.flipped(self.beats), writer.beats)
        for target in self.targets:
            wiring.connect(m, getattr(writer, target), wiring.flipped(getattr(self, target)))

    def _report(self, m, writer):
        m.d.comb += [
            self.tokens.post.eq(writer.end_post),
            self.events.busy.eq(writer.busy),
            self.events.wait_memory.eq(writer.wait_memory),
            self.events.bytes.eq(writer.bytes),
            self.events.end.eq(writer.end), self.events.end_position.eq(writer.end_position),
            self.events.fault.eq(self.fault),
        ]

    def _note_faults(self, m, started, walker, writer):
        """Keep the first fault. The write side works on older loads than the walker."""
        with m.If(writer.fault.cause != Fault.NONE):
            m.d.sync += self.fault.eq(writer.fault)
        with m.Elif(walker.fault.cause != Fault.NONE):
            m.d.sync += self.fault.eq(walker.fault)
        with m.Elif(started & self._bad_padding()):
            m.d.sync += [self.fault.cause.eq(Fault.ILLEGAL),
                         self.fault.position.eq(self.commands.payload.position)]

    def _bad_padding(self):
        """Whether the padding of a weight tile does not fit in a weight."""
        fields = unpack(Load, self.commands.payload.word)
        bits = self.config.wgt_bits
        high = fields.pad_value[bits - 1:]      # all equal to the sign where the value fits
        fits = (high == 0) | high.all() if bits < len(fields.pad_value) else Const(1)
        return (fields.buffer == Buffer.WGT) & ~fits
