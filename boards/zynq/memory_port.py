"""The accelerator's way to memory: its AXI4 as AXI3, for a port of the processing system."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out, connect

from ...hw.bus.axi import read_channels, write_channels
from ...hw.fifo import RegisteredFifo
from ...isa.config import Config
from ..facts.zynq7000 import MEMORY_BITS
from .axi3 import LENGTH_BITS, OKAY, hp_port
from .burst_splitter import BURST, BurstSplitter

PIECES_IN_FLIGHT = 16       # of reads, and as many of writes; the port itself takes 8 or fewer


class MemoryPort(Component):
    """Passes on AXI4 bursts as AXI3 bursts of up to 16 beats, and joins what comes back.

    Every piece of every burst has id 0, so that memory answers all of them in order, as the
    simulators' memory does; the ids of the accelerator are put back from a queue. Writes of one
    id also keep WID trivially right and rule out interleaving.

    Rate: a piece and a beat a cycle. Latency: an address is on the port two cycles after it was
    taken, a beat of writes one cycle; beats of reads and answers pass through at once. Addresses
    and beats of writes come from registers, and what the port answers to them goes no further
    than this unit: the port is far away from the rest.

    Members
    -------
    reads : In(read_channels)
        AXI4, from the accelerator: incrementing bursts of whole beats inside 4 KiB.
    writes : In(write_channels)
        As before. Of the answers to the pieces of a burst, the worst one counts.
    port : Out(hp_port)
        AXI3, to S_AXI_HP0. A beat of writes may be offered in the cycle after its address was
        first offered, taken or not, as the standard demands.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__({"reads": In(read_channels(config)), "writes": In(write_channels(config)),
                          "port": Out(hp_port)})

    def elaborate(self, platform):
        m = Module()
        self._read(m)
        self._write(m)
        return m

    def _cut(self, m, lead, bus):
        """Take bursts from AR or AW. Returns the stream of their pieces."""
        name = f"{lead}_bursts"
        m.submodules[name] = bursts = RegisteredFifo(BURST, 2)
        m.submodules[f"{lead}_pieces"] = cut = BurstSplitter()
        connect(m, bursts.take, cut.bursts)
        m.d.comb += [
            bursts.put.valid.eq(getattr(bus, f"{lead}valid")),
            getattr(bus, f"{lead}ready").eq(bursts.put.ready),
            bursts.put.payload.address.eq(getattr(bus, f"{lead}addr")),
            bursts.put.payload.beats.eq(getattr(bus, f"{lead}len")),
            bursts.put.payload.id.eq(getattr(bus, f"{lead}id")),
        ]
        for each in ("size", "burst", "cache", "prot", "qos"):      # the same in every burst
            m.d.comb += getattr(self.port, f"{lead}{each}").eq(getattr(bus, f"{lead}{each}"))
        return cut.pieces

    def _offer(self, m, lead, pieces, room):
        """Show pieces on the port as long as there is room to note them. Returns when one is."""
        valid, ready = getattr(self.port, f"{lead}valid"), getattr(self.port, f"{lead}ready")
        offered = Signal(name=f"{lead}_offered")
        m.d.comb += [
            pieces.ready.eq((~valid | ready) & room),
            offered.eq(pieces.valid & pieces.ready),
        ]
        with m.If(ready):
            m.d.sync += valid.eq(0)
        with m.If(offered):
            m.d.sync += [valid.eq(1),
                         getattr(self.port, f"{lead}addr").eq(pieces.payload.address),
                         getattr(self.port, f"{lead}len").eq(pieces.payload.beats)]
        return offered

    def _read(self, m):
        bus, port = self.reads, self.port
        pieces = self._cut(m, "ar", bus)
        end = data.StructLayout({"id": 1, "final": 1})
        m.submodules.reads_noted = noted = RegisteredFifo(end, PIECES_IN_FLIGHT)
        offered = self._offer(m, "ar", pieces, noted.put.ready)
        m.d.comb += [
            noted.put.valid.eq(offered),
            noted.put.payload.id.eq(pieces.payload.id),
            noted.put.payload.final.eq(pieces.payload.final),
            bus.rvalid.eq(port.rvalid),
            port.rready.eq(bus.rready),
            bus.rdata.eq(port.rdata),
            bus.rresp.eq(port.rresp),
            bus.rid.eq(noted.take.payload.id),
            bus.rlast.eq(port.rlast & noted.take.payload.final),
            noted.take.ready.eq(port.rvalid & port.rready & port.rlast),
        ]

    def _write(self, m):
        pieces = self._cut(m, "aw", self.writes)
        m.submodules.lengths = lengths = RegisteredFifo(LENGTH_BITS, PIECES_IN_FLIGHT)
        m.submodules.writes_noted = noted = RegisteredFifo(1, PIECES_IN_FLIGHT)
        offered = self._offer(m, "aw", pieces, lengths.put.ready & noted.put.ready)
        m.d.comb += [
            lengths.put.valid.eq(offered), lengths.put.payload.eq(pieces.payload.beats),
            noted.put.valid.eq(offered), noted.put.payload.eq(pieces.payload.final),
        ]
        self._pass_beats(m, lengths.take)
        self._join_answers(m, noted.take)

    def _pass_beats(self, m, lengths):
        """Beats of writes, each piece with a last one of its own."""
        bus, port = self.writes, self.port
        beat = data.StructLayout({"data": MEMORY_BITS, "strobes": MEMORY_BITS // 8})
        m.submodules.beats = beats = RegisteredFifo(beat, 2)
        sent = Signal(LENGTH_BITS)
        m.d.comb += [
            beats.put.valid.eq(bus.wvalid),
            bus.wready.eq(beats.put.ready),
            beats.put.payload.data.eq(bus.wdata),
            beats.put.payload.strobes.eq(bus.wstrb),
            port.wvalid.eq(beats.take.valid & lengths.valid),
            port.wdata.eq(beats.take.payload.data),
            port.wstrb.eq(beats.take.payload.strobes),
            port.wlast.eq(sent == lengths.payload),
            beats.take.ready.eq(port.wready & lengths.valid),
            lengths.ready.eq(port.wvalid & port.wready & port.wlast),
        ]
        with m.If(port.wvalid & port.wready):
            m.d.sync += sent.eq(Mux(port.wlast, 0, sent + 1))

    def _join_answers(self, m, final):
        """One answer for all pieces of a burst."""
        bus, port = self.writes, self.port
        worst_before, worst = Signal(2), Signal(2)
        m.d.comb += [
            worst.eq(Mux(port.bresp > worst_before, port.bresp, worst_before)),
            bus.bvalid.eq(port.bvalid & final.payload),
            bus.bresp.eq(worst),
            port.bready.eq(bus.bready | ~final.payload),
            final.ready.eq(port.bvalid & port.bready),
        ]
        with m.If(final.ready):
            m.d.sync += worst_before.eq(Mux(final.payload, OKAY, worst))
