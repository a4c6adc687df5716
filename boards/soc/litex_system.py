"""The system: VexRiscv, ROM, SRAM, UART, timer, LiteDRAM and the accelerator, on one bus.

        VexRiscv ── Wishbone ─┬─ ROM (the monitor), SRAM, UART, timer
                              ├─ registers of the accelerator (AXI4-Lite)
                              └─ LiteDRAM ◀── bridge ◀── accelerator (AXI4)

The same class for every board and for the simulation. There is no cache between processor and
memory that both would have to agree on: VexRiscv's own writes through, and is emptied after the
accelerator has written.

Where a board's file has no processor, LiteX's bridge over the serial line (UARTBone) is in its
place, without ROM, SRAM and timer: the host that speaks to it sees the same addresses. Where it has
a place on the network, the bridge over Ethernet has the bus, too.
"""

from litedram.core import LiteDRAMCore
from litex.soc.cores import uart
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCCore
from migen.genlib.cdc import MultiReg

from ...isa.config import Config
from ...isa.registers import WINDOW_BYTES
from ..facts.board import Board
from ..facts.errors import BoardError
from ..facts.ethernet import Ethernet
from ..facts.processors import soft_processor
from . import etherbone, platforms
from .accelerator_peripheral import Attached, CrossedAttached
from .dram import litedram_chip
from .dram.dram_port import Port
from .dram.initializer import Starter
from .dram.memory_bus import MemoryBus

ROM_BYTES, SRAM_BYTES = 8192, 4096
MEMORY = 0x4000_0000
REGISTERS = 0x9000_0000             # of the accelerator; VexRiscv caches nothing from 0x8000_0000
BUS_PATIENCE = 2000                 # cycles until an access that nobody answers is an error
BAUD = 115_200


class System(SoCCore):
    """A system for a board, or the same with a model of its memory and of its serial line."""

    def __init__(self, board: Board, config: Config, *, simulated: bool = False):
        self.board, self.processor = board, soft_processor(board)
        platform = platforms.Simulation() if simulated else platforms.platform_of(board)
        self.crg = (platforms.SimulatedClocks(board, platform) if simulated
                    else platforms.Clocks(board, platform))
        super().__init__(platform, board.clock.system_hz, bus_timeout=BUS_PATIENCE,
                         **self._around(simulated))
        if self.processor is None:
            self._bridge(platform, simulated)
        if board.ethernet is not None:
            self._network(board.ethernet, platform, simulated)
        self._memory(platform, simulated)
        self._accelerator(config)
        if not simulated:
            self.comb += platforms.tie_pins(board, platform, ~self.microtron.quiet.status)

    def _around(self, simulated: bool):
        """What LiteX is to put around a processor."""
        if self.processor is None:
            return {"cpu_type": None, "integrated_sram_size": 0, "with_uart": False,
                    "with_timer": False, "with_ctrl": False}
        return {"cpu_type": "vexriscv", "cpu_variant": self.processor.variant,
                "integrated_rom_size": ROM_BYTES, "integrated_rom_init": [1] * (ROM_BYTES // 4),
                "integrated_sram_size": SRAM_BYTES,
                "uart_name": "sim" if simulated else "serial", "uart_baudrate": BAUD}

    def _bridge(self, platform, simulated: bool) -> None:
        pads, hz = platform.request("serial"), self.board.clock.system_hz
        self.line = uart.RS232PHYModel(pads) if simulated else uart.UARTPHY(pads, hz, BAUD)
        self.bridge = uart.UARTBone(self.line, hz)
        self.bus.add_master("bridge", self.bridge.wishbone)

    def _network(self, ethernet: Ethernet, platform, simulated: bool) -> None:
        self.ethernet_phy = (etherbone.SimulatedPhy(platform) if simulated
                             else etherbone.make_phy(ethernet, platform))
        self.network = etherbone.Network(self.ethernet_phy, ethernet, self.board.clock.system_hz)
        self.bus.add_master("network", self.network.bus)

    def _memory(self, platform, simulated: bool) -> None:
        board = self.board
        self.chip = litedram_chip.find_chip(board)
        self.dram_phy = (litedram_chip.make_model(board) if simulated else litedram_chip.make_phy(
            board, platforms.memory_pads(board, platform)))
        if board.memory.kind == "ddr3" and not simulated:
            self.comb += [self.crg.stop.eq(self.dram_phy.init.stop),
                          self.crg.reset.eq(self.dram_phy.init.reset)]
        self.get_port = self._controller().crossbar.get_port
        region = SoCRegion(origin=MEMORY, size=board.memory.bytes, mode="rwx")
        self.bus.add_region("main_ram", region)
        self.memory_bus = MemoryBus(self.get_port(), region.origin)
        self.bus.add_slave("main_ram", self.memory_bus.bus)

    def _controller(self) -> LiteDRAMCore:
        """LiteDRAM, which a processor starts, or a table of steps."""
        if self.processor is not None:
            self.add_sdram("sdram", phy=self.dram_phy, module=self.chip,
                           with_soc_interconnect=False)
            return self.sdram
        if self.board.memory.kind != "sdr":
            raise BoardError(f"{self.board.name}: memory is {self.board.memory.kind}, which a "
                             "processor has to start; without one it must be sdr")
        timing = self.chip.timing_settings
        core = LiteDRAMCore(self.dram_phy, self.chip.geom_settings, timing, self.sys_clk_freq)
        self.submodules += core         # under no name: nobody asks for its registers
        steps = litedram_chip.startup_sequence(self.dram_phy.settings, timing)
        self.starter = Starter(steps, core.dfii)
        return core

    def _accelerator(self, config: Config) -> None:
        reader, writer = self.get_port("read"), self.get_port("write")
        region = self.bus.regions["main_ram"]
        self.port = Port(reader.data_width, reader.address_width, region.origin, region.size)
        attach = CrossedAttached if self.board.clock.is_crossed else Attached
        self.microtron = attach(config, self.port, reader, writer)
        self.bus.add_slave("registers", self.microtron.registers,
                           SoCRegion(origin=REGISTERS, size=WINDOW_BYTES, cached=False))
        if self.board.clock.is_crossed:
            self.specials += MultiReg(~self.crg.accelerator_locked, self.microtron.unlocked)
        if self.processor is not None:
            self.irq.add("microtron")
