"""The AXI4-Lite slave: a driver's access to the control registers."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import Component, In, Out

from ...isa.registers import REGISTER_BYTES
from ..control import OFFSET_BITS, READ_LATENCY
from .axi import LITE_BITS, lite_channels

OKAY, SLVERR = 0, 2
WHOLE_WORD = (1 << REGISTER_BYTES) - 1


class AxiLiteSlave(Component):
    """Turns AXI4-Lite transactions into single-cycle register accesses.

    One write and one read may be in progress, independently of each other. A write is accepted when
    address and data are both valid; the access follows in the next cycle and the response two
    cycles later, when a start has taken effect. A read is accepted when the previous response has
    been taken; its own follows six cycles later. Responses stay until they are taken. Registers are
    written whole: a write with a strobe missing changes nothing and gets SLVERR.

    Rate: a write every four cycles and a read every seven, if the driver takes responses at once.

    Members
    -------
    bus : In(lite_channels)
        AXI4-Lite, from the driver. It may stall any channel for any time.
    write_enable : Out(1)
        Write a register in this cycle.
    write_offset : Out(OFFSET_BITS)
        Its byte offset in the register window.
    write_data : Out(LITE_BITS)
        Its new value.
    read_offset : Out(OFFSET_BITS)
        The register to read. Sampled in the cycle after a read is accepted.
    read_data : In(LITE_BITS)
        Its value, four cycles later.
    """

    def __init__(self):
        super().__init__({
            "bus": In(lite_channels()),
            "write_enable": Out(1), "write_offset": Out(OFFSET_BITS), "write_data": Out(LITE_BITS),
            "read_offset": Out(OFFSET_BITS), "read_data": In(LITE_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        self._write(m)
        self._read(m)
        return m

    def _write(self, m):
        bus = self.bus
        accept = Signal()
        at_work = Signal(2)             # one bit for each cycle until a start takes effect
        whole = bus.wstrb == WHOLE_WORD
        m.d.comb += [
            accept.eq(bus.awvalid & bus.wvalid & ~at_work.any() & ~bus.bvalid),
            bus.awready.eq(accept),
            bus.wready.eq(accept),
        ]
        m.d.sync += [
            self.write_enable.eq(accept & whole),
            self.write_offset.eq(bus.awaddr),
            self.write_data.eq(bus.wdata),
        ]
        m.d.sync += at_work.eq(Cat(accept, at_work))
        with m.If(accept):
            m.d.sync += bus.bresp.eq(Mux(whole, OKAY, SLVERR))
        with m.If(at_work[-1]):
            m.d.sync += bus.bvalid.eq(1)
        with m.Elif(bus.bready):
            m.d.sync += bus.bvalid.eq(0)

    def _read(self, m):
        bus = self.bus
        looking_up = Signal(1 + READ_LATENCY)       # one bit for each cycle of the lookup
        m.d.comb += [bus.arready.eq(~looking_up.any() & ~bus.rvalid), bus.rresp.eq(OKAY)]
        m.d.sync += [self.read_offset.eq(bus.araddr),
                     looking_up.eq(Cat(bus.arvalid & bus.arready, looking_up))]
        with m.If(looking_up[-1]):
            m.d.sync += [bus.rvalid.eq(1), bus.rdata.eq(self.read_data)]
        with m.Elif(bus.rready):
            m.d.sync += bus.rvalid.eq(0)
