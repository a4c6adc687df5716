"""From the accelerator's AXI4 bus to LiteDRAM: one port of its crossbar for reads, one for writes.

        AR ──▶ commands of words ──▶ ┌──────────┐        AW ──▶ commands of words ──▶ ┌──────────┐
         R ◀── gear ◀── queue ◀───── │ LiteDRAM │         W ──▶ gear ──▶ queue ─────▶ │ LiteDRAM │
                                     └──────────┘         B ◀── after the last command └──────────┘

A beat of the bus is one word of the memory controller, several, or a part of one. LiteX has
adapters for all of this, but none that answers with an error what lies outside of memory, or that
can be stopped. Two ports, since LiteDRAM lets a port wait when it changes banks, as it would with
every change between reading and writing.

Commands to one bank keep their order, whatever port they come from. A write is therefore answered
when its last command has been taken: who reads then, reads what was written.
"""

from amaranth.hdl import Module
from amaranth.lib.wiring import Component, In, Out

from ....hw.bus.axi import flat_ports, read_channels, write_channels
from ....isa.config import Config
from .dram_port import Port, read_port, write_port
from .dram_reader import DramReader
from .dram_writer import DramWriter


class Bridge(Component):
    """Both halves under the names that a Verilog instance has.

    Members
    -------
    s_axi_* : In(read_channels and write_channels)
        An AXI4 slave.
    read_*, write_* : Out(read_port and write_port)
        To two ports of LiteDRAM's crossbar.
    stop : In(1)
        Give the controller no command any more.
    quiet : Out(1)
        The controller owes no data and waits for none: a reset harms nobody, while stopped.
    """

    def __init__(self, config: Config, port: Port):
        self.config, self.port = config, port
        super().__init__({
            **flat_ports("s_axi", read_channels(config).flip()),
            **flat_ports("s_axi", write_channels(config).flip()),
            **flat_ports("read", read_port(port)), **flat_ports("write", write_port(port)),
            "stop": In(1), "quiet": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.reader = reader = DramReader(self.config, self.port)
        m.submodules.writer = writer = DramWriter(self.config, self.port)
        for prefix, inside in (("s_axi", reader.bus), ("s_axi", writer.bus),
                               ("read", reader.port), ("write", writer.port)):
            for name, member in inside.signature.members.items():
                inner, outer = getattr(inside, name), getattr(self, f"{prefix}_{name}")
                m.d.comb += outer.eq(inner) if member.flow is Out else inner.eq(outer)
        m.d.comb += [reader.stop.eq(self.stop), writer.stop.eq(self.stop),
                     self.quiet.eq(reader.quiet & writer.quiet)]
        return m


def bridge_verilog(config: Config, port: Port) -> str:
    """Module `microtron_bridge`, clock `clk`, synchronous reset `rst`."""
    from amaranth.back import verilog

    return str(verilog.convert(Bridge(config, port), name="microtron_bridge", emit_src=False))
