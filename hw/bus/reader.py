"""The reader: turns requests of its clients into AXI4 bursts and returns the beats."""

from enum import IntEnum

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import Component, In, Out

from ...isa.config import Config
from ..fifo import RegisterSlice
from ..interfaces import burst_request, read_beat
from ..logic import step_by_one
from .arbiter import RoundRobin
from .axi import ID_BITS, is_error, read_channels, set_constants


class Client(IntEnum):
    """A unit that reads. The number is the AXI id of the client's bursts."""

    FETCH = 0
    LOAD = 1


class Reader(Component):
    """Reads for FETCH and LOAD over the read channels of an AXI4 master.

    Rate: a burst and a beat a cycle. Latency: the address of a request taken in cycle t is on the
    bus in t + 1, unless an earlier one waits there; a beat taken from the bus in cycle t is offered
    to its client in t + 1. Every output to the bus comes from a register.

    Clients are served round robin. A request is taken when fewer than two addresses wait for the
    bus and fewer than `reads_in_flight` bursts are outstanding; a burst is outstanding from that
    cycle until its last beat has arrived. A client gets its beats in the order of its requests;
    between clients, memory may respond in any order. Beats wait in one queue of two: a client that
    does not take its beat stalls the other one, and the bus.

    Members
    -------
    requests : In(array of streams of burst_request)
        Bursts that each Client requests. They must not cross 4 KiB.
    beats : Out(array of streams of read_beat)
        The data for each Client, in the order of its requests. A beat that is not taken stays and
        blocks all later ones, whichever client they are for.
    bus : Out(read_channels)
        The read half of an AXI4 master. The id of a burst is the number of its Client.
    halt : In(1)
        Take no requests. Outstanding bursts continue, and their beats must be taken.
    quiet : Out(1)
        No burst is outstanding and no beat is waiting.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__({
            "requests": In(stream.Signature(burst_request(config))).array(len(Client)),
            "beats": Out(stream.Signature(read_beat(config))).array(len(Client)),
            "bus": Out(read_channels(config)),
            "halt": In(1),
            "quiet": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        set_constants(m, self.bus, "ar", self.config)
        self.in_flight = Signal(range(self.config.reads_in_flight + 1))
        self.may_fly = Signal(init=1)               # fewer than the limit
        taken = self._take_requests(m)
        ended = self._deliver_beats(m)
        with m.If(taken ^ ended):
            m.d.sync += [
                self.in_flight.eq(step_by_one(self.in_flight, ~ended)),
                self.may_fly.eq(ended | (self.in_flight != self.config.reads_in_flight - 1))]
        return m

    def _take_requests(self, m):
        """Queue the next request for the bus. Returns whether there was one."""
        m.submodules.arbiter = arbiter = RoundRobin(len(Client))
        m.submodules.addresses = addresses = RegisterSlice(data.StructLayout({
            "client": ID_BITS, "request": burst_request(self.config)}))
        bus, first, last = self.bus, addresses.take.payload, addresses.put.payload
        may_take = Signal()
        taken = Signal()
        m.d.comb += [
            may_take.eq(addresses.put.ready & self.may_fly & ~self.halt),
            arbiter.requests.eq(Cat(requests.valid for requests in self.requests)),
            taken.eq(may_take & (arbiter.requests != 0)),
            arbiter.served.eq(taken),
            addresses.put.valid.eq(taken), last.client.eq(arbiter.grant),
            bus.arvalid.eq(addresses.take.valid), addresses.take.ready.eq(bus.arready),
            bus.arid.eq(first.client), bus.araddr.eq(first.request.address),
            bus.arlen.eq(first.request.beats),
        ]
        for client, requests in enumerate(self.requests):
            m.d.comb += requests.ready.eq(may_take & (arbiter.grant == client))
            with m.If(arbiter.grant == client):
                m.d.comb += last.request.eq(requests.payload)
        return taken

    def _deliver_beats(self, m):
        """Queue incoming beats. Returns whether a burst has ended."""
        bus = self.bus
        arrived = data.StructLayout({"beat": read_beat(self.config), "client": ID_BITS})
        m.submodules.queue = queue = RegisterSlice(arrived)
        last, first = queue.put.payload, queue.take.payload
        m.d.comb += [
            bus.rready.eq(queue.put.ready),
            queue.put.valid.eq(bus.rvalid),
            last.beat.data.eq(bus.rdata),
            last.beat.error.eq(is_error(bus.rresp)),
            last.client.eq(bus.rid),
            self.quiet.eq((self.in_flight == 0) & ~queue.take.valid),
        ]
        for client, beats in enumerate(self.beats):
            m.d.comb += [
                beats.valid.eq(queue.take.valid & (first.client == client)),
                beats.payload.eq(first.beat),
            ]
            with m.If(first.client == client):
                m.d.comb += queue.take.ready.eq(beats.ready)
        return bus.rvalid & bus.rready & bus.rlast
