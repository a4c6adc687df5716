"""LiteX's bridge over Ethernet (Etherbone) in a system: a host on the network has its bus.

        cable ── chip ── PHY ── MAC ── whole frames ── ARP, IP (ping), UDP ── Etherbone ── bus

Most of it is LiteEth's. It runs at the system's clock, 32 bits wide; only the PHY and what joins
bytes to words has the clock of the cable, 125 MHz, at which slow parts of a family do little. What
LiteEth lacks for a line that nobody watches is here: frames that are damaged are dropped, and so is
what Etherbone would never have done with.
"""

from types import SimpleNamespace

from liteeth.common import eth_phy_description, eth_udp_user_description
from liteeth.core import LiteEthUDPIPCore
from liteeth.frontend.etherbone import LiteEthEtherbone
from liteeth.phy.ecp5rgmii import LiteEthPHYRGMII
from litex.build.generic_platform import Pins, Subsignal
from litex.gen import LiteXModule
from litex.soc.interconnect import stream
from migen import Cat, ClockDomain, If, Memory, Mux, ResetSignal, Signal

from ..facts.ethernet import Ethernet

BITS = 32                       # of the way from the MAC to the bus
FRAME_WORDS = 1024              # that wait for the rest of their frame or for what is behind
WAITING_WORDS = 512             # of packets that wait for the answer to another
CABLE_NS = 8                    # a byte at a gigabit a second
# Words that one record has at most. Etherbone keeps all of it before it begins: a longer one would
# wait for room for ever. LiteEth allows no more, and 255 words to or from memory take one besides.
RECORD_WORDS = 256
HEADERS = 12                    # bytes before those: of the packet, and of its record
PROBE = 16                      # the bit of the first word that makes a packet a probe
SETTLED = 15                    # cycles that words take to get from one queue to the next, or less
SIMULATED = ("ethernet", 0, *(Subsignal(name, Pins(bits)) for name, bits in (
    ("clock", 1), ("source_valid", 1), ("source_data", 8), ("sink_valid", 1), ("sink_data", 8))))


class Network(LiteXModule):
    """From a PHY to `bus`, a master for the system's bus."""

    def __init__(self, phy, ethernet: Ethernet, hz: int):
        self.core = LiteEthUDPIPCore(
            phy, ethernet.mac_number, ethernet.ip, hz, dw=BITS, with_sys_datapath=True,
            with_ip_broadcast=False)            # else it takes what is meant for other addresses
        self.frames = Whole(eth_phy_description(BITS), FRAME_WORDS)
        self.core.mac.core.rx_datapath.pipeline.insert(-1, self.frames)
        port = self.core.udp.crossbar.get_port(ethernet.port, dw=BITS)
        self.port = AnsweringPort(port)
        self.etherbone = LiteEthEtherbone(_single_port_udp(self.port), ethernet.port,
                                          buffer_depth=RECORD_WORDS)
        self.bus = self.etherbone.wishbone.bus
        record, packet = self.etherbone.record, self.etherbone.packet
        self.comb += self.port.busy.eq(record.receiver.fifo.source.valid | packet.tx.sink.valid
                                       | record.sender.fifo.source.valid | packet.tx.source.valid)
        # LiteEth does not take the word between writes and reads of a record, and would read there.
        receiver = record.receiver
        receiver.fsm.act("RECEIVE_BASE_RET_ADDR", receiver.fifo.source.ready.eq(1))


class Whole(LiteXModule):
    """Gives frames or packets on once they are whole, and drops those with a wrong checksum:
    LiteEth marks them, and nobody in it looks. What comes is taken at once, whatever waits behind:
    what finds no room is dropped as well, not cut short.
    """

    def __init__(self, description, words: int):
        self.sink, self.source = (stream.Endpoint(description) for _ in range(2))
        memory = Memory(len(_bits(self.sink)), words)
        store, fetch = memory.get_port(write_capable=True), memory.get_port()
        self.specials += memory, store, fetch
        # One bit more than an address has: where the next word goes, where the first frame begins
        # that is not whole, and what is given on.
        writing, whole, reading, following = (Signal(max=2 * words) for _ in range(4))
        full, broken, level = Signal(), Signal(), Signal(max=2 * words)
        self.comb += [
            self.sink.ready.eq(1), level.eq(writing - reading), full.eq(level == words),
            store.adr.eq(writing), store.dat_w.eq(_bits(self.sink)),
            store.we.eq(self.sink.valid & ~full),
            following.eq(reading + (self.source.valid & self.source.ready)),
            fetch.adr.eq(following), _bits(self.source).eq(fetch.dat_r),
        ]
        self.sync += [
            reading.eq(following), self.source.valid.eq(following != whole),
            If(self.sink.valid,
               broken.eq(~self.sink.last & (broken | full)),
               If(~full, writing.eq(writing + 1)),
               If(self.sink.last,
                  If(broken | full | (self.sink.error != 0), writing.eq(whole)
                     ).Else(whole.eq(writing + 1)))),
        ]


def _bits(endpoint):
    """What is kept of a word."""
    return Cat(*endpoint.payload.flatten(), *endpoint.param.flatten(), endpoint.last)


class AnsweringPort(LiteXModule):
    """A port of UDP that asks Etherbone one question at a time, and sends its answer to the port
    that the question came from; LiteEth's go to the number of its own, which only one program of a
    host can have, and would mix hosts up. Questions wait here, out of the way of ARP: an answer may
    have to wait for that.

    Drops what Etherbone would never have done with: what is longer than it keeps, and what is so
    short that it would look for the rest in the next packet.

    busy    Etherbone has something to do
    """

    def __init__(self, port):
        self.busy = Signal()
        self.source, self.sink = (stream.Endpoint(eth_udp_user_description(BITS))
                                  for _ in range(2))
        asker, settling = Signal(16), Signal(max=SETTLED + 1, reset=SETTLED)
        first, dropping, wrong = Signal(reset=1), Signal(), Signal()
        drop, passing, hold = Signal(), Signal(), Signal()
        self.waiting = Whole(eth_udp_user_description(BITS), WAITING_WORDS)
        asked = self.waiting.source
        self.comb += [
            wrong.eq((asked.length < HEADERS) | (asked.length > HEADERS + 4 * RECORD_WORDS)
                     | (asked.data[PROBE] & (asked.length != HEADERS))),
            drop.eq(Mux(first, wrong, dropping)), hold.eq(first & (settling != 0)),
            port.source.connect(self.waiting.sink),
            asked.connect(self.source, omit={"valid", "ready"}),
            self.source.valid.eq(asked.valid & ~drop & ~hold),
            asked.ready.eq(drop | self.source.ready & ~hold),
            passing.eq(self.source.valid & self.source.ready),
            self.sink.connect(port.sink, omit={"dst_port"}), port.sink.dst_port.eq(asker),
        ]
        self.sync += [
            If(asked.valid & asked.ready, first.eq(asked.last), dropping.eq(drop)),
            If(passing, asker.eq(asked.src_port)),
            If(passing | self.busy, settling.eq(SETTLED)
               ).Elif(settling != 0, settling.eq(settling - 1)),
        ]


def _single_port_udp(port):
    """What Etherbone takes for all of UDP, to ask it for a port."""
    return SimpleNamespace(crossbar=SimpleNamespace(dw=BITS, get_port=lambda *_, **__: port))


def make_phy(ethernet: Ethernet, platform):
    """What drives the pins of the board's chip, which gives the clock of the cable."""
    clocks, pads = platform.request("ethernet_clocks"), platform.request("ethernet")
    platform.add_period_constraint(clocks.rx, CABLE_NS)
    return LiteEthPHYRGMII(clocks, pads, tx_delay=ethernet.tx_delay_ps * 1e-12,
                           rx_delay=ethernet.rx_delay_ps * 1e-12)


class SimulatedPhy(LiteXModule):
    """Bytes of frames, from preamble to checksum, at a clock from the test bench: a frame lasts as
    long as they are valid."""

    dw = 8

    def __init__(self, platform):
        platform.add_extension([SIMULATED])
        pads = platform.request("ethernet")
        self.cd_eth_rx, self.cd_eth_tx = ClockDomain("eth_rx"), ClockDomain("eth_tx")
        self.sink = stream.Endpoint(eth_phy_description(8))
        self.source = stream.Endpoint(eth_phy_description(8))
        self.comb += [
            *(domain.clk.eq(pads.clock) for domain in (self.cd_eth_rx, self.cd_eth_tx)),
            *(domain.rst.eq(ResetSignal("sys")) for domain in (self.cd_eth_rx, self.cd_eth_tx)),
            pads.source_valid.eq(self.sink.valid), pads.source_data.eq(self.sink.data),
            self.sink.ready.eq(1), self.source.last.eq(self.source.valid & ~pads.sink_valid),
        ]
        self.sync.eth_rx += [self.source.valid.eq(pads.sink_valid),
                             self.source.data.eq(pads.sink_data)]
