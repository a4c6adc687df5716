"""STORE: copies boxes of tiles from the scratchpads to DRAM."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...isa.config import Config
from ...isa.faults import Fault
from ...isa.instructions import Engine, Store
from ..accumulator import granted_read_port
from ..fifo import RegisteredFifo
from ..interfaces import FAULT, read_port, write_beat
from ..layouts import POSITION_BITS, instructions_of
from ..transfer.transfer import QUEUE_DEPTH, TransferEngine
from .store_reader import StoreReader, word_bits

assert instructions_of(Engine.STORE) == (Store,), "another instruction needs hardware here"

# A burst whose response is pending, or a store without bursts.
AWAITED = data.StructLayout({"last": 1, "empty": 1, "post": len(Engine),
                             "position": POSITION_BITS})


class StoreEngine(TransferEngine):
    """Executes stores in order: one side requests bursts, the other sends their beats.

                  ┌─► BurstWalker ► requests (bursts) ─► awaited ◄─ answers
        commands ─┤
                  └─► queue of 4 ─► StoreReader ──► beats
                                        ▲
                                     out, acc

    Rate: a burst a cycle, and a beat a cycle (see `StoreReader`). Latency: a store that starts in
    cycle t requests its first burst in t + 3 and takes its first step in t + 3, so that its first
    beat is offered in t + 6. A store ends, and posts, in the cycle in which the response to its
    last burst arrives; one without bursts as soon as it is the oldest. For when a store can start
    see `TransferEngine`. A burst waits while the list of pending responses is full (`list_full`).

    A segment that is not writable is treated as an empty window. For faults see `BurstWalker` and
    `StoreReader`; an error response is a WRITE_ERROR. Of two in one cycle, that of the older store
    is reported. From the cycle after a fault or `halts` on, nothing starts, is requested, offered
    or posted; the writer completes open bursts without writing.

    Members
    -------
    commands : In(stream of COMMAND)
        Stores, in order. Each is taken in the cycle of its start.
    tokens : Out(tokens)
        Taken at the start of a store, posted at its end.
    events : Out(events)
        `bytes` counts those with strobes; `wait_memory` the cycles in which a beat is not taken, or
        all have been and responses are pending.
    halts : In(1)
        Start, request, offer and post nothing from the next cycle on.
    window : Out(segment_lookup)
        The window of DRAM of the next instruction.
    requests : Out(stream of burst_request)
        Bursts in the order of the rows. One that is not taken stalls the request side only.
    beats : Out(stream of write_beat)
        The beats of all bursts, in the order of the requests, whether or not these were taken.
    answers : In(stream of 1 bit)
        Responses, one for each burst in order: whether it failed. Taken at once, unless a store
        without bursts must complete first.
    out : Out(read_port)
        From the result scratchpad, whole words.
    acc : Out(granted_read_port)
        From the accumulator. A read that is not granted is requested again.
    """

    def __init__(self, config: Config):
        super().__init__(config, Store, {
            "beats": Out(stream.Signature(write_beat(config))),
            "answers": In(stream.Signature(1)),
            "out": Out(read_port(word_bits(config))),
            "acc": Out(granted_read_port(config)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.reader = reader = StoreReader(self.config)
        # Two more than bursts in flight: a response takes a cycle through the writer, and a store
        # without bursts may be in between.
        m.submodules.awaited = awaited = RegisteredFifo(AWAITED, self.config.writes_in_flight + 2)
        queue = RegisteredFifo(reader.steps.prepared_layout, QUEUE_DEPTH)
        walker, bursts, _ = self._join(m, reader, queue)
        self._await(m, bursts, awaited)
        wiring.connect(m, reader.beats, wiring.flipped(self.beats))
        wiring.connect(m, reader.out, wiring.flipped(self.out))
        wiring.connect(m, reader.acc, wiring.flipped(self.acc))
        bad_answer = self._complete(m, awaited)
        m.d.comb += [
            self.events.busy.eq(walker.busy | bursts.valid | awaited.take.valid),
            self.events.wait_memory.eq((self.beats.valid & ~self.beats.ready)
                                       | (awaited.take.valid & ~reader.busy)),
            self.events.bytes.eq(reader.bytes),
        ]
        # Responses belong to older stores than reads do, and reads to older ones than the walker.
        self._keep_first_fault(m, bad_answer, reader.fault, walker.fault)
        return m

    def _window_bytes(self, segment):
        return Mux(segment.writable, segment.size, 0)

    def _await(self, m, bursts, awaited):
        """Request bursts, and add each to the list of pending responses."""
        list_full = Signal()
        self._request(m, bursts, empty=bursts.payload.empty, may_go=~list_full)
        m.d.comb += [
            list_full.eq(~awaited.put.ready),
            awaited.put.valid.eq(bursts.valid & bursts.ready),
            *(awaited.put.payload[name].eq(bursts.payload[name]) for name in AWAITED.members),
        ]

    def _complete(self, m, awaited):
        """Remove the oldest entry from the list, which may end its store. Returns its fault."""
        oldest, waiting = awaited.take.payload, awaited.take.valid
        over, answered_badly, ended = (
            Signal(name=name) for name in ("over", "answered_badly", "ended"))
        bad_answer = Signal(FAULT)
        m.d.comb += [
            over.eq(waiting & (oldest.empty | self.answers.valid)),
            awaited.take.ready.eq(over),
            self.answers.ready.eq(waiting & ~oldest.empty),
            answered_badly.eq(self.answers.valid & self.answers.ready & self.answers.payload),
            ended.eq(waiting & oldest.last & ~self.stop
                     & (oldest.empty | (self.answers.valid & ~self.answers.payload))),
            self.tokens.post.eq(Mux(ended, oldest.post, 0)),
            self.events.end.eq(ended), self.events.end_position.eq(oldest.position),
            bad_answer.cause.eq(Mux(answered_badly & ~self.stop, Fault.WRITE_ERROR, Fault.NONE)),
            bad_answer.position.eq(oldest.position),
        ]
        return bad_answer
