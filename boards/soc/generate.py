"""Writes a system's files, inside the process that has LiteX.

Migen names signals after the classes and functions that make them. A new name for one of those is
another netlist, which nextpnr places differently.
"""

import json
import re
from dataclasses import asdict
from pathlib import Path

from litex import get_data_mod
from litex.soc.integration.export import get_csr_json

from ...isa.config import Config
from ..facts.processors import soft_processor
from .dram import litedram_chip
from .dram.bridge import bridge_verilog
from .dram.crossed_bridge import crossed_bridge_verilog
from .file_names import FACTS, PROCESSOR, ROM, TOP
from .litex_system import System
from .serialize import deserialize

COMMENTS = r"^//[^\n]*\n|/\*.*?\*/\n?"


def write(board, config, simulated: bool) -> None:
    """Write a system into the present folder. The ROM's words are not among its files: that the
    monitor fills them in changes nothing else."""
    board, config = deserialize(board), Config(**config)
    system = System(board, config, simulated=simulated)
    platform = system.platform
    system.finalize()
    converted = platform.get_verilog(system, name=TOP)
    converted.write(f"{TOP}.v")
    verilog = Path(f"{TOP}.v")          # without comments: the date, and lists in no fixed order
    verilog.write_text(re.sub(COMMENTS, "", verilog.read_text(), flags=re.MULTILINE | re.DOTALL))
    if not simulated:
        _write_pins(platform, converted)
    processor = soft_processor(board)
    if processor is not None:
        Path(ROM).unlink()
        folder = Path(get_data_mod("cpu", "vexriscv").data_location)
        Path(PROCESSOR).write_bytes((folder / processor.file).read_bytes())
    write_bridge = crossed_bridge_verilog if board.clock.is_crossed else bridge_verilog
    Path("microtron_bridge.v").write_text(write_bridge(config, system.port))
    Path(FACTS).write_text(json.dumps(_software_facts(system), indent=1))


def _write_pins(platform, converted) -> None:
    """The constraints, as LiteX writes them for this family's tools."""
    pins, other = platform.resolve_signals(converted.ns)
    toolchain = platform.toolchain
    toolchain.named_sc, toolchain.named_pc, toolchain._vns = pins, other, converted.ns
    toolchain._build_name, toolchain.platform = TOP, platform
    toolchain.build_io_constraints()


def _software_facts(system: System):
    """What software has to know."""
    found = json.loads(get_csr_json(system.csr_regions, system.constants, system.mem_regions))
    settings, processor = system.dram_phy.settings, soft_processor(system.board)
    return {
        "board": system.board.name,
        "clock_hz": int(system.sys_clk_freq),
        "data_cache": processor is not None and processor.data_cache,
        "registers": {name: each["addr"] for name, each in found["csr_registers"].items()},
        "memories": {name: {"base": each["base"], "size": each["size"]}
                     for name, each in found["memories"].items()},
        "interrupts": dict(system.irq.locs) if processor else {},
        "dram": {
            "modules": settings.databits // 8, "bitslips": settings.bitslips,
            "delays": settings.delays,
            "start": [asdict(step) for step in
                      litedram_chip.startup_sequence(settings, system.chip.timing_settings)]},
    }
