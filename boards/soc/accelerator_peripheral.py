"""The accelerator as a part of a LiteX system: instances of our Verilog, and three registers."""

from amaranth.lib.wiring import Out, Signature
from litex.gen import LiteXModule
from litex.soc.interconnect import axi, stream
from litex.soc.interconnect.csr import CSRStatus, CSRStorage
from litex.soc.interconnect.csr_eventmanager import EventManager, EventSourceLevel
from migen import ClockSignal, Instance, ResetSignal, Signal

from ...hw.bus.axi import lite_channels, read_channels, write_channels
from ...isa.config import Config
from ...isa.registers import WINDOW_BYTES
from .dram.dram_port import Port, read_port, write_port


class Attached(LiteXModule):
    """The accelerator with its bridge to LiteDRAM, on the system's clock.

    registers   the AXI4-Lite slave, for the system's bus
    ev          its interrupt
    stop        1: the bridge gives the memory controller no command any more
    quiet       1: the memory controller owes the bridge nothing
    reset       1: accelerator and bridge are in reset; one that hangs is stopped first, and quiet
    """

    def __init__(self, config: Config, port: Port, reader, writer):
        self.stop = CSRStorage()                    # one a line: LiteX reads the names from here
        self.quiet = CSRStatus()
        self.reset = CSRStorage()
        self.registers = axi.AXILiteInterface(data_width=32, address_width=32)
        self.ev = EventManager()
        self.ev.done = EventSourceLevel()
        self.ev.finalize()
        self.comb += [reader.cmd.we.eq(0), writer.cmd.we.eq(1), reader.rdata.ready.eq(1)]
        bus = _signals("m_axi", read_channels(config)) | _signals("m_axi", write_channels(config))
        controller = {
            **_master("read", read_port(port), {
                "valid": reader.cmd.valid, "ready": reader.cmd.ready, "address": reader.cmd.addr,
                "data_valid": reader.rdata.valid, "data": reader.rdata.data}),
            **_master("write", write_port(port), {
                "valid": writer.cmd.valid, "ready": writer.cmd.ready, "address": writer.cmd.addr,
                "data_valid": writer.wdata.valid, "data_ready": writer.wdata.ready,
                "data": writer.wdata.data, "strobes": writer.wdata.we}),
            "i_stop": self.stop.storage, "o_quiet": self.quiet.status}
        self._join(config, bus, controller)

    def _join(self, config: Config, bus, controller) -> None:
        clocked = {"i_clk": ClockSignal(), "i_rst": ResetSignal() | self.reset.storage}
        self.specials += Instance(
            "microtron", **clocked, o_interrupt=self.ev.done.trigger,
            **_slave("s_axi", lite_channels(), self._lite()), **_memory_master(config, bus))
        self.specials += Instance(
            "microtron_bridge", **clocked, **controller,
            **_slave("s_axi", read_channels(config), bus),
            **_slave("s_axi", write_channels(config), bus))

    def _lite(self):
        """The registers' bus under the names of the standard, behind registers on the way of every
        request: who has the system's bus is known late in a cycle."""
        lite = axi.AXILiteInterface(data_width=32, address_width=32)
        for channel in ("aw", "w", "ar"):
            asked, given = getattr(self.registers, channel), getattr(lite, channel)
            buffer = stream.Buffer(asked.description)
            self.submodules += buffer
            self.comb += [asked.connect(buffer.sink), buffer.source.connect(given)]
        self.comb += [lite.b.connect(self.registers.b), lite.r.connect(self.registers.r)]
        return {"awprot": 0, "arprot": 0,           # LiteX has none
                "awaddr": lite.aw.addr & (WINDOW_BYTES - 1),
                "araddr": lite.ar.addr & (WINDOW_BYTES - 1),
                **{f"{channel}{name}": getattr(getattr(lite, channel), name)
                   for channel in ("aw", "w", "b", "ar", "r") for name in ("valid", "ready")},
                "wdata": lite.w.data, "wstrb": lite.w.strb, "bresp": lite.b.resp,
                "rdata": lite.r.data, "rresp": lite.r.resp}


class CrossedAttached(Attached):
    """The same with the accelerator on a clock of its own, in the domain `accelerator`.

    unlocked    that clock is not stable yet: both are in reset
    """

    def _join(self, config: Config, bus, controller) -> None:
        self.unlocked = Signal()
        registers = _signals("s_axi", lite_channels())
        reset, interrupt = Signal(), Signal()
        self.specials += Instance(
            "microtron", i_clk=ClockSignal("accelerator"), i_rst=reset, o_interrupt=interrupt,
            **_slave("s_axi", lite_channels(), registers), **_memory_master(config, bus))
        self.specials += Instance(
            "microtron_bridge", i_clk=ClockSignal(), i_rst=ResetSignal(),
            i_accelerator_clk=ClockSignal("accelerator"), o_accelerator_rst=reset,
            i_reset=self.reset.storage | self.unlocked, i_interrupt=interrupt,
            o_interrupt_seen=self.ev.done.trigger, **controller,
            **_master("s_axi", lite_channels(), registers),
            **_slave("driver", lite_channels(), self._lite()),
            **_slave("m_axi", read_channels(config), bus),
            **_slave("m_axi", write_channels(config), bus))


def _signals(prefix: str, signature: Signature):
    return {name: Signal(member.shape, name=f"{prefix}_{name}")
            for name, member in signature.members.items()}


def _memory_master(config: Config, bus):
    return {**_master("m_axi", read_channels(config), bus),
            **_master("m_axi", write_channels(config), bus)}


def _master(prefix: str, signature: Signature, signals):
    """Connections of an instance that is the master of a bus."""
    return {f"{'o' if member.flow is Out else 'i'}_{prefix}_{name}": signals[name]
            for name, member in signature.members.items()}


def _slave(prefix: str, signature: Signature, signals):
    return _master(prefix, signature.flip(), signals)
