"""The accelerator in the fabric of a Zynq-7000: all that a bitstream holds.

    processors ── M_AXI_GP0 ── RegisterPort ── registers ┐
    memory ────── S_AXI_HP0 ── MemoryPort ──── m_axi ────┤ accelerator
    interrupt 61 ─ IRQ_F2P[0] ───────────────────────────┘
    FCLK_CLK0, FCLK_RESET0_N ── clock and reset of everything here

There are no pins: memory, clocks and the console belong to the processors.
"""

from collections.abc import Callable
from pathlib import Path

from amaranth.back import verilog as backend
from amaranth.hdl import (
    ClockDomain,
    ClockSignal,
    Elaboratable,
    Instance,
    Module,
    ResetSignal,
    Value,
)
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import connect

from ...hw.bus.axi import connect_flat
from ...hw.targets import find_target
from ...hw.top import Accelerator
from ...isa.config import Config
from ..facts.zynq7000 import SHELL, check_config
from .memory_port import MemoryPort
from .processing_system import Ps7Ports, ps7
from .register_port import RegisterPort

RESET_STAGES = 3


class Shell(Elaboratable):
    """The accelerator and PS7, joined.

    `processing_system` makes what stands for PS7 from its ports and the clock of its buses; a test
    gives a model of it.
    """

    def __init__(self, config: Config,
                 processing_system: Callable[[Ps7Ports, Value], Instance] = ps7):
        self.config = config
        self.processing_system = processing_system
        self.ports = Ps7Ports()
        self.accelerator = Accelerator(config)

    def elaborate(self, platform):
        m = Module()
        ports = self.ports
        self._clock(m)
        m.submodules.ps7 = self.processing_system(ports, ClockSignal())
        m.submodules.accelerator = accelerator = self.accelerator
        m.submodules.registers = registers = RegisterPort()
        m.submodules.memory = memory = MemoryPort(self.config)
        connect(m, ports.control, registers.port)
        connect(m, memory.port, ports.memory)
        connect_flat(m, "m_axi", memory.reads, accelerator)
        connect_flat(m, "m_axi", memory.writes, accelerator)
        connect_flat(m, "s_axi", registers.bus, accelerator)
        m.d.comb += ports.interrupts[0].eq(accelerator.interrupt)
        return m

    def _clock(self, m):
        """FCLK_CLK0 is the only clock. Its reset comes at any time and leaves with the clock; after
        configuration there is one too, whatever the processors do."""
        m.domains.sync = ClockDomain()
        m.submodules.buffer = Instance("BUFG", i_I=self.ports.clock, o_O=ClockSignal())
        m.submodules.reset = FFSynchronizer(self.ports.reset, ResetSignal(), init=1,
                                            stages=RESET_STAGES)


def shell_verilog(config: Config) -> str:
    """The shell as Verilog: module `microtron_zynq`, without ports."""
    check_config(config)
    return str(backend.convert(Shell(config), name=SHELL, platform=find_target("xc7"),
                               emit_src=False, ports=[]))


def write_shell(config: dict[str, int]) -> None:
    """The first step of a build: `top.v`."""
    Path("top.v").write_text(shell_verilog(Config(**config)), encoding="utf-8")
