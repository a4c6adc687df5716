"""The system: VexRiscv, ROM, SRAM, UART, timer, LiteDRAM and the accelerator, on one bus.

        VexRiscv ── Wishbone ─┬─ ROM (the monitor), SRAM, UART, timer
                              ├─ registers of the accelerator (AXI4-Lite)
                              └─ LiteDRAM ◀── bridge ◀── accelerator (AXI4)

The same class for every board and for the simulation. There is no cache between processor and
memory that both would have to agree on: VexRiscv's own writes through, and is emptied after the
accelerator has written.
"""

from litedram.frontend.wishbone import LiteDRAMWishbone2Native
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCCore
from litex.soc.interconnect import wishbone

from ...isa.config import Config
from ...isa.registers import WINDOW_BYTES
from ..board import Board
from ..processors import processor_of
from . import memories, platforms
from .attached import Attached
from .dram_port import Port

ROM_BYTES, SRAM_BYTES = 8192, 4096
REGISTERS = 0x9000_0000             # of the accelerator; VexRiscv caches nothing from 0x8000_0000
BUS_PATIENCE = 2000                 # cycles until an access that nobody answers is an error
BAUD = 115_200


class System(SoCCore):
    """A system for a board, or the same with a model of its memory and of its serial line."""

    def __init__(self, board: Board, config: Config, *, simulated: bool = False):
        self.board = board
        platform = platforms.Simulation() if simulated else platforms.platform_of(board)
        self.crg = (platforms.SimulatedClocks(platform) if simulated
                    else platforms.Clocks(board, platform))
        super().__init__(
            platform, board.clock.system_hz, cpu_type="vexriscv",
            cpu_variant=processor_of(board).variant,
            integrated_rom_size=ROM_BYTES, integrated_rom_init=[1] * (ROM_BYTES // 4),
            integrated_sram_size=SRAM_BYTES, bus_timeout=BUS_PATIENCE,
            uart_name="sim" if simulated else "serial", uart_baudrate=BAUD)
        self._memory(platform, simulated)
        self._accelerator(config)
        if not simulated:
            self.comb += platforms.tie(board, platform, ~self.microtron.quiet.status)

    def _memory(self, platform, simulated: bool) -> None:
        board = self.board
        self.chip = memories.chip(board)
        self.dram_phy = (memories.modelled(board) if simulated
                         else memories.interface(board, platforms.memory_pads(board, platform)))
        if board.memory.kind == "ddr3" and not simulated:
            self.comb += [self.crg.stop.eq(self.dram_phy.init.stop),
                          self.crg.reset.eq(self.dram_phy.init.reset)]
        self.add_sdram("sdram", phy=self.dram_phy, module=self.chip, with_soc_interconnect=False)
        region = SoCRegion(origin=self.mem_map["main_ram"], size=board.memory.bytes, mode="rwx")
        self.bus.add_region("main_ram", region)
        bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.bus.add_slave("main_ram", bus)
        self.memory_bus = LiteDRAMWishbone2Native(bus, self.sdram.crossbar.get_port(),
                                                  base_address=region.origin)

    def _accelerator(self, config: Config) -> None:
        reader = self.sdram.crossbar.get_port("read")
        writer = self.sdram.crossbar.get_port("write")
        region = self.bus.regions["main_ram"]
        self.port = Port(reader.data_width, reader.address_width, region.origin, region.size)
        self.microtron = Attached(config, self.port, reader, writer)
        self.bus.add_slave("registers", self.microtron.registers,
                           SoCRegion(origin=REGISTERS, size=WINDOW_BYTES, cached=False))
        self.irq.add("microtron")
