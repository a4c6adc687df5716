"""LOAD: copies boxes of tiles from DRAM into the scratchpads, inside a border of padding."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...isa.config import Config
from ...isa.faults import Fault
from ...isa.instructions import Buffer, Engine, Load
from ..fifo import StagedFifo
from ..interfaces import FAULT, read_beat
from ..layouts import instructions_of, unpack
from ..transfer.transfer import QUEUE_DEPTH, TransferEngine
from .load_writer import PORTS, LoadWriter, fill_port_of

assert instructions_of(Engine.LOAD) == (Load,), "another instruction needs hardware here"


class LoadEngine(TransferEngine):
    """Executes loads in order: one side requests rows from DRAM, the other writes the data that
    arrive.

                  ┌─► BurstWalker ► two places ──► requests (bursts)
        commands ─┤
                  └─► queue of 4 ─► LoadWriter ──► uop, inp, wgt, acc
                                        ▲
                                      beats

    Rate: a burst a cycle, and a beat or a tile of padding a cycle (see `LoadWriter`). The request
    side runs ahead of the write side by up to as many loads as the queue holds.

    Latency: a load that starts in cycle t requests its first burst in t + 3. A beat taken in
    cycle t is written in t + 1. The load ends, and posts, in the cycle after its last write. For
    when a load can start see `TransferEngine`.

    Padding that does not fit in a weight is an ILLEGAL fault. For other faults see `BurstWalker`
    and `LoadWriter`; of two in one cycle, that of the older load is reported. From the cycle after
    a fault or `halts` on, nothing starts, is requested or written, nothing is posted except for a
    write of the previous cycle, and beats are discarded.

    Members
    -------
    commands : In(stream of COMMAND)
        Loads, in order. Each is taken in the cycle of its start.
    tokens : Out(tokens)
        Taken at the start of a load, posted at its end.
    events : Out(events)
        `bytes` counts the bytes of tiles that came from DRAM, not those beside them in a beat;
        `wait_memory` the cycles in which a write waits for its beat.
    halts : In(1)
        Start, request, write and post nothing from the next cycle on.
    window : Out(segment_lookup)
        The window of DRAM of the next instruction.
    requests : Out(stream of burst_request)
        Bursts in the order of the rows. One that is not taken stalls the request side only.
    beats : In(stream of read_beat)
        The data, in the order of the requests. A beat that the write side cannot use yet waits.
    uop, inp, wgt, acc : Out(fill_port)
        To the scratchpads. A write that is not `ready` waits, and stalls all later ones.
    """

    def __init__(self, config: Config):
        super().__init__(config, Load, {
            "beats": In(stream.Signature(read_beat(config))),
            **{target: Out(fill_port_of(config, target)) for target in PORTS},
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.writer = writer = LoadWriter(self.config)
        # Reading the queue's memory takes long, so what steps need is computed ahead of a register.
        queue = StagedFifo(writer.steps.prepared_layout, QUEUE_DEPTH)
        walker, bursts, started = self._join(m, writer, queue)
        self._request(m, bursts, empty=Const(0))
        wiring.connect(m, wiring.flipped(self.beats), writer.beats)
        for target in PORTS:
            wiring.connect(m, getattr(writer, target), wiring.flipped(getattr(self, target)))
        self._report(m, writer, ~queue.empty)
        # Loads on the write side are older than those of the walker, and these older than the next.
        self._keep_first_fault(m, writer.fault, walker.fault, self._bad_padding(m, started))
        return m

    def _place(self, m, cut, places):
        """Drop empty bursts, which nothing waits for."""
        m.d.comb += [places.payload.eq(cut.payload), cut.ready.eq(places.ready),
                     places.valid.eq(cut.valid & ~cut.payload.empty)]

    def _report(self, m, writer, queued):
        m.d.comb += [
            self.tokens.post.eq(writer.end_post),
            self.events.busy.eq(writer.busy | queued),
            self.events.wait_memory.eq(writer.wait_memory),
            self.events.bytes.eq(writer.bytes),
            self.events.end.eq(writer.end), self.events.end_position.eq(writer.end_position),
        ]

    def _bad_padding(self, m, started):
        """The fault of a load whose padding does not fit in a weight."""
        command, bits = self.commands.payload, self.config.wgt_bits
        fields = unpack(Load, command.word)
        high = fields.pad_value[bits - 1:]      # all equal to the sign where the value fits
        fits = (high == 0) | high.all() if bits < len(fields.pad_value) else Const(1)
        bad_padding = Signal(FAULT)
        m.d.comb += [
            bad_padding.cause.eq(Mux(started & (fields.buffer == Buffer.WGT) & ~fits,
                                     Fault.ILLEGAL, Fault.NONE)),
            bad_padding.position.eq(command.position),
        ]
        return bad_padding
