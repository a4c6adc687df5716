"""The bridge to LiteDRAM for an accelerator with a clock of its own.

        accelerator's clock │ system's clock
        m_axi ── MemoryCrossing ── bridge ── LiteDRAM
        s_axi ── RegisterCrossing ───────── system's bus
        interrupt ─────────┼──────────────▶ processor
        reset ◀── ResetCrossing ◀────────── reset
"""

from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Module, ResetSignal
from amaranth.lib.wiring import Component, In, Out

from ....hw.bus.axi import connect_flat, flat_ports, lite_channels, read_channels, write_channels
from ....isa.config import Config
from ...crossing.async_fifo import synchronize
from ...crossing.clock_crossing import MemoryCrossing
from ...crossing.register_crossing import RegisterCrossing
from ...crossing.reset_crossing import ResetCrossing
from .bridge import Bridge
from .dram_port import Port, read_port, write_port


class CrossedBridge(Component):
    """As `Bridge`, with the accelerator on another clock.

    Members
    -------
    accelerator_clk : In(1)
    accelerator_rst : Out(1)
        Both are the accelerator's.
    m_axi_* : In(read_channels and write_channels)
        From the accelerator.
    s_axi_* : Out(lite_channels)
        To its registers.
    interrupt : In(1)
        From it, and `interrupt_seen` : Out(1) to the processor.
    driver_* : In(lite_channels)
        From the system's bus.
    reset : In(1)
        Reset the accelerator and all of this.
    read_*, write_*, stop, quiet
        As those of `Bridge`.
    """

    def __init__(self, config: Config, port: Port):
        self.config, self.port = config, port
        super().__init__({
            "accelerator_clk": In(1), "accelerator_rst": Out(1),
            **flat_ports("m_axi", read_channels(config).flip()),
            **flat_ports("m_axi", write_channels(config).flip()),
            **flat_ports("s_axi", lite_channels()),
            "interrupt": In(1), "interrupt_seen": Out(1),
            **flat_ports("driver", lite_channels().flip()),
            **flat_ports("read", read_port(port)), **flat_ports("write", write_port(port)),
            "reset": In(1), "stop": In(1), "quiet": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.domains.system = ClockDomain(local=True)
        m.domains.accelerator = ClockDomain(local=True)
        m.submodules.memory = memory = MemoryCrossing(self.config)
        m.submodules.registers = registers = RegisterCrossing()
        m.submodules.resets = resets = ResetCrossing()
        m.submodules.interrupts = synchronize(self.interrupt, self.interrupt_seen, "system")
        bridge = Bridge(self.config, self.port)
        m.submodules.bridge = DomainRenamer("system")(bridge)
        m.d.comb += [
            ClockSignal("system").eq(ClockSignal("sync")),
            ClockSignal("accelerator").eq(self.accelerator_clk),
            resets.request.eq(ResetSignal("sync") | self.reset),
            ResetSignal("system").eq(resets.system_reset),
            ResetSignal("accelerator").eq(resets.accelerator_reset),
            self.accelerator_rst.eq(resets.accelerator_reset),
            bridge.stop.eq(self.stop), self.quiet.eq(bridge.quiet),
        ]
        for prefix, inside in (("m_axi", memory.reads), ("m_axi", memory.writes),
                               ("s_axi", registers.registers), ("driver", registers.driver)):
            connect_flat(m, prefix, inside, self)
        for inside in (memory.memory_reads, memory.memory_writes):
            _connect_master(m, inside, bridge)
        for prefix, signature in (("read", read_port(self.port)), ("write", write_port(self.port))):
            for name, member in signature.members.items():
                inner, outer = (getattr(each, f"{prefix}_{name}") for each in (bridge, self))
                m.d.comb += outer.eq(inner) if member.flow is Out else inner.eq(outer)
        return m


def _connect_master(m, master, bridge: Bridge) -> None:
    """A bus of a unit inside with the slave's ports of the bridge."""
    for name, member in master.signature.members.items():
        inner, outer = getattr(master, name), getattr(bridge, f"s_axi_{name}")
        m.d.comb += outer.eq(inner) if member.flow is Out else inner.eq(outer)


def crossed_bridge_verilog(config: Config, port: Port) -> str:
    """Module `microtron_bridge`, clock `clk`, synchronous reset `rst`."""
    from amaranth.back import verilog

    return str(verilog.convert(CrossedBridge(config, port), name="microtron_bridge",
                               emit_src=False))
