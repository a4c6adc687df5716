"""The processors' way to the accelerator's registers: their AXI3 as AXI4-Lite."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import exact_log2

from ...hw.bus.axi import lite_channels
from ...isa.registers import REGISTER_BYTES, WINDOW_BYTES
from ..facts.zynq7000 import PORT_BITS
from .axi3 import DECERR, FIXED, GP_ID_BITS, LENGTH_BITS, OKAY, SIZE_BITS, WRAP, gp_port

WINDOW_BITS = exact_log2(WINDOW_BYTES)
WORD_BITS = exact_log2(REGISTER_BYTES)

# What is left of a burst: where in the window its next beat is, and how the ones after follow.
BURST = data.StructLayout({"id": GP_ID_BITS, "offset": WINDOW_BITS, "left": LENGTH_BITS,
                           "length": LENGTH_BITS, "size": SIZE_BITS, "burst": 2, "outside": 1})


class RegisterPort(Component):
    """Turns bursts of the processors into single register accesses, one after the other.

    Reads and writes go their own ways, one burst at a time each. Bursts of every kind and size
    are taken apart into accesses to whole words; the strobes of writes are passed on. Beyond the
    window of registers, reads give zero and every access is answered with DECERR. The worst
    answer to a beat of a burst of writes is the answer to the burst.

    Rate: as the registers answer, plus a cycle for each burst and for each beat of a write. What
    the processors send meets registers first: their port is far away, and its signals come late.

    Members
    -------
    port : In(gp_port)
        AXI3, from M_AXI_GP0.
    bus : Out(lite_channels)
        AXI4-Lite, to the registers. One write and one read at a time.
    """

    def __init__(self):
        super().__init__({"port": In(gp_port), "bus": Out(lite_channels())})

    def elaborate(self, platform):
        m = Module()
        self._read(m)
        self._write(m)
        return m

    def _accept_burst(self, m, lead, now):
        """Note a burst that is offered on AR or AW, if it may come now. Returns the note."""
        port = {name: getattr(self.port, f"{lead}{name}")
                for name in ("addr", "id", "len", "size", "burst", "valid", "ready")}
        noted = Signal(BURST, name=f"{lead}_burst")
        m.d.comb += port["ready"].eq(now)
        with m.If(now):             # valid or not: without, it is read by nobody
            m.d.sync += [
                noted.id.eq(port["id"]), noted.offset.eq(port["addr"]),
                noted.left.eq(port["len"]), noted.length.eq(port["len"]),
                noted.size.eq(port["size"]), noted.burst.eq(port["burst"]),
                noted.outside.eq(port["addr"][WINDOW_BITS:PORT_BITS] != 0),
            ]
        return noted

    def _advance(self, m, burst):
        """To the next beat of a burst."""
        after = _next_offset(m, burst)
        m.d.sync += [burst.offset.eq(after), burst.left.eq(burst.left - 1)]

    def _read(self, m):
        port, bus = self.port, self.bus
        idle = Signal()
        burst = self._accept_burst(m, "ar", idle)
        m.d.comb += [
            bus.araddr.eq(_word(burst.offset)), bus.arprot.eq(0),
            port.rid.eq(burst.id),
        ]
        with m.FSM(name="reading"):
            with m.State("IDLE"):
                m.d.comb += idle.eq(1)
                with m.If(port.arvalid):
                    m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += bus.arvalid.eq(~burst.outside)
                with m.If(bus.arready | burst.outside):
                    m.next = "WAIT"
            with m.State("WAIT"):
                m.d.comb += bus.rready.eq(~burst.outside)
                with m.If(bus.rvalid | burst.outside):
                    m.d.sync += [port.rdata.eq(Mux(burst.outside, 0, bus.rdata)),
                                 port.rresp.eq(Mux(burst.outside, DECERR, bus.rresp)),
                                 port.rlast.eq(burst.left == 0)]
                    self._advance(m, burst)     # here, since `rready` is late
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += port.rvalid.eq(1)
                with m.If(port.rready):
                    m.next = "ASK"
                    with m.If(port.rlast):
                        m.next = "IDLE"

    def _write(self, m):
        port, bus = self.port, self.bus
        idle = Signal()
        burst = self._accept_burst(m, "aw", idle)
        beat = Signal(data.StructLayout({"data": 8 * REGISTER_BYTES, "strobes": REGISTER_BYTES}))
        address_taken, beat_taken = Signal(), Signal()
        m.d.comb += [
            bus.awaddr.eq(_word(burst.offset)), bus.awprot.eq(0),
            bus.wdata.eq(beat.data), bus.wstrb.eq(beat.strobes), port.bid.eq(burst.id),
        ]
        with m.FSM(name="writing"):
            with m.State("IDLE"):
                m.d.comb += idle.eq(1)
                with m.If(port.awvalid):
                    m.d.sync += port.bresp.eq(OKAY)
                    m.next = "TAKE"
            with m.State("TAKE"):
                m.d.comb += port.wready.eq(1)
                m.d.sync += [beat.data.eq(port.wdata), beat.strobes.eq(port.wstrb),
                             address_taken.eq(0), beat_taken.eq(0)]
                with m.If(port.wvalid):
                    m.next = "TELL"
            with m.State("TELL"):
                m.d.comb += [bus.awvalid.eq(~burst.outside & ~address_taken),
                             bus.wvalid.eq(~burst.outside & ~beat_taken)]
                with m.If(bus.awready):
                    m.d.sync += address_taken.eq(1)
                with m.If(bus.wready):
                    m.d.sync += beat_taken.eq(1)
                with m.If(((bus.awready | address_taken) & (bus.wready | beat_taken))
                          | burst.outside):
                    m.next = "WAIT"
            with m.State("WAIT"):
                m.d.comb += bus.bready.eq(~burst.outside)
                response = Mux(burst.outside, Const(DECERR, 2), bus.bresp)
                with m.If(bus.bvalid | burst.outside):
                    with m.If(response > port.bresp):
                        m.d.sync += port.bresp.eq(response)
                    self._advance(m, burst)
                    m.next = "TAKE"
                    with m.If(burst.left == 0):
                        m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += port.bvalid.eq(1)
                with m.If(port.bready):
                    m.next = "IDLE"


def _word(offset):
    """The offset of the register that a byte is in."""
    return Cat(Const(0, WORD_BITS), offset[WORD_BITS:])


def _next_offset(m, burst):
    """Where the beat after this one is: the address wraps inside what the whole burst covers."""
    step = Signal(WINDOW_BITS)
    covered = Signal(WINDOW_BITS)       # bits that change in a burst that wraps
    after = Signal(WINDOW_BITS)
    aligned = burst.offset & ~(step - 1)
    m.d.comb += [
        step.eq(1 << burst.size),
        covered.eq(((burst.length + 1) << burst.size) - 1),
        after.eq(aligned + step),
    ]
    with m.If(burst.burst == FIXED):
        m.d.comb += after.eq(burst.offset)
    with m.Elif(burst.burst == WRAP):
        m.d.comb += after.eq((burst.offset & ~covered) | ((aligned + step) & covered))
    return after
