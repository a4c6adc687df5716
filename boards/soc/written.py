"""Inside the process that has LiteX: the system's files."""

import json
import re
from pathlib import Path

from litedram.init import get_sdram_phy_init_sequence
from litex import get_data_mod
from litex.soc.integration.export import get_csr_json

from ...isa.config import Config
from ..board import Board
from ..processors import processor_of
from .bridge import bridge_verilog
from .plain import rebuilt
from .steps import FACTS, ROM, TOP
from .system import System

COMMENTS = r"^//[^\n]*\n|/\*.*?\*/\n?"
CONTROL = {"DFII_CONTROL_SEL": 1, "DFII_CONTROL_CKE": 2, "DFII_CONTROL_ODT": 4,
           "DFII_CONTROL_RESET_N": 8}
COMMAND = {"DFII_COMMAND_CS": 1, "DFII_COMMAND_WE": 2, "DFII_COMMAND_CAS": 4,
           "DFII_COMMAND_RAS": 8, "DFII_COMMAND_WRDATA": 16, "DFII_COMMAND_RDDATA": 32}


def write(board, config, simulated: bool) -> None:
    """Write a system into the present folder. The ROM's words are not among its files: that the
    monitor fills them in changes nothing else."""
    board, config = rebuilt(board), Config(**config)
    system = System(board, config, simulated=simulated)
    platform = system.platform
    system.finalize()
    converted = platform.get_verilog(system, name=TOP)
    converted.write(f"{TOP}.v")
    verilog = Path(f"{TOP}.v")          # without comments: the date, and lists in no fixed order
    verilog.write_text(re.sub(COMMENTS, "", verilog.read_text(), flags=re.MULTILINE | re.DOTALL))
    Path(ROM).unlink()
    if not simulated:
        _write_pins(board, platform, converted)
    processor = Path(get_data_mod("cpu", "vexriscv").data_location) / processor_of(board).file
    Path("VexRiscv.v").write_bytes(processor.read_bytes())
    Path("microtron_bridge.v").write_text(bridge_verilog(config, system.port))
    Path(FACTS).write_text(json.dumps(_facts(system), indent=1))


def _write_pins(board: Board, platform, converted) -> None:
    """The constraints, as LiteX writes them for this family's tools."""
    pins, other = platform.resolve_signals(converted.ns)
    toolchain = platform.toolchain
    toolchain.named_sc, toolchain.named_pc, toolchain._vns = pins, other, converted.ns
    toolchain._build_name, toolchain.platform = TOP, platform
    toolchain.build_io_constraints()


def _facts(system: System):
    """What software has to know."""
    found = json.loads(get_csr_json(system.csr_regions, system.constants, system.mem_regions))
    settings = system.dram_phy.settings
    steps, _ = get_sdram_phy_init_sequence(settings, system.chip.timing_settings)
    return {
        "board": system.board.name,
        "clock_hz": int(system.sys_clk_freq),
        "data_cache": processor_of(system.board).data_cache,
        "registers": {name: each["addr"] for name, each in found["csr_registers"].items()},
        "memories": {name: {"base": each["base"], "size": each["size"]}
                     for name, each in found["memories"].items()},
        "interrupts": dict(system.irq.locs),
        "dram": {
            "modules": settings.databits // 8, "bitslips": settings.bitslips,
            "delays": settings.delays,
            "start": [{"address": address, "bank": bank, "command": _flags(command),
                       "is_control": command.startswith("DFII_CONTROL"), "wait": wait}
                      for _, address, bank, command, wait in steps]},
    }


def _flags(text: str) -> int:
    """LiteDRAM writes commands as C."""
    return sum({**CONTROL, **COMMAND}[word] for word in text.split("|"))
