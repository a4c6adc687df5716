"""Accesses to registers from one clock to another: one at a time, with a handshake."""

from collections.abc import Callable

from amaranth.hdl import Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import Component, In, Out

from ...hw.bus.axi import lite_channels
from .async_fifo import synchronize


class RegisterCrossing(Component):
    """AXI4-Lite from a driver's clock to the accelerator's.

    An access stands in registers while one bit that has changed tells the other side, and its
    answer stands in others while that bit comes back. So only two bits cross; all else is stable
    when somebody looks. Reads and writes take turns if there are both.

    Latency: some five cycles of each clock more than without. Nothing is taken in reset.

    Members
    -------
    driver : In(lite_channels)
        In the domain `system`.
    registers : Out(lite_channels)
        In the domain `accelerator`.
    """

    def __init__(self, synchronizer: Callable[[Value, Value, str], Elaboratable] = synchronize):
        self.synchronizer = synchronizer
        super().__init__({"driver": In(lite_channels()), "registers": Out(lite_channels())})

    def elaborate(self, platform):
        m = Module()
        driver = self.driver
        self.is_write = Signal()
        self.address = Signal.like(driver.awaddr, name="address")
        self.data, self.strobes = Signal.like(driver.wdata), Signal.like(driver.wstrb)
        self.answer, self.response = Signal.like(driver.rdata), Signal.like(driver.rresp)
        self.asked, self.answered = Signal(name="asked"), Signal(name="answered")
        self._ask(m)
        self._answer(m)
        return m

    def _ask(self, m):
        """The driver's side."""
        driver, registers = self.driver, self.registers
        answered = Signal(name="answered_seen")
        is_open, busy = Signal(), Signal()          # not in reset; an access is under way
        writes, reads, done = Signal(), Signal(), Signal()
        m.submodules.back = self.synchronizer(self.answered, answered, "system")
        wants_write = driver.awvalid & driver.wvalid
        m.d.comb += [
            writes.eq(is_open & ~busy & wants_write & ~(driver.arvalid & self.is_write)),
            reads.eq(is_open & ~busy & driver.arvalid & ~writes),
            driver.awready.eq(writes), driver.wready.eq(writes), driver.arready.eq(reads),
            done.eq(busy & (answered == self.asked)),
            driver.bvalid.eq(done & self.is_write), driver.rvalid.eq(done & ~self.is_write),
            driver.bresp.eq(self.response), driver.rresp.eq(self.response),
            driver.rdata.eq(self.answer),
        ]
        m.d.system += is_open.eq(1)
        with m.If(writes | reads):
            m.d.system += [
                busy.eq(1), self.asked.eq(~self.asked), self.is_write.eq(writes),
                self.address.eq(Mux(writes, driver.awaddr, driver.araddr)),
                self.data.eq(driver.wdata), self.strobes.eq(driver.wstrb)]
        with m.If(done & Mux(self.is_write, driver.bready, driver.rready)):
            m.d.system += busy.eq(0)
        m.d.comb += [
            registers.awaddr.eq(self.address), registers.araddr.eq(self.address),
            registers.wdata.eq(self.data), registers.wstrb.eq(self.strobes),
            registers.awprot.eq(0), registers.arprot.eq(0),
        ]

    def _answer(self, m):
        """The accelerator's side: the access again, and what came of it."""
        registers, asked = self.registers, Signal(name="asked_seen")
        waits = Signal()                            # for the accelerator
        m.submodules.there = self.synchronizer(self.asked, asked, "accelerator")
        m.d.comb += [registers.bready.eq(waits), registers.rready.eq(waits)]
        for valid, ready in ((registers.awvalid, registers.awready),
                             (registers.wvalid, registers.wready),
                             (registers.arvalid, registers.arready)):
            with m.If(ready):
                m.d.accelerator += valid.eq(0)
        with m.If(~waits & (asked != self.answered)):
            m.d.accelerator += [
                waits.eq(1), registers.awvalid.eq(self.is_write),
                registers.wvalid.eq(self.is_write), registers.arvalid.eq(~self.is_write)]
        with m.If(waits & (registers.bvalid | registers.rvalid)):
            m.d.accelerator += [
                waits.eq(0), self.answered.eq(asked), self.answer.eq(registers.rdata),
                self.response.eq(Mux(registers.bvalid, registers.bresp, registers.rresp))]
