"""The writer: turns bursts and beats of STORE into AXI4 writes and returns the responses."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import Component, In, Out

from ...isa.config import Config
from ..fifo import RegisteredFifo
from ..interfaces import BURST_BEATS_BITS, burst_request, write_beat
from ..logic import step_by_one
from .axi import is_error, set_constants, write_channels


class Writer(Component):
    """Writes for STORE over the write channels of an AXI4 master.

    Rate: a burst and a beat a cycle. Latency: a request taken in cycle t shows its address on the
    bus in t + 1 and may have its first beat taken then; a beat taken in cycle t is on the bus in t
    + 1; a response in cycle t is offered in t + 1. Addresses and beats on the bus come from
    registers.

    A request is taken when the address register is free (empty, or taken by the bus in this cycle)
    and fewer than `writes_in_flight` bursts are in flight. A beat is taken when the beat register
    is free and its burst has been taken; it is on the bus no earlier than its address, but does not
    wait until the bus has accepted that. All bursts have the same id, so responses come in order,
    and memory keeps the order of writes to the same address.

    Members
    -------
    requests : In(stream of burst_request)
        Bursts that STORE writes. They must not cross 4 KiB.
    beats : In(stream of write_beat)
        The beats of all bursts, in order. Not taken before their burst is.
    answers : Out(stream of 1 bit)
        The responses, one for each burst in order: whether it failed. One that is not taken stays.
    bus : Out(write_channels)
        The write half of an AXI4 master. Every burst has id 0.
    halt : In(1)
        Take no requests and no beats. Incomplete bursts are completed by beats without strobes,
        which write nothing.
    quiet : Out(1)
        Every burst has got its response.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__({
            "requests": In(stream.Signature(burst_request(config))),
            "beats": In(stream.Signature(write_beat(config))),
            "answers": Out(stream.Signature(1)),
            "bus": Out(write_channels(config)),
            "halt": In(1),
            "quiet": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        # Bursts whose beats have not all been taken: the number of beats of each, less one. All are
        # in flight, which bounds their number.
        m.submodules.lengths = lengths = RegisteredFifo(
            BURST_BEATS_BITS, max(2, self.config.writes_in_flight), reserved=True)
        set_constants(m, self.bus, "aw", self.config)
        self.in_flight = Signal(range(self.config.writes_in_flight + 1))
        self.may_fly = Signal(init=1)               # fewer than the limit
        self._take_requests(m, lengths)
        self._take_beats(m, lengths)
        self._pass_answers(m)
        return m

    def _take_requests(self, m, lengths):
        bus, request = self.bus, self.requests.payload
        m.d.comb += [
            self.requests.ready.eq((~bus.awvalid | bus.awready) & ~self.halt
                                   & self.may_fly),
            lengths.put.valid.eq(self.requests.valid & self.requests.ready),
            lengths.put.payload.eq(request.beats),
        ]
        with m.If(bus.awready):
            m.d.sync += bus.awvalid.eq(0)
        with m.If(lengths.put.valid):
            m.d.sync += bus.awvalid.eq(1)
        with m.If(~bus.awvalid | bus.awready):          # whether or not there is a request
            m.d.sync += [bus.awaddr.eq(request.address), bus.awlen.eq(request.beats)]

    def _take_beats(self, m, lengths):
        bus, beat = self.bus, self.beats.payload
        sent = Signal(BURST_BEATS_BITS)         # beats of the oldest burst in `lengths`
        wanted = Signal()
        taken = Signal()
        last = Signal()                         # of the burst, if any; one cycle ahead
        m.d.comb += [
            wanted.eq(lengths.take.valid & (~bus.wvalid | bus.wready)),
            self.beats.ready.eq(wanted & ~self.halt),
            taken.eq(wanted & (self.beats.valid | self.halt)),
            lengths.take.ready.eq(taken & last),
        ]
        with m.If(bus.wready):
            m.d.sync += bus.wvalid.eq(0)
        with m.If(taken):
            m.d.sync += [bus.wvalid.eq(1), sent.eq(Mux(last, 0, sent + 1)),
                         last.eq(sent + 1 == lengths.take.payload)]
        with m.If(lengths.take.ready | ~lengths.take.valid):
            m.d.sync += last.eq(lengths.coming == 0)
        with m.If(~bus.wvalid | bus.wready):            # whether or not there is a beat
            m.d.sync += [
                bus.wdata.eq(beat.data),
                bus.wstrb.eq(Mux(self.halt, 0, beat.strobe)),
                bus.wlast.eq(last),
            ]

    def _pass_answers(self, m):
        bus, answers = self.bus, self.answers
        begun, ended = self.requests.valid & self.requests.ready, bus.bvalid & bus.bready
        m.d.comb += [
            bus.bready.eq(~answers.valid | answers.ready),
            self.quiet.eq((self.in_flight == 0) & ~answers.valid),
        ]
        with m.If(begun ^ ended):
            m.d.sync += [
                self.in_flight.eq(step_by_one(self.in_flight, ~ended)),
                self.may_fly.eq(ended | (self.in_flight != self.config.writes_in_flight - 1))]
        with m.If(bus.bready):
            m.d.sync += [answers.valid.eq(bus.bvalid), answers.payload.eq(is_error(bus.bresp))]
