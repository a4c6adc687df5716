"""Inside a process of its own: the files of a small system."""

import json
from pathlib import Path

from amaranth.back import verilog

from ....hw.targets import find_target
from ....isa.config import Config
from ....isa.registers import WINDOW_BYTES
from ...build.constraints import format_cst
from ...facts.board import Board
from ..serialize import deserialize
from .gowin_pins import GowinBoard, wires_of
from .simulation_top import SimulatedSystem
from .small_system import MEMORY, REGISTERS

CHIP = "chip.v"             # its model, for the simulation


def write_small_system(board, config, simulated: bool, top: str, pins: str, facts: str) -> None:
    """Write a system into the present folder."""
    board, config = deserialize(board), Config(**config)
    if simulated:
        design, platform = SimulatedSystem(board, config), None
        Path(CHIP).write_bytes((Path(__file__).parent / CHIP).read_bytes())
    else:
        design = GowinBoard(board, config)
        Path(pins).write_text(format_cst(wires_of(board)), encoding="utf-8")
        platform = find_target(board.flow, board.part.resources["dsp"])
    text = verilog.convert(design, name=top, ports=design.ports, platform=platform, emit_src=False)
    Path(f"{top}.v").write_text(text, encoding="utf-8")
    Path(facts).write_text(json.dumps(_software_facts(board), indent=1), encoding="utf-8")


def _software_facts(board: Board):
    """What software has to know."""
    return {"board": board.name, "clock_hz": board.clock.system_hz, "data_cache": False,
            "registers": {}, "interrupts": {},
            "memories": {"main_ram": {"base": MEMORY, "size": board.memory.bytes},
                         "registers": {"base": REGISTERS, "size": WINDOW_BYTES}}}
