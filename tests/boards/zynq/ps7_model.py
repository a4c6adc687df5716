"""A model of PS7 between the shell and the harness of the RTL device: the whole shell as a design.

The harness speaks AXI4-Lite to a driver's registers and is an AXI4 memory. The model turns the one
into what the processors say on M_AXI_GP0, and S_AXI_HP0 into the other. So every program that the
RTL device runs can run behind the shell, with its memory model and its watch over the bus.
"""

from functools import cache
from pathlib import Path

from amaranth.back import verilog as backend
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib.wiring import Component, In

from microtron.boards import zynq
from microtron.boards.facts.zynq7000 import REGISTERS
from microtron.boards.zynq.shell import RESET_STAGES, Shell
from microtron.hw.top import MODULE
from microtron.runtime.devices.rtl_build import cached_build, generator

FILE = "shell.v"
BUFFER = "module BUFG(input I, output O); assign O = I; endmodule\n"
ID = 0xA5C              # of every transaction of the processors


class Ps7Model(Elaboratable):
    """Stands for PS7; `outside` has the ports of the harness."""

    def __init__(self, ports, clock, outside):
        self.ports, self.clock, self.outside = ports, clock, outside

    def elaborate(self, platform):
        m = Module()
        ports, outside = self.ports, self.outside
        m.d.comb += [ports.clocks.eq(outside.clk), ports.resets.eq(~outside.rst),
                     outside.interrupt.eq(ports.interrupts[0])]
        awake = Signal(range(2 * RESET_STAGES))     # processors take longer than the reset
        with m.If(awake != 2 * RESET_STAGES - 1):
            m.d.sync += awake.eq(awake + 1)
        self._control(m, awake == 2 * RESET_STAGES - 1)
        self._memory(m)
        return m

    def _control(self, m, awake):
        bus, outside = self.ports.control, self.outside
        for lead in ("ar", "aw"):
            for name, value in (("id", ID), ("len", 0), ("size", 2), ("burst", 1)):
                m.d.comb += getattr(bus, f"{lead}{name}").eq(value)
            m.d.comb += getattr(bus, f"{lead}addr").eq(
                REGISTERS + getattr(outside, f"s_axi_{lead}addr"))
        m.d.comb += [bus.wid.eq(ID), bus.wlast.eq(1), bus.wdata.eq(outside.s_axi_wdata),
                     bus.wstrb.eq(outside.s_axi_wstrb)]
        for name in ("ar", "aw", "w"):
            m.d.comb += [
                getattr(bus, f"{name}valid").eq(getattr(outside, f"s_axi_{name}valid") & awake),
                getattr(outside, f"s_axi_{name}ready").eq(getattr(bus, f"{name}ready") & awake)]
        for name in ("r", "b"):         # an answer with another id is none
            m.d.comb += [
                getattr(outside, f"s_axi_{name}valid").eq(
                    getattr(bus, f"{name}valid") & (getattr(bus, f"{name}id") == ID)),
                getattr(outside, f"s_axi_{name}resp").eq(getattr(bus, f"{name}resp")),
                getattr(bus, f"{name}ready").eq(getattr(outside, f"s_axi_{name}ready"))]
        m.d.comb += outside.s_axi_rdata.eq(bus.rdata)

    def _memory(self, m):
        bus, outside = self.ports.memory, self.outside
        for name in ("id", "addr", "len", "size", "burst", "cache", "prot", "qos", "valid"):
            for lead in ("ar", "aw"):
                m.d.comb += getattr(outside, f"m_axi_{lead}{name}").eq(
                    getattr(bus, f"{lead}{name}"))
        for name in ("wdata", "wstrb", "wlast", "wvalid", "rready", "bready"):
            m.d.comb += getattr(outside, f"m_axi_{name}").eq(getattr(bus, name))
        for name in ("arready", "awready", "wready", "rid", "rdata", "rresp", "rlast", "rvalid",
                     "bid", "bresp", "bvalid"):
            m.d.comb += getattr(bus, name).eq(getattr(outside, f"m_axi_{name}"))


class ShellBench(Component):
    """The ports of the accelerator, with the shell and a model of PS7 in between."""

    def __init__(self, config):
        self.config = config
        self.shell = Shell(config, lambda ports, clock: Ps7Model(ports, clock, self))
        super().__init__({"clk": In(1), "rst": In(1),
                          **dict(self.shell.accelerator.signature.members)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.shell = shell = self.shell
        for name in self.signature.members:
            if name.startswith("trace_"):
                m.d.comb += getattr(self, name).eq(getattr(shell.accelerator, name))
        return m


@cache
def shell_verilog(config):
    """Verilog with the accelerator's ports, for `RtlDevice(design=…)`. Several tests want it, and
    to write it takes seconds: it is kept while its sources are the same."""
    def make(folder, log):
        (folder / FILE).write_text(
            backend.convert(ShellBench(config), name=MODULE, emit_src=False) + BUFFER)

    folder = cached_build(f"shell-{config.digest}", (generator(), *_sources()), make)
    return (folder / FILE).read_text()


def _sources():
    """What the shell and the model are made of, besides the accelerator."""
    return [path.read_text() for path in (*sorted(Path(zynq.__file__).parent.glob("*.py")),
                                          Path(__file__))]
