"""The AXI4-Lite slave: a driver's way to the control registers."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import Component, In, Out

from ..isa.registers import REGISTER_BYTES
from .axi import LITE_BITS, lite_channels
from .control import OFFSET_BITS

OKAY, SLVERR = 0, 2
WHOLE_WORD = (1 << REGISTER_BYTES) - 1


class LiteSlave(Component):
    """Turns AXI4-Lite transactions into single-cycle register accesses.

    One write and one read may be in progress, independently. A write is accepted when address and
    data are both there; its answer follows in the next cycle and stays until taken. A read is
    accepted when the last one's answer has been taken; its answer follows two cycles later and
    stays. Registers are written whole: a write with a byte missing changes nothing and is answered
    with SLVERR.

    Members
    -------
    bus : In(lite_channels)
    write_enable, write_offset, write_data : Out, a register write
    read_offset : Out, read_data : In one cycle later, a register read
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
        whole = bus.wstrb == WHOLE_WORD
        m.d.comb += [
            accept.eq(bus.awvalid & bus.wvalid & ~bus.bvalid),
            bus.awready.eq(accept),
            bus.wready.eq(accept),
            self.write_enable.eq(accept & whole),
            self.write_offset.eq(bus.awaddr),
            self.write_data.eq(bus.wdata),
        ]
        with m.If(accept):
            m.d.sync += [bus.bvalid.eq(1), bus.bresp.eq(Mux(whole, OKAY, SLVERR))]
        with m.Elif(bus.bready):
            m.d.sync += bus.bvalid.eq(0)

    def _read(self, m):
        bus = self.bus
        looking_up = Signal()
        m.d.comb += [
            bus.arready.eq(~looking_up & ~bus.rvalid),
            self.read_offset.eq(bus.araddr),
            bus.rresp.eq(OKAY),
        ]
        m.d.sync += looking_up.eq(bus.arvalid & bus.arready)
        with m.If(looking_up):
            m.d.sync += [bus.rvalid.eq(1), bus.rdata.eq(self.read_data)]
        with m.Elif(bus.rready):
            m.d.sync += bus.rvalid.eq(0)
