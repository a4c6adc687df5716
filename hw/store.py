"""STORE: copies boxes of tiles from the scratchpads to DRAM."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import Component, In, Out

from ..isa.config import Config
from ..isa.faults import Fault
from ..isa.instructions import Buffer, Engine, Store
from .interfaces import (
    FAULT,
    commands,
    events,
    granted_read_port,
    read_port,
    read_request,
    segment_table,
    tokens,
    write_beat,
)
from .layouts import COMMAND, POSITION_BITS, unpack
from .rows import RowWalker, set_box
from .store_reader import StoreReader, word_bits
from .store_steps import BUFFERS

QUEUE_DEPTH = 4             # stores between the request side and the read side

# A burst whose answer is awaited, or a store without bursts.
AWAITED = data.StructLayout({"last": 1, "empty": 1, "post": len(Engine),
                             "position": POSITION_BITS})


class StoreEngine(Component):
    """Executes stores in order: one side requests bursts, the other sends their beats.

                  ┌─► RowWalker ──► requests (bursts) ─► awaited ◄─ answers
        commands ─┤
                  └─► queue of 4 ─► StoreReader ──► beats
                                        ▲
                                     out, acc

    Rate: a burst a cycle; a beat a cycle (see `StoreReader`). Latency: a store that starts in
    cycle t requests its first burst in t + 2 and takes its first step in t + 2, so that its first
    beat is offered in t + 5. A store ends, and posts, in the cycle in which the answer to its
    last burst arrives; one without bursts as soon as it is the oldest.

    The next store starts when the walker holds no box and the queue has room, one cycle after the
    walker handed over its last row at the earliest, and its tokens are there. A burst waits while
    the list of those awaited is full (`list_full`).

    A segment that is not writable counts as a window of no bytes. For faults see `RowWalker` and
    `StoreReader`; an answer with an error is a WRITE_ERROR. Of two in one cycle, that of the older
    store is reported. From the cycle after a fault, and while `halt` is high, nothing starts, is
    requested, offered or posted; the writer completes bursts that lack beats without writing.

    Members
    -------
    commands : In(commands)
    tokens : Out(tokens)
    events : Out(events)
        `bytes` counts those with strobes. `wait_memory`: a beat is not taken, or all have been and
        answers are awaited.
    halt : In(1)
    segments : In(segment_table)
    requests : Out(stream of read_request)
    beats : Out(stream of write_beat)
    answers : In(stream of 1 bit)
        To each burst, in order: whether it met an error.
    out : Out(read_port), of whole words
    acc : Out(granted_read_port)
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__({
            "commands": In(commands), "tokens": Out(tokens), "events": Out(events),
            "halt": In(1), "segments": In(segment_table(config)),
            "requests": Out(stream.Signature(read_request(config))),
            "beats": Out(stream.Signature(write_beat(config))),
            "answers": In(stream.Signature(1)),
            "out": Out(read_port(word_bits(config))),
            "acc": Out(granted_read_port(8 * config.tile_bytes(Buffer.ACC))),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.walker = walker = RowWalker(self.config, BUFFERS)
        m.submodules.queue = queue = SyncFIFO(width=COMMAND.size, depth=QUEUE_DEPTH)
        m.submodules.reader = reader = StoreReader(self.config)
        # Two more than bursts in flight: an answer is on its way through the writer for a cycle,
        # and a store without bursts may stand between.
        m.submodules.awaited = awaited = SyncFIFO(width=AWAITED.size,
                                                  depth=self.config.writes_in_flight + 2)
        self.fault = Signal(FAULT)
        self.stop = Signal()
        self.answered_badly = Signal()
        m.d.comb += [
            self.stop.eq(self.halt | (self.fault.cause != Fault.NONE)),
            walker.stop.eq(self.stop), reader.stop.eq(self.stop),
        ]
        self._start(m, walker, queue)
        self._connect(m, walker, queue, reader, awaited)
        oldest, ended = self._complete(m, awaited)
        self._report(m, walker, reader, oldest, ended, awaited)
        return m

    def _start(self, m, walker, queue):
        """Give the next store to both sides."""
        command, box = self.commands.payload, walker.boxes.payload
        fields = unpack(Store, command.word)
        segment = self.segments[fields.segment[:3]]
        room = Signal()
        started = Signal()
        m.d.comb += [
            room.eq(walker.boxes.ready & queue.w_rdy & ~self.stop),
            self.commands.ready.eq(room & self.tokens.granted),
            started.eq(self.commands.valid & self.commands.ready),
            walker.boxes.valid.eq(started), queue.w_en.eq(started), queue.w_data.eq(command),
        ]
        with m.If(self.commands.valid):
            m.d.comb += self.tokens.wait.eq(fields.wait)
            with m.If(room):
                m.d.comb += self.events.wait.eq(self.tokens.missing)
        set_box(m, box, fields, command, segment)
        m.d.comb += [
            box.size.eq(Mux(segment.writable, segment.size, 0)),
            self.tokens.take.eq(started),
            self.events.start.eq(started), self.events.start_position.eq(command.position),
        ]

    def _connect(self, m, walker, queue, reader, awaited):
        bursts = walker.bursts
        list_full = Signal()
        added = data.View(AWAITED, awaited.w_data)
        m.d.comb += [
            list_full.eq(~awaited.w_rdy),
            self.requests.payload.address.eq(bursts.payload.address),
            self.requests.payload.beats.eq(bursts.payload.beats),
            self.requests.valid.eq(bursts.valid & ~bursts.payload.empty & ~list_full),
            bursts.ready.eq((self.requests.ready | bursts.payload.empty) & ~list_full),
            awaited.w_en.eq(bursts.valid & bursts.ready),
            *(added[name].eq(bursts.payload[name]) for name in ("last", "empty", "post",
                                                               "position")),
            reader.stores.payload.eq(queue.r_data),
            reader.stores.valid.eq(queue.r_rdy),
            queue.r_en.eq(reader.stores.ready),
        ]
        wiring.connect(m, reader.beats, wiring.flipped(self.beats))
        wiring.connect(m, reader.out, wiring.flipped(self.out))
        wiring.connect(m, reader.acc, wiring.flipped(self.acc))

    def _complete(self, m, awaited):
        """Cross off the oldest entry of the list. Returns it, and whether it ends its store."""
        oldest = data.View(AWAITED, awaited.r_data)
        over = Signal()
        ended = Signal()
        m.d.comb += [
            over.eq(awaited.r_rdy & (oldest.empty | self.answers.valid)),
            awaited.r_en.eq(over),
            self.answers.ready.eq(awaited.r_rdy & ~oldest.empty),
            self.answered_badly.eq(self.answers.valid & self.answers.ready
                                   & self.answers.payload),
            ended.eq(over & oldest.last & ~self.answered_badly & ~self.stop),
        ]
        return oldest, ended

    def _report(self, m, walker, reader, oldest, ended, awaited):
        m.d.comb += [
            self.tokens.post.eq(Mux(ended, oldest.post, 0)),
            self.events.busy.eq(walker.busy | awaited.r_rdy),
            self.events.wait_memory.eq((self.beats.valid & ~self.beats.ready)
                                       | (awaited.r_rdy & ~reader.busy)),
            self.events.bytes.eq(reader.bytes),
            self.events.end.eq(ended), self.events.end_position.eq(oldest.position),
            self.events.fault.eq(self.fault),
        ]
        # The first fault stays. Answers are of older stores than reads, reads than rows.
        with m.If(self.answered_badly & ~self.stop):
            m.d.sync += [self.fault.cause.eq(Fault.WRITE_ERROR),
                         self.fault.position.eq(oldest.position)]
        with m.Elif(reader.fault.cause != Fault.NONE):
            m.d.sync += self.fault.eq(reader.fault)
        with m.Elif(walker.fault.cause != Fault.NONE):
            m.d.sync += self.fault.eq(walker.fault)
